"""A trained model on disk: its numbers in ``model.safetensors``, its settings beside them in ``model.json``.

Nothing is unpickled. The settings hold a checksum of the numbers and are written last, so files of two models that were
mixed, or that a killed process left half done, are told apart from a model.
"""

from __future__ import annotations

import hashlib
import json
import typing
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from tadropedge.data.dataset import Dataset
from tadropedge.errors import TadropedgeError, as_integer, lookup, show
from tadropedge.files import existing, write_atomic
from tadropedge.nn.backbones import Backbone
from tadropedge.nn.baselines import NETWORKS
from tadropedge.nn.filters import FilterNetwork
from tadropedge.shift import NORMALIZATIONS
from tadropedge.training.baselines import make_network, width
from tadropedge.training.config import Architecture, Method, Outcome, Trial
from tadropedge.training.edges import Subgraphs
from tadropedge.training.laboratory import make_task
from tadropedge.training.trainer import build_network

NUMBERS, SETTINGS = "model.safetensors", "model.json"
FORMAT, VERSION = "tadropedge-model", 1
LARGEST = 2**31 - 1  # of any count

Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class SavedModel:
    """The kept model of one trial: ``state`` holds its parameters and running statistics, without a trials axis.

    ``kept`` holds the losses and accuracies it was kept for. ``num_nodes`` matters to graph-level models alone, whose
    read-out looks at every node; a node-level model predicts on any graph with its features.
    """

    architecture: Architecture
    trial: Trial
    dataset_name: str
    num_features: int
    num_classes: int
    num_nodes: int | None
    class_names: tuple[str, ...] | None
    best_epoch: int
    kept: dict[str, float]
    state: dict[str, Tensor] = field(repr=False)

    @property
    def network(self) -> Backbone | FilterNetwork:
        """The backbone without its numbers; a method with a network of its own is not asked for one."""
        sizes = (self.num_nodes or 0, self.num_features, self.num_classes)
        return build_network(self.architecture, self.trial, *sizes)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every parameter and running statistic, without the trials axis."""
        own = Method.of(self.trial.method).network
        if own is not None:
            return NETWORKS[own].shapes(self.num_features, width(self.trial), self.num_classes)
        network = self.network
        if isinstance(network, FilterNetwork):
            return network.shapes()
        trained = {name: shape for layer in network.convolutions() for name, shape in layer.shapes().items()}
        running = network.running(1, torch.device("meta"))
        return trained | {name: tuple(value.shape[1:]) for name, value in running.items()}

    def predict(self, dataset: Dataset) -> Tensor:
        """The class of every node ``[N]`` or signal ``[S]``, int64."""
        return self.logits(dataset).argmax(dim=-1)

    def logits(self, dataset: Dataset) -> Tensor:
        """The logits of every node ``[N, C]`` or signal ``[S, C]``, on the whole graph and where the dataset lies."""
        self._check(dataset)
        device = dataset.device
        state = {name: value.to(device)[None] for name, value in self.state.items()}
        task = make_task(dataset, [], {})
        if Method.of(self.trial.method).network is not None:
            with torch.no_grad():
                epoch = torch.tensor(self.best_epoch, device=device)
                return make_network(task, [self.trial]).evaluation(state, epoch)[0]
        keep_all = torch.ones((1, dataset.graph.num_edges), dtype=torch.float64, device=device)
        no_seed = torch.zeros(1, dtype=torch.int64, device=device)
        whole = Subgraphs(dataset.graph, keep_all, no_seed, [self.trial.normalization]).whole()
        with torch.no_grad():
            return self.network(state, state, task.features, [whole])[0]  # type: ignore[arg-type]

    def _check(self, dataset: Dataset) -> None:
        """Check that the dataset is of the kind the model was trained on."""
        name, backbone = dataset.name, self.architecture.backbone
        if (backbone == "gcnn") != (dataset.level == "graph"):
            raise TadropedgeError(f"{name} is a {dataset.level}-level task: a {backbone} model cannot predict on it")
        if dataset.num_features != self.num_features:
            raise TadropedgeError(f"the model expects {self.num_features} features, {name} has {dataset.num_features}")
        if dataset.level == "graph" and dataset.graph.num_nodes != self.num_nodes:
            raise TadropedgeError(f"the model expects {self.num_nodes} nodes, {name} has {dataset.graph.num_nodes}")


def save_model(
    folder: str | Path,
    outcome: Outcome,
    architecture: Architecture,
    dataset_name: str,
    num_features: int,
    num_classes: int,
    *,
    num_nodes: int | None = None,
    class_names: Sequence[str] | None = None,
) -> Path:
    """Write the kept model of ``outcome``, trained with ``keep_state=True``, and return the folder.

    ``num_nodes`` is needed for a graph-level model alone.
    """
    from safetensors.numpy import save

    if outcome.failed:
        raise TadropedgeError("the trial failed (its loss was not finite), so there is no model to save")
    if outcome.state is None:
        raise TadropedgeError("the outcome holds no parameters: train with keep_state=True to save a model")
    folder = Path(folder)
    numbers = save({name: np.ascontiguousarray(value) for name, value in outcome.state.items()})
    settings: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "dataset_name": dataset_name,
        "num_features": num_features,
        "num_classes": num_classes,
        "num_nodes": num_nodes,
        "class_names": None if class_names is None else list(class_names),
        "architecture": asdict(architecture),
        "trial": asdict(outcome.trial),
        "best_epoch": outcome.best_epoch,
        "kept": outcome.kept,
        "sha256": hashlib.sha256(numbers).hexdigest(),
    }
    _check_state(_model(settings, _tensors(numbers, folder / NUMBERS)), folder)  # no file that cannot be read
    write_atomic(folder / NUMBERS, numbers)
    write_atomic(folder / SETTINGS, (json.dumps(settings, indent=2, ensure_ascii=False) + "\n").encode())
    return folder


def load_model(folder: str | Path) -> SavedModel:
    """Read and check what :func:`save_model` wrote; the numbers lie on the CPU."""
    folder = Path(folder)
    settings = _settings(existing(folder / SETTINGS))
    path = existing(folder / NUMBERS)
    numbers = path.read_bytes()
    if hashlib.sha256(numbers).hexdigest() != settings.get("sha256"):
        raise TadropedgeError(f"{path}: damaged, or not the file that {SETTINGS} belongs to (its checksum differs)")
    state = _tensors(numbers, path)
    try:
        model = _model(settings, state)
    except TadropedgeError as error:
        raise TadropedgeError(f"{folder / SETTINGS}: {error}") from None
    _check_state(model, folder)
    return model


def _settings(path: Path) -> dict[str, Any]:
    """The settings as a table of this format and version."""
    try:
        settings = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise TadropedgeError(f"{path}: cannot be read as JSON ({error})") from error
    if not isinstance(settings, dict) or settings.get("format") != FORMAT:
        raise TadropedgeError(f"{path}: not the settings of a saved model (expected format {FORMAT!r})")
    if settings.get("version") != VERSION:
        raise TadropedgeError(f"{path}: version {show(settings.get('version'), typed=False)} is not {VERSION}")
    return settings


def _tensors(numbers: bytes, path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, read without running anything."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return load(numbers)
    except (SafetensorError, KeyError, ValueError, RuntimeError) as error:
        raise TadropedgeError(f"{path}: not a safetensors file ({error})") from error


def _model(settings: dict[str, Any], state: dict[str, Tensor]) -> SavedModel:
    """The model of a table of settings, each field checked."""
    known = {member.name: settings.get(member.name) for member in fields(SavedModel) if member.name != "state"}
    architecture = _made(Architecture, "architecture", known.pop("architecture"))
    trial = _made(Trial, "trial", known.pop("trial"))
    lookup("normalization", trial.normalization, NORMALIZATIONS)
    for name, least in (("num_features", 1), ("num_classes", 2), ("best_epoch", 0)):
        _check_count(name, known[name], least)
    if architecture.backbone == "gcnn":
        _check_count("num_nodes of a graph-level model", known["num_nodes"], 1)
    for name in ("layers", "hidden", "order"):
        _check_count(name, getattr(architecture, name), 0)
    if architecture.layers > len(state):
        raise TadropedgeError(f"{architecture.layers} layers cannot be in a file of {len(state)} tensors")
    if not isinstance(known["dataset_name"], str):
        raise TadropedgeError(f"dataset_name must be a text, got {show(known['dataset_name'])}")
    known["class_names"] = _names(known["class_names"])
    kept = known["kept"]
    if not isinstance(kept, dict) or not all(isinstance(value, float) for value in kept.values()):
        raise TadropedgeError(f"kept must be a table of numbers, got {show(kept)}")
    values: dict[str, Any] = known
    return SavedModel(architecture=architecture, trial=trial, state=state, **values)


def _names(names: object) -> tuple[str, ...] | None:
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise TadropedgeError(f"class_names must be a list of texts, got {show(names)}")
    return None if names is None else tuple(names)


def _check_count(name: str, value: object, least: int) -> None:
    number = as_integer(value)
    if number is None or not least <= number <= LARGEST:
        raise TadropedgeError(f"{name} must be a whole number of at least {least}, got {show(value, typed=False)}")


def _made(kind: type[Made], name: str, table: object) -> Made:
    """A dataclass of plain values from a table of its fields and no others; what is None by default may lack."""
    hints = typing.get_type_hints(kind)
    optional = {member.name for member in fields(kind) if member.default is None}  # type: ignore[arg-type]
    if not isinstance(table, dict) or not set(hints) - optional <= set(table) <= set(hints):
        raise TadropedgeError(f"{name} must be a table of {', '.join(hints)}, got {show(table)}")
    for key, value in table.items():
        wanted = hints[key]
        # Whole numbers are numbers too, but True and False are not.
        whole = type(value) is int and isinstance(0.0, wanted)
        if not (whole or isinstance(value, wanted)) or (isinstance(value, bool) and bool not in _kinds(wanted)):
            raise TadropedgeError(f"{name}.{key} must be {getattr(wanted, '__name__', wanted)}, got {show(value)}")
    return kind(**table)


def _kinds(wanted: Any) -> tuple[Any, ...]:
    return typing.get_args(wanted) or (wanted,)


def _check_state(model: SavedModel, folder: Path) -> None:
    """Check that every parameter is there, of the right shape and finite, and nothing else."""
    path, expected, state = folder / NUMBERS, model.shapes, model.state
    for what, names in (("misses", set(expected) - set(state)), ("has", set(state) - set(expected))):
        if names:
            listed = ", ".join(sorted(names)[:5])
            raise TadropedgeError(f"{path}: {what} {listed}, unlike the network of {SETTINGS}")
    for name, shape in expected.items():
        value = state[name]
        if value.dtype != torch.float32 or tuple(value.shape) != shape:
            raise TadropedgeError(
                f"{path}: {name} must be float32 of shape {list(shape)}, got {value.dtype} {list(value.shape)}"
            )
        if not bool(torch.isfinite(value).all()):
            raise TadropedgeError(f"{path}: {name} must be finite")
