"""The backbones: GCN, JKNet and IncepGCN of any depth for nodes, the order-K GCNN with a read-out for graphs.

Depth n counts graph convolutions: one input layer, n − 2 hidden ones, one output layer. Dropout follows the input layer
and every hidden layer, never the raw features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from tadropedge.errors import lookup
from tadropedge.nn.finish import Noise
from tadropedge.nn.layers import Features, GraphConvolution, Joined, Operator, Parameters

Convolve = Callable[[GraphConvolution, Features], Tensor]


@dataclass(frozen=True)
class Backbone:
    """A network for nodes: its convolutions, and how they are joined."""

    kind: str
    layers: int
    num_features: int
    hidden: int
    num_classes: int
    self_weight: bool = False
    batch_norm: bool = False

    def _layer(self, name: str, inputs: int, outputs: int, activate: bool = True) -> GraphConvolution:
        return GraphConvolution(name, inputs, outputs, activate, self.self_weight, self.batch_norm)

    def convolutions(self) -> list[GraphConvolution]:
        """All layers, the output layer last; the number of a layer is its place here.

        >>> [layer.name for layer in Backbone("incepgcn", 4, 10, 8, 3).convolutions()]
        ['input', 'branch1.1', 'branch2.1', 'branch2.2', 'output']
        """
        names = lookup("backbone", self.kind, HIDDEN_NAMES)(self.layers)
        hidden = [self._layer(name, self.hidden, self.hidden) for name in names]
        joined = self.hidden * (1 if self.kind == "gcn" else self.layers - 1)
        if self.layers == 1:
            return [self._layer("output", self.num_features, self.num_classes, activate=False)]
        first = self._layer("input", self.num_features, self.hidden)
        return [first, *hidden, self._layer("output", joined, self.num_classes, activate=False)]

    @property
    def draws(self) -> int:
        """The number of layers that could have a subgraph of their own."""
        return len(self.convolutions())

    def initial(self, seeds: Sequence[int], device: torch.device) -> Parameters:
        """The starting parameters ``[T, ...]``, each trial a pure function of its seed."""
        return stack_initial(self.convolutions(), seeds, device)

    def running(self, trials: int, device: torch.device) -> Parameters:
        """The running statistics of batch norm, empty where it is off."""
        return {key: value for layer in self.convolutions() for key, value in layer.running(trials, device).items()}

    def __call__(
        self,
        parameters: Parameters,
        running: Parameters,
        x: Features,
        shifts: Sequence[Operator],
        noise: Noise | None = None,
    ) -> Tensor:
        """Logits ``[T, N, C]``. ``shifts`` holds one operator for all layers or one each; ``noise`` means training."""
        layers = self.convolutions()
        number = {layer.name: place for place, layer in enumerate(layers)}

        def convolve(layer: GraphConvolution, h: Features) -> Tensor:
            place = number[layer.name]
            shift = shifts[place if len(shifts) > 1 else 0]
            dropped = noise if layer.activate else None
            return layer(parameters, running, h, shift, noise is not None, dropped, place)

        if self.layers == 1:
            return convolve(layers[0], x)
        h = convolve(layers[0], x)
        return convolve(layers[-1], JOINS[self.kind](layers[1:-1], h, convolve))


def stack_initial(layers: Sequence[GraphConvolution], seeds: Sequence[int], device: torch.device) -> Parameters:
    """Draw every layer's parameters from one generator a seed, and stack the trials."""

    def drawn(seed: int) -> Parameters:
        generator = torch.Generator().manual_seed(seed % 2**63)
        return {key: layer.initial(key, shape, generator) for layer in layers for key, shape in layer.shapes().items()}

    with ThreadPoolExecutor() as pool:  # hundreds of large draws, each on its own generator
        starts = list(pool.map(drawn, seeds))
    return {key: torch.stack([start[key] for start in starts]).to(device) for key in starts[0]}


def _chain(hidden: Sequence[GraphConvolution], h: Tensor, convolve: Convolve) -> Tensor:
    """GCN: one layer after the other."""
    for layer in hidden:
        h = convolve(layer, h)
    return h


def _jump(hidden: Sequence[GraphConvolution], h: Tensor, convolve: Convolve) -> Joined:
    """JKNet: the output layer sees h_0 … h_(n−2)."""
    seen = [h]
    for layer in hidden:
        seen.append(convolve(layer, seen[-1]))
    return Joined(seen)


def _inception(hidden: Sequence[GraphConvolution], h: Tensor, convolve: Convolve) -> Joined:
    """IncepGCN: from h_0, branches of 1 … n − 2 layers; the output layer sees h_0 and their ends."""
    ends = [h]
    start, length = 0, 1
    while start < len(hidden):
        ends.append(_chain(hidden[start : start + length], h, convolve))
        start, length = start + length, length + 1
    return Joined(ends)


JOINS: dict[str, Callable[[Sequence[GraphConvolution], Tensor, Convolve], Features]] = {
    "gcn": _chain,
    "jknet": _jump,
    "incepgcn": _inception,
}
HIDDEN_NAMES: dict[str, Callable[[int], list[str]]] = {
    "gcn": lambda layers: [f"hidden{place}" for place in range(1, layers - 1)],
    "jknet": lambda layers: [f"hidden{place}" for place in range(1, layers - 1)],
    "incepgcn": lambda layers: [f"branch{b}.{place}" for b in range(1, layers - 1) for place in range(1, b + 1)],
}
