"""The seam between a search and who trains it: batches may end in any order, and bad settings are one line."""

import importlib.util
import random
from contextlib import contextmanager

import optuna
import pytest
from fake_trainer import METHODS, REPLICATES, TRIALS, Trainer, compare
from torture.process import command

import tadropedge as tde
from tadropedge.errors import TadropedgeError
from tadropedge.search import Local, RayEngine, training_with
from tadropedge.search.engine import run_search
from tadropedge.search.engines import crew
from tadropedge.search.space import method_space

TOTAL = len(METHODS) * TRIALS + (len(METHODS) + 2) * REPLICATES


class Shuffled:
    """A crew that wants all batches, ends them in a random order, and stops after some of them if asked."""

    together = True

    def __init__(self, batch, seed=0, stop=None):
        self.batch, self.random, self.left = batch, random.Random(seed), stop
        self.batches = []

    @contextmanager
    def running(self):
        yield self

    def size(self, train, trials, most):
        return self.batch

    def trained(self, train, batches):
        order = list(enumerate(batches))
        self.random.shuffle(order)
        for place, batch in order:
            if self.left is not None:
                self.left -= 1
                if self.left < 0:
                    raise KeyboardInterrupt
            self.batches.append(tuple(batch))
            yield place, train(batch)


@pytest.fixture(scope="module")
def undisturbed():
    return compare(optuna.storages.InMemoryStorage(), Trainer())


def test_trials_of_one_kind_make_up_batches():
    methods = ["dropedge", "dropedge:unbiased", "mlp", "cdf"]
    batches = []

    def train(trials):
        batches.append([trial.method for trial in trials])
        return Trainer()(trials)

    run_search(train, method_space, methods, 2, 0, optuna.storages.InMemoryStorage(), batch=4)
    assert batches == [["dropedge", "cdf"] * 2, ["dropedge:unbiased"] * 2 + ["mlp"] * 2]


@pytest.mark.parametrize("name", ["study.db", "trials.journal", None])
def test_batches_may_end_in_any_order(name, tmp_path, undisturbed):
    storage = optuna.storages.InMemoryStorage() if name is None else tmp_path / name
    trainer = Trainer()
    with training_with(Shuffled(batch=4)):
        assert compare(storage, trainer) == undisturbed
    assert len(trainer.trials) == len({repr(one) for one in trainer.trials}) == TOTAL
    assert compare(storage, Trainer()) == undisturbed  # in this process again, where nothing is left to do


def test_what_a_stop_left_makes_up_the_same_batches(tmp_path, undisturbed):
    """The batches are cut from all trials, not from those that are missing."""
    whole, first, second = Shuffled(batch=3), Shuffled(batch=3, seed=1, stop=4), Shuffled(batch=3, seed=2)
    with training_with(whole):
        compare(tmp_path / "whole.db", Trainer())
    with pytest.raises(KeyboardInterrupt), training_with(first):
        compare(tmp_path / "stopped.db", Trainer())
    with training_with(second):
        assert compare(tmp_path / "stopped.db", Trainer()) == undisturbed
    assert {*first.batches, *second.batches} == {*whole.batches}
    assert len(first.batches) + len(second.batches) == len(whole.batches)


def test_this_process_trains_batches_of_at_most_the_size_that_was_asked_for():
    trainer = Trainer()
    with training_with(Local(batch=2)):
        compare(optuna.storages.InMemoryStorage(), trainer, batch=3)
    assert max(map(len, trainer.batches)) == 2
    assert crew().size(trainer, [], 3) == 3


def test_an_engine_is_named_or_given():
    with pytest.raises(TadropedgeError, match="unknown engine 'cloud'; choose from local, ray"):
        tde.compare("karate", ["dropedge"], engine="cloud")
    for wrong in (3, RayEngine, ["ray"]):
        with pytest.raises(TadropedgeError, match="engine must be one of local, ray, a RayEngine or None"):
            tde.compare("karate", ["dropedge"], engine=wrong)
    with training_with(None), training_with("local"):
        assert not crew().together


def test_ray_that_is_not_installed_is_named_with_its_extra(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ray" else found(name))
    with pytest.raises(TadropedgeError, match=r"needs the package ray.*tadropedge\[ray\]"):
        tde.compare("karate", ["dropedge"], engine="ray")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--engine cloud", "unknown engine 'cloud'; choose from local, ray"),
        ("--address auto", "--address belongs to --engine ray"),
        ("--gpus-per-batch 1", "--gpus-per-batch belongs to --engine ray"),
        ("--deadline 3", "--deadline belongs to --engine ray"),
        ("--batch 0", "--batch must be a whole number"),
        ("--engine ray --gpus-per-batch 2", "--gpus-per-batch must lie in [0, 1]"),
        ("--engine ray --deadline 0", "--deadline must"),
        ("--engine ray --address ray://head:10001", "--address must be auto, HOST or HOST:PORT"),
        ("--engine ray --address 127.0.0.1:1", "no Ray answers there"),
    ],
)
def test_bad_settings_are_one_line_before_any_work(words, told, tmp_path):
    if "--engine ray" in words and importlib.util.find_spec("ray") is None:
        pytest.skip("ray is not installed")
    for name in ("compare karate", "regimes", "reproduce table3") if words == "--engine cloud" else ("compare karate",):
        ended = command([*name.split(), *words.split(), "--out", "out"], tmp_path)
        assert ended.code == 2, ended
        assert told in ended.err, ended
        assert ended.err.count("\n") == 1, ended
        assert not (tmp_path / "out").exists()
