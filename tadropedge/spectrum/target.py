"""What a solver is asked for besides the matrix: where to run, how accurately, and where to report progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch

from tadropedge.spectrum.blocks import EPSILON, Floats

Eigenpairs = tuple[Floats, Floats]
CPU = torch.device("cpu")
ROUNDING_STEPS = 200 * EPSILON  # a residual of this share of ‖L‖ is all that float64 gives
WORTH_THREADS = 50_000  # nodes


@dataclass(frozen=True)
class Target:
    """``limits(values, norm)`` gives the largest good residual of each pair ``[k]``; ``report`` hears the share done.

    ``cut(values)``: no copy of an eigenvalue below it may be missed. By default nothing but rounding may remain.

    >>> float(Target().limits(np.zeros(2), 1.0)[0]) < 1e-13
    True
    """

    device: torch.device = CPU
    limits: Callable[[Floats, float], Floats] = lambda values, norm: np.full(len(values), ROUNDING_STEPS * norm)
    report: Callable[[float], None] = lambda share: None
    cut: Callable[[Floats], float] = lambda values: float(values[-1])


EXACT = Target()
Solver = Callable[..., Eigenpairs]


def with_null(values: Floats, vectors: Floats, null: Floats) -> Eigenpairs:
    """Put the exactly known pair (0, null) in front."""
    return np.concatenate(([0.0], values)), np.column_stack((null, vectors))


def largest_bound(L: sp.csr_matrix) -> float:
    """Gershgorin's bound on the largest eigenvalue of a Laplacian."""
    return 2 * float(abs(L.diagonal()).max())


@contextmanager
def few_threads(nodes: int) -> Iterator[None]:
    """One thread for small graphs: a second one gains little there, and on a busy machine it is waited for."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if nodes < WORTH_THREADS else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
