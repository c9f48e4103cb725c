"""Every argument of every public function, with every strange value: all cases of ``torture/arguments.py``."""

import pytest
import torch
from torture.arguments import GRAPH, KARATE, WEIGHTS, checks, listed, missing

import tadropedge as tde
from tadropedge.pyg import AddKeepProbability, AddScore
from tadropedge.registry import Registry
from tadropedge.training.laboratory import Laboratory


def test_everything_public_is_tried():
    assert missing() == []


@pytest.mark.parametrize("call", [pytest.param(call, id=f"{call.name}-{at}") for at, call in enumerate(listed())])
def test_arguments(call):
    wrong = []
    for argument, kind in call.kinds.items():
        for title, check in checks(call, argument, kind):
            try:
                check()
            except Exception as error:
                wrong.append(f"{argument}={title}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)


def broken(*arguments):
    raise KeyError("my own")


RULES = {
    "one number": lambda weights: 0.5,
    "another shape": lambda weights: weights[:1],
    "one axis more": lambda weights: weights.expand(2, -1),
    "NaN": lambda weights: weights * torch.nan,
    "negative": lambda weights: -weights,
    "complex": lambda weights: weights * 1j,
    "sparse": lambda weights: weights.to_sparse(),
    "meta": lambda weights: weights.to("meta"),
    "an array": lambda weights: weights.numpy() / 10,
    "None": lambda weights: None,
    "its own error": broken,
    "no arguments": lambda: 0.5,
    "three arguments": lambda weights, gamma, power: weights,
}


@pytest.mark.parametrize("title", RULES)
def test_a_rule_that_is_none(title):
    with pytest.raises(tde.TadropedgeError, match="strategy") as refused:
        tde.keep_probabilities(WEIGHTS, keep_prob=0.5, strategy=RULES[title])
    with pytest.raises(tde.TadropedgeError, match="strategy"):  # told where it is written, not when data arrives
        AddKeepProbability(RULES[title], keep_prob=0.5)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("title", [title for title in RULES if title != "no arguments"])
def test_a_score_that_is_none(title):
    def mine(graph):
        return RULES[title](torch.linspace(0, 2, graph.num_edges))

    with pytest.raises(tde.TadropedgeError, match=r"the score 'mine' (must|raised)"):
        tde.edge_scores(GRAPH, mine)


def test_what_a_plug_in_raises_is_told_with_its_name():
    with pytest.raises(tde.TadropedgeError) as refused:
        tde.edge_scores(GRAPH, broken)
    assert str(refused.value) == (
        "the score 'broken' raised KeyError: 'my own'; it must be a function score(graph, **settings) -> [M], with "
        "numbers of at least 0"
    )
    assert isinstance(refused.value.__cause__, KeyError)


def test_an_interruption_inside_a_plug_in_goes_through():
    def stopped(graph):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tde.edge_scores(GRAPH, stopped)


@pytest.mark.parametrize("score", [int, lambda: None])
def test_a_score_that_takes_no_graph_is_refused_before_there_are_data(score):
    with pytest.raises(tde.TadropedgeError, match="score must be a function score"):
        AddScore(score)


@pytest.mark.parametrize(
    ("kind", "entry"),
    [
        ("score", lambda: None),
        ("strategy", lambda: None),
        ("strategy", 3),
        ("dataset", "module:name"),
        ("network", object),
        ("network", lambda problem: None),
    ],
)
def test_registrations_that_cannot_work(kind, entry):
    with pytest.raises(tde.TadropedgeError, match=f"the {kind} 'mine' must be a"):
        Registry(kind, {})["mine"] = entry


@pytest.mark.parametrize(
    "wrong",
    [{"epochs": -1}, {"laplacian": "nope"}, {"q": 0}, {"selection": "best"}, {"fresh_sizes": (1, 2)}, {"per_layer": 1}],
)
def test_a_laboratory_refuses_when_it_is_made(wrong):
    with pytest.raises(tde.TadropedgeError, match=next(iter(wrong))):
        Laboratory(KARATE, **wrong)


def test_lists_and_arrays_of_float64_give_the_same_probabilities():
    weights = [0.1, 0.2, 0.7]
    listed_as, held = (
        tde.keep_probabilities(given, keep_prob=0.5, strategy="division", gamma=0.3)
        for given in (weights, torch.tensor(weights, dtype=torch.float64))
    )
    assert torch.equal(listed_as, held)
