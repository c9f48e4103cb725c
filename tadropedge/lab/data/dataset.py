"""A dataset: one graph with features, labels and a way to split its nodes, checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from tadropedge._support.checks import check_device, check_integer, check_runs_on, check_tensor
from tadropedge._support.fingerprint import fingerprint
from tadropedge.errors import TadropedgeError, show
from tadropedge.graph import Graph, check_graph
from tadropedge.lab.data.splits import Given, PerClass, Split, Splits, check_split, num_classes


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A graph with features, labels and a way to split its nodes.

    * ``features``: float32 ``[N, F]``, dense or CSR;
    * ``labels``: int64 ``[N]``, 0 … C − 1; −1 stands for no label (data to predict on has none);
    * ``splits``: how nodes are split: :class:`~tadropedge.lab.data.splits.PerClass` (20 labels of each class train),
      ``OfSizes`` or ``Given``;
    * ``given``: the splits that the data brings, by the names ``own`` and ``full``;
    * ``class_names``: what the classes are called, where the data says so;
    * ``column``: one number per edge ``[M]`` for the score ``column``, where the data has one;
    * ``read``: what was read from a file, in a few words.

    >>> graph = Graph.from_edge_index([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
    >>> data = Dataset("path", graph, torch.eye(6), torch.tensor([0, 0, 0, 1, 1, 1]), splits=PerClass(1))
    >>> data
    Dataset('path', num_nodes=6, num_edges=5, num_features=6, num_classes=2)
    >>> data.split(0), data.split(0).train.tolist(), data.split(1).train.tolist()
    (Split(train=2, val=1, test=3), [0, 4], [1, 4])
    """

    name: str
    graph: Graph
    features: Tensor
    labels: Tensor
    _: KW_ONLY
    splits: Splits = field(default_factory=PerClass)
    given: Mapping[str, Given] = field(default_factory=dict)
    class_names: Sequence[str] | None = None
    column: Tensor | None = None
    read: str = ""

    def __post_init__(self) -> None:
        check_graph(self.graph)
        check_features(self.features, self.graph.num_nodes)
        _check_labels(self.labels, self.graph.num_nodes)
        for name, value in (("features", self.features), ("labels", self.labels)):
            check_device(name, value, self.graph.device, "the graph")
        if self.class_names is not None and len(self.class_names) != self.num_classes:
            named, there = len(self.class_names), self.num_classes
            raise TadropedgeError(f"{self.name}: expected {there} class_names, got {named}")
        if isinstance(self.splits, Given):
            labels = self.labels.cpu()
            for number, split in enumerate(self.splits.splits):
                try:
                    check_split(split, labels)
                except TadropedgeError as error:
                    which = f" number {number} of {self.num_splits}" if self.num_splits != 1 else ""
                    raise TadropedgeError(f"{self.name}: the split{which}: {error}", argument="split") from error

    def split(self, number: int) -> Split:
        """Split ``number``, a pure function of the number, where the labels lie."""
        number = check_integer("the number of a split", number, least=0)
        if self.num_classes < 2:
            got = self.num_classes or "no labels"
            raise TadropedgeError(f"{self.name}: labels must name at least two classes to train on, got {got}")
        return self.splits.split(self.labels, number).to(self.device)

    @property
    def num_splits(self) -> int | None:
        """How many different splits there are: any number (``None``), one, or as many as the data brings."""
        return self.splits.num_splits

    @cached_property
    def num_classes(self) -> int:
        """C, the number of classes."""
        return num_classes(self.labels)

    @property
    def num_features(self) -> int:
        """F, the number of features of a node."""
        return self.features.shape[1]

    @property
    def sizes(self) -> str:
        """How large the graph is, in words."""
        return f"{self.graph.num_nodes:,} nodes, {self.graph.num_edges:,} edges"

    @property
    def node_names(self) -> Sequence[object] | None:
        """What the nodes are called, where the data says so."""
        return self.graph.node_ids

    @property
    def homophily(self) -> float | None:
        """The share of edges that join nodes of one class, of those between labelled nodes; ``None`` without any."""
        ends = self.labels[self.graph.pairs]
        known = (ends >= 0).all(dim=0)
        return int((ends[0] == ends[1])[known].sum()) / int(known.sum()) if bool(known.any()) else None

    @property
    def device(self) -> torch.device:
        """Where graph, features and labels lie."""
        return self.graph.device

    def to(self, device: torch.device | str) -> Dataset:
        """The same dataset on another device."""
        device = check_runs_on(device)
        if device == self.device:
            return self
        column = None if self.column is None else self.column.to(device)
        moved = {name: getattr(self, name).to(device) for name in ("graph", "features", "labels")}
        return replace(self, **moved, column=column)

    def fingerprint(self) -> str:
        """A hash of all that decides an outcome: graph, features, labels, splits and the column of scores."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        drawn: object = self.splits
        if isinstance(drawn, Given):
            drawn = [list(split.parts()) for split in drawn.splits]
        return fingerprint(
            graph=self.graph.fingerprint,
            features=self.features,
            labels=self.labels,
            splits=drawn,
            column=self.column,
        )

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, num_nodes={self.graph.num_nodes}, num_edges={self.graph.num_edges}, "
            f"num_features={self.num_features}, num_classes={self.num_classes})"
        )


def check_features(features: object, num_nodes: int) -> None:
    """Refuse features that are not float32 ``[N, F]``, dense or CSR, and finite.

    >>> check_features(torch.ones(3, 2), 4)
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: features must be float32 [4, F], one row per node, dense or CSR, got \
torch.float32 (torch.strided) of shape [3, 2]
    """
    if not isinstance(features, Tensor):
        raise TadropedgeError(f"features must be a tensor, got {show(features)}", argument="features")
    sparse, shape = features.layout is torch.sparse_csr, list(features.shape)
    fits = len(shape) == 2 and shape[0] == num_nodes and shape[1] > 0
    if not fits or features.dtype != torch.float32 or not (sparse or features.layout is torch.strided):
        got = f"{features.dtype} ({features.layout}) of shape {shape}"
        wanted = f"float32 [{num_nodes}, F], one row per node, dense or CSR"
        raise TadropedgeError(f"features must be {wanted}, got {got}", argument="features")
    values = features
    if sparse:  # compiled products would read beyond arrays that do not fit together
        crow, col, values = features.crow_indices(), features.col_indices(), features.values()
        try:
            torch._validate_sparse_csr_tensor_args(crow, col, values, features.shape)
        except RuntimeError as error:
            first = str(error).splitlines()[0]
            raise TadropedgeError(f"features are not a CSR matrix: {first}", argument="features") from error
    wrong = (~torch.isfinite(values)).nonzero()
    if wrong.numel():
        place = tuple(wrong[0].tolist())
        row = int((features.crow_indices() <= place[0]).sum()) - 1 if sparse else place[0]
        raise TadropedgeError(f"features must be finite, got {float(values[place])} at node {row}", argument="features")


def _check_labels(labels: object, num_nodes: int) -> None:
    """Check type, length and range: nobody has more classes than nodes, so a larger label is no class number."""
    if not isinstance(labels, Tensor):
        raise TadropedgeError(f"labels must be a tensor, got {show(labels)}", argument="labels")
    check_tensor("labels", labels)
    if labels.dtype != torch.int64 or list(labels.shape) != [num_nodes]:
        got = f"{labels.dtype} of shape {list(labels.shape)}"
        raise TadropedgeError(f"labels must be int64 [{num_nodes}], one per node, got {got}", argument="labels")
    wrong = ((labels < -1) | (labels >= num_nodes)).nonzero()
    if wrong.numel():
        place = int(wrong[0])
        raise TadropedgeError(
            f"labels number the classes from 0, and -1 stands for none, got {int(labels[place])} at node {place}",
            argument="labels",
        )
