"""What every room stands on: files that are written whole, what is found again, memory, fingerprints, errors."""

import errno
import logging
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from tadropedge import NotEnoughMemoryError, TadropedgeError, certify, edge_scores, keep_probabilities, sample_edges
from tadropedge._support import memory
from tadropedge._support.atomic import HOST, atomic, write_atomic
from tadropedge._support.cache import cached
from tadropedge._support.fingerprint import fingerprint
from tadropedge._support.memory import check_memory, free_bytes, within_memory
from tadropedge._support.progress import Progress
from tadropedge.lab import Search, Store
from tadropedge.testing.graphs import ZOO, weighted

# -- files ------------------------------------------------------------------------------------------------


def test_a_file_is_there_whole_or_as_it_was(tmp_path):
    path = tmp_path / "new" / "deep" / "file"
    write_atomic(path, b"before")
    with pytest.raises(ZeroDivisionError), atomic(path) as stream:
        stream.write(b"after" * (1 // 0))
    assert [(each.name, each.read_bytes()) for each in path.parent.iterdir()] == [("file", b"before")]
    with atomic(path) as stream:
        stream.write(b"after")
        assert path.read_bytes() == b"before"
    assert path.read_bytes() == b"after"


@pytest.mark.parametrize(
    ("number", "words"), [(errno.ENOSPC, "disk is full"), (errno.EROFS, "read-only"), (errno.EIO, "Input/output error")]
)
def test_why_a_file_cannot_be_written_is_one_line(number, words, tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomic(path, b"before")

    def fails(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(TadropedgeError, match=words):
        write_atomic(path, b"after")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("file", b"before")]


def test_content_and_name_reach_the_disk_in_that_order(tmp_path, monkeypatch):
    seen, (sync, move) = [], (os.fsync, os.replace)
    monkeypatch.setattr(os, "fsync", lambda number: (seen.append(os.fstat(number).st_ino), sync(number)))
    monkeypatch.setattr(os, "replace", lambda one, other: (seen.append("moved"), move(one, other)))
    path = write_atomic(tmp_path / "folder" / "file", b"content")
    folders = [each.stat().st_ino for each in (tmp_path, path.parent)]
    assert seen == [folders[0], path.stat().st_ino, "moved", folders[1]]


def test_what_the_dead_left_is_removed_and_nothing_else(tmp_path):
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    names = [(HOST, ended.pid), (HOST, os.getpid()), ("elsewhere", ended.pid)]
    dead, *others = [tmp_path / f".{number}.{host}.{process}.tmp" for number, (host, process) in enumerate(names)]
    for path in (dead, *others):
        path.touch()
    write_atomic(tmp_path / "file", b"content")
    assert sorted(tmp_path.iterdir()) == sorted((*others, tmp_path / "file"))


# -- what is found again ----------------------------------------------------------------------------------


def test_an_answer_is_found_by_all_that_decides_it_and_nothing_else(tmp_path):
    computed = []

    def compute():
        computed.append(1)
        return {"answer": np.arange(3.0)}

    for key in ({"q": 1}, {"q": 1}, {"q": 1.0}, {"q": 2}, {"q": 1}):
        assert cached(tmp_path, key, compute)["answer"].tolist() == [0, 1, 2]
    assert len(computed) == len(list(tmp_path.iterdir())) == 3
    cached(None, {"q": 1}, compute)
    assert len(computed) == 4


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "other numbers"])
def test_a_damaged_entry_is_computed_again(damage, tmp_path, caplog):
    settings = {"q": 3, "cache_dir": tmp_path}
    expected = edge_scores(ZOO["karate"], **settings)
    (entry,) = tmp_path.iterdir()
    content = entry.read_bytes()
    middle = content.index(b"scores.npy") + 300
    if damage == "other numbers":
        np.savez(entry, scores=np.ones(78), checksum=np.zeros(32, np.uint8))
    else:
        flipped = content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]
        entry.write_bytes({"cut": content[:middle], "flipped": flipped, "empty": b""}[damage])
    with caplog.at_level(logging.WARNING, logger="tadropedge"):
        assert torch.equal(edge_scores(ZOO["karate"], **settings), expected)
    assert "damaged" in caplog.text
    caplog.clear()
    assert torch.equal(edge_scores(ZOO["karate"], **settings), expected)
    assert not caplog.text


@pytest.mark.filterwarnings("ignore::tadropedge.RepeatedEigenvalueWarning")
def test_every_setting_of_a_score_has_entries_of_its_own(tmp_path):
    calls = [
        {"q": 3},
        {"desired_clusters": 3},
        {"q": 3, "laplacian": "normalized"},
        {"q": 3, "tolerance": 1e-6},
        {"score": "effective"},
        {"score": "effective", "method": "sketch"},
        {"score": "effective", "seed": 1},
        {"score": "effective", "relative_error": 0.2},
    ]
    for graph in (ZOO["karate"], weighted(ZOO["karate"])):
        for given in calls:
            assert torch.equal(edge_scores(graph, cache_dir=tmp_path, **given), edge_scores(graph, **given))
    assert len(list(tmp_path.iterdir())) == 2 * len(calls)


# -- fingerprints -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    x: int
    y: float = 0.0


@dataclass(frozen=True)
class Other:
    x: int
    y: float = 0.0


def test_what_differs_has_another_fingerprint():
    one = torch.arange(6.0).reshape(2, 3)
    values = [
        None, 0, False, 0.0, -0.0, "0", b"0", [], [0], [[0]], [0, 0], {}, {"a": 0}, {0: "a"}, {1}, {1, 2},
        one, one.T, one.double(), one.flatten(), one.long(), one.bfloat16(), one.to_sparse_csr(), one.to_sparse_coo(),
        one.numpy(), one.numpy().T, one.numpy().astype("f8"), np.array("a"), np.array(["a"]), np.float32(1), 1.0,
        torch.float32, torch.device("cpu"), Point(1), Point(1, 1.0), Other(1), Point, Other, fingerprint, cached,
    ]  # fmt: skip
    assert len({fingerprint(value=value) for value in values}) == len(values)
    assert fingerprint(value=1) != fingerprint(other=1)
    assert fingerprint(a=[1, 2], b=[]) != fingerprint(a=[1], b=[2])


def test_what_is_the_same_has_the_same_fingerprint():
    """Order, memory and the kind of a sequence do not count."""
    one = np.arange(12.0).reshape(3, 4)
    for same in (
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1} | {"b": 2}),
        ([1, "x"], (1, "x"), [1, "x"]),
        (one, np.asfortranarray(one), one.astype(">f8")),
        (torch.from_numpy(one), torch.from_numpy(one.T.copy()).T, torch.from_numpy(np.stack((one, one), 2))[:, :, 0]),
        (float("nan"), -float("nan"), float("nan")),
        (torch.ones(2).conj(), torch.ones(2), torch.ones(2).neg().neg()),
    ):
        assert len({fingerprint(value=value) for value in same}) == 1


def test_what_cannot_be_seen_is_refused():
    for value in (object(), np.array([object()]), torch.ones(1, device="meta"), iter([])):
        with pytest.raises(TadropedgeError, match="cannot be fingerprinted"):
            fingerprint(mine=[value])


def test_ones_own_function_is_its_file(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for number, text in enumerate(("def score(graph): return 1", "def score(graph): return 2")):
        (tmp_path / f"mine_{number}.py").write_text(text)
        module = __import__(f"mine_{number}")
        module.score.__module__ = "mine"  # one name, two files
        monkeypatch.setitem(sys.modules, "mine", module)
        found.append(fingerprint(score=module.score))
    assert found[0] != found[1]


# -- memory, progress, values -----------------------------------------------------------------------------


def test_work_that_cannot_fit_is_refused_before_it_begins(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 2**30)
    check_memory(2**30, "a table")
    with pytest.raises(NotEnoughMemoryError, match=r"about 1\.1 GB .*; take less"):
        check_memory(2**30 + 1, "a table", "take less")


def test_running_out_of_memory_is_one_line_and_nothing_else_is_hidden():
    for error in (MemoryError(), torch.OutOfMemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")):
        with pytest.raises(NotEnoughMemoryError, match="for a table"), within_memory("a table"):
            raise error
    with pytest.raises(RuntimeError, match="singular"), within_memory("a table"):
        raise RuntimeError("singular")


def test_a_control_group_is_a_limit(tmp_path, monkeypatch):
    """Of a container with 1 GB, 0.75 of which is taken, 0.25 is free."""
    for name, number in (("memory.max", 2**30), ("memory.current", 3 * 2**28)):
        (tmp_path / name).write_text(f"{number}\n")
    monkeypatch.setattr(memory, "GROUPS", tmp_path)
    assert free_bytes() <= 2**28


def test_progress_never_falls_back_or_runs_over():
    seen = []
    with Progress("work", 10, lambda done, total: seen.append((done, total))) as bar:
        bar.advance(2)
        with bar.step(8) as report:
            for share in (0.5, 0.25, 7.0, -1.0):
                report(share)
    assert seen[0] == (2, 10)
    assert seen[-1] == (10, 10)
    assert sorted(seen) == seen
    assert (6, 10) in seen
    with pytest.raises(TadropedgeError, match="progress must be"):
        Progress("work", 10, "yes")


def test_an_error_is_one_line_wherever_it_goes():
    error = TadropedgeError("bad\nname\x00", argument="name")
    assert str(error) == r"bad\nname\x00"
    assert pickle.loads(pickle.dumps(error)).argument == "name"


@pytest.mark.parametrize(
    ("call", "good", "bad"),
    [
        (lambda value: Search(trials=value), [1, 9, np.int8(3), torch.tensor(3)], [0, 2.0, True, "3", 2**64]),
        (lambda value: sample_edges(torch.ones(1), value), [-(2**63), 2**64 - 1], [2**64, -(2**63) - 1, 0.5]),
        (
            lambda value: keep_probabilities([0.5, 2], keep_prob=value),
            [0, 1, 0.5, np.float32(0.5), torch.tensor(0.5)],
            [-1e-9, 1.1, float("nan"), True, "0", [0.5], 10**400],
        ),
        (lambda value: certify(ZOO["karate"], value), [ZOO["karate"]], [None, "karate"]),
        (Store, [], [7, "", "a\0b", None]),
        (
            lambda value: keep_probabilities(value, keep_prob=0.5),
            [[1, 2], [0.5], np.arange(3, dtype=np.uint8), torch.tensor([1, 2])],
            [[True], ["a"], [[1], [1, 2]], [1j], torch.ones(2).bool(), torch.ones(2).to_sparse(), [10**30]],
        ),
    ],
)
def test_values_are_taken_where_they_are_right_and_refused_in_one_line_elsewhere(call, good, bad):
    for value in good:
        call(value)
    for value in bad:
        with pytest.raises(TadropedgeError) as caught:
            call(value)
        assert "\n" not in str(caught.value)
