"""The nearest cell of the map, the file that is shipped, and the sentence that a comparison adds to its advice."""

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from browser import Page
from comparisons import comparison
from regime_maps import DATASETS, card, regime_map

import tadropedge
from tadropedge import comparing
from tadropedge.comparison.report import render, told
from tadropedge.comparison.results import as_document, parse, read_results
from tadropedge.publish.terminal import as_text
from tadropedge.regimes.goals import LEAST
from tadropedge.regimes.nearest import FAR, nearest, sentence
from tadropedge.regimes.results import RegimeMap, read_map
from tadropedge.regimes.shipped import FILE, ShippedCell, read_shipped, ship, shipped, shrunk

ROOT = Path(__file__).parents[1]
MAP = regime_map()
CELL = {
    "dataset": "dblp", "kind": "labels", "value": 5, "backbone": "gcn", "layers": 2, "nodes": 17716,
    "mean_degree": 5.968, "homophily": 0.83, "classes": 4, "labels": 5.0, "seeds": 50, "state": "gain",
    "method": "degree-proportional", "gain": 0.012, "low": 0.008, "high": 0.016, "half_width": 0.004,
    "dropedge": "undecided",
}  # fmt: skip


# The nearest cell.


@pytest.mark.parametrize("dataset", DATASETS)
def test_a_dataset_of_the_map_is_nearest_to_itself(dataset):
    found = nearest(card(dataset), backbone="gcn", layers=2, found=MAP)
    assert (found.cell.dataset, found.cell.kind, found.distance) == (dataset, "base", pytest.approx(0, abs=1e-3))


def test_labels_depth_network_and_budget_choose_the_condition():
    def kind(labels=20, backbone="gcn", layers=2, keep_ratio=None):
        case = {"backbone": backbone, "layers": layers, "labels_per_class": labels, "keep_ratio": keep_ratio}
        found = nearest(card("dblp"), found=MAP, **case).cell
        return found.dataset, found.kind, found.value

    assert kind() == ("dblp", "base", None)
    assert kind(labels=6) == ("dblp", "labels", 5)
    assert kind(layers=32, backbone="resgcn") == ("dblp", "depth", 32)
    assert kind(layers=10) == ("dblp", "depth", 8)
    assert kind(backbone="gat") == ("dblp", "network", "gat")
    assert kind(keep_ratio=0.12) == ("dblp", "budget", 0.1)
    assert kind(keep_ratio=0.9) == ("dblp", "base", None)  # nearer to the whole graph than to a half


def test_the_distance_is_what_the_module_says():
    case = replace(card("cora"), nodes=2708 * 4, mean_degree=2 * card("cora").mean_degree, homophily=0.81 - 0.1)
    only = RegimeMap(MAP.cells[:1], MAP.rows)
    found = nearest(case, backbone="jknet", layers=8, labels_per_class=40, found=only)
    # homophily ½, nodes twice doubled for 1, degree 1, labels 1, layers 2, another network 1
    assert found.distance == pytest.approx(math.sqrt(0.25 + 1 + 1 + 1 + 4 + 1), rel=1e-4)
    assert found.distance <= FAR
    assert "not a near one" not in found.words
    far = nearest(replace(case, classes=7 * 16), backbone="jknet", layers=8, labels_per_class=40, found=only)
    assert far.distance == pytest.approx(math.hypot(found.distance, 4))
    assert "though not a near one, is cora" in far.words


def test_noisy_cells_and_missing_features_are_never_cited():
    for dataset in DATASETS:
        noisy = card(dataset, "noise", 1.0)
        assert nearest(noisy, backbone="gcn", layers=2, found=MAP).cell.kind not in ("noise", "features", "budget")


def test_nothing_is_said_without_a_map_or_a_homophily(monkeypatch):
    monkeypatch.setattr("tadropedge.regimes.nearest.shipped", lambda: None)
    assert nearest(card("cora"), backbone="gcn", layers=2) is None
    assert nearest(replace(card("cora"), homophily=None), backbone="gcn", layers=2, found=MAP) is None
    assert nearest(card("cora"), backbone="gcn", layers=2, found=RegimeMap([], [])) is None
    unjudged = RegimeMap(MAP.cells, [])
    assert nearest(card("cora"), backbone="gcn", layers=2, found=unjudged) is None


def test_odd_data_have_a_nearest_case_too():
    lonely = replace(card("cora"), mean_degree=0.0, nodes=1, classes=0, split=(0, 0, 0))
    assert math.isfinite(nearest(lonely, backbone="gcn", layers=2, found=MAP).distance)


# The sentence.


def test_the_sentence_says_what_the_cell_says():
    assert sentence(ShippedCell(**CELL)) == (
        "The nearest case of the map is dblp with 5 labels per class, gcn with 2 layers (homophily 0.83, mean degree "
        "6.0): there degree-proportional gained +1.20 ± 0.40 points over not dropping and cannot be told apart from "
        "DropEdge."
    )
    for outcome, words in (("better", "and is surely better than"), ("worse", "but is surely worse than")):
        assert f"over not dropping {words} DropEdge." in sentence(ShippedCell(**CELL | {"dropedge": outcome}))
    itself = sentence(ShippedCell(**CELL | {"method": "dropedge", "dropedge": None}))
    assert itself.endswith("there dropedge gained +1.20 ± 0.40 points over not dropping.")


def test_no_gain_is_claimed_where_there_is_none():
    grey = sentence(ShippedCell(**CELL | {"state": "grey"}))
    assert "gained" not in grey
    assert grey.endswith("no method was surely better than not dropping (a difference is known to ± 0.40 points).")
    loss = {"state": "loss", "gain": -0.012, "low": -0.016, "high": -0.008}
    words = sentence(ShippedCell(**CELL | loss))
    assert words.endswith(
        "every method was surely worse than not dropping, least degree-proportional (−1.20 ± 0.40 points)."
    )
    budget = sentence(ShippedCell(**CELL | {"kind": "budget", "value": 0.1, "labels": 1.0, "layers": 1}))
    assert "dblp with 1 label per class, gcn with 1 layer, 10 % of the edges kept (" in budget


# The file.


def test_what_is_shipped_is_read_back_whole(tmp_path):
    path = ship(MAP, tmp_path / FILE)
    assert read_shipped(path) == shrunk(MAP)
    assert path.stat().st_size < 60_000
    assert path.read_bytes() == ship(MAP, tmp_path / "again.json").read_bytes()
    for cell, whole in zip(shrunk(MAP).cells, MAP.cells, strict=True):
        assert (cell.dataset, cell.kind, cell.value) == (whole.dataset, whole.kind, whole.value)
        assert cell.homophily == pytest.approx(whole.data.homophily, abs=1e-5)


def test_the_shipped_map_is_that_of_the_results():
    results, file = ROOT / "results" / "regimes" / "results.json", ROOT / "tadropedge" / "regimes" / FILE
    found = read_map(results)
    many = len({cell.dataset for cell in found.cells}) >= LEAST  # a few datasets are nobody's nearest case
    assert file.is_file() == many
    if many:
        assert read_shipped(file) == shrunk(found) == shipped()
        assert file.stat().st_size < 60_000


def test_the_shipped_map_loads_without_torch():
    code = "import sys, tadropedge.regimes.nearest, tadropedge.regimes.shipped as one; one.shipped()"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'torch' not in sys.modules"], check=True, timeout=60)


# The advice.


def test_a_comparison_cites_the_nearest_case(monkeypatch, tmp_path):
    monkeypatch.setattr("tadropedge.regimes.nearest.shipped", lambda: shrunk(MAP))
    small = {"trials": 1, "seeds": 2, "choose_splits": 1, "epochs": 2, "hidden": 4, "progress": False}
    found = tadropedge.compare("karate", ["dropedge"], out=tmp_path / "out", **small)
    case = nearest(found.data, backbone="gcn", layers=2, labels_per_class=2, found=MAP)
    assert found.advice.regime == case.words
    assert read_results(tmp_path / "out" / "results.json").advice.regime == case.words
    assert case.words in Page((tmp_path / "out" / "report.html").read_text(encoding="utf-8")).text
    assert "The nearest case of the map" in str(found)
    monkeypatch.setattr("tadropedge.regimes.nearest.shipped", lambda: None)
    without = tadropedge.compare("karate", ["dropedge"], **small)
    assert without.advice == replace(found.advice, regime="")


def test_the_advice_of_older_files_has_no_case_and_keeps_its_bytes():
    results = comparison()
    document = as_document(results)
    assert "regime" not in document["advice"]
    assert parse(document).advice.regime == ""
    cited = replace(results, advice=replace(results.advice, regime="The nearest case is <b>."))
    assert as_document(cited)["advice"]["regime"] == "The nearest case is <b>."
    assert parse(as_document(cited)).advice == cited.advice
    assert "The nearest case is <b>." in as_text(told(cited))
    assert "The nearest case is <b>." in Page(render(cited)).text
    assert 'class="regime"' not in render(results)


def test_a_task_on_graphs_cites_nothing(monkeypatch):
    results = comparison()
    assert comparing._beside_the_map(replace(results, data=None), FakeLaboratory) is results.advice
    monkeypatch.setattr("tadropedge.regimes.nearest.shipped", lambda: shrunk(MAP))
    graphs = replace(results, data=replace(card("cora"), homophily=None))
    assert comparing._beside_the_map(graphs, FakeLaboratory) == results.advice


class FakeLaboratory:
    class architecture:  # noqa: N801
        backbone, layers = "gcn", 2
