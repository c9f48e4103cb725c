"""Each network against its formula in dense torch, layer by layer and trial by trial, and against PyG's own layers."""

from math import log

import dense
import pytest
import torch
from torch.nn.functional import batch_norm, leaky_relu
from torch_geometric.nn import APPNP, GATConv, GCN2Conv, GCNConv, SAGEConv

from tadropedge import TadropedgeError
from tadropedge.lab import NETWORKS
from tadropedge.lab.networks.gcn import IncepGCN
from tadropedge.lab.networks.layers import drop_features, inputs
from tadropedge.lab.networks.network import Sizes, Start
from tadropedge.lab.networks.noise import Noise
from tadropedge.lab.networks.view import View
from tadropedge.lab.training.neighbours import rows_of
from tadropedge.testing.graphs import clusters

GRAPH = clusters([30, 30], 0.15, 0.02)
N, M, F, H, C = GRAPH.num_nodes, GRAPH.num_edges, 7, 8, 3
ARCS = torch.cat((GRAPH.pairs, GRAPH.pairs.flip(0)), dim=1)
SEEDS = [0, 5, 7]


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


X = normal(N, F).relu()


def made(name, layers, seeds=SEEDS, **settings):
    kind = NETWORKS[name]
    sizes = Sizes(num_features=F, num_classes=C, layers=layers, hidden=H)
    network = kind(sizes, [kind.completed(name, settings)] * len(seeds), Start(seeds))
    for place, (key, value) in enumerate(network.state_dict().items()):  # so that no part is the identity
        if "norm." in key or "bias" in key:
            value += 0.3 * normal(*value.shape, seed=place).abs()
    return network


def conv(layer, trial, x, S, training):
    """``S (X W) + X W_self + b``, then batch norm where it is on, from ``x [N, F]``."""
    h = S @ (x @ layer.weight[trial]) + layer.bias[trial]
    h = h if layer.self_weight is None else h + x @ layer.self_weight[trial]
    h = h if layer.layer_norm is None else layer_normed(layer.layer_norm, trial, h)
    if layer.norm is None:
        return h
    norm = layer.norm
    statistics = norm.mean[trial, 0].clone(), norm.variance[trial, 0].clone()
    return batch_norm(h, *statistics, norm.scale[trial], norm.shift[trial], training)


def layer_normed(norm, trial, h):
    mean, variance = h.mean(1, keepdim=True), h.var(1, keepdim=True, unbiased=False)
    return (h - mean) / (variance + 1e-5).sqrt() * norm.scale[trial] + norm.shift[trial]


def begun(network, trial):
    return X if network.input is None else X @ network.input.weight[trial] + network.input.bias[trial]


def gcn(network, trial, S, training):
    h = begun(network, trial)
    for layer in network.layers[:-1]:
        h = conv(layer, trial, h, S, training).relu()
    return conv(network.layers[-1], trial, h, S, training)


def jknet(network, trial, S, training):
    seen = [X]
    for layer in network.layers[:-1]:
        seen.append(conv(layer, trial, seen[-1], S, training).relu())
    return conv(network.layers[-1], trial, torch.cat(seen[1:], dim=1), S, training)


def incepgcn(network, trial, S, training):
    first, *hidden, last = network.layers
    seen, rest = [conv(first, trial, X, S, training).relu()], iter(hidden)
    for length in range(1, network.sizes.layers - 1):
        h = seen[0]
        for _ in range(length):
            h = conv(next(rest), trial, h, S, training).relu()
        seen.append(h)
    return conv(last, trial, torch.cat(seen, dim=1), S, training)


def resgcn(network, trial, S, training):
    first, *hidden, last = network.layers
    h = conv(first, trial, X, S, training).relu()
    for layer in hidden:
        h = h + conv(layer, trial, h, S, training).relu()
    return conv(last, trial, h, S, training)


def mlp(network, trial, S, training):
    return gcn(network, trial, torch.eye(N), training)


def gcnii(network, trial, S, training):
    alpha, theta = (network.of_trials[trial][name] for name in ("alpha", "theta"))
    start = h = (X @ network.input.weight[trial] + network.input.bias[trial]).relu()
    for step, weight in enumerate(network.steps, 1):
        beta = log(theta / step + 1)
        z = (1 - alpha) * S @ h + alpha * start
        h = ((1 - beta) * z + beta * z @ weight[trial]).relu()
    return h @ network.output.weight[trial] + network.output.bias[trial]


def appnp(network, trial, S, training):
    alpha = network.of_trials[trial]["alpha"]
    h = (X @ network.input.weight[trial] + network.input.bias[trial]).relu()
    start = z = h @ network.output.weight[trial] + network.output.bias[trial]
    for _ in range(network.sizes.layers):
        z = (1 - alpha) * S @ z + alpha * start
    return z


REFERENCES = {
    "gcn": gcn, "jknet": jknet, "incepgcn": incepgcn, "resgcn": resgcn, "sage": gcn, "mlp": mlp, "gcnii": gcnii,
    "appnp": appnp,
}  # fmt: skip
BACKBONES = [
    ("gcn", 1),
    ("gcn", 2),
    ("gcn", 4),
    ("jknet", 3),
    ("jknet", 5),
    ("incepgcn", 3),
    ("incepgcn", 5),
    ("resgcn", 5),
]
NORMED = [("sage", 2), ("mlp", 3)]
BOTH = [{"self_weight": False, "batch_norm": False}, {"self_weight": True, "batch_norm": True}]
CASES = [
    *((name, layers, settings) for name, layers in BACKBONES for settings in BOTH),
    *((name, layers, {"batch_norm": norm}) for name, layers in NORMED for norm in (False, True)),
    *(("gcn", 1, {"normalization": name}) for name in ("first-order", "gcn-residual", "random-walk")),
    *((name, 3, {"layer_norm": True, "pre_linear": True}) for name in ("gcn", "sage")),
    ("gcn", 3, {"layer_norm": True, "batch_norm": True, "self_weight": True}),
    ("gcnii", 3, {"alpha": 0.3, "theta": 0.7}),
    ("appnp", 4, {"alpha": 0.3, "normalization": "random-walk"}),
]


@pytest.mark.parametrize(("name", "layers", "settings"), CASES, ids=str)
def test_the_formula_in_training_and_evaluation(name, layers, settings):
    network, kept = made(name, layers, **settings), normal(3, M) < 0.3
    weights = normal(3, M, seed=1).sigmoid().double()
    still = Noise(torch.zeros(3), torch.tensor(SEEDS), torch.tensor(0))  # a rate of 0
    for view, worth in (
        (View(GRAPH, kept, noise=still), kept.double()),
        (View(GRAPH), torch.ones(3, M)),
        (View(GRAPH, None, weights), weights),
    ):
        expected = []
        for trial in range(3):
            normalization = settings.get("normalization", "neighbour-mean" if name == "sage" else "gcn")
            S = dense.shift(dense.masked_adjacency(GRAPH, worth[trial]), normalization).float()
            expected.append(REFERENCES[name](network, trial, S, view.training))
        probe = normal(3, N, C, seed=2)
        theirs = torch.autograd.grad((torch.stack(expected) * probe).sum(), list(network.parameters()))
        logits = network(inputs(X), view)
        assert torch.allclose(logits, torch.stack(expected), atol=2e-5)
        ours = torch.autograd.grad((logits * probe).sum(), list(network.parameters()))
        assert all(torch.allclose(*pair, atol=2e-4) for pair in zip(ours, theirs, strict=True))


def attention(layer, trial, x, w, f):
    """One layer of heads: ``w`` weighs before the softmax, ``f`` after it, both ``[N, N]`` with a diagonal of 1."""
    z = (x @ layer.weight[trial]).unflatten(1, (layer.heads, -1))
    target, source = ((z * vector[trial]).sum(dim=2) for vector in (layer.target, layer.source))
    powers = w[:, :, None] * leaky_relu(target[:, None] + source[None], layer.slope).exp()
    alpha = f[:, :, None] * powers / powers.sum(dim=1, keepdim=True)
    return torch.einsum("ijk,jkw->ikw", alpha, z).flatten(1) + layer.bias[trial]


TUNED = {"residual": True, "layer_norm": True, "batch_norm": True, "pre_linear": True}


@pytest.mark.parametrize("settings", [{}, TUNED], ids=["plain", "tuned"])
def test_the_formula_of_attention(settings):
    network = made("gat", 3, heads=4, negative_slope=0.3, **settings)
    kept, weights = normal(3, M) < 0.3, normal(3, M, seed=1).sigmoid().double()
    ones, whole = torch.ones(3, M), torch.ones(3, M).bool()
    for view, before, after in (
        (View(GRAPH), whole, ones),
        (View(GRAPH, kept), kept, ones),
        (View(GRAPH, None, weights), weights, ones),
        (View(GRAPH, kept, 1 / weights), whole, kept / weights),
    ):
        logits = network(inputs(X), view)
        for trial in range(3):
            w, f = (dense.masked_adjacency(GRAPH, part[trial]).float() + torch.eye(N) for part in (before, after))
            allowed = dense.masked_adjacency(GRAPH, torch.ones(M)).float() + torch.eye(N)
            h = begun(network, trial)
            for place, layer in enumerate(network.layers):
                seen, h = h, attention(layer, trial, h, w * allowed, f)
                h = h if layer.residual is None else h + seen @ layer.residual[trial]
                if place < 2 and settings:
                    h, norm = layer_normed(network.layer_norms[place], trial, h), network.norms[place]
                    h = batch_norm(
                        h, norm.mean[trial, 0], norm.variance[trial, 0], norm.scale[trial], norm.shift[trial]
                    )
                h = torch.nn.functional.elu(h) if place < 2 else h
            assert torch.allclose(logits[trial], h, atol=2e-5)


RATES = torch.tensor([0.0, 0.3, 0.8])
NOISE = Noise(torch.zeros(3), torch.tensor(SEEDS), torch.tensor(4))
LAYOUTS = {"dense": X, "sparse": X.to_sparse_csr()}


def thinned(x, view):
    """The features that are left to each trial, ``[3, N, F]``."""
    return drop_features(x, RATES, view) @ torch.eye(F).expand(3, -1, -1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_features_are_dropped_by_the_rates_and_scaled_up(layout):
    left = thinned(inputs(LAYOUTS[layout]), View(GRAPH, noise=NOISE))
    factors = (left / X).nan_to_num().round(decimals=4)
    assert sorted(set(factors.unique().tolist())) == pytest.approx([0, 1, 1 / 0.7, 5], abs=1e-4)
    shares = [float((factors[trial][X > 0] > 0).float().mean()) for trial in range(3)]
    assert shares == pytest.approx([1.0, 0.7, 0.2], abs=5 * (0.25 / int((X > 0).sum())) ** 0.5)
    rows = torch.tensor([7, 2, 40])  # of a mini-batch
    some = thinned(rows_of(LAYOUTS[layout], rows), View(GRAPH, noise=NOISE.of(rows)))
    assert torch.allclose(some, left[:, rows])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", [*REFERENCES, "gat"])
def test_every_network_drops_features_in_training_alone(name, layout):
    kind, sizes = NETWORKS[name], Sizes(num_features=F, num_classes=C, layers=3, hidden=H)
    told = [kind.completed(name, {"feature_dropout": float(rate)}) for rate in RATES]
    drops, plain = (kind(sizes, one, Start(SEEDS)) for one in (told, [kind.completed(name, {})] * 3))
    x, step = inputs(LAYOUTS[layout]), View(GRAPH, noise=NOISE)
    found, left = drops(x, step), thinned(x, step)
    for trial in range(3):
        assert torch.allclose(found[trial], plain(inputs(left[trial]), step)[trial], atol=1e-5)
    assert torch.allclose(drops(x, View(GRAPH)), plain(x, View(GRAPH)))


def test_dropping_attention_keeps_its_mean():
    kind = NETWORKS["gat"]
    sizes, trials = Sizes(num_features=F, num_classes=C, layers=1, hidden=H), 400
    settings = kind.completed("gat", {"attention_dropout": 0.4})
    network = kind(sizes, [settings] * trials, Start([3] * trials))
    noise = Noise(torch.zeros(trials), torch.arange(trials), torch.tensor(0))
    noisy, still = (network(inputs(X), view).detach() for view in (View(GRAPH, noise=noise), View(GRAPH)))
    error = noisy.std(dim=0) / trials**0.5
    assert bool(((noisy.mean(dim=0) - still[0]).abs() <= 5 * error + 1e-6).all())
    assert float(error.mean()) > 0.001


# -- PyG -----------------------------------------------------------------------------------------------------------


def load(module, **values):
    with torch.no_grad():
        for name, value in values.items():
            module.get_parameter(name.replace("__", ".")).copy_(value)
    return module


def test_layers_of_pyg():
    logits = made("gcn", 2)
    h = X
    for place, (inputs_, outputs) in enumerate(((F, H), (H, C))):
        layer = logits.layers[place]
        pyg = load(GCNConv(inputs_, outputs), lin__weight=layer.weight[1].T, bias=layer.bias[1])
        h = pyg(h if place == 0 else h.relu(), ARCS)
    assert torch.allclose(logits(inputs(X), View(GRAPH))[1], h, atol=1e-5)

    sage = made("sage", 2)
    h = X
    for place, (inputs_, outputs) in enumerate(((F, H), (H, C))):
        layer = sage.layers[place]
        parts = {
            "lin_l__weight": layer.weight[2].T,
            "lin_l__bias": layer.bias[2],
            "lin_r__weight": layer.self_weight[2].T,
        }
        h = load(SAGEConv(inputs_, outputs), **parts)(h if place == 0 else h.relu(), ARCS)
    assert torch.allclose(sage(inputs(X), View(GRAPH))[2], h, atol=1e-5)

    gat = made("gat", 2, heads=2)
    h = X
    for place, (inputs_, heads, width) in enumerate(((F, 2, H // 2), (H, 1, C))):
        layer = gat.layers[place]
        parts = {"att_src": layer.source[0][None], "att_dst": layer.target[0][None], "bias": layer.bias[0]}
        pyg = load(GATConv(inputs_, width, heads), lin__weight=layer.weight[0].T, **parts)
        h = pyg(h if place == 0 else torch.nn.functional.elu(h), ARCS)
    assert torch.allclose(gat(inputs(X), View(GRAPH))[0], h, atol=1e-5)


def test_restarting_layers_of_pyg():
    deep = made("gcnii", 3, alpha=0.2, theta=0.6)
    h = start = (X @ deep.input.weight[1] + deep.input.bias[1]).relu()
    for step, weight in enumerate(deep.steps, 1):
        pyg = load(GCN2Conv(H, 0.2, theta=0.6, layer=step), weight1=weight[1])
        h = pyg(h, start, ARCS).relu()
    expected = h @ deep.output.weight[1] + deep.output.bias[1]
    assert torch.allclose(deep(inputs(X), View(GRAPH))[1], expected, atol=1e-5)

    network = made("appnp", 6, alpha=0.15)
    h = (X @ network.input.weight[1] + network.input.bias[1]).relu() @ network.output.weight[1] + network.output.bias[1]
    assert torch.allclose(network(inputs(X), View(GRAPH))[1], APPNP(6, 0.15)(h, ARCS), atol=1e-5)


# -- starts, shapes, refusals --------------------------------------------------------------------------------------

# The first number and the last one of a network of three layers, of the seed 5, its zeros aside.
STARTS = {
    "gcn": (0.233523, 0.107688), "jknet": (0.233523, 0.109567), "incepgcn": (0.233523, 0.109567),
    "resgcn": (0.233523, 0.107688), "sage": (0.233523, -0.526536), "mlp": (0.233523, 0.107688),
    "gcnii": (0.417739, -0.081941), "appnp": (0.417739, -0.227144), "gat": (0.417739, 0.425371),
}  # fmt: skip


@pytest.mark.parametrize("name", STARTS)
def test_starts_never_change(name):
    kind = NETWORKS[name]
    network = kind(Sizes(num_features=F, num_classes=C, layers=3, hidden=H), [kind.completed(name, {})], Start([5]))
    drawn = [value.detach() for value in network.parameters() if value.any()]
    assert (float(drawn[0].flatten()[0]), float(drawn[-1].flatten()[-1])) == pytest.approx(STARTS[name], abs=1e-6)


@pytest.mark.parametrize("name", ["gcn", "jknet", "incepgcn", "sage"])
def test_backbones_start_uniform_in_one_over_the_root_of_the_outputs(name):
    kind = NETWORKS[name]
    sizes = Sizes(num_features=60, num_classes=40, layers=4, hidden=50)
    network = kind(sizes, [kind.completed(name, {"batch_norm": True})], Start([5]))
    for key, value in network.state_dict().items():
        if key.endswith(("norm.mean", "norm.variance")):
            continue
        if "norm." in key:
            assert torch.equal(value, torch.full_like(value, float(key.endswith("scale"))))
            continue
        bound = value.shape[-1] ** -0.5
        assert bool((value.abs() <= bound).all())
        if value.dim() == 3:  # mean 0 and variance bound² / 3, within five standard errors
            count = value.numel()
            assert abs(float(value.mean())) < 5 * bound / (3 * count) ** 0.5
            assert float(value.var()) == pytest.approx(bound**2 / 3, rel=5 / count**0.5)


def test_hidden_layers_of_resgcn_start_smaller():
    plain, small = made("gcn", 6).layers, made("resgcn", 6).layers
    assert torch.allclose(small[2].weight, plain[2].weight / 4)
    assert torch.equal(small[0].weight, plain[0].weight)
    assert torch.equal(small[-1].weight, plain[-1].weight)


def test_two_networks_of_three_layers_are_one_function():
    ours, other = made("jknet", 3), made("incepgcn", 3)
    assert torch.equal(ours(inputs(X), View(GRAPH)), other(inputs(X), View(GRAPH)))


def test_incepgcn_knows_how_far_each_layer_is_from_the_end():
    network = made("incepgcn", 5)
    assert isinstance(network, IncepGCN)
    assert network.hops == [4, 1, 2, 1, 3, 2, 1, 0]
    assert (made("gcn", 3).hops, made("mlp", 3).hops, made("appnp", 2).hops) == ([2, 1, 0], [], [1, 0])


def test_what_cannot_be_made_is_refused_in_one_line():
    for name, settings, words in (
        ("gcn", {"normalization": "gnc"}, "gnc"),
        ("gat", {"attention_dropout": 1.5}, "attention_dropout"),
        ("gat", {"heads": 0}, "heads"),
        ("appnp", {"alpha": "much"}, "alpha"),
        ("mlp", {"self_weight": True}, "self_weight"),
    ):
        with pytest.raises(TadropedgeError, match=words):
            NETWORKS[name].completed(name, settings)
    with pytest.raises(TadropedgeError, match="at least 3 layers"):
        NETWORKS["jknet"].check_layers("jknet", 2)
