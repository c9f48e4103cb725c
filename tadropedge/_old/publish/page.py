"""Self-contained pages: one file, no request, light and dark, readable on a phone.

Templates lie beside the code that fills them and extend ``publish/page.html.j2``, which holds the style and a content
security policy that forbids every request. Names from the outside are escaped. A script is admitted by its hash.

Pictures are embedded once, as they are drawn for white paper; in the dark the style turns their lightness round and
leaves their hues, so that a page with dark pictures is no larger and files of older versions follow, too.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tadropedge._old.publish import wording
from tadropedge._old.publish.label import FIRST

__all__ = ["Markup", "Script", "embedded", "render", "run_lines", "script"]


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("tadropedge._old", ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    made.globals["words"] = wording
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return made


def render(template: str, **parts: object) -> str:
    """The page as text; ``template`` is a path inside the package, such as ``comparison/report.html.j2``.

    A ``script`` among the parts, a :class:`Script`, stands at the end of the page, and its policy admits it.
    """
    return _environment().get_template(template).render(**{"script": None, **parts})


@dataclass(frozen=True)
class Script:
    """An inline script, and the source by which the policy of its page admits it and no other."""

    text: Markup
    source: Markup


def script(*files: str) -> Script:
    """Files of the package as one inline script.

    >>> str(script("publish/tables.js").source)[:8]
    "'sha256-"
    """
    package = resources.files("tadropedge._old")
    text = "\n".join(package.joinpath(file).read_text(encoding="utf-8") for file in files)
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Script(Markup(text), Markup(f"'sha256-{digest}'"))


def embedded(png: bytes | Path) -> str:
    """A picture as the address of an image; empty where there is no such file.

    >>> embedded(b"PNG"), embedded(Path("missing.png"))
    ('data:image/png;base64,UE5H', '')
    """
    if isinstance(png, Path):
        return embedded(png.read_bytes()) if png.is_file() else ""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def run_lines(run: Mapping[str, object]) -> list[tuple[str, str]]:
    """The members of a run's label as words, the usual ones first.

    >>> run_lines({"device": "cpu", "commit": "0123abcd"})
    [('commit', '0123abcd'), ('device', 'cpu')]
    """
    order = [name for name in FIRST if name in run] + [name for name in run if name not in FIRST]
    return [(name, wording.shown(run[name])) for name in order]
