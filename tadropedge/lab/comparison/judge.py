"""``judge``: the protocol of ``compare`` for any task and any framework, around a training function of one's own."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch

from tadropedge._support.checks import (
    ask,
    check_integer,
    check_mapping,
    check_number,
    check_path,
    check_seed,
)
from tadropedge._support.fingerprint import fingerprint
from tadropedge._support.folder import check_ours
from tadropedge._support.progress import Progress
from tadropedge.dropping import Dropping
from tadropedge.errors import TadropedgeError, show
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.comparison.advice import answered
from tadropedge.lab.comparison.claims import Played, candidates_of, two_rounds
from tadropedge.lab.comparison.page import FILES
from tadropedge.lab.comparison.results import Comparison
from tadropedge.lab.reports.label import run_label
from tadropedge.lab.search.space import OF_DROPPING, Space, space_of, with_budget, word
from tadropedge.lab.search.store import Store
from tadropedge.lab.statistics import MARGIN, Replicate
from tadropedge.pyg import DropEdge

Run = Callable[[DropEdge, Mapping[str, Any], int], tuple[float, float]]


def judge(
    run: Run,
    methods: Iterable[str | Dropping | Candidate],
    *,
    settings: Mapping[str, Any] | None = None,
    trials: int = 16,
    replicates: int = 20,
    out: str | os.PathLike[str] | None = None,
    seed: int = 0,
    margin: float = MARGIN,
    controls: str = "claims",
) -> Comparison:
    """Search every method by your own training, judge it on replicates, and say whether it pays to drop edges.

    A replicate is one seed with a search of its own: the trial of the best validation score is chosen, its test score
    counts. Differences are paired over replicates, and one simultaneous interval decides.

    Args:
        run: ``run(drop, settings, seed) -> (validation, test)`` trains once; higher is better. ``drop`` is a
            :class:`~tadropedge.pyg.DropEdge` (for ``original`` one that keeps all edges), to be called on the graph of
            every training step. Draw the split and the starting weights from ``seed``: all methods of a replicate
            have the same.
        methods: names such as ``"dropedge"`` and ``"degree-proportional:weighted"``; ``original`` always takes part.
            For ``:consistent``, ``settings`` hold ``draws``, ``consistency_weight``, ``temperature`` and ``balance``,
            and ``run`` uses ``drop.views``.
        settings: what is searched besides the budget: names with a list of values, a range
            (``{"log-uniform": [1e-3, 1e-1]}``) or one value; each training gets one of each.
        trials: trainings of each method in each replicate.
        replicates: replicates of each method, at least 2.
        out: a folder for the finished trainings, the results and their page; the same call goes on where an
            interrupted one stopped. Change the folder, or the file of ``run``, when ``run`` does something else.
        seed: of settings and replicates.
        margin: the difference that counts as none, a fraction of 1.
        controls: for which methods the controls of their claim are trained: ``"claims"``, those that beat
            ``original``; ``"all"`` or ``"none"``.

    >>> def run(drop, settings, seed):
    ...     kept = 1.0 if drop.dropping.rule is None else drop.dropping.keep_ratio
    ...     return 0.8 - 0.1 * kept + 0.001 * seed % 7e-3, 0.8 - 0.1 * kept
    >>> found = judge(run, ["dropedge"], trials=4, replicates=5)
    >>> [row.candidate for row in found.rows], found.row("dropedge").against["original"].word
    (['original', 'dropedge'], 'better')
    """
    if not callable(run):
        raise TadropedgeError(f"run must be a function run(drop, settings, seed), got {show(run)}", argument="run")
    candidates = candidates_of(methods)
    trials = check_integer("trials", trials, least=1)
    replicates = check_integer("replicates", replicates, least=2)
    seed, margin = check_seed(seed), check_number("margin", margin, 0, 1)
    folder = None if out is None else check_path("out", out)
    begun = time.monotonic()
    searched = {} if settings is None else dict(check_mapping("settings", settings))
    player = _Player(run, searched, trials, replicates, seed)
    for candidate in candidates:
        player.check(candidate)
    if folder is not None:
        check_ours(folder, FILES)
    with nullcontext() if folder is None else Store(folder) as player.store:
        rows, _ = two_rounds(candidates, player.play, controls=controls, margin=margin)
        rows = [replace(row, seconds_per_epoch=player.seconds(row.candidate)) for row in rows]
        label = run_label("cuda" if torch.cuda.is_initialized() else "cpu", seconds=time.monotonic() - begun)
        about = {"task": "run", "trials": trials, "replicates": replicates, "seed": seed, "margin": margin}
        found = answered(rows, {**about, "searched": player.settings, "controls": controls, **label})
        if folder is not None:
            found.save(folder)
    return found


class _Player:
    """Runs what is missing of a search, one training after the other, and remembers how long each took."""

    def __init__(self, run: Run, settings: Mapping[str, Any], trials: int, replicates: int, seed: int) -> None:
        self.run, self.settings, self.trials, self.replicates, self.seed = run, settings, trials, replicates, seed
        self.store: Store | None = None
        self._rows: dict[str, Mapping[str, Any]] = {}  # by their keys: the same call is not made twice
        self._seconds: dict[str, list[float]] = {}

    def space(self, candidate: Candidate) -> Space:
        return space_of(candidate, self.settings, self.settings)

    def check(self, candidate: Candidate) -> None:
        """Refuse what a function of one's own cannot be told."""
        counts = "finish" in candidate.ways or candidate.epochs < 1
        if candidate.network is not None or candidate.is_auto or counts:
            raise TadropedgeError(
                f"'{candidate}': networks, auto, finish and epochs are of compare, a training function has "
                "these for itself: name a method such as 'degree-proportional:weighted'",
                argument="methods",
            )
        self.space(candidate)

    def play(self, candidates: Sequence[Candidate], most: int | None) -> Played:
        """Every replicate of some candidates, replicate by replicate."""
        count = self.replicates if most is None else most
        found: dict[str, list[Replicate]] = {str(candidate): [] for candidate in candidates}
        with Progress("training", count * self.trials * len(candidates)) as bar:
            for number in range(count):
                for candidate in candidates:
                    found[str(candidate)].append(self._searched(candidate, number, bar))
        return found

    def seconds(self, name: str) -> dict[str, float | None]:
        """The median time of the chosen trainings."""
        return {"train": statistics.median(self._seconds[name]), "evaluate": None}

    def _searched(self, candidate: Candidate, number: int, bar: Progress) -> Replicate:
        """The trial that validation chooses in one replicate; of equal ones the first."""
        rows = []
        for trial in range(self.trials):
            rows.append(self._row(candidate, self.space(candidate).draw(self.seed, number, trial), number))
            bar.advance(1)
        best = max(rows, key=lambda row: -math.inf if math.isnan(row["validation"]) else row["validation"])
        self._seconds.setdefault(str(candidate), []).append(best["seconds"])
        dropping = with_budget(candidate, best["drawn"]).dropping
        share = 1.0 if dropping.rule is None else dropping.keep_ratio
        return Replicate(
            number=number,
            chosen=best["drawn"],
            validation=best["validation"],
            test=best["test"],
            kept_share=None if share is None or callable(share) else float(share),
        )

    def _row(self, candidate: Candidate, drawn: Mapping[str, Any], number: int) -> Mapping[str, Any]:
        """One training, or what is known of it."""
        own = {name: value for name, value in drawn.items() if name not in OF_DROPPING}
        dropping = with_budget(candidate, drawn).dropping
        seed = word(self.seed, number, 0, "run") >> 21  # 32 bits, which every library takes
        key = fingerprint(
            run=self.run, ways=candidate.ways, dropping=dropping, drawn=dict(drawn), settings=own, seed=seed
        )
        if key not in self._rows and self.store is not None:
            self._rows |= self.store.get([key])
        if key not in self._rows:
            drop, begun = DropEdge(dropping, seed=seed), time.perf_counter()
            returned = ask("run", "run(drop, settings, seed) -> (validation, test)", self.run, drop, own, seed)
            row: dict[str, Any] = {"candidate": str(candidate), "replicate": number, **_scores(returned)}
            self._rows[key] = row | {"seconds": time.perf_counter() - begun, "drawn": dict(drawn)}
            if self.store is not None:
                self.store.put("judged", {key: self._rows[key]})
        return self._rows[key]


def _scores(returned: Any) -> dict[str, float]:
    """Validation and test score as numbers; what is not finite failed, both of them."""
    try:
        validation, test = (float(value) for value in returned)
    except (TypeError, ValueError) as error:
        raise TadropedgeError(
            f"run must return (validation, test), two numbers, got {show(returned)}", argument="run"
        ) from error
    failed = not (math.isfinite(validation) and math.isfinite(test))
    return {"validation": math.nan, "test": math.nan} if failed else {"validation": validation, "test": test}
