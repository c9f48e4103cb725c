"""What is added to a training loss where several subgraphs of one step are predicted."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tadropedge._support.checks import check_number, check_tensor
from tadropedge.errors import TadropedgeError


def consistency_loss(logits: Tensor, *, temperature: float = 0.5, balance: float = 0.0) -> Tensor:
    """How far the predictions of S views are from what they agree on: a number, for ``logits [S, N, C]``.

    With P_s = softmax(logits_s), the mean prediction P̄ = (1/S) Σ P_s is sharpened, P̂ ∝ P̄^(1 / temperature), and no
    gradient goes through it. The loss is the mean over views and nodes of |P_s − P̂|², plus ``balance`` times
    KL(mean of P̄ over all nodes ‖ uniform), which keeps the predictions from drifting to few classes where labels are
    few. Logits with further axes in front, ``[..., S, N, C]``, give a loss ``[...]`` each.

    * Source: the consistency regularisation of GRAND (Feng et al., NeurIPS 2020); balance is ours.

    >>> views = torch.tensor([[[2.0, 0.0]], [[0.0, 2.0]]])  # two views that disagree about one node
    >>> round(float(consistency_loss(views)), 4)
    0.29
    >>> float(consistency_loss(torch.tensor([[[90.0, 0.0], [0.0, 90.0]]] * 2), balance=1.0))  # sure, agreed and even
    0.0
    """
    if check_tensor("logits", logits).dim() < 3:
        raise TadropedgeError(f"logits must have shape [S, N, C], got {list(logits.shape)}", argument="logits")
    temperature = check_number("temperature", temperature, 0)
    if temperature == 0:
        raise TadropedgeError("temperature must be above 0, got 0", argument="temperature")
    balance = check_number("balance", balance, 0)
    views = logits.softmax(dim=-1)
    mean = views.mean(dim=-3)
    target = (mean.detach().log() / temperature).softmax(dim=-1)
    distance: Tensor = (views - target.unsqueeze(-3)).square().sum(dim=-1).mean(dim=(-2, -1))
    if balance == 0:
        return distance
    shares = mean.mean(dim=-2)
    divergence: Tensor = torch.special.xlogy(shares, shares).sum(dim=-1) + math.log(shares.shape[-1])
    return distance + balance * divergence
