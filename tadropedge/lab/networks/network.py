"""``Network``: T models of one structure, an ``nn.Module`` with one forward pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from tadropedge._support.checks import check_integer, check_number
from tadropedge.dropping import Dropping
from tadropedge.errors import TadropedgeError, lookup, show
from tadropedge.lab.networks.view import View

Value = bool | int | float | str

# The search space of every network that does not say otherwise: the values of the released DropEdge scripts, but for
# their learning rates. With 0.001 to 0.010 validation loss often still falls when training ends (on Cora, two layers,
# in 14 of 17 trainings with 0.001).
RATES: Mapping[str, Any] = {
    "learning_rate": [0.01, 0.02, 0.05],
    "weight_decay": [1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3],
    "dropout": [0.3, 0.5, 0.8],
}


# In the default search space of every network here: dropout of raw features.
FEATURES: Mapping[str, Any] = {"feature_dropout": [0.0, 0.5]}


@dataclass(frozen=True)
class Setting:
    """A setting of a network: a name from ``choices``, true or false, or a number from ``least`` to ``most``.

    >>> Setting(5, least=1).check("samples", 0)
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: samples must be a whole number of at least 1, got 0
    """

    default: Value
    least: int = 0
    choices: Mapping[str, Any] | None = None
    most: float = inf  # of a number with a fraction

    def check(self, name: str, value: object) -> None:
        """Refuse a value of the wrong type, or one that is too small or too large."""
        if self.choices is not None:
            lookup(name, value, self.choices)
        elif isinstance(self.default, bool):
            if not isinstance(value, bool):
                raise TadropedgeError(f"{name} must be true or false, got {show(value, typed=False)}", argument=name)
        elif isinstance(self.default, int):
            check_integer(name, value, self.least)
        else:
            check_number(name, value, self.least, self.most)


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The numbers that decide the shapes of a network."""

    num_features: int
    num_classes: int
    layers: int = 2
    hidden: int = 64


class Start:
    """Draws the starting parameters of T trials, each from a generator of its own: a pure function of its seed.

    Parameters are drawn in the order in which they are asked for, which is a part of what a seed means.

    >>> both, one = (Start(seeds).uniform((2, 2), 1.0) for seeds in ([3, 4], [4]))
    >>> both.shape, bool((both[1] == one[0]).all())
    (torch.Size([2, 2, 2]), True)
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        self.seeds = list(seeds)
        self._generators = [torch.Generator().manual_seed(seed % 2**63) for seed in seeds]

    @property
    def trials(self) -> int:
        """T."""
        return len(self.seeds)

    def uniform(self, shape: Sequence[int], bound: float) -> nn.Parameter:
        """A parameter ``[T, *shape]``, uniform in ± bound."""
        drawn = [torch.rand(tuple(shape), generator=generator) for generator in self._generators]
        return nn.Parameter((torch.stack(drawn) * 2 - 1) * bound)

    def glorot(self, *shape: int) -> nn.Parameter:
        """A parameter that starts as Glorot and Bengio's (AISTATS 2010): uniform in ± √(6 / Σ shape)."""
        return self.uniform(shape, float((6 / sum(shape)) ** 0.5))

    def zeros(self, *shape: int) -> nn.Parameter:
        """A parameter that starts at 0. It takes its place in the order of draws."""
        return self.uniform(shape, 0.0)

    def constant(self, value: float, *shape: int) -> nn.Parameter:
        """A parameter that starts at a number."""
        return nn.Parameter(torch.full((self.trials, *shape), value))


class Network(nn.Module):
    """T models of one structure. Every parameter and buffer has a leading axis of trials: ``[T, …]``.

    A subclass declares what can be said of it in one place:

    * ``settings``: its own options; ``space``: the default search space; ``shared``: the settings that must be equal
      for all trials of a batch; ``least_layers``: below that there is none of it;
    * ``supports``: ``"dropping"`` (edges may be dropped or weighed at all) and ``"weights"`` (edges may weigh something
      between 0 and 1, so ``weighted``, ``expected`` and ``unbiased`` mean something);
    * ``because``: why not, in words that follow its name;
    * ``sees_dropped``: with ``unbiased``, dropped edges still change what others weigh, as in attention.

    It is made of sizes, the completed settings of each trial and a :class:`Start`, and is moved, saved and loaded like
    any module. Its forward pass is the same in training, evaluation and a mini-batch, which the :class:`View` knows.
    Settings of a trial that are numbers become buffers by :meth:`column`, so that :meth:`take` finds them. Features and
    operators multiply by ``@``, signals by weights with ``product`` of :mod:`tadropedge.lab.networks.layers`: then a
    trial has the same bits whoever trains beside it, which :class:`tadropedge.testing.networks.NetworkContract` tests.

    >>> class Diffusion(Network):
    ...     settings = {"share": Setting(0.5, most=1.0)}
    ...     def __init__(self, sizes, settings, start):
    ...         super().__init__(sizes, settings, start)
    ...         self.weight = start.glorot(sizes.num_features, sizes.num_classes)
    ...         self.register_buffer("share", self.column("share"), persistent=False)
    ...     def forward(self, x, view):
    ...         z = view.drop(x @ self.weight, layer=0)
    ...         return torch.lerp(z, view.shift(["random-walk"] * self.trials) @ z, self.share[:, None, None])
    >>> settings = [Diffusion.completed("diffusion", {}), Diffusion.completed("diffusion", {"share": 0.1})]
    >>> network = Diffusion(Sizes(num_features=4, num_classes=3), settings, Start([0, 1]))
    >>> from tadropedge import Graph
    >>> network(torch.eye(4), View(Graph.from_edge_index([[0, 1, 2], [1, 2, 3]]))).shape
    torch.Size([2, 4, 3])
    """

    settings: ClassVar[Mapping[str, Setting]] = {}
    space: ClassVar[Mapping[str, Any]] = {}
    shared: ClassVar[tuple[str, ...]] = ()
    least_layers: ClassVar[int] = 1
    supports: ClassVar[tuple[str, ...]] = ("dropping", "weights")
    because: ClassVar[str] = "chooses its edges itself"
    sees_dropped: ClassVar[bool] = False

    feature_rates: Tensor

    def __init__(self, sizes: Sizes, settings: Sequence[Mapping[str, Value]], start: Start) -> None:
        super().__init__()
        self.sizes, self.of_trials = sizes, [dict(one) for one in settings]
        if "feature_dropout" in self.settings:
            self.register_buffer("feature_rates", self.column("feature_dropout"), persistent=False)

    # -- settings -----------------------------------------------------------------------------------------

    @classmethod
    def completed(cls, name: str, given: Mapping[str, Value]) -> dict[str, Value]:
        """All settings: the given ones, checked, and defaults for the others. ``name`` is the network's."""
        for key, value in given.items():
            if key not in cls.settings:
                known = ", ".join(cls.settings) or "none"
                shown = show(value, typed=False)
                raise TadropedgeError(f"{name} has no setting {key!r}, got {shown}; its settings are {known}")
            cls.settings[key].check(key, value)
        return {key: given.get(key, setting.default) for key, setting in cls.settings.items()}

    @classmethod
    def check_layers(cls, name: str, layers: int) -> None:
        """Refuse fewer layers than there can be."""
        if layers < cls.least_layers:
            raise TadropedgeError(f"{name} has at least {cls.least_layers} layers, got layers={layers}")

    @classmethod
    def check_dropping(cls, name: str, dropping: Dropping) -> None:
        """Refuse a way of dropping that this network cannot be trained with."""
        if dropping.rule is None:
            return
        if "dropping" not in cls.supports:
            raise TadropedgeError(f"'{dropping}' cannot be used with {name}, which {cls.because}")
        weighs = [word for word in (dropping.use, *dropping.options) if word in ("weighted", "expected", "unbiased")]
        if weighs and "weights" not in cls.supports:
            raise TadropedgeError(f"'{dropping}' cannot be used with {name}, which takes no edge weights")

    @property
    def trials(self) -> int:
        """T."""
        return len(self.of_trials)

    @property
    def normalizations(self) -> tuple[str, ...]:
        """The normalisation of each trial; none where it looks at no degrees."""
        return tuple(str(one["normalization"]) for one in self.of_trials if "normalization" in one)

    def column(self, name: str) -> Tensor:
        """A setting of all trials, ``[T]``: float32 for numbers with a fraction, else int64."""
        values = [one[name] for one in self.of_trials]
        kind = torch.float32 if any(isinstance(value, float) for value in values) else torch.int64
        return torch.tensor(values, dtype=kind)

    # -- what it does -------------------------------------------------------------------------------------

    def features(self, x: Any, view: View) -> Any:
        """The features that a forward pass begins with: some dropped, by the setting ``feature_dropout``."""
        from tadropedge.lab.networks.layers import drop_features

        drops = any(one["feature_dropout"] for one in self.of_trials)
        return drop_features(x, self.feature_rates, view) if drops else x

    def forward(self, x: Any, view: View) -> Tensor | tuple[Tensor, Tensor]:
        """Logits ``[T, n, C]``, or these and what is added to the loss ``[T]``.

        ``x @ weight`` multiplies the features, which may be sparse, by weights ``[T, F, H]``.
        """
        raise NotImplementedError

    @property
    def recordable(self) -> bool:
        """Whether an epoch can be recorded as a CUDA graph: it must not read values on the host."""
        return "spectral" not in self.normalizations

    @property
    def hops(self) -> list[int] | None:
        """For each layer (by its number), how many layers that look at neighbours its output passes through at most.

        A mini-batch is made by it. ``None``: the network cannot be trained on a part of the graph.
        """
        return None

    # -- trials -------------------------------------------------------------------------------------------

    def take(self, places: Sequence[int]) -> None:
        """Go on with the trials at these places alone; parameters are new objects."""
        with torch.no_grad():
            for module in self.modules():
                for name, parameter in list(module.named_parameters(recurse=False)):
                    setattr(module, name, nn.Parameter(parameter[list(places)]))
                for name, buffer in list(module.named_buffers(recurse=False)):
                    setattr(module, name, buffer[list(places)])
        self.of_trials = [self.of_trials[place] for place in places]

    def stacked(self) -> dict[str, Tensor]:
        """Everything in the state, by name, ``[T, …]``, in the memory of the network."""
        return self.state_dict()

    def load_trial(self, state: Mapping[str, Tensor]) -> None:
        """Take the state of one trial, without the axis of trials; for a network of one."""
        self.load_state_dict({name: value[None] for name, value in state.items()})
