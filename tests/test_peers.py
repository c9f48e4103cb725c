"""What the benchmarks compare with computes what they say."""

import json

import keep_ratio
import numpy as np
import peers_of_spectrum
import pytest
import spectrum
import torch
from peer import WAYS, pyg_epoch
from scipy.sparse.csgraph import laplacian

from tadropedge.data import load_dataset
from tadropedge.spectrum import LAPLACIANS
from tadropedge.training.config import Trial

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_both_ways_to_write_a_training_are_the_same_training():
    trial = Trial("dropedge", learning_rate=0.01, weight_decay=0.0, dropout=0.0, keep_prob=1.0)
    usual, sparse = (pyg_epoch(load_dataset("clusters"), trial, 8, 2, way) for way in WAYS)
    for _ in range(3):
        assert usual() == pytest.approx(sparse(), abs=1e-5)


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_all_ways_to_write_a_training_step_are_the_same_step():
    dataset = keep_ratio.dataset_of("random", keep_ratio.random_graph(500, 2000), "cpu")
    losses = []
    for way in (*keep_ratio.LAYERS, keep_ratio.BY_HAND):
        step = keep_ratio.pyg_step(dataset, 1.0, way)
        torch.manual_seed(1)  # of dropout: no edge is dropped
        losses.append([float(step()) for _ in range(3)])
    assert losses[1:] == [pytest.approx(losses[0], abs=1e-4)] * 2
    assert losses[0][2] < losses[0][0]


@pytest.mark.filterwarnings("ignore:Exited:UserWarning")  # of lobpcg: a rough answer
@pytest.mark.parametrize("which", LAPLACIANS)
@pytest.mark.parametrize("name", peers_of_spectrum.PEERS)
def test_every_peer_finds_the_lowest_modes(name, which):
    if "AMG" in name:
        pytest.importorskip("pyamg")
    graph, normalized = spectrum.power_law(500, clusters=3), which == "normalized"
    L = laplacian(graph.adjacency(), normed=normalized).tocsr()
    degrees = np.asarray(graph.adjacency().sum(axis=1)).ravel()
    lowest = np.linalg.eigh(L.toarray())[0][:3]
    vectors = peers_of_spectrum.PEERS[name](L, degrees, 3, normalized)
    np.testing.assert_allclose(np.linalg.eigvalsh(vectors.T @ L @ vectors), lowest, atol=1e-3)


def test_rows_that_are_measured_again_take_the_places_of_the_old_ones(tmp_path):
    path = tmp_path / "spectrum.json"
    cases = [
        {"graph": "road", "laplacian": "normalized", "method": name, "seconds": 1.0} for name in ("ours", "eigsh SA")
    ]
    path.write_text(json.dumps({"spectrum": cases, "run": {"commit": "0123"}}))
    new = {**cases[1], "method": "lobpcg, plain AMG", "commit": "4567"}
    rows = spectrum.merged([new, {**cases[0], "seconds": 2.0, "commit": "4567"}], path)
    assert [(row["method"], row["seconds"], row["commit"]) for row in rows] == [
        ("ours", 2.0, "4567"),
        ("eigsh SA", 1.0, "0123"),
        ("lobpcg, plain AMG", 1.0, "4567"),
    ]
