"""Epochs of a two-layer GCN with edge dropping, against PyTorch Geometric at its best in one run.

* ``epoch``: a training step and an evaluation on the whole graph, 128 hidden units, on the paper's split;
* ``epoch-share``: a training step at two shares of kept edges, 128 dense features, without evaluations; ``times_all``:
  against ours at share 1;
* ``epoch-batch``: 32 trainings at once against one after the other, set-up included.
* ``epoch-trials`` (GPU): 100 trials of 400 epochs at once; PyG's epoch of one trial is scaled.

PyG's ways are those that are fastest: sparse features, and operators as CSR tensors or as its ``EdgeIndex``, multiplied
by hand; each is normalised once for both layers, that of the whole graph once for all epochs.

Ours trains as users do, by ``train``; a callback times its epochs and lets PyG take turns.
"""

from __future__ import annotations

import statistics
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import dropout_edge, to_torch_csr_tensor

from benchmarks.frame import Row, compared, medians, now, run, timed
from benchmarks.graphs import arcs_of, dataset_of, graph_of, labelled, random_graph, sorted_index
from tadropedge.lab import Callback, Candidate, Dataset, Experiment, TrainingSettings, Trial, train

HIDDEN, RATE, KEEP = 128, 0.5, 0.7
GRAPHS = ("cora", "citeseer", "pubmed")
TURN = 5  # epochs that one side runs before it is the other's turn
FEATURES, CLASSES, SHARES = 128, 16, (1.0, 0.1)
WAYS = ("CSR", "EdgeIndex")
EDGES = 10_000_000  # of the random graphs
TOGETHER = 32
METHODS = ("original", "dropedge@0.7", "degree-proportional@0.5", "jaccard-cdf@0.8", "cdf@0.7")

Peers = Mapping[str, Callable[[], object]]


class Turns(Callback):
    """Times the epochs of a training, with or without their evaluations; PyG's calls take turns of as many.

    The first turn warms up; the training ends after so many ``seconds``, and three turns at least.
    """

    def __init__(
        self, peers: Mapping[str, Callable[[], object]], *, seconds: float, turn: int, evaluated: bool
    ) -> None:
        self.peers, self.seconds, self.turn, self.evaluated = peers, seconds, turn, evaluated
        self.took: dict[str, list[float]] = {name: [] for name in ("ours", *peers)}

    def start(self, run: Any) -> None:
        self.device = run.batch.experiment.device
        self.count, self.began = 0, now(self.device)
        self.last = self.began

    def epoch(self, run: Any) -> bool:
        took = now(self.device) - self.last
        if run.training.evaluates(run.epoch - 1) == self.evaluated:
            self.took["ours"].append(took)
            self.count += 1
            if self.count % self.turn == 0:
                for name, call in self.peers.items():
                    self.took[name] += [timed(call, self.device) for _ in range(self.turn)]
        self.last = now(self.device)
        return self.count >= 4 * self.turn and self.last - self.began > self.seconds

    def medians(self) -> dict[str, float]:
        return {name: statistics.median(times[self.turn :] or times) for name, times in self.took.items()}


def take_turns(
    experiment: Experiment, share: float, peers: Peers, *, seconds: float, turn: int = TURN
) -> dict[str, float]:
    """Median seconds of an epoch of ours and of each peer."""
    method = "original" if share == 1 else f"dropedge@{share}"
    turns = Turns(peers, seconds=seconds, turn=turn, evaluated=experiment.training.keep == "loss")
    train(experiment, [Trial(candidate=Candidate.parse(method), dropout=RATE)], [turns])
    return turns.medians()


# -- PyTorch Geometric ------------------------------------------------------------------------------------


class Gcn(nn.Module):
    """Two GCNConv layers; edges are a normalised CSR tensor, or an ``EdgeIndex`` with its weights."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        sizes = ((features, HIDDEN), (HIDDEN, classes))
        self.layers = nn.ModuleList(GCNConv(*each, normalize=False) for each in sizes)

    def forward(self, x: Tensor, edges: Any) -> Tensor:
        for place, layer in enumerate(self.layers):
            x = F.dropout(x.relu(), RATE, self.training) if place else x
            given = isinstance(edges, tuple)
            x = edges[0].matmul(layer.lin(x), edges[1]) + layer.bias if given else layer(x, edges)
        return x


def pyg_epoch(data: Dataset, share: float, way: str, *, evaluate: bool) -> Callable[[], object]:
    """One epoch: a step on a fresh subgraph and, if so wished, an evaluation on the whole graph."""
    torch.manual_seed(0)
    split, x, y, nodes, edges = data.split(0), data.features, data.labels, data.graph.num_nodes, arcs_of(data.graph)
    model = Gcn(data.num_features, data.num_classes).to(data.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

    def operator(edges: Tensor) -> Any:
        normalised = gcn_norm(edges, None, nodes)
        return sorted_index(*normalised, nodes) if way == "EdgeIndex" else to_torch_csr_tensor(*normalised, size=nodes)

    whole = operator(edges) if evaluate or share == 1 else None

    def thinned() -> Any:
        return operator(dropout_edge(edges, p=1 - share, force_undirected=True)[0])

    def epoch() -> object:
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, whole if share == 1 else thinned())[split.train], y[split.train])
        loss.backward()
        optimizer.step()
        return score() if evaluate else float(loss.detach())

    @torch.no_grad()
    def score() -> tuple[float, ...]:
        model.eval()
        logits = model(x, whole)
        right = (logits.argmax(dim=-1) == y).float()
        loss = F.cross_entropy(logits[split.val], y[split.val])
        return float(loss), float(right[split.val].mean()), float(right[split.test].mean())

    return epoch


# -- tables -----------------------------------------------------------------------------------------------


def epochs(options: Namespace) -> Iterator[Row]:
    """An epoch with its evaluation."""
    for name in ("tiny",) if options.quick else GRAPHS:
        data = labelled(name).to(options.device)
        settings = TrainingSettings(epochs=10_000, keep="loss")
        experiment = Experiment(data=data, hidden=HIDDEN, training=settings, device=options.device)
        calls = {way: pyg_epoch(data, KEEP, way, evaluate=True) for way in WAYS}
        yield {"graph": name, **compared(take_turns(experiment, KEEP, calls, seconds=0.2 if options.quick else 10))}


def shares(options: Namespace) -> Iterator[Row]:
    """A training step by the share of kept edges; com-dblp, and random graphs of 10^7 edges."""
    for name in ("tiny",) if options.quick else ("com-dblp", "random, degree 200", "random, degree 1000"):
        named, _, degree = name.partition(", degree ")
        graph = random_graph(2 * EDGES // int(degree), EDGES) if degree else graph_of(named)
        data = dataset_of(graph, FEATURES, CLASSES).to(options.device)
        whole = None
        for share in SHARES:
            settings = TrainingSettings(epochs=100 if options.device == "cuda" else 12)  # 7 of 12 are not evaluated
            experiment = Experiment(data=data, hidden=HIDDEN, training=settings, device=options.device)
            # A step with a CSR tensor of 10^7 edges takes 1.3 to 2.5 times as long as one with an EdgeIndex.
            ways = WAYS[1:] if degree else WAYS
            peers = {way: pyg_epoch(data, share, way, evaluate=False) for way in ways}
            row = compared(take_turns(experiment, share, peers, seconds=0.2 if options.quick else 5, turn=1))
            whole = whole or row["ours_ms"]
            sizes = {"graph": name, "nodes": data.graph.num_nodes, "edges": data.graph.num_edges}
            yield {**sizes, "share": share, **row, "times_all": whole / row["ours_ms"]}


def together(options: Namespace) -> Iterator[Row]:
    """Trainings at once, and one after the other; ``ratio`` is per training."""
    name, count = ("tiny", 4) if options.quick else ("cora", TOGETHER)
    settings = TrainingSettings(epochs=10, keep="loss")
    experiment = Experiment(data=labelled(name).to(options.device), hidden=64, training=settings, device=options.device)
    trials = [Trial(candidate=Candidate.parse("dropedge@0.7"), seed=seed) for seed in range(count)]
    calls: dict[str, Callable[[], object]] = {
        "at once": lambda: train(experiment, trials),
        "one by one": lambda: [train(experiment, [trial]) for trial in trials],
    }
    found = medians(calls, 0.2 if options.quick else 20, options.device)
    each = {f"{call.replace(' ', '_')}_ms": 1e3 * took / count for call, took in found.items()}
    yield {"graph": name, "trainings": count, **each, "ratio": found["one by one"] / found["at once"]}


def trials(options: Namespace) -> Iterator[Row]:
    """Many trials at once that differ in all that a batch allows: method, rates, normalisation and seed."""
    if options.device == "cpu" and not options.quick:
        print("skipped: epoch-trials (for --device cuda)")
        return
    count, length = (4, 5) if options.quick else (100, 400)
    for name in ("tiny",) if options.quick else GRAPHS:
        data = labelled(name).to(options.device)
        for precision in ("highest", "high"):
            given = {"keep": "loss", "precision": precision}
            experiment = Experiment(data=data, hidden=HIDDEN, device=options.device)
            chosen = [
                Trial(
                    candidate=Candidate.parse(METHODS[seed % len(METHODS)]),
                    learning_rate=0.001 * (1 + seed % 10),
                    dropout=(0.3, 0.5, 0.8)[seed % 3],
                    settings={"normalization": ("gcn", "first-order", "random-walk")[seed % 3]},
                    seed=seed,
                )
                for seed in range(count)
            ]
            warm = experiment.trained_with(TrainingSettings(epochs=3, **given))
            train(warm, chosen)  # makes the scores and compiles the kernels
            long = experiment.trained_with(TrainingSettings(epochs=length, **given))
            ours = timed(lambda long=long, chosen=chosen: train(long, chosen), options.device)
            ways = {way: pyg_epoch(data, KEEP, way, evaluate=True) for way in WAYS}
            theirs = min(medians(ways, 1, options.device).values()) * count * length
            sizes = {"graph": name, "precision": precision, "trials": count, "epochs": length}
            yield {**sizes, "ours_s": ours, "pyg_scaled_s": theirs, "ratio": theirs / ours}


TABLES = {"epoch": epochs, "epoch-share": shares, "epoch-batch": together, "epoch-trials": trials}

if __name__ == "__main__":
    run(TABLES)
