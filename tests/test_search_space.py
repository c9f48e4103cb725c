import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tadropedge import TadropedgeError
from tadropedge.method import droppings
from tadropedge.nn.backbones import DROPEDGE_SPACE
from tadropedge.search.space import (
    Choice,
    LogUniform,
    Space,
    Uniform,
    default_space,
    replicate_seed,
    search_seed,
    trial,
)

SPACE = default_space(0.01)


def test_the_default_space_is_the_declared_one():
    grids = {
        "learning_rate": [0.01, 0.02, 0.05],
        "weight_decay": [1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3],
        "dropout": [0.3, 0.5, 0.8],
        "keep_prob": [round(0.05 * k, 2) for k in range(1, 20)],
        "normalization": ["first-order", "gcn", "gcn-residual", "random-walk"],
        "self_weight": [False, True],
        "batch_norm": [False, True],
    }
    draws = [SPACE.draw(0, i) for i in range(1000)]
    assert set(draws[0]) == {*grids, "gamma"}
    for name, grid in grids.items():
        assert sorted({draw[name] for draw in draws}) == sorted(grid)  # exactly these numbers, and all of them
    gammas = [draw["gamma"] for draw in draws]
    assert min(gammas) >= 0.001
    assert max(gammas) <= 0.1
    assert "gamma" not in default_space(None).parameters
    assert Space.of(DROPEDGE_SPACE).draw(0, 0)["learning_rate"] == 0.009  # what the released scripts would have tried


def test_literal_draws():
    """The numbers behind (seed, i) are part of the interface: a study of last year can be gone on with."""
    assert SPACE.draw(0, 0) == {
        "learning_rate": 0.05,
        "weight_decay": 0.0001,
        "dropout": 0.5,
        "keep_prob": 0.05,
        "normalization": "random-walk",
        "self_weight": True,
        "batch_norm": True,
        "gamma": 0.0545603,
    }
    assert (search_seed(0, 0), replicate_seed(0, 0)) == (40597471, 1465896090)


@given(st.integers(0, 2**63 - 2), st.integers(0, 10**6))
def test_a_draw_depends_on_seed_and_index_alone(seed, i):
    before = SPACE.draw(seed, i)
    SPACE.draw(seed + 1, i)
    np.random.default_rng(0).random()
    assert SPACE.draw(seed, i) == before
    assert default_space(0.01).draw(seed, i) == before
    # A space without γ, or with another dropout, leaves everything else alone.
    assert default_space(None).draw(seed, i) == {k: v for k, v in before.items() if k != "gamma"}
    other = Space({**SPACE.parameters, "dropout": Choice((0.1,))}).draw(seed, i)
    assert other == {**before, "dropout": 0.1}


def test_every_value_is_equally_likely_and_the_log_is_uniform():
    n = 3000
    draws = [SPACE.draw(5, i) for i in range(n)]
    for name in ("learning_rate", "weight_decay", "dropout", "keep_prob", "normalization", "batch_norm"):
        counts = Counter(draw[name] for draw in draws)
        share = 1 / len(counts)
        spread = (n * share * (1 - share)) ** 0.5
        assert max(abs(count - n * share) for count in counts.values()) < 4.5 * spread
    place = (np.log10([draw["gamma"] for draw in draws]) + 3) / 2
    ecdf = np.arange(1, n + 1) / n
    assert np.abs(np.sort(place) - ecdf).max() < 1.95 / n**0.5  # Kolmogorov, 0.1 %


def test_parameters_trials_and_seeds_are_independent():
    n = 2000
    draws, others = ([SPACE.draw(seed, i) for i in range(n)] for seed in (0, 1))
    columns = [[draw[name] for draw in draws] for name in ("learning_rate", "keep_prob", "gamma")]
    columns[2] = list(np.log(columns[2]))
    columns += [columns[0][1:] + columns[0][:1], [draw["learning_rate"] for draw in others]]
    correlation = np.corrcoef(columns) - np.eye(5)
    assert np.abs(correlation).max() < 4.5 / n**0.5


def test_the_same_settings_and_start_for_every_method():
    names = [method for method in droppings() if method != "auto"]
    for i in range(20):
        trials = [trial(SPACE, 3, i, method) for method in names]
        assert [one.method for one in trials] == names
        assert all(one.flat() == trials[0].flat() for one in trials)
        assert len({one.seed for one in trials}) == 1
        assert trials[0].flat().items() >= SPACE.draw(3, i).items()


def test_training_seeds_differ_between_trials_and_phases():
    search = {search_seed(0, i) for i in range(2000)}
    replicates = {replicate_seed(0, s) for s in range(2000)}
    assert len(search) == len(replicates) == 2000
    assert max(search) < 2**30 <= min(replicates) <= max(replicates) < 2**31


def test_tables_round_trip_through_json():
    table = json.loads(json.dumps(SPACE.table()))
    assert Space.of(table) == SPACE
    mixed = Space.of({"dropout": 0.5, "gamma": [None, 0.1], "keep_prob": {"uniform": [0.1, 0.9]}})
    assert mixed.parameters == {
        "dropout": Choice((0.5,)),
        "gamma": Choice((None, 0.1)),
        "keep_prob": Uniform(0.1, 0.9),
    }
    assert Space.of(mixed.table()) == mixed
    assert 0.1 <= mixed.draw(0, 0)["keep_prob"] <= 0.9


def test_a_single_point_is_always_drawn():
    space = Space({"gamma": LogUniform(0.3, 0.3), "dropout": Uniform(0.2, 0.2, step=0.1)})
    assert space.draw(0, 0) == {"gamma": 0.3, "dropout": 0.2}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"dropuot": [0.5]}, "unknown parameter of a search space 'dropuot'.*did you mean 'dropout'"),
        ({"kept_ratio": [0.5]}, "unknown parameter of a search space 'kept_ratio'"),
        ({"dropout": []}, "dropout of a search space: values are empty"),
        ({"dropout": [0.5, 1.5]}, r"dropout must lie in \[0, 1\], got 1.5"),
        ({"dropout": ["0.5"]}, "dropout of a search space must be a number, got '0.5'"),
        ({"dropout": [float("nan")]}, "dropout of a search space must be a number, got nan"),
        ({"self_weight": ["yes"]}, "self_weight of a search space must be true or false, got 'yes'"),
        ({"self_weight": {"uniform": [0, 1]}}, "self_weight of a search space must be a list"),
        ({"normalization": "gnc"}, "unknown normalization 'gnc'.*did you mean 'gcn'"),
        ({"gamma": {"log-uniform": [0, 1]}}, r"gamma of a search space: needs low above 0"),
        ({"gamma": {"uniform": [2, 1]}}, "gamma of a search space: needs low ≤ high"),
        ({"gamma": {"uniform": ["a", 1]}}, "gamma of a search space: low must be a finite number, got 'a'"),
        ({"gamma": {"normal": [0, 1]}}, r"gamma of a search space must be a list, .*got {'normal': \[0, 1\]}"),
        ({"gamma": {"uniform": 3}}, "gamma of a search space must be a list, .*got {'uniform': 3}"),
        ({"gamma": {"log-uniform": [1, 2], "step": 1}}, "gamma of a search space must be a list"),
        ({"keep_prob": {"uniform": [0.1, 0.9], "step": 0.3}}, "keep_prob .* must reach high from low in whole steps"),
        ({"keep_prob": {"uniform": [0.1, 0.9], "step": -0.1}}, "keep_prob .* step must be a positive number"),
        ({"keep_prob": {"uniform": [0.1, 0.9], "step": "x"}}, "keep_prob .* step must be a positive number"),
    ],
)
def test_bad_spaces_get_one_clear_line(table, message):
    with pytest.raises(TadropedgeError, match=message) as caught:
        Space.of(table)
    assert "\n" not in str(caught.value)


def test_bad_numbers():
    with pytest.raises(TadropedgeError, match=r"gamma must be a positive number, got 0"):
        default_space(0)
    with pytest.raises(TadropedgeError, match="seed must be a whole number of at least 0, got -1"):
        SPACE.draw(-1, 0)
    with pytest.raises(TadropedgeError, match=r"trial index must be a whole number of at least 0, got 1\.5"):
        SPACE.draw(0, 1.5)
