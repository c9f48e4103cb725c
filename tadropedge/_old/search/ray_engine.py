"""Train on a Ray cluster: several batches at once, each a task that may be tried again elsewhere.

The driver, this process, puts the laboratory with its data and scores into the object store once, hands out batches,
and alone writes what comes back. A worker that dies, runs out of memory or gives no sign of life for longer than a
deadline costs its batch, which is tried again, on another node where there is one. Coins are pure functions, so a
batch gives the same outcomes wherever it is trained.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import Any
from uuid import uuid4

from tadropedge._old.board import Board, Key, Note
from tadropedge._old.checks import check_integer, check_number, check_positive, check_text, settle
from tadropedge._old.errors import NotEnoughMemoryError, TadropedgeError
from tadropedge._old.remote import VERSIONS, Errand, end_process, fitting, laboratory_of, packed, train_batch
from tadropedge._old.search.engines import Crew, Train, Trained
from tadropedge._old.training.config import Outcome, Trial
from tadropedge._old.watching import Moment, tell, watched

log = logging.getLogger(__name__)
PORT = 6379  # of the head of a cluster, where none is named
REACHED = 5.0  # seconds in which it must answer
LOOK = 0.2  # seconds between two looks at batches that are not finished
BATCH = 32  # trials, where nobody says how many: enough batches for many workers
PATIENCE = 60.0  # seconds without a worker, before that is said
MISSING = "the engine 'ray' needs the package ray, which is not installed: pip install 'tadropedge[ray]'"
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


@dataclass(frozen=True)
class RayEngine:
    """How a search is trained on Ray.

    * ``address``: ``"auto"`` for the cluster that this machine belongs to, or ``"HOST"`` or ``"HOST:PORT"`` of its head
      node. ``None`` starts Ray on this machine alone, or uses the Ray that this process has started.
    * ``gpus_per_batch``: the share of a GPU that a batch asks for; by default 1 where the cluster has GPUs, else 0.
    * ``batch``: trials per batch. Then a search gives the same bits with any number of workers of one kind; by default
      as many as fit into the memory of a worker, at most 32.
    * ``deadline``: seconds without an epoch after which a batch counts as lost; ``tries``: how often one may be lost.

    >>> RayEngine("auto", gpus_per_batch=0.5)
    RayEngine(address='auto', gpus_per_batch=0.5, batch=None, deadline=600.0, tries=3)
    """

    address: str | None = None
    gpus_per_batch: float | None = None
    _: KW_ONLY
    batch: int | None = None
    deadline: float = 600.0
    tries: int = 3

    def __post_init__(self) -> None:
        if self.address is not None:
            settle(self, address=check_address(self.address))
        if self.gpus_per_batch is not None:
            settle(self, gpus_per_batch=check_number("gpus_per_batch", self.gpus_per_batch, 0, 1))
        if self.batch is not None:
            settle(self, batch=check_integer("batch", self.batch, least=1))
        settle(self, deadline=check_positive("deadline", self.deadline), tries=check_integer("tries", self.tries, 1))

    @contextmanager
    def running(self) -> Iterator[Crew]:
        """Connect to the cluster, or start one; both end with the block."""
        with _connected(self.address) as ray:
            yield _Workers(self, ray, _gpus(ray, self.gpus_per_batch))


def check_address(address: object) -> str:
    """Return where a cluster is: ``auto``, or the address of its head node with its port.

    >>> check_address("10.0.0.7"), check_address("head:6380")
    ('10.0.0.7:6379', 'head:6380')
    >>> check_address("ray://head:10001")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: address must be auto, HOST or HOST:PORT of the head node, got 'ray://head:10001'
    """
    told = check_text("address", address)
    host, colon, port = told.partition(":")
    if told == "auto":
        return told
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else 0
    if not host or host != host.strip() or "/" in told or (colon and not 0 < number < 2**16):
        raise TadropedgeError(f"address must be auto, HOST or HOST:PORT of the head node, got {told!r}")
    return f"{host}:{port or PORT}"


# -- the connection -----------------------------------------------------------------------------------------------


def check_ray() -> None:
    """Refuse to go on where Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise TadropedgeError(MISSING)


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """The module ``ray``, connected; what this process connected to before is used, and stays."""
    check_ray()
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    import ray

    if ray.is_initialized():
        if address is not None:
            raise TadropedgeError(f"this process is connected to Ray already: leave the address {address!r} out")
        yield ray
        return
    found = "local" if address is None else _found(address)
    with _few_words(ray):
        with _same_signals():
            _start(ray, found, address)
        try:
            yield ray
        finally:
            ray.shutdown()


def _found(address: str) -> str:
    """The address of a head node that answers."""
    told = address
    if address == "auto":
        from ray._private.utils import read_ray_address

        address = os.environ.get("RAY_ADDRESS") or read_ray_address() or ""
        if not address:
            raise TadropedgeError("address auto: no Ray runs on this machine; start it with: ray start --head")
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=REACHED).close()
    except (OSError, ValueError) as error:
        place = address if told == address else f"{told} ({address})"
        raise TadropedgeError(f"address {place}: no Ray answers there ({error})") from error
    return told if told == "auto" else address


def _start(ray: Any, found: str, told: str | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        ray.init(found, **quiet, **({"include_dashboard": False} if told is None else {}))
    except (OSError, RuntimeError, ValueError, AssertionError, SystemExit) as error:
        line = (str(error).splitlines() or [type(error).__name__])[0]
        where = "cannot start Ray on this machine" if told is None else f"address {told}: cannot connect to Ray"
        more = (
            ""
            if told is None
            else "; is this machine part of the cluster, and does it have its token (RAY_AUTH_MODE=token)?"
        )
        raise TadropedgeError(f"{where} ({line}){more}") from error


@contextmanager
def _same_signals() -> Iterator[None]:
    """Ray takes SIGTERM for itself: give it back."""
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)} if main else {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _few_words(ray: Any) -> Iterator[None]:
    """Without the logs of nodes, which Ray prints where one is lost: what that means here is told in one line."""
    worker, name = ray._private.worker, "print_to_stdstream"
    before = getattr(worker, name, None)
    setattr(worker, name, lambda *_, **__: None)
    try:
        yield
    finally:
        setattr(worker, name, before)


def _gpus(ray: Any, asked: float | None) -> float:
    """The share of a GPU that a batch gets; more than any node has is refused."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    there = {kind: max((node.get(kind, 0.0) for node in nodes), default=0.0) for kind in ("CPU", "GPU")}
    if there["CPU"] < 1:
        raise TadropedgeError("no node of the Ray cluster has a CPU to offer: start one with --num-cpus")
    if asked is not None and asked > there["GPU"]:
        raise TadropedgeError(
            f"gpus_per_batch is {asked:g}, and no node of the Ray cluster has a GPU: take 0, or add such a node"
        )
    return min(1.0, there["GPU"]) if asked is None else asked


# -- the batches --------------------------------------------------------------------------------------------------


@dataclass(eq=False, kw_only=True)
class _Batch:
    """A batch on its way: its place, its trials, how often it was lost, and the nodes that it was on."""

    call: str
    place: int
    trials: Sequence[Trial]
    lost: int = 0
    nodes: list[str] = field(default_factory=list)

    @property
    def key(self) -> Key:
        """Names this try of it."""
        return self.call, self.place, self.lost


class _Workers:
    """The workers of a cluster."""

    together = True

    def __init__(self, engine: RayEngine, ray: Any, gpus: float) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as At

        self._engine, self._ray, self._gpus = engine, ray, gpus
        here = At(ray.get_runtime_context().get_node_id(), soft=True)  # where it lives as long as the driver
        self._board = ray.remote(Board).options(num_cpus=0, max_restarts=-1, scheduling_strategy=here).remote()
        share = {"num_cpus": 1, "num_gpus": gpus}
        self._train = ray.remote(**share, max_retries=0)(train_batch)
        self._fitting = ray.remote(**share, max_retries=engine.tries)(fitting)
        self._asked: Any = None  # the reference to what is on the board
        self._work: tuple[object, str, frozenset[str], Errand] | None = None  # whose data is in the object store

    def size(self, train: Train, trials: Sequence[Trial], most: int) -> int:
        """As was asked for; otherwise as many as fit into the memory of the first worker that answers."""
        if self._engine.batch is not None:
            return self._engine.batch
        if laboratory_of(train) is None or most == 1:
            return most
        kinds = list({trial.method: trial for trial in trials}.values())
        return min(BATCH, self._fits(self._fitting.remote(self._given(train, trials), kinds)))

    def _fits(self, reference: Any) -> int:
        from ray.exceptions import RayError, RayTaskError

        try:
            return int(self._ray.get(reference))
        except RayTaskError as error:
            raise _cause(error) from None
        except RayError as error:
            raise TadropedgeError(f"no worker of Ray answers ({_why(error)})") from error

    def _given(self, train: Train, trials: Sequence[Trial]) -> Errand:
        """Put a trainer into the object store, unless it is there with all that these trials need."""
        owner, name = laboratory_of(train) or train, getattr(train, "__name__", "")
        needed = frozenset(trial.method for trial in trials)
        if self._work is not None and self._work[:2] == (owner, name) and needed <= self._work[2]:
            return self._work[3]
        self._work = None  # what was there before is no longer needed
        reference = self._ray.put(packed(train, trials))
        work = Errand(packed=reference, board=self._board, gpus=self._gpus, versions=VERSIONS)
        self._work = owner, name, needed, work
        return work

    def trained(self, train: Train, batches: Sequence[Sequence[Trial]]) -> Generator[Trained, None, None]:
        """Hand out all batches, and give back each as it ends; workers leave those that nobody waits for."""
        work = self._given(train, [trial for batch in batches for trial in batch]) if batches else None
        call, out, waited = uuid4().hex, dict[Any, _Batch](), _Waited()  # out: by the reference to its outcomes
        fresh = [_Batch(call=call, place=place, trials=trials) for place, trials in enumerate(batches)]
        try:
            while out or fresh:
                for batch in fresh:
                    out[self._elsewhere(batch).remote(work, batch.key, batch.trials)] = batch
                fresh = []
                for reference in self._ray.wait(list(out), timeout=LOOK)[0]:
                    batch = out.pop(reference)
                    if (outcomes := self._outcomes(reference, batch)) is None:
                        fresh.append(batch)
                    else:
                        yield batch.place, outcomes
                notes = self._notes(out.values())
                fresh += self._silent(out, notes)
                _tell([moment for _, moment, _ in notes.values()])
                waited.look(len(out), len(notes))
        finally:
            self._dismiss(call)

    def _dismiss(self, which: str | Key) -> None:
        """Let workers leave what nobody waits for.

        Not by ``ray.cancel``: a task that begins or ends at that moment brings down this process ("Tried to complete
        task that was not pending", Ray 2.60).
        """
        with suppress(Exception):
            self._board.dismiss.remote(which)

    def _elsewhere(self, batch: _Batch) -> Any:
        """The task, on none of the nodes where the batch was lost if there are others."""
        from ray.util.scheduling_strategies import NodeLabelSchedulingStrategy as By
        from ray.util.scheduling_strategies import NotIn

        if not (batch.lost and batch.nodes):
            return self._train
        return self._train.options(scheduling_strategy=By(hard={}, soft={"ray.io/node-id": NotIn(*batch.nodes)}))

    def _outcomes(self, reference: Any, batch: _Batch) -> list[Outcome] | None:
        """What a batch gave; ``None`` where it is lost and may be tried again."""
        from ray.exceptions import RayError, RayTaskError

        try:
            found: list[Outcome] = self._ray.get(reference)
            return found
        except RayTaskError as error:
            cause = _cause(error)
            if not isinstance(cause, NotEnoughMemoryError) or batch.lost + 1 >= self._engine.tries:
                raise cause from None
            self._lose(batch, str(cause))
        except RayError as error:
            self._lose(batch, _why(error))
        return None

    def _notes(self, batches: Iterable[_Batch]) -> Mapping[Key, Note]:
        """What is on the board of these; nothing while it cannot be read."""
        from ray.exceptions import RayError

        mine = {batch.key: batch for batch in batches}
        if self._asked is None:
            self._asked = self._board.notes.remote(list(mine))
        if not self._ray.wait([self._asked], timeout=LOOK)[0]:
            return {}  # and look again: nobody waits for it
        asked, self._asked = self._asked, None
        notes: dict[Key, Note] = {}
        with suppress(RayError):
            notes = {key: note for key, note in self._ray.get(asked).items() if key in mine}
        for key, ((node, _), _, _) in notes.items():
            mine[key].nodes += [node] if node not in mine[key].nodes else []
        return notes

    def _silent(self, out: dict[Any, _Batch], notes: Mapping[Key, Note]) -> list[_Batch]:
        """Take back the batches of which nothing was heard until the deadline."""
        deadline = self._engine.deadline
        late = [one for one, batch in out.items() if batch.key in notes and notes[batch.key][2] > deadline]
        taken = [out.pop(reference) for reference in late]
        for batch in taken:
            self._dismiss(batch.key)
            self._end(*notes[batch.key][0])
        for batch in taken:
            self._lose(batch, f"no sign of life for {deadline:g} s")
        return taken

    def _end(self, node: str, process: int) -> None:
        """End a worker that hangs, so that its place is free again; where its node hangs as well, nothing happens."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as At

        there = At(node, soft=False)
        self._ray.remote(end_process).options(num_cpus=0, max_retries=0, scheduling_strategy=there).remote(process)

    def _lose(self, batch: _Batch, why: str) -> None:
        """Count a loss, and give up after too many."""
        batch.lost += 1
        if batch.lost >= self._engine.tries:
            raise TadropedgeError(
                f"a batch of {len(batch.trials)} trainings was lost {batch.lost} times on Ray ({why}); what is "
                "finished is kept, and the same call resumes it"
            )
        log.warning("a batch of %d trainings is lost (%s) and tried again", len(batch.trials), why)


class _Waited:
    """Says once that no worker takes a batch: a cluster may be starting one, or have none that fits."""

    def __init__(self) -> None:
        self._since: float | None = time.monotonic()

    def look(self, out: int, running: int) -> None:
        """So many batches are handed out, and so many of them run."""
        if running or not out:
            self._since = None
        elif self._since is not None and time.monotonic() - self._since > PATIENCE:
            self._since = None
            log.warning("no worker of Ray has taken a batch for %g s: %d are waiting (see ray status)", PATIENCE, out)


def _cause(error: Any) -> Exception:
    """What a task raised, without the words of Ray."""
    return error.cause if isinstance(error.cause, Exception) else error


def _why(error: Exception) -> str:
    """In a few words how a batch was lost."""
    words = {
        "WorkerCrashedError": "its worker died",
        "NodeDiedError": "its node was lost",
        "OutOfMemoryError": "its node ran out of memory",
    }
    name = type(error).__name__
    return words.get(name, f"{name}: {(str(error).splitlines() or [''])[0]}")


def _tell(moments: Sequence[Moment]) -> None:
    """Tell where all batches at work are, as if they were one."""
    if not moments or not watched():
        return
    together, epochs = sum(one.together for one in moments), max(one.epochs for one in moments)
    worked = sum(one.together * one.epoch / one.epochs for one in moments)
    counts = {"trainings": sum(one.trainings for one in moments), "finished": sum(one.finished for one in moments)}
    tell(Moment(**counts, together=together, epoch=int(worked * epochs / max(1, together)), epochs=epochs))
