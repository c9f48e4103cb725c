"""The competitors of the old package, which go with it: the same starts, the same samples, the same logits."""

import pytest
import torch

import experiments.paper.networks  # noqa: F401
from experiments.paper.networks.gcnn import SignalGCNN
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
from tadropedge.testing.graphs import clusters

GRAPH = clusters([60, 60, 60], 0.2, 0.02)
SEEDS, RATES, EPOCH = torch.tensor([0, 5, 2**40]), torch.tensor([0.5, 0.3, 0.0]), torch.tensor(40)


def pair(name, kind, **given):
    """The new network and the old one, its state, and a step of each."""
    old, settings = OLD[name], {"samples": 4} if "samples" in kind.settings else {}
    completed = kind.completed(name, settings)
    sizes = {"num_features": 10, "num_classes": 3, "layers": 2, "hidden": int(completed.get("hidden", 6))}
    network = kind(Sizes(**sizes), [completed] * 3, Start(SEEDS.tolist()), **given)
    graph = OldGraph.from_edge_index(GRAPH.pairs, 180)
    told = [old.completed(name, settings)] * 3
    before = old(Problem(graph=graph, sizes=OldSizes(num_nodes=180, **sizes), settings=told))
    state = before.initial(SEEDS.tolist(), torch.device("cpu"))
    return network, before, state


@pytest.mark.parametrize("name", ["graphsage", "fastgcn", "as-gcn", "neuralsparse", "ptdnet"])
def test_the_same_starts_samples_and_logits(name):
    network, before, state = pair(name, NETWORKS[name])
    assert sorted(float(v.detach().sum()) for v in network.parameters()) == sorted(
        float(v.sum()) for v in state.values()
    )
    generator = torch.Generator().manual_seed(1)
    X, nodes = torch.randn(180, 10, generator=generator), (torch.rand(3, 180, generator=generator) < 0.3).float()
    kept = torch.rand(3, GRAPH.num_edges, generator=generator) < 0.5 if before.drops else None
    step = TrainingStep(
        x=KeptProducts.of(X), nodes=nodes, keeps=[kept], draws=Draws(SEEDS, EPOCH),
        noise=Dropout(RATES, SEEDS, EPOCH), epoch=EPOCH,
    )  # fmt: skip
    found = network(inputs(X), View(GRAPH, kept, noise=Noise(RATES, SEEDS, EPOCH), nodes=nodes, epoch=EPOCH))
    logits, penalty = before.training(state, step)
    if isinstance(found, tuple):
        assert torch.allclose(found[1], penalty, rtol=1e-4)
        found = found[0]
    assert torch.allclose(found, logits, atol=1e-4, rtol=1e-4)
    whole = network(inputs(X), View(GRAPH, epoch=EPOCH))
    assert torch.allclose(whole, before.evaluation(state, KeptProducts.of(X), EPOCH), atol=1e-5)


def test_the_same_filters():
    network, before, state = pair("gcnn", SignalGCNN, num_nodes=180)
    x = torch.randn(4, 180, 10, generator=torch.Generator().manual_seed(2))
    kept = torch.rand(3, GRAPH.num_edges, generator=torch.Generator().manual_seed(3)) < 0.5
    dropout = Dropout(RATES, SEEDS, EPOCH)
    step = TrainingStep(x=x, nodes=None, keeps=[kept], draws=Draws(SEEDS, EPOCH), noise=dropout, epoch=EPOCH)
    found = network(x, View(GRAPH, kept, noise=Noise(RATES, SEEDS, EPOCH)))
    assert torch.allclose(found, before.training(state, step)[0], atol=1e-5)
    assert torch.allclose(network(x, View(GRAPH)), before.evaluation(state, x, EPOCH), atol=1e-5)
