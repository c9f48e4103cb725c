"""The tables of README and docs, made from the files in results/.

Run after a benchmark: python benchmarks/tables.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def load(name: str) -> dict[str, Any]:
    """The content of a results file."""
    content: dict[str, Any] = json.loads((ROOT / "results" / "benchmarks" / name).read_text())
    return content


def source(name: str, run: dict[str, Any]) -> str:
    """Where a table's numbers come from."""
    versions = f"torch {run['versions']['torch']}, torch-geometric {run['versions']['torch-geometric']}"
    return f"[{name}](results/benchmarks/{name}): commit {run['commit']}, {run['machine']}, {versions}"


def sampling() -> str:
    """One training epoch's mask and operator, CPU and GPU."""
    files = ("sampling-cpu.json", "sampling-cuda.json")
    lines = ["| graph | edges | device | ours | PyG | ratio |", "|---|---:|---|---:|---:|---:|"]
    for name in files:
        for row in load(name)["sampling"]:
            lines.append(
                "| {graph} | {edges:,} | {device} | {milliseconds:.2f} ms | {pyg_milliseconds:.2f} ms "
                "| {times_faster:.1f} × |".format(**row)
            )
    notes = [f"* {source(name, load(name)['run'])}" for name in files]
    return "\n".join([*lines, "", *notes])


def accuracy() -> str:
    """Weights against a dense solution."""
    lines = [
        "| dataset | Laplacian | q | largest error | Spearman | ties at zero | ours | dense |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in load("accuracy.json")["accuracy"]:
        lines.append(
            "| {dataset} | {laplacian} | {q} | {largest_error:.0e} | {spearman:.6f} | {ties_at_zero:.2%} "
            "| {seconds:.2f} s | {dense_seconds:.0f} s |".format(**row)
        )
    note = source("accuracy.json", load("accuracy.json")["run"]).replace("(results/", "(../results/")
    return "\n".join([*lines, "", f"* {note}"])


PLACES = {"README.md": {"sampling": sampling}, "docs/method.md": {"accuracy": accuracy}}


def filled(text: str, name: str, table: str) -> str:
    """The text with a fresh table between its two marks."""
    begin, end = f"<!-- {name} table -->", f"<!-- end of {name} table -->"
    before, rest = text.split(begin)
    after = rest.split(end)[1] if end in rest else rest
    return f"{before}{begin}\n{table}\n{end}{after}"


def main() -> None:
    for file, tables in PLACES.items():
        path = ROOT / file
        text = path.read_text(encoding="utf-8")
        for name, make in tables.items():
            text = filled(text, name, make())
        path.write_text(text, encoding="utf-8")
        print(f"written: {file}")


if __name__ == "__main__":
    main()
