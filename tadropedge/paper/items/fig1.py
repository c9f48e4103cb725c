"""Figure 1: a three-cluster graph, its first six eigenvalues, its first three modes, its edges by score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tadropedge.paper.clustered import Contrast, clustered, contrast, spectrum
from tadropedge.paper.figures import graphs
from tadropedge.paper.item import Bench, Item, Verdict
from tadropedge.paper.judge import judged

ROWS = (Contrast,)
ROUNDING = 1e-16
GOOD = 0.9  # what a share must reach to count as "relatively uniform" or as "identified"


def run(bench: Bench) -> Item:
    """Draw the figure for one graph, and check what it shows on many."""
    recipe, rows = bench.recipe, []
    for number in bench.each("graphs", range(recipe["graphs"])):
        made = clustered(recipe["graph"], bench.seed + number)
        found = spectrum(made)
        rows.append(contrast(number, made, found, recipe["shown"]))
        if number == 0:
            figures = {"fig1": graphs.modes(made, found, recipe["shown"])}
    notes = [
        f"The paper does not say how its graph was made: these are connected block models ({words(recipe['graph'])}).",
        "The figure shows the first graph; the verdicts are about all of them.",
    ]
    return Item(rows, judge(rows, recipe["graph"]["clusters"]), figures, notes)


def judge(rows: Sequence[Contrast], q: int) -> list[Verdict]:
    """The three things that Figure 1 is drawn to show."""
    hits = sum(row.gap_after == q - 1 for row in rows)
    uniform = np.array([row.uniform for row in rows])
    return [
        judged(
            f"With {q} clusters there is a gap from λ_{q - 1} to λ_{q}",
            hits >= GOOD * len(rows),
            f"it is the largest of the gaps shown in {hits} of {len(rows)} graphs",
        ),
        judged(
            "Each of the first q modes is nearly uniform on each cluster",
            float(np.median(uniform)) >= GOOD,
            f"{np.median(uniform):.3f} of the variance of the modes lies between clusters in the median graph, "
            f"{uniform.min():.3f} in the worst of {len(rows)}",
        ),
        scores_verdict(rows, f"Weights are higher on edges between {q} clusters than inside them"),
    ]


def scores_verdict(rows: Sequence[Contrast], claim: str) -> Verdict:
    """Whether the largest scores stand on the edges between clusters."""
    auc, top = np.array([row.auc for row in rows]), np.array([row.top for row in rows])
    ratio = np.median([row.median_between / max(row.median_inside, ROUNDING) for row in rows])
    share = np.median([row.between / row.edges for row in rows])
    return judged(
        claim,
        float(np.median(top)) >= GOOD and float(np.median(auc)) >= GOOD,
        f"an edge between clusters outweighs one inside with probability {np.median(auc):.3f} (worst graph "
        f"{auc.min():.3f} of {len(rows)}); of as many largest weights as there are edges between clusters, "
        f"{np.median(top):.1%} are on them, as {share:.1%} of all edges are; the medians differ by a factor of "
        f"{ratio:.3g}",
    )


def words(graph: Mapping[str, Any]) -> str:
    """The settings of a block model as readers see them.

    >>> words({"clusters": 3, "nodes": 20, "inside": 0.5, "between": 0.01})
    '3 clusters of 20 nodes, links 0.5 inside and 0.01 between'
    """
    return (
        f"{graph['clusters']} clusters of {graph['nodes']} nodes, "
        f"links {graph['inside']:g} inside and {graph['between']:g} between"
    )
