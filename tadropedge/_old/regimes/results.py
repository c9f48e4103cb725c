"""What a map found: one row per dataset, condition and method, and apart from them the run that made them.

``results.json`` is ``{"recipe": {...}, "cells": [cell, ...], "rows": [row, ...], "run": {...}}``. A *cell* is a dataset
under one condition, and its rows are the methods that were tried there. The same rows give the same bytes; reading
checks every field and names the wrong one by its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path

from tadropedge._old.comparison.card import DataCard
from tadropedge._old.typed import Count, Share, build, plain, read_json, write_json

BASE = "base"
# Every kind of condition, and what its values are.
KINDS = {
    BASE: "the setting from which one condition at a time is changed",
    "labels": "training labels per class",
    "budget": "expected share of the edges that every method keeps",
    "depth": "layers of a residual network",
    "noise": "random edges added, as a share of the graph's own",
    "features": "share of the nodes whose features are hidden",
    "network": "another network",
}
JUDGED, OUT_OF_REACH, FAILED = "judged", "out of reach", "failed"
# What a method is tested against; the last one is asked of spectral scores alone.
REFERENCES = ("none", "dropedge", "budget", "degree")
Value = int | float | str | None


@dataclass(frozen=True, kw_only=True)
class MapCell:
    """A dataset under one condition: ``kind`` is one of ``KINDS``, ``value`` what was changed to (None: nothing).

    ``data`` describes the graph as the methods see it, with edges that were added. ``trials`` were searched on each of
    ``choose_splits`` splits for every method and reference, the best ``finalists`` of them on ``final_splits`` more,
    and the choice was judged on ``seeds`` fresh splits.

    >>> from tadropedge._old.data import load_karate
    >>> from tadropedge._old.comparison.card import data_card
    >>> how = {"backbone": "gcn", "layers": 2, "hidden": 64, "epochs": 200}
    >>> how |= {"trials": 30, "choose_splits": 1, "seeds": 50}
    >>> MapCell(dataset="karate", kind="noise", value=1.0, data=data_card(load_karate()), **how).key
    'karate/noise-1.0'
    """

    dataset: str
    kind: str
    value: Value
    data: DataCard
    backbone: str
    layers: Count
    hidden: Count
    epochs: Count
    trials: Count
    choose_splits: Count
    seeds: Count
    finalists: Count = 0
    final_splits: Count = 0

    @property
    def key(self) -> str:
        """Dataset, kind and value: no two cells of a map share it."""
        return f"{self.dataset}/{self.kind}" + ("" if self.value is None else f"-{self.value}")


@dataclass(frozen=True, kw_only=True)
class MapTest:
    """A method minus a reference that is tuned alike, over the replicates that both finished.

    Difference and interval are shares, not points; the interval includes the luck of choosing settings, and
    ``settled_half`` is half the width that it would have without: for these settings, on new splits. ``p_value`` is
    that of the test alone, ``corrected`` the one that decides: the false discovery rate over all tests of the map.
    """

    reference: str
    difference: float
    low: float
    high: float
    p_value: Share
    corrected: Share
    settled_half: float | None = None

    @property
    def outcome(self) -> str:
        """``"better"``, ``"worse"`` or ``"undecided"``.

        >>> told = {"reference": "original", "difference": 0.02, "low": 0.01, "high": 0.03, "p_value": 1e-6}
        >>> MapTest(**told, corrected=0.003).outcome, MapTest(**told, corrected=0.3).outcome
        ('better', 'undecided')
        """
        if self.corrected > 0.05:
            return "undecided"
        return "better" if self.difference > 0 else "worse"


@dataclass(frozen=True, kw_only=True)
class MapRow:
    """One method in one cell. ``state``: judged; out of reach, where it cannot keep so few edges; or failed.

    ``mean``, ``low``, ``high``: test score over ``seeds`` fresh splits. ``kept_share`` is the expected share of kept
    edges, ``least_share`` the smallest that a method out of reach could keep. ``settings`` are those of the trial with
    number ``trial``, chosen on validation. ``epoch_seconds`` is the time of one epoch of one training, where it was
    measured. ``tests`` by reference: ``none``, ``dropedge``, ``budget`` (DropEdge at the same kept share), ``degree``.
    """

    dataset: str
    kind: str
    value: Value
    method: str
    state: str
    mean: Share | None = None
    low: float | None = None
    high: float | None = None
    seeds: Count = 0
    kept_share: Share | None = None
    least_share: Share | None = None
    trial: Count | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    epoch_seconds: float | None = None
    tests: Mapping[str, MapTest] = field(default_factory=dict)

    @property
    def cell(self) -> str:
        """The key of its cell."""
        return f"{self.dataset}/{self.kind}" + ("" if self.value is None else f"-{self.value}")


@dataclass(frozen=True)
class RegimeMap:
    """All cells and rows of a map, the recipe that asked for them, and the run that made them."""

    cells: Sequence[MapCell]
    rows: Sequence[MapRow]
    _: KW_ONLY
    recipe: Mapping[str, object] = field(default_factory=dict)
    run: Mapping[str, object] = field(default_factory=dict)

    def labelled(self, run: Mapping[str, object]) -> RegimeMap:
        """The same map, with the label of a run."""
        return replace(self, run={**run, **self.run})

    def rows_of(self, cell: MapCell) -> dict[str, MapRow]:
        """The rows of a cell, by method."""
        return {row.method: row for row in self.rows if row.cell == cell.key}


def write_map(found: RegimeMap, path: Path) -> Path:
    """Write ``results.json``, whole or not at all."""
    return write_json(plain({name: getattr(found, name) for name in ("recipe", "cells", "rows", "run")}), path)


def read_map(path: str | Path) -> RegimeMap:
    """Read ``results.json``, field by field."""
    return build(RegimeMap, read_json(path), str(path))
