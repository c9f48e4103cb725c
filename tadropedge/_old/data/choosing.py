"""The splits on which settings are chosen, and those on which they are judged.

Split numbers 0 … K − 1 serve the choice: 0 is the dataset's own split, the others are drawn in the same way. Numbers
from K on serve the judgement. Their test nodes come, where there are enough of them, from the nodes that no choosing
split used to train or to validate; else from those that none used to validate; else from all.

Numbers from :data:`FURTHER` on serve the choice, too, between the few best settings. They train and validate on nodes
that the first K used for that, so however many there are, no judged test node has a larger part in the choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge._old.data.splits import (
    Drawn,
    Given,
    Indices,
    OfSizes,
    PerClass,
    Split,
    drawn_around,
    shuffled_labels,
    split_seeds,
    training_first,
)

Mask = npt.NDArray[np.bool_]
FURTHER = 2**20  # the number of the first further choosing split: nobody judges on as many splits


@dataclass(frozen=True, kw_only=True)
class Shared:
    """What the judgement shares with the choice of settings.

    ``what``: ``"nothing"``, ``"training"`` (test nodes that trained in the choice) or ``"validation"`` (test nodes that
    trained or validated in it); ``train`` and ``val`` are the mean shares of such nodes among the judged test nodes.
    ``choosing`` and ``judging`` count the different splits, ``None`` where new ones can always be drawn.

    >>> Shared(what="nothing", train=0.0, val=0.0, choosing=3, judging=None).words
    'Settings were chosen on 3 splits and judged on others, whose test nodes had no part in the choice.'
    """

    what: str
    train: float
    val: float
    choosing: int
    judging: int | None
    one: str = "node"

    @property
    def words(self) -> str:
        """One sentence for the reader of a report."""
        splits = "one split" if self.choosing == 1 else f"{self.choosing} splits"
        others = {None: "others", 1: "the only other one"}.get(self.judging, f"the {self.judging} others")
        start = f"Settings were chosen on {splits} and judged on {others}"
        if self.what == "nothing":
            return f"{start}, whose test {self.one}s had no part in the choice."
        overlap = "the data are too small for disjoint ones" if self.judging is None else "the file's splits overlap"
        train, val, one = f"{100 * self.train:.0f} %", f"{100 * self.val:.0f} %", self.one
        if self.what == "training":
            shared = f"no judged test {one} validated a choice, but {train} of them were training {one}s in it"
        else:
            shared = f"of the judged test {one}s, {train} were training and {val} validation {one}s in the choice"
        return f"{start}; {overlap}: {shared}."


@dataclass(frozen=True, eq=False, kw_only=True)
class Choosing:
    """Splits by number, for ``count`` choosing ones: a pure function of the number, the count and the way of drawing.

    >>> labels = torch.arange(300) % 3
    >>> splits = Choosing(labels=labels, own=OfSizes(30, 30, 60).split(labels, 0), way=OfSizes(30, 30, 60), count=2)
    >>> splits.split(1), splits.split(2), splits.shared.what
    (Split(train=30, val=30, test=60), Split(train=30, val=30, test=60), 'nothing')
    """

    labels: Tensor
    own: Split
    way: Drawn
    count: int
    one: str = "node"

    def split(self, number: int) -> Split:
        """Split ``number``."""
        way = self.way
        if isinstance(way, Given):
            return way.splits[self._place(number, len(way.splits))]
        if number == 0:
            return self.own
        seed, test_seed = split_seeds(way.seed, number)
        if number >= FURTHER:
            return self._further(way, seed, test_seed)
        if number < self.count:
            return way.split(self.labels, seed)
        nodes = _drawn(self.labels, self._pool[1], way.least, way.num_test, test_seed)
        return drawn_around(way, torch.from_numpy(np.sort(nodes)), self.labels, seed)

    def _further(self, way: PerClass | OfSizes, seed: int, val_seed: int) -> Split:
        """A split of nodes that the first choosing splits used, of which no judged test node is one."""
        what, (trained, validated) = self._pool[0], self._used
        if what == "validation":  # judged test nodes are any nodes
            return way.split(self.labels, seed)
        # Nodes that judge may train here where they did in the first splits, but never validate.
        ours, allowed = (trained | validated,) * 2 if what == "nothing" else (np.ones_like(trained), validated)
        labels = self.labels.masked_fill(torch.from_numpy(~ours), -1)
        val = torch.from_numpy(np.sort(_drawn(labels, allowed, way.least, way.num_val, val_seed)))
        train, rest = training_first(way, labels.index_fill(0, val, -1), seed)
        if not len(rest):  # nobody looks at the test nodes of a choosing split
            rest = np.setdiff1d(self.own.test.cpu().numpy(), train)
        first, last = (torch.from_numpy(np.sort(part)) for part in (train, rest[: way.num_test]))
        return Split(first, val, last)

    @property
    def choosing(self) -> int:
        """How many different splits serve the choice: a file of n splits leaves at least one to judge."""
        return min(self.count, len(self.way.splits) - 1) if isinstance(self.way, Given) else self.count

    @property
    def judging(self) -> int | None:
        """How many different splits serve the judgement; ``None``: as many as are asked for."""
        return len(self.way.splits) - self.choosing if isinstance(self.way, Given) else None

    @property
    def shared(self) -> Shared:
        """What the judgement shares with the choice."""
        trained, validated = self._used
        if isinstance(self.way, Given):
            tests = [split.test.cpu().numpy() for split in self.way.splits[self.choosing :]]
            train, val = (float(np.mean([used[test].mean() for test in tests])) for used in (trained, validated))
            what = "validation" if val else "training" if train else "nothing"
        else:
            what, pool = self._pool
            train, val = (float(used[pool].mean()) for used in (trained, validated))
        return Shared(what=what, train=train, val=val, choosing=self.choosing, judging=self.judging, one=self.one)

    def _place(self, number: int, splits: int) -> int:
        """Which of the file's splits a number stands for: the first ones choose, the others judge in turn."""
        if number < self.count or number >= FURTHER:
            return number % self.choosing
        return self.choosing + (number - self.count) % (splits - self.choosing)

    @cached_property
    def _used(self) -> tuple[Mask, Mask]:
        """Which nodes some choosing split trained on, and which some choosing split validated on, ``[N]`` each."""
        trained, validated = (np.zeros(self.labels.shape[0], dtype=np.bool_) for _ in range(2))
        for number in range(self.choosing):
            split = self.split(number)
            trained[split.train.cpu().numpy()] = True
            validated[split.val.cpu().numpy()] = True
        return trained, validated

    @cached_property
    def _pool(self) -> tuple[str, Mask]:
        """The nodes that the judged test nodes are drawn from, ``[N]``, and what they share with the choice."""
        assert isinstance(self.way, PerClass | OfSizes)
        trained, validated = self._used
        labelled = self.labels.numpy() >= 0
        for what, used in (("nothing", trained | validated), ("training", validated)):
            pool = labelled & ~used
            if len(_drawn(self.labels, pool, self.way.least, self.way.num_test, 0)) == self.way.num_test:
                return what, pool
        return "validation", labelled


def _drawn(labels: Tensor, pool: Mask, least: int, count: int, seed: int) -> Indices:
    """``count`` nodes of ``pool [N]``, or all there are, that leave ``least`` nodes of every class to train on.

    Those are taken from outside the pool first, so how many can be drawn does not depend on the seed.
    """
    order, classes = shuffled_labels(labels, seed)
    inside = pool[order]
    outside_first = np.argsort(inside, kind="stable")
    kinds = classes[outside_first]
    left = np.concatenate([outside_first[kinds == kind][:least] for kind in np.unique(kinds)])
    inside[left] = False
    return order[inside][:count]
