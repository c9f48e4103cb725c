"""``compare`` from end to end, on graphs so small that it takes seconds."""

import json

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import tadropedge as tde
from tadropedge.lab import NETWORKS, Candidate, Search, Store, TrainingSettings, load
from tadropedge.lab.comparison.claims import controls_of, defaults

METHODS = ["dropedge", "gat", "degree-proportional:weighted"]
SHORT = {"training": TrainingSettings(epochs=4), "hidden": 4}


def quick(data, methods=None, *, trials=2, replicates=2, **settings):
    return tde.compare(data, methods, search=Search(trials=trials, replicates=replicates), **{**SHORT, **settings})


class Watch:
    def __init__(self):
        self.estimated, self.done = None, 0

    def estimate(self, found):
        self.estimated = found.trainings

    def trained(self, count):
        self.done += count


@pytest.fixture(scope="module")
def karate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("karate")
    watch = Watch()
    return quick("karate", METHODS, controls="all", out=folder, watch=watch), folder, watch


def test_every_candidate_is_searched_and_held_against_original(karate):
    found, _, _ = karate
    assert [row.candidate for row in found.rows][:4] == ["original", *METHODS]
    for row in found.rows:
        assert [one.number for one in row.replicates] == [0, 1]
        assert all(0 <= one.test <= 1 for one in row.replicates)
        assert {"learning_rate", "weight_decay", "dropout", "method"} <= set(row.replicates[0].chosen)
        assert row.seconds_per_epoch["train"] > 0
        assert row.peak_bytes > 0
    assert found.yardstick.candidate == "mlp"
    assert found.run["split"] != "fixed"
    assert found.run["data"]["edges"] == 78
    of_dropedge = [one.chosen for one in found.row("dropedge").replicates]
    assert all(one["method"] == f"dropedge@{one['keep_ratio']}" for one in of_dropedge)
    assert "keep_ratio" not in found.row("original").replicates[0].chosen
    assert found.row("original").replicates[0].kept_share == 1.0
    against = found.row("degree-proportional:weighted").against
    assert list(against)[:2] == ["original", "dropedge"]
    assert "degree-proportional:pruned" in against
    assert all(name in found for name in against)


def test_a_second_call_trains_nothing_and_finds_the_same(karate):
    found, folder, first = karate
    assert first.estimated == 5 * 2 * 2  # with the yardstick
    assert first.done > first.estimated  # and the controls
    watch = Watch()
    again = quick("karate", METHODS, controls="all", out=folder, watch=watch)
    assert watch.estimated == 0
    assert again.rows == found.rows
    assert json.loads((folder / "results.json").read_text())["rows"] == found.as_dict()["rows"]


def test_comparisons_share_an_open_store(karate):
    found, folder, _ = karate
    watch = Watch()
    with Store(folder) as store:
        again = quick("karate", METHODS[:1], out=store, watch=watch)
        assert store.get([]) == {}  # it is still open
    assert watch.estimated == 0
    assert again.row("dropedge").tests == found.row("dropedge").tests


def test_an_object_of_pyg_and_its_own_fixed_split():
    torch.manual_seed(0)
    edges = torch.randint(60, (2, 200))
    masks = {f"{part}_mask": torch.arange(60) % 3 == place for place, part in enumerate(("train", "val", "test"))}
    data = Data(x=torch.randn(60, 5), edge_index=torch.cat((edges, edges.flip(0)), 1), y=torch.arange(60) % 2, **masks)
    found = quick(data, ["dropedge"])
    assert found.run["split"] != "fixed"
    fixed = quick(load(data, split="own"), ["dropedge"], replicates=3)
    assert fixed.run["split"] == "fixed"
    assert all(row.against == {} for row in fixed.rows)
    assert len({json.dumps(one.chosen) for one in fixed.row("dropedge").replicates}) == 1


def test_a_module_of_ones_own():
    found = quick("karate", ["dropedge"], model=lambda features, classes: GCN(features, 4, 2, classes), trials=1)
    assert found.run["task"] == "model"
    assert found.run["rungs"] is False  # which the page says
    assert "tadropedge train" not in found.answer["code"]


def test_defaults_follow_the_graph_and_the_network(monkeypatch):
    by_score = ["degree-proportional", "jaccard-proportional:weighted", "cosine-proportional:weighted"]
    names = ["original", "dropedge", "cdf", *by_score, "degree-proportional:consistent"]
    assert [str(candidate) for candidate in defaults(load("clusters"))] == names
    assert [str(one) for one in defaults(load("dense"))][-1] == "dropedge@0.1:finish"
    assert len(defaults(load("karate"), own_model=True)) == 3
    kind = NETWORKS["gcn"]
    monkeypatch.setitem(NETWORKS, "unweighted", type("Unweighted", (kind,), {"supports": ("dropping",)}))
    found = quick("karate", network="unweighted", trials=1)
    assert "jaccard-proportional:weighted" not in found
    assert "jaccard-proportional:weighted" in found.run["left_out"]


def test_controls():
    for name, controls in {
        "dropedge": [],
        "gat+dropedge": ["gat"],
        "cdf": ["dropedge", "dropedge@0.4", "cdf:weighted", "cdf:pruned"],
        "original:consistent": ["sharpen"],
        "degree-proportional:consistent": [
            "sharpen",
            "original:consistent",
            "degree-proportional",
            "dropedge:consistent",
        ],
        "jaccard-proportional:weighted:consistent": [
            "sharpen",
            "original:consistent",
            "jaccard-proportional:weighted",
            "dropedge:consistent",
        ],
        "sage+dropedge@0.1:finish": ["sage", "sage+dropedge@0:finish", "sage+original:epochs@0.3"],
        "auto": ["dropedge"],
    }.items():
        assert [str(one) for one in controls_of(Candidate.parse(name), 0.4, 0.3)] == controls
    assert [str(one) for one in controls_of(Candidate.parse("dropedge@0.1:finish"), 0.1, 1.2)] == ["dropedge@0:finish"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"search": Search(replicates=1)}, "replicates"),
        ({"methods": "dropedge"}, "list"),
        ({"methods": ["cdf", "cdf"]}, "more than once"),
        ({"methods": ["cfd"]}, "cfd"),
        ({"methods": ["mlp+dropedge"]}, "mlp"),
        ({"controls": "some"}, "controls"),
        ({"hiden": 4}, "hiden"),
        ({"trials": 4}, r"Search\(trials=4\)"),
        ({"epochs": 4}, r"TrainingSettings\(epochs=4\)"),
        ({}, "results.json"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_any_work(settings, said, tmp_path):
    watch = Watch()
    if not settings:
        (tmp_path / "results.json").write_text("{}")
    with pytest.raises(tde.TadropedgeError, match=said):
        tde.compare("karate", **{"methods": ["dropedge"], "out": tmp_path, "watch": watch, **settings})
    assert watch.done == 0
