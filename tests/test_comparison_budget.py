"""Comparisons at a fixed budget and under conditions: what is out of reach is said everywhere, and never trained."""

import json

import optuna
import pytest
from typer.testing import CliRunner

import tadropedge as tde
from tadropedge.cli import app
from tadropedge.comparison.comparison import Plan, compared, trained
from tadropedge.comparison.report import render, told
from tadropedge.comparison.results import as_document, parse
from tadropedge.comparison.winner import winner
from tadropedge.data import Conditions, conditioned, load_karate
from tadropedge.publish.terminal import as_text
from tadropedge.training.laboratory import laboratory_for
from tadropedge.training.reach import least_share

SMALL = {"trials": 2, "seeds": 2, "choose_splits": 1, "epochs": 2, "hidden": 4, "progress": False}
METHODS = ["cdf", "degree-proportional", "dropedge:connected"]


@pytest.fixture(scope="module")
def found():
    return tde.compare("karate", METHODS, keep_ratio=0.3, **SMALL)


def test_what_is_out_of_reach_is_a_row_without_a_test(found):
    rows = {row.method: row for row in found.rows}
    assert list(rows) == ["original", "dropedge", "degree-proportional", "cdf", "dropedge:connected"]
    graph = load_karate().graph
    assert rows["dropedge:connected"].least_share == pytest.approx(33 / 78)
    scores = {"aggregate": tde.edge_scores(graph, "aggregate", q=4)}
    assert rows["cdf"].least_share == pytest.approx(least_share(graph, "cdf", scores))
    for method in ("cdf", "dropedge:connected"):
        assert (rows[method].honest, dict(rows[method].against), dict(rows[method].settings)) == (None, {}, {})
    for method in ("dropedge", "degree-proportional"):
        assert rows[method].least_share is None
        assert (rows[method].settings["keep_ratio"], rows[method].settings["kept_share"]) == (0.3, 0.3)
    assert {kind: test.reference for kind, test in rows["degree-proportional"].against.items()} == {
        "none": "original",
        "budget": "dropedge",
    }
    assert found.protocol.keep_ratio == 0.3
    assert set(found.run["costs"]) == {"original", "dropedge", "degree-proportional"}  # nothing else was trained


def test_the_page_the_terminal_and_the_json_say_so(found):
    text, page, document = as_text(told(found)), render(found), as_document(found)
    words = "cdf (keeps at least 51.09 %) and dropedge:connected (keeps at least 42.31 %)"
    assert words in found.advice.words
    assert f"Out of reach: {words}" in " ".join(text.split())
    assert sum(line.rstrip().endswith("out of reach") for line in text.splitlines()) == 2
    assert page.count("out of reach at this budget</title>") == 2
    assert "every method that drops keeps 30 % of the edges" in page
    assert "at least\n51.09" in page
    assert document["protocol"]["keep_ratio"] == 0.3
    assert [row.get("least_share") is not None for row in document["compare"]] == [False] * 3 + [True] * 2
    assert as_document(parse(json.loads(json.dumps(document)))) == document


def test_the_advice_names_what_is_best_at_the_budget(found):
    assert "Of all that keep 30 % of the edges, " in found.advice.words
    assert "differs from DropEdge at the same budget by" in found.advice.words
    assert "DropEdge tuned" not in found.advice.words


def test_without_a_budget_nothing_is_said_of_one():
    plain = tde.compare("karate", ["dropedge"], **SMALL)
    document = as_document(plain)
    assert "keep_ratio" not in document["protocol"]
    assert not any("least_share" in row for row in document["compare"])
    assert "out of reach" not in render(plain)


def test_trained_is_what_compared_judges():
    laboratory = laboratory_for(load_karate(), hidden=4, epochs=2, choose_splits=1)
    plan, storage = Plan(METHODS, trials=2, seeds=2, keep_ratio=0.45), optuna.storages.InMemoryStorage()
    tournament = trained(laboratory, plan, storage)
    assert list(tournament.out_of_reach) == ["cdf"]
    rows = {row.method: row for row in compared(laboratory, plan, storage).rows}
    for name, tuned in tournament.tuned.items():
        assert rows[name].honest.mean == pytest.approx(tuned.scores.mean())
    assert rows["cdf"].least_share == tournament.out_of_reach["cdf"]
    before = {study.study_name for study in storage.get_all_studies()}
    trained(laboratory, Plan(METHODS[1:], trials=2, seeds=2, keep_ratio=0.7), storage)
    new = {study.study_name for study in storage.get_all_studies()} - before
    assert not [name for name in new if "original" in name]  # not dropping is trained once
    assert {name.partition("/budget/")[2].partition("/")[0] for name in new} == {
        *("dropedge-0.7", "degree-proportional-0.7", "dropedge:connected-0.7")
    }


def test_the_command_compares_under_conditions_and_says_how_to_train_there(tmp_path, monkeypatch):
    words = ["--trials", 1, "--seeds", 2, "--choose-splits", 1, "--epochs", 2, "--hidden", 4, "--json"]
    words += ["--methods", "dropedge,cdf", "--keep-ratio", 0.2, "--add-edges", 0.5, "--hide-features", 0.5]
    words += ["--per-class", "full", "--out", tmp_path]
    monkeypatch.setattr("sys.argv", ["tadropedge", "compare", "karate", *map(str, words)])
    ended = CliRunner().invoke(app, ["compare", "karate", *map(str, words)])
    assert ended.exit_code == 0, ended.output
    document = json.loads(ended.stdout)
    assert {row["dataset"] for row in document["compare"]} == {"karate+50%edges+50%hidden"}
    assert (document["data"]["edges"], document["data"]["split"]) == (117, [20, 7, 7])
    assert document["compare"][-1]["least_share"] > 0.5
    made = winner(parse(document)).command
    assert "--add-edges 0.5 --hide-features 0.5 --per-class full" in made
    assert made.count("--keep-ratio") == (0 if "--method original" in made else 1)
    # Other conditions are other studies beside these.
    ended = CliRunner().invoke(app, ["compare", "karate", *map(str, words), "--add-edges", "0.25"])
    assert ended.exit_code == 0, ended.output


def test_conditions_in_python_are_those_of_the_command():
    found = tde.compare("karate", ["dropedge"], add_edges=0.5, hide_features=1.0, seed=3, **SMALL)
    assert found.data.name == "karate+50%edges+100%hidden"
    assert found.run["conditions"] == {"add_edges": 0.5, "hide_features": 1.0, "seed": 3}
    assert "--add-edges 0.5 --hide-features 1.0 --seed 3" in winner(found).command
    data = conditioned(load_karate(3), Conditions(0.5, 1.0, 3))
    plan = Plan(["dropedge"], trials=2, seeds=2, seed=3)
    laboratory = laboratory_for(data, hidden=4, epochs=2, choose_splits=1)
    rows = compared(laboratory, plan, optuna.storages.InMemoryStorage()).rows
    assert [row.honest for row in rows] == [row.honest for row in found.rows]


def test_a_model_says_what_it_learned_from_and_is_asked_in_the_same_way(tmp_path):
    words = ["train", "karate", "--epochs", "2", "--hidden", "4", "--hide-features", "1.0", "--out", str(tmp_path)]
    ended = CliRunner().invoke(app, [*words, "--seed", "2"])
    assert ended.exit_code == 0, ended.output
    assert "dataset: karate+100%hidden" in ended.stdout
    assert "predict with: tadropedge predict" in ended.stdout
    assert "karate --hide-features 1 --seed 2" in " ".join(ended.stdout.split())
    assert json.loads((tmp_path / "model.json").read_text())["dataset_name"] == "karate+100%hidden"
    asked = ["predict", str(tmp_path), "karate", "--hide-features", "1", "--seed", "2", "--json"]
    ended = CliRunner().invoke(app, [*asked, "--out", str(tmp_path / "predictions.csv")])
    assert ended.exit_code == 0, ended.output
    assert json.loads(ended.stdout)["data"] == "karate+100%hidden"
