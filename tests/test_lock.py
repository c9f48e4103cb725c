"""One writer per folder: who waits, who is told what, and what becomes of locks whose owner is dead."""

import json
import os
import re
import signal
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest
from torture.process import assert_refused, command, started

# What commands import is here before a child is forked, which need not do it again.
import tadropedge.comparison.report
import tadropedge.paper.reproduce
import tadropedge.score_report.write  # noqa: F401
from tadropedge import TadropedgeError, lock
from tadropedge.lock import NAME, Owner, check_writable, locked


@pytest.fixture
def flock(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(lock, "FLOCK", None)
    return request.param


def kinds(function):
    return pytest.mark.parametrize("flock", [True, False], ids=["flock", "no flock"], indirect=True)(function)


def until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def holding(folder, let_go=lambda: False):
    """A child that holds the lock of ``folder`` as soon as this returns, and until it should let go."""
    beside = folder.parent / "child"
    beside.mkdir(exist_ok=True)

    def hold():
        with locked(folder):
            (beside / "held").touch()
            until(let_go)

    running = started(hold, beside)
    until((beside / "held").exists)
    (beside / "held").unlink()
    return running


@kinds
def test_a_second_process_is_told_whom_it_would_wait_for(flock, tmp_path):
    running = holding(tmp_path / "out")
    words = f"'{tmp_path / 'out'}' is in use by process {running.pid} on {os.uname().nodename} (since "
    try:
        with pytest.raises(TadropedgeError, match=re.escape(words)) as caught, locked(tmp_path / "out"):
            pass
        assert "--wait" in str(caught.value)
        assert "\n" not in str(caught.value)
    finally:
        os.kill(running.pid, signal.SIGKILL)
        running.wait()


@kinds
def test_waiting_ends_when_the_other_process_does(flock, tmp_path):
    told, said = tmp_path / "told", []
    running = holding(tmp_path / "out", told.exists)
    with locked(tmp_path / "out", wait=True, say=lambda line: (said.append(line), told.touch())):
        assert running.wait().code == 0
        (tmp_path / "out" / "mine").touch()
    assert len(said) == 1
    assert said[0].startswith(f"waiting for process {running.pid} on ")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


@kinds
def test_the_lock_of_a_killed_process_is_taken_over(flock, tmp_path):
    running = holding(tmp_path / "out")
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert (tmp_path / "out" / NAME).exists()
    with locked(tmp_path / "out"):
        assert json.loads((tmp_path / "out" / NAME).read_bytes())["pid"] == os.getpid()
    assert list((tmp_path / "out").iterdir()) == []


@kinds
def test_of_many_who_find_a_dead_lock_one_at_a_time_gets_it(flock, tmp_path):
    """Each adds 1 to a number that it reads, waits, and writes."""
    out, count = tmp_path / "out", tmp_path / "count"
    out.mkdir()
    (out / NAME).write_text(json.dumps(asdict(Owner(born="long ago"))))
    count.write_text("0")

    def add():
        with locked(out, wait=True):
            before = int(count.read_text())
            time.sleep(0.01)
            count.write_text(str(before + 1))

    running = []
    for number in range(12):
        (tmp_path / str(number)).mkdir()
        running.append(started(add, tmp_path / str(number)))
    for each in running:
        ended = each.wait()
        assert ended.code == 0, ended
    assert count.read_text() == "12"
    assert list(out.iterdir()) == []


def test_a_child_does_not_keep_the_lock_of_its_dead_parent(tmp_path):
    out, number = tmp_path / "out", tmp_path / "number"

    def parent():
        with locked(out):
            child = os.fork()
            if child == 0:
                time.sleep(60)
            number.write_text(str(child))
            time.sleep(60)

    (tmp_path / "parent").mkdir()
    running = started(parent, tmp_path / "parent")
    until(lambda: number.exists() and number.read_text())
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    try:
        with locked(out):
            pass
    finally:
        os.kill(int(number.read_text()), signal.SIGKILL)


def test_a_number_that_was_given_to_another_process_fools_nobody():
    assert Owner(pid=1).alive() is False  # it is there, but was not born when we were
    assert Owner(pid=2**22 + 1).alive() is False
    assert Owner(pid=2**70).alive() is False


@kinds
def test_a_lock_from_another_machine_is_left_alone(flock, tmp_path):
    (tmp_path / NAME).write_text(json.dumps(asdict(Owner(pid=7, host="far", place="far away"))))
    words = rf"process 7 on far .*if it no longer runs, delete '{re.escape(str(tmp_path / NAME))}'"
    with pytest.raises(TadropedgeError, match=words), locked(tmp_path):
        pass
    (tmp_path / NAME).unlink()
    with locked(tmp_path):
        pass


@kinds
@pytest.mark.parametrize("rubbish", [b"", b"\0" * 9000, b"{", b"[]", b'{"pid": "x"}', b'{"host": 3}', b"\xff"])
def test_rubbish_in_a_lock_file_is_taken_over(flock, rubbish, tmp_path):
    (tmp_path / NAME).write_bytes(rubbish)
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_folders_into_which_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / NAME).mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / NAME).symlink_to(tmp_path / "elsewhere")
    places = ("file", "file/inside", "held", "linked", "nul\0", "long" * 2000, "x/" * 3000)
    for place in (*(tmp_path / place for place in places), Path("/proc/nothing"), Path("/dev/null")):
        for attempt in (locked(place).__enter__, partial(check_writable, place)):
            if isinstance(attempt, partial) and place.name in ("held", "linked"):
                continue  # only the lock is in the way
            with pytest.raises(TadropedgeError, match=r"^cannot write into the folder '") as caught:
                attempt()
            assert "\n" not in str(caught.value)
            assert len(str(caught.value)) < 400
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "held", "linked"]


def test_a_folder_that_was_made_and_stays_empty_is_removed(tmp_path):
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "a" / "b"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with locked(tmp_path / "a" / "b"):
        (tmp_path / "a" / "file").touch()
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["file"]


def test_targets_that_cannot_be_written(tmp_path):
    (tmp_path / "results.json").mkdir()
    (tmp_path / "figures").touch()
    with pytest.raises(TadropedgeError, match=r"results.json' is a folder, and a file must be written there"):
        locked(tmp_path, "results.json").__enter__()
    with pytest.raises(TadropedgeError, match=r"figures/?' is a file, and a folder must be written there"):
        locked(tmp_path, "figures/").__enter__()


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(TadropedgeError, match="the disk is full"):
        locked(tmp_path / "out").__enter__()


COMMANDS = {
    "compare": "compare karate --trials 1 --seeds 2 --epochs 2 --out out",
    "train": "train karate --epochs 2 --out out",
    "weights": "weights karate --no-figures --out out",
    "reproduce": "reproduce fig1 --out out",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_refuses_a_folder_in_use_and_one_that_cannot_be(name, tmp_path):
    arguments = COMMANDS[name].split()
    (tmp_path / "out").mkdir()
    with locked(tmp_path / "out"):
        assert_refused(command(arguments, tmp_path), f"process {os.getpid()} on {os.uname().nodename}", "--wait")
    assert list((tmp_path / "out").iterdir()) == []
    (tmp_path / "out").rmdir()
    (tmp_path / "out").write_text("in the way")
    assert_refused(command(arguments, tmp_path), "cannot write into the folder 'out': it is a file")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_nothing_is_loaded_before_the_folder_is_checked(tmp_path):
    def prepare():
        import tadropedge.data

        def never(*_, **__):
            raise AssertionError("a dataset was loaded")

        tadropedge.data.load_dataset = never

    (tmp_path / "out").write_text("in the way")
    for name in ("compare", "train", "weights"):
        assert_refused(command(COMMANDS[name].split(), tmp_path, prepare=prepare), "it is a file")
    line = "compare karate --seeds 2 --storage out/study.db --out other"
    assert_refused(command(line.split(), tmp_path, prepare=prepare), "out", "it is a file")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_command_waits_and_then_does_its_work(tmp_path):
    words = tmp_path / ".torture-err"
    running = holding(tmp_path / "out", lambda: words.exists() and "waiting" in words.read_text())
    ended = command([*COMMANDS["train"].split(), "--wait"], tmp_path)
    assert ended.code == 0, ended
    assert ended.err.startswith(f"waiting for process {running.pid} on ")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"model.json", "model.safetensors"}
    assert running.wait().code == 0


def test_ctrl_c_ends_the_waiting(tmp_path):
    (tmp_path / "out").mkdir()

    def wait():
        with locked("out", wait=True, say=lambda line: Path("said").touch()):
            return 1

    with locked(tmp_path / "out"):
        running = started(wait, tmp_path)
        until((tmp_path / "said").exists)
        os.kill(running.pid, signal.SIGINT)
        assert "KeyboardInterrupt" in running.wait().err
