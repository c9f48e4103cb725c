"""Every command of the old package still runs, on the smallest data there is."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from tadropedge._old.cli import COMMANDS, app

KARATE = ("karate", "--device", "cpu")
MAP = """
title = "A map of one graph"
datasets = ["karate"]
methods = ["original", "dropedge", "cdf"]
conditions = [{ kind = "budget", values = [0.8] }]

[base]
labels = 2
hidden = 4
epochs = 2
trials = 2
choose_splits = 1
seeds = 2
evaluate_every = 1
"""


def run(*words):
    """What a command prints; it must succeed."""
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def written(folder):
    return {path.name for path in folder.iterdir()}


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare") / "karate"
    search = ("--trials", 2, "--epochs", 2, "--choose-splits", 1, "--seeds", 2)
    run("compare", *KARATE, "--methods", "original,dropedge,cdf", *search, "--out", folder)
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train") / "model"
    run("train", *KARATE, "--method", "cdf", "--keep-prob", 0.7, "--epochs", 2, "--out", folder)
    return folder


@pytest.mark.parametrize("started", [["-m", "tadropedge._old"]])
def test_help_lists_every_command(started):
    done = subprocess.run([sys.executable, *started, "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert len(COMMANDS) == 12
    assert all(command.__name__.removesuffix("_command") in done.stdout for command in COMMANDS)


def test_compare(compared):
    assert {"report.html", "results.csv", "results.json", "study.db"} <= written(compared)


def test_report(compared):
    (compared / "report.html").unlink()
    run("report", compared)
    assert "report.html" in written(compared)


def test_recover(compared):
    assert "trials" in run("recover", compared / "study.db")


def test_train(trained):
    assert written(trained) == {"model.json", "model.safetensors"}


def test_predict(trained, tmp_path):
    run("predict", trained, *KARATE, "--out", tmp_path / "predictions.csv")
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 1 + 34


def test_weights(tmp_path):
    run("weights", "karate", "--q", 2, "--out", tmp_path)
    assert {"graph.html", "graph.png", "summary.json", "weights.csv", "weights.npz"} <= written(tmp_path)


def test_sparsify(tmp_path):
    run("sparsify", "karate", "--keep-ratio", 0.6, "--out", tmp_path)
    assert {"certificate.json", "data.pt", "edges.csv", "graph.npz"} <= written(tmp_path)


def test_regimes(tmp_path):
    (tmp_path / "tiny.toml").write_text(MAP)
    run("regimes", "--recipe", tmp_path / "tiny.toml", "--device", "cpu", "--out", tmp_path / "map")
    assert "report.html" in written(tmp_path / "map")
    assert "cora" in run("regimes", "--preset", "full", "--plan")


def test_reproduce(tmp_path):
    run("reproduce", "fig1", "--device", "cpu", "--out", tmp_path)
    assert {"README.md", "claims.md", "fig1.csv", "report.html", "results.json"} <= written(tmp_path)


def test_methods():
    assert "degree" in run("methods")


def test_datasets(tmp_path):
    assert "karate" in run("datasets", "--data-root", tmp_path)


def test_doctor():
    assert "torch-geometric" in CliRunner().invoke(app, ["doctor"], catch_exceptions=False).stdout


def test_a_mistake_is_one_line():
    command = [sys.executable, "-m", "tadropedge._old", "train", "karat"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "karate" in done.stderr
    assert done.stderr.count("\n") == 1
