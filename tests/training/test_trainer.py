"""How lists of trials are trained: whole searches, rungs, memory that runs out, checkpoints, keys and refusals."""

from __future__ import annotations

import logging
import sys
import types
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from trainings import KARATE, experiment, same, trial

from tadropedge import SCORES, Dropping, TadropedgeError
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.data.load import load
from tadropedge.lab.training.batch import Batch
from tadropedge.lab.training.callbacks import Callback, Checkpoint, Progress, TensorBoard
from tadropedge.lab.training.experiment import Experiment
from tadropedge.lab.training.fit import fit
from tadropedge.lab.training.trainer import Trainer
from tadropedge.lab.training.trial import MiniBatch, TrainingSettings, Trial


def search(name, count, **values):
    """The trials of one search: other seeds and rates."""
    return [trial(name, seed=seed, learning_rate=0.003 * (1 + seed), **values) for seed in range(count)]


# -- rungs ----------------------------------------------------------------------------------------------------


def best_until(outcome, epochs, name="val_score"):
    return np.nanmax(outcome.curves[name][:epochs])


def test_a_rung_stops_the_worst_half_of_each_search():
    trials = search("dropedge@0.5", 7, replicate=0) + search("degree-cdf@0.7", 4, replicate=0)
    trials += search("dropedge@0.5", 3, replicate=1, split=1)
    whole = fit(Batch(experiment(epochs=30, keep="measure"), trials))
    found = fit(Batch(experiment(epochs=30, keep="measure", rungs=(10, 20)), trials))
    for places in (range(7), range(7, 11), range(11, 14)):
        left = list(places)
        for rung in (10, 20):
            ranked = sorted(left, key=lambda place, rung=rung: (-best_until(whole[place], rung), place))
            left, gone = ranked[: (len(left) + 1) // 2], ranked[(len(left) + 1) // 2 :]
            assert all(found[place].stopped == rung for place in gone)
        assert all(found[place].stopped is None for place in left)
    for one, other in zip(found, whole, strict=True):
        done = one.stopped or 30
        for name, curve in one.curves.items():
            assert np.array_equal(curve[:done], other.curves[name][:done], equal_nan=True)
            assert np.isnan(curve[done:]).all()
        assert one.best_epoch < done
        assert not one.failed
        assert one.rungs == (10, 20)
        assert one.stopped or same(one, other)


def test_a_trial_that_diverges_is_stopped_first():
    calm = search("dropedge@0.5", 3)
    wild = replace(calm[0], learning_rate=1e38, weight_decay=1e3)
    found = fit(Batch(experiment(epochs=10, rungs=(5,)), [wild, *calm]))
    assert found[0].stopped == 5
    assert found[0].failed


def test_the_kept_models_are_those_of_trials_that_stopped_too():
    trials = search("dropedge@0.5", 4)
    told = experiment(epochs=20, keep="measure", rungs=(10,))
    for outcome, number in zip(fit(Batch(told, trials), keep_state=True), range(4), strict=True):
        short = TrainingSettings(epochs=outcome.best_epoch + 1, keep="loss")
        [alone] = fit(Batch(replace(told, training=short), [trials[number]]), keep_state=True)
        last = alone.best_epoch == outcome.best_epoch
        assert not last or all(np.array_equal(outcome.state[name], alone.state[name]) for name in alone.state)


# -- batches --------------------------------------------------------------------------------------------------


def test_a_batch_holds_whole_searches():
    trials = [one for r in range(5) for one in search("dropedge@0.5", 4, replicate=r)]
    trials += search("dropedge@0.5:exact", 3) + search("degree-cdf@0.7", 20) + search("original", 2)
    trials += search("gcn+dropedge@0.5", 2, settings={"batch_norm": True}) + search("mlp", 1)
    trainer = Trainer(experiment())
    groups = trainer.batches(trials)
    assert sorted(map(str, trials)) == sorted(str(one) for group in groups for one in group)
    for group in groups:
        assert len(group) <= 16
        assert len({trainer.experiment.structure(one) for one in group}) == 1
        held = {one.search for one in group}
        whole = [one for one in trials if one.search in held]
        assert group.rungs == (len(whole) == len(group))
    assert [len(group) for group in groups if not group.rungs] == [16, 4]
    assert all(len(group) <= 3 for group in Trainer(experiment(), at_once=3).batches(trials))


def test_what_trains_by_itself_has_no_rungs():
    trials = search("mlp", 2)
    own = Trainer(experiment(model=Own, rungs=(5,)))
    assert [(len(group), group.rungs) for group in own.batches(search("original", 2))] == [(1, False)] * 2
    assert [(len(group), group.rungs) for group in own.batches(trials)] == [(2, True)]
    sampled = replace(experiment(), training=TrainingSettings(epochs=9, rungs=(5,), mini_batch=MiniBatch(size=4)))
    assert [(len(group), group.rungs) for group in Trainer(sampled).batches(trials)] == [(1, False)] * 2
    assert Trainer(experiment(rungs=(5,))).train(trials)[0].rungs == (5,)
    cut = Trainer(experiment(rungs=(5,)), at_once=1).train(trials)
    assert all(outcome.rungs == () and outcome.stopped is None for outcome in cut)


def test_outcomes_come_in_the_order_of_the_trials():
    trials = [trial(name, seed=seed) for seed in range(2) for name in ("dropedge@0.5", "original", "mlp")]
    trials.append(trials[0])
    outcomes = Trainer(experiment()).train(trials)
    assert [outcome.trial for outcome in outcomes] == trials
    assert same(outcomes[0], outcomes[-1])
    assert same(outcomes[0], fit(Batch(experiment(), [trials[0]]))[0])
    assert all(outcome.seconds > 0 for outcome in outcomes)


class Narrow(Callback):
    """A memory that holds so many trials."""

    def __init__(self, most, error=MemoryError):
        self.most, self.error, self.sizes = most, error, []

    def epoch(self, run):
        if len(run.trials) > self.most:
            raise self.error("cannot allocate")
        if run.epoch == 1:
            self.sizes.append(len(run.trials))


@pytest.mark.parametrize("error", [MemoryError, torch.OutOfMemoryError])
def test_where_memory_runs_out_a_batch_is_halved(error):
    trials, narrow = search("dropedge@0.5", 7), Narrow(2, error)
    outcomes = Trainer(experiment(rungs=(5,))).train(trials, [narrow])
    assert narrow.sizes == [1, 2, 2, 2]
    assert all(same(one, other) for one, other in zip(outcomes, fit(Batch(experiment(), trials)), strict=True))
    assert {outcome.rungs for outcome in outcomes} == {()}
    with pytest.raises(TadropedgeError, match="memory"):
        Trainer(experiment()).train(trials, [Narrow(0, error)])
    with pytest.raises(ZeroDivisionError):
        Trainer(experiment()).train(trials, [Narrow(2, ZeroDivisionError)])


# -- budgets --------------------------------------------------------------------------------------------------


def test_a_budget_that_cannot_be_met_becomes_the_least_that_can_and_the_outcome_tells():
    tree = 33 / 78
    trials = [trial(name) for name in ("dropedge@0.1:connected", "degree-proportional@0.9:connected")]
    kept = [outcome.kept_share for outcome in Trainer(experiment()).train(trials)]
    assert kept == pytest.approx([tree, 0.9])
    floor = SCORES["dropsens"](KARATE.graph).mean().item()
    [outcome] = Trainer(experiment()).train([trial(f"dropsens-floor@{floor / 2:.4f}")])
    assert outcome.kept_share == pytest.approx(floor, abs=1e-6)


@pytest.mark.parametrize("name", ["dropedge@0.1:connected", "dropsens-floor@0.001"])
def test_a_candidate_that_names_such_a_budget_is_refused(name):
    with pytest.raises(TadropedgeError, match=r"keep.ratio"):
        experiment().check(Candidate.parse(name))


@pytest.mark.parametrize(
    ("name", "network", "word"),
    [
        ("mlp+dropedge", "gcn", "sees no edges"),
        ("column-cdf", "gcn", "column"),
        ("dropedge", "jknet", "at least 3 layers"),
        ("common-neighbours-proportional:unbiased", "gcn", "above 0"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_any_work(name, network, word):
    with pytest.raises(TadropedgeError, match=word):
        experiment(network=network).check(Candidate.parse(name))


@pytest.mark.parametrize("name", ["dropedge@0.5", "gcn+original"])
def test_settings_of_consistency_belong_to_consistent_candidates(name):
    with pytest.raises(TadropedgeError, match="draws"):
        Trainer(experiment()).train([trial(name, settings={"draws": 2})])


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"network": "gnc"}, "gcn"),
        ({"layers": 0}, "layers"),
        ({"hidden": -3}, "-3"),
        ({"data": "karate"}, "load"),
        ({"device": "tpu"}, "tpu"),
        ({"score_settings": {"p": 7}}, "'p'"),
        ({"model": torch.nn.Linear(2, 2)}, "Linear"),
    ],
)
def test_an_experiment_refuses_what_is_wrong_in_one_line(values, word):
    with pytest.raises(TadropedgeError, match=word):
        Experiment(**{"data": KARATE, **values})


def test_scores_are_computed_once_and_told_their_settings(monkeypatch):
    calls = []

    def counted(graph, power=1.0):
        calls.append(power)
        return torch.rand(graph.num_edges, dtype=torch.float64) ** power

    monkeypatch.setitem(SCORES, "counted", counted)
    told = Experiment(data=KARATE, score_settings={"power": 2.0}, training=TrainingSettings(epochs=2))
    trials = [trial(f"counted-proportional@{share}", seed=seed) for share in (0.2, 0.5) for seed in range(3)]
    Trainer(told).train(trials)
    told.check(Candidate.parse("counted-cdf:weighted"))
    assert calls == [2.0]
    assert told.plan(trials[0].candidate.dropping) is told.plan(trials[1].candidate.dropping)


def test_a_column_of_the_data_is_its_score():
    data = replace(KARATE, column=torch.arange(1.0, 79.0))
    plan = Experiment(data=data).plan(Dropping.parse("column-proportional@0.2"))
    assert torch.allclose(plan.prob, 0.2 * 78 * torch.arange(1.0, 79.0).double() / (78 * 79 / 2), atol=1e-6)


# -- keys -----------------------------------------------------------------------------------------------------

BASE = {"data": KARATE, "training": TrainingSettings(epochs=50)}
OTHERS = {
    "data": load("karate", per_class=3),
    "network": "sage",
    "layers": 3,
    "hidden": 32,
    "settings": {"batch_norm": True},
    "training": TrainingSettings(epochs=60),
    "score_settings": {"q": 3},
    "model": lambda num_features, num_classes, hidden=3: Own(num_features, num_classes),
    "device": "cuda",
}
OTHER_TRAININGS = {
    "epochs": 60,
    "measure": "macro-f1",
    "keep": "loss",
    "rungs": (20,),
    "mini_batch": MiniBatch(),
    "precision": "high",
}
OTHER_TRIALS = {
    "candidate": Candidate.parse("cdf@0.6"),
    "learning_rate": 0.02,
    "weight_decay": 0.0,
    "dropout": 0.4,
    "settings": {"self_weight": True},
    "seed": 4,
    "split": 1,
    "replicate": 2,
    "group": "mine",
}


class Own(torch.nn.Module):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.linear = torch.nn.Linear(num_features, num_classes)

    def forward(self, x, edge_index):
        return self.linear(x)


def test_every_field_decides_the_key(monkeypatch):
    one, base = trial("cdf@0.5"), Experiment(**BASE)
    monkeypatch.setattr("tadropedge.lab.training.experiment.check_runs_on", lambda device: device)
    keys = {base.key(one)}
    assert {Experiment(**BASE).key(trial("cdf@0.5"))} == keys
    assert {each.name for each in fields(Experiment)} == set(OTHERS)
    assert {each.name for each in fields(TrainingSettings)} == set(OTHER_TRAININGS)
    assert {each.name for each in fields(Trial)} == set(OTHER_TRIALS)
    for name, value in OTHERS.items():
        keys.add(Experiment(**{**BASE, name: value}).key(one))
    for name, value in OTHER_TRAININGS.items():
        keys.add(replace(base, training=replace(base.training, **{name: value})).key(one))
    for name, value in OTHER_TRIALS.items():
        keys.add(base.key(replace(one, **{name: value})))
    assert len(keys) == len(OTHERS) + len(OTHER_TRAININGS) + len(OTHER_TRIALS)  # both others have 60 epochs
    assert {len(key) for key in keys} == {64}


def test_the_source_of_a_users_score_is_part_of_the_key(tmp_path, monkeypatch):
    keys = []
    for power in (1, 2):
        (tmp_path / "my_score.py").write_text(f"def mine(graph):\n    return graph.pairs[0] ** {power}\n")
        module = types.ModuleType("my_score")
        module.__file__ = str(tmp_path / "my_score.py")
        exec(compile((tmp_path / "my_score.py").read_text(), module.__file__, "exec"), module.__dict__)
        monkeypatch.setitem(sys.modules, "my_score", module)
        monkeypatch.setitem(SCORES, "mine", module.mine)
        keys.append(experiment().key(trial("mine-cdf@0.5")))
    assert keys[0] != keys[1]


def test_trials_and_experiments_are_plain_values():
    import json

    told = json.loads(json.dumps(experiment(rungs=(5,)).as_dict()))
    assert told["data"]["nodes"] == 34
    assert told["training"]["rungs"] == [5]
    one = trial("gcn+degree-cdf@0.7:connected:finish", seed=2**63, settings={"batch_norm": True})
    assert Trial.from_dict(json.loads(json.dumps(one.as_dict()))) == one


# -- checkpoints ----------------------------------------------------------------------------------------------


class Kill(Callback):
    """Ends the process after some epochs, as the system would."""

    def __init__(self, after):
        self.after = after

    def epoch(self, run):
        if run.epoch == self.after:
            raise KeyboardInterrupt


KINDS = {
    "dropped": ("dropedge@0.5", {}),
    "batch-norm": ("degree-cdf@0.7:finish", {"settings": {"batch_norm": True}}),
    "consistent": ("dropedge@0.5:consistent", {"settings": {"draws": 2}}),
    "weighted": ("degree-proportional@0.5:weighted", {}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after", [3, 10, 14])
def test_a_resumed_training_has_the_same_bits(kind, after, tmp_path):
    name, values = KINDS[kind]
    trials, told = search(name, 5, **values), experiment(epochs=20, keep="measure", rungs=(10,))
    expected = Trainer(told).train(trials, keep_state=True)
    with pytest.raises(KeyboardInterrupt):
        Trainer(told).train(trials, [Checkpoint(tmp_path, every=0), Kill(after)], keep_state=True)
    assert len(list(tmp_path.iterdir())) == 1
    began = []

    class Watch(Callback):
        def start(self, run):
            began.append((run.epoch, len(run.record.places)))

    found = Trainer(told).train(trials, [Checkpoint(tmp_path), Watch()], keep_state=True)
    assert began == [(after, 5 if after < 10 else 3)]
    assert all(same(one, other) for one, other in zip(found, expected, strict=True))
    assert [one.stopped for one in found] == [one.stopped for one in expected]
    assert [one.best_epoch for one in found] == [one.best_epoch for one in expected]
    assert not list(tmp_path.iterdir())


def interrupted(folder, trials, told):
    with pytest.raises(KeyboardInterrupt):
        fit(Batch(told, trials), [Checkpoint(folder, every=0), Kill(3)])
    [path] = folder.iterdir()
    return path


@pytest.mark.parametrize("place", [0, 5, 40, 300, -1])
def test_a_checkpoint_with_a_flipped_bit_is_not_read(place, tmp_path, caplog):
    trials, told = search("dropedge@0.5", 3), experiment()
    path = interrupted(tmp_path, trials, told)
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING, "tadropedge"):
        found = fit(Batch(told, trials), [Checkpoint(tmp_path)])
    assert "damaged" in caplog.text
    assert caplog.text.count("\n") == 1
    assert all(same(one, other) for one, other in zip(found, fit(Batch(told, trials)), strict=True))


@pytest.mark.parametrize("content", [b"", b"x", b"\0" * 100])
def test_what_is_no_checkpoint_is_not_read(content, tmp_path, caplog):
    trials, told = search("dropedge@0.5", 2), experiment()
    path = interrupted(tmp_path, trials, told)
    path.write_bytes(content)
    fit(Batch(told, trials), [Checkpoint(tmp_path)])
    assert "damaged" in caplog.text


def test_a_checkpoint_of_other_trials_is_left_alone(tmp_path):
    told = experiment()
    path = interrupted(tmp_path, search("dropedge@0.5", 3), told)
    fit(Batch(told, search("dropedge@0.6", 3)), [Checkpoint(tmp_path)])
    fit(Batch(experiment(hidden=16), search("dropedge@0.5", 3)), [Checkpoint(tmp_path, every=0)])
    assert list(tmp_path.iterdir()) == [path]


# -- other callbacks ------------------------------------------------------------------------------------------


def test_progress_is_told_at_every_twentieth_part():
    marks = []
    fit(Batch(experiment(epochs=50), [trial("dropedge@0.5")]), [Progress(lambda *at: marks.append(at))])
    assert marks == [(done, 50) for done in range(2, 51, 2)]


def test_tensorboard_gets_every_finite_number_of_every_trial(tmp_path, monkeypatch):
    written, closed = [], []

    class SummaryWriter:
        def __init__(self, folder):
            assert folder == str(tmp_path)

        def add_scalar(self, *what):
            written.append(what)

        def close(self):
            closed.append(True)

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", types.SimpleNamespace(SummaryWriter=SummaryWriter))
    outcomes = fit(Batch(experiment(epochs=20, keep="measure"), search("dropedge@0.5", 2)), [TensorBoard(tmp_path)])
    finite = sum(np.isfinite(curve).sum() for outcome in outcomes for curve in outcome.curves.values())
    assert len(written) == finite
    assert ("1/train_loss", float(outcomes[1].curves["train_loss"][4]), 5) in written
    assert closed == [True]


def test_without_tensorboard_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(TadropedgeError, match="pip install tensorboard"):
        fit(Batch(experiment(), [trial("original")]), [TensorBoard(tmp_path)])
