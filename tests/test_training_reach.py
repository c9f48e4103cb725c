"""Budgets that options cannot meet are raised to the nearest that they can, and no other trial is touched."""

import warnings

import pytest
import torch
from graphs import ZOO
from torch_geometric.data import Data

from tadropedge import TadropedgeError, edge_scores
from tadropedge.data import as_dataset, load_dataset
from tadropedge.forest import ForestPlan
from tadropedge.sampling import check_connected
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.edges import keep_rows
from tadropedge.training.laboratory import Laboratory
from tadropedge.training.reach import forest_share, least_share, within_reach

METHODS = ("dropedge", "dropsens", "degree-proportional", "inverse-degree-cdf", "degree-cutoff", "jaccard-proportional")


def settings(name, budget):
    return {"keep_ratio" if "proportional" in name else "keep_prob": budget}


@pytest.mark.parametrize("graph", ["karate", "grid", "path", "parts"])
@pytest.mark.parametrize("end", ["connected", "connected:nested"])
def test_connected_masks_get_at_least_a_forest(graph, end):
    graph = ZOO[graph]
    scores = {name: edge_scores(graph, name) for name in ("degree", "jaccard")}
    plan, least = ForestPlan.of(graph), (graph.num_nodes - graph.components.count) / graph.num_edges
    for name in METHODS:
        for budget in (0.05, 0.5, 0.95):
            asked = Trial.of(f"{name}:{end}", sensitivity=0.5, keep_last=0.3, **settings(name, budget))
            rows = keep_rows(graph, asked, scores, 3)
            made = within_reach(graph, asked, scores)
            if float(rows.mean(dim=1).min()) >= least:
                assert made == asked
                continue
            raised = keep_rows(graph, made, scores, 3)
            check_connected(plan, raised)  # which refuses too small ones
            assert raised.mean(dim=1)[0].item() == pytest.approx(max(rows.mean(dim=1)[0].item(), least))
            assert (made.seed, made.dropout, made.method) == (asked.seed, asked.dropout, asked.method)


def test_unbiased_trials_give_every_edge_a_chance():
    graph = ZOO["karate"]
    scores = {"jaccard": edge_scores(graph, "jaccard"), "degree": edge_scores(graph, "degree")}
    assert bool((scores["jaccard"] == 0).any())
    for ratio, share in ((0.05, 0.525), (0.5, 0.525), (0.7, 0.7)):
        made = within_reach(graph, Trial("jaccard-proportional:unbiased", keep_ratio=ratio), scores)
        row = keep_rows(graph, made, scores, 1)
        assert float(row.min()) >= 0.05 - 1e-12
        assert float(row.mean()) == pytest.approx(share)
    for fine in (
        Trial("degree-proportional:unbiased", keep_ratio=0.05),
        Trial("jaccard-cdf:unbiased", keep_prob=0.05),
        Trial("jaccard-proportional", keep_ratio=0.05),
        Trial("jaccard-proportional:unbiased", keep_ratio=0.95),
    ):
        assert within_reach(graph, fine, scores) == fine


def test_what_a_laboratory_can_have():
    data = load_dataset("karate")
    gcn = Laboratory(data, Architecture("gcn", 2, 4), epochs=2)
    assert gcn.available_options("auto") == ["unbiased", "connected", "nested", "exact", "expected"]
    assert gcn.available_options("graphsage+auto") == ["nested", "exact"]  # no weights, and perhaps not all edges
    single = Laboratory(data, Architecture("gcn", 1, 4))
    assert single.available_options("auto") == ["unbiased", "connected", "exact", "expected"]
    assert "nested" not in Laboratory(data, Architecture("gcn", 3, 4), per_layer=True).available_options("auto")
    assert "cosine" in gcn.available_scores()
    assert "column" not in gcn.available_scores()
    assert (
        "cosine" not in Laboratory(load_dataset("source-localization"), Architecture("gcnn", 1, 4)).available_scores()
    )


@pytest.mark.parametrize("least", [2.0**-53, 1e-17, 1e-30, 5e-324])
@pytest.mark.parametrize("end", ["unbiased", "unbiased:nested"])
def test_an_edge_that_no_coin_keeps_has_no_chance(least, end):
    """Coins have 53 bits. Rounding leaves such scores, as the cosine of features that are nearly orthogonal."""
    laboratory = Laboratory(load_dataset("karate"), Architecture("gcn", 2, 4), epochs=1)
    row = torch.ones(78, dtype=torch.float64)
    row[5] = least
    laboratory.scores("degree").copy_(row)
    trial = Trial(f"degree-proportional:{end}", keep_ratio=0.5, keep_last=0.5)
    assert not laboratory.train([laboratory.within_reach(trial)])[0].failed


def test_a_score_that_fails_here_is_not_searched():
    """Thirty pairs of nodes and three classes: no component has three eigenvectors."""
    pairs = torch.arange(60).view(30, 2).T
    data = Data(edge_index=torch.cat((pairs, pairs.flip(0)), dim=1), x=torch.eye(60), y=torch.arange(60) % 3)
    laboratory = Laboratory(as_dataset(data, per_class=4), Architecture("gcn", 2, 4), epochs=1)
    with pytest.warns(UserWarning, match="goes without the score 'aggregate': q=3 is larger than every component"):
        assert "aggregate" not in laboratory.available_scores()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert laboratory.available_scores()[:2] == ["effective", "degree"]
        with pytest.raises(TadropedgeError, match="larger than every component"):
            laboratory.train([Trial("cdf")])  # what the user named is refused as ever


def test_a_score_that_is_equal_everywhere_is_told_to_those_who_name_it():
    """The features of the karate club are one-hot: a search that tries every score does not complain of one."""
    data = load_dataset("karate")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "cosine" in Laboratory(data, Architecture("gcn", 2, 4), epochs=1).available_scores()
    with pytest.warns(UserWarning, match="'cosine' is 0 for every edge .*: all scores are equal"):
        Laboratory(data, Architecture("gcn", 2, 4), epochs=1).train([Trial("cosine-cdf")])


def test_auto_is_refused_by_the_trainer():
    laboratory = Laboratory(load_dataset("karate"), Architecture("gcn", 2, 4), epochs=2)
    for call in (laboratory.train, laboratory.check, lambda trials: laboratory.kept_share(trials[0])):
        for name in ("auto", "graphsage+auto"):
            with pytest.raises(
                TadropedgeError, match=f"'{name.replace('+', '.')}' is a search over methods, .* name a"
            ):
                call([Trial(name)])


def test_the_budget_that_is_trained_is_the_one_that_is_told(device):
    """The karate club has 34 nodes in one component."""
    laboratory = Laboratory(load_dataset("karate").to(device), Architecture("gcn", 2, 4), epochs=2)
    trial = Trial("dropedge:connected", keep_prob=0.05)
    with pytest.raises(TadropedgeError, match="connected masks keep at least 33 of 78 edges"):
        laboratory.train([trial])
    raised = laboratory.within_reach(trial)
    assert laboratory.kept_share(raised) == pytest.approx(33 / 78)
    assert not laboratory.train([raised])[0].failed
    assert laboratory.within_reach(Trial("cdf")) == Trial("cdf")
    assert torch.equal(laboratory.scores("degree"), edge_scores(laboratory.dataset.graph, "degree"))


@pytest.mark.parametrize("graph", ["karate", "grid", "path", "parts"])
def test_the_least_share_has_a_closed_form(graph):
    graph = ZOO[graph]
    scores = {name: edge_scores(graph, name) for name in ("degree", "jaccard", "effective")}
    edges = graph.num_edges
    for name, values in scores.items():
        cdf = [(values <= one).double().mean().item() for one in values]
        assert least_share(graph, f"{name}-cdf", scores) == pytest.approx(sum(cdf) / edges)
        assert least_share(graph, f"inverse-{name}-cdf", scores) == pytest.approx(1 - sum(cdf) / edges)
        assert least_share(graph, f"{name}-proportional", scores) == 0
        zeros, positive = int((values == 0).sum()), int((values > 0).sum())
        bound = least_share(graph, f"{name}-proportional:unbiased", scores)
        assert bound == pytest.approx(positive / edges if zeros and positive else 0, abs=1e-9)
        for gamma in (0.01, 0.5):
            for rule, dense in (("cutoff", values >= gamma), ("division", values / (gamma + values))):
                found = least_share(graph, f"{name}-{rule}", scores, gamma=gamma)
                assert found == pytest.approx(dense.double().mean().item())
    degrees = torch.bincount(graph.pairs.flatten(), minlength=graph.num_nodes).tolist()
    for c in (0.5, 0.9):
        # The drop rate x of a node of degree d solves x + x² + … + x^d = d (1 − c).
        roots = {d: root(lambda x, d=d, c=c: sum(x**k for k in range(1, d + 1)) - d * (1 - c)) for d in set(degrees)}
        rates = [roots[degrees[node]] for pair in graph.pairs.T.tolist() for node in pair]
        found = least_share(graph, "dropsens", {}, sensitivity=c)
        assert found == pytest.approx(1 - sum(rates) / len(rates), abs=1e-9)
    forest = (graph.num_nodes - graph.components.count) / edges
    assert forest_share(graph) == forest
    assert least_share(graph, "dropedge:connected", {}) == forest
    cdf = least_share(graph, "degree-cdf", scores)
    assert least_share(graph, "degree-cdf:connected", scores) == max(cdf, forest)
    assert [least_share(graph, name, {}) for name in ("original", "auto", "graphsage", "dropedge")] == [1, 0, 1, 0]


def root(function):
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return low


@pytest.mark.parametrize("method", ["dropedge", "degree-cdf", "inverse-degree-cdf", "dropsens", "jaccard-proportional"])
@pytest.mark.parametrize("option", ["", ":unbiased", ":connected", ":exact"])
def test_the_least_share_can_be_trained_and_no_smaller_one_can(method, option):
    data = load_dataset("karate")
    lab = Laboratory(data, Architecture("gcn", 2, 4), epochs=1)
    scores = {"degree": lab.scores("degree"), "jaccard": lab.scores("jaccard")}
    least = least_share(data.graph, method + option, scores)
    above = Trial(method + option, keep_ratio=min(1.0, least + 1e-6))
    lab.train([above])
    assert lab.kept_share(above) == pytest.approx(min(1.0, least + 1e-6))
    assert lab.within_reach(above) == above
    if least > 1e-2:
        with pytest.raises(TadropedgeError):
            lab.train([Trial(method + option, keep_ratio=least - 1e-3)])
