"""Graph classification: many small graphs, in a dataset on disk and in batches."""

import copy
import pickle
import warnings

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset
from torch_geometric.datasets import TUDataset
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import Compose

from tadropedge import Graph, TadropedgeError, aggregate_resistance, edge_scores, keep_probabilities, sample_edges
from tadropedge.pyg import AddKeepProbability, AddResistance, AddScore, AddShift, TADropEdge, graph_node_ids

ARCS = {  # name: pairs and the number of nodes
    "edge": ([[0], [1]], 2),
    "one node": ([[], []], 1),
    "three nodes": ([[], []], 3),
    "edge and isolated nodes": ([[1], [3]], 5),
    "triangle": ([[0, 1, 2], [1, 2, 0]], 3),
    "two triangles": ([[0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]], 6),
    "star": ([[0, 0, 0, 0], [1, 2, 3, 4]], 5),
    "path and edge": ([[0, 1, 2, 3, 5], [1, 2, 3, 4, 6]], 7),
    "self-loop alone": ([[0], [0]], 1),
}


def made(name, **more):
    pairs, nodes = ARCS[name]
    arcs = torch.tensor(pairs, dtype=torch.long).reshape(2, -1)
    both = torch.cat((arcs, arcs.flip(0)), dim=1)
    return Data(x=torch.ones(nodes, 2), edge_index=both, num_nodes=nodes, **more)


def random_graphs(count=12, seed=0):
    """Connected graphs of 4 to 12 nodes: a path in random order, and further edges."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for number in range(count):
        nodes = 4 + number % 9
        order = torch.randperm(nodes, generator=generator)
        more = torch.randint(nodes, (2, nodes), generator=generator)
        arcs = torch.cat((torch.stack((order[:-1], order[1:])), more[:, more[0] != more[1]]), dim=1)
        both = torch.cat((arcs, arcs.flip(0)), dim=1)
        x = torch.rand(nodes, 3, generator=generator)
        graphs.append(Data(x=x, edge_index=both, y=torch.tensor([number % 2])))
    return graphs


# -- small graphs -------------------------------------------------------------------------------------------

RULES = [
    {"strategy": strategy, "inverse": inverse} | budget
    for strategy in ("uniform", "cutoff", "division", "cdf", "proportional")
    for inverse in ((False, True) if strategy != "uniform" else (False,))
    for budget in ({"keep_prob": 0.5}, {"keep_prob": 0.0}, {"keep_ratio": 0.6}, {"keep_ratio": 0.3})
] + [{"strategy": "dropsens", "keep_prob": 0.3}, {"strategy": "dropsens", "keep_ratio": 0.2}]


@pytest.mark.filterwarnings("ignore:keep_ratio=.* cannot be reached")
@pytest.mark.filterwarnings("ignore:the score 'aggregate' with q=7")
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: "-".join(str(value) for value in rule.values()))
def test_small_graphs_never_raise(rule):
    """No component has 7 nodes or all scores are equal: every edge gets one probability, which meets a ratio."""
    score = {} if rule["strategy"] in ("uniform", "dropsens") else {"score": "aggregate", "q": 7}
    for name in ARCS:
        data = made(name)
        scored = AddKeepProbability(**rule)(AddScore("aggregate", q=7)(data))
        prob = scored.edge_keep_prob
        assert prob.shape == (data.num_edges,)
        assert bool(((prob >= 0) & (prob <= 1)).all())
        proper = prob[data.edge_index[0] != data.edge_index[1]]
        if len(proper) and rule["strategy"] != "dropsens":
            assert len(set(proper.tolist())) == 1
            if "keep_ratio" in rule:
                assert float(proper[0]) == pytest.approx(rule["keep_ratio"])
        drop = TADropEdge(**score, **rule)
        assert torch.equal(drop.probabilities(data), prob)
        assert drop(data).num_nodes == data.num_nodes


def test_components_below_q_get_the_lowest_score():
    data = made("path and edge")
    score = AddScore("aggregate", q=3)(data).edge_score
    small = data.edge_index[0] >= 5
    assert torch.equal(score[small], score[~small].min().expand(2))
    assert float(score[~small].min()) == pytest.approx(float(aggregate_resistance(Graph.from_data(data), 3).min()))


def test_one_warning_for_a_whole_dataset():
    graphs = [made(name) for name in ARCS] * 3
    for score in (AddScore("aggregate", q=4), AddResistance(desired_clusters=5), AddScore("aggregate", q=4)):
        with warnings.catch_warnings(record=True, action="always") as told:
            scored = [score(graph) for graph in graphs]
        said = [str(one.message) for one in told if "needs a component of" in str(one.message)]
        assert len(said) == 1
        assert len(told) <= 2  # a repeated eigenvalue is said once, too
        name = score.attribute
        assert all(bool((graph[name] == 0).all()) for graph in scored if graph.num_nodes < 4)
    with pytest.raises(TadropedgeError, match="q=4 is larger than every component; the largest has 2 nodes"):
        aggregate_resistance(Graph.from_data(graphs[0]), 4)
    with pytest.raises(TadropedgeError, match="q=4 is larger than every component"):
        edge_scores(Graph.from_data(graphs[0]), "aggregate", q=4)


def test_the_module_says_it_once():
    drop = TADropEdge(score="aggregate", q=4, strategy="proportional", keep_ratio=0.5)
    with warnings.catch_warnings(record=True, action="always") as told:
        for name in ("edge", "triangle", "edge and isolated nodes"):
            drop(made(name))
            copy.deepcopy(drop)(made("triangle"))
            pickle.loads(pickle.dumps(drop))(made("triangle"))
    assert len(told) == 1
    assert "q=4 needs a component of 4 nodes, and the largest here has 2" in str(told[0].message)


class Scoring(torch.utils.data.Dataset):
    def __init__(self, transform):
        self.transform = transform

    def __len__(self):
        return 6

    def __getitem__(self, place):
        with warnings.catch_warnings(record=True, action="always") as told:
            self.transform(made("edge"))
        return len(told)


def test_forked_workers_do_not_repeat_it():
    loader = torch.utils.data.DataLoader(Scoring(AddScore("aggregate", q=3)), num_workers=2, batch_size=1)
    assert sum(int(told) for told in loader) == 1


def test_a_ratio_below_the_least_of_a_small_graph_is_raised_with_a_warning():
    data = made("two triangles")
    weights = edge_scores(Graph.from_data(data), "degree")
    least = keep_probabilities(weights, keep_prob=0.0, strategy="cdf")
    rule = AddKeepProbability("cdf", keep_ratio=0.5)
    with pytest.warns(UserWarning, match=r"keep_ratio=0.5 cannot be reached with cdf on a graph of 7 edges"):
        prob = rule(AddScore("degree")(data)).edge_keep_prob
    assert torch.equal(prob, Graph.from_data(data).to_arcs(least))
    rule(AddScore("degree")(data))  # once


def test_large_graphs_keep_their_error_unless_they_are_among_many():
    ring = torch.arange(100)
    arcs = torch.cat((torch.stack((ring, (ring + 1) % 100)), torch.tensor([[0, 10], [50, 60]])), dim=1)
    data = AddScore("degree")(Data(edge_index=arcs, num_nodes=100))
    with pytest.raises(TadropedgeError, match=r"keep_ratio=0.3 cannot be reached with cdf"):
        AddKeepProbability("cdf", keep_ratio=0.3)(data)
    data.graph_number = 1
    with pytest.warns(UserWarning, match="on a graph of 102 edges, which keeps its least"):
        AddKeepProbability("cdf", keep_ratio=0.3)(data)


def test_a_budget_below_the_forest_keeps_the_forest_of_small_graphs():
    drop = TADropEdge(keep_ratio=0.3, connected=True)
    with pytest.warns(UserWarning, match=r"connected masks keep at least 4 of 4 edges .* this graph keeps its forest"):
        assert drop(made("star")).num_edges == 8
    assert drop(made("triangle")).num_edges == 4
    given = TADropEdge(connected=True)
    with pytest.warns(UserWarning, match="this graph keeps its forest"):
        assert given(made("triangle", edge_keep_prob=torch.full((6,), 0.1))).num_edges == 4


# -- numbers ------------------------------------------------------------------------------------------------


def test_graphs_are_numbered_by_the_first_transform():
    score, rule = AddScore("degree"), AddKeepProbability("proportional", keep_ratio=0.5)
    graphs = [rule(score(made("star"))) for _ in range(3)]
    assert [graph.graph_number for graph in graphs] == [0, 1, 2]
    assert rule(made("star", edge_score=torch.ones(8))).graph_number == 0
    assert "_count" not in repr(score)
    assert "3" not in repr(score)
    assert score(made("star", graph_number=17)).graph_number == 17
    batch = Batch.from_data_list([made("star")] * 2)
    assert "graph_number" not in score(batch)
    loops = AddShift()(made("self-loop alone", graph_number=torch.tensor([4])))
    assert loops.graph_number.tolist() == [4]


def test_ids_are_those_of_the_definition():
    """i + SplitMix64's mix of g times the golden ratio, in Python's integers."""

    def mix(word):
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
        return word ^ (word >> 31)

    ids = graph_node_ids(torch.tensor([0, 1, 1, 0, 2]), torch.tensor([5, 0, 3]))
    wanted = [(place + mix(number * 0x9E3779B97F4A7C15 % 2**64)) % 2**64 for place, number in
              ((0, 5), (0, 0), (1, 0), (1, 5), (0, 3))]  # fmt: skip
    assert [one % 2**64 for one in ids.tolist()] == wanted
    named = graph_node_ids(torch.tensor([0, 1]), torch.tensor([0, 0]), torch.tensor([70, 80]))
    assert named.tolist() == [70, 80]


@pytest.mark.parametrize(
    ("batch", "number", "node_id", "message"),
    [
        ([0, 2], [0, 1], None, "batch must hold places of graphs, from 0 to 1, got 0 to 2"),
        ([[0]], [0], None, r"batch and graph_number must be vectors \[N\] and \[B\], got shapes \[1, 1\] and \[1\]"),
        ([0, 0], [0], [3], r"node_id has shape \[1\], but batch has 2 nodes"),
        ([0.5], [0], None, "batch must hold whole numbers"),
    ],
)
def test_bad_ids(batch, number, node_id, message):
    node_id = None if node_id is None else torch.tensor(node_id)
    with pytest.raises(TadropedgeError, match=message):
        graph_node_ids(torch.tensor(batch), torch.tensor(number), node_id)


# -- batches ------------------------------------------------------------------------------------------------

MODULES = {
    "given": ({}, {}),
    "given, connected": ({}, {"connected": True}),
    "given, exact": ({}, {"exact": True}),
    "uniform": ({"strategy": "uniform", "keep_ratio": 0.6}, {}),
    "rule": ({"score": "degree", "strategy": "cdf", "keep_prob": 0.2}, {}),
    "ratio": ({"score": "degree", "strategy": "proportional", "keep_ratio": 0.5}, {}),
    "features": ({"score": "cosine", "strategy": "cdf", "keep_prob": 0.2}, {}),
    "connected": ({"score": "jaccard", "strategy": "proportional", "keep_ratio": 0.7}, {"connected": True}),
    "exact": ({"score": "effective", "strategy": "proportional", "keep_ratio": 0.5}, {"exact": True}),
    "both": ({"score": "degree", "strategy": "proportional", "keep_ratio": 0.7}, {"connected": True, "exact": True}),
    "aggregate": ({"score": "aggregate", "q": 5, "strategy": "cdf", "keep_prob": 0.1}, {}),
}


def kept(thin, whole):
    """The kept arcs of each graph of a batch, by the numbers of their graphs."""
    found = {}
    for place, number in enumerate(whole.graph_number.tolist()):
        mine = whole.batch[thin.edge_index[0]] == place
        found[number] = (thin.edge_index[:, mine] - whole.ptr[place]).tolist()
    return found


@pytest.mark.filterwarnings("ignore:the score 'aggregate' with q=5")
@pytest.mark.filterwarnings("ignore:connected masks keep at least")
@pytest.mark.filterwarnings("ignore::tadropedge.RepeatedEigenvalueWarning")
@pytest.mark.parametrize("name", MODULES)
def test_what_a_graph_keeps_does_not_depend_on_who_shares_the_batch(name):
    rule, options = MODULES[name]
    number = Compose([AddScore("degree"), AddKeepProbability("proportional", keep_ratio=0.6)])
    graphs = [number(graph) for graph in random_graphs()]
    drop = TADropEdge(seed=5, advance="manual", **rule, **options)
    drop.set_epoch(3)
    alone = {graph.graph_number: drop(graph).edge_index.tolist() for graph in graphs}
    assert len({str(arcs) for arcs in alone.values()}) == len(graphs)
    for size, order in ((4, range(12)), (5, (11, 3, 7, 0, 1, 9, 10, 2, 4, 8, 6, 5)), (12, range(11, -1, -1)), (1, [7])):
        for batch in DataLoader([graphs[place] for place in order], batch_size=size):
            thin = drop(batch)
            assert kept(thin, batch) == {one: alone[one] for one in batch.graph_number.tolist()}
            assert torch.equal(thin.graph_number, batch.graph_number)


@pytest.mark.parametrize("options", [{}, {"connected": True}, {"exact": True}])
def test_batches_on_every_device(options, device):
    number = Compose([AddScore("degree"), AddKeepProbability("proportional", keep_ratio=0.8)])
    (batch,) = DataLoader([number(graph) for graph in random_graphs()], batch_size=12)
    rule = {"score": "degree", "strategy": "proportional", "keep_ratio": 0.8}
    for settings in (options, options | rule):
        here, there = (TADropEdge(seed=5, **settings).to(place) for place in ("cpu", device))
        for _ in range(2):
            assert torch.equal(there(batch.clone().to(device)).edge_index.cpu(), here(batch).edge_index)


def test_a_part_of_a_batch_is_not_named_by_its_old_bounds():
    number = AddKeepProbability("uniform", keep_prob=0.5)
    (batch,) = DataLoader([number(graph) for graph in random_graphs(4)], batch_size=4)
    part = batch.subgraph(torch.arange(3, batch.num_nodes))
    ids = graph_node_ids(part.batch, part.graph_number)
    mask = sample_edges(part.edge_keep_prob, seed=1, pairs=ids[part.edge_index])
    assert torch.equal(TADropEdge(seed=1)(part).edge_index, part.edge_index[:, mask])


def test_twins_have_different_coins():
    number = AddKeepProbability("uniform", keep_prob=0.5)
    graphs = [number(random_graphs(9)[8]) for _ in range(40)]
    (batch,) = DataLoader(graphs, batch_size=40)
    masks = {str(arcs) for arcs in kept(TADropEdge(seed=1)(batch), batch).values()}
    assert len(masks) == 40
    shares = torch.tensor([len(arcs[0]) for arcs in kept(TADropEdge(seed=1)(batch), batch).values()])
    assert float(shares.sum()) / batch.num_edges == pytest.approx(0.5, abs=0.05)


def test_probabilities_of_a_batch_are_those_of_its_graphs():
    number = AddScore("degree")
    graphs = [number(graph) for graph in random_graphs()]
    drop = TADropEdge(score="degree", strategy="cdf", keep_prob=0.3, unbiased=True)
    (batch,) = DataLoader(graphs, batch_size=12)
    wanted = [AddKeepProbability("cdf", keep_prob=0.3)(graph).edge_keep_prob for graph in graphs]
    assert torch.equal(drop.probabilities(batch), torch.cat(wanted))
    thin = drop(batch)
    assert torch.equal(thin.edge_weight, 1 / drop.probabilities(batch)[kept_mask(thin, batch)].float())


def kept_mask(thin, batch):
    pairs = {tuple(arc) for arc in thin.edge_index.T.tolist()}
    return torch.tensor([tuple(arc) in pairs for arc in batch.edge_index.T.tolist()])


def test_nested_layers_of_a_batch():
    number = AddScore("degree")
    graphs = [number(graph) for graph in random_graphs()]
    rule = {"score": "degree", "strategy": "proportional", "keep_ratio": 0.4, "layers": 3, "exact": True}
    drop = TADropEdge(advance="manual", **rule)
    (batch,) = DataLoader(graphs[1:], batch_size=11)
    for layer in range(3):
        alone = {graph.graph_number: drop(graph, layer=layer).edge_index.tolist() for graph in graphs[1:]}
        assert kept(drop(batch, layer=layer), batch) == alone


def test_batches_with_weights_and_columns():
    number = AddScore("degree")
    graphs = [number(graph) for graph in random_graphs()]
    for graph in graphs:
        graph.edge_weight = 1 + graph.edge_index.sum(0).double()
        graph.trust = graph.edge_index.prod(0).double()
    for rule in ({"score": "degree"}, {"score": "column", "column": "trust"}):
        drop = TADropEdge(strategy="cdf", keep_prob=0.3, advance="manual", **rule)
        (batch,) = DataLoader(graphs, batch_size=12)
        assert torch.equal(drop.probabilities(batch), torch.cat([drop.probabilities(graph) for graph in graphs]))


def test_without_numbers_coins_go_by_places_in_the_batch():
    """So do those of graphs that were each given a transform of their own, which are all number 0."""
    graphs = random_graphs()
    for each in (graphs, [AddScore("degree")(graph) for graph in graphs]):
        (batch,) = DataLoader(each, batch_size=12)
        mask = sample_edges(torch.full((batch.num_edges,), 0.5), seed=3, pairs=batch.edge_index)
        thin = TADropEdge(seed=3, keep_prob=0.5)(batch)
        assert torch.equal(thin.edge_index, batch.edge_index[:, mask])


def test_the_tensors_of_a_batch():
    number = AddKeepProbability("uniform", keep_prob=0.5)
    graphs = [number(graph) for graph in random_graphs()]
    (batch,) = DataLoader(graphs, batch_size=12)
    ids = graph_node_ids(batch.batch, batch.graph_number)
    edge_index, _ = TADropEdge(seed=3)(batch.edge_index, batch.edge_keep_prob, node_id=ids)
    assert torch.equal(edge_index, TADropEdge(seed=3)(batch).edge_index)


def test_the_first_graph_has_the_coins_of_a_graph_without_a_number():
    data = random_graphs(5)[4]
    numbered = AddKeepProbability("uniform", keep_prob=0.5)(data)
    assert numbered.graph_number == 0
    mask = sample_edges(numbered.edge_keep_prob, seed=3, pairs=data.edge_index)
    assert torch.equal(TADropEdge(seed=3)(numbered).edge_index, data.edge_index[:, mask])


def test_as_many_graphs_as_arcs():
    """PyG takes a tensor of this length for an attribute of arcs."""
    number = AddKeepProbability("uniform", keep_prob=0.5)
    one_arc = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [2]]))
    (batch,) = DataLoader([number(one_arc) for _ in range(32)], batch_size=32)
    assert batch.is_edge_attr("graph_number")
    thin = TADropEdge(seed=0)(batch)
    assert 4 < thin.num_edges < 28
    assert torch.equal(thin.graph_number, torch.arange(32))
    assert torch.equal(thin.largest_keep_prob, torch.full((32,), 0.5))


def test_graphs_without_edges_in_a_batch():
    number = AddScore("degree")
    graphs = [number(made(name)) for name in ("one node", "star", "three nodes", "self-loop alone", "triangle")]
    (batch,) = DataLoader(graphs, batch_size=5)
    for options in ({}, {"exact": True}):
        drop = TADropEdge(score="degree", strategy="proportional", keep_ratio=0.5, **options)
        assert drop(batch).num_nodes == batch.num_nodes
    (empty,) = DataLoader([graphs[0], graphs[2]], batch_size=2)
    assert drop(empty).num_edges == 0


def test_edges_between_graphs_of_a_batch_are_refused():
    number = AddScore("degree")
    (batch,) = DataLoader([number(made("triangle")) for _ in range(2)], batch_size=2)
    batch.edge_index[1, 0] = 4
    with pytest.raises(TadropedgeError, match="edge_index joins the nodes 0 and 4, which belong to two graphs"):
        TADropEdge(score="degree", keep_prob=0.5)(batch)


def test_parts_of_one_graph_go_by_their_ids():
    """Subgraphs of one large graph share its number: their ids are its own."""
    data = AddKeepProbability("uniform", keep_prob=0.5)(random_graphs(9)[8])
    data.n_id = torch.arange(12)
    drop = TADropEdge(seed=1, advance="manual")
    whole = {tuple(arc) for arc in drop(data).edge_index.T.tolist()}
    (batch,) = DataLoader([data.subgraph(torch.arange(start, start + 7)) for start in (0, 5)], batch_size=2)
    thin = drop(batch)
    assert {tuple(arc) for arc in thin.n_id[thin.edge_index].T.tolist()} <= whole


# -- a dataset on disk --------------------------------------------------------------------------------------


def write_raw(folder, graphs, name="TINY"):
    """The files of a TU dataset: arcs with counted nodes, the graph of each node, and the label of each graph."""
    raw = folder / name / "raw"
    raw.mkdir(parents=True)
    arcs, owner, start = [], [], 1
    for number, graph in enumerate(graphs, 1):
        arcs += (graph.edge_index.T + start).tolist()
        owner += [number] * graph.num_nodes
        start += graph.num_nodes
    (raw / f"{name}_A.txt").write_text("".join(f"{one}, {two}\n" for one, two in arcs))
    (raw / f"{name}_graph_indicator.txt").write_text("".join(f"{one}\n" for one in owner))
    (raw / f"{name}_node_labels.txt").write_text("".join(f"{place % 3}\n" for place in range(len(owner))))
    (raw / f"{name}_graph_labels.txt").write_text("".join(f"{number % 2}\n" for number in range(len(graphs))))


def test_a_dataset_of_tu_dortmund(tmp_path):
    graphs = [*random_graphs(), made("edge"), made("triangle")]
    write_raw(tmp_path, graphs)
    both = Compose([AddScore("aggregate", q=4), AddKeepProbability("proportional", keep_ratio=0.6)])
    with warnings.catch_warnings(record=True, action="always") as told:
        dataset = TUDataset(str(tmp_path), "TINY", pre_transform=both)
    assert sum("needs a component of 4 nodes" in str(one.message) for one in told) == 1
    assert len(dataset) == 14
    assert [int(graph.graph_number) for graph in dataset] == [*range(14)]
    for graph, read in zip(graphs, dataset, strict=True):
        own = Graph.from_data(graph)
        weights = aggregate_resistance(own, 4) if own.num_nodes >= 4 else torch.ones(own.num_edges)
        prob = keep_probabilities(weights, strategy="proportional", keep_ratio=0.6)
        assert torch.allclose(read.edge_keep_prob, Graph.from_data(read).to_arcs(prob))
    drop = TADropEdge(seed=2, advance="manual")
    alone = {int(graph.graph_number): drop(graph).edge_index.tolist() for graph in dataset}
    for workers in (0, 1):
        for batch in DataLoader(dataset, batch_size=4, shuffle=True, num_workers=workers):
            assert kept(drop(batch), batch) == {one: alone[one] for one in batch.graph_number.tolist()}


class Tiny(InMemoryDataset):
    """Graphs in memory, numbered at each access."""

    def __init__(self, graphs, transform):
        super().__init__(transform=transform)
        self.data, self.slices = self.collate(graphs)


def test_a_transform_numbers_each_access():
    dataset = Tiny([made("star"), made("triangle")], AddKeepProbability("uniform", keep_prob=0.5))
    assert [dataset[place].graph_number for place in (0, 1, 0)] == [0, 1, 2]
    (batch,) = DataLoader(dataset, batch_size=2)
    assert batch.graph_number.tolist() == [3, 4]
    assert TADropEdge()(batch).num_graphs == 2


@pytest.mark.parametrize("unbiased", [False, True])
def test_a_thinned_batch_comes_apart_into_its_thinned_graphs(unbiased):
    graphs = [Data(edge_index=torch.combinations(torch.arange(n)).T, num_nodes=n, graph_number=n) for n in (5, 7, 6)]
    for graph in graphs:
        graph.edge_place = torch.arange(graph.num_edges)
    drop = TADropEdge(keep_prob=0.5, advance="manual", unbiased=unbiased)
    batch = Batch.from_data_list(graphs)
    for found, graph in zip(drop(batch).to_data_list(), graphs, strict=True):
        wanted = drop(graph)
        assert torch.equal(found.edge_index, wanted.edge_index)
        assert torch.equal(found.edge_place, wanted.edge_place)
        assert not unbiased or torch.equal(found.edge_weight, wanted.edge_weight)
    assert [graph.num_edges for graph in batch.to_data_list()] == [10, 21, 15]


def test_a_thinned_batch_of_relations_comes_apart():
    whole = []
    for n in (4, 6):
        data = HeteroData()
        data["a"].x = data["b"].x = torch.ones(n, 1)
        for name in ("r", "s"):
            data["a", name, "b"].edge_index = torch.cartesian_prod(torch.arange(n), torch.arange(n)).T
        whole.append(data)
    thin = TADropEdge(keep_prob=0.5, relations=["r"])(Batch.from_data_list(whole))
    arcs = thin["a", "r", "b"].edge_index
    first = arcs[:, arcs[0] < 4]
    one, two = thin.to_data_list()
    assert torch.equal(one["a", "r", "b"].edge_index, first)
    assert torch.equal(two["a", "r", "b"].edge_index, arcs[:, arcs[0] >= 4] - 4)
    assert 0 < first.shape[1] < 16
    assert [data["a", "s", "b"].num_edges for data in (one, two)] == [16, 36]
