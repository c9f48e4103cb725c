"""Datasets by name: the shipped contract, literal values of what is drawn, and the citation sets of the paper."""

import hashlib
import shutil

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import KarateClub, Planetoid

from tadropedge import Graph, TadropedgeError
from tadropedge.lab.data.dataset import Dataset
from tadropedge.lab.data.load import load
from tadropedge.testing.datasets import DatasetContract
from tadropedge.testing.graphs import grid

EVERYTHING = {"pairs", "features", "train"}


class TestKarate(DatasetContract):
    dataset = "karate"


class TestClusters(DatasetContract):
    dataset = "clusters"
    options = {"nodes": 30}
    random = EVERYTHING


class TestNoisyClusters(DatasetContract):
    dataset = "noisy-clusters"
    options = {"clusters": 4, "per_class": 5}
    random = EVERYTHING


class TestRoads(DatasetContract):
    dataset = "roads"
    options = {"nodes": 600, "per_class": 5}
    random = {*EVERYTHING, "labels"}


class TestDense(DatasetContract):
    dataset = "dense"
    options = {"nodes": 40}
    random = EVERYTHING


def square(side=6):
    """A dataset of one's own may be a Data."""
    graph = grid(side, side)
    return Data(torch.eye(side**2), graph.pairs, y=torch.arange(side**2) % 2)


class TestOwn(DatasetContract):
    dataset = staticmethod(square)
    options = {"side": 8}


def digest(*tensors):
    return hashlib.sha256(b"".join(each.contiguous().numpy().tobytes() for each in tensors)).hexdigest()[:16]


@pytest.mark.parametrize(
    ("name", "edges", "what_is_drawn"),
    [
        ("clusters", 1040, "05eb645c9be72c12"),
        ("noisy-clusters", 3465, "229bbad51daadaf6"),
        ("roads", 3000, "056ffb4aae150bea"),
        ("dense", 24006, "c34791a555176e32"),
    ],
)
def test_what_is_drawn_never_changes(name, edges, what_is_drawn):
    data = load(name, seed=3)
    assert data.graph.num_edges == edges
    assert digest(data.graph.pairs, data.labels, data.split(2).train) == what_is_drawn


def test_karate_is_the_one_everybody_has():
    club, data = KarateClub()[0], load("karate")
    assert Graph.from_data(club).fingerprint == data.graph.fingerprint
    assert torch.equal(data.labels, club.y)
    assert torch.bincount(data.labels[data.split(0).train]).tolist() == [2, 2, 2, 2]


def test_every_second_edge_of_dense_joins_two_classes():
    data = load("dense")
    assert data.homophily == pytest.approx(0.4, abs=0.05)
    assert 2 * data.graph.num_edges / data.graph.num_nodes == pytest.approx(60, abs=2)


def test_roads_are_chains_and_junctions():
    data = load("roads")
    degree = torch.bincount(data.graph.pairs.flatten())
    assert data.graph.components.count == 1
    assert float(degree.double().mean()) == pytest.approx(2.4, abs=0.05)
    assert float((degree == 2).double().mean()) > 0.5


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("clusters", {"clusters": 1}, "at least 2"),
        ("clusters", {"nodes": 6}, "too few"),
        ("clusters", {"inside": 1.5}, "from 0 to 1"),
        ("clusters", {"seed": "x"}, "seed"),
        ("noisy-clusters", {"noise": -1}, "noise"),
        ("roads", {"regions": 2}, "regions"),
        ("dense", {"per_class": 0}, "per_class"),
    ],
)
def test_options_that_cannot_be(name, options, words):
    with pytest.raises(TadropedgeError, match=words):
        load(name, **options)


# -- the citation sets ---------------------------------------------------------------------------------


@pytest.fixture
def real(data_folder, monkeypatch, tmp_path):
    """The folder of all data, and a cache that is empty."""
    monkeypatch.setenv("TADROPEDGE_DATA", str(data_folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return data_folder


SETS = {
    "cora": ("Cora", (2708, 5278, 1433, 7), (1208, 500, 1000), 0, "294adb9565b22115"),
    "citeseer": ("CiteSeer", (3327, 4552, 3703, 6), (1812, 500, 1000), 15, "64c1b01d39dc4901"),
    "pubmed": ("PubMed", (19717, 44324, 500, 3), (18217, 500, 1000), 0, "11fef3c5cd2b7012"),
}


@pytest.mark.parametrize("name", SETS)
def test_the_paper_has_the_same_data(name, real):
    _, sizes, full, unlabelled, content = SETS[name]
    data = load(name, split="full")
    assert (data.graph.num_nodes, data.graph.num_edges, data.num_features, data.num_classes) == sizes
    assert data.split(0).sizes == full
    assert digest(data.graph.pairs, data.labels, *(part for _, part in data.split(5).parts())) == content
    assert int((data.labels < 0).sum()) == unlabelled
    assert not data.features.to_dense()[data.labels < 0].any()


@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_pyg_has_the_same_data(name, real, tmp_path):
    own = SETS[name][0]
    raw = tmp_path / "root" / own / "raw"
    raw.mkdir(parents=True)
    for file in (real / "planetoid" / own / "raw").iterdir():
        (raw / file.name).write_bytes(file.read_bytes())
    theirs = Planetoid(str(tmp_path / "root"), own)[0]
    for data in (load(name, split="public", normalize=False), load(f"pyg:planetoid/{own.upper()}", split="public")):
        assert torch.equal(data.features.to_dense(), theirs.x)
        assert data.graph.fingerprint == Graph.from_data(theirs).fingerprint
        known = data.labels >= 0
        assert torch.equal(data.labels[known], theirs.y[known])
        for part, ids in data.split(0).parts():
            assert torch.equal(ids, theirs[f"{part}_mask"].nonzero()[:, 0])
    assert float(load(name).features.to_dense().sum(dim=1).max()) == pytest.approx(1)


def test_random_splits_of_a_citation_set(real):
    data = load("citeseer", per_class=5)
    assert data.split(0).sizes == (30, 500, 3327 - 15 - 530)
    assert torch.bincount(data.labels[data.split(1).train]).tolist() == [5] * 6
    assert load("citeseer").split(0).sizes == (120, 500, 3327 - 15 - 620)
    assert data.num_splits is None
    assert load("citeseer", split="full").num_splits == 1


def test_other_sets_of_pyg(real):
    mines = load("pyg:HeterophilousGraphDataset/minesweeper", split="own")
    assert (mines.name, mines.num_splits) == ("heterophilous_graph_dataset_minesweeper", 10)
    assert mines.split(0).sizes == (5000, 2500, 2500)
    assert mines.split(3).train.tolist() == mines.split(13).train.tolist()
    wide = load("pyg:citationfull/citeseer")
    assert wide.graph.num_edges > 4000


def test_the_folder_of_the_user_stays_as_it_is(real, tmp_path):
    before = sorted(real.rglob("*"))
    one = load("cora")
    assert sorted(real.rglob("*")) == before
    kept = sorted(each for each in tmp_path.rglob("*") if each.is_file())
    assert any("processed" in each.parts for each in kept)
    assert load("cora").fingerprint() == one.fingerprint()  # from the copy
    assert not list((tmp_path / "tadropedge").rglob("tmp*"))


@pytest.mark.parametrize("folder", ["planetoid/cora", "Planetoid/CORA", "planetoid/Cora"])
def test_folders_are_found_by_any_letters(folder, real, tmp_path, monkeypatch):
    shutil.copytree(real / "planetoid" / "Cora" / "raw", tmp_path / "mine" / folder / "raw")
    monkeypatch.setenv("TADROPEDGE_DATA", str(tmp_path / "mine"))
    assert load("cora").graph.num_edges == 5278


def test_data_that_is_not_there_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("TADROPEDGE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("torch_geometric.datasets.Planetoid", broken)
    with pytest.raises(TadropedgeError, match=r"Planetoid/Cora .*no network.*TADROPEDGE_DATA"):
        load("cora")
    assert not list((tmp_path / "cache").rglob("root"))


def broken(*_):
    raise OSError("no network\nat all")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pyg:Planetoid/Coar", "did you mean 'pyg:Planetoid/Cora'"),
        ("pyg:Amazon", "choose from pyg:Amazon/Computers, pyg:Amazon/Photo"),
        (".", "is a folder"),
        ("pyg:ZINC", "unknown dataset 'pyg:ZINC'"),
        ("kararte", "did you mean 'karate'"),
        ("somewhere/else.csv", "no such file"),
        ("", "path"),
        (7, "int 7"),
        (Dataset, "got type"),
    ],
)
def test_names_that_nobody_knows(name, words):
    with pytest.raises(TadropedgeError, match=words) as caught:
        load(name)
    assert "\n" not in str(caught.value)
