"""A PyTorch Geometric ``Data`` that ``torch.save`` wrote, or the processed file of a dataset of one graph.

Nothing is unpickled but tensors and the classes that make up a ``Data``: a hostile file cannot run code.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tadropedge._old.arrays import checked_parts
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.files.held import PARTS, Asked, Held, unknown
from tadropedge._old.files.npz import matrix_arcs, square
from tadropedge._old.files.opening import readable
from tadropedge._old.memory import check_room
from tadropedge._old.sparse import hush_beta_warning

if TYPE_CHECKING:  # it is loaded when such a file is read
    from torch import Tensor

MASKS = tuple(f"{part}_mask" for part in PARTS)
SAVED = {"edge_index", "edge_weight", "x", "y", *MASKS}
NUMBERS = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")


def read(path: Path, asked: Asked) -> Held:
    """The graph of a saved ``Data``, with features and labels where it has both of them."""
    return held_data(_saved(path), asked, path.name)


def held_data(values: Mapping[str, Any], asked: Asked, file: str) -> Held:
    """What the attributes of a ``Data`` hold; its tensors lie on the CPU.

    A ``Data`` with features and labels has as many nodes as features; without, as many as it says.
    """
    from torch import Tensor

    values = _with_arcs(values)
    there = {name for name in ("edge_index", "x", "y") if isinstance(values.get(name), Tensor)}
    lacking = {
        what: f"expected a Data with tensors edge_index, x and y, found no {name}"
        for what, name in (("graph", "edge_index"), ("features", "x"), ("labels", "y"))
    }
    if "edge_index" not in there:
        raise TadropedgeError(lacking["graph"])
    dataset = {"x", "y"} <= there
    checked = SAVED if dataset else {"edge_index", "edge_weight"}
    for name, value in values.items():
        if isinstance(value, Tensor) and (name in checked or name == asked.column):
            _check_tensor(name, value)
    held = [values[name].shape[0] for name in ("x", "y") if name in there and values[name].dim()]
    return Held(
        arcs=values["edge_index"],
        num_nodes=next(iter(held), None) if dataset else values.get("num_nodes", *held[:1]),
        weight=values.get("edge_weight"),
        column=None if asked.column is None else _column(values, asked.column, file),
        features=_features(values["x"]) if dataset or (asked.whole and _usable(values.get("x"))) else None,
        labels=_flat(values["y"]) if dataset else None,
        parts={name: values.get(name) for name in MASKS} if dataset and asked.masks else {},
        lacking=lacking,
    )


def _with_arcs(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same with an ``edge_index``, where PyG's ``ToSparseTensor`` left a CSR tensor ``adj_t`` instead."""
    import torch

    matrix = values.get("adj_t")
    if values.get("edge_index") is not None or not isinstance(matrix, torch.Tensor):
        return values
    if matrix.layout is not torch.sparse_csr or matrix.dim() != 2 or not _numbers(matrix.values()):
        raise TadropedgeError(f"adj_t must be a sparse CSR tensor [N, N], got {matrix.layout} of {list(matrix.shape)}")
    parts = (matrix.values().numpy(), matrix.col_indices().numpy(), matrix.crow_indices().numpy())
    arcs, weight = matrix_arcs(square(checked_parts("csr", parts, tuple(matrix.shape), "adj_t")))
    told = {"edge_index": torch.from_numpy(arcs), "edge_weight": torch.from_numpy(weight)}
    return {"num_nodes": matrix.shape[0], **values, **told}


def _column(values: Mapping[str, Any], column: str, file: str) -> Tensor:
    from torch import Tensor

    found = values.get(column)
    if isinstance(found, Tensor):
        return found
    arcs = values["edge_index"].shape[-1]
    per_arc = [
        name
        for name, value in values.items()
        if isinstance(value, Tensor) and value.dim() in (1, 2) and value.numel() == len(value) == arcs
    ]
    raise TadropedgeError(unknown(file, column, per_arc))


def _flat(labels: Tensor) -> Any:
    return (labels[:, 0] if labels.dim() == 2 and labels.shape[1] == 1 else labels).numpy()


def _check_tensor(name: str, value: Tensor) -> None:
    """A tensor of plain numbers on the CPU; one entry may stand for many (``expand``), if memory can hold them all."""
    import torch

    dense = value.layout is torch.strided
    if not (dense or name == "x") or not _numbers(value):
        raise TadropedgeError(
            f"{name} must be a plain dense tensor, got {value.layout} of {value.dtype} on {value.device}"
        )
    if dense:
        check_room(2 * value.numel() * value.element_size(), f"{name} of shape {list(value.shape)}")


def _numbers(value: Tensor) -> bool:
    plain = str(value.dtype).removeprefix("torch.") in NUMBERS and value.device.type == "cpu"
    return plain and not (value.is_quantized or value.is_conj() or value.is_neg())


def _usable(x: object) -> bool:
    """Whether features without labels can be used: where they cannot, they are as good as none."""
    import torch

    return isinstance(x, torch.Tensor) and x.layout is torch.strided and x.dim() == 2 and _numbers(x)


def _features(x: Tensor) -> Any:
    """Dense, or a CSR matrix. A file may hold any indices, so they are checked before use."""
    import torch

    if x.dim() != 2 or x.layout not in (torch.strided, torch.sparse_coo, torch.sparse_csr):
        raise TadropedgeError(f"x must be dense, COO or CSR of shape [N, F], got {x.layout} of shape {list(x.shape)}")
    if x.layout is torch.strided:
        return x.numpy()
    shape = tuple(x.shape)
    if x.layout is torch.sparse_csr:
        parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
        matrix = checked_parts("csr", parts, shape, "x")
    else:
        matrix = checked_parts("coo", (x._values().numpy(), *x._indices().numpy()), shape, "x")
    matrix.sum_duplicates()
    return matrix


def _saved(path: Path) -> dict[str, Any]:
    """The attributes of the one ``Data`` of a file."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import AttrType, GlobalStorage

    hush_beta_warning()
    # PyTorch Geometric admits more when it is imported, among them classes whose constructors open other files.
    before = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    notes = [AttrType, set, (_notes, "collections.defaultdict")]
    admitted = torch.serialization.safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage, *notes])
    _check_packed(path)
    try:
        with admitted, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files that are refused a moment later
            loaded = torch.load(path, map_location="cpu", weights_only=True)
        values = _attributes(loaded)
        return {name: value.detach() if isinstance(value, torch.Tensor) else value for name, value in values.items()}
    except TadropedgeError:
        raise
    except Exception as error:  # torch.load raises almost anything for files that are none of its own
        lines = str(error).splitlines() or [type(error).__name__]
        reason = next((line.strip() for line in lines if "WeightsUnpickler error" in line), lines[0])
        raise TadropedgeError(f"not a saved torch_geometric Data of plain tensors ({reason[:160]})") from error
    finally:
        torch.serialization.add_safe_globals(before)


def _notes(kind: object = None) -> dict[Any, Any]:
    """Where a ``Data`` notes what belongs to nodes and to arcs, once a transform asked; of no use here.

    It is a ``defaultdict``, which ``weights_only`` does not fill.
    """
    return {}


def _attributes(loaded: object) -> dict[str, Any]:
    """Those of a ``Data``, of the same as a dictionary, or of the only one in a processed file (data, slices, …)."""
    from torch_geometric.data import Data

    if isinstance(loaded, tuple) and len(loaded) in (2, 3):
        loaded, slices = loaded[:2]
        graphs = max((len(cuts) - 1 for cuts in slices.values()), default=1) if isinstance(slices, dict) else 1
        if graphs != 1:
            raise TadropedgeError(f"expected a file of one graph, got a processed dataset of {graphs} graphs")
    if isinstance(loaded, Data):
        return dict(loaded.to_dict())
    if isinstance(loaded, dict) and all(isinstance(name, str) for name in loaded) and "edge_index" in loaded:
        return dict(loaded)
    raise TadropedgeError(f"expected a saved torch_geometric Data, got {type(loaded).__name__}")


def _check_packed(path: Path) -> None:
    """``torch.save`` packs nothing, so a file that unpacks to more than it is was made to fill the memory."""
    with readable(path, "a saved torch_geometric Data"):
        if not zipfile.is_zipfile(path):
            return
        with zipfile.ZipFile(path) as archive:
            size, there = sum(member.file_size for member in archive.infolist()), path.stat().st_size
    if size > there:
        raise TadropedgeError(f"not a saved torch_geometric Data: {there:,} bytes are said to unpack to {size:,}")
