"""The folder of ``tadropedge weights``: every file whole or not at all, the summary last.

``weights.csv`` is for people and spreadsheets, ``weights.npz`` for programs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tadropedge._old.atomic import atomic, write_atomic
from tadropedge._old.graph import Graph
from tadropedge._old.memory import within_memory
from tadropedge._old.method import rules
from tadropedge._old.publish.tables import csv_lines
from tadropedge._old.score_report import figures
from tadropedge._old.score_report.layout import layout
from tadropedge._old.score_report.page import Shown, render
from tadropedge._old.score_report.part import Part, ranks
from tadropedge._old.score_report.summary import names, probabilities, summary
from tadropedge._old.scores.solve import Scored
from tadropedge._old.strategies import auto_gamma

Report = Callable[[str, int, int], None]
Write = Callable[[Path], Path]

MOST_NODES = 4_000  # of a still picture; beyond, nodes and edges run together
MOST_EDGES = 20_000  # of a page; beyond, drawing no longer follows the hand
PICTURES = ("spectrum.png", "distribution.png", "graph.png", "graph.html")
FILES = ("weights.csv", "weights.npz", "summary.json", *PICTURES, "cache/")
LINES = 100_000  # written at a time


@within_memory("the files of the scores", "without pictures (--no-figures) it takes less")
def write_all(
    scored: Scored,
    name: str,
    folder: Path,
    *,
    keep_prob: float = 0.7,
    keep_ratio: float | None = None,
    gamma: float | None = None,
    part: Part | None = None,
    spoken: Scored | None = None,
    classes: Tensor | None = None,
    class_names: Sequence[str] | None = None,
    draw: bool = True,
    table: bool = True,
    run: Mapping[str, Any] | None = None,
    report: Report = lambda *_: None,
) -> dict[str, Any]:
    """Write scores, pictures and page to ``folder``, then ``summary.json``; return the summary.

    With ``keep_ratio``, strategies are shown at this share of kept edges instead of ``keep_prob``. Summary and pictures
    speak of one ``part`` of the graph, by default its largest component, with what was found there, ``spoken``; the
    scores that are written are those of all edges. ``classes [N]``, called ``class_names``, colour its page.
    Without ``table`` there is no ``weights.csv``, which takes longer than the scores where edges are many.
    Files of an earlier run that this one does not make are removed: all files of a folder speak of one graph.
    """
    begun = time.monotonic()
    part = Part.chosen(scored.graph) if part is None else part
    spoken = part.of(scored) if spoken is None else spoken
    knee = auto_gamma(scored.values) if gamma is None else gamma  # of all edges: what a strategy looks at in training
    budget = {"keep_prob": keep_prob} if keep_ratio is None else {"keep_ratio": keep_ratio}
    keep, unreached = probabilities(scored, knee, **budget)
    own = auto_gamma(spoken.values) if gamma is None else gamma
    found = summary(scored, name, own, keep, budget, part=part, spoken=spoken)
    adaptive = {strategy: prob for strategy, prob in keep.items() if strategy in rules()}
    shown = Shown(
        scored=scored, part=part, spoken=spoken, gamma=gamma, keep=adaptive, classes=classes, class_names=class_names
    )
    pictures, left_out = _pictures(shown, name) if draw else ({}, [])
    found["left_out"] = unreached + left_out
    files: dict[str, Write] = {"weights.csv": lambda path: write_csv(path, scored, adaptive)} if table else {}
    files |= {"weights.npz": lambda path: write_npz(path, scored, knee), **pictures}
    for done, (file, write) in enumerate(files.items()):
        report("files written", done, len(files) + 1)
        write(folder / file)
    for file in {"weights.csv", *PICTURES} - set(files):
        (folder / file).unlink(missing_ok=True)
    found["files"] = [file for file in FILES if file in files or file == "summary.json"]
    seconds = {"solving": round(scored.seconds, 3), "writing": round(time.monotonic() - begun, 3)}
    found["run"] = {**(run or {}), "seconds": seconds}
    write_atomic(folder / "summary.json", (json.dumps(found, indent=2) + "\n").encode())
    report("files written", len(files) + 1, len(files) + 1)
    return found


def _pictures(shown: Shown, name: str) -> tuple[dict[str, Write], list[str]]:
    """What is drawn, and for each thing that is not a line that says why."""
    spoken, gamma = shown.spoken, shown.own_gamma
    drawn = dict[str, Write]()
    if len(spoken.eigenvalues):
        where = "the largest component" if shown.part.rank in (None, 1) else f"component {shown.part.rank:,}"
        drawn["spectrum.png"] = lambda path: write_atomic(path, figures.spectrum(spoken, name, where))
    drawn["distribution.png"] = lambda path: write_atomic(path, figures.distribution(spoken, name, gamma))
    # The page shows every component and lets the reader choose, unless they are too many to draw.
    whole = shown if "graph.html" not in reasons(shown.scored.graph) else shown.alone()
    left_out = reasons(spoken.graph)
    if len(left_out) < 2:
        places = layout(whole.scored.graph)
        inside = places[whole.part.nodes]
        drawn["graph.png"] = lambda path: write_atomic(path, figures.picture(spoken, name, gamma, inside))
        drawn["graph.html"] = lambda path: write_atomic(path, render(whole, name, places).encode())
    return {file: made for file, made in drawn.items() if file not in left_out}, list(left_out.values())


def reasons(graph: Graph) -> dict[str, str]:
    """Why a picture of the graph, or a page, would show nothing.

    >>> reasons(Graph.from_edge_index([[0], [1]], num_nodes=5_000))
    {'graph.png': 'graph.png is left out: 5,000 nodes, more than the 4,000 that a picture can show'}
    """
    found: dict[str, str] = {}
    for file, what, most_nodes in (("graph.png", "picture", MOST_NODES), ("graph.html", "page", 2 * MOST_EDGES)):
        for unit, count, most in (("nodes", graph.num_nodes, most_nodes), ("edges", graph.num_edges, MOST_EDGES)):
            if count > most:
                words = f"{file} is left out: {count:,} {unit}, more than the {most:,} that a {what} can show"
                found.setdefault(file, words)
    return found


def write_csv(path: Path, scored: Scored, keep: Mapping[str, Tensor]) -> Path:
    """One line per edge: its ends by the user's own names, its weight, the probability of keeping it, its component.

    Components are numbered by size: 1 is the largest.

    Words are quoted, so that every name comes back as it was; numbers have all their digits.
    """
    component = torch.from_numpy(ranks(scored.graph))[scored.graph.pairs[0]]
    called, columns = names(scored.graph), [scored.values, *keep.values(), component]
    numbers = not any(isinstance(name, str) for name in called)
    with atomic(path) as stream:
        head = ("source", "target", "weight", *(f"keep_{name}" for name in keep), "component")
        stream.write(csv_lines([head], quoted=True))
        for first in range(0, scored.graph.num_edges, LINES):
            some = slice(first, first + LINES)
            ends = scored.graph.pairs[:, some].tolist()
            ends = ends if scored.graph.node_ids is None else [[called[node] for node in end] for end in ends]
            cells = (column[some].tolist() for column in columns)
            stream.write(csv_lines(zip(*ends, *cells, strict=True), quoted=True, numbers=numbers))
    return path


def write_npz(path: Path, scored: Scored, gamma: float) -> Path:
    """Plain arrays, read without unpickling.

    ``pairs [2, M]``, ``weight [M]``, ``gamma`` (the knee of all edges, unless it was given), ``component [N]``,
    ``modes [C]``, ``widened [C]``, ``eigenvalues`` of the largest component; ``node_ids [N]`` where the nodes have
    names, ``edge_weight [M]`` where edges have weights.
    """
    graph = scored.graph
    arrays: dict[str, Any] = {
        "pairs": graph.pairs,
        "weight": scored.values,
        "gamma": gamma,
        "component": graph.components.labels,
        "modes": scored.modes,
        "widened": scored.widened,
        "eigenvalues": scored.eigenvalues,
        "node_ids": graph.node_ids,
        "edge_weight": graph.weight,
    }
    with atomic(path) as stream:
        np.savez(stream, **{name: array for name, array in arrays.items() if array is not None})
    return path
