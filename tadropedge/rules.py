"""Phase III, the probabilities: from edge scores to the probability of keeping each edge.

A rule is a short function of the scores ``[M]``; adding it to :data:`tadropedge.RULES` makes it usable everywhere.
There are two kinds:

* a rule with the paper's default probability p returns s in [0, 1], 0 for edges that are kept with probability p and 1
  for edges that are always kept: the probability is ``p + (1 − p) · s``, and where a share of kept edges is asked for,
  p is solved for;
* a rule that takes ``keep_ratio``, the expected share of kept edges, returns probabilities of that mean.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tadropedge._support.checks import (
    ask,
    check_device,
    check_flag,
    check_number,
    check_numbers,
    check_probability,
    check_settings,
    settings_of,
)
from tadropedge.errors import EqualScoresWarning, TadropedgeError, lookup, show
from tadropedge.registry import RULES

Rule = Callable[..., Tensor]

SIGNATURE = "rule(scores [M], **settings) -> s [M] in [0, 1], or rule(scores [M], keep_ratio, **settings) -> p [M]"
ROUNDING = 1e-12  # of a mean: a budget at the end of what a rule can reach


def uniform(scores: Tensor) -> Tensor:
    """DropEdge: every edge has the same probability.

    * Source: Rong, Huang, Xu and Huang, *DropEdge* (ICLR 2020).
    * Cost: O(M).
    """
    return torch.zeros_like(scores)


def cutoff(scores: Tensor, gamma: float | str = "auto") -> Tensor:
    """Threshold cutoff: edges with ω ≥ γ are never dropped, those with ω < γ are kept with probability p.

    ``gamma="auto"`` is the sudden rise of the scores, see :func:`auto_gamma`.

    * Source: the paper of TADropEdge (arXiv 2106.02892).
    * Cost: O(M), with ``"auto"`` a sort.
    """
    return (scores >= _threshold(scores, gamma)).to(scores.dtype)


def inverse_cutoff(scores: Tensor, gamma: float | str = "auto") -> Tensor:
    """Inverse threshold cutoff: edges with ω > γ are kept with probability p, the others always.

    At ω = γ both rules keep the edge, as printed in the paper: so this is not one minus :func:`cutoff`.
    """
    return (scores <= _threshold(scores, gamma)).to(scores.dtype)


def division(scores: Tensor, gamma: float | str = "auto") -> Tensor:
    """Division normalisation: 1 − γ / (γ + ω), for γ > 0 as in :func:`cutoff`.

    * Source: the paper of TADropEdge (arXiv 2106.02892).
    * Cost: O(M), with ``"auto"`` a sort.
    """
    threshold = _threshold(scores, gamma)
    if threshold == 0:
        raise TadropedgeError("division needs a positive gamma, got 0", argument="gamma")
    return scores / (threshold + scores)


def cdf(scores: Tensor) -> Tensor:
    """CDF normalisation: f(ω), the share of edges whose score is at most ω. It never keeps less than half of the edges.

    * Source: the paper of TADropEdge (arXiv 2106.02892).
    * Cost: a sort.
    """
    rank = torch.searchsorted(sorted_values(scores), scores, right=True)
    return rank.to(scores.dtype).div_(scores.shape[0])


def proportional(scores: Tensor, keep_ratio: float) -> Tensor:
    """min(1, c · ω), with c such that the mean is ``keep_ratio``: any budget can be met.

    Once every edge of positive score is certain, those of score 0 share what is left equally.

    * Source: sampling with probability proportional to size, cut off at 1, as spectral sparsifiers and DSpar sample.
    * Cost: a sort.
    * Good for: small budgets, which the rules of the paper cannot reach.

    >>> proportional(torch.tensor([0.0, 1.0, 2.0, 5.0]), 0.5).tolist()
    [0.0, 0.3333333333333333, 0.6666666666666666, 1.0]
    >>> proportional(torch.tensor([0.0, 0.0, 2.0, 5.0]), 0.75).tolist()
    [0.5, 0.5, 1.0, 1.0]
    """
    # Solved on the CPU, where sums do not depend on the device; c decides coins.
    largest = float(scores.max())
    scaled = scores.to(torch.float64) / (largest if largest > 0 else 1.0)
    budget = keep_ratio * len(scaled)  # expected number of kept edges
    ascending = sorted_values(scaled.cpu())
    ascending = ascending[int(torch.searchsorted(ascending, 0.0, right=True)) :]  # the positive ones
    count = len(ascending)
    # With c = 1 / (the k-th largest), this many edges are kept; it grows with k.
    after = ascending.cumsum(0)  # the sum of the k-th largest and all smaller ones
    reached = after / ascending
    reached += torch.arange(count - 1, -1, -1, dtype=torch.float64)
    falling = torch.from_numpy(np.maximum.accumulate(reached.numpy()[::-1]))  # rounding must not disorder it
    certain = int(torch.searchsorted(falling, budget))  # edges whose probability is 1
    if certain == count:  # every edge of positive score
        share = min(max((budget - count) / max(1, len(scaled) - count), 0.0), 1.0)
        return torch.full_like(scaled, share).masked_fill_(scaled > 0, 1.0)
    rest, left = float(after[count - 1 - certain]), max(budget - certain, 0.0)
    surely = float(ascending[count - certain]) if certain else torch.inf
    return (scaled / rest).mul_(left).clamp_max_(1.0).masked_fill_(scaled >= surely, 1.0)


def inverse_proportional(scores: Tensor, keep_ratio: float) -> Tensor:
    """:func:`proportional` to (largest ω − ω)."""
    return proportional(scores.max() - scores, keep_ratio)


def floor(scores: Tensor, keep_ratio: float) -> Tensor:
    """max(p, ω) for scores in [0, 1], with p such that the mean is ``keep_ratio``: no edge is kept with less than p.

    * Source: the cap of DropSens (arXiv 2502.07364), for any score that is a probability already.
    * Cost: a sort.

    >>> floor(torch.tensor([0.1, 0.3, 0.9], dtype=torch.float64), 0.5).tolist()
    [0.3, 0.3, 0.9]
    """
    if float(scores.max()) > 1:
        raise TadropedgeError(f"the rule 'floor' needs scores within [0, 1], got {float(scores.max()):g}")
    _check_reached("floor", keep_ratio, float(scores.mean()))
    ascending = sorted_values(scores.to(torch.float64).cpu())
    above = ascending.flip(0).cumsum(0).flip(0)  # the sum of each score and all larger ones
    raised = torch.arange(len(ascending), dtype=torch.float64)
    # With p at the k-th smallest score, this many edges are kept; it grows with k.
    place = int(torch.searchsorted(raised * ascending + above, keep_ratio * len(ascending), right=True))
    larger = float(above[place]) if place < len(ascending) else 0.0
    p = (keep_ratio * len(ascending) - larger) / max(1, place)
    return scores.clamp_min(min(max(p, 0.0), 1.0))


INVERSES: dict[str, Rule] = {  # where it is not simply 1 − s
    "cutoff": inverse_cutoff,
    "proportional": inverse_proportional,
}
NO_INVERSE = {"uniform": "treats all edges alike", "floor": "is about what the least probability is"}


def keep_probabilities(
    scores: Tensor | Sequence[float],
    *,
    rule: str | Rule = "cdf",
    keep_prob: float | None = None,
    keep_ratio: float | None = None,
    inverse: bool = False,
    **settings: Any,
) -> Tensor:
    """The probability of keeping each edge, float64 ``[M]``, from its score.

    Give exactly one of two: ``keep_prob`` is the paper's default probability p of KEEPING an edge; ``keep_ratio`` is
    the expected share of kept edges, from which p is computed.

    * ``rule``: a name of ``tadropedge.RULES``, or your own function, see :mod:`tadropedge.rules`; ``"proportional"``
      and ``"floor"`` take ``keep_ratio`` alone;
    * ``inverse=True``: Inverse-TADropEdge, which drops critical edges first;
    * ``settings``: those of the rule, ``gamma`` of cutoff and division.

    >>> scores = torch.tensor([0.0, 0.125, 0.25, 4.0])
    >>> keep_probabilities(scores, keep_prob=0.5, rule="cdf").tolist()
    [0.625, 0.75, 0.875, 1.0]
    >>> keep_probabilities(scores, keep_prob=0.5, rule="cutoff", gamma=0.25).tolist()
    [0.5, 0.5, 1.0, 1.0]
    >>> keep_probabilities(scores, keep_ratio=0.7, rule="cdf").mean().item()
    0.7
    >>> keep_probabilities(scores, keep_ratio=0.28125, rule="proportional").tolist()
    [0.0, 0.041666666666666664, 0.08333333333333333, 1.0]
    >>> keep_probabilities(scores, keep_prob=0.5, rule=lambda scores: scores / scores.max()).tolist()
    [0.5, 0.515625, 0.53125, 1.0]
    """
    scores = check_scores(scores)
    name, budget = check_rule(rule, keep_prob=keep_prob, keep_ratio=keep_ratio, inverse=inverse, settings=settings)
    if len(scores) > 1 and name != "uniform" and bool((scores == scores[0]).all()):
        warnings.warn(
            f"all scores are {float(scores[0]):g}, so dropping by them is dropping uniformly",
            EqualScoresWarning,
            stacklevel=2,
        )
    function, flip = _function(rule), inverse
    if inverse and isinstance(rule, str) and rule in INVERSES:
        function, flip = INVERSES[rule], False
    if meets_budget(rule):
        ratio = 1 - budget if flip else budget
        prob = _checked_share(name, ask(f"the rule {name!r}", SIGNATURE, function, scores, ratio, **settings), scores)
        return 1 - prob if flip else prob
    share = _checked_share(name, ask(f"the rule {name!r}", SIGNATURE, function, scores, **settings), scores)
    share = 1 - share if flip else share
    p = budget if keep_prob is not None else _solved(name, budget, float(share.mean()))
    return ((1 - p) * share).add_(p)


def check_rule(
    rule: str | Rule,
    *,
    keep_prob: object = None,
    keep_ratio: object = None,
    inverse: bool = False,
    settings: dict[str, Any] | None = None,
) -> tuple[str, float]:
    """The name of a rule and its budget, after a look at both, at its settings and at whether it has an inverse."""
    function = _function(rule)
    name = rule if isinstance(rule, str) else getattr(rule, "__name__", type(rule).__name__)
    if check_flag("inverse", inverse) and name in NO_INVERSE:
        raise TadropedgeError(f"the rule {name!r} {NO_INVERSE[name]} and has no inverse", argument="inverse")
    takes = {each: value for each, value in settings_of(function).items() if each != "keep_ratio"}
    check_settings(f"the rule {name!r}", takes, settings or ())
    if (keep_prob is None) == (keep_ratio is None):
        said = f"got keep_prob={show(keep_prob, typed=False)} and keep_ratio={show(keep_ratio, typed=False)}"
        raise TadropedgeError(f"give either keep_prob or keep_ratio, {said}", argument="keep_ratio")
    if keep_prob is not None and meets_budget(rule):
        raise TadropedgeError(
            f"the rule {name!r} has no default probability, got keep_prob={show(keep_prob, typed=False)}: give "
            "keep_ratio, the expected share of kept edges",
            argument="keep_prob",
        )
    if keep_prob is not None:
        return name, check_number("keep_prob", keep_prob, 0, 1)
    return name, check_number("keep_ratio", keep_ratio, 0, 1)


def meets_budget(rule: str | Rule) -> bool:
    """Whether a rule takes ``keep_ratio`` itself, and so has no ``keep_prob``.

    >>> meets_budget("proportional"), meets_budget("cdf")
    (True, False)
    """
    return "keep_ratio" in settings_of(_function(rule))


def auto_gamma(scores: Tensor | Sequence[float]) -> float:
    """γ at the sudden rise of the distribution of scores.

    Draw the sorted scores against their rank, both scaled to run from 0 to 1: the curve is flat for long, then
    rises steeply. γ is the first score above the point farthest below the diagonal, where the rise begins. If all
    scores are equal, no edge is critical and γ lies just above them.

    >>> auto_gamma(torch.tensor([0.0, 0.125, 0.25, 0.375, 0.5, 20.0, 50.0]))
    20.0
    """
    ascending = sorted_values(check_scores(scores))
    least, most = ascending[0], ascending[-1]
    if bool(least == most):
        return float(torch.nextafter(most, torch.full_like(most, torch.inf)))
    rank = torch.arange(1, len(ascending) + 1, dtype=torch.float64, device=ascending.device)
    below = rank.div_(len(ascending)).sub_((ascending - least) / (most - least))
    knee = ascending[int(torch.argmax(below))]
    above = int(torch.searchsorted(ascending, knee, right=True))
    return float(ascending[above]) if bool(knee < most) else float(most)


def sorted_values(scores: Tensor) -> Tensor:
    """The scores in increasing order: without the places that torch would find, and on a CPU many times faster.

    >>> sorted_values(torch.tensor([3.0, 1.0, 2.0])).tolist()
    [1.0, 2.0, 3.0]
    """
    return torch.from_numpy(np.sort(scores.numpy())) if scores.device.type == "cpu" else scores.sort().values


def check_scores(scores: Tensor | Sequence[float], name: str = "scores") -> Tensor:
    """Return edge scores as float64 ``[M]``: at least one, all finite and none negative."""
    found = check_numbers(name, scores)
    if found.dim() != 1 or found.shape[0] == 0:
        raise TadropedgeError(f"{name} must be one number for each edge, got shape {list(found.shape)}")
    found = found.detach().to(torch.float64)
    wrong = found[~(torch.isfinite(found) & (found >= 0))]
    if len(wrong):
        raise TadropedgeError(f"{name} must be finite and at least 0, got {float(wrong[0]):g}", argument=name)
    return found


def _function(rule: str | Rule) -> Rule:
    return rule if callable(rule) else lookup("rule", rule, RULES)


def _threshold(scores: Tensor, gamma: float | str) -> float:
    if isinstance(gamma, str):
        lookup("gamma", gamma, {"auto": None})
        return auto_gamma(scores)
    return check_number("gamma", gamma, 0)


def _checked_share(name: str, share: object, scores: Tensor) -> Tensor:
    """What a rule returned, as float64 ``[M]`` in [0, 1]."""
    what = f"what the rule {name!r} returns"
    if not isinstance(share, Tensor) or share.shape != scores.shape:
        got = f"shape {list(share.shape)}" if isinstance(share, Tensor) else show(share)
        raise TadropedgeError(f"{what} must be one number for each of {len(scores)} edges, got {got}")
    check_device(what, share, scores.device, "the scores")
    return check_probability(what, share.to(torch.float64) if share.dtype == torch.bool else share)


def _solved(name: str, ratio: float, least: float) -> float:
    """Solve mean(p + (1 − p) · s) = ratio for p; at p = 0 the mean of s is kept."""
    _check_reached(name, ratio, least)
    return max(ratio - least, 0.0) / (1 - least) if least < 1 else 1.0


def _check_reached(name: str, ratio: float, least: float) -> None:
    if ratio < least - ROUNDING:
        raise BudgetError(
            f"keep_ratio={ratio:g} cannot be reached with {name}: the expected kept share lies between {least:.6g} "
            "(at p = 0) and 1; the rule 'proportional' meets every share",
            argument="keep_ratio",
        )


class BudgetError(TadropedgeError):
    """A share of kept edges that a rule cannot reach on these scores."""
