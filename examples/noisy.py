"""A copy of your data with edges added at random, to see whether a score finds them and dropping by it helps.

Reads an ``.npz`` file of this library's layout, adds edges between pairs of nodes that have none, and writes everything
else as it was. Then compare on the copy:

    python examples/noisy.py photo.npz --share 1.0 --out noisy-photo.npz
    tadropedge compare noisy-photo.npz --per-class 20 --methods original,dropedge,jaccard-cdf,auto --out noisy-photo

``tadropedge compare photo.npz --add-edges 1.0`` compares on the same graph without a copy.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch

import tadropedge._old as tde
from tadropedge._old.atomic import atomic
from tadropedge._old.checks import check_integer, check_number, check_path, check_seed
from tadropedge._old.data.conditions import random_pairs
from tadropedge._old.files import existing, read_arrays

NAMES = ("edge_index", "num_nodes", "x", "x_data", "x_indices", "x_indptr", "x_shape", "y", "train", "val", "test")


def main(arguments: list[str] | None = None) -> None:
    """Read, add, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, help="an .npz file with edge_index, x and y")
    parser.add_argument("--share", type=float, default=1.0, help="added edges per edge of the graph")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("noisy.npz"))
    given = parser.parse_args(arguments)
    share, seed = check_number("--share", given.share, 0), check_seed(given.seed)
    arrays, held = read_arrays(existing(check_path("data", given.data)), set(NAMES))
    if "edge_index" not in arrays:
        raise tde.TadropedgeError(f"'{given.data}' has no array edge_index, only {', '.join(held)}")
    nodes = int(arrays["num_nodes"]) if "num_nodes" in arrays else len(arrays["y"])
    graph = tde.Graph.from_edge_index(torch.from_numpy(arrays["edge_index"]), check_integer("num_nodes", nodes, 1))
    added = random_pairs(graph, round(share * graph.num_edges), seed)
    arrays["edge_index"] = np.concatenate((graph.pairs.numpy(), added), axis=1)
    with atomic(given.out) as stream:
        np.savez_compressed(stream, **arrays)
    print(f"{given.out}: {graph.num_edges} edges and {added.shape[1]} random ones, the last {added.shape[1]} columns")


if __name__ == "__main__":
    try:
        main()
    except tde.TadropedgeError as error:
        sys.exit(f"error: {error}")
