"""The networks of the old package, which go with it: equal seeds start alike, and equal inputs give the same logits."""

import pytest
import torch

from tadropedge._old.graph import Graph as OldGraph
from tadropedge._old.nn.draws import Draws
from tadropedge._old.nn.network import Problem, TrainingStep
from tadropedge._old.nn.network import Sizes as OldSizes
from tadropedge._old.registry import NETWORKS as OLD
from tadropedge._old.sparse import KeptProducts
from tadropedge._old.training.noise import Dropout
from tadropedge.lab.networks.layers import inputs
from tadropedge.lab.networks.network import Sizes, Start
from tadropedge.lab.networks.noise import Noise
from tadropedge.lab.networks.view import View
from tadropedge.lab.registry import NETWORKS
from tadropedge.testing.graphs import clusters, karate

SEEDS, RATES = torch.tensor([0, 5, 2**40]), torch.tensor([0.5, 0.3, 0.0])
SIZES = {"num_features": 10, "num_classes": 3, "layers": 4, "hidden": 13}


@pytest.mark.parametrize("graph", [karate(), clusters([60, 60, 60], 0.2, 0.02)], ids=["dense", "sparse"])
@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("name", ["gcn", "jknet", "incepgcn", "resgcn", "sage", "mlp", "gcnii", "appnp", "gat"])
def test_the_same_starts_and_the_same_logits(name, batch_norm, graph):
    kind, old, N = NETWORKS[name], OLD[name], graph.num_nodes
    settings = {"batch_norm": batch_norm} if "batch_norm" in kind.settings else {}
    settings |= {"self_weight": True} if batch_norm and "self_weight" in kind.settings else {}
    network = kind(Sizes(**SIZES), [kind.completed(name, settings)] * 3, Start(SEEDS.tolist()))
    before = old(
        Problem(
            graph=OldGraph.from_edge_index(graph.pairs, N),
            sizes=OldSizes(num_nodes=N, **SIZES),
            settings=[old.completed(name, settings)] * 3,
        )
    )
    state = before.initial(SEEDS.tolist(), torch.device("cpu"))
    assert all(torch.equal(*pair) for pair in zip(network.parameters(), state.values(), strict=True))
    state |= before.running(3, torch.device("cpu"))

    generator = torch.Generator().manual_seed(1)
    X = torch.randn(N, 10, generator=generator).relu()
    X, kept = X.to_sparse_csr() if N > 100 else X, torch.rand(3, graph.num_edges, generator=generator) < 0.5
    x, old_x, epoch = inputs(X), KeptProducts.of(X), torch.tensor(3)
    factor = torch.rand(3, graph.num_edges, generator=generator) + 1
    for factors in [None, torch.where(kept, factor, 0.0)] if old.weighs or name == "mlp" else [None]:
        step = TrainingStep(
            x=old_x, nodes=torch.ones(3, N), keeps=[kept], draws=Draws(SEEDS, epoch),
            noise=Dropout(RATES, SEEDS, epoch), epoch=epoch, factors=None if factors is None else [factors],
        )  # fmt: skip
        view = View(graph, kept, None if factors is None else factor, noise=Noise(RATES, SEEDS, epoch))
        assert torch.allclose(network(x, view), before.training(state, step)[0], atol=2e-6)
    assert torch.allclose(network(x, View(graph)), before.evaluation(state, old_x, epoch), atol=2e-6)
    if old.softens:
        before.soften(factor - 1)
        assert torch.allclose(
            network(x, View(graph, None, factor - 1)), before.evaluation(state, old_x, epoch), atol=2e-6
        )
