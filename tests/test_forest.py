import graphs
import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from tadropedge import Graph
from tadropedge.forest import ForestPlan, spanning_forest

LOOKS = ("_local_scalar_dense", "nonzero", "equal.default", "is_nonzero", "masked_select", "unique")
EMPTY = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.int64), 4)


class NoLook(TorchDispatchMode):
    """Refuses every operation that brings a value to the host or makes a shape of it."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = str(func)
        assert not any(look in name for look in LOOKS), name
        places = [each for listed in args if isinstance(listed, (list, tuple)) for each in listed]
        assert not any(torch.is_tensor(each) and each.dtype == torch.bool for each in places), f"{name} by a mask"
        return func(*args, **(kwargs or {}))


def kruskal(graph, priority):
    """The textbook: edges by priority and number, each kept unless its ends are joined already."""
    tree, keep = list(range(graph.num_nodes)), [False] * graph.num_edges
    low, high = graph.pairs.tolist()
    for edge in sorted(range(graph.num_edges), key=lambda edge: (priority[edge], edge)):
        old, new = tree[low[edge]], tree[high[edge]]
        if old != new:
            keep[edge] = True
            tree = [new if name == old else name for name in tree]
    return keep


def both(graph, priority):
    """The forests of both ways to run, which must agree; they come back on the CPU."""
    plan = ForestPlan.of(graph)
    looking = plan.forest(priority)
    with NoLook():
        fixed = plan.forest(priority, fixed=True)
    assert torch.equal(looking, fixed)
    assert looking.shape == priority.shape
    assert looking.dtype == torch.bool
    return looking.cpu()


def some(graph, rows=5, levels=7, seed=0):
    """Priorities with many ties, zero and infinity among them."""
    generator = torch.Generator().manual_seed(seed)
    priority = torch.randint(0, levels, (rows, graph.num_edges), generator=generator).double()
    priority[priority == levels - 1] = torch.inf
    priority[0] = torch.rand(graph.num_edges, generator=generator, dtype=torch.float64)
    return priority


@pytest.mark.parametrize("name", graphs.ZOO)
def test_the_forest_is_that_of_kruskal(name, device):
    graph, priority = graphs.ZOO[name], some(graphs.ZOO[name])
    forest = both(graph.to(device), priority.to(device))
    assert forest.tolist() == [kruskal(graph, row) for row in priority.tolist()]
    assert forest.sum(dim=1).unique().tolist() == [graph.num_nodes - graph.components.count]


@given(graphs.edge_lists(), st.data())
def test_on_any_graph(arcs, data):
    graph = Graph.from_edge_index(*arcs)
    values = st.sampled_from([0.0, 1e-320, 0.5, 1.0, 1e308, float("inf")])
    row = data.draw(st.lists(values, min_size=graph.num_edges, max_size=graph.num_edges))
    assert both(graph, torch.tensor(row, dtype=torch.float64)).tolist() == kruskal(graph, row)


@pytest.mark.parametrize("length", [2, 3, 4, 5, 8, 9, 33, 64, 65])
def test_long_chains_are_joined_in_the_rounds_that_are_promised(length):
    """On a path, rising priorities make one tree of all nodes in one round, zigzags halve them: the two extremes."""
    graph = graphs.cycle(length) if length > 2 else graphs.path(2)
    place = torch.arange(graph.num_edges)
    priority = torch.stack((place, -place, place ^ 1, (place & -place), place % 3, 0 * place)).double()
    assert both(graph, priority).tolist() == [kruskal(graph, row) for row in priority.tolist()]


def test_heavy_edges_are_looked_at_after_the_light_ones():
    """Two cliques far denser than needed, whose bridge is the heaviest edge of all, and the lightest in another row."""
    graph = graphs.two_cliques(24)
    bridge = int(((graph.pairs[0] == 23) & (graph.pairs[1] == 24)).nonzero())
    priority = some(graph, rows=4, levels=900)
    priority[:, bridge] = torch.tensor([2.0, torch.inf, 0.0, -1.0], dtype=torch.float64)
    forest = both(graph, priority)
    assert bool(forest[:, bridge].all())
    assert forest.tolist() == [kruskal(graph, row) for row in priority.tolist()]


def test_large_graph_against_networkx():
    graph = graphs.of(nx.gnm_random_graph(400, 3000, seed=1))
    priority = some(graph, rows=2, levels=10**6)
    nxg = nx.Graph()
    for low, high, value in zip(*graph.pairs.tolist(), priority[0].tolist(), strict=True):
        nxg.add_edge(low, high, weight=value)
    edges = {tuple(sorted(edge)) for edge in nx.minimum_spanning_edges(nxg, data=False)}
    assert {tuple(pair) for pair in graph.pairs[:, both(graph, priority)[0]].T.tolist()} == edges


def test_shapes_of_priorities():
    graph = graphs.ZOO["karate"]
    priority = some(graph, rows=6)
    forest = both(graph, priority)
    assert torch.equal(both(graph, priority.view(2, 3, -1)).view(6, -1), forest)
    assert torch.equal(torch.stack([both(graph, row) for row in priority]), forest)
    assert both(EMPTY, torch.empty(3, 0, dtype=torch.float64)).shape == (3, 0)
    assert both(EMPTY, torch.empty(0, dtype=torch.float64)).shape == (0,)
    assert spanning_forest(graph.pairs, graph.num_nodes, priority[:0]).shape == (0, graph.num_edges)


def test_a_cuda_graph_records_the_forest(device):
    if device.type != "cuda":
        pytest.skip("CUDA graphs are recorded on a GPU")
    graph, rows = graphs.ZOO["clusters"], some(graphs.ZOO["clusters"], rows=3)
    plan, priority = ForestPlan.of(graph.to(device)), rows.to(device)
    plan.forest(priority, fixed=True)  # warm up
    recorded = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(recorded):
        forest = plan.forest(priority, fixed=True)
    for seed in (1, 2):
        rows = some(graph, rows=3, seed=seed)
        priority.copy_(rows)
        recorded.replay()
        assert forest.cpu().tolist() == [kruskal(graph, row) for row in rows.tolist()]
