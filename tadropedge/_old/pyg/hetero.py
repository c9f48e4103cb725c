"""Graphs of many relations: which are thinned, what their nodes are, and by which words their coins go.

Every relation has its own coins. A relation between two kinds of nodes is a graph of both: sources 0 … S − 1, then
targets. PyTorch Geometric's ``ToUndirected`` adds to a relation ``(a, r, b)`` its reverse ``(b, rev_r, a)``; what is
called so is the same relation, seen from the other side, and its arcs have the coins of ``r``.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.pyg.adjacency import remembered
from tadropedge._old.pyg.shapes import Links, has_arcs, links_of

REVERSE = "rev_"
Relation = tuple[str, str, str]


def forward_name(relation: Relation) -> tuple[Relation, bool]:
    """The relation that this one is the reverse of, and whether it is one.

    >>> forward_name(("paper", "rev_writes", "author"))
    (('author', 'writes', 'paper'), True)
    """
    source, name, target = relation
    turned = False
    while name.startswith(REVERSE):
        name, source, target, turned = name.removeprefix(REVERSE), target, source, not turned
    return (source, name, target), turned


def relation_number(relation: Relation) -> int:
    """A number of 64 bits that stands for a relation in the words of its coins, the same everywhere.

    >>> relation_number(("author", "writes", "paper")) == relation_number(("paper", "rev_writes", "author"))
    True
    """
    name = "\0".join(forward_name(relation)[0])
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8], "big")


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """A relation as arcs that lead forwards, with ``turned`` for a reverse; nodes and features of both ends."""

    relation: Relation
    store: Any
    links: Links
    turned: bool
    edge_index: Tensor
    num_nodes: int | tuple[int, int]
    node_id: Any
    x: Any

    @property
    def called(self) -> str:
        """The relation as errors name it."""
        return called(self.relation)


def called(relation: Relation) -> str:
    """A relation as errors name it.

    >>> called(("author", "writes", "paper"))
    "data['author', 'writes', 'paper']"
    """
    return f"data[{', '.join(map(repr, relation))}]"


@contextmanager
def about(relation: Relation) -> Iterator[None]:
    """Name the relation in whatever error is raised about it."""
    try:
        yield
    except TadropedgeError as error:
        name, said = called(relation), str(error)
        raise TadropedgeError(said if name in said else f"{name}: {said}") from error


def side_of(data: HeteroData, relation: Relation) -> Side:
    """Read a relation of ``data``."""
    store = data[relation]
    links = links_of(store, called(relation))
    (source, _, target), turned = forward_name(relation)
    arcs = remembered(_turned, links.edge_index) if turned else links.edge_index
    least = links.num_nodes if isinstance(links.num_nodes, tuple) else (links.num_nodes or 0, links.num_nodes or 0)
    least = least[::-1] if turned else least
    sizes = [_count(data, kind) for kind in (source, target)]
    if None in sizes:  # as far as arcs tell
        seen = remembered(_largest, arcs)
        sizes = [max(seen[end], least[end]) if size is None else size for end, size in enumerate(sizes)]
    one = source == target
    return Side(
        relation=relation,
        store=store,
        links=links,
        turned=turned,
        edge_index=arcs,
        num_nodes=max(sizes) if one else tuple(sizes),  # type: ignore[type-var, arg-type]
        node_id=_of_nodes(data, source, target, "n_id"),
        x=_of_nodes(data, source, target, "x"),
    )


def relations_of(data: HeteroData, wanted: Sequence[str | Sequence[str]] | None) -> list[Relation]:
    """The relations of ``data`` to be thinned: all with arcs, or those that are named and their reverse.

    A name is a triple or the name between the two kinds of nodes.
    """
    known = [relation for relation in data.edge_types if has_arcs(data[relation])]
    if wanted is None:
        return known
    chosen = set()
    for name in wanted:
        found = [one for one in known if name == one[1] or (not isinstance(name, str) and tuple(name) == one)]
        if not found:
            listed = ", ".join(map(str, known)) or "none"
            raise TadropedgeError(f"relations={show(wanted, typed=False)}: {name!r} is no relation of data, which has "
                                  f"{listed}")  # fmt: skip
        chosen |= {forward_name(one)[0] for one in found}
    return [relation for relation in known if forward_name(relation)[0] in chosen]


def check_relations(wanted: object) -> tuple[str | Relation, ...] | None:
    """Return names of relations, each a string or a triple of strings; None stands for all."""
    if wanted is None:
        return None
    if isinstance(wanted, list | tuple):
        names = [tuple(one) if isinstance(one, list | tuple) else one for one in wanted]
        triples = all(isinstance(one, str) or _is_triple(one) for one in names)
        if triples and not _is_triple(wanted):
            return tuple(names)
    raise TadropedgeError(
        f"relations must be a list of names or (source, name, target) triples, got {show(wanted, typed=False)}"
    )


def _is_triple(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 3 and all(isinstance(one, str) for one in value)


def _turned(arcs: Tensor) -> Tensor:
    return arcs.flip(0)


def _largest(arcs: Tensor) -> list[int]:
    return [0, 0] if arcs.numel() == 0 else [int(most) + 1 for most in arcs.amax(1)]


def _count(data: HeteroData, kind: str) -> int | None:
    """The number of nodes of a kind, as far as PyG knows it without guessing."""
    store = data._node_store_dict.get(kind)
    if store is None or len(store) == 0:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it cannot be known; arcs tell then
        count = store.num_nodes
    return None if count is None else int(count)


def _of_nodes(data: HeteroData, source: str, target: str, name: str) -> Any:
    """What the nodes of both ends have as ``name``: one tensor, or a pair where these are two kinds; None without."""
    stores = [data._node_store_dict.get(kind) for kind in (source, target)]
    found = [None if store is None else store.get(name) for store in stores]
    if source == target:
        return found[0]
    return None if found[0] is None and found[1] is None else tuple(found)


def joined(x: tuple[Any, Any], score: str) -> Tensor:
    """The features of sources and targets ``[S + T, F]``, the same tensor for the same two."""
    for side, what in zip(x, ("sources", "targets"), strict=True):
        if not isinstance(side, Tensor) or side.dim() != 2 or side.layout is not torch.strided:
            got = "none" if side is None else show(side)
            raise TadropedgeError(f"the score {score!r} needs features of both kinds of nodes, got {got} of the {what}")
    if x[0].shape[1] != x[1].shape[1]:
        raise TadropedgeError(
            f"the score {score!r} compares features, but sources have {x[0].shape[1]} and targets {x[1].shape[1]}: use "
            "a score that looks at the graph alone, or relations= to leave this relation out"
        )
    return remembered(_cat, x[0], x[1])


def _cat(first: Tensor, second: Tensor) -> Tensor:
    return torch.cat((first, second.to(first.dtype)))
