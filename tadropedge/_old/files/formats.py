"""The table of formats: which file is read by whom. By its suffix, by its content where the suffix leaves it open.

Where suffix and content contradict each other, nothing is guessed: ``graph.csv: looks like …``.
"""

from __future__ import annotations

import gzip
import importlib
import re
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tadropedge._old.errors import TadropedgeError
from tadropedge._old.files.held import Asked, Held
from tadropedge._old.files.ogb import is_ogb
from tadropedge._old.files.opening import existing, packed, readable

HEAD = 4096  # bytes that show what a file is
GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
GML = re.compile(rb"\s*((#|Creator|Version|comment|Comment)[^\n]*\n\s*)*graph\s*\[")


@dataclass(frozen=True, kw_only=True)
class Format:
    """A kind of file: its ``name`` with an article, its ``suffixes``, and who reads it, as ``module:function``.

    ``nodes``: whether features and labels may come from a table of nodes beside it, because it often has none.
    """

    name: str
    suffixes: tuple[str, ...]
    reader: str
    text: bool = True
    nodes: bool = True

    def read(self, path: Path, asked: Asked) -> Held:
        """What a file of this format holds; a complaint says which file it is about."""
        module, _, function = self.reader.partition(":")
        reader: Callable[[Path, Asked], Held] = getattr(importlib.import_module(f"tadropedge._old.files.{module}"), function)
        try:
            return reader(path, asked)
        except TadropedgeError as error:
            if path.name in str(error):
                raise
            raise type(error)(f"{path.name}: {error}") from error


FORMATS = {
    "npz": Format(name="an .npz file", suffixes=(".npz",), reader="npz:read", text=False),
    "pt": Format(name="a file of torch.save", suffixes=(".pt", ".pth"), reader="saved:read", text=False, nodes=False),
    "mtx": Format(name="a Matrix Market file", suffixes=(".mtx", ".mm"), reader="matrix_market:read"),
    "graphml": Format(name="a GraphML file", suffixes=(".graphml",), reader="markup:read_graphml"),
    "gml": Format(name="a GML file", suffixes=(".gml",), reader="markup:read_gml"),
    "edges": Format(name="an edge list", suffixes=(".csv", ".tsv"), reader="edge_list:read"),
    "ogb": Format(name="a folder of OGB", suffixes=(), reader="ogb:read", text=False, nodes=False),
}


def read_file(path: str | Path, asked: Asked | None = None) -> Held:
    r"""What a file holds, whatever its format.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "ring.mtx"
    >>> _ = path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n")
    >>> read_file(path).arcs.tolist(), read_file(path).num_nodes
    ([[0, 1, 1, 2], [1, 0, 2, 1]], 3)
    """
    found = format_of(path)
    return found.read(Path(path), asked or Asked())


def format_of(path: str | Path) -> Format:
    r"""The format of an existing file or folder.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "roads.csv"
    >>> _ = path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n")
    >>> format_of(path)
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: roads.csv: looks like a Matrix Market file, not an edge list: call it roads.mtx
    """
    if isinstance(path, str | Path) and is_ogb(Path(path)):
        return FORMATS["ogb"]
    path = existing(path)
    suffix = Path(path.stem).suffix.lower() if packed(path) else path.suffix.lower()
    told = next((each for each in FORMATS.values() if suffix in each.suffixes), None)
    if told is not None and packed(path) and not told.text:
        raise TadropedgeError(f"{path.name}: {told.name} is not read while it is packed: unpack it first")
    seen = _seen(path)
    if seen is None or seen is told:
        return told or FORMATS["edges"]
    if told is None:
        return seen
    stem = path.name.removesuffix(".gz").rpartition(".")[0]
    name = stem + seen.suffixes[0] + (".gz" if packed(path) else "")
    raise TadropedgeError(f"{path.name}: looks like {seen.name}, not {told.name}: call it {name}")


def _seen(path: Path) -> Format | None:
    """What a file looks like, where that is certain."""
    with readable(path, "a file that can be read"), path.open("rb") as stream:
        head = stream.read(HEAD)
    if head.startswith(GZIP) and not packed(path):
        raise TadropedgeError(f"{path.name}: looks like a file packed with gzip: call it {path.name}.gz")
    if packed(path):
        with suppress(OSError, EOFError, zlib.error), gzip.open(path) as unzipped:
            head = unzipped.read(HEAD)
    if head.startswith(ZIP):
        return _archive(path)
    head = head.removeprefix(b"\xef\xbb\xbf")
    if head.startswith(b"%%MatrixMarket"):
        return FORMATS["mtx"]
    if head.lstrip().startswith(b"<") and b"<graphml" in head:
        return FORMATS["graphml"]
    return FORMATS["gml"] if GML.match(head) else None


def _archive(path: Path) -> Format | None:
    """Arrays of NumPy or a file of torch, by the names of its members."""
    with suppress(OSError, zipfile.BadZipFile, ValueError, NotImplementedError), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if any(name.rpartition("/")[2] == "data.pkl" for name in names):
            return FORMATS["pt"]
        if any(name.endswith(".npy") for name in names):
            return FORMATS["npz"]
    return None
