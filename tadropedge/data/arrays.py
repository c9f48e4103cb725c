"""What a user's own file holds, whatever its format; and the ``.npz`` format itself, plain arrays without pickles."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tadropedge.data.features import as_float32, csr_from_parts, csr_tensor
from tadropedge.data.splits import PARTS, Split
from tadropedge.errors import TadropedgeError
from tadropedge.graph import Graph


@dataclass(frozen=True, kw_only=True)
class Contents:
    """A graph, features ``[N, F]``, labels ``[N]``; ``split`` and ``class_names`` where the file has them."""

    graph: Graph
    features: Tensor
    labels: Tensor
    split: Split | None = None
    class_names: tuple[str, ...] | None = None


def read_arrays(path: Path) -> Contents:
    """Read an ``.npz`` file without unpickling anything; :mod:`tadropedge.data.files` lists the arrays."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, TypeError, OSError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise TadropedgeError(f"{path.name}: not an .npz file of plain arrays ({error})") from error

    def graph(nodes: int) -> Graph:
        adjacency = csr_from_parts(arrays, "adj")
        if adjacency is not None:
            return Graph.from_scipy(adjacency)
        return Graph.from_file(path, num_nodes=None if "num_nodes" in arrays else nodes)

    return contents_of(arrays, graph)


def contents_of(arrays: Mapping[str, Any], graph: Callable[[int], Graph], suffix: str = "") -> Contents:
    """The contents of ``arrays`` named as :mod:`tadropedge.data.files` says; ``graph`` is told the number of nodes.

    ``suffix`` stands behind the names of the parts of the split.
    """
    found, sparse = ", ".join(sorted(arrays)) or "nothing", csr_from_parts(arrays, "x")
    if sparse is None and "x" not in arrays:
        csr = "the CSR parts x_data, x_indices, x_indptr and x_shape"
        raise TadropedgeError(f"expected features: an array 'x' or {csr}, found {found}")
    features = torch.from_numpy(as_float32(np.atleast_1d(arrays["x"]), "x")) if sparse is None else csr_tensor(sparse)
    if "y" not in arrays:
        raise TadropedgeError(f"expected labels: an array 'y', found {found}")
    labels = np.atleast_1d(arrays["y"])
    if labels.dtype.kind not in "iu":
        raise TadropedgeError(f"y must hold whole numbers, got {labels.dtype}")
    nodes = features.shape[0]
    return Contents(
        graph=graph(nodes),
        features=features,
        labels=torch.from_numpy(labels.astype(np.int64)),
        split=own_split({name + suffix: arrays.get(name + suffix) for name in PARTS}, nodes),
    )


def own_split(parts: Mapping[str, Any], num_nodes: int) -> Split | None:
    """The file's own split: index lists or masks ``[N]`` for train, val and test in this order, or ``None`` thrice.

    >>> own_split({"train": [True, False, True, False], "val": [1], "test": [3]}, num_nodes=4).train.tolist()
    [0, 2]
    >>> own_split({"train": [0, 1], "val": [2], "test": None}, num_nodes=4)
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: the split is not whole: there is no test
    """
    absent = [name for name, part in parts.items() if part is None]
    if len(absent) == len(parts):
        return None
    if absent:
        raise TadropedgeError(f"the split is not whole: there is no {' and no '.join(absent)}")
    return Split(*(_indices(name, part, num_nodes) for name, part in parts.items()))


def _indices(name: str, part: Any, num_nodes: int) -> Tensor:
    try:
        indices = torch.as_tensor(part)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TadropedgeError(f"{name} must be node indices or a mask, got {type(part).__name__}") from error
    if indices.is_floating_point() or indices.is_complex():
        raise TadropedgeError(f"{name} must be node indices or a mask, got {indices.dtype}")
    if indices.dtype != torch.bool:
        return indices.long()
    if list(indices.shape) != [num_nodes]:
        raise TadropedgeError(f"{name} is a mask of shape {list(indices.shape)}: expected [{num_nodes}]")
    return indices.nonzero()[:, 0]
