import logging
import os
import warnings

import numpy as np
import pytest
import torch
from graphs import ZOO, complete, cycle, path, star, union, weighted

from tadropedge import (
    RepeatedEigenvalueWarning,
    TadropedgeError,
    aggregate_resistance,
    edge_scores,
    effective_resistance,
)
from tadropedge.pyg import AddResistance
from tadropedge.scores import solve


@pytest.fixture
def counted(monkeypatch):
    """How often a part was really solved."""
    calls = []
    original = solve._solve_part
    monkeypatch.setattr(solve, "_solve_part", lambda *a: calls.append(a) or original(*a))
    return calls


def test_computed_once_for_each_graph_and_setting(tmp_path, counted):
    karate = ZOO["karate"]
    first = aggregate_resistance(karate, 4, cache_dir=tmp_path)
    assert torch.equal(aggregate_resistance(karate, 4, cache_dir=tmp_path), first)
    assert len(counted) == 1
    for other in (
        lambda: aggregate_resistance(karate, 3, cache_dir=tmp_path),
        lambda: aggregate_resistance(karate, desired_clusters=4, cache_dir=tmp_path),
        lambda: aggregate_resistance(karate, 4, laplacian="normalized", cache_dir=tmp_path),
        lambda: aggregate_resistance(karate, 4, tolerance=1e-6, cache_dir=tmp_path),
        lambda: aggregate_resistance(weighted(karate), 4, cache_dir=tmp_path),
    ):
        other()
    assert len(counted) == 6
    assert len(list(tmp_path.glob("*.npz"))) == 6
    assert not list(tmp_path.glob("*.tmp"))


def test_nothing_is_written_unasked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    aggregate_resistance(ZOO["karate"], 4)
    effective_resistance(ZOO["karate"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["cut", "flipped", "garbage", "empty", "wrong length", "other checksum"])
def test_damaged_entries_are_computed_again(tmp_path, counted, damage, caplog):
    karate = ZOO["karate"]
    first = aggregate_resistance(karate, 4, cache_dir=tmp_path)
    (entry,) = tmp_path.glob("*.npz")
    content = entry.read_bytes()
    if damage == "wrong length":
        np.savez(entry, scores=np.ones(3), widened=np.zeros(2), checksum=np.zeros(32, np.uint8))
    elif damage == "other checksum":
        np.savez(entry, scores=np.ones(78), widened=np.zeros(2), checksum=np.zeros(32, np.uint8))
    else:
        middle = content.index(b"scores.npy") + 200  # inside the numbers
        entry.write_bytes(
            {
                "cut": content[:middle],
                "flipped": content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :],
                "garbage": b"not a zip file",
                "empty": b"",
            }[damage]
        )
    with caplog.at_level(logging.WARNING, logger="tadropedge"):
        assert torch.equal(aggregate_resistance(karate, 4, cache_dir=tmp_path), first)
    assert len(counted) == 2
    assert "computed again" in caplog.text
    assert torch.equal(aggregate_resistance(karate, 4, cache_dir=tmp_path), first)  # the entry is whole again
    assert len(counted) == 2


def test_the_warning_is_part_of_the_answer(tmp_path):
    for _ in range(2):
        with pytest.warns(RepeatedEigenvalueWarning, match="in 1 of 1 components"):
            aggregate_resistance(star(6), 2, cache_dir=tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        effective_resistance(star(6), cache_dir=tmp_path)


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TadropedgeError, match=r"cannot write '.*': disk full"):
        aggregate_resistance(ZOO["karate"], 4, cache_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(TadropedgeError, match="cannot write"):
        aggregate_resistance(ZOO["karate"], 4, cache_dir=tmp_path / "file")


def test_numbers_of_any_type_are_settings(tmp_path):
    aggregate_resistance(ZOO["karate"], np.int32(4), tolerance=np.float32(1e-6), cache_dir=tmp_path)
    effective_resistance(ZOO["karate"], relative_error=np.float32(0.25), cache_dir=tmp_path)
    with pytest.raises(TadropedgeError, match="cache_dir must be the path of a file or folder, got int 5"):
        aggregate_resistance(ZOO["karate"], 4, cache_dir=5)


def test_every_flipped_byte_is_noticed(tmp_path, counted):
    first = aggregate_resistance(ZOO["cliques"], 2, cache_dir=tmp_path)
    (entry,) = tmp_path.glob("*.npz")
    content = entry.read_bytes()
    for place in range(0, len(content), 7):
        entry.write_bytes(content[:place] + bytes([content[place] ^ 0x5A]) + content[place + 1 :])
        assert torch.equal(aggregate_resistance(ZOO["cliques"], 2, cache_dir=tmp_path), first)


@pytest.mark.filterwarnings("ignore::tadropedge.RepeatedEigenvalueWarning")
def test_one_entry_per_part_whoever_asks(tmp_path, counted):
    """Five components of four sizes: parts are found again inside another graph, too."""
    graph = union(path(5), path(5), cycle(6), star(9), path(2))
    first = edge_scores(graph, q=2, cache_dir=tmp_path)
    assert len(counted) == len(list(tmp_path.iterdir())) == 4
    assert torch.equal(aggregate_resistance(graph, 2, cache_dir=tmp_path), first)
    aggregate_resistance(union(cycle(6), complete(4), star(9)), 2, cache_dir=tmp_path)
    assert len(counted) == len(list(tmp_path.iterdir())) == 5


def test_your_own_functions_are_not_cached(tmp_path):
    def degree(graph):
        return torch.bincount(graph.pairs.flatten())[graph.pairs].sum(0)

    edge_scores(ZOO["karate"], degree, cache_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_transform_uses_the_cache(tmp_path, counted):
    from torch_geometric.datasets import KarateClub

    for _ in range(2):
        AddResistance(q=4, cache_dir=tmp_path)(KarateClub()[0])
    assert len(counted) == 1
