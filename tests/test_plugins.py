"""A user's own score and rule, added to the registries from a module of their own, are usable everywhere."""

import csv
import json
import subprocess
import sys

import pytest
import torch
from contracts.rules import RuleContract
from contracts.scores import ScoreContract
from torch_geometric.datasets import KarateClub

import tadropedge as tde
from tadropedge.method import Method, droppings
from tadropedge.pyg import AddKeepProbability, AddScore

MODULE = '''
import torch
import tadropedge as tde


def degrees(graph):
    """1/d_u + 1/d_v: high for the edges that nodes of few neighbours depend on."""
    counts = torch.bincount(graph.pairs.flatten(), minlength=graph.num_nodes).double()
    return (1 / counts)[graph.pairs].sum(0)


def root(weights):
    """The square root of the share of the largest."""
    return (weights / weights.max().clamp_min(1e-300)).sqrt()


tde.SCORES["few-neighbours"] = degrees
tde.STRATEGIES["square-root"] = root
'''
METHODS = ["original", "dropedge", "few-neighbours-square-root", "inverse-few-neighbours-cdf", "square-root"]


@pytest.fixture(scope="module")
def added():
    """The same functions, added in this process and taken away again."""
    exec(compile(MODULE, "mine.py", "exec"), {})
    yield
    del tde.SCORES["few-neighbours"], tde.STRATEGIES["square-root"]


def run(folder, *arguments):
    (folder / "mine.py").write_text(MODULE)
    command = [sys.executable, "-m", "tadropedge", *map(str, arguments), "--plugin", "mine"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_compare_and_its_report(tmp_path):
    budget = ("--trials", 2, "--seeds", 2, "--epochs", 3, "--out", "found", "--json")
    rows = json.loads(run(tmp_path, "compare", "karate", "--methods", ",".join(METHODS), *budget))["compare"]
    assert [row["method"] for row in rows] == METHODS
    assert all(list(row["against"]) == ["none", "dropedge", "budget"] for row in rows[2:])
    assert 0 < rows[2]["settings"]["kept_share"] < 1
    page = (tmp_path / "found" / "report.html").read_text()
    assert all(method in page for method in METHODS)


def test_train_and_weights(tmp_path):
    told = json.loads(run(tmp_path, "train", "karate", "--method", METHODS[2], "--epochs", 3, "--json"))
    assert told["method"] == METHODS[2]
    run(tmp_path, "weights", "karate", "--score", "few-neighbours", "--no-figures", "--out", "scores")
    with (tmp_path / "scores" / "weights.csv").open() as stream:
        table = list(csv.DictReader(stream))
    degrees = torch.bincount(KarateClub()[0].edge_index[0])
    for row in table:
        ends = [int(row["source"]), int(row["target"])]
        assert float(row["weight"]) == pytest.approx(float((1 / degrees[ends]).sum()))
    assert "square-root" in json.loads((tmp_path / "scores" / "summary.json").read_text())["strategies"]


def test_python_and_pytorch_geometric(added):
    data = KarateClub()[0]
    data = AddKeepProbability(strategy="square-root", keep_prob=0.5)(AddScore("few-neighbours")(data))
    graph = tde.Graph.from_data(data)
    scores = tde.edge_scores(graph, "few-neighbours")
    prob = tde.keep_probabilities(scores, keep_prob=0.5, strategy="square-root")
    assert torch.equal(data.edge_keep_prob, graph.to_arcs(prob, loops=1.0))
    assert torch.equal(data.edge_score, graph.to_arcs(scores))


def test_the_grammar_knows_them(added):
    assert {"few-neighbours-square-root", "inverse-few-neighbours-square-root", "square-root"} <= set(droppings())
    method = Method.of("graphsage+inverse-few-neighbours-square-root")
    assert (method.score, method.strategy, method.inverse) == ("few-neighbours", "square-root", True)
    assert (method.network, method.reference) == ("graphsage", "graphsage+dropedge")


@pytest.mark.usefixtures("added")
class TestOwnScore(ScoreContract):
    score = "few-neighbours"
    weighted = False


@pytest.mark.usefixtures("added")
class TestOwnRule(RuleContract):
    strategy = "square-root"

    def score(self, weight, share):
        return (weight / 2.0) ** 0.5  # 2 is the largest of the contract's weights
