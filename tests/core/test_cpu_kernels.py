"""The CPU's compiled kernels against the reference: the same bits, on one thread and on two, alone and in a batch."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from tadropedge import Graph, sample_edges, shift_operator
from tadropedge.lab.networks.noise import Noise
from tadropedge.operators.kernels import reference, threads
from tadropedge.operators.pattern import Csr
from tadropedge.operators.product import multiply, sparse_product
from tadropedge.operators.shift import NORMALIZATIONS
from tadropedge.sampling.coins import sample, uniform

cpu = pytest.importorskip("tadropedge.operators.kernels.cpu")
F64 = torch.float64
DTYPES = [torch.float32, F64]


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"], autouse=True)
def _threads(request, monkeypatch):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    monkeypatch.setattr(threads, "ENOUGH", 1)  # however little there is to do
    yield
    torch.set_num_threads(before)


def random_graph(nodes, edges, seed, hubs=0):
    """Random pairs, some nodes alone; each of the first ``hubs`` nodes meets every fifth one."""
    ends = torch.randint(0, max(1, nodes * 4 // 5), (2, edges), generator=torch.Generator().manual_seed(seed))
    many = [torch.stack((torch.full((nodes // 5,), hub), torch.arange(nodes // 5) * 5)) for hub in range(hubs)]
    return Graph.from_edge_index(torch.cat((ends, *many), dim=1), nodes)


GRAPHS = {
    "random": random_graph(300, 900, 0),
    "hubs": random_graph(2000, 3000, 1, hubs=3),
    "one node": Graph.from_edge_index([[], []], 1),
    "no edges": Graph.from_edge_index([[], []], 7),
    "one edge": Graph.from_edge_index([[0], [1]], 2),
}


def normal(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def weights_of(graph, dtype):
    """All edges, masks and soft values, of one subgraph and of three."""
    prob = torch.full((graph.num_edges,), 0.6, dtype=F64)
    masks = sample(graph.keys, prob, torch.arange(3))
    soft = normal(3, graph.num_edges, seed=4, dtype=dtype).abs() * masks
    return [None, masks[:1], masks, soft[:1], soft]


@pytest.mark.parametrize("name", GRAPHS)
def test_coins(name):
    graph = GRAPHS[name]
    some = torch.rand(3, graph.num_edges, generator=torch.Generator().manual_seed(0), dtype=F64)
    seeds = torch.tensor([5, -1, 2**62])
    epoch = torch.tensor(2)
    for prob in (some[0], some[:1], some, torch.tensor([0.3], dtype=F64)):
        for seed, at in ((7, 3), (seeds[0], epoch), (seeds, 3), (seeds, epoch), (7, epoch)):
            if seed is not seeds and prob is some:
                continue
            found = sample(graph.keys, prob, seed, at, 9)
            assert torch.equal(found, reference.coins(graph.keys, seed, at, prob, 9))
            assert torch.equal(found, (uniform(graph.keys, seed, at, 9) < prob).expand(found.shape))
    assert all(map(torch.equal, cpu.draw_keys(seeds, epoch, 9), reference.draw_keys(seeds, epoch, 9)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", GRAPHS)
def test_degrees_and_operators(name, dtype):
    graph = GRAPHS[name]
    for weights in weights_of(graph, dtype)[1:]:
        mine, theirs = (each.degrees(graph.pattern, weights, 1.0, dtype) for each in (cpu, reference))
        assert torch.equal(mine, theirs)
    for normalization in set(NORMALIZATIONS) - {"spectral"}:
        for weights in weights_of(graph, dtype):
            shift = shift_operator(graph, weights, normalization=normalization, dtype=dtype)
            rows = shift._rows(shift.batch)
            values = reference.entries(graph.pattern, *rows)
            assert torch.equal(shift.values.view_as(values), values)
            for x in (normal(graph.num_nodes, 5, dtype=dtype), normal(3, graph.num_nodes, 33, dtype=dtype)):
                found = shift @ x
                assert torch.equal(found, multiply(graph.pattern, values, x).view_as(found))
                expected = reference.thinned_product(graph.pattern, values, x if x.dim() == 3 else x[None])
                assert torch.equal(found, expected.view_as(found))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("width", [1, 8, 100])
def test_products(name, dtype, width):
    places, n = GRAPHS[name].pattern, GRAPHS[name].num_nodes
    wide = Csr(places.crow, places.col, n + 3)  # columns without entries
    for values in (normal(1, places.num_entries, dtype=dtype), normal(3, places.num_entries, dtype=dtype)):
        for x in (normal(1, n + 3, width, seed=1, dtype=dtype), normal(3, n + 3, width, seed=1, dtype=dtype)):
            mine, theirs = (each.product(wide, values, x) for each in (cpu, reference))
            assert torch.equal(mine, theirs)
            g = normal(*mine.shape, seed=2, dtype=dtype)
            for shared in {False, len(values) == 1}:
                mine, theirs = (each.slopes(wide, g, x, shared) for each in (cpu, reference))
                assert torch.allclose(mine, theirs, rtol=1e-5, atol=1e-6 * width)


def test_a_signal_beyond_the_cache_has_the_same_bits(monkeypatch):
    graph, x = GRAPHS["hubs"], normal(2000, 64)
    shift = shift_operator(graph, weights_of(graph, torch.float32)[1][0])
    near = shift @ x
    monkeypatch.setattr(cpu, "FAR", 0)
    assert torch.equal(shift @ x, near)


def test_gradients_numerically():
    graph = random_graph(8, 12, 3)
    x = normal(2, 8, 3, dtype=F64).requires_grad_()
    mask = sample_edges(torch.full((graph.num_edges,), 0.6), seed=0)
    for normalization in ("gcn", "random-walk", "laplacian"):
        shift = shift_operator(graph, mask, normalization=normalization, dtype=F64)
        assert torch.autograd.gradcheck(lambda y, shift=shift: shift @ y, x)
    values = normal(1, graph.pattern.num_entries, seed=1, dtype=F64).requires_grad_()
    assert torch.autograd.gradcheck(lambda v, y: sparse_product(graph.pattern, v, y), (values, x))


# -- training, and arcs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [None, torch.tensor([5, 0, 70, 3])])
@pytest.mark.parametrize("shape", [(3, 4, 1), (2, 300, 64), (1, 4, 7)])
def test_ends_of_layers_and_dropout(shape, names):
    trials = shape[0]
    rates, seeds = torch.tensor([0.0, 0.4, 1.0])[:trials], torch.tensor([1, -5, 2**60])[:trials]
    noise = Noise(rates, seeds, torch.tensor(6), None if shape[1] != 4 else names)
    probe = normal(*shape, seed=9)
    for activate in (True, False):
        for coins in (None, noise.coins(3)):
            h, bias = normal(*shape).requires_grad_(), normal(trials, shape[2], seed=1).requires_grad_()
            ends = [each.finish(h * 1, bias, activate, coins) for each in (cpu, reference)]
            assert torch.equal(*ends)
            mine, theirs = (torch.autograd.grad(end, (h, bias), probe) for end in ends)
            assert torch.equal(mine[0], theirs[0])
            assert torch.allclose(mine[1], theirs[1], atol=1e-4)
    ends = [each.dropout(h, noise.coins(3)) for each in (cpu, reference)]
    assert torch.equal(*ends)
    assert torch.equal(*(torch.autograd.grad(end, h, probe)[0] for end in ends))


@pytest.mark.parametrize("columns", [1, 3, 8, 9])
def test_dense_products(columns):
    shapes = [((600, 20), (2, 20, columns)), ((2, 600, 20), (20, columns)), ((2, 600, 20), (2, 20, columns))]
    for left, right in shapes:
        a, b = normal(*left).requires_grad_(), normal(*right, seed=1).requires_grad_()
        mine, theirs = (each.dense_product(a, b) for each in (cpu, reference))
        assert torch.allclose(mine, theirs, atol=1e-5)
        probe = normal(*mine.shape, seed=2)
        for one, other in zip(*(torch.autograd.grad(out, (a, b), probe) for out in (mine, theirs)), strict=True):
            assert torch.allclose(one, other, atol=1e-3)
        assert torch.equal(cpu.dense_product(a if a.dim() == 2 else a[:1], b if b.dim() == 2 else b[:1])[0], mine[0])


def test_loss_accuracy_and_adam():
    logits, labels = normal(3, 500, 5), torch.arange(500) % 6 - 1
    logits[0, 7], logits[1, 8, 2:4] = 0.0, torch.nan  # ties, and a trial that diverged
    mask = ((torch.rand(3, 500, generator=torch.Generator().manual_seed(0)) < 0.3) & (labels >= 0)).float()
    mask[2] = 0
    logits.requires_grad_()
    assert torch.equal(*(each.accuracy(logits, labels, mask) for each in (cpu, reference)))
    losses = [each.cross_entropy(logits, labels, mask) for each in (cpu, reference)]
    assert torch.allclose(*losses, equal_nan=True)
    slopes = [torch.autograd.grad(loss[0] * 2, logits)[0][0] for loss in losses]
    assert torch.allclose(*slopes, atol=1e-7)
    for shape in ((3, 40, 7), (3, 7)):
        rates, decays = torch.tensor([0.1, 0.01, 0.0]), torch.tensor([0.0, 0.1, 0.5])
        states = [
            [normal(*shape), normal(*shape, seed=1), normal(*shape, seed=2), normal(*shape, seed=3) ** 2]
            for _ in (0, 1)
        ]
        version = states[0][0]._version
        for each, state in zip((cpu, reference), states, strict=True):
            each.adam(*state, rates, decays, torch.tensor(3))
        assert all(map(partial(torch.allclose, atol=1e-6), *states))
        assert states[0][0]._version > version


@pytest.mark.parametrize("share", [0.0, 0.6, 1.0])
def test_arcs(share):
    graph = GRAPHS["hubs"]
    arcs = torch.cat((graph.pairs, graph.pairs.flip(0)), dim=1)
    place = torch.cat((torch.arange(graph.num_edges).repeat(2), torch.tensor([graph.num_edges])))
    mask = sample(graph.keys, torch.tensor([share], dtype=F64), 0)
    assert torch.equal(*(each.spread(mask, place) for each in (cpu, reference)))
    kept = mask.repeat(2)
    for given in (arcs, arcs.int(), arcs.t().contiguous().t()):
        assert torch.equal(cpu.kept_arcs(given, kept), given[:, kept])


# -- threads -----------------------------------------------------------------------------------------------------


def product_of(seed):
    graph = GRAPHS["hubs"]
    mask = sample_edges(torch.full((graph.num_edges,), 0.5), seed=seed, graph=graph)
    return shift_operator(graph, mask) @ normal(graph.num_nodes, 16)


def test_several_threads_of_python_at_once():
    alone = [product_of(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            assert all(map(torch.equal, pool.map(product_of, range(8)), alone))


class Products(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, seed):
        torch.set_num_threads(2)  # one in a worker, unless it says otherwise
        return product_of(seed)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_has_threads_of_its_own():
    alone = [product_of(seed) for seed in range(4)]
    loaded = DataLoader(Products(), batch_size=None, num_workers=2, multiprocessing_context="fork", timeout=60)
    assert all(map(torch.equal, loaded, alone))
    assert torch.equal(product_of(0), alone[0])


def test_torch_on_one_thread_and_kernels_on_all():
    before, alone = torch.get_num_threads(), product_of(1)
    with threads.for_kernels():
        assert torch.get_num_threads() == 1
        assert torch.equal(product_of(1), alone)
        with threads.for_kernels():
            assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_an_error_in_a_piece_of_work_is_raised_where_it_was_asked_for():
    def fails(begin, end):
        if begin == 0:
            raise MemoryError("there is none")

    with pytest.raises(MemoryError, match="there is none"):
        threads.run(fails, 100, 1e9)


# Edges: triangles, and both ends of a sketch.


@pytest.mark.parametrize("name", GRAPHS)
def test_triangles(name):
    graph = GRAPHS[name]
    if graph.num_edges:
        expected = reference.triangles(graph.pairs, graph.num_nodes)
        assert torch.equal(cpu.triangles(graph.pairs, graph.num_nodes), expected)


@pytest.mark.parametrize("name", ["random", "hubs", "one edge"])
@pytest.mark.parametrize("columns", [1, 32, 64])
def test_both_ends_of_a_sketch(name, columns, monkeypatch):
    graph, word = GRAPHS[name], -123456789
    low, high = graph.pairs
    root = normal(graph.num_edges, seed=1, dtype=F64).abs()
    monkeypatch.setattr(reference, "PIECE", 100)
    sums, expected = (each.signed_sums(low, high, root, word, graph.num_nodes, columns) for each in (cpu, reference))
    torch.testing.assert_close(sums, expected, rtol=0, atol=1e-12)
    assert expected.sum(dim=0).abs().max() < 1e-9  # what an edge gives to one end it takes from the other
    distances = (each.squared_differences(low, high, expected) for each in (cpu, reference))
    torch.testing.assert_close(*distances, rtol=1e-12, atol=0)


def test_signs_of_a_sketch_are_fair():
    """Of a star with a thousand rays, every column has as many of both signs as coins have, and no two agree."""
    rays = Graph.from_edge_index(torch.stack((torch.zeros(1000, dtype=torch.int64), torch.arange(1, 1001))))
    signs = cpu.signed_sums(*rays.pairs, torch.ones(1000, dtype=F64), 5, 1001, 64)[1:]
    products = (signs.T @ signs).fill_diagonal_(0)
    assert signs.abs().unique().tolist() == [1.0]
    assert signs.sum(dim=0).abs().max() < 5 * 1000**0.5
    assert products.abs().max() < 5 * 1000**0.5
