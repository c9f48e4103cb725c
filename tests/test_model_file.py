"""Saved models: a round trip predicts what the trainer measured; what is wrong with a file is said in one line."""

import hashlib
import json
import os
import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from safetensors.numpy import load, save

from tadropedge.data import load_clusters, load_source_localization
from tadropedge.errors import TadropedgeError
from tadropedge.fingerprint import fingerprint
from tadropedge.training import model_file
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.laboratory import Laboratory
from tadropedge.training.model_file import load_model, save_model

NODES = Architecture("gcn", layers=3, hidden=8)
CASES = {
    "gcn": (NODES, Trial.of("dropedge", batch_norm=True, self_weight=True, normalization="random-walk")),
    "jknet": (Architecture("jknet", layers=4, hidden=8), Trial.of("dropedge")),
    "gcnn": (
        Architecture("gcnn", layers=1, hidden=4, settings={"order": 3}),
        Trial.of("dropedge", normalization="spectral", dropout=0),
    ),
}


def dataset_of(backbone):
    if backbone == "gcnn":
        return load_source_localization(nodes=20, sizes=(30, 20, 40))
    return load_clusters()


@cache
def trained(backbone, keep_state=True):
    architecture, trial = CASES[backbone]
    dataset = dataset_of(backbone)
    [outcome] = Laboratory(dataset, architecture, epochs=15).train([trial], keep_state=keep_state)
    return dataset, architecture, outcome


def saved(folder, backbone):
    dataset, architecture, outcome = trained(backbone)
    sizes = (dataset.num_features, dataset.num_classes)
    save_model(folder, outcome, architecture, dataset.name, *sizes, num_nodes=dataset.graph.num_nodes)
    return dataset, outcome


@pytest.mark.parametrize("backbone", CASES)
def test_a_loaded_model_predicts_what_the_trainer_measured(tmp_path, backbone, device):
    dataset, outcome = saved(tmp_path / "model", backbone)
    model = load_model(tmp_path / "model")
    labels = model.predict(dataset.to(device)).cpu()
    assert labels.dtype == torch.int64
    assert labels.shape == dataset.labels.shape
    assert model.logits(dataset).shape == (len(labels), dataset.num_classes)
    for name, part in (("val_accuracy", dataset.split.val), ("test_accuracy", dataset.split.test)):
        accuracy = float((labels[part] == dataset.labels[part]).double().mean())
        assert accuracy == pytest.approx(outcome.kept[name], abs=1e-6)
    loss = torch.nn.functional.cross_entropy(
        model.logits(dataset)[dataset.split.val], dataset.labels[dataset.split.val]
    )
    assert float(loss) == pytest.approx(outcome.kept["val_loss"], rel=1e-4)


def test_settings_come_back(tmp_path):
    dataset, architecture, outcome = trained("jknet")
    names = [f"class {place}" for place in range(dataset.num_classes)]
    sizes = (dataset.num_features, dataset.num_classes)
    assert save_model(tmp_path, outcome, architecture, "my set", *sizes, class_names=names) == tmp_path
    model = load_model(tmp_path)
    assert (model.architecture, model.trial, model.kept) == (architecture, outcome.trial, outcome.kept)
    assert (model.dataset_name, model.class_names) == ("my set", tuple(names))
    assert model.best_epoch == outcome.best_epoch
    assert {name: value.numpy().tobytes() for name, value in model.state.items()} == {
        name: value.tobytes() for name, value in outcome.state.items()
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "model.safetensors"]


def test_a_save_that_is_interrupted_leaves_the_old_model_or_the_new_one(tmp_path, monkeypatch):
    _, old = saved(tmp_path, "gcn")
    new = trained("jknet")[2]
    steps, replaced = [], os.replace

    def loaded(*paths):
        steps.append(load_model(tmp_path).trial)
        replaced(*paths)
        steps.append(load_model(tmp_path).trial)

    monkeypatch.setattr(os, "replace", loaded)  # the only changes of what is there
    saved(tmp_path, "jknet")
    assert steps == [*[old.trial] * 3, *[new.trial] * 3]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "model.safetensors"]


def test_a_model_that_is_replaced_while_it_is_read(tmp_path, monkeypatch):
    saved(tmp_path, "gcn")
    read = model_file._numbers

    def late(folder, checksum):
        monkeypatch.undo()
        saved(tmp_path, "jknet")
        return read(folder, checksum)

    monkeypatch.setattr(model_file, "_numbers", late)
    assert load_model(tmp_path).architecture.backbone == "jknet"


def test_what_cannot_be_saved(tmp_path):
    _, architecture, outcome = trained("jknet", keep_state=False)
    with pytest.raises(TadropedgeError, match="keep_state=True"):
        save_model(tmp_path, outcome, architecture, "x", 3, 2)
    with pytest.raises(TadropedgeError, match="failed"):
        save_model(tmp_path, replace(outcome, failed=True), architecture, "x", 3, 2)
    _, architecture, outcome = trained("gcnn")
    with pytest.raises(TadropedgeError, match="num_nodes of a graph-level model must be"):
        save_model(tmp_path, outcome, architecture, "x", 1, 5)
    with pytest.raises(TadropedgeError, match=r"filter0.weight must be float32 of shape \[8, 4\]"):
        save_model(tmp_path, outcome, architecture, "x", 2, 5, num_nodes=20)
    assert not list(tmp_path.iterdir())


def test_datasets_that_do_not_fit(tmp_path):
    nodes, _ = saved(tmp_path / "nodes", "jknet")
    signals, _ = saved(tmp_path / "signals", "gcnn")
    with pytest.raises(TadropedgeError, match="is a graph-level task: a jknet model cannot"):
        load_model(tmp_path / "nodes").predict(signals)
    with pytest.raises(TadropedgeError, match="is a node-level task: a gcnn model cannot"):
        load_model(tmp_path / "signals").predict(nodes)
    wide = replace(nodes, features=torch.ones(nodes.graph.num_nodes, nodes.num_features + 1))
    with pytest.raises(
        TadropedgeError, match=f"expects {nodes.num_features} features, .* has {nodes.num_features + 1}"
    ):
        load_model(tmp_path / "nodes").predict(wide)
    with pytest.raises(TadropedgeError, match="expects 20 nodes, source-localization has 25"):
        load_model(tmp_path / "signals").predict(load_source_localization(nodes=25, sizes=(30, 20, 40)))


def rewrite(folder, numbers=None, **changes):
    """Write other numbers or settings, with a fingerprint that is right."""
    settings = json.loads((folder / "model.json").read_text())
    if numbers is not None:
        (folder / "model.safetensors").write_bytes(numbers)
    for path, value in changes.items():
        table = settings
        *folders, name = path.split("__")
        for part in folders:
            table = table[part]
        table[name] = value
    told = {name: value for name, value in settings.items() if name not in ("format", "version", "fingerprint")}
    numbers = (folder / "model.safetensors").read_bytes()
    settings["fingerprint"] = fingerprint(numbers=numbers, settings=told)
    (folder / "model.json").write_text(json.dumps(settings))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "not the settings of a saved model"),
        ({"version": 4}, "version 4 is not 3"),
        ({"num_features": 0}, "num_features must be in .1, 2.14748e.09., got 0"),
        ({"num_features": 10**30}, "num_features must be"),
        ({"num_classes": "7"}, "num_classes must be"),
        ({"num_features": 5}, "input.weight must be float32 of shape"),
        ({"architecture__hidden": 9}, "must be float32 of shape"),
        ({"architecture__layers": 10**9}, "layers cannot be in a file of"),
        ({"architecture__layers": 2}, "jknet must be a whole number of at least 3"),
        ({"architecture__layers": 5}, "misses hidden3.bias, hidden3.weight"),
        ({"architecture__layers": 3}, "has hidden2.bias, hidden2.weight"),
        ({"architecture__backbone": "gatt"}, "unknown backbone 'gatt'"),
        ({"architecture__hidden": True}, "architecture.hidden must be a whole number, got True"),
        ({"architecture": []}, r"architecture must be an object, got \[\]"),
        ({"trial__learning_rate": "fast"}, "trial.learning_rate must be a number, got 'fast'"),
        ({"trial__settings": {"normalization": "none"}}, "unknown normalization 'none'"),
        ({"trial__unheard": 1}, "trial has an unknown member 'unheard'; choose from batch_size, dropout"),
        ({"trial__settings": {"batch_norm": True}}, "misses hidden1.mean"),
        ({"trial__settings": {"samples": 3}}, "jknet has no setting 'samples'"),
        ({"dataset_name": 3}, "dataset_name must be a text"),
        ({"class_names": "abc"}, "class_names must be a list, got 'abc'"),
        ({"kept": {"val_loss": "low"}}, "kept.val_loss must be a number, got 'low'"),
        ({"kept": {"val_accuracy": float("nan")}}, "NaN is no number"),
        ({"kept": {"val_accuracy": None}}, "kept.val_accuracy must be a number, got None"),
        ({"kept": {"test_accuracy": 1.5}}, r"kept.test_accuracy must be in \[0, 1\], got 1.5"),
        ({"kept": {"val_loss": -1}}, "kept.val_loss must be at least 0, got -1.0"),
        ({"kept": {"luck": 1}}, "unknown value of a kept model 'luck'"),
        ({"class_names": ["a", "b"]}, "expected 4 class_names, got 2"),
        ({"class_names": ["a", "b", "c", "\ud800"]}, "surrogate"),
    ],
)
def test_settings_that_do_not_fit(tmp_path, changes, message):
    saved(tmp_path, "jknet")
    rewrite(tmp_path, **changes)
    with pytest.raises(TadropedgeError, match=message):
        load_model(tmp_path)


def test_settings_that_were_changed_by_hand_are_refused(tmp_path):
    """Each value of the settings on its own: the old checksum was of the numbers alone."""
    saved(tmp_path, "gcn")
    path = tmp_path / "model.json"
    good = json.loads(path.read_text())

    def changed(value):
        if isinstance(value, dict):
            for name, part in value.items():
                yield from ({**value, name: other} for other in changed(part))
            yield {**value, "more": 1}
        elif isinstance(value, bool):
            yield not value
        elif isinstance(value, int | float):
            yield from (value + 1, float(value) if isinstance(value, int) else int(value))
        else:
            yield "other" if value is None else None

    tables = list(changed({name: value for name, value in good.items() if name not in ("format", "version")}))
    assert len(tables) > 30
    for table in tables:
        path.write_text(json.dumps({"format": good["format"], "version": good["version"], **table}))
        with pytest.raises(TadropedgeError, match=r"damaged, or not the file that model.json belongs to"):
            load_model(tmp_path)


def test_models_of_older_versions_are_read(tmp_path):
    dataset, outcome = saved(tmp_path, "gcn")
    path = tmp_path / "model.json"
    table = json.loads(path.read_text())
    del table["fingerprint"]
    table |= {"version": 2, "sha256": hashlib.sha256((tmp_path / "model.safetensors").read_bytes()).hexdigest()}
    path.write_text(json.dumps(table))
    assert load_model(tmp_path).trial == outcome.trial
    own = table["trial"].pop("settings")
    table["trial"] |= {**own, "samples": None}
    table["architecture"] |= {"order": 5, "settings": {}}
    path.write_text(json.dumps({**table, "version": 1}))
    assert load_model(tmp_path).trial == outcome.trial
    assert load_model(tmp_path).predict(dataset).shape == dataset.labels.shape


def test_damaged_and_foreign_files(tmp_path):
    with pytest.raises(TadropedgeError, match="no such file"):
        load_model(tmp_path)
    saved(tmp_path, "jknet")
    good = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(good[:-1])
    with pytest.raises(TadropedgeError, match="checksum"):
        load_model(tmp_path)
    for foreign in (b"", good[:-1], b"\xff" * 64, pickle.dumps({"weight": [1.0]})):
        rewrite(tmp_path, foreign)
        with pytest.raises(TadropedgeError, match="not a safetensors file"):
            load_model(tmp_path)
    for change, message in (({"input.bias": None}, "misses input.bias"), ({"x": np.zeros(2)}, "has x, unlike")):
        tensors = {name: value for name, value in (load(good) | change).items() if value is not None}
        rewrite(tmp_path, save(tensors))
        with pytest.raises(TadropedgeError, match=message):
            load_model(tmp_path)
    rewrite(tmp_path, save(load(good) | {"input.bias": np.full(8, np.nan, dtype=np.float32)}))
    with pytest.raises(TadropedgeError, match=r"input.bias must be finite"):
        load_model(tmp_path)
    for text in ("{", "[]", "\x00", "[" * 100_000):
        (tmp_path / "model.json").write_text(text)
        with pytest.raises(TadropedgeError, match=r"cannot be read as JSON|not JSON|not the settings"):
            load_model(tmp_path)
