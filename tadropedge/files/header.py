"""Whether the first line of a table names its columns: one rule for edge lists and for tables of nodes."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

PAIRS = (
    ("source", "target"),
    ("src", "dst"),
    ("from", "to"),
    ("u", "v"),
    ("node1", "node2"),
    ("node_1", "node_2"),
    (":start", ":end"),  # Neo4j
)
WEIGHTS = ("weight", "weights", "edge_weight", "w", "value")
EDGE_WORDS = frozenset({*(word for pair in PAIRS for word in pair), *WEIGHTS})

NUMBER = re.compile(r"[+-]?([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][+-]?[0-9]+)?")
NUMBER_LIKE = re.compile(r"[+-]?[.,_]?\d")  # \d: the digits of every script
MISSING = {"", "-", "?", "na", "n/a", "nan", "none", "null", "inf", "+inf", "-inf"}


def has_header(
    first: Sequence[str],
    below: Sequence[Sequence[str]],
    *,
    ends: int = 2,
    words: Collection[str] = EDGE_WORDS,
) -> bool | None:
    """Whether the line ``first`` names the columns of the lines ``below`` it; ``None`` where that cannot be told.

    A column is numeric where all cells below are numbers or missing. The first ``ends`` columns hold ids, which may
    recur; ``words`` are known names of columns, with or without ``_id``, in any case. A name is a word that does not
    begin like a number. The first row of this table that fits decides:

    ===============================================================  ============================
    the first line has                                               then it is
    ===============================================================  ============================
    a name above a numeric column, and above another no name         a header if such names are all known, else unclear
    a name above a numeric column                                    a header, unless an id recurs: unclear
    a number above a numeric column, or above nothing                a line of data; unclear if another is like ``2nd``
    two known words, or known words alone                            a header, unless one of them recurs: unclear
    an id that recurs                                                a line of data
    anything else                                                    unclear
    ===============================================================  ============================

    So ``0,1`` above integers is an edge: where it names columns, say ``header=True``.

    >>> has_header(["user", "friend"], [["7", "8"]]), has_header(["7", "8"], [["8", "9"]])
    (True, False)
    >>> has_header(["ann", "bob"], [["bob", "eve"]]), has_header(["user_a", "user_b"], [["bob", "eve"]])
    (False, None)
    """
    columns = list(zip(*below, strict=True)) or [()] * len(first)
    if all(map(NUMBER.fullmatch, first)) and any(map(_is_numeric, columns)):  # a line of data, whatever else there is
        return False
    numeric = [_is_numeric(column) for column in columns]
    above = [cell for cell, number in zip(first, numeric, strict=True) if number or not below]
    names = [cell for cell in above if _is_name(cell)] if below else []
    numbers = [cell for cell in above if NUMBER.fullmatch(cell)]
    odd = [cell for cell in above if below and NUMBER_LIKE.match(cell) and cell not in numbers]
    recurs = any(cell in column for cell in first[:ends] for column in columns[:ends])
    if names:
        return True if not recurs and (not numbers + odd or all(is_known(name, words) for name in names)) else None
    if numbers or odd:
        return None if odd else False
    known = [cell for cell in first if is_known(cell, words)]
    if len(known) >= 2 or len(known) == len(first):
        return None if recurs else True
    return False if recurs else None


def is_known(cell: str, words: Collection[str]) -> bool:
    """Whether a cell is one of some words, in any case, with or without ``_id``.

    >>> is_known("Source_ID", ["source"]), is_known("sources", ["source"])
    (True, False)
    """
    word = cell.strip().lower().replace(" ", "_").replace("-", "_")
    return word in words or (word.endswith("id") and word[:-2].rstrip("_") in words)


def _is_numeric(column: Sequence[str]) -> bool:
    if all(map(NUMBER.fullmatch, column)):  # the usual case, and many times faster
        return len(column) > 0
    return any(map(NUMBER.fullmatch, column)) and all(
        NUMBER.fullmatch(cell) or cell.lower() in MISSING for cell in column
    )


def _is_name(cell: str) -> bool:
    return cell.lower() not in MISSING and not NUMBER_LIKE.match(cell)
