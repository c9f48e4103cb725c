"""Where a ``Data``, or a relation of a ``HeteroData``, keeps its arcs and weights, and how all of it is thinned.

A *store* is what PyTorch Geometric calls the dictionary of a ``Data`` or of a relation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.data import BaseData
from torch_geometric.data.hypergraph_data import HyperGraphData
from torch_geometric.utils import select

from tadropedge._old.checks import check_tensor
from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.pyg.adjacency import entries, is_adjacency, kept_arcs, known_size, plain_arcs, remembered, thinned
from tadropedge._old.pyg.taking import places, take

WEIGHT = "edge_weight"
PER_ARC = ("edge_attr", WEIGHT, "edge_type", "edge_score", "edge_resistance", "edge_keep_prob", "edge_shift")
EXPECTED = "expected a homogeneous torch_geometric Data with an edge_index or adj_t, or a HeteroData with relations"
AROUND = {  # what is no graph of pairs, and what to do
    "HyperGraphData": "has edges of many nodes: list their pairs of nodes in a Data first",
    "TemporalData": "is a stream of events: give Data(edge_index=torch.stack((data.src, data.dst)), edge_time=data.t)",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Links:
    """The arcs ``edge_index [2, A]`` of a store, which may be those of its ``adj_t``.

    ``values`` are those of the matrix, and ``place`` has the arc of each of its entries where the store has both.
    """

    edge_index: Tensor
    num_nodes: int | tuple[int, int] | None = None
    values: Tensor | None = None
    place: Tensor | None = None


def check_shape(data: object) -> BaseData:
    """Return ``data`` if it is a ``Data`` or ``HeteroData`` with arcs; else say in one line what to do.

    >>> check_shape(Data(x=torch.ones(3, 1)))
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: expected a homogeneous torch_geometric Data with an edge_index or adj_t, or a \
HeteroData with relations, got Data Data(x=[3, 1])
    """
    kind = "HyperGraphData" if isinstance(data, HyperGraphData) else type(data).__name__
    if isinstance(data, BaseData) and kind in AROUND:
        raise TadropedgeError(f"a {kind} {AROUND[kind]}")
    if isinstance(data, HeteroData) and data.edge_types:
        return data
    if not isinstance(data, Data):
        raise TadropedgeError(f"{EXPECTED}, got {show(data)}")
    if not has_arcs(data._store):
        dense = isinstance(getattr(data, "adj", None), Tensor)
        way = "; torch_geometric.utils.dense_to_sparse(data.adj) makes one of the dense adj" if dense else ""
        raise TadropedgeError(f"{EXPECTED}, got {show(data)}{way}")
    if (
        type(data).__inc__ is not Data.__inc__
        and torch.as_tensor(data.__inc__("edge_index", data.edge_index)).numel() > 1
    ):
        raise TadropedgeError(
            f"{type(data).__name__}.__inc__ says that edge_index leads from one set of nodes to another: give a "
            "HeteroData, or drop(data.edge_index, num_nodes=(S, T))"
        )
    return data


def has_arcs(store: Any) -> bool:
    """Whether a store has an ``edge_index`` or an ``adj_t``."""
    return any(name in store and store[name] is not None for name in ("edge_index", "adj_t"))


def is_simple(data: BaseData) -> bool:
    """Whether ``data`` has one kind of nodes and a plain ``edge_index`` alone."""
    return not isinstance(data, HeteroData) and "adj_t" not in data and not isinstance(data.edge_index, EdgeIndex)


def links_of(store: Any, called: str = "data") -> Links:
    """The arcs of a store, wherever they are."""
    arcs: Any = store.get("edge_index", None)
    matrix = store.get("adj_t", None)
    if matrix is None:
        return Links(edge_index=plain_arcs(arcs), num_nodes=known_size(arcs, None))
    if not is_adjacency(matrix):
        raise TadropedgeError(
            f"{called}.adj_t must be a sparse matrix, got {show(matrix)}; torch_geometric.transforms.ToSparseTensor "
            "makes one"
        )
    found = entries(matrix, f"{called}.adj_t")
    if arcs is None:
        return Links(edge_index=found.edge_index, num_nodes=found.num_nodes, values=found.values)
    place = remembered(_places, plain_arcs(arcs), found.edge_index)
    if not isinstance(place, Tensor):
        raise TadropedgeError(f"{called} has an edge_index and an adj_t, but not of the same arcs: delete one of them")
    return Links(edge_index=plain_arcs(arcs), num_nodes=found.num_nodes, values=found.values, place=place)


def _places(arcs: Tensor, others: Tensor) -> Tensor | str:
    """The place in ``arcs [2, A]`` of each of ``others [2, B]``; words where they are not the same arcs."""
    if arcs.numel() == 0 or others.numel() == 0:
        return torch.empty(0, dtype=torch.int64, device=arcs.device) if arcs.numel() == others.numel() else "differ"
    width = torch.maximum(arcs.max(), others.max()) + 1
    keys, wanted = arcs[0] * width + arcs[1], others[0] * width + others[1]
    if not torch.equal(keys.unique(), wanted.unique()):
        return "differ"
    ordered, place = keys.sort(stable=True)
    return place[torch.searchsorted(ordered, wanted)]


def weight_of(store: Any, links: Links, name: str | None, called: str = "data") -> Tensor | None:
    """The edge weights ``[A]`` or ``[A, 1]`` in the attribute ``name``, or in the values of ``adj_t``; None without."""
    if name is None:
        return None
    if name in store and store[name] is not None:
        weight = check_tensor(name, store[name])
        arcs = links.edge_index.shape[1]
        if name != WEIGHT and (weight.shape[:1] != (arcs,) or weight.numel() != arcs):
            raise TadropedgeError(
                f"weight={name!r}: {called}.{name} has shape {list(weight.shape)}, expected one weight for each of the "
                f"{arcs} arcs"
            )
        return weight
    if name != WEIGHT:
        names = ", ".join(sorted(store.keys()))
        raise TadropedgeError(f"weight={name!r}, but {called} has no attribute of this name, only {names}")
    values = links.values if links.place is None else None  # beside an edge_index, attributes are those of its arcs
    return values if values is not None and values.dim() == 1 else None


def thin_store(
    store: Any,
    links: Links,
    mask: Tensor,
    *,
    paired: bool,
    prob: Tensor | None = None,
    weight: str | None = WEIGHT,
) -> dict[str, Any]:
    """What changes in a store when only the arcs in ``mask [A]`` stay: every attribute of arcs, thinned.

    With the keep probabilities ``prob [A]``, weights are divided by them: those called ``weight``, ``edge_shift`` and
    the values of ``adj_t``. ``paired`` says that both arcs of an edge have one fate.
    """
    changed: dict[str, Any] = {}
    arcs, parent, chosen = links.edge_index.shape[1], store._parent(), places(mask)
    for key, value in store.items():
        if key == "edge_index" and value is not None:
            changed[key] = kept_arcs(value, chosen, paired=paired)
        elif key == "adj_t" and value is not None:
            entry = mask if links.place is None else mask[links.place]
            likely = prob if prob is None or links.place is None else prob[links.place]
            values = links.values
            if values is None and likely is not None:
                values = torch.ones(entry.shape[0], device=mask.device)
            changed[key] = thinned(value, entry, None if values is None else over(values, likely, places(entry)))
        elif per_arc(store, key, value, arcs):
            changed[key] = select(value, chosen, dim=parent.__cat_dim__(key, value, store))
    if prob is not None:
        name = weight or WEIGHT
        if "edge_index" in store or name in store:
            given = store[name] if name in store else torch.ones(arcs, device=mask.device)
            changed[name] = over(given, prob, chosen)
        if "edge_shift" in store:
            changed["edge_shift"] = over(store["edge_shift"], prob, chosen)
    return changed


def per_arc(store: Any, key: str, value: Any, arcs: int) -> bool:
    """Whether an attribute has one row for each arc; labels of a link predictor are no attributes of arcs."""
    if value is None or _is_label(store, key):
        return False
    if "adj_t" not in store:
        return bool(store.is_edge_attr(key))
    if not isinstance(value, Tensor | np.ndarray | list | tuple) or (hasattr(value, "ndim") and value.ndim == 0):
        return False  # PyG does not count the entries of every matrix
    axis = store._parent().__cat_dim__(key, value, store)
    if not isinstance(axis, int):  # another matrix
        return False
    many = len(value) if isinstance(value, list | tuple) else value.shape[axis]
    if many != arcs and key in PER_ARC:
        raise TadropedgeError(
            f"{key} has {many} rows, but adj_t has {arcs} entries: ToSparseTensor adds up repeated arcs, so apply "
            "RemoveDuplicatedEdges before it"
        )
    nodes = getattr(store, "num_nodes", None)
    return many == arcs and (many != nodes or "edge" in key)


def _is_label(store: Any, key: str) -> bool:
    """Whether an attribute is a list of pairs of nodes beside the arcs, or belongs to one.

    ``RandomLinkSplit`` writes ``edge_label`` and ``edge_label_index``, or ``pos_edge_label`` and so on; there may be as
    many pairs as arcs.
    """
    name = key.removesuffix("_index")
    pairs = store.get(f"{name}_index", None) if name != "edge" else None
    return name == "edge_label" or (isinstance(pairs, Tensor) and pairs.dim() == 2 and pairs.shape[0] == 2)


def over(values: Tensor, prob: Tensor | None, chosen: Tensor) -> Tensor:
    """The kept values, divided by their keep probability where there is one: ``[A', ...]``."""
    kept = take(values, chosen)
    if prob is None:
        return kept
    kept = kept if values.is_floating_point() else kept.to(torch.get_default_dtype())
    return kept / take(prob, chosen).to(kept.dtype).view(-1, *(1 for _ in kept.shape[1:]))
