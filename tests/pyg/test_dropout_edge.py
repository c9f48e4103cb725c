"""``dropout_edge`` beside PyG's own: the same masks from a generator, pure ones from a seed; and ``exclude_edges``."""

import inspect

import numpy as np
import pytest
import torch
import torch_geometric.nn.conv.supergat_conv
import torch_geometric.utils
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.nn import SuperGATConv

from tadropedge import TadropedgeError, sample_edges
from tadropedge.pyg import DropEdge, dropout_edge, exclude_edges
from tadropedge.testing.graphs import ZOO

theirs = torch_geometric.utils.dropout_edge
SMALL = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
KARATE = torch.cat((ZOO["karate"].pairs, ZOO["karate"].pairs.flip(0)), dim=1)
MESSY = torch.cat((KARATE, KARATE[:, :9], torch.tensor([[3, 5], [3, 5]])), dim=1)  # duplicates and self-loops


def random_arcs(seed, arcs, nodes=30):
    return torch.randint(nodes, (2, arcs), generator=torch.Generator().manual_seed(seed))


# -- PyG's own function ---------------------------------------------------------------------------------------


@given(
    arcs=st.integers(0, 60).flatmap(lambda count: st.integers(0, 99).map(lambda seed: random_arcs(seed, count))),
    p=st.sampled_from([0.0, 0.2, 0.5, 0.93, 1.0]),
    undirected=st.booleans(),
    training=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_equal_seeds_of_torch_give_equal_masks(arcs, p, undirected, training, seed):
    with torch.random.fork_rng():
        found = []
        for function in (theirs, dropout_edge):
            torch.manual_seed(seed)
            found.append((*function(arcs, p, undirected, training), torch.rand(3)))  # and as much is drawn
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


def test_what_their_own_tests_say():
    with torch.random.fork_rng():
        kept, mask = dropout_edge(SMALL, training=False)
        assert kept is SMALL
        assert mask.tolist() == [True] * 6
        torch.manual_seed(5)
        kept, mask = dropout_edge(SMALL)
        assert kept.tolist() == [[0, 1, 2, 2], [1, 2, 1, 3]]
        assert mask.tolist() == [True, False, True, True, True, False]
        torch.manual_seed(6)
        kept, number = dropout_edge(SMALL, force_undirected=True)
        assert kept.tolist() == [[0, 1, 1, 2], [1, 2, 0, 1]]
        assert number.tolist() == [0, 2, 0, 2]


def test_the_signature_begins_with_theirs():
    ours = list(inspect.signature(dropout_edge).parameters.values())
    for mine, their in zip(ours, inspect.signature(theirs).parameters.values(), strict=False):
        assert (mine.name, mine.default, mine.kind) == (their.name, their.default, their.kind)
    assert [one.name for one in ours[4:]] == ["generator", "seed", "epoch"]
    assert all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in ours[4:])


def test_it_can_take_the_place_of_theirs_inside_a_layer_of_theirs(monkeypatch):
    layer, x, losses = SuperGATConv(4, 4, edge_sample_ratio=0.8, is_undirected=True), torch.eye(34)[:, :4], []
    for function in (theirs, dropout_edge):
        monkeypatch.setattr(torch_geometric.nn.conv.supergat_conv, "dropout_edge", function)
        with torch.random.fork_rng():
            torch.manual_seed(3)
            layer(x, KARATE)
            losses.append(layer.get_attention_loss().item())
    assert losses[0] == losses[1]


def test_an_edge_index_of_theirs():
    arcs = EdgeIndex(KARATE, sparse_size=(34, 34))
    with torch.random.fork_rng():
        found = []
        for function in (theirs, dropout_edge):
            torch.manual_seed(1)
            found.append(function(arcs, 0.4))
    assert type(found[0][0]) is type(found[1][0])
    assert torch.equal(found[0][0].as_tensor(), found[1][0].as_tensor())
    kept, mask = dropout_edge(arcs, 0.4, seed=1)
    assert torch.equal(mask, dropout_edge(KARATE, 0.4, seed=1)[1])
    assert torch.equal(kept.as_tensor(), KARATE[:, mask])


@pytest.mark.filterwarnings("ignore:.*Graph break")
def test_compiled():
    with torch.random.fork_rng():
        masks = []
        for function in (dropout_edge, torch.compile(dropout_edge, backend="eager")):
            torch.manual_seed(0)
            masks.append(function(KARATE, 0.3)[1])
    assert torch.equal(*masks)


# -- and what it has not --------------------------------------------------------------------------------------


def test_a_generator_of_ones_own():
    first, second = (dropout_edge(KARATE, generator=torch.Generator().manual_seed(8))[1] for _ in range(2))
    before = torch.get_rng_state()
    assert torch.equal(first, second)
    dropout_edge(KARATE, generator=torch.Generator())
    assert torch.equal(before, torch.get_rng_state())
    with torch.random.fork_rng():
        torch.manual_seed(8)
        assert torch.equal(dropout_edge(KARATE)[1], first)


def test_p_per_arc_is_the_probability_of_dropping():
    p = torch.linspace(0, 1, 156)
    for settings in ({}, {"seed": 4}):
        kept = torch.stack([dropout_edge(KARATE, p, **settings | {"epoch": epoch} if settings else {})[1]
                            for epoch in range(500)])  # fmt: skip
        assert bool(kept[:, 0].all())
        assert not bool(kept[:, -1].any())
        assert torch.allclose(kept.double().mean(0), 1 - p.double(), atol=0.1)
    with torch.random.fork_rng():
        torch.manual_seed(2)
        one = dropout_edge(KARATE, torch.full((156,), 0.3), force_undirected=True)
        torch.manual_seed(2)
        other = theirs(KARATE, 0.3, force_undirected=True)
    assert all(torch.equal(*pair) for pair in zip(one, other, strict=True))
    for number in (torch.tensor(0.3), torch.tensor([0.3]), np.float32(0.3)):
        assert dropout_edge(KARATE, number, seed=1)[1].dtype == torch.bool


def test_with_a_seed_it_is_a_pure_function_of_seed_epoch_and_arc():
    mask = dropout_edge(MESSY, 0.4, seed=7, epoch=3)[1]
    before = torch.get_rng_state()
    assert torch.equal(mask, dropout_edge(MESSY, 0.4, seed=7, epoch=3)[1])
    assert torch.equal(before, torch.get_rng_state())
    assert not torch.equal(mask, dropout_edge(MESSY, 0.4, seed=7, epoch=4)[1])
    assert not torch.equal(mask, dropout_edge(MESSY, 0.4, seed=8, epoch=3)[1])
    order = torch.randperm(MESSY.shape[1], generator=torch.Generator().manual_seed(0))
    for arcs in (MESSY[:, order], MESSY[:, order].int(), MESSY[:, order].t().contiguous().t()):
        assert torch.equal(dropout_edge(arcs, 0.4, seed=7, epoch=3)[1], mask[order])
    fate = {}
    for arc, kept in zip(MESSY.t().tolist(), mask.tolist(), strict=True):
        assert fate.setdefault(tuple(arc), kept) == kept  # a duplicate has the coin of its twin
    assert any(fate[one, other] != fate[other, one] for one, other in fate)  # an arc is not its reverse
    assert torch.equal(dropout_edge(MESSY, 0.4, seed=7, epoch=3, training=False)[0], MESSY)


def test_with_a_seed_and_force_undirected_pairs_are_those_of_the_module_and_the_core():
    low, high = ZOO["karate"].pairs
    for epoch in range(3):
        kept, number = dropout_edge(KARATE, 0.3, force_undirected=True, seed=5, epoch=epoch)
        mask = sample_edges(torch.full((78,), 0.7, dtype=torch.float64), seed=5, epoch=epoch, graph=ZOO["karate"])
        half = int(mask.sum())
        assert torch.equal(kept, torch.cat((torch.stack((low, high))[:, mask], torch.stack((high, low))[:, mask]), 1))
        assert torch.equal(kept[:, :half], KARATE[:, number[:half]])
        module = DropEdge(p=0.3, seed=5)
        module.set_epoch(epoch)
        assert torch.equal(module(KARATE)[1][:78], mask)


def test_the_share_of_kept_arcs_is_1_minus_p():
    arcs = random_arcs(0, 20_000, nodes=5_000)
    for p in (0.1, 0.5, 0.85):
        for settings in ({"seed": 1}, {"seed": 1, "force_undirected": True}, {}):
            kept, _ = dropout_edge(arcs[:, arcs[0] <= arcs[1]], p, **settings)
            count = int((arcs[0] <= arcs[1]).sum()) * (2 if "force_undirected" in settings else 1)
            assert kept.shape[1] / count == pytest.approx(1 - p, abs=0.025)


@pytest.mark.parametrize(
    ("arguments", "settings", "word"),
    [
        ((SMALL, 1.5), {}, "between 0 and 1"),  # PyG's words
        ((SMALL, -0.1), {}, "between 0 and 1"),
        ((SMALL, torch.tensor([0.1, 2, 0, 0, 0, 0])), {}, "between 0 and 1"),
        ((SMALL, float("nan")), {}, "p must"),
        ((SMALL, "0.5"), {}, "p must"),
        ((SMALL, True), {}, "p must"),  # the place of force_undirected is the next one
        ((SMALL, [0.5] * 6), {}, "p must"),
        ((SMALL, np.full(6, 0.5)), {}, "p must"),
        ((SMALL, torch.ones(5)), {}, "6 numbers"),
        ((SMALL, torch.ones(6, 1)), {}, "6 numbers"),
        ((SMALL, torch.ones(6, dtype=torch.bool)), {}, "6 numbers"),  # a mask is no probability
        ((SMALL.t(),), {}, r"\[6, 2\]"),
        ((SMALL.numpy(),), {}, "ndarray"),
        ((Data(edge_index=SMALL),), {}, "Data"),
        ((torch.eye(3).to_sparse(),), {}, "indices"),
        ((SMALL.float(),), {"seed": 1}, "whole numbers"),
        ((SMALL,), {"seed": 0.5}, "seed"),
        ((SMALL,), {"seed": 1, "epoch": -1}, "epoch"),
        ((SMALL,), {"epoch": 2}, "seed="),
        ((SMALL,), {"seed": 1, "generator": torch.Generator()}, "exclude each other"),
    ],
)
def test_bad_input_is_one_line(arguments, settings, word):
    with pytest.raises(ValueError, match=word) as caught:
        dropout_edge(*arguments, **settings)
    assert isinstance(caught.value, TadropedgeError)
    assert "\n" not in str(caught.value)


# -- exclude_edges --------------------------------------------------------------------------------------------


@given(arcs=st.integers(0, 40), pairs=st.integers(0, 40), seed=st.integers(0, 99))
def test_exclude_edges_leaves_out_both_directions_of_every_pair_and_nothing_else(arcs, pairs, seed):
    arcs, pairs = random_arcs(seed, arcs, nodes=8), random_arcs(seed + 100, pairs, nodes=8)
    others, mask = exclude_edges(arcs, pairs)
    asked = {frozenset(pair) for pair in pairs.t().tolist()}
    assert mask.tolist() == [frozenset(arc) not in asked for arc in arcs.t().tolist()]
    assert torch.equal(others, arcs[:, mask])


@pytest.mark.parametrize("pairs", [SMALL.t(), SMALL.float(), SMALL.tolist(), SMALL.bool(), SMALL[0]])
def test_supervised_pairs_are_node_ids(pairs):
    with pytest.raises(TadropedgeError, match="supervision must"):
        exclude_edges(SMALL, pairs)
