"""GraphSAGE (Hamilton, Ying, Leskovec 2017): mean aggregation over a few sampled neighbours.

For k = 1, 2, with h⁰ = x::

    h_N(v) = mean of h^(k−1)_u over S_k sampled neighbours u of v
    h^k_v  = ReLU(W_k · [h^(k−1)_v, h_N(v)] + b_k),   then  h^k_v / ‖h^k_v‖

and a linear layer from h² to the classes. W · [h, h_N] is written as ``h W_self + h_N W``. S_1 = 25 and S_2 = 10 in the
paper; here ``samples`` is S_1 and S_2 is two fifths of it. A node with at most S_k neighbours uses them all, one with
more uses S_k distinct ones, each set equally likely.

PyTorch Geometric's ``SAGEConv`` has no trials axis, so the layer is written here; a test compares the outputs.

Unlike the paper: a node in several neighbourhoods of a step samples once per layer, not once for each of
them, and sampling is without replacement. At evaluation the mean is over all neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import torch
from torch import Tensor

from tadropedge._old.nn.draws import Draws
from tadropedge._old.nn.entries import Entries, Ranking
from tadropedge._old.nn.finish import Noise
from tadropedge._old.nn.layers import Features, Parameters, Sparse
from tadropedge._old.nn.network import RATES, Problem, Sampler, Setting, Shapes, Sizes, TrainingStep, Value

DROPPED = 2**32  # added to the key of an edge that does not exist: it comes after all that do


class GraphSAGE(Sampler):
    """Two mean-aggregator layers and a linear one."""

    settings = {
        "hidden": Setting(128, 1),
        "samples": Setting(25, 1),
        "inductive": Setting(False),
    }
    space = {**RATES, "hidden": [64, 128], "samples": [5, 10, 25]}
    batch_size = 512

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        first = problem.column("samples")
        self.samples = (first, (2 * first + 4).div(5, rounding_mode="floor"))  # the second rounded up
        self.rankings = [Ranking(problem.entries, int(most.min())) for most in self.samples]

    @classmethod
    def shapes(cls, sizes: Sizes, settings: Mapping[str, Value]) -> Shapes:
        """``W`` and ``W_self`` of both layers, and the linear layer."""
        inputs, hidden, classes = sizes.num_features, sizes.hidden, sizes.num_classes
        shapes: Shapes = {}
        for layer, width in (("sage1", inputs), ("sage2", hidden)):
            shapes |= {f"{layer}.weight": (width, hidden), f"{layer}.self_weight": (width, hidden)}
            shapes[f"{layer}.bias"] = (hidden,)
        return shapes | {"output.weight": (hidden, classes), "output.bias": (classes,)}

    def training(self, state: Parameters, step: TrainingStep) -> tuple[Tensor, float]:
        """Both layers on sampled neighbours."""
        entries = self.problem.entries
        means = [
            sampled_mean(entries, self.rankings[layer], self.samples[layer], step.draws, step.keep(layer), layer)
            for layer in range(2)
        ]
        return self._logits(state, step.x, means, step.noise), 0.0

    def evaluation(self, state: Parameters, x: Features, epoch: Tensor) -> Tensor:
        """Both layers on all neighbours."""
        return self._logits(state, x, [self._whole, self._whole], None)

    @cached_property
    def _whole(self) -> Sparse:
        return mean_operator(self.problem.entries, self.problem.entries.edge[None])

    def _logits(self, state: Parameters, x: Features, means: list[Sparse], noise: Noise | None) -> Tensor:
        h = sage_layer(state, "sage1", x, means[0])
        h = h if noise is None else noise(h, 0)
        h = sage_layer(state, "sage2", h, means[1])
        h = h if noise is None else noise(h, 1)
        return torch.baddbmm(state["output.bias"][:, None, :], h, state["output.weight"])


def sage_layer(state: Parameters, name: str, x: Features, mean: Sparse) -> Tensor:
    """``ReLU(h W_self + M (h W) + b)`` of unit length, where h is ``x`` and M the mean over neighbours."""
    weights = torch.cat((state[f"{name}.weight"], state[f"{name}.self_weight"]), dim=-1)
    neighbours, own = (x @ weights).chunk(2, dim=-1)
    h = (mean @ neighbours.contiguous() + own + state[f"{name}.bias"][:, None, :]).relu()
    return torch.nn.functional.normalize(h, dim=-1)


def sampled_mean(
    entries: Entries, ranking: Ranking, samples: Tensor, draws: Draws, keep: Tensor | None, stream: int = 0
) -> Sparse:
    """The mean over at most ``samples [T]`` neighbours of each node, drawn from the edges in ``keep [T, M]``."""
    keys = (draws.words(entries.count, stream) >> 32) & (2**32 - 1)
    exists = entries.edge[None] if keep is None else entries.spread(keep)
    chosen = ranking.lowest(torch.where(exists, keys, keys + DROPPED), samples)
    return mean_operator(entries, chosen & exists)


def mean_operator(entries: Entries, chosen: Tensor) -> Sparse:
    """The mean over the ``chosen [T, E]`` entries of each row; 0 where there is none."""
    ones = chosen.to(torch.float32)
    counts = entries.row_sums(ones).clamp_min(1)
    return Sparse(entries.places, ones / counts.index_select(1, entries.row))
