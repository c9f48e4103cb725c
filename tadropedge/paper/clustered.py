"""Graphs with known clusters, and how well aggregate resistance tells the edges between clusters from those inside."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge.data.block_model import connected_block_model
from tadropedge.diagnostics import low_modes
from tadropedge.errors import RepeatedEigenvalueWarning
from tadropedge.graph import Graph
from tadropedge.paper.judge import ranking
from tadropedge.scores.aggregate import aggregate_resistance


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


def resistance(graph: Graph, q: int, laplacian: str = "combinatorial", cache_dir: Path | None = None) -> Tensor:
    """Aggregate resistance; that q may fall inside a repeated eigenvalue is said in the notes of an item, not here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepeatedEigenvalueWarning)
        return aggregate_resistance(graph, q, laplacian=laplacian, cache_dir=cache_dir)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """What Figure 1 shows: the eigenvalues ``[N]``, the q lowest modes ``[N, q]`` and the edge weights ``[M]``."""

    values: npt.NDArray[np.float64]
    modes: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]


def spectrum(made: Clustered) -> Spectrum:
    """Decompose the Laplacian and weigh the edges, with q the number of clusters."""
    values, modes = low_modes(made.graph, made.q)
    return Spectrum(values.numpy(), modes.numpy(), resistance(made.graph, made.q).numpy())


def contrast(made: Clustered, found: Spectrum, shown: int) -> dict[str, Any]:
    """One row: where the largest gap of the first ``shown`` eigenvalues is, how uniform modes are, how weights rank.

    ``uniform`` is the share of the variance of modes 1 … q − 1 that lies between clusters, 1 when each is constant on
    each cluster; ``top`` is the share of edges between clusters among as many of the largest weights.
    """
    between = made.between.numpy()
    gaps = np.diff(found.values[:shown])
    label = made.clusters.numpy()
    modes = found.modes[:, 1:]
    means = np.stack([modes[label == cluster].mean(axis=0) for cluster in range(made.q)])
    largest = np.argsort(-found.weights, kind="stable")[: int(between.sum())]
    return {
        "nodes": made.graph.num_nodes,
        "edges": made.graph.num_edges,
        "between": int(between.sum()),
        "eigenvalues": (found.values[:shown].round(12) + 0.0).tolist(),  # no −0
        "gap_after": int(gaps.argmax()),
        "gap": float(found.values[made.q] - found.values[made.q - 1]),
        "largest_other_gap": float(np.delete(gaps, made.q - 1).max()),
        "uniform": float((means[label] ** 2).sum() / (modes**2).sum()),
        "auc": ranking(found.weights, between),
        "top": float(between[largest].mean()),
        "median_between": float(np.median(found.weights[between])),
        "median_inside": float(np.median(found.weights[~between])),
    }
