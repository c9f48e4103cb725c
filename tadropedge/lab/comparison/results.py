"""What a comparison found: rows of candidates, as ``results.json`` holds them and as they are read back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from tadropedge.errors import TadropedgeError, reason, show
from tadropedge.lab.comparison.statistics import LEVEL, MARGIN, Verdict, interval
from tadropedge.lab.reports.tables import csv_lines

ORIGINAL = "original"
Plain = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One replicate of a candidate: the settings that validation chose on its split, and what they scored there.

    ``test`` is NaN where every training of the search failed; ``kept_share`` is ``None`` where nobody knows it.
    """

    number: int
    chosen: Plain
    validation: float
    test: float
    kept_share: float | None = 1.0


@dataclass(frozen=True, kw_only=True)
class Row:
    """One candidate: its replicates, their mean with its 95 % interval, its costs, and the verdicts on it.

    ``seconds_per_epoch`` has ``train`` and ``evaluate``; ``against`` has a :class:`Verdict` for each reference.

    >>> two = [Judged(number=n, chosen={}, validation=0.8, test=test) for n, test in enumerate([0.7, 0.8])]
    >>> round(Row.of("dropedge", two).mean, 3)
    0.75
    """

    candidate: str
    mean: float
    low: float
    high: float
    replicates: tuple[Judged, ...]
    seconds_per_epoch: Plain | None = None
    peak_bytes: int | None = None
    against: Mapping[str, Verdict] = field(default_factory=dict)

    @classmethod
    def of(cls, candidate: str, replicates: Sequence[Judged], **costs: Any) -> Row:
        """The row of a candidate, whose replicates that failed are no part of the mean."""
        tests = [one.test for one in replicates if not math.isnan(one.test)]
        mean, low, high = (float(value) for value in interval(tests, LEVEL))
        return cls(candidate=candidate, mean=mean, low=low, high=high, replicates=tuple(replicates), **costs)

    @property
    def tests(self) -> list[float]:
        """The test score of every replicate."""
        return [one.test for one in self.replicates]


@dataclass(frozen=True, kw_only=True)
class Yardstick:
    """A candidate outside the family, and the paired ``difference`` of not dropping over it: value, low and high."""

    candidate: str
    mean: float
    low: float
    high: float
    difference: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Cheaper:
    """A candidate that is no worse than not dropping and takes less: not dropping takes ``time_factor`` as long."""

    candidate: str
    time_factor: float | None
    memory_factor: float | None


@dataclass(frozen=True, kw_only=True)
class Results:
    """Everything that a comparison found. Scores and differences are fractions of 1.

    ``answer`` has ``do``, ``code`` and ``sure``; ``run`` says what was run: ``margin``, ``measure``, ``data``, …
    """

    rows: tuple[Row, ...]
    yardstick: Yardstick | None = None
    cheaper: tuple[Cheaper, ...] = ()
    answer: Mapping[str, str] = field(default_factory=dict)
    run: Plain = field(default_factory=dict)

    def row(self, candidate: str) -> Row:
        """The row of a candidate."""
        for row in self.rows:
            if row.candidate == candidate:
                return row
        there = ", ".join(row.candidate for row in self.rows)
        raise TadropedgeError(f"{candidate!r} has no row; there are {there}", argument="candidate")

    def __contains__(self, candidate: object) -> bool:
        return any(row.candidate == candidate for row in self.rows)

    @property
    def margin(self) -> float:
        """What counts as no difference."""
        return float(self.run.get("margin", MARGIN))

    @property
    def replicates(self) -> int:
        """How many replicates there are of not dropping, and of every candidate; controls may have fewer."""
        return len(self.row(ORIGINAL).replicates)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as ``results.json`` has them: what is not known, NaN and intervals without ends are ``None``.

        >>> sorted(Results(rows=()).as_dict())
        ['answer', 'cheaper', 'rows', 'run', 'yardstick']
        """
        members = ("rows", "yardstick", "cheaper", "answer", "run")
        whole: dict[str, Any] = _plain({name: asdict(self)[name] for name in members})
        return whole

    def as_json(self) -> str:
        """The text of ``results.json``."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def as_csv(self) -> bytes:
        """One line per replicate, with all digits."""
        lines = (
            (row.candidate, one.number, one.validation, one.test, one.kept_share, json.dumps(dict(one.chosen)))
            for row in self.rows
            for one in row.replicates
        )
        head = ("candidate", "number", "validation", "test", "kept_share", "chosen")
        return csv_lines([head, *map(_known, lines)])

    @classmethod
    def from_dict(cls, read: Any) -> Results:
        """What :meth:`as_dict` has made."""
        return msgspec.convert(_numbers(read), cls)

    @classmethod
    def from_file(cls, path: str | Path) -> Results:
        """Read a ``results.json``."""
        path = Path(path)
        try:
            found = cls.from_dict(json.loads(path.read_text(encoding="utf-8")))
            if ORIGINAL not in found:
                raise ValueError(f"no row {ORIGINAL!r}")
            return found
        except OSError as error:
            raise TadropedgeError(f"cannot read '{path}': {reason(error)}") from error
        except (ValueError, msgspec.MsgspecError, RecursionError) as error:
            said = show(str(error), typed=False)
            raise TadropedgeError(f"'{path}' is no results.json of tadropedge: {said}") from error


UNKNOWN = {"low": -math.inf, "high": math.inf} | dict.fromkeys(
    ("mean", "difference", "value", "validation", "test"), math.nan
)
AS_THEY_ARE = ("run", "chosen")


def _numbers(read: Any, name: str = "") -> Any:
    """What JSON cannot say, put back: a number that is not known, and the ends of an interval that has none."""
    if isinstance(read, dict) and name not in AS_THEY_ARE:
        return {key: _numbers(value, key) for key, value in read.items()}
    if isinstance(read, list):
        return [_numbers(value) for value in read]
    return UNKNOWN.get(name) if read is None else read


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _known(line: Sequence[Any]) -> list[Any]:
    return [None if isinstance(cell, float) and math.isnan(cell) else cell for cell in line]
