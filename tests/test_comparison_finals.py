"""The luck of a choice with finals, against the choice itself made again."""

from __future__ import annotations

import numpy as np
import pytest

from tadropedge.comparison.selection import selections

M, N, K, F, L = 4, 10, 2, 4, 8
NOISE = 0.01


def scored(truth, random):
    """Validation scores of M methods ``[N, K]``, and of their F best on L further splits."""
    first = truth[:, :, None] + random.normal(0, 0.02, K) + NOISE * random.standard_normal((M, N, K))
    later = truth[:, :, None] + random.normal(0, 0.02, L) + NOISE * random.standard_normal((M, N, L))
    places = [np.sort(np.argsort(-each.mean(axis=1))[:F]) for each in first]
    finals = [{int(i): later[m, i] for i in best} for m, best in enumerate(places)]
    return first, finals


def chosen(first, finals):
    return [
        max(each, key=lambda i: np.concatenate([scores[i], each[i]]).mean())
        for scores, each in zip(first, finals, strict=True)
    ]


def luck(first, finals=None):
    names = [str(place) for place in range(M)]
    finals = None if finals is None else dict(zip(names, finals, strict=True))
    return [one.error for one in selections(dict(zip(names, first, strict=True)), finals=finals).values()]


@pytest.mark.parametrize("spread", [0.002, 0.01])
def test_the_error_is_that_of_choosing_again(spread):
    random, told, seen = np.random.default_rng(0), [], []
    for _ in range(30):
        truth = 0.01 * random.standard_normal(N) + spread * random.standard_normal((M, N))
        pair = [scored(truth, random) for _ in range(2)]
        told += [np.mean(np.square(luck(*one))) for one in pair]
        choices = [truth[np.arange(M), chosen(*one)] for one in pair]
        seen.append(np.mean((choices[0] - choices[1]) ** 2) / 2)
    assert np.sqrt(np.mean(told)) == pytest.approx(np.sqrt(np.mean(seen)), rel=0.35)


def test_finals_leave_less_luck():
    random = np.random.default_rng(1)
    truth = 0.01 * random.standard_normal((M, N))
    first, finals = scored(truth, random)
    assert np.mean(luck(first, finals)) < 0.75 * np.mean(luck(first))


def test_a_finalist_far_ahead_leaves_none():
    first = 0.7 + 0.001 * np.random.default_rng(2).standard_normal((M, N, K))
    finals = [{i: np.full(L, 0.9 if i == 3 else 0.7) for i in range(F)} for _ in range(M)]
    assert max(luck(first, finals)) == pytest.approx(0.0, abs=1e-3)


def test_a_method_without_finals_is_as_before():
    first, finals = scored(np.zeros((M, N)), np.random.default_rng(3))
    alone = selections({"a": first[0], "b": first[1]})
    beside = selections({"a": first[0], "b": first[1]}, finals={"b": finals[1]})
    assert np.array_equal(alone["a"].shifts, beside["a"].shifts)
