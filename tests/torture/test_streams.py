"""Odd numbers, streams, variables and files of options: one line and exit code 2 within seconds."""

import os
import socket
import sys
from datetime import timedelta

import pytest
from torture import jobs
from torture.process import command, refused

DIGITS = "1" * 5000
SOON = 20.0  # seconds

NUMBERS = [
    *(f"compare karate --{name} {DIGITS}" for name in ("trials", "replicates", "epochs", "per-class", "time-budget")),
    f"compare karate --add-edges {DIGITS}",
    f"compare karate --hidden {'9' * 18}",
    f"compare karate --methods dropedge@{DIGITS}",
    f"train karate --seed -{DIGITS}",
    f"train karate --learning-rate {DIGITS}",
    f"train karate --batch-size 4 --fanout {DIGITS}",
    f"train karate --settings batch_norm={DIGITS}",
    f"sparsify karate --keep-ratio {DIGITS}",
]
OPTIONS = {
    "train = 5": "train",
    "[[train]]": "train",
    "[train]\nepochs = {a = 1}": "epochs",
    f"[train]\nepochs = {DIGITS}": "options.toml",
    f"[train]\nepochs = '{DIGITS}'": "epochs",
    "train.train.train = 1": "train",
    "x = " + "[" * 100_000: "options.toml",
}


@pytest.mark.parametrize("words", [*NUMBERS, *OPTIONS], ids=lambda words: words[:40])
def test_a_number_of_thousands_of_digits_or_options_that_make_no_sense(words, tmp_path):
    (tmp_path / "options.toml").write_text(words)
    told = words in OPTIONS
    ended = command("train karate --config options.toml" if told else words, tmp_path)
    refused(ended, OPTIONS[words] if told else "")
    assert ended.seconds < SOON


@pytest.mark.parametrize("job", ["compare", "train", "weights"])
@pytest.mark.parametrize("way", ["closed", "full", "closed at the end", "full at the end"])
def test_an_output_that_is_closed_or_full(job, way, tmp_path):
    """What is known before the work is said before; what was done is kept, though it cannot be printed."""

    def spoil():
        reader, writer = os.pipe() if way.startswith("closed") else (0, os.open("/dev/full", os.O_WRONLY))
        os.close(reader)
        os.dup2(writer, 1)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115

    def later():
        from tadropedge.cli import compare, train, weights

        show = train.show
        for module in (compare, train, weights):
            module.show = lambda *given: (spoil(), show(*given))

    jobs.begin(job, tmp_path)
    ended = jobs.run(job, tmp_path, later if "end" in way else spoil)
    refused(ended, "full" if way == "full at the end" else "output")
    if "end" in way:
        assert jobs.results(tmp_path) == jobs.whole(job).files
    elif way == "full":
        assert not (tmp_path / "out").exists()


PLACES = {
    "nowhere": {"MASTER_ADDR": "nowhere.invalid"},
    "a closed port": {},
    "a port out of range": {"MASTER_PORT": "99999"},
    "no port": {"MASTER_PORT": DIGITS},
    "no rank": {"RANK": "first"},
    "first, alone": {"RANK": "0"},
}


@pytest.mark.parametrize("place", PLACES)
def test_a_place_of_torchrun_where_nobody_is(place, tmp_path):
    with socket.socket() as free:  # nobody listens where this was
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])

    def prepare():
        from tadropedge.lab.training import ranks

        ranks.PATIENCE = timedelta(seconds=2)  # 20 otherwise
        given = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        os.environ.update(given | PLACES[place])

    ended = command("train karate --epochs 2 --batch-size 8 --out out", tmp_path, prepare)
    refused(ended)
    assert ended.seconds < SOON
    assert not (tmp_path / "out").exists()
