"""Every shape of a graph as a plain ``Data`` with an ``edge_index``, which transforms understand.

What a transform writes into such a view has one row for each arc, in the order in which the shape stores them, so it is
copied back as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from tadropedge.errors import TadropedgeError
from tadropedge.pyg.hetero import Side, joined, relations_of, side_of
from tadropedge.pyg.shapes import WEIGHT, Links, is_simple, links_of, per_arc, weight_of


def transformed(
    data: Any, transform: Callable[[Data], Data], *, weight: str | None = WEIGHT, score: str | None = None
) -> Any:
    """A copy of ``data`` with what ``transform`` writes into its arcs: once for a ``Data``, or once for each relation.

    ``weight`` names the attribute with the edge weights. ``score`` is the name of a score that looks at features.
    """
    if is_simple(data) and weight == WEIGHT:
        return transform(data)
    out = copy.copy(data)
    for into, view in views(data, out, weight, score):
        for key, value in transform(copy.copy(view)):
            if key != "num_nodes" and (key not in view or value is not view[key]):
                into[key] = value
    return out


def views(data: Any, out: Any, weight: str | None, score: str | None) -> Iterator[tuple[Any, Data]]:
    """Each store of ``out``, the copy of ``data``, with the view of what ``data`` holds there."""
    if isinstance(data, HeteroData):
        for relation in relations_of(data, None):
            side = side_of(data, relation)
            yield out[relation], _of_relation(side, weight_of(side.store, side.links, weight, side.called), score)
        return
    links, store = links_of(data._store), data._store
    given = weight_of(store, links, weight)
    if isinstance(links.num_nodes, tuple):
        start = torch.tensor([[0], [links.num_nodes[0]]], device=links.edge_index.device)
        yield out, _view(store, links, links.edge_index + start, sum(links.num_nodes), given)
        return
    nodes = links.num_nodes if "adj_t" in data else data.num_nodes
    yield out, _view(store, links, links.edge_index, nodes, given)


def _of_relation(side: Side, weight: Tensor | None, score: str | None) -> Data:
    sizes, arcs, nodes = side.num_nodes, side.edge_index, side.num_nodes
    if isinstance(sizes, tuple):
        arcs, nodes = arcs + torch.tensor([[0], [sizes[0]]], device=arcs.device), sum(sizes)
    view = _view(side.store, side.links, arcs, nodes, weight)
    if score is not None:
        view.x = joined(side.x or (None, None), score) if isinstance(sizes, tuple) else side.x
    return view


def _view(store: Any, links: Links, arcs: Tensor, nodes: Any, weight: Tensor | None) -> Data:
    """A ``Data`` with these arcs and weights, and all else that the store has."""
    for key, value in store.items():
        per_arc(store, key, value, links.edge_index.shape[1])  # refuses rows that are not those of the arcs
    view = Data(**{key: value for key, value in store.items() if key not in ("edge_index", "adj_t", WEIGHT)})
    view.edge_index, view.num_nodes = arcs, nodes or 1  # a relation without nodes has no arcs either
    if weight is not None:
        view.edge_weight = weight
    return view


def check_rewritable(data: Any, what: str) -> None:
    """Refuse shapes whose arcs cannot be listed anew."""
    if isinstance(data, HeteroData):
        raise TadropedgeError(f"{what} is about one kind of nodes: apply it to data.to_homogeneous()")
    if "adj_t" in data:
        raise TadropedgeError(
            f"{what} lists the arcs anew: apply it to data with an edge_index, and ToSparseTensor(attr='edge_shift') "
            "afterwards"
        )
