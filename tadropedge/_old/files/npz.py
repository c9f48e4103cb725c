"""Arrays of an ``.npz`` file, and the graph, features, labels and splits among them, whoever named them.

The graph is ``edge_index [2, A]``, ``edges [A, 2]``, a CSR matrix as ``adj_data``, ``adj_indices``, ``adj_indptr`` and
``adj_shape``, or what ``scipy.sparse.save_npz`` wrote. What else there is has the names of one of ``LAYOUTS``.
"""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tadropedge._old.arrays import FORMATS, checked_csr, checked_parts, plain_array, whole_numbers
from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.files.held import PARTS, Asked, Held, unknown
from tadropedge._old.files.opening import readable
from tadropedge._old.memory import check_room

if TYPE_CHECKING:
    import scipy.sparse as sp

Array = npt.NDArray[Any]

ARCS = {"edge_index", "edges"}
MAPPED = 2**24  # bytes from which an array is mapped instead of read
PART = 2**22  # bytes that are read together
LOCAL_HEADER = 30  # bytes before the name of a member of an archive; the last four are the lengths of what follows
ENCRYPTED = 1

CSR_PARTS = ("data", "indices", "indptr", "shape")
ARC_ARRAYS = {"edge_index", "edges", "num_nodes", "edge_weight"}
MATRIX_ARRAYS = {"format", "shape", *(part for parts in FORMATS.values() for part in parts)}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What somebody calls ``features`` (an array, or a prefix of CSR parts), ``labels`` and the parts of ``splits``.

    ``binary``: as PyTorch Geometric reads it, positive features are ones, and entries of the matrix are no weights.
    """

    features: str
    labels: str
    splits: tuple[str, ...] = ()
    binary: bool = False

    @property
    def sparse(self) -> set[str]:
        """The names of CSR parts of features."""
        return {f"{self.features}_{part}" for part in CSR_PARTS}


OWN = Layout(features="x", labels="y", splits=PARTS)
MASKS = tuple(f"{part}_masks" for part in PARTS)
LAYOUTS = (
    OWN,
    Layout(features="attr", labels="labels", binary=True),  # PyG: CitationFull, Amazon, Coauthor
    Layout(features="node_features", labels="node_labels", splits=MASKS),  # PyG: HeterophilousGraphDataset
    Layout(features="features", labels="target"),  # PyG: WikipediaNetwork
    Layout(features="node_feat", labels="node_label", splits=("train_idx", "valid_idx", "test_idx")),  # OGB
)
ADJACENCY = {f"adj_{part}" for part in CSR_PARTS}
GRAPH_ARRAYS = ARC_ARRAYS | MATRIX_ARRAYS | ADJACENCY
# What is no column of edges: arrays of the graph, and of nodes.
KNOWN = {name for each in LAYOUTS for name in (each.features, each.labels, *each.splits, *each.sparse)}
KNOWN |= GRAPH_ARRAYS - {"edge_weight"}


def read(path: Path, asked: Asked) -> Held:
    """The graph among the arrays of a file; features, labels and splits where the whole is asked for."""
    names = read_arrays(path, set())[1]
    layout = next((each for each in LAYOUTS if {each.features, each.labels, *each.sparse} & set(names)), OWN)
    wanted = GRAPH_ARRAYS | ({asked.column} if asked.column is not None else set())
    if asked.whole:
        wanted |= {layout.features, layout.labels, *layout.sparse} | set(layout.splits if asked.masks else ())
    elif layout is not OWN:
        wanted |= {layout.labels}  # which say how many nodes there are
    arrays, found = read_arrays(path, wanted)
    features = _features(arrays, layout) if asked.whole else None
    labels = _labels(arrays[layout.labels], layout) if layout.labels in arrays else None
    arcs, nodes, weight = _graph(arrays, found, path.name, features is not None and labels is not None)
    if layout is not OWN and nodes is None and labels is not None:
        nodes = len(labels)
    return Held(
        arcs=arcs,
        num_nodes=nodes,
        weight=None if layout.binary else weight,
        column=None if asked.column is None else _column(arrays, found, asked.column, path.name),
        features=features,
        labels=labels if asked.whole else None,
        parts={name: arrays.get(name) for name in layout.splits} if asked.whole and asked.masks else {},
        lacking=_lacking(layout, found),
    )


def _lacking(layout: Layout, found: list[str]) -> dict[str, str]:
    listed = show(", ".join(found) or "nothing", typed=False, longest=160)[1:-1]
    csr = ", ".join(f"{layout.features}_{part}" for part in CSR_PARTS[:3]) + f" and {layout.features}_shape"
    beside = "; a table of nodes may lie beside it: nodes='nodes.csv'"
    return {
        "features": f"expected features: an array '{layout.features}' or the CSR parts {csr}, found {listed}{beside}",
        "labels": f"expected labels: an array '{layout.labels}', found {listed}{beside}",
    }


def _features(arrays: Mapping[str, Array], layout: Layout) -> Any:
    sparse = csr_from_parts(arrays, layout.features)
    if sparse is None:
        return np.atleast_1d(arrays[layout.features]) if layout.features in arrays else None
    if layout.binary:
        sparse.data[sparse.data > 0] = 1
    return sparse


def _labels(values: Array, layout: Layout) -> npt.NDArray[np.int64]:
    return whole_numbers(np.atleast_1d(values), "y") if layout is OWN else class_numbers(values, layout.labels)


def class_numbers(values: Any, name: str) -> npt.NDArray[np.int64]:
    """Labels ``[N]`` or ``[N, 1]`` as whole numbers; others write them as 2.0, and NaN where there is none.

    >>> class_numbers(np.array([[2.0], [np.nan]]), "node_label")
    array([ 2, -1])
    """
    array = plain_array(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        told = f"of shape {list(array.shape)}"
        raise TadropedgeError(
            f"{name} must be one class per node, [N], got {told}: tasks of several labels are not read"
        )
    if array.dtype.kind != "f":
        return whole_numbers(array, name)
    numbers = np.where(np.isnan(array), -1.0, array)
    if not (np.isfinite(numbers) & (numbers == np.round(numbers)) & (np.abs(numbers) < 2**31)).all():
        raise TadropedgeError(f"{name} must be whole numbers of classes, got others such as {_odd(numbers):g}")
    return numbers.astype(np.int64)


def _odd(numbers: npt.NDArray[np.float64]) -> float:
    """The first that is no class."""
    wrong = ~(np.isfinite(numbers) & (numbers == np.round(numbers)) & (np.abs(numbers) < 2**31))
    return float(numbers[wrong][0])


def _column(arrays: Mapping[str, Array], found: list[str], column: str, file: str) -> Array:
    if column not in arrays or arrays[column].dtype.kind not in "biuf":
        raise TadropedgeError(unknown(file, column, [name for name in found if name not in KNOWN]))
    return arrays[column]


def csr_from_parts(arrays: Mapping[str, Array], prefix: str) -> sp.csr_matrix | None:
    """The matrix whose parts are called ``prefix_data`` and so on, where all of them are there."""
    names = [f"{prefix}_{part}" for part in CSR_PARTS]
    if not set(names) <= set(arrays):
        return None
    values, indices, indptr, shape = (arrays[name] for name in names)
    return summed(checked_csr(values, indices, indptr, np.atleast_1d(shape), prefix))


def summed(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """``matrix`` itself, its repeated entries summed and the columns of each row sorted."""
    matrix.sum_duplicates()
    return matrix


def read_arrays(path: Path, wanted: set[str]) -> tuple[dict[str, npt.NDArray[Any]], list[str]]:
    """Those arrays of an ``.npz`` file that are ``wanted``, and the names of all that it holds.

    Nothing is unpickled, and nothing is made room for that the file does not hold. Large arrays of arcs that are
    not packed (``np.savez``, not ``np.savez_compressed``) are mapped into memory: a graph is made of them piece by
    piece, after which nobody holds them. What is written to them does not reach the file.
    """
    with readable(path, "an .npz file of plain arrays"), path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        chosen = {name: member for name, member in members.items() if name in wanted}
        mapped = {name for name, member in chosen.items() if name in ARCS and _can_be_mapped(member)}
        unpacked = sum(member.file_size for name, member in chosen.items() if name not in mapped)
        check_room(unpacked, f"{path.name}, unpacked,")
        arrays = {}
        for name, member in chosen.items():
            with archive.open(member) as content:
                _check_header(content, member.file_size, f"{path.name}: {name}")
            if name in mapped:
                arrays[name] = _mapped(path, stream, archive, member)
                continue
            with archive.open(member) as content:
                arrays[name] = np.lib.format.read_array(content, allow_pickle=False)
    return arrays, sorted(members)


def _can_be_mapped(member: zipfile.ZipInfo) -> bool:
    plain = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & ENCRYPTED
    return plain and member.file_size >= MAPPED


def _mapped(path: Path, stream: BinaryIO, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    """An array that is stored as it is, in its place in the file; its checksum is looked at first."""
    with archive.open(member) as content:
        shape, fortran, dtype = _header(content)
        within = content.tell()
        while content.read(PART):  # to the end, where a wrong checksum raises
            pass
    stream.seek(member.header_offset)
    name_length, extra_length = struct.unpack("<HH", stream.read(LOCAL_HEADER)[-4:])
    offset = member.header_offset + LOCAL_HEADER + name_length + extra_length + within
    return np.memmap(path, dtype=dtype, mode="c", offset=offset, shape=shape, order="F" if fortran else "C")


def _header(content: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come first, and type of the array that begins here."""
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    return read[np.lib.format.read_magic(content)](content)


def _check_header(content: Any, size: int, where: str) -> None:
    """Check that an array has a plain type, and no more entries than there are bytes for."""
    shape, _, dtype = _header(content)
    if dtype.hasobject:
        raise TadropedgeError(f"{where} holds Python objects, which are not unpickled: expected plain numbers")
    if dtype.kind not in "biufcSU" or not dtype.itemsize or any(length < 0 for length in shape):
        raise TadropedgeError(f"{where} is not an array of plain numbers or texts, but of {dtype} {shape}")
    need, there = math.prod(shape) * dtype.itemsize, size - content.tell()
    if need > there:
        raise TadropedgeError(
            f"{where} is said to have shape {shape}, which is {need:,} bytes, but {there:,} are there"
        )


def _graph(
    arrays: Mapping[str, Array], found: list[str], name: str, dataset: bool
) -> tuple[Array, int | None, Array | None]:
    """Arcs ``[2, A]``, the number of nodes where it is told, and weights; a matrix comes first in a ``dataset``."""
    if (dataset or not {"edge_index", "edges"} & set(arrays)) and set(arrays) >= ADJACENCY:
        matrix = csr_from_parts(arrays, "adj")
        assert matrix is not None
        arcs, weight = matrix_arcs(square(matrix))
        return arcs, matrix.shape[0], weight
    if "edge_index" in arrays:
        return arrays["edge_index"], _told_nodes(arrays, name), arrays.get("edge_weight")
    if "edges" in arrays:
        edges = arrays["edges"]
        if edges.ndim != 2 or 2 not in edges.shape:
            raise TadropedgeError(f"{name}: edges must be of shape [A, 2], got {list(edges.shape)}")
        return edges.T if edges.shape[1] == 2 else edges, _told_nodes(arrays, name), arrays.get("edge_weight")
    kind = _format(arrays.get("format"))
    if kind is not None and {"shape", *FORMATS[kind]} <= set(arrays):
        matrix = checked_parts(kind, [arrays[part] for part in FORMATS[kind]], arrays["shape"], name)
        arcs, weight = matrix_arcs(matrix)
        return arcs, max(matrix.shape), weight
    listed = show(", ".join(found) or "nothing", typed=False)
    raise TadropedgeError(
        f"{name}: expected an array 'edge_index' or a matrix saved by scipy.sparse.save_npz, found {listed}"
    )


def _told_nodes(arrays: Mapping[str, Array], name: str) -> int | None:
    nodes = arrays.get("num_nodes")
    if nodes is not None and nodes.size != 1:
        raise TadropedgeError(f"{name}: num_nodes must be one whole number, got shape {list(nodes.shape)}")
    return None if nodes is None else int(whole_numbers(nodes, f"{name}: num_nodes").item())


def square(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """``matrix``, if it is square."""
    if matrix.shape[0] != matrix.shape[1]:
        raise TadropedgeError(f"an adjacency matrix must be square, got shape {tuple(matrix.shape)}")
    return matrix


def _format(value: npt.NDArray[Any] | None) -> str | None:
    """The format that ``scipy.sparse.save_npz`` noted, as bytes or text."""
    if value is None or value.size != 1 or value.dtype.kind not in "SU":
        return None
    kind = value.item()
    text = kind.decode("latin1") if isinstance(kind, bytes) else str(kind)
    return text if text in FORMATS else None


def matrix_arcs(matrix: sp.csr_matrix) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The entries of a checked matrix in row-major order: repeated ones summed, stored zeros left out."""
    entries = matrix.astype(np.float64).copy()
    entries.sum_duplicates()
    entries.eliminate_zeros()
    entries = entries.tocoo()
    return np.stack((entries.row, entries.col)).astype(np.int64), entries.data
