"""A score, rule, use, option or normalisation of one's own: a function and an entry, and it is everywhere, tested."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from tadropedge import (
    OPTIONS,
    RULES,
    SCORES,
    USES,
    Dropping,
    Graph,
    TadropedgeError,
    edge_scores,
    keep_probabilities,
    sample_edges,
)
from tadropedge.dropping import grammar, names
from tadropedge.pyg import AddKeepProbability, AddScore, DropEdge
from tadropedge.testing.graphs import ZOO

KARATE = ZOO["karate"]
ARCS = torch.cat((KARATE.pairs, KARATE.pairs.flip(0)), dim=1)


def strength(graph, power=1.0):
    """The number of the edge's first node, and one."""
    return (graph.pairs[0].double() + 1) ** power


def root(scores, keep_ratio, floor=0.0):
    """The budget for all, but for those of score 1."""
    return torch.full_like(scores, keep_ratio).clamp_min(floor)


def halved(draw, training):
    """Dropped in training; in evaluation edges weigh a half."""
    return (draw.mask(), None) if training else (None, torch.full_like(draw.prob, 0.5))


def never_first(draw):
    """The first pair is never kept."""
    return replace(draw, kept=draw.mask() & (torch.arange(draw.prob.shape[-1]) > 0))


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    for table, name, function in (
        (SCORES, "strength", strength),
        (RULES, "root", root),
        (USES, "halved", halved),
        (OPTIONS, "never-first", never_first),
    ):
        monkeypatch.setitem(table, name, function)


def test_an_entry_is_a_word_of_the_grammar():
    found = Dropping.parse("strength-root@0.5:halved:never-first", power=2.0, floor=0.1)
    assert (found.score, found.rule, found.use, found.options) == ("strength", "root", "halved", ("never-first",))
    assert str(found) == "strength-root@0.5:halved:never-first"
    assert Dropping.parse(str(found), **found.settings) == found
    assert {"strength-root", "inverse-strength-root", "strength-cdf", "degree-root"} <= set(names())
    assert all(word in grammar() for word in ("strength", "root", "halved", "never-first"))
    assert not found.takes_keep_prob
    assert found.weighs


@pytest.mark.parametrize(
    "name", ["My score", "inverse-strength", "original", "dropedge-two", "auto", "", "a:b", "a@1", 7]
)
def test_names_that_the_grammar_could_not_read_are_refused(name):
    for table in (SCORES, RULES, USES, OPTIONS):
        with pytest.raises(TadropedgeError, match="the name of"):
            table[name] = strength
    with pytest.raises(TadropedgeError, match="must be a function"):
        SCORES["strong"] = 7


def test_the_functions_of_the_core_take_it():
    scores = edge_scores(KARATE, "strength", power=2.0)
    assert torch.equal(scores, strength(KARATE, 2.0))
    assert keep_probabilities(scores, rule="root", keep_ratio=0.5).tolist() == [0.5] * 78


def test_the_plan_and_the_module_draw_the_same_with_it():
    dropping = Dropping.parse("strength-root@0.5:halved:never-first")
    plan, drop = dropping.plan(KARATE), DropEdge(dropping, seed=3)
    coins = sample_edges(torch.full((78,), 0.5), seed=3, epoch=1, graph=KARATE)
    drop(ARCS)
    kept, edge_mask, weight = drop(ARCS)
    wanted = plan.sample(3, 1)
    assert torch.equal(edge_mask, wanted.repeat(2))
    assert torch.equal(wanted[1:], coins[1:])
    assert not wanted[0]
    assert torch.equal(kept, ARCS[:, edge_mask])
    assert weight.tolist() == [1.0] * kept.shape[1]
    arcs, edge_mask, weight = drop.eval()(ARCS)
    assert torch.equal(arcs, ARCS)
    assert edge_mask.all()
    assert weight.tolist() == [0.5] * 156


def test_the_transforms_take_it():
    data = Data(edge_index=ARCS, num_nodes=34)
    assert torch.equal(AddScore("strength")(data).edge_score, strength(KARATE).repeat(2))
    prob = Dropping.parse("strength-proportional@0.5").plan(KARATE).prob
    found = AddKeepProbability("strength-proportional", keep_ratio=0.5)(data)
    assert torch.allclose(found.edge_keep_prob, prob.repeat(2))
    assert AddKeepProbability("degree-root@0.5")(data).edge_keep_prob.tolist() == [0.5] * 156
    thin = DropEdge("dropedge:halved:never-first", keep_prob="edge_keep_prob", seed=1)(found)
    assert 0 < thin.num_edges < 156
    assert not ((thin.edge_index[0] == 0) & (thin.edge_index[1] == 1)).any()


@pytest.mark.parametrize("method", ["dropedge@0.4", "degree-proportional@0.4", "cdf@0.8", "effective-cutoff@0.8:exact"])
def test_the_module_draws_the_mask_of_the_plan_at_each_epoch(method):
    """The first call is epoch 0, whatever order the arcs are listed in."""
    drop, order = DropEdge(method, seed=11), torch.randperm(156, generator=torch.Generator().manual_seed(0))
    graph = Graph.from_edge_index(ARCS[:, order])
    plan = Dropping.parse(method).plan(graph)
    for epoch in range(3):
        _, edge_mask = drop(ARCS[:, order])
        assert torch.equal(edge_mask, graph.to_arcs(plan.sample(11, epoch)))


PLUG_IN = """
import torch
from dataclasses import replace

from tadropedge.operators.pattern import Scales
from tadropedge.testing.normalizations import NormalizationContract
from tadropedge.testing.options import OptionContract
from tadropedge.testing.rules import RuleContract
from tadropedge.testing.scores import ScoreContract
from tadropedge.testing.uses import UseContract


def strength(graph):
    return torch.bincount(graph.pairs.flatten())[graph.pairs].sum(0).double()


def square(scores):
    return (scores / scores.max()) ** 2


def pale(draw, training):
    return (draw.mask(), None) if training else (None, draw.prob.sqrt())


def shifted(draw):
    return replace(draw, stream=draw.stream + 7)


def twice(a):
    return Scales(2 * a.ones(), a.ones(), 0 * a.ones())


class TestStrength(ScoreContract):
    score = staticmethod(strength)
    weighted = False

class TestSquare(RuleContract):
    rule = staticmethod(square)
    formula = lambda self, score, share: score**2

class TestPale(UseContract):
    use = staticmethod(pale)

class TestShifted(OptionContract):
    option = staticmethod(shifted)

class TestTwice(NormalizationContract):
    name, normalize = "twice", staticmethod(twice)
    formula = lambda self, A: 2 * A
"""


def run_suites(folder, text):
    """What pytest says of a plug-in's tests, far from ours and their settings."""
    (folder / "test_plug_in.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=300)


def test_a_plug_in_inherits_its_tests_in_three_lines(tmp_path):
    done = run_suites(tmp_path, PLUG_IN)
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.split()[-4]) > 100, done.stdout  # "N passed in S.SSs"


def test_the_suites_find_what_is_wrong(tmp_path):
    """Names of nodes matter, the formula is another, the evaluation is random, the draw is, S is another multiple."""
    text = PLUG_IN
    for right, wrong in (
        (".sum(0).double()", "[0].double()"),
        ("(scores / scores.max()) ** 2", "(scores / scores.max()) ** 3"),
        ("draw.prob.sqrt()", "torch.rand(len(draw.prob)).double()"),
        ("stream=draw.stream + 7", "stream=int(torch.randint(9, ()))"),
        ("2 * a.ones()", "3 * a.ones()"),
    ):
        assert text.count(right) == 1
        text = text.replace(right, wrong)
    done = run_suites(tmp_path, text)
    failed = {line.split("::")[1] for line in done.stdout.splitlines() if line.startswith("FAILED")}
    assert failed == {"TestStrength", "TestSquare", "TestPale", "TestShifted", "TestTwice"}, done.stdout
