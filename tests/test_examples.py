import subprocess
import sys
from pathlib import Path

import clusters
import noisy
import numpy as np
import pytest
import torch

from tadropedge import TadropedgeError

ROOT = Path(__file__).resolve().parents[1]


def test_the_demo_writes_a_picture_and_a_report(tmp_path, capsys):
    clusters.main(["--out", str(tmp_path / "new"), "--draws", "200"])
    out = capsys.readouterr().out
    assert "3 clusters, 60 nodes" in out
    for method in ("cutoff", "division", "cdf", "effective-cdf", "inverse-cdf"):
        assert method in out
    assert (tmp_path / "new" / "clusters.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "new" / "report.html").read_text(encoding="utf-8")
    assert "data:image/png;base64," in page
    assert "http" not in page  # works offline


def test_what_the_table_says():
    graph, cluster = clusters.clustered_graph(clusters=4, nodes=15, seed=1)
    assert graph.components.count == 1
    rows = {row.method: row for row in clusters.compare(graph, cluster, keep_prob=0.4, draws=2000)}
    assert rows["cutoff"].between == 1.0
    assert rows["cutoff"].inside == pytest.approx(0.4, abs=0.03)
    for row in rows.values():
        assert row.dropedge_between == pytest.approx(row.kept, abs=0.03)
        assert row.dropedge_inside == pytest.approx(row.kept, abs=0.03)
    for name in ("cutoff", "division", "cdf", "effective-cdf"):
        assert rows[name].between > rows[name].kept
        assert rows[name].connected > rows[name].dropedge_connected
    assert rows["inverse-cdf"].between < rows["inverse-cdf"].kept
    assert rows["inverse-cdf"].connected < rows["inverse-cdf"].dropedge_connected


def test_connectedness_is_counted_subgraph_by_subgraph():
    graph, _ = clusters.clustered_graph(clusters=2, nodes=5, seed=0)
    masks = torch.ones(4, graph.num_edges, dtype=torch.bool)
    masks[1] = False
    masks[3, (graph.pairs == 0).any(dim=0)] = False  # node 0 is cut off
    assert clusters.stays_connected(graph, masks) == 0.5
    assert np.isclose(clusters.stays_connected(graph, masks[:1]), 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--keep-prob", "1.5"], "error: --keep-prob must lie in [0, 1], got 1.5"),
        (["--clusters", "1"], "error: --clusters must be a whole number of at least 2, got 1"),
    ],
)
def test_bad_options_end_with_one_line_and_code_2(arguments, message, tmp_path):
    command = [sys.executable, str(ROOT / "examples" / "clusters.py"), "--out", str(tmp_path / "out"), *arguments]
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
