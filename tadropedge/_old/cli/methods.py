"""``tadropedge methods``: what the names of methods are made of."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from tadropedge._old.cli.options import Json_, Plugin_
from tadropedge._old.cli.report import show
from tadropedge._old.method import OPTIONS, PAPER_SCORE, SENSITIVITY, UNIFORM, rules
from tadropedge._old.registry import NETWORKS, SCORES, STRATEGIES

FORMS = {
    "original": "nothing is dropped",
    "dropedge[:OPTION...]": "every edge is dropped with the same probability",
    "dropsens[:OPTION...]": "edges are dropped by the degrees of their ends",
    "[inverse-][SCORE-]RULE[:OPTION...]": f"edges are dropped by score; without SCORE it is {PAPER_SCORE}",
    "NETWORK or NETWORK+METHOD": "another network instead of the backbone",
    "auto": "score, rule, options and budget are found by the search",
}
EXAMPLES = "cdf, effective-cutoff, inverse-cdf, degree-proportional:unbiased, dropedge:connected:nested, graphsage+cdf"


def methods_command(plugin: Plugin_ = None, as_json: Json_ = False) -> None:
    """List the methods: their forms, and every score, rule, option and network, also those of your own modules."""
    del plugin  # its callback has imported them
    from tadropedge._old.scores.aggregate import aggregate_resistance
    from tadropedge._old.scores.effective import effective_resistance

    spectral = {"aggregate": aggregate_resistance, "effective": effective_resistance}
    scores = {name: first_line(spectral.get(name, SCORES[name])) for name in SCORES}
    by_score = {name: first_line(STRATEGIES[name]) for name in rules()}
    networks = {name: first_line(NETWORKS[name]) for name in NETWORKS}
    listed = {"methods": FORMS, "scores": scores, "rules": by_score, "options": OPTIONS, "networks": networks}
    listed["rules"] |= {"dropedge": first_line(STRATEGIES[UNIFORM]), SENSITIVITY: first_line(STRATEGIES[SENSITIVITY])}
    show(listed, as_json, _lines(listed))


def _lines(listed: dict[str, dict[str, str]]) -> Iterator[str]:
    for kind, entries in listed.items():
        yield f"{kind}:"
        width = max(map(len, entries))
        yield from (f"  {name:{width}}  {words}" for name, words in entries.items())
        yield ""
    yield f"Examples: {EXAMPLES}"


def first_line(thing: object) -> str:
    """The first sentence of a docstring, without the shape and the marks of code; or that there is none.

    >>> first_line(SCORES["degree"])
    '1/d_u + 1/d_v for every edge (u, v); d is the weighted degree where the graph has weights.'
    """
    words = (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("``", "").replace(", float64 [M]", "")
    return " ".join(words.split()) or "(no docstring)"
