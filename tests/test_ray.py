"""A real Ray cluster on this machine: the same rows with any number of workers, whoever dies; no trial twice."""

import importlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import numpy as np
import optuna
import pytest
import torch
from fake_trainer import METHODS, REPLICATES, TRIALS, Trainer, compare, outcome

import tadropedge as tde
from tadropedge.comparison.comparison import Plan, compared
from tadropedge.data import load_karate
from tadropedge.errors import NotEnoughMemoryError, TadropedgeError
from tadropedge.nn.own import own_network
from tadropedge.registry import NETWORKS
from tadropedge.search import Local, RayEngine, training_with
from tadropedge.search.engines import crew
from tadropedge.search.storage import open_storage
from tadropedge.training.config import Trial
from tadropedge.training.laboratory import laboratory_for
from tadropedge.watching import Moment, tell, watching

os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")
ray = pytest.importorskip("ray", reason="the extra ray is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray: sockets and processes that it leaves to the system
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
TOTAL = len(METHODS) * TRIALS + (len(METHODS) + 2) * REPLICATES


class Machines:
    """A cluster of nodes with one CPU each, to which the tests are connected."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        head = {**NODE, "num_gpus": 0, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address = self.cluster.address
        ray.init(self.address, log_to_driver=False, logging_level="ERROR")

    def grow(self, nodes):
        for _ in range(nodes - len(self.cluster.list_all_nodes())):
            self.cluster.add_node(**NODE)

    def lose(self, node):
        (mine,) = (one for one in self.cluster.worker_nodes if one.node_id == node)
        self.cluster.remove_node(mine, allow_graceful=False)

    def end(self):
        ray.shutdown()
        self.cluster.shutdown()


@pytest.fixture(scope="module")
def machines():
    before = signal.getsignal(signal.SIGTERM)
    found = Machines()
    yield found
    found.end()
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="module")
def several(machines):
    machines.grow(3)
    return machines


@pytest.fixture(scope="module")
def undisturbed():
    return compare(optuna.storages.InMemoryStorage(), Trainer())


class Worker(Trainer):
    """A trainer that says in a folder where each batch runs, and fails where it is told to.

    ``fails``: the first batch stops by this signal, raises an ``error``, runs out of ``memory`` or ``waits`` for its
    end; with ``away`` the first that is not on that node, whose own batches do not end before it. ``nodes``: so many
    must have begun a batch before the first one ends.
    """

    def __init__(self, folder: Path, fails: str = "", times: int = 1, away: str = "", nodes: int = 1):
        super().__init__()
        self.folder, self.fails, self.times, self.away, self.nodes = folder, fails, times, away, nodes

    def __call__(self, trials):
        import ray

        node = ray.get_runtime_context().get_node_id()
        place = self.folder / f"{time.time_ns()}-{os.getpid()}-{node}"
        place.write_text("\n".join(map(repr, trials)))
        if self.fails and node != self.away and self._first():
            if self.fails == "error":
                raise TadropedgeError("these trials are cursed")
            if self.fails == "memory":
                raise NotEnoughMemoryError("one training needs more memory than there is")
            if self.fails == "waits":
                (self.folder / "failed here").write_text(f"{os.getpid()} {node}")
                time.sleep(600)
            os.kill(os.getpid(), getattr(signal, self.fails))
        while node == self.away and not (self.folder / "failed 0").exists():
            time.sleep(0.01)
        while len({path.name.split("-")[2] for path in self.folder.glob("*-*-*")}) < self.nodes:
            time.sleep(0.01)
        return [outcome(one) for one in trials]

    def _first(self) -> bool:
        """Whether this is one of the first tries of any batch."""
        for number in range(self.times):
            with suppress(FileExistsError):
                (self.folder / f"failed {number}").touch(exist_ok=False)
                return True
        return False


def begun(folder):
    """What has been begun: (pid, node, trials)."""
    paths = sorted(path for path in folder.iterdir() if not path.name.startswith("failed"))
    return [(int(path.name.split("-")[1]), path.name.split("-")[2], path.read_text().splitlines()) for path in paths]


@contextmanager
def meanwhile(act):
    """Do something while the block runs."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(act)
        yield
        done.result()


def soon(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def waiting(folder):
    """The process and the node of the batch that waits for its end."""
    return soon(lambda: (folder / "failed here").exists() and (folder / "failed here").read_text().split())


def stored(path):
    """How many trials each study holds, and how many different ones."""
    base = open_storage(path)
    studies = [
        optuna.load_study(study_name=one.study_name, storage=base) for one in optuna.get_all_study_summaries(base)
    ]
    indices = [[trial.user_attrs["index"] for trial in study.get_trials()] for study in studies]
    return sum(map(len, indices)), sum(len(set(one)) for one in indices)


# -- the same rows ------------------------------------------------------------------------------------------------


@contextmanager
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def rows(engine, methods=("cdf", "jaccard-cdf:unbiased"), **settings):
    sizes = settings or {"hidden": 4}
    laboratory = laboratory_for(load_karate(), epochs=5, choose_splits=1, **sizes)
    plan = Plan(methods, trials=3, seeds=3)
    with one_thread(), training_with(engine):
        return compared(laboratory, plan, optuna.storages.InMemoryStorage()).rows


def test_the_same_rows_with_one_two_and_three_workers_and_without_ray(machines, monkeypatch):
    puts, put = [], ray.put
    monkeypatch.setattr(ray, "put", lambda value: puts.append(value) or put(value))
    expected = rows(Local(batch=4))
    for nodes in (1, 2, 3):
        machines.grow(nodes)
        assert rows(RayEngine(batch=4)) == expected
    assert len(puts) == 3  # data goes into the object store once
    for row, same in zip(rows(RayEngine()), expected, strict=True):  # batches of another size
        assert row.honest.mean == pytest.approx(same.honest.mean, abs=1e-5)
        np.testing.assert_allclose(row.convergence.val_loss, same.convergence.val_loss, atol=1e-5)


def test_the_workers_share_the_work_and_tell_how_far_they_are(several, tmp_path, undisturbed):
    told = []
    seen = tmp_path / "seen"
    seen.mkdir()
    with training_with(RayEngine(batch=1)), watching(told.append):
        assert compare(tmp_path / "study.db", Worker(seen, nodes=3)) == undisturbed
    assert stored(tmp_path / "study.db") == (TOTAL, TOTAL)
    trained = [trial for _, _, trials in begun(seen) for trial in trials]
    assert len(trained) == len(set(trained)) == TOTAL
    assert any(isinstance(event, Moment) for event in told)


# -- whoever dies -------------------------------------------------------------------------------------------------


def test_a_worker_that_is_killed_costs_its_batch(several, tmp_path, undisturbed, caplog):
    seen = tmp_path / "seen"
    seen.mkdir()

    def kill():
        os.kill(int(waiting(seen)[0]), signal.SIGKILL)

    with training_with(RayEngine(batch=2)), meanwhile(kill):
        assert compare(tmp_path / "study.db", Worker(seen, fails="waits")) == undisturbed
    assert "its worker died" in caplog.text
    assert stored(tmp_path / "study.db") == (TOTAL, TOTAL)
    trained = [trial for _, _, trials in begun(seen) for trial in trials]
    assert len(set(trained)) == TOTAL
    assert len(trained) == TOTAL + 2  # the batch that was lost


def test_a_node_that_is_lost_costs_its_batches(several, tmp_path, undisturbed, caplog):
    seen = tmp_path / "seen"
    seen.mkdir()
    head = several.cluster.head_node.node_id
    with training_with(RayEngine(batch=2)), meanwhile(lambda: several.lose(waiting(seen)[1])):
        assert compare(tmp_path / "study.db", Worker(seen, fails="waits", away=head)) == undisturbed
    assert "tried again" in caplog.text
    assert stored(tmp_path / "study.db") == (TOTAL, TOTAL)
    assert len({trial for _, _, trials in begun(seen) for trial in trials}) == TOTAL


def test_a_worker_that_hangs_past_the_deadline_costs_its_batch(several, tmp_path, undisturbed, caplog):
    seen = tmp_path / "seen"
    seen.mkdir()
    with training_with(RayEngine(batch=4, deadline=6, tries=5)):
        assert compare(tmp_path / "study.db", Worker(seen, fails="SIGSTOP")) == undisturbed
    assert "no sign of life for 6 s" in caplog.text
    assert stored(tmp_path / "study.db") == (TOTAL, TOTAL)


def test_a_worker_without_memory_costs_its_batch(several, tmp_path, undisturbed, caplog):
    with training_with(RayEngine(batch=8)):
        assert compare(optuna.storages.InMemoryStorage(), Worker(tmp_path, fails="memory")) == undisturbed
    assert "more memory than there is) and tried again" in caplog.text
    with (
        pytest.raises(NotEnoughMemoryError, match="one training needs more memory"),
        training_with(RayEngine(batch=64, tries=2)),
    ):
        compare(optuna.storages.InMemoryStorage(), Worker(tmp_path, fails="memory", times=99))


def test_a_batch_that_kills_every_worker_is_given_up(several, tmp_path):
    told = r"a batch of 20 trainings was lost 2 times on Ray \(its worker died\); what is finished is kept"
    with pytest.raises(TadropedgeError, match=told), training_with(RayEngine(batch=64, tries=2)):
        compare(optuna.storages.InMemoryStorage(), Worker(tmp_path, fails="SIGKILL", times=99))


def test_what_a_worker_refuses_is_refused_here(several, tmp_path):
    with pytest.raises(TadropedgeError, match=r"^these trials are cursed$"), training_with(RayEngine(batch=64)):
        compare(optuna.storages.InMemoryStorage(), Worker(tmp_path, fails="error"))


class Endless(Trainer):
    """The first batch is trained at once; the others say how far they are until they are told to leave."""

    def __init__(self, folder: Path):
        super().__init__()
        self.folder = folder

    def __call__(self, trials):
        with suppress(FileExistsError):
            (self.folder / "first").touch(exist_ok=False)
            return [outcome(one) for one in trials]
        (self.folder / "begun").touch()
        try:
            while True:
                tell(Moment(trainings=1, finished=0, together=1, epoch=0, epochs=1))
                time.sleep(0.01)
        finally:
            (self.folder / "left").touch()


def test_workers_leave_batches_that_nobody_waits_for(several, tmp_path):
    with training_with(RayEngine(batch=1)):
        found = crew().trained(Endless(tmp_path), [[Trial("dropedge", seed=seed)] for seed in range(2)])
        next(found)
        soon((tmp_path / "begun").exists)
        found.close()
        soon((tmp_path / "left").exists)


# -- what is sent -------------------------------------------------------------------------------------------------

PLUGIN = """
import torch
from helper_of_mine import half

def rule(weights):
    return half(weights / weights.max())

class Linear(torch.nn.Module):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.layer = torch.nn.Linear(num_features, num_classes)

    def forward(self, x, edge_index):
        return self.layer(x)
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module of the user's own that no worker can import."""
    (tmp_path / "module_of_mine.py").write_text(PLUGIN)
    (tmp_path / "helper_of_mine.py").write_text("def half(values):\n    return 0.5 * values\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("module_of_mine")
    for path in tmp_path.glob("*.py"):
        path.unlink()  # as on another machine
    tde.STRATEGIES["mine"] = module.rule
    yield module
    del tde.STRATEGIES["mine"]
    for name in ("module_of_mine", "helper_of_mine"):
        del sys.modules[name]


def test_rules_and_models_of_ones_own_reach_the_workers(several, mine):
    assert rows(RayEngine(batch=4), ["degree-mine"]) == rows(Local(batch=4), ["degree-mine"])
    name = own_network(mine.Linear)
    try:
        assert rows(RayEngine(), ["dropedge"], backbone=name) == rows(Local(), ["dropedge"], backbone=name)
    finally:
        del NETWORKS[name]


def test_what_cannot_be_sent_is_refused(several):
    lock = threading.Lock()
    with pytest.raises(TadropedgeError, match="cannot be sent to the workers of Ray"), training_with(RayEngine()):
        compare(optuna.storages.InMemoryStorage(), lambda trials: lock)


def test_settings_that_the_cluster_cannot_meet(several):
    with (
        pytest.raises(TadropedgeError, match="gpus_per_batch is 1, and no node of the Ray cluster has a GPU"),
        training_with(RayEngine(gpus_per_batch=1)),
    ):
        pass
    with pytest.raises(TadropedgeError, match="connected to Ray already"), training_with(RayEngine("auto")):
        pass


# -- the driver ---------------------------------------------------------------------------------------------------


def driver(folder, *words):
    command = "compare karate --methods cdf --trials 4 --choose-splits 1 --seeds 3 --hidden 4 --epochs 40 --batch 2"
    return subprocess.Popen(
        [sys.executable, "-m", "tadropedge", *command.split(), "--device", "cpu", "--out", "out", *words],
        cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip


def written(folder):
    """The trials that a driver has written."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(folder / "out" / "study.db")) as base:
        return base.execute("select count(*) from trials").fetchone()[0]
    return 0


def test_a_driver_that_is_stopped_and_killed_and_started_again(several, tmp_path):
    ray_there = ("--engine", "ray", "--address", several.address)
    first = driver(tmp_path, *ray_there)
    soon(lambda: written(tmp_path) >= 2)
    first.send_signal(signal.SIGINT)
    _, words = first.communicate(timeout=60)
    assert first.returncode == 130
    assert "stopped; " in words
    assert "Resume with: tadropedge compare karate" in words
    assert len(words.splitlines()) < 12, words  # Ray does not flood the terminal
    kept = written(tmp_path)
    second = driver(tmp_path, *ray_there)
    soon(lambda: written(tmp_path) > kept)
    second.kill()
    second.communicate(timeout=60)
    assert not (tmp_path / "out" / "results.json").exists()
    last = driver(tmp_path, *ray_there)
    _, words = last.communicate(timeout=100)
    assert last.returncode == 0, words
    alone = {"trials": 4, "choose_splits": 1, "seeds": 3, "hidden": 4, "epochs": 40, "device": "cpu"}
    with one_thread():
        tde.compare("karate", ["cdf"], **alone, engine=Local(batch=2), out=tmp_path / "alone" / "out")
    found, expected = (json.loads((one / "out" / "results.json").read_text()) for one in (tmp_path, tmp_path / "alone"))
    assert found["compare"] == expected["compare"]
    assert stored(tmp_path / "out" / "study.db") == stored(tmp_path / "alone" / "out" / "study.db")
    assert len(set(stored(tmp_path / "out" / "study.db"))) == 1
