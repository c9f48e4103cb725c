"""Coins and compact patterns by kernels: against Python's integers and the patterns that torch builds, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from graphs import ZOO, clusters, path
from test_sparse import interpreter_is_missing

import tadropedge
from tadropedge import Graph, shift_operator
from tadropedge.compaction import compact_operator, compact_reweighted
from tadropedge.pattern import Pattern
from tadropedge.sampling import GOLDEN, MASK, key, keys, mix, pair_words, signed, toss_seeds

pytestmark = pytest.mark.usefixtures("one_thread")
SEEDS = [0, 1, -2, 2**62]


def star(nodes, hub):
    """A hub, the first node or the last, in a row longer than a block of the kernels."""
    others = torch.arange(1, nodes) if hub == 0 else torch.arange(nodes - 1)
    return Graph.from_edge_index(torch.stack((others, torch.full_like(others, hub))))


GRAPHS = ZOO | {
    "one edge": path(2),
    "clusters": clusters([60, 80], 0.3, 0.05),
    "first is a hub": star(3000, 0),
    "last is a hub": star(3000, 2999),
}


def masks(edges):
    """Some edges, none and all."""
    some = torch.rand(edges, generator=torch.Generator().manual_seed(0)) < 0.4
    return [some, torch.zeros_like(some), torch.ones_like(some)]


def rooms(keep):
    """Too small, just enough, more than enough."""
    kept = int(keep.sum())
    return sorted({0, kept // 2, max(0, kept - 1), kept, kept + 1, len(keep) + 7})


def expected_pattern(graph, keep, capacity):
    """The numbers of the first kept edges, what they are multiplied by, and their pattern, padded by hand."""
    numbers = keep.nonzero()[:capacity, 0]
    missing = capacity - len(numbers)
    ends = torch.cat((graph.pairs[:, numbers], torch.full((2, missing), graph.num_nodes)), dim=1)
    one = 1.0 if int(keep.sum()) <= capacity else float("nan")
    ones = torch.tensor([one] * len(numbers) + [0.0] * missing)
    numbers = torch.cat((numbers, torch.zeros(missing, dtype=torch.int64)))
    return numbers, ones, Pattern.of_sorted(ends, graph.num_nodes)


def same_pattern(found, expected):
    """All arrays and their types."""
    for part in ("pairs", "crow", "col", "source", "pair_source"):
        mine, other = getattr(found, part).cpu(), getattr(expected, part)
        assert mine.dtype == other.dtype, part
        assert torch.equal(mine, other), part


def expected_coin(seed, epoch, stream, place, prob):
    """A coin by Python's own integers."""
    multiplier, offset = key(seed, epoch, stream)
    coin = signed((mix((place + 1) * GOLDEN & MASK) * multiplier + offset) & MASK)
    return ((coin >> 11) + 2**52) / 2**53 < prob


def coins_agree(device, edges):
    """Every shape of seeds and probabilities, every tenth coin or so."""
    generator = torch.Generator().manual_seed(edges)
    prob = torch.rand(2, len(SEEDS), edges, generator=generator, dtype=torch.float64)
    prob[..., :2] = torch.tensor([0.0, 1.0])[:edges]
    words = pair_words(edges, torch.device("cpu")).to(device)
    for seeds in (torch.tensor(SEEDS[2]), torch.tensor(SEEDS[:1]), torch.tensor(SEEDS)):
        for chances in (prob[0, 0], prob[0, :1], prob[0], prob):
            batch = torch.broadcast_shapes(seeds.shape, chances.shape[:-1])
            rows, each = chances.expand(*batch, -1).reshape(-1, edges), seeds.expand(batch).reshape(-1).tolist()
            for epoch, stream in ((0, 0), (7, 3), (-1, 1_000_000)):
                number = torch.tensor(epoch, device=device)
                for numbered in (False, True):
                    found = toss_seeds(
                        words, seeds.to(device), number, chances.to(device), stream, numbered=numbered
                    ).cpu()
                    assert found.shape == (*batch, edges)
                    for row, (seed, mine) in enumerate(zip(each, found.reshape(-1, edges), strict=True)):
                        for place in {*range(min(edges, 3)), *range(5, edges, max(1, edges // 10))}:
                            coin = expected_coin(seed, epoch, stream, place, float(rows[row, place]))
                            assert bool(mine[place]) == coin


def keys_agree(device):
    for epoch, stream in ((0, 0), (7, 3), (2**40, 1_000)):
        found = keys(torch.tensor(SEEDS, device=device), torch.tensor(epoch, device=device), stream)
        both = zip(*(part.tolist() for part in found), strict=True)
        assert list(both) == [key(seed, epoch, stream) for seed in SEEDS]


# -- on every device: its kernels on a GPU, torch on a CPU ----------------------------------------------------


@pytest.mark.parametrize("edges", [1, 2, 100, 5000])
def test_coins_are_those_of_python_integers(edges, device):
    coins_agree(device, edges)


def test_keys_are_those_of_python_integers(device):
    keys_agree(device)


def test_no_edges_need_no_coins(device):
    none = torch.empty(0, dtype=torch.float64, device=device)
    found = toss_seeds(none.long(), torch.tensor(SEEDS, device=device), torch.tensor(0, device=device), none)
    assert found.shape == (len(SEEDS), 0)


@pytest.mark.parametrize("name", GRAPHS)
def test_patterns_with_room_are_those_of_sorted_pairs(name, device):
    graph = GRAPHS[name]
    there = graph.to(device)
    whole = shift_operator(there, normalization="adjacency")
    for keep in masks(graph.num_edges):
        for capacity in rooms(keep):
            numbers, ones, expected = expected_pattern(graph, keep, capacity)
            found = compact_operator(there, keep.to(device), normalization="adjacency", capacity=capacity)
            same_pattern(found.pattern, expected)
            weight = ones if graph.weight is None or not len(ones) else ones * graph.weight[numbers].float()
            values = torch.cat((weight, torch.zeros(graph.num_nodes)))[expected.pair_source.long()]
            assert torch.equal(found.values.cpu().nan_to_num(-1), values.nan_to_num(-1))
            factors = torch.ones(graph.num_edges, device=device)
            again = compact_reweighted(whole, keep.to(device), factors, capacity)
            same_pattern(again.pattern, expected)


def test_a_recording_builds_the_pattern_of_every_mask(device):
    if device.type != "cuda":
        pytest.skip("only a GPU records")
    graph = GRAPHS["clusters"]
    there, keep = graph.to(device), masks(graph.num_edges)[0].to(device)
    capacity = graph.num_edges - 3
    compact_operator(there, keep, capacity=capacity)
    recording = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recording):
        found = compact_operator(there, keep, capacity=capacity)
    for mask in masks(graph.num_edges):
        keep.copy_(mask)
        recording.replay()
        _, ones, expected = expected_pattern(graph, mask, capacity)
        same_pattern(found.pattern, expected)
        assert bool(found.values.isnan().any()) == bool(ones.isnan().any())


# -- in Triton's interpreter: TRITON_INTERPRET must be set before triton is imported --------------------------

COINS = """
from test_fused import *
from tadropedge.sampling import fused, key_tensor, toss

assert fused(torch.ones(1))
for edges in (1, 100, 5000):
    coins_agree(torch.device("cpu"), edges)
keys_agree(torch.device("cpu"))
test_no_edges_need_no_coins(torch.device("cpu"))

# Part of a larger program, coins are operations of torch.
prob, seeds, epoch = torch.rand(50, dtype=torch.float64), torch.tensor(SEEDS), torch.tensor(2)
words = pair_words(50, prob.device)
alone = toss_seeds(words, seeds, epoch, prob)
assert torch.equal(torch.vmap(lambda seed: toss_seeds(words, seed, epoch, prob))(seeds), alone)
compiled = torch.compile(toss_seeds, backend="eager", fullgraph=True)
assert torch.equal(compiled(words, seeds, epoch, prob), alone)
print("agreed")
"""

DRAWS = """
from test_fused import *
from tadropedge import sample_edges
from tadropedge.training.config import Trial
from tadropedge.training.edges import EdgeCoins

graph = GRAPHS["clusters"]
some = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
prob = torch.stack((some, some.flip(0), some * 0.5 + 0.5))
import tadropedge.kernels  # while the interpreter is asked for


def drawn():
    for settings in ({}, {"pairs": graph.pairs}, {"exact": True}, {"connected": graph}):
        yield sample_edges(some, **settings)
        yield sample_edges(some, seed=-3, epoch=2**70, **settings)
        yield sample_edges(some, seed=[5, 6], **settings)
        yield sample_edges(prob, seed=[5, 6, 2**63], epoch=4, **settings)
        yield sample_edges(prob, seed=9, **settings)
    yield sample_edges(some.float(), seed=3)
    for method in ("dropedge", "dropedge:unbiased", "dropedge:nested", "dropedge:connected:nested"):
        last = {"keep_last": 0.8} if "nested" in method else {}
        trials = [Trial(method, keep_prob=0.6, **last), Trial(method, keep_prob=0.7, **last)]
        for inside in (None, torch.stack((some > 0.01, some < 0.99))):
            yield from EdgeCoins(graph, trials, {}, torch.tensor([1, 2]), inside, 2).keeps(torch.tensor(3))


ours = list(drawn())
os.environ["TRITON_INTERPRET"] = "0"  # from here on, torch
for mine, theirs in zip(ours, drawn(), strict=True):
    assert mine.shape == theirs.shape and torch.equal(mine, theirs)
    assert 0 < int(mine.sum()) < mine.numel()
print("agreed")
"""

COMPACT = """
from test_fused import *
from tadropedge import compaction

taken = []
way = compaction._taken_out
compaction._taken_out = lambda *arguments: taken.append(way(*arguments)) or taken[-1]
for name, graph in GRAPHS.items():
    for keep in masks(graph.num_edges):
        for capacity in rooms(keep):
            dtype, before = torch.float64 if capacity % 2 else torch.float32, len(taken)
            edges, kept, pattern = compaction._selected(keep, graph, dtype, capacity)
            assert len(taken) == before + bool(graph.num_edges)
            numbers, ones, expected = expected_pattern(graph, keep, capacity)
            assert torch.equal(edges, numbers)
            assert kept.dtype == dtype and torch.equal(kept.nan_to_num(-1), ones.to(dtype).nan_to_num(-1))
            same_pattern(pattern, expected)
print("agreed")
"""

OPERATORS = """
from test_fused import *
from graphs import weighted
from tadropedge.shift import NORMALIZATIONS
import tadropedge.kernels  # while the interpreter is asked for


def values():
    for graph in (GRAPHS["clusters"], weighted(GRAPHS["clusters"])):
        for keep in masks(graph.num_edges)[:: 1 if graph.weight is None else 3]:
            for normalization in sorted(set(NORMALIZATIONS) - {"spectral"}):
                for capacity in (int(keep.sum()) // 2, int(keep.sum()) + 5):
                    for dtype in (torch.float16, torch.float32, torch.float64):
                        settings = {"normalization": normalization, "dtype": dtype, "capacity": capacity}
                        yield compact_operator(graph, keep, **settings)


ours = list(values())
assert any(shift.pattern.summed is not None for shift in ours)
os.environ["TRITON_INTERPRET"] = "0"  # from here on, torch
for mine, theirs in zip(ours, values(), strict=True):
    assert theirs.pattern.summed is None and mine.values.dtype == theirs.values.dtype
    assert torch.equal(mine.values.nan_to_num(-1), theirs.values.nan_to_num(-1))
    same_pattern(mine.pattern, theirs.pattern)
print("agreed")
"""


@pytest.mark.skipif(bool(interpreter_is_missing()), reason=interpreter_is_missing())
@pytest.mark.parametrize("script", [COINS, DRAWS, COMPACT, OPERATORS], ids=["coins", "draws", "compact", "operators"])
def test_kernels_in_the_interpreter(script):
    here = Path(__file__).resolve().parent
    package = Path(tadropedge.__file__).resolve().parents[1]
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": f"{package}{os.pathsep}{here}"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout.strip() == "agreed", done.stderr
