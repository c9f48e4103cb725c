"""Graphs with known clusters, and how well aggregate resistance tells the edges between clusters from those inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from tadropedge._old.data.synthetic import connected_block_model
from tadropedge._old.diagnostics import low_modes
from tadropedge._old.graph import Graph
from tadropedge._old.paper.journal import Journal
from tadropedge._old.paper.judge import Array, ranking
from tadropedge._old.paper.rows import OPTIONAL, Row
from tadropedge._old.scores.aggregate import aggregate_resistance


@dataclass(frozen=True, eq=False)
class Clustered:
    """A graph and the cluster of each node ``[N]``."""

    graph: Graph
    clusters: Tensor

    @property
    def q(self) -> int:
        """The number of clusters."""
        return int(self.clusters.max()) + 1

    @property
    def between(self) -> Tensor:
        """Which edges join two clusters, bool ``[M]``."""
        low, high = self.clusters[self.graph.pairs]
        joins: Tensor = low != high
        return joins


def clustered(settings: Mapping[str, Any], seed: int) -> Clustered:
    """A connected stochastic block model: ``clusters`` of ``nodes`` nodes, links ``inside`` and ``between`` them.

    >>> made = clustered({"clusters": 3, "nodes": 10, "inside": 0.6, "between": 0.02}, seed=1)
    >>> made.graph.num_nodes, made.q, made.graph.components.count
    (30, 3, 1)
    """
    label = np.repeat(np.arange(settings["clusters"]), settings["nodes"])
    random = np.random.default_rng([seed, 2])
    graph = connected_block_model(label, settings["inside"], settings["between"], random)
    return Clustered(graph, torch.from_numpy(label))


@dataclass(frozen=True, eq=False)
class Spectrum:
    """What Figure 1 shows: the eigenvalues ``[N]``, the q lowest modes ``[N, q]`` and the edge scores ``[M]``."""

    values: Array
    modes: Array
    scores: Array


def spectrum(made: Clustered) -> Spectrum:
    """Decompose the Laplacian and score the edges, with q the number of clusters."""
    values, modes = low_modes(made.graph, made.q)
    return Spectrum(values.numpy(), modes.numpy(), aggregate_resistance(made.graph, made.q).numpy())


@dataclass(frozen=True, kw_only=True)
class Contrast(Row):
    """One graph: where the largest gap of the first eigenvalues is, how uniform modes are, how scores rank edges.

    ``uniform`` is the share of the variance of modes 1 … q − 1 that lies between clusters, 1 when each is constant on
    each cluster; ``top`` is the share of edges between clusters among as many of the largest scores.
    """

    clusters: Annotated[int | None, OPTIONAL] = None
    graph: int
    nodes: int
    edges: int
    between: int
    eigenvalues: tuple[float, ...]
    gap_after: int
    gap: float
    largest_other_gap: float
    uniform: float
    auc: float
    top: float
    median_between: float
    median_inside: float


def kept_contrast(
    journal: Journal, part: str, number: int, made: Clustered, shown: int, clusters: int | None = None
) -> Contrast:
    """What :func:`contrast` measures of one graph, as a piece of the journal."""
    data = [made.graph.fingerprint, made.clusters]
    return journal.row(
        f"{part}/{number}", data, Contrast, lambda: contrast(number, made, spectrum(made), shown, clusters)
    )


def contrast(number: int, made: Clustered, found: Spectrum, shown: int, clusters: int | None = None) -> Contrast:
    """Measure one graph by its first ``shown`` eigenvalues, its modes and its scores."""
    between = made.between.numpy()
    gaps = np.diff(found.values[:shown])
    label = made.clusters.numpy()
    modes = found.modes[:, 1:]
    means = np.stack([modes[label == cluster].mean(axis=0) for cluster in range(made.q)])
    largest = np.argsort(-found.scores, kind="stable")[: int(between.sum())]
    return Contrast(
        clusters=clusters,
        graph=number,
        nodes=made.graph.num_nodes,
        edges=made.graph.num_edges,
        between=int(between.sum()),
        eigenvalues=tuple((found.values[:shown].round(12) + 0.0).tolist()),  # no −0
        gap_after=int(gaps.argmax()),
        gap=float(found.values[made.q] - found.values[made.q - 1]),
        largest_other_gap=float(np.delete(gaps, made.q - 1).max()),
        uniform=float((means[label] ** 2).sum() / (modes**2).sum()),
        auc=ranking(found.scores, between),
        top=float(between[largest].mean()),
        median_between=float(np.median(found.scores[between])),
        median_inside=float(np.median(found.scores[~between])),
    )
