"""What the pictures of the paper's items share: rendering, legends, the looks of strategies."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tadropedge.paper.figures.canvas import look, png

P = ParamSpec("P")

GREY = "#8c8c8c"
DASHES = (0, (4, 2))
RULE = (0, (4, 3))  # of a line that marks a value


def picture(draw: Callable[P, tuple[Figure, str]]) -> Callable[P, bytes]:
    """A function that draws a figure and names it, as one that gives a PNG; the first is its ``__wrapped__``."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> bytes:
        with look():
            return png(*draw(*args, **kwargs))

    return drawn


def legend(figure: Figure, *axes: Axes, **options: Any) -> None:
    """One legend below all panels, with the labels of some."""
    pairs = [pair for axis in axes for pair in zip(*axis.get_legend_handles_labels(), strict=True)]
    handles, labels = zip(*pairs, strict=True)
    figure.legend(handles, labels, loc="outside lower center", **{"ncols": 3, **options})
