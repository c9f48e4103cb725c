"""Scores, rules and options of TADropEdge by name; the module with given probabilities is in test_pyg.py."""

import copy
import gc
import io
import math
import pickle
import threading
import weakref
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from test_pyg import make_data
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv
from torture import cases

from tadropedge import (
    SCORES,
    STRATEGIES,
    Graph,
    TadropedgeError,
    edge_scores,
    keep_probabilities,
    sample_edges,
    shift_operator,
)
from tadropedge.pyg import AddKeepProbability, AddScore, AddShift, TADropEdge, ta_dropout_edge
from tadropedge.shift import NORMALIZATIONS

OWN = {"aggregate": {"q": 3}}  # settings without which a score does nothing


def degree_rule(**changes):
    return {"score": "degree", "strategy": "proportional", "keep_ratio": 0.6} | changes


def pair_prob(data, **rule):
    """The graph of ``data`` and the keep probability of its pairs, by the functions that know no PyG."""
    graph = Graph.from_data(data)
    score = rule.pop("score", None)
    weights = torch.ones(graph.num_edges) if score is None else edge_scores(graph, score)
    return graph, keep_probabilities(weights, **rule)


# -- rules by name ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [name for name in SCORES if name != "column"])
def test_every_score_by_name(score):
    data, own = make_data(), OWN.get(score, {})
    drop = TADropEdge(seed=7, score=score, strategy="proportional", keep_ratio=0.4, **own)
    scored = AddKeepProbability("proportional", keep_ratio=0.4)(AddScore(score, **own)(data))
    assert torch.equal(drop.probabilities(data), scored.edge_keep_prob)
    for epoch in range(3):
        wanted = sample_edges(scored.edge_keep_prob, seed=7, epoch=epoch, pairs=data.edge_index)
        assert torch.equal(drop(data.edge_index, x=data.x)[1], wanted)


def test_an_attribute_of_the_data_is_a_score():
    data = make_data()
    data.trust = torch.arange(data.num_edges, dtype=torch.float32)
    scored = AddScore("column", column="trust")(data)
    graph = Graph.from_data(data)
    proper = graph.arc_pair >= 0
    for pair in range(graph.num_edges):
        listed = data.trust[graph.arc_pair == pair].double()
        assert scored.edge_score[graph.arc_pair == pair].tolist() == pytest.approx([float(listed.mean())] * len(listed))
    assert bool((scored.edge_score[~proper] == 0).all())
    with pytest.raises(
        TadropedgeError, match="data has no attribute 'trsut' to score edges by, only edge_attr, edge_index, "
    ):
        AddScore("column", column="trsut")(data)
    with pytest.raises(TadropedgeError, match="the score 'column' requires column"):
        AddScore("column")


def test_the_module_goes_by_an_attribute_of_the_data():
    data = make_data()
    data.trust = torch.arange(data.num_edges, dtype=torch.float32)
    drop = TADropEdge(score="column", column="trust", strategy="proportional", keep_ratio=0.5)
    rule = AddKeepProbability("proportional", keep_ratio=0.5)
    for trust in (data.trust, data.trust.flip(0)):  # other numbers are another plan
        data.trust = trust
        wanted = rule(AddScore("column", column="trust")(data)).edge_keep_prob
        assert torch.equal(drop.probabilities(data), wanted)
    thin = drop(data)
    assert thin.trust.shape == thin.edge_index.shape[1:]
    with pytest.raises(TadropedgeError, match="column='trust' names an attribute of a Data: give the Data"):
        drop(data.edge_index)
    del data.trust
    with pytest.raises(TadropedgeError, match="data has no attribute 'trust' to score edges by"):
        drop(data)


RULES = {
    "uniform": {"strategy": "uniform", "keep_prob": 0.5},
    "budget alone": {"keep_ratio": 0.5},
    "cutoff": {"score": "degree", "strategy": "cutoff", "keep_prob": 0.3, "gamma": 0.4},
    "division": {"score": "degree", "strategy": "division", "keep_ratio": 0.8},
    "cdf by default": {"score": "degree", "keep_prob": 0.2},
    "inverse": {"score": "degree", "strategy": "proportional", "keep_ratio": 0.3, "inverse": True},
    "own function": {"score": "degree", "strategy": lambda scores: scores / scores.max(), "keep_prob": 0.0},
}


@pytest.mark.parametrize("name", RULES)
def test_every_rule(name):
    data, rule = make_data(), RULES[name]
    told = {"strategy": "cdf" if "score" in rule else "uniform"} | rule
    graph, prob = pair_prob(data, **told)
    drop = TADropEdge(**rule)
    assert torch.equal(drop.probabilities(data.edge_index), graph.to_arcs(prob, loops=1.0))
    wanted = sample_edges(graph.to_arcs(prob, loops=1.0), pairs=data.edge_index)
    assert torch.equal(drop.mask(data.edge_index), wanted)


def test_dropsens_looks_at_degrees():
    data = make_data()
    graph = Graph.from_data(data)
    wanted = graph.to_arcs(keep_probabilities(graph, strategy="dropsens", keep_prob=0.0, sensitivity=0.8), loops=1.0)
    rule = {"strategy": "dropsens", "keep_prob": 0.0, "sensitivity": 0.8}
    assert torch.equal(TADropEdge(**rule).probabilities(data), wanted)
    transform = AddKeepProbability(**rule)
    assert torch.equal(transform(data).edge_keep_prob, wanted)
    assert "sensitivity=0.8" in repr(transform)
    ratio = AddKeepProbability("dropsens", keep_ratio=0.9)(data).edge_keep_prob
    assert float(keep_probabilities(graph, strategy="dropsens", keep_ratio=0.9).mean()) == pytest.approx(0.9)
    assert torch.equal(TADropEdge.of("dropsens", keep_ratio=0.9).probabilities(data), ratio)


def test_names_added_to_the_registries_are_there(monkeypatch):
    monkeypatch.setitem(SCORES, "mine", lambda graph, power: graph.pairs.sum(0).double() ** power)
    monkeypatch.setitem(STRATEGIES, "scaled", lambda scores: scores / scores.max())
    data = make_data()
    graph = Graph.from_data(data)
    squares = graph.pairs.sum(0).double() ** 2
    drop = TADropEdge.of("mine-scaled", keep_prob=0.0, power=2)
    assert torch.equal(drop.probabilities(data), graph.to_arcs(squares / squares.max(), loops=1.0))


def test_methods_of_the_grammar():
    rule = {"strategy": "proportional", "keep_ratio": 0.5}
    for name, told in (
        ("dropedge", {"keep_ratio": 0.5}),
        ("degree-proportional:unbiased", {"score": "degree", "unbiased": True} | rule),
        ("inverse-jaccard-proportional:connected:exact",
         {"score": "jaccard", "inverse": True, "connected": True, "exact": True} | rule),
    ):  # fmt: skip
        assert repr(TADropEdge.of(name, 3, keep_ratio=0.5)) == repr(TADropEdge(3, **told))
    nested = TADropEdge.of("cdf:nested", advance="manual", keep_prob=0.5, q=3, layers=2, keep_last=0.75)
    assert nested.dropping.rates == [0.5, 0.75]


def test_weights_enter_the_score_and_ride_along():
    data = make_data()
    weight = torch.where(data.edge_index.sum(0) % 2 == 0, 1.0, 5.0)
    rule = degree_rule()
    graph = Graph.from_edge_index(data.edge_index, 34, weight)
    prob = keep_probabilities(edge_scores(graph, "degree"), keep_ratio=0.6, strategy="proportional")
    drop = TADropEdge(**rule)
    edge_index, mask, kept, attr = drop(data.edge_index, data.edge_attr, edge_weight=weight)
    assert torch.equal(mask, sample_edges(graph.to_arcs(prob, loops=1.0), pairs=data.edge_index))
    assert torch.equal(edge_index, data.edge_index[:, mask])
    assert torch.equal(kept, weight[mask])
    assert torch.equal(attr, data.edge_attr[mask])
    assert not torch.equal(drop.probabilities(data.edge_index), drop.probabilities(data.edge_index, edge_weight=weight))


# -- Data in, Data out --------------------------------------------------------------------------------------


def test_data_is_thinned_whole_and_not_changed():
    data = make_data()
    data.edge_weight, data.edge_time = torch.rand(158), torch.arange(158)
    before = copy.deepcopy(data)
    drop = TADropEdge(seed=1, **degree_rule())
    mask = TADropEdge(seed=1, **degree_rule()).mask(data.edge_index, edge_weight=data.edge_weight)
    thin = drop(data)
    assert 0 < int(mask.sum()) < 158
    for name in ("edge_attr", "edge_weight", "edge_time"):
        assert torch.equal(thin[name], data[name][mask])
    assert torch.equal(thin.edge_index, data.edge_index[:, mask])
    assert torch.equal(thin.x, data.x)
    assert sorted(data.keys()) == sorted(before.keys()) == sorted(thin.keys())
    assert all(torch.equal(torch.as_tensor(data[name]), torch.as_tensor(before[name])) for name, _ in before)
    assert drop.eval()(data) is data


@pytest.mark.filterwarnings("ignore:Unable to accurately infer")  # by PyG, which guesses the number of nodes
def test_nodes_that_lose_all_arcs_are_still_there():
    data = Data(edge_index=torch.tensor([[0, 1], [1, 9]]))
    thin = TADropEdge(keep_prob=0.0)(data)
    assert thin.edge_index.shape == (2, 0)
    assert thin.num_nodes == 10


def test_data_with_probabilities_needs_no_rule():
    data = AddKeepProbability("proportional", keep_ratio=0.5)(AddScore("degree")(make_data()))
    mask = TADropEdge(seed=4).mask(data.edge_index, data.edge_keep_prob)
    assert torch.equal(TADropEdge(seed=4)(data).edge_index, data.edge_index[:, mask])


def test_mini_batches_see_one_subgraph():
    """Probabilities of the whole graph ride along, and ``n_id`` is found in the batch."""
    data = AddKeepProbability("proportional", keep_ratio=0.5)(AddScore("degree")(make_data()))
    data.n_id = torch.arange(34)
    drop = TADropEdge(seed=2, advance="manual")
    whole = {tuple(arc) for arc in drop(data).edge_index.T.tolist()}
    for start in range(0, 34, 12):
        batch = data.subgraph(torch.arange(start, min(start + 16, 34)).flip(0))
        thin = drop(batch)
        asked = batch.n_id[batch.edge_index].T.tolist()
        found = {tuple(arc) for arc in thin.n_id[thin.edge_index].T.tolist()}
        assert found == {tuple(arc) for arc in asked} & whole


def test_batches_of_graphs():
    graphs = [make_data(name) for name in ("karate", "clusters", "grid")]
    (batch,) = DataLoader(graphs, batch_size=3)
    graph = Graph.from_data(batch)
    wanted = keep_probabilities(edge_scores(graph, "jaccard"), keep_ratio=0.3, strategy="proportional")
    drop = TADropEdge(score="jaccard", strategy="proportional", keep_ratio=0.3)
    assert torch.equal(drop.probabilities(batch), graph.to_arcs(wanted, loops=1.0))
    scored = [AddKeepProbability(keep_prob=0.5)(AddScore("degree")(graph)) for graph in graphs]
    (batch,) = DataLoader(scored, batch_size=3)
    mask = sample_edges(torch.cat([graph.edge_keep_prob for graph in scored]), pairs=batch.edge_index)
    assert torch.equal(TADropEdge()(batch).edge_index, batch.edge_index[:, mask])


@pytest.mark.parametrize("arcs", [torch.empty(2, 0, dtype=torch.long), torch.tensor([[1, 2], [1, 2]])])
@pytest.mark.parametrize("options", [{}, {"connected": True}, {"exact": True}, {"unbiased": True}])
def test_graphs_without_edges_keep_what_they_have(arcs, options):
    drop = TADropEdge(**degree_rule(), **options)
    assert drop(arcs)[1].all()
    assert drop(Data(edge_index=arcs, num_nodes=3)).edge_index.shape == arcs.shape
    assert ta_dropout_edge(arcs, keep_prob=0.0)[1].all()


# -- the function -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"connected": True}, {"exact": True}, {"connected": True, "exact": True}])
def test_the_function_is_the_module(options):
    data = make_data()
    rule = degree_rule(**options)
    drop = TADropEdge(seed=-3, **rule)
    for epoch in range(3):
        thin, mask = ta_dropout_edge(data.edge_index, seed=-3, epoch=epoch, **rule)
        assert torch.equal(mask, drop(data.edge_index)[1])
        assert torch.equal(thin, data.edge_index[:, mask])
    prob = drop.probabilities(data.edge_index)
    given = ta_dropout_edge(data.edge_index, prob, seed=-3, epoch=2, **options)[1]
    assert torch.equal(given, mask)
    same, everything = ta_dropout_edge(data.edge_index, training=False, **rule)
    assert same is data.edge_index
    assert everything.all()


# -- connected and exact ------------------------------------------------------------------------------------


def components(edge_index, nodes):
    arcs = edge_index.numpy()
    matrix = np.zeros((nodes, nodes))
    matrix[arcs[0], arcs[1]] = 1
    return connected_components(matrix, directed=False)[1].tolist()


@st.composite
def messy_arcs(draw):
    """Arcs in any order and direction, some listed often, some loops; at least one edge."""
    nodes = draw(st.integers(2, 9))
    ends = st.integers(0, nodes - 1)
    arcs = draw(st.lists(st.tuples(ends, ends), min_size=1, max_size=30))
    return nodes, torch.tensor([(0, 1), *arcs]).T.contiguous()


@settings(max_examples=60)
@given(messy_arcs(), st.integers(0, 2**63 - 1), st.floats(0.05, 1.0))
def test_options_hold_on_any_list_of_arcs(messy, seed, ratio):
    nodes, arcs = messy
    graph = Graph.from_edge_index(arcs, nodes)
    least = nodes - graph.components.count
    ratio = max(ratio, least / graph.num_edges)
    prob = keep_probabilities(edge_scores(graph, "degree"), keep_ratio=ratio, strategy="proportional")
    rule = degree_rule(keep_ratio=ratio)
    for options in ({"connected": True}, {"exact": True}, {"connected": True, "exact": True}):
        mask = TADropEdge(seed, **rule, **options)(arcs, num_nodes=nodes)[1]
        coins = {"connected": graph} if "connected" in options else {}
        coins |= {"exact": True} if "exact" in options else {}
        wanted = sample_edges(prob, seed=seed, pairs=graph.pairs, **coins)
        assert torch.equal(mask, graph.to_arcs(wanted, loops=True))
        if "connected" in options:
            assert components(arcs[:, mask], nodes) == components(arcs, nodes)
        if "exact" in options:
            kept = {tuple(sorted(arc)) for arc in arcs[:, mask].T.tolist() if arc[0] != arc[1]}
            assert len(kept) == max(math.floor(ratio * graph.num_edges + 0.5), least if len(coins) == 2 else 0)


def test_options_with_given_probabilities_and_node_ids():
    """Coins follow global ids: a relabelled graph keeps the same edges."""
    data = AddKeepProbability("proportional", keep_ratio=0.7)(AddScore("degree")(make_data()))
    place = torch.randperm(34, generator=torch.Generator().manual_seed(1))
    node_id = torch.argsort(place)  # the old name of each new place
    for options in ({"connected": True}, {"exact": True}):
        drop = TADropEdge(seed=5, advance="manual", **options)
        mask = drop(data.edge_index, data.edge_keep_prob)[1]
        assert torch.equal(drop(place[data.edge_index], data.edge_keep_prob, node_id=node_id)[1], mask)
        assert not torch.equal(drop(place[data.edge_index], data.edge_keep_prob)[1], mask)


def test_connected_keeps_the_expected_number():
    data = make_data()
    graph, prob = pair_prob(data, **degree_rule())
    drop = TADropEdge(connected=True, **degree_rule())
    counts = torch.stack([drop.mask(data.edge_index)[graph.arc_pair >= 0].sum() for _ in range(400)])
    arcs = torch.bincount(graph.arc_pair[graph.arc_pair >= 0])  # two, and once three
    assert float(arcs.double().mean()) == pytest.approx(157 / 78)
    assert float(counts.double().mean()) == pytest.approx(float(prob.sum()) * 157 / 78, rel=0.02)


# -- nested -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"connected": True}, {"exact": True}, {"connected": True, "exact": True}])
@pytest.mark.parametrize("last", [1.0, 0.5])
def test_masks_of_layers_are_nested(options, last):
    data = make_data()
    rule = degree_rule(keep_ratio=0.8, **options)
    drop = TADropEdge(seed=3, advance="manual", layers=4, keep_last=last, **rule)
    step = (last - 0.8) / 3
    for _ in range(20):
        masks = [drop(data.edge_index, layer=layer)[1] for layer in range(4)]
        again = [drop(data.edge_index, layer=layer)[1] for layer in (3, 2, 1, 0)][::-1]
        assert all(map(torch.equal, masks, again))
        rising = masks if last > 0.8 else masks[::-1]
        assert all(bool((small <= large).all()) for small, large in pairwise(rising))
        if "exact" in options:
            pairs = [Graph.from_edge_index(data.edge_index[:, mask]).num_edges for mask in masks]
            assert pairs == [math.floor(78 * (0.8 + step * layer) + 0.5) for layer in range(4)]
        if "connected" in options:
            assert {tuple(components(data.edge_index[:, mask], 34)) for mask in masks} == {(0,) * 34}
        drop.next_epoch()


def test_a_nested_layer_has_its_own_rate():
    data = make_data()
    drop = TADropEdge(seed=3, advance="manual", layers=3, **degree_rule(keep_ratio=0.25))
    for layer, ratio in enumerate((0.25, 0.625, 1.0)):
        alone = TADropEdge(seed=3, **degree_rule(keep_ratio=ratio))
        assert torch.equal(drop.mask(data.edge_index, layer=layer), alone.mask(data.edge_index))
        assert torch.equal(drop.probabilities(data, layer=layer), alone.probabilities(data))
    thin = drop(data, layer=0)
    assert torch.equal(thin.edge_index, data.edge_index[:, drop.mask(data.edge_index, layer=0)])


# -- unbiased -----------------------------------------------------------------------------------------------


def test_kept_weights_are_divided_by_their_probability():
    data = make_data()
    data.edge_weight = torch.rand(158, generator=torch.Generator().manual_seed(2)) + 0.5
    drop = TADropEdge(unbiased=True, advance="manual", **degree_rule())
    prob = drop.probabilities(data)
    _, mask, weight, attr = drop(data.edge_index, data.edge_attr, edge_weight=data.edge_weight)
    assert torch.equal(weight, data.edge_weight[mask] / prob[mask].float())
    assert torch.equal(attr, data.edge_attr[mask])
    assert torch.equal(drop(data).edge_weight, weight)
    bare = drop(data.edge_index)
    assert torch.equal(bare[2], 1 / drop.probabilities(data.edge_index)[bare[1]].float())
    drop.eval()
    same, everything, weight = drop(data.edge_index)
    assert same is data.edge_index
    assert everything.all()
    assert torch.equal(weight, torch.ones(158))
    assert drop(data.edge_index, edge_weight=data.edge_weight)[2] is data.edge_weight


def test_gradients_flow_through_divided_weights():
    data = make_data()
    weight = torch.ones(158, requires_grad=True)
    drop = TADropEdge(unbiased=True, keep_prob=0.5)
    with torch.inference_mode():
        drop(data.edge_index)
    _, mask, kept = drop(data.edge_index, edge_weight=weight)
    kept.sum().backward()
    loops = data.edge_index[0] == data.edge_index[1]
    assert torch.equal(weight.grad, torch.where(mask, torch.where(loops, 1.0, 2.0), 0.0))


def dense(data, values):
    """The operator that PyG applies: entry (target, source)."""
    matrix = torch.zeros(data.num_nodes, data.num_nodes, dtype=torch.float64)
    return matrix.index_put((data.edge_index[1], data.edge_index[0]), values.double(), accumulate=True)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_the_mean_of_thinned_operators_is_the_operator(normalization):
    plain = Data(edge_index=torch.tensor([[0, 1, 2, 2, 3, 1], [1, 2, 0, 3, 4, 0]]), num_nodes=6)
    plain.edge_weight = torch.tensor([1.0, 2.0, 0.5, 1.0, 3.0, 1.0])
    whole = shift_operator(Graph.from_data(plain), normalization=normalization, dtype=torch.float64).to_dense()
    data = AddShift(normalization, dtype=torch.float64)(plain)
    assert torch.allclose(dense(data, data.edge_shift), whole)
    drop = TADropEdge(score="degree", strategy="cdf", keep_prob=0.3, unbiased=True)
    graph, prob = pair_prob(plain, score="degree", strategy="cdf", keep_prob=0.3)
    wanted = dense(Data(edge_index=graph.pairs, num_nodes=6), prob)  # whatever the entries of the operator are
    assert torch.equal(dense(data, drop.probabilities(data)), wanted + wanted.T + torch.eye(6))
    draws, total, squares = 400, 0, 0
    for _ in range(draws):
        thin = drop(data)
        one = dense(thin, thin.edge_shift)
        total, squares = total + one, squares + one**2
        assert torch.equal(one.diagonal(), whole.diagonal())
    mean = total / draws
    error = ((squares / draws - mean**2).clamp_min(0) / draws).sqrt()
    assert bool(((mean - whole).abs() <= 5 * error + 1e-12).all())
    assert float(error.max()) > 0


def test_a_layer_without_normalisation_applies_the_thinned_operator():
    data = make_data()
    del data.edge_attr
    graph, prob = pair_prob(data, **degree_rule())
    shifted = AddShift()(data)
    drop = TADropEdge(seed=8, unbiased=True, **degree_rule())
    thin = drop(shifted)
    keep = sample_edges(prob, seed=8, pairs=graph.pairs)
    conv = GCNConv(4, 3, normalize=False, bias=False)
    wanted = shift_operator(graph, keep, unbiased=prob) @ conv.lin(data.x)
    assert torch.allclose(conv(thin.x, thin.edge_index, thin.edge_shift), wanted, atol=1e-6)
    whole, normalising = drop.eval()(shifted), GCNConv(4, 3, bias=False)
    normalising.load_state_dict(conv.state_dict())
    both = torch.cat((graph.pairs, graph.pairs.flip(0)), dim=1)
    assert torch.allclose(conv(whole.x, whole.edge_index, whole.edge_shift), normalising(whole.x, both), atol=1e-6)


def test_what_is_known_of_arcs_follows_the_shift():
    data = AddKeepProbability("proportional", keep_ratio=0.5)(AddScore("degree")(make_data()))
    del data.edge_attr
    data.edge_weight = torch.ones(158)
    shifted = AddShift()(data)
    known = {tuple(arc): place for place, arc in enumerate(data.edge_index.T.tolist())}
    for place, arc in enumerate(shifted.edge_index.T.tolist()):
        found = (float(shifted.edge_score[place]), float(shifted.edge_keep_prob[place]))
        old = known.get(tuple(arc))
        same = (0.0, 1.0) if arc[0] == arc[1] else (float(data.edge_score[old]), float(data.edge_keep_prob[old]))
        assert found == same
    assert shifted.edge_index.shape[1] == 2 * 78 + 34
    assert torch.equal(shifted.edge_weight, torch.ones(190))
    assert repr(AddShift("laplacian")) == "AddShift(normalization='laplacian', dtype=torch.float32)"


# -- what is remembered -------------------------------------------------------------------------------------


class Counted:
    """A score that counts how often it is asked."""

    __name__ = "counted"

    def __init__(self):
        self.calls = 0

    def __call__(self, graph):
        self.calls += 1
        return torch.ones(graph.num_edges, dtype=torch.float64, device=graph.device)

    def __deepcopy__(self, memo):
        return self


def test_a_graph_is_scored_once():
    data, score = make_data(), Counted()
    drop = TADropEdge(score=score, strategy="proportional", keep_ratio=0.5)
    for _ in range(5):
        drop(data)
        drop(data.edge_index, num_nodes=34)
    assert score.calls == 1
    drop(data.edge_index.clone(), num_nodes=34)  # the same content
    copy.deepcopy(drop)(data)
    assert score.calls == 1
    assert len(drop.state_dict()) == 2
    data.edge_index[:, 0] = torch.tensor([0, 33])
    graph = Graph.from_data(data)
    assert drop.probabilities(data).shape == graph.arc_pair.shape
    assert score.calls == 2
    drop(data.edge_index[:, :10])
    assert score.calls == 3


def test_few_graphs_are_remembered_and_none_is_kept_alive():
    drop = TADropEdge(keep_prob=0.5)
    arcs = [make_data().edge_index[:, : 20 + place] for place in range(20)]
    for each in arcs:
        drop(each)
    assert len(drop.plans) == 8
    seen = weakref.ref(arcs[-1])
    del arcs, each
    gc.collect()
    assert seen() is None


def test_changed_features_are_noticed():
    data = make_data()
    drop = TADropEdge(score="cosine", strategy="proportional", keep_ratio=0.5)
    before = drop.probabilities(data)
    data.x[:] = data.x.flip(0)
    after = drop.probabilities(data)
    assert not torch.equal(before, after)
    scored = AddKeepProbability("proportional", keep_ratio=0.5)(AddScore("cosine")(data))
    assert torch.equal(after, scored.edge_keep_prob)
    sparse = drop.probabilities(data.edge_index, x=data.x.double().to_sparse_csr())
    assert torch.allclose(sparse, after)
    with torch.inference_mode():  # such tensors count no versions
        arcs = data.edge_index.clone()
        for _ in range(2):
            arcs[:, 0] = torch.tensor([0, 33])
            assert drop.probabilities(arcs, x=data.x).shape == (158,)


def test_tensors_of_the_same_name_and_place_are_told_apart():
    """A tensor that took the place of another in memory is another."""
    drop = TADropEdge(score=lambda graph: graph.pairs[1].double(), strategy="proportional", keep_ratio=0.25)
    for end in range(1, 40):
        arcs = torch.tensor([[0, 0], [end, 1 + end]])
        wanted = keep_probabilities(arcs[1].double(), keep_ratio=0.25, strategy="proportional")
        assert torch.equal(drop.probabilities(arcs), wanted)
        del arcs


def test_copies_draw_the_same(tmp_path):
    data = make_data()
    drop = TADropEdge(seed=2, connected=True, **degree_rule())
    drop(data)
    file = io.BytesIO()
    torch.save(drop, file)
    file.seek(0)
    others = [copy.deepcopy(drop), pickle.loads(pickle.dumps(drop)), torch.load(file, weights_only=False)]
    wanted = drop(data).edge_index
    for other in others:
        assert repr(other) == repr(drop).replace("epoch=2", "epoch=1")
        assert torch.equal(other(data).edge_index, wanted)


def test_a_module_that_was_pickled_before_there_were_rules():
    data = AddKeepProbability(keep_prob=0.5)(AddScore("degree")(make_data()))
    old = TADropEdge(seed=9)
    state = {name: value for name, value in old.__dict__.items() if name not in ("dropping", "plans")}
    again = TADropEdge.__new__(TADropEdge)
    again.__setstate__(state)
    wanted = TADropEdge(seed=9)(data.edge_index, data.edge_keep_prob)[1]
    assert torch.equal(again(data.edge_index, data.edge_keep_prob)[1], wanted)


def test_threads_share_the_plans():
    graphs = [make_data().edge_index[:, : 40 + place] for place in range(12)]
    drop = TADropEdge(advance="manual", **degree_rule())
    wanted = [TADropEdge(**degree_rule()).mask(arcs) for arcs in graphs]
    wrong = []

    def work():
        for _ in range(5):
            wrong.extend(arcs for arcs, mask in zip(graphs, wanted, strict=True) if not drop.mask(arcs).equal(mask))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_same_masks_on_every_device(device):
    data = make_data()
    there = copy.copy(data).to(device)
    for options in ({}, {"connected": True}, {"exact": True}):
        here, moved = TADropEdge(6, **degree_rule(**options)), TADropEdge(6, **degree_rule(**options)).to(device)
        for _ in range(3):
            assert torch.equal(moved(there).edge_index.cpu(), here(data).edge_index)


def test_captured_cuda_graphs_draw_by_rule(device):
    if device.type != "cuda":
        pytest.skip("captured graphs are CUDA's")
    data = make_data().to(device)
    for options in ({}, {"connected": True}, {"exact": True}):
        drop, expected = (TADropEdge(3, **degree_rule(**options)).to(device) for _ in range(2))
        drop.mask(data.edge_index)  # the graph must be known before
        expected.mask(data.edge_index)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            mask = drop.mask(data.edge_index)
        for _ in range(3):
            graph.replay()
            assert torch.equal(mask, expected.mask(data.edge_index))


@pytest.mark.filterwarnings("ignore")
def test_compiled_models_draw_the_same():
    data = make_data()

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = TADropEdge(seed=2, connected=True, **degree_rule())

        def forward(self, x, edge_index):
            return x * self.drop.mask(edge_index).sum()

    torch._dynamo.reset()
    eager, compiled = Net(), torch.compile(Net(), backend="aot_eager")
    for _ in range(3):
        assert torch.equal(compiled(data.x, data.edge_index), eager(data.x, data.edge_index))
    whole = torch.compile(lambda drop, arcs, prob: drop(arcs, prob)[2].sum(), backend="aot_eager")
    unbiased, other = TADropEdge(unbiased=True), TADropEdge(unbiased=True)
    prob = torch.full((158,), 0.5)
    assert torch.equal(whole(unbiased, data.edge_index, prob), other(data.edge_index, prob)[2].sum())
    with pytest.raises(RuntimeError, match="unbiased needs an edge_keep_prob above 0"):
        whole(unbiased, data.edge_index, prob * 0)
    torch._dynamo.reset()


def test_settings_are_printed():
    assert repr(TADropEdge(**degree_rule())) == (
        "TADropEdge(seed=0, epoch=0, advance='call', score='degree', strategy='proportional', keep_ratio=0.6)"
    )
    assert "score=counted#" in repr(TADropEdge(score=Counted(), keep_prob=0.5))
    assert repr(TADropEdge(score="aggregate", q=3, keep_prob=0.5)).endswith("strategy='cdf', keep_prob=0.5, q=3)")


def test_seeds_in_parallel_on_graphs_that_are_tossed_in_parts():
    ring = torch.arange(300_000)
    arcs, prob, seeds = torch.stack((ring, (ring + 1) % 300_000)), torch.full((300_000,), 0.5), torch.arange(3)
    model = torch.nn.Module()
    model.drop = TADropEdge(advance="manual")
    model.forward = lambda: model.drop.mask(arcs, prob)
    masks = torch.vmap(lambda seed: torch.func.functional_call(model, {"drop.seed": seed}, ()))(seeds)
    assert torch.equal(masks, sample_edges(prob, seed=seeds, pairs=arcs))


TRAPS = (
    "8 threads draw by a connected rule",
    "2 fork workers: a rule, advance='call'",
    "torch.jit.trace of a rule",
    "torch.export of a rule",
    "checkpointing, an exact rule, use_reentrant=False",
    "a rule under no_grad and inference_mode",
    "a connected rule, copied",
)


@pytest.mark.parametrize("name", TRAPS)
def test_the_epoch_is_right_or_the_call_is_refused(name, tmp_path):
    (trap,) = (case for case in cases("pyg") if case.name == name)
    trap.check(tmp_path)


# -- bad input ----------------------------------------------------------------------------------------------

DATA = make_data()
ARCS = DATA.edge_index
HETERO = HeteroData()
HETERO["a"].num_nodes = 3
BAD = {
    "score": (lambda: TADropEdge(score="degre", keep_ratio=0.5), "unknown score 'degre'"),
    "strategy": (lambda: TADropEdge(score="degree", strategy="prop", keep_ratio=0.5), "unknown strategy 'prop'"),
    "setting": (lambda: TADropEdge(score="degree", keep_ration=0.5), "has no setting 'keep_ration'"),
    "typo": (lambda: TADropEdge(keep_ration=0.5), "there is no setting 'keep_ration'"),
    "needed": (lambda: TADropEdge(score="aggregate", keep_prob=0.5), "give either q or desired_clusters"),
    "no budget": (lambda: TADropEdge(score="degree"), "give either keep_prob or keep_ratio"),
    "two budgets": (lambda: TADropEdge(keep_prob=0.5, keep_ratio=0.5), "give either keep_prob or keep_ratio"),
    "budget": (lambda: TADropEdge(score="degree", keep_ratio=1.5), r"keep_ratio must lie in \[0, 1\], got 1.5"),
    "low": (
        lambda: TADropEdge(score="degree", keep_ratio=0.1)(ARCS),
        "keep_ratio=0.1 cannot be reached with cdf: the expected kept share lies between",
    ),
    "no score": (lambda: TADropEdge(strategy="cdf", keep_prob=0.5), "the strategy 'cdf' needs a score"),
    "idle score": (
        lambda: TADropEdge(score="degree", strategy="dropsens", keep_prob=0.5),
        "the strategy 'dropsens' looks at no score",
    ),
    "idle gamma": (lambda: TADropEdge(gamma=0.5), "gamma=0.5 belongs to a rule"),
    "idle inverse": (lambda: TADropEdge(inverse=True), "inverse=True belongs to a rule"),
    "sensitivity": (
        lambda: TADropEdge(strategy="dropsens", keep_prob=0.0, sensitivity=2),
        r"sensitivity must lie in \[0, 1\], got 2",
    ),
    "unbiased connected": (
        lambda: TADropEdge(unbiased=True, connected=True),
        "unbiased and connected exclude each other: a spanning forest is kept",
    ),
    "unbiased exact": (lambda: TADropEdge(unbiased=True, exact=True), "unbiased and exact exclude each other"),
    "flag": (lambda: TADropEdge(connected=1), "connected must be True or False, got 1"),
    "never kept": (
        lambda: TADropEdge(score="jaccard", strategy="proportional", keep_ratio=0.1, unbiased=True)(ARCS),
        "unbiased needs keep probabilities above 0, got 0",
    ),
    "given zero": (lambda: TADropEdge(unbiased=True)(ARCS, torch.zeros(158)), "unbiased needs keep probabilities"),
    "forest": (
        lambda: TADropEdge(keep_ratio=0.1, connected=True)(ARCS),
        r"connected masks keep at least 33 of 78 edges \(keep ratio 0.423077\), but the probabilities sum to 7.8",
    ),
    "two directions": (
        lambda: TADropEdge(connected=True)(ARCS, torch.linspace(0.8, 1, 158)),
        "edge_keep_prob differs between them",
    ),
    "both": (lambda: TADropEdge(keep_prob=0.5)(ARCS, edge_keep_prob=torch.ones(158)), "not both"),
    "unbiased in a function": (
        lambda: ta_dropout_edge(ARCS, keep_prob=0.5, unbiased=True),
        "ta_dropout_edge has no unbiased=: it returns arcs and a mask; TADropEdge has it",
    ),
    "both in a function": (lambda: ta_dropout_edge(ARCS, torch.ones(158), keep_prob=0.5), "not both"),
    "neither": (lambda: TADropEdge()(ARCS), "edge_keep_prob must be .* AddKeepProbability makes one, or give"),
    "neither in data": (lambda: TADropEdge()(DATA), "edge_keep_prob must be a tensor, got None"),
    "neither in a function": (lambda: ta_dropout_edge(ARCS), "edge_keep_prob must be a tensor, got None"),
    "layers by call": (lambda: TADropEdge(keep_prob=0.5, layers=2), "use advance='manual'"),
    "layers alone": (lambda: TADropEdge(advance="manual", layers=2), "layers have keep rates of their own"),
    "keep_last alone": (lambda: TADropEdge(keep_prob=0.5, keep_last=0.5), "give layers="),
    "keep_last": (
        lambda: TADropEdge(advance="manual", keep_prob=0.5, layers=2, keep_last=2),
        r"keep_last must lie in \[0, 1\], got 2",
    ),
    "layer": (
        lambda: TADropEdge(advance="manual", keep_prob=0.5, layers=2)(ARCS, layer=2),
        "layer must be a whole number of at most 1, got 2",
    ),
    "no layer": (
        lambda: TADropEdge(advance="manual", keep_prob=0.5, layers=2)(ARCS),
        "layer must be a whole number of at least 0, got None",
    ),
    "no layers": (lambda: TADropEdge(keep_prob=0.5)(ARCS, layer=0), "layer=0 needs TADropEdge"),
    "features": (
        lambda: TADropEdge(score="cosine", keep_prob=0.5)(ARCS),
        "the score 'cosine' needs node features: give x=, or a Data with x",
    ),
    "x": (lambda: TADropEdge(score="cosine", keep_prob=0.5)(ARCS, x=[1.0]), "x must be a dense or CSR tensor"),
    "rows of x": (
        lambda: TADropEdge(score="cosine", keep_prob=0.5)(ARCS, x=torch.ones(50, 2), num_nodes=40),
        "one row of features per node",
    ),
    "num_nodes": (lambda: TADropEdge(score="degree", keep_prob=0.5)(ARCS, num_nodes=5), "num_nodes=5"),
    "edge_weight": (lambda: TADropEdge(keep_prob=0.5)(ARCS, edge_weight=torch.ones(3)), r"edge_weight has shape \[3\]"),
    "negative weight": (
        lambda: TADropEdge(score="degree", keep_prob=0.5)(ARCS, edge_weight=-torch.ones(158)),
        "edge weights must be positive",
    ),
    "node_id": (
        lambda: TADropEdge(keep_prob=0.5)(ARCS, node_id=torch.arange(9)),
        "node_id names 9 nodes, but edge_index holds the node 33",
    ),
    "hetero": (lambda: TADropEdge(keep_prob=0.5)(HETERO), "expected a homogeneous torch_geometric Data"),
    "beside data": (lambda: TADropEdge(keep_prob=0.5)(DATA, DATA.edge_attr), "give drop\\(data\\) alone"),
    "probabilities": (lambda: TADropEdge().probabilities(ARCS), "this TADropEdge has no rule"),
    "method": (lambda: TADropEdge.of("degre-cdf", keep_prob=0.5), "unknown method 'degre-cdf'"),
    "original": (lambda: TADropEdge.of("original"), "'original' drops no edges"),
    "auto": (lambda: TADropEdge.of("auto"), "'auto' is found by a search"),
    "network": (lambda: TADropEdge.of("graphsage+cdf", keep_prob=0.5), "names a network"),
    "said twice": (lambda: TADropEdge.of("degree-cdf", keep_prob=0.5, inverse=True), "says inverse itself"),
    "nested": (lambda: TADropEdge.of("degree-cdf:nested", keep_prob=0.5), "'nested' and layers="),
    "expected": (lambda: TADropEdge.of("degree-cdf:expected", keep_prob=0.5), r"'degree-cdf:expected': .* in eval\(\)"),
    "expected alone": (lambda: TADropEdge(keep_prob=0.5, expected=True), "expected=True: .*=drop.probabilities"),
    "expected score": (lambda: TADropEdge(score="degree", keep_prob=0.5, expected=True), "belongs to the laboratory"),
    "expected call": (lambda: ta_dropout_edge(ARCS, keep_prob=0.5, expected=True), "belongs to the laboratory"),
    "shift": (lambda: AddShift("gnc"), "unknown normalization 'gnc'"),
    "shift type": (lambda: AddShift(dtype=torch.int64), "dtype must be a floating point type of torch"),
    "shift attributes": (lambda: AddShift()(DATA), "data.edge_attr has no values"),
    "export": (
        lambda: torch.export.export(TADropEdge(keep_prob=0.5), (ARCS,), strict=False),
        "only TADropEdge\\(\\) with given probabilities can be exported",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, message = BAD[name]
    with pytest.raises(TadropedgeError, match=message):
        call()


def test_a_refused_call_does_not_move_the_epoch():
    drop = TADropEdge(keep_ratio=0.1, connected=True)
    for call in (lambda: drop(ARCS), lambda: drop(ARCS, DATA.edge_attr[:3])):
        with pytest.raises(TadropedgeError):
            call()
    assert int(drop.epoch) == 0


def test_a_probability_that_no_coin_is_below_cannot_be_divided_by():
    """Coins have 53 bits: an edge of probability 1e-17 is never kept, so its weight has the mean 0."""
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    scores = torch.tensor([1.0, 1.0, 1e-17], dtype=torch.float64)
    drop = TADropEdge(score=lambda graph: scores, strategy="proportional", keep_ratio=0.5, unbiased=True)
    with pytest.raises(TadropedgeError, match="unbiased needs keep probabilities above 0"):
        drop(edge_index)
