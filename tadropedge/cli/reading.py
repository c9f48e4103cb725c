"""A graph from a name or a file, for the commands that need no more than a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tadropedge.cli.options import DataOptions, FileOptions
from tadropedge.cli.progress import note
from tadropedge.errors import TadropedgeError
from tadropedge.lab.registry import DATASETS

if TYPE_CHECKING:
    from torch import Tensor

    from tadropedge.graph import Graph
    from tadropedge.lab.data.dataset import Dataset


@dataclass(frozen=True, kw_only=True)
class Source:
    """A graph, and what else its source holds.

    ``nodes`` are features ``x``, labels ``y`` and masks ``train``, ``val`` and ``test`` of the nodes, where they are
    known; ``column`` is one number per listed edge, where it was asked for.
    """

    name: str
    read: str
    graph: Graph
    nodes: dict[str, Tensor]
    class_names: Sequence[str] | None = None
    column: Tensor | None = None

    def settings(self, score: str, given: dict[str, Any]) -> dict[str, Any]:
        """What was given for a score, and of what is known what it takes."""
        from tadropedge.scores.solve import settings_for

        known = {"features": self.nodes.get("x"), "column": self.column}
        found = settings_for(score, {name: value for name, value in known.items() if value is not None}) | given
        for needed, instead in (("features", "a graph with node features"), ("column", "--column NAME")):
            if needed in settings_for(score, {needed: None}) and needed not in found and score != "aggregate":
                raise TadropedgeError(f"--score {score} needs {instead}, and '{self.name}' has none")
        return found


def read_source(source: str, options: FileOptions, seed: int = 0) -> Source:
    """Read a dataset by its name, or the graph of a file, and say what was read."""
    found = _named(source, seed) if _is_name(source, options) else _file(source, options)
    note(f"read {source}: {found.read}")
    return found


def read_dataset(source: str, files: FileOptions, nodes: DataOptions, seed: int = 0, quiet: bool = False) -> Dataset:
    """Read data to train on, and say what was read."""
    from tadropedge.lab.data.load import load

    options = dict(files.given)
    if _is_name(source, files):
        if nodes.nodes is not None:
            raise TadropedgeError(f"--nodes is about files, and {source!r} is the name of a dataset")
    elif nodes.nodes is not None:
        options["nodes"] = nodes.nodes
    data = load(
        source, split=nodes.split, per_class=nodes.per_class, seed=seed, add_edges=nodes.add_edges,
        hide_features=nodes.hide_features, **options,
    )  # fmt: skip
    if not quiet:
        _say(source, data)
    return data


def read_unlabelled(
    source: str, files: FileOptions, nodes: Path | None, sizes: tuple[int, int], seed: int = 0
) -> tuple[Dataset, bool]:
    """Read data to predict on, and whether it has labels; where it has none, some stand in that nobody looks at.

    ``sizes`` are the numbers of features and of classes that are expected.
    """
    import torch

    if _is_name(source, files):
        return read_dataset(source, files, DataOptions(), seed), True
    from tadropedge.files import read_file
    from tadropedge.lab.data.contents import dataset_of
    from tadropedge.lab.data.load import path_of
    from tadropedge.lab.data.tables import joined, read_node_table

    path, (features, classes) = path_of(source), sizes
    contents = read_file(path, **files.given)
    if nodes is not None:
        contents = joined(contents, read_node_table(nodes, header=files.header, features=features))
    labelled = contents.labels is not None
    if not labelled:
        count = 0 if contents.features is None else contents.features.shape[0]
        stand_in = (torch.arange(count) % max(2, classes)).numpy()
        contents = replace(contents, labels=stand_in, splits={})
    data = dataset_of(contents, path.name.partition(".")[0])
    _say(source, data)
    return data, labelled


def _say(source: str, data: Dataset) -> None:
    sizes = f"{data.graph.num_nodes:,} nodes, {data.graph.num_edges:,} edges"
    note(f"read {source}: {data.read or sizes}")


def _is_name(source: str, options: FileOptions) -> bool:
    """Whether a source is the name of a dataset, about which there is nothing to say that is said of files."""
    by_name = source.lower() in DATASETS or source.lower().startswith("pyg:")
    if by_name and options.given:
        flag = next(iter(options.given))
        raise TadropedgeError(f"--{flag} is about files, and {source!r} is the name of a dataset")
    return by_name


def _named(name: str, seed: int) -> Source:
    from tadropedge.lab.data.load import load

    data = load(name, seed=seed)
    nodes = {"x": data.features, "y": data.labels}
    read = f"{data.graph.num_nodes:,} nodes, {data.graph.num_edges:,} edges"
    return Source(name=data.name, read=read, graph=data.graph, nodes=nodes, class_names=data.class_names)


def _file(name: str, options: FileOptions) -> Source:
    import torch

    from tadropedge.files import read_file
    from tadropedge.lab.data.features import feature_tensor
    from tadropedge.lab.data.load import path_of

    path = path_of(name)
    contents = read_file(path, **options.given)
    graph = contents.to_graph()
    if graph.num_edges == 0:
        raise TadropedgeError(f"{path.name} has no edges")
    nodes = {}
    if contents.features is not None:
        nodes["x"] = feature_tensor(contents.features)
    if contents.labels is not None:
        nodes["y"] = torch.from_numpy(contents.labels).long()
    whole = {name: value for name, value in nodes.items() if len(value) == graph.num_nodes}
    column = None if contents.column is None else torch.from_numpy(contents.column)
    return Source(
        name=path.name.partition(".")[0], read=contents.read, graph=graph, nodes=whole,
        class_names=contents.class_names, column=column,
    )  # fmt: skip
