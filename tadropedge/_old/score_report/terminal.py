"""The summary for the terminal: a few lines, the strategies as a table, and what ``--explain`` says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Group
from rich.table import Table as Shown
from rich.text import Text

from tadropedge._old.memory import size
from tadropedge._old.publish.tables import Table
from tadropedge._old.publish.terminal import terminal_table
from tadropedge._old.publish.wording import counted, short, span
from tadropedge._old.score_report.summary import label
from tadropedge._old.spectrum import Step


def page(summary: Mapping[str, Any]) -> Group:
    """Facts, strategies and the most critical edges."""
    facts = Shown.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, words in _facts(summary):
        facts.add_row(Text(name), Text(words))
    shares = [
        (name, f"{found['kept']:.2%}", f"{found['protected']:.2%}") for name, found in summary["strategies"].items()
    ]
    columns = ("strategy", "kept on average", "protected (kept > 99 %)")
    budget = "keep_prob" if "keep_prob" in summary else "keep_ratio"
    strategies = terminal_table(Table(f"the whole graph at {budget} {summary[budget]:g}", columns, shares))
    edges = [
        (short(str(edge["source"]), 30), short(str(edge["target"]), 30), f"{edge['weight']:.6g}")
        for edge in summary["most_critical"]
    ]
    critical = Table("most critical edges", ("source", "target", "score"), edges, left=(0, 1))
    return Group(facts, strategies, terminal_table(critical))


def _facts(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    graph, weights = summary["graph"], summary["weights"]
    parts = graph["components"]
    yield "graph", f"{graph['name']}: {graph['nodes']:,} nodes, {graph['edges']:,} edges"
    isolated = f", {parts['isolated_nodes']:,} isolated nodes" if parts["isolated_nodes"] else ""
    yield "components", f"{parts['count']:,}: {parts['smallest']:,} to {parts['largest']:,} nodes{isolated}"
    part = summary.get("part")
    if part is not None and part["edges"] < graph["edges"]:
        size_words = f"{part['nodes']:,} nodes, {part['edges']:,} edges"
        yield "looked at", f"{part['words']}: {size_words} (--component chooses another, or all)"
    if "eigenvalues" in weights:
        number = None if part is None else part["component"]
        yield from _modes(weights, "the largest component" if number in (None, 1) else f"component {number:,}")
    else:
        yield "score", f"{label(weights['kind'])}, sum {weights['sum']:.6g}"
    yield "quantiles", ", ".join(f"{float(q):.0%} {value:.2g}" for q, value in weights["quantiles"].items())
    yield "ties", f"{weights['ties']:.1%} of the edges share their score with another; {weights['zeros']:.1%} are zero"
    given = "the knee" if weights["gamma"] == weights["knee"] else f"the knee is {weights['knee']:.4g}"
    yield "γ", f"{weights['gamma']:.4g} ({given}): {counted(weights['critical_edges'], 'critical edge')}"
    if part is not None and part["critical_elsewhere"]:
        elsewhere = counted(part["critical_elsewhere"], "edge")
        yield (
            "",
            f"{elsewhere} of other components would reach it, but scores of components differ in scale: not counted",
        )


def _modes(weights: Mapping[str, Any], where: str) -> Iterator[tuple[str, str]]:
    yield "score", f"aggregate resistance, {weights['laplacian']} Laplacian"
    values = ", ".join(f"{value:.4g}" for value in weights["eigenvalues"])
    yield "eigenvalues", f"{values} (the lowest of {where})"
    gap = "" if weights["gap"] is None else f", gap {weights['gap']:.4g}"
    yield "chosen q", f"{weights['chosen_q']} in {where}{gap}"
    if len(weights["modes"]) > 1:
        yield "", "modes: " + ", ".join(f"{count} in {many:,}" for count, many in weights["modes"].items())
    if weights["widened"]:
        yield "", f"q falls inside a repeated eigenvalue in {weights['widened']:,} components: whole eigenspaces used"
    if weights["without_modes"]:
        yield "", f"{weights['without_modes']:,} components have fewer nodes than q: their edges get the lowest score"
    yield "solved by", ", ".join(f"{name} ({many:,})" for name, many in weights["solved_by"].items())


def explained(parts: Sequence[Step]) -> Shown:
    """Which solvers are tried on which components, and why; components that fare alike share a line."""
    columns = ("components", "nodes", "edges", "solvers", "memory", "why")
    rows = []
    for (rungs, reason), some in groupby(parts, key=lambda part: (part.rungs, part.reason)):
        alike = list(some)
        count, memory = sum(part.count for part in alike), max(part.memory for part in alike)
        nodes, edges = span([part.nodes for part in alike]), span([part.edges for part in alike])
        rows.append((f"{count:,}", nodes, edges, ", ".join(rungs), size(memory), reason))
    return terminal_table(Table("", columns, rows, left=(3, 5)))
