"""The pictures of a comparison: accuracy, paired differences to each reference, convergence.

Each function takes the rows of one dataset, backbone and depth, and returns ``None`` where they hold nothing to draw.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tadropedge._old.atomic import write_atomic
from tadropedge._old.comparison.judging import KINDS, Against
from tadropedge._old.comparison.results import MethodRow, judged, labelled, measured, title
from tadropedge._old.publish import pictures
from tadropedge._old.publish.pictures import WIDTH, colours, name

DOT: dict[str, Any] = {"markersize": 7, "markeredgecolor": "white"}
BASELINES = {"original": "not dropping", "dropedge": "DropEdge tuned"}
RULES: dict[str, dict[str, Any]] = {  # above the grid and below the dots
    "original": {"color": pictures.QUIET, "linewidth": 1.1, "linestyle": ":", "zorder": 1.5},
    "dropedge": {"color": pictures.QUIET, "linewidth": 1.1, "linestyle": pictures.RULE, "zorder": 1.5},
}


def drawn(rows: Sequence[MethodRow], stems: Collection[str] | None = None) -> dict[str, bytes]:
    """Every picture, or some, that the rows have data for, by name in ``FIGURES``; the same rows, the same bytes."""
    with pictures.look():
        figures = {stem: draw(rows) for stem, draw in FIGURES.items() if stems is None or stem in stems}
        return {stem: pictures.png(figure, title(rows)) for stem, figure in figures.items() if figure}


def save_figures(rows: Sequence[MethodRow], folder: str | Path) -> list[Path]:
    """Write every picture to ``folder``, as ``accuracy.png`` and so on."""
    return [write_atomic(Path(folder) / f"{stem}.png", picture) for stem, picture in drawn(rows).items()]


def accuracy(rows: Sequence[MethodRow]) -> Figure | None:
    """Mean test accuracy of each method with its 95 % interval; lines at the means of not dropping and of DropEdge."""
    found = {label: honest for label, honest in judged(rows).items() if honest.mean is not None}
    if not found:
        return None
    figure, axis = _lines([name(label) for label in found])
    colour = colours(labelled(rows))
    for place, (label, honest) in enumerate(found.items()):
        pictures.dot(axis, place, (honest.low, honest.mean, honest.high), colour[label], **DOT)
    marked = {words: label for label, words in BASELINES.items() if label in found}
    for words, label in marked.items():
        axis.axvline(100 * (found[label].mean or 0.0), **RULES[label], label=words)
    if marked:
        pictures.legend(figure, axis, handlelength=2.4)
    axis.set_xlabel(f"test {measured(rows)} (%) with 95 % interval")
    return figure


def differences(rows: Sequence[MethodRow]) -> Figure | None:
    """Paired differences with 95 % intervals, a panel for each kind of reference; thin strokes are replicates."""
    panels: dict[str, dict[str, Against]] = {kind: {} for kind in KINDS}
    for label, row in labelled(rows).items():
        for kind, test in row.tests.items():
            if test.difference is not None:
                panels[kind][label] = test
    panels = {kind: tests for kind, tests in panels.items() if tests}
    if not panels:
        return None
    counts = [len(tests) + 1.2 for tests in panels.values()]  # lines, and room for a title
    figure = Figure(figsize=(WIDTH, 1.4 + 0.3 * sum(counts)))
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=counts)[:, 0]
    for axis, (kind, tests) in zip(axes, panels.items(), strict=True):
        pictures.lines(axis, [name(label) for label in tests], size=11)
        for place, test in enumerate(tests.values()):
            _difference(axis, place, test)
        axis.axvline(0, color=pictures.QUIET, linewidth=1.1, linestyle=pictures.RULE, zorder=1.5)
        axis.set_title(f"against {KINDS[kind]}")
    axes[-1].set_xlabel("difference (points) with 95 % interval")
    _explain(figure, any(test.evidence for tests in panels.values() for test in tests.values()))
    return figure


def _difference(axis: Axes, place: int, test: Against) -> None:
    colour = pictures.COLOURS.get(test.outcome or "", pictures.GREY)
    strokes = [100 * number for number in (test.evidence.differences if test.evidence else ())]
    axis.plot(strokes, [place] * len(strokes), "|", color=colour, markersize=11, markeredgewidth=0.8, alpha=0.6)
    pictures.dot(axis, place, (test.difference_low, test.difference, test.difference_high), colour, **DOT)


def _explain(figure: Figure, single: bool) -> None:
    """What colours mean: they follow the corrected test, so that a grey interval may exclude zero."""
    words = {"better": "better", "worse": "worse", "undecided": "undecided after correction, even if clear of 0"}
    marks = [
        Line2D([], [], color=pictures.COLOURS.get(outcome, pictures.GREY), marker="o", linewidth=2, label=said)
        for outcome, said in words.items()
    ]
    if single:
        marks.append(
            Line2D([], [], color=pictures.GREY, marker="|", linestyle="", markersize=11, label="one replicate")
        )
    figure.legend(handles=marks, loc="outside lower center", ncols=2, fontsize=9, handlelength=1.6)


def _lines(names: Sequence[str]) -> tuple[Figure, Axes]:
    """A picture with one line per name."""
    figure = Figure(figsize=(WIDTH, 1.35 + 0.36 * len(names)))
    axis = figure.subplots()
    pictures.lines(axis, names, size=11)
    return figure, axis


def convergence(rows: Sequence[MethodRow]) -> Figure | None:
    """Training and validation loss against the epoch, one line per method."""
    shown = {label: row.convergence for label, row in labelled(rows).items() if row.convergence}
    if not shown:
        return None
    figure = Figure(figsize=(WIDTH, 3.8))
    axes = figure.subplots(1, 2, sharex=True)
    for axis, loss, kind in zip(axes, ("train_loss", "val_loss"), ("training", "validation"), strict=True):
        for label, curve in shown.items():
            dashes = pictures.DASHES if label == "dropedge" else ":" if label == "original" else "-"
            colour = colours(labelled(rows))[label]
            axis.plot(curve.epochs, getattr(curve, loss), color=colour, linestyle=dashes, linewidth=1.4)
        axis.set(title=f"{kind} loss", xlabel="epoch")
        axis.margins(x=0.01)
        axis.set_ylim(bottom=0)
    names = [name(label) for label in shown]
    figure.legend(axes[0].get_lines(), names, loc="outside lower center", ncols=min(3, len(names)), handlelength=1.6)
    return figure


FIGURES = {"accuracy": accuracy, "differences": differences, "convergence": convergence}
