"""JSON documents as frozen dataclasses: read, checked field by field, written in one step.

The annotations of a dataclass are its schema. An error names the place of the wrong value:
``results.json: compare[3].honest.mean must be a number, got 'high'``.
"""

from __future__ import annotations

import json
import math
import re
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union

import numpy as np

from tadropedge._old.atomic import write_atomic
from tadropedge._old.errors import NotEnoughMemoryError, TadropedgeError, show
from tadropedge._old.files import existing, read_bytes

T = TypeVar("T")

MOST = 2**63 - 1  # of a count, which arrays hold in 64 bits
LARGEST = 1e300  # a whole number in JSON may be too large for a float, and NaN is no JSON
# A list or mapping of nothing but numbers is put on one line: a curve of 400 epochs should not take 400 lines.
NUMBERS = re.compile(r'[\[{](\n\s+("\w+": )?(-?[0-9][0-9.eE+-]*|null),?)+\n\s+[\]}]')
WORDS = {str: "a text that is not empty", bool: "true or false", int: "a whole number", float: "a number"}


@dataclass(frozen=True)
class Within:
    """A bound on a number, as an annotation: ``Annotated[float, Within(0, 1)]``."""

    low: float
    high: float = math.inf

    def check(self, value: float, where: str) -> None:
        """Refuse what lies outside."""
        if not self.low <= value <= self.high:
            wanted = f"at least {self.low:g}" if self.high >= MOST else f"in [{self.low:g}, {self.high:g}]"
            raise TadropedgeError(f"{where} must be {wanted}, got {show(value, typed=False)}")


NONE_IS_NAN = "None stands for NaN"
Share = Annotated[float, Within(0, 1)]
Count = Annotated[int, Within(0, MOST)]
MaybeNan = Annotated[float, NONE_IS_NAN]


def build(kind: type[T], value: object, where: str) -> T:
    """``value``, as read from JSON, as a ``kind``: a dataclass, a list, a table, a number, a text or a choice of them.

    ``where`` starts every message: the name of a value, or that of a file with a colon (``"results.json:"``).

    >>> build(tuple[Share, ...], [0.5, 2], "shares")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: shares[1] must be in [0, 1], got 2.0
    >>> build(Within, {"low": 1}, "bounds")
    Within(low=1.0, high=inf)
    """
    return _build(kind, value, where)  # type: ignore[no-any-return]


def _build(kind: Any, value: object, where: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or kind is object:
        return value
    if is_dataclass(kind):
        return _record(kind, value, where)
    if origin is Annotated:
        return _annotated(arguments[0], arguments[1:], value, where)
    if origin in (Union, types.UnionType):
        return _choice(arguments, value, where)
    if origin is Literal:
        if value not in arguments:
            raise _wrong(where, f"one of {', '.join(map(str, arguments))}", value)
        return value
    if origin in (dict, Mapping):
        members = _mapping(value, where)
        return {name: _build(arguments[1], member, _inside(where, name)) for name, member in members.items()}
    if origin in (list, tuple, Sequence):
        return _sequence(origin, arguments, value, where)
    return _plain(kind, value, where)


def _record(kind: Any, value: object, where: str) -> Any:
    members, schema = _mapping(value, where), _schema(kind)
    for name, (_, required) in schema.items():
        if required and name not in members:
            raise TadropedgeError(f"{where} lacks {name!r}, found {', '.join(members) or 'nothing'}")
    for name in members:
        if name not in schema:
            raise TadropedgeError(f"{where} has an unknown member {name!r}; choose from {', '.join(sorted(schema))}")
    made = {name: _build(schema[name][0], member, _inside(where, name)) for name, member in members.items()}
    try:
        return kind(**made)
    except TadropedgeError as error:
        raise TadropedgeError(f"{where.removesuffix(':')}: {error}") from error


def _inside(where: str, name: str) -> str:
    return f"{where} {name}" if where.endswith(":") else f"{where}.{name}"


@cache
def _schema(kind: Any) -> dict[str, tuple[Any, bool]]:
    """The annotation of each field, and whether it must be there."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {one.name: (hints[one.name], _required(one)) for one in fields(kind) if one.init}


def _required(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def _annotated(inner: Any, marks: Sequence[Any], value: object, where: str) -> Any:
    if value is None and NONE_IS_NAN in marks:
        return math.nan
    made = _build(inner, value, where)
    for mark in marks:
        if isinstance(mark, Within):
            mark.check(made, where)
    return made


def _choice(kinds: Sequence[Any], value: object, where: str) -> Any:
    if value is None and types.NoneType in kinds:
        return None
    known = [kind for kind in kinds if kind is not types.NoneType]
    for kind in known[:-1]:
        try:
            return _build(kind, value, where)
        except TadropedgeError:
            continue
    return _build(known[-1], value, where)


def _sequence(origin: Any, arguments: Sequence[Any], value: object, where: str) -> Any:
    if not isinstance(value, list):
        raise _wrong(where, "a list", value)
    if origin is tuple and arguments[-1] is not ...:
        if len(value) != len(arguments):
            raise _wrong(where, f"a list of {len(arguments)}", value)
        kinds = list(arguments)
    else:
        kinds = [arguments[0]] * len(value)
    made = [_build(kind, part, f"{where}[{at}]") for at, (kind, part) in enumerate(zip(kinds, value, strict=True))]
    return made if origin is list else tuple(made)


def _plain(kind: Any, value: object, where: str) -> Any:
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST:
        return float(value)
    if type(value) is not kind or value == "" or kind is float:
        raise _wrong(where, WORDS[kind], value)
    return value


def _mapping(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise _wrong(where, "an object", value)
    return value


def _wrong(where: str, wanted: str, value: object) -> TadropedgeError:
    return TadropedgeError(f"{where} must be {wanted}, got {show(value, typed=False)}")


def plain(value: object) -> Any:
    """Dataclasses, arrays and NumPy numbers as what ``json`` writes; a number that is not finite becomes ``None``.

    >>> plain({"bounds": [Within(0, 1)], "mean": float("nan")})
    {'bounds': [{'low': 0, 'high': 1}], 'mean': None}
    """
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise TadropedgeError(f"results hold texts, numbers, lists and mappings, got {show(value)}")


def write_json(document: object, path: Path) -> Path:
    """Write a document in one step: if it is interrupted, the old file stays."""
    text = json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False)
    lines = NUMBERS.sub(lambda match: " ".join(match[0].split()), text)
    return write_atomic(path, f"{lines}\n".encode())


def read_json(path: str | Path) -> object:
    """Read a JSON file; if it is not JSON, the error names the line. A name that is given twice is refused."""
    path = existing(path)
    return parse_json(read_bytes(path), path.name)


def parse_json(content: bytes | str, name: str) -> object:
    """JSON as the standard has it: no NaN, no member twice, no text that cannot be written again.

    >>> parse_json(b'{"a": 1, "a": 2}', "results.json")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: results.json: cannot be read as JSON (the member 'a' is there twice)
    """
    try:
        document: object = json.loads(content, object_pairs_hook=_members, parse_constant=_no_number)
        if (b"\\u" if isinstance(content, bytes) else "\\u") in content:  # type: ignore[operator]
            json.dumps(document, ensure_ascii=False).encode()  # which refuses lone surrogates
    except json.JSONDecodeError as error:
        raise TadropedgeError(f"{name}:{error.lineno}: not JSON: {error.msg}") from error
    except MemoryError as error:
        raise NotEnoughMemoryError(f"{name}: there is not enough memory to read it") from error
    except (ValueError, RecursionError) as error:
        raise TadropedgeError(f"{name}: cannot be read as JSON ({error})") from error
    return document


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise TadropedgeError(f"the member {show(twice, typed=False)} is there twice")
    return members


def _no_number(word: str) -> object:
    raise TadropedgeError(f"{word} is no number")
