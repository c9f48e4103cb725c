"""Measures against their definitions, counted one node or pair after the other."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from trainings import experiment, trial

from tadropedge.lab import MEASURES
from tadropedge.lab.data.load import load
from tadropedge.lab.training.batch import Batch
from tadropedge.lab.training.fit import fit
from tadropedge.lab.training.measures import default_measure
from tadropedge.lab.training.trial import TrainingSettings
from tadropedge.operators.kernels.reference import mean_at


def accuracy(logits, labels):
    return np.mean([row.argmax() == label for row, label in zip(logits, labels, strict=True)])


def f1(logits, labels):
    guessed = logits.argmax(axis=1)
    scores = []
    for kind in sorted({*guessed, *labels}):
        hits = np.sum((guessed == kind) & (labels == kind))
        scores.append(2 * hits / (np.sum(guessed == kind) + np.sum(labels == kind)))
    return np.mean(scores)


def auc(logits, labels):
    areas, kinds = [], range(logits.shape[1])
    for kind in [1] if len(kinds) == 2 else kinds:
        others = np.log(np.exp(np.delete(logits, kind, axis=1)).sum(axis=1))
        odds = (logits[:, kind] - others).astype(np.float32)
        inside, outside = odds[labels == kind], odds[labels != kind]
        if len(inside) and len(outside):
            wins = inside[:, None] - outside
            areas.append(np.mean((wins > 0) + (wins == 0) / 2))
    return np.mean(areas)


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize(("name", "expected"), [("accuracy", accuracy), ("macro-f1", f1), ("roc-auc", auc)])
def test_measures_are_their_definitions(name, expected, classes):
    generator = torch.Generator().manual_seed(classes)
    logits = torch.randint(0, 4, (3, 60, classes), generator=generator).float()  # with ties
    labels = torch.randint(0, classes - (classes > 3), (60,), generator=generator)  # one class may be empty
    mask = torch.rand((3, 60), generator=generator) < 0.6
    found = MEASURES[name](logits, labels, mask.float())
    for row in range(3):
        mine = mask[row]
        assert found[row].item() == pytest.approx(
            expected(logits[row][mine].double().numpy(), labels[mine].numpy()), abs=1e-6
        )


def test_the_mean_of_a_row_has_the_same_bits_alone_and_among_others():
    threads = torch.get_num_threads()
    values, mask = torch.rand(3, 70_001), torch.ones(3, 70_001)
    try:
        torch.set_num_threads(2)  # which cut one long row, but not several
        together = mean_at(values, mask)
        assert all(torch.equal(mean_at(values[row : row + 1], mask[:1])[0], together[row]) for row in range(3))
    finally:
        torch.set_num_threads(threads)


def test_a_measure_of_ones_own_decides_the_kept_epoch(monkeypatch):
    monkeypatch.setitem(MEASURES, "few", lambda logits, labels, mask: -logits.abs().amax(dim=(1, 2)))
    told = experiment(epochs=30)
    training = TrainingSettings(epochs=30, measure="few")
    [outcome] = fit(Batch(type(told)(data=told.data, hidden=8, training=training), [trial("dropedge@0.5")]))
    assert outcome.best_epoch == np.nanargmax(outcome.curves["val_score"])
    assert outcome.val_score < 0


def test_a_part_without_both_classes_has_no_area_and_fails():
    logits, labels = torch.randn(1, 4, 2), torch.tensor([0, 0, 1, 1])
    assert MEASURES["roc-auc"](logits, labels, torch.tensor([[1.0, 1.0, 0.0, 0.0]])).isnan().item()


def test_the_default_measure_is_the_area_where_one_of_two_classes_is_rare():
    assert default_measure(load("karate")) == "accuracy"
    data = load("clusters", clusters=2, nodes=30)
    labels = torch.zeros(60, dtype=torch.int64)
    labels[:15] = 1
    assert default_measure(data) == "accuracy"
    assert default_measure(type(data)("rare", data.graph, data.features, labels, splits=data.splits)) == "roc-auc"
