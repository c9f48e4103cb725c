"""What a comparison found: one row per method, and apart from them the run that made them; how rows are named.

``results.json`` is ``{"advice": {...}, "protocol": {...}, "data": {...}, "compare": [row, ...], "run": {...}}``; files
of older versions have no data, and those of version 0.1 neither advice nor protocol. The same rows give the same bytes.
Reading checks every field and names the wrong one by its place (``results.json: compare[3].honest.mean must be a
number, got 'high'``); writing checks in the same way, so no file is written that cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, astuple, dataclass, field, fields
from pathlib import Path
from typing import Annotated

from tadropedge._old.atomic import write_atomic
from tadropedge._old.comparison.card import DataCard
from tadropedge._old.comparison.evidence import Evidence
from tadropedge._old.comparison.judging import Against
from tadropedge._old.comparison.procedure import Simulated
from tadropedge._old.comparison.statistics import Honest
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.publish.tables import csv_bytes
from tadropedge._old.publish.wording import counted
from tadropedge._old.typed import NONE_IS_NAN, Count, MaybeNan, Share, build, plain, read_json, write_json

NAMED_BY = ("dataset", "backbone", "layers", "method", "laplacian")


@dataclass(frozen=True)
class PaperProtocol:
    """The best test accuracy of ``trials`` trials."""

    best_test: Share
    trials: Count


@dataclass(frozen=True)
class Convergence:
    """Losses of one training run, one number for each of ``epochs``; NaN where there is none."""

    epochs: Sequence[Count]
    train_loss: Sequence[MaybeNan]
    val_loss: Sequence[MaybeNan]

    def __post_init__(self) -> None:
        for name in ("train_loss", "val_loss"):
            if (found := len(getattr(self, name))) != len(self.epochs):
                raise TadropedgeError(f"{name} has {found} entries, but there are {len(self.epochs)} epochs")


@dataclass(frozen=True)
class KeepProbPoint:
    """The accuracy of one trial, and the probability p of keeping an edge it was trained with."""

    keep_prob: Share
    accuracy: Annotated[Share, NONE_IS_NAN]


@dataclass(frozen=True, kw_only=True)
class MethodRow:
    """One method on one dataset with one backbone, under both protocols; ``settings`` were chosen on validation.

    ``against`` holds its tests: not dropping (``none``), DropEdge tuned (``dropedge``) and DropEdge at the same budget
    (``budget``). ``trial`` is the number of the chosen trial, and ``unconverged`` counts the runs whose validation loss
    was still falling at the end. Rows of version 0.1 have one test instead, in ``honest``, and no ``evidence``.
    A method that cannot keep so few edges as a fixed budget asks for is out of reach: its row has only the
    ``least_share`` that it could keep.
    """

    dataset: str
    backbone: str
    layers: Count
    method: str
    laplacian: str | None = None
    paper_protocol: PaperProtocol | None = None
    honest: Honest | None = None
    against: Mapping[str, Against] = field(default_factory=dict)
    evidence: Evidence | None = None
    measure: str | None = None  # None: accuracy
    trial: Count | None = None
    unconverged: Count | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    convergence: Convergence | None = None
    by_keep_prob: Sequence[KeepProbPoint] = ()
    least_share: Share | None = None

    @property
    def tests(self) -> dict[str, Against]:
        """What the method was judged against; that of version 0.1 as a test of its own kind."""
        if self.against or self.honest is None or self.honest.difference is None:
            return dict(self.against)
        return {"matched": Against(**vars(self.honest), reference="dropedge", evidence=self.evidence)}


# Members of a row that older versions did not write: left out where they say nothing.
YOUNGER = ("against", "evidence", "measure", "trial", "unconverged", "least_share")
YOUNGER_ADVICE = ("reached", "regime")


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How methods were tuned and judged, and how often this procedure errs.

    ``shared`` says what choosing and judging have in common, ``disjoint`` whether that is nothing, and ``judge_splits``
    how many different splits the replicates have. ``simulated``: the whole procedure without any effect.
    ``keep_ratio``: the share of the edges that every method which drops keeps, where it was fixed.
    """

    trials: Count
    choose_splits: Count
    seeds: Count
    judge_splits: Count
    epochs: Count
    shared: str
    disjoint: bool
    simulated: Simulated | None = None
    keep_ratio: Share | None = None


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What to ``use`` with which ``settings``; the ``words`` say it, what it gains, and what adaptive dropping adds.

    ``warnings``: why to be careful with it, a sentence each. ``reached``: the budget that was trained with instead,
    where the options of the method cannot meet that of the settings. ``regime``: a sentence on the nearest case of the
    map of regimes, where there is one.
    """

    words: str
    use: str
    settings: Mapping[str, object] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    reached: Mapping[str, object] = field(default_factory=dict)
    regime: str = ""


@dataclass(frozen=True)
class Results:
    """All rows of a comparison, and what depends on the run alone: seconds, costs, commit, machine, versions, command.

    ``advice`` and ``protocol`` are ``None`` in results of version 0.1, ``data`` also in those of 0.2.
    """

    rows: Sequence[MethodRow]
    run: Mapping[str, object] = field(default_factory=dict)
    _: KW_ONLY
    advice: Advice | None = None
    protocol: Protocol | None = None
    data: DataCard | None = None


def grouped(rows: Iterable[MethodRow]) -> list[list[MethodRow]]:
    """Rows that may be compared with each other: of one dataset, backbone and depth, in the order of the document."""
    groups: dict[tuple[str, str, int], list[MethodRow]] = {}
    for row in rows:
        groups.setdefault((row.dataset, row.backbone, row.layers), []).append(row)
    return list(groups.values())


def labelled(rows: Sequence[MethodRow]) -> dict[str, MethodRow]:
    """The rows of a group by name: the method, and its Laplacian where a method stands there twice.

    >>> names = {"dataset": "cora", "backbone": "gcn", "layers": 2, "method": "cdf"}
    >>> rows = [MethodRow(**names, laplacian=laplacian) for laplacian in ("L", "N")]
    >>> list(labelled(rows[:1])), list(labelled(rows))
    (['cdf'], ['cdf (L)', 'cdf (N)'])
    """
    methods = [row.method for row in rows]
    twice = {method for method in methods if methods.count(method) > 1}
    return {
        f"{row.method} ({row.laplacian})" if row.laplacian and row.method in twice else row.method: row for row in rows
    }


def judged(rows: Sequence[MethodRow]) -> dict[str, Honest]:
    """The honest part of each row that has one, by its label."""
    return {label: row.honest for label, row in labelled(rows).items() if row.honest}


def evidence_of(rows: Sequence[MethodRow]) -> dict[str, Evidence]:
    """The evidence of each row that has some, by its label."""
    return {label: row.evidence for label, row in labelled(rows).items() if row.evidence}


def title(rows: Sequence[MethodRow]) -> str:
    """Dataset, backbone and depth of a group.

    >>> title([MethodRow(dataset="cora", backbone="gcn", layers=2, method="cdf")])
    'cora, gcn with 2 layers'
    """
    return f"{rows[0].dataset}, {rows[0].backbone} with {counted(rows[0].layers, 'layer')}" if rows else ""


MEASURED = {None: "accuracy", "roc-auc": "ROC AUC", "macro-f1": "macro F1"}


def measured(rows: Sequence[MethodRow]) -> str:
    """What was measured, in words.

    >>> measured([]), measured([MethodRow(dataset="a", backbone="gcn", layers=2, method="cdf", measure="roc-auc")])
    ('accuracy', 'ROC AUC')
    """
    name = rows[0].measure if rows else None
    return MEASURED.get(name, str(name))


def paper_label(rows: Sequence[MethodRow]) -> str:
    """The name of the first protocol, with its number of trials.

    >>> paper_label([])
    'paper protocol (best test accuracy of the trials)'
    """
    trials = {row.paper_protocol.trials for row in rows if row.paper_protocol}
    return f"paper protocol (best test {measured(rows)} of {counted(trials, 'trial') if trials else 'the trials'})"


def honest_label(rows: Iterable[MethodRow]) -> str:
    """The name of the second protocol, with its number of replicates, failed ones included."""
    seeds = {row.honest.seeds + row.honest.failed for row in rows if row.honest}
    many = counted(seeds, "fresh seed") if seeds else "fresh seeds"
    return f"honest protocol (settings chosen on validation, retrained on {many} and splits)"


@dataclass(frozen=True)
class _Document:
    compare: tuple[MethodRow, ...]
    run: Mapping[str, object] = field(default_factory=dict)
    _: KW_ONLY
    advice: Advice | None = None
    protocol: Protocol | None = None
    data: DataCard | None = None

    def __post_init__(self) -> None:
        seen: dict[tuple[object, ...], int] = {}
        for place, row in enumerate(self.compare):
            key = tuple(getattr(row, name) for name in NAMED_BY)
            if (first := seen.setdefault(key, place)) != place:
                words = " ".join(str(part) for part in key if part is not None)
                raise TadropedgeError(f"compare[{place}] repeats compare[{first}]: {words}")


def as_document(results: Results) -> dict[str, object]:
    """``results`` as plain JSON values, the advice first; a number that is not finite becomes ``None``.

    >>> row = MethodRow(dataset="cora", backbone="gcn", layers=2, method="cdf")
    >>> as_document(Results([row]))["compare"][0]["layers"]
    2
    """
    rows = [
        {name: part for name, part in row.items() if name not in YOUNGER or part not in (None, {})}
        for row in plain(results.rows)
    ]
    front = {"advice": plain(results.advice), "protocol": plain(results.protocol), "data": plain(results.data)}
    if front["advice"]:  # members that older versions did not write
        front["advice"] = {name: part for name, part in front["advice"].items() if part or name not in YOUNGER_ADVICE}
    if front["protocol"] and front["protocol"]["keep_ratio"] is None:
        del front["protocol"]["keep_ratio"]
    return {name: part for name, part in front.items() if part} | {"compare": rows, "run": plain(results.run)}


def parse(document: object, name: str = "results") -> Results:
    """Check a document read from JSON; ``name`` starts every message.

    >>> parse({"compare": [{"dataset": "cora", "backbone": "gcn", "layers": "two", "method": "cdf"}]})
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: results: compare[0].layers must be a whole number, got 'two'
    """
    found = build(_Document, document, f"{name}:")
    return Results(found.compare, found.run, advice=found.advice, protocol=found.protocol, data=found.data)


def read_results(path: str | Path) -> Results:
    """Read and check ``results.json``."""
    return parse(read_json(path), Path(path).name)


def write_results(results: Results, path: str | Path) -> Path:
    """Write ``results.json`` in one step: if it is interrupted, the old file stays."""
    document = as_document(results)
    parse(document, Path(path).name)
    return write_json(document, Path(path))


def write_csv(results: Results, path: str | Path) -> Path:
    """Write the rows as a flat table, without their curves and settings; what is not known stays empty.

    Where no row has evidence, or tests, there are no columns for them.
    """
    rows = parse(as_document(results), Path(path).name).rows
    lines = [dict(_cells(row)) for row in rows]
    columns = list(dict.fromkeys(name for line in lines for name in line)) or [*NAMED_BY, *PAPER, *HONEST]
    return write_atomic(Path(path), csv_bytes(columns, ([line.get(name) for name in columns] for line in lines)))


PAPER = ("paper_best_test", "paper_trials")
HONEST = tuple(f"honest_{member.name}" for member in fields(Honest))
NESTED = ("evidence", "settings")  # of a test: its evidence has columns of its own


def _cells(row: MethodRow) -> Iterator[tuple[str, object]]:
    """The columns of a row with what stands in them."""
    yield from ((name, getattr(row, name)) for name in NAMED_BY)
    yield from zip(PAPER, astuple(row.paper_protocol) if row.paper_protocol else (None, None), strict=True)
    yield from ((f"honest_{one.name}", getattr(row.honest, one.name, None)) for one in fields(Honest))
    yield from _evidence("evidence", row.evidence)
    for kind, test in row.against.items():
        yield from (
            (f"{kind}_{one.name}", getattr(test, one.name)) for one in fields(Against) if one.name not in NESTED
        )
        yield from _evidence(f"{kind}_evidence", test.evidence)
    if row.least_share is not None:
        yield "least_share", row.least_share


def _evidence(front: str, evidence: Evidence | None) -> Iterator[tuple[str, object]]:
    if evidence is not None:
        names = [member.name for member in fields(Evidence) if member.name != "differences"]
        yield from ((f"{front}_{name}", _cell(getattr(evidence, name))) for name in names)


def _cell(value: object) -> object:
    return "; ".join(value) if isinstance(value, tuple) else value
