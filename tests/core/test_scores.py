"""Every score keeps its contract, and is what its definition says on larger graphs, too."""

import dense
import numpy as np
import pytest
import torch

from tadropedge import SCORES, ConvergenceError, Graph, TadropedgeError, edge_scores
from tadropedge.scores import parts
from tadropedge.scores.aggregate import aggregate
from tadropedge.scores.solve import settings_for, solve
from tadropedge.testing.graphs import ZOO, clusters, cycle, path, star, union, weighted
from tadropedge.testing.scores import DenseScoreContract, ScoreContract


class TestAggregate(DenseScoreContract):
    variants = (
        {"q": 1, "laplacian": "combinatorial"},
        {"q": 2, "laplacian": "combinatorial"},
        {"q": 3, "laplacian": "normalized"},
    )
    reference = staticmethod(lambda graph, q, laplacian: dense.aggregate_resistance(graph, q, laplacian))

    def test_edge_weights(self, settings):
        if settings["q"] > 1:  # one mode is constant: all scores are zero, whatever the weights
            super().test_edge_weights(settings)


class TestDesiredClusters(ScoreContract):
    variants = ({}, {"desired_clusters": 2}, {"desired_clusters": 3})


class TestEffective(DenseScoreContract):
    score = "effective"
    reference = staticmethod(dense.effective_resistance)


class TestSketched(ScoreContract):
    score = "effective"
    variants = ({"method": "sketch", "relative_error": 0.3, "seed": 2},)


class TestDegree(DenseScoreContract):
    score = "degree"
    reference = staticmethod(lambda graph: dense.ends(graph, 1 / dense.adjacency(graph).sum(1).clip(1e-9)).sum(0))


class TestJaccard(DenseScoreContract):
    score = "jaccard"
    weighted = False
    reference = staticmethod(dense.jaccard)


class TestCommonNeighbours(DenseScoreContract):
    score = "common-neighbours"
    weighted = False
    reference = staticmethod(dense.common_neighbours)


class TestForman(DenseScoreContract):
    score = "forman"
    weighted = False
    shifted = True
    reference = staticmethod(dense.forman)


class TestCosine(DenseScoreContract):
    score = "cosine"
    weighted = False
    features = True
    reference = staticmethod(dense.cosine)


class TestLocalDegree(DenseScoreContract):
    score = "local-degree"
    weighted = False
    reference = staticmethod(dense.local_degree)


class TestLocalSimilarity(DenseScoreContract):
    score = "local-similarity"
    weighted = False
    reference = staticmethod(dense.local_similarity)


class TestPagerank(DenseScoreContract):
    score = "pagerank"
    shifted = True
    reference = staticmethod(dense.pagerank)


class TestEigenvector(DenseScoreContract):
    score = "eigenvector"
    shifted = True
    tolerance = 1e-9  # of 200 power steps
    reference = staticmethod(dense.eigenvector)


def mean_sensitivity(graph, sensitivity):
    """1 − x of each arc, where the mean of x, x², …, x^d is 1 − c, by the polynomial's root; the mean of both arcs."""

    def rate(d):
        roots = np.roots([*np.ones(int(d)), -d * (1 - sensitivity)])
        return max(root.real for root in roots if abs(root.imag) < 1e-9)

    degrees = (dense.adjacency(graph) > 0).sum(1)
    return 1 - dense.ends(graph, [rate(d) if d else 0.0 for d in degrees]).mean(0)


class TestDropsens(DenseScoreContract):
    score = "dropsens"
    variants = ({"sensitivity": 0.9}, {"sensitivity": 0.3})
    weighted = False
    reference = staticmethod(mean_sensitivity)

    def test_all_is_kept_at_one_and_little_at_zero(self):
        assert edge_scores(ZOO["karate"], "dropsens", sensitivity=1).tolist() == [1.0] * 78
        assert edge_scores(ZOO["karate"], "dropsens", sensitivity=0).tolist() == [0.0] * 78


class TestColumn(ScoreContract):
    """A column that is the number of the edge in the list: what is asked of every score but by way of a list."""

    score = staticmethod(lambda graph: SCORES["column"](graph, torch.ones(len(graph.arc_pair))))
    weighted = False


def degree_product(graph, power=1):
    degrees = torch.bincount(graph.pairs.flatten(), minlength=graph.num_nodes)
    return degrees[graph.pairs].prod(0) ** power


class TestYourOwn(ScoreContract):
    score = staticmethod(degree_product)
    variants = ({}, {"power": 2})
    weighted = False


def similarity(graph, features):
    low, high = features[graph.pairs]
    return torch.cosine_similarity(low, high).clamp(min=0)


class TestYourOwnWithFeatures(ScoreContract):
    score = staticmethod(similarity)
    weighted = False
    features = True
    tolerance = 1e-6  # float32


# Larger graphs, and many parts of equal sizes.

LARGE = {"large": clusters([60, 40, 50], 0.4, 0.02), "many": union(*(path(3 + n % 8) for n in range(50)))}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("contract", DenseScoreContract.__subclasses__())
def test_the_definition_on_larger_graphs(contract, name):
    case, graph = contract(), LARGE[name]
    for settings in case.variants:
        expected = case.reference(graph, **case.given(graph, settings))
        assert case.scores(graph, settings).numpy() == pytest.approx(expected, abs=max(case.tolerance, 1e-9))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("settings", [{"q": 2}, {"q": 4, "laplacian": "normalized"}], ids=str)
def test_scores_that_are_equal_in_exact_arithmetic_are_ties(settings):
    scores = edge_scores(LARGE["many"], **settings)
    expected = dense.aggregate_resistance(LARGE["many"], settings["q"], settings.get("laplacian", "combinatorial"))
    assert len(scores.unique()) == len(np.unique(expected.round(11)))


# Sketched resistances.

CROWD = weighted(clusters([400, 300], 0.05, 0.002))


@pytest.mark.parametrize("graph", [CROWD, union(clusters([700], 0.01, 0.0), path(5))], ids=["weighted", "plain"])
def test_a_sketch_is_as_close_as_it_says_and_has_the_right_sum(graph):
    exact = edge_scores(graph, "effective", method="exact")
    weight = 1.0 if graph.weight is None else graph.weight
    found = []
    for seed in (0, 1):
        sketched = edge_scores(graph, "effective", method="sketch", relative_error=0.2, seed=seed)
        inside = (exact * weight < 1 - 1e-9).numpy()  # not a bridge
        error = (sketched / exact - 1).numpy()[inside]
        assert 0.1 < np.sqrt((error**2).mean()) < 0.25
        assert float((weight * sketched).max()) <= 1 + 1e-12
        assert float((weight * sketched).sum()) == pytest.approx(graph.num_nodes - graph.components.count)
        found.append(sketched)
    assert not torch.equal(*found)
    mean = torch.stack(found).mean(0)
    assert float((mean / exact - 1)[torch.from_numpy(inside)].square().mean().sqrt()) < 0.17


def test_a_sketch_of_edges_that_are_nearly_bridges_is_capped_and_has_the_right_sum():
    """Each of a long cycle has (n − 1) / n; half of the estimates lie above 1."""
    sketched = edge_scores(cycle(700), "effective", method="sketch", relative_error=0.3)
    assert float(sketched.max()) <= 1 + 1e-12
    assert float(sketched.sum()) == pytest.approx(699)


def test_parts_of_512_nodes_are_inverted_and_larger_ones_sketched():
    for nodes, is_exact in ((512, True), (513, False)):
        found = edge_scores(cycle(nodes), "effective", method="sketch", relative_error=0.3)
        assert bool(((found - (nodes - 1) / nodes).abs() < 1e-9).all()) == is_exact


@pytest.mark.parametrize(("method", "power"), [("exact", 200), ("sketch", 20)])
def test_weights_that_span_too_much_are_refused(method, power):
    wide = Graph.from_edge_index(CROWD.pairs, 700, CROWD.weight**power)
    with pytest.raises(ConvergenceError, match="span too many orders"):
        edge_scores(wide, "effective", method=method)


# The door.

GRAPH = path(4)
BAD = {
    "name": (lambda: edge_scores(GRAPH, "aggergate", q=2), r"unknown score 'aggergate'.*did you mean 'aggregate'\?"),
    "number": (lambda: edge_scores(GRAPH, 3), "unknown score 3; choose from aggregate, effective"),
    "needed": (lambda: edge_scores(GRAPH, similarity), "the score 'similarity' requires features"),
    "no features": (lambda: edge_scores(GRAPH, "cosine", features=None), "the score 'cosine' requires features"),
    "no graph": (lambda: edge_scores("cora", "degree"), r"expected a tadropedge\.Graph, got str 'cora'"),
    "no edges": (lambda: edge_scores(Graph.from_edge_index([[], []], 5), "degree"), "no edges"),
    "no device": (lambda: edge_scores(GRAPH, "degree", device="tpu"), "device must be 'cpu' or 'cuda', got 'tpu'"),
    "no settings": (lambda: edge_scores(GRAPH, lambda graph: graph, q=1), "has no setting 'q'; it has none"),
    "settings": (lambda: edge_scores(GRAPH, "effective", q=1), "no setting 'q'; its settings are method, rel"),
    "raises": (lambda: edge_scores(GRAPH, lambda graph: 1 / 0), "raised ZeroDivisionError: division by zero; it must"),
    "no tensor": (lambda: edge_scores(GRAPH, lambda graph: [1.0]), "the score '<lambda>' must be a tensor, got list"),
    "shape": (lambda: edge_scores(GRAPH, lambda graph: torch.ones(4)), r"a tensor of shape \[3\], got shape \[4\]"),
    "complex": (lambda: edge_scores(GRAPH, lambda graph: torch.ones(3) * 1j), "real numbers, got torch.complex64"),
    "negative": (
        lambda: edge_scores(GRAPH, lambda graph: torch.tensor([1.0, -2.0, 3.0])),
        "the score '<lambda>' must be finite and at least 0, got -2",
    ),
    "nan": (lambda: edge_scores(GRAPH, lambda graph: torch.full((3,), torch.nan)), "finite and at least 0, got nan"),
    "device": (lambda: edge_scores(GRAPH, lambda graph: torch.ones(3, device="meta")), "is on meta, but the graph"),
    "method": (
        lambda: edge_scores(GRAPH, "effective", method="fast"),
        "unknown method 'fast'; choose from auto, exact",
    ),
    "error": (lambda: edge_scores(GRAPH, "effective", relative_error=0), "relative_error must be a number from"),
    "sensitivity": (lambda: edge_scores(GRAPH, "dropsens", sensitivity=2), "sensitivity must be a number from 0 to 1"),
    "column": (lambda: edge_scores(GRAPH, "column", column=[1, 2, -3]), "must be finite and at least 0, got -3"),
    "columns": (lambda: edge_scores(GRAPH, "column", column=[1, 2]), r"3 listed edges, got shape \[2\]"),
    "cache": (lambda: edge_scores(GRAPH, "effective", cache_dir=7), "cache_dir must be the path"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, message = BAD[name]
    with pytest.raises(TadropedgeError, match=message):
        call()


def test_a_function_may_take_anything_or_have_no_signature():
    def open_minded(graph, **settings):
        return torch.full((graph.num_edges,), float(len(settings)))

    assert edge_scores(GRAPH, open_minded, q=1, moon="full").tolist() == [2.0] * 3
    assert settings_for(open_minded, {"q": 1}) == {}
    assert settings_for(iter, {"q": 1}) == {}  # written in C


def test_a_registered_score_is_named_in_its_errors(monkeypatch):
    monkeypatch.setitem(SCORES, "minus", lambda graph: -graph.pairs.sum(0))
    with pytest.raises(TadropedgeError, match=r"'minus' .* got -1"):
        edge_scores(Graph.from_edge_index([[0, 1], [1, 2]]), "minus")


def test_every_score_says_what_it_is_where_it_comes_from_and_what_it_is_good_for():
    assert len(SCORES) == 13
    for score in SCORES.values():
        for word in ("* Source:", "* Cost:", "* Good for:", ">>>"):
            assert word in score.__doc__


# Weights of zero.


@pytest.mark.parametrize(("score", "settings"), [("aggregate", {"q": 3}), ("effective", {})])
def test_an_edge_of_weight_zero_is_no_connection(score, settings):
    graph = weighted(clusters([10, 12], 0.5, 0.1), zeros=0.3)
    there = graph.weight > 0
    without = Graph.from_edge_index(graph.pairs[:, there], graph.num_nodes, graph.weight[there])
    scores = edge_scores(graph, score, **settings)
    assert not scores[~there].any()
    assert torch.equal(scores[there], edge_scores(without, score, **settings))


def test_components_that_only_zeros_join_are_components():
    joined = Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 4]], 5, [1.0, 0.0, 1.0, 1.0])
    found = solve(joined, "aggregate", {"q": 2})
    assert found.connected.components.count == 2
    assert edge_scores(joined, "aggregate", q=2)[0] == 2  # all modes of two nodes
    assert edge_scores(joined, "degree").tolist() == [2.0, 2.0, 1.5, 1.5]
    for score in ("pagerank", "eigenvector"):
        assert edge_scores(joined, score).isfinite().all()
    nothing = Graph.from_edge_index([[0, 1], [1, 2]], 3, [0.0, 0.0])
    for score in ("effective", "degree", "pagerank", "eigenvector"):
        assert edge_scores(nothing, score).tolist() == [0.0, 0.0]


# Part by part.


def test_what_is_finished_is_not_solved_again(tmp_path, monkeypatch):
    graph, settings = ZOO["parts"], {"q": 2}
    expected = solve(graph, "aggregate", settings)
    original, solved = parts._solve_part, []

    def killed_at_the_third(*given):
        if len(solved) == 2:
            raise KeyboardInterrupt
        solved.append(given)
        return original(*given)

    monkeypatch.setattr(parts, "_solve_part", killed_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        solve(graph, "aggregate", settings, cache_dir=tmp_path)
    monkeypatch.setattr(parts, "_solve_part", lambda *given: solved.append(given) or original(*given))
    found = solve(graph, "aggregate", settings, cache_dir=tmp_path)
    assert len(solved) == 4  # of 2, 3, 6 and 8 nodes
    assert torch.equal(found.values, expected.values)
    assert found.eigenvalues.tolist() == expected.eigenvalues.tolist()
    assert (found.solvers, found.modes.tolist()) == (expected.solvers, expected.modes.tolist())
    again = solve(graph, "aggregate", settings, cache_dir=tmp_path)
    assert len(solved) == 4
    assert again.seconds == found.seconds  # of the solving, not of the reading


@pytest.mark.filterwarnings("ignore::tadropedge.RepeatedEigenvalueWarning")
@pytest.mark.parametrize("score", ["aggregate", "effective"])
def test_progress_counts_edges_to_the_last(score):
    seen = []
    settings = {"q": 4} if score == "aggregate" else {}
    edge_scores(ZOO["parts"], score, progress=lambda *counts: seen.append(counts), **settings)
    edges = ZOO["parts"].num_edges
    assert seen[0] == (0, edges)
    assert seen[-1] == (edges, edges)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_progress_moves_inside_one_large_component():
    graph, seen = path(700), []
    edge_scores(graph, q=3, solver="davidson", progress=lambda done, total: seen.append(done))
    assert seen == sorted(seen)
    assert any(0 < done < graph.num_edges for done in seen)


def test_a_plain_call_warns_as_the_door_does():
    with pytest.warns(UserWarning, match="eigenvalue in 1 of 1") as said:
        assert aggregate(star(5), 2).unique().numel() == 1
    assert len(said) == 1
