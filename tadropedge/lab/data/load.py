"""``load``: a dataset from whatever holds one: a name, a path, a ``Data``, a PyG dataset of one graph."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from tadropedge._support.checks import check_integer, check_path, check_seed
from tadropedge._support.memory import within_memory
from tadropedge.errors import TadropedgeError, lookup, show
from tadropedge.lab.data.corrupt import corrupt
from tadropedge.lab.data.dataset import Dataset
from tadropedge.lab.data.splits import Given, OfSizes, PerClass, Splits, full_split
from tadropedge.lab.registry import DATASETS

EXPECTED = "a name, a path, a Data of one graph, a PyG dataset of one graph or a Dataset of tadropedge"
WAYS = ("random", "full", "public", "own")


def load(
    data: Any,
    *,
    split: str | Sequence[int] | None = None,
    per_class: int | None = None,
    seed: int = 0,
    add_edges: float = 0.0,
    hide_features: float = 0.0,
    **options: Any,
) -> Dataset:
    """Load a dataset by its name, from a file, or from an object that holds one graph.

    Args:
        data: one of ``DATASETS``; ``pyg:CLASS/NAME`` of PyTorch Geometric; the path of a file, looked for here and in
            the folder ``TADROPEDGE_DATA``; a ``Data``; a PyG dataset of one graph; a :class:`Dataset`.
        split: ``"random"``, drawn afresh for every number: ``per_class`` labels of each class train, of the others a
            third, at most 500, validate, and the rest test (embedded sets have sizes of their own); sizes ``(train,
            val, test)``, drawn afresh, too. Fixed splits are ``"full"``, of the citation sets that of the paper, of
            others 60, 20 and 20 % of the labelled nodes, and ``"public"`` or ``"own"``, those that the data brings.
            ``None`` is ``"random"``, or what a :class:`Dataset` has.
        per_class: training labels per class of a random split, 20 by default.
        seed: of splits, of synthetic graphs and of what is corrupted.
        add_edges: random edges added, as a share of the graph's own.
        hide_features: the share of the nodes whose features are hidden.
        options: of whatever reads the data: ``nodes``, ``header``, ``columns``, ``column``, ``weighted`` and
            ``normalize`` of files, ``noise=3.0`` of a synthetic graph.

    >>> load("karate"), load("karate", per_class=3).split(0)
    (Dataset('karate', num_nodes=34, num_edges=78, num_features=34, num_classes=4), Split(train=12, val=7, test=15))
    >>> load("karate", split="own")
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: karate brings no split of its own: take split='random' or split='full'
    >>> load("karat")
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: unknown dataset 'karat'; choose from karate, clusters, noisy-clusters, roads, \
dense, cora, citeseer, pubmed, pyg:CLASS/NAME, the path of a file (did you mean 'karate'?)
    """
    seed = check_seed(seed)
    with within_memory("the data"):
        dataset = _found(data, seed, options)
        dataset = _split_as(dataset, split, per_class, seed)
        dataset = corrupt(dataset, add_edges=add_edges, hide_features=hide_features, seed=seed)
        try:
            dataset.split(0)  # what cannot be drawn is said here, not in the middle of a search
        except TadropedgeError as error:
            said = str(error) if dataset.name in str(error) else f"{dataset.name}: {error}"
            raise TadropedgeError(said, argument=error.argument) from error
    return dataset


def _found(data: Any, seed: int, options: Mapping[str, Any]) -> Dataset:
    """The dataset as its source has it, with its default splits."""
    found: Dataset
    if isinstance(data, str) and data.lower() in DATASETS:
        made = _called(data.lower(), DATASETS[data.lower()], seed, options)
        found = made if isinstance(made, Dataset) else _found(made, seed, {})  # a plug-in may return a Data
    elif isinstance(data, str) and data.lower().startswith("pyg:"):
        from tadropedge.lab.data.pyg import load_pyg

        found = _called(data, load_pyg, seed, {"name": data, **options})
    elif isinstance(data, str | PathLike):
        from tadropedge.lab.data.contents import load_file

        found = _called("a file", load_file, seed, {"path": path_of(data), **options})
    elif isinstance(data, Dataset):
        found = _called("a Dataset", lambda: data, seed, options)
    else:
        from tadropedge.lab.data.contents import load_object

        found = _called(f"a {type(data).__name__}", load_object, seed, {"data": data, **options})
    return found


def _called(what: str, loader: Any, seed: int, options: Mapping[str, Any]) -> Any:
    """Call a loader with the seed, if it takes one, and with options that it has."""
    taken = inspect.signature(loader).parameters
    for name in options:
        if name not in taken and not any(each.kind is each.VAR_KEYWORD for each in taken.values()):
            known = dict.fromkeys(each for each in taken if each != "seed")
            if not known:
                raise TadropedgeError(f"{what} has no options, got {name}={show(options[name], typed=False)}")
            lookup(f"option of {what}", name, known)
    return loader(**options, **({"seed": seed} if "seed" in taken else {}))


def path_of(data: str | PathLike[str]) -> Path:
    """The path of a file, here or in the folder of all data; what can be none is a name that nobody knows."""
    from tadropedge.lab.data.pyg import data_folder

    path = check_path("data", data)
    if path.exists():
        return path
    if not path.suffix and len(path.parts) == 1:
        try:
            lookup("dataset", str(data), dict.fromkeys((*DATASETS, "pyg:CLASS/NAME", "the path of a file")))
        except TadropedgeError as error:
            raise TadropedgeError(str(error), argument="data") from None
    below = data_folder() / path
    return below if below.exists() else path


def _split_as(dataset: Dataset, split: str | Sequence[int] | None, per_class: int | None, seed: int) -> Dataset:
    """The dataset with the splits that were asked for."""
    if per_class is not None:
        check_integer("per_class", per_class, least=1)
        if split not in (None, "random"):
            got = show(split, typed=False)
            raise TadropedgeError(f"per_class is of random splits, got split={got}", argument="per_class")
        return replace(dataset, splits=PerClass(per_class, seed=seed))
    if split is None:
        return dataset
    if isinstance(split, str):
        return replace(dataset, splits=_named(dataset, split, seed))
    sizes: list[Any] = list(split) if isinstance(split, Sequence) else []
    if len(sizes) != 3:
        known = ", ".join(map(repr, WAYS))
        raise TadropedgeError(f"split must be {known} or three sizes, got {show(split)}", argument="split")
    return replace(dataset, splits=OfSizes(sizes[0], sizes[1], sizes[2], seed=seed))


def _named(dataset: Dataset, split: str, seed: int) -> Splits:
    """The splits that a word stands for."""
    lookup("split", split, dict.fromkeys(WAYS))
    if split == "random":
        return PerClass(seed=seed) if isinstance(dataset.splits, Given) else dataset.splits
    if split == "full":
        return dataset.given.get("full") or full_split(dataset.labels, seed=seed)
    if "own" not in dataset.given:
        raise TadropedgeError(
            f"{dataset.name} brings no split of its own: take split='random' or split='full'", argument="split"
        )
    return dataset.given["own"]
