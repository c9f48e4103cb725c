"""The page "Which edge dropping should I use?": made of a map, and nothing without one."""

import importlib
import io
import sys
from pathlib import Path

import pytest
from browser import Page
from regime_maps import regime_map

from tadropedge.regimes.report import write_all
from tadropedge.regimes.statements import statements
from tadropedge.regimes.summary import choice, conditions

DOCS = Path(__file__).parents[1] / "docs"
MAP = regime_map()
CONF = """
extensions = ["myst_parser", "sphinx_design", "regimes"]
def setup(app):
    app.add_config_value("repository_url", "https://example.org/it", "env")
    app.add_config_value("repository_branch", "main", "env")
"""


@pytest.fixture
def regimes(monkeypatch):
    """The extension, as in a build."""
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    yield importlib.import_module("regimes")
    sys.modules.pop("regimes", None)


def test_every_situation_is_in_the_table_once(regimes):
    rows = list(regimes.rows(MAP))
    chosen = [choice(MAP, one) for one in conditions(MAP)]
    without = [one for one in chosen if one.method is None and one.reference == "none"]
    assert len(rows) == len(chosen) - len(without) + 1
    assert rows[-1][0].count(";") == len(without) - 1
    assert rows[-1][1:3] == ("no dropping", f"0 of {10 * len(without)} cells, any method")
    low = next(row for row in rows if row[0].startswith("10 %"))
    made = choice(MAP, ("budget", 0.1))
    assert low[1] == f"`{made.method}`"
    assert low[2] == f"{made.record.better} of 10 datasets, than DropEdge at the same budget"
    rare = next(one for one in chosen if one.method and not one.often)
    assert regimes.used(rare) == f"perhaps `{rare.method}`"


def build(folder, text):
    """Build a site of one page; what Sphinx warns of, and the page."""
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace

    docs = folder / "docs"
    docs.mkdir()
    (docs / "conf.py").write_text(CONF, encoding="utf-8")
    (docs / "index.md").write_text(text, encoding="utf-8")
    warnings = io.StringIO()
    with docutils_namespace():
        site = Sphinx(docs, docs, folder / "site", folder / "trees", "html", status=None, warning=warnings)
        site.build()
    return warnings.getvalue(), (folder / "site" / "index.html").read_text(encoding="utf-8")


SOURCE = "# Which?\n\n```{which-dropping}\n```\n"


@pytest.mark.filterwarnings("ignore")  # of Sphinx and what it imports
def test_the_site_has_the_table_the_picture_and_every_sentence(regimes, tmp_path):
    write_all(MAP, tmp_path / "results" / "regimes")
    warnings, page = build(tmp_path, SOURCE)
    assert warnings == ""
    seen = Page(page)
    assert all(one.words in seen.text for one in statements(MAP))
    assert "degree-proportional" in seen.text
    assert (tmp_path / "site" / "_images" / "map.png").is_file()
    links = [found.get("href") for tag, found in seen.tags if tag == "a"]
    assert "https://example.org/it/tree/main/results/regimes" in links


@pytest.mark.filterwarnings("ignore")
def test_without_a_map_the_build_says_what_is_missing(regimes, tmp_path):
    warnings, _ = build(tmp_path, SOURCE)
    assert "results/regimes/results.json is missing" in warnings
    assert "tadropedge regimes --preset full --out results/regimes" in warnings


def test_the_page_is_linked_from_the_start():
    start = (DOCS / "index.md").read_text(encoding="utf-8")
    assert "(which.md)" in start
    assert "\nwhich\n" in start
    assert "{which-dropping}" in (DOCS / "which.md").read_text(encoding="utf-8")
