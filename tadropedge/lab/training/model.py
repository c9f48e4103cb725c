"""A trained model in one file: its numbers, and as text what it needs to predict.

The file is a ``safetensors`` file, which holds numbers and text and runs nothing when it is read. Its text has a
checksum of all of it, so that a file that was changed is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tadropedge._support.atomic import write_atomic
from tadropedge._support.checks import check_path
from tadropedge.errors import TadropedgeError, lookup, show
from tadropedge.lab.data.dataset import Dataset
from tadropedge.lab.networks.network import Start
from tadropedge.lab.networks.view import View
from tadropedge.lab.registry import NETWORKS
from tadropedge.lab.training.experiment import Experiment
from tadropedge.lab.training.trial import Outcome, Trial

FORMAT = "tadropedge-model-1"
LARGEST_HEADER = 2**24  # bytes; a larger one is no model of ours


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedModel:
    """The kept model of one trial, which predicts on any graph with the features that it was trained on.

    ``kept`` holds the scores that it was kept for, ``made_by`` the name of your own ``model``, if it made it. Where its
    edges weigh something in evaluation, or were pruned, those of the graph that it predicts on are scored as in
    training.
    """

    trial: Trial
    network: str
    layers: int | None
    hidden: int | None
    settings: Mapping[str, Any]
    score_settings: Mapping[str, Any]
    num_features: int
    num_classes: int
    class_names: tuple[str, ...] | None
    trained_on: str
    made_by: str | None
    best_epoch: int
    kept: Mapping[str, float]
    state: Mapping[str, Tensor] = field(repr=False)
    model: Callable[..., nn.Module] | None = None

    def logits(self, data: Dataset) -> Tensor:
        """The logits of every node ``[N, C]``, where the data lies."""
        if data.num_features != self.num_features:
            raise TadropedgeError(
                f"the model expects {self.num_features} features, {data.name} has {data.num_features}"
            )
        experiment = Experiment(
            data=data, network=self.network, layers=self.layers, hidden=self.hidden, settings=self.settings,
            score_settings=self.score_settings, model=self.model, device=str(data.device),
        )  # fmt: skip
        sizes = replace(experiment.sizes, num_classes=self.num_classes)
        kind = experiment.network_of(self.trial.candidate)
        network = kind(sizes, [experiment.settings_of(self.trial)], Start([self.trial.seed])).to(data.device)
        network.load_trial({name: value.to(data.device) for name, value in self.state.items()})
        edges = experiment.plan(self.trial.candidate.dropping).draw(self.trial.seed, training=False)
        view = View(data.graph, *edges, epoch=torch.tensor(self.best_epoch, device=data.device))
        with torch.no_grad():
            found = network(experiment.inputs, view)
        logits: Tensor = found[0] if isinstance(found, tuple) else found
        return logits[0]

    def predict(self, data: Dataset) -> Tensor:
        """The class of every node ``[N]``, int64."""
        return self.logits(data).argmax(dim=-1)


def save(path: str | PathLike[str], outcome: Outcome, experiment: Experiment) -> Path:
    """Write the kept model of an ``outcome`` that was trained with ``keep_state=True``; return the path.

    A model that is there already is replaced, any other file is not.
    """
    from safetensors.torch import save as written

    path = check_path("path", path)
    if path.exists() and (not path.is_file() or _head(path.read_bytes()).get("format") != FORMAT):
        raise TadropedgeError(f"'{path}' is there and is no model of tadropedge: choose another name", argument="path")
    if outcome.failed:
        raise TadropedgeError("the training failed (its loss was not finite), so there is no model to save")
    if outcome.state is None:
        raise TadropedgeError("the outcome holds no parameters: train with keep_state=True to save a model")
    data = experiment.data
    content = {
        "trial": outcome.trial.as_dict(),
        "network": experiment.network,
        "layers": experiment.layers,
        "hidden": experiment.hidden,
        "settings": dict(experiment.settings),
        "score_settings": dict(experiment.score_settings),
        "num_features": data.num_features,
        "num_classes": data.num_classes,
        "class_names": None if data.class_names is None else list(data.class_names),
        "trained_on": data.name,
        "made_by": None if experiment.model is None else experiment.as_dict()["network"],
        "best_epoch": outcome.best_epoch,
        "kept": {"val_score": outcome.val_score, "test_score": outcome.test_score},
    }
    state = {name: torch.as_tensor(value).contiguous() for name, value in outcome.state.items()}
    told = json.dumps(content)
    head = {"format": FORMAT, "content": told, "checksum": _checksum(told, state)}
    return write_atomic(path, written(state, metadata=head))


def load(path: str | PathLike[str], model: Callable[..., nn.Module] | None = None) -> SavedModel:
    """Read what :func:`save` has written; the numbers lie on the CPU. ``model`` makes your own module, if it is one."""
    from safetensors.torch import load as read

    path = check_path("path", path)
    if not path.is_file():
        raise TadropedgeError(f"no such file: '{path}'")
    numbers = path.read_bytes()
    head = _head(numbers)
    if head.get("format") != FORMAT:
        raise TadropedgeError(f"'{path}' is no model of tadropedge, which `tadropedge train` writes")
    try:
        state = read(numbers)
        if _checksum(head["content"], state) != head["checksum"]:
            raise ValueError("its checksum differs")
        content = json.loads(head["content"])
        content["trial"] = Trial.from_dict(_checked(content["trial"], path))
    except TadropedgeError:
        raise
    except Exception as error:  # a header may say anything of types and places
        raise TadropedgeError(f"'{path}' is damaged: {show(str(error), typed=False)[1:-1]}") from error
    if content["made_by"] is not None and model is None:
        raise TadropedgeError(
            f"'{path}' was made by your own model {content['made_by']!r}: give model=", argument="model"
        )
    if content["class_names"] is not None:
        content["class_names"] = tuple(content["class_names"])
    return SavedModel(**content, state=state, model=model)


def _checked(trial: dict[str, Any], path: Path) -> dict[str, Any]:
    """A network that is not here may be one that a user's own module adds."""
    network, plus, _ = str(trial["candidate"]).rpartition("+")
    if plus:
        try:
            lookup("network", network, dict.fromkeys(NETWORKS))
        except TadropedgeError as error:
            raise TadropedgeError(f"'{path}': {error}; if it is your own, name its module with --plugin") from None
    return trial


def _head(numbers: bytes) -> dict[str, str]:
    """The text in a safetensors file; nothing where there is none."""
    size = int.from_bytes(numbers[:8], "little")
    if size > min(LARGEST_HEADER, len(numbers)):
        return {}
    try:
        found = json.loads(numbers[8 : 8 + size])["__metadata__"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _checksum(told: str, state: Mapping[str, Tensor]) -> str:
    """A hash of the text and of all numbers."""
    found = hashlib.sha256(told.encode())
    for name in sorted(state):
        value = state[name]
        found.update(f"\n{name} {value.dtype} {list(value.shape)}\n".encode())
        found.update(value.numpy().tobytes())
    return found.hexdigest()
