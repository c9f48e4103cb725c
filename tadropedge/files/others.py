"""Formats that other libraries read: Matrix Market (SciPy), GraphML (networkx) and Parquet (pandas)."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from tadropedge.errors import TadropedgeError, show
from tadropedge.files.arrays import entries_of
from tadropedge.files.columns import choose
from tadropedge.files.contents import Array, FileContents, ReadOptions, no_column, per_arc, summary
from tadropedge.files.ids import INTEGER, number_ids
from tadropedge.files.opening import open_bytes

FIELDS, SYMMETRIES = ("pattern", "real", "integer", "double"), ("general", "symmetric")


# -- Matrix Market -----------------------------------------------------------------------------------------


def read_matrix_market(path: Path, options: ReadOptions) -> FileContents:
    """The entries of a sparse matrix as arcs; their values are weights, unless it is a ``pattern``.

    Row i of the file, counted from 1 there, is node i − 1. SciPy reads the first line alone: its compiled reader of the
    entries crashes on some damaged files.
    """
    from scipy.io import mminfo
    from scipy.sparse import coo_matrix

    if options.column is not None:
        raise no_column(path.name, options.column, ())
    with open_bytes(path) as stream:
        content = stream.read()
    rows, columns, entries, form, field, symmetry = mminfo(io.BytesIO(content))
    if form != "coordinate" or field not in FIELDS or symmetry not in SYMMETRIES:
        wanted = "coordinate, real, integer or pattern, general or symmetric"
        raise TadropedgeError(f"{path.name}: expected a matrix {wanted}, got {form} {field} {symmetry}")
    text = content.decode("latin1").splitlines()
    lines = [line for line in text if line.strip() and not line.lstrip().startswith("%")]
    if not all(map(str.isascii, lines)):  # some other characters crash NumPy's compiled reader, too
        raise TadropedgeError(f"{path.name}: expected numbers alone below its comments")
    pattern, told = field == "pattern", len(lines) - 1
    width = 2 if pattern else 3
    numbers = np.loadtxt(lines[1:], comments=None, ndmin=2) if told else np.empty((0, width))
    places = numbers[:, :2]
    if numbers.shape != (entries, width) or ((places < 1) | (places > rows) | (places % 1 != 0)).any():
        wanted = f"{entries} lines of {width} numbers, places from 1 to {rows} first"
        raise TadropedgeError(f"{path.name}: expected {wanted}, got {told} lines")
    weight = np.ones(entries) if pattern else per_arc(numbers[:, 2], entries, path.name, "the values")
    arcs, weight = entries_of(coo_matrix((weight, places.astype(np.int64).T - 1), shape=(rows, columns)), path.name)
    return FileContents(
        file=path.name,
        read=summary(len(weight), f"a {symmetry} matrix", None if pattern or not options.weighted else "its entries"),
        arcs=arcs,
        num_nodes=rows,
        weight=None if pattern else weight,
    )


# -- GraphML -----------------------------------------------------------------------------------------------


def read_graphml(path: Path, options: ReadOptions) -> FileContents:
    """The nodes of GraphML by their ``id``, in the order of the file, and its edges; other attributes are left out."""
    networkx = _installed("networkx", "GraphML", path.name)
    with open_bytes(path) as stream:
        content = stream.read()
    elements = ElementTree.iterparse(io.BytesIO(content))
    if (graphs := sum(each.tag.rpartition("}")[2] == "graph" for _, each in elements)) != 1:
        raise TadropedgeError(f"{path.name}: expected one graph, got {graphs}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about ports and types that the graph does without
        graph = networkx.read_graphml(io.BytesIO(content))
    if not len(graph):
        raise TadropedgeError(f"{path.name}: no nodes in the file")
    place = {node: number for number, node in enumerate(graph)}
    edges = list(graph.edges(data=True))
    known = dict.fromkeys(name for *_, attributes in edges for name in attributes)
    weighs = options.weight or "weight"
    for name in (options.weight, options.column):
        if name is not None and name not in known:
            raise no_column(path.name, name, known)
    weighted, column = options.weighted and weighs in known, options.column
    others = [name for name in known if name not in (weighs, column)]

    def numbers(name: object, default: float | None) -> Array:
        values = [attributes.get(name, default) for *_, attributes in edges]
        for value in values:
            if not isinstance(value, int | float):
                got = "none for some" if value is None else show(value, typed=False)
                raise TadropedgeError(f"{path.name}: {name} of every edge must be a number, got {got}")
        return per_arc(values, len(edges), path.name, name)

    return FileContents(
        file=path.name,
        read=summary(len(edges), "GraphML", weighs if weighted else None, column, others=others),
        arcs=np.array([(place[one], place[other]) for one, other, _ in edges], dtype=np.int64).reshape(-1, 2).T,
        num_nodes=len(place),
        weight=numbers(weighs, 1.0) if weighted else None,
        column=None if column is None else numbers(column, None),
        node_ids=_names(map(str, place)),
    )


def _names(names: Iterable[str]) -> tuple[Any, ...]:
    """The names of nodes, integers where all of them are."""
    called = tuple(names)
    whole = all(INTEGER.fullmatch(name) for name in called)
    numbers = tuple(int(name) for name in called) if whole else called
    return numbers if len(set(numbers)) == len(called) else called


# -- Parquet -----------------------------------------------------------------------------------------------


def read_parquet(path: Path, options: ReadOptions) -> FileContents:
    """The columns of a Parquet file as those of an edge list with a header."""
    pandas = _installed("pandas", "Parquet", path.name)
    parquet = _installed("pyarrow.parquet", "Parquet", path.name)
    titles = [str(name) for name in parquet.read_schema(path).names]
    columns = choose(titles, len(titles), options, path.name)
    wanted = [titles[place] for place in columns.places]
    table = parquet.read_table(path, columns=wanted).to_pandas(ignore_metadata=True)  # an index is a column like others
    if not len(table):
        raise TadropedgeError(f"{path.name}: no edges in the file")
    ends = [table[titles[end]] for end in (columns.source, columns.target)]
    for end in ends:
        kind = pandas.api.types.infer_dtype(end, skipna=True)
        if kind not in ("integer", "string") or end.isna().any():
            got = "missing ids" if end.isna().any() else kind
            raise TadropedgeError(f"{path.name}: the column {end.name!r} must be integers or texts, got {got}")
    numbers, names = pandas.factorize(pandas.concat(ends, ignore_index=True))
    if len({isinstance(name, str) for name in names}) > 1:
        raise TadropedgeError(f"{path.name}: the ids must be all integers or all texts, got both")
    ids, place = number_ids([str(name) for name in names], lambda name: path.name)

    def column(at: int | None) -> Array | None:
        return None if at is None else per_arc(table[titles[at]], len(table), path.name, columns.name(at))

    return FileContents(
        file=path.name,
        read=columns.told(len(table)),
        arcs=place[numbers].reshape(2, -1),
        num_nodes=len(ids),
        node_ids=ids,
        weight=column(columns.weight),
        column=column(columns.column),
    )


def _installed(module: str, what: str, file: str) -> Any:
    """A library that not everybody has."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise TadropedgeError(
            f"{file}: {what} is read by {name}, which is not installed: pip install 'tadropedge[files]'"
        ) from None
