"""``report.html``: one page that holds the verdict, both protocols, the pictures and the run.

It is self-contained: pictures are data URIs, there is no script, and a content security policy forbids every request.
Names from the outside are escaped by the template.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from tadropedge.comparison.figures import FIGURES
from tadropedge.comparison.results import as_document
from tadropedge.comparison.rows import Results, Row, grouped, labels
from tadropedge.comparison.schema import parse
from tadropedge.comparison.statistics import Honest, verdict
from tadropedge.comparison.wording import (
    NOTHING,
    honest_label,
    interval,
    judged,
    outcome,
    p_value,
    paper_label,
    percent,
    points,
    title,
)
from tadropedge.files import write_atomic

Cells = dict[str, object]

CAPTIONS = {
    "accuracy": "Mean test accuracy under the honest protocol.",
    "differences": "Paired difference to DropEdge at the same expected number of kept edges, honest protocol.",
    "convergence": "Training and validation loss of each method.",
    "by-keep-prob": "Accuracy of the trials of the search; the line is the median along keep_prob.",
}
RUN = ("command", "commit", "machine", "versions", "seconds")  # shown first, in this order


def write_report(results: Results, path: str | Path) -> Path:
    """Write ``report.html`` in one step and return its path."""
    return write_atomic(Path(path), render(results).encode())


def render(results: Results) -> str:
    """The page as text.

    >>> page = render(Results([Row("cora", "gcn", 2, "cdf")], {"commit": "0123abcd"}))
    >>> "no method was compared with DropEdge." in page, "0123abcd" in page
    (True, True)
    """
    results = parse(as_document(results))
    source = resources.files("tadropedge.comparison").joinpath("report.html.j2").read_text(encoding="utf-8")
    page = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(source)
    datasets = list(dict.fromkeys(row.dataset for row in results.rows))
    return page.render(
        heading=f"Which edge dropping helps on {', '.join(datasets) or 'nothing'}?",
        groups=[_group(rows) for rows in grouped(results.rows)],
        run=_run(results.run),
    )


def _group(rows: Sequence[Row]) -> Cells:
    """What the page says of one dataset, backbone and depth."""
    names = labels(rows)
    tested = sum(row.honest is not None and row.honest.p_value is not None for row in rows)
    setting_names = list(dict.fromkeys(name for row in rows for name in row.settings))
    return {
        "title": title(rows[0]),
        "verdict": verdict(judged(rows)),
        "honest_label": honest_label(rows),
        "honest": [_honest_cells(label, honest) for label, honest in judged(rows).items()],
        "tested": f"{tested} method{'' if tested == 1 else 's'}",
        "paper_label": paper_label(rows),
        "paper": [
            {"label": label, "best": percent(row.paper_protocol.best_test), "trials": row.paper_protocol.trials}
            for label, row in zip(names, rows, strict=True)
            if row.paper_protocol
        ],
        "pictures": _pictures(rows),
        "setting_names": setting_names,
        "settings": [
            {"label": label, "cells": [shown(row.settings.get(name)) for name in setting_names]}
            for label, row in zip(names, rows, strict=True)
            if row.settings
        ],
    }


def _honest_cells(label: str, honest: Honest) -> Cells:
    return {
        "label": label,
        "mean": percent(honest.mean),
        "interval": interval(honest.low, honest.high),
        "difference": points(honest.difference),
        "difference_interval": interval(honest.difference_low, honest.difference_high, signed=True),
        "p_value": p_value(honest.p_value),
        "outcome": outcome(honest),
        "seeds": f"{honest.seeds} ({honest.failed} failed)" if honest.failed else honest.seeds,
    }


def _pictures(rows: Sequence[Row]) -> list[Cells]:
    drawn = ((CAPTIONS[name], draw(rows)) for name, draw in FIGURES.items())
    return [{"caption": caption, "data": base64.b64encode(png).decode()} for caption, png in drawn if png]


def _run(run: Mapping[str, object]) -> list[tuple[str, str]]:
    """The run's members, the usual ones first."""
    order = [name for name in RUN if name in run] + [name for name in run if name not in RUN]
    return [(name, shown(run[name])) for name in order]


def shown(value: object) -> str:
    """Any JSON value as a few words.

    >>> shown({"torch": "2.13.0", "numpy": "2.4.6"}), shown(812.4375), shown(["a", 1]), shown(None)
    ('torch 2.13.0, numpy 2.4.6', '812.4', 'a, 1', '–')
    """
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {shown(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(shown(part) for part in value)
    return str(value)
