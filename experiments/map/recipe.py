"""The recipe of a map: which cells it has, what decides each of them, and in which order they are measured."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import tadropedge as tde
from experiments.frame import VERSION
from tadropedge.lab import Candidate, Dataset

RECIPE = Path(__file__).with_name("recipe.toml")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One graph under one condition: everything that decides what is found, but for the bytes of the graph.

    ``data`` is what :func:`tadropedge.lab.load` is told besides the ``source``; ``experiment`` and ``training`` are
    fields of :class:`tadropedge.lab.Experiment` and its settings; ``space`` replaces entries of what is searched.
    """

    graph: str
    condition: str
    source: str
    candidates: Sequence[str]
    trials: int
    replicates: int
    seed: int
    data: Mapping[str, Any]
    experiment: Mapping[str, Any]
    training: Mapping[str, Any]
    space: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What ``--cells`` chooses it by."""
        return f"{self.graph}/{self.condition}"

    @property
    def key(self) -> str:
        """The fingerprint of all of this. A graph stands in it by its name, so another file needs another name."""
        return hashlib.sha256(json.dumps([VERSION, asdict(self)], sort_keys=True).encode()).hexdigest()

    @property
    def place(self) -> str:
        """The same whatever the number of replicates: where it is noted who trained how much."""
        return replace(self, replicates=0).key

    def usable(self, data: Dataset) -> list[str]:
        """The candidates whose score tells edges apart here: without features, all edges are alike by cosine."""
        score_of = {name: Candidate.parse(name).dropping.score for name in self.candidates}
        flat = set()
        for score in set(score_of.values()) - {None}:
            given = {"features": data.features} if score == "cosine" else {}
            scores = tde.edge_scores(data.graph, score, **given)
            flat |= {score} if bool((scores == scores[0]).all()) else set()
        return [name for name, score in score_of.items() if score not in flat]


def read_cells(path: Path = RECIPE) -> list[Cell]:
    """The cells of a TOML file such as ``recipe.toml``, in the order in which they are measured.

    >>> [cell.name for cell in read_cells()][:2]
    ['cora/random-edges', 'citeseer/random-edges']
    """
    told = tomllib.loads(path.read_text(encoding="utf-8"))
    cells = []
    for stage in told["stages"]:
        for replicates in told["replicates"]:
            for condition in stage["conditions"]:
                own = {"without": (), "data": {}, "experiment": {}, "space": {}, **told["conditions"][condition]}
                shared = {
                    "condition": condition,
                    "replicates": replicates,
                    "candidates": [name for name in told["candidates"] if name not in own["without"]],
                    "experiment": {**told["experiment"], **own["experiment"]},
                    **{name: told[name] for name in ("trials", "seed")},
                    **{name: own[name] for name in ("data", "space")},
                }
                for graph in stage["graphs"]:
                    training = {**told["training"], "measure": told["measures"].get(graph, "accuracy")}
                    cells.append(Cell(graph=graph, source=told["graphs"][graph], training=training, **shared))
    return cells
