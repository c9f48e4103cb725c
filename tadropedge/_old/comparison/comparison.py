"""The main job: tune every method and its references alike, retrain what was chosen on fresh splits, and judge."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace

from tadropedge._old.checks import (
    check_flag,
    check_function,
    check_integer,
    check_kind,
    check_list,
    check_positive,
    check_seed,
    settle,
)
from tadropedge._old.comparison.advice import advise
from tadropedge._old.comparison.card import data_card
from tadropedge._old.comparison.evidence import gathered
from tadropedge._old.comparison.judging import Against, judged_together
from tadropedge._old.comparison.procedure import Simulated, simulated
from tadropedge._old.comparison.results import Convergence, MethodRow, PaperProtocol, Protocol, Results
from tadropedge._old.comparison.selection import Array, Selection, selections
from tadropedge._old.comparison.statistics import Honest, honest_rows
from tadropedge._old.errors import NotEnoughMemoryError, TadropedgeError
from tadropedge._old.method import Method
from tadropedge._old.registry import STRATEGIES
from tadropedge._old.search import automatic
from tadropedge._old.search.budget import budget_for, check_budget
from tadropedge._old.search.engine import Table, check_jobs
from tadropedge._old.search.entrants import BACKBONE, with_references
from tadropedge._old.search.fair import Finals, Report, Tournament, Tuned, count_trainings, fair
from tadropedge._old.search.protocol import Replicates, paper
from tadropedge._old.search.space import Space, Spaces, check_spaces, method_space
from tadropedge._old.search.study import Finished, Storage, study_name
from tadropedge._old.strategies import wants_gamma
from tadropedge._old.training.config import Trial
from tadropedge._old.training.laboratory import Laboratory
from tadropedge._old.training.reach import least_share
from tadropedge._old.watching import Phase, tell

DEFAULT_METHODS = (
    *("original", "dropedge", "dropedge:unbiased"),
    *("cdf", "degree-proportional", "jaccard-cdf", "auto"),
)
LARGEST_BATCH = 512  # trials trained between two writes
CHOOSE_SPLITS = 3  # on which settings are chosen, where the laboratory does not say


@dataclass(frozen=True)
class Plan:
    """What is compared: methods, the number of search trials and of fresh seeds, and the seed of it all.

    ``trials`` are those of every method, and of each of its references, on each of the choosing splits. A method that
    cannot be used on the data or with the network is refused or, with ``lenient``, left out with a warning.

    With a ``keep_ratio`` every method that drops keeps this expected share of the edges, and those that cannot are out
    of reach. Without one, DropEdge is matched to the share that each method chose, rounded to multiples of
    ``budget_step`` where that is given, so that methods with nearly equal shares have one reference.
    """

    methods: Sequence[str] = DEFAULT_METHODS
    _: KW_ONLY
    trials: int = 30
    seeds: int = 20
    seed: int = 0
    space: Spaces | None = None  # None: the space of each method, around the dataset's own gamma
    lenient: bool = False  # for methods that the user did not name
    keep_ratio: float | None = None
    budget_step: float | None = None
    finals: Finals | None = None  # None: the first choosing splits decide alone
    curves: bool = True  # whether those of what is retrained are kept

    def __post_init__(self) -> None:
        methods = check_list("methods", self.methods, "methods")
        if not methods:
            raise TadropedgeError("methods are empty: name at least one")
        for method in methods:
            Method.of(method)
        for name, least in (("trials", 1), ("seeds", 2)):  # one seed alone has no interval
            settle(self, **{name: check_integer(name, getattr(self, name), least)})
        settle(self, seed=check_seed(self.seed))
        settle(self, **{name: check_flag(name, getattr(self, name)) for name in ("lenient", "curves")})
        if self.keep_ratio is not None:
            settle(self, keep_ratio=check_budget(self.keep_ratio))
        if self.finals is not None:
            check_kind("finals", self.finals, Finals)
        if self.budget_step is not None:
            settle(self, budget_step=check_positive("budget_step", self.budget_step, below=1))
        check_jobs(count_trainings(methods, self.trials, self.seeds, 1, keep_ratio=self.keep_ratio))
        if self.space is not None:
            check_spaces(self.space)


def compare(laboratory: Laboratory, plan: Plan, storage: Storage, report: Report = lambda *_: None) -> list[MethodRow]:
    """One row for every method that is compared, and for not dropping and DropEdge on its network.

    The searches and the retraining are Optuna studies in ``storage``: a call that follows an interrupted one repeats
    nothing that is finished.
    """
    return list(compared(laboratory, plan, storage, report).rows)


def compared(laboratory: Laboratory, plan: Plan, storage: Storage, report: Report = lambda *_: None) -> Results:
    """The rows of :func:`compare`, with the protocol that they were judged by."""
    laboratory, plan = _prepared(laboratory, plan, report)
    found = _trained(laboratory, plan, storage, report)
    tell(Phase("judging", 0, 1))
    searches = {name: tuned.searched_scores for name, tuned in found.tuned.items()}
    selected = selections(searches, laboratory.dataset.split.sizes[1])
    tests, procedure = _judged(laboratory, found, searches, selected)
    rows = [_fair_row(laboratory, found, method, tests.get(method, {})) for method in found.against]
    rows += [_row(laboratory, method, {}, least_share=share) for method, share in found.out_of_reach.items()]
    protocol = _protocol(laboratory, plan, procedure)
    data = data_card(laboratory.dataset, laboratory.measure)
    advice = advise(rows, selected, protocol)
    if advice is not None:
        advice = replace(advice, reached=_reached(laboratory, found.tuned[advice.use].chosen.trial))
    return Results(rows, advice=advice, protocol=protocol, data=data)


def trained(laboratory: Laboratory, plan: Plan, storage: Storage, report: Report = lambda *_: None) -> Tournament:
    """What :func:`compared` judges: everything that is tuned and retrained, after the same checks."""
    laboratory, plan = _prepared(laboratory, plan, report)
    return _trained(laboratory, plan, storage, report)


def _prepared(laboratory: Laboratory, plan: Plan, report: Report) -> tuple[Laboratory, Plan]:
    """Laboratory and plan as they are carried out; what cannot be trained is refused before anything is."""
    check_kind("laboratory", laboratory, Laboratory)
    check_kind("plan", plan, Plan)
    check_function("report", report, "report(phase, trials done, trials in all)", arguments=3)
    if laboratory.choose_splits is None:
        laboratory = replace(laboratory, choose_splits=CHOOSE_SPLITS)
    count = count_trainings(plan.methods, plan.trials, plan.seeds, laboratory.num_choosing, keep_ratio=plan.keep_ratio)
    check_jobs(count)
    if plan.lenient:
        plan = replace(plan, methods=_usable(laboratory, plan.methods), lenient=False)
    for methods in (plan.methods, with_references(plan.methods)):  # an error names what was asked for, if it can
        laboratory.check([Trial(_checkable(method)) for method in methods])
    for method in plan.methods:
        _try_score(laboratory, method)
    return laboratory, plan


def _reached(laboratory: Laboratory, trial: Trial) -> dict[str, object]:
    """The budget that a trial was trained with; nothing where it is the one that was drawn."""
    trained = laboratory.within_reach(trial)
    if trained == trial:
        return {}
    unused = "keep_ratio" if trained.keep_ratio is None else "keep_prob"
    budget = {name: getattr(trained, name) for name in ("keep_prob", "keep_ratio", "keep_last") if name != unused}
    return {name: value for name, value in budget.items() if value is not None}


def _try_score(laboratory: Laboratory, method: str) -> None:
    """Compute the score of a method: one that fails is refused before anything is trained."""
    if (score := Method.of(method).score) is not None:
        laboratory.scores(score)


def _usable(laboratory: Laboratory, methods: Sequence[str]) -> list[str]:
    """The methods that can be used here, with a warning for each of the others; what all are judged against must be."""
    laboratory.check([Trial(method) for method in BACKBONE])
    found = []
    for method in methods:
        try:
            laboratory.check([Trial(_checkable(method))])
            _try_score(laboratory, method)
        except NotEnoughMemoryError:
            raise
        except TadropedgeError as error:
            warnings.warn(f"{method} is left out: {error}", stacklevel=2)
        else:
            found.append(method)
    return found


def _checkable(method: str) -> str:
    """What is looked at beforehand: the method, or the network of ``auto``, which draws only what can be trained."""
    one = Method.of(method)
    return (one.network or "original") if one.auto else method


def space_of(laboratory: Laboratory) -> Callable[[str], Space]:
    """The space of each method here: around the dataset's own γ, and for ``auto`` of what can be had here."""
    gamma, backbone = laboratory.dataset.gamma, laboratory.architecture.backbone

    def space(method: str) -> Space:
        if not Method.of(method).auto:
            return method_space(method, gamma, backbone)
        scores = laboratory.available_scores(automatic.worth_drawing())
        options = laboratory.available_options(method)
        return method_space(method, gamma, backbone, scores=scores, options=options)

    return space


def _trained(laboratory: Laboratory, plan: Plan, storage: Storage, report: Report) -> Tournament:
    dataset, architecture = laboratory.dataset, laboratory.architecture
    first = laboratory.choose_splits or 1

    def kept_share(trial: Trial) -> float:
        return laboratory.kept_share(laboratory.within_reach(trial))

    space: Spaces = plan.space or space_of(laboratory)
    budget = None
    if plan.keep_ratio is not None:
        budget = budget_for(with_references(plan.methods), plan.keep_ratio, space, least_of(laboratory))
        space = budget.space
    return fair(
        laboratory.train_reached,
        space,
        plan.methods,
        plan.trials,
        plan.seed,
        storage,
        kept_share,
        choose_splits=laboratory.num_choosing,
        judge_splits=range(first, first + plan.seeds),
        name=study_name(dataset.name, architecture.backbone, architecture.layers, laboratory.laplacian),
        settings=laboratory.settings,
        batch=1 if _one_by_one(laboratory, plan.methods) else min(LARGEST_BATCH, laboratory.fitting()),
        budget=budget,
        budget_step=plan.budget_step,
        finals=plan.finals,
        curves=plan.curves,
        report=report,
    )


def least_of(laboratory: Laboratory) -> Callable[[Trial], float]:
    """The least share of the edges that the method of a trial can keep with its settings, computed once for each."""
    known: dict[tuple[object, ...], float] = {}

    def least(trial: Trial) -> float:
        key = (trial.method, trial.gamma, trial.sensitivity)
        if key not in known:
            score = Method.of(trial.method).score
            scores = {} if score is None else {score: laboratory.scores(score)}
            settings = {"gamma": trial.gamma, "sensitivity": trial.sensitivity}
            known[key] = least_share(laboratory.dataset.graph, trial.method, scores, **settings)
        return known[key]

    return least


def _one_by_one(laboratory: Laboratory, methods: Sequence[str]) -> bool:
    """Whether a method trains a user's own module: then every training is written when it is finished."""
    return any(laboratory.architecture.network(method)[1].opaque for method in with_references(methods))


def _judged(
    laboratory: Laboratory, found: Tournament, searches: Mapping[str, Array], selected: Mapping[str, Selection]
) -> tuple[dict[str, dict[str, Against]], Simulated]:
    """Every method against its references, as one family, held to the level at which the procedure keeps 5 %."""
    scores = {name: tuned.scores for name, tuned in found.tuned.items()}
    pairs = [(method, name) for method, kinds in found.against.items() for name in kinds.values()]
    procedure = simulated(searches, scores, pairs, nodes=laboratory.dataset.split.sizes[1])
    return judged_together(scores, found.against, selected, procedure.level), procedure


def _protocol(laboratory: Laboratory, plan: Plan, procedure: Simulated) -> Protocol:
    return Protocol(
        trials=plan.trials,
        choose_splits=laboratory.num_choosing,
        seeds=plan.seeds,
        judge_splits=min(plan.seeds, laboratory.num_judging or plan.seeds),
        epochs=laboratory.epochs,
        shared=laboratory.shared.words,
        disjoint=laboratory.shared.what == "nothing",
        simulated=procedure,
        keep_ratio=plan.keep_ratio,
    )


def make_rows(laboratory: Laboratory, table: Table, fresh: Replicates, judged: Mapping[str, Honest]) -> list[MethodRow]:
    """The two protocols of the paper's tables side by side, method by method; the replicates were ``judged`` before."""
    best = paper(table)
    return [
        _row(
            laboratory,
            method,
            _settings(laboratory, fresh.chosen[method].trial, fresh.kept_share.get(method)),
            paper_protocol=PaperProtocol(best[method].test_accuracy, len(trials)),
            honest=judged[method],
            convergence=_convergence(fresh.runs[method]),
        )
        for method, trials in table.items()
    ]


def _row(laboratory: Laboratory, method: str, settings: Mapping[str, object], **members: object) -> MethodRow:
    """A row of a method with the settings that were chosen for it."""
    return MethodRow(
        dataset=laboratory.dataset.name,
        backbone=laboratory.architecture.backbone,
        layers=laboratory.architecture.layers,
        method=method,
        laplacian=laboratory.laplacian,
        settings=settings,
        **members,  # type: ignore[arg-type]
    )


def _fair_row(laboratory: Laboratory, found: Tournament, method: str, tests: Mapping[str, Against]) -> MethodRow:
    """A row of the fair protocol: the method's own score, and its tests with the settings of each reference."""
    mine = found.tuned[method]
    scores = {method: mine.scores}
    against = {
        kind: replace(
            test,
            settings=tuned_settings(laboratory, found.tuned[test.reference]),
            unconverged=_unconverged(laboratory, found.tuned[test.reference]),
        )
        for kind, test in tests.items()
    }
    best = min(mine.searched[0], key=lambda row: (row.failed, -row.test_score))
    return _row(
        laboratory,
        method,
        tuned_settings(laboratory, mine),
        paper_protocol=PaperProtocol(best.test_score, len(mine.searched[0])),
        honest=honest_rows(scores, {})[method],
        against=against,
        evidence=gathered(scores, {}).get(method),
        measure=laboratory.measure,
        trial=mine.chosen.index,
        unconverged=_unconverged(laboratory, mine),
        convergence=_convergence(mine.runs),
    )


def tuned_settings(laboratory: Laboratory, tuned: Tuned) -> dict[str, object]:
    """The settings that were chosen, without those that change nothing; of ``auto`` also the method that it chose."""
    trial = tuned.chosen.trial
    method = Method.of(trial.method)
    rule = None if method.strategy is None else STRATEGIES[method.strategy]
    idle = {"gamma": rule is None or not wants_gamma(rule), "keep_prob": trial.keep_ratio is not None}
    uniform = trial.keep_prob if method.strategy is not None and not method.adaptive else None
    chosen = _settings(laboratory, trial, uniform if tuned.kept_share is None else tuned.kept_share)
    named = {"method": trial.method} if Method.of(tuned.entrant.method).auto else {}
    return named | {name: value for name, value in chosen.items() if not idle.get(name)}


def _settings(laboratory: Laboratory, trial: Trial, kept_share: float | None) -> dict[str, object]:
    chosen = trial.flat() | laboratory.architecture.settings_of(trial)
    if Method.of(trial.method).strategy is None:
        chosen = {name: value for name, value in chosen.items() if name not in ("keep_prob", "keep_ratio", "gamma")}
    if not laboratory.architecture.network(trial.method)[1].noisy:
        del chosen["dropout"]
    return chosen if kept_share is None else {**chosen, "kept_share": kept_share}


def _unconverged(laboratory: Laboratory, tuned: Tuned) -> int:
    """How many runs had the lowest validation loss at the very end."""
    return sum(not run.failed and not run.converged(laboratory.epochs) for run in tuned.runs)


def _convergence(runs: Sequence[Finished]) -> Convergence | None:
    """The losses of the first fresh run that has them."""
    curves = next((run.curves for run in runs if run.curves is not None), None)
    if curves is None:
        return None
    epochs = [int(epoch) for epoch in curves["epoch"]]
    return Convergence(epochs, list(curves["train_loss"]), list(curves["val_loss"]))
