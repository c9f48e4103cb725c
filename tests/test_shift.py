import numpy as np
import pytest
import torch
from contracts.normalizations import NormalizationContract, masks
from graphs import ZOO, path
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_dense_adj

from tadropedge import Graph, TadropedgeError, shift_operator
from tadropedge.shift import NORMALIZATIONS


class TestGcn(NormalizationContract):
    name = "gcn"
    alone = 1


class TestFirstOrder(NormalizationContract):
    name = "first-order"
    alone = 1


class TestGcnResidual(NormalizationContract):
    name = "gcn-residual"
    alone = 2


class TestRandomWalk(NormalizationContract):
    name = "random-walk"
    symmetric = False
    alone = 1


class TestNeighbourMean(NormalizationContract):
    name = "neighbour-mean"
    symmetric = False


class TestAdjacency(NormalizationContract):
    name = "adjacency"


class TestSpectral(NormalizationContract):
    name = "spectral"
    directed = False
    smooth = False  # its scale is a constant of the mask


class TestLaplacian(NormalizationContract):
    name = "laplacian"


class TestNormalizedLaplacian(NormalizationContract):
    name = "normalized-laplacian"


def column_stochastic(kept, pattern):
    """(A + I) D̃^-1 with the degrees of the columns: a user's own normalisation, not symmetric."""
    both = kept if kept.shape[-1] == 2 * pattern.num_pairs else torch.cat((kept, kept), dim=-1)
    low, high = pattern.pairs
    columns = torch.cat((high, low))
    degrees = both.new_ones((*both.shape[:-1], pattern.num_nodes)).scatter_add(-1, columns.expand_as(both), both)
    return both / degrees.index_select(-1, columns), degrees.reciprocal()


class TestColumnStochastic(NormalizationContract):
    name = "column-stochastic"
    normalize = column_stochastic
    symmetric = False
    alone = 1

    def formula(self, A):
        loops = A + torch.eye(len(A), dtype=A.dtype)
        return loops / loops.sum(dim=0)


def test_every_normalisation_has_its_contract():
    assert {contract.name for contract in NormalizationContract.__subclasses__()} >= set(NORMALIZATIONS)


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
    soft = torch.tensor([0.3, 0.8, 0.5], dtype=torch.float64, requires_grad=True)
    x = torch.randn(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    for normalization in NORMALIZATIONS:
        if normalization != "spectral":  # its scale is a constant of the mask
            torch.autograd.gradcheck(
                lambda s, y, name=normalization: shift_operator(graph, s, normalization=name, dtype=torch.float64) @ y,
                (soft, x),
            )


def test_values_get_no_gradient_unasked():
    shift = shift_operator(ZOO["karate"], masks(ZOO["karate"])[0])
    x = torch.randn(34, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    (shift @ x).sum().backward()
    assert not shift.values.requires_grad
    learned = shift.with_values(shift.values.clone().requires_grad_())
    (learned @ x.detach()).sum().backward()
    assert learned.values.grad.shape == shift.values.shape


def test_spectral_radius_is_one_also_on_bipartite_and_empty_graphs():
    for graph in (ZOO["grid"], ZOO["star"], ZOO["karate"], ZOO["parts"]):
        shift = shift_operator(graph, normalization="spectral", dtype=torch.float64)
        assert float(torch.linalg.eigvalsh(shift.to_dense())[-1]) == pytest.approx(1, abs=1e-9)
    nothing = shift_operator(Graph.from_edge_index([[], []], 3), normalization="spectral")
    assert nothing.to_dense().abs().sum() == 0


def test_spectral_radius_of_a_long_path():
    """λ_max = 2 cos(π / (n + 1)): neighbours in the spectrum are close, so the iteration is long."""
    shift = shift_operator(path(1000), normalization="spectral", dtype=torch.float64)
    assert float(shift.values.max()) == pytest.approx(1 / (2 * np.cos(np.pi / 1001)), rel=1e-8)


def test_no_edges_and_no_mask():
    alone = Graph.from_edge_index([[], []], 3)
    assert torch.equal(shift_operator(alone).to_dense(), torch.eye(3))
    assert repr(shift_operator(ZOO["karate"])) == "ShiftOperator(nodes=34, entries=190, batch=())"


def test_types():
    shift = shift_operator(ZOO["karate"])
    assert shift.values.dtype == torch.float32
    assert (shift @ torch.ones(34, 2, dtype=torch.float64)).dtype == torch.float64


KARATE = ZOO["karate"]
BAD = {
    "batch": (
        lambda: shift_operator(KARATE, masks(KARATE)) @ torch.ones(4, 34, 2),
        r"batch axes \[3\] of the shift operator and \[4\] of x do not fit",
    ),
    "integers": (lambda: shift_operator(KARATE) @ torch.ones(34, 2).long(), "dense floating point x, got torch.int64"),
    "half": (lambda: shift_operator(KARATE) @ torch.ones(34, 2).half(), "float32 or float64, got torch.float16"),
    "dtype word": (lambda: shift_operator(KARATE, dtype="float32"), "dtype must be a floating point type"),
    "nan": (lambda: shift_operator(KARATE, torch.full((78,), float("nan"))), "finite and at least 0"),
    "negative": (lambda: shift_operator(KARATE, torch.full((78,), -1.0)), "finite and at least 0"),
    "graph": (lambda: shift_operator("cora"), "expected a tadropedge.Graph, got str"),
    "length": (
        lambda: shift_operator(KARATE, torch.ones(7)),
        r"\[..., 78\] \(edges\) or \[..., 156\] \(directed entries\), got \[7\]",
    ),
    "kind": (lambda: shift_operator(KARATE, [True]), "keep must be a tensor, got list"),
    "dtype": (
        lambda: shift_operator(KARATE, torch.ones(78).long()),
        "bool mask or floating point values, got torch.int64",
    ),
    "name": (
        lambda: shift_operator(KARATE, normalization="gnc"),
        r"unknown normalization 'gnc'; choose from gcn, first-order, .* \(did you mean 'gcn'\?\)",
    ),
    "device": (
        lambda: shift_operator(KARATE, torch.ones(78, device="meta")),
        "keep must be a dense tensor .* on meta",
    ),
    "x shape": (lambda: shift_operator(KARATE) @ torch.ones(33, 2), r"x of shape \[..., 34, F\], got \[33, 2\]"),
    "x vector": (lambda: shift_operator(KARATE) @ torch.ones(34), r"x of shape \[..., 34, F\], got \[34\]"),
    "x device": (
        lambda: shift_operator(KARATE) @ torch.ones(34, 2, device="meta"),
        "x must be a dense tensor .* on meta",
    ),
    "values": (lambda: shift_operator(KARATE).with_values(torch.ones(3)), "values must have 190 entries"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, message = BAD[name]
    with pytest.raises(TadropedgeError, match=message):
        call()


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_unbiased_operators_have_the_whole_one_as_their_mean(normalization, device):
    """Over all 2^M subgraphs of a small graph, each with its probability."""
    graph = Graph.from_edge_index([[0, 0, 1, 2, 3], [1, 2, 2, 3, 4]], None, [1.0, 2.0, 0.5, 1.0, 3.0]).to(device)
    prob = torch.tensor([0.3, 1.0, 0.5, 0.05, 0.9], dtype=torch.float64, device=device)
    masks = ((torch.arange(32, device=device)[:, None] >> torch.arange(5, device=device)) & 1).bool()
    chance = torch.where(masks, prob, 1 - prob).prod(dim=1)
    given = {"normalization": normalization, "dtype": torch.float64}
    whole = shift_operator(graph, **given).to_dense()
    thinned = shift_operator(graph, masks, unbiased=prob, **given)
    mean = (chance[:, None, None] * thinned.to_dense()).sum(dim=0)
    assert torch.allclose(mean, whole, atol=1e-12)
    diagonal = thinned.to_dense().diagonal(dim1=-2, dim2=-1)
    assert torch.equal(diagonal, whole.diagonal().expand_as(diagonal))
    rows = shift_operator(graph, masks[:2], unbiased=prob.expand(2, -1), **given)
    assert torch.equal(rows.values, thinned.values[:2])
    both = torch.cat((masks, masks), dim=1)
    assert torch.equal(shift_operator(graph, both, unbiased=prob, **given).to_dense(), thinned.to_dense())


@pytest.mark.parametrize(
    ("prob", "message"),
    [
        ([0.5, 0.0], "unbiased needs keep probabilities above 0, got 0"),
        ([0.5, 1.5], r"unbiased must lie in \[0, 1\], got 1.5"),
        ([0.5], r"unbiased must be the keep probabilities \[..., 2\], got shape \[1\]"),
        ([[0.5, 0.5]] * 3, r"unbiased has shape \[3, 2\], which does not fit keep of shape \[2, 2\]"),
        ([], "unbiased must be the keep probabilities"),
    ],
)
def test_bad_probabilities_of_unbiased_operators(prob, message):
    graph = Graph.from_edge_index([[0, 1], [1, 2]])
    with pytest.raises(TadropedgeError, match=message):
        shift_operator(graph, torch.ones(2, 2, dtype=torch.bool), unbiased=torch.tensor(prob))
