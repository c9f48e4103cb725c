"""``README.md`` of a results folder: one page that says what holds and what does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tadropedge.paper.document import Document
from tadropedge.paper.item import STATUSES
from tadropedge.paper.recipe import load_recipe

MARKS = dict(zip(STATUSES, ("✔", "✘", "⚠"), strict=True))


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
        f"{len(verdicts)} claims judged: {counts}. Numbers, figures and settings: [report.html](report.html), "
        "[results.json](results.json).",
        "",
        "* *Paper protocol*: the best test accuracy of the trials, as the paper reports it. It looks at the test set.",
        "* *Honest protocol*: settings chosen on validation, retrained on fresh seeds and splits, paired with DropEdge "
        "at the same expected number of kept edges; 95 % t-intervals, p-values corrected by Holm's rule.",
        "",
    ]
    if any(entry.run.get("quick") for entry in document.values()):
        lines += ["**Quick preset: far fewer trials, seeds and epochs than the paper. Too few to judge.**", ""]
    lines += ["| item | claim | verdict | why |", "|---|---|---|---|"]
    for name, entry in document.items():
        for verdict in entry.verdicts:
            words = (name, verdict.claim, f"{MARKS[verdict.status]} {verdict.status}", verdict.reason)
            lines.append(f"| {' | '.join(_cell(word) for word in words)} |")
    lines += ["", "## Runs", "", "| item | what | preset | seed | seconds | machine | commit |", "|" + "---|" * 7]
    for name, entry in document.items():
        lines.append(f"| {' | '.join(_cell(str(word)) for word in _run(name, entry.run))} |")
    return "\n".join(lines) + "\n"


def _run(name: str, run: Mapping[str, Any]) -> list[Any]:
    what = load_recipe(name, run["preset"]).title
    done = f" ({run['cells']} cells)" if "cells" in run else ""
    settings = f"; {run['settings']}" if "settings" in run else ""
    shown = f"{run['seconds']:g}"
    # Trainings may have run elsewhere, in parts; the rows were then made from them here.
    machine = "trained on " + " and on ".join(run["trained_on"]) if run.get("trained_on") else run["machine"]
    return [name, what + done + settings, run["preset"], run["seed"], shown, machine, run["commit"]]


def _cell(words: str) -> str:
    """Words that stay inside one cell of a table."""
    return " ".join(words.split()).replace("|", "\\|")
