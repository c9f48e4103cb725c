"""Proposition 1 measured: how far the low modes move when edges inside, or between, clusters are dropped."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from experiments.claims import Claim
from experiments.frame import Row, Run, item
from experiments.paper.clusters import NAMES, clustered, joins
from experiments.paper.theory import dense
from experiments.plots import panels
from tadropedge import Graph

KINDS = [NAMES[0], NAMES[1], NAMES[3], NAMES[5]]
MIXED = NAMES[5]  # where most edges are between clusters
ROUNDING = 1e-9
CLEAR = 2.0
MEDIANS = ["alpha", "alpha_after", "bound", "tightness"]


def claims(rows: pd.DataFrame) -> list[Claim]:
    """The bound, whether it says anything, and whether edges between clusters matter more."""
    inside = rows[rows["dropped"] == "inside"]
    by = ["kind", "share"]
    pairs = rows[rows["dropped"] == "between"].merge(
        rows[rows["dropped"] == "as many inside"], on=by, suffixes=("", "_inside")
    )
    pairs["times_as_far"] = pairs["distance"] / pairs["distance_inside"]
    gap = pairs["distance"] - pairs["distance_inside"]
    farther = gap > CLEAR * np.hypot(pairs["distance_error"], pairs["distance_error_inside"])
    smaller = pairs["bound"].fillna(np.inf) >= pairs["bound_inside"].fillna(np.inf)
    mostly = pairs["kind"] != MIXED
    says = inside.groupby("kind", as_index=False, sort=False)["informative"].mean()
    shows = {"times_as_far": ".1f"}
    return [
        Claim("holds", inside, inside["violations"] == 0, by=by, shows={"violations": "d", "tightness": ".1%"}),
        Claim("says", says.nlargest(1, "informative"), says["informative"].nlargest(1) > 0.5, by=["kind"],
              shows={"informative": ".0%"}),
        Claim("moves-less", pairs[mostly], farther[mostly], by=by, shows=shows),
        Claim("matters", pairs, smaller, by=by, shows={"bound": ".3g", "bound_inside": ".3g"}, impossible=True),
        Claim("moves-less-elsewhere", pairs[~mostly], farther[~mostly], by=by, shows=shows),
    ]  # fmt: skip


def figure(rows: pd.DataFrame) -> Figure:
    """Measured distances against the share of edges that is dropped."""
    short = rows.assign(kind=rows["kind"].str.partition(", links")[0])
    return panels(short, x="share", y="distance", columns="kind", lines=["dropped"], error="distance_error", log=True)


@item(
    "proposition1",
    where="Proposition 1",
    protocol="random subgraphs of block models, the unit is a graph",
    claims=claims,
    figure=figure,
    quick={"share": [0.1, 0.3, 0.5, 0.7], "graphs": 8, "draws": 8},
    paper={"kind": KINDS, "share": [n / 10 for n in range(1, 10)], "graphs": 30, "draws": 20},
)
def measure(run: Run, kind: str, share: float) -> list[Row]:
    """Drop a share of the edges inside, a share of those between, and as many inside: distance and bound."""
    found: dict[str, list[Row]] = {}
    for number in range(run["graphs"]):
        graph, clusters = clustered(kind, run.seed + number)
        between, whole = joins(graph, clusters), alpha_realizable(graph, clusters)
        random = np.random.default_rng([run.seed + number, 3, round(1000 * share)])
        inside_count, between_count = (max(1, round(share * int(mask.sum()))) for mask in (~between, between))
        plans = {
            "inside": (~between, inside_count),
            "between": (between, between_count),
            "as many inside": (~between, min(between_count, int((~between).sum()))),
        }
        for name, (candidates, count) in plans.items():
            keep = masks(candidates, count, run["draws"], random)
            part = alpha_realizable(graph, clusters, keep)
            distance, bound = subspace_distance(whole.modes, part.modes), whole.alpha + part.alpha
            finite = torch.isfinite(bound)
            tightness = float((distance[finite] / bound[finite]).median()) if bool(finite.any()) else np.nan
            found.setdefault(name, []).append(
                {
                    "edges": count,
                    "alpha": float(whole.alpha),
                    "alpha_after": float(part.alpha.median()),
                    "distance": float(distance.mean()),
                    "bound": float(bound.median()),
                    "violations": int((distance > bound + ROUNDING).sum()),
                    "informative": float((bound < whole.largest_distance).double().mean()),
                    "infinite": float((~finite).double().mean()),
                    "tightness": tightness,
                }
            )
    return [summary(name, pd.DataFrame(graphs)) for name, graphs in found.items()]


def masks(candidates: Tensor, count: int, draws: int, random: np.random.Generator) -> Tensor:
    """Keep all edges but ``count`` random ones among the ``candidates [M]``, bool ``[draws, M]``."""
    places = candidates.nonzero().flatten().numpy()
    keep = torch.ones(draws, len(candidates), dtype=torch.bool)
    for draw in range(draws):
        keep[draw, torch.from_numpy(random.choice(places, count, replace=False))] = False
    return keep


def summary(name: str, graphs: pd.DataFrame) -> Row:
    """Means over graphs, and medians of what may be infinite, which is then missing."""
    medians = graphs[MEDIANS].median()
    rest = graphs.drop(columns=["violations", *MEDIANS]).mean()
    mean = pd.concat((rest, medians)).replace(np.inf, np.nan).to_dict()
    error = graphs["distance"].std(ddof=1) / len(graphs) ** 0.5
    return {"dropped": name, **mean, "distance_error": error, "violations": int(graphs["violations"].sum()),
            "graphs": len(graphs)}  # fmt: skip


# -- α-realizability --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Realizability:
    """How well a q-partition fits subgraphs ``[...]``: the smallest α, infinite where λ_q = 0; β̄; and the modes."""

    alpha: Tensor
    mean_degree: Tensor
    modes: Tensor

    @property
    def largest_distance(self) -> float:
        """√min(q, N − q), which no distance of two subspaces exceeds: a larger bound says nothing."""
        nodes, q = self.modes.shape[-2:]
        return math.sqrt(min(q, nodes - q))


def alpha_realizable(graph: Graph, clusters: Tensor, keep: Tensor | None = None) -> Realizability:
    """The smallest α with β̄ ≤ α λ_q / √(2 q): how well the ``clusters [N]`` fit the graph, or subgraphs ``[..., M]``.

    β̄ is the root mean square of β(G_κ), the number of edges that leave cluster κ over the root of its size.

    >>> graph = Graph.from_edge_index([[0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]])  # two triangles and an edge
    >>> round(alpha_realizable(graph, torch.tensor([0, 0, 0, 1, 1, 1])).alpha.item(), 4)  # β̄ = 1 / √3, λ_2 = 3, q = 2
    0.3849
    """
    q, (low, high) = int(clusters.max()) + 1, clusters[graph.pairs]
    leaving = (low != high).double() if keep is None else (low != high) * keep.double()
    counts = leaving.new_zeros((*leaving.shape[:-1], q))
    for end in (low, high):
        counts.scatter_add_(-1, end.expand_as(leaving), leaving)
    mean = (counts.square() / torch.bincount(clusters)).mean(dim=-1).sqrt()
    values, modes = torch.linalg.eigh(dense(graph, "laplacian", keep))
    # an eigenvalue that is zero but for rounding means more than q components
    zero = values[..., q] <= 1e-12 * values[..., -1].clamp_min(1.0) * graph.num_nodes
    alpha = torch.where(zero, torch.inf, mean * math.sqrt(2 * q) / torch.where(zero, 1.0, values[..., q]))
    return Realizability(alpha, mean, modes[..., :q])


def subspace_distance(first: Tensor, second: Tensor) -> Tensor:
    """√(Σ_(κ<q) Σ_(i≥q) |u_κ · u'_i|²), the distance of two subspaces given by orthonormal bases ``[..., N, q]``.

    >>> plane = torch.eye(3)[:, :2]
    >>> subspace_distance(plane, plane[:, [1, 0]]).item(), subspace_distance(plane, torch.eye(3)[:, 1:]).item()
    (0.0, 1.0)
    """
    return torch.linalg.matrix_norm(second - first @ (first.mT @ second))
