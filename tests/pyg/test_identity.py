"""One identity of an edge: its two node ids. Every door draws the same mask, compared as pairs."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric import EdgeIndex
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import BaseSampler, SamplerOutput
from torch_geometric.transforms import ToSparseTensor, ToUndirected

from tadropedge import Dropping, Graph, edge_scores, keep_probabilities, sample_edges
from tadropedge.pyg import AddKeepProbability, AddScore, DropEdge, dropout_edge
from tadropedge.testing.graphs import ZOO

METHOD, RATIO, SEED = "degree-proportional", 0.6, 11
EPOCHS = (0, 1, 7)


def listed(graph, seed):
    """The arcs of a graph in any order, some of them twice, some edges in one direction only, and self-loops."""
    generator = torch.Generator().manual_seed(seed)
    loops = torch.randint(graph.num_nodes, (2, 3), generator=generator)
    back = graph.pairs.flip(0)[:, torch.rand(graph.num_edges, generator=generator) < 0.8]
    arcs = torch.cat((graph.pairs, back, graph.pairs[:, :2], loops[0].expand(2, 3)), dim=1)
    return arcs[:, torch.randperm(arcs.shape[1], generator=generator)]


def pairs_of(arcs):
    """The pairs of different nodes that a list of arcs joins."""
    return {tuple(sorted(arc)) for arc in arcs.t().tolist() if arc[0] != arc[1]}


def expected(graph, epoch):
    """What the four functions of the core keep."""
    prob = keep_probabilities(edge_scores(graph, "degree"), rule="proportional", keep_ratio=RATIO)
    return pairs_of(graph.pairs[:, sample_edges(prob, seed=SEED, epoch=epoch, graph=graph)])


def module():
    return DropEdge(METHOD, keep_ratio=RATIO, seed=SEED)


def at(drop, epoch):
    drop.set_epoch(epoch)
    return drop


def by_pairs(graph, arcs, epoch):
    prob = Dropping.parse(METHOD, keep_ratio=RATIO).plan(graph).prob
    return graph.pairs[:, sample_edges(prob, seed=SEED, epoch=epoch, pairs=graph.pairs.flip(0))]


def by_transform(graph, arcs, epoch):
    data = AddKeepProbability(METHOD, keep_ratio=RATIO)(Data(edge_index=arcs, num_nodes=graph.num_nodes))
    return at(DropEdge(keep_prob="edge_keep_prob", seed=SEED), epoch)(data).edge_index


def by_two_transforms(graph, arcs, epoch):
    scored = AddScore("degree")(Data(edge_index=arcs, num_nodes=graph.num_nodes))
    data = AddKeepProbability("column-proportional", keep_ratio=RATIO, column="edge_score")(scored)
    return at(DropEdge(seed=SEED), epoch)(arcs, keep_prob=data.edge_keep_prob, num_nodes=graph.num_nodes)[0]


def by_matrix(graph, arcs, epoch):
    data = ToSparseTensor(layout=torch.sparse_csr)(Data(edge_index=arcs, num_nodes=graph.num_nodes))
    return at(module(), epoch)(Data(adj_t=data.adj_t.sign())).adj_t.to_dense().nonzero().t().flip(0)


def by_relation(graph, arcs, epoch):
    data = HeteroData()
    data["user"].num_nodes = graph.num_nodes
    data["user", "knows", "user"].edge_index = arcs
    data["user", "rev_knows", "user"].edge_index = arcs.flip(0)
    thin = at(module(), epoch)(data)
    assert pairs_of(thin["user", "rev_knows", "user"].edge_index) == pairs_of(thin["user", "knows", "user"].edge_index)
    return thin["user", "knows", "user"].edge_index


def by_dropout_edge(graph, arcs, epoch):
    both = torch.cat((graph.pairs, graph.pairs.flip(0)), dim=1)
    p = 1 - Dropping.parse(METHOD, keep_ratio=RATIO).plan(graph).prob.repeat(2)
    return dropout_edge(both, p, force_undirected=True, seed=SEED, epoch=epoch)[0]


DOORS = {
    "plan": lambda graph, arcs, epoch: graph.pairs[
        :, Dropping.parse(METHOD, keep_ratio=RATIO).plan(graph).sample(SEED, epoch)
    ],
    "pairs": by_pairs,
    "module": lambda graph, arcs, epoch: at(module(), epoch)(arcs, num_nodes=graph.num_nodes)[0],
    "int32": lambda graph, arcs, epoch: at(module(), epoch)(arcs.int(), num_nodes=graph.num_nodes)[0],
    "EdgeIndex": lambda graph, arcs, epoch: at(module(), epoch)(EdgeIndex(arcs, sparse_size=(graph.num_nodes,) * 2))[
        0
    ].as_tensor(),
    "Data": lambda graph, arcs, epoch: at(module(), epoch)(Data(edge_index=arcs, num_nodes=graph.num_nodes)).edge_index,
    "first view": lambda graph, arcs, epoch: at(module(), epoch).views(arcs, 2, num_nodes=graph.num_nodes)[0][0],
    "transform": by_transform,
    "two transforms": by_two_transforms,
    "matrix": by_matrix,
    "relation": by_relation,
    "dropout_edge": by_dropout_edge,
}


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize("name", ["karate", "clusters", "parts"])
def test_every_door_keeps_the_same_pairs(name, door):
    graph = Graph.from_edge_index(ZOO[name].pairs, ZOO[name].num_nodes)
    for epoch in EPOCHS:
        assert pairs_of(door(graph, listed(graph, epoch), epoch)) == expected(graph, epoch)


@given(seed=st.integers(0, 2**32), epoch=st.integers(0, 2**40), order=st.integers(0, 9))
def test_for_any_seed_epoch_and_order_of_the_arcs(seed, epoch, order):
    graph = ZOO["karate"]
    arcs, drop = listed(graph, order), DropEdge(p=0.4, seed=seed)
    kept = pairs_of(at(drop, epoch)(arcs)[0])
    assert kept == pairs_of(graph.pairs[:, sample_edges(torch.full((78,), 0.6), seed=seed, epoch=epoch, graph=graph)])
    whole = torch.cat((graph.pairs, graph.pairs.flip(0)), dim=1)
    assert kept == pairs_of(dropout_edge(whole, 0.4, force_undirected=True, seed=seed, epoch=epoch)[0])


# -- mini-batches ---------------------------------------------------------------------------------------------


class FewNeighbours(BaseSampler):
    """At most ``most`` neighbours of each node, two hops from the seeds, as PyG's compiled sampler finds them."""

    def __init__(self, edge_index, most):
        self.edge_index, self.most = edge_index, most
        self.generator = torch.Generator().manual_seed(0)

    def sample_from_nodes(self, index, **_):
        nodes = index.node.tolist()
        arcs, asking = [], list(nodes)
        for _hop in range(2):
            found = []
            for node in asking:
                into = (self.edge_index[1] == node).nonzero()[:, 0]
                found += into[torch.randperm(len(into), generator=self.generator)[: self.most]].tolist()
            arcs += found
            asking = sorted({*self.edge_index[0, found].tolist()} - {*nodes})
            nodes += asking
        arcs = torch.tensor(list(dict.fromkeys(arcs)))
        place = {node: at for at, node in enumerate(nodes)}
        row, col = (torch.tensor([place[node] for node in side]) for side in self.edge_index[:, arcs].tolist())
        metadata = (index.input_id, index.time)
        return SamplerOutput(node=torch.tensor(nodes), row=row, col=col, edge=arcs, metadata=metadata)

    def sample_from_edges(self, index, **_):
        raise NotImplementedError

    @property
    def edge_permutation(self):
        return None


@pytest.mark.parametrize("options", ["", ":unbiased"])
def test_batches_of_a_loader_keep_what_the_whole_graph_keeps(options):
    arcs = torch.cat((ZOO["karate"].pairs, ZOO["karate"].pairs.flip(0)), dim=1)
    data = AddKeepProbability(METHOD, keep_ratio=RATIO)(Data(edge_index=arcs, num_nodes=34))
    drop = DropEdge(f"dropedge{options}", keep_prob="edge_keep_prob", seed=SEED)
    loader = NodeLoader(data, FewNeighbours(arcs, 3), input_nodes=torch.arange(34), batch_size=6)
    for epoch in EPOCHS:
        whole = at(drop, epoch)(data)
        kept = expected(ZOO["karate"], epoch)
        assert pairs_of(whole.edge_index) == kept
        for batch in loader:
            thin = drop(batch)
            assert pairs_of(thin.n_id[thin.edge_index]) == pairs_of(batch.n_id[batch.edge_index]) & kept
            assert torch.equal(data.edge_index[:, thin.e_id], thin.n_id[thin.edge_index])
            if options:
                assert torch.allclose(thin.edge_weight.double(), 1 / data.edge_keep_prob[thin.e_id])


def test_a_part_of_the_nodes_under_other_numbers():
    arcs, nodes = listed(ZOO["karate"], 0), torch.tensor([0, 1, 2, 3, 7, 13, 33, 32])
    inside = torch.isin(arcs, nodes).all(dim=0)
    place = torch.full((34,), -1)
    place[nodes] = torch.arange(8)
    drop = at(DropEdge(p=0.5, seed=2), 4)
    assert torch.equal(drop(place[arcs[:, inside]], node_id=nodes)[1], drop(arcs)[1][inside])


def library():
    """Six authors who write eight papers, which cite each other."""
    generator, data = torch.Generator().manual_seed(0), HeteroData()
    data["author"].num_nodes, data["paper"].num_nodes = 6, 8
    data["author", "writes", "paper"].edge_index = (torch.rand(6, 8, generator=generator) < 0.5).nonzero().t()
    data["paper", "cites", "paper"].edge_index = (torch.rand(8, 8, generator=generator) < 0.4).nonzero().t()
    return ToUndirected()(data)


def test_mini_batches_of_a_heterodata_keep_what_the_whole_keeps():
    data = AddKeepProbability(METHOD, keep_ratio=RATIO)(library())
    drop = at(DropEdge(keep_prob="edge_keep_prob", seed=SEED), 3)
    whole = drop(data)
    for kind in data.node_types:
        data[kind].n_id = torch.arange(data[kind].num_nodes)
    for start in range(3):
        batch = data.subgraph({"author": torch.tensor([5, 0, 3, 1]), "paper": torch.arange(7, start, -1)})
        thin = drop(batch)
        for name in data.edge_types:
            ids = thin[name[0]].n_id, thin[name[2]].n_id
            kept, asked, all_kept = (
                {(int(ids[0][u]), int(ids[1][v])) if own else (u, v) for u, v in one[name].edge_index.t().tolist()}
                for one, own in ((thin, True), (batch, True), (whole, False))
            )
            assert kept == asked & all_kept


def test_relations_and_views_have_coins_of_their_own():
    arcs = torch.cartesian_prod(torch.arange(30), torch.arange(30)).t()
    data = HeteroData()
    data["a"].num_nodes = data["b"].num_nodes = 30
    for name in ("x", "y"):
        data["a", name, "b"].edge_index = arcs
    masks = []
    for view in DropEdge(p=0.5, seed=1).views(data, 3):
        for name in ("x", "y"):
            mask = torch.full((30, 30), -1.0)
            mask[tuple(view["a", name, "b"].edge_index)] = 1.0
            masks.append(mask.view(-1))
    products = torch.stack(masks) @ torch.stack(masks).t() / 900
    assert float((products - torch.eye(6)).abs().max()) < 0.15  # 1 where two are one
