"""What a saved model says of a dataset: the class of every node or sample, with its probability, also as a csv file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tadropedge._old.atomic import atomic
from tadropedge._old.checks import check_kind, check_path
from tadropedge._old.data.dataset import Dataset
from tadropedge._old.errors import TadropedgeError, cannot_write
from tadropedge._old.memory import within_memory
from tadropedge._old.publish.tables import csv_lines
from tadropedge._old.training.model_file import SavedModel, load_model

LINES = 50_000  # written together
DIGITS = 6  # of a probability


@dataclass(frozen=True, kw_only=True, eq=False)
class Predictions:
    """``probabilities [N, C]`` of all classes, float64 on the CPU, and the ``names`` of what they are of.

    ``unit`` is ``node``, or ``sample`` of a graph-level task; ``classes`` are the names of the classes where the model
    knows some, else their numbers; ``labels [N]`` are those of the data, -1 where there is none.
    """

    unit: str
    names: Sequence[Any]
    classes: Sequence[Any]
    probabilities: Tensor
    labels: Tensor

    @property
    def predicted(self) -> Tensor:
        """The most probable class of each, int64 ``[N]``."""
        return self.probabilities.argmax(dim=-1)

    @property
    def accuracy(self) -> float | None:
        """The share of labels that are predicted; ``None`` where there are none."""
        known = self.labels >= 0
        return float((self.predicted == self.labels)[known].double().mean()) if bool(known.any()) else None


def predict(model: SavedModel | str | Path, data: Dataset) -> Predictions:
    """The classes that a model, or the one in a folder, predicts on the whole graph of ``data``.

    The softmax of the logits: probability c of node n is exp(z_nc) / Σ_k exp(z_nk). Nothing is dropped or drawn, so
    the same model and data give the same numbers.

    >>> from tempfile import TemporaryDirectory
    >>> from tadropedge._old.data import load_karate
    >>> from tadropedge._old.training.config import Architecture, Trial
    >>> from tadropedge._old.training.laboratory import Laboratory
    >>> from tadropedge._old.training.model_file import save_model
    >>> data, small = load_karate(), Architecture("gcn", layers=2, hidden=4)
    >>> outcome, = Laboratory(data, small, epochs=3).train([Trial("original")], keep_state=True)
    >>> with TemporaryDirectory() as folder:
    ...     found = predict(save_model(folder, outcome, small, "karate", 34, 4), data)
    >>> found.probabilities.shape, bool((found.probabilities.sum(dim=1) - 1).abs().max() < 1e-12)
    (torch.Size([34, 4]), True)
    """
    check_kind("data", data, Dataset)
    saved = model if isinstance(model, SavedModel) else load_model(check_path("model", model))
    _check_classes(saved, data)
    with within_memory(f"the predictions on {data.name}", "a smaller graph, or more memory, may do", data.device):
        logits = saved.logits(data).cpu()
    if not bool(torch.isfinite(logits).all()):
        raise TadropedgeError(
            f"the model gives numbers that are not finite on {data.name}: are its features much larger?"
        )
    ids = data.graph.node_ids if data.level == "node" else None
    return Predictions(
        unit="node" if data.level == "node" else "sample",
        names=range(len(logits)) if ids is None else ids,
        classes=range(saved.num_classes) if saved.class_names is None else saved.class_names,
        probabilities=logits.double().softmax(dim=-1),
        labels=data.labels.cpu(),
    )


def _check_classes(model: SavedModel, data: Dataset) -> None:
    """The classes of the data must be those that the model learned."""
    if data.num_classes != model.num_classes:
        raise TadropedgeError(
            f"the model knows {model.num_classes} classes, {data.name} has {data.num_classes}: "
            f"it was trained on {model.dataset_name}"
        )
    ours, theirs = model.class_names, data.class_names
    if ours is not None and theirs is not None and ours != theirs:
        raise TadropedgeError(
            f"the classes of the model are {', '.join(ours[:5])}, those of {data.name} are {', '.join(theirs[:5])}"
        )


def write_predictions(found: Predictions, path: str | Path) -> Path:
    """Write one line per node or sample: its name, the predicted class, its probability, and those of all classes.

    Words are quoted, so that every name comes back as it was; probabilities have six digits.
    """
    check_kind("found", found, Predictions)
    path = check_path("path", path)
    head = (found.unit, "predicted", "probability", *(f"probability of {name}" for name in found.classes))
    best, predicted = found.probabilities.max(dim=-1)
    try:
        with atomic(path) as stream:
            stream.write(csv_lines([head], quoted=True))
            for first in range(0, len(predicted), LINES):
                some = slice(first, first + LINES)
                classes = [found.classes[number] for number in predicted[some].tolist()]
                columns = [_rounded(best[some]), *map(_rounded, found.probabilities[some].T)]
                stream.write(csv_lines(zip(found.names[some], classes, *columns, strict=True), quoted=True))
    except OSError as error:
        raise cannot_write(path, error) from error
    return path


def _rounded(values: Tensor) -> list[float]:
    return [round(value, DIGITS) for value in values.tolist()]
