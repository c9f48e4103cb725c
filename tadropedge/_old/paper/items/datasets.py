"""The statistics of the three citation sets, measured beside printed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from tadropedge._old.data.dataset import Dataset
from tadropedge._old.paper.item import Bench, Item, Verdict
from tadropedge._old.paper.journal import Journal
from tadropedge._old.paper.judge import judged
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import Column, Row, title
from tadropedge._old.training.laboratory import data_fingerprints
from tadropedge._old.typed import build

Split = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What the paper prints of a dataset."""

    nodes: int
    edges: int
    classes: int
    features: int
    split: Split


@dataclass(frozen=True, kw_only=True)
class Statistics(Row):
    """One dataset; ``listed`` is half the number of entries of the neighbour lists."""

    dataset: str
    nodes: int
    edges: int
    listed: int
    listed_twice: int
    self_loops: int
    classes: int
    features: int
    split: Split
    unlabelled: int
    printed: Annotated[Tally, Column("printed", inlined=True)]


ROWS = (Statistics,)


def run(bench: Bench) -> Item:
    """Count nodes, edges, classes, features and the split of each dataset."""
    journal, rows = Journal(bench), []
    for name in bench.each("datasets", bench.recipe["datasets"]):
        printed = build(Tally, bench.recipe.published[title(name)], f"published.{title(name)}")
        dataset = bench.dataset(name)
        data = {**data_fingerprints(dataset), "listed": dataset.graph.arc_pair}
        rows.append(journal.row(name, data, Statistics, partial(measured, dataset, printed)))
    verdicts = [verdict for row in rows for verdict in judge(row, bench.recipe)]
    return Item(rows, verdicts, notes=bench.recipe.said(), run=journal.run)


def measured(dataset: Dataset, printed: Tally) -> Statistics:
    """One row of the table."""
    graph = dataset.graph
    loops = int((graph.arc_pair < 0).sum()) // 2
    listed = graph.arc_pair.shape[0] // 2
    return Statistics(
        dataset=dataset.name,
        nodes=graph.num_nodes,
        edges=graph.num_edges,
        listed=listed,
        listed_twice=listed - loops - graph.num_edges,
        self_loops=loops,
        classes=dataset.num_classes,
        features=dataset.num_features,
        split=dataset.split.sizes,
        unlabelled=int((dataset.labels < 0).sum()),
        printed=printed,
    )


def judge(row: Statistics, recipe: Recipe) -> list[Verdict]:
    """Three claims for each dataset: its size, its edges, its split."""
    printed, (train, val, test) = row.printed, row.split
    sizes, stated = ((one.nodes, one.classes, one.features) for one in (row, printed))
    twice = f"; {printed.edges:,} counts {row.listed_twice} of them twice, as the files list them, and "
    bare = f", {row.unlabelled} without features and label," if row.unlabelled else ""
    numbers = {
        "name": title(row.dataset),
        "row": row,
        "listed": f"{twice}{row.self_loops} self-loops" if row.listed == printed.edges != row.edges else "",
        "stated": "/".join(f"{part:,}" for part in printed.split),
        "split": f"of {row.nodes:,} nodes{bare} {val:,} and {test:,}",
        "found": f"{train:,}/{val:,}/{test:,}",
        "left": row.nodes - row.unlabelled - val - test,
    }
    return [
        judged(recipe, "sizes", sizes == stated or None, **numbers),
        judged(recipe, "edges", row.edges == printed.edges or None, **numbers),
        judged(recipe, "split", row.split == printed.split or None, **numbers),
    ]
