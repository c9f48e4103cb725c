"""Triton's kernels against their references: on a GPU where there is one, and in Triton's interpreter.

The interpreter is chosen by ``TRITON_INTERPRET``, which must be set before triton is imported: so in another process.
"""

import os
import subprocess
import sys
from itertools import product

import interpreter
import pytest
import torch

from tadropedge.operators.kernels import reference, runs_kernels
from tadropedge.operators.kernels.words import GOLDEN, MASK, draw_key, mix, pair_keys, signed
from tadropedge.operators.product import sparse_product
from tadropedge.sampling.coins import numbered_keys
from tadropedge.testing.graphs import complete, path

SEEDS = [0, 1, -2, 2**62]
F64 = torch.float64


def check_coins(device, edges):
    """Every shape of seeds and probabilities, against the steps in torch and a coin by Python's integers."""
    from tadropedge.operators.kernels.gpu import coins

    prob = torch.rand(2, len(SEEDS), edges, generator=torch.Generator().manual_seed(edges), dtype=F64)
    prob[..., :2] = torch.tensor([0.0, 1.0])[:edges]
    every = torch.tensor(SEEDS)
    shapes = [(every[2], prob[0, 0]), (every[:1], prob[0]), (every, prob[0, 0]), (every, prob[0, :1]), (every, prob)]
    for words, numbered in ((numbered_keys(edges, torch.device("cpu")), True), (random_keys(edges), False)):
        for (seeds, chances), (epoch, stream) in product(shapes, ((7, 0), (-1, 1_000_000))):
            expected = reference.coins(words, seeds, epoch, chances, stream)
            for keys in [words.to(device)] + [None] * numbered:
                at = seeds.to(device), torch.tensor(epoch, device=device), chances.to(device), stream
                assert torch.equal(coins(keys, *at).cpu(), expected)
            seed, chance = int(seeds.reshape(-1)[0]), float(chances.reshape(-1, edges)[0, -1])
            assert int_coin(int(words[-1]), seed, epoch, stream, chance) == expected.reshape(-1, edges)[0, -1]


def random_keys(edges):
    return pair_keys(torch.randint(0, 1000, (2, edges), generator=torch.Generator().manual_seed(1)))


def key_parts(seeds, epoch, stream):
    found = torch.tensor([draw_key(seed, epoch, stream, seeds.device) for seed in seeds.reshape(-1).tolist()])
    return found[:, 0].view(seeds.shape), found[:, 1].view(seeds.shape)


def int_coin(word, seed, epoch, stream, prob):
    """One coin by Python's own integers."""
    state = mix((mix((seed + (stream + 1) * GOLDEN) & MASK) + epoch * GOLDEN) & MASK)
    multiplier, offset = mix((state + GOLDEN) & MASK) | 1, mix((state + 2 * GOLDEN) & MASK)
    return ((signed((word * multiplier + offset) & MASK) >> 11) + 2**52) / 2**53 < prob


def check_keys(device):
    from tadropedge.operators.kernels.gpu import draw_keys

    for epoch, stream in ((0, 0), (7, 3), (2**40, 1_000)):
        found = draw_keys(torch.tensor(SEEDS, device=device), torch.tensor(epoch, device=device), stream)
        for mine, expected in zip(found, key_parts(torch.tensor(SEEDS), epoch, stream), strict=True):
            assert torch.equal(mine.cpu(), expected)


def check_no_coins(device):
    from tadropedge.operators.kernels.gpu import coins

    none = torch.empty(0, dtype=F64, device=device)
    assert coins(none.long(), torch.tensor(SEEDS, device=device), torch.tensor(0), none).shape == (len(SEEDS), 0)


def check_products(device):
    """Against dense products, gradients included: every batch, narrow and wide, rows of few and of many entries."""
    batches = [(), (1,), (3,)]
    cases = [(path(4), values, x, 3) for values in batches for x in batches]
    cases += [(complete(18), (), (), 3), (path(4), (3,), (), 130), (path(4), (), (3,), 0)]
    for graph, batch_values, batch_x, features in cases:
        places, n = graph.to(device).pattern, graph.num_nodes
        values = normal(*batch_values, places.num_entries).to(device).requires_grad_()
        x = normal(features, *batch_x, n, seed=1).movedim(0, -1).to(device).requires_grad_()  # strided
        flat = values.new_zeros(*batch_values, n * n).index_add(-1, places.row * n + places.col, values)
        ours, expected = sparse_product(places, values, x), flat.view(*batch_values, n, n) @ x
        assert torch.allclose(ours, expected)
        mine, theirs = (torch.autograd.grad(out.square().sum(), (values, x)) for out in (ours, expected))
        assert all(torch.allclose(one, other) for one, other in zip(mine, theirs, strict=True))


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def check_all(device):
    assert runs_kernels(torch.ones(1, device=device))
    for edges in (1, 5000):
        check_coins(device, edges)
    check_keys(device)
    check_no_coins(device)
    check_products(device)


@interpreter.needed
def test_kernels_in_the_interpreter():
    interpreter.check_all_of(__file__)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_kernels_on_a_gpu():
    check_all("cuda")


def test_nothing_loads_triton_where_no_kernel_runs():
    script = (
        "import sys, torch; from tadropedge import Graph, shift_operator, sample_edges;"
        "shift_operator(Graph.from_edge_index([[0], [1]])) @ torch.ones(2, 1); sample_edges(torch.ones(1));"
        "sys.exit('tadropedge.operators.kernels.gpu' in sys.modules)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    assert subprocess.run([sys.executable, "-c", script], env=environment, check=False).returncode == 0
