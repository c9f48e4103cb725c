"""What every reader is asked, and what every file turns out to hold: one pair of records for all formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tadropedge._old.errors import show

PARTS = ("train", "val", "test")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is wanted of a file beside the arcs of its graph.

    * ``header``, ``weighted``, ``integers``: of edge lists, as :func:`~tadropedge._old.files.edge_list.read_edge_list` says;
    * ``column``: the name of further numbers, one per arc;
    * ``whole``: features, labels and splits, too; nothing is asked of them otherwise;
    * ``masks``: splits among these.
    """

    header: bool | None = None
    weighted: bool = True
    integers: bool = True
    column: str | None = None
    whole: bool = False
    masks: bool = True


@dataclass(frozen=True, kw_only=True)
class Held:
    """What a file holds: always a graph, the rest where it is there and was asked for.

    * ``arcs [2, A]``, ``weight [A]``, ``column [A]``: one entry per listed edge;
    * ``num_nodes``: ``None`` where only the arcs, or the features, show how many there are;
    * ``ids``: the names of the nodes;
    * ``features``: ``[N, F]``, an array or a SciPy CSR matrix whose structure was checked;
    * ``labels [N]``: whole numbers, −1 for none, with ``class_names`` where the file has words for them;
    * ``parts``: node indices or masks of the splits, by the names of ``PARTS``, ``None`` for what is not there;
    * ``lacking``: what to say where ``"features"`` or ``"labels"`` are needed and the file has none.
    """

    arcs: Any
    num_nodes: int | None = None
    weight: Any = None
    ids: tuple[Any, ...] | None = None
    column: Any = None
    features: Any = None
    labels: Any = None
    class_names: tuple[str, ...] | None = None
    parts: Mapping[str, Any] = field(default_factory=dict)
    lacking: Mapping[str, str] = field(default_factory=dict)


def unknown(file: str, name: str, columns: Sequence[str]) -> str:
    """What to say where a file has no such column.

    >>> unknown("roads.npz", "lenght", ["length", "lanes"])
    "roads.npz has no column 'lenght'; its columns are length, lanes"
    """
    listed = f"its columns are {', '.join(columns)}" if columns else "it has none that holds one number per edge"
    return f"{file} has no column {show(name, typed=False)}; {listed}"
