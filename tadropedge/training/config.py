"""What is trained: the settings that all trials of a batch share, those that each has for itself, and the outcome."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tadropedge.errors import TadropedgeError, check_integer, lookup

BACKBONES = {"gcn": 1, "jknet": 3, "incepgcn": 3, "gcnn": 1}  # and the least number of layers of each
SELECTIONS = {"evaluation": None, "training": None}


@dataclass(frozen=True)
class Method:
    """How edges are dropped, from its name on the command line.

    >>> Method.of("effective-cdf")
    Method(name='effective-cdf', weights='effective', strategy='cdf', inverse=False)
    """

    name: str
    weights: str | None  # "aggregate", "effective" or None
    strategy: str | None  # None: nothing is dropped
    inverse: bool = False

    @classmethod
    def of(cls, name: str) -> Method:
        """Look a method up by its name."""
        return lookup("method", name, METHODS)


def _methods() -> dict[str, Method]:
    table = {"original": Method("original", None, None), "dropedge": Method("dropedge", None, "uniform")}
    for front, weights in (("", "aggregate"), ("effective-", "effective")):
        for turn, inverse in (("", False), ("inverse-", True)):
            for strategy in ("cutoff", "division", "cdf"):
                name = f"{front}{turn}{strategy}"
                table[name] = Method(name, weights, strategy, inverse)
    return table


METHODS = _methods()


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
    ``gamma=None`` is the knee of the weights. ``split`` counts the splits handed to the trainer.
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

    def __post_init__(self) -> None:
        Method.of(self.method)
        for name in ("dropout", "keep_prob"):
            if not 0 <= getattr(self, name) <= 1:
                raise TadropedgeError(f"{name} must lie in [0, 1], got {getattr(self, name)}")
        if not self.learning_rate > 0:
            raise TadropedgeError(f"learning_rate must be positive, got {self.learning_rate}")
        if not self.weight_decay >= 0:
            raise TadropedgeError(f"weight_decay must be at least 0, got {self.weight_decay}")


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
