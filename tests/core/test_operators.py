"""Shift operators: their nine formulas, products, gradients, what is refused, and the same bits as ever."""

import dense
import numpy as np
import pytest
import torch
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_dense_adj

from tadropedge import Graph, TadropedgeError, sample_edges, shift_operator
from tadropedge.operators.pattern import Csr, Scales
from tadropedge.operators.product import multiply, sparse_product
from tadropedge.operators.shift import NORMALIZATIONS
from tadropedge.testing.graphs import ZOO, clusters, grid, path
from tadropedge.testing.normalizations import NormalizationContract, masks

F64 = torch.float64
KARATE = ZOO["karate"]


# -- the nine, and one of a user's own ------------------------------------------------------------------------


class Printed(NormalizationContract):
    def formula(self, A):
        return dense.shift(A, self.name)


class TestGcn(Printed):
    name, alone = "gcn", 1


class TestFirstOrder(Printed):
    name, alone = "first-order", 1


class TestGcnResidual(Printed):
    name, alone = "gcn-residual", 2


class TestRandomWalk(Printed):
    name, alone, symmetric = "random-walk", 1, False


class TestNeighbourMean(Printed):
    name, symmetric = "neighbour-mean", False


class TestAdjacency(Printed):
    name = "adjacency"


class TestSpectral(Printed):
    name, smooth = "spectral", False  # its scale is a constant of the mask


class TestLaplacian(Printed):
    name = "laplacian"


class TestNormalizedLaplacian(Printed):
    name = "normalized-laplacian"


def column_stochastic(a):
    """(A + I) D̃^-1 with the degrees of the columns."""
    inverse = a.degrees(1.0).reciprocal()
    return Scales(a.ones(), inverse, inverse, symmetric=False)


class TestColumnStochastic(NormalizationContract):
    name, normalize, alone, symmetric = "column-stochastic", staticmethod(column_stochastic), 1, False

    def formula(self, A):
        loops = A + torch.eye(len(A), dtype=A.dtype)
        return loops / loops.sum(dim=0)


def test_every_normalisation_has_its_contract():
    assert {contract.name for contract in Printed.__subclasses__()} == set(NORMALIZATIONS)


# -- the same as elsewhere -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ZOO)
def test_equal_to_gcn_norm_on_the_filtered_edges(name, device):
    graph = ZOO[name].to(device)
    keep = masks(ZOO[name])[0].to(device)
    pairs = graph.pairs[:, keep]
    weight = None if graph.weight is None else graph.weight[keep].float().repeat(2)
    edge_index, values = gcn_norm(torch.cat((pairs, pairs.flip(0)), dim=1), weight, graph.num_nodes)
    expected = to_dense_adj(edge_index, edge_attr=values, max_num_nodes=graph.num_nodes)[0]
    assert torch.allclose(shift_operator(graph, keep).to_dense(), expected, atol=1e-6)


def test_gradients_numerically():
    graph = path(4)
    soft = torch.tensor([0.3, 0.8, 0.5], dtype=F64, requires_grad=True)
    x = torch.randn(4, 2, dtype=F64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    for normalization in set(NORMALIZATIONS) - {"spectral"}:  # its scale is a constant of the mask
        torch.autograd.gradcheck(
            lambda s, y, name=normalization: shift_operator(graph, s, normalization=name, dtype=F64) @ y, (soft, x)
        )


def test_values_get_no_gradient_unasked():
    shift = shift_operator(KARATE, masks(KARATE)[0])
    x = torch.randn(34, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    (shift @ x).sum().backward()
    assert not shift.values.requires_grad
    soft = torch.ones(78, requires_grad=True)
    (shift_operator(KARATE, soft) @ x.detach()).sum().backward()
    assert soft.grad.shape == soft.shape


def test_types_and_words():
    shift = shift_operator(KARATE)
    assert shift.values.dtype == torch.float32
    assert (shift @ torch.ones(34, 2, dtype=F64)).dtype == F64
    assert repr(shift) == "ShiftOperator(nodes=34, entries=190, batch=())"
    assert torch.equal(shift_operator(Graph.from_edge_index([[], []], 3)).to_dense(), torch.eye(3))


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, F64])
def test_weights_and_probabilities_near_nothing_are_never_nan(normalization, dtype):
    tiny = [1e-40, 0.0, 1e-320, 1.0, 1e-7]
    graph = Graph.from_edge_index([[0, 0, 1, 2, 3], [1, 2, 2, 3, 4]], None, tiny)
    keep = torch.tensor([[True] * 5, [False, True, True, False, True]])
    given = {"normalization": normalization, "dtype": dtype}
    assert shift_operator(graph, keep, **given).values.isfinite().all()
    small = torch.tensor([1e-300, 1e-30, 1e-5, 0.5, 1.0], dtype=F64)
    assert shift_operator(graph, torch.zeros_like(keep), unbiased=small, **given).values.isfinite().all()


# -- the spectral radius --------------------------------------------------------------------------------------


def test_spectral_radius_is_one_also_on_bipartite_and_empty_graphs():
    for graph in (ZOO["grid"], ZOO["star"], KARATE, ZOO["parts"]):
        shift = shift_operator(graph, normalization="spectral", dtype=F64)
        assert float(torch.linalg.eigvalsh(shift.to_dense())[-1]) == pytest.approx(1, abs=1e-9)
    nothing = shift_operator(Graph.from_edge_index([[], []], 3), normalization="spectral")
    assert nothing.to_dense().abs().sum() == 0


@pytest.mark.parametrize("n", [1000, 5000])
def test_spectral_radius_of_a_long_path(n):
    """λ_max = 2 cos(π / (n + 1)): neighbours in the spectrum are close, so the iteration is long."""
    shift = shift_operator(path(n), normalization="spectral", dtype=F64)
    exact = 1e-8 if n == 1000 else 1e-7
    assert float(shift.values.max()) == pytest.approx(1 / (2 * np.cos(np.pi / (n + 1))), rel=exact)


def test_spectral_radius_of_a_grid_in_a_batch():
    graph = grid(30, 40)
    keep = torch.stack((torch.ones(graph.num_edges, dtype=torch.bool), torch.zeros(graph.num_edges, dtype=torch.bool)))
    values = shift_operator(graph, keep, normalization="spectral", dtype=F64).values
    assert float(values[0].max()) == pytest.approx(1 / (2 * np.cos(np.pi / 31) + 2 * np.cos(np.pi / 41)), rel=1e-9)
    assert not values[1].any()


# -- products -------------------------------------------------------------------------------------------------

ROWS, COLS, FEATURES, TRIALS = 5, 4, 3, 2
PLACES = [(1, 0), (1, 3), (2, 1), (4, 0), (4, 1), (4, 3)]  # rows 0 and 3 and column 2 are empty


def csr(places, rows, cols, index=torch.int64, device="cpu"):
    row, col = torch.tensor(places, dtype=torch.int64, device=device).reshape(-1, 2).T
    crow = torch.zeros(rows + 1, dtype=torch.int64, device=device)
    crow[1:] = torch.bincount(row, minlength=rows).cumsum(0)
    return Csr(crow.to(index), col.to(index), cols)


def to_dense(places, values):
    flat = values.new_zeros(*values.shape[:-1], places.num_rows * places.num_cols)
    flat = flat.index_add(-1, places.row * places.num_cols + places.col, values)
    return flat.view(*values.shape[:-1], places.num_rows, places.num_cols)


def normal(*shape, seed=0, dtype=F64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def agree(places, values, x, symmetric=False):
    """Product and both gradients against dense."""
    values, x = values.clone().requires_grad_(), x.clone().requires_grad_()
    ours, expected = sparse_product(places, values, x, symmetric=symmetric), to_dense(places, values) @ x
    assert ours.shape == expected.shape
    assert torch.allclose(ours, expected)
    probe = normal(*ours.shape, seed=9).to(ours)
    mine = torch.autograd.grad((ours * probe).sum(), (values, x))
    for gradient, other in zip(mine, torch.autograd.grad((expected * probe).sum(), (values, x)), strict=True):
        assert gradient.shape == other.shape
        assert torch.allclose(gradient, other)


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("batch_x", [(), (1,), (TRIALS,)])
@pytest.mark.parametrize("batch_values", [(), (1,), (TRIALS,)])
def test_product_and_gradients_of_a_rectangular_matrix(batch_values, batch_x, index, device):
    places = csr(PLACES, ROWS, COLS, index, device)
    x = normal(*batch_x, COLS, FEATURES, seed=1).to(device)
    agree(places, normal(*batch_values, len(PLACES)).to(device), x)


@pytest.mark.parametrize("batch_x", [(), (TRIALS,)])
@pytest.mark.parametrize("batch_values", [(), (TRIALS,)])
def test_the_symmetric_flag_changes_nothing_where_it_is_true(batch_values, batch_x):
    places = csr([(0, 1), (1, 0), (1, 1), (1, 3), (3, 1)], 4, 4)  # node 2 is alone
    values = normal(*batch_values, 3)[..., [0, 0, 1, 2, 2]]
    for symmetric in (True, False):
        agree(places, values, normal(*batch_x, 4, FEATURES, seed=1), symmetric)


def test_a_gradient_that_is_not_contiguous():
    places, values = csr(PLACES, ROWS, COLS), normal(TRIALS, len(PLACES))
    x = normal(TRIALS, COLS, FEATURES).requires_grad_()
    probe = normal(FEATURES, ROWS, TRIALS, seed=3).transpose(0, 2)
    (gradient,) = torch.autograd.grad(sparse_product(places, values, x), x, probe)
    assert torch.allclose(gradient, to_dense(places, values).transpose(-1, -2) @ probe)


def test_a_matrix_without_entries():
    out = sparse_product(csr([], 3, 2), torch.zeros(TRIALS, 0), torch.ones(2, FEATURES))
    assert torch.equal(out, torch.zeros(TRIALS, 3, FEATURES))


@pytest.mark.parametrize("places", [csr(PLACES, ROWS, COLS, torch.int32), KARATE.pattern, ZOO["parts"].pattern])
def test_turned_is_the_transpose_and_turning_twice_changes_nothing(places):
    values = normal(TRIALS, places.num_entries)
    turned, order = places.turned
    assert (turned.num_rows, turned.num_cols) == (places.num_cols, places.num_rows)
    assert turned.crow.dtype == turned.col.dtype == places.col.dtype
    assert torch.equal(to_dense(turned, values[:, order]), to_dense(places, values).transpose(-1, -2))
    again, back = turned.turned
    assert torch.equal(again.crow, places.crow)
    assert torch.equal(again.col, places.col)
    assert torch.equal(order[back], torch.arange(places.num_entries))


@pytest.mark.parametrize("width", range(1, 40))
def test_a_dropped_edge_is_a_zero_that_changes_no_bit_of_other_sums(width):
    graph = clusters([60, 80], 0.3, 0.05)
    keep = sample_edges(torch.full((graph.num_edges,), 0.4), seed=width)
    x = normal(graph.num_nodes, width, dtype=torch.float32)
    fewer = Graph.from_edge_index(graph.pairs[:, keep], graph.num_nodes)
    assert torch.equal(shift_operator(graph, keep) @ x, shift_operator(fewer) @ x)
    alone = multiply(graph.pattern, shift_operator(graph, keep).values, torch.nn.functional.pad(x, (0, 29)))
    assert torch.equal(shift_operator(graph, keep) @ x, alone[:, :width])  # 29 columns more: no kernel in groups


# -- what is refused ------------------------------------------------------------------------------------------

BAD = {
    "batch": (lambda: shift_operator(KARATE, masks(KARATE)) @ torch.ones(5, 34, 2), r"\[4\].* \[5\] of x do not fit"),
    "integers": (lambda: shift_operator(KARATE) @ torch.ones(34, 2).long(), "float32 or float64 .* torch.int64"),
    "half": (lambda: shift_operator(KARATE) @ torch.ones(34, 2).half(), "float32 or float64 .* torch.float16"),
    "x sparse": (lambda: shift_operator(KARATE) @ torch.ones(34, 2).to_sparse(), "x must be a dense tensor"),
    "x shape": (lambda: shift_operator(KARATE) @ torch.ones(33, 2), r"shape \[..., 34, F\] .* got shape \[33, 2\]"),
    "x vector": (lambda: shift_operator(KARATE) @ torch.ones(34), r"shape \[..., 34, F\] .* got shape \[34\]"),
    "x device": (lambda: shift_operator(KARATE) @ torch.ones(34, 2, device="meta"), "on cpu, .* on meta"),
    "dtype word": (lambda: shift_operator(KARATE, dtype="float32"), "dtype must be a floating point type"),
    "nan": (lambda: shift_operator(KARATE, torch.full((78,), float("nan"))), "finite and at least 0"),
    "negative": (lambda: shift_operator(KARATE, torch.full((78,), -1.0)), "finite and at least 0"),
    "graph": (lambda: shift_operator("cora"), "expected a tadropedge.Graph, got str"),
    "length": (lambda: shift_operator(KARATE, torch.ones(156)), r"keep must have 78 entries .* got shape \[156\]"),
    "kind": (lambda: shift_operator(KARATE, [True]), "keep must be a tensor, got list"),
    "keep type": (lambda: shift_operator(KARATE, torch.ones(78).long()), "bool mask or floating point"),
    "device": (lambda: shift_operator(KARATE, torch.ones(78, device="meta")), "keep is on meta"),
    "name": (lambda: shift_operator(KARATE, normalization="gnc"), r"unknown normalization 'gnc'.*mean 'gcn'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(name):
    call, message = BAD[name]
    with pytest.raises(TadropedgeError, match=message):
        call()


@pytest.mark.parametrize(
    ("prob", "message"),
    [
        ([0.5, 0.0], "above 0, got 0"),
        ([0.5, 1.5], r"unbiased must lie in \[0, 1\], got 1.5"),
        ([0.5], "unbiased must have 2 entries"),
        ([[0.5, 0.5]] * 3, "does not fit keep"),
        ([], "unbiased must have 2 entries"),
    ],
)
def test_bad_probabilities_of_unbiased_operators(prob, message):
    with pytest.raises(TadropedgeError, match=message):
        shift_operator(path(3), torch.ones(2, 2, dtype=torch.bool), unbiased=torch.tensor(prob))


def test_a_batch_of_no_subgraphs_is_an_empty_product():
    graph = path(4)
    none = shift_operator(graph, torch.ones((0, 3), dtype=torch.bool))
    assert (none @ torch.ones(4, 2)).shape == (0, 4, 2)
    assert (shift_operator(graph) @ torch.ones(0, 4, 2)).shape == (0, 4, 2)
