"""auto in a whole comparison: what it chose is in the results, on the page and in the advice."""

import csv
import json
from dataclasses import replace

import optuna
import pytest

from tadropedge.comparison.advice import advise
from tadropedge.comparison.comparison import Plan, compared, space_of
from tadropedge.comparison.report import chosen_words, render, write_all
from tadropedge.comparison.results import Results, as_document, parse, read_results
from tadropedge.data import load_dataset
from tadropedge.method import Method
from tadropedge.training.config import Architecture
from tadropedge.training.laboratory import Laboratory

METHODS = ("auto", "degree-proportional:connected", "graphsage+auto")


@pytest.fixture(scope="module")
def found():
    laboratory = Laboratory(load_dataset("karate"), Architecture("gcn", 2, 4), epochs=2, choose_splits=1)
    storage = optuna.storages.InMemoryStorage()
    first = compared(laboratory, Plan(METHODS, trials=8, seeds=2), storage)
    again = compared(laboratory, Plan(METHODS, trials=8, seeds=2), storage)
    assert as_document(again) == as_document(first)
    return first


def test_rows_say_what_was_chosen(found):
    rows = {row.method: row for row in found.rows}
    for name in ("auto", "graphsage+auto"):
        chosen = Method.of(rows[name].settings["method"])
        assert chosen.network == Method.of(name).network
        assert ("budget" in rows[name].against) == chosen.adaptive
        assert f"{name} chose {chosen.name}" in chosen_words(found.rows)
    assert "method" not in rows["degree-proportional:connected"].settings
    share = rows["degree-proportional:connected"].settings["kept_share"]
    assert share >= 33 / 78 - 1e-6  # a spanning tree of the karate club


def test_files_hold_it(found, tmp_path):
    write_all(found, tmp_path)
    assert parse(as_document(read_results(tmp_path / "results.json"))).rows == parse(as_document(found)).rows
    with (tmp_path / "results.csv").open() as stream:
        assert [row["method"] for row in csv.DictReader(stream)] == [row.method for row in found.rows]
    chosen = next(row.settings["method"] for row in found.rows if row.method == "auto")
    assert f"auto chose {chosen}" in (tmp_path / "report.html").read_text()
    assert "chosen method" in (tmp_path / "report.html").read_text()
    assert json.loads((tmp_path / "results.json").read_text())["advice"]["use"]


def test_the_advice_names_the_method_that_was_chosen(found):
    """Where auto is surely better than all references, what to use is what it chose."""
    sure = {"p_value": 0.001, "level": 0.05, "difference": 0.1, "difference_low": 0.05, "difference_high": 0.15}
    rows = [
        replace(row, against={kind: replace(test, **sure) for kind, test in row.against.items()})
        if row.method == "auto"
        else row
        for row in found.rows
    ]
    auto = next(row for row in rows if row.method == "auto")
    advice = advise(rows)
    assert advice.use == "auto"
    assert f"Use {auto.settings['method']} (chosen by auto)" in advice.words
    assert "auto chose" in render(Results(rows, advice=advice))


def test_only_what_can_be_had_is_drawn():
    laboratory = Laboratory(load_dataset("karate"), Architecture("gcn", 1, 4), epochs=2)
    table = space_of(laboratory)("auto").table()
    assert "nested" not in table["option"]
    assert "column" not in table["score"]
    assert {"none", "uniform", "dropsens", "degree", "cosine"} <= set(table["score"])
    assert "aggregate" not in {*table["score"], *laboratory.score_seconds}  # what is not drawn is not computed
    assert "score" not in space_of(laboratory)("cdf").table()
