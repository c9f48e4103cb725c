"""What networks that sample share: sparse operators, importance weights, and the lowest entries of each row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from tadropedge.lab.networks.noise import Noise
from tadropedge.lab.networks.sparse import Entries, Sparse
from tadropedge.lab.networks.view import View

RATES: Mapping[str, Any] = {
    # From the smallest learning rate of the competitors' public codes to three times the largest.
    "learning_rate": {"log-uniform": [0.001, 0.03]},
    "weight_decay": [1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3],
    "dropout": [0.0, 0.3, 0.5, 0.8],
}
KEY_BITS = 33  # of the keys that entries are ranked by


def gcn_operator(view: View, trials: int) -> Sparse:
    """Â of the edges that exist, sparse for small graphs, too."""
    made = view.operator(["gcn"] * trials)
    return Sparse(made.pattern, made.values, made.symmetric)


@torch.no_grad()
def importance(noise: Noise, q: Tensor, samples: Tensor, stream: int = 0) -> Tensor:
    """Draw ``samples [T]`` nodes with probabilities ``q [T, N]``, with replacement: their weights ``[T, N]``.

    ``s_u = (times u was drawn) / (samples · q_u)``, so ``E[s_u] = 1`` wherever q is positive and ``Σ_u s_u z_u`` is
    the Monte Carlo estimate of ``Σ_u z_u``. ``q`` needs no normalisation.
    """
    most = int(samples.max())
    cumulated = q.to(torch.float64).cumsum(dim=-1)
    total = cumulated[:, -1:]
    places = torch.searchsorted(cumulated, noise.uniform(most, stream, torch.float64) * total, right=True)
    inside = torch.arange(most, device=q.device) < samples[:, None]
    counts = torch.zeros_like(q).scatter_add_(1, places.clamp_max(q.shape[1] - 1), inside.to(q.dtype))
    return torch.where(q > 0, counts * (total.to(q.dtype) / samples[:, None]) / q, 0.0)


class Ranking:
    """The entries of lowest key in each row, up to a given number; only rows with more than ``least`` are sorted."""

    def __init__(self, entries: Entries, least: int) -> None:
        self.entries, self.edge = entries, entries.edge
        degrees = torch.bincount(entries.row[entries.edge], minlength=entries.num_nodes)
        self.long = torch.nonzero(entries.edge & (degrees > least)[entries.row])[:, 0]
        self.rows = entries.row[self.long]  # sorted
        starts = torch.searchsorted(self.rows, self.rows)
        self.ranks = torch.arange(len(self.rows), device=self.rows.device) - starts

    def lowest(self, keys: Tensor, most: Tensor) -> Tensor:
        """A mask ``[T, E]`` of the ``most [T]`` edges of lowest key in each row; keys int64 ``[T, E]`` in [0, 2³³)."""
        mask = self.edge.repeat(len(keys), 1)
        if not len(self.long):
            return mask
        order = (keys.index_select(1, self.long) + (self.rows << KEY_BITS)).sort(dim=1, stable=True).indices
        among = (self.ranks < most[:, None]).to(torch.uint8)  # in sorted order: rows stay where they are
        return mask.index_copy_(1, self.long, torch.zeros_like(among).scatter_(1, order, among).to(torch.bool))
