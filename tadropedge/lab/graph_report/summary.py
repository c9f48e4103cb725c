"""The edge scores of a graph in numbers: components, eigenvalues, the knee, what each rule protects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from rich.table import Table as Shown
from torch import Tensor

from tadropedge.errors import TadropedgeError
from tadropedge.graph import Graph
from tadropedge.lab.graph_report.part import Part
from tadropedge.lab.reports.text import Table, counted, facts, short, terminal_table
from tadropedge.registry import RULES
from tadropedge.rules import auto_gamma, keep_probabilities, meets_budget
from tadropedge.scores.solve import Scored

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
PROTECTED = 0.99  # an edge that is kept with more than this probability is protected
SHOWN = 10  # of the most critical edges


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphReport:
    """The scores of a graph and what is to be said of them.

    * ``name`` of the graph, ``read``: what was read of it; ``score``: its name, ``settings``: those that were given;
    * ``part``: the component that is spoken of; ``gamma``: γ, unless it is the knee of the scores;
    * ``budget``: the ``keep_prob`` or ``keep_ratio`` at which rules are shown;
    * ``classes [N]``, −1 for none, and ``class_names``: of the nodes, for the page.
    """

    name: str
    graph: Graph
    scored: Scored
    score: str
    part: Part
    read: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    gamma: float | None = None
    budget: Mapping[str, float] = field(default_factory=lambda: {"keep_ratio": 0.5})
    classes: Tensor | None = None
    class_names: Sequence[str] | None = None

    @cached_property
    def values(self) -> Tensor:
        """The scores of the part ``[E]``."""
        return self.scored.values[torch.from_numpy(self.part.edges)]

    @cached_property
    def own_gamma(self) -> float:
        """γ of the part."""
        return auto_gamma(self.values) if self.gamma is None else self.gamma

    @property
    def whole_gamma(self) -> float:
        """γ of all edges: what a rule looks at in training."""
        return auto_gamma(self.scored.values) if self.gamma is None else self.gamma

    @cached_property
    def keep(self) -> dict[str, Tensor]:
        """The probability of keeping each edge under every rule that can meet the budget, ``[M]`` each."""
        found = {}
        for rule in RULES:
            settings: dict[str, Any] = {"gamma": self.whole_gamma} if rule in ("cutoff", "division") else {}
            if rule == "uniform" or (meets_budget(rule) and "keep_prob" in self.budget):
                continue
            try:
                found[rule] = keep_probabilities(self.scored.values, rule=rule, **settings | dict(self.budget))
            except TadropedgeError as error:
                self.left_out.append(f"the rule {rule} is left out: {error}")
        return found

    @cached_property
    def left_out(self) -> list[str]:
        """Why rules are left out."""
        return []

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        graph, components, values = self.graph, self.graph.components, self.values.numpy()
        unique, copies = np.unique(values, return_counts=True)
        elsewhere = int((self.scored.values >= self.own_gamma).sum()) - int((values >= self.own_gamma).sum())
        keep = self.keep
        return {
            "graph": {
                "name": self.name,
                "read": self.read,
                "nodes": graph.num_nodes,
                "edges": graph.num_edges,
                "weighted": graph.weight is not None,
                "components": components.count,
                "largest": components.largest,
                "isolated_nodes": int((components.sizes == 1).sum()),
            },
            "part": {"words": self.part.words, "nodes": len(self.part.nodes), "edges": len(self.part.edges)},
            "score": {
                "name": self.score,
                **{name: value for name, value in self.settings.items() if isinstance(value, str | int | float)},
                "gamma": self.own_gamma,
                "knee": auto_gamma(self.values),
                "critical_edges": int((values >= self.own_gamma).sum()),
                "critical_elsewhere": elsewhere,
                "sum": float(values.sum()),
                "quantiles": dict(
                    zip(map("{:g}".format, QUANTILES), np.quantile(values, QUANTILES).tolist(), strict=True)
                ),
                "zeros": float((values == 0).mean()),
                "ties": float(copies[copies > 1].sum() / len(values)),
                "distinct": len(unique),
                **(self._spectrum() if len(self.scored.eigenvalues) else {}),
            },
            "budget": dict(self.budget),
            "rules": {
                name: {"kept": float(prob.mean()), "protected": float((prob > PROTECTED).double().mean())}
                for name, prob in keep.items()
            },
            "most_critical": self.most_critical(SHOWN),
            "left_out": list(self.left_out),
        }

    def _spectrum(self) -> dict[str, Any]:
        """The lowest eigenvalues of the largest component, and the number of modes over all of them."""
        scored, values = self.scored, self.scored.eigenvalues.tolist()
        chosen, sizes = scored.chosen, scored.connected.components.sizes
        return {
            "asked": scored.description,
            "chosen_q": chosen,
            "eigenvalues": values,
            "gap": values[chosen] - values[chosen - 1] if chosen < len(values) else None,
            "modes": {
                str(modes): count for modes, count in sorted(Counter(scored.modes[scored.modes > 0].tolist()).items())
            },
            "widened": int(scored.widened.sum()),
            "without_modes": int(((scored.modes == 0) & (sizes.cpu().numpy() > 1)).sum()),
            "solved_by": dict(scored.solvers),
        }

    def most_critical(self, count: int) -> list[dict[str, Any]]:
        """The edges of largest score in the part, by the user's own names."""
        called = self.graph.node_ids if self.graph.node_ids is not None else range(self.graph.num_nodes)
        edges = self.part.edges[largest(self.values, count).numpy()]
        ends = self.graph.pairs[:, torch.from_numpy(edges)].tolist()
        scores = self.scored.values[torch.from_numpy(edges)].tolist()
        return [
            {"source": called[low], "target": called[high], "score": value}
            for low, high, value in zip(*ends, scores, strict=True)
        ]


def largest(values: Tensor, count: int) -> Tensor:
    """The places of the largest values, falling; equal ones in their order.

    >>> largest(torch.tensor([1.0, 3.0, 2.0, 3.0]), 3).tolist()
    [1, 3, 2]
    """
    least = values.topk(min(count, len(values))).values[-1]
    among = torch.cat(((values > least).nonzero().flatten(), (values == least).nonzero().flatten()[:count]))
    return among[torch.argsort(values[among], descending=True, stable=True)[:count]]


def lines(summary: Mapping[str, Any]) -> Iterator[Shown | str]:
    """The summary for the terminal: facts, the rules as a table, the most critical edges, and what is left out."""
    yield facts(dict(_facts(summary)))
    budget, share = next(iter(summary["budget"].items()))
    shares = [(name, f"{one['kept']:.1%}", f"{one['protected']:.1%}") for name, one in summary["rules"].items()]
    columns = ("rule", "kept on average", "protected (kept > 99 %)")
    yield terminal_table(Table(f"keep probabilities at {budget} {share:g}", columns, shares))
    edges = [
        (short(str(edge["source"]), 30), short(str(edge["target"]), 30), f"{edge['score']:.6g}")
        for edge in summary["most_critical"]
    ]
    yield terminal_table(Table("most critical edges", ("source", "target", "score"), edges, left=(0, 1)))
    yield from summary["left_out"]


def _facts(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    graph, part, score = summary["graph"], summary["part"], summary["score"]
    yield "graph", f"{graph['name']}: {graph['nodes']:,} nodes, {graph['edges']:,} edges"
    isolated = f", {counted(graph['isolated_nodes'], 'isolated node')}" if graph["isolated_nodes"] else ""
    yield "components", f"{graph['components']:,}, the largest of {graph['largest']:,} nodes{isolated}"
    if part["edges"] < graph["edges"]:
        sizes = f"{part['nodes']:,} nodes, {part['edges']:,} edges"
        yield "looked at", f"{part['words']}: {sizes} (the page shows the others)"
    yield "score", f"{score['name']}, sum {score['sum']:.6g}"
    if "eigenvalues" in score:
        gap = "" if score["gap"] is None else f", gap {score['gap']:.4g}"
        yield "q", f"{score['chosen_q']} in the largest component, from {score['asked']}{gap}"
        yield "eigenvalues", ", ".join(f"{value:.4g}" for value in score["eigenvalues"])
        if len(score["modes"]) > 1:
            yield "modes", ", ".join(f"{modes} in {count:,}" for modes, count in score["modes"].items())
        if score["without_modes"]:
            yield "no modes", f"{counted(score['without_modes'], 'small component')}: their edges get the lowest score"
    yield "quantiles", ", ".join(f"{float(at):.0%} {value:.2g}" for at, value in score["quantiles"].items())
    yield "ties", f"{score['ties']:.1%} of the edges share their score with another; {score['zeros']:.1%} are zero"
    given = "the knee" if score["gamma"] == score["knee"] else f"the knee is {score['knee']:.4g}"
    elsewhere = score["critical_elsewhere"]
    beside = f"; {counted(elsewhere, 'edge')} of other components would reach it" if elsewhere else ""
    yield "γ", f"{score['gamma']:.4g} ({given}): {counted(score['critical_edges'], 'critical edge')}{beside}"
