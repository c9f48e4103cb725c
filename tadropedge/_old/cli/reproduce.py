"""``tadropedge reproduce``: a table or figure of the paper, measured beside the printed one and judged."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from tadropedge._old.cli.options import (
    Address_,
    Batch_,
    Deadline_,
    Device_,
    Engine_,
    GpusPerBatch_,
    Json_,
    Out_,
    Root_,
    Seed_,
    Wait_,
    chosen_device,
    chosen_engine,
    output_folder,
)
from tadropedge._old.cli.progress import announced, live_progress
from tadropedge._old.cli.report import show_verdicts
from tadropedge._old.paper.registry import ALL, ITEMS, named_items

PART = "a dataset; in table1 also cora/gcn-3 or cora/gcn-3/normalized; repeatable"
CHECK = "train and measure this share of what is finished again, and say how it agrees: 0.05"
TOGETHER = "trainings that --check makes together, at least; as many as before give the same bits on a GPU"
AGAIN = "make finished items again from the trainings and measurements that are kept"


@announced
def reproduce_command(
    name: Annotated[str, Argument(metavar="ITEM", help=f"one of {', '.join(ITEMS)}, {ALL}")],
    preset: Annotated[
        str, Option(metavar="[quick|paper]", help="quick: minutes on 2 cores; paper: all of it")
    ] = "quick",
    parts: Annotated[list[str] | None, Option("--part", metavar="NAME", help=PART)] = None,
    again: Annotated[bool, Option("--again", help=AGAIN)] = False,
    check: Annotated[float | None, Option(metavar="SHARE", help=CHECK)] = None,
    check_batch: Annotated[int, Option(metavar="N", help=TOGETHER)] = 16,
    seed: Seed_ = 0,
    device: Device_ = "auto",
    data_root: Root_ = None,
    engine: Engine_ = "local",
    address: Address_ = None,
    gpus_per_batch: GpusPerBatch_ = None,
    batch: Batch_ = None,
    deadline: Deadline_ = None,
    out: Out_ = Path("reproduction"),
    wait: Wait_ = False,
    as_json: Json_ = False,
) -> None:
    """Make a table or figure of the paper, or all of them, and judge every claim.

    If it is interrupted, run the same command again to resume.
    """
    names = named_items(name)
    trainers = chosen_engine(engine, address, gpus_per_batch, batch, deadline, device)
    from tadropedge._old.paper.reproduce import FILES, Run, reproduce
    from tadropedge._old.search.engines import training_with

    # Folders belong to this machine alone: they have no place in results.
    chosen = ["--preset", preset, *(word for part in parts or () for word in ("--part", part))]
    command = shlex.join(["tadropedge", "reproduce", name, *chosen, "--device", device, "--seed", str(seed)])
    place = chosen_device(device)
    targets = output_folder(out, *FILES, "studies/", "cache/", wait=wait)
    with training_with(trainers), targets, live_progress(as_json, out) as report:
        run = Run(
            out, preset, device=place, root=data_root, seed=seed, parts=parts or (), again=again, check=check,
            check_batch=check_batch, command=command, report=report, say=partial(print, file=sys.stderr),
        )  # fmt: skip
        document = reproduce(name, run)
    mine = {item: document[item] for item in names if item in document}
    show_verdicts(mine, as_json, f"report: {out / 'report.html'}")
