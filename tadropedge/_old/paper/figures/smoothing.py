"""The picture of section 5.1: how much less outputs spread and gradients vary than with DropEdge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tadropedge._old.paper.judge import HOW
from tadropedge._old.paper.rows import grouped, title
from tadropedge._old.publish.pictures import DASHES, METHOD_COLOURS, QUIET, WIDTH, legend, picture

if TYPE_CHECKING:
    from tadropedge._old.paper.items.over_smoothing import Gradients, Outputs

R = TypeVar("R", "Outputs", "Gradients")


@picture
def reductions(outputs: Sequence[Outputs], gradients: Sequence[Gradients]) -> tuple[Figure, str]:
    """Above, outputs against the depth; below, gradients against p; a column for each dataset."""
    datasets = list(dict.fromkeys(row.dataset for row in outputs))
    depths = sorted({row.layers for row in outputs})
    figure = Figure(figsize=(WIDTH * 1.2, 6.4))
    axes = figure.subplots(2, len(datasets), sharey="row", squeeze=False)
    for (above, below), dataset in zip(axes.T, datasets, strict=True):
        _curves(above, [row for row in outputs if row.dataset == dataset], lambda row: depths.index(row.layers))
        _curves(below, [row for row in gradients if row.dataset == dataset], lambda row: 10 * row.keep_prob)
        above.set_xticks(range(len(depths)), [f"{depth}" for depth in depths])
        p = sorted({row.keep_prob for row in gradients})
        below.set_xticks([10 * one for one in p], [f"{one:g}" for one in p])
        above.set(title=title(dataset), xlabel="layers")
        below.set_xlabel("p")
    axes[0, 0].set_ylabel("outputs: spread less\nthan DropEdge's (%)")
    axes[1, 0].set_ylabel("gradients: variance less\nthan DropEdge's (%)")
    legend(figure, axes[0, 0], handlelength=2.4, fontsize=9)
    return figure, "section 5.1; dots: means, bars: smallest to largest over all other settings"


def _curves(axis: Axes, rows: Sequence[R], x: Callable[[R], float]) -> None:
    """A line for each strategy and kind of DropEdge; a bar from the smallest to the largest of its settings."""
    ways = [(strategy, mine, how) for strategy, mine in grouped(rows, lambda row: row.strategy).items() for how in HOW]
    for place, (strategy, mine, how) in enumerate(ways):
        looks: dict[str, Any] = {"color": METHOD_COLOURS[strategy], "linestyle": "-" if how == "same_p" else DASHES}
        aside = 0.08 * (place - 0.5 * (len(ways) - 1))
        found = {at: [100 * row.less(how).value for row in some] for at, some in sorted(grouped(mine, x).items())}
        means = [sum(values) / len(values) for values in found.values()]
        places = [at + aside for at in found]
        label = f"{strategy}, {how.replace('_', ' ')}"
        axis.plot(places, means, marker="o", markersize=3.5, linewidth=1.4, label=label, **looks)
        ends = [min(values) for values in found.values()], [max(values) for values in found.values()]
        axis.vlines(places, *ends, color=looks["color"], linewidth=0.9)
    axis.axhline(0, color=QUIET, linewidth=0.9, zorder=1)
