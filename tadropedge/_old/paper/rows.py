"""Rows of the paper's items: frozen dataclasses, each field a column of the csv and a member in ``results.json``."""

from __future__ import annotations

import typing
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, TypeVar

from tadropedge._old.data.planetoid import NAMES
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.typed import MaybeNan, build

R = TypeVar("R", bound="Row")
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
Check = Callable[[Any, object, str], Any]


@dataclass(frozen=True)
class Column:
    """How a field stands in a table, as an annotation: ``Annotated[float, Column("quantile_0.5")]``.

    The fields of an ``inlined`` one are columns themselves, ``NAME_FIELD`` each, where a field called ``value`` has the
    NAME alone. An ``optional`` one has no column in a row where it is None.
    """

    name: str | None = None
    inlined: bool = False
    optional: bool = False


INLINED, WITHOUT_NAME, OPTIONAL = Column(inlined=True), Column("", inlined=True), Column(optional=True)


@dataclass(frozen=True)
class Measured:
    """A number and its standard error; NaN where one measurement tells nothing of its error."""

    value: float
    error: MaybeNan

    def above(self, errors: float) -> bool:
        """Whether it lies more than so many standard errors above zero."""
        return self.value > errors * self.error

    def below(self, errors: float) -> bool:
        """Whether it lies more than so many standard errors below zero."""
        return self.value < -errors * self.error


Number = Annotated[Measured, INLINED]


@dataclass(frozen=True)
class Row:
    """One row of an item; each item has its own kind.

    >>> @dataclass(frozen=True)
    ... class Speed(Row):
    ...     car: str
    ...     speed: Number
    ...     driver: Annotated[str | None, OPTIONAL] = None
    >>> Speed("red", Measured(2.0, 0.5)).columns()
    {'car': 'red', 'speed': 2.0, 'speed_error': 0.5}
    >>> Speed.of({"car": "red", "speed": "high", "speed_error": 1}, "cars[0]")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: cars[0].speed must be a number, got 'high'

    ``commit`` names what was at work when the numbers of the row were measured or trained, several in order.
    """

    commit: Annotated[str | None, OPTIONAL] = field(default=None, kw_only=True)

    def columns(self) -> dict[str, Any]:
        """The values by the names of their columns."""
        return _columns(self, "")

    @classmethod
    def of(cls: type[R], columns: Mapping[str, object], where: str, check: Check = build) -> R:
        """The row of such columns; what is wrong is named by its place. ``check(kind, value, where)`` makes a value."""
        left = dict(columns)
        made: R = _made(cls, left, "", where, check)
        for name, value in left.items():
            if value is not None:  # rows of another kind in the same table leave their columns empty here
                raise TadropedgeError(f"{where} has an unknown member {name!r}")
        return made


@cache
def _fields(kind: Any) -> list[tuple[str, Any, Column]]:
    """The name of each field, its kind, and how it stands in a table."""
    found = []
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        column = next((mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Column)), Column())
        if column.name is None:
            column = replace(column, name="" if name == "value" else name)
        found.append((name, hint.__origin__ if column.inlined else hint, column))
    return found


def _columns(row: Any, prefix: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    kind: Any = type(row)
    for name, _, column in _fields(kind):
        value, whole = getattr(row, name), "_".join(filter(None, (prefix, column.name)))
        if column.inlined:
            found |= _columns(value, whole)
        elif value is not None or not column.optional:
            found[whole] = value
    return found


def _made(kind: Any, left: dict[str, object], prefix: str, where: str, check: Check) -> Any:
    made = {}
    for name, hint, column in _fields(kind):
        whole = "_".join(filter(None, (prefix, column.name)))
        if column.inlined:
            made[name] = _made(hint, left, whole, where, check)
        elif whole in left:
            made[name] = check(hint, left.pop(whole), f"{where}.{whole}")
        elif not column.optional:
            raise TadropedgeError(f"{where} lacks {whole!r}, found {', '.join(left) or 'nothing'}")
    return kind(**made)


def unchecked(kind: object, value: object, where: str) -> object:
    """A value as it was before it became JSON: for what this program wrote itself, and what may be infinite."""
    return tuple(value) if isinstance(value, list) else value


def table(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The columns of all rows; where rows are of several kinds, each has the columns of all."""
    found = [row.columns() for row in rows]
    if len({type(row) for row in rows}) > 1:
        names = dict.fromkeys(name for row in found for name in row)
        found = [{name: row.get(name) for name in names} for row in found]
    return found


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """The items by a key, in the order in which keys and items come.

    >>> grouped(["one", "two", "three"], len)
    {3: ['one', 'two'], 5: ['three']}
    """
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def title(dataset: str) -> str:
    """The name of a dataset as the paper writes it.

    >>> title("citeseer"), title("karate")
    ('CiteSeer', 'karate')
    """
    return NAMES.get(dataset, dataset)
