"""Every name that a user can give, and what it stands for: scores, rules, networks, datasets, measures.

Adding a function to a registry, here or from your own module, makes it usable everywhere: in Python, in PyTorch
Geometric, in ``compare``, ``train`` and ``weights``, and in reports. An entry written as ``"module:name"`` is imported
when it is first used, so names can be listed and typos reported before torch is loaded.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tadropedge._old.checks import check_function
from tadropedge._old.errors import TadropedgeError, show

if TYPE_CHECKING:
    from torch import Tensor

    from tadropedge._old.data.dataset import Dataset
    from tadropedge._old.nn.network import Network

T = TypeVar("T")

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
# What an entry must be: how it is called, and with how many arguments besides settings of its own.
SIGNATURES = {
    "score": ("score(graph, **settings) -> [M]", 1),
    "strategy": ("rule(weights [M]) -> [M], with gamma or keep_ratio as further arguments where it needs them", 1),
    "dataset": ("load(seed, **options) -> Dataset", 0),
    "measure": ("measure(logits [T, N, C], labels [N], mask [T, N]) -> [T]", 3),
}
NETWORK_METHODS = ("completed", "shapes", "training", "evaluation")
RESERVED = ("inverse", "original", "dropedge", "dropsens", "auto")  # words of the grammar of methods


class Registry(MutableMapping[str, T], Generic[T]):
    """Names of one ``kind`` of thing.

    >>> scores = Registry("score", {"path": "os.path:join"})
    >>> scores["strength"] = len
    >>> list(scores), scores["path"].__name__
    (['path', 'strength'], 'join')
    >>> scores["My score"] = len
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: the name of a score must be lowercase letters, digits and hyphens, got 'My score'
    """

    def __init__(self, kind: str, entries: Mapping[str, T | str]) -> None:
        self.kind = kind
        self._entries: dict[str, T | str] = dict(entries)

    def __getitem__(self, name: str) -> T:
        entry = self._entries[name]
        if isinstance(entry, str):
            module, _, attribute = entry.partition(":")
            entry = self._entries[name] = getattr(importlib.import_module(module), attribute)
        return entry

    def __setitem__(self, name: str, entry: T) -> None:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            told = show(name, typed=False)
            raise TadropedgeError(
                f"the name of a {self.kind} must be lowercase letters, digits and hyphens, got {told}"
            )
        if name.split("-")[0] in RESERVED:
            raise TadropedgeError(f"the name of a {self.kind} cannot begin with {name.split('-')[0]!r}, got {name!r}")
        if name.endswith("-inverse"):
            raise TadropedgeError(f"the name of a {self.kind} cannot end with 'inverse', got {name!r}")
        for other in (SCORES, STRATEGIES, NETWORKS):
            if name in other and other is not self and self.kind != "dataset":
                raise TadropedgeError(f"{name!r} is the name of a {other.kind} already: the {self.kind} needs another")
        if self.kind == "network":
            if not isinstance(entry, type) or not all(hasattr(entry, method) for method in NETWORK_METHODS):
                raise TadropedgeError(
                    f"the network {name!r} must be a class, a Network of tadropedge, got {show(entry)}"
                )
        else:
            wanted, arguments = SIGNATURES.get(self.kind, ("", 0))
            check_function(f"the {self.kind} {name!r}", entry, wanted, arguments, settings=True)
        self._entries[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries  # without importing it

    def __repr__(self) -> str:
        return f"Registry({self.kind!r}: {', '.join(self)})"


SCORES: Registry[Callable[..., Any]] = Registry(
    "score",
    {
        "aggregate": "tadropedge._old.scores.aggregate:aggregate",
        "effective": "tadropedge._old.scores.effective:effective",
        "degree": "tadropedge._old.scores.degree:degree",
        "jaccard": "tadropedge._old.scores.jaccard:jaccard",
        "common-neighbours": "tadropedge._old.scores.jaccard:common_neighbours",
        "forman": "tadropedge._old.scores.curvature:forman",
        "cosine": "tadropedge._old.scores.similarity:cosine",
        "local-degree": "tadropedge._old.scores.local:local_degree",
        "local-similarity": "tadropedge._old.scores.local:local_similarity",
        "pagerank": "tadropedge._old.scores.centrality:pagerank",
        "eigenvector": "tadropedge._old.scores.centrality:eigenvector",
        "column": "tadropedge._old.scores.column:column",
    },
)

STRATEGIES: Registry[Callable[..., Tensor]] = Registry(
    "strategy",
    {
        "uniform": "tadropedge._old.strategies:uniform",
        "cutoff": "tadropedge._old.strategies:cutoff",
        "division": "tadropedge._old.strategies:division",
        "cdf": "tadropedge._old.strategies:cdf",
        "proportional": "tadropedge._old.strategies:proportional",
        "dropsens": "tadropedge._old.strategies:dropsens",
    },
)

NETWORKS: Registry[type[Network]] = Registry(
    "network",
    {
        "gcn": "tadropedge._old.nn.backbones:GCN",
        "jknet": "tadropedge._old.nn.backbones:JKNet",
        "incepgcn": "tadropedge._old.nn.backbones:IncepGCN",
        "resgcn": "tadropedge._old.nn.residual:ResGCN",
        "gcnii": "tadropedge._old.nn.restarts:GCNII",
        "appnp": "tadropedge._old.nn.restarts:APPNP",
        "sage": "tadropedge._old.nn.sage:SAGE",
        "mlp": "tadropedge._old.nn.mlp:MLP",
        "gat": "tadropedge._old.nn.gat:GAT",
        "gcnn": "tadropedge._old.nn.filters:FilterNetwork",
        "graphsage": "tadropedge._old.nn.graphsage:GraphSAGE",
        "fastgcn": "tadropedge._old.nn.fastgcn:FastGCN",
        "as-gcn": "tadropedge._old.nn.as_gcn:ASGCN",
        "neuralsparse": "tadropedge._old.nn.neuralsparse:NeuralSparse",
        "ptdnet": "tadropedge._old.nn.ptdnet:PTDNet",
    },
)

DATASETS: Registry[Callable[..., Dataset]] = Registry(
    "dataset",
    {
        "cora": "tadropedge._old.data.planetoid:cora",
        "citeseer": "tadropedge._old.data.planetoid:citeseer",
        "pubmed": "tadropedge._old.data.planetoid:pubmed",
        "source-localization": "tadropedge._old.data.source_localization:load_source_localization",
        "karate": "tadropedge._old.data.synthetic:load_karate",
        "clusters": "tadropedge._old.data.synthetic:load_clusters",
        "noisy-clusters": "tadropedge._old.data.synthetic:load_noisy_clusters",
        "grid": "tadropedge._old.data.planar:load_grid",
        "roads": "tadropedge._old.data.planar:load_roads",
    },
)

MEASURES: Registry[Callable[[Tensor, Tensor, Tensor], Tensor]] = Registry(
    "measure",
    {
        "accuracy": "tadropedge._old.training.measures:accuracy",
        "roc-auc": "tadropedge._old.training.measures:roc_auc",
        "macro-f1": "tadropedge._old.training.measures:macro_f1",
    },
)
