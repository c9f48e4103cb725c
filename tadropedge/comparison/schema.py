"""The checks of a results document: each takes a value and the place it stands at, and names what is wrong there."""

from __future__ import annotations

import math
from dataclasses import fields

from tadropedge.comparison.checks import each, mapping, maybe, members_of, number, number_or_nan, share, text, whole
from tadropedge.comparison.rows import Convergence, KeepProbPoint, PaperProtocol, Results, Row
from tadropedge.comparison.statistics import Honest
from tadropedge.errors import TadropedgeError

INTERVAL = ("mean", "low", "high")
GAP = ("difference", "difference_low", "difference_high", "p_value")
NOT_NUMBERS = {"seeds", "failed", "verdict"}


def parse(document: object, name: str = "results") -> Results:
    """Check a document read from JSON; ``name`` starts every message.

    >>> parse({"compare": [{"dataset": "cora", "backbone": "gcn", "layers": "two", "method": "cdf"}]})
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: results: compare[0].layers must be a whole number of at least 0, got 'two'
    """
    top = members_of(document, f"{name}: the document", {"compare"}, {"run"})
    rows = each(_row, top["compare"], f"{name}: compare")
    seen: dict[tuple[object, ...], int] = {}
    for place, row in enumerate(rows):
        key = (row.dataset, row.backbone, row.layers, row.method, row.laplacian)
        if key in seen:
            words = " ".join(str(part) for part in key if part is not None)
            raise TadropedgeError(f"{name}: compare[{place}] repeats compare[{seen[key]}]: {words}")
        seen[key] = place
    return Results(rows, mapping(top.get("run", {}), f"{name}: run"))


def _row(value: object, where: str) -> Row:
    members = members_of(
        value,
        where,
        {"dataset", "backbone", "layers", "method"},
        {"laplacian", "paper_protocol", "honest", "settings", "convergence", "by_keep_prob"},
    )
    return Row(
        text(members["dataset"], f"{where}.dataset"),
        text(members["backbone"], f"{where}.backbone"),
        whole(members["layers"], f"{where}.layers"),
        text(members["method"], f"{where}.method"),
        maybe(text, members.get("laplacian"), f"{where}.laplacian"),
        maybe(_paper, members.get("paper_protocol"), f"{where}.paper_protocol"),
        maybe(_honest, members.get("honest"), f"{where}.honest"),
        maybe(mapping, members.get("settings"), f"{where}.settings") or {},
        maybe(_convergence, members.get("convergence"), f"{where}.convergence"),
        maybe(_points, members.get("by_keep_prob"), f"{where}.by_keep_prob") or (),
    )


def _paper(value: object, where: str) -> PaperProtocol:
    members = members_of(value, where, {"best_test", "trials"})
    best = share(members["best_test"], f"{where}.best_test")
    return PaperProtocol(best, whole(members["trials"], f"{where}.trials"))


def _honest(value: object, where: str) -> Honest:
    names = [member.name for member in fields(Honest)]
    members = members_of(value, where, set(names) - {"failed"}, {"failed"})
    numbers = {name: maybe(number, members[name], f"{where}.{name}") for name in names if name not in NOT_NUMBERS}
    maybe(share, numbers["mean"], f"{where}.mean")
    maybe(share, numbers["p_value"], f"{where}.p_value")
    for together in (INTERVAL, GAP):
        lacking = [name for name in together if numbers[name] is None]
        if lacking and len(lacking) < len(together):
            raise TadropedgeError(
                f"{where} must give {', '.join(together)} or none of them, but lacks {', '.join(lacking)}"
            )
    return Honest(
        **numbers,
        seeds=whole(members["seeds"], f"{where}.seeds"),
        failed=whole(members.get("failed", 0), f"{where}.failed"),
        verdict=maybe(text, members["verdict"], f"{where}.verdict"),
    )


def _convergence(value: object, where: str) -> Convergence:
    members = members_of(value, where, {"epochs", "train_loss", "val_loss"})
    epochs = each(whole, members["epochs"], f"{where}.epochs")
    losses = []
    for name in ("train_loss", "val_loss"):
        losses.append(each(number_or_nan, members[name], f"{where}.{name}"))
        if len(losses[-1]) != len(epochs):
            raise TadropedgeError(f"{where}.{name} has {len(losses[-1])} entries, but there are {len(epochs)} epochs")
    return Convergence(epochs, *losses)


def _points(value: object, where: str) -> tuple[KeepProbPoint, ...]:
    return each(_point, value, where)


def _point(value: object, where: str) -> KeepProbPoint:
    members = members_of(value, where, {"keep_prob", "accuracy"})
    keep_prob = share(members["keep_prob"], f"{where}.keep_prob")
    accuracy = maybe(share, members["accuracy"], f"{where}.accuracy")
    return KeepProbPoint(keep_prob, math.nan if accuracy is None else accuracy)
