"""The CPU's kernels of arcs: from a mask of pairs to the arcs that are left."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from tadropedge.operators.kernels import reference
from tadropedge.operators.kernels.compiling import as_array, compiled, empty
from tadropedge.operators.kernels.threads import run

PIECE = 2**18  # arcs that one thread takes together


@compiled
def _spread(begin, end, mask, place, out):  # type: ignore[no-untyped-def]
    """One arc after the other."""
    mine, target = place[begin:end], out[begin:end]
    for arc in range(len(mine)):
        target[arc] = mask[np.uint64(mine[arc])]


def spread(mask: Tensor, place: Tensor) -> Tensor:
    """The mask of pairs as that of arcs."""
    out, padded = torch.empty(place.shape[0], dtype=torch.bool), torch.cat((mask, mask.new_ones(1)))
    run(_spread, place.shape[0], place.shape[0], padded.numpy(), place.numpy(), out.numpy())
    return out


@compiled
def _kept_arcs(begin, end, arcs, mask, starts, out):  # type: ignore[no-untyped-def]
    """The arcs of each piece, without a guess at each: a dropped one is written, too, and the next takes its place."""
    for piece in range(begin, end):
        place, last = starts[piece], starts[piece + 1]
        for arc in range(piece * PIECE, min(len(mask), (piece + 1) * PIECE)):
            if place == last:
                break
            out[0, place], out[1, place] = arcs[0, arc], arcs[1, arc]
            place += mask[arc]


def kept_arcs(arcs: Tensor, mask: Tensor) -> Tensor:
    """The arcs that are in the mask."""
    if arcs.dtype != torch.int64:
        return reference.kept_arcs(arcs, mask)
    kept = as_array(mask)
    counts = [np.count_nonzero(kept[first : first + PIECE]) for first in range(0, len(kept), PIECE)]
    starts = np.array([0, *accumulate(counts)])
    out = empty((2, int(starts[-1])), arcs.dtype)
    run(_kept_arcs, len(counts), 4 * len(kept), as_array(arcs), kept, starts, out.numpy())
    return out
