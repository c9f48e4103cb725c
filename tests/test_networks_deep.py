"""ResGCN, GCNII, APPNP, SAGE and MLP against PyTorch Geometric's layers with the same weights, and dense matrices."""

from __future__ import annotations

from math import log

import dense
import pytest
import torch
from graphs import ZOO, clusters
from networks import make_network
from torch import nn
from torch_geometric.nn import APPNP, MLP, GCN2Conv, GCNConv, SAGEConv

from tadropedge import sample_edges, shift_operator
from tadropedge.errors import TadropedgeError
from tadropedge.method import Method
from tadropedge.nn import operators as operators_module
from tadropedge.nn.layers import Sparse
from tadropedge.nn.network import Sizes, TrainingStep
from tadropedge.registry import NETWORKS
from tadropedge.search.entrants import references
from tadropedge.training.config import Architecture, Trial

pytestmark = pytest.mark.usefixtures("one_thread")
CPU = torch.device("cpu")
FEATURES, HIDDEN, CLASSES = 7, 5, 3
SIZES = {"features": FEATURES, "hidden": HIDDEN, "classes": CLASSES}
SEEDS = [3, 1, 4]
GRAPHS = {"dense": ZOO["karate"], "sparse": clusters([70, 70], 0.1, 0.02)}  # below and above 128 nodes
NAMES = ["resgcn", "gcnii", "appnp", "sage", "mlp"]
DEEP = ["resgcn", "gcnii", "appnp"]


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def no_noise(h, layer):
    """Training mode without dropout."""
    return h


def arcs(graph, keep):
    """Both directions of the kept edges, as PyTorch Geometric takes them."""
    pairs = graph.pairs[:, keep]
    return torch.cat((pairs, pairs.flip(0)), dim=1)


@torch.no_grad()
def filled(linear, weight, bias=None):
    linear.weight.copy_(weight.T)
    if bias is not None:
        linear.bias.copy_(bias)
    return linear


def linear(state, name):
    return filled(nn.Linear(*state[f"{name}.weight"].shape), state[f"{name}.weight"], state[f"{name}.bias"])


def resgcn(state, x, edges, settings):
    """GCNConv after GCNConv; those in between are added to what they are given."""
    layers = [name.removesuffix(".weight") for name in state if name.endswith(".weight")]
    for name in layers:
        conv = GCNConv(*state[f"{name}.weight"].shape)
        filled(conv.lin, state[f"{name}.weight"])
        conv.bias.data.copy_(state[f"{name}.bias"])
        h = conv(x, next(edges))
        x = h if name == "output" else h.relu() + (x if name.startswith("hidden") else 0)
    return x


def gcnii(state, x, edges, settings):
    x = start = linear(state, "input")(x).relu()
    for step in range(1, sum(name.startswith("step") for name in state) + 1):
        conv = GCN2Conv(HIDDEN, alpha=settings["alpha"], theta=settings["theta"], layer=step)
        conv.weight1.data.copy_(state[f"step{step}.weight"])
        x = conv(x, start, next(edges)).relu()
    return linear(state, "output")(x)


def appnp(state, x, edges, settings):
    h = z = linear(state, "output")(linear(state, "input")(x).relu())
    first = next(edges)
    edges = [first, *edges]
    if all(edge is first for edge in edges):
        return APPNP(K=len(edges), alpha=settings["alpha"])(h, first)
    conv = GCNConv(CLASSES, CLASSES, bias=False)  # PyTorch Geometric has one subgraph for all steps: one step each
    filled(conv.lin, torch.eye(CLASSES))
    for edge in edges:
        z = (1 - settings["alpha"]) * conv(z, edge) + settings["alpha"] * h
    return z


def sage(state, x, edges, settings):
    for name in [name.removesuffix(".weight") for name in state if name.endswith(".weight")]:
        conv = SAGEConv(*state[f"{name}.weight"].shape, aggr="mean")
        filled(conv.lin_l, state[f"{name}.weight"], state[f"{name}.bias"])
        filled(conv.lin_r, state[f"{name}.self_weight"])
        x = conv(x, next(edges))
        x = x if name == "output" else x.relu()
    return x


def mlp(state, x, edges, settings):
    names = [name.removesuffix(".weight") for name in state if name.endswith(".weight")]
    plain = MLP([FEATURES] + [state[f"{name}.weight"].shape[1] for name in names], dropout=0.0, norm=None)
    for name, layer in zip(names, plain.lins, strict=True):
        filled(layer, state[f"{name}.weight"], state[f"{name}.bias"])
    return plain(x)


REFERENCES = {"resgcn": resgcn, "gcnii": gcnii, "appnp": appnp, "sage": sage, "mlp": mlp}
SETTINGS = {"gcnii": {"alpha": [0.1, 0.5, 0.3], "theta": [0.5, 1.5, 2.0]}, "appnp": {"alpha": [0.1, 0.5, 1.0]}}


def own_settings(name, trial):
    return {key: values[trial] for key, values in SETTINGS.get(name, {}).items()}


def masks(graph, count):
    """``count`` masks ``[T, M]``."""
    prob = torch.full((graph.num_edges,), 0.6, dtype=torch.float64)
    return [sample_edges(prob, SEEDS, epoch) for epoch in range(count)]


def step_of(x, keeps, factors=None, noise=no_noise):
    return TrainingStep(x=x, nodes=None, keeps=keeps, draws=None, noise=noise, epoch=torch.tensor(0), factors=factors)


def made(name, layers, graph):
    network = make_network(name, layers, **SIZES, graph=graph, trials=len(SEEDS), **SETTINGS.get(name, {}))
    parameters = network.initial(SEEDS, CPU)
    for place, (key, value) in enumerate(parameters.items()):  # biases that are not 0
        if key.endswith("bias"):
            value += 0.3 * normal(*value.shape, seed=place)
    return network, parameters


@pytest.mark.parametrize("per_layer", [False, True])
@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("layers", [2, 8])
@pytest.mark.parametrize("name", NAMES)
def test_outputs_and_gradients_equal_those_of_pytorch_geometric(name, layers, kind, per_layer):
    graph = GRAPHS[kind]
    network, parameters = made(name, layers, graph)
    x, probe = normal(1, graph.num_nodes, FEATURES), normal(len(SEEDS), graph.num_nodes, CLASSES, seed=8)
    assert network.draws == layers
    keeps = masks(graph, layers if per_layer else 1)
    for value in parameters.values():
        value.requires_grad_()
    logits, extra = network.training(parameters, step_of(x, keeps))
    assert extra == 0
    (logits * probe).sum().backward()
    whole = network.evaluation(parameters, x, torch.tensor(0))
    everything = torch.ones(graph.num_edges, dtype=torch.bool)
    for trial in range(len(SEEDS)):
        mine = {key: value[trial].detach().requires_grad_() for key, value in parameters.items()}
        settings = own_settings(name, trial)
        kept = [arcs(graph, keep[trial]) for keep in keeps] * (1 if per_layer else layers)
        assert torch.allclose(logits[trial], REFERENCES[name](mine, x[0], iter(kept), settings), atol=1e-4)
        expected = REFERENCES[name](mine, x[0], iter([arcs(graph, everything)] * layers), settings)
        assert torch.allclose(whole[trial], expected, atol=1e-4)
        keep = [keep[trial].double() for keep in keeps] * (1 if per_layer else layers)
        slopes = dense_gradients(name, mine, x[0], graph, keep, settings, probe[trial])
        for key, slope in slopes.items():
            assert torch.allclose(parameters[key].grad[trial].double(), slope, rtol=1e-4, atol=1e-4), key


def dense_gradients(name, state, x, graph, keeps, settings, probe):
    """Gradients of Σ probe · logits in float64, by the printed formulas with dense matrices."""
    state = {key: value.detach().double().requires_grad_() for key, value in state.items()}
    shifts = [dense.shift(dense.masked_adjacency(graph, keep), SHIFT.get(name, "gcn")).double() for keep in keeps]
    logits = FORMULAS[name](state, x.double(), shifts, settings)
    return dict(zip(state, torch.autograd.grad((logits * probe.double()).sum(), list(state.values())), strict=True))


SHIFT = {"sage": "neighbour-mean"}


def affine(state, name, h):
    return h @ state[f"{name}.weight"] + state[f"{name}.bias"]


def chained(layer):
    """Layers from the input to the output by one formula: ``layer(state, name, h, S)`` before ReLU."""

    def formula(state, x, shifts, settings, residual=False):
        names = [name.removesuffix(".weight") for name in state if name.endswith(".weight")]
        for name, S in zip(names, shifts, strict=True):
            h = layer(state, name, x, S)
            x = h if name == "output" else h.relu() + (x if residual and name != "input" else 0)
        return x

    return formula


def dense_gcnii(state, x, shifts, settings):
    h = start = affine(state, "input", x).relu()
    for step, S in enumerate(shifts, 1):
        beta = log(settings["theta"] / step + 1)
        mixed = (1 - beta) * torch.eye(HIDDEN, dtype=x.dtype) + beta * state[f"step{step}.weight"]
        h = (((1 - settings["alpha"]) * S @ h + settings["alpha"] * start) @ mixed).relu()
    return affine(state, "output", h)


def dense_appnp(state, x, shifts, settings):
    z = h = affine(state, "output", affine(state, "input", x).relu())
    for S in shifts:
        z = (1 - settings["alpha"]) * S @ z + settings["alpha"] * h
    return z


graph_convolutions = chained(lambda state, name, h, S: S @ h @ state[f"{name}.weight"] + state[f"{name}.bias"])
FORMULAS = {
    "resgcn": lambda *given: graph_convolutions(*given, residual=True),
    "gcnii": dense_gcnii,
    "appnp": dense_appnp,
    "sage": chained(lambda state, name, h, S: affine(state, name, S @ h) + h @ state[f"{name}.self_weight"]),
    "mlp": chained(lambda state, name, h, S: affine(state, name, h)),
}


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("name", [name for name in NAMES if NETWORKS[name].weighs])
def test_unbiased_operators_are_those_of_the_whole_graph_with_factors(name, kind):
    graph = GRAPHS[kind]
    network, parameters = made(name, 2, graph)
    x, prob = normal(1, graph.num_nodes, FEATURES), torch.full((graph.num_edges,), 0.6, dtype=torch.float64)
    [keep] = masks(graph, 1)
    logits, _ = network.training(parameters, step_of(x, [keep], [keep / prob.float()]))
    for trial in range(len(SEEDS)):
        S = shift_operator(graph, keep[trial], normalization=SHIFT.get(name, "gcn"), unbiased=prob, dtype=prob.dtype)
        state = {key: value[trial].double() for key, value in parameters.items()}
        expected = FORMULAS[name](state, x[0].double(), [S.to_dense()] * 2, own_settings(name, trial))
        assert torch.allclose(logits[trial].double(), expected, atol=1e-4)


@pytest.mark.parametrize("normalization", ["random-walk", "first-order"])
@pytest.mark.parametrize("name", DEEP)
def test_every_trial_may_have_its_own_normalisation(name, normalization):
    graph = GRAPHS["sparse"]
    names = ["gcn", normalization, "gcn"]
    network = make_network(name, 3, **SIZES, graph=graph, trials=3, normalization=names, **SETTINGS.get(name, {}))
    parameters, x = network.initial(SEEDS, CPU), normal(1, graph.num_nodes, FEATURES)
    logits = network.evaluation(parameters, x, torch.tensor(0))
    for trial, one in enumerate(names):
        S = dense.shift(dense.masked_adjacency(graph, torch.ones(graph.num_edges)), one).double()
        state = {key: value[trial].double() for key, value in parameters.items()}
        expected = FORMULAS[name](state, x[0].double(), [S] * 3, own_settings(name, trial))
        assert torch.allclose(logits[trial].double(), expected, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "mlp"])
def test_compact_operators_give_the_bits_of_masked_ones(name, monkeypatch):
    graph = GRAPHS["sparse"]
    x, keep = normal(1, graph.num_nodes, FEATURES), masks(graph, 1)[0][:1]
    found = []
    for worth in (float("inf"), 0):
        monkeypatch.setattr(operators_module, "WORTH_COMPACTING", {"cpu": worth})
        network = make_network(name, 3, **SIZES, graph=graph, trials=1)
        network.expect([0.6])
        assert network.operators.compact == (worth == 0)
        found.append(network.training(network.initial([5], CPU), step_of(x, [keep]))[0])
        operator = network.operators.of(keep)
        assert isinstance(operator, Sparse)
        assert (len(operator.places.col) < graph.pattern.num_entries) == (worth == 0)
    assert torch.equal(*found)


def test_noise_follows_every_layer_with_a_rectifier_and_knows_its_number():
    counts = {"resgcn": 4, "gcnii": 6, "appnp": 1, "sage": 4, "mlp": 4}
    for name, count in counts.items():
        network = make_network(name, 5, **SIZES, trials=1)
        seen = []

        def noise(h, layer, seen=seen):
            seen.append((layer, h.shape[-1], bool((h >= 0).all())))
            return h

        x = normal(1, 34, FEATURES)
        network.training(network.initial([0], CPU), step_of(x, [None], noise=noise))
        assert seen == [(layer, HIDDEN, True) for layer in range(count)], name


def test_the_start_of_gcnii_that_steps_go_back_to_has_no_dropout():
    """With α = 1 and all that enters a step dropped, the output is that without dropout."""
    network = make_network("gcnii", 1, **SIZES, trials=1, alpha=1.0)
    state, x = network.initial([0], CPU), normal(1, 34, FEATURES)
    dropped = network.training(state, step_of(x, [None], noise=lambda h, layer: h * (layer > 0)))[0]
    assert torch.allclose(dropped, network.evaluation(state, x, torch.tensor(0)), atol=1e-6)


def test_resgcn_of_two_layers_is_gcn():
    ours, other = (make_network(name, 2, **SIZES, batch_norm=True) for name in ("resgcn", "gcn"))
    state = ours.initial(SEEDS, CPU)
    assert all(torch.equal(value, other.initial(SEEDS, CPU)[key]) for key, value in state.items())
    x = normal(1, 34, FEATURES)
    logits = [one.training(state | one.running(3, CPU), step_of(x, [None]))[0] for one in (ours, other)]
    assert torch.equal(*logits)


def test_hidden_layers_of_resgcn_start_small_enough_for_any_depth():
    """Each adds about a share c / (n − 2) of what it is given, so that signals grow by at most about e^c."""
    sizes = []
    for layers in (3, 8, 64):
        network = make_network("resgcn", layers, features=FEATURES, hidden=64, classes=CLASSES, trials=1)
        state = network.initial([2], CPU)
        assert float(state["hidden1.weight"].abs().max()) == pytest.approx(1 / 8 / (layers - 2), rel=0.01)
        assert float(state["input.weight"].abs().max()) == pytest.approx(1 / 8, rel=0.05)
        sizes.append(float(network.evaluation(state, normal(1, 34, FEATURES), torch.tensor(0)).square().mean().sqrt()))
    assert max(sizes) < 3 * sizes[0]


def test_appnp_comes_to_rest_at_personalised_pagerank():
    network = make_network("appnp", 64, **SIZES, trials=1, alpha=0.3)
    state, x = network.initial([2], CPU), normal(1, 34, FEATURES)
    S = dense.shift(dense.masked_adjacency(ZOO["karate"], torch.ones(78)), "gcn").double()
    h = FORMULAS["mlp"]({key: value[0].double() for key, value in state.items()}, x[0].double(), [S, S], {})
    rest = 0.3 * torch.linalg.solve(torch.eye(34, dtype=torch.float64) - 0.7 * S, h)
    assert torch.allclose(network.evaluation(state, x, torch.tensor(0))[0].double(), rest, atol=1e-5)


def test_the_mlp_never_asks_for_the_graph():
    network = make_network("mlp", 4, **SIZES)
    state, x = network.initial(SEEDS, CPU), normal(1, 34, FEATURES)
    network.operators = None
    none = torch.zeros(3, 78, dtype=torch.bool)
    logits = network.training(state, step_of(x, [none]))[0]
    assert torch.allclose(logits, network.evaluation(state, x, torch.tensor(0)))


def test_a_node_without_edges_sees_itself_alone_in_sage():
    network = make_network("sage", 1, **SIZES)
    state, x = network.initial(SEEDS, CPU), normal(1, 34, FEATURES)
    logits = network.training(state, step_of(x, [torch.zeros(3, 78, dtype=torch.bool)]))[0]
    assert torch.allclose(logits, x @ state["output.self_weight"] + state["output.bias"][:, None], atol=1e-6)


@pytest.mark.parametrize("name", DEEP)
def test_sixty_four_layers_stay_finite_and_reach_the_first(name):
    graph = GRAPHS["sparse"]
    network, parameters = made(name, 64, graph)
    for value in parameters.values():
        value.requires_grad_()
    logits, _ = network.training(parameters, step_of(normal(1, graph.num_nodes, FEATURES), masks(graph, 1)))
    logits.square().sum().backward()
    for value in parameters.values():
        assert bool(value.grad.isfinite().all())
    for name in ("input.weight", "output.weight"):
        assert bool((parameters[name].grad.abs().amax(dim=(1, 2)) > 0).all())


def test_references_and_refusals():
    assert references("mlp") == {"none": "original"}
    assert references("gcnii+degree-proportional") == {"none": "gcnii", "dropedge": "gcnii+dropedge"}
    for name in NAMES[:-1]:
        assert Method.of(f"{name}+degree-proportional:unbiased:nested").network == name
        Trial(f"{name}+degree-proportional:unbiased")
    for method in ("mlp+cdf", "mlp+auto", "mlp+dropedge:unbiased"):
        with pytest.raises(TadropedgeError, match=r"mlp sees no edges and cannot be combined with edge dropping: 'mlp"):
            Method.of(method)
    for wrong in (1.5, -0.1, "much", float("nan"), True):
        with pytest.raises(TadropedgeError, match="alpha must be a number from 0 to 1, got"):
            Trial.of("gcnii", alpha=wrong)
    with pytest.raises(TadropedgeError, match="theta must be a number of at least 0, got inf"):
        Trial.of("gcnii", theta=float("inf"))


@pytest.mark.parametrize("name", NAMES)
def test_estimates_grow_with_every_layer_and_know_what_is_kept(name):
    network = NETWORKS[name]
    told = network.completed(name, {})
    sizes = [Sizes(num_nodes=90, num_features=5, num_classes=2, layers=n, hidden=8) for n in (2, 64, 10**9)]
    small, deep, never = (network.footprint(one, told, 90, 400) for one in sizes)
    assert small < deep < never
    assert never > 10**10
    parameters = sum(torch.Size(shape).numel() for shape in network.shapes(sizes[1], told).values())
    signals = 90 * 64 * (2 if name == "appnp" else 8)  # one for each layer
    assert deep > parameters + signals


@pytest.mark.parametrize("name", NAMES)
def test_one_layer_is_enough(name):
    network = make_network(name, 1, **SIZES)
    logits = network.evaluation(network.initial(SEEDS, CPU), normal(1, 34, FEATURES), torch.tensor(0))
    assert logits.shape == (3, 34, CLASSES)
    assert Architecture(name, 1).layers == 1
