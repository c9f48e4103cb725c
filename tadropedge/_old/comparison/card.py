"""The data of a comparison in a few numbers, for its page and for ``results.json``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tadropedge._old.typed import Count, Share

if TYPE_CHECKING:
    from tadropedge._old.data import Dataset


@dataclass(frozen=True, kw_only=True)
class DataCard:
    """Sizes, degrees, homophily and split of a dataset: ``data`` of ``results.json``.

    ``homophily`` is the share of edges whose ends have the same label, among those whose ends both have one; ``None``
    where nodes have no labels. ``samples`` counts the signals of a graph-level task, ``split`` what is trained,
    validated and tested on, and ``splits`` says how it was drawn.
    """

    name: str
    nodes: Count
    edges: Count
    components: Count
    largest_component: Count
    mean_degree: float
    median_degree: float
    largest_degree: Count
    homophily: Share | None
    classes: Count
    features: Count
    samples: Count | None
    split: Sequence[Count]
    splits: str
    measure: str


def data_card(dataset: Dataset, measure: str = "accuracy") -> DataCard:
    """What is told of a dataset.

    >>> from tadropedge._old.data import load_karate
    >>> card = data_card(load_karate())
    >>> card.nodes, card.edges, card.median_degree, card.largest_degree, round(card.homophily, 3), card.split
    (34, 78, 3.0, 17, 0.756, (8, 10, 16))
    """
    graph = dataset.graph
    degrees = graph.pairs.flatten().bincount(minlength=graph.num_nodes).double().sort().values
    middle = len(degrees) // 2
    return DataCard(
        name=dataset.name,
        nodes=graph.num_nodes,
        edges=graph.num_edges,
        components=graph.components.count,
        largest_component=graph.components.largest,
        mean_degree=2 * graph.num_edges / graph.num_nodes,
        median_degree=float(degrees[[middle, -middle - 1]].mean()),
        largest_degree=int(degrees[-1]),
        homophily=dataset.homophily,
        classes=dataset.num_classes,
        features=dataset.num_features,
        samples=dataset.labels.shape[0] if dataset.level == "graph" else None,
        split=dataset.split.sizes,
        splits=dataset.way.words,
        measure=measure,
    )
