"""auto: its trials are pure functions, its studies hold what was drawn, and its references follow what it chose."""

from collections import Counter
from dataclasses import replace

import optuna
import pytest
from fake_trainer import SEARCH, Trainer, kept_share

from tadropedge import SCORES, TadropedgeError
from tadropedge.method import Method
from tadropedge.registry import STRATEGIES
from tadropedge.search import automatic
from tadropedge.search.engine import run_search
from tadropedge.search.fair import fair
from tadropedge.search.protocol import choose, honest
from tadropedge.search.space import Space, method_space, settled_space, trial
from tadropedge.training.config import Trial

CHEAP = ("degree", "jaccard", "aggregate")
AUTO = method_space("auto", 0.01, scores=CHEAP)
LITERAL = [
    "dropedge", "jaccard-proportional:expected", "original", "jaccard-proportional:expected", "dropsens:expected",
    "original", "original", "dropsens:expected", "degree-proportional", "degree-proportional:expected",
]  # fmt: skip
NAMES = {"name": "fake/gcn-2", "settings": {"epochs": 5}}


def space(method):
    return method_space(method, 0.01, scores=CHEAP if Method.of(method).auto else None)


def shares(one):
    """A share that depends on the budget, whatever it is called."""
    return kept_share(one) if one.keep_ratio is None else one.keep_ratio


def test_the_trials_of_a_seed_are_part_of_the_interface():
    """A study is found again only if the same numbers draw the same methods."""
    assert [trial(AUTO, 3, i, "auto").method for i in range(10)] == LITERAL
    sage = [trial(method_space("graphsage+auto"), 3, i, "graphsage+auto").method for i in range(200)]
    assert {Method.of(name).network for name in sage} == {"graphsage"}
    assert not any("unbiased" in name for name in sage)  # it sees no weights of edges


def test_every_method_shares_the_settings_of_the_network_and_the_budget():
    plain = method_space("cdf", 0.01)
    for i in range(60):
        auto, cdf = trial(AUTO, 0, i, "auto"), trial(plain, 0, i, "cdf")
        assert (auto.seed, auto.settings, auto.learning_rate) == (cdf.seed, cdf.settings, cdf.learning_rate)
        used = automatic.used(Method.of(auto.method))
        if "keep_ratio" in used:
            assert (auto.keep_ratio, auto.keep_prob) == (cdf.keep_prob, Trial().keep_prob)
        elif "keep_prob" in used:
            assert (auto.keep_ratio, auto.keep_prob) == (None, cdf.keep_prob)
        assert (auto.sensitivity is not None) == ("dropsens" in auto.method)
        assert (auto.keep_last is not None) == ("nested" in auto.method)


def test_proportional_methods_tune_the_kept_share():
    for name in ("degree-proportional", "inverse-jaccard-proportional:connected", "graphsage+effective-proportional"):
        for i in range(20):
            one, other = (trial(method_space(m), 5, i, m) for m in (name, Method.of(name).reference))
            assert one.keep_ratio == other.keep_prob
    assert "keep_ratio" not in method_space("graphsage+cdf").parameters
    assert method_space("dropsens").table()["sensitivity"] == [0.5, 0.8, 0.9, 0.95]
    assert method_space("cdf:nested").table()["keep_last"] == {"uniform": [0.05, 0.95], "step": 0.05}


def test_what_is_drawn_is_told_again():
    for i in range(300):
        settings = AUTO.draw(1, i)
        method, left = automatic.drawn("auto", settings)
        told = automatic.told(Trial.of(method, **left))
        assert told.items() <= {**Trial().flat(), **settings}.items()
        assert automatic.drawn("auto", told)[0] == method


def shares_of(values):
    """The share of each value among all of them."""
    counted = Counter(values)
    return {value: count / counted.total() for value, count in counted.items()}


def test_the_distribution_of_two_thousand_trials():
    """Scores of likeness, the rule proportional and the option expected are drawn twice as often as the others."""
    full = method_space("auto", 0.01)
    trials = [trial(full, 0, i, "auto") for i in range(2000)]
    drawn = [Method.of(one.method) for one in trials]
    kinds = shares_of(one.score or one.strategy or "none" for one in drawn)
    once, twice = ("uniform", "dropsens", "effective", "degree"), ("jaccard", "common-neighbours", "cosine")
    wanted = {"none": 3 / 13, **dict.fromkeys(once, 1 / 13), **dict.fromkeys(twice, 2 / 13)}
    assert kinds == pytest.approx(wanted, abs=0.038)  # four standard errors
    scored = [one for one in drawn if one.score]
    assert shares_of(one.strategy for one in scored) == pytest.approx({"cdf": 1 / 3, "proportional": 2 / 3}, abs=0.065)
    assert not any(one.inverse for one in drawn)
    dropping = [one for one in drawn if one.strategy]
    options = {(): 1 / 4, ("unbiased",): 1 / 4, ("expected",): 1 / 2}
    assert shares_of(one.options for one in dropping) == pytest.approx(options, abs=0.05)
    ratios = {one.keep_ratio for one in trials} - {None}
    assert (min(ratios), max(ratios), len(ratios)) == (0.05, 0.95, 19)


def test_your_own_scores_and_rules_are_drawn(monkeypatch):
    monkeypatch.setitem(SCORES, "mine", lambda graph: graph.pairs.sum(0))
    monkeypatch.setitem(STRATEGIES, "steep", lambda scores, keep_ratio: scores)
    made = automatic.choices(["aggregate", "mine", "column"])
    assert made["score"] == ["none", "none", "uniform", "dropsens", "mine", "column", "column"]
    assert made["rule"] == ["cdf", "proportional", "proportional", "steep"]
    assert {"mine", "column"} < set(automatic.worth_drawing())


def test_what_never_won_is_drawn_where_there_is_nothing_else():
    assert automatic.choices(["aggregate", "forman"])["score"] == ["none", "uniform", "dropsens", "aggregate", "forman"]
    assert automatic.choices([], [])["score"] == ["none", "uniform", "dropsens"]
    assert automatic.choices(["degree"], ["connected", "exact"])["option"] == ["none"]
    assert automatic.choices(["degree"], ["exact", "unbiased"])["option"] == ["none", "unbiased"]
    assert method_space("gat+auto").table()["option"] == ["none", "unbiased"]  # it weighs in training alone


def test_a_space_that_names_its_choices_draws_all_of_them():
    """Scores, rules, options and inverses that are not drawn by default are to be had by name."""
    table = {"score": ["aggregate"], "rule": ["cutoff"], "inverse": [True], "option": ["nested"], "keep_last": [0.5]}
    named = Space.of({**method_space("auto").table(), **table})
    assert {trial(named, 0, i, "auto").method for i in range(9)} == {"inverse-cutoff:nested"}


def test_a_study_holds_what_was_drawn_and_is_resumed(tmp_path):
    path = tmp_path / "study.db"
    first = Trainer()
    run_search(first, space, ["auto", "cdf"], 4, 3, path, **NAMES)
    rest = Trainer()
    table = run_search(rest, space, ["auto", "cdf"], 12, 3, path, **NAMES)
    assert (len(first.trials), len(rest.trials)) == (8, 16)
    again = Trainer()
    assert repr(run_search(again, space, ["auto", "cdf"], 12, 3, path, **NAMES)) == repr(table)  # NaN is not NaN
    assert again.trials == []
    whole = run_search(Trainer(), space, ["auto", "cdf"], 12, 3, tmp_path / "other.db", **NAMES)
    assert repr(whole) == repr(table)
    assert [row.trial.method for row in table["auto"]][:10] == LITERAL
    study = optuna.load_study(study_name="fake/gcn-2/search/auto@3", storage=f"sqlite:///{path}")
    for stored in study.get_trials():
        row = next(one for one in table["auto"] if one.index == stored.user_attrs["index"])
        used = automatic.used(Method.of(row.trial.method))
        idle = {*automatic.NAMES, *automatic.TUNED} - used
        assert set(stored.params) == set(AUTO.parameters) - idle
        assert "keep_ratio" not in stored.user_attrs


def test_other_choices_are_another_study(tmp_path):
    run_search(Trainer(), space, ["auto"], 2, 3, tmp_path / "study.db", **NAMES)
    with pytest.raises(TadropedgeError, match=r"was made with space.score=\['none', .*; take the old setting"):
        run_search(Trainer(), method_space("auto", 0.01), ["auto"], 2, 3, tmp_path / "study.db", **NAMES)


def test_a_study_of_other_draws_stays_beside_the_new_one(tmp_path, monkeypatch):
    """What was searched when the same words drew other methods is neither resumed nor in the way."""
    path, one = tmp_path / "study.db", {"score": ["none", "aggregate"], "rule": ["cutoff"]}
    older = Space.of({**AUTO.table(), **one})
    monkeypatch.setattr(automatic, "DRAWS", 1)
    first = run_search(Trainer(), older, ["auto"], 5, 3, path, **NAMES)
    monkeypatch.undo()
    run_search(Trainer(), space, ["auto"], 5, 3, path, **NAMES)
    assert {name.rpartition("/")[2] for name in optuna.get_all_study_names(f"sqlite:///{path}")} == {"auto@1", "auto@3"}
    monkeypatch.setattr(automatic, "DRAWS", 1)
    again = Trainer()
    assert repr(run_search(again, older, ["auto"], 5, 3, path, **NAMES)) == repr(first)
    assert again.trials == []


def test_other_code_of_a_score_among_the_choices_is_noticed(tmp_path, monkeypatch):
    mine = partial_space("mine")
    monkeypatch.setitem(SCORES, "mine", lambda graph: graph.pairs.sum(0))
    run_search(Trainer(), mine, ["auto"], 2, 3, tmp_path / "study.db", **NAMES)
    run_search(Trainer(), mine, ["auto"], 2, 3, tmp_path / "study.db", **NAMES)
    monkeypatch.setitem(SCORES, "mine", lambda graph: graph.pairs.sum(0) + 1)
    with pytest.raises(TadropedgeError, match="was made with other code of 'mine'"):
        run_search(Trainer(), mine, ["auto"], 2, 3, tmp_path / "study.db", **NAMES)


def partial_space(*scores):
    return lambda method: method_space(method, scores=(*CHEAP, *scores))


def test_a_space_without_choices_gets_all_of_them():
    storage = optuna.storages.InMemoryStorage()
    table = run_search(Trainer(), Space.of({"dropout": [0.3, 0.5]}), ["auto"], 30, 0, storage)
    drawn = {Method.of(row.trial.method).score for row in table["auto"]}
    assert drawn == {None, "effective", "degree", "jaccard", "common-neighbours", "cosine"}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"score": ["degre"]}, "unknown score of a search space 'degre'.*did you mean 'degree'"),
        ({"rule": ["uniform"]}, "unknown rule of a search space 'uniform'"),
        ({"option": ["unbiased", 3]}, "option of a search space must be a name, got 3"),
        ({"inverse": ["yes"]}, "inverse of a search space must be true or false, got 'yes'"),
        ({"keep_ratio": [1.5]}, "keep_ratio must lie in"),
        ({"sensitivity": {"uniform": [0, 2]}}, "sensitivity must lie in"),
    ],
)
def test_bad_choices(table, message):
    with pytest.raises(TadropedgeError, match=message):
        Space.of(table)


def test_choices_belong_to_auto():
    with pytest.raises(TadropedgeError, match="score of a search space is a setting of auto, and 'cdf' has none"):
        trial(AUTO, 0, 0, "cdf")


def run(train=None, storage=None, methods=("auto",), **changes):
    options = {"choose_splits": 2, "judge_splits": [2, 3, 4], "batch": 7, "trials": 12, "seed": 3} | NAMES | changes
    place = optuna.storages.InMemoryStorage() if storage is None else storage
    return fair(train or Trainer(), space, methods, storage=place, kept_share=shares, **options)


@pytest.mark.parametrize("seed", range(6))
def test_references_follow_what_it_chose(seed):
    found = run(seed=seed)
    chosen = Method.of(found.tuned["auto"].chosen.trial.method)
    kinds = ("none", "dropedge", "budget") if chosen.adaptive else ("none", "dropedge")
    assert tuple(found.against["auto"]) == kinds
    assert {len(one.searched[0]) for one in found.tuned.values()} == {12}  # as many trials as every other method
    assert all(row.trial.method == chosen.name for row in found.tuned["auto"].runs)
    if chosen.adaptive:
        budget = found.tuned[found.against["auto"]["budget"]]
        assert budget.chosen.trial.keep_ratio == found.tuned["auto"].kept_share
    else:
        assert found.tuned["auto"].kept_share is None


def test_judged_runs_are_those_of_the_chosen_method_and_resumed(tmp_path):
    path = tmp_path / "study.db"
    found = run(storage=path)
    again = Trainer()
    assert repr(run(again, path).tuned["auto"].runs) == repr(found.tuned["auto"].runs)
    assert again.trials == []
    chosen = found.tuned["auto"].chosen
    name = f"fake/gcn-2/judged/search/auto@3/trial-{chosen.index}"
    study = optuna.load_study(study_name=name, storage=f"sqlite:///{path}")
    assert study.user_attrs["settings"]["method"] == chosen.trial.method
    assert set(study.get_trials()[0].params) == set(settled_space(AUTO, chosen.trial).parameters)


def test_the_honest_protocol_has_references_for_kept_shares():
    storage, methods = optuna.storages.InMemoryStorage(), ("auto", "degree-proportional", "dropsens:nested", "cdf")
    table = run_search(Trainer(), space, methods, 12, 3, storage, **NAMES)
    made = honest(Trainer(), table, space, 3, 3, storage, lambda one: round(shares(one) * 0.9 + 0.0123, 6), **NAMES)
    assert [row.trial.method for row in made.runs["auto"]] == [choose(table)["auto"].trial.method] * 3
    for method, share in made.kept_share.items():
        assert {row.trial.keep_ratio for row in made.reference_runs[method]} == {share}
        assert {row.trial.method for row in made.reference_runs[method]} == {"dropedge"}


def test_old_trials_stay_what_they_were():
    """Spaces of methods that version 0.1 knew have neither new parameters nor another order."""
    names = ["learning_rate", "weight_decay", "dropout", "keep_prob", "normalization", "self_weight", "batch_norm"]
    for method in ("original", "dropedge", "cdf", "inverse-effective-cutoff"):
        assert list(method_space(method).parameters) == names
        assert list(method_space(method, 0.01).parameters) == [*names, "gamma"]
    assert SEARCH["space"].draw(3, 5) == method_space("cdf", 0.01).draw(3, 5)
    assert replace(trial(SEARCH["space"], 3, 5, "cdf"), method="dropedge") == trial(SEARCH["space"], 3, 5, "dropedge")
