"""A table of nodes as text beside a graph: one line for each node, its id, features and label.

A malformed line is named by its number: ``nodes.csv:17: expected 5 columns, got 4``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tadropedge.errors import TadropedgeError, show
from tadropedge.files import FileContents, has_header
from tadropedge.files.header import is_known
from tadropedge.files.ids import INTEGER, is_number, number_ids
from tadropedge.files.opening import readable
from tadropedge.files.table import Rows, Table, open_table

IDS = ("id", "node", "name", "nodes", "index")
LABELS = ("label", "labels", "y", "class", "target", "category")
UNLABELLED = ("", "-1", "NA", "nan", "NaN")
INDEX = ("", "Unnamed: 0")  # what pandas calls the numbers of lines


Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]


def with_nodes(
    contents: FileContents, path: Path, *, header: bool | None = None, num_features: int | None = None
) -> FileContents:
    r"""The same arcs between the nodes of a table, which are numbered in its order, with its features and labels.

    Blank lines and lines that start with ``#`` or ``%`` are skipped. A header says which column is the id and which the
    label; otherwise these are the first and the last. All other columns are numbers. Labels are any words: classes are
    numbered in the order of numbers or of the alphabet. An empty label, ``-1``, ``NA`` or ``NaN`` stands for none.
    Where it is said how many features there are, a table that has columns for them and the id alone has no labels.

    Every node of the graph must be in the table; nodes of the table without an edge are isolated. Where the graph's
    nodes have no names, they are called 0 … N − 1.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "nodes.csv"
    >>> _ = path.write_text("name,age,height,team\nann,7,1.2,red\nbob,8,1.3,\neve,9,1.4,blue\n")
    >>> bare = FileContents(file="edges.csv", read="", arcs=np.array([[0], [1]]), node_ids=("eve", "ann"))
    >>> found = with_nodes(bare, path)
    >>> found.node_ids, found.arcs.tolist(), found.labels.tolist(), found.class_names
    (('ann', 'bob', 'eve'), [[2], [0]], [1, -1, 0], ('blue', 'red'))
    """
    with readable(path, "a table that can be read"):
        ids, features, labels, class_names = _read(path, header, num_features)
    place = {str(node): number for number, node in enumerate(ids)}
    if contents.node_ids is None:
        called: Sequence[object] = range(int(contents.arcs.max()) + 1 if contents.arcs.size else 0)
    else:
        called = contents.node_ids
    missing = next((name for name in called if str(name) not in place), None)
    if missing is not None:
        unnamed = " (its nodes are called 0, 1, …)" if contents.node_ids is None else ""
        name = show(missing, typed=False)
        raise TadropedgeError(f"{contents.file} has the node {name}{unnamed}, which {path.name} does not list")
    number = np.array([place[str(name)] for name in called], dtype=np.int64)
    classes = f"and {len(class_names)} classes" if class_names else "and no labels"
    return replace(
        contents,
        arcs=number[contents.arcs],
        num_nodes=len(place),
        node_ids=ids,
        features=features,
        labels=labels if class_names else None,
        class_names=class_names or None,
        read=f"{contents.read}; {features.shape[1]} features {classes} of {len(place)} nodes from {path.name}",
    )


def _read(
    path: Path, header: bool | None, num_features: int | None
) -> tuple[tuple[int | str, ...], Floats, Integers, tuple[str, ...]]:
    """The ids of the nodes, their features ``[N, F]`` and labels ``[N]``, −1 for none, and the names of the classes."""
    table = open_table(path, header, _has_header, "a node")
    node, label, places = _columns(table.titles, table.count, path.name, num_features)
    names: list[str] = []
    classes: list[str] = []
    parts: list[Floats] = []
    for block in table.blocks():
        titles = table.titles or tuple(str(place + 1) for place in range(table.count))
        numbers = [table.numbers(block, place, titles[place]) for place in places]
        with np.errstate(over="ignore"):  # what is too large becomes infinite, which a dataset refuses
            parts.append(np.stack(numbers, axis=1).astype(np.float32))
        names += [name.strip() for name in block.columns[node]]
        classes += [] if label is None else [name.strip() for name in block.columns[label]]
    if not names:
        raise TadropedgeError(f"{path.name}: no nodes in the file")
    labels = (np.full(len(names), -1), ()) if label is None else _classes(classes, path.name)
    return _ids(names, table), np.concatenate(parts), *labels


def _has_header(_: Table, rows: Rows) -> bool | None:
    """As of edge lists; but a line of numbers between known words may name features that are called by numbers."""
    found = has_header(rows[0], rows[1:], ends=1, words=(*IDS, *LABELS, *INDEX))
    named = is_known(rows[0][0], IDS) or is_known(rows[0][-1], LABELS)
    return None if found is False and named else found


def _columns(
    titles: Sequence[str] | None, count: int, file: str, expected: int | None = None
) -> tuple[int, int | None, list[int]]:
    """The places of the id, of the label, if there is one, and of the features."""
    if count < 3 and expected is None:
        raise TadropedgeError(f"{file}: expected at least 3 columns, id, features, label, got {count}")
    named = [] if titles is None else [place for place, title in enumerate(titles) if is_known(title, IDS)]
    called = [] if titles is None else [place for place, title in enumerate(titles) if is_known(title, LABELS)]
    if len(called) > 1 and called[-1] != count - 1:
        raise TadropedgeError(f"{file}: several columns may be the label: {', '.join(titles or ())}")
    node, label = (named or [0])[0], (called or [count - 1])[-1]
    index = {place for place, title in enumerate(titles or ()) if title in INDEX}
    features = [place for place in range(count) if place not in {node, label} | index]
    if not called and expected == len(features) + (label != node):
        return node, None, sorted({*features, label} - {node})
    if not features or node == label:
        raise TadropedgeError(
            f"{file}: expected an id, features and a label, got the columns {', '.join(titles or ())}"
        )
    return node, label, features


def _ids(names: list[str], table: Table) -> tuple[int | str, ...]:
    """The ids in the order of the file, each there once."""
    ordered, place = number_ids(names, lambda name: table.where(names.index(name)))
    if len(ordered) < len(names):
        first = np.unique(place, return_index=True)[1]
        repeated = int(np.setdiff1d(np.arange(len(names)), first)[0])
        got = show(names[repeated], typed=False)
        raise TadropedgeError(f"{table.where(repeated)}: the node {got} was given before")
    return tuple(ordered[each] for each in place.tolist())


def _classes(labels: Sequence[str], file: str) -> tuple[Integers, tuple[str, ...]]:
    """Class numbers of the labels, and the name of each class."""
    known = sorted(set(labels) - set(UNLABELLED))
    if not known:
        raise TadropedgeError(f"{file}: no node has a label")
    if all(INTEGER.fullmatch(label) for label in known):
        known.sort(key=int)
    elif all(map(is_number, known)):
        wrong = next(label for label in known if not INTEGER.fullmatch(label))
        raise TadropedgeError(
            f"{file}: the label {show(wrong, typed=False)} is a number, but not a whole one: the label is the last "
            "column, or the one that a header calls so"
        )
    number = {label: place for place, label in enumerate(known)}
    return np.array([number.get(label, -1) for label in labels], dtype=np.int64), tuple(known)
