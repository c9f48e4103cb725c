"""Section 4.2 and Eq. 11: the relative error E of one dropped edge, beside the edge's weight and its degrees."""

import numpy as np
import pandas as pd
import torch
from torch import Tensor

import tadropedge as tde
from experiments.claims import Claim
from experiments.frame import Row, Run, item
from experiments.paper.clusters import NAMES, clustered, joins
from experiments.paper.theory import ErrorModel, dense, largest_component, rank_correlation

FAMILIES = {"3 clusters of 20": NAMES[1], "5 clusters of 20": NAMES[3], "5 clusters of 10": NAMES[5]}
NEIGHBOURHOODS = {"cora neighbourhoods": "cora", "citeseer neighbourhoods": "citeseer"}
NODES = 200  # of a neighbourhood
REPRESENTED = 1e-6  # a larger share of S − S' that no E represents is no rounding
CLEAR = 2.0


def claims(rows: pd.DataFrame) -> list[Claim]:
    """What ‖E‖ of an edge goes with; Eq. 11 as printed, and with N_i and N_j exchanged."""
    adjacency = rows[rows["printed"].notna()]
    weight, degree, between = (_means(rows, name) for name in ("with_weight", "with_degree", "between"))
    by = ["family", "normalization"]
    both = weight.merge(degree, on=by)
    return [
        Claim("printed", adjacency, adjacency["printed"] <= REPRESENTED, by=["family"], shows={"printed": ".4f"},
              impossible=True),
        Claim("meant", adjacency, adjacency["meant"] <= REPRESENTED, by=["family"], shows={"meant": ".1g"}),
        Claim("weights", weight, weight["with_weight"] > CLEAR * weight["error"], by=by,
              shows={"with_weight": "+.2f"}),
        Claim("between", between, between["between"] - 1 > CLEAR * between["error"], by=by,
              shows={"between": ".2f"}),
        Claim("degrees", both, both["with_degree"].abs() > both["with_weight"].abs(), by=by,
              shows={"with_degree": "+.2f"}),
    ]  # fmt: skip


def _means(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """The mean over graphs, and its error."""
    groups = rows[rows[name].notna()].groupby(["family", "normalization"], sort=False)[name]
    return groups.agg(**{name: "mean", "error": "sem"}).reset_index()


@item(
    "edge-errors",
    where="Section 4.2, Eq. 11",
    protocol="edges dropped one at a time, the unit is a graph",
    claims=claims,
    quick={"graphs": 2, "edges": 10},
    paper={"family": [*FAMILIES, *NEIGHBOURHOODS], "normalization": ["gcn-residual", "gcn", "adjacency"],
           "graphs": 6, "edges": 80},
)  # fmt: skip
def measure(run: Run, family: str, normalization: str) -> list[Row]:
    """Drop all edges of a block model, or some of a neighbourhood, one at a time."""
    return [
        {"graph": number, **dropped(run, family, normalization, run.seed + number)} for number in range(run["graphs"])
    ]


def dropped(run: Run, family: str, normalization: str, seed: int) -> Row:
    """One graph: rank correlations of ‖E‖ over its edges, and how far Eq. 11 is from S − S', as shares of it."""
    graph, scores, between = _case(run, family, seed)
    count = min(run["edges"] if family in NEIGHBOURHOODS else graph.num_edges, graph.num_edges)
    places = torch.from_numpy(np.sort(np.random.default_rng([seed, 5]).choice(graph.num_edges, count, replace=False)))
    whole = dense(graph, normalization)
    model, norms, exists, printed, meant = ErrorModel(whole), [], [], [], []
    for some in places.split(max(1, 2**24 // graph.num_nodes**2)):
        keep = torch.ones(len(some), graph.num_edges, dtype=torch.bool)
        keep[torch.arange(len(some)), some] = False
        other = dense(graph, normalization, keep)
        found = model.of(other)
        norms.append(found.norm)
        exists.append(found.residual <= REPRESENTED * found.change)
        printed.append(torch.linalg.matrix_norm(as_printed(found.matrix, whole) - whole + other) / found.change)
        meant.append(torch.linalg.matrix_norm(as_meant(found.matrix, whole) - whole + other) / found.change)
    there = torch.cat(exists)
    norm, known = torch.cat(norms)[there], places[there]
    degrees = torch.bincount(graph.pairs.flatten(), minlength=graph.num_nodes)[graph.pairs[:, known]].amin(dim=0)
    row = {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "dropped": count,
        "with_error": len(known),
        "error_norm": float(norm.median()),
        "with_weight": rank_correlation(scores[known], norm),
        "with_degree": rank_correlation(degrees, norm),
        "between": None if between is None else _ratio(norm, between[known]),
    }
    equation = {"printed": printed, "meant": meant} if normalization == "adjacency" else {}
    return row | {name: float(torch.cat(values)[there].median()) for name, values in equation.items()}


def _ratio(norm: Tensor, between: Tensor) -> float | None:
    """The median ‖E‖ between clusters over that inside; None where one of the two is missing."""
    if bool(between.all()) or not bool(between.any()):
        return None
    return float(norm[between].median() / norm[~between].median())


def _case(run: Run, family: str, seed: int) -> tuple[tde.Graph, Tensor, Tensor | None]:
    """A graph, its weights, and which of its edges join two clusters, where that is known."""
    if family in FAMILIES:
        graph, clusters = clustered(FAMILIES[family], seed)
        return graph, tde.edge_scores(graph, "aggregate", q=int(clusters.max()) + 1), joins(graph, clusters)
    data = run.dataset(NEIGHBOURHOODS[family])
    whole = largest_component(data.graph)
    part = neighbourhood(whole, int(np.random.default_rng([seed, 4]).integers(whole.num_nodes)), NODES)
    return part, tde.edge_scores(part, "aggregate", q=data.num_classes), None


def neighbourhood(graph: tde.Graph, start: int, count: int) -> tde.Graph:
    """The ``count`` nodes that are nearest to one of a connected graph, as a graph of their own.

    >>> path = tde.Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 4]])
    >>> neighbourhood(path, 4, 3).pairs.tolist()
    [[0, 1], [1, 2]]
    """
    low, high = graph.pairs
    steps = torch.full((graph.num_nodes,), graph.num_nodes)
    steps[start] = 0
    while int((steps < graph.num_nodes).sum()) < count:
        spread = steps.clone()
        for here, there in ((low, high), (high, low)):
            spread.scatter_reduce_(0, there, steps[here] + 1, "amin")
        steps = spread.clamp_max(graph.num_nodes)
    inside = torch.zeros(graph.num_nodes, dtype=torch.bool)
    inside[steps.argsort(stable=True)[:count]] = True  # those nearer first, so all of them are connected
    number, kept = inside.cumsum(0) - 1, inside[low] & inside[high]
    return tde.Graph.from_edge_index(number[graph.pairs[:, kept]], num_nodes=count)


def as_printed(error: Tensor, adjacency: Tensor) -> Tensor:
    """Σ_(τ ∈ N_i) [E]_iτ + Σ_(τ ∈ N_j) [E]_τj, the right side of Eq. 11, for E ``[..., N, N]``."""
    own = (error * adjacency).sum(dim=-1)  # Σ_(τ ∈ N_i) [E]_iτ
    return own[..., :, None] + own[..., None, :]


def as_meant(error: Tensor, adjacency: Tensor) -> Tensor:
    """Σ_(τ ∈ N_j) [E]_iτ + Σ_(τ ∈ N_i) [E]_τj, which is E S + S E for an adjacency matrix S."""
    return error @ adjacency + adjacency @ error
