"""The solver that runs under MPI: what it finds on 1 and 2 ranks, what it says where it cannot run, what it leaves."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import dense
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from contracts.solvers import GOOD, HARD, system
from graphs import clusters, of, path, union
from typer.testing import CliRunner

from tadropedge import Graph, TadropedgeError, aggregate_resistance
from tadropedge.cli import app
from tadropedge.spectrum import cluster_subspaces, explain
from tadropedge.spectrum.aim import largest_bound
from tadropedge.spectrum.clusters import Clusters
from tadropedge.spectrum.mpi import launch, solver
from tadropedge.spectrum.mpi.launch import MissingMPIError, environment, module_folders, started, tools
from tadropedge.spectrum.mpi.petsc_file import PIECE, read_vectors, write_matrix, write_vector
from tadropedge.spectrum.mpi.solver import solve_on_ranks
from tadropedge.spectrum.plan import Wish


def unusable():
    """Why the solver cannot run here, or nothing."""
    try:
        tools()
    except MissingMPIError as error:
        return str(error)
    return ""


ranked = pytest.mark.skipif(bool(unusable()), reason=unusable() or "it can run")


@pytest.fixture(autouse=True)
def _a_folder_of_its_own(tmp_path_factory, monkeypatch):
    """Files for the ranks go there, and no test leaves one; the name is short, because Open MPI's sockets lie there."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("t")))
    yield
    import tempfile

    assert not list(Path(tempfile.tempdir).iterdir())


def grid_values(side, count):
    """4 − 2 cos(π i / n) − 2 cos(π j / n), the eigenvalues of a grid of n × n."""
    one = 2 - 2 * np.cos(np.pi * np.arange(side) / side)
    return np.sort(np.add.outer(one, one).ravel())[:count]


def grid(side):
    """The Laplacian of a grid, and its null vector."""
    L = sp.csr_matrix(nx.laplacian_matrix(nx.grid_2d_graph(side, side)), dtype=float)
    return L, np.full(side**2, 1 / side)


@ranked
def test_an_iteration_that_stalls_begins_again_from_what_it_has(monkeypatch):
    asked, ask = [], launch.RunningRanks.ask
    monkeypatch.setattr(launch.RunningRanks, "ask", lambda self, **words: asked.append(words) or ask(self, **words))
    monkeypatch.setattr(solver, "AFRESH", 0)  # whenever an iteration does not halve the residuals
    found = solve_on_ranks(*grid(60), 8, GOOD)
    assert {words["again"] for words in asked[1:]} == {True, False}
    (values, vectors), (L, _) = found.pairs, grid(60)
    assert values == pytest.approx(grid_values(60, 8), abs=1e-12)
    residuals = np.linalg.norm(L @ vectors - vectors * values, axis=0)[1:]
    assert (residuals <= GOOD.limits(values, largest_bound(L))[1:]).all()  # which they were not where it stalled
    runs = [words for before, words in pairwise(asked[1:]) if before["again"] and not words["again"]]
    assert 1 <= len(runs) <= solver.STARTS_AGAIN
    assert asked[-1]["tolerance"] == solver.ENOUGH


@ranked
@pytest.mark.parametrize("ranks", [1, 2])
def test_the_eigenvalues_of_a_grid_in_closed_form(ranks):
    side, k = 60, 8
    L, null = grid(side)
    shares = []
    aim = replace(GOOD, ranks=ranks, report=shares.append)
    found = solve_on_ranks(L, null, k, aim)
    values, vectors = found.pairs
    assert values == pytest.approx(grid_values(side, k), abs=1e-12)
    assert np.linalg.norm(L @ vectors - vectors * values) < 1e-9
    assert len(found.memory) == ranks
    assert all(2e7 < peak < 1e9 for peak in found.memory)
    assert found.steps > 3
    assert found.seconds > 0
    assert 0 <= min(shares) < max(shares) <= 1


@ranked
@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
def test_one_and_two_ranks_give_the_scores_of_a_dense_solution(laplacian):
    """Several components, the largest of which is worth ranks, with weights."""
    graph = union(clusters([120, 120, 120], 0.08, 0.004), clusters([12, 12], 0.6, 0.05), path(7))
    weight = np.random.default_rng(0).uniform(0.5, 2, graph.num_edges)
    graph = Graph.from_edge_index(graph.pairs, graph.num_nodes, edge_weight=weight)
    expected = dense.aggregate_resistance(graph, 3, laplacian)
    one, two = (aggregate_resistance(graph, 3, laplacian=laplacian, solver="slepc", ranks=k).numpy() for k in (1, 2))
    assert np.abs(one - expected).max() <= 1e-8
    assert np.abs(two - expected).max() <= 1e-8


@ranked
def test_two_ranks_find_every_copy_of_a_repeated_eigenvalue():
    L, null = system(HARD["spider"], "combinatorial")
    values, _ = solve_on_ranks(L, null, 8, replace(GOOD, ranks=2)).pairs
    assert values == pytest.approx(np.linalg.eigvalsh(L.toarray())[:8], abs=1e-9)


@ranked
def test_the_command_line(tmp_path):
    edges = tmp_path / "grid.csv"
    edges.write_text("".join(f"{a} {b}\n" for a, b in of(nx.grid_2d_graph(12, 15)).pairs.T.tolist()))
    command = ["weights", str(edges), "--q", "4", "--solver", "slepc", "--no-figures", "--no-header"]
    result = CliRunner().invoke(app, [*command, "--ranks", "2", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "slepc" in (tmp_path / "out" / "summary.json").read_text()


@ranked
def test_what_a_plan_and_doctor_say():
    (step,) = explain(HARD["cycle"], q=3, solver="slepc", ranks=2)
    assert step.rungs == ("slepc",)
    assert step.memory > 0
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert f"of {tools().python}" in result.stdout


@ranked
def test_more_pairs_than_blocks_have_room_for_are_refused():
    L, null = system(path(60), "combinatorial")
    with pytest.raises(RuntimeError, match="the dense solver finds them"):
        solve_on_ranks(L, null, 20)


@pytest.mark.parametrize("solver", ["auto", "dense", "davidson"])
def test_ranks_of_another_solver_are_refused(solver):
    with pytest.raises(TadropedgeError, match=f"ranks=2 are processes of the solver 'slepc', got solver='{solver}'"):
        aggregate_resistance(path(9), 2, solver=solver, ranks=2)
    result = CliRunner().invoke(app, ["weights", "karate", "--ranks", "2", "--solver", solver])
    assert result.exit_code != 0
    assert f"--ranks 2 is for --solver slepc, got --solver {solver}" in f"{result.output}{result.exception}"


def test_ranks_do_not_decide_where_scores_are_found_again():
    from dataclasses import asdict

    assert "ranks" not in asdict(Wish(q=2))
    assert Wish(q=2).processes == 1


@pytest.mark.parametrize(
    ("setting", "path", "words"),
    [
        ("/no/such/python", None, "found no Python (TADROPEDGE_MPI_PYTHON=/no/such/python)"),
        (None, "/nowhere", "found no mpiexec"),
        (sys.executable, None, "No module named"),
    ],
)
def test_what_is_missing_is_named_in_one_line(monkeypatch, setting, path, words, tmp_path):
    if setting is None:
        (tmp_path / "python").symlink_to(sys.executable)
        setting = str(tmp_path / "python")
    monkeypatch.setattr(launch, "module_folders", lambda: ())
    monkeypatch.setenv("TADROPEDGE_MPI_PYTHON", setting)
    if path:
        monkeypatch.setenv("PATH", path)
    elif launch.shutil.which("mpiexec") is None:
        pytest.skip("no mpiexec: that is said first")
    launch._tools.cache_clear()
    try:
        with pytest.raises(MissingMPIError) as error:
            aggregate_resistance(HARD["cycle"], 3, solver="slepc")
    finally:
        launch._tools.cache_clear()
    message = str(error.value)
    assert words in message
    assert "python3-slepc4py python3-petsc4py openmpi-bin" in message
    assert "set TADROPEDGE_MPI_PYTHON" in message
    assert "\n" not in message


@ranked
def test_a_python_that_modules_were_not_built_for_is_told_so_before_any_work(monkeypatch):
    """Ours, unless it happens to be that of the system."""
    if Path(tools().python).resolve() == Path(sys.executable).resolve():
        pytest.skip("this is the Python of the ranks")
    monkeypatch.setenv("TADROPEDGE_MPI_PYTHON", sys.executable)
    with pytest.raises(MissingMPIError, match=r"cannot be used by .* \(TADROPEDGE_MPI_PYTHON="):
        aggregate_resistance(HARD["cycle"], 3, solver="slepc")


def test_modules_lie_where_debian_puts_them(tmp_path, monkeypatch):
    for name in ("PETSC_DIR", "SLEPC_DIR"):
        monkeypatch.delenv(name, raising=False)
    for package in ("petsc", "slepc"):
        for version, kind in (("3.9", "real"), ("3.18", "real"), ("3.18", "complex"), ("3.18", "64-real")):
            at = tmp_path / f"usr/lib/{package}dir/{package}{version}/x86_64-linux-gnu-{kind}/lib/python3/dist-packages"
            (at / f"{package}4py").mkdir(parents=True)
    assert [folder.removeprefix(str(tmp_path)).split("/")[4:6] for folder in module_folders(tmp_path)] == [
        ["petsc3.18", "x86_64-linux-gnu-real"],
        ["slepc3.18", "x86_64-linux-gnu-real"],
    ]
    monkeypatch.setenv("SLEPC_DIR", str(tmp_path / "usr/lib/slepcdir/slepc3.9/x86_64-linux-gnu-real"))
    assert "slepc3.9/" in module_folders(tmp_path)[1]


@pytest.mark.parametrize("root", [True, False])
def test_the_environment_of_ranks(monkeypatch, root):
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    monkeypatch.setenv("PYTHONPATH", "/ours")
    monkeypatch.setenv("OMPI_MCA_mpi_yield_when_idle", "0")
    monkeypatch.delenv("OMPI_ALLOW_RUN_AS_ROOT", raising=False)
    env = environment(("/a", "/b"))
    assert env["PYTHONPATH"] == "/a:/b"
    assert env["OMPI_MCA_mpi_yield_when_idle"] == "0"
    assert ("OMPI_ALLOW_RUN_AS_ROOT" in env) == root


@pytest.mark.parametrize("integer", [4, 8])
def test_files_of_petsc_in_pieces(tmp_path, integer):
    n = PIECE + 10
    L = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n)).tocsr()
    write_matrix(tmp_path / "L", L, integer)
    data = (tmp_path / "L").read_bytes()
    head = np.frombuffer(data, f">i{integer}", 4 + n + L.nnz)
    assert head[:4].tolist() == [1211216, n, n, L.nnz]
    assert np.array_equal(head[4 : 4 + n], np.diff(L.indptr))
    assert np.array_equal(head[4 + n :], L.indices)
    assert np.array_equal(np.frombuffer(data, ">f8", offset=integer * len(head)), L.data)
    vectors = np.random.default_rng(0).standard_normal((n, 2))
    for column in (0, 1):
        write_vector(tmp_path / f"{column}", vectors[:, column], integer)
    (tmp_path / "both").write_bytes((tmp_path / "0").read_bytes() + (tmp_path / "1").read_bytes())
    assert np.array_equal(read_vectors(tmp_path / "both", n, integer), vectors)
    with pytest.raises(RuntimeError, match="does not hold vectors of 5 numbers"):
        read_vectors(tmp_path / "both", 5, integer)


def test_too_many_entries_for_integers_of_32_bits_are_refused(tmp_path):
    class Huge:
        shape, nnz = (3, 3), 2**31

    with pytest.raises(TadropedgeError, match="2,147,483,648 entries is too large"):
        write_matrix(tmp_path / "L", Huge())


def test_a_disk_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(TadropedgeError, match="cannot write"):
        write_vector(tmp_path / "none" / "x", np.ones(3))


def alive(pid):
    """Whether a process runs: one that has ended but was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pids, seconds=20):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not any(map(alive, pids)):
            return True
        time.sleep(0.05)
    return False


SPEAKING = "import json, os, time; os.write(1, (json.dumps({'pid': os.getpid()}) + '\\n').encode()); "


@pytest.fixture
def worker(tmp_path):
    """A function that makes a worker which says its number and goes on with some code."""

    def made(code):
        (tmp_path / "worker.py").write_text(SPEAKING + code)
        return tmp_path / "worker.py"

    return made


def listen(worker, pids, patience=60, meanwhile=lambda: None):
    """Start two ranks, note their processes, and wait for one word more."""
    with started(2, worker) as ranks:
        pids += [ranks.next()["pid"], ranks.next()["pid"], ranks.process.pid]
        meanwhile()
        ranks.next(patience)


@ranked
def test_an_error_of_a_rank_is_one_line(worker):
    code = "time.sleep(0.5); os.write(1, json.dumps({'error': 'Error: no pivot'}).encode() + b'\\n'); time.sleep(60)"
    pids = []
    with pytest.raises(RuntimeError, match=r"^Error: no pivot$"):
        listen(worker(code), pids)
    assert len(pids) == 3
    assert gone(pids)


@ranked
def test_a_rank_that_dies_ends_all(worker):
    with pytest.raises(RuntimeError, match="the ranks ended early: ") as error:
        listen(worker("time.sleep(0.5); os.abort()"), [])
    assert "\n" not in str(error.value)


@ranked
def test_ranks_that_say_nothing_are_ended(worker):
    pids = []
    with pytest.raises(RuntimeError, match=r"said nothing for 0\.3 s"):
        listen(worker("time.sleep(600)"), pids, patience=0.3)
    assert len(pids) == 3
    assert gone(pids)


@ranked
def test_ctrl_c_ends_the_ranks(worker):
    pids = []
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what is in the background without it
    interrupt = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        listen(worker("time.sleep(600)"), pids, meanwhile=interrupt.start)
    assert len(pids) == 3
    assert gone(pids)


KILLED = f"""
import importlib.util, sys, time
spec = importlib.util.spec_from_file_location("launch", {launch.__file__!r})
sys.modules["launch"] = launch = importlib.util.module_from_spec(spec)
spec.loader.exec_module(launch)
with launch.started(1) as ranks:
    ranks.hear("ready")
    print(ranks.process.pid, flush=True)
    time.sleep(99)
"""


@ranked
def test_ranks_end_with_a_process_that_is_killed():
    """They hear that nobody is there any more."""
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True) as mine:
        pid = int(mine.stdout.readline())
        mine.kill()
    assert gone([pid])


@ranked
def test_the_ladder_says_why_it_failed(monkeypatch, worker):
    code = "os.write(1, json.dumps({'error': 'Error: no pivot'}).encode() + b'\\n')"
    at = worker(code.replace("os.write", "time.sleep(0.2); os.write"))
    at.write_text(at.read_text().replace(SPEAKING, "import json, os, time; "))
    monkeypatch.setattr("tadropedge.spectrum.mpi.solver.started", lambda ranks: started(ranks, at))
    with pytest.raises(TadropedgeError, match="slepc: Error: no pivot"):
        list(cluster_subspaces(HARD["cycle"], Clusters(q=3), solver="slepc"))
