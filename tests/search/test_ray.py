"""A real Ray of two workers on this machine: the same rows as here, whoever dies, and nothing that others can reach."""

import importlib
import importlib.util
import os
import signal
import sys

import psutil
import pytest
from search.made import candidates, experiment, plain

from tadropedge import RULES, TadropedgeError
from tadropedge.lab import Search, Store, Trial
from tadropedge.lab.search.executors import opened
from tadropedge.lab.search.protocol import nested
from tadropedge.lab.search.ray import Ray
from tadropedge.lab.training.trial import Outcome

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="the extra ray is not installed"),
    pytest.mark.filterwarnings("ignore"),  # of Ray: sockets and processes that it leaves to the system
]
LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


@pytest.fixture(scope="module")
def ray():
    with Ray(workers=2) as workers:
        yield workers


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A rule of the user's own, in a file that no worker can import."""
    (tmp_path / "rules_of_mine.py").write_text("def cubed(scores):\n    return (scores / scores.max()) ** 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    RULES["cubed"] = importlib.import_module("rules_of_mine").cubed
    (tmp_path / "rules_of_mine.py").unlink()
    yield "degree-cubed"
    del RULES["cubed"], sys.modules["rules_of_mine"]


@pytest.mark.parametrize("address", ["127.0.0.1:9", "nowhere.invalid:6379", "ray://head:10001", "head", "a..b:70000"])
def test_where_nobody_answers(address):
    with pytest.raises(TadropedgeError, match=r"address|answers"), opened("ray", address):
        pass


def test_the_same_rows_as_here(ray, mine, tmp_path):
    every, search = candidates("original", "cdf", mine, "auto"), Search(trials=4, replicates=3)
    of = experiment(training={"rungs": (2, 4)})
    here = nested(every, of, search)
    with Store(tmp_path) as store:
        there = nested(every, of, search, store, ray)
        assert plain(there) == plain(here)
        assert plain(nested(every, of, search, store)) == plain(here)  # this process has written every row


class Cursed:
    """Dies at the first try where the seed is 1, and raises where it is 7."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, trials):
        number = trials[0].seed
        (self.folder / f"{number}-{os.getpid()}").touch()
        if number == 1 and len(list(self.folder.glob("1-*"))) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 7:
            raise TadropedgeError("these trials are cursed")
        return [Outcome(trial=trial, curves={}, best_epoch=0) for trial in trials]


def batches(*seeds):
    return [[Trial(candidate=candidates("original")[0], seed=seed)] for seed in seeds]


def test_a_worker_that_dies_costs_its_batch_and_an_error_arrives_as_it_was(ray, tmp_path):
    found = dict(ray.map(Cursed(tmp_path), batches(*range(6))))
    assert {number: [one.trial.seed for one in outcomes] for number, outcomes in found.items()} == {
        number: [number] for number in range(6)
    }
    assert sorted(path.name[0] for path in tmp_path.iterdir()) == list("0112345")
    with pytest.raises(TadropedgeError, match=r"^these trials are cursed$"):
        list(ray.map(Cursed(tmp_path), batches(7)))


def test_nothing_listens_beyond_this_machine(ray):
    ours = psutil.Process().children(recursive=True)
    listening = [
        one.laddr.ip for process in ours for one in process.net_connections("inet") if one.status == psutil.CONN_LISTEN
    ]
    assert listening
    assert set(listening) <= LOOPBACK


def test_what_cannot_be_sent(ray):
    with pytest.raises(TadropedgeError, match="sent"):
        list(ray.map(Cursed(sys.stdout), batches(0)))
    with pytest.raises(TadropedgeError, match="connected"), Ray("auto"):
        pass
    with pytest.raises(TadropedgeError, match="engine"), opened("cloud"):
        pass
