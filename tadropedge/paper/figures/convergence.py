"""The picture of Figure 2a: training and validation loss against the epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from tadropedge.paper.rows import grouped
from tadropedge.publish.pictures import INK, METHOD_COLOURS, WIDTH, legend, picture

if TYPE_CHECKING:
    from tadropedge.paper.items.convergence import Losses

SHOWN = ("dropedge", "cutoff", "division", "cdf", "dropedge as cdf")


def draw(rows: Sequence[Losses]) -> dict[str, bytes]:
    """One picture per Laplacian."""
    groups = grouped(rows, lambda row: row.laplacian)
    return {f"convergence-{laplacian}": curves(mine, laplacian) for laplacian, mine in groups.items()}


@picture
def curves(rows: Sequence[Losses], laplacian: str) -> tuple[Figure, str]:
    """Mean curves, with a band that holds two thirds of the runs for DropEdge and cdf."""
    mine = {row.method: row for row in rows if row.epoch is not None}
    figure = Figure(figsize=(WIDTH, 4.2))
    axes = figure.subplots(1, 2, sharex=True)
    for axis, training in zip(axes, (True, False), strict=True):
        for label in (label for label in SHOWN if label in mine):
            row, colour = mine[label], METHOD_COLOURS.get(label, INK)
            band = row.train_loss if training else row.val_loss
            dashes = (0, (2, 1.5)) if label == "dropedge as cdf" else "-"
            axis.plot(row.epoch, band.value, color=colour, linestyle=dashes, linewidth=1.4, label=label)
            if label in ("dropedge", "cdf"):
                axis.fill_between(row.epoch, band.low, band.high, color=colour, alpha=0.12, linewidth=0)
        axis.set(title=f"{'training' if training else 'validation'} loss", xlabel="epoch")
        axis.margins(x=0.01)
    legend(figure, axes[0], handlelength=1.8)
    return figure, f"convergence, {laplacian} Laplacian"
