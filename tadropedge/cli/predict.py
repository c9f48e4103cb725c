"""``tadropedge predict``: the class of every node by a model that ``tadropedge train`` saved."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path

from tadropedge.cli.options import FileOptions, RunOptions, load_model
from tadropedge.cli.output import show
from tadropedge.cli.train import MODEL

HEAD = ("node", "predicted", "probability")


def predict(
    saved: Path,
    data: str,
    /,
    *,
    nodes: Path | None = None,
    model: str | None = None,
    out: Path = Path("predictions.csv"),
    files: FileOptions = FileOptions(),
    running: RunOptions = RunOptions(),
) -> None:
    """Predict the class of every node of a graph with a model that tadropedge train saved.

    Writes a csv: a line per node with its name, the predicted class, its probability and that of every class.

    Args:
        saved: The folder that tadropedge train --out wrote, or its model.safetensors.
        data: The name of a dataset, or a file with features; labels may be missing.
        nodes: A table of features and labels, beside a file that holds only a graph.
        model: Your own module, if the model is one: FILE.py:NAME.
        out: The csv file for the predictions.
    """
    running.begin()
    from tadropedge._support.atomic import write_atomic
    from tadropedge._support.folder import check_ours, claim
    from tadropedge.cli.reading import read_unlabelled
    from tadropedge.lab.reports.text import csv_lines, facts
    from tadropedge.lab.training.model import load

    check_ours(out.parent, [out.name])
    device = running.found_device()
    trained = load(saved / MODEL if saved.is_dir() else saved, None if model is None else load_model(model))
    dataset = read_unlabelled(data, files, nodes, trained.num_features, running.seed)
    with redirect_stdout(sys.stderr):  # what a module of one's own prints is no result
        chances = trained.logits(dataset.to(device)).softmax(dim=-1).cpu()
    names = trained.class_names or tuple(map(str, range(trained.num_classes)))
    best, classes = chances.max(dim=-1)
    head = [*HEAD, *(f"p_{name}" for name in names)]
    called = dataset.node_names or range(dataset.graph.num_nodes)
    columns = ([names[place] for place in classes.tolist()], best.tolist(), *chances.T.tolist())
    claim(out.parent, [out.name])
    write_atomic(out, csv_lines([head, *zip(called, *columns, strict=True)], quoted=True))

    known = dataset.labels >= 0
    right = float((classes == dataset.labels)[known].double().mean()) if bool(known.any()) else None
    counts = dict(zip(names, classes.bincount(minlength=len(names)).tolist(), strict=True))
    document = {
        "trained_on": trained.trained_on,
        "method": str(trained.trial.candidate),
        "data": dataset.name,
        "nodes": len(classes),
        "predicted": counts,
        "mean_probability": float(best.mean()),
        "accuracy": right,
        "file": str(out),
    }
    words = {
        "model": str(saved),
        "data": f"{dataset.name}: {len(best):,} nodes",
        "predicted": ", ".join(f"{name}: {count:,}" for name, count in counts.items()),
        "probability": f"{best.mean():.1%} on average for the predicted class",
    }
    if right is not None:
        words["agrees with"] = f"{right:.1%} of the labels, those it was trained on among them"
    show(document, running.json, [facts(words), f"written to {out}"])
