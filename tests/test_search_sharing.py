"""Several processes on one storage: every trial is trained once, whoever dies."""

import os
import signal
import time
from pathlib import Path

import optuna
import pytest
import sqlalchemy as sa
from fake_trainer import METHODS, REPLICATES, TRIALS, Trainer, compare
from torture.process import started

from tadropedge.lock import Owner
from tadropedge.search import claims
from tadropedge.search.claims import CLAIMS, Claims
from tadropedge.search.storage import open_storage, sqlite_url

TOTAL = len(METHODS) * TRIALS + (len(METHODS) + 2) * REPLICATES


@pytest.fixture(scope="module")
def undisturbed():
    return compare(optuna.storages.InMemoryStorage(), Trainer())


def worker(storage, folder, name, seconds=0.005):
    """A whole comparison in a child: what it found is in ``NAME.answer``, what it trained in ``log``."""
    (folder / name).mkdir()

    def run():
        answer = compare(storage, Trainer(folder / "log", seconds=seconds))
        (folder / f"{name}.answer").write_text(answer)

    return started(run, folder / name)


@pytest.mark.parametrize("name", ["study.db", "trials.journal"])
def test_three_processes_train_every_trial_once(name, tmp_path, undisturbed):
    running = [worker(tmp_path / name, tmp_path, f"worker {number}") for number in range(3)]
    for each in running:
        ended = each.wait(60)
        assert ended.code == 0, ended
    assert {path.read_text() for path in tmp_path.glob("*.answer")} == {undisturbed}
    trained = (tmp_path / "log").read_text().splitlines()
    assert len(trained) == len(set(trained)) == TOTAL


@pytest.mark.parametrize("name", ["study.db", "trials.journal"])
def test_only_the_batch_of_a_dead_process_is_repeated(name, tmp_path, undisturbed):
    first = worker(tmp_path / name, tmp_path, "first", seconds=0.3)
    log = tmp_path / "log"
    while not log.exists():  # it is in the middle of its first batch of three
        time.sleep(0.01)
    second = worker(tmp_path / name, tmp_path, "second")
    os.kill(first.pid, signal.SIGKILL)
    assert first.wait(60).code == -signal.SIGKILL
    ended = second.wait(60)
    assert ended.code == 0, ended
    assert (tmp_path / "second.answer").read_text() == undisturbed
    trained = log.read_text().splitlines()
    assert len(set(trained)) == TOTAL
    assert len(trained) <= TOTAL + 3


def test_what_others_train_is_left_to_them(tmp_path):
    engine = sa.create_engine(sqlite_url(tmp_path / "claims.db"))
    one, two = Claims(engine), Claims(engine)
    wanted = [(1, index) for index in range(5)]
    with one.taken(wanted, 3) as mine, two.taken(wanted, 3) as yours, one.taken(wanted, 3) as nothing:
        assert (mine, yours, nothing) == (wanted[:3], wanted[3:], [])
    with two.taken(wanted, 9) as everything:
        assert everything == wanted
    engine.dispose()


def test_a_process_on_another_machine_is_dead_after_a_minute_without_a_sign(tmp_path, monkeypatch):
    engine, now = sa.create_engine(sqlite_url(tmp_path / "claims.db")), [0.0]
    monkeypatch.setattr(claims.time, "monotonic", lambda: now[0])
    away, here = Claims(engine), Claims(engine)
    away._owner = Owner(host="far", place="far away")
    with away.taken([(1, 0)], 1):
        for seconds, beat, free in [(0, 0, []), (59, 0, []), (60, 1, []), (119, 1, []), (121, 1, [(1, 0)])]:
            now[0] = seconds
            with engine.begin() as base:
                base.execute(CLAIMS.update().where(CLAIMS.c.host == "far").values(beat=beat))
            assert here._take([(1, 0)], 1) == free
    engine.dispose()


def test_a_long_batch_gives_signs_of_life(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "BEAT", 0.01)
    engine = sa.create_engine(sqlite_url(tmp_path / "claims.db"))
    with Claims(engine).taken([(1, 0)], 1), engine.connect() as base:
        until = time.monotonic() + 30
        while base.execute(sa.select(CLAIMS.c.beat)).scalar() < 2:
            assert time.monotonic() < until
            time.sleep(0.01)
    engine.dispose()


def test_memory_and_a_journal_of_ones_own_need_no_claims(tmp_path):
    assert Claims.on(optuna.storages.InMemoryStorage()).alone
    assert Claims.on(open_storage(tmp_path / "mine.journal", alone=True)).alone
    assert not Claims.on(open_storage(tmp_path / "ours.journal")).alone


def test_a_claim_is_released_when_training_fails(tmp_path):
    def fails(trials):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        compare(tmp_path / "study.db", fails)
    engine = sa.create_engine(sqlite_url(tmp_path / "study.db"))
    with engine.connect() as base:
        assert base.execute(CLAIMS.select()).all() == []
    engine.dispose()
    assert Path(tmp_path / "study.db").exists()
