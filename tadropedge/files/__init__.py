"""Files: graphs read from the formats of :data:`FORMATS`, by suffix, and written as csv, ``.npz`` or a PyG ``.pt``.

Nothing that a file holds is executed, and a damaged file is one line of error that names it.
"""

from tadropedge.files.contents import FileContents, ReadOptions
from tadropedge.files.formats import FORMATS, Format, read_file
from tadropedge.files.header import has_header
from tadropedge.files.write import write_graph

__all__ = ["FORMATS", "FileContents", "Format", "ReadOptions", "has_header", "read_file", "write_graph"]
