import io
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from fake_trainer import outcome
from graphs import ZOO

from tadropedge import aggregate_resistance
from tadropedge.cli.watch import Watch
from tadropedge.data import load_dataset
from tadropedge.progress import Progress
from tadropedge.search import Space, run_search
from tadropedge.training.batch import Behind
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.laboratory import Laboratory
from tadropedge.watching import Expected, Moment, Phase, Safe, watching


def test_shown_when_asked_and_silent_otherwise(capsys):
    aggregate_resistance(ZOO["karate"], 3, progress=True)
    shown = capsys.readouterr()
    assert "edges scored" in shown.err
    assert shown.out == ""
    aggregate_resistance(ZOO["karate"], 3)
    assert capsys.readouterr().err == ""


def test_one_long_step_is_seen_while_it_runs(monkeypatch):
    """The bar has a clock of its own: it appears although nothing advanced."""
    seen = threading.Event()

    class Terminal(io.StringIO):
        def isatty(self):
            return True

        def write(self, text):
            if "work" in text:
                seen.set()
            return super().write(text)

    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setattr("tadropedge.progress.PATIENCE", 0.01)
    with Progress("work", total=1):
        assert seen.wait(timeout=30)


@pytest.mark.parametrize("patience", [0.0, 60.0])
def test_on_a_terminal_only_long_work_shows(monkeypatch, patience):
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("tadropedge.progress.PATIENCE", patience)
    with Progress("work", total=4) as bar:
        bar.note("half")
        bar.advance(2)
        bar.advance(2)
    assert ("work" in terminal.getvalue()) == (patience == 0.0)


# -- trainings ----------------------------------------------------------------------------------------

KARATE = load_dataset("karate")
MIXED = [Trial("original"), Trial("dropedge"), Trial("fastgcn", seed=3), Trial("cdf", seed=4)]


def told_by(work):
    seen = []
    with watching(seen.append):
        found = work()
    return found, seen


def test_every_epoch_of_every_group_is_told_and_changes_no_bit():
    laboratory = Laboratory(KARATE, Architecture("gcn", 2, 4), epochs=3)
    outcomes, seen = told_by(lambda: laboratory.train(MIXED))
    moments = [event for event in seen if isinstance(event, Moment)]
    assert {moment.trainings for moment in moments} == {4}
    work = [moment.worked for moment in moments]
    assert work[0] == 0
    assert work[-1] == 4
    assert work == sorted(work)
    # Full batches train together, FastGCN's mini-batches alone.
    assert {(one.together, one.epoch) for one in moments if one.epoch} == {(n, e) for n in (1, 3) for e in (1, 2, 3)}
    for watched, alone in zip(
        outcomes, Laboratory(KARATE, laboratory.architecture, epochs=3).train(MIXED), strict=True
    ):
        assert np.array_equal(watched.train_loss, alone.train_loss)
        assert np.array_equal(watched.test_accuracy, alone.test_accuracy)


def test_work_that_is_cut_into_batches_counts_on(monkeypatch):
    laboratory = Laboratory(KARATE, Architecture("gcn", 2, 4), epochs=2)
    monkeypatch.setattr(Laboratory, "fitting", lambda *_: 2)
    _, seen = told_by(lambda: laboratory.train([Trial("original", seed=seed) for seed in range(5)]))
    assert [event.worked for event in seen if isinstance(event, Moment)] == [0, 1, 2, 2, 3, 4, 4, 4.5, 5]


def test_a_gpu_is_asked_what_it_has_passed_and_never_made_to_wait_early(monkeypatch):
    """The GPU passes nothing while epochs are queued, then one after the other."""
    passed, waited, reported = set(), [], []

    class Event:
        def __init__(self, blocking):
            assert blocking

        def record(self):
            self.number = len(waited_for)
            waited_for.append(self)

        def query(self):
            return self.number in passed

        def synchronize(self):
            waited.append(self.number)

    waited_for = []
    monkeypatch.setattr("torch.cuda.Event", Event)
    behind = Behind(reported.append, epochs=1000)  # every fifth epoch is marked
    for epoch in range(1, 1001):
        if epoch == 500:
            passed |= {0, 1, 2}
        behind.queued(epoch)
    assert reported == [15]
    assert not waited
    behind.wait()
    assert waited == list(range(3, 200))
    assert reported == [15, *range(20, 1001, 5)]


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_the_time_left_is_that_of_all_phases():
    clock = Clock()
    watch = Watch(clock)
    watch.listen(Expected({"search": 40, "search at the same budget": 20, "retraining": 20}))
    watch.listen(Safe("trainings", 30, 40))
    watch.listen(Phase("search", 30, 40))
    assert watch.words == "search: 30 of 40 trainings"
    for epoch in range(3):
        watch.listen(Moment(trainings=10, finished=0, together=5, epoch=epoch, epochs=10))
        clock.now += 2.0
    # An epoch of five trainings, half a training's work, takes 2 s since the first had passed: 0.5 of 49.5 + 0.5 are
    # done after two; 4 s have gone by.
    assert watch.seconds_left == pytest.approx((10 - 1 + 40) * 4 / 0.5)
    assert watch.words == "search: 30 of 40 trainings · epoch 2 of 10 · about 7 min left in all"
    assert watch.share == pytest.approx(31 / 40)
    watch.listen(Moment(trainings=10, finished=5, together=5, epoch=10, epochs=10))
    assert watch.words.startswith("search: 35 of 40 trainings · epoch 10 of 10")
    watch.listen(Safe("trainings", 40, 40))
    watch.listen(Phase("search", 40, 40))
    assert watch.left_behind("there") == ("40 of 40 trainings (search) are kept in there", True)
    watch.listen(Safe("trainings", 2, 20))
    watch.listen(Phase("retraining", 2, 20))
    kept = "40 of 40 trainings (search) and 2 of 20 (retraining) are kept in there"
    assert watch.left_behind("there") == (kept, True)
    for cell in range(5):  # many phases, as a map has, are told as one number
        watch.listen(Safe("trainings", 10, 10))
        watch.listen(Phase(f"cell {cell}: search", 10, 10))
    assert watch.left_behind("there") == ("92 trainings are kept in there", True)


def test_a_phase_of_something_else_has_its_own_time():
    clock = Clock()
    watch = Watch(clock)
    watch.listen(Phase("edges scored", 1000, 5000))
    clock.now += 2.0
    watch.listen(Phase("edges scored", 2000, 5000))
    assert watch.words == "edges scored: 2,000 of 5,000 · about 6 s left"
    assert watch.left_behind("cache") == ("nothing is kept", False)
    watch.listen(Safe("scores", 1500, 5000))
    assert watch.left_behind("cache") == ("the scores of 1,500 of 5,000 edges are kept in cache", True)
    assert watch.left_behind(None) == ("nothing is kept", False)


def test_a_score_that_is_found_during_a_phase_interrupts_it():
    watch = Watch()
    for event in (Safe("trainings", 0, 1), Phase("training", 0, 1), Phase("scoring edges (cosine)", 0, 78)):
        watch.listen(event)
    assert watch.words == "scoring edges (cosine): 0 of 78"
    watch.listen(Moment(trainings=1, finished=0, together=1, epoch=37, epochs=400))
    assert watch.words == "training: epoch 37 of 400"
    lost = "nothing is kept; the training at work (epoch 37 of 400) is lost"
    assert watch.left_behind(None) == (lost, False)


def test_before_any_work_nothing_is_lost():
    assert Watch().left_behind("there") == ("no work was done yet", False)


def test_a_batch_that_is_written_and_not_counted_is_kept(tmp_path, monkeypatch):
    """The interruption that waited for the end of a batch is raised before its count is reported."""
    watch, space, trained = Watch(), Space.of({"learning_rate": [0.1, 0.2]}), []

    def train(trials):
        trained.extend(trials)
        return [outcome(trial) for trial in trials]

    @contextmanager
    def struck_at_the_end():
        yield
        if trained:
            raise KeyboardInterrupt

    def report(done, total):
        watch.listen(Phase("search", done, total))

    monkeypatch.setattr("tadropedge.search.engine.uninterrupted", struck_at_the_end)
    with watching(watch.listen), pytest.raises(KeyboardInterrupt):
        run_search(train, space, ["original"], 5, 0, tmp_path / "study.db", batch=2, progress=report)
    assert watch.left_behind("there") == ("2 of 5 trainings (search) are kept in there", True)
