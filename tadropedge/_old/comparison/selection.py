"""What the luck of choosing settings does to a method's mean accuracy.

The settings of a method are those of the best mean validation score, and that score is noisy: chosen again, on other
splits, they could be others, with another true accuracy. Replicates of the chosen settings never show this, however
many there are, so two methods that are alike in every setting would be "proved" different by choosing differently.

The scores of trial i of method m on choosing split k are taken as

    v[m, i, k] = (split k) + a[m, i] + e,    a[m, i] = a[i] + g[m, i],    e ~ N(0, σ²),  g ~ N(0, γ²),

where trial i has the same hyper-parameters for every method. σ² comes from what is left of v after settings and splits,
γ² from what is left of the means over k after settings and methods, less σ² / K. Nothing is assumed of a[i]. Given the
scores, a[m, i] is normal: between the mean of method m alone and that of all methods, the closer to the latter the less
methods differ. From this distribution a truth is drawn, and from each truth **two choices**, each with validation noise
of its own. Their difference is a **shift**: what a second choice would have done to the accuracy. A method that is
compared with its own second choice shows nothing but shifts.

Where the F best trials of a search were trained on L further splits, those scores say more of them: a draw a of their
qualities becomes a + w (y − a − s · ε), centred, where y are their mean scores there, s² = σ² / L and w = v / (v + s²)
with the variance v of the draws. A choice is then made as the real one was: F finalists by K splits, one by all K + L.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

import numpy as np
import numpy.typing as npt

from tadropedge._old.checks import check_integer, check_table
from tadropedge._old.comparison.paired import as_floats
from tadropedge._old.errors import TadropedgeError

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

DRAWS = 2048  # truths, with two choices each
MANY = 2**14  # of them, for families of so many tests that the rarest choices count
REACH = 8.0  # standard errors below the best: a setting that far down is never chosen


@dataclass(frozen=True, kw_only=True, eq=False)
class Selection:
    """The choice of one method's settings: ``shifts [B]`` of the true accuracy between two choices.

    ``noise`` is the standard error σ / √K of a mean validation score.
    """

    shifts: Array
    noise: float

    @property
    def error(self) -> float:
        """The standard error τ of the method's mean accuracy that comes from the choice: τ² = mean(shift²) / 2."""
        return float(np.sqrt(np.mean(self.shifts**2) / 2))


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """What the searches of M methods say of the n settings that may be chosen, those of the numbers ``places [n]``.

    ``means [M, n]``: mean validation scores, centred by method, NaN where a trial failed; ``common``, ``common_error``
    ``[n]``: the mean over methods and its standard error; ``own``: the weight γ² / (γ² + σ² / K) of a method's own
    scores beside the common ones; ``noise``: σ / √K, estimated with ``freedom`` degrees of freedom.
    """

    means: Array
    common: Array
    common_error: Array
    own: float
    noise: float
    freedom: int
    places: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))


@dataclass(frozen=True, kw_only=True, eq=False)
class Round:
    """The finals of one method among the settings of a fit: ``means [n]``, NaN for who is not in them.

    ``count`` are let in; ``ratio``: L / K, further splits for each of the first.
    """

    means: Array
    count: int
    ratio: float


FinalScores = Mapping[str, Mapping[int, Array]]  # by method and number of the trial: its scores [L]


def selections(
    searches: Mapping[str, Array], nodes: int | None = None, *, finals: FinalScores | None = None, rare: bool = False
) -> dict[str, Selection]:
    """What the choice of settings does, for each of ``searches``: validation scores ``[I, K]``, NaN for a failed trial.

    All have the same trials and splits; references that are tuned by a search of their own belong to them. A trial that
    failed on any split is never chosen. With K = 1 there is nothing to estimate σ from: then it is the binomial error
    of ``nodes`` validation nodes at the best score, which is too large rather than too small, for the luck of nodes
    that all settings share is part of it. ``finals``: the scores of each method's best trials on further splits.
    ``rare``: so many truths are drawn that rare choices are seen, each with a σ that is as uncertain as its degrees of
    freedom leave it.

    One clear winner leaves no luck; neither do settings that are equally good, as far as the searches can tell:

    >>> noise = 0.002 * np.random.default_rng(0).standard_normal((2, 4, 3))
    >>> winner = 0.7 + np.array([0.1, 0.0, 0.0, 0.0])[:, None] + noise
    >>> {method: found.error for method, found in selections({"cdf": winner[0], "dropedge": winner[1]}).items()}
    {'cdf': 0.0, 'dropedge': 0.0}
    """
    fit = fitted(searches, nodes)
    draws = MANY if rare else DRAWS
    splits = next(iter(searches.values())).shape[1]
    rounds = {} if finals is None else {name: _round(fit, scores, splits) for name, scores in finals.items()}
    return {
        method: selection(fit, place, draws, uncertain=rare, final=rounds.get(method))
        for place, method in enumerate(searches)
    }


def _round(fit: Fitted, scores: Mapping[int, Array], splits: int) -> Round | None:
    """The finals of one method; who failed there, or is so far down that nobody would choose it, is not in them."""
    means = np.full(len(fit.places), np.nan)
    for column, place in enumerate(fit.places):
        means[column] = scores[int(place)].mean() if int(place) in scores else np.nan
    further = {len(each) for each in scores.values()}
    if len(further) != 1 or np.isfinite(means).sum() < 2:
        return None
    return Round(means=means, count=len(scores), ratio=further.pop() / splits)


def between(one: Selection, other: Selection) -> Array:
    """The shifts ``[2B]`` of a difference of two methods, each chosen on its own, if both are equally good.

    Half of them are those of either method: their variance is τ₁² + τ₂², and where both are alike, so is the
    distribution.
    """
    return np.concatenate([one.shifts, other.shifts])


def fitted(searches: Mapping[str, Array], nodes: int | None = None) -> Fitted:
    """The model of the searches; see :class:`Fitted`."""
    scores = _checked(searches)
    means = scores.mean(axis=-1)  # [M, I], NaN where any split failed
    error, freedom = noise(scores, nodes)
    return fitted_means(means, error / np.sqrt(scores.shape[-1]), freedom)


def fitted_means(means: Array, noise: float, freedom: int) -> Fitted:
    """The same from mean scores ``[M, I]`` of known noise."""
    gap = np.nanmax(means, axis=1, keepdims=True) - means
    within = (np.nan_to_num(gap, nan=np.inf) <= REACH * noise).any(axis=0)
    kept = means[:, within]
    known = ~np.isnan(kept)
    kept = kept - np.nanmean(kept, axis=1, keepdims=True)
    count = known.sum(axis=0)
    common = np.nansum(kept, axis=0) / count
    left = np.where(known, kept - common, 0.0)
    pairs = known.sum() - len(count) - len(kept) + 1
    between_methods = max(float((left**2).sum()) / max(pairs, 1) - noise**2, 0.0) if pairs > 0 else 0.0
    total = between_methods + noise**2
    return Fitted(
        means=kept,
        common=common,
        common_error=np.sqrt(total / count),
        own=between_methods / total if total > 0 else 0.0,
        noise=noise,
        freedom=freedom,
        places=np.flatnonzero(within),
    )


def truths(fit: Fitted, place: int, draws: int = DRAWS) -> Array:
    """Draws ``[B, n]`` of the qualities a[m, ·] of method number ``place``; −∞ for what cannot be chosen."""
    common, own, *_ = _normals(draws, len(fit.common))
    drawn: Array = (1 - fit.own) * (fit.common + fit.common_error * common)
    if fit.own > 0:
        drawn += fit.own * fit.means[place] + np.sqrt(fit.own) * fit.noise * np.roll(own, place, axis=0)
    drawn[:, np.isnan(fit.means[place])] = -np.inf
    return drawn


def selection(
    fit: Fitted, place: int, draws: int = DRAWS, *, uncertain: bool = False, final: Round | None = None
) -> Selection:
    """The choice of method number ``place``; ``uncertain``: σ² is freedom · σ² / χ², drawn anew for each truth."""
    drawn = truths(fit, place, draws)
    _, _, *two = _normals(draws, len(fit.common))
    errors = fit.noise * _errors(draws, fit.freedom) if uncertain else np.full((draws, 1), fit.noise)
    if final is not None:
        drawn = _after(drawn, final, fit.noise)
    further = [None, None] if final is None else _further_normals(draws, len(fit.common))[1:]
    first, second = (
        drawn[np.arange(draws), _choice(drawn, errors * noise, final, None if more is None else errors * more)]
        for noise, more in zip(two, further, strict=True)
    )
    return Selection(shifts=first - second, noise=fit.noise)


def _after(drawn: Array, final: Round, noise: float) -> Array:
    """Draws ``[B, n]`` of the qualities after the finals, whose mean scores have the standard error noise / √ratio."""
    inside = np.isfinite(final.means) & np.isfinite(drawn[0])
    before, error = drawn[:, inside], noise / np.sqrt(final.ratio)
    variance = before.var(axis=0)
    weight = variance / (variance + error**2) if error > 0 else np.ones_like(variance)
    seen = before + error * _further_normals(*drawn.shape)[0][:, inside]
    wanted = final.means[inside] - final.means[inside].mean()
    found: Array = drawn.copy()
    found[:, inside] = before + weight * (wanted - (seen - seen.mean(axis=1, keepdims=True)))
    return found


def _choice(drawn: Array, first: Array, final: Round | None, further: Array | None) -> Places:
    """The setting ``[B]`` that is best by scores with noise ``first``; of the best of them, by those of finals, too."""
    scores: Array = drawn + first
    if final is None or further is None:
        return cast("Places", scores.argmax(axis=1))
    if final.count < scores.shape[1]:
        bound = np.partition(scores, -final.count, axis=1)[:, [-final.count]]
        scores = np.where(scores >= bound, scores, -np.inf)
    later = drawn + further / np.sqrt(final.ratio)
    together: Array = np.where(np.isfinite(scores), scores + final.ratio * later, -np.inf)
    return cast("Places", together.argmax(axis=1))


def noise(scores: Array, nodes: int | None = None) -> tuple[float, int]:
    """σ and its degrees of freedom, from ``scores [M, I, K]``, the better half of each search.

    Settings that diverge are noisier than those between which the choice is made. Two are needed to see any noise.

    >>> noise(np.array([[[0.75, 1.0], [1.0, 0.75], [0.1, 0.7]]]))
    (0.25, 1)
    """
    splits, means = scores.shape[-1], scores.mean(axis=-1)
    if splits == 1:
        if nodes is None:
            raise TadropedgeError("scores of one choosing split have no noise to be seen: give the number of its nodes")
        best, size = float(np.nanmax(means)), check_integer("nodes", nodes, least=1)
        return float(np.sqrt(max(best * (1 - best), 1 / size) / size)), size
    total, freedom = 0.0, 0
    for one, mean in zip(scores, means, strict=True):
        better = one[np.argsort(-mean)[: max(2, (np.isfinite(mean).sum() + 1) // 2)]]
        better = better[np.isfinite(better).all(axis=1)]
        left = better - better.mean(axis=1, keepdims=True)
        left = left - left.mean(axis=0)
        total += float((left**2).sum())
        freedom += (len(better) - 1) * (splits - 1)
    return (float(np.sqrt(total / freedom)), freedom) if freedom else (0.0, 1)


def _checked(searches: Mapping[str, Array]) -> Array:
    check_table("searches", searches, "methods to validation scores [I, K]")
    arrays = [as_floats(f"the search of {method}", scores) for method, scores in searches.items()]
    shapes = sorted({array.shape for array in arrays})
    if len(shapes) != 1 or len(shapes[0]) != 2 or 0 in shapes[0]:
        told = ", ".join(map(str, map(list, shapes)))
        raise TadropedgeError(
            f"searches must have the same trials and splits, each [I, K], got shapes {told or 'none'}"
        )
    for method, array in zip(searches, arrays, strict=True):
        if np.isnan(array).any(axis=1).all():
            raise TadropedgeError(
                f"every trial of {method} failed on one of its choosing splits: nothing can be chosen"
            )
    return np.stack(arrays)


@lru_cache(maxsize=64)
def _errors(draws: int, freedom: int) -> Array:
    """What σ may be beside its estimate from ``freedom`` degrees of freedom, ``[B, 1]``, always the same."""
    return np.sqrt(freedom / np.random.default_rng(1).chisquare(freedom, (draws, 1)))


@lru_cache(maxsize=64)
def _further_normals(draws: int, settings: int) -> Array:
    """Fixed normal numbers ``[3, B, n]`` of the finals: of what was seen there, and of two more choices."""
    return np.random.default_rng(2).standard_normal((3, draws, settings))


@lru_cache(maxsize=64)
def _normals(draws: int, settings: int) -> Array:
    """Fixed normal numbers ``[4, B, n]``: of the common qualities, of a method's own, and of two choices."""
    return np.random.default_rng(0).standard_normal((4, draws, settings))
