"""Train on Ray: several batches at once, each a task that Ray tries again elsewhere if its worker dies.

The driver, this process, sends the experiment with its data and scores once, hands out batches, and alone writes what
comes back. Coins are pure functions, so a batch gives the same outcomes wherever it is trained.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
import socket
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from tadropedge.errors import TadropedgeError
from tadropedge.lab.registry import MEASURES, NETWORKS
from tadropedge.lab.search.executors import Train, Trained
from tadropedge.lab.training.trial import Outcome, Trial
from tadropedge.registry import OPTIONS, RULES, SCORES, USES

REGISTRIES = {registry.kind: registry for registry in (SCORES, RULES, USES, OPTIONS, NETWORKS, MEASURES)}
PACKAGE = __name__.partition(".")[0]
AUTO = "auto"
REACHED = 5.0  # seconds in which a head node must answer
TRIES = 3  # more, where a worker dies
LOOPBACK = "127.0.0.1"
# Ray reads these when it is imported. The last one makes a cluster of one machine use the loopback address alone; its
# name is from the systems for which that is the default.
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}

Own = Mapping[str, Mapping[str, Any]]  # of each registry, by its kind: a user's own entries


class Ray:
    """Workers of Ray for the duration of a block.

    * ``address``: ``"auto"`` for the cluster that this machine belongs to, or ``"HOST:PORT"`` of its head node. Without
      it the Ray that this process has started is used, or one is started on this machine, which listens on the
      loopback address alone.
    * ``workers``: how many batches train at once on a Ray that is started here; by default one per processor.
    """

    is_here = False

    def __init__(self, address: str | None = None, *, workers: int | None = None) -> None:
        if importlib.util.find_spec("ray") is None:
            raise TadropedgeError("engine 'ray' needs the package ray: pip install 'tadropedge[ray]'")
        self.address, self._asked = address, workers
        self._sent: tuple[Train, Any] | None = None  # what was trained last, and where Ray holds it

    def __enter__(self) -> Ray:
        if self.address is not None:
            check_answers(os.environ.get("RAY_ADDRESS", AUTO) if self.address == AUTO else self.address)
        os.environ.update({**QUIET, **({} if self.address else ALONE), **os.environ})
        import ray

        self._ray, self._is_ours = ray, not ray.is_initialized()
        if self._is_ours:
            self._connect()
        elif self.address is not None:
            raise TadropedgeError(f"this process is connected to Ray already: leave the address {self.address!r} out")
        there: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        gpus = int(there.get("GPU", 0))  # of which each batch has one of its own, where there are any
        self.workers = gpus or int(there.get("CPU", 0))
        if self.workers < 1:
            raise TadropedgeError("the Ray cluster has no processor for a batch: see ray status")
        self._train = ray.remote(num_cpus=1, num_gpus=int(gpus > 0), max_retries=TRIES)(_train)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_ours:
            self._ray.shutdown()

    def map(self, train: Train, batches: Sequence[Sequence[Trial]]) -> Iterator[Trained]:
        """As many batches as workers, and one more for each, are on their way; each comes back as it ends."""
        if not batches:
            return
        work, waiting = self._send(train), list(enumerate(batches))[::-1]
        running: dict[Any, int] = {}
        while waiting or running:
            while waiting and len(running) < 2 * self.workers:
                number, trials = waiting.pop()
                running[self._train.remote(work, trials)] = number
            for ended in self._ray.wait(list(running))[0]:
                number = running.pop(ended)
                yield number, self._outcomes(ended, len(batches[number]))

    def _outcomes(self, ended: Any, count: int) -> list[Outcome]:
        from ray.exceptions import RayError, RayTaskError

        try:
            outcomes: list[Outcome] = self._ray.get(ended)
            return outcomes
        except RayTaskError as error:
            raise (error.cause if isinstance(error.cause, Exception) else error) from None
        except RayError as error:
            raise TadropedgeError(
                f"a batch of {count} trainings was given up by Ray ({type(error).__name__}: {_first_line(error)}); "
                "what is finished is kept, and the same command goes on"
            ) from error

    def _send(self, train: Train) -> Any:
        """Put what trains, with the user's own scores, networks and the like, where every worker finds it."""
        if self._sent is None or self._sent[0] != train:
            own = own_entries()
            with _by_value([train, *(entry for entries in own.values() for entry in entries.values())]):
                try:
                    self._sent = train, self._ray.put((own, train))
                except TypeError as error:
                    raise TadropedgeError(
                        f"cannot be sent to the workers of Ray: {_first_line(error.__cause__ or error)}"
                    ) from error
        return self._sent[1]

    def _connect(self) -> None:
        settings: dict[str, Any] = {"address": self.address}
        if self.address is None:
            from ray.util import get_node_ip_address

            if get_node_ip_address() != LOOPBACK:  # type: ignore[no-untyped-call]
                raise TadropedgeError(
                    "ray was imported before, so a Ray that is started now would listen beyond this machine: set "
                    f"{'='.join(*ALONE.items())} before, or start Ray yourself with ray.init()"
                )
            settings = {"address": "local", "include_dashboard": False, "num_cpus": self._asked}
        try:
            with _same_signals():
                self._ray.init(**settings, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, RuntimeError, ValueError, AssertionError, SystemExit) as error:
            where = "Ray cannot be started" if self.address is None else f"no Ray answers at {self.address!r}"
            raise TadropedgeError(f"{where}: {_first_line(error)}", argument="address") from error


def check_answers(address: str) -> None:
    """Refuse an address at which nobody answers: Ray itself looks for two minutes.

    >>> check_answers("ray://head:10001")
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: the address of a Ray cluster is auto or HOST:PORT of its head node, got \
'ray://head:10001'
    """
    host, _, port = address.rpartition(":")
    if address == AUTO:
        return
    if not host or "/" in address or not (port.isascii() and port.isdecimal() and len(port) <= 5):
        wanted = "auto or HOST:PORT of its head node"
        raise TadropedgeError(f"the address of a Ray cluster is {wanted}, got {address!r}", argument="address")
    try:
        socket.create_connection((host, int(port)), timeout=REACHED).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise TadropedgeError(f"no Ray answers at {address!r}: {error}", argument="address") from error


def _train(work: tuple[Own, Callable[[Sequence[Trial]], list[Outcome]]], trials: Sequence[Trial]) -> list[Outcome]:
    """The task of a worker."""
    own, train = work
    for kind, entries in own.items():
        for name, entry in entries.items():
            REGISTRIES[kind][name] = entry
    return train(trials)


def own_entries() -> Own:
    """The scores, rules, uses, options, networks and measures that this package did not bring, by kind and name.

    >>> from statistics import mean
    >>> RULES["mean"] = mean
    >>> own_entries()["rule"], RULES.pop("mean") is mean
    ({'mean': <function mean at ...>}, True)
    """
    return {
        kind: {name: entry for name, entry in registry.items() if _module_of(entry).partition(".")[0] != PACKAGE}
        for kind, registry in REGISTRIES.items()
    }


def _module_of(value: object) -> str:
    return str(getattr(value, "__module__", None) or type(value).__module__)


def _is_own(module: ModuleType) -> bool:
    """Whether a module is a file of the user's, neither of Python nor installed."""
    file = Path(getattr(module, "__file__", None) or sys.executable)
    package = module.__name__.partition(".")[0] == PACKAGE
    standard = file.is_relative_to(sysconfig.get_path("stdlib"))
    return file.suffix == ".py" and not (package or standard or "site-packages" in file.parts)


@contextmanager
def _by_value(values: Sequence[object]) -> Iterator[None]:
    """Send the modules of these values whole where they are files of the user's own: workers may not have them."""
    from ray import cloudpickle

    model = getattr(getattr(values[0], "experiment", None), "model", None)
    names = {_module_of(value) for value in (*values, model)} - {"__main__"}  # which Ray sends by itself
    own = [sys.modules[name] for name in names if name in sys.modules and _is_own(sys.modules[name])]
    for module in own:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]


@contextmanager
def _same_signals() -> Iterator[None]:
    """Ray takes signals for itself: give them back."""
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)} if main else {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
