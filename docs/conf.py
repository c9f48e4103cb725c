"""Settings of the documentation site, which ``make docs`` builds.

Sphinx with MyST and its gallery, because the pages are Markdown that also reads well in the repository, the docstrings
are reStructuredText with roles, and the tutorials are plain scripts whose output and figures the build itself makes.
MkDocs would need the docstrings rewritten, and a notebook beside each script.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
for folder in (HERE / "_ext", HERE.parent):
    sys.path.insert(0, str(folder))
# Tutorials use the package from this checkout, few threads, and draw without a display.
os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("MPLBACKEND", "agg")

import tadropedge  # noqa: E402

project = "tadropedge"
author = "The tadropedge authors"
copyright = author  # noqa: A001
version = release = tadropedge.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.linkcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "cards",  # these are our own, in docs/_ext
    "commands",
    "names",
    "regimes",
    "repository",
]
exclude_patterns = ["_ext", "tutorials"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# Markdown: GitHub's anchors for headings, so that a link works there and here.
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 4
repository_url = "https://github.com/tadropedge/tadropedge"
repository_branch = "main"

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
add_module_names = False
toc_object_entries_show_parents = "hide"
nitpicky = True  # the extension `names` says which names are no mistake

sphinx_gallery_conf = {
    "examples_dirs": ["tutorials"],
    "gallery_dirs": ["auto_tutorials"],
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "capture_repr": (),  # tutorials print what they want to show
    "download_all_examples": False,
    "min_reported_time": 1,
    "plot_gallery": True,
    "remove_config_comments": True,
    "reset_modules": ("matplotlib", "tutorials.forget"),  # tutorials run in one process, with the build
    "reset_modules_order": "both",
    "show_memory": False,
    "show_signature": False,
    "within_subsection_order": "reading_order.InReadingOrder",
    "write_computation_times": False,
}
suppress_warnings = [
    "config.cache",  # the gallery's settings hold values that Sphinx cannot compare: it reads everything again
]

html_theme = "furo"
html_title = f"tadropedge {version}"
html_baseurl = "https://tadropedge.readthedocs.io/"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "source_repository": repository_url,
    "source_branch": repository_branch,
    "source_directory": "docs/",
}
smartquotes = False  # a prime is a prime, and two hyphens begin an option
copybutton_exclude = ".linenos, .gp, .go"  # what a prompt precedes is copied, without the prompt and the output


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Where the source of a documented name is in the repository."""
    thing = importlib.import_module(info["module"])
    try:
        for part in info["fullname"].split("."):
            thing = getattr(thing, part)
        file = Path(inspect.getsourcefile(inspect.unwrap(thing))).relative_to(HERE.parent)
        lines, first = inspect.getsourcelines(thing)
    except (AttributeError, TypeError, ValueError, OSError):  # a value, a field, or something of another package
        return None
    return f"{repository_url}/blob/{repository_branch}/{file}#L{first}-L{first + len(lines) - 1}"
