"""What was measured of a method: seconds and verdicts, read from the files in ``results/`` whenever the site is built.

Nothing here is written by hand. What no file holds is not measured, and the card says so.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tadropedge.comparison.judging import KINDS, Against
from tadropedge.comparison.results import MethodRow, read_results
from tadropedge.errors import TadropedgeError
from tadropedge.method import Method
from tadropedge.publish.wording import percent, plus_minus, points

RESULTS = Path(__file__).parents[2] / "results"
REFERENCES = ("none", "dropedge", "budget")
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
    """What was measured of one thing: ``seconds`` and further ``verdicts`` are sentences, ``studies`` rows of a table."""

    seconds: list[str] = field(default_factory=list)
    studies: list[Study] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)


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
def measured(root: Path = RESULTS) -> dict[tuple[str, str], Measured]:
    """What was measured, by the kind of a thing and its name, such as ``("score", "degree")``."""
    found: dict[tuple[str, str], Measured] = defaultdict(Measured)
    for study in studies(root):
        for part in parts(study.method):
            found[part].studies.append(study)
    for part, sentence in _seconds(root / "benchmarks"):
        found[part].seconds.append(sentence)
    for part, sentence in _verdicts(root):
        found[part].verdicts.append(sentence)
    return dict(found)


def parts(method: Method) -> list[tuple[str, str]]:
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


def _seconds(folder: Path) -> Iterator[tuple[tuple[str, str], str]]:
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
            part = ("form", "original") if row["method"] == "original" else ("network", row["method"])
            told = f"{row['milliseconds_an_epoch']:.0f} ms per epoch on {row['graph']} {place}"
            yield part, told if part[0] == "form" else f"{told}, {row['times_our_gcn']:.1f} times a GCN"
        for row in entries(folder / f"sampling-{device}.json", "sampling"):
            part = ("strategy", "uniform")
            yield part, f"{row['milliseconds']:.2f} ms per draw on {row['graph']} {place} (PyG {row['pyg_milliseconds']:.2f})"
        for row in entries(folder / f"forests-{device}.json", "forests"):
            for option in ("connected", "exact"):
                times = f"{row[f'{option}_milliseconds']:.2f} ms per draw, {row['plain_milliseconds']:.2f} without"
                yield ("option", option), f"{times}, on {row['graph']} {place}"


def _verdicts(root: Path) -> Iterator[tuple[tuple[str, str], str]]:
    """What came out elsewhere than in a comparison."""
    yield from _table1(entries(root / "paper" / "results.json", "table1"))
    yield from _table2(entries(root / "paper" / "results.json", "table2"))
    yield from _noise(entries(root / "benchmarks" / "noise.json", "noise"))
    rows = entries(root / "benchmarks" / "unbiased.json", "unbiased")
    for row in rows:
        yield (
            ("option", "unbiased"),
            f"{row['method']}, {row['normalization']}, {percent(row['keep_ratio'], 0)} % kept: the mean operator is off by "
            f"{row['unbiased_bias']:.2f}, renormalised by {row['renormalised_bias']:.2f}",
        )


def _table1(rows: list[dict[str, Any]]) -> Iterator[tuple[tuple[str, str], str]]:
    """How often each method beat DropEdge in the reproduction of the paper's Table 1."""

    def outcome(row: dict[str, Any]) -> str | None:
        said = (row["honest"] or {}).get("verdict") or ""
        return next((word for mark, word in OUTCOMES.items() if mark in said), None)

    counts = _counted(rows, lambda row: row["method"], outcome)
    for name, count in counts.items():
        method = _method(name)
        for part in parts(method) if method is not None else []:
            yield (
                part,
                f"`{name}` in the paper's Table 1, reproduced: better than DropEdge in {count['better']} of "
                f"{count.total()} cells, worse in {count['worse']}, undecided in {count['undecided']}",
            )


def _counted(
    rows: Iterable[dict[str, Any]],
    key: Callable[[dict[str, Any]], str],
    outcome: Callable[[dict[str, Any]], str | None],
) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        word = outcome(row)
        if word is not None:
            counts[key(row)][word] += 1
    return dict(counts)


def _table2(rows: list[dict[str, Any]]) -> Iterator[tuple[tuple[str, str], str]]:
    """The networks of the paper's Table 2 beside a GCN without dropping."""
    plain = {row["dataset"]: row for row in rows if row["row"] == "Original-GCN"}
    for row in rows:
        network = _network(row)
        if network is None or row["honest_mean"] is None:
            continue
        base = plain.get(row["dataset"])
        beside = f", a GCN {_accuracy(base)}" if base and base is not row and base["honest_mean"] is not None else ""
        yield ("network", network), f"{row['dataset']} (the paper's Table 2, reproduced): {_accuracy(row)} %{beside}"


def _network(row: dict[str, Any]) -> str | None:
    """The network of a row without dropping: a competitor, or a backbone."""
    method = _method(row["method"])
    if method is not None and method.network:
        return method.network
    return row["row"].partition("-")[2].lower() if row["method"] == "original" else None


def _accuracy(row: dict[str, Any]) -> str:
    return plus_minus(percent(row["honest_mean"], 1), row["honest_low"], row["honest_high"])


def _noise(rows: list[dict[str, Any]]) -> Iterator[tuple[tuple[str, str], str]]:
    """How well a score finds random edges, and what dropping by it gained over DropEdge."""
    for row in rows:
        method = _method(row["method"])
        if method is None or method.score is None or row["variant"] != "plain":
            continue
        yield (
            ("score", method.score),
            f"`{row['method']}` on {row['graph']} with as many random edges as true ones: it scores a random edge lower with "
            f"a chance of {row['area']:.2f}; at half of all edges {row['gain']:+.1f} ± {row['gain_error']:.1f} points against DropEdge",
        )


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 0.1 else f"{1000 * seconds:.2g} ms"


def _size(row: dict[str, Any]) -> str:
    return f"{row['nodes']:,} nodes and {row['edges']:,} edges"
