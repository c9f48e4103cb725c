"""The weight distributions: sorted weights on a linear and on a logarithmic scale, with γ marked."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tadropedge.publish.pictures import INK, PALETTE, WIDTH, look, png

Array = npt.NDArray[np.float64]

COLOURS = {"combinatorial": PALETTE[0], "normalized": PALETTE[1]}
DASHES = {"combinatorial": "-", "normalized": (0, (5, 1.5))}
FLOOR = 1e-10  # smaller weights are drawn here


def distributions(curves: Mapping[str, Mapping[str, Array]], gamma: Mapping[str, float]) -> bytes:
    """One line of two panels for each dataset; ``curves[dataset][laplacian]`` are the sorted weights ``[2 M]``."""
    with look():
        figure = Figure(figsize=(WIDTH * 1.4, 0.8 + 2.3 * len(curves)))
        axes = figure.subplots(len(curves), 2, squeeze=False)
        for (linear, logarithmic), (dataset, found) in zip(axes, curves.items(), strict=True):
            for laplacian, values in found.items():
                for axis in (linear, logarithmic):
                    _curve(axis, np.maximum(values, FLOOR), laplacian)
            for axis in (linear, logarithmic):
                axis.axhline(gamma[dataset], color=INK, linewidth=1, linestyle=(0, (2, 2)))
            linear.set(title=f"{dataset}: the largest tenth", ylabel="weight ω")
            size = max(len(values) for values in found.values())
            linear.set_xlim(0.9 * size, 1.005 * size)
            linear.set_ylim(0, 12 * gamma[dataset])
            logarithmic.set(title=f"{dataset}: all, logarithmic", yscale="log")
            words, where = f"γ = {gamma[dataset]:g}", logarithmic.get_yaxis_transform()
            logarithmic.text(0.02, gamma[dataset], words, transform=where, va="bottom", fontsize=9)
        for axis in axes[-1]:
            axis.set_xlabel("pairs (i, j) in order of weight")
        handles = [line for line in axes[0][1].get_lines() if line.get_label() in COLOURS]
        names = [f"{line.get_label()} Laplacian" for line in handles]
        figure.legend(handles, names, loc="outside lower center", ncols=2)
        return png(figure, "aggregate resistance weights, q = number of classes; dotted: γ of the paper")


def _curve(axis: Axes, values: Array, laplacian: str) -> None:
    axis.plot(
        np.arange(1, len(values) + 1),
        values,
        color=COLOURS[laplacian],
        linestyle=DASHES[laplacian],
        linewidth=1.6,
        label=laplacian,
    )
