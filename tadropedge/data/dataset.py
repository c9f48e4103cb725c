"""A dataset: one graph, features, labels and a split, checked when it is made; splits as pure functions of a seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge.arrays import structure_fault
from tadropedge.checks import (
    check_device,
    check_integer,
    check_kind,
    check_list,
    check_positive,
    check_runs_on,
    check_seed,
    check_tensor,
    check_text,
    check_whole,
    is_plain,
    settle,
)
from tadropedge.errors import TadropedgeError, lookup, show
from tadropedge.graph import Graph

PARTS = ("train", "val", "test")
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Indices of nodes, or of samples for graph-level tasks: ``train``, ``val`` and ``test``, int64.

    >>> Split(torch.tensor([0, 1]), torch.tensor([2]), torch.tensor([3, 4, 5]))
    Split(train=2, val=1, test=3)
    """

    train: Tensor
    val: Tensor
    test: Tensor

    def __post_init__(self) -> None:
        for name, part in self.parts():
            if check_whole(f"split.{name}", part).dim() != 1 or part.dtype != torch.int64 or not part.numel():
                raise TadropedgeError(
                    f"split.{name} must be a list of indices (int64, not empty), "
                    f"got {part.dtype} of shape {list(part.shape)}"
                )
            if int(part.min()) < 0:
                raise TadropedgeError(f"split.{name} must hold indices of at least 0, got {int(part.min())}")

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many there are in each part."""
        return self.train.shape[0], self.val.shape[0], self.test.shape[0]

    def parts(self) -> Iterator[tuple[str, Tensor]]:
        """Each part with its name."""
        return ((name, getattr(self, name)) for name in PARTS)

    def to(self, device: torch.device | str) -> Split:
        """Return the same split on another device."""
        device = check_runs_on(device)
        return Split(*(part.to(device) for _, part in self.parts()))

    def __repr__(self) -> str:
        return f"Split({', '.join(f'{name}={part.shape[0]}' for name, part in self.parts())})"


def check_split(split: Split, labels: Tensor, num_classes: int, what: str) -> None:
    """Check ``split`` against ``labels``, the labels of all nodes or samples; ``what`` names one of them."""
    count = labels.shape[0]
    owner = torch.full((count,), -1)  # the part that each node is in
    for place, (name, part) in enumerate(split.parts()):
        outside = part[part >= count]
        if outside.numel():
            raise TadropedgeError(
                f"split.{name} holds the {what} {int(outside[0])}, but there are {count}: "
                f"indices run from 0 to {count - 1}"
            )
        bare = part[labels[part] < 0]
        if bare.numel():
            raise TadropedgeError(f"split.{name} holds the {what} {int(bare[0])}, which has no label")
        here = part.cpu()
        taken = here[owner[here] >= 0]
        if taken.numel():
            other = PARTS[int(owner[taken[0]])]
            raise TadropedgeError(
                f"the {what} {int(taken[0])} is in split.{other} and in split.{name}: parts must be disjoint"
            )
        owner[here] = place
        repeated = len(here) - int((owner == place).sum())
        if repeated:
            raise TadropedgeError(f"split.{name} holds {repeated} {what} indices more than once")
    missing = (torch.bincount(labels[split.train], minlength=num_classes) == 0).nonzero()
    if missing.numel():
        raise TadropedgeError(
            f"class {int(missing[0])} has no training {what}: split.train must hold one of each of the "
            f"{num_classes} classes"
        )


def random_split(
    labels: Tensor, per_class: int = 20, num_val: int = 500, num_test: int = 1000, *, seed: int = 0
) -> Split:
    """Draw ``per_class`` training nodes of each class, then validation and test from all other labelled nodes.

    >>> split = random_split(torch.tensor([0, 1, 0, 1, 0, -1]), per_class=1, num_val=1, num_test=2, seed=0)
    >>> split.sizes
    (2, 1, 2)
    """
    per_class = check_integer("per_class", per_class, least=1)
    num_val, num_test = check_integer("num_val", num_val, least=1), check_integer("num_test", num_test, least=1)
    order, classes = _shuffled(labels, seed)
    num_classes(labels)  # before anything is counted class by class
    counts = np.bincount(classes)
    if counts.min() < per_class:
        raise TadropedgeError(
            f"class {counts.argmin()} has {counts.min()} labelled nodes, which is less than per_class={per_class}"
        )
    train = np.concatenate([order[classes == kind][:per_class] for kind in range(len(counts))])
    return _cut(np.concatenate((train, order[~np.isin(order, train)])), (len(train), num_val, num_test))


def num_classes(labels: Tensor) -> int:
    """The number of classes 0 … C − 1; there are no more of them than labels, or somebody numbered them otherwise.

    >>> num_classes(torch.tensor([0, 2, 1])), num_classes(torch.tensor([-1, -1]))
    (3, 0)
    >>> num_classes(torch.tensor([0, 2_000_000_000]))
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: a label is 2000000000, but there are only 2 labels: number the classes from 0
    """
    most = int(labels.max()) if labels.numel() else -1
    if most >= labels.numel():
        raise TadropedgeError(
            f"a label is {most}, but there are only {labels.numel()} labels: number the classes from 0"
        )
    return most + 1


def shuffled_split(labels: Tensor, sizes: tuple[int, int, int], *, seed: int = 0) -> Split:
    """Draw a split of the given ``sizes`` (train, val, test) uniformly, such that every class has a training node.

    The first node of each class moves to the front of a random order: that leaves the training set as drawn wherever
    it already holds every class.

    >>> labels = torch.tensor([0] * 90 + [1] * 9 + [2])
    >>> split = shuffled_split(labels, (10, 20, 30), seed=1)
    >>> split.sizes, labels[split.train].unique().tolist()
    ((10, 20, 30), [0, 1, 2])
    """
    sizes = check_sizes("sizes", sizes)
    order, classes = _shuffled(labels, seed)
    kinds, first = np.unique(classes, return_index=True)
    if sizes[0] < len(kinds):
        raise TadropedgeError(f"{sizes[0]} training nodes cannot hold one of each of the {len(kinds)} classes")
    return _cut(np.concatenate((order[np.sort(first)], np.delete(order, first))), sizes)


def _shuffled(labels: Tensor, seed: int) -> tuple[Indices, Indices]:
    """The labelled nodes in a random order, and their classes."""
    if check_whole("labels", labels).dim() != 1:
        raise TadropedgeError(f"labels must be one class number for each node, got shape {list(labels.shape)}")
    known = labels.cpu().numpy()
    order = np.random.default_rng(check_seed(seed)).permutation(np.flatnonzero(known >= 0))
    if not len(order):
        raise TadropedgeError(f"none of the {len(known)} labels is a class (0 or more): there is nothing to split")
    return order, known[order]


def check_sizes(name: str, sizes: object) -> tuple[int, int, int]:
    """Return the sizes of the three parts of a split."""
    listed = check_list(name, sizes, "three whole numbers")
    if len(listed) != len(PARTS):
        raise TadropedgeError(f"{name} must be three whole numbers, for {', '.join(PARTS)}, got {show(sizes)}")
    named = ((f"{name}: the size of split.{part}", size) for part, size in zip(PARTS, listed, strict=True))
    train, val, test = (check_integer(part, size, least=1) for part, size in named)
    return train, val, test


def _cut(order: Indices, sizes: tuple[int, int, int]) -> Split:
    """The first, second and third run of ``order`` as a split, each sorted."""
    sizes = check_sizes("sizes", sizes)
    if sum(sizes) > len(order):
        raise TadropedgeError(
            f"a split of {sizes[0]} + {sizes[1]} + {sizes[2]} nodes needs {sum(sizes)} labelled ones, "
            f"but there are {len(order)}"
        )
    ends = np.cumsum(sizes)
    return Split(*(torch.from_numpy(np.sort(part)) for part in np.split(order[: ends[-1]], ends[:-1])))


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A graph with features, labels and a split.

    * ``level``: ``"node"``, one label for each node, or ``"graph"``, one label for each signal on the graph;
    * ``features``: float32, ``[N, F]`` dense or CSR for nodes, ``[S, N, F]`` dense for S signals;
    * ``labels``: int64 ``[N]`` or ``[S]``, 0 … ``num_classes`` − 1; −1 stands for no label;
    * ``split``: the default split; ``random_split`` and ``shuffled_split`` make others;
    * ``gamma``: around which value the paper searches γ, where it says so;
    * ``class_names``: the user's own names of the classes, where the input had names.

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
        _check_features(self.features, self.graph, self.level)
        _check_labels(self, one)
        check_split(self.split, self.labels, self.num_classes, one)

    @property
    def num_features(self) -> int:
        """F, the number of features of a node."""
        return self.features.shape[-1]

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
        return replace(
            self, **{name: getattr(self, name).to(device) for name in ("graph", "features", "labels", "split")}
        )

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
