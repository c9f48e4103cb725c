"""``tadropedge compare``: which edge dropping helps on this graph."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from typer import Option

from tadropedge.cli.app import app
from tadropedge.cli.options import METHODS, Json_, LaboratoryOptions, Out_, with_laboratory_options
from tadropedge.cli.progress import command_line, live_progress
from tadropedge.method import Method


@app.command("compare")
@with_laboratory_options
def compare_command(
    *,
    methods: Annotated[str | None, Option(help=f"comma-separated: {METHODS} (default: the paper's)")] = None,
    trials: Annotated[int, Option(help="search trials per method")] = 100,
    seeds: Annotated[int, Option(help="fresh seeds and splits per method")] = 20,
    options: LaboratoryOptions,
    storage: Annotated[str | None, Option(help="Optuna storage URL (default: OUT/study.db)")] = None,
    out: Out_ = Path("comparison"),
    as_json: Json_ = False,
) -> None:
    """Which edge dropping helps on this graph? Trains every method and compares them, with error bars.

    If it is interrupted, run the same command again to resume.

    Example: tadropedge compare cora --methods original,dropedge,cdf --trials 20 --seeds 10 --out cora-gcn
    """
    named = [Method.of(name.strip()).name for name in methods.split(",")] if methods else None
    from tadropedge.cli.show import show
    from tadropedge.comparison.comparison import DEFAULT_METHODS, Plan, compare, run_info, write_all
    from tadropedge.comparison.rows import Results
    from tadropedge.data import bayes_accuracy

    started = time.monotonic()
    plan = Plan(named or DEFAULT_METHODS, trials=trials, seeds=seeds, seed=options.seed)
    laboratory = options.laboratory()
    out.mkdir(parents=True, exist_ok=True)
    with live_progress(as_json, kept="finished trials are kept") as report:
        rows = compare(laboratory, plan, storage or out / "study.db", report)
    run = run_info(started, command_line(), laboratory)
    if laboratory.dataset.name == "source-localization":  # the accuracy that no classifier can beat is known
        run["bayes_accuracy"] = round(bayes_accuracy(options.seed, **options.data_options), 4)
    page = write_all(rows, run, out)
    show(Results(rows, run), as_json)
    if not as_json:
        if "bayes_accuracy" in run:
            print(f"Bayes-optimal accuracy on this graph: {run['bayes_accuracy']:.2%}")
        print(f"report: {page}")
