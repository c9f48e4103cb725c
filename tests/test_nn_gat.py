"""Graph attention against PyTorch Geometric's GATConv on the kept graph, and against closed forms."""

from __future__ import annotations

import itertools

import pytest
import torch
from graphs import ZOO
from networks import make_network
from torch.autograd import gradcheck
from torch_geometric.nn import GATConv

from tadropedge import Graph, TadropedgeError, sample_edges
from tadropedge.nn.draws import Draws
from tadropedge.nn.entries import Entries
from tadropedge.nn.gat import GAT, elu, softmax_of_rows
from tadropedge.nn.network import Sizes, TrainingStep
from tadropedge.training.noise import Dropout

pytestmark = pytest.mark.usefixtures("one_thread")
CPU = torch.device("cpu")
GRAPH = ZOO["karate"]
FEATURES, CLASSES = 7, 3
SEEDS = [3, 1, 4]
DEPTHS = [(1, 8, 8), (2, 8, 8), (2, 5, 1), (4, 6, 3)]  # layers, hidden, heads


def normal(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


X = normal(1, GRAPH.num_nodes, FEATURES)


def network(layers, hidden, heads, graph=GRAPH, trials=3, **settings):
    sizes = {"features": FEATURES, "hidden": hidden, "classes": CLASSES}
    return make_network("gat", layers, **sizes, graph=graph, trials=trials, heads=heads, **settings)


def masks(count, graph=GRAPH):
    """Masks ``[T, M]``, one for each layer, with few edges, so that some node keeps none."""
    prob = torch.full((graph.num_edges,), 0.3, dtype=torch.float64)
    return [sample_edges(prob, SEEDS, epoch) for epoch in range(count)]


def step_of(keeps, graph=GRAPH, *, factors=None, noise=None, seeds=SEEDS, x=X):
    return TrainingStep(
        x=x,
        nodes=torch.ones(len(seeds), graph.num_nodes),
        keeps=keeps,
        draws=Draws(torch.tensor(seeds), torch.tensor(0)),
        noise=noise or (lambda h, layer: h),
        epoch=torch.tensor(0),
        factors=factors,
    )


def started(mine, seeds=SEEDS):
    """Starting parameters with biases that are not 0."""
    state = mine.initial(seeds, CPU)
    for place, (name, value) in enumerate(state.items()):
        if name.endswith(".bias"):
            value += 0.1 * normal(*value.shape, seed=place)
    return state


def plain(mine, state, trial, keeps, negative_slope=0.2):
    """One trial's network of GATConv layers with the same parameters; its logits on the kept graphs, and its layers."""
    h, layers = X[0], {}
    for place, layer in enumerate(mine.layers):
        conv = GATConv(layer.inputs, layer.width, heads=layer.heads, negative_slope=negative_slope)
        with torch.no_grad():
            conv.lin.weight.copy_(state[f"{layer.name}.weight"][trial].T)
            conv.att_src.copy_(state[f"{layer.name}.source"][trial][None])
            conv.att_dst.copy_(state[f"{layer.name}.target"][trial][None])
            conv.bias.copy_(state[f"{layer.name}.bias"][trial])
        pairs = GRAPH.pairs[:, keeps[place if len(keeps) > 1 else 0][trial]]
        h = conv(h, torch.cat((pairs, pairs.flip(0)), dim=1))
        h = h if layer.name == "output" else torch.nn.functional.elu(h)
        layers[layer.name] = conv
    return h, layers


@pytest.mark.parametrize("per_layer", [False, True])
@pytest.mark.parametrize(("layers", "hidden", "heads"), DEPTHS)
def test_logits_and_gradients_equal_to_pytorch_geometric_on_the_kept_graph(layers, hidden, heads, per_layer):
    mine = network(layers, hidden, heads)
    state, keeps = started(mine), masks(layers if per_layer else 1)
    for value in state.values():
        value.requires_grad_()
    probe = normal(len(SEEDS), GRAPH.num_nodes, CLASSES, seed=8)
    logits, penalty = mine.training(state, step_of(keeps))
    assert penalty == 0
    (logits * probe).sum().backward()
    for trial in range(len(SEEDS)):
        expected, convs = plain(mine, state, trial, keeps)
        assert torch.allclose(logits[trial], expected, atol=1e-5)
        (expected * probe[trial]).sum().backward()
        for name, conv in convs.items():
            theirs = {"weight": conv.lin.weight.grad.T, "source": conv.att_src.grad[0], "target": conv.att_dst.grad[0]}
            for key, gradient in {**theirs, "bias": conv.bias.grad}.items():
                assert torch.allclose(state[f"{name}.{key}"].grad[trial], gradient, atol=1e-4), (name, key)


def test_evaluation_and_another_slope_equal_to_pytorch_geometric():
    mine = network(2, 8, 4, negative_slope=0.7)
    state, whole = started(mine), [torch.ones((len(SEEDS), GRAPH.num_edges), dtype=torch.bool)]
    logits = mine.evaluation(state, X, torch.tensor(0))
    for trial in range(len(SEEDS)):
        assert torch.allclose(logits[trial], plain(mine, state, trial, whole, 0.7)[0], atol=1e-5)


def attention(mine, state, keep, factors=None, x=X):
    """α of the first layer as a dense tensor ``[T, heads, N, N]``."""
    entries, layer = mine.problem.entries, mine.layers[0]
    found = mine.attention(state, layer, layer.signals(state, x), mine._seen(keep, factors, None))
    n = entries.num_nodes
    full = found.new_zeros((len(found), layer.heads, n * n))
    return full.index_copy(2, entries.row * n + entries.col, found.transpose(1, 2)).unflatten(-1, (n, n))


def test_dropped_edges_weigh_nothing_and_a_node_without_edges_attends_to_itself():
    mine, [keep] = network(2, 8, 4), masks(1)
    alpha = attention(mine, started(mine), keep)
    for trial in range(len(SEEDS)):
        kept = torch.eye(GRAPH.num_nodes, dtype=torch.bool)
        low, high = GRAPH.pairs[:, keep[trial]]
        kept[low, high] = kept[high, low] = True
        assert torch.equal(alpha[trial] > 0, kept.expand_as(alpha[trial]))
        alone = kept.sum(1) == 1
        assert bool(alone.any())
        assert bool((alpha[trial].diagonal(dim1=1, dim2=2)[:, alone] == 1).all())
    assert torch.allclose(alpha.sum(dim=-1), torch.ones(()), atol=1e-6)


def test_unbiased_attention_is_that_of_the_whole_graph_on_average():
    """Over all 2^M subgraphs, each with its probability: α, and the logits of one layer, which are linear in α."""
    graph = Graph.from_edge_index(torch.tensor([[0, 1, 2, 0], [1, 2, 3, 2]]), num_nodes=5)
    prob = torch.tensor([0.5, 0.25, 0.8, 0.4])
    keep = torch.tensor(list(itertools.product([False, True], repeat=4)))
    chance = torch.where(keep, prob, 1 - prob).prod(dim=1)
    mine, x = network(1, 8, 1, graph, trials=len(keep)), normal(1, 5, FEATURES)
    state = {name: value.expand(len(keep), *value.shape[1:]) for name, value in started(mine, [2]).items()}
    factors = keep / prob
    whole = attention(mine, state, None, x=x)[0]
    drawn = attention(mine, state, keep, factors, x=x)
    assert torch.allclose(torch.einsum("t,thij->hij", chance, drawn), whole, atol=1e-6)
    step = step_of([keep], graph, factors=[factors], seeds=list(range(len(keep))), x=x)
    logits = mine.training(state, step)[0]
    expected = mine.evaluation(state, x, torch.tensor(0))[0]
    assert torch.allclose(torch.einsum("t,tnc->nc", chance, logits), expected, atol=1e-5)
    plain_mean = torch.einsum("t,thij->hij", chance, attention(mine, state, keep, x=x))
    assert not torch.allclose(plain_mean, whole, atol=0.05)  # without factors, weight moves to the kept entries


# -- dropout of attention ---------------------------------------------------------------------------------------


def noise_of(rates, seeds=SEEDS, epoch=0):
    return Dropout(torch.tensor(rates), torch.tensor(seeds), torch.tensor(epoch))


def test_attention_is_dropped_by_its_own_rate():
    """In one layer: all of it leaves the bias, none of it changes nothing, and half of it is right on average."""
    rates, still = [0.0, 1.0, 0.5], noise_of([0.0, 0.0, 0.0])
    mine, quiet = (network(1, 8, 1, **settings) for settings in ({"attention_dropout": rates}, {}))
    state = started(quiet)
    expected = quiet.training(state, step_of([None], noise=still))[0]
    logits = mine.training(state, step_of([None], noise=still))[0]
    assert torch.equal(logits[0], expected[0])
    assert torch.equal(logits[1], state["output.bias"][1].expand(GRAPH.num_nodes, -1))
    many = 4000
    mine = network(1, 8, 1, trials=many, attention_dropout=0.5)
    same = {name: value[2:].expand(many, *value.shape[1:]) for name, value in state.items()}
    seeds = list(range(many))
    drawn = mine.training(same, step_of([None], noise=noise_of([0.0] * many, seeds), seeds=seeds))[0]
    error = (drawn.mean(dim=0) - expected[2]).abs()
    assert bool((error < 5 * drawn.std(dim=0) / many**0.5 + 1e-6).all())


def test_noise_of_attention_is_a_pure_function_of_seed_and_step():
    mine, alone = network(2, 8, 4, attention_dropout=0.5), network(2, 8, 4, trials=1, attention_dropout=0.5)
    state = started(mine)
    together = mine.training(state, step_of([None], noise=noise_of([0.0] * 3)))[0]
    own = {name: value[1:2] for name, value in state.items()}
    one = alone.training(own, step_of([None], noise=noise_of([0.0], SEEDS[1:2]), seeds=SEEDS[1:2]))[0]
    assert torch.equal(together[1:2], one)
    other = network(2, 8, 4, attention_dropout=0.5)
    assert not torch.allclose(other.training(state, step_of([None], noise=noise_of([0.0] * 3, epoch=1)))[0], together)


@pytest.mark.parametrize("rate", [1.5, -0.1])
def test_a_rate_that_is_no_probability_is_refused(rate):
    with pytest.raises(TadropedgeError, match=f"attention_dropout must .*got {rate}"):
        network(2, 8, 4, attention_dropout=rate)


# -- pieces -----------------------------------------------------------------------------------------------------


def test_softmax_of_rows_and_its_gradients():
    entries = Entries(ZOO["parts"])
    scores = normal(2, entries.count, 3, dtype=torch.float64).requires_grad_()
    mask = (normal(2, entries.count, seed=1) > 0) | ~entries.edge
    soft = softmax_of_rows(entries, scores, mask)
    for node in range(entries.num_nodes):
        mine = entries.row == node
        expected = scores[:, mine].masked_fill(~mask[:, mine, None], -torch.inf).softmax(dim=1)
        assert torch.allclose(soft[:, mine], expected)
    assert gradcheck(lambda one: softmax_of_rows(entries, one, mask), scores)
    huge = softmax_of_rows(entries, 1e4 * scores.detach(), mask)
    assert bool(torch.isfinite(huge).all())


def test_elu_is_that_of_torch():
    h = torch.cat((torch.linspace(-30, 30, 61), torch.zeros(3))).requires_grad_()
    ours, theirs = elu(h), torch.nn.functional.elu(h)
    assert torch.allclose(ours, theirs)
    slopes = [torch.autograd.grad(out.sum(), h)[0] for out in (ours, theirs)]
    assert torch.allclose(*slopes, atol=1e-6)


def test_estimates_of_memory_hold_what_is_saved_for_gradients():
    for layers, heads in ((2, 1), (2, 8), (6, 4)):
        mine = network(layers, 8, heads, trials=1, attention_dropout=0.5)
        state = started(mine, [0])
        for value in state.values():
            value.requires_grad_()
        held = {}

        def keep(tensor, held=held):
            held[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            logits = mine.training(state, step_of([masks(1)[0][:1]], noise=noise_of([0.5], [0]), seeds=[0]))
        assert logits[0].requires_grad
        sizes = Sizes(num_nodes=34, num_features=FEATURES, num_classes=CLASSES, layers=layers, hidden=8)
        told = mine.problem.settings[0]
        entries = GRAPH.pattern.num_entries
        assert sum(held.values()) < 4 * GAT.footprint(sizes, told, 34, entries)
        more = GAT.footprint(sizes, told, 34, 2 * entries) - GAT.footprint(sizes, told, 34, entries)
        assert more > entries * heads * layers  # the attention of every head and layer
