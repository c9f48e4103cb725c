"""Eigenvectors from elsewhere: the scores of our own, refused where they are wrong, and computed under MPI."""

import os
import shutil
import subprocess
from pathlib import Path

import dense
import numpy as np
import pytest
import torch

from tadropedge import TadropedgeError, edge_scores
from tadropedge.spectrum import ModeRequest, blocks, check_modes, given_modes
from tadropedge.testing.graphs import ZOO, clusters, path, star, union, weighted

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "cluster" / "slepc_modes.py"


def modes_of(graph, count, kind="combinatorial", first=0):
    """Modes of each component in turn, 0 elsewhere."""
    V = np.zeros((graph.num_nodes, count))
    for component in range(graph.components.count):
        nodes = np.flatnonzero(graph.components.labels == component)
        L = dense.laplacian(dense.adjacency(graph)[np.ix_(nodes, nodes)], kind)
        found = np.linalg.eigh(L)[1][:, first : first + count]
        V[nodes, : found.shape[1]] = found
    return V


@pytest.mark.parametrize("kind", ["combinatorial", "normalized"])
def test_of_several_components(kind):
    graph = union(ZOO["karate"], path(7), ZOO["weighted"], path(2), path(7))
    expected = pytest.approx(edge_scores(graph, q=3, laplacian=kind).numpy(), abs=1e-9)
    given = {"laplacian": kind, "tolerance": 1e-6}
    assert edge_scores(graph, q=3, modes=modes_of(graph, 4, kind), **given).numpy() == expected
    assert edge_scores(graph, q=3, modes=modes_of(graph, 3, kind) * -5, **given).numpy() == expected  # any length
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    assert edge_scores(graph, q=3, modes=modes_of(graph, 4, kind) @ turn, **given).numpy() == expected


def test_the_eigengap_among_them():
    graph = ZOO["cliques"]
    expected = edge_scores(graph, desired_clusters=2).numpy()
    assert edge_scores(graph, desired_clusters=2, modes=modes_of(graph, 5)).numpy() == pytest.approx(expected, abs=1e-9)


def test_an_eigenspace_that_they_end_in_is_taken_as_it_is_and_one_that_q_cuts_is_used_whole():
    modes = modes_of(star(5), 6)
    part = edge_scores(star(5), q=3, modes=modes[:, :3])
    assert float(part.sum()) == pytest.approx(2.0)  # two eigenvalues of 1, and 0
    with pytest.warns(UserWarning, match="repeated"):
        whole = edge_scores(star(5), q=3, modes=modes)
    assert whole.tolist() == pytest.approx([0.8] * 5)  # four eigenvalues of 1 over five edges


def test_modes_of_a_large_component_may_end_inside_an_eigenspace():
    part = edge_scores(star(600), q=3, modes=modes_of(star(600), 3))
    assert float(part.sum()) == pytest.approx(2.0)


def test_modes_that_are_nearly_constant_are_orthogonal_to_the_constant_in_the_end():
    """What rounding leaves of it after one projection would be made a million times larger."""
    graph = ZOO["karate"]
    V = check_modes(1.0 + 1e-5 * modes_of(graph, 4), graph)
    found = given_modes(next(blocks(graph)), V, ModeRequest(q=3, tolerance=1e-5))
    vectors = found.vectors[0]
    assert np.abs(vectors.T @ vectors - np.eye(vectors.shape[1])).max() < 1e-14


@pytest.mark.parametrize("graph", [path(40), clusters([300, 300], 0.05, 0.002)], ids=["small", "large"])
@pytest.mark.parametrize("kind", ["combinatorial", "normalized"])
def test_what_is_wrong_with_them_is_said(graph, kind):
    modes = modes_of(graph, 5, kind)
    for given, words in (
        ({"q": 3, "modes": modes[:, [0, 2, 3]]}, "not the lowest"),
        ({"modes": modes[:, 2:]}, "not the lowest"),
        ({"q": 7, "modes": modes}, "modes span 5 dimensions"),
        ({"modes": modes[:, :3] + 1e-3 * np.roll(modes[:, :3], 1, axis=0)}, "residual"),
        ({"modes": modes * [1, 1, 0, 1, 1]}, "column 2 is not"),
        ({"modes": modes * np.nan}, "finite"),
        ({"modes": modes[1:]}, "one row for each node"),
    ):
        with pytest.raises(TadropedgeError, match=words) as caught:
            edge_scores(graph, laplacian=kind, **given)
        assert "\n" not in str(caught.value)
    edge_scores(graph, q=3, laplacian=kind, modes=modes)


def slepc():
    """The command and the environment that run SLEPc's Python, or nothing."""
    python, ranks = Path("/usr/bin/python3"), shutil.which("mpiexec")
    folders = {name: sorted(Path("/usr/lib").glob(f"{name}dir/*/*-real")) for name in ("petsc", "slepc")}
    environment = os.environ | {f"{name.upper()}_DIR": str(found[-1]) for name, found in folders.items() if found}
    if ranks is None or not all(folders.values()) or not python.exists():
        return None
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
    return [ranks, "--oversubscribe", "-n", "2", str(python)], environment | root


@pytest.mark.skipif(slepc() is None, reason="no SLEPc: apt install python3-slepc4py")
@pytest.mark.parametrize("kind", ["combinatorial", "normalized"])
def test_slepc_on_two_ranks(kind, tmp_path):
    graph = weighted(clusters([60, 40, 50], 0.4, 0.02))
    A = graph.adjacency()
    for name in ("indptr", "indices", "data"):
        np.save(tmp_path / name, getattr(A, name))
    command, environment = slepc()
    words = [str(EXAMPLE), str(tmp_path), "4", *["--normalized"] * (kind == "normalized")]
    subprocess.run(command + words, env=environment, check=True, capture_output=True, timeout=120)
    scores = edge_scores(graph, q=3, laplacian=kind, modes=torch.from_numpy(np.load(tmp_path / "V.npy")))
    assert scores.numpy() == pytest.approx(edge_scores(graph, q=3, laplacian=kind).numpy(), abs=1e-8)
