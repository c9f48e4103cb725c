"""One family of tests: every method against each of its references, corrected together.

A reference is tuned for itself and shares seeds and splits with the method: not dropping, DropEdge, and DropEdge at the
same budget, which is the expected share of edges that the method keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tadropedge._old.comparison.evidence import Evidence
from tadropedge._old.comparison.paired import ALPHA
from tadropedge._old.comparison.selection import Selection, between
from tadropedge._old.comparison.statistics import Accuracies, Honest, judge, mean_interval, sentence
from tadropedge._old.typed import Count, Share

# What a method is judged against, in words. Version 0.1 knew the last one alone.
KINDS = {
    "none": "not dropping",
    "dropedge": "DropEdge tuned",
    "budget": "DropEdge at the same budget",
    "matched": "DropEdge with its settings and budget",
}


@dataclass(frozen=True, kw_only=True)
class Against(Honest):
    """A method against one reference, over the replicates that both finished: ``against`` of a row of ``results.json``.

    Mean and interval are those of the method there, ``reference_mean`` and its interval those of the reference. The
    interval of the difference and the p-value, which is corrected for all tests of the comparison, include
    ``choice_error``: the standard error that comes from the luck of choosing settings. ``settings`` are those of the
    reference, and ``unconverged`` counts its runs whose validation loss was still falling at the end. A p-value of at
    most ``level`` decides: 5 %, or less where the whole procedure would otherwise raise more false alarms than that.
    """

    reference: str
    reference_mean: Share | None = None
    reference_low: float | None = None
    reference_high: float | None = None
    choice_error: float = 0.0
    level: Share = ALPHA
    settings: Mapping[str, object] = field(default_factory=dict)
    unconverged: Count | None = None
    evidence: Evidence | None = None

    @property
    def threshold(self) -> float:
        """The largest p-value that decides."""
        return self.level


def judged_together(
    scores: Mapping[str, Accuracies],
    against: Mapping[str, Mapping[str, str]],
    selected: Mapping[str, Selection] | None = None,
    level: float = ALPHA,
) -> dict[str, dict[str, Against]]:
    """Each test of each method, by kind; p-values are corrected by Holm's rule over all methods and references.

    ``scores[name] [S]`` are those of methods and references, replicate by replicate, NaN where one failed;
    ``against[method]`` names the references of a method by their kinds; ``selected[name]`` is what the luck of choosing
    settings does to a mean. A p-value of at most ``level`` decides.

    >>> scores = {"original": [0.80, 0.81, 0.79] * 4, "cdf": [0.83, 0.85, 0.82] * 4}
    >>> tests = judged_together(scores, {"cdf": {"none": "original"}})
    >>> tests["cdf"]["none"].outcome, tests["cdf"]["none"].verdict.split(";")[0]
    ('better', 'cdf is better than not dropping by 3.33 ± 0.31 points')
    """
    names = {(method, kind): name for method, kinds in against.items() for kind, name in kinds.items()}
    keys = {key: str(place) for place, key in enumerate(names)}
    shifts = {
        keys[method, kind]: between(selected[method], selected[name])
        for (method, kind), name in names.items()
        if selected
    }
    rows, evidence = judge(
        {keys[method, kind]: scores[method] for method, kind in names},
        {keys[key]: scores[name] for key, name in names.items()},
        shifts,
        level,
    )
    found: dict[str, dict[str, Against]] = {}
    for (method, kind), name in names.items():
        key = keys[method, kind]
        test = Against(
            **vars(rows[key]),
            reference=name,
            **_reference(scores[method], scores[name]),
            choice_error=float(np.sqrt(np.mean(shifts[key] ** 2))) if shifts else 0.0,
            level=level,
            evidence=evidence.get(key),
        )
        said = sentence(method, test, test.evidence, KINDS[kind])
        found.setdefault(method, {})[kind] = replace(test, verdict=said)
    return found


def _reference(values: Accuracies, reference: Accuracies) -> dict[str, Any]:
    """Mean and interval of the reference where both finished."""
    theirs = np.where(np.isnan(np.asarray(values, dtype=np.float64)), np.nan, reference)
    if np.isfinite(theirs).sum() < 2:
        return {}
    interval = mean_interval(theirs)
    return {f"reference_{name}": getattr(interval, name) for name in ("mean", "low", "high")}
