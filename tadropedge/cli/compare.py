"""``tadropedge compare``: which edge dropping helps on this graph."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Any

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
    Out_,
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
from tadropedge.cli.show import show
from tadropedge.comparison.comparison import DEFAULT_METHODS, Plan, compare, run_info, write_all
from tadropedge.comparison.rows import Results
from tadropedge.data import bayes_accuracy
from tadropedge.training.config import METHODS, Method


@app.command("compare")
def compare_command(
    dataset: Dataset_,
    methods: Annotated[str, typer.Option("--methods", help=f"from {', '.join(METHODS)}")] = ",".join(DEFAULT_METHODS),
    backbone: Backbone_ = None,
    layers: Layers_ = None,
    hidden: Hidden_ = None,
    trials: Annotated[int, typer.Option("--trials", help="search trials a method")] = 100,
    seeds: Annotated[int, typer.Option("--seeds", help="fresh seeds and splits a method")] = 20,
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
    storage: Annotated[str | None, typer.Option("--storage", help="Optuna storage URL (default: OUT/study.db)")] = None,
    out: Out_ = Path("comparison"),
    as_json: Json_ = False,
) -> None:
    """Which edge dropping helps on this graph? Trains every method and says so, with numbers to trust.

    Killed at any moment, the same command goes on where it stopped.

    Example: tadropedge compare cora --methods original,dropedge,cdf --trials 20 --seeds 10 --out cora-gcn
    """
    started = time.monotonic()
    plan = Plan([Method.of(name.strip()).name for name in methods.split(",")], trials=trials, seeds=seeds, seed=seed)
    laboratory = make_laboratory(
        dataset, split, data_root, seed, device, backbone, layers, hidden,
        options=data_options(per_class, noise, nodes),
        epochs=epochs, laplacian=laplacian, q=q, per_layer=per_layer, selection=selection, precision=precision,
    )  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    try:
        with live_progress(as_json) as report:
            rows = compare(laboratory, plan, storage or out / "study.db", report)
    except KeyboardInterrupt:
        again = shlex.join(["tadropedge", *sys.argv[1:]])
        print(f"\nstopped; finished trials are kept. Go on with: {again}", file=sys.stderr)
        raise typer.Exit(130) from None
    run = run_info(started, shlex.join(["tadropedge", *sys.argv[1:]]), laboratory)
    run |= _bound(dataset, seed, data_options(per_class, noise, nodes))
    page = write_all(rows, run, out)
    show(Results(rows, run), as_json)
    if not as_json:
        if "bayes_accuracy" in run:
            print(f"Bayes-optimal accuracy on this graph: {run['bayes_accuracy']:.2%}")
        print(f"report: {page}")


def _bound(dataset: str, seed: int, options: dict[str, Any]) -> dict[str, object]:
    """The accuracy that no classifier can beat, where it is known."""
    if dataset.lower() != "source-localization":
        return {}
    return {"bayes_accuracy": round(bayes_accuracy(seed, **options), 4)}
