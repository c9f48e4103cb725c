"""``tadropedge weights`` from end to end."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import data_root
from graphs import ZOO
from typer.testing import CliRunner

from tadropedge import SCORES, aggregate_resistance, effective_resistance
from tadropedge.cli import app
from tadropedge.data import load_dataset
from tadropedge.errors import TadropedgeError
from tadropedge.score_report import write
from tadropedge.scores import aggregate, solve
from tadropedge.spectrum import SOLVERS

FILES = ["weights.csv", "weights.npz", "summary.json", "spectrum.png", "distribution.png", "graph.png", "graph.html"]


def run(*arguments):
    return CliRunner().invoke(app, ["weights", *map(str, arguments)], catch_exceptions=True)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_everything_is_written_and_said(tmp_path):
    result = run("karate", "--out", tmp_path)
    assert result.exit_code == 0, result.exception
    assert names(tmp_path) == sorted([*FILES, "cache"])
    weights = aggregate_resistance(ZOO["karate"], q=4)  # four classes
    with (tmp_path / "weights.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["weight"]) for row in rows] == weights.tolist()
    assert [[int(row["source"]) for row in rows], [int(row["target"]) for row in rows]] == ZOO["karate"].pairs.tolist()
    rules = ("cutoff", "division", "cdf", "proportional")
    assert set(rows[0]) == {"source", "target", "weight", *(f"keep_{rule}" for rule in rules), "component"}
    with np.load(tmp_path / "weights.npz", allow_pickle=False) as arrays:
        assert np.array_equal(arrays["weight"], weights)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["files"] == FILES
    assert summary["weights"]["chosen_q"] == 4
    assert {"command", "commit", "machine", "versions", "seconds"} <= set(summary["run"])
    words = " ".join(result.stdout.split())
    for said in (
        "34 nodes, 78 edges",
        "chosen q 4",
        "solved by dense (1)",
        "γ 0.1475 (the knee): 3 critical edges",
        "cutoff 71.15% 3.85%",
    ):
        assert said in words


def test_json_is_json_alone_and_figures_can_be_left_out(tmp_path):
    result = run("karate", "--score", "effective", "--json", "--no-figures", "--out", tmp_path)
    assert json.loads(result.stdout) == json.loads((tmp_path / "summary.json").read_text())
    assert result.stderr == ""
    assert names(tmp_path) == ["cache", "summary.json", "weights.csv", "weights.npz"]
    with np.load(tmp_path / "weights.npz", allow_pickle=False) as arrays:
        assert np.array_equal(arrays["weight"], effective_resistance(ZOO["karate"]))


def test_the_table_can_be_left_out_and_none_of_an_earlier_run_stays(tmp_path):
    arguments = ("karate", "--score", "degree", "--no-figures", "--out", tmp_path)
    assert run(*arguments).exit_code == 0
    with np.load(tmp_path / "weights.npz") as arrays:
        before = arrays["weight"]
    result = run(*arguments, "--no-csv")
    assert f"written to {tmp_path}: weights.npz, summary.json" in result.stdout
    assert names(tmp_path) == ["summary.json", "weights.npz"]
    with np.load(tmp_path / "weights.npz") as arrays:
        assert np.array_equal(arrays["weight"], before)


def test_explain_computes_and_writes_nothing(tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("something was solved")

    monkeypatch.setattr(aggregate, "execute", never)
    arguments = ("clusters", "--desired-clusters", 3, "--explain", "--out", tmp_path / "out")
    assert "dense" in run(*arguments).stdout
    told = json.loads(run(*arguments, "--json").stdout)
    assert told[-1]["count"] == 1
    assert told[-1]["rungs"] == ["dense"]
    assert names(tmp_path) == []


@pytest.fixture
def many_parts(tmp_path):
    """A file with string names and several components, each a part of its own."""
    file = tmp_path / "names.tsv"
    pairs = ZOO["parts"].pairs.T.tolist()
    file.write_text("".join(f"node {i}\tnode {j}\n" for i, j in pairs))
    return file


def test_a_kill_in_the_middle_changes_no_byte(many_parts, tmp_path, monkeypatch):
    arguments = (many_parts, "--q", 3, "--no-figures", "--out")
    assert run(*arguments, tmp_path / "whole").exit_code == 0
    original, solved = solve._solve_part, []

    def killed_at_the_second(*given):
        if solved:
            raise KeyboardInterrupt
        solved.append(given)
        return original(*given)

    monkeypatch.setattr(solve, "_solve_part", killed_at_the_second)
    result = run(*arguments, tmp_path / "killed")
    assert result.exit_code == 130
    assert "Resume with: tadropedge" in result.stderr
    assert names(tmp_path / "killed") == ["cache"]
    monkeypatch.setattr(solve, "_solve_part", lambda *given: solved.append(given) or original(*given))
    assert run(*arguments, tmp_path / "killed").exit_code == 0
    assert len(solved) == 3  # of three components with enough nodes, the first only once
    for name in ("weights.csv", "weights.npz"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert '"node 0","node 1",' in (tmp_path / "whole" / "weights.csv").read_text()


def test_what_is_too_large_is_not_drawn_and_old_pictures_go(tmp_path, monkeypatch):
    assert run("karate", "--out", tmp_path).exit_code == 0
    monkeypatch.setattr(write, "MOST_EDGES", 50)
    result = run("karate", "--out", tmp_path)
    for name in ("graph.png", "graph.html"):
        assert f"{name} is left out: 78 edges, more than the 50" in result.stdout
        assert not (tmp_path / name).exists()
    assert (tmp_path / "spectrum.png").exists()


def test_weights_and_header_of_a_file(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text("a,b,weight\n1,2,0.5\n2,3,2\n3,1,4\n3,4,1\n")
    arguments = ("--q", 2, "--json", "--no-figures", "--out", tmp_path / "out")
    assert json.loads(run(file, *arguments).stdout)["graph"]["weighted"] is True
    plain = json.loads(run(file, "--unweighted", *arguments).stdout)
    assert plain["graph"]["weighted"] is False
    assert plain["graph"]["nodes"] == 4


BAD = {
    "name": (["kartae"], "unknown dataset or file 'kartae'; choose from cora"),
    "file": (["nowhere.csv", "--q", "2"], "no such file: 'nowhere.csv'"),
    "line": (["broken.csv", "--q", "2"], "broken.csv:2: expected 2 columns, got 1"),
    "no q": (["good.csv"], "'good' has no classes to take --q from: give --q or --desired-clusters"),
    "large q": (["good.csv", "--q", "9"], "--q 9 is larger than every component; the largest has 3 nodes"),
    "both": (["good.csv", "--q", "2", "--desired-clusters", "2"], "give either --q or --desired-clusters"),
    "solver": (["karate", "--solver", "magic"], "unknown solver 'magic'; choose from auto, dense"),
    "laplacian": (["karate", "--laplacian", "x"], "unknown laplacian 'x'"),
    "score": (["karate", "--score", "x"], "unknown score 'x'; choose from aggregate, effective"),
    "effective q": (
        ["karate", "--score", "effective", "--q", "2"],
        "has no setting --q; its settings are --relative-error, --seed",
    ),
    "explain": (["karate", "--score", "effective", "--explain"], "which the score 'effective' does not use"),
    "keep_prob": (["karate", "--keep-prob", "1.5"], "--keep-prob must lie in [0, 1], got 1.5"),
    "gamma": (["karate", "--gamma", "-1"], "gamma must be a positive number, got -1.0"),
    "tolerance": (["karate", "--tolerance", "0"], "tolerance must be a positive number"),
    "device": (["karate", "--device", "tpu"], "device 'tpu' is not available"),
    "out": (["karate", "--out", "good.csv"], "cannot write into the folder 'good.csv': it is a file"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_leaves_nothing(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text("a,b\nb,c\n")
    (tmp_path / "broken.csv").write_text("a,b\nb\n")
    arguments, message = BAD[name]
    result = run(*arguments)
    assert isinstance(result.exception, TadropedgeError)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)
    assert names(tmp_path) == ["broken.csv", "good.csv"]


def test_memory_that_runs_out_is_said_in_one_line(tmp_path, monkeypatch):
    def full(*_):
        raise MemoryError("Unable to allocate 8.00 TiB")

    monkeypatch.setattr(aggregate, "execute", full)
    result = run("karate", "--out", tmp_path / "out")
    assert str(result.exception).startswith(
        "not enough memory for a part of 34 nodes and 78 edges: a piece of 8.8 TB was asked for, "
    )
    assert names(tmp_path) == []


def test_the_old_name_of_score_still_works(tmp_path):
    result = run("karate", "--kind", "effective", "--json", "--no-figures", "--out", tmp_path)
    assert json.loads(result.stdout)["weights"]["kind"] == "effective"
    assert result.stderr == "warning: --kind is deprecated, use --score\n"


def test_a_score_that_you_registered(tmp_path, monkeypatch):
    def strength(graph, features, power=2):
        return (features[graph.pairs] ** power).sum(dim=(0, 2))

    monkeypatch.setitem(SCORES, "strength", strength)
    result = run("clusters", "--score", "strength", "--out", tmp_path)
    assert result.exit_code == 0, result.exception
    assert names(tmp_path) == sorted(set(FILES) - {"spectrum.png"})  # no modes, and nothing is cached
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["weights"]["kind"], "eigenvalues" in summary["weights"]) == ("strength", False)
    assert "the score strength, sum" in " ".join(result.stdout.split())
    with np.load(tmp_path / "weights.npz", allow_pickle=False) as arrays:
        data = load_dataset("clusters")
        assert arrays["weight"] == pytest.approx(strength(data.graph, data.features).numpy())


def test_help_names_every_solver():
    said = " ".join(run("--help").output.replace("│", "").split())
    assert all(name in said for name in SOLVERS)


def test_the_process_ends_with_one_line_and_code_2(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    arguments = [sys.executable, "-m", "tadropedge", "weights", "karate", "--q", "99", "--out", tmp_path / "out"]
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 2
    assert done.stderr.strip() == "error: --q 99 is larger than every component; the largest has 34 nodes"
    assert done.stdout == ""
    assert names(tmp_path) == []


def test_help_has_an_example():
    assert "Examples: tadropedge weights cora" in " ".join(run("--help").output.split())


def test_cora_has_the_known_components(tmp_path, citation):
    citation("cora")
    result = run("cora", "--no-figures", "--json", "--out", tmp_path, "--data-root", data_root())
    found = json.loads(result.stdout)
    assert found["graph"]["components"] == {"count": 78, "largest": 2485, "smallest": 2, "isolated_nodes": 0}
    assert (found["graph"]["nodes"], found["graph"]["edges"]) == (2708, 5278)
    weights = torch.from_numpy(np.load(tmp_path / "weights.npz")["weight"])
    assert torch.equal(weights, aggregate_resistance(citation("cora"), q=7))


# The component that is spoken of.


def spoken(folder):
    return json.loads((folder / "summary.json").read_text())


def test_the_largest_component_is_spoken_of_and_others_can_be_chosen(tmp_path):
    edges = [(f"a{i}", f"a{j}") for i in range(4) for j in range(i)] + [("a3", "b0")]
    edges += [(f"b{i}", f"b{j}") for i in range(4) for j in range(i)] + [("c0", "c1"), ("c1", "c2"), ("c2", "c3")]
    (tmp_path / "edges.csv").write_text("".join(f"{low},{high}\n" for low, high in edges))
    said = run(tmp_path / "edges.csv", "--q", "2", "--out", tmp_path / "one")
    assert said.exit_code == 0, said.exception
    assert "looked at the largest of 2 components: 8 nodes, 13 edges" in " ".join(said.stdout.split())
    one = spoken(tmp_path / "one")
    assert one["part"]["component"] == 1
    assert (one["most_critical"][0]["source"], one["most_critical"][0]["target"]) == ("a3", "b0")
    with (tmp_path / "one" / "weights.csv").open() as stream:  # every edge is written
        rows = list(csv.DictReader(stream))
    assert sorted(row["component"] for row in rows) == ["1"] * 13 + ["2"] * 3
    for chosen in (("--component", "2"), ("--component-of", "c3")):
        assert run(tmp_path / "edges.csv", "--q", "2", *chosen, "--out", tmp_path / "two").exit_code == 0
        two = spoken(tmp_path / "two")
        assert two["weights"]["eigenvalues"][:2] == pytest.approx([0, 2 - 2**0.5])  # a path of four nodes
        assert (tmp_path / "two" / "spectrum.png").exists()
        assert {edge["source"][0] for edge in two["most_critical"]} == {"c"}
    assert run(tmp_path / "edges.csv", "--q", "2", "--component", "all", "--out", tmp_path / "all").exit_code == 0
    assert spoken(tmp_path / "all")["part"]["edges"] == 16
    wrong = run(tmp_path / "edges.csv", "--q", "2", "--component", "3", "--out", tmp_path / "three")
    assert "component '3' is not known" in str(wrong.exception)
    assert not (tmp_path / "three").exists() or not names(tmp_path / "three")


def test_on_cora_islands_are_not_called_critical(tmp_path, citation):
    assert run("cora", "--no-figures", "--out", tmp_path, "--data-root", data_root()).exit_code == 0
    found = spoken(tmp_path)
    assert (found["part"]["nodes"], found["part"]["edges"], found["graph"]["components"]["count"]) == (2485, 5069, 78)
    data = load_dataset("cora", root=data_root()).graph
    inside = data.components.labels == data.components.sizes.argmax()
    assert all(bool(inside[edge["source"]]) for edge in found["most_critical"])
    assert found["part"]["critical_elsewhere"] > 0
