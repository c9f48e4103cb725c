from dataclasses import replace

import pytest

from tadropedge.errors import TadropedgeError
from tadropedge.paper.item import Verdict
from tadropedge.paper.recipe import Recipe, load_recipe
from tadropedge.registry import NETWORKS


def test_a_preset_adds_to_the_settings_and_the_fingerprint_follows_them():
    recipe = load_recipe("components", "quick")
    assert recipe["datasets"] == ["cora", "citeseer", "pubmed"]
    assert recipe.fingerprint != load_recipe("components", "paper").fingerprint


def test_the_fingerprint_follows_the_search_spaces_of_competitors(monkeypatch):
    before = {name: load_recipe(name, "paper").fingerprint for name in ("table1", "table2")}
    ptdnet = NETWORKS["ptdnet"]
    monkeypatch.setattr(ptdnet, "space", {**ptdnet.space, "hidden": [32]})
    after = {name: load_recipe(name, "paper").fingerprint for name in ("table1", "table2")}
    assert after["table1"] == before["table1"]
    assert after["table2"] != before["table2"]


def test_an_unknown_preset_or_setting_is_named():
    with pytest.raises(TadropedgeError, match="unknown preset 'fast'; choose from quick, paper"):
        load_recipe("components", "fast")
    with pytest.raises(TadropedgeError, match="recipe 'x' has no setting 'epochs' for preset 'quick'"):
        Recipe("x", "t", "c", "quick", settings={})["epochs"]


def test_a_verdict_has_one_of_three_words():
    with pytest.raises(TadropedgeError, match="unknown status of a verdict 'maybe'"):
        Verdict("c", "maybe", "r")


def test_notes_stand_beside_the_results_of_one_preset_and_decide_nothing():
    quick, paper = load_recipe("table1", "quick"), load_recipe("table1", "paper")
    assert set(paper.notes) - set(quick.notes) == {"tried", "pause"}
    assert "benchmarks/spaces.py" in paper.notes["tried"]
    assert "  " not in paper.notes["tried"]
    assert replace(paper, notes={}, claims={}, effort="").fingerprint == paper.fingerprint
