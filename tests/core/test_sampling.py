"""The coins, and the masks that options draw from them, against exact integers and statistics."""

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from tadropedge import Dropping, Graph, TadropedgeError, sample_edges
from tadropedge.operators.kernels.words import draw_key, mix, mix_tensor, pair_keys, signed
from tadropedge.sampling.coins import FOREST, sample, uniform
from tadropedge.sampling.forest import boruvka, kruskal
from tadropedge.testing.graphs import ZOO, join, union
from tadropedge.testing.options import OptionContract

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
HALF = torch.full((20_000,), 0.5, dtype=torch.float64)


class TestConnected(OptionContract):
    option = "connected"
    keeps_zero = True


class TestExact(OptionContract):
    option = "exact"


class TestUnbiased(OptionContract):
    option = "unbiased"


# -- one coin --------------------------------------------------------------------------------------------


def by_hand(words, seed, epoch, stream=0):
    """The documented coin in exact Python integers: an odd multiplier, an offset, 53 bits, read in [0, 1)."""
    state = mix((mix((seed + (stream + 1) * GOLDEN) & MASK) + epoch * GOLDEN) & MASK)
    a, b = mix((state + GOLDEN) & MASK) | 1, mix((state + 2 * GOLDEN) & MASK)
    return [Fraction((signed((a * word + b) & MASK) >> 11) + 2**52, 2**53) for word in words]


def word(first, second):
    """The key of a pair of nodes: SplitMix64 of both ids, the smaller one first."""
    low, high = sorted((first, second))
    return mix((mix((low + 1) * GOLDEN & MASK) + high * GOLDEN) & MASK)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 10**6), st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_against_exact_integers(seed, epoch, prob):
    coins = by_hand([mix((place + 1) * GOLDEN & MASK) for place in range(len(prob))], seed, epoch)
    ours = sample_edges(torch.tensor(prob, dtype=torch.float64), seed, epoch)
    assert ours.tolist() == [coin < p for coin, p in zip(coins, prob, strict=True)]


def test_literal_bits_never_change():
    """A published result can be drawn again: these bits are part of the interface."""
    mask = sample_edges(torch.full((16,), 0.5, dtype=torch.float64), seed=2024, epoch=7)
    assert "".join("01"[bit] for bit in mask.tolist()) == "1110001010111001"


def test_literal_bits_of_pairs_of_seeds_and_of_an_exact_number():
    prob, pairs = torch.linspace(0, 1, 16, dtype=torch.float64), torch.arange(32).view(2, 16) * 10**5
    found = [
        sample_edges(prob, 7, 3, pairs=pairs),
        sample_edges(prob, 7, 3, exact=True),
        *sample_edges(prob, range(3), 3),
        sample_edges(prob, 2**63 - 1, 10**6),
    ]
    assert ["".join("01"[bit] for bit in mask.tolist()) for mask in found] == [
        "0000110111101111",
        "0010010000111111",
        *("0000101110111001", "0010000111111011", "0000011100011111"),
        "0001000111111101",
    ]


def test_every_row_of_probabilities_must_cover_a_forest():
    karate = ZOO["karate"]
    prob = torch.tensor([0.9, 0.3], dtype=torch.float64)[:, None].expand(2, karate.num_edges)
    assert sample_edges(prob[:1], [0, 1], 0, graph=karate, connected=True).shape == (2, 78)
    with pytest.raises(TadropedgeError, match="at least 33 of 78"):
        sample_edges(prob, [0, 1], 0, graph=karate, connected=True)


def test_lists_too_long_to_be_looked_at_at_once_have_the_bits_of_short_ones():
    prob = torch.rand(2**20 + 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    kept = sample_edges(prob, 7, 3)
    assert torch.equal(kept[:3000], sample_edges(prob[:3000], 7, 3))
    pairs = torch.randint(0, 10**6, (2, len(prob)), generator=torch.Generator().manual_seed(1))
    kept = sample_edges(prob, 7, 3, pairs=pairs)
    assert torch.equal(kept[-3000:], sample_edges(prob[-3000:], 7, 3, pairs=pairs[:, -3000:].flip(0)))


@given(st.lists(st.integers(0, MASK), min_size=1, max_size=9), st.integers(0, 2**40), st.integers(0, 2**33))
def test_tensor_arithmetic_is_the_integer_arithmetic(words, epoch, stream):
    tensor = torch.tensor([signed(each) for each in words])
    assert mix_tensor(tensor).tolist() == [signed(mix(each)) for each in words]
    multiplier, offset = draw_key(tensor, epoch, stream, tensor.device)
    alone = [draw_key(signed(each), epoch, stream, tensor.device) for each in words]
    assert multiplier[:, 0].tolist() == [each[0] for each in alone]
    assert offset[:, 0].tolist() == [int(each[1]) for each in alone]


def test_same_bits_on_every_device_and_in_every_batch(device):
    prob = torch.rand(3, 5000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    seeds = [5, 0, -9]
    alone = torch.stack([sample_edges(row, seed, 4) for row, seed in zip(prob, seeds, strict=True)])
    for listed in (seeds, torch.tensor(seeds), np.array(seeds), tuple(seeds)):
        assert torch.equal(sample_edges(prob.to(device), listed, 4).cpu(), alone)
    assert torch.equal(sample_edges(prob[1].to(device), seeds, 4).cpu()[1], alone[1])
    assert torch.equal(sample_edges(prob, seeds[0], np.int64(4))[0], alone[0])
    assert torch.equal(sample_edges(prob[:1], seeds, 4), sample_edges(prob[0], seeds, 4))


def test_an_edge_is_kept_where_its_coin_is_below_its_probability_to_the_last_bit():
    keys = pair_keys(ZOO["karate"].pairs)
    coins = uniform(keys, 5, 2)
    for prob, kept in ((coins, False), (coins + 2.0**-53, True)):
        assert sample_edges(prob, 5, 2, graph=ZOO["karate"]).tolist() == [kept] * 78
        assert Dropping.parse("dropedge").plan(ZOO["karate"], prob=prob).sample(5, 2).tolist() == [kept] * 78


def test_no_global_state():
    torch.manual_seed(1)
    before, one = torch.get_rng_state(), sample_edges(HALF, 3, 3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(sample_edges(HALF, 3, 3), one)


def test_frequencies_follow_the_probabilities():
    prob, draws = torch.linspace(0, 1, 101, dtype=torch.float64), 20_000
    masks = sample_edges(prob, seed=list(range(draws)), epoch=2)
    assert not masks[:, 0].any()
    assert masks[:, -1].all()
    error = (masks.double().mean(dim=0) - prob) / (prob * (1 - prob) / draws).sqrt().clamp_min(1e-12)
    assert float(error.abs().max()) < 4.5
    assert stats.kstest(error[1:-1].numpy(), "norm").pvalue > 1e-3


def test_kept_counts_are_binomial():
    """Independent across edges: the number of kept edges has the variance of independent coins."""
    prob = torch.full((1000,), 0.3, dtype=torch.float64)
    counts = sample_edges(prob, seed=list(range(4000)), epoch=1).sum(dim=1).numpy()
    assert abs(counts.mean() - 300) < 4 * np.sqrt(210 / 4000)
    assert counts.var() == pytest.approx(210, rel=0.1)


def test_no_pair_of_epochs_edges_seeds_or_streams_is_correlated():
    """Correlations have a standard error of one over the root of what is averaged; 200 of each, all pairs."""
    size, draws = 200, 4000
    keys = pair_keys(torch.arange(2 * draws).view(2, -1))
    tables = [
        torch.stack([sample_edges(HALF[:draws], 9, epoch) for epoch in range(size)]),
        torch.stack([sample_edges(HALF[:size], 9, epoch) for epoch in range(draws)]).T,
        sample_edges(HALF[:draws], range(size), 9),
        torch.stack([sample(keys, HALF[:draws], 1, 2, stream) for stream in range(size)]),
    ]
    for table in tables:
        signs = table.double() * 2 - 1
        products = (signs @ signs.T / np.sqrt(draws))[tuple(torch.triu_indices(size, size, 1))]
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
    assert torch.equal(sample_edges(prob, 8, 2, pairs=pairs.int()), mask)
    some = torch.randperm(400, generator=generator)[:150]
    assert torch.equal(sample_edges(prob[some], 8, 2, pairs=pairs[:, some]), mask[some])


def test_with_a_graph_an_edge_is_its_two_node_ids():
    graph = ZOO["karate"]
    prob = torch.full((graph.num_edges,), 0.5)
    mask = sample_edges(prob, 3, 1, graph=graph)
    assert torch.equal(mask, sample_edges(prob, 3, 1, pairs=graph.pairs))
    more = join(graph, [[0], [33]])  # another edge changes the places of others, not who they are
    also = sample_edges(torch.full((79,), 0.5), 3, 1, graph=more)
    kept = {tuple(pair) for pair in more.pairs.T[also].tolist()} - {(0, 33)}
    assert kept == {tuple(pair) for pair in graph.pairs.T[mask].tolist()}


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


def textbook(graph, priority):
    """Kruskal: edges by priority and number, each kept unless its ends are joined already."""
    tree, keep = list(range(graph.num_nodes)), [False] * graph.num_edges
    low, high = graph.pairs.tolist()
    for edge in sorted(range(graph.num_edges), key=lambda edge: (priority[edge], edge)):
        one, other = tree[low[edge]], tree[high[edge]]
        if one != other:
            keep[edge] = True
            tree = [other if name == one else name for name in tree]
    return keep


def masks_by_hand(graph, prob, seed, epoch, *, connected, exact):
    """The documented masks, with fractions."""
    words = [word(*pair) for pair in graph.pairs.T.tolist()]
    coins = by_hand(words, seed, epoch)
    order = [float(coin) / p if p else np.inf for coin, p in zip(coins, prob, strict=True)]
    forest = [False] * len(prob)
    if connected:
        second = by_hand(words, seed, epoch, FOREST)
        forest = textbook(graph, [float(coin) / p if p else np.inf for coin, p in zip(second, prob, strict=True)])
    total, size = sum(map(Fraction, prob)), sum(forest)
    if exact:
        count = max(size, int(total + Fraction(1, 2) + Fraction(1, 2**20)))
        kept = sorted(range(len(prob)), key=lambda edge: (not forest[edge], order[edge], edge))[:count]
        return [edge in kept for edge in range(len(prob))]
    rest = sum(Fraction(p) for p, inside in zip(prob, forest, strict=True) if not inside)
    share = float((total - size) / rest) if rest else 0.0
    return [inside or coin < share * p for inside, coin, p in zip(forest, coins, prob, strict=True)]


@given(st.sampled_from(sorted(ZOO)), st.integers(0, MASK), st.integers(0, 10**6), st.booleans())
def test_masks_by_hand(name, seed, epoch, connected):
    graph = ZOO[name]
    prob = affordable(graph, seed=epoch)
    for exact in (False, True):
        ours = sample_edges(prob, seed, epoch, graph=graph, connected=connected, exact=exact)
        assert ours.tolist() == masks_by_hand(graph, prob.tolist(), seed, epoch, connected=connected, exact=exact)


@pytest.mark.parametrize("exact", [False, True])
def test_components_stay_whole_on_all_graphs_of_seven_nodes(exact):
    """The masks of all graphs become one graph, whose components are counted at once."""
    every = [Graph.from_networkx(each) for each in nx.graph_atlas_g() if len(each) > 1 and nx.is_connected(each)]
    kept, seeds = [], range(6)
    assert len(every) == 995
    for number, graph in enumerate(every):
        prob = affordable(graph, seed=number, share=number % 5 / 4.1)  # no sum ends in one half
        kept.append(sample_edges(prob, seeds, number, graph=graph, connected=True, exact=exact))
        if exact:
            assert kept[-1].sum(dim=1).unique().tolist() == [int(prob.sum() + 0.5 + 1e-9)]
    assert parts(union(*every), torch.cat(kept, dim=1)) == [995] * len(seeds)


@pytest.mark.parametrize("name", ZOO)
def test_the_forest_is_that_of_kruskal_in_both_ways_to_run(name, device):
    graph = ZOO[name]
    priority = torch.randint(0, 7, (5, graph.num_edges), generator=torch.Generator().manual_seed(0)).double()
    priority[priority == 6] = torch.inf
    order = priority.argsort(dim=-1, stable=True)
    there = [each.to(device) for each in (graph.pairs, order)]
    ours = boruvka(there[0], graph.num_nodes, there[1], graph.components.largest)
    assert ours.tolist() == [textbook(graph, row) for row in priority.tolist()]
    assert [kruskal(graph.pairs, graph.num_nodes, row).tolist() for row in order] == ours.tolist()


@pytest.mark.parametrize("length", [2, 3, 4, 5, 6, 8, 9, 10, 33, 34, 64, 65, 66])
def test_long_chains_are_joined_in_the_rounds_that_are_promised(length):
    """On a path, rising priorities make one tree of all nodes in one round, zigzags halve them: the two extremes."""
    pairs = torch.stack((torch.arange(length - 1), torch.arange(1, length)))
    place = torch.arange(length - 1)
    priority = torch.stack((place, -place, place ^ 1, (place & -place), place % 3, 0 * place)).double()
    assert boruvka(pairs, length, priority.argsort(dim=-1, stable=True), length).all()


def test_an_exact_mask_keeps_the_smallest_coins_over_probabilities():
    keys = pair_keys(ZOO["karate"].pairs)
    prob = affordable(ZOO["karate"])
    mask = sample_edges(prob, 4, 2, graph=ZOO["karate"], exact=True)
    order = uniform(keys, 4, 2) / prob
    assert float(order[mask].max()) < float(order[~mask].min())


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"prob": torch.tensor([0.5, 1.5])}, "prob must lie in"),
        ({"prob": torch.tensor([0.5, float("nan")])}, "prob must lie in"),
        ({"prob": [0.5]}, "prob must be a tensor"),
        ({"prob": torch.ones(1, 1, 1)}, "shape"),
        ({"seed": 2**64}, "seed"),
        ({"seed": "1"}, "seed"),
        ({"seed": []}, "seed"),
        ({"epoch": 0.5}, "epoch"),
        ({"connected": True}, "graph="),
        ({"graph": ZOO["karate"]}, "78 entries"),
        ({"prob": torch.ones(2, 3), "seed": [1, 2, 3]}, "2 rows"),
        ({"prob": torch.full((78,), 0.1), "graph": ZOO["karate"], "connected": True}, "at least 33 of 78"),
        ({"prob": torch.full((78,), 32.9 / 78), "graph": ZOO["karate"], "connected": True}, "at least 33 of 78"),
    ],
)
def test_bad_input_is_one_line(given_, words):
    with pytest.raises(TadropedgeError, match=words) as caught:
        sample_edges(**{"prob": torch.tensor([0.5, 0.5]), **given_})
    assert "\n" not in str(caught.value)
