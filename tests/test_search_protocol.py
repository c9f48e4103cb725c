from dataclasses import replace

import numpy as np
import optuna
import pytest
from fake_trainer import METHODS, SEARCH, Trainer, kept_share, outcome

from tadropedge import TadropedgeError
from tadropedge.search.engine import run_search
from tadropedge.search.protocol import Replicates, accuracy_by_keep_prob, choose, honest, paper
from tadropedge.search.study import Finished
from tadropedge.training.config import METRICS, Trial

S = 4
SETTINGS = ("learning_rate", "weight_decay", "dropout", "gamma", "normalization", "self_weight", "batch_norm")


@pytest.fixture(scope="module")
def table():
    return run_search(Trainer(), methods=METHODS, trials=12, storage=optuna.storages.InMemoryStorage(), **SEARCH)


def retrain(table, train=None, storage=None, **changes):
    options = {"replicates": S, "kept_share": kept_share, **SEARCH, **changes}
    return honest(train or Trainer(), table, storage=storage or optuna.storages.InMemoryStorage(), **options)


def row(index, val_accuracy=0.5, val_loss=1.0, test_accuracy=0.5, failed=False):
    values = (float("nan"),) * 4 if failed else (1.0, val_loss, val_accuracy, test_accuracy)
    return Finished(index, Trial.of("cdf"), **dict(zip(METRICS, values, strict=True)), best_epoch=0, failed=failed)


def test_paper_takes_the_best_test_accuracy_and_honest_never_looks_at_it():
    rows = [
        row(0, val_accuracy=0.9, test_accuracy=0.1),
        row(1, failed=True),
        row(2, val_accuracy=0.2, test_accuracy=0.8),
        row(3, val_accuracy=0.1, test_accuracy=0.8),
    ]
    assert paper({"cdf": rows})["cdf"].index == 2
    assert choose({"cdf": rows})["cdf"].index == 0


def test_ties_go_to_the_lowest_loss_then_to_the_first():
    tied = [row(0, 0.7, 0.5), row(1, 0.8, 0.6), row(2, 0.8, 0.4), row(3, 0.8, 0.4), row(4, 0.8, 0.5)]
    assert choose({"cdf": tied})["cdf"].index == 2
    assert choose({"cdf": tied[::-1]})["cdf"].index == 2


def test_the_mean_over_several_tables_decides():
    one = {"cdf": [row(0, 0.9, 0.5), row(1, 0.8, 0.6), row(2, 0.7, 0.1)]}
    two = {"cdf": [row(0, 0.5, 0.5), row(1, 0.8, 0.6), row(2, 0.9, 0.5)]}
    assert choose(one)["cdf"].index == 0
    assert choose(one, two)["cdf"] is one["cdf"][2]  # 0.8 like trial 1, and the lower loss
    failed = {"cdf": [row(0, 0.5), row(1, 0.8), row(2, failed=True)]}
    assert choose(one, failed)["cdf"].index == 1
    with pytest.raises(TadropedgeError, match="every table must hold the same trials of 'cdf'"):
        choose(one, {"cdf": one["cdf"][:2]})


def test_a_method_of_failures_alone_is_named():
    for protocol in (paper, choose):
        with pytest.raises(TadropedgeError, match=r"no trial of 'cdf' has a finite loss \(2 were run\)"):
            protocol({"original": [row(0)], "cdf": [row(0, failed=True), row(1, failed=True)]})


def test_replicates_are_paired_and_apart_from_the_search(table):
    train = Trainer()
    result = retrain(table, train)
    everyone = [*result.runs.values(), *result.reference_runs.values()]
    assert len(everyone) == len(METHODS) + 2
    assert len(train.trials) == S * len(everyone)
    for s in range(S):
        assert len({rows[s].trial.seed for rows in everyone}) == 1  # same start, coins and dropout noise
        assert {rows[s].trial.split for rows in everyone} == {s}
    seeds = {rows[s].trial.seed for rows in everyone for s in range(S)}
    assert len(seeds) == S
    assert not seeds & {one.trial.seed for rows in table.values() for one in rows}


def test_the_chosen_settings_are_retrained(table):
    result = retrain(table)
    assert result.chosen == choose(table)
    for method, rows in result.runs.items():
        chosen = result.chosen[method].trial
        for s, one in enumerate(rows):
            assert one.trial == replace(chosen, seed=one.trial.seed, split=s)
            assert repr(one) == repr(Finished.of(s, outcome(one.trial), curves=True))
            assert result.accuracy[method][s] == one.test_accuracy


def test_the_reference_is_dropedge_at_the_same_expected_number_of_kept_edges(table):
    result = retrain(table)
    assert set(result.reference) == set(result.kept_share) == {"cdf", "effective-cdf"}
    for method, rows in result.reference_runs.items():
        chosen = result.chosen[method].trial
        assert result.kept_share[method] == pytest.approx(kept_share(chosen), abs=1e-6)
        for s, one in enumerate(rows):
            assert one.trial.method == "dropedge"
            assert one.trial.keep_ratio == result.kept_share[method]
            assert all(one.trial.flat()[name] == chosen.flat().get(name) for name in SETTINGS)
            assert result.reference[method][s] == one.test_accuracy
        assert result.reference[method].shape == result.accuracy[method].shape == (S,)


def test_a_stop_counts_again_only_what_is_new(table, tmp_path):
    """A report ends the batch at work in the words of a stop, so a batch that is lost must not be followed by one."""
    calls = []

    def stop(trials):
        if calls[-1][0] >= 7:
            raise KeyboardInterrupt
        return Trainer()(trials)

    with pytest.raises(KeyboardInterrupt):
        retrain(table, stop, tmp_path / "study.db", batch=7, progress=lambda *count: calls.append(count))
    assert calls == [(0, 24), (7, 24)]


def test_it_is_resumed_and_extended(table, tmp_path):
    whole = retrain(table)
    storage, calls = tmp_path / "study.db", []

    def stop(done, total):
        calls.append((done, total))
        if done >= 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        retrain(table, storage=storage, batch=7, progress=stop)
    assert calls == [(0, 24), (7, 24)]
    train = Trainer()
    result = retrain(table, train, storage)
    assert len(train.trials) == 24 - 7
    assert repr((result.runs, result.reference_runs)) == repr((whole.runs, whole.reference_runs))
    more = Trainer()
    longer = retrain(table, more, storage, replicates=S + 1)
    assert len(more.trials) == 6
    assert all(np.array_equal(longer.accuracy[method][:S], whole.accuracy[method]) for method in METHODS)
    assert longer.runs["cdf"][0].curves["test_accuracy"] == pytest.approx(
        outcome(longer.runs["cdf"][0].trial).test_accuracy
    )


def test_a_search_that_chooses_anew_finds_an_empty_place(table):
    storage = optuna.storages.InMemoryStorage()
    retrain(table, storage=storage)
    best = choose(table)["cdf"]
    others = {**table, "cdf": [one for one in table["cdf"] if one.index != best.index]}
    train = Trainer()
    result = retrain(others, train, storage)
    assert result.chosen["cdf"].index != best.index
    assert len(train.trials) == 2 * S  # cdf and its reference
    names = optuna.get_all_study_names(storage)
    assert f"fake/gcn-2/honest/cdf/trial-{best.index}" in names
    assert f"fake/gcn-2/reference/cdf/trial-{result.chosen['cdf'].index}" in names


def test_other_splits_shares_and_settings_are_not_mixed(table):
    storage = optuna.storages.InMemoryStorage()
    retrain(table, storage=storage, splits=range(1, S + 1))
    assert retrain(table, storage=storage, splits=[1, 2, 3, 4]).runs["cdf"][3].trial.split == 4
    with pytest.raises(TadropedgeError, match=r"trial 0 of study .* was run with split=1 \(now 0\)"):
        retrain(table, storage=storage)
    with pytest.raises(TadropedgeError, match=r"was made with seed=3 \(now 4\)"):
        retrain(table, storage=storage, seed=4)
    with pytest.raises(
        TadropedgeError, match=r"'fake/gcn-2/reference/cdf/trial-\d+' was made with keep_ratio=.* \(now 0.5\)"
    ):
        retrain(table, storage=storage, kept_share=lambda trial: 0.5)


def test_a_share_that_differs_in_its_last_digits_is_the_same(table):
    storage = optuna.storages.InMemoryStorage()
    retrain(table, storage=storage, kept_share=lambda trial: 0.6)
    train = Trainer()
    retrain(table, train, storage, kept_share=lambda trial: 0.6 + 1e-12)
    assert train.trials == []


def test_a_replicate_that_fails_is_nan(table):
    def diverging(trials):
        return [replace(outcome(one), failed=one.split == 2) for one in trials]

    result = retrain(table, diverging)
    for values in (*result.accuracy.values(), *result.reference.values()):
        assert np.isnan(values).tolist() == [False, False, True, False]


def test_accuracy_against_keep_prob(table):
    points = accuracy_by_keep_prob(table)
    assert set(points) == {"dropedge", "cdf", "effective-cdf"}  # the original drops nothing
    good = [one for one in table["cdf"] if not one.failed]
    assert points["cdf"].tolist() == [[one.trial.keep_prob, one.val_accuracy, one.test_accuracy] for one in good]
    assert accuracy_by_keep_prob({"cdf": [row(0, failed=True)]})["cdf"].shape == (0, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"replicates": 0}, "replicates must be a whole number of at least 1, got 0"),
        ({"splits": [0, 1]}, "splits must name one split for each of 4 replicates, got 2"),
        ({"splits": [0, 1, 2, -1]}, "split must be a whole number of at least 0, got -1"),
        ({"kept_share": lambda trial: 1.2}, r"the expected kept share must lie in \[0, 1\], got 1.2 for Trial"),
    ],
)
def test_bad_input_gets_one_clear_line(table, change, message):
    train = Trainer()
    with pytest.raises(TadropedgeError, match=message):
        retrain(table, train, **change)
    assert train.trials == []


def test_the_name_of_version_0_1_is_still_read():
    with pytest.warns(DeprecationWarning, match="Honest is now called Replicates"):
        from tadropedge.search import Honest
    assert Honest is Replicates
    with pytest.raises(ImportError, match="cannot import name 'Dishonest'"):
        from tadropedge.search import Dishonest  # noqa: F401
