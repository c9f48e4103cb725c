"""Storages by any path, damaged ones, and what is recovered of them."""

import logging
import os
import re
import shutil
import sqlite3
from contextlib import closing

import optuna
import pytest
from fake_trainer import SEARCH, outcome
from torture.process import assert_refused, command

from tadropedge import TadropedgeError
from tadropedge.search.claims import Claims
from tadropedge.search.recover import recover
from tadropedge.search.space import trial
from tadropedge.search.storage import check_storage, file_of, open_storage, sqlite_url
from tadropedge.search.study import Finished, Ledger

SPACE = SEARCH["space"]


def ledger(storage):
    return Ledger(open_storage(storage), "fake/search/cdf", "cdf", SPACE, {"seed": 3})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study of five trials, in a database and in a journal."""
    folder = tmp_path_factory.mktemp("made")
    rows = [Finished.of(index, outcome(trial(SPACE, 3, index, "cdf"))) for index in range(5)]
    for name in ("study.db", "study.journal"):
        ledger(folder / name).write(rows)
    return folder, dict(enumerate(rows))


@pytest.fixture(params=["study.db", "study.journal"])
def copied(made, tmp_path, request):
    return shutil.copy(made[0] / request.param, tmp_path / request.param), made[1]


def execute(path, statement):
    with closing(sqlite3.connect(path)) as base:
        base.execute(statement)
        base.commit()


@pytest.mark.parametrize("name", ["q?a=1", "p%41", "a#b", "ü x", "{c}", "a&b=c;d", "100%", "x:y@z", "a//b", "~tilde"])
def test_a_path_may_hold_any_letter(name, tmp_path):
    path = tmp_path / name / "study.db"
    base = open_storage(path)
    optuna.create_study(storage=base, study_name="mine")
    assert [each.name for each in path.parent.iterdir()] == ["study.db"]
    assert file_of(base) == path
    assert optuna.get_all_study_names(sqlite_url(path)) == ["mine"]
    assert optuna.get_all_study_names(open_storage(path)) == ["mine"]


def test_urls_of_users_still_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for url in ("sqlite:///relative.db", f"sqlite:///{tmp_path}/absolute.db", "sqlite:///:memory:"):
        optuna.create_study(storage=open_storage(url), study_name="mine")
        check_storage(url)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["absolute.db", "relative.db"]
    assert optuna.get_all_study_names("sqlite:///relative.db") == ["mine"]


def test_a_storage_that_cannot_be_is_refused_and_nothing_is_left(tmp_path):
    (tmp_path / "file").write_text("in the way")
    for storage in (tmp_path / "file" / "study.db", "/proc/nothing/study.db", "nonsense://x", "no-such+driver://h/b"):
        with pytest.raises(TadropedgeError) as caught:
            check_storage(storage)
        assert "\n" not in str(caught.value)
    check_storage(tmp_path / "new" / "study.db")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_database_of_another_program_is_left_alone(tmp_path):
    path = tmp_path / "cats.db"
    execute(path, "create table cats (name text)")
    before = path.read_bytes()
    with pytest.raises(
        TadropedgeError, match=r"cats.db' is no storage of Optuna: it is a database with the tables cats"
    ):
        open_storage(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    [
        "delete from trial_user_attributes where key = 'index' and trial_id = 2",
        "update trial_user_attributes set value_json = '\"x\"' where key = 'seed' and trial_id = 2",
        "update trial_user_attributes set value_json = '0.123' where key = 'test_accuracy' and trial_id = 2",
        "delete from trial_params where param_name = 'dropout' and trial_id = 2",
    ],
)
def test_a_damaged_trial_is_named_and_does_not_count(statement, made, tmp_path, caplog):
    path = shutil.copy(made[0] / "study.db", tmp_path / "study.db")
    execute(path, statement)
    assert repr(ledger(path).finished) == repr({index: row for index, row in made[1].items() if index != 1})
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    words = f"are damaged and do not count; tadropedge recover '{path}' removes them"
    assert warned == [f"trials 1 of study 'fake/search/cdf' {words}"]


def test_a_damaged_file_says_what_can_be_read_and_is_recovered(copied):
    path, rows = copied
    if path.suffix == ".db":
        execute(path, "update trial_user_attributes set value_json = '{' where trial_id = 2")
    else:
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*lines[:3], b"#", *lines[3:]]))
    words = f"'{path}' is damaged ("
    with pytest.raises(TadropedgeError, match=re.escape(words)) as caught:
        ledger(path)
    assert "4 of 5 trials can be read; " in str(caught.value)
    assert str(caught.value).endswith(f"tadropedge recover '{path}'")
    before = path.read_bytes()
    aside = path.with_name(f"{path.name}.damaged-1")
    assert recover(path) == f"'{path}' holds 4 of 5 trials; the damaged file is '{aside}'"
    assert aside.read_bytes() == before
    assert repr(ledger(path).finished) == repr({index: row for index, row in rows.items() if index != 1})


def test_recovering_what_is_whole_changes_nothing(copied):
    path, rows = copied
    recover(path)
    recover(path)
    assert repr(ledger(path).finished) == repr(rows)
    assert path.with_name(f"{path.name}.damaged-2").exists()


def test_the_command(made, tmp_path):
    shutil.copy(made[0] / "study.db", tmp_path / "study.db")
    ended = command(["recover", "study.db"], tmp_path)
    assert (ended.code, ended.out) == (0, "'study.db' holds 5 of 5 trials; the damaged file is 'study.db.damaged-1'\n")
    assert_refused(command(["recover", "nothing.db"], tmp_path), "no such file: 'nothing.db'")
    assert_refused(command(["recover", "."], tmp_path), "no such file: '.'")


def test_trials_of_version_0_1_have_no_digest_and_count(made, tmp_path):
    path = shutil.copy(made[0] / "study.db", tmp_path / "study.db")
    execute(path, "delete from trial_user_attributes where key = 'digest'")
    assert repr(ledger(path).finished) == repr(made[1])


def test_a_password_is_not_shown():
    for url in ("nothing://me:SECRET@localhost/db", "postgresql://me:SECRET@localhost/db", "mysql://me:SECRET@x:y/db"):
        with pytest.raises(TadropedgeError, match="cannot open the study storage") as caught:
            open_storage(url)
        assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("name", ["study.db", "study.journal"])
def test_a_storage_in_use_is_not_recovered(tmp_path, name):
    path = tmp_path / name
    storage = open_storage(path)
    before = path.read_bytes()
    told = pytest.raises(TadropedgeError, match=f"is in use by process {os.getpid()} ")
    with Claims.on(storage).taken([(1, 0)], 1), told:
        recover(path)
    assert [each.name for each in tmp_path.iterdir() if "damaged" in each.name] == []
    assert path.read_bytes() == before or name == "study.db"
