"""The examples for adj_t and for many relations, with few epochs."""

import pyg_gcn2_adj_t
import pyg_hetero
import pytest
import torch

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.filterwarnings("ignore:Sparse")]


def test_gcnii_on_the_transposed_matrix(capsys):
    found = pyg_gcn2_adj_t.main(["--epochs", "25"])
    assert list(found) == ["whole", "dropedge", "degree"]
    assert all(value > 0.4 for value in found.values())  # of four classes
    assert f"degree    test accuracy {found['degree']:.3f}" in capsys.readouterr().out


def test_many_relations(capsys):
    found = pyg_hetero.main(["--epochs", "25"])
    assert list(found) == ["whole", "all", "cites"]
    assert all(value > 0.4 for value in found.values())  # of four fields
    assert f"cites  test accuracy {found['cites']:.3f}" in capsys.readouterr().out


def test_the_embedded_graph_is_seen_from_both_sides():
    data = pyg_hetero.library(authors=20, papers=30)
    writes, back = data["author", "writes", "paper"].edge_index, data["paper", "rev_writes", "author"].edge_index
    assert torch.equal(writes.flip(0), back)
