"""A user's own data: ``.npz`` of plain arrays, an edge list beside a table of nodes, or a saved ``Data``.

The arrays of an ``.npz`` file:

* ``edge_index [2, A]`` with optional ``num_nodes`` and ``edge_weight [A]``; or a sparse adjacency matrix as
  ``adj_data``, ``adj_indices``, ``adj_indptr``, ``adj_shape``, or as ``scipy.sparse.save_npz`` names its parts;
* ``x [N, F]``, or its CSR parts ``x_data``, ``x_indices``, ``x_indptr``, ``x_shape``, which stay sparse;
* ``y [N]``: whole numbers, 0 … C − 1, and −1 for nodes without a label;
* optional ``train``, ``val`` and ``test``: node indices, or boolean masks ``[N]``.

A table of nodes is described in :mod:`tadropedge.data.tables`. A saved PyTorch Geometric ``Data`` (``.pt``) has
``edge_index``, ``x``, ``y`` and optional ``edge_weight``, ``train_mask``, ``val_mask`` and ``test_mask``. Nothing is
unpickled but tensors and the classes that make up a ``Data``.
"""

from __future__ import annotations

from pathlib import Path

from tadropedge.data.arrays import Contents, read_arrays
from tadropedge.data.dataset import Dataset
from tadropedge.data.features import row_normalized
from tadropedge.data.saved import read_saved
from tadropedge.data.splits import Split, random_split
from tadropedge.data.tables import read_table
from tadropedge.errors import TadropedgeError, lookup
from tadropedge.files import existing

NUM_VAL, NUM_TEST = 500, 1000  # of a random split, where there are enough nodes


def load_file(
    path: str | Path,
    *,
    nodes: str | Path | None = None,
    header: bool | None = None,
    split: str | None = None,
    per_class: int = 20,
    seed: int = 0,
    normalize: bool = False,
) -> Dataset:
    """Load a user's own node-level data: ``.npz``, ``.pt``, or an edge list with a table of ``nodes``.

    ``split``: ``"file"``, the file's own; ``"random"``, ``per_class`` labels per class, and of the rest a third, at
    most 500, to choose and at most 1000 to judge, drawn from ``seed``; ``None`` for the first where there is one, else
    the second. ``normalize`` divides each row of features by its sum. ``header`` says whether ``nodes`` has one.
    """
    path = existing(path)
    try:
        contents = _contents(path, nodes, header)
        features = row_normalized(contents.features) if normalize else contents.features
        return Dataset(
            name=path.name.partition(".")[0],
            graph=contents.graph,
            features=features,
            labels=contents.labels,
            num_classes=int(contents.labels.max()) + 1 if contents.labels.numel() else 0,
            level="node",
            split=_split(contents, split, per_class, seed),
            class_names=contents.class_names,
        )
    except TadropedgeError as error:  # say which file it was, unless that is said
        text = str(error)
        named = any(Path(file).name in text for file in (path, nodes) if file is not None)
        raise TadropedgeError(text if named else f"{path.name}: {text}") from error


def _contents(path: Path, nodes: str | Path | None, header: bool | None) -> Contents:
    if path.suffix == ".npz":
        return read_arrays(path)
    if path.suffix in (".pt", ".pth"):
        return read_saved(path)
    if nodes is None:
        raise TadropedgeError(f"{path.name}: an edge list needs a table of features and labels: nodes='nodes.csv'")
    return read_table(path, Path(nodes), header)


def _split(contents: Contents, split: str | None, per_class: int, seed: int) -> Split:
    lookup("split", split or "random", {"file": None, "random": None})
    if contents.split is not None and split != "random":
        return contents.split
    if split == "file":
        raise TadropedgeError("the file has no split of its own: expected train, val and test")
    labelled = contents.labels[contents.labels >= 0]
    rest = labelled.numel() - per_class * labelled.unique().numel()
    num_val = min(NUM_VAL, max(1, rest // 3))
    return random_split(contents.labels, per_class, num_val, min(NUM_TEST, max(1, rest - num_val)), seed=seed)
