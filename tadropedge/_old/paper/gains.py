"""What TADropEdge gains over DropEdge and Original in Table 1: printed, at the best of the trials, on fresh splits.

An *effect* is a difference that the paper prints, such as cdf minus DropEdge in one cell, beside the two that were
measured. The verdicts on Table 1 (``sentences.py``) are made of lists of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tadropedge._old.comparison.statistics import Interval, mean_interval
from tadropedge._old.paper.cells import Result
from tadropedge._old.paper.judge import Gap, gaps
from tadropedge._old.paper.rows import grouped

Array = npt.NDArray[np.float64]
Key = tuple[str, str, str, str | None]
# What a strategy is compared with, in words.
REFERENCES = {
    "budget": "DropEdge at the same settings that keeps as many edges",
    "dropedge": "DropEdge, tuned for itself",
    "original": "Original, tuned for itself",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Effect:
    """A difference of two accuracies in one cell: printed, of the best trials, and of fresh trainings ``[S]``."""

    dataset: str
    network: str
    method: str
    laplacian: str | None
    printed: float  # NaN where nothing is
    best: float
    ours: Array  # of the fresh trainings; replicate s of both has the same start and split
    theirs: Array
    null: bool = False

    @property
    def key(self) -> Key:
        """Its place in the table."""
        return self.dataset, self.network, self.method, self.laplacian

    @property
    def family(self) -> tuple[str, str, str | None]:
        """The strategies of one dataset, network and Laplacian, which are tested together."""
        return self.dataset, self.network, self.laplacian

    @property
    def fresh(self) -> Array:
        """The paired differences ``[S]``."""
        return self.ours - self.theirs

    def minus(self, other: Effect) -> Effect:
        """By how much this effect is the larger one."""
        size = min(len(self.fresh), len(other.fresh))
        printed, best = self.printed - other.printed, round(self.best - other.best, 6)
        return replace(self, printed=printed, best=best, ours=self.fresh[:size], theirs=other.fresh[:size])


def effects(rows: Sequence[Result], reference: str) -> list[Effect]:
    """Every strategy minus its reference in the same cell: ``"budget"``, ``"dropedge"`` or ``"original"``.

    What the paper prints and the best of the trials know no budget: there the reference is DropEdge.
    """
    same_budget = reference == "budget"
    base = {(row.dataset, row.network): row for row in rows if row.method == ("dropedge" if same_budget else reference)}
    mine = [(row, base[place]) for row in rows if row.laplacian and (place := (row.dataset, row.network)) in base]
    return [effect(row, other, row.reference_accuracies if same_budget else None) for row, other in mine]


def effect(row: Result, base: Result, theirs: Sequence[float | None] | None = None) -> Effect:
    """One row minus another of the same cell; on fresh splits minus ``theirs``, where they are given."""
    pairs = zip(row.fresh.fresh_accuracies or (), theirs or base.fresh.fresh_accuracies or (), strict=False)
    both = np.array(list(pairs), dtype=np.float64).reshape(-1, 2)  # one may have more of them; None is NaN
    return Effect(
        dataset=row.dataset,
        network=row.network,
        method=row.method,
        laplacian=row.laplacian,
        printed=math.nan if row.printed is None or base.printed is None else round(row.printed - base.printed, 6),
        best=round(row.paper_protocol.best_test - base.paper_protocol.best_test, 6),
        ours=both[:, 0],
        theirs=both[:, 1],
        null=row.null is not None,
    )


def printed_mean(found: Iterable[Effect]) -> float:
    """The mean of what is printed; NaN where nothing is."""
    known = [one.printed for one in found if not math.isnan(one.printed)]
    return float(np.mean(known)) if known else math.nan


def best_interval(found: Sequence[Effect]) -> Interval | None:
    """The mean effect at the best trials with its 95 % interval over networks; a network's strategies are averaged."""
    means = [np.mean([one.best for one in mine]) for mine in grouped(found, lambda one: one.key[:2]).values()]
    return mean_interval(np.array(means)) if len(means) > 1 else None


def fresh_interval(found: Sequence[Effect]) -> Interval | None:
    """The mean effect on fresh splits with its 95 % interval over replicates, which all cells of a dataset share.

    Datasets are independent: with shares w of the effects and half-widths h, the whole has the half-width √Σ (w h)².
    """
    pairs = []
    for mine in grouped(found, lambda one: one.dataset).values():
        size = min(len(one.fresh) for one in mine)
        means = np.array([one.fresh[:size] for one in mine]).mean(axis=0)  # NaN where a training failed
        if (~np.isnan(means)).sum() < 2:
            return None
        pairs.append((mean_interval(means), len(mine) / len(found)))
    mean = sum(share * one.mean for one, share in pairs)
    half = math.sqrt(sum((share * (one.high - one.low) / 2) ** 2 for one, share in pairs))
    return Interval(mean=mean, low=mean - half, high=mean + half, count=sum(one.count for one, _ in pairs))


def corrected(found: Sequence[Effect], *, together: bool = False) -> dict[Key, Gap]:
    """The paired differences, corrected by Holm's rule over the strategies of a network, or over all ``together``."""
    families = [found] if together else grouped(found, lambda one: one.family).values()
    made = [gaps({one.key: (one.ours, one.theirs) for one in family}) for family in families]
    return {key: gap for family in made for key, gap in family.items()}


def excludes(gap: Gap, printed: float) -> bool:
    """Whether the interval of a gap lies wholly below what is printed."""
    return gap.high is not None and gap.high < printed


def compared(found: Iterable[float], within: str = "tied") -> str:
    """How many numbers are above, at and below zero.

    >>> compared([0.1, 0.0, -0.2, -0.3])
    'above in 1, tied in 1, below in 2 of 4'
    """
    signs = [int(np.sign(number)) for number in found]
    above, tied, below = (signs.count(sign) for sign in (1, 0, -1))
    return f"above in {above}, {within} in {tied}, below in {below} of {len(signs)}"
