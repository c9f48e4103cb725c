"""Twin leaves: leaves of one hub with edges of one weight. What they do to the spectrum is known, so they are merged.

t twins at edges of weight w span t − 1 eigenvectors with sum zero that vanish elsewhere, of eigenvalue w
(combinatorial) or 1 (normalised). All other eigenvectors are constant on them. So the rest of the spectrum is that of
Sᵀ L S, where S has orthonormal columns: one for each set of twins, with entries 1 / √t, and one for each other node.
A star is two nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from tadropedge.blocks import Block, Floats, Integers


@dataclass(frozen=True)
class Twins:
    """The merged node of each node ``place [n]`` and, for each merged node, how many it stands for ``copies [m]``.

    ``values [m]`` is the eigenvalue of the differences inside each merged node.
    """

    place: Integers
    copies: Integers
    values: Floats

    @classmethod
    def of(cls, L: sp.csr_matrix) -> Twins:
        """Find the twin leaves of a component.

        >>> star = sp.csr_matrix([[3.0, -1, -1, -1], [-1, 1, 0, 0], [-1, 0, 1, 0], [-1, 0, 0, 1]])
        >>> twins = Twins.of(star)
        >>> twins.place.tolist(), twins.copies.tolist(), twins.values.tolist()
        ([0, 1, 1, 1], [1, 3], [3.0, 1.0])
        """
        n, diagonal = L.shape[0], L.diagonal()
        leaves = np.flatnonzero(np.diff(L.indptr) == 2)  # the diagonal and one edge
        first, second = L.indptr[leaves], L.indptr[leaves] + 1
        entry = np.where(L.indices[first] == leaves, second, first)
        keys = (L.data[entry], diagonal[leaves], L.indices[entry])
        order = np.lexsort(keys)
        new = np.ones(len(leaves), dtype=bool)
        new[1:] = np.logical_or.reduce([key[order][1:] != key[order][:-1] for key in keys])
        leader = np.arange(n)
        leader[leaves[order]] = leaves[order][new][np.cumsum(new) - 1]
        lead, place, copies = np.unique(leader, return_inverse=True, return_counts=True)
        return cls(place, copies, diagonal[lead])

    @property
    def merged(self) -> int:
        """How many nodes are saved."""
        return len(self.place) - len(self.copies)

    def spread(self) -> sp.csr_matrix:
        """S ``[n, m]``."""
        n, m = len(self.place), len(self.copies)
        return sp.csr_matrix((self.copies[self.place] ** -0.5, self.place, np.arange(n + 1)), shape=(n, m))

    def between(self, values: Floats) -> Floats:
        """All eigenvalues of L up to the last of the lowest ``values`` of Sᵀ L S, in order; all if those are all."""
        known = self._differences
        if len(values) < len(self.copies):
            known = known[: np.searchsorted(known, values[-1], side="right")]
        return np.sort(np.concatenate((values, known)))

    @cached_property
    def _differences(self) -> Floats:
        """The eigenvalues of all differences of twins, in order."""
        return np.sort(np.repeat(self.values, self.copies - 1))

    def used(self, largest: float) -> Floats:
        """What the differences of twins, as far as their eigenvalue is at most ``largest``, add to P_ii ``[n]``."""
        share: Floats = np.where((self.copies > 1) & (self.values <= largest), 1 - 1 / self.copies, 0.0)
        return share[self.place]


@dataclass(frozen=True)
class System:
    """The matrix that solvers see, the Laplacian with its twins merged, and its unit null vector."""

    L: sp.csr_matrix
    null: Floats
    twins: Twins

    @classmethod
    def of(cls, block: Block, laplacian: str) -> System:
        """The system of a block of one component."""
        L = block.sparse_laplacian(laplacian)
        null = np.sqrt(block.degrees()[0]) if laplacian == "normalized" else np.ones(block.size)
        null /= np.linalg.norm(null)
        twins = Twins.of(L)
        if twins.merged:
            spread = twins.spread()
            L, null = (spread.T @ L @ spread).tocsr(), spread.T @ null
            L.sort_indices()
        return cls(L, null, twins)
