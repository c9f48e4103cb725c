"""Free memory and its limits, estimates, one error for every way of running out; seeds; the smallest graphs."""

import errno
import mmap
import resource
from pathlib import Path

import numpy as np
import pytest
import torch
from optuna.storages import InMemoryStorage
from torture.process import forked

from tadropedge import (
    Graph,
    NotEnoughMemoryError,
    TadropedgeError,
    cli,
    effective_resistance,
    memory,
    sample_directed,
    sample_edges,
    shift_operator,
)
from tadropedge.comparison.comparison import Plan
from tadropedge.data import (
    load_clusters,
    load_dataset,
    load_grid,
    load_karate,
    load_noisy_clusters,
    load_roads,
    load_source_localization,
    random_split,
)
from tadropedge.memory import check_memory, free_bytes, ran_out, within_memory
from tadropedge.nn import network
from tadropedge.nn.backbones import GCN, IncepGCN
from tadropedge.nn.network import Problem, Sizes
from tadropedge.pyg import TADropEdge
from tadropedge.search.engine import run_search
from tadropedge.search.space import default_space
from tadropedge.shift import NORMALIZATIONS
from tadropedge.training import laboratory, trainer
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.laboratory import Laboratory

GIGABYTE = 10**9

# -- free memory --------------------------------------------------------------------------------------------


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with 8 GB free, to which a test adds control groups; limits of this process do not count."""
    monkeypatch.setattr(memory, "ROOT", tmp_path)
    write(tmp_path / "proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 7812500 kB\n")
    return tmp_path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_machine_alone(machine):
    assert free_bytes() == 8 * GIGABYTE


def test_nobody_knows(machine):
    (machine / "proc/meminfo").unlink()
    assert free_bytes() is None
    check_memory(1e30, "anything")


@pytest.mark.parametrize(
    ("limit", "current", "files", "free"),
    [
        (4 * GIGABYTE, GIGABYTE, 0, 3 * GIGABYTE),
        (4 * GIGABYTE, 3 * GIGABYTE, 2 * GIGABYTE, 3 * GIGABYTE),  # pages of files can go
        (4 * GIGABYTE, 5 * GIGABYTE, 0, 0),
        ("max", GIGABYTE, 0, 8 * GIGABYTE),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("place", ["own", "parent", "namespace"])
def test_control_groups(machine, version, place, limit, current, files, free):
    line, top = ("0::/jobs/one", "sys/fs/cgroup") if version == 2 else ("4:memory:/jobs/one", "sys/fs/cgroup/memory")
    write(machine / "proc/self/cgroup", f"9:cpu:/\n{line}\n")
    group = machine / top / {"own": "jobs/one", "parent": "jobs", "namespace": ""}[place]
    names = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    limit = 2**63 - 4096 if (version, limit) == (1, "max") else limit
    for name, value in zip(names, (limit, current), strict=True):
        write(group / name, f"{value}\n")
    prefix = "" if version == 2 else "total_"
    write(group / "memory.stat", f"anon 5\n{prefix}inactive_file {files // 2}\n{prefix}active_file {files // 2}\n")
    assert free_bytes() == free


@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_limits_of_the_process(tmp_path, limit):
    def run():
        place = {"RLIMIT_AS": 0, "RLIMIT_DATA": 5}[limit]
        pages = int(Path("/proc/self/statm").read_text().split()[place])
        most = pages * resource.getpagesize() + 50 * 2**20
        resource.setrlimit(getattr(resource, limit), (most, most))
        print(free_bytes())

    ended = forked(run, tmp_path)
    assert 40 * 2**20 <= int(ended.out) <= 50 * 2**20, ended


# -- running out --------------------------------------------------------------------------------------------

WORDS = {
    "Python": MemoryError(),
    "NumPy": MemoryError("Unable to allocate 8.00 TiB for an array with shape (1099511627776,)"),
    "torch on a CPU": RuntimeError(
        "[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you"
    ),
    "torch on Windows": RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."),
    "torch on a GPU": torch.OutOfMemoryError("Tried to allocate 2.00 GiB"),
    "C++": RuntimeError("std::bad_alloc"),
    "SuperLU": RuntimeError("Not enough memory to perform factorization."),
    "SuperLU's own": RuntimeError("SUPERLU_MALLOC fails for buf in intCalloc() at line 170"),
    "the system": OSError(errno.ENOMEM, "Cannot allocate memory"),
    "threads": RuntimeError("can't start new thread"),
    "a shared library": ImportError("libmkl.so: failed to map segment from shared object"),
    "NumPy's limit": ValueError("array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum"),
}


@pytest.mark.parametrize("name", WORDS)
def test_every_disguise_is_recognised(name):
    assert ran_out(WORDS[name])
    with pytest.raises(NotEnoughMemoryError) as caught, within_memory("a thing", "take less"):
        raise WORDS[name]
    assert str(caught.value).startswith("not enough memory for a thing")
    assert str(caught.value).endswith(" are free; take less")
    assert "\n" not in str(caught.value)


REAL = {
    "NumPy": lambda: np.zeros(2**50),
    "NumPy beyond addresses": lambda: np.zeros((2**40, 2**40)),
    "torch": lambda: torch.zeros(2**50),
    "torch beyond addresses": lambda: torch.zeros(2**40, 2**40),
    "mmap": lambda: mmap.mmap(-1, 2**60),
    "bytes": lambda: bytearray(2**60),
}


@pytest.mark.parametrize("name", REAL)
def test_what_libraries_really_raise_is_recognised(name):
    with pytest.raises(NotEnoughMemoryError), within_memory("a thing"):
        REAL[name]()


@pytest.mark.parametrize("error", [RuntimeError("singular"), OSError(errno.ENOSPC, "full"), SystemError("a bug")])
def test_other_errors_pass(error):
    with pytest.raises(type(error)) as caught, within_memory("a thing"):
        raise error
    assert caught.value is error


def test_a_failure_that_python_could_not_name(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device="cpu": 1_000)
    assert ran_out(SystemError("error return without exception set"))


def test_what_the_failed_work_holds_is_released():
    held = []

    class Canary:
        def __del__(self):
            held.append("gone")

    def work():
        canary = Canary()
        raise MemoryError(canary.__class__.__name__)

    with pytest.raises(NotEnoughMemoryError), within_memory("work"):
        work()
    assert held == ["gone"]


def test_the_command_line_is_the_last_net(monkeypatch, capsys):
    def fail(**_):
        raise RuntimeError("std::bad_alloc")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as ended:
        cli.run()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: not enough memory for this command: ")


# -- training -----------------------------------------------------------------------------------------------

KARATE = load_karate()


@pytest.mark.parametrize("name", WORDS)
def test_batches_are_halved_whatever_the_words(name, monkeypatch):
    sizes = []

    def limited(task, architecture, trials, course, **settings):
        sizes.append(len(trials))
        if len(trials) > 1:
            raise WORDS[name]
        return trainer.train(task, architecture, trials, course, **settings)

    monkeypatch.setattr(laboratory, "train", limited)
    trials = [Trial(seed=seed) for seed in range(3)]
    outcomes = Laboratory(KARATE, Architecture(hidden=4), epochs=1).train(trials)
    assert [outcome.trial for outcome in outcomes] == trials
    assert sizes == [3, 1, 1, 1]


def test_a_refused_score_is_not_tried_again(monkeypatch):
    sizes = []

    def refuse(task, architecture, trials, course, **settings):
        sizes.append(len(trials))
        raise NotEnoughMemoryError("a score does not fit")

    monkeypatch.setattr(laboratory, "train", refuse)
    with pytest.raises(NotEnoughMemoryError, match="a score does not fit"):
        Laboratory(KARATE, epochs=1).train([Trial(), Trial(seed=1)])
    assert sizes == [2]


def test_the_budget_of_a_cpu_respects_what_is_free(monkeypatch):
    mine = Laboratory(KARATE, Architecture(hidden=64))
    usual = mine.fitting()
    monkeypatch.setattr(laboratory, "free_bytes", lambda device: 10**7)
    assert 1 <= mine.fitting() < usual / 100
    monkeypatch.setattr(laboratory, "free_bytes", lambda device: None)
    assert mine.fitting() == usual


@pytest.mark.parametrize(
    ("architecture", "epochs"),
    [
        (Architecture(hidden=10**8), 2),
        (Architecture(hidden=2**31 - 1), 2),
        (Architecture(layers=10**9), 2),
        (Architecture("incepgcn", 10**6), 2),
        (Architecture(), 2**31 - 1),
    ],
)
def test_what_never_fits_is_refused_at_once(architecture, epochs):
    mine = Laboratory(KARATE, architecture, epochs=epochs)
    for refuse in (mine.check, mine.train):
        with pytest.raises(
            NotEnoughMemoryError, match=r"one training of karate .* needs about .* are free; take fewer"
        ):
            refuse([Trial()])


def test_a_filter_of_high_order_never_fits():
    mine = Laboratory(load_source_localization(), Architecture("gcnn", 1, 8, {"order": 10**9}), epochs=2)
    with pytest.raises(NotEnoughMemoryError, match="one training of source-localization"):
        mine.train([Trial()])


def test_estimates_know_every_layer():
    sizes = Sizes(num_nodes=10, num_features=5, num_classes=2, layers=6, hidden=8)
    for kind in (GCN, IncepGCN):
        assert kind.depth(6) == len(kind.convolutions(sizes, kind.completed("it", {})))


def test_the_same_start_without_threads(monkeypatch):
    sizes = Sizes(num_nodes=34, num_features=5, num_classes=2, layers=2, hidden=8)
    settings = [GCN.completed("gcn", {})] * 3
    mine = GCN(Problem(graph=KARATE.graph, sizes=sizes, settings=settings))
    threaded = mine.initial([0, 1, 2], torch.device("cpu"))
    monkeypatch.setattr(network, "ThreadPoolExecutor", None)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 10**8)
    alone = mine.initial([0, 1, 2], torch.device("cpu"))
    assert all(torch.equal(threaded[key], alone[key]) for key in threaded)


def test_more_trials_than_can_be_listed(tmp_path):
    for refuse in (
        lambda: Plan(trials=10**12),
        lambda: Plan(seeds=10**12),
        lambda: run_search(print, default_space(), ["cdf"], 10**12, 0, tmp_path / "study.db"),
    ):
        with pytest.raises(NotEnoughMemoryError, match=r"a list of \d+ trials needs about"):
            refuse()
    assert list(tmp_path.iterdir()) == []


# -- seeds --------------------------------------------------------------------------------------------------

LABELS = torch.arange(60) % 2
HALF = torch.full((9,), 0.5)
PATH = Graph.from_edge_index([[0, 1], [1, 2]])


def one_epoch(trials):
    return Laboratory(KARATE, Architecture(hidden=4), epochs=1).train(trials)


SEEDED = {
    "trial": lambda seed: Trial(seed=seed),
    "training": lambda seed: one_epoch([Trial("dropedge", seed=seed)]),
    "plan": lambda seed: Plan(seed=seed),
    "search": lambda seed: run_search(one_epoch, default_space(), ["cdf"], 1, seed, InMemoryStorage()),
    "space": lambda seed: default_space().draw(seed, 0),
    "karate": load_karate,
    "clusters": load_clusters,
    "noisy clusters": load_noisy_clusters,
    "grid": lambda seed: load_grid(seed, 20),
    "roads": lambda seed: load_roads(seed, 400),
    "source localization": load_source_localization,
    "dataset": lambda seed: load_dataset("karate", seed=seed),
    "split": lambda seed: random_split(LABELS, 1, 1, 1, seed=seed),
    "sketch": lambda seed: effective_resistance(PATH, seed=seed),
    "coins": lambda seed: sample_edges(HALF, seed=seed),
    "many coins": lambda seed: sample_edges(HALF, seed=[0, seed]),
    "directed coins": lambda seed: sample_directed(9, 0.5, seed=seed),
    "module": TADropEdge,
}


@pytest.mark.parametrize("name", SEEDED)
def test_a_seed_is_a_word_of_64_bits(name):
    for seed in (0, 2**31, 2**63, 2**64 - 1):
        SEEDED[name](seed)
    least = -(2**63) if name in ("coins", "many coins", "directed coins", "module") else 0
    for seed in (2**64, 2**70, 10**400, least - 1, 0.5):
        with pytest.raises(TadropedgeError, match=r"seed must be a whole number"):
            SEEDED[name](seed)


def test_negative_words_are_those_of_int64_tensors():
    assert torch.equal(sample_edges(HALF, seed=-1), sample_edges(HALF, seed=2**64 - 1))


# -- the smallest graphs ------------------------------------------------------------------------------------

NONE = np.zeros((2, 0), dtype=np.int64)
TINY = {
    "one node": Graph.from_edge_index(NONE, num_nodes=1),
    "one loop": Graph.from_edge_index([[0], [0]]),
    "no edges": Graph.from_edge_index(NONE, num_nodes=3),
    "two nodes": Graph.from_edge_index([[0], [1]]),
}
LONE = {"gcn": 1, "first-order": 1, "gcn-residual": 2, "random-walk": 1}  # the diagonal of a node without edges, else 0
PAIR = {
    "gcn": [0.5, 0.5], "first-order": [1, 1], "gcn-residual": [1.5, 0.5], "random-walk": [0.5, 0.5],
    "neighbour-mean": [0, 1], "adjacency": [0, 1], "spectral": [0, 1], "laplacian": [1, -1],
    "normalized-laplacian": [1, -1],
}  # fmt: skip


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("name", TINY)
def test_every_normalisation_of_the_smallest_graphs(name, normalization):
    graph = TINY[name]
    n = graph.num_nodes
    alone = LONE.get(normalization, 0) * torch.eye(n)
    dropped = shift_operator(graph, torch.zeros(2, graph.num_edges, dtype=torch.bool), normalization=normalization)
    assert torch.equal(dropped.to_dense(), alone.expand(2, n, n))
    whole = shift_operator(graph, normalization=normalization).to_dense()
    if name == "two nodes":
        own, other = PAIR[normalization]
        alone = torch.tensor([[own, other], [other, own]])
    assert torch.allclose(whole, alone.to(whole.dtype))
