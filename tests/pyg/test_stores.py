"""How a ``Data``, a ``Batch`` and a ``HeteroData`` are thinned: what belongs to arcs, and what never does."""

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, GraphSAGE, HeteroConv, SAGEConv, to_hetero
from torch_geometric.transforms import RandomLinkSplit, ToSparseTensor, ToUndirected
from torch_geometric.utils import trim_to_layer

from tadropedge import TadropedgeError, edge_scores, keep_probabilities
from tadropedge.graph import Graph
from tadropedge.pyg import AddKeepProbability, AddScore, DropEdge
from tadropedge.testing.graphs import ZOO

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")
ARCS = torch.cat((ZOO["karate"].pairs, ZOO["karate"].pairs.flip(0)), dim=1)
WRITES, REVERSE, CITES = ("author", "writes", "paper"), ("paper", "rev_writes", "author"), ("paper", "cites", "paper")
RULE = {"method": "degree-proportional", "keep_ratio": 0.5}


# -- Data -----------------------------------------------------------------------------------------------------


def test_all_that_arcs_have_is_thinned_alike_and_nothing_else():
    data = Data(x=torch.rand(34, 3), edge_index=ARCS, y=torch.arange(34), edge_attr=torch.rand(156, 2))
    data.edge_time, data.edge_names = torch.arange(156), [f"{i}-{j}" for i, j in ARCS.t().tolist()]
    data.train_mask, data.graph_label, data.name = torch.ones(34) > 0, torch.tensor([3]), "club"
    mask = DropEdge(p=0.5, seed=1)(ARCS)[1]
    thin, wanted = DropEdge(p=0.5, seed=1)(data), data.edge_subgraph(mask)
    assert list(thin.keys()) == list(wanted.keys())
    for name in ("x", "edge_index", "y", "edge_attr", "edge_time", "train_mask", "graph_label"):
        assert torch.equal(thin[name], wanted[name])
    assert (thin.edge_names, thin.name) == (wanted.edge_names, "club")
    assert thin.x is data.x
    assert data.num_edges == 156
    assert DropEdge(p=0.5).eval()(data).edge_attr is data.edge_attr


def test_as_many_nodes_as_arcs():
    """A ring has as many arcs as nodes in one direction: only what is called edge_… is of its arcs."""
    ring = torch.stack((torch.arange(9), torch.arange(9).roll(-1)))
    thin = DropEdge(p=0.5, seed=1)(
        Data(x=torch.rand(9, 2), edge_index=ring, edge_attr=torch.arange(9), y=torch.arange(9))
    )
    assert 0 < len(thin.edge_attr) == thin.num_edges < 9
    assert (len(thin.x), len(thin.y), thin.num_nodes) == (9, 9, 9)


def test_as_many_graphs_as_arcs():
    one = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [2]]), y=torch.tensor([1]), edge_attr=torch.ones(1))
    thin = DropEdge(p=0.5, seed=1)(Batch.from_data_list([one] * 32))
    assert 4 < thin.num_edges == len(thin.edge_attr) < 28
    assert len(thin.y) == thin.num_graphs == 32
    assert len(DropEdge(p=1.0)(one).y) == 1


@pytest.mark.parametrize(
    "named",
    [{}, {"split_labels": True}, {"key": "edge_rating"}, {"key": "stars"}, {"key": "stars", "split_labels": True}],
)
@pytest.mark.parametrize("ratio", [0.0, 1.0])
def test_labels_of_links_are_never_thinned(named, ratio):
    """Also under other names, and where there are as many as arcs."""
    numbers = torch.randperm(400, generator=torch.Generator().manual_seed(0))[:100]
    whole = Data(edge_index=torch.stack((numbers // 20, numbers % 20)), num_nodes=20, edge_time=torch.arange(100))
    data = RandomLinkSplit(num_val=0.1, num_test=0.1, neg_sampling_ratio=ratio, **named)(whole)[0]
    thin = DropEdge(p=0.5, seed=1)(data)
    assert thin.num_edges == len(thin.edge_time) < data.num_edges
    assert set(thin.keys()) == set(data.keys())
    labels = set(data.keys()) - {"edge_index", "edge_time", "num_nodes"}
    assert (ratio and not named.get("split_labels")) or any(data[name].shape[-1] == data.num_edges for name in labels)
    assert all(torch.equal(thin[name], data[name]) for name in labels)


def test_nodes_that_lose_all_arcs_are_still_there():
    assert DropEdge(p=1.0)(Data(edge_index=ARCS)).num_nodes == 34
    assert DropEdge(p=1.0)(Data(edge_index=ARCS, x=torch.rand(40, 2))).num_nodes == 40


def test_one_adjacency_at_a_time():
    data = ToSparseTensor(layout=torch.sparse_csr, remove_edge_index=False)(Data(edge_index=ARCS, num_nodes=34))
    with pytest.raises(TadropedgeError, match="an edge_index and an adj_t"):
        DropEdge()(data)


def test_layers_trim_a_thinned_batch_by_its_hops():
    """``num_sampled_edges`` counts the arcs of each hop, by which PyG's layers leave out the far ones."""
    data = Data(x=torch.rand(34, 2), edge_index=ARCS, num_sampled_nodes=[10, 20, 4], num_sampled_edges=[56, 100])
    thin = DropEdge(p=0.5, seed=1)(data)
    kept = DropEdge(p=0.5, seed=1)(ARCS)[1]
    assert thin.num_sampled_edges == [int(kept[:56].sum()), int(kept[56:].sum())]
    x, edge_index, _ = trim_to_layer(1, thin.num_sampled_nodes, thin.num_sampled_edges, thin.x, thin.edge_index)
    assert torch.equal(edge_index, ARCS[:, :56][:, kept[:56]])
    assert len(x) == 30


@pytest.mark.parametrize("conv", [lambda: GCNConv(4, 4), lambda: SAGEConv(4, 4)])
def test_layers_of_pyg_compute_the_same_on_a_thinned_matrix(conv):
    data = Data(x=torch.randn(34, 4, generator=torch.Generator().manual_seed(0)), edge_index=ARCS)
    matrix = ToSparseTensor(layout=torch.sparse_csr)(data.clone())
    thin, other = DropEdge(**RULE, seed=1)(data), DropEdge(**RULE, seed=1)(matrix)
    layer, found = conv(), []
    for arcs in (thin.edge_index, other.adj_t):
        layer.zero_grad()
        out = layer(data.x, arcs)
        out.square().sum().backward()
        found.append([out.detach(), *(each.grad.clone() for each in layer.parameters())])
    for one, two in zip(*found, strict=True):
        assert torch.allclose(one, two, atol=1e-4, rtol=1e-4)


# -- Batch ----------------------------------------------------------------------------------------------------


def test_a_batch_of_graphs_is_scored_as_its_graphs_are():
    graphs = [Data(edge_index=torch.cat((ZOO[name].pairs, ZOO[name].pairs.flip(0)), 1), num_nodes=ZOO[name].num_nodes)
              for name in ("karate", "path", "cliques")]  # fmt: skip
    transform = AddKeepProbability("degree-proportional", keep_ratio=0.5)
    (batch,) = DataLoader([transform(graph) for graph in graphs], batch_size=3)
    together = transform(Batch.from_data_list(graphs))
    assert torch.equal(together.edge_keep_prob, batch.edge_keep_prob)
    for graph, share in zip(batch.to_data_list(), (0.5, 0.5, 0.5), strict=True):
        assert float(graph.edge_keep_prob.mean()) == pytest.approx(share)
    thin = DropEdge(keep_prob="edge_keep_prob", seed=1)(batch)
    assert thin.num_graphs == 3
    assert thin.num_edges == len(thin.edge_keep_prob) < batch.num_edges
    with pytest.raises(RuntimeError):  # PyG knows no longer where each of its graphs begins, and says so
        thin.to_data_list()
    assert len(batch.to_data_list()) == 3


# -- HeteroData -----------------------------------------------------------------------------------------------


def library():
    """Six authors who write eight papers, which cite each other, with attributes of arcs."""
    generator, data = torch.Generator().manual_seed(0), HeteroData()
    data["author"].x, data["paper"].x = torch.randn(6, 3, generator=generator), torch.randn(8, 5, generator=generator)
    data[WRITES].edge_index = (torch.rand(6, 8, generator=generator) < 0.5).nonzero().t().contiguous()
    count = data[WRITES].num_edges
    data[WRITES].edge_attr, data[WRITES].edge_weight = torch.arange(count), torch.rand(count, generator=generator) + 0.5
    low, high = torch.triu_indices(8, 8, 1)[:, 5:]
    data[CITES].edge_index = torch.cat((torch.stack((low, high)), torch.stack((high, low))), dim=1)
    data[CITES].edge_time = torch.arange(46)
    return data


def test_each_relation_is_a_graph_of_its_own():
    data, drop = library(), DropEdge(**RULE, seed=3)
    prob = drop.probabilities(data)
    assert list(prob) == [WRITES, CITES]
    writes = data[WRITES]
    both = Graph.from_edge_index(writes.edge_index + torch.tensor([[0], [6]]), 14, writes.edge_weight)
    wanted = keep_probabilities(edge_scores(both, "degree"), keep_ratio=0.5, rule="proportional")
    assert torch.equal(prob[WRITES], both.to_arcs(wanted))
    assert torch.equal(prob[CITES], drop.probabilities(data[CITES].edge_index))
    thin = drop(data)
    assert torch.equal(
        writes.edge_index[:, torch.isin(writes.edge_attr, thin[WRITES].edge_attr)], thin[WRITES].edge_index
    )
    assert torch.equal(data[CITES].edge_index[:, thin[CITES].edge_time], thin[CITES].edge_index)
    assert drop.epoch == 1  # one for all relations
    assert thin["paper"].x is data["paper"].x


def test_the_reverse_of_a_relation_has_its_fate_however_its_arcs_are_listed():
    data, drop, seen = ToUndirected()(library()), DropEdge(**RULE, seed=5), set()
    order = torch.randperm(data[REVERSE].num_edges, generator=torch.Generator().manual_seed(1))
    for key in ("edge_index", "edge_attr", "edge_weight"):
        data[REVERSE][key] = data[REVERSE][key][..., order]
    for _ in range(10):
        thin = drop(data)
        kept = sorted(thin[WRITES].edge_attr.tolist())
        assert sorted(thin[REVERSE].edge_attr.tolist()) == kept
        seen.add(tuple(kept))
    assert len(seen) > 5


@pytest.mark.parametrize("labelled", [WRITES, REVERSE])
def test_supervised_pairs_of_a_relation_and_of_its_reverse(labelled):
    data = ToUndirected()(library())
    data[labelled].edge_label_index = data[labelled].edge_index[:, :4]
    thin = DropEdge("original", exclude="edge_label_index")(data)
    assert torch.equal(thin[WRITES].edge_index, data[WRITES].edge_index[:, 4:])
    assert torch.equal(thin[REVERSE].edge_index, data[REVERSE].edge_index[:, 4:])
    assert thin[CITES].num_edges == 46
    with pytest.raises(TadropedgeError, match="name the attribute"):
        DropEdge(exclude=data[labelled].edge_label_index)(data)


def test_matrices_in_relations():
    data = ToUndirected()(library())
    sparse = ToSparseTensor(layout=torch.sparse_csr)(data.clone())
    thin, plain = DropEdge(**RULE, seed=2)(sparse), DropEdge(**RULE, seed=2)(data)
    for name, shape in ((WRITES, (8, 6)), (REVERSE, (6, 8)), (CITES, (8, 8))):
        kept = plain[name]
        values = kept.get("edge_weight", torch.ones(kept.num_edges))
        assert torch.equal(
            thin[name].adj_t.to_dense(), torch.zeros(shape).index_put(tuple(kept.edge_index.flip(0)), values)
        )


def test_relations_without_arcs_or_known_nodes():
    data = HeteroData()
    data["a", "x", "b"].edge_index = torch.tensor([[0, 1, 4], [2, 0, 0]])
    data["a", "y", "a"].edge_index = torch.empty(2, 0, dtype=torch.int64)
    data["c", "later", "b"].edge_attr = torch.ones(0, 3)
    for method in (
        "degree-proportional@0.5:exact",
        "degree-proportional@1:connected",
        "degree-proportional@0.5:weighted",
    ):
        thin = DropEdge(method)(data)
        assert thin["a", "y", "a"].num_edges == 0
        assert thin["a", "x", "b"].num_edges in (2, 3)
    assert AddScore("degree")(data)["a", "y", "a"].edge_score.shape == (0,)


def test_errors_name_the_relation():
    data = library()
    with pytest.raises(TadropedgeError, match=r"data\['author', 'writes', 'paper'\]: .*targets 5"):
        DropEdge("cosine-cdf", keep_prob=0.5)(data)
    data[WRITES].edge_weight = data[WRITES].edge_weight[1:]
    with pytest.raises(TadropedgeError, match=r"data\['author', 'writes', 'paper'\]: edge_weight"):
        DropEdge()(data)


def test_models_of_many_relations():
    data = ToUndirected()(library())
    thin = DropEdge(**RULE, seed=1)(data)
    convs = {WRITES: SAGEConv((3, 5), 4), REVERSE: SAGEConv((5, 3), 4), CITES: GATConv(5, 4, add_self_loops=False)}
    out = HeteroConv(convs)(thin.x_dict, thin.edge_index_dict)
    assert {kind: tuple(each.shape) for kind, each in out.items()} == {"author": (6, 4), "paper": (8, 4)}
    model = to_hetero(GraphSAGE((-1, -1), 8, num_layers=2, out_channels=2), data.metadata())
    model(thin.x_dict, thin.edge_index_dict)["paper"].sum().backward()
