"""How long a user waits before anything happens: imports and short answers of the command line, beside torch's import.

Every row is the best of N fresh processes; the rows take turns, so noise affects all of them. Times include
the start of Python itself.

    python benchmarks/old/startup.py [--runs N] [--out FILE]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

from report import ROOT, write

CLI = ["-m", "tadropedge"]
CASES = {
    "python": ["-c", ""],
    "import torch": ["-c", "import torch"],
    "import tadropedge": ["-c", "import tadropedge"],
    "import torch, tadropedge": ["-c", "import torch, tadropedge"],
    "first use of tadropedge.Graph": ["-c", "import tadropedge; tadropedge.Graph.from_edge_index([[0], [1]])"],
    "tadropedge --help": [*CLI, "--help"],
    "tadropedge --version": [*CLI, "--version"],
    "tadropedge compare --help": [*CLI, "compare", "--help"],
    "tadropedge trian (a typo)": [*CLI, "trian"],
    "tadropedge train karat (a typo)": [*CLI, "train", "karat"],
}


def seconds(arguments: list[str]) -> tuple[float, float]:
    """Wall-clock and CPU seconds of one fresh process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, check=False)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", default="results/benchmarks/startup-cpu.json")
    options = parser.parse_args()
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in CASES}
    for _ in range(options.runs):
        for name, arguments in CASES.items():
            measured[name].append(seconds(arguments))
    best = {name: (min(wall for wall, _ in runs), min(cpu for _, cpu in runs)) for name, runs in measured.items()}
    torch_alone = best["import torch"][0]
    rows = [
        {
            "case": name,
            "seconds": round(wall, 3),
            "cpu_seconds": round(cpu, 3),
            "beyond_torch": round(wall - torch_alone, 3),
            "runs": options.runs,
        }
        for name, (wall, cpu) in best.items()
    ]
    for row in rows:
        print("{case:34s} {seconds:7.3f} s   {cpu_seconds:7.3f} s of CPU   torch {beyond_torch:+7.3f} s".format(**row))
    write(options.out, {"startup": rows})


if __name__ == "__main__":
    main()
