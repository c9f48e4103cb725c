"""A PyTorch Geometric ``Data`` that ``torch.save`` wrote, or the processed file of a dataset of one graph.

Nothing is unpickled but tensors and the classes that make up a ``Data``: a hostile file cannot run code.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tadropedge.errors import TadropedgeError, show
from tadropedge.files.contents import PARTS, Array, FileContents, ReadOptions, listed, no_column, summary
from tadropedge.files.npz import class_numbers
from tadropedge.graph import matrix_arcs

OF_NODES = ("x", "y", *(f"{part}_mask" for part in PARTS))
EXPECTED = "expected a saved torch_geometric Data with a tensor edge_index"


def read(path: Path, options: ReadOptions) -> FileContents:
    """The graph of a saved ``Data``; features, labels and splits where they are asked for."""
    return contents_of(_attributes(_load(path), path.name), options, path.name)


def contents_of(values: Mapping[str, Any], options: ReadOptions, name: str) -> FileContents:
    """What the attributes of a ``Data`` hold; ``name`` is what errors call it.

    >>> found = contents_of({"edge_index": torch.tensor([[0, 1], [1, 2]]), "y": torch.tensor([1, 0, 1])},
    ...                     ReadOptions(), "mine")
    >>> found.read, found.labels.tolist()
    ('2 edges from edge_index', [1, 0, 1])
    """
    values = {key: value.detach().cpu() if isinstance(value, Tensor) else value for key, value in values.items()}
    graph = (_listed if isinstance(values.get("edge_index"), Tensor) else _matrix)(values, options, name)
    x, y = values.get("x"), values.get("y")
    if graph["num_nodes"] is None and isinstance(x, Tensor) and x.dim():
        graph["num_nodes"] = len(x)
    if options.nodes:
        masks = {part: f"{part}_mask" for part in PARTS if values.get(f"{part}_mask") is not None}
        graph["features"] = None if x is None else _features(x, name)
        graph["labels"] = None if y is None else class_numbers(_array(values, "y", name), "y", name)
        graph["splits"] = {part: _array(values, mask, name) for part, mask in masks.items()}
    return FileContents(file=name, **graph)


def _load(path: Path) -> Any:
    """What ``torch.save`` wrote: tensors, and what a ``Data`` is made of."""
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import AttrType, GlobalStorage

    admitted = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage, AttrType, set, (_notes, "collections.defaultdict")]
    known = torch.serialization.get_safe_globals()  # those of PyG among them, which must stay afterwards
    new = [each for each in admitted if each not in known]
    within = torch.serialization.safe_globals(new), torch.sparse.check_sparse_tensor_invariants()
    try:
        with within[0], within[1], warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about kinds of tensors that are refused a moment later
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch.load raises almost anything for files that are none of its own
        if isinstance(error, OSError | MemoryError):
            raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        why = next((line for line in lines if "WeightsUnpickler error" in line), lines[0])
        raise TadropedgeError(
            f"{path.name}: not a saved torch_geometric Data of plain tensors ({why[:160]})"
        ) from error


def _notes(kind: object = None) -> dict[Any, Any]:
    """Where a ``Data`` notes what is of nodes and of arcs: a ``defaultdict``, which ``weights_only`` cannot fill."""
    return {}


def _attributes(loaded: object, file: str) -> dict[str, Any]:
    """Those of a ``Data``, of the same as a dictionary, or of the only one in a processed file (data, slices, …)."""
    from torch_geometric.data import Data

    if isinstance(loaded, tuple) and len(loaded) in (2, 3):
        loaded, slices = loaded[:2]
        graphs = max((len(cuts) - 1 for cuts in slices.values()), default=1) if isinstance(slices, dict) else 1
        if graphs != 1:
            raise TadropedgeError(f"{file}: expected a file of one graph, got a processed dataset of {graphs} graphs")
    if isinstance(loaded, Data):
        loaded = loaded.to_dict()
    if not isinstance(loaded, dict) or not all(isinstance(name, str) for name in loaded):
        raise TadropedgeError(f"{file}: {EXPECTED}, got {show(loaded)}")
    return loaded


def _listed(values: Mapping[str, Any], options: ReadOptions, file: str) -> dict[str, Any]:
    """The arcs of ``edge_index``, with weights and a column in its order."""
    arcs, nodes = _array(values, "edge_index", file), values.get("num_nodes")
    numbers = [name for name, each in values.items() if _is_per_arc(each, arcs.shape[-1])]
    asked = [str(name) for name in (options.weight, options.column) if name is not None]
    for name in asked:
        if not isinstance(values.get(name), Tensor):
            raise no_column(file, name, numbers)
    read = {name: _array(values, name, file) for name in {"edge_weight", *asked} if values.get(name) is not None}
    others = [name for name in numbers if name not in {*read, *OF_NODES}]
    graph = listed(file, "edge_index", arcs, read, options, others)
    return {**graph, "num_nodes": nodes if isinstance(nodes, int) else None}


def _matrix(values: Mapping[str, Any], options: ReadOptions, file: str) -> dict[str, Any]:
    """The entries of a sparse ``adj_t``; nobody knows in which order numbers beside it stand."""
    matrix, asked = values.get("adj_t"), options.weight or options.column
    if not isinstance(matrix, Tensor) or matrix.layout is torch.strided or matrix.dim() != 2:
        raise TadropedgeError(f"{file}: {EXPECTED} or a sparse adj_t, found {show(', '.join(values), typed=False)}")
    if asked is not None:
        raise no_column(file, asked, ())
    found = _sparse(matrix, "adj_t", file)
    if found.shape[0] != found.shape[1]:
        raise TadropedgeError(f"{file}: an adjacency matrix must be square, got shape {tuple(found.shape)}")
    rows, columns, entries = matrix_arcs(found)
    return {
        "arcs": np.stack((rows, columns)).astype(np.int64),
        "num_nodes": found.shape[0],
        "weight": entries,
        "read": summary(len(rows), "adj_t", "its entries" if options.weighted else None),
    }


def _features(x: object, file: str) -> Any:
    """Dense, or a CSR matrix."""
    if not isinstance(x, Tensor) or x.dim() != 2 or x.layout is torch.strided:
        return _array({"x": x}, "x", file)
    found = _sparse(x, "x", file).tocsr()
    found.sum_duplicates()
    return found


def _sparse(matrix: Tensor, name: str, file: str) -> Any:
    """A sparse tensor, checked when it was loaded, as a SciPy matrix of its entries."""
    from scipy.sparse import coo_matrix

    if matrix.is_nested or matrix.layout not in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
        raise TadropedgeError(f"{file}: {name} must be dense, COO, CSR or CSC, got {matrix.layout}")
    entries = matrix.to_sparse_coo()
    values = _array({name: entries._values()}, name, file)
    return coo_matrix((values, tuple(entries._indices().numpy())), shape=tuple(matrix.shape))


def _array(values: Mapping[str, Any], name: str, file: str) -> Array:
    """A plain dense tensor of real numbers as an array."""
    value = values[name]
    if not isinstance(value, Tensor):
        raise TadropedgeError(f"{file}: {name} must be a plain dense tensor, got {show(value)}")
    odd = value.is_nested or value.is_complex() or value.is_quantized or value.layout is not torch.strided
    if odd or value.device.type != "cpu":
        kind = "nested" if value.is_nested else str(value.layout)
        raise TadropedgeError(f"{file}: {name} must be a plain dense tensor, got {kind}, {value.dtype}, {value.device}")
    found: Array = (value.float() if value.dtype in (torch.bfloat16, torch.float16) else value).numpy()
    return found


def _is_per_arc(value: object, count: int) -> bool:
    return isinstance(value, Tensor) and not value.is_nested and value.dim() in (1, 2) and value.numel() == count
