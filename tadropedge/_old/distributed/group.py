"""The processes that train one model together, and what they say to each other.

Everything that is sent goes through here: sums over all, rows for each other process, one value from the first to all.
A process that is gone, or that does not answer in time, becomes one :class:`LostError` wherever the others notice it.
A group of one sends nothing and needs no process group of torch.
"""

from __future__ import annotations

import io
import os
import pickle
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from tadropedge._old.distributed.launch import end_after_first, ranks_told
from tadropedge._old.errors import LostError, SpreadError, TadropedgeError

SILENCE = 600.0  # seconds after which a process that does not answer is lost
FIRST_ENDED, READY = "tadropedge/ended", "tadropedge/ready"
CPU = torch.device("cpu")
PIECE = 2**28  # bytes of a message: larger ones are sent in pieces
LOOK = 0.05  # seconds from one look at the store to the next
_WAITS = count()


@dataclass(frozen=True, eq=False)
class Group:
    """Process ``rank`` among ``size`` of them, and the device on which it computes."""

    rank: int = 0
    size: int = 1
    device: torch.device = CPU

    def all_sum_(self, x: Tensor) -> Tensor:
        """``x`` becomes the sum of the x of all processes, the same bits in each."""
        if self.size > 1:
            with answered():
                dist.all_reduce(x)
        return x

    def to_all(self, rows: Tensor, received: Tensor, sent_rows: Sequence[int], received_rows: Sequence[int]) -> Tensor:
        """Send ``sent_rows[r]`` of ``rows``, in order, to each process r, and fill ``received`` in the same way."""
        with answered():
            dist.all_to_all_single(received, rows, list(received_rows), list(sent_rows))
        return received

    def gathered(self, rows: Tensor, counts: Sequence[int]) -> Tensor:
        """The rows of all processes, of which process r has ``counts[r]``, one after the other."""
        if self.size == 1:
            return rows
        wide = max(counts)
        mine = rows.new_zeros((wide, *rows.shape[1:]))
        mine[: len(rows)] = rows
        all_rows = rows.new_empty((self.size * wide, *rows.shape[1:]))
        with answered():
            dist.all_gather_into_tensor(all_rows, mine)
        return torch.cat([all_rows[r * wide : r * wide + many] for r, many in enumerate(counts)])

    def from_first(self, value: Any) -> Any:
        """The value that the first process holds, in all of them; for what is small."""
        if self.size == 1:
            return value
        packed = _bytes_of(pickle.dumps(value)) if self.rank == 0 else torch.empty(0, dtype=torch.uint8)
        length = torch.tensor([len(packed)])
        with answered():
            dist.broadcast(length, 0)
            if self.rank:
                packed = torch.empty(int(length), dtype=torch.uint8)
            for piece in packed.split(PIECE):
                dist.broadcast(piece, 0)
        return pickle.loads(packed.numpy().tobytes())  # from a process of this very training

    def deal(self, tensors: Mapping[str, Tensor], to: int) -> None:
        """Send tensors by name to one other process."""
        stream = io.BytesIO()
        torch.save(dict(tensors), stream)
        packed = _bytes_of(stream.getbuffer())
        with answered():
            dist.send(torch.tensor([len(packed)]), to)
            for piece in packed.split(PIECE):
                dist.send(piece, to)

    def dealt(self) -> dict[str, Tensor]:
        """What the first process sent to this one."""
        length = torch.tensor([0])
        with answered():
            dist.recv(length, 0)
            packed = torch.empty(int(length), dtype=torch.uint8)
            for piece in packed.split(PIECE):
                dist.recv(piece, 0)
        found: dict[str, Tensor] = torch.load(io.BytesIO(packed.numpy().data), weights_only=True)
        return found

    def after_first(self, work: Callable[[], Any]) -> Any:
        """What ``work`` returns in the first process, None elsewhere; the others wait for it, however long it takes.

        They look into the store now and then instead of waiting in a message, which would end with a timeout.
        """
        if self.size == 1:
            return work()
        ready = f"{READY}/{next(_WAITS)}"  # all processes wait for the same things in the same order
        if self.rank == 0:
            found, word = None, "failed"
            try:
                found, word = work(), "done"
            finally:
                _store().set(ready, word)
            return found
        while True:
            with answered():
                if _store().check([ready]):
                    break
            time.sleep(LOOK)
        if _store().get(ready) == b"failed":  # it says why
            end_after_first()
        return None


@contextmanager
def joined(device: str, seconds: float) -> Iterator[Group]:
    """The group of all processes that ``torchrun`` started; one that is silent for so many ``seconds`` is lost.

    NCCL carries what lies on GPUs, gloo what lies in main memory.
    """
    rank, size = ranks_told()
    place = int(os.environ.get("LOCAL_RANK", rank))
    if device == "cuda":
        if place >= (gpus := torch.cuda.device_count()):
            raise SpreadError(
                f"process {place} of this machine has no GPU of its own: there are {gpus}, so --nproc-per-node may be "
                f"at most {gpus} (or take --device cpu)"
            )
        torch.cuda.set_device(place)
    where = torch.device("cuda", place) if device == "cuda" else torch.device("cpu")
    backend = "cpu:gloo,cuda:nccl" if device == "cuda" else "gloo"
    wait = timedelta(seconds=seconds)
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    with answered():
        store, _, _ = next(rendezvous("env://", rank, size, timeout=wait))
        # What an earlier attempt of torchrun --max-restarts left in the store is not of this one.
        store = PrefixStore(f"tadropedge/{attempt}", store)
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=wait)
    try:
        yield Group(rank, size, where)
    finally:
        dist.destroy_process_group()


@contextmanager
def one_voice(kept: Callable[[], str]) -> Iterator[None]:
    """Where the training ends early, in whatever process first, that one says why in one line; the others are silent.

    ``kept`` says what is kept, and how to go on.
    """
    try:
        yield
    except (LostError, KeyboardInterrupt) as error:
        _ignore_signals()
        why = str(error) if isinstance(error, LostError) else "this training was stopped"
        if _first_to_end():
            raise SpreadError(f"{why}; {kept()}") from None
        raise SystemExit(1) from None
    except TadropedgeError as error:
        _ignore_signals()
        if _first_to_end():
            raise SpreadError(error) from None
        raise SystemExit(1) from None
    except Exception:
        _first_to_end()
        raise


def _ignore_signals() -> None:
    """It ends already: ``torchrun``, which asks all to end when one is gone, must not interrupt the words about it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _first_to_end() -> bool:
    """Whether no other process of the group has said yet why the training ends."""
    try:
        return int(_store().add(FIRST_ENDED, 1)) == 1
    except Exception:  # the store went with the process that held it: rather twice than never
        return True


@contextmanager
def answered() -> Iterator[None]:
    """Turn what torch says of a connection that broke, in whatever words, into one line."""
    try:
        yield
    except RuntimeError as error:  # torch's own, DistBackendError and DistStoreError among them
        raise LostError(f"another process of this training is gone or does not answer ({_reason(error)})") from None


def _reason(error: RuntimeError) -> str:
    """The first sentence of what torch says, without the place in its source."""
    first = (str(error).strip().splitlines() or ["no reason given"])[0]
    return re.sub(r"^\[[^]]*\.\w+:\d+\]\s*", "", first).split(". ")[0][:120].strip(" .")


def _bytes_of(buffer: Any) -> Tensor:
    return torch.frombuffer(bytearray(buffer), dtype=torch.uint8)


def _store() -> Any:
    return dist.distributed_c10d._get_default_store()
