"""The summary for the terminal: a few lines, the strategies as a table, and what ``--explain`` says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from tadropedge.score_report.summary import label
from tadropedge.spectrum import Step
from tadropedge.spectrum.memory import bytes_in_words


def page(summary: Mapping[str, Any]) -> Group:
    """Facts, strategies and the most critical edges."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, words in _facts(summary):
        facts.add_row(Text(name), Text(words))
    return Group(facts, strategies(summary), _critical(summary["most_critical"]))


def _facts(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    graph, weights = summary["graph"], summary["weights"]
    parts = graph["components"]
    yield "graph", f"{graph['name']}: {graph['nodes']:,} nodes, {graph['edges']:,} edges"
    isolated = f", {parts['isolated_nodes']:,} isolated nodes" if parts["isolated_nodes"] else ""
    yield "components", f"{parts['count']:,}: {parts['smallest']:,} to {parts['largest']:,} nodes{isolated}"
    if "eigenvalues" in weights:
        yield from _modes(weights)
    else:
        yield "weights", f"{label(weights['kind'])}, sum {weights['sum']:.6g}"
    yield "quantiles", ", ".join(f"{float(q):.0%} {value:.2g}" for q, value in weights["quantiles"].items())
    yield "ties", f"{weights['ties']:.1%} of the edges share their weight with another; {weights['zeros']:.1%} are zero"
    given = "the knee" if weights["gamma"] == weights["knee"] else f"the knee is {weights['knee']:.4g}"
    yield "γ", f"{weights['gamma']:.4g} ({given}): {weights['critical_edges']:,} critical edges"


def _modes(weights: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "weights", f"aggregate resistance, {weights['laplacian']} Laplacian"
    values = ", ".join(f"{value:.4g}" for value in weights["eigenvalues"])
    yield "eigenvalues", f"{values} (the lowest of the largest component)"
    gap = "" if weights["gap"] is None else f", gap {weights['gap']:.4g}"
    yield "chosen q", f"{weights['chosen_q']} in the largest component{gap}"
    if len(weights["modes"]) > 1:
        yield "", "modes: " + ", ".join(f"{count} in {many:,}" for count, many in weights["modes"].items())
    if weights["widened"]:
        yield "", f"q falls inside a repeated eigenvalue in {weights['widened']:,} components: whole eigenspaces used"
    if weights["without_modes"]:
        yield "", f"{weights['without_modes']:,} components have fewer nodes than q: the lowest weight"
    yield "solved by", ", ".join(f"{name} ({many:,})" for name, many in weights["solved_by"].items())


def strategies(summary: Mapping[str, Any]) -> Table:
    """What each strategy keeps and protects at the default probability p."""
    table = Table(title=f"at keep_prob {summary['keep_prob']:g}", box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("strategy")
    table.add_column("kept on average", justify="right")
    table.add_column("protected (kept > 99 %)", justify="right")
    for name, shares in summary["strategies"].items():
        table.add_row(Text(name), f"{shares['kept']:.2%}", f"{shares['protected']:.2%}")
    return table


def _critical(edges: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title="most critical edges", box=box.SIMPLE_HEAD, title_justify="left")
    for name in ("source", "target"):
        table.add_column(name, overflow="ellipsis", no_wrap=True, max_width=30)
    table.add_column("weight", justify="right")
    for edge in edges:
        table.add_row(Text(str(edge["source"])), Text(str(edge["target"])), f"{edge['weight']:.6g}")
    return table


def explained(parts: Sequence[Step]) -> Table:
    """Which solvers are tried on which components, and why; components that fare alike share a line."""
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("components", "nodes", "edges"):
        table.add_column(name, justify="right")
    table.add_column("solvers")
    table.add_column("memory", justify="right")
    table.add_column("why", overflow="fold")
    for (rungs, reason), some in groupby(parts, key=lambda part: (part.rungs, part.reason)):
        alike = list(some)
        table.add_row(
            f"{sum(part.count for part in alike):,}",
            _span([part.nodes for part in alike]),
            _span([part.edges for part in alike]),
            ", ".join(rungs),
            bytes_in_words(max(part.memory for part in alike)),
            reason,
        )
    return table


def _span(numbers: Sequence[int]) -> str:
    least, most = min(numbers), max(numbers)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
