"""Signals at any moment: what was finished is kept, the same command gives the same bits, Ctrl-C says so."""

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from torture import jobs
from torture.process import FULL, Child, command

GOLDEN = 0.6180339887498949  # multiples of it, without their whole parts, are spread evenly and in no order
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
COUNTS = {"compare": (6, 90), "train": (4, 60), "weights": (3, 30)}
CASES = [
    (job, SIGNALS[place % len(SIGNALS)], round((place + 1) * GOLDEN % 1.0, 4))
    for job, counts in COUNTS.items()
    for place in range(counts[FULL])
]


@pytest.mark.parametrize(("job", "number", "moment"), CASES)
def test_a_signal_at_any_moment_loses_nothing(job, number, moment, tmp_path):
    jobs.begin(job, tmp_path)
    seconds = moment * jobs.whole(job).seconds
    child = Child(jobs.COMMANDS[job].split(), tmp_path, jobs.prepare)
    time.sleep(seconds)
    while number != signal.SIGKILL and not handles(child.pid, number):
        time.sleep(0.001)
    os.kill(child.pid, number)
    ended = child.wait()
    assert ended.code in ((-9, 0) if number == signal.SIGKILL else (130, 0)), ended
    jobs.check_resumed(job, tmp_path, jobs.check_disturbed(job, ended, tmp_path))


def handles(process, number):
    """Whether the command line runs, or has run: before, a signal ends any Python."""
    try:
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    except (OSError, ValueError):
        return True
    return bool(int(status.get("SigCgt", "ffff"), 16) >> (number - 1) & 1) or "Z" in status["State"]


def test_impatience_changes_nothing(tmp_path):
    jobs.begin("compare", tmp_path)
    for moment in (0.2, 0.5, 0.8):
        child = Child(jobs.COMMANDS["compare"].split(), tmp_path, jobs.prepare)
        while not handles(child.pid, signal.SIGINT):
            time.sleep(0.001)
        time.sleep(moment * jobs.whole("compare").seconds)
        for _ in range(5):
            os.kill(child.pid, signal.SIGINT)
            time.sleep(0.003)
        ended = child.wait()
        assert ended.code in (130, 0), ended
        assert "Traceback" not in ended.err, ended
    jobs.check_resumed("compare", tmp_path, checkpoints=False)


@pytest.mark.parametrize("file", ["report.html", "results.csv", "results.json"])
def test_an_interruption_while_pages_are_written(file, tmp_path):
    def interrupt():
        replaced = os.replace

        def replace(first, second):
            if str(second).endswith(file):
                os.kill(os.getpid(), signal.SIGINT)
            return replaced(first, second)

        os.replace = replace

    jobs.begin("compare", tmp_path)
    ended = jobs.run("compare", tmp_path, interrupt)
    assert ended.code == 130, ended
    assert ended.lines[-1].startswith("stopped"), ended
    assert "out" in ended.lines[-1]
    jobs.check_resumed("compare", tmp_path, jobs.check_disturbed("compare", ended, tmp_path))


@pytest.mark.parametrize("job", ["compare", "train"])
def test_at_most_a_minute_of_training_is_lost(job, tmp_path):
    """An epoch takes ten seconds by the clock of the child, which is killed after each of some."""
    words = jobs.COMMANDS[job].replace("--epochs 3", "--epochs 24").replace("--epochs 12", "--epochs 24")

    def slowly(dies):
        from tadropedge.lab.training import callbacks

        default = callbacks.Checkpoint.__init__.__defaults__
        jobs.prepare()
        callbacks.Checkpoint.__init__.__defaults__ = default
        clock, noted = [0.0], callbacks.Checkpoint.epoch
        callbacks.time = SimpleNamespace(monotonic=lambda: clock[0])

        def epoch(checkpoint, run):
            clock[0] += 10.0
            noted(checkpoint, run)
            if run.epoch == dies:
                os.kill(os.getpid(), signal.SIGKILL)

        callbacks.Checkpoint.epoch = epoch

    assert command(words, tmp_path, lambda: slowly(17)).code == -9
    assert jobs.epochs(tmp_path) == list(range(1, 18))
    assert command(words, tmp_path, lambda: slowly(23)).code == -9
    first, *_, last = jobs.epochs(tmp_path)
    assert first > 17 - 6
    assert last == 23
    assert command(words, tmp_path, lambda: slowly(None)).code == 0
    assert jobs.epochs(tmp_path)[0] > 23 - 6
    interrupted = jobs.results(tmp_path)
    (tmp_path / "out").rename(tmp_path / "before")
    assert command(words, tmp_path, jobs.prepare).code == 0
    assert interrupted == jobs.results(tmp_path)
