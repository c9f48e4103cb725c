"""Tutorials and how-to pages as files; ``make docs`` runs the tutorials, and pytest the examples of the pages."""

import ast
import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("plot_*.py"))
PAGES = sorted(path for path in (DOCS / "howto").glob("*.md") if path.name != "index.md")


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_has_a_title_and_links_that_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    title, underline, *_ = ast.get_docstring(ast.parse(text)).split("\n")
    assert underline == "=" * len(title)
    for target in re.findall(r":doc:`([^`<>]+)`", text):
        page = DOCS / f"{target[1:]}.md" if target.startswith("/") else path.with_name(f"{target}.py")
        assert page.is_file(), target


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_downloads_nothing(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names}
    assert {name for name in imported if name.startswith("load_")} <= {"load_clusters", "load_karate"}
    assert not any(node.module.startswith("torch_geometric.datasets") for node in ast.walk(tree)
                   if isinstance(node, ast.ImportFrom) and node.module)  # fmt: skip


def test_tutorials_are_shown_in_reading_order(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_ext")
    order = importlib.import_module("reading_order")
    assert {path.stem for path in TUTORIALS} == set(order.ORDER)
    assert [path.stem for path in sorted(TUTORIALS, key=order.InReadingOrder("tutorials"))] == list(order.ORDER)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_index_of_how_to_pages_names_every_one(path):
    assert f"]({path.name})" in (DOCS / "howto" / "index.md").read_text(encoding="utf-8")
