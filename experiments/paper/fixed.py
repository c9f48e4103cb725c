"""Figure 2 and the inverse: fixed settings on fresh seeds, beside DropEdge at the same p and with the same budget.

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
BUDGETS = ("same_p", "same_budget")
LOSSES = {"mean_train_loss": ("train_loss", np.nanmean), "smallest_train_loss": ("train_loss", np.nanmin),
          "mean_val_loss": ("val_loss", np.nanmean), "smallest_val_loss": ("val_loss", np.nanmin)}  # fmt: skip
SHOWN = 100  # epochs of a curve that are kept
POINTS = "+.4f"

Trained = Mapping[str, Sequence[Outcome]]


def trainings(run: Run, data: Dataset, laplacian: str, p: float, methods: Sequence[str], splits: bool) -> Trained:
    """The outcomes of DropEdge, of each method and of DropEdge with its budget, replicate by replicate."""
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


def compared(scores: Mapping[str, Sequence[float]], method: str, claims: int, name: str = "") -> Row:
    """The differences of a method to both kinds of DropEdge, with their simultaneous intervals."""
    row: Row = {}
    for budget, rival in (("same_p", "dropedge"), ("same_budget", f"dropedge as {method}")):
        found = decide(scores, [(method, rival)], claims=claims)[method, rival]
        ends = {"difference": found.difference, "low": found.low, "high": found.high}
        row |= {f"{name}{budget}_{end}": value for end, value in ends.items()}
    return row


def accuracies(run: Run, dataset: str, laplacian: str, keep_prob: float, methods: Sequence[str]) -> list[Row]:
    """One row for DropEdge and for each method, at one p; every seed is a start and a split of its own."""
    sizes = run.dataset(dataset).split(0).sizes
    found = trainings(run, load(dataset, split=sizes, seed=run.seed), laplacian, keep_prob, methods, splits=True)
    scores = {name: [outcome.test_score for outcome in outcomes] for name, outcomes in found.items()}
    family, rows = len(methods) * len(run["ps"]), []
    for method in ("dropedge", *methods):
        row = {"method": method, "kept_share": found[method][0].kept_share, "mean": float(np.mean(scores[method]))}
        row |= {"seeds": len(scores[method]), **({} if method == "dropedge" else compared(scores, method, family))}
        if method == INVERSE:
            to_cdf = decide(scores, [(INVERSE, "cdf")], claims=family)[INVERSE, "cdf"]
            row |= {"to_cdf_difference": to_cdf.difference, "to_cdf_low": to_cdf.low, "to_cdf_high": to_cdf.high}
        rows.append(row)
    return rows


# -- Figure 2a -------------------------------------------------------------------------------------------


def convergence_claims(rows: pd.DataFrame) -> list[Claim]:
    """Faster, a lower mean of both losses, and lower, a lower smallest loss, than DropEdge at the same p."""
    mine = rows[rows["method"].isin(STRATEGIES)]
    long = [
        mine[["laplacian", "method"]].assign(
            loss=loss, difference=mine[f"{loss}_same_p_difference"], high=mine[f"{loss}_same_p_high"]
        )
        for loss in LOSSES
    ]
    cases = pd.concat(long, ignore_index=True)
    by = ["loss", "method", "laplacian"]
    return [Claim("converges", cases, cases["high"] < 0, by=by, either="laplacian", shows={"difference": POINTS})]


def convergence_figure(rows: pd.DataFrame) -> Figure:
    """The training loss minus DropEdge's, epoch by epoch."""
    mine = rows[rows["method"].isin(STRATEGIES)][["laplacian", "method", "epoch", "train_apart_same_p"]]
    long = mine.explode(["epoch", "train_apart_same_p"]).astype({"epoch": int, "train_apart_same_p": float})
    return panels(long, x="epoch", y="train_apart_same_p", columns="laplacian", lines=["method"], zero=True)


@item(
    "convergence", where="Figure 2a", protocol="fixed settings, fresh seeds on the paper's split",
    claims=convergence_claims, figure=convergence_figure,
    quick={"laplacian": ["combinatorial"], "seeds": {"cora": 3}, "epochs": 20},
    paper={"dataset": ["cora"], "laplacian": list(LAPLACIANS), "keep_prob": [0.7], "seeds": {"cora": 50},
           "epochs": 400},
)  # fmt: skip
def convergence(run: Run, dataset: str, laplacian: str, keep_prob: float) -> list[Row]:
    """The losses of each strategy, and how far its curves lie from DropEdge's."""
    found = trainings(run, run.dataset(dataset), laplacian, keep_prob, STRATEGIES, splits=False)
    epochs = np.unique(np.linspace(0, run["epochs"] - 1, SHOWN, dtype=int))
    rows = []
    for method, outcomes in found.items():
        row: Row = {"method": method, "kept_share": outcomes[0].kept_share, "seeds": len(outcomes)}
        for name, (curve, reduce) in LOSSES.items():
            scores = {each: [float(reduce(one.curves[curve])) for one in mine] for each, mine in found.items()}
            row[name] = float(np.mean(scores[method]))
            if method in STRATEGIES:
                row |= compared(scores, method, len(STRATEGIES) * len(LOSSES), f"{name}_")
        if method in STRATEGIES:
            ours, theirs = (
                np.mean([one.curves["train_loss"] for one in found[each]], axis=0) for each in (method, "dropedge")
            )
            row |= {"epoch": epochs.tolist(), "train_apart_same_p": (ours - theirs)[epochs].tolist()}
        rows.append(row)
    return rows


# -- Figure 2b -------------------------------------------------------------------------------------------


def above_claims(rows: pd.DataFrame) -> list[Claim]:
    """Surely above DropEdge, p by p and strategy by strategy; and, our question, above one that keeps as many edges."""
    mine, by = rows[rows["method"] != "dropedge"], ["method", "keep_prob", "laplacian"]
    return [
        Claim(name, mine, mine[f"{budget}_low"] > 0, by=by, almost=0.9, either="laplacian",
              shows={f"{budget}_difference": POINTS, f"{budget}_high": POINTS})
        for name, budget in (("above", "same_p"), ("above-same-budget", "same_budget"))
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
    """Surely below both DropEdge and TADropEdge, in the mean over p; each dataset and Laplacian is a case."""
    mine = rows[rows["method"] == INVERSE]
    names = [f"{rival}_{end}" for rival in ("same_p", "same_budget", "to_cdf") for end in ("difference", "low", "high")]
    mean = mine.groupby(["dataset", "laplacian"], as_index=False, sort=False)[names].mean()
    return [
        Claim(name, mean, (mean[f"{budget}_high"] < 0) & (mean["to_cdf_high"] < 0), by=["dataset", "laplacian"],
              shows={f"{budget}_difference": POINTS, "to_cdf_difference": POINTS})
        for name, budget in (("worst", "same_p"), ("worst-same-budget", "same_budget"))
    ]  # fmt: skip


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
