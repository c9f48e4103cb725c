"""Lanczos with products alone, as far as memory of all its vectors goes: for graphs without bottlenecks."""

from __future__ import annotations

import scipy.sparse as sp
import torch
from torch import Tensor

from tadropedge.sparse import hush_beta_warning
from tadropedge.spectrum.aim import EXACT, Aim, Eigenpairs, Floats, largest_diagonal
from tadropedge.spectrum.certified import Flipped, Run, lowest
from tadropedge.spectrum.threads import few_threads

MOST_STEPS = 120
LOOK = 60  # steps after which the first pair must be
NEAR = 1e-4  # so good, as a share of ‖L‖, or the rest takes too long


def short_lanczos(L: sp.csr_matrix, null: Floats, k: int, aim: Aim = EXACT) -> Eigenpairs:
    """Lanczos on c I − L without restarts; gives up early where the low eigenvalues turn out to lie close together.

    Where the degrees are all alike, as in a normalised Laplacian, and a random walk mixes fast, the low eigenvalues are
    well apart from the others, and some tens of products find them: nothing else is as cheap.
    """
    top = 2.0 * largest_diagonal(L)
    hush_beta_warning()
    crow, col, entries = (torch.from_numpy(part) for part in (L.indptr, L.indices, L.data))
    matrix = torch.sparse_csr_tensor(crow, col, entries, L.shape, check_invariants=False)

    def flipped(x: Tensor) -> Tensor:
        return torch.addmv(x, matrix, x, beta=top, alpha=-1)

    with few_threads(L.shape[0]):
        return lowest(L, _Impatient(flipped, top, MOST_STEPS), null, k, aim)


class _Impatient(Flipped):
    """c I − L, which is given up where the first pair has not come near after some steps."""

    def good(self, L: sp.csr_matrix, run: Run, new: Tensor, limit: Floats) -> bool:
        """As of :class:`Flipped`."""
        if len(run.diagonal) == LOOK and run.last[0] * run.beside[-1] > NEAR * self.top:
            raise RuntimeError(f"the lowest eigenvalues are not in sight after {LOOK} steps")
        return super().good(L, run, new, limit)
