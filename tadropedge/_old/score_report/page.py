"""``graph.html``: an interactive page of the graph, with its critical edges coloured.

The page is self-contained. Its policy admits one script, by its hash; names from the outside are data, never markup.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge._old.publish.page import Markup
from tadropedge._old.publish.page import render as render_page
from tadropedge._old.publish.tables import Table
from tadropedge._old.score_report.part import Part, ranks
from tadropedge._old.score_report.summary import label, most_critical
from tadropedge._old.scores.solve import Scored
from tadropedge._old.strategies import auto_gamma

Floats = npt.NDArray[np.float64]

LISTED = 20  # of the most critical edges


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What is drawn: the graph of ``scored``, in which one ``part`` is spoken of.

    ``gamma`` is None where every component has the knee of its own scores; ``classes [N]`` may be −1 where a node has
    none, and ``class_names`` are the user's own words for them.
    """

    scored: Scored
    part: Part
    spoken: Scored
    keep: Mapping[str, Tensor]
    gamma: float | None = None
    classes: Tensor | None = None
    class_names: Sequence[str] | None = None

    @cached_property
    def own_gamma(self) -> float:
        """γ of the part that is spoken of."""
        return auto_gamma(self.spoken.values) if self.gamma is None else self.gamma

    def alone(self) -> Shown:
        """The part as a graph of its own, for graphs that are too large to draw as a whole."""
        edges = torch.from_numpy(self.part.edges)
        return replace(
            self,
            scored=self.spoken,
            part=Part.chosen(self.spoken.graph),
            keep={name: prob[edges] for name, prob in self.keep.items()},
            classes=None if self.classes is None else self.classes[torch.from_numpy(self.part.nodes)],
        )


def render(shown: Shown, name: str, places: Floats) -> str:
    """The page as text: every node, every edge."""
    script = resources.files("tadropedge._old.score_report").joinpath("graph.js").read_text(encoding="utf-8")
    graph, spoken, part = shown.scored.graph, shown.spoken, shown.part
    edges = [
        (str(rank), str(edge["source"]), str(edge["target"]), f"{edge['weight']:.6g}")
        for rank, edge in enumerate(most_critical(spoken, LISTED), start=1)
    ]
    looked = "" if part.whole else f" The page opens with {part.words}."
    return render_page(
        "score_report/graph.html.j2",
        heading=f"Which edges hold {name} together?",
        words=f"{graph.num_nodes:,} nodes and {graph.num_edges:,} edges, scored by {label(spoken.score)}."
        f"{looked} Edges are called critical where their score is at or above γ, "
        + ("the knee of the sorted scores of their component." if shown.gamma is None else f"{shown.gamma:.4g}."),
        critical=Table("Top edges", ("rank", "source", "target", "score"), edges, left=(1, 2)),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=_data(shown, places),
        script=Markup(script),
    )


def _data(shown: Shown, places: Floats) -> dict[str, Any]:
    graph = shown.scored.graph
    low, high = graph.pairs.tolist()
    rank = ranks(graph)
    return {
        "shown": shown.part.rank or 0,
        "listed": LISTED,
        "components": _components(shown, rank),
        "component": rank.tolist(),
        "classes": None if shown.classes is None else shown.classes.tolist(),
        "kinds": None if shown.class_names is None else [str(words) for words in shown.class_names],
        "names": None if graph.node_ids is None else [str(node) for node in graph.node_ids],
        "x": places[:, 0].round(3).tolist(),
        "y": (-places[:, 1]).round(3).tolist(),  # a screen counts downwards
        "source": low,
        "target": high,
        "score": shown.scored.values.tolist(),
        "keep": {name: prob.numpy().round(4).tolist() for name, prob in shown.keep.items()},
    }


def _components(shown: Shown, rank: npt.NDArray[np.int64]) -> list[dict[str, Any]]:
    """Number, nodes, edges and γ of every component that has an edge; number 0 is all of them together."""
    values = shown.scored.values
    of_edge = torch.from_numpy(rank[shown.scored.graph.pairs[0].numpy()])
    nodes, edges = np.bincount(rank), torch.bincount(of_edge)
    ordered = values[torch.argsort(of_edge, stable=True)]

    def told(number: int, count: int, some: Tensor) -> dict[str, Any]:
        gamma = auto_gamma(some) if shown.gamma is None else shown.gamma
        return {"number": number, "nodes": count, "edges": len(some), "gamma": gamma}

    parts = [
        told(number, int(nodes[number]), some) for number, some in enumerate(ordered.split(edges.tolist())) if len(some)
    ]
    return [told(0, len(rank), values), *parts] if len(parts) > 1 else parts
