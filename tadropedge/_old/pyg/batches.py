"""A batch of graphs is dropped graph by graph: what one of them keeps does not depend on who shares the batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tadropedge._old.errors import TadropedgeError
from tadropedge._old.forest import ForestPlan
from tadropedge._old.graph import Graph
from tadropedge._old.method import UNIFORM
from tadropedge._old.pyg.dropping import Dropping
from tadropedge._old.pyg.numbers import places
from tadropedge._old.pyg.plans import Arcs, DropPlan
from tadropedge._old.pyg.rules import check_forest
from tadropedge._old.sampling import node_pair_words
from tadropedge._old.scores.column import per_edge


@dataclass(frozen=True, kw_only=True, eq=False)
class Piece:
    """One graph of a batch: its plan, and the places of its pairs among those of the batch."""

    plan: DropPlan
    pairs: Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchPlan(DropPlan):
    """A :class:`DropPlan` of a whole batch, whose ``rows`` were computed for each of its graphs alone.

    ``connected`` and ``exact`` count the edges of each graph, so there ``pieces`` are drawn one by one.
    """

    pieces: tuple[Piece, ...] = ()

    @classmethod
    def of(cls, dropping: Dropping, arcs: Arcs) -> BatchPlan:
        """Score the graphs of a batch one by one; those without edges have nothing to drop."""
        assert arcs.batch is not None
        if _alike(dropping):
            plan = DropPlan.of(dropping, arcs)
            return cls(graph=plan.graph, words=plan.words, rows=plan.rows, falling=plan.falling)
        weight = arcs.edge_weight if dropping.score is not None else None
        whole = Graph.from_edge_index(arcs.edge_index, arcs.count or 1, weight)
        column = None if arcs.column is None else per_edge(whole, arcs.column, str(dropping.column))
        x = dropping.features(arcs.x)
        x = x if x is None or x.layout is torch.strided else x.to_dense()
        check = partial(check_forest, among_many=True, once=dropping.once)
        ruled = dropping.strategy is not None
        falling = ruled and dropping.rates[0] > dropping.rates[-1]
        pieces = []
        for graph, pairs, nodes in _graphs(whole, arcs.batch):
            mine = None if x is None else x[nodes], None if column is None else column[pairs]
            rows = dropping.rows(graph, *mine, among_many=True) if ruled else None
            forest = ForestPlan.of(graph) if dropping.connected else None
            if forest is not None and rows is not None:
                check(forest, rows)
            words = node_pair_words(graph.pairs)
            plan = DropPlan(graph=graph, words=words, rows=rows, falling=falling, forest=forest, check=check)
            pieces.append(Piece(plan=plan, pairs=pairs))
        rows = None
        if ruled:
            rows = torch.empty(len(dropping.rates), whole.num_edges, dtype=torch.float64, device=whole.device)
            for piece in pieces:
                assert piece.plan.rows is not None
                rows[:, piece.pairs] = piece.plan.rows
        apart = tuple(pieces) if dropping.connected or dropping.exact else ()
        return cls(graph=whole, words=node_pair_words(whole.pairs), rows=rows, falling=falling, pieces=apart)

    def given(self, edge_keep_prob: Tensor, look: bool = True) -> Tensor:
        """Probabilities of arcs ``[A]`` as a row ``[1, M]``, with a look at the forest of each graph."""
        row = super().given(edge_keep_prob, look)
        for piece in self.pieces if look else ():
            if piece.plan.forest is not None:
                piece.plan.check(piece.plan.forest, row[0, piece.pairs])
        return row

    def mask(self, rows: Tensor, words: Tensor, seed: Tensor, epoch: Tensor, **options: Any) -> Tensor:
        """The kept arcs ``[A]``; self-loops are always kept."""
        if not self.pieces:
            return super().mask(rows, words, seed, epoch, **options)
        kept = torch.zeros(self.graph.num_edges, dtype=torch.bool, device=words.device)
        for piece in self.pieces:
            kept[piece.pairs] = piece.plan.kept(rows[:, piece.pairs], words[piece.pairs], seed, epoch, **options)
        return self.graph.to_arcs(kept, loops=True)


def _alike(dropping: Dropping) -> bool:
    """Whether all edges of all graphs have one probability and a coin of their own: no graph needs a look."""
    uniform = isinstance(dropping.strategy, str) and dropping.strategy == UNIFORM
    return uniform and not dropping.connected and not dropping.exact


def _graphs(whole: Graph, batch: Tensor) -> Iterator[tuple[Graph, Tensor, Tensor]]:
    """Every graph of a batch that has edges, with its pairs and nodes in the whole."""
    low, high = whole.pairs
    if not len(low):
        return
    batch = batch.to(torch.int64)
    if not bool((batch[low] == batch[high]).all()):
        apart = whole.pairs[:, batch[low] != batch[high]][:, 0].tolist()
        raise TadropedgeError(
            f"edge_index joins the nodes {apart[0]} and {apart[1]}, which belong to two graphs by data.batch: edges of "
            "a batch lie within its graphs; delete data.graph_number to have them scored as one graph"
        )
    count = int(batch.max()) + 1
    place, sizes = places(batch, count)
    nodes = batch.argsort(stable=True).split(sizes.tolist())
    owner = batch[low]
    edges = torch.bincount(owner, minlength=count)
    for member, pairs in enumerate(owner.argsort(stable=True).split(edges.tolist())):
        if len(pairs):
            weight = None if whole.weight is None else whole.weight[pairs]
            own = torch.arange(len(pairs), device=pairs.device)  # as if its pairs were its arcs
            yield Graph(place[whole.pairs[:, pairs]], len(nodes[member]), weight, own), pairs, nodes[member]


def cut_anew(thin: Any, changed: Mapping[str, Any], mask: Tensor, relation: Any = None) -> None:
    """Say where each graph of the batch ``thin`` begins among the kept arcs of ``mask [A]``.

    PyTorch Geometric cuts by these places in ``thin[i]`` and ``to_data_list()``; the old ones are those of other arcs.
    ``changed`` are the attributes that were thinned, of one ``relation`` where there are many.
    """
    hidden = (thin._store if relation is None else thin._global_store).__dict__
    cuts, steps = hidden.get("_slice_dict"), hidden.get("_inc_dict")
    if cuts is None or steps is None:
        return
    before, by = (cuts, steps) if relation is None else (cuts[relation], steps[relation])
    names = [name for name in ("edge_index", *changed) if name in before and name != "adj_t"]
    old = next((before[name] for name in names if int(before[name][-1]) == len(mask)), None)
    if old is None:
        return
    kept = torch.cat((mask.new_zeros(1, dtype=torch.int64), mask.cumsum(0)))
    new = kept[old.to(mask.device)].to(old.device)
    per_arc = [name for name in changed if name != "adj_t" and (name not in before or torch.equal(before[name], old))]
    before = {**before, **dict.fromkeys(per_arc, new)}
    by = {**by, **{name: torch.zeros(len(old) - 1, dtype=torch.int64) for name in per_arc if name not in by}}
    hidden["_slice_dict"] = before if relation is None else {**cuts, relation: before}
    hidden["_inc_dict"] = by if relation is None else {**steps, relation: by}
