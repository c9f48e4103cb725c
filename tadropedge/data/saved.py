"""A PyTorch Geometric ``Data`` from a ``.pt`` file, read so that a hostile file cannot run code."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor

from tadropedge.data.contents import Contents, own_split
from tadropedge.data.features import as_float32, checked_csr, csr_tensor
from tadropedge.data.splits import PARTS
from tadropedge.errors import TadropedgeError
from tadropedge.graph import Graph
from tadropedge.sparse import hush_beta_warning

# What torch.load raises for files that are none of its own.
BROKEN = (pickle.UnpicklingError, RuntimeError, LookupError, TypeError, ValueError, AttributeError, OSError, EOFError)


def read_saved(path: Path) -> Contents:
    """Read ``edge_index``, ``x``, ``y`` and optional edge weights and masks of a saved ``Data``."""
    values = _saved(path)
    for name in ("edge_index", "x", "y"):
        if not isinstance(values.get(name), Tensor):
            raise TadropedgeError(f"expected a Data with tensors edge_index, x and y, found no {name}")
    features, labels = _features(values["x"]), values["y"]
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise TadropedgeError(f"y must hold whole numbers, got {labels.dtype}")
    labels = labels[:, 0] if labels.dim() == 2 and labels.shape[1] == 1 else labels
    graph = Graph.from_edge_index(values["edge_index"], features.shape[0], values.get("edge_weight"))
    split = own_split({f"{name}_mask": values.get(f"{name}_mask") for name in PARTS}, features.shape[0])
    return Contents(graph, features, labels.long(), split)


def _saved(path: Path) -> dict[str, Any]:
    """The attributes of the ``Data`` that ``torch.save`` wrote."""
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    hush_beta_warning()
    try:
        with _admitted_only(Data, DataEdgeAttr, DataTensorAttr, GlobalStorage), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files that are refused a moment later
            data = torch.load(path, map_location="cpu", weights_only=True)
        if not isinstance(data, Data):
            raise TadropedgeError(f"expected a saved torch_geometric Data, got {type(data).__name__}")
        return dict(data.to_dict())
    except TadropedgeError:
        raise
    except BROKEN as error:
        lines = str(error).splitlines() or [type(error).__name__]
        reason = next((line.strip() for line in lines if "WeightsUnpickler error" in line), lines[0])
        raise TadropedgeError(f"not a saved torch_geometric Data of plain tensors ({reason[:160]})") from error


@contextmanager
def _admitted_only(*classes: Callable[..., Any]) -> Iterator[None]:
    """Let ``torch.load`` admit these classes alone.

    PyTorch Geometric admits more when it is imported, among them some whose constructors open other files.
    """
    before = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(list(classes))
    try:
        yield
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(before)


def _features(x: Tensor) -> Tensor:
    """Dense as float32, sparse as CSR. A file may hold any indices, so SciPy checks them first."""
    if x.dim() != 2 or x.layout not in (torch.strided, torch.sparse_coo, torch.sparse_csr):
        raise TadropedgeError(f"x must be dense, COO or CSR of shape [N, F], got {x.layout} of shape {list(x.shape)}")
    if x.layout is torch.strided:
        return torch.from_numpy(as_float32(x.numpy(), "x"))
    if x.layout is torch.sparse_csr:
        values, indices, indptr = x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy()
        return csr_tensor(checked_csr(values, indices, indptr, x.shape, "x"))
    try:
        matrix = sp.coo_matrix((x._values().numpy(), tuple(x._indices().numpy())), shape=tuple(x.shape))
    except (ValueError, TypeError) as error:
        raise TadropedgeError(f"x: not a COO matrix of shape {list(x.shape)} ({error})") from error
    return csr_tensor(matrix.tocsr())
