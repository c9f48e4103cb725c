"""What is asked of a file, and what it turns out to hold: the same two records for every format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tadropedge._support.checks import check_integer
from tadropedge.errors import TadropedgeError, show
from tadropedge.graph import Graph

PARTS = ("train", "val", "test")
Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What every reader is asked; see :func:`tadropedge.files.read_file`."""

    header: bool | None = None
    columns: Mapping[str, str | int] = field(default_factory=dict)
    column: str | int | None = None
    weighted: bool = True
    nodes: bool = True

    @property
    def weight(self) -> str | int | None:
        """The name of the edge weights, where the user gave one."""
        return self.columns.get("weight")


@dataclass(frozen=True, kw_only=True)
class FileContents:
    """What a file holds: always a graph, the rest where it is there.

    * ``read``: what was read, in a few words: ``"12 edges from columns 'a' and 'b'; header read"``;
    * ``arcs [2, A]``: whole numbers, one column per listed edge; ``weight [A]``, ``column [A]``: float64 in the order
      of the arcs, the latter the one that was asked for by name;
    * ``num_nodes``: ``None`` where only the arcs show how many there are;
    * ``node_ids``: the user's own names, in the order of the nodes;
    * ``features [N, F]``: an array or a SciPy CSR matrix; ``labels [N]``: whole numbers, −1 for none;
    * ``class_names``: what the classes are called;
    * ``splits``: node indices or masks by the names ``train``, ``val`` and ``test``.
    """

    file: str
    read: str
    arcs: Array
    num_nodes: int | None = None
    weight: Array | None = None
    column: Array | None = None
    node_ids: tuple[Any, ...] | None = None
    features: Any = None
    labels: Array | None = None
    class_names: tuple[str, ...] | None = None
    splits: Mapping[str, Array] = field(default_factory=dict)

    def to_graph(self, num_nodes: int | None = None) -> Graph:
        """The graph; with ``num_nodes`` integer ids are the numbers of the nodes, 0 to ``num_nodes − 1``."""
        arcs, ids = self.arcs, self.node_ids
        if num_nodes is not None:
            num_nodes = check_integer("num_nodes", num_nodes, least=0)
        if num_nodes is not None and ids is not None:
            wrong = next((each for each in ids if not (isinstance(each, int) and 0 <= each < num_nodes)), None)
            if wrong is not None:
                got = show(wrong, typed=False)
                needs = f"num_nodes={num_nodes} needs ids from 0 to {num_nodes - 1}"
                raise TadropedgeError(f"{self.file}: {needs}, got {got}", argument="num_nodes")
            arcs, ids = np.array(ids, dtype=np.int64)[arcs], None
        try:
            graph = Graph.from_edge_index(arcs, self.num_nodes if num_nodes is None else num_nodes, self.weight)
        except TadropedgeError as error:
            raise type(error)(f"{self.file}: {error}") from error
        return graph if ids is None else replace(graph, node_ids=ids)


def summary(
    count: int, where: str, weight: object = None, column: object = None, *more: str, others: Sequence[str] = ()
) -> str:
    """What was read, for people; ``others`` are columns or arrays that were not.

    >>> summary(12000, "edge_index", "edge_weight", others=["when", "id"])
    "12,000 edges from edge_index, weights from edge_weight; left out: 'when', 'id'"
    """
    left_out = [f"left out: {', '.join(map(repr, others))}"] if others else []
    parts = [f"{count:,} edge{'s' * (count != 1)} from {where}"]
    parts += [f"weights from {weight}"] if weight is not None else []
    parts += [f"column {column}"] if column is not None else []
    return "; ".join((", ".join(parts), *more, *left_out))


def no_column(file: str, name: object, columns: object) -> TadropedgeError:
    """What to raise where a file has no such column.

    >>> no_column("roads.npz", "lenght", ["length", "lanes"])
    TadropedgeError("roads.npz has no column 'lenght'; there are length, lanes")
    """
    listed = ", ".join(map(str, columns)) if columns else "none with one number per edge"  # type: ignore[call-overload]
    return TadropedgeError(f"{file} has no column {show(name, typed=False)}; there are {listed}", argument="columns")


def per_arc(values: Any, count: int, file: str, name: object) -> Array:
    """``values`` as float64 ``[A]``, one for each of ``count`` listed edges, or one line that says what they are."""
    array = np.asarray(values)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.shape != (count,) or array.dtype.kind not in "biuf":
        raise TadropedgeError(
            f"{file}: {name} must be one number for each of {count} edges, got {array.dtype} of shape {array.shape}"
        )
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        wrong = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise TadropedgeError(f"{file}: {name} must be finite, got {numbers[wrong]} for edge {wrong}")
    return numbers
