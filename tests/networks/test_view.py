"""What a network sees: operators, entries and noise, against plain loops and dense matrices."""

import dense
import pytest
import torch

from tadropedge import Graph, shift_operator
from tadropedge.lab.networks.layers import Inputs, inputs
from tadropedge.lab.networks.noise import Noise
from tadropedge.lab.networks.sparse import Dense, Entries, Sparse
from tadropedge.lab.networks.view import DENSE_NODES, View
from tadropedge.operators.kernels import kernels
from tadropedge.operators.kernels.words import GOLDEN, MASK, mix
from tadropedge.testing.graphs import clusters, karate, path

NAMES = ("gcn", "random-walk", "gcn")


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def kinds(graph):
    """What a view is given, and what each edge then weighs before and is multiplied by after normalisation."""
    kept, weights = normal(3, graph.num_edges) < 0.3, normal(3, graph.num_edges, seed=1).sigmoid().double()
    ones = torch.ones(3, graph.num_edges, dtype=torch.float64)
    return {
        "whole": ((None, None), ones, ones),
        "kept": ((kept, None), kept.double(), ones),
        "weighted": ((None, weights), weights, ones),
        "weights of all": ((None, weights[0]), weights[:1].expand(3, -1), ones),
        "unbiased": ((kept, 1 / weights), ones, kept / weights),
    }


@pytest.mark.parametrize("graph", [karate(), clusters([50, 50, 50], 0.1, 0.01)], ids=["dense", "sparse"])
@pytest.mark.parametrize("kind", kinds(karate()))
def test_operators_against_dense_matrices(graph, kind):
    edges, before, after = kinds(graph)[kind]
    view, x = View(graph, *edges), normal(3, graph.num_nodes, 4)
    shift = view.shift(NAMES)
    assert isinstance(shift, Dense) == (graph.num_nodes <= DENSE_NODES)
    low, high = graph.pairs
    for trial, name in enumerate(NAMES):
        S = dense.shift(dense.masked_adjacency(graph, before[trial]), name)
        S[low, high] *= after[trial]
        S[high, low] *= after[trial]
        assert torch.allclose((shift @ x)[trial].double(), S @ x[trial].double(), atol=1e-5)
    entries, worth = view.entries(), torch.zeros(3, graph.num_nodes, graph.num_nodes)
    for found, expected in ((view.entry_weights(), before), (view.entry_factors(), after)):
        worth[:, entries.row, entries.col] = 1.0 if found is None else found.expand(3, -1)
        assert torch.allclose(worth[:, low, high].double(), expected)
        assert torch.equal(worth, worth.mT)
        assert bool((worth.diagonal(dim1=1, dim2=2) == 1).all())


def test_views_of_the_same_edges_share_their_operators():
    graph = karate()
    whole = View(graph)
    step = whole.of(None, None, noise=Noise(torch.zeros(1), torch.tensor([1]), torch.tensor(0)))
    assert step.shift(["gcn"]) is whole.shift(["gcn"])
    assert (step.training, whole.training) == (True, False)
    other = whole.of(torch.ones(1, 78, dtype=torch.bool), None)
    assert other.shift(["gcn"]) is not whole.shift(["gcn"])
    assert other.entries() is whole.entries()


def test_weights_of_the_graph_count_before_normalisation():
    graph = Graph.from_edge_index([[0, 1], [1, 2]], edge_weight=[2.0, 3.0])
    kept = torch.tensor([[True, False]])
    expected = shift_operator(graph, kept).to_dense()
    assert torch.allclose(View(graph, kept).shift(["gcn"]) @ torch.eye(3), expected)


def test_entries_are_read_summed_and_normalised_in_rows():
    graph = clusters([20, 20], 0.3, 0.05)
    entries = Entries.of(graph)
    x = normal(2, 40, 3).requires_grad_()
    for read, ends in ((entries.at_rows, entries.row), (entries.at_cols, entries.col)):
        assert torch.equal(read(x), x[:, ends])
        probe = normal(2, entries.count, 3, seed=1)
        slopes = [torch.autograd.grad(one, x, probe)[0] for one in (read(x), x[:, ends])]
        assert torch.allclose(*slopes, atol=1e-5)
    scores = normal(2, entries.count, 2, seed=2)
    scores[0, entries.edge & (entries.row < 10)] = -torch.inf  # some rows see themselves alone
    scores.requires_grad_()
    matrix = torch.full((2, 2, 40, 40), -torch.inf).index_put(
        (torch.tensor([[[0]], [[1]]]), torch.tensor([[[0], [1]]]), entries.row, entries.col), scores.mT
    )
    exact = matrix.softmax(dim=-1)[:, :, entries.row, entries.col].mT
    soft, probe = entries.row_softmax(scores), normal(2, entries.count, 2, seed=3)
    assert torch.allclose(soft, exact, atol=1e-6)
    slopes = [torch.autograd.grad(one, scores, probe)[0] for one in (soft, exact)]
    assert torch.allclose(slopes[0], slopes[1].nan_to_num(), atol=1e-5)
    values = normal(2, entries.count, seed=4).exp()
    V = torch.zeros(2, 40, 40)
    V[:, entries.row, entries.col] = values
    V.diagonal(dim1=1, dim2=2).fill_(1.0)
    scale = V.sum(dim=2).rsqrt()
    assert torch.allclose(entries.row_sums(values), torch.zeros(2, 40).index_add(1, entries.row, values), atol=1e-4)
    made = entries.normalized(values)
    assert torch.allclose(made @ torch.eye(40), scale[:, :, None] * V * scale[:, None], atol=1e-5)
    assert torch.allclose(made.squared.values, made.values**2)
    assert torch.equal(made.scaled(torch.tensor([2.0, 3.0])).values[1], 3 * made.values[1])


# -- features ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("nodes", [7, 5000])
def test_products_of_features_and_their_gradients(layout, nodes):
    X = normal(nodes, 6).relu()
    x = inputs(X if layout == "dense" else X.to_sparse_csr())
    assert torch.equal(x.dense, X)
    weight, probe = normal(3, 6, 4, seed=1).requires_grad_(), normal(3, nodes, 4, seed=2)
    assert torch.allclose(x @ weight, X @ weight, atol=1e-5)
    slopes = [torch.autograd.grad(one, weight, probe)[0] for one in (x @ weight, X @ weight)]
    assert torch.allclose(*slopes, atol=1e-3)


def test_a_kept_product_is_never_older_than_its_weight(monkeypatch):
    X, made = normal(5, 4), []
    multiplied = Inputs._multiplied
    monkeypatch.setattr(Inputs, "_multiplied", lambda self, weight: made.append(1) or multiplied(self, weight))
    x, weight = inputs(X), torch.nn.Parameter(normal(2, 4, 3, seed=1))
    with torch.no_grad():
        first = x @ weight
    assert torch.equal(x @ weight, first)
    assert len(made) == 1
    with torch.no_grad():
        weight += 1
    assert torch.allclose(x @ weight, X @ weight)
    assert len(made) == 2
    other = torch.nn.Parameter(weight.detach().clone())
    assert torch.equal(x @ other, x @ weight)


# -- noise -------------------------------------------------------------------------------------------------

SEEDS, RATES = [0, 5, -9], [0.5, 0.0, 1.0]


def noise(rates=RATES, seeds=SEEDS, step=2):
    return Noise(torch.tensor(rates), torch.tensor(seeds), torch.tensor(step))


def coin(seed, step, layer, place):
    """The coin of an entry by Python's integers, signed."""
    state = (mix((seed + (1001 + layer) * GOLDEN) & MASK) + step * GOLDEN) & MASK
    state = mix(state)
    multiplier, offset = mix((state + GOLDEN) & MASK) | 1, mix((state + 2 * GOLDEN) & MASK)
    word = (mix((place + 1) * GOLDEN & MASK) * multiplier + offset) & MASK
    return word - 2**64 if word >= 2**63 else word


def test_dropout_is_a_function_of_seed_step_layer_and_place():
    h = normal(3, 4, 5).abs() + 1
    for layer in (0, 3):
        kept = noise().drop(h, layer)
        for trial, (seed, rate) in enumerate(zip(SEEDS, RATES, strict=True)):
            for place in range(20):
                there = rate < 1 and (rate == 0 or coin(seed, 2, layer, place) < (0.5 - rate) * 2**64)
                worth = h[trial].flatten()[place] / (1 - rate) if there else 0
                assert kept[trial].flatten()[place] == pytest.approx(worth)
    assert not torch.equal(noise().drop(h, 0), noise(step=3).drop(h, 0))


def test_dropout_of_many_blocks_and_of_named_rows():
    rates, seeds = [0.3, 0.6], [1, 2]
    h = torch.ones(2, 3000, 70)
    dropped = noise(rates, seeds).drop(h, 1)
    for trial, rate in enumerate(rates):
        assert float((dropped[trial] > 0).float().mean()) == pytest.approx(1 - rate, abs=0.005)
        assert float(dropped[trial].mean()) == pytest.approx(1, abs=0.02)
        alone = noise([rate], [seeds[trial]]).drop(h[:1], 1)
        assert torch.equal(alone[0], dropped[trial])
    names = torch.tensor([2999, 0, 77])
    assert torch.equal(noise(rates, seeds).of(names).drop(h[:, :3], 1), dropped[:, names])
    assert torch.equal(noise([0.3, 0.3], seeds).at(torch.tensor(rates)).drop(h, 1), dropped)


def test_the_end_of_a_layer_in_one_pass():
    h, bias = normal(3, 40, 6).requires_grad_(), normal(3, 6, seed=1).requires_grad_()
    probe = normal(3, 40, 6, seed=2)
    found = kernels(h).finish(h * 1, bias, True, noise().coins(4))
    expected = noise().drop((h + bias[:, None]).relu(), 4)
    assert torch.equal(found, expected)
    for mine, theirs in zip(*(torch.autograd.grad(one, (h, bias), probe) for one in (found, expected)), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-5)


def test_random_words_and_numbers():
    words = noise().words(1000, stream=3)
    assert len(words.unique()) == 3000
    assert torch.equal(words[1:2], noise(RATES[:1], SEEDS[1:2]).words(1000, stream=3))
    assert not (words == noise().words(1000, stream=4)).any()
    for dtype in (torch.float32, torch.float64):
        uniform = noise().uniform(1000, dtype=dtype)
        assert uniform.dtype == dtype
        assert bool(((uniform > 0) & (uniform < 1)).all())
        assert float(uniform.mean()) == pytest.approx(0.5, abs=0.03)


def test_a_sparse_matrix_of_fewer_rows_takes_the_first_rows_of_a_signal():
    entries = Entries.of(path(4))
    shift = Sparse(entries.places, torch.ones(1, entries.count))
    assert torch.equal(shift @ normal(1, 9, 2), shift @ normal(1, 9, 2)[:, :4])
