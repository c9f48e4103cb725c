"""Batched sparse products against dense ones, on the CPU, on a GPU where there is one, and in Triton's interpreter."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
from graphs import clusters

import tadropedge
from tadropedge import sample_edges, shift_operator
from tadropedge import sparse as sparse_module
from tadropedge.sparse import Csr, KeptProducts, multiply, sparse_product

ROWS, COLS, FEATURES, TRIALS = 5, 4, 3, 2
# Rows 0 and 3 and column 2 are empty.
PLACES = [(1, 0), (1, 3), (2, 1), (4, 0), (4, 1), (4, 3)]


def csr(places, rows, cols, index=torch.int64):
    row, col = torch.tensor(places, dtype=torch.int64).reshape(-1, 2).T
    crow = torch.zeros(rows + 1, dtype=torch.int64)
    crow[1:] = torch.bincount(row, minlength=rows).cumsum(0)
    return Csr(crow.to(index), col.to(index), cols)


def to_dense(places, values):
    flat = values.new_zeros(*values.shape[:-1], places.num_rows * places.num_cols)
    return flat.index_add(-1, places.row * places.num_cols + places.col, values).view(
        *values.shape[:-1], places.num_rows, places.num_cols
    )


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def agree(places, values, x, symmetric=False):
    """Product and both gradients against dense, where values hold one number an entry and trial."""
    values, x = values.clone().requires_grad_(), x.clone().requires_grad_()
    ours = sparse_product(places, values, x, symmetric=symmetric)
    expected = to_dense(places, values) @ x
    assert ours.shape == expected.shape
    assert torch.allclose(ours, expected)
    probe = normal(*ours.shape, seed=9).to(ours)
    ours_back = torch.autograd.grad((ours * probe).sum(), (values, x))
    expected_back = torch.autograd.grad((expected * probe).sum(), (values, x))
    for mine, other in zip(ours_back, expected_back, strict=True):
        assert mine.shape == other.shape
        assert torch.allclose(mine, other)


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("batch_x", [(), (1,), (TRIALS,)])
@pytest.mark.parametrize("batch_values", [(), (1,), (TRIALS,)])
def test_product_and_gradients_of_a_rectangular_matrix(batch_values, batch_x, index, device):
    places = csr(PLACES, ROWS, COLS, index)
    places = Csr(places.crow.to(device), places.col.to(device), places.num_cols)
    agree(
        places,
        normal(*batch_values, len(PLACES)).to(device),
        normal(*batch_x, COLS, FEATURES, seed=1).to(device),
    )


@pytest.mark.parametrize("batch_x", [(), (TRIALS,)])
@pytest.mark.parametrize("batch_values", [(), (TRIALS,)])
def test_the_symmetric_flag_changes_nothing_where_it_is_true(batch_values, batch_x):
    places = csr([(0, 1), (1, 0), (1, 1), (1, 3), (3, 1)], 4, 4)  # node 2 is alone
    values = normal(*batch_values, 3)[..., [0, 0, 1, 2, 2]]
    agree(places, values, normal(*batch_x, 4, FEATURES, seed=1), symmetric=True)
    agree(places, values, normal(*batch_x, 4, FEATURES, seed=1), symmetric=False)


def test_only_the_gradients_that_are_asked_for():
    places, x = csr(PLACES, ROWS, COLS), normal(COLS, FEATURES)
    values = normal(len(PLACES)).requires_grad_()
    sparse_product(places, values, x).sum().backward()
    assert torch.allclose(values.grad, x.sum(-1)[places.col])
    assert not sparse_product(places, values.detach(), x).requires_grad


def test_a_gradient_that_is_not_contiguous():
    places, values = csr(PLACES, ROWS, COLS), normal(TRIALS, len(PLACES))
    x = normal(TRIALS, COLS, FEATURES).requires_grad_()
    probe = normal(FEATURES, ROWS, TRIALS, seed=3).transpose(0, 2)
    (gradient,) = torch.autograd.grad(sparse_product(places, values, x), x, probe)
    assert torch.allclose(gradient, to_dense(places, values).transpose(-1, -2) @ probe)


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 3, 4, 7, 8, 16, 20, 24, 25, 33, 64, 130])
def test_a_product_overwrites_whatever_was_there(width, dtype, index):
    places, values, x = csr(PLACES, ROWS, COLS, index), normal(len(PLACES)).to(dtype), normal(1, COLS, width).to(dtype)
    out = torch.full((1, ROWS, width), torch.nan, dtype=dtype)  # also in the rows without entries
    assert multiply(places, values, x, out) is out
    expected = (to_dense(places, values.double()) @ x.double()).to(dtype)
    near = {"rtol": 0, "atol": 64 * torch.finfo(dtype).eps * float(expected.abs().max())}  # sums may cancel
    assert torch.allclose(out, expected, **near)
    assert torch.allclose(multiply(places, values, x, out, add=True), 2 * expected, **near)
    assert torch.allclose(multiply(places, values, x[0], out[0], add=True), 3 * expected[0], **near)
    assert torch.allclose(out, 3 * expected, **near)


@pytest.mark.parametrize("width", [3, 8])
def test_a_product_of_an_operator_is_added(width):
    places = clusters([10, 10], 0.5, 0.1).pattern.places
    values, x, out = (
        normal(len(places.col)),
        normal(1, places.num_cols, width),
        normal(1, places.num_rows, width, seed=3),
    )
    expected = out + to_dense(places, values) @ x
    assert torch.allclose(multiply(places, values, x, out, add=True), expected)


@pytest.mark.parametrize("width", range(1, 40))
def test_zeros_among_the_entries_change_no_bit_of_an_operator(width):
    graph = clusters([60, 80], 0.3, 0.05)
    keep = sample_edges(torch.full((graph.num_edges,), 0.4), seed=width)
    values = shift_operator(graph, keep).values
    there, places = values != 0, graph.pattern.places
    crow = torch.zeros(graph.num_nodes + 1, dtype=torch.int64)
    crow[1:] = torch.bincount(places.row[there], minlength=graph.num_nodes).cumsum(0)
    sparse_module.hush_beta_warning()
    shape = (graph.num_nodes, graph.num_nodes)
    fewer = torch.sparse_csr_tensor(crow, places.col[there].long(), values[there], shape, check_invariants=True)
    x = normal(graph.num_nodes, width, dtype=torch.float32)
    padded = torch.nn.functional.pad(x, (0, 29))  # columns that no kernel adds in groups
    assert torch.equal(multiply(places, values, x), (fewer @ padded)[:, :width])


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 100])
def test_the_gradient_of_features_adds_up_over_blocks_of_nodes(rows, monkeypatch):
    monkeypatch.setattr(sparse_module, "NODES_AT_ONCE", rows)
    matrix = normal(12, 3) * (normal(12, 3, seed=2) > -0.5)
    places, values = csr(matrix.nonzero().tolist(), 12, 3), matrix[matrix != 0]
    slope = normal(TRIALS, 12, FEATURES, seed=1)
    parts = list(sparse_module._turned_parts(places, values))
    assert len(parts) == min(-(-12 // rows), len(values) // 3)
    found = KeptProducts.sparse(places, values).gradient(slope.mT.contiguous().mT)  # in an order of its own
    assert torch.allclose(found, matrix.T @ slope)


@pytest.mark.parametrize(("rows", "cols"), [(0, 4), (5, 0), (0, 0), (5, 4)])
def test_features_without_entries_have_no_gradient(rows, cols):
    none = KeptProducts.sparse(csr([], rows, cols), normal(0)).gradient(normal(TRIALS, rows, FEATURES))
    assert none.shape == (TRIALS, cols, FEATURES)
    assert not none.any()


def test_a_matrix_without_entries():
    places = csr([], 3, 2)
    out = sparse_product(places, torch.zeros(TRIALS, 0), torch.ones(2, FEATURES))
    assert torch.equal(out, torch.zeros(TRIALS, 3, FEATURES))


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_turned_is_the_transpose_and_turning_twice_changes_nothing(index):
    places, values = csr(PLACES, ROWS, COLS, index), normal(TRIALS, len(PLACES))
    turned, order = places.turned
    assert (turned.num_rows, turned.num_cols) == (COLS, ROWS)
    assert turned.crow.dtype == turned.col.dtype == index
    assert torch.equal(to_dense(turned, values[:, order]), to_dense(places, values).transpose(-1, -2))
    again, back = turned.turned
    assert torch.equal(again.crow, places.crow)
    assert torch.equal(again.col, places.col)
    assert torch.equal(order[back], torch.arange(len(PLACES)))


@pytest.mark.parametrize(
    "made",
    [lambda places, values, matrix: KeptProducts.sparse(places, values), lambda *parts: KeptProducts.dense(parts[2])],
    ids=["sparse", "dense"],
)
def test_kept_products_are_shared_between_passes_with_their_gradient(made):
    places, values = csr(PLACES, ROWS, COLS), normal(len(PLACES))
    matrix = to_dense(places, values)
    features = made(places, values, matrix)
    weight = normal(TRIALS, COLS, FEATURES).requires_grad_()
    for _ in range(2):
        with torch.no_grad():
            kept = features @ weight
        product = features @ weight
        assert torch.equal(product, kept)
        (gradient,) = torch.autograd.grad(product.square().sum(), weight)
        assert torch.allclose(product, matrix @ weight)
        assert torch.allclose(gradient, matrix.T @ (2 * (matrix @ weight)))
        with torch.no_grad():
            weight += 1  # the next pass without gradients sees the change, in the same memory
    other = normal(TRIALS, COLS, FEATURES, seed=5).requires_grad_()
    assert torch.allclose(features @ other, matrix @ other)


# -- the kernels, in Triton's interpreter: TRITON_INTERPRET must be set before triton is imported ------------

SPMM = """
from test_sparse import *
from tadropedge.kernels import spmm

for batch_values in ((), (1,), (2,)):
    for batch_x in ((), (1,), (2,)):
        for index, features in ((torch.int32, 3), (torch.int64, 300)):
            places = csr(PLACES, ROWS, COLS, index)
            values, x = normal(*batch_values, len(PLACES)), normal(*batch_x, COLS, features, seed=1)
            expected = (to_dense(places, values) @ x).reshape(-1, ROWS, features)
            assert torch.allclose(spmm(places, values, x), expected)
            strided = x.transpose(-1, -2).contiguous().transpose(-1, -2)
            assert torch.allclose(spmm(places, values, strided), expected)
agree(csr(PLACES, ROWS, COLS), normal(2, len(PLACES)), normal(COLS, 3))  # the whole path, with its gradients
agree(csr(PLACES, ROWS, COLS), normal(len(PLACES)), normal(COLS, 3))
assert spmm(csr([], 3, 2), torch.zeros(2, 0), torch.ones(2, 3)).tolist() == torch.zeros(2, 3, 3).tolist()
assert spmm(csr(PLACES, ROWS, COLS), torch.ones(len(PLACES)), torch.ones(2, COLS, 0)).shape == (2, ROWS, 0)
print("agreed")
"""

DROPOUT = """
from test_sparse import *
from tadropedge.kernels import dropout
from tadropedge.sampling import key_tensor
from tadropedge.training.noise import STREAM, Dropout

rates = torch.tensor([0.0, 0.3, 0.5, 0.8, 1.0])
for epoch, shape in ((0, (7, 5)), (3, (40, 60))):
    noise = Dropout(rates, torch.tensor([0, 1, -2, 2**62, 5]), torch.tensor(epoch))
    h = normal(5, *shape, dtype=torch.float32)
    multiplier, offset = key_tensor(noise.seeds, noise.epoch, STREAM + 1)
    ours = dropout(h, multiplier[:, None], offset[:, None], noise.limit, noise.scale)
    expected = noise(h, 1)
    assert torch.equal(ours, expected)
    assert 0 < int((ours == 0).sum()) < ours.numel()
print("agreed")
"""

FINISH = """
from test_sparse import *
from tadropedge.nn.finish import BatchNorm, _fused, finish
from tadropedge.training.noise import Dropout

noise = Dropout(torch.tensor([0.0, 0.3, 0.8]), torch.tensor([0, 1, 2]), torch.tensor(4))
for nodes, features in ((7, 5), (300, 16)):
    for activate, drop, normed, training in ((1, 1, 0, 1), (1, 1, 1, 1), (0, 0, 1, 1), (0, 0, 0, 1), (1, 0, 1, 0)):
        answers = []
        for way in (finish, _fused):
            h, bias, gain, shift = (
                (normal(3, *shape, seed=seed, dtype=torch.float32) + 1).requires_grad_()
                for seed, shape in enumerate(((nodes, features), (features,), (features,), (features,)))
            )
            running = torch.zeros(3, 1, features), torch.ones(3, 1, features)
            norm = BatchNorm(gain, shift, *running) if normed else None
            with torch.set_grad_enabled(bool(training)):
                out = way(h * 1, bias, norm, bool(activate), noise if drop else None, 2, bool(training))
            answer = [out.detach(), *running]
            if training:
                out.mul(normal(*out.shape, seed=9, dtype=torch.float32)).sum().backward()
                answer += [h.grad, gain.grad, shift.grad] if normed else [h.grad, bias.grad]
            answers.append(answer)
        for ours, theirs in zip(*answers, strict=True):
            assert torch.allclose(ours, theirs, atol=2e-4, rtol=1e-4), (activate, drop, normed, training)
# One model on many subgraphs: its parameters have a trials axis of one.
h, one = normal(3, 6, 4, dtype=torch.float32), [normal(1, 4, seed=seed, dtype=torch.float32) for seed in range(3)]
for norm in (None, BatchNorm(one[1], one[2], torch.zeros(1, 1, 4), torch.ones(1, 1, 4))):
    with torch.no_grad():
        ours, theirs = (way(h.clone(), one[0], norm, True, None, 0, False) for way in (_fused, finish))
    assert torch.allclose(ours, theirs, atol=1e-6)
# A trial that diverged shows it: NaN passes through ReLU in both directions.
for way in (finish, _fused):
    h = torch.full((3, 4, 2), float("nan"), requires_grad=True)
    out = way(h * 1, torch.zeros(3, 2), None, True, None, 0, True)
    assert out.isnan().all()
print("agreed")
"""

ADAM = """
from test_sparse import *
from tadropedge.kernels import adam
from tadropedge.training.optimizer import BETA1, BETA2, EPSILON, Adam

rates, decays, epoch = torch.tensor([0.01, 0.1]), torch.tensor([0.0, 0.3]), torch.tensor(0)
start = {"weight": normal(2, 30, 50, dtype=torch.float32), "bias": normal(2, 7, dtype=torch.float32)}
theirs = {name: value.clone() for name, value in start.items()}
optimizer = Adam(theirs, rates[:, None, None], decays[:, None, None], epoch)
moments = {name: (torch.zeros_like(value), torch.zeros_like(value)) for name, value in start.items()}
for step in range(5):
    gradients = {name: normal(*value.shape, seed=step, dtype=torch.float32) for name, value in start.items()}
    corrections = torch.tensor([1 - BETA1 ** (step + 1), (1 - BETA2 ** (step + 1)) ** 0.5])
    for name, value in start.items():
        adam(value, gradients[name], moments[name], (rates, decays), corrections, (BETA1, BETA2, EPSILON))
    optimizer.step(list(gradients.values()))
    epoch += 1
for name in start:
    assert torch.allclose(start[name], theirs[name], atol=1e-5), name
print("agreed")
"""


def interpreter_is_missing():
    """Why the kernels cannot be run here, or nothing."""
    if importlib.util.find_spec("triton") is None:
        return "triton is not installed"
    triton, numpy = (tuple(map(int, version(name).split(".")[:2])) for name in ("triton", "numpy"))
    if triton < (3, 7) and numpy >= (2, 4):  # github.com/triton-lang/triton/issues/9171
        return "the interpreter of triton before 3.7 converts arrays to numbers in a way that NumPy 2.4 refuses"
    return ""


@pytest.mark.skipif(bool(interpreter_is_missing()), reason=interpreter_is_missing())
@pytest.mark.parametrize("script", [SPMM, DROPOUT, FINISH, ADAM], ids=["spmm", "dropout", "finish", "adam"])
def test_kernels_in_the_interpreter(script):
    here = Path(__file__).resolve().parent
    package = Path(tadropedge.__file__).resolve().parents[1]
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": f"{package}{os.pathsep}{here}"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout.strip() == "agreed", done.stderr
