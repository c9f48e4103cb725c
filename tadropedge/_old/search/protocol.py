"""The two protocols: the paper's best test accuracy, and settings chosen on validation data and retrained.

*paper*: the best test accuracy of the trials. It flatters every method, and more so with more trials.

*honest*: for each method, the settings of best validation accuracy, retrained with fresh seeds and splits. In replicate
s every method has the same split, the same start and the same dropout noise. Beside every TADropEdge method runs
its reference: DropEdge with that method's settings, at the same expected number of kept edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import optuna

from tadropedge._old.checks import (
    as_number,
    ask,
    check_flag,
    check_function,
    check_integer,
    check_list,
    check_seed,
    check_table,
)
from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.method import Method
from tadropedge._old.search import automatic
from tadropedge._old.search.engine import BATCH, Job, Progress, Table, Train, check_jobs, check_work, run_jobs
from tadropedge._old.search.space import Space, Spaces, replicate_seed, settled_space, space_for
from tadropedge._old.search.study import Finished, Ledger, Storage, opened
from tadropedge._old.training.config import Trial

Array = npt.NDArray[np.float64]
SHARE = "kept_share(trial) -> a share in [0, 1]"
KeptShare = Callable[[Trial], float]


@dataclass(frozen=True, eq=False)
class Replicates:
    """What the honest protocol trained, by method; S replicates, paired: entry s of every array shares split and start.

    ``chosen`` is the search trial whose settings were taken. ``runs`` and ``reference_runs`` hold the retrained
    models with their curves, ``kept_share`` the expected share of kept edges; only TADropEdge methods have
    this share and a reference. The accuracy of a replicate whose loss was not finite is NaN.
    """

    chosen: dict[str, Finished]
    kept_share: dict[str, float]
    runs: Table
    reference_runs: Table

    @property
    def accuracy(self) -> dict[str, Array]:
        """Test accuracies ``[S]`` of each method."""
        return {method: _accuracies(rows) for method, rows in self.runs.items()}

    @property
    def reference(self) -> dict[str, Array]:
        """Test accuracies ``[S]`` of DropEdge with the settings and the kept share of each method."""
        return {method: _accuracies(rows) for method, rows in self.reference_runs.items()}


def paper(table: Table) -> dict[str, Finished]:
    """The trial of best test accuracy of each method; ties go to the first."""
    return {
        method: _first(method, [rows], lambda same: (-same[0].test_accuracy, same[0].index))
        for method, rows in check_finished(table).items()
    }


def choose(table: Table, *more: Table) -> dict[str, Finished]:
    """The trial of best validation score of each method; ties go to the lowest validation loss, then the first.

    With ``more`` tables, the same trials on other splits, means over all of them decide, and a trial that failed on
    any of them is out. What is returned are rows of the first table.
    """
    for one in (table, *more):
        check_finished(one)
    return {method: best([rows, *(_same(one, method, rows) for one in more)], method) for method, rows in table.items()}


def best(searched: Sequence[Sequence[Finished]], name: str) -> Finished:
    """The first split's row of the trial that is best over all of ``searched [K][trials]``, as in :func:`choose`."""
    return _first(name, searched, _by_validation)


def foremost(searched: Sequence[Sequence[Finished]], count: int) -> list[int]:
    """The numbers of the ``count`` best trials over all of ``searched [K][trials]``, best first."""
    finite = [same for same in zip(*searched, strict=True) if not any(row.failed for row in same)]
    return [same[0].index for same in sorted(finite, key=_by_validation)[:count]]


def _by_validation(same: Sequence[Finished]) -> tuple[float, ...]:
    """The order of trials: best mean validation score, then lowest validation loss, then the first."""
    return -_mean(row.val_score for row in same), _mean(row.val_loss for row in same), same[0].index


def honest(
    train: Train,
    table: Table,
    space: Spaces,
    replicates: int,
    seed: int,
    storage: Storage,
    kept_share: KeptShare,
    *,
    splits: Sequence[int] | None = None,
    name: str = "search",
    settings: Mapping[str, object] | None = None,
    batch: int = BATCH,
    progress: Progress | None = None,
    curves: bool = True,
) -> Replicates:
    """Choose settings on validation data; retrain them and their references on fresh seeds and splits.

    * ``table``, ``space``, ``seed``, ``storage``, ``name``, ``settings``: as in ``run_search``. What is retrained
      goes into studies of its own and is resumed in the same way; they are called ``NAME/honest/METHOD/trial-I``
      and ``NAME/reference/METHOD/trial-I``, so a longer search that chooses another trial starts new studies.
    * ``train``: as in ``run_search``, but with the fresh splits bound to it.
    * ``kept_share``: from a trial to its expected share of kept edges.
    * ``splits``: the split of each replicate, as the trainer counts them; s by default. ``range(1, S + 1)`` where
      the trainer counts the split of the search as 0, ``[0] * S`` if a dataset has only one.
    * ``curves``: whether the curves of the retrained models are kept; without them a study is small.
    """
    chosen = choose(table)
    check_jobs(2 * len(chosen) * check_integer("replicates", replicates, least=1))
    numbers = _splits(replicates, splits)
    check_work(train, space, name, settings, batch, progress)
    seed, curves = check_seed(seed), check_flag("curves", curves)
    shares = kept_shares(kept_share, {method: row.trial for method, row in chosen.items()})

    def settled(kind: str, method: str, trial: Trial, without: str = "") -> Settled:
        tuned = settled_space(space_for(space, method), chosen[method].trial)
        tuned = Space({name: one for name, one in tuned.parameters.items() if name != without})
        return Settled(f"{kind}/{automatic.place(method)}/trial-{chosen[method].index}", trial, tuned)

    runs = {method: settled("honest", method, row.trial) for method, row in chosen.items()}
    references = {  # a reference has the share of its method, whatever was tuned
        method: settled("reference", method, reference(chosen[method].trial, share), "keep_ratio")
        for method, share in shares.items()
    }
    with opened(storage) as base:
        ours, theirs = retrained(
            train, [runs, references], numbers, seed, base,
            name=name, settings=settings, batch=batch, progress=progress, curves=curves,
        )  # fmt: skip
    return Replicates(chosen, shares, ours, theirs)


@dataclass(frozen=True)
class Settled:
    """Settings that were chosen and are retrained: their ``place`` among the studies, a trial, the space it is from."""

    place: str
    trial: Trial
    space: Space


def retrained(
    train: Train,
    groups: Sequence[Mapping[str, Settled]],
    splits: Sequence[int],
    seed: int,
    storage: optuna.storages.BaseStorage,
    *,
    name: str,
    settings: Mapping[str, object] | None,
    batch: int,
    progress: Progress | None,
    curves: bool = True,
) -> list[Table]:
    """Train everything in ``groups`` on ``splits``, each with a fresh seed that all share; one table for each group."""

    def jobs(settled: Settled) -> list[Job]:
        fingerprint = {"seed": seed, **(settings or {}), "keep_ratio": settled.trial.keep_ratio}
        ledger = Ledger(storage, f"{name}/{settled.place}", settled.trial.method, settled.space, fingerprint)
        return [Job(ledger, s, replicate(settled.trial, seed, s, split)) for s, split in enumerate(splits)]

    made = [{method: jobs(settled) for method, settled in group.items()} for group in groups]
    # Replicate by replicate, so that an interrupted run holds whole pairs.
    everything = [
        job for paired in zip(*(one for group in made for one in group.values()), strict=True) for job in paired
    ]
    run_jobs(train, everything, batch=batch, progress=progress, curves=curves)
    return [_finished(group) for group in made]


def kept_shares(kept_share: KeptShare, chosen: Mapping[str, Trial]) -> dict[str, float]:
    """The expected kept share of every method whose chosen trial is adaptive; ``auto`` may have chosen one or not."""
    check_function("kept_share", kept_share, SHARE)
    return {
        method: _share(ask("kept_share", SHARE, kept_share, trial), trial)
        for method, trial in chosen.items()
        if adaptive(trial.method)
    }


def adaptive(method: str) -> bool:
    """Whether a method treats edges differently, so that it has a reference.

    >>> [adaptive(method) for method in ("original", "dropedge", "cdf", "effective-cdf")]
    [False, False, True, True]
    """
    return Method.of(method).adaptive


def replicate(base: Trial, seed: int, s: int, split: int) -> Trial:
    """The settings of ``base`` in replicate ``s``: seed and split depend only on s, which makes methods paired.

    >>> one, two = (replicate(Trial(method), seed=0, s=3, split=3) for method in ("cdf", "dropedge"))
    >>> one.seed == two.seed
    True
    """
    return replace(base, seed=replicate_seed(seed, s), split=split)


def reference(base: Trial, share: float) -> Trial:
    """DropEdge with the settings of ``base``, at its expected number of kept edges.

    >>> reference(Trial("cdf"), 0.8).method, reference(Trial("graphsage+cdf"), 0.8).method
    ('dropedge', 'graphsage+dropedge')
    """
    return replace(base, method=Method.of(base.method).reference, keep_ratio=share)


def accuracy_by_keep_prob(table: Table) -> dict[str, Array]:
    """``[n, 3]`` per method that drops: keep_prob, validation accuracy, test accuracy of every trial that ran.

    Where ``keep_ratio`` is tuned, it stands in the place of ``keep_prob``.
    """
    return {
        method: np.array(
            [(_budget(row.trial), row.val_accuracy, row.test_accuracy) for row in rows if not row.failed]
        ).reshape(-1, 3)
        for method, rows in check_finished(table).items()
        if Method.of(method).strategy is not None
    }


def _budget(trial: Trial) -> float:
    return trial.keep_prob if trial.keep_ratio is None else trial.keep_ratio


def _accuracies(rows: Sequence[Finished]) -> Array:
    return np.array([row.test_accuracy for row in rows], dtype=np.float64)


def check_finished(table: object) -> Table:
    """Return the finished trials of each method, as ``run_search`` returns them."""
    for method, rows in check_table("table", table, "methods to finished trials").items():
        Method.of(method)
        if not all(isinstance(row, Finished) for row in check_list("table", rows, "finished trials")):
            raise TadropedgeError(f"table must hold finished trials, got {show(rows)} for {method!r}")
    return table  # type: ignore[return-value]


def _first(
    name: str, searched: Sequence[Sequence[Finished]], order: Callable[[Sequence[Finished]], tuple[float, ...]]
) -> Finished:
    """The trial that comes first in an order of its rows on all splits, as its first row."""
    every: Iterable[tuple[Finished, ...]] = zip(*searched, strict=True)
    trials = [same for same in every if not any(row.failed for row in same)]
    if not trials:
        where = f" on all of {len(searched)} splits" if len(searched) > 1 else ""
        raise TadropedgeError(
            f"no trial of {name!r} has a finite loss{where} ({len(searched[0])} were run); try other learning rates"
        )
    return min(trials, key=order)[0]


def _same(table: Table, method: str, rows: Sequence[Finished]) -> Sequence[Finished]:
    """The rows of a method in another table, which must hold the same trials."""
    others = table.get(method, [])
    if [row.index for row in others] != [row.index for row in rows]:
        raise TadropedgeError(f"every table must hold the same trials of {method!r}")
    return others


def _mean(numbers: Iterable[float]) -> float:
    values = list(numbers)
    return sum(values) / len(values)


def _finished(groups: Mapping[str, Sequence[Job]]) -> Table:
    return {method: [job.ledger.finished[job.index] for job in jobs] for method, jobs in groups.items()}


def _share(share: object, trial: Trial) -> float:
    number = as_number(share)
    if number is None or not 0 <= number <= 1:
        told = show(share, typed=False)
        raise TadropedgeError(f"the expected kept share must lie in [0, 1], got {told} for {trial}")
    # Scores may differ in the last digits between machines; a restart must find the same reference.
    return round(number, 6)


def _splits(replicates: int, splits: Sequence[int] | None) -> list[int]:
    given = range(replicates) if splits is None else check_list("splits", splits, "whole numbers")
    numbers = [check_integer("split", one, least=0) for one in given]
    if len(numbers) != replicates:
        raise TadropedgeError(f"splits must name one split for each of {replicates} replicates, got {len(numbers)}")
    return numbers
