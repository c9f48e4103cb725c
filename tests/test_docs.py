"""The documentation site: what can be checked of it without building it; ``make docs`` builds it, strictly."""

import doctest
import importlib
import importlib.util
import re
import sys
from pathlib import Path

import pytest

from tadropedge import registry

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PUBLIC = ("tadropedge", "tadropedge.data", "tadropedge.diagnostics", "tadropedge.pyg", "tadropedge.search",
          "tadropedge.spectrum")  # fmt: skip
KINDS = ("score", "strategy", "option", "form", "network")


@pytest.fixture(autouse=True)
def extensions(monkeypatch):
    """The folder of the site's own extensions on the path, as in a build."""
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # or the settings would say how many
    monkeypatch.setenv("MPLBACKEND", "agg")
    for folder in (DOCS, DOCS / "_ext"):  # the first for its settings, conf.py
        monkeypatch.syspath_prepend(str(folder))
    yield
    for name in (
        "cards",
        "check_links",
        "commands",
        "conf",
        "evidence",
        "names",
        "reading_order",
        "regimes",
        "repository",
        "tutorials",
    ):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["cards", "evidence", "names", "reading_order", "regimes", "repository"])
def test_the_examples_of_the_extensions(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted
    assert not found.failed


@pytest.fixture(autouse=True)
def shipped(monkeypatch):
    """The registries as they are shipped: examples of other tests may have added to them."""
    path = ROOT / "tadropedge" / "registry.py"
    fresh = importlib.util.module_from_spec(importlib.util.spec_from_file_location("fresh_registry", path))
    fresh.__spec__.loader.exec_module(fresh)
    for name in ("SCORES", "STRATEGIES", "NETWORKS", "DATASETS", "MEASURES"):
        monkeypatch.setattr(getattr(registry, name), "_entries", dict(getattr(fresh, name)._entries))


def documented():
    """Every name that the reference documents, with its module."""
    found = set()
    for page in (DOCS / "reference").glob("*.md"):
        module = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if where := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = where[1]
            if name := re.match(r"\.\. auto(?:function|class|exception|data):: (\S+)", line):
                found.add(name[1] if name[1].startswith("tadropedge.") else f"{module}.{name[1]}")
    return found


def test_the_settings_are_those_of_this_package():
    conf = importlib.import_module("conf")
    assert conf.release == importlib.import_module("tadropedge").__version__
    assert conf.nitpicky
    assert conf.html_baseurl.startswith("https://")


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_in_the_reference(module):
    public = importlib.import_module(module).__all__
    assert [name for name in public if f"{module}.{name}" not in documented()] == []


def test_every_registered_score_rule_network_and_measure_is_in_the_reference():
    from tadropedge.registry import MEASURES, NETWORKS, SCORES, STRATEGIES

    faces = {"aggregate": "tadropedge.aggregate_resistance", "effective": "tadropedge.effective_resistance"}
    for known in (SCORES, STRATEGIES, NETWORKS, MEASURES):
        for name in known:
            entry = known[name]
            home = faces.get(name) if known is SCORES else None
            assert (home or f"{entry.__module__}.{entry.__name__}") in documented()


def test_what_the_reference_documents_is_there():
    for name in documented():
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


@pytest.mark.parametrize("kind", KINDS)
def test_every_method_has_a_whole_card(kind):
    cards = importlib.import_module("cards")
    made = cards.cards(kind)
    assert {card.name: card.missing for card in made if card.missing} == {}
    assert [card.name for card in made] == cards.names(kind)


def test_every_registered_method_has_a_card():
    from tadropedge.method import OPTIONS
    from tadropedge.registry import NETWORKS, SCORES, STRATEGIES

    names = importlib.import_module("cards").names
    wanted = {"score": SCORES, "strategy": STRATEGIES, "network": NETWORKS, "option": OPTIONS}
    assert {kind: set(names(kind)) for kind in wanted} == {kind: set(known) for kind, known in wanted.items()}


def test_a_score_without_a_source_has_no_whole_card(monkeypatch):
    from tadropedge.registry import SCORES

    def mine(graph):
        """2 d for every edge."""

    monkeypatch.setitem(SCORES._entries, "mine", mine)
    card = next(card for card in importlib.import_module("cards").cards("score") if card.name == "mine")
    assert card.missing == ["formula", "cost", "source"]


def test_what_a_tutorial_registers_is_forgotten(monkeypatch):
    from tadropedge.registry import SCORES

    tutorials = importlib.import_module("tutorials")
    before = list(SCORES)
    monkeypatch.setitem(SCORES._entries, "mine", len)
    tutorials.forget({}, "plot_mine.py")
    assert list(SCORES) == before


def test_verdicts_come_from_the_results(tmp_path):
    evidence = importlib.import_module("evidence")
    assert evidence.measured(tmp_path) == {}  # nothing there, nothing said
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    row = '{"score": "degree", "seconds": 0.5, "nodes": 1000, "edges": 9000}'
    (folder / "scores-cpu.json").write_text(f'{{"large": [{row}]}}')
    evidence.measured.cache_clear()
    found = evidence.measured(tmp_path)
    assert found == {("score", "degree"): evidence.Measured(["0.5 s for 1,000 nodes and 9,000 edges on two cores"])}


def test_a_card_of_what_was_not_measured_says_so():
    cards, evidence = importlib.import_module("cards"), importlib.import_module("evidence")
    card = cards.Card(kind="form", name="original", words="Nothing.", formula="S", cost="0", source="us")
    text = cards.as_markdown(card, evidence.Measured(), "")
    assert text.count("not measured") == 2


def test_every_command_and_option_is_in_the_reference():
    commands = importlib.import_module("commands")
    for name, command in commands.commands().items():
        text = commands.as_markdown(name, command)
        for option in command.params:
            typed = [*option.opts, (option.metavar or "").split(":")[0]]
            assert option.hidden or any(one and f"`{one}" in text for one in typed), (name, option.name)


SITE = {
    "index.html": '<h1 id="top">It</h1><a href="a/page.html#here">a</a><a href="#top">b</a><a href="https://x.org/">c</a>',
    "a/page.html": '<p id="here"></p><a href="../index.html">back</a><img src="../picture.png">',
    "picture.png": "",
    "style.css": "body { background: url(picture.png) }",
}


def site(folder, **changed):
    for name, text in (SITE | changed).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_whole_site_has_nothing_wrong(tmp_path):
    check = importlib.import_module("check_links")
    assert check.wrong(site(tmp_path)) == []
    assert check.external(tmp_path) == ["https://x.org/"]


@pytest.mark.parametrize(
    ("planted", "said"),
    [
        ('<a href="gone.html">', "new.html: gone.html leads to no file"),
        ('<img src="gone.png">', "new.html: gone.png leads to no file"),
        ('<a href="a/page.html#gone">', "new.html: a/page.html#gone leads to no such place in the page"),
        ('<a href="#gone">', "new.html: #gone leads to no such place in the page"),
        ('<script src="https://cdn.org/x.js">', "new.html: loads https://cdn.org/x.js from the network"),
        ('<link rel="stylesheet" href="//cdn.org/x.css">', "new.html: loads //cdn.org/x.css from the network"),
    ],
)
def test_a_planted_dead_link_is_found(tmp_path, planted, said):
    check = importlib.import_module("check_links")
    assert check.wrong(site(tmp_path, **{"new.html": planted})) == [said]


def test_a_style_sheet_that_loads_a_font_is_found(tmp_path):
    check = importlib.import_module("check_links")
    planted = {"style.css": "@font-face { src: url('https://fonts.org/x.woff') }"}
    assert check.wrong(site(tmp_path, **planted)) == ["style.css: loads a font or picture from the network"]


def test_links_out_of_docs_lead_to_the_repository():
    repository = importlib.import_module("repository")
    address = "https://r.org/{kind}/main"
    after = "[e](gone.md)\n```\n[f](../gone)\n```\n"
    text = f"[a](../LICENSE) [b](../results#x) [c](scores.md) ![d](noisy-clusters.png) {after}"
    made, dead = repository.rewritten(text, "docs/method.md", ROOT, address)
    assert made == (
        "[a](https://r.org/blob/main/LICENSE) [b](https://r.org/tree/main/results#x) [c](scores.md) "
        f"![d](noisy-clusters.png) {after}"
    )
    assert dead == ["gone.md"]
    assert repository.rewritten("[a](docs/scores.md#x)", "README.md", ROOT, "") == ("[a](/scores.md#x)", [])


def test_names_in_docstrings_must_exist():
    names = importlib.import_module("names")
    assert names.exists("torch.Tensor")
    assert names.exists("adjacency", "tadropedge.graph", "Graph")
    assert not names.exists("tadropedge.graph.no_such_name")
    assert not names.exists("Grph", "tadropedge.graph")
