"""What is trained: the settings that all trials of a batch share, those that each has for itself, and the outcome."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tadropedge.errors import TadropedgeError, check_integer, lookup
from tadropedge.nn.baselines import NETWORKS
from tadropedge.nn.baselines.network import Value

BACKBONES = {"gcn": 1, "jknet": 3, "incepgcn": 3, "gcnn": 1}  # and the least number of layers of each
SELECTIONS = {"evaluation": None, "training": None}


@dataclass(frozen=True)
class Method:
    """How a network is trained, from its name on the command line.

    Without a ``network`` it is the backbone of the comparison, with or without edge dropping; otherwise one of
    ``nn.baselines``. Those that sample can do so on a graph whose edges are dropped: their name, a plus, a dropping.

    >>> Method.of("effective-cdf")
    Method(name='effective-cdf', weights='effective', strategy='cdf', inverse=False, network=None)
    >>> Method.of("graphsage+cdf")
    Method(name='graphsage+cdf', weights='aggregate', strategy='cdf', inverse=False, network='graphsage')
    """

    name: str
    weights: str | None  # "aggregate", "effective" or None
    strategy: str | None  # None: nothing is dropped
    inverse: bool = False
    network: str | None = None

    @classmethod
    def of(cls, name: str) -> Method:
        """Look a method up by its name."""
        front, plus, dropping = name.partition("+") if isinstance(name, str) else (name, "", "")
        if not plus:
            return lookup("method", name, METHODS)
        network = lookup("method that edge dropping composes with", front, COMPOSABLE)
        base = lookup("edge dropping", dropping, DROPPINGS)
        return replace(base, name=name, network=network)

    @property
    def reference(self) -> str:
        """The same with uniform dropping: what topology is judged against."""
        return "dropedge" if self.network is None else f"{self.network}+dropedge"

    @property
    def extras(self) -> Mapping[str, Value]:
        """The settings that only this method's network has, with the values of its public code."""
        return {} if self.network is None else NETWORKS[self.network].defaults


def _methods() -> dict[str, Method]:
    table = {"original": Method("original", None, None), "dropedge": Method("dropedge", None, "uniform")}
    for front, weights in (("", "aggregate"), ("effective-", "effective")):
        for turn, inverse in (("", False), ("inverse-", True)):
            for strategy in ("cutoff", "division", "cdf"):
                name = f"{front}{turn}{strategy}"
                table[name] = Method(name, weights, strategy, inverse)
    return table | {name: Method(name, None, None, network=name) for name in NETWORKS}


METHODS = _methods()
DROPPINGS = {name: method for name, method in METHODS.items() if method.strategy is not None}
COMPOSABLE = {name: name for name, network in NETWORKS.items() if network.batched}


@dataclass(frozen=True)
class Architecture:
    """The backbone that all trials of a batch share."""

    backbone: str = "gcn"
    layers: int = 2
    hidden: int = 128
    order: int = 5  # K of the order-K GCNN

    def __post_init__(self) -> None:
        least = lookup("backbone", self.backbone, BACKBONES)
        check_integer(f"layers of {self.backbone}", self.layers, least=max(least, 1))
        check_integer("hidden", self.hidden, least=1)
        check_integer("order", self.order, least=0)


@dataclass(frozen=True)
class Trial:
    """One training: its method, its hyper-parameters, its seed and its split.

    ``keep_ratio``, where given, stands for ``keep_prob``: p is solved so that the expected kept share is met.
    ``gamma=None`` is the knee of the weights. ``split`` counts the splits handed to the trainer. Of ``normalization``,
    ``self_weight`` and ``batch_norm`` the networks of ``nn.baselines`` take no notice; they have settings of their own.
    """

    method: str = "original"
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    dropout: float = 0.5
    keep_prob: float = 0.7
    keep_ratio: float | None = None
    gamma: float | None = None
    normalization: str = "gcn"
    self_weight: bool = False
    batch_norm: bool = False
    seed: int = 0
    split: int = 0
    # What only some of nn.baselines have; None is the value of their public code.
    hidden: int | None = None
    batch_size: int | None = None
    samples: int | None = None
    inductive: bool | None = None
    variance: float | None = None
    sparsity: float | None = None
    nuclear: float | None = None

    def __post_init__(self) -> None:
        extras = Method.of(self.method).extras
        for name in EXTRAS:
            value = getattr(self, name)
            if value is not None:
                if name not in extras:
                    having = ", ".join(each for each in METHODS if name in METHODS[each].extras)
                    raise TadropedgeError(f"{self.method} has no setting {name!r}, got {value}; it belongs to {having}")
                check_extra(name, value)
        for name in ("dropout", "keep_prob"):
            if not 0 <= getattr(self, name) <= 1:
                raise TadropedgeError(f"{name} must lie in [0, 1], got {getattr(self, name)}")
        if not self.learning_rate > 0:
            raise TadropedgeError(f"learning_rate must be positive, got {self.learning_rate}")
        if not self.weight_decay >= 0:
            raise TadropedgeError(f"weight_decay must be at least 0, got {self.weight_decay}")


EXTRAS: dict[str, type] = {
    "hidden": int,
    "batch_size": int,
    "samples": int,
    "inductive": bool,
    "variance": float,
    "sparsity": float,
    "nuclear": float,
}


def check_extra(name: str, value: object) -> None:
    """Check a setting of ``nn.baselines``: counts from 1 on, weights of penalties from 0 on.

    >>> check_extra("samples", 0)
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: samples must be a whole number of at least 1, got 0
    """
    if EXTRAS[name] is int:
        check_integer(name, value, least=1)
    elif EXTRAS[name] is bool and not isinstance(value, bool):
        raise TadropedgeError(f"{name} must be true or false, got {value!r}")
    elif EXTRAS[name] is float and not (isinstance(value, int | float) and 0 <= value < math.inf):
        raise TadropedgeError(f"{name} must be a number of at least 0, got {value!r}")


Curve = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one trial gave: a value per epoch ``[epochs]``, and the kept model's epoch.

    ``failed`` marks a trial whose loss was not finite; its accuracies are NaN.
    """

    trial: Trial
    train_loss: Curve
    val_loss: Curve
    val_accuracy: Curve
    test_accuracy: Curve
    best_epoch: int
    failed: bool = False
    state: dict[str, npt.NDArray[np.float32]] | None = field(default=None, repr=False)

    @property
    def kept(self) -> dict[str, float]:
        """Losses and accuracies of the kept model."""
        nan = float("nan")
        return {
            name: nan if self.failed else float(getattr(self, name)[self.best_epoch])
            for name in ("train_loss", "val_loss", "val_accuracy", "test_accuracy")
        }
