"""Datasets: where graphs with features and labels come from."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from tadropedge._old.checks import PYG, check_path, check_seed, name_or_path
from tadropedge._old.data.conditions import Conditions, conditioned
from tadropedge._old.data.dataset import Dataset
from tadropedge._old.data.features import row_normalized
from tadropedge._old.data.files import load_file
from tadropedge._old.data.objects import TAKEN, object_dataset
from tadropedge._old.data.planar import load_grid, load_roads
from tadropedge._old.data.planetoid import data_root, load_planetoid
from tadropedge._old.data.pyg_files import load_pyg, pyg_name
from tadropedge._old.data.source_localization import SourceLocalization, bayes_accuracy, load_source_localization
from tadropedge._old.data.splits import (
    FULL,
    Given,
    OfSizes,
    PerClass,
    Split,
    check_per_class,
    check_sizes,
    random_split,
    shuffled_split,
    split_seeds,
)
from tadropedge._old.data.synthetic import load_clusters, load_karate, load_noisy_clusters
from tadropedge._old.errors import TadropedgeError, lookup
from tadropedge._old.files.ogb import PREFIX, ogb_folder
from tadropedge._old.memory import within_memory
from tadropedge._old.registry import DATASETS

__all__ = [
    "DATASETS",
    "Conditions",
    "Dataset",
    "Given",
    "OfSizes",
    "PerClass",
    "SourceLocalization",
    "Split",
    "as_dataset",
    "bayes_accuracy",
    "conditioned",
    "load_clusters",
    "load_dataset",
    "load_file",
    "load_grid",
    "load_karate",
    "load_noisy_clusters",
    "load_planetoid",
    "load_roads",
    "load_source_localization",
    "random_split",
    "row_normalized",
    "shuffled_split",
]


def load_dataset(
    name: str | Path,
    root: str | Path | None = None,
    split: str | None = None,
    seed: int = 0,
    *,
    split_sizes: tuple[int, int, int] | None = None,
    **options: Any,
) -> Dataset:
    """Load a dataset by name (one of ``DATASETS``, or ``pyg:CLASS/NAME`` of PyTorch Geometric), or a file by its path.

    A path that is not here is looked for below ``root``, too. Of ``pyg:`` names the raw files are read, in PyTorch
    Geometric's own folders below ``root``; nothing is downloaded for them, and nothing is unpickled.

    ``root`` is the folder with downloaded files, ``split`` the kind of split (``None`` for the default), ``options``
    whatever else the loader takes. ``per_class`` asks for a random split: so many labels per class, or ``"full"``, the
    full split of Planetoid's sets, and of others 60, 20 and 20 % of the labelled nodes. ``split_sizes`` (train, val,
    test) draws one of these sizes instead.

    >>> load_dataset("karate", seed=2).split
    Split(train=8, val=10, test=16)
    >>> load_dataset("karat")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: unknown dataset 'karat'; choose from cora, citeseer, pubmed, \
source-localization, karate, clusters, noisy-clusters, grid, roads (did you mean 'karate'?)
    """
    known = found_data("dataset", name, root)
    seed = check_seed(seed)  # also where the dataset has no use for it
    root = None if root is None else check_path("root", root)
    loader = _loader(known)
    sizes = None if split_sizes is None else OfSizes(*check_sizes("split_sizes", split_sizes), seed=seed)
    if sizes is not None and (split is not None or "per_class" in options):
        other = "per_class" if split is None else f"split={split!r}"
        raise TadropedgeError(f"split_sizes and {other} exclude each other: each is a way to draw splits")
    taken = inspect.signature(loader).parameters
    if sizes is not None and known not in DATASETS:
        options["per_class"] = 1  # of a split that any data has, which is drawn anew
    anew: int | str | None = None
    if "per_class" in options:
        labels = options["per_class"] = check_per_class(options["per_class"])
        if "split" in taken:
            usual = FULL if labels == FULL == taken["split"].default else "random"
            if split in {FULL, "public", "file", "random"} - {usual}:
                raise TadropedgeError(f"per_class belongs to split={usual!r}, got per_class and split={split!r}")
            split = split or usual
        elif "per_class" not in taken or labels == FULL:
            anew = options.pop("per_class")  # of whatever was loaded
    options |= {"seed": seed} if split is None else {"seed": seed, "split": split}
    if "score_column" in options and "score_column" not in taken:
        raise TadropedgeError(f"score_column names a column of your own file, and {name} is a dataset without any")
    for key in options:
        lookup(f"option of {name}", key, taken)
    # Datasets that need no files have no use for the folder, and no quarrel with it.
    with within_memory(f"the dataset {name}"):
        dataset = loader(**options, **({"root": root} if "root" in taken else {}))
        if anew is not None:
            return object_dataset(dataset, per_class=anew, seed=seed)
        return dataset if sizes is None else _resized(dataset, sizes, seed)


def found_data(kind: str, name: str | Path, root: str | Path | None) -> str | Path:
    """One of ``DATASETS``, ``pyg:CLASS/NAME``, or the path of a file or folder.

    What is not here is looked for below the data's folder: sets of OGB by their names, files by their relative paths.
    """
    known = name_or_path(kind, name, DATASETS)
    if isinstance(known, str):
        return pyg_name(known) if known.startswith(PYG) else known
    if known.is_absolute() or known.exists():
        return known
    top = data_root(root)
    if known.name.startswith(PREFIX) and known.name == str(known):
        return ogb_folder(known.name, top)
    return below if (below := top / known).exists() else known


def _loader(known: str | Path) -> Callable[..., Dataset]:
    """What loads the dataset of a name or a path that was found."""
    if isinstance(known, Path):
        return partial(load_file, known)
    return partial(load_pyg, known) if known.startswith(PYG) else DATASETS[known]


def loader_options() -> set[str]:
    """What any loader takes, of names, of files or of objects.

    >>> sorted(loader_options() & {"per_class", "root", "noise", "trials"})
    ['noise', 'per_class', 'root']
    """
    loaders: list[Any] = [load_file, object_dataset, *(DATASETS[name] for name in DATASETS)]
    names = {name for loader in loaders for name in inspect.signature(loader).parameters}
    return (names | {"root", *TAKEN}) - {"data", "path", "options"}


def as_dataset(
    data: Any,
    root: str | Path | None = None,
    split: str | None = None,
    seed: int = 0,
    *,
    split_sizes: tuple[int, int, int] | None = None,
    **options: Any,
) -> Dataset:
    """A dataset from whatever holds one: a name or a path, a ``Data``, a PyG dataset of one graph, a ``Dataset``.

    The other arguments are those of :func:`load_dataset`; see :mod:`tadropedge._old.data.objects` for what a ``Data`` holds.

    >>> as_dataset(as_dataset("karate"), split_sizes=(8, 6, 20)).split
    Split(train=8, val=6, test=20)
    """
    if isinstance(data, str | PathLike):
        return load_dataset(data, root, split, seed, split_sizes=split_sizes, **options)  # type: ignore[arg-type]
    seed, sizes = check_seed(seed), None
    if root is not None:
        check_path("root", root)
    if split_sizes is not None:
        sizes = OfSizes(*check_sizes("split_sizes", split_sizes), seed=seed)
        if split is not None or "per_class" in options:
            other = "per_class" if split is None else f"split={split!r}"
            raise TadropedgeError(f"split_sizes and {other} exclude each other: each is a way to draw splits")
        if not isinstance(data, Dataset):
            options["per_class"] = 1  # of a split that any data has, which is drawn anew
    with within_memory("the data"):
        dataset = object_dataset(data, split=split, seed=seed, **options)
        return dataset if sizes is None else _resized(dataset, sizes, seed)


def _resized(dataset: Dataset, sizes: OfSizes, seed: int) -> Dataset:
    """The same data with a split of given sizes."""
    if dataset.level != "node":
        raise TadropedgeError(
            f"split_sizes are for node-level data, and {dataset.name} is a {dataset.level}-level task: give its loader "
            "sizes"
        )
    return replace(dataset, split=sizes.split(dataset.labels, split_seeds(seed)[0]).to(dataset.device), drawn=sizes)
