"""Triton's kernels of layers against the steps in torch: on a GPU, and in Triton's interpreter (another process)."""

import interpreter
import pytest
import torch

from tadropedge.lab.networks.layers import BatchNorm, GraphConvolution, finish, inputs
from tadropedge.lab.networks.network import Start
from tadropedge.lab.networks.noise import Noise
from tadropedge.lab.networks.view import View
from tadropedge.operators.kernels import reference, runs_kernels
from tadropedge.testing.graphs import karate

RATES = torch.tensor([0.0, 0.5, 1.0, 0.3])
SEEDS = torch.tensor([0, 1, -2, 2**62])
SHAPES = [(4, 1, 1), (4, 5, 3), (4, 130, 64), (4, 34, 7)]


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def noise(device="cpu", step=5):
    return Noise(RATES.to(device), SEEDS.to(device), torch.tensor(step, device=device))


def reference_factors(shape, layer):
    """What entries are multiplied by, step by step in torch."""
    return reference.dropout(torch.ones(shape), noise().coins(layer))


def check_dropout(device):
    for shape in SHAPES:
        h = normal(*shape).to(device).requires_grad_()
        out = noise(device).drop(h, 3)
        factors = reference_factors(shape, 3).to(device)
        assert torch.equal(out, h * factors)
        slope = normal(*shape, seed=1).to(device)
        assert torch.equal(torch.autograd.grad(out, h, slope)[0], slope * factors)


def check_ends(device):
    """``finish`` and its gradients, each part on and off, against ten lines of torch in float64."""
    graph = karate().to(device)
    for shape in SHAPES:
        for activate, drops, norms in (
            (True, True, False),
            (True, True, True),
            (True, False, False),
            (False, False, True),
        ):
            step = View(graph, noise=noise(device))
            norm = BatchNorm(Start([0] * 4), shape[2]).to(device) if norms else None
            leaves = [normal(*shape), normal(4, shape[2], seed=1)]
            leaves += [normal(4, shape[2], seed=2), normal(4, shape[2], seed=3)] if norms else []
            leaves = [leaf.to(device).requires_grad_() for leaf in leaves]
            if norm is not None:
                norm.scale.data, norm.shift.data = leaves[2].data, leaves[3].data
            ours = finish(leaves[0] * 1.0, leaves[1], step, norm=norm, activate=activate, drop=0 if drops else None)
            exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
            h = exact[0] + exact[1][:, None]
            mean, variance = h.mean(1, keepdim=True), h.var(1, keepdim=True, unbiased=False)
            if norms:
                h = (h - mean) / (variance + 1e-5).sqrt() * exact[2][:, None] + exact[3][:, None]
            h = h.relu() if activate else h
            h = h * reference_factors(shape, 0).to(device).double() if drops else h
            assert torch.allclose(ours.double(), h, atol=1e-4)
            if norm is not None:
                spread = variance * shape[1] / max(1, shape[1] - 1)
                assert torch.allclose(norm.mean.double(), 0.1 * mean, atol=1e-5)
                assert torch.allclose(norm.variance.double(), 0.9 + 0.1 * spread, atol=1e-5)
            probe = normal(*shape, seed=4).to(device)
            mine = torch.autograd.grad(ours, leaves if norm is None else [*leaves[:2], norm.scale, norm.shift], probe)
            theirs = torch.autograd.grad(h, exact, probe.double())
            if shape[1] > 1:  # of one row, batch norm leaves rounding errors
                assert all(torch.allclose(a.double(), b, atol=2e-3) for a, b in zip(mine, theirs, strict=True))


def check_layers(device):
    """A whole layer, NaN included, and evaluation with the running statistics."""
    graph = karate().to(device)
    layer = GraphConvolution(Start([0, 1, 2, 3]), 5, 6, batch_norm=True, self_weight=True, drop=1).to(device)
    x, view = inputs(normal(34, 5).to(device)), View(graph, noise=noise(device))
    assert bool(layer(x, view.shift(["gcn"] * 4), view).isfinite().all())
    evaluated = View(graph)
    assert bool(layer(x, evaluated.shift(["gcn"] * 4), evaluated).isfinite().all())
    with torch.no_grad():
        layer.weight[1] = torch.nan
    found = layer(x, view.shift(["gcn"] * 4), view)
    assert found.isnan().any(dim=1).any(dim=1).tolist() == [False, True, False, False]
    names = torch.tensor([3, 0, 33], device=device)
    part = View(graph, noise=noise(device).of(names))
    h, bias = normal(4, 34, 6).to(device), normal(4, 6, seed=1).to(device)
    whole = finish(h.clone(), bias, view, drop=2)
    assert torch.allclose(finish(h[:, names], bias, part, drop=2), whole[:, names], atol=1e-6)


def check_all(device):
    assert runs_kernels(torch.ones(1, device=device))
    check_dropout(device)
    check_ends(device)
    check_layers(device)


def test_the_steps_in_torch_agree_with_the_reference():
    check_dropout("cpu")
    check_ends("cpu")
    check_layers("cpu")


@interpreter.needed
def test_kernels_in_the_interpreter():
    interpreter.check_all_of(__file__)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_kernels_on_a_gpu():
    check_all("cuda")
