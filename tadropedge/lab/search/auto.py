"""``auto``: one half of its trials tunes the network without dropping, the other tries ways of dropping on the best.

What is tried is a short list in the order of what has won most often: consistency where labels are few, weights by
likeness where edges are noise, both, and then dropping alone. Validation chooses, but a way must be a point better than
the best that drops nothing: so much may be the luck of the larger choice. Of equal ways the simpler is taken.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from tadropedge.errors import EqualScoresWarning, TadropedgeError
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.search.space import CONSISTENT, OF_DROPPING, space_of, with_budget
from tadropedge.lab.training.experiment import Experiment
from tadropedge.lab.training.trial import Outcome, Trial

if TYPE_CHECKING:
    from tadropedge.lab.search.protocol import Search

PORTFOLIO = (
    "degree-proportional:consistent",
    "jaccard-proportional:weighted",
    "cosine-proportional:weighted",
    "jaccard-proportional:weighted:consistent",
    "degree-proportional",
    "dropedge",
)
BETTER = 0.01  # on validation, than the best that drops nothing
ROUNDING = 1e-6


def first_half(trials: int) -> int:
    """How many of the trials of ``auto`` tune the network.

    >>> first_half(16), first_half(5)
    (8, 3)
    """
    return (trials + 1) // 2


def second_half(candidate: Candidate, experiment: Experiment, search: Search, best: Trial) -> list[Trial]:
    """The trials that drop edges in turn by each way of the portfolio, with the hyper-parameters of the ``best``."""
    ways = portfolio(candidate, experiment)
    made = []
    for number in range(first_half(search.trials), search.trials) if ways else ():
        way = ways[number % len(ways)]
        own = {name: entry for name, entry in search.space.items() if name in (*OF_DROPPING, *CONSISTENT)}
        drawn = space_of(way, {}, own).draw(search.seed, best.replicate, number)
        settings = {**best.settings, **{name: drawn[name] for name in CONSISTENT if name in drawn}}
        seed, group = search.seed_of(best.replicate, number), f"{candidate}/{way}"
        made.append(replace(best, candidate=with_budget(way, drawn), settings=settings, seed=seed, group=group))
    return made


def taken(outcomes: Sequence[Outcome], choose: Callable[[Sequence[Outcome]], Outcome]) -> Outcome:
    """What ``auto`` takes: of the trials that drop nothing the one that is chosen, unless another is a point better."""
    best = choose([outcome for outcome in outcomes if not _parts(outcome.trial.candidate)])
    others = [outcome for outcome in outcomes if _parts(outcome.trial.candidate) and not outcome.failed]
    if not others:
        return best
    other = choose(sorted(others, key=lambda outcome: _parts(outcome.trial.candidate)))  # ties go to the first
    return other if other.val_score >= best.val_score + BETTER - ROUNDING else best


def _parts(candidate: Candidate) -> int:
    """Of how many parts a way of dropping and training is made."""
    dropping = candidate.dropping
    if dropping.rule is None:
        return len(candidate.ways)
    return 1 + (dropping.score is not None) + (dropping.use != "dropped") + len(dropping.options) + len(candidate.ways)


def portfolio(candidate: Candidate, experiment: Experiment) -> list[Candidate]:
    """The ways of dropping that the network and the data allow; a score that is equal for all edges says nothing."""
    ways = []
    for name in PORTFOLIO:
        way = replace(Candidate.parse(name), network=candidate.network)
        with suppress(TadropedgeError, EqualScoresWarning), warnings.catch_warnings():
            warnings.simplefilter("error", EqualScoresWarning)
            experiment.check(with_budget(way, {"keep_ratio": 0.5}))
            ways.append(way)
    return ways
