"""Mistakes that nobody notices in training, said in one line: order of transforms, cached layers, summed numbers."""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from tadropedge._old.checks import check_kind, check_length, check_probability
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.pyg.once import Once

LARGEST = "largest_keep_prob"  # not edge_...: in a batch it has one number per graph
WEIGHTS = "data.edge_weight"
CLOSE = 1e-4  # relative, for numbers in float32
FRAMES = 40  # how far up the callers of a module are looked at
PASSES = {"forward", "encode", "training_step"}  # others may run for long, and a look would keep their tensors alive
SUMMED = (
    "ToUndirected(reduce='add') sums what the two directions of an edge have: apply ToUndirected before AddScore and "
    "AddKeepProbability, or use reduce='mean'"
)
CACHED = (
    "has cached=True: it would remember the first subgraph that it sees and ignore all later ones; make it with "
    "cached=False"
)


def check_model(model: nn.Module) -> None:
    """Refuse a model with a layer that remembers the first subgraph it sees, such as ``GCNConv(cached=True)``.

    A :class:`TADropEdge` inside of the model looks for such layers by itself, when it is first called in training. This
    function is for models whose edges are dropped outside of them, in the training loop.

    >>> from torch_geometric.nn import GCNConv
    >>> check_model(nn.Sequential(GCNConv(8, 4), GCNConv(4, 2, cached=True)))
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: the layer '1' (GCNConv) of the model has cached=True: it would remember the \
first subgraph that it sees and ignore all later ones; make it with cached=False
    """
    for layer in _cached(check_kind("model", model, nn.Module)):
        raise TadropedgeError(f"the layer {layer} of the model {CACHED}")


def tell_cached(drop: nn.Module, once: Once) -> None:
    """Warn, at the first call, where a model that holds ``drop`` and has called it has layers with ``cached=True``.

    A module does not know its parents, but they are among its callers: their ``forward``, ``encode`` or
    ``training_step`` is. A model whose ``drop`` is called from elsewhere is not found, nor one that is compiled:
    :func:`check_model` is for those.
    """
    if not once.first("cached"):
        return
    frame: FrameType | None = sys._getframe(1)
    for _ in range(FRAMES):
        if frame is None:
            return
        names = frame.f_code.co_varnames[:1] if frame.f_code.co_name in PASSES else ()  # self, whatever it is called
        model = frame.f_locals.get(*names) if names else None
        if isinstance(model, nn.Module) and model is not drop and any(part is drop for part in model.modules()):
            for layer in _cached(model):
                told = f"the layer {layer} beside TADropEdge in {type(model).__name__} {CACHED}"
                warnings.warn(told, stacklevel=4)
                return
        frame = frame.f_back


def tell_normalised(
    edge_index: Tensor, weight: Tensor | None, num_nodes: int, once: Once, *, kept: bool = False, called: str = WEIGHTS
) -> None:
    """Warn where weights ``[A]`` of arcs are GCNNorm's: 1/√(d_u d_v), which would enter the scores.

    ``kept``: they are about to be dropped instead, with the degrees of the whole graph. ``called`` is where they are.
    """
    if weight is None or not is_normalised(edge_index, weight, num_nodes):
        return
    what = (
        "the kept ones still belong to the degrees of the whole graph; drop first and let GCNConv normalise, or use "
        "AddShift with unbiased=True"
        if kept
        else "scores would take them for weights of the edges; leave GCNNorm out and let GCNConv normalise what is "
        "kept, or apply GCNNorm to what TADropEdge returns"
    )
    once.warn("weights", f"{called} looks like that of GCNNorm, 1/√(degree · degree): {what}")


def is_normalised(edge_index: Tensor, weight: Tensor, num_nodes: int) -> bool:
    """Whether weights ``[A]`` are those of D^-1/2 A D^-1/2, the degrees d being counted or read off self-loops.

    With self-loops of weight 1 at every node, w_ii = 1/d_i, and then Σ_j w_ij √d_j = √d_i whatever the weights were.
    Without them d_i is the number of neighbours. Weights that are all equal are left alone: they do no harm.

    >>> arcs = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> is_normalised(arcs, torch.full((4,), 0.5).sqrt(), 3), is_normalised(arcs, torch.arange(4.0), 3)
    (False, False)
    >>> star = torch.tensor([[0, 0, 0, 1, 2, 3, 1, 2], [1, 2, 3, 0, 0, 0, 2, 1]])
    >>> degree = torch.tensor([3.0, 2.0, 2.0, 1.0])
    >>> is_normalised(star, 1 / (degree[star[0]] * degree[star[1]]).sqrt(), 4)
    True
    """
    if weight.numel() != edge_index.shape[1] or not weight.numel():
        return False
    source, target = edge_index
    weight = weight.detach().reshape(-1).to(torch.float64)
    loops = source == target
    proper = weight[~loops]
    if not len(proper) or bool((proper - proper[0]).abs().max() <= CLOSE * proper[0].abs()):
        return False
    if bool((weight <= 0).any()):
        return False
    diagonal = weight.new_zeros(num_nodes).index_add(0, source[loops], weight[loops])
    if bool((diagonal > 0).all()):
        root = diagonal.rsqrt()
        reached = torch.zeros_like(root).index_add(0, target, weight * root[source])
        return bool(torch.allclose(reached, root, rtol=CLOSE, atol=0.0))
    degree = weight.new_zeros(num_nodes).index_add(0, target, torch.ones_like(weight))
    expected = (degree[source] * degree[target]).rsqrt()
    return bool(torch.allclose(weight, expected, rtol=CLOSE, atol=0.0))


def tell_summed(data: Any, once: Once) -> None:
    """Warn where ``edge_keep_prob`` of a ``Data`` or a relation exceeds what :class:`AddKeepProbability` wrote."""
    prob, largest = getattr(data, "edge_keep_prob", None), getattr(data, LARGEST, None)
    if not isinstance(prob, Tensor) or largest is None or not prob.numel():
        return
    most = float(torch.as_tensor(largest).max())
    if most * (1 + CLOSE) < float(prob.max()) <= 1.0:
        once.warn(
            "summed",
            f"data.edge_keep_prob goes up to {float(prob.max()):g}, but AddKeepProbability wrote nothing above "
            f"{most:g}. {SUMMED}. If you have changed the probabilities yourself, delete data.{LARGEST}",
        )


def check_given(edge_keep_prob: Tensor) -> Tensor:
    """Return probabilities that were given; of those above 1 say how they may have come about.

    >>> check_given(torch.tensor([0.5, 1.5]))
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: edge_keep_prob must lie in [0, 1], got 1.5; ToUndirected(reduce='add') sums \
what the two directions of an edge have: apply ToUndirected before AddScore and AddKeepProbability, or use reduce='mean'
    """
    try:
        return check_probability("edge_keep_prob", edge_keep_prob)
    except TadropedgeError as error:
        if edge_keep_prob.is_floating_point() and bool((edge_keep_prob > 1).any()):
            raise TadropedgeError(f"{error}; {SUMMED}") from None
        raise


def check_arc_values(name: str, values: object, arcs: int) -> Tensor:
    """Return values ``[A]`` that belong to the arcs; where arcs came later, say which transforms bring them."""
    try:
        return check_length(name, values, arcs, "arc of edge_index")
    except TadropedgeError as error:
        if isinstance(values, Tensor) and values.dim() == 1 and len(values) < arcs:
            raise TadropedgeError(f"{error}; {lengthened(name)}") from None
        raise


def lengthened(name: str) -> str:
    """Why there are more arcs than values."""
    return (
        f"AddSelfLoops, ToUndirected and GCNNorm add arcs that have no {name}: apply the first two before scoring, and "
        "GCNNorm to what TADropEdge returns"
    )


def _cached(model: nn.Module) -> list[str]:
    return [
        f"{name!r} ({type(layer).__name__})"
        for name, layer in model.named_modules()
        if getattr(layer, "cached", False) is True
    ]
