"""A claim is a table of cases with a tick for each; what the ticks add up to is its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import product
from typing import Any

import pandas as pd

REPRODUCED, PARTLY, NOT, IMPOSSIBLE = "reproduced", "partly", "not reproduced", "cannot be as stated"
STATUSES = (REPRODUCED, PARTLY, NOT, IMPOSSIBLE)
KINDS = {  # of the paper's claims, by what they speak of
    "data": "facts of data",
    "pictures": "pictures",
    "theory": "theory",
    "curves": "curves",
    "accuracy": "accuracy and ranking",
}
FEW = 3  # cases whose numbers are listed one by one


@dataclass(frozen=True, eq=False)
class Claim:
    """What the paper says, or what we ask, and in which of the cases it ``holds``.

    * ``cases``: one row each; ``holds``: a tick for each of them;
    * ``by``: the columns that name a case; ``shows``: columns with what was measured, and how they are formatted;
    * ``of`` and ``printed``: what the claim is about where it is made several times, and the number in the paper;
    * ``almost``: the share of the cases that must hold, where the paper says "almost all" or "most";
    * ``chance``: the share that holds where nothing differs, so that no more of them make no part: one half where a
      tick is the mere sign of a difference, nothing where a tick asks that it is clear;
    * ``impossible``: where it does not hold, it contradicts the data or itself, whatever is trained.

    Its words stand in a file, under the name of the item and its own.

    >>> cases = pd.DataFrame({"p": [0.3, 0.7], "gain": [0.1, -0.2]})
    >>> claim = Claim("better", cases, cases["gain"] > 0, by=["p"], shows={"gain": "+.1f"})
    >>> claim.status, claim.held, claim.count, claim.shown
    ('partly', 1, 2, 'gain +0.1, -0.2')
    """

    name: str
    cases: pd.DataFrame
    holds: Any
    _: KW_ONLY
    by: Sequence[str] = ()
    shows: Mapping[str, str] = field(default_factory=dict)
    of: str = ""
    printed: str = ""
    almost: float = 1.0
    chance: float = 0.0
    impossible: bool = False

    @property
    def ticks(self) -> pd.Series:
        """Whether it holds, case by case."""
        return pd.Series(list(self.holds), index=self.cases.index, dtype=bool)

    @property
    def held(self) -> int:
        """In how many cases it holds."""
        return int(self.ticks.sum())

    @property
    def count(self) -> int:
        """The number of cases."""
        return len(self.cases)

    @property
    def status(self) -> str:
        """One of ``STATUSES``."""
        if self.count and self.held >= self.almost * self.count:
            return REPRODUCED
        if self.impossible:
            return IMPOSSIBLE
        return PARTLY if self.held > self.chance * self.count else NOT

    @property
    def shown(self) -> str:
        """What was measured: each case where there are few, else the smallest and the largest."""
        parts = []
        for column, form in self.shows.items():
            values = self.cases[column].dropna()
            chosen = values if len(values) <= FEW else [values.min(), values.max()]
            between = ", " if len(values) <= FEW else " to "
            parts.append(f"{column} {between.join(format(value, form) for value in chosen)}")
        return "; ".join(parts)

    def table(self) -> tuple[list[str], list[tuple[str, list[tuple[int, int]]]]]:
        """The ticks by the first column that names a case, across by the others: how many hold, of how many."""
        if not self.by:
            return [], []
        down, across = self.by[0], list(self.by[1:])
        levels = [_levels(self.cases[column]) for column in across]
        columns = list(product(*levels))
        rows = []
        for value in _levels(self.cases[down]):
            cells = []
            for column in columns:
                chosen = self.cases[down] == value
                for name, wanted in zip(across, column, strict=True):
                    chosen &= self.cases[name] == wanted
                cells.append((int(self.ticks[chosen].sum()), int(chosen.sum())))
            rows.append((_word(value), cells))
        return [" ".join(map(_word, column)) or "holds" for column in columns], rows


def verdict(item: str, claim: Claim, words: Mapping[str, Any]) -> dict[str, Any]:
    """A claim with its words, judged: a row of ``verdicts.csv``."""
    told = {"of": claim.of, "printed": claim.printed}
    return {
        "item": item,
        "name": f"{claim.name} {claim.of}".strip(),
        "kind": words["kind"],
        "own": bool(words.get("own", False)),
        "status": claim.status,
        "held": claim.held,
        "cases": claim.count,
        "claim": words["claim"].format(**told),
        "where": words.get("where", ""),
        "printed": claim.printed,
        "measured": claim.shown,
        "why": words.get("why", "").format(**told),
    }


def tally(verdicts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How many of the paper's claims have each status, by kind and over all."""
    rows = []
    for kind, title in {**KINDS, "": "all"}.items():
        mine = [one["status"] for one in verdicts if not one["own"] and kind in ("", one["kind"])]
        rows.append({"kind": title, "claims": len(mine), **{status: mine.count(status) for status in STATUSES}})
    return rows


def _levels(values: pd.Series) -> list[Any]:
    return list(dict.fromkeys(values))


def _word(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
