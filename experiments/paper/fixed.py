"""Figure 2b and the inverse: fixed settings on fresh seeds, beside DropEdge at the same p and with the same budget.

At the same p a strategy drops fewer edges than DropEdge. Beside DropEdge at p stands DropEdge with the expected kept
share of the strategy: what is left of a difference there is topology. The paper states no settings here; these are
those of DropEdge's released scripts for a 3-layer GCN, the same at every p and for every method.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.claims import Claim
from experiments.frame import Row, Run, item
from experiments.paper.printed import DATASETS, LAPLACIANS, STRATEGIES
from experiments.plots import panels
from tadropedge import Dropping
from tadropedge.lab import Candidate, Dataset, Experiment, Outcome, TrainingSettings, Trial, decide, load, train

GAMMA = 0.01
SETTINGS: dict[str, dict[str, Any]] = {
    "cora": {"learning_rate": 0.01, "weight_decay": 5e-3, "dropout": 0.8, "settings": {"normalization": "first-order"}},
    "citeseer": {"learning_rate": 0.009, "weight_decay": 1e-3, "dropout": 0.8,
                 "settings": {"normalization": "gcn-residual", "self_weight": True, "batch_norm": True}},
    "pubmed": {"learning_rate": 0.01, "weight_decay": 1e-3, "dropout": 0.5,
               "settings": {"normalization": "gcn-residual", "self_weight": True, "batch_norm": True}},
}  # fmt: skip
INVERSE = "inverse-cdf"
RIVALS = {"same_p": "dropedge", "same_budget": "dropedge as {}"}
POINTS = "+.4f"

Scores = Mapping[str, Sequence[float]]  # of each method, seed by seed


def trainings(
    run: Run, data: Dataset, laplacian: str, p: float, methods: Sequence[str], *, splits: bool
) -> dict[str, list[Outcome]]:
    """The outcomes of DropEdge, of each method and of DropEdge with its budget; with ``splits``, each on its own."""
    training = TrainingSettings(epochs=run["epochs"], keep="loss", precision="high")
    score = {"q": data.num_classes, "laplacian": laplacian}
    experiment = Experiment(data=data, layers=3, hidden=128, training=training, score_settings=score, device=run.device)
    droppings = {"dropedge": Dropping.parse("dropedge", keep_prob=p)}
    for method in methods:
        gamma = {} if method.endswith("cdf") else {"gamma": GAMMA}
        mine = Dropping.parse(method, keep_prob=p, **gamma)
        share = float(experiment.plan(mine).prob.mean())
        droppings |= {method: mine, f"dropedge as {method}": Dropping.parse("dropedge", keep_prob=round(share, 6))}
    trials = [
        Trial(candidate=Candidate(dropping=dropping), seed=run.seed + number, split=number * splits,
              replicate=number, group=name, **SETTINGS[data.name])
        for number in range(run["seeds"][data.name])
        for name, dropping in droppings.items()
    ]  # fmt: skip
    found: dict[str, list[Outcome]] = {name: [] for name in droppings}
    for outcome in train(experiment, trials):
        found[outcome.trial.group].append(outcome)
    return found


def compared(scores: Scores, method: str, claims: int, name: str = "") -> Row:
    """The differences of a method to both kinds of DropEdge, with simultaneous intervals of so many claims."""
    row: Row = {}
    for how, rival in RIVALS.items():
        found = decide(scores, [(method, rival.format(method))], claims=claims)[method, rival.format(method)]
        ends = {"difference": found.difference, "low": found.low, "high": found.high}
        row |= {f"{name}{how}_{end}": value for end, value in ends.items()}
    return row


def accuracies(run: Run, dataset: str, laplacian: str, p: float, methods: Sequence[str]) -> list[Row]:
    """The rows of one p; every seed is a start and a split of its own."""
    data = load(dataset, split=run.dataset(dataset).split(0).sizes, seed=run.seed)
    found = trainings(run, data, laplacian, p, methods, splits=True)
    scores = {name: [outcome.test_score for outcome in outcomes] for name, outcomes in found.items()}
    return summary(scores, {name: found[name][0].kept_share for name in found}, methods, len(methods) * len(run["ps"]))


def summary(scores: Scores, kept: Mapping[str, float], methods: Sequence[str], claims: int) -> list[Row]:
    """One row for DropEdge and for each method, with all its accuracies."""
    return [
        {"method": method, "kept_share": kept[method], "seeds": len(scores[method]), "mean": np.mean(scores[method]),
         **({} if method == "dropedge" else compared(scores, method, claims)),
         "accuracies": np.round(scores[method], 6).tolist(),
         "of_same_budget": np.round(scores.get(f"dropedge as {method}", []), 6).tolist() or None}
        for method in ("dropedge", *methods)
    ]  # fmt: skip


# -- Figure 2b -------------------------------------------------------------------------------------------


def above_claims(rows: pd.DataFrame) -> list[Claim]:
    """Surely above DropEdge, p by p and strategy by strategy; and, our question, above one that keeps as many edges."""
    mine, by = rows[rows["method"] != "dropedge"], ["method", "keep_prob", "laplacian"]
    return [
        Claim(name, mine, mine[f"{how}_low"] > 0, by=by, almost=0.9,
              shows={f"{how}_difference": POINTS, f"{how}_high": POINTS})
        for name, how in (("above", "same_p"), ("above-same-budget", "same_budget"))
    ]  # fmt: skip


def above_figure(rows: pd.DataFrame) -> Figure:
    """Accuracy minus that of DropEdge at the same p."""
    return _beside_dropedge(rows, "laplacian", ["method"])


def _beside_dropedge(rows: pd.DataFrame, columns: str, lines: list[str]) -> Figure:
    """Differences with their simultaneous intervals."""
    mine = rows[rows["method"] != "dropedge"]
    mine = mine.assign(error=(mine["same_p_high"] - mine["same_p_low"]) / 4)
    return panels(mine, x="keep_prob", y="same_p_difference", columns=columns, lines=lines, error="error", zero=True)


PS = [n / 10 for n in range(1, 10)]


@item(
    "accuracy-vs-p", where="Figure 2b", protocol="fixed settings, fresh seeds and splits", claims=above_claims,
    figure=above_figure,
    quick={"laplacian": ["combinatorial"], "keep_prob": [0.1, 0.5], "ps": [0.1, 0.5], "seeds": {"cora": 3},
           "epochs": 15},
    paper={"dataset": ["cora"], "laplacian": list(LAPLACIANS), "keep_prob": PS, "ps": PS, "seeds": {"cora": 48},
           "epochs": 400},
)  # fmt: skip
def accuracy_vs_p(run: Run, dataset: str, laplacian: str, keep_prob: float) -> list[Row]:
    """The three strategies at one p."""
    return accuracies(run, dataset, laplacian, keep_prob, STRATEGIES)


# -- the inverse -----------------------------------------------------------------------------------------


def inverse_claims(rows: pd.DataFrame) -> list[Claim]:
    """Surely below DropEdge and surely below TADropEdge, both in the mean over p; each dataset is a case."""
    cases = pd.DataFrame(
        [{"dataset": dataset, "laplacian": laplacian, **_worst(mine)}
         for (dataset, laplacian), mine in rows.groupby(["dataset", "laplacian"], sort=False)]
    )  # fmt: skip
    return [
        Claim(name, cases, (cases[f"{how}_high"] < 0) & (cases["cdf_high"] < 0), by=["dataset", "laplacian"],
              shows={how: POINTS, "cdf": POINTS})
        for name, how in (("worst", "same_p"), ("worst-same-budget", "same_budget"))
    ]  # fmt: skip


def _worst(rows: pd.DataFrame) -> Row:
    """The inverse minus DropEdge, DropEdge of its budget and TADropEdge: means over p within a seed."""
    inverse, plain, cdf = (rows[rows["method"] == method] for method in (INVERSE, "dropedge", "cdf"))
    lists = {"inverse": inverse["accuracies"], "same_p": plain["accuracies"], "cdf": cdf["accuracies"],
             "same_budget": inverse["of_same_budget"]}  # fmt: skip
    scores = {name: np.mean(mine.tolist(), axis=0).tolist() for name, mine in lists.items()}
    row: Row = {}
    for rival in ("same_p", "same_budget", "cdf"):
        found = decide(scores, [("inverse", rival)], claims=2)["inverse", rival]
        row |= {rival: found.difference, f"{rival}_high": found.high}
    return row


def inverse_figure(rows: pd.DataFrame) -> Figure:
    """TADropEdge and its inverse in one panel for each dataset: accuracy minus that of DropEdge at the same p."""
    return _beside_dropedge(rows, "dataset", ["method", "laplacian"])


IN_INVERSE = [0.1, 0.3, 0.5, 0.7, 0.9]


@item(
    "inverse", where="Figure 2c", protocol="fixed settings, fresh seeds and splits", claims=inverse_claims,
    figure=inverse_figure,
    quick={"dataset": ["cora", "citeseer"], "laplacian": ["combinatorial"], "keep_prob": [0.3], "ps": [0.3],
           "seeds": {"cora": 3, "citeseer": 3}, "epochs": 10},
    paper={"dataset": list(DATASETS), "laplacian": list(LAPLACIANS), "keep_prob": IN_INVERSE, "ps": IN_INVERSE,
           "seeds": {"cora": 32, "citeseer": 32, "pubmed": 24}, "epochs": 400},
)  # fmt: skip
def inverse(run: Run, dataset: str, laplacian: str, keep_prob: float) -> list[Row]:
    """CDF and its inverse at one p."""
    return accuracies(run, dataset, laplacian, keep_prob, ("cdf", INVERSE))
