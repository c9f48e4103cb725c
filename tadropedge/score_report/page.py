"""``graph.html``: the graph to look into, with its critical edges coloured.

The page is self-contained. Its policy admits one script, by its hash, and forbids every request; names from the
outside are data, never markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from torch import Tensor

from tadropedge.score_report.summary import label, most_critical
from tadropedge.scores.solve import Scored

Floats = npt.NDArray[np.float64]


def render(weighing: Scored, name: str, gamma: float, keep: Mapping[str, Tensor], places: Floats) -> str:
    """The page as text: every node, every edge."""
    folder = resources.files("tadropedge.score_report")
    script = folder.joinpath("graph.js").read_text(encoding="utf-8")
    template = folder.joinpath("graph.html.j2").read_text(encoding="utf-8")
    graph = weighing.graph
    page = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(template)
    return page.render(
        heading=f"Which edges hold {name} together?",
        words=f"{graph.num_nodes:,} nodes and {graph.num_edges:,} edges, scored by {label(weighing.score)}. "
        f"Edges of weight {gamma:.4g} and more are called critical.",
        critical=most_critical(weighing),
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=Markup(_embedded(_data(weighing, gamma, keep, places))),
        script=Markup(script),
    )


def _data(weighing: Scored, gamma: float, keep: Mapping[str, Tensor], places: Floats) -> dict[str, Any]:
    graph = weighing.graph
    low, high = graph.pairs.tolist()
    return {
        "gamma": gamma,
        "names": None if graph.node_ids is None else [str(node) for node in graph.node_ids],
        "x": places[:, 0].round(3).tolist(),
        "y": (-places[:, 1]).round(3).tolist(),  # a screen counts downwards
        "source": low,
        "target": high,
        "weight": weighing.values.tolist(),
        "keep": {name: prob.numpy().round(4).tolist() for name, prob in keep.items()},
    }


def _embedded(data: Mapping[str, Any]) -> str:
    r"""JSON that no HTML parser mistakes for a tag.

    >>> print(_embedded({"a": "</script>"}))
    {"a":"\u003c/script>"}
    """
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
