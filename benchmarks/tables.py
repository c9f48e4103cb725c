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


def training() -> str:
    """One training on a CPU, a hundred at once on a GPU, beside PyG."""
    lines = [
        "| graph | layers | device | trainings | ours | PyG, one at a time | ratio |",
        "|---|---:|---|---:|---:|---:|---:|",
    ]
    for row in load("training-cpu.json")["training"]:
        lines.append(
            "| {graph} | {layers} | {device} | 1 | {milliseconds_an_epoch:.1f} ms an epoch "
            "| {pyg_milliseconds:.1f} ms an epoch | {times_faster:.1f} × |".format(**row)
        )
    for row in load("training-cuda.json")["training"]:
        lines.append(
            "| {graph} | {layers} | {device} | {trials} × 400 epochs | {seconds:.2f} s "
            "| {pyg_seconds_scaled:.0f} s (scaled) | {times_faster:.0f} × |".format(**row)
        )
    notes = [f"* {source(name, load(name)['run'])}" for name in ("training-cpu.json", "training-cuda.json")]
    return "\n".join([*lines, "", *notes])


def calibration() -> str:
    """The noise at which source localisation scores what the paper prints."""
    lines = ["| noise | tuned original | between graphs | Bayes-optimal |", "|---:|---:|---:|---:|"]
    for row in load("calibration.json")["calibration"]:
        lines.append(
            "| {noise:g} | {tuned_original:.3f} | ± {deviation_between_graphs:.3f} | {bayes:.3f} |".format(**row)
        )
    note = source("calibration.json", load("calibration.json")["run"]).replace("(results/", "(../results/")
    return "\n".join([*lines, "", f"* {note}"])


def cora() -> str:
    """Both protocols on Cora, from the committed comparison."""
    content = json.loads((ROOT / "results" / "cora-gcn-2" / "results.json").read_text())
    rows = content["compare"]
    trials, seeds = rows[0]["paper_protocol"]["trials"], rows[0]["honest"]["seeds"]
    lines = [
        f"| method | paper protocol (best test of {trials} trials) | honest protocol ({seeds} fresh seeds and splits) "
        "| difference to DropEdge at the same budget | p |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        honest = row["honest"]
        half = (honest["high"] - honest["low"]) / 2
        cells = [row["method"], f"{100 * row['paper_protocol']['best_test']:.1f} %"]
        cells.append(f"{100 * honest['mean']:.2f} ± {100 * half:.2f} %")
        if honest["difference"] is None:
            cells += ["", ""]
        else:
            wide = (honest["difference_high"] - honest["difference_low"]) / 2
            cells += [f"{100 * honest['difference']:+.2f} ± {100 * wide:.2f} points", f"{honest['p_value']:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    run = content["run"]
    note = (
        f"* [results/cora-gcn-2](results/cora-gcn-2): commit {run['commit']}, {run['machine']}, {run['seconds']:.0f} s"
    )
    return "\n".join([*lines, "", note])


PLACES = {
    "README.md": {"sampling": sampling, "training": training, "cora": cora},
    "docs/method.md": {"accuracy": accuracy},
    "docs/laboratory.md": {"calibration": calibration},
}


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
