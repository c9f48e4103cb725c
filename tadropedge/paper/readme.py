"""Two pages of a results folder: ``README.md`` says what holds and what does not, ``claims.md`` says why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tadropedge.paper.document import Document, Entry
from tadropedge.paper.item import IMPOSSIBLE, NOT_REPRODUCED, REPRODUCED, STATUSES, Verdict
from tadropedge.paper.recipe import load_recipe
from tadropedge.publish.tables import markdown

MARKS = dict(zip(STATUSES, ("✔", "✘", "⚠"), strict=True))
HEADINGS = {REPRODUCED: "What holds", NOT_REPRODUCED: "What does not", IMPOSSIBLE: "What cannot be as stated"}

PROTOCOLS = [
    "* *Paper protocol*: the best test accuracy of the trials, as the paper reports it. It looks at the test set.",
    "* *Honest protocol*: settings chosen on validation, retrained on fresh seeds and splits, paired with DropEdge "
    "at the same expected number of kept edges (Table 2: with the competitors); 95 % t-intervals, p-values corrected "
    "by Holm's rule.",
]
RUN = ("item", "what", "seed", "seconds", "where", "commit")
QUICK = "**Quick preset: far fewer trials, seeds and epochs than the paper. Too few to judge.**"


def readme(document: Document) -> str:
    """The page as Markdown.

    >>> readme({}).splitlines()[0]
    '# The paper, reproduced'
    """
    verdicts = [verdict for entry in document.values() for verdict in entry.verdicts]
    counts = ", ".join(f"{sum(v.status == status for v in verdicts)} {status}" for status in STATUSES)
    lines = [
        "# The paper, reproduced",
        "",
        f"{len(verdicts)} claims judged: {counts}. With reasons and notes: [claims.md](claims.md). Numbers, figures "
        "and settings: [report.html](report.html), [results.json](results.json).",
        "",
        *PROTOCOLS,
        "",
    ]
    if any(entry.run.get("quick") for entry in document.values()):
        lines += [QUICK, ""]
    for status, heading in HEADINGS.items():
        found = {name: _claims(entry.verdicts, status) for name, entry in document.items()}
        told = [f"* **{name}**: {'; '.join(words)}." for name, words in found.items() if words]
        if told:
            lines += [f"## {MARKS[status]} {heading}", "", *told, ""]
    runs = markdown(RUN, [_run(name, entry) for name, entry in document.items()], left=range(len(RUN)))
    return "\n".join([*lines, "## Runs", "", *runs]) + "\n"


def claims(document: Document) -> str:
    """Every claim with its verdict and the numbers behind it, then the notes of every item, as Markdown.

    >>> claims({}).splitlines()[0]
    '# Every claim, judged'
    """
    rows = [
        (name, verdict.claim, f"{MARKS[verdict.status]} {verdict.status}", verdict.reason)
        for name, entry in document.items()
        for verdict in entry.verdicts
    ]
    table = markdown(("item", "claim", "verdict", "why"), rows, left=range(4))
    lines = ["# Every claim, judged", "", *PROTOCOLS, "", *table]
    for name, entry in document.items():
        if entry.notes:
            lines += ["", f"## Notes on {name}", "", *(f"* {' '.join(note.split())}" for note in entry.notes)]
    return "\n".join(lines) + "\n"


def _claims(verdicts: Sequence[Verdict], status: str) -> list[str]:
    """The claims of one status; those that differ only before or only after a colon are told together.

    >>> said = ("It holds: at 3", "It holds: at 5", "Cora: it is there", "PubMed: it is there", "And more")
    >>> _claims([Verdict(claim, "reproduced", "") for claim in said], "reproduced")
    ['It holds: at 3 · at 5', 'Cora · PubMed: it is there', 'And more']
    """
    halves = [_halves(" ".join(verdict.claim.split())) for verdict in verdicts if verdict.status == status]
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
        machine, _, commit = place.rpartition("; commit ")
        # Runs that differ in the number of threads alone are those of one machine.
        commits.setdefault(re.sub(r", \d+ torch threads", "", machine), []).append(commit)
    return " and ".join(
        f"{machine} (commit{'s' * (len(all_) > 1)} {', '.join(all_)})" for machine, all_ in commits.items()
    )
