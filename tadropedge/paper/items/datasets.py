"""The statistics of the three citation sets, measured beside printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tadropedge.data.dataset import Dataset
from tadropedge.data.planetoid import NAMES
from tadropedge.paper.item import Bench, Item, Verdict
from tadropedge.paper.judge import counted

SAME = ("nodes", "classes", "features")


def run(bench: Bench) -> Item:
    """Count nodes, edges, classes, features and the split of each dataset."""
    rows, verdicts = [], []
    for place, name in enumerate(bench.recipe["datasets"]):
        bench.report("datasets", place, len(bench.recipe["datasets"]))
        row = measured(bench.dataset(name))
        printed = bench.recipe.published[NAMES[name]]
        rows.append({**row, **{f"printed_{key}": value for key, value in printed.items()}})
        verdicts += judge(row, printed, NAMES[name])
    notes = [
        "An edge is counted once here, whichever way and however often the files list it; self-loops are no edges.",
        "Half the number of entries of the neighbour lists is the printed number of edges in all three datasets.",
        "The split is that of the files: test.index, the last 500 of the other labelled nodes, and all before them.",
    ]
    return Item(rows, verdicts, notes=notes)


def measured(dataset: Dataset) -> dict[str, Any]:
    """One row of the table; ``listed`` is half the number of entries of the neighbour lists."""
    graph = dataset.graph
    loops = int((graph.arc_pair < 0).sum()) // 2
    listed = graph.arc_pair.shape[0] // 2
    return {
        "dataset": dataset.name,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "listed": listed,
        "listed_twice": listed - loops - graph.num_edges,
        "self_loops": loops,
        "classes": dataset.num_classes,
        "features": dataset.num_features,
        "split": list(dataset.split.sizes),
        "unlabelled": int((dataset.labels < 0).sum()),
    }


def judge(row: Mapping[str, Any], printed: Mapping[str, Any], name: str) -> list[Verdict]:
    """Three claims for each dataset: its size, its edges, its split."""
    sizes = [row[key] for key in SAME]
    stated = [printed[key] for key in SAME]
    words = "{:,} nodes, {:,} classes, {:,} features"
    edges = f"{row['edges']:,} distinct edges"
    if row["listed"] == printed["edges"] != row["edges"]:
        edges += (
            f"; {printed['edges']:,} counts {row['listed_twice']} of them twice, as the files list them, "
            f"and {row['self_loops']} self-loops"
        )
    train, val, test = row["split"]
    left = row["nodes"] - row["unlabelled"] - val - test
    split = f"{train:,}/{val}/{test}: of {row['nodes']:,} nodes"
    split += f", {row['unlabelled']} without features and label," if row["unlabelled"] else ""
    split += f" {val} and {test} leave {left:,} to train on"
    said = "/".join(f"{part:,}" for part in printed["split"])
    return [
        counted(f"{name} has {words.format(*stated)}", sizes, stated, words.format(*sizes)),
        counted(f"{name} has {printed['edges']:,} edges", row["edges"], printed["edges"], edges),
        counted(f"{name} is split {said}", row["split"], list(printed["split"]), split),
    ]
