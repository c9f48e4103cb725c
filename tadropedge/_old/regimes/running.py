"""Measure a map: cell by cell, every method tuned and judged as in a comparison, in one folder that can be resumed.

The trainings of a dataset are Optuna studies in ``studies/DATASET.journal``, edge scores are kept in ``cache/``, the
seconds of an epoch in ``seconds.json`` and those of the work in ``sittings.json``. Journals, because a database would
take longer to write a trial than a GPU to train it. What two cells have in common is trained once: a method that drops
nothing is the same at every budget. If a run is interrupted, the same call resumes it; where everything is trained, it
only judges again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tadropedge._old.comparison.card import data_card
from tadropedge._old.comparison.comparison import Plan, space_of, trained, tuned_settings
from tadropedge._old.comparison.selection import selections
from tadropedge._old.data import load_dataset
from tadropedge._old.data.conditions import Conditions, conditioned
from tadropedge._old.data.dataset import Dataset
from tadropedge._old.errors import RepeatedEigenvalueWarning, TadropedgeError
from tadropedge._old.regimes.judging import Played, map_rows
from tadropedge._old.regimes.recipe import MapRecipe, Planned, Regime
from tadropedge._old.regimes.results import MapCell, RegimeMap
from tadropedge._old.regimes.sittings import SittingClock, read_sittings, trained_by
from tadropedge._old.regimes.timings import read_timings, timed, timed_on
from tadropedge._old.registry import NETWORKS
from tadropedge._old.scores.similarity import EqualScoresWarning
from tadropedge._old.search.entrants import BACKBONE
from tadropedge._old.search.fair import Finals, Report, Tournament, count_trainings
from tadropedge._old.search.space import Space
from tadropedge._old.training.config import Trial
from tadropedge._old.training.laboratory import Laboratory, laboratory_for
from tadropedge._old.watching import Event, Expected, Phase, relaying

TIMED = "budget"  # the kind of cells in which the seconds of an epoch are measured
BUDGET_STEP = 0.05  # DropEdge is matched at the nearest of these shares, so that methods share references
STUDIES = (
    "The trainings of a dataset are Optuna studies in studies/DATASET.journal, which optuna-dashboard opens. The name "
    "of a study begins with dataset, labels, width, epochs, evaluations, choosing splits, network, depth. Then comes "
    "search/METHOD for the search (with /split-K for further choosing splits; those of finals have large numbers), "
    "budget/METHOD-SHARE for one at a budget, or judged/…/trial-N for what was retrained on fresh splits, where N is "
    "the chosen trial."
)


@dataclass(frozen=True, kw_only=True)
class MapRun:
    """Where and how a map is measured."""

    out: Path
    device: str = "cpu"
    root: Path | None = None
    seed: int = 0
    report: Report = lambda *_: None


def measured(recipe: MapRecipe, run: MapRun) -> RegimeMap:
    """Train whatever the folder lacks of a recipe, and judge all cells together.

    Data, conditions and network of every cell are looked at before the first training.
    """
    laboratories = _Laboratories(recipe, run)
    for cell in recipe.cells:
        laboratories.check(cell)
    read_timings(run.out)  # a file that cannot be read is refused before any training
    watch = SittingClock(run.out, run.device)
    try:
        played = _all_played(laboratories, recipe, replace(run, report=_watched(run.report, watch)))
    finally:
        watch.look(last=True)
    told = {"studies": STUDIES, **trained_by(read_sittings(run.out)), **timed_on(run.out)}
    return RegimeMap([one.cell for one in played], map_rows(played), recipe=recipe.document, run=told)


def _all_played(laboratories: _Laboratories, recipe: MapRecipe, run: MapRun) -> list[Played]:
    left = [planned_trainings(cell) for cell in recipe.cells]
    played = []
    for place, cell in enumerate(recipe.cells):
        words = f"cell {place + 1} of {len(recipe.cells)}, {cell.key}"
        with relaying(_renamed(words, sum(left[place + 1 :]))):
            played.append(_played(laboratories, cell, run, words))
    return played


def _watched(report: Report, watch: SittingClock) -> Report:
    def told(phase: str, done: int, total: int) -> None:
        watch.look()
        report(phase, done, total)

    return told


def planned_trainings(cell: Planned) -> int:
    """How many trainings a cell takes at most."""
    regime = cell.regime
    sizes = (regime.trials, regime.seeds, regime.choose_splits)
    return count_trainings(cell.methods, *sizes, keep_ratio=regime.keep_ratio, finals=finals_of(regime))


def finals_of(regime: Regime) -> Finals | None:
    """The finals of a regime, where it has any."""
    return Finals(regime.finalists, regime.final_splits) if regime.finalists else None


class _Laboratories:
    """The laboratory of each cell; a dataset is loaded once for the cells that follow each other."""

    def __init__(self, recipe: MapRecipe, run: MapRun) -> None:
        self.space, self.run = recipe.space, run
        self._loaded: tuple[object, Dataset] | None = None

    def check(self, cell: Planned) -> None:
        """Refuse a cell that cannot be trained, before any other is."""
        regime, network = cell.regime, NETWORKS[cell.regime.backbone]
        try:
            if not network.drops:
                raise TadropedgeError(
                    f"{regime.backbone} {network.because}, so edge dropping cannot be judged with it: "
                    "name it among the methods instead"
                )
            self.of(cell).check([Trial(method) for method in BACKBONE])
        except TadropedgeError as error:
            raise TadropedgeError(f"the cell {cell.key}: {error}") from error

    def dataset(self, cell: Planned) -> Dataset:
        """The dataset with the labels of a cell, before its other conditions."""
        key = cell.source, cell.regime.labels
        if self._loaded is None or self._loaded[0] != key:
            loaded = load_dataset(cell.source, self.run.root, seed=self.run.seed, per_class=cell.regime.labels)
            self._loaded = key, loaded
        return self._loaded[1]

    def changed(self, dataset: Dataset, regime: Regime) -> Dataset:
        """A dataset with the random edges and hidden features of a regime."""
        changes = Conditions(add_edges=regime.add_edges, hide_features=regime.hide_features, seed=self.run.seed)
        return conditioned(dataset, changes)

    def of(self, cell: Planned) -> Laboratory:
        """The laboratory of a cell."""
        regime = cell.regime
        # Whatever else decides a training is part of the name of its study.
        how = f"{regime.labels}-labels/{regime.hidden}-wide/{regime.epochs}-epochs/every-{regime.evaluate_every}"
        how += "" if regime.precision == "highest" else f"/{regime.precision}-precision"
        dataset = replace(self.dataset(cell), name=f"{cell.dataset}/{how}/{regime.choose_splits}-splits")
        return laboratory_for(
            self.changed(dataset, regime).to(self.run.device),
            regime.backbone,
            regime.layers,
            regime.hidden,
            epochs=regime.epochs,
            evaluate_every=regime.evaluate_every,
            choose_splits=regime.choose_splits,
            precision=regime.precision,
            cache_dir=self.run.out / "cache",
        )

    def plan(self, cell: Planned, laboratory: Laboratory) -> Plan:
        """What is compared in a cell; methods that were not named for it are left out where they cannot be used."""
        regime = cell.regime
        return Plan(
            cell.methods,
            trials=regime.trials,
            seeds=regime.seeds,
            seed=self.run.seed,
            space=narrowed(space_of(laboratory), self.space),
            keep_ratio=regime.keep_ratio,
            budget_step=BUDGET_STEP,
            finals=finals_of(regime),
            curves=False,
            lenient=True,
        )


def narrowed(spaces: Callable[[str], Space], table: Mapping[str, Any]) -> Callable[[str], Space]:
    """The space of each method with the entries of ``table`` instead of its own, where it has such a parameter.

    >>> from tadropedge._old.search.space import method_space
    >>> space = narrowed(method_space, {"dropout": [0.5], "hidden": [16]})
    >>> space("cdf").table()["dropout"], "hidden" in space("cdf").parameters
    ([0.5], False)
    """

    def space(method: str) -> Space:
        own = spaces(method).table()
        return Space.of({name: table.get(name, entry) for name, entry in own.items()})

    return space


def _played(laboratories: _Laboratories, cell: Planned, run: MapRun, words: str) -> Played:
    with warnings.catch_warnings():
        # A graph with a hundred small components says so in every cell; the map has its own words for it.
        for category in (RepeatedEigenvalueWarning, EqualScoresWarning):
            warnings.simplefilter("ignore", category)
        laboratory = laboratories.of(cell)
        plan = laboratories.plan(cell, laboratory)

        def report(phase: str, done: int, total: int) -> None:
            run.report(f"{words}: {phase}", done, total)

        found = trained(laboratory, plan, run.out / "studies" / f"{cell.dataset}.journal", report)
        chosen = {method: found.tuned[method].chosen.trial for method in found.against}
        seconds = timed(laboratory, chosen, cell.key, run.out) if cell.kind == TIMED else {}
    searches = {name: tuned.searched_scores for name, tuned in found.tuned.items()}
    finals = {name: tuned.final_scores for name, tuned in found.tuned.items() if tuned.finals}
    choices = partial(selections, searches, laboratory.dataset.split.sizes[1], finals=finals or None)
    return Played(
        cell=_cell(cell, laboratory),
        scores={name: tuned.scores for name, tuned in found.tuned.items()},
        selected=choices(),
        rare=partial(choices, rare=True),
        against=found.against,
        told={method: _told(laboratory, found, method, seconds) for method in found.against},
        least_share=found.out_of_reach,
    )


def _told(laboratory: Laboratory, found: Tournament, method: str, seconds: Mapping[str, float]) -> dict[str, Any]:
    """What the row of a method says besides its scores."""
    tuned = found.tuned[method]
    settings = tuned_settings(laboratory, tuned)
    share = settings.pop("kept_share", None)
    return {
        "kept_share": share,
        "trial": tuned.chosen.index,
        "settings": settings,
        "epoch_seconds": seconds.get(method),
    }


def _cell(cell: Planned, laboratory: Laboratory) -> MapCell:
    regime = cell.regime
    names = ("backbone", "layers", "hidden", "epochs", "trials", "choose_splits", "finalists", "final_splits", "seeds")
    card = replace(data_card(laboratory.dataset, laboratory.measure), name=cell.dataset)
    how = {name: getattr(regime, name) for name in names}
    return MapCell(dataset=cell.dataset, kind=cell.kind, value=cell.value, data=card, **how)


def _renamed(words: str, coming: int) -> Callable[[Event], Event]:
    """Phases of a cell by the name of the cell, and the trainings of the cells to come beside its own."""

    def change(event: Event) -> Event:
        if isinstance(event, Phase):
            return replace(event, name=f"{words}: {event.name}")
        if isinstance(event, Expected):
            mine = {f"{words}: {name}": count for name, count in event.trainings.items()}
            return Expected({**mine, "cells to come": coming} if coming else mine)
        return event

    return change
