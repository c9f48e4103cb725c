"""The recipes of the paper at the smallest size that runs: same code, toy data, two epochs."""

from __future__ import annotations

from dataclasses import replace

from tadropedge.paper.recipe import Recipe, load_recipe

FIXED = {"learning_rate": 0.01, "weight_decay": 1e-3, "dropout": 0.5, "gamma": 0.01}
SMALL = {"hidden": 8, "epochs": 3}
CHANGES = {
    "table1": {
        **SMALL,
        "trials": 2,
        "cells": {"karate": ["gcn-2", "jknet-3"], "clusters": ["incepgcn-3"]},
        "seeds": {"karate": [3, 3], "clusters": [2, 2]},
        "test_nodes": {},
        "space": {
            "learning_rate": [0.01, 0.05],
            "dropout": [0.3, 0.5],
            "keep_prob": {"uniform": [0.05, 0.95], "step": 0.05},
            "karate": {"gamma": {"log-uniform": [0.01, 1.0]}, "gcn": {"normalization": "first-order"}},
        },
    },
    "table2": {"trials": 1, "epochs": 2, "seeds": {"karate": 2}},
    "table3": {
        "graphs": dict.fromkeys(("stated", "calibrated", "scarce"), 2),
        "trials": dict.fromkeys(("stated", "calibrated", "scarce"), 2),
        "seeds": 1,
        "epochs": 2,
        "hidden": 4,
    },
    "convergence": {**SMALL, "dataset": "karate", "seeds": 3, "trial": FIXED, "laplacians": ["combinatorial"]},
    "accuracy-vs-p": {
        **SMALL,
        "dataset": "karate",
        "seeds": 3,
        "trial": FIXED,
        "keep_probs": [0.3, 0.7],
        "laplacians": ["combinatorial", "normalized"],
    },
    "inverse": {
        **SMALL,
        "datasets": ["karate", "clusters"],
        "seeds": {"karate": 3, "clusters": 3},
        "trial": {"karate": FIXED, "clusters": FIXED},
        "keep_probs": [0.3, 0.7],
    },
}
METHODS = ("original", "dropedge", "cutoff", "division", "cdf")
# Printed numbers of the toy data: one that is not reached, one that is.
PRINTED = {
    "table1": {
        "Karate": {"GCN": {"depths": [2], **{method: [1.1] for method in METHODS}}},
        "Clusters": {"IncepGCN": {"depths": [3], **{method: [0.0] for method in METHODS}}},
    },
    "table2": {
        "columns": ["Karate", "Cora"],
        **{key: [0.0, 0.8] for key in ("FastGCN", "AS-GCN", "GraphSAGE")},
        **{key: [1.5, 0.8] for key in ("NeuralSparse", "PTDNet")},
        **{f"TADropEdge-{name}": [0.9, 0.9] for name in ("GCN", "JKNet", "IncepGCN")},
    },
}


def tiny(name: str, preset: str = "quick") -> Recipe:
    """A recipe with the settings of this file in place of its own."""
    recipe = load_recipe(name, preset)
    if name not in CHANGES:
        return recipe
    settings = {**recipe.settings, **CHANGES[name]}
    return replace(recipe, settings=settings, published=PRINTED.get(name, recipe.published))
