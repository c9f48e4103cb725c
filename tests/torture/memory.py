"""Memory that runs out at any place and size: the right result, or one line with what is needed and what is free."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import tadropedge.cli  # noqa: F401  before the limits, which are for what a command does
from tadropedge import Graph, NotEnoughMemoryError, edge_scores, sample_directed, sample_edges, shift_operator
from tadropedge.data import Dataset, load_clusters, load_source_localization
from tadropedge.diagnostics import ErrorModel, alpha_realizable, low_modes, output_variance
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.laboratory import Laboratory
from torture import Case
from torture.process import Ended, command, forked

TRIES = "memory that runs out, in every command and in Python, from what fits to what never could"

# A line that refuses names an amount of memory, and mostly two: what is needed and what is free.
AMOUNT = re.compile(r"[0-9.]+ (B|kB|MB|GB|TB)\b")
REFUSED = 2

Function = Callable[[Any], object]
Given = Callable[[], Any]  # makes what the function is given

# Commands that no machine can carry out, and what the line must name.
NEVER = {
    "train karate --epochs 2 --hidden 100000000": "hidden 100000000",
    "train karate --epochs 2 --hidden 2147483647": "hidden 2147483647",
    "train karate --epochs 2 --layers 1000000000": "1000000000 layers",
    "train karate --epochs 2 --backbone jknet --layers 100000000": "100000000 layers",
    "train karate --epochs 2 --backbone incepgcn --layers 100000": "100000 layers",
    "train karate --epochs 2000000000": "2000000000 epochs",
    "train karate --epochs 2147483647": "epochs",
    "train clusters --epochs 2 --hidden 10000000": "hidden 10000000",
    "train source-localization --epochs 2 --layers 1000000000": "1000000000 layers",
    "train source-localization --epochs 2 --hidden 100000000": "hidden 100000000",
    "compare karate --epochs 2 --trials 1000000000": "trials",
    "compare karate --epochs 2 --trials 2 --seeds 1000000000": "trials",
    "compare karate --epochs 2 --trials 2147483647": "trials",
    "compare karate --epochs 2 --trials 2 --seeds 2 --hidden 100000000": "hidden 100000000",
    "compare karate --epochs 2 --trials 2 --seeds 2 --layers 1000000000": "1000000000 layers",
    "compare karate --epochs 2000000000 --trials 2 --seeds 2": "2000000000 epochs",
}
# Commands that fit somewhere between the first and the last of these limits, in megabytes.
SOMETIMES = {
    "train karate --epochs 2": (1, 5, 20, 50, 100, 400),
    "train karate --epochs 2 --hidden 3000": (20, 100, 400, 2000),
    "train karate --epochs 2 --batch-size 2147483647": (400,),
    "train clusters --epochs 2 --method effective-cdf --out model": (5, 30, 80, 400),
    "train source-localization --epochs 2 --hidden 256": (20, 100, 300, 2000),
    "weights karate --out w": (1, 5, 20, 50, 100, 400),
    "weights clusters --score effective --out w": (5, 30, 80, 400),
    "weights medium.csv --q 5 --out w --no-figures": (10, 40, 100, 200, 600),
    "weights medium.csv --score effective --out w --no-figures": (10, 40, 100, 200, 600),
    "weights medium.csv --score effective --relative-error 0.5 --out w": (100, 600),
    "weights medium.csv --q 7990 --out w --no-figures": (300,),
    "compare karate --epochs 2 --trials 2 --seeds 2 --methods original,cdf --out c": (20, 80, 200, 600),
}


def cases() -> Iterator[Case]:
    """Commands and functions, each within limits from too little to enough."""
    for line, words in NEVER.items():
        yield Case(line, partial(never, line, words))
    for line, limits in SOMETIMES.items():
        for megabytes in limits:
            enough = megabytes == limits[-1] and "7990" not in line
            yield Case(f"{line} within {megabytes} MB", partial(within, line, megabytes, enough))
    for name, (function, given, limits) in FUNCTIONS.items():
        for megabytes in limits:
            enough = megabytes == limits[-1]
            yield Case(f"{name} within {megabytes} MB", partial(called, function, given, megabytes, enough))
    for name, (function, given) in IMPOSSIBLE.items():
        yield Case(f"{name} never fits", partial(refused, function, given))


def never(line: str, words: str, folder: Path) -> None:
    """The command is refused before any work: one line with both amounts, and nothing is written."""
    ended = command(line.split(), folder, seconds=60, megabytes=600)
    assert_line(ended, words)
    assert len(AMOUNT.findall(ended.err)) >= 2, f"expected what is needed and what is free: {ended}"
    assert not ended.out, f"words on standard output: {ended}"
    assert list(folder.iterdir()) == []


def within(line: str, megabytes: int, enough: bool, folder: Path) -> None:
    """The command ends well, or with one line; with enough memory it ends well."""
    if "medium.csv" in line:
        np.savetxt(folder / "medium.csv", medium().pairs.numpy().T, fmt="%d", delimiter=",")
    ended = command(line.split(), folder, seconds=100, megabytes=megabytes)
    assert ended.code == 0 or not enough, f"{megabytes} MB are enough: {ended}"
    if ended.code != 0:
        assert_line(ended)
    left = [path.name for path in folder.rglob("*.tmp")]
    assert not left, f"half-written files: {left}"


def called(function: Function, given: Given, megabytes: int, enough: bool, folder: Path) -> None:
    """The function returns, or raises the one error with one line; with enough memory it returns."""
    ended = _run(function, given, megabytes, folder)
    assert ended.code == 0 or not enough, f"{megabytes} MB are enough: {ended}"
    if ended.code != 0:
        assert_line(ended)


def refused(function: Function, given: Given, folder: Path) -> None:
    """The function raises the one error."""
    assert_line(_run(function, given, 600, folder))


def _run(function: Function, given: Given, megabytes: int, folder: Path) -> Ended:
    argument = given()  # what the caller has made is no fault of the function

    def run() -> int:
        try:
            function(argument)
        except NotEnoughMemoryError as error:
            print(f"error: {error}", file=sys.stderr)
            return REFUSED
        return 0

    return forked(run, folder, seconds=100, megabytes=megabytes)


def assert_line(ended: Ended, *words: str) -> None:
    """Exit code 2, and the last line of standard error, after those of the progress, is the one that explains it."""
    assert ended.code == REFUSED, f"expected exit code 2, got {ended}"
    assert "Traceback" not in ended.err, f"a traceback: {ended}"
    errors = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert errors == ended.err.splitlines()[-1:], f"expected one last line of error, got {ended}"
    assert len(errors[0]) <= 600, f"a line of {len(errors[0])} characters: {ended}"
    assert AMOUNT.search(errors[0]), f"expected an amount of memory, got {errors[0]!r}"
    for word in words:
        assert word in errors[0], f"expected {word!r} in {errors[0]!r}"


# -- what is called -----------------------------------------------------------------------------------------


@cache
def medium(nodes: int = 8_000, degree: int = 8) -> Graph:
    """A random graph without narrow separators."""
    random = np.random.default_rng(0)
    return Graph.from_edge_index(random.integers(0, nodes, size=(2, nodes * degree // 2)), num_nodes=nodes)


def half(edges: int) -> Tensor:
    """A probability for each edge."""
    return torch.full((edges,), 0.5)


def wide() -> Laboratory:
    """Training on many dense features."""
    data = load_clusters(clusters=3, nodes=10)
    features = torch.ones(30, 100_000)
    more = Dataset("wide", data.graph, features, data.labels, num_classes=3, level="node", split=data.split)
    return Laboratory(more, Architecture("gcn", 2, 16), epochs=2)


def many(laboratory: Laboratory) -> None:
    """Batches are halved until they fit, and the outcomes stay in order."""
    outcomes = laboratory.train([Trial("dropedge", seed=seed) for seed in range(64)])
    assert [outcome.trial.seed for outcome in outcomes] == list(range(64))


def huge_order(data: Dataset) -> None:
    """A polynomial that has more terms than memory has bytes."""
    Laboratory(data, Architecture("gcnn", 1, 8, {"order": 10**9}), epochs=2).train([Trial()])


def outputs(graph: Graph) -> None:
    """Eight subgraphs at a time."""
    x = torch.ones(graph.num_nodes, 64)
    output_variance(lambda S: S @ x, graph, half(graph.num_edges), samples=16)


def small(nodes: int) -> Given:
    """A medium graph of so many nodes, made when it is asked for."""
    return partial(medium, nodes)


FUNCTIONS: dict[str, tuple[Function, Given, tuple[int, ...]]] = {
    "aggregate": (lambda graph: edge_scores(graph, q=4), medium, (5, 20, 60, 150, 600)),
    "aggregate, normalised": (lambda graph: edge_scores(graph, q=4, laplacian="normalized"), medium, (5, 20, 60, 600)),
    "aggregate, dense": (lambda graph: edge_scores(graph, q=4, solver="dense"), small(2_000), (5, 60, 150, 600)),
    "aggregate, factorised": (
        lambda graph: edge_scores(graph, q=4, solver="shift-invert"), small(4_000), (5, 40, 100, 1500)
    ),
    "effective, sketched": (lambda graph: edge_scores(graph, "effective"), medium, (5, 20, 60, 150, 600)),
    "effective, exact": (lambda graph: edge_scores(graph, "effective"), small(2_000), (5, 60, 150, 600)),
    "coins": (lambda prob: sample_edges(prob, seed=range(100)), lambda: half(10**5), (1, 20, 100, 600)),
    "directed coins": (lambda pairs: sample_directed(pairs, 0.5, seed=range(20)), lambda: 10**5, (1, 20, 60, 600)),
    "operators": (
        lambda keep: shift_operator(medium(), keep), lambda: torch.ones(100, medium().num_edges) > 0, (5, 50, 200, 1200)
    ),
    "dense operators": (lambda graph: shift_operator(graph).to_dense(), small(3_000), (5, 50, 80, 600)),
    "low modes": (lambda graph: low_modes(graph, 4), small(1_500), (5, 30, 80, 600)),
    "relative error": (lambda graph: ErrorModel(shift_operator(graph)), small(1_000), (5, 30, 600)),
    "realizability": (lambda graph: alpha_realizable(graph, torch.arange(800) % 4), small(800), (5, 30, 600)),
    "variance": (outputs, medium, (5, 30, 80, 900)),
    "training with wide features": (lambda laboratory: laboratory.train([Trial("dropedge")]), wide, (5, 30, 80, 900)),
    "training of many trials": (
        many, lambda: Laboratory(load_clusters(), Architecture("gcn", 2, 64), epochs=2), (5, 30, 80, 200, 1500)
    ),
    "block model": (lambda nodes: load_clusters(nodes=nodes), lambda: 400, (5, 30, 80, 900)),
    "source localization": (
        lambda nodes: load_source_localization(nodes=nodes, inside=0.1, between=0.05), lambda: 500, (5, 30, 900)
    ),
}  # fmt: skip
IMPOSSIBLE: dict[str, tuple[Function, Given]] = {
    "a block model of 4 million nodes": (lambda nodes: load_clusters(nodes=nodes), lambda: 10**6),
    "source localization on a million nodes": (lambda nodes: load_source_localization(nodes=nodes), lambda: 10**6),
    "source localization with many times": (lambda times: load_source_localization(times=times), lambda: 10**12),
    "source localization with many samples": (
        lambda count: load_source_localization(sizes=(count, 10, 10)), lambda: 10**12
    ),
    "a filter of order 10^9": (huge_order, load_source_localization),
    "the whole spectrum of a large graph": (lambda graph: low_modes(graph, 3), small(200_000)),
    "a dense operator of a large graph": (lambda graph: shift_operator(graph).to_dense(), small(200_000)),
    "a relative error of a large graph": (lambda graph: ErrorModel(shift_operator(graph)), small(200_000)),
    "coins of a million seeds": (lambda prob: sample_edges(prob, seed=range(10**5)), lambda: half(10**6)),
    "coins of 10^15 pairs": (lambda pairs: sample_directed(pairs, 0.5), lambda: 10**15),
    "all modes of a large graph": (lambda graph: edge_scores(graph, q=20_000), small(30_000)),
    "about all modes": (lambda graph: edge_scores(graph, desired_clusters=15_000), small(30_000)),
    "an exact resistance": (lambda graph: edge_scores(graph, "effective", method="exact"), small(30_000)),
}  # fmt: skip
