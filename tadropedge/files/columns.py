"""Which columns of a table are the ends of an edge, its weight, and the numbers that were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tadropedge.errors import TadropedgeError, show
from tadropedge.files.contents import ReadOptions, no_column, summary
from tadropedge.files.header import PAIRS, WEIGHTS, is_known

IDLE = ("", "index", "edge", "unnamed:_0")  # with or without _id: numbers of lines, which are no weights
ASK = "say which with columns={'source': …, 'target': …, 'weight': …}"


@dataclass(frozen=True)
class Columns:
    """The places of the columns that are read, of ``count``; ``titles`` are their names, where they have any."""

    source: int
    target: int
    weight: int | None
    column: int | None
    count: int
    titles: tuple[str, ...] | None

    @property
    def places(self) -> list[int]:
        """The columns that are read, ends first."""
        return [place for place in (self.source, self.target, self.weight, self.column) if place is not None]

    def name(self, place: int) -> str:
        """What to call a column: its name in quotes, or its number from 1 on."""
        return str(place + 1) if self.titles is None else repr(self.titles[place])

    def told(self, edges: int) -> str:
        """What was read, for people."""
        where = f"columns {self.name(self.source)} and {self.name(self.target)}"
        header = "no header" if self.titles is None else "header read"
        titles = enumerate(self.titles or ())
        others = [title for place, title in titles if title and place not in self.places]
        weight, column = (None if place is None else self.name(place) for place in (self.weight, self.column))
        return summary(edges, where, weight, column, header, others=others)


def choose(titles: Sequence[str] | None, count: int, options: ReadOptions, file: str) -> Columns:
    """The columns of an edge list of ``count`` columns: as the user says, else by known names, else from the left.

    A further column is the weight where its name says so or, without a header, where it is the third of three. Where
    there are others, and the user named none, nothing is guessed.

    >>> choose(("Id", "Source", "Target", "Weight"), 4, ReadOptions(), "edges.csv").places
    [1, 2, 3]
    >>> choose(("a", "b", "when"), 3, ReadOptions(), "calls.csv")
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: calls.csv: the column 'when' may be a weight or not: columns={'weight': 'when'} \
takes it for one, weighted=False leaves it out
    """
    asked = {role: _place(name, titles, count, file) for role, name in options.columns.items()}
    column = None if options.column is None else _place(options.column, titles, count, file)
    source, target = asked.get("source"), asked.get("target")
    if (source is None) != (target is None):
        raise TadropedgeError(f"{file}: columns names one end of the edges: {ASK}", argument="columns")
    if source is None or target is None:
        source, target = _ends(titles, count, file, bool(asked) or column is not None or not options.weighted)
    weight = asked.get("weight") if options.weighted else None
    if options.weighted and weight is None:
        taken = {source, target, column}
        others = [place for place in range(count) if place not in taken]
        others = others if titles is None else [place for place in others if not is_known(titles[place], IDLE)]
        weight = _weight(titles, others, file, told="source" in asked or column is not None)
    if source == target or weight in (source, target):
        raise TadropedgeError(f"{file}: columns names one column twice: {ASK}", argument="columns")
    return Columns(source, target, weight, column, count, None if titles is None else tuple(titles))


def _place(name: str | int, titles: Sequence[str] | None, count: int, file: str) -> int:
    """The place of a column by its name in the header, or by its number from 1 on."""
    if isinstance(name, str) and titles is not None and titles.count(name) == 1:
        return titles.index(name)
    if isinstance(name, int) or (name.isascii() and name.isdigit() and len(name) < 10):
        if 1 <= int(name) <= count:
            return int(name) - 1
    elif titles is not None and titles.count(name) > 1:
        raise TadropedgeError(f"{file}: several columns are called {show(name, typed=False)}", argument="columns")
    numbers = [f"{'numbers ' * (titles is None)}1 to {count}"]
    raise no_column(file, name, numbers if titles is None else [repr(title) for title in titles])


def _ends(titles: Sequence[str] | None, count: int, file: str, told: bool) -> tuple[int, int]:
    """The columns of the two ends: by a known pair of names, else the first two, unless there are too many to guess."""
    named = list(range(count)) if titles is None else [place for place, title in enumerate(titles) if title]
    names = [""] * count if titles is None else titles
    for pair in PAIRS:
        found = [[place for place in named if is_known(names[place], (word,))] for word in pair]
        if len(found[0]) == len(found[1]) == 1:
            return found[0][0], found[1][0]
    ends = [place for place in named if not is_known(names[place], (*IDLE, *WEIGHTS))]
    if titles is not None and len(ends) == 2:
        return ends[0], ends[1]
    weighs = len(named) > 2 and is_known(names[named[2]], WEIGHTS)
    if len(named) < 2 or (len(named) > 3 and not (told or weighs)):
        listed = "" if titles is None else f" ({', '.join(map(repr, titles))})"
        more = f": {ASK}" if len(named) > 3 else ""
        raise TadropedgeError(f"{file}: expected 2 or 3 columns, source, target, weight, got {count}{listed}{more}")
    return named[0], named[1]


def _weight(titles: Sequence[str] | None, others: list[int], file: str, told: bool) -> int | None:
    """The column of the weights among ``others``; where the user has ``told`` what to read, only one by that name."""
    if titles is None:
        return others[0] if len(others) == 1 and others[0] == 2 and not told else None
    called = [place for place in others if is_known(titles[place], WEIGHTS)]
    if len(called) == 1 or (called and told):
        return called[0]
    if not others or told:
        return None
    first = show(titles[(called or others)[0]], typed=False)
    raise TadropedgeError(
        f"{file}: the column {first} may be a weight or not: columns={{'weight': {first}}} takes it for one, "
        "weighted=False leaves it out"
    )


def are_titles(first: Sequence[str], options: ReadOptions) -> bool:
    """Whether the first line of a table holds the names of columns that the user asked for: then it is a header."""
    asked = [*options.columns.values(), *([options.column] if options.column is not None else [])]
    names = [name for name in asked if isinstance(name, str) and not (name.isascii() and name.isdigit())]
    return bool(names) and set(names) <= set(first)
