"""``tadropedge train``: one model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tadropedge.cli.app import app
from tadropedge.cli.options import (
    Q_,
    Backbone_,
    Dataset_,
    Device_,
    Epochs_,
    Hidden_,
    Json_,
    Laplacian_,
    Layers_,
    Nodes_,
    Noise_,
    PerClass_,
    PerLayer_,
    Precision_,
    Root_,
    Seed_,
    Selection_,
    Split_,
    data_options,
    make_laboratory,
)
from tadropedge.cli.progress import live_progress
from tadropedge.errors import TadropedgeError
from tadropedge.method import droppings
from tadropedge.training.config import Trial
from tadropedge.training.model_file import save_model


@app.command("train")
def train_command(
    dataset: Dataset_,
    method: Annotated[str, typer.Option("--method", help=f"one of {', '.join(droppings())}")] = "cdf",
    keep_prob: Annotated[
        float, typer.Option("--keep-prob", help="the paper's p: probability of KEEPING an edge")
    ] = 0.7,
    gamma: Annotated[float | None, typer.Option("--gamma", help="threshold (default: the knee of the weights)")] = None,
    learning_rate: Annotated[float, typer.Option("--learning-rate")] = 0.01,
    weight_decay: Annotated[float, typer.Option("--weight-decay")] = 5e-4,
    dropout: Annotated[float, typer.Option("--dropout")] = 0.5,
    normalization: Annotated[str, typer.Option("--normalization", help="of the shift operator")] = "gcn",
    self_weight: Annotated[bool, typer.Option("--self-weight")] = False,
    batch_norm: Annotated[bool, typer.Option("--batch-norm")] = False,
    backbone: Backbone_ = None,
    layers: Layers_ = None,
    hidden: Hidden_ = None,
    epochs: Epochs_ = 400,
    laplacian: Laplacian_ = "combinatorial",
    q: Q_ = None,
    split: Split_ = None,
    per_class: PerClass_ = None,
    noise: Noise_ = None,
    nodes: Nodes_ = None,
    per_layer: PerLayer_ = False,
    selection: Selection_ = "evaluation",
    precision: Precision_ = "highest",
    seed: Seed_ = 0,
    device: Device_ = "auto",
    data_root: Root_ = None,
    out: Annotated[Path | None, typer.Option("--out", help="folder for the best model (safetensors and JSON)")] = None,
    as_json: Json_ = False,
) -> None:
    """Train one model, print what it reached, and save the best of it.

    Example: tadropedge train cora --method cdf --keep-prob 0.7 --layers 3 --out cora-model
    """
    trial = Trial.of(
        method, learning_rate=learning_rate, weight_decay=weight_decay, dropout=dropout, keep_prob=keep_prob,
        gamma=gamma, normalization=normalization, self_weight=self_weight, batch_norm=batch_norm, seed=seed,
    )  # fmt: skip
    laboratory = make_laboratory(
        dataset, split, data_root, seed, device, backbone, layers, hidden,
        options=data_options(per_class, noise, nodes),
        epochs=epochs, laplacian=laplacian, q=q, per_layer=per_layer, selection=selection, precision=precision,
    )  # fmt: skip
    with live_progress(as_json) as report:
        laboratory.progress = lambda done, total: report("training", done, total)
        outcome = laboratory.train([trial], keep_state=out is not None)[0]
    if outcome.failed:
        raise TadropedgeError(f"the loss was not finite; try a smaller learning rate than {learning_rate:g}")
    if out is not None:
        data = laboratory.dataset
        save_model(
            out, outcome, laboratory.architecture, data.name, data.num_features, data.num_classes,
            num_nodes=data.graph.num_nodes, class_names=data.class_names,
        )  # fmt: skip
    answer = {"dataset": dataset, "method": method, "best_epoch": outcome.best_epoch, **outcome.kept}
    print(json.dumps(answer) if as_json else "\n".join(f"{key}: {value}" for key, value in answer.items()))
