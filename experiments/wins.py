"""Where the methods win: each row measures one goal by the library's own protocol, against its controls.

python -m experiments.wins few-labels [--replicates 30] [--device cuda] [--out results/wins]
python -m experiments.wins all --estimate          # how many trainings and minutes; nothing is trained

A cell of a row is one comparison; ``--only cora`` runs some. All share the store in OUT, so that a killed run goes on
where it was. A row ends with OUT/ROW.csv (a line per replicate) and OUT/ROW-differences.csv (a line per difference that
a goal is about). What PyG's own layers gain from a tenth of the edges is timed by ``benchmarks/pyg.py``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tadropedge as tde
from experiments.frame import commit, machine, write_rows
from tadropedge.lab import Candidate, Experiment, Search, Store, TrainingSettings, Trial, load, train

SCORED, PLAIN, DROPOUT = "degree-proportional:consistent", "dropedge:consistent", "original:consistent"
LIKE, BOTH = "jaccard-proportional:weighted", "jaccard-proportional:weighted:consistent"
AGREEING = (SCORED, PLAIN, DROPOUT, "sharpen")
EVERYTHING = ("dropedge", "degree-proportional", LIKE, "cosine-proportional:weighted", SCORED, BOTH, "auto")
TENTHS = tuple(f"dropedge@{share}:finish" for share in (0.1, 0.05, 0.02))
OTHERS = "cora_ml citeseer_full acm dblp coauthor_cs amazon_photo chameleon_filtered squirrel_filtered minesweeper"
GRAPHS = ("cora", "citeseer", "pubmed", *(f"graphs/{name}.npz" for name in OTHERS.split()))


@dataclass(frozen=True)
class Cell:
    """One comparison: data, methods, and the differences that a goal is about beside those from not dropping."""

    data: str
    methods: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...] = ()
    options: dict[str, Any] = field(default_factory=dict)  # of load
    experiment: dict[str, Any] = field(default_factory=dict)
    controls: str = "none"
    trials: int = 16
    replicates: int = 30

    @property
    def name(self) -> str:
        """What the cell is called in files."""
        told = {**self.options, **self.experiment}
        words = [Path(self.data).stem, *(f"{key}-{value}" for key, value in told.items())]
        return "-".join(words).translate(str.maketrans(",", "-", "() "))


def public() -> Iterator[Cell]:
    """GRAND's splits: tuned once, then many seeds; validation chooses among networks and methods."""
    for data in ("cora", "citeseer", "pubmed"):
        for network, layers in (("gcn", 2), ("appnp", 8), ("gcnii", 8)):
            told = {"network": network, "layers": layers}
            yield Cell(data, AGREEING, (), {"split": "public"}, told, trials=40, replicates=100)


def few_labels() -> Iterator[Cell]:
    """Consistency against the tuned network, and against its controls; the spread over splits of every arm."""
    pairs = ((SCORED, DROPOUT), (SCORED, PLAIN), (DROPOUT, "sharpen"))
    few, usual = ("graphs/cora_ml.npz", "graphs/citeseer_full.npz"), ("cora", "citeseer", "graphs/cora_ml.npz")
    for data, labels in (*((data, 5) for data in few), *((data, 20) for data in usual)):
        yield Cell(data, AGREEING, pairs, {"per_class": labels})


def noise() -> Iterator[Cell]:
    """As many random edges as there are edges: weights, consistency, and both."""
    pairs = ((BOTH, LIKE), (BOTH, DROPOUT))
    for data in ("cora", "graphs/cora_ml.npz"):
        yield Cell(data, (LIKE, BOTH, DROPOUT), pairs, {"per_class": 20, "add_edges": 1.0})


def tenth() -> Iterator[Cell]:
    """A tenth of the edges and a finish against all of them, and against what costs as little."""
    pairs = ((TENTHS[0], "dropedge@0:finish"), (TENTHS[0], "epochs"))
    for network in ("gcn", "sage", "gat"):
        for data, nodes in (("amazon_photo", 7650), ("squirrel_filtered", 2223), ("chameleon_filtered", 890)):
            told = {"split": (nodes - 2 * (nodes // 5), nodes // 5, nodes // 5)}  # drawn afresh for each replicate
            yield Cell(f"graphs/{data}.npz", TENTHS, pairs, told, {"network": network}, controls="all")


def auto() -> Iterator[Cell]:
    """``auto`` with as many trials as any other, against not dropping and the best of all."""
    for data in GRAPHS:
        yield Cell(data, EVERYTHING, (("auto", "best"),), {"per_class": 20}, replicates=20)


ROWS = {"few-labels": few_labels, "noise": noise, "tenth": tenth, "public": public, "auto": auto}


class Estimate:
    """Stops a comparison before it trains anything."""

    def estimate(self, found: Any) -> None:
        """Say how much it would train."""
        raise InterruptedError(f"{found.trainings:,} trainings, about {found.seconds / 60:.0f} minutes")


def measure(cell: Cell, store: Store, options: argparse.Namespace) -> list[dict[str, Any]]:
    """A line per replicate of one comparison."""
    data = load(cell.data, **cell.options)
    trials, replicates, epochs = options.trials or cell.trials, options.replicates or cell.replicates, options.epochs
    training = TrainingSettings(epochs=epochs, rungs=(epochs // 8, epochs // 3) if epochs >= 24 else ())
    found = tde.compare(
        data, cell.methods, search=Search(trials=trials, replicates=replicates, seed=options.seed), training=training,
        controls=cell.controls, out=store, device=options.device,
        watch=Estimate() if options.estimate else None, **cell.experiment,
    )  # fmt: skip
    way = "tuned once, then starts" if found.run["split"] == "fixed" else "nested"
    label = labelled(f"{way}, {trials} trials, {replicates} replicates, {epochs} epochs", options)
    lines = list[dict[str, Any]]()
    for row in found.rows:
        costs = {"seconds_per_epoch": row.seconds_per_epoch["train"], "peak_bytes": row.peak_bytes}
        costs |= {f"{name}_while_dropping": value for name, value in (row.while_dropping or {}).items()}
        for one in row.replicates:
            scores = {"number": one.number, "validation": one.validation, "test": one.test, "kept": one.kept_share}
            lines.append({"cell": cell.name, "candidate": row.candidate, **scores, **costs, **label})
    return lines


def differences(cell: Cell, lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line per pair: the paired difference in points with its own 95 % half-width, and what else a goal asks."""
    of = {line["candidate"]: [one for one in lines if one["candidate"] == line["candidate"]] for line in lines}
    tests = {name: [100 * line["test"] for line in some] for name, some in of.items()}
    best = max((name for name in tests if name != "auto"), key=lambda name: np.mean(tests[name]))
    shorter = next((name for name in tests if name.startswith("original:epochs")), "")
    told = []
    for name, reference in (*((name, "original") for name in tests), *cell.pairs):
        other = {"best": best, "epochs": shorter}.get(reference, reference)
        if name not in tests or other not in tests or name == other:
            continue
        verdict, spread = tde.lab.decide(tests, [(name, other)])[name, other], np.std(tests[name], ddof=1)
        told.append({
            "cell": cell.name, "candidate": name, "against": other, "test": np.mean(tests[name]),
            "validation": 100 * np.mean([line["validation"] for line in of[name]]), "difference": verdict.difference,
            "half_width": (verdict.high - verdict.low) / 2, "spread": spread,
            "spread_over_original": spread / np.std(tests["original"], ddof=1), "worst": min(tests[name]),
            "faster": of[other][0]["seconds_per_epoch"] / of[name][0]["seconds_per_epoch"],
        })  # fmt: skip
    return told


def draws(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Seconds per epoch of four draws and of one on PubMed: the fastest of five trainings, by their epochs alone."""
    data, epochs, spent = load("pubmed", per_class=20), max(2, options.epochs // 20), {}
    for name in ("degree-proportional@0.5", "degree-proportional@0.5:consistent"):
        trial, times = Trial(candidate=Candidate.parse(name)), []
        for count in (epochs, 2 * epochs):
            told = Experiment(data=data, training=TrainingSettings(epochs=count), device=options.device)
            times.append(min(train(told, [trial])[0].seconds for _ in range(5)))
        spent[name] = (times[1] - times[0]) / epochs
    label = labelled(f"fastest of 5 trainings of {epochs}, then of {2 * epochs} epochs", options)
    return [{"candidate": name, "seconds": each, **label} for name, each in spent.items()]


def labelled(protocol: str, options: argparse.Namespace) -> dict[str, Any]:
    """What every line says of its making."""
    return {"protocol": protocol, "seed": options.seed, "commit": commit(), "machine": machine(options.device)}


def main() -> None:
    """Measure rows, cell by cell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="+", choices=["all", *ROWS, "draws"], metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--replicates", type=int, help="instead of a row's own")
    parser.add_argument("--trials", type=int, help="instead of a row's own")
    parser.add_argument("--epochs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="cells whose name holds this")
    parser.add_argument("--out", type=Path, default=Path("results/wins"))
    parser.add_argument("--estimate", action="store_true", help="say how much there is to do, and do nothing")
    options = parser.parse_args()
    for row in [*ROWS, "draws"] if "all" in options.rows else options.rows:
        lines, told = draws(options) if row == "draws" and not options.estimate else [], []
        for cell in ROWS[row]() if row in ROWS else ():
            if options.only not in cell.name:
                continue
            try:
                with Store(options.out) as store:
                    found = measure(cell, store, options)
            except InterruptedError as estimate:
                print(f"{row}, {cell.name}: {estimate}", flush=True)
                continue
            lines, told = [*lines, *found], [*told, fresh := pd.DataFrame(differences(cell, found))]
            write_rows(pd.concat(told), options.out / f"{row}-differences.csv")
            print(f"{cell.name}\n{fresh.drop(columns='cell').round(2).to_string(index=False)}", flush=True)
        if lines:
            options.out.mkdir(parents=True, exist_ok=True)
            write_rows(pd.DataFrame(lines), options.out / f"{row}.csv")


if __name__ == "__main__":
    main()
