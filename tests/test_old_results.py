"""Old results are never given for changed data, settings or code; studies of older versions are left as they are."""

import logging
import re

import numpy as np
import optuna
import pytest
from fake_trainer import SEARCH, Trainer
from test_fingerprint import dataset
from torture.process import assert_refused, command

from tadropedge import STRATEGIES, TadropedgeError
from tadropedge.comparison.comparison import Plan, compare
from tadropedge.data import load_dataset
from tadropedge.fingerprint import VERSION
from tadropedge.paper.trainings import no_training
from tadropedge.search.engine import run_search
from tadropedge.search.study import Ledger, open_storage
from tadropedge.training.config import Architecture
from tadropedge.training.laboratory import Laboratory

COMPARE = "compare mine.npz --methods dropedge,cdf --trials 2 --seeds 2 --epochs 2 --hidden 4 --out out --json"
NODES = 12


def write(folder, columns):
    """A ring with chords, and binary sparse features: node i has ones in two columns."""
    rows = np.arange(NODES)
    arcs = np.concatenate([[rows, (rows + 1) % NODES], [rows[:4], rows[:4] + 6]], axis=1)
    parts = {"x_data": np.ones(2 * NODES, dtype=np.float32), "x_indices": np.array(columns).ravel()}
    parts |= {"x_indptr": np.arange(0, 2 * NODES + 1, 2), "x_shape": np.array([NODES, 6])}
    split = {name: rows[4 * place : 4 * place + 4] for place, name in enumerate(("train", "val", "test"))}
    np.savez(folder / "mine.npz", edge_index=arcs, y=rows % 2, **parts, **split)


ONE = [(i % 2, 2 + i % 4) for i in range(NODES)]
TWO = [((i + 1) % 2, 2 + i % 4) for i in range(NODES)]


def test_other_columns_of_binary_features_do_not_give_the_old_numbers(tmp_path):
    write(tmp_path, ONE)
    first = command(COMPARE.split(), tmp_path)
    assert first.code == 0, first
    results = (tmp_path / "out" / "results.json").read_bytes()
    write(tmp_path, TWO)
    other = command(COMPARE.split(), tmp_path)
    assert_refused(other, "was made with other features; take the old data, or another name or storage")
    assert (tmp_path / "out" / "results.json").read_bytes() == results
    write(tmp_path, ONE)
    compared(tmp_path)  # the old data finds its trials again


def make_older(path):
    """Turn the studies of a storage into those of version 1, which lacked most of the settings."""
    storage = optuna.storages.get_storage(f"sqlite:///{path}")
    for study in storage.get_all_studies():
        settings = study.user_attrs["settings"]
        told = {key: value for key, value in settings.items() if key.partition(".")[0] not in ("data", "network")}
        told |= {"order": 5, "graph": "7f05e1a35c54de60", "data": "dab9776e6a44ca2b"}
        del told["fingerprint"], told["training"], told["evaluate_every"], told["precision"], told["fresh_sizes"]
        storage.set_study_user_attr(study._study_id, "settings", told)
    return {study.study_name: study for study in storage.get_all_studies()}


def compared(folder, train=False):
    """What the command computes, without its files; unless it may ``train``, all of it must be there."""
    laboratory = Laboratory(load_dataset(str(folder / "mine.npz")), Architecture(hidden=4), epochs=2, choose_splits=3)
    if not train:
        laboratory.train = no_training
    return compare(laboratory, Plan(["dropedge", "cdf"], trials=2, seeds=2), folder / "out" / "study.db")


def test_a_study_of_an_older_version_is_kept_beside_the_new_one_and_one_line_says_so(tmp_path):
    write(tmp_path, ONE)
    first = compared(tmp_path, train=True)
    older = make_older(tmp_path / "out" / "study.db")
    # pytest's own handlers of log records would keep Python from writing them to standard error
    second = command(COMPARE.split(), tmp_path, prepare=logging.getLogger().handlers.clear)
    assert second.code == 0, second
    assert second.err == (
        f"{len(older)} studies such as 'mine/gcn-2/combinatorial/search/original' were made by an older version, which "
        "could not tell all data apart: they stay readable and are not resumed\n"
    )
    storage = optuna.storages.get_storage(f"sqlite:///{tmp_path}/out/study.db")
    names = {study.study_name: study for study in storage.get_all_studies()}
    assert set(names) == {*older, *(f"{name}@{VERSION}" for name in older)}
    for name, study in older.items():
        assert names[name].user_attrs == study.user_attrs
        assert len(optuna.load_study(study_name=name, storage=storage).trials) == 2
        assert len(optuna.load_study(study_name=f"{name}@{VERSION}", storage=storage).trials) == 2
    assert compared(tmp_path) == first
    write(tmp_path, TWO)
    with pytest.raises(TadropedgeError, match=rf"@{VERSION}' was made with other features; take the old data, or"):
        compared(tmp_path)


def test_the_line_about_older_studies_is_said_once_per_storage(tmp_path, caplog):
    path = tmp_path / "study.journal"
    run_search(Trainer(), storage=path, methods=["original", "cdf"], trials=2, **SEARCH)
    content = path.read_text()
    path.write_text(re.sub(rf',\s*"fingerprint":\s*{VERSION}', "", content))
    assert path.read_text() != content
    train = Trainer()
    storage = open_storage(path)
    for _ in range(2):
        run_search(train, storage=storage, methods=["original", "cdf", "dropedge"], trials=2, **SEARCH)
    assert len(train.trials) == 6
    assert [record.getMessage()[:40] for record in caplog.records] == ["2 studies such as 'fake/gcn-2/search/ori"]


def test_each_setting_of_a_study_that_differs_is_refused(tmp_path):
    """Every key on its own, with a value that looks alike, is missing, or is new."""
    storage, settings = optuna.storages.InMemoryStorage(), {"seed": 0, **Laboratory(dataset()).settings}

    def ledger(told):
        return Ledger(storage, "six", "cdf", SEARCH["space"], told)

    ledger(settings)
    alike = {False: 0, True: 1}
    for key, value in settings.items():
        other = alike[value] if isinstance(value, bool) else float(value) if isinstance(value, int) else [value]
        missing = {name: one for name, one in settings.items() if name != key}
        for told in ({**settings, key: other}, {**settings, key: None}, missing):
            with pytest.raises(TadropedgeError, match=r"^study 'six' was made with .*; take the old "):
                ledger(told)
    with pytest.raises(TadropedgeError, match=r"was made with more=None \(now 1\); take the old setting, or"):
        ledger({**settings, "more": 1})
    both = {**settings, "data.graph": "other", "epochs": 5}
    with pytest.raises(
        TadropedgeError, match=r"with epochs=400 \(now 5\), other graph; take the old setting and data, "
    ):
        ledger(both)
    assert ledger(dict(reversed(settings.items()))).finished == {}


def test_a_rule_of_ones_own_with_other_code_is_refused(monkeypatch):
    storage = optuna.storages.InMemoryStorage()

    def search():
        return run_search(Trainer(), storage=storage, methods=["effective-mine"], trials=1, **SEARCH)

    monkeypatch.setitem(STRATEGIES, "mine", lambda scores: scores)
    search()
    search()
    monkeypatch.setitem(STRATEGIES, "mine", lambda scores: 2 * scores)
    with pytest.raises(TadropedgeError, match="was made with other code of 'mine'; take the old code, or another name"):
        search()
