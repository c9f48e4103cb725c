"""The two protocols: the paper's best test accuracy, and settings chosen on validation data and retrained.

*paper*: the best test accuracy of the trials. It flatters every method, and more so with more trials.

*honest*: for each method, the settings of best validation accuracy, retrained with fresh seeds and splits. In replicate
s every method has the same split, the same start and the same dropout noise. Beside every TADropEdge method runs
its reference: DropEdge with that method's settings, at the same expected number of kept edges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tadropedge.checks import (
    as_number,
    ask,
    check_flag,
    check_function,
    check_integer,
    check_list,
    check_seed,
    check_table,
)
from tadropedge.errors import TadropedgeError, show
from tadropedge.method import Method
from tadropedge.search.engine import BATCH, Job, Progress, Table, Train, check_jobs, check_work, run_jobs
from tadropedge.search.space import Spaces, replicate_seed, space_for
from tadropedge.search.study import Finished, Ledger, Storage, opened
from tadropedge.training.config import Trial

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
    return _first(table, lambda row: (-row.test_accuracy, row.index))


def choose(table: Table) -> dict[str, Finished]:
    """The trial of best validation accuracy of each method; ties go to the lowest validation loss, then the first."""
    return _first(table, lambda row: (-row.val_accuracy, row.val_loss, row.index))


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
    check_function("kept_share", kept_share, SHARE)
    seed, curves = check_seed(seed), check_flag("curves", curves)
    shares = {
        method: _share(ask("kept_share", SHARE, kept_share, row.trial), row.trial)
        for method, row in chosen.items()
        if adaptive(method)
    }
    with opened(storage) as base:

        def jobs(kind: str, method: str, settled: Trial) -> list[Job]:
            place = f"{name}/{kind}/{method}/trial-{chosen[method].index}"
            fingerprint = {"seed": seed, **(settings or {}), "keep_ratio": settled.keep_ratio}
            ledger = Ledger(base, place, settled.method, space_for(space, method), fingerprint)
            return [Job(ledger, s, replicate(settled, seed, s, split)) for s, split in enumerate(numbers)]

        runs = {method: jobs("honest", method, row.trial) for method, row in chosen.items()}
        references = {
            method: jobs("reference", method, reference(chosen[method].trial, share))
            for method, share in shares.items()
        }
        # Replicate by replicate, so that an interrupted run holds whole pairs.
        everything = [job for group in zip(*runs.values(), *references.values(), strict=True) for job in group]
        run_jobs(train, everything, batch=batch, progress=progress, curves=curves)
    return Replicates(chosen, shares, _finished(runs), _finished(references))


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
    """``[n, 3]`` per method that drops: keep_prob, validation accuracy, test accuracy of every trial that ran."""
    return {
        method: np.array(
            [(row.trial.keep_prob, row.val_accuracy, row.test_accuracy) for row in rows if not row.failed]
        ).reshape(-1, 3)
        for method, rows in check_finished(table).items()
        if Method.of(method).strategy is not None
    }


def _accuracies(rows: Sequence[Finished]) -> Array:
    return np.array([row.test_accuracy for row in rows], dtype=np.float64)


def check_finished(table: object) -> Table:
    """Return the finished trials of each method, as ``run_search`` returns them."""
    for method, rows in check_table("table", table, "methods to finished trials").items():
        Method.of(method)
        if not all(isinstance(row, Finished) for row in check_list("table", rows, "finished trials")):
            raise TadropedgeError(f"table must hold finished trials, got {show(rows)} for {method!r}")
    return table  # type: ignore[return-value]


def _first(table: Table, order: Callable[[Finished], tuple[float, ...]]) -> dict[str, Finished]:
    """The trial of each method that comes first in an order."""
    best = {}
    for method, rows in check_finished(table).items():
        good = [row for row in rows if not row.failed]
        if not good:
            raise TadropedgeError(
                f"no trial of {method!r} has a finite loss ({len(rows)} were run); try other learning rates"
            )
        best[method] = min(good, key=order)
    return best


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
