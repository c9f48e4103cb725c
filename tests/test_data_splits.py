"""Ways of drawing splits, and splits to choose on apart from those to judge on."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
import torch

from tadropedge.data import (
    Dataset,
    Given,
    OfSizes,
    PerClass,
    Split,
    load_clusters,
    load_dataset,
    load_karate,
    load_source_localization,
    random_split,
    shuffled_split,
)
from tadropedge.data.choosing import Choosing
from tadropedge.data.splits import split_seeds, way_of
from tadropedge.errors import TadropedgeError
from tadropedge.graph import Graph
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.laboratory import Laboratory

LABELS = torch.tensor([kind for kind, count in enumerate((500, 300, 150, 50)) for _ in range(count)])
PER_CLASS, SIZES = PerClass(5, 60, 120), OfSizes(100, 60, 120)
WAYS = {"per class": PER_CLASS, "sizes": SIZES}


def splits(way, count, labels=LABELS, **more):
    return Choosing(labels=labels, own=way.split(labels, 7), way=way, count=count, **more)


def parts(split):
    return [part.tolist() for _, part in split.parts()]


def digest(split):
    return hashlib.sha256(b"".join(part.numpy().tobytes() for _, part in split.parts())).hexdigest()[:16]


def test_recorded_splits_are_what_they_were():
    # The paper's recorded trainings were made on these: they may never change.
    labels = torch.tensor([(7 * node) % 11 % 4 for node in range(600)])
    assert digest(shuffled_split(labels, (200, 100, 300), seed=3)) == "a72b1727b53c53cd"
    assert digest(random_split(labels, 20, 100, 200, seed=3)) == "875b20acd6a53c09"
    data = load_karate()
    assert digest(data.split) == "356a3c51d3e2505f"
    lab = Laboratory(data)
    assert parts(lab.split(2)) == parts(shuffled_split(data.labels, (8, 10, 16), seed=2))
    lab = Laboratory(data, fresh_sizes=(10, 5, 9))
    assert parts(lab.split(4)) == parts(shuffled_split(data.labels, (10, 5, 9), seed=4))
    assert not {"measure", "choose_splits", "drawn"} & set(lab.settings)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("count", [1, 3])
def test_fresh_splits_are_drawn_in_the_same_way(way, count):
    many = splits(way, count)
    assert many.split(0) is many.own
    seen = [many.split(number) for number in range(8)]
    for split in seen:
        assert split.sizes == many.own.sizes
        nodes = torch.cat([part for _, part in split.parts()])
        assert len(nodes.unique()) == len(nodes) == sum(split.sizes)
        counts = torch.bincount(LABELS[split.train], minlength=4)
        assert counts.tolist() == [5] * 4 if way is PER_CLASS else counts.min() >= 1
    assert len({digest(split) for split in seen}) == len(seen)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_split_is_a_pure_function(way):
    one, two = splits(way, 3), splits(way, 3)
    expected = {number: digest(one.split(number)) for number in range(8)}
    assert {number: digest(two.split(number)) for number in (7, 2, 5, 0, 1, 6, 3, 4)} == {**expected}
    other = splits(replace(way, seed=1), 3)
    assert all(digest(other.split(number)) != expected[number] for number in range(1, 8))
    fewer = splits(way, 2)  # the first two choose in both; what judges depends on what chose
    assert digest(fewer.split(1)) == expected[1]
    assert digest(fewer.split(5)) != expected[5]


def test_no_seed_repeats_the_split_that_chose():
    # The own split of seed 1 is drawn from 1, and so was the first fresh one of old.
    for seed in range(4):
        data = load_dataset("karate", seed=seed)
        lab = Laboratory(data, choose_splits=3)
        assert len({digest(lab.split(number)) for number in range(6)}) == 6


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_where_there_are_nodes_enough_nothing_is_shared(way):
    many = splits(way, 3)
    used = {node for number in range(3) for part in parts(many.split(number))[:2] for node in part}
    for number in range(3, 10):
        assert not used & set(many.split(number).test.tolist())
    shared = many.shared
    assert (shared.what, shared.train, shared.val, shared.choosing, shared.judging) == ("nothing", 0, 0, 3, None)
    assert "whose test nodes had no part in the choice" in shared.words


def test_else_no_test_node_validated_a_choice():
    way = OfSizes(400, 50, 500)
    many = splits(way, 3)
    trained, validated = ({node for k in range(3) for node in parts(many.split(k))[part]} for part in (0, 1))
    shares = []
    for number in range(3, 40):
        test = set(many.split(number).test.tolist())
        assert not validated & test
        shares.append(len(trained & test) / len(test))
    shared = many.shared
    assert (shared.what, shared.val) == ("training", 0)
    assert shared.train == pytest.approx(np.mean(shares), abs=0.01)
    assert f"{100 * shared.train:.0f} % of them were training nodes" in shared.words


def test_else_all_nodes_are_drawn_from_and_that_is_said():
    way = OfSizes(100, 400, 500)
    many = splits(way, 3)
    trained, validated = ({node for k in range(3) for node in parts(many.split(k))[part]} for part in (0, 1))
    tests = [set(many.split(number).test.tolist()) for number in range(3, 40)]
    shared = many.shared
    assert shared.what == "validation"
    assert shared.train == pytest.approx(np.mean([len(trained & test) / 500 for test in tests]), abs=0.01)
    assert shared.val == pytest.approx(np.mean([len(validated & test) / 500 for test in tests]), abs=0.01)
    assert f"{100 * shared.train:.0f} % were training and {100 * shared.val:.0f} % validation nodes" in shared.words


def test_a_test_part_leaves_every_class_nodes_to_train_on():
    # Class 1 has three nodes, of which every split trains on two: a test part may take only one of them.
    labels = torch.tensor([0] * 97 + [1] * 3)
    many = splits(PerClass(2, 16, 80), 2, labels)
    for number in range(2, 40):
        split = many.split(number)
        assert split.sizes == (4, 16, 80)
        assert torch.bincount(labels[split.train]).tolist() == [2, 2]
    assert many.shared.what == "validation"


def test_test_nodes_are_uniform_over_those_that_may_be_drawn():
    many = splits(SIZES, 1)
    counts = np.zeros(len(LABELS))
    for number in range(1, 301):
        counts[many.split(number).test] += 1
    used = np.concatenate(parts(many.own)[:2])
    assert counts[used].sum() == 0
    drawn = np.delete(counts, used)
    share = 120 / len(drawn)
    assert abs(drawn - 300 * share).max() < 5 * np.sqrt(300 * share * (1 - share))


def test_samples_are_split_as_nodes_are():
    data = load_source_localization(nodes=10, communities=2, times=3, sizes=(20, 20, 30))
    lab = Laboratory(data, Architecture(data.backbone, 1, 8), choose_splits=3)
    assert lab.split(5).sizes == (20, 20, 30)
    assert lab.shared.what == "validation"
    assert "judged test samples" in lab.shared.words


def given(count):
    """A dataset of 60 nodes with ``count`` splits of its own."""
    labels = torch.arange(60) % 2
    many = [shuffled_split(labels, (20, 10, 20), seed=seed) for seed in range(count)]
    graph = Graph.from_edge_index([list(range(59)), list(range(1, 60))])
    return Dataset("mine", graph, torch.eye(60), labels, num_classes=2, level="node", split=many[0], drawn=Given(many))


def test_the_splits_of_a_file_are_the_only_ones():
    data = given(5)
    many = data.drawn.splits
    lab = Laboratory(data, choose_splits=2)
    assert [many.index(lab.split(number)) for number in range(9)] == [0, 1, 2, 3, 4, 2, 3, 4, 2]
    assert (lab.num_choosing, lab.num_judging) == (2, 3)
    old = Laboratory(data)  # without a choice of splits, all but the first are fresh ones
    assert [many.index(old.split(number)) for number in range(7)] == [0, 1, 2, 3, 4, 1, 2]
    used = [{node for k in range(2) for node in parts(many[k])[part]} for part in (0, 1)]
    shares = [np.mean([len(mine & set(many[k].test.tolist())) / 20 for k in (2, 3, 4)]) for mine in used]
    assert (lab.shared.train, lab.shared.val) == pytest.approx(shares)
    assert lab.shared.words.startswith("Settings were chosen on 2 splits and judged on the 3 others; ")


def test_a_file_of_few_splits_leaves_one_to_judge():
    data = given(2)
    lab = Laboratory(data, choose_splits=3)
    assert [data.drawn.splits.index(lab.split(number)) for number in range(6)] == [0, 0, 0, 1, 1, 1]
    assert (lab.num_choosing, lab.num_judging) == (1, 1)
    assert lab.shared.words.startswith("Settings were chosen on one split and judged on the only other one; ")


def test_splits_of_a_file_that_are_disjoint_share_nothing():
    many = [Split(*torch.arange(start, start + 30).split([10, 5, 15])) for start in (0, 30)]
    data = replace(given(2), split=many[0], drawn=Given(many))
    assert Laboratory(data, choose_splits=1).shared.what == "nothing"


def test_a_way_of_drawing_follows_the_split():
    data = load_karate(seed=3)
    assert data.way == PerClass(2, 10, 16, seed=3)
    mine = Split(data.split.train, data.split.val, data.split.test[:11])
    assert replace(data, split=mine).way == PerClass(2, 10, 11)
    uneven = Split(torch.cat((data.split.train, data.split.val[:1])), data.split.val[1:], data.split.test)
    assert replace(data, split=uneven).way == OfSizes(9, 9, 16)
    assert way_of(data.split, data.labels, seed=4) == PerClass(2, 10, 16, seed=4)
    assert load_clusters(per_class=3, seed=1).way == PerClass(3, 76, 152, seed=1)
    assert load_source_localization(seed=2).way == OfSizes(100, 500, 1000, seed=2)


def test_given_sizes():
    data = load_dataset("karate", seed=5, split_sizes=(10, 8, 12))
    assert data.split.sizes == (10, 8, 12)
    assert data.way == OfSizes(10, 8, 12, seed=5)
    assert parts(data.split) == parts(shuffled_split(data.labels, (10, 8, 12), seed=split_seeds(5)[0]))


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (
            lambda: load_dataset("karate", split_sizes=(10, 8)),
            "split_sizes must be three whole numbers, for train, val",
        ),
        (lambda: load_dataset("karate", split_sizes=(30, 8, 9)), "a split of 30 . 8 . 9 nodes needs 47 labelled ones"),
        (
            lambda: load_dataset("cora", split="random", split_sizes=(9, 9, 9)),
            "split_sizes and split='random' exclude each other: each is a way to draw splits",
        ),
        (lambda: load_dataset("clusters", per_class=3, split_sizes=(9, 9, 9)), "split_sizes and per_class exclude"),
        (
            lambda: load_dataset("source-localization", split_sizes=(9, 9, 9)),
            "split_sizes are for node-level data, and source-localization is a graph-level task",
        ),
        (lambda: Given([load_karate().split]), "splits must be two or more, got 1"),
        (lambda: replace(load_karate(), drawn="random"), "drawn must be PerClass, OfSizes or Given, got str 'random'"),
        (
            lambda: replace(given(2), drawn=Given([given(2).split, Split(*torch.arange(61).split([21, 20, 20]))])),
            "of 2 splits, number 1: split.test holds the node 60, but there are 60",
        ),
        (
            lambda: Laboratory(load_karate(), fresh_sizes=(8, 10, 12), choose_splits=2),
            r"fresh_sizes=\(8, 10, 12\) and choose_splits=2 exclude each other",
        ),
        (lambda: Laboratory(load_karate()).shared, "what is shared is known only where choose_splits says"),
    ],
)
def test_what_is_refused(attempt, message):
    with pytest.raises(TadropedgeError, match=message):
        attempt()


def test_trials_train_on_the_splits_of_their_numbers():
    data = load_karate()
    lab = Laboratory(data, epochs=3, choose_splits=2)
    first, second = lab.train([Trial(split=1), Trial(split=4)])
    alone = Laboratory(replace(data, split=lab.split(4)), epochs=3).train([Trial()])[0]
    assert np.array_equal(second.val_loss, alone.val_loss)
    assert not np.array_equal(first.val_loss, second.val_loss)
    assert lab.settings["choose_splits"] == 2
    assert lab.settings["drawn"] == "PerClass(per_class=2, num_val=10, num_test=16, seed=0)"
