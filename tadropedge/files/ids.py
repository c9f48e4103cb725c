"""What the nodes of a file are called, and the numbers they get: in increasing or alphabetical order."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tadropedge.errors import TadropedgeError, show
from tadropedge.files.contents import Array
from tadropedge.files.header import MISSING

INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")  # Python reads no more digits
ARROWS = ("->", "<-", "--", "<->", "=>")
# As people and programs also write numbers, perhaps with a comment behind.
ODD_NUMBER = re.compile(r"[+-]?(?=[.,_' ]*\d)[\d.,_' ]+([eE][+-]?\d+)?(\s*#.*)?")


class Numbering(dict[str, int]):
    """Numbers for names, as they come.

    >>> numbering = Numbering()
    >>> numbering["b"], numbering["a"], numbering["b"]
    (0, 1, 0)
    """

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self)
        return number


def number_ids(names: Sequence[str], where: Callable[[str], str]) -> tuple[tuple[Any, ...], Array]:
    """The ids in order, and the place among them of each name; ``where`` says of a name where it stands, for errors.

    Where all names are whole numbers, ids are integers (``007`` and ``+7`` are 7); otherwise they are the names.

    >>> number_ids(["10", "9", "009"], lambda name: "edges.csv:1")
    ((9, 10), array([1, 0, 0]))
    """
    called = [name.strip() for name in names]
    for raw, name in zip(names, called, strict=True):
        if not name:
            raise TadropedgeError(f"{where(raw)}: empty node id")
        if "\0" in name or name in ARROWS:
            raise TadropedgeError(f"{where(raw)}: {show(name, typed=False)} is no name of a node")
    ids: list[Any] = called
    plain = [INTEGER.fullmatch(name) is not None for name in called]
    if all(plain):
        ids = [int(name) for name in called]
    elif any(plain) and all(map(is_number, called)):
        raw = next(raw for raw, is_plain in zip(names, plain, strict=True) if not is_plain)
        raise TadropedgeError(f"{where(raw)}: the node id {show(raw, typed=False)} is no plain integer, unlike others")
    ordered = tuple(sorted(set(ids)))
    place = {each: number for number, each in enumerate(ordered)}
    return ordered, np.array([place[each] for each in ids], dtype=np.int64)


def is_number(name: str) -> bool:
    """Whether people or programs may mean a number, or a missing one, by a name.

    >>> is_number("1_000"), is_number("٣"), is_number("NaN"), is_number("3rd")
    (True, True, True, False)
    """
    return name.lower() in MISSING or ODD_NUMBER.fullmatch(name) is not None
