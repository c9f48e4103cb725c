"""How files are read: one table of formats for every command, ``Graph.from_file`` and ``load_dataset``.

Nothing is ever unpickled but tensors, nothing is trusted, and whatever a damaged file makes a library raise becomes one
line. A new format is one function ``read(path, asked) -> Held`` and one line of ``formats.FORMATS``.
"""

from tadropedge._old.files.edge_list import EdgeList, as_integers, read_edge_list
from tadropedge._old.files.formats import format_of, read_file
from tadropedge._old.files.held import Asked, Held
from tadropedge._old.files.npz import read_arrays
from tadropedge._old.files.opening import existing, read_bytes, readable, readable_text

__all__ = [
    "Asked",
    "EdgeList",
    "Held",
    "as_integers",
    "existing",
    "format_of",
    "read_arrays",
    "read_bytes",
    "read_edge_list",
    "read_file",
    "readable",
    "readable_text",
]
