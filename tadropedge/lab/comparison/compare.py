"""``compare``: which way of dropping edges pays on a graph, if any."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from torch import nn

from tadropedge._support.checks import check_kind, check_number, check_path
from tadropedge._support.fingerprint import fingerprint
from tadropedge._support.folder import check_ours
from tadropedge._support.progress import Progress
from tadropedge.dropping import Dropping
from tadropedge.errors import TadropedgeError, lookup, show
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.comparison.advice import answered, typical
from tadropedge.lab.comparison.claims import YARDSTICK, Played, candidates_of, defaults, two_rounds
from tadropedge.lab.comparison.page import FILES
from tadropedge.lab.comparison.results import Comparison, Row
from tadropedge.lab.data.dataset import Dataset
from tadropedge.lab.data.load import load
from tadropedge.lab.networks.network import RATES
from tadropedge.lab.reports.label import run_label
from tadropedge.lab.search.executors import Executor
from tadropedge.lab.search.protocol import Search, default_rungs, fixed, nested, trials_of
from tadropedge.lab.search.run import tell
from tadropedge.lab.search.space import OF_DROPPING
from tadropedge.lab.search.store import Store
from tadropedge.lab.search.timing import Cost, estimate, seconds_per_epoch
from tadropedge.lab.statistics import MARGIN, Replicate
from tadropedge.lab.training.batch import FINISH
from tadropedge.lab.training.experiment import Experiment
from tadropedge.lab.training.measures import default_measure
from tadropedge.lab.training.trainer import Trainer
from tadropedge.lab.training.trial import TrainingSettings, Trial

OWN_MODEL = Search(trials=8, time_budget=1800.0)  # of a module of one's own, which trains one trial at a time
FIRST = 2 / 3  # of a time limit is for the candidates, the rest for the controls of those that won
LEAST = 2  # replicates: one has no interval


def compare(
    data: Any,
    methods: Iterable[str | Dropping | Candidate] | None = None,
    *,
    model: Callable[..., nn.Module] | None = None,
    search: Search | None = None,
    controls: str = "claims",
    margin: float = MARGIN,
    out: str | os.PathLike[str] | Store | None = None,
    executor: Executor | None = None,
    watch: object | None = None,
    **experiment: Any,
) -> Comparison:
    """Search every candidate alike on every split, judge it there, and say whether it pays to drop edges.

    Args:
        data: whatever ``tadropedge.lab.load`` takes: a name, a path, a ``Data``, a PyG dataset of one graph.
        methods: names ``[NETWORK+]DROPPING[:WAY]``, see :mod:`tadropedge.lab.candidate`; ``original``, not dropping,
            always takes part. By default a few that suit the data, less those that the network does not allow.
        model: makes your own ``nn.Module``, which is trained in the place of a network. It trains one trial at a time,
            so the defaults are three methods, eight trials and half an hour.
        search: how much is searched: trials, replicates, seed, a time limit or a width that stops it.
        controls: for which candidates the controls of their claim are trained: ``"claims"``, those that beat
            ``original``; ``"all"`` or ``"none"``.
        margin: the difference that counts as none, a fraction of 1.
        out: a folder for finished trials, results and their page; the same call goes on where an interrupted one
            stopped. Or an open :class:`tadropedge.lab.Store`, which several comparisons may share: it keeps the trials.
        executor: who trains; by default this process.
        watch: an object that is told of progress, see :class:`tadropedge.lab.search.run.Watch`; before anything is
            trained its ``estimate`` hears how many trainings there are, and how long they will take. By default a bar
            on the terminal.
        experiment: fields of :class:`tadropedge.lab.Experiment`: ``network``, ``layers``, ``hidden``, ``settings``,
            ``training``, ``score_settings`` and ``device``.

    >>> found = compare(
    ...     "karate", ["dropedge"], search=Search(trials=1, replicates=2), training=TrainingSettings(epochs=4), hidden=4
    ... )
    >>> [row.candidate for row in found.rows], found.row("dropedge").against["original"].word
    (['original', 'dropedge'], 'undecided')
    """
    if search is None:
        search = Search() if model is None else OWN_MODEL
    check_kind("search", search, Search)
    if search.replicates < LEAST:
        raise TadropedgeError(f"replicates must be at least {LEAST}, got {search.replicates}", argument="replicates")
    margin = check_number("margin", margin, 0, 1)
    folder = None if out is None or isinstance(out, Store) else check_path("out", out)
    if folder is not None:
        check_ours(folder, FILES)
    named = None if methods is None else candidates_of(methods)
    begun, dataset = time.monotonic(), load(data)
    trained = _experiment(dataset, model, experiment)
    left_out: dict[str, str] = {}
    candidates = named or []
    if named is None:
        candidates, left_out = _usable(defaults(dataset, own_model=model is not None), trained)
    with nullcontext(out if isinstance(out, Store) else None) if folder is None else Store(folder) as store:
        player = _Player(
            experiment=trained,
            search=search,
            store=store,
            executor=executor,
            watch=_Bar() if watch is None else watch,
            yardstick=_yardstick(trained),
            waits=controls != "none",
        )
        player.announce(candidates)
        rows, yardstick = two_rounds(
            candidates,
            player.play,
            controls=controls,
            margin=margin,
            yardstick=player.yardstick,
            num_splits=dataset.num_splits,
            seconds=player.seconds,
        )
        rows = [player.timed(row) for row in rows]
        seconds = time.monotonic() - begun
        told = {"source": str(data)} if isinstance(data, str | os.PathLike) else {}
        run = {**_about(trained, search), **told, "margin": margin, "controls": controls, "left_out": left_out}
        found = answered(rows, {**run, **run_label(trained.device, seconds=seconds)}, yardstick)
        if folder is not None:
            found.save(folder)
    return found


def _experiment(data: Dataset, model: Callable[..., nn.Module] | None, options: Mapping[str, Any]) -> Experiment:
    """The experiment of these options; by default by the measure of the data, and the worst trials stop early."""
    known = {each.name: each for each in fields(Experiment) if each.name not in ("data", "model")}
    for name, value in options.items():
        for kind in (Search, TrainingSettings):  # what is often guessed
            if name in {each.name for each in fields(kind)} - {*known}:
                said = f"{kind.__name__}({name}={show(value, typed=False)})"
                raise TadropedgeError(f"compare has no option {name!r}: it stands in {said}", argument=name)
        lookup("option of compare", name, known)
    options = dict(options)
    if options.get("training") is None:
        rungs = default_rungs(TrainingSettings().epochs) if model is None else ()
        options["training"] = TrainingSettings(measure=default_measure(data), rungs=rungs)
    return Experiment(data=data, model=model, **options)


def _usable(candidates: Sequence[Candidate], experiment: Experiment) -> tuple[list[Candidate], dict[str, str]]:
    """Those that the network and the data allow, and why not the others."""
    found, left_out = [], {}
    for candidate in candidates:
        try:
            experiment.check(candidate)
            found.append(candidate)
        except TadropedgeError as error:
            left_out[str(candidate)] = str(error)
    return found, left_out


def _yardstick(experiment: Experiment) -> str | None:
    """The MLP, where it is not the network itself and can be trained as that is."""
    if experiment.network == YARDSTICK and experiment.model is None:
        return None
    return YARDSTICK if not _usable([Candidate.parse(YARDSTICK)], experiment)[1] else None


class _Bar:
    """The watch of whoever gives none: a bar on the terminal, if the work takes long."""

    def plan(self, total: int) -> None:
        self._bar = Progress("training", total)

    def trained(self, count: int) -> None:
        self._bar.advance(count)
        if self._bar.is_done:
            self._bar.close()


@dataclass(kw_only=True)
class _Player:
    """Searches candidates on the splits of an experiment, within what is left of the time."""

    experiment: Experiment
    search: Search
    store: Store | None
    executor: Executor | None
    watch: object | None
    yardstick: str | None
    waits: bool  # whether there may be a second round
    spent: float = 0.0
    chosen: dict[tuple[str, int], Trial] = field(default_factory=dict)
    costs: dict[str, Cost] = field(default_factory=dict)

    def announce(self, candidates: Sequence[Candidate]) -> None:
        """Tell the watch how much there is to do, if it asks."""
        if hasattr(self.watch, "estimate"):
            everyone = [*candidates, *self._outside()]
            tell(self.watch, "estimate", estimate(everyone, self.experiment, self.search, self.store, self.executor))

    def play(self, candidates: Sequence[Candidate], most: int | None) -> Played:
        """The replicates of candidates, and in the first round those of the yardstick; in the second ``most``."""
        given, begun = (self.experiment, self._part(most), self.store, self.executor, self.watch), time.monotonic()
        outside = self._outside() if most is None else []
        candidates = candidates if most is None else _usable(candidates, self.experiment)[0]
        if not candidates:
            return {}
        if self.experiment.data.num_splits == 1:
            found = fixed([*candidates, *outside], *given)
        else:
            found = nested(candidates, *given, yardsticks=outside)
        self.spent += time.monotonic() - begun
        self.chosen |= {(name, one.number): one.chosen for name, some in found.items() for one in some}
        named = {str(candidate): candidate for candidate in (*candidates, *outside)}
        return {
            name: [replace(one, chosen=_plain(one.chosen, named[name])) for one in some] for name, some in found.items()
        }

    def timed(self, row: Row) -> Row:
        """The row with what its typical setting takes, trained alone for a few epochs.

        One that finishes on the whole graph takes what its epochs take on average, and the memory of the last; what
        they take before is ``while_dropping``.
        """
        trial = self.chosen[row.candidate, typical(row).number]
        cost, before = self._cost(trial), None
        if "finish" in trial.candidate.ways:
            end = self._cost(replace(trial, candidate=Candidate(network=trial.candidate.network)))
            before = {"train": cost.train, "peak_bytes": cost.peak_bytes}
            train = cost.train + (end.train - cost.train) / FINISH
            cost = replace(cost, train=train, peak_bytes=max(cost.peak_bytes, end.peak_bytes))
        seconds = {"train": cost.train, "evaluate": cost.evaluate}
        return replace(row, seconds_per_epoch=seconds, peak_bytes=cost.peak_bytes, while_dropping=before)

    def seconds(self, name: str, replicates: Sequence[Replicate]) -> float:
        """What an epoch of training takes, the mean over all of them."""
        spent = self.timed(Row.of(name, replicates)).seconds_per_epoch
        assert spent is not None
        return float(spent["train"])

    def _cost(self, trial: Trial) -> Cost:
        """What an epoch of a trial takes, measured once."""
        key = fingerprint(timed=self.experiment.key(trial))
        if key not in self.costs:
            known = None if self.store is None else self.store.get([key]).get(key)
            if known is None:
                known = asdict(seconds_per_epoch(self.experiment, trial))
                if self.store is not None:
                    self.store.put("timing", {key: known})
            self.costs[key] = Cost(**{each.name: known[each.name] for each in fields(Cost)})
        return self.costs[key]

    def _outside(self) -> list[Candidate]:
        return [] if self.yardstick is None else [Candidate.parse(self.yardstick)]

    def _part(self, most: int | None) -> Search:
        """The search of a round: no width stops the second, which has as many replicates as the first."""
        budget = self.search.time_budget
        if most is None:
            return replace(self.search, time_budget=FIRST * budget if budget is not None and self.waits else budget)
        left = None if budget is None else max(budget - self.spent, 0.0)
        return replace(self.search, replicates=most, time_budget=left, half_width=None)


def _plain(trial: Trial, candidate: Candidate) -> dict[str, Any]:
    """The settings of a trial as plain values: what was chosen of its dropping, its rates, and its network's."""
    dropping, searched = trial.candidate.dropping, candidate.dropping
    budget = {name: getattr(dropping, name, dropping.settings.get(name)) for name in OF_DROPPING}
    known = {"keep_prob": searched.keep_prob, "keep_ratio": searched.keep_ratio, **searched.settings}
    free = {name: value for name, value in budget.items() if value is not None and known.get(name) is None}
    rates = {name: getattr(trial, name) for name in RATES}
    return {"method": str(trial.candidate), **free, **rates, **trial.settings}


def _about(experiment: Experiment, search: Search) -> dict[str, Any]:
    """What was run: the data in a few numbers, the network, the training and the search."""
    data, graph, training = experiment.data, experiment.data.graph, experiment.training
    train, val, test = data.split(0).sizes
    shared = "fixed" if data.num_splits == 1 else "drawn for each replicate"
    shared = shared if data.num_splits is None or data.num_splits == 1 else f"{data.num_splits} of the data"
    told = experiment.as_dict()
    described = {
        **told["data"],
        "mean_degree": round(2 * graph.num_edges / max(graph.num_nodes, 1), 2),
        "homophily": None if data.homophily is None else round(data.homophily, 3),
        "components": graph.components.count,
        "split": [train, val, test],
    }
    return {
        "task": "network" if experiment.model is None else "model",
        "data": described,
        **{name: told[name] for name in ("network", "layers", "hidden", "settings", "score_settings")},
        "measure": training.measure,
        "epochs": training.epochs,
        "keep": training.keep,
        "rungs": list(training.rungs) if _stops_early(experiment, search) else False,
        "split": shared,
        "trials": search.trials,
        "replicates": search.replicates,
        "seed": search.seed,
        "time_budget": search.time_budget,
        "half_width": search.half_width,
    }


def _stops_early(experiment: Experiment, search: Search) -> bool:
    """Whether the worst trials of a search stop early, for which it must train as one program, or nobody asked."""
    if experiment.model is not None or experiment.training.mini_batch is not None:
        return False
    if not experiment.training.rungs:
        return True
    groups = Trainer(experiment).batches(trials_of(Candidate(), experiment, search, 0))
    return all(group.rungs for group in groups)
