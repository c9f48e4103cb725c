"""Settings of a rule, checked where they are written and not when data arrives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from tadropedge._old.checks import check_flag, check_numbers
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.forest import ForestPlan
from tadropedge._old.graph import Graph
from tadropedge._old.pyg.once import Once
from tadropedge._old.sampling import check_connected
from tadropedge._old.strategies import check_rule, dropsens, keep_probabilities

SMALL = 64  # edges; with fewer, a budget may be out of reach for reasons that are nobody's mistake


def looks_at_degrees(strategy: object) -> bool:
    """Whether a strategy takes the graph instead of scores.

    >>> looks_at_degrees("dropsens"), looks_at_degrees("cdf")
    (True, False)
    """
    return check_rule(strategy) is dropsens


def check_probability_settings(settings: Mapping[str, Any]) -> None:
    """Refuse what :func:`tadropedge.keep_probabilities` would refuse for every graph; here all are single numbers.

    >>> check_probability_settings({"strategy": "cdf", "keep_prob": [0.5, 0.6]})
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: keep_prob must be a single number here, got a vector
    """
    by_degree = looks_at_degrees(settings["strategy"])
    check_flag("inverse", settings.get("inverse", False))
    for name in ("keep_prob", "keep_ratio", "gamma"):
        value = settings.get(name)
        if value is not None and not isinstance(value, str) and check_numbers(name, value).dim():
            raise TadropedgeError(f"{name} must be a single number here, got a vector")
    # A trial on two edges. Whether a share can be kept depends on the graph, so its range is looked at apart.
    keep_prob, keep_ratio = settings.get("keep_prob"), settings.get("keep_ratio")
    budget = {} if keep_ratio is None or keep_prob is not None else {"keep_ratio": 1.0}
    two_edges = Graph.from_edge_index([[0, 1], [1, 2]]) if by_degree else torch.tensor([0.5, 1.0])
    keep_probabilities(two_edges, **{**settings, **budget})
    if keep_ratio is not None:
        keep_probabilities(torch.ones(1), strategy="uniform", keep_prob=keep_prob, keep_ratio=keep_ratio)


def probabilities(weights: Tensor | Graph, settings: Mapping[str, Any], *, among_many: bool, once: Once) -> Tensor:
    """:func:`tadropedge.keep_probabilities`, but a budget that a small graph cannot meet is no error, ``[M]``.

    With few edges, or many equal scores, the rules of the paper keep more than a ``keep_ratio`` that suits other
    graphs. Then equal scores get the ratio itself, and else the graph keeps the least that its rule allows, p = 0. This
    holds for graphs with fewer than 64 edges, and for all that are ``among_many``.

    >>> equal, once = torch.ones(4), Once()
    >>> probabilities(equal, {"strategy": "cdf", "keep_ratio": 0.6}, among_many=False, once=once).tolist()
    [0.6, 0.6, 0.6, 0.6]
    """
    try:
        return keep_probabilities(weights, **settings)
    except TadropedgeError:
        edges = weights.num_edges if isinstance(weights, Graph) else len(weights)
        ratio = settings.get("keep_ratio")
        if ratio is None or not (among_many or edges < SMALL):
            raise
        least = keep_probabilities(weights, **{**settings, "keep_ratio": None, "keep_prob": 0.0})
        if not float(ratio) < float(least.mean()):
            raise
    if bool((least == least[0]).all()):
        return torch.full_like(least, float(ratio))
    called = getattr(settings["strategy"], "__name__", settings["strategy"])
    once.warn(
        "budget",
        f"keep_ratio={float(ratio):g} cannot be reached with {called} on a graph of {edges} edges, which keeps its "
        f"least, {float(least.mean()):.3g} of them; so does every other such graph, without a further warning. The "
        "strategy 'proportional' meets every ratio",
    )
    return least


def check_forest(forest: ForestPlan, prob: Tensor, *, among_many: bool, once: Once) -> None:
    """Refuse budgets below the spanning forest; small graphs and those ``among_many`` keep their forest instead."""
    try:
        check_connected(forest, prob)
    except TadropedgeError as error:
        if not (among_many or prob.shape[-1] < SMALL):
            raise
        once.warn("forest", f"{error}: this graph keeps its forest, and so does every other such graph")
