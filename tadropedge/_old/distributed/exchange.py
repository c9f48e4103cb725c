"""Rows of the boundary, sent to the processes that need them, and their gradients, sent back.

Who needs what is known from the parts alone: a process needs the other end of every pair that it shares. The lists are
made once. Where only the kept pairs are multiplied, :meth:`Exchange.thinned` leaves out the rows that no kept pair asks
for; the coins tell the sender and the receiver the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from tadropedge._old.distributed.group import Group
from tadropedge._old.distributed.part import SpreadPart


@dataclass(frozen=True, eq=False)
class Lists:
    """Own rows to send ``[S]`` and boundary rows that are filled ``[R]``, process by process, and how many of each."""

    send: Tensor
    fill: Tensor
    sent: tuple[int, ...]
    filled: tuple[int, ...]


class Exchange:
    """The exchange of one part with the others of its group."""

    def __init__(self, part: SpreadPart, group: Group, lists: Lists | None = None) -> None:
        self.part, self.group = part, group
        self.lists = self._all if lists is None else lists

    @cached_property
    def _shared(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """For each shared pair its places in the whole lists, and those lists: each row once per process."""
        part = self.part
        _, mine, other = part.cut
        count = part.graph.num_nodes
        # By process, then by the number of the node: the order in which the other side lists the same rows.
        send, to_send = torch.unique(part.owner[other] * count + mine, return_inverse=True)
        fill, to_fill = torch.unique(part.owner[other] * count + other, return_inverse=True)
        return send, fill, to_send, to_fill

    @cached_property
    def _all(self) -> Lists:
        send, fill, _, _ = self._shared
        return self._of(send, fill)

    def _of(self, send: Tensor, fill: Tensor) -> Lists:
        count, size = self.part.graph.num_nodes, self.group.size
        numbers = (torch.bincount(keys // count, minlength=size) for keys in (send, fill))
        sent, filled = (tuple(each) for each in torch.stack(list(numbers)).tolist())
        return Lists(self.part.own_place[send % count], fill % count, sent, filled)

    def thinned(self, keep: Tensor) -> Exchange:
        """The exchange of the rows that the pairs in the mask ``keep [m]`` ask for; others are never read."""
        if self.group.size == 1:
            return self
        send, fill, to_send, to_fill = self._shared
        kept = keep.index_select(0, self.part.cut[0])
        asked = (_marked(len(send), to_send[kept]), _marked(len(fill), to_fill[kept]))
        return Exchange(self.part, self.group, self._of(send[asked[0]], fill[asked[1]]))

    def everywhere(self, x: Tensor) -> Tensor:
        """``x [T, n, ...]`` of the own nodes at all nodes of the part, ``[T, n + h, ...]``, with gradients."""
        if self.group.size == 1:
            return x
        spread: Tensor = _Everywhere.apply(x.flatten(2), self)  # type: ignore[no-untyped-call]
        return spread.view(len(x), -1, *x.shape[2:])

    def fetched(self, x: Tensor) -> Tensor:
        """The same of ``x [T, n, F]`` without gradients."""
        if self.group.size == 1:
            return x
        trials, _, width = x.shape
        lists = self.lists
        rows = x.index_select(1, lists.send).transpose(0, 1).contiguous()  # [S, T, F]
        received = rows.new_empty((len(lists.fill), trials, width))
        self.group.to_all(rows, received, lists.sent, lists.filled)
        out = x.new_empty((trials, self.part.graph.num_nodes, width))
        out.index_copy_(1, self.part.own, x)
        return out.index_copy_(1, lists.fill, received.transpose(0, 1))

    def returned(self, gradient: Tensor) -> Tensor:
        """The transpose of :meth:`fetched`: ``[T, n, F]`` from ``[T, n + h, F]``.

        What comes back is added process by process, in each of which a row stands once: the order of sums is fixed.
        """
        trials, _, width = gradient.shape
        lists = self.lists
        rows = gradient.index_select(1, lists.fill).transpose(0, 1).contiguous()
        received = rows.new_empty((len(lists.send), trials, width))
        self.group.to_all(rows, received, lists.filled, lists.sent)
        out = gradient.index_select(1, self.part.own)
        pieces = zip(lists.send.split(lists.sent), received.transpose(0, 1).split(lists.sent, dim=1), strict=True)
        for places, piece in pieces:
            out.index_add_(1, places, piece)
        return out


def _marked(size: int, places: Tensor) -> Tensor:
    return torch.zeros(size, dtype=torch.bool, device=places.device).index_fill_(0, places, True)


class _Everywhere(torch.autograd.Function):
    """Boundary rows on the way there, gradients of boundary rows on the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, exchange: Exchange) -> Tensor:
        ctx.exchange = exchange
        return exchange.fetched(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.exchange.returned(gradient), None


class _AllSum(torch.autograd.Function):
    """The sum over all processes, whose gradient is the sum of their gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return group.all_sum_(x.clone())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.group.all_sum_(gradient.contiguous().clone()), None


def all_sum(x: Tensor, group: Group) -> Tensor:
    """The sum of the ``x`` of all processes, with gradients to each of them."""
    if group.size == 1:
        return x
    total: Tensor = _AllSum.apply(x, group)  # type: ignore[no-untyped-call]
    return total
