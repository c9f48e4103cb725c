"""A laboratory: one dataset, one architecture, one device; trials go in, outcomes come out.

It computes each edge score once, and only if a trial needs it; makes fresh splits by number; and cuts long lists of
trials into batches that fit into memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tadropedge.data.dataset import Dataset, Split, check_sizes, shuffled_split
from tadropedge.errors import (
    TadropedgeError,
    check_flag,
    check_function,
    check_integer,
    check_kind,
    check_list,
    check_path,
    lookup,
)
from tadropedge.method import Method
from tadropedge.registry import NETWORKS, SCORES
from tadropedge.scores.solve import edge_scores, settings_for
from tadropedge.spectrum.plan import LAPLACIANS
from tadropedge.training.batch import Course
from tadropedge.training.config import Architecture, Outcome, Trial
from tadropedge.training.edges import keep_row
from tadropedge.training.task import Task
from tadropedge.training.trainer import check_trial, train

VERSION = (
    1  # of the trainer: raise it when the same trial would give another result, so that old trials are not resumed
)
CPU_BUDGET = 1.5e9  # bytes of activations per batch on a CPU: larger batches fall out of its caches
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
    _: KW_ONLY
    q: int | None = None
    selection: str = "evaluation"
    per_layer: bool = False
    evaluate_every: int = 1  # epochs
    fresh_sizes: tuple[int, int, int] | None = None  # of the fresh splits; None: as the dataset's own
    precision: str = "highest"  # of matrix products: "high" lets a GPU round their factors to TF32
    cache_dir: str | Path | None = None
    progress: Callable[[int, int], None] | None = None  # (epochs done, epochs in all) of the current batch

    def __post_init__(self) -> None:
        check_kind("dataset", self.dataset, Dataset)
        check_kind("architecture", self.architecture, Architecture)
        course = self._course()
        self.epochs, self.evaluate_every, self.per_layer = course.epochs, course.evaluate_every, course.per_layer
        lookup("laplacian", self.laplacian, LAPLACIANS)
        if self.q is not None:
            self.q = check_integer("q", self.q, least=1)
        if self.fresh_sizes is not None:
            self.fresh_sizes = check_sizes("fresh_sizes", self.fresh_sizes)
        if self.cache_dir is not None:
            self.cache_dir = check_path("cache_dir", self.cache_dir)
        if self.progress is not None:
            check_function("progress", self.progress, "progress(epochs done, epochs in all)", arguments=2)
        level, backbone = self.dataset.level, self.architecture.backbone
        if NETWORKS[backbone].level != level:
            fitting = ", ".join(name for name, network in NETWORKS.items() if network.level == level)
            raise TadropedgeError(
                f"{self.dataset.name} is a {level}-level task: backbone {backbone!r} cannot be used, "
                f"choose from {fitting}"
            )
        lookup("precision", self.precision, PRECISIONS)
        self._scores: dict[str, Tensor] = {}
        self._splits: dict[int, Split] = {0: self.dataset.split}

    def check(self, trials: Sequence[Trial]) -> None:
        """Refuse trials that cannot be trained here, before any work is done."""
        for trial in check_trials(trials):
            check_trial(trial, self.architecture, self.selection, self.dataset.level)

    @property
    def settings(self) -> dict[str, object]:
        """What decides an outcome besides the trial itself; a study made with other values is refused."""
        dataset = self.dataset
        since_then = {  # studies of version 1 lack these, which stands for the usual value
            "precision": (self.precision, "highest"),
            "evaluate_every": (self.evaluate_every, 1),
            "training": (VERSION, 1),
        }
        return {
            **{name: getattr(self.architecture, name) for name in ("backbone", "layers", "hidden")},
            **{"order": 5, **self.architecture.settings},  # studies of version 1 name the order for every backbone
            "epochs": self.epochs,
            "laplacian": self.laplacian,
            "q": self._q,
            "selection": self.selection,
            "per_layer": self.per_layer,
            "graph": dataset.graph.fingerprint[:16],
            "data": data_digest(dataset),
            "split": list(dataset.split.sizes),
            **{name: value for name, (value, usual) in since_then.items() if value != usual},
        }

    @property
    def _q(self) -> int:
        return self.dataset.num_classes if self.q is None else self.q

    def scores(self, name: str) -> Tensor:
        """The edge scores of this name, ``[M]``, computed once."""
        lookup("score (name)", name, SCORES)
        if name not in self._scores:
            dataset = self.dataset
            offered = {"q": self._q, "laplacian": self.laplacian, "features": dataset.features}
            settings = settings_for(name, offered)
            self._scores[name] = edge_scores(dataset.graph, name, cache_dir=self.cache_dir, **settings)
        return self._scores[name]

    def split(self, number: int) -> Split:
        """Split ``number``: fresh ones are a pure function of the number and of their sizes."""
        number = check_integer("number", number, least=0)
        if number not in self._splits:
            sizes = self.fresh_sizes or self.dataset.split.sizes
            self._splits[number] = shuffled_split(self.dataset.labels, sizes, seed=number)
        return self._splits[number]

    def kept_share(self, trial: Trial) -> float:
        """The expected share of edges that a trial keeps."""
        check_kind("trial", trial, Trial)
        return float(keep_row(self.dataset.graph, trial, self._needed([trial])).mean())

    def train(self, trials: Sequence[Trial], *, keep_state: bool = False) -> list[Outcome]:
        """Train all trials, in batches that fit; a batch that does not is halved."""
        outcomes: list[Outcome] = []
        trials, keep_state = check_trials(trials), check_flag("keep_state", keep_state)
        size = self.fitting(trials)
        while len(outcomes) < len(trials):
            batch = trials[len(outcomes) : len(outcomes) + size]
            try:
                outcomes += self._train_batch(batch, keep_state)
            except torch.OutOfMemoryError:
                if size == 1:
                    raise TadropedgeError(
                        f"one training of {self.dataset.name} does not fit into the memory of {self.dataset.device}"
                    ) from None
                torch.cuda.empty_cache()
                size = max(1, min(size, len(batch)) // 2)
        return outcomes

    def fitting(self, trials: Sequence[Trial] = (Trial(),)) -> int:
        """How many trials fit at once if all are as large as the largest of these; by default of the backbone."""
        architecture, kinds = self.architecture, set[tuple[str, int]]()
        for trial in check_trials(trials):
            hidden = architecture.settings_of(trial).get("hidden", architecture.hidden)
            kinds.add((architecture.network(trial.method)[0], int(hidden)))
        return min((self._fitting(name, hidden) for name, hidden in kinds), default=1)

    def _fitting(self, network: str, hidden: int) -> int:
        dataset, entries = self.dataset, self.dataset.graph.pattern.num_entries
        signals = dataset.labels.shape[0] * (dataset.graph.num_nodes if dataset.level == "graph" else 1)
        width = hidden * max(self.architecture.layers, 2) + dataset.num_classes
        numbers = COPIES * (signals * width + entries + dataset.num_features * hidden)
        numbers += 2 * entries * NETWORKS[network].entry_width(hidden)
        return max(1, int(self._budget() / (4 * numbers)))

    def _budget(self) -> float:
        """The bytes that a batch may take."""
        if self.dataset.device.type == "cuda":
            device = self.dataset.device
            # What torch keeps from an earlier batch is free for the next one.
            kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
            return GPU_SHARE * (torch.cuda.mem_get_info(device)[0] + kept)
        return CPU_BUDGET

    def _course(self, keep_state: bool = False) -> Course:
        return Course(
            epochs=self.epochs,
            selection=self.selection,
            per_layer=self.per_layer,
            keep_state=keep_state,
            evaluate_every=self.evaluate_every,
        )

    def _needed(self, trials: Sequence[Trial]) -> dict[str, Tensor]:
        names = {Method.of(trial.method).score for trial in trials}
        return {name: self.scores(name) for name in sorted(filter(None, names))}

    def _train_batch(self, trials: Sequence[Trial], keep_state: bool) -> list[Outcome]:
        numbers = sorted({trial.split for trial in trials})
        place = {number: at for at, number in enumerate(numbers)}
        task = make_task(self.dataset, [self.split(number) for number in numbers], self._needed(trials))
        course = self._course(keep_state)
        report = self.progress

        def advance(epoch: int) -> None:
            if report is not None:
                report(epoch, self.epochs)

        places = [place[trial.split] for trial in trials]
        with matmul_precision(self.precision):
            return train(task, self.architecture, trials, course, split_places=places, progress=advance)


def check_trials(trials: object) -> list[Trial]:
    """Return a list of trials."""
    return [check_kind("each of trials", trial, Trial) for trial in check_list("trials", trials, "trials")]


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Torch's precision of float32 matrix products for the length of a block."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def make_task(dataset: Dataset, splits: Sequence[Split] = (), scores: dict[str, Tensor] | None = None) -> Task:
    """A dataset as the trainer wants it."""
    features = dataset.features
    if features.layout is torch.sparse_csr and features.is_cuda:
        # Matrix units multiply zeros faster than a sparse product finds the rest.
        filled = features.values().numel() / (features.shape[0] * features.shape[1])
        features = features.to_dense() if filled > DENSE_FEATURES else features
    return Task(
        graph=dataset.graph,
        features=features,
        labels=dataset.labels,
        num_classes=dataset.num_classes,
        splits=[(split.train, split.val, split.test) for split in splits],
        scores=scores or {},
    )


def data_digest(dataset: Dataset) -> str:
    """A hash of features, labels and split, so that other data in the same place is noticed."""
    digest = hashlib.sha256()
    features = dataset.features.values() if dataset.features.layout is torch.sparse_csr else dataset.features
    for tensor in (features, dataset.labels, dataset.split.train, dataset.split.val, dataset.split.test):
        digest.update(np.ascontiguousarray(tensor.cpu().numpy()).tobytes())
    return digest.hexdigest()[:16]
