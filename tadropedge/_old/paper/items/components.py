"""The disjoint components of the three citation sets, measured beside printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch

from tadropedge._old.graph import Graph
from tadropedge._old.paper.item import Bench, Item, Verdict
from tadropedge._old.paper.journal import Journal
from tadropedge._old.paper.judge import judged
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import Row, title


@dataclass(frozen=True, kw_only=True)
class Counts(Row):
    """The components of one dataset, counted in two ways, and the sizes of the largest and the smallest."""

    dataset: str
    components: int
    largest: int
    smallest: int
    isolated: int
    pairs_of_nodes: int
    by_spreading: int
    printed_components: int
    printed_largest: int
    printed_smallest: int


ROWS = (Counts,)


def run(bench: Bench) -> Item:
    """Count the components of each dataset, and the nodes of the largest and the smallest."""
    recipe, journal, rows = bench.recipe, Journal(bench), []
    for name in bench.each("components", recipe["datasets"]):
        graph = bench.dataset(name).graph
        counted = partial(measured, name, graph, recipe.published[title(name)])
        rows.append(journal.row(name, graph.fingerprint, Counts, counted))
    verdicts = [verdict for row in rows for verdict in judge(row, recipe)]
    return Item(rows, verdicts, notes=recipe.said(), run=journal.run)


def measured(name: str, graph: Graph, printed: Sequence[int]) -> Counts:
    """One row; printed are the number of components and the sizes of the largest and the smallest."""
    components = graph.components
    return Counts(
        dataset=name,
        components=components.count,
        largest=components.largest,
        smallest=int(components.sizes.min()),
        isolated=components.num_isolated,
        pairs_of_nodes=int((components.sizes == 2).sum()),
        by_spreading=spread(graph),
        printed_components=printed[0],
        printed_largest=printed[1],
        printed_smallest=printed[2],
    )


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


def judge(row: Counts, recipe: Recipe) -> list[Verdict]:
    """The number of components, and the sizes of the largest and the smallest."""
    how = " by SciPy's search and by spreading labels alike"
    if row.by_spreading != row.components:
        how = f" by SciPy's search, but {row.by_spreading:,} by spreading labels"
    how += f"; {row.isolated} of them are isolated nodes" if row.isolated else ""
    sizes = (row.smallest, row.largest) == (row.printed_smallest, row.printed_largest)
    name = title(row.dataset)
    return [
        judged(recipe, "count", row.components == row.printed_components or None, name=name, row=row, how=how),
        judged(recipe, "sizes", sizes or None, name=name, row=row),
    ]
