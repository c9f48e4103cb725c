import dense
import numpy as np
import pytest
import torch
from graphs import ZOO, path, star
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_dense_adj

from tadropedge import Graph, TadropedgeError, sample_directed, sample_edges, shift_operator
from tadropedge.shift import NORMALIZATIONS

NAMES = sorted(NORMALIZATIONS)
SYMMETRIC = [name for name in NAMES if name != "random-walk"]


def masks(graph, rows=3):
    return sample_edges(torch.full((graph.num_edges,), 0.5, dtype=torch.float64), seed=list(range(rows)))


@pytest.mark.parametrize("normalization", NAMES)
@pytest.mark.parametrize("name", ZOO)
def test_every_normalisation_of_every_mask_against_dense(name, normalization, device):
    graph = ZOO[name]
    keep = torch.cat((masks(graph), torch.zeros(1, graph.num_edges, dtype=torch.bool)))
    shift = shift_operator(graph.to(device), keep.to(device), normalization=normalization, dtype=torch.float64)
    assert shift.shape == (4, graph.num_nodes, graph.num_nodes)
    for row, mask in enumerate(keep):
        expected = dense.shift(dense.masked_adjacency(graph, mask), normalization)
        assert torch.allclose(shift.to_dense()[row].cpu(), expected, atol=1e-10)
        alone = shift_operator(graph.to(device), mask.to(device), normalization=normalization, dtype=torch.float64)
        assert torch.allclose(alone.to_sparse_csr().to_dense().cpu(), expected, atol=1e-10)
    assert not shift.values.isnan().any()


@pytest.mark.parametrize("normalization", [name for name in NAMES if name != "spectral"])
def test_directed_masks_against_dense(normalization):
    graph = ZOO["weighted"]
    keep = sample_directed(graph.num_edges, 0.6, seed=1)
    shift = shift_operator(graph, keep, normalization=normalization, dtype=torch.float64)
    A = dense.masked_adjacency(graph, keep)
    assert not torch.equal(A, A.T)
    expected = dense.shift(A, normalization)
    assert torch.allclose(shift.to_dense(), expected)
    x = torch.ones(graph.num_nodes, 2, dtype=torch.float64, requires_grad=True)
    (shift @ x)[:, 0].sum().backward()
    assert torch.allclose(x.grad[:, 0], expected.sum(0))


@pytest.mark.parametrize("name", ZOO)
def test_equal_to_gcn_norm_on_the_filtered_edges(name, device):
    graph = ZOO[name].to(device)
    keep = masks(ZOO[name])[0].to(device)
    pairs = graph.pairs[:, keep]
    weight = None if graph.weight is None else graph.weight[keep].float().repeat(2)
    edge_index, values = gcn_norm(torch.cat((pairs, pairs.flip(0)), dim=1), weight, graph.num_nodes)
    expected = to_dense_adj(edge_index, edge_attr=values, max_num_nodes=graph.num_nodes)[0]
    assert torch.allclose(shift_operator(graph, keep).to_dense(), expected, atol=1e-6)


@pytest.mark.parametrize("normalization", SYMMETRIC)
def test_symmetric_masks_give_symmetric_operators(normalization):
    S = shift_operator(ZOO["karate"], masks(ZOO["karate"]), normalization=normalization).to_dense()
    assert torch.equal(S, S.transpose(-1, -2))


@pytest.mark.parametrize("batch_s", [(), (3,), (2, 3)])
@pytest.mark.parametrize("batch_x", [(), (3,), (2, 3), (4, 2, 3)])
@pytest.mark.parametrize("normalization", ["gcn", "random-walk"])
def test_product_and_gradients_against_dense(batch_s, batch_x, normalization, device):
    graph = ZOO["parts"].to(device)
    generator = torch.Generator().manual_seed(0)
    soft = torch.rand(*batch_s, graph.num_edges, generator=generator, dtype=torch.float64)
    x = torch.randn(*batch_x, graph.num_nodes, 3, generator=generator, dtype=torch.float64)
    soft, x = soft.to(device).requires_grad_(), x.to(device).requires_grad_()
    shift = shift_operator(graph, soft, normalization=normalization, dtype=torch.float64)
    ours = shift @ x
    expected = shift.to_dense() @ x
    assert ours.shape == expected.shape
    assert torch.allclose(ours, expected)
    probe = torch.randn(ours.shape, generator=generator, dtype=torch.float64).to(device)
    for mine, theirs in zip(
        torch.autograd.grad((ours * probe).sum(), (soft, x), retain_graph=True),
        torch.autograd.grad((expected * probe).sum(), (soft, x)),
        strict=True,
    ):
        assert torch.allclose(mine, theirs)


def test_gradients_numerically():
    graph = path(4)
    soft = torch.tensor([0.3, 0.8, 0.5], dtype=torch.float64, requires_grad=True)
    x = torch.randn(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    for normalization in NAMES:
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


@pytest.mark.parametrize("normalization", NAMES)
def test_nodes_that_lost_everything_are_never_nan(normalization):
    graph = star(4)
    soft = torch.zeros(4, requires_grad=True)
    shift = shift_operator(graph, soft, normalization=normalization)
    out = shift @ torch.arange(5.0)[:, None]
    own = {"gcn": 1, "first-order": 1, "gcn-residual": 2, "random-walk": 1}.get(normalization, 0)
    assert out[:, 0].tolist() == [own * node for node in range(5)]
    out.sum().backward()
    assert not soft.grad.isnan().any()


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
    whole = shift_operator(ZOO["karate"])
    assert torch.equal(whole.values, shift_operator(ZOO["karate"], torch.ones(78, dtype=torch.bool)).values)
    assert repr(whole) == "ShiftOperator(nodes=34, entries=190, batch=())"


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
    "kind": (lambda: shift_operator(KARATE, [True]), "keep must have shape .* got list"),
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
        "keep is on meta, but the graph is on cpu",
    ),
    "x shape": (lambda: shift_operator(KARATE) @ torch.ones(33, 2), r"x of shape \[..., 34, F\], got \[33, 2\]"),
    "x vector": (lambda: shift_operator(KARATE) @ torch.ones(34), r"x of shape \[..., 34, F\], got \[34\]"),
    "x device": (lambda: shift_operator(KARATE) @ torch.ones(34, 2, device="meta"), "x is on meta, but the shift"),
    "values": (lambda: shift_operator(KARATE).with_values(torch.ones(3)), "the pattern has 190 entries"),
    "spectral directed": (
        lambda: shift_operator(KARATE, torch.ones(156), normalization="spectral"),
        "spectral normalization needs a mask of edges",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, message = BAD[name]
    with pytest.raises(TadropedgeError, match=message):
        call()
