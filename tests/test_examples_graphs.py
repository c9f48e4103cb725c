"""The example of graph classification runs, and drops what it says."""

import re
from pathlib import Path

import pyg_graph_classification as example
import pytest
import torch
from torch_geometric.loader import DataLoader

from tadropedge.pyg import AddKeepProbability, TADropEdge


def test_it_prints_two_accuracies(capsys):
    example.main(epochs=2)
    found = re.fullmatch(r"all edges: (\d\.\d{3})\nTADropEdge: (\d\.\d{3})\n", capsys.readouterr().out)
    assert all(0 <= float(value) <= 1 for value in found.groups())


def test_the_graphs_are_what_it_says():
    graphs = example.molecules(20)
    assert [int(graph.y) for graph in graphs] == [0, 1] * 10
    for graph in graphs:
        assert graph.is_undirected()
        assert 10 <= graph.num_nodes < 30
        ring = range(graph.num_nodes - 6, graph.num_nodes)
        arcs = {tuple(arc) for arc in graph.edge_index.T.tolist()}
        assert not int(graph.y) or all((one, ring[place - 1]) in arcs for place, one in enumerate(ring))


def test_the_model_drops_in_training_only():
    number = AddKeepProbability("uniform", keep_prob=0.0)
    (batch,) = DataLoader([number(graph) for graph in example.molecules(4)], batch_size=4)
    model = example.Net(TADropEdge())
    seen = []
    model.gnn.register_forward_pre_hook(lambda module, given: seen.append(given[1].shape[1]))
    model.train()(batch)
    model.eval()(batch)
    assert seen == [0, batch.num_edges]


@pytest.mark.parametrize("name", ["pyg_graph_classification.py"])
def test_it_is_short(name):
    assert len((Path(example.__file__).parent / name).read_text(encoding="utf-8").splitlines()) <= 60
    assert torch.get_default_dtype() == torch.float32
