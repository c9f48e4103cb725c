import copy
import re

import numpy as np
import pytest
import torch
from graphs import ZOO
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader, RandomNodeLoader
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv
from torture import cases

from tadropedge import (
    SCORES,
    STRATEGIES,
    Graph,
    TadropedgeError,
    aggregate_resistance,
    effective_resistance,
    keep_probabilities,
    sample_edges,
)
from tadropedge.pyg import AddKeepProbability, AddResistance, AddScore, TADropEdge


def make_data(name="karate", features=4):
    """A graph as users have it: both directions, shuffled, one arc twice, a self-loop, and attributes."""
    graph = ZOO[name]
    generator = torch.Generator().manual_seed(0)
    arcs = torch.cat((graph.pairs, graph.pairs.flip(0), graph.pairs[:, :1], torch.tensor([[2], [2]])), dim=1)
    arcs = arcs[:, torch.randperm(arcs.shape[1], generator=generator)]
    return Data(
        x=torch.randn(graph.num_nodes, features, generator=generator),
        edge_index=arcs,
        edge_attr=torch.randn(arcs.shape[1], 3, generator=generator),
        num_nodes=graph.num_nodes,
    )


def prepared(name="karate", **settings):
    settings = settings or {"strategy": "cdf", "keep_prob": 0.5}
    return AddKeepProbability(**settings)(AddResistance(q=3)(make_data(name)))


def test_per_arc_values_line_up_with_the_users_edge_index():
    data = prepared()
    weights = aggregate_resistance(ZOO["karate"], 3)
    prob = keep_probabilities(weights, keep_prob=0.5, strategy="cdf")
    places = {tuple(pair): place for place, pair in enumerate(ZOO["karate"].pairs.T.tolist())}
    for arc, weight, keep in zip(
        data.edge_index.T.tolist(), data.edge_resistance.tolist(), data.edge_keep_prob.tolist(), strict=True
    ):
        if arc[0] == arc[1]:
            assert (weight, keep) == (0.0, 1.0)
        else:
            place = places[min(arc), max(arc)]
            assert weight == pytest.approx(float(weights[place]), abs=1e-14)
            assert keep == float(prob[place])


def test_input_is_never_changed():
    data = make_data()
    before = copy.deepcopy(data)
    out = AddKeepProbability(keep_prob=0.5)(AddResistance(q=3)(data))
    drop = TADropEdge()
    drop(out.edge_index, out.edge_keep_prob)
    assert data.keys() == before.keys()
    for name in before.keys():  # noqa: SIM118 - a Data is no dictionary
        assert torch.equal(torch.as_tensor(data[name]), torch.as_tensor(before[name]))


def test_other_weights_and_strategies():
    effective = AddResistance(score="effective")(make_data())
    with pytest.warns(DeprecationWarning, match="is now called score="):
        old = AddResistance(weights="effective")(make_data())
    assert torch.equal(old.edge_resistance, effective.edge_resistance)
    graph = Graph.from_data(effective)
    assert torch.equal(effective.edge_resistance, graph.to_arcs(effective_resistance(graph)))
    uniform = AddKeepProbability("uniform", keep_prob=0.4)(make_data())
    loops = uniform.edge_index[0] == uniform.edge_index[1]
    assert uniform.edge_keep_prob[~loops].unique().tolist() == [0.4]
    ratio = prepared(strategy="division", keep_ratio=0.8)
    pairs = torch.empty(78, dtype=torch.float64)
    place = Graph.from_data(ratio).arc_pair
    pairs[place[place >= 0]] = ratio.edge_keep_prob[place >= 0]
    assert float(pairs.mean()) == pytest.approx(0.8)
    inverse = prepared(strategy="cdf", keep_prob=0.5, inverse=True)
    assert inverse.edge_keep_prob[~loops].argmin() == inverse.edge_resistance[~loops].argmax()


def test_any_score_and_any_strategy(monkeypatch):
    """Names of the registries and own functions, in both transforms; features come with the data."""

    def alike(graph, features, scale=1.0):
        low, high = features[graph.pairs]
        return scale * (low * high).sum(1).exp()

    def linear(scores):
        return scores / scores.max()

    monkeypatch.setitem(SCORES, "alike", alike)
    monkeypatch.setitem(STRATEGIES, "linear", linear)
    data = make_data()
    graph = Graph.from_data(data)
    expected = 2 * alike(graph, data.x).double()
    for score in ("alike", alike):
        scored = AddScore(score, scale=2.0)(data)
        assert torch.equal(scored.edge_score, graph.to_arcs(expected))
        for strategy in ("linear", linear):
            prob = AddKeepProbability(strategy, keep_prob=0.5)(scored).edge_keep_prob
            wanted = keep_probabilities(expected, keep_prob=0.5, strategy=linear)
            assert torch.equal(prob, graph.to_arcs(wanted, loops=1.0))


def test_scores_come_before_the_old_attribute():
    data = AddScore("effective")(AddResistance(q=3)(make_data()))
    only = AddScore("effective")(make_data())
    rule = AddKeepProbability(keep_prob=0.5)
    assert torch.equal(rule(data).edge_keep_prob, rule(only).edge_keep_prob)


def test_transforms_name_every_setting():
    def degree(graph):
        return graph

    assert repr(AddScore("aggregate", q=3)) == "AddScore(score='aggregate', q=3, cache_dir=None)"
    assert re.fullmatch(r"AddScore\(score=degree#[0-9a-f]{8}, cache_dir=None\)", repr(AddScore(degree)))
    assert repr(AddResistance(3, laplacian="normalized")) == (
        "AddResistance(score='aggregate', q=3, desired_clusters=None, laplacian='normalized', solver='auto', "
        "cache_dir=None)"
    )
    assert repr(AddKeepProbability(keep_prob=0.5)) == (
        "AddKeepProbability(strategy='cdf', keep_prob=0.5, keep_ratio=None, gamma='auto', inverse=False)"
    )


def test_edge_weight_enters_the_laplacian():
    data = make_data()
    weighted = data.clone()
    weighted.edge_weight = torch.where(data.edge_index.sum(0) % 2 == 0, 1.0, 5.0)
    assert not torch.allclose(AddResistance(q=3)(weighted).edge_resistance, AddResistance(q=3)(data).edge_resistance)


def test_a_graph_without_edges_passes_through_a_pipeline():
    data = Data(x=torch.ones(3, 1), edge_index=torch.empty(2, 0, dtype=torch.long))
    out = AddKeepProbability(keep_prob=0.5)(AddResistance(q=3)(data))
    assert out.edge_resistance.shape == out.edge_keep_prob.shape == (0,)


def test_module_samples_in_training_and_is_transparent_in_evaluation():
    data = prepared()
    drop = TADropEdge(seed=1)
    edge_index, mask, attr = drop(data.edge_index, data.edge_keep_prob, data.edge_attr)
    assert torch.equal(edge_index, data.edge_index[:, mask])
    assert torch.equal(attr, data.edge_attr[mask])
    assert 0 < int(mask.sum()) < mask.numel()
    drop.eval()
    edge_index, mask, attr, nothing = drop(data.edge_index, data.edge_keep_prob, data.edge_attr, None)
    assert edge_index is data.edge_index
    assert attr is data.edge_attr
    assert nothing is None
    assert mask.all()
    assert int(drop.epoch) == 1  # evaluation does not move it


def test_both_directions_and_duplicates_share_one_coin():
    data = prepared()
    drop = TADropEdge(seed=5)
    for _ in range(10):
        edge_index, mask = drop(data.edge_index, data.edge_keep_prob)
        kept_arcs = {tuple(arc) for arc in edge_index.T.tolist()}
        assert kept_arcs == {(j, i) for i, j in kept_arcs}
        fate = {}
        for arc, kept in zip(data.edge_index.T.tolist(), mask.tolist(), strict=True):
            assert fate.setdefault(tuple(sorted(arc)), kept) == kept
        assert fate[2, 2]


def test_masks_are_those_of_sample_edges_by_node_ids():
    data = prepared()
    drop = TADropEdge(seed=-4)
    for epoch in range(3):
        expected = sample_edges(data.edge_keep_prob, seed=-4, epoch=epoch, pairs=data.edge_index)
        assert torch.equal(drop(data.edge_index, data.edge_keep_prob)[1], expected)


def test_the_epoch_advances_by_call_or_by_hand():
    data = prepared()
    by_call = TADropEdge(seed=3)
    first, second = (by_call(data.edge_index, data.edge_keep_prob)[1] for _ in range(2))
    assert not torch.equal(first, second)
    by_hand = TADropEdge(seed=3, advance="manual")
    for _ in range(2):
        assert torch.equal(by_hand(data.edge_index, data.edge_keep_prob)[1], first)
    by_hand.next_epoch()
    assert torch.equal(by_hand(data.edge_index, data.edge_keep_prob)[1], second)
    by_hand.set_epoch(0)
    assert torch.equal(by_hand(data.edge_index, data.edge_keep_prob)[1], first)
    assert repr(by_hand) == "TADropEdge(seed=3, epoch=0, advance='manual')"


def test_state_dict_resumes_the_same_coins():
    data = prepared()
    model = torch.nn.ModuleDict({"drop": TADropEdge(seed=11)})
    for _ in range(5):
        model["drop"](data.edge_index, data.edge_keep_prob)
    state = copy.deepcopy(model.state_dict())
    expected = model["drop"](data.edge_index, data.edge_keep_prob)[1]
    resumed = torch.nn.ModuleDict({"drop": TADropEdge()})
    resumed.load_state_dict(state)
    assert torch.equal(resumed["drop"](data.edge_index, data.edge_keep_prob)[1], expected)


def test_mini_batches_with_node_ids_see_one_subgraph():
    data = prepared()
    drop = TADropEdge(seed=2, advance="manual")
    whole = drop(data.edge_index, data.edge_keep_prob)[1]
    nodes = torch.tensor([0, 1, 2, 3, 7, 13, 33, 32])
    inside = torch.isin(data.edge_index[0], nodes) & torch.isin(data.edge_index[1], nodes)
    position = torch.full((34,), -1)
    position[nodes] = torch.arange(len(nodes))
    local = position[data.edge_index[:, inside]]
    mask = drop(local, data.edge_keep_prob[inside], node_id=nodes)[1]
    assert torch.equal(mask, whole[inside])


CONVS = {
    "gcn": lambda: GCNConv(4, 3),
    "sage": lambda: SAGEConv(4, 3),
    "gat": lambda: GATConv(4, 3, edge_dim=3),
    "gin": lambda: GINConv(torch.nn.Linear(4, 3)),
}


class Net(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        torch.manual_seed(0)
        self.drop = TADropEdge(seed=0)
        self.name = name
        self.conv = CONVS[name]()

    def forward(self, data):
        edge_index, _, attr = self.drop(data.edge_index, data.edge_keep_prob, data.edge_attr)
        extra = {"edge_attr": attr} if self.name == "gat" else {}
        return self.conv(data.x, edge_index, **extra)


@pytest.mark.parametrize("name", CONVS)
def test_trains_with_every_convolution(name, device):
    data = prepared().to(device)
    net = Net(name).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    target = torch.arange(34, device=device) % 3
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(data), target)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert min(losses[-5:]) < losses[0]
    net.eval()
    extra = {"edge_attr": data.edge_attr} if name == "gat" else {}
    assert torch.allclose(net(data), net.conv(data.x, data.edge_index, **extra), atol=1e-6)


def test_same_masks_on_every_device(device):
    data = prepared()
    there = data.to(device)
    assert there.edge_keep_prob.device.type == device.type
    drop = TADropEdge(seed=6)
    expected = drop(data.edge_index.cpu(), data.edge_keep_prob.cpu())[1]
    moved = TADropEdge(seed=6).to(device)
    assert torch.equal(moved(there.edge_index, there.edge_keep_prob)[1].cpu(), expected)


def test_data_loader_carries_the_attributes():
    graphs = [prepared(name) for name in ("karate", "clusters", "grid")]
    (batch,) = DataLoader(graphs, batch_size=3)
    assert torch.equal(batch.edge_keep_prob, torch.cat([graph.edge_keep_prob for graph in graphs]))
    assert torch.equal(batch.edge_resistance, torch.cat([graph.edge_resistance for graph in graphs]))
    edge_index, mask = TADropEdge()(batch.edge_index, batch.edge_keep_prob)
    assert edge_index.shape[1] == int(mask.sum())
    for graph, again in zip(graphs, batch.to_data_list(), strict=True):
        assert torch.equal(again.edge_keep_prob, graph.edge_keep_prob)


def test_random_node_loader_carries_the_attributes():
    data = prepared()
    data.n_id = torch.arange(34)
    prob = {
        tuple(arc): keep for arc, keep in zip(data.edge_index.T.tolist(), data.edge_keep_prob.tolist(), strict=True)
    }
    drop = TADropEdge(seed=0, advance="manual")
    whole = {
        tuple(arc): kept
        for arc, kept in zip(
            data.edge_index.T.tolist(), drop.mask(data.edge_index, data.edge_keep_prob).tolist(), strict=True
        )
    }
    seen = 0
    for batch in RandomNodeLoader(data, num_parts=3):
        arcs = batch.n_id[batch.edge_index].T.tolist()
        assert batch.edge_keep_prob.tolist() == [prob[tuple(arc)] for arc in arcs]
        mask = drop.mask(batch.edge_index, batch.edge_keep_prob, node_id=batch.n_id)
        assert mask.tolist() == [whole[tuple(arc)] for arc in arcs]
        seen += len(arcs)
    assert seen > 0


def test_edge_subgraph_thins_a_whole_data():
    data = prepared()
    mask = TADropEdge(seed=0).mask(data.edge_index, data.edge_keep_prob)
    thin = data.edge_subgraph(mask)
    assert torch.equal(thin.edge_attr, data.edge_attr[mask])
    assert thin.edge_keep_prob.shape[0] == int(mask.sum())
    assert data.edge_attr.shape[0] == mask.shape[0]


@pytest.mark.filterwarnings("ignore")
def test_torch_compile_draws_the_same_coins():
    data = prepared()
    eager, compiled = Net("gcn"), torch.compile(Net("gcn"), backend="aot_eager")
    for _ in range(3):
        assert torch.allclose(compiled(data), eager(data))
    assert int(compiled.drop.epoch) == 3

    def weighted(drop, x, edge_index, prob):
        return x * drop.mask(edge_index, prob).sum()

    whole = torch.compile(weighted, backend="aot_eager", fullgraph=True)  # no graph break
    one, other = TADropEdge(seed=9), TADropEdge(seed=9)
    for _ in range(3):
        arguments = (data.x, data.edge_index, data.edge_keep_prob)
        assert torch.equal(whole(one, *arguments), weighted(other, *arguments))


def test_a_bad_attribute_does_not_move_the_epoch():
    drop = TADropEdge()
    with pytest.raises(TadropedgeError):
        drop(DATA.edge_index, DATA.edge_keep_prob, torch.ones(2, 3))
    assert int(drop.epoch) == 0
    assert int(TADropEdge(seed=np.int64(3)).seed) == 3


TRAPS = (
    "8 threads draw with advance='call'",
    "8 threads call next_epoch",
    "2 fork workers: advance='call'",
    "2 lasting fork workers: advance='manual' and share_memory()",
    "2 lasting fork workers: advance='manual', not shared",
    "torch.jit.trace of advance='call'",
    "torch.jit.script of a model",
    "torch.export, strict=False",
    "torch.compile to one graph by aot_eager",
    "a probability of nan, compiled",
    "a probability of 1.1, compiled",
    "checkpointing, advance='call', use_reentrant=True",
    "checkpointing, advance='call', use_reentrant=False",
    "checkpointing, advance='manual', use_reentrant=True",
    "copied by pickle",
    "an epoch of 63 bits",
)


@pytest.mark.parametrize("name", TRAPS)
def test_the_epoch_is_right_or_the_call_is_refused(name, tmp_path):
    (trap,) = (case for case in cases("pyg") if case.name == name)
    trap.check(tmp_path)


def test_captured_cuda_graphs_advance_and_check(device):
    if device.type != "cuda":
        pytest.skip("captured graphs are CUDA's")
    data = prepared().to(device)
    drop, expected = TADropEdge(seed=3).to(device), TADropEdge(seed=3).to(device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        mask = drop.mask(data.edge_index, data.edge_keep_prob)
    for _ in range(3):
        graph.replay()
        assert torch.equal(mask, expected.mask(data.edge_index, data.edge_keep_prob))


DATA = prepared()
BAD = {
    "q zero": (lambda: AddResistance(q=0), "q must be a whole number of at least 1, got 0"),
    "effective q": (
        lambda: AddResistance(q=3, score="effective"),
        "has no setting 'q'; its settings are method, relative_error, seed",
    ),
    "ratio": (lambda: AddKeepProbability(keep_ratio=1.5), r"keep_ratio must lie in \[0, 1\], got 1.5"),
    "gamma": (
        lambda: AddKeepProbability("cutoff", keep_prob=0.5, gamma=-1),
        "gamma must be finite and at least 0, got -1",
    ),
    "gamma word": (lambda: AddKeepProbability("cutoff", keep_ratio=0.5, gamma="x"), "unknown gamma 'x'"),
    "strategy number": (lambda: AddKeepProbability(3, keep_prob=0.5), "unknown strategy 3"),
    "inverse": (lambda: AddKeepProbability("uniform", keep_prob=0.5, inverse=True), "has no inverse"),
    "vector": (lambda: AddKeepProbability(keep_prob=[0.5, 0.6]), "must be a single number here, got a vector"),
    "epoch": (lambda: TADropEdge().set_epoch(1.5), "epoch must be a whole number of at least 0, got 1.5"),
    "node_id": (
        lambda: TADropEdge()(DATA.edge_index, DATA.edge_keep_prob, node_id=torch.arange(9)),
        "node_id names 9 nodes, but edge_index holds the node 33",
    ),
    "ends": (lambda: TADropEdge()(torch.zeros(3, 158).long(), DATA.edge_keep_prob), "must have shape"),
    "score": (
        lambda: AddResistance(q=2, score="spectral"),
        "unknown score 'spectral'; choose from aggregate, effective",
    ),
    "setting": (lambda: AddScore("effective", q=3), "the score 'effective' has no setting 'q'"),
    "needed": (lambda: AddScore(lambda graph, power: graph), "the score '<lambda>' requires power"),
    "no q": (lambda: AddResistance(), "give either q or desired_clusters"),
    "laplacian": (lambda: AddResistance(q=2, laplacian="x"), "unknown laplacian 'x'"),
    "solver": (lambda: AddResistance(q=2, solver="x"), "unknown solver 'x'"),
    "strategy": (lambda: AddKeepProbability("cfd", keep_prob=0.5), "unknown strategy 'cfd'"),
    "keep_prob": (lambda: AddKeepProbability("cdf", keep_prob=2), r"keep_prob must lie in \[0, 1\], got 2"),
    "nothing given": (lambda: AddKeepProbability("cdf"), "give either keep_prob or keep_ratio"),
    "no resistance": (
        lambda: AddKeepProbability(keep_prob=0.5)(make_data()),
        "data has no edge_score or edge_resistance; apply AddScore or AddResistance first",
    ),
    "no edge_index": (lambda: AddResistance(q=2)(Data(x=torch.ones(2, 1))), "Data with an edge_index"),
    "seed": (lambda: TADropEdge(seed=0.5), "seed must be a whole number of at least .*, got 0.5"),
    "advance": (lambda: TADropEdge(advance="epoch"), "unknown advance 'epoch'; choose from call, manual"),
    "no prob": (lambda: TADropEdge()(DATA.edge_index, None), "edge_keep_prob must be a tensor, got None"),
    "length": (
        lambda: TADropEdge()(DATA.edge_index, torch.ones(3)),
        r"edge_keep_prob has shape \[3\], but edge_index has 158 arcs",
    ),
    "range": (
        lambda: TADropEdge()(DATA.edge_index, torch.full((158,), 2.0)),
        r"edge_keep_prob must lie in \[0, 1\], got 2",
    ),
    "attr": (
        lambda: TADropEdge()(DATA.edge_index, DATA.edge_keep_prob, torch.ones(2, 3)),
        "shape .* but edge_index has 158",
    ),
    "device": (
        lambda: TADropEdge()(DATA.edge_index, torch.ones(158, device="meta")),
        "edge_keep_prob must be a dense tensor .* on meta",
    ),
    "module device": (
        lambda: TADropEdge().to("meta")(DATA.edge_index, DATA.edge_keep_prob),
        "the TADropEdge module is on meta, but edge_index is on cpu",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, message = BAD[name]
    with pytest.raises(TadropedgeError, match=message):
        call()
