"""``tadropedge regimes``: a map of where edge dropping helps, over datasets and conditions."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path
from typing import Annotated

from typer import Option

from tadropedge._old.cli.options import (
    Address_,
    Batch_,
    Deadline_,
    Device_,
    Engine_,
    GpusPerBatch_,
    Json_,
    Out_,
    Plugin_,
    Root_,
    Seed_,
    Wait_,
    chosen_device,
    chosen_engine,
    output_folder,
)
from tadropedge._old.cli.progress import announced, live_progress
from tadropedge._old.cli.report import show_map
from tadropedge._old.errors import TadropedgeError

PRESETS = ("quick", "full")
RECIPE = "a TOML file of your own instead of a preset: datasets, methods, conditions"
PLAN = "list the cells and how many trainings each takes, and train nothing"


@announced
def regimes_command(
    preset: Annotated[
        str | None,
        Option(metavar=f"[{'|'.join(PRESETS)}]", help="quick: minutes on 2 cores; full: many graphs, for a GPU"),
    ] = None,
    recipe: Annotated[Path | None, Option(metavar="FILE", help=RECIPE)] = None,
    plan: Annotated[bool, Option("--plan", help=PLAN)] = False,
    seed: Seed_ = 0,
    device: Device_ = "auto",
    data_root: Root_ = None,
    plugin: Plugin_ = None,
    engine: Engine_ = "local",
    address: Address_ = None,
    gpus_per_batch: GpusPerBatch_ = None,
    batch: Batch_ = None,
    deadline: Deadline_ = None,
    out: Out_ = Path("regimes"),
    wait: Wait_ = False,
    as_json: Json_ = False,
) -> None:
    """Where does edge dropping help? A map over datasets and conditions, measured cell by cell.

    A cell is a dataset under one condition: few labels, a small budget, a deep network, random edges, hidden features.
    In each, every method is tuned and judged as compare does it, and all tests of the map are corrected together. If it
    is interrupted, run the same command again to resume.
    """
    del plugin  # its callback has imported them
    if preset is not None and recipe is not None:
        raise TadropedgeError("--preset and --recipe exclude each other: each says what the map consists of")
    if preset is not None and preset not in PRESETS:
        raise TadropedgeError(f"--preset must be one of {', '.join(PRESETS)}, got {preset!r}")
    told = str(recipe) if recipe is not None else preset or PRESETS[0]
    trainers = chosen_engine(engine, address, gpus_per_batch, batch, deadline, device)
    from tadropedge._old.regimes.recipe import load_map_recipe
    from tadropedge._old.regimes.running import MapRun, measured, planned_trainings

    chosen = load_map_recipe(told)
    if plan:
        _print_plan({cell.key: planned_trainings(cell) for cell in chosen.cells}, as_json)
        return
    from tadropedge._old.publish.label import run_label
    from tadropedge._old.regimes.report import FILES, write_all
    from tadropedge._old.search.engines import training_with

    started, place = time.monotonic(), chosen_device(device)
    source = ["--recipe", told] if recipe is not None else ["--preset", told]
    # Folders belong to this machine alone: they have no place in results.
    command = shlex.join(["tadropedge", "regimes", *source, "--device", device, "--seed", str(seed)])
    targets = output_folder(out, *FILES, "studies/", "cache/", "seconds.json", "sittings.json", wait=wait)
    with training_with(trainers), targets, live_progress(as_json, out / "studies") as report:
        found = measured(chosen, MapRun(out=out, device=place, root=data_root, seed=seed, report=report))
        found = found.labelled(run_label(place, command, time.monotonic() - started))
        write_all(found, out)
    show_map(found, as_json, f"report: {out / 'report.html'}")


def _print_plan(trainings: dict[str, int], as_json: bool) -> None:
    if as_json:
        print(json.dumps(trainings, indent=1))
        return
    width = max(map(len, trainings))
    for key, count in trainings.items():
        print(f"{key:<{width}}  {count:>7,} trainings")
    print(f"{len(trainings)} cells, {sum(trainings.values()):,} trainings at most")
