"""``tadropedge.compare``: which edge dropping helps on this graph; the command ``tadropedge compare`` runs the same."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna
import torch

from tadropedge._old.checks import check_flag, check_integer, check_path, check_progress, check_runs_on
from tadropedge._old.comparison.comparison import CHOOSE_SPLITS, DEFAULT_METHODS, Plan, compared
from tadropedge._old.comparison.costs import KEY
from tadropedge._old.comparison.report import FILES, told, write_all
from tadropedge._old.comparison.results import Advice, Results, read_results
from tadropedge._old.comparison.timing import costs, earlier_costs
from tadropedge._old.comparison.winner import CONDITIONS
from tadropedge._old.data import Conditions, Dataset, as_dataset, bayes_accuracy, conditioned, loader_options
from tadropedge._old.errors import TadropedgeError, lookup, show
from tadropedge._old.lock import locked
from tadropedge._old.method import Method
from tadropedge._old.nn.own import own_network
from tadropedge._old.progress import Progress, Show
from tadropedge._old.publish.label import run_label
from tadropedge._old.publish.terminal import as_text
from tadropedge._old.regimes.nearest import nearest
from tadropedge._old.search.engines import Engine, check_engine, training_with
from tadropedge._old.search.fair import Report
from tadropedge._old.search.study import Storage, check_storage
from tadropedge._old.training.laboratory import Laboratory, laboratory_for
from tadropedge._old.watching import Event, Moment, Phase, tell, watching

if TYPE_CHECKING:
    from torch_geometric.data import Data
    from torch_geometric.data import Dataset as ManyData

LABORATORY = ("laplacian", "q", "selection", "per_layer", "evaluate_every", "precision", "cache_dir")


@dataclass(frozen=True, repr=False)
class Comparison(Results):
    """Results that print as the tables and the advice of the command line."""

    def __str__(self) -> str:
        return as_text(told(self))

    __repr__ = __str__


def compare(
    data: Data | ManyData | Dataset | str | Path,
    methods: Sequence[str] | None = None,
    model: Callable[..., torch.nn.Module] | None = None,
    *,
    trials: int = 30,
    seeds: int = 20,
    choose_splits: int = CHOOSE_SPLITS,
    seed: int = 0,
    backbone: str | None = None,
    layers: int | None = None,
    hidden: int | None = None,
    epochs: int = 400,
    measure: str | None = None,
    split: str | None = None,
    split_sizes: tuple[int, int, int] | None = None,
    add_edges: float = 0.0,
    hide_features: float = 0.0,
    keep_ratio: float | None = None,
    device: str | torch.device = "auto",
    out: str | Path | None = None,
    storage: Storage | None = None,
    wait: bool = False,
    engine: Engine | str | None = None,
    progress: Show = None,
    **settings: Any,
) -> Comparison:
    """Tune every method and its references alike, judge them on fresh splits, and return what was found.

    * ``data``: a PyTorch Geometric ``Data``, or a dataset of one; a ``Dataset``; a name of ``DATASETS``; the path of a
      file. Without masks a split is drawn; ``results.run["splits"]`` says which splits were used.
    * ``methods``: names in the grammar of :mod:`tadropedge._old.method`; by default ``DEFAULT_METHODS``, without those that
      cannot be used on the data or with the network, which a warning names.
    * ``model``: what makes your own ``nn.Module`` (see :mod:`tadropedge._old.nn.own`), trained in the place of a
      ``backbone``. ``layers`` and ``hidden`` are those of the network, and by default its own.
    * ``add_edges``: random edges added, as a share of the graph's own; ``hide_features``: the share of the nodes whose
      features are hidden. Both are drawn from ``seed``, see :class:`tadropedge._old.data.Conditions`.
    * ``keep_ratio``: the expected share of the edges that every method which drops keeps. Methods that cannot keep so
      few are not trained: their rows have the ``least_share`` that they could keep.
    * ``trials`` per method and reference on each of ``choose_splits`` splits, then ``seeds`` fresh seeds and splits.
    * ``out``: a folder for the results, the report and the finished trials; if a call is interrupted, the same call
      resumes. Without it nothing is written, unless ``storage`` names a place for the trials.
    * ``engine``: who trains: ``"local"`` (or ``None``), this process; ``"ray"`` or a ``RayEngine``, a cluster.
    * ``progress``: True, False, a function of (done, in all), or None for a bar on a terminal.
    * ``settings``: ``per_class``, ``root`` and what else the loader of the data takes; ``laplacian``, ``q``,
      ``selection``, ``per_layer``, ``evaluate_every``, ``precision`` and ``cache_dir`` as in ``Laboratory``.

    >>> found = compare("karate", ["dropedge"], trials=1, seeds=2, choose_splits=1, epochs=2, hidden=4)
    >>> [row.method for row in found.rows], found.run["splits"]
    (['original', 'dropedge'], '2 of each class to train, 10 others to validate, 16 to test')
    """
    started = time.monotonic()
    network = _network(backbone, model)  # first: methods may name it
    plan = Plan(
        _methods(methods), trials=trials, seeds=seeds, seed=seed, lenient=methods is None, keep_ratio=keep_ratio
    )
    choose_splits = check_integer("choose_splits", choose_splits, least=1)
    folder, shown = None if out is None else check_path("out", out), check_progress(progress)
    loading = {name: settings.pop(name) for name in list(settings) if name not in LABORATORY}
    _check_loading(loading)
    conditions = Conditions(add_edges, hide_features, plan.seed)
    place, trainers = chosen_device(device), check_engine(engine)

    def made() -> Laboratory:
        dataset = as_dataset(data, split=split, seed=plan.seed, split_sizes=split_sizes, **loading)
        return laboratory_for(
            conditioned(dataset, conditions).to(place), network, layers, hidden,
            measure=measure, epochs=epochs, choose_splits=choose_splits, **settings,
        )  # fmt: skip

    with training_with(trainers):
        results = carried_out(
            made, plan, out=folder, storage=storage, wait=check_flag("wait", wait), reporting=_bars(shown),
            label=lambda dataset: _label(dataset, conditions, time.monotonic() - started), loading=loading,
        )  # fmt: skip
    return Comparison(results.rows, results.run, advice=results.advice, protocol=results.protocol, data=results.data)


def _network(backbone: str | None, model: Callable[..., torch.nn.Module] | None) -> str | None:
    """The name of the network that is trained, a user's own under a name that it gets here."""
    if model is None:
        return backbone
    if backbone is not None:
        raise TadropedgeError(
            f"model and backbone exclude each other, got backbone={show(backbone, typed=False)} and a model"
        )
    return own_network(model)


def _label(dataset: Dataset, conditions: Conditions, seconds: float) -> dict[str, object]:
    """What depends on this run alone, which no command made."""
    told = {name: value for name, value in vars(conditions).items() if value}
    label = run_label(dataset.device.type, None, seconds) | {"splits": dataset.way.words}
    return label | ({CONDITIONS: told} if conditions else {})


def carried_out(
    make: Callable[[], Laboratory],
    plan: Plan,
    *,
    out: Path | None,
    storage: Storage | None,
    wait: bool,
    reporting: AbstractContextManager[Report],
    label: Callable[[Dataset], dict[str, object]],
    loading: Mapping[str, Any],
) -> Results:
    """Run a comparison, in the folder ``out`` where one is given, which is locked and checked before data is loaded."""
    here: Storage = optuna.storages.InMemoryStorage() if out is None else out / "study.db"
    place = here if storage is None else storage
    say = partial(print, file=sys.stderr, flush=True)
    with nullcontext() if out is None else locked(out, "study.db", *FILES, wait=wait, say=say):
        check_storage(place)
        laboratory = make()
        with reporting as report:
            watched = _Watched(report)
            results = compared(laboratory, plan, place, watched)
            spent = earlier_costs(_earlier(out), results.rows)
            # A run that was killed between its last training and its files has trained all, and timed nothing.
            killed = spent is None and out is not None
            if not spent and (watched.worked or killed):
                spent = costs(laboratory, results.rows, report)
        dataset = laboratory.dataset
        run = label(dataset) | ({KEY: spent} if spent else {})
        if dataset.name == "source-localization":  # the accuracy that no classifier can beat is known
            run["bayes_accuracy"] = round(bayes_accuracy(plan.seed, **loading), 4)
        results = replace(results, run=run, advice=_beside_the_map(results, laboratory))
        if out is not None:
            tell(Phase("writing the report", 0, 1))
            write_all(results, out)
    return results


def _beside_the_map(results: Results, laboratory: Laboratory) -> Advice | None:
    """The advice with a sentence on the nearest case of the map of regimes, where there is one."""
    advice, network = results.advice, laboratory.architecture
    if advice is None or results.data is None:
        return advice
    budget = None if results.protocol is None else results.protocol.keep_ratio
    case = nearest(results.data, backbone=network.backbone, layers=network.layers, keep_ratio=budget)
    return advice if case is None else replace(advice, regime=case.words)


class _Watched:
    """A report of progress that knows whether anything was left to do: where all is finished, nothing trains."""

    def __init__(self, report: Report) -> None:
        self._report, self.worked = report, False

    def __call__(self, phase: str, done: int, total: int) -> None:
        self.worked |= done < total
        self._report(phase, done, total)


def _earlier(out: Path | None) -> Results | None:
    """The results that are in the folder, if they are readable."""
    if out is None or not (out / "results.json").is_file():
        return None
    try:
        return read_results(out / "results.json")
    except TadropedgeError:
        return None


def _check_loading(loading: Mapping[str, Any]) -> None:
    """Refuse what no loader of data takes: as a rule another setting with a mistake in it."""
    of_loaders = loader_options()
    own = (name for name in inspect.signature(compare).parameters if name != "settings")
    known = dict.fromkeys([*own, *LABORATORY, *sorted(of_loaders)])
    for name in loading:
        if name not in of_loaders:
            lookup("setting of compare", name, known)


def _methods(methods: Sequence[str] | None) -> Sequence[str]:
    if methods is None:
        return DEFAULT_METHODS
    if isinstance(methods, str):
        raise TadropedgeError(f"methods must be a list of methods, got the text {methods!r}: write [{methods!r}]")
    names = [Method.of(name).name for name in Plan(methods).methods]
    if twice := [name for name in names if names.count(name) > 1]:
        raise TadropedgeError(f"methods name {twice[0]!r} more than once")
    return names


@contextmanager
def _bars(wanted: Show) -> Iterator[Report]:
    """A bar for each phase, one after the other."""
    with ExitStack() as stack:
        bars: dict[str, tuple[Progress, list[int]]] = {}

        def report(phase: str, done: int, total: int) -> None:
            if phase not in bars:
                stack.close()
                bars[phase] = stack.enter_context(Progress(phase, total, wanted)), [0]
            bar, reached = bars[phase]
            bar.advance(done - reached[0])
            reached[0] = done

        def noted(event: Event) -> None:
            if isinstance(event, Moment) and bars:
                bar, _ = list(bars.values())[-1]
                bar.note(f"epoch {event.epoch} of {event.epochs}")

        with watching(noted):
            yield report


def chosen_device(device: str | torch.device) -> torch.device:
    """``auto`` is a GPU where there is one; a device that is not here is refused."""
    if isinstance(device, str) and device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return check_runs_on(device)
