"""The checks of a results document: each takes a value and the place it stands at, and names what is wrong there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import TypeVar

from tadropedge.compare.rows import Convergence, KeepProbPoint, PaperProtocol, Results, Row
from tadropedge.compare.statistics import Honest
from tadropedge.errors import TadropedgeError

T = TypeVar("T")

INTERVAL = ("mean", "low", "high")
GAP = ("difference", "difference_low", "difference_high", "p_value")
NOT_NUMBERS = {"seeds", "failed", "verdict"}


def parse(document: object, name: str = "results") -> Results:
    """Check a document read from JSON; ``name`` starts every message.

    >>> parse({"compare": [{"dataset": "cora", "backbone": "gcn", "layers": "two", "method": "cdf"}]})
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: results: compare[0].layers must be a whole number of at least 0, got 'two'
    """
    top = _members(document, f"{name}: the document", {"compare"}, {"run"})
    rows = _each(_row, top["compare"], f"{name}: compare")
    seen: dict[tuple[object, ...], int] = {}
    for place, row in enumerate(rows):
        key = (row.dataset, row.backbone, row.layers, row.method, row.laplacian)
        if key in seen:
            words = " ".join(str(part) for part in key if part is not None)
            raise TadropedgeError(f"{name}: compare[{place}] repeats compare[{seen[key]}]: {words}")
        seen[key] = place
    return Results(rows, _free(top.get("run", {}), f"{name}: run"))


def _row(value: object, where: str) -> Row:
    members = _members(
        value,
        where,
        {"dataset", "backbone", "layers", "method"},
        {"laplacian", "paper_protocol", "honest", "settings", "convergence", "by_keep_prob"},
    )
    return Row(
        _text(members["dataset"], f"{where}.dataset"),
        _text(members["backbone"], f"{where}.backbone"),
        _whole(members["layers"], f"{where}.layers"),
        _text(members["method"], f"{where}.method"),
        _maybe(_text, members.get("laplacian"), f"{where}.laplacian"),
        _maybe(_paper, members.get("paper_protocol"), f"{where}.paper_protocol"),
        _maybe(_honest, members.get("honest"), f"{where}.honest"),
        _maybe(_free, members.get("settings"), f"{where}.settings") or {},
        _maybe(_convergence, members.get("convergence"), f"{where}.convergence"),
        _maybe(_points, members.get("by_keep_prob"), f"{where}.by_keep_prob") or (),
    )


def _paper(value: object, where: str) -> PaperProtocol:
    members = _members(value, where, {"best_test", "trials"})
    best = _share(members["best_test"], f"{where}.best_test")
    return PaperProtocol(best, _whole(members["trials"], f"{where}.trials"))


def _honest(value: object, where: str) -> Honest:
    names = [member.name for member in fields(Honest)]
    members = _members(value, where, set(names) - {"failed"}, {"failed"})
    numbers = {name: _maybe(_number, members[name], f"{where}.{name}") for name in names if name not in NOT_NUMBERS}
    _maybe(_share, numbers["mean"], f"{where}.mean")
    _maybe(_share, numbers["p_value"], f"{where}.p_value")
    for together in (INTERVAL, GAP):
        lacking = [name for name in together if numbers[name] is None]
        if lacking and len(lacking) < len(together):
            raise TadropedgeError(
                f"{where} must give {', '.join(together)} or none of them, but lacks {', '.join(lacking)}"
            )
    return Honest(
        **numbers,
        seeds=_whole(members["seeds"], f"{where}.seeds"),
        failed=_whole(members.get("failed", 0), f"{where}.failed"),
        verdict=_maybe(_text, members["verdict"], f"{where}.verdict"),
    )


def _convergence(value: object, where: str) -> Convergence:
    members = _members(value, where, {"epochs", "train_loss", "val_loss"})
    epochs = _each(_whole, members["epochs"], f"{where}.epochs")
    losses = []
    for name in ("train_loss", "val_loss"):
        losses.append(_each(_number_or_nan, members[name], f"{where}.{name}"))
        if len(losses[-1]) != len(epochs):
            raise TadropedgeError(f"{where}.{name} has {len(losses[-1])} entries, but there are {len(epochs)} epochs")
    return Convergence(epochs, *losses)


def _points(value: object, where: str) -> tuple[KeepProbPoint, ...]:
    return _each(_point, value, where)


def _point(value: object, where: str) -> KeepProbPoint:
    members = _members(value, where, {"keep_prob", "accuracy"})
    keep_prob = _share(members["keep_prob"], f"{where}.keep_prob")
    accuracy = _maybe(_share, members["accuracy"], f"{where}.accuracy")
    return KeepProbPoint(keep_prob, math.nan if accuracy is None else accuracy)


def _members(value: object, where: str, required: set[str], optional: Iterable[str] = ()) -> dict[str, object]:
    members = _free(value, where)
    for name in sorted(required - members.keys()):
        raise TadropedgeError(f"{where} lacks {name!r}, found {', '.join(members) or 'nothing'}")
    for name in members.keys() - required - set(optional):
        known = ", ".join(sorted(required | set(optional)))
        raise TadropedgeError(f"{where} has an unknown member {name!r}; choose from {known}")
    return members


def _free(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TadropedgeError(f"{where} must be an object, got {_short(value)}")
    return value


def _each(check: Callable[[object, str], T], value: object, where: str) -> tuple[T, ...]:
    if not isinstance(value, list):
        raise TadropedgeError(f"{where} must be a list, got {_short(value)}")
    return tuple(check(part, f"{where}[{place}]") for place, part in enumerate(value))


def _maybe(check: Callable[[object, str], T], value: object, where: str) -> T | None:
    return None if value is None else check(value, where)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise TadropedgeError(f"{where} must be a text that is not empty, got {_short(value)}")
    return value


def _whole(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TadropedgeError(f"{where} must be a whole number of at least 0, got {_short(value)}")
    return value


def _number(value: object, where: str) -> float:
    # Python's json lets NaN and Infinity through, which are no JSON; a whole number may be too large for a float.
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1e300:
        raise TadropedgeError(f"{where} must be a number, got {_short(value)}")
    return float(value)


def _number_or_nan(value: object, where: str) -> float:
    return math.nan if value is None else _number(value, where)


def _share(value: object, where: str) -> float:
    number = _number(value, where)
    if not 0 <= number <= 1:
        raise TadropedgeError(f"{where} must lie in [0, 1], got {number:g}")
    return number


def _short(value: object) -> str:
    """The input in one line, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
