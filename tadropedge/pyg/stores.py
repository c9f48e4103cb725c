"""Where a ``Data``, or a relation of a ``HeteroData``, keeps its arcs and what they have, and how all of it is thinned.

A *store* is what PyG calls the dictionary of a ``Data`` or of a relation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.data.data import BaseData
from torch_geometric.data.hypergraph_data import HyperGraphData
from torch_geometric.data.storage import N_KEYS
from torch_geometric.utils import select

from tadropedge._support.checks import check_whole
from tadropedge.errors import TadropedgeError, show
from tadropedge.pyg.shapes import Link, check_arcs, check_pairs, is_matrix, link_of, places, plain, take, taken

REVERSE = "rev_"  # what PyG's ToUndirected calls the other direction of a relation
EXPECTED = "expected a Data with an edge_index or a sparse adj_t, or a HeteroData with relations"


def links_of(
    data: BaseData, *, weight: str | None, prob: str | None, column: str | None, exclude: str | Tensor | None
) -> Iterator[tuple[Any, Link]]:
    """The store and the :class:`Link` of a ``Data``, or of each relation of a ``HeteroData`` that has arcs.

    The other arguments name attributes: weights, keep probabilities, the column of scores, supervised pairs.
    """
    stores: list[tuple[Any, Any, bool, int, Any]] = []
    if isinstance(data, HeteroData):
        stores = list(_relations(data))
    elif hasattr(data, "_store") and not isinstance(data, HyperGraphData):  # whose edges have more than two nodes
        stores = [(data._store, (data._store,), False, 0, None)]
    if not stores:
        raise TadropedgeError(f"{EXPECTED}, got {show(data)}")
    if isinstance(exclude, str) and not any(exclude in store for store, *_ in stores):
        raise TadropedgeError(f"data has no attribute {exclude!r} with pairs to exclude", argument=exclude)
    for store, ends, turned, place, other in stores:
        sizes, n_id, x = ([of(end) for end in ends] for of in (_count, _names, lambda end: end.get("x")))
        two_kinds = len(ends) == 2
        with about(store):
            link = link_of(_adjacency_of(store), num_nodes=tuple(sizes) if two_kinds else sizes[0])
            named = None if is_matrix(link.adjacency) else _attribute(store, weight, link.num_arcs, required=False)
            link = replace(
                link,
                weight=link.weight if named is None else named,
                node_id=tuple(n_id) if two_kinds else n_id[0],
                x=tuple(x) if two_kinds else x[0],
                prob=_attribute(store, prob, link.num_arcs),
                column=_attribute(store, column, link.num_arcs),
                exclude=_supervision(store, other, turned, exclude),
                turned=turned,
                place=place,
            )
        yield store, link


def _relations(data: HeteroData) -> Iterator[tuple[Any, Any, bool, int, Any]]:
    """The store of each relation with arcs, those of its kinds of nodes, whether it is turned, its place, its reverse.

    ``(b, rev_r, a)`` is the relation ``(a, r, b)`` seen from the other side: its arcs have the coins of r.
    """
    places: dict[tuple[str, str, str], int] = {}
    for relation in data.edge_types:
        forward, turned = forward_name(relation)
        place = places.setdefault(forward, len(places))
        store = data[relation]
        if "edge_index" in store or "adj_t" in store:
            kinds = dict.fromkeys((forward[0], forward[2]))
            ends = tuple(data._node_store_dict.get(kind, {}) for kind in kinds)
            other = forward if turned else (forward[2], REVERSE + forward[1], forward[0])
            yield store, ends, turned, place, data[other] if other in data.edge_types else None


def forward_name(relation: tuple[str, str, str]) -> tuple[tuple[str, str, str], bool]:
    """The relation that this one is the other direction of, and whether it is one.

    >>> forward_name(("paper", "rev_writes", "author"))
    (('author', 'writes', 'paper'), True)
    """
    source, name, target = relation
    if name.startswith(REVERSE):
        return (target, name.removeprefix(REVERSE), source), True
    return relation, False


def _adjacency_of(store: Any) -> Any:
    arcs, matrix = store.get("edge_index"), store.get("adj_t")
    if arcs is not None and matrix is not None:
        raise TadropedgeError("data has an edge_index and an adj_t: delete one of them")
    if arcs is None and not is_matrix(matrix):
        raise TadropedgeError(f"{EXPECTED}, got data with {', '.join(store.keys()) or 'nothing'}")
    return matrix if arcs is None else arcs


def _attribute(store: Any, name: str | None, arcs: int, required: bool = True) -> Tensor | None:
    """The values of an attribute of the arcs; the usual name of weights may be missing."""
    if name is None or (name not in store and not required and name == "edge_weight"):
        return None
    if store.get(name) is None:
        known = ", ".join(store.keys())
        raise TadropedgeError(f"there is no attribute {name!r}, only {known}", argument=name)
    return check_arcs(name, store[name], arcs)


def _supervision(store: Any, other: Any, turned: bool, exclude: str | Tensor | None) -> Tensor | None:
    """The supervised pairs of a relation ``[2, S]``, its own and those of its reverse, as the forward one has them."""
    if not isinstance(exclude, str):
        return exclude
    named = [(each[exclude], back) for each, back in ((store, turned), (other, not turned)) if exclude in (each or ())]
    found = [check_pairs("exclude", pairs).flip(0) if back else check_pairs("exclude", pairs) for pairs, back in named]
    return torch.cat(found, dim=1) if found else None


def _count(store: Any) -> int | None:
    """The number of nodes of a store, where PyG knows it without guessing."""
    known = any(key in N_KEYS or "node" in key for key in store)  # else it guesses by the arcs, and warns
    return int(store.num_nodes) if known and store.num_nodes is not None else None


def _names(store: Any) -> Tensor | None:
    found = store.get("n_id")
    return None if found is None else check_whole("n_id", found)


def thin_store(store: Any, link: Link, mask: Tensor | None, weight: Tensor | None, name: str) -> None:
    """Keep the arcs in ``mask [A]`` of a store and of all that its arcs have; write weights ``[A]`` by their ``name``.

    Labels of a link predictor, and other lists of pairs, are not of the arcs, even where they are as many.
    """
    arcs, parent = link.num_arcs, store._parent()
    per_arc = [] if mask is None else [key for key, value in store.items() if _is_per_arc(store, key, value, arcs)]
    chosen = None if mask is None else places(mask)
    for key in per_arc:
        store[key] = select(store[key], chosen, dim=parent.__cat_dim__(key, store[key], store))
    if mask is not None and store.get("num_sampled_edges") is not None:  # by hop, what trim_to_layer goes by
        hops = mask.split(list(store["num_sampled_edges"]))
        store["num_sampled_edges"] = [int(hop.sum()) for hop in hops]
    key = "adj_t" if is_matrix(link.adjacency) else "edge_index"
    store[key] = taken(link.adjacency, mask, weight)
    if weight is not None and key == "edge_index":
        store[name] = take(weight, chosen)
    if mask is not None and key == "edge_index" and store._key is None and _count(store) is None:
        store["num_nodes"] = int(plain(link.adjacency).max()) + 1  # PyG would count the nodes of the kept arcs


def _is_per_arc(store: Any, key: str, value: Any, arcs: int) -> bool:
    """Whether an attribute has one row for each arc. PyG's own answer counts by the first name with an edge in it."""
    if "label" in key or key.startswith("num_") or key.endswith(("ptr", "adj", "adj_t")) or key == "input_id":
        return False
    if _is_list_of_pairs(key, value) or _is_list_of_pairs(f"{key}_index", store.get(f"{key}_index")):
        return False
    if isinstance(value, list | tuple):
        rows = len(value)
    elif isinstance(value, Tensor | np.ndarray) and value.ndim:
        axis = store._parent().__cat_dim__(key, value, store)
        rows = value.shape[axis] if isinstance(axis, int) else -1
    else:
        rows = getattr(value, "num_rows", -1)
    if rows != arcs:
        return False
    graphs = len(store["ptr"]) - 1 if "ptr" in store else 1  # each has one row of what is said of whole graphs
    return "edge" in key or key == "e_id" or store._key is not None or rows not in (_count(store), graphs)


def _is_list_of_pairs(key: str, value: object) -> bool:
    """Whether an attribute lists pairs of nodes of its own, as those of links do: each has one row in ``key[:-6]``."""
    return key.endswith("_index") and getattr(value, "ndim", 0) == 2 and len(value) == 2  # type: ignore[arg-type]


@contextmanager
def about(store: Any) -> Iterator[None]:
    """Name the relation of a ``HeteroData`` in whatever error is raised about it."""
    try:
        yield
    except TadropedgeError as error:
        if store._key is None:
            raise
        relation = ", ".join(map(repr, store._key))
        raise TadropedgeError(f"data[{relation}]: {error}", argument=error.argument) from error
