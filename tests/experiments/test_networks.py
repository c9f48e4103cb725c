"""The paper's competitors and its order-K GCNN: the contract of networks, and what each of them samples or learns."""

import json
import math
import subprocess
import sys
from pathlib import Path

import dense
import pytest
import torch
from torch.nn.functional import normalize, one_hot
from torch_geometric.nn import SAGEConv

from experiments.paper.networks.as_gcn import probabilities, spread
from experiments.paper.networks.fastgcn import column_norms
from experiments.paper.networks.gcnn import SignalGCNN
from experiments.paper.networks.ptdnet import GAMMA, ZETA, expected_open, hard_concrete, largest_singular_value
from experiments.paper.networks.sampling import Ranking, gcn_operator, importance
from tadropedge.lab import NETWORKS
from tadropedge.lab.networks.layers import inputs
from tadropedge.lab.networks.network import Sizes, Start
from tadropedge.lab.networks.noise import Noise
from tadropedge.lab.networks.sparse import Entries
from tadropedge.lab.networks.view import View
from tadropedge.testing.graphs import clusters, complete, karate, star
from tadropedge.testing.networks import NetworkContract

MANY = 4000  # trials that differ in their seed alone
F, C = 5, 3


class TestGraphSAGE(NetworkContract):
    network = "graphsage"
    settings = {"hidden": 9, "samples": 5}
    other = {"hidden": 8, "samples": 2}


class TestFastGCN(NetworkContract):
    network = "fastgcn"
    settings = {"samples": 20}
    other = {"hidden": 9, "samples": 30}


class TestASGCN(NetworkContract):
    network = "as-gcn"
    settings = {"hidden": 9, "samples": 20}
    other = {"hidden": 8, "samples": 30, "variance": 2.0}

    def test_every_setting_matters(self):
        """All but the weight of the variance change the logits; that one changes what is added to the loss."""
        added = []
        for variance in (0.5, 2.0):
            network = self.made([self.completed(variance=variance)], [0])
            added.append(network(inputs(torch.ones(60, 12)), self.view([0], None))[1])
        assert torch.allclose(4 * added[0], added[1])


class TestNeuralSparse(NetworkContract):
    network = "neuralsparse"
    settings = {"hidden": 9, "samples": 3}
    other = {"hidden": 8, "samples": 2}


class TestPTDNet(NetworkContract):
    network = "ptdnet"
    settings = {"hidden": 9}
    other = {"hidden": 8, "sparsity": 0.5, "nuclear": 0.5}

    def test_every_setting_matters(self):
        """Both weights change what is added to the loss."""
        added = []
        for told in ({}, {"sparsity": 0.5}, {"nuclear": 0.5}):
            network = self.made([self.completed(**told)], [0])
            added.append(network(inputs(torch.ones(60, 12)), self.view([0], None))[1].item())
        assert len(set(added)) == 3


class TestGCNN(NetworkContract):
    network = "gcnn"
    settings = {"order": 3}
    other = {"order": 2, "normalization": "random-walk"}


def normal(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def made(name, trials=1, seeds=None, **settings):
    kind = NETWORKS[name]
    settings = {"hidden": 4, **settings} if "hidden" in kind.settings else settings
    sizes = Sizes(num_features=F, num_classes=C, layers=2, hidden=4)
    return kind(sizes, [kind.completed(name, settings)] * trials, Start(seeds or [3] * trials))


def noise(trials=1, step=0):
    return Noise(torch.zeros(trials), torch.arange(trials), torch.tensor(step))


def training(graph, nodes=None, trials=1, kept=None, epoch=0):
    mask = torch.ones(trials, graph.num_nodes)
    if nodes is not None:
        mask = torch.zeros_like(mask).index_fill(1, torch.tensor(nodes), 1.0)
    return View(graph, kept, noise=noise(trials), nodes=mask, epoch=torch.tensor(epoch))


def to_dense(entries, values):
    n = entries.num_nodes
    return values.new_zeros(len(values), n * n).index_copy(1, entries.row * n + entries.col, values).view(-1, n, n)


def check_unbiased(estimates, truth):
    """The mean over the first axis is the truth, within five standard errors of each entry."""
    error = estimates.double().std(dim=0) / len(estimates) ** 0.5
    assert float(((estimates.double().mean(dim=0) - truth.double()).abs() - 5 * error).max()) < 1e-5


# -- importance sampling ---------------------------------------------------------------------------------------

Q = torch.tensor([0.0, 3.0, 1.0, 0.0, 2.0, 4.0, 0.0])


def test_importance_weights_count_the_draws_and_have_expectation_one():
    samples = torch.tensor([1, 5, 40])
    weights = importance(noise(3), Q.expand(3, -1), samples)
    counts = weights * Q / Q.sum() * samples[:, None]
    assert torch.allclose(counts, counts.round(), atol=1e-5)
    assert torch.equal(counts.sum(dim=1).round(), samples.float())
    many = importance(noise(MANY), Q.expand(MANY, -1), torch.full((MANY,), 3))
    check_unbiased(many, (Q > 0).float())
    assert torch.equal(importance(noise(3), Q.expand(3, -1), torch.tensor([3, 3, 10]))[:2], many[:2])


@pytest.mark.parametrize("name", ["fastgcn", "as-gcn"])
def test_one_draw_is_unbiased_exactly(name):
    """Σ_u q(u) · (estimate from u alone) is the whole propagation, on the rows of the training nodes."""
    graph, rows, y = karate(), [0, 2, 3], normal(1, 34, C)
    view = training(graph, rows)
    shift = gcn_operator(view, 1)
    q = column_norms(shift, view.nodes)
    if name == "as-gcn":
        scores = normal(1, 34, 2)
        q = probabilities(shift, scores, view.nodes)
        shift = made(name).attended(shift, view.entries(), scores)
    q = (q / q.sum())[0]
    total = sum(q[u] * (shift @ ((one_hot(u, 34) / q[u])[:, None] * y))[0] for u in q.nonzero()[:, 0])
    assert torch.allclose(total[rows], (shift @ y)[0][rows], atol=1e-5)


def test_fastgcn_draws_by_the_norms_of_the_columns_that_training_nodes_touch():
    shift = dense.shift(torch.tensor(dense.adjacency(karate())), "gcn")
    q = column_norms(gcn_operator(View(karate()), 1), torch.stack((torch.ones(34), torch.eye(34)[5])))
    assert torch.allclose(q[0].double(), shift.square().sum(0), atol=1e-6)
    assert torch.allclose(q[1].double(), shift.square().sum(0) * (shift[5] > 0), atol=1e-6)


@pytest.mark.parametrize("name", ["fastgcn", "as-gcn"])
def test_samplers_are_unbiased(name):
    """As AS-GCN samples both layers, its weights are made positive here: ReLU then does nothing."""
    graph, rows = clusters([15, 15], 0.4, 0.1), [1, 5, 20]
    x, network, alone = inputs(normal(30, F).abs()), made(name, MANY, samples=6), made(name)
    with torch.no_grad():
        for one in (network, alone):
            one.input.weight.abs_()
            if name == "as-gcn":
                one.sampler *= 0.3
    found = network(x, training(graph, rows, MANY))
    logits, penalty = found if name == "as-gcn" else (found, torch.zeros(1))
    check_unbiased(logits[:, rows].detach(), alone(x, View(graph))[0, rows].detach())
    assert float(penalty.detach().min()) >= 0


def test_the_variance_of_as_gcn_is_that_of_the_upper_estimate():
    """One layer alone: E[(1/n²) Σ (μ_j − μ̄)²] is (n − 1)/n of the variance of the mean estimate."""
    graph, rows, n = clusters([15, 15], 0.4, 0.1), [1, 5, 20], 6
    view = training(graph, rows, MANY)
    shift, (scores, y) = gcn_operator(view, MANY), (normal(1, 30, w, seed=w).expand(MANY, -1, -1) for w in (2, 3))
    q = probabilities(shift, scores, view.nodes)
    weights = importance(view.noise, q, torch.full((MANY,), n))
    attended = made("as-gcn", MANY).attended(shift, view.entries(), scores)
    estimate = (attended @ (weights[..., None] * y))[:, rows].mean(dim=1)
    said = spread(attended, q, weights, y, view.nodes) / n
    assert float(said.mean() / estimate.var(dim=0).mean()) == pytest.approx((n - 1) / n, rel=0.08)


# -- sampled neighbours ----------------------------------------------------------------------------------------


def means(graph, samples, trials, kept=None):
    view = training(graph, None, trials, kept)
    return to_dense(view.entries(), made("graphsage", trials, samples=samples).mean(view, 0).values)


@pytest.mark.parametrize("samples", [1, 2, 100])
def test_graphsage_means_over_at_most_so_many_distinct_neighbours(samples):
    A = torch.tensor(dense.adjacency(karate())) > 0
    found, count = means(karate(), samples, 4), A.sum(1).clamp_max(samples)
    assert not (found > 0)[:, ~A].any()
    assert torch.equal((found > 0).sum(2), count.expand(4, -1))
    assert torch.allclose(found.amax(2) * count, torch.ones(4, 34))
    kept = torch.rand(4, 36, generator=torch.Generator().manual_seed(0)) < 0.5
    left = torch.stack([dense.masked_adjacency(complete(9), one) > 0 for one in kept])
    chosen = means(complete(9), samples, 4, kept) > 0
    assert not (chosen & ~left).any()
    assert torch.equal(chosen.sum(2), left.sum(2).clamp_max(samples))


def test_graphsage_chooses_every_set_of_neighbours_equally_often():
    hub = means(star(12), 5, MANY)[:, 0, 1:] > 0
    for share, seen in ((5 / 12, hub.float()), (20 / 132, (hub[:, :1] & hub[:, 1:]).float())):
        assert float((seen.mean(0) - share).abs().max()) < 4.5 * (share * (1 - share) / MANY) ** 0.5


def test_layers_of_graphsage_are_those_of_pyg():
    graph, network = karate(), made("graphsage", samples=25)
    arcs, h = torch.cat((graph.pairs, graph.pairs.flip(0)), dim=1), normal(34, F)
    expected = h
    for layer in network.layers:
        pyg = SAGEConv(layer.weight.shape[1], 4, aggr="mean")
        with torch.no_grad():
            pyg.lin_l.weight.copy_(layer.weight[0].T)
            pyg.lin_l.bias.copy_(layer.bias[0])
            pyg.lin_r.weight.copy_(layer.self_weight[0].T)
        expected = normalize(pyg(expected, arcs).relu(), dim=-1)
    expected = expected @ network.output.weight[0] + network.output.bias[0]
    assert torch.allclose(network(inputs(h), View(graph))[0], expected, atol=1e-5)


def test_the_lowest_keys_of_each_row():
    entries = Entries.of(karate())
    keys = torch.randint(2**33, (3, entries.count), generator=torch.Generator().manual_seed(0))
    most = torch.tensor([1, 2, 4])
    chosen = Ranking(entries, 1).lowest(keys, most)
    assert not (chosen & ~entries.edge).any()
    for trial in range(3):
        for node in range(34):
            mine = ((entries.row == node) & entries.edge).nonzero()[:, 0]
            best = mine[keys[trial, mine].argsort()][: most[trial]]
            assert set(mine[chosen[trial, mine]].tolist()) == set(best.tolist())


# -- learned edges ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 3, 50])
def test_neuralsparse_keeps_the_k_likeliest_edges_of_a_node(k):
    graph, network, x = karate(), made("neuralsparse", 2, [0, 1], samples=k), inputs(normal(34, F))
    entries, A = Entries.of(graph), torch.tensor(dense.adjacency(graph)) > 0
    ends = torch.cat((x.features[entries.row], x.features[entries.col]), dim=1)
    parts = network.scores
    first = torch.cat(parts.weight.chunk(2, dim=2), dim=1)
    z = ((ends @ first + parts.bias[:, None]).relu() @ parts.out)[..., 0]
    for epoch, temperature in ((0, 1.0), (500, math.exp(-0.5)), (9000, 0.05)):
        for view in (View(graph, epoch=torch.tensor(epoch)), training(graph, trials=2, epoch=epoch)):
            gumbel = 0 if view.noise is None else -(-view.noise.uniform(entries.count).log()).log()
            logits = to_dense(entries, (z.detach() + gumbel) / temperature).masked_fill(~A, -torch.inf)
            soft = logits.softmax(2)
            top = torch.zeros_like(soft).scatter(2, soft.topk(min(k, 34)).indices, 1.0)
            y = to_dense(entries, network.sparsified(x, view))
            assert int((y > 0).sum(2).max()) <= k
            assert torch.allclose(y, soft * top, atol=1e-5)


LOG_ALPHA = torch.linspace(-6, 6, 25, dtype=torch.float64)


@pytest.mark.parametrize("temperature", [2.0, 0.5, 0.05])
def test_gates_are_open_as_often_as_the_l0_term_says(temperature):
    count, tau = 200_000, torch.tensor(temperature, dtype=torch.float64)
    uniform = ((torch.arange(count, dtype=torch.float64) + 0.5) / count)[:, None]
    gates = hard_concrete(LOG_ALPHA, tau, uniform)
    assert 0 == float(gates.min()) < float(gates.max()) == 1
    said = (LOG_ALPHA - tau * math.log(-GAMMA / ZETA)).sigmoid()
    assert torch.allclose((gates > 0).double().mean(0), said, atol=2 / count)
    entries = Entries.of(karate())
    row = normal(1, entries.count, dtype=torch.float64)
    edges = (row[0, entries.edge] - tau * math.log(-GAMMA / ZETA)).sigmoid()
    assert float(expected_open(entries, row, tau)) == pytest.approx(float(edges.mean()))


def test_the_largest_singular_value_and_its_gradient():
    entries = Entries.of(karate())
    gates = torch.rand(2, entries.count, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    gates = torch.where(entries.edge, gates, 0.0).requires_grad_()
    found, exact = (
        largest_singular_value(entries, gates, iterations=600),
        torch.linalg.svdvals(to_dense(entries, gates))[:, 0],
    )
    assert torch.allclose(found, exact, atol=1e-6)
    mine, theirs = (torch.autograd.grad(one.sum(), gates)[0] for one in (found, exact))
    assert torch.allclose(mine, theirs, atol=1e-4)
    few = largest_singular_value(entries, gates)
    assert bool(((few <= exact + 1e-6) & (few > 0.98 * exact)).all())
    none = torch.zeros(1, entries.count, requires_grad=True)
    assert bool(torch.autograd.grad(largest_singular_value(entries, none).sum(), none)[0].isfinite().all())


def test_ptdnet_is_a_gcn_on_its_gates():
    graph, network, x = karate(), made("ptdnet"), inputs(normal(34, F))
    entries, h = Entries.of(graph), x.features
    for linear, gate in zip(network.linear, network.gates(x, View(graph)), strict=True):
        G = to_dense(entries, gate)[0] + torch.eye(34)
        scale = G.sum(1).rsqrt()
        h = scale[:, None] * G * scale @ ((h if h is x.features else h.relu()) @ linear.weight[0]) + linear.bias[0]
    assert torch.allclose(network(x, View(graph))[0], h, atol=1e-5)


# -- filters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [0, 1, 4])
def test_filters_are_sums_of_powers(order):
    graph, settings = karate(), NETWORKS["gcnn"].completed("gcnn", {"order": order})
    sizes = Sizes(num_features=2, num_classes=C, layers=2, hidden=4)
    whole = SignalGCNN(sizes, [settings] * 3, Start([0, 1, 2]), num_nodes=34)
    node = NETWORKS["gcnn"](sizes, [settings] * 3, Start([0, 1, 2]))
    kept = torch.rand(3, 78, generator=torch.Generator().manual_seed(0)) < 0.6
    shared, apart = normal(6, 34, 2), normal(3, 6, 34, 2)
    for trial in range(3):
        S = dense.shift(dense.masked_adjacency(graph, kept[trial]), "gcn")

        def filtered(network, h, trial=trial, S=S):
            for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
                blocks = weight[trial].double().unflatten(0, (order + 1, -1))
                h = sum(torch.linalg.matrix_power(S, k) @ h @ block for k, block in enumerate(blocks)) + bias[trial]
                h = h.relu()
            return h

        for x in (shared, apart):
            h = filtered(whole, (x if x.dim() == 3 else x[trial]).double()).flatten(1)
            expected = h @ whole.weights[-1][trial].double() + whole.biases[-1][trial]
            assert torch.allclose(whole(x, View(graph, kept))[trial].double(), expected, atol=1e-4)
        expected = filtered(node, shared[0].double()) @ node.weights[-1][trial].double() + node.biases[-1][trial]
        assert torch.allclose(node(inputs(shared[0]), View(graph, kept))[trial].double(), expected, atol=1e-4)
    first, second = whole.taps()
    assert (first.shape, second.shape) == ((3, 4, 2, order + 1), (3, 4, 4, order + 1))
    assert torch.equal(first[1, 3, 1, order], whole.weights[0][1, 2 * order + 1, 3])


def test_a_plug_in_brings_the_competitors_into_compare(tmp_path):
    words = ("compare", "karate", "--plugin", "experiments.paper.networks", "--methods", "graphsage+dropedge,ptdnet")
    sizes = ("--trials", "1", "--replicates", "2", "--epochs", "3", "--json", "--out", str(tmp_path / "out"))
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "tadropedge", *words, *sizes]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=root)
    assert done.returncode == 0, done.stderr
    assert {"graphsage+dropedge", "ptdnet"} <= {row["candidate"] for row in json.loads(done.stdout)["rows"]}
