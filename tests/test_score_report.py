"""The summary's numbers, the files, the places of a picture."""

import csv
import io
import struct
from dataclasses import replace

import numpy as np
import pytest
from graphs import ZOO, clusters, complete, path, star, two_cliques, union
from matplotlib.image import imread

from tadropedge import Graph, TadropedgeError
from tadropedge.score_report import figures, write
from tadropedge.score_report.layout import _Mesh, layout
from tadropedge.score_report.part import Part, ranks
from tadropedge.score_report.summary import probabilities, summary
from tadropedge.score_report.write import write_csv, write_npz
from tadropedge.scores.solve import solve
from tadropedge.strategies import auto_gamma


def facts(scored, keep_prob=0.7, gamma=None):
    gamma = auto_gamma(scored.values) if gamma is None else gamma
    return summary(scored, "graph", gamma, probabilities(scored, gamma, keep_prob)[0], {"keep_prob": keep_prob})


# The summary: closed forms.


@pytest.mark.parametrize("n", [4, 6, 9])
def test_two_cliques_and_their_bridge(n):
    found = facts(solve(two_cliques(n), "aggregate", {"desired_clusters": 2}))
    weights = found["weights"]
    first = (n + 2 - np.sqrt((n + 2) ** 2 - 8)) / 2
    assert weights["eigenvalues"][0] == 0
    assert weights["eigenvalues"][1:3] == pytest.approx([first, n])
    assert weights["chosen_q"] == 2
    assert weights["gap"] == pytest.approx(n - first)
    assert weights["sum"] == pytest.approx(first)  # Σ ω = Σ λ over the modes
    a2 = 1 / (2 * (n - 1 + (1 - first) ** 2))  # the antisymmetric mode: a in the cliques, (1 − λ) a at the bridge
    bridge = found["most_critical"][0]
    assert (bridge["source"], bridge["target"]) == (n - 1, n)
    assert bridge["weight"] == pytest.approx(4 * (1 - first) ** 2 * a2)
    edges = n * (n - 1) + 1
    assert weights["zeros"] == pytest.approx((n - 1) * (n - 2) / edges)
    assert weights["ties"] == pytest.approx((edges - 1) / edges)
    assert weights["distinct"] == 3
    assert weights["critical_edges"] == 1
    shares = found["strategies"]
    assert shares["uniform"] == {"kept": pytest.approx(0.7), "protected": 0.0}
    assert shares["cutoff"] == {"kept": pytest.approx(0.7 + 0.3 / edges), "protected": pytest.approx(1 / edges)}


def test_the_spectrum_of_a_path_and_whole_eigenspaces():
    scored = solve(path(9), "aggregate", {"q": 4})
    assert scored.eigenvalues == pytest.approx(2 - 2 * np.cos(np.pi * np.arange(5) / 9))
    weights = facts(
        solve(union(star(6), path(7), path(2), Graph.from_edge_index([[0], [1]], 4)), "aggregate", {"q": 3})
    )
    assert weights["graph"]["components"] == {"count": 6, "largest": 7, "smallest": 1, "isolated_nodes": 2}
    assert weights["weights"]["modes"] == {"3": 1, "6": 1}
    assert weights["weights"]["widened"] == 1
    assert weights["weights"]["without_modes"] == 2
    assert weights["weights"]["chosen_q"] == 6  # the star comes first among the largest
    assert weights["weights"]["gap"] == pytest.approx(6.0)


def test_effective_resistances_sum_to_nodes_less_components():
    found = facts(solve(ZOO["parts"], "effective", {}))
    components = found["graph"]["components"]["count"]
    assert found["weights"]["sum"] == pytest.approx(ZOO["parts"].num_nodes - components)
    assert "eigenvalues" not in found["weights"]


def test_equal_weights_protect_nothing_and_a_given_gamma_is_taken():
    scored = solve(complete(5), "aggregate", {"q": 5})  # every mode: ω = 2 on every edge
    found = facts(scored)
    assert found["weights"]["quantiles"]["0"] == found["weights"]["quantiles"]["1"] == 2
    assert found["weights"]["critical_edges"] == 0
    assert found["weights"]["gap"] is None
    given = facts(scored, gamma=1.5)
    assert (given["weights"]["gamma"], given["weights"]["knee"]) == (1.5, found["weights"]["gamma"])
    assert given["strategies"]["cutoff"]["protected"] == 1
    assert facts(scored, keep_prob=1.0)["strategies"]["uniform"]["protected"] == 1


# The part that is spoken of.


def islands():
    return union(path(3), two_cliques(5), star(3), Graph.from_edge_index([[0], [1]], 3))


def test_a_part_is_a_component_by_its_size():
    graph = islands()
    assert ranks(graph).tolist() == [3] * 3 + [1] * 10 + [2] * 4 + [4, 4, 5]
    assert Part.chosen(graph).nodes.tolist() == list(range(3, 13))
    assert Part.chosen(graph, "all").words == "the whole graph"
    assert Part.chosen(graph, "2").words == "number 2 by size of 5 components"
    assert Part.chosen(graph, node="14").rank == 2
    named = replace(graph, node_ids=tuple(f"n{node}" for node in range(graph.num_nodes)))
    assert Part.chosen(named, node="n17").rank == 4


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"component": "6"}, r"component '6' is not known: give largest, all, or a number from 1, the largest, to 5"),
        ({"component": "0"}, "component '0' is not known"),
        ({"component": "-1"}, "component '-1' is not known"),
        ({"component": "5"}, "component 5 of 5 is a single node without edges: choose one from 1 to 4"),
        ({"node": "20"}, "there is no node '20': nodes are numbered from 0 to 19"),
        ({"node": "x"}, "there is no node 'x'"),
    ],
)
def test_a_part_that_is_not_there(chosen, words):
    with pytest.raises(TadropedgeError, match=words):
        Part.chosen(islands(), **chosen)


def test_the_part_of_what_was_found_is_what_the_component_alone_gives():
    whole, alone = solve(islands(), "aggregate", {"q": 2}), solve(two_cliques(5), "aggregate", {"q": 2})
    spoken = Part.chosen(whole.graph).of(whole)
    assert spoken.graph.pairs.tolist() == two_cliques(5).pairs.tolist()
    assert spoken.graph.node_ids == tuple(range(3, 13))  # by the names of the whole graph
    assert spoken.values.tolist() == pytest.approx(alone.values.tolist())
    assert spoken.eigenvalues.tolist() == pytest.approx(alone.eigenvalues.tolist())
    assert (spoken.chosen, alone.chosen) == (2, 2)
    assert len(Part.chosen(whole.graph, "2").of(whole).eigenvalues) == 0  # those of the largest are not its own


def test_critical_edges_of_islands_do_not_count():
    scored = solve(islands(), "effective", {})
    part = Part.chosen(scored.graph)
    spoken = part.of(scored)
    gamma = auto_gamma(spoken.values)
    found = summary(
        scored, "graph", gamma, probabilities(scored, gamma, 0.7)[0], {"keep_prob": 0.7}, part=part, spoken=spoken
    )
    assert found["weights"]["critical_edges"] == 1  # the bridge; edges of trees have the same resistance
    assert found["part"]["critical_elsewhere"] == 2 + 3 + 1
    first = found["most_critical"][0]
    assert (first["source"], first["target"]) == (7, 8)
    assert found["weights"]["sum"] == pytest.approx(9)
    assert found["strategies"]["uniform"]["kept"] == pytest.approx(0.7)


# Files.


def test_the_csv_gives_odd_names_back(tmp_path):
    called = ["#a", 'quo"te', "with, comma", "naïve – 数", "=1+1", "z z", "@SUM(A1)", "'+cmd|' /C calc'!A0", "-5"]
    low, high = range(len(called) - 1), range(1, len(called))
    lines = ((called[i].replace('"', '""'), called[j].replace('"', '""')) for i, j in zip(low, high, strict=True))
    source = tmp_path / "edges.csv"
    guarded = {name: f"'{name}" for name in called if name.lstrip("'")[0] in "=+@"}
    source.write_text("".join(f'"{guarded.get(i, i)}","{guarded.get(j, j)}"\n' for i, j in lines), encoding="utf-8")
    graph = Graph.from_file(source)
    assert set(graph.node_ids) == set(called)
    scored = solve(graph, "aggregate", {"q": 2})
    keep, _ = probabilities(scored, auto_gamma(scored.values), 0.7)
    table = write_csv(tmp_path / "weights.csv", scored, keep)
    with table.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["source", "target", "weight", *(f"keep_{name}" for name in keep), "component"]
    expected = {
        frozenset(guarded.get(graph.node_ids[end], graph.node_ids[end]) for end in (i, j)): weight
        for i, j, weight in zip(*graph.pairs.tolist(), scored.values.tolist(), strict=True)
    }
    assert {frozenset(row[:2]): float(row[2]) for row in rows[1:]} == expected
    again = Graph.from_file(table, weighted=False, header=True)
    assert (again.node_ids, again.fingerprint) == (graph.node_ids, graph.fingerprint)


def test_the_npz_holds_plain_arrays(tmp_path):
    scored = solve(ZOO["weighted"], "aggregate", {"q": 2})
    with np.load(write_npz(tmp_path / "weights.npz", scored, 0.5), allow_pickle=False) as arrays:
        assert np.array_equal(arrays["pairs"], ZOO["weighted"].pairs)
        assert np.array_equal(arrays["weight"], scored.values)
        assert np.array_equal(arrays["edge_weight"], ZOO["weighted"].weight)
        assert np.array_equal(arrays["eigenvalues"], scored.eigenvalues)
        assert (arrays["modes"].tolist(), float(arrays["gamma"])) == ([2], 0.5)
        assert "node_ids" not in arrays.files


# Pictures.


def test_places_are_the_same_each_time_and_keep_clusters_together():
    graph = clusters([25, 25, 25], 0.4, 0.01)
    places = layout(graph)
    assert np.array_equal(places, layout(graph))
    centres = places.reshape(3, 25, 2).mean(axis=1)
    spread = np.linalg.norm(places.reshape(3, 25, 2) - centres[:, None], axis=2).mean()
    between = np.linalg.norm(centres[[0, 1, 2]] - centres[[1, 2, 0]], axis=1)
    assert between.min() > 2 * spread


@pytest.mark.parametrize("graph", [Graph.from_edge_index([[0], [1]], 5), path(2), star(5), ZOO["parts"], complete(6)])
def test_every_graph_has_places(graph):
    places = layout(graph)
    assert np.isfinite(places).all()
    assert len(np.unique(places.round(6), axis=0)) == graph.num_nodes


def test_the_mesh_is_the_sum_over_all_pairs():
    random = np.random.default_rng(0)
    places, mass = random.standard_normal((400, 2)), random.random(400)
    apart = places[:, None] - places[None]
    square = (apart**2).sum(axis=2)
    exact = (mass[None, :, None] * apart / np.where(square > 0, square, 1)[:, :, None]).sum(axis=1)
    error = np.linalg.norm(_Mesh(400).field(places, mass) - exact, axis=1) / np.linalg.norm(exact, axis=1)
    assert np.median(error) < 0.1


@pytest.mark.parametrize(
    ("name", "score", "settings"),
    [("complete", "aggregate", {"q": 2}), ("parts", "aggregate", {"desired_clusters": 3}), ("star", "effective", {})],
)
def test_pictures_are_pngs_with_the_same_bytes_each_time(name, score, settings):
    scored = solve(ZOO[name], score, settings)
    gamma, places = auto_gamma(scored.values), layout(scored.graph)
    drawn = [figures.distribution(scored, "a$x_{$", gamma), figures.picture(scored, "数据", gamma, places)]
    if len(scored.eigenvalues):
        drawn.append(figures.spectrum(scored, "x" * 300))
    for png in drawn:
        assert png.startswith(b"\x89PNG\r\n\x1a\n")
        assert struct.unpack(">I", png[16:20]) == (960,)
    assert figures.distribution(scored, "a$x_{$", gamma) == drawn[0]


def test_critical_edges_are_coloured():
    """Colours in the picture where an edge is critical, greys alone where none is."""
    scored = solve(two_cliques(5), "aggregate", {"q": 2})
    places = layout(scored.graph)
    spread = []
    for gamma in (auto_gamma(scored.values), 10.0):
        stream = io.BytesIO(figures.picture(scored, "cliques", gamma, places))
        spread.append(np.ptp(imread(stream)[:, :, :3], axis=2).max())
    assert spread[0] > 0.5
    assert spread[1] < 0.1


def test_what_is_too_large_is_left_out_with_a_reason():
    line = "graph.html is left out: 20,001 edges, more than the 20,000 that a page can show"
    assert write.reasons(path(20_002))["graph.html"] == line
    assert list(write.reasons(clusters([120, 120], 0.8, 0.7))) == ["graph.png", "graph.html"]
    assert write.reasons(ZOO["karate"]) == {}


def test_strategies_at_a_share_of_kept_edges():
    """cdf cannot keep less than half of the edges, proportional can; DropSens looks at degrees alone."""
    scored = solve(ZOO["karate"], "degree", {})
    keep, left_out = probabilities(scored, auto_gamma(scored.values), keep_ratio=0.2)
    assert {name: float(prob.mean()) for name, prob in keep.items()} == pytest.approx(dict.fromkeys(keep, 0.2))
    assert {"uniform", "proportional"} <= set(keep)
    assert "cdf" not in keep
    assert any("the strategy cdf is left out: keep_ratio=0.2 cannot be reached" in words for words in left_out)
    with pytest.raises(TadropedgeError, match="keep_ratio must lie in"):
        probabilities(scored, 1.0, keep_ratio=2.0)
