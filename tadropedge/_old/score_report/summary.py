"""The edge scores of a graph in a page of numbers: components, eigenvalues, the knee, what each strategy protects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tadropedge._old.errors import TadropedgeError
from tadropedge._old.graph import Graph
from tadropedge._old.method import SENSITIVITY
from tadropedge._old.registry import STRATEGIES
from tadropedge._old.score_report.part import Part
from tadropedge._old.scores.solve import Scored
from tadropedge._old.strategies import auto_gamma, keep_probabilities

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
PROTECTED = 0.99  # an edge that is kept with more than this probability is protected
PLAIN = (str, int, float, type(None))  # settings that go into JSON
SHOWN = 10  # of the most critical edges


def names(graph: Graph) -> Sequence[Any]:
    """The user's own names of the nodes, else their numbers."""
    return graph.node_ids if graph.node_ids is not None else range(graph.num_nodes)


def label(score: str) -> str:
    """What a score is called in a sentence.

    >>> label("effective"), label("jaccard")
    ('effective resistance', 'the score jaccard')
    """
    return f"{score} resistance" if score in ("aggregate", "effective") else f"the score {score}"


def probabilities(
    scored: Scored, gamma: float, keep_prob: float | None = None, keep_ratio: float | None = None
) -> tuple[dict[str, Tensor], list[str]]:
    """The probability of keeping each edge under every strategy, ``[M]`` each, at ``keep_prob`` or ``keep_ratio``.

    And for each strategy that cannot keep so few edges, a line that says so.
    """
    budget = {"keep_prob": keep_prob} if keep_ratio is None else {"keep_ratio": keep_ratio}
    found, left_out = {}, []
    for name in STRATEGIES:
        weights = scored.graph if name == SENSITIVITY else scored.values
        try:
            found[name] = keep_probabilities(weights, strategy=name, gamma=gamma, **budget)
        except TadropedgeError as error:
            if keep_ratio is None or "cannot be reached" not in str(error):
                raise
            left_out.append(f"the strategy {name} is left out: {error}")
    return found, left_out


def summary(
    scored: Scored,
    name: str,
    gamma: float,
    keep: Mapping[str, Tensor],
    budget: Mapping[str, float],
    *,
    part: Part | None = None,
    spoken: Scored | None = None,
) -> dict[str, Any]:
    """Everything but the run, ready for JSON; ``budget`` is ``keep_prob`` or ``keep_ratio``.

    Strategies are those of the whole graph, on which networks train; scores, γ and the most critical edges are those of
    the ``part`` that the report speaks of, where ``spoken`` was found.
    """
    graph, components = scored.graph, scored.graph.components
    spoken = scored if spoken is None else spoken
    return {
        "graph": {
            "name": name,
            "nodes": graph.num_nodes,
            "edges": graph.num_edges,
            "weighted": graph.weight is not None,
            "components": {
                "count": components.count,
                "largest": components.largest,
                "smallest": int(components.sizes.min()),
                "isolated_nodes": components.num_isolated,
            },
        },
        **({} if part is None else {"part": _part(scored, spoken, part, gamma)}),
        "weights": {
            "kind": scored.score,
            **_distribution(spoken.values, gamma),
            **{name: value for name, value in scored.settings.items() if isinstance(value, PLAIN)},
            **(_spectrum(scored, spoken) if len(spoken.eigenvalues) else {}),
        },
        **budget,
        "strategies": {
            strategy: {"kept": float(prob.mean()), "protected": float((prob > PROTECTED).double().mean())}
            for strategy, prob in keep.items()
        },
        "most_critical": most_critical(spoken),
    }


def _part(scored: Scored, spoken: Scored, part: Part, gamma: float) -> dict[str, Any]:
    """What the report speaks of, and how much of what it calls critical lies elsewhere."""
    reach = int((scored.values >= gamma).sum()) - int((spoken.values >= gamma).sum())
    return {
        "component": part.rank,
        "words": part.words,
        "nodes": spoken.graph.num_nodes,
        "edges": spoken.graph.num_edges,
        "critical_elsewhere": reach,
        "knee_of_all": auto_gamma(scored.values),
    }


def _distribution(scores: Tensor, gamma: float) -> dict[str, Any]:
    values = scores.numpy()
    unique, copies = np.unique(values, return_counts=True)
    return {
        "knee": auto_gamma(scores),
        "gamma": gamma,
        "critical_edges": int((values >= gamma).sum()),
        "sum": float(values.sum()),
        "quantiles": {
            f"{share:g}": float(at) for share, at in zip(QUANTILES, np.quantile(values, QUANTILES), strict=True)
        },
        "zeros": float((values == 0).mean()),
        "ties": float(copies[copies > 1].sum() / len(values)),
        "distinct": len(unique),
    }


def _spectrum(scored: Scored, spoken: Scored) -> dict[str, Any]:
    """The eigenvalues of the component that is spoken of, or of the largest; the number of modes over all of them."""
    values, chosen = spoken.eigenvalues.tolist(), spoken.chosen
    own = scored.modes[scored.modes > 0]
    return {
        "solved_by": scored.solvers,
        "eigenvalues": values,
        "chosen_q": chosen,
        "gap": values[chosen] - values[chosen - 1] if chosen < len(values) else None,
        "modes": {str(count): components for count, components in sorted(Counter(own.tolist()).items())},
        "widened": int(scored.widened.sum()),
        "without_modes": int((scored.modes == 0).sum()) - scored.graph.components.num_isolated,
    }


def _largest(values: Tensor, count: int) -> Tensor:
    """The places of the largest values, falling; equal ones in their order.

    >>> _largest(torch.tensor([1.0, 3.0, 2.0, 3.0]), 3).tolist()
    [1, 3, 2]
    """
    least = values.topk(min(count, len(values))).values[-1]
    among = torch.cat(((values > least).nonzero().flatten(), (values == least).nonzero().flatten()[:count]))
    return among[torch.argsort(values[among], descending=True, stable=True)[:count]]


def most_critical(scored: Scored, shown: int = SHOWN) -> list[dict[str, Any]]:
    """The edges of largest score, by the user's own names."""
    called = names(scored.graph)
    order = _largest(scored.values, shown)
    ends, values = scored.graph.pairs[:, order].tolist(), scored.values[order].tolist()
    return [
        {"source": called[low], "target": called[high], "weight": value}
        for low, high, value in zip(*ends, values, strict=True)
    ]
