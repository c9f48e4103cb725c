"""``tde.compare``: what data it takes, and that it runs what the command line runs."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from test_own_models import OwnGCN
from torch import nn
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset

import tadropedge as tde
from tadropedge.cli import app
from tadropedge.comparison.comparison import DEFAULT_METHODS
from tadropedge.comparison.results import read_results
from tadropedge.data import as_dataset, load_clusters, load_dataset
from tadropedge.errors import TadropedgeError
from tadropedge.registry import NETWORKS
from tadropedge.training.batch import Batch as Training

BUDGET = {"trials": 2, "seeds": 2, "choose_splits": 1, "epochs": 3, "progress": False}
ROWS = ["original", "dropedge", "cdf"]


@pytest.fixture(autouse=True)
def tidy():
    """Networks that a test registers go with it."""
    before = set(NETWORKS)
    yield
    for name in set(NETWORKS) - before:
        del NETWORKS[name]


def saved(**more):
    """The clusters as a ``Data`` with masks."""
    made = load_clusters(nodes=20, clusters=2)
    masks = {f"{name}_mask": torch.zeros(40, dtype=torch.bool) for name in ("train", "val", "test")}
    for (_, part), mask in zip(made.split.parts(), masks.values(), strict=True):
        mask[part] = True
    return Data(x=made.features, y=made.labels, edge_index=made.graph.pairs, **masks, **more)


class Listed(InMemoryDataset):
    """A PyG dataset of some graphs."""

    def __init__(self, graphs):
        super().__init__(None)
        self.data, self.slices = self.collate(graphs)


# -- data ---------------------------------------------------------------------------------------------------------


def test_every_kind_of_data_is_the_same_data(tmp_path):
    data = saved()
    torch.save(data, tmp_path / "mine.pt")
    kinds = [data, Listed([data]), as_dataset(data), tmp_path / "mine.pt", str(tmp_path / "mine.pt")]
    found = [as_dataset(kind) for kind in kinds]
    assert [one.name for one in found] == ["data", "Listed", "data", "mine", "mine"]
    for one in found:
        assert one.graph.fingerprint == found[0].graph.fingerprint
        assert torch.equal(one.features, data.x)
        assert torch.equal(one.labels, data.y)
        assert one.split.train.tolist() == data.train_mask.nonzero()[:, 0].tolist()
    assert as_dataset("karate").labels.equal(load_dataset("karate").labels)


def test_splits_are_those_of_the_masks_or_drawn():
    data = saved()
    assert as_dataset(data).split.sizes == tuple(int(data[f"{name}_mask"].sum()) for name in ("train", "val", "test"))
    bare = Data(x=data.x, y=data.y, edge_index=data.edge_index)
    for drawn in (
        as_dataset(data, per_class=3),
        as_dataset(bare, per_class=3),
        as_dataset(data, split_sizes=(6, 9, 9)),
    ):
        assert drawn.split.sizes[0] == 6
    assert as_dataset(bare, per_class=3).way.words == "3 of each class to train, 11 others to validate, 23 to test"
    assert (
        as_dataset(bare, per_class=3, seed=1).split.train.tolist() != as_dataset(bare, per_class=3).split.train.tolist()
    )
    half = Data(x=data.x, y=data.y, edge_index=data.edge_index, train_mask=data.train_mask)
    assert as_dataset(half, split="random", per_class=2).split.sizes[0] == 4
    with pytest.raises(TadropedgeError, match="data: the split is not whole: there is no val_mask and no test_mask"):
        as_dataset(half)


def test_a_data_is_left_as_it_is():
    data = saved(edge_weight=torch.rand(load_clusters(nodes=20, clusters=2).graph.num_edges) + 0.5)
    before = {name: value.clone() for name, value in data.to_dict().items()}
    made = as_dataset(data)
    assert made.graph.weight is not None
    assert all(torch.equal(data[name], value) for name, value in before.items())
    assert set(data.keys()) == set(before)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Listed([saved(), saved()]), "got Listed of 2 graphs: pass one of them, such as dataset\\[0\\]"),
        (lambda: Batch.from_data_list([saved(), saved()]), "got a Batch of 2 graphs"),
        (HeteroData, "data must be a Data of one graph, .* got HeteroData"),
        (lambda: 3, "data must be a Data of one graph, .* got int 3"),
        (lambda: None, "data must be a Data of one graph, .* got NoneType None"),
        (lambda: Data(edge_index=saved().edge_index), "data: expected a Data with tensors .* found no x"),
        (lambda: Data(x=torch.ones(3, 1), y=torch.tensor([0, 1, 0])), "found no edge_index"),
        (lambda: "no-such-name", "unknown dataset 'no-such-name'"),
    ],
)
def test_what_is_no_data_is_refused(make, words):
    with pytest.raises(TadropedgeError, match=words):
        as_dataset(make())


# -- comparisons --------------------------------------------------------------------------------------------------


def test_it_finds_what_the_command_finds(tmp_path):
    found = tde.compare("karate", ["cdf"], hidden=4, out=tmp_path / "function", **BUDGET)
    command = ["compare", "karate", "--methods", "cdf", "--hidden", "4", "--out", str(tmp_path / "command"), "--json"]
    app([*command, "--trials", "2", "--seeds", "2", "--choose-splits", "1", "--epochs", "3"], standalone_mode=False)
    one, two = (json.loads((tmp_path / name / "results.json").read_text()) for name in ("function", "command"))
    assert {key: value for key, value in one.items() if key != "run"} == {
        key: value for key, value in two.items() if key != "run"
    }
    assert [row.method for row in found.rows] == ROWS
    files = {path.relative_to(tmp_path / "function").as_posix() for path in (tmp_path / "function").rglob("*.*")}
    assert files == {path.relative_to(tmp_path / "command").as_posix() for path in (tmp_path / "command").rglob("*.*")}


def test_printing_shows_the_advice_and_the_table():
    found = tde.compare("karate", ["cdf"], hidden=4, **BUDGET)
    text = str(found)
    assert text.startswith(found.advice.words[:60])
    assert "karate, gcn with 2 layers" in text
    assert all(method in text for method in ROWS)
    assert max(map(len, text.splitlines())) <= 120
    assert repr(found) == text


def test_nothing_is_written_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tde.compare(saved(), ["dropedge"], hidden=4, **BUDGET)
    assert list(tmp_path.iterdir()) == []


def test_an_own_model_is_compared_written_and_resumed(tmp_path, monkeypatch):
    data, told = saved(), []
    first = tde.compare(data, ["cdf"], OwnGCN, out=tmp_path, **BUDGET)
    assert [(row.method, row.backbone, row.layers) for row in first.rows] == [(name, "owngcn", 2) for name in ROWS]
    assert set(first.rows[0].settings) == {"learning_rate", "weight_decay", "dropout"}
    assert [row.honest for row in read_results(tmp_path / "results.json").rows] == [row.honest for row in first.rows]

    def refuse(*_):
        raise AssertionError("trained again")

    monkeypatch.setattr(Training, "run", refuse)
    again = tde.compare(
        data, ["cdf"], OwnGCN, storage=tmp_path / "study.db", **{**BUDGET, "progress": lambda *done: told.append(done)}
    )
    assert again.rows == first.rows
    assert told[-1][0] == told[-1][1]

    class Changed(OwnGCN):
        def forward(self, x, edge_index, edge_weight=None):
            return 2 * super().forward(x, edge_index, edge_weight)

    Changed.__name__ = "OwnGCN"
    with pytest.raises(TadropedgeError, match="was made with other code of 'owngcn'; take the old code"):
        tde.compare(data, ["cdf"], Changed, storage=tmp_path / "study.db", **BUDGET)


class Unweighted(OwnGCN):
    """A module that takes no weights of edges."""

    def forward(self, x, edge_index):
        return super().forward(x, edge_index)


@pytest.mark.filterwarnings("ignore:with unbiased")  # on its normalisation
def test_a_default_method_that_cannot_be_used_is_left_out_and_a_named_one_is_refused():
    data = saved()
    with pytest.warns(UserWarning, match="^dropedge:unbiased is left out: .* not their weights") as said:
        found = tde.compare(data, model=Unweighted, **BUDGET)
    assert sum("left out" in str(one.message) for one in said) == 1
    assert [row.method for row in found.rows] == [name for name in DEFAULT_METHODS if name != "dropedge:unbiased"]
    with pytest.raises(TadropedgeError, match="not their weights"):
        tde.compare(data, ["dropedge:unbiased"], Unweighted, **BUDGET)


def test_costs_are_timed_once_for_the_same_rows(tmp_path, monkeypatch):
    first = tde.compare("karate", ["cdf"], out=tmp_path, hidden=4, **BUDGET)
    costs = first.run["costs"]
    assert list(costs) == ROWS
    assert all(
        one["epoch"] > 0 and one["training"] == pytest.approx(3 * one["epoch"], rel=0.02) for one in costs.values()
    )
    assert [one["scores"] > 0 for one in costs.values()] == [False, False, True]
    monkeypatch.setattr("tadropedge.comparing.costs", None)  # not called again
    again = tde.compare("karate", ["cdf"], out=tmp_path, hidden=4, **BUDGET)
    assert again.run["costs"] == costs
    assert again.data == first.data
    elsewhere = tde.compare("karate", ["cdf"], storage=tmp_path / "study.db", hidden=4, **BUDGET)
    assert "costs" not in elsewhere.run  # nothing was trained, so nothing is timed


def test_costs_that_a_kill_prevented_are_timed_by_the_next_run(tmp_path, monkeypatch):
    """All is trained and nothing written: the same command trains nothing, and its files lack nothing."""

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tadropedge.comparing.costs", killed)
        with pytest.raises(KeyboardInterrupt):
            tde.compare("karate", ["cdf"], out=tmp_path, hidden=4, **BUDGET)
    assert not (tmp_path / "results.json").exists()
    monkeypatch.setattr("tadropedge.search.engine._run", None)  # nothing is left to train
    assert list(tde.compare("karate", ["cdf"], out=tmp_path, hidden=4, **BUDGET).run["costs"]) == ROWS


def test_costs_that_an_older_version_did_not_time_stay_unknown(tmp_path, monkeypatch):
    tde.compare("karate", ["cdf"], out=tmp_path, hidden=4, **BUDGET)
    document = json.loads((tmp_path / "results.json").read_text())
    del document["run"]["costs"]
    (tmp_path / "results.json").write_text(json.dumps(document))
    monkeypatch.setattr("tadropedge.comparing.costs", None)  # nothing was trained, so nothing is timed
    assert "costs" not in tde.compare("karate", ["cdf"], out=tmp_path, hidden=4, **BUDGET).run


def test_an_own_model_resumes_in_the_middle(tmp_path, monkeypatch):
    data, runs, run = saved(), [], Training.run
    alone = tde.compare(data, ["cdf"], OwnGCN, **BUDGET)

    def interrupted(self, *arguments):
        runs.append(self)
        if len(runs) == 5:
            raise KeyboardInterrupt
        return run(self, *arguments)

    monkeypatch.setattr(Training, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tde.compare(data, ["cdf"], OwnGCN, storage=tmp_path / "study.db", **BUDGET)
    resumed = tde.compare(data, ["cdf"], OwnGCN, storage=tmp_path / "study.db", **BUDGET)
    assert resumed.rows == alone.rows
    timed = 3 * 3  # of each row: to warm up, a short training, a longer one
    # Four entrants, two trials and two fresh seeds: nothing twice but the fifth.
    assert len(runs) - 1 == 4 * 2 + 4 * 2 + timed


def test_models_without_dropout_have_none_in_the_report():
    class Linear(nn.Module):
        def __init__(self, num_features, num_classes):
            super().__init__()
            self.layer = nn.Linear(num_features, num_classes)

        def forward(self, x, edge_index):
            return self.layer(x)

    found = tde.compare(saved(), ["dropedge"], Linear, **BUDGET)
    assert "dropout" not in found.rows[0].settings
    assert "kept_share" in found.rows[1].settings


def test_an_own_model_stands_beside_the_backbones():
    tde.compare(saved(), ["original"], OwnGCN, **BUDGET)  # from now on it has a name
    found = tde.compare(saved(), ["owngcn+cdf"], hidden=4, **BUDGET)
    assert [row.method for row in found.rows] == ["owngcn", "owngcn+dropedge", "owngcn+cdf"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"methods": "cdf"}, r"methods must be a list of methods, got the text 'cdf': write \['cdf'\]"),
        ({"methods": ["cdf", "cdf"]}, "methods name 'cdf' more than once"),
        ({"methods": ["no"]}, "unknown method 'no'"),
        ({"backbone": "gcn", "model": OwnGCN}, "model and backbone exclude each other"),
        ({"device": "tpu"}, "tpu"),
        ({"epoch": 3}, "unknown setting of compare 'epoch'.*did you mean 'epochs'"),
        ({"trails": 3}, "unknown setting of compare 'trails'.*did you mean 'trials'"),
        ({"noise": 3}, "unknown option of karate 'noise'; choose from seed"),  # of other data
        ({"per_class": 5}, "class 2 has 4 labelled nodes, which is less than per_class=5"),
        ({"per_class": "most"}, "per_class must be a whole number of at least 1, or 'full', got 'most'"),
        ({"keep_ratio": 0}, "keep_ratio must be above 0, got 0"),
        ({"add_edges": -1}, r"add_edges must lie in \[0, 1e\+06\], got -1"),
        ({"hide_features": 2}, r"hide_features must lie in \[0, 1\], got 2"),
        ({"layers": 3, "model": OwnGCN}, "layers=3 cannot be used: the model 'OwnGCN' takes no layers"),
        ({"model": nn.Linear(2, 2)}, "got a module: pass what makes it, such as Linear"),
        ({"per_layer": True, "model": OwnGCN}, "the layers inside the model 'owngcn' are not seen"),
    ],
)
def test_bad_arguments_are_named(wrong, words, tmp_path):
    with pytest.raises(TadropedgeError, match=words):
        tde.compare(**{"data": "karate", "out": tmp_path / "made", **BUDGET, **wrong})
    assert not (tmp_path / "made" / "results.json").exists()


def test_a_dataset_that_was_changed_is_another_study(tmp_path):
    made = as_dataset(saved())
    tde.compare(made, ["original"], hidden=4, storage=tmp_path / "study.db", **BUDGET)
    with pytest.raises(TadropedgeError, match="other features"):
        tde.compare(
            replace(made, features=made.features + 1), ["original"], hidden=4, storage=tmp_path / "study.db", **BUDGET
        )
    assert np.isfinite(made.features.numpy()).all()


@pytest.mark.parametrize(
    ("score", "words"),
    [
        (lambda graph: -torch.ones(graph.num_edges), "the score 'wrong' must be finite and at least 0, got -1"),
        (lambda graph: 1 / 0, "the score 'wrong' raised ZeroDivisionError"),
    ],
)
def test_a_score_that_fails_is_refused_before_anything_is_trained(score, words, monkeypatch):
    monkeypatch.setitem(tde.SCORES, "wrong", score)
    monkeypatch.setattr(Training, "run", lambda *_: pytest.fail("something was trained"))
    with pytest.raises(TadropedgeError, match=words):
        tde.compare("karate", ["dropedge", "wrong-cdf"], trials=1, seeds=2, choose_splits=1, epochs=1, hidden=2)
