"""Templates, and self-contained pages: one file, no request, light and dark, readable on a phone.

Templates lie beside the code that fills them. Those of pages extend ``reports/page.html.j2``, which holds the style and
a content security policy that forbids every request; a script is admitted by its hash. Names from the outside are
escaped on pages; templates that end in ``.txt.j2`` are plain text.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from filelock import FileLock, Timeout
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from tadropedge._support.atomic import make_folder
from tadropedge.errors import TadropedgeError, cannot_write
from tadropedge.lab.reports.text import FILTERS

LAB = "tadropedge.lab"
LOCK = ".tadropedge.lock"
WAIT = 60.0  # seconds for another process to finish its pages


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader(LAB, ""),
        autoescape=select_autoescape(("html.j2",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {one.__name__: one for one in FILTERS}
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return made


def render(template: str, **parts: object) -> str:
    """A filled template; ``template`` is a path inside the laboratory, such as ``comparison/report.html.j2``.

    A ``script`` among the parts, a :class:`Script`, stands at the end of the page, and its policy admits it.
    """
    return _environment().get_template(template).render(**{"script": None, **parts})


@dataclass(frozen=True)
class Script:
    """An inline script, and the source by which the policy of its page admits it and no other."""

    text: Markup
    source: Markup


def script(*files: str) -> Script:
    """Files of the laboratory as one inline script.

    >>> str(script("reports/tables.js").source)[:8]
    "'sha256-"
    """
    package = resources.files(LAB)
    text = "\n".join(package.joinpath(file).read_text(encoding="utf-8") for file in files)
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Script(Markup(text), Markup(f"'sha256-{digest}'"))


@contextmanager
def pages_of(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder while its pages are written, so that all of them are of one run."""
    lock = folder / LOCK
    try:
        make_folder(folder)
        # Some versions of filelock empty the file, which must not be another name of something else.
        if lock.is_symlink() or (lock.exists() and (not lock.is_file() or lock.stat().st_nlink > 1)):
            raise TadropedgeError(f"'{lock}' is no lock of tadropedge: move it away, or choose another folder")
        with FileLock(lock, timeout=WAIT):
            yield
    except Timeout as error:
        raise TadropedgeError(f"another process has been writing into '{folder}' for {WAIT:.0f} s") from error
    except OSError as error:
        raise cannot_write(folder, error) from error
