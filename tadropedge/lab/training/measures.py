"""How well a model predicts: from logits ``[T, N, C]``, labels ``[N]`` and a mask ``[T, N]`` of one part to ``[T]``.

Nothing leaves the device and no shape depends on the data, so that a measure can be part of a recorded epoch. Your own
function, added to :data:`tadropedge.lab.MEASURES`, is a measure like these; higher is better.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tadropedge.lab.data.dataset import Dataset
from tadropedge.operators.kernels import kernels


def accuracy(logits: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """The share of nodes whose largest logit is that of their class."""
    found: Tensor = kernels(logits).accuracy(logits, labels, mask)
    return found


def roc_auc(logits: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """The probability that a node of a class has a higher score for it than a node of none; ties count half.

    The score of class c is its log-odds z_c − log Σ_{k ≠ c} exp z_k: with two classes the margin z_1 − z_0, and the
    area is that of class 1; with more it is the mean over all classes that have nodes inside and outside.

    >>> logits = torch.tensor([[[0.0, 3.0], [0.0, 1.0], [0.0, 1.0], [0.0, 0.0]]])
    >>> roc_auc(logits, torch.tensor([1, 0, 1, 0]), torch.ones(1, 4))
    tensor([0.8750])
    """
    classes, exact = logits.shape[-1], logits.to(torch.float64)  # equal scores stay equal when rounded to float32
    areas, counted = [], []
    for kind in range(1 if classes == 2 else 0, classes):
        others = torch.cat((exact[..., :kind], exact[..., kind + 1 :]), dim=-1).logsumexp(dim=-1)
        odds = (exact[..., kind] - others).to(torch.float32)
        area, valid = _area(odds, (labels == kind).expand(mask.shape), mask > 0)
        areas.append(area)
        counted.append(valid)
    valid = torch.stack(counted)
    total = torch.where(valid, torch.stack(areas), 0.0).sum(dim=0)
    return (total / valid.sum(dim=0)).to(torch.float32)


def _area(scores: Tensor, positive: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
    """The area under the curve ``[T]``, and whether there are positive and negative nodes; all else is ``[T, N]``."""
    ordered, order = torch.where(inside, scores, torch.inf).sort(dim=1)
    inside, positive = inside.gather(1, order), positive.gather(1, order)
    positives, negatives = ((inside & kind).to(torch.float64) for kind in (positive, ~positive))
    below = torch.nn.functional.pad(negatives.cumsum(dim=1), (1, 0))  # negatives before each place
    ends = (torch.searchsorted(ordered, ordered, right=right) for right in (False, True))  # of the run of equal scores
    wins = sum((below.gather(1, end) for end in ends), start=torch.zeros_like(negatives)) / 2
    pairs = positives.sum(dim=1) * negatives.sum(dim=1)
    return (positives * wins).sum(dim=1) / pairs, pairs > 0


def macro_f1(logits: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """The mean over classes of F1 = 2 · hits / (predicted + true).

    It is over the classes that occur among the labels or the predictions of the part, as in scikit-learn.

    >>> macro_f1(torch.eye(3)[None, [0, 1, 1]], torch.tensor([0, 1, 0]), torch.ones(1, 3))
    tensor([0.6667])
    """
    kinds, inside = torch.arange(logits.shape[-1], device=logits.device), (mask > 0)[..., None]
    predicted, true = (one[..., None] == kinds for one in (logits.argmax(dim=-1), labels))
    hits, all_predicted, all_true = ((one & inside).sum(dim=1) for one in (predicted & true, predicted, true))
    total = all_predicted + all_true  # [T, C]
    return (2 * hits / total.clamp_min(1)).sum(dim=-1) / (total > 0).sum(dim=-1)


def default_measure(dataset: Dataset) -> str:
    """ROC AUC where there are two classes and the larger holds at least two thirds of the labels; else accuracy.

    >>> from tadropedge.lab.data.load import load
    >>> default_measure(load("karate"))
    'accuracy'
    """
    labels = dataset.labels
    counts = torch.bincount(labels[labels >= 0], minlength=dataset.num_classes)
    return "roc-auc" if len(counts) == 2 and 3 * int(counts.max()) >= 2 * int(counts.sum()) else "accuracy"
