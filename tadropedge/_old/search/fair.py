"""The fair protocol: methods and their references are tuned alike on some splits, and judged on others.

Every method, not dropping and DropEdge are searched with the same number of trials on each of K choosing splits; the
best mean validation score chooses, where there are finals after the few best trials have been trained on further
splits. Then DropEdge is searched once more at the kept share of each adaptive method, with
as many trials on the same splits; for ``auto`` only where what it chose is adaptive. Everything chosen is retrained on
the same fresh seeds and judging splits.

At a fixed budget every method that drops keeps the same share. Then DropEdge tuned is DropEdge at the same budget, and
is searched once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from tadropedge._old.checks import check_integer
from tadropedge._old.data.choosing import FURTHER
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.search.budget import Budget
from tadropedge._old.search.engine import Table, Train, check_jobs, run_searches
from tadropedge._old.search.entrants import Entrant, budgets, references, with_references
from tadropedge._old.search.protocol import KeptShare, Settled, adaptive, best, foremost, kept_shares, retrained
from tadropedge._old.search.space import Spaces, settled_space
from tadropedge._old.search.study import Finished, Storage, opened
from tadropedge._old.watching import Expected, tell

Array = npt.NDArray[np.float64]
Report = Callable[[str, int, int], None]  # (phase, trials done, trials in all)
MET = 1e-6  # a share within this of the budget is the budget
PHASES = ("search", "search at the same budget", "retraining")


@dataclass(frozen=True)
class Finals:
    """The ``count`` best trials of every search are trained on ``splits`` further choosing splits, which decide, too.

    Few splits choose by luck; many splits for all trials would take many times the trainings.
    """

    count: int
    splits: int

    def __post_init__(self) -> None:
        check_integer("the number of finalists", self.count, least=2)
        check_integer("the number of final splits", self.splits, least=1)


@dataclass(frozen=True, eq=False)
class Tuned:
    """An entrant after its search: ``searched [K][trials]``, the trial chosen, and its S runs on judging splits.

    ``finals [L][F]``: its F best trials on L further choosing splits. Entry s of all ``runs`` of a comparison shares
    its seed and split.
    """

    entrant: Entrant
    _: KW_ONLY
    searched: Sequence[Sequence[Finished]]
    chosen: Finished
    kept_share: float | None  # expected, of an adaptive method and of DropEdge at a budget
    runs: Sequence[Finished]
    finals: Sequence[Sequence[Finished]] = ()

    @property
    def scores(self) -> Array:
        """Test scores ``[S]``; NaN where a loss was not finite."""
        return np.array([run.test_score for run in self.runs], dtype=np.float64)

    @property
    def searched_scores(self) -> Array:
        """Validation scores ``[trials, K]`` of the search; NaN where a loss was not finite."""
        return np.array(
            [[row.val_score for row in same] for same in zip(*self.searched, strict=True)], dtype=np.float64
        )

    @property
    def final_scores(self) -> dict[int, Array]:
        """Validation scores ``[L]`` of the finalists, by the number of the trial."""
        return {same[0].index: np.array([row.val_score for row in same]) for same in zip(*self.finals, strict=True)}


@dataclass(frozen=True, eq=False)
class Tournament:
    """What the fair protocol trained: everything ``tuned``, by name, and the name of each reference of each method.

    ``out_of_reach``: the methods that cannot keep the share of a fixed budget, with the least that they could keep;
    they are not trained.
    """

    tuned: Mapping[str, Tuned]
    against: Mapping[str, Mapping[str, str]]  # from a method to its references by kind: none, dropedge, budget
    out_of_reach: Mapping[str, float] = field(default_factory=dict)


def count_trainings(
    methods: Sequence[str],
    trials: int,
    seeds: int,
    splits: int,
    *,
    keep_ratio: float | None = None,
    finals: Finals | None = None,
) -> int:
    """How many trainings a comparison takes at most: fewer where adaptive methods have the same kept share.

    With a fixed ``keep_ratio`` DropEdge is tuned once for all of them.

    >>> count_trainings(["cdf"], trials=30, seeds=20, splits=3)  # original, dropedge, cdf, dropedge at cdf's budget
    440
    >>> count_trainings(["cdf"], trials=30, seeds=20, splits=3, keep_ratio=0.7)
    330
    """
    entrants = with_references(methods)
    matched = sum(map(adaptive, entrants)) if keep_ratio is None else 0
    final = 0 if finals is None else min(finals.count, trials) * finals.splits
    return (len(entrants) + matched) * (trials * splits + final + seeds)


def fair(
    train: Train,
    space: Spaces,
    methods: Sequence[str],
    trials: int,
    seed: int,
    storage: Storage,
    kept_share: KeptShare,
    *,
    choose_splits: int,
    judge_splits: Sequence[int],
    name: str,
    settings: Mapping[str, object],
    batch: int,
    budget: Budget | None = None,
    budget_step: float | None = None,
    finals: Finals | None = None,
    curves: bool = True,
    report: Report = lambda *_: None,
) -> Tournament:
    """Run the protocol, or what ``storage`` lacks of it.

    ``space``, ``trials``, ``seed``, ``name`` and ``settings`` are as in ``run_search``; the trainer's splits
    0 … ``choose_splits`` − 1 serve the choice, and ``judge_splits`` has one split for each replicate. Studies are
    called ``NAME/search/METHOD``, ``NAME/budget/METHOD-SHARE`` and ``NAME/judged/…/trial-I``.

    With a ``budget`` every method that drops keeps its share, and ``space`` is the budget's. Without one, DropEdge is
    matched to each method's own share, rounded to multiples of ``budget_step`` where that is given. With ``finals``
    the trainer's splits from ``FURTHER`` on serve the choice, too. Without ``curves`` the studies hold no curves of
    what is retrained, and are small.
    """
    skipped = {} if budget is None else budget.out_of_reach
    ratio = None if budget is None else budget.keep_ratio
    names = [name for name in with_references(methods) if name not in skipped]
    check_jobs(count_trainings(methods, trials, len(judge_splits), choose_splits, keep_ratio=ratio, finals=finals))
    matching = sum(map(adaptive, names)) if budget is None else 0
    each = trials * choose_splits + (0 if finals is None else min(finals.count, trials) * finals.splits)
    searched = [len(names) * each, matching * each]
    tell(Expected(dict(zip(PHASES, [*searched, (len(names) + matching) * len(judge_splits)], strict=True))))
    with opened(storage) as base:
        run = partial(
            run_searches,
            train,
            space,
            trials=trials,
            seed=seed,
            storage=base,
            name=name,
            settings=settings,
            batch=batch,
        )
        search = partial(_searched, run, range(choose_splits), finals)
        own = {method: Entrant(method) if budget is None else budget.entrant(method) for method in names}
        tables = search(list(own.values()), partial(report, PHASES[0]))
        shares = kept_shares(kept_share, {method: _chosen(tables, one).trial for method, one in own.items()})
        _check_kept(shares, budget)
        same = budgets(shares, budget_step) if budget is None else {}
        matched = {one.name: one for one in same.values()}
        tables |= search(list(matched.values()), partial(report, PHASES[1])) if matched else {}
        everybody = own | matched
        settled = {called: _settled(tables, one, space) for called, one in everybody.items()}
        (runs,) = retrained(
            train, [settled], judge_splits, seed, base,
            name=name, settings=settings, batch=batch, progress=partial(report, PHASES[2]), curves=curves,
        )  # fmt: skip
    shares |= {called: one.keep_ratio for called, one in everybody.items() if one.keep_ratio is not None}
    tuned = {called: _tuned(tables, one, shares.get(called), runs[called]) for called, one in everybody.items()}
    against = {
        method: references(method, ratio) | ({"budget": same[method].name} if method in same else {})
        for method in names
    }
    return Tournament(tuned, against, skipped)


def _check_kept(shares: Mapping[str, float], budget: Budget | None) -> None:
    """Nothing may be judged at another budget than the fixed one."""
    for method, share in shares.items() if budget is not None else ():
        if budget is not None and abs(share - budget.keep_ratio) > MET:
            raise TadropedgeError(f"{method} keeps {share:g} of the edges, not keep_ratio={budget.keep_ratio:g}")


@dataclass(frozen=True, eq=False)
class _Search:
    """Of one entrant, its trials on the first choosing splits and its finalists on further ones."""

    searched: Sequence[Sequence[Finished]]  # [K][trials]
    finals: Sequence[Sequence[Finished]] = ()  # [L][F]

    def chosen(self, name: str) -> Finished:
        """The best of all trials or, where there are finals, of the finalists over all splits."""
        if not self.finals:
            return best(self.searched, name)
        finalists = {row.index for row in self.finals[0]}
        first = [[row for row in rows if row.index in finalists] for rows in self.searched]
        return best([*first, *self.finals], name)


def _searched(
    run: Callable[..., list[Table]],
    splits: Sequence[int],
    finals: Finals | None,
    entrants: Sequence[Entrant],
    progress: Callable[[int, int], None],
) -> dict[str, _Search]:
    """What was searched, by the names of the entrants."""
    tables = run(entrants=entrants, splits=splits, progress=progress)
    names = [entrant.name for entrant in entrants]
    searched = {name: [table[name] for table in tables] for name in names}
    if finals is None:
        return {name: _Search(rows) for name, rows in searched.items()}
    only = {name: sorted(foremost(rows, finals.count)) for name, rows in searched.items()}
    further = run(entrants=entrants, splits=range(FURTHER, FURTHER + finals.splits), only=only, progress=progress)
    return {name: _Search(rows, [table[name] for table in further]) for name, rows in searched.items()}


def _chosen(tables: Mapping[str, _Search], entrant: Entrant) -> Finished:
    return tables[entrant.name].chosen(entrant.name)


def _tuned(
    tables: Mapping[str, _Search], entrant: Entrant, kept_share: float | None, runs: Sequence[Finished]
) -> Tuned:
    found = tables[entrant.name]
    return Tuned(
        entrant,
        searched=found.searched,
        finals=found.finals,
        chosen=found.chosen(entrant.name),
        kept_share=kept_share,
        runs=runs,
    )


def _settled(tables: Mapping[str, _Search], entrant: Entrant, space: Spaces) -> Settled:
    """What is retrained of an entrant, without the seed and the split of its search."""
    chosen = _chosen(tables, entrant)
    tuned = settled_space(entrant.space(space), chosen.trial)
    return Settled(f"judged/{entrant.place}/trial-{chosen.index}", chosen.trial, tuned)
