"""References to names: every name that a docstring mentions must exist, also where the site has no page for it.

There is no list of exceptions. A name that Sphinx cannot link (of torch or numpy, whose inventories would need the
network, or one that is not public) is looked up by importing it: if it is there, it stays plain text; if not, the
warning stands and fails the build.
"""

from __future__ import annotations

import builtins
import importlib
import re
import sys
import typing
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def exists(name: str, module: str | None = None, owner: str | None = None) -> bool:
    """Whether ``name`` is something, seen from a class ``owner`` in ``module`` or from nowhere.

    >>> exists("torch.Tensor"), exists("Path", "tadropedge.graph"), exists("adjacency", "tadropedge.graph", "Graph")
    (True, True, True)
    >>> exists("tadropedge.graph.no_such_name"), exists("Pth", "tadropedge.graph")
    (False, False)
    """
    if name in vars(builtins) or name in vars(typing):
        return True
    for prefix in filter(None, (f"{module}.{owner}" if owner else None, module, "tadropedge", "")):
        if _found(f"{prefix}.{name}"):
            return True
    return _found(name) or bool(module and _imported_for_types(name, module))


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


def _imported_for_types(name: str, module: str) -> bool:
    """Whether the module, or one it takes names from, imports the name under ``TYPE_CHECKING``."""
    file = getattr(sys.modules.get(module) or importlib.import_module(module), "__file__", None)
    word = rf"^\s+(from \S+ )?import .*\b{re.escape(name.split('.')[0])}\b"
    return bool(file and re.search(word, Path(file).read_text(encoding="utf-8"), re.MULTILINE))


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.TextElement) -> nodes.TextElement | None:
    """The plain text of a reference to something that exists."""
    if node.get("refdomain") != "py":
        return None
    known = exists(node["reftarget"], node.get("py:module"), node.get("py:class"))
    return text if known else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hook."""
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
