"""The table of formats: which file is read by whom, by its suffix alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tadropedge._support.checks import check_flag, check_mapping, check_path
from tadropedge.errors import TadropedgeError, lookup, show
from tadropedge.files import edge_list, npz, others, saved
from tadropedge.files.contents import FileContents, ReadOptions
from tadropedge.files.opening import packed, readable


@dataclass(frozen=True, kw_only=True)
class Format:
    """A kind of file: its ``name`` with an article, its ``suffixes``, and the function that reads it.

    ``columns``: which of them can be named; ``header``: whether there may be one; ``text``: whether it may be packed.
    """

    name: str
    suffixes: tuple[str, ...]
    reader: Callable[[Path, ReadOptions], FileContents]
    columns: tuple[str, ...] = ()
    header: bool = False
    text: bool = True


TABLE = ("source", "target", "weight")
FORMATS: dict[str, Format] = {
    "edges": Format(
        name="an edge list",
        suffixes=(".csv", ".tsv", ".txt", ".tab", ".edges", ".edgelist", ".el", ".ncol", ".dat"),
        reader=edge_list.read,
        columns=TABLE,
        header=True,
    ),
    "npz": Format(name="an .npz file", suffixes=(".npz",), reader=npz.read, columns=("weight",), text=False),
    "pt": Format(
        name="a file of torch.save", suffixes=(".pt", ".pth"), reader=saved.read, columns=("weight",), text=False
    ),
    "mtx": Format(name="a Matrix Market file", suffixes=(".mtx", ".mm"), reader=others.read_matrix_market),
    "graphml": Format(name="a GraphML file", suffixes=(".graphml",), reader=others.read_graphml, columns=("weight",)),
    "parquet": Format(
        name="a Parquet file", suffixes=(".parquet", ".pq"), reader=others.read_parquet, columns=TABLE, text=False
    ),
}


def read_file(
    path: str | Path,
    *,
    header: bool | None = None,
    columns: Mapping[str, str | int] | None = None,
    column: str | int | None = None,
    weighted: bool = True,
    nodes: bool = True,
) -> FileContents:
    r"""Read a file of any format of :data:`FORMATS`, chosen by its suffix; text may be packed (``.csv.gz``).

    Args:
        path: the file.
        header: whether the first line of a table names its columns; ``None`` looks, and asks where that is not clear.
        columns: what the columns of a table are called, ``{"source": "a", "target": "b", "weight": "w"}``, or their
            numbers from 1 on; elsewhere ``{"weight": "w"}`` names the array or attribute with the weights.
        column: one further column, array or edge attribute: one number per listed edge.
        weighted: whether edge weights are read.
        nodes: whether features, labels and splits are read, too.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "trips.csv"
    >>> _ = path.write_text("id;from;to;length\n1;ann;bob;0,5\n2;bob;eve;1,25\n")
    >>> contents = read_file(path, columns={"weight": "length"})
    >>> contents.arcs.tolist(), contents.weight.tolist(), contents.node_ids
    ([[0, 1], [1, 2]], [0.5, 1.25], ('ann', 'bob', 'eve'))
    >>> contents.read
    "2 edges from columns 'from' and 'to', weights from 'length'; header read; left out: 'id'"
    """
    path, columns = check_path("path", path), check_mapping("columns", {} if columns is None else columns)
    weighted, nodes = check_flag("weighted", weighted), check_flag("nodes", nodes)
    options = ReadOptions(header=header, columns=columns, column=column, weighted=weighted, nodes=nodes)
    found = _format_of(path)
    for role in options.columns:
        lookup("column", role, dict.fromkeys(found.columns or ("(none)",)))
    if header is not None and not found.header:
        raise TadropedgeError(f"{path.name}: {found.name} has no header, got header={header}", argument="header")
    with readable(path, f"{found.name} that can be read"):
        path.open("rb").close()
        contents = found.reader(path, options)
    return contents if weighted else replace(contents, weight=None)


def _format_of(path: Path) -> Format:
    """The format that the suffix names."""
    if path.is_dir():
        raise TadropedgeError(f"'{path}' is a folder, expected a file")
    suffix = (Path(path.stem) if packed(path) else path).suffix.lower()
    found = next((each for each in FORMATS.values() if suffix in each.suffixes), None)
    if found is None:
        known = ", ".join(suffix for each in FORMATS.values() for suffix in each.suffixes)
        raise TadropedgeError(f"{show(path.name, typed=False)}: the suffix of a file says its format: one of {known}")
    if packed(path) and not found.text:
        raise TadropedgeError(f"{path.name}: {found.name} is not read while it is packed: unpack it first")
    return found
