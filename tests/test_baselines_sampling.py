"""What the baselines sample: random numbers, importance weights, neighbours. Estimates are unbiased, exactly where one
draw can be enumerated and within five standard errors where many are made."""

from __future__ import annotations

import dense
import pytest
import torch
from graphs import ZOO, clusters, complete, star
from networks import make_network
from torch.nn import functional
from torch_geometric.nn import SAGEConv

from tadropedge.nn.draws import Draws
from tadropedge.nn.entries import Entries, Ranking
from tadropedge.nn.fastgcn import column_norms
from tadropedge.nn.graphsage import mean_operator, sage_layer, sampled_mean
from tadropedge.nn.network import TrainingStep

pytestmark = pytest.mark.usefixtures("one_thread")
MANY = 6000  # trials that differ in their seed alone
EPOCH = torch.tensor(0)


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def draws(trials=1, step=0, first=0):
    return Draws(torch.arange(first, first + trials), torch.tensor(step))


def x_of(graph):
    return normal(1, graph.num_nodes, 5).abs()


def network_of(method, graph, trials=1, **settings):
    return make_network(method, features=5, classes=3, graph=graph, trials=trials, hidden=4, **settings)


def batch_of(nodes, graph, trials):
    mask = torch.zeros(trials, graph.num_nodes)
    mask[:, nodes] = 1
    return mask


def step_of(graph, nodes, draws):
    return TrainingStep(x=x_of(graph), nodes=nodes, keeps=[None], draws=draws, noise=lambda h, layer: h, epoch=EPOCH)


def expanded(parameters, trials):
    return {name: value.expand(trials, *value.shape[1:]).contiguous() for name, value in parameters.items()}


def unbiased(estimates, truth):
    """The mean over the first axis is the truth, within five standard errors of each entry."""
    error = estimates.double().std(dim=0) / len(estimates) ** 0.5
    assert float(((estimates.double().mean(dim=0) - truth.double()).abs() - 5 * error).max()) < 1e-5


# -- random numbers -----------------------------------------------------------------------------------------


def test_numbers_are_uniform_independent_and_strictly_inside():
    u = draws(200).uniform(300)
    assert 0 < float(u.min()) < float(u.max()) < 1
    assert float(draws().uniform(3, dtype=torch.float64).max()) < 1
    counts = torch.histc(u, 20, 0, 1)
    assert float(((counts - 3000).square() / 3000).sum()) < 45  # chi square with 19 degrees, 0.1 % is 43.8
    others = [draws(200, step=1).uniform(300), draws(200).uniform(300, stream=1), draws(200, first=1000).uniform(300)]
    for other in [*others, u.roll(1, 0), u.roll(1, 1)]:
        assert abs(float(torch.corrcoef(torch.stack((u.flatten(), other.flatten())))[0, 1])) < 5 / 60000**0.5


def test_numbers_of_a_trial_are_its_own():
    together = draws(5, step=7).uniform(40, stream=2)
    for seed in range(5):
        assert torch.equal(draws(1, step=7, first=seed).uniform(40, stream=2)[0], together[seed])
    assert torch.equal(draws(5, step=7).uniform(60, stream=2)[:, :40], together)


# -- importance weights -------------------------------------------------------------------------------------

Q = torch.tensor([0.0, 3.0, 1.0, 0.0, 2.0, 4.0, 0.0])


def test_importance_weights_count_the_draws():
    samples = torch.tensor([1, 5, 40])
    weights = draws(3).importance(Q.expand(3, -1), samples, 40)
    counts = weights * Q / Q.sum() * samples[:, None]
    assert torch.allclose(counts, counts.round(), atol=1e-5)
    assert torch.equal(counts.sum(dim=1).round(), samples.float())
    assert float(weights[:, Q == 0].abs().max()) == 0


def test_importance_weights_have_expectation_one_and_do_not_depend_on_others():
    weights = draws(MANY).importance(Q.expand(MANY, -1), torch.full((MANY,), 3), 3)
    unbiased(weights, (Q > 0).float())
    more = draws(MANY).importance(Q.expand(MANY, -1), torch.full((MANY,), 3), 10)
    assert torch.equal(weights, more)


@pytest.mark.parametrize("name", ["karate", "parts", "weighted", "star"])
@pytest.mark.parametrize("method", ["fastgcn", "as-gcn"])
def test_one_draw_is_unbiased_exactly(name, method):
    """Σ_u q(u) · (estimate from u alone) is the whole propagation, on the rows of the mini-batch."""
    graph = ZOO[name]
    nodes = batch_of([0, 2, 3], graph, 1)
    network, y = network_of(method, graph, samples=1), normal(1, graph.num_nodes, 3)
    shift = network.problem.shift(None)
    if method == "fastgcn":
        q = column_norms(shift, nodes)
    else:
        scores = normal(1, graph.num_nodes, 2)
        q = network.probabilities(shift, scores, nodes)
        shift = network.attended(shift, scores)
    q = (q / q.sum())[0]
    total = torch.zeros(graph.num_nodes, 3)
    for u in q.nonzero()[:, 0]:
        weights = functional.one_hot(u, graph.num_nodes) / q[u]
        total += q[u] * (shift @ (weights[:, None] * y))[0]
    inside = nodes[0] > 0
    assert torch.allclose(total[inside], (shift @ y)[0][inside], atol=1e-5)


def test_fastgcn_draws_by_the_norms_of_the_columns_that_the_batch_touches():
    graph = ZOO["karate"]
    shift = dense.shift(torch.tensor(dense.adjacency(graph)), "gcn")
    q = column_norms(network_of("fastgcn", graph).problem.shift(None), torch.stack((torch.ones(34), torch.eye(34)[5])))
    assert torch.allclose(q[0].double(), shift.square().sum(0), atol=1e-6)
    assert torch.allclose(q[1].double(), shift.square().sum(0) * (shift[5] > 0), atol=1e-6)


@pytest.mark.parametrize("samples", [1, 8])
def test_fastgcn_is_unbiased(samples):
    graph = clusters([15, 15], 0.4, 0.1)
    network = network_of("fastgcn", graph, MANY, samples=samples)
    parameters = expanded(network.initial([3], torch.device("cpu")), MANY)
    nodes = batch_of([1, 5, 20], graph, MANY)
    logits, penalty = network.training(parameters, step_of(graph, nodes, draws(MANY)))
    truth = network.evaluation({name: value[:1] for name, value in parameters.items()}, x_of(graph), EPOCH)[0]
    unbiased(logits[:, [1, 5, 20]], truth[[1, 5, 20]])
    assert penalty == 0


@pytest.mark.parametrize("samples", [2, 16])
def test_as_gcn_is_unbiased_through_both_layers(samples):
    """With positive weights ReLU does nothing, so the estimate from two sampled layers is unbiased as a whole."""
    graph = clusters([15, 15], 0.4, 0.1)
    network = network_of("as-gcn", graph, MANY, samples=samples, variance=0.5)
    start = network.initial([3], torch.device("cpu"))
    start["input.weight"].abs_()
    start["sampler.weight"] *= 0.3
    parameters, one = expanded(start, MANY), {name: value[:1] for name, value in start.items()}
    logits, penalty = network.training(parameters, step_of(graph, batch_of([1, 5, 20], graph, MANY), draws(MANY)))
    unbiased(logits[:, [1, 5, 20]], network.evaluation(one, x_of(graph), EPOCH)[0][[1, 5, 20]])
    assert float(penalty.min()) >= 0


def test_as_gcn_variance_is_that_of_the_upper_estimate():
    """One layer alone: E[(1/n²) Σ (μ_j − μ̄)²] is (n − 1)/n of the variance of the mean estimate."""
    graph, n = clusters([15, 15], 0.4, 0.1), 6
    network = network_of("as-gcn", graph, MANY, samples=n, variance=1.0)
    shift, nodes = network.problem.shift(None), batch_of([1, 5, 20], graph, MANY)
    scores, y = (normal(1, 30, width, seed=width).expand(MANY, -1, -1) for width in (2, 3))
    q = network.probabilities(shift, scores, nodes)
    weights = draws(MANY).importance(q, network.samples, n)
    attended = network.attended(shift, scores)
    estimate = (attended @ (weights[..., None] * y))[:, [1, 5, 20]].mean(dim=1)
    spread = network._spread(attended, q, weights, y, nodes) / n
    ratio = float(spread.mean() / estimate.var(dim=0).mean())
    assert ratio == pytest.approx((n - 1) / n, rel=0.06)


def test_as_gcn_learns_its_sampler_through_the_variance():
    graph = ZOO["karate"]
    network = network_of("as-gcn", graph, 1, samples=8, variance=1.0)
    parameters = {name: value.requires_grad_() for name, value in network.initial([0], torch.device("cpu")).items()}
    _, penalty = network.training(parameters, step_of(graph, batch_of([0, 33], graph, 1), draws()))
    (gradient,) = torch.autograd.grad(penalty.sum(), parameters["sampler.weight"])
    assert float(gradient.abs().sum()) > 0


# -- neighbours ---------------------------------------------------------------------------------------------


def neighbours(graph, samples, trials, keep=None, step=0):
    """The chosen entries, dense ``[T, N, N]``, and the means."""
    entries = Entries(graph)
    most = torch.full((trials,), samples)
    mean = sampled_mean(entries, Ranking(entries, samples), most, draws(trials, step), keep)
    places = torch.zeros(trials, graph.num_nodes**2)
    places[:, entries.row * graph.num_nodes + entries.col] = mean.values
    return places.view(trials, graph.num_nodes, graph.num_nodes)


@pytest.mark.parametrize("name", list(ZOO))
@pytest.mark.parametrize("samples", [1, 2, 100])
def test_graphsage_means_over_at_most_so_many_distinct_neighbours(name, samples):
    graph = ZOO[name]
    A = torch.tensor(dense.adjacency(graph)) > 0
    means = neighbours(graph, samples, 4)
    count = A.sum(1).clamp_max(samples)
    assert not (means > 0)[:, ~A].any()
    assert torch.equal((means > 0).sum(2), count.expand(4, -1))
    assert torch.allclose(means.sum(2), (count > 0).float().expand(4, -1))
    assert torch.allclose(means.amax(2) * count, (count > 0).float().expand(4, -1))


def test_graphsage_chooses_every_set_of_neighbours_equally_often():
    hub = neighbours(star(12), 5, MANY)[:, 0, 1:] > 0
    share, pairs = 5 / 12, 5 * 4 / (12 * 11)
    assert float((hub.float().mean(0) - share).abs().max()) < 4.5 * (share * (1 - share) / MANY) ** 0.5
    both = (hub[:, :, None] & hub[:, None, :]).float().mean(0)
    both = both[~torch.eye(12, dtype=torch.bool)]
    assert float((both - pairs).abs().max()) < 5 * (pairs * (1 - pairs) / MANY) ** 0.5
    other = neighbours(star(12), 5, MANY, step=1)[:, 0, 1:] > 0
    same = (hub & other).sum(1).float()  # hypergeometric with mean 25/12
    assert abs(float(same.mean()) - 25 / 12) < 5 * float(same.std()) / MANY**0.5


def test_graphsage_samples_from_the_edges_that_are_kept():
    graph = complete(9)
    keep = torch.rand(50, graph.num_edges, generator=torch.Generator().manual_seed(0)) < 0.5
    chosen = neighbours(graph, 3, 50, keep) > 0
    low, high = graph.pairs
    A = torch.zeros(50, 9, 9, dtype=torch.bool)
    A[:, low, high] = A[:, high, low] = keep
    assert not (chosen & ~A).any()
    assert torch.equal(chosen.sum(2), A.sum(2).clamp_max(3))


@pytest.mark.parametrize("name", ["karate", "parts"])
def test_graphsage_layers_are_those_of_pytorch_geometric(name):
    graph = ZOO[name]
    n, x = graph.num_nodes, normal(3, graph.num_nodes, 6)
    convolutions = [SAGEConv(6, 4, aggr="mean") for _ in range(3)]
    parameters = {
        "sage1.weight": torch.stack([each.lin_l.weight.T for each in convolutions]),
        "sage1.bias": torch.stack([each.lin_l.bias for each in convolutions]),
        "sage1.self_weight": torch.stack([each.lin_r.weight.T for each in convolutions]),
    }
    entries = Entries(graph)
    ours = sage_layer(parameters, "sage1", x, mean_operator(entries, entries.edge[None]))
    edge_index = torch.cat((graph.pairs, graph.pairs.flip(0)), dim=1)
    for trial, convolution in enumerate(convolutions):
        theirs = functional.normalize(convolution(x[trial], edge_index).relu(), dim=-1)
        assert ours.shape == (3, n, 4)
        assert torch.allclose(ours[trial], theirs, atol=1e-6)


def test_graphsage_takes_two_fifths_in_the_second_layer():
    network = network_of("graphsage", star(3), 4, samples=[25, 10, 5, 1])
    assert [most.tolist() for most in network.samples] == [[25, 10, 5, 1], [10, 4, 2, 1]]
