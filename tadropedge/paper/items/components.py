"""The disjoint components of the three citation sets, measured beside printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tadropedge.data.planetoid import NAMES
from tadropedge.graph import Graph
from tadropedge.paper.item import Bench, Item, Verdict
from tadropedge.paper.judge import counted

COLUMNS = ("components", "largest", "smallest")


def run(bench: Bench) -> Item:
    """Count the components of each dataset, and the nodes of the largest and the smallest."""
    rows, verdicts = [], []
    for place, name in enumerate(bench.recipe["datasets"]):
        bench.report("components", place, len(bench.recipe["datasets"]))
        dataset = bench.dataset(name)
        row = measured(dataset.graph)
        printed = bench.recipe.published[NAMES[name]]
        rows.append(
            {"dataset": name, **row, **{f"printed_{key}": value for key, value in zip(COLUMNS, printed, strict=True)}}
        )
        verdicts += judge(row, printed, NAMES[name])
    notes = [
        "CiteSeer's isolated nodes are components of one node each, as in the printed smallest component.",
        "Self-loops join nothing: with or without them the components are the same.",
    ]
    return Item(rows, verdicts, notes=notes)


def measured(graph: Graph) -> dict[str, Any]:
    """The components of a graph, counted in two ways."""
    components = graph.components
    return {
        "components": components.count,
        "largest": components.largest,
        "smallest": int(components.sizes.min()),
        "isolated": components.num_isolated,
        "pairs_of_nodes": int((components.sizes == 2).sum()),
        "by_spreading": spread(graph),
    }


def spread(graph: Graph) -> int:
    """The number of components by another way: nodes take the lowest number among their neighbours until none does.

    >>> spread(Graph.from_edge_index([[0, 3], [1, 4]], num_nodes=6))
    4
    """
    low, high = graph.pairs
    label = torch.arange(graph.num_nodes, device=graph.device)
    while True:
        least = torch.minimum(label[low], label[high])
        other = label.scatter_reduce(0, low, least, "amin").scatter_reduce(0, high, least, "amin")
        if bool((other == label).all()):
            return int(label.unique().shape[0])
        label = other


def judge(row: Mapping[str, Any], printed: Sequence[int], name: str) -> list[Verdict]:
    """The number of components, and the sizes of the largest and the smallest."""
    count, largest, smallest = (row[key] for key in COLUMNS)
    how = f"{count:,} components, by SciPy's search and by spreading labels alike"
    if row["by_spreading"] != count:
        how = f"{count:,} components by SciPy's search, but {row['by_spreading']:,} by spreading labels"
    how += f"; {row['isolated']} of them are isolated nodes" if row["isolated"] else ""
    return [
        counted(f"{name} has {printed[0]:,} disjoint components", count, printed[0], how),
        counted(
            f"{name}'s components have from {printed[2]:,} to {printed[1]:,} nodes",
            [smallest, largest],
            [printed[2], printed[1]],
            f"from {smallest:,} to {largest:,} nodes",
        ),
    ]
