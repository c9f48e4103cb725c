"""What is learned: the loss of a step, and means over the nodes of a part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tadropedge._support.checks import check_integer, check_number
from tadropedge.errors import TadropedgeError
from tadropedge.losses import consistency_loss

BLOCK = 4096  # entries that are summed together
RAMP = 0.2  # of the epochs, in which the weight of consistency rises from 0


def mean_at(values: Tensor, mask: Tensor) -> Tensor:
    """The mean of ``values [T, N]`` where ``mask [T, N]`` is 1, ``[T]``: a count over a count, so accuracies are exact.

    Elsewhere the values may be anything, even without bounds: they are left out, not multiplied by 0.

    >>> mean_at(torch.tensor([[1.0, 0.0, torch.inf]]), torch.tensor([[1, 1, 0]]))
    tensor([0.5000])
    """
    return row_sums(torch.where(mask > 0, values, 0.0)) / mask.sum(dim=1).clamp_min(1)


def row_sums(values: Tensor) -> Tensor:
    """The sums of the rows of ``values [T, N]``, ``[T]``: the same bits however many rows there are.

    Torch cuts a single long row into as many pieces as there are threads, but never a row among others.
    """
    if values.shape[1] <= BLOCK:
        return values.sum(dim=1)
    blocks = torch.nn.functional.pad(values, (0, -values.shape[1] % BLOCK)).unflatten(1, (-1, BLOCK))
    sums: Tensor = blocks.sum(dim=2).sum(dim=1)
    return sums


def cross_entropy(logits: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """The mean loss of each trial at its nodes, ``[T]``, for logits ``[T, N, C]``.

    >>> cross_entropy(torch.tensor([[[2.0, 0.0], [0.0, 2.0]]]), torch.tensor([0, -1]), torch.tensor([[1, 0]]))
    tensor([0.1269])
    """
    index = labels.clamp_min(0).expand(logits.shape[0], -1)  # where there is no label, the mask is 0
    return mean_at(-logits.log_softmax(dim=-1).gather(-1, index[..., None])[..., 0], mask)


@dataclass(frozen=True, kw_only=True)
class Consistency:
    """The ways of training ``consistent`` and ``sharpen``: settings of :func:`tadropedge.consistency_loss`.

    ``draws`` subgraphs are drawn in each step, and ``weight`` times the loss between their predictions on all nodes is
    added to the mean cross entropy; the weight rises from 0 in the first fifth of the epochs. ``sharpen`` has one draw.
    """

    draws: int = 4
    weight: float = 1.0
    temperature: float = 0.5
    balance: float = 0.0

    def __post_init__(self) -> None:
        check_integer("draws", self.draws, least=1)
        check_number("consistency_weight", self.weight, 0)
        check_number("balance", self.balance, 0)
        if not check_number("temperature", self.temperature, 0) > 0:
            raise TadropedgeError("temperature must be above 0, got 0", argument="temperature")

    @classmethod
    def of(cls, ways: Sequence[str], settings: Mapping[str, Any]) -> Consistency | None:
        """That of a trial, by its candidate's ways of training and its settings; ``None``: it has none.

        >>> Consistency.of(("finish", "sharpen"), {"consistency_weight": 0.5})
        Consistency(draws=1, weight=0.5, temperature=0.5, balance=0.0)
        """
        if not {"consistent", "sharpen"} & set(ways):
            return None
        given = {name: settings[key] for key, name in OF_CONSISTENCY.items() if key in settings}
        return cls(**(given | {"draws": 1} if "sharpen" in ways else given))


OF_CONSISTENCY = {  # settings of a trial, and the fields they are
    "draws": "draws",
    "consistency_weight": "weight",
    "temperature": "temperature",
    "balance": "balance",
}


def consistency(logits: Tensor, settings: Sequence[Consistency | None]) -> Tensor:
    """What the ``settings`` of T trials add to their losses at full weight, ``[T]``, for logits ``[T, S, N, C]``.

    >>> float(consistency(torch.zeros(1, 4, 5, 2), [Consistency(balance=1.0)]).abs() < 1e-6)
    1.0
    """
    return torch.stack(
        [
            one.weight * consistency_loss(mine, temperature=one.temperature, balance=one.balance)
            if one is not None
            else mine.new_zeros(())
            for one, mine in zip(settings, logits, strict=True)
        ]
    )
