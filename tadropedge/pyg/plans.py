"""What is computed once per graph, and found again in every epoch without looking at a single arc."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tadropedge.checks import as_integer, check_device, check_integer, check_tensor, check_whole
from tadropedge.errors import TadropedgeError
from tadropedge.fingerprint import fingerprint
from tadropedge.forest import ForestPlan
from tadropedge.graph import Graph
from tadropedge.pyg.dropping import Dropping
from tadropedge.pyg.known import KEEPING, Known, steady
from tadropedge.pyg.rules import check_forest
from tadropedge.pyg.transforms import of_pairs
from tadropedge.sampling import (
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
    the attribute of a ``Data`` that edges are scored by. ``batch [N]`` is the graph of each node, where there are many
    and each has a number; ``among_many``: a single graph that comes from a dataset.
    """

    edge_index: Tensor
    node_id: Tensor | None = None
    x: Tensor | None = None
    num_nodes: int | None = None
    edge_weight: Tensor | None = None
    column: Tensor | None = None
    batch: Tensor | None = None
    among_many: bool = False

    def check(self) -> None:
        """Refuse what is no graph, or lies on several devices; values are not looked at."""
        check_arcs(self.edge_index)
        if self.node_id is not None:
            if check_whole("node_id", self.node_id).dim() != 1:
                raise TadropedgeError(f"node_id must be one number for each node, got shape {list(self.node_id.shape)}")
            check_device("node_id", self.node_id, self.edge_index.device, "edge_index")
        if self.num_nodes is not None:
            check_integer("num_nodes", self.num_nodes, least=0)
        if self.edge_weight is not None:
            found = check_tensor("edge_weight", self.edge_weight)
            if found.shape[:1] != self.edge_index.shape[1:] or found.numel() != self.edge_index.shape[1]:
                raise TadropedgeError(
                    f"edge_weight has shape {list(found.shape)}, but edge_index has {self.edge_index.shape[1]} arcs"
                )
            check_device("edge_weight", found, self.edge_index.device, "edge_index")

    def check_ids(self) -> None:
        """Refuse arcs to nodes that have no id."""
        if self.node_id is not None and self.edge_index.numel():
            least, most = torch.stack(torch.aminmax(self.edge_index)).tolist()
            if least < 0 or most >= len(self.node_id):
                wrong = least if least < 0 else most
                raise TadropedgeError(f"node_id names {len(self.node_id)} nodes, but edge_index holds the node {wrong}")

    @property
    def count(self) -> int | None:
        """The number of nodes, as far as it is known."""
        if self.num_nodes is not None:
            return as_integer(self.num_nodes)
        rows = self.node_id if self.node_id is not None else self.x
        return rows.shape[0] if isinstance(rows, Tensor) and rows.dim() else None

    @property
    def origins(self) -> tuple[object, ...]:
        """All that :meth:`words` looks at: words are kept as long as these are the same (see :class:`Known`).

        A field that :meth:`words` reads must stand here, or its words are those of another graph.
        """
        return self.edge_index, self.node_id

    def words(self, pairs: Tensor) -> Tensor:
        """The words of node pairs, by which coins are drawn."""
        return node_pair_words(pairs if self.node_id is None else self.node_id[pairs])


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
        graph = Graph.from_edge_index(arcs.edge_index, nodes, weight)
        forest = ForestPlan.of(graph) if dropping.connected else None
        many = arcs.among_many
        rows = None if dropping.strategy is None else dropping.rows(graph, arcs.x, arcs.column, among_many=many)
        check = partial(check_forest, among_many=many, once=dropping.once)
        if forest is not None and rows is not None:
            check(forest, rows)
        falling = rows is not None and dropping.rates[0] > dropping.rates[-1]
        words = node_pair_words(graph.pairs)
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

    ``words`` of arcs and ``coins``, which are all that a call needs, are known by identity alone.
    """

    def __init__(self) -> None:
        self._plans: OrderedDict[str, DropPlan] = OrderedDict()
        self._known: Known[str] = Known(2 * MOST_GRAPHS)
        self.words: Known[Tensor] = Known(MOST_GRAPHS)
        self.coins: Known[Any] = Known(MOST_GRAPHS)

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
                words = arcs.words(arcs.edge_index)
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
