"""The experiment that measures where methods win, at a size of seconds."""

import sys

import pandas as pd
import pytest

from experiments import wins
from tadropedge.lab import load


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["wins", *map(str, words), "--trials", "1", "--replicates", "2", "--epochs", "3"])
    wins.main()


def test_a_row_writes_its_replicates_and_its_differences_and_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    cell = wins.Cell("karate", ("sharpen", "auto"), (("auto", "best"),), {"per_class": 2}, {"hidden": 4})
    monkeypatch.setitem(wins.ROWS, "noise", lambda: [cell])
    run(monkeypatch, "noise", "--out", tmp_path, "--estimate")
    assert "trainings, about" in capsys.readouterr().out
    assert not (tmp_path / "noise.csv").exists()
    run(monkeypatch, "noise", "--out", tmp_path)
    rows, told = (pd.read_csv(tmp_path / f"noise{end}.csv") for end in ("", "-differences"))
    assert list(rows.candidate) == ["original"] * 2 + ["sharpen"] * 2 + ["auto"] * 2
    assert {"protocol", "seed", "commit", "machine", "seconds_per_epoch", "test"} <= set(rows)
    assert list(told.candidate) == ["sharpen", "auto", "auto"][: len(told)]
    tests = {name: 100 * some.test.to_numpy() for name, some in rows.groupby("candidate")}
    assert told.difference[0] == pytest.approx((tests["sharpen"] - tests["original"]).mean())
    assert told.spread[0] == pytest.approx(tests["sharpen"].std(ddof=1))
    run(monkeypatch, "noise", "--out", tmp_path)
    assert pd.read_csv(tmp_path / "noise.csv").equals(rows)


def test_the_time_of_four_draws_is_a_row_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(wins, "load", lambda name, **options: load("karate"))
    run(monkeypatch, "draws", "--out", tmp_path / "new")
    rows = pd.read_csv(tmp_path / "new" / "draws.csv")
    assert [name.endswith(":consistent") for name in rows.candidate] == [False, True]


def test_every_row_has_cells_whose_methods_and_data_are_known():
    for row in wins.ROWS.values():
        cells = list(row())
        assert len({cell.name for cell in cells}) == len(cells)
        for cell in cells:
            candidates = [wins.Candidate.parse(name) for name in cell.methods]
            assert {name for pair in cell.pairs for name in pair} <= {
                *map(str, candidates), "best", "epochs", "dropedge@0:finish",
            }  # fmt: skip
