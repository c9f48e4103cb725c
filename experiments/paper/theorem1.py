"""Theorem 1: the relative error of subgraphs, and the change of trained filters' outputs beside its bound."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

import tadropedge as tde
from experiments.claims import Claim
from experiments.frame import Row, Run, item
from experiments.paper.filters import movement, trained
from experiments.paper.printed import DATASETS, PRINTED, STRATEGIES
from experiments.paper.signals import KIND, Task
from experiments.paper.theory import Array, ErrorModel, dense, largest_component, spectral_norm
from experiments.plots import forest
from tadropedge.lab import load

REPRESENTED = 1e-6  # a larger share of S − S' that no E represents is no rounding
CLEAR = 2.0
NORMALIZATIONS = ["spectral", "gcn", "gcn-residual", "laplacian"]
TRAINED = ["spectral", "gcn-residual"]  # of trained filters
ON_CORA = ["gcn", "gcn-residual"]
SIGNALS = 20


def claims(rows: pd.DataFrame) -> list[Claim]:
    """Whether E exists and is small, the assumptions of the theorem, its bound, and what ‖E‖ says of outputs."""
    subgraphs, network = rows[rows["part"] == "subgraphs"], rows[rows["part"] == "network"]
    worst = subgraphs.groupby("normalization", as_index=False, sort=False)["unexplained"].max()
    cdf = subgraphs[subgraphs["strategy"] == "cdf"]
    by = ["family", "normalization", "keep_prob"]
    mean = network[["rank_correlation", "rank_correlation_plain"]].mean().to_frame().T
    error = network["rank_correlation"].std(ddof=1) / len(network) ** 0.5
    asked = {"no change exceeds it": network["least_ratio"] >= 1, "it says something": network["informative"] > 0}
    bound = pd.concat([network.assign(asks=name, holds=holds) for name, holds in asked.items()], ignore_index=True)
    return [
        Claim("exists", worst, worst["unexplained"] <= REPRESENTED, by=["normalization"],
              shows={"unexplained": ".2g"}),
        Claim("smaller", cdf, _smaller(cdf, "same_p"), by=by, shows={"relative_ratio_same_p": ".2f"}),
        Claim("bounded", network, [False] * len(network), shows={"C_L": ".2f"}, impossible=True),
        Claim("equivalent", network, [False] * len(network), shows={"definition_over_slope": ".3f"}, impossible=True),
        Claim("first-order", bound, bound["holds"], by=["asks", "normalization", "layers", "method"],
              shows={"least_ratio": ",.0f", "informative": ".0%"}),
        Claim("closer", mean, mean["rank_correlation"] > CLEAR * error,
              shows={"rank_correlation": "+.2f", "rank_correlation_plain": "+.2f"}),
        Claim("smaller-same-budget", cdf, _smaller(cdf, "same_budget"), by=by,
              shows={"relative_ratio_same_budget": ".2f"}),
    ]  # fmt: skip


def _smaller(rows: pd.DataFrame, how: str) -> pd.Series:
    """Whether ‖E‖ is clearly smaller; errors are those of the logarithm of the ratio."""
    return np.log(rows[f"relative_ratio_{how}"]) + CLEAR * rows[f"relative_ratio_{how}_error"] < 0


def figure(rows: pd.DataFrame) -> Figure:
    """‖E‖ of CDF's subgraphs over that of DropEdge's, at the same p and at the same budget: its logarithm."""
    mine = rows[(rows["part"] == "subgraphs") & (rows["strategy"] == "cdf")]
    ways = []
    for how in ("same_p", "same_budget"):
        log, error = np.log10(mine[f"relative_ratio_{how}"]), mine[f"relative_ratio_{how}_error"] / math.log(10)
        ends = {"low": log - CLEAR * error, "high": log + CLEAR * error}
        ways.append(mine.assign(beside=how.replace("_", " "), log_ratio=log, **ends))
    names = ["family", "normalization", "keep_prob"]
    return forest(pd.concat(ways), y=names, x="log_ratio", low="low", high="high", columns="beside")


@item(
    "theorem1",
    where="Theorem 1",
    protocol="subgraphs with shared coins, the unit is a graph; filters trained without dropping",
    claims=claims,
    figure=figure,
    quick={"family": ["source-localization", "karate", "filters"], "keep_prob": [0.7],
           "graphs": {"source-localization": 4, "karate": 1, "filters": 1}, "draws": 12,
           "epochs": 60, "sizes": (100, 100, 100)},
    paper={"family": ["source-localization", "karate", "clusters", "cora", "filters"],
           "normalization": NORMALIZATIONS, "keep_prob": [0.3, 0.7],
           "graphs": {"source-localization": 20, "karate": 1, "clusters": 5, "cora": 1, "filters": 5}, "draws": 20,
           "epochs": 200, "sizes": (100, 500, 1000)},
)  # fmt: skip
def measure(run: Run, family: str, normalization: str, keep_prob: float) -> list[Row]:
    """The relative errors of a family of graphs, or trained ``filters`` on graphs of source localisation."""
    if family == "filters":
        return filters(run, normalization, keep_prob) if normalization in TRAINED else []
    if family == "cora" and normalization not in ON_CORA:
        return []
    draws = range(run.seed, run.seed + (run["draws"] if family != "cora" else 6))
    cases = [_case(run, family, run.seed + number) for number in range(run["graphs"][family])]
    models = [ErrorModel(dense(graph, normalization)) for graph, _ in cases]

    def measured(probs: Sequence[Tensor]) -> Array:  # [3, G, D]
        found = [_errors(model, graph, prob, normalization, draws) for model, (graph, _), prob in
                 zip(models, cases, probs, strict=True)]  # fmt: skip
        return np.stack(found, axis=1)

    same_p, rows = measured([torch.full_like(scores, keep_prob) for _, scores in cases]), []
    for rule in STRATEGIES:
        gamma = {"gamma": PRINTED["gamma"][DATASETS[family]]} if family in DATASETS and rule != "cdf" else {}
        probs = [tde.keep_probabilities(scores, keep_prob=keep_prob, rule=rule, **gamma) for _, scores in cases]
        same_budget = measured([torch.full_like(prob, float(prob.mean())) for prob in probs])
        relative, absolute, unexplained = measured(probs)
        row = {
            "part": "subgraphs",
            "graphs": len(cases),
            "nodes": cases[0][0].num_nodes,
            "draws": len(draws),
            "smallest_sum": min(model.smallest_sum for model in models),
            "strategy": rule,
            "kept_share": float(np.mean([float(prob.mean()) for prob in probs])),
            "error_norm": float(np.median(relative)),
            "below_one": float((relative < 1).mean()),
            "unexplained": float(unexplained.mean()),
        }
        for how, other in (("same_p", same_p), ("same_budget", same_budget)):
            row |= _ratio(f"relative_ratio_{how}", relative / other[0])
            row |= _ratio(f"absolute_ratio_{how}", absolute / other[1])
        rows.append(row)
    return rows


def _case(run: Run, family: str, seed: int) -> tuple[tde.Graph, Tensor]:
    """A graph of a family with its weights."""
    if family == "source-localization":
        graph, q = Task(seed).graph, KIND[0]
    else:
        data = run.dataset(family) if family == "cora" else load(family, seed=seed)
        graph, q = largest_component(data.graph), data.num_classes
    return graph, tde.edge_scores(graph, "aggregate", q=q)


def _errors(model: ErrorModel, graph: tde.Graph, prob: Tensor, normalization: str, draws: Sequence[int]) -> Array:
    """‖E‖₂, ‖S − S'‖₂ and the share of ‖S − S'‖_F that no E represents of each draw, ``[3, D]``."""
    parts = []
    for draw in draws:
        other = dense(graph, normalization, tde.sample_edges(prob, seed=draw, graph=graph))
        found = model.of(other)
        share = found.residual / found.change.clamp_min(1e-300)
        parts.append(torch.stack((found.norm, spectral_norm(model.shift - other), share)))
    return torch.stack(parts, dim=1).numpy()


def _ratio(name: str, ratios: Array) -> Row:
    """A geometric mean of ``[G, D]`` and the error of its logarithm, over graphs or the draws of a single one."""
    logs = np.log(ratios)
    units = logs.mean(axis=1) if len(logs) > 1 else logs[0]
    return {name: float(np.exp(units.mean())), f"{name}_error": float(units.std(ddof=1) / len(units) ** 0.5)}


def filters(run: Run, normalization: str, keep_prob: float) -> list[Row]:
    """How far subgraphs move the outputs of trained filters, beside the bound, for each way of dropping."""
    rows = []
    for number in range(run["graphs"]["filters"]):
        task = Task(run.seed + number, sizes=tuple(run["sizes"]))
        scores = tde.edge_scores(task.graph, "aggregate", q=KIND[0])
        cdf = tde.keep_probabilities(scores, keep_prob=keep_prob, rule="cdf")
        ways = {
            "dropedge": torch.full_like(cdf, keep_prob),
            "cdf": cdf,
            "same_budget": torch.full_like(cdf, float(cdf.mean())),
        }
        signals = task.part("test")[0][:SIGNALS].double()
        draws = list(range(run.seed, run.seed + run["draws"]))
        for layers in (1, 2):
            taps, accuracy = trained(task, layers, normalization, run["epochs"], run.seed)
            for method, prob in ways.items():
                place = {"graph": number, "nodes": task.graph.num_nodes, "layers": layers, "method": method}
                keep = tde.sample_edges(prob, seed=draws, graph=task.graph)
                moved = movement(taps, task.graph, signals, keep, normalization)
                kept = {"kept_share": float(prob.mean()), "accuracy": accuracy, "draws": len(draws)}
                rows.append({"part": "network", **place, **kept, **moved})
    return rows
