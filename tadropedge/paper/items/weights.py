"""The distribution of aggregate resistance weights on the three citation sets, with γ marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tadropedge.data.planetoid import NAMES
from tadropedge.paper.clustered import resistance
from tadropedge.paper.figures import weights as figures
from tadropedge.paper.item import Bench, Item, Verdict
from tadropedge.paper.judge import judged
from tadropedge.strategies import auto_gamma

QUANTILES = (0.5, 0.9, 0.95, 0.98, 0.99)
DECADE = 10.0  # how far γ may lie from the knee of the curve, as a factor: the paper searches around γ


def run(bench: Bench) -> Item:
    """Weigh the edges of each dataset with each Laplacian, q the number of classes."""
    recipe, published = bench.recipe, bench.recipe.published
    cases = [(name, laplacian) for name in recipe["datasets"] for laplacian in recipe["laplacians"]]
    rows = []
    curves: dict[str, dict[str, npt.NDArray[np.float64]]] = {}
    for place, (name, laplacian) in enumerate(cases):
        bench.report("weights", place, len(cases))
        dataset = bench.dataset(name)
        found = resistance(dataset.graph, dataset.num_classes, laplacian, bench.cache_dir)
        gamma = published[NAMES[name]]
        both = np.repeat(np.sort(found.cpu().numpy()), 2)  # each edge as two pairs, as in the paper
        curves.setdefault(NAMES[name], {})[laplacian] = both
        rows.append(measured(name, laplacian, both, gamma, auto_gamma(found), dataset.num_classes))
    verdicts = [judge_gamma(row) for row in rows] + [judge_skew(rows)]
    notes = [
        "The text means the combinatorial Laplacian D − A; the printed γ fits the normalised one better.",
        "Where q falls inside a repeated eigenvalue, in one or two small components of CiteSeer, all of it is used.",
        "Counting each edge as two pairs doubles all counts and changes no share.",
    ]
    return Item(rows, verdicts, {"weights": figures.distributions(curves, published)}, notes)


def measured(
    name: str, laplacian: str, values: npt.NDArray[np.float64], gamma: float, knee: float, q: int
) -> dict[str, Any]:
    """One row: quantiles, and what γ does to them."""
    quantiles = np.quantile(values, QUANTILES)
    return {
        "dataset": name,
        "laplacian": laplacian,
        "q": q,
        "entries": len(values),
        "gamma": gamma,
        "above_gamma": int((values >= gamma).sum()),
        "share_above_gamma": float((values >= gamma).mean()),
        "knee": knee,
        "share_above_knee": float((values >= knee).mean()),
        **{f"quantile_{level:g}": float(value) for level, value in zip(QUANTILES, quantiles, strict=True)},
        "maximum": float(values[-1]),
    }


def judge_gamma(row: Mapping[str, Any]) -> Verdict:
    """Whether the curve of sorted weights turns from its floor to its rise within a decade of γ."""
    gamma, knee = row["gamma"], row["knee"]
    return judged(
        f"{NAMES[row['dataset']]}, {row['laplacian']} Laplacian: the weights of a small number of edges rise rapidly "
        f"around γ = {gamma:g}",
        gamma / DECADE <= knee <= gamma * DECADE,
        f"the curve of sorted weights turns upwards at {knee:.1e}, above which are {row['share_above_knee']:.2%} of "
        f"the edges; {row['share_above_gamma']:.2%} ({row['above_gamma']:,} of {row['entries']:,} pairs) have ω ≥ γ; "
        f"the 98 % quantile is {row['quantile_0.98']:.1e}",
    )


def judge_skew(rows: Sequence[Mapping[str, Any]]) -> Verdict:
    """Whether most edges have small weights and a few large ones."""
    ratios = [row["quantile_0.99"] / max(row["quantile_0.5"], np.finfo(float).tiny) for row in rows]
    said = ", ".join(
        f"{NAMES[row['dataset']]} ({row['laplacian']}) {ratio:.0e}" for row, ratio in zip(rows, ratios, strict=True)
    )
    return judged(
        "Most edges have small weights and a small number have large ones",
        min(ratios) >= 10,
        f"the 99 % quantile over the median: {said}",
    )
