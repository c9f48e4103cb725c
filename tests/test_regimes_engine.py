"""The engine of a map: recipes become cells, cells are trained once, and all tests are judged as one family."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tadropedge.comparison.card import data_card
from tadropedge.comparison.paired import false_discovery_rates, fine_sign_flip_p_values, sign_flip_p_values
from tadropedge.comparison.selection import Selection, selections
from tadropedge.data import load_karate
from tadropedge.errors import TadropedgeError
from tadropedge.regimes.judging import Played, map_rows
from tadropedge.regimes.recipe import MapRecipe, load_map_recipe
from tadropedge.regimes.results import FAILED, JUDGED, OUT_OF_REACH, MapCell, RegimeMap, read_map, write_map
from tadropedge.regimes.running import MapRun, _Laboratories, measured, planned_trainings
from tadropedge.regimes.sittings import read_sittings
from tadropedge.training.laboratory import Laboratory

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SMALL = {"labels": 2, "hidden": 4, "epochs": 3, "trials": 2, "choose_splits": 1, "seeds": 3, "evaluate_every": 1}
METHODS = ["original", "mlp", "dropedge", "cdf", "degree-proportional"]


def recipe(*conditions, **parts):
    document = {"datasets": ["karate"], "methods": METHODS, "base": SMALL, "conditions": list(conditions)} | parts
    return MapRecipe.of(document, "mine")


BUDGET = {"kind": "budget", "values": [0.2]}
NOISE = {"kind": "noise", "values": [1.0]}


class Counted:
    """How many trainings were really made."""

    def __init__(self, monkeypatch):
        self.trainings, train = 0, Laboratory.train

        def counting(laboratory, trials, **given):
            self.trainings += len(trials)
            return train(laboratory, trials, **given)

        monkeypatch.setattr(Laboratory, "train", counting)


@pytest.mark.parametrize("preset", ["quick", "full"])
def test_the_presets_are_whole(preset):
    cells = load_map_recipe(preset).cells
    assert len({cell.key for cell in cells}) == len(cells) > 5
    assert {cell.kind for cell in cells} >= {"base", "budget", "depth", "noise", "features"}
    assert all(planned_trainings(cell) > 0 for cell in cells)


def test_the_data_of_the_quick_preset_have_the_labels_it_asks_for():
    laboratories = _Laboratories(load_map_recipe("quick"), MapRun(out=Path("unused")))
    for cell in load_map_recipe("quick").cells:
        laboratories.check(cell)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ({"kind": "noise", "values": [50]}, "the cell karate/noise-50: .*34 nodes have no room for 3900 more edges"),
        ({"kind": "network", "values": ["mlp"]}, "the cell karate/network-mlp: mlp sees no edges, so edge dropping"),
        ({"kind": "labels", "values": [50]}, "the cell karate/labels-50: class 2 has 4 labelled nodes"),
    ],
)
def test_a_cell_that_cannot_be_trained_is_refused_before_any_other_is(tmp_path, monkeypatch, condition, words):
    counted = Counted(monkeypatch)
    with pytest.raises(TadropedgeError, match=words):
        measured(recipe(condition), MapRun(out=tmp_path))
    assert counted.trainings == 0


def test_the_recipe_in_the_docs_is_one():
    text = (Path(__file__).parents[1] / "docs" / "regimes.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", text, flags=re.S)
    cells = MapRecipe.of(tomllib.loads(example), "docs").cells
    assert [cell.key for cell in cells[:4]] == ["cora/base", "cora/noise-0.25", "cora/noise-1.0", "cora/depth-8"]
    assert (cells[3].regime.backbone, "mlp" in cells[3].methods) == ("gcnii", False)


def test_one_condition_is_changed_at_a_time():
    depth = {"kind": "depth", "values": [8, 32], "backbone": "resgcn", "trials": 1, "methods": ["dropedge"]}
    base, noisy, *deep = recipe({**NOISE, "without": ["mlp"]}, depth).cells
    assert (base.kind, base.value, base.regime.add_edges, base.regime.trials) == ("base", None, 0.0, 2)
    assert (noisy.regime.add_edges, noisy.regime.layers, noisy.methods) == (
        1.0,
        2,
        tuple(name for name in METHODS if name != "mlp"),
    )
    assert [(cell.key, cell.regime.layers, cell.regime.backbone, cell.regime.trials) for cell in deep] == [
        ("karate/depth-8", 8, "resgcn", 1),
        ("karate/depth-32", 32, "resgcn", 1),
    ]
    assert deep[0].methods == ("dropedge",)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"dataset": ["cora"]}, "unknown part of the recipe mine 'dataset'.*did you mean 'datasets'"),
        ({"datasets": []}, "datasets are empty"),
        ({"datasets": ["karate", "karate"]}, "'karate/base' is there more than once"),
        ({"methods": ["dropedg"]}, "dropedg"),
        ({"methods": ["dropedge", "dropedge"]}, "'dropedge' more than once"),
        ({"base": {"label": 5}}, "unknown setting in mine: base 'label'"),
        ({"base": {"labels": "all"}}, "labels must be a number per class or 'full', got 'all'"),
        ({"base": {"seeds": 1}}, "seeds must be a whole number of at least 2, got 1"),
        ({"base": {"layers": "two"}}, "layers must be a whole number, got 'two'"),
        ({"conditions": [{"kind": "nose", "values": [1.0]}]}, "'nose'.*did you mean 'noise'"),
        ({"conditions": [{"kind": "noise", "values": [1, 1.0]}]}, "'karate/noise-1' is there more than once"),
        ({"conditions": [{"kind": "noise"}]}, r"conditions\[0\].values must be a list"),
        ({"conditions": [{"kind": "noise", "values": [0.0]}]}, "which is what the base setting has"),
        ({"conditions": [{**NOISE, "datasets": ["cora"]}]}, r"dataset in mine: conditions\[0\] 'cora'"),
        ({"conditions": [{"kind": "budget", "values": [1.5]}]}, r"keep_ratio must be in \[0, 1\], got 1.5"),
        ({"conditions": [{**NOISE, "without": ["gat"]}]}, r"method in mine: conditions\[0\].without 'gat'"),
        ({"space": {"dropuot": [0.5]}}, "did you mean 'dropout'"),
    ],
)
def test_a_wrong_recipe_is_refused_in_one_line(parts, words):
    with pytest.raises(TadropedgeError, match=words) as caught:
        recipe(**parts)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_recipe_is_refused(tmp_path):
    for content, words in ((b"a = [", "no TOML"), (b"\xff\xfe", "no TOML"), (b"x = 1", "unknown part")):
        (tmp_path / "map.toml").write_bytes(content)
        with pytest.raises(TadropedgeError, match=words):
            load_map_recipe(tmp_path / "map.toml")
    with pytest.raises(TadropedgeError, match="cannot read the recipe"):
        load_map_recipe(tmp_path / "missing.toml")


def test_a_map_is_the_same_in_one_run_or_in_pieces(tmp_path, monkeypatch, one_thread):
    whole = measured(recipe(BUDGET, NOISE), MapRun(out=tmp_path / "whole"))
    pieces = MapRun(out=tmp_path / "pieces")
    measured(recipe(), pieces)
    measured(recipe(NOISE), pieces)
    found = measured(recipe(BUDGET, NOISE), pieces)
    assert [row.cell for row in found.rows] == [row.cell for row in whole.rows]
    for one, two in zip(found.rows, whole.rows, strict=True):
        assert (one.mean, one.settings, one.tests) == (two.mean, two.settings, two.tests)
    counted = Counted(monkeypatch)
    again = measured(recipe(BUDGET, NOISE), pieces)
    assert again.rows == found.rows  # with the seconds of an epoch
    assert counted.trainings == 0


def test_the_label_tells_of_those_who_trained_not_of_those_who_look(tmp_path, monkeypatch, one_thread):
    monkeypatch.setenv("TADROPEDGE_COMMIT", "first")
    begun = measured(recipe(), MapRun(out=tmp_path))
    (sitting,) = read_sittings(tmp_path)
    assert begun.run["commit"] == sitting.commit == "first"
    assert begun.run["sittings"] == 1
    monkeypatch.setenv("TADROPEDGE_COMMIT", "looks only")
    assert measured(recipe(), MapRun(out=tmp_path)).run == begun.run
    monkeypatch.setenv("TADROPEDGE_COMMIT", "second")
    told = measured(recipe(NOISE), MapRun(out=tmp_path)).run
    assert told["commit"] == "first, second"
    assert told["sittings"] == 2
    assert told["seconds"] == pytest.approx(sum(one.seconds for one in read_sittings(tmp_path)), abs=0.2)


def test_a_precision_of_its_own_has_studies_of_its_own(tmp_path):
    cells = (recipe(base=SMALL | how).cells[0] for how in ({}, {"precision": "high"}))
    plain, rounded = (_Laboratories(recipe(), MapRun(out=tmp_path)).of(cell) for cell in cells)
    assert (plain.precision, rounded.precision) == ("highest", "high")
    assert rounded.dataset.name == plain.dataset.name.replace("/every-1", "/every-1/high-precision")


def test_what_drops_nothing_is_trained_once_for_all_budgets(tmp_path, monkeypatch, one_thread):
    run = MapRun(out=tmp_path)
    measured(recipe(), run)
    counted = Counted(monkeypatch)
    monkeypatch.setattr("tadropedge.regimes.timings.epoch_seconds", lambda *_: 0.001)
    found = measured(recipe(BUDGET), run)
    base, low = ({row.method: row for row in found.rows if row.kind == kind} for kind in ("base", "budget"))
    assert [base[name].mean for name in ("original", "mlp")] == [low[name].mean for name in ("original", "mlp")]
    trained = [name for name, row in low.items() if row.state == JUDGED and name not in ("original", "mlp")]
    assert trained == ["dropedge", "degree-proportional"]
    assert counted.trainings == len(trained) * (SMALL["trials"] + SMALL["seeds"])
    assert all(low[name].kept_share == pytest.approx(0.2, abs=0.01) for name in trained)
    assert low["cdf"].state == OUT_OF_REACH
    assert 0.4 < low["cdf"].least_share < 0.6
    assert {row.epoch_seconds for row in low.values() if row.state == JUDGED} == {0.001}


def test_a_cell_that_cannot_be_is_refused_before_any_training(tmp_path, monkeypatch):
    counted = Counted(monkeypatch)
    with pytest.raises(TadropedgeError, match=r"the cell karate/labels-19: .*19"):
        measured(recipe({"kind": "labels", "values": [19]}), MapRun(out=tmp_path))
    assert counted.trainings == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ({"kind": "noise", "values": [20.0]}, "karate/noise-20.0: add_edges=20: 34 nodes have no room"),
        ({"kind": "network", "values": ["mlp"]}, "karate/network-mlp: mlp sees no edges"),
        ({"kind": "network", "values": ["gcnn"]}, "karate/network-gcnn: .* is a node-level task"),
        ({"kind": "network", "values": ["jknet"]}, "karate/network-jknet: layers of jknet"),
    ],
)
def test_conditions_and_networks_are_looked_at_before_any_training(tmp_path, monkeypatch, condition, words):
    counted = Counted(monkeypatch)
    with pytest.raises(TadropedgeError, match=f"the cell {words}"):
        measured(recipe(NOISE, condition), MapRun(out=tmp_path))
    assert counted.trainings == 0
    assert not list(tmp_path.iterdir())


def test_cells_that_evaluate_more_often_have_studies_of_their_own(tmp_path, one_thread):
    base = {name: value for name, value in SMALL.items() if name != "evaluate_every"}
    often = {**BUDGET, "evaluate_every": 1}  # original is the same in both cells but for this
    found = measured(recipe(often, base=base, methods=["original", "dropedge"]), MapRun(out=tmp_path))
    assert [row.state for row in found.rows] == [JUDGED] * 4
    names = set(re.findall(r'"study_name": *"([^"]*)"', (tmp_path / "studies/karate.journal").read_text()))
    front, end = "karate/2-labels/4-wide/3-epochs", "1-splits/gcn-2/combinatorial/search/original"
    assert {f"{front}/every-{epochs}/{end}" for epochs in (1, 5)} <= names


def played(gains, *, cell="base", methods=("dropedge",)):
    """A cell whose methods are better than not dropping by ``gains``, replicate by replicate."""
    how = {"backbone": "gcn", "layers": 2, "hidden": 8, "epochs": 9, "trials": 2, "choose_splits": 1, "seeds": 30}
    random = np.random.default_rng(1)
    original = 0.7 + 0.02 * random.standard_normal(30)
    scores = {"original": original} | {
        method: original + gain + 0.01 * random.standard_normal(30) for method, gain in zip(methods, gains, strict=True)
    }
    return Played(
        cell=MapCell(dataset="karate", kind=cell, value=None, data=data_card(load_karate()), **how),
        scores=scores,
        selected={name: Selection(shifts=np.zeros(2), noise=0.0) for name in scores},
        against={"original": {}} | {method: {"none": "original"} for method in methods},
    )


def test_all_cells_are_one_family():
    alone, _ = (map_rows(cells)[1].tests["none"] for cells in ([played([0.006])], [played([0.0])]))
    cells = [played([0.006]), *(played([0.0], cell=f"cell{place}") for place in range(9))]
    rows = [row for row in map_rows(cells) if row.method == "dropedge"]
    tests = [row.tests["none"] for row in rows]
    assert tests[0].p_value == alone.p_value == alone.corrected
    assert [test.corrected for test in tests] == pytest.approx(false_discovery_rates([test.p_value for test in tests]))
    assert tests[0].corrected == pytest.approx(10 * alone.p_value)
    assert (alone.outcome, tests[0].outcome) == ("better", "better" if 10 * alone.p_value <= 0.05 else "undecided")


def test_spectral_scores_are_held_against_the_degree_score():
    methods = ("degree-proportional", "cdf", "effective-proportional", "jaccard-cdf")
    rows = {row.method: row for row in map_rows([played([0.02, 0.0, 0.02, 0.0], methods=methods)])}
    assert {method: "degree" in row.tests for method, row in rows.items()} == {
        "original": False,
        "degree-proportional": False,
        "cdf": True,
        "effective-proportional": True,
        "jaccard-cdf": False,
    }
    worse, level = rows["cdf"].tests["degree"], rows["effective-proportional"].tests["degree"]
    assert (worse.reference, worse.outcome, level.outcome) == ("degree-proportional", "worse", "undecided")
    assert worse.low < worse.difference < worse.high < 0


def test_the_luck_of_choosing_widens_and_undecides():
    cell = played([0.02])
    lucky = Played(
        **{name: getattr(cell, name) for name in ("cell", "scores", "against")},
        selected={name: Selection(shifts=np.array([-0.03, 0.03]), noise=0.01) for name in cell.scores},
    )
    one, two = (map_rows([each])[1].tests["none"] for each in (cell, lucky))
    assert (one.outcome, two.outcome) == ("better", "undecided")
    assert two.high - two.low > 2 * (one.high - one.low)


def test_rare_choices_are_asked_for_where_a_discovery_is_near():
    asked = []

    def rare():
        asked.append(1)
        return {name: Selection(shifts=np.array([-0.03, 0.03]), noise=0.01) for name in ("original", "dropedge")}

    near, far = played([0.02]), played([0.001])
    plain, doubtful, level = (
        map_rows([replace(cell, rare=luck)])[1].tests["none"]
        for cell, luck in ((near, None), (near, rare), (far, rare))
    )
    assert plain.p_value < 1e-3 < doubtful.p_value
    assert (plain.outcome, doubtful.outcome, level.outcome) == ("better", "undecided", "undecided")
    assert (plain.low, plain.high) == (doubtful.low, doubtful.high)
    assert len(asked) == 1  # where nothing is found, nothing can be taken back


def test_rare_choices_are_the_same_luck_seen_more_closely():
    random = np.random.default_rng(0)
    searches = {name: 0.7 + 0.01 * random.standard_normal((16, 2)) for name in ("original", "dropedge", "cdf")}
    usual, rare = selections(searches), selections(searches, rare=True)
    for name, found in usual.items():
        assert len(rare[name].shifts) == 8 * len(found.shifts)
        assert rare[name].error == pytest.approx(found.error, rel=0.15)
        assert np.abs(rare[name].shifts).max() >= np.abs(found.shifts).max()


def test_replicates_that_failed_are_left_out():
    cell = played([0.05, 0.05], methods=("dropedge", "cdf"))
    cell.scores["dropedge"][:28] = np.nan
    cell.scores["cdf"][1:] = np.nan
    rows = {row.method: row for row in map_rows([cell])}
    assert (rows["dropedge"].seeds, rows["dropedge"].state) == (2, JUDGED)
    assert (rows["cdf"].seeds, rows["cdf"].state, rows["cdf"].tests) == (1, FAILED, {})


@pytest.mark.parametrize("size", [3, 9, 16])
def test_fine_sign_flips_count_all_patterns(size):
    random = np.random.default_rng(size)
    values = np.round(0.8 + 0.01 * random.standard_normal((20, size)) + 0.004, 3)
    reference, shifts = np.full((20, size), 0.8), 0.002 * random.standard_normal((20, 8))
    exact, fine = (test(values, reference) for test in (sign_flip_p_values, fine_sign_flip_p_values))
    np.testing.assert_allclose(fine, exact, rtol=0.02)
    assert (fine >= exact - 1e-12).all()
    moved, fine_moved = (test(values, reference, shifts) for test in (sign_flip_p_values, fine_sign_flip_p_values))
    np.testing.assert_allclose(fine_moved, moved, rtol=0.05)


def test_fine_sign_flips_are_never_rounded_to_nothing():
    assert fine_sign_flip_p_values(np.full(50, 0.9), np.full(50, 0.8)) == pytest.approx(2 / 2**50, rel=1e-6)
    assert fine_sign_flip_p_values(np.full(5, 0.8), np.full(5, 0.8)) == 1.0
    assert np.isnan(fine_sign_flip_p_values(np.array([0.9, np.nan]), np.array([0.8, 0.8])))


def test_results_are_read_as_they_were_written(tmp_path):
    cell = played([0.02])
    found = RegimeMap([cell.cell], map_rows([cell]), recipe={"methods": ["dropedge"]}, run={"seconds": 1.0})
    write_map(found, tmp_path / "results.json")
    read = read_map(tmp_path / "results.json")
    assert (list(read.cells), list(read.rows), read.recipe, read.run) == (
        found.cells,
        found.rows,
        found.recipe,
        found.run,
    )
    document = json.loads((tmp_path / "results.json").read_text())
    assert all(row["dataset"] == "karate" for row in document["rows"])
    document["rows"][1]["tests"]["none"]["p_value"] = 2
    (tmp_path / "results.json").write_text(json.dumps(document))
    with pytest.raises(TadropedgeError, match=r"rows\[1\].tests.none.p_value must be in \[0, 1\], got 2"):
        read_map(tmp_path / "results.json")
