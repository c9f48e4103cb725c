"""Bad options and arguments on the command line: one clear line, exit code 2, nothing written."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from torture import Case
from torture.process import assert_refused, command

TRIES = "bad options and arguments of every command"

WRONG = {
    "compare karate --seeds 1": ["seeds", "1"],
    "compare karate --seeds 0": ["seeds", "0"],
    "compare karate --seeds -2": ["seeds", "-2"],
}


def cases() -> Iterator[Case]:
    """Every line of ``WRONG``."""
    for line, words in WRONG.items():
        yield Case(line, partial(refused, line.split(" "), words))


def refused(arguments: list[str], words: list[str], folder: Path) -> None:
    """The command is refused, and nothing is written."""
    assert_refused(command(arguments, folder), *words)
    assert list(folder.iterdir()) == []
