"""The command line, from its own help: the directive ``commands`` writes a section for every command.

What it says is what ``tadropedge COMMAND --help`` says; nothing is written twice.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from tadropedge.publish.tables import markdown


def commands() -> dict[str, Any]:
    """Every command by its name, as click knows it."""
    from typer.main import get_command

    from tadropedge.cli import app

    return dict(sorted(get_command(app).commands.items()))  # type: ignore[attr-defined]


def cell(text: str) -> str:
    """Words for a cell of a table: marks that Markdown would read are kept as they are."""
    return "".join(f"\\{mark}" if mark in "\\`*_[]<>|{}" else mark for mark in " ".join(text.split()))


def as_markdown(name: str, command: Any) -> str:
    """The section of a command."""
    context = command.make_context(f"tadropedge {name}", [], resilient_parsing=True)
    usage = re.sub(r"\{(\w+)\}", r"\1", command.get_usage(context).removeprefix("Usage: "))
    lines = [f"## {name}", "", "```sh", usage, "```", ""]
    for paragraph in inspect.cleandoc(command.help or "").replace("\b", "").split("\n\n"):
        if paragraph.startswith(("Example: ", "Examples: ")):
            lines += ["```sh", *paragraph.partition(": ")[2].splitlines(), "```", ""]
        else:
            lines += [cell(paragraph), ""]
    records = [one.get_help_record(context) for one in sorted(command.params, key=lambda one: one.opts[0][:1] == "-")]
    rows = [(f"`{typed}`", cell(meaning)) for typed, meaning in filter(None, records)]
    return "\n".join([*lines, *markdown(("argument or option", "meaning"), rows, (0, 1)), ""])


class Commands(SphinxDirective):
    """Every command of the command line."""

    def run(self) -> list[nodes.Node]:
        """Make the sections; the page is made anew whenever the site is built, for the help may have changed."""
        self.env.note_reread()
        text = "\n".join(as_markdown(name, command) for name, command in commands().items())
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
