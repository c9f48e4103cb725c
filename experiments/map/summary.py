"""What the cells of a map say: a table of all of them, and for each condition the mean over its graphs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from scipy.special import stdtrit

from experiments.frame import write_rows
from experiments.map.recipe import Cell
from experiments.map.run import YARDSTICK
from tadropedge.lab import Store, decide

NO_CLAIM = "no claim"
WORDS = ("better", "same", "worse", "undecided", NO_CLAIM)
ORIGINAL = "original"
LEAST_ERROR = 1e-4  # of a difference: where all replicates agree, its interval has no width


def summarise(cells: Sequence[Cell], folders: Sequence[Path]) -> pd.DataFrame:
    """Write ``map.csv``, ``README.md`` and ``map.html`` into the first folder: what the stores of all hold by now."""
    folder, found = folders[0], {}
    for each in folders:
        with Store(each) as store:
            found |= store.get(cell.key for cell in cells)
    whole = {cell.name: cell for cell in sorted(cells, key=lambda one: one.replicates) if cell.key in found}
    table = pd.DataFrame([row for cell in whole.values() for row in rows_of(cell, found[cell.key])])
    if table.empty:
        raise SystemExit(f"{folder}: no cell is whole yet")
    write_rows(table, folder / "map.csv")
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=select_autoescape(("html.j2",)),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found_means = means(table).sort_values(["better", "mean"], ascending=False)
    parts = {
        "rows": table[table["word"] != ""].to_dict("records"),
        "means": found_means.to_dict("records"),
        "first": found_means.groupby(["measure", "condition"]).head(1).to_dict("records"),
        "conditions": list(dict.fromkeys(table["condition"])),
        "missing": [name for name in dict.fromkeys(cell.name for cell in cells) if name not in whole],
        "words": WORDS,
    }
    for page in ("README.md", "map.html"):
        (folder / page).write_text(made.get_template(f"{page}.j2").render(**parts), encoding="utf-8")
    return table


def rows_of(cell: Cell, found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each candidate of a cell; controls stand in the row of the candidate that they control."""
    results, pieces = found["results"], found["pieces"]
    by_name = {row["candidate"]: row for row in results["rows"]}
    tests = {name: [_number(one["test"]) for one in row["replicates"]] for name, row in by_name.items()}
    over = decide({**tests, YARDSTICK: found["yardstick"]}, [(ORIGINAL, YARDSTICK)])[ORIGINAL, YARDSTICK]
    claims = min(over.low, _number(results["yardstick"]["difference"]["low"])) > 0
    names = [name for name, row in by_name.items() if name == ORIGINAL or ORIGINAL in row["against"]]
    shared = {
        "yardstick": float(np.mean(found["yardstick"])),
        "over_yardstick_low": over.low,
        "seconds": round(sum(piece["seconds"] for piece in pieces), 1),
        **{part: ", ".join(dict.fromkeys(piece[part] for piece in pieces)) for part in ("commit", "machine")},
        "protocol": f"nested, {cell.trials} trials in each replicate, {cell.training['epochs']} epochs, "
        f"{len(names) - 1} intervals of 95 % together, seed {cell.seed}",
    }
    for name in names:
        row, controls = by_name[name], dict(by_name[name]["against"])
        against = controls.pop(ORIGINAL, {})
        gaps = np.subtract(tests[name], tests[ORIGINAL])
        gaps = gaps[~np.isnan(gaps)]
        kept = [one["kept_share"] for one in row["replicates"] if one["kept_share"] is not None]
        yield {
            "dataset": cell.graph,
            "condition": cell.condition,
            "candidate": name,
            "measure": results["run"]["measure"],
            **{end: row[end] for end in ("mean", "low", "high")},
            "replicates": len(tests[name]),
            "word": against.get("word", "") if claims or not against else NO_CLAIM,
            "difference": against.get("difference"),
            **{f"difference_{end}": against.get(end) for end in ("low", "high")},
            "error": gaps.std(ddof=1) / math.sqrt(len(gaps)) if against and len(gaps) > 1 else None,
            "needed": against.get("needed"),
            "controls": "; ".join(f"{other} {one['word']}" for other, one in controls.items()),
            "beats_controls": all(one["word"] == "better" for one in controls.values()) if controls else None,
            "kept_share": np.mean(kept) if kept else None,
            "epoch_seconds": row["seconds_per_epoch"]["train"],
            **shared,
        }


def means(table: pd.DataFrame) -> pd.DataFrame:
    """For each measure, condition and candidate: the mean over graphs with its interval, and how many say which word.

    Cells that make no claim count as such, and are in no mean. ``proven`` are those that are better and beat all of
    their controls, if they have any.
    """
    lines = []
    compared = table[table["word"] != ""]
    for place, mine in compared.groupby(["measure", "condition", "candidate"], sort=False):
        told = mine[mine["word"] != NO_CLAIM]
        mean, low, high = random_effects(told["difference"], told["error"])
        better = told[told["word"] == "better"]
        lines.append(
            dict(zip(("measure", "condition", "candidate"), place, strict=True))
            | {"graphs": len(mine), "mean": mean, "low": low, "high": high}
            | {word: int((mine["word"] == word).sum()) for word in WORDS}
            | {"proven": sum(beats is not False for beats in better["beats_controls"])}
        )
    return pd.DataFrame(lines)


def random_effects(values: Sequence[float], errors: Sequence[float]) -> tuple[float, float, float]:
    """The mean of effects ``y_i`` that differ between graphs, and its 95 % interval by Hartung and Knapp (2001).

    The variance τ² between graphs is that of DerSimonian and Laird (1986); with w_i = 1 / (error_i² + τ²) and k graphs,
    the interval is Σ w y / Σ w ± t_(k−1) · √(Σ w (y − mean)² / ((k − 1) Σ w)).

    >>> [round(value, 4) for value in random_effects([0.01, 0.03, 0.02], [0.001, 0.001, 0.001])]  # 4.303 · 0.01 / √3
    [0.02, -0.0048, 0.0448]
    """
    y, k = np.asarray(values, dtype=float), len(values)
    if k < 2:
        return (float(y[0]) if k else math.nan), -math.inf, math.inf
    variance = np.maximum(np.asarray(errors, dtype=float), LEAST_ERROR) ** 2
    w = 1 / variance
    spread = (w * (y - (w * y).sum() / w.sum()) ** 2).sum()
    w = 1 / (variance + max(0.0, (spread - (k - 1)) / (w.sum() - (w**2).sum() / w.sum())))
    mean = (w * y).sum() / w.sum()
    half = stdtrit(k - 1, 0.975) * math.sqrt((w * (y - mean) ** 2).sum() / ((k - 1) * w.sum()))
    return float(mean), float(mean - half), float(mean + half)


def _number(value: float | None) -> float:
    """What JSON cannot say, put back."""
    return math.nan if value is None else value
