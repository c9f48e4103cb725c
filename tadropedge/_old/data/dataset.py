"""A dataset: one graph, features, labels and a split, checked when it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

import torch
from torch import Tensor

from tadropedge._old.arrays import structure_fault
from tadropedge._old.checks import (
    check_device,
    check_integer,
    check_kind,
    check_list,
    check_positive,
    check_runs_on,
    check_tensor,
    check_text,
    is_plain,
    settle,
)
from tadropedge._old.data.splits import PARTS as PARTS
from tadropedge._old.data.splits import Drawn, Given, OfSizes, PerClass, Split, check_split, made_by, way_of
from tadropedge._old.data.splits import check_sizes as check_sizes
from tadropedge._old.data.splits import num_classes as num_classes
from tadropedge._old.data.splits import random_split as random_split
from tadropedge._old.data.splits import shuffled_split as shuffled_split
from tadropedge._old.errors import TadropedgeError, lookup, show
from tadropedge._old.graph import Graph
from tadropedge._old.scores.column import check_column


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A graph with features, labels and a split.

    * ``level``: ``"node"``, one label for each node, or ``"graph"``, one label for each signal on the graph;
    * ``features``: float32, ``[N, F]`` dense or CSR for nodes, ``[S, N, F]`` dense for S signals;
    * ``labels``: int64 ``[N]`` or ``[S]``, 0 … ``num_classes`` − 1; −1 stands for no label;
    * ``split``: the default split;
    * ``drawn``: how it was drawn, and others are; ``None`` stands for what the split shows, see :func:`way_of`;
    * ``gamma``: around which value the paper searches γ, where it says so;
    * ``class_names``: the user's own names of the classes, where the input had names;
    * ``score_column``: one number per edge of the graph, ``[M]``, for the score ``column``, where the user has one.

    >>> graph = Graph.from_edge_index([[0, 1, 2], [1, 2, 3]])
    >>> split = Split(torch.tensor([0, 3]), torch.tensor([1]), torch.tensor([2]))
    >>> Dataset("path", graph, torch.eye(4), torch.tensor([0, 0, 1, 1]), num_classes=2, level="node", split=split)
    Dataset('path', num_nodes=4, num_edges=3, num_features=4, num_classes=2, level='node', split=(2, 1, 1))
    """

    name: str
    graph: Graph
    features: Tensor
    labels: Tensor
    _: KW_ONLY
    num_classes: int
    level: str
    split: Split
    gamma: float | None = None
    class_names: tuple[str, ...] | None = None
    drawn: Drawn | None = None
    score_column: Tensor | None = None

    def __post_init__(self) -> None:
        one = lookup("level", self.level, {"node": "node", "graph": "sample"})
        check_text("name", self.name)
        check_kind("graph", self.graph, Graph)
        check_kind("split", self.split, Split)
        check_kind("features", self.features, Tensor)
        check_tensor("labels", self.labels)
        settle(self, num_classes=check_integer("num_classes", self.num_classes, least=2))
        if self.gamma is not None:
            settle(self, gamma=check_positive("gamma", self.gamma))
        if self.class_names is not None:
            names = check_list("class_names", self.class_names, "texts")
            settle(self, class_names=tuple(check_text("each of class_names", name) for name in names))
        parts = ((f"split.{name}", part) for name, part in self.split.parts())
        for name, value in (("features", self.features), ("labels", self.labels), *parts):
            check_device(name, value, self.graph.device, "the graph")
        if self.score_column is not None:
            settle(self, score_column=check_column(self.graph, self.score_column, "score_column"))
        _check_features(self.features, self.graph, self.level)
        _check_labels(self, one)
        if self.drawn is not None and not isinstance(self.drawn, PerClass | OfSizes | Given):
            raise TadropedgeError(f"drawn must be PerClass, OfSizes or Given, got {show(self.drawn)}")
        if isinstance(self.drawn, Given):
            _check_given(self.drawn.splits, self, one)
        check_split(self.split, self.labels, self.num_classes, one)

    @property
    def way(self) -> Drawn:
        """How further splits are drawn: as ``drawn`` says if ``split`` is one of those, else as ``split`` shows."""
        if self.drawn is None or not made_by(self.drawn, self.split, self.num_classes):
            return way_of(self.split, self.labels)
        return self.drawn

    @property
    def num_features(self) -> int:
        """F, the number of features of a node."""
        return self.features.shape[-1]

    @property
    def homophily(self) -> float | None:
        """The share of edges whose ends have the same label, among those whose ends both have one.

        ``None`` where there is no such edge, or nodes have no labels.
        """
        if self.level != "node":
            return None
        ends = self.labels[self.graph.pairs]  # [2, M]
        known = (ends >= 0).all(dim=0)
        return int((ends[0] == ends[1])[known].sum()) / int(known.sum()) if bool(known.any()) else None

    @property
    def backbone(self) -> str:
        """The backbone this dataset needs: ``"gcn"`` for nodes, ``"gcnn"`` for signals on the graph."""
        return "gcn" if self.level == "node" else "gcnn"

    @property
    def device(self) -> torch.device:
        """Where graph, features, labels and split lie."""
        return self.graph.device

    def to(self, device: torch.device | str) -> Dataset:
        """Return the same dataset on another device."""
        device = check_runs_on(device)
        column = None if self.score_column is None else self.score_column.to(device)
        moved = {name: getattr(self, name).to(device) for name in ("graph", "features", "labels", "split")}
        return replace(self, **moved, score_column=column)

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, num_nodes={self.graph.num_nodes}, num_edges={self.graph.num_edges}, "
            f"num_features={self.num_features}, num_classes={self.num_classes}, level={self.level!r}, "
            f"split={self.split.sizes})"
        )


def _check_features(features: Tensor, graph: Graph, level: str) -> None:
    """Check layout, type, shape and that every value is a finite number."""
    sparse = level == "node" and features.layout is torch.sparse_csr and is_plain(features.values())
    if not (sparse or is_plain(features)) or features.dtype != torch.float32:
        allowed = "dense or CSR" if level == "node" else "dense"
        raise TadropedgeError(f"features must be {allowed} float32, got {features.layout} of {features.dtype}")
    expected = "[N, F]" if level == "node" else "[S, N, F]"
    if features.dim() != len(expected.split(",")) or features.shape[-2] != graph.num_nodes or not features.shape[-1]:
        raise TadropedgeError(
            f"features have shape {list(features.shape)}: expected {expected} with N = {graph.num_nodes} nodes"
        )
    if sparse:
        parts = features.crow_indices(), features.col_indices(), features.values().numel()
        if fault := structure_fault(*parts, features.shape):
            raise TadropedgeError(f"features are not a CSR matrix of shape {list(features.shape)}: {fault}")
    values = features.values() if sparse else features
    wrong = (~torch.isfinite(values)).nonzero()
    if wrong.numel():
        place = first = wrong[0].tolist()
        if sparse:  # row and column of the stored entry, without making the matrix dense
            row = int((features.crow_indices() <= first[0]).sum()) - 1
            place = [row, int(features.col_indices()[first[0]])]
        raise TadropedgeError(f"features must be finite, got {float(values[tuple(first)])} at position {place}")


def _check_labels(dataset: Dataset, one: str) -> None:
    """Check type, length and range of the labels."""
    labels, classes, count = dataset.labels, dataset.num_classes, dataset.features.shape[0]
    if labels.dtype != torch.int64 or list(labels.shape) != [count]:
        raise TadropedgeError(
            f"labels must be int64 of shape [{count}], one for each of the {count} {one}s, "
            f"got {labels.dtype} of shape {list(labels.shape)}"
        )
    if classes > count:
        raise TadropedgeError(f"num_classes is {classes}, but there are only {count} {one}s, and each class needs one")
    wrong = ((labels < -1) | (labels >= classes)).nonzero()
    if wrong.numel():
        place = int(wrong[0])
        raise TadropedgeError(
            f"labels run from 0 to {classes - 1}, and -1 for no label, got {int(labels[place])} at position {place}"
        )
    if dataset.class_names is not None and len(dataset.class_names) != classes:
        raise TadropedgeError(f"expected {classes} class_names, got {len(dataset.class_names)}")
    for name in dataset.class_names or ():
        check_text("a class", name)


def _check_given(splits: Sequence[Split], dataset: Dataset, one: str) -> None:
    """Check every split that a file holds."""
    labels = dataset.labels.cpu()
    for place, split in enumerate(splits):
        try:
            check_split(split.to("cpu"), labels, dataset.num_classes, one)
        except TadropedgeError as error:
            raise TadropedgeError(f"of {len(splits)} splits, number {place}: {error}") from error
