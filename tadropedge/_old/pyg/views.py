"""Every shape of a graph as a plain ``Data`` with an ``edge_index``, which transforms understand.

What a transform writes into such a view has one row for each arc, in the order in which the shape stores them, so it is
copied back as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch_geometric.data import Data, HeteroData

from tadropedge._old.errors import TadropedgeError
from tadropedge._old.pyg.adjacency import place_sides
from tadropedge._old.pyg.hetero import Side, about, joined, relations_of, side_of
from tadropedge._old.pyg.shapes import WEIGHT, Links, is_simple, links_of, per_arc, weight_of


def transformed(
    data: Any, transform: Callable[[Data], Data], *, weight: str | None = WEIGHT, score: str | None = None
) -> Any:
    """A copy of ``data`` with what ``transform`` writes into its arcs: once for a ``Data``, or once for each relation.

    ``weight`` names the attribute with the edge weights. ``score`` is the name of a score that looks at features.
    """
    if is_simple(data) and weight == WEIGHT:
        return transform(data)
    out = copy.copy(data)
    if isinstance(data, HeteroData):
        for relation in relations_of(data, None):
            with about(relation):
                view = _of_relation(side_of(data, relation), weight, score)
                _write(out[relation], view, transform(view))
        return out
    view = _of_data(data, weight)
    _write(out, view, transform(view))
    return out


def _write(into: Any, view: Data, done: Data) -> None:
    """Copy what a transform has added to a view."""
    for key, value in done:
        if key != "num_nodes" and (key not in view or value is not view[key]):
            into[key] = value


def _of_data(data: Data, weight: str | None) -> Data:
    links, store = links_of(data._store), data._store
    given = weight_of(store, links, weight)
    if isinstance(links.num_nodes, tuple):
        arcs = place_sides(links.edge_index, links.num_nodes)
        return _view(store, links, arcs, sum(links.num_nodes), given)
    nodes = data.num_nodes if links.num_nodes is None else links.num_nodes
    return _view(store, links, links.edge_index, nodes, given)


def _of_relation(side: Side, weight: str | None, score: str | None) -> Data:
    sizes, arcs, nodes = side.num_nodes, side.edge_index, side.num_nodes
    if isinstance(sizes, tuple):
        arcs, nodes = place_sides(arcs, sizes), sum(sizes)
    view = _view(side.store, side.links, arcs, nodes, weight_of(side.store, side.links, weight, side.called))
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
