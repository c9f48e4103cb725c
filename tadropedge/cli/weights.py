"""``tadropedge weights``: the score of every edge of a graph, as files, numbers and pictures."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tadropedge.cli.options import FileOptions, Positive, RunOptions, ScoreOptions, Share, chosen_budget
from tadropedge.cli.output import Display, command_line, keeps, note, show
from tadropedge.errors import TadropedgeError

BUDGET = 0.7  # of what is shown, where none is given


def weights(
    graph: str,
    /,
    *,
    keep_prob: Share | None = None,
    keep_ratio: Share | None = None,
    gamma: Positive | None = None,
    figures: Annotated[bool, Parameter(negative="--no-figures")] = True,
    out: Path = Path("weights"),
    scores: ScoreOptions = ScoreOptions(),
    files: FileOptions = FileOptions(),
    running: RunOptions = RunOptions(),
) -> None:
    """Which edges hold this graph together? Writes scores, a summary, pictures and an interactive page.

    Summary and pictures speak of the largest component. The score is aggregate unless said. If it is interrupted, the
    same command goes on and ends with the same files.

    Args:
        graph: The name of a dataset, or a file: csv, tsv, npz, pt, mtx, GraphML, Parquet.
        keep_prob: Show keep probabilities of every rule with this p.
        keep_ratio: Show keep probabilities of every rule at this share of kept edges: 0.7 unless said.
        gamma: The score from which edges are critical; without it the knee of the scores.
        figures: Draw pictures and the page.
        out: The folder of the results.
    """
    running.begin()
    name = scores.chosen("aggregate", files)
    budget = chosen_budget(keep_prob, keep_ratio) or {"keep_ratio": BUDGET}
    if figures:
        check_drawing()

    from tadropedge._support.folder import claim
    from tadropedge.cli.reading import read_source
    from tadropedge.lab.graph_report.part import component
    from tadropedge.lab.graph_report.summary import GraphReport, lines
    from tadropedge.lab.graph_report.write import FILES, write_all
    from tadropedge.lab.reports.label import run_label
    from tadropedge.scores.solve import solve

    device = running.found_device()
    source = read_source(graph, files, running.seed)
    settings = source.settings(name, scores.given)
    claim(out, FILES)
    keeps(out)
    if name == "aggregate" and not {"q", "desired_clusters"} & set(scores.given):
        note("q: none was given, so the eigengap near 7 decides it (--q N sets it)")
    begun = time.monotonic()
    with Display(running.json) as display:
        solved = solve(
            source.graph, name, settings, cache_dir=out / "cache", device=device,
            progress=lambda done, total: display.step("scoring edges", done, total),
        )  # fmt: skip
        report = GraphReport(
            name=source.name, read=source.read, graph=source.graph, scored=solved, score=name,
            part=component(source.graph),
            settings=scores.given, gamma=gamma, budget=budget, classes=source.nodes.get("y"),
            class_names=source.class_names,
        )  # fmt: skip
        seconds = time.monotonic() - begun
        run = run_label(device, command_line(), seconds)
        summary = write_all(report, out, draw=figures, run=run, progress=display.step)
    show(summary, running.json, [*lines(summary), f"written to {out}: {', '.join(summary['files'])}"])


def check_drawing() -> None:
    """Say at once, and not after the work, that nothing can be drawn here."""
    try:
        import matplotlib.figure  # noqa: F401
    except ValueError as error:
        raise TadropedgeError(f"the environment variable MPLBACKEND cannot be used: {error}") from error
