"""The fair protocol: methods and their references are tuned alike on some splits, and judged on others.

Every method, not dropping and DropEdge are searched with the same number of trials on each of K choosing splits; the
best mean validation score chooses. Then DropEdge is searched once more at the kept share of each adaptive method, with
as many trials on the same splits; for ``auto`` only where what it chose is adaptive. Everything chosen is retrained on
the same fresh seeds and judging splits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from tadropedge.search.engine import Table, Train, check_jobs, run_searches
from tadropedge.search.entrants import Entrant, budgets, references, with_references
from tadropedge.search.protocol import KeptShare, Settled, adaptive, best, kept_shares, retrained
from tadropedge.search.space import Spaces, settled_space
from tadropedge.search.study import Finished, Storage, opened
from tadropedge.watching import Expected, tell

Array = npt.NDArray[np.float64]
Report = Callable[[str, int, int], None]  # (phase, trials done, trials in all)
PHASES = ("search", "search at the same budget", "retraining")


@dataclass(frozen=True, eq=False)
class Tuned:
    """An entrant after its search: ``searched [K][trials]``, the trial chosen, and its S runs on judging splits.

    Entry s of all ``runs`` of a comparison shares its seed and split.
    """

    entrant: Entrant
    _: KW_ONLY
    searched: Sequence[Sequence[Finished]]
    chosen: Finished
    kept_share: float | None  # expected, of an adaptive method and of DropEdge at a budget
    runs: Sequence[Finished]

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


@dataclass(frozen=True, eq=False)
class Tournament:
    """What the fair protocol trained: everything ``tuned``, by name, and the name of each reference of each method."""

    tuned: Mapping[str, Tuned]
    against: Mapping[str, Mapping[str, str]]  # from a method to its references by kind: none, dropedge, budget


def count_trainings(methods: Sequence[str], trials: int, seeds: int, splits: int) -> int:
    """How many trainings a comparison takes at most: fewer where adaptive methods have the same kept share.

    >>> count_trainings(["cdf"], trials=30, seeds=20, splits=3)  # original, dropedge, cdf, dropedge at cdf's budget
    440
    """
    entrants = with_references(methods)
    return (len(entrants) + sum(map(adaptive, entrants))) * (trials * splits + seeds)


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
    report: Report = lambda *_: None,
) -> Tournament:
    """Run the protocol, or what ``storage`` lacks of it.

    ``space``, ``trials``, ``seed``, ``name`` and ``settings`` are as in ``run_search``; the trainer's splits
    0 … ``choose_splits`` − 1 serve the choice, and ``judge_splits`` has one split for each replicate. Studies are
    called ``NAME/search/METHOD``, ``NAME/budget/METHOD-SHARE`` and ``NAME/judged/…/trial-I``.
    """
    names = with_references(methods)
    check_jobs(count_trainings(methods, trials, len(judge_splits), choose_splits))
    matching = sum(map(adaptive, names))
    searched = [len(names) * trials * choose_splits, matching * trials * choose_splits]
    tell(Expected(dict(zip(PHASES, [*searched, (len(names) + matching) * len(judge_splits)], strict=True))))
    with opened(storage) as base:
        search = partial(
            run_searches, train, space, trials=trials, seed=seed, storage=base,
            splits=choose_splits, name=name, settings=settings, batch=batch,
        )  # fmt: skip
        own = [Entrant(method) for method in names]
        tables = search(entrants=own, progress=partial(report, PHASES[0]))
        shares = kept_shares(kept_share, {one.name: _chosen(tables, one).trial for one in own})
        same = budgets(shares)
        matched = list(dict.fromkeys(same.values()))
        at_budget = search(entrants=matched, progress=partial(report, PHASES[1])) if matched else []
        tables = [{**one, **two} for one, two in zip(tables, at_budget or [{}] * choose_splits, strict=True)]
        settled = {one.name: _settled(tables, one, space) for one in (*own, *matched)}
        (runs,) = retrained(
            train, [settled], judge_splits, seed, base,
            name=name, settings=settings, batch=batch, progress=partial(report, PHASES[2]),
        )  # fmt: skip
    shares |= {one.name: one.keep_ratio for one in matched if one.keep_ratio is not None}
    tuned = {
        one.name: Tuned(
            one,
            searched=[table[one.name] for table in tables],
            chosen=_chosen(tables, one),
            kept_share=shares.get(one.name),
            runs=runs[one.name],
        )
        for one in (*own, *matched)
    }
    against = {method: references(method) for method in names}
    return Tournament(
        tuned,
        {
            method: kinds | ({"budget": same[method].name} if method in same else {})
            for method, kinds in against.items()
        },
    )


def _chosen(tables: Sequence[Table], entrant: Entrant) -> Finished:
    return best([table[entrant.name] for table in tables], entrant.name)


def _settled(tables: Sequence[Table], entrant: Entrant, space: Spaces) -> Settled:
    """What is retrained of an entrant, without the seed and the split of its search."""
    chosen = _chosen(tables, entrant)
    tuned = settled_space(entrant.space(space), chosen.trial)
    return Settled(f"judged/{entrant.place}/trial-{chosen.index}", chosen.trial, tuned)
