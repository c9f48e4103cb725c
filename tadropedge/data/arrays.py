"""A graph with features and labels in an ``.npz`` file of plain arrays; :mod:`tadropedge.data.files` lists them."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from tadropedge.data.contents import Contents, own_split
from tadropedge.data.features import as_float32, checked_csr, csr_tensor
from tadropedge.data.splits import PARTS
from tadropedge.errors import TadropedgeError
from tadropedge.graph import Graph

Arrays = Mapping[str, npt.NDArray[Any]]

CSR_PARTS = ("data", "indices", "indptr", "shape")


def read_arrays(path: Path) -> Contents:
    """Read the arrays without unpickling anything."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, TypeError, OSError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise TadropedgeError(f"{path.name}: not an .npz file of plain arrays ({error})") from error
    features, labels = _features(arrays), _labels(arrays)
    if _has_parts(arrays, "adj"):
        graph = Graph.from_scipy(_csr(arrays, "adj"))
    else:
        graph = Graph.from_file(path, num_nodes=None if "num_nodes" in arrays else features.shape[0])
    return Contents(graph, features, labels, own_split({name: arrays.get(name) for name in PARTS}, features.shape[0]))


def _has_parts(arrays: Arrays, prefix: str) -> bool:
    return all(f"{prefix}_{part}" in arrays for part in CSR_PARTS)


def _csr(arrays: Arrays, prefix: str) -> sp.csr_matrix:
    values, indices, indptr, shape = (arrays[f"{prefix}_{part}"] for part in CSR_PARTS)
    return checked_csr(values, indices, indptr, np.atleast_1d(shape), prefix)


def _features(arrays: Arrays) -> Tensor:
    if _has_parts(arrays, "x"):
        return csr_tensor(_csr(arrays, "x"))
    if "x" not in arrays:
        raise TadropedgeError(
            "expected features: an array 'x' or the CSR parts x_data, x_indices, x_indptr and x_shape, "
            f"found {', '.join(sorted(arrays)) or 'nothing'}"
        )
    return torch.from_numpy(as_float32(np.atleast_1d(arrays["x"]), "x"))


def _labels(arrays: Arrays) -> Tensor:
    if "y" not in arrays:
        raise TadropedgeError(f"expected labels: an array 'y', found {', '.join(sorted(arrays)) or 'nothing'}")
    if arrays["y"].dtype.kind not in "iu":
        raise TadropedgeError(f"y must hold whole numbers, got {arrays['y'].dtype}")
    return torch.from_numpy(np.atleast_1d(arrays["y"]).astype(np.int64))
