"""The distributions of scores: sorted, on a linear and on a logarithmic scale, with γ marked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tadropedge.paper.judge import Array
from tadropedge.publish.pictures import INK, PALETTE, WIDTH, legend, picture

LOOKS: dict[str, dict[str, Any]] = {
    "combinatorial": {"color": PALETTE[0], "linestyle": "-"},
    "normalized": {"color": PALETTE[1], "linestyle": (0, (5, 1.5))},
}
FLOOR = 1e-10  # smaller scores are drawn here


@picture
def distributions(curves: Mapping[str, Mapping[str, Array]], gamma: Mapping[str, float]) -> tuple[Figure, str]:
    """One line of two panels for each dataset; ``curves[dataset][laplacian]`` are the sorted scores ``[2 M]``."""
    figure = Figure(figsize=(WIDTH * 1.4, 0.8 + 2.3 * len(curves)))
    axes = figure.subplots(len(curves), 2, squeeze=False)
    for (linear, logarithmic), (dataset, found) in zip(axes, curves.items(), strict=True):
        for laplacian, values in found.items():
            for axis in (linear, logarithmic):
                label = f"{laplacian} Laplacian"
                place = np.arange(1, len(values) + 1)
                axis.plot(place, np.maximum(values, FLOOR), linewidth=1.6, label=label, **LOOKS[laplacian])
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
    legend(figure, axes[0, 1], ncols=2)
    return figure, "aggregate resistance weights, q = number of classes; dotted: γ of the paper"
