"""What a comparison found: rows of candidates, as ``results.json`` holds them and as they are read back."""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from tadropedge._support.checks import check_path
from tadropedge.errors import TadropedgeError, reason, show
from tadropedge.lab.reports.text import csv_lines
from tadropedge.lab.statistics import LEVEL, MARGIN, Replicate, Verdict, interval

ORIGINAL = "original"
Plain = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One candidate: its replicates, their mean with its 95 % interval, its costs, and the verdicts on it.

    ``seconds_per_epoch`` has ``train`` and ``evaluate``; ``against`` has a :class:`Verdict` for each reference. Of one
    that finishes on the whole graph, ``while_dropping`` has ``train`` and ``peak_bytes`` of the epochs before.

    >>> two = [Replicate(number=n, chosen={}, validation=0.8, test=test) for n, test in enumerate([0.7, 0.8])]
    >>> round(Row.of("dropedge", two).mean, 3)
    0.75
    """

    candidate: str
    mean: float
    low: float
    high: float
    replicates: tuple[Replicate, ...]
    seconds_per_epoch: Plain | None = None
    peak_bytes: int | None = None
    while_dropping: Plain | None = None
    against: Mapping[str, Verdict] = field(default_factory=dict)

    @classmethod
    def of(cls, candidate: str, replicates: Sequence[Replicate]) -> Row:
        """The row of a candidate, whose replicates that failed are no part of the mean."""
        tests = [one.test for one in replicates if not math.isnan(one.test)]
        mean, low, high = (float(value) for value in interval(tests, LEVEL))
        return cls(candidate=candidate, mean=mean, low=low, high=high, replicates=tuple(replicates))

    @property
    def tests(self) -> list[float]:
        """The test score of every replicate."""
        return [one.test for one in self.replicates]

    @property
    def kept_share(self) -> float | None:
        """The share of edges that the candidate keeps, on average over its replicates."""
        known = [one.kept_share for one in self.replicates if one.kept_share is not None]
        return sum(known) / len(known) if known else None


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


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison:
    """Everything that a comparison found; it prints as the command line does, and a notebook shows its page.

    ``rows`` has a row for each candidate, ``original`` first, controls last; scores and differences are fractions of 1.
    ``answer`` has ``do``, ``code`` and ``sure``; ``run`` says what was run: ``margin``, ``measure``, ``data``, …
    """

    rows: tuple[Row, ...]
    yardstick: Yardstick | None = None
    cheaper: tuple[Cheaper, ...] = ()
    answer: Mapping[str, str] = field(default_factory=dict)
    run: Plain = field(default_factory=dict)

    def row(self, candidate: str) -> Row:
        """The row of a candidate, by its printed form."""
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

    # -- as people read it --------------------------------------------------------------------------------

    @property
    def page(self) -> str:
        """The page as one file of HTML that makes no request."""
        from tadropedge.lab.comparison.page import page

        return page(self)

    def labelled(self, **run: Any) -> Comparison:
        """The same with more in its label: a ``command``, or the ``source`` that ``tadropedge train`` reads."""
        from tadropedge.lab.comparison.advice import answer

        found = replace(self, run={**self.run, **run})
        return replace(found, answer=answer(found))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``report.html``, ``results.csv`` and ``results.json`` into a folder."""
        from tadropedge.lab.comparison.page import save

        save(self, check_path("folder", folder))

    def __str__(self) -> str:
        from tadropedge.lab.comparison.page import text

        return text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that its style is not the notebook's."""
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" sandbox="allow-scripts" width="100%" height="700" '
            'style="border:0" title="comparison"></iframe>'
        )

    # -- as files -----------------------------------------------------------------------------------------

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as ``results.json`` has them: what is not known, NaN and intervals without ends are ``None``.

        >>> sorted(Comparison(rows=()).as_dict())
        ['answer', 'cheaper', 'rows', 'run', 'yardstick']
        """
        whole: dict[str, Any] = _plain(asdict(self))
        for row in whole["rows"]:
            if row["while_dropping"] is None:
                del row["while_dropping"]
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
        return csv_lines([("candidate", "number", "validation", "test", "kept_share", "chosen"), *map(_plain, lines)])

    @classmethod
    def from_dict(cls, read: Any) -> Comparison:
        """What :meth:`as_dict` has made."""
        return msgspec.convert(_numbers(read), cls)

    @classmethod
    def from_file(cls, path: str | Path) -> Comparison:
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
