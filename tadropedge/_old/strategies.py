"""Phase III, the probabilities: from edge scores to the probability of keeping each edge.

The probability is ``p + (1 − p) · s``. A strategy is a short function from edge scores (here ``weights``) to s
in [0, 1], one value per edge: 0 for edges kept with the default probability p, 1 for edges that are always kept.
Where a share of kept edges is asked for, p is solved for; a strategy that takes ``keep_ratio`` meets it by itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from tadropedge._old.checks import ask, check_flag, check_function, check_number, check_numbers, check_probability, is_plain
from tadropedge._old.errors import TadropedgeError, lookup, show
from tadropedge._old.graph import PIECE, Graph
from tadropedge._old.registry import STRATEGIES
from tadropedge._old.sensitivity import SENSITIVITY, dropped, dropped_at

Score = Callable[..., Tensor]
Numbers = float | Sequence[float] | Tensor

RULE = "rule(weights [M]) -> [M], with scores in [0, 1], and gamma or keep_ratio as arguments where it needs them"
HALF = 0.5  # the mean of what is added to p, where p is given to the proportional rule


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
    total = gamma + weights
    return torch.div(weights, total, out=total)


def cdf(weights: Tensor) -> Tensor:
    """CDF normalisation: f(ω), the share of edges whose weight is at most ω."""
    rank = torch.searchsorted(rising(weights), weights, right=True)
    return rank.to(weights.dtype).div_(weights.shape[0])


def rising(weights: Tensor) -> Tensor:
    """The weights in increasing order: without the places that torch would find, and on a CPU many times faster.

    >>> rising(torch.tensor([3.0, 1.0, 2.0])).tolist()
    [1.0, 2.0, 3.0]
    """
    return torch.from_numpy(np.sort(weights.numpy())) if weights.device.type == "cpu" else weights.sort().values


def proportional(weights: Tensor, keep_ratio: Tensor) -> Tensor:
    """min(1, c · ω), with c such that the mean is ``keep_ratio``: any budget can be met.

    Once every edge of positive weight is certain, those of weight 0 share what is left equally. ``keep_ratio`` is a
    number or a column ``[T, 1]``. Cost: one sort.

    >>> proportional(torch.tensor([0.0, 1.0, 2.0, 5.0]), torch.tensor(0.5)).tolist()
    [0.0, 0.3333333333333333, 0.6666666666666666, 1.0]
    >>> proportional(torch.tensor([0.0, 0.0, 2.0, 5.0]), torch.tensor(0.75)).tolist()
    [0.5, 0.5, 1.0, 1.0]
    """
    # Solved on the CPU, where sums do not depend on the device; c decides coins.
    largest = float(weights.max())
    scaled = weights.to(torch.float64).cpu() / (largest if largest > 0 else 1.0)
    budget = keep_ratio.to(dtype=torch.float64, device="cpu") * len(scaled)  # expected number of kept edges
    ascending = rising(scaled)
    ascending = ascending[int(torch.searchsorted(ascending, 0.0, right=True)) :]  # the positive ones
    count = len(ascending)
    # With c = 1 / (the k-th largest), this many edges are kept; it grows with k.
    after = ascending.cumsum(0)  # the sum of the k-th largest and all smaller ones
    reached = after / ascending
    reached += torch.arange(count - 1, -1, -1, dtype=torch.float64)
    falling = torch.from_numpy(np.maximum.accumulate(reached.numpy()[::-1]))  # rounding must not disorder it
    certain = torch.searchsorted(falling, budget.contiguous())  # edges whose probability is 1
    del reached, falling
    rest = _nth_last(after, certain, torch.inf).to(weights.device)
    surely = torch.where(certain > 0, _nth_last(ascending, certain - 1, 0.0), torch.inf).to(weights.device)
    del after, ascending
    left = (budget - certain).clamp_min(0.0).to(weights.device)
    share = ((budget - count) / max(1, len(scaled) - count)).clamp(0.0, 1.0).to(weights.device)
    scaled = scaled.to(weights.device)
    likely = (scaled / rest).mul_(left).clamp_max_(1.0).masked_fill_(scaled >= surely, 1.0)
    return torch.where(scaled > 0, likely, share)


def _nth_last(values: Tensor, places: Tensor, beyond: float) -> Tensor:
    """The values at ``places`` counted from the end, from 0 on; ``beyond`` where there are not so many."""
    if not len(values):
        return torch.full(places.shape, beyond, dtype=values.dtype)
    inside = (len(values) - 1 - places).clamp(0, len(values) - 1)
    return torch.where(places < len(values), values[inside], beyond)


def inverse_proportional(weights: Tensor, keep_ratio: Tensor) -> Tensor:
    """:func:`proportional` to (largest ω − ω)."""
    return proportional(weights.max() - weights, keep_ratio)


def dropsens(graph: Graph, keep_prob: float = 0.0, sensitivity: float = SENSITIVITY) -> Tensor:
    """DropSens: the drop probability at which a node keeps the share ``sensitivity`` of its sensitivity to a neighbour.

    See :mod:`tadropedge._old.sensitivity`. It looks at degrees instead of scores, so it takes the graph; no arc is dropped
    with more than 1 − ``keep_prob``.

    >>> dropsens(Graph.from_edge_index([[0, 0, 0], [1, 2, 3]]), sensitivity=0.5).round(decimals=4).tolist()
    [0.4043, 0.4043, 0.4043]
    """
    return 1 - dropped(graph, sensitivity, 1 - keep_prob)


INVERSES: dict[str, Score] = {  # where it is not simply 1 − score
    "cutoff": inverse_cutoff,
    "proportional": inverse_proportional,
}


def keep_probabilities(
    weights: Tensor | Graph,
    *,
    keep_prob: Numbers | None = None,
    keep_ratio: Numbers | None = None,
    strategy: str | Score = "cdf",
    gamma: Numbers | str = "auto",
    inverse: bool = False,
    sensitivity: float = SENSITIVITY,
) -> Tensor:
    """The probability of keeping each edge, float64 ``[M]``.

    Give exactly one of two: ``keep_prob`` is the paper's default probability p of KEEPING an edge; ``keep_ratio`` is
    the expected share of kept edges, from which p is computed. Either may be a vector ``[T]``, and so may ``gamma``;
    the result is then ``[T, M]``.

    * ``strategy``: ``"uniform"`` (DropEdge), ``"cutoff"``, ``"division"``, ``"cdf"``, ``"proportional"``, or your own
      function from ``weights [M]`` to scores in [0, 1], with a parameter ``gamma`` if it needs one. If it has a
      parameter ``keep_ratio``, it returns probabilities of this mean instead.
    * ``"proportional"``: min(1, c · weight), c solved for ``keep_ratio``, which may be anything from 0 to 1. With
      ``keep_prob`` it is p + (1 − p) · min(1, c · weight), c such that the mean of the second factor is ½.
    * ``"dropsens"`` looks at degrees: give the graph instead of ``weights``, and ``sensitivity``, its c.
    * ``gamma``: the threshold of cutoff and division; ``"auto"`` is the sudden rise, see :func:`auto_gamma`.
    * ``inverse=True``: Inverse-TADropEdge, which drops critical edges first.

    >>> weights = torch.tensor([0.0, 0.125, 0.25, 4.0])
    >>> keep_probabilities(weights, keep_prob=0.5, strategy="cdf").tolist()
    [0.625, 0.75, 0.875, 1.0]
    >>> keep_probabilities(weights, keep_prob=0.5, strategy="cutoff", gamma=0.25).tolist()
    [0.5, 0.5, 1.0, 1.0]
    >>> keep_probabilities(weights, keep_ratio=0.7, strategy="cdf").mean().item()
    0.7
    >>> keep_probabilities(weights, keep_ratio=0.28125, strategy="proportional").tolist()
    [0.0, 0.041666666666666664, 0.08333333333333333, 1.0]
    >>> keep_probabilities(weights, keep_prob=0.5, strategy=lambda w: w / w.max()).tolist()
    [0.5, 0.515625, 0.53125, 1.0]
    """
    if (keep_prob is None) == (keep_ratio is None):
        if not isinstance(weights, Graph):
            check_weights(weights)  # what is wrong with the first argument is said first
        raise TadropedgeError(
            f"give either keep_prob or keep_ratio, got keep_prob={keep_prob} and keep_ratio={keep_ratio}"
        )
    sensitivity = check_number("sensitivity", sensitivity, 0, 1)
    if check_rule(strategy) is dropsens:
        return _by_degree(weights, keep_prob, keep_ratio, sensitivity, inverse)
    weights = check_weights(weights)  # type: ignore[arg-type]
    if keep_ratio is not None and wants(check_rule(strategy), "keep_ratio"):
        ratio = check_probability("keep_ratio", _numbers("keep_ratio", keep_ratio, weights))
        return scores(weights, strategy, gamma, inverse, ratio)
    score = scores(weights, strategy, gamma, inverse)
    if keep_prob is not None:
        p = check_probability("keep_prob", _numbers("keep_prob", keep_prob, weights))
    else:
        ratio = check_probability("keep_ratio", _numbers("keep_ratio", keep_ratio, weights))
        p = _solve_ratio(ratio, score.mean(dim=-1), strategy)
    if p.dim() and score.dim() == 2 and len(p) != len(score):
        raise TadropedgeError(f"there are {len(p)} values of keep_prob or keep_ratio, but {len(score)} of gamma")
    return ((1 - p[..., None]) * score).add_(p[..., None])


def _by_degree(
    graph: object, keep_prob: Numbers | None, keep_ratio: Numbers | None, sensitivity: float, inverse: bool
) -> Tensor:
    """DropSens, whose cap is given by ``keep_prob`` or solved for ``keep_ratio``."""
    if not isinstance(graph, Graph):
        raise TadropedgeError(
            f"weights must be the Graph itself for the strategy 'dropsens', which looks at degrees, got {show(graph)}"
        )
    if check_flag("inverse", inverse):
        raise TadropedgeError("the strategy 'dropsens' has no inverse")
    check_weights(torch.ones(graph.num_edges))
    name, value = ("keep_prob", keep_prob) if keep_ratio is None else ("keep_ratio", keep_ratio)
    numbers = check_probability(name, _numbers(name, value, torch.ones(1)))
    rows = [
        dropsens(graph, one, sensitivity) if keep_ratio is None else 1 - dropped_at(graph, sensitivity, one)
        for one in numbers.reshape(-1).tolist()
    ]
    return torch.stack(rows) if numbers.dim() else rows[0]


def scores(
    weights: Tensor,
    strategy: str | Score,
    gamma: Numbers | str = "auto",
    inverse: bool = False,
    keep_ratio: Tensor | None = None,
) -> Tensor:
    """The score in [0, 1] of every edge, ``[M]`` or, for a vector of γ or of ``keep_ratio``, ``[T, M]``."""
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
    if wants(rule, "keep_ratio"):
        ratio = weights.new_tensor(HALF) if keep_ratio is None else keep_ratio
        settings["keep_ratio"] = ratio[..., None] if not flip else 1 - ratio[..., None]
    what = f"the strategy {_called(strategy)!r}"
    score = ask(what, RULE, rule, weights, **settings)
    good = isinstance(score, Tensor) and is_plain(score) and score.shape[-1:] == weights.shape
    axes = max(value.dim() - 1 for value in settings.values()) if settings else 0
    if not good or score.dim() > 1 + axes:
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


def wants(rule: Score, name: str) -> bool:
    """Whether a rule has a parameter of this name.

    >>> wants(proportional, "keep_ratio"), wants(cdf, "keep_ratio")
    (True, False)
    """
    try:
        return name in inspect.signature(rule).parameters
    except ValueError:  # functions written in C have no signature
        return False


def wants_gamma(rule: Score) -> bool:
    """Whether a rule has the parameter ``gamma``.

    >>> wants_gamma(cutoff), wants_gamma(cdf)
    (True, False)
    """
    return wants(rule, "gamma")


def auto_gamma(weights: Tensor) -> float:
    """γ at the sudden rise of the weight distribution.

    Draw the sorted weights against their rank, both scaled to run from 0 to 1: the curve is flat for long, then
    rises steeply. γ is the first weight above the point farthest below the diagonal, where the rise begins. If all
    weights are equal, no edge is critical and γ lies just above them.

    >>> auto_gamma(torch.tensor([0.0, 0.125, 0.25, 0.375, 0.5, 20.0, 50.0]))
    20.0
    """
    ascending = rising(check_weights(weights))
    least, most = ascending[0], ascending[-1]
    if bool(least == most):
        return float(torch.nextafter(most, torch.full_like(most, torch.inf)))
    below = torch.arange(1, len(ascending) + 1, dtype=torch.float64, device=ascending.device).div_(len(ascending))
    for first in range(0, len(ascending), PIECE):
        some = slice(first, first + PIECE)
        below[some] -= (ascending[some] - least) / (most - least)
    knee = ascending[int(torch.argmax(below))]
    above = int(torch.searchsorted(ascending, knee, right=True))
    return float(ascending[above]) if bool(knee < most) else float(most)


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
