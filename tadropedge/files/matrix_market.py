"""Matrix Market (``.mtx``): a sparse adjacency matrix as text, read by ``scipy.io.mmread`` once its header is checked.

Row i of the file, counted from 1 there, is node i − 1, as in SciPy.
"""

from __future__ import annotations

import io
from pathlib import Path

from tadropedge.arrays import checked_matrix
from tadropedge.errors import TadropedgeError, show
from tadropedge.files.held import Asked, Held, unknown
from tadropedge.files.npz import matrix_arcs, square
from tadropedge.files.opening import readable, unpacked
from tadropedge.memory import check_room

BANNER = b"%%MatrixMarket"
ENTRY_BYTES = 48  # of memory, while it is read and made a graph
LEAST_LINE = 4  # characters of an entry, as in "1 2"
SHAPES = {"general", "symmetric"}
FIELDS = {"pattern", "real", "integer", "double"}
WORDS = "%%MatrixMarket matrix coordinate, real, integer or pattern, general or symmetric"
WEIGHT = ("weight", "value", "3")  # what the values may be called


def read(path: Path, asked: Asked) -> Held:
    """The entries of the matrix as arcs; their values are weights, unless it is a ``pattern``."""
    content = unpacked(path)
    field = _checked_header(content, path.name)
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


def _checked_header(content: bytes, name: str) -> str:
    """The field of the file: what kind of entries it has. What it says of its size must fit what is there."""
    lines = io.BytesIO(content)
    try:
        banner = lines.readline(1000).decode("ascii").split()
        size = next((line for line in lines if line.strip() and not line.startswith(b"%")), b"").split()
        told = [int(number) for number in size]
    except ValueError:
        raise TadropedgeError(f"{name}: expected a Matrix Market header, {WORDS}, and a line of three sizes") from None
    words = [word.lower() for word in banner[1:]]
    if banner[:1] != [BANNER.decode()] or len(words) != 4 or words[0] != "matrix":
        raise TadropedgeError(f"{name}: expected a header {WORDS}, got {show(' '.join(banner), typed=False)}")
    _, form, field, shape = words
    if form != "coordinate" or field not in FIELDS or shape not in SHAPES:
        raise TadropedgeError(f"{name}: expected {WORDS}, got {show(f'{form} {field} {shape}', typed=False)}")
    if len(told) != 3 or min(told) < 0:
        got = show(b" ".join(size).decode("ascii"), typed=False)
        raise TadropedgeError(f"{name}: expected a line of three sizes, rows columns entries, got {got}")
    rows, columns, entries = told
    if rows != columns:
        raise TadropedgeError(f"{name}: an adjacency matrix must be square, got shape {(rows, columns)}")
    there = len(content) - lines.tell() + 1  # the last line may lack its end
    if entries * LEAST_LINE > there:
        raise TadropedgeError(f"{name} is said to have {entries:,} entries, for which {there:,} bytes are too few")
    check_room(ENTRY_BYTES * entries + 16 * rows, f"{name}, unpacked,")
    return field
