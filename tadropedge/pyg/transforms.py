"""Transforms that write scores and keep probabilities into a ``Data``, one number per arc.

They are the way of mini-batches, and of datasets of many graphs: scored once, as a whole, then dropped by
``DropEdge(keep_prob="edge_keep_prob")``.

>>> from torch_geometric.data import Data
>>> data = Data(edge_index=torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]]), num_nodes=4)
>>> data = AddKeepProbability("degree-proportional", keep_ratio=0.5)(data)
>>> data.edge_keep_prob.round(decimals=4).tolist()
[0.5, 0.5, 0.4167, 0.4167, 0.4167, 0.4167, 0.6667, 0.6667]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.data.data import BaseData
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.transforms import BaseTransform

from tadropedge.dropping import Dropping
from tadropedge.errors import TadropedgeError, show
from tadropedge.graph import Graph
from tadropedge.pyg.model_checks import warn_normalized
from tadropedge.pyg.shapes import Link, joined
from tadropedge.pyg.stores import links_of


class _OfArcs(BaseTransform):  # type: ignore[misc, unused-ignore]
    """Writes what a :class:`Dropping` finds for the arcs of a ``Data``, or of each relation of a ``HeteroData``.

    ``attribute`` is the name of what it writes; self-loops get ``loops``.
    """

    attribute: str
    loops: float

    def __init__(self, dropping: Dropping, weight: str | None) -> None:
        self.dropping, self.weight = dropping, weight

    def __call__(self, data: Any) -> Any:
        """A shallow copy of ``data`` with one attribute more; a ``Batch`` is scored as its graphs are."""
        if isinstance(data, Batch) and hasattr(data, "_slice_dict"):
            return Batch.from_data_list([self(each) for each in data.to_data_list()])
        if not isinstance(data, BaseData):
            raise TadropedgeError(f"expected a Data or a HeteroData, got {show(data)}")
        return super().__call__(data)

    def forward(self, data: Any) -> Any:
        """Write into ``data``, a shallow copy that PyG's transforms make of their input."""
        column = self.dropping.settings.get("column")
        column = column if isinstance(column, str) else None
        for store, link in list(links_of(data, weight=self.weight, prob=None, column=column, exclude=None)):
            store[self.attribute] = self._of_arcs(link)
        return data

    def _of_arcs(self, link: Link) -> Tensor:
        """The numbers of the pairs of a graph, spread over its arcs ``[A]``."""
        if not link.num_arcs:
            return torch.ones(0, dtype=torch.float64, device=link.device)
        graph, _ = link.graph(weighted=link.has_weights)
        if link.has_weights and not link.two_kinds:
            warn_normalized(link.arcs(), link.weight, graph.num_nodes)
        x = joined(link.x) if self.dropping.takes_features else None
        return graph.to_arcs(self._of_pairs(graph, features=x, column=link.column, lenient=True), loops=self.loops)

    def _of_pairs(self, graph: Graph, **given: Any) -> Tensor:
        """One number for each pair ``[M]``."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.dropping)!r})"


@functional_transform("add_edge_score")
class AddScore(_OfArcs):
    """Add ``data.edge_score [A]``, float64, one score for each arc.

    Both directions of an edge get the same score and self-loops get 0. Each relation of a ``HeteroData`` is scored as a
    graph of its own. A graph too small for its score gets equal ones, which is said once for all graphs.

    Args:
        score: a name of ``tadropedge.SCORES`` or your own function.
        weight: the attribute with the edge weights, which enter the score; ``None`` looks at none.
        settings: those of the score (``q=7``, ``column="trust"``, ``cache_dir=…``).

    >>> from torch_geometric.data import Data
    >>> AddScore("degree")(Data(edge_index=torch.tensor([[0, 1, 1], [1, 2, 1]]), num_nodes=3)).edge_score.tolist()
    [1.5, 1.5, 0.0]
    """

    attribute, loops = "edge_score", 0.0

    def __init__(
        self, score: str | Callable[..., Tensor] = "aggregate", *, weight: str | None = "edge_weight", **settings: Any
    ) -> None:
        super().__init__(Dropping(score=score, rule="cdf", settings=settings), weight)
        self.score = score

    def _of_pairs(self, graph: Graph, **given: Any) -> Tensor:
        return self.dropping.scores(graph, **given)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({show(self.score, typed=False)})"


@functional_transform("add_edge_keep_prob")
class AddKeepProbability(_OfArcs):
    """Add ``data.edge_keep_prob [A]``, float64: the probability of keeping each arc, for ``DropEdge(keep_prob=…)``.

    Self-loops have 1. Each relation of a ``HeteroData`` is a graph of its own. A graph that is too small for its score
    or its budget keeps the least that its rule allows, which is said once for all graphs.

    ``data.largest_keep_prob`` tells a later :class:`DropEdge` whether a transform has summed probabilities.

    Args:
        method: score and rule, by their name in the grammar of :mod:`tadropedge.dropping`. ``"column-cdf"`` with
            ``column="edge_score"`` goes by what :class:`AddScore` wrote.
        keep_prob, keep_ratio: the budget.
        weight: the attribute with the edge weights, which enter the score; ``None`` looks at none.
        settings: those of score and rule (``q=7``, ``gamma=0.1``, ``cache_dir=…``).
    """

    attribute, loops = "edge_keep_prob", 1.0

    def __init__(
        self,
        method: str | Dropping,
        *,
        keep_prob: float | None = None,
        keep_ratio: float | None = None,
        weight: str | None = "edge_weight",
        **settings: Any,
    ) -> None:
        dropping = Dropping.parse(method, keep_prob=keep_prob, keep_ratio=keep_ratio, **settings)
        if dropping.use != "dropped" or dropping.options:
            words = [dropping.use] * (dropping.use != "dropped") + list(dropping.options)
            raise TadropedgeError(
                f"{str(dropping)!r}: probabilities have no use or options: give {', '.join(words)} to DropEdge"
            )
        if dropping.is_free or dropping.is_scheduled:
            raise TadropedgeError(f"{str(dropping)!r} needs a budget, keep_prob or keep_ratio, that is one number")
        super().__init__(dropping, weight)

    def forward(self, data: Any) -> Any:
        """Write into ``data``, a shallow copy that PyG's transforms make of their input."""
        for store in super().forward(data).edge_stores:
            if (prob := store.get("edge_keep_prob")) is not None:
                store["largest_keep_prob"] = float(prob.max()) if prob.numel() else 1.0
        return data

    def _of_pairs(self, graph: Graph, **given: Any) -> Tensor:
        return self.dropping.plan(graph, **given).prob
