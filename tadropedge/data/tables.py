"""An edge list and a table of its nodes as text: one line for each node, ``id, feature, …, feature, label``.

A malformed line is named with its number: ``nodes.csv:17: expected 5 columns, got 4``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from torch import Tensor

from tadropedge.errors import TadropedgeError, show
from tadropedge.files import NUMBER_LIKE, as_integers, existing, read_edge_list, readable_text, table_cells
from tadropedge.graph import Graph
from tadropedge.scores.column import per_edge

UNKNOWN = ("", "-1")  # a node without a label


@dataclass(frozen=True)
class NodeTable:
    """``ids [N]`` as they stand in the file, ``features [N, F]``, ``labels [N]`` as class numbers, −1 for none."""

    ids: tuple[int, ...] | tuple[str, ...]
    features: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]
    class_names: tuple[str, ...]


def read_table(
    path: Path, nodes: Path, header: bool | None, column: str | None = None
) -> tuple[Graph, NodeTable, Tensor | None]:
    """Read an edge list and a table of its nodes, which are numbered in the order of the table.

    Every node of the edge list must be in the table; nodes of the table without an edge are isolated. ``column`` names
    one of the edge list that is returned with one number per edge.
    """
    table = read_node_table(nodes, header=header)
    edges = read_edge_list(path, integers=isinstance(table.ids[0], int), column=column)
    place = {node: number for number, node in enumerate(table.ids)}
    missing = [name for name in edges.ids if name not in place]
    if missing:
        name = show(missing[0], typed=False)
        raise TadropedgeError(f"{path.name} names the node {name}, which {nodes.name} does not list")
    number = np.array([place[name] for name in edges.ids], dtype=np.int64)
    graph = replace(Graph.from_edge_index(number[edges.arcs], len(place), edges.weight), node_ids=table.ids)
    return graph, table, None if edges.column is None else per_edge(graph, edges.column, str(column))


def read_node_table(path: str | Path, *, header: bool | None = None) -> NodeTable:
    """Read a table of nodes; blank lines and lines that start with ``#`` or ``%`` are skipped.

    The first column is the id of the node, the last its label, the columns between are numbers. ``header=None`` skips
    a first line of words alone: none looks like a number. Labels are any words: classes are numbered in the order of
    numbers, or of the alphabet. An empty label, or −1, stands for none.
    """
    path = existing(path)
    first_line: dict[str, int] = {}
    rows: list[npt.NDArray[np.float32]] = []
    labels: list[str] = []
    with readable_text(path):
        table = table_cells(path, (3, None), "at least 3 columns (id, features, label)")
        if header is None:  # a first line of words alone
            header = bool(table) and not any(_like_number(cell) for cell in table[0][1]) and all(table[0][1][1:-1])
        for number, (node, *features, label) in table[int(header) :]:
            where = f"{path.name}:{number}"
            if not node:
                raise TadropedgeError(f"{where}: empty node id")
            if first_line.setdefault(node, number) != number:
                raise TadropedgeError(
                    f"{where}: node {show(node, typed=False)} was given on line {first_line[node]} already"
                )
            rows.append(_features(features, where))
            labels.append(label)
    if not rows:
        raise TadropedgeError(f"{path.name}: no nodes in the file")
    numbers = as_integers(list(first_line))
    if numbers is not None and len(set(numbers)) < len(numbers):
        raise TadropedgeError(f"{path.name}: a node is given twice (as integers, 7, 007 and +7 are one id)")
    ids = tuple(numbers) if numbers is not None else tuple(first_line)
    return NodeTable(ids, np.stack(rows), *_classes(labels, path.name))


def _like_number(cell: str) -> bool:
    return bool(NUMBER_LIKE.match(cell)) or _number(cell) is not None


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _features(cells: list[str], where: str) -> npt.NDArray[np.float32]:
    numbers = [_number(cell) for cell in cells]
    with np.errstate(over="ignore"):  # too large for float32 becomes infinite, which is refused below
        row = np.array(numbers, dtype=np.float64).astype(np.float32)
    for place in np.flatnonzero(~np.isfinite(row)):
        wanted = "a number" if numbers[place] is None else "a finite number"
        raise TadropedgeError(f"{where}: feature {place + 1} is {show(cells[place], typed=False)}, expected {wanted}")
    return row


def _classes(labels: list[str], name: str) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """Class numbers of the labels, and the name of each class."""
    known = {label for label in labels if label not in UNKNOWN}
    if not known:
        raise TadropedgeError(f"{name}: no node has a label in the last column")
    numbers = as_integers(list(known))
    names = sorted(known) if numbers is None else [name for _, name in sorted(zip(numbers, known, strict=True))]
    number = {label: place for place, label in enumerate(names)}
    return np.array([number.get(label, -1) for label in labels], dtype=np.int64), tuple(names)
