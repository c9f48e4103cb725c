"""The folder of ``tadropedge weights``: every file whole or not at all, the summary last.

``weights.csv`` is for people and spreadsheets, ``weights.npz`` for programs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tadropedge._support.atomic import write_atomic
from tadropedge._support.memory import within_memory
from tadropedge.files import write_graph
from tadropedge.lab.graph_report.part import Part, around, ranks
from tadropedge.lab.graph_report.summary import GraphReport, largest

Report = Callable[[str, int, int], None]

MOST_NODES = 2_000  # that are drawn; of a larger graph a part is
MOST_EDGES = 20_000  # beyond, drawing no longer follows the hand
FROM = 20  # most critical edges, around which a part of a large graph is drawn
PICTURES = ("spectrum.png", "distribution.png", "graph.png", "graph.html")
FILES = ("weights.csv", "weights.npz", "summary.json", *PICTURES)


@within_memory("the files of the scores", "without pictures (--no-figures) it takes less")
def write_all(
    report: GraphReport,
    folder: Path,
    *,
    draw: bool = True,
    run: Mapping[str, Any] | None = None,
    progress: Report = lambda *_: None,
) -> dict[str, Any]:
    """Write scores, pictures and page to ``folder``, then ``summary.json``; return the summary.

    The scores that are written are those of all edges; summary and pictures speak of one part of the graph. Files of an
    earlier run that this one does not make are removed: all files of a folder speak of one graph.
    """
    found = report.as_dict()
    files: dict[str, Callable[[Path], object]] = {
        "weights.csv": lambda path: write_csv(path, report),
        "weights.npz": lambda path: write_npz(path, report),
        **(_pictures(report) if draw else {}),
    }
    for done, (file, write) in enumerate(files.items()):
        progress("writing files", done, len(files))
        write(folder / file)
    for file in set(FILES) - {*files, "summary.json"}:
        (folder / file).unlink(missing_ok=True)
    found |= {"files": [*files, "summary.json"], "run": dict(run or {})}
    write_atomic(folder / "summary.json", (json.dumps(found, indent=2) + "\n").encode())
    return found


def _pictures(report: GraphReport) -> dict[str, Callable[[Path], object]]:
    """What is drawn: the whole graph where it is small, else the part that is spoken of, or what fits of it."""
    from tadropedge.lab.graph_report import pictures
    from tadropedge.lab.graph_report.page import page

    drawn = drawn_part(report)
    places = pictures.layout(drawn.of(report.graph))
    made: dict[str, Callable[[Path], object]] = {
        "distribution.png": lambda path: write_atomic(path, pictures.distribution(report)),
        "graph.png": lambda path: write_atomic(path, pictures.picture(report, drawn, places)),
        "graph.html": lambda path: write_atomic(path, page(report, drawn, places).encode()),
    }
    if len(report.scored.eigenvalues):
        made["spectrum.png"] = lambda path: write_atomic(path, pictures.spectrum(report))
    return made


def drawn_part(report: GraphReport) -> Part:
    """The part of a graph that is drawn."""
    graph, part = report.graph, report.part
    if graph.num_nodes <= MOST_NODES and graph.num_edges <= MOST_EDGES:
        every = np.arange(graph.num_nodes), np.arange(graph.num_edges)
        return Part(nodes=every[0], edges=every[1], words="the whole graph")
    if len(part.nodes) <= MOST_NODES and len(part.edges) <= MOST_EDGES:
        return part
    critical = part.edges[largest(report.values, FROM).numpy()]
    return around(graph, critical, MOST_NODES, MOST_EDGES)


def write_csv(path: Path, report: GraphReport) -> Path:
    """One line per edge: its ends by the user's own names, its weight, score, keep probabilities and component.

    Components are numbered by size: 1 is the largest. Numbers have all their digits.
    """
    component = torch.from_numpy(ranks(report.graph))[report.graph.pairs[0]]
    keep = {f"keep_{rule}": prob for rule, prob in report.keep.items()}
    return write_graph(path, report.graph, {"score": report.scored.values, **keep, "component": component})


def write_npz(path: Path, report: GraphReport) -> Path:
    """The graph as ``write_graph`` writes it, with ``score [M]``, ``component [N]`` and what is known of the modes."""
    scored = report.scored
    nodes: dict[str, Tensor] = {
        "component": torch.from_numpy(ranks(report.graph)),
        "gamma": torch.tensor(report.whole_gamma),
        "modes": torch.from_numpy(scored.modes),
        "widened": torch.from_numpy(scored.widened),
        "eigenvalues": torch.from_numpy(scored.eigenvalues),
    }
    return write_graph(path, report.graph, {"score": scored.values}, nodes)
