"""The backbones: GCN, JKNet and IncepGCN of any depth.

Depth n counts graph convolutions: one input layer, n − 2 hidden ones, one output layer. Dropout follows the input layer
and every hidden layer, never the raw features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from torch import Tensor

from tadropedge._old.neighbours.block import LayerBlock
from tadropedge._old.nn.finish import Noise
from tadropedge._old.nn.layers import Features, GraphConvolution, Joined, Operator, Parameters
from tadropedge._old.nn.network import Network, Problem, Setting, Shapes, Sizes, TrainingStep, Value
from tadropedge._old.shift import NORMALIZATIONS

Convolve = Callable[[GraphConvolution, Features], Tensor]

# The values of the released DropEdge scripts.
DROPEDGE_SPACE: Mapping[str, Any] = {
    "learning_rate": {"uniform": [0.001, 0.010], "step": 0.001},
    "weight_decay": [1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3],
    "dropout": [0.3, 0.5, 0.8],
    "keep_prob": {"uniform": [0.05, 0.95], "step": 0.05},
    "normalization": ["gcn", "first-order", "gcn-residual", "random-walk"],
}
# With their learning rates, validation loss often still falls when training ends: on Cora, two layers, in 14 of 17 of
# the recorded trainings with 0.001, and in 1 of 17 with 0.008 to 0.010.
DEFAULT_SPACE: Mapping[str, Any] = {**DROPEDGE_SPACE, "learning_rate": [0.01, 0.02, 0.05]}


class GCN(Network):
    """One graph convolution after the other; JKNet and IncepGCN join them in other ways."""

    settings = {
        "normalization": Setting("gcn", choices=NORMALIZATIONS),
        "self_weight": Setting(False),
        "batch_norm": Setting(False),
    }
    shared: ClassVar[tuple[str, ...]] = ("self_weight", "batch_norm")
    space = {**DEFAULT_SPACE, "self_weight": [False, True], "batch_norm": [False, True]}
    weighs = True
    spreads = True
    softens: ClassVar[bool] = True
    joined: ClassVar[bool] = False  # whether the output layer sees every layer before it
    fixed: ClassVar[Mapping[str, Value]] = {}  # settings of these that a kind of it decides itself

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        layers = self.convolutions(problem.sizes, problem.settings[0])
        self.layers = [replace(layer, moments=problem.moments) for layer in layers]
        self.numbers = {layer.name: place for place, layer in enumerate(self.layers)}
        names = [str({**one, **self.fixed}["normalization"]) for one in problem.settings]
        self.operators = problem.operators(names)
        self.recordable = self.operators.recordable

    def expect(self, shares: Sequence[float]) -> None:
        """Operators of the kept edges alone where that is faster."""
        self.operators.expect(shares, self.problem.sizes.hidden)

    @classmethod
    def convolutions(cls, sizes: Sizes, settings: Mapping[str, Value]) -> list[GraphConvolution]:
        """All layers, the output layer last; the number of a layer is its place here.

        >>> sizes = Sizes(num_nodes=4, num_features=10, num_classes=3, layers=4, hidden=8)
        >>> [layer.name for layer in IncepGCN.convolutions(sizes, IncepGCN.completed("incepgcn", {}))]
        ['input', 'branch1.1', 'branch2.1', 'branch2.2', 'output']
        """
        width, depth = sizes.hidden, sizes.layers
        ends = [("output", width * (depth - 1 if cls.joined else 1), sizes.num_classes)]
        if depth == 1:
            ends = [("output", sizes.num_features, sizes.num_classes)]
        shapes = [("input", sizes.num_features, width)] if depth > 1 else []
        shapes += [(name, width, width) for name in cls.hidden_names(depth)]
        settings = {**settings, **cls.fixed}
        own, norm = bool(settings["self_weight"]), bool(settings["batch_norm"])
        return [
            GraphConvolution(*shape, activate=shape[0] != "output", self_weight=own, batch_norm=norm)
            for shape in shapes + ends
        ]

    @classmethod
    def hidden_names(cls, depth: int) -> list[str]:
        """The names of the hidden layers."""
        return [f"hidden{place}" for place in range(1, depth - 1)]

    @classmethod
    def shapes(cls, sizes: Sizes, settings: Mapping[str, Value]) -> Shapes:
        """The parameters of every layer."""
        return {key: shape for layer in cls.convolutions(sizes, settings) for key, shape in layer.shapes().items()}

    @classmethod
    def buffers(cls, sizes: Sizes, settings: Mapping[str, Value]) -> dict[str, tuple[tuple[int, ...], float]]:
        """The running statistics of batch norm."""
        return {key: entry for layer in cls.convolutions(sizes, settings) for key, entry in layer.buffers().items()}

    @classmethod
    def bound(cls, key: str, shapes: Shapes) -> float:
        """Weights, self weights and biases start uniform in ±1/√outputs."""
        return float(shapes[key][-1] ** -0.5)

    @classmethod
    def constant(cls, key: str) -> float | None:
        """Batch norm starts as the identity."""
        return {"scale": 1.0, "shift": 0.0}.get(key.rpartition(".")[2])

    @property
    def draws(self) -> int:
        """Every layer can have its own subgraph."""
        return len(self.layers)

    def soften(self, weights: Tensor) -> None:
        """Evaluate on operators of weighted edges."""
        self.operators.soften(weights)

    def training(self, state: Parameters, step: TrainingStep) -> tuple[Tensor, float]:
        """On the operators of the kept edges, with dropout."""
        shifts = [self.operators.of(*kept) for kept in step.kept]
        return self.logits(state, step.x, shifts, step.noise), 0.0

    def evaluation(self, state: Parameters, x: Features, epoch: Tensor) -> Tensor:
        """On the operators of the whole graph."""
        return self.logits(state, x, [self.operators.whole])

    @property
    def hops(self) -> list[int] | None:
        """Those of a chain."""
        return list(range(len(self.layers)))[::-1]

    @property
    def of_rows(self) -> bool:
        """As the normalisation has it."""
        return self.operators.of_rows

    def on_blocks(self, state: Parameters, x: Features, blocks: Sequence[LayerBlock], noise: Noise | None) -> Tensor:
        """On the rows of the operators that each layer computes."""
        return self.logits(state, x, [self.operators.on_block(block) for block in blocks], noise)

    def logits(self, state: Parameters, x: Features, shifts: Sequence[Operator], noise: Noise | None = None) -> Tensor:
        """Logits ``[T, N, C]``. ``shifts``: one operator for all layers or one per layer; ``noise`` means training."""

        def convolve(layer: GraphConvolution, h: Features) -> Tensor:
            place = self.numbers[layer.name]
            shift = shifts[place if len(shifts) > 1 else 0]
            return layer(state, h, shift, noise is not None, noise if layer.activate else None, place)

        *before, output = self.layers
        if not before:
            return convolve(output, x)
        first, *hidden = before
        return convolve(output, self.join(hidden, convolve(first, x), convolve))

    def join(self, hidden: Sequence[GraphConvolution], h: Tensor, convolve: Convolve) -> Features:
        """What the output layer sees: the end of the chain."""
        return _chain(hidden, h, convolve)


class JKNet(GCN):
    """The output layer sees h_0 … h_(n−2)."""

    joined = True
    least_layers = 3

    def join(self, hidden: Sequence[GraphConvolution], h: Tensor, convolve: Convolve) -> Features:
        """Every layer of the chain."""
        seen = [h]
        for layer in hidden:
            seen.append(convolve(layer, seen[-1]))
        return Joined(seen)


class IncepGCN(GCN):
    """From h_0, branches of 1 … n − 2 layers; the output layer sees h_0 and their ends."""

    joined = True
    least_layers = 3

    @classmethod
    def depth(cls, layers: int) -> int:
        """The input, all branches and the output."""
        return 2 + (layers - 2) * (layers - 1) // 2

    @classmethod
    def hidden_names(cls, depth: int) -> list[str]:
        """Branch by branch."""
        return [f"branch{branch}.{place}" for branch in range(1, depth - 1) for place in range(1, branch + 1)]

    @property
    def hops(self) -> list[int] | None:
        """Layers of a branch are followed by the rest of it, and all but the output by the output."""
        longest = self.problem.sizes.layers - 2
        within = [branch - place for branch in range(1, longest + 1) for place in range(1, branch + 1)]
        return [longest + 1, *(1 + after for after in within), 0]

    def join(self, hidden: Sequence[GraphConvolution], h: Tensor, convolve: Convolve) -> Features:
        """h_0 and the end of every branch."""
        ends = [h]
        start, length = 0, 1
        while start < len(hidden):
            ends.append(_chain(hidden[start : start + length], h, convolve))
            start, length = start + length, length + 1
        return Joined(ends)


def _chain(layers: Sequence[GraphConvolution], h: Tensor, convolve: Convolve) -> Tensor:
    for layer in layers:
        h = convolve(layer, h)
    return h
