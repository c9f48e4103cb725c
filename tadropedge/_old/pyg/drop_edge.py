"""The module that drops edges in training: settings, the epoch, and nothing else; the mathematics is a function."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import get_worker_info
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.data import BaseData

from tadropedge._old.checks import check_device, check_integer, check_seed, check_tensor
from tadropedge._old.errors import TadropedgeError, lookup, show
from tadropedge._old.pyg.adjacency import is_adjacency, kept_arcs
from tadropedge._old.pyg.batches import BatchPlan, cut_anew
from tadropedge._old.pyg.coins import ArcCoins, PlannedCoins
from tadropedge._old.pyg.dropping import Dropping, check_divisible, settings_of
from tadropedge._old.pyg.functional import (
    check_keep_prob,
    check_source,
    is_paired,
    is_plain,
    read_arcs,
    thinned_input,
    toss_arcs,
)
from tadropedge._old.pyg.hetero import Side, about, relation_number, relations_of, side_of
from tadropedge._old.pyg.known import lock_for_all, steady
from tadropedge._old.pyg.numbers import NAME as NUMBER
from tadropedge._old.pyg.numbers import is_later, named_nodes, numbers_of
from tadropedge._old.pyg.plans import Arcs, DropPlan, KeptPlans, check_arcs, lasting
from tadropedge._old.pyg.shapes import WEIGHT, Links, check_shape, is_simple, links_of, over, thin_store, weight_of
from tadropedge._old.pyg.taking import places, take, take_arcs
from tadropedge._old.pyg.transforms import arc_attribute
from tadropedge._old.pyg.traps import LARGEST, WEIGHTS, check_given, tell_cached, tell_normalised, tell_summed
from tadropedge._old.sampling import signed, vectorised
from tadropedge._old.scores.solve import Score
from tadropedge._old.sensitivity import SENSITIVITY
from tadropedge._old.strategies import Score as Strategy

ADVANCES = {"call": None, "manual": None}
PER_GRAPH = {NUMBER, LARGEST}
TAKING = lock_for_all()


class TADropEdge(nn.Module):
    """Drop edges in training; in ``eval()`` pass everything through untouched.

    ``TADropEdge(score="degree", strategy="proportional", keep_ratio=0.7)`` scores the edges of a graph when it first
    sees it and remembers their keep probabilities. It takes a ``Data`` or arcs:

    * ``drop(data)`` returns a shallow copy of which every attribute of arcs is thinned alike, ``adj_t`` too. So does a
      ``HeteroData``, of which each relation is a graph of its own.
    * ``drop(edge_index)`` returns ``(edge_index, edge_mask)``, the kept arcs and the mask over the input's arcs, True
      for kept. Further per-arc tensors ride along: ``drop(edge_index, edge_attr)`` returns
      ``(edge_index, edge_mask, edge_attr)``. Scores that need features take ``x=``; ``edge_weight=`` enters the score,
      and its kept part is returned after the mask. An ``EdgeIndex`` stays one.
    * ``drop(adj_t)`` returns the sparse matrix, of any layout of torch or of torch_sparse, with the kept entries alone.

    ``TADropEdge()`` without a rule takes the probabilities with every call: ``drop(edge_index, edge_keep_prob, ...)``,
    or a ``Data`` with ``edge_keep_prob`` as :class:`AddKeepProbability` writes it. This is the way of mini-batches,
    whose own scores would not be those of the whole graph.

    **The rule.** ``score`` is a name of ``tadropedge.SCORES`` or your own function, ``settings`` are its own (``q=7``)
    and ``cache_dir`` keeps it on disk: see :func:`tadropedge.edge_scores`. ``score="column", column="trust"`` goes by
    ``data.trust``, one number per arc. ``strategy`` (``"cdf"`` by default, or ``"uniform"`` without a score),
    ``keep_prob`` or ``keep_ratio``, ``gamma``, ``inverse`` and ``sensitivity`` are
    those of :func:`tadropedge.keep_probabilities`. :meth:`TADropEdge.of` takes the name of a method instead.

    **Options.**

    * ``unbiased``: kept weights are divided by their keep probability, so that their mean over all draws is what was
      given, or 1. ``drop(data)`` writes ``edge_weight``, and divides ``edge_shift`` (see :class:`AddShift`) too;
      ``drop(edge_index)`` returns ``(edge_index, edge_mask, edge_weight, ...)``. It is for your model to use them.
    * ``connected``: every mask contains a spanning forest. ``exact``: every mask has the same number of edges. See
      :func:`tadropedge.sample_edges`. Self-loops are always kept.
    * ``layers=L``: ``drop(..., layer=l)`` keeps rates that run in equal steps from ``keep_prob`` or ``keep_ratio`` in
      layer 0 to ``keep_last`` (1 by default) in layer L − 1. Masks of one epoch are nested.

    **Shapes** (docs/howto/shapes.md). ``weight`` names the attribute of a ``Data`` that holds edge weights: they enter
    the score, and ``unbiased`` divides them; None looks at no weights. ``num_nodes=(S, T)`` says that arcs lead from
    one set of nodes to another; ``x`` and ``node_id`` are pairs then. ``relations`` names those of a ``HeteroData``
    that are thinned, each together with its reverse ``rev_…``; others are not touched.

    Coins are a pure function of (seed, epoch, the two node ids), in a ``HeteroData`` also of the relation. With
    ``coins="pair"`` both directions of an edge share one; with ``"arc"`` each has its own, by the same probability.
    (The laboratory numbers edges by their place in the graph instead, so its coins are others.)

    **Batches of graphs.** Our transforms write ``data.graph_number``, and ``drop(batch)`` draws by it: graphs of a
    batch have coins of their own, whoever shares it, and a rule, ``connected`` and ``exact`` look at each graph alone.
    A batch without numbers is one graph. Tensors take ``node_id=graph_node_ids(batch, graph_number)``. Small graphs
    are no errors: where one has no score or cannot meet a budget, one warning says what is done instead.

    **The epoch** is a buffer, saved in the ``state_dict``. With ``advance="call"`` every call in training mode
    draws with the current epoch and then adds one, so each call, and each layer that calls, sees a new subgraph.
    With ``advance="manual"`` only ``next_epoch()`` and ``set_epoch(n)`` move it: all mini-batches of an epoch, all
    workers and a recomputed forward pass then see the same subgraph. There give ``node_id`` (PyG's ``batch.n_id``,
    which ``drop(batch)`` finds by itself), so that coins follow the nodes of the whole graph and not their place in
    the batch.

    Nothing is rebuilt with ``drop.mask(...)``: it returns the mask alone, for models that take edge weights. With
    probabilities that are given it compiles to one graph.

    **More than one caller** (docs/method.md has a table of them all):

    * Threads: with ``advance="call"`` no two calls share an epoch; which thread gets which is not determined.
    * DataLoader workers hold copies, so ``advance="call"`` is refused there. With ``advance="manual"`` call
      ``drop.share_memory()`` before the workers start, so that ``set_epoch(n)`` reaches all of them.
    * Gradient checkpointing runs the forward pass twice: ``advance="call"`` is refused in the second one.
    * ``torch.compile`` and ``torch.export`` advance the epoch as eager code does; probabilities outside of [0, 1],
      NaN included, are then a ``RuntimeError``. ``torch.jit`` would freeze the epoch and is refused. A rule,
      ``connected`` and ``exact`` are run outside of a compiled graph, and cannot be exported.
    """

    seed: Tensor
    epoch: Tensor

    def __init__(
        self,
        seed: int = 0,
        *,
        advance: str = "call",
        score: Score | None = None,
        strategy: str | Strategy | None = None,
        keep_prob: float | None = None,
        keep_ratio: float | None = None,
        gamma: float | str = "auto",
        inverse: bool = False,
        sensitivity: float = SENSITIVITY,
        unbiased: bool = False,
        connected: bool = False,
        exact: bool = False,
        layers: int | None = None,
        keep_last: float | None = None,
        coins: str = "pair",
        weight: str | None = WEIGHT,
        relations: Sequence[str | Sequence[str]] | None = None,
        cache_dir: str | Path | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        try:
            number = check_seed(seed, signed=True)
        except TadropedgeError as error:
            meant: object = seed  # dropout_edge takes its p there
            more = "; a probability is given as keep_prob=" if type(meant) is float and 0 <= meant <= 1 else ""
            raise TadropedgeError(f"{error}{more}") from None
        lookup("advance", advance, ADVANCES)
        self.advance = advance
        self.dropping = Dropping(
            score=score,
            strategy=strategy,
            keep_prob=keep_prob,
            keep_ratio=keep_ratio,
            gamma=gamma,
            inverse=inverse,
            sensitivity=sensitivity,
            unbiased=unbiased,
            connected=connected,
            exact=exact,
            layers=layers,
            keep_last=keep_last,
            coins=coins,
            weight=weight,
            relations=relations,
            cache_dir=cache_dir,
            settings=settings,
        )
        if self.dropping.layers is not None and advance == "call":
            raise TadropedgeError(
                "layers=... draws all layers of a pass with one coin, so calls cannot move the epoch: use "
                "advance='manual', and next_epoch() after each step"
            )
        self.plans = KeptPlans()
        _ = self.dropping.once  # made here, so that workers share it
        self.register_buffer("seed", torch.tensor(signed(number % 2**64)))
        self.register_buffer("epoch", torch.tensor(0))

    @classmethod
    def of(cls, method: str, seed: int = 0, *, advance: str = "call", **settings: Any) -> TADropEdge:
        """The module of a method by its name in the grammar of :mod:`tadropedge._old.method`.

        >>> TADropEdge.of("degree-proportional:connected", keep_ratio=0.7)
        TADropEdge(seed=0, epoch=0, advance='call', score='degree', strategy='proportional', keep_ratio=0.7, \
connected=True)
        """
        return cls(seed, advance=advance, **settings_of(method, settings))

    # -- what is drawn --------------------------------------------------------------------------------

    def forward(
        self,
        edge_index: Any,
        *edge_attr: Tensor | None,
        edge_keep_prob: Tensor | None = None,
        node_id: Any = None,
        x: Any = None,
        num_nodes: int | tuple[int, int] | None = None,
        edge_weight: Tensor | None = None,
        layer: int | None = None,
    ) -> Any:
        """Return a thinned ``Data`` or matrix, or the kept arcs, the mask, and what of the tensors belongs to them."""
        if isinstance(edge_index, BaseData):
            beside = (*edge_attr, edge_keep_prob, x, num_nodes, edge_weight)
            if any(value is not None for value in beside):
                raise TadropedgeError("edge_index is a Data, which brings all of its tensors: give drop(data) alone")
            return self._thinned(check_shape(edge_index), node_id, layer)
        if self.dropping.strategy is None and edge_keep_prob is None and edge_attr:
            edge_keep_prob, *edge_attr = edge_attr  # type: ignore[assignment]
        alone = not edge_attr and node_id is None and x is None and num_nodes is None and edge_weight is None
        alone = alone and layer is None and not torch.compiler.is_compiling()
        if alone:
            coins = self._repeated(edge_index, edge_keep_prob)
            if coins is not None:
                mask = self._toss(coins, 0, None)
                return take_arcs(edge_index, places(mask)), mask
        arcs = self._read(edge_index, node_id=node_id, x=x, num_nodes=num_nodes, edge_weight=edge_weight)
        if is_adjacency(edge_index):
            return self._thinned_matrix(edge_index, arcs, edge_attr, edge_keep_prob, layer)
        check_arcs(edge_index)
        weighs = self.dropping.unbiased or edge_weight is not None
        if not self.training:
            everything = torch.ones(edge_index.shape[1], dtype=torch.bool, device=edge_index.device)
            weights = (_ones(edge_index) if edge_weight is None else edge_weight,) if weighs else ()
            return (edge_index, everything, *weights, *edge_attr)
        for values in edge_attr:
            if values is not None and check_tensor("an edge attribute", values).shape[:1] != edge_index.shape[1:]:
                raise TadropedgeError(
                    f"an edge attribute has shape {list(values.shape)}, but edge_index has {edge_index.shape[1]} arcs"
                )
        mask, prob = self._draw(arcs, edge_keep_prob, layer)
        if alone and type(edge_index) is Tensor:
            self._remember(arcs, edge_keep_prob)
        chosen = places(mask)
        weights = (over(_ones(edge_index) if edge_weight is None else edge_weight, prob, chosen),) if weighs else ()
        kept = (None if values is None else take(values, chosen) for values in edge_attr)
        return (kept_arcs(edge_index, chosen, paired=is_paired(self.dropping)), mask, *weights, *kept)

    def mask(
        self,
        edge_index: Any,
        edge_keep_prob: Tensor | None = None,
        node_id: Any = None,
        *,
        x: Any = None,
        num_nodes: int | tuple[int, int] | None = None,
        edge_weight: Tensor | None = None,
        layer: int | None = None,
    ) -> Tensor:
        """The mask of kept arcs, or of the kept entries of a sparse matrix, bool ``[A]``; all True in ``eval()``."""
        arcs = self._read(edge_index, node_id=node_id, x=x, num_nodes=num_nodes, edge_weight=edge_weight)
        check_arcs(arcs.edge_index)
        if not self.training:
            return torch.ones(arcs.edge_index.shape[1], dtype=torch.bool, device=arcs.edge_index.device)
        return self._draw(arcs, edge_keep_prob, layer)[0]

    def probabilities(
        self,
        edge_index: Any,
        *,
        x: Any = None,
        num_nodes: int | tuple[int, int] | None = None,
        edge_weight: Tensor | None = None,
        layer: int | None = None,
    ) -> Any:
        """The keep probability of each arc by the rule of this module, float64 ``[A]``; self-loops have 1.

        Those of a ``HeteroData`` are a dictionary, by relation.

        >>> edge_index = torch.tensor([[0, 1, 1, 2, 2], [1, 0, 2, 0, 2]])
        >>> TADropEdge(keep_prob=0.25).probabilities(edge_index).tolist()
        [0.25, 0.25, 0.25, 0.25, 1.0]
        """
        if self.dropping.strategy is None:
            raise TadropedgeError("this TADropEdge has no rule: edge_index has no probabilities but those you give")
        if isinstance(edge_index, HeteroData):
            data, names = check_shape(edge_index), relations_of(edge_index, self.dropping.relations)
            return {name: self._arc_prob(self._arcs_of_side(side_of(data, name)), layer) for name in names}
        if isinstance(edge_index, BaseData):
            data = check_shape(edge_index)
            return self._arc_prob(self._arcs_of(data, links_of(data._store), None), layer)
        arcs = self._read(edge_index, node_id=None, x=x, num_nodes=num_nodes, edge_weight=edge_weight)
        return self._arc_prob(arcs, layer)

    # -- how ------------------------------------------------------------------------------------------

    def _thinned(self, data: Any, node_id: Any, layer: int | None) -> Any:
        """A shallow copy of ``data`` that holds the kept arcs alone."""
        if not self.training:
            return data
        if isinstance(data, HeteroData):
            return self._thinned_relations(data, node_id, layer)
        links, given, nodes = links_of(data._store), self._given(data), data.num_nodes
        bare = node_id is None and layer is None and self._is_bare(data)
        coins = self._repeated(links.edge_index, given, nodes) if bare else None
        if coins is not None:
            mask, prob = self._toss(coins, 0, None), None
        else:
            arcs = self._arcs_of(data, links, node_id)
            mask, prob = self._draw(arcs, given, layer)
            self._look_at(links.edge_index, data if given is not None else None, **_weights(data, links))
            if bare:
                self._remember(arcs, given, nodes)
        thin = copy.copy(data)
        kept = self._kept(data._store, links, mask, prob)
        kept = {key: value for key, value in kept.items() if key not in PER_GRAPH}  # [B], even where it is as long
        for key, value in kept.items():
            thin[key] = value
        cut_anew(thin, kept, mask)
        if not {"num_nodes", "adj_t"} & set(data.keys()) and not any(data.is_node_attr(key) for key, _ in data):
            thin.num_nodes = nodes  # PyG would count the nodes of the kept arcs
        return thin

    def _is_bare(self, data: Data) -> bool:
        """Whether coins depend on nothing but arcs, probabilities and the number of nodes."""
        if torch.compiler.is_compiling() or not is_simple(data) or data._store.get("n_id") is not None:
            return False
        first = NUMBER not in data or (data[NUMBER] is not True and isinstance(data[NUMBER], int) and data[NUMBER] == 0)
        looks = self.dropping.takes_features or self.dropping.column is not None
        weighted = self.dropping.score is not None and self.dropping.weight in data
        return first and not looks and not weighted

    def _look_at(self, edge_index: Tensor, store: Any, **weights: Any) -> None:
        """Say, at the first graph, what a wrong order of transforms has done to given probabilities and to weights."""
        if torch.compiler.is_compiling() or (edge_index.is_cuda and torch.cuda.is_current_stream_capturing()):
            return
        if self.dropping.once.first("order"):
            if store is not None:
                tell_summed(store, self.dropping.once)
            if weights and not self.dropping.unbiased:
                tell_normalised(edge_index, **weights, once=self.dropping.once, kept=self.dropping.score is None)

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _thinned_relations(self, data: HeteroData, node_id: object, layer: int | None) -> HeteroData:
        """The same for a graph of many relations, all by the coins of one epoch."""
        if node_id is not None:
            raise TadropedgeError("node_id is of one kind of nodes: write it as n_id into each kind of a HeteroData")
        sides = [side_of(data, name) for name in relations_of(data, self.dropping.relations)]
        self._check_caller()
        thin, epoch = copy.copy(data), self._taken_epoch()
        for side in sides:
            with about(side.relation):
                mask, prob = self._draw(self._arcs_of_side(side), self._given(side.store), layer, epoch)
                kept = self._kept(side.store, side.links, mask, prob)
            for key, value in kept.items():
                thin[side.relation][key] = value
            cut_anew(thin, kept, mask, side.relation)
        if self.dropping.strategy is None and self.dropping.once.first("order"):
            for side in sides:
                tell_summed(side.store, self.dropping.once)
        return thin

    def _thinned_matrix(
        self, matrix: Any, arcs: Arcs, others: Sequence[object], edge_keep_prob: Tensor | None, layer: int | None
    ) -> Any:
        """The kept entries of a sparse matrix, in its layout."""
        if any(value is not None for value in others):
            raise TadropedgeError("a sparse matrix has values and no edge attributes: give drop(adj_t), or a Data")
        if not self.training:
            return matrix
        mask, prob = self._draw(arcs, edge_keep_prob, layer)
        if isinstance(arcs.num_nodes, int):
            self._look_at(arcs.edge_index, None, weight=arcs.edge_weight, num_nodes=arcs.num_nodes, called="adj_t")
        return thinned_input(matrix, mask, prob, paired=is_paired(self.dropping))

    def _read(self, edge_index: Any, **given: Any) -> Arcs:
        weighted = self.dropping.weight is not None
        return read_arcs(edge_index, **given, coins=self.dropping.coins, weighted=weighted)

    def _kept(self, store: Any, links: Links, mask: Tensor, prob: Tensor | None) -> dict[str, Any]:
        return thin_store(store, links, mask, paired=is_paired(self.dropping), prob=prob, weight=self.dropping.weight)

    def _given(self, store: Any) -> Tensor | None:
        """The probabilities that ride along, where no rule makes them."""
        return None if self.dropping.strategy is not None else getattr(store, "edge_keep_prob", None)

    def _arcs_of(self, data: Data, links: Links, node_id: Tensor | None) -> Arcs:
        """The arcs of a ``Data``; mini-batches name their nodes by ``n_id``, and batches their graphs by a number."""
        column, two = self.dropping.column, isinstance(links.num_nodes, tuple)
        numbers = None if two else numbers_of(data)
        if node_id is None and not two:
            node_id = named_nodes(data, numbers, getattr(data, "n_id", None), links.edge_index.device)
        return Arcs(
            edge_index=links.edge_index,
            node_id=node_id,
            x=None if two else getattr(data, "x", None),
            num_nodes=data.num_nodes if links.num_nodes is None else links.num_nodes,
            edge_weight=weight_of(data._store, links, self.dropping.weight),
            column=None if column is None else arc_attribute(data, column),
            ordered=self.dropping.coins == "arc",
            batch=data.batch if numbers is not None and len(numbers) > 1 else None,
            among_many=is_later(numbers),
        )

    def _arcs_of_side(self, side: Side) -> Arcs:
        """The arcs of a relation, with coins of its own."""
        column = self.dropping.column
        return Arcs(
            edge_index=side.edge_index,
            node_id=side.node_id,
            x=side.x,
            num_nodes=side.num_nodes,
            edge_weight=weight_of(side.store, side.links, self.dropping.weight, side.called),
            column=None if column is None else arc_attribute(side.store, column),
            ordered=self.dropping.coins == "arc",
            relation=relation_number(side.relation),
        )

    def _arc_prob(self, arcs: Arcs, layer: int | None) -> Tensor:
        arcs.check()
        arcs.check_ids()
        return self._plan(arcs).arc_prob(self._layer(layer))

    def _draw(
        self, arcs: Arcs, edge_keep_prob: Tensor | None, layer: int | None, epoch: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """The mask of kept arcs, and their probabilities where kept weights are to be divided by them."""
        if not is_plain(self.dropping):
            drawn: tuple[Tensor, Tensor | None] = self._draw_planned(arcs, edge_keep_prob, layer, epoch)
            return drawn
        if torch.compiler.is_compiling() or _is_recorded(arcs):
            self._check(arcs, edge_keep_prob, layer)
            assert edge_keep_prob is not None
            self._check_inside(edge_keep_prob)
            mask = toss_arcs(arcs, edge_keep_prob, self.seed, self._taken_epoch() if epoch is None else epoch)
            return mask, edge_keep_prob if self.dropping.unbiased else None
        return self._draw_known(arcs, edge_keep_prob, layer, epoch)

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _draw_planned(
        self, arcs: Arcs, edge_keep_prob: Tensor | None, layer: int | None, epoch: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """The same outside of a compiled graph, which cannot look for the plan of a graph."""
        if torch.compiler.is_exporting():
            raise TadropedgeError(
                "only TADropEdge() with given probabilities can be exported: drop.probabilities(edge_index) returns "
                "those of a rule; connected and exact depend on values"
            )
        if not _is_recorded(arcs):
            return self._draw_known(arcs, edge_keep_prob, layer, epoch)
        number = self._check(arcs, edge_keep_prob, layer)
        # A recorded graph reads the plan's memory when it is replayed: what a call may forget is made inside.
        if arcs.by_arc:
            prob = self._plan(arcs).arc_prob(number)
            mask = toss_arcs(arcs, prob, self.seed, self._taken_epoch() if epoch is None else epoch)
            return mask, prob if self.dropping.unbiased else None
        coins = self._planned_coins(arcs, edge_keep_prob, look=False)
        mask = coins.mask(self.seed, self._taken_epoch() if epoch is None else epoch, number, fixed=True)
        return mask, coins.plan.arc_prob(number) if self.dropping.unbiased else None

    def _draw_known(
        self, arcs: Arcs, edge_keep_prob: Tensor | None, layer: int | None, epoch: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """The same by coins that are found or made; tensors that are known have passed all checks."""
        sources = self._sources(arcs, edge_keep_prob, layer)
        coins = self.plans.coins.find(sources)
        if coins is None:
            self._check(arcs, edge_keep_prob, layer)
        number = self._layer(layer)
        check_device("the TADropEdge module", self.epoch, arcs.edge_index.device, "edge_index")
        self._check_caller()
        if coins is None:
            arcs.check_ids()
            coins = self._coins(arcs, edge_keep_prob, number)
            self.plans.coins.keep(sources, coins)
        mask = self._toss(coins, number, epoch)
        if not self.dropping.unbiased:
            return mask, None
        if edge_keep_prob is not None:
            return mask, edge_keep_prob
        return mask, coins.plan.arc_prob(number) if isinstance(coins, PlannedCoins) else coins.prob

    def _repeated(self, edge_index: Any, edge_keep_prob: Tensor | None, nodes: int | None = None) -> ArcCoins | None:
        """The coins of the last call, where this one is the same and nothing else is to be looked at."""
        if not self.training or type(edge_index) is not Tensor or self.dropping.unbiased:
            return None
        if edge_keep_prob is not None and steady(edge_keep_prob) is not edge_keep_prob:
            return None
        coins: ArcCoins | None = self.plans.last.find(edge_index, edge_keep_prob, nodes)
        if coins is None or self.epoch.device != edge_index.device:
            return None
        if edge_index.is_cuda and torch.cuda.is_current_stream_capturing():
            return None
        self._check_caller()
        return coins

    def _remember(self, arcs: Arcs, edge_keep_prob: Tensor | None, nodes: int | None = None) -> None:
        if steady(edge_keep_prob) is not edge_keep_prob:
            return
        coins = self.plans.coins.find(self._sources(arcs, edge_keep_prob, None))
        if isinstance(coins, ArcCoins):
            self.plans.last.keep(arcs.edge_index, edge_keep_prob, nodes, coins)

    def _sources(self, arcs: Arcs, edge_keep_prob: Tensor | None, layer: int | None) -> tuple[object, ...]:
        """All that coins depend on."""
        given = map(steady, (edge_keep_prob, *(arcs if self.dropping.takes_features else replace(arcs, x=None)).values))
        return (*arcs.origins, *given, arcs.batch, arcs.among_many, arcs.num_nodes, layer if arcs.by_arc else None)

    def _coins(self, arcs: Arcs, edge_keep_prob: Tensor | None, layer: int) -> ArcCoins | PlannedCoins:
        """All that a call needs, made of values that are checked here."""
        if edge_keep_prob is not None:
            check_given(edge_keep_prob)
            if self.dropping.unbiased:
                check_divisible(edge_keep_prob)
        nested = (self.dropping.layers or 1) > 1 and not arcs.by_arc
        if self.dropping.connected or self.dropping.exact or nested:
            return self._planned_coins(arcs, edge_keep_prob)
        prob = self._plan(arcs).arc_prob(layer) if edge_keep_prob is None else edge_keep_prob.detach()
        words = self.plans.words_of(arcs)
        with lasting():
            return ArcCoins.of(words, prob, divides=self.dropping.unbiased and edge_keep_prob is None)

    def _planned_coins(self, arcs: Arcs, edge_keep_prob: Tensor | None, look: bool = True) -> PlannedCoins:
        plan = self._plan(arcs)
        with lasting() if look else nullcontext():
            rows = plan.given(edge_keep_prob, look=look) if plan.rows is None else plan.rows  # type: ignore[arg-type]
            words = plan.words if arcs.node_id is None else arcs.words(plan.graph.pairs)
        return PlannedCoins(plan=plan, rows=rows, words=words, exact=self.dropping.exact)

    def _toss(self, coins: ArcCoins | PlannedCoins, layer: int, epoch: Tensor | None) -> Tensor:
        """Draw with a given epoch, or one that is, with ``advance="call"``, the caller's alone."""
        if epoch is not None:
            return coins.mask(self.seed, epoch, layer)
        taken = self.advance == "call"
        if self.epoch.is_cuda:
            # The next epoch comes after the coins in their stream, so they need no copy of this one.
            with TAKING if taken else nullcontext():
                if isinstance(coins, ArcCoins) and not vectorised():
                    mask = coins.row(self.seed, self.epoch)
                else:
                    mask = coins.mask(self.seed, self.epoch, layer)
                if taken:
                    self.epoch.add_(1)
            return mask
        if vectorised():
            return coins.mask(self.seed, self._taken_epoch(), layer)
        with TAKING:
            now = int(self.epoch)
            if taken:
                self.epoch.add_(1)
        return coins.mask(int(self.seed), now, layer)

    def _plan(self, arcs: Arcs) -> DropPlan:
        """What was computed when this graph was first seen."""
        weight = arcs.edge_weight if self.dropping.score is not None else None
        features = self.dropping.features(arcs.x)
        make = partial(DropPlan.of if arcs.batch is None else BatchPlan.of, self.dropping, arcs)
        return self.plans.find((arcs.edge_index, weight, features, arcs.column, arcs.batch), arcs.kind, make)

    def _layer(self, layer: int | None) -> int:
        if self.dropping.layers is None:
            if layer is not None:
                raise TadropedgeError(
                    f"layer={show(layer, typed=False)} needs TADropEdge(layers=...), the number of them"
                )
            return 0
        return check_integer("layer", layer, least=0, most=self.dropping.layers - 1)

    def _check(self, arcs: Arcs, edge_keep_prob: Tensor | None, layer: int | None) -> int:
        """Refuse what is wrong without a look at values; the number of the layer."""
        check_source(self.dropping, edge_keep_prob)
        arcs.check()
        number = self._layer(layer)
        if edge_keep_prob is not None:
            check_keep_prob(arcs.edge_index, edge_keep_prob)
        check_device("the TADropEdge module", self.epoch, arcs.edge_index.device, "edge_index")
        return number

    def _check_inside(self, edge_keep_prob: Tensor) -> None:
        """A look at the values would break a compiled or recorded graph, so it checks them itself whenever it runs."""
        proper = ((edge_keep_prob >= 0) & (edge_keep_prob <= 1)).all()
        torch._assert_async(proper, "edge_keep_prob must lie in [0, 1]; some of its values do not, or are NaN")
        if self.dropping.unbiased:
            torch._assert_async((edge_keep_prob > 0).all(), "unbiased needs an edge_keep_prob above 0")

    def _check_caller(self) -> None:
        """Refuse to draw where the epoch cannot follow: subgraphs that repeat are not noticed in training."""
        fault = ""
        if torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
            fault = "would be frozen by torch.jit.trace; trace it in eval(), or use torch.compile or torch.export"
        elif get_worker_info() is not None:
            if self.advance == "call":
                fault = (
                    "cannot count calls in a DataLoader worker, which has a copy of its own and would repeat the "
                    "subgraphs of the others; draw in the training loop, or use advance='manual' with share_memory(), "
                    "set_epoch(n) and node_id"
                )
            elif not self.epoch.is_shared():
                fault = (
                    "is a copy in a DataLoader worker that set_epoch(n) may not reach; call share_memory() on the "
                    "module before the workers start, or draw in the training loop"
                )
        elif self.advance == "call" and torch._C._current_graph_task_id() != -1:
            fault = (
                "was called in a backward pass (gradient checkpointing), where it would draw another subgraph than in "
                "the forward pass; use advance='manual', and next_epoch() after each step"
            )
        tell_cached(self, self.dropping.once)
        if fault:
            raise TadropedgeError(f"TADropEdge(advance={self.advance!r}) {fault}")

    def _taken_epoch(self) -> Tensor:
        """The epoch to draw with; with ``advance="call"`` it is the caller's alone."""
        if self.advance == "manual":
            return self.epoch
        with nullcontext() if torch.compiler.is_compiling() else TAKING:
            epoch = self.epoch.clone()
            self.epoch += 1
        return epoch

    def next_epoch(self) -> None:
        """Go on to the next epoch."""
        with TAKING:
            self.epoch += 1

    def set_epoch(self, epoch: int) -> None:
        """Go to a given epoch, as samplers of distributed training do."""
        number = signed(check_integer("epoch", epoch, least=0) % 2**64)  # coins count epochs modulo 2^64
        with TAKING:
            self.epoch.fill_(number)

    def __prepare_scriptable__(self) -> None:
        raise TadropedgeError("TADropEdge cannot be compiled by torch.jit.script; use torch.compile or torch.export")

    def extra_repr(self) -> str:
        """Settings and state, for ``print(model)``."""
        told = self.dropping.told()
        return f"seed={int(self.seed)}, epoch={int(self.epoch)}, advance={self.advance!r}" + (
            f", {told}" if told else ""
        )

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *others: Any) -> None:
        """Load seed and epoch; a checkpoint from before the model had this module has neither, which is said."""
        if any(f"{prefix}{name}" in state_dict for name in ("seed", "epoch")):
            super()._load_from_state_dict(state_dict, prefix, *others)
            return
        warnings.warn(
            f"the checkpoint has no {prefix}seed and no {prefix}epoch: it was saved before the model had a TADropEdge, "
            f"which keeps its seed {int(self.seed)} and epoch {int(self.epoch)}; all else is loaded as usual",
            stacklevel=2,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Load what was pickled, also by version 0.1, which knew no rules."""
        known = {"dropping": Dropping(), "plans": KeptPlans()}
        super().__setstate__(known | state)  # type: ignore[no-untyped-call]


def _weights(data: Data, links: Links) -> dict[str, Any]:
    """The weights of arcs within one set of nodes, of a ``Data`` or else of its ``adj_t``, and where they are."""
    if isinstance(links.num_nodes, tuple):
        return {}
    own = getattr(data, WEIGHT, None)
    weight, called = (own, WEIGHTS) if own is not None or links.place is not None else (links.values, "data.adj_t")
    return {"weight": weight, "num_nodes": int(data.num_nodes or 0), "called": called}


def _ones(edge_index: Tensor) -> Tensor:
    return torch.ones(edge_index.shape[1], device=edge_index.device)


def _is_recorded(arcs: Arcs) -> bool:
    """Whether a CUDA graph records what is done now."""
    edge_index = arcs.edge_index
    return isinstance(edge_index, Tensor) and edge_index.is_cuda and torch.cuda.is_current_stream_capturing()
