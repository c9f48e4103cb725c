"""Gradient norms of every layer: against autograd of a dense model, and what is stored of them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import optuna
import pytest
import torch
from typer.testing import CliRunner

from tadropedge import shift_operator
from tadropedge.cli import app
from tadropedge.data.synthetic import load_clusters, load_karate
from tadropedge.search.engine import run_search
from tadropedge.search.space import Space
from tadropedge.search.study import Finished, Ledger
from tadropedge.training.batch import Batch, Course
from tadropedge.training.config import METRICS, Architecture, GradientNorms, Trial
from tadropedge.training.laboratory import Laboratory, make_task

pytestmark = pytest.mark.usefixtures("one_thread")
KARATE = load_karate()
QUIET = {"dropout": 0.0, "weight_decay": 0.1}  # which is no part of the gradient that is recorded


def lab(layers=2, epochs=4, dataset=KARATE, backbone="gcn", **settings):
    return Laboratory(dataset, Architecture(backbone, layers, 8), epochs, **{"gradient_norms": True, **settings})


def dense_norms(parameters, layers, nodes, dataset=KARATE):
    """Norms of the gradients of a GCN written with dense matrices, in float64."""
    names = ["output"] if layers == 1 else ["input", *(f"hidden{k}" for k in range(1, layers - 1)), "output"]
    own = {key: torch.tensor(value).double().requires_grad_() for key, value in parameters.items()}
    shift = shift_operator(dataset.graph).to_dense().double()
    h = dataset.features.to_dense().double()
    for name in names:
        h = shift @ h @ own[f"{name}.weight"] + own[f"{name}.bias"]
        h = h if name == "output" else h.relu()
    torch.nn.functional.cross_entropy(h[nodes], dataset.labels[nodes]).backward()
    return names, [float(own[f"{name}.weight"].grad.norm()) for name in names]


def batch_of(trials, layers, dataset=KARATE, **course):
    task = make_task(dataset, [dataset.split])
    return Batch(task, Architecture("gcn", layers, 8), trials, [0] * len(trials), Course(gradient_norms=True, **course))


@pytest.mark.parametrize("layers", [1, 2, 3, 12])
def test_equal_to_autograd_of_a_dense_model(layers):
    trials = [Trial(seed=seed, **QUIET) for seed in (3, 8)]
    batch = batch_of(trials, layers, epochs=1)
    starts = [{key: value[t].detach().numpy().copy() for key, value in batch.parameters.items()} for t in range(2)]
    for start, outcome in zip(starts, batch.run(), strict=True):
        names, norms = dense_norms(start, layers, KARATE.split.train)
        assert outcome.gradient_norms.layers == tuple(names)
        assert outcome.gradient_norms.norms.shape == (1, layers)
        assert np.allclose(outcome.gradient_norms.norms[0], norms, rtol=2e-3)


def test_with_mini_batches_it_is_the_mean_of_their_norms():
    dataset = load_clusters(clusters=3, nodes=20)
    trial = Trial(seed=2, learning_rate=1e-30, batch_size=5, **QUIET)  # so small that no step moves anything
    batch = batch_of([trial], 2, dataset, epochs=1)
    assert batch.steps > 1
    ranks, start = batch._ranks(), {key: value[0].detach().numpy().copy() for key, value in batch.parameters.items()}
    parts = [torch.nonzero(batch._nodes(ranks, number)[0])[:, 0] for number in range(batch.steps)]
    expected = np.mean([dense_norms(start, 2, nodes, dataset)[1] for nodes in parts], axis=0)
    assert np.allclose(batch.run()[0].gradient_norms.norms[0], expected, rtol=1e-3)


@pytest.mark.parametrize(
    ("backbone", "layers"),
    [("gcn", ("input", "output")), ("gat", ("input", "output")), ("graphsage", ("sage1", "sage2", "output"))],
)
def test_recording_changes_no_result(backbone, layers):
    trials = [Trial(seed=seed) for seed in range(3)]
    told, plain = (lab(backbone=backbone, gradient_norms=on).train(trials) for on in (True, False))
    for mine, other in zip(told, plain, strict=True):
        assert other.gradient_norms is None
        assert mine.gradient_norms.norms.shape == (4, len(mine.gradient_norms.layers))
        assert mine.gradient_norms.layers == layers
        assert bool((mine.gradient_norms.norms > 0).all())
        assert all(np.array_equal(getattr(mine, name), getattr(other, name)) for name in METRICS)


def test_alone_and_in_a_batch_norms_are_the_same_to_the_last_bit():
    trials = [Trial("dropedge", seed=seed, learning_rate=0.01 * (1 + seed)) for seed in range(3)]
    mine = lab(3)
    for outcome in mine.train(trials):
        alone = mine.train([outcome.trial])[0]
        assert np.array_equal(outcome.gradient_norms.norms, alone.gradient_norms.norms)


def test_only_evaluated_epochs_have_norms():
    always, seldom = (lab(epochs=8, evaluate_every=every).train([Trial()])[0].gradient_norms for every in (1, 3))
    assert seldom.epochs == [2, 5, 7]
    assert np.isnan(np.delete(seldom.norms, seldom.epochs, axis=0)).all()
    assert np.array_equal(seldom.norms[seldom.epochs], always.norms[seldom.epochs])


def test_every_device_records_alike(device):
    trials = [Trial("dropedge", seed=seed) for seed in range(2)]
    here = lab(9, epochs=6, dataset=KARATE.to(device)).train(trials)
    for mine, other in zip(here, lab(9, epochs=6).train(trials), strict=True):
        assert np.allclose(mine.gradient_norms.norms, other.gradient_norms.norms, rtol=0.02, atol=1e-6)


def test_a_plain_deep_network_has_gradients_that_vanish_and_a_joined_one_has_not():
    ratios = {}
    for backbone in ("gcn", "jknet"):
        [outcome] = lab(16, backbone=backbone, gradient_norms=False).train([Trial()])  # deep: recorded unasked
        first, last = outcome.gradient_norms.ends
        ratios[backbone] = first / last
    assert ratios["gcn"] < 0.1 * ratios["jknet"]


def test_means_over_epochs_are_geometric():
    norms = np.array([[2.0, 7.0, 9.0], [np.nan] * 3, [8.0, 1.0, 1.0]], dtype=np.float32)
    found = GradientNorms(layers=("a", "b", "c"), norms=norms)
    assert found.epochs == [0, 2]
    assert found.ends == pytest.approx((4.0, 3.0))
    norms[2, 0] = 0.0
    assert found.ends == pytest.approx((0.0, 3.0))


# -- what a study holds -------------------------------------------------------------------------------------------


def test_a_study_holds_two_numbers_of_a_deep_network_and_none_of_others():
    for layers in (2, 8):
        mine, memory = lab(layers, gradient_norms=False), optuna.storages.InMemoryStorage()
        space = Space.of({"dropout": [0.3, 0.5]})
        run_search(mine.train, space, ["dropedge"], 2, 0, memory, name="x", settings=mine.settings)
        ledger = Ledger(memory, "x/search/dropedge", "dropedge", space, {**mine.settings, "seed": 0})
        assert sorted(ledger.finished) == [0, 1]
        for row in ledger.finished.values():
            [outcome] = mine.train([row.trial])
            assert Finished.of(row.index, outcome) == row
            if layers == 8:
                assert row.gradients == pytest.approx(outcome.gradient_norms.ends, rel=1e-5)
            else:
                assert row.gradients is None
        stored = [one.user_attrs for one in memory.get_all_trials(ledger.id)]
        assert all(("gradients" in one) == (layers == 8) for one in stored)


def test_a_trial_stored_before_and_now_is_the_same_result():
    [outcome] = lab().train([Trial()])
    before, now = Finished.of(0, replace(outcome, gradient_norms=None)), Finished.of(0, outcome)
    assert before.gradients is None
    assert now.gradients is not None
    assert before == now
    assert Finished.of(0, replace(outcome, failed=True)).gradients is None


def test_train_prints_and_writes_them(tmp_path):
    words = ["train", "karate", "--hidden", "4", "--layers", "3", "--epochs", "7", "--method", "original"]
    words += ["--out", str(tmp_path)]
    told = json.loads(CliRunner().invoke(app, [*words, "--gradient-norms", "--json"]).stdout)
    assert told["gradient_norms"]["epochs"] == [0, 3, 6]
    header, *lines = (tmp_path / "gradient_norms.csv").read_text().splitlines()
    assert header == "epoch,input,hidden1,output"
    rows = [[float(cell) for cell in line.split(",")] for line in lines]
    assert [row[0] for row in rows] == list(range(7))
    for place, (layer, norms) in enumerate(told["gradient_norms"]["layers"].items(), 1):
        assert layer == header.split(",")[place]
        assert norms == [rows[epoch][place] for epoch in (0, 3, 6)]
    shown = CliRunner().invoke(app, [*words, "--gradient-norms"]).stdout
    first, last = (", ".join(f"{rows[epoch][place]:.3g}" for epoch in (0, 3, 6)) for place in (1, 3))
    assert f"gradient norm of input in epochs 0, 3, 6: {first}\n" in shown
    assert f"gradient norm of output in epochs 0, 3, 6: {last}\n" in shown
    plain = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert plain == {name: value for name, value in told.items() if name != "gradient_norms"}
    assert not (tmp_path / "gradient_norms.csv").exists()  # it belonged to the model before
