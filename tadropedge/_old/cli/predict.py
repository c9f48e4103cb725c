"""``tadropedge predict``: the class of every node by a model that ``tadropedge train`` saved."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from tadropedge._old.checks import PYG, check_path, name_or_path
from tadropedge._old.cli.options import (
    DATA,
    AddEdges_,
    Device_,
    HideFeatures_,
    Json_,
    Model_,
    Nodes_,
    Noise_,
    Plugin_,
    Root_,
    ScoreColumn_,
    Seed_,
    check_conditions,
    check_own_column,
    chosen_device,
    load_model_factory,
    noise_of,
)
from tadropedge._old.cli.progress import announced
from tadropedge._old.cli.report import show
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.registry import DATASETS

if TYPE_CHECKING:  # torch is loaded when there is something to predict, not for --help
    from rich.table import Table

    from tadropedge._old.predicting import Predictions

SAVED = "folder that tadropedge train --out wrote, or its model.json"


@announced
def predict_command(
    saved: Annotated[Path, Argument(metavar="MODEL", help=SAVED, show_default=False)],
    data: Annotated[str, Argument(metavar="DATA", help=DATA, show_default=False)],
    model: Model_ = None,
    nodes: Nodes_ = None,
    noise: Noise_ = None,
    score_column: ScoreColumn_ = None,
    add_edges: AddEdges_ = None,
    hide_features: HideFeatures_ = None,
    seed: Seed_ = 0,
    device: Device_ = "cpu",
    data_root: Root_ = None,
    out: Annotated[Path, Option(metavar="FILE", help="csv file for the predictions")] = Path("predictions.csv"),
    plugin: Plugin_ = None,
    as_json: Json_ = False,
) -> None:
    """Predict the class of every node of a graph, or of every sample, with a model that train saved.

    Writes a csv file: one line per node with its name, the predicted class, its probability and that of every class.
    The model sees the whole graph; nothing is dropped, so the same command writes the same file. One with the option
    expected weighs the edges by their keep probabilities, and may need --score-column for its scores.
    """
    source = name_or_path("dataset", data, DATASETS)
    check_conditions(add_edges, hide_features)
    check_own_column(score_column, data)
    check_path("MODEL", saved)
    folder = saved.parent if saved.name in ("model.json", "model.safetensors") else saved
    if not (folder / "model.json").is_file():
        raise TadropedgeError(
            f"MODEL: no model in '{saved}': expected a folder with model.json and model.safetensors, which "
            "tadropedge train --out writes"
        )
    check_path("--out", out)
    if out.exists() and not out.is_file():  # nor is a device replaced by a file
        raise TadropedgeError(f"--out must be a file for the predictions, got the folder or device '{out}'")
    if model is not None:
        load_model_factory(model)
    from tadropedge._old.data import Conditions, conditioned, load_dataset
    from tadropedge._old.lock import check_writable
    from tadropedge._old.predicting import predict, write_predictions

    try:
        check_writable(out.parent)
    except TadropedgeError as error:
        raise TadropedgeError(f"--out: {error}") from error
    place = chosen_device(device)
    loaded = _loaded(folder, model)
    options: dict[str, Any] = {"nodes": nodes, "noise": noise_of(noise), "score_column": score_column}
    if isinstance(source, Path) or source.startswith(PYG):
        options["per_class"] = 1  # nothing is trained, so few labels are enough
    given = {name: value for name, value in options.items() if value is not None}
    conditions = Conditions(add_edges or 0.0, hide_features or 0.0, seed)
    found = predict(loaded, conditioned(load_dataset(source, data_root, seed=seed, **given), conditions).to(place))
    write_predictions(found, out)
    document = _summary(found, data + conditions.words, str(folder)) | {"file": str(out)}
    show(document, as_json, [_page(document), f"written to {out}"])


def _loaded(folder: Path, model: str | None) -> Any:
    from tadropedge._old.training.model_file import load_model

    try:
        return load_model(folder)
    except TadropedgeError as error:
        words, own, _ = str(error).partition("; if the name is your own")
        if not own:
            raise
        more = "" if model is None else f" (--model {model} is another one)"
        raise TadropedgeError(
            f"{words}; if it is your own, give --model MODULE:FACTORY or --plugin MODULE{more}"
        ) from None


def _summary(found: Predictions, data: str, model: str) -> dict[str, Any]:
    """What was predicted, in numbers."""
    counts = Counter(found.predicted.tolist())
    best = found.probabilities.max(dim=-1).values
    return {
        "model": model,
        "data": data,
        "unit": found.unit,
        "count": len(best),
        "predicted": {str(name): counts.get(number, 0) for number, name in enumerate(found.classes)},
        "mean_probability": round(float(best.mean()), 6),
        "labelled": int((found.labels >= 0).sum()),
        "accuracy": None if found.accuracy is None else round(found.accuracy, 6),
    }


def _page(document: dict[str, Any]) -> Table:
    from tadropedge._old.publish.terminal import facts

    listed = ", ".join(f"{name}: {count:,}" for name, count in document["predicted"].items())
    known = f"{document['accuracy'] or 0:.2%} of {document['labelled']:,} labels, including those it was trained on"
    return facts(
        {
            "model": document["model"],
            "data": f"{document['data']}: {document['count']:,} {document['unit']}s",
            "predicted": listed,
            "probability": f"{document['mean_probability']:.2%} on average for the predicted class",
            "agrees with": "there are no labels to compare with" if document["accuracy"] is None else known,
        }
    )
