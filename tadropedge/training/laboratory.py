"""A laboratory: one dataset, one architecture, one device; trials go in, outcomes come out.

It computes edge weights once and only those its trials need, makes fresh splits by number, and cuts long lists of
trials into batches that fit the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from tadropedge.data.dataset import Dataset, Split, shuffled_split
from tadropedge.errors import TadropedgeError, lookup
from tadropedge.nn.baselines import NETWORKS
from tadropedge.nn.layers import Sparse
from tadropedge.scores.aggregate import aggregate_resistance
from tadropedge.scores.effective import effective_resistance
from tadropedge.sparse import Csr
from tadropedge.training.baselines import width
from tadropedge.training.config import Architecture, Method, Outcome, Trial
from tadropedge.training.edges import keep_row
from tadropedge.training.task import Task
from tadropedge.training.trainer import train

CPU_BUDGET = 1.5e9  # bytes of activations a batch may hold on a CPU: larger batches fall out of its caches
GPU_SHARE = 0.6  # of the free memory
DENSE_FEATURES = 0.05  # share of entries from which sparse features are multiplied as dense ones on a GPU
PRECISIONS = {"highest": None, "high": None}
COPIES = 14  # activations, gradients and temporaries of one layer that live at once


@dataclass(eq=False)
class Laboratory:
    """Trains trials on one dataset. ``split=0`` is the dataset's own split, ``split=s`` the s-th fresh one."""

    dataset: Dataset
    architecture: Architecture = field(default_factory=Architecture)
    epochs: int = 400
    laplacian: str = "combinatorial"
    q: int | None = None
    selection: str = "evaluation"
    per_layer: bool = False
    fresh_sizes: tuple[int, int, int] | None = None  # of the fresh splits; None: as the dataset's own
    precision: str = "highest"  # of matrix products: "high" lets a GPU round their factors to TF32
    cache_dir: str | Path | None = None
    progress: Callable[[int, int], None] | None = None  # (epochs done, epochs in all) of the current batch

    def __post_init__(self) -> None:
        wanted = "gcnn" if self.dataset.level == "graph" else None
        if (self.architecture.backbone == "gcnn") != (wanted == "gcnn"):
            raise TadropedgeError(
                f"{self.dataset.name} is a {self.dataset.level}-level task: backbone {self.architecture.backbone!r} "
                f"does not fit, choose {'gcnn' if wanted else 'gcn, jknet or incepgcn'}"
            )
        lookup("precision", self.precision, PRECISIONS)
        self._weights: dict[str, Tensor] = {}
        self._splits: dict[int, Split] = {0: self.dataset.split}

    def weights(self, kind: str) -> Tensor:
        """Edge weights of one kind, ``[M]``, computed once."""
        if kind not in self._weights:
            graph = self.dataset.graph
            if kind == "effective":
                self._weights[kind] = effective_resistance(graph, cache_dir=self.cache_dir)
            else:
                q = self.dataset.num_classes if self.q is None else self.q
                self._weights[kind] = aggregate_resistance(graph, q, laplacian=self.laplacian, cache_dir=self.cache_dir)
        return self._weights[kind]

    def split(self, number: int) -> Split:
        """Split ``number``: fresh ones are a pure function of the number and of their sizes."""
        if number not in self._splits:
            sizes = self.fresh_sizes or self.dataset.split.sizes
            self._splits[number] = shuffled_split(self.dataset.labels, sizes, seed=number)
        return self._splits[number]

    def kept_share(self, trial: Trial) -> float:
        """The expected share of edges that a trial keeps."""
        return float(keep_row(self.dataset.graph, trial, self._needed([trial])).mean())

    def train(self, trials: Sequence[Trial], *, keep_state: bool = False) -> list[Outcome]:
        """Train all trials, in batches that fit; a batch that does not is halved."""
        outcomes: list[Outcome] = []
        size = self.fitting(trials)
        while len(outcomes) < len(trials):
            batch = trials[len(outcomes) : len(outcomes) + size]
            try:
                outcomes += self._train_batch(batch, keep_state)
            except torch.OutOfMemoryError:
                if size == 1:
                    raise TadropedgeError(
                        f"one training of {self.dataset.name} does not fit the memory of {self.dataset.device}"
                    ) from None
                torch.cuda.empty_cache()
                size = max(1, min(size, len(batch)) // 2)
        return outcomes

    def batch_size(self) -> int:
        """How many trials of the backbone fit at once."""
        signals = self.dataset.labels.shape[0] * (self.dataset.graph.num_nodes if self.dataset.level == "graph" else 1)
        width = self.architecture.hidden * max(self.architecture.layers, 2) + self.dataset.num_classes
        entries = self.dataset.graph.pattern.num_entries + self.dataset.num_features * self.architecture.hidden
        return max(1, int(self._budget() / (4 * COPIES * (signals * width + entries))))

    def fitting(self, trials: Sequence[Trial]) -> int:
        """How many of these trials fit at once, if all were like the largest of them."""
        graph, sizes = self.dataset.graph, [self.batch_size()]
        for network, hidden in {(Method.of(one.method).network, width(one)) for one in trials}:
            if network is not None:
                numbers = COPIES * (hidden * (2 * graph.num_nodes + self.dataset.num_features))
                numbers += graph.pattern.num_entries * (COPIES + 2 * NETWORKS[network].entry_width(hidden))
                sizes.append(max(1, int(self._budget() / (4 * numbers))))
        return min(sizes)

    def _budget(self) -> float:
        """The bytes that a batch may take."""
        if self.dataset.device.type == "cuda":
            device = self.dataset.device
            # What torch keeps from an earlier batch is free for the next one.
            kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
            return GPU_SHARE * (torch.cuda.mem_get_info(device)[0] + kept)
        return CPU_BUDGET

    def _needed(self, trials: Sequence[Trial]) -> dict[str, Tensor]:
        kinds = {Method.of(trial.method).weights for trial in trials} - {None}
        return {kind: self.weights(kind) for kind in sorted(filter(None, kinds))}

    def _train_batch(self, trials: Sequence[Trial], keep_state: bool) -> list[Outcome]:
        numbers = sorted({trial.split for trial in trials})
        place = {number: at for at, number in enumerate(numbers)}
        task = make_task(self.dataset, [self.split(number) for number in numbers], self._needed(trials))
        report = self.progress

        def advance(epoch: int) -> None:
            if report is not None:
                report(epoch, self.epochs)

        with matmul_precision(self.precision):
            return train(
                task,
                self.architecture,
                trials,
                split_places=[place[trial.split] for trial in trials],
                epochs=self.epochs,
                selection=self.selection,
                per_layer=self.per_layer,
                keep_state=keep_state,
                progress=advance,
            )


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Torch's precision of float32 matrix products for the length of a block."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def make_task(dataset: Dataset, splits: Sequence[Split], weights: dict[str, Tensor]) -> Task:
    """A dataset as the trainer wants it: sparse features as places and values, unless a GPU does better with all."""
    features: Tensor | Sparse = dataset.features
    if dataset.features.layout is torch.sparse_csr:
        places, values = Csr.of(dataset.features), dataset.features.values()
        filled = len(values) / (dataset.features.shape[0] * dataset.features.shape[1])
        # Matrix units multiply zeros faster than a sparse product finds the rest.
        dense = dataset.device.type == "cuda" and filled > DENSE_FEATURES
        features = dataset.features.to_dense() if dense else Sparse(places, values)
    return Task(
        graph=dataset.graph,
        features=features,
        num_features=dataset.num_features,
        labels=dataset.labels,
        num_classes=dataset.num_classes,
        splits=[(split.train, split.val, split.test) for split in splits],
        weights=weights,
    )
