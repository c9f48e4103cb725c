"""``auto``: one half of its trials tunes the network without dropping, the other tries ways of dropping on the best.

What is tried is a short list in the order of what has won by most: by likeness of the ends where edges are noise, by
degree and at random where there are more edges than it takes. Validation chooses among all trials of both halves, so
``auto`` may end with nothing dropped.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from tadropedge.errors import EqualScoresWarning, TadropedgeError
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.search.space import space_of, with_budget
from tadropedge.lab.training.experiment import Experiment
from tadropedge.lab.training.trial import Trial

if TYPE_CHECKING:
    from tadropedge.lab.search.protocol import Search

PORTFOLIO = (
    "jaccard-proportional:weighted",
    "degree-proportional",
    "cosine-proportional:weighted",
    "dropedge",
)


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
        budget = space_of(way, {}, {name: entry for name, entry in search.space.items() if name.startswith("keep_")})
        drawn = budget.draw(search.seed, best.replicate, number)
        seed = search.seed_of(best.replicate, number)
        made.append(replace(best, candidate=with_budget(way, drawn), seed=seed, group=f"{candidate}/{way}"))
    return made


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
