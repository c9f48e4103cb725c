"""Uses: what is done with keep probabilities in training, and in evaluation.

A use is a function ``use(draw, training) -> (kept, factor)``: which pairs are kept, bool ``[M]`` or ``None`` for all,
and what their weights are multiplied by, ``[M]`` or ``None`` for one. Adding it to :data:`tadropedge.USES` makes it
usable everywhere, as ``METHOD:NAME``.
"""

from __future__ import annotations

from torch import Tensor

from tadropedge.options import first_of
from tadropedge.sampling.plan import Draw

Taken = tuple[Tensor | None, Tensor | None]


def dropped(draw: Draw, training: bool) -> Taken:
    """Edges are dropped in training; models are evaluated on the whole graph."""
    return (draw.mask(), draw.factor) if training else (None, None)


def weighted(draw: Draw, training: bool) -> Taken:
    """Edges weigh their keep probability, in training and in evaluation; nothing is random."""
    return None, draw.prob


def pruned(draw: Draw, training: bool) -> Taken:
    """The most probable edges stay, as many as are expected, always the same; ties go by pair."""
    return first_of(1 - draw.prob, draw.prob), None


def expected(draw: Draw, training: bool) -> Taken:
    """Edges are dropped in training; in evaluation they weigh their keep probability."""
    return (draw.mask(), None) if training else (None, draw.prob)
