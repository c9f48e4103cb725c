"""Rows that a mask keeps, taken out of arcs and their attributes by one search."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tadropedge._old.sampling import vectorised


def places(mask: Tensor) -> Tensor:
    """Where a mask ``[A]`` is True, int64 ``[A']``: arcs and their attributes are then all taken by one search.

    In a compiled graph or a ``torch.func`` transform it is the mask itself, which selects the same.

    >>> places(torch.tensor([True, False, True])).tolist()
    [0, 2]
    """
    if torch.compiler.is_compiling() or vectorised():
        return mask
    if mask.is_cuda:
        return mask.nonzero().view(-1)
    return torch.from_numpy(np.flatnonzero(mask.numpy()))  # a seventh of torch's time


def take_arcs(edge_index: Tensor, chosen: Tensor) -> Tensor:
    """The arcs ``[2, A']`` at ``chosen``, which are places or a mask: ``edge_index[:, chosen]``."""
    if chosen.dtype == torch.bool or chosen.is_cuda or type(edge_index) is not Tensor:
        return edge_index[:, chosen]
    # A third of torch's time, which goes along both rows at once.
    return torch.from_numpy(edge_index.numpy().take(chosen.numpy(), axis=1))


def take(values: Tensor, chosen: Tensor) -> Tensor:
    """The rows ``[A', ...]`` of an attribute of arcs at ``chosen``: ``values[chosen]``."""
    return values[chosen] if chosen.dtype == torch.bool or chosen.is_cuda else values.index_select(0, chosen)
