"""What a search is said to take, and what a training costs."""

import pytest
from search.made import candidates, experiment

from tadropedge.lab import Search, Store
from tadropedge.lab.data.splits import full_split
from tadropedge.lab.search.protocol import nested, trials_of
from tadropedge.lab.search.timing import estimate, seconds_per_epoch

RUNGS = {"training": {"rungs": (3, 8)}}


@pytest.mark.parametrize("settings", [{}, RUNGS], ids=["plain", "rungs"])
def test_an_estimate_counts_the_trainings_that_are_left(tmp_path, settings):
    every, of, search = (
        candidates("original", "cdf", "auto"),
        experiment(24, **settings),
        Search(trials=4, replicates=5),
    )
    with Store(tmp_path) as store:
        whole = estimate(every, of, search, store)
        nested(every[:1], of, Search(trials=4, replicates=2), store)
        rest = estimate(every, of, search, store)
        assert (whole.trainings, rest.trainings) == (60, 52)
        assert rest.seconds > 0
        nested(every, of, Search(trials=1, replicates=1), store)
        done = estimate(every, of, Search(trials=1, replicates=1), store)
    assert (done.trainings, done.seconds) == (0, 0.0)


def test_of_one_fixed_split_starts_are_counted():
    of = experiment()
    object.__setattr__(of.data, "splits", full_split(of.data.labels))
    assert estimate(candidates("original", "cdf"), of, Search(trials=4, replicates=5)).trainings == 2 * (4 + 5)


def test_more_layers_and_units_cost_more_memory():
    small, large = (
        seconds_per_epoch(
            experiment(hidden=hidden), *trials_of(*candidates("original"), experiment(), Search(trials=1), 0)
        )
        for hidden in (8, 256)
    )
    assert small.train > 0
    assert small.evaluate >= 0
    assert large.peak_bytes > 10 * small.peak_bytes
