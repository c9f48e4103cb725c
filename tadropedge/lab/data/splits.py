"""Splits: the nodes that train, validate and test. Three ways to make them, each a pure function of a number.

* :class:`PerClass`: so many labels of each class train; drawn afresh for every number;
* :class:`OfSizes`: parts of given sizes, drawn afresh for every number;
* :class:`Given`: the splits that the data brings, one or several.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge._support.checks import check_integer, check_seed
from tadropedge.errors import TadropedgeError

PARTS = ("train", "val", "test")
NUM_VAL = 500  # nodes that validate, where there are enough
FULL_SHARES = (0.6, 0.2)  # of the labelled nodes, to train and to validate; the others test
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Numbers of nodes: ``train``, ``val`` and ``test``, int64.

    >>> Split(torch.tensor([0, 1]), torch.tensor([2]), torch.tensor([3, 4, 5]))
    Split(train=2, val=1, test=3)
    """

    train: Tensor
    val: Tensor
    test: Tensor

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many nodes there are in each part."""
        return len(self.train), len(self.val), len(self.test)

    def parts(self) -> Iterator[tuple[str, Tensor]]:
        """Each part with its name."""
        return ((name, getattr(self, name)) for name in PARTS)

    def to(self, device: torch.device | str) -> Split:
        """The same split on another device."""
        return Split(*(part.to(device) for _, part in self.parts()))

    def __repr__(self) -> str:
        return f"Split({', '.join(f'{name}={len(part)}' for name, part in self.parts())})"


@dataclass(frozen=True)
class PerClass:
    """``per_class`` nodes of each class train; ``num_val`` of all other labelled nodes validate, ``num_test`` test.

    Without ``num_val`` a third of the others validate, at most 500; without ``num_test`` all that are left test.

    >>> labels = torch.tensor([0] * 90 + [1] * 9)
    >>> PerClass(2).split(labels, number=3), PerClass(2, 10, 20).split(labels, number=3)
    (Split(train=4, val=31, test=64), Split(train=4, val=10, test=20))
    """

    per_class: int = 20
    num_val: int | None = None
    num_test: int | None = None
    seed: int = 0
    num_splits = None

    def split(self, labels: Tensor, number: int) -> Split:
        """Split ``number``."""
        seed, left = split_seed(self.seed, number), int((labels >= 0).sum()) - self.per_class * num_classes(labels)
        num_val = max(1, min(NUM_VAL, left // 3)) if self.num_val is None else self.num_val
        num_test = max(1, left - num_val) if self.num_test is None else self.num_test
        return random_split(labels, self.per_class, num_val, num_test, seed=seed)


@dataclass(frozen=True)
class OfSizes:
    """``num_train``, ``num_val`` and ``num_test`` labelled nodes, uniform, but every class has a training node.

    >>> OfSizes(10, 20, 30).split(torch.tensor([0] * 90 + [1] * 9), number=3)
    Split(train=10, val=20, test=30)
    """

    num_train: int
    num_val: int
    num_test: int
    seed: int = 0
    num_splits = None

    def split(self, labels: Tensor, number: int) -> Split:
        """Split ``number``."""
        sizes = self.num_train, self.num_val, self.num_test
        return shuffled_split(labels, sizes, seed=split_seed(self.seed, number))


@dataclass(frozen=True, eq=False)
class Given:
    """The splits that the data brings; numbers beyond them begin again with the first."""

    splits: tuple[Split, ...]

    @property
    def num_splits(self) -> int:
        """How many there are."""
        return len(self.splits)

    def split(self, labels: Tensor, number: int) -> Split:
        """Split ``number``."""
        return self.splits[number % len(self.splits)]


Splits = PerClass | OfSizes | Given


def full_split(labels: Tensor, *, seed: int = 0) -> Given:
    """One fixed split: 60 % of the labelled nodes train, 20 % validate and the others test, drawn from the seed.

    >>> full_split(torch.tensor([0] * 90 + [1] * 9 + [-1])).splits
    (Split(train=59, val=20, test=20),)
    """
    count = int((labels >= 0).sum())
    train, val = (round(share * count) for share in FULL_SHARES)
    if min(train, val, count - train - val) < 1:
        raise TadropedgeError(f"split='full' needs at least 3 labelled nodes, got {count}", argument="split")
    return Given((shuffled_split(labels, (train, val, count - train - val), seed=split_seed(seed)),))


def split_seed(seed: int, number: int = 0) -> int:
    """The seed of split ``number``.

    Labels are often made with NumPy's permutation of a small seed. A split drawn from that very permutation would
    follow the labels: the first nodes would all be of one class. NumPy guarantees that the mixing never changes.
    """
    entropy = check_seed(seed) % 2**64
    return int(np.random.SeedSequence(entropy, spawn_key=(number,)).generate_state(2, np.uint64)[0])


def num_classes(labels: Tensor) -> int:
    """The number of classes 0 … C − 1.

    >>> num_classes(torch.tensor([0, 2, -1, 1]))
    3
    """
    return int(labels.max()) + 1 if labels.numel() else 0


def random_split(labels: Tensor, per_class: int, num_val: int, num_test: int, *, seed: int) -> Split:
    """Draw ``per_class`` training nodes of each class, then validation and test from all other labelled nodes.

    >>> random_split(torch.tensor([0, 1, 0, 1, 0, -1]), per_class=1, num_val=1, num_test=2, seed=0)
    Split(train=2, val=1, test=2)
    """
    check_integer("per_class", per_class, least=1)
    order, classes = _shuffled(labels, seed)
    counts = np.bincount(classes)
    least, needed = int(counts.min()), per_class * len(counts) + num_val + num_test
    if least < per_class or needed > len(order):
        class_has, all_have = f"class {counts.argmin()} has {least}", f"{needed} are needed, there are {len(order)}"
        raise TadropedgeError(
            f"too few labelled nodes for per_class={per_class}: {class_has if least < per_class else all_have}; say a "
            "smaller per_class, or split='full'",
            argument="per_class",
        )
    train = np.concatenate([order[classes == kind][:per_class] for kind in range(len(counts))])
    rest = order[~np.isin(order, train)]
    return _cut(np.concatenate((train, rest)), (len(train), num_val, num_test))


def shuffled_split(labels: Tensor, sizes: tuple[int, int, int], *, seed: int) -> Split:
    """Draw a split of ``sizes`` (train, val, test) uniformly, such that every class has a training node.

    The first node of each class moves to the front of a random order: that leaves the training set as drawn wherever
    it already holds every class.

    >>> labels = torch.tensor([0] * 90 + [1] * 9 + [2])
    >>> split = shuffled_split(labels, (10, 20, 30), seed=1)
    >>> split.sizes, labels[split.train].unique().tolist()
    ((10, 20, 30), [0, 1, 2])
    """
    order, classes = _shuffled(labels, seed)
    kinds, first = np.unique(classes, return_index=True)
    if sizes[0] < len(kinds):
        raise TadropedgeError(f"{sizes[0]} training nodes cannot hold one of each of the {len(kinds)} classes")
    return _cut(np.concatenate((order[np.sort(first)], np.delete(order, first))), sizes)


def check_split(split: Split, labels: Tensor) -> None:
    """Check the parts of a split against each other and against the labels of all nodes."""
    count, classes = len(labels), num_classes(labels)
    owner = torch.full((count,), -1)  # the part that each node is in
    for place, (name, part) in enumerate(split.parts()):
        if part.dim() != 1 or part.dtype != torch.int64 or not part.numel():
            got = f"{part.dtype} of shape {list(part.shape)}"
            raise TadropedgeError(f"split.{name} must be a list of node numbers (int64, not empty), got {got}")
        outside = part[(part < 0) | (part >= count)]
        if outside.numel():
            raise TadropedgeError(f"split.{name} holds node {int(outside[0])}; nodes run from 0 to {count - 1}")
        bare = part[labels[part] < 0]
        if bare.numel():
            raise TadropedgeError(f"split.{name} holds node {int(bare[0])}, which has no label")
        taken = part[owner[part] >= 0]
        if taken.numel():
            other = PARTS[int(owner[taken[0]])]
            raise TadropedgeError(f"node {int(taken[0])} is in split.{other} and in split.{name}")
        owner[part] = place
        if (repeated := len(part) - int((owner == place).sum())) > 0:
            raise TadropedgeError(f"split.{name} holds {repeated} nodes more than once")
    missing = (torch.bincount(labels[split.train], minlength=classes) == 0).nonzero()
    if missing.numel():
        raise TadropedgeError(f"class {int(missing[0])} has no training node: split.train needs one of each class")


def _shuffled(labels: Tensor, seed: int) -> tuple[Indices, Indices]:
    """The labelled nodes in a random order, and their classes."""
    known = labels.cpu().numpy()
    order = np.random.default_rng(seed).permutation(np.flatnonzero(known >= 0))
    return order, known[order]


def _cut(order: Indices, sizes: tuple[int, int, int]) -> Split:
    """The first, second and third run of ``order`` as a split, each sorted."""
    for name, size in zip(PARTS, sizes, strict=True):
        check_integer(f"the size of split.{name}", size, least=1)
    if sum(sizes) > len(order):
        told = " + ".join(map(str, sizes))
        raise TadropedgeError(f"a split of {told} nodes needs {sum(sizes)} labelled ones, there are {len(order)}")
    ends = np.cumsum(sizes)
    return Split(*(torch.from_numpy(np.sort(part)) for part in np.split(order[: ends[-1]], ends[:-1])))
