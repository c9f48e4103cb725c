"""Search spaces: every parameter of every trial is a pure function of (seed, replicate, number, name)."""

import numpy as np
import pytest

from tadropedge import TadropedgeError
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.search.space import BUDGET, Space, space_of, trial_of

ENTRIES = {
    "dropout": [0.3, 0.5, 0.8],
    "weight_decay": {"log-uniform": [1e-5, 1e-2]},
    "keep_prob": BUDGET,
    "hidden": {"uniform": [16, 64], "step": 16},
    "layers": 2,
    "residual": True,
}
TRIALS = [(seed, replicate, number) for seed in (0, 2**63) for replicate in (0, 5) for number in range(40)]


def test_what_is_drawn_never_changes():
    drawn = Space(ENTRIES).draw(seed=3, replicate=1, number=4)
    assert list(drawn.values()) == [0.3, 1.88283e-05, 0.2, 48, 2, True]
    assert type(drawn["hidden"]) is int


def test_a_parameter_that_is_added_changes_no_other():
    whole = Space(ENTRIES)
    for name, entry in ENTRIES.items():
        alone = Space({name: entry})
        for trial in TRIALS:
            assert alone.draw(*trial)[name] == whole.draw(*trial)[name]
    turned = Space(dict(reversed(ENTRIES.items())))
    assert all(turned.draw(*trial) == whole.draw(*trial) for trial in TRIALS)


def test_trial_i_is_the_same_for_every_candidate():
    network = {"dropout": [0.3, 0.5, 0.8], "learning_rate": {"log-uniform": [0.001, 0.1]}}
    spaces = [
        space_of(Candidate.parse(text), network, {})
        for text in ("original", "dropedge", "cdf", "degree-proportional", "jaccard-proportional@0.5:weighted")
    ]
    for trial in TRIALS[:20]:
        drawn = [space.draw(*trial) for space in spaces]
        assert len({(each["dropout"], each["learning_rate"]) for each in drawn}) == 1
        budgets = [each.get("keep_prob", each.get("keep_ratio")) for each in drawn]
        assert budgets[0] is None
        assert budgets[4] is None
        assert len(set(budgets[1:4])) == 1  # one number, whatever a rule calls its budget


def test_seeds_replicates_and_numbers_are_different_draws():
    space = Space({"weight_decay": {"log-uniform": [1e-5, 1e-2]}})
    assert len({space.draw(*trial)["weight_decay"] for trial in TRIALS}) == len(TRIALS)


def test_values_are_uniform_and_both_ends_are_reached():
    drawn = [Space(ENTRIES).draw(0, replicate, number) for replicate in range(20) for number in range(50)]
    for name, values in (("dropout", [0.3, 0.5, 0.8]), ("hidden", [16, 32, 48, 64]), ("residual", [True])):
        seen = [each[name] for each in drawn]
        assert set(seen) == set(values)
        assert all(seen.count(value) == pytest.approx(1000 / len(values), abs=90) for value in values)
    assert sorted({each["keep_prob"] for each in drawn}) == [round(0.05 * step, 2) for step in range(1, 20)]
    decay = np.log10([each["weight_decay"] for each in drawn])
    assert decay.mean() == pytest.approx(-3.5, abs=0.1)
    assert -5 <= decay.min() < -4.9 < -2.1 < decay.max() <= -2


def test_a_space_of_ones_own_replaces_entries_of_the_same_name():
    network = {"dropout": [0.3, 0.5, 0.8], "layers": [2]}
    candidate = Candidate.parse("degree-proportional")
    assert space_of(candidate, network, {"dropout": 0.5, "keep_ratio": [0.1], "other": 3}).entries == {
        "dropout": 0.5, "layers": [2], "keep_ratio": [0.1],
    }  # fmt: skip
    assert "gamma" not in space_of(candidate, network, {}).entries
    consistent = space_of(Candidate.parse("dropedge:consistent"), network, {}).entries
    assert set(consistent) >= {"draws", "consistency_weight", "temperature", "balance", "keep_prob"}


def test_what_is_drawn_becomes_a_trial():
    drawn = {"dropout": 0.3, "learning_rate": 0.02, "weight_decay": 1e-4, "layers": 3, "keep_ratio": 0.4}
    trial = trial_of(Candidate.parse("degree-proportional"), drawn, seed=7, split=2)
    assert str(trial.candidate) == "degree-proportional@0.4"
    assert (trial.dropout, trial.learning_rate, trial.weight_decay) == (0.3, 0.02, 1e-4)
    assert trial.settings == {"layers": 3}
    assert (trial.seed, trial.split) == (7, 2)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ([], "a list of values"),
        ({}, "a list of values"),
        ([[1]], "a list of values"),
        (float("nan"), "a list of values"),
        ({"uniform": [1]}, "a list of values"),
        ({"uniform": [0, 1], "steps": 1}, "a list of values"),
        ({"log-uniform": [0.1, 1], "step": 0.1}, "a list of values"),
        ({"uniform": [1, 0]}, "low ≤ high"),
        ({"log-uniform": [0, 1]}, "0 < low"),
        ({"uniform": ["a", 1]}, "finite number"),
        ({"uniform": [0, 1], "step": 0.3}, "whole steps"),
        ({"uniform": [0, 1], "step": 0}, "whole steps"),
    ],
)
def test_entries_from_which_nothing_can_be_drawn(entry, words):
    with pytest.raises(TadropedgeError, match=words):
        Space({"dropout": entry})
    with pytest.raises(TadropedgeError, match="maps names"):
        Space([entry])
