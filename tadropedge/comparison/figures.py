"""The pictures of a comparison, as PNG bytes: accuracy, paired differences, convergence, accuracy against p.

Each function takes the rows of one dataset, backbone and depth, and returns ``None`` where they hold nothing to draw.
Figures are made through matplotlib's objects, never ``pyplot``: no backend is chosen and nothing global changes. The
same rows give the same bytes.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tadropedge.comparison.rows import Row, labels
from tadropedge.comparison.wording import title
from tadropedge.files import write_atomic

Array = npt.NDArray[np.float64]

# Okabe and Ito's palette, told apart by colour-blind readers; its yellow is too pale for lines on white.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6000", "#882255")
BASELINES = {"original": "#8c8c8c", "dropedge": "#1a1a1a"}
INK, QUIET = "#1a1a1a", "#6b6b6b"
COLOURS = {"better": "#0072b2", "worse": "#d55e00"}  # of a difference; undecided ones stay grey
STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 11,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.1,
    "figure.constrained_layout.w_pad": 0.1,
    "legend.frameon": False,
    "xtick.color": QUIET,
    "ytick.color": INK,
}
WIDTH = 6.0  # inches, of every figure: narrow, so that its words are still words on a phone


def accuracy(rows: Sequence[Row]) -> bytes | None:
    """Mean test accuracy of each method with its 95 % interval, and a line at DropEdge's mean."""
    dots = [(label, row.honest) for label, row in zip(labels(rows), rows, strict=True) if row.honest]
    shown = [(label, honest) for label, honest in dots if honest.mean is not None]
    if not shown:
        return None
    with _style():
        figure, axis = _dot_plot([label for label, _ in shown])
        for place, (label, honest) in enumerate(shown):
            _dot(axis, place, (honest.low, honest.mean, honest.high), _colours(rows)[label])
        dropedge = dict(shown).get("dropedge")
        if dropedge and dropedge.mean is not None:
            _line(axis, 100 * dropedge.mean)
        axis.set_xlabel("test accuracy (%) with 95 % interval" + ("; dashed: DropEdge" if dropedge else ""))
        return _png(figure, rows)


def differences(rows: Sequence[Row]) -> bytes | None:
    """Paired difference to DropEdge with the same expected number of kept edges, and its 95 % interval."""
    shown = [
        (label, row.honest)
        for label, row in zip(labels(rows), rows, strict=True)
        if row.honest and row.honest.difference is not None
    ]
    if not shown:
        return None
    with _style():
        figure, axis = _dot_plot([label for label, _ in shown])
        for place, (_, honest) in enumerate(shown):
            ends = (honest.difference_low, honest.difference, honest.difference_high)
            _dot(axis, place, ends, COLOURS.get(honest.outcome or "", "#8c8c8c"))
        _line(axis, 0)
        axis.set_xlabel("points above DropEdge with 95 % interval; grey: undecided")
        return _png(figure, rows)


def convergence(rows: Sequence[Row]) -> bytes | None:
    """Training and validation loss against the epoch, one line for each method."""
    shown = [(label, row.convergence) for label, row in zip(labels(rows), rows, strict=True) if row.convergence]
    if not shown:
        return None
    with _style():
        figure = Figure(figsize=(WIDTH, 3.8))
        axes = figure.subplots(1, 2, sharex=True)
        for axis, name, kind in zip(axes, ("train_loss", "val_loss"), ("training", "validation"), strict=True):
            for label, curve in shown:
                dashes = (0, (4, 2)) if label == "dropedge" else "-"
                colour = _colours(rows)[label]
                axis.plot(curve.epochs, getattr(curve, name), color=colour, linestyle=dashes, linewidth=1.4)
            axis.set(title=f"{kind} loss", xlabel="epoch")
            axis.margins(x=0.01)
            axis.set_ylim(bottom=0)
        lines, names = axes[0].get_lines(), [_text(label) for label, _ in shown]
        figure.legend(lines, names, loc="outside lower center", ncols=min(3, len(names)), handlelength=1.6)
        return _png(figure, rows)


def by_keep_prob(rows: Sequence[Row]) -> bytes | None:
    """Accuracy of every trial against p, one panel for each method, with the median along p."""
    shown = [(label, row.by_keep_prob) for label, row in zip(labels(rows), rows, strict=True) if row.by_keep_prob]
    if not shown:
        return None
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    with _style():
        figure = Figure(figsize=(WIDTH, 0.5 + 2.1 * lines))
        axes = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).flatten()
        for axis, (label, trials) in zip(axes, shown, strict=False):
            p = np.array([trial.keep_prob for trial in trials])
            found = 100 * np.array([trial.accuracy for trial in trials])
            colour = _colours(rows)[label]
            axis.plot(p, found, "o", markersize=3.5, color=colour, alpha=0.35, markeredgewidth=0)
            axis.plot(*_median_along(p, found), color=colour, linewidth=2)
            axis.set_title(_text(label))
        for axis in axes[len(shown) :]:
            axis.set_axis_off()
        axes[0].set(xlim=(-0.02, 1.02), xticks=[0, 0.5, 1], xticklabels=["0", "0.5", "1"])
        _zoom(axes[0], [100 * trial.accuracy for _, trials in shown for trial in trials])
        figure.supxlabel("keep_prob: the probability p of keeping an edge", fontsize=11)
        figure.supylabel("accuracy of a trial (%)", fontsize=11)
        return _png(figure, rows)


FIGURES = {
    "accuracy": accuracy,
    "differences": differences,
    "convergence": convergence,
    "by-keep-prob": by_keep_prob,
}


def save_figures(rows: Sequence[Row], folder: str | Path) -> list[Path]:
    """Write every picture the rows have data for to ``folder``, as ``accuracy.png`` and so on."""
    pictures = {name: draw(rows) for name, draw in FIGURES.items()}
    return [write_atomic(Path(folder) / f"{name}.png", png) for name, png in pictures.items() if png]


def _style() -> AbstractContextManager[None]:
    """The settings of this file on top of matplotlib's own, whatever the user has set; undone afterwards."""
    return style.context(["default", STYLE])


def _colours(rows: Sequence[Row]) -> dict[str, str]:
    """One colour for each label, the same in every picture of these rows."""
    names = labels(rows)
    methods = [name for name in names if name not in BASELINES]
    return BASELINES | {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(methods)}


def _dot_plot(names: Sequence[str]) -> tuple[Figure, Axes]:
    """An empty plot with one line for each name, the first on top."""
    figure = Figure(figsize=(WIDTH, 1.1 + 0.36 * len(names)))
    axis = figure.subplots()
    axis.set_yticks(range(len(names)), [_text(name) for name in names])
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.grid(axis="x", color="#e6e6e6", linewidth=0.8)
    axis.set_axisbelow(True)
    return figure, axis


def _dot(axis: Axes, place: int, ends: tuple[float | None, float | None, float | None], colour: str) -> None:
    low, middle, high = 100 * np.array(ends, dtype=np.float64)
    axis.plot([low, high], [place, place], color=colour, linewidth=2, solid_capstyle="round")
    axis.plot([middle], [place], "o", color=colour, markersize=7, markeredgecolor="white")


def _line(axis: Axes, place: float) -> None:
    """The dashed line that stands for DropEdge: above the grid, below the dots."""
    axis.axvline(place, color=QUIET, linewidth=1.1, linestyle=(0, (4, 3)), zorder=1.5)


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


def _text(words: str, longest: int = 28) -> str:
    """Names as they are, cut where they would leave no room; a dollar sign starts no formula."""
    words = words if len(words) <= longest else f"{words[: longest - 1]}…"
    return words.replace("$", r"\$")


def _png(figure: Figure, rows: Sequence[Row]) -> bytes:
    figure.suptitle(_text(title(rows[0]), longest=60), x=0.02, ha="left", fontsize=11, color=QUIET)
    stream = io.BytesIO()
    with warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; the report has it as text.
        warnings.filterwarnings("ignore", message="Glyph")
        figure.savefig(stream, format="png", dpi=160, metadata={"Software": None})
    return stream.getvalue()
