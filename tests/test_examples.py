import subprocess
import sys
from pathlib import Path

import noisy
import noisy_clusters
import numpy as np
import pytest
import torch

import tadropedge as tde
from tadropedge import TadropedgeError
from tadropedge.data import load_noisy_clusters

ROOT = Path(__file__).resolve().parents[1]


def test_the_demo_writes_a_picture_and_a_page(tmp_path, capsys):
    graph = ["--classes", "3", "--clusters", "2", "--nodes", "12", "--noise", "1"]
    noisy_clusters.main(["--out", str(tmp_path / "new"), "--small", str(tmp_path / "small.png"), *graph])
    out = capsys.readouterr().out
    assert "6 clusters of 12 nodes" in out
    assert "DropEdge" in out
    assert "jaccard-proportional" in out
    whole, small = (tmp_path / "new" / "noisy-clusters.png").read_bytes(), (tmp_path / "small.png").read_bytes()
    assert whole.startswith(b"\x89PNG")
    assert small.startswith(b"\x89PNG")
    assert len(small) < len(whole) / 2
    page = (tmp_path / "new" / "picture.html").read_text(encoding="utf-8")
    assert "data:image/png;base64," in page
    assert "http" not in page  # works offline


def test_the_score_keeps_fewer_random_edges_than_dropedge_at_the_same_budget():
    data = load_noisy_clusters(nodes=10)
    random = noisy_clusters.random_edges(data, 10)
    assert bool(random[data.labels[data.graph.pairs[0]] != data.labels[data.graph.pairs[1]]].all())
    for seed in range(5):
        scores, (alike, chosen) = noisy_clusters.subgraphs(data, random, keep_ratio=0.3, seed=seed)
        assert torch.equal(scores, tde.edge_scores(data.graph, "jaccard"))
        deviation = (data.graph.num_edges / 4) ** 0.5  # of a number of kept edges, at most
        for one in (alike, chosen):
            assert abs(int(one.mask.sum()) - 0.3 * data.graph.num_edges) < 6 * deviation
            assert one.random == pytest.approx(int((one.mask & random).sum()) / int(random.sum()))
        assert alike.random == pytest.approx(0.3, abs=0.05)
        assert chosen.random < 0.15


def test_nodes_of_a_cluster_are_drawn_side_by_side():
    place, cluster = noisy_clusters.places(96, 8), np.arange(96) // 8
    centre = np.stack([place[cluster == one].mean(axis=0) for one in range(12)])
    nearest = np.linalg.norm(place[:, None] - centre, axis=2).argmin(axis=1)
    assert np.array_equal(nearest, cluster)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--keep-ratio", "1.5"], "error: --keep-ratio must lie in [0, 1], got 1.5"),
        (["--classes", "1"], "error: classes must be a whole number of at least 2, got 1"),
    ],
)
def test_bad_options_end_with_one_line_and_code_2(arguments, message, tmp_path):
    command = [sys.executable, str(ROOT / "examples" / "noisy_clusters.py"), "--out", str(tmp_path / "out"), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert ended.returncode == 2
    assert ended.stderr.strip() == message
    assert not (tmp_path / "out").exists()


def test_noise_adds_edges_and_changes_nothing_else(tmp_path, capsys):
    source, target = tmp_path / "plain.npz", tmp_path / "noisy.npz"
    arrays = {"edge_index": np.array([[0, 1, 2, 3, 1], [1, 2, 3, 4, 0]]), "x": np.eye(6), "y": np.arange(6) % 2}
    np.savez(source, **arrays)
    noisy.main([str(source), "--share", "1.5", "--seed", "3", "--out", str(target)])
    assert "4 edges and 6 random ones" in capsys.readouterr().out
    made = np.load(target)
    assert {name: made[name].tolist() for name in ("x", "y")} == {name: arrays[name].tolist() for name in ("x", "y")}
    low, high = made["edge_index"]
    assert len({*zip(low.tolist(), high.tolist(), strict=True)}) == 10  # all different
    assert bool((low < high).all())
    assert [*zip(low[:4].tolist(), high[:4].tolist(), strict=True)] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    for wrong, message in (
        (["--share", "5"], "6 nodes have no room for 20 more edges"),
        (["--share", "-1"], "--share must be at least 0"),
    ):
        with pytest.raises(TadropedgeError, match=message):
            noisy.main([str(source), *wrong])
