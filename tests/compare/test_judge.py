"""``judge`` with training functions that are formulas."""

import math
import runpy
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import tadropedge as tde
from tadropedge.pyg import DropEdge

ANY = {"rate": {"uniform": [0, 1]}}


def run(drop, settings, seed):
    """Weighing gains four points, dropping loses two; the best rate is 0.1."""
    luck = np.random.default_rng(seed).normal(0, 0.01)
    dropping, rate = drop.dropping, settings.get("rate", 0.1)
    gain = 0.0 if dropping.rule is None else 0.04 if dropping.use == "weighted" else -0.02
    score = 0.7 + luck + gain - abs(rate - 0.1)
    return score + 1e-3, score


def test_it_searches_pairs_and_decides():
    found = tde.judge(run, ["dropedge", "jaccard-proportional:weighted"], settings={"rate": [0.1, 0.2]}, trials=12)
    words = {row.candidate: row.against["original"].word for row in found.rows if row.against}
    assert words == {"dropedge": "worse", "jaccard-proportional:weighted": "better"}
    winner = found.row("jaccard-proportional:weighted")
    assert {"dropedge", "jaccard-proportional:pruned"} < set(winner.against)
    assert winner.against["original"].difference == pytest.approx(0.04)
    assert all(one.chosen["rate"] == 0.1 for row in found.rows for one in row.replicates)
    assert found.row("original").replicates[0].kept_share == 1.0
    assert found.row("original").seconds_per_epoch["train"] > 0
    assert found.yardstick is None
    assert found.answer["code"].splitlines()[1].startswith("weighed = DropEdge(")


def test_what_the_function_is_given():
    seen = []

    def look(drop, settings, seed):
        seen.append((str(drop.dropping), dict(settings), seed))
        assert isinstance(drop, DropEdge)
        return 0.5, 0.5

    tde.judge(look, ["dropedge@0.3:consistent"], settings=ANY, trials=2, replicates=2)
    assert [name for name, _, _ in seen] == (["original"] * 2 + ["dropedge@0.3"] * 2) * 2
    agreed = {"draws", "consistency_weight", "temperature", "balance"}
    assert [set(settings) - {"rate"} for _, settings, _ in seen] == ([set()] * 2 + [agreed] * 2) * 2
    assert [seed for _, _, seed in seen] == [seen[0][2]] * 4 + [seen[4][2]] * 4 != [seen[0][2]] * 8
    rates = [settings["rate"] for _, settings, _ in seen]
    assert rates[:2] == rates[2:4] != rates[4:6]  # by trial and replicate, the same for all candidates
    assert 0 <= seen[0][2] < 2**32


def test_an_interrupted_call_goes_on(tmp_path):
    calls = []

    def counted(drop, settings, seed):
        calls.append(seed)
        if len(calls) == 7:
            raise KeyboardInterrupt
        return run(drop, settings, seed)

    again = partial(tde.judge, counted, ["dropedge"], settings=ANY, trials=2, replicates=3, out=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        again()
    found = again()
    assert len(calls) == 12 + 1  # of which one was tried twice
    assert again().rows == found.rows
    assert len(calls) == 13
    assert (tmp_path / "report.html").is_file()


def test_a_training_that_fails_is_never_chosen():
    def half(drop, settings, seed):
        return (float("nan"), 0.9) if settings["rate"] > 0.5 else run(drop, {}, seed)

    found = tde.judge(half, ["dropedge"], settings=ANY, trials=4, replicates=3)
    assert all(one.chosen["rate"] <= 0.5 for row in found.rows for one in row.replicates)
    broken = tde.judge(lambda *_: (float("nan"), 0.9), ["dropedge"], trials=2, replicates=2)
    assert broken.row("dropedge").against["original"].word == "undecided"


@pytest.mark.parametrize(
    ("function", "settings", "said"),
    [
        (5, {}, "run"),
        (lambda *_: 0.5, {}, "validation"),
        (lambda *_: 1 / 0, {}, "ZeroDivisionError"),
        (run, {"methods": ["gat+dropedge"]}, "network"),
        (run, {"methods": ["dropedge@0.1:finish"]}, "finish"),
        (run, {"methods": ["auto"]}, "auto"),
        (run, {"replicates": 1}, "replicates"),
        (run, {"settings": {"rate": []}}, "rate"),
    ],
)
def test_what_cannot_be_judged_is_refused(function, settings, said):
    with pytest.raises(tde.TadropedgeError, match=said):
        tde.judge(function, **{"methods": ["dropedge"], "trials": 1, "replicates": 2, **settings})


@pytest.mark.parametrize("name", ["judge_links", "judge_graphs"])
def test_examples(name, monkeypatch, capsys):
    path = Path(__file__).parents[2] / "examples" / f"{name}.py"
    monkeypatch.setattr("sys.argv", [name, "--trials", "1", "--replicates", "2", "--epochs", "1"])
    runpy.run_path(str(path), run_name="__main__")
    assert "original" in capsys.readouterr().out


def test_where_every_training_fails_the_answer_says_so():
    found = tde.judge(lambda drop, settings, seed: (math.nan, math.nan), ["dropedge"], trials=1, replicates=5)
    assert "no training" in found.answer["do"]
    assert "replicates would decide" not in str(found)
