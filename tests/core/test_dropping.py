"""The one value: what it reads, prints and plans; uses; the loss of several views."""

import copy
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tadropedge import (
    OPTIONS,
    RULES,
    SCORES,
    USES,
    Dropping,
    Graph,
    TadropedgeError,
    certify,
    consistency_loss,
    edge_scores,
    keep_probabilities,
    sample_edges,
)
from tadropedge.dropping import grammar, names
from tadropedge.options import EXCLUSIVE
from tadropedge.testing.graphs import ZOO, complete, path, union
from tadropedge.testing.uses import UseContract

KARATE = ZOO["karate"]


class TestDropped(UseContract):
    use = "dropped"


class TestWeighted(UseContract):
    use = "weighted"


class TestPruned(UseContract):
    use = "pruned"


class TestExpected(UseContract):
    use = "expected"


class TestOwn(UseContract):
    """Dropped in training; in evaluation the unlikely half of the edges is left out."""

    use = staticmethod(lambda draw, training: (draw.mask() if training else draw.prob >= draw.prob.median(), None))


# -- the grammar -----------------------------------------------------------------------------------------


WORDS = st.tuples(
    st.sampled_from(list(names())),
    st.sampled_from([None, 0, 0.1, 0.5, 1 / 3, 1e-5, 1]),
    st.sampled_from(list(USES)),
    st.lists(st.sampled_from(list(OPTIONS)), unique=True, max_size=3),
)


@given(WORDS)
def test_what_is_printed_is_read_again(words):
    name, share, use, options = words
    written = ":".join((name if share is None else f"{name}@{share!r}", use, *options))
    excluded = any(one in (use, *options) and other in options for one, other in EXCLUSIVE)
    says_more = name == "original" and (share is not None or use != "dropped" or options)
    if excluded or says_more or (name, use) == ("dropedge", "pruned"):
        with pytest.raises(TadropedgeError):
            Dropping.parse(written)
        return
    found = Dropping.parse(written)
    assert Dropping.parse(str(found)) == found
    assert hash(Dropping.parse(str(found))) == hash(found)
    assert str(found).startswith(name)
    assert (found.use, set(found.options), found.keep_ratio) == (use, set(options), share)
    assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == found


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("aggregate-cdf", "cdf"),
        ("inverse-aggregate-cdf:exact:connected", "inverse-cdf:connected:exact"),
        ("degree-proportional:dropped", "degree-proportional"),
        ("degree-proportional@0.10", "degree-proportional@0.1"),
        ("dropedge@0", "dropedge@0"),
        ("dropsens-floor@1.0", "dropsens-floor@1"),
        ("original", "original"),
    ],
)
def test_one_printer(written, printed):
    assert str(Dropping.parse(written)) == printed


def test_what_is_read_again_keeps_its_settings():
    free = Dropping.parse("cutoff", q=3)
    found = Dropping.parse(free, keep_prob=0.5, gamma=0.1)
    assert (found.settings, found.keep_prob) == ({"q": 3, "gamma": 0.1}, 0.5)
    assert free == Dropping.parse("cutoff", q=3)


def test_a_share_and_a_free_budget_are_two_values():
    assert Dropping.parse("degree-proportional@0.1") == Dropping.parse("degree-proportional", keep_ratio=0.1)
    assert Dropping.parse("degree-proportional@0.1") != Dropping.parse("degree-proportional")
    assert Dropping.parse("dropedge", keep_prob=0.3) == Dropping.parse("dropedge@0.3")
    assert Dropping.parse("cdf", keep_prob=0.3) != Dropping.parse("cdf", keep_ratio=0.3)


@pytest.mark.parametrize(
    ("method", "values", "words"),
    [
        ("degre-cdf", {}, "did you mean 'degree-cdf'"),
        ("degree", {}, "is a score"),
        ("dropsens", {}, "dropsens-floor"),
        ("uniform", {}, "unknown method"),
        ("inverse-dropedge", {}, "unknown method"),
        ("dropsens-floor:weighed", {}, "did you mean 'weighted'"),
        ("cdf@1.5", {}, "keep_ratio"),
        ("cdf@1_0", {}, "share"),
        ("cdf@", {}, "share"),
        ("cdf@nan", {}, "share"),
        ("cdf:weighted:pruned", {}, "2 uses"),
        ("cdf:exact:exact", {}, "more than once"),
        ("cdf:unbiased:exact", {}, "exclude each other"),
        ("cdf:weighted:connected", {}, "exclude each other"),
        ("original:connected", {}, "drops nothing"),
        ("original", {"keep_ratio": 0.5}, "drops nothing"),
        ("dropedge:pruned", {}, "alike"),
        ("inverse-dropsens-floor", {}, "no inverse"),
        ("degree-proportional", {"keep_prob": 0.5}, "give keep_ratio"),
        ("degree-proportional@0.1", {"keep_ratio": 0.5}, "says its budget"),
        ("cdf", {"keep_prob": 0.5, "keep_ratio": 0.5}, "either keep_prob or keep_ratio"),
        ("cdf", {"keep_prob": 2}, "keep_prob must be"),
        ("cdf", {"gamma": 1.0}, "no setting 'gamma'"),
        ("cutoff", {"gamm": 1.0}, "no setting 'gamm'"),
        ("degree-cdf", {"q": 7}, "no setting 'q'"),
        (7, {}, "a method is a name"),
    ],
)
def test_what_cannot_be_is_one_line(method, values, words):
    with pytest.raises(TadropedgeError, match=words) as caught:
        Dropping.parse(method, **values)
    assert "\n" not in str(caught.value)


def test_the_grammar_names_everything():
    for table in (SCORES, USES, OPTIONS, set(RULES) - {"uniform"}):
        assert all(name in grammar() for name in table)


# -- the plan --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "values"),
    [
        ("cdf", {"keep_prob": 0.5, "q": 2}),
        ("inverse-effective-cutoff", {"keep_ratio": 0.8, "gamma": 0.2}),
        ("degree-proportional@0.3", {}),
        ("dropsens-floor@0.9", {"sensitivity": 0.7}),
        ("dropedge@0.25", {}),
    ],
)
def test_a_plan_is_scores_rule_and_coins(method, values):
    """`Dropping.plan` against the three functions that it stands for."""
    found = Dropping.parse(method, **values)
    plan = found.plan(KARATE)
    if found.rule == "uniform":
        prob = torch.full((78,), 0.25, dtype=torch.float64)
    else:
        of_score = {name: value for name, value in values.items() if name in ("q", "sensitivity")}
        of_rule = {name: value for name, value in values.items() if name == "gamma"}
        scores = edge_scores(KARATE, found.score, **of_score)
        budget = {"keep_prob": found.keep_prob, "keep_ratio": found.keep_ratio}
        prob = keep_probabilities(scores, rule=found.rule, inverse=found.inverse, **budget, **of_rule)
    assert torch.equal(plan.prob, prob)
    for epoch in range(3):
        assert torch.equal(plan.sample(5, epoch), sample_edges(prob, 5, epoch, graph=KARATE))


def test_original_keeps_everything():
    plan = Dropping.parse("original").plan(KARATE)
    assert plan.draw(0, 0) == plan.draw(0, 0, training=False)
    assert plan.sample(0).all()


@pytest.mark.parametrize("options", [("connected",), ("exact",), ("connected", "exact")])
def test_options_are_those_of_the_function(options):
    plan = Dropping.parse(":".join(("degree-proportional@0.6", *options))).plan(KARATE)
    wanted = sample_edges(plan.prob, 3, 4, graph=KARATE, **dict.fromkeys(options, True))
    assert torch.equal(plan.sample(3, 4), wanted)


@pytest.mark.parametrize("options", ["", ":connected", ":exact"])
def test_streams_are_different_subgraphs_of_one_epoch(options):
    plan = Dropping.parse(f"dropedge@0.5{options}").plan(KARATE)
    first, second = plan.sample(0, 0), plan.sample(0, 0, stream=1)
    assert not torch.equal(first, second)
    assert torch.equal(plan.sample(0, 0, stream=1), second)


def test_streams_have_forests_of_their_own():
    tree = Dropping.parse("dropedge:connected").plan(path(9), prob=torch.ones(8))
    assert tree.sample(0).all()
    plan = Dropping.parse("dropedge:connected").plan(complete(9), prob=torch.full((36,), 8 / 36))
    assert not torch.equal(plan.sample(0, 0), plan.sample(0, 0, stream=1))  # nothing but the forest


def test_a_schedule_is_a_budget_by_epoch():
    plan = Dropping.parse("degree-proportional", keep_ratio=lambda epoch: 0.2 + 0.1 * epoch).plan(KARATE)
    for epoch in (0, 3, 8):
        alone = Dropping.parse("degree-proportional", keep_ratio=0.2 + 0.1 * epoch).plan(KARATE)
        assert torch.equal(plan.at(epoch).prob, alone.prob)
        assert torch.equal(plan.sample(1, epoch), alone.sample(1, epoch))
    with pytest.raises(TadropedgeError, match="keep_ratio must be"):
        plan.sample(1, 9)


def test_probabilities_of_ones_own():
    prob = torch.linspace(0, 1, 78)
    plan = Dropping.parse("dropedge:exact").plan(KARATE, prob=prob)
    assert torch.equal(plan.sample(2, 1), sample_edges(prob, 2, 1, graph=KARATE, exact=True))
    for method, given_, words in (
        ("dropedge@0.5", prob, "makes probabilities itself"),
        ("degree-cdf", prob, "makes probabilities itself"),
        ("dropedge", prob[:7], "78 entries"),
        ("dropedge", prob * 2, "must lie in"),
    ):
        with pytest.raises(TadropedgeError, match=words):
            Dropping.parse(method).plan(KARATE, prob=given_)


def test_features_and_columns_reach_the_scores_that_look_at_them():
    x = torch.rand(34, 5, generator=torch.Generator().manual_seed(0))
    plan = Dropping.parse("cosine-proportional@0.5").plan(KARATE, features=x)
    scores = edge_scores(KARATE, "cosine", features=x)
    assert torch.equal(plan.prob, keep_probabilities(scores, rule="proportional", keep_ratio=0.5))
    trust = torch.arange(78.0)
    plan = Dropping.parse("column-cdf", keep_prob=0.5, column="trust").plan(KARATE, column=trust)
    assert torch.equal(plan.prob, keep_probabilities(trust, keep_prob=0.5))
    with pytest.raises(TadropedgeError, match="features"):
        Dropping.parse("cosine-cdf@0.8").plan(KARATE)
    listed = Graph.from_edge_index([[3, 0, 1, 0], [4, 1, 2, 2]])  # as many as edges, in another order
    found = Dropping.parse("column-proportional@0.5").scores(listed, column=torch.tensor([9.0, 1.0, 5.0, 0.5]))
    assert found.tolist() == [1.0, 0.5, 5.0, 9.0]
    with pytest.raises(TadropedgeError, match="column='trust'"):
        Dropping.parse("column-cdf@0.8", column="trust").plan(KARATE)


def test_a_free_budget_has_no_plan_and_an_empty_graph_has_an_empty_one():
    with pytest.raises(TadropedgeError, match="no budget"):
        Dropping.parse("cdf").plan(KARATE)
    empty = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.int64), 3)
    for method in ("cdf@0.8", "degree-proportional@0.1:exact", "dropedge@0.5", "original"):
        assert Dropping.parse(method).plan(empty).sample(0).shape == (0,)


def test_one_graph_of_many_may_be_too_small():
    """It keeps the least that the rule allows, and says so once."""
    pair = path(2)
    with pytest.raises(TadropedgeError, match="3"):
        Dropping.parse("cdf", keep_prob=0.5, q=3).plan(pair)
    with pytest.warns(UserWarning, match="scored alike"):
        prob = Dropping.parse("cdf", keep_prob=0.5, q=3).plan(pair, lenient=True).prob
    assert prob.tolist() == [1.0]  # the share of edges whose score is at most its own
    with pytest.warns(UserWarning, match="least"):
        prob = Dropping.parse("degree-cdf", keep_ratio=0.2).plan(path(4), lenient=True).prob
    assert prob.tolist() == Dropping.parse("degree-cdf", keep_prob=0.0).plan(path(4)).prob.tolist()


def test_a_function_of_ones_own_is_a_score_or_a_rule():
    def strength(graph, power=1.0):
        return graph.pairs.sum(0).double() ** power

    dropping = Dropping(score=strength, rule=lambda scores: scores / scores.max(), keep_prob=0.5, settings={"power": 2})
    scores = KARATE.pairs.sum(0).double() ** 2
    assert torch.allclose(dropping.plan(KARATE).prob, 0.5 + 0.5 * scores / scores.max())
    assert str(dropping).startswith("strength-")


# -- uses ------------------------------------------------------------------------------------------------


def test_what_each_use_does():
    plans = {use: Dropping.parse(f"degree-proportional@0.4:{use}").plan(KARATE) for use in USES}
    prob, mask = plans["dropped"].prob, plans["dropped"].sample(1, 2)
    for use, (training, evaluation) in {
        "dropped": ((mask, None), (None, None)),
        "weighted": ((None, prob), (None, prob)),
        "expected": ((mask, None), (None, prob)),
    }.items():
        for wanted, when in ((training, True), (evaluation, False)):
            for one, other in zip(plans[use].draw(1, 2, training=when), wanted, strict=True):
                assert one is other is None or torch.equal(one, other)
    kept = plans["pruned"].draw(1, 2)[0]
    assert int(kept.sum()) == round(0.4 * 78)
    assert float(prob[kept].min()) >= float(prob[~kept].max())
    assert torch.equal(kept, plans["pruned"].draw(7, 9, training=False)[0])


def test_pruning_settles_ties_by_pair():
    plan = Dropping.parse("degree-proportional@0.4:pruned")
    with pytest.warns(UserWarning, match="all scores"):
        assert plan.plan(complete(5)).sample(0).tolist() == [True] * 4 + [False] * 6


def test_unbiased_weights_average_to_the_whole_graph():
    plan = Dropping.parse("degree-proportional@0.5:unbiased").plan(KARATE)
    kept, factor = plan.draw(torch.arange(20_000), 0)
    mean = (kept * factor).mean(dim=0)
    error = ((1 - plan.prob) / plan.prob / 20_000).sqrt()
    assert bool(((mean - 1).abs() < 5 * error + 1e-12).all())
    assert plan.draw(0, 0, training=False) == (None, None)  # the whole graph, as it is
    with pytest.raises(TadropedgeError, match="above 0"):
        Dropping.parse("dropedge@0:unbiased").plan(KARATE).draw(0)


def test_components_stay_whole_where_it_is_asked_for():
    graph = union(ZOO["cliques"], ZOO["grid"])
    plan = Dropping.parse("degree-proportional@0.7:connected").plan(graph)
    for epoch in range(5):
        thin = Graph.from_edge_index(graph.pairs[:, plan.sample(0, epoch)], graph.num_nodes)
        assert thin.components.count == graph.components.count
    assert certify(graph, thin).lambda_min > 0


# -- the loss --------------------------------------------------------------------------------------------


def test_consistency_by_hand():
    logits = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    views = logits.softmax(-1)
    mean = views.mean(0)
    target = mean**2 / (mean**2).sum(-1, keepdim=True)
    distance = ((views - target) ** 2).sum(-1).mean()
    shares = mean.mean(0)
    balance = (shares * (shares * 5).log()).sum()
    assert float(consistency_loss(logits)) == pytest.approx(float(distance))
    assert float(consistency_loss(logits, balance=0.3)) == pytest.approx(float(distance + 0.3 * balance))
    batch = torch.stack((logits, 2 * logits))
    alone = [float(consistency_loss(each, temperature=0.3, balance=1.0)) for each in batch]
    assert consistency_loss(batch, temperature=0.3, balance=1.0).tolist() == pytest.approx(alone)


def test_no_gradient_goes_through_the_target_and_none_is_nan():
    logits = torch.tensor([[[500.0, 0.0]], [[-500.0, 0.0]]], requires_grad=True)
    consistency_loss(logits, balance=1.0).backward()
    assert logits.grad.isfinite().all()
    for balance in (0.0, 1.0):  # a class that nobody predicts
        logits = torch.tensor([[[500.0, 0.0]], [[400.0, 0.0]]], requires_grad=True)
        consistency_loss(logits, balance=balance).backward()
        assert logits.grad.isfinite().all()
    logits = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    views = logits.softmax(-1)
    target = views.mean(0).detach() ** 2
    target = target / target.sum(-1, keepdim=True)
    wanted = torch.autograd.grad((views - target).square().sum(-1).mean(), logits)[0]
    assert torch.allclose(torch.autograd.grad(consistency_loss(logits), logits)[0], wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("logits", "settings"),
    [
        (torch.ones(3, 4), {}),
        ([1.0], {}),
        (torch.ones(2, 3, 4), {"temperature": 0}),
        (torch.ones(2, 3, 4), {"balance": -1}),
    ],
)
def test_bad_input_of_the_loss(logits, settings):
    with pytest.raises(TadropedgeError):
        consistency_loss(logits, **settings)
