"""Backbones against plain implementations with the same weights: PyTorch Geometric's GCNConv, or dense matrices."""

from __future__ import annotations

import math

import dense
import pytest
import torch
from graphs import ZOO
from networks import make_network
from torch import nn
from torch_geometric.nn import GCNConv

from tadropedge import sample_edges, shift_operator
from tadropedge.errors import TadropedgeError
from tadropedge.nn.filters import filter_taps
from tadropedge.nn.layers import Sparse
from tadropedge.sparse import Csr

pytestmark = pytest.mark.usefixtures("one_thread")
CPU = torch.device("cpu")
GRAPH = ZOO["karate"]
FEATURES, HIDDEN, CLASSES = 7, 5, 3
SEEDS = [3, 1, 4]
NETWORKS = [
    ("gcn", 1),
    ("gcn", 2),
    ("gcn", 3),
    ("gcn", 4),
    ("jknet", 3),
    ("jknet", 4),
    ("incepgcn", 3),
    ("incepgcn", 4),
]
SIZES = {"features": FEATURES, "hidden": HIDDEN, "classes": CLASSES}
OPTIONS = [(False, False), (True, False), (False, True), (True, True)]  # self weight, batch norm


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


X = normal(1, GRAPH.num_nodes, FEATURES)


def no_noise(h, layer):
    """Training mode without dropout."""
    return h


def draws(count):
    """One dense operator ``[T, N, N]`` for each layer, all different."""
    prob = torch.full((GRAPH.num_edges,), 0.6, dtype=torch.float64)
    return [shift_operator(GRAPH, sample_edges(prob, SEEDS, epoch)).to_dense() for epoch in range(count)]


def as_sparse(shift):
    return Sparse(GRAPH.pattern.places, shift.values, shift.symmetric)


class Layer(nn.Module):
    """A convolution as PyTorch Geometric has it, then a linear map of x itself and torch's batch norm."""

    def __init__(self, inputs, outputs, self_weight, batch_norm):
        super().__init__()
        self.conv = GCNConv(inputs, outputs, normalize=False)
        self.own = nn.Linear(inputs, outputs, bias=False) if self_weight else None
        self.norm = nn.BatchNorm1d(outputs) if batch_norm else nn.Identity()

    @torch.no_grad()
    def load(self, parameters, name, trial):
        self.conv.lin.weight.copy_(parameters[f"{name}.weight"][trial].T)
        self.conv.bias.copy_(parameters[f"{name}.bias"][trial])
        if self.own is not None:
            self.own.weight.copy_(parameters[f"{name}.self_weight"][trial].T)
        if f"{name}.scale" in parameters:
            self.norm.weight.copy_(parameters[f"{name}.scale"][trial])
            self.norm.bias.copy_(parameters[f"{name}.shift"][trial])

    def forward(self, x, shift):
        row, col = shift.nonzero().T
        h = self.conv(x, torch.stack((col, row)), shift[row, col])  # messages run from column to row
        return self.norm(h if self.own is None else h + self.own(x))


class Plain(nn.Module):
    """One trial's network, joined as REPRODUCTION.md says, layer by layer."""

    def __init__(self, kind, layers, self_weight, batch_norm):
        super().__init__()
        self.kind, self.depth = kind, layers

        def layer(inputs, outputs):
            return Layer(inputs, outputs, self_weight, batch_norm)

        self.first = layer(FEATURES, HIDDEN if layers > 1 else CLASSES)
        self.last = layer(HIDDEN * (1 if kind == "gcn" else layers - 1), CLASSES) if layers > 1 else None
        lengths = range(1, layers - 1) if kind == "incepgcn" else [max(layers - 2, 0)]
        self.chains = nn.ModuleList(nn.ModuleList(layer(HIDDEN, HIDDEN) for _ in range(n)) for n in lengths)

    def named(self):
        """Layers in order, with the names our parameters have."""
        if self.last is None:
            return [("output", self.first)]
        front = "branch{}.{}" if self.kind == "incepgcn" else "hidden{1}"
        middle = [
            (front.format(b, place), layer)
            for b, chain in enumerate(self.chains, 1)
            for place, layer in enumerate(chain, 1)
        ]
        return [("input", self.first), *middle, ("output", self.last)]

    def load(self, parameters, trial):
        for name, layer in self.named():
            layer.load(parameters, name, trial)
        return self

    def forward(self, x, shifts):
        rest = iter(shifts)
        h0 = self.first(x, next(rest))
        if self.last is None:
            return h0
        h0 = h0.relu()
        seen = [h0]
        for chain in self.chains:
            h = h0
            for place, layer in enumerate(chain, 1):
                h = layer(h, next(rest)).relu()
                if self.kind == "jknet" or place == len(chain):
                    seen.append(h)
        return self.last(seen[-1] if self.kind == "gcn" else torch.cat(seen, dim=-1), next(rest))


def scrambled(network, seeds=SEEDS):
    """Initial parameters with batch norm no longer the identity."""
    parameters = network.initial(seeds, CPU)
    for place, (name, value) in enumerate(parameters.items()):
        if name.endswith((".scale", ".shift")):
            value += 0.5 * normal(*value.shape, seed=place)
    return parameters


@pytest.mark.parametrize(("self_weight", "batch_norm"), OPTIONS)
@pytest.mark.parametrize(("kind", "layers"), NETWORKS)
def test_equal_to_pytorch_geometric_in_training_and_in_evaluation(kind, layers, self_weight, batch_norm):
    network = make_network(kind, layers, **SIZES, self_weight=self_weight, batch_norm=batch_norm)
    parameters, running = scrambled(network), network.running(len(SEEDS), CPU)
    plain = [Plain(kind, layers, self_weight, batch_norm).load(parameters, trial) for trial in range(len(SEEDS))]
    assert [name for name, _ in plain[0].named()] == [layer.name for layer in network.layers]
    for step in range(3):  # several steps: running statistics move
        shifts, x = draws(network.draws), X + step
        logits = network.logits(parameters | running, x, shifts, no_noise)
        assert logits.shape == (len(SEEDS), GRAPH.num_nodes, CLASSES)
        for trial, other in enumerate(plain):
            expected = other(x[0], [shift[trial] for shift in shifts])
            assert torch.allclose(logits[trial], expected, atol=1e-5)
    whole = shift_operator(GRAPH).to_dense()[None]
    logits = network.logits(parameters | running, X, [whole])
    for trial, other in enumerate(plain):
        expected = other.eval()(X[0], [whole[0]] * network.draws)
        assert torch.allclose(logits[trial], expected, atol=1e-5)
        for name, layer in other.named() if batch_norm else ():
            assert torch.allclose(running[f"{name}.mean"][trial, 0], layer.norm.running_mean, atol=1e-6)
            assert torch.allclose(running[f"{name}.variance"][trial, 0], layer.norm.running_var, atol=1e-6)


@pytest.mark.parametrize(("self_weight", "batch_norm"), OPTIONS)
@pytest.mark.parametrize(("kind", "layers"), [("gcn", 2), ("jknet", 4), ("incepgcn", 4)])
def test_gradients_equal_to_pytorch_geometric(kind, layers, self_weight, batch_norm):
    network = make_network(kind, layers, **SIZES, self_weight=self_weight, batch_norm=batch_norm)
    parameters, running = scrambled(network), network.running(len(SEEDS), CPU)
    for value in parameters.values():
        value.requires_grad_()
    shifts, probe = draws(1), normal(len(SEEDS), GRAPH.num_nodes, CLASSES, seed=8)
    (network.logits(parameters | running, X, shifts, no_noise) * probe).sum().backward()
    for trial in range(len(SEEDS)):
        plain = Plain(kind, layers, self_weight, batch_norm).load(parameters, trial)
        (plain(X[0], [shifts[0][trial]] * network.draws) * probe[trial]).sum().backward()
        for name, layer in plain.named():
            ours = parameters[f"{name}.weight"].grad[trial]
            assert torch.allclose(ours, layer.conv.lin.weight.grad.T, atol=1e-4)
            assert torch.allclose(parameters[f"{name}.bias"].grad[trial], layer.conv.bias.grad, atol=1e-4)
            if self_weight:
                ours = parameters[f"{name}.self_weight"].grad[trial]
                assert torch.allclose(ours, layer.own.weight.grad.T, atol=1e-4)
            if batch_norm:
                assert torch.allclose(parameters[f"{name}.scale"].grad[trial], layer.norm.weight.grad, atol=1e-4)


def test_gcn_is_gcn_conv_with_its_own_normalisation():
    network = make_network("gcn", 2, **SIZES)
    parameters = network.initial([0], CPU)
    arcs = torch.cat((GRAPH.pairs, GRAPH.pairs.flip(0)), dim=1)
    h = X[0]
    for name, outputs in (("input", HIDDEN), ("output", CLASSES)):
        conv = GCNConv(h.shape[1], outputs)
        with torch.no_grad():
            conv.lin.weight.copy_(parameters[f"{name}.weight"][0].T)
            conv.bias.copy_(parameters[f"{name}.bias"][0])
        h = conv(h if name == "input" else h.relu(), arcs)
    ours = network.logits(parameters, X, [as_sparse(shift_operator(GRAPH))])
    assert torch.allclose(ours[0], h, atol=1e-6)


@pytest.mark.parametrize(("self_weight", "batch_norm"), OPTIONS)
def test_jknet_and_incepgcn_of_three_layers_are_one_function(self_weight, batch_norm):
    settings = {"layers": 3, **SIZES, "self_weight": self_weight, "batch_norm": batch_norm}
    jump, inception = make_network("jknet", **settings), make_network("incepgcn", **settings)
    ours, others = jump.initial(SEEDS, CPU), inception.initial(SEEDS, CPU)
    assert [name.replace("hidden1", "branch1.1") for name in ours] == list(others)
    assert all(torch.equal(mine, other) for mine, other in zip(ours.values(), others.values(), strict=True))
    shifts = draws(3)
    for noise in (no_noise, None):
        logits = jump.logits(ours | jump.running(3, CPU), X, shifts, noise)
        assert torch.equal(logits, inception.logits(others | inception.running(3, CPU), X, shifts, noise))


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize(("kind", "layers"), [("gcn", 2), ("jknet", 3), ("incepgcn", 4)])
def test_sparse_features_and_operators_equal_dense_ones(kind, layers, batch_norm):
    network = make_network(kind, layers, **SIZES, self_weight=True, batch_norm=batch_norm)
    parameters = network.initial(SEEDS, CPU)
    x = X * (normal(*X.shape, seed=5) > 0)
    csr = x[0].to_sparse_csr()
    features = Sparse(Csr(csr.crow_indices(), csr.col_indices(), FEATURES), csr.values())
    shift = shift_operator(GRAPH, sample_edges(torch.full((GRAPH.num_edges,), 0.5), SEEDS), normalization="random-walk")
    results = [
        network.logits(parameters | network.running(3, CPU), signal, [operator], no_noise)
        for signal in (x, features)
        for operator in (shift.to_dense(), as_sparse(shift))
    ]
    for other in results[1:]:
        assert torch.allclose(results[0], other, atol=1e-5)


def test_noise_follows_every_layer_but_the_last_and_knows_its_number():
    network = make_network("incepgcn", 4, **SIZES)
    seen = []

    def noise(h, layer):
        seen.append((layer, h.shape[-1], bool((h >= 0).all())))
        return h

    network.logits(network.initial([0], CPU), X, [shift_operator(GRAPH).to_dense()[None]], noise)
    assert seen == [(layer, HIDDEN, True) for layer in range(network.draws - 1)]


@pytest.mark.parametrize("kind", ["gcn", "jknet", "incepgcn"])
def test_initial_weights_are_uniform_and_pure_functions_of_the_seed(kind):
    network = make_network(kind, 4, features=60, hidden=50, classes=40, self_weight=True, batch_norm=True)
    stacked = network.initial([5, 6], CPU)
    alone, again = network.initial([6], CPU), network.initial([6], CPU)
    for name, value in stacked.items():
        assert torch.equal(value[1], alone[name][0])
        assert torch.equal(again[name], alone[name])
        start = {"scale": 1.0, "shift": 0.0}.get(name.rsplit(".", 1)[-1])
        if start is not None:
            assert torch.equal(value, torch.full_like(value, start))
            continue
        bound = value.shape[-1] ** -0.5
        assert not torch.equal(value[0], value[1])
        assert bool((value.abs() <= bound).all())
        if value.dim() == 3:  # with this many numbers: mean 0 and variance bound²/3, within five standard errors
            count = value.numel()
            assert abs(float(value.mean())) < 5 * bound / math.sqrt(3 * count)
            assert float(value.var()) == pytest.approx(bound**2 / 3, rel=5 / math.sqrt(count))
            assert float(value.abs().max()) > 0.99 * bound


def test_methods_with_the_same_seed_start_alike_whatever_their_number():
    network = make_network("gcn", 2, **SIZES)
    start = network.initial([-1, 2**70, -1], CPU)
    assert all(torch.equal(value[0], value[2]) for value in start.values())


def test_an_unknown_backbone_is_named():
    with pytest.raises(TadropedgeError, match="gatt"):
        make_network("gatt", 2, **SIZES).convolutions()


# -- the order-K GCNN ------------------------------------------------------------------------------------

SAMPLES = 6


def filters_by_hand(network, parameters, x, shifts):
    """Σ_k S^k X B_k sample by sample, in float64, then the read-out of one long vector."""
    logits = []
    for signal in x.double():
        h = signal
        for layer, shift in zip(range(network.draws), shifts, strict=True):
            blocks = parameters[f"filter{layer}.weight"].double().unflatten(0, (network.order + 1, -1))
            h = sum(torch.linalg.matrix_power(shift.double(), k) @ h @ block for k, block in enumerate(blocks))
            h = (h + parameters[f"filter{layer}.bias"]).relu()
        logits.append(h.flatten() @ parameters["readout.weight"].double() + parameters["readout.bias"])
    return torch.stack(logits)


@pytest.mark.parametrize("order", [0, 1, 5])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("features", [1, 2])
def test_filters_against_a_dense_sum_of_powers(layers, order, features):
    network = make_network("gcnn", layers, features=features, hidden=HIDDEN, classes=CLASSES, order=order)
    assert network.draws == layers
    assert network.running(3, CPU) == {}
    parameters = network.initial(SEEDS, CPU)
    shared = normal(SAMPLES, GRAPH.num_nodes, features)
    apart = normal(len(SEEDS), SAMPLES, GRAPH.num_nodes, features)
    for shifts in (draws(1), draws(layers)):
        for x in (shared, apart):
            logits = network.logits(parameters, x, shifts)
            assert logits.shape == (len(SEEDS), SAMPLES, CLASSES)
            for trial in range(len(SEEDS)):
                mine = {name: value[trial] for name, value in parameters.items()}
                operators = [shifts[layer % len(shifts)][trial] for layer in range(layers)]
                expected = filters_by_hand(network, mine, x if x.dim() == 3 else x[trial], operators)
                assert torch.allclose(logits[trial].double(), expected, atol=1e-4)


def test_taps_are_numbered_as_in_the_paper():
    network = make_network("gcnn", 2, features=2, order=3)
    parameters = network.initial(SEEDS, CPU)
    first, second = filter_taps(parameters, layers=2, order=3)
    assert (first.shape, second.shape) == ((3, 5, 2, 4), (3, 5, 5, 4))
    assert torch.equal(first[1, 4, 1, 2], parameters["filter0.weight"][1, 2 * 2 + 1, 4])


def test_filters_on_a_sparse_operator_and_with_noise():
    network = make_network("gcnn", 2, features=1, hidden=HIDDEN, classes=CLASSES, order=3)
    parameters, x = network.initial(SEEDS, CPU), normal(SAMPLES, GRAPH.num_nodes, 1)
    shift = shift_operator(GRAPH, sample_edges(torch.full((GRAPH.num_edges,), 0.5), SEEDS))
    expected = network.logits(parameters, x, [shift.to_dense()])
    assert torch.allclose(network.logits(parameters, x, [as_sparse(shift)]), expected, atol=1e-5)
    seen = []

    def noise(h, layer):
        seen.append((layer, h.shape))
        return 0 * h

    blank = network.logits(parameters, x, [shift.to_dense()], noise)
    assert seen == [(layer, (len(SEEDS), GRAPH.num_nodes * SAMPLES, HIDDEN)) for layer in range(2)]
    assert torch.equal(blank, parameters["readout.bias"][:, None].expand_as(blank))


def test_filters_start_uniform_and_as_pure_functions_of_the_seed():
    network = make_network("gcnn", 2, features=2, hidden=16, classes=CLASSES, order=4)
    stacked, alone = network.initial([5, 6], CPU), network.initial([6], CPU)
    inputs = {"filter0": 5 * 2, "filter1": 5 * 16, "readout": GRAPH.num_nodes * 16}
    for name, value in stacked.items():
        assert torch.equal(value[1], alone[name][0])
        assert not torch.equal(value[0], value[1])
        bound = inputs[name.split(".")[0]] ** -0.5
        assert bool((value.abs() <= bound).all())
        assert float(value.abs().max()) > 0.5 * bound


@pytest.mark.parametrize("normalization", ["gcn", "first-order", "gcn-residual", "random-walk"])
def test_one_layer_is_the_dense_formula_for_every_normalisation_of_the_search(normalization):
    network = make_network("gcn", 1, **SIZES)
    parameters = network.initial([2], CPU)
    S = dense.shift(dense.masked_adjacency(GRAPH, torch.ones(GRAPH.num_edges)), normalization).float()
    ours = network.logits(parameters, X, [as_sparse(shift_operator(GRAPH, normalization=normalization))])
    expected = S @ X[0] @ parameters["output.weight"][0] + parameters["output.bias"][0]
    assert torch.allclose(ours[0], expected, atol=1e-5)
