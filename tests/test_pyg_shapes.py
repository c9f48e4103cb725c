"""adj_t, EdgeIndex, weights by name, two sets of nodes, arcs with coins of their own: each against plain arcs."""

import copy
import pickle
import warnings

import pytest
import torch
from test_pyg import make_data
from torch_geometric import EdgeIndex, transforms
from torch_geometric.data import Data, TemporalData
from torch_geometric.data.hypergraph_data import HyperGraphData
from torch_geometric.nn import GCN2Conv, GCNConv, SAGEConv

from tadropedge import Graph, TadropedgeError, edge_scores, keep_probabilities, sample_edges
from tadropedge.pyg import AddKeepProbability, AddScore, AddShift, TADropEdge, adjacency, ta_dropout_edge
from tadropedge.sampling import GOLDEN, MASK, mix, node_pair_words, signed

pytestmark = [  # torch says these of every sparse matrix
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta"),
    pytest.mark.filterwarnings("ignore:Sparse CSC tensor support is in beta"),
    pytest.mark.filterwarnings("ignore:Sparse BSR tensor support is in beta"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled"),
]
RULE = {"score": "degree", "strategy": "proportional", "keep_ratio": 0.6}
LAYOUTS = {
    "csr": lambda coo: coo.to_sparse_csr(),
    "csc": lambda coo: coo.to_sparse_csc(),
    "coo": lambda coo: coo,
}


class TwoSets(Data):
    """Arcs from one set of nodes to another, as PyG's documentation writes them."""

    def __inc__(self, key, value, *args):
        sizes = torch.tensor([[len(self.x_s)], [len(self.x_t)]])
        return sizes if key == "edge_index" else super().__inc__(key, value, *args)


def directed(seed=0):
    """Arcs with weights on seven nodes: some edges one way, some both ways, a self-loop."""
    arcs = torch.tensor([[0, 1, 2, 2, 3, 4, 5, 5, 6, 1, 3], [1, 0, 0, 3, 4, 2, 4, 5, 1, 5, 2]])
    order = torch.randperm(arcs.shape[1], generator=torch.Generator().manual_seed(seed))
    return arcs[:, order], 1.0 + torch.arange(arcs.shape[1], dtype=torch.float32)


def matrix_of(arcs, weight, shape=(7, 7), layout="csr"):
    """The transposed adjacency matrix: row target, column source."""
    return LAYOUTS[layout](torch.sparse_coo_tensor(arcs.flip(0), weight, shape).coalesce())


def dense_of(arcs, values, shape=(7, 7)):
    return torch.zeros(shape).index_put((arcs[1], arcs[0]), values, accumulate=True)


# -- adj_t --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("options", [{}, {"unbiased": True}, {"coins": "arc"}, {"coins": "arc", "unbiased": True}])
def test_a_matrix_is_thinned_like_its_arcs(layout, options, device):
    arcs, weight = (each.to(device) for each in directed())
    adj_t = matrix_of(arcs, weight, layout=layout)
    by_matrix, by_arcs = (TADropEdge(seed=5, **RULE, **options).to(device) for _ in range(2))
    for _ in range(5):
        thin = by_matrix(adj_t)
        kept, _, values = by_arcs(arcs, edge_weight=weight, num_nodes=7)
        assert thin.layout is adj_t.layout
        assert torch.allclose(thin.to_dense().cpu(), dense_of(kept.cpu(), values.cpu()))
    assert by_matrix.eval()(adj_t) is adj_t


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_coo])
def test_data_with_a_matrix(layout):
    """``ToSparseTensor`` sorts what it keeps beside the matrix, which is thinned along."""
    arcs, weight = directed()
    data = Data(edge_index=arcs, edge_weight=weight, edge_time=10 * arcs[0] + arcs[1], x=torch.eye(7))
    sparse = transforms.ToSparseTensor(layout=layout)(copy.copy(data))
    assert "edge_index" not in sparse
    thin, plain = TADropEdge(seed=1, **RULE)(sparse), TADropEdge(seed=1, **RULE)(data)
    assert torch.equal(thin.adj_t.to_dense(), dense_of(plain.edge_index, plain.edge_weight))
    assert sorted(thin.edge_time.tolist()) == sorted(plain.edge_time.tolist())
    entries = thin.adj_t.to_sparse_coo().coalesce().indices()
    assert torch.equal(thin.edge_time, 10 * entries[1] + entries[0])
    assert sparse.adj_t._nnz() == arcs.shape[1]
    assert thin.x is sparse.x


def test_scores_beside_a_matrix_are_those_of_arcs():
    arcs, weight = directed()
    plain = Data(edge_index=arcs, edge_weight=weight, num_nodes=7, graph_number=0)  # else each call counts
    rule = transforms.Compose([AddScore("degree"), AddKeepProbability(keep_prob=0.4)])
    first = transforms.ToSparseTensor(layout=torch.sparse_csr)(rule(plain))
    after = rule(transforms.ToSparseTensor(layout=torch.sparse_csr)(copy.copy(plain)))
    assert torch.equal(after.edge_score, first.edge_score)
    assert torch.equal(after.edge_keep_prob, first.edge_keep_prob)
    assert set(after.keys()) - set(plain.keys()) == {"adj_t", "edge_keep_prob", "edge_score", "largest_keep_prob"}
    drop = TADropEdge(seed=2, advance="manual")
    kept = drop(rule(plain))
    assert torch.equal(drop(after).adj_t.to_dense(), dense_of(kept.edge_index, kept.edge_weight))
    assert torch.equal(drop(after.adj_t, after.edge_keep_prob).to_dense(), drop(after).adj_t.to_dense())
    assert torch.equal(drop.mask(after.adj_t, after.edge_keep_prob).sum(), torch.tensor(kept.num_edges))


def test_edge_index_beside_a_matrix():
    data = transforms.ToSparseTensor(layout=torch.sparse_csr, remove_edge_index=False)(make_data())
    assert data.adj_t._nnz() < data.edge_index.shape[1]  # an arc is listed twice
    thin = TADropEdge(seed=3, **RULE)(data)
    assert torch.equal(thin.edge_index, data.edge_index[:, TADropEdge(seed=3, **RULE).mask(data.edge_index)])
    assert torch.equal(thin.adj_t.to_dense() > 0, dense_of(thin.edge_index, torch.ones(1), (34, 34)) > 0)
    assert thin.edge_attr.shape == (thin.edge_index.shape[1], 3)
    data.edge_index = data.edge_index[:, 1:]
    data.edge_attr = data.edge_attr[1:]
    data.edge_index[:, 0] = torch.tensor([0, 26])  # no arc of the matrix
    with pytest.raises(TadropedgeError, match="has an edge_index and an adj_t, but not of the same arcs: delete one"):
        TADropEdge(seed=3, **RULE)(data)


def test_gradients_reach_the_values_of_a_matrix():
    arcs, weight = directed()
    for layout in LAYOUTS:
        values = weight.clone().requires_grad_()
        adj_t = matrix_of(arcs, values, layout=layout)
        thin = TADropEdge(seed=5, advance="manual", **RULE, unbiased=True)(adj_t)
        (thin @ torch.ones(7, 1)).sum().backward()
        prob = TADropEdge(**RULE).probabilities(arcs, edge_weight=weight, num_nodes=7)
        mask = TADropEdge(seed=5, **RULE).mask(arcs, edge_weight=weight, num_nodes=7)
        assert torch.allclose(values.grad, torch.where(mask, 1 / prob, 0.0).float())


def test_matrices_are_known_again():
    """One plan for a matrix, also when its values changed and changed back; other values are another graph."""
    arcs, _ = directed()
    drop, adj_t = TADropEdge(**RULE), matrix_of(*directed())
    before = drop.probabilities(adj_t)
    assert adjacency.entries(adj_t).edge_index is adjacency.entries(adj_t).edge_index
    adj_t.values().mul_(torch.arange(1, 12))
    after = drop.probabilities(adj_t)
    assert len(drop.plans) == 2
    changed = adj_t.to_sparse_coo().coalesce()
    graph = Graph.from_edge_index(changed.indices(), 7, changed.values())
    wanted = keep_probabilities(edge_scores(graph, "degree"), keep_ratio=0.6, strategy="proportional")
    assert torch.equal(after, graph.to_arcs(wanted, loops=1.0))
    assert not torch.equal(before, after)
    assert torch.equal(TADropEdge(**RULE, weight=None).probabilities(adj_t).unique(),
                       TADropEdge(**RULE).probabilities(arcs, num_nodes=7).unique())  # fmt: skip


def test_matrices_of_repeated_and_of_no_entries():
    twice = torch.sparse_coo_tensor(torch.tensor([[0, 0, 1], [1, 1, 0]]), torch.tensor([1.0, 2.0, 4.0]), (2, 2))
    masks = [TADropEdge(seed=seed, keep_prob=0.5)(twice) for seed in range(20)]
    assert {tuple(one._values().tolist()) for one in masks} == {(), (1.0, 2.0, 4.0)}
    for layout in LAYOUTS:
        empty = matrix_of(torch.empty(2, 0, dtype=torch.int64), torch.empty(0), layout=layout)
        assert TADropEdge(**RULE)(empty)._nnz() == 0
        assert TADropEdge(**RULE)(Data(adj_t=empty, x=torch.eye(7))).adj_t.shape == (7, 7)
    many = torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 2]]), torch.ones(2, 3), (3, 3, 3)).coalesce()
    thin = TADropEdge(seed=1, **RULE)(many)
    assert thin.values().shape[1:] == (3,)


class Matrix:
    """As much of torch_sparse's SparseTensor as is used."""

    def __init__(self, row, col, value=None, sparse_sizes=None, is_sorted=False):
        self.row, self.col, self.value, self.sizes = row, col, value, sparse_sizes

    def coo(self):
        return self.row, self.col, self.value

    def sparse_sizes(self):
        return self.sizes


@pytest.mark.parametrize("weighted", [True, False])
def test_matrices_of_torch_sparse(monkeypatch, weighted):
    monkeypatch.setattr(adjacency, "SparseTensor", Matrix)
    arcs, weight = directed()
    matrix = Matrix(arcs[1], arcs[0], weight if weighted else None, (7, 7))
    given = {"edge_weight": weight} if weighted else {}
    for unbiased in (False, True):
        thin = TADropEdge(seed=4, **RULE, unbiased=unbiased)(matrix)
        kept, mask, *values = TADropEdge(seed=4, **RULE, unbiased=unbiased)(arcs, num_nodes=7, **given)
        assert torch.equal(torch.stack((thin.col, thin.row)), kept)
        assert thin.sizes == (7, 7)
        assert thin.value is None if not values else torch.equal(thin.value, values[0])
    assert int(TADropEdge(seed=4, **RULE).mask(matrix).sum()) == int(mask.sum())


# -- EdgeIndex ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["row", "col", None])
def test_an_edge_index_stays_one(order):
    arcs = make_data().edge_index
    if order is not None:
        arcs = arcs[:, arcs[0 if order == "row" else 1].argsort(stable=True)]
    whole = EdgeIndex(arcs, sparse_size=(34, 34), sort_order=order, is_undirected=True)
    if order is not None:
        whole.fill_cache_()
    drop = TADropEdge(seed=6, advance="manual", **RULE)
    kept, mask = drop(whole)
    assert isinstance(kept, EdgeIndex)
    assert torch.equal(mask, drop.mask(arcs))
    assert torch.equal(kept.as_tensor(), arcs[:, mask])
    assert (kept.sparse_size(), kept.sort_order, kept.is_undirected) == ((34, 34), order, True)
    kept.validate()
    x = torch.randn(34, 3)
    if order == "row":  # by what an EdgeIndex has computed of itself
        wanted = torch.zeros(34, 3).index_add(0, arcs[0, mask], x[arcs[1, mask]])
        assert torch.allclose(kept.matmul(x), wanted, atol=1e-5)
    thin = TADropEdge(seed=6, **RULE)(Data(edge_index=whole, x=x))
    assert isinstance(thin.edge_index, EdgeIndex)
    assert torch.equal(thin.edge_index.as_tensor(), kept.as_tensor())
    same, again = ta_dropout_edge(whole, seed=6, **RULE)
    assert isinstance(same, EdgeIndex)
    assert torch.equal(again, mask)


def test_an_edge_index_is_called_undirected_only_where_it_is():
    arcs = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    whole = EdgeIndex(arcs, sparse_size=(3, 3), is_undirected=True)
    assert not TADropEdge(keep_prob=0.5, coins="arc")(whole)[0].is_undirected
    assert not TADropEdge()(whole, torch.tensor([0.1, 0.9, 0.5, 0.5]))[0].is_undirected
    assert TADropEdge(exact=True)(whole, torch.full((4,), 0.5))[0].is_undirected
    scored = AddScore("degree")(Data(edge_index=whole))
    assert scored.edge_score.tolist() == AddScore("degree")(Data(edge_index=arcs, num_nodes=3)).edge_score.tolist()
    between = EdgeIndex(torch.tensor([[0, 1, 0], [1, 0, 0]]), sparse_size=(2, 3))
    assert torch.equal(TADropEdge(seed=1, keep_prob=0.5).mask(between),
                       TADropEdge(seed=1, keep_prob=0.5).mask(between.as_tensor(), num_nodes=(2, 3)))  # fmt: skip


# -- weights by name ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", [False, True])
def test_weights_in_another_attribute(column):
    arcs, weight = directed()
    strength = weight[:, None] if column else weight
    data = Data(edge_index=arcs, edge_attr=strength, num_nodes=7)
    plain = Data(edge_index=arcs, edge_weight=weight, num_nodes=7)
    for unbiased in (False, True):
        thin = TADropEdge(seed=3, **RULE, unbiased=unbiased, weight="edge_attr")(data)
        wanted = TADropEdge(seed=3, **RULE, unbiased=unbiased)(plain)
        assert torch.equal(thin.edge_index, wanted.edge_index)
        assert torch.equal(thin.edge_attr.view(-1), wanted.edge_weight)
        assert thin.edge_attr.dim() == strength.dim()
        assert "edge_weight" not in thin
    scored = AddScore("degree", weight="edge_attr")(data)
    assert torch.equal(scored.edge_score, AddScore("degree")(plain).edge_score)
    assert not torch.equal(scored.edge_score, AddScore("degree")(data).edge_score)
    assert torch.equal(AddScore("degree", weight=None)(plain).edge_score, AddScore("degree")(data).edge_score)
    assert sorted(scored.keys()) == ["edge_attr", "edge_index", "edge_score", "graph_number", "num_nodes"]
    assert repr(AddScore("degree", weight="edge_attr")) != repr(AddScore("degree"))


def test_many_columns_are_thinned_and_not_read():
    data = make_data()
    mask = TADropEdge(seed=1, **RULE).mask(data.edge_index)
    assert torch.equal(TADropEdge(seed=1, **RULE)(data).edge_attr, data.edge_attr[mask])


def test_labels_of_links_are_no_arcs():
    """A split for link prediction may ask about as many pairs as there are arcs."""
    arcs = make_data().edge_index
    count = arcs.shape[1]
    data = Data(edge_index=arcs, num_nodes=34, edge_label=torch.ones(count), edge_label_index=arcs.flip(1))
    thin = TADropEdge(keep_prob=0.5)(data)
    assert thin.num_edges < count
    assert torch.equal(thin.edge_label_index, arcs.flip(1))
    assert thin.edge_label.shape == (count,)


@pytest.mark.parametrize(
    "named", [{}, {"split_labels": True}, {"key": "edge_rating"}, {"key": "stars", "split_labels": True}]
)
@pytest.mark.parametrize("ratio", [0.0, 1.0])
def test_labels_of_links_under_other_names(named, ratio):
    """Split with labels apart, a directed graph has as many of each kind as arcs."""
    data = Data(edge_index=make_data().edge_index, num_nodes=34, edge_time=torch.arange(make_data().num_edges))
    split = transforms.RandomLinkSplit(num_val=0.1, num_test=0.1, neg_sampling_ratio=ratio, **named)
    train = split(data)[0]
    thin = TADropEdge(keep_prob=0.5)(train)
    assert thin.num_edges < train.num_edges
    assert thin.edge_time.shape == (thin.num_edges,)
    assert set(train.keys()) == set(thin.keys())
    for key in set(train.keys()) - {"edge_index", "edge_time", "num_nodes"}:
        assert torch.equal(thin[key], train[key])


# -- two sets of nodes --------------------------------------------------------------------------------------


def test_two_sets_of_nodes_have_ordered_coins():
    """(3, 7) and (7, 3) are other nodes. Coins do not depend on the sizes, scores are those of the graph of both."""
    arcs = torch.cartesian_prod(torch.arange(8), torch.arange(8)).T
    masks = torch.stack([TADropEdge(seed=seed, keep_prob=0.5).mask(arcs, num_nodes=(8, 8)) for seed in range(400)])
    square = masks.view(400, 8, 8).double() - 0.5
    assert abs(float((square * square.mT)[:, ~torch.eye(8, dtype=torch.bool)].mean())) < 0.02  # 0.25 if they were one
    assert float(square[:, range(8), range(8)].mean()) == pytest.approx(0, abs=0.03)  # no self-loops either
    more = TADropEdge(seed=3, keep_prob=0.5).mask(arcs, num_nodes=(8, 11))
    assert torch.equal(more, masks[3])
    some = torch.tensor([[0, 0, 1, 2, 4], [1, 2, 2, 2, 0]])
    graph = Graph.from_edge_index(some + torch.tensor([[0], [5]]), 8)
    wanted = keep_probabilities(edge_scores(graph, "degree"), keep_ratio=0.6, strategy="proportional")
    assert torch.equal(TADropEdge(**RULE).probabilities(some, num_nodes=(5, 3)), graph.to_arcs(wanted))


def test_two_sets_of_nodes_as_a_matrix():
    arcs = torch.tensor([[0, 0, 1, 2, 4], [1, 2, 2, 2, 0]])
    adj_t = matrix_of(arcs, torch.arange(1.0, 6.0), (3, 5))
    for options in ({}, {"connected": True}, {"exact": True}):
        rule = RULE | {"keep_ratio": 1.0 if "connected" in options else 0.6} | options
        kept, _, values = TADropEdge(seed=2, **rule)(arcs, num_nodes=(5, 3), edge_weight=torch.arange(1.0, 6.0))
        assert torch.equal(TADropEdge(seed=2, **rule)(adj_t).to_dense(), dense_of(kept, values, (3, 5)))
        thin, mask = ta_dropout_edge(adj_t, seed=2, **rule)
        assert torch.equal(thin.to_dense(), dense_of(kept, values, (3, 5)))
        assert int(mask.sum()) == kept.shape[1]
    scored = AddScore("degree")(Data(adj_t=adj_t))
    graph = Graph.from_edge_index(arcs + torch.tensor([[0], [5]]), 8, torch.arange(1.0, 6.0))
    assert sorted(scored.edge_score.tolist()) == sorted(graph.to_arcs(edge_scores(graph, "degree")).tolist())
    square = matrix_of(arcs, torch.ones(5), (5, 5))
    kept = TADropEdge(seed=1, keep_prob=0.5)(arcs, num_nodes=(5, 5))[0]
    thin = TADropEdge(seed=1, keep_prob=0.5)(square, num_nodes=(5, 5))
    assert torch.equal(thin.to_dense(), dense_of(kept, torch.ones(1), (5, 5)))


def test_two_sets_of_nodes_in_mini_batches():
    """Coins go by the ids of sources and of targets, each of its own kind."""
    arcs = torch.tensor([[0, 0, 1, 2, 4, 3], [1, 2, 2, 2, 0, 1]])
    prob = torch.full((6,), 0.5)
    drop = TADropEdge(seed=8, advance="manual")
    whole = drop.mask(arcs, prob, num_nodes=(5, 3))
    sources, targets = torch.tensor([4, 3, 2, 1, 0]), torch.tensor([2, 0, 1])
    renamed = torch.stack((sources.argsort()[arcs[0]], targets.argsort()[arcs[1]]))
    assert torch.equal(drop.mask(renamed, prob, (sources, targets), num_nodes=(5, 3)), whole)
    assert not torch.equal(drop.mask(renamed, prob, num_nodes=(5, 3)), whole)
    half = torch.stack((renamed[0], arcs[1]))
    assert torch.equal(drop.mask(half, prob, (sources, None), num_nodes=(5, 3)), whole)
    exact = TADropEdge(seed=8, exact=True, advance="manual")
    assert torch.equal(exact.mask(renamed, prob, (sources, targets), num_nodes=(5, 3)),
                       exact.mask(arcs, prob, num_nodes=(5, 3)))  # fmt: skip


def test_features_of_two_sets():
    arcs = torch.tensor([[0, 1, 1], [0, 0, 1]])
    x = (torch.tensor([[1.0, 0.0], [0.6, 0.8]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    drop = TADropEdge(score="cosine", strategy="proportional", keep_ratio=0.5)
    wanted = keep_probabilities(torch.tensor([1.0, 0.6, 0.8]), keep_ratio=0.5, strategy="proportional")
    assert torch.allclose(drop.probabilities(arcs, x=x, num_nodes=(2, 2)), wanted, atol=1e-6)
    with pytest.raises(TadropedgeError, match="'cosine' compares features, but sources have 2 and targets 3"):
        drop(arcs, x=(x[0], torch.ones(2, 3)), num_nodes=(2, 2))
    with pytest.raises(TadropedgeError, match="'cosine' needs features of both kinds of nodes, got none of the targe"):
        drop(arcs, x=(x[0], None), num_nodes=(2, 2))


# -- coins of arcs ------------------------------------------------------------------------------------------


def test_literal_words():
    """Words of pairs are those of version 0.1; ordered ones and those of relations are part of the interface, too."""
    pairs = torch.tensor([[3, 7], [7, 3]])

    def word(first, second, relation=0):
        return signed(mix((mix(((first + 1) * GOLDEN + relation) & MASK) + second * GOLDEN) & MASK))

    assert node_pair_words(pairs).tolist() == [word(3, 7)] * 2
    assert node_pair_words(pairs, ordered=True).tolist() == [word(3, 7), word(7, 3)]
    assert node_pair_words(pairs, ordered=True, relation=2**63 + 5).tolist() == [
        word(3, 7, 2**63 + 5),
        word(7, 3, 2**63 + 5),
    ]
    assert word(3, 7) == -4295367249131508623
    assert word(7, 3) == 5680667148098334032


def test_arcs_with_coins_of_their_own(device):
    arcs = make_data().edge_index.to(device)
    drop = TADropEdge(seed=9, coins="arc", **RULE).to(device)
    prob = drop.probabilities(arcs)
    assert torch.equal(prob, TADropEdge(**RULE).to(device).probabilities(arcs))  # the score is symmetric
    keys = (arcs[0] * 34 + arcs[1]).tolist()
    backwards = [keys.index(int(v) * 34 + int(u)) for u, v in arcs.T.tolist()]
    masks = torch.stack([drop.mask(arcs) for _ in range(300)]).cpu()
    for place, key in enumerate(keys):  # duplicates share a fate
        assert torch.equal(masks[:, place], masks[:, keys.index(key)])
    proper = (arcs[0] != arcs[1]).cpu()
    assert bool(masks[:, ~proper].all())
    assert torch.allclose(masks.double().mean(0)[proper], prob.cpu()[proper], atol=0.15)
    assert float(masks.double().mean(0).mean()) == pytest.approx(float(prob.mean()), abs=0.01)
    apart = (masks.double() - prob.cpu())[:, proper]
    other = (masks[:, backwards].double() - prob.cpu())[:, proper]
    assert abs(float((apart * other).mean())) < 0.01
    assert float((apart * apart).mean()) > 0.1
    given = ta_dropout_edge(arcs, prob, coins="arc", seed=9)[1]
    assert torch.equal(given.cpu(), masks[0])
    assert torch.equal(ta_dropout_edge(arcs, coins="arc", seed=9, epoch=1, **RULE)[1].cpu(), masks[1])


def test_arcs_of_layers_are_nested():
    arcs = make_data().edge_index
    drop = TADropEdge(advance="manual", coins="arc", layers=3, **RULE | {"keep_ratio": 0.2})
    first, second, third = (drop.mask(arcs, layer=layer) for layer in range(3))
    assert bool((first <= second).all() and (second <= third).all())
    assert int(first.sum()) < int(second.sum()) < int(third.sum())


# -- models, copies, bad input ------------------------------------------------------------------------------


@pytest.mark.parametrize("conv", [lambda: GCNConv(4, 4), lambda: GCN2Conv(4, 0.1), lambda: SAGEConv(4, 4)])
def test_layers_of_pyg_take_what_is_left(conv, device):
    """The same numbers and gradients by the matrix as by arcs."""
    data = transforms.RemoveDuplicatedEdges()(Data(x=make_data().x, edge_index=make_data().edge_index)).to(device)
    data = transforms.RemoveSelfLoops()(data)  # to which layers add their own, but not in every shape
    sparse = transforms.ToSparseTensor(layout=torch.sparse_csr)(copy.copy(data))
    layer, found = conv().to(device), []
    for graph in (TADropEdge(seed=1, **RULE).to(device)(each) for each in (sparse, data)):
        arcs = graph.adj_t if "adj_t" in graph else graph.edge_index
        out = layer(graph.x, graph.x, arcs) if isinstance(layer, GCN2Conv) else layer(graph.x, arcs)
        layer.zero_grad()
        out.square().sum().backward()
        found.append([out.detach(), *(each.grad.clone() for each in layer.parameters())])
    for by_matrix, by_arcs in zip(*found, strict=True):
        assert torch.allclose(by_matrix, by_arcs, atol=1e-4, rtol=1e-4)
        assert float(by_arcs.abs().max()) > 0


def test_a_model_on_a_matrix_is_the_model_on_arcs(device):
    arcs, weight = (each.to(device) for each in directed())
    x, layer = torch.eye(7, device=device), GCNConv(7, 3).to(device)
    adj_t = matrix_of(arcs, weight)
    kept, _, values = TADropEdge(seed=1, **RULE).to(device)(arcs, edge_weight=weight, num_nodes=7)
    thin = TADropEdge(seed=1, **RULE).to(device)(adj_t)
    assert torch.allclose(layer(x, thin), layer(x, kept, values), atol=1e-6)


def test_copies_and_pickles():
    drop = TADropEdge(seed=3, coins="arc", weight="strength", relations=["cites", ("a", "b", "c")], keep_prob=0.5)
    assert "coins='arc', weight='strength'" in repr(drop)
    for other in (copy.deepcopy(drop), pickle.loads(pickle.dumps(drop))):
        assert repr(other) == repr(drop)
    old = TADropEdge(keep_prob=0.5)
    for name in ("coins", "weight", "relations"):
        del old.dropping.__dict__[name]  # as it was pickled before there were any
    arcs = torch.tensor([[0, 1], [1, 0]])
    assert torch.equal(pickle.loads(pickle.dumps(old)).mask(arcs), TADropEdge(keep_prob=0.5).mask(arcs))


ARCS, WEIGHT = directed()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    MATRIX = matrix_of(ARCS, WEIGHT)
DROP = TADropEdge(advance="manual", **RULE)
BAD = {
    "coins": (lambda: TADropEdge(keep_prob=0.5, coins="edge"), "unknown coins 'edge'"),
    "connected arcs": (lambda: TADropEdge(keep_prob=0.5, coins="arc", connected=True),
                       "connected is about edges, of which both arcs share a coin: use coins='pair'"),
    "exact arcs": (lambda: ta_dropout_edge(ARCS, keep_prob=0.5, coins="arc", exact=True), "exact is about edges"),
    "weight": (lambda: TADropEdge(keep_prob=0.5, weight=3), "weight must be"),
    "name of weights": (lambda: TADropEdge(**RULE, weight="strenght")(Data(edge_index=ARCS, num_nodes=7)),
                        "weight='strenght', but data has no attribute of this name, only edge_index, num_nodes"),
    "columns of weights": (lambda: TADropEdge(**RULE, weight="edge_attr")(make_data()),
                           r"weight='edge_attr': data.edge_attr has shape \[158, 3\], expected one weight for each"),
    "weights and matrix": (lambda: DROP(MATRIX, edge_weight=WEIGHT), "whose values are its edge weights: leave"),
    "attributes and matrix": (lambda: DROP(MATRIX, WEIGHT), "a sparse matrix has values and no edge attributes"),
    "size and matrix": (lambda: DROP(MATRIX, num_nodes=9), "num_nodes=9, but the sparse matrix has 7 sources"),
    "sizes and matrix": (lambda: DROP(MATRIX, num_nodes=(7, 8)), "leave num_nodes out"),
    "blocks": (lambda: DROP(torch.eye(4).to_sparse_bsr((2, 2))), r"convert it with edge_index.to_sparse_csr\(\)"),
    "batch": (lambda: DROP(torch.ones(2, 3, 3).to_sparse_csr()), "edge_index must be a sparse matrix of real numbers"),
    "no matrix": (lambda: DROP(Data(adj_t=torch.eye(3))), "data.adj_t must be a sparse matrix, got"),
    "probabilities": (lambda: TADropEdge()(MATRIX, torch.ones(3)), "edge_keep_prob has shape"),
    "gradient": (lambda: DROP(torch.sparse_coo_tensor(ARCS, WEIGHT.clone().requires_grad_(), (7, 7))),
                 r"edge_index needs a gradient but is not coalesced: give edge_index.coalesce\(\)"),
    "rows": (lambda: DROP(Data(adj_t=MATRIX, edge_attr=torch.ones(5, 2))),
             "edge_attr has 5 rows, but adj_t has 11 entries: ToSparseTensor adds up repeated arcs, so apply"),
    "source": (lambda: DROP(ARCS, num_nodes=(3, 7)), r"holds the source 6, but num_nodes=\(3, 7\): sources run from 0"),
    "target": (lambda: TADropEdge()(ARCS, torch.ones(11), num_nodes=(7, 3)), "holds the target 5"),
    "three sizes": (lambda: DROP(ARCS, num_nodes=(7, 7, 7)), r"a number or a pair \(sources, targets\)"),
    "no size": (lambda: DROP(ARCS, num_nodes=(7, None)), "num_nodes must be a whole number"),
    "one x": (lambda: DROP(ARCS, x=torch.eye(7), num_nodes=(7, 7)), "x must be a pair"),
    "two x": (lambda: DROP(ARCS, x=(torch.eye(7), torch.eye(7))), r"give num_nodes=\(sources, targets\), too"),
    "few ids": (lambda: DROP(ARCS, node_id=(torch.arange(2), None), num_nodes=(7, 7)), "names 2 nodes, but the"),
    "nothing": (lambda: DROP(Data(x=torch.eye(3))), "expected a homogeneous torch_geometric Data with an edge_index"),
    "dense adj": (lambda: DROP(Data(adj=torch.eye(3))), r"torch_geometric.utils.dense_to_sparse\(data.adj\)"),
    "hypergraph": (lambda: DROP(HyperGraphData(x=torch.eye(3), edge_index=ARCS)),
                   "a HyperGraphData has edges of many nodes: list their pairs of nodes in a Data first"),
    "events": (lambda: DROP(TemporalData(src=ARCS[0], dst=ARCS[1], t=ARCS[0], msg=WEIGHT)),
               "a TemporalData is a stream of events: give Data"),
    "score of events": (lambda: AddScore("degree")(TemporalData(src=ARCS[0], dst=ARCS[1], t=ARCS[0], msg=WEIGHT)),
                        "a TemporalData is a stream of events"),
    "two sets": (lambda: DROP(TwoSets(edge_index=ARCS, x_s=torch.eye(7), x_t=torch.eye(7))),
                 r"TwoSets.__inc__ says .*: give a HeteroData, or drop\(data.edge_index, num_nodes=\(S, T\)\)"),
    "shift": (lambda: AddShift()(Data(adj_t=MATRIX)), r"and ToSparseTensor\(attr='edge_shift'\) afterwards"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, message = BAD[name]
    with pytest.raises(TadropedgeError, match=message) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_coins_of_pairs_are_those_of_sample_edges():
    """What was so stays so: arcs of a plain graph, by the words of version 0.1."""
    arcs = make_data().edge_index
    prob = torch.full((arcs.shape[1],), 0.5)
    assert torch.equal(TADropEdge(seed=7).mask(arcs, prob), sample_edges(prob, seed=7, pairs=arcs))
