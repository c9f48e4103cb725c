"""What is computed once per graph, and found again in every epoch without looking at a single arc."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tadropedge._old.checks import as_integer, check_device, check_integer, check_tensor, check_whole
from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.fingerprint import fingerprint
from tadropedge._old.forest import ForestPlan
from tadropedge._old.graph import Graph
from tadropedge._old.pyg.adjacency import place_sides
from tadropedge._old.pyg.dropping import Dropping
from tadropedge._old.pyg.known import KEEPING, Known, Repeated, steady
from tadropedge._old.pyg.rules import check_forest
from tadropedge._old.pyg.transforms import of_pairs
from tadropedge._old.sampling import (
    check_connected,
    draw,
    draw_nested,
    key_tensor,
    node_pair_words,
    toss,
)

MOST_GRAPHS = 8  # that a module remembers


@dataclass(frozen=True, kw_only=True, eq=False)
class Arcs:
    """A graph as it comes: arcs ``[2, A]``, and what is known of its nodes and arcs.

    ``node_id [N]`` names the nodes of a mini-batch by their ids in the whole graph, by which coins go. ``column`` is
    the attribute of a ``Data`` that edges are scored by. ``num_nodes=(S, T)`` says that arcs lead from S sources to T
    targets, two sets that are numbered apart; ``node_id`` and ``x`` are pairs then, too. Coins are those of a pair of
    nodes, or of an arc where they are ``ordered``, as between two sets they always are; each ``relation`` has its own.
    ``batch [N]`` is the graph of each node, where there are many and each has a number; ``among_many``: a single graph
    that comes from a dataset.
    """

    edge_index: Tensor
    node_id: Tensor | tuple[Tensor | None, Tensor | None] | None = None
    x: Tensor | tuple[Tensor | None, Tensor | None] | None = None
    num_nodes: int | tuple[int, int] | None = None
    edge_weight: Tensor | None = None
    column: Tensor | None = None
    ordered: bool = False
    relation: int = 0
    batch: Tensor | None = None
    among_many: bool = False

    def check(self) -> None:
        """Refuse what is no graph, or lies on several devices; values are not looked at."""
        check_arcs(self.edge_index)
        for name, value in (("node_id", self.node_id), ("x", self.x)):
            check_sides(name, value, self.sizes)
        for name, ids in self._ids():
            if check_whole(name, ids).dim() != 1:
                raise TadropedgeError(f"{name} must be one number for each node, got shape {list(ids.shape)}")
            check_device(name, ids, self.edge_index.device, "edge_index")
        if self.num_nodes is not None and self.sizes is None:
            check_integer("num_nodes", self.num_nodes, least=0)
        if self.edge_weight is not None:
            found = check_tensor("edge_weight", self.edge_weight)
            if found.shape[:1] != self.edge_index.shape[1:] or found.numel() != self.edge_index.shape[1]:
                raise TadropedgeError(
                    f"edge_weight has shape {list(found.shape)}, but edge_index has {self.edge_index.shape[1]} arcs"
                )
            check_device("edge_weight", found, self.edge_index.device, "edge_index")

    def _ids(self) -> list[tuple[str, Tensor]]:
        """The tensors of node ids, with the names by which errors call them."""
        if not isinstance(self.node_id, tuple):
            return [] if self.node_id is None else [("node_id", self.node_id)]
        return [(f"node_id[{side}]", ids) for side, ids in enumerate(self.node_id) if ids is not None]

    def check_ids(self) -> None:
        """Refuse arcs to nodes that have no id, or that the two sets of nodes do not hold."""
        if not self.edge_index.numel():
            return
        if self.sizes is not None:
            self._check_sides(self.sizes)
        elif isinstance(self.node_id, Tensor):
            least, most = torch.stack(torch.aminmax(self.edge_index)).tolist()
            if least < 0 or most >= len(self.node_id):
                wrong = least if least < 0 else most
                raise TadropedgeError(f"node_id names {len(self.node_id)} nodes, but edge_index holds the node {wrong}")

    def _check_sides(self, sizes: tuple[int, int]) -> None:
        low, high = torch.stack(torch.aminmax(self.edge_index, dim=1)).tolist()
        named = dict(self._ids())
        for side, what in enumerate(("source", "target")):
            count, wrong = sizes[side], low[side] if low[side] < 0 else high[side]
            if wrong < 0 or wrong >= count:
                raise TadropedgeError(
                    f"edge_index holds the {what} {wrong}, but num_nodes={sizes}: {what}s run from 0 to {count - 1}"
                )
            ids = named.get(f"node_id[{side}]")
            if ids is not None and len(ids) < count:
                raise TadropedgeError(f"node_id[{side}] names {len(ids)} nodes, but there are {count} {what}s")

    @property
    def sizes(self) -> tuple[int, int] | None:
        """The numbers of sources and of targets, where these are two sets of nodes."""
        if not isinstance(self.num_nodes, tuple | list):
            return None
        if len(self.num_nodes) != 2:
            raise TadropedgeError(f"num_nodes must be a number or a pair (sources, targets), got {self.num_nodes}")
        sources, targets = (check_integer("num_nodes", each, least=0) for each in self.num_nodes)
        return sources, targets

    @property
    def count(self) -> int | None:
        """The number of nodes, as far as it is known."""
        if self.sizes is not None:
            return sum(self.sizes)
        if self.num_nodes is not None:
            return as_integer(self.num_nodes)
        rows = self.node_id if self.node_id is not None else self.x
        return rows.shape[0] if isinstance(rows, Tensor) and rows.dim() else None

    @property
    def origins(self) -> tuple[object, ...]:
        """All that :meth:`words` looks at: words are kept as long as these are the same (see :class:`Known`).

        A field that :meth:`words` reads must stand here, or its words are those of another graph.
        """
        names = self.node_id if isinstance(self.node_id, tuple) else (self.node_id,)
        return self.edge_index, self.kind, *names

    @property
    def kind(self) -> Any:
        """What a plan depends on beside tensors: the number of nodes, and where coins are not those of pairs."""
        plain = self.sizes is None and not self.ordered and not self.relation
        return self.count if plain else (self.sizes or self.count, self.ordered, self.relation)

    @property
    def values(self) -> tuple[Tensor | None, ...]:
        """All tensors that scores look at, beside the arcs."""
        sides = self.x if isinstance(self.x, tuple) else (self.x,)
        return self.edge_weight, self.column, *sides

    @property
    def by_arc(self) -> bool:
        """Whether the two arcs of an edge have a coin each."""
        return self.ordered and self.sizes is None

    @property
    def placed(self) -> Tensor:
        """The arcs as those of one graph: the targets of a relation between two sets come after its sources."""
        return self.edge_index if self.sizes is None else place_sides(self.edge_index, self.sizes)

    @property
    def unnamed(self) -> Arcs:
        """The same arcs with coins by the places of nodes."""
        return self if self.node_id is None else replace(self, node_id=None)

    def words(self, pairs: Tensor) -> Tensor:
        """The words of node pairs ``[2, M]`` as in :attr:`placed`, by which coins are drawn."""
        if self.sizes is None:
            ids = self.node_id[pairs] if isinstance(self.node_id, Tensor) else pairs
            return node_pair_words(ids, ordered=self.ordered, relation=self.relation)
        sides = pairs[0], pairs[1] - self.sizes[0]  # pairs of a graph have the lower node first, here the source
        names = self.node_id if isinstance(self.node_id, tuple) else (None, None)
        ends = [end if ids is None else ids[end] for ids, end in zip(names, sides, strict=True)]
        return node_pair_words(torch.stack(ends), ordered=True, relation=self.relation)


def check_sides(name: str, value: object, sizes: tuple[int, int] | None) -> None:
    """Refuse what does not say something for each of two sets of nodes, or says it where there is one."""
    if sizes is not None and value is not None and not (isinstance(value, tuple) and len(value) == 2):
        raise TadropedgeError(
            f"{name} must be a pair, as num_nodes or edge_index says ({sizes[0]} sources, {sizes[1]} targets), got "
            f"{show(value)}"
        )
    if sizes is None and isinstance(value, tuple):
        raise TadropedgeError(f"{name} is a pair, as between two sets of nodes: give num_nodes=(sources, targets), too")


def check_arcs(edge_index: object) -> None:
    """Refuse what is no tensor of whole numbers ``[2, A]``; values are not looked at."""
    arcs = check_whole("edge_index", edge_index)
    if arcs.dim() != 2 or arcs.shape[0] != 2:
        raise TadropedgeError(f"edge_index must have shape [2, A], got {list(arcs.shape)}")


@dataclass(frozen=True, kw_only=True, eq=False)
class DropPlan:
    """A graph with its keep probabilities ``rows [L, M]``, None where they come with each call, and its forest.

    ``falling``: layers have ever smaller rates. ``check``: whether probabilities suffice for a forest.
    """

    graph: Graph
    words: Tensor
    rows: Tensor | None = None
    falling: bool = False
    forest: ForestPlan | None = None
    check: Callable[[ForestPlan, Tensor], None] = check_connected

    @classmethod
    def of(cls, dropping: Dropping, arcs: Arcs) -> DropPlan:
        """Build the graph, score its edges, and check that the options can be met."""
        weight = arcs.edge_weight if dropping.score is not None else None
        nodes = arcs.count if arcs.edge_index.numel() or arcs.count else 1  # an empty graph has nothing to drop
        graph = Graph.from_edge_index(arcs.placed, nodes, weight)
        forest = ForestPlan.of(graph) if dropping.connected else None
        many = arcs.among_many
        rows = None if dropping.strategy is None else dropping.rows(graph, arcs.x, arcs.column, among_many=many)
        check = partial(check_forest, among_many=many, once=dropping.once)
        if forest is not None and rows is not None:
            check(forest, rows)
        falling = rows is not None and dropping.rates[0] > dropping.rates[-1]
        words = arcs.unnamed.words(graph.pairs)
        return cls(graph=graph, words=words, rows=rows, falling=falling, forest=forest, check=check)

    def given(self, edge_keep_prob: Tensor, look: bool = True) -> Tensor:
        """Probabilities of arcs ``[A]`` as a row ``[1, M]``; ``look``: both arcs of an edge must have the same."""
        row = of_pairs(self.graph, edge_keep_prob.to(torch.float64))
        if look:
            loops = self.graph.arc_pair < 0
            if not bool((loops | (self.graph.to_arcs(row) == edge_keep_prob)).all()):
                raise TadropedgeError(
                    "connected and exact keep or drop both directions of an edge together, but edge_keep_prob "
                    "differs between them"
                )
            if self.forest is not None:
                self.check(self.forest, row)
        return row[None]

    def arc_prob(self, layer: int = 0) -> Tensor:
        """The keep probability of each arc ``[A]``; self-loops have 1."""
        assert self.rows is not None
        return self.graph.to_arcs(self.rows[layer], loops=1.0)

    def mask(
        self,
        rows: Tensor,
        words: Tensor,
        seed: Tensor,
        epoch: Tensor,
        *,
        layer: int = 0,
        exact: bool = False,
        fixed: bool = False,
    ) -> Tensor:
        """The kept arcs ``[A]`` by the coins of the pairs ``words [M]``; self-loops are always kept."""
        kept = self.kept(rows, words, seed, epoch, layer=layer, exact=exact, fixed=fixed)
        return self.graph.to_arcs(kept, loops=True)

    def kept(
        self, rows: Tensor, words: Tensor, seed: Tensor, epoch: Tensor, *, layer: int, exact: bool, fixed: bool
    ) -> Tensor:
        """The kept pairs ``[M]``."""
        if len(rows) == 1:
            return draw(words, seed, epoch, rows[0], forest=self.forest, exact=exact, fixed=fixed).view(-1)
        return self._nested(rows, words, seed, epoch, layer=layer, exact=exact, fixed=fixed).view(-1)

    def _nested(
        self, rows: Tensor, words: Tensor, seed: Tensor, epoch: Tensor, *, layer: int, exact: bool, fixed: bool
    ) -> Tensor:
        """The mask of one layer, which contains those of all layers with smaller rates, by one coin."""
        if self.forest is None and not exact:
            multiplier, offset = key_tensor(seed, epoch)
            return toss(words, multiplier, offset, rows[layer])
        below = rows[layer:].flip(0) if self.falling else rows[: layer + 1]  # up to this layer, by rising rates
        return draw_nested(words, seed, epoch, below, forest=self.forest, exact=exact, fixed=fixed)[-1]


class KeptPlans:
    """The plans of the last few graphs.

    A graph is known by the identity of its tensors, unchanged since, and else by their content: an epoch hashes
    nothing, and a copy of the data is hashed once. Tensors of the user are not kept alive. Copies of a module share
    the plans made so far; a pickled module has none. What is written into a tensor through ``.data``, or memory
    shared with NumPy, goes unnoticed.

    ``words`` of arcs and ``coins``, which are all that a call needs, are known by identity alone; ``last`` are those of
    the last call.
    """

    def __init__(self) -> None:
        self._plans: OrderedDict[str, DropPlan] = OrderedDict()
        self._known: Known[str] = Known(2 * MOST_GRAPHS)
        self.words: Known[Tensor] = Known(MOST_GRAPHS)
        self.coins: Known[Any] = Known(MOST_GRAPHS)
        self.last: Repeated[Any] = Repeated()

    def find(self, tensors: Sequence[Tensor | None], num_nodes: int | None, make: Callable[[], DropPlan]) -> DropPlan:
        """The plan of the graph in these tensors, which ``make`` makes where there is none."""
        sources = (num_nodes, *map(steady, tensors))
        known = self._known.find(sources)
        with KEEPING:
            if known is not None and known in self._plans:
                self._plans.move_to_end(known)
                return self._plans[known]
        device = str(tensors[0].device if tensors[0] is not None else "")
        numbers = [None if one is None else one.detach() for one in tensors]
        content = fingerprint(tensors=numbers, num_nodes=num_nodes, device=device)
        plan = self._plans.get(content)
        if plan is None:
            with lasting():
                plan = make()
        with KEEPING:
            self._plans[content] = plan
            self._plans.move_to_end(content)
            while len(self._plans) > MOST_GRAPHS:
                self._plans.popitem(last=False)
        self._known.keep(sources, content)
        return plan

    def words_of(self, arcs: Arcs) -> Tensor:
        """The words ``[A]`` of arcs, computed when they are first seen."""
        words = self.words.find(arcs.origins)
        if words is None:
            with lasting():
                words = arcs.words(arcs.placed)
            self.words.keep(arcs.origins, words)
        return words

    def __len__(self) -> int:
        return len(self._plans)

    def __deepcopy__(self, memo: dict[int, Any]) -> KeptPlans:
        copied = KeptPlans()
        with KEEPING:
            copied._plans = self._plans.copy()
        return copied

    def __reduce__(self) -> tuple[type[KeptPlans], tuple[()]]:
        return KeptPlans, ()


@contextmanager
def lasting() -> Iterator[None]:
    """Tensors made here serve later passes, with gradients or without."""
    with torch.inference_mode(False), torch.no_grad():
        yield
