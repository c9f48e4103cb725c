"""Bad inputs, damaged files, injected failures, and what tadropedge must do with each of them.

A section is one module with ``TRIES``, a line that says what it tries, and ``cases()``, which yields :class:`Case`
objects. ``make torture`` runs every case of every section and prints one table of tried and behaved;
``tests/test_torture.py`` runs a sample of each section in CI. A new section is one module and one line in ``SECTIONS``.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SECTIONS = ("arguments", "commands", "files", "fuzz", "memory", "pyg", "stores", "crashes", "kills", "statistics")
Place = tuple[str, int, int]  # a case: its section, its place there, the size of the sample (0: all)


@dataclass(frozen=True)
class Case:
    """One attack: ``check(folder)`` gets an empty folder and raises AssertionError where tadropedge misbehaved."""

    name: str
    check: Callable[[Path], None]


def cases(section: str) -> list[Case]:
    """Every case of a section, always in the same order."""
    found: Iterable[Case] = importlib.import_module(f"torture.{section}").cases()
    return list(found)


def sample(section: str, count: int) -> list[Case]:
    """``count`` cases spread evenly over a section, always the same."""
    every = cases(section)
    return [every[place * len(every) // count] for place in range(count)] if len(every) > count else every


def outcome(place: Place) -> tuple[str, str]:
    """The name of a case, and in words what went wrong with it, or nothing."""
    section, number, size = place
    case = _listed(section, size)[number]
    with tempfile.TemporaryDirectory() as folder:
        try:
            case.check(Path(folder))
        except Exception as error:
            return case.name, f"{type(error).__name__}: {error}"
    return case.name, ""


@cache
def _listed(section: str, size: int) -> list[Case]:
    return sample(section, size) if size else cases(section)
