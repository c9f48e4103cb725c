"""The nested protocol: what is drawn, what is chosen, and what stops it."""

from dataclasses import replace

import numpy as np
import pytest
from search.made import Made, candidates, experiment, made, plain

from tadropedge import TadropedgeError
from tadropedge.lab import Search, best_of
from tadropedge.lab.search.protocol import default_rungs, fixed, nested, trials_of, widest
from tadropedge.lab.statistics import Replicate

RUNGS = {"training": {"rungs": (1, 3)}}


def names_of(found):
    return {name: len(rows) for name, rows in found.items()}


# -- what is drawn -----------------------------------------------------------------------------------------


def test_a_trial_depends_on_seed_replicate_and_number_alone():
    (cdf,) = candidates("cdf")
    of = experiment()
    few, many = (trials_of(cdf, of, Search(trials=count), 3) for count in (4, 9))
    assert few == many[:4]
    assert trials_of(cdf, of, Search(trials=4), 2) != few
    assert trials_of(cdf, of, Search(trials=4, seed=1), 3) != few
    assert [trial.split for trial in few] == [trial.replicate for trial in few] == [3] * 4
    assert len({trial.seed for trial in many}) == 9


def test_a_parameter_more_or_narrower_leaves_the_others_as_they_were():
    (cdf,) = candidates("cdf")
    plain_, other = (
        trials_of(cdf, experiment(), Search(space=space), 0) for space in ({}, {"dropout": [0.1], "gamma": [0.5]})
    )
    assert [one.learning_rate for one in plain_] == [one.learning_rate for one in other]
    assert [one.candidate.dropping.keep_prob for one in plain_] == [one.candidate.dropping.keep_prob for one in other]
    assert {one.dropout for one in other} == {0.1}


def test_candidates_are_paired():
    every = candidates("original", "dropedge", "cdf", "degree-proportional:weighted", "mlp", "auto")
    drawn = [trials_of(one, experiment(), Search(trials=6), 1)[:3] for one in every]
    for same in zip(*drawn, strict=True):
        assert len({(one.seed, one.split, one.learning_rate, one.weight_decay, one.dropout) for one in same}) == 1
    dropedge, cdf, degree = ([one.candidate.dropping for one in drawn[place]] for place in (1, 2, 3))
    assert [one.keep_ratio for one in dropedge] == [one.keep_prob for one in cdf] == [one.keep_ratio for one in degree]


def test_what_the_experiment_fixes_is_not_searched_unless_the_search_names_it():
    (original,) = candidates("original")
    assert "residual" not in {name for one in trials_of(original, experiment(), Search(), 0) for name in one.settings}
    of = experiment(settings={"normalization": "random-walk"})
    assert all("normalization" not in one.settings for one in trials_of(original, of, Search(), 0))
    search = Search(space={"normalization": ["random-walk", "symmetric"]})
    assert {one.settings["normalization"] for one in trials_of(original, of, search, 0)} == {"random-walk", "symmetric"}


def test_with_rungs_a_trial_is_another_one_among_others():
    (dropedge,) = candidates("dropedge")
    for settings, same in (({}, True), (RUNGS, False)):
        of = experiment(**settings)
        few, many = ([of.key(one) for one in trials_of(dropedge, of, Search(trials=n), 0)] for n in (4, 8))
        assert (few == many[:4]) == same


def test_default_rungs_save_half_of_the_epochs():
    first, second = default_rungs(400)
    assert 16 * first + 8 * (second - first) + 4 * (400 - second) < 16 * 400 / 2


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: nested([], experiment(), Search()), "no candidates"),
        (lambda: nested(candidates("cdf"), experiment(), Search(space={"droput": [0.1]})), "droput"),
        (lambda: nested(candidates("cdf"), experiment(), Search(half_width=0.01)), "original"),
        (lambda: nested(candidates("mlp+cdf"), experiment(), Search()), "mlp"),
        (lambda: Search(trials=0), "trials"),
        (lambda: Search(space={"dropout": []}), "dropout"),
        (lambda: Search(time_budget=-1), "time_budget"),
    ],
)
def test_what_cannot_be_searched_is_refused_before_any_work(wrong, said):
    with pytest.raises(TadropedgeError, match=said):
        wrong()


# -- what is chosen ----------------------------------------------------------------------------------------


def scripted(search, table):
    """Outcomes by the number of a trial: validation, test and, if there is a third, the loss."""
    numbers = {search.seed_of(replicate, number): number for replicate in range(9) for number in range(search.trials)}
    return lambda trial: made(trial, *table[numbers[trial.seed]])


def test_validation_chooses_and_test_judges():
    search = Search(trials=4, replicates=2)
    outcomes = scripted(search, [(0.5, 0.9), (0.7, 0.1), (0.6, 0.8), (0.7, 0.99)])  # of equal ones the first
    found = nested(candidates("original", "cdf"), experiment(), search, executor=Made(outcomes))
    for rows in found.values():
        assert [(one.number, one.validation, one.test) for one in rows] == [
            (number, pytest.approx(0.7), pytest.approx(0.1)) for number in range(2)
        ]
    assert [one.chosen.seed for one in found["cdf"]] == [search.seed_of(number, 1) for number in range(2)]
    assert found["cdf"][0].kept_share == 0.25


def test_where_the_loss_decides_the_lowest_is_chosen():
    search = Search(trials=3, replicates=1)
    outcomes = scripted(search, [(0.9, 0.1, 0.5), (0.1, 0.3, 0.2), (0.1, 0.2, 0.4)])
    of = experiment(training={"keep": "loss"})
    (row,) = nested(candidates("cdf"), of, search, executor=Made(outcomes))["cdf"]
    assert row.test == pytest.approx(0.3)


def test_a_trial_that_failed_is_never_chosen():
    search = Search(trials=3, replicates=1)
    outcomes = scripted(search, [(0.9, 0.9, 1.0, True), (0.1, 0.3), (0.9, 0.9, 1.0, True)])
    (row,) = nested(candidates("cdf"), experiment(), search, executor=Made(outcomes))["cdf"]
    assert row.test == pytest.approx(0.3)
    with pytest.raises(TadropedgeError, match="finite"):
        nested(candidates("cdf"), experiment(), search, executor=Made(lambda trial: made(trial, failed=True)))


def test_a_search_that_collapses_later_counts_as_one():
    executor = Made(lambda trial: made(trial, failed=trial.replicate == 2))
    found = nested(candidates("cdf", "auto"), experiment(), Search(trials=3, replicates=4), executor=executor)
    for rows in found.values():
        assert [one.test for one in rows] == [0.5, 0.5, 0.0, 0.5]


def test_best_of_takes_the_best_test_score():
    search = Search(trials=3)
    outcomes = scripted(search, [(0.9, 0.1), (0.1, 0.8), (0.5, 0.8)])
    best = best_of(*candidates("cdf"), experiment(), search, executor=Made(outcomes))
    assert (best.test_score, best.trial.seed) == (pytest.approx(0.8), search.seed_of(0, 1))


def test_auto_tunes_the_network_and_then_drops_with_the_best_settings():
    search, executor = Search(trials=8, replicates=1), Made()
    best = search.seed_of(0, 2)
    executor.outcome = lambda trial: made(trial, 0.9 if trial.seed == best else 0.5)
    (row,) = nested(candidates("auto"), experiment(), search, executor=executor)["auto"]
    first, second = executor.trained[:4], executor.trained[4:]
    assert {str(one.candidate) for one in first} == {"original"}
    assert row.chosen.seed == best
    assert len(second) == 4
    assert all(one.candidate.dropping.rule is not None for one in second)
    for one in second:
        same = ("learning_rate", "weight_decay", "dropout", "split", "replicate")
        assert [getattr(one, name) for name in same] == [getattr(row.chosen, name) for name in same]
        more = {"draws", "consistency_weight", "temperature", "balance"} if one.candidate.ways else set()
        assert set(one.settings) == {*row.chosen.settings, *more}
        assert {name: one.settings[name] for name in row.chosen.settings} == row.chosen.settings
    executor.outcome = lambda trial: made(trial, 0.9 if trial.candidate.dropping.use == "weighted" else 0.5)
    (row,) = nested(candidates("auto"), experiment(), search, executor=executor)["auto"]
    assert row.chosen.candidate.dropping.use == "weighted"


@pytest.mark.parametrize(
    ("dropped", "simple", "taken"),
    [(0.509, 0.5, "original"), (0.51, 0.5, "degree-proportional:consistent"), (0.6, 0.6, "degree-proportional")],
)
def test_auto_leaves_not_dropping_for_a_point_and_then_for_the_simpler(dropped, simple, taken):
    scores = {"degree-proportional:consistent": dropped, "degree-proportional": simple}

    def outcome(trial):
        return made(trial, scores.get(str(trial.free), 0.5))

    found = nested(candidates("auto"), experiment(), Search(trials=16, replicates=1), executor=Made(outcome))
    assert str(found["auto"][0].chosen.free) == taken


def test_one_fixed_split_is_tuned_once_and_trained_from_many_starts():
    search, executor = Search(trials=4, replicates=6), Made()
    wanted = search.seed_of(0, 2)
    executor.outcome = lambda trial: made(trial, 0.9 if trial.seed == wanted else 0.5)
    of = experiment(**RUNGS)
    found = fixed(candidates("original", "cdf"), of, search, executor=executor)
    assert len(executor.trained) == 2 * (4 + 6)
    for name, rows in found.items():
        tuned = trials_of(*candidates(name), of, search, 0)[2]
        assert {(one.chosen.learning_rate, str(one.chosen.candidate)) for one in rows} == {
            (tuned.learning_rate, str(tuned.candidate))
        }
        assert {one.chosen.split for one in rows} == {0}
        assert len({one.chosen.search for one in rows}) == 6  # no rung compares two starts
    executor.outcome = lambda trial: made(trial, failed=trial.group.endswith("start"))
    assert {one.test for one in fixed(candidates("cdf"), of, search, executor=executor)["cdf"]} == {0.0}
    starts = [[one.chosen.seed for one in rows] for rows in found.values()]
    assert starts[0] == starts[1]
    assert len(set(starts[0])) == 6


# -- what stops it -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 4])
def test_a_time_limit_leaves_whole_replicates(workers):
    names, search = candidates("original", "dropedge", "cdf"), Search(trials=2, replicates=40, time_budget=0.0)
    executor = Made(workers=workers)
    found = nested(names, experiment(), search, executor=executor)
    done = set(names_of(found).values())
    assert done == {2} if workers == 1 else len(done) == 1
    assert len(executor.trained) == 3 * 2 * done.pop()
    assert names_of(fixed(names, experiment(), search, executor=Made())) == {"original": 2, "dropedge": 2, "cdf": 2}
    generous = replace(search, time_budget=1e9, replicates=3)
    assert set(names_of(nested(names, experiment(), generous, executor=Made())).values()) == {3}


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_a_width_stops_at_the_same_replicate_however_many_train_at_once(workers):
    noise = np.random.default_rng(0).normal(0.0, 0.01, (2, 40))

    def outcome(trial):
        name = str(trial.candidate)
        if name == "mlp":
            return made(trial, test=float(trial.replicate))  # no width waits for a yardstick
        return made(trial, test=0.5 + float(noise[int(name != "original"), trial.replicate]))

    every, (mlp,) = candidates("original", "dropedge"), candidates("mlp")
    search = Search(trials=1, replicates=40, half_width=0.008)
    executor = Made(outcome, workers)
    found = nested(every, experiment(), search, executor=executor, yardsticks=[mlp])
    (count,) = set(names_of(found).values())
    scores = {name: found[name] for name in ("original", "dropedge")}
    assert 5 < count < 40
    assert widest(scores, "original") <= 0.008
    assert widest({name: some[:-1] for name, some in scores.items()}, "original") > 0.008
    equal = nested(every, experiment(), search, executor=Made(workers=workers))
    assert set(names_of(equal).values()) == {5}  # of fewer the spread is hardly known


def test_the_number_of_workers_changes_nothing():
    every, search = candidates("original", "auto", "cdf"), Search(trials=4, replicates=7)
    draw = lambda trial: made(trial, *np.random.default_rng(trial.seed).random(2))  # noqa: E731
    one, many = (nested(every, experiment(), search, executor=Made(draw, workers)) for workers in (1, 5))
    assert plain(one) == plain(many)


def test_widths_of_data_with_few_splits_average_replicates_of_one_split():
    def found(*tests):
        numbered = [
            Replicate(number=number, chosen=None, validation=0.0, test=test) for number, test in enumerate(tests)
        ]
        return {"original": [replace(one, test=0.0) for one in numbered], "cdf": numbered}

    assert widest(found(0.1, 0.2, 0.3), "original") == pytest.approx(4.3027 * 0.1 / 3**0.5, abs=1e-4)
    assert widest(found(0.1, 0.2, 0.3, 0.6), "original", 2) == pytest.approx(widest(found(0.2, 0.4), "original"))


def test_a_second_round_has_the_replicates_of_the_first():
    search, executor = Search(trials=2, replicates=3), Made()
    first = nested(candidates("original"), experiment(), search, executor=executor)
    second = nested(candidates("dropedge@0.4", "cdf:pruned"), experiment(), search, executor=executor)
    splits = [[(one.number, one.chosen.split) for one in rows] for rows in (*first.values(), *second.values())]
    assert splits == [[(0, 0), (1, 1), (2, 2)]] * 3
