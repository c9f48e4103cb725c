"""The items of the paper by name; a module is imported when its item is run or shown."""

from __future__ import annotations

import importlib
from types import ModuleType

from tadropedge._old.errors import lookup

ITEMS = {
    "table1": "table1",
    "table2": "table2",
    "table3": "table3",
    "datasets": "datasets",
    "components": "components",
    "fig1": "fig1",
    "examples": "examples",
    "weights": "scores",
    "convergence": "convergence",
    "accuracy-vs-p": "accuracy_vs_p",
    "inverse": "inverse",
    "variance": "variance",
    "over-smoothing": "over_smoothing",
    "theorem1": "theorem1",
    "augmentation": "augmentation",
    "edge-errors": "edge_errors",
    "proposition1": "proposition1",
    "eigengap": "eigengap",
}
ALL = "all"


def item_module(name: str) -> ModuleType:
    """The module of an item, with its ``run(bench)``."""
    return importlib.import_module(f"tadropedge._old.paper.items.{lookup('item of the paper', name, ITEMS)}")


def named_items(name: str) -> list[str]:
    """One item, or all of them.

    >>> named_items("tabel1")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: unknown item of the paper 'tabel1'; choose from table1, table2, table3, \
datasets, components, fig1, examples, weights, convergence, accuracy-vs-p, inverse, variance, over-smoothing, \
theorem1, augmentation, edge-errors, proposition1, eigengap, all (did you mean 'table1'?)
    """
    lookup("item of the paper", name, {**ITEMS, ALL: ALL})
    return list(ITEMS) if name == ALL else [name]
