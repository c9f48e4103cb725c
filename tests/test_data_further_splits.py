"""Further choosing splits: they use the nodes of the first ones, so no judged test node has a part in them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tadropedge.data.choosing import FURTHER, Choosing
from tadropedge.data.splits import Given, OfSizes, PerClass, Split

LABELS = torch.arange(600) % 3


def made(way, count=2):
    return Choosing(labels=LABELS, own=way.split(LABELS, 0), way=way, count=count)


def nodes(*parts):
    return set(np.concatenate([part.numpy() for part in parts]).tolist())


@pytest.mark.parametrize("way", [PerClass(10, 60, 100), OfSizes(30, 60, 100)])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_they_train_and_validate_on_nodes_of_the_first_ones(way, count):
    splits = made(way, count)
    assert splits.shared.what == "nothing"
    used = nodes(*(part for number in range(count) for part in (splits.split(number).train, splits.split(number).val)))
    judged = nodes(*(splits.split(number).test for number in range(count, count + 20)))
    for number in range(FURTHER, FURTHER + 10):
        one = splits.split(number)
        assert (len(one.train), len(one.val)) == (30, 60)
        assert nodes(one.val) <= used
        assert nodes(one.train) <= used - nodes(one.val)
        assert not nodes(one.train, one.val) & judged
        assert not nodes(one.test) & nodes(one.train, one.val)
        assert set(LABELS[one.train].tolist()) == {0, 1, 2}


def test_per_class_holds_and_each_number_is_another_split():
    splits = made(PerClass(10, 60, 100))
    drawn = [splits.split(number) for number in range(FURTHER, FURTHER + 5)]
    assert all(torch.bincount(LABELS[one.train]).tolist() == [10, 10, 10] for one in drawn)
    assert len({tuple(one.val.tolist()) for one in drawn}) == 5
    alone = made(PerClass(10, 60, 100), 1)
    assert len({tuple(alone.split(number).val.tolist()) for number in range(FURTHER, FURTHER + 5)}) == 5
    again = made(PerClass(10, 60, 100)).split(FURTHER)
    assert all(torch.equal(mine, other) for (_, mine), (_, other) in zip(drawn[0].parts(), again.parts(), strict=True))


def test_where_nearly_all_nodes_train_those_that_validate_are_among_the_first():
    splits = made(OfSizes(360, 120, 120))
    assert splits.shared.what == "training"
    validated = nodes(splits.split(0).val, splits.split(1).val)
    judged = nodes(*(splits.split(number).test for number in range(2, 12)))
    for number in range(FURTHER, FURTHER + 5):
        one = splits.split(number)
        assert (len(one.train), len(one.val)) == (360, 120)
        assert nodes(one.val) <= validated
        assert not nodes(one.val) & (judged | nodes(one.train))


def test_splits_of_a_file_are_taken_in_turn():
    parts = [Split(torch.arange(i, i + 3), torch.arange(i + 3, i + 6), torch.arange(i + 6, i + 9)) for i in range(4)]
    splits = Choosing(labels=LABELS, own=parts[0], way=Given(parts), count=2)
    assert [splits.split(FURTHER + place) is parts[place % 2] for place in range(4)] == [True] * 4
