"""What is added to a training loss where several subgraphs of one step are predicted."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tadropedge._support.checks import check_number, check_tensor
from tadropedge.errors import TadropedgeError
from tadropedge.operators.kernels.reference import row_sums


def consistency_loss(logits: Tensor, *, temperature: float = 0.5, balance: float = 0.0) -> Tensor:
    """How far the predictions of S views are from what they agree on: a number, for ``logits [S, N, C]``.

    With P_s = softmax(logits_s), the mean prediction P̄ = (1/S) Σ P_s is sharpened, P̂ ∝ P̄^(1 / temperature), and no
    gradient goes through it. The loss is the mean over views and nodes of |P_s − P̂|², plus ``balance`` times
    KL(mean of P̄ over all nodes ‖ uniform), which keeps the predictions from drifting to few classes where labels are
    few. Logits with further axes in front, ``[..., S, N, C]``, give a loss ``[...]`` each.

    * Source: the consistency regularisation of GRAND (Feng et al., NeurIPS 2020); for balance, the entropy of the mean
      prediction of Krause, Perona and Gomes (NIPS 2010).
    * Cost: O(S N C), beside the S predictions.
    * Good for: few labels. With many labels and classes of unequal size a large ``balance`` costs accuracy.

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
    return agreement(log_chances(logits), temperature, balance)


def log_chances(logits: Tensor) -> Tensor:
    """``log softmax`` over the classes, with these in front of the nodes: ``[..., C, N]`` from ``[..., N, C]``.

    On a CPU that is ten times as fast as over an innermost axis of a few numbers.
    """
    return logits.mT.contiguous().log_softmax(dim=-2)


def agreement(logs: Tensor, temperature: float | Tensor, balance: float | Tensor) -> Tensor:
    """:func:`consistency_loss` from the logarithms of predictions ``[..., S, C, N]``; settings ``[...]`` or one."""
    views = logs.exp()
    mean = views.mean(dim=-3)
    temperature, balance = (
        torch.as_tensor(one, dtype=logs.dtype, device=logs.device) for one in (temperature, balance)
    )
    target = (mean.detach().log() / temperature[..., None, None]).softmax(dim=-2)
    nodes = logs.shape[-1]
    distance = row_sums((views - target.unsqueeze(-3)).square().sum(dim=-2).mean(dim=-2)) / nodes
    shares = row_sums(mean) / nodes
    bounded = shares.clamp_min(torch.finfo(shares.dtype).tiny)  # a class that nobody predicts has a finite slope
    divergence = (shares * bounded.log()).sum(dim=-1) + math.log(shares.shape[-1])
    loss: Tensor = distance + balance * divergence
    return loss
