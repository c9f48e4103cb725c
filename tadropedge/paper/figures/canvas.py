"""What the pictures of the paper's items share: the look of a comparison's pictures, and PNG bytes."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tadropedge.comparison.figures import BASELINES, COLOURS, INK, PALETTE, QUIET, STYLE

METHOD_COLOURS = {
    **BASELINES,
    **dict(zip(("cutoff", "division", "cdf", "inverse-cdf"), (*PALETTE[:3], PALETTE[3]), strict=True)),
}


def look() -> AbstractContextManager[None]:
    """The style of every picture, whatever the user has set; undone afterwards."""
    return style.context(["default", STYLE])


def png(figure: Figure, title: str) -> bytes:
    """A finished picture; the same figure gives the same bytes."""
    figure.suptitle(title, x=0.02, ha="left", fontsize=11, color=QUIET)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=160, metadata={"Software": None})
    return stream.getvalue()


def lines(axis: Axes, names: list[str]) -> None:
    """One line for each name, the first on top, with a quiet grid."""
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0, labelsize=9)
    axis.spines["left"].set_visible(False)
    axis.grid(axis="x", color="#e6e6e6", linewidth=0.8)
    axis.set_axisbelow(True)


def marks(axis: Axes, place: float, printed: float | None, best: float | None, honest: Mapping[str, Any]) -> None:
    """Accuracies of one line, in percent: a bar is printed, a diamond the best trial, a dot the honest mean."""
    if honest["mean"] is not None:
        ends = [100 * honest["low"], 100 * honest["high"]]
        axis.plot(ends, [place + 0.18] * 2, color=COLOURS["better"], linewidth=2, solid_capstyle="round")
        axis.plot([100 * honest["mean"]], [place + 0.18], "o", color=COLOURS["better"], markersize=5)
    if best is not None:
        axis.plot([100 * best], [place - 0.18], "D", color=COLOURS["worse"], markersize=4.5)
    if printed is not None:
        axis.plot([100 * printed], [place], "|", color=INK, markersize=11, markeredgewidth=1.8)
