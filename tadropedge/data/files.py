"""A user's own data: ``.npz`` of plain arrays, an edge list beside a table of nodes, or a saved ``Data``.

The arrays of an ``.npz`` file:

* ``edge_index [2, A]`` with optional ``num_nodes`` and ``edge_weight [A]``; or a sparse adjacency matrix as
  ``adj_data``, ``adj_indices``, ``adj_indptr``, ``adj_shape``, or as ``scipy.sparse.save_npz`` names its parts;
* ``x [N, F]``, or its CSR parts ``x_data``, ``x_indices``, ``x_indptr``, ``x_shape``, which stay sparse;
* ``y [N]``: whole numbers, 0 … C − 1, and −1 for nodes without a label;
* optional ``train``, ``val`` and ``test``: node indices, or boolean masks ``[N]``; of K splits at once index columns
  ``[n, K]`` or masks ``[N, K]`` or ``[K, N]``, where a part of one axis is shared by all K.

A table of nodes is described in :mod:`tadropedge.data.tables`. A saved PyTorch Geometric ``Data`` (``.pt``) has
``edge_index``, ``x``, ``y`` and optional ``edge_weight``, ``train_mask``, ``val_mask`` and ``test_mask``, of one split
or of several as above. Nothing is unpickled but tensors and the classes that make up a ``Data``: a hostile file cannot
run code.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tadropedge.arrays import checked_parts, plain_array, whole_numbers
from tadropedge.checks import check_flag, check_integer, check_path, check_text
from tadropedge.data.dataset import Dataset
from tadropedge.data.features import CSR_PARTS, as_float32, csr_from_parts, csr_tensor, row_normalized
from tadropedge.data.splits import PARTS, Drawn, Given, PerClass, Split, num_classes, split_seeds, way_of
from tadropedge.data.tables import read_table
from tadropedge.errors import TadropedgeError, lookup
from tadropedge.files import GRAPH_ARRAYS, MATRIX_ARRAYS, array_graph, existing, read_arrays, readable
from tadropedge.graph import Graph
from tadropedge.memory import check_room
from tadropedge.scores.column import array_column, per_edge, unknown
from tadropedge.sparse import hush_beta_warning

NUM_VAL, NUM_TEST = 500, 1000  # of a random split, where there are enough nodes
SPARSE = {f"{name}_{part}" for name in ("x", "adj") for part in CSR_PARTS}
ARRAYS = GRAPH_ARRAYS | MATRIX_ARRAYS | SPARSE | {"x", "y", *PARTS}  # what is read of an .npz file
SAVED = {"edge_index", "edge_weight", "x", "y", *(f"{name}_mask" for name in PARTS)}  # and of a Data
SAVED_SUFFIXES = (".pt", ".pth")
PLAIN_TYPES = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
PLAIN_TYPES |= {torch.float16, torch.float32, torch.float64}


@dataclass(frozen=True, kw_only=True)
class Contents:
    """A graph, features ``[N, F]``, labels ``[N]``; ``splits`` and ``class_names`` where the file has them."""

    graph: Graph
    features: Tensor
    labels: Tensor
    splits: tuple[Split, ...] = ()
    class_names: tuple[str, ...] | None = None
    score_column: Tensor | None = None


def load_file(
    path: str | Path,
    *,
    nodes: str | Path | None = None,
    header: bool | None = None,
    split: str | None = None,
    per_class: int = 20,
    seed: int = 0,
    normalize: bool = False,
    score_column: str | None = None,
) -> Dataset:
    """Load a user's own node-level data: ``.npz``, ``.pt``, or an edge list with a table of ``nodes``.

    ``split``: ``"file"``, the file's own, or the first of them; ``"random"``, ``per_class`` labels per class, and of
    the rest a third, at most 500, to choose and at most 1000 to judge, drawn from ``seed``; ``None`` for the first
    where there is one, else the second. ``normalize`` divides each row of features by its sum. ``header`` says whether
    ``nodes`` has one. ``score_column`` names what becomes the score ``column``: a column of an edge list, by the name
    in its header or by its number from 3 on, an array of an ``.npz`` file or an edge attribute of a ``Data``, each with
    one number per listed edge, of which the mean counts where an edge is listed several times.
    """
    path = existing(check_path("path", path))
    nodes = None if nodes is None else check_path("nodes", nodes)
    header = None if header is None else check_flag("header", header)
    seed, per_class = check_integer("seed", seed, least=0), check_integer("per_class", per_class, least=1)
    normalize = check_flag("normalize", normalize)
    score_column = None if score_column is None else check_text("score_column", score_column)
    if split is not None:
        lookup("split", split, {"file": None, "random": None})
    try:
        contents = read_contents(path, nodes, header, score_column, masks=split != "random")
        if normalize:
            contents = replace(contents, features=row_normalized(contents.features))
        return made_dataset(contents, path.name.partition(".")[0], split, per_class, seed)
    except TadropedgeError as error:  # say which file it was, unless that is said
        text = str(error)
        named = any(Path(file).name in text for file in (path, nodes) if file is not None)
        raise TadropedgeError(text if named else f"{path.name}: {text}") from error


def made_dataset(contents: Contents, name: str, split: str | None, per_class: int, seed: int) -> Dataset:
    """The dataset of what was read, with its own split or a random one as :func:`load_file` says."""
    own, drawn = _split(contents, split, per_class, seed)
    dataset = Dataset(
        name=name,
        graph=contents.graph,
        features=contents.features,
        labels=contents.labels,
        num_classes=num_classes(contents.labels),
        level="node",
        split=own,
        drawn=drawn,
        class_names=contents.class_names,
        score_column=contents.score_column,
    )
    return dataset if drawn is not None else replace(dataset, drawn=way_of(own, dataset.labels, seed=seed))


def read_contents(
    path: Path,
    nodes: str | Path | None = None,
    header: bool | None = None,
    column: str | None = None,
    *,
    masks: bool = True,
) -> Contents:
    """What a file holds, without a split where it has none or ``masks`` are not asked for; ``column`` is a score."""
    if path.suffix == ".npz":
        return _read_arrays(path, column, masks)
    if path.suffix in SAVED_SUFFIXES:
        return data_contents(_saved(path), column, path.name, masks=masks)
    if nodes is None:
        raise TadropedgeError(
            f"{path.name}: an edge list needs a table of features and labels: nodes='nodes.csv' (--nodes nodes.csv)"
        )
    graph, table, score = read_table(path, Path(nodes), header, column)
    features, labels = torch.from_numpy(table.features), torch.from_numpy(table.labels)
    return Contents(graph=graph, features=features, labels=labels, class_names=table.class_names, score_column=score)


def _split(contents: Contents, split: str | None, per_class: int, seed: int) -> tuple[Split, Drawn | None]:
    """The dataset's own split, and how others are drawn; ``None``: as it shows."""
    if contents.splits and split != "random":
        return contents.splits[0], Given(contents.splits) if len(contents.splits) > 1 else None
    if split == "file":
        raise TadropedgeError("the file has no split: expected train, val and test")
    labelled = contents.labels[contents.labels >= 0]
    rest = labelled.numel() - per_class * labelled.unique().numel()
    num_val = min(NUM_VAL, max(1, rest // 3))
    drawn = PerClass(per_class, num_val, min(NUM_TEST, max(1, rest - num_val)), seed=seed)
    return drawn.split(contents.labels, split_seeds(seed)[0]), drawn


def read_saved(path: Path, column: str | None = None) -> tuple[Graph, Contents | None, Tensor | None]:
    """The graph of a saved ``Data``, what else it holds if it has features and labels, and the ``column`` asked for.

    A split that is not whole, such as the one ``train_mask`` of PyG's karate club, is left out.
    """
    values = _saved(path)
    if all(isinstance(values.get(name), Tensor) for name in ("x", "y")):
        whole = all(isinstance(values.get(f"{part}_mask"), Tensor) for part in PARTS)
        contents = data_contents(values, column, path.name, masks=whole)
        return contents.graph, contents, contents.score_column
    graph = _graph_alone(values, column)
    return graph, None, None if column is None else _arc_column(values, column, path.name, graph)


def _graph_alone(values: Mapping[str, Any], column: str | None) -> Graph:
    """The graph of a ``Data`` without features or labels, of as many nodes as it says."""
    if not isinstance(values.get("edge_index"), Tensor):
        raise TadropedgeError("expected a Data with a tensor edge_index, found none")
    for name in ("edge_index", "edge_weight", column):
        if name is not None and isinstance(values.get(name), Tensor):
            _check_tensor(name, values[name])
    held = [values[name].shape[0] for name in ("x", "y") if isinstance(values.get(name), Tensor) and values[name].dim()]
    return Graph.from_edge_index(values["edge_index"], values.get("num_nodes", *held[:1]), values.get("edge_weight"))


def _read_arrays(path: Path, column: str | None, masks: bool) -> Contents:
    arrays, found = read_arrays(path, ARRAYS if masks else ARRAYS - set(PARTS))

    def graph(nodes: int) -> Graph:
        adjacency = csr_from_parts(arrays, "adj")
        if adjacency is not None:
            return Graph.from_scipy(adjacency)
        known = array_graph(arrays, found, path.name)
        count = known.num_nodes if known.num_nodes is not None else nodes
        return Graph.from_edge_index(known.edge_index, count, known.weight)

    contents = _from_arrays(arrays, graph)
    return contents if column is None else replace(contents, score_column=array_column(path, column, contents.graph))


def _from_arrays(arrays: Mapping[str, Any], graph: Callable[[int], Graph], suffix: str = "") -> Contents:
    """What ``arrays`` hold, named as above; ``graph`` is told the number of nodes, ``suffix`` ends PARTS' names."""
    found, sparse = ", ".join(sorted(arrays)) or "nothing", csr_from_parts(arrays, "x")
    if sparse is None and "x" not in arrays:
        csr = "the CSR parts x_data, x_indices, x_indptr and x_shape"
        raise TadropedgeError(f"expected features: an array 'x' or {csr}, found {found}")
    features = torch.from_numpy(as_float32(np.atleast_1d(arrays["x"]), "x")) if sparse is None else csr_tensor(sparse)
    if "y" not in arrays:
        raise TadropedgeError(f"expected labels: an array 'y', found {found}")
    labels = whole_numbers(np.atleast_1d(arrays["y"]), "y")
    nodes = features.shape[0]
    return Contents(
        graph=graph(nodes),
        features=features,
        labels=torch.from_numpy(labels.copy()),
        splits=own_splits({name + suffix: arrays.get(name + suffix) for name in PARTS}, nodes),
    )


def own_splits(parts: Mapping[str, Any], num_nodes: int) -> tuple[Split, ...]:
    """The file's own splits: index lists or masks for train, val and test in this order, or ``None`` thrice.

    >>> [split.train.tolist() for split in own_splits({"train": [[0, 1], [2, 3]], "val": [4], "test": [5]}, 6)]
    [[0, 2], [1, 3]]
    >>> own_splits({"train": [0, 1], "val": [2], "test": None}, num_nodes=4)
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: the split is not whole: there is no test (split='random' draws one)
    """
    absent = [name for name, part in parts.items() if part is None]
    if len(absent) == len(parts):
        return ()
    if absent:
        lacking = " and no ".join(absent)
        raise TadropedgeError(f"the split is not whole: there is no {lacking} (split='random' draws one)")
    columns = {name: _columns(name, part, num_nodes) for name, part in parts.items()}
    counts = {name: len(listed) for name, listed in columns.items()}
    count = max(counts.values())
    if set(counts.values()) - {1, count}:
        told = ", ".join(f"{name} of {number}" for name, number in counts.items())
        raise TadropedgeError(f"train, val and test must be of the same number of splits, got {told}")
    return tuple(Split(*(listed[place % len(listed)] for listed in columns.values())) for place in range(count))


def _columns(name: str, part: Any, num_nodes: int) -> list[Tensor]:
    """The indices of one part in each split: columns of indices ``[n, K]``, or masks ``[N, K]`` or ``[K, N]``."""
    table = _table(name, part)
    if table.dtype != torch.bool:
        if table.dim() != 2 or not table.shape[1]:
            return [table.long()]  # a Split refuses what is no list of indices
        return list(table.long().unbind(dim=1))
    masks = table[:, None] if table.dim() == 1 else table
    if masks.dim() == 2 and masks.shape[0] != num_nodes:
        masks = masks.T
    if masks.dim() != 2 or masks.shape[0] != num_nodes or not masks.shape[1]:
        raise TadropedgeError(
            f"{name} is a mask of shape {list(table.shape)}: expected [{num_nodes}], or [{num_nodes}, K] for K splits"
        )
    return [mask.nonzero()[:, 0] for mask in masks.unbind(dim=1)]


def _table(name: str, part: Any) -> Tensor:
    try:
        table = part if isinstance(part, Tensor) else torch.as_tensor(plain_array(part, name))
    except TadropedgeError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise TadropedgeError(f"{name} must be node indices or a mask, got {type(part).__name__}") from error
    if table.is_floating_point() or table.is_complex():
        raise TadropedgeError(f"{name} must be node indices or a mask, got {table.dtype}")
    return table


def data_contents(
    values: Mapping[str, Any], column: str | None = None, file: str = "the Data", *, masks: bool = True
) -> Contents:
    """What the attributes of a ``Data`` hold; its tensors lie on the CPU. ``column`` names one that is a score."""
    if not masks:
        values = {name: value for name, value in values.items() if name not in {f"{part}_mask" for part in PARTS}}
    for name in ("edge_index", "x", "y"):
        if not isinstance(values.get(name), Tensor):
            raise TadropedgeError(f"expected a Data with tensors edge_index, x and y, found no {name}")
    for name, value in values.items():
        if isinstance(value, Tensor) and (name in SAVED or name == column):
            _check_tensor(name, value)
    labels = values["y"][:, 0] if values["y"].dim() == 2 and values["y"].shape[1] == 1 else values["y"]
    arrays = {**values, "y": labels.numpy(), **_feature_arrays(values["x"])}
    arcs, weight = values["edge_index"], values.get("edge_weight")
    contents = _from_arrays(arrays, lambda nodes: Graph.from_edge_index(arcs, nodes, weight), "_mask")
    return (
        contents
        if column is None
        else replace(contents, score_column=_arc_column(values, column, file, contents.graph))
    )


def _arc_column(values: Mapping[str, Any], column: str, file: str, graph: Graph) -> Tensor:
    if not isinstance(values.get(column), Tensor):
        arcs = values["edge_index"]
        per_arc = [name for name, value in values.items() if isinstance(value, Tensor) and _per_arc(value, arcs)]
        raise TadropedgeError(unknown(file, column, per_arc))
    return per_edge(graph, values[column], column)


def _per_arc(value: Tensor, arcs: Tensor) -> bool:
    """Whether a tensor holds one number for each column of ``edge_index``."""
    return value.dim() in (1, 2) and value.numel() == len(value) == arcs.shape[-1]


def _check_tensor(name: str, value: Tensor) -> None:
    """A tensor of plain numbers on the CPU; one entry may stand for many (``expand``), if memory can hold them all."""
    dense = value.layout is torch.strided
    numbers = value.dtype in PLAIN_TYPES and value.device.type == "cpu" and not value.is_quantized
    if not (dense or name == "x") or not numbers or value.is_conj() or value.is_neg():
        raise TadropedgeError(
            f"{name} must be a plain dense tensor, got {value.layout} of {value.dtype} on {value.device}"
        )
    if dense:
        check_room(2 * value.numel() * value.element_size(), f"{name} of shape {list(value.shape)}")


def _saved(path: Path) -> dict[str, Any]:
    """The attributes of the ``Data`` that ``torch.save`` wrote."""
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    hush_beta_warning()
    # PyTorch Geometric admits more when it is imported, among them classes whose constructors open other files.
    before = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    admitted = torch.serialization.safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage])
    _check_packed(path)
    try:
        with admitted, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files that are refused a moment later
            data = torch.load(path, map_location="cpu", weights_only=True)
        found = dict(data.to_dict()) if isinstance(data, Data) else None
    except TadropedgeError:
        raise
    except Exception as error:  # torch.load raises almost anything for files that are none of its own
        lines = str(error).splitlines() or [type(error).__name__]
        reason = next((line.strip() for line in lines if "WeightsUnpickler error" in line), lines[0])
        raise TadropedgeError(f"not a saved torch_geometric Data of plain tensors ({reason[:160]})") from error
    finally:
        torch.serialization.add_safe_globals(before)
    if found is None:
        raise TadropedgeError(f"expected a saved torch_geometric Data, got {type(data).__name__}")
    return found


def _check_packed(path: Path) -> None:
    """``torch.save`` packs nothing, so a file that unpacks to more than it is was made to fill the memory."""
    with readable(path, "a saved torch_geometric Data"):
        if not zipfile.is_zipfile(path):
            return
        with zipfile.ZipFile(path) as archive:
            size, there = sum(member.file_size for member in archive.infolist()), path.stat().st_size
    if size > there:
        raise TadropedgeError(f"not a saved torch_geometric Data: {there:,} bytes are said to unpack to {size:,}")


def _feature_arrays(x: Tensor) -> dict[str, Any]:
    """Dense, or the parts of a CSR matrix. A file may hold any indices, so they are checked before use."""
    if x.dim() != 2 or x.layout not in (torch.strided, torch.sparse_coo, torch.sparse_csr):
        raise TadropedgeError(f"x must be dense, COO or CSR of shape [N, F], got {x.layout} of shape {list(x.shape)}")
    if x.layout is torch.strided:
        return {"x": x.numpy()}
    if x.layout is torch.sparse_csr:
        parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    else:
        matrix = checked_parts("coo", (x._values().numpy(), *x._indices().numpy()), tuple(x.shape), "x")
        parts = (matrix.data, matrix.indices, matrix.indptr)
    return {f"x_{name}": part for name, part in zip(CSR_PARTS, (*parts, tuple(x.shape)), strict=True)}
