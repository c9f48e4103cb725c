import errno
import multiprocessing
import os
import random
import re
import signal
import sqlite3
from dataclasses import fields, replace
from multiprocessing import forkserver
from pathlib import Path

import optuna
import pytest
from fake_trainer import METHODS, REPLICATES, SEARCH, TRIALS, Trainer, compare, outcome, run_and_be_killed
from sqlalchemy.engine.default import DefaultDialect

from tadropedge import TadropedgeError
from tadropedge.search.engine import Job, run_jobs, run_search
from tadropedge.search.space import Space, default_space, trial
from tadropedge.search.storage import Flock
from tadropedge.search.study import Finished, Ledger, open_storage, study_name
from tadropedge.training.config import Outcome, Trial

HERE = Path(__file__).resolve().parent
SPACE = SEARCH["space"]


def search(storage, train=None, **changes):
    options = {"methods": METHODS, "trials": 8, **SEARCH, **changes}
    return run_search(train or Trainer(), storage=storage, **options)


@pytest.fixture(scope="module")
def memory():
    """A finished search in memory."""
    storage = optuna.storages.InMemoryStorage()
    return storage, search(storage)


def stored_trials(storage):
    """Every trial in a SQLite file as (method, keep_ratio, seed), after checking that each is whole and there once."""
    if not storage.exists():
        return set()
    base = sqlite3.connect(f"file:{storage}?mode=rw", uri=True)
    try:
        if not base.execute("select 1 from sqlite_master where name = 'trial_user_attributes'").fetchall():
            return set()
        rows = base.execute(
            "select study_name, state, seed.value_json, ratio.value_json, finished.value_json from trials"
            " join studies using (study_id)"
            " left join trial_user_attributes seed on seed.trial_id = trials.trial_id and seed.key = 'seed'"
            " left join trial_user_attributes ratio on ratio.trial_id = trials.trial_id and ratio.key = 'keep_ratio'"
            " left join trial_user_attributes finished on finished.trial_id = trials.trial_id"
            " and finished.key = 'failed'"
        ).fetchall()
    finally:
        base.close()
    assert all(state in ("COMPLETE", "FAIL") and finished is not None for _, state, _, _, finished in rows)
    names = []
    for name, _, seed, ratio, _ in rows:
        kind, method = name.split("/")[2:4]
        names.append(("dropedge" if kind == "reference" else method, ratio and float(ratio), int(seed)))
    assert len(names) == len(set(names))
    return set(names)


def logged_trials(log):
    """The trials that were trained, in that order, named as in :func:`stored_trials`."""
    lines = log.read_text().splitlines() if log.exists() else []
    trials = [eval(line, {"Trial": Trial}) for line in lines if line.endswith(")")]  # the last may be cut
    return [(one.method, one.keep_ratio, one.seed) for one in trials]


def lives(folder, moments):
    """Run the same comparison again and again, killed after so many statements of SQL (int) or seconds (float).

    The server that the processes are forked from has imported everything, so they are killed at work.
    """
    context = multiprocessing.get_context("forkserver")
    storage, log, answer = folder / "study.db", folder / "log", folder / "answer"
    for kills, moment in enumerate(moments):
        before, read = stored_trials(storage), len(logged_trials(log))
        statement = moment if isinstance(moment, int) else None
        process = context.Process(target=run_and_be_killed, args=(storage, log, answer, statement))
        process.start()
        process.join(moment if isinstance(moment, float) else 60)
        process.kill()
        process.join()
        assert not set(logged_trials(log)[read:]) & before  # what was stored is not trained again
        assert before <= stored_trials(storage)  # and not lost
        if answer.exists():
            return answer.read_text(), kills, logged_trials(log)
        assert process.exitcode == -signal.SIGKILL
    raise AssertionError(f"not done after the moments {moments}")


@pytest.fixture(autouse=True, scope="module")
def server():
    """A server of processes that finds this folder, and the package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, (HERE, HERE.parent))))
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["fake_trainer"])
        forkserver.ensure_running()
        yield


@pytest.fixture(scope="module")
def undisturbed():
    return compare(optuna.storages.InMemoryStorage(), Trainer())


TOTAL = len(METHODS) * TRIALS + (len(METHODS) + 2) * REPLICATES


def test_killed_at_random_moments_it_ends_with_the_same_table(tmp_path, undisturbed):
    moments = random.Random(0)
    plan = [moments.uniform(0.3, 1.5) for _ in range(8)]
    answer, kills, trained = lives(tmp_path, [*plan, 60.0])
    assert answer == undisturbed
    assert len(set(trained)) == TOTAL
    assert len(trained) <= TOTAL + 3 * kills  # a kill costs the batch of three that was in work, and no more


def test_killed_inside_its_transactions_it_ends_with_the_same_table(tmp_path, undisturbed):
    moments = random.Random(1)
    plan = [moments.randint(1, 500) for _ in range(8)]
    answer, kills, trained = lives(tmp_path, [*plan, 10**9])
    assert answer == undisturbed
    assert kills == 8
    assert TOTAL < len(trained) <= TOTAL + 3 * kills


def test_one_study_a_method_that_optuna_reads(tmp_path):
    table = search(tmp_path / "sub" / "study.db", name=study_name("cora", "gcn", 2, "normalized"))
    search(tmp_path / "sub" / "study.db", name=study_name("cora", "gcn", 3), methods=["cdf"], seed=4)
    url = f"sqlite:///{tmp_path}/sub/study.db"
    names = optuna.get_all_study_names(url)
    assert names == [f"cora/gcn-2/normalized/search/{method}" for method in METHODS] + ["cora/gcn-3/search/cdf"]
    study = optuna.load_study(study_name="cora/gcn-2/normalized/search/cdf", storage=url)
    assert study.direction == optuna.study.StudyDirection.MAXIMIZE
    assert study.user_attrs["settings"]["epochs"] == 5
    assert study.best_value == max(row.val_accuracy for row in table["cdf"] if not row.failed)
    for i, (stored, row) in enumerate(zip(study.trials, table["cdf"], strict=True)):
        assert stored.params == SPACE.draw(3, i)
        assert stored.user_attrs["index"] == row.index == i
        assert stored.user_attrs["seed"] == row.trial.seed
        if not row.failed:
            assert stored.value == stored.user_attrs["val_accuracy"] == row.val_accuracy
            assert stored.user_attrs["test_accuracy"] == row.test_accuracy
    kinds = {name: type(d).__name__ for name, d in study.trials[0].distributions.items()}
    assert kinds["keep_prob"] == kinds["gamma"] == "FloatDistribution"
    assert kinds["dropout"] == kinds["batch_norm"] == "CategoricalDistribution"
    assert study.trials[0].distributions["gamma"].log
    assert study.trials[0].distributions["keep_prob"].step == 0.05


def test_every_row_is_the_outcome_of_its_trial(memory):
    _, table = memory
    assert list(table) == list(METHODS)
    for method, rows in table.items():
        for i, row in enumerate(rows):
            expected = outcome(trial(SPACE, 3, i, method))
            assert (row.index, row.trial, row.best_epoch) == (i, expected.trial, expected.best_epoch)
            assert repr(row) == repr(Finished.of(i, expected))


def test_the_batch_and_the_storage_do_not_matter(tmp_path, memory):
    for batch in (1, 5, 1000):
        assert repr(search(optuna.storages.InMemoryStorage(), batch=batch)) == repr(memory[1])
    assert repr(search(tmp_path / "study.db")) == repr(memory[1])
    assert repr(search(f"sqlite:///{tmp_path}/study.db")) == repr(memory[1])  # read back, to the last bit


def test_batches_mix_methods_and_progress_counts(memory):
    train, seen = Trainer(), []
    search(optuna.storages.InMemoryStorage(), train, batch=6, progress=lambda *count: seen.append(count))
    assert [one.method for one in train.batches[0]] == [*METHODS, *METHODS[:2]]
    assert seen == [(0, 32), (6, 32), (12, 32), (18, 32), (24, 32), (30, 32), (32, 32)]
    again = Trainer()
    search(memory[0], again, progress=lambda *count: seen.append(count))
    assert again.trials == []
    assert seen[-1] == (32, 32)


def test_a_longer_search_goes_on_and_a_shorter_one_reads(memory):
    storage = optuna.storages.InMemoryStorage()
    short = search(storage, trials=3, methods=["cdf"])
    train = Trainer()
    longer = search(storage, train, trials=5)
    assert len(train.trials) == 5 * len(METHODS) - 3
    assert repr(longer["cdf"][:3]) == repr(short["cdf"])
    assert repr(search(storage, trials=3, methods=["cdf"])) == repr(short)
    assert repr(longer) == repr({method: rows[:5] for method, rows in memory[1].items()})


def test_failed_trials_count_as_finished(memory):
    storage, table = memory
    failed = [row for rows in table.values() for row in rows if row.failed]
    assert failed
    assert all(row.val_accuracy != row.val_accuracy for row in failed)
    study = optuna.load_study(study_name="fake/gcn-2/search/cdf", storage=storage)
    states = {stored.user_attrs["index"]: stored.state.name for stored in study.trials}
    assert states == {row.index: "FAIL" if row.failed else "COMPLETE" for row in table["cdf"]}
    train = Trainer()
    search(storage, train)
    assert train.trials == []


def test_a_search_of_failures_alone_ends():
    def diverged(trials):
        return [replace(outcome(one), failed=True) for one in trials]

    table = search(optuna.storages.InMemoryStorage(), diverged, trials=2)
    assert all(row.failed for rows in table.values() for row in rows)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 4}, r"was made with seed=3 \(now 4\); take the old setting, or another name or storage"),
        ({"settings": {"epochs": 6}}, r"'fake/gcn-2/search/original' was made with epochs=5 \(now 6\)"),
        ({"settings": {}}, r"was made with epochs=5 \(now None\)"),
        ({"space": default_space(None)}, r"space.gamma={'log-uniform': \[0.001, 0.1\]} \(now None\)"),
        (
            {"space": Space.of({**SPACE.table(), "dropout": [0.3]}), "seed": 4},
            r"was made with seed=3 \(now 4\), space.dropout=\[0.3, 0.5, 0.8\] \(now \[0.3\]\)",
        ),
        ({"settings": {"epochs": 5, "training": 2}}, r"was made with training=None \(now 2\)"),
    ],
)
def test_a_study_made_with_other_settings_is_refused(memory, change, message):
    train = Trainer()
    with pytest.raises(TadropedgeError, match=message) as caught:
        search(memory[0], train, **change)
    assert "\n" not in str(caught.value)
    assert train.trials == []


def test_a_foreign_study_is_refused():
    storage = optuna.storages.InMemoryStorage()
    study = optuna.create_study(storage=storage, study_name="fake/gcn-2/search/cdf", direction="maximize")
    study.add_trial(optuna.trial.create_trial(value=1.0))
    with pytest.raises(TadropedgeError, match="'fake/gcn-2/search/cdf' is not one of ours"):
        search(storage, methods=["cdf"])


def test_another_trial_under_the_same_index_is_refused(memory):
    ledger = Ledger(memory[0], "fake/gcn-2/search/cdf", "cdf", SPACE, {"seed": 3, "epochs": 5})
    wanted = replace(trial(SPACE, 3, 2, "cdf"), split=7)
    with pytest.raises(TadropedgeError, match=r"trial 2 of study .* was run with split=0 \(now 7\)"):
        run_jobs(Trainer(), [Job(ledger, 2, wanted)])


def test_the_first_of_two_rows_with_one_index_counts():
    storage = optuna.storages.InMemoryStorage()
    row = Finished.of(0, outcome(trial(SPACE, 0, 1, "cdf")))
    ledger = Ledger(storage, "twice", "cdf", SPACE, {})
    ledger.write([row, replace(row, val_loss=9.0)])
    assert repr(Ledger(storage, "twice", "cdf", SPACE, {}).finished) == repr({0: row})


def test_ctrl_c_between_batches_leaves_what_is_finished(memory):
    storage = optuna.storages.InMemoryStorage()

    def stop(done, total):
        if done == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(storage, batch=6, progress=stop)
    train = Trainer()
    assert repr(search(storage, train)) == repr(memory[1])
    assert len(train.trials) == 32 - 12


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_waits_for_a_batch_that_is_being_written(number, monkeypatch, memory, request):
    storage, original = optuna.storages.InMemoryStorage(), Ledger.write

    def write(self, rows):
        signal.raise_signal(number)
        original(self, rows)

    # A job in the background inherits an ignored SIGINT, and then Python raises nothing: the test brings its own.
    inherited = signal.signal(number, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(number, inherited))
    before = signal.getsignal(number)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "write", write)
        with pytest.raises(KeyboardInterrupt):
            search(storage, batch=6)
    assert signal.getsignal(number) is before
    train = Trainer()
    assert repr(search(storage, train)) == repr(memory[1])
    assert len(train.trials) == 32 - 6


def test_a_search_runs_outside_the_main_thread(memory):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        assert repr(pool.submit(search, optuna.storages.InMemoryStorage()).result()) == repr(memory[1])


def test_trainers_that_break_the_contract():
    storage = optuna.storages.InMemoryStorage()
    with pytest.raises(TadropedgeError, match="given 32 trials and returned 31 outcomes"):
        search(storage, lambda trials: [outcome(one) for one in trials][1:])
    with pytest.raises(TadropedgeError, match=r"given Trial\(method='original'.* keep_prob=0.95, "):
        search(storage, lambda trials: [outcome(one) for one in reversed(trials)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": []}, "methods are empty"),
        ({"methods": ["cfd"]}, "unknown method 'cfd'.*did you mean 'cdf'"),
        ({"trials": 0}, "trials must be a whole number of at least 1, got 0"),
        ({"batch": 0}, "batch must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_bad_input_gets_one_clear_line(change, message):
    with pytest.raises(TadropedgeError, match=message):
        search(optuna.storages.InMemoryStorage(), **change)


def test_storages_that_cannot_be_opened(tmp_path):
    (tmp_path / "text.db").write_text("this is no database, and long enough to be looked at " * 40)
    (tmp_path / "file").write_text("in the way")
    for storage in (tmp_path / "text.db", tmp_path / "file" / "study.db", tmp_path, "nonsense://x"):
        with pytest.raises(TadropedgeError, match=re.escape(f"cannot open the study storage '{storage}': ")) as caught:
            open_storage(storage)
        assert "\n" not in str(caught.value)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are listed on Linux")
def test_the_file_is_closed_afterwards_unless_it_was_handed_over_open(tmp_path):
    def is_open():
        return any(entry.exists() and entry.samefile(storage) for entry in Path("/proc/self/fd").iterdir())

    storage = tmp_path / "study.db"
    search(storage, trials=1)
    assert not is_open()
    shared = open_storage(storage)
    assert repr(search(shared, trials=1)) == repr(search(shared, trials=1))


def test_a_journal_holds_the_same_and_survives_half_a_line(tmp_path, memory):
    path = tmp_path / "deep" / "trials.journal"
    assert repr(search(path)) == repr(memory[1])
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])  # killed while the last trial was written
    assert repr(search(path)) == repr(memory[1])
    assert path.read_bytes().startswith(whole[: whole[:-1].rfind(b"\n") + 1])
    written = path.read_bytes()
    search(path)
    assert path.read_bytes() == written  # who only looks writes nothing


def test_a_journal_whose_disk_was_full_goes_on_after_its_last_whole_line(tmp_path, monkeypatch, memory):
    """In one process: half a line that a failed write left is not buried under the next one."""
    path, fsync, written = tmp_path / "trials.journal", os.fsync, []
    storage = open_storage(path)

    def full(number):
        written.append(number)
        if len(written) == 20:
            os.truncate(path, path.stat().st_size - 9)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(number)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        TadropedgeError, match=r"^cannot write trial \d to study '.*' in '.*trials.journal': the disk is full$"
    ):
        search(storage)
    assert repr(search(storage)) == repr(memory[1])
    assert repr(search(path)) == repr(memory[1])


def test_a_process_that_died_while_it_wrote_a_journal_keeps_nobody_waiting(tmp_path, memory):
    def die():
        Flock(path).acquire()
        os._exit(0)

    path = tmp_path / "trials.journal"
    search(path, trials=1)
    child = multiprocessing.get_context("fork").Process(target=die)
    child.start()
    child.join()
    (tmp_path / "trials.journal.lock").symlink_to(path)  # Optuna's own, from before
    assert repr(search(path)) == repr(memory[1])


@pytest.mark.parametrize("statement", [1, 2, 9])
def test_a_database_is_made_whole_or_not_at_all(tmp_path, monkeypatch, statement):
    """SQLite makes tables one by one: those of a process that died would never get their indices."""
    seen, execute = [], DefaultDialect.do_execute

    def dies(dialect, cursor, text, *rest):
        seen.extend([text] if text.lstrip().startswith("CREATE") else [])
        if len(seen) == statement:
            raise KeyboardInterrupt
        execute(dialect, cursor, text, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(DefaultDialect, "do_execute", dies)
        with pytest.raises(KeyboardInterrupt):
            open_storage(tmp_path / "study.db")
    assert not (tmp_path / "study.db").exists()
    open_storage(tmp_path / "study.db")
    with sqlite3.connect(tmp_path / "study.db") as made:
        assert ("ix_studies_study_name",) in made.execute(
            "SELECT name FROM sqlite_master WHERE type = 'index'"
        ).fetchall()


def test_a_full_disk_is_named_with_the_file(tmp_path, monkeypatch):
    path = tmp_path / "study.db"
    storage = open_storage(path)
    search(storage, trials=1)

    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(DefaultDialect, "do_commit", full)
    with pytest.raises(TadropedgeError) as caught:
        search(storage)
    assert str(caught.value).endswith(f" in '{path}': the disk is full")
    assert "\n" not in str(caught.value)


def test_nothing_is_printed(capfd, tmp_path):
    search(tmp_path / "study.db", trials=1)
    assert capfd.readouterr() == ("", "")


def test_curves_are_thinned_and_kept(tmp_path):
    import numpy as np

    long = {name: np.linspace(0, 1, 450, dtype=np.float32) for name in ("train_loss", "val_loss", "val_accuracy")}
    row = Finished.of(
        0, Outcome(trial=Trial.of("cdf"), **long, test_accuracy=long["val_loss"], best_epoch=3), curves=True
    )
    assert row.curves["epoch"] == list(range(0, 450, 3))
    assert row.curves["test_accuracy"][1] == float(f"{long['val_loss'][3]:.6g}")
    assert {len(curve) for curve in row.curves.values()} == {150}
    storage = open_storage(tmp_path / "study.db")
    Ledger(storage, "curves", "cdf", Space({}), {}).write([row])
    assert Ledger(storage, "curves", "cdf", Space({}), {}).finished == {0: row}
    assert {entry.name for entry in fields(Finished)} >= set(row.curves) - {"epoch"}


def test_a_trial_names_the_commit_that_trained_it_and_an_old_one_none(tmp_path, monkeypatch):
    monkeypatch.setenv("TADROPEDGE_COMMIT", "0123456789ab")
    (row,) = search(tmp_path / "one.db", methods=["cdf"], trials=1)["cdf"]
    assert row.commit == "0123456789ab"
    monkeypatch.setenv("TADROPEDGE_COMMIT", "ba9876543210")
    stored, new = search(tmp_path / "one.db", methods=["cdf"], trials=2)["cdf"]
    assert (stored.commit, new.commit) == ("0123456789ab", "ba9876543210")
    assert stored == replace(row, commit=None)  # the same numbers are the same result
    old = Ledger(optuna.storages.InMemoryStorage(), "old", "cdf", SPACE, {})
    old.write([replace(row, commit=None)])
    assert Ledger(old.storage, "old", "cdf", SPACE, {}).finished[0].commit is None
