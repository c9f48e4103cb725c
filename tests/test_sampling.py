from fractions import Fraction
from itertools import permutations

import graphs
import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from test_forest import NoLook, kruskal

from tadropedge import Graph, TadropedgeError, sample_directed, sample_edges
from tadropedge.forest import ForestPlan
from tadropedge.sampling import (
    FOREST,
    check_connected,
    draw,
    draw_forests,
    key,
    key_tensor,
    mix,
    mix_tensor,
    node_pair_words,
    pair_words,
    signed,
    toss_around,
)

LITERAL = {  # connected, exact
    (True, False): "010000110111001101111",
    (False, True): "001000101011101101111",
    (True, True): "010000110111001101111",
}
HALF = torch.full((20_000,), 0.5, dtype=torch.float64)


def draw_forest(plan, words, seeds, epoch, prob, **how):
    return draw_forests(plan, words, seeds, epoch[None], prob, **how)[0]


def correlation(one, other):
    """The correlation of two masks of fair coins; its standard error is one over the root of the length."""
    return float(((one.double() - 0.5) * (other.double() - 0.5)).mean() * 4)


def reference(count, prob, seed, epoch):
    """The documented coin in exact Python integers: SplitMix64 words, an odd multiplier, an offset, 53 bits."""
    golden, mask = 0x9E3779B97F4A7C15, 2**64 - 1
    state = mix((mix((seed + golden) & mask) + epoch * golden) & mask)
    a, b = mix((state + golden) & mask) | 1, mix((state + 2 * golden) & mask)
    words = [mix((place + 1) * golden & mask) for place in range(count)]
    # Read as a signed number, as int64 tensors do, the upper 53 bits lie in [−2⁵², 2⁵²).
    coins = [signed((a * word + b) & mask) >> 11 for word in words]
    return [coin < (p - 0.5) * 2**53 for coin, p in zip(coins, prob, strict=True)]


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 10**6), st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_against_exact_integers(seed, epoch, prob):
    ours = sample_edges(torch.tensor(prob, dtype=torch.float64), seed, epoch)
    assert ours.tolist() == reference(len(prob), prob, seed, epoch)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=9), st.integers(0, 2**40))
def test_tensor_arithmetic_is_the_integer_arithmetic(words, epoch):
    tensor = torch.tensor([signed(word) for word in words])
    assert mix_tensor(tensor).tolist() == [signed(mix(word)) for word in words]
    multiplier, offset = key_tensor(tensor, torch.tensor(epoch))
    assert list(zip(multiplier.tolist(), offset.tolist(), strict=True)) == [key(signed(w), epoch) for w in words]
    assert all(value % 2 == 1 for value in multiplier.tolist())


def test_literal_bits_never_change():
    """A published result can be drawn again: these bits are part of the interface."""
    mask = sample_edges(torch.full((16,), 0.5, dtype=torch.float64), seed=2024, epoch=7)
    assert "".join("01"[bit] for bit in mask.tolist()) == "1110001010111001"


def test_same_bits_on_every_device_and_in_every_batch(device):
    generator = torch.Generator().manual_seed(0)
    prob = torch.rand(3, 5000, generator=generator, dtype=torch.float64)
    seeds = [5, 0, -9]
    alone = torch.stack([sample_edges(row, seed, 4) for row, seed in zip(prob, seeds, strict=True)])
    assert torch.equal(sample_edges(prob.to(device), seeds, 4).cpu(), alone)
    assert torch.equal(sample_edges(prob.to(device), torch.tensor(seeds), 4).cpu(), alone)
    assert torch.equal(sample_edges(prob[1].to(device), seeds, 4).cpu()[1], alone[1])
    assert torch.equal(sample_edges(prob, seeds[0], 4)[0], alone[0])


def test_no_global_state():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = sample_edges(HALF, 3, 3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    np.random.seed(5)  # noqa: NPY002
    assert torch.equal(sample_edges(HALF, 3, 3), one)


def test_certain_edges():
    prob = torch.tensor([0.0, 1.0] * 50, dtype=torch.float64)
    masks = sample_edges(prob, seed=list(range(500)))
    assert not masks[:, ::2].any()
    assert masks[:, 1::2].all()


def test_frequencies_follow_the_probabilities():
    prob = torch.linspace(0, 1, 101, dtype=torch.float64)
    draws = 20_000
    frequency = sample_edges(prob, seed=list(range(draws)), epoch=2).double().mean(dim=0)
    error = (frequency - prob) / (prob * (1 - prob) / draws).sqrt().clamp_min(1e-12)
    assert float(error.abs().max()) < 4.5
    assert stats.kstest(error[1:-1].numpy(), "norm").pvalue > 1e-3


def test_kept_counts_are_binomial():
    """Independent across edges: the number of kept edges has the variance of independent coins."""
    prob = torch.full((1000,), 0.3, dtype=torch.float64)
    counts = sample_edges(prob, seed=list(range(4000)), epoch=1).sum(dim=1).numpy()
    assert abs(counts.mean() - 300) < 4 * np.sqrt(210 / 4000)
    assert counts.var() == pytest.approx(210, rel=0.1)


def test_independence_across_edges_epochs_and_seeds():
    limit = 4.5 / np.sqrt(len(HALF))
    base = sample_edges(HALF, 0, 0)
    for lag in (1, 2, 3, 64, 4096):  # neighbours in the list of edges
        assert abs(correlation(base[:-lag], base[lag:])) < 4.5 / np.sqrt(len(HALF) - lag)
    for step in (1, 2, 3, 7, 100, 2**20):
        assert abs(correlation(base, sample_edges(HALF, 0, step))) < limit
        assert abs(correlation(base, sample_edges(HALF, step, 0))) < limit
    assert abs(correlation(sample_edges(HALF, 1, 2), sample_edges(HALF, 2, 1))) < limit


def test_no_pair_of_epochs_or_edges_is_correlated():
    """All pairs of 200 epochs over 4,000 edges, and all pairs of 200 edges over 4,000 epochs."""
    size, draws = 200, 4000
    coins = torch.stack([sample_edges(HALF[:draws], 9, epoch) for epoch in range(size)]).double() * 2 - 1
    over_time = torch.stack([sample_edges(HALF[:size], 9, epoch) for epoch in range(draws)]).double().T * 2 - 1
    for table in (coins, over_time):
        products = (table @ table.T / np.sqrt(draws))[tuple(torch.triu_indices(size, size, 1))]
        assert float(products.abs().max()) < 6
        assert float(products.var()) == pytest.approx(1, abs=0.05)


def test_triples_are_independent_too():
    table = torch.stack([sample_edges(HALF[:60], 1, epoch) for epoch in range(8000)]).double() * 2 - 1
    triples = torch.combinations(torch.arange(60), 3)[::7]
    products = (table[:, triples[:, 0]] * table[:, triples[:, 1]] * table[:, triples[:, 2]]).sum(0) / np.sqrt(8000)
    assert float(products.abs().max()) < 6
    assert float(products.var()) == pytest.approx(1, abs=0.1)


def test_pairs_by_node_ids_do_not_depend_on_direction_order_or_batch():
    generator = torch.Generator().manual_seed(3)
    pairs = torch.randint(0, 1000, (2, 400), generator=generator)
    prob = torch.rand(400, generator=generator, dtype=torch.float64)
    mask = sample_edges(prob, 8, 2, pairs=pairs)
    assert torch.equal(sample_edges(prob, 8, 2, pairs=pairs.flip(0)), mask)
    some = torch.randperm(400, generator=generator)[:150]
    assert torch.equal(sample_edges(prob[some], 8, 2, pairs=pairs[:, some]), mask[some])
    wide = torch.stack((torch.arange(20_000), torch.arange(20_000) + 1))
    assert float(sample_edges(HALF, 0, 0, pairs=wide).double().mean()) == pytest.approx(0.5, abs=0.016)


def test_seeds_and_ids_of_any_integer_type():
    ours = sample_edges(HALF, [3, 4], 1)
    for seeds in (np.array([3, 4]), torch.tensor([3, 4], dtype=torch.int32), range(3, 5), (3, 4)):
        assert torch.equal(sample_edges(HALF, seeds, np.int64(1)), ours)
    pairs = torch.arange(40_000).view(2, -1)
    assert torch.equal(sample_edges(HALF, pairs=pairs.int()), sample_edges(HALF, pairs=pairs))


@given(st.integers(1, 60), st.floats(0, 1), st.integers(0, 99))
def test_directed_rule_keeps_exactly_the_floor(pairs, p, seed):
    mask = sample_directed(pairs, p, seed=seed, epoch=1)
    assert mask.shape == (2 * pairs,)
    assert int(mask.sum()) == int(p * 2 * pairs)


def test_directed_rule_is_fair_and_breaks_symmetry(device):
    masks = sample_directed(50, 0.7, seed=list(range(3000)), device=device)
    assert masks.device.type == device.type
    assert masks.sum(dim=1).unique().tolist() == [70]
    assert masks.double().mean(dim=0).cpu().numpy() == pytest.approx(0.7, abs=0.04)
    assert bool((masks[:, :50] != masks[:, 50:]).any())
    assert torch.equal(masks[17].cpu(), sample_directed(50, 0.7, seed=17))


# -- masks that keep components whole, and masks of an exact size ------------------------------------------------


def affordable(graph, seed=0, share=0.5):
    """Uneven probabilities, zeros among them where they can be, whose sum is above the size of the forest."""
    generator = torch.Generator().manual_seed(seed)
    prob = torch.rand(graph.num_edges, generator=generator, dtype=torch.float64) ** 2
    prob[torch.rand(graph.num_edges, generator=generator) < 0.2] = 0
    size = graph.num_nodes - graph.components.count
    wanted = size + share * (graph.num_edges - size)
    return 1 - (1 - prob) * min(1, (graph.num_edges - wanted) / max(1e-9, float((1 - prob).sum())))


def parts(graph, masks):
    """The number of components that each mask leaves."""
    rows, edges = masks.nonzero().T.numpy()
    low, high = graph.pairs.numpy()[:, edges] + rows * graph.num_nodes
    size = len(masks) * graph.num_nodes
    _, labels = connected_components(coo_matrix((np.ones(len(rows)), (low, high)), (size, size)), directed=False)
    return [len(np.unique(row)) for row in labels.reshape(len(masks), -1)]


def coins_over(prob, words, seed, epoch, stream=0):
    """The coins of a stream in Python's integers, read as numbers in [0, 1), and the same divided by p."""
    a, b = key(seed, epoch, stream)
    coins = [(signed((a * word + b) & (2**64 - 1)) >> 11) + 2**52 for word in words]
    return [coin / 2**53 for coin in coins], [
        coin / 2**53 / p if p else np.inf for coin, p in zip(coins, prob, strict=True)
    ]


def by_hand(graph, prob, words, seed, epoch, *, connected, exact):
    """The documented masks, with Kruskal's forest and fractions."""
    coins, order = coins_over(prob, words, seed, epoch)
    forest = [False] * len(prob)
    if connected:
        forest = kruskal(graph, coins_over(prob, words, seed, epoch, FOREST)[1])
    total, size = sum(map(Fraction, prob)), sum(forest)
    if exact:
        count = max(size, int(total + Fraction(1, 2) + Fraction(1, 2**20)))
        kept = sorted(range(len(prob)), key=lambda edge: (not forest[edge], order[edge], edge))[:count]
        return [edge in kept for edge in range(len(prob))]
    rest = sum(Fraction(p) for p, inside in zip(prob, forest, strict=True) if not inside)
    share = float((total - size) / rest) if rest else 0.0
    return [inside or coin < share * p for inside, coin, p in zip(forest, coins, prob, strict=True)]


def connected_graphs():
    """All 996 connected graphs of one to seven nodes."""
    return [graphs.of(each) for each in nx.graph_atlas_g() if each.number_of_nodes() and nx.is_connected(each)]


@pytest.mark.parametrize("exact", [False, True])
def test_components_stay_whole_on_all_graphs_of_seven_nodes(exact):
    """The masks of all graphs become one graph, whose components are counted at once."""
    everything, kept, seeds = connected_graphs(), [], range(6)
    assert len(everything) == 996
    for number, graph in enumerate(everything):
        prob = affordable(graph, seed=number, share=number % 5 / 4.1)  # no sum ends in one half
        kept.append(sample_edges(prob, seeds, number, connected=graph, exact=exact))
        if exact:
            assert kept[-1].sum(dim=1).unique().tolist() == [int(prob.sum() + 0.5 + 1e-9)]
    assert parts(graphs.union(*everything), torch.cat(kept, dim=1)) == [996] * len(seeds)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("name", graphs.ZOO)
def test_components_stay_whole_in_the_zoo(name, exact):
    graph = graphs.ZOO[name]
    for share in (0, 0.3, 1):
        prob = affordable(graph, share=share)
        masks = sample_edges(prob, range(50), 3, connected=graph, exact=exact)
        assert parts(graph, masks) == [graph.components.count] * 50
        assert share < 1 or masks.all()
        assert share > 0 or (masks.sum(dim=1) == graph.num_nodes - graph.components.count).all()


@given(st.sampled_from(sorted(graphs.ZOO)), st.integers(0, 2**64 - 1), st.integers(0, 10**6), st.booleans())
def test_masks_by_hand(name, seed, epoch, connected):
    graph = graphs.ZOO[name]
    prob = affordable(graph, seed=epoch)
    words = [mix((place + 1) * 0x9E3779B97F4A7C15 & (2**64 - 1)) for place in range(graph.num_edges)]
    for exact in (False, True):
        ours = sample_edges(prob, seed, epoch, connected=graph if connected else None, exact=exact)
        assert ours.tolist() == by_hand(graph, prob.tolist(), words, seed, epoch, connected=connected, exact=exact)


def test_literal_bits_of_both_options_never_change():
    graph = graphs.ZOO["cliques"]
    prob = torch.arange(graph.num_edges, dtype=torch.float64) / 40 + 0.3
    masks = {
        (connected, exact): sample_edges(prob, 2024, 7, connected=graph if connected else None, exact=exact)
        for connected, exact in ((True, False), (False, True), (True, True))
    }
    assert {name: "".join("01"[bit] for bit in mask.tolist()) for name, mask in masks.items()} == LITERAL


def test_the_same_masks_on_every_device_in_every_batch_and_without_a_look(device):
    graph, seeds = graphs.ZOO["parts"], [5, 0, -9]
    prob = torch.stack([affordable(graph, seed) for seed in range(3)])
    plan, epoch = ForestPlan.of(graph.to(device)), torch.tensor(4, device=device)
    words = pair_words(graph.num_edges, device)
    for connected, exact in ((True, False), (False, True), (True, True)):
        options = {"connected": graph if connected else None, "exact": exact}
        alone = torch.stack([sample_edges(row, seed, 4, **options) for row, seed in zip(prob, seeds, strict=True)])
        there = {**options, "connected": graph.to(device) if connected else None}
        assert torch.equal(sample_edges(prob.to(device), seeds, 4, **there).cpu(), alone)
        assert torch.equal(sample_edges(prob[1].to(device), seeds, 4, **there).cpu()[1], alone[1])
        assert torch.equal(sample_edges(prob, seeds[0], 4, **options)[0], alone[0])
        tensors = (words, torch.tensor(seeds, device=device), epoch, prob.to(device))
        with NoLook():
            fixed = draw(*tensors, forest=plan if connected else None, exact=exact, fixed=True)
        assert torch.equal(fixed.cpu(), alone)


def test_a_cuda_graph_records_masks_of_both_options(device):
    if device.type != "cuda":
        pytest.skip("CUDA graphs are recorded on a GPU")
    graph = graphs.ZOO["karate"]
    prob, seeds = torch.stack([affordable(graph, seed) for seed in range(3)]), torch.arange(3)
    plan, words, epoch = ForestPlan.of(graph.to(device)), pair_words(graph.num_edges, device), seeds[0].to(device)
    for options in ({"forest": plan}, {"exact": True}, {"forest": plan, "exact": True}):
        tensors = (words, seeds.to(device), epoch, prob.to(device))
        draw(*tensors, **options, fixed=True)  # warm up
        torch.cuda.synchronize()
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recorded):
            masks = draw(*tensors, **options, fixed=True)
        for number in (3, 4):
            epoch.fill_(number)
            recorded.replay()
            expected = sample_edges(
                prob, seeds, number, connected=graph if "forest" in options else None, exact="exact" in options
            )
            assert torch.equal(masks.cpu(), expected)


def test_a_forest_of_equal_probabilities_is_that_of_a_random_order():
    """The chance of each tree of the complete graph of four nodes, counted over all 720 orders of its edges."""
    graph = graphs.complete(4)
    chance = {}
    for order in permutations(range(6)):
        tree = tuple(kruskal(graph, order))
        chance[tree] = chance.get(tree, 0) + 1 / 720
    draws = 20_000
    seeds, prob = torch.arange(draws), torch.full((6,), 0.7, dtype=torch.float64)
    forests = draw_forest(ForestPlan.of(graph), pair_words(6, prob.device), seeds, torch.tensor(1), prob)
    counts = dict.fromkeys(chance, 0)
    for tree in forests.tolist():
        counts[tuple(tree)] += 1
    assert len(chance) == 16
    assert stats.chisquare(list(counts.values()), [draws * each for each in chance.values()]).pvalue > 1e-3


def test_likely_edges_are_likely_in_the_forest():
    """In a triangle with p = 1, 1, 3/4 the third edge is left out with probability 1/4 + 3/4 · 1/3 = 1/2."""
    graph, prob = graphs.complete(3), torch.tensor([1, 1, 0.75], dtype=torch.float64)
    forests = draw_forest(ForestPlan.of(graph), pair_words(3, prob.device), torch.arange(20_000), torch.tensor(0), prob)
    assert forests.double().mean(dim=0).tolist() == pytest.approx([0.75, 0.75, 0.5], abs=4.5 * 0.5 / 20_000**0.5)


def test_expected_number_of_kept_edges():
    graph, draws = graphs.ZOO["karate"], 20_000
    for share in (0.05, 0.4, 0.9):
        prob = affordable(graph, share=share)
        counts = sample_edges(prob, range(draws), connected=graph).sum(dim=1).double()
        assert abs(float(counts.mean() - prob.sum())) < 4.5 * float(counts.std()) / draws**0.5


def test_given_the_forest_the_others_are_independent_coins_of_c_times_p():
    """For every tree of a small graph: frequencies, and the products of two edges, are those of c · p."""
    graph, draws = graphs.complete(4), 40_000
    prob, seeds = torch.tensor([0.9, 0.3, 0.7, 0.5, 1, 0.6], dtype=torch.float64), torch.arange(draws)
    words = pair_words(6, prob.device)
    forests = draw_forest(ForestPlan.of(graph), words, seeds, torch.tensor(0), prob)
    masks = sample_edges(prob, seeds, connected=graph)
    tested = 0
    for forest in forests.unique(dim=0):
        among = masks[(forests == forest).all(dim=1)].double()
        p = torch.where(forest, 1.0, prob * (prob.sum() - 3) / prob[~forest].sum())
        for one, other in torch.combinations(torch.arange(6), 2, with_replacement=True).tolist():
            expected = float(p[one] if one == other else p[one] * p[other])
            found = float((among[:, one] * among[:, other]).mean())
            assert abs(found - expected) <= 5 * (expected * (1 - expected) / len(among)) ** 0.5 + 1e-12
            tested += 1
    assert tested == 16 * 21


def test_layers_epochs_and_seeds_have_forests_of_their_own():
    """Membership of an edge of a cycle of 8, over 20,000 seeds: uncorrelated between layers and with the coins."""
    graph, prob, seeds = graphs.cycle(8), torch.full((8,), 0.9, dtype=torch.float64), torch.arange(20_000)
    plan, words, epoch = ForestPlan.of(graph), pair_words(8, prob.device), torch.tensor(2)
    left_out = (~draw_forest(plan, words, seeds, epoch, prob)).double() - 1 / 8
    others = {
        "layer": ~draw_forest(plan, words, seeds, epoch, prob, layer=1),
        "epoch": ~draw_forest(plan, words, seeds, epoch + 1, prob),
        "seed": ~draw_forest(plan, words, seeds + 1, epoch, prob),
        "coin": sample_edges(torch.full_like(prob, 1 / 8), seeds, 2),
        "coin of the layer": draw(words, seeds, epoch, torch.full_like(prob, 1 / 8), layer=1),
    }
    for name, other in others.items():
        correlation = (left_out * (other.double() - 1 / 8)).mean(dim=0) / (7 / 64)
        assert float(correlation.abs().max()) < 4.5 / 20_000**0.5, name


def test_masks_around_one_forest_are_nested_where_the_probabilities_are():
    graph, seeds, epoch = graphs.ZOO["karate"], torch.arange(200), torch.tensor(5)
    low, words = affordable(graph, share=0.3), pair_words(graph.num_edges, torch.device("cpu"))
    raised = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    trees = draw_forest(ForestPlan.of(graph), words, seeds, epoch, low)
    few, more = (toss_around(trees, words, seeds, epoch, prob) for prob in (low, low + raised * (1 - low)))
    assert bool((few <= more).all())
    assert bool((few < more).any())
    assert torch.equal(few, sample_edges(low, seeds, 5, connected=graph))


def test_forests_by_node_ids_do_not_depend_on_the_order_of_edges():
    graph = graphs.ZOO["karate"]
    prob, ids = affordable(graph), torch.randperm(5000, generator=torch.Generator().manual_seed(2))[: graph.num_nodes]
    shuffled = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(3))
    other, place = graphs.relabel(graph, shuffled)
    old = torch.empty_like(shuffled)
    old[shuffled] = torch.arange(graph.num_nodes)
    moved = torch.empty_like(prob)
    moved[place] = prob
    for exact in (False, True):
        mask = sample_edges(prob, 8, 2, pairs=ids[graph.pairs], connected=graph, exact=exact)
        again = sample_edges(moved, 8, 2, pairs=ids[old[other.pairs]].flip(0), connected=other, exact=exact)
        assert torch.equal(again[place], mask)
    tensors = (node_pair_words(ids[graph.pairs]), torch.tensor(8), torch.tensor(2), prob)
    assert torch.equal(draw(*tensors, forest=ForestPlan.of(graph), exact=True), mask)


def test_edges_inside_are_a_graph_of_their_own():
    graph = graphs.ZOO["clusters"]
    generator = torch.Generator().manual_seed(4)
    inside = torch.rand(4, graph.num_edges, generator=generator) < 0.5
    prob = torch.rand(graph.num_edges, generator=generator, dtype=torch.float64) * 0.3 + 0.7
    prob[::9] = 0
    words, seeds, epoch = pair_words(graph.num_edges, prob.device), torch.arange(4), torch.tensor(1)
    for connected, exact in ((False, False), (True, False), (False, True), (True, True)):
        plan = ForestPlan.of(graph) if connected else None
        masks = draw(words, seeds, epoch, prob, forest=plan, exact=exact, inside=inside, layer=2)
        for row, kept in enumerate(masks):
            some = inside[row]
            part = ForestPlan.of(Graph.from_edge_index(graph.pairs[:, some], graph.num_nodes)) if connected else None
            alone = draw(words[some], seeds[row], epoch, prob[some], forest=part, exact=exact, layer=2)
            assert torch.equal(kept[some], alone)
            assert not kept[~some].any()


@given(st.lists(st.sampled_from([0.0, 1e-320, 1e-9, 0.1, 0.25, 0.5, 0.9, 1.0]), max_size=30), st.integers(0, 99))
def test_exact_counts(prob, seed):
    mask = sample_edges(torch.tensor(prob, dtype=torch.float64), seed, exact=True)
    total = sum(map(Fraction, prob))
    if abs(total % 1 - Fraction(1, 2)) > Fraction(1, 10**6):  # five times 0.1 is about a half
        assert int(mask.sum()) == int(total + Fraction(1, 2))
    assert abs(int(mask.sum()) - total) <= Fraction(1, 2) + Fraction(1, 10**6)
    assert not any(kept for kept, p in zip(mask.tolist(), prob, strict=True) if p == 0)


def test_exact_masks_keep_edges_about_as_often_as_their_probabilities():
    """Exactly so where these are equal, by symmetry; else within a few hundredths."""
    draws = 20_000
    equal = sample_edges(torch.full((40,), 0.3, dtype=torch.float64), range(draws), exact=True)
    assert equal.sum(dim=1).unique().tolist() == [12]
    assert float((equal.double().mean(dim=0) - 0.3).abs().max()) < 4.5 * (0.21 / draws) ** 0.5
    uneven = torch.linspace(0, 1, 101, dtype=torch.float64)
    frequency = sample_edges(uneven, range(draws), exact=True).double().mean(dim=0)
    assert float((frequency - uneven).abs().max()) < 0.05


def test_edges_of_probability_zero_connect_only_what_nothing_else_does():
    graph = graphs.union(graphs.two_cliques(5), graphs.path(3))
    prob = torch.ones(graph.num_edges, dtype=torch.float64)
    bridge = int(((graph.pairs[0] == 4) & (graph.pairs[1] == 5)).nonzero())
    inner = 0  # an edge inside a clique
    prob[[bridge, inner]] = torch.tensor([0.0, 0.0], dtype=torch.float64)
    for exact in (False, True):
        masks = sample_edges(prob, range(200), connected=graph, exact=exact)
        assert masks[:, bridge].all()
        assert not masks[:, inner].any()


def test_the_smallest_probabilities_come_before_zero():
    """Coin over probability would overflow: such edges still come before those of probability 0."""
    graph = graphs.cycle(4)
    prob = torch.tensor([1, 1e-320, 0, 1], dtype=torch.float64)
    forest = draw_forest(ForestPlan.of(graph), pair_words(4, prob.device), torch.arange(50), torch.tensor(0), prob)
    assert forest.tolist() == [[True, True, False, True]] * 50


def test_the_least_that_is_named_is_enough():
    for graph in (graphs.ZOO["karate"], graphs.ZOO["parts"], graphs.cycle(7)):
        size, edges = graph.num_nodes - graph.components.count, graph.num_edges
        with pytest.raises(TadropedgeError, match=f"keep at least {size} of {edges} edges") as caught:
            sample_edges(torch.full((edges,), size / edges - 1e-4), connected=graph)
        ratio = float(str(caught.value).split("keep ratio ")[1].split(")")[0])
        assert size / edges <= ratio < size / edges + 1e-5
        for dtype in (torch.float32, torch.float64):
            for enough in (ratio, size / edges):
                mask = sample_edges(torch.full((edges,), enough, dtype=dtype), connected=graph, exact=True)
                assert int(mask.sum()) == size


def test_nothing_to_draw():
    empty, none = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.int64), 3), torch.empty(0, dtype=torch.float64)
    for options in ({"connected": empty}, {"exact": True}, {"connected": empty, "exact": True}):
        assert sample_edges(none, **options).shape == (0,)
        assert sample_edges(none, [1, 2], **options).shape == (2, 0)


def test_the_sum_inside_is_checked_row_by_row():
    graph = graphs.cycle(6)
    inside = torch.ones(2, 6, dtype=torch.bool)
    inside[1, 0] = False  # a path: all five edges are needed
    prob = torch.full((6,), 0.9, dtype=torch.float64)
    check_connected(ForestPlan.of(graph), prob, inside[:1])
    with pytest.raises(TadropedgeError, match=r"at least 5 of 5 edges \(keep ratio 1\), but .* sum to 4.5"):
        check_connected(ForestPlan.of(graph), prob, inside)


BAD = {
    "list": (lambda: sample_edges([0.5]), "prob must be a tensor, got list"),
    "high": (lambda: sample_edges(torch.tensor([0.5, 1.5])), r"prob must lie in \[0, 1\], got 1.5"),
    "low": (lambda: sample_edges(torch.tensor([-1.0])), "got -1"),
    "nan": (lambda: sample_edges(torch.tensor([float("nan")])), "got nan"),
    "bool": (lambda: sample_edges(torch.tensor([True])), "got dtype torch.bool"),
    "shape": (lambda: sample_edges(torch.ones(1, 1, 1)), r"shape \[M\] or \[T, M\], got \[1, 1, 1\]"),
    "rows": (lambda: sample_edges(torch.ones(2, 4), seed=[1, 2, 3]), "prob has 2 rows, but there are 3 seeds"),
    "seed": (lambda: sample_edges(HALF, seed=[0.5]), r"seed must be a whole number or a list of them, got \[0.5\]"),
    "seed word": (lambda: sample_edges(HALF, seed="1"), "seed must be a whole number or a list of them, got '1'"),
    "no seeds": (lambda: sample_edges(HALF, seed=[]), "seed must be a whole number"),
    "epoch": (lambda: sample_edges(HALF, epoch=1.5), "epoch must be a whole number, got 1.5"),
    "pairs": (
        lambda: sample_edges(HALF, pairs=torch.zeros(2, 3).long()),
        r"pairs must have 20000 entries .* got shape \[2, 3\]",
    ),
    "device": (
        lambda: sample_edges(HALF[:1], pairs=torch.zeros(2, 1, device="meta")),
        "pairs must be a dense tensor .* on meta",
    ),
    "pairs of floats": (
        lambda: sample_edges(HALF, pairs=torch.zeros(2, 20_000)),
        r"pairs must hold whole numbers, got torch.fl",
    ),
    "three ends": (lambda: sample_edges(HALF, pairs=torch.zeros(3, 20_000).int()), r"whole numbers \[2, M\], got"),
    "no seed": (lambda: sample_edges(HALF, seed=None), "seed must be a whole number or a list of them, got None"),
    "epochs": (lambda: sample_edges(HALF, epoch=np.array([1, 2])), "epoch must be a whole number, got array"),
    "connected": (lambda: sample_edges(HALF, connected=True), "connected must be a Graph, got bool True"),
    "other edges": (
        lambda: sample_edges(HALF, connected=graphs.cycle(5)),
        r"prob must have 5 entries .* edge of the graph in connected, got shape \[20000\]",
    ),
    "less than a forest": (
        lambda: sample_edges(torch.full((20,), 0.365), connected=graphs.union(graphs.cycle(4), *[graphs.path(2)] * 16)),
        r"connected masks keep at least 19 of 20 edges \(keep ratio 0.95\), but the probabilities sum to 7.3",
    ),
    "less in a row": (
        lambda: sample_edges(torch.tensor([[1.0] * 5, [0.5] * 5]), connected=graphs.cycle(5)),
        r"at least 4 of 5 edges \(keep ratio 0.8\), but the probabilities sum to 2.5",
    ),
    "exact number": (lambda: sample_edges(HALF, exact=3), "exact must be True or False, got 3"),
    "directed pairs": (lambda: sample_directed(-1, 0.5), "num_pairs must be a whole number of at least 0, got -1"),
    "directed list": (lambda: sample_directed(3, [0.5]), r"keep_prob must lie in \[0, 1\], got \[0.5\]"),
    "directed": (lambda: sample_directed(4, 1.1), r"keep_prob must lie in \[0, 1\], got 1.1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, message = BAD[name]
    with pytest.raises(TadropedgeError, match=message):
        call()
