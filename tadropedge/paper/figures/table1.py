"""The pictures of Table 1, one pair for each dataset: measured beside printed, and the honest differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from tadropedge.comparison.statistics import ALPHA
from tadropedge.publish.pictures import COLOURS, INK, QUIET, WIDTH, lines, look, png

Row = Mapping[str, Any]

MARKS = {None: "o", "combinatorial": "o", "normalized": "D"}
SHIFT = {None: 0.0, "combinatorial": -0.14, "normalized": 0.14}  # of the two Laplacians on a line


def draw(rows: Sequence[Row]) -> dict[str, bytes]:
    """All pictures that the rows have data for."""
    pictures = {}
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        mine = [row for row in rows if row["dataset"] == dataset]
        pictures[f"measured-{dataset}"] = measured(mine, dataset)
        compared = [row for row in mine if row["honest"]["difference"] is not None]
        if compared:
            pictures[f"differences-{dataset}"] = differences(compared, dataset)
    return pictures


def measured(rows: Sequence[Row], dataset: str) -> bytes:
    """Best test accuracy of the trials beside the printed one, a line for each method of each network."""
    places = _places(rows)
    with look():
        figure = Figure(figsize=(WIDTH, 1.6 + 0.21 * len(places)))
        axis = figure.subplots()
        lines(axis, list(places))
        for row in rows:
            place, found = places[_label(row)], 100 * row["paper_protocol"]["best_test"]
            colour = COLOURS["worse"] if row["short"] else COLOURS["better"]
            at = place + SHIFT[row["laplacian"]]
            axis.plot([found], [at], MARKS[row["laplacian"]], color=colour, markersize=5, markeredgewidth=0)
            if row["printed"] is not None:
                axis.plot([100 * row["printed"]], [place], "|", color=INK, markersize=9, markeredgewidth=1.6)
        _bands(axis, rows, places)
        axis.set_xlabel(
            "best test accuracy (%) of the trials; bar: printed; orange: below it\n"
            "circle: no or the combinatorial Laplacian, diamond: normalised",
            fontsize=9,
        )
        return png(figure, f"{dataset}: measured beside printed")


def differences(rows: Sequence[Row], dataset: str) -> bytes:
    """Paired difference to DropEdge at the same budget with its 95 % interval, both Laplacians."""
    places = _places(rows)
    with look():
        figure = Figure(figsize=(WIDTH, 1.6 + 0.27 * len(places)))
        axis = figure.subplots()
        lines(axis, list(places))
        for row in rows:
            honest = row["honest"]
            at = places[_label(row)] + 1.4 * SHIFT[row["laplacian"]]
            side = "better" if honest["difference"] > 0 else "worse"
            colour = COLOURS[side] if honest["p_value"] <= ALPHA else "#8c8c8c"
            ends = [100 * honest["difference_low"], 100 * honest["difference_high"]]
            axis.plot(ends, [at, at], color=colour, linewidth=1.6, solid_capstyle="round")
            axis.plot([100 * honest["difference"]], [at], MARKS[row["laplacian"]], color=colour, markersize=4.5)
        axis.axvline(0, color=QUIET, linewidth=1.1, linestyle=(0, (4, 3)), zorder=1.5)
        _bands(axis, rows, places)
        axis.set_xlabel(
            "points above DropEdge at the same budget (95 %); grey: undecided\n"
            "circle: combinatorial Laplacian, diamond: normalised",
            fontsize=9,
        )
        return png(figure, f"{dataset}: honest protocol")


def _label(row: Row) -> str:
    return f"{row['backbone']}-{row['layers']} {row['method']}"


def _places(rows: Sequence[Row]) -> dict[str, int]:
    return {label: place for place, label in enumerate(dict.fromkeys(_label(row) for row in rows))}


def _bands(axis: Any, rows: Sequence[Row], places: Mapping[str, int]) -> None:
    """A thin rule between two networks."""
    before = None
    for row in rows:
        network = (row["backbone"], row["layers"])
        if before is not None and network != before:
            axis.axhline(places[_label(row)] - 0.5, color="#c8c8c8", linewidth=0.6, zorder=1)
        before = network
