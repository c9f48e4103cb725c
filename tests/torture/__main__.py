"""Run every case and print one table: what was tried, how often, how often tadropedge behaved.

make torture, or: PYTHONPATH=tests python -m torture [SECTION …] [--jobs 2] [--sample N] [--out FILE.json]
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tadropedge.publish.label import run_label
from tadropedge.publish.tables import markdown
from torture import SECTIONS, Place, cases, outcome, sample


def main() -> None:
    """Run the sections that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", default=SECTIONS, metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--sample", type=int, default=0, help="that many cases per section, spread evenly")
    parser.add_argument("--out", type=Path, help="write the counts there as JSON")
    given = parser.parse_args()
    begun, rows = time.monotonic(), []
    for section in given.sections:
        rows.append(_section(section, given.sample, given.jobs))
    print("\n".join(markdown(("attack", "tried", "behaved"), [(r["tries"], r["tried"], r["behaved"]) for r in rows])))
    if given.out:
        run = run_label("cpu", "make torture", time.monotonic() - begun)
        given.out.write_text(json.dumps({"rows": _beside(given.out, rows, run), "run": run}, indent=1) + "\n")
    sys.exit(any(row["tried"] > row["behaved"] for row in rows))


def _beside(out: Path, rows: list[dict[str, Any]], run: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows in order, each with its commit; sections that were not run keep those of the file."""
    before = json.loads(out.read_text())["rows"] if out.exists() else []
    found = {row["section"]: row for row in before} | {row["section"]: {**row, "commit": run["commit"]} for row in rows}
    return [found[section] for section in SECTIONS if section in found]


def _section(section: str, size: int, jobs: int) -> dict[str, object]:
    begun, count = time.monotonic(), len(sample(section, size) if size else cases(section))
    wrong = []
    for done, (name, fault) in enumerate(_outcomes([(section, place, size) for place in range(count)], jobs), 1):
        if fault:
            wrong.append(name)
            print(f"{section}: {name}: {fault}", flush=True)
        if done % 50 == 0 or done == count:
            print(f"{section}: {done} of {count}, {len(wrong)} wrong", file=sys.stderr, flush=True)
    tries, seconds = importlib.import_module(f"torture.{section}").TRIES, round(time.monotonic() - begun)
    behaved = count - len(wrong)
    return {"section": section, "tries": tries, "tried": count, "behaved": behaved, "wrong": wrong, "seconds": seconds}


def _outcomes(places: list[Place], jobs: int) -> Iterator[tuple[str, str]]:
    """Names and faults as they come in; a worker of its own for every case would load torch each time."""
    if jobs < 2:
        yield from map(outcome, places)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(outcome, places)


if __name__ == "__main__":
    main()
