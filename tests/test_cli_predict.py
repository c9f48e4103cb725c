"""``tadropedge predict``: the csv holds the softmax of what the trainer evaluated; what does not fit is one line."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tadropedge.cli import app
from tadropedge.data import load_clusters, load_dataset
from tadropedge.errors import TadropedgeError
from tadropedge.predicting import predict, write_predictions
from tadropedge.training.model_file import load_model

EDGES = "source,target\nana,bo\nbo,cy\ncy,ana\ncy,dee\ndee,eli\neli,flo\nflo,dee\n"
NODES = "node,x1,x2,label\nana,1,0,red\nbo,1,0.5,red\ncy,0.5,0,red\ndee,0,1,blue\neli,0,2,blue\nflo,0.5,1,blue\n"
OWN = """
from torch import nn

class Hop(nn.Module):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.linear = nn.Linear(num_features, num_classes)

    def forward(self, x, edge_index, edge_weight=None):
        return self.linear(x)
"""


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def trained(folder, *arguments):
    result = run("train", *arguments, "--out", folder)
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("model"), "clusters", "--epochs", 8, "--method", "dropedge", "--hidden", 8)


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file, quoting=csv.QUOTE_NONNUMERIC))


def test_the_file_holds_the_softmax_of_the_logits_on_the_whole_graph(model, tmp_path):
    result = run("predict", model, "clusters", "--out", tmp_path / "p.csv", "--json")
    assert result.exit_code == 0, result.output
    data = load_clusters()
    logits = load_model(model).logits(data).double().numpy()
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    found = rows(tmp_path / "p.csv")
    classes = [f"probability of {number}" for number in range(data.num_classes)]
    assert list(found[0]) == ["node", "predicted", "probability", *classes]
    assert [row["node"] for row in found] == list(range(data.graph.num_nodes))
    assert np.allclose([[row[name] for name in classes] for row in found], expected, atol=1e-6)
    assert [row["predicted"] for row in found] == expected.argmax(axis=1).tolist()
    assert np.allclose([row["probability"] for row in found], expected.max(axis=1), atol=1e-6)
    summary = json.loads(result.stdout)
    assert summary["count"] == data.graph.num_nodes
    assert summary["accuracy"] == pytest.approx((expected.argmax(axis=1) == data.labels.numpy()).mean(), abs=1e-6)
    assert sum(summary["predicted"].values()) == data.graph.num_nodes


def test_a_model_evaluated_on_weighted_edges_predicts_on_them(tmp_path):
    """By the modes that it was trained with."""
    told = ("--method", "cdf:expected", "--keep-prob", 0, "--q", 2, "--laplacian", "normalized", "--hidden", 8)
    folder = trained(tmp_path, "noisy-clusters", "--epochs", 8, *told)
    data, kept = load_dataset("noisy-clusters"), load_model(folder)
    found = predict(folder, data)
    for name, part in (("val_accuracy", data.split.val), ("test_accuracy", data.split.test)):
        right = (found.predicted[part] == data.labels[part]).double().mean()
        assert float(right) == pytest.approx(kept.kept[name], abs=1e-6)
    assert (kept.q, kept.laplacian) == (2, "normalized")
    assert run("predict", folder, "noisy-clusters", "--out", tmp_path / "p.csv").exit_code == 0


def test_a_model_by_a_column_of_the_file_needs_it_again(tmp_path):
    head, *lines = EDGES.split()
    scored = [f"{head},trust", *(f"{line},{score}" for score, line in enumerate(lines))]
    for name, text in (("scored.csv", "\n".join(scored)), ("plain.csv", EDGES), ("nodes.csv", NODES)):
        (tmp_path / name).write_text(text)
    mine = ("--nodes", tmp_path / "nodes.csv", "--score-column", "trust")
    told = ("--method", "column-proportional:expected", "--keep-ratio", 0.5, "--hidden", 4, "--epochs", 3)
    folder = trained(tmp_path / "model", tmp_path / "scored.csv", *mine, "--per-class", 1, *told)
    out = ("--out", tmp_path / "p.csv")
    result = run("predict", folder, tmp_path / "plain.csv", *mine[:2], *out)
    assert isinstance(result.exception, TadropedgeError)
    assert str(result.exception).startswith("the score 'column' needs a column of your own file: --score-column NAME")
    result = run("predict", folder, tmp_path / "scored.csv", *mine, *out)
    assert result.exit_code == 0, result.output
    assert len(rows(tmp_path / "p.csv")) == 6


def test_the_accuracy_on_test_nodes_is_the_one_the_trainer_measured(model, device):
    data, saved = load_clusters(), load_model(model)
    found = predict(model, data.to(device))
    right = (found.predicted == data.labels)[data.split.test].float().mean()
    assert float(right) == pytest.approx(saved.kept["test_accuracy"], abs=1e-6)


def test_the_same_command_writes_the_same_bytes(model, tmp_path):
    for name in ("one.csv", "two.csv"):
        assert run("predict", model / "model.json", "clusters", "--out", tmp_path / name).exit_code == 0
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


def test_nodes_and_classes_have_their_own_names(tmp_path):
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "nodes.csv").write_text(NODES)
    own = (tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv")
    sizes = ("--per-class", 1, "--epochs", 3, "--hidden", 4, "--method", "original")
    folder = trained(tmp_path / "model", *own, *sizes)
    result = run("predict", folder, *own, "--out", tmp_path / "p.csv")
    assert result.exit_code == 0, result.output
    found = rows(tmp_path / "p.csv")
    assert [row["node"] for row in found] == ["ana", "bo", "cy", "dee", "eli", "flo"]
    assert {row["predicted"] for row in found} <= {"red", "blue"}
    assert {"probability of blue", "probability of red"} <= set(found[0])
    (tmp_path / "nodes.csv").write_text(NODES.replace("red", "green"))
    result = run("predict", folder, *own, "--out", tmp_path / "p.csv")
    assert "the classes of the model are blue, red, those of edges are blue, green" in str(result.exception)


def test_samples_of_a_graph_level_task(tmp_path):
    folder = trained(tmp_path / "m", "source-localization", "--epochs", 1, "--method", "original", "--hidden", 4)
    result = run("predict", folder, "source-localization", "--out", tmp_path / "p.csv", "--json")
    assert json.loads(result.stdout)["unit"] == "sample"
    data = load_dataset("source-localization")
    assert [row["sample"] for row in rows(tmp_path / "p.csv")] == list(range(len(data.labels)))


def test_your_own_model_is_named_and_never_imported_because_a_file_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "hops.py").write_text(OWN)
    more = ("--model", "hops:Hop")
    folder = trained(tmp_path / "m", "karate", "--epochs", 2, "--method", "original", *more)
    assert run("predict", folder, "karate", *more).exit_code == 0
    assert len(rows(tmp_path / "predictions.csv")) == 34
    from tadropedge.registry import NETWORKS

    del NETWORKS["hop"]  # as in a new process
    result = run("predict", folder, "karate")
    assert isinstance(result.exception, TadropedgeError)
    assert "unknown backbone 'hop'" in str(result.exception)
    assert "give --model MODULE:FACTORY" in str(result.exception)


REFUSED = {
    "no model": (["nowhere", "clusters"], "no model in 'nowhere': expected a folder with model.json"),
    "features": (["MODEL", "karate"], "the model expects 16 features, karate has 34"),
    "dataset": (["MODEL", "cluster"], "unknown dataset 'cluster'"),
    "level": (
        ["MODEL", "source-localization"],
        "the model knows 4 classes, source-localization has 5: it was trained on clusters",
    ),
    "folder": (
        ["MODEL", "clusters", "--out", "."],
        "--out must be a file for the predictions, got the folder or device '.'",
    ),
    "nodes": (["MODEL", "clusters", "--nodes", "x.csv"], "nodes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_one_line_and_writes_nothing(name, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, words = REFUSED[name]
    result = run("predict", *(model if word == "MODEL" else word for word in arguments))
    assert isinstance(result.exception, TadropedgeError), result.output
    assert words in str(result.exception)
    assert not list(tmp_path.iterdir())


def test_another_width_of_features_is_refused(model):
    data = load_clusters()
    narrow = type(data)(**{**vars(data), "features": data.features.to_dense()[:, :3].contiguous()})
    with pytest.raises(TadropedgeError, match=rf"expects {data.num_features} features, clusters has 3"):
        predict(model, narrow)


def test_names_that_a_spreadsheet_would_compute_are_inert(model, tmp_path):
    found = predict(model, load_clusters())
    found = type(found)(**{**vars(found), "names": ["=1+1", *map(str, found.names[1:])]})
    write_predictions(found, tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text().splitlines()[1].startswith('"\'=1+1",')


def test_a_full_folder_keeps_the_file_that_was_there(model, tmp_path, monkeypatch):
    (tmp_path / "p.csv").write_text("before")
    monkeypatch.setattr("tadropedge.predicting.csv_lines", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(TadropedgeError, match=r"p\.csv"):
        write_predictions(predict(model, load_clusters()), tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text() == "before"
