"""What is missing is trained, once; what was finished is found again, whoever wrote it and however it ended."""

import multiprocessing
import sqlite3
from contextlib import closing
from functools import partial

import numpy as np
import pytest
from search.made import Made, Stopping, candidates, experiment, made, plain

from tadropedge.lab import Search, Store
from tadropedge.lab.search.protocol import nested, trials_of
from tadropedge.lab.search.run import run_missing
from tadropedge.lab.training.callbacks import Checkpoint

NAMES = ("original", "dropedge", "cdf:weighted")
SEARCH = Search(trials=3, replicates=2)
RUNGS = {"training": {"rungs": (1, 3)}}


def search(store, executor=None, watch=None, settings=()):
    return nested(candidates(*NAMES), experiment(**dict(settings)), SEARCH, store, executor, watch)


def same(one, other):
    curves = all(np.array_equal(one.curves[name], other.curves[name], equal_nan=True) for name in one.curves)
    names = ("trial", "best_epoch", "failed", "stopped", "rungs", "kept_share", "seconds", "val_score", "test_score")
    return curves and all(getattr(one, name) == getattr(other, name) for name in names)


def test_what_is_stored_comes_back_as_it_was(tmp_path):
    of = experiment(**RUNGS)
    trials = trials_of(*candidates("cdf"), of, Search(trials=6), 0)
    with Store(tmp_path) as store:
        trained = run_missing(of, trials[::-1], store)
        found = run_missing(of, trials, store, Stopping(batches=0))
    assert [one.trial for one in found] == trials
    assert all(same(one, other) for one, other in zip(found, trained[::-1], strict=True))
    assert {one.stopped for one in found} > {None}
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_a_training_that_failed_comes_back_as_failed(tmp_path):
    of = experiment()
    trials = trials_of(*candidates("cdf"), of, Search(trials=2), 0)
    with Store(tmp_path) as store:
        run_missing(of, trials, store, Made(lambda trial: made(trial, np.nan, np.nan, np.inf, failed=True)))
        found = run_missing(of, trials, store, Stopping(batches=0))
        with closing(sqlite3.connect(store.path)) as base:
            assert base.execute("select candidate, test_score from trials").fetchall() == [("cdf", None)] * 2
    assert all(one.failed for one in found)


@pytest.mark.parametrize("settings", [{}, RUNGS], ids=["plain", "rungs"])
def test_what_is_interrupted_goes_on_and_trains_nothing_twice(tmp_path, settings):
    whole = search(None, settings=settings.items())
    trained = []
    with Store(tmp_path) as store:
        for batches in range(9):
            executor = Stopping(batches)
            try:
                found = search(store, executor, settings=settings.items())
                break
            except KeyboardInterrupt:
                trained += executor.trained
        trained += executor.trained
    assert plain(found) == plain(whole)
    assert batches > 1
    assert len(trained) == len(set(trained)) == len(NAMES) * SEARCH.trials * SEARCH.replicates


def test_a_training_that_was_interrupted_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr("tadropedge.lab.search.run.Checkpoint", partial(Checkpoint, every=0.0))
    of = experiment(20)
    trials = trials_of(*candidates("dropedge"), of, Search(trials=1), 0)

    class Watch:
        def __init__(self, last=20):
            self.last, self.seen = last, []

        def epoch(self, done, total):
            self.seen.append(done)
            if done == self.last < total:
                raise KeyboardInterrupt

    with Store(tmp_path) as store:
        with pytest.raises(KeyboardInterrupt):
            run_missing(of, trials, store, watch=Watch(last=12))
        assert len(list(tmp_path.glob("*.training"))) == 1
        watch = Watch()
        (outcome,) = run_missing(of, trials, store, watch=watch)
        assert watch.seen == list(range(13, 21))
        assert not list(tmp_path.glob("*.training"))
    (whole,) = run_missing(of, trials)
    assert all(np.array_equal(outcome.curves[name], whole.curves[name], equal_nan=True) for name in whole.curves)


def test_with_rungs_a_search_of_which_a_trial_is_missing_is_trained_whole(tmp_path):
    of, executor = experiment(**RUNGS), Stopping()
    alike = Search(trials=4, space={"batch_norm": False, "self_weight": False})  # so that they train as one program
    trials = trials_of(*candidates("dropedge"), of, alike, 0)
    with Store(tmp_path) as store:
        before = run_missing(of, trials, store)
        with closing(sqlite3.connect(store.path)) as base, base:
            base.execute("delete from results where key = ?", (of.key(trials[2]),))
        after = run_missing(of, trials, store, executor)
    assert set(executor.trained) == set(trials)
    assert [one.test_score for one in after] == [one.test_score for one in before]


def test_more_trials_or_candidates_use_what_is_there(tmp_path):
    with Store(tmp_path) as store:
        search(store)
        executor = Stopping()
        more = Search(trials=5, replicates=3)
        nested(candidates(*NAMES, "cdf"), experiment(), more, store, executor)
    assert len(executor.trained) == 4 * 5 * 3 - len(NAMES) * SEARCH.trials * SEARCH.replicates


def test_a_watch_hears_of_every_training_once(tmp_path):
    class Watch:
        def __init__(self):
            self.total, self.count, self.shares, self.rows = 0, 0, [], []

        def plan(self, total):
            self.total += total

        def trained(self, count):
            self.count += count

        def epoch(self, done, total):
            self.shares.append(done / total)

        def replicate(self, found):
            self.rows.append({len(rows) for rows in found.values()})

    with Store(tmp_path) as store:
        for _ in range(2):  # the second time all is found
            watch = Watch()
            search(store, watch=watch)
            assert watch.count == watch.total == len(NAMES) * SEARCH.trials * SEARCH.replicates
            assert watch.rows == [{1}, {2}]
            assert all(share <= 1 for share in watch.shares)
        search(store, watch=object())  # one that wants to know of nothing


def _search_in(folder, pipe):
    pipe.send("ready")
    with Store(folder) as store:
        pipe.send(plain(search(store)))


def test_two_processes_share_a_folder(tmp_path):
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_search_in, args=(tmp_path, there))
    process.start()
    there.close()
    assert here.recv() == "ready"
    with Store(tmp_path) as store:
        mine = plain(search(store))
        assert here.recv() == mine == plain(search(None))
        process.join()
        assert process.exitcode == 0
        assert plain(search(store, Stopping(batches=0))) == mine
