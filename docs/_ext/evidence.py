"""What was measured of a method: seconds and verdicts, read from the files in ``results/`` whenever the site is built.

Nothing here is written by hand. What no file holds is not measured, and the card says so.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tadropedge.comparison.judging import KINDS, Against
from tadropedge.comparison.paired import ALPHA
from tadropedge.comparison.results import MethodRow, read_results
from tadropedge.errors import TadropedgeError
from tadropedge.method import Method
from tadropedge.publish.wording import percent, plus_minus, points

Part = tuple[str, str]  # the kind of a part of a method and its name, such as ("score", "degree")

RESULTS = Path(__file__).parents[2] / "results"
REFERENCES = ("none", "dropedge", "budget")
PAPER = {  # items of the reproduction, and what their rows are measured against
    "table1": "the paper's Table 1, reproduced, against DropEdge tuned",
    "table3": "the paper's Table 3, reproduced, against DropEdge tuned",
    "accuracy-vs-p": "at fixed settings on Cora, against DropEdge at the same budget",
    "inverse": "at fixed settings on the citation graphs, against DropEdge at the same budget",
}
OUTCOMES = {"is better than": "better", "is worse than": "worse", "cannot be told apart": "undecided"}


@dataclass(frozen=True, kw_only=True)
class Study:
    """A row of a comparison: the method, where it was measured, its accuracy and the difference to each reference."""

    method: Method
    folder: str
    data: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Measured:
    """What was measured of one thing: ``seconds`` and ``verdicts`` are sentences, ``studies`` rows of a table.

    ``methods`` are the names of the methods that the verdicts and studies are about.
    """

    seconds: list[str] = field(default_factory=list)
    studies: list[Study] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)
    methods: set[str] = field(default_factory=set)


def files(root: Path = RESULTS) -> list[Path]:
    """Every file that is read, for the build to know when cards are out of date."""
    return sorted(root.rglob("*.json"))


def entries(file: Path, *keys: str) -> list[dict[str, Any]]:
    """The rows of a results file under the first of ``keys`` that it has; none where there is no file.

    >>> entries(Path("no-such-file.json"), "large")
    []
    """
    if not file.is_file():
        return []
    content = json.loads(file.read_text(encoding="utf-8"))
    return next((content[key] for key in keys if isinstance(content.get(key), list)), [])


@cache
def measured(root: Path = RESULTS) -> dict[Part, Measured]:
    """What was measured, by the kind of a thing and its name, such as ``("score", "degree")``."""
    found: dict[Part, Measured] = defaultdict(Measured)
    for study in studies(root):
        for part in parts(study.method):
            found[part].studies.append(study)
            found[part].methods.add(study.method.name)
    for part, sentence in _seconds(root / "benchmarks"):
        found[part].seconds.append(sentence)
    for name, part, sentence in _verdicts(root):
        found[part].verdicts.append(sentence)
        found[part].methods.add(name)
    return dict(found)


def parts(method: Method) -> list[Part]:
    """What a method consists of.

    >>> parts(Method.of("graphsage+inverse-degree-cdf:nested"))
    [('score', 'degree'), ('strategy', 'cdf'), ('option', 'nested'), ('network', 'graphsage')]
    """
    found = [("score", method.score), ("strategy", method.strategy)]
    found += [("option", option) for option in method.options]
    found += [("network", method.network), ("form", "auto" if method.auto else None)]
    found += [("form", "original" if method.name == "original" else None)]
    return [(kind, name) for kind, name in found if name is not None]


def studies(root: Path = RESULTS) -> Iterator[Study]:
    """Every row of every comparison in a folder of results."""
    for file in sorted(root.glob("*/results.json")):
        if "compare" in json.loads(file.read_text(encoding="utf-8")):
            for row in read_results(file).rows:
                method = _method(row.method)
                if method is not None:
                    yield Study(method=method, folder=file.parent.name, data=_data(row), cells=tuple(_cells(row)))


def _method(name: str) -> Method | None:
    try:
        return Method.of(name)
    except TadropedgeError:  # of a plug-in, or of a user's own module
        return None


def _data(row: MethodRow) -> str:
    return f"{row.dataset}, {row.backbone} of {row.layers} layers"


def _cells(row: MethodRow) -> Iterator[str]:
    yield plus_minus(percent(row.honest.mean), row.honest.low, row.honest.high) if row.honest else "–"
    for kind in REFERENCES:
        yield _difference((row.against or {}).get(kind))


def _difference(test: Against | None) -> str:
    if test is None or test.difference is None:
        return "–"
    return f"{plus_minus(points(test.difference), test.difference_low, test.difference_high)} ({test.outcome})"


def reference_names() -> list[str]:
    """The columns of the differences in a study."""
    return [f"against {KINDS[kind]}" for kind in REFERENCES]


def _seconds(folder: Path) -> Iterator[tuple[Part, str]]:
    """What things cost, from the benchmarks."""
    for device in ("cpu", "cuda"):
        place = {"cpu": "on two cores", "cuda": "on a GPU"}[device]
        for row in entries(folder / f"scores-{device}.json", "large"):
            yield ("score", row["score"]), f"{_time(row['seconds'])} for {_size(row)} {place}"
        for score, file in (("aggregate", "spectrum-growth"), ("effective", "effective-growth")):
            solved = [row for row in entries(folder / f"{file}-{device}.json", "growth") if not row.get("status")]
            kind = "combinatorial" if score == "aggregate" else "effective"
            solved = [row for row in solved if row["laplacian"] == kind]
            if solved:
                row = max(solved, key=lambda row: row["edges"])
                yield ("score", score), f"{_time(row['seconds'])} for {_size(row)} {place}"
        for row in entries(folder / f"baselines-{device}.json", "baselines"):
            told = f"{row['milliseconds_an_epoch']:.0f} ms per epoch on {row['graph']} {place}"
            if row["method"] == "original":  # of two layers
                yield from ((part, told) for part in (("form", "original"), ("network", "gcn")))
            else:
                yield ("network", row["method"]), f"{told}, {row['times_our_gcn']:.1f} times a GCN"
        for row in entries(folder / f"sampling-{device}.json", "sampling"):
            part = ("strategy", "uniform")
            yield (
                part,
                f"{row['milliseconds']:.2f} ms per draw on {row['graph']} {place} (PyG {row['pyg_milliseconds']:.2f})",
            )
        for row in entries(folder / f"forests-{device}.json", "forests"):
            for option in ("connected", "exact"):
                times = f"{row[f'{option}_milliseconds']:.2f} ms per draw, {row['plain_milliseconds']:.2f} without"
                yield ("option", option), f"{times}, on {row['graph']} {place}"


def _verdicts(root: Path) -> Iterator[tuple[str, Part, str]]:
    """What came out elsewhere than in a comparison: the method, the part of it that this is about, a sentence."""
    paper, benchmarks = root / "paper" / "results.json", root / "benchmarks"
    for key, words in PAPER.items():
        yield from _against_dropedge(entries(paper, key), words)
    yield from _table2(entries(paper, "table2"))
    yield from _noise(entries(benchmarks / "noise.json", "noise"))
    yield from _unbiased(entries(benchmarks / "unbiased.json", "unbiased"))


def _unbiased(rows: list[dict[str, Any]]) -> Iterator[tuple[str, Part, str]]:
    """How far the mean operator is from that of the whole graph, over all normalisations."""
    for name in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == name]
        kept = percent(mine[0]["keep_ratio"], 0)
        off = [f"{min(values):.2f} to {max(values):.2f}" for values in
               ([row[f"{kind}_bias"] for row in mine] for kind in ("unbiased", "renormalised"))]  # fmt: skip
        told = f"`{name}`, {kept} % kept, {len(mine)} normalisations: the relative error of the mean operator is"
        yield name, ("option", "unbiased"), f"{told} {off[0]}, renormalised {off[1]}"


def _against_dropedge(rows: list[dict[str, Any]], words: str) -> Iterator[tuple[str, Part, str]]:
    """How often each method was better or worse than DropEdge in an item of the reproduction."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        outcome = _outcome(row)
        if outcome is not None:
            counts[row["method"]][outcome] += 1
    for name, count in counts.items():
        method = _method(name)
        said = f"better in {count['better']} of {count.total()} cases, worse in {count['worse']}"
        for part in parts(method) if method is not None else []:
            yield name, part, f"`{name}`, {words}: {said}, undecided in {count['undecided']}"


def _outcome(row: dict[str, Any]) -> str | None:
    """The word for a row: of its sentence, or of the difference to DropEdge at the same budget."""
    said = (row.get("honest") or {}).get("verdict") or ""
    test = row.get("same_budget")
    if test and test["p_value"] is not None:
        return "undecided" if test["p_value"] > ALPHA else "better" if test["difference"] > 0 else "worse"
    return next((word for mark, word in OUTCOMES.items() if mark in said), None)


def _table2(rows: list[dict[str, Any]]) -> Iterator[tuple[str, Part, str]]:
    """The networks of the paper's Table 2 beside a GCN without dropping."""
    plain = {row["dataset"]: row for row in rows if row["row"] == "Original-GCN"}
    for row in rows:
        network = _network(row)
        if network is None or row["honest_mean"] is None:
            continue
        base = plain.get(row["dataset"])
        beside = f", a GCN {_accuracy(base)}" if base and base is not row and base["honest_mean"] is not None else ""
        told = f"{row['dataset']} (the paper's Table 2, reproduced): {_accuracy(row)} %{beside}"
        yield row["method"], ("network", network), told


def _network(row: dict[str, Any]) -> str | None:
    """The network of a row without dropping: a competitor, or a backbone."""
    method = _method(row["method"])
    if method is not None and method.network:
        return method.network
    return row["row"].partition("-")[2].lower() if row["method"] == "original" else None


def _accuracy(row: dict[str, Any]) -> str:
    return plus_minus(percent(row["honest_mean"]), row["honest_low"], row["honest_high"])


def _noise(rows: list[dict[str, Any]]) -> Iterator[tuple[str, Part, str]]:
    """How well a score finds random edges, and what dropping by it gained over DropEdge."""
    for row in rows:
        method = _method(row["method"])
        if method is None or method.score is None or row["variant"] != "plain":
            continue
        found = f"it scores a random edge lower with a chance of {row['area']:.2f}"
        gain = f"{row['gain']:+.1f} ± {row['gain_error']:.1f} points against DropEdge".replace("-", "−")
        told = f"`{row['method']}`, {row['graph']} with as many random edges as true ones: {found}"
        yield row["method"], ("score", method.score), f"{told}; with half of all edges {gain}"


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 0.1 else f"{1000 * seconds:.2g} ms"


def _size(row: dict[str, Any]) -> str:
    return f"{row['nodes']:,} nodes and {row['edges']:,} edges"
