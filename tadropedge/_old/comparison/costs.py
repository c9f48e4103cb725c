"""What each method of a comparison costs, as the label of its run tells it; ``timing.py`` measures it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tadropedge._old.typed import build

KEY = "costs"  # in the label of a run


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Seconds of one method: of its ``scores``, once per graph, 0 without any; of an ``epoch``; of a ``training``."""

    scores: float
    epoch: float
    training: float


def read_costs(run: Mapping[str, object]) -> dict[str, Cost]:
    """The costs in the label of a run, by method; none where an older version did not record them.

    >>> read_costs({"costs": {"cdf": {"scores": 0.5, "epoch": 0.01, "training": 4.0}}})["cdf"].training, read_costs({})
    (4.0, {})
    """
    return build(dict[str, Cost], run.get(KEY, {}), f"run.{KEY}")
