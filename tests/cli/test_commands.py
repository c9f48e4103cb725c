"""Every command, end to end, on the karate club."""

import csv
import json

import numpy as np
import pytest
import torch
from command import Command

import tadropedge as tde
from tadropedge.cli.app import COMMANDS, app
from tadropedge.lab.data.load import load

SEARCH = ("--trials", 2, "--replicates", 2, "--epochs", 4, "--hidden", 4)


def written(folder):
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train") / "model"
    with pytest.MonkeyPatch.context():
        assert app.meta(
            ["train", "karate", "--method", "cdf", "--keep-prob", "0.7", "--epochs", "30", "--out", str(folder)],
            exit_on_error=False,
        ) in (0, None)
    return folder


def test_help_lists_every_command(capsys):
    done = Command(capsys, "--help")
    assert done.code == 0
    assert all(f"│ {name} " in done.out for name in COMMANDS)
    assert max(map(len, done.out.splitlines())) <= 80
    assert Command(capsys).out == done.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name, capsys):
    done = Command(capsys, name, "-h")
    assert done.code == 0
    assert "╭─ Running and output" in done.out
    options = app[name].assemble_argument_collection(parse_docstring=True)
    assert [one.names for one in options if not one.parameter.help and one.names != ("*",)] == []


def test_compare(capsys, tmp_path):
    words = ("compare", "karate", "--methods", "dropedge,cdf", *SEARCH, "--out", tmp_path / "found")
    done = Command(capsys, *words)
    assert done.code == 0
    assert "read karate: 34 nodes" in done.err
    assert "trainings, about" in done.err
    assert max(len(line) for line in done.out.splitlines() if not line.startswith("  ")) <= 80
    assert {"report.html", "results.csv", "results.json", "trials.db"} <= written(tmp_path / "found")
    again = Command(capsys, *words, "--json")
    found = json.loads(again.out)
    assert found == json.loads((tmp_path / "found" / "results.json").read_text())
    assert {"original", "dropedge", "cdf"} <= {row["candidate"] for row in found["rows"]}
    assert len(found["rows"][0]["replicates"]) == 2
    (tmp_path / "found" / "report.html").unlink()
    assert Command(capsys, "report", tmp_path / "found").code == 0
    assert "report.html" in written(tmp_path / "found")


def test_widths_are_given_in_points_and_times_in_words(capsys, tmp_path):
    given = ("--margin", 2, "--half-width", 50, "--time-budget", "90s", "--controls", "none")
    done = Command(capsys, "compare", "karate", "--methods", "dropedge", *SEARCH, *given, "--json", "--out", tmp_path)
    run = json.loads(done.out)["run"]
    assert (run["margin"], run["half_width"], run["time_budget"]) == (0.02, 0.5, 90)


def test_train_and_predict(trained, capsys, tmp_path):
    assert written(trained) == {"model.safetensors", "results.json"}
    found = json.loads((trained / "results.json").read_text())
    assert (found["method"], found["measure"]) == ("cdf", "accuracy")
    assert 0.5 < found["kept_share"] < 1
    done = Command(capsys, "predict", trained, "karate", "--out", tmp_path / "p.csv", "--json")
    told = json.loads(done.out)
    with (tmp_path / "p.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["node"] for row in rows] == [str(node) for node in range(34)]
    predicted = torch.tensor([int(row["predicted"]) for row in rows])
    assert told["accuracy"] == float((predicted == load("karate").labels).double().mean())
    assert all(abs(sum(float(row[f"p_{k}"]) for k in range(4)) - 1) < 1e-5 for row in rows)
    assert Command(capsys, "predict", trained, "karate", "--out", tmp_path / "p.csv").code == 0  # its own file


def test_predict_needs_no_labels(trained, capsys, tmp_path):
    data = load("karate")
    bare = {"edge_index": data.graph.pairs.numpy(), "x": data.features.numpy(), "num_nodes": 34}
    np.savez(tmp_path / "bare.npz", **bare)
    done = Command(capsys, "predict", trained, tmp_path / "bare.npz", "--out", tmp_path / "p.csv", "--json")
    assert json.loads(done.out)["accuracy"] is None
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 35


def test_what_is_printed_to_be_typed_works_on_tables_of_nodes(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [f"n{node}" for node in range(12)]
    edges = [(a, b) for a in range(12) for b in range(a) if (a - b) % 3 == 0 or (a * b) % 7 == 1]
    (tmp_path / "edges.csv").write_text("from,to,km\n" + "".join(f"{names[a]},{names[b]},1.5\n" for a, b in edges))
    rows = [f"{name},{place % 3},{place}" for place, name in enumerate(names)]
    labelled = [f"{row},{'xyz'[place % 3]}\n" for place, row in enumerate(rows)]
    (tmp_path / "nodes.csv").write_text("id,a,b,label\n" + "".join(labelled))
    (tmp_path / "new.csv").write_text("id,a,b\n" + "".join(f"{row}\n" for row in rows))
    given = ("edges.csv", "--nodes", "nodes.csv", "--columns", "weight=km", "--per-class", 1)
    done = Command(capsys, "compare", *given, "--methods", "dropedge", *SEARCH)
    (line,) = (line for line in done.out.splitlines() if line.startswith("  tadropedge train"))
    assert Command(capsys, *line.split()[1:]).code == 0, line
    done = Command(capsys, "train", *given, "--epochs", 2, "--out", "model")
    hint = done.out.strip().splitlines()[-1].split()
    assert Command(capsys, *hint[1:]).code == 0, hint
    hint[hint.index("nodes.csv")] = "new.csv"  # which has no labels
    done = Command(capsys, *hint[1:], "--json")
    assert json.loads(done.out)["accuracy"] is None


def test_train_with_mini_batches_and_settings(capsys):
    given = ("--batch-size", 4, "--fanout", "5,5", "--settings", "normalization=first-order,self_weight=true")
    done = Command(capsys, "train", "karate", "--network", "sage", "--epochs", 3, "--batch-size", 4, "--json")
    assert json.loads(done.out)["method"] == "original"
    done = Command(capsys, "train", "karate", "--method", "dropedge@0.5", "--epochs", 3, *given, "--json")
    assert done.code == 0
    assert 0 <= json.loads(done.out)["test"] <= 1


def test_a_model_of_ones_own(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sizes.py").write_text("WIDTH = 4\n")  # which stands beside it
    (tmp_path / "own.py").write_text(
        "from sizes import WIDTH\nfrom torch_geometric.nn import GCN\n"
        "def small(n, c, hidden=WIDTH):\n    print(hidden)\n    return GCN(n, hidden, 2, c)\n"
    )
    words = ("compare", "karate", "--model", "own.py:small", "--methods", "dropedge", *SEARCH, "--json")
    done = Command(capsys, *words)
    assert done.code == 0, done.err
    assert json.loads(done.out)["run"]["network"] == "small"  # what it prints is no result
    assert set(done.err.split("\n")) >= {"4"}  # a factory's own default holds
    done = Command(capsys, "train", "karate", "--model", "own.py:small", "--epochs", 2, "--hidden", 6, "--out", "model")
    assert "6" in done.err.split("\n")
    hint = done.out.strip().splitlines()[-1].split()
    assert Command(capsys, *hint[1:], "--json").code == 0, hint
    assert (tmp_path / "comparison-karate" / "report.html").is_file()


def test_sparsify(capsys, tmp_path):
    done = Command(capsys, "sparsify", "karate", "--keep-ratio", 0.7, "--out", tmp_path, "--json")
    found = json.loads(done.out)
    assert found == json.loads((tmp_path / "certificate.json").read_text())
    thinned = tde.Graph.from_file(tmp_path / "graph.npz")
    assert thinned.num_edges == found["kept"] == torch.load(tmp_path / "data.pt", weights_only=False).num_edges // 2
    assert found["certificate"]["components_after"] == 1
    exact = tde.certify(load("karate").graph, thinned)
    assert found["certificate"]["lambda_max"] == pytest.approx(exact.lambda_max)
    assert written(tmp_path) == {"edges.csv", "graph.npz", "data.pt", "certificate.json", "cache"}


def test_every_reader_says_what_it_read(capsys, tmp_path):
    (tmp_path / "roads.csv").write_text("id;from;to;length\n1;a;b;0,5\n2;b;c;1,5\n3;c;a;2\n4;c;d;1\n")
    done = Command(
        capsys, "sparsify", tmp_path / "roads.csv", "--columns", "weight=length", "--keep-ratio", 0.9,
        "--out", tmp_path / "s",
    )  # fmt: skip
    assert "weights from 'length'; header read" in done.err
    assert done.code == 0


def test_a_column_of_scores_belongs_to_the_edges_as_they_are_listed(capsys, tmp_path):
    (tmp_path / "scored.csv").write_text("source,target,trust\n3,4,9\n0,1,1\n1,2,5\n0,2,0.5\n")
    words = ("weights", tmp_path / "scored.csv", "--column", "trust", "--no-figures")
    assert Command(capsys, *words, "--out", tmp_path / "w").code == 0
    with (tmp_path / "w" / "weights.csv").open() as stream:
        found = {(row["source"], row["target"]): float(row["score"]) for row in csv.DictReader(stream)}
    assert found == {("3", "4"): 9, ("0", "1"): 1, ("1", "2"): 5, ("0", "2"): 0.5}


def test_datasets(capsys):
    done = Command(capsys, "datasets")
    assert "pyg:WebKB/Texas" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    listed = json.loads(Command(capsys, "datasets", "--json").out)["datasets"]
    assert next(entry for entry in listed if entry["name"] == "karate")["here"]


def test_methods_and_plugins(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "strengths.py").write_text(
        "import tadropedge as tde\ndef strength(graph):\n    '''My own score.'''\n    return graph.pairs.sum(0)\n"
        "tde.SCORES['strength'] = strength\n"
    )
    try:
        for name in ("strengths", "strengths.py"):
            done = Command(capsys, "methods", "--plugin", name)
            assert "My own score." in done.out
        assert max(map(len, done.out.splitlines())) <= 80
        done = Command(capsys, "weights", "karate", "--score", "strength", "--no-figures", "--out", tmp_path / "w")
        assert done.code == 0
    finally:
        del tde.SCORES["strength"]


def test_a_plugin_called_as_a_module_of_python_does_not_replace_it(capsys, tmp_path):
    (tmp_path / "json.py").write_text("raise ValueError('odd')")
    done = Command(capsys, "methods", "--plugin", tmp_path / "json.py", "--json")
    assert "odd" in done.error
    assert json.loads("1") == 1


def test_doctor(capsys):
    done = Command(capsys, "doctor", "--json")
    found = json.loads(done.out)
    assert done.code == bool(found["problems"])
    assert "torch" in found["packages"]
    assert found["devices"]["CPU"]


def test_options_come_from_a_file_too(capsys, tmp_path):
    (tmp_path / "run.toml").write_text(
        '[sparsify]\nkeep-ratio = 0.8\nconnected = false\nscore = "degree"\nplugin = []\n[weights]\nq = 3\n'
    )
    words = ("sparsify", "karate", "--config", tmp_path / "run.toml", "--json")
    found = json.loads(Command(capsys, *words, "--out", tmp_path / "a").out)["settings"]
    assert (found["keep_ratio"], found["connected"], found["score"]) == (0.8, False, "degree")
    found = json.loads(Command(capsys, *words, "--keep-ratio", 0.6, "--out", tmp_path / "b").out)["settings"]
    assert found["keep_ratio"] == 0.6  # what is typed comes first
