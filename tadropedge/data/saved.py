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

from tadropedge.data.arrays import Contents, contents_of
from tadropedge.data.features import CSR_PARTS
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
    labels = values["y"][:, 0] if values["y"].dim() == 2 and values["y"].shape[1] == 1 else values["y"]
    arrays = {**values, "y": labels.numpy(), **_features(values["x"])}
    arcs = values["edge_index"], values.get("edge_weight")
    return contents_of(arrays, lambda nodes: Graph.from_edge_index(arcs[0], nodes, arcs[1]), "_mask")


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


def _features(x: Tensor) -> dict[str, Any]:
    """Dense, or the parts of a CSR matrix. A file may hold any indices, so SciPy checks them before use."""
    if x.dim() != 2 or x.layout not in (torch.strided, torch.sparse_coo, torch.sparse_csr):
        raise TadropedgeError(f"x must be dense, COO or CSR of shape [N, F], got {x.layout} of shape {list(x.shape)}")
    if x.layout is torch.strided:
        return {"x": x.numpy()}
    if x.layout is torch.sparse_csr:
        parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    else:
        try:
            matrix = sp.coo_matrix((x._values().numpy(), tuple(x._indices().numpy())), shape=tuple(x.shape)).tocsr()
        except (ValueError, TypeError) as error:
            raise TadropedgeError(f"x: not a COO matrix of shape {list(x.shape)} ({error})") from error
        parts = (matrix.data, matrix.indices, matrix.indptr)
    return {f"x_{name}": part for name, part in zip(CSR_PARTS, (*parts, tuple(x.shape)), strict=True)}
