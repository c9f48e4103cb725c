"""Operators of the kept edges alone: against the dense formulas, and bit for bit against masks of the whole pattern."""

from __future__ import annotations

import dense
import numpy as np
import pytest
import torch
from graphs import ZOO, clusters, path, weighted

from tadropedge import Graph, TadropedgeError, sample_edges, shift_operator
from tadropedge import sampling as sampling_module
from tadropedge.compaction import compact_operator, compact_reweighted
from tadropedge.data.synthetic import load_clusters
from tadropedge.nn import operators as operators_module
from tadropedge.nn.operators import Operators
from tadropedge.pattern import Pattern
from tadropedge.sampling import pair_words
from tadropedge.shift import NORMALIZATIONS
from tadropedge.sparse import Csr
from tadropedge.training import noise as noise_module
from tadropedge.training.batch import Batch, Course
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.laboratory import Laboratory, make_task
from tadropedge.training.noise import Dropout

pytestmark = pytest.mark.usefixtures("one_thread")
F64 = torch.float64
LARGER = {"plain": clusters([60, 80], 0.3, 0.05), "weights": weighted(clusters([60, 80], 0.3, 0.05))}
NEVER, ALWAYS = ({"cpu": limit, "cuda": limit} for limit in (float("inf"), 0))


def normal(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def rates(graph, seed=0):
    """Keep probabilities, a few of them near 0."""
    return torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(seed), dtype=F64).clamp_min(0.01)


def some(graph, seed=0):
    return sample_edges(0.4 * rates(graph), seed=seed)


def masks(graph):
    """Some edges, none, one and all."""
    none = torch.zeros(graph.num_edges, dtype=torch.bool)
    one = none.clone()
    one[-1:] = True
    return [some(graph), none, one, ~none]


def product_and_gradient(shift, x):
    """S x, and the gradient of a random function of it."""
    x = x.clone().requires_grad_()
    out = shift @ x
    return out, torch.autograd.grad(out, x, normal(*out.shape, seed=1, dtype=out.dtype).to(out.device))[0]


# -- the pattern --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*ZOO, *LARGER])
def test_a_pattern_of_sorted_pairs_needs_no_sort(name, device):
    graph = (ZOO | LARGER)[name]
    for keep in masks(graph):
        pairs = graph.pairs[:, keep].to(device)
        mine, expected = Pattern.of_sorted(pairs, graph.num_nodes), Pattern.of(pairs, graph.num_nodes)
        for part in ("crow", "col", "source", "pair_source", "row"):
            assert getattr(mine, part).tolist() == getattr(expected, part).tolist(), part
        assert mine.crow.dtype == mine.col.dtype == torch.int32
        assert mine.entry[mine.source.long()].tolist() == list(range(mine.num_entries))


def test_a_graph_of_nothing_has_a_pattern():
    pattern = Pattern.of_sorted(torch.empty(2, 0, dtype=torch.int64), 0)
    assert (pattern.crow.tolist(), pattern.col.tolist()) == ([0], [])


@pytest.mark.parametrize("name", ZOO)
def test_a_symmetric_pattern_is_turned_without_a_sort(name):
    places = ZOO[name].pattern.places
    mine, order = places.turned
    other, expected = Csr(places.crow, places.col, places.num_cols).turned
    assert order.tolist() == expected.tolist()
    assert (mine.crow.tolist(), mine.col.tolist()) == (other.crow.tolist(), other.col.tolist())


# -- the operator -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_every_normalisation_against_the_dense_formula(name, device):
    for graph in ZOO.values():
        for keep in masks(graph):
            shift = compact_operator(graph.to(device), keep.to(device), normalization=name, dtype=F64)
            assert shift.pattern.num_entries == 2 * int(keep.sum()) + graph.num_nodes
            expected = dense.shift(dense.masked_adjacency(graph, keep), name)
            assert torch.allclose(shift.to_dense().cpu(), expected, atol=1e-10)


@pytest.mark.parametrize("kind", LARGER)
@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_products_and_gradients_have_the_bits_of_the_masked_operator(name, kind, device):
    if device.type == "cuda" and kind == "weights":
        pytest.skip("sums of weighted degrees have no fixed order on a GPU")
    graph = LARGER[kind].to(device)
    keep = some(graph.to("cpu")).to(device)
    x = normal(graph.num_nodes, 20).to(device)
    mine = product_and_gradient(compact_operator(graph, keep, normalization=name), x)
    masked = product_and_gradient(shift_operator(graph, keep, normalization=name), x)
    assert torch.equal(mine[0], masked[0])
    assert torch.equal(mine[1], masked[1])


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_unbiased_operators_have_the_bits_of_the_masked_ones(name, device):
    graph = LARGER["plain"].to(device)
    prob = rates(graph.to("cpu")).to(device)
    keep, x = sample_edges(prob, seed=2), normal(graph.num_nodes, 20).to(device)
    mine = compact_operator(graph, keep, normalization=name, unbiased=prob)
    assert mine.pattern.num_entries == 2 * int(keep.sum()) + graph.num_nodes
    masked = shift_operator(graph, keep, normalization=name, unbiased=prob)
    assert torch.equal(mine.to_dense(), masked.to_dense())
    for ours, theirs in zip(product_and_gradient(mine, x), product_and_gradient(masked, x), strict=True):
        assert torch.equal(ours, theirs)


def test_a_batch_of_one_is_reweighted_too():
    graph = LARGER["plain"]
    whole = shift_operator(graph, torch.ones(1, graph.num_edges, dtype=torch.bool))
    keep, factors = some(graph), 1 / rates(graph).float()
    alone = compact_reweighted(shift_operator(graph), keep, factors)
    assert torch.equal(compact_reweighted(whole, keep, factors).values, alone.values[None])


def test_bad_input_gets_one_line():
    graph, keep = path(5), torch.ones(4, dtype=torch.bool)
    cases = [
        ((graph, keep[:3]), {}, r"keep must be one bool mask \[4\] of edges, got torch.bool \[3\]"),
        ((graph, keep[None]), {}, r"keep must be one bool mask \[4\] of edges, got torch.bool \[1, 4\]"),
        ((graph, keep.float()), {}, r"keep must be one bool mask \[4\] of edges, got torch.float32 \[4\]"),
        ((graph, [True]), {}, "keep must be a tensor"),
        (("graph", keep), {}, "expected a tadropedge.Graph"),
        ((graph, keep), {"normalization": "gnc"}, "'gnc'.*gcn"),
        ((graph, keep), {"dtype": torch.int64}, "dtype must be a floating point type of torch"),
        ((graph, keep), {"unbiased": torch.ones(3)}, "unbiased must"),
        ((graph, keep), {"unbiased": torch.zeros(4)}, "unbiased needs keep probabilities above 0"),
    ]
    for arguments, settings, line in cases:
        with pytest.raises(TadropedgeError, match=line) as caught:
            compact_operator(*arguments, **settings)
        assert "\n" not in str(caught.value)


# -- the trainer --------------------------------------------------------------------------------------------

DATASET = load_clusters(clusters=3, nodes=60)
TRAININGS = {
    "gcn": (Trial("dropedge", keep_prob=0.2), Architecture(hidden=8), {}),
    "random walk": (Trial.of("cdf", keep_prob=0.3, normalization="random-walk"), Architecture(hidden=8), {}),
    "spectral": (Trial.of("dropedge", keep_prob=0.3, normalization="spectral"), Architecture(hidden=8), {}),
    "batch norm": (Trial.of("dropedge", keep_prob=0.2, batch_norm=True, self_weight=True), Architecture(hidden=8), {}),
    "incepgcn": (Trial("dropedge", keep_prob=0.2), Architecture("incepgcn", layers=4, hidden=8), {}),
    "per layer": (Trial("division", keep_prob=0.2), Architecture(layers=3, hidden=8), {"per_layer": True}),
    "unbiased": (Trial("dropedge:unbiased", keep_prob=0.3), Architecture(hidden=8), {}),
    "connected": (Trial("dropedge:connected", keep_prob=0.4), Architecture(hidden=8), {}),
    "nested": (Trial("dropedge:nested", keep_prob=0.2, keep_last=0.6), Architecture(layers=3, hidden=8), {}),
    "mini-batches": (Trial("dropedge", keep_prob=0.2, batch_size=20), Architecture(hidden=8), {}),
}


def trained(name, device, limits, monkeypatch):
    trial, architecture, settings = TRAININGS[name]
    monkeypatch.setattr(operators_module, "WORTH_COMPACTING", limits)
    lab = Laboratory(DATASET.to(device), architecture, epochs=5, **settings)
    (outcome,) = lab.train([trial], keep_state=True)
    return outcome


@pytest.mark.parametrize("recorded", [(), ("cpu", "cuda")], ids=["counted", "room"])
@pytest.mark.parametrize("name", TRAININGS)
def test_whole_trainings_have_the_bits_of_masked_ones(name, recorded, device, monkeypatch):
    if device.type == "cuda" and not recorded:
        pytest.skip("the count cannot be read while an epoch is recorded")
    monkeypatch.setattr(operators_module, "RECORDED", recorded)
    rooms = []

    def spy(graph, keep, capacity, **settings):
        rooms.append(capacity)
        return compact_operator(graph, keep, capacity=capacity, **settings)

    def spy_reweighted(whole, keep, factors, capacity):
        rooms.append(capacity)
        return compact_reweighted(whole, keep, factors, capacity)

    monkeypatch.setattr(operators_module, "compact_operator", spy)
    monkeypatch.setattr(operators_module, "compact_reweighted", spy_reweighted)
    masked = trained(name, device, NEVER, monkeypatch)
    assert not rooms
    compact = trained(name, device, ALWAYS, monkeypatch)
    assert rooms
    assert all((room is not None) == bool(recorded) for room in rooms)
    for curve in ("train_loss", "val_loss", "val_accuracy", "test_accuracy"):
        assert np.array_equal(getattr(compact, curve), getattr(masked, curve)), curve
    for key, value in masked.state.items():
        assert np.array_equal(compact.state[key], value), key


def test_one_training_compacts_where_products_are_spared_enough(monkeypatch):
    monkeypatch.setattr(operators_module, "WORTH_COMPACTING", {"cpu": 1000})
    graph = path(101)  # 100 edges: 200 entries that may be dropped
    alone, two = Operators(graph, ["gcn"]), Operators(graph, ["gcn", "gcn"])
    for shares, width, expected in (([0.5], 10, True), ([0.2, 0.8], 9, False), ([0.51], 10, False), ([1.0], 99, False)):
        alone.expect(shares, width)
        two.expect(shares, width)
        assert (alone.compact, two.compact, alone.capacity) == (expected, False, None)
    monkeypatch.setattr(operators_module, "RECORDED", ("cpu",))
    larger = Operators(clusters([150, 150], 0.3, 0.05), ["gcn"])
    larger.expect([0.1, 0.2], 10)
    mean = 0.2 * larger.graph.num_edges
    assert mean + 10 * mean**0.5 + 64 <= larger.capacity < larger.graph.num_edges
    alone.expect([0.9], 10)
    assert alone.capacity == 100


def test_a_batch_tells_its_network_what_it_keeps_on_average(monkeypatch):
    task = make_task(DATASET, [DATASET.split])
    told = []
    monkeypatch.setattr(Operators, "expect", lambda self, shares, width: told.append((shares, width)))
    nested = Trial("dropedge:nested", keep_prob=0.2, keep_last=0.6)
    for trial, layers in ((Trial("dropedge", keep_prob=0.25), 2), (Trial("original"), 2), (nested, 3)):
        Batch(task, Architecture(layers=layers, hidden=8), [trial], [0], Course(epochs=1))
    assert [width for _, width in told] == [8, 8, 8]
    for (shares, _), expected in zip(told, ([0.25], [1.0], [0.2, 0.4, 0.6]), strict=True):
        assert np.allclose(shares, expected)


# -- room for a number of edges that is known beforehand ----------------------------------------------------


@pytest.mark.parametrize("name", sorted(set(NORMALIZATIONS) - {"spectral"}))
def test_missing_edges_change_no_bit(name, device):
    graph = LARGER["plain"].to(device)
    prob, x = rates(graph.to("cpu")).to(device), normal(graph.num_nodes, 20).to(device)
    for keep in masks(graph.to("cpu")):
        for settings in ({}, {"unbiased": prob}):
            arguments = {"normalization": name, **settings}
            exact = compact_operator(graph, keep.to(device), **arguments)
            for capacity in (int(keep.sum()), int(keep.sum()) + 1, graph.num_edges + 7):
                roomy = compact_operator(graph, keep.to(device), **arguments, capacity=capacity)
                entries = exact.pattern.num_entries
                assert roomy.pattern.num_entries == 2 * capacity + graph.num_nodes
                assert torch.equal(roomy.pattern.crow, exact.pattern.crow)
                assert torch.equal(roomy.pattern.col[:entries], exact.pattern.col)
                assert torch.equal(roomy.values[:entries], exact.values)
                assert not roomy.values[entries:].any()
                for ours, theirs in zip(product_and_gradient(roomy, x), product_and_gradient(exact, x), strict=True):
                    assert torch.equal(ours, theirs)


def test_more_edges_than_there_is_room_for_are_never_cut_in_silence(device):
    graph = LARGER["plain"].to(device)
    keep = some(graph.to("cpu")).to(device)
    shift = compact_operator(graph, keep, capacity=int(keep.sum()) - 1)
    assert (shift @ torch.ones(graph.num_nodes, 1, device=device)).isnan().any()


# -- what does not fall with the edges: blocks that stay in the cache ----------------------------------------


@pytest.mark.parametrize("block", [1, 7, 100, 2**17])
def test_coins_tossed_in_blocks_are_the_same(block, monkeypatch):
    prob = torch.stack((rates(LARGER["plain"], 1), rates(LARGER["plain"], 2)))
    words, count = pair_words(prob.shape[1], torch.device("cpu")).tolist(), prob.shape[1]
    monkeypatch.setattr(sampling_module, "BLOCK", block)
    found = sample_edges(prob, seed=[3, 4], epoch=5)
    alone = sample_edges(prob[1], seed=4, epoch=5)
    assert torch.equal(found[1], alone)
    multiplier, offset = sampling_module.key(4, 5)
    for place in range(0, count, 13):  # Python's own integers
        coin = (words[place] * multiplier + offset) % 2**64
        coin -= 2**64 if coin >= 2**63 else 0
        assert bool(alone[place]) == (((coin >> 11) + 2**52) / 2**53 < float(prob[1, place]))


@pytest.mark.parametrize("block", [1, 64, 1000, 2**17])
def test_relu_and_dropout_in_blocks_are_those_of_torch(block, monkeypatch):
    trials, nodes, width = 3, 50, 6
    dropout = Dropout(torch.tensor([0.0, 0.5, 1.0]), torch.tensor([1, 2, 3]), torch.tensor(4))
    h, bias, slope = normal(trials, nodes, width), normal(trials, width, seed=1), normal(trials, nodes, width, seed=2)
    factors = dropout(torch.ones(trials, nodes, width), 1)  # in one block
    assert set(factors[1].unique().tolist()) == {0.0, 2.0}
    monkeypatch.setattr(noise_module, "BLOCK", block)
    assert torch.equal(dropout(torch.ones(trials, nodes, width), 1), factors)
    inputs = [h.clone().requires_grad_(), bias.clone().requires_grad_()]
    out = dropout.rectified(inputs[0] * 1, inputs[1], 1)
    plain = [h.clone().requires_grad_(), bias.clone().requires_grad_()]
    expected = (plain[0] + plain[1][:, None, :]).relu() * factors
    assert torch.equal(out, expected)
    for mine, other in zip(
        torch.autograd.grad(out, inputs, slope), torch.autograd.grad(expected, plain, slope), strict=True
    ):
        assert torch.equal(mine, other)


def test_one_bias_serves_many_subgraphs():
    dropout = Dropout(torch.zeros(3), torch.tensor([1, 2, 3]), torch.tensor(0))
    bias = torch.zeros(1, 4, requires_grad=True)
    out = dropout.rectified(torch.ones(3, 5, 4), bias, 0)
    assert torch.autograd.grad(out.sum(), bias)[0].tolist() == [[15.0] * 4]


def test_a_training_that_diverged_stays_nan():
    dropout = Dropout(torch.tensor([0.5]), torch.tensor([1]), torch.tensor(0))
    out = dropout.rectified(torch.full((1, 5, 4), float("nan")), torch.zeros(1, 4), 0)
    assert out.isnan().all()


def test_the_graph_may_have_no_edges():
    graph = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.int64), num_nodes=3)
    shift = compact_operator(graph, torch.empty(0, dtype=torch.bool))
    assert torch.equal(shift.to_dense(), torch.eye(3))
