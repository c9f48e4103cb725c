"""A multi-layer perceptron: the control that sees no edges."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from tadropedge._old.neighbours.block import LayerBlock
from tadropedge._old.nn.backbones import DEFAULT_SPACE, GCN
from tadropedge._old.nn.finish import Noise
from tadropedge._old.nn.layers import Features, Identity, Parameters
from tadropedge._old.nn.network import Setting, TrainingStep


class MLP(GCN):
    """``h_ℓ = ReLU(h_(ℓ−1) W_ℓ + b_ℓ)``: a GCN with ``S = I``, which sees the features of a node alone.

    If it is no worse than a network that sees the graph, the graph is not needed. It is judged against not dropping on
    the backbone of the comparison, and no edges can be dropped from it.

    * Source: Rosenblatt (1962), Rumelhart, Hinton and Williams (Nature 1986).
    * Cost: O(N H²) per layer and epoch, H hidden units; no sparse products but those of sparse features.
    * Good for: a control: is the graph needed at all?
    """

    settings = {"batch_norm": Setting(False)}
    shared = ("batch_norm",)
    space = {
        **{name: values for name, values in DEFAULT_SPACE.items() if name not in ("normalization", "keep_prob")},
        "batch_norm": [False, True],
    }
    drops = False
    because = "sees no edges"
    weighs = False
    softens = False
    fixed = {"normalization": "gcn", "self_weight": False}

    def training(self, state: Parameters, step: TrainingStep) -> tuple[Tensor, float]:
        """With dropout, and without the graph."""
        return self.logits(state, step.x, [Identity()], step.noise), 0.0

    @property
    def hops(self) -> list[int] | None:
        """No layer looks at neighbours."""
        return []

    def on_blocks(self, state: Parameters, x: Features, blocks: Sequence[LayerBlock], noise: Noise | None) -> Tensor:
        """The nodes of the mini-batch are the seeds alone."""
        return self.logits(state, x, [Identity()], noise)

    def evaluation(self, state: Parameters, x: Features, epoch: Tensor) -> Tensor:
        """Without dropout, and without the graph."""
        return self.logits(state, x, [Identity()])
