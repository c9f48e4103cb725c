"""Figure 1: a three-cluster graph, its first six eigenvalues, its first three modes, its edges by score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tadropedge._old.paper.clustered import Contrast, clustered, kept_contrast, spectrum
from tadropedge._old.paper.figures import graphs
from tadropedge._old.paper.item import Bench, Item, Verdict
from tadropedge._old.paper.journal import Journal
from tadropedge._old.paper.judge import judged
from tadropedge._old.paper.recipe import Recipe

ROWS = (Contrast,)
ROUNDING = 1e-16
GOOD = 0.9  # what a share must reach to count as "relatively uniform" or as "identified"


def run(bench: Bench) -> Item:
    """Draw the figure for one graph, and check what it shows on many."""
    recipe, journal, rows = bench.recipe, Journal(bench), []
    for number in bench.each("graphs", range(recipe["graphs"])):
        made = clustered(recipe["graph"], bench.seed + number)
        rows.append(kept_contrast(journal, "graphs", number, made, recipe["shown"]))
        if number == 0:
            figures = {"fig1": graphs.modes(made, spectrum(made), recipe["shown"])}
    notes = recipe.said(words=[{"words": words(recipe["graph"])}])
    return Item(rows, judge(rows, recipe), figures, notes, run=journal.run)


def judge(rows: Sequence[Contrast], recipe: Recipe) -> list[Verdict]:
    """The three things that Figure 1 is drawn to show."""
    q = recipe["graph"]["clusters"]
    hits = sum(row.gap_after == q - 1 for row in rows)
    uniform = [row.uniform for row in rows]
    middle = float(np.median(uniform))
    return [
        judged(recipe, "gap", hits >= GOOD * len(rows), q=q, before=q - 1, hits=hits),
        judged(recipe, "uniform", middle >= GOOD, middle=middle, worst=min(uniform)),
        scores_verdict(rows, recipe, q=q),
    ]


def scores_verdict(rows: Sequence[Contrast], recipe: Recipe, claim: str = "scores", **numbers: object) -> Verdict:
    """Whether the largest scores stand on the edges between clusters."""
    auc, top = (float(np.median(values)) for values in ([row.auc for row in rows], [row.top for row in rows]))
    return judged(
        recipe,
        claim,
        top >= GOOD and auc >= GOOD,
        auc=auc,
        worst=min(row.auc for row in rows),
        top=top,
        share=np.median([row.between / row.edges for row in rows]),
        ratio=np.median([row.median_between / max(row.median_inside, ROUNDING) for row in rows]),
        **numbers,
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
