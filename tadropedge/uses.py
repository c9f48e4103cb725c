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
    """Edges are dropped in training; models are evaluated on the whole graph.

    * Source: Rong, Huang, Xu and Huang, *DropEdge* (ICLR 2020).
    * Cost: one coin per edge and step.
    """
    return (draw.mask(), draw.factor) if training else (None, None)


def weighted(draw: Draw, training: bool) -> Taken:
    """Edges weigh their keep probability, in training and in evaluation; nothing is random.

    * Source: none of its own: what ``expected`` evaluates on. GAT multiplies by the weights within its softmax.
    * Cost: none per step.
    * Good for: graphs with many wrong edges, by a score of likeness.
    """
    return None, draw.prob


def pruned(draw: Draw, training: bool) -> Taken:
    """The most probable edges stay, as many as are expected, always the same; ties go by pair.

    * Source: thresholding; the control of every claim for a random subgraph.
    * Cost: a sort, once.
    """
    return first_of(1 - draw.prob, draw.prob), None


def expected(draw: Draw, training: bool) -> Taken:
    """Edges are dropped in training; in evaluation they weigh their keep probability.

    * Source: the weight scaling rule of dropout (Srivastava et al., JMLR 2014).
    * Cost: that of ``dropped``.
    """
    return (draw.mask(), None) if training else (None, draw.prob)
