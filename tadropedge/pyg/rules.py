"""Settings of a rule, checked where they are written and not when data arrives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tadropedge.checks import check_flag, check_numbers
from tadropedge.errors import TadropedgeError
from tadropedge.graph import Graph
from tadropedge.strategies import check_rule, dropsens, keep_probabilities


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
    tadropedge.errors.TadropedgeError: keep_prob must be a single number here, got a vector
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
