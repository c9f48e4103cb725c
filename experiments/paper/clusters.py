"""Figure 1 and the examples of the supplement: graphs with known clusters, their spectrum and their weights."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from scipy.stats import rankdata
from torch import Tensor

import tadropedge as tde
from experiments.claims import Claim
from experiments.frame import Row, Run, item
from experiments.paper.theory import dense
from experiments.plots import panels

# The paper does not say how its graphs were made: these are connected block models with few links between.
KINDS = {  # clusters, nodes of each, links inside and between
    "2 clusters of 40 nodes, links 0.8 inside and 0.003 between": (2, 40, 0.8, 0.003),
    "3 clusters of 20 nodes, links 0.5 inside and 0.01 between": (3, 20, 0.5, 0.01),
    "3 clusters of 20 nodes, links 0.4 inside and 0.01 between": (3, 20, 0.4, 0.01),
    "5 clusters of 20 nodes, links 0.4 inside and 0.005 between": (5, 20, 0.4, 0.005),
    "7 clusters of 20 nodes, links 0.4 inside and 0.004 between": (7, 20, 0.4, 0.004),
    "5 clusters of 10 nodes, links 0.6 inside and 0.2 between": (5, 10, 0.6, 0.2),  # that of source localisation
}
NAMES = list(KINDS)
FIG1, EXAMPLES = NAMES[1:2], NAMES[2:]
SHOWN = 6  # eigenvalues of Figure 1
GOOD = 0.9  # what a share must reach to count as "relatively uniform" or as "identified"
ATTEMPTS = 10_000


def clustered(kind: str | tuple[int, int, float, float], seed: int, stream: int = 2) -> tuple[tde.Graph, Tensor]:
    """A connected block model of a kind, and the cluster of each node ``[N]``; ``stream`` tells uses of a seed apart.

    >>> graph, clusters = clustered((3, 10, 0.6, 0.02), seed=1)
    >>> graph.num_nodes, graph.components.count, clusters.bincount().tolist()
    (30, 1, [10, 10, 10])
    """
    count, nodes, inside, between = KINDS[kind] if isinstance(kind, str) else kind
    label, random = np.repeat(np.arange(count), nodes), np.random.default_rng([seed, stream])
    low, high = np.triu_indices(len(label), 1)
    probability = np.where(label[low] == label[high], inside, between)
    for _ in range(ATTEMPTS):
        chosen = random.random(len(low)) < probability
        graph = tde.Graph.from_edge_index(np.stack((low[chosen], high[chosen])), num_nodes=len(label))
        if graph.components.count == 1:
            return graph, torch.from_numpy(label)
    raise RuntimeError(f"none of {ATTEMPTS} graphs of {kind} was connected")


def joins(graph: tde.Graph, clusters: Tensor) -> Tensor:
    """Which edges join two clusters, bool ``[M]``."""
    low, high = clusters[graph.pairs]
    return low != high


def contrast(kind: str, number: int, shown: int) -> Row:
    """One graph: where its largest eigengap is, how uniform its modes are, how well weights name edges between.

    ``uniform`` is the share of the variance of modes 1 … q − 1 that lies between clusters; ``auc`` the probability that
    an edge between clusters outweighs one inside; ``top`` the share of edges between clusters among as many of the
    largest weights.
    """
    graph, clusters = clustered(kind, number)
    q, between, label = int(clusters.max()) + 1, joins(graph, clusters).numpy(), clusters.numpy()
    values, modes = (part.numpy() for part in torch.linalg.eigh(dense(graph, "laplacian")))
    scores = tde.edge_scores(graph, "aggregate", q=q).numpy()
    lowest, ranks = modes[:, 1:q], rankdata(scores)
    means = np.stack([lowest[label == cluster].mean(axis=0) for cluster in range(q)])
    largest = np.argsort(-scores, kind="stable")[: between.sum()]
    least = between.sum() * (between.sum() + 1) / 2
    return {
        "clusters": q,
        "graph": number,
        "edges": graph.num_edges,
        "between": int(between.sum()),
        "eigenvalues": (values[:shown].round(12) + 0.0).tolist(),  # no −0
        "gap_after": int(np.diff(values[:shown]).argmax()),
        "uniform": float((means[label] ** 2).sum() / (lowest**2).sum()),
        "auc": float((ranks[between].sum() - least) / (between.sum() * (~between).sum())),
        "top": float(between[largest].mean()),
        "median_between": float(np.median(scores[between])),
        "median_inside": float(np.median(scores[~between])),
    }


def identified(name: str, rows: pd.DataFrame, of: str = "") -> Claim:
    """The largest weights stand on the edges between clusters."""
    holds = (rows["auc"] >= GOOD) & (rows["top"] >= GOOD)
    return Claim(name, rows, holds, almost=GOOD, of=of, shows={"auc": ".3f", "top": ".1%"})


def fig1_claims(rows: pd.DataFrame) -> list[Claim]:
    """The three things that Figure 1 is drawn to show, on every graph."""
    q = 3
    gap = rows["gap_after"] == q - 1
    return [
        Claim("gap", rows, gap, almost=GOOD, shows={"gap_after": "d"}),
        Claim("uniform", rows, rows["uniform"] >= GOOD, almost=GOOD, shows={"uniform": ".3f"}),
        identified("scores", rows),
    ]


def example_claims(rows: pd.DataFrame) -> list[Claim]:
    """Whether weights identify the edges between clusters, kind by kind; and a contradiction of text and caption."""
    kinds = [mine for _, mine in rows.groupby(["clusters", _inside(rows)], sort=False)]
    claims = []
    for mine in kinds:
        q, nodes = mine["clusters"].iloc[0], mine["eigenvalues"].iloc[0]
        own = mine["between"].median() > 0.2 * mine["edges"].median()  # as many as between those of source localisation
        claims.append(identified("elsewhere" if own else "scores", mine, of=f"{q} clusters"))
        assert len(nodes) > q
    contradiction = rows.head(1)
    return [*claims, Claim("number", contradiction, [False], impossible=True, printed="5, 5 and 7; 3, 5 and 7")]


def _inside(rows: pd.DataFrame) -> Sequence[bool]:
    """Whether many edges join clusters, graph by graph."""
    return (rows["between"] > 0.2 * rows["edges"]).to_numpy()


def figure(rows: pd.DataFrame) -> Figure:
    """The first eigenvalues of the first graphs: a gap after three."""
    few = rows.head(10)
    long = few.assign(number=[list(range(len(values))) for values in few["eigenvalues"]], picture="3 clusters")
    long = long.explode(["number", "eigenvalues"]).astype({"number": int, "eigenvalues": float})
    return panels(long, x="number", y="eigenvalues", columns="picture", lines=["graph"])


@item(
    "fig1", where="Figure 1", protocol="every graph a block model of its own", claims=fig1_claims, figure=figure,
    quick={"graphs": 20}, paper={"kind": FIG1, "graphs": 100},
)  # fmt: skip
def fig1(run: Run, kind: str) -> list[Row]:
    """The spectrum and the weights of many graphs of three clusters."""
    return [contrast(kind, run.seed + number, SHOWN) for number in range(run["graphs"])]


@item(
    "examples", where="Supplement, examples", protocol="every graph a block model of its own", claims=example_claims,
    quick={"graphs": 10}, paper={"kind": EXAMPLES, "graphs": 50},
)  # fmt: skip
def examples(run: Run, kind: str) -> list[Row]:
    """The same of graphs with 3, 5 and 7 clusters, and of that of source localisation."""
    return [contrast(kind, run.seed + number, KINDS[kind][0] + 3) for number in range(run["graphs"])]
