"""Datasets of PyTorch Geometric by name: the same graph, features, labels and splits that its classes read.

Nothing is downloaded, nothing is unpickled, and what is not here is one line that says where it was looked for.
"""

import _socket
import contextlib
import inspect
import json
import pickle
import re
import shutil
import socket
import subprocess
import threading

import numpy as np
import pyg_raw
import pytest
import torch
import torch_geometric.datasets
from conftest import data_root, need_data
from contracts.datasets import DatasetContract
from torch_geometric.data import Data, InMemoryDataset
from typer.testing import CliRunner

import tadropedge as tde
from tadropedge import TadropedgeError
from tadropedge.cli import app
from tadropedge.data import Given, PerClass, load_dataset
from tadropedge.data.pyg_sets import SETS, located, short_name

pytestmark = pytest.mark.filterwarnings("ignore:The (WikiCS|Sealed) dataset now returns")
READ = [name for name, entry in SETS.items() if entry.reader != "planetoid"]


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    def refused(*_, **__):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refused)


def run(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


def made(name, root):
    """PyTorch Geometric's own dataset of files that were made here."""
    kind, _, own = name.partition("/")
    return getattr(torch_geometric.datasets, kind)(str(root), *([own] if own else []))


def dense(features):
    return features.to_dense() if features.layout is torch.sparse_csr else features


# -- the table ----------------------------------------------------------------------------------------


class LookedError(Exception):
    """Where a class looks for its raw files."""


@pytest.mark.parametrize("name", SETS)
def test_the_table_says_where_the_class_of_pytorch_geometric_looks(name, tmp_path):
    entry = SETS[name]

    def looked(self):
        raise LookedError([*self.raw_paths])

    kind = getattr(torch_geometric.datasets, entry.kind)
    seen = type(entry.kind, (kind,), {"_download": looked, "download": looked})
    with pytest.raises(LookedError) as found:
        seen(str(tmp_path), *([entry.own] if entry.own else []))
    assert str(tmp_path / entry.file) in found.value.args[0]


def test_published_sizes_are_those_of_pytorch_geometric():
    """Its pages count both directions of an edge, and for Twitch the loops that it adds."""
    checked = 0
    for entry in SETS.values():
        text = getattr(torch_geometric.datasets, entry.kind).__doc__
        rows = [re.split(r"\n\s+- ", row.strip()) for row in re.split(r"\n\s+\* - ", text)[2:]]
        for row in rows:
            numbers = [int(cell.replace(",", "")) for cell in row[-4:]]
            if len(row) == 4 or row[0].lower() == entry.own.lower():
                nodes, edges, features, classes = entry.sizes
                assert (nodes, classes) == (numbers[0], numbers[3]), entry
                assert features == numbers[2] or numbers[2] == 0, entry
                assert edges in (numbers[1], numbers[1] / 2, (numbers[1] - nodes) / 2), entry
                checked += 1
    assert checked >= 25


def test_short_names_differ():
    names = [entry.short for entry in SETS.values()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in names)
    assert short_name("NELL") == "nell"


# -- what is read -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", READ)
def test_what_is_read_is_what_the_class_of_pytorch_geometric_reads(name, tmp_path):
    entry = SETS[name]
    pyg_raw.write(entry.kind, tmp_path / "theirs" / entry.file)
    theirs = made(name, tmp_path / "theirs")[0]
    pyg_raw.write(entry.kind, tmp_path / "ours" / entry.kind / entry.file)
    ours = load_dataset(f"pyg:{name}", tmp_path / "ours", per_class=2, split="random")
    assert ours.name == entry.short
    assert ours.graph.pairs.T.tolist() == [list(pair) for pair in pyg_raw.PAIRS]
    arcs = {(min(arc), max(arc)) for arc in theirs.edge_index.T.tolist() if arc[0] != arc[1]}
    assert sorted(arcs) == pyg_raw.PAIRS
    assert ours.graph.weight is None
    assert torch.equal(dense(ours.features), theirs.x.float())
    assert torch.equal(ours.labels, theirs.y)
    assert ours.split.sizes == (6, 2, 4)
    assert not (tmp_path / "ours" / entry.kind / "processed").exists()
    if "train_mask" not in theirs:
        assert isinstance(load_dataset(f"pyg:{name}", tmp_path / "ours", per_class=2).drawn, PerClass)
        return
    own = load_dataset(f"pyg:{name}", tmp_path / "ours")
    splits = own.drawn.splits if isinstance(own.drawn, Given) else (own.split,)
    masks = [getattr(theirs, f"{part}_mask").reshape(12, -1) for part in ("train", "val", "test")]
    assert len(splits) == masks[0].shape[1]
    for place, split in enumerate(splits):
        for (_, part), mask in zip(split.parts(), masks, strict=True):
            assert part.tolist() == mask[:, min(place, mask.shape[1] - 1)].nonzero()[:, 0].tolist()


def test_homophily_is_a_share_of_edges(tmp_path):
    pyg_raw.write("Actor", tmp_path / "Actor" / SETS["Actor"].file)
    assert load_dataset("pyg:Actor", tmp_path).homophily == pytest.approx(pyg_raw.HOMOPHILY)
    assert load_dataset("source-localization").homophily is None


@pytest.mark.parametrize(
    "folder", ["Amazon/Photo", "amazon/Photo", "amazon/photo", "Photo/Photo", "photo/photo", "Photo", "photo"]
)
def test_folders_that_people_use(folder, tmp_path):
    pyg_raw.write("Amazon", tmp_path / folder / "raw" / "amazon_electronics_photo.npz")
    for name in ("pyg:Amazon/Photo", "pyg:amazon/photo", "PYG:AMAZON/PHOTO"):
        assert load_dataset(name, tmp_path, per_class=2).name == "amazon_photo"


def test_a_class_of_one_dataset_is_not_taken_for_another(tmp_path):
    pyg_raw.write("Flickr", tmp_path / "raw" / "adj_full.npz")  # whose? its folder does not say
    assert located(SETS["Flickr"], tmp_path) is located(SETS["Reddit2"], tmp_path) is None


def test_options_are_those_of_a_file(tmp_path):
    pyg_raw.write("Coauthor", tmp_path / "coauthor" / SETS["Coauthor/CS"].file)
    data = load_dataset("pyg:Coauthor/CS", tmp_path, seed=3, per_class=1, normalize=True)
    assert dense(data.features).sum(dim=1).tolist() == pytest.approx([1] * 12)
    assert data.split.sizes[0] == 3
    assert load_dataset("pyg:Coauthor/CS", tmp_path, split_sizes=(3, 4, 5)).split.sizes == (3, 4, 5)
    with pytest.raises(TadropedgeError, match=r"pyg:Coauthor/CS: the file has no split|the file has no split"):
        load_dataset("pyg:Coauthor/CS", tmp_path, split="file")
    with pytest.raises(TadropedgeError, match="score_column names a column of your own file, and pyg:Coauthor/CS is"):
        load_dataset("pyg:Coauthor/CS", tmp_path, score_column="x")
    with pytest.raises(TadropedgeError, match="unknown split 'public'; choose from file, random"):
        load_dataset("pyg:Coauthor/CS", tmp_path, split="public")


def test_every_command_takes_the_name(tmp_path, monkeypatch):
    monkeypatch.setenv("TADROPEDGE_DATA", str(tmp_path))
    pyg_raw.write("WebKB", tmp_path / "WebKB" / SETS["WebKB/Texas"].file)
    name, small = "pyg:WebKB/Texas", ("--epochs", 1, "--hidden", 4, "--device", "cpu", "--json")
    lines = [
        ("weights", name, "--score", "degree", "--no-figures", "--out", tmp_path / "w", "--json"),
        ("sparsify", name, "--score", "degree", "--no-certificate", "--out", tmp_path / "s", "--json"),
        ("compare", name, "--methods", "dropedge", "--trials", 1, "--seeds", 2, "--out", tmp_path / "c", *small),
        ("train", name, "--out", tmp_path / "m", *small),
        ("predict", tmp_path / "m", name, "--out", tmp_path / "p.csv", "--json"),
    ]
    for line in lines:
        ended = run(*line)
        assert ended.exit_code == 0, (line, ended.exception)
    found = tde.compare(name, ["dropedge"], trials=1, seeds=2, choose_splits=1, epochs=1, hidden=4, root=tmp_path)
    assert found.data.name == "webkb_texas"


# -- real files ---------------------------------------------------------------------------------------


class OfPyG(DatasetContract):
    def test_its_fields(self):
        data = self.load()
        assert data.name == SETS[self.name.removeprefix("pyg:")].short
        assert data.features.shape == (data.graph.num_nodes, data.num_features)

    def test_it_is_found_by_its_name_in_any_case(self):
        shouted = load_dataset(self.name.upper(), root=data_root(), **self.options)
        assert shouted.graph.fingerprint == self.load().graph.fingerprint


class TestCiteSeerFull(OfPyG):
    name, folder, random = "pyg:CitationFull/CiteSeer", "citation_full", {"train", "val", "test"}
    bad = {"per_class must be a whole number of at least 1, got 0": {"per_class": 0}}


class TestMinesweeper(OfPyG):
    name, folder, covers = "pyg:HeterophilousGraphDataset/Minesweeper", "heterophilous", True


@pytest.mark.parametrize("name", ["CitationFull/CiteSeer", "HeterophilousGraphDataset/Minesweeper"])
def test_real_files_are_read_as_pytorch_geometric_reads_them(name, tmp_path):
    path = located(SETS[name], need_data(data_root()))
    if path is None:
        need_data(data_root() / SETS[name].file)
    copy = tmp_path / SETS[name].file
    copy.parent.mkdir(parents=True)
    shutil.copy(path, copy)
    theirs, ours = made(name, tmp_path)[0], load_dataset(f"pyg:{name}", data_root())
    assert torch.equal(dense(ours.features), theirs.x)
    assert torch.equal(ours.labels, theirs.y)
    assert 2 * ours.graph.num_edges == theirs.edge_index.shape[1]
    if "train_mask" in theirs:
        assert ours.drawn.words == "the 10 splits of the file"
        trained = [mask.nonzero()[:, 0].tolist() for mask in theirs.train_mask.T]
        assert [split.train.tolist() for split in ours.drawn.splits] == trained


def test_a_model_of_two_classes_is_saved_with_the_measure_it_is_judged_by(tmp_path):
    need_data(data_root() / "heterophilous")
    name, root = "pyg:HeterophilousGraphDataset/minesweeper", ("--data-root", data_root())
    small = ("--method", "dropedge", "--epochs", 1, "--hidden", 4, "--device", "cpu")
    ended = run("train", name, *root, *small, "--out", tmp_path / "m", "--json")
    assert ended.exit_code == 0, ended.exception
    assert 0 <= json.loads(ended.stdout)["test_roc-auc"] <= 1
    assert run("predict", tmp_path / "m", name, *root, "--out", tmp_path / "p.csv", "--json").exit_code == 0
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 10001


def test_the_citation_sets_are_the_same_by_either_name_and_in_either_folder(tmp_path):
    real = need_data(data_root() / "planetoid")
    (tmp_path / "Planetoid").symlink_to(real.resolve())
    one, other = load_dataset("cora", data_root()), load_dataset("pyg:Planetoid/Cora", tmp_path)
    assert (one.name, one.graph.fingerprint) == (other.name, other.graph.fingerprint)
    assert one.split.sizes == other.split.sizes == (1208, 500, 1000)
    assert not (tmp_path / "planetoid").exists()


# -- what is not there --------------------------------------------------------------------------------

REFUSED = {
    "pyg:Amazn/Photo": r"unknown dataset 'pyg:Amazn/Photo' \(did you mean 'pyg:Amazon/Photo'\?\): expected pyg:CLASS/",
    "pyg:Amazon/Foto": r"unknown dataset 'pyg:Amazon/Foto'; choose from pyg:Amazon/Computers, pyg:Amazon/Photo \(did",
    "pyg:Amazon": "unknown dataset 'pyg:Amazon'; choose from pyg:Amazon/Computers, pyg:Amazon/Photo",
    "pyg:Actor/x": r"unknown dataset 'pyg:Actor/x'; choose from pyg:Actor \(did you mean",
    "pyg:NELL/x": "unknown dataset 'pyg:NELL/x': expected pyg:NELL$",
    "pyg:Entities": "unknown dataset 'pyg:Entities': expected pyg:Entities/NAME$",
    "pyg:": "unknown dataset 'pyg:'",
    "pyg:Amazon/Photo": "pyg:Amazon/Photo is not below '.*': expected Amazon/Photo/raw/amazon_electronics_photo.npz, "
    r"and nothing is downloaded unasked; in Python, torch_geometric.datasets.Amazon\('.*Amazon', 'Photo'\) downloads",
    "pyg:Actor": r"expected Actor/raw/out1_node_feature_label.txt, .* torch_geometric.datasets.Actor\('.*Actor'\) down",
    "pyg:NELL": "pyg:NELL is not below '.*': expected NELL/raw/ind.nell.0.001.x, ",
    "pyg:FakeDataset": "FakeDataset of PyTorch Geometric is not read from files: save its Data with torch.save",
    "pyg:LINKXDataset/nope": "pyg:LINKXDataset/nope: reading it by PyTorch Geometric fails .*is that its name",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_there_is_one_line_and_leaves_nothing(name, tmp_path):
    with pytest.raises(TadropedgeError, match=REFUSED[name]) as found:
        load_dataset(name, tmp_path)
    assert "\n" not in str(found.value)
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_says_it_in_its_own_words(tmp_path):
    words = str(run("train", "pyg:Amazon/Photo", "--data-root", tmp_path).exception)
    assert words.startswith("DATA pyg:Amazon/Photo is not below")
    assert words.endswith("--data-root FOLDER says where it is")
    words = str(run("weights", "pyg:Amazon/Foto", "--data-root", tmp_path).exception)
    assert words.startswith("GRAPH: unknown dataset 'pyg:Amazon/Foto'")


def test_raw_files_that_are_not_all_there(tmp_path):
    path = pyg_raw.write("WebKB", tmp_path / "WebKB" / SETS["WebKB/Cornell"].file)
    (path.parent / "cornell_split_0.6_0.2_7.npz").unlink()
    with pytest.raises(TadropedgeError, match=r"expected WebKB/cornell/raw/cornell_split_0\.6_0\.2_7\.npz, "):
        load_dataset("pyg:WebKB/Cornell", tmp_path)


def test_paths_below_the_folder_of_the_data(tmp_path, monkeypatch):
    data, here = tmp_path / "data", tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("TADROPEDGE_DATA", str(data))
    pyg_raw.write("Amazon", data / "graphs" / "mine.npz")
    assert load_dataset("graphs/mine.npz", per_class=2).name == "mine"
    assert load_dataset("mine.npz", data / "graphs", per_class=2).name == "mine"
    assert run("weights", "graphs/mine.npz", "--score", "degree", "--no-figures", "--out", "w").exit_code == 0
    pyg_raw.write("Twitch", here / "graphs" / "mine.npz")  # what is here comes first
    assert load_dataset("graphs/mine.npz", per_class=2).num_features == pyg_raw.REAL.shape[1]
    with pytest.raises(TadropedgeError, match=r"no such file: 'graphs/none\.npz'"):
        load_dataset("graphs/none.npz")


def test_the_graphs_of_the_data_folder_by_path(large_graphs):
    sizes = {"acm": 13128, "amazon_photo": 119081, "chameleon_filtered": 8854, "citeseer_full": 5337}
    sizes |= {"coauthor_cs": 81894, "cora_ml": 8158, "dblp": 52867, "minesweeper": 39402, "squirrel_filtered": 46998}
    for name, edges in sizes.items():
        data = load_dataset(f"{large_graphs.name}/{name}.npz", large_graphs.parent)
        assert (data.name, data.graph.num_edges) == (name, edges)


# -- files that are not trusted -----------------------------------------------------------------------


def bare():
    """A socket below the one that is replaced above."""
    return contextlib.closing(_socket.socket())


class Trap:
    """Unpickled, it leaves a file behind."""

    def __init__(self, place):
        self.place = place

    def __reduce__(self):
        return (open, (str(self.place), "w"))


@pytest.fixture
def trap(tmp_path):
    place = tmp_path / "sprung"
    yield Trap(place)
    assert not place.exists()


def test_processed_files_are_never_opened(tmp_path, trap):
    path = pyg_raw.write("WebKB", tmp_path / "WebKB" / SETS["WebKB/Texas"].file)
    processed = path.parents[1] / "processed"
    processed.mkdir()
    for name in ("data.pt", "pre_transform.pt", "pre_filter.pt"):
        (processed / name).write_bytes(pickle.dumps(trap))
    assert load_dataset("pyg:WebKB/Texas", tmp_path).graph.num_edges == len(pyg_raw.PAIRS)


def test_arrays_of_objects_are_not_unpickled(tmp_path, trap):
    path = pyg_raw.write("GitHub", tmp_path / "GitHub" / SETS["GitHub"].file)
    objects = np.empty(1, dtype=object)
    objects[0] = trap
    np.savez(path, edges=pyg_raw.EDGES, features=objects, target=pyg_raw.LABELS)
    with pytest.raises(TadropedgeError, match=r"pyg:GitHub: .*features holds Python objects, which are not unpickled"):
        load_dataset("pyg:GitHub", tmp_path)


def test_indices_are_checked_before_compiled_code_sees_them(tmp_path):
    path = pyg_raw.write("Flickr", tmp_path / "Flickr" / SETS["Flickr"].file)
    with np.load(path) as held:
        arrays = dict(held)
    arrays["indptr"] = arrays["indptr"].copy()
    arrays["indptr"][3] = 2**30
    np.savez(path, **arrays)
    with pytest.raises(TadropedgeError, match=r"pyg:Flickr: adj_full\.npz: not a CSR matrix"):
        load_dataset("pyg:Flickr", tmp_path)


class Foreign(InMemoryDataset):
    """A class that the table does not know; ``reading`` is what it does with its raw file."""

    raw_file_names, processed_file_names, reading = "all.npy", "data.pt", None

    def __init__(self, root):
        super().__init__(root)
        self.load(self.processed_paths[0])

    def download(self):
        raise AssertionError("it was downloaded")

    def process(self):
        type(self).reading(self.raw_paths[0])
        arcs, labels = torch.from_numpy(pyg_raw.EDGES).T, torch.from_numpy(pyg_raw.LABELS)
        self.save([Data(x=torch.eye(12), edge_index=arcs, y=labels)], self.processed_paths[0])


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """A function that loads a dataset of a class that reads its file in a given way."""
    monkeypatch.setattr(torch_geometric.datasets, "Foreign", Foreign, raising=False)
    (tmp_path / "Foreign" / "raw").mkdir(parents=True)
    path = tmp_path / "Foreign" / "raw" / "all.npy"

    def load(reading, held=None):
        np.save(path, np.zeros(3) if held is None else np.array([held], dtype=object), allow_pickle=True)
        monkeypatch.setattr(Foreign, "reading", staticmethod(reading))
        return load_dataset("pyg:foreign", tmp_path, per_class=2)

    return load


def test_a_class_that_the_table_does_not_know(foreign):
    data = foreign(np.load)
    assert (data.name, data.graph.num_edges, data.homophily) == ("foreign", 24, pytest.approx(pyg_raw.HOMOPHILY))
    assert foreign(lambda path: np.load(path, allow_pickle=True)).name == "foreign"  # plain arrays need no pickle


def test_a_class_that_unpickles_is_refused(foreign, trap):
    def swallowed(path):
        try:
            np.load(path, allow_pickle=True)
        except Exception:
            return

    for reading in (lambda path: np.load(path, allow_pickle=True), swallowed):
        with pytest.raises(TadropedgeError, match="pyg:Foreign: reading it by PyTorch Geometric would unpickle numpy"):
            foreign(reading, trap)
    with pytest.raises(TadropedgeError, match="reading it by PyTorch Geometric would connect to"), bare() as held:
        foreign(lambda path: held.connect(("127.0.0.1", 9)))
    with pytest.raises(TadropedgeError, match="reading it by PyTorch Geometric would start"):
        foreign(lambda path: subprocess.run(["touch", str(trap.place)], check=True))
    with pytest.raises(TadropedgeError, match=r"fails \(ZeroDivisionError: .*: save its Data with torch.save"):
        foreign(lambda path: 1 // 0)
    assert pickle.loads(pickle.dumps(Trap)) is Trap  # outside, everything is as before


def test_other_threads_may_unpickle_meanwhile(foreign):
    found = []

    def reading(path):
        other = threading.Thread(target=lambda: found.append(pickle.loads(pickle.dumps(Trap))))
        other.start()
        other.join()

    assert foreign(reading).graph.num_nodes == 12
    assert found == [Trap]


def test_several_graphs_are_refused(tmp_path, monkeypatch):
    class Several(Foreign):
        def process(self):
            self.save([Data(x=torch.eye(2)), Data(x=torch.eye(2))], self.processed_paths[0])

    monkeypatch.setattr(torch_geometric.datasets, "Several", Several, raising=False)
    (tmp_path / "several" / "raw").mkdir(parents=True)
    (tmp_path / "several" / "raw" / "all.npy").touch()
    with pytest.raises(TadropedgeError, match="pyg:Several: expected one graph with one kind of nodes, got 2: save"):
        load_dataset("pyg:Several", tmp_path)


def test_the_table_is_what_the_reader_needs():
    assert set(inspect.signature(SETS["Actor"].__class__).parameters) == {"name", "file", "sizes", "use", "reader"}
    assert {entry.reader for entry in SETS.values()} == {"npz", "planetoid", "class"}
