"""Mistakes that nobody notices in training, said in one line: cached layers, summed numbers, weights of GCNNorm."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn

from tadropedge.errors import TadropedgeError, show

CLOSE = 1e-4  # relative, for numbers in float32
SUMMED = (
    "ToUndirected(reduce='add') sums what the two directions of an edge have: apply it before AddScore and "
    "AddKeepProbability, or use reduce='mean'"
)


def check_model(model: nn.Module) -> None:
    """Say which layers of a model do not go with dropped edges.

    * A layer that remembers the first graph it sees, such as ``GCNConv(cached=True)``, ignores all later subgraphs:
      this is an error.
    * PyG's ``APPNP(dropout=p)`` drops edges by itself, and drops again at each of its K steps from what the last one
      has left (pyg #10783), so that (1 − p)^K of them reach the end: this is a warning.

    >>> from torch_geometric.nn import GCNConv
    >>> check_model(nn.Sequential(GCNConv(8, 4), GCNConv(4, 2, cached=True)))
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: the layer '1' (GCNConv) has cached=True: it would remember the first subgraph \
that it sees and ignore all later ones; make it with cached=False
    """
    if not isinstance(model, nn.Module):
        raise TadropedgeError(f"model must be a torch.nn.Module, got {show(model)}", argument="model")
    for name, layer in model.named_modules():
        called = f"the layer {name!r} ({type(layer).__name__})"
        if getattr(layer, "cached", False) is True:
            raise TadropedgeError(
                f"{called} has cached=True: it would remember the first subgraph that it sees and ignore all later "
                "ones; make it with cached=False"
            )
        kinds = {kind.__name__ for kind in type(layer).__mro__}
        if "APPNP" in kinds and float(getattr(layer, "dropout", 0.0)) > 0:
            warnings.warn(
                f"{called} has dropout={layer.dropout:g}: it drops edges again at each of its {layer.K} steps, of "
                "those that the last step has left; make it with dropout=0.0 and let DropEdge drop them",
                stacklevel=2,
            )


def warn_normalized(edge_index: Tensor, weight: Tensor | None, num_nodes: int) -> None:
    """Warn where weights ``[A]`` of arcs are those of GCNNorm, which belong to the degrees of the whole graph."""
    if weight is not None and is_normalized(edge_index, weight, num_nodes):
        warnings.warn(
            "edge weights look like those of GCNNorm, 1/√(degree · degree): scores would take them for weights of the "
            "edges, and kept ones still belong to the degrees of the whole graph; drop first and let GCNConv "
            "normalise, or use the option 'unbiased'",
            stacklevel=2,
        )


def is_normalized(edge_index: Tensor, weight: Tensor, num_nodes: int) -> bool:
    """Whether weights ``[A]`` are those of D^-1/2 A D^-1/2, the degrees d being counted or read off self-loops.

    With self-loops of weight 1 at every node, w_ii = 1/d_i, and then Σ_j w_ij √d_j = √d_i whatever the weights were.
    Without them d_i is the number of neighbours. Weights that are all equal are left alone: they do no harm.

    >>> star = torch.tensor([[0, 0, 0, 1, 2, 3, 1, 2], [1, 2, 3, 0, 0, 0, 2, 1]])
    >>> degree = torch.tensor([3.0, 2.0, 2.0, 1.0])
    >>> is_normalized(star, 1 / (degree[star[0]] * degree[star[1]]).sqrt(), 4)
    True
    >>> is_normalized(star, torch.arange(8.0), 4)
    False
    """
    (source, target), weight = edge_index, weight.detach().reshape(-1).to(torch.float64)
    loops = source == target
    proper = weight[~loops]
    if not len(proper) or bool((weight <= 0).any()):
        return False
    if bool((proper - proper[0]).abs().max() <= CLOSE * proper[0].abs()):
        return False
    diagonal = weight.new_zeros(num_nodes).index_add(0, source[loops], weight[loops])
    if bool((diagonal > 0).all()):
        root = diagonal.rsqrt()
        reached = torch.zeros_like(root).index_add(0, target, weight * root[source])
        return bool(torch.allclose(reached, root, rtol=CLOSE, atol=0.0))
    degree = weight.new_zeros(num_nodes).index_add(0, target, torch.ones_like(weight))
    expected = (degree[source] * degree[target]).rsqrt()
    return bool(torch.allclose(weight, expected, rtol=CLOSE, atol=0.0))


def warn_summed(prob: Tensor, largest: object) -> None:
    """Warn where probabilities ``[A]`` exceed the ``largest`` that :class:`AddKeepProbability` has written."""
    if largest is None or not prob.numel():
        return
    most, found = float(torch.as_tensor(largest).max()), float(prob.max())
    if most * (1 + CLOSE) < found <= 1:  # above 1 they are refused, with the same words
        warnings.warn(
            f"data.edge_keep_prob goes up to {found:g}, but AddKeepProbability wrote nothing above {most:g}: {SUMMED}; "
            "if you have changed them yourself, delete data.largest_keep_prob",
            stacklevel=2,
        )
