"""``Experiment``: what is trained, apart from what differs between trials."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from torch import Tensor, nn

from tadropedge._support.checks import check_integer, check_kind, check_mapping, check_runs_on, settings_of
from tadropedge._support.fingerprint import fingerprint
from tadropedge.dropping import Dropping
from tadropedge.errors import TadropedgeError, lookup, show
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.data.dataset import Dataset
from tadropedge.lab.networks.layers import Inputs, inputs
from tadropedge.lab.networks.network import Network, Sizes, Start
from tadropedge.lab.registry import MEASURES, NETWORKS
from tadropedge.lab.training.objective import OF_CONSISTENCY, Consistency
from tadropedge.lab.training.trial import TrainingSettings, Trial, Value
from tadropedge.registry import OPTIONS, RULES, SCORES, USES
from tadropedge.sampling.plan import Plan

# Raise it when the same trial would give another result, so that old ones are not found. Rounding does not count:
# processors differ in it, too.
VERSION = 1
LAYERS, HIDDEN = 2, 64  # of the networks here
OWN = "your model"  # the network of an experiment with a model, where a message names it


@dataclass(frozen=True, kw_only=True, eq=False)
class Experiment:
    """The data, the network and the training that all trials share.

    * ``network``, ``layers``, ``hidden``, ``settings``: of the candidates that name no network;
    * ``score_settings``: ``q``, ``laplacian`` and others, each given to the scores that take it;
    * ``model``: a function ``model(num_features, num_classes)`` that makes your own ``nn.Module``, which is then the
      network of the candidates that name none; it is told ``layers`` and ``hidden`` if they are said here, and has
      its own defaults otherwise;
    * ``device``: where it is trained.

    >>> from tadropedge.lab.data.load import load
    >>> experiment = Experiment(data=load("karate"), hidden=8, training=TrainingSettings(epochs=10))
    >>> round(experiment.plan(Dropping.parse("degree-proportional@0.5")).prob.mean().item(), 6)
    0.5
    >>> experiment.check(Candidate.parse("mlp+dropedge"))
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: 'dropedge' cannot be used with mlp, which sees no edges
    """

    data: Dataset
    network: str = "gcn"
    layers: int | None = None  # unless said 2, and of a model its own
    hidden: int | None = None  # unless said 64, and of a model its own
    settings: Mapping[str, Value] = field(default_factory=dict)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    score_settings: Mapping[str, Any] = field(default_factory=dict)
    model: Callable[..., nn.Module] | None = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        if not isinstance(self.data, Dataset):
            raise TadropedgeError(f"data must be a Dataset, as load() returns it, got {show(self.data)}")
        lookup("network", self.network, NETWORKS)
        for name, usual in (("layers", LAYERS), ("hidden", HIDDEN)):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), least=1)
            elif self.model is None:
                object.__setattr__(self, name, usual)
        check_runs_on(self.device)
        check_kind("training", self.training, TrainingSettings)
        check_mapping("settings", self.settings)
        check_mapping("score_settings", self.score_settings)
        if self.score_settings:
            known = {name for score in SCORES.values() for name in settings_of(score)} - {"features", "column"}
            for name in self.score_settings:
                lookup("setting of a score", name, dict.fromkeys(sorted(known)))
        self.network_of(Candidate())  # refuses a model that is none

    # -- the network --------------------------------------------------------------------------------------

    @cached_property
    def sizes(self) -> Sizes:
        """The numbers that decide the shapes of networks."""
        return Sizes(
            num_features=self.data.num_features, num_classes=self.data.num_classes,
            layers=self.layers or LAYERS, hidden=self.hidden or HIDDEN,
        )  # fmt: skip

    def network_of(self, candidate: Candidate) -> type[Network]:
        """The network that a candidate trains."""
        if candidate.network is None and self.model is not None:
            return self._own
        return lookup("network", candidate.network or self.network, NETWORKS)

    def name_of(self, candidate: Candidate) -> str:
        """What that network is called."""
        own = candidate.network is None and self.model is not None
        return OWN if own else candidate.network or self.network

    def settings_of(self, trial: Trial) -> dict[str, Value]:
        """All settings of a trial's network: those of the trial, of the experiment, and defaults for the others."""
        candidate = trial.candidate
        agreed = OF_CONSISTENCY if {"consistent", "sharpen"} & set(candidate.ways) else {}
        mine = {name: value for name, value in trial.settings.items() if name not in agreed}
        fixed = self.settings if candidate.network in (None, self.network) else {}
        kind = self.network_of(candidate)
        rate = {"dropout": trial.dropout} if "dropout" in kind.settings else {}  # which an own module is told
        return kind.completed(self.name_of(candidate), {**fixed, **mine, **rate})

    def make_network(self, trials: Sequence[Trial], *, num_classes: int | None = None) -> Network:
        """A new network of trials that share its structure, each at the start that its seed decides."""
        kind: Any = self.network_of(trials[0].candidate)
        sizes = self.sizes if num_classes is None else replace(self.sizes, num_classes=num_classes)
        start = Start([trial.seed for trial in trials])
        made: Network = kind(sizes, [self.settings_of(trial) for trial in trials], start)
        return made.to(self.device)

    def structure(self, trial: Trial) -> tuple[object, ...]:
        """What trials that train as one program have in common; an own module trains alone."""
        candidate, settings = trial.candidate, self.settings_of(trial)
        kind, dropping = self.network_of(candidate), candidate.dropping
        shared = tuple(settings[name] for name in kind.shared)
        agreed = Consistency.of(candidate.ways, trial.settings)
        draws = 0 if agreed is None else agreed.draws
        use = None if dropping.rule is None else dropping.use
        ways = "finish" in candidate.ways, draws, candidate.epochs
        return self.name_of(candidate), shared, use, dropping.options, *ways

    # -- the data -----------------------------------------------------------------------------------------

    @cached_property
    def local(self) -> Dataset:
        """The data on the device."""
        return self.data.to(self.device)

    @cached_property
    def inputs(self) -> Inputs:
        """The features as networks multiply them."""
        return inputs(self.local.features)

    def plan(self, dropping: Dropping) -> Plan:
        """What a way of dropping draws from: its score is computed once, its probabilities once for each budget.

        A budget that is less than its rule or the option ``connected`` can keep becomes the least that they can.
        """
        dropping = self._with_settings(dropping)
        key = fingerprint(dropping=dropping)
        if key not in self._plans:
            self._plans[key] = _reached(dropping, self.local, self._scores_of(dropping))
        return self._plans[key]

    def _with_settings(self, dropping: Dropping) -> Dropping:
        """The same with the experiment's settings for its score, where it has none of its own."""
        if not self.score_settings or dropping.score is None:
            return dropping
        takes = settings_of(SCORES[dropping.score] if isinstance(dropping.score, str) else dropping.score)
        mine = {name: value for name, value in self.score_settings.items() if name in takes}
        return replace(dropping, settings={**mine, **dropping.settings})

    def _scores_of(self, dropping: Dropping) -> Tensor:
        key = fingerprint(score=dropping.score, settings=dropping.settings)
        if key not in self._scores:
            data = self.local
            column = None if data.column is None else data.column[data.graph.arc_pair]
            self._scores[key] = dropping.scores(data.graph, features=data.features, column=column)
        return self._scores[key]

    # -- checks -------------------------------------------------------------------------------------------

    def check(self, candidate: Candidate) -> None:
        """Refuse a candidate that cannot be trained, before any work is done; its score is computed."""
        kind, name, dropping = self.network_of(candidate), self.name_of(candidate), candidate.dropping
        kind.check_layers(name, self.sizes.layers)
        kind.check_dropping(name, dropping)
        if candidate.network in (None, self.network):
            kind.completed(name, self.settings)
        if candidate.is_auto:
            return
        dropping = self._with_settings(dropping)
        scores = self._scores_of(dropping)
        if dropping.is_free:
            half = Dropping.parse(dropping, **{"keep_prob" if dropping.takes_keep_prob else "keep_ratio": 0.5})
            plan = _reached(half, self.local, scores)
        else:
            plan = dropping.plan(self.local.graph, scores=scores)
        plan.draw(0, 0)  # refuses what its options cannot do
        if self.training.mini_batch is not None:
            self._check_mini_batch(candidate, name)

    def _check_mini_batch(self, candidate: Candidate, name: str) -> None:
        """Refuse what cannot be trained on parts of the graph."""
        hops = self.make_network([Trial(candidate=Candidate(network=candidate.network))]).hops
        if hops is None:
            raise TadropedgeError(f"mini-batches cannot be used with {name}, which looks at the whole graph")
        assert self.training.mini_batch is not None
        self.training.mini_batch.of_hops(max(hops, default=-1) + 1)

    # -- what it is ---------------------------------------------------------------------------------------

    def key(self, trial: Trial) -> str:
        """The fingerprint of everything that decides the outcome of a trial: 64 hexadecimal digits.

        Functions that stand behind names are part of it, your own by the bytes of their source file.
        """
        dropping, own = trial.candidate.dropping, {each.name: getattr(self, each.name) for each in fields(self)}
        tables = {"score": SCORES, "rule": RULES, "use": USES}
        behind = {name: getattr(dropping, name) for name in tables}
        code = {name: tables[name][entry] for name, entry in behind.items() if isinstance(entry, str)}
        return fingerprint(
            version=VERSION,
            experiment=own | {"data": self.data.fingerprint()},
            trial=trial,
            code=code,
            options=[OPTIONS[name] for name in dropping.options],
            network=self.model if self.name_of(trial.candidate) == OWN else self.network_of(trial.candidate),
            measure=MEASURES[self.training.measure],
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for labels and results."""
        data = self.data
        own = None if self.model is None else getattr(self.model, "__name__", type(self.model).__name__)
        return {
            "data": {
                "name": data.name,
                "nodes": data.graph.num_nodes,
                "edges": data.graph.num_edges,
                "features": data.num_features,
                "classes": data.num_classes,
            },
            "network": self.network if own is None else own,
            "layers": self.layers,
            "hidden": self.hidden,
            "settings": dict(self.settings),
            "training": asdict(self.training),
            "score_settings": dict(self.score_settings),
            "device": self.device,
        }

    def trained_with(self, training: TrainingSettings) -> Experiment:
        """The same experiment with other training settings; scores and probabilities are shared."""
        other = replace(self, training=training)
        shared = ("local", "inputs", "_plans", "_scores")
        other.__dict__.update({name: getattr(self, name) for name in shared})  # cached, as if made there
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Without what every process makes for itself: the data on the device, and the features as they are used."""
        return {name: value for name, value in self.__dict__.items() if name not in ("local", "inputs", "_own")}

    # -- what is made once --------------------------------------------------------------------------------

    @cached_property
    def _own(self) -> type[Network]:
        from tadropedge.lab.networks.own import own_network

        assert self.model is not None
        said = [name for name in ("layers", "hidden") if getattr(self, name) is not None]
        return own_network(self.model, self.sizes, self.inputs, self.local.graph, said)

    @cached_property
    def _plans(self) -> dict[str, Plan]:
        return {}

    @cached_property
    def _scores(self) -> dict[str, Tensor]:
        return {}


def _reached(dropping: Dropping, data: Dataset, scores: Tensor) -> Plan:
    """The plan of a budget, or of the least that its rule and its options can keep."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the outcome has the share that is kept
        plan = dropping.plan(data.graph, scores=scores, lenient=True)
    if "connected" not in dropping.options or plan.schedule is not None:
        return plan
    edges, tree = data.graph.num_edges, data.graph.num_nodes - data.graph.components.count
    if float(plan.prob.sum()) >= tree:
        return plan
    least = replace(dropping, keep_prob=None, keep_ratio=min(1.0, tree / edges + 1e-9))
    return least.plan(data.graph, scores=scores)
