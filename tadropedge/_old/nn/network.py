"""The one protocol of networks: what they are given, how they start, the training pass and the evaluation pass.

A network is a class in :data:`tadropedge._old.registry.NETWORKS`. It trains T models at once: everything it computes has a
leading trials axis. Its own options are declared in its ``settings``, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, ClassVar

import torch
from torch import Tensor

from tadropedge._old.checks import as_number, check_flag, check_integer
from tadropedge._old.errors import TadropedgeError, lookup, show
from tadropedge._old.graph import Graph
from tadropedge._old.memory import shortage
from tadropedge._old.neighbours.block import LayerBlock
from tadropedge._old.nn.draws import Draws
from tadropedge._old.nn.entries import Entries
from tadropedge._old.nn.finish import Moments, Noise
from tadropedge._old.nn.layers import Features, Parameters, Sparse
from tadropedge._old.nn.operators import Operators
from tadropedge._old.shift import ShiftOperator, reweighted, shift_operator

Value = bool | int | float | str
Shapes = dict[str, tuple[int, ...]]

THREADS_NEED = 2**30  # bytes of address space, for the stacks and heaps of some threads
COPIES = 14  # activations, gradients and temporaries of one layer that live at once


@dataclass(frozen=True)
class Setting:
    """An option of a network: a name from ``choices``, true or false, or a number from ``least`` to ``most``.

    >>> Setting(5, least=1).check("samples", 0)
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: samples must be a whole number of at least 1, got 0
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
            check_flag(name, value)
        elif isinstance(self.default, int):
            check_integer(name, value, least=self.least)
        elif type(value) not in (int, float) or not self._holds(as_number(value) or 0.0):
            wanted = f"of at least {self.least}" if self.most == inf else f"from {self.least} to {self.most:g}"
            raise TadropedgeError(f"{name} must be a number {wanted}, got {show(value, typed=False)}")

    def _holds(self, number: float) -> bool:
        return self.least <= number <= self.most and number < inf


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The numbers that decide the shapes of a network; only read-outs use ``num_nodes``."""

    num_nodes: int
    num_features: int
    num_classes: int
    layers: int
    hidden: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """A graph, the sizes of the network, and for each of T trials a complete mapping of its settings."""

    graph: Graph
    sizes: Sizes
    settings: Sequence[Mapping[str, Value]]
    dropout: Sequence[float] = ()  # of each trial, for networks that are made with it

    def column(self, name: str) -> Tensor:
        """A setting of all trials, ``[T]``: float32 for numbers with a fraction, else int64."""
        values = [one[name] for one in self.settings]
        kind = torch.float32 if any(isinstance(value, float) for value in values) else torch.int64
        return torch.tensor(values, dtype=kind, device=self.graph.device)

    @property
    def moments(self) -> Moments | None:
        """How mean and variance over the nodes are found where not all of them are here; None: all of them are."""
        return None

    def operators(self, normalizations: Sequence[str]) -> Operators:
        """The shift operators of trials with these normalisations."""
        return Operators(self.graph, normalizations)

    @cached_property
    def entries(self) -> Entries:
        """The entries of the pattern."""
        return Entries(self.graph)

    def shift(self, keep: Tensor | None, factors: Tensor | None = None, inside: Tensor | None = None) -> Sparse:
        """``Â = D̃^-1/2 (A + I) D̃^-1/2`` of the edges in the mask ``keep [T, M]``, or of all.

        With ``factors [T, M]``, it is Â of all edges (of those in the mask ``inside``, if given) with the entries of
        each edge multiplied by its factor.
        """
        if factors is not None:
            whole = self._whole if inside is None else shift_operator(self.graph, inside)
            return self._sparse(reweighted(whole, factors))
        return self._sparse(self._whole if keep is None else shift_operator(self.graph, keep))

    @cached_property
    def _whole(self) -> ShiftOperator:
        return shift_operator(self.graph)

    def _sparse(self, shift: ShiftOperator) -> Sparse:
        return Sparse(self.graph.pattern.places, shift.values, symmetric=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingStep:
    """What one training step is given.

    * ``x``: the features, to be multiplied by weights; for graph-level tasks the samples of this step.
    * ``nodes [T, N]``: ones at the nodes (or samples) whose loss counts: a mini-batch or the whole training set.
    * ``keeps``: masks ``[T, M]`` of the edges that exist in this step, one for all layers or one per layer; None: all.
    * ``draws``, ``noise``: random numbers and dropout of this step. ``epoch`` counts from 0.
    * ``factors``, with the option ``unbiased``: for each of ``keeps``, what the entries of an edge in the operator of
      the whole graph are multiplied by, ``[T, M]``: 0 or one over its keep probability. None: the operator is made from
      the mask alone. Only networks that declare ``weighs`` are given any.
    * ``inside [T, M]``: the edges that may be learned on, as ``edges`` of the network said; None: all.
    """

    x: Features
    nodes: Tensor
    keeps: Sequence[Tensor | None]
    draws: Draws
    noise: Noise
    epoch: Tensor
    factors: Sequence[Tensor] | None = None
    inside: Tensor | None = None

    def keep(self, layer: int) -> Tensor | None:
        """The edges that exist in this layer."""
        return self.keeps[layer if len(self.keeps) > 1 else 0]

    @property
    def kept(self) -> list[tuple[Tensor | None, Tensor | None]]:
        """For each of ``keeps`` the mask and, with the option ``unbiased``, the factors."""
        if self.factors is None:
            return [(keep, None) for keep in self.keeps]
        return list(zip(self.keeps, self.factors, strict=True))

    def shift(self, problem: Problem, layer: int) -> Sparse:
        """Â of the edges that exist in this layer."""
        keep, factors = self.kept[layer if len(self.keeps) > 1 else 0]
        return problem.shift(keep, factors, self.inside)


class Network:
    """T models of one structure.

    A class declares ``settings``, its own options; ``shared``, those that must be equal for all trials of a batch;
    ``space``, the default search space; ``level``, the kind of task; ``batch_size``, that of its mini-batches (None:
    the whole training set); ``drops``, whether edges can be dropped while it learns, and ``because``, the reason where
    they cannot; ``weighs``, whether it multiplies by ``factors`` of the step where there are any (else it sees only
    which edges exist, and the option ``unbiased`` is refused); ``softens``, whether it can be evaluated on edges with
    weights (else the option ``expected`` is refused); and ``sampled``, whether its training logits are only valid at
    the nodes of the step. ``spreads`` says that it reaches other nodes only through the operators, the entries and the
    moments of its problem, so that the rows of the graph can be spread over processes.
    """

    settings: ClassVar[Mapping[str, Setting]] = {}
    shared: ClassVar[tuple[str, ...]] = ()
    space: ClassVar[Mapping[str, Any]] = {}
    level: ClassVar[str] = "node"
    least_layers: ClassVar[int] = 1
    batch_size: ClassVar[int | None] = None
    drops: ClassVar[bool] = True
    because: ClassVar[str] = "chooses its edges itself"
    weighs: ClassVar[bool] = False
    softens: ClassVar[bool] = False
    sampled: ClassVar[bool] = False
    spreads: ClassVar[bool] = False
    recordable = True  # whether an epoch can be recorded as a CUDA graph: it must not read values on the host
    opaque: ClassVar[bool] = False  # whether its layers are not seen: trials train one by one, on one subgraph a step
    noisy: ClassVar[bool] = True  # whether the dropout of a trial changes anything

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    # -- its settings -------------------------------------------------------------------------------------

    @classmethod
    def completed(cls, name: str, told: Mapping[str, Value]) -> dict[str, Value]:
        """All settings: the given ones, checked, and defaults for the others. ``name`` is the network's."""
        for key, value in told.items():
            if key not in cls.settings:
                known = ", ".join(cls.settings) or "none"
                shown = show(value, typed=False)
                raise TadropedgeError(f"{name} has no setting {key!r}, got {shown}; its settings are {known}")
            cls.settings[key].check(key, value)
        return {key: told.get(key, setting.default) for key, setting in cls.settings.items()}

    # -- what it consists of ------------------------------------------------------------------------------

    @classmethod
    def shapes(cls, sizes: Sizes, settings: Mapping[str, Value]) -> Shapes:
        """The shape of every trained parameter, without the trials axis."""
        raise NotImplementedError

    @classmethod
    def buffers(cls, sizes: Sizes, settings: Mapping[str, Value]) -> dict[str, tuple[tuple[int, ...], float]]:
        """The shape and the initial value of every running statistic, without the trials axis."""
        return {}

    @classmethod
    def bound(cls, key: str, shapes: Shapes) -> float:
        """A parameter starts uniform in ± this; by default Glorot and Bengio's, and biases at 0."""
        shape = shapes[key]
        return float((6 / sum(shape)) ** 0.5) if len(shape) > 1 else 0.0

    @classmethod
    def constant(cls, key: str) -> float | None:
        """The initial value of a parameter that is not drawn at random."""
        return None

    @classmethod
    def depth(cls, layers: int) -> int:
        """How many layers there are where ``layers`` are asked for."""
        return max(layers, 2)

    @classmethod
    def footprint(cls, sizes: Sizes, settings: Mapping[str, Value], signals: int, entries: int) -> int:
        """About how many numbers one training holds at its peak.

        ``signals`` rows of features are seen through a pattern of ``entries``. No shape is made for it, so that it can
        be asked for networks that could never be made.
        """
        hidden, depth = sizes.hidden, cls.depth(sizes.layers)
        seen = signals * (hidden * depth + sizes.num_classes) + entries + sizes.num_features * hidden
        return COPIES * max(seen, hidden**2 * depth) + 2 * entries * cls.entry_width(hidden)

    @classmethod
    def entry_width(cls, hidden: int) -> int:
        """About how many numbers per entry of the pattern a training pass holds, besides its value."""
        return 0

    @property
    def draws(self) -> int:
        """The number of layers that can have a subgraph of their own."""
        return 2

    def initial(self, seeds: Sequence[int], device: torch.device) -> Parameters:
        """The starting parameters ``[T, ...]``, each trial a pure function of its seed."""
        shapes = self.shapes(self.problem.sizes, self.problem.settings[0])

        def drawn(seed: int) -> Parameters:
            generator = torch.Generator().manual_seed(seed % 2**63)
            start: Parameters = {}
            for key, shape in shapes.items():
                constant = self.constant(key)
                if constant is None:
                    start[key] = (torch.rand(shape, generator=generator) * 2 - 1) * self.bound(key, shapes)
                else:
                    start[key] = torch.full(shape, constant)
            return start

        if len(seeds) == 1 or shortage(THREADS_NEED):  # Python may wait forever for a thread that found no memory
            starts = list(map(drawn, seeds))
        else:
            with ThreadPoolExecutor() as pool:  # hundreds of large draws, each on its own generator
                starts = list(pool.map(drawn, seeds))
        return {key: torch.stack([start[key] for start in starts]).to(device) for key in shapes}

    def running(self, trials: int, device: torch.device) -> Parameters:
        """The initial running statistics ``[T, ...]``; training changes them in place."""
        buffers = self.buffers(self.problem.sizes, self.problem.settings[0])
        return {key: torch.full((trials, *shape), start, device=device) for key, (shape, start) in buffers.items()}

    # -- what it does -------------------------------------------------------------------------------------

    def rehearse(self, x: Features, unbiased: bool) -> None:
        """Refuse a network that cannot be trained on this problem, before any training; ours all can."""

    def edges(self, training: Tensor) -> Tensor | None:
        """The edges that each trial may learn on, a mask ``[T, M]``; ``training [T, N]`` are its nodes. None: all."""
        return None

    def expect(self, shares: Sequence[float]) -> None:
        """Called once before the first step with the share of the edges that each of ``keeps`` holds on average.

        Where masks of all layers are drawn alike, there is one share.
        """

    def soften(self, weights: Tensor) -> None:
        """From now on, evaluate on the graph whose edges have ``weights [T, M]`` in [0, 1]: the option ``expected``."""
        raise NotImplementedError

    def training(self, state: Parameters, step: TrainingStep) -> tuple[Tensor, Tensor | float]:
        """Logits ``[T, N, C]``, and what is added to the loss ``[T]``; ``state`` holds parameters and statistics."""
        raise NotImplementedError

    def evaluation(self, state: Parameters, x: Features, epoch: Tensor) -> Tensor:
        """Logits ``[T, N, C]`` on the whole graph: nothing is sampled, nothing is noisy."""
        raise NotImplementedError

    # -- mini-batches by neighbour sampling, of one trial -------------------------------------------------

    @property
    def hops(self) -> list[int] | None:
        """For each layer that can have a subgraph, how many such layers its output passes through on the longest way.

        None: the network cannot be trained on a part of the graph.
        """
        return None

    sees_dropped: ClassVar[bool] = False  # with the option unbiased: whether dropped edges change what others weigh

    @property
    def of_rows(self) -> bool:
        """Whether a layer needs the degrees of the rows it computes alone, not those of the neighbours."""
        return False

    def on_blocks(self, state: Parameters, x: Features, blocks: Sequence[LayerBlock], noise: Noise | None) -> Tensor:
        """Logits ``[1, seeds, C]`` of a mini-batch: ``x`` are the features of its nodes, with a block for each layer.

        ``noise`` means training; without it, nothing is dropped from signals.
        """
        raise NotImplementedError


RATES: Mapping[str, Any] = {
    # From the smallest learning rate of the competitors' public codes to three times the largest.
    "learning_rate": {"log-uniform": [0.001, 0.03]},
    "weight_decay": [1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3],
    "dropout": [0.0, 0.3, 0.5, 0.8],
}


class Sampler(Network):
    """A network of two layers that learns from mini-batches and sampled neighbours or nodes.

    With ``inductive`` it learns only on the edges between its training nodes, as some of the papers do.
    """

    shared = ("hidden",)
    sampled = True

    def edges(self, training: Tensor) -> Tensor | None:
        """Those between training nodes where a trial is inductive."""
        inductive = self.problem.column("inductive").to(torch.bool)
        if not bool(inductive.any()):
            return None
        low, high = self.problem.graph.pairs
        return ((training[:, low] > 0) & (training[:, high] > 0)) | ~inductive[:, None]
