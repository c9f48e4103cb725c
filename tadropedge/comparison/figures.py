"""The pictures of a comparison: accuracy, paired differences, convergence, accuracy against p.

Each function takes the rows of one dataset, backbone and depth, and returns ``None`` where they hold nothing to draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tadropedge.atomic import write_atomic
from tadropedge.comparison.results import MethodRow, evidence_of, judged, labelled, title
from tadropedge.publish import pictures
from tadropedge.publish.pictures import WIDTH, Ends, colours, name

Array = npt.NDArray[np.float64]


def drawn(rows: Sequence[MethodRow]) -> dict[str, bytes]:
    """Every picture that the rows have data for, by its name in ``FIGURES``; the same rows give the same bytes."""
    with pictures.look():
        figures = {stem: draw(rows) for stem, draw in FIGURES.items()}
        return {stem: pictures.png(figure, title(rows)) for stem, figure in figures.items() if figure}


def save_figures(rows: Sequence[MethodRow], folder: str | Path) -> list[Path]:
    """Write every picture to ``folder``, as ``accuracy.png`` and so on."""
    return [write_atomic(Path(folder) / f"{stem}.png", picture) for stem, picture in drawn(rows).items()]


def accuracy(rows: Sequence[MethodRow]) -> Figure | None:
    """Mean test accuracy of each method with its 95 % interval, and a line at DropEdge's mean."""
    shown = {label: honest for label, honest in judged(rows).items() if honest.mean is not None}
    colour = colours(labelled(rows))
    dots = {label: ((honest.low, honest.mean, honest.high), colour[label]) for label, honest in shown.items()}
    dropedge = shown["dropedge"].mean if "dropedge" in shown else None
    words = "test accuracy (%) with 95 % interval" + ("" if dropedge is None else "; dashed: DropEdge")
    return _dot_plot(dots, dropedge, words)


def differences(rows: Sequence[MethodRow]) -> Figure | None:
    """Paired difference to DropEdge with the same expected number of kept edges, and its 95 % interval."""
    dots = {}
    for label, honest in judged(rows).items():
        if honest.difference is not None:
            ends = (honest.difference_low, honest.difference, honest.difference_high)
            dots[label] = (ends, pictures.COLOURS.get(honest.outcome or "", pictures.GREY))
    single = {label: one.differences for label, one in evidence_of(rows).items() if one.differences}
    words = "points above DropEdge with 95 % interval; grey: undecided" + (
        "\nthin: single replicates" if single else ""
    )
    return _dot_plot(dots, 0, words, single)


def _dot_plot(
    dots: Mapping[str, tuple[Ends, str]],
    dropedge: float | None,
    words: str,
    single: Mapping[str, Sequence[float]] | None = None,
) -> Figure | None:
    """One line per label with its ends and colour; a dashed line, above the grid and below the dots, is DropEdge.

    The ``single`` numbers of a label are thin strokes on its line: one far from the others is seen.
    """
    if not dots:
        return None
    figure = Figure(figsize=(WIDTH, 1.1 + 0.36 * len(dots)))
    axis = figure.subplots()
    pictures.lines(axis, [name(label) for label in dots], size=11)
    for place, (label, (ends, colour)) in enumerate(dots.items()):
        strokes = [100 * number for number in (single or {}).get(label, ())]
        axis.plot(strokes, [place] * len(strokes), "|", color=colour, markersize=11, markeredgewidth=0.8, alpha=0.6)
        pictures.dot(axis, place, ends, colour, markersize=7, markeredgecolor="white")
    if dropedge is not None:
        axis.axvline(100 * dropedge, color=pictures.QUIET, linewidth=1.1, linestyle=pictures.RULE, zorder=1.5)
    axis.set_xlabel(words)
    return figure


def convergence(rows: Sequence[MethodRow]) -> Figure | None:
    """Training and validation loss against the epoch, one line per method."""
    shown = {label: row.convergence for label, row in labelled(rows).items() if row.convergence}
    if not shown:
        return None
    figure = Figure(figsize=(WIDTH, 3.8))
    axes = figure.subplots(1, 2, sharex=True)
    for axis, loss, kind in zip(axes, ("train_loss", "val_loss"), ("training", "validation"), strict=True):
        for label, curve in shown.items():
            dashes = pictures.DASHES if label == "dropedge" else "-"
            colour = colours(labelled(rows))[label]
            axis.plot(curve.epochs, getattr(curve, loss), color=colour, linestyle=dashes, linewidth=1.4)
        axis.set(title=f"{kind} loss", xlabel="epoch")
        axis.margins(x=0.01)
        axis.set_ylim(bottom=0)
    names = [name(label) for label in shown]
    figure.legend(axes[0].get_lines(), names, loc="outside lower center", ncols=min(3, len(names)), handlelength=1.6)
    return figure


def by_keep_prob(rows: Sequence[MethodRow]) -> Figure | None:
    """Accuracy of every trial against p, one panel per method, with the median along p."""
    shown = {label: row.by_keep_prob for label, row in labelled(rows).items() if row.by_keep_prob}
    if not shown:
        return None
    columns = min(3, len(shown))
    height = -(-len(shown) // columns)
    figure = Figure(figsize=(WIDTH, 0.5 + 2.1 * height))
    axes = figure.subplots(height, columns, sharex=True, sharey=True, squeeze=False).flatten()
    for axis, (label, trials) in zip(axes, shown.items(), strict=False):
        p = np.array([trial.keep_prob for trial in trials])
        found = 100 * np.array([trial.accuracy for trial in trials])
        colour = colours(labelled(rows))[label]
        axis.plot(p, found, "o", markersize=3.5, color=colour, alpha=0.35, markeredgewidth=0)
        axis.plot(*_median_along(p, found), color=colour, linewidth=2)
        axis.set_title(name(label))
    for axis in axes[len(shown) :]:
        axis.set_axis_off()
    axes[0].set(xlim=(-0.02, 1.02), xticks=[0, 0.5, 1], xticklabels=["0", "0.5", "1"])
    _zoom(axes[0], [100 * trial.accuracy for trials in shown.values() for trial in trials])
    figure.supxlabel("keep_prob: the probability p of keeping an edge", fontsize=11)
    figure.supylabel("accuracy of a trial (%)", fontsize=11)
    return figure


FIGURES = {"accuracy": accuracy, "differences": differences, "convergence": convergence, "by-keep-prob": by_keep_prob}


def _median_along(p: Array, found: Array) -> tuple[Array, Array]:
    """The median of each value of p where values repeat, else of each tenth of p; failed trials are left out."""
    p, found = p[~np.isnan(found)], found[~np.isnan(found)]
    values, place = np.unique(p, return_inverse=True)
    if len(values) > len(p) / 2:
        place = np.unique(np.floor(p * 10), return_inverse=True)[1]
    bins = [place == number for number in range(int(place.max(initial=-1)) + 1)]
    return np.array([np.median(p[inside]) for inside in bins]), np.array([np.median(found[inside]) for inside in bins])


def _zoom(axis: Axes, values: Sequence[float]) -> None:
    """Let the bulk of the trials fill the panel: what lies far below the lower quarter is cut off."""
    finite = np.array(values)[~np.isnan(values)]
    if len(finite):
        lower, upper = np.quantile(finite, [0.25, 0.75])
        bottom = max(float(finite.min()), float(lower - 3 * (upper - lower)))
        room = 0.05 * (float(finite.max()) - bottom) or 1.0
        axis.set_ylim(bottom - room, float(finite.max()) + room)
