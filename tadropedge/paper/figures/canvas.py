"""What the pictures of the paper's items share: the look of a comparison's pictures, and PNG bytes."""

from __future__ import annotations

import io
from contextlib import AbstractContextManager

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tadropedge.compare.figures import BASELINES, PALETTE, QUIET, STYLE

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
