"""Citations: exactly the parts of a method, and entries that are whole."""

import re

import pytest

import tadropedge as tde
from tadropedge.lab.candidate import WAYS
from tadropedge.lab.citations import FILE, SOURCES
from tadropedge.lab.registry import NETWORKS

OUR_OWN = {"column", "uniform", "proportional", "floor", "dropped", "weighted", "pruned", "finish"}


def keys(method):
    return re.findall(r"^@\w+\{(\w+),", tde.cite(method), re.MULTILINE)


@pytest.mark.parametrize(
    ("method", "wanted"),
    [
        ("original", []),
        ("dropedge@0.5", ["rong2020dropedge"]),
        ("cdf", ["rong2020dropedge", "gao2021training"]),
        ("degree-proportional", ["rong2020dropedge", "lovasz1993random", "liu2023dspar"]),
        ("jaccard-proportional:weighted", ["wu2019adversarial"]),
        ("gat+original:consistent", ["velickovic2018graph", "feng2020graph", "krause2010discriminative"]),
        ("dropedge@0:finish", ["rong2020dropedge", "han2023mlpinit"]),
        ("incepgcn+dropedge", ["rong2020dropedge"]),
    ],
)
def test_the_parts_of_a_method_and_no_others(method, wanted):
    assert keys(method) == wanted
    text = tde.cite(method)
    assert repr(text) == text
    assert text.count("{") == text.count("}")


def test_a_part_of_ones_own_is_a_comment():
    def strength(graph):
        return graph.pairs[0]

    text = tde.cite(tde.Dropping(score=strength, rule="cdf"))
    assert "% strength" in text
    assert "gao2021training" in text


def test_every_part_has_a_source_or_is_known_to_have_none():
    ours = [name for name, network in NETWORKS.items() if network.__module__.startswith("tadropedge.")]
    parts = {*tde.SCORES, *tde.RULES, *tde.USES, *tde.OPTIONS, *WAYS, *ours}
    assert parts == {*SOURCES, *OUR_OWN}
    entries = FILE.read_text(encoding="utf-8").strip().split("\n\n")
    known = [re.match(r"@\w+\{(\w+),\n", entry)[1] for entry in entries]
    assert len(known) == len(set(known))
    assert {key for some in SOURCES.values() for key in some} | {"han2023mlpinit"} == set(known)
    for entry in entries:
        assert {"title", "author", "year"} <= set(re.findall(r"^  (\w+) = \{.*\},$", entry, re.MULTILINE))
        assert entry.endswith("\n}")
