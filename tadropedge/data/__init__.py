"""Datasets: where graphs with features and labels come from."""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from typing import Any

from tadropedge.checks import check_path, check_seed, name_or_path
from tadropedge.data.dataset import Dataset, Split, random_split, shuffled_split
from tadropedge.data.features import row_normalized
from tadropedge.data.files import load_file
from tadropedge.data.planetoid import load_planetoid
from tadropedge.data.source_localization import SourceLocalization, bayes_accuracy, load_source_localization
from tadropedge.data.synthetic import load_clusters, load_karate
from tadropedge.errors import lookup
from tadropedge.memory import within_memory
from tadropedge.registry import DATASETS

__all__ = [
    "DATASETS",
    "Dataset",
    "SourceLocalization",
    "Split",
    "bayes_accuracy",
    "load_clusters",
    "load_dataset",
    "load_file",
    "load_karate",
    "load_planetoid",
    "load_source_localization",
    "random_split",
    "row_normalized",
    "shuffled_split",
]


def load_dataset(
    name: str | Path, root: str | Path | None = None, split: str | None = None, seed: int = 0, **options: Any
) -> Dataset:
    """Load a dataset by name (one of ``DATASETS``), or a user's own by the path of its file.

    ``root`` is the folder with downloaded files, ``split`` the kind of split (``None`` for the default), ``options``
    whatever else the loader takes.

    >>> load_dataset("karate", seed=2).split
    Split(train=8, val=10, test=16)
    >>> load_dataset("karat")
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: unknown dataset 'karat'; choose from cora, citeseer, pubmed, \
source-localization, karate, clusters (did you mean 'karate'?)
    """
    known = name_or_path("dataset", name, DATASETS)
    seed = check_seed(seed)  # also where the dataset has no use for it
    root = None if root is None else check_path("root", root)
    loader = DATASETS[known] if isinstance(known, str) else partial(load_file, known)
    taken = inspect.signature(loader).parameters
    options |= {"seed": seed} if split is None else {"seed": seed, "split": split}
    for key in options:
        lookup(f"option of {name}", key, taken)
    # Datasets that need no files have no use for the folder, and no quarrel with it.
    with within_memory(f"the dataset {name}"):
        return loader(**options, **({"root": root} if "root" in taken else {}))
