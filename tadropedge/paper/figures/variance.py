"""Output variance against p: the adaptive strategies, DropEdge at the same p, and DropEdge at the same budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tadropedge.paper.rows import grouped
from tadropedge.publish.pictures import MARKERS, METHOD_COLOURS, QUIET, WIDTH, legend, picture

if TYPE_CHECKING:
    from tadropedge.paper.items.variance import Spread


@picture
def variances(rows: Sequence[Spread], what: str, words: str) -> tuple[Figure, str]:
    """Above, the variance (or deviation) against p; below, how much less it is than DropEdge's."""
    main = rows[0].normalization
    groups = grouped((row for row in rows if row.normalization == main), lambda row: row.dataset)
    figure = Figure(figsize=(WIDTH * 1.5, 6.0))
    axes = figure.subplots(2, len(groups), sharex=True, squeeze=False)
    for (upper, lower), (name, mine) in zip(axes.T, groups.items(), strict=True):
        _panels(upper, lower, mine, what)
        upper.set_title(name)
        lower.set_xlabel("keep_prob p")
    axes[0, 0].set_ylabel(what)
    axes[1, 0].set_ylabel("less than DropEdge (%)")
    legend(figure, *axes[:, 0], fontsize=9)
    return figure, f"{words}, untrained GCN, normalization {main}; bars: 95 %"


def _panels(upper: Axes, lower: Axes, rows: Sequence[Spread], what: str) -> None:
    for place, (strategy, group) in enumerate(grouped(rows, lambda row: row.strategy).items()):
        mine = sorted(group, key=lambda row: row.keep_prob)
        p, found = [row.keep_prob for row in mine], [row.quantity(what) for row in mine]
        looks: dict[str, Any] = {"color": METHOD_COLOURS[strategy], "marker": MARKERS[strategy], "markersize": 4}
        if place == 0:
            upper.plot(p, [one.dropedge_same_p.value for one in found], "k-", label="DropEdge, same p")
            level = [one.dropedge_same_budget.value for one in found]
            upper.plot(p, level, "k:", label=f"DropEdge, budget of {strategy}")
        upper.plot(p, [one.value.value for one in found], label=strategy, **looks)
        for how, dashes in (("same_p", "-"), ("same_budget", ":")):
            less = [one.reduction(how) for one in found]
            lower.errorbar(
                p,
                [100 * one.value for one in less],
                [196 * one.error for one in less],
                linestyle=dashes,
                label=f"{strategy}, {how.replace('_', ' ')}",
                **looks,
            )
    upper.set_ylim(bottom=0)
    lower.axhline(0, color=QUIET, linewidth=1)
    lower.set_ylim(bottom=max(lower.get_ylim()[0], -110))  # far below is far enough
