"""The scores of one pass over the edges: closed forms, networkit's numbers, hubs, features of both kinds."""

import dense
import numpy as np
import pytest
import torch

import tadropedge.scores.cosine as cosine_module
from tadropedge import Graph, TadropedgeError, edge_scores
from tadropedge.operators.kernels import reference
from tadropedge.scores._triangles import triangles
from tadropedge.testing.graphs import (
    ZOO,
    bipartite,
    circulant,
    clusters,
    complete,
    cycle,
    join,
    path,
    relabel,
    star,
    two_cliques,
    union,
    weighted,
)

# What every edge of a graph scores; ``None`` where not all of its edges are alike.
STAR, PATH, COMPLETE, CYCLE = star(8), path(7), complete(6), cycle(9)
ALIKE = {
    "degree": (1 + 1 / 8, None, 2 / 5, 1.0),
    "jaccard": (0.0, 0.0, 4 / 6, 0.0),
    "common-neighbours": (0.0, 0.0, 4 / 5, 0.0),
    "forman": (0.0, None, 0.0, 0.0),
    "local-degree": (1.0, None, 1.0, 1.0),
    "local-similarity": (1.0, 1.0, 1.0, 1.0),
    "pagerank": (0.0, None, 0.0, 0.0),
    "eigenvector": (0.0, None, 0.0, 0.0),
}


@pytest.mark.parametrize("score", ALIKE)
def test_closed_forms(score):
    for graph, expected in zip((STAR, PATH, COMPLETE, CYCLE), ALIKE[score], strict=True):
        if expected is not None:
            assert edge_scores(graph, score).tolist() == [pytest.approx(expected, abs=1e-15)] * graph.num_edges


def test_on_a_path():
    assert edge_scores(PATH, "degree").tolist() == [1.5, 1, 1, 1, 1, 1.5]
    assert edge_scores(PATH, "forman").tolist() == [0, 1, 1, 1, 1, 0]
    # The second node prefers the third, of degree 2, to the end, of degree 1; the end has no choice.
    assert edge_scores(PATH, "local-degree").tolist() == [1.0] * 6
    sines = np.sin(np.pi * np.arange(1, 8) / 8)  # the leading eigenvector
    assert edge_scores(PATH, "eigenvector").numpy() == pytest.approx(dense.mean_log(PATH, sines), abs=1e-7)


AT_THE_BRIDGE = {
    "degree": (2 / 5, 1 / 2, 9 / 20),
    "jaccard": (0.0, 3 / 5, 3 / 6),
    "common-neighbours": (0.0, 3 / 4, 3 / 4),
    "forman": (11.0, 0.0, 1.0),
    "local-degree": (1.0, 1 - np.log(2) / np.log(4), 1.0),
    "local-similarity": (0.0, 1.0, 1.0),
}


@pytest.mark.parametrize("score", AT_THE_BRIDGE)
def test_a_bridge_between_cliques(score):
    """The bridge, an edge far from it, an edge of one of its ends."""
    scores = edge_scores(two_cliques(5), score)
    pairs = two_cliques(5).pairs.T.tolist()
    found = [scores[pairs.index(pair)].item() for pair in ([4, 5], [0, 1], [3, 4])]
    assert found == pytest.approx(AT_THE_BRIDGE[score], abs=1e-15)


# networkit 11.2 on the karate club, in the order of the pairs.
# fmt: off
TRIANGLES = [
    7, 5, 5, 2, 2, 2, 3, 1, 2, 0, 1, 3, 1, 1, 1, 0, 4, 4, 3, 3, 1, 1, 1, 0, 4, 3, 2, 0, 3, 0, 0, 1, 3, 1, 3, 1,
    1, 2, 1, 1, 1, 2, 3, 2, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 2, 2, 3, 1, 0, 1, 1, 1, 1, 1, 1, 1, 2,
    3, 2, 2, 1, 2, 10,
]
LOCAL_DEGREE = [
    1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5693, 1.0, 1.0, 1.0, 0.5693, 1.0, 0.3691, 1.0, 0.6131, 0.6845, 0.5, 0.2675,
    0.3691, 0.0536, 0.1144, 0.0, 0.2075, 0.6131, 0.5, 0.301, 0.0, 0.3174, 0.5, 0.3691, 0.7211, 0.1018, 0.0, 0.2263,
    0.3691, 0.0, 0.5, 0.3691, 1.0, 0.0, 0.0, 0.4421, 1.0, 1.0, 1.0, 0.1632, 1.0, 0.1158, 1.0, 0.0734, 1.0, 1.0, 0.035,
    1.0, 0.0, 1.0, 0.3691, 0.3174, 0.2075, 0.5693, 1.0, 0.0, 0.3691, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.5, 1.0, 0.5,
    1.0, 0.5579, 1.0, 1.0,
]
LOCAL_SIMILARITY = [
    1.0, 0.6038, 0.75, 0.3538, 0.25, 0.2075, 0.5, 0.0482, 0.2982, 1.0, 0.1695, 0.4195, 0.1351, 0.3691, 0.1038, 0.0,
    0.5229, 0.6845, 0.5, 0.5693, 1.0, 1.0, 1.0, 0.0, 1.0, 0.699, 0.3174, 1.0, 0.3979, 0.2075, 0.0, 0.1549, 1.0, 1.0,
    1.0, 0.3691, 1.0, 1.0, 0.3691, 1.0, 0.5, 1.0, 0.7211, 0.4319, 0.0442, 0.0214, 1.0, 0.3132, 1.0, 0.266, 1.0, 0.2245,
    0.0, 1.0, 0.1873, 1.0, 0.1536, 0.0, 1.0, 1.0, 0.3523, 0.6122, 1.0, 0.0, 1.0, 0.6131, 1.0, 0.1229, 0.5, 1.0, 0.3691,
    0.5579, 0.7553, 0.5, 0.5107, 0.1018, 0.3676, 1.0,
]
# fmt: on


def test_triangles_of_networkit():
    assert triangles(ZOO["karate"]).tolist() == TRIANGLES


@pytest.mark.parametrize(
    ("score", "theirs", "tied"), [("local-degree", LOCAL_DEGREE, 9), ("local-similarity", LOCAL_SIMILARITY, 18)]
)
def test_local_scores_of_networkit(score, theirs, tied):
    """Ties share their best rank here; networkit ranks them one after the other, so it may only score lower."""
    ours = edge_scores(ZOO["karate"], score).numpy()
    assert (ours >= np.array(theirs) - 5e-5).all()
    assert (np.abs(ours - theirs) > 5e-5).sum() == tied


# Triangles.


@pytest.mark.parametrize("seed", range(3))
def test_triangles_in_pieces_of_any_size(seed, monkeypatch):
    graph = clusters([20, 15, 10], 0.6, 0.2, seed=seed)
    expected = dense.triangles(graph).tolist()
    for wedges in (1, 7, 100, 2**23):
        monkeypatch.setattr(reference, "WEDGES", wedges)
        assert reference.triangles(graph.pairs, graph.num_nodes).tolist() == expected


@pytest.mark.parametrize("name", ZOO)
def test_triangles_of_every_graph(name):
    assert triangles(ZOO[name]).tolist() == dense.triangles(ZOO[name]).tolist()


def hubs(leaves=100_000):
    """Two hubs that see each other and every leaf; each leaf sees the next one."""
    leaf = torch.arange(2, leaves + 2)
    to_hubs = [torch.stack((torch.full_like(leaf, hub), leaf)) for hub in (0, 1)]
    along = torch.stack((leaf[:-1], leaf[1:]))
    return Graph.from_edge_index(torch.cat((torch.tensor([[0], [1]]), *to_hubs, along), dim=1))


def test_triangles_of_two_hubs_of_a_hundred_thousand_leaves(device):
    leaves = 100_000
    graph = hubs(leaves).to(device)
    found = triangles(graph).cpu()
    assert found[0] == leaves  # between the hubs
    spokes = found[1 : leaves + 1]  # of the first: the other hub and two neighbours, one at the ends of the path
    assert spokes[[0, -1]].tolist() == [2, 2]
    assert bool((spokes[1:-1] == 3).all())
    assert bool((found[2 * leaves + 1 :] == 2).all())  # along the path: both hubs


@pytest.mark.parametrize(
    "score", ["degree", "jaccard", "common-neighbours", "forman", "local-degree", "local-similarity", "dropsens"]
)
def test_the_same_bits_on_every_device(score, device):
    graph = clusters([60, 40, 50], 0.4, 0.1)
    assert torch.equal(edge_scores(graph.to(device), score).cpu(), edge_scores(graph, score))


# Centralities.

GRAPHS = {
    "bipartite": bipartite(4, 9),
    "regular": circulant(40, (1, 3, 7)),
    "alike": union(two_cliques(4), two_cliques(4), cycle(5)),
    "weighted": weighted(clusters([30, 30], 0.3, 0.02), seed=3),
    "tadpole": join(union(complete(7), path(3)), [[6], [7]]),
    "star": star(900),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(("score", "error"), [("pagerank", 1e-11), ("eigenvector", 1e-6)])
def test_centralities_of_every_kind_of_graph(name, score, error):
    graph = GRAPHS[name]
    expected = getattr(dense, score)(graph)
    assert edge_scores(graph, score).numpy() == pytest.approx(expected, abs=error)


def test_eigenvector_centrality_is_accurate_where_it_is_small():
    """A clique with a long tail: x falls by e^θ per step, 2 cosh θ = λ, down to the 1e-8 that is added."""
    clique, tail = 8, 40
    graph = join(union(complete(clique), path(tail)), [[clique - 1], [clique]])
    scores = edge_scores(graph, "eigenvector").numpy()
    leading = np.linalg.eigvalsh(dense.adjacency(graph))[-1]
    along = scores[-tail + 1 :]
    steps = np.diff(along[:5])  # far above what is added, far from the end
    assert steps == pytest.approx(-np.arccosh(leading / 2), abs=1e-3)
    order = torch.from_numpy(np.random.default_rng(1).permutation(graph.num_nodes))
    other, place = relabel(graph, order)
    assert edge_scores(other, "eigenvector")[place].numpy() == pytest.approx(scores, abs=1e-11)


def test_eigenvector_centrality_of_what_no_power_iteration_finds_is_still_a_score():
    """On a long path the steps have not gone far: the ends are lower, the middle is flat."""
    scores = edge_scores(path(2000), "eigenvector")
    assert bool(scores.isfinite().all())
    assert bool((scores[:100].diff() >= 0).all())
    assert scores[0] == 0


def test_pagerank_solves_its_equation_on_a_graph_with_hubs():
    graph = hubs(1000)
    assert edge_scores(graph, "pagerank").numpy() == pytest.approx(dense.pagerank(graph), abs=1e-8)


def test_ties_of_centralities_are_ties():
    """A cycle has one score, whatever rounding does; so has each class of edges of the two cliques."""
    assert len(edge_scores(cycle(800), "eigenvector").unique()) == 1
    assert len(edge_scores(cycle(31), "pagerank").unique()) == 1
    assert len(edge_scores(two_cliques(6), "pagerank").unique()) == 3


# Features.


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.int64])
@pytest.mark.parametrize("entries", [1, 50, 1 << 22])
def test_cosine_of_dense_and_sparse_features(kind, entries, monkeypatch, device):
    monkeypatch.setattr(cosine_module, "ENTRIES", {"cpu": entries, "cuda": entries})
    graph = ZOO["clusters"]
    features = (torch.randn(graph.num_nodes, 11, generator=torch.Generator().manual_seed(0)) * 3).to(kind)
    features[features.abs() < 2] = 0
    features[:2] = 0  # nodes without features
    expected = pytest.approx(dense.cosine(graph, features), abs=1e-14)
    assert edge_scores(graph.to(device), "cosine", features=features.to(device)).cpu().numpy() == expected
    sparse = features.to_sparse_csr().to(device)
    assert edge_scores(graph.to(device), "cosine", features=sparse).cpu().numpy() == expected


def test_cosine_of_equal_rows_is_one():
    rows = torch.rand(1, 37, generator=torch.Generator().manual_seed(3)).expand(6, -1)
    for features in (rows, rows.to_sparse_csr()):
        assert edge_scores(complete(6), "cosine", features=features).tolist() == [1.0] * 15


NEEDS = r"the score 'cosine' needs one row of features per node, \[5, F\], dense or CSR, got "
BAD = {
    "list": ([[1.0]] * 5, NEEDS + "list"),
    "rows": (torch.ones(4, 2), NEEDS + r"torch.float32 \(torch.strided\) of shape \[4, 2\]"),
    "signals": (torch.ones(3, 5, 1), NEEDS + r".* of shape \[3, 5, 1\]"),
    "coo": (torch.ones(5, 2).to_sparse(), NEEDS + r"torch.float32 \(torch.sparse_coo\)"),
    "complex": (torch.ones(5, 2) * 1j, NEEDS + "torch.complex64"),
    "nan": (torch.full((5, 2), torch.nan), "the score 'cosine' needs finite features, got nan"),
}


@pytest.mark.parametrize("name", BAD)
def test_features_that_will_not_do(name):
    features, message = BAD[name]
    with pytest.raises(TadropedgeError, match=message):
        edge_scores(path(5), "cosine", features=features)
