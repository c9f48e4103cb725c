"""Transforms that write scores, keep probabilities and shift operators into a ``Data``, one number per arc.

>>> from torch_geometric.data import Data
>>> data = Data(edge_index=torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]]), num_nodes=4)
>>> data = AddKeepProbability("proportional", keep_ratio=0.5)(AddScore("degree")(data))
>>> data.edge_keep_prob.round(decimals=4).tolist()
[0.5, 0.5, 0.4167, 0.4167, 0.4167, 0.4167, 0.6667, 0.6667]
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.transforms import BaseTransform

from tadropedge._old.checks import check_path, check_tensor, check_text
from tadropedge._old.errors import TadropedgeError, lookup, show
from tadropedge._old.graph import Graph
from tadropedge._old.pyg.known import lock_for_all
from tadropedge._old.pyg.numbers import NAME, among_many
from tadropedge._old.pyg.once import Once
from tadropedge._old.pyg.rules import check_probability_settings, looks_at_degrees, probabilities
from tadropedge._old.pyg.scoring import scores_of
from tadropedge._old.pyg.shapes import WEIGHT, check_shape
from tadropedge._old.pyg.shown import in_order, listed
from tadropedge._old.pyg.traps import LARGEST, check_arc_values, tell_normalised
from tadropedge._old.pyg.views import check_rewritable, transformed
from tadropedge._old.scores.column import per_edge
from tadropedge._old.scores.solve import Score, check_settings, named, settings_for
from tadropedge._old.sensitivity import SENSITIVITY
from tadropedge._old.shift import FLOATS, NORMALIZATIONS, shift_operator
from tadropedge._old.strategies import Numbers
from tadropedge._old.strategies import Score as Strategy

NUMBERS = lock_for_all()
CARRIED = {"edge_score": 0.0, "edge_resistance": 0.0, "edge_keep_prob": 1.0}  # and what self-loops have


class OfEdges(BaseTransform):  # type: ignore[misc]
    """A transform of the arcs of a ``Data``, or of each relation of a ``HeteroData``; it counts the graphs it has seen.

    ``data.graph_number`` is 0 for the first, 1 for the next and so on, where there is none yet. :class:`TADropEdge`
    draws by it, so that graphs of a batch have coins of their own, whoever shares the batch. As a ``pre_transform`` a
    dataset is numbered once; as a ``transform`` each access has a new number, which is still valid dropping.
    """

    _count = 0  # no setting, so it is not printed

    def __init__(self) -> None:
        self._once = Once()

    weight: str | None = WEIGHT  # the attribute with the edge weights
    looks_at: str | None = None  # the score, where it looks at features

    def __call__(self, data: Any) -> Any:
        """A transformed copy of ``data``, which is not changed."""
        made = transformed(check_shape(data), super().__call__, weight=self.weight, score=self.looks_at)
        # The graphs of a batch were to be counted one by one; in a HeteroData the number would be a kind of nodes.
        if not isinstance(made, Batch | HeteroData) and NAME not in made:
            with NUMBERS:
                made[NAME], self._count = self._count, self._count + 1
        return made

    @property
    def once(self) -> Once:
        """What was said about the graphs seen so far."""
        if "_once" not in self.__dict__:  # pickled before there was one
            self._once = Once()
        return self._once


class AddScore(OfEdges):
    """Add ``data.edge_score [A]``, float64, one score for each arc of ``data.edge_index``.

    ``score`` is a name of ``tadropedge.SCORES`` or your own function, and ``settings`` are its own: see
    :func:`tadropedge.edge_scores`. A score that takes ``features`` gets ``data.x``; ``column`` may name an attribute of
    the data with one number per arc: ``AddScore("column", column="trust")``. Both directions of an edge get the same
    score and self-loops get 0; ``data.edge_weight``, where present, enters the graph, or the attribute that ``weight``
    names, or the values of ``data.adj_t``. A graph without edges gets an empty attribute. Each relation of a
    ``HeteroData`` is scored as a graph of its own, between two kinds of nodes as one of both. The input is not changed.

    As a ``pre_transform`` of a dataset it never fails on small graphs: components with fewer than q nodes get the
    lowest score of the graph, and a graph without a component of q nodes gets 0 everywhere and one warning for all of
    them. ``data.graph_number`` counts the graphs.
    """

    attribute = "edge_score"

    def __init__(
        self,
        score: Score = "aggregate",
        *,
        weight: str | None = WEIGHT,
        cache_dir: str | Path | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        known = settings_for(score, {"features": None})  # comes with the data
        self.weight = None if weight is None else check_text("weight", weight)
        check_settings(score, known | settings)
        cache_dir = None if cache_dir is None else check_path("cache_dir", cache_dir)
        self.score, self.cache_dir, self.settings = score, cache_dir, settings
        self.looks_at = named(score)[0] if "features" in known else None

    def forward(self, data: Data) -> Data:
        """Score the edges of ``data``, a shallow copy that PyG's transforms make of their input."""
        if not data.edge_index.numel():
            data[self.attribute] = nothing(data)
            return data
        graph = Graph.from_data(data)
        if graph.num_edges == 0:
            values = torch.empty(0, dtype=torch.float64, device=graph.device)
        else:
            tell_normalised(data.edge_index, getattr(data, WEIGHT, None), graph.num_nodes, self.once)
            known = settings_for(self.score, {"features": getattr(data, "x", None)}) | self.settings
            if self.score == "column" and isinstance(known["column"], str):
                known["column"] = per_edge(graph, arc_attribute(data, known["column"]), known["column"])
            values = scores_of(graph, self.score, known, cache_dir=self.cache_dir, once=self.once)
        data[self.attribute] = graph.to_arcs(values, loops=0.0)
        return data

    def __repr__(self) -> str:
        weight = {} if self.weight == WEIGHT else {"weight": self.weight}
        said = {"score": self.score, **in_order(self.score, self.settings), **weight, "cache_dir": self.cache_dir}
        return f"{type(self).__name__}({listed(said)})"


class AddResistance(AddScore):
    """Add ``data.edge_resistance [A]``: :class:`AddScore` as it was called in version 0.1.

    ``score="aggregate"`` takes ``q`` or ``desired_clusters`` and the other settings of
    :func:`tadropedge.aggregate_resistance`; ``score="effective"`` is :func:`tadropedge.effective_resistance`.
    """

    attribute = "edge_resistance"

    def __init__(
        self,
        q: int | None = None,
        *,
        desired_clusters: int | None = None,
        weights: str | None = None,
        score: Score = "aggregate",
        laplacian: str = "combinatorial",
        solver: str = "auto",
        cache_dir: str | Path | None = None,
    ) -> None:
        if weights is not None:
            warnings.warn("weights= of AddResistance is now called score=", DeprecationWarning, stacklevel=2)
            score = weights
        modal = {"laplacian": laplacian, "solver": solver}
        wanted = {"q": q, "desired_clusters": desired_clusters}
        given = {name: value for name, value in wanted.items() if value is not None}
        super().__init__(score, cache_dir=cache_dir, **(settings_for(score, wanted | modal) | given))


class AddKeepProbability(OfEdges):
    """Add ``data.edge_keep_prob [A]``, float64, from ``data.edge_score`` or else ``data.edge_resistance``.

    The settings are those of :func:`tadropedge.keep_probabilities`; ranks and shares count undirected edges,
    however often ``data.edge_index`` lists them. Self-loops are always kept. ``strategy="uniform"`` and ``"dropsens"``
    need no scores. The input is not changed.

    A ``keep_ratio`` that a small graph cannot meet with its rule is no error: where all scores are equal every edge
    gets the ratio itself, and else the graph keeps the least that the rule allows, with one warning for all such
    graphs. This holds for graphs with fewer than 64 edges, and for all but the first of a dataset.
    ``data.graph_number`` counts the graphs, and ``data.largest_keep_prob`` tells a later ``TADropEdge`` whether a
    transform has summed probabilities.
    """

    def __init__(
        self,
        strategy: str | Strategy = "cdf",
        *,
        keep_prob: Numbers | None = None,
        keep_ratio: Numbers | None = None,
        gamma: Numbers | str = "auto",
        inverse: bool = False,
        sensitivity: float = SENSITIVITY,
    ) -> None:
        super().__init__()
        self.settings: dict[str, Any] = {
            "strategy": strategy,
            "keep_prob": keep_prob,
            "keep_ratio": keep_ratio,
            "gamma": gamma,
            "inverse": inverse,
        }
        if looks_at_degrees(strategy) or sensitivity != SENSITIVITY:
            self.settings["sensitivity"] = sensitivity
        check_probability_settings(self.settings)

    def forward(self, data: Data) -> Data:
        """Compute the probabilities of ``data``, a shallow copy that PyG's transforms make of their input."""
        prob = nothing(data)
        if data.edge_index.numel():
            graph = Graph.from_data(data, weight=None)
            if graph.num_edges:
                many = among_many(data) or self._count > 0
                looked_at = graph if looks_at_degrees(self.settings["strategy"]) else self._pair_scores(data, graph)
                prob = probabilities(looked_at, self.settings, among_many=many, once=self.once)
            prob = graph.to_arcs(prob, loops=1.0)
        data.edge_keep_prob = prob
        data[LARGEST] = float(prob.max()) if prob.numel() else 0.0
        return data

    def _pair_scores(self, data: Data, graph: Graph) -> Tensor:
        name = next((name for name in ("edge_score", "edge_resistance") if getattr(data, name, None) is not None), None)
        if name is None:
            if self.settings["strategy"] == "uniform":
                return torch.ones(graph.num_edges, device=graph.device)
            raise TadropedgeError("data has no edge_score or edge_resistance; apply AddScore or AddResistance first")
        scores: Tensor = check_arc_values(name, data[name], graph.arc_pair.shape[0])
        return of_pairs(graph, scores)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({listed(self.settings)})"


class AddShift(OfEdges):
    """Add ``data.edge_shift [A']``, the entries of the shift operator S of the whole graph, one for each arc.

    Degrees and weights are then part of the entries, so a layer must not normalise again:
    ``GCNConv(..., normalize=False)(x, data.edge_index, data.edge_shift)`` is S x W. What ``TADropEdge(unbiased=True)``
    keeps of it has the mean S, which a layer that normalises the thinned graph has not.

    ``data.edge_index`` is rewritten: every edge once in each direction, and one self-loop per node for the diagonal,
    also where that is 0. Self-loops have the keep probability 1. Scores, keep probabilities and ``edge_weight`` follow;
    other attributes of arcs could not, so data that have any are refused. ``normalization`` is one of
    :func:`tadropedge.shift_operator`. The input is not changed.

    >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    >>> data = AddShift("random-walk", dtype=torch.float64)(data)
    >>> data.edge_index.tolist()
    [[0, 1, 0, 1, 2, 1, 2], [0, 0, 1, 1, 1, 2, 2]]
    >>> data.edge_shift.round(decimals=4).tolist()  # from the neighbour in the first row to the node in the second
    [0.5, 0.5, 0.3333, 0.3333, 0.3333, 0.5, 0.5]
    """

    def __init__(self, normalization: str = "gcn", *, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        lookup("normalization", normalization, NORMALIZATIONS)
        check_float_type(dtype)
        self.normalization, self.dtype = normalization, dtype

    def __call__(self, data: Any) -> Any:
        """A transformed copy of ``data``, which is not changed."""
        check_rewritable(check_shape(data), "AddShift")
        return super().__call__(data)

    def forward(self, data: Data) -> Data:
        """Write the operator into ``data``, a shallow copy that PyG's transforms make of their input."""
        graph = Graph.from_data(data)
        follow = {"edge_index", "edge_weight", NAME, LARGEST, *CARRIED}
        others = [key for key, _ in data if data.is_edge_attr(key) and key not in follow]
        if others:
            raise TadropedgeError(
                f"AddShift lists the edges anew and adds self-loops, for which data.{others[0]} has no values: apply "
                "it to data without other attributes of arcs"
            )
        shift = shift_operator(graph, normalization=self.normalization, dtype=self.dtype)
        source = shift.pattern.pair_source
        for name, loops in CARRIED.items():
            if getattr(data, name, None) is not None:
                values = check_arc_values(name, data[name], graph.arc_pair.shape[0])
                pairs = of_pairs(graph, values)
                data[name] = torch.cat((pairs, pairs.new_full((graph.num_nodes,), loops)))[source]
        if getattr(data, "edge_weight", None) is not None:  # an edge that is listed several times has their mean
            weight = torch.ones(graph.num_edges, dtype=torch.float64) if graph.weight is None else graph.weight
            both = torch.cat((weight.to(graph.device), weight.new_ones(graph.num_nodes, device=graph.device)))
            data.edge_weight = both[source].to(data.edge_weight.dtype)
        data.edge_index = torch.stack((shift.pattern.col.to(torch.int64), shift.pattern.row.to(torch.int64)))
        data.edge_shift = shift.values
        data.num_nodes = graph.num_nodes
        return data

    def __repr__(self) -> str:
        return f"AddShift({listed({'normalization': self.normalization})}, dtype={self.dtype})"


def check_float_type(dtype: object) -> None:
    """Refuse what is no floating point type of torch."""
    if not isinstance(dtype, torch.dtype) or dtype not in FLOATS:
        raise TadropedgeError(f"dtype must be a floating point type of torch, got {show(dtype, typed=False)}")


def nothing(data: Data) -> Tensor:
    """What a graph without arcs has per arc."""
    return torch.empty(0, dtype=torch.float64, device=data.edge_index.device)


def arc_attribute(data: Data, name: str) -> Tensor:
    """The attribute of ``data`` that edges are scored by."""
    if name not in data:
        raise TadropedgeError(
            f"data has no attribute {name!r} to score edges by, only {', '.join(sorted(data.keys()))}"
        )
    return check_tensor(name, data[name])


def of_pairs(graph: Graph, values: Tensor) -> Tensor:
    """Values of arcs ``[A]`` as values of pairs ``[M]``: what :meth:`tadropedge.Graph.to_arcs` has spread."""
    proper = graph.arc_pair >= 0
    pairs = values.new_zeros(graph.num_edges)
    pairs[graph.arc_pair[proper]] = values[proper]
    return pairs
