"""Supplement, Figure 8: the variance of the outputs of an untrained GCN over sampled subgraphs."""

from collections.abc import Callable
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
from experiments.paper.theory import Array
from experiments.plots import panels
from tadropedge.lab import Dataset, Experiment, Trial, View

ROUNDED = 0.005  # what rounding may take from a printed percentage
CLEAR = 2.0  # standard errors
LAYERS, HIDDEN = 3, 128

Outputs = Callable[[Tensor], Tensor]  # masks [T, M] -> outputs [T, N, F]


def claims(rows: pd.DataFrame) -> list[Claim]:
    """Each dataset with the normalisation of DropEdge's scripts, for the paper names none; our question has another."""
    scripts = rows["normalization"] == rows["dataset"].map(SCRIPTS)
    mine, elsewhere = rows[scripts], rows[~scripts]
    steps = _steps(mine)
    once = steps[steps["laplacian"] == steps["laplacian"].min()]  # DropEdge has none
    citeseer = mine[mine["dataset"] == "citeseer"]
    largest = citeseer.loc[citeseer.groupby("laplacian")["variance_reduction_same_p"].idxmax()]
    printed = PRINTED["variance"]["CiteSeer"]
    off = (largest["variance_reduction_same_p"] - printed).abs() - ROUNDED
    by, shows = ["dataset", "keep_prob", "laplacian"], {"variance_reduction_same_p": "+.1%"}
    return [
        Claim("rises", once, once["rise"] > CLEAR * once["rise_error"], by=by[:2],
              shows={"variance_dropedge_same_p": ".3g"}),
        Claim("reduces", mine, _clear(mine, "same_p"), by=by, shows=shows),
        Claim("grows", steps, steps["growth"] > CLEAR * steps["growth_error"], by=by, shows=shows),
        Claim("printed", largest, off <= CLEAR * largest["variance_reduction_same_p_error"], by=["laplacian"],
              printed=f"{printed:.0%}", shows=shows),
        Claim("reduces-same-budget", mine, _clear(mine, "same_budget"), by=by,
              shows={"variance_reduction_same_budget": "+.1%"}),
        Claim("reduces-elsewhere", elsewhere, _clear(elsewhere, "same_p"), by=by, shows=shows),
    ]  # fmt: skip


def _clear(rows: pd.DataFrame, how: str) -> pd.Series:
    reduced, error = rows[f"variance_reduction_{how}"], rows[f"variance_reduction_{how}_error"]
    return reduced > CLEAR * error


def _steps(rows: pd.DataFrame) -> pd.DataFrame:
    """From each p to the next smaller one: how DropEdge's variance rises and the reduction grows, with their errors."""
    rows = rows.sort_values(["laplacian", "dataset", "keep_prob"], ascending=[True, True, False], kind="stable")
    groups = rows.groupby(["laplacian", "dataset"], sort=False)
    for name, column in (("rise", "variance_dropedge_same_p"), ("growth", "variance_reduction_same_p")):
        error = np.hypot(rows[f"{column}_error"], groups[f"{column}_error"].shift())
        rows = rows.assign(**{name: rows[column] - groups[column].shift(), f"{name}_error": error})
    return rows[groups.cumcount() > 0]


def figure(rows: pd.DataFrame) -> Figure:
    """By how much the variance is smaller than DropEdge's, at the same p and at the same budget."""
    mine = rows[rows["normalization"] == rows["dataset"].map(SCRIPTS)]
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
           "normalization": ["scripts"], "samples": 10, "starts": 1},
    paper={"dataset": list(DATASETS), "keep_prob": [n / 10 for n in range(1, 10)], "laplacian": list(LAPLACIANS),
           "normalization": ["scripts", "gcn"], "samples": 50, "starts": 3},
)  # fmt: skip
def measure(run: Run, dataset: str, keep_prob: float, laplacian: str, normalization: str) -> list[Row]:
    """TADropEdge-CDF beside DropEdge at the same p, and beside DropEdge that keeps as many edges."""
    data = run.dataset(dataset)
    normalization = SCRIPTS[dataset] if normalization == "scripts" else normalization
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


# -- an estimate in one pass -------------------------------------------------------------------------------


def variance_terms(outputs: Outputs, prob: Tensor, *, samples: int, seed: int, batch: int = 8) -> Array:
    """Terms ``[samples − 1]`` whose mean is Σ_i (1/F) Σ_j var[Φ_ij] over subgraphs that keep edges with ``prob [M]``.

    In one pass (Welford): the squared distance of each output from the mean of those before it, times (s − 1) / s, is
    an estimate by itself. Two methods with one seed share their coins, so their terms come in pairs.

    >>> value = lambda keep: keep[:, None].double()  # one edge, whose output is its coin
    >>> terms = variance_terms(value, torch.tensor([0.5]), samples=2000, seed=0)
    >>> bool(abs(terms.mean() - 0.25) < 4 * terms.std() / 2000**0.5)  # p (1 − p)
    True
    """
    total: Tensor | float = 0.0
    terms: list[Tensor] = []
    for start in range(0, samples, batch):
        epochs = range(start, min(start + batch, samples))
        found = outputs(torch.stack([tde.sample_edges(prob, seed=seed, epoch=epoch) for epoch in epochs])).double()
        before = torch.arange(start, epochs.stop, device=found.device)
        sums = found.cumsum(dim=0) + total
        mean = (sums - found) / before.clamp_min(1)[:, None, None]
        terms.append((found - mean).square().sum(dim=(1, 2)) / found.shape[-1] * (before / (before + 1)))
        total = sums[-1]
    return torch.cat(terms)[1:].cpu().numpy()  # before the first there is no mean


def reduction(mine: Array, other: Array) -> tuple[float, float]:
    """1 − mean(mine) / mean(other), and its standard error from the pairs.

    >>> reduction(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
    (0.5, 0.0)
    """
    share = mine.mean() / other.mean()
    return float(1 - share), float((mine - share * other).std(ddof=1) / np.sqrt(len(mine)) / other.mean())
