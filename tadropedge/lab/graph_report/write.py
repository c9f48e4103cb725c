"""The folder of ``tadropedge weights``: every file whole or not at all, the summary last.

``weights.csv`` is for people and spreadsheets, ``weights.npz`` for programs. ``graph.html`` is an interactive page of
the graph, or of the part of a large one around its most critical edges; it is self-contained, its policy admits one
script, by its hash, and names from the outside are data, never markup.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge._support.atomic import write_atomic
from tadropedge._support.memory import within_memory
from tadropedge.files import write_graph
from tadropedge.lab.graph_report.part import Part, around, component, ranks
from tadropedge.lab.graph_report.summary import GraphReport, largest
from tadropedge.lab.reports.render import render, script
from tadropedge.lab.reports.text import Table
from tadropedge.rules import auto_gamma

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Report = Callable[[str, int, int], None]

MOST_NODES = 2_000  # that are drawn; of a larger graph a part is
MOST_EDGES = 20_000  # beyond, drawing no longer follows the hand
LISTED = 20  # of the most critical edges
FROM = 20  # most critical edges, around which a part of a large graph is drawn
PICTURES = ("spectrum.png", "distribution.png", "graph.html")
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
    """What is drawn; on the page the whole graph where it is small, else the part that is spoken of, or what fits."""
    from tadropedge.lab.graph_report import pictures

    def html(path: Path) -> Path:
        drawn = drawn_part(report)
        return write_atomic(path, page(report, drawn, pictures.layout(drawn.of(report.graph))).encode())

    def png(draw: Callable[[GraphReport], tuple[Figure, str]]) -> Callable[[Path], object]:
        return lambda path: write_atomic(path, pictures.png(draw, report))

    made = {"distribution.png": png(pictures.distribution)}
    made |= {"spectrum.png": png(pictures.spectrum)} if len(report.scored.eigenvalues) else {}
    return {**made, "graph.html": html}


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


# -- the page --------------------------------------------------------------------------------------------


def page(report: GraphReport, drawn: Part, places: npt.NDArray[np.float64]) -> str:
    """The page as text: every node and edge of the part that is drawn, and the most critical edges as a table."""
    graph = report.graph
    edges = [
        (str(rank), str(edge["source"]), str(edge["target"]), f"{edge['score']:.6g}")
        for rank, edge in enumerate(report.most_critical(LISTED), start=1)
    ]
    return render(
        "graph_report/page.html.j2",
        heading=f"Which edges hold {report.name} together?",
        report=report,
        nodes=graph.num_nodes,
        edges=graph.num_edges,
        drawn=None if len(drawn.nodes) == graph.num_nodes else drawn.words,
        critical=Table("Top edges", ("rank", "source", "target", "score"), edges, left=(1, 2)),
        data=_data(report, drawn, places),
        script=script("graph_report/graph.js"),
    )


def _data(report: GraphReport, drawn: Part, places: npt.NDArray[np.float64]) -> dict[str, Any]:
    """What the script draws."""
    graph, edges, nodes = drawn.of(report.graph), torch.from_numpy(drawn.edges), torch.from_numpy(drawn.nodes)
    named = report.graph.node_ids is not None or len(drawn.nodes) < report.graph.num_nodes
    several = len(drawn.nodes) == report.graph.num_nodes
    rank = ranks(graph) if several else np.ones(graph.num_nodes, dtype=np.int64)
    low, high = graph.pairs.tolist()
    return {
        "shown": (report.part.rank or 0) if several else 0,
        "listed": LISTED,
        "components": list(_components(report, drawn)) if several else [_entry(0, report, drawn, report.own_gamma)],
        "component": rank.tolist(),
        "classes": None if report.classes is None else report.classes.cpu()[nodes].tolist(),
        "kinds": None if report.class_names is None else [str(words) for words in report.class_names],
        "names": [str(node) for node in graph.node_ids or ()] if named else None,
        "x": places[:, 0].round(3).tolist(),
        "y": (-places[:, 1]).round(3).tolist(),  # a screen counts downwards
        "source": low,
        "target": high,
        "score": report.scored.values[edges].tolist(),
        "keep": {name: prob[edges].numpy().round(4).tolist() for name, prob in report.keep.items()},
    }


def _components(report: GraphReport, drawn: Part) -> Iterator[dict[str, Any]]:
    """Number, nodes, edges and γ of every component that has an edge; number 0 is all of them together."""
    count = report.graph.components.count
    if count > 1:
        yield _entry(0, report, drawn, report.whole_gamma)
    parts = (component(report.graph, number) for number in range(1, count + 1) if _has_edges(report, number))
    for part in parts:
        gamma = report.gamma
        if gamma is None:
            gamma = auto_gamma(report.scored.values[torch.from_numpy(part.edges)])
        yield _entry(part.rank or 1, report, part, gamma)


def _has_edges(report: GraphReport, number: int) -> bool:
    return bool((report.graph.components.sizes > 1).sum() >= number)  # those of one node are the last


def _entry(number: int, report: GraphReport, part: Part, gamma: float) -> dict[str, Any]:
    return {"number": number, "nodes": len(part.nodes), "edges": len(part.edges), "gamma": gamma}
