"""Matrix Market (``.mtx``): a sparse adjacency matrix as text, read by ``scipy.io.mmread`` once its header is checked.

Row i of the file, counted from 1 there, is node i − 1, as in SciPy.
"""

from __future__ import annotations

import io
from pathlib import Path

from tadropedge._old.arrays import checked_matrix
from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.files.held import Asked, Held, unknown
from tadropedge._old.files.npz import matrix_arcs, square
from tadropedge._old.files.opening import readable, unpacked
from tadropedge._old.memory import check_room

BANNER = b"%%MatrixMarket"
ENTRY_BYTES = 48  # of memory, while it is read and made a graph
LONGEST_BANNER = 1000
NUMBERS = b"0123456789+-.eE \t\r\n"
LEAST_LINE = 4  # characters of an entry, as in "1 2"
SHAPES = {"general", "symmetric"}
FIELDS = {"pattern", "real", "integer", "double"}
WORDS = "%%MatrixMarket matrix coordinate, real, integer or pattern, general or symmetric"
WEIGHT = ("weight", "value", "3")  # what the values may be called


def read(path: Path, asked: Asked) -> Held:
    """The entries of the matrix as arcs; their values are weights, unless it is a ``pattern``."""
    content, field = _checked(unpacked(path), path.name)
    if asked.column is not None and (field == "pattern" or asked.column not in WEIGHT):
        raise TadropedgeError(unknown(path.name, asked.column, [] if field == "pattern" else ["weight"]))
    from scipy.io import mmread

    with readable(path, "a Matrix Market file that can be read"):
        matrix = mmread(io.BytesIO(content))
        arcs, weight = matrix_arcs(square(checked_matrix(matrix, path.name)))
    return Held(
        arcs=arcs,
        num_nodes=matrix.shape[0],
        weight=None if field == "pattern" else weight,
        column=None if asked.column is None else weight,
    )


def _checked(content: bytes, name: str) -> tuple[bytes, str]:
    """The file without its comments, and its field: what kind of entries it has.

    What it says of its size must fit what is there. SciPy's compiled reader crashes on some characters that are no
    part of a number, so there must be none.
    """
    lines = io.BytesIO(content)
    first = lines.readline(LONGEST_BANNER)
    size = next((line for line in lines if line.strip() and not line.startswith(b"%")), b"")
    body = content[lines.tell() :]
    field = _checked_banner(first, name)
    try:
        rows, columns, entries = (int(number) for number in size.split())
    except ValueError:
        got = show(size.decode("latin1").strip(), typed=False)
        raise TadropedgeError(f"{name}: expected a line of three sizes, rows columns entries, got {got}") from None
    if rows != columns or min(rows, entries) < 0:
        raise TadropedgeError(f"{name}: an adjacency matrix must be square, got shape {(rows, columns)}")
    if entries * LEAST_LINE > len(body) + 1:  # the last line may lack its end
        raise TadropedgeError(f"{name} is said to have {entries:,} entries, for which {len(body):,} bytes are too few")
    if odd := body.translate(None, NUMBERS):
        got = show(odd[:1].decode("latin1"), typed=False)
        raise TadropedgeError(f"{name}: expected numbers alone below its sizes, got the character {got}")
    check_room(ENTRY_BYTES * entries + 16 * rows, f"{name}, unpacked,")
    return first.rstrip() + b"\n%d %d %d\n" % (rows, columns, entries) + body, field


def _checked_banner(first: bytes, name: str) -> str:
    """The field that the first line tells."""
    banner, *words = first.decode("latin1").split() or [""]
    words = [word.lower() for word in words]
    if banner.encode("latin1") != BANNER or len(words) != 4 or words[0] != "matrix":
        got = show(first.decode("latin1").strip(), typed=False)
        raise TadropedgeError(f"{name}: expected a header {WORDS}, got {got}")
    _, form, field, shape = words
    if form != "coordinate" or field not in FIELDS or shape not in SHAPES:
        raise TadropedgeError(f"{name}: expected {WORDS}, got {show(f'{form} {field} {shape}', typed=False)}")
    return field
