"""What is trained: the settings that all trials of a batch share, those of each trial, and the outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tadropedge._old.checks import check_integer, check_kind, check_number, check_positive, check_seed, check_table, settle
from tadropedge._old.errors import TadropedgeError, lookup
from tadropedge._old.fingerprint import fingerprint, of_this_package
from tadropedge._old.method import Method
from tadropedge._old.nn.network import Network, Setting, Sizes, Value
from tadropedge._old.registry import NETWORKS, SCORES, STRATEGIES

SELECTIONS = {"evaluation": None, "training": None}
MOST_FLOAT = 3e38  # of numbers that training holds in float32
MOST = 2**31 - 1  # of a count of layers, units or epochs
METRICS = ("train_loss", "val_loss", "val_accuracy", "test_accuracy")
SCORED = ("val_score", "test_score")  # what is recorded beside them where the measure is not accuracy


@dataclass(frozen=True)
class Architecture:
    """The network of all methods that do not name their own: its depth, its width, and its own settings.

    >>> Architecture("gcnn", layers=1, hidden=32, settings={"order": 3}).settings_of(Trial())
    {'normalization': 'gcn', 'order': 3}
    """

    backbone: str = "gcn"
    layers: int = 2
    hidden: int = 128
    settings: Mapping[str, Value] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        network = lookup("backbone", self.backbone, NETWORKS)
        network.completed(self.backbone, check_table("settings", self.settings))
        layers = check_integer(f"layers of {self.backbone}", self.layers, network.least_layers, MOST)
        settle(self, layers=layers, hidden=check_integer("hidden", self.hidden, 1, MOST))

    def network(self, method: str) -> tuple[str, type[Network]]:
        """The name and the class of the network that a method trains."""
        name = Method.of(method).network or self.backbone
        return name, lookup("network", name, NETWORKS)

    def settings_of(self, trial: Trial) -> dict[str, Value]:
        """All settings of the trial's network: the trial's own, checked, then those given here, then defaults."""
        name, network = self.network(check_kind("trial", trial, Trial).method)
        mine = self.settings if name == self.backbone else {}
        return network.completed(name, {**mine, **trial.settings})

    def sizes(self, settings: Mapping[str, Value], num_nodes: int, num_features: int, num_classes: int) -> Sizes:
        """The sizes of a network with these settings; its width may be one of them."""
        hidden = int(check_table("settings", settings).get("hidden", self.hidden))
        numbers = {"num_nodes": num_nodes, "num_features": num_features, "num_classes": num_classes}
        numbers = {name: check_integer(name, number, 0, MOST) for name, number in numbers.items()}
        return Sizes(**numbers, layers=self.layers, hidden=hidden)


@dataclass(frozen=True)
class Trial:
    """One training: its method, its hyper-parameters, its seed and its split.

    ``keep_ratio``, if given, replaces ``keep_prob``: p is solved for, so that the expected kept share is met.
    ``gamma=None`` is the knee of the scores, ``sensitivity`` the c of DropSens, ``keep_last`` the keep probability (or
    ratio) of the last layer with the option ``nested``: the rates of the layers run linearly from the first to the
    last, by default 1. ``batch_size=None`` is the network's own. ``split`` is a place in the list of splits that the
    trainer is given. ``settings`` belong to the network, which checks them.

    >>> Trial.of("cdf", dropout=0.3, batch_norm=True).settings
    {'batch_norm': True}
    """

    method: str = "original"
    _: KW_ONLY
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    dropout: float = 0.5
    keep_prob: float = 0.7
    keep_ratio: float | None = None
    gamma: float | None = None
    sensitivity: float | None = None
    keep_last: float | None = None
    batch_size: int | None = None
    seed: int = 0
    split: int = 0
    settings: Mapping[str, Value] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        method = Method.of(self.method)
        check_table("settings", self.settings)
        if method.network is not None:
            NETWORKS[method.network].completed(method.network, self.settings)
            check_weighs(method.network, self.method)
        for name in ("dropout", "keep_prob", "keep_ratio", "sensitivity", "keep_last"):
            if name in ("dropout", "keep_prob") or getattr(self, name) is not None:
                settle(self, **{name: check_number(name, getattr(self, name), 0, 1)})
        check_positive("learning_rate", self.learning_rate)
        check_number("weight_decay", self.weight_decay, low=0)
        for name in ("learning_rate", "weight_decay"):
            settle(self, **{name: check_number(name, getattr(self, name), high=MOST_FLOAT)})
        if self.gamma is not None:
            settle(self, gamma=check_number("gamma", self.gamma, 0))
        if self.batch_size is not None:
            settle(self, batch_size=check_integer("batch_size", self.batch_size, least=1))
        settle(self, seed=check_seed(self.seed), split=check_integer("split", self.split, least=0))

    @classmethod
    def of(cls, method: str = "original", **settings: Any) -> Trial:
        """A trial from one flat table: what is not a field of a trial belongs to its network.

        >>> Trial.of("graphsage", samplse=5)
        Traceback (most recent call last):
        tadropedge._old.errors.TadropedgeError: graphsage has no setting 'samplse', got 5; its settings are hidden, \
samples, inductive
        """
        return cls(method).but(**settings)

    def but(self, **changes: Any) -> Trial:
        """The same trial with other settings, from a flat table as in :meth:`of`."""
        own = {name: changes.pop(name) for name in list(changes) if name not in FIELDS}
        told = {name: value for name, value in {**self.settings, **own}.items() if value is not None}
        return replace(self, **changes, settings=told)

    def flat(self) -> dict[str, Any]:
        """Everything but the method, the seed and the split, without what is None, as :meth:`of` reads it."""
        mine = {name: getattr(self, name) for name in FIELDS if name not in ("method", "seed", "split", "settings")}
        return {name: value for name, value in {**mine, **self.settings}.items() if value is not None}


def check_weighs(network: str, method: str) -> None:
    """Refuse the options ``unbiased`` and ``expected`` for a network that sees no weights of edges where they do.

    >>> check_weighs("graphsage", "cdf:unbiased")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: graphsage sees which edges exist but not their weights, so that kept edges \
cannot be divided by their keep probability: 'cdf:unbiased'
    """
    if "unbiased" in Method.of(method).options and not NETWORKS[network].weighs:
        raise TadropedgeError(
            f"{network} sees which edges exist but not their weights, so that kept edges cannot be divided by their "
            f"keep probability: {method!r}"
        )
    if "expected" in Method.of(method).options and not NETWORKS[network].softens:
        raise TadropedgeError(f"{network} cannot be evaluated on edges with weights, which {method!r} asks for")


FIELDS = tuple(one.name for one in fields(Trial))


def network_settings() -> dict[str, Setting]:
    """Every setting that some network has, by name."""
    networks = list(NETWORKS.values())[::-1]  # if two share a name, the first counts
    return {name: setting for network in networks for name, setting in network.settings.items()}


def plug_ins(method: str) -> dict[str, str]:
    """The fingerprints of your own score, rule and network in a method; this package's own have versions instead.

    >>> plug_ins("graphsage+effective-cdf")
    {}
    >>> STRATEGIES["mine"] = lambda scores, keep_prob: scores
    >>> before = plug_ins("effective-mine")
    >>> STRATEGIES["mine"] = lambda scores, keep_prob: scores**2
    >>> list(before), plug_ins("effective-mine") == before
    (['code.mine'], False)
    >>> del STRATEGIES["mine"]
    """
    one = Method.of(method)
    named = ((SCORES, one.score), (STRATEGIES, one.strategy), (NETWORKS, one.network))
    code = {name: registry[name] for registry, name in named if name is not None}
    own = {name: entry for name, entry in code.items() if not of_this_package(entry)}
    # The class of a user's own module is made here: what counts is the code of its factory.
    seen = {
        name: getattr(entry, "code", entry) if getattr(entry, "opaque", False) else entry for name, entry in own.items()
    }
    prints = {name: entry if isinstance(entry, str) else fingerprint(**{name: entry}) for name, entry in seen.items()}
    return {f"code.{name}": told[:16] for name, told in prints.items()}


Curve = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, eq=False)
class GradientNorms:
    """How large the gradient of each layer's weight was: L2 norms ``[epochs, layers]``, NaN where not evaluated.

    The gradient is that of the loss, without weight decay; in an epoch of several mini-batches it is the mean of their
    norms. ``layers`` are the names of the weights, from the input to the output.

    >>> norms = np.array([[0.01, 1.0], [0.04, 4.0]], dtype=np.float32)
    >>> [round(one, 3) for one in GradientNorms(layers=("input", "output"), norms=norms).ends]
    [0.02, 2.0]
    """

    layers: tuple[str, ...]
    norms: Curve

    @property
    def epochs(self) -> list[int]:
        """The epochs in which they were recorded: those that ended with an evaluation."""
        return [int(epoch) for epoch in np.flatnonzero(~np.isnan(self.norms).all(axis=1))]

    @property
    def ends(self) -> tuple[float, float]:
        """The geometric means over epochs of the first layer's norm and of the last one's.

        Their ratio is the geometric mean of the ratios: far below 1 where gradients vanish on their way to the input.
        """
        with np.errstate(divide="ignore"):  # a norm of 0 makes a mean of 0
            logs = np.log(self.norms[self.epochs][:, [0, -1]].astype(np.float64))
        first, last = np.exp(logs.mean(axis=0))
        return float(first), float(last)


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """The result of one trial: values per epoch ``[epochs]``, and the epoch of the kept model.

    Validation and test are NaN in epochs without an evaluation. ``failed`` marks a trial whose loss was not finite; its
    accuracies are NaN. ``scores`` are validation and test by the laboratory's measure where that is not accuracy, and
    ``gradient_norms`` are there where they were asked for or the network is deep.
    """

    trial: Trial
    train_loss: Curve
    val_loss: Curve
    val_accuracy: Curve
    test_accuracy: Curve
    best_epoch: int
    failed: bool = False
    state: dict[str, npt.NDArray[np.float32]] | None = field(default=None, repr=False)
    scores: tuple[Curve, Curve] | None = field(default=None, repr=False)
    gradient_norms: GradientNorms | None = field(default=None, repr=False)

    @property
    def val_score(self) -> Curve:
        """The laboratory's measure on validation data, ``[epochs]``."""
        return self.val_accuracy if self.scores is None else self.scores[0]

    @property
    def test_score(self) -> Curve:
        """The laboratory's measure on test data, ``[epochs]``."""
        return self.test_accuracy if self.scores is None else self.scores[1]

    @property
    def kept(self) -> dict[str, float]:
        """Losses and accuracies of the kept model, and its scores where the measure is another."""
        names = METRICS if self.scores is None else METRICS + SCORED
        nan = float("nan")
        return {name: nan if self.failed else float(getattr(self, name)[self.best_epoch]) for name in names}
