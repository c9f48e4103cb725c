"""Phase III, the probabilities: from edge scores to the probability of keeping each edge.

The probability is always ``p + (1 − p) · s``. A strategy is a short function from edge scores (here ``weights``) to s
in [0, 1], one value per edge: 0 for edges kept with the default probability p, 1 for edges that are always kept.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tadropedge.checks import ask, check_flag, check_function, check_numbers, check_probability, is_plain
from tadropedge.errors import TadropedgeError, lookup, show
from tadropedge.registry import STRATEGIES

Score = Callable[..., Tensor]
Numbers = float | Sequence[float] | Tensor

RULE = "rule(weights [M]) -> [M] or rule(weights [M], gamma) -> [M], with scores in [0, 1]"


def uniform(weights: Tensor) -> Tensor:
    """DropEdge: every edge has the same probability."""
    return torch.zeros_like(weights)


def cutoff(weights: Tensor, gamma: Tensor) -> Tensor:
    """Threshold cutoff: edges with ω ≥ γ are never dropped, those with ω < γ are kept with probability p."""
    return (weights >= gamma).to(weights.dtype)


def inverse_cutoff(weights: Tensor, gamma: Tensor) -> Tensor:
    """Inverse threshold cutoff: edges with ω > γ are kept with probability p, the others always.

    At ω = γ both rules keep the edge, as printed: so this is not one minus :func:`cutoff`.
    """
    return (weights <= gamma).to(weights.dtype)


def division(weights: Tensor, gamma: Tensor) -> Tensor:
    """Division normalisation: 1 − γ / (γ + ω)."""
    if not bool((gamma > 0).all()):
        raise TadropedgeError(f"division needs a positive gamma, got {float(gamma.min()):g}")
    return weights / (gamma + weights)


def cdf(weights: Tensor) -> Tensor:
    """CDF normalisation: f(ω), the share of edges whose weight is at most ω."""
    ascending = weights.sort().values
    return torch.searchsorted(ascending, weights, right=True).to(weights.dtype) / weights.shape[0]


INVERSES: dict[str, Score] = {"cutoff": inverse_cutoff}  # where it is not simply 1 − score


def keep_probabilities(
    weights: Tensor,
    *,
    keep_prob: Numbers | None = None,
    keep_ratio: Numbers | None = None,
    strategy: str | Score = "cdf",
    gamma: Numbers | str = "auto",
    inverse: bool = False,
) -> Tensor:
    """The probability of keeping each edge, float64 ``[M]``.

    Give exactly one of two: ``keep_prob`` is the paper's default probability p of KEEPING an edge; ``keep_ratio`` is
    the expected share of kept edges, from which p is computed. Either may be a vector ``[T]``, and so may ``gamma``;
    the result is then ``[T, M]``.

    * ``strategy``: ``"uniform"`` (DropEdge), ``"cutoff"``, ``"division"``, ``"cdf"``, or your own function from
      ``weights [M]`` to scores in [0, 1] (with a parameter ``gamma`` if it needs one).
    * ``gamma``: the threshold of cutoff and division; ``"auto"`` is the sudden rise, see :func:`auto_gamma`.
    * ``inverse=True``: Inverse-TADropEdge, which drops critical edges first.

    >>> weights = torch.tensor([0.0, 0.125, 0.25, 4.0])
    >>> keep_probabilities(weights, keep_prob=0.5, strategy="cdf").tolist()
    [0.625, 0.75, 0.875, 1.0]
    >>> keep_probabilities(weights, keep_prob=0.5, strategy="cutoff", gamma=0.25).tolist()
    [0.5, 0.5, 1.0, 1.0]
    >>> keep_probabilities(weights, keep_ratio=0.7, strategy="cdf").mean().item()
    0.7
    >>> keep_probabilities(weights, keep_prob=0.5, strategy=lambda w: w / w.max()).tolist()
    [0.5, 0.515625, 0.53125, 1.0]
    """
    weights = check_weights(weights)
    score = scores(weights, strategy, gamma, inverse)
    if (keep_prob is None) == (keep_ratio is None):
        raise TadropedgeError(
            f"give either keep_prob or keep_ratio, got keep_prob={keep_prob} and keep_ratio={keep_ratio}"
        )
    if keep_prob is not None:
        p = check_probability("keep_prob", _numbers("keep_prob", keep_prob, weights))
    else:
        ratio = check_probability("keep_ratio", _numbers("keep_ratio", keep_ratio, weights))
        p = _solve_ratio(ratio, score.mean(dim=-1), strategy)
    if p.dim() and score.dim() == 2 and len(p) != len(score):
        raise TadropedgeError(f"there are {len(p)} values of keep_prob or keep_ratio, but {len(score)} of gamma")
    return p[..., None] + (1 - p[..., None]) * score


def scores(weights: Tensor, strategy: str | Score, gamma: Numbers | str = "auto", inverse: bool = False) -> Tensor:
    """The score in [0, 1] of every edge, ``[M]`` or, for a vector of γ, ``[T, M]``."""
    rule = check_rule(strategy)
    flip = inverse = check_flag("inverse", inverse)
    if inverse and rule is uniform:
        raise TadropedgeError("uniform dropping treats all edges alike and has no inverse")
    if inverse and isinstance(strategy, str) and strategy in INVERSES:
        rule, flip = INVERSES[strategy], False
    wanted = wants_gamma(rule)
    # Looked at even if it is not used, but the knee is not searched for nothing.
    threshold = torch.zeros(()) if isinstance(gamma, str) and gamma == "auto" and not wanted else _gamma(gamma, weights)
    settings = {"gamma": threshold[..., None]} if wanted else {}
    what = f"the strategy {_called(strategy)!r}"
    score = ask(what, RULE, rule, weights, **settings)
    good = isinstance(score, Tensor) and is_plain(score) and score.shape[-1:] == weights.shape
    if not good or score.dim() > 1 + (threshold.dim() if wanted else 0):
        got = f"a tensor of {score.dtype} and shape {list(score.shape)}" if isinstance(score, Tensor) else show(score)
        raise TadropedgeError(f"{what} must return one score for each of {weights.shape[0]} edges, got {got}")
    if score.device != weights.device:
        raise TadropedgeError(f"{what} must return scores on {weights.device}, where the weights are")
    if score.dtype == torch.bool:
        score = score.to(torch.float64)
    score = check_probability(f"the score of {what}", score)
    return 1 - score if flip else score


def check_rule(strategy: object) -> Score:
    """The function that a strategy stands for."""
    if callable(strategy):
        return check_function("strategy", strategy, RULE, settings=True)
    return lookup("strategy", strategy, STRATEGIES)


def _called(strategy: object) -> object:
    return strategy if isinstance(strategy, str) else getattr(strategy, "__name__", type(strategy).__name__)


def wants_gamma(rule: Score) -> bool:
    """Whether a rule has the parameter ``gamma``.

    >>> wants_gamma(cutoff), wants_gamma(cdf)
    (True, False)
    """
    try:
        return "gamma" in inspect.signature(rule).parameters
    except ValueError:  # functions written in C have no signature
        return False


def auto_gamma(weights: Tensor) -> float:
    """γ at the sudden rise of the weight distribution.

    Draw the sorted weights against their rank, both scaled to run from 0 to 1: the curve is flat for long, then
    rises steeply. γ is the first weight above the point farthest below the diagonal, where the rise begins. If all
    weights are equal, no edge is critical and γ lies just above them.

    >>> auto_gamma(torch.tensor([0.0, 0.125, 0.25, 0.375, 0.5, 20.0, 50.0]))
    20.0
    """
    ascending = check_weights(weights).sort().values
    least, most = ascending[0], ascending[-1]
    if bool(least == most):
        return float(torch.nextafter(most, torch.full_like(most, torch.inf)))
    rank = torch.arange(1, len(ascending) + 1, dtype=torch.float64, device=ascending.device) / len(ascending)
    rise = (ascending - least) / (most - least)
    knee = ascending[int(torch.argmax(rank - rise))]
    return float(ascending[ascending > knee][0]) if bool(knee < most) else float(most)


def check_weights(weights: Tensor | Sequence[float]) -> Tensor:
    """Return edge weights as float64 ``[M]``: at least one, all finite and none negative."""
    weights = check_numbers("weights", weights)
    if weights.dim() != 1:
        raise TadropedgeError(f"weights must be one number for each edge, got shape {list(weights.shape)}")
    if weights.shape[0] == 0:
        raise TadropedgeError("weights are empty: the graph has no edges")
    weights = weights.detach().to(torch.float64)
    if not bool((torch.isfinite(weights) & (weights >= 0)).all()):
        wrong = weights[~(torch.isfinite(weights) & (weights >= 0))][0]
        raise TadropedgeError(f"weights must be finite and at least 0, got {float(wrong):g}")
    return weights


def _numbers(name: str, value: Numbers | None, weights: Tensor) -> Tensor:
    numbers = check_numbers(name, value)
    if numbers.dim() > 1 or not numbers.numel():
        raise TadropedgeError(f"{name} must be a number or a vector, got shape {list(numbers.shape)}")
    return numbers.to(dtype=torch.float64, device=weights.device)


def _gamma(gamma: Numbers | str, weights: Tensor) -> Tensor:
    if isinstance(gamma, str):
        lookup("gamma", gamma, {"auto": None})
        gamma = auto_gamma(weights)
    numbers = _numbers("gamma", gamma, weights)
    if not bool((torch.isfinite(numbers) & (numbers >= 0)).all()):
        wrong = numbers[~(torch.isfinite(numbers) & (numbers >= 0))].flatten()[0]
        raise TadropedgeError(f"gamma must be finite and at least 0, got {float(wrong):g}")
    return numbers


def _solve_ratio(ratio: Tensor, least: Tensor, strategy: str | Score) -> Tensor:
    """Solve mean(p + (1 − p) · score) = ratio for p; at p = 0 the mean score is kept."""
    if ratio.dim() and least.dim() and len(ratio) != len(least):
        raise TadropedgeError(f"there are {len(ratio)} values of keep_ratio, but {len(least)} of gamma")
    ratio = torch.where((ratio < least) & (ratio > least - 1e-12), least, ratio)  # the end of the range itself
    if bool((ratio < least).any()):
        name = _called(strategy)
        wrong, bound = torch.broadcast_tensors(ratio, least)
        place = int(torch.argmax((wrong < bound).to(torch.int8).flatten()))
        raise TadropedgeError(
            f"keep_ratio={float(wrong.flatten()[place]):g} cannot be reached with {name}: "
            f"the expected kept share lies between {float(bound.flatten()[place]):.6g} (at p = 0) and 1"
        )
    room = 1 - least
    return torch.where(room > 0, (ratio - least) / torch.where(room > 0, room, 1.0), 1.0)
