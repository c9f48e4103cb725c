"""The pictures of the three tables: measured beside printed, and the honest means and differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from tadropedge._old.paper.cells import TWIN_OF
from tadropedge._old.paper.gains import Key, effects
from tadropedge._old.paper.judge import CLEAR
from tadropedge._old.paper.rows import grouped, title
from tadropedge._old.publish.pictures import COLOURS, GREY, INK, QUIET, RULE, WIDTH, Ends, dot, lines, marks, picture
from tadropedge._old.publish.wording import counted

if TYPE_CHECKING:
    from tadropedge._old.comparison.statistics import Honest
    from tadropedge._old.paper.cells import Result
    from tadropedge._old.paper.contest import Contender
    from tadropedge._old.paper.items.table3 import Localized
    from tadropedge._old.paper.judge import Summary

MARKS = {None: "o", "combinatorial": "o", "normalized": "D"}
ROOM = 0.05  # above this the bound of source localisation is not drawn
SHIFT = {None: 0.0, "combinatorial": -0.14, "normalized": 0.14}  # of the two Laplacians on a line


def draw_table1(rows: Sequence[Result]) -> dict[str, bytes]:
    """All pictures that the rows have data for."""
    pictures = {}
    for dataset, mine in grouped(rows, lambda row: row.dataset).items():
        pictures[f"measured-{dataset}"] = measured(mine, dataset)
        compared = [row for row in mine if row.honest.difference is not None]
        if compared:
            printed = {one.key: one.printed for one in effects(mine, "dropedge") if not math.isnan(one.printed)}
            pictures[f"differences-{dataset}"] = differences(compared, printed, dataset)
    return pictures


@picture
def measured(rows: Sequence[Result], dataset: str) -> tuple[Figure, str]:
    """Best test accuracy of the trials beside the printed one, a line for each method of each network."""
    figure, axis, places = _lines(rows, 0.21)
    for row in rows:
        place = places[_label(row)]
        colour = COLOURS["worse"] if (row.above_printed or 0.0) < 0 else COLOURS["better"]
        mark, at = MARKS[row.laplacian], place + SHIFT[row.laplacian]
        axis.plot([100 * row.paper_protocol.best_test], [at], mark, color=colour, markersize=5, markeredgewidth=0)
        if row.printed is not None:
            axis.plot([100 * row.printed], [place], "|", color=INK, markersize=9, markeredgewidth=1.6)
    _bands(axis, rows, places)
    told = [
        "best test accuracy (%) of the trials; bar: printed; orange: below it",
        "circle: no or the combinatorial Laplacian, diamond: normalised",
        *_twins(rows),
    ]
    axis.set_xlabel("\n".join(told), fontsize=9)
    return figure, f"{title(dataset)}: measured beside printed"


@picture
def differences(rows: Sequence[Result], printed: Mapping[Key, float], dataset: str) -> tuple[Figure, str]:
    """Paired difference to DropEdge at the same budget with its 95 % interval, beside the printed gain."""
    figure, axis, places = _lines(rows, 0.27)
    for row in rows:
        honest, place = row.honest, places[_label(row)]
        at = place + 1.4 * SHIFT[row.laplacian]
        colour = COLOURS.get(honest.outcome or "", GREY)
        ends = [100 * (end or 0.0) for end in (honest.difference_low, honest.difference_high)]
        axis.plot(ends, [at, at], color=colour, linewidth=1.6, solid_capstyle="round", zorder=2)
        middle, filled = 100 * (honest.difference or 0.0), "white" if row.null else colour
        axis.plot([middle], [at], MARKS[row.laplacian], color=colour, markersize=4.5, markerfacecolor=filled)
    gains = {places[_label(row)]: printed.get((row.dataset, row.network, row.method, row.laplacian)) for row in rows}
    for place, gain in gains.items():
        if gain is not None:
            axis.plot([100 * gain], [place], "|", color=INK, markersize=11, markeredgewidth=1.8)
    axis.axvline(0, color=QUIET, linewidth=1.1, linestyle=RULE, zorder=1.5)
    _bands(axis, rows, places)
    told = [
        "points above DropEdge; bar: printed; interval: measured at the same budget, 95 %",
        "circle: combinatorial Laplacian, diamond: normalised; hollow: null by construction",
        "blue: better, orange: worse, after Holm's correction over three strategies",
        "grey: neither, though its interval, which is not corrected, may exclude 0",
        *_twins(rows),
    ]
    figure.supxlabel("\n".join(told), fontsize=9)
    return figure, f"{title(dataset)}: the gain over DropEdge, printed and measured"


def _label(row: Result) -> str:
    return f"{row.network}{'*' if row.network in TWIN_OF else ''} {row.method}"


def _twins(rows: Sequence[Result]) -> list[str]:
    """What the star of a label says."""
    names = [TWIN_OF[row.network] for row in rows if row.network in TWIN_OF]
    return [f"*: the trainings of {name}" for name in dict.fromkeys(names)]


def _lines(rows: Sequence[Result], height: float) -> tuple[Figure, Axes, dict[str, int]]:
    """A panel with a line for each method of each network, and the place of each."""
    places = {label: place for place, label in enumerate(dict.fromkeys(map(_label, rows)))}
    figure = Figure(figsize=(WIDTH, 1.6 + height * len(places)))
    axis = figure.subplots()
    lines(axis, list(places))
    return figure, axis, places


def _bands(axis: Axes, rows: Sequence[Result], places: dict[str, int]) -> None:
    """A thin rule between two networks."""
    for before, row in pairwise(rows):
        if row.network != before.network:
            axis.axhline(places[_label(row)] - 0.5, color="#c8c8c8", linewidth=0.6, zorder=1)


def _ends(honest: Honest | Summary) -> Ends:
    return honest.low, honest.mean, honest.high


@picture
def contenders(rows: Sequence[Contender]) -> tuple[Figure, str]:
    """One panel per dataset, one line per row with its depth."""
    layers = {row.row: counted(row.choice.layers, "layer") for row in rows if row.choice.layers is not None}
    labels = {row.row: ", ".join((row.row, *filter(None, [layers.get(row.row)]))) for row in rows}
    names = list(labels)
    groups = grouped(rows, lambda row: row.dataset)
    figure = Figure(figsize=(WIDTH, 1.6 + 0.36 * len(names)))
    axes = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    for axis, (dataset, mine) in zip(axes, groups.items(), strict=True):
        lines(axis, list(labels.values()))
        for row in mine:
            best = row.accuracy if row.source == "measured" else None
            marks(axis, names.index(row.row), row.printed, best, _ends(row.honest))
        axis.set_title(title(dataset))
        axis.tick_params(axis="x", labelsize=9)
    looks = [row.looks for row in rows if row.looks is not None]
    trials = f"the best of {counted(set(looks), 'trial')} each" if looks else "the best trial"
    told = f"test accuracy (%); bar: printed; diamond: {trials}\ndot: mean over fresh seeds and splits, 95 %"
    figure.supxlabel(f"{told}; IncepGCN of 3 layers is JKNet of 3 layers", fontsize=9)
    return figure, "TADropEdge, its backbones without it, and its competitors"


@picture
def noises(rows: Sequence[Localized]) -> tuple[Figure, str]:
    """One panel per setup, one line per method: points above the model without dropping, printed ones beside."""
    methods = [method for method in dict.fromkeys(row.method for row in rows) if method != "original"]
    groups = grouped(rows, lambda row: row.noise)
    figure = Figure(figsize=(WIDTH * 1.2, 2.4 + 0.42 * len(methods)))
    axes = figure.subplots(1, len(groups), sharex=True, sharey=True, squeeze=False)[0]
    for axis, (noise, group) in zip(axes, groups.items(), strict=True):
        lines(axis, methods)
        mine = {row.method: row for row in group}
        original = mine["original"]
        for place, method in enumerate(methods):
            row = mine[method]
            for honest, colour, aside in ((False, COLOURS["worse"], -0.2), (True, COLOURS["better"], 0.2)):
                found = row.above(original, honest)
                low, high = found.value - CLEAR * found.error, found.value + CLEAR * found.error
                dot(axis, place + aside, (low, found.value, high), colour, markersize=4.5)
            if row.printed is not None and original.printed is not None:
                above = 100 * (row.printed - original.printed)
                axis.plot([above], [place], "|", color=INK, markersize=13, markeredgewidth=1.8)
        axis.axvline(0, color=QUIET, linewidth=0.9, zorder=1)
        if original.room < ROOM:  # else it is far to the right
            axis.axvline(100 * original.room, color=QUIET, linewidth=1.1, linestyle=RULE)
        axis.xaxis.set_major_locator(MultipleLocator(2))
        axis.set_title(f"{noise}, {original.graphs} graphs\nroom {100 * original.room:.1f} points", fontsize=10)
    figure.supxlabel(
        "points above the model without dropping; bar: printed\n"
        "orange: best trial; blue: honest protocol; ± 2 standard errors over graphs\n"
        "room: from the best trials without dropping to the Bayes bound, dashed where it is near",
        fontsize=9,
    )
    return figure, "source localisation: what edge dropping gains"
