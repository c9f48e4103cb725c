"""``tadropedge compare``: which edge dropping helps on this graph."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from typer import Option

from tadropedge._old.checks import check_number
from tadropedge._old.cli.options import (
    METHODS,
    Address_,
    Batch_,
    Deadline_,
    Engine_,
    GpusPerBatch_,
    Json_,
    LaboratoryOptions,
    Out_,
    Wait_,
    check_count,
    check_score,
    chosen_engine,
    with_laboratory_options,
)
from tadropedge._old.cli.progress import announced, command_line, live_progress
from tadropedge._old.cli.report import show_comparison
from tadropedge._old.errors import TadropedgeError, without_password
from tadropedge._old.method import Method

DEFAULT = (
    "original, dropedge, dropedge:unbiased, cdf, degree-proportional, jaccard-cdf, auto, as far as they can be used"
)


@with_laboratory_options
@announced
def compare_command(
    *,
    methods: Annotated[
        str | None, Option(metavar="NAMES", help=f"comma-separated, such as auto, {METHODS} (default: {DEFAULT})")
    ] = None,
    trials: Annotated[
        int, Option(metavar="N", help="search trials per method and reference, on each choosing split")
    ] = 30,
    choose_splits: Annotated[int, Option(metavar="N", help="splits on which settings are chosen")] = 3,
    seeds: Annotated[int, Option(metavar="N", help="fresh seeds and splits on which they are judged")] = 20,
    keep_ratio: Annotated[
        float | None,
        Option(metavar="SHARE", help="expected share of edges that every method keeps (default: tuned for each)"),
    ] = None,
    options: LaboratoryOptions,
    storage: Annotated[
        str | None, Option(metavar="URL|FILE", help="Optuna storage of the trials (default: OUT/study.db)")
    ] = None,
    engine: Engine_ = "local",
    address: Address_ = None,
    gpus_per_batch: GpusPerBatch_ = None,
    batch: Batch_ = None,
    deadline: Deadline_ = None,
    out: Out_ = Path("comparison"),
    wait: Wait_ = False,
    as_json: Json_ = False,
) -> None:
    """Which edge dropping helps on this graph? Every method is tuned and judged against three references.

    These are not dropping, DropEdge tuned, and DropEdge at the same budget, each tuned in the same way. By default
    that is 1,320 trainings: 12 methods and references, each with 30 trials on 3 splits and 20 fresh seeds. If it is
    interrupted, run the same command again to resume.

    With --keep-ratio every method that drops keeps the same share of the edges; those that cannot keep so few are
    named with the least that they could keep, and not trained.

    The method auto searches over scores, rules, options and budgets with as many trials as every other method.
    """
    named = None if methods is None else [Method.of(name.strip()).name for name in methods.split(",")]
    if twice := [name for name in named or () if (named or []).count(name) > 1]:
        raise TadropedgeError(f"--methods names {twice[0]!r} more than once, got {methods!r}")
    for name in named or ():
        check_score(Method.of(name).score, options.score_column)
    check_count("trials", trials)
    check_count("choose_splits", choose_splits)
    check_count("seeds", seeds, least=2)  # one alone has no interval
    if keep_ratio is not None:
        check_number("keep_ratio", keep_ratio, 0, 1)
    trainers = chosen_engine(engine, address, gpus_per_batch, batch, deadline, options.device)
    from tadropedge._old.comparing import carried_out
    from tadropedge._old.comparison.comparison import DEFAULT_METHODS, Plan
    from tadropedge._old.publish.label import run_label
    from tadropedge._old.search.engines import training_with

    started = time.monotonic()
    with training_with(trainers):
        results = carried_out(
            lambda: options.laboratory(choose_splits),
            Plan(
                named or DEFAULT_METHODS,
                trials=trials,
                seeds=seeds,
                seed=options.seed,
                lenient=named is None,
                keep_ratio=keep_ratio,
            ),
            out=out,
            storage=storage,
            wait=wait,
            reporting=live_progress(as_json, without_password(storage or str(out / "study.db"))),
            label=lambda data: run_label(data.device.type, command_line(), time.monotonic() - started),
            loading=options.data_options,
        )
    bound = results.run.get("bayes_accuracy")
    lines = [] if bound is None else [f"Bayes-optimal accuracy on this graph: {bound:.2%}"]
    show_comparison(results, as_json, *lines, f"report: {out / 'report.html'}")
