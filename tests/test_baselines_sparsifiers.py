"""NeuralSparse and PTDNet: what they do on the entries of the pattern against dense formulas, and their gradients."""

from __future__ import annotations

import math

import dense
import pytest
import torch
from graphs import ZOO, clusters, star
from networks import make_network
from torch.autograd import gradcheck

from tadropedge.data.synthetic import load_clusters
from tadropedge.nn.draws import Draws
from tadropedge.nn.entries import Entries, Ranking
from tadropedge.nn.network import TrainingStep
from tadropedge.nn.ptdnet import GAMMA, ZETA, expected_open, hard_concrete, singular_values
from tadropedge.training.batch import Batch, Course
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.laboratory import make_task

pytestmark = pytest.mark.usefixtures("one_thread")
CPU = torch.device("cpu")
EPOCH = torch.tensor(0)


def normal(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def double(*shape, seed=0):
    return normal(*shape, seed=seed, dtype=torch.float64)


def to_dense(entries, values):
    n = entries.num_nodes
    return values.new_zeros(len(values), n * n).index_copy(1, entries.row * n + entries.col, values).view(-1, n, n)


def x_of(graph):
    return normal(1, graph.num_nodes, 5)


def network(name, graph, trials=1, **settings):
    return make_network(name, features=5, classes=3, graph=graph, trials=trials, **{"hidden": 4, **settings})


def step_of(graph, seeds, step=0):
    draws = Draws(torch.tensor(seeds), torch.tensor(step))
    nodes = torch.ones(len(seeds), graph.num_nodes)
    return TrainingStep(x=x_of(graph), nodes=nodes, keeps=[None], draws=draws, noise=lambda h, layer: h, epoch=EPOCH)


# -- values on the entries of the pattern ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["karate", "parts", "star"])
def test_entries_against_dense_formulas(name):
    graph = ZOO[name]
    entries, n = Entries(graph), graph.num_nodes
    values, x = double(2, entries.count), double(2, n, 3)
    A = torch.tensor(dense.adjacency(graph)) > 0
    V = to_dense(entries, values)
    assert torch.equal(entries.at_rows(x), x[:, entries.row])
    assert torch.equal(entries.at_cols(x), x[:, entries.col])
    assert torch.allclose(entries.row_sums(values), V.sum(2))
    soft = V.masked_fill(~A, -torch.inf).softmax(2).nan_to_num(0)
    assert torch.allclose(to_dense(entries, entries.row_softmax(values)), soft)
    loops = V.abs() * A + torch.eye(n)
    scale = loops.sum(2).rsqrt()
    expected = scale[:, :, None] * loops * scale[:, None, :]
    assert torch.allclose(to_dense(entries, entries.normalized(values.abs()).values), expected)
    keep = torch.rand(2, graph.num_edges, generator=torch.Generator().manual_seed(1)) < 0.5
    kept = torch.stack([dense.masked_adjacency(graph, one) > 0 for one in keep])
    assert torch.equal(to_dense(entries, entries.spread(keep)), kept)


def test_gradients_on_the_entries():
    entries = Entries(ZOO["parts"])
    values, x = double(2, entries.count).requires_grad_(), double(2, entries.num_nodes, 2).requires_grad_()
    assert gradcheck(entries.at_rows, x)
    assert gradcheck(entries.at_cols, x)
    assert gradcheck(entries.row_sums, values)
    assert gradcheck(entries.row_softmax, values)
    assert gradcheck(lambda v: entries.normalized(v.square()).values, values)


@pytest.mark.parametrize("name", ["karate", "parts", "complete"])
def test_the_lowest_keys_of_each_row(name):
    entries = Entries(ZOO[name])
    keys = torch.randint(2**33, (3, entries.count), generator=torch.Generator().manual_seed(0))
    most = torch.tensor([1, 2, 4])
    chosen = Ranking(entries, 1).lowest(keys, most)
    for trial in range(3):
        for node in range(entries.num_nodes):
            mine = torch.nonzero((entries.row == node) & entries.edge)[:, 0]
            best = mine[keys[trial, mine].argsort()][: most[trial]]
            assert set(mine[chosen[trial, mine]].tolist()) == set(best.tolist())
    assert not (chosen & ~entries.edge).any()


# -- NeuralSparse -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["karate", "parts", "clusters"])
@pytest.mark.parametrize("k", [1, 3, 50])
def test_neuralsparse_keeps_the_k_likeliest_edges_of_a_node(name, k):
    graph = ZOO[name]
    mine = network("neuralsparse", graph, trials=2, samples=k)
    parameters, entries = mine.initial([0, 1], CPU), mine.problem.entries
    noise = normal(2, entries.count, seed=2)
    for epoch, temperature in ((0, 1.0), (500, math.exp(-0.5)), (9000, 0.05)):
        for added in (None, noise):
            y = to_dense(entries, mine.sparsified(parameters, x_of(graph), torch.tensor(epoch), added))
            assert int((y > 0).sum(2).max()) <= k
            # The same in dense words: softmax over neighbours, log π plus noise, softmax again, the k largest.
            A = torch.tensor(dense.adjacency(graph)) > 0
            z = to_dense(entries, mine._scores(parameters, x_of(graph))).masked_fill(~A, -torch.inf)
            g = 0 if added is None else to_dense(entries, added)
            soft = ((z.log_softmax(2) + g) / temperature).softmax(2).nan_to_num(0)
            top = torch.zeros_like(soft).scatter(2, soft.topk(min(k, len(A))).indices, 1.0)
            assert torch.allclose(y, soft * top, atol=1e-5)


def test_neuralsparse_scores_are_an_mlp_of_both_ends():
    graph = ZOO["karate"]
    mine = network("neuralsparse", graph, samples=3)
    parameters, entries = mine.initial([4], CPU), mine.problem.entries
    x = x_of(graph)[0]
    ends = torch.cat((x[entries.row], x[entries.col]), dim=1)
    first = torch.cat(parameters["edge.weight"][0].chunk(2, dim=1))
    expected = (ends @ first + parameters["edge.bias"][0]).relu() @ parameters["edge.out"][0]
    assert torch.allclose(mine._scores(parameters, x_of(graph))[0], expected[:, 0], atol=1e-5)


def test_neuralsparse_draws_edges_with_their_probabilities():
    """With k = 1 the kept edge is a draw from π: the Gumbel-max identity."""
    many, graph = 6000, star(6)
    mine = network("neuralsparse", graph, trials=many, samples=1)
    start = mine.initial([1], CPU)
    start["edge.out"] *= 2
    parameters = {name: value.expand(many, *value.shape[1:]).contiguous() for name, value in start.items()}
    seen = []
    mine._logits = lambda parameters, x, y, noise: seen.append(y) or y
    mine.training(parameters, step_of(graph, list(range(many))))
    hub = to_dense(mine.problem.entries, seen[0])[:, 0, 1:] > 0
    pi = to_dense(mine.problem.entries, mine.problem.entries.row_softmax(mine._scores(start, x_of(graph))))[0, 0, 1:]
    assert torch.equal(hub.sum(1), torch.ones(many, dtype=torch.int64))
    assert float(pi.max() - pi.min()) > 0.05  # unequal enough to tell
    assert bool(((hub.float().mean(0) - pi).abs() < 4.5 * (pi * (1 - pi) / many).sqrt()).all())


def test_evaluation_is_without_noise():
    for name, settings in (("neuralsparse", {"samples": 2}), ("ptdnet", {"sparsity": 0.1, "nuclear": 0.1})):
        graph = ZOO["karate"]
        mine = network(name, graph, **settings)
        parameters = mine.initial([0], CPU)
        first, again, other = (mine.training(parameters, step_of(graph, [0], step))[0] for step in (0, 0, 1))
        quiet = mine.evaluation(parameters, x_of(graph), EPOCH)
        assert not torch.allclose(quiet, first)
        assert not torch.allclose(quiet, other)
        assert torch.equal(first, again)
        assert not torch.allclose(first, other)


# -- PTDNet -----------------------------------------------------------------------------------------------------

LOG_ALPHA = torch.linspace(-6, 6, 25, dtype=torch.float64)


@pytest.mark.parametrize("temperature", [2.0, 0.5, 0.05])
def test_gates_are_open_as_often_as_the_l0_term_says(temperature):
    count = 200_000
    uniform = ((torch.arange(count, dtype=torch.float64) + 0.5) / count)[:, None]
    tau = torch.tensor(temperature, dtype=torch.float64)
    gates = hard_concrete(LOG_ALPHA, tau, uniform)
    assert 0 == float(gates.min()) < float(gates.max()) == 1
    said = (LOG_ALPHA - tau * math.log(-GAMMA / ZETA)).sigmoid()
    assert torch.allclose((gates > 0).double().mean(0), said, atol=2 / count)
    entries = Entries(ZOO["karate"])
    row = normal(1, entries.count, dtype=torch.float64)
    edges = (row[0, entries.edge] - tau * math.log(-GAMMA / ZETA)).sigmoid()
    assert float(expected_open(entries, row, tau)) == pytest.approx(float(edges.mean()))


def test_gradients_of_the_gates_and_of_the_l0_term():
    uniform = torch.rand(25, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    tau = torch.tensor(0.7, dtype=torch.float64)
    log_alpha = LOG_ALPHA.clone().requires_grad_()
    assert gradcheck(lambda a: hard_concrete(a, tau, uniform), log_alpha)
    assert gradcheck(hard_concrete, log_alpha)
    entries = Entries(ZOO["parts"])
    row = double(2, entries.count).requires_grad_()
    assert gradcheck(lambda a: expected_open(entries, a, tau), row)
    (gradient,) = torch.autograd.grad(expected_open(entries, row, tau).sum(), row)
    assert float(gradient[:, entries.edge].min()) > 0  # closing any gate lowers it
    assert float(gradient[:, ~entries.edge].abs().max()) == 0


@pytest.mark.parametrize("name", ["karate", "clusters", "weighted"])
@pytest.mark.parametrize("count", [1, 3])
def test_singular_values_and_their_gradients(name, count):
    entries = Entries(ZOO[name])
    gates = torch.rand(2, entries.count, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    gates = torch.where(entries.edge, gates, 0.0).requires_grad_()
    ours = singular_values(entries, gates, count, iterations=600)
    exact = torch.linalg.svdvals(to_dense(entries, gates))[:, :count]
    assert torch.allclose(ours, exact, atol=1e-6)
    (mine,) = torch.autograd.grad(ours.sum(), gates)
    (theirs,) = torch.autograd.grad(exact.sum(), gates)
    assert torch.allclose(mine, theirs, atol=1e-4)
    few = singular_values(entries, gates, 1)[:, 0]
    assert bool((few <= exact[:, 0] + 1e-6).all())
    assert torch.allclose(few, exact[:, 0], rtol=0.02)


def test_the_nuclear_term_by_finite_differences():
    entries = Entries(clusters([6, 6], 0.6, 0.2))
    random = torch.rand(1, entries.count, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    gates = torch.where(entries.edge, random * 0.5 + 0.25, 0.0)

    def value(moved):
        return float(singular_values(entries, moved, 2, iterations=1000).sum())

    gates.requires_grad_()
    (gradient,) = torch.autograd.grad(singular_values(entries, gates, 2, iterations=1000).sum(), gates)
    for place in torch.nonzero(entries.edge)[:6, 0]:
        step = torch.zeros_like(gates)
        step[0, place] = 1e-5
        difference = (value(gates.detach() + step) - value(gates.detach() - step)) / 2e-5
        assert float(gradient[0, place]) == pytest.approx(difference, abs=1e-6)


def test_no_gates_at_all_have_no_singular_values():
    entries = Entries(ZOO["path"])
    gates = torch.zeros(1, entries.count, requires_grad=True)
    value = singular_values(entries, gates)
    (gradient,) = torch.autograd.grad(value.sum(), gates)
    assert float(value.detach()) < 1e-5
    assert bool(torch.isfinite(gradient).all())


@pytest.mark.parametrize("term", ["sparsity", "nuclear"])
def test_the_graph_thins_as_lambda_grows(term):
    dataset = load_clusters(clusters=3, nodes=30)
    grid = (0.0, 0.03, 0.3, 3.0) if term == "sparsity" else (0.0, 0.01, 0.1, 1.0)
    others = {"sparsity": 0.0, "nuclear": 0.0}
    trials = [Trial.of("ptdnet", dropout=0.0, hidden=8, **{**others, term: weight}) for weight in grid]
    epochs = 100
    batch = Batch(make_task(dataset, [dataset.split]), Architecture(), trials, [0] * 4, Course(epochs=epochs))
    batch.run()
    edge = batch.network.problem.entries.edge
    gates = [gate[:, edge] for gate in batch.network.gates(batch.state, batch.looking.x)]
    mean_gate = torch.stack([gate.mean(1) for gate in gates]).mean(0).detach()
    assert mean_gate.tolist() == sorted(mean_gate.tolist(), reverse=True)
    assert float(mean_gate[-1]) < 0.25 * float(mean_gate[0])
    closed = torch.stack([(gate == 0).float().mean(1) for gate in gates]).mean(0)
    assert float(closed[0]) < 0.8 < 0.95 < float(closed[-1])
