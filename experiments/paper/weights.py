"""Figure 2 and Remark 1: the distribution of aggregate resistance, and q by the eigengap."""

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

import tadropedge as tde
from experiments.claims import Claim
from experiments.frame import Row, Run, item
from experiments.paper.printed import DATASETS, LAPLACIANS, PRINTED, STRATEGIES
from experiments.paper.theory import rank_correlation
from experiments.plots import panels

QUANTILES = (0.5, 0.9, 0.95, 0.98, 0.99)
DECADE = 10.0  # how far γ may lie from the knee of the curve, as a factor: the paper searches around γ
ALIKE = 0.9  # a rank correlation from which on two choices of q count as one
CRITICAL = 0.1  # the share of the edges that are called critical
KEEP_PROB = 0.7
GRID = {"dataset": list(DATASETS), "laplacian": list(LAPLACIANS)}


def weight_claims(rows: pd.DataFrame) -> list[Claim]:
    """The curve of sorted weights turns upwards within a decade of γ, and few edges have large weights."""
    claims = []
    for dataset, mine in rows.groupby("dataset", sort=False):
        gamma = PRINTED["gamma"][DATASETS[dataset]]
        near = mine["knee"].between(gamma / DECADE, gamma * DECADE)
        claims.append(
            Claim("gamma", mine, near, by=["laplacian"], of=DATASETS[dataset], printed=f"γ = {gamma:g}",
                  shows={"knee": ".1e", "share_above_knee": ".2%"})
        )  # fmt: skip
    skewed = rows["quantile_0.99"] >= 10 * rows["quantile_0.5"]
    shows = {"quantile_0.5": ".1e", "quantile_0.99": ".1e"}
    return [*claims, Claim("skew", rows, skewed, by=["dataset", "laplacian"], shows=shows)]


def weight_figure(rows: pd.DataFrame) -> Figure:
    """Quantiles of the weights against the share of edges above them, with γ."""
    names = [f"quantile_{share:g}" for share in QUANTILES]
    long = rows.melt(["dataset", "laplacian"], names, "quantile", "weight")
    long["edges_above"] = 1 - long["quantile"].str.removeprefix("quantile_").astype(float)
    figure = panels(long, x="edges_above", y="weight", columns="dataset", lines=["laplacian"], log=True)
    for dataset, ax in zip(dict.fromkeys(rows["dataset"]), figure.axes, strict=True):
        ax.axhline(PRINTED["gamma"][DATASETS[dataset]], color="0.6", linestyle=":")
        ax.set_xscale("log")
    return figure


@item(
    "weights", where="Supplement, distribution of the weights", protocol="computed", quick={}, paper=GRID,
    claims=weight_claims, figure=weight_figure,
)  # fmt: skip
def distribution(run: Run, dataset: str, laplacian: str) -> list[Row]:
    """Quantiles of the weights, what lies above γ, and where their curve turns."""
    data = run.dataset(dataset)
    values = run.scores(data, laplacian).cpu().numpy()
    gamma, knee = PRINTED["gamma"][DATASETS[dataset]], tde.auto_gamma(torch.from_numpy(values))
    quantiles = {f"quantile_{share:g}": float(np.quantile(np.repeat(values, 2), share)) for share in QUANTILES}
    return [
        {
            "q": data.num_classes,
            "gamma": gamma,
            "share_above_gamma": float((values >= gamma).mean()),
            "knee": knee,
            "share_above_knee": float((values >= knee).mean()),
            **quantiles,
            "maximum": float(values.max()),
        }
    ]


def gap_claims(rows: pd.DataFrame) -> list[Claim]:
    """Whether it matters which of the two ways the tables use."""
    alike = rows["rank_correlation"] >= ALIKE
    shows = {"rank_correlation": ".3f", "overlap": ".0%"}
    return [Claim("ranks", rows, alike, by=["dataset", "laplacian"], shows=shows)]


@item("eigengap", where="Remark 1", protocol="computed", quick={}, paper=GRID, claims=gap_claims)
def eigengap(run: Run, dataset: str, laplacian: str) -> list[Row]:
    """Weights with q at the eigengap beside weights with q the number of classes."""
    data, settings = run.dataset(dataset), {"laplacian": laplacian}
    by_classes = run.scores(data, laplacian)
    by_gap = tde.edge_scores(data.graph, "aggregate", desired_clusters=data.num_classes, **settings)
    count = max(1, round(CRITICAL * len(by_gap)))
    tops = [set(scores.argsort(descending=True, stable=True)[:count].tolist()) for scores in (by_classes, by_gap)]
    differ = {}
    for rule in STRATEGIES:
        gamma = {} if rule == "cdf" else {"gamma": PRINTED["gamma"][DATASETS[dataset]]}
        one, other = (
            tde.keep_probabilities(scores, keep_prob=KEEP_PROB, rule=rule, **gamma) for scores in (by_classes, by_gap)
        )
        differ[rule] = float((one - other).abs().mean())
    overlap = len(tops[0] & tops[1]) / count
    return [{"rank_correlation": rank_correlation(by_classes, by_gap), "overlap": overlap, **differ}]
