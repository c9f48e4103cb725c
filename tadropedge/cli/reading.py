"""What the commands about one graph read: a dataset by its name or a file, with what scores may look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tadropedge.errors import TadropedgeError

if TYPE_CHECKING:  # torch is loaded when a graph is, not for --help
    from torch import Tensor

    from tadropedge.data.files import Contents
    from tadropedge.graph import Graph

Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A graph and the ``name`` to call it by; where it has them, features and labels, and the ``column`` asked for."""

    name: str
    graph: Graph
    contents: Contents | None = None
    column: Tensor | None = None
    classes: int | None = None

    @property
    def known(self) -> dict[str, Any]:
        """What scores may ask for: ``features``, ``column``, and the number of ``classes``."""
        features = None if self.contents is None else self.contents.features
        known = {"features": features, "column": self.column, "classes": self.classes}
        return {name: value for name, value in known.items() if value is not None}


def read_source(
    source: str | Path,
    *,
    root: Path | None = None,
    seed: int = 0,
    header: bool | None = None,
    weighted: bool = True,
    column: str | None = None,
    whole: bool = True,
) -> Source:
    """Read a dataset by its name, or a file by its path: an edge list, an ``.npz`` or a saved ``Data``.

    ``column`` names what becomes the score ``column``, ``weighted=False`` leaves edge weights out. ``whole=False`` says
    that features and labels of an ``.npz`` are not needed, so nothing is asked of them.

    >>> read_source("karate").graph
    Graph(num_nodes=34, num_edges=78)
    """
    from tadropedge.files import existing

    if isinstance(source, str):
        found = _dataset(source, root, seed)
    else:
        found = _file(existing(source), header, weighted, column, whole)
    if weighted or found.graph.weight is None:
        return found
    return replace(found, graph=replace(found.graph, weight=None))


def _dataset(name: str, root: Path | None, seed: int) -> Source:
    from tadropedge.data import Given, load_dataset
    from tadropedge.data.files import Contents

    data = load_dataset(name, root=root, seed=seed)
    if data.level != "node":
        return Source(name=data.name, graph=data.graph, classes=data.num_classes)
    splits = tuple(data.drawn.splits) if isinstance(data.drawn, Given) else (data.split,)
    contents = Contents(graph=data.graph, features=data.features, labels=data.labels, splits=splits)
    return Source(name=data.name, graph=data.graph, contents=contents, classes=data.num_classes)


def _file(path: Path, header: bool | None, weighted: bool, column: str | None, whole: bool) -> Source:
    from tadropedge.data.files import SAVED_SUFFIXES, read_contents, read_saved
    from tadropedge.data.splits import num_classes
    from tadropedge.files import read_arrays
    from tadropedge.graph import Graph
    from tadropedge.scores.column import read_column

    name = path.name.partition(".")[0]
    if path.suffix in SAVED_SUFFIXES:
        graph, contents, values = _saying(path.name, partial(read_saved, path, column))
        classes = None if contents is None else num_classes(contents.labels)
        return Source(name=name, graph=graph, contents=contents, column=values, classes=classes)
    arrays = set(read_arrays(path, set())[1]) if path.suffix == ".npz" and whole else set()
    if "y" in arrays and arrays & {"x", "x_data"}:
        contents = _saying(path.name, partial(read_contents, path, None, None, column))
        found, classes = contents.graph, num_classes(contents.labels)
        return Source(name=name, graph=found, contents=contents, column=contents.score_column, classes=classes)
    if column is not None:
        graph, values = read_column(path, column, header=header, weighted=weighted)
        return Source(name=name, graph=graph, column=values)
    return Source(name=name, graph=Graph.from_file(path, header=header, weighted=weighted))


def _saying(file: str, read: Callable[[], Found]) -> Found:
    """What a file holds; a complaint about it says which file it is."""
    try:
        return read()
    except TadropedgeError as error:
        raise TadropedgeError(str(error) if file in str(error) else f"{file}: {error}") from error
