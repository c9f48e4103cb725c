"""What every normalisation must do: the matrix A of kept edges in, the parts of a shift operator out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tadropedge.graph import Graph
from tadropedge.operators.shift import NORMALIZATIONS, ShiftOperator, shift_operator
from tadropedge.sampling.sample import sample_edges
from tadropedge.testing.graphs import ZOO, clusters, relabel, star, weighted

F64 = torch.float64
DEVICES = ["cpu", *["cuda"] * torch.cuda.is_available()]
GRAPHS = ZOO | {"weights of 0": weighted(clusters([7, 6], 0.6, 0.2), zeros=0.4)}


class NormalizationContract:
    """Subclass it with the ``name`` of an entry of ``NORMALIZATIONS`` and with its :meth:`formula`.

    * ``normalize``: your function, to be registered under the name while the tests run, where it is not there yet;
    * ``symmetric``: whether S is;
    * ``smooth``: whether the whole formula is differentiated;
    * ``alone``: the diagonal entry of a node without edges.
    """

    name: str
    normalize: Callable[..., Any] | None = None
    symmetric = True
    smooth = True
    alone = 0.0

    def formula(self, A: Tensor) -> Tensor:
        """The dense operator of a dense weighted adjacency matrix, as the formula is printed."""
        raise NotImplementedError

    # -- helpers ---------------------------------------------------------------------------------------------

    @pytest.fixture(autouse=True)
    def _registered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        if self.normalize is not None:
            monkeypatch.setitem(NORMALIZATIONS, self.name, getattr(type(self).normalize, "__func__", self.normalize))

    def shift(self, graph: Graph, keep: Tensor | None = None, **given: Any) -> ShiftOperator:
        """The operator under test."""
        return shift_operator(graph, keep, normalization=self.name, **{"dtype": F64, **given})

    def expected(self, graph: Graph, keep: Tensor) -> Tensor:
        """The dense formula for each row of ``keep [T, M]``."""
        return torch.stack([self.formula(masked_adjacency(graph, row)) for row in keep])

    # -- the operator ----------------------------------------------------------------------------------------

    @pytest.mark.parametrize("device", DEVICES)
    @pytest.mark.parametrize("graph", GRAPHS)
    def test_every_mask_against_the_dense_formula_in_a_batch_and_alone(self, graph: str, device: str) -> None:
        here = GRAPHS[graph]
        there = here.to(device)
        for keep in (masks(here), soft_values(2, here.num_edges)):
            shift, expected = self.shift(there, keep.to(device)), self.expected(here, keep)
            assert shift.shape == expected.shape
            assert torch.allclose(shift.to_dense().cpu(), expected, atol=1e-10)
            for row, mask in enumerate(keep):
                alone = self.shift(there, mask.to(device))
                assert torch.allclose(alone.to_sparse_csr().to_dense().cpu(), expected[row], atol=1e-10)

    def test_symmetric_where_it_says_so(self) -> None:
        for graph in (ZOO["karate"], ZOO["weighted"]):
            shift = self.shift(graph, masks(graph))
            S = shift.to_dense()
            assert shift.symmetric == torch.equal(S, S.mT) == self.symmetric

    def test_no_mask_keeps_everything_in_the_type_that_is_asked_for(self) -> None:
        graph = ZOO["karate"]
        double = self.shift(graph)
        for dtype in (torch.float32, F64):
            whole = self.shift(graph, dtype=dtype)
            assert whole.values.dtype == dtype
            everything = torch.ones(graph.num_edges, dtype=torch.bool)
            assert torch.equal(whole.values, self.shift(graph, everything, dtype=dtype).values)
            assert torch.allclose(whole.values.double(), double.values, atol=1e-6)

    def test_nodes_that_lost_everything_are_never_nan(self) -> None:
        soft = torch.zeros(4, requires_grad=True)
        weightless = Graph.from_edge_index(star(4).pairs, 5, torch.zeros(4))
        for graph, keep in ((star(4), soft), (weightless, None), (weightless, torch.ones(4))):
            out = self.shift(graph, keep, dtype=torch.float32) @ torch.arange(5.0)[:, None]
            assert out[:, 0].tolist() == [self.alone * node for node in range(5)]
            if out.requires_grad:
                out.sum().backward()
                assert soft.grad is not None
                assert not soft.grad.isnan().any()

    def test_names_of_nodes_do_not_matter(self) -> None:
        graph = ZOO["weighted"]
        permutation = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(3))
        other, place = relabel(graph, permutation)
        keep = masks(graph)[0]
        moved = torch.zeros_like(keep)
        moved[place] = keep
        S, turned = self.shift(graph, keep).to_dense(), self.shift(other, moved).to_dense()
        assert torch.allclose(turned[permutation][:, permutation], S, atol=1e-10)

    @pytest.mark.parametrize("device", DEVICES)
    def test_unbiased_operators_have_the_whole_one_as_their_mean(self, device: str) -> None:
        """Over all 2^M subgraphs of a small graph, each with its probability."""
        graph = Graph.from_edge_index([[0, 0, 1, 2, 3], [1, 2, 2, 3, 4]], None, [1.0, 2.0, 0.0, 1.0, 3.0]).to(device)
        prob = torch.tensor([0.3, 1.0, 0.5, 0.05, 0.9], dtype=F64, device=device)
        every = ((torch.arange(32, device=device)[:, None] >> torch.arange(5, device=device)) & 1).bool()
        chance = torch.where(every, prob, 1 - prob).prod(dim=1)
        whole, thinned = self.shift(graph).to_dense(), self.shift(graph, every, unbiased=prob)
        mean = (chance[:, None, None] * thinned.to_dense()).sum(dim=0)
        assert torch.allclose(mean, whole, atol=1e-12)
        diagonal = thinned.to_dense().diagonal(dim1=-2, dim2=-1)
        assert torch.equal(diagonal, whole.diagonal().expand_as(diagonal))
        rows = self.shift(graph, every[:2], unbiased=prob.expand(2, -1))
        assert torch.equal(rows.values, thinned.values[:2])

    # -- its products ----------------------------------------------------------------------------------------

    @pytest.mark.parametrize("device", DEVICES)
    @pytest.mark.parametrize("graph", ["parts", "weighted"])
    @pytest.mark.parametrize("batch_s", [(), (3,), (2, 3)])
    @pytest.mark.parametrize("batch_x", [(), (3,), (4, 2, 3)])
    def test_products_and_gradients_are_those_of_the_dense_formula_and_batches_broadcast(
        self, batch_s: tuple[int, ...], batch_x: tuple[int, ...], graph: str, device: str
    ) -> None:
        here = ZOO[graph]
        soft = soft_values(*batch_s, here.num_edges).requires_grad_(self.smooth)
        rows = self.expected(here, soft.reshape(-1, here.num_edges))
        shift = self.shift(here.to(device), soft.to(device))
        expected = rows.reshape(*batch_s, *rows.shape[1:]).to(device)
        agree(shift, expected, signals(*batch_x, here.num_nodes), *((soft,) if self.smooth else ()))


def agree(shift: ShiftOperator, expected: Tensor, x: Tensor, *inputs: Tensor) -> None:
    """S x and its gradients through x and ``inputs``, against dense ones."""
    x = x.to(shift.values.device).requires_grad_()
    ours, theirs = shift @ x, expected @ x
    assert ours.shape == theirs.shape
    assert torch.allclose(ours, theirs)
    probe = torch.randn(ours.shape, generator=torch.Generator().manual_seed(2), dtype=F64).to(ours.device)
    mine = torch.autograd.grad((ours * probe).sum(), (x, *inputs), retain_graph=True)
    dense = torch.autograd.grad((theirs * probe).sum(), (x, *inputs))
    for gradient, reference in zip(mine, dense, strict=True):
        assert torch.allclose(gradient, reference)


def masked_adjacency(graph: Graph, keep: Tensor) -> Tensor:
    """A of the kept edges, dense, float64; ``keep [M]``."""
    low, high = graph.pairs
    values = keep.double() if graph.weight is None else keep.double() * graph.weight
    A = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=F64)
    A[low, high] = A[high, low] = values
    return A


def masks(graph: Graph, rows: int = 3) -> Tensor:
    """Some masks of half of the edges, and the empty one."""
    drawn = sample_edges(torch.full((graph.num_edges,), 0.5, dtype=F64), seed=list(range(rows)))
    return torch.cat((drawn, torch.zeros(1, graph.num_edges, dtype=torch.bool)))


def soft_values(*shape: int) -> Tensor:
    """Soft edge values, above 0."""
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0), dtype=F64) + 0.05


def signals(*shape: int) -> Tensor:
    """Three features of each node."""
    return torch.randn(*shape, 3, generator=torch.Generator().manual_seed(1), dtype=F64)
