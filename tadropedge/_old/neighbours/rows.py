"""Whole rows of a CSR matrix, many at once, laid end to end."""

from __future__ import annotations

import torch
from torch import Tensor


def entries_of_rows(crow: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The entries of ``rows [R]`` one row after the other, ``[K]``, and which of the rows each belongs to, ``[K]``.

    ``crow [N + 1]`` says where rows begin. Both answers are int64, the second counts places in ``rows``.

    >>> entries, owner = entries_of_rows(torch.tensor([0, 2, 2, 5]), torch.tensor([2, 0]))
    >>> entries.tolist(), owner.tolist()
    ([2, 3, 4, 0, 1], [0, 0, 0, 1, 1])
    """
    begin = crow.index_select(0, rows).to(torch.int64)
    counts = crow.index_select(0, rows + 1).to(torch.int64) - begin
    owner = torch.repeat_interleave(counts)
    before = counts.cumsum(0) - counts
    entries = torch.arange(len(owner), device=rows.device)
    entries += (begin - before).index_select(0, owner)
    return entries, owner
