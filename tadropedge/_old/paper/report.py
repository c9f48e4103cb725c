"""The pages of a results folder: ``report.html``, ``README.md`` (what holds and what does not), ``claims.md`` (why)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tadropedge._old.atomic import write_atomic
from tadropedge._old.paper.check import RULE
from tadropedge._old.paper.document import Document, Entry, flattened
from tadropedge._old.paper.item import ANSWERS, STATUSES, Table, Verdict
from tadropedge._old.paper.journal import COMMIT
from tadropedge._old.paper.recipe import load_recipe
from tadropedge._old.paper.registry import item_module
from tadropedge._old.paper.rows import Row
from tadropedge._old.publish.page import embedded, render, run_lines
from tadropedge._old.publish.tables import markdown
from tadropedge._old.publish.wording import NOTHING, shown

MARKS = dict(zip(STATUSES, ("✔", "◐", "✘", "⚠"), strict=True))
HEADINGS = dict(
    zip(STATUSES, ("What holds", "What holds in part", "What does not", "What cannot be as stated"), strict=True)
)
CLASSES = dict(zip(STATUSES, ("holds", "partly", "fails", "impossible"), strict=True))
LISTS = {False: "The paper's claims", True: "Our own questions"}
JUDGED = ("item", "claim", "verdict", "printed", "measured", "why")
TERMS = {
    "Paper protocol": "the best test accuracy of the trials, as the paper reports it. It looks at the test set.",
    "Honest protocol": "settings chosen on validation, retrained on fresh seeds and splits, paired with DropEdge at "
    "the same expected number of kept edges or with what a claim names; 95 % t-intervals, p-values corrected by "
    "Holm's rule within the family that a claim or a table names. A point is one percentage point.",
    "Limits": "an interval is for the settings that one search chose on one set of validation nodes; it does not cover "
    "another choice. Fresh splits draw from the nodes that also served this choice. DropEdge at the same "
    "number of kept edges runs with the settings that were tuned for the other method, which favours the other "
    "method. A correction covers its family alone: of all families without an effect, about one in twenty "
    "shows one.",
    "Verdicts": "a claim is *reproduced*, *partly* (it holds in the cases that are named, and not in the others), *not "
    "reproduced*, or *cannot be as stated* (it contradicts the data or itself, whatever is trained). Beside it "
    "stand the effect that the paper prints and what was measured here. Our own questions, which the paper "
    "does not ask, are answered *yes*, *partly*, *no* or *cannot be asked*, and counted apart.",
    "Commits": "every row names the commit whose code trained or measured it. Trainings of version 0.1 had a date "
    "only; theirs is the newest commit of their item that is not younger.",
}
RUN = ("item", "what", "seed", "seconds", "where", "commit")
LONGEST = 60  # rows of a table that is not folded away


def write_pages(document: Document, folder: Path) -> Path:
    """Write the three pages beside ``figures/``, each in one step; return the path of ``report.html``."""
    write_atomic(folder / "README.md", readme(document).encode())
    write_atomic(folder / "claims.md", claims(document).encode())
    return write_atomic(folder / "report.html", report(document, folder / "figures").encode())


def readme(document: Document) -> str:
    """``README.md``.

    >>> readme({}).splitlines()[0]
    '# The paper, reproduced'
    """
    return render(
        "paper/readme.md.j2",
        counts=_both_counts(document),
        quick=any(entry.run.get("quick") for entry in document.values()),
        lists={heading: _sections(document, own) for own, heading in LISTS.items()},
        **_explained(document),
        runs=markdown(RUN, [_run(name, entry) for name, entry in document.items()], left=range(len(RUN))),
    )


def claims(document: Document) -> str:
    """``claims.md``: every claim with its verdict and the numbers behind it, then the notes of every item.

    >>> claims({}).splitlines()[0]
    '# Every claim, judged'
    """
    lists = {
        heading: markdown(JUDGED, [_judged(name, verdict) for name, verdict in _verdicts(document, own)], left=range(6))
        for own, heading in LISTS.items()
    }
    notes = {name: [" ".join(note.split()) for note in entry.notes] for name, entry in document.items() if entry.notes}
    return render("paper/claims.md.j2", counts=_both_counts(document), lists=lists, notes=notes, **_explained(document))


def report(document: Document, figures: Path) -> str:
    """``report.html``; a picture that is not in ``figures`` is named instead."""
    return render(
        "paper/report.html.j2",
        heading="The paper, reproduced",
        counts=_both_counts(document),
        quick=[name for name, entry in document.items() if entry.run.get("quick")],
        items=[_item(name, entry, figures) for name, entry in document.items()],
        longest=LONGEST,
        **_explained(document),
    )


def _explained(document: Document) -> dict[str, Any]:
    """What every page says: how to read it, and what a sample that was made again says of each item."""
    checks = {name: entry.run["check"] for name, entry in document.items() if entry.run.get("check")}
    return {"terms": TERMS, "checks": checks, "rule": RULE}


def _item(name: str, entry: Entry, figures: Path) -> dict[str, Any]:
    recipe = load_recipe(name, entry.run["preset"])
    return {
        "name": name,
        "title": recipe.title,
        "claim": recipe.claim,
        "cells": entry.run.get("cells", ""),
        "complete": entry.complete,
        "counts": {words: [one for one in counts if one[-1]] for words, counts in _both_counts({name: entry}).items()},
        "verdicts": {
            heading: [(verdict, CLASSES[verdict.status]) for verdict in entry.verdicts if verdict.own == own]
            for own, heading in LISTS.items()
        },
        "pictures": [(path.name, embedded(path)) for path in (figures / file for file in entry.figures)],
        "tables": _tables(name, entry.rows),
        "notes": entry.notes,
        "seconds_of": _seconds(entry.run.get("seconds_of", {})),
        "run": run_lines(
            {key: value for key, value in entry.run.items() if key not in ("seconds_of", "quick", "check")}
        ),
    }


def _verdicts(document: Document, own: bool) -> list[tuple[str, Verdict]]:
    """The claims of the paper, or our own questions, each with the name of its item."""
    return [(name, verdict) for name, entry in document.items() for verdict in entry.verdicts if verdict.own == own]


def _judged(name: str, verdict: Verdict) -> tuple[str, ...]:
    """A line of ``claims.md``."""
    word = f"{MARKS[verdict.status]} {verdict.word}"
    return name, verdict.claim, word, verdict.printed or NOTHING, verdict.measured or NOTHING, verdict.reason


def _sections(document: Document, own: bool) -> list[tuple[str, str, dict[str, list[str]]]]:
    """What holds, what does not and so on: a mark, a heading, and the claims of each item."""
    sections = []
    for status in STATUSES:
        told = {name: _claims([v for v in entry.verdicts if v.own == own], status) for name, entry in document.items()}
        if found := {name: words for name, words in told.items() if words}:
            sections.append((MARKS[status], ANSWERS[status].capitalize() if own else HEADINGS[status], found))
    return sections


def _both_counts(document: Document) -> dict[str, list[tuple[str, str, int]]]:
    """Claims of the paper and questions of our own: how many have each word, with its class on the page."""
    counts = {}
    for own, heading in LISTS.items():
        statuses = [verdict.status for _, verdict in _verdicts(document, own)]
        words = ANSWERS if own else {status: status for status in STATUSES}
        if statuses:
            counts[heading] = [(words[one], CLASSES[one], statuses.count(one)) for one in STATUSES]
    return counts


def _tables(name: str, rows: Sequence[Row]) -> list[Table]:
    """The tables of an item as its module shows them, else its rows as they are."""
    if not rows:
        return []
    module = item_module(name)
    if hasattr(module, "tables"):
        made: list[Table] = module.tables(rows)
        return made
    flat = [flattened(row) for row in rows]
    # A curve or a histogram is for the picture and the csv.
    columns = list(dict.fromkeys(key for row in flat for key, value in row.items() if len(str(value)) <= LONGEST))
    return [Table("all rows", columns, [[shown(row.get(key)) for key in columns] for row in flat])]


def _seconds(parts: Mapping[str, Mapping[str, float]]) -> Table | None:
    """Seconds by part and phase, and their sums."""
    if not parts:
        return None
    phases = list(dict.fromkeys(phase for table in parts.values() for phase in table))
    rows = [[part, *(f"{table.get(phase, 0.0):.1f}" for phase in phases), f"{sum(table.values()):.1f}"]
            for part, table in parts.items()]  # fmt: skip
    sums = [sum(table.get(phase, 0.0) for table in parts.values()) for phase in phases]
    rows.append(["all", *(f"{value:.1f}" for value in sums), f"{sum(sums):.1f}"])
    return Table("seconds", ["part", *phases, "together"], rows)


def _claims(verdicts: Sequence[Verdict], status: str) -> list[str]:
    """The claims of one status; those that differ only before or only after a colon are told together.

    >>> said = ("It holds: at 3", "It holds: at 5", "Cora: it is there", "PubMed: it is there", "And more")
    >>> _claims([Verdict(claim, "reproduced", "") for claim in said], "reproduced")
    ['It holds: at 3 · at 5', 'Cora · PubMed: it is there', 'And more']
    """
    said = [f"{v.claim} (where: {v.where})" if v.where else v.claim for v in verdicts if v.status == status]
    halves = [_halves(" ".join(claim.split())) for claim in said]
    return [": ".join(filter(None, pair)) for pair in _together(_together(halves, 0), 1)]


def _halves(claim: str) -> tuple[str, str]:
    """What stands before and after the first colon that is not in brackets; nothing after where there is none.

    >>> _halves("It holds (best: 3): Cora"), _halves("It holds (best: 3)")
    (('It holds (best: 3)', 'Cora'), ('It holds (best: 3)', ''))
    """
    for colon in re.finditer(": ", claim):
        front, rest = claim[: colon.start()], claim[colon.end() :]
        if front.count("(") == front.count(")"):
            return front, rest
    return claim, ""


def _together(pairs: Sequence[tuple[str, str]], end: int) -> list[tuple[str, str]]:
    """Pairs with the same words before (``end`` 0) or after (1) the colon, in one."""
    groups: dict[tuple[str, bool], list[tuple[str, str]]] = {}
    for pair in pairs:
        groups.setdefault((pair[end] or pair[0], bool(pair[1])), []).append(pair)
    joined = ((" · ".join(dict.fromkeys(same)) for same in zip(*group, strict=True)) for group in groups.values())
    return [(front, rest) for front, rest in joined]


def _run(name: str, entry: Entry) -> list[Any]:
    run = entry.run
    what = load_recipe(name, run["preset"]).title
    done = f" ({run['cells']} cells)" if "cells" in run else "" if entry.complete else " (**only some parts**)"
    settings = f"; {run['settings']}" if "settings" in run else ""
    # Work may have run elsewhere, in parts; the rows were then made from it here.
    where = _places(run["trained_on"]) if run.get("trained_on") else run["machine"]
    preset = f"preset {run['preset']}; " if run["preset"] != "paper" else ""
    return [name, preset + what + done + settings, run["seed"], f"{run['seconds']:g}", where, run["commit"]]


def _places(places: Sequence[str]) -> str:
    """Machines, each with the commits that ran there.

    >>> _places(["A; torch 2; commit 12", "B; torch 2; commit 12", "A; torch 2; commit 34"])
    'A; torch 2 (commits 12, 34) and B; torch 2 (commit 12)'
    """
    commits: dict[str, list[str]] = {}
    for place in places:
        machine, _, commit = place.rpartition(COMMIT)
        # Runs that differ in the number of threads alone are those of one machine.
        commits.setdefault(re.sub(r", \d+ torch threads", "", machine), []).append(commit)
    return " and ".join(
        f"{machine} (commit{'s' * (len(all_) > 1)} {', '.join(all_)})" for machine, all_ in commits.items()
    )
