"""The citation graphs Cora, CiteSeer and PubMed, from the raw files in PyTorch Geometric's layout.

The files are pickles. They are read by an unpickler that admits the plain containers they need and refuses
everything else, so a hostile file cannot run code.
"""

from __future__ import annotations

import collections
import io
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from tadropedge.errors import TadropedgeError, lookup
from tadropedge.graph import Graph

NAMES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
ADMITTED = {("collections", "defaultdict"): collections.defaultdict, ("__builtin__", "list"): list}


class PlainUnpickler(pickle.Unpickler):
    """An unpickler that knows dictionaries and lists and nothing that could act."""

    def find_class(self, module: str, name: str) -> Any:
        """Return an admitted class, or refuse."""
        try:
            return ADMITTED[module, name]
        except KeyError:
            raise TadropedgeError(f"the file asks for {module}.{name}, which is not admitted") from None


def citation_graph(name: str, root: str | Path | None = None) -> Graph:
    """Read the graph of ``cora``, ``citeseer`` or ``pubmed`` from ``root/planetoid/<Name>/raw``.

    ``root`` defaults to the environment variable ``TADROPEDGE_DATA``.
    """
    folder = lookup("dataset", name.lower(), NAMES)
    root = root if root is not None else os.environ.get("TADROPEDGE_DATA")
    if root is None:
        raise TadropedgeError(f"where is {folder}? give root, or set TADROPEDGE_DATA")
    path = Path(root) / "planetoid" / folder / "raw" / f"ind.{folder.lower()}.graph"
    if not path.is_file():
        raise TadropedgeError(f"no such file: '{path}'")
    try:
        neighbours = PlainUnpickler(io.BytesIO(path.read_bytes()), encoding="latin1").load()
    except (pickle.UnpicklingError, EOFError, IndexError, KeyError, ValueError) as error:
        raise TadropedgeError(f"{path.name}: not a citation graph ({error})") from error
    if not isinstance(neighbours, dict) or not all(isinstance(row, list) for row in neighbours.values()):
        raise TadropedgeError(f"{path.name}: expected a dictionary of neighbour lists")
    arcs = [(node, other) for node, others in neighbours.items() for other in others]
    return Graph.from_edge_index(np.array(arcs, dtype=np.int64).T, num_nodes=len(neighbours))
