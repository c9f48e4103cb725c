"""Files that are written come back as the same graph, and are there whole or not at all."""

import os
from dataclasses import replace

import numpy as np
import pytest
import torch

from tadropedge import Graph, TadropedgeError
from tadropedge.files import read_file, write_graph
from tadropedge.testing.graphs import karate, weighted

NAMED = replace(weighted(karate()), node_ids=tuple(f'the "{number}", é' for number in range(34)))
SUFFIXES = [".csv", ".npz", ".pt"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("graph", [karate(), weighted(karate(), zeros=0.2)], ids=["plain", "weighted"])
def test_a_graph_comes_back(suffix, graph, tmp_path):
    values = {"score": torch.arange(graph.num_edges) / 7}
    file = write_graph(tmp_path / f"g{suffix}", graph, values)
    again = Graph.from_file(file)
    assert again.pairs.tolist() == graph.pairs.tolist()
    assert (again.weight is None) == (graph.weight is None)
    if graph.weight is not None:
        assert torch.allclose(again.weight, graph.weight, rtol=1e-7 if suffix == ".pt" else 0, atol=0)
    scores = again.to_pairs(read_file(file, column="score").column)
    assert torch.allclose(scores, values["score"].double(), rtol=1e-7)


@pytest.mark.parametrize("ids", [NAMED.node_ids, tuple(range(-7, 27)), tuple(10**12 + number for number in range(34))])
def test_names_come_back(ids, tmp_path):
    graph = replace(NAMED, node_ids=ids)
    for suffix in (".csv", ".npz"):
        again = Graph.from_file(write_graph(tmp_path / f"g{suffix}", graph))
        found = {tuple(sorted(map(str, (again.node_ids[low], again.node_ids[high])))) for low, high in again.pairs.T}
        wanted = {tuple(sorted(map(str, (ids[low], ids[high])))) for low, high in graph.pairs.T}
        assert found == wanted


@pytest.mark.parametrize("suffix", [".npz", ".pt"])
def test_nodes_come_back(suffix, tmp_path):
    nodes = {"x": torch.eye(34).to_sparse_csr(), "y": torch.arange(34) % 3, "train": torch.arange(34) < 5}
    contents = read_file(write_graph(tmp_path / f"g{suffix}", karate(), nodes=nodes))
    dense = contents.features.toarray() if hasattr(contents.features, "toarray") else contents.features
    assert np.array_equal(dense, np.eye(34))
    assert contents.labels.tolist() == nodes["y"].tolist()
    assert contents.splits["train"].tolist() == nodes["train"].tolist()


def test_isolated_nodes_come_back(tmp_path):
    graph = Graph.from_edge_index([[0, 3], [1, 4]], num_nodes=9)
    for suffix in (".npz", ".pt"):
        assert Graph.from_file(write_graph(tmp_path / f"g{suffix}", graph)).num_nodes == 9


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("g.xlsx", {}, "unknown suffix '.xlsx'"),
        ("g", {}, "unknown suffix"),
        ("g.csv", {"weight": torch.ones(78)}, "'weight'"),
        ("g.npz", {"score": torch.ones(77)}, "78 entries"),
    ],
)
def test_what_cannot_be_written_is_said_before(name, values, words, tmp_path):
    with pytest.raises(TadropedgeError, match=words):
        write_graph(tmp_path / name, karate(), values)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(suffix, call, tmp_path, monkeypatch):
    file = write_graph(tmp_path / f"g{suffix}", karate())
    before = file.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(TadropedgeError, match="disk is full"):
        write_graph(file, weighted(karate()))
    monkeypatch.undo()
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]
