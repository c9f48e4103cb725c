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
from scipy.sparse import coo_matrix
from torch import Tensor

from tadropedge.errors import TadropedgeError, show
from tadropedge.files.arrays import Layout, contents_of_arrays
from tadropedge.files.contents import PARTS, FileContents, ReadOptions, no_column

DATA = Layout(features="x", labels="y", splits=tuple(f"{part}_mask" for part in PARTS))
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
    graph = "edge_index" if isinstance(values.get("edge_index"), Tensor) else "adj_t"
    adjacency, asked = values.get(graph), [str(each) for each in (options.weight, options.column) if each is not None]
    if not isinstance(adjacency, Tensor) or (graph == "adj_t" and adjacency.layout is torch.strided):
        raise TadropedgeError(f"{name}: {EXPECTED} or a sparse adj_t, found {show(', '.join(values), typed=False)}")
    arrays = {graph: _array(values, graph, name)}
    # Nobody knows in which order numbers beside a matrix stand.
    count = arrays[graph].shape[-1] if graph == "edge_index" else -1
    numbers = [key for key, each in values.items() if _is_per_arc(each, count)]
    for each in asked:
        if graph == "adj_t" or not isinstance(values.get(each), Tensor):
            raise no_column(name, each, numbers)
    beside = ({"edge_weight", *asked} if graph == "edge_index" else set()) | (DATA.names if options.nodes else {"x"})
    arrays |= {key: _array(values, key, name) for key in beside if values.get(key) is not None}
    if isinstance(nodes := values.get("num_nodes"), int):
        arrays["num_nodes"] = np.array(nodes)
    others = [key for key in numbers if key not in {*arrays, *DATA.names}]
    return contents_of_arrays(arrays, graph, DATA, options, name, others)


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


def _array(values: Mapping[str, Any], name: str, file: str) -> Any:
    """A plain tensor of real numbers as an array; a sparse one, checked when it was loaded, as a CSR matrix."""
    value = values[name]
    if not isinstance(value, Tensor):
        raise TadropedgeError(f"{file}: {name} must be a plain tensor, got {show(value)}")
    kinds = (torch.strided, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)
    odd = value.is_nested or value.is_complex() or value.is_quantized or value.layout not in kinds
    if odd or value.device.type != "cpu":
        kind = "nested" if value.is_nested else str(value.layout)
        raise TadropedgeError(f"{file}: {name} must be a plain tensor, got {kind}, {value.dtype}, {value.device}")
    value = value.float() if value.dtype in (torch.bfloat16, torch.float16) else value
    if value.layout is torch.strided:
        return value.numpy()
    entries = value.to_sparse_coo()
    matrix = coo_matrix((entries._values().numpy(), tuple(entries._indices().numpy())), shape=tuple(value.shape))
    return matrix.tocsr()


def _is_per_arc(value: object, count: int) -> bool:
    return isinstance(value, Tensor) and not value.is_nested and value.dim() in (1, 2) and value.numel() == count
