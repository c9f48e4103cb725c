"""Weights in parts, the summary's numbers, the places of a picture."""

import csv
import io
import struct
import warnings

import numpy as np
import pytest
import torch
from graphs import ZOO, clusters, complete, cycle, path, star, two_cliques, union
from matplotlib.image import imread

from tadropedge import Graph, RepeatedEigenvalueWarning, aggregate_resistance, effective_resistance
from tadropedge.score_report import figures, parts, weigh, write
from tadropedge.score_report.layout import _Mesh, layout
from tadropedge.score_report.summary import knee, probabilities, summary
from tadropedge.score_report.tables import write_csv, write_npz
from tadropedge.score_report.weigh import Request
from tadropedge.spectrum.clusters import Clusters


def facts(weighing, keep_prob=0.7, gamma=None):
    gamma = knee(weighing.weights, gamma)
    return summary(weighing, "graph", gamma, probabilities(weighing.weights, keep_prob, gamma), keep_prob)


# Parts.


@pytest.mark.parametrize("work", [1e9, 100.0, 0.0])
def test_parts_hold_every_component_once_and_keep_the_order(monkeypatch, work):
    monkeypatch.setattr(parts, "MOST_WORK", work)
    graph = ZOO["parts"]
    found = list(parts.parts(graph))
    assert sorted(np.concatenate([part.edges for part in found])) == list(range(graph.num_edges))
    sizes = graph.components.sizes
    assert sorted(np.concatenate([part.components for part in found])) == torch.nonzero(sizes > 1).ravel().tolist()
    assert len(found) == (1 if work > 1e6 else len(sizes[sizes > 1]) if work == 0 else len(found))
    for part in found:
        assert part.graph.components.sizes.tolist() == sizes[torch.from_numpy(part.components)].tolist()
        assert (np.diff(part.edges) > 0).all()


def test_parts_leave_out_what_is_too_small_and_give_large_components_alone():
    graph = union(path(3), path(600), path(2), path(700), cycle(3))
    assert [part.graph.num_nodes for part in parts.parts(graph, least=3)] == [6, 600, 700]


# Weights: the same bits as the public functions, whatever the parts.


@pytest.mark.parametrize("work", [1e9, 0.0])
@pytest.mark.parametrize("name", ZOO)
def test_weights_are_those_of_the_public_functions(name, work, monkeypatch):
    monkeypatch.setattr(parts, "MOST_WORK", work)
    graph = ZOO[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepeatedEigenvalueWarning)
        for options in ({"q": 2}, {"q": 4, "laplacian": "normalized"}, {"desired_clusters": 3}):
            assert torch.equal(weigh.weigh(graph, Request(**options)).weights, aggregate_resistance(graph, **options))
    assert torch.equal(weigh.weigh(graph, Request("effective")).weights, effective_resistance(graph))


def test_what_is_finished_is_not_solved_again(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "MOST_WORK", 0.0)
    graph, request = ZOO["parts"], Request(q=2)
    expected = weigh.weigh(graph, request)
    solve, solved = weigh._solve, []

    def killed_at_the_third(part, *others):
        if len(solved) == 2:
            raise KeyboardInterrupt
        solved.append(part)
        return solve(part, *others)

    monkeypatch.setattr(weigh, "_solve", killed_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        weigh.weigh(graph, request, tmp_path)
    monkeypatch.setattr(weigh, "_solve", lambda *a: solved.append(a) or solve(*a))
    found = weigh.weigh(graph, request, tmp_path)
    assert len(solved) == len(list(parts.parts(graph)))
    assert torch.equal(found.weights, expected.weights)
    assert np.array_equal(found.eigenvalues, expected.eigenvalues)
    assert (found.solvers, found.modes.tolist()) == (expected.solvers, expected.modes.tolist())
    again = weigh.weigh(graph, request, tmp_path)
    assert len(solved) == len(list(parts.parts(graph)))
    assert again.seconds == found.seconds  # of the solving, not of the reading


def test_progress_counts_edges_to_the_last(monkeypatch):
    monkeypatch.setattr(parts, "MOST_WORK", 0.0)
    seen = []
    weigh.weigh(ZOO["parts"], Request(q=4), report=lambda phase, done, total: seen.append((done, total)))
    edges = ZOO["parts"].num_edges
    assert seen[0] == (0, edges)
    assert seen[-1] == (edges, edges)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_progress_moves_inside_one_large_component():
    graph, seen = path(700), []
    weigh.weigh(graph, Request(q=3, solver="davidson"), report=lambda phase, done, total: seen.append(done))
    assert seen == sorted(seen)
    assert any(0 < done < graph.num_edges for done in seen)


# The summary: closed forms.


@pytest.mark.parametrize("n", [4, 6, 9])
def test_two_cliques_and_their_bridge(n):
    found = facts(weigh.weigh(two_cliques(n), Request(desired_clusters=2)))
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
    weighing = weigh.weigh(path(9), Request(q=4))
    assert weighing.eigenvalues == pytest.approx(2 - 2 * np.cos(np.pi * np.arange(5) / 9))
    weights = facts(weigh.weigh(union(star(6), path(7), path(2), Graph.from_edge_index([[0], [1]], 4)), Request(q=3)))
    assert weights["graph"]["components"] == {"count": 6, "largest": 7, "smallest": 1, "isolated_nodes": 2}
    assert weights["weights"]["modes"] == {"3": 1, "6": 1}
    assert weights["weights"]["widened"] == 1
    assert weights["weights"]["without_modes"] == 2
    assert weights["weights"]["chosen_q"] == 6  # the star comes first among the largest
    assert weights["weights"]["gap"] == pytest.approx(6.0)


def test_effective_resistances_sum_to_nodes_less_components():
    found = facts(weigh.weigh(ZOO["parts"], Request("effective")))
    components = found["graph"]["components"]["count"]
    assert found["weights"]["sum"] == pytest.approx(ZOO["parts"].num_nodes - components)
    assert "eigenvalues" not in found["weights"]


def test_equal_weights_protect_nothing_and_a_given_gamma_is_taken():
    weighing = weigh.weigh(complete(5), Request(q=5))  # every mode: ω = 2 on every edge
    found = facts(weighing)
    assert found["weights"]["quantiles"]["0"] == found["weights"]["quantiles"]["1"] == 2
    assert found["weights"]["critical_edges"] == 0
    assert found["weights"]["gap"] is None
    given = facts(weighing, gamma=1.5)
    assert (given["weights"]["gamma"], given["weights"]["knee"]) == (1.5, found["weights"]["gamma"])
    assert given["strategies"]["cutoff"]["protected"] == 1
    assert facts(weighing, keep_prob=1.0)["strategies"]["uniform"]["protected"] == 1


# Files.


def test_the_csv_gives_odd_names_back(tmp_path):
    called = ["#a", 'quo"te', "with, comma", "naïve – 数", "=1+1", "z z"]
    low, high = [0, 1, 2, 3, 4], [1, 2, 3, 4, 5]
    lines = ((called[i].replace('"', '""'), called[j].replace('"', '""')) for i, j in zip(low, high, strict=True))
    source = tmp_path / "edges.csv"
    source.write_text("".join(f'"{i}","{j}"\n' for i, j in lines), encoding="utf-8")
    graph = Graph.from_file(source)
    assert set(graph.node_ids) == set(called)
    weighing = weigh.weigh(graph, Request(q=2))
    keep = probabilities(weighing.weights, 0.7, knee(weighing.weights, None))
    table = write_csv(tmp_path / "weights.csv", weighing, keep)
    with table.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["source", "target", "weight", *(f"keep_{name}" for name in keep)]
    expected = {
        frozenset((graph.node_ids[i], graph.node_ids[j])): weight
        for i, j, weight in zip(*graph.pairs.tolist(), weighing.weights.tolist(), strict=True)
    }
    assert {frozenset(row[:2]): float(row[2]) for row in rows[1:]} == expected
    again = Graph.from_file(table, weighted=False, header=True)
    assert (again.node_ids, again.fingerprint) == (graph.node_ids, graph.fingerprint)


def test_the_npz_holds_plain_arrays(tmp_path):
    weighing = weigh.weigh(ZOO["weighted"], Request(q=2))
    with np.load(write_npz(tmp_path / "weights.npz", weighing, 0.5), allow_pickle=False) as arrays:
        assert np.array_equal(arrays["pairs"], ZOO["weighted"].pairs)
        assert np.array_equal(arrays["weight"], weighing.weights)
        assert np.array_equal(arrays["edge_weight"], ZOO["weighted"].weight)
        assert np.array_equal(arrays["eigenvalues"], weighing.eigenvalues)
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
    ("name", "wish"),
    [("complete", Request(q=2)), ("parts", Request(desired_clusters=3)), ("star", Request("effective"))],
)
def test_pictures_are_pngs_with_the_same_bytes_each_time(name, wish):
    weighing = weigh.weigh(ZOO[name], wish)
    gamma, places = knee(weighing.weights, None), layout(weighing.graph)
    drawn = [figures.distribution(weighing, "a$x_{$", gamma), figures.picture(weighing, "数据", gamma, places)]
    if len(weighing.eigenvalues):
        drawn.append(figures.spectrum(weighing, "x" * 300))
    for png in drawn:
        assert png.startswith(b"\x89PNG\r\n\x1a\n")
        assert struct.unpack(">I", png[16:20]) == (960,)
    assert figures.distribution(weighing, "a$x_{$", gamma) == drawn[0]


def test_critical_edges_are_coloured():
    """Colours in the picture where an edge is critical, greys alone where none is."""
    weighing = weigh.weigh(two_cliques(5), Request(q=2))
    places = layout(weighing.graph)
    spread = []
    for gamma in (knee(weighing.weights, None), 10.0):
        stream = io.BytesIO(figures.picture(weighing, "cliques", gamma, places))
        spread.append(np.ptp(imread(stream)[:, :, :3], axis=2).max())
    assert spread[0] > 0.5
    assert spread[1] < 0.1


def test_what_is_too_large_is_left_out_with_a_reason():
    line = "graph.html is left out: 20,001 edges, more than the 20,000 that a page can show"
    assert write.reasons(path(20_002))["graph.html"] == line
    assert list(write.reasons(clusters([120, 120], 0.8, 0.7))) == ["graph.png", "graph.html"]
    assert write.reasons(ZOO["karate"]) == {}


def test_the_wish_is_checked_against_the_graph():
    assert Request(q=3).clusters(path(3)) == Clusters(q=3)
    assert Request("effective").clusters(path(3)) is None
