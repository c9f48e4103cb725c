"""Measures against dense references, node by node and pair by pair."""

from dataclasses import replace

import numpy as np
import optuna
import pytest
import torch

from tadropedge.data import Split, load_clusters, load_karate, load_source_localization
from tadropedge.errors import TadropedgeError
from tadropedge.registry import MEASURES
from tadropedge.search import Finished, Ledger, Space, run_search
from tadropedge.training.config import METRICS, Architecture, Trial
from tadropedge.training.laboratory import Laboratory, make_task
from tadropedge.training.measures import accuracy, default_measure, macro_f1, roc_auc


def dense_auc(logits, labels):
    """Every pair of a node inside and one outside, class by class, in float64."""
    z, areas = logits.astype(np.float64), []
    for kind in range(z.shape[1]):
        others = np.log(np.exp(np.delete(z, kind, axis=1)).sum(axis=1))
        score, mine = z[:, kind] - others, labels == kind
        if mine.any() and not mine.all():
            gaps = np.round(score[mine][:, None] - score[~mine][None, :], 12)
            areas.append(((gaps > 0) + 0.5 * (gaps == 0)).mean())
    return np.mean(areas)


def dense_f1(logits, labels):
    """From the confusion matrix."""
    table = np.zeros((logits.shape[1],) * 2)
    np.add.at(table, (labels, logits.argmax(axis=1)), 1)
    present = (table.sum(axis=0) + table.sum(axis=1)) > 0
    precision = np.diag(table) / np.maximum(table.sum(axis=0), 1)
    recall = np.diag(table) / np.maximum(table.sum(axis=1), 1)
    with np.errstate(invalid="ignore"):
        f1 = np.nan_to_num(2 * precision * recall / (precision + recall))
    return f1[present].mean()


REFERENCES = {
    "accuracy": lambda logits, labels: (logits.argmax(axis=1) == labels).mean(),
    "roc-auc": dense_auc,
    "macro-f1": dense_f1,
}


def test_every_measure_has_a_reference():
    assert set(MEASURES) == set(REFERENCES)


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("ties", [False, True])
def test_measures_equal_their_dense_references(name, classes, ties, device):
    random = np.random.default_rng(classes)
    logits = random.standard_normal((4, 60, classes))
    if ties:  # few values, so nodes share them
        logits = np.round(logits)
    labels = random.integers(-1, classes, size=60)
    mask = (random.random((4, 60)) < 0.5) & (labels >= 0)
    z, mine = torch.tensor(logits, dtype=torch.float32, device=device), torch.tensor(labels, device=device)
    found = MEASURES[name](z, mine, torch.tensor(mask, dtype=torch.float32, device=device))
    assert found.shape == (4,)
    assert found.device.type == torch.device(device).type
    expected = [REFERENCES[name](z[t].cpu().numpy()[mask[t]], labels[mask[t]]) for t in range(4)]
    torch.testing.assert_close(found.cpu(), torch.tensor(expected, dtype=torch.float32), atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", REFERENCES)
def test_labels_may_differ_between_trials(name):
    random = torch.Generator().manual_seed(3)
    logits, mask = torch.randn(3, 40, 4, generator=random), torch.ones(3, 40)
    labels = torch.randint(4, (3, 40), generator=random)
    alone = [MEASURES[name](logits[t, None], labels[t], mask[:1]) for t in range(3)]
    torch.testing.assert_close(MEASURES[name](logits, labels, mask), torch.cat(alone))


def test_known_areas():
    logits = torch.tensor([[[0.0, 1], [0, 2], [0, 3], [0, 4]], [[0.0, 4], [0, 3], [0, 2], [0, 1]], [[1.0, 1]] * 4])
    labels = torch.tensor([0, 0, 1, 1])
    assert roc_auc(logits, labels, torch.ones(3, 4)).tolist() == [1.0, 0.0, 0.5]
    # A class that the part does not hold, or holds alone, has no area.
    three = torch.tensor([[[3.0, 0, 0], [0, 3, 0], [3, 0, 0], [0, 0, 9]]])
    part = torch.tensor([[1.0, 1, 1, 0]])
    assert roc_auc(three, torch.tensor([0, 1, 0, 2]), part).tolist() == [1.0]
    assert roc_auc(three, torch.tensor([0, 0, 0, 2]), part).isnan().all()


def test_confident_models_are_still_ranked():
    # Probabilities of float32 would be 1 for both: log-odds are not.
    logits = torch.tensor([[[0.0, 40.0], [0.0, 50.0]]])
    assert roc_auc(logits, torch.tensor([0, 1]), torch.ones(1, 2)).tolist() == [1.0]


def test_macro_f1_counts_classes_that_occur():
    # Class 2 occurs nowhere; class 1 is only predicted: its F1 is 0 and counts.
    logits = torch.eye(3)[[0, 1, 0]][None]
    assert macro_f1(logits, torch.tensor([0, 0, 0]), torch.ones(1, 3)).tolist() == pytest.approx([0.4])
    assert macro_f1(logits, torch.tensor([0, 0, 0]), torch.tensor([[1.0, 0, 1]])).tolist() == [1.0]


def test_what_lies_outside_the_part_is_never_looked_at():
    random = torch.Generator().manual_seed(5)
    logits, labels = torch.randn(1, 30, 3, generator=random), torch.randint(3, (30,), generator=random)
    mask = torch.ones(1, 30)
    mask[:, 20:] = 0
    wild = logits.clone()
    wild[:, 20:25], wild[:, 25:] = float("inf"), -1e30
    for measure in (accuracy, roc_auc, macro_f1):
        assert torch.equal(measure(logits, labels, mask), measure(wild, labels, mask))


def test_the_default_measure_of_unbalanced_pairs_is_roc_auc():
    data = load_clusters(clusters=2, nodes=30)
    assert default_measure(data) == "accuracy"
    for small, name in ((20, "roc-auc"), (21, "accuracy")):
        labels = (torch.arange(60) < small).long()
        split = Split(torch.tensor([0, 59]), torch.arange(1, 20), torch.arange(40, 58))
        assert default_measure(replace(data, labels=labels, split=split)) == name


@pytest.mark.parametrize("measure", ["roc-auc", "macro-f1"])
def test_another_measure_is_recorded_beside_accuracy(measure, device):
    data = load_karate().to(device)
    trials = [Trial("dropedge", seed=seed, split=seed) for seed in range(3)]
    plain = Laboratory(data, Architecture(hidden=8), epochs=12).train(trials)
    lab = Laboratory(data, Architecture(hidden=8), epochs=12, measure=measure, evaluate_every=5)
    states = lab.train(trials, keep_state=True)
    for mine, other, trial in zip(states, plain, trials, strict=True):
        seen = np.isfinite(mine.val_loss)
        assert seen.nonzero()[0].tolist() == [4, 9, 11]
        for name in METRICS:
            assert np.array_equal(getattr(mine, name)[seen], getattr(other, name)[seen])
        assert np.isfinite(mine.val_score[seen]).all()
        assert np.isnan(mine.val_score[~seen]).all()
        assert not np.array_equal(mine.test_score[seen], mine.test_accuracy[seen])
        assert set(mine.kept) == {*METRICS, "val_score", "test_score"}
        assert other.val_score is other.val_accuracy
        assert set(other.kept) == set(METRICS)
        # The kept model, evaluated here once more.
        network = make_task(data).network(lab.architecture, [trial])
        state = {key: torch.from_numpy(value)[None].to(device) for key, value in mine.state.items()}
        logits = network.evaluation(state, make_task(data).inputs(), torch.zeros((), dtype=torch.int64, device=device))
        test = lab.split(trial.split).test.cpu().numpy()
        expected = REFERENCES[measure](logits[0].detach().cpu().numpy()[test], data.labels.cpu().numpy()[test])
        assert mine.kept["test_score"] == pytest.approx(expected, abs=1e-6)


def test_scores_are_stored_where_they_are_not_accuracies():
    memory, data = optuna.storages.InMemoryStorage(), load_karate()
    space = Space.of({"dropout": [0.3, 0.5]})
    for measure in ("accuracy", "roc-auc"):
        lab = Laboratory(data, Architecture(hidden=8), epochs=6, measure=measure)
        given = {"name": measure, "settings": lab.settings}
        rows = run_search(lab.train, space, ["cdf"], 3, 0, memory, **given)["cdf"]
        ledger = Ledger(memory, f"{measure}/search/cdf", "cdf", space, {"seed": 0, **lab.settings})
        assert [ledger.finished[row.index] for row in rows] == rows
        study = optuna.load_study(study_name=ledger.name, storage=memory)
        for row, stored in zip(rows, study.get_trials(), strict=True):
            plain = measure == "accuracy"
            assert ("val_score" in stored.user_attrs, "test_score" in stored.user_attrs) == (not plain, not plain)
            assert stored.value == row.val_score
            assert (row.scores is None) == plain
            assert (row.val_score == row.val_accuracy) == plain
    with pytest.raises(TadropedgeError, match=r"was made with measure='roc-auc' \(now None\)"):
        Ledger(memory, ledger.name, "cdf", space, {"seed": 0, **replace(lab, measure="accuracy").settings})


@pytest.mark.parametrize(
    ("epoch", "epochs", "expected"), [(379, 400, 1), (380, 400, 0), (18, 20, 1), (3, 4, 0), (2, 4, 1)]
)
def test_a_kept_model_of_the_last_epochs_has_not_converged(epoch, epochs, expected):
    numbers = dict.fromkeys(METRICS, 0.5)
    assert Finished(0, Trial(), **numbers, best_epoch=epoch).converged(epochs) == bool(expected)


def test_graph_level_tasks_have_every_measure():
    data = load_source_localization(nodes=10, communities=2, times=3, sizes=(20, 20, 30))
    for measure in ("roc-auc", "macro-f1"):
        lab = Laboratory(data, Architecture("gcnn", 1, 8), epochs=5, measure=measure, choose_splits=2)
        for outcome in lab.train([Trial(split=split) for split in range(4)]):
            assert 0 <= outcome.kept["val_score"] <= 1
            assert 0 <= outcome.kept["test_score"] <= 1


def test_a_part_of_one_class_has_no_area():
    data = load_karate()
    alone = (data.labels == 0).nonzero()[:, 0]
    train = torch.cat([(data.labels == kind).nonzero()[-1] for kind in range(4)])
    rest = torch.tensor([node for node in range(34) if node not in {*alone.tolist(), *train.tolist()}])
    lab = Laboratory(replace(data, split=Split(train, alone[:3], rest)), measure="roc-auc")
    with pytest.raises(TadropedgeError, match=r"all 3 of split.val of split 0 are of one class, where roc-auc has no"):
        lab.train([Trial()])
    with pytest.raises(TadropedgeError, match="unknown measure 'auc'; choose from accuracy, roc-auc, macro-f1"):
        Laboratory(data, measure="auc")
