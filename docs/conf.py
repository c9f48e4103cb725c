"""Settings of the documentation site: Markdown pages, and a reference that is made of docstrings."""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

import tadropedge
import tadropedge.testing

project = "tadropedge"
author = "The tadropedge authors"
copyright = author  # noqa: A001
version = release = tadropedge.__version__

extensions = [
    "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "sphinx_copybutton",
]  # fmt: skip
PUBLIC = ("tadropedge", "tadropedge.lab", "tadropedge.pyg", "tadropedge.files", "tadropedge.spectrum")

# Markdown: GitHub's anchors for headings, so that a link works there and here.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

autodoc_default_options = {"members": True}  # of a module: its __all__
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
add_module_names = False
toc_object_entries_show_parents = "hide"
nitpicky = True  # a name in a docstring must be in the reference, but for those of others, modules, and types of ours
nitpick_ignore_regex = [
    ("py:.*", r"(torch|torch_geometric|numpy|scipy)\..*"),
    ("py:mod", r".*"),
    ("py:class", r"(?!tadropedge\.).*|tadropedge\.\w+\..*"),
]

html_theme = "furo"
html_title = f"tadropedge {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
smartquotes = False  # a prime is a prime, and two hyphens begin an option
copybutton_exclude = ".linenos, .gp, .go"  # what a prompt precedes is copied, without the prompt and the output


class Entries(SphinxDirective):
    """``.. entries:: SCORES``: a section for each entry of a dictionary, under the name that users write."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parse one ``autofunction`` for each entry."""
        found = []
        for name, function in getattr(tadropedge, self.arguments[0]).items():
            place = f"{function.__module__}.{function.__qualname__}"
            found += [name, "-" * len(name), "", f".. autofunction:: {place}", ""]
        return self.parse_text_to_nodes("\n".join(found), allow_section_headings=True)


class Contracts(SphinxDirective):
    """``.. contracts::``: what each contract of ``tadropedge.testing`` says, without its tests."""

    def run(self) -> list[nodes.Node]:
        """Parse one ``autoclass`` for each contract."""
        found = []
        for module in pkgutil.iter_modules(tadropedge.testing.__path__, "tadropedge.testing."):
            for name, value in vars(importlib.import_module(module.name)).items():
                if name.endswith("Contract") and value.__module__ == module.name:
                    tests = ", ".join(each for each in dir(value) if "test" in each)
                    found += [f".. autoclass:: {module.name}.{name}", f"   :exclude-members: {tests}", ""]
        return self.parse_text_to_nodes("\n".join(found))


def at_its_public_place(
    app: Sphinx, env: BuildEnvironment, node: nodes.Element, text: nodes.Element
) -> nodes.Element | None:
    """A name is documented where it is public, and annotations tell where it is defined."""
    if node.get("refdomain") != "py":
        return None
    name = node["reftarget"].rpartition(".")[2]
    for module in PUBLIC:
        if name in importlib.import_module(module).__all__:
            where = (env, node["refdoc"], app.builder)
            return env.domains["py"].resolve_xref(*where, "obj", f"{module}.{name}", node, text)
    return None


def escaped(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """The bars of |N(u) ∩ N(v)| are no markup; those of code and examples stay as they are."""
    example = False
    for place, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            lines[place] = re.sub(r"(``.*?``)|\|", lambda found: found[1] or r"\|", line)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what this file defines."""
    app.add_directive("entries", Entries)
    app.add_directive("contracts", Contracts)
    app.connect("autodoc-process-docstring", escaped)
    app.connect("missing-reference", at_its_public_place)
    return {"parallel_read_safe": True}
