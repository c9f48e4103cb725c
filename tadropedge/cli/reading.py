"""What a command reads, from a name or a file: a graph, data to train on, data to predict on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tadropedge.cli.options import DataOptions, FileOptions
from tadropedge.cli.output import note
from tadropedge.errors import TadropedgeError
from tadropedge.lab.registry import DATASETS

if TYPE_CHECKING:
    from torch import Tensor

    from tadropedge.graph import Graph
    from tadropedge.lab.data.dataset import Dataset


@dataclass(frozen=True, kw_only=True)
class Source:
    """A graph, and what else its source holds: of the nodes features ``x`` and labels ``y``, one number per edge."""

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
        if known["features"] is None and score != "aggregate" and settings_for(score, {"features": None}):
            raise TadropedgeError(f"--score {score} needs a graph with node features, and '{self.name}' has none")
        if score == "column" and self.column is None:
            raise TadropedgeError(f"--score column needs --column NAME, and '{self.name}' has none")
        return settings_for(score, {name: value for name, value in known.items() if value is not None}) | given


def read_source(source: str, files: FileOptions, seed: int = 0) -> Source:
    """Read a dataset by its name, or the graph of a file, and say what was read."""
    import torch

    from tadropedge.files import read_file
    from tadropedge.lab.data.features import feature_tensor
    from tadropedge.lab.data.load import load, path_of

    if is_name(source):
        data = load(source, seed=seed, **files.given)
        nodes = {"x": data.features, "y": data.labels}
        found = Source(
            name=data.name, read=data.sizes, graph=data.graph, nodes=nodes, class_names=data.class_names
        )  # fmt: skip
    else:
        path = path_of(source)
        contents = read_file(path, **files.given)
        graph = contents.to_graph()
        if graph.num_edges == 0:
            raise TadropedgeError(f"{path.name} has no edges")
        features = None if contents.features is None else feature_tensor(contents.features)
        labels = None if contents.labels is None else torch.from_numpy(contents.labels).long()
        nodes = {name: of for name, of in (("x", features), ("y", labels)) if of is not None}
        found = Source(
            name=path.name.partition(".")[0], read=contents.read, graph=graph, class_names=contents.class_names,
            nodes={name: of for name, of in nodes.items() if len(of) == graph.num_nodes},
            column=None if contents.column is None else torch.from_numpy(contents.column),
        )  # fmt: skip
    note(f"read {source}: {found.read}")
    return found


def read_dataset(source: str, files: FileOptions, nodes: DataOptions, seed: int = 0, quiet: bool = False) -> Dataset:
    """Read data to train on, and say what was read."""
    from tadropedge.lab.data.load import load

    options = files.given if nodes.nodes is None else {**files.given, "nodes": nodes.nodes}
    data = load(
        source, split=nodes.split, per_class=nodes.per_class, seed=seed, add_edges=nodes.add_edges,
        hide_features=nodes.hide_features, **options,
    )  # fmt: skip
    if not quiet:
        note(f"read {source}: {data.read or data.sizes}")
    return data


def read_unlabelled(source: str, files: FileOptions, nodes: Path | None, features: int, seed: int = 0) -> Dataset:
    """Read data to predict on, with so many ``features``; labels may be missing."""
    from tadropedge.lab.data.contents import load_file
    from tadropedge.lab.data.load import path_of

    if is_name(source):
        return read_dataset(source, files, DataOptions(nodes=nodes), seed)
    data = load_file(path_of(source), nodes=nodes, num_features=features, **files.given)
    note(f"read {source}: {data.read}")
    return data


def is_name(source: str) -> bool:
    """Whether a source is the name of a dataset, and no file."""
    return source.lower() in DATASETS or source.lower().startswith("pyg:")
