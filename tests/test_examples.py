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
    noisy_clusters.main(["--out", str(tmp_path / "new"), "--classes", "3", "--nodes", "12", "--noise", "1"])
    out = capsys.readouterr().out
    assert "3 clusters of 12 nodes" in out
    assert "DropEdge" in out
    assert "jaccard-cdf" in out
    assert (tmp_path / "new" / "noisy-clusters.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "new" / "picture.html").read_text(encoding="utf-8")
    assert "data:image/png;base64," in page
    assert "http" not in page  # works offline


def test_the_score_keeps_fewer_random_edges_than_dropedge_at_the_same_budget():
    data = load_noisy_clusters()
    between = noisy_clusters.between_clusters(data)
    for seed in range(5):
        scores, (alike, chosen) = noisy_clusters.subgraphs(data, keep_prob=0.05, seed=seed)
        assert torch.equal(scores, tde.edge_scores(data.graph, "jaccard"))
        deviation = (data.graph.num_edges / 4) ** 0.5  # of a number of kept edges, at most
        assert abs(int(alike.mask.sum()) - int(chosen.mask.sum())) < 6 * deviation
        assert alike.between == pytest.approx(float(between.double().mean()), abs=0.05)
        assert chosen.between < alike.between - 0.1
        assert chosen.between == pytest.approx(float(between[chosen.mask].double().mean()))


def test_nodes_of_a_cluster_are_drawn_side_by_side():
    data = load_noisy_clusters(classes=5)
    place, label = noisy_clusters.places(data), data.labels.numpy()
    centre = np.stack([place[label == cluster].mean(axis=0) for cluster in range(5)])
    nearest = np.linalg.norm(place[:, None] - centre, axis=2).argmin(axis=1)
    assert np.array_equal(nearest, label)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--keep-prob", "1.5"], "error: --keep-prob must lie in [0, 1], got 1.5"),
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
