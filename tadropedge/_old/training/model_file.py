"""A trained model on disk: its numbers in ``model.safetensors``, its settings beside them in ``model.json``.

Nothing is unpickled. The settings hold a fingerprint of the numbers and of themselves, so mixed files of two models and
changed settings are recognised and refused. At every moment of a save the folder holds either the old model or the new
one: new numbers lie beside the old ones, under a name made of their fingerprint, until the settings that ask for them
are in place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from tadropedge._old.atomic import sync_folder, write_atomic
from tadropedge._old.checks import check_integer, check_kind, check_list, check_path, check_text
from tadropedge._old.data.dataset import Dataset
from tadropedge._old.errors import TadropedgeError, cannot_write, lookup, show
from tadropedge._old.files import existing
from tadropedge._old.fingerprint import fingerprint
from tadropedge._old.method import Method
from tadropedge._old.registry import NETWORKS
from tadropedge._old.spectrum.plan import LAPLACIANS
from tadropedge._old.training.config import METRICS, SCORED, Architecture, Outcome, Trial, network_settings
from tadropedge._old.training.edges import keep_row
from tadropedge._old.training.laboratory import Laboratory, make_task
from tadropedge._old.typed import Within, build, plain, read_json, write_json

NUMBERS, SETTINGS = "model.safetensors", "model.json"
FORMAT, VERSION = "tadropedge-model", 3
LARGEST = 2**31 - 1  # of any count
SCORING = ("q", "laplacian")  # written where a model is evaluated on edges with weights, which scores decide


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What ``model.json`` holds besides its format, its version and its fingerprint.

    ``q`` and ``laplacian`` are those of the laboratory, for the scores of a model with the option ``expected``; a ``q``
    of None is the number of classes.
    """

    architecture: Architecture
    trial: Trial
    dataset_name: str
    num_features: Annotated[int, Within(1, LARGEST)]
    num_classes: Annotated[int, Within(2, LARGEST)]
    num_nodes: Annotated[int, Within(1, LARGEST)] | None = None
    class_names: tuple[str, ...] | None = None
    best_epoch: Annotated[int, Within(0, LARGEST)]
    kept: Mapping[str, float]
    q: Annotated[int, Within(1, LARGEST)] | None = None
    laplacian: str = "combinatorial"

    def __post_init__(self) -> None:
        self.architecture.settings_of(self.trial)
        lookup("laplacian", self.laplacian, LAPLACIANS)
        if self.num_nodes is None and self.architecture.network(self.trial.method)[1].level == "graph":
            raise TadropedgeError("num_nodes of a graph-level model must be a whole number of at least 1, got None")
        for name, value in self.kept.items():
            lookup("value of a kept model", name, dict.fromkeys((*METRICS, *SCORED)))
            if name in SCORED and math.isfinite(value):  # of a measure that may be the user's own
                continue
            most = 1 if name.endswith("accuracy") else math.inf
            if not 0 <= value <= most:  # NaN is neither
                wanted = "in [0, 1]" if most == 1 else "at least 0"
                raise TadropedgeError(f"kept.{name} must be {wanted}, got {value}")
        if self.class_names is not None and len(self.class_names) != self.num_classes:
            raise TadropedgeError(f"expected {self.num_classes} class_names, got {len(self.class_names)}")
        for class_name in self.class_names or ():
            check_text("a class", class_name)


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedModel(Settings):
    """The kept model of one trial: ``state`` holds its parameters and running statistics, without a trials axis.

    ``kept`` holds the losses and accuracies it was kept for. Only graph-level models use ``num_nodes``: their
    read-out sees every node. A node-level model predicts on any graph with its features.
    """

    state: dict[str, Tensor] = field(repr=False)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every parameter and running statistic, without the trials axis."""
        _, network = self.architecture.network(self.trial.method)
        own = self.architecture.settings_of(self.trial)
        sizes = self.architecture.sizes(own, self.num_nodes or 0, self.num_features, self.num_classes)
        return network.shapes(sizes, own) | {key: shape for key, (shape, _) in network.buffers(sizes, own).items()}

    def predict(self, dataset: Dataset) -> Tensor:
        """The class of every node ``[N]`` or signal ``[S]``, int64."""
        return self.logits(dataset).argmax(dim=-1)

    def logits(self, dataset: Dataset) -> Tensor:
        """The logits of every node ``[N, C]`` or signal ``[S, C]``, on the whole graph and where the dataset lies.

        With the option ``expected`` the edges of this graph are scored, and weigh what their keep probabilities are.
        """
        self._check(dataset)
        device = dataset.device
        state = {name: value.to(device)[None] for name, value in self.state.items()}
        task = make_task(dataset)
        network = task.network(self.architecture, [self.trial])
        if self.softened:
            network.soften(self._edge_weights(dataset)[None])
        with torch.no_grad():
            return network.evaluation(state, task.inputs(), torch.tensor(self.best_epoch, device=device))[0]

    @property
    def softened(self) -> bool:
        """Whether it is evaluated on edges with weights: the option ``expected``."""
        return "expected" in Method.of(self.trial.method).options

    def _edge_weights(self, dataset: Dataset) -> Tensor:
        """The keep probability of every edge, float32 ``[M]``, as in training."""
        score, q = Method.of(self.trial.method).score, self.num_classes if self.q is None else self.q
        laboratory = Laboratory(dataset, self.architecture, laplacian=self.laplacian, q=q)
        scores = {} if score is None else {score: laboratory.scores(score)}
        return keep_row(dataset.graph, self.trial, scores).to(torch.float32)

    def _check(self, dataset: Dataset) -> None:
        """Check that the dataset is of the kind the model was trained on."""
        name = dataset.name
        kind, network = self.architecture.network(self.trial.method)
        if network.level != dataset.level:
            raise TadropedgeError(f"{name} is a {dataset.level}-level task: a {kind} model cannot predict on it")
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
    q: int | None = None,
    laplacian: str = "combinatorial",
) -> Path:
    """Write the kept model of ``outcome``, trained with ``keep_state=True``, and return the folder.

    Only a graph-level model needs ``num_nodes``. A model with the option ``expected`` scores the edges of the graph
    that it predicts on: give ``q`` and ``laplacian`` of the laboratory where they are not its defaults.
    """
    from safetensors.numpy import save

    folder = check_path("folder", folder)
    check_kind("outcome", outcome, Outcome)
    check_kind("architecture", architecture, Architecture)
    check_text("dataset_name", dataset_name)
    num_features = check_integer("num_features", num_features, 1, LARGEST)
    num_classes = check_integer("num_classes", num_classes, 2, LARGEST)
    num_nodes = None if num_nodes is None else check_integer("num_nodes", num_nodes, 1, LARGEST)
    q = None if q is None else check_integer("q", q, 1, LARGEST)
    lookup("laplacian", laplacian, LAPLACIANS)
    if class_names is not None:
        listed = check_list("class_names", class_names, "texts")
        class_names = [check_text("each of class_names", name) for name in listed]
        if len(class_names) != num_classes:
            raise TadropedgeError(f"expected {num_classes} class_names, got {len(class_names)}")
    if outcome.failed:
        raise TadropedgeError("the trial failed (its loss was not finite), so there is no model to save")
    if outcome.state is None:
        raise TadropedgeError("the outcome holds no parameters: train with keep_state=True to save a model")
    numbers = save({name: np.asarray(value, order="C") for name, value in outcome.state.items()})
    model = SavedModel(
        architecture=architecture,
        trial=outcome.trial,
        dataset_name=dataset_name,
        num_features=num_features,
        num_classes=num_classes,
        num_nodes=num_nodes,
        class_names=None if class_names is None else tuple(class_names),
        best_epoch=outcome.best_epoch,
        kept=outcome.kept,
        q=q,
        laplacian=laplacian,
        state=_tensors(numbers, folder / NUMBERS),
    )
    _check_state(model, folder)  # no file that cannot be read
    names = [one.name for one in fields(Settings) if model.softened or one.name not in SCORING]
    table = plain({name: getattr(model, name) for name in names})
    head = {"format": FORMAT, "version": VERSION, "fingerprint": fingerprint(numbers=numbers, settings=table)}
    new = write_atomic(_waiting(folder, head["fingerprint"]), numbers)
    write_json({**head, **table}, folder / SETTINGS)
    _settle(new, folder)
    return folder


def _waiting(folder: Path, checksum: object) -> Path:
    """Where numbers lie until their settings are in place; a checksum that was read may be anything."""
    return folder / f".{NUMBERS}.{''.join(filter(str.isalnum, str(checksum)))[:16]}"


def _settle(new: Path, folder: Path) -> None:
    """Give the numbers of the settings their usual name, and remove those that an interrupted save left."""
    try:
        new.replace(folder / NUMBERS)
        for old in folder.glob(f".{NUMBERS}.{'[0-9a-f]' * 16}"):
            old.unlink(missing_ok=True)
        sync_folder(folder)
    except OSError as error:
        raise cannot_write(folder / NUMBERS, error) from error


def load_model(folder: str | Path) -> SavedModel:
    """Read and check what :func:`save_model` wrote; the numbers lie on the CPU."""
    folder = check_path("folder", folder)
    table = _table(existing(folder / SETTINGS))
    version = table.pop("version")
    kind = "fingerprint" if version == VERSION else "sha256"  # older files have a checksum of the numbers alone
    told = table.pop(kind, None)
    path, numbers = _numbers(folder, told)
    found = fingerprint(numbers=numbers, settings=table) if version == VERSION else sha256(numbers).hexdigest()
    if found != told:
        if _table(existing(folder / SETTINGS)).get(kind) != told:  # a new model came while this was read
            return load_model(folder)
        raise TadropedgeError(f"{path}: damaged, or not the file that {SETTINGS} belongs to (its checksum differs)")
    if version == 1:
        _bring_up_to_date(table)
    _check_names(table, folder / SETTINGS)
    settings = build(Settings, table, f"{folder / SETTINGS}: model")
    model = SavedModel(**vars(settings), state=_tensors(numbers, path))
    _check_state(model, folder)
    return model


def _numbers(folder: Path, checksum: object) -> tuple[Path, bytes]:
    """The numbers that the settings ask for: in their usual place, unless a save is at work or was interrupted."""
    waiting = _waiting(folder, checksum)
    with suppress(FileNotFoundError):
        return waiting, waiting.read_bytes()
    path = existing(folder / NUMBERS)
    return path, path.read_bytes()


def _table(path: Path) -> dict[str, Any]:
    """The settings as a table of this format, with their version."""
    table = read_json(path)
    if not isinstance(table, dict) or table.pop("format", None) != FORMAT:
        raise TadropedgeError(f"{path}: not the settings of a saved model (expected format {FORMAT!r})")
    if (version := table.get("version")) not in range(1, VERSION + 1):
        raise TadropedgeError(f"{path}: version {show(version, typed=False)} is not {VERSION}")
    return table


def _check_names(table: dict[str, Any], path: Path) -> None:
    """A method or network that is not here may be one that a user's own module adds."""
    trial, architecture = (
        {} if not isinstance(part := table.get(key), dict) else part for key in ("trial", "architecture")
    )
    try:
        Method.of(trial.get("method", "original"))
        lookup("backbone", architecture.get("backbone", "gcn"), NETWORKS)
    except TadropedgeError as error:
        raise TadropedgeError(
            f"{path}: {error}; if the name is your own, import its module first, or call "
            "tadropedge._old.nn.own.own_network(factory)"
        ) from None


def _bring_up_to_date(table: dict[str, Any]) -> None:
    """Version 1 had the settings of every network in the trial, and the order of filters in the architecture."""
    trial, architecture = table.get("trial"), table.get("architecture")
    if not (isinstance(trial, dict) and isinstance(architecture, dict)):
        return
    told = {key: trial.pop(key) for key in list(trial) if key in network_settings()}
    told["order"] = architecture.pop("order", None)
    name = Method.of(str(trial.get("method"))).network or str(architecture.get("backbone"))
    own = NETWORKS[name].settings if name in NETWORKS else {}  # a trial's other settings had no effect
    trial["settings"] = {key: value for key, value in told.items() if key in own and value is not None}


def _tensors(numbers: bytes, path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, read without running anything."""
    from safetensors.torch import load

    try:
        return load(numbers)
    except Exception as error:  # a header may say anything of types and places
        raise TadropedgeError(f"{path}: not a safetensors file ({error})") from error


def _check_state(model: SavedModel, folder: Path) -> None:
    """Check that every parameter is there, has the right shape and is finite, and that there is nothing else."""
    path, state, layers = folder / NUMBERS, model.state, model.architecture.layers
    if layers > len(state) and not model.architecture.network(model.trial.method)[1].opaque:
        raise TadropedgeError(f"{path}: {layers} layers cannot be in a file of {len(state)} tensors")
    expected = model.shapes
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
