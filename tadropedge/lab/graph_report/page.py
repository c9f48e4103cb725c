"""``graph.html``: an interactive page of the graph, or of the part of a large one around its most critical edges.

The page is self-contained. Its policy admits one script, by its hash; names from the outside are data, never markup.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tadropedge.lab.graph_report.part import Part, component, ranks
from tadropedge.lab.graph_report.summary import GraphReport
from tadropedge.lab.reports.render import render, script
from tadropedge.lab.reports.tables import Table
from tadropedge.rules import auto_gamma

LISTED = 20  # of the most critical edges


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
    parts = (component(report.graph, str(number)) for number in range(1, count + 1) if _has_edges(report, number))
    for part in parts:
        gamma = report.gamma
        if gamma is None:
            gamma = auto_gamma(report.scored.values[torch.from_numpy(part.edges)])
        yield _entry(part.rank or 1, report, part, gamma)


def _has_edges(report: GraphReport, number: int) -> bool:
    return bool((report.graph.components.sizes > 1).sum() >= number)  # those of one node are the last


def _entry(number: int, report: GraphReport, part: Part, gamma: float) -> dict[str, Any]:
    return {"number": number, "nodes": len(part.nodes), "edges": len(part.edges), "gamma": gamma}
