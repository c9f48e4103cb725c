"""A small network that gives a number to every direction of an edge, from what its two ends have."""

from __future__ import annotations

from torch import Tensor, nn

from tadropedge.lab.networks.layers import Features, product
from tadropedge.lab.networks.network import Start
from tadropedge.lab.networks.sparse import Entries


class EdgeScores(nn.Module):
    """``out · ReLU(W_own h_u + W_other h_v + b)`` of every entry (u, v), ``[T, E]``; with ``shift`` plus a number.

    The first layer is linear in h_u and in h_v, so it is done node by node.
    """

    def __init__(self, start: Start, inputs: int, width: int, *, shift: bool = False) -> None:
        super().__init__()
        self.weight, self.bias = start.glorot(inputs, 2 * width), start.zeros(width)
        self.out = start.glorot(width, 1)
        self.shift = start.zeros(1) if shift else None

    def forward(self, h: Features, entries: Entries) -> Tensor:
        """The numbers, on the diagonal, too."""
        own, other = product(h, self.weight).chunk(2, dim=-1)
        hidden = entries.at_rows(own.contiguous()) + entries.at_cols(other.contiguous())
        hidden = (hidden + self.bias[:, None]).relu()
        # A sum, not a product with one column: its rounding would depend on the number of trials.
        found = (hidden * self.out[:, None, :, 0]).sum(dim=-1)
        return found if self.shift is None else found + self.shift
