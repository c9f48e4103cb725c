"""Proposition 1 measured: how far the low modes move when edges inside, or between, clusters are dropped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tadropedge.diagnostics import Realizability, alpha_realizable, subspace_distance
from tadropedge.paper.clustered import Clustered, clustered
from tadropedge.paper.figures import proposition1 as figures
from tadropedge.paper.item import IMPOSSIBLE, Bench, Item, Verdict
from tadropedge.paper.items.fig1 import words
from tadropedge.paper.judge import CLEAR, judged, mean_and_error
from tadropedge.paper.pieces import Pieces
from tadropedge.paper.recipe import Recipe

Row = Mapping[str, Any]

NAMES = ("between", "as many inside")
ROUNDING = 1e-9


def run(bench: Bench) -> Item:
    """On many graphs of each kind, drop more and more edges inside and between clusters."""
    recipe = bench.recipe
    kinds, pieces = recipe["kinds"], Pieces(bench)
    rows = []
    for place, kind in enumerate(kinds):
        found = []
        for number in range(recipe["graphs"]):
            bench.report("graphs", place * recipe["graphs"] + number, len(kinds) * recipe["graphs"])
            piece = partial(measure, kind, recipe, bench.seed + number)
            found.append(pieces.rows(f"{words(kind)}/{number}", piece))
        rows += summary(words(kind), found)
    pictures = {"proposition1": figures.distances(rows)}
    notes = [
        "Shares are of the edges inside clusters for 'inside', of those between for 'between' and 'as many inside'.",
        "'as many inside' drops the same number of edges as 'between', but inside clusters.",
        "No distance exceeds √q: a bound above it says nothing. α is infinite where there are more than q components.",
    ]
    return Item(rows, judge(rows), pictures, notes, run=pieces.run)


def masks(made: Clustered, candidates: Tensor, count: int, draws: int, random: np.random.Generator) -> Tensor:
    """Keep all edges but ``count`` random ones among ``candidates``, bool ``[draws, M]``."""
    places = candidates.nonzero().flatten().numpy()
    keep = torch.ones(draws, made.graph.num_edges, dtype=torch.bool)
    for draw in range(draws):
        keep[draw, torch.from_numpy(random.choice(places, count, replace=False))] = False
    return keep


def measure(kind: Mapping[str, Any], recipe: Recipe, seed: int) -> list[dict[str, Any]]:
    """One record for each share and place of dropping: means over draws on one graph."""
    made = clustered(kind, seed)
    random = np.random.default_rng([seed, 3])
    between = made.between
    whole = alpha_realizable(made.graph, made.clusters)
    records = []
    for share in recipe["shares"]:
        inside_count, between_count = (max(1, round(share * int(mask.sum()))) for mask in (~between, between))
        plans = {
            "inside": (~between, inside_count),
            "between": (between, between_count),
            "as many inside": (~between, min(between_count, int((~between).sum()))),
        }
        for name, (candidates, count) in plans.items():
            keep = masks(made, candidates, count, recipe["draws"], random)
            records.append({"share": share, "dropped": name, "count": count, **_measured(whole, made, keep)})
    return records


def _measured(whole: Realizability, made: Clustered, keep: Tensor) -> dict[str, Any]:
    """Distances and bounds of a batch of subgraphs."""
    part = alpha_realizable(made.graph, made.clusters, keep)
    distance, bound = subspace_distance(whole.modes, part.modes), whole.bound(part)
    finite = torch.isfinite(bound)
    return {
        "alpha": float(whole.alpha),
        "mean_degree": float(whole.mean_degree),
        "alpha_after": float(part.alpha.median()),
        "distance": float(distance.mean()),
        "bound": float(bound.median()),
        "violations": int((distance > bound + ROUNDING).sum()),
        "informative": float((bound < whole.largest_distance).double().mean()),
        "infinite": float((~finite).double().mean()),
        "finite": int(finite.sum()),
        "tightness": float((distance[finite] / bound[finite]).median()) if bool(finite.any()) else None,
        "largest": whole.largest_distance,
        "draws": len(keep),
    }


def summary(kind: str, graphs: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Means over graphs; infinite bounds are None."""
    rows = []
    for records in zip(*graphs, strict=True):
        distance, error = mean_and_error([record["distance"] for record in records])
        bound = float(np.median([record["bound"] for record in records]))
        after = float(np.median([record["alpha_after"] for record in records]))
        rows.append(
            {
                "kind": kind,
                "graphs": len(records),
                "dropped": records[0]["dropped"],
                "share": records[0]["share"],
                "edges": float(np.mean([record["count"] for record in records])),
                "mean_degree": float(np.mean([record["mean_degree"] for record in records])),
                "alpha": float(np.median([record["alpha"] for record in records])),
                "alpha_after": after if math.isfinite(after) else None,
                "bound": bound if math.isfinite(bound) else None,
                "distance": distance,
                "distance_error": error,
                "distances": [record["distance"] for record in records],
                "largest_distance": records[0]["largest"],
                "subgraphs": sum(record["draws"] for record in records),
                "checked": sum(record["finite"] for record in records),
                "violations": sum(record["violations"] for record in records),
                "informative": float(np.mean([record["informative"] for record in records])),
                "infinite": float(np.mean([record["infinite"] for record in records])),
                "tightness": median_of_known([record["tightness"] for record in records]),
            }
        )
    return rows


def median_of_known(values: Sequence[float | None]) -> float | None:
    """The median of what is not None; None where nothing is left.

    >>> median_of_known([0.1, None, 0.3]), median_of_known([None])
    (0.2, None)
    """
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def judge(rows: Sequence[Row]) -> list[Verdict]:
    """The inequality, what it says, and the comparison it is drawn on for."""
    kinds = _kinds(rows)
    return [
        _holds(rows),
        *(_says(rows, kind) for kind in kinds),
        *(_moves_less(rows, kind) for kind in kinds),
        _matters(rows),
    ]


def _kinds(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["kind"] for row in rows))


def _holds(rows: Sequence[Row]) -> Verdict:
    inside = [row for row in rows if row["dropped"] != "between"]
    wrong = sum(row["violations"] for row in inside)
    tight = median_of_known([row["tightness"] for row in inside])
    said = "" if tight is None else f"; the distance is {tight:.1%} of the bound in the median"
    return judged(
        "Dropping edges inside clusters moves the first q modes by at most α + α'",
        wrong == 0 and tight is not None,
        f"violated in {wrong} of {_checked(inside)}{said}",
    )


def _checked(rows: Sequence[Row]) -> str:
    """How many subgraphs have a bound that can be violated, and how many have none."""
    total, finite = (sum(row[key] for row in rows) for key in ("subgraphs", "checked"))
    return f"{finite:,} subgraphs with a finite bound; it is infinite for {total - finite:,} more"


def _says(rows: Sequence[Row], kind: str) -> Verdict:
    """Whether the bound is smaller than the largest distance there is."""
    mine = [row for row in rows if row["kind"] == kind and row["dropped"] == "inside"]
    informative = float(np.mean([row["informative"] for row in mine]))
    return judged(
        f"The bound can be small when edges inside clusters are dropped: {kind}",
        informative > 0.5,
        f"α = {mine[0]['alpha']:.2f}; α + α' is below √q = {mine[0]['largest_distance']:.2f}, the largest distance "
        f"there is, for {informative:.0%} of the subgraphs with {mine[0]['share']:.0%} to {mine[-1]['share']:.0%} of "
        "those edges dropped",
    )


def _matters(rows: Sequence[Row]) -> Verdict:
    """The proof holds for edges between clusters word by word, and gives a smaller bound there."""
    between = {(row["kind"], row["share"]): row for row in rows if row["dropped"] == "between"}
    inside = {(row["kind"], row["share"]): row for row in rows if row["dropped"] == "as many inside"}
    pairs = [(between[key]["bound"] or math.inf, inside[key]["bound"] or math.inf) for key in between]
    smaller = sum(out < into for out, into in pairs)
    wrong = sum(row["violations"] for row in between.values())
    return Verdict(
        "The bound validates that edges between clusters matter more than edges inside",
        IMPOSSIBLE,
        "the proof never uses that dropped edges lie inside: α + α' also bounds the distance when edges between "
        f"clusters are dropped ({wrong} violations in {_checked(list(between.values()))}), and it is the smaller "
        f"bound of the two in {smaller} of {len(pairs)} settings with as many edges dropped",
    )


def _moves_less(rows: Sequence[Row], kind: str) -> Verdict:
    """Whether the modes move less when as many edges are dropped inside as between."""
    mine = {name: [row for row in rows if row["kind"] == kind and row["dropped"] == name] for name in NAMES}
    clear, factors = 0, []
    for out, into in zip(mine["between"], mine["as many inside"], strict=True):
        gap, error = mean_and_error(np.array(out["distances"]) - np.array(into["distances"]))
        clear += gap > CLEAR * error
        factors.append(out["distance"] / max(into["distance"], ROUNDING))
    return judged(
        f"Dropping edges inside clusters moves the first q modes less than dropping as many between: {kind}",
        clear == len(factors),
        f"clearly less at {clear} of {len(factors)} shares; between clusters they move {min(factors):.1f} to "
        f"{max(factors):.1f} times as far",
    )
