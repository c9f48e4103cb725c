"""A recipe: which datasets, conditions and methods a map has, and how much is trained, as one TOML file.

``[base]`` is the regime from which one condition at a time is changed. Each of ``[[conditions]]`` names a ``kind`` and
its ``values``, and may say otherwise for its cells alone: other ``methods`` (or all ``without`` some), fewer
``datasets`` or ``trials``, another ``backbone``. ``[space]`` replaces what is searched by default, as far as a network
has it::

    datasets = ["cora", "graphs/amazon_photo.npz"]
    methods = ["dropedge", "degree-proportional", "auto"]

    [base]
    labels = 20

    [[conditions]]
    kind = "noise"
    values = [1.0]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any

from tadropedge._old.checks import check_integer, check_number, check_path
from tadropedge._old.errors import TadropedgeError, lookup, reason, show
from tadropedge._old.method import Method
from tadropedge._old.regimes.results import BASE, Value
from tadropedge._old.registry import NETWORKS
from tadropedge._old.search.space import Space
from tadropedge._old.training.laboratory import PRECISIONS
from tadropedge._old.typed import Share, build

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PRESETS = ("quick", "full")
FULL = "full"  # instead of a number of labels: the dataset's own full split, or 60 % of its nodes
# Which part of a regime a condition of each kind changes.
CHANGED = {
    "labels": "labels",
    "budget": "keep_ratio",
    "depth": "layers",
    "noise": "add_edges",
    "features": "hide_features",
    "network": "backbone",
}
COUNTS = ("layers", "hidden", "epochs", "evaluate_every", "trials", "choose_splits")
OF_CONDITION = ("kind", "values", "datasets", "methods", "without")


@dataclass(frozen=True, kw_only=True)
class Regime:
    """What methods meet in a cell, and how much is trained there.

    ``labels`` per class, or ``"full"``; ``keep_ratio``: the share of the edges that every method keeps, None: each
    tunes its own; ``add_edges``: random edges, as a share of the graph's own; ``hide_features``: the share of the nodes
    without features. ``trials`` are searched on each of ``choose_splits`` splits, the best ``finalists`` of them on
    ``final_splits`` further ones (0: there are no finals), and the choice is judged on ``seeds``. ``precision`` of
    matrix products is as in :class:`~tadropedge._old.training.laboratory.Laboratory`.

    >>> Regime(labels=0)
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: labels must be a whole number of at least 1, got 0
    """

    labels: int | str = 20
    backbone: str = "gcn"
    layers: int = 2
    hidden: int = 64
    epochs: int = 200
    evaluate_every: int = 5
    keep_ratio: Share | None = None
    add_edges: float = 0.0
    hide_features: Share = 0.0
    trials: int = 16
    choose_splits: int = 2
    finalists: int = 0
    final_splits: int = 0
    seeds: int = 50
    precision: str = "highest"

    def __post_init__(self) -> None:
        if self.labels != FULL:
            if isinstance(self.labels, str):
                raise TadropedgeError(f"labels must be a number per class or {FULL!r}, got {self.labels!r}")
            check_integer("labels", self.labels, least=1)
        lookup("backbone", self.backbone, dict.fromkeys(NETWORKS))
        lookup("precision", self.precision, PRECISIONS)
        for name in COUNTS:
            check_integer(name, getattr(self, name), least=1)
        check_integer("seeds", self.seeds, least=2)  # one alone has no interval
        if self.finalists or self.final_splits:
            check_integer("finalists", self.finalists, least=2)
            check_integer("final_splits", self.final_splits, least=1)
            if self.finalists > self.trials:
                raise TadropedgeError(f"finalists must be at most trials, {self.trials}, got {self.finalists}")
        check_number("add_edges", self.add_edges, low=0)


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A cell that is to be measured: a dataset as the loader knows it, the condition, the regime and the methods."""

    source: str
    kind: str
    value: Value
    regime: Regime
    methods: tuple[str, ...]

    @property
    def dataset(self) -> str:
        """The short name of the dataset."""
        return short_name(self.source)

    @property
    def key(self) -> str:
        """As the cell will be called: dataset, kind and value."""
        return f"{self.dataset}/{self.kind}" + ("" if self.value is None else f"-{self.value}")


@dataclass(frozen=True, kw_only=True)
class MapRecipe:
    """What a map consists of: ``cells`` dataset by dataset, the base setting of each first.

    >>> recipe = MapRecipe.of({"datasets": ["karate"], "methods": ["dropedge"],
    ...                        "conditions": [{"kind": "noise", "values": [0.25, 1.0]}]}, "mine")
    >>> [cell.key for cell in recipe.cells]
    ['karate/base', 'karate/noise-0.25', 'karate/noise-1.0']
    """

    name: str
    cells: tuple[Planned, ...]
    space: Mapping[str, Any] = field(default_factory=dict)
    document: Mapping[str, Any] = field(default_factory=dict)  # the recipe as it was read

    @classmethod
    def of(cls, document: Mapping[str, Any], name: str) -> MapRecipe:
        """From what TOML holds; an error names the place that is wrong."""
        for key in document:
            lookup(f"part of the recipe {name}", key, dict.fromkeys(("title", *PARTS)))
        parts = build(_Parts, {key: document[key] for key in PARTS if key in document}, name)
        space = Space.of(parts.space).table()
        base = _regime(parts.base, {}, f"{name}: base")
        _check_methods(parts.methods, name)
        cells = [planned for source in parts.datasets for planned in _cells(source, parts, base, name)]
        places = [(cell.dataset, cell.kind, cell.value) for cell in cells]  # 1 and 1.0 are one value
        if twice := [cell.key for cell, place in zip(cells, places, strict=True) if places.count(place) > 1]:
            raise TadropedgeError(f"{name}: the cell {twice[0]!r} is there more than once")
        if not cells:
            raise TadropedgeError(f"{name}: datasets are empty, so there is nothing to measure")
        return cls(name=name, cells=tuple(cells), space=space, document=dict(document))


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """The parts of a recipe, before they are made cells."""

    datasets: Sequence[str]
    methods: Sequence[str]
    base: Mapping[str, Any] = field(default_factory=dict)
    conditions: Sequence[Mapping[str, Any]] = ()
    space: Mapping[str, Any] = field(default_factory=dict)


PARTS = tuple(one.name for one in fields(_Parts))


def load_map_recipe(told: str | Path) -> MapRecipe:
    """The recipe of a preset, or in a TOML file of your own.

    >>> load_map_recipe("quick").cells[0].key
    'noisy-clusters/base'
    """
    if told in PRESETS:
        content = (resources.files("tadropedge._old.regimes") / "recipes" / f"{told}.toml").read_bytes()
    else:
        path = check_path("recipe", told)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise TadropedgeError(f"cannot read the recipe '{path}': {reason(error)}") from None
    try:
        document = tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TadropedgeError(f"'{told}' is no TOML: {error}") from None
    return MapRecipe.of(document, str(told))


def short_name(source: str) -> str:
    """What a dataset is called in a map: its name, or that of its file.

    >>> short_name("graphs/amazon_photo.npz"), short_name("pyg:Coauthor/CS"), short_name("cora")
    ('amazon_photo', 'coauthor-cs', 'cora')
    """
    if source.startswith("pyg:"):
        return source.removeprefix("pyg:").replace("/", "-").lower()
    return PurePosixPath(source).stem if "/" in source or "." in source else source


def _cells(source: str, parts: _Parts, base: Regime, name: str) -> Iterator[Planned]:
    """The base of a dataset, then one cell for each value of each condition that includes it."""
    yield Planned(source=source, kind=BASE, value=None, regime=base, methods=tuple(parts.methods))
    for place, condition in enumerate(parts.conditions):
        where = f"{name}: conditions[{place}]"
        kind = lookup(f"kind of condition in {where}", condition.get("kind"), {one: one for one in CHANGED})
        among = build(list[str], list(condition.get("datasets", parts.datasets)), f"{where}.datasets")
        for one in among:
            lookup(f"dataset in {where}", one, dict.fromkeys(parts.datasets))
        methods = build(list[str], list(condition.get("methods", parts.methods)), f"{where}.methods")
        without = build(list[str], condition.get("without", []), f"{where}.without")
        for one in without:
            lookup(f"method in {where}.without", one, dict.fromkeys(methods))
        methods = [method for method in methods if method not in without]
        _check_methods(methods, where)
        values = condition.get("values")
        if not isinstance(values, list) or not values:
            raise TadropedgeError(f"{where}.values must be a list of one value or more, got {show(values)}")
        other = {key: value for key, value in condition.items() if key not in OF_CONDITION}
        for value in values if source in among else ():
            regime = _regime(parts.base, other | {CHANGED[kind]: value}, where)
            if regime == base:
                raise TadropedgeError(f"{where}.values holds {value!r}, which is what the base setting has")
            yield Planned(source=source, kind=kind, value=value, regime=regime, methods=tuple(methods))


def _regime(base: Mapping[str, Any], changes: Mapping[str, Any], where: str) -> Regime:
    known = {one.name: one.name for one in fields(Regime)}
    for key in (*base, *changes):
        lookup(f"setting in {where}", key, known)
    return build(Regime, {**base, **changes}, where)


def _check_methods(methods: Sequence[str], where: str) -> None:
    names = [Method.of(method).name for method in methods]
    if not names:
        raise TadropedgeError(f"{where}: methods are empty, name at least one")
    if twice := [name for name in names if names.count(name) > 1]:
        raise TadropedgeError(f"{where}: methods name {twice[0]!r} more than once")
