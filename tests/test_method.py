"""The grammar of methods: every name that is printed is read back, and everything else is answered in one line."""

import subprocess
import sys

import pytest

from tadropedge.errors import TadropedgeError
from tadropedge.method import Method, droppings
from tadropedge.registry import NETWORKS, SCORES, Registry


def test_every_printed_name_is_read_back():
    names = [*droppings(), *NETWORKS]
    names += [f"{network}+{name}" for network in NETWORKS for name in droppings() if NETWORKS[network].drops]
    assert len(set(names)) == len(names)
    for name in names:
        assert Method.of(name).name == name


@pytest.mark.parametrize(
    ("name", "score", "strategy", "inverse", "network"),
    [
        ("original", None, None, False, None),
        ("dropedge", None, "uniform", False, None),
        ("cutoff", "aggregate", "cutoff", False, None),
        ("inverse-cdf", "aggregate", "cdf", True, None),
        ("effective-division", "effective", "division", False, None),
        ("inverse-effective-cdf", "effective", "cdf", True, None),
        ("graphsage", None, None, False, "graphsage"),
        ("fastgcn+dropedge", None, "uniform", False, "fastgcn"),
        ("jknet+inverse-effective-cdf", "effective", "cdf", True, "jknet"),
        ("ptdnet+original", None, None, False, "ptdnet"),
        ("dropsens", None, "dropsens", False, None),
        ("graphsage+dropsens", None, "dropsens", False, "graphsage"),
        ("auto", None, None, False, None),
        ("jknet+auto", None, None, False, "jknet"),
    ],
)
def test_names(name, score, strategy, inverse, network):
    method = Method.of(name)
    assert (method.score, method.strategy, method.inverse, method.network) == (score, strategy, inverse, network)
    assert method.adaptive == (score is not None or "dropsens" in name or "auto" in name)
    assert method.auto == name.endswith("auto")
    assert method.reference == ("dropedge" if network is None else f"{network}+dropedge")


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("effective-inverse-cdf", "inverse-effective-cdf"),  # as 0.1 wrote it
        ("aggregate-cdf", "cdf"),
        ("aggregate-inverse-cutoff", "inverse-cutoff"),
        ("gcn+aggregate-cdf", "gcn+cdf"),
    ],
)
def test_other_ways_to_write_a_name(written, printed):
    assert Method.of(written) == Method.of(printed)


@pytest.mark.parametrize(
    ("written", "printed", "options"),
    [
        ("dropedge:unbiased", "dropedge:unbiased", ("unbiased",)),
        ("dropsens:nested:unbiased", "dropsens:unbiased:nested", ("unbiased", "nested")),
        ("effective-inverse-cdf:exact:connected", "inverse-effective-cdf:connected:exact", ("connected", "exact")),
        ("graphsage+aggregate-proportional:nested", "graphsage+proportional:nested", ("nested",)),
    ],
)
def test_options_are_printed_in_one_order(written, printed, options):
    method = Method.of(written)
    assert (method.name, method.options, method.adaptive) == (printed, options, True)
    assert Method.of(printed) == method
    assert method.dropping == printed.rpartition("+")[2]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cdf:unbaised", "'cdf:unbaised': unknown option 'unbaised'; choose from .* \\(did you mean 'unbiased'\\?\\)"),
        ("cdf:", "'cdf:': unknown option ''"),
        ("cdf:nested:nested", "'cdf:nested:nested' names the option 'nested' more than once"),
        ("cdf:connected:unbiased", "unbiased and connected exclude each other: a spanning forest is kept whatever"),
        ("gcn+cdf:unbiased:exact", "unbiased and exact exclude each other: with a fixed number of edges"),
        ("inverse-dropsens:exact", "'inverse-dropsens:exact': dropsens has no inverse"),
        ("inverse-dropedge", "dropedge has no inverse"),
        ("original:nested", "'original:nested' drops no edges and has no options"),
        ("auto:nested", "'auto:nested' leaves its options to the search"),
        ("gcn:nested", "unknown method 'gcn:nested'"),
        ("cfd:nested", r"unknown method 'cfd:nested'.*did you mean 'cdf:nested'"),
        ("ptdnet+auto", "ptdnet chooses its edges itself and cannot be combined with edge dropping"),
    ],
)
def test_wrong_options_are_answered_in_one_line(name, message):
    with pytest.raises(TadropedgeError, match=message) as caught:
        Method.of(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["", "cfd", "inverse", "inverse-", "-cdf", "cdf-", "uniform", "effective", "effectivecdf", "inverse-inverse-cdf",
     "gcn+", "+cdf", "gcn+gcn", "gcn+cdf+cdf", "nosuch-cdf", "cdf+gcn", None, 3, ["cdf"]],
)  # fmt: skip
def test_everything_else_is_answered_in_one_line(name):
    with pytest.raises(TadropedgeError, match=r"unknown method .*; choose from original, auto, dropedge") as caught:
        Method.of(name)
    assert "\n" not in str(caught.value)
    assert repr(name) in str(caught.value)


def test_the_longer_of_two_rules_is_meant(monkeypatch):
    from tadropedge.registry import STRATEGIES

    monkeypatch.setitem(STRATEGIES, "soft-cdf", lambda weights: weights / weights.max())
    assert (Method.of("effective-soft-cdf").score, Method.of("effective-soft-cdf").strategy) == (
        "effective",
        "soft-cdf",
    )
    assert Method.of("inverse-soft-cdf").strategy == "soft-cdf"


@pytest.mark.parametrize("name", ["inverse-degree", "original", "dropedge-2", "auto", "Degree", "a b", "", "x_y", 3])
def test_names_that_the_grammar_could_not_tell_apart_are_refused(name):
    with pytest.raises(TadropedgeError, match="the name of a score"):
        SCORES[name] = len
    assert name not in SCORES


def test_what_is_no_function_is_refused():
    scores = Registry("score", {})
    with pytest.raises(TadropedgeError, match=r"the score 'strength' must be a function score.* got int 3"):
        scores["strength"] = 3


def test_names_are_read_without_torch():
    code = "import sys; from tadropedge.method import Method; Method.of('effective-cdf'); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize(
    ("registry", "name", "entry", "words"),
    [
        (NETWORKS, "cdf", dict, "'cdf' is the name of a strategy already: the network needs another"),
        (SCORES, "gcn", len, "'gcn' is the name of a network already: the score needs another"),
        (SCORES, "degree-inverse", len, "the name of a score cannot end with 'inverse', got 'degree-inverse'"),
        (NETWORKS, "mine", len, "the network 'mine' must be a class, .* got builtin_function_or_method"),
    ],
)
def test_entries_that_would_be_mistaken_later_are_refused(registry, name, entry, words):
    with pytest.raises(TadropedgeError, match=words):
        registry[name] = entry


def test_a_registry_prints_its_names():
    assert repr(Registry("score", {"path": "os.path:join"})) == "Registry('score': path)"
