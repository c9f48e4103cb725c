"""Twins: nodes with the same neighbours at the same weights. What they do to the spectrum is known, so they are merged.

Leaves of one hub are twins, and so are actors of one film who played in no other: those are neighbours of each other,
too, by edges of one weight w (w = 0 where they are none). t twins span t − 1 eigenvectors with sum zero that vanish
elsewhere, of eigenvalue L_uu − L_uv = L_uu + w. All other eigenvectors are constant on them. So the rest of the
spectrum is that of Sᵀ L S, where S has orthonormal columns: one for each set of twins, with entries 1 / √t, and one for
each other node. A star is two nodes, a complete graph is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order

from tadropedge.spectrum.blocks import Block, Floats, Integers

Hashes = npt.NDArray[np.uint64]

WORTH_ORDER = 20_000  # nodes from which on their order counts: those of a block of vectors no longer fit into a cache
AT_ONCE = 1_000_000  # entries that are looked at together


@dataclass(frozen=True)
class Twins:
    """The merged node of each node ``group [n]`` and, for each merged node, how many it stands for ``copies [m]``.

    ``values [m]`` is the eigenvalue of the differences inside each merged node.
    """

    group: Integers
    copies: Integers
    values: Floats

    @classmethod
    def of(cls, L: sp.csr_matrix) -> Twins:
        """Find the twins of a component.

        Rows are compared by sums of random 64-bit numbers, so two different ones are equal with a chance of 2⁻⁶⁴.

        >>> star = sp.csr_matrix([[3.0, -1, -1, -1], [-1, 1, 0, 0], [-1, 0, 1, 0], [-1, 0, 0, 1]])
        >>> twins = Twins.of(star)
        >>> twins.group.tolist(), twins.copies.tolist(), twins.values.tolist()
        ([0, 1, 1, 1], [1, 3], [3.0, 1.0])
        >>> Twins.of(sp.csr_matrix([[2.0, -1, -1], [-1, 2, -1], [-1, -1, 2]])).values.tolist()
        [3.0]
        """
        n, diagonal = L.shape[0], L.diagonal()
        name = np.random.default_rng(0).integers(0, 2**64, size=n, dtype=np.uint64)
        seen = _hashes(diagonal)  # all that a node sees of its neighbours
        for row, col, data in _edges(L):
            np.add.at(seen, row, name[col] * _hashes(data))
        _, first, alike = np.unique(seen, return_index=True, return_inverse=True)
        leader, values = first[alike], diagonal.copy()
        for row, col, data in _edges(L):
            # Twins that are neighbours see each other, but not themselves: u sees v where v sees u, and by just that
            # their sums differ.
            same = np.flatnonzero((row < col) & (seen[row] - seen[col] == (name[col] - name[row]) * _hashes(data)))
            np.minimum.at(leader, col[same], row[same])  # they are all neighbours: each meets the first of its set
            values[row[same]] = diagonal[row[same]] - data[same]
        lead, group, copies = np.unique(leader, return_inverse=True, return_counts=True)
        return cls(group, copies, values[lead])

    @property
    def merged(self) -> int:
        """How many nodes are saved."""
        return len(self.group) - len(self.copies)

    @property
    def plain(self) -> bool:
        """Whether every node stands for itself, in the order of the nodes."""
        return self.merged == 0 and bool((self.group == np.arange(len(self.group))).all())

    def numbered(self, order: Integers) -> Twins:
        """The same with the merged nodes in this order ``[m]``."""
        number = np.empty_like(order, dtype=np.int64)
        number[order] = np.arange(len(order))
        return Twins(number[self.group], self.copies[order], self.values[order])

    def spread(self) -> sp.csr_matrix:
        """S ``[n, m]``."""
        n, m = len(self.group), len(self.copies)
        return sp.csr_matrix((self.copies[self.group] ** -0.5, self.group, np.arange(n + 1)), shape=(n, m))

    def quotient(self, L: sp.csr_matrix) -> sp.csr_matrix:
        """Sᵀ L S. Rows of twins are alike, so that one of each set stands for all: entries are L_uv √(t_u t_v)."""
        lead = np.unique(self.group, return_index=True)[1]
        rows = L[lead]
        root = np.sqrt(self.copies)
        group = self.group[rows.indices]
        row = np.repeat(np.arange(len(lead)), np.diff(rows.indptr))
        # A row has t equal entries for each set that it sees: their sum is the entry of Sᵀ L S times √(t_u / t_v).
        data = rows.data * (root[row] / root[group])
        small = sp.csr_matrix((data, group, rows.indptr), shape=(len(lead), len(lead)))
        small.sum_duplicates()
        return small

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
        """What the differences of twins, as far as their eigenvalue is at most ``largest``, add to P_ii ``[n]``.

        Between two twins of such a set P_ij is −1 / t, so that (e_i − e_j)ᵀ P (e_i − e_j) = 2.
        """
        share: Floats = np.where((self.copies > 1) & (self.values <= largest), 1 - 1 / self.copies, 0.0)
        return share[self.group]


def _edges(L: sp.csr_matrix) -> Iterator[tuple[Integers, Integers, Floats]]:
    """The row, the column and the value of each entry that is not on the diagonal, some rows at a time."""
    first, n = 0, L.shape[0]
    while first < n:
        last = max(first + 1, int(np.searchsorted(L.indptr, L.indptr[first] + AT_ONCE, side="right")) - 1)
        part = slice(L.indptr[first], L.indptr[last])
        row = np.repeat(np.arange(first, last), np.diff(L.indptr[first : last + 1]))
        off = row != L.indices[part]
        yield row[off], L.indices[part][off], L.data[part][off]
        first = last


def _hashes(x: Floats) -> Hashes:
    """Floats as well mixed odd 64-bit numbers: equal where the numbers are."""
    number = x.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed: Hashes = (number ^ (number >> np.uint64(29))) | np.uint64(1)
    return mixed


@dataclass(frozen=True)
class System:
    """The matrix that solvers see, the Laplacian with its twins merged, and its unit null vector.

    Nodes of large ones come in the order of a breadth-first search: a product then finds most neighbours in a cache.
    """

    L: sp.csr_matrix
    null: Floats
    twins: Twins

    @classmethod
    def of(cls, block: Block, laplacian: str) -> System:
        """The system of a block of one component."""
        whole = cls.unmerged(block, laplacian)
        return cls.merged(whole.L, whole.null)

    @classmethod
    def unmerged(cls, block: Block, laplacian: str) -> System:
        """The same with twins apart, in the order of the nodes."""
        L, n = block.sparse_laplacian(laplacian), block.size
        null = np.sqrt(block.degrees()[0]) if laplacian == "normalized" else np.ones(n)
        return cls(L, null / np.linalg.norm(null), Twins(np.arange(n), np.ones(n, dtype=np.int64), L.diagonal()))

    @classmethod
    def merged(cls, L: sp.csr_matrix, null: Floats) -> System:
        """The system of a Laplacian and its null vector."""
        twins = Twins.of(L)
        if twins.merged:
            L = twins.quotient(L)
        if L.shape[0] >= WORTH_ORDER:
            order = breadth_first_order(L, int(np.argmax(np.diff(L.indptr))), return_predecessors=False)
            L, twins = L[order][:, order], twins.numbered(order)
            L.sort_indices()
        return cls(L, null if twins.plain else twins.spread().T @ null, twins)
