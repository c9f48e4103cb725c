"""Source localisation: from which community did a diffused signal start? The paper's task of whole signals.

A signal x_st = S^t δ_s + n starts at one of C source nodes of a stochastic block model, diffuses for t steps and is
seen with Gaussian noise n. The label is the community of the source. Everything but the noise is as the paper states.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
import torch
from scipy.spatial.distance import cdist
from torch import Tensor
from torch.nn.functional import cross_entropy

import tadropedge as tde
from experiments.paper.clusters import clustered
from experiments.paper.networks.gcnn import SignalGCNN
from tadropedge.lab import Sizes, Start, View

KIND = (5, 10, 0.6, 0.2)  # communities, nodes of each, links inside and between
TIMES = 50
HIDDEN, ORDER = 32, 5
STATED = 2.5e-2  # the paper's 𝒩(0, 2.5e-2), read as a standard deviation


@dataclass(frozen=True)
class Task:
    """A pure function of its settings: two levels of noise differ in nothing else."""

    seed: int = 0
    noise: float = STATED
    sizes: tuple[int, int, int] = (100, 500, 1000)

    @cached_property
    def graph(self) -> tde.Graph:
        """A connected block model; communities are runs of node numbers."""
        return clustered(KIND, self.seed, stream=0)[0]

    @cached_property
    def means(self) -> np.ndarray:
        """S^t δ_s ``[C, T, N]`` for the node of highest degree of each community, S = A / λ_max."""
        count, nodes, *_ = KIND
        degrees = np.bincount(self.graph.pairs.numpy().ravel(), minlength=count * nodes).reshape(count, nodes)
        adjacency = tde.shift_operator(self.graph, normalization="adjacency", dtype=torch.float64).to_dense().numpy()
        shift = adjacency / np.linalg.eigvalsh(adjacency)[-1]
        signal, steps = np.eye(count * nodes)[degrees.argmax(axis=1) + nodes * np.arange(count)], []
        for _ in range(TIMES):
            signal = signal @ shift
            steps.append(signal)
        return np.stack(steps, axis=1)

    @cached_property
    def samples(self) -> tuple[Tensor, Tensor]:
        """Signals ``[S, N, 1]`` and the communities they started from ``[S]``."""
        random, count = np.random.default_rng([self.seed, 1]), sum(self.sizes)
        source, time = random.integers(KIND[0], size=count), random.integers(TIMES, size=count)
        signals = self.means[source, time] + self.noise * random.standard_normal((count, self.means.shape[-1]))
        return torch.from_numpy(signals[:, :, None]).float(), torch.from_numpy(source)

    def part(self, name: str) -> tuple[Tensor, Tensor]:
        """The samples of ``train``, ``val`` or ``test``."""
        place = ("train", "val", "test").index(name)
        first = sum(self.sizes[:place])
        signals, source = self.samples
        return signals[first : first + self.sizes[place]], source[first : first + self.sizes[place]]

    def bayes_accuracy(self) -> float:
        """The accuracy on the test samples of the classifier that knows graph, sources and noise: no other is better.

        It takes the source s of largest Σ_t exp(−‖x − S^t δ_s‖² / 2 σ²).
        """
        signals, source = self.part("test")
        flat = self.means.reshape(-1, self.means.shape[-1])
        distance = cdist(signals[:, :, 0].double().numpy(), flat, "sqeuclidean")
        exponent = (-distance / (2 * self.noise**2)).reshape(len(signals), KIND[0], TIMES)
        likely = np.logaddexp.reduce(exponent, axis=2).argmax(axis=1)
        return float((likely == source.numpy()).mean())


@dataclass(frozen=True, kw_only=True)
class SignalTrial:
    """One training: the probability of keeping each edge is that of ``rule`` at ``keep_prob``."""

    rule: str = "original"
    keep_prob: float = 1.0
    learning_rate: float = 0.005
    weight_decay: float = 1e-5
    normalization: str = "gcn"
    seed: int = 0

    def prob(self, scores: Tensor) -> Tensor:
        """The keep probabilities ``[M]``."""
        if self.rule == "original":
            return torch.ones_like(scores)
        rule = "uniform" if self.rule == "dropedge" else self.rule
        return tde.keep_probabilities(scores, rule=rule, keep_prob=self.keep_prob)


@dataclass(frozen=True, eq=False)
class Fitted:
    """What came of a trial: scores at the epoch of lowest validation loss, and the taps ``[F_ℓ, F_(ℓ−1), K + 1]``."""

    trial: SignalTrial
    val_loss: float
    val_accuracy: float
    test_accuracy: float
    taps: list[Tensor]


def fit_signals(task: Task, trials: Sequence[SignalTrial], *, epochs: int, layers: int = 1) -> list[Fitted]:
    """Train order-K GCNNs with a linear read-out; trials of one learning rate and decay train as one program."""
    scores = tde.edge_scores(task.graph, "aggregate", q=KIND[0])
    found: dict[SignalTrial, Fitted] = {}

    def rates(trial: SignalTrial) -> tuple[float, float]:
        return trial.learning_rate, trial.weight_decay

    for (rate, decay), group in groupby(sorted(trials, key=rates), key=rates):
        for fitted in _fit(task, list(group), scores, rate, decay, epochs, layers):
            found[fitted.trial] = fitted
    return [found[trial] for trial in trials]


def _fit(
    task: Task, trials: list[SignalTrial], scores: Tensor, rate: float, decay: float, epochs: int, layers: int
) -> list[Fitted]:
    (x, y), (x_val, y_val), (x_test, y_test) = (task.part(name) for name in ("train", "val", "test"))
    sizes = Sizes(num_features=1, num_classes=KIND[0], layers=layers, hidden=HIDDEN)
    settings = [{"normalization": trial.normalization, "order": ORDER} for trial in trials]
    network = SignalGCNN(sizes, settings, Start([trial.seed for trial in trials]), num_nodes=task.graph.num_nodes)
    prob, seeds = torch.stack([trial.prob(scores) for trial in trials]), [trial.seed for trial in trials]
    optimizer = torch.optim.Adam(network.parameters(), lr=rate, weight_decay=decay)
    whole = View(task.graph)
    least, best = torch.full((len(trials),), torch.inf), {}
    for epoch in range(epochs):
        keep = tde.sample_edges(prob, seed=seeds, epoch=epoch, graph=task.graph)
        optimizer.zero_grad()
        _losses(network(x, View(task.graph, keep)), y).sum().backward()
        optimizer.step()
        with torch.no_grad():
            losses, state = _losses(network(x_val, whole), y_val), network.state_dict()
            better = losses < least
            best = {name: torch.where(better.view(-1, *[1] * (value.dim() - 1)), value, best.get(name, value))
                    for name, value in state.items()}  # fmt: skip
            least = torch.minimum(losses, least)
    network.load_state_dict(best)
    with torch.no_grad():
        parts = (x_val, y_val), (x_test, y_test)
        val, test = ((network(a, whole).argmax(dim=-1) == b).double().mean(dim=1) for a, b in parts)
    taps = [layer.detach().double() for layer in network.taps()]
    return [
        Fitted(trial, float(least[place]), float(val[place]), float(test[place]), [layer[place] for layer in taps])
        for place, trial in enumerate(trials)
    ]


def _losses(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean loss of each trial ``[T]``, of logits ``[T, S, C]``."""
    return cross_entropy(logits.movedim(-1, 1), labels.expand(len(logits), -1), reduction="none").mean(dim=1)
