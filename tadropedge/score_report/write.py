"""The folder of ``tadropedge weights``: every file whole or not at all, the summary last."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from tadropedge.files import write_atomic
from tadropedge.graph import Graph
from tadropedge.publish.label import run_label
from tadropedge.score_report import figures
from tadropedge.score_report.layout import layout
from tadropedge.score_report.page import render
from tadropedge.score_report.summary import knee, probabilities, summary
from tadropedge.score_report.tables import write_csv, write_npz
from tadropedge.scores.solve import Scored

Report = Callable[[str, int, int], None]

MOST_NODES = 4_000  # of a still picture; beyond, nodes and edges run together
MOST_EDGES = 20_000  # of a page; beyond, drawing no longer follows the hand
PICTURES = ("spectrum.png", "distribution.png", "graph.png", "graph.html")
DRAWN = "files written"


def write_all(
    scored: Scored,
    name: str,
    folder: Path,
    *,
    keep_prob: float = 0.7,
    gamma: float | None = None,
    draw: bool = True,
    run: Mapping[str, Any] | None = None,
    report: Report = lambda *_: None,
) -> dict[str, Any]:
    """Write scores, pictures and page to ``folder``, then ``summary.json``; return the summary.

    Pictures of an earlier run that this one does not draw are removed: all files of a folder speak of one graph.
    """
    begun = time.monotonic()
    gamma = knee(scored.values, gamma)
    keep = probabilities(scored.values, keep_prob, gamma)
    found = summary(scored, name, gamma, keep, keep_prob)
    adaptive = {strategy: prob for strategy, prob in keep.items() if strategy != "uniform"}
    pictures, found["left_out"] = _pictures(scored, name, gamma, adaptive) if draw else ({}, [])
    total = len(pictures) + 3
    report(DRAWN, 0, total)
    write_csv(folder / "weights.csv", scored, adaptive)
    report(DRAWN, 1, total)
    write_npz(folder / "weights.npz", scored, gamma)
    for done, (file, made) in enumerate(pictures.items(), 2):
        report(DRAWN, done, total)
        write_atomic(folder / file, made())
    for file in PICTURES:
        if file not in pictures:
            (folder / file).unlink(missing_ok=True)
    found["files"] = ["weights.csv", "weights.npz", "summary.json", *pictures]
    seconds = {"solving": round(scored.seconds, 3), "writing": round(time.monotonic() - begun, 3)}
    found["run"] = {**(run or {}), "seconds": seconds}
    write_atomic(folder / "summary.json", (json.dumps(found, indent=2) + "\n").encode())
    report(DRAWN, total, total)
    return found


def _pictures(
    scored: Scored, name: str, gamma: float, keep: Mapping[str, Tensor]
) -> tuple[dict[str, Callable[[], bytes]], list[str]]:
    """What is drawn, and for each thing that is not a line that says why."""
    graph = scored.graph
    drawn: dict[str, Callable[[], bytes]] = {}
    if len(scored.eigenvalues):
        drawn["spectrum.png"] = lambda: figures.spectrum(scored, name)
    drawn["distribution.png"] = lambda: figures.distribution(scored, name, gamma)
    left_out = reasons(graph)
    if not {"graph.png", "graph.html"} <= set(left_out):
        places = layout(graph)
        drawn["graph.png"] = lambda: figures.picture(scored, name, gamma, places)
        drawn["graph.html"] = lambda: render(scored, name, gamma, keep, places).encode()
    return {file: made for file, made in drawn.items() if file not in left_out}, list(left_out.values())


def reasons(graph: Graph) -> dict[str, str]:
    """Why a picture of the graph, or a page, would show nothing.

    >>> reasons(Graph.from_edge_index([[0], [1]], num_nodes=5_000))
    {'graph.png': 'graph.png is left out: 5,000 nodes, more than the 4,000 that a picture can show'}
    """
    found = {}
    for file, what, most_nodes in (("graph.png", "picture", MOST_NODES), ("graph.html", "page", 2 * MOST_EDGES)):
        sizes = (("nodes", graph.num_nodes, most_nodes), ("edges", graph.num_edges, MOST_EDGES))
        for unit, count, most in sizes:
            if count > most and file not in found:
                found[file] = f"{file} is left out: {count:,} {unit}, more than the {most:,} that a {what} can show"
    return found


def run_info(command: str, device: str) -> dict[str, Any]:
    """The label of a run."""
    return run_label(device, command)
