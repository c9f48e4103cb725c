"""``sparsify`` and ``certify``: unbiased, connected, and measured against dense eigenvalues and closed forms."""

import dense
import numpy as np
import pytest
import scipy.linalg
import torch

import tadropedge as tde
from tadropedge import Graph, TadropedgeError, certify, sparsify
from tadropedge.sparsifier import certificate
from tadropedge.testing.graphs import ZOO, clusters, complete, cycle, grid, path, star, union, weighted

F64 = torch.float64
KARATE = ZOO["karate"]


def reweighted(graph, weight):
    """The graph with other weights, without edges of weight 0."""
    weight = torch.as_tensor(weight, dtype=F64)
    return Graph.from_edge_index(graph.pairs[:, weight > 0], graph.num_nodes, weight[weight > 0])


def eigenvalues(before, after):
    """All eigenvalues of L' x = λ L x on the complement of the kernel of L, ascending."""
    L, other = (dense.laplacian(dense.adjacency(graph)) for graph in (before, after))
    values, vectors = np.linalg.eigh(L)
    half = vectors[:, values > 1e-9] / np.sqrt(values[values > 1e-9])
    return scipy.linalg.eigvalsh(half.T @ other @ half)


# -- the sparsifier -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("connected", [True, False])
@pytest.mark.parametrize(
    ("graph", "score"), [(KARATE, "effective"), (ZOO["weighted"], "effective"), (ZOO["weighted"], None)]
)
def test_the_laplacian_is_unbiased(graph, score, connected):
    draws, share = 400, 0.6
    weight = torch.ones(graph.num_edges, dtype=F64) if graph.weight is None else graph.weight
    total, largest, count = torch.zeros_like(weight), weight.clone(), 0
    importance = None if score is None else tde.edge_scores(graph, score)
    for seed in range(draws):
        # The score is computed once: a function that returns what is known.
        found, kept = sparsify(
            graph, None if score is None else lambda _: importance, keep_ratio=share, seed=seed, connected=connected
        )
        mine = torch.ones(found.num_edges, dtype=F64) if found.weight is None else found.weight
        total[kept] += mine
        largest[kept] = mine
        count += found.num_edges
    prob = weight / largest  # of every edge that was ever kept
    deviation = weight * ((1 - prob) / prob / draws).sqrt()
    assert bool(((total / draws - weight).abs() <= 5 * deviation + 1e-12).all())
    assert count / draws / graph.num_edges == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("name", ZOO)
def test_no_component_falls_apart(name):
    graph = ZOO[name]
    size = graph.num_nodes - graph.components.count
    share = 1 - 0.8 * (1 - size / graph.num_edges)
    for seed in range(5):
        found, kept = sparsify(graph, keep_ratio=share, seed=seed)
        assert torch.equal(found.pairs, graph.pairs[:, kept])
        assert torch.equal(found.components.labels, graph.components.labels)
        assert certify(graph, found).lambda_min > 0


def test_the_forest_is_that_of_the_largest_scores_and_is_kept_as_it_is():
    graph = ZOO["weighted"]
    for seed in range(5):
        scores = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(seed), dtype=F64) + 0.1
        found, kept = sparsify(graph, lambda _, scores=scores: scores, keep_ratio=0.7, seed=seed)
        importance = scores * graph.weight
        assert kept.sum() < graph.num_edges
        reached, forest = Graph.from_edge_index([[], []], graph.num_nodes), []
        for edge in importance.argsort(descending=True).tolist():
            low, high = graph.pairs[:, edge].tolist()
            if reached.components.labels[low] != reached.components.labels[high]:
                forest.append(edge)
                reached = Graph.from_edge_index(graph.pairs[:, forest], graph.num_nodes)
        forest = torch.tensor(forest)
        assert kept[forest].all()
        place = kept.cumsum(0) - 1
        assert torch.equal(found.weight[place[forest]], graph.weight[forest])
        rest = kept.clone()
        rest[forest] = False
        prob = (graph.weight[rest] / found.weight[place[rest]]) / importance[rest]
        free = found.weight[place[rest]] > graph.weight[rest]  # p < 1: proportional to the importance
        assert prob[free].tolist() == pytest.approx([float(prob[free].mean())] * int(free.sum()))


def test_without_a_forest_probabilities_are_proportional_to_leverage():
    graph = ZOO["weighted"]
    leverage = torch.from_numpy(dense.effective_resistance(graph)) * graph.weight
    prob = tde.keep_probabilities(leverage, keep_ratio=0.3, rule="proportional")
    found, kept = sparsify(graph, keep_ratio=0.3, connected=False, seed=4)
    assert torch.equal(kept, tde.sample_edges(prob, seed=4, graph=graph))
    assert torch.allclose(found.weight, (graph.weight / prob)[kept])


def test_what_comes_back_is_a_graph_on_the_same_nodes(device):
    graph = Graph.from_edge_index(KARATE.pairs.flip(0), 36)
    found, kept = sparsify(graph, keep_ratio=0.7, seed=1)
    assert isinstance(found, Graph)
    assert found.num_nodes == 36
    assert tde.edge_scores(found, "effective").shape == (found.num_edges,)
    arcs = found.to_arcs(found.weight)
    assert torch.equal(arcs > 0, kept[graph.arc_pair])
    there, again = sparsify(graph.to(device), keep_ratio=0.7, seed=1)
    assert again.device.type == device.type
    assert torch.equal(again.cpu(), kept)
    assert there.to("cpu").fingerprint == found.fingerprint
    assert sparsify(graph, keep_ratio=0.7, seed=2)[0].fingerprint != found.fingerprint
    assert sparsify(found, keep_ratio=0.9)[0].num_edges < found.num_edges


def test_node_names_stay():
    pytest.importorskip("networkx")
    import networkx as nx

    graph = Graph.from_networkx(nx.davis_southern_women_graph())
    assert sparsify(graph, keep_ratio=0.8)[0].node_ids == graph.node_ids


def test_every_ratio_up_to_one():
    graph = ZOO["cliques"]
    whole, kept = sparsify(graph, keep_ratio=1)
    assert kept.all()
    assert whole.fingerprint == graph.fingerprint
    none, kept = sparsify(graph, keep_ratio=1e-12, connected=False)
    assert not kept.any()
    found = certify(graph, none)
    assert (found.lambda_min, found.lambda_max, found.isolated_after) == (0, 0, 10)
    tree, kept = sparsify(star(7), keep_ratio=0.5, connected=False)  # all leverages are 1
    assert set(tree.weight.tolist()) == {2.0}


def test_edges_of_weight_0_do_not_matter():
    graph = weighted(clusters([10, 10], 0.6, 0.2), zeros=0.3)
    found, kept = sparsify(graph, keep_ratio=0.8, seed=3)
    assert found.weight.isfinite().all()
    assert torch.equal(found.weight == 0, graph.weight[kept] == 0)
    there = graph.weight > 0
    positive = Graph.from_edge_index(graph.pairs[:, there], graph.num_nodes, graph.weight[there])
    assert certify(graph, found) == certify(positive, reweighted(found, found.weight))


def test_any_score_rule_and_setting():
    mine, kept = sparsify(KARATE, lambda graph, power: (graph.pairs.sum(0) + 1.0) ** power, keep_ratio=0.6, power=2)
    assert kept.sum() == mine.num_edges
    resistance = tde.edge_scores(KARATE, "effective")
    by_rank = tde.keep_probabilities(resistance, keep_ratio=0.8, rule="cdf")
    _, kept = sparsify(KARATE, keep_ratio=0.8, rule="cdf", connected=False)
    assert torch.equal(kept, tde.sample_edges(by_rank, graph=KARATE))
    assert sparsify(KARATE, "aggregate", keep_ratio=0.9, rule="cdf", q=4)[0].components.count == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"keep_ratio": 0}, "keep_ratio=0 is too small"),
        ({"keep_ratio": 0.42}, "keep at least 0.423077, or"),
        ({"keep_ratio": 1.5}, "keep_ratio must .* got 1.5"),
        ({"keep_ratio": float("nan")}, "keep_ratio must be"),
        ({"score": "efective"}, "unknown score 'efective'"),
        ({"score": None, "q": 3}, "score=None has no setting 'q'"),
        ({"q": 3}, "no setting 'q'"),
        ({"rule": "cdff"}, "unknown rule 'cdff'"),
        ({"rule": "cdf"}, "beside the spanning forest, keep_ratio=.* cannot be reached with cdf"),
        ({"score": lambda graph: graph.pairs[0], "connected": False}, "16 of 78 edges have a keep probability of 0"),
        ({"score": lambda graph: graph.pairs[0] - 1.0}, "at least 0"),
        ({"seed": 1.5}, "seed must be a whole number"),
    ],
)
def test_bad_input_is_one_line(given, words):
    with pytest.raises(TadropedgeError, match=words) as caught:
        sparsify(KARATE, **given)
    assert "\n" not in str(caught.value)


def test_the_least_share_that_is_named_suffices():
    for graph in (KARATE, ZOO["grid"], complete(7)):
        with pytest.raises(TadropedgeError, match="keep at least") as caught:
            sparsify(graph, keep_ratio=(graph.num_nodes - 1) / graph.num_edges)
        least = float(str(caught.value).partition("at least ")[2].partition(",")[0])
        assert sparsify(graph, keep_ratio=least)[0].components.count == 1


# -- the certificate ------------------------------------------------------------------------------------------

SIZES = pytest.mark.parametrize("most", [1_000, 60], ids=["dense", "iterated"])


@SIZES
@pytest.mark.parametrize("n", [2, 9, 700])
def test_of_a_tree_the_eigenvalues_are_the_ratios_of_weights(n, most, monkeypatch):
    monkeypatch.setattr(certificate, "DENSE_NODES", most)
    ratio = torch.linspace(0.5, 3.0, n - 1, dtype=F64)
    found = certify(path(n), reweighted(path(n), ratio))
    assert found.lambda_min == pytest.approx(float(ratio.min()), rel=1e-3)
    assert found.lambda_max == pytest.approx(float(ratio.max()), rel=1e-3)


@SIZES
def test_components_are_measured_one_by_one(most, monkeypatch):
    """Of two cycles that lost an edge each, the shorter one lost more; weights differ by a factor of 1000."""
    monkeypatch.setattr(certificate, "DENSE_NODES", most)
    graph, weight = union(cycle(50), cycle(70)), torch.full((120,), 1.25)
    graph = Graph.from_edge_index(graph.pairs, 120, torch.where(torch.arange(120) < 50, 1.0, 1000.0))
    weight[3] = weight[60] = 0
    found = certify(graph, reweighted(graph, weight * graph.weight))
    assert found.lambda_min == pytest.approx(1.25 / 70, rel=1e-6)
    assert found.lambda_max == pytest.approx(1.25, rel=1e-6)


@SIZES
@pytest.mark.parametrize("n", [5, 600])
def test_a_cycle_without_one_edge_keeps_one_nth(n, most, monkeypatch):
    monkeypatch.setattr(certificate, "DENSE_NODES", most)
    weight = torch.full((n,), 1.25)
    weight[3] = 0  # L' = 1.25 (L − b bᵀ), and bᵀ L⁺ b = (n − 1) / n
    found = certify(cycle(n), reweighted(cycle(n), weight))
    assert found.lambda_min == pytest.approx(1.25 / n, rel=1e-6)
    assert found.lambda_max == pytest.approx(1.25, rel=1e-6)
    assert found.epsilon == pytest.approx(1 - 1.25 / n)
    assert found.error < 1e-3


def test_a_star_inside_a_complete_graph():
    n = 8  # L = n I − J, and the Laplacian of a star has the eigenvalues 0, 1 and n
    found = certify(complete(n), reweighted(complete(n), (complete(n).pairs[0] == 0).double()))
    assert (found.lambda_min, found.lambda_max) == pytest.approx((1 / n, 1.0))
    assert found.degree_ratio["largest"] == 1
    assert found.degree_ratio["least"] == pytest.approx(1 / (n - 1))


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.parametrize("share", [0.5, 0.95])
def test_on_the_zoo_it_is_the_dense_answer(name, share):
    graph = ZOO[name]
    after, _ = sparsify(graph, None, keep_ratio=share, seed=5, connected=False)
    found, values = certify(graph, after), eigenvalues(graph, after)
    assert found.lambda_min == pytest.approx(max(values[0], 0.0), abs=1e-9)
    assert found.lambda_max == pytest.approx(values[-1])
    assert (found.lambda_min == 0) == (after.components.count > graph.components.count)
    assert (found.edges_before, found.edges_after) == (graph.num_edges, after.num_edges)
    assert (found.components_before, found.components_after) == (graph.components.count, after.components.count)
    assert found.isolated_after == int((dense.adjacency(after).sum(1) == 0).sum())
    degrees = dense.adjacency(graph).sum(1)
    ratio = dense.adjacency(after).sum(1)[degrees > 0] / degrees[degrees > 0]
    assert found.degree_ratio == pytest.approx(
        {
            "mean": ratio.mean(), "least": ratio.min(), "largest": ratio.max(),
            "5 %": np.quantile(ratio, 0.05), "50 %": np.median(ratio), "95 %": np.quantile(ratio, 0.95),
        }
    )  # fmt: skip


LARGE = {
    "clusters": weighted(clusters([400, 400], 0.05, 0.002, seed=1)),
    "grid": weighted(grid(20, 40)),
    "many": union(*(complete(4 + number % 5) for number in range(60))),
    "parts": union(
        clusters([600], 0.05, 0.0, seed=2), path(40), complete(5), path(2), Graph.from_edge_index([[], []], 3)
    ),
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("connected", [True, False])
def test_large_graphs_have_the_eigenvalues_of_the_dense_answer(name, connected, monkeypatch):
    graph = LARGE[name]
    share = 0.8 if connected else 0.1  # so few that some node loses all its edges
    after, _ = sparsify(graph, keep_ratio=share, seed=3, connected=connected)
    small = certify(graph, after)
    monkeypatch.setattr(certificate, "DENSE_NODES", 100)
    large = certify(graph, after)
    assert large.error < 1e-2
    assert large.lambda_max == pytest.approx(small.lambda_max, rel=1e-3)
    assert large.lambda_min == pytest.approx(small.lambda_min, rel=1e-3, abs=1e-12)
    assert (small.lambda_min > 0) == connected
    values = eigenvalues(graph, after)
    for found in (large.lambda_min, large.lambda_max)[not connected :]:
        assert np.abs(values / found - 1).min() <= large.error + 1e-9
    assert small.lambda_max == pytest.approx(values[-1])
    assert small.lambda_min == pytest.approx(max(values[0], 0), abs=1e-9)


@pytest.mark.parametrize(
    "after",
    [Graph.from_edge_index([[0], [2]], 9), Graph.from_edge_index([[0], [1]], 10), Graph.from_edge_index([[7], [9]])],
)
def test_other_edges_or_nodes_are_refused(after):
    with pytest.raises(TadropedgeError, match="some of those of"):
        certify(path(9), after)


def test_a_graph_of_a_million_edges_stays_connected(data_folder):
    """Which half of the edges, drawn without the forest, do not: they leave thousands of pieces."""
    pairs = np.loadtxt(data_folder / "graphs" / "com-dblp.tsv.gz", dtype=np.int64).T
    graph = Graph.from_edge_index(np.unique(pairs, return_inverse=True)[1].reshape(2, -1))  # ids have gaps
    found, kept = sparsify(graph, "degree", keep_ratio=0.5, seed=0)
    assert found.components.count == graph.components.count == 1
    assert float(kept.double().mean()) == pytest.approx(0.5, abs=1e-3)
    assert sparsify(graph, "degree", keep_ratio=0.5, seed=0, connected=False)[0].components.count > 1000
