"""The look of every picture, and PNG bytes.

Figures are made through matplotlib's objects, never ``pyplot``: no backend is chosen and nothing global changes. The
same figure gives the same bytes.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import ParamSpec

from matplotlib import style
from matplotlib.figure import Figure

from tadropedge.lab.reports.label import MADE_BY
from tadropedge.lab.reports.words import short

P = ParamSpec("P")

# Okabe and Ito's palette, which colour-blind readers can distinguish; its yellow is too pale for lines on white.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6000", "#882255")
INK, QUIET = "#1a1a1a", "#6b6b6b"
RULE = (0, (4, 3))  # the dashes of a line that marks a value
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


def name(words: str, longest: int = 28) -> str:
    """A name as it is, cut where it would leave no room; a dollar sign starts no formula."""
    return short(words, longest).replace("$", r"\$")


def png(figure: Figure, title: str) -> bytes:
    """A finished picture with its title, in smaller letters where it is long."""
    width = figure.get_figwidth()
    size = 11 if len(title) <= 10.5 * width else 10
    figure.suptitle(name(title, int(13 * width)), x=0.02, ha="left", fontsize=size, color=QUIET)
    stream = io.BytesIO()
    with warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; pages have it as text.
        warnings.filterwarnings("ignore", message="Glyph")
        figure.savefig(stream, format="png", dpi=160, metadata={"Software": MADE_BY})
    return stream.getvalue()


def picture(draw: Callable[P, tuple[Figure, str]]) -> Callable[P, bytes]:
    """A function that draws a figure and names it, as one that gives a PNG; the first is its ``__wrapped__``."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> bytes:
        with look():
            return png(*draw(*args, **kwargs))

    return drawn
