"""The baselines under the laboratory, the search and the command line: trials are alone in a batch, and resumed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import cache, partial

import numpy as np
import optuna
import pytest
import torch
from typer.testing import CliRunner

from tadropedge.cli import app
from tadropedge.data.source_localization import load_source_localization
from tadropedge.data.synthetic import load_clusters, load_karate
from tadropedge.errors import TadropedgeError
from tadropedge.method import Method, droppings
from tadropedge.registry import NETWORKS
from tadropedge.search import Space, honest, method_space, run_search
from tadropedge.search.space import default_space, trial
from tadropedge.sparse import hush_beta_warning
from tadropedge.training import batch as batches
from tadropedge.training.batch import Batch, Course, mini_batches
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.laboratory import Laboratory, make_task
from tadropedge.training.model_file import load_model, save_model
from tadropedge.training.task import TRAIN

pytestmark = pytest.mark.usefixtures("one_thread")
COMPETITORS = ["graphsage", "fastgcn", "as-gcn", "neuralsparse", "ptdnet"]
CURVES = ("train_loss", "val_loss", "val_accuracy", "test_accuracy")
KARATE = load_karate()


@cache
def sparse_clusters():
    hush_beta_warning()
    dataset = load_clusters(clusters=3, nodes=50)
    return replace(dataset, features=dataset.features.relu().to_sparse_csr())


def lab(dataset=KARATE, epochs=5, **settings):
    return Laboratory(dataset, Architecture(hidden=8), epochs=epochs, **settings)


def task_of(dataset):
    return make_task(dataset, [dataset.split])


TRIALS = [
    Trial.of("graphsage", seed=1, hidden=8, samples=2, batch_size=3),
    Trial.of("graphsage", seed=2, hidden=8, samples=5, batch_size=3, inductive=True, dropout=0.0),
    Trial.of("graphsage+cdf", seed=1, hidden=8, samples=3, batch_size=3, keep_prob=0.4),
    Trial.of("fastgcn", seed=3, samples=4, batch_size=4),
    Trial.of("fastgcn", seed=4, samples=9, batch_size=4, inductive=True, split=2),
    Trial.of("fastgcn+dropedge", seed=4, samples=9, batch_size=4, keep_prob=0.5),
    Trial.of("as-gcn", seed=5, samples=6, variance=0.5, weight_decay=0.0),
    Trial.of("as-gcn", seed=6, samples=11, variance=0.0, split=1, learning_rate=0.03),
    Trial.of("as-gcn+effective-cdf", seed=6, samples=11, variance=2.0),
    Trial.of("neuralsparse", seed=7, hidden=8, samples=2),
    Trial.of("neuralsparse", seed=8, hidden=8, samples=4, dropout=0.2, split=1),
    Trial.of("ptdnet", seed=9, hidden=8),
    Trial.of("ptdnet", seed=9, hidden=8, sparsity=0.5, nuclear=0.1, split=2),
    Trial.of("ptdnet", seed=9, hidden=4, nuclear=0.0),
    Trial.of("dropedge", seed=1),
]


def close(ours, others, atol=1e-5):
    for mine, other in zip(ours, others, strict=True):
        assert mine.trial == other.trial
        for name in CURVES:
            assert np.allclose(getattr(mine, name), getattr(other, name), atol=atol), (mine.trial.method, name)


# -- trials do not see each other ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dataset", [lambda: KARATE, sparse_clusters], ids=["dense", "sparse"])
@pytest.mark.parametrize("per_layer", [False, True])
def test_a_trial_does_not_depend_on_its_batch(dataset, per_layer):
    mine = lab(dataset(), per_layer=per_layer)
    together = mine.train(TRIALS)
    assert [outcome.trial for outcome in together] == TRIALS
    assert not any(outcome.failed for outcome in together)
    close(together, [mine.train([trial])[0] for trial in TRIALS])
    close(together, mine.train(TRIALS[::-1])[::-1])


def test_settings_and_seeds_matter():
    base = Trial.of("graphsage", hidden=8, samples=2, batch_size=3)
    changes = [{"seed": 1}, {"samples": 4}, {"batch_size": 2}, {"inductive": True}, {"hidden": 4}, {"dropout": 0.1}]
    first, *others = lab().train([base, *(base.but(**change) for change in changes)])
    assert all(not np.allclose(first.train_loss, other.train_loss, atol=1e-4) for other in others)


# -- mini-batches ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("batch_size", "sizes"), [(3, [3, 3, 2]), (4, [4, 4]), (100, [8]), (1, [1] * 4)])
def test_an_epoch_is_a_pass_over_the_training_nodes(batch_size, sizes, monkeypatch):
    dataset = KARATE
    assert len(dataset.split.train) == 8
    trial = Trial.of("fastgcn", batch_size=batch_size)
    batch = Batch(task_of(dataset), Architecture(hidden=8), [trial], [0], Course(epochs=3))
    seen = []
    monkeypatch.setattr(batch, "_learn", lambda nodes, keeps: seen.append(nodes) or torch.zeros(1, 1))
    batch.run_epoch()
    assert [int(nodes.sum()) for nodes in seen] == sizes
    together = torch.stack(seen).sum(0)
    assert float(together.max()) == 1  # no node twice
    assert float((together - batch.learning.masks[TRAIN]).max()) <= 0
    assert torch.equal(together, batch.learning.masks[TRAIN]) == (sum(sizes) == 8)
    batch.run_epoch()
    if len(sizes) > 1:
        assert not torch.equal(torch.stack(seen[: len(sizes)]), torch.stack(seen[len(sizes) :]))


def test_a_large_training_set_takes_more_than_an_epoch(monkeypatch):
    monkeypatch.setattr(batches, "MOST_STEPS", 2)
    assert mini_batches(Trial.of("fastgcn", batch_size=3), Architecture(), 8) == (3, 2)
    assert mini_batches(Trial.of("fastgcn"), Architecture(), 8) == (8, 1)
    assert mini_batches(Trial.of("ptdnet"), Architecture(), 8) == (None, 1)


# -- sizes ----------------------------------------------------------------------------------------------------------


def test_batches_are_smaller_for_wider_methods():
    mine = lab(sparse_clusters())
    sizes = [mine.fitting([Trial.of("cdf"), Trial.of("ptdnet", hidden=width)]) for width in (64, 1024)]
    assert sizes[0] > sizes[1] >= 1
    assert mine.fitting([Trial.of("cdf")]) == mine.fitting()


# -- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Trial.of("fastgnc"), "unknown method 'fastgnc'.*did you mean 'fastgcn'"),
        (
            lambda: Trial.of("ptdnet+cdf"),
            "ptdnet chooses its edges itself .*: 'ptdnet\\+cdf'",
        ),
        (lambda: Trial.of("graphsage+cfd"), "unknown method 'graphsage\\+cfd'"),
        (
            lambda: Trial.of("fastgcn", nuclear=0.1),
            "fastgcn has no setting 'nuclear', got 0.1; its settings",
        ),
        (lambda: lab().train([Trial.of("cdf", samples=3)]), "gcn has no setting 'samples', got 3"),
        (lambda: Trial.of("fastgcn", samples=0), "samples must be a whole number of at least 1, got 0"),
        (lambda: Trial.of("ptdnet", sparsity=-1.0), "sparsity must be a number of at least 0, got -1.0"),
        (lambda: Trial.of("as-gcn", variance=float("nan")), "variance must be a number of at least 0, got nan"),
        (lambda: Trial.of("fastgcn", inductive=1), "inductive must be True or False, got 1"),
        (lambda: lab(selection="training").train([Trial.of("as-gcn")]), "as-gcn has no validation loss .*evaluation"),
        (lambda: Space.of({"samples": [2.5]}), "samples of a search space must be a whole number, got 2.5"),
        (lambda: Space.of({"samples": [True]}), "samples of a search space must be a whole number, got True"),
        (lambda: Space.of({"samples": [0]}), "samples must be a whole number of at least 1, got 0"),
        (lambda: Space.of({"variance": {"uniform": [-1, 1]}}), "variance must be a number of at least 0, got -1"),
    ],
)
def test_wrong_settings_are_named(make, words):
    with pytest.raises(TadropedgeError, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_graph_level_task_is_refused():
    signals = load_source_localization(nodes=20, communities=2, times=5, sizes=(12, 10, 15))
    mine = Laboratory(signals, Architecture("gcnn", 1, 4), epochs=2)
    with pytest.raises(TadropedgeError, match="fastgcn is for node-level tasks and cannot"):
        mine.train([Trial.of("fastgcn")])


# -- search -----------------------------------------------------------------------------------------------------------


def test_every_method_has_a_space_whose_draws_are_trials_of_it():
    for method in [*droppings(), *COMPETITORS, "graphsage+cdf", "as-gcn+dropedge"]:
        space = method_space(method, 0.01)
        drawn = [trial(space, 0, i, method) for i in range(50)]
        assert drawn == [trial(method_space(method, 0.01), 0, i, method) for i in range(50)]
        network = Method.of(method).network
        if network is None:
            others = {"sensitivity", "keep_ratio", "keep_prob", "score", "rule", "inverse", "option", "keep_last"}
            common = {name: one for name, one in space.parameters.items() if name not in others}
            assert common.items() <= default_space(0.01).parameters.items()
            of_its_own = method in ("auto", "dropsens") or method.endswith("proportional")
            assert of_its_own == (space != default_space(0.01))
            continue
        own = set(space.parameters) & set(NETWORKS[network].settings)
        assert own
        assert all(len({one.settings[name] for one in drawn}) > 1 for name in own)
        assert ("keep_prob" in space.parameters) == ("+" in method)
    assert Space.of(json.loads(json.dumps(method_space("as-gcn").table()))) == method_space("as-gcn")
    assert "self_weight" not in method_space("cdf", backbone="gcnn").parameters


def test_search_and_both_protocols_go_on_where_they_stopped():
    methods = ("dropedge", "graphsage+cdf", "neuralsparse", "as-gcn")
    storage, mine = optuna.storages.InMemoryStorage(), lab(epochs=2)
    spaces = partial(method_space, gamma=0.01)
    narrow = {"methods": methods, "seed": 0, "storage": storage, "space": spaces}
    seen = []

    def train(trials):
        seen.extend(trials)
        return mine.train(trials)

    run_search(train, trials=1, **narrow)
    table = run_search(train, trials=2, **narrow)
    assert len(seen) == 8
    again = run_search(train, trials=2, **narrow)
    assert len(seen) == 8
    assert repr(again) == repr(table)
    assert all(row.trial.method == method for method, rows in table.items() for row in rows)
    result = honest(train, table, spaces, 2, 0, storage, mine.kept_share)
    assert set(result.accuracy) == set(methods)
    assert set(result.reference) == {"graphsage+cdf"}
    assert {row.trial.method for row in result.reference_runs["graphsage+cdf"]} == {"graphsage+dropedge"}
    done = len(seen)
    honest(train, table, spaces, 2, 0, storage, mine.kept_share)
    assert len(seen) == done


def test_the_reference_keeps_as_many_edges():
    mine = lab()
    share = mine.kept_share(Trial.of("graphsage+cdf", keep_prob=0.4))
    assert share == pytest.approx(mine.kept_share(Trial.of("cdf", keep_prob=0.4)))
    assert mine.kept_share(Trial.of("graphsage+dropedge", keep_ratio=share)) == pytest.approx(share)


# -- command line and files ----------------------------------------------------------------------------------------


def test_compare_takes_all_of_them(tmp_path):
    methods = "original,dropedge,cdf,graphsage,fastgcn,as-gcn,neuralsparse,ptdnet,graphsage+cdf"
    arguments = ["compare", "karate", "--methods", methods, "--trials", "1", "--seeds", "2", "--epochs", "2", "--json"]
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    rows = {row["method"]: row for row in json.loads(result.stdout)["compare"]}
    assert set(rows) == {*methods.split(","), "graphsage+dropedge", "fastgcn+dropedge", "as-gcn+dropedge"}
    against = {
        name: {kind: test["reference"] for kind, test in row["against"].items()}
        for name, row in rows.items()
        if "against" in row
    }
    assert against["graphsage+cdf"].pop("budget").startswith("graphsage+dropedge at ")
    assert against["graphsage+cdf"] == {"none": "graphsage", "dropedge": "graphsage+dropedge"}
    assert against["fastgcn+dropedge"] == {"none": "fastgcn"}
    assert against["ptdnet"] == {"none": "original"}
    assert "fastgcn" not in against
    assert set(rows["neuralsparse"]["settings"]) == {"learning_rate", "weight_decay", "dropout", "hidden", "samples"}


@pytest.mark.parametrize(("method", "own"), [("cdf", {"batch_norm": True}), ("fastgcn", {"samples": 9, "hidden": 8})])
def test_models_saved_by_version_1_are_read(method, own, tmp_path):
    [outcome] = lab(epochs=2).train([Trial.of(method, **own)], keep_state=True)
    folder = save_model(tmp_path, outcome, Architecture(hidden=8), "karate", 34, KARATE.num_classes)
    path, expected = folder / "model.json", load_model(folder).logits(KARATE)
    settings = json.loads(path.read_text())
    # Every setting of every network stood in the trial, whether the network had it or not.
    flat = {"normalization": "gcn", "self_weight": False, "batch_norm": False, "hidden": None, "samples": None}
    flat |= {"inductive": None, "variance": None, "sparsity": None, "nuclear": None}
    settings["trial"] |= flat | settings["trial"].pop("settings")
    settings["architecture"] = {**settings["architecture"], "order": 5}
    del settings["architecture"]["settings"]
    del settings["fingerprint"]
    checksum = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    path.write_text(json.dumps(settings | {"version": 1, "sha256": checksum}))
    model = load_model(folder)
    assert model.architecture == Architecture(hidden=8)
    assert model.architecture.settings_of(model.trial) == Architecture(hidden=8).settings_of(outcome.trial)
    assert torch.equal(model.logits(KARATE), expected)
