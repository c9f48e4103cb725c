"""A trained model on disk."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv

from tadropedge import TadropedgeError
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.data.load import load as load_data
from tadropedge.lab.training.batch import Batch
from tadropedge.lab.training.experiment import Experiment
from tadropedge.lab.training.model import load, save
from tadropedge.lab.training.trainer import Trainer
from tadropedge.lab.training.trial import TrainingSettings, Trial

NAMES = ("original", "gat+dropedge@0.5", "degree-proportional@0.5:weighted", "sage+jaccard-proportional@0.5:pruned")


class Own(nn.Module):
    def __init__(self, num_features, num_classes, hidden=8):
        super().__init__()
        self.first, self.second = GCNConv(num_features, hidden), GCNConv(hidden, num_classes)

    def forward(self, x, edge_index, edge_weight=None):
        return self.second(self.first(x, edge_index, edge_weight).relu(), edge_index, edge_weight)


def trained(name="dropedge@0.5", model=None, **settings):
    data = load_data("clusters")
    experiment = Experiment(data=data, hidden=8, training=TrainingSettings(epochs=4), model=model)
    trial = Trial(candidate=Candidate.parse(name), settings=settings, seed=3)
    return experiment, Trainer(experiment).train([trial], keep_state=True)[0]


@pytest.mark.parametrize("name", NAMES)
def test_what_was_saved_predicts_what_the_kept_epoch_predicted(tmp_path, name):
    experiment, outcome = trained(name)
    model = load(save(tmp_path / "model.safetensors", outcome, experiment))
    assert model.trial == outcome.trial
    assert model.trained_on == "clusters"
    predicted = model.predict(experiment.data)
    batch = Batch(experiment, [outcome.trial])
    correct = (predicted == experiment.data.labels).float()[None]
    for part, score in ((batch.val, outcome.val_score), (batch.test, outcome.test_score)):
        assert float((correct * part).sum() / part.sum()) == pytest.approx(score)


def test_your_own_model_is_made_again_by_its_factory(tmp_path):
    experiment, outcome = trained(model=Own)
    path = save(tmp_path / "model.safetensors", outcome, experiment)
    found = load(path, model=Own).logits(experiment.data)
    assert found.shape == (240, 4)
    with pytest.raises(TadropedgeError, match="'Own'"):
        load(path)


def test_another_graph_with_the_same_features(tmp_path):
    experiment, outcome = trained("degree-proportional@0.5:weighted")
    model = load(save(tmp_path / "model.safetensors", outcome, experiment))
    assert model.predict(load_data("clusters", seed=4)).shape == (240,)
    with pytest.raises(TadropedgeError, match="16 features, karate has 34"):
        model.predict(load_data("karate"))


def test_any_changed_byte_is_refused(tmp_path):
    experiment, outcome = trained()
    path = save(tmp_path / "model.safetensors", outcome, experiment)
    content = path.read_bytes()
    generator = torch.Generator().manual_seed(0)
    for place in torch.randint(len(content), (40,), generator=generator).tolist():
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(TadropedgeError, match="model"):
            load(path).predict(experiment.data)
    for length in (0, 7, 100, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(TadropedgeError, match="model"):
            load(path)


def test_a_file_that_is_no_model_is_not_replaced(tmp_path):
    experiment, outcome = trained()
    path = tmp_path / "thesis.tex"
    path.write_text("chapter")
    with pytest.raises(TadropedgeError, match="thesis"):
        save(path, outcome, experiment)
    assert path.read_text() == "chapter"
    path.unlink()
    save(path, outcome, experiment)
    save(path, outcome, experiment)  # a model is


def test_what_cannot_be_saved(tmp_path):
    experiment, outcome = trained()
    for wrong, word in ((replace(outcome, failed=True), "failed"), (replace(outcome, state=None), "keep_state")):
        with pytest.raises(TadropedgeError, match=word):
            save(tmp_path / "model.safetensors", wrong, experiment)
    assert not list(tmp_path.iterdir())
