"""``graph.html``: an interactive page of the graph, with its critical edges coloured.

The page is self-contained. Its policy admits one script, by its hash; names from the outside are data, never markup.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from tadropedge.publish.page import Markup
from tadropedge.publish.page import render as render_page
from tadropedge.publish.tables import Table
from tadropedge.score_report.summary import label, most_critical
from tadropedge.scores.solve import Scored

Floats = npt.NDArray[np.float64]


def render(scored: Scored, name: str, gamma: float, keep: Mapping[str, Tensor], places: Floats) -> str:
    """The page as text: every node, every edge."""
    script = resources.files("tadropedge.score_report").joinpath("graph.js").read_text(encoding="utf-8")
    graph = scored.graph
    edges = [(str(edge["source"]), str(edge["target"]), f"{edge['weight']:.6g}") for edge in most_critical(scored)]
    return render_page(
        "score_report/graph.html.j2",
        heading=f"Which edges hold {name} together?",
        words=f"{graph.num_nodes:,} nodes and {graph.num_edges:,} edges, scored by {label(scored.score)}. "
        f"Edges with a score of {gamma:.4g} or more are called critical.",
        critical=Table("Most critical edges", ("source", "target", "score"), edges, left=(0, 1)),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=_data(scored, gamma, keep, places),
        script=Markup(script),
    )


def _data(scored: Scored, gamma: float, keep: Mapping[str, Tensor], places: Floats) -> dict[str, Any]:
    graph = scored.graph
    low, high = graph.pairs.tolist()
    return {
        "gamma": gamma,
        "names": None if graph.node_ids is None else [str(node) for node in graph.node_ids],
        "x": places[:, 0].round(3).tolist(),
        "y": (-places[:, 1]).round(3).tolist(),  # a screen counts downwards
        "source": low,
        "target": high,
        "score": scored.values.tolist(),
        "keep": {name: prob.numpy().round(4).tolist() for name, prob in keep.items()},
    }
