"""The commands of the map: ``run`` measures what is missing, ``summary`` says what was found."""

import argparse
import sys
from pathlib import Path

import pandas as pd

import tadropedge as tde
from experiments.map.recipe import RECIPE, read_cells
from experiments.map.run import run
from experiments.map.summary import summarise


def main(arguments: list[str] | None = None) -> int:
    """Run a command; 1 says that cells are missing."""
    parser = argparse.ArgumentParser(prog="python -m experiments.map", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="measure the cells that a folder lacks, in the order of the recipe")
    running.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    running.add_argument("--cells", default="*", metavar="GLOB", help="such as 'cora/*' or '*/base'")
    running.add_argument("--time-budget", type=pd.Timedelta, metavar="TIME", help="end after this, such as 10m")
    running.add_argument("--device", default="cpu")
    summary = commands.add_parser("summary", help="map.csv, README.md and a page, in the first folder")
    summary.add_argument("out", type=Path, nargs="+", metavar="FOLDER", help="what was measured, here or elsewhere")
    for command in (running, summary):
        command.add_argument("--recipe", type=Path, default=RECIPE)
    told = parser.parse_args(arguments)
    try:
        cells = read_cells(told.recipe)
        if told.command == "summary":
            print(f"{told.out[0] / 'map.csv'}: {len(summarise(cells, told.out))} rows")
            return 0
        limit = None if told.time_budget is None else told.time_budget.total_seconds()
        return 0 if run(cells, told.out, named=told.cells, time_budget=limit, device=told.device) else 1
    except tde.TadropedgeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
