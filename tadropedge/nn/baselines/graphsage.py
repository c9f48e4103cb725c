"""GraphSAGE (Hamilton, Ying, Leskovec 2017): mean aggregation over a few sampled neighbours.

For k = 1, 2, with h⁰ = x::

    h_N(v) = mean of h^(k−1)_u over S_k sampled neighbours u of v
    h^k_v  = ReLU(W_k · [h^(k−1)_v, h_N(v)] + b_k),   then  h^k_v / ‖h^k_v‖

and a linear layer from h² to the classes. W · [h, h_N] is written as ``h W_self + h_N W``. S_1 = 25 and S_2 = 10 in the
paper; here ``samples`` is S_1 and S_2 is two fifths of it. A node with at most S_k neighbours uses them all, one with
more uses S_k distinct ones, each set equally likely.

PyTorch Geometric's ``SAGEConv`` has no trials axis, so the layer is written here; tests hold it to that one's output.

Unlike the paper: a node that stands in several neighbourhoods of a step samples once a layer, not once for each of
them, and sampling is without replacement. At evaluation the mean is over all neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from tadropedge.nn.baselines.draws import Draws
from tadropedge.nn.baselines.entries import Entries, Ranking
from tadropedge.nn.baselines.network import Network, Problem, Step, Value
from tadropedge.nn.finish import Noise
from tadropedge.nn.layers import Parameters, Sparse

DROPPED = 2**32  # added to the key of an edge that does not exist: it comes after all that do


class GraphSAGE(Network):
    """Two mean-aggregator layers and a linear one."""

    defaults: ClassVar[dict[str, Value]] = {"hidden": 128, "batch_size": 512, "samples": 25, "inductive": False}
    batched = True

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        first = problem.settings["samples"]
        self.samples = (first, (2 * first + 4).div(5, rounding_mode="floor"))  # the second rounded up
        self.rankings = [Ranking(problem.entries, int(most.min())) for most in self.samples]

    @staticmethod
    def shapes(inputs: int, hidden: int, classes: int) -> dict[str, tuple[int, ...]]:
        """``W`` and ``W_self`` of both layers, and the linear layer."""
        shapes: dict[str, tuple[int, ...]] = {}
        for layer, width in (("sage1", inputs), ("sage2", hidden)):
            shapes |= {f"{layer}.weight": (width, hidden), f"{layer}.self_weight": (width, hidden)}
            shapes[f"{layer}.bias"] = (hidden,)
        return shapes | {"output.weight": (hidden, classes), "output.bias": (classes,)}

    def training(self, parameters: Parameters, step: Step) -> tuple[Tensor, Tensor]:
        """Both layers on sampled neighbours."""
        entries = self.problem.entries
        means = [
            sampled_mean(entries, self.rankings[layer], self.samples[layer], step.draws, step.keep(layer), layer)
            for layer in range(2)
        ]
        return self._logits(parameters, means, step.noise), self.no_penalty

    def evaluation(self, parameters: Parameters, epoch: Tensor) -> Tensor:
        """Both layers on all neighbours."""
        return self._logits(parameters, [self._whole, self._whole], None)

    @cached_property
    def _whole(self) -> Sparse:
        return mean_operator(self.problem.entries, self.problem.entries.edge[None])

    def _logits(self, parameters: Parameters, means: list[Sparse], noise: Noise | None) -> Tensor:
        h = sage_layer(parameters, "sage1", self.problem.times, means[0])
        h = h if noise is None else noise(h, 0)
        h = sage_layer(parameters, "sage2", h.matmul, means[1])
        h = h if noise is None else noise(h, 1)
        return torch.baddbmm(parameters["output.bias"][:, None, :], h, parameters["output.weight"])


def sage_layer(parameters: Parameters, name: str, times: Callable[[Tensor], Tensor], mean: Sparse) -> Tensor:
    """``ReLU(h W_self + M (h W) + b)`` of unit length, where ``times(W)`` is h W and M the mean over neighbours."""
    weights = torch.cat((parameters[f"{name}.weight"], parameters[f"{name}.self_weight"]), dim=-1)
    neighbours, own = times(weights).chunk(2, dim=-1)
    h = (mean @ neighbours.contiguous() + own + parameters[f"{name}.bias"][:, None, :]).relu()
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
