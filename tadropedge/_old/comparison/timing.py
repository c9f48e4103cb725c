"""What each method of a comparison costs: the seconds of its scores, once per graph, and of one training.

The trainings of a comparison run many at a time, whatever their methods, so their seconds cannot be shared out. The
chosen trial of each method is therefore trained alone for a few more epochs, which are timed: what ``tadropedge train``
would take. Seconds depend on the machine and its load. They stand in the label of a run, not in its rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import copy

from tadropedge._old.comparison.costs import Cost, read_costs
from tadropedge._old.comparison.results import MethodRow, Results, as_document
from tadropedge._old.method import Method
from tadropedge._old.search.fair import Report
from tadropedge._old.training.config import Trial
from tadropedge._old.training.laboratory import Laboratory

Costs = dict[str, dict[str, float]]  # seconds by method and kind

PHASE = "timing"
WARM = 2  # epochs that are not timed
TIMED = 50  # epochs at most
WANTED = 1.0  # seconds per method, unless an epoch takes longer


def costs(laboratory: Laboratory, rows: Sequence[MethodRow], report: Report = lambda *_: None) -> Costs:
    """The costs of every method of ``rows``, timed now, as plain values for the label of a run.

    >>> from tadropedge._old.data import load_karate
    >>> row = MethodRow(dataset="karate", backbone="gcn", layers=2, method="cdf", settings={"keep_prob": 0.7})
    >>> found = costs(Laboratory(load_karate(), epochs=3), [row])
    >>> list(found), found["cdf"]["training"] > found["cdf"]["epoch"] > 0
    (['cdf'], True)
    """
    found = {}
    rows = [row for row in rows if row.least_share is None]  # what is out of reach was not trained
    for place, row in enumerate(rows):
        report(PHASE, place, len(rows))
        trial = laboratory.within_reach(chosen_trial(row))
        epoch = epoch_seconds(laboratory, trial)
        mine = Cost(scores=_score_seconds(laboratory, row), epoch=epoch, training=epoch * laboratory.epochs)
        found[row.method] = {name: float(f"{value:.3g}") for name, value in vars(mine).items()}
    report(PHASE, len(rows), len(rows))
    return found


def chosen_trial(row: MethodRow) -> Trial:
    """The trial whose settings a row tells.

    >>> settings = {"method": "cdf", "dropout": 0.1}
    >>> row = MethodRow(dataset="a", backbone="gcn", layers=2, method="auto", settings=settings)
    >>> chosen_trial(row).method, chosen_trial(row).dropout
    ('cdf', 0.1)
    """
    told = {name: value for name, value in row.settings.items() if name != "kept_share"}
    return Trial.of(**{"method": row.method} | told)  # type: ignore[arg-type]


def earlier_costs(earlier: Results | None, rows: Sequence[MethodRow]) -> Costs | None:
    """The costs in results that have the same rows, which are not timed again; ``None`` where there are none such.

    They are empty where an older version wrote the results, which did not time anything.
    """
    if earlier is None:
        return None
    one, two = (as_document(Results(some))["compare"] for some in (earlier.rows, rows))
    return {method: vars(cost) for method, cost in read_costs(earlier.run).items()} if one == two else None


def _score_seconds(laboratory: Laboratory, row: MethodRow) -> float:
    """Those of the score of a method; ``auto`` needs all that it searches over."""
    if Method.of(row.method).auto:
        return sum(laboratory.score_seconds.values())
    score = Method.of(row.method).score
    return 0.0 if score is None else laboratory.score_seconds[score]


def epoch_seconds(laboratory: Laboratory, trial: Trial) -> float:
    """Seconds of an epoch of one training that runs alone: the slope between a short training and a longer one.

    So what is done once does not count: kernels that are compiled, a CUDA graph that is recorded, memory that is found.
    """
    warm = min(WARM, laboratory.epochs)
    first = _seconds(laboratory, trial, warm) / warm
    wanted = int(WANTED / first) if first > 0 else TIMED  # a coarse clock may not have moved
    epochs = min(TIMED, laboratory.epochs, max(WARM, wanted))
    short, long = _seconds(laboratory, trial, warm), _seconds(laboratory, trial, epochs)
    slope = (long - short) / max(epochs - warm, 1)
    return slope if slope > 0 else long / epochs


def _seconds(laboratory: Laboratory, trial: Trial, epochs: int) -> float:
    short = copy(laboratory)  # with the scores that it has
    short.epochs, short.progress = epochs, None
    started = time.perf_counter()
    short.train([trial])  # its outcome is on the CPU: nothing runs on
    return time.perf_counter() - started
