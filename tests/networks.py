"""Networks without a trainer around them, for tests that call their passes themselves."""

import torch
from graphs import ZOO

from tadropedge.training.config import Architecture, Trial
from tadropedge.training.task import Task

KARATE = ZOO["karate"]


def make_network(name, layers=2, *, features=7, hidden=5, classes=3, graph=KARATE, trials=3, **settings):
    """The network of ``trials`` trials with the same settings, each a value or a list of one per trial."""
    level = "graph" if name == "gcnn" else "node"
    shape = (graph.num_nodes, features) if level == "node" else (1, graph.num_nodes, features)
    task = Task(
        graph=graph,
        features=torch.zeros(shape),
        labels=torch.zeros(shape[0], dtype=torch.int64),
        num_classes=classes,
        scores={},
    )
    each = [
        {key: value[t] if isinstance(value, list) else value for key, value in settings.items()} for t in range(trials)
    ]
    return task.network(Architecture(name, layers, hidden), [Trial(settings=one) for one in each])
