"""A fixed budget: every method that drops keeps the same share, and what cannot is not trained."""

import optuna
import pytest
from fake_trainer import SEARCH, Trainer
from graphs import ZOO

from tadropedge import TadropedgeError, edge_scores
from tadropedge.method import Method
from tadropedge.search.budget import Budget, budget_for, check_budget, drops, narrowed
from tadropedge.search.entrants import Entrant, budgets, easier
from tadropedge.search.fair import count_trainings, fair
from tadropedge.search.space import Choice, LogUniform, Space, Uniform, method_space
from tadropedge.training.config import Trial
from tadropedge.training.edges import keep_rows
from tadropedge.training.reach import least_share

K, S, TRIALS = 2, 3, 6
GRAPH = ZOO["karate"]
SCORES = {name: edge_scores(GRAPH, name) for name in ("degree", "jaccard", "effective")}
SCORES["aggregate"] = edge_scores(GRAPH, "aggregate", q=4)
METHODS = ("cdf", "degree-proportional", "dropedge:connected", "dropsens", "degree-proportional:nested", "auto")


def least(trial):
    settings = {"gamma": trial.gamma, "sensitivity": trial.sensitivity}
    return least_share(GRAPH, trial.method, SCORES, **settings)


def share_of(trial):
    """The mean over three layers of what a trial keeps."""
    return float(keep_rows(GRAPH, trial, SCORES, 3).mean(dim=1).mean())


def spaces(method):
    return method_space(method, scores=[*SCORES])


def run(keep_ratio, methods=METHODS, storage=None, train=None, **changes):
    options = {"trials": TRIALS, "choose_splits": K, "judge_splits": range(K, K + S), "batch": 50, **SEARCH}
    budget = None if keep_ratio is None else budget_for(("original", "dropedge", *methods), keep_ratio, spaces, least)
    options |= {"space": spaces if budget is None else budget.space, "budget": budget, "kept_share": share_of}
    place = optuna.storages.InMemoryStorage() if storage is None else storage
    return fair(train or Trainer(), methods=methods, storage=place, **{**options, **changes})


@pytest.mark.parametrize("share", [0.2, 0.45, 0.7, 1.0])
def test_every_trial_keeps_the_share(share):
    found = run(share)
    out = {method: least_share(GRAPH, method, SCORES) for method in ("cdf", "dropedge:connected")}
    out["dropsens"] = least_share(GRAPH, "dropsens", SCORES, sensitivity=0.5)  # the smallest that is tried
    assert found.out_of_reach == {method: bound for method, bound in out.items() if bound > share}
    assert list(found.tuned) == [name for name in ("original", "dropedge", *METHODS) if name not in found.out_of_reach]
    for name, one in found.tuned.items():
        trials = [row.trial for rows in one.searched for row in rows] + [row.trial for row in one.runs]
        kept = {round(share_of(trial), 9) for trial in trials}
        assert kept == ({1.0} if name == "original" else {share})
        assert one.kept_share == (None if name == "original" else share)


def test_the_references_are_not_dropping_and_dropedge_at_this_budget():
    found = run(0.45)
    assert found.against["dropedge"] == {"none": "original"}
    assert found.against["auto"] == {"none": "original", "budget": "dropedge"}
    assert "cdf" not in found.against
    assert count_trainings(METHODS, 5, 4, 3, keep_ratio=0.3) == 8 * (5 * 3 + 4)  # no reference beside the eight


def test_what_drops_nothing_is_trained_once_for_all_budgets():
    storage, first, second = optuna.storages.InMemoryStorage(), Trainer(), Trainer()
    free = run(None, ["degree-proportional", "graphsage+dropedge"], storage, first, kept_share=lambda trial: 0.7)
    fixed = run(0.7, ["degree-proportional", "graphsage+dropedge"], storage, second)
    for name in ("original", "graphsage"):
        assert {repr(one.tuned[name].runs) for one in (free, fixed)} == {repr(fixed.tuned[name].runs)}
        assert not [trial for trial in second.trials if trial.method == name]
    assert not [trial for trial in second.trials if trial.method == "dropedge"]  # matched to the others at 0.7 before
    assert {trial.method for trial in second.trials} == {"degree-proportional", "graphsage+dropedge"}
    again = Trainer()
    assert repr(run(0.7, ["degree-proportional", "graphsage+dropedge"], storage, again).tuned) == repr(fixed.tuned)
    assert not again.trials


def test_auto_draws_only_what_can_keep_the_share():
    drawn = {row.trial.method for rows in run(0.2, ["auto"], trials=60).tuned["auto"].searched for row in rows}
    rules = {Method.of(name).strategy for name in drawn}
    assert rules <= {"uniform", "proportional", "dropsens", "cutoff", "division"}
    assert {"uniform", "proportional"} <= rules
    assert not [name for name in drawn if name.endswith(":connected")]  # a forest has 33 of 78 edges
    assert [name for name in drawn if name.endswith(":unbiased")]
    assert "original" not in drawn
    most = {row.trial.method for rows in run(1.0, ["auto"], trials=60).tuned["auto"].searched for row in rows}
    assert {Method.of(name).strategy for name in most} > rules


def test_a_space_of_auto_that_cannot_keep_the_share_is_refused():
    space = Space.of({"score": ["degree"], "rule": ["cdf"], "dropout": [0.5]})
    with pytest.raises(TadropedgeError, match=r"space of auto has nothing beside degree-cdf that can keep 0\.2"):
        Entrant("auto", 0.2, reaches=lambda trial: least(trial) <= 0.2).trial(space, 0, 0, 0)


def test_rates_of_layers_lie_around_the_budget():
    entrant = Entrant("degree-proportional:nested", 0.3)
    space = entrant.space(spaces)
    assert space.parameters["keep_last"] == Uniform(0.0, 0.6)
    for i in range(20):
        trial = entrant.trial(space, 0, i, 0)
        assert trial.keep_ratio + trial.keep_last == pytest.approx(0.6)
    assert Entrant("cdf:nested", 0.9, least=0.5).space(spaces).parameters["keep_last"] == Uniform(0.8, 1.0)
    assert Entrant("cdf:nested", 0.6, least=0.5).space(spaces).parameters["keep_last"] == Uniform(0.5, 0.7)


def test_spaces_are_narrowed_to_what_can_keep_the_share():
    space = Space.of({"gamma": {"log-uniform": [1e-3, 10.0]}, "dropout": [0.5]})
    for method, rising in (("division", False), ("inverse-division", True), ("degree-cutoff", False)):
        made, lowest = narrowed(space, method, 0.4, least)
        part = made.parameters["gamma"]
        ends = [least(Trial(method, gamma=end)) for end in (1e-3, 10.0)]
        assert lowest == min(ends)
        assert isinstance(part, LogUniform)
        assert (part.low, part.high)[not rising] == (1e-3, 10.0)[not rising]
        assert all(least(Trial(method, gamma=end)) <= 0.4 for end in (part.low, part.high))
        beyond = part.high * 1.02 if rising else part.low / 1.02
        assert least(Trial(method, gamma=beyond)) > 0.4 or method == "degree-cutoff"  # a step
    made, lowest = narrowed(Space.of({"gamma": [1e-3, 0.1, 10.0]}), "division", 0.4, least)
    shares = {gamma: least(Trial("division", gamma=gamma)) for gamma in (1e-3, 0.1, 10.0)}
    assert made.parameters["gamma"] == Choice(tuple(gamma for gamma, bound in shares.items() if bound <= 0.4))
    stepped = narrowed(Space.of({"gamma": {"uniform": [0.0, 1.0], "step": 0.5}}), "degree-cutoff", 0.4, least)[0]
    assert set(stepped.parameters["gamma"].values) <= {0.5, 1.0}
    left = narrowed(Space.of({"sensitivity": [0.5, 0.95]}), "dropsens", 0.5, least)[0]
    assert left == Space.of({"sensitivity": [0.5]})
    assert narrowed(space, "degree-cdf", 0.4, least) == (space, least(Trial("degree-cdf")))


def test_shares_that_are_nearly_equal_have_one_reference():
    exact = budgets({"cdf": 0.812, "cutoff": 0.79, "auto": 0.01})
    assert [one.keep_ratio for one in exact.values()] == [0.812, 0.79, 0.01]
    rounded = budgets({"cdf": 0.812, "cutoff": 0.79, "auto": 0.01, "division": 0.99}, step=0.05)
    assert [one.keep_ratio for one in rounded.values()] == [0.8, 0.8, 0.05, 1.0]
    shares = {"cdf": 0.812, "degree-proportional": 0.79}
    found = run(None, list(shares), kept_share=lambda trial: shares[trial.method], budget_step=0.05)
    assert {found.against[method]["budget"] for method in shares} == {"dropedge at 80 %"}
    assert [found.tuned[method].kept_share for method in shares] == [0.812, 0.79]
    assert found.tuned["dropedge at 80 %"].kept_share == 0.8


def test_another_budget_than_the_fixed_one_is_never_judged():
    with pytest.raises(TadropedgeError, match=r"degree-proportional keeps 0.5 of the edges, not keep_ratio=0.2"):
        run(0.2, ["degree-proportional"], kept_share=lambda trial: 0.5)


def test_what_is_easier_to_keep_and_what_is_no_budget():
    assert easier("inverse-cdf:exact") == [
        *("inverse-cdf:exact", "inverse-cdf", "inverse-proportional:exact", "inverse-proportional")
    ]
    assert easier("dropedge:exact") == ["dropedge:exact", "dropedge"]
    assert [drops(name) for name in ("original", "graphsage", "ptdnet", "auto")] == [False, False, False, True]
    budget = Budget(keep_ratio=0.5, least={"cdf": 0.51}, space=spaces, reaches=lambda trial: True)
    assert budget.entrant("original") == Entrant("original")
    assert budget.out_of_reach == {"cdf": 0.51}
    for wrong in (0, 1.1, "much", float("nan"), True):
        with pytest.raises(TadropedgeError, match="keep_ratio must"):
            check_budget(wrong)
