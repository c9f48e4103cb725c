"""The edge scores as files: ``weights.csv`` for people and spreadsheets, ``weights.npz`` for programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from tadropedge.files import atomic
from tadropedge.score_report.summary import names
from tadropedge.scores.solve import Scored

LINES = 100_000  # written at a time


def write_csv(path: Path, scored: Scored, keep: Mapping[str, Tensor]) -> Path:
    """One line per edge: its ends by the user's own names, its score, the probability of keeping it.

    Words are quoted, so that every name comes back as it was; numbers have all their digits.
    """
    called, columns = names(scored.graph), [scored.values, *keep.values()]
    with atomic(path) as stream:
        stream.write(_lines([("source", "target", "weight", *(f"keep_{name}" for name in keep))]))
        for first in range(0, scored.graph.num_edges, LINES):
            some = slice(first, first + LINES)
            ends = ([called[node] for node in end] for end in scored.graph.pairs[:, some].tolist())
            stream.write(_lines(zip(*ends, *(column[some].tolist() for column in columns), strict=True)))
    return path


def _lines(rows: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def write_npz(path: Path, scored: Scored, gamma: float) -> Path:
    """Plain arrays, read without unpickling.

    ``pairs [2, M]``, ``weight [M]``, ``gamma``, ``component [N]``, ``modes [C]``, ``widened [C]``, ``eigenvalues`` of
    the largest component; ``node_ids [N]`` where the nodes have names, ``edge_weight [M]`` where edges have weights.
    """
    graph = scored.graph
    arrays: dict[str, Any] = {
        "pairs": graph.pairs.numpy(),
        "weight": scored.values.numpy(),
        "gamma": np.array(gamma),
        "component": graph.components.labels.numpy(),
        "modes": scored.modes,
        "widened": scored.widened,
        "eigenvalues": scored.eigenvalues,
    }
    if graph.node_ids is not None:
        arrays["node_ids"] = np.array(graph.node_ids)
    if graph.weight is not None:
        arrays["edge_weight"] = graph.weight.numpy()
    with atomic(path) as stream:
        np.savez(stream, **arrays)
    return path
