"""Figures of items: panels of lines with bands, and forests of intervals. Colours tell lines apart, in one order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.style
import pandas as pd
from matplotlib.figure import Figure

matplotlib.use("Agg")
matplotlib.style.use(Path(__file__).with_name("style.mplstyle"))

WIDTH, HEIGHT = 3.2, 2.8  # inches of a panel


def panels(
    rows: pd.DataFrame,
    *,
    x: str,
    y: str,
    columns: str,
    lines: Sequence[str],
    error: str = "",
    zero: bool = False,
    log: bool = False,
) -> Figure:
    """A panel for each value of ``columns``, with a line for each combination of ``lines``; ``error`` is one s. e."""
    names = list(dict.fromkeys(rows[columns]))
    figure = Figure(figsize=(WIDTH * len(names), HEIGHT))
    axes = figure.subplots(1, len(names), squeeze=False, sharey=False)[0]
    keys = list(dict.fromkeys(map(tuple, rows[list(lines)].astype(str).to_numpy())))
    for name, ax in zip(names, axes, strict=True):
        if zero:
            ax.axhline(0.0, color="0.6", linewidth=0.8)
        for place, key in enumerate(keys):
            mine = rows[rows[columns] == name]
            for line, value in zip(lines, key, strict=True):
                mine = mine[mine[line].astype(str) == value]
            mine = mine.sort_values(x)
            if mine.empty:
                continue
            marks = {"color": f"C{place % 10}", "linestyle": "-" if place < 10 else "--"}
            ax.plot(mine[x], mine[y], label=" ".join(key), marker=".", **marks)
            if error:
                low, high = mine[y] - 2 * mine[error], mine[y] + 2 * mine[error]
                ax.fill_between(mine[x], low, high, alpha=0.2, color=marks["color"], linewidth=0)
        if log:
            ax.set_yscale("log")
        ax.set_title(str(name))
        ax.set_xlabel(x.replace("_", " "))
    axes[0].set_ylabel(y.replace("_", " "))
    named = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(named.values(), named.keys(), loc="outside right upper")
    return figure


def forest(
    rows: pd.DataFrame,
    *,
    y: Sequence[str],
    x: str,
    low: str = "",
    high: str = "",
    mark: str = "",
    columns: str = "",
    zero: bool = True,
) -> Figure:
    """A line for each row, named by the columns ``y``: a dot with its interval; ``mark`` is what the paper prints."""
    groups = [(name, part) for name, part in rows.groupby(columns, sort=False)] if columns else [("", rows)]
    most = max(len(part) for _, part in groups)
    figure = Figure(figsize=(1.5 + WIDTH * len(groups), 0.8 + 0.17 * most))
    axes = figure.subplots(1, len(groups), squeeze=False)[0]
    for (name, part), ax in zip(groups, axes, strict=True):
        places = range(len(part), 0, -1)
        if low:
            ax.hlines(places, part[low], part[high], color="C0", linewidth=1.2)
        if zero:
            ax.axvline(0.0, color="0.6", linewidth=0.8)
        ax.plot(part[x], places, "o", color="C0", markersize=3, label="measured")
        if mark:
            ax.plot(part[mark], places, "x", color="C3", markersize=4, label="printed")
            ax.legend()
        ax.set_yticks(list(places), [" ".join(map(str, row)) for row in part[list(y)].to_numpy()])
        ax.set_xlabel(x.replace("_", " "))
        ax.set_title(str(name))
    return figure
