"""Your own module as a network: a hand-written loop, the arcs and weights it is given, and what is refused."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch_geometric.nn import GAT, GATConv, GCNConv

from tadropedge import Graph, TadropedgeError, sample_edges
from tadropedge.lab.networks.layers import inputs
from tadropedge.lab.networks.network import Sizes, Start
from tadropedge.lab.networks.noise import Noise
from tadropedge.lab.networks.own import OwnNetwork, own_network, random_numbers
from tadropedge.lab.networks.view import View
from tadropedge.lab.training.adam import Adam
from tadropedge.testing.graphs import clusters

GRAPH = clusters([20, 20], 0.3, 0.05)
N, F, C = 40, 6, 3
X = torch.randn(N, F, generator=torch.Generator().manual_seed(0))
SIZES = Sizes(num_features=F, num_classes=C, layers=3, hidden=16)
ARCS = torch.cat((GRAPH.pairs, GRAPH.pairs.flip(0)), dim=1)
CPU = torch.device("cpu")


class OwnGCN(nn.Module):
    """Two layers of PyG, with batch norm and dropout."""

    def __init__(self, num_features, num_classes, hidden=8, dropout=0.5):
        super().__init__()
        self.first, self.second = GCNConv(num_features, hidden, bias=False), GCNConv(hidden, num_classes)
        self.norm, self.drop = nn.BatchNorm1d(hidden), nn.Dropout(dropout)

    def forward(self, x, edge_index, edge_weight=None):
        h = self.drop(self.norm(self.first(x, edge_index, edge_weight)).relu())
        return self.second(h, edge_index, edge_weight)


class Seen(nn.Module):
    """What it is given is remembered."""

    def __init__(self, num_features, num_classes):
        super().__init__()
        self.linear, self.seen = nn.Linear(num_features, num_classes), []

    def forward(self, x, edge_index, edge_weight=None):
        self.seen.append((self.training, edge_index, edge_weight))
        return self.linear(x)


class Unweighted(nn.Module):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.layer = GATConv(num_features, num_classes)

    def forward(self, x, edge_index):
        return self.layer(x, edge_index)


def made(factory, seed=0, graph=GRAPH, **settings):
    kind = own_network(factory, SIZES, inputs(X), graph)
    return kind(SIZES, [kind.completed("mine", settings)], Start([seed]))


def step(kept=None, factor=None, epoch=0, graph=GRAPH):
    return View(graph, kept, factor, noise=Noise(torch.tensor([0.5]), torch.tensor([7]), torch.tensor(epoch)))


def test_a_training_equals_a_plain_loop():
    network, labels = made(OwnGCN, seed=7, dropout=0.0), torch.arange(N) % C
    with random_numbers(7, CPU):
        module = OwnGCN(F, C, dropout=0.0)
    for model, look in ((module, lambda: module(X, ARCS)), (network, lambda: network(inputs(X), step())[0])):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(5):
            optimizer.zero_grad()
            cross_entropy(look(), labels).backward()
            optimizer.step()
    assert torch.allclose(network(inputs(X), View(GRAPH))[0], module.eval()(X, ARCS), atol=1e-5)
    assert all(torch.allclose(network.stacked()[name][0], value) for name, value in module.state_dict().items())
    other = made(OwnGCN, seed=1)
    other.load_trial({name: value[0] for name, value in network.stacked().items()})
    assert torch.equal(other(inputs(X), View(GRAPH)), network(inputs(X), View(GRAPH)))
    other.take([0])
    assert torch.equal(other(inputs(X), View(GRAPH)), network(inputs(X), View(GRAPH)))


def test_starts_and_noise_are_pure_functions_of_seed_and_step():
    state = torch.get_rng_state()
    one, again, other = made(OwnGCN, seed=3), made(OwnGCN, seed=3), made(OwnGCN, seed=4)
    assert torch.equal(one.module.first.lin.weight, again.module.first.lin.weight)
    assert not torch.equal(one.module.first.lin.weight, other.module.first.lin.weight)
    first, second, third = (one(inputs(X), step(epoch=epoch)) for epoch in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, third)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_arcs_are_those_that_every_network_keeps():
    network = made(Seen)
    kept = sample_edges(torch.full((GRAPH.num_edges,), 0.5), seed=3)
    network.module.seen.clear()
    network(inputs(X), step(kept[None]))
    network(inputs(X), View(GRAPH))
    (training, arcs, weight), (evaluating, whole, _) = network.module.seen
    assert (training, evaluating, weight) == (True, False, None)
    pairs = GRAPH.pairs[:, kept]
    both = {(int(u), int(v)) for u, v in torch.cat((pairs, pairs.flip(0)), dim=1).T}
    assert [tuple(arc) for arc in arcs.T.tolist()] == sorted(both)
    assert whole.shape[1] == 2 * GRAPH.num_edges


def test_weights_of_the_graph_of_weighted_and_of_unbiased_dropping():
    weight = torch.linspace(1, 2, GRAPH.num_edges, dtype=torch.float64)
    graph = Graph.from_edge_index(GRAPH.pairs, N, weight)
    network, kept, factor = made(Seen, graph=graph), torch.arange(GRAPH.num_edges) % 3 == 0, weight.flip(0)
    network.module.seen.clear()
    for edges in ((None, None), (None, factor), (kept, factor)):
        network(inputs(X), step(*edges, graph=graph))
    table = torch.zeros(N, N, dtype=torch.float64)
    for (_, arcs, found), expected in zip(
        network.module.seen, (weight, weight * factor, weight * factor * kept), strict=True
    ):
        table[tuple(graph.pairs)] = expected
        assert found.dtype == torch.float32
        assert torch.allclose(found.double(), (table + table.T)[tuple(arcs)])
        assert arcs.shape[1] == 2 * int((expected > 0).sum())


def test_what_a_factory_and_its_module_take_is_seen():
    kinds = [
        own_network(factory, SIZES, inputs(X), GRAPH) for factory in (OwnGCN, Unweighted, partial(OwnGCN, hidden=4))
    ]
    assert [kind.takes for kind in kinds] == [
        ("dropout",),
        (),
        ("dropout",),
    ]  # what was not said is as it is by default
    said = own_network(OwnGCN, SIZES, inputs(X), GRAPH, ["hidden"])
    assert said.takes == ("hidden", "dropout")
    assert ["weights" in kind.supports for kind in kinds] == [True, False, True]
    assert ["dropout" in kind.space for kind in kinds] == [True, False, True]
    attention = own_network(lambda inputs, outputs: GAT(inputs, 8, 2, outputs), SIZES, inputs(X), GRAPH)
    assert attention.supports == ("dropping",)  # PyG's GAT takes weights in name only
    lazy = made(lambda num_features, num_classes, layers: GCNConv(-1, num_classes))
    assert (lazy(inputs(X.to_sparse_csr()), View(GRAPH)).shape, lazy.hops, lazy.recordable) == ((1, N, C), None, False)
    weighted = Graph.from_edge_index(GRAPH.pairs, N, torch.full((GRAPH.num_edges,), 2.0))
    with pytest.warns(UserWarning, match="takes no edge_weight"):
        own_network(Unweighted, SIZES, inputs(X), weighted)


def test_parameters_that_are_frozen_or_unused_are_left_alone():
    class Partly(Seen):
        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.unused, self.linear.bias.requires_grad = nn.Parameter(torch.ones(())), False

    network = made(Partly)
    assert [value.shape for value in network.parameters()] == [(), (C, F)]
    rate = torch.tensor([0.1])
    Adam(list(network.parameters()), rate, torch.zeros(1)).step([torch.ones(()), torch.zeros(C, F)])
    assert network.module.unused.item() == pytest.approx(0.9)
    assert set(network.stacked()) == {"unused", "linear.weight", "linear.bias"}


def wrong(**changes):
    """A factory of modules whose forward pass or parts are wrong."""

    def factory(num_features, num_classes):
        module = Seen(num_features, num_classes)
        for name, value in changes.items():
            setattr(module, name, value(module) if name == "forward" else value)
        return module

    return factory


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        (Seen(F, C), "pass a function that makes it"),
        (7, "must be a function"),
        (lambda num_features: None, "it cannot be called so"),
        (lambda *sizes: None, "must return an nn.Module"),
        (lambda *sizes: 1 / 0, "raised ZeroDivisionError"),
        (wrong(forward=lambda module: lambda x, arcs: 1 / 0), "raised ZeroDivisionError"),
        (wrong(forward=lambda module: lambda x, arcs: module.linear(x)[:-1]), r"\[40, 3\].*\[39, 3\]"),
        (wrong(forward=lambda module: lambda x, arcs: module.linear(x).argmax(1)), "must return logits"),
        (wrong(forward=lambda module: lambda x, arcs: torch.zeros(N, C)), "do not depend on its parameters"),
        (wrong(forward=lambda module: lambda x, arcs: module.linear(x) / 0), "finite logits"),
        (wrong(forward=lambda module: lambda x, arcs: module.linear(x * 0).sqrt()), "finite"),
        (wrong(linear=nn.Linear(F, C).double()), "must be float32"),
        (lambda *sizes: nn.Identity(), "no parameters"),
        (lambda inputs, outputs: GCNConv(inputs, outputs, cached=True), "cached=True"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_line(factory, words):
    with pytest.raises(TadropedgeError, match=words) as caught:
        made(factory)
    assert "\n" not in str(caught.value)
    assert issubclass(own_network(Seen, SIZES, inputs(X), GRAPH), OwnNetwork)
