"""Section 4.2 and Eq. 11: the relative error E of one dropped edge, beside the edge's weight and its degrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tadropedge._old.diagnostics import ErrorModel
from tadropedge._old.graph import Graph
from tadropedge._old.paper.clustered import clustered
from tadropedge._old.paper.figures import theory as figures
from tadropedge._old.paper.item import Bench, Item, Verdict
from tadropedge._old.paper.items.theorem1 import largest_component
from tadropedge._old.paper.journal import Journal
from tadropedge._old.paper.judge import CLEAR, judged, mean_and_error, where_it_holds
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import Measured, Row, grouped, title
from tadropedge._old.paper.trained_filters import rank_correlation
from tadropedge._old.scores.aggregate import aggregate_resistance
from tadropedge._old.shift import shift_operator

REPRESENTED = 1e-6  # a larger share of S − S' that no E represents is no rounding
AT_ONCE = 2**24  # numbers of a batch of dense operators


@dataclass(frozen=True, kw_only=True)
class Edges(Row):
    """Single edges of one graph, dropped one at a time: rank correlations of ‖E‖ over the edges that have an E.

    ``printed`` and ``meant`` are how far the right sides of Eq. 11, as printed and with N_i and N_j exchanged, are from
    S − S', as shares of it, in the median; for the adjacency matrix alone. ``between`` is the median ‖E‖ of edges
    between clusters over that of edges inside, where clusters are known.
    """

    family: str
    graph: int
    nodes: int
    edges: int
    normalization: str
    dropped: int
    with_error: int
    error_norm: float | None
    with_weight: float | None
    with_degree: float | None
    between: float | None
    printed: float | None
    meant: float | None


ROWS = (Edges,)


@dataclass(frozen=True, eq=False)
class Weighted:
    """A graph, its scores ``[M]``, and which of its edges join two clusters, where that is known."""

    graph: Graph
    scores: Tensor
    between: Tensor | None = None


def run(bench: Bench) -> Item:
    """Drop edges one by one, on one graph after the other."""
    recipe, journal = bench.recipe, Journal(bench)
    jobs = [(family, number) for family in recipe["families"] for number in range(recipe["graphs"])]
    rows: list[Edges] = []
    for family, number in bench.each("graphs", jobs, lambda job: job[0]["name"]):
        case = _case(bench, family, bench.seed + number)
        data = (case.graph.fingerprint, case.between)
        make = partial(_measure, case, recipe, family, number, bench.seed + number)
        rows += journal.rows(f"{family['name']}/{number}", data, Edges, make)
    pictures = {"edge-errors": figures.edge_errors(rows)}
    return Item(rows, judge(rows, recipe), pictures, recipe.said(), run=journal.run)


def neighbourhood(graph: Graph, start: int, count: int) -> Graph:
    """The ``count`` nodes that are nearest to one of a connected graph, as a graph of their own.

    >>> path = Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 4]])
    >>> neighbourhood(path, 4, 3).pairs.tolist()
    [[0, 1], [1, 2]]
    """
    low, high = graph.pairs
    steps = torch.full((graph.num_nodes,), graph.num_nodes, device=graph.device)
    steps[start] = 0
    while int((steps < graph.num_nodes).sum()) < count:
        spread = steps.clone()
        for here, there in ((low, high), (high, low)):
            spread.scatter_reduce_(0, there, steps[here] + 1, "amin")
        steps = spread.clamp_max(graph.num_nodes)
    inside = torch.zeros(graph.num_nodes, dtype=torch.bool, device=graph.device)
    inside[steps.argsort(stable=True)[:count]] = True  # those nearer first, so all of them are connected
    number = inside.cumsum(0) - 1
    kept = inside[low] & inside[high]
    return Graph.from_edge_index(number[graph.pairs[:, kept]], num_nodes=count)


def _case(bench: Bench, family: Mapping[str, Any], seed: int) -> Weighted:
    """A block model, or a neighbourhood in the largest component of a dataset."""
    if "clusters" in family:
        made = clustered(family, seed)
        return Weighted(made.graph, aggregate_resistance(made.graph, made.q), made.between)
    dataset = bench.dataset(family["dataset"])
    graph = largest_component(dataset.graph)
    start = int(np.random.default_rng([seed, 4]).integers(graph.num_nodes))
    part = neighbourhood(graph, start, family["nodes"])
    return Weighted(part, aggregate_resistance(part, dataset.num_classes))


def _measure(case: Weighted, recipe: Recipe, family: Mapping[str, Any], number: int, seed: int) -> list[Edges]:
    """One row for each normalisation; the same edges are dropped for all."""
    count = min(recipe["edges"] if "dataset" in family else case.graph.num_edges, case.graph.num_edges)
    chosen = np.sort(np.random.default_rng([seed, 5]).choice(case.graph.num_edges, count, replace=False))
    places = torch.from_numpy(chosen).to(case.graph.device)
    shared = {
        "family": family["name"],
        "graph": number,
        "nodes": case.graph.num_nodes,
        "edges": case.graph.num_edges,
        "dropped": count,
    }
    return [Edges(normalization=kind, **shared, **dropped(case, kind, places)) for kind in recipe["normalizations"]]


def dropped(case: Weighted, normalization: str, places: Tensor) -> dict[str, Any]:
    """Drop the edges at ``places [D]`` one at a time, and compare ‖E‖ with what is known of each of them."""
    graph = case.graph
    whole = shift_operator(graph, normalization=normalization, dtype=torch.float64).to_dense()
    model = ErrorModel(whole)
    norms, exists, printed, meant = [], [], [], []
    for some in places.split(max(1, AT_ONCE // graph.num_nodes**2)):
        keep = torch.ones(len(some), graph.num_edges, dtype=torch.bool, device=graph.device)
        keep[torch.arange(len(some), device=graph.device), some] = False
        other = shift_operator(graph, keep, normalization=normalization, dtype=torch.float64).to_dense()
        found = model.of(other)
        norms.append(found.norm)
        exists.append(found.residual <= REPRESENTED * found.change)
        if normalization == "adjacency":
            change = whole - other
            printed.append(torch.linalg.matrix_norm(as_printed(found.matrix, whole) - change) / found.change)
            meant.append(torch.linalg.matrix_norm(as_meant(found.matrix, whole) - change) / found.change)
    norm, there = torch.cat(norms), torch.cat(exists)
    known = places[there]
    low, high = graph.pairs[:, known]
    degrees = torch.bincount(graph.pairs.flatten(), minlength=graph.num_nodes)
    norm = norm[there]
    enough = len(known) > 2

    def correlation(values: Tensor) -> float | None:
        return rank_correlation(values.double().cpu().numpy(), norm.cpu().numpy()) if enough else None

    def middle(values: Sequence[Tensor]) -> float | None:
        return float(torch.cat(list(values))[there].median()) if values and enough else None

    return {
        "with_error": len(known),
        "error_norm": float(norm.median()) if enough else None,
        "with_weight": correlation(case.scores[known]),
        "with_degree": correlation(torch.minimum(degrees[low], degrees[high])),
        "between": _between(norm, None if case.between is None else case.between[known]),
        "printed": middle(printed),
        "meant": middle(meant),
    }


def _between(norm: Tensor, between: Tensor | None) -> float | None:
    """The median ‖E‖ between clusters over that inside; None where one of the two is missing."""
    if between is None or not bool(between.any()) or bool(between.all()):
        return None
    return float(norm[between].median() / norm[~between].median())


def as_printed(error: Tensor, adjacency: Tensor) -> Tensor:
    """Σ_(τ ∈ N_i) [E]_iτ + Σ_(τ ∈ N_j) [E]_τj, the right side of Eq. 11, for E ``[..., N, N]``."""
    own = (error * adjacency).sum(dim=-1)  # Σ_(τ ∈ N_i) [E]_iτ
    return own[..., :, None] + own[..., None, :]


def as_meant(error: Tensor, adjacency: Tensor) -> Tensor:
    """Σ_(τ ∈ N_j) [E]_iτ + Σ_(τ ∈ N_i) [E]_τj, which is E S + S E for an adjacency matrix S."""
    return error @ adjacency + adjacency @ error


def judge(rows: Sequence[Edges], recipe: Recipe) -> list[Verdict]:
    """What ‖E‖ of an edge goes with; Eq. 11 as printed and as meant."""
    by_weight, by_degree, factors = (_means(rows, what) for what in ("with_weight", "with_degree", "between"))
    adjacency = [row for row in rows if row.normalization == "adjacency" and row.printed is not None]
    off, meant = [row.printed or 0.0 for row in adjacency], max((row.meant or 0.0 for row in adjacency), default=0.0)
    there = {"exist": sum(row.with_error for row in adjacency), "tried": sum(row.dropped for row in adjacency)}
    ends = {"least": min(off, default=0.0), "most": max(off, default=0.0)}
    stronger = {key: abs(by_degree[key].value) > abs(one.value) for key, one in by_weight.items()}
    larger = {key: one.value - 1 > CLEAR * one.error for key, one in factors.items()}
    return [
        judged(recipe, "printed", ends["most"] <= REPRESENTED or None, **ends),
        judged(recipe, "meant", meant <= REPRESENTED, meant=meant),
        judged(
            recipe,
            "weights",
            where_of_both({key: one.above(CLEAR) for key, one in by_weight.items()}),
            said=_told(by_weight, "+.2f"),
            **there,
        ),
        judged(recipe, "between", where_of_both(larger), said=_told(factors, ".2f")),
        judged(recipe, "degrees", where_of_both(stronger), said=_told(by_degree, "+.2f")),
    ]


def _means(rows: Sequence[Edges], what: str) -> dict[tuple[str, str], Measured]:
    """A number by normalisation and family: its mean over the graphs that have it, and the error."""
    groups = grouped(
        (row for row in rows if getattr(row, what) is not None), lambda row: (row.normalization, _title(row.family))
    )
    return {key: mean_and_error([getattr(row, what) for row in mine]) for key, mine in groups.items()}


def where_of_both(found: Mapping[tuple[str, str], bool]) -> bool | str:
    """Where something holds that has two names: the second ones by the first.

    >>> where_of_both({("gcn", "Cora"): True, ("gcn", "karate"): False, ("adjacency", "Cora"): False})
    'gcn: Cora'
    """
    if len(set(found.values())) == 1:
        return next(iter(found.values()))
    holds = {
        first: where_it_holds({second: found[first, second] for _, second in keys})
        for first, keys in grouped(found, lambda key: key[0]).items()
    }
    return "; ".join(f"{first}: {'all' if seconds is True else seconds}" for first, seconds in holds.items() if seconds)


def _told(found: Mapping[tuple[str, str], Measured], form: str) -> str:
    """Means and errors, by normalisation."""
    kinds = grouped(found.items(), lambda pair: pair[0][0])
    return "; ".join(
        f"{kind}: " + ", ".join(f"{key[1]} {one.value:{form}} ± {one.error:.2f}" for key, one in pairs)
        for kind, pairs in kinds.items()
    )


def _title(family: str) -> str:
    name, _, rest = family.partition(" ")
    return f"{title(name)} {rest}".strip()
