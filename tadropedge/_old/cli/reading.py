"""What the commands about one graph read: a dataset by its name or a file, with what scores may look at."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tadropedge._old.errors import TadropedgeError

if TYPE_CHECKING:  # torch is loaded when a graph is, not for --help
    from torch import Tensor

    from tadropedge._old.data.files import Contents
    from tadropedge._old.graph import Graph

Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A graph and the ``name`` to call it by; where it has them, features and labels, and the ``column`` asked for."""

    name: str
    graph: Graph
    contents: Contents | None = None
    column: Tensor | None = None
    classes: int | None = None
    features: Tensor | None = None

    @property
    def labels(self) -> Tensor | None:
        """The class of each node ``[N]``, where it is known."""
        return None if self.contents is None else self.contents.labels[: self.graph.num_nodes]

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """What the classes are called, where the file has words for them."""
        return None if self.contents is None else self.contents.class_names

    def without_arcs(self) -> Source:
        """The same for those who ask for pairs alone."""
        from tadropedge._old.graph import without_arcs

        return replace(self, graph=without_arcs(self.graph))

    @property
    def known(self) -> dict[str, Any]:
        """What scores may ask for: ``features``, ``column``, and the number of ``classes``."""
        features = self.features if self.contents is None else self.contents.features
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
    coloured: bool = False,
) -> Source:
    """Read a dataset by its name, or a file of any format by its path.

    ``column`` names what becomes the score ``column``, ``weighted=False`` leaves edge weights out. ``whole=False`` says
    that features and labels are not needed, so nothing is asked of them; with ``coloured``, they are there if they can
    be read, and a warning says why they are not.

    >>> read_source("karate").graph
    Graph(num_nodes=34, num_edges=78)
    """
    from tadropedge._old.data import found_data

    place = found_data("dataset or file", source, root)
    if isinstance(place, str):
        found = _dataset(place, root, seed)
    else:
        asked = {"header": header, "weighted": weighted, "column": column, "whole": whole}
        found = (_coloured if coloured and not whole else _file)(place, asked)
    if weighted or found.graph.weight is None:
        return found
    return replace(found, graph=replace(found.graph, weight=None))


def _dataset(name: str, root: Path | None, seed: int) -> Source:
    from tadropedge._old.data import Given, load_dataset
    from tadropedge._old.data.files import Contents

    data = load_dataset(name, root=root, seed=seed)
    if data.level != "node":
        return Source(name=data.name, graph=data.graph, classes=data.num_classes)
    splits = tuple(data.drawn.splits) if isinstance(data.drawn, Given) else (data.split,)
    contents = Contents(graph=data.graph, features=data.features, labels=data.labels, splits=splits)
    return Source(name=data.name, graph=data.graph, contents=contents, classes=data.num_classes)


def _coloured(path: Path, asked: dict[str, Any]) -> Source:
    """What a file holds, with labels only to look at: they change neither the graph nor whether it can be read."""
    try:
        found = _file(path, {**asked, "whole": True})
    except TadropedgeError as error:
        found = _file(path, asked)  # where the graph itself is wrong, this says so
        warnings.warn(f"nodes are not coloured by class: {error}", stacklevel=2)
        return found
    # With labels, nodes behind the last one that has an edge are counted, too.
    return found if found.contents is None else replace(found, graph=_file(path, asked).graph)


def _file(path: Path, asked: dict[str, Any]) -> Source:
    """What a file holds; a complaint about it says which file it is."""
    return _saying(path.name, partial(_held, path, asked))


def _held(path: Path, asked: dict[str, Any]) -> Source:
    """What a file holds; a split that is not whole, as the one ``train_mask`` of PyG's karate club, is left out."""
    import torch

    from tadropedge._old.data.files import contents_of, feature_tensor
    from tadropedge._old.data.splits import num_classes
    from tadropedge._old.files import Asked, read_file
    from tadropedge._old.graph import graph_of
    from tadropedge._old.scores.column import held_column

    name, column = path.name.partition(".")[0], asked["column"]
    held = read_file(path, Asked(**asked))
    if held.features is not None and held.labels is not None:
        whole = all(part is not None for part in held.parts.values())
        contents = contents_of(held if whole else replace(held, parts={}), path.name, column)
        classes = num_classes(contents.labels)
        return Source(name=name, graph=contents.graph, contents=contents, column=contents.score_column, classes=classes)
    graph = graph_of(held, path.name, weighted=asked["weighted"])
    return Source(
        name=name,
        graph=graph,
        column=None if column is None else held_column(held, graph, column, path.name),
        features=None if held.features is None else feature_tensor(held.features),
        classes=None if held.labels is None else num_classes(torch.from_numpy(held.labels)),
    )


def _saying(file: str, read: Callable[[], Found]) -> Found:
    """What a file holds; a complaint about it says which file it is."""
    try:
        return read()
    except TadropedgeError as error:
        raise TadropedgeError(str(error) if file in str(error) else f"{file}: {error}") from error
