"""What is claimed, against what, and what the answer says of it."""

import re
from dataclasses import replace

import pytest
import torch
from compare.fakes import made
from torch_geometric.data import Data
from torch_geometric.nn import GCN

from tadropedge import TadropedgeError
from tadropedge.lab import load
from tadropedge.lab.comparison.advice import facts, fallen
from tadropedge.lab.comparison.page import costs
from tadropedge.lab.comparison.results import Comparison

WINNER = "jaccard-proportional:weighted"
STEP = "  # at each training step: step = drop(data); model(step.x, step.edge_index)"
ONCE = "  # once; then model(weighed.x, weighed.edge_index, weighed.edge_weight)"
OTHER = {"hidden": 32, "settings": {"batch_norm": True}}
CONTROLS = ["dropedge", "dropedge@0.3", "jaccard-proportional:pruned"]


def test_controls_are_trained_for_those_that_win_alone():
    found, asked = made({"dropedge": 0.0, WINNER: 0.03, "cdf": -0.03})
    assert asked == [["original", "dropedge", WINNER, "cdf"], CONTROLS[1:]]
    assert list(found.row(WINNER).against) == ["original", *CONTROLS]
    assert list(found.row("cdf").against) == ["original"]
    assert found.row("original").against == found.row("dropedge@0.3").against == {}
    words = {row.candidate: row.against["original"].word for row in found.rows if row.against}
    assert words == {"dropedge": "same", WINNER: "better", "cdf": "worse"}


def test_all_controls_or_none():
    _, asked = made({"cdf": -0.03}, controls="all")
    assert asked[1] == ["dropedge", "dropedge@0.3", "cdf:weighted", "cdf:pruned"]
    assert len(made({WINNER: 0.03}, controls="none")[1]) == 1
    with pytest.raises(TadropedgeError, match="controls"):
        made({}, controls="some")


def test_a_claim_must_hold_against_all_of_its_controls():
    proven = made({"dropedge": 0.0, WINNER: 0.03})[0]
    assert (facts(proven)["kind"], facts(proven)["use"]) == ("better", WINNER)
    half = made({"dropedge": 0.0, WINNER: 0.03, "jaccard-proportional:pruned": 0.03})[0]
    assert (facts(half)["kind"], facts(half)["use"]) == ("uncontrolled", WINNER)
    assert facts(half)["unbeaten"] == ["jaccard-proportional:pruned"]
    assert "jaccard-proportional:pruned" in half.answer["do"]
    untried = made({WINNER: 0.03}, controls="none")[0]
    assert facts(untried)["kind"] == "uncontrolled"
    simple = made({"dropedge": 0.03})[0]  # which has no controls
    assert facts(simple)["kind"] == "better"


def test_no_claim_where_the_network_is_no_better_than_an_mlp():
    found, asked = made({WINNER: 0.03}, mlp=0.0)
    assert len(asked) == 1  # no controls either
    assert found.row(WINNER).against["original"].word == "undecided"
    assert facts(found)["kind"] == "yardstick"
    assert facts(found)["use"] == "original"
    yardstick = found.yardstick
    assert yardstick.difference["low"] <= 0 <= yardstick.difference["high"]
    better, _ = made({WINNER: 0.03}, mlp=-0.1)
    assert better.yardstick.difference["value"] == pytest.approx(0.1, abs=0.01)
    assert facts(better)["kind"] == "better"


def test_no_claim_is_none_against_controls_either():
    found, _ = made({"dropedge": 0.03, WINNER: 0.06}, mlp=0.0, controls="all")
    against = found.row(WINNER).against
    assert list(against) == ["original", *CONTROLS]
    assert {one.word for one in against.values()} == {"undecided"}


def test_the_yardstick_may_take_part_itself():
    found, _ = made({"mlp": -0.1, "dropedge": 0.0}, mlp=-0.1)
    assert [row.candidate for row in found.rows] == ["original", "mlp", "dropedge"]
    assert found.row("mlp").against["original"].word == "worse"
    assert found.yardstick.candidate == "mlp"


def test_the_code_has_the_settings_of_scores_that_were_compared():
    found, _ = made({"cdf": 0.03, "degree-proportional": 0.02}, run={"score_settings": {"q": 5}})
    assert "q=5" in found.answer["code"]
    assert "--q 5" in found.answer["code"]
    other, _ = made({"degree-proportional": 0.03}, run={"score_settings": {"q": 5}})
    assert "q" not in other.answer["code"].replace("tadropedge", "").split()
    assert "q=5" not in other.answer["code"]


def test_two_replicates_or_one_fixed_split_cannot_tell():
    found, _ = made({WINNER: 0.03, "cdf": -0.03}, replicates=2)
    assert facts(found)["kind"] == "few"
    assert "yet" in found.answer["do"]
    found, asked = made({WINNER: 0.03}, num_splits=1, run={"split": "fixed"})
    assert len(asked) == 1
    assert all(row.against == {} for row in found.rows)
    assert found.row(WINNER).low < found.row(WINNER).mean < found.row(WINNER).high
    assert facts(found)["kind"] == "fixed"
    assert facts(found)["use"] == WINNER
    best, other = found.row(WINNER), found.row("original")
    worse = tuple(replace(one, validation=0.1) for one in best.replicates)  # the test scores stay the best
    told = replace(found, rows=(other, replace(best, replicates=worse)))
    assert facts(told)["use"] == "original"
    found, _ = made({"dropedge": 0.0}, num_splits=10)  # of which each has two replicates
    assert found.row("dropedge").against["original"].replicates == 10
    assert len(found.row("dropedge").replicates) == 20


def test_what_costs_less_is_named_with_its_factors():
    tenth = "dropedge@0.1:finish"
    costs = {"original": (0.06, 300), tenth: (0.02, 150), "cdf": (0.01, 100), "dropedge": (0.05, 290)}
    found, _ = made({"dropedge": 0.0, tenth: 0.0, "cdf": -0.03}, costs=costs)
    (one,) = found.cheaper  # cdf is worse, and dropedge saves too little
    assert (one.candidate, one.time_factor, one.memory_factor) == (tenth, pytest.approx(3), pytest.approx(2))
    assert facts(found)["kind"] == "cheaper"
    assert "3.0 ×" in found.answer["do"]
    assert "lambda epoch: 0.1 if epoch < 320" in found.answer["code"]


def test_a_tenth_of_the_edges_is_held_against_what_costs_as_little():
    tenth, fewer = "dropedge@0.1:finish", "original:epochs@0.35"
    times = {"original": 0.06, tenth: 0.021}
    found, asked = made({tenth: 0.0, "cdf": -0.03}, seconds=lambda name, replicates: times[name])
    assert asked == [["original", tenth, "cdf"], ["dropedge@0:finish", fewer]]
    assert list(found.row(tenth).against) == ["original", "dropedge@0:finish", fewer]
    found, asked = made({tenth: 0.0, fewer: -0.04, "dropedge@0:finish": -0.02}, seconds=lambda *_: 1.0)
    assert len(asked) == 1  # what was compared anyway is not trained again
    assert found.row(tenth).against["dropedge@0:finish"].word == "better"
    assert made({tenth: -0.05}, seconds=lambda *_: 1.0)[1] == [["original", tenth]]  # worse, so no claim


def test_costs_are_those_of_an_epoch_of_the_whole_training_and_of_the_epochs_that_drop():
    tenth = "dropedge@0.1:finish"
    found, _ = made({tenth: 0.0}, costs={"original": (0.06, 3 << 20), tenth: (0.02, 3 << 20)})
    rows = [replace(row, while_dropping={"train": 0.01, "peak_bytes": 1 << 20}) for row in found.rows[1:]]
    told = replace(found, rows=(found.rows[0], *rows))
    epochs, evaluated = 400, 40 + 72  # those of the first tenth, and every fifth afterwards
    assert costs(told).rows == [
        ("original", "60 ms", "1.0 ×", "3 MiB", "1.0 ×", "0.1 s", f"{epochs * 0.06 + evaluated * 0.1:.2g} s"),
        (tenth, "20 ms", "3.0 ×", "3 MiB", "1.0 ×", "0.1 s", f"{epochs * 0.02 + evaluated * 0.1:.2g} s"),
        ("… before its finish", "10 ms", "6.0 ×", "1 MiB", "3.0 ×", "–", "–"),
    ]
    assert Comparison.from_dict(told.as_dict()) == told
    assert "while_dropping" not in told.as_dict()["rows"][0]


@pytest.mark.parametrize(
    ("gains", "spread", "kind"),
    [({"dropedge": 0.0}, 0.002, "same"), ({"dropedge": -0.03}, 0.002, "worse"), ({"dropedge": 0.0}, 0.08, "undecided")],
)
def test_otherwise_the_edges_are_left_alone(gains, spread, kind):
    found, _ = made(gains, spread=spread)
    told = facts(found)
    assert (told["kind"], told["use"]) == (kind, "original")
    assert "model(data.x, data.edge_index)" in found.answer["code"]
    if kind == "undecided":
        assert f"{told['needed']:,}" in found.answer["sure"]


def test_a_replicate_that_fell_is_named_whatever_the_interval_says():
    found, _ = made({"dropedge": 0.0, "cdf": 0.3}, fall="cdf")
    (one,) = fallen(found)
    assert (one["candidate"], one["count"], one["replicates"]) == ("cdf", 1, 20)
    assert one["by"] == pytest.approx(0.19, abs=0.01)
    assert "fell by 19 points" in found.answer["sure"]
    assert fallen(made({"dropedge": 0.0}, spread=0.02)[0]) == []


@pytest.mark.parametrize(
    ("winner", "python", "command"),
    [
        (WINNER, f'weighed = DropEdge("{WINNER}", keep_ratio=0.3)(data){ONCE}', f"--method {WINNER} --keep-ratio 0.3"),
        ("cdf@0.5", f'drop = DropEdge("cdf@0.5", q=3){STEP}', "--network gcn --method cdf@0.5"),
        ("gat+dropedge", f'drop = DropEdge("dropedge", keep_ratio=0.3){STEP}', "--network gat --method dropedge"),
        ("gat", "out = model(data.x, data.edge_index)", "--network gat --method original"),
    ],
)  # fmt: skip
def test_the_code_does_what_won(winner, python, command):
    told = {"source": "a.csv", "options": ["--nodes", "b c.csv"], "score_settings": {"q": 3}}
    found, _ = made({winner: 0.05}, run=told)
    lines = found.answer["code"].splitlines()
    assert lines[:-1] == (["from tadropedge.pyg import DropEdge"] if "DropEdge" in python else []) + [python]
    assert lines[-1].startswith("tadropedge train a.csv --nodes 'b c.csv' --network")
    assert command in lines[-1]
    assert "--learning-rate 0.01" in lines[-1]
    assert "--hidden 32 --settings batch_norm=true" in made({winner: 0.05}, run=OTHER)[0].answer["code"]
    assert made({winner: 0.05}, run={**told, "task": "run"})[0].answer["code"].splitlines() == lines[:-1]
    assert ("--q 3" in lines[-1]) == ("q=3" in python)


@pytest.mark.parametrize(
    "winner",
    [
        "dropedge",
        "degree-proportional:expected",
        "jaccard-proportional:pruned",
        WINNER,
        "dropedge@0.1:finish",
        "dropedge:unbiased:consistent",
    ],
)
def test_the_line_of_python_runs_as_it_is_printed(winner):
    said = made({winner: 0.05})[0].answer["code"].splitlines()[:-1]
    then = re.sub(r"^.*?(once; then|step:) ", "", said[-1].partition("#")[2]).partition("; in evaluation")[0]
    edges = load("karate").graph.pairs
    known = {"data": Data(torch.eye(34), torch.cat((edges, edges.flip(0)), 1)), "loss": 0.0, "model": GCN(34, 4, 2)}
    exec("\n".join([*said, "import torch", then]), known)
    kept = known.get("step", known.get("weighed", known.get("pruned")))
    assert kept is None or kept.num_edges <= known["data"].num_edges
