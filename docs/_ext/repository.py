"""Links of a page that leave ``docs/`` lead to the repository on the site: one way of writing them works in both.

``../results/paper`` becomes an address in the repository, and a script of ``tutorials/`` the page that the gallery
makes of it. What does not exist is a warning, which fails the build.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

LINK = re.compile(r"(?<!!)(\[(?:[^\[\]]|\[[^\[\]]*\])*\])\(([^()\s:#]+)(#[^()\s]*)?\)")
FENCE = re.compile(r"^(```|~~~|:::).*?^\1", re.MULTILINE | re.DOTALL)
BLANK_END = re.compile(r"\n\s*\n(```|~~~)$")  # doctest needs a blank line after the last output, readers do not
logger = logging.getLogger(__name__)


def on_the_site(page: str, link: str, root: Path, address: str) -> str | None:
    """Where a relative ``link`` of ``page``, a path from the repository's ``root``, leads; None if nothing is there.

    >>> root = Path(__file__).parents[2]
    >>> on_the_site("docs/method.md", "../results/paper", root, "https://example.org/it/{kind}/main")
    'https://example.org/it/tree/main/results/paper'
    >>> on_the_site("CHANGELOG.md", "docs/scores.md", root, "")
    '/scores.md'
    >>> on_the_site("docs/method.md", "gone.md", root, "") is None
    True
    """
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    if target.startswith("..") or not (root / target).exists():
        return None
    folder, _, name = target.partition("/")
    if folder == "docs" and name.startswith("tutorials/plot_"):
        return f"/auto_{name.removesuffix('.py')}.rst"
    if folder == "docs":
        return f"/{name}"
    return f"{address.format(kind='tree' if (root / target).is_dir() else 'blob')}/{target}"


def rewritten(text: str, page: str, root: Path, address: str) -> tuple[str, list[str]]:
    """The Markdown ``text`` with its links as the site needs them, and the links that lead nowhere."""
    dead = []

    def one(found: re.Match[str]) -> str:
        words, link, fragment = found.groups(default="")
        target = on_the_site(page, link, root, address)
        if target is None:
            dead.append(link)
            return found.group()
        if target.startswith("/") and page.startswith("docs/") and not target.startswith("/auto_"):
            return found.group()  # a page's own links are checked by MyST
        return f"{words}({target}{fragment})"

    pieces, end = [], 0
    for fence in FENCE.finditer(text):
        pieces += [LINK.sub(one, text[end : fence.start()]), BLANK_END.sub(r"\n\1", fence.group())]
        end = fence.end()
    return "".join([*pieces, LINK.sub(one, text[end:])]), dead


def read_page(app: Sphinx, name: str, content: list[str]) -> None:
    """Rewrite the links of a page as it is read."""
    root = Path(app.srcdir).parent
    if app.env.doc2path(name).suffix == ".md":
        page = f"docs/{name}.md"
        included = re.fullmatch(r"\s*<!-- (\w+\.md) of the repository -->\s*", content[0])
        if included:  # the page is a file of the repository's root
            page = included[1]
            content[0] = (root / page).read_text(encoding="utf-8")
            app.env.note_dependency(str(root / page))
        address = f"{app.config.repository_url}/{{kind}}/{app.config.repository_branch}"
        content[0], dead = rewritten(content[0], page, root, address)
        for link in dead:
            logger.warning("%s links to %s, which is not in the repository", page, link, location=name)


def without_buttons(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """No button to view or edit the source of a page that the gallery made: the repository does not have it."""
    if name.startswith("auto_tutorials/"):
        context["theme_top_of_page_buttons"] = []


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the settings and the hooks."""
    app.add_config_value("repository_url", "", "env")
    app.add_config_value("repository_branch", "main", "env")
    app.connect("source-read", read_page)
    app.connect("html-page-context", without_buttons)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
