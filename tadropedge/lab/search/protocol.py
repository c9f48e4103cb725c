"""The nested protocol: on every split each candidate is searched anew; validation chooses, test judges.

A replicate is one split with its own draw of settings and its own search, so that what varies between replicates holds
all the luck there is: of the split, of the start, and of the settings that were drawn. All candidates go through
replicate r on the same split, with the same trial numbers and seeds: they are paired.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tadropedge._support.checks import check_integer, check_kind, check_number, check_seed
from tadropedge._support.fingerprint import fingerprint
from tadropedge.errors import TadropedgeError, lookup
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.networks.network import RATES
from tadropedge.lab.search import auto
from tadropedge.lab.search.executors import Executor, check_executor
from tadropedge.lab.search.run import run_missing, tell
from tadropedge.lab.search.space import CONSISTENT, OF_DROPPING, Space, space_of, trial_of, word
from tadropedge.lab.search.store import Store
from tadropedge.lab.statistics import Replicate, decide, paired
from tadropedge.lab.training.experiment import Experiment
from tadropedge.lab.training.trial import Outcome, Trial

LEAST = 2  # replicates that are done whatever the time limit: fewer make no interval
LEAST_FOR_WIDTH = 5  # replicates before a width may stop: the spread of fewer is hardly known
WAVES = 3  # batches per worker between two looks at the clock, so that few wait for the last one
ON_GPU = 4  # replicates at once on a GPU, which trains hundreds of models as fast as a few
RUNGS = (1 / 8, 1 / 3)  # shares of the epochs
WORTH = 24  # epochs below which stopping early saves nothing

Found = dict[str, list[Replicate]]


@dataclass(frozen=True, kw_only=True)
class Search:
    """How much is searched.

    * ``trials`` per candidate and replicate; ``space``: entries that replace those of the network's own space;
    * ``time_budget``: seconds after which no further replicate begins; two are always done;
    * ``half_width``: stop when every simultaneous 95 % interval of a difference to not dropping is this narrow
      (a fraction of 1), but not before five replicates. What the intervals say stops nothing: looking until a claim is
      decided would decide 20 to 28 % of them wrongly.

    >>> Search(trials=0)
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: trials must be a whole number of at least 1, got 0
    """

    trials: int = 16
    replicates: int = 20
    seed: int = 0
    space: Mapping[str, Any] = field(default_factory=dict)
    time_budget: float | None = None
    half_width: float | None = None

    def __post_init__(self) -> None:
        check_integer("trials", self.trials, least=1)
        check_integer("replicates", self.replicates, least=1)
        check_seed(self.seed)
        Space(self.space)
        if self.time_budget is not None:
            check_number("time_budget", self.time_budget, 0)
        if self.half_width is not None:
            check_number("half_width", self.half_width, 0, 1)

    def seed_of(self, replicate: int, number: int) -> int:
        """The seed of the start, the dropout and the coins of a trial, the same for every candidate."""
        return word(self.seed, replicate, number, "seed")


def nested(
    candidates: Sequence[Candidate],
    experiment: Experiment,
    search: Search,
    store: Store | None = None,
    executor: Executor | None = None,
    watch: object | None = None,
    *,
    yardsticks: Sequence[Candidate] = (),
) -> Found:
    """Search every candidate on every split; the replicates of each by its printed name.

    Replicate by replicate over all candidates: whatever stops the search, all have the same replicates. What the
    store holds is not trained again, so a second call with other candidates gives them the replicates of the first.
    ``yardsticks`` are searched beside the candidates, but no width waits for them. A search in which no loss is finite
    scores 0, but for the first replicate, where it is refused.

    >>> from tadropedge.lab import TrainingSettings, load
    >>> experiment = Experiment(data=load("karate"), hidden=4, training=TrainingSettings(epochs=3))
    >>> candidates = [Candidate.parse(name) for name in ("original", "dropedge")]
    >>> found = nested(candidates, experiment, Search(trials=2, replicates=3))
    >>> {name: [one.number for one in replicates] for name, replicates in found.items()}
    {'original': [0, 1, 2], 'dropedge': [0, 1, 2]}
    """
    everyone = {str(candidate): candidate for candidate in (*candidates, *yardsticks)}
    check(list(everyone.values()), experiment, search)
    executor = check_executor(executor)
    run = partial(run_missing, experiment, store=store, executor=executor, watch=watch)
    reference = _reference(candidates) if search.half_width is not None else ""
    tell(watch, "plan", len(everyone) * search.replicates * search.trials)
    found: Found = {name: [] for name in everyone}
    for numbers in _rounds(search, executor, experiment, len(everyone), time.monotonic()):
        outcomes = _searched(everyone, numbers, experiment, search, run)
        for number in numbers:  # one by one, so that the width stops at the same one however many were trained at once
            for name in everyone:
                found[name].append(
                    _replicate(number, _best(outcomes[name, number], number, experiment, everyone[name]))
                )
            tell(watch, "replicate", found)
            if search.half_width is not None and number + 1 >= LEAST_FOR_WIDTH:
                some = {str(candidate): found[str(candidate)] for candidate in candidates}
                if widest(some, reference, experiment.data.num_splits) <= search.half_width:
                    return found
    return found


def fixed(
    candidates: Sequence[Candidate],
    experiment: Experiment,
    search: Search,
    store: Store | None = None,
    executor: Executor | None = None,
    watch: object | None = None,
) -> Found:
    """For data with one split: search every candidate once, and train what was chosen from N starts.

    Start r has the same seed for every candidate. All replicates share the split: what varies is the start alone. One
    whose loss is not finite scores 0.
    """
    everyone = {str(candidate): candidate for candidate in candidates}
    check(list(everyone.values()), experiment, search)
    executor, begun = check_executor(executor), time.monotonic()
    run = partial(run_missing, experiment, store=store, executor=executor, watch=watch)
    tell(watch, "plan", len(everyone) * (search.replicates + search.trials))
    outcomes = _searched(everyone, [0], experiment, search, run)
    chosen = {name: _best(outcomes[name, 0], 0, experiment, everyone[name]).trial for name in everyone}
    found: Found = {name: [] for name in everyone}
    for numbers in _rounds(search, executor, experiment, len(everyone), begun):
        places = [(name, number) for number in numbers for name in everyone]
        ended = run([_start(chosen[name], name, number, search) for name, number in places])
        for (name, number), outcome in zip(places, ended, strict=True):
            found[name].append(_replicate(number, outcome))
        tell(watch, "replicate", found)
    return found


def best_of(
    candidate: Candidate,
    experiment: Experiment,
    search: Search,
    store: Store | None = None,
    executor: Executor | None = None,
    watch: object | None = None,
) -> Outcome:
    """The trial of best test score on the first split, ties going to the first: the rule of the paper's tables.

    It flatters every candidate, and more so with more trials.
    """
    check([candidate], experiment, search)
    tell(watch, "plan", search.trials)
    run = partial(run_missing, experiment, store=store, executor=executor, watch=watch)
    outcomes = _searched({"": candidate}, [0], experiment, search, run)
    return max(_finite(outcomes["", 0]), key=lambda outcome: outcome.test_score)


# -- trials ----------------------------------------------------------------------------------------------


def trials_of(candidate: Candidate, experiment: Experiment, search: Search, replicate: int) -> list[Trial]:
    """The trials of a candidate in a replicate, by (seed, replicate, number) alone; of ``auto`` the first half.

    A group is named by the candidate and, where rungs compare its trials, by all of them: what comes of a trial then
    depends on the others.
    """
    count, searched = search.trials, candidate
    if candidate.is_auto:
        count, searched = auto.first_half(search.trials), Candidate(network=candidate.network)
    space = searched_space(searched, experiment, search)
    drawn = [space.draw(search.seed, replicate, number) for number in range(count)]
    trials = [
        trial_of(searched, one, seed=search.seed_of(replicate, number), split=replicate, replicate=replicate)
        for number, one in enumerate(drawn)
    ]
    return _grouped([replace(trial, group=str(candidate)) for trial in trials], experiment)


def searched_space(candidate: Candidate, experiment: Experiment, search: Search) -> Space:
    """What is searched for a candidate: settings that the experiment fixes are not, unless the search names them."""
    network, own = experiment.network_of(candidate), search.space
    offered = {**RATES, **network.space, **{name: own[name] for name in own if name in network.settings}}
    said = experiment.settings if candidate.network in (None, experiment.network) else {}
    free = {name: entry for name, entry in offered.items() if name in own or name not in said}
    return space_of(candidate, free, own)


def check(candidates: Sequence[Candidate], experiment: Experiment, search: Search) -> None:
    """Refuse candidates and names of a search space that cannot be searched, before any work."""
    if not candidates:
        raise TadropedgeError("no candidates: name at least one, such as 'original'", argument="methods")
    check_kind("experiment", experiment, Experiment)
    check_kind("search", search, Search)
    known = {**RATES, **CONSISTENT, **dict.fromkeys(OF_DROPPING)}
    for candidate in candidates:
        check_kind("candidate", candidate, Candidate)
        experiment.check(Candidate(network=candidate.network) if candidate.is_auto else candidate)
        network = experiment.network_of(candidate)
        known |= {**network.space, **network.settings}
    for name in search.space:
        lookup("setting of a search space", name, known)


def default_rungs(epochs: int) -> tuple[int, ...]:
    """After which of the epochs the worse half of a search stops: an eighth and a third, which saves half of the work.

    Of 33 searches of 16 trials on karate and clusters, three then chose another trial; the test score changed by
    0.003 ± 0.002 on average.

    >>> default_rungs(400), default_rungs(20)
    ((50, 133), ())
    """
    return tuple(int(share * epochs) for share in RUNGS) if epochs >= WORTH else ()


def choose(outcomes: Sequence[Outcome], keep: str = "measure") -> Outcome:
    """The outcome of best validation score, or of lowest validation loss where that decides; ties go to the first."""
    if keep == "loss":
        return min(_finite(outcomes), key=lambda outcome: outcome.val_loss)
    return max(_finite(outcomes), key=lambda outcome: outcome.val_score)


def _best(outcomes: Sequence[Outcome], number: int, experiment: Experiment, candidate: Candidate) -> Outcome:
    """The outcome that is chosen in a replicate.

    Where no loss is finite, a first replicate is refused before more time is spent: the search was made so. In a later
    one it is a collapse of the candidate, which counts as one.
    """
    if number > 0 and all(outcome.failed for outcome in outcomes):
        return outcomes[0]
    by_validation = partial(choose, keep=experiment.training.keep)
    return auto.taken(outcomes, by_validation) if candidate.is_auto else by_validation(outcomes)


def _finite(outcomes: Sequence[Outcome]) -> list[Outcome]:
    finite = [outcome for outcome in outcomes if not outcome.failed]
    if not finite:
        name, number = outcomes[0].trial.search
        raise TadropedgeError(
            f"'{name.partition('#')[0]}' has no trial with a finite loss in replicate {number} ({len(outcomes)} were "
            "trained): search smaller learning rates"
        )
    return finite


def _grouped(trials: Sequence[Trial], experiment: Experiment) -> list[Trial]:
    """Trials with the names of their groups: where there are rungs, each names all that is compared."""
    if not experiment.training.rungs:
        return list(trials)
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(trial.group, []).append(trial)
    names = {group: f"{group}#{fingerprint(trials=alike)[:12]}" for group, alike in groups.items()}
    return [replace(trial, group=names[trial.group]) for trial in trials]


def _start(chosen: Trial, name: str, number: int, search: Search) -> Trial:
    """Start ``number`` of chosen settings: a group of its own, so that no rung compares it."""
    seed = word(search.seed, number, 0, "start")
    return replace(chosen, seed=seed, replicate=number, group=f"{name}#start")


def _replicate(number: int, outcome: Outcome) -> Replicate:
    scores = {"validation": outcome.val_score, "test": outcome.test_score}
    if outcome.failed:  # a collapse, which counts as one
        scores = dict.fromkeys(scores, 0.0)
    return Replicate(number=number, chosen=outcome.trial, kept_share=outcome.kept_share, **scores)


# -- rounds ----------------------------------------------------------------------------------------------


def _searched(
    candidates: Mapping[str, Candidate],
    numbers: Sequence[int],
    experiment: Experiment,
    search: Search,
    run: Callable[[Sequence[Trial]], list[Outcome]],
) -> dict[tuple[str, int], list[Outcome]]:
    """All outcomes of the searches of these replicates, by candidate and number."""

    def each(jobs: Mapping[tuple[str, int], Sequence[Trial]]) -> dict[tuple[str, int], list[Outcome]]:
        ended = iter(run([one for job in jobs.values() for one in job]))
        return {place: [next(ended) for _ in job] for place, job in jobs.items()}

    places = [(name, number) for number in numbers for name in candidates]
    found = each({place: trials_of(candidates[place[0]], experiment, search, place[1]) for place in places})
    later = {}
    for name, number in places:
        if (
            candidates[name].is_auto
            and not (best := _best(found[name, number], number, experiment, candidates[name])).failed
        ):
            second = auto.second_half(candidates[name], experiment, search, best.trial)
            later[name, number] = _grouped(second, experiment)
    for place, outcomes in each(later).items():
        found[place] += outcomes
    return found


def _rounds(
    search: Search, executor: Executor, experiment: Experiment, candidates: int, begun: float
) -> Iterator[range]:
    """The numbers of the replicates that are trained before the next look at the clock, until the time is over.

    It is over where another round would end too late, judged by the longest so far; the first one also warms up.
    """
    size = 1
    if executor.workers > 1:
        size = math.ceil(WAVES * executor.workers / candidates)
    elif experiment.device != "cpu" and search.time_budget is None:
        size = ON_GPU
    took: list[float] = []
    for first in range(0, search.replicates, size):
        last = time.monotonic()
        late = last - begun + max(took[1:] or took, default=0.0)
        if search.time_budget is not None and first >= LEAST and late > search.time_budget:
            return
        yield range(first, min(first + size, search.replicates))
        took.append(time.monotonic() - last)


# -- width -----------------------------------------------------------------------------------------------


def widest(found: Found, reference: str, num_splits: int | None = None) -> float:
    """The largest half-width of the simultaneous intervals of paired differences to the reference."""
    pairs = [(name, reference) for name in found if name != reference]
    verdicts = decide(paired(found, num_splits), pairs)
    return max(((one.high - one.low) / 2 for one in verdicts.values()), default=0.0)


def _reference(candidates: Sequence[Candidate]) -> str:
    """The candidate that the others are compared with: the first that drops nothing."""
    for candidate in candidates:
        if candidate.dropping.rule is None and not candidate.ways and not candidate.is_auto:
            return str(candidate)
    raise TadropedgeError("half_width needs a candidate that drops nothing: add 'original'", argument="half_width")
