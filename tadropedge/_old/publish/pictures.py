"""The look of every picture, and PNG bytes.

Figures are made through matplotlib's objects, never ``pyplot``: no backend is chosen and nothing global changes. The
same figure gives the same bytes.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, ParamSpec

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tadropedge._old.publish.wording import short

P = ParamSpec("P")
Ends = tuple[float | None, float | None, float | None]  # low, middle, high

# Okabe and Ito's palette, which colour-blind readers can distinguish; its yellow is too pale for lines on white.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6000", "#882255")
INK, QUIET, GREY = "#1a1a1a", "#6b6b6b", "#8c8c8c"
BASELINES = {"original": GREY, "dropedge": INK}
COLOURS = {"better": "#0072b2", "worse": "#d55e00"}  # of a difference; undecided ones stay grey
DASHES, RULE = (0, (4, 2)), (0, (4, 3))  # of a curve; of a line that marks a value
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
WIDTH = 6.0  # inches, of every figure: narrow, so that its words can still be read on a phone


def look() -> AbstractContextManager[None]:
    """The settings of this file on top of matplotlib's own, whatever the user has set; undone afterwards."""
    return style.context(["default", STYLE])


def colours(methods: Iterable[str]) -> dict[str, str]:
    """A colour for each method, by its place; the two baselines have their own."""
    others = [method for method in methods if method not in BASELINES]
    return BASELINES | {method: PALETTE[place % len(PALETTE)] for place, method in enumerate(others)}


METHOD_COLOURS = colours(("cutoff", "division", "cdf", "inverse-cdf"))
MARKERS = {"cdf": "o", "cutoff": "s", "division": "^"}


def name(words: str, longest: int = 28) -> str:
    """A name as it is, cut where it would leave no room; a dollar sign starts no formula."""
    return short(words, longest).replace("$", r"\$")


def lines(axis: Axes, names: Sequence[str], size: float = 9) -> None:
    """One line per name, the first on top, with a quiet grid."""
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0, labelsize=size)
    axis.spines["left"].set_visible(False)
    axis.grid(axis="x", color="#e6e6e6", linewidth=0.8)
    axis.set_axisbelow(True)


def dot(axis: Axes, place: float, ends: Ends, colour: str, **options: Any) -> None:
    """A share in per cent on one of the lines: low, middle and high as a dot on its interval."""
    low, middle, high = (math.nan if end is None else 100 * end for end in ends)
    axis.plot([low, high], [place, place], color=colour, linewidth=2, solid_capstyle="round")
    axis.plot([middle], [place], "o", color=colour, **options)


def marks(axis: Axes, place: float, printed: float | None, best: float | None, ends: Ends) -> None:
    """Accuracies on one of the lines: a bar is what was printed, a diamond the best trial, a dot the honest mean."""
    if ends[1] is not None:
        dot(axis, place + 0.18, ends, COLOURS["better"], markersize=5)
    if best is not None:
        axis.plot([100 * best], [place - 0.18], "D", color=COLOURS["worse"], markersize=4.5)
    if printed is not None:
        axis.plot([100 * printed], [place], "|", color=INK, markersize=11, markeredgewidth=1.8)


def legend(figure: Figure, *axes: Axes, **options: Any) -> None:
    """One legend below all panels, with the labels of some."""
    pairs = [pair for axis in axes for pair in zip(*axis.get_legend_handles_labels(), strict=True)]
    handles, labels = zip(*pairs, strict=True)
    figure.legend(handles, labels, loc="outside lower center", **{"ncols": 3, **options})


def png(figure: Figure, title: str) -> bytes:
    """A finished picture with its title, in smaller letters where it is long."""
    width = figure.get_figwidth()
    size = 11 if len(title) <= 10.5 * width else 10
    figure.suptitle(name(title, int(13 * width)), x=0.02, ha="left", fontsize=size, color=QUIET)
    stream = io.BytesIO()
    with warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; pages have it as text.
        warnings.filterwarnings("ignore", message="Glyph")
        figure.savefig(stream, format="png", dpi=160, metadata={"Software": None})
    return stream.getvalue()


def picture(draw: Callable[P, tuple[Figure, str]]) -> Callable[P, bytes]:
    """A function that draws a figure and names it, as one that gives a PNG; the first is its ``__wrapped__``."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> bytes:
        with look():
            return png(*draw(*args, **kwargs))

    return drawn
