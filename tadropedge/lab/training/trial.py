"""What is trained, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tadropedge._support.checks import check_integer, check_kind, check_mapping, check_number, check_seed
from tadropedge.dropping import Dropping
from tadropedge.errors import TadropedgeError, lookup
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.registry import MEASURES

Value = bool | int | float | str
Array = npt.NDArray[Any]
KEEPS = ("measure", "loss")
ALL = -1  # the fan-out that takes every neighbour
PRECISIONS = ("highest", "high")


@dataclass(frozen=True, kw_only=True)
class MiniBatch:
    """Mini-batches of ``size`` training nodes, with a ``fanout`` for each hop from them: the most neighbours of a node.

    As in PyTorch Geometric, the first number is for the nodes of the step themselves, and −1 takes all neighbours. One
    number alone is for all hops.
    """

    size: int = 1024
    fanout: tuple[int, ...] = (10,)

    def __post_init__(self) -> None:
        check_integer("size", self.size, least=1)
        if not check_kind("fanout", self.fanout, tuple):
            raise TadropedgeError("fanout needs a number for each hop, or one for all", argument="fanout")
        for each in self.fanout:
            check_integer("fanout", each, least=ALL)
            if each == 0:
                raise TadropedgeError(f"fanout must be at least 1, or {ALL} for all, got 0", argument="fanout")

    def of_hops(self, hops: int) -> tuple[int, ...]:
        """The fan-out of each of so many hops; refused where another number of them is given.

        >>> MiniBatch(fanout=(15, 10)).of_hops(2), MiniBatch(fanout=(-1,)).of_hops(3)
        ((15, 10), (-1, -1, -1))
        >>> MiniBatch(fanout=(15, 10)).of_hops(3)
        Traceback (most recent call last):
        tadropedge.errors.TadropedgeError: fanout has 2 numbers (15,10), but the network looks 3 hops far: give 1, or 3
        """
        if len(self.fanout) == 1:
            return self.fanout * hops
        if len(self.fanout) != hops:
            listed = ",".join(map(str, self.fanout))
            far = f"{hops} hop{'s' * (hops != 1)}"
            raise TadropedgeError(
                f"fanout has {len(self.fanout)} numbers ({listed}), but the network looks {far} far: give 1"
                f"{f', or {hops}' * (hops > 1)}",
                argument="fanout",
            )
        return self.fanout


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How all trials of a batch are trained.

    * ``keep``: the epoch that is kept, and the trial that is chosen, is that of the best validation score (``measure``,
      evaluated at every epoch of the first tenth and every fifth epoch afterwards) or that of the lowest validation
      loss (``loss``, evaluated at every epoch: the paper's rule);
    * ``rungs``: epochs after which the worst half stops of those trials of one search that train as one program;
    * ``precision``: of matrix products on a GPU, ``"high"`` is TF32.
    """

    epochs: int = 400
    measure: str = "accuracy"
    keep: str = "measure"
    rungs: tuple[int, ...] = ()
    mini_batch: MiniBatch | None = None
    precision: str = "highest"

    def __post_init__(self) -> None:
        check_integer("epochs", self.epochs, least=1)
        lookup("measure", self.measure, dict.fromkeys(MEASURES))
        lookup("keep", self.keep, dict.fromkeys(KEEPS))
        lookup("precision", self.precision, dict.fromkeys(PRECISIONS))
        if list(self.rungs) != sorted(set(self.rungs)) or any(not 0 < rung < self.epochs for rung in self.rungs):
            raise TadropedgeError(f"rungs are rising numbers of epochs below {self.epochs}, got {self.rungs}")

    def shortened(self, share: float) -> TrainingSettings:
        """The same with a share of the epochs.

        >>> TrainingSettings(epochs=400, rungs=(50, 133)).shortened(0.1)
        TrainingSettings(epochs=40, measure='accuracy', keep='measure', rungs=(5, 13), mini_batch=None, \
precision='highest')
        """
        if share == 1:
            return self
        epochs = max(1, round(share * self.epochs))
        rungs = sorted({round(share * rung) for rung in self.rungs})
        return replace(self, epochs=epochs, rungs=tuple(rung for rung in rungs if 0 < rung < epochs))

    def evaluates(self, epoch: int) -> bool:
        """Whether an epoch (from 0) ends with an evaluation; the last one and those before a rung always do.

        >>> [epoch for epoch in range(40) if TrainingSettings(epochs=40).evaluates(epoch)]
        [0, 1, 2, 3, 4, 9, 14, 19, 24, 29, 34, 39]
        """
        done = epoch + 1
        return self.keep == "loss" or epoch < self.epochs / 10 or done % 5 == 0 or done in (*self.rungs, self.epochs)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One training: a candidate whose budget is said, its hyper-parameters, its seed and its split.

    ``settings`` are those of the network, and of the candidate's way of training (``draws``, ``consistency_weight``,
    ``temperature``, ``balance``). ``group`` and ``replicate`` name the search that a trial belongs to, whose trials a
    rung compares; a group without a name is that of the candidate without its budget.
    """

    candidate: Candidate = field(default_factory=Candidate)
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    dropout: float = 0.5
    settings: Mapping[str, Value] = field(default_factory=dict, hash=False)
    seed: int = 0
    split: int = 0
    replicate: int = 0
    group: str = ""

    def __post_init__(self) -> None:
        check_number("learning_rate", self.learning_rate, 0, 3e38)
        check_number("weight_decay", self.weight_decay, 0, 3e38)
        check_number("dropout", self.dropout, 0, 1)
        check_seed(self.seed)
        check_mapping("settings", self.settings)
        check_kind("candidate", self.candidate, Candidate)
        if self.candidate.is_auto or self.candidate.dropping.is_free:
            kind = "is a search over ways of dropping" if self.candidate.is_auto else "has no budget"
            raise TadropedgeError(
                f"'{self.candidate}' {kind}: to train one model, name a method and its budget, such as "
                "degree-proportional@0.5"
            )

    @property
    def search(self) -> tuple[str, int]:
        """The search that this trial belongs to.

        >>> Trial(candidate=Candidate.parse("gat+dropedge@0.3:exact"), replicate=4).search
        ('gat+dropedge:exact', 4)
        """
        return self.group or str(self.free), self.replicate

    @property
    def free(self) -> Candidate:
        """Its candidate without the budget."""
        dropping = replace(self.candidate.dropping, keep_prob=None, keep_ratio=None)
        return replace(self.candidate, dropping=dropping)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, from which :meth:`from_dict` makes an equal trial.

        >>> trial = Trial(candidate=Candidate(dropping=Dropping.parse("cdf", keep_prob=0.7)), seed=3)
        >>> Trial.from_dict(trial.as_dict()) == trial
        True
        """
        dropping = self.candidate.dropping
        budget = {"keep_prob": dropping.keep_prob, **dropping.settings}
        plain = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "candidate"}
        plain["settings"] = dict(self.settings)
        return {
            "candidate": str(self.candidate),
            "dropping": {k: v for k, v in budget.items() if v is not None},
            **plain,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Trial:
        """The trial that :meth:`as_dict` has written."""
        own = dict(plain)
        candidate, dropping = Candidate.parse(own.pop("candidate")), own.pop("dropping", {})
        made = replace(candidate, dropping=Dropping.parse(candidate.dropping, **dropping)) if dropping else candidate
        return cls(candidate=made, **own)


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """What came of a trial.

    ``curves`` hold ``train_loss``, ``val_loss``, ``val_score`` and ``test_score`` ``[epochs]``, NaN where an epoch had
    no evaluation. ``best_epoch`` is the kept one; ``stopped`` the number of epochs after which a rung stopped the
    trial; ``rungs`` are those that could have, none where its search did not train as one program; ``failed`` says
    that a loss was not finite. ``seconds`` are its share of those of its batch. ``state`` is the kept model, where it
    was asked for.
    """

    trial: Trial
    curves: Mapping[str, Array]
    best_epoch: int
    failed: bool = False
    stopped: int | None = None
    rungs: tuple[int, ...] = ()
    kept_share: float = 1.0
    seconds: float = 0.0
    state: Mapping[str, Array] | None = None

    @property
    def val_score(self) -> float:
        """The validation score of the kept epoch; NaN where training failed."""
        return float("nan") if self.failed else float(self.curves["val_score"][self.best_epoch])

    @property
    def test_score(self) -> float:
        """The test score of the kept epoch; NaN where training failed."""
        return float("nan") if self.failed else float(self.curves["test_score"][self.best_epoch])

    @property
    def val_loss(self) -> float:
        """The lowest validation loss; infinite where training failed."""
        return float("inf") if self.failed else float(np.nanmin(self.curves["val_loss"]))
