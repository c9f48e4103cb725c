"""The fair protocol: methods and their three references tuned alike, on splits of their own, and judged on others."""

from dataclasses import replace

import numpy as np
import optuna
import pytest
from fake_trainer import SEARCH, Trainer, kept_share, outcome

from tadropedge import TadropedgeError
from tadropedge.data.choosing import FURTHER
from tadropedge.search.engine import run_search
from tadropedge.search.fair import PHASES, Finals, count_trainings, fair

K, S, TRIALS = 3, 4, 5
METHODS = ("dropedge", "cdf", "effective-cdf")
SPLITS = range(K, K + S)


def run(train=None, storage=None, **changes):
    """A small comparison of two adaptive methods."""
    options = {"methods": METHODS, "trials": TRIALS, "choose_splits": K, "judge_splits": SPLITS, "batch": 7, **SEARCH}
    place = optuna.storages.InMemoryStorage() if storage is None else storage
    return fair(train or Trainer(), storage=place, **{"kept_share": kept_share, **options, **changes})


def told(found):
    """Everything that was found, as one text: equal texts are equal to the last bit."""
    return repr([(name, one.searched, one.chosen, one.kept_share, one.runs) for name, one in found.tuned.items()])


@pytest.fixture(scope="module")
def found():
    return run()


def test_not_dropping_is_tuned_though_nobody_named_it_and_every_method_has_its_references(found):
    budgets = {method: f"dropedge at {100 * found.tuned[method].kept_share:.6g} %" for method in METHODS[1:]}
    assert found.against == {
        "original": {},
        "dropedge": {"none": "original"},
        **{name: {"none": "original", "dropedge": "dropedge", "budget": budget} for name, budget in budgets.items()},
    }
    assert list(found.tuned) == ["original", "dropedge", "cdf", "effective-cdf", *budgets.values()]


def test_all_have_the_same_trials_on_the_same_choosing_splits(found):
    for one in found.tuned.values():
        assert one.searched_scores.shape == (TRIALS, K)
        for split, rows in enumerate(one.searched):
            assert [(row.index, row.trial.split) for row in rows] == [(i, split) for i in range(TRIALS)]
    seeds = {tuple(row.trial.seed for rows in one.searched for row in rows) for one in found.tuned.values()}
    assert len(seeds) == 1  # alike for all entrants
    assert len(set(next(iter(seeds)))) == K * TRIALS  # and each training has its own


def test_the_mean_over_the_choosing_splits_chooses(found):
    for one in found.tuned.values():
        good = {i: row.mean() for i, row in enumerate(one.searched_scores) if not np.isnan(row).any()}
        assert one.chosen.index == max(good, key=good.get)


def test_a_trial_that_failed_on_any_split_is_not_chosen():
    best = run().tuned["cdf"].chosen.index

    def failing(trials):
        return [
            replace(made, failed=made.failed or (one.split == 1 and one.dropout == worst))
            for one, made in zip(trials, map(outcome, trials), strict=True)
        ]

    worst = run().tuned["cdf"].chosen.trial.dropout
    assert run(failing).tuned["cdf"].chosen.index != best
    with pytest.raises(TadropedgeError, match="no trial of 'original' has a finite loss on all of 3 splits"):
        run(lambda trials: [replace(outcome(one), failed=one.split == 2) for one in trials])


def test_dropedge_at_the_same_budget_is_tuned_for_itself(found):
    for method in METHODS[1:]:
        mine = found.tuned[found.against[method]["budget"]]
        share = found.tuned[method].kept_share
        assert share == pytest.approx(kept_share(found.tuned[method].chosen.trial), abs=1e-6)
        trials = [row.trial for row in mine.searched[0]]
        assert {(one.method, one.keep_ratio) for one in trials} == {("dropedge", share)}
        assert len({one.weight_decay for one in trials}) > 1  # everything else is tuned
        others = [row.trial for row in found.tuned["dropedge"].searched[0]]
        assert [one.learning_rate for one in trials] == [one.learning_rate for one in others]


def test_methods_of_one_share_share_their_search():
    train = Trainer()
    found = run(train, kept_share=lambda trial: 0.8)
    assert found.against["cdf"]["budget"] == found.against["effective-cdf"]["budget"] == "dropedge at 80 %"
    assert len(train.trials) == 5 * (TRIALS * K + S)


def test_replicates_are_paired_and_apart_from_the_search(found):
    for s in range(S):
        assert {(one.runs[s].trial.seed, one.runs[s].trial.split) for one in found.tuned.values()} == {
            (found.tuned["cdf"].runs[s].trial.seed, K + s)
        }
    for one in found.tuned.values():
        for row in one.runs:
            assert row.trial == replace(one.chosen.trial, seed=row.trial.seed, split=row.trial.split)
        assert one.scores.tolist() == [row.test_accuracy for row in one.runs]
    searched = {row.trial.seed for one in found.tuned.values() for rows in one.searched for row in rows}
    assert not searched & {row.trial.seed for one in found.tuned.values() for row in one.runs}


@pytest.mark.parametrize("batch", [1, 1000])
def test_alone_and_in_a_batch_it_is_the_same(found, batch):
    assert told(run(batch=batch)) == told(found)


@pytest.mark.parametrize("stop", [1, 40, 61, 80, 100])
def test_interrupted_in_any_phase_it_loses_nothing(found, tmp_path, stop):
    train, again = Trainer(), Trainer()

    def interrupted(trials):
        if len(train.trials) >= stop:
            raise KeyboardInterrupt
        return train(trials)

    with pytest.raises(KeyboardInterrupt):
        run(interrupted, tmp_path / "study.db")
    assert told(run(again, tmp_path / "study.db")) == told(found)
    assert len(train.trials) + len(again.trials) == count_trainings(METHODS, TRIALS, S, K) == 6 * (TRIALS * K + S)


def test_progress_moves_through_every_phase():
    calls = []
    run(report=lambda phase, done, total: calls.append((phase, done, total)))
    for phase, total in zip(PHASES, (4 * TRIALS * K, 2 * TRIALS * K, 6 * S), strict=True):
        done = [(one, of) for name, one, of in calls if name == phase]
        assert done[0] == (0, total)
        assert done[-1] == (total, total)
        assert len(done) > 3


def test_studies_have_names_that_say_what_they_hold():
    run(storage=(storage := optuna.storages.InMemoryStorage()))
    names = set(optuna.get_all_study_names(storage))
    assert {"fake/gcn-2/search/cdf", "fake/gcn-2/search/cdf/split-1", "fake/gcn-2/search/cdf/split-2"} <= names
    kinds = [name.split("/")[2] for name in names]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {"search": 4 * K, "budget": 2 * K, "judged": 6}


def test_the_search_of_the_paper_is_the_first_split_of_this_one(found):
    """Studies of a plain search are resumed by one on several splits."""
    storage, train = optuna.storages.InMemoryStorage(), Trainer()
    table = run_search(Trainer(), methods=["original", *METHODS], trials=TRIALS, storage=storage, **SEARCH)
    assert repr(table["cdf"]) == repr(found.tuned["cdf"].searched[0])
    assert told(run(train, storage)) == told(found)
    assert len(train.trials) == 6 * (TRIALS * K + S) - 4 * TRIALS


def test_other_splits_are_refused():
    storage = optuna.storages.InMemoryStorage()
    run(storage=storage)
    with pytest.raises(TadropedgeError, match=r"was run with split=3 \(now 5\)"):
        run(storage=storage, judge_splits=range(5, 5 + S))


FINALS = Finals(2, 6)


def test_the_finalists_are_the_best_of_the_search_and_all_splits_choose_among_them():
    before, after = run(), run(finals=FINALS)
    for name, one in after.tuned.items():
        if name not in before.tuned:
            continue  # DropEdge at the share of another choice
        assert repr(one.searched) == repr(before.tuned[name].searched)
        means = np.nan_to_num(one.searched_scores.mean(axis=1), nan=-1.0)
        assert sorted(one.final_scores) == sorted(np.argsort(-means)[:2])
        every = {i: np.concatenate([one.searched_scores[i], scores]).mean() for i, scores in one.final_scores.items()}
        assert one.chosen.index == max(every, key=every.get)
        assert [row.trial.split for rows in one.finals for row in rows[:1]] == list(range(FURTHER, FURTHER + 6))


def test_finals_are_counted_and_resumed(tmp_path):
    first, again = Trainer(), Trainer()
    found = run(first, tmp_path / "study.db", finals=FINALS)
    most = count_trainings(METHODS, TRIALS, S, K, finals=FINALS)
    assert len(first.trials) == len(found.tuned) * (TRIALS * K + 2 * 6 + S) <= most
    assert told(run(again, tmp_path / "study.db", finals=FINALS)) == told(found)
    assert again.trials == []


@pytest.mark.parametrize(("sizes", "message"), [((1, 3), "finalists .* at least 2"), ((2, 0), "splits .* at least 1")])
def test_finals_need_two_trials_and_a_split(sizes, message):
    with pytest.raises(TadropedgeError, match=message):
        Finals(*sizes)
