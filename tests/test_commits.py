"""The commits that are written into trainings which do not name them."""

import json
from datetime import datetime

import commits
import pytest
from fake_trainer import SEARCH, Trainer

from tadropedge.search.engine import run_search

HOURS = {"aaaaaaaaaaaa": 8, "bbbbbbbbbbbb": 10, "cccccccccccc": 12}


def search(path, trials=2):
    return run_search(Trainer(), methods=["cdf"], trials=trials, storage=path, **SEARCH)["cdf"]


@pytest.fixture
def journal(tmp_path, monkeypatch):
    """Two trainings of Table 1 on Cora, at nine and at twelve o'clock, as version 0.1 left them."""
    dates = {name: datetime.fromisoformat(f"2026-01-01T{hour:02}:00+00:00") for name, hour in HOURS.items()}
    monkeypatch.setattr(commits, "committed", dates.__getitem__)
    monkeypatch.setattr("tadropedge.search.engine.commit", lambda: None)
    path = tmp_path / "studies" / "table1-cora.journal"
    assert [row.commit for row in search(path)] == [None, None]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    trials = [line for line in lines if line["op_code"] == commits.NEW_TRIAL]
    for trial, hour in zip(trials, (9, 12), strict=True):
        trial["datetime_complete"] = f"2026-01-01T{hour:02}:00:00+00:00"
        del trial["user_attrs"]["digest"]
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    places = [f"a machine; torch 2; commit {name}" for name in HOURS]
    (path.parent / "table1-paper.seconds.json").write_text(json.dumps({"seconds": {}, "trained_on": places}))
    return path


def test_a_training_was_made_by_the_newest_commit_before_it_and_nothing_else_changes(journal, capsys):
    before, found = journal.read_text(), search(journal)
    commits.main(journal.parent.parent)
    assert capsys.readouterr().out == ("table1-cora.journal aaaaaaaaaaaa: 1 trainings, cccccccccccc: 1 trainings\n")
    after = journal.read_text()
    assert [row.commit for row in search(journal)] == ["aaaaaaaaaaaa", "cccccccccccc"]
    assert repr(search(journal)) == repr(found)  # which leaves the commit out, and where NaN is NaN
    for name in HOURS:
        after = after.replace(f',"commit":"{name}"', "")
    assert after == before


def test_a_training_that_says_its_commit_keeps_it_and_one_of_no_known_commit_has_none(journal, monkeypatch, capsys):
    monkeypatch.setattr("tadropedge.search.engine.commit", lambda: "dddddddddddd")
    search(journal, trials=3)
    monkeypatch.setattr(commits, "committed", lambda name: datetime.fromisoformat("2026-01-01T11:00+00:00"))
    commits.main(journal.parent.parent)
    assert [row.commit for row in search(journal, trials=3)] == [None, "aaaaaaaaaaaa", "dddddddddddd"]
    written = journal.read_bytes()
    commits.main(journal.parent.parent)
    assert journal.read_bytes() == written
    assert capsys.readouterr().out.splitlines()[-1] == "table1-cora.journal as it was"
