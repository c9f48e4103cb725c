"""References to names: every name that a docstring mentions must exist, also where the site has no page for it.

There is no list of exceptions. A name that Sphinx cannot link (of torch or numpy, whose inventories would need the
network, or one that is not public) is looked up by importing it: if it is there, it stays plain text; if not, the
warning stands and fails the build.
"""

from __future__ import annotations

import builtins
import importlib
import re
import typing
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy.typing as npt
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.typing import stringify_annotation

import tadropedge

WORD = re.compile(r"[A-Za-z_]\w*")
ARRAYS = stringify_annotation(npt.ArrayLike, "smart")  # as autodoc writes it: a line and a half of private names
CODE = re.compile(r"(``.*?``|`[^`]*`)")


def exists(name: str, module: str | None = None, owner: str | None = None) -> bool:
    """Whether ``name`` is something, seen from a class ``owner`` in ``module`` or from nowhere.

    A bare name may also be one that a module of the package defines or imports: docstrings and annotations are written
    there, and documented under the name of the package that offers them.

    >>> exists("torch.Tensor"), exists("Path", "tadropedge.graph"), exists("adjacency", "tadropedge.graph", "Graph")
    (True, True, True)
    >>> exists("tadropedge.graph.no_such_name"), exists("Pth", "tadropedge.graph")
    (False, False)
    """
    name = name.lstrip("~").partition("[")[0]  # the annotation tuple[Hashable, ...] is cut in the middle
    if name in vars(builtins) or name in vars(typing) or name.partition(".")[0] in names_in_the_package():
        return True
    prefixes = (f"{module}.{owner}" if owner else None, module, "tadropedge")
    return any(_found(f"{prefix}.{name}") for prefix in prefixes if prefix) or _found(name)


def _found(path: str) -> bool:
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:length]))
        except (ImportError, ValueError):
            continue
        for part in parts[length:]:
            fields = {name for kind in getattr(thing, "__mro__", ()) for name in getattr(kind, "__annotations__", ())}
            if not hasattr(thing, part) and part not in fields:
                return False
            thing = getattr(thing, part, None)
        return True
    return False


@cache
def names_in_the_package() -> frozenset[str]:
    """Every name that a module of the package defines at its top or imports, also for types alone."""
    found: set[str] = set()
    for file in Path(tadropedge.__file__).parent.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        found.update(
            name for pair in re.findall(r"^(?:class|def) (\w+)|^(\w+)(?:: [^\n]+)? = ", text, re.M) for name in pair
        )
        for imported in re.findall(r"^\s*(?:from [\w.]+ )?import (\([^)]*\)|[^\n]*)", text, re.MULTILINE):
            found.update(WORD.findall(imported))
    return frozenset(found - {"", "as", "tadropedge"})


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.TextElement
) -> nodes.TextElement | None:
    """The plain text of a reference to something that exists."""
    if node.get("refdomain") != "py":
        return None
    known = exists(node["reftarget"], node.get("py:module"), node.get("py:class"))
    return text if known else None


def read_docstring(app: Sphinx, what: str, name: str, thing: Any, options: object, lines: list[str]) -> None:
    """Make docstrings reStructuredText: bars are bars, stars of arguments are stars; dictionaries list their names."""
    if what == "data" and isinstance(thing, Mapping):
        kind = f"Every {thing.kind}" if hasattr(thing, "kind") else "Entries"
        lines[:] = [f"{kind} by name: {', '.join(f'``{key}``' for key in thing)}.", ""]
    elif what == "data" and isinstance(thing, tuple):
        lines[:] = [f"The names: {', '.join(f'``{key}``' for key in thing)}.", ""]
    else:
        lines[:] = [line if line.lstrip().startswith((">>>", "...")) else escaped(line) for line in lines]


def read_signature(
    app: Sphinx, what: str, name: str, thing: Any, options: object, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """A signature that can be parsed and read: what a factory makes is an ellipsis, and ArrayLike has its name."""
    return (signature and signature.replace("<factory>", "...").replace(ARRAYS, "~numpy.typing.ArrayLike"), returns)


def escaped(line: str) -> str:
    r"""A line whose marks outside of code mean themselves.

    >>> escaped("|x| of ``|x|`` and **settings")
    '\\|x\\| of ``|x|`` and \\*\\*settings'
    """
    pieces = CODE.split(line)
    for place in range(0, len(pieces), 2):
        pieces[place] = re.sub(r"\*\*(?=\w+(?!.*\*\*))", r"\\*\\*", pieces[place].replace("|", "\\|"))
    return "".join(pieces)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hooks."""
    app.connect("autodoc-process-docstring", read_docstring)
    app.connect("autodoc-process-signature", read_signature)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
