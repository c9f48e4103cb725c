"""Labels per class on every set: 1, 5, 20, and full, with sizes that fit the data."""

import pytest
import torch
from conftest import data_root, need_data

from tadropedge import TadropedgeError
from tadropedge.data import OfSizes, PerClass, as_dataset, load_clusters, load_dataset
from tadropedge.training.laboratory import laboratory_for

SETS = ("acm", "amazon_photo", "chameleon_filtered", "citeseer_full", "cora_ml", "minesweeper", "squirrel_filtered")


@pytest.mark.parametrize("name", SETS)
def test_every_set_has_sensible_sizes(name, large_graphs):
    data = load_dataset(large_graphs / f"{name}.npz")
    count, classes = int((data.labels >= 0).sum()), data.num_classes
    for labels in (1, 5, 20):
        made = as_dataset(data, per_class=labels)
        train, val, test = made.split.sizes
        assert torch.bincount(made.labels[made.split.train]).tolist() == [labels] * classes
        rest = count - train
        assert val == min(500, rest // 3)
        assert test == min(1000, rest - val)
        assert isinstance(made.way, PerClass)
    made = as_dataset(data, per_class="full")
    assert made.split.sizes == (round(0.6 * count), round(0.2 * count), count - round(0.6 * count) - round(0.2 * count))
    assert isinstance(made.way, OfSizes)
    assert len(made.labels[made.split.train].unique()) == classes


@pytest.mark.parametrize("labels", [1, 2, 4, "full"])
def test_small_data_can_be_chosen_and_judged_on(labels):
    data = load_dataset("karate", per_class=labels)
    laboratory = laboratory_for(data, choose_splits=2)
    for number in range(6):
        assert laboratory.split(number).sizes == data.split.sizes
    assert load_dataset("karate", per_class=labels).split.train.tolist() == data.split.train.tolist()
    other = load_dataset("karate", per_class=labels, seed=1)
    assert other.split.train.tolist() != data.split.train.tolist()


def test_full_is_the_split_that_planetoid_has():
    root = need_data(data_root() / "planetoid").parent
    own, asked = load_dataset("cora", root, "full"), load_dataset("cora", root, per_class="full")
    assert asked.way == own.way
    for (_, one), (_, two) in zip(own.split.parts(), asked.split.parts(), strict=True):
        assert torch.equal(one, two)
    with pytest.raises(TadropedgeError, match="per_class belongs to split='full', got per_class and split='random'"):
        load_dataset("cora", root, "random", per_class="full")


def test_what_cannot_be_drawn_is_said_in_one_line():
    data = load_clusters(clusters=2, nodes=10)
    assert load_dataset("clusters", clusters=2, nodes=10, per_class="full").split.sizes == (12, 4, 4)
    for labels, message in (
        (11, "class 0 has 10 labelled nodes, which is less than per_class=11"),
        (10, r"a split of 20 \+ 1 \+ 1 nodes needs 22 labelled ones, but there are 20"),
        ("most", "per_class must be a whole number of at least 1, or 'full', got 'most'"),
        (0, "per_class must be a whole number of at least 1, got 0"),
    ):
        with pytest.raises(TadropedgeError, match=message):
            as_dataset(data, per_class=labels)
    with pytest.raises(TadropedgeError, match="a random split is for node-level data, and source-localization is"):
        load_dataset("source-localization", nodes=10, communities=2, sizes=(6, 4, 4), times=2, per_class="full")
