"""The commands of the benchmarks, and all of them in turn.

``python -m benchmarks`` lists them. ``python -m benchmarks all`` measures whatever this commit has not measured yet,
each in a process of its own, and goes on after a failure; leave the machine alone meanwhile. ``fill`` writes the tables
of the docs, ``check`` says which of them, and which results, are not of today.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import time

from benchmarks.fill import fill
from benchmarks.frame import ROOT

MINUTES = {  # on two idle cores
    "masks": 2.3,
    "epoch": 2.0,
    "pyg": 1.8,
    "mini_batches": 1.2,
    "scores": 1.2,
    "spectrum": 2.8,
    "cluster": 1.5,
    "startup": 1.2,
    "walks": 1.0,
}


def first_line(name: str) -> str:
    """What a benchmark says of itself."""
    source = (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").splitlines()[0]


def measure_all(options: list[str]) -> list[str]:
    """Run every benchmark; those that failed."""
    failed = []
    for name in MINUTES:
        print(f"\n== {name}", flush=True)
        start = time.perf_counter()
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}", "--resume", *options], cwd=ROOT).returncode:
            failed.append(f"failed: python -m benchmarks.{name}")
        print(f"== {name}: {(time.perf_counter() - start) / 60:.1f} minutes", flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="list", choices=["list", "all", "fill", "check"])
    what, options = parser.parse_known_args()  # all hands --quick and --device on
    left: list[str] = []
    if what.what == "list":
        for name, minutes in MINUTES.items():
            print(f"python -m benchmarks.{name:<13} {minutes} min   {first_line(name)}")
    else:
        left = measure_all(options) if what.what == "all" else fill(check=what.what == "check")
    print(*left, sep="\n", end="\n" * bool(left), file=sys.stderr)
    return bool(left)


if __name__ == "__main__":
    sys.exit(main())
