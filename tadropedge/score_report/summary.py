"""The weights of a graph in a page of numbers: components, eigenvalues, the knee, what each strategy protects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tadropedge.graph import Graph
from tadropedge.registry import STRATEGIES
from tadropedge.score_report.weigh import Weighing
from tadropedge.strategies import auto_gamma, keep_probabilities

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
PROTECTED = 0.99  # an edge that is kept with more than this probability is protected
SHOWN = 10  # of the most critical edges


def names(graph: Graph) -> Sequence[Any]:
    """The user's own names of the nodes, else their numbers."""
    return graph.node_ids if graph.node_ids is not None else range(graph.num_nodes)


def knee(weights: Tensor, gamma: float | None) -> float:
    """γ as given, else at the sudden rise of the weights."""
    return auto_gamma(weights) if gamma is None else gamma


def probabilities(weights: Tensor, keep_prob: float, gamma: float) -> dict[str, Tensor]:
    """The probability of keeping each edge under every strategy, ``[M]`` each."""
    return {name: keep_probabilities(weights, keep_prob=keep_prob, strategy=name, gamma=gamma) for name in STRATEGIES}


def summary(weighing: Weighing, name: str, gamma: float, keep: dict[str, Tensor], keep_prob: float) -> dict[str, Any]:
    """Everything but the run, ready for JSON."""
    return {
        "graph": {"name": name, **_graph(weighing)},
        "weights": _weights(weighing, gamma),
        "keep_prob": keep_prob,
        "strategies": {
            strategy: {
                "kept": float(prob.mean()),
                "protected": float((prob > PROTECTED).double().mean()),
            }
            for strategy, prob in keep.items()
        },
        "most_critical": most_critical(weighing),
    }


def _graph(weighing: Weighing) -> dict[str, Any]:
    graph, components = weighing.graph, weighing.graph.components
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "weighted": graph.weight is not None,
        "components": {
            "count": components.count,
            "largest": components.largest,
            "smallest": int(components.sizes.min()),
            "isolated_nodes": components.num_isolated,
        },
    }


def _weights(weighing: Weighing, gamma: float) -> dict[str, Any]:
    weights, request = weighing.weights, weighing.request
    values = weights.numpy()
    unique, copies = np.unique(values, return_counts=True)
    found = {
        "kind": request.kind,
        "knee": auto_gamma(weights),
        "gamma": gamma,
        "critical_edges": int((values >= gamma).sum()),
        "sum": float(values.sum()),
        "quantiles": {f"{share:g}": float(np.quantile(values, share)) for share in QUANTILES},
        "zeros": float((values == 0).mean()),
        "ties": float(copies[copies > 1].sum() / len(values)),
        "distinct": len(unique),
    }
    if request.kind == "effective":
        return found | {"relative_error": request.relative_error, "seed": request.seed}
    return found | {
        "laplacian": request.laplacian,
        "q": request.q,
        "desired_clusters": request.desired_clusters,
        "tolerance": request.tolerance,
        "solver": request.solver,
        "solved_by": weighing.solvers,
        **_spectrum(weighing),
    }


def _spectrum(weighing: Weighing) -> dict[str, Any]:
    """The largest component's eigenvalues, and the number of modes over all components."""
    values, chosen = weighing.eigenvalues.tolist(), weighing.chosen
    own = weighing.modes[weighing.modes > 0]
    return {
        "eigenvalues": values,
        "chosen_q": chosen,
        "gap": values[chosen] - values[chosen - 1] if chosen < len(values) else None,
        "modes": {str(count): components for count, components in sorted(Counter(own.tolist()).items())},
        "widened": int(weighing.widened.sum()),
        "without_modes": int((weighing.modes == 0).sum()) - weighing.graph.components.num_isolated,
    }


def most_critical(weighing: Weighing) -> list[dict[str, Any]]:
    """The edges of largest weight, by the user's own names."""
    called = names(weighing.graph)
    order = torch.argsort(weighing.weights, descending=True, stable=True)[:SHOWN]
    return [
        {"source": called[low], "target": called[high], "weight": weight}
        for low, high, weight in zip(
            *weighing.graph.pairs[:, order].tolist(), weighing.weights[order].tolist(), strict=True
        )
    ]
