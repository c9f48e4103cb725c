"""Epochs of a two-layer GCN with edge dropping, against PyTorch Geometric at its best in one run.

* ``epoch``: a training step and an evaluation on the whole graph, 128 hidden units. PyG's ways are ``usual`` (dense
  features, edge lists, every layer normalises) and ``sparse`` (features and operators as CSR tensors, each operator
  normalised once for both layers, that of the whole graph once for all epochs). ``products_ms``: the matrix products of
  such an epoch alone, a bound.
* ``epoch-share``: a training step at several shares of kept edges, 128 dense features, without evaluations;
  ``times_all``: against ours at share 1. PyG's ways are CSR tensors and its ``EdgeIndex``, multiplied by hand.
* ``epoch-batch``: 32 trainings at once against one after the other, set-up included.
* ``epoch-trials`` (GPU): 100 trials of 400 epochs at once; PyG's epoch of one trial is scaled.

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
from torch_geometric import EdgeIndex
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import dropout_edge, to_torch_csr_tensor

import tadropedge as tde
from benchmarks.frame import Row, compared, medians, now, run, timed
from benchmarks.graphs import block_model, dataset_of, graph_of, random_graph
from tadropedge.lab import Callback, Candidate, Dataset, Experiment, TrainingSettings, Trial, load, train

HIDDEN, RATE, KEEP = 128, 0.5, 0.7
GRAPHS = ("cora", "citeseer", "pubmed")
TURN = 5  # epochs that one side runs before it is the other's turn
FEATURES, CLASSES, SHARES = 128, 16, (1.0, 0.1)
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
    """Two GCNConv layers; edges are an edge list, a normalised CSR tensor, or an ``EdgeIndex`` with its weights."""

    def __init__(self, features: int, classes: int, normalize: bool) -> None:
        super().__init__()
        sizes = ((features, HIDDEN), (HIDDEN, classes))
        self.layers = nn.ModuleList(GCNConv(*each, normalize=normalize) for each in sizes)

    def forward(self, x: Tensor, edges: Any) -> Tensor:
        first, second = self.layers
        x = F.dropout(self.layer(first, x, edges).relu(), RATE, self.training)
        return self.layer(second, x, edges)

    def layer(self, layer: Any, x: Tensor, edges: Any) -> Tensor:
        if isinstance(edges, tuple):
            return edges[0].matmul(layer.lin(x), edges[1]) + layer.bias
        return layer(x, edges)


def pyg_epoch(data: Dataset, share: float, way: str, *, evaluate: bool) -> Callable[[], object]:
    """One epoch: a step on a fresh subgraph and, if so wished, an evaluation on the whole graph."""
    torch.manual_seed(0)
    split, y, nodes = data.split(0), data.labels, data.graph.num_nodes
    edge_index = torch.cat((data.graph.pairs, data.graph.pairs.flip(0)), dim=1)
    sparse = data.features.layout != torch.strided
    x = data.features.to_dense() if way == "usual" and sparse else data.features
    model = Gcn(data.num_features, data.num_classes, normalize=way == "usual").to(data.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

    def operator(edges: Tensor) -> Any:
        if way == "usual":
            return edges
        places, values = gcn_norm(edges, None, nodes)
        if way != "EdgeIndex":
            return to_torch_csr_tensor(places, values, size=nodes)
        index = EdgeIndex(places.to(torch.int32), sparse_size=(nodes, nodes), is_undirected=True)
        index, order = index.sort_by("row")
        return index, values[order]

    whole = operator(edge_index) if evaluate or share == 1 else None

    def thinned() -> Any:
        return operator(dropout_edge(edge_index, p=1 - share, force_undirected=True)[0])

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


def cited(name: str, device: str) -> Dataset:
    """A citation set with the paper's split."""
    return load(block_model(500, 20) if name == "tiny" else name, split="full").to(device)


def products(data: Dataset) -> Callable[[], object]:
    """The matrix products of an epoch: features once, for what is evaluated is trained on next, and their gradient."""
    x, shift = data.features, tde.shift_operator(data.graph)
    turned = x.T if x.layout == torch.strided else x.to_dense().T.to_sparse_csr()
    first, second = torch.randn(data.num_features, HIDDEN), torch.randn(HIDDEN, data.num_classes)
    first, second = first.to(data.device), second.to(data.device)
    wide = torch.randn(data.graph.num_nodes, HIDDEN, device=data.device)
    narrow = wide[:, : data.num_classes].contiguous()

    def call() -> None:
        _ = x @ first, turned @ wide
        for _ in range(3):  # training, its gradient, evaluation
            _ = shift @ wide, shift @ narrow
        _ = wide @ second, wide @ second, narrow @ second.T, wide.T @ narrow

    return call


def epochs(options: Namespace) -> Iterator[Row]:
    """An epoch with its evaluation."""
    for name in ("tiny",) if options.quick else GRAPHS:
        data = cited(name, options.device)
        settings = TrainingSettings(epochs=10_000, keep="loss")
        experiment = Experiment(data=data, hidden=HIDDEN, training=settings, device=options.device)
        calls = {way: pyg_epoch(data, KEEP, way, evaluate=True) for way in ("usual", "sparse")}
        calls["products"] = products(data)
        found = take_turns(experiment, KEEP, calls, seconds=0.2 if options.quick else 10)
        least = 1e3 * found.pop("products")
        yield {"graph": name, **compared(found), "usual_ms": 1e3 * found["usual"], "products_ms": least}


def shares(options: Namespace) -> Iterator[Row]:
    """A training step by the share of kept edges; com-dblp, and random graphs of 10^7 edges."""
    makers: dict[str, Callable[[], tde.Graph]] = {"com-dblp": lambda: graph_of("com-dblp")}
    for degree in (200, 1000):
        makers[f"random, degree {degree}"] = lambda degree=degree: random_graph(2 * EDGES // degree, EDGES)
    if options.quick:
        makers = {"tiny": lambda: random_graph(1_000, 20_000)}
    for name, make in makers.items():
        data = dataset_of(make(), FEATURES, CLASSES).to(options.device)
        whole = None
        for share in SHARES:
            experiment = Experiment(
                data=data, hidden=HIDDEN, training=TrainingSettings(epochs=40), device=options.device
            )
            # A step with a CSR tensor of 10^7 edges takes 1.3 to 2.5 times as long as one with an EdgeIndex.
            ways = ("EdgeIndex",) if name.startswith("random") else ("CSR", "EdgeIndex")
            peers = {way: pyg_epoch(data, share, way, evaluate=False) for way in ways}
            row = compared(take_turns(experiment, share, peers, seconds=0.2 if options.quick else 5, turn=1))
            whole = whole or row["ours_ms"]
            sizes = {"graph": name, "nodes": data.graph.num_nodes, "edges": data.graph.num_edges}
            yield {**sizes, "share": share, **row, "times_all": whole / row["ours_ms"]}


def together(options: Namespace) -> Iterator[Row]:
    """Trainings at once, and one after the other; ``ratio`` is per training."""
    name, count = ("tiny", 4) if options.quick else ("cora", TOGETHER)
    settings = TrainingSettings(epochs=10, keep="loss")
    experiment = Experiment(data=cited(name, options.device), hidden=64, training=settings, device=options.device)
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
        data = cited(name, options.device)
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
            ways = {way: pyg_epoch(data, KEEP, way, evaluate=True) for way in ("usual", "sparse")}
            theirs = min(medians(ways, 1, options.device).values()) * count * length
            sizes = {"graph": name, "precision": precision, "trials": count, "epochs": length}
            yield {**sizes, "ours_s": ours, "pyg_scaled_s": theirs, "ratio": theirs / ours}


TABLES = {"epoch": epochs, "epoch-share": shares, "epoch-batch": together, "epoch-trials": trials}

if __name__ == "__main__":
    run(TABLES)
