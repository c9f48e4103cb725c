"""The commands of the benchmarks, and all of them in turn.

``python -m benchmarks`` lists them; ``python -m benchmarks all`` measures whatever this commit has not measured yet,
each in a process of its own, and goes on after a failure. Leave the machine alone meanwhile.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import time

from benchmarks.frame import ROOT

MINUTES = {  # on two idle cores
    "masks": 2.3,
    "epoch": 2.0,
    "pyg": 1.8,
    "mini_batches": 1.2,
    "scores": 1.7,
    "spectrum": 2.6,
    "cluster": 1.5,
    "startup": 1.2,
    "walks": 0.3,
}


def first_line(name: str) -> str:
    """What a benchmark says of itself."""
    source = (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").splitlines()[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["all"], help="all: measure; without it, list the commands")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--quick", action="store_true", help="try all code at tiny sizes; nothing is written")
    options = parser.parse_args()
    failed = []
    for name, minutes in MINUTES.items():
        command = [sys.executable, "-m", f"benchmarks.{name}", "--resume", "--device", options.device]
        if options.what is None:
            print(f"python -m benchmarks.{name:<13} {minutes:>4} min   {first_line(name)}")
            continue
        print(f"\n== {name}: about {'a minute' if options.quick else f'{minutes} minutes'}", flush=True)
        start = time.perf_counter()
        if subprocess.run([*command, *(["--quick"] if options.quick else [])], cwd=ROOT).returncode:
            failed.append(name)
        print(f"== {name}: {(time.perf_counter() - start) / 60:.1f} minutes", flush=True)
    print(f"failed: {', '.join(failed)}" if failed else "" if options.what is None else "all measured")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
