"""Graphs of many relations: each by its own coins, one edge seen from both sides by one, and all that belongs to it."""

import copy

import pytest
import torch
from torch_geometric import transforms
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, HeteroConv, SAGEConv, to_hetero
from torch_geometric.nn.models import GraphSAGE

from tadropedge import Graph, TadropedgeError, edge_scores, keep_probabilities
from tadropedge.pyg import AddKeepProbability, AddScore, AddShift, TADropEdge
from tadropedge.pyg.hetero import forward_name, relation_number
from tadropedge.sampling import GOLDEN, MASK, mix, node_pair_words, signed

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")  # what torch says of every sparse matrix
RULE = {"score": "degree", "strategy": "proportional", "keep_ratio": 0.5}
WRITES, CITES, REVERSE = ("author", "writes", "paper"), ("paper", "cites", "paper"), ("paper", "rev_writes", "author")


def library(seed=0):
    """Six authors who write eight papers, which cite each other, with attributes of arcs."""
    generator = torch.Generator().manual_seed(seed)
    data = HeteroData()
    data["author"].x = torch.randn(6, 3, generator=generator)
    data["paper"].x = torch.randn(8, 5, generator=generator)
    writes = torch.rand(6, 8, generator=generator) < 0.5
    data[WRITES].edge_index = writes.nonzero().T.contiguous()
    count = int(writes.sum())
    data[WRITES].edge_attr = torch.randn(count, 2, generator=generator)
    data[WRITES].edge_weight = torch.rand(count, generator=generator) + 0.5
    low, high = torch.triu_indices(8, 8, 1)
    data[CITES].edge_index = torch.cat((torch.stack((low, high)), torch.stack((high, low))), dim=1)
    data[CITES].edge_time = torch.arange(56)
    return data


def arcs_in(store):
    return [tuple(arc) for arc in store.edge_index.T.tolist()]


def test_each_relation_is_a_graph_of_its_own(device):
    data = library().to(device)
    drop = TADropEdge(seed=3, **RULE).to(device)
    prob = drop.probabilities(data)
    assert list(prob) == [WRITES, CITES]
    writes, cites = data[WRITES], data[CITES]
    both = Graph.from_edge_index(writes.edge_index.cpu() + torch.tensor([[0], [6]]), 14, writes.edge_weight.cpu())
    wanted = keep_probabilities(edge_scores(both, "degree"), keep_ratio=0.5, strategy="proportional")
    assert torch.allclose(prob[WRITES].cpu(), both.to_arcs(wanted), atol=1e-14)
    assert torch.equal(prob[CITES], TADropEdge(**RULE).to(device).probabilities(cites.edge_index))
    for epoch in range(3):
        thin = drop(data)
        for name, ordered in ((WRITES, True), (CITES, False)):
            words = node_pair_words(data[name].edge_index, ordered=ordered, relation=relation_number(name))
            mask = torch.tensor([coin_of(word, 3, epoch) < p for word, p in zip(
                words.tolist(), prob[name].tolist(), strict=True)])  # fmt: skip
            assert torch.equal(thin[name].edge_index.cpu(), data[name].edge_index.cpu()[:, mask])
            for key in ("edge_attr", "edge_weight", "edge_time"):
                if key in data[name]:
                    assert torch.equal(thin[name][key].cpu(), data[name][key].cpu()[mask])
    assert int(drop.epoch) == 3  # one for all relations
    assert data[WRITES].edge_index.shape == writes.edge_index.shape
    assert thin["paper"].x is data["paper"].x
    assert drop.eval()(data) is data


def coin_of(word, seed, epoch):
    """The coin in [0, 1) of a word, in plain Python."""
    state = mix((mix((seed + GOLDEN) & MASK) + epoch * GOLDEN) & MASK)
    multiplier, offset = mix((state + GOLDEN) & MASK) | 1, mix((state + 2 * GOLDEN) & MASK)
    coin = signed((word * multiplier + offset) & MASK) >> 11
    return (coin + 2**52) * 2.0**-53


def test_relations_are_known_by_name():
    assert relation_number(WRITES) == 10902643077161275659  # part of the interface: it decides who is dropped
    assert relation_number(REVERSE) == relation_number(WRITES)
    assert relation_number(("author", "write", "spaper")) != relation_number(WRITES)
    assert relation_number(("paper", "writes", "author")) != relation_number(WRITES)
    assert forward_name(("b", "rev_rev_x", "a")) == (("b", "x", "a"), False)


def test_relations_have_coins_of_their_own():
    """The same arcs in two relations, and (3, 7) and (7, 3) in one of them, are dropped independently."""
    arcs = torch.cartesian_prod(torch.arange(8), torch.arange(8)).T
    data = HeteroData()
    data["a"].num_nodes = data["b"].num_nodes = 8
    for name in ("x", "y"):
        data["a", name, "b"].edge_index = arcs
    drop = TADropEdge(keep_prob=0.5)
    masks = []
    for _ in range(400):
        thin = drop(data)
        kept = [torch.zeros(8, 8).index_put(tuple(thin["a", name, "b"].edge_index), torch.ones(())) for name in "xy"]
        masks.append(torch.stack(kept) - 0.5)
    first, second = torch.stack(masks, dim=1)
    off = ~torch.eye(8, dtype=torch.bool)
    assert abs(float((first * second).mean())) < 0.01
    assert abs(float((first * first.mT)[:, off].mean())) < 0.02
    assert float((first * first).mean()) == 0.25
    assert float(first.mean()) == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize("options", [{}, {"coins": "arc"}, {"exact": True}])
def test_an_edge_has_one_fate_from_both_sides(options):
    data = transforms.ToUndirected()(library())
    assert REVERSE in data.edge_types
    order = torch.randperm(data[REVERSE].num_edges, generator=torch.Generator().manual_seed(1))
    for key in ("edge_index", "edge_attr", "edge_weight"):  # however its arcs are listed
        data[REVERSE][key] = data[REVERSE][key][..., order] if key == "edge_index" else data[REVERSE][key][order]
    drop, seen = TADropEdge(seed=5, **RULE, **options), set()
    for _ in range(10):
        thin = drop(data)
        kept = sorted(arcs_in(thin[WRITES]))
        assert sorted((u, v) for v, u in arcs_in(thin[REVERSE])) == kept
        seen.add(tuple(kept))
        weights = {arc: float(w) for arc, w in zip(arcs_in(thin[WRITES]), thin[WRITES].edge_weight, strict=True)}
        for (v, u), w in zip(arcs_in(thin[REVERSE]), thin[REVERSE].edge_weight, strict=True):
            assert weights[u, v] == float(w)
    assert len(seen) > 5
    cites = [arcs_in(thin[CITES])]
    paired = all((v, u) in cites[0] for u, v in cites[0])
    assert paired == ("coins" not in options)


def test_given_probabilities_and_transforms():
    data = transforms.ToUndirected()(library())
    rule = transforms.Compose([AddScore("degree"), AddKeepProbability("proportional", keep_ratio=0.5)])
    scored = rule(data)
    prob = TADropEdge(**RULE).probabilities(data)
    for name in data.edge_types:
        assert torch.equal(scored[name].edge_keep_prob, prob[name])
        assert "edge_score" not in data[name]
        assert scored[name].edge_score.shape == scored[name].edge_index.shape[1:]
    by_rule, given = TADropEdge(seed=1, **RULE)(data), TADropEdge(seed=1)(scored)
    for name in data.edge_types:
        assert torch.equal(given[name].edge_index, by_rule[name].edge_index)
    with pytest.raises(TadropedgeError, match=r"AddShift is about one kind of nodes: apply it to data.to_homogeneous"):
        AddShift()(data)


def test_matrices_in_relations():
    data = transforms.ToUndirected()(library())
    sparse = transforms.ToSparseTensor(layout=torch.sparse_csr)(copy.copy(data))
    thin, plain = TADropEdge(seed=2, **RULE)(sparse), TADropEdge(seed=2, **RULE)(data)
    for name, nodes in ((WRITES, (8, 6)), (REVERSE, (6, 8)), (CITES, (8, 8))):
        kept = plain[name]
        values = kept.get("edge_weight", torch.ones(kept.num_edges))
        wanted = torch.zeros(nodes).index_put((kept.edge_index[1], kept.edge_index[0]), values)
        assert torch.equal(thin[name].adj_t.to_dense(), wanted)
    assert thin[WRITES].edge_attr.shape == (plain[WRITES].num_edges, 2)


def test_unbiased_relations():
    data = library()
    drop = TADropEdge(seed=1, **RULE, unbiased=True)
    prob, mean = drop.probabilities(data), dict.fromkeys(data.edge_types, 0.0)
    thin = drop(data)
    kept = {arc: place for place, arc in enumerate(arcs_in(data[WRITES]))}
    places = [kept[arc] for arc in arcs_in(thin[WRITES])]
    assert torch.allclose(thin[WRITES].edge_weight, data[WRITES].edge_weight[places] / prob[WRITES][places].float())
    for _ in range(400):
        thin = drop(data)
        for name in mean:
            mean[name] += float(thin[name].edge_weight.sum()) / 400
    assert mean[WRITES] == pytest.approx(float(data[WRITES].edge_weight.sum()), rel=0.05)
    assert mean[CITES] == pytest.approx(56, rel=0.05)


def test_relations_by_name():
    data = transforms.ToUndirected()(library())
    for names in (["writes"], [WRITES], [list(WRITES)], ["rev_writes"]):  # a reverse goes along
        thin = TADropEdge(keep_prob=0.0, relations=names)(data)
        assert (thin[WRITES].num_edges, thin[REVERSE].num_edges, thin[CITES].num_edges) == (0, 0, 56)
        assert thin[CITES].edge_index is data[CITES].edge_index
        assert list(TADropEdge(keep_prob=0.5, relations=names).probabilities(data)) == [WRITES, REVERSE]
    whole = TADropEdge(keep_prob=0.0, relations=[])(data)
    assert all(whole[name].num_edges == data[name].num_edges for name in data.edge_types)


def test_what_is_missing_or_empty():
    data = HeteroData()  # nothing is said about nodes
    data["a", "x", "b"].edge_index = torch.tensor([[0, 1, 4], [2, 0, 1]])
    data["a", "y", "a"].edge_index = torch.empty(2, 0, dtype=torch.int64)
    data["c", "z", "b"].edge_index = torch.empty(2, 0, dtype=torch.int64)
    data["c", "later", "b"].edge_attr = torch.ones(0, 3)  # a relation without arcs yet
    for options in ({}, {"connected": True}, {"exact": True}, {"unbiased": True}):
        thin = TADropEdge(**RULE | {"keep_ratio": 1.0}, **options)(data)
        assert [thin[name].num_edges for name in data.edge_types] == [3, 0, 0, 0]
    known = copy.copy(data)
    known["a"].num_nodes, known["b"].num_nodes = 5, 3
    for each in (data, known):
        assert torch.equal(TADropEdge(**RULE).probabilities(each)["a", "x", "b"],
                           torch.full((3,), 0.5, dtype=torch.float64))  # fmt: skip
    assert AddScore("degree")(data)["c", "z", "b"].edge_score.shape == (0,)
    assert sorted(data.node_types) == sorted(HeteroData.from_dict(data.to_dict()).node_types)


def test_mini_batches_see_one_subgraph():
    data = transforms.ToUndirected()(library())
    scored = AddKeepProbability("proportional", keep_ratio=0.5)(AddScore("degree")(data))
    drop = TADropEdge(seed=4, advance="manual")
    whole = drop(scored)
    kept = {name: set(arcs_in(whole[name])) for name in data.edge_types}
    for kind in data.node_types:
        scored[kind].n_id = torch.arange(scored[kind].num_nodes)
    for start in range(3):
        part = {"author": torch.tensor([5, 0, 3, 1]), "paper": torch.arange(7, start, -1)}
        batch = scored.subgraph(part)
        thin = drop(batch)
        for name in data.edge_types:
            ids = (thin[name[0]].n_id, thin[name[2]].n_id)
            found = {(int(ids[0][u]), int(ids[1][v])) for u, v in arcs_in(thin[name])}
            asked = {(int(ids[0][u]), int(ids[1][v])) for u, v in arcs_in(batch[name])}
            assert found == asked & kept[name]


def test_batches_of_graphs():
    (batch,) = DataLoader([library(0), library(1)], batch_size=2)
    thin = TADropEdge(keep_prob=0.5)(batch)
    assert 0 < thin[CITES].num_edges < batch[CITES].num_edges
    assert thin["paper"].batch.shape == (16,)


def test_features_of_two_widths():
    data = library()
    drop = TADropEdge(score="cosine", strategy="proportional", keep_ratio=0.5)
    message = "the score 'cosine' compares features, but sources have 3 and targets 5"
    for call in (drop, AddScore("cosine")):
        with pytest.raises(TadropedgeError, match=message):
            call(data)
    kept = TADropEdge(score="cosine", strategy="proportional", keep_ratio=0.5, relations=["cites"])(data)
    assert kept[WRITES].num_edges == data[WRITES].num_edges
    data["author"].x = torch.randn(6, 5)
    both = torch.cat((data["author"].x, data["paper"].x))
    plain = Data(edge_index=data[WRITES].edge_index + torch.tensor([[0], [6]]), x=both,
                 edge_weight=data[WRITES].edge_weight)  # fmt: skip
    assert torch.equal(AddScore("cosine")(data)[WRITES].edge_score, AddScore("cosine")(plain).edge_score)


# -- models -------------------------------------------------------------------------------------------------


def test_a_layer_of_many_relations(device):
    data = transforms.ToUndirected()(library()).to(device)
    convs = {WRITES: SAGEConv((3, 5), 4), REVERSE: SAGEConv((5, 3), 4), CITES: GATConv(5, 4, add_self_loops=False)}
    model = HeteroConv(convs).to(device)
    thin = TADropEdge(seed=1, **RULE).to(device)(data)
    out = model(thin.x_dict, thin.edge_index_dict)
    sum(each.square().sum() for each in out.values()).backward()
    assert {kind: tuple(each.shape) for kind, each in out.items()} == {"author": (6, 4), "paper": (8, 4)}
    assert all(bool(each.grad.isfinite().all()) for each in model.parameters() if each.grad is not None)
    # Weights beside the matrix enter the score, and not this layer.
    sparse = transforms.ToSparseTensor(layout=torch.sparse_csr, attr=None)(copy.copy(data))
    same = HeteroConv({name: convs[name] for name in (WRITES, REVERSE)})
    thin_sparse = TADropEdge(seed=1, **RULE).to(device)(sparse)
    by_matrix = same(thin.x_dict, {name: thin_sparse[name].adj_t for name in (WRITES, REVERSE)})
    by_arcs = same(thin.x_dict, {name: thin[name].edge_index for name in (WRITES, REVERSE)})
    assert all(torch.allclose(by_matrix[kind], by_arcs[kind], atol=1e-5) for kind in ("author", "paper"))


def test_a_model_made_for_many_relations():
    data = transforms.ToUndirected()(library())
    model = to_hetero(GraphSAGE((-1, -1), 8, num_layers=2, out_channels=2), data.metadata())
    thin = TADropEdge(seed=1, **RULE)(data)
    model(thin.x_dict, thin.edge_index_dict)["paper"].sum().backward()


# -- bad input ----------------------------------------------------------------------------------------------

BAD = {
    "no relation": (lambda: TADropEdge(keep_prob=0.5)(HeteroData()), "or a HeteroData with relations, got HeteroData"),
    "name": (lambda: TADropEdge(keep_prob=0.5, relations=["sites"])(library()),
             r"'sites' is no relation of data, which has \('author', 'writes', 'paper'\)"),
    "one triple": (lambda: TADropEdge(keep_prob=0.5, relations=WRITES), "relations must be a list of names or"),
    "text": (lambda: TADropEdge(keep_prob=0.5, relations="writes"), "relations must be a list of names or"),
    "pair": (lambda: TADropEdge(keep_prob=0.5, relations=[("author", "paper")]), "relations must be a list of names"),
    "node_id": (lambda: TADropEdge(keep_prob=0.5)(library(), node_id=torch.arange(6)), "write it as n_id into each k"),
    "probabilities": (lambda: TADropEdge()(library()), "edge_keep_prob must be a tensor, got None"),
    "weight": (lambda: TADropEdge(**RULE, weight="strength")(library()),
               r"weight='strength', but data\['author', 'writes', 'paper'\] has no attribute of this name"),
    "beside": (lambda: TADropEdge(keep_prob=0.5)(library(), num_nodes=3), "give drop\\(data\\) alone"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, message = BAD[name]
    with pytest.raises(TadropedgeError, match=message):
        call()
