"""A made-up map of regimes, as plausible as a measured one: cells of every kind, and rows in every state.

Gains are a function of the condition: scores of shared neighbours find random edges where a graph is clustered, degree
scores help at low budgets, dropping helps deep networks a little, and elsewhere nothing can be told apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tadropedge.comparison.card import DataCard
from tadropedge.regimes.results import BASE, JUDGED, OUT_OF_REACH, MapCell, MapRow, MapTest, RegimeMap

# Nodes, edges, classes, edge homophily, accuracy of the base setting.
DATASETS = {
    "cora": (2708, 5278, 7, 0.81, 0.815),
    "citeseer": (3327, 4552, 6, 0.74, 0.702),
    "pubmed": (19717, 44324, 3, 0.80, 0.787),
    "cora-ml": (2995, 8158, 7, 0.79, 0.825),
    "dblp": (17716, 52867, 4, 0.83, 0.748),
    "photo": (7650, 119081, 8, 0.83, 0.912),
    "coauthor-cs": (18333, 81894, 15, 0.81, 0.915),
    "actor": (7600, 26659, 5, 0.22, 0.301),
    "squirrel-filtered": (2223, 46998, 5, 0.21, 0.384),
    "minesweeper": (10000, 39402, 2, 0.68, 0.812),
}
METHODS = (
    "original", "mlp", "dropedge", "dropedge:unbiased", "dropedge:connected", "cdf", "effective-proportional",
    "degree-proportional", "jaccard-cdf", "cosine-cdf", "dropsens", "auto",
)  # fmt: skip
CONDITIONS = (
    (BASE, None), ("labels", 5), ("labels", "full"), ("budget", 0.1), ("budget", 0.5), ("depth", 8), ("depth", 32),
    ("noise", 0.25), ("noise", 1.0), ("features", 0.5), ("features", 1.0), ("network", "gat"),
)  # fmt: skip
SPECTRAL = ("cdf", "effective-proportional")
LEAST = {"cdf": 0.5, "jaccard-cdf": 0.5, "cosine-cdf": 0.5, "dropedge:connected": 0.48}
RUN = {
    "command": "tadropedge regimes --preset full --out results/regimes",
    "commit": "0123abcd",
    "machine": "16 cores, one GPU",
    "seconds": 3412.6,
    "device": "cuda",
    "versions": {"tadropedge": "0.2.0", "torch": "2.13.0"},
}


def card(dataset: str, kind: str = BASE, value=None) -> DataCard:
    """What the methods see of a dataset under a condition."""
    nodes, edges, classes, homophily, _ = DATASETS[dataset]
    if kind == "noise":  # random edges join classes by chance
        homophily, edges = (homophily + value / classes) / (1 + value), round(edges * (1 + value))
    labels = 20 if kind != "labels" else 60 * nodes // (100 * classes) if value == "full" else value
    return DataCard(
        name=dataset, nodes=nodes, edges=edges, components=1, largest_component=nodes, mean_degree=2 * edges / nodes,
        median_degree=3.0, largest_degree=168, homophily=homophily, classes=classes, features=1433, samples=None,
        split=(labels * classes, 500, 1000), splits=f"{labels} of each class to train", measure="accuracy",
    )  # fmt: skip


def gain(method: str, dataset: str, kind: str, value) -> float:
    """The true gain of a method over not dropping, as a share."""
    clustered, mixed = dataset in ("photo", "coauthor-cs", "dblp"), DATASETS[dataset][3] < 0.5
    by_degree = method in ("degree-proportional", "effective-proportional")
    if method == "mlp":
        return 0.04 if mixed else -0.12
    if kind == "noise" and method in ("jaccard-cdf", "auto") and not mixed:
        return value * (0.08 if clustered else 0.012)
    if kind == "noise" and method == "cosine-cdf":
        return value * (0.02 if clustered else 0.015)
    if kind == "budget":
        lost = {0.1: -0.02, 0.5: -0.003}[value] * (0.2 if clustered else 1.0)
        return lost * (0.3 if by_degree or method == "auto" else 0.8 if method == "cdf" else 1.0)
    if kind == "labels" and value == 5 and dataset in ("citeseer", "photo", "dblp"):
        return 0.012 if by_degree else 0.013 if method in ("dropedge:unbiased", "auto") else 0.006
    if kind == "depth":
        return (0.012 if value == 32 else 0.004) * (1.0 if "drop" in method else 0.4)
    return {"cdf": -0.001, "dropedge:unbiased": 0.001, "auto": 0.0005}.get(method, 0.0)


def regime_map(
    datasets: Sequence[str] = tuple(DATASETS), conditions: Sequence[tuple[str, object]] = CONDITIONS, seed: int = 0
) -> RegimeMap:
    """A map of some datasets under some conditions, its tests corrected together."""
    random = np.random.default_rng(seed)
    cells, rows = [], []
    for dataset in datasets:
        for kind, value in conditions:
            cells.append(cell(dataset, kind, value))
            error = float(random.uniform(0.0008, 0.0022 if kind not in ("depth", "labels") else 0.0035))
            rows += _rows(random, cells[-1], error)
    recipe = {"preset": "full", "methods": METHODS, "conditions": [list(one) for one in conditions]}
    return RegimeMap(cells, corrected(rows), recipe=recipe, run=RUN)


def cell(dataset: str, kind: str = BASE, value=None, **members) -> MapCell:
    """A cell of the made-up map."""
    depth = {"backbone": "resgcn", "layers": value} if kind == "depth" else {"backbone": "gcn", "layers": 2}
    network = {"backbone": value} if kind == "network" else {}
    how = {"hidden": 64, "epochs": 200, "trials": 30, "choose_splits": 1, "seeds": 50}
    how |= depth | network | {"data": card(dataset, kind, value)} | members
    return MapCell(dataset=dataset, kind=kind, value=value, **how)


def _rows(random: np.random.Generator, cell: MapCell, error: float) -> list[MapRow]:
    shared = (cell.dataset, cell.kind, cell.value)
    base = DATASETS[cell.dataset][4] - (0.15 if cell.kind == "noise" else 0.0)
    measured = {one: gain(one, *shared) + random.normal(0, error) * (one != "original") for one in METHODS}
    made = []
    for method in METHODS:
        names = {"dataset": cell.dataset, "kind": cell.kind, "value": cell.value, "method": method}
        if cell.kind == "budget" and cell.value < LEAST.get(method, 0.0):
            made.append(MapRow(**names, state=OUT_OF_REACH, least_share=LEAST[method]))
            continue
        tests, mean, kept = {}, base + measured[method], cell.value if cell.kind == "budget" else 0.7
        if method != "original":
            tests["none"] = told("original", measured[method], error)
        if method not in ("original", "mlp", "dropedge"):
            given = cell.kind == "budget"  # there DropEdge keeps to it, too, and is the only one
            beside = measured[method] - measured["dropedge"]
            tests |= {} if given else {"dropedge": told("dropedge", beside, error)}
            tests["budget"] = told("dropedge" if given else "dropedge at 70 %", beside, error)
        if method in SPECTRAL:
            tests["degree"] = told("degree-proportional", measured[method] - measured["degree-proportional"], error)
        made.append(
            MapRow(
                **names, state=JUDGED, mean=mean, low=mean - 0.004, high=mean + 0.004, seeds=cell.seeds,
                kept_share=1.0 if method == "original" else kept, trial=len(made),
                settings={"learning_rate": 0.01, "keep_ratio": kept},
                epoch_seconds=0.004 * (0.4 + 0.6 * (1.0 if method == "original" else kept)), tests=tests,
            )
        )  # fmt: skip
    return made


def told(reference: str, difference: float, error: float) -> MapTest:
    """A test whose replicates have this mean and standard error; not yet corrected."""
    p = math.erfc(abs(difference) / error / math.sqrt(2))
    low, high = difference - 2 * error, difference + 2 * error
    return MapTest(reference=reference, difference=difference, low=low, high=high, p_value=p, corrected=p)


def corrected(rows: Sequence[MapRow]) -> list[MapRow]:
    """Holm's correction over all tests, by its definition."""
    tests = sorted((test.p_value, place, kind) for place, row in enumerate(rows) for kind, test in row.tests.items())
    found, largest = {}, 0.0
    for rank, (p, place, kind) in enumerate(tests):
        largest = max(largest, min(1.0, p * (len(tests) - rank)))
        found[place, kind] = largest
    return [
        replace(row, tests={kind: replace(test, corrected=found[place, kind]) for kind, test in row.tests.items()})
        for place, row in enumerate(rows)
    ]
