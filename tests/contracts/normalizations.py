"""What every normalisation of ``NORMALIZATIONS`` must do: a mask of kept edges in, a shift operator out."""

from __future__ import annotations

import dense
import pytest
import torch
from graphs import ZOO, relabel, star

from tadropedge import TadropedgeError, sample_directed, sample_edges, shift_operator
from tadropedge.shift import NORMALIZATIONS

F64 = torch.float64


def masks(graph, rows=3):
    return sample_edges(torch.full((graph.num_edges,), 0.5, dtype=F64), seed=list(range(rows)))


def soft_values(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0), dtype=F64) + 0.05


def signals(*shape):
    return torch.randn(*shape, 3, generator=torch.Generator().manual_seed(1), dtype=F64)


class NormalizationContract:
    """Subclass it with the name; the dense formula is in ``tests/dense.py``, or override :meth:`formula`.

    ``symmetric``: whether S is, for a mask of edges; ``directed``: whether directions may have different masks;
    ``smooth``: whether the whole formula is differentiated; ``alone``: the diagonal entry of a node without edges. A
    function ``normalize`` is registered under the name while the tests run.
    """

    name: str
    symmetric = True
    directed = True
    smooth = True
    alone = 0.0
    normalize = None

    @pytest.fixture(autouse=True)
    def registered(self, monkeypatch):
        if self.normalize is not None:
            monkeypatch.setitem(NORMALIZATIONS, self.name, type(self).normalize)

    def formula(self, A):
        return dense.shift(A, self.name)

    def shift(self, graph, keep=None, dtype=F64):
        return shift_operator(graph, keep, normalization=self.name, dtype=dtype)

    def expected(self, graph, keep):
        """The dense formula for each row of ``keep [T, M]``."""
        return torch.stack([self.formula(dense.masked_adjacency(graph, row)) for row in keep])

    @pytest.mark.parametrize("graph", ZOO)
    def test_every_mask_against_the_dense_formula_in_a_batch_and_alone(self, graph, device):
        graph = ZOO[graph]
        hard = torch.cat((masks(graph), torch.zeros(1, graph.num_edges, dtype=torch.bool)))
        for keep in (hard, soft_values(2, graph.num_edges)):
            shift, expected = self.shift(graph.to(device), keep.to(device)), self.expected(graph, keep)
            assert shift.shape == expected.shape
            assert torch.allclose(shift.to_dense().cpu(), expected, atol=1e-10)
            for row, mask in enumerate(keep):
                alone = self.shift(graph.to(device), mask.to(device))
                assert torch.allclose(alone.to_sparse_csr().to_dense().cpu(), expected[row], atol=1e-10)

    def test_symmetric_where_it_says_so(self):
        for graph in (ZOO["karate"], ZOO["weighted"]):
            shift = self.shift(graph, masks(graph))
            S = shift.to_dense()
            assert shift.symmetric == torch.equal(S, S.mT) == self.symmetric

    def test_directed_masks(self):
        graph = ZOO["weighted"]
        keep = sample_directed(graph.num_edges, 0.6, seed=1)
        if not self.directed:
            with pytest.raises(TadropedgeError, match=f"{self.name} normalization needs a mask of edges"):
                self.shift(graph, keep)
            return
        shift, expected = self.shift(graph, keep), self.formula(dense.masked_adjacency(graph, keep))
        assert not shift.symmetric
        assert not torch.equal(expected, expected.T)
        assert torch.allclose(shift.to_dense(), expected)
        self.agree(shift, expected, signals(graph.num_nodes))

    def agree(self, shift, expected, x, *inputs):
        """S x and its gradients through x and ``inputs``, against dense ones."""
        x = x.to(shift.values.device).requires_grad_()
        ours, theirs = shift @ x, expected @ x
        assert ours.shape == theirs.shape
        assert torch.allclose(ours, theirs)
        probe = torch.randn(ours.shape, generator=torch.Generator().manual_seed(2), dtype=F64).to(ours.device)
        mine = torch.autograd.grad((ours * probe).sum(), (x, *inputs), retain_graph=True)
        dense_ones = torch.autograd.grad((theirs * probe).sum(), (x, *inputs))
        for gradient, reference in zip(mine, dense_ones, strict=True):
            assert torch.allclose(gradient, reference)

    @pytest.mark.parametrize("graph", ["parts", "weighted"])
    def test_products_and_gradients_against_the_dense_formula(self, graph):
        graph = ZOO[graph]
        soft = soft_values(2, graph.num_edges).requires_grad_(self.smooth)
        inputs = (soft,) if self.smooth else ()
        self.agree(self.shift(graph, soft), self.expected(graph, soft), signals(2, graph.num_nodes), *inputs)

    @pytest.mark.parametrize("batch_s", [(), (3,), (2, 3)])
    @pytest.mark.parametrize("batch_x", [(), (3,), (2, 3), (4, 2, 3)])
    def test_batches_of_operators_and_of_signals_broadcast(self, batch_s, batch_x, device):
        graph = ZOO["parts"].to(device)
        soft = soft_values(*batch_s, graph.num_edges).to(device).requires_grad_(self.smooth)
        shift = self.shift(graph, soft)
        inputs = (soft,) if self.smooth else ()
        self.agree(shift, shift.to_dense(), signals(*batch_x, graph.num_nodes), *inputs)

    def test_names_of_nodes_do_not_matter(self):
        graph = ZOO["weighted"]
        permutation = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(3))
        other, place = relabel(graph, permutation)
        keep = masks(graph)[0]
        moved = torch.zeros_like(keep)
        moved[place] = keep
        S, turned = self.shift(graph, keep).to_dense(), self.shift(other, moved).to_dense()
        assert torch.allclose(turned[permutation][:, permutation], S, atol=1e-10)

    def test_nodes_that_lost_everything_are_never_nan(self):
        soft = torch.zeros(4, requires_grad=True)
        out = self.shift(star(4), soft, torch.float32) @ torch.arange(5.0)[:, None]
        assert out[:, 0].tolist() == [self.alone * node for node in range(5)]
        if out.requires_grad:
            out.sum().backward()
            assert not soft.grad.isnan().any()

    def test_no_mask_keeps_everything_in_the_type_that_is_asked_for(self):
        graph = ZOO["karate"]
        for dtype in (torch.float32, F64):
            whole = self.shift(graph, dtype=dtype)
            assert whole.values.dtype == dtype
            assert torch.equal(whole.values, self.shift(graph, torch.ones(78, dtype=torch.bool), dtype).values)
        double = self.shift(graph)
        assert torch.allclose(self.shift(graph, dtype=torch.float32).values.double(), double.values, atol=1e-6)
