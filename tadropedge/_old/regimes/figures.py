"""The heat map as a picture, for pages that cannot hold the interactive one."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from tadropedge._old.publish.pictures import INK, QUIET, name, picture
from tadropedge._old.regimes.results import RegimeMap
from tadropedge._old.regimes.tiles import LEGEND, MARK, MARKED, Tile, tiles

# Of each step: the paper of a tile and its words. One hue for gains and another for losses, darker for more, so that
# the order is seen in grey, too.
COLOURS = {
    "gain-1": ("#d6e8f5", INK),
    "gain-2": ("#9fcbe8", INK),
    "gain-3": ("#2b78ab", "#ffffff"),
    "gain-4": ("#003a5f", "#ffffff"),
    "loss": ("#f6c9a3", INK),
    "grey": ("#e4e4e4", QUIET),
    "unjudged": ("#ffffff", QUIET),
}
WIDE, HIGH = 0.94, 0.5  # inches of a tile


@picture
def heat_map(found: RegimeMap) -> tuple[Figure, str]:
    """Datasets by conditions: the best method of each cell and what it gains over not dropping, in points."""
    grid = tiles(found)
    columns, rows = grid.columns, grid.rows
    figure = Figure(figsize=(1.6 + WIDE * max(len(columns), 4), 1.6 + HIGH * len(rows)))
    axis = figure.subplots()
    for y, (_, line) in enumerate(rows):
        for x, tile in enumerate(line):
            if tile is not None:
                _draw(axis, x, y, tile)
    axis.set_xlim(0, max(len(columns), 1))
    axis.set_ylim(max(len(rows), 1), 0)
    axis.set_xticks([x + 0.5 for x in range(len(columns))], [name(words) for words in columns], fontsize=9)
    axis.set_yticks([y + 0.5 for y in range(len(rows))], [name(words, 20) for words, _ in rows], fontsize=9)
    axis.xaxis.tick_top()
    axis.tick_params(length=0, colors=INK)
    for spine in axis.spines.values():
        spine.set_visible(False)
    drawn = [one for _, line in rows for one in line if one is not None]
    _explain(figure, [step for step in LEGEND if any(one.step == step for one in drawn)])
    if any(one.mark for one in drawn):
        axis.set_xlabel(f"{MARK} {MARKED}", fontsize=9, loc="left")
    return figure, "Best edge dropping of each cell, and its gain over not dropping (points)"


def _draw(axis: Axes, x: int, y: int, tile: Tile) -> None:
    paper, ink = COLOURS[tile.step]
    axis.add_patch(Rectangle((x + 0.02, y + 0.03), 0.96, 0.94, facecolor=paper, edgecolor="none"))
    words = [*_lines(tile.method), tile.gain] if tile.method else [tile.gain]
    size = 6.6 if len(words) > 2 else 7.4
    axis.text(x + 0.5, y + 0.5, name("\n".join(words), 60), ha="center", va="center", color=ink, fontsize=size)
    if tile.mark:
        axis.text(x + 0.95, y + 0.07, MARK, ha="right", va="top", color=ink, fontsize=5.5)


def _lines(method: str, longest: int = 15) -> list[str]:
    """A method on one line or, where it is long, on two.

    >>> _lines("dropedge"), _lines("effective-proportional"), _lines("dropedge:unbiased")
    (['dropedge'], ['effective-', 'proportional'], ['dropedge:', 'unbiased'])
    """
    for mark in (":", "-"):
        front, found, rest = method.partition(mark)
        if found and len(method) > longest:
            return [front + found, rest]
    return [method]


def _explain(figure: Figure, steps: Sequence[str]) -> None:
    patches = [Patch(facecolor=COLOURS[step][0], edgecolor=QUIET, linewidth=0.4, label=LEGEND[step]) for step in steps]
    if patches:
        figure.legend(handles=patches, loc="outside lower center", ncols=3, fontsize=9)
