"""A laboratory: one dataset, one architecture, one device; trials go in, outcomes come out.

It computes each edge score once, and only if a trial needs it; makes fresh splits by number; and cuts long lists of
trials into batches that fit into memory.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tadropedge._old.checks import check_flag, check_function, check_integer, check_kind, check_list, check_path
from tadropedge._old.data.choosing import Choosing, Shared
from tadropedge._old.data.dataset import Dataset
from tadropedge._old.data.splits import Given, Split, check_sizes, shuffled_split
from tadropedge._old.errors import TadropedgeError, lookup
from tadropedge._old.fingerprint import fingerprint, of_this_package
from tadropedge._old.memory import LARGE, check_memory, free_bytes, not_enough, ran_out
from tadropedge._old.method import OPTIONS, Method
from tadropedge._old.neighbours.plan import MiniBatches
from tadropedge._old.nn.network import Network, Problem, Sizes, Value
from tadropedge._old.nn.own import OwnNetwork, default_sizes
from tadropedge._old.registry import MEASURES, NETWORKS, SCORES
from tadropedge._old.scores.column import needs
from tadropedge._old.scores.similarity import EqualScoresWarning
from tadropedge._old.scores.solve import edge_scores, required, settings_for
from tadropedge._old.spectrum.plan import LAPLACIANS
from tadropedge._old.training.batch import Course
from tadropedge._old.training.config import METRICS, SCORED, Architecture, Outcome, Trial, check_weighs, plug_ins
from tadropedge._old.training.edges import keep_rows, option_bytes
from tadropedge._old.training.measures import check_measurable, default_measure
from tadropedge._old.training.mini_batches import SampledTraining, check_mini_batches, fanout_of
from tadropedge._old.training.ranks import Ranks
from tadropedge._old.training.reach import within_reach
from tadropedge._old.training.task import Task
from tadropedge._old.training.trainer import check_named, check_trial, train
from tadropedge._old.watching import Moment, Phase, tell, watched

# Of the trainer: raise it when the same trial would give another result, so that old trials are not resumed. Rounding
# does not count: processors differ in it, too.
VERSION = 1
CPU_BUDGET = 1.5e9  # bytes of activations per batch on a CPU: larger batches fall out of its caches
SHARE = 0.6  # of the free memory that a batch may take
CERTAIN = 0.4  # of the estimate, which is for batches: one training that is refused beforehand would not have fitted
MANY_EPOCHS = 100_000
EPOCH_BYTES = 60  # per epoch, besides the curves of each trial: its number, and where it was evaluated
FEWER = "take fewer layers, hidden units, features or epochs"
DENSE_FEATURES = 0.05  # share of entries from which sparse features are multiplied as dense ones on a GPU
DEEP = 8  # layers from which gradient norms are always recorded: whether they vanish is then the first question
PRECISIONS = {"highest": None, "high": None}


@dataclass(eq=False)
class Laboratory:
    """Trains trials on one dataset. ``split=0`` is the dataset's own split, ``split=s`` the s-th fresh one.

    With ``choose_splits=K`` the splits 0 … K − 1 serve the choice of settings and those from K on the judgement, drawn
    in the way of the dataset: see :mod:`tadropedge._old.data.choosing`. Without it, fresh splits are uniform draws of
    ``fresh_sizes``, as in the paper's tables.
    """

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
    measure: str = "accuracy"  # one of MEASURES: what validation and test are also scored by
    choose_splits: int | None = None  # how many splits serve the choice of settings
    gradient_norms: bool = False  # whether those of every layer are recorded; in deep networks they always are
    progress: Callable[[int, int], None] | None = None  # (epochs done, epochs in all) of the current batch

    def __post_init__(self) -> None:
        check_kind("dataset", self.dataset, Dataset)
        check_kind("architecture", self.architecture, Architecture)
        self.gradient_norms = check_flag("gradient_norms", self.gradient_norms)
        course = self._course()
        self.epochs, self.evaluate_every, self.per_layer = course.epochs, course.evaluate_every, course.per_layer
        lookup("laplacian", self.laplacian, LAPLACIANS)
        if self.q is not None:
            self.q = check_integer("q", self.q, least=1)
        if self.fresh_sizes is not None:
            self.fresh_sizes = check_sizes("fresh_sizes", self.fresh_sizes)
        if self.choose_splits is not None:
            self.choose_splits = check_integer("choose_splits", self.choose_splits, least=1)
            if self.fresh_sizes is not None:
                raise TadropedgeError(
                    f"fresh_sizes={self.fresh_sizes} and choose_splits={self.choose_splits} exclude each other: with "
                    "the second, splits are drawn in the way of the dataset"
                )
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
        self._rehearsed: set[tuple[type[Network], bool]] = set()
        self._scores: dict[str, Tensor] = {}
        self.score_seconds: dict[str, float] = {}  # that each of them took
        self._failing: set[str] = set()
        self._splits: dict[int, Split] = {}

    def check(self, trials: Sequence[Trial]) -> None:
        """Refuse trials that cannot be trained here, before any work is done."""
        for trial in check_trials(trials):
            check_trial(trial, self.architecture, self.selection, self.dataset.level, per_layer=self.per_layer)
            if (score := Method.of(trial.method).score) is not None:
                self._score_settings(score)
        self._check_memory(trials)
        self._rehearse(trials)

    @property
    def settings(self) -> dict[str, object]:
        """What decides an outcome besides the trial itself; a study made with other values is refused."""
        architecture, sizes = self.architecture, self.dataset.split.sizes
        network = NETWORKS[architecture.backbone].completed(architecture.backbone, architecture.settings)
        return {
            "training": VERSION,
            **{name: getattr(architecture, name) for name in ("backbone", "layers", "hidden")},
            **{f"network.{name}": value for name, value in network.items()},
            **plug_ins(architecture.backbone),
            "epochs": self.epochs,
            "laplacian": self.laplacian,
            "q": self._q,
            "selection": self.selection,
            "per_layer": self.per_layer,
            "evaluate_every": self.evaluate_every,
            "precision": self.precision,
            "split": list(sizes),
            "fresh_sizes": list(self.fresh_sizes or sizes),
            **{f"data.{name}": value for name, value in data_fingerprints(self.dataset).items()},
            **self._unusual,
        }

    @property
    def _unusual(self) -> dict[str, object]:
        """Settings that are named only where they are not the default: studies are found by their settings."""
        found: dict[str, object] = {}
        if self.measure != "accuracy":
            own = {self.measure: MEASURES[self.measure]}
            found["measure"] = self.measure
            found |= {} if of_this_package(own[self.measure]) else {f"code.{self.measure}": fingerprint(**own)[:16]}
        if self.choose_splits is not None:
            found["choose_splits"] = self.choose_splits
        if self.choose_splits is not None or isinstance(self.dataset.way, Given):
            found["drawn"] = repr(self.dataset.way)
        return found

    @property
    def _q(self) -> int:
        return self.dataset.num_classes if self.q is None else self.q

    def scores(self, name: str) -> Tensor:
        """The edge scores of this name, ``[M]``, computed once."""
        lookup("score (name)", name, SCORES)
        if name not in self._scores:
            settings, started = self._score_settings(name), time.perf_counter()
            show = _scoring(name) if watched() else None
            found = edge_scores(self.dataset.graph, name, cache_dir=self.cache_dir, progress=show, **settings)
            self._scores[name], self.score_seconds[name] = found, time.perf_counter() - started
        return self._scores[name]

    def available_scores(self, among: Sequence[str] | None = None) -> list[str]:
        """The scores that can be had here, computed; of those ``among`` which they are sought, by default all.

        None that needs a column, or something else, that the dataset lacks; and none that fails on this graph, such as
        ``aggregate`` where every component has fewer than q nodes: a search over scores goes on without it, warned.
        One that is equal for every edge stays, unwarned: to a search it is one more way to drop uniformly, and the
        settings that a search draws do not depend on the values of scores.
        """
        offered = set(self._offered()) - ({"features"} if self.dataset.level == "graph" else set())
        sought = list(SCORES) if among is None else [*check_list("among", among, "names of scores")]
        for name in sought:
            lookup("score (among)", name, SCORES)
        return [name for name in sought if not set(required(name)) - offered and self._succeeds(name)]

    def _succeeds(self, name: str) -> bool:
        """Whether a score can be computed here; where not, it is said once."""
        if name not in self._failing:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", EqualScoresWarning)  # for those who name the score themselves
                    self.scores(name)
            except TadropedgeError as error:
                self._failing.add(name)
                warnings.warn(f"the search goes without the score {name!r}: {error}", stacklevel=2)
        return name not in self._failing

    def available_options(self, method: str) -> list[str]:
        """The options with which every budget of the network of a method can be trained here.

        ``unbiased`` needs edge weights in training, ``expected`` in evaluation, ``nested`` several layers that do not
        have coins of their own (``per_layer``), and ``connected`` a network that learns on the whole graph, whose
        forest is known beforehand.
        """
        plain = Trial(Method.of(method).network or "original")
        network = self.architecture.network(plain.method)[1]
        had = {
            "unbiased": network.weighs,
            "expected": network.softens,
            "nested": not self.per_layer and self._layers(plain) > 1,
            "connected": network.edges is Network.edges,
        }
        return [name for name in OPTIONS if had.get(name, True)]

    def _offered(self) -> dict[str, Any]:
        """What is known here, for scores to use."""
        data = self.dataset
        known = {"q": self._q, "laplacian": self.laplacian, "features": data.features, "column": data.score_column}
        return {name: value for name, value in known.items() if value is not None}

    def _score_settings(self, name: str) -> dict[str, Any]:
        """The settings of a score; refused, before any work, where it needs what is not here."""
        offered = self._offered()
        for lacking in required(name):
            if lacking not in offered:
                raise TadropedgeError(needs(name, lacking, self.dataset.name))
        return settings_for(name, offered)

    def split(self, number: int) -> Split:
        """Split ``number``: fresh ones are a pure function of the number and of the way they are drawn."""
        number = check_integer("number", number, least=0)
        if number not in self._splits:
            split = self._split(number)
            check_measurable(self.measure, split, self.dataset.labels, number)
            self._splits[number] = split
        return self._splits[number]

    def _split(self, number: int) -> Split:
        if number == 0:
            return self.dataset.split
        if self.choose_splits is None and not isinstance(self.dataset.way, Given):
            sizes = self.fresh_sizes or self.dataset.split.sizes
            return shuffled_split(self.dataset.labels, sizes, seed=number)
        return self._choosing.split(number)

    @cached_property
    def _choosing(self) -> Choosing:
        data = self.dataset
        return Choosing(
            labels=data.labels.cpu(),
            own=data.split,
            way=data.way,
            count=self.choose_splits or 1,
            one="node" if data.level == "node" else "sample",
        )

    @property
    def shared(self) -> Shared:
        """What the splits that judge share with those that serve the choice of settings."""
        if self.choose_splits is None:
            raise TadropedgeError("what is shared is known only where choose_splits says on how many splits to choose")
        return self._choosing.shared

    @property
    def num_choosing(self) -> int:
        """How many different splits serve the choice: ``choose_splits``, or fewer where the file holds too few."""
        return self._choosing.choosing

    @property
    def num_judging(self) -> int | None:
        """How many different splits there are to judge on; ``None``: as many as are asked for."""
        return self._choosing.judging

    def kept_share(self, trial: Trial) -> float:
        """The expected share of edges that a trial keeps; where rates change with the layer, the mean over layers."""
        check_trials([trial])
        nested = "nested" in Method.of(trial.method).options
        rows = keep_rows(self.dataset.graph, trial, self._needed([trial]), self._layers(trial) if nested else 1)
        return float(torch.stack([row.mean() for row in rows]).mean())

    def _layers(self, trial: Trial) -> int:
        """How many layers of a trial's network can have a subgraph of their own."""
        settings = self.architecture.settings_of(trial)
        network = self.architecture.network(trial.method)[1]
        problem = Problem(graph=self.dataset.graph, sizes=self._sizes(settings), settings=[settings])
        return network(problem).draws

    def _sizes(self, settings: Mapping[str, Value]) -> Sizes:
        dataset = self.dataset
        nodes = dataset.graph.num_nodes
        return self.architecture.sizes(settings, nodes, dataset.num_features, dataset.num_classes)

    def within_reach(self, trial: Trial) -> Trial:
        """The trial with a budget that its options can meet: see :mod:`tadropedge._old.training.reach`."""
        check_trials([trial])
        options = Method.of(trial.method).options
        return within_reach(self.dataset.graph, trial, self._needed([trial])) if options else trial

    def train(self, trials: Sequence[Trial], *, keep_state: bool = False) -> list[Outcome]:
        """Train all trials, in batches that fit; a batch that does not is halved."""
        trials, keep_state = check_trials(trials), check_flag("keep_state", keep_state)
        self._check_memory(trials)
        self._rehearse(trials)
        outcomes: list[Outcome] = []
        size = self.fitting(trials)
        while len(outcomes) < len(trials):
            batch = trials[len(outcomes) : len(outcomes) + size]
            try:
                outcomes += self._train_batch(batch, keep_state, partial(self._reached, len(trials), len(outcomes)))
            except TadropedgeError:
                raise
            except Exception as error:
                if not ran_out(error):
                    raise
                told = not_enough(error, self._one_training, FEWER, self.dataset.device)
                if len(batch) == 1:
                    raise told from None
                size = len(batch) // 2
                if self.dataset.device.type == "cuda":
                    torch.cuda.empty_cache()
        return outcomes

    def train_sampled(
        self, trial: Trial, plan: MiniBatches, *, ranks: Ranks | None = None, keep_state: bool = False
    ) -> Outcome:
        """Train one trial by mini-batches of sampled neighbours: see :mod:`tadropedge._old.training.mini_batches`.

        ``ranks`` are the processes that do it together, each of which calls this; the outcome is the same in all.
        """
        check_trials([trial])
        course = self._course(check_flag("keep_state", keep_state))
        if self.dataset.level != "node":
            raise TadropedgeError(f"mini_batch cannot be used with {self.dataset.name}: its samples are whole graphs")
        check_kind("plan", plan, MiniBatches)
        ranks = Ranks() if ranks is None else check_kind("ranks", ranks, Ranks)
        check_mini_batches(trial, self.architecture, course, plan=plan, ranks=ranks)
        fanout_of(plan, make_task(self.dataset).network(self.architecture, [trial]))  # before scores are computed
        task = make_task(self.dataset, [self.split(trial.split)], self._needed([trial]))
        self._reached(1, 0, 0, 1, 0)
        training = SampledTraining(task, self.architecture, trial, course, plan=plan, ranks=ranks)
        with matmul_precision(self.precision):
            try:
                return training.run(partial(self._reached, 1, 0, 0, 1))
            except Exception as error:
                if isinstance(error, TadropedgeError) or not ran_out(error):
                    raise
                hint = f"{FEWER}, or a smaller mini_batch or fanout"
                raise not_enough(error, self._one_training, hint, self.dataset.device) from None

    def train_reached(self, trials: Sequence[Trial]) -> list[Outcome]:
        """Train all trials :meth:`within_reach`; their outcomes name them as they were given."""
        trials = check_trials(trials)
        outcomes = self.train([self.within_reach(trial) for trial in trials])
        return [replace(outcome, trial=trial) for outcome, trial in zip(outcomes, trials, strict=True)]

    def moved(self, trials: Sequence[Trial], device: torch.device | str) -> Laboratory:
        """The same laboratory on another device, for these trials: their scores are computed before, and go with it.

        It may be used by another process: it has no folder for scores, and nobody is told of its progress.
        """
        known = {**self._scores, **self._needed(check_trials(trials))}
        other = replace(self, dataset=self.dataset.to(device), cache_dir=None, progress=None)
        other._scores = {name: scores.to(device) for name, scores in known.items()}
        return other

    def fitting(self, trials: Sequence[Trial] = (Trial(),)) -> int:
        """How many trials fit at once if all are as large as the largest of these; by default of the backbone.

        One where a network trains its trials one by one: then each is written when it is finished.
        """
        if any(self.architecture.network(trial.method)[1].opaque for trial in check_trials(trials)):
            return 1
        return max(1, int(self._budget() / self._largest(check_trials(trials))))

    def _rehearse(self, trials: Sequence[Trial]) -> None:
        """Try every user's own module among these once, so that one that is wrong is refused before the work begins."""
        for trial in trials:
            name, network = self.architecture.network(trial.method)
            unbiased = "unbiased" in Method.of(trial.method).options
            if not network.opaque or (network, unbiased) in self._rehearsed:
                continue
            task = make_task(self.dataset)
            try:
                task.network(self.architecture, [trial]).rehearse(task.inputs(), unbiased)
            except TadropedgeError:
                raise
            except Exception as error:
                if not ran_out(error):
                    raise
                raise not_enough(error, self._one_training, FEWER, self.dataset.device) from None
            check_weighs(name, trial.method)  # which is known of a module when it is made
            self._rehearsed.add((network, unbiased))

    def _check_memory(self, trials: Sequence[Trial]) -> None:
        """Refuse trials of which a single one could not be trained, and curves that could not be held."""
        largest = self._largest(trials)
        if largest > LARGE or self.epochs > MANY_EPOCHS:
            norms = self.architecture.layers if self._records_gradients else 0
            curves = self.epochs * (EPOCH_BYTES + 4 * (len(METRICS + SCORED) + norms))
            check_memory(CERTAIN * largest + curves, self._one_training, FEWER, self.dataset.device)

    @property
    def _one_training(self) -> str:
        network, layers, hidden = self.architecture.backbone, self.architecture.layers, self.architecture.hidden
        return (
            f"one training of {self.dataset.name} ({network}, {layers} layers, hidden {hidden}, {self.epochs} epochs, "
            f"{self.dataset.num_features} features)"
        )

    def _largest(self, trials: Sequence[Trial]) -> int:
        """About the bytes of the largest of these trials while it is trained."""
        return max((self._bytes(trial) for trial in trials), default=1)

    def _bytes(self, trial: Trial) -> int:
        dataset, architecture = self.dataset, self.architecture
        nodes = dataset.graph.num_nodes
        settings = architecture.settings_of(trial)
        sizes = self._sizes(settings)
        signals = dataset.labels.shape[0] * (nodes if dataset.level == "graph" else 1)
        network = architecture.network(trial.method)[1]
        entries = dataset.graph.pattern.num_entries
        options = option_bytes(Method.of(trial.method), network.depth(sizes.layers), dataset.graph.num_edges, entries)
        return 4 * network.footprint(sizes, settings, signals, entries) + options

    def _budget(self) -> float:
        """The bytes that a batch may take."""
        free = free_bytes(self.dataset.device)
        if self.dataset.device.type == "cuda" and free is not None:
            return SHARE * free
        return CPU_BUDGET if free is None else min(CPU_BUDGET, SHARE * free)

    def _course(self, keep_state: bool = False) -> Course:
        return Course(
            epochs=self.epochs,
            selection=self.selection,
            per_layer=self.per_layer,
            keep_state=keep_state,
            evaluate_every=self.evaluate_every,
            measure=self.measure,
            gradient_norms=self._records_gradients,
        )

    @property
    def _records_gradients(self) -> bool:
        return self.gradient_norms or self.architecture.layers >= DEEP

    def _needed(self, trials: Sequence[Trial]) -> dict[str, Tensor]:
        names = {Method.of(trial.method).score for trial in trials}
        return {name: self.scores(name) for name in sorted(filter(None, names))}

    def _reached(self, trainings: int, before: int, finished: int, together: int, epoch: int) -> None:
        """Tell where the trainings of one call are; this batch came after ``before`` of them."""
        if self.progress is not None and epoch:
            self.progress(epoch, self.epochs)
        counts = {"trainings": trainings, "finished": before + finished, "together": together}
        tell(Moment(**counts, epoch=epoch, epochs=self.epochs))

    def _train_batch(
        self, trials: Sequence[Trial], keep_state: bool, reached: Callable[[int, int, int], None]
    ) -> list[Outcome]:
        numbers = sorted({trial.split for trial in trials})
        place = {number: at for at, number in enumerate(numbers)}
        task = make_task(self.dataset, [self.split(number) for number in numbers], self._needed(trials))
        course = self._course(keep_state)
        places = [place[trial.split] for trial in trials]
        reached(0, len(trials), 0)
        shown = reached if watched() or self.progress is not None else None
        with matmul_precision(self.precision):
            return train(task, self.architecture, trials, course, split_places=places, progress=shown)


def _scoring(name: str) -> Callable[[int, int], None]:
    """Progress of a score, for whoever watches."""
    return lambda done, total: tell(Phase(f"scoring edges ({name})", done, total))


def laboratory_for(
    dataset: Dataset,
    backbone: str | None = None,
    layers: int | None = None,
    hidden: int | None = None,
    *,
    measure: str | None = None,
    **settings: Any,
) -> Laboratory:
    """A laboratory with the network, the sizes and the measure that a dataset needs where none is named.

    >>> from tadropedge._old.data import load_karate
    >>> made = laboratory_for(load_karate(), layers=3, epochs=5)
    >>> made.architecture.backbone, made.architecture.layers, made.architecture.hidden, made.measure
    ('gcn', 3, 128, 'accuracy')
    """
    check_kind("dataset", dataset, Dataset)
    backbone = dataset.backbone if backbone is None else backbone
    network = lookup("backbone", backbone, NETWORKS)
    usual = (1, 32) if backbone == "gcnn" else (2, 128)
    if issubclass(network, OwnNetwork):
        for name, value in (("layers", layers), ("hidden", hidden)):
            if value is not None and name not in network.takes:
                raise TadropedgeError(f"{name}={value} cannot be used: {network.told} takes no {name}")
        usual = default_sizes(network, dataset.num_features, dataset.num_classes)
    architecture = Architecture(
        backbone, usual[0] if layers is None else layers, usual[1] if hidden is None else hidden
    )
    return Laboratory(
        dataset, architecture, measure=default_measure(dataset) if measure is None else measure, **settings
    )


def check_trials(trials: object) -> list[Trial]:
    """Return a list of trials, each of a method that can be trained."""
    found = [check_kind("each of trials", trial, Trial) for trial in check_list("trials", trials, "trials")]
    for trial in found:
        check_named(trial)
    return found


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


def data_fingerprints(dataset: Dataset) -> dict[str, str]:
    """What an outcome depends on in a dataset, part by part, so that other data in the same place is noticed."""
    classes = {"num_classes": dataset.num_classes, "level": dataset.level}
    return {
        "graph": dataset.graph.fingerprint[:16],
        "features": fingerprint(features=dataset.features)[:16],
        "labels": fingerprint(labels=dataset.labels, **classes)[:16],
        "split": fingerprint(**dict(dataset.split.parts()))[:16],
        **({} if dataset.score_column is None else {"column": fingerprint(column=dataset.score_column)[:16]}),
    }
