"""Unbiased, connected, nested and exact subgraphs as the trainer draws them."""

from __future__ import annotations

from functools import cache

import dense
import numpy as np
import pytest
import torch
from graphs import ZOO, clusters, union
from networks import make_network
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tadropedge import Graph, keep_probabilities, sample_edges, shift_operator
from tadropedge.data.synthetic import load_clusters, load_karate
from tadropedge.errors import TadropedgeError
from tadropedge.nn.layers import Sparse
from tadropedge.nn.network import Network, TrainingStep
from tadropedge.registry import NETWORKS, STRATEGIES
from tadropedge.shift import NORMALIZATIONS
from tadropedge.training.batch import Batch, Course
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.edges import EdgeCoins, keep_row, keep_rows
from tadropedge.training.laboratory import Laboratory, make_task
from tadropedge.training.model_file import load_model, save_model

pytestmark = pytest.mark.usefixtures("one_thread")
KARATE = load_karate()
GRAPHS = {name: ZOO[name] for name in ("karate", "parts", "grid")}
DRAWS = 20


def scores_of(graph):
    return {"degree": torch.arange(1, graph.num_edges + 1, dtype=torch.float64), "aggregate": ramp(graph)}


def ramp(graph):
    """Scores in no order, the smallest 0."""
    generator = torch.Generator().manual_seed(1)
    return torch.randperm(graph.num_edges, generator=generator).double() / graph.num_edges


def coins(graph, trials, inside=None, layers=1):
    seeds = torch.tensor([trial.seed for trial in trials], device=graph.device)
    scores = {name: one.to(graph.device) for name, one in scores_of(graph).items()}
    return EdgeCoins(graph, trials, scores, seeds, inside, layers)


def parts(graph, keep):
    """The component of every node in the graph of the kept edges."""
    low, high = graph.pairs[:, keep].numpy()
    shape = (graph.num_nodes, graph.num_nodes)
    return connected_components(coo_array((np.ones(len(low)), (low, high)), shape=shape), directed=False)[1]


def masks(graph, trial, layers=1, inside=None):
    """Of one trial over many epochs, ``[epochs, layers, M]``."""
    mine = coins(graph, [trial], inside, layers)
    return torch.stack([torch.cat(mine.keeps(torch.tensor(epoch))) for epoch in range(DRAWS)])


# -- unbiased ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("method", ["dropedge:unbiased", "cdf:unbiased:nested"])
def test_the_mean_operator_of_every_normalisation_is_that_of_the_whole_graph(method, large, device):
    """Its variance is S² (1 − p) / p in each entry, which bounds how far a mean of draws may be off."""
    graph = clusters([70, 70], 0.1, 0.02) if large else ZOO["weighted"]
    trials = [
        Trial.of(method, keep_prob=0.4, keep_last=0.6, seed=seed, normalization=name)
        for seed, name in enumerate(NORMALIZATIONS)
    ]
    placed = graph.to(device)
    network = make_network("gcn", graph=placed, trials=len(trials), normalization=list(NORMALIZATIONS))
    mine, draws = coins(placed, trials, layers=2 if "nested" in method else 1), 400 if large else 2000
    sums = squares = torch.zeros((), dtype=torch.float64)
    for epoch in range(draws):
        keeps = mine.keeps(torch.tensor(epoch, device=device))
        step = TrainingStep(x=None, nodes=None, keeps=keeps, draws=None, noise=None, epoch=None,
                            factors=mine.factors(keeps))  # fmt: skip
        operator = network.operators.of(*step.kept[-1])
        assert isinstance(operator, Sparse) == large
        drawn = (operator.values if large else operator).cpu().double()
        sums, squares = sums + drawn, squares + drawn**2
    mean, prob = sums / draws, mine.rows[-1].cpu()
    for trial, name in enumerate(NORMALIZATIONS):
        whole = dense.shift(dense.masked_adjacency(graph, torch.ones(graph.num_edges)), name)
        p = torch.eye(graph.num_nodes, dtype=torch.float64)
        p[tuple(graph.pairs)] = p[tuple(graph.pairs.flip(0))] = prob[trial]
        variance = torch.where(p > 0, whole**2 * (1 - p) / p.clamp_min(1e-9), 0.0)
        if large:
            row, col = graph.pattern.row, graph.pattern.col
            whole, variance = whole[row, col], variance[row, col]
        far = (mean[trial] - whole).abs() / (variance / draws + 1e-12).sqrt()
        assert float(far.max()) < 6
        assert torch.allclose(mean[trial][variance == 0], whole[variance == 0], atol=1e-5)
        found = (squares[trial] / draws - mean[trial] ** 2).sum()
        assert float(found) == pytest.approx(float(variance.sum()), rel=0.1)


@pytest.mark.parametrize("method", ["cdf:unbiased", "cdf:unbiased:nested"])
def test_factors_give_the_operator_of_shift_operator(method):
    graph, trial = ZOO["karate"], Trial.of(method, keep_prob=0.3, seed=4)
    mine, operators = coins(graph, [trial], layers=3), make_network("gcn", graph=graph, trials=1).operators
    keeps = mine.keeps(torch.tensor(2))
    for keep, factors, prob in zip(keeps, mine.factors(keeps), mine.rows.expand(3, -1, -1), strict=True):
        expected = shift_operator(graph, keep, unbiased=prob).to_dense()
        assert torch.equal(operators.of(keep, factors), expected)
    assert coins(graph, [Trial.of("cdf")]).factors(keeps) is None


@pytest.mark.parametrize("name", ["fastgcn", "as-gcn"])
def test_an_inductive_network_has_the_mean_operator_of_its_training_graph(name):
    graph = ZOO["karate"]
    network = make_network(name, graph=graph, trials=2, inductive=[True, False])
    training = (torch.arange(34) % 3 > 0).float().expand(2, -1)
    inside = network.edges(training)
    trials = [Trial.of(f"{name}+dropedge:unbiased", keep_prob=0.5, seed=seed) for seed in (0, 1)]
    mine, sums = coins(graph, trials, inside, layers=2), 0.0
    for epoch in range(2000):
        keeps = mine.keeps(torch.tensor(epoch))
        step = TrainingStep(x=None, nodes=None, keeps=keeps, draws=None, noise=None, epoch=None,
                            factors=mine.factors(keeps), inside=inside)  # fmt: skip
        sums = sums + torch.stack([step.shift(network.problem, layer).values for layer in range(2)])
    for trial in range(2):
        whole = shift_operator(graph, inside[trial]).values
        assert torch.allclose(sums[:, trial] / 2000, whole.expand(2, -1), atol=6 * float(whole.max()) / 2000**0.5)
        assert bool((sums[:, trial] == 0).equal((whole == 0).expand(2, -1)))


def test_a_keep_probability_of_0_is_refused_before_anything_is_trained():
    seen = []
    lab = Laboratory(KARATE, epochs=2, progress=lambda *step: seen.append(step))
    with pytest.raises(TadropedgeError, match="dropedge:unbiased: unbiased needs keep probabilities above 0, got 0"):
        lab.train([Trial.of("dropedge"), Trial.of("dropedge:unbiased", keep_prob=0.0)])
    with pytest.raises(TadropedgeError, match="above 0"):
        lab.train([Trial.of("dropedge"), Trial.of("cdf:unbiased:nested", keep_prob=0.5), *zero_last()])
    assert seen == []


def zero_last():
    return [Trial.of("dropedge:unbiased:nested", keep_prob=0.5, keep_last=0.0)]


# -- connected, exact -------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("options", ["connected", "connected:exact", "connected:nested", "connected:nested:exact"])
@pytest.mark.parametrize("last", [None, 0.8])
def test_connected_subgraphs_have_the_components_of_the_graph(graph, options, last):
    trial = Trial.of(f"proportional:{options}", keep_ratio=0.86, keep_last=last, seed=3)
    drawn = masks(graph, trial, layers=3)
    whole = parts(graph, torch.ones(graph.num_edges, dtype=torch.bool))
    for keep in drawn.flatten(0, 1):
        assert np.array_equal(parts(graph, keep), whole)
    assert len({tuple(row.tolist()) for row in drawn[:, 0]}) > 1
    expected = keep_rows(graph, trial, scores_of(graph), 3).sum(dim=1)
    counts = drawn.double().sum(dim=2)
    if "exact" in options:
        assert torch.equal(counts, (expected + 0.5).floor().expand_as(counts))
    else:
        assert torch.allclose(counts.mean(dim=0), expected, atol=5 * (graph.num_edges * 0.1 / DRAWS) ** 0.5)


@pytest.mark.parametrize("options", ["connected", "connected:exact", "connected:nested"])
def test_on_some_edges_forests_are_those_of_their_graph(options):
    graph = union(ZOO["karate"], ZOO["grid"])
    inside = ~((graph.pairs == 33).any(dim=0) | (graph.pairs == 40).any(dim=0))
    drawn = masks(graph, Trial.of(f"dropedge:{options}", keep_prob=0.8), layers=2, inside=inside[None])
    assert not bool((drawn & ~inside).any())
    for keep in drawn.flatten(0, 1):
        assert np.array_equal(parts(graph, keep), parts(graph, inside))


@pytest.mark.parametrize("options", ["connected", "connected:exact", "connected:nested", "connected:nested:exact"])
@pytest.mark.parametrize("some", [False, True])
def test_forests_that_are_drawn_ahead_are_those_of_their_epochs(options, some, device):
    graph = ZOO["karate"].to(device)
    trials = [Trial.of(f"dropedge:{options}", keep_prob=0.8, keep_last=0.9, seed=seed) for seed in (3, 4)]
    inside = torch.stack([~(graph.pairs == node).any(dim=0) for node in (33, 5)]) if some else None
    early, late = (coins(graph, trials, inside, layers=2) for _ in range(2))
    early.ahead = 3
    for epoch in range(8):
        early.look_ahead(epoch)
        now = torch.tensor(epoch, device=device)
        for one, other in zip(early.keeps(now), late.keeps(now), strict=True):
            assert torch.equal(one, other)
    assert early.trees.shape[0] == 3
    assert late.trees is None


def test_a_budget_below_the_forest_is_refused_before_anything_is_trained():
    seen = []
    lab = Laboratory(KARATE, epochs=2, progress=lambda *step: seen.append(step))
    with pytest.raises(TadropedgeError, match="dropedge:connected: connected masks keep at least 33 of 78 edges"):
        lab.train([Trial.of("original"), Trial.of("dropedge:connected", keep_ratio=0.4)])
    with pytest.raises(TadropedgeError, match=r"keep ratio 0.423077\), but the probabilities sum to 31.2"):
        lab.train([Trial.of("original"), Trial.of("dropedge:connected:nested", keep_prob=0.9, keep_last=0.4)])
    assert seen == []
    assert not lab.train([Trial.of("dropedge:connected", keep_ratio=0.423077)])[0].failed
    with pytest.raises(TadropedgeError, match=r"graphsage\+dropedge:connected: connected masks keep at least"):
        lab.train([Trial.of("graphsage+dropedge:connected", keep_prob=0.1, inductive=True)])


@pytest.mark.parametrize("option", ["exact", "connected", "connected:exact"])
def test_masks_are_those_of_sample_edges_and_every_layer_has_its_own(option, device):
    graph = ZOO["karate"]
    trials = [Trial.of(f"cdf:{option}", keep_prob=p, seed=seed) for seed, p in ((0, 0.5), (9, 0.2))]
    mine = coins(graph.to(device), trials, layers=3)
    how = {"exact": "exact" in option, "connected": graph if "connected" in option else None}
    for epoch in range(3):
        keeps = mine.keeps(torch.tensor(epoch, device=device))
        for place, trial in enumerate(trials):
            prob = keep_row(graph, trial, scores_of(graph))
            assert torch.equal(keeps[0][place].cpu(), sample_edges(prob, trial.seed, epoch, **how))
        assert not torch.equal(keeps[0], keeps[1])
        assert not torch.equal(keeps[1], keeps[2])


# -- nested -----------------------------------------------------------------------------------------------

NESTED = ["nested", "nested:exact", "connected:nested", "connected:nested:exact", "unbiased:nested"]
RULES = ["dropedge", "cdf", "inverse-proportional", "dropsens"]
PAIRS = [(rule, options) for rule in RULES for options in NESTED]
PAIRS.remove(("inverse-proportional", "unbiased:nested"))  # the edge of the largest score has probability 0


@pytest.mark.parametrize(("rule", "options"), PAIRS)
@pytest.mark.parametrize(("first", "last"), [(0.55, None), (0.55, 0.8), (0.9, 0.55), (0.7, 0.7)])
def test_masks_grow_where_rates_rise_and_shrink_where_they_fall(rule, options, first, last, device):
    graph = ZOO["karate"]
    trial = Trial.of(f"{rule}:{options}", keep_ratio=first, keep_last=last, seed=2, sensitivity=0.3)
    drawn = masks(graph, trial, layers=4)
    rising = drawn if first <= (1.0 if last is None else last) else drawn.flip(1)
    for sparser, denser in zip(rising[:, :-1].unbind(1), rising[:, 1:].unbind(1), strict=True):
        assert not bool((sparser & ~denser).any())
    rates = np.linspace(first, 1.0 if last is None else last, 4)
    rows = keep_rows(graph, trial, scores_of(graph), 4)
    assert rows.mean(dim=1).numpy() == pytest.approx(rates)
    kept = drawn.double().mean(dim=(0, 2)).numpy()
    assert kept == pytest.approx(rates, abs=0.007 if "exact" in options else 0.07)
    there = coins(graph.to(device), [trial], layers=4).keeps(torch.tensor(1, device=device))
    assert torch.equal(torch.cat(there).cpu(), drawn[1])


def test_the_first_layer_has_the_coins_of_the_method_without_the_option():
    graph = ZOO["karate"]
    nested, plain = (coins(graph, [Trial.of(name, seed=5)], layers=3) for name in ("cdf:nested", "cdf"))
    for epoch in map(torch.tensor, range(3)):
        assert torch.equal(nested.keeps(epoch)[0], plain.keeps(epoch)[0])
    assert bool(nested.keeps(epoch)[2].all())  # by default rates rise to 1


def test_a_single_layer_has_the_first_rate():
    graph, trial = ZOO["karate"], Trial.of("dropedge:nested", keep_prob=0.4, keep_last=0.9)
    assert torch.equal(keep_rows(graph, trial, {}, 1), torch.full((1, 78), 0.4, dtype=torch.float64))
    assert Laboratory(KARATE, Architecture(layers=1)).kept_share(trial) == pytest.approx(0.4)


@pytest.mark.parametrize("layers", [2, 3, 5])
def test_the_kept_share_is_the_mean_over_layers(layers):
    lab = Laboratory(KARATE, Architecture(layers=layers))
    assert lab.kept_share(Trial.of("dropedge:nested", keep_prob=0.4)) == pytest.approx(0.7)
    assert lab.kept_share(Trial.of("cdf:nested", keep_ratio=0.9, keep_last=0.6)) == pytest.approx(0.75)
    means = [
        float(keep_probabilities(KARATE.graph, keep_prob=rate, strategy="dropsens", sensitivity=0.2).mean())
        for rate in np.linspace(0.2, 1.0, layers)
    ]
    trial = Trial.of("dropsens:nested", keep_prob=0.2, sensitivity=0.2)
    assert lab.kept_share(trial) == pytest.approx(np.mean(means))
    assert lab.kept_share(Trial.of("graphsage+dropedge:nested", keep_prob=0.4)) == pytest.approx(0.7)


def test_a_batch_draws_one_mask_per_layer():
    trials = [Trial.of("dropedge:nested", keep_prob=0.3, seed=seed) for seed in (1, 2)]
    task = make_task(KARATE, [KARATE.split])
    for name, layers, count in (("gcn", 3, 3), ("incepgcn", 4, 5), ("jknet", 3, 3)):
        batch = Batch(task, Architecture(name, layers, 8), trials, [0, 0], Course(epochs=1))
        keeps = batch.coins.keeps(torch.tensor(0))
        assert [keep.shape for keep in keeps] == [(2, 78)] * count


def test_nested_and_per_layer_exclude_each_other():
    lab, trial = Laboratory(KARATE, per_layer=True), Trial.of("cdf:nested")
    with pytest.raises(TadropedgeError, match="cdf:nested: nested and per_layer exclude each other: nested masks come"):
        lab.check([trial])
    with pytest.raises(TadropedgeError, match="exclude each other"):
        lab.train([trial])


def test_a_rule_that_gives_less_at_a_larger_budget_cannot_be_nested(monkeypatch):
    def swinging(weights, keep_ratio):
        return torch.where(torch.arange(len(weights)) == 0, 1 - keep_ratio, keep_ratio).expand(len(weights))

    monkeypatch.setitem(STRATEGIES, "swinging", swinging)
    with pytest.raises(TadropedgeError, match="swinging:nested cannot be nested: its rule gives some edge a smaller"):
        Laboratory(KARATE, epochs=1).train([Trial.of("effective-swinging:nested", keep_ratio=0.5)])


# -- plug-ins, files and memory -----------------------------------------------------------------------------


class Masks(Network):
    """A network of a user, written before there were options: a linear layer on kept edges."""

    @classmethod
    def shapes(cls, sizes, settings):
        return {"weight": (sizes.num_features, sizes.num_classes)}

    def training(self, state, step):
        assert all(keep is not None for keep in step.keeps)
        return self.problem.shift(step.keep(0)) @ (self.problem.shift(step.keep(1)) @ (step.x @ state["weight"])), 0.0

    def evaluation(self, state, x, epoch):
        return self.problem.shift(None) @ (self.problem.shift(None) @ (x @ state["weight"]))


def test_networks_that_read_masks_work_as_before_and_cannot_be_unbiased(monkeypatch):
    monkeypatch.setitem(NETWORKS, "masks", Masks)
    lab = Laboratory(KARATE, epochs=3)
    options = ["", ":connected", ":exact", ":nested", ":connected:nested:exact"]
    outcomes = lab.train([Trial.of(f"masks+dropedge{option}", keep_prob=0.6) for option in options])
    assert not any(outcome.failed for outcome in outcomes)
    assert len({outcome.train_loss.tobytes() for outcome in outcomes}) == len(options)
    with pytest.raises(TadropedgeError, match="masks sees which edges exist but not their weights"):
        Trial.of("masks+dropedge:unbiased")


def test_a_saved_model_remembers_the_options_of_its_trial(tmp_path):
    trial = Trial.of("cdf:unbiased:nested", keep_prob=0.4, keep_last=0.8)
    [outcome] = Laboratory(KARATE, Architecture(hidden=8), epochs=2).train([trial], keep_state=True)
    sizes = (KARATE.num_features, KARATE.num_classes)
    save_model(tmp_path, outcome, Architecture(hidden=8), "karate", *sizes, num_nodes=34)
    assert load_model(tmp_path).trial == trial


@cache
def wide():
    return load_clusters(clusters=3, nodes=50)


def test_what_options_hold_is_part_of_the_memory_that_a_training_needs():
    lab = Laboratory(wide(), Architecture(layers=4, hidden=8))
    plain, *others = [
        lab._largest([Trial.of(f"dropedge{option}")])
        for option in ("", ":unbiased", ":nested", ":connected", ":exact", ":expected", ":unbiased:nested")
    ]
    assert plain == lab._largest([Trial.of()])
    assert all(other > plain for other in others)
    assert others[-1] > max(others[:2])


def test_graphs_without_edges_have_nothing_to_draw():
    graph = Graph.from_edge_index(torch.zeros((2, 0), dtype=torch.int64), num_nodes=3)
    with pytest.raises(TadropedgeError, match="edge"):
        coins(graph, [Trial.of("dropedge:connected:nested")], layers=2).keeps(torch.tensor(0))
