"""Transforms that write scores and probabilities, and what is said of transforms in the wrong order."""

import warnings

import pytest
import torch
from torch_geometric.data import Data, HeteroData, InMemoryDataset
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import AddSelfLoops, Compose, GCNNorm, ToSparseTensor, ToUndirected

from tadropedge import Dropping, Graph, TadropedgeError, edge_scores
from tadropedge.pyg import AddKeepProbability, AddScore, DropEdge, TADropEdge
from tadropedge.testing.graphs import ZOO

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")
GRAPH = ZOO["karate"]
ARCS = torch.cat((GRAPH.pairs, GRAPH.pairs.flip(0)), dim=1)
DEGREE = AddKeepProbability("degree-proportional", keep_ratio=0.5)
UNIFORM = AddKeepProbability("dropedge", keep_prob=0.25)


def karate(**more):
    return Data(edge_index=ARCS, x=torch.randn(34, 3, generator=torch.Generator().manual_seed(0)), **more)


@pytest.mark.parametrize(
    "score", ["degree", "jaccard", "cosine", lambda graph, features: features[graph.pairs].sum((0, 2)).exp()]
)
def test_one_number_for_each_arc(score):
    order = torch.randperm(156, generator=torch.Generator().manual_seed(1))
    data = AddSelfLoops()(Data(edge_index=ARCS[:, order], x=karate().x))
    graph = Graph.from_edge_index(data.edge_index, 34)
    settings = {} if score in ("degree", "jaccard") else {"features": data.x}
    before, scored = set(data.keys()), AddScore(score)(data)
    assert torch.equal(scored.edge_score, graph.to_arcs(edge_scores(graph, score, **settings)))
    prob = AddKeepProbability(Dropping(score=score, rule="proportional", keep_ratio=0.5))(data).edge_keep_prob
    plan = Dropping(score=score, rule="proportional", keep_ratio=0.5).plan(graph, features=data.x)
    assert torch.equal(prob, graph.to_arcs(plan.prob, loops=1.0))
    assert set(data.keys()) == before


def test_probabilities_go_by_scores_that_were_written_and_weights_by_name():
    two = AddKeepProbability("column-proportional", keep_ratio=0.5, column="edge_score")(AddScore("degree")(karate()))
    assert torch.equal(two.edge_keep_prob, DEGREE(karate()).edge_keep_prob)
    strength = karate(strength=ARCS.sum(0).float())
    weighted = karate(edge_weight=ARCS.sum(0).float())
    assert torch.equal(
        AddScore("degree", weight="strength")(strength).edge_score, AddScore("degree")(weighted).edge_score
    )
    assert torch.equal(AddScore("degree", weight=None)(weighted).edge_score, AddScore("degree")(karate()).edge_score)


def test_a_matrix_and_a_relation_have_the_same_numbers():
    matrix = DEGREE(ToSparseTensor(layout=torch.sparse_csr)(karate()))
    assert sorted(matrix.edge_keep_prob.tolist()) == sorted(DEGREE(karate()).edge_keep_prob.tolist())
    data = HeteroData()
    data["a"].num_nodes, data["a", "to", "a"].edge_index = 34, ARCS
    assert torch.equal(DEGREE(data)["a", "to", "a"].edge_keep_prob, DEGREE(karate()).edge_keep_prob)


class Small(InMemoryDataset):
    """Three small graphs, processed once into a folder."""

    processed_file_names = ("data.pt",)

    def __init__(self, root, pre_transform):
        super().__init__(root, pre_transform=pre_transform)
        self.load(self.processed_paths[0])

    def process(self):
        graphs = [
            Data(edge_index=ZOO[name].pairs, num_nodes=ZOO[name].num_nodes) for name in ("path", "grid", "karate")
        ]
        self.save([self.pre_transform(graph) for graph in graphs], self.processed_paths[0])


def test_a_dataset_is_scored_once_and_stale_files_are_noticed(tmp_path):
    dataset = Small(str(tmp_path), DEGREE)
    (batch,) = DataLoader(dataset, batch_size=3)
    thin = DropEdge(keep_prob="edge_keep_prob", seed=1)(batch)
    assert thin.num_edges == len(thin.edge_keep_prob) < batch.num_edges
    with pytest.warns(UserWarning, match="pre_transform"):
        Small(str(tmp_path), AddKeepProbability("degree-proportional", keep_ratio=0.4))


def test_small_graphs_of_a_dataset_are_no_error_and_said_once():
    score, rule = AddScore("aggregate", q=4), AddKeepProbability("degree-cdf", keep_ratio=0.1)
    with warnings.catch_warnings(record=True, action="default") as told:
        for name in ("complete", "path", "star", "path") * 2:
            small = Data(edge_index=ZOO[name].pairs[:, :2], num_nodes=3)
            assert len(set(score(small).edge_score.tolist())) == 1
            assert bool((rule(Data(edge_index=ZOO[name].pairs, num_nodes=9)).edge_keep_prob <= 1).all())
    assert len([one for one in told if "scored alike" in str(one.message)]) == 1
    assert len([one for one in told if "keeps the least" in str(one.message)]) == 1
    with pytest.raises(TadropedgeError, match="q=4"):
        TADropEdge(keep_prob=0.5, q=4)(ZOO["karate"].pairs[:, :2])


# -- the order of transforms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize(
    "make",
    [lambda: AddScore("degree"), lambda: DropEdge("degree-cdf", keep_prob=0.5), DropEdge],
    ids=["AddScore", "score", "dropedge"],
)
def test_weights_of_gcn_norm_are_told_from_weights_of_edges_once(make, loops):
    data, use = GCNNorm(add_self_loops=loops)(karate()), make()
    with warnings.catch_warnings(record=True, action="default") as told:
        for _ in range(2):
            use(data)
    assert ["look like those of GCNNorm" in str(one.message) for one in told] == [True]
    make()(karate(edge_weight=1 + ARCS.sum(0).float()))


@pytest.mark.parametrize("late", [AddSelfLoops(), GCNNorm()])
def test_arcs_that_come_later_have_no_probability(late):
    data = late(DEGREE(karate()))
    data.edge_weight = None
    with pytest.raises(TadropedgeError, match=r"edge_keep_prob has shape \[156\].*190 arcs.*AddSelfLoops"):
        DropEdge(keep_prob="edge_keep_prob")(data)


def test_summed_probabilities_are_refused_above_one_and_warned_of_below():
    high = Compose([AddKeepProbability("dropedge", keep_prob=0.6), ToUndirected()])(karate())
    with pytest.raises(TadropedgeError, match="ToUndirected"):
        DropEdge(keep_prob="edge_keep_prob")(high)
    low = Compose([UNIFORM, ToUndirected()])(karate())
    drop = DropEdge(keep_prob="edge_keep_prob")
    with pytest.warns(UserWarning, match="0.5, .* above 0.25"):
        drop(low)
    drop(low)
    for fine in (Compose([UNIFORM, ToUndirected(reduce="mean")]), Compose([ToUndirected(), UNIFORM])):
        DropEdge(keep_prob="edge_keep_prob")(fine(karate()))


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: AddKeepProbability("degree-cdf"), "needs a budget"),
        (lambda: AddKeepProbability("degree-cdf", keep_ratio=lambda epoch: 0.5), "one number"),
        (lambda: AddKeepProbability("degree-cdf:weighted", keep_prob=0.5), "give weighted to DropEdge"),
        (lambda: AddKeepProbability("degree-cdf:connected", keep_prob=0.5), "give connected to DropEdge"),
        (lambda: AddKeepProbability(0.5), "a method is a name"),
        (lambda: AddScore("degre"), "degre"),
        (lambda: AddScore("degree")(ARCS), "expected a Data"),
        (lambda: AddScore("degree", weight="strenght")(karate()), "strenght"),
        (lambda: AddScore("cosine")(Data(edge_index=ARCS, num_nodes=34)), "requires features"),
    ],
)
def test_bad_input_is_one_line(call, word):
    with pytest.raises(TadropedgeError, match=word) as caught:
        call()
    assert "\n" not in str(caught.value)
