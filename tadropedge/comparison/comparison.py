"""The main job: search settings for every method, retrain the chosen ones on fresh seeds and splits, and judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial

import numpy as np

from tadropedge.checks import check_function, check_integer, check_kind, check_list, check_seed, settle
from tadropedge.comparison.evidence import Evidence
from tadropedge.comparison.results import Convergence, KeepProbPoint, MethodRow, PaperProtocol
from tadropedge.comparison.statistics import Honest, judge
from tadropedge.errors import TadropedgeError
from tadropedge.method import Method
from tadropedge.search.engine import Table, check_jobs, run_search
from tadropedge.search.protocol import Replicates, accuracy_by_keep_prob, honest, paper
from tadropedge.search.space import Spaces, check_spaces, method_space
from tadropedge.search.study import Finished, Storage, opened, study_name
from tadropedge.training.config import Trial
from tadropedge.training.laboratory import Laboratory

DEFAULT_METHODS = ("original", "dropedge", "cutoff", "division", "cdf", "effective-cdf")
LARGEST_BATCH = 512  # trials trained between two writes
Report = Callable[[str, int, int], None]  # (phase, trials done, trials in all)


@dataclass(frozen=True)
class Plan:
    """What is compared: methods, the number of search trials and of fresh seeds, and the seed of it all."""

    methods: Sequence[str] = DEFAULT_METHODS
    _: KW_ONLY
    trials: int = 100
    seeds: int = 20
    seed: int = 0
    space: Spaces | None = None  # None: the space of each method, around the dataset's own gamma

    def __post_init__(self) -> None:
        methods = check_list("methods", self.methods, "methods")
        if not methods:
            raise TadropedgeError("methods are empty: name at least one")
        for method in methods:
            Method.of(method)
        for name, least in (("trials", 1), ("seeds", 2)):  # one seed alone has no interval
            settle(self, **{name: check_integer(name, getattr(self, name), least)})
        settle(self, seed=check_seed(self.seed))
        check_jobs(len(methods) * (self.trials + 2 * self.seeds))  # each beside its reference
        if self.space is not None:
            check_spaces(self.space)


def compare(laboratory: Laboratory, plan: Plan, storage: Storage, report: Report = lambda *_: None) -> list[MethodRow]:
    """Run both protocols, or what is missing of them, and return one row per method.

    The search and the retraining are Optuna studies in ``storage``: a call that follows an interrupted one repeats
    nothing that is finished.
    """
    check_kind("laboratory", laboratory, Laboratory)
    check_kind("plan", plan, Plan)
    check_function("report", report, "report(phase, trials done, trials in all)", arguments=3)
    dataset, architecture = laboratory.dataset, laboratory.architecture
    laboratory.check([Trial(method) for method in plan.methods])
    space = plan.space or partial(method_space, gamma=dataset.gamma, backbone=architecture.backbone)
    name = study_name(dataset.name, architecture.backbone, architecture.layers, laboratory.laplacian)
    settings = laboratory.settings
    batch = min(LARGEST_BATCH, laboratory.fitting())

    with opened(storage) as base:
        table = run_search(
            laboratory.train, space, plan.methods, plan.trials, plan.seed, base,
            name=name, settings=settings, batch=batch, progress=partial(report, "search"),
        )  # fmt: skip
        fresh = honest(
            laboratory.train, table, space, plan.seeds, plan.seed, base, laboratory.kept_share,
            splits=range(1, plan.seeds + 1), name=name, settings=settings, batch=batch,
            progress=partial(report, "retraining"),
        )  # fmt: skip
    return make_rows(laboratory, table, fresh, *judge(fresh.accuracy, fresh.reference))


def make_rows(
    laboratory: Laboratory,
    table: Table,
    fresh: Replicates,
    judged: Mapping[str, Honest],
    evidence: Mapping[str, Evidence] | None = None,
) -> list[MethodRow]:
    """The two protocols side by side, method by method; the fresh replicates were ``judged`` before."""
    best = paper(table)
    points = accuracy_by_keep_prob(table)
    architecture = laboratory.architecture
    return [
        MethodRow(
            dataset=laboratory.dataset.name,
            backbone=architecture.backbone,
            layers=architecture.layers,
            method=method,
            laplacian=laboratory.laplacian,
            paper_protocol=PaperProtocol(best[method].test_accuracy, len(trials)),
            honest=judged[method],
            evidence=(evidence or {}).get(method),
            settings=_chosen_settings(laboratory, fresh, method),
            convergence=_convergence(fresh.runs[method]),
            by_keep_prob=[KeepProbPoint(float(p), float(test)) for p, _, test in points.get(method, np.empty((0, 3)))],
        )
        for method, trials in table.items()
    ]


def _chosen_settings(laboratory: Laboratory, fresh: Replicates, method: str) -> dict[str, object]:
    trial = fresh.chosen[method].trial
    chosen = trial.flat() | laboratory.architecture.settings_of(trial)
    if Method.of(method).strategy is None:
        chosen = {name: value for name, value in chosen.items() if name not in ("keep_prob", "gamma")}
    if method in fresh.kept_share:
        chosen["kept_share"] = fresh.kept_share[method]
    return chosen


def _convergence(runs: Sequence[Finished]) -> Convergence | None:
    """The losses of the first fresh run that has them."""
    curves = next((run.curves for run in runs if run.curves is not None), None)
    if curves is None:
        return None
    epochs = [int(epoch) for epoch in curves["epoch"]]
    return Convergence(epochs, list(curves["train_loss"]), list(curves["val_loss"]))
