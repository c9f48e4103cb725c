"""``Trainer``: how any list of trials is trained: whole searches at once, cut to fit, halved if memory runs out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tadropedge._support.checks import check_flag, check_integer, check_kind
from tadropedge._support.memory import free_bytes, ran_out, within_memory
from tadropedge.lab.training.batch import Batch
from tadropedge.lab.training.callbacks import Callback
from tadropedge.lab.training.experiment import OWN, Experiment
from tadropedge.lab.training.fit import fit
from tadropedge.lab.training.objective import Consistency
from tadropedge.lab.training.ranks import Ranks
from tadropedge.lab.training.trial import Outcome, Trial

ON_CPU = 16  # trials at once: a row is written when its whole batch is done
CPU_BUDGET = 1.5e9  # bytes of a batch on a CPU: larger batches fall out of its caches
SHARE = 0.6  # of the free memory that a batch may take
COPIES = 8  # of a layer's signal that are held at once: before and after each step of it, and their gradients
FEWER = "take fewer layers, hidden units or features"


@dataclass(frozen=True)
class Group(Sequence[Trial]):
    """Trials that train as one program, with or without ``rungs``.

    They have none where they are a part of a search that does not fit, or train one by one or by mini-batches.
    """

    trials: tuple[Trial, ...]
    rungs: bool = True

    def __getitem__(self, place: Any) -> Any:
        return self.trials[place]

    def __len__(self) -> int:
        return len(self.trials)


class Trainer:
    """Trains trials of one experiment, at most ``at_once`` of them at a time.

    ``ranks`` are the processes of ``torchrun`` that share the mini-batches.

    >>> from tadropedge.lab.candidate import Candidate
    >>> from tadropedge.lab.data.load import load
    >>> from tadropedge.lab.training.trial import TrainingSettings
    >>> experiment = Experiment(data=load("karate"), hidden=8, training=TrainingSettings(epochs=5))
    >>> names = ("dropedge@0.5", "original", "dropedge@0.2")
    >>> trials = [Trial(candidate=Candidate.parse(name)) for name in names]
    >>> trainer = Trainer(experiment)
    >>> [len(group) for group in trainer.batches(trials)]
    [2, 1]
    >>> [str(outcome.trial.candidate) for outcome in trainer.train(trials)]
    ['dropedge@0.5', 'original', 'dropedge@0.2']
    """

    def __init__(
        self,
        experiment: Experiment,
        *,
        at_once: int | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        self.experiment, self.ranks = check_kind("experiment", experiment, Experiment), ranks
        self.at_once = None if at_once is None else check_integer("at_once", at_once, least=1)

    def batches(self, trials: Sequence[Trial]) -> list[Group]:
        """The trials as groups that train as one program: whole searches, as many as fit.

        A search that does not fit is cut, and trains without rungs.
        """
        programs: dict[tuple[object, ...], dict[object, list[Trial]]] = {}
        for trial in trials:
            searches = programs.setdefault(self.experiment.structure(trial), {})
            searches.setdefault(trial.search, []).append(trial)
        found: list[Group] = []
        for structure, searches in programs.items():
            alone = structure[0] == OWN or self.experiment.training.mini_batch is not None
            first = next(iter(searches.values()))[0]
            agreed = Consistency.of(first.candidate.ways, first.settings)
            most = 1 if alone else self.fitting(1 if agreed is None else agreed.draws)
            found += _packed(list(searches.values()), most, plain=alone)
        return found

    def train(
        self, trials: Sequence[Trial], callbacks: Sequence[Callback] = (), *, keep_state: bool = False
    ) -> list[Outcome]:
        """Train all trials and return their outcomes in order.

        One of the groups that :meth:`batches` returned is trained as it is; any other list is first cut into groups.
        """
        keep_state = check_flag("keep_state", keep_state)
        for kind, name, given in ((Trial, "trials", trials), (Callback, "callbacks", callbacks)):
            for each in given:
                check_kind(name, each, kind)
        for candidate in {trial.free for trial in trials}:
            self.experiment.check(candidate)
        places: dict[int, list[int]] = {}
        for place, trial in enumerate(trials):
            places.setdefault(id(trial), []).append(place)
        outcomes: dict[int, Outcome] = {}
        for group in [trials] if isinstance(trials, Group) else self.batches(trials):
            for trial, outcome in zip(group, self._trained(group, callbacks, keep_state), strict=True):
                outcomes[places[id(trial)].pop(0)] = outcome
        return [outcomes[place] for place in range(len(trials))]

    def fitting(self, draws: int = 1) -> int:
        """How many trials train at once, each with so many draws per step."""
        device = self.experiment.local.device
        free = SHARE * free_bytes(device) / draws
        most = int((free if device.type == "cuda" else min(free, CPU_BUDGET)) / self._bytes())
        if device.type == "cpu":
            most = min(most, ON_CPU)
        return max(1, most if self.at_once is None else min(most, self.at_once))

    def _batch(self, group: Group) -> Batch:
        if self.experiment.training.mini_batch is None:
            return Batch(self.experiment, group, rungs=group.rungs)
        from tadropedge.lab.training.neighbours import SampledBatch

        return SampledBatch(self.experiment, group, ranks=self.ranks)

    def _bytes(self) -> float:
        """About what one training needs: signals of all layers, weights and values on the entries."""
        experiment, data = self.experiment, self.experiment.data
        nodes, entries = data.graph.num_nodes, 2 * data.graph.num_edges + data.graph.num_nodes
        layers, hidden = experiment.sizes.layers, experiment.sizes.hidden
        signals = nodes * (COPIES * layers * hidden + COPIES * data.num_classes)
        weights = hidden * (data.num_features + layers * hidden)
        return 4.0 * (signals + 6 * weights + 6 * entries)

    def _trained(self, group: Group, callbacks: Sequence[Callback], keep_state: bool) -> Iterator[Outcome]:
        """The outcomes of a group; where memory runs out, those of its halves."""
        try:
            outcomes = fit(self._batch(group), callbacks, keep_state=keep_state)
        except Exception as error:
            if len(group) == 1 or not ran_out(error):
                with within_memory("one training", FEWER, self.experiment.device):
                    raise
        else:
            yield from outcomes
            return
        if self.experiment.local.device.type == "cuda":
            torch.cuda.empty_cache()
        half = len(group) // 2
        for part in (group.trials[:half], group.trials[half:]):
            yield from self._trained(Group(part, rungs=False), callbacks, keep_state)


def _packed(searches: Sequence[Sequence[Trial]], most: int, *, plain: bool) -> list[Group]:
    """Whole searches side by side, at most so many trials; larger ones are cut, and none has rungs if ``plain``."""
    groups: list[Group] = []
    together: list[Trial] = []
    for search in searches:
        if len(search) > most:
            groups += [Group(tuple(search[first : first + most]), rungs=False) for first in range(0, len(search), most)]
            continue
        if len(together) + len(search) > most:
            groups.append(Group(tuple(together), rungs=not plain))
            together = []
        together += search
    return [*groups, Group(tuple(together), rungs=not plain)] if together else groups


def train(
    experiment: Experiment, trials: Sequence[Trial], callbacks: Sequence[Callback] = (), *, keep_state: bool = False
) -> list[Outcome]:
    """Train any trials of an experiment, hundreds as one program, and return their outcomes in order.

    With ``keep_state`` an outcome has the model of its best epoch, which ``Experiment.make_network`` and
    ``load_trial`` bring back.
    """
    return Trainer(experiment).train(trials, callbacks, keep_state=keep_state)
