"""Every score keeps its contract; the path that they share: parts, resuming, progress, your own functions."""

import dense
import pytest
import torch
from contracts.scores import DenseScoreContract, ScoreContract
from graphs import ZOO, path

from tadropedge import SCORES, Graph, TadropedgeError, edge_scores
from tadropedge.scores import solve as module
from tadropedge.scores.solve import settings_for, solve


class TestAggregate(DenseScoreContract):
    variants = tuple({"q": q, "laplacian": kind} for q in (1, 2, 3, 5) for kind in ("combinatorial", "normalized"))
    reference = staticmethod(lambda graph, q, laplacian: dense.aggregate_resistance(graph, q, laplacian))

    def test_edge_weights(self, settings):
        if settings["q"] > 1:  # one mode is constant: all scores are zero, whatever the weights
            super().test_edge_weights(settings)


class TestDesiredClusters(ScoreContract):
    variants = ({"desired_clusters": 2}, {"desired_clusters": 3})


class TestEffective(DenseScoreContract):
    score = "effective"
    reference = staticmethod(lambda graph: dense.effective_resistance(graph))


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
    tolerance = 1e-11  # the smallest entries of long components
    reference = staticmethod(dense.eigenvector)


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


# The path that they share.


def test_what_is_finished_is_not_solved_again(tmp_path, monkeypatch):
    graph, settings = ZOO["parts"], {"q": 2}
    expected = solve(graph, "aggregate", settings)
    original, solved = module._solve_part, []

    def killed_at_the_third(*given):
        if len(solved) == 2:
            raise KeyboardInterrupt
        solved.append(given)
        return original(*given)

    monkeypatch.setattr(module, "_solve_part", killed_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        solve(graph, "aggregate", settings, cache_dir=tmp_path)
    monkeypatch.setattr(module, "_solve_part", lambda *given: solved.append(given) or original(*given))
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


GRAPH = path(4)
BAD = {
    "name": (lambda: edge_scores(GRAPH, "aggergate", q=2), r"unknown score 'aggergate'.*did you mean 'aggregate'\?"),
    "number": (lambda: edge_scores(GRAPH, 3), "unknown score 3; choose from aggregate, effective"),
    "needed": (lambda: edge_scores(GRAPH, similarity), "the score 'similarity' requires features"),
    "no settings": (lambda: edge_scores(GRAPH, lambda graph: graph, q=1), "has no setting 'q'; it has none"),
    "no tensor": (
        lambda: edge_scores(GRAPH, lambda graph: [1.0, 2.0, 3.0]),
        r"the score '<lambda>' must return one number per edge, a tensor of shape \[3\], got list",
    ),
    "shape": (lambda: edge_scores(GRAPH, lambda graph: torch.ones(4)), r"a tensor of shape \[3\], got shape \[4\]"),
    "complex": (lambda: edge_scores(GRAPH, lambda graph: torch.ones(3) * 1j), "one number per edge, .* got Tensor"),
    "negative": (
        lambda: edge_scores(GRAPH, lambda graph: torch.tensor([1.0, -2.0, 3.0])),
        "the score '<lambda>' must be finite and at least 0, got -2",
    ),
    "nan": (lambda: edge_scores(GRAPH, lambda graph: torch.full((3,), torch.nan)), "finite and at least 0, got nan"),
    "device": (
        lambda: edge_scores(GRAPH, lambda graph: torch.ones(3, device="meta")),
        "the score '<lambda>' must return one number per edge, a tensor of shape \\[3\\], got Tensor",
    ),
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
    with pytest.raises(TadropedgeError, match="the score 'minus' must be finite and at least 0, got -1"):
        edge_scores(Graph.from_edge_index([[0, 1], [1, 2]]), "minus")


def test_the_old_module_still_works():
    with pytest.warns(DeprecationWarning, match="tadropedge.resistance is deprecated"):
        from tadropedge.resistance import aggregate_resistance
    assert aggregate_resistance(path(4), 4).tolist() == [2.0] * 3
    with pytest.raises(ImportError, match="modal_weights"):
        from tadropedge.resistance import modal_weights  # noqa: F401
