"""The names of networks, datasets and measures, and what they stand for; see :mod:`tadropedge.registry`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tadropedge.registry import Registry

if TYPE_CHECKING:
    from tadropedge.lab.networks.network import Network

NETWORKS: Registry[type[Network]] = Registry(
    "network",
    {
        "gcn": "tadropedge.lab.networks.gcn:GCN",
        "jknet": "tadropedge.lab.networks.gcn:JKNet",
        "incepgcn": "tadropedge.lab.networks.gcn:IncepGCN",
        "resgcn": "tadropedge.lab.networks.gcn:ResGCN",
        "gcnii": "tadropedge.lab.networks.deep:GCNII",
        "appnp": "tadropedge.lab.networks.deep:APPNP",
        "gat": "tadropedge.lab.networks.gat:GAT",
        "sage": "tadropedge.lab.networks.gcn:SAGE",
        "mlp": "tadropedge.lab.networks.gcn:MLP",
    },
)

DATASETS: Registry[Callable[..., Any]] = Registry(
    "dataset",
    {
        "karate": "tadropedge.lab.data.synthetic:karate",
        "clusters": "tadropedge.lab.data.synthetic:clusters",
        "noisy-clusters": "tadropedge.lab.data.synthetic:noisy_clusters",
        "roads": "tadropedge.lab.data.synthetic:roads",
        "dense": "tadropedge.lab.data.synthetic:dense",
        "cora": "tadropedge.lab.data.pyg:cora",
        "citeseer": "tadropedge.lab.data.pyg:citeseer",
        "pubmed": "tadropedge.lab.data.pyg:pubmed",
    },
)

MEASURES: Registry[Callable[..., Any]] = Registry(
    "measure",
    {
        "accuracy": "tadropedge.lab.training.measures:accuracy",
        "roc-auc": "tadropedge.lab.training.measures:roc_auc",
        "macro-f1": "tadropedge.lab.training.measures:macro_f1",
    },
)
