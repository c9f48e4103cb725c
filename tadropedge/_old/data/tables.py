"""A table of nodes as text beside a graph: one line for each node, ``id, feature, …, feature, label``.

A malformed line is named with its number: ``nodes.csv:17: expected 5 columns, got 4``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from torch import Tensor

from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.files import Asked, Held, as_integers, existing, read_file, readable_text
from tadropedge._old.files.edge_list import NUMBER_LIKE, table_cells
from tadropedge._old.graph import Graph, graph_of
from tadropedge._old.scores.column import held_column

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
    """Read a graph from a file of any format and a table of its nodes, which are numbered in the order of the table.

    Every node of the graph must be in the table; nodes of the table without an edge are isolated. Where the graph's
    nodes have no names, they are called 0 … N − 1. ``column`` names one of the file that is returned with one number
    per edge.
    """
    table = read_node_table(nodes, header=header)
    held = read_file(path, Asked(integers=isinstance(table.ids[0], int), column=column))
    joined = _joined(held, table, path.name, nodes.name)
    graph = graph_of(joined, path.name)
    return graph, table, None if column is None else held_column(held, graph, column, path.name)


def _joined(held: Held, table: NodeTable, file: str, nodes: str) -> Held:
    """The same arcs between the nodes of the table."""
    ids: Sequence[int | str] = table.ids
    place = {node: number for number, node in enumerate(ids)}
    called = _called(held, table)
    missing = [name for name in called if name not in place]
    if missing:
        name = show(missing[0], typed=False)
        unnamed = "" if held.ids is not None else f" (its {len(called)} nodes are called 0 to {len(called) - 1})"
        raise TadropedgeError(f"{file} names the node {name}, which {nodes} does not list{unnamed}")
    number = np.array([place[name] for name in called], dtype=np.int64)
    return replace(held, arcs=number[held.arcs], num_nodes=len(place), ids=table.ids)


def _called(held: Held, table: NodeTable) -> Sequence[int | str]:
    """What the nodes of the graph are called, as integers or texts, whichever the table has."""
    if held.ids is None:
        graph = graph_of(held, "")  # which checks the arcs
        called: Sequence[int | str] = range(graph.num_nodes)
    else:
        called = held.ids
    if isinstance(table.ids[0], int):
        return (as_integers([str(name) for name in called]) or called) if held.ids is not None else called
    return [str(name) for name in called]


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
