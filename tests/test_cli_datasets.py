"""``tadropedge datasets``: what can be named, what is here, and numbers that were computed from what is."""

import json
import socket

import numpy as np
import pyg_raw
import pytest
from conftest import data_root, need_data
from typer.testing import CliRunner

from tadropedge.cli import app, datasets
from tadropedge.data import load_dataset
from tadropedge.data.pyg_sets import SETS
from tadropedge.registry import DATASETS


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    def refused(*_, **__):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refused)


def run(*arguments):
    return CliRunner().invoke(app, ["datasets", *map(str, arguments)])


def told(root):
    ended = run("--data-root", root, "--json")
    assert ended.exit_code == 0, ended.exception
    found = json.loads(ended.stdout)
    assert found["data_root"] == str(root)
    return {row["name"]: row for row in found["datasets"]}


def counts(row):
    return tuple(row[name] for name in ("nodes", "edges", "features", "classes"))


def test_every_name_is_listed_once_and_nothing_is_left_behind(tmp_path):
    rows = told(tmp_path)
    names = [f"pyg:{name}" for name, entry in SETS.items() if entry.reader != "planetoid"]
    assert list(rows) == [*DATASETS, *names]
    assert list(tmp_path.iterdir()) == []
    here = {name for name, row in rows.items() if row["here"]}
    assert here == {"karate", "clusters", "source-localization", "noisy-clusters", "grid", "roads"}
    for name in names:
        assert counts(rows[name]) == SETS[name.removeprefix("pyg:")].sizes
        assert rows[name]["homophily"] is rows[name]["where"] is None
    assert counts(rows["cora"]) == (2708, 5278, 1433, 7)
    assert (counts(rows["karate"]), round(rows["karate"]["homophily"], 3)) == ((34, 78, 34, 4), 0.756)
    assert (rows["source-localization"]["nodes"], rows["source-localization"]["homophily"]) == (50, None)
    assert all(row["use"] for row in rows.values())


def test_what_is_here_is_counted_and_not_what_was_published(tmp_path):
    pyg_raw.write("Actor", tmp_path / "actor" / SETS["Actor"].file)
    pyg_raw.write("Amazon", tmp_path / "Amazon" / SETS["Amazon/Photo"].file)
    pyg_raw.write("Twitch", tmp_path / "graphs" / "mine.npz")
    pyg_raw.write("Twitch", tmp_path / ".hidden" / "mine.npz")
    np.savez(tmp_path / "graphs" / "unlabelled.npz", edge_index=pyg_raw.EDGES.T)
    (tmp_path / "graphs" / "broken.npz").write_bytes(b"PK\x03\x04 and no more")
    np.savez(tmp_path / "graphs" / "short.npz", edge_index=pyg_raw.EDGES.T, x=np.eye(12), y=[0, 1])
    rows = told(tmp_path)
    edges, share = len(pyg_raw.PAIRS), pytest.approx(pyg_raw.HOMOPHILY)
    for name, where, features in (
        ("pyg:Actor", "actor/raw", 7),
        ("pyg:Amazon/Photo", "Amazon/Photo/raw", 7),
        ("graphs/mine.npz", "graphs/mine.npz", 5),
    ):
        row = rows[name]
        assert (counts(row), row["homophily"], row["where"]) == ((12, edges, features, 3), share, where)
        assert load_dataset(name, tmp_path, per_class=2, split="random").graph.num_edges == edges
    files = [name for name in rows if name.endswith(".npz")]
    assert files == ["graphs/mine.npz", "graphs/short.npz"]  # neither raw files again nor what has no labels
    assert "short.npz" in rows["graphs/short.npz"]["problem"]
    assert rows["graphs/short.npz"]["nodes"] is None


def test_large_files_are_listed_and_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "MOST", 10)
    pyg_raw.write("Twitch", tmp_path / "mine.npz")
    pyg_raw.write("Coauthor", tmp_path / "Coauthor" / SETS["Coauthor/CS"].file)
    rows = told(tmp_path)
    assert (rows["mine.npz"]["here"], rows["mine.npz"]["nodes"]) == (True, None)
    assert (rows["pyg:Coauthor/CS"]["here"], counts(rows["pyg:Coauthor/CS"])) == (True, SETS["Coauthor/CS"].sizes)


def test_the_page_has_every_name_whole(tmp_path):
    pyg_raw.write("HeterophilousGraphDataset", tmp_path / "minesweeper" / "raw" / "minesweeper.npz")
    ended = run("--data-root", tmp_path)
    assert ended.exit_code == 0
    here, _, absent = ended.stdout.partition("Not here")
    assert f"On this machine, below {tmp_path}" in here.replace("\n", "")
    line = next(line for line in here.splitlines() if "pyg:HeterophilousGraphDataset/Minesweeper " in line)
    assert line.split()[1:6] == ["12", str(len(pyg_raw.PAIRS)), "5", "3", f"{pyg_raw.HOMOPHILY:.2f}"]
    for name, entry in SETS.items():
        if entry.reader != "planetoid" and entry.own != "Minesweeper":
            line = next(line for line in absent.splitlines() if f"pyg:{name} " in line)
            assert line.split()[1:6] == [*(f"{size:,}" for size in entry.sizes), "-"]
    assert "torch_geometric.datasets.CLASS(root, NAME)" in absent


def test_a_dataset_of_ones_own_is_listed_without_being_loaded(tmp_path, monkeypatch):
    def mine(seed=0):
        raise AssertionError("it was loaded")

    monkeypatch.setitem(DATASETS._entries, "mine", mine)
    row = told(tmp_path)["mine"]
    assert (row["use"], row["nodes"], row["problem"]) == ("your own", None, None)


def test_a_folder_that_is_not_there(tmp_path):
    words = str(run("--data-root", tmp_path / "nowhere").exception)
    assert words == f"--data-root must be a folder with datasets, got '{tmp_path / 'nowhere'}'"


def test_what_is_in_the_folder_of_real_data():
    need_data(data_root() / "graphs")
    rows = told(data_root())
    assert {name for name in rows if name.startswith("graphs/")} >= {"graphs/amazon_photo.npz", "graphs/acm.npz"}
    assert (counts(rows["graphs/amazon_photo.npz"]), round(rows["graphs/amazon_photo.npz"]["homophily"], 3)) == (
        (7650, 119081, 745, 8),
        0.827,
    )
    assert round(rows["cora"]["homophily"], 2) == 0.81
    assert rows["pyg:HeterophilousGraphDataset/Minesweeper"]["here"]
    assert not any(row["problem"] for row in rows.values())
