"""The options that several commands share, and the laboratory they ask for."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from tadropedge.data import DATASETS, load_dataset
from tadropedge.errors import TadropedgeError
from tadropedge.training.config import Architecture
from tadropedge.training.laboratory import Laboratory

Dataset_ = Annotated[str, typer.Argument(help=f"one of {', '.join(DATASETS)}, or the path of your own data")]
Backbone_ = Annotated[
    str | None, typer.Option("--backbone", help="gcn, jknet, incepgcn, gcnn; default: what the data needs")
]
Layers_ = Annotated[int | None, typer.Option("--layers", help="graph convolutions (default 2; 1 for gcnn)")]
Hidden_ = Annotated[int | None, typer.Option("--hidden", help="width (default 128; 32 for gcnn)")]
Epochs_ = Annotated[int, typer.Option("--epochs", help="epochs of every training")]
Laplacian_ = Annotated[str, typer.Option("--laplacian", help="combinatorial or normalized")]
Q_ = Annotated[int | None, typer.Option("--q", help="clusters a component (default: the number of classes)")]
Split_ = Annotated[str | None, typer.Option("--split", help="full, public or random, where the dataset offers them")]
PerClass_ = Annotated[int | None, typer.Option("--per-class", help="labels a class of a random split")]
Noise_ = Annotated[str | None, typer.Option("--noise", help="of source-localization: calibrated, stated or a number")]
Nodes_ = Annotated[Path | None, typer.Option("--nodes", help="csv of features and labels beside your own edge list")]
Seed_ = Annotated[int, typer.Option("--seed", help="everything random follows from it")]
Device_ = Annotated[str, typer.Option("--device", help="auto, cpu or cuda")]
Root_ = Annotated[Path | None, typer.Option("--data-root", help="folder with the datasets (or TADROPEDGE_DATA)")]
Out_ = Annotated[Path, typer.Option("--out", help="folder for the results")]
Json_ = Annotated[bool, typer.Option("--json", help="print results as JSON and nothing else")]
PerLayer_ = Annotated[bool, typer.Option("--per-layer", help="a new subgraph for every layer")]
Precision_ = Annotated[str, typer.Option("--precision", help="of matrix products: highest, or high (TF32 on a GPU)")]
Selection_ = Annotated[str, typer.Option("--selection", help="kept model by validation loss in: evaluation, training")]


def chosen_device(device: str) -> str:
    """``auto`` is a GPU where there is one; a device that is not here is refused."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device not in ("cpu", "cuda") or (device == "cuda" and not torch.cuda.is_available()):
        raise TadropedgeError(
            f"device {device!r} is not here; choose from auto, cpu{', cuda' if torch.cuda.is_available() else ''}"
        )
    return device


def make_laboratory(
    dataset: str,
    split: str | None,
    root: Path | None,
    seed: int,
    device: str,
    backbone: str | None,
    layers: int | None,
    hidden: int | None,
    *,
    options: dict[str, Any],
    **settings: Any,
) -> Laboratory:
    """The dataset on its device, with the backbone it needs where none is named."""
    device = chosen_device(device)
    data = load_dataset(dataset, root=root, split=split, seed=seed, **options).to(device)
    backbone = backbone or data.backbone
    small = backbone == "gcnn"
    architecture = Architecture(backbone, layers or (1 if small else 2), hidden or (32 if small else 128))
    return Laboratory(data, architecture, **settings)


def data_options(per_class: int | None, noise: str | None, nodes: Path | None) -> dict[str, Any]:
    """What was asked of the loader; a number may stand for the name of a noise."""
    named: dict[str, Any] = {"per_class": per_class, "noise": noise, "nodes": nodes}
    if noise is not None:
        with suppress(ValueError):
            named["noise"] = float(noise)
    return {key: value for key, value in named.items() if value is not None}
