"""The processes of ``torchrun`` that train one model together: who takes which nodes, and sums over all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor
from torch import distributed as dist
from torch.distributed.rendezvous import rendezvous

from tadropedge.errors import TadropedgeError

PATIENCE = timedelta(seconds=20)  # for all processes to meet
ANSWER = timedelta(minutes=30)  # for the slowest of them to come to the same step
VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class Ranks:
    """Process ``rank`` of ``count``; one alone needs no others.

    >>> Ranks(1, 3).share(torch.arange(5)).tolist(), Ranks().share(torch.arange(3)).tolist()
    ([1, 4], [0, 1, 2])
    """

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this process prints and writes."""
        return self.rank == 0

    def share(self, nodes: Tensor) -> Tensor:
        """The nodes of a step that this process takes."""
        return nodes[self.rank :: self.count]

    def summed(self, values: Sequence[Tensor]) -> list[Tensor]:
        """The sums of several tensors of one type over all processes, sent as one."""
        if self.count == 1:
            return list(values)
        flat = torch.cat([value.flatten() for value in values])
        try:
            dist.all_reduce(flat)
        except RuntimeError as error:  # what torch raises when a connection breaks or nobody answers
            raise TadropedgeError(
                f"process {self.rank} of {self.count} lost the others: one of them ended, or did not answer"
            ) from error
        parts = flat.split([value.numel() for value in values])
        return [part.view_as(value) for part, value in zip(parts, values, strict=True)]


@contextmanager
def joined_ranks(device: str = "cpu") -> Iterator[Ranks]:
    """Meet the processes that ``torchrun`` has started, as its variables say; without them this one is alone."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        yield Ranks()
        return
    told = {name: os.environ.get(name, "") for name in VARIABLES}
    place = f"MASTER_ADDR={told['MASTER_ADDR']!r} and MASTER_PORT={told['MASTER_PORT']!r}"
    try:
        rank, count, _ = (int(told[name]) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
        if not 0 <= rank < count:
            raise ValueError
    except ValueError:
        listed = ", ".join(f"{name}={value!r}" for name, value in told.items())
        raise TadropedgeError(f"the variables of torchrun do not fit together: {listed}") from None
    if count == 1:
        yield Ranks()
        return
    backend = "nccl" if torch.device(device).type == "cuda" else "gloo"
    try:
        store, rank, count = next(rendezvous("env://", timeout=PATIENCE))
        dist.init_process_group(backend, store=store, timeout=ANSWER, rank=rank, world_size=count)
    except (RuntimeError, ValueError) as error:  # nobody listens there, or not all have come
        first = str(error).partition("\n")[0]
        raise TadropedgeError(f"process {rank} of {count} could not meet the others at {place}: {first}") from error
    try:
        yield Ranks(rank, count)
    finally:
        dist.destroy_process_group()
