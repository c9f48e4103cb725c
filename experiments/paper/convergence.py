"""Figure 2a: the losses of TADropEdge and DropEdge, epoch by epoch, with fixed settings on the paper's split."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.claims import Claim
from experiments.frame import Row, Run, item
from experiments.paper.fixed import POINTS, compared, trainings
from experiments.paper.printed import LAPLACIANS, STRATEGIES
from experiments.plots import panels

LOSSES = {"mean_train_loss": ("train_loss", np.nanmean), "smallest_train_loss": ("train_loss", np.nanmin),
          "mean_val_loss": ("val_loss", np.nanmean), "smallest_val_loss": ("val_loss", np.nanmin)}  # fmt: skip
SHOWN = 100  # epochs of a curve that are kept

Curves = Mapping[str, Sequence[Mapping[str, np.ndarray]]]  # of each method, seed by seed: the curves by their names


def claims(rows: pd.DataFrame) -> list[Claim]:
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
    return [Claim("converges", cases, cases["high"] < 0, by=by, shows={"difference": POINTS})]


def figure(rows: pd.DataFrame) -> Figure:
    """The training loss minus DropEdge's, epoch by epoch."""
    mine = rows[rows["method"].isin(STRATEGIES)][["laplacian", "method", "epoch", "train_apart_same_p"]]
    long = mine.explode(["epoch", "train_apart_same_p"]).astype({"epoch": int, "train_apart_same_p": float})
    return panels(long, x="epoch", y="train_apart_same_p", columns="laplacian", lines=["method"], zero=True)


@item(
    "convergence", where="Figure 2a", protocol="fixed settings, fresh seeds on the paper's split",
    claims=claims, figure=figure,
    quick={"laplacian": ["combinatorial"], "seeds": {"cora": 3}, "epochs": 20},
    paper={"dataset": ["cora"], "laplacian": list(LAPLACIANS), "keep_prob": [0.7], "seeds": {"cora": 50},
           "epochs": 400},
)  # fmt: skip
def measure(run: Run, dataset: str, laplacian: str, keep_prob: float) -> list[Row]:
    """The losses of each strategy, and how far its curves lie from DropEdge's."""
    found = trainings(run, run.dataset(dataset), laplacian, keep_prob, STRATEGIES, splits=False)
    curves = {name: [outcome.curves for outcome in outcomes] for name, outcomes in found.items()}
    return summary(curves, {name: found[name][0].kept_share for name in found}, np.arange(run["epochs"]))


def summary(curves: Curves, kept: Mapping[str, float], epochs: np.ndarray) -> list[Row]:
    """A row for each method; the curves are of these epochs, of which some are kept."""
    shown = np.unique(np.linspace(0, len(epochs) - 1, SHOWN, dtype=int))
    rows = []
    for method, mine in curves.items():
        row: Row = {"method": method, "kept_share": kept[method], "seeds": len(mine)}
        for name, (curve, reduce) in LOSSES.items():
            scores = {each: [float(reduce(one[curve])) for one in its] for each, its in curves.items()}
            row[name] = float(np.mean(scores[method]))
            if method in STRATEGIES:
                row |= compared(scores, method, len(STRATEGIES) * len(LOSSES), f"{name}_")
        if method in STRATEGIES:
            ours, theirs = (
                np.mean([one["train_loss"] for one in curves[each]], axis=0) for each in (method, "dropedge")
            )
            row |= {"epoch": epochs[shown].tolist(), "train_apart_same_p": (ours - theirs)[shown].round(6).tolist()}
        rows.append(row)
    return rows
