"""GCN, JKNet, IncepGCN, ResGCN, SAGE and MLP: chains of graph convolutions, of any depth.

``layers`` counts graph convolutions: an input layer, hidden ones, an output layer. Dropout follows all but the last;
``feature_dropout`` is that of the raw features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor, nn

from tadropedge.lab.networks.layers import ON_INPUT, Features, GraphConvolution, Linear, side_by_side
from tadropedge.lab.networks.network import FEATURES, RATES, Network, Setting, Sizes, Start, Value
from tadropedge.lab.networks.sparse import Operator, first_rows
from tadropedge.lab.networks.view import View
from tadropedge.operators.shift import NORMALIZATIONS

DROPEDGE_SPACE: Mapping[str, Any] = {
    **RATES,
    **FEATURES,
    "normalization": ["gcn", "first-order", "gcn-residual", "random-walk"],
    "self_weight": [False, True],
    "batch_norm": [False, True],
}

TUNED: Mapping[str, Setting] = {
    "batch_norm": Setting(False),
    "layer_norm": Setting(False),
    "feature_dropout": Setting(0.0, most=1.0),
}


class GCN(Network):
    """``h_ℓ = dropout(ReLU(S h_(ℓ−1) W_ℓ + b_ℓ))``, and ``S h W + b`` as the last layer.

    ``self_weight`` adds ``h_(ℓ−1) W_self`` to each layer, which is a linear residual; ``batch_norm`` normalises before
    ReLU, the last layer's output included, ``layer_norm`` without it; ``pre_linear`` puts ``dropout(X W + b)`` in front
    of the first layer; ``feature_dropout`` drops entries of X. All weights and biases but those in front start uniform
    in ± 1 / √outputs, as in the code of DropEdge.

    * Source: Kipf and Welling, *Semi-supervised classification with graph convolutional networks* (ICLR 2017); with
      residuals, norms and a first linear layer, Luo, Shi and Wu, *Classic GNNs are strong baselines* (NeurIPS 2024).
    * Cost: O(M H + N H²) per layer and epoch, M edges, N nodes, H hidden units.
    * Good for: a first answer on graphs whose edges join like nodes.

    >>> network = GCN(Sizes(num_features=5, num_classes=3, hidden=4), [GCN.completed("gcn", {})], Start([0]))
    >>> [(name, list(value.shape)) for name, value in network.named_parameters()][:2]
    [('layers.0.weight', [1, 5, 4]), ('layers.0.bias', [1, 4])]
    """

    settings: ClassVar[Mapping[str, Setting]] = {
        "normalization": Setting("gcn", choices=NORMALIZATIONS),
        "self_weight": Setting(False),
        **TUNED,
        "pre_linear": Setting(False),
    }
    shared: ClassVar[tuple[str, ...]] = ("self_weight", "batch_norm", "layer_norm", "pre_linear")
    space = DROPEDGE_SPACE
    fixed: ClassVar[Mapping[str, Value]] = {}  # those of a GCN's settings that a kind of it decides itself
    joins: ClassVar[bool] = False  # whether the last layer sees the outputs of several others side by side

    def __init__(self, sizes: Sizes, settings: Sequence[Mapping[str, Value]], start: Start) -> None:
        super().__init__(sizes, settings, start)
        told = {**settings[0], **self.fixed}
        depth, width, given = self.hidden_layers(sizes.layers), sizes.hidden, sizes.num_features
        self.input = Linear(start, given, width) if told.get("pre_linear") else None
        given = given if self.input is None else width
        first = [(given, width)] if sizes.layers > 1 else []
        seen = width * (sizes.layers - 1 if self.joins else 1) if first else given
        shapes = [*first, *[(width, width)] * depth, (seen, sizes.num_classes)]
        last = len(shapes) - 1
        self.layers = nn.ModuleList(
            GraphConvolution(
                start,
                inputs,
                outputs,
                bound=self.bound(place, outputs),
                self_weight=bool(told["self_weight"]),
                batch_norm=bool(told["batch_norm"]),
                layer_norm=bool(told.get("layer_norm")) and place < last,
                activate=place < last,
                drop=place if place < last else None,
            )
            for place, (inputs, outputs) in enumerate(shapes)
        )

    @classmethod
    def hidden_layers(cls, layers: int) -> int:
        """How many layers there are between the first and the last."""
        return max(0, layers - 2)

    def bound(self, place: int, outputs: int) -> float:
        """Parameters of the layer at this place start uniform in ± this."""
        return float(outputs**-0.5)

    @property
    def normalizations(self) -> tuple[str, ...]:
        """Those of the settings, unless this kind of GCN has one of its own."""
        own = self.fixed.get("normalization")
        return super().normalizations if own is None else (str(own),) * self.trials

    @property
    def hops(self) -> list[int] | None:
        """Those of a chain."""
        return list(range(len(self.layers)))[::-1]

    def forward(self, x: Any, view: View) -> Tensor:
        """Logits ``[T, n, C]``."""
        x, last = self.features(x, view), len(self.layers) - 1
        if self.input is not None:
            x = self.input(x, view, drop=ON_INPUT)
        if last:
            x = self.joined(self.convolved(0, x, view), range(1, last), view)
        return self.convolved(last, x, view)

    def joined(self, h: Tensor, hidden: range, view: View) -> Tensor:
        """What the last layer sees, from what the first gives and the places of the hidden ones."""
        for place in hidden:
            h = self.convolved(place, h, view)
        return h

    def convolved(self, place: int, x: Features, view: View) -> Tensor:
        """What the layer at this place makes of x."""
        h: Tensor = self.layers[place](x, self.operator(view, place), view)
        return h

    def operator(self, view: View, place: int) -> Operator | None:
        """The operator of the layer at this place."""
        return view.shift(self.normalizations, place)


class JKNet(GCN):
    """A GCN whose last layer sees all layers before it: ``S [h_0 … h_(n−2)] W + b``.

    * Source: Xu et al., *Representation learning on graphs with jumping knowledge networks* (ICML 2018), as in the code
      of DropEdge.
    * Cost: that of gcn, with a last layer n − 1 times as wide.
    * Good for: many layers, of which nodes need different numbers.
    """

    joins = True
    least_layers = 3

    def joined(self, h: Tensor, hidden: range, view: View) -> Tensor:
        """Every layer of the chain."""
        seen = [h]
        for place in hidden:
            seen.append(self.convolved(place, seen[-1], view))
        return side_by_side(seen)


class IncepGCN(GCN):
    """From h_0, branches of 1 … n − 2 layers; the last layer sees h_0 and the ends of all branches.

    * Source: Rong, Huang, Xu and Huang, *DropEdge* (ICLR 2020).
    * Cost: that of a gcn of 2 + (n − 2)(n − 1) / 2 layers.
    * Good for: neighbourhoods of several sizes at once.
    """

    joins = True
    least_layers = 3

    @classmethod
    def hidden_layers(cls, layers: int) -> int:
        """Those of all branches.

        >>> IncepGCN.hidden_layers(5)
        6
        """
        return (layers - 2) * (layers - 1) // 2

    @property
    def hops(self) -> list[int] | None:
        """Layers of a branch are followed by the rest of it, and all but the last by the last."""
        longest = self.sizes.layers - 2
        within = [branch - place for branch in range(1, longest + 1) for place in range(1, branch + 1)]
        return [longest + 1, *(1 + after for after in within), 0]

    def joined(self, h: Tensor, hidden: range, view: View) -> Tensor:
        """h_0 and the end of every branch."""
        ends, places = [h], iter(hidden)
        for length in range(1, self.sizes.layers - 1):
            end = h
            for _ in range(length):
                end = self.convolved(next(places), end, view)
            ends.append(end)
        return side_by_side(ends)


class ResGCN(GCN):
    """``h_ℓ = dropout(ReLU(S h_(ℓ−1) W_ℓ + b_ℓ)) + h_(ℓ−1)`` in the hidden layers; the first and the last are gcn's.

    Two layers have none in between: they are those of gcn. Unlike in DropEdge's code, the parameters of the n − 2
    hidden layers start n − 2 times smaller than in gcn: all that they add is positive, so that signals would grow
    exponentially with the depth (on Cora, 64 layers of 64 units began with a loss of 4 · 10⁵, and had learned nothing
    after 100 epochs).

    * Source: Li, Müller, Thabet and Ghanem, *DeepGCNs* (ICCV 2019), as in the code of DropEdge (Rong et al., ICLR 2020,
      blocks of one layer).
    * Cost: that of gcn, and one sum per layer.
    * Good for: many layers.
    """

    # Many layers need small steps. Operators with eigenvalues up to 2 would double signals in every layer.
    space = {
        **DROPEDGE_SPACE,
        "learning_rate": [0.001, 0.002, 0.005, 0.01, 0.02],
        "normalization": ["gcn", "random-walk"],
    }

    def bound(self, place: int, outputs: int) -> float:
        """That of gcn, in hidden layers divided by their number."""
        hidden = self.hidden_layers(self.sizes.layers)
        return super().bound(place, outputs) / (hidden if 0 < place <= hidden else 1)

    def joined(self, h: Tensor, hidden: range, view: View) -> Tensor:
        """The end of the chain of sums."""
        for place in hidden:
            more = self.convolved(place, h, view)
            h = first_rows(h, more.shape[-2]) + more
        return h


class SAGE(GCN):
    """``h_i' = ReLU(h_i W_self + (mean of h_j over the kept edges ij) W + b)``, without ReLU in the last layer.

    It is a GCN with ``S = D^-1 A``, the normalisation ``neighbour-mean``, and self weights: a node that lost all its
    edges sees itself alone. All neighbours that are left count; none are sampled, signals are not divided by their
    norm, and the last convolution gives the classes. With the option ``unbiased``, S is that of the whole graph with
    the entries of kept edges divided by their keep probability: not a mean of what is left, but right on average.

    * Source: Hamilton, Ying and Leskovec, *Inductive representation learning on large graphs* (NeurIPS 2017), the mean
      aggregator.
    * Cost: O(M H + 2 N H²) per layer and epoch.
    * Good for: graphs whose edges join unlike nodes: a node's own features have weights of their own, which are a
      linear residual, too.
    """

    settings = {**TUNED, "pre_linear": Setting(False)}
    shared = ("batch_norm", "layer_norm", "pre_linear")
    space = {**RATES, **FEATURES, "batch_norm": [False, True]}
    fixed = {"normalization": "neighbour-mean", "self_weight": True}


class MLP(GCN):
    """``h_ℓ = ReLU(h_(ℓ−1) W_ℓ + b_ℓ)``: a GCN with ``S = I``, which sees the features of a node alone.

    If it is no worse than a network that sees the graph, the graph is not needed. No edges can be dropped from it.

    * Source: Rosenblatt (1962), Rumelhart, Hinton and Williams (Nature 1986).
    * Cost: O(N H²) per layer and epoch; no sparse products but those of sparse features.
    * Good for: a control: is the graph needed at all?
    """

    settings = TUNED
    shared = ("batch_norm", "layer_norm")
    space = {**RATES, **FEATURES, "batch_norm": [False, True]}
    fixed = {"self_weight": False}
    supports = ()
    because = "sees no edges"

    @property
    def hops(self) -> list[int] | None:
        """No layer looks at neighbours."""
        return []

    def operator(self, view: View, place: int) -> None:
        """None: ``S = I``."""
