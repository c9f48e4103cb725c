"""What ``tadropedge weights`` says, writes and draws of a graph."""

import csv
import json
import re

import numpy as np
import pytest
import torch

import tadropedge as tde
from tadropedge.lab.graph_report.part import around, component
from tadropedge.lab.graph_report.pictures import layout
from tadropedge.lab.graph_report.summary import GraphReport
from tadropedge.lab.graph_report.write import MOST_EDGES, MOST_NODES, drawn_part, page, write_all
from tadropedge.scores.solve import solve

HOSTILE = """</script><script>document.title = "owned"</script>"'&{{ 7 * 7 }}"""
SIX = ([0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5])  # two triangles, joined


def islands():
    """Two triangles that are joined, a path of three nodes, an edge, a node."""
    low, high = (torch.tensor(ends) for ends in SIX)
    low, high = (torch.cat((ends, torch.tensor(more))) for ends, more in ((low, [6, 7, 9]), (high, [7, 8, 10])))
    return tde.Graph.from_edge_index(torch.stack((low, high)), num_nodes=12)


def report(graph, which=1, score="aggregate", name="graph", **options):
    settings = options.pop("settings", {"q": 2} if score == "aggregate" else {})
    scored = solve(graph, score, settings)
    part = component(graph, which)
    return GraphReport(name=name, graph=graph, scored=scored, score=score, part=part, settings=settings, **options)


def test_the_summary_speaks_of_the_largest_component():
    graph = islands()
    found = report(graph).as_dict()
    assert found["graph"]["components"] == 4
    assert found["graph"]["isolated_nodes"] == 1
    assert (found["part"]["nodes"], found["part"]["edges"]) == (6, 7)
    values = tde.edge_scores(graph, "aggregate", q=2)[:7]
    assert found["score"]["gamma"] == tde.auto_gamma(values)
    assert found["score"]["critical_edges"] == 1
    assert found["score"]["critical_elsewhere"] == 3  # in small components nearly every edge holds something together
    assert found["score"]["sum"] == pytest.approx(float(values.sum()))
    assert found["most_critical"][0] == {"source": 2, "target": 3, "score": float(values.max())}
    assert found["score"]["chosen_q"] == 2
    assert found["score"]["gap"] == pytest.approx(3 - 0.43844718)
    assert found["score"]["without_modes"] == 0
    json.dumps(found)


def test_other_components():
    graph = islands()
    assert [report(graph, number).as_dict()["part"]["edges"] for number in (1, 2, 3)] == [7, 2, 1]


def test_rules_are_shown_at_the_budget_or_left_out_with_a_reason():
    graph = tde.Graph.from_edge_index(SIX)
    found = report(graph, budget={"keep_ratio": 0.8}).as_dict()
    assert all(rule["kept"] == pytest.approx(0.8) for rule in found["rules"].values())
    assert {"cdf", "proportional", "cutoff", "division"} <= set(found["rules"])
    values = tde.edge_scores(graph, "aggregate", q=2)
    expected = tde.keep_probabilities(values, rule="cdf", keep_ratio=0.8)
    assert found["rules"]["cdf"]["protected"] == float((expected > 0.99).double().mean())
    found = report(graph, budget={"keep_ratio": 0.1}).as_dict()
    assert "cdf" not in found["rules"]
    assert any("cdf" in line for line in found["left_out"])
    found = report(graph, budget={"keep_prob": 0.5}).as_dict()
    assert set(found["rules"]) == {"cutoff", "division", "cdf"}


def test_the_files_hold_every_edge(tmp_path):
    graph = islands()
    made = report(graph)
    found = write_all(made, tmp_path, run={"device": "cpu"})
    assert {path.name for path in tmp_path.iterdir()} == set(found["files"])
    assert json.loads((tmp_path / "summary.json").read_text()) == found
    with (tmp_path / "weights.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    scores = tde.edge_scores(graph, "aggregate", q=2)
    assert [float(row["score"]) for row in rows] == scores.tolist()
    assert [row["component"] for row in rows] == ["1"] * 7 + ["2"] * 2 + ["3"]
    with np.load(tmp_path / "weights.npz") as saved:
        assert saved["score"].tolist() == scores.tolist()
        assert saved["modes"].tolist() == [2, 2, 2, 0]
        assert saved["eigenvalues"][0] == 0
    again = tde.Graph.from_file(tmp_path / "weights.npz")
    assert torch.equal(again.pairs, graph.pairs)
    for picture in ("distribution.png", "spectrum.png"):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")


def test_files_of_an_earlier_run_that_are_not_made_again_are_removed(tmp_path):
    graph = tde.Graph.from_edge_index(SIX)
    write_all(report(graph), tmp_path)
    (tmp_path / "mine.txt").write_text("mine")
    found = write_all(report(graph, score="degree"), tmp_path, draw=False)
    assert {path.name for path in tmp_path.iterdir()} == {*found["files"], "mine.txt"}


def drawn(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_the_page_holds_what_is_drawn_and_nothing_of_it_is_markup():
    graph = islands()
    names = (HOSTILE, *range(1, 12))
    graph = tde.Graph(graph.pairs, graph.num_nodes, None, graph.arc_pair, names)
    made = report(graph, name=HOSTILE, classes=torch.arange(12) % 2, class_names=("red", HOSTILE))
    part = drawn_part(made)
    text = page(made, part, layout(part.of(graph)))
    data = drawn(text)
    assert [data["source"], data["target"]] == graph.pairs.tolist()
    assert data["score"] == made.scored.values.tolist()
    assert data["component"] == [1] * 6 + [2] * 3 + [3] * 2 + [4]
    assert [one["number"] for one in data["components"]] == [0, 1, 2, 3]  # the fourth has no edges
    assert data["components"][1]["gamma"] == made.own_gamma
    assert data["kinds"] == ["red", HOSTILE]
    assert HOSTILE not in text
    assert text.count("<script") == 2
    assert "script-src 'sha256-" in text
    assert re.search(r"(src|href)=[\"']?(https?:)?//", text) is None


def test_of_a_large_graph_the_surroundings_of_its_critical_edges_are_drawn():
    # Two long cycles, joined by an edge, which is the critical one.
    one = torch.arange(3_000)
    cycles = [torch.stack((one + first, (one + 1) % 3_000 + first)) for first in (0, 3_000)]
    graph = tde.Graph.from_edge_index(torch.cat((*cycles, torch.tensor([[7], [3_007]])), dim=1))
    made = report(graph, score="column", settings={"column": torch.eye(1, 6_001)[0].flip(0)})  # the last that is listed
    part = drawn_part(made)
    assert len(part.nodes) == MOST_NODES
    assert {7, 3_007} <= set(part.nodes.tolist())
    inside = part.of(graph)
    bridge = made.most_critical(1)[0]
    assert (bridge["source"], bridge["target"]) == (7, 3_007)
    text = page(made, part, np.zeros((len(part.nodes), 2)))
    assert drawn(text)["names"][:2] == [str(node) for node in part.nodes[:2]]
    assert "2,000 of 6,000 nodes" in text
    assert inside.num_edges == len(drawn(text)["source"])
    dense = tde.Graph.from_edge_index(torch.combinations(torch.arange(300)).T)
    few = around(dense, np.array([0]), MOST_NODES, MOST_EDGES)
    assert len(few.edges) <= MOST_EDGES


@pytest.mark.parametrize("graph", [islands(), tde.Graph.from_edge_index([[0], [1]])])
def test_layouts_keep_nodes_apart(graph):
    places = layout(graph)
    assert places.shape == (graph.num_nodes, 2)
    assert np.isfinite(places).all()
    assert len(np.unique(places.round(6), axis=0)) == graph.num_nodes
