"""Supplement, Figure 8: the variance of the outputs of an untrained GCN over sampled subgraphs."""

from functools import cache

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

import tadropedge as tde
from experiments.claims import Claim
from experiments.frame import Row, Run, item
from experiments.paper.printed import DATASETS, LAPLACIANS, PRINTED, SCRIPTS
from experiments.paper.theory import reduction, variance_terms
from experiments.plots import panels
from tadropedge.lab import Dataset, Experiment, Trial, View

NEAR = 0.05  # how far a reduction may lie from the printed one
CLEAR = 2.0  # standard errors
LAYERS, HIDDEN = 3, 128


def claims(rows: pd.DataFrame) -> list[Claim]:
    """Each dataset with the normalisation of DropEdge's scripts; the paper names neither it nor the Laplacian."""
    mine = rows[(rows["normalization"] == rows["dataset"].map(SCRIPTS)) & (rows["strategy"] == "cdf")]
    mine = mine.sort_values(["laplacian", "dataset", "keep_prob"], ascending=[True, True, False], kind="stable")
    groups = mine.groupby(["laplacian", "dataset"], sort=False)
    steps = mine[groups.cumcount() > 0]
    rise = (mine["variance_dropedge_same_p"] - groups["variance_dropedge_same_p"].shift()).loc[steps.index]
    growth = (mine["variance_reduction_same_p"] - groups["variance_reduction_same_p"].shift()).loc[steps.index]
    dropedge = steps.assign(rise=rise, growth=growth)
    once = dropedge["laplacian"] == mine["laplacian"].iloc[0]
    citeseer = mine[mine["dataset"] == "citeseer"]
    largest = citeseer.loc[citeseer.groupby("laplacian")["variance_reduction_same_p"].idxmax()]
    printed = PRINTED["variance"]["CiteSeer"]
    by = ["dataset", "keep_prob"]
    same_p, same_budget = (_clear(mine, how) for how in ("same_p", "same_budget"))
    return [
        Claim("rises", dropedge[once], dropedge[once]["rise"] > 0, by=by, shows={"variance_dropedge_same_p": ".3g"}),
        Claim("reduces", mine, same_p, by=[*by, "laplacian"], shows={"variance_reduction_same_p": "+.1%"}),
        Claim("grows", dropedge, dropedge["growth"] > 0, by=[*by, "laplacian"], either="laplacian",
              shows={"variance_reduction_same_p": "+.1%"}),
        Claim("printed", largest, (largest["variance_reduction_same_p"] - printed).abs() <= NEAR, by=["laplacian"],
              printed=f"{printed:.0%}", shows={"variance_reduction_same_p": "+.1%"}),
        Claim("reduces-same-budget", mine, same_budget, by=[*by, "laplacian"],
              shows={"variance_reduction_same_budget": "+.1%"}),
    ]  # fmt: skip


def _clear(rows: pd.DataFrame, how: str) -> pd.Series:
    reduced, error = rows[f"variance_reduction_{how}"], rows[f"variance_reduction_{how}_error"]
    return reduced > CLEAR * error


def figure(rows: pd.DataFrame) -> Figure:
    """By how much the variance is smaller than DropEdge's, at the same p and at the same budget."""
    mine = rows[(rows["normalization"] == rows["dataset"].map(SCRIPTS)) & (rows["strategy"] == "cdf")]
    ways = [
        mine.assign(beside=how.replace("_", " "), reduction=mine[f"variance_reduction_{how}"],
                    error=mine[f"variance_reduction_{how}_error"])
        for how in ("same_p", "same_budget")
    ]  # fmt: skip
    return panels(
        pd.concat(ways), x="keep_prob", y="reduction", columns="dataset", lines=["beside", "laplacian"],
        error="error", zero=True,
    )  # fmt: skip


@item(
    "variance",
    where="Supplement E, Figure 8",
    protocol="untrained networks, subgraphs with shared coins",
    claims=claims,
    figure=figure,
    quick={"dataset": ["cora", "citeseer"], "keep_prob": [0.3, 0.5, 0.9], "laplacian": ["combinatorial"],
           "samples": 10, "starts": 1},
    paper={"dataset": list(DATASETS), "keep_prob": [n / 10 for n in range(1, 10)], "laplacian": list(LAPLACIANS),
           "samples": 50, "starts": 3},
)  # fmt: skip
def measure(run: Run, dataset: str, keep_prob: float, laplacian: str) -> list[Row]:
    """TADropEdge-CDF beside DropEdge at the same p, and beside DropEdge that keeps as many edges."""
    data, normalization = run.dataset(dataset), SCRIPTS[dataset]
    prob = tde.keep_probabilities(run.scores(data, laplacian), keep_prob=keep_prob, rule="cdf")
    kept = float(prob.mean())
    ways = {"": prob, "dropedge_same_p": keep_prob, "dropedge_same_budget": kept}
    terms = {name: _terms(run, data, normalization, torch.as_tensor(value).expand_as(prob)) for name, value in
             ways.items()}  # fmt: skip
    row = {"normalization": normalization, "strategy": "cdf", "kept_share": kept, **_mean("variance", terms[""])}
    for how in ("same_p", "same_budget"):
        other = terms[f"dropedge_{how}"]
        value, error = reduction(terms[""], other)
        row |= _mean(f"variance_dropedge_{how}", other)
        row |= {f"variance_reduction_{how}": value, f"variance_reduction_{how}_error": error}
    return [row]


def _mean(name: str, terms: np.ndarray) -> Row:
    return {name: float(terms.mean()), f"{name}_error": float(terms.std(ddof=1) / len(terms) ** 0.5)}


def _terms(run: Run, data: Dataset, normalization: str, prob: Tensor) -> np.ndarray:
    """The terms of the variance, over untrained networks whose outputs stand side by side as features."""
    seeds = range(run.seed, run.seed + run["starts"])
    return variance_terms(
        untrained(data, normalization, LAYERS, tuple(seeds)), prob, samples=run["samples"], seed=run.seed
    )


def untrained(data: Dataset, normalization: str, layers: int, seeds: tuple[int, ...], hidden: int = HIDDEN):
    """A function from masks ``[T, M]`` to the outputs ``[T, N, F]`` of GCNs at their starts, side by side."""
    experiment = Experiment(data=data, layers=layers, hidden=hidden)
    settings = {"normalization": normalization}

    @cache
    def networks(count: int):
        return [experiment.make_network([Trial(seed=seed, settings=settings)] * count) for seed in seeds]

    def outputs(keep: Tensor) -> Tensor:
        view = View(data.graph, keep)
        with torch.no_grad():
            return torch.cat([network(experiment.inputs, view) for network in networks(len(keep))], dim=-1)

    return outputs
