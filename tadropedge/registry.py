"""The names of scores, rules, uses and options, and the functions that they stand for.

Adding a function here, or from your own module, makes it usable everywhere: ``SCORES["strength"] = strength``. An entry
written as ``"module:name"`` is imported when it is first used, so names can be listed before torch is loaded.
"""

from __future__ import annotations

import importlib
import re
from collections import UserDict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tadropedge.errors import TadropedgeError, show

T = TypeVar("T")

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
RESERVED = ("inverse", "original", "dropedge", "auto")  # words of the grammar of methods


class Registry(UserDict[str, T]):
    """Names of one ``kind`` of thing.

    >>> scores = Registry("score", {"path": "os.path:join"})
    >>> scores["strength"] = len
    >>> list(scores), scores["path"].__name__
    (['path', 'strength'], 'join')
    >>> scores["My score"] = len
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: the name of a score must be lowercase letters, digits and hyphens, got 'My score'
    """

    def __init__(self, kind: str, entries: Mapping[str, T | str]) -> None:
        self.kind = kind
        self.data: dict[str, Any] = dict(entries)

    def __getitem__(self, name: str) -> T:
        entry = self.data[name]
        if isinstance(entry, str):
            module, _, attribute = entry.partition(":")
            entry = self.data[name] = getattr(importlib.import_module(module), attribute)
        return entry  # type: ignore[no-any-return]

    def __setitem__(self, name: str, entry: T) -> None:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            got = show(name, typed=False)
            raise TadropedgeError(f"the name of a {self.kind} must be lowercase letters, digits and hyphens, got {got}")
        if name.partition("-")[0] in RESERVED:
            raise TadropedgeError(f"the name of a {self.kind} cannot begin with {name.split('-')[0]!r}, got {name!r}")
        if not callable(entry):
            raise TadropedgeError(f"the {self.kind} {name!r} must be a function, got {show(entry)}")
        self.data[name] = entry

    def __repr__(self) -> str:
        return f"Registry({self.kind!r}: {', '.join(self)})"


SCORES: Registry[Callable[..., Any]] = Registry(
    "score",
    {
        "aggregate": "tadropedge.scores.aggregate:aggregate",
        "effective": "tadropedge.scores.effective:effective",
        "degree": "tadropedge.scores.degree:degree",
        "jaccard": "tadropedge.scores.jaccard:jaccard",
        "common-neighbours": "tadropedge.scores.jaccard:common_neighbours",
        "forman": "tadropedge.scores.curvature:forman",
        "cosine": "tadropedge.scores.cosine:cosine",
        "local-degree": "tadropedge.scores.local:local_degree",
        "local-similarity": "tadropedge.scores.local:local_similarity",
        "pagerank": "tadropedge.scores.centrality:pagerank",
        "eigenvector": "tadropedge.scores.centrality:eigenvector",
        "dropsens": "tadropedge.scores.dropsens:dropsens",
        "column": "tadropedge.scores.column:column",
    },
)

RULES: Registry[Callable[..., Any]] = Registry(
    "rule",
    {
        "uniform": "tadropedge.rules:uniform",
        "cutoff": "tadropedge.rules:cutoff",
        "division": "tadropedge.rules:division",
        "cdf": "tadropedge.rules:cdf",
        "proportional": "tadropedge.rules:proportional",
        "floor": "tadropedge.rules:floor",
    },
)

USES: Registry[Callable[..., Any]] = Registry(
    "use",
    {
        "dropped": "tadropedge.uses:dropped",
        "weighted": "tadropedge.uses:weighted",
        "pruned": "tadropedge.uses:pruned",
        "expected": "tadropedge.uses:expected",
    },
)

OPTIONS: Registry[Callable[..., Any]] = Registry(
    "option",
    {
        "connected": "tadropedge.options:connected",
        "exact": "tadropedge.options:exact",
        "unbiased": "tadropedge.options:unbiased",
    },
)
