"""Splits: parts of the nodes, or of the samples, that train, validate and test; each a pure function of a seed.

How a dataset's splits are drawn is a way of drawing: so many of each class, given sizes, or those that its file holds.
Whoever asks for another split of the same data gets one that was drawn in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge._old.checks import check_integer, check_kind, check_list, check_runs_on, check_seed, check_whole, settle
from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.fingerprint import fingerprint

PARTS = ("train", "val", "test")
FULL = "full"  # in the place of a number of labels per class: most labels train
FULL_SHARES = (0.6, 0.2)  # of the labelled nodes, to train and to validate; the others test
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
    train, rest = _balanced(labels, per_class, seed)
    return _cut(np.concatenate((train, rest)), (len(train), num_val, num_test))


def num_classes(labels: Tensor) -> int:
    """The number of classes 0 … C − 1; there are no more of them than labels, or somebody numbered them otherwise.

    >>> num_classes(torch.tensor([0, 2, 1])), num_classes(torch.tensor([-1, -1]))
    (3, 0)
    >>> num_classes(torch.tensor([0, 2_000_000_000]))
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: a label is 2000000000, but there are only 2 labels: number the classes from 0
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
    return _cut(_covering(labels, sizes[0], seed), sizes)


def _balanced(labels: Tensor, per_class: int, seed: int) -> tuple[Indices, Indices]:
    """``per_class`` labelled nodes of each class, and all others, in a random order."""
    order, classes = shuffled_labels(labels, seed)
    num_classes(labels)  # before anything is counted class by class
    counts = np.bincount(classes)
    if counts.min() < per_class:
        raise TadropedgeError(
            f"class {counts.argmin()} has {counts.min()} labelled nodes, which is less than per_class={per_class}"
        )
    train = np.concatenate([order[classes == kind][:per_class] for kind in range(len(counts))])
    return train, order[~np.isin(order, train)]


def _covering(labels: Tensor, count: int, seed: int) -> Indices:
    """All labelled nodes in a random order of which the first ``count`` hold every class."""
    order, classes = shuffled_labels(labels, seed)
    kinds, first = np.unique(classes, return_index=True)
    if count < len(kinds):
        raise TadropedgeError(f"{count} training nodes cannot hold one of each of the {len(kinds)} classes")
    return np.concatenate((order[np.sort(first)], np.delete(order, first)))


def shuffled_labels(labels: Tensor, seed: int) -> tuple[Indices, Indices]:
    """The labelled nodes in a random order, and their classes."""
    if check_whole("labels", labels).dim() != 1:
        raise TadropedgeError(f"labels must be one class number for each node, got shape {list(labels.shape)}")
    known = labels.cpu().numpy()
    order = np.random.default_rng(check_seed(seed)).permutation(np.flatnonzero(known >= 0))
    if not len(order):
        raise TadropedgeError(f"none of the {len(known)} labels is a class (0 or more): there is nothing to split")
    return order, known[order]


def split_seeds(seed: int, number: int = 0) -> tuple[int, int]:
    """Two seeds for split ``number`` of data that somebody else made: of its other nodes, and of its test nodes.

    Labels are often made with NumPy's permutation of a small seed. A split drawn from that very permutation would
    follow the labels: the first nodes would all be of one class. NumPy guarantees that the mixing never changes.
    """
    one, two = np.random.SeedSequence(check_seed(seed), spawn_key=(number,)).generate_state(2, np.uint64)
    return int(one), int(two)


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


def check_per_class(per_class: object) -> int | str:
    """Return a number of labels per class, or ``"full"``.

    >>> check_per_class("most")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: per_class must be a whole number of at least 1, or 'full', got 'most'
    """
    if isinstance(per_class, str):
        if per_class != FULL:
            told = show(per_class, typed=False)
            raise TadropedgeError(f"per_class must be a whole number of at least 1, or {FULL!r}, got {told}")
        return per_class
    return check_integer("per_class", per_class, least=1)


def _settle_counts(way: PerClass | OfSizes, *names: str) -> None:
    """Check the counts of a way of drawing, and its seed."""
    for name in names:
        settle(way, **{name: check_integer(name, getattr(way, name), least=1)})
    settle(way, seed=check_seed(way.seed))


@dataclass(frozen=True)
class PerClass:
    """``per_class`` training nodes of each class; ``num_val`` and ``num_test`` of all others.

    >>> labels = torch.tensor([0] * 90 + [1] * 9)
    >>> PerClass(2, 10, 20).split(labels, seed=3)
    Split(train=4, val=10, test=20)
    """

    per_class: int
    num_val: int
    num_test: int
    _: KW_ONLY
    seed: int = 0  # of the splits that are drawn beside the dataset's own

    def __post_init__(self) -> None:
        _settle_counts(self, "per_class", "num_val", "num_test")

    def split(self, labels: Tensor, seed: int) -> Split:
        """Draw one."""
        return random_split(labels, self.per_class, self.num_val, self.num_test, seed=seed)

    @property
    def least(self) -> int:
        """How many training nodes every class needs."""
        return self.per_class

    @property
    def words(self) -> str:
        """How splits are drawn, in words."""
        return f"{self.per_class} of each class to train, {self.num_val} others to validate, {self.num_test} to test"


@dataclass(frozen=True)
class OfSizes:
    """``train``, ``num_val`` and ``num_test`` nodes, drawn uniformly but for this: every class has a training node.

    >>> OfSizes(10, 20, 30).split(torch.tensor([0] * 90 + [1] * 9), seed=3)
    Split(train=10, val=20, test=30)
    """

    train: int
    num_val: int
    num_test: int
    _: KW_ONLY
    seed: int = 0  # of the splits that are drawn beside the dataset's own

    def __post_init__(self) -> None:
        _settle_counts(self, "train", "num_val", "num_test")

    def split(self, labels: Tensor, seed: int) -> Split:
        """Draw one."""
        return shuffled_split(labels, (self.train, self.num_val, self.num_test), seed=seed)

    @property
    def least(self) -> int:
        """How many training nodes every class needs."""
        return 1

    @property
    def words(self) -> str:
        """How splits are drawn, in words."""
        return f"{self.train} to train, {self.num_val} to validate, {self.num_test} to test, drawn uniformly"


def full_way(labels: Tensor, *, seed: int = 0) -> OfSizes:
    """60 % of the labelled nodes to train, 20 % to validate and the others to test, drawn uniformly.

    >>> full_way(torch.tensor([0] * 90 + [1] * 9 + [-1]))
    OfSizes(train=59, num_val=20, num_test=20, seed=0)
    """
    count = int((labels >= 0).sum())
    train, val = (round(share * count) for share in FULL_SHARES)
    if min(train, val, count - train - val) < 1:
        raise TadropedgeError(f"per_class={FULL!r} needs at least 3 labelled nodes, got {count}")
    return OfSizes(train, val, count - train - val, seed=seed)


@dataclass(frozen=True, eq=False, repr=False)
class Given:
    """The splits that the file holds: there are no others."""

    splits: Sequence[Split]

    def __post_init__(self) -> None:
        splits = check_list("splits", self.splits, "splits")
        if len(splits) < 2:
            raise TadropedgeError(f"splits must be two or more, got {len(splits)}: one is the dataset's own split")
        settle(self, splits=tuple(check_kind("each of splits", one, Split) for one in splits))

    @property
    def words(self) -> str:
        """Where splits come from, in words."""
        return f"the {len(self.splits)} splits of the file"

    def __repr__(self) -> str:
        """Changes with every one of them, as that of the other ways changes with all that they draw from."""
        parts = {f"{name}{place}": part for place, one in enumerate(self.splits) for name, part in one.parts()}
        return f"Given({len(self.splits)} splits, {fingerprint(**parts)[:16]})"


Drawn = PerClass | OfSizes | Given


def way_of(split: Split, labels: Tensor, *, seed: int = 0) -> PerClass | OfSizes:
    """How a split that somebody made is drawn again: a balanced design as a balanced one, else by its sizes.

    >>> way_of(Split(torch.tensor([0, 1]), torch.tensor([2]), torch.tensor([3, 4])), torch.tensor([0, 1, 0, 1, 1]))
    PerClass(per_class=1, num_val=1, num_test=2, seed=0)
    """
    train, val, test = split.sizes
    counts = torch.bincount(labels[split.train])
    if bool((counts == counts[0]).all()):
        return PerClass(int(counts[0]), val, test, seed=seed)
    return OfSizes(train, val, test, seed=seed)


def made_by(way: Drawn, split: Split, num_classes: int) -> bool:
    """Whether a split is the first of those given, or of the sizes that are drawn."""
    if isinstance(way, Given):
        both = zip(split.parts(), way.splits[0].parts(), strict=True)
        return all(torch.equal(mine.cpu(), theirs.cpu()) for (_, mine), (_, theirs) in both)
    train = way.per_class * num_classes if isinstance(way, PerClass) else way.train
    return split.sizes == (train, way.num_val, way.num_test)


def drawn_around(way: PerClass | OfSizes, test: Tensor, labels: Tensor, seed: int) -> Split:
    """A split whose test nodes are given: training and validation nodes are drawn from the others."""
    train, rest = training_first(way, labels.index_fill(0, test, -1), seed)
    first, second = (torch.from_numpy(np.sort(part)) for part in (train, rest[: way.num_val]))
    return Split(first, second, test)


def training_first(way: PerClass | OfSizes, labels: Tensor, seed: int) -> tuple[Indices, Indices]:
    """Training nodes, drawn from all that have a label, and the others in random order."""
    if isinstance(way, PerClass):
        return _balanced(labels, way.per_class, seed)
    order = _covering(labels, way.train, seed)
    return order[: way.train], order[way.train :]
