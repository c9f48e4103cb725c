"""What is learned: the loss of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from tadropedge._support.checks import check_integer, check_number
from tadropedge.errors import TadropedgeError
from tadropedge.losses import agreement
from tadropedge.operators.kernels import kernels

RAMP = 0.2  # of the epochs, in which the weight of consistency rises from 0


def cross_entropy(logits: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """The mean loss of each trial at its nodes, ``[T]``, for logits ``[T, N, C]``.

    >>> import torch
    >>> cross_entropy(torch.tensor([[[2.0, 0.0], [0.0, 2.0]]]), torch.tensor([0, -1]), torch.tensor([[1, 0]]))
    tensor([0.1269])
    """
    found: Tensor = kernels(logits).cross_entropy(logits, labels, mask)
    return found


@dataclass(frozen=True, kw_only=True)
class Consistency:
    """The ways of training ``consistent`` and ``sharpen``: settings of :func:`tadropedge.consistency_loss`.

    With S ``draws`` of edges and of dropout per step, and P_s the predictions of one of them::

        loss = (1/S) Σ_s cross entropy of P_s at the training nodes
             + weight · r · (1/S) Σ_s mean over all nodes of |P_s − P̂|²
             + weight · r · balance · KL(mean of P̄ over all nodes ‖ uniform)
        with P̄ = (1/S) Σ_s P_s  and  P̂ ∝ P̄^(1 / temperature)

    No gradient goes through P̂; r rises from 0 to 1 in the first fifth of the epochs. ``sharpen`` has one draw. In a
    mini-batch the nodes are as many as it trains on, drawn from all. With few labels and a ``balance`` of 0 the
    predictions may drift to few classes; with many labels and classes of unequal size a large one costs accuracy.

    * Source: Feng et al., *Graph random neural networks* (GRAND, NeurIPS 2020), for the first two parts; the third is
      the entropy of the mean prediction of Krause, Perona and Gomes (NIPS 2010).
    * Cost: S forward and backward passes, which share the product of the features and the first weights.
    * Good for: few labels, whatever is dropped. Whether dropping adds anything, ``original:consistent`` tells.
    """

    draws: int = 4
    weight: float = 1.0
    temperature: float = 0.5
    balance: float = 0.3

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
        Consistency(draws=1, weight=0.5, temperature=0.5, balance=0.3)
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


def consistency(logs: Tensor, settings: Tensor) -> Tensor:
    """What is added to the losses of T trials at full weight, ``[T]``.

    ``logs [T, S, C, N]`` are the logarithms of S predictions, ``settings [3, T]`` weight, temperature and balance.

    >>> import torch
    >>> float(consistency(torch.full((1, 4, 2, 5), 0.5).log(), torch.ones(3, 1)).abs() < 1e-6)
    1.0
    """
    weight, temperature, balance = settings
    added: Tensor = weight * agreement(logs, temperature, balance)
    return added
