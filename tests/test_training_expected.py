"""The option ``expected``: training as without it, evaluation on edges weighted by their keep probability."""

from __future__ import annotations

import json
from dataclasses import replace

import dense
import numpy as np
import pytest
import torch
from contracts.networks import same
from graphs import ZOO, clusters
from networks import make_network
from test_networks_deep import FORMULAS, SHIFT, graph_convolutions
from test_nn_backbones import Plain, filters_by_hand
from torch import nn
from torch_geometric.nn import GCNConv

from tadropedge import edge_scores, keep_probabilities, shift_operator
from tadropedge.data import load_dataset, load_source_localization
from tadropedge.errors import TadropedgeError
from tadropedge.method import EXCLUSIVE, OPTIONS, Method
from tadropedge.nn import operators as operators_module
from tadropedge.nn.own import own_network
from tadropedge.predicting import predict
from tadropedge.pyg import TADropEdge
from tadropedge.registry import NETWORKS
from tadropedge.search.entrants import Entrant, easier
from tadropedge.search.space import method_space
from tadropedge.shift import NORMALIZATIONS
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.edges import EdgeCoins, option_bytes
from tadropedge.training.laboratory import Laboratory
from tadropedge.training.model_file import load_model, save_model
from tadropedge.training.reach import least_share, within_reach

pytestmark = pytest.mark.usefixtures("one_thread")
CPU = torch.device("cpu")
NOISY = load_dataset("noisy-clusters")
KARATE = load_dataset("karate")
GRAPHS = {"dense": ZOO["weighted"], "sparse": clusters([70, 70], 0.1, 0.02)}  # below and above 128 nodes
FEATURES, HIDDEN, CLASSES = 7, 5, 3
SIZES = {"features": FEATURES, "hidden": HIDDEN, "classes": CLASSES}
STEPS = {"gcn": 3, "jknet": 4, "incepgcn": 4, "resgcn": 3, "gcnii": 3, "appnp": 3, "sage": 3}
OWN = {"gcnii": {"alpha": 0.1, "theta": 0.5}, "appnp": {"alpha": 0.1}}  # defaults that the formulas need


def weights_of(graph, trials):
    """Keep probabilities ``[T, M]`` of which some are 0 or 1; in the first trial node 0 loses all of its edges."""
    prob = torch.rand((trials, graph.num_edges), generator=torch.Generator().manual_seed(3))
    prob[:, ::7], prob[:, 1::7] = 0.0, 1.0
    prob[0, (graph.pairs == 0).any(dim=0)] = 0.0
    return prob


def by_hand(name, layers, state, x, S):
    """The logits of one trial, with a dense operator."""
    formula = graph_convolutions if name == "gcn" else FORMULAS.get(name)
    if formula is not None:
        state = {key: value.double() for key, value in state.items()}
        return formula(state, x.double(), [S] * layers, OWN.get(name, {}))
    plain = Plain(name, layers, self_weight=False, batch_norm=False)
    plain.load({key: value[None] for key, value in state.items()}, 0)
    return plain.eval()(x, [S.float()] * 20).detach().double()


# -- evaluation against dense references ------------------------------------------------------------------


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("name", STEPS)
def test_evaluation_is_on_the_operator_of_the_weighted_edges(name, kind, device):
    """D̃^-1/2 (P ∘ A + I) D̃^-1/2 and its kin, D̃ the degrees of P ∘ A + I."""
    graph, names = GRAPHS[kind], [None] * 3 if name in SHIFT else ["gcn", "first-order", "random-walk"]
    told = {} if name in SHIFT else {"normalization": names}
    network = make_network(name, STEPS[name], **SIZES, graph=graph.to(device), trials=3, **told)
    state, prob = network.initial([3, 1, 4], device), weights_of(graph, 3)
    x = torch.randn((1, graph.num_nodes, FEATURES), generator=torch.Generator().manual_seed(0))
    before = network.evaluation(state, x.to(device), torch.tensor(0)).cpu()
    network.soften(prob.to(device))
    logits = network.evaluation(state, x.to(device), torch.tensor(0)).cpu()
    for trial, normalization in enumerate(names):
        S = dense.shift(dense.masked_adjacency(graph, prob[trial]), normalization or SHIFT[name])
        mine = {key: value[trial].cpu() for key, value in state.items()}
        wanted = by_hand(name, STEPS[name], mine, x[0], S)
        assert torch.allclose(logits[trial].double(), wanted, atol=1e-4)
        assert not torch.allclose(before[trial].double(), wanted, atol=1e-2)


@pytest.mark.parametrize("kind", GRAPHS)
def test_every_normalisation_has_its_weighted_operator(kind):
    graph, names = GRAPHS[kind], list(NORMALIZATIONS)
    network = make_network("gcn", graph=graph, trials=len(names), normalization=names)
    prob = weights_of(graph, len(names))
    network.soften(prob)
    found = network.operators.whole
    for trial, name in enumerate(names):
        S = dense.shift(dense.masked_adjacency(graph, prob[trial]), name)
        row, col = graph.pattern.row, graph.pattern.col
        mine = found[trial] if kind == "dense" else found.values[trial]
        assert torch.allclose(mine.double(), S if kind == "dense" else S[row, col], atol=1e-5), name


def test_filters_see_the_weighted_operator():
    graph = ZOO["karate"]
    network = make_network("gcnn", 2, features=2, hidden=HIDDEN, classes=CLASSES, order=3)
    state, prob, x = network.initial([3, 1, 4], CPU), weights_of(graph, 3), torch.rand(6, 34, 2)
    network.soften(prob)
    logits = network.evaluation(state, x, torch.tensor(0))
    for trial in range(3):
        S = dense.shift(dense.masked_adjacency(graph, prob[trial]), "gcn").float()
        mine = {key: value[trial] for key, value in state.items()}
        assert torch.allclose(logits[trial].double(), filters_by_hand(network, mine, x, [S, S]), atol=1e-4)


def test_graph_convolutions_of_pytorch_geometric_take_the_probabilities_as_edge_weights():
    """The way of models around TADropEdge, which does not have the option."""
    graph, layer = ZOO["karate"], GCNConv(FEATURES, CLASSES)
    arcs = torch.cat((graph.pairs, graph.pairs.flip(0)), dim=1)
    prob = TADropEdge(score="jaccard", strategy="proportional", keep_ratio=0.5).probabilities(arcs)
    network = make_network("gcn", 1, **SIZES, graph=graph, trials=1)
    scored = keep_probabilities(edge_scores(graph, "jaccard"), strategy="proportional", keep_ratio=0.5)
    network.soften(scored.float()[None])
    state = {"output.weight": layer.lin.weight.T[None], "output.bias": layer.bias[None]}
    x = torch.randn((1, 34, FEATURES), generator=torch.Generator().manual_seed(0))
    logits = network.evaluation(state, x, torch.tensor(0))[0]
    assert torch.allclose(logits, layer(x[0], arcs, prob.float()), atol=1e-5)


@pytest.mark.parametrize("method", ["dropedge:expected", "jaccard-proportional:expected", "dropsens:exact:expected"])
def test_what_is_recorded_is_what_the_weighted_graph_gives(method):
    """By the parameters at the best epoch, and probabilities from the functions that know no training."""
    trial = Trial.of(method, keep_ratio=0.9 if "dropsens" in method else 0.4, dropout=0.3)
    lab = Laboratory(NOISY, Architecture("gcn", 2, 8), epochs=12)
    [outcome] = lab.train([trial], keep_state=True)
    graph, one = NOISY.graph, Method.of(method)
    scored = torch.ones(graph.num_edges) if one.score is None else edge_scores(graph, one.score)
    prob = keep_probabilities(
        graph if one.strategy == "dropsens" else scored, strategy=one.strategy, keep_ratio=trial.keep_ratio
    )
    assert bool((prob == 0).any()) == (one.score == "jaccard")
    state = {key: torch.from_numpy(value) for key, value in outcome.state.items()}
    S = dense.shift(dense.masked_adjacency(graph, prob.float()), "gcn")
    logits = by_hand("gcn", 2, state, NOISY.features.to_dense(), S)
    val, test, labels = NOISY.split.val, NOISY.split.test, NOISY.labels
    assert float(nn.functional.cross_entropy(logits[val], labels[val])) == pytest.approx(outcome.kept["val_loss"], 1e-4)
    right = (logits[test].argmax(1) == labels[test]).double().mean()
    assert float(right) == pytest.approx(outcome.kept["test_accuracy"], abs=1.5 / len(test))


# -- training ---------------------------------------------------------------------------------------------


def test_training_is_that_of_the_method_without_the_option():
    names = ["dropedge", "degree-cdf", "jaccard-proportional", "dropsens", "degree-cdf:exact"]
    lab = Laboratory(NOISY, Architecture("gcn", 3, 8), epochs=6)
    plain, soft = (
        lab.train([Trial.of(f"{name}{end}", keep_ratio=0.8, seed=4) for name in names]) for end in ("", ":expected")
    )
    for one, other in zip(plain, soft, strict=True):
        assert np.array_equal(one.train_loss, other.train_loss)
        assert not np.array_equal(one.val_loss, other.val_loss)


def test_masks_are_those_of_the_method_without_the_option(device):
    graph = ZOO["karate"].to(device)
    seeds = torch.tensor([5], device=device)
    trials = [[Trial.of(name, seed=5)] for name in ("dropedge", "dropedge:expected")]
    coins = [EdgeCoins(graph, one, {}, seeds, None, 2) for one in trials]
    for epoch in range(4):
        for one, other in zip(*(each.keeps(torch.tensor(epoch, device=device)) for each in coins), strict=True):
            assert torch.equal(one, other)
    assert coins[0].expected is None
    assert torch.equal(coins[1].expected, coins[1].rows[0].float())


@pytest.mark.parametrize("compact", [False, True])
def test_alone_in_a_mixed_batch_and_on_compact_operators_the_bits_are_the_same(compact, monkeypatch):
    lab = Laboratory(NOISY, Architecture("gcn", 2, 8), epochs=5)
    trials = [
        Trial.of(name, seed=seed, keep_ratio=ratio, normalization=normalization)
        for seed, (name, ratio, normalization) in enumerate(
            [
                ("original", None, "gcn"),
                ("dropedge:expected", 0.3, "gcn"),
                ("jaccard-proportional:expected", 0.2, "random-walk"),
                ("degree-cdf:exact:expected", 0.8, "gcn"),
                ("dropedge", 0.3, "gcn"),
                ("dropedge:unbiased", 0.3, "gcn"),
                ("degree-proportional:expected", 0.5, "gcn"),
            ]
        )
    ]
    together = lab.train(trials)
    if compact:
        monkeypatch.setattr(operators_module, "WORTH_COMPACTING", {"cpu": 0})
    same(together, [lab.train([one])[0] for one in trials])


def test_where_everything_is_kept_nothing_is_weighted():
    lab = Laboratory(KARATE, Architecture("gcn", 2, 8), epochs=5)
    same(*([one] for one in lab.train([Trial.of(name, keep_prob=1.0) for name in ("dropedge:expected", "dropedge")])))


def test_the_epoch_may_be_chosen_by_the_training_pass():
    trials = [Trial.of(f"dropedge{end}", keep_prob=0.4, seed=2) for end in ("", ":expected")]
    curves = {}
    for selection in ("training", "evaluation"):
        lab = Laboratory(NOISY, Architecture("gcn", 2, 8), epochs=10, selection=selection)
        plain, curves[selection] = lab.train(trials)
        assert (plain.best_epoch == curves[selection].best_epoch) or selection == "evaluation"
    one, other = curves.values()
    assert np.array_equal(one.test_accuracy, other.test_accuracy)


def test_it_goes_with_subgraphs_of_their_own_for_every_layer():
    lab = Laboratory(NOISY, Architecture("gcn", 3, 8), epochs=3, per_layer=True)
    plain, soft = lab.train([Trial.of(f"dropedge{end}", keep_prob=0.5) for end in ("", ":expected")])
    assert np.array_equal(plain.train_loss, soft.train_loss)
    assert not np.allclose(plain.val_loss, soft.val_loss)


# -- what cannot be had -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, one in NETWORKS.items() if one.drops and not one.softens])
def test_networks_without_weights_in_evaluation_refuse(name):
    message = f"{name} cannot be evaluated on edges with weights, which '{name}.dropedge:expected' asks for"
    with pytest.raises(TadropedgeError, match=message):
        Trial.of(f"{name}+dropedge:expected")
    lab = Laboratory(KARATE, Architecture(name, 2, 4), epochs=1)
    with pytest.raises(TadropedgeError, match=f"{name} cannot be evaluated on edges with weights"):
        lab.check([Trial.of("dropedge:expected")])
    assert "expected" not in lab.available_options("auto")
    assert "expected" not in method_space("auto", backbone=name).table()["option"]


class Linear(nn.Module):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.layer = nn.Linear(num_features, num_classes)

    def forward(self, x, edge_index, edge_weight=None):
        return self.layer(x)


def test_modules_of_users_refuse():
    name = own_network(Linear)
    with pytest.raises(TadropedgeError, match="cannot be evaluated on edges with weights, which 'cdf:expected' asks"):
        Laboratory(KARATE, Architecture(name, 2, 4), epochs=1).check([Trial.of("cdf:expected")])


@pytest.mark.parametrize("name", [name for name, one in NETWORKS.items() if not one.drops])
def test_networks_that_drop_nothing_refuse(name):
    with pytest.raises(TadropedgeError, match="cannot be combined with edge dropping"):
        Method.of(f"{name}+cdf:expected")


@pytest.mark.parametrize("other", ["unbiased", "connected", "nested"])
def test_options_that_exclude_it(other):
    assert (other, "expected") in EXCLUSIVE
    with pytest.raises(TadropedgeError, match=f"'cdf:expected:{other}': {other} and expected exclude each other: "):
        Method.of(f"cdf:expected:{other}")
    assert Method.of("cdf:expected:exact").name == "cdf:exact:expected"
    assert list(OPTIONS)[-1] == "expected"


def test_what_it_holds_is_counted():
    assert option_bytes(Method.of("cdf:expected"), 2, 1000, 3000) == 4 * 1000 + 4 * 3000
    lab = Laboratory(NOISY, Architecture("gcn", 2, 8))
    assert lab._largest([Trial.of("cdf:expected")]) > lab._largest([Trial.of("cdf")])


# -- searches ---------------------------------------------------------------------------------------------


def test_the_least_share_is_that_of_the_rule():
    graph = KARATE.graph
    scores = {"jaccard": edge_scores(graph, "jaccard")}
    for name in ("dropedge", "jaccard-cdf", "jaccard-proportional", "dropsens"):
        assert least_share(graph, f"{name}:expected", scores) == least_share(graph, name, scores)
    low = Trial("jaccard-proportional:expected", keep_ratio=0.01)
    assert within_reach(graph, low, scores) == low


def test_a_budget_out_of_reach_keeps_the_option_with_a_rule_that_can_meet_it():
    assert easier("degree-cdf:expected") == [
        "degree-cdf:expected", "degree-cdf", "degree-proportional:expected", "degree-proportional",
    ]  # fmt: skip
    space = method_space("auto", scores=("degree",))
    entrant = Entrant("auto", 0.2, reaches=lambda one: "cdf" not in one.method)
    drawn = {entrant.trial(space, 0, i, 0).method for i in range(80)}
    assert {"degree-proportional:expected", "dropedge:expected", "dropsens:expected"} <= drawn
    assert not any("cdf" in name for name in drawn)


# -- saved models -----------------------------------------------------------------------------------------


def saved(folder, lab, trial, **more):
    [outcome] = lab.train([trial], keep_state=True)
    data = lab.dataset
    sizes = (data.num_features, data.num_classes)
    save_model(folder, outcome, lab.architecture, data.name, *sizes, num_nodes=data.graph.num_nodes, **more)
    return outcome


def check_predictions(folder, data, outcome, device=CPU):
    found = predict(folder, data.to(device))
    for name, part in (("val_accuracy", data.split.val), ("test_accuracy", data.split.test)):
        right = (found.predicted[part] == data.labels[part]).double().mean()
        assert float(right) == pytest.approx(outcome.kept[name], abs=1e-6)
    logits = load_model(folder).logits(data)[data.split.val]
    loss = float(nn.functional.cross_entropy(logits, data.labels[data.split.val]))
    assert loss == pytest.approx(outcome.kept["val_loss"], rel=1e-4)


@pytest.mark.parametrize("method", ["dropedge", "jaccard-proportional", "dropsens", "degree-cdf:exact"])
def test_a_saved_model_predicts_what_was_recorded(method, tmp_path, device):
    lab = Laboratory(NOISY, Architecture("gcnii", 4, 8), epochs=10)
    trial = Trial.of(f"{method}:expected", keep_ratio=0.8)
    check_predictions(tmp_path, NOISY, saved(tmp_path, lab, trial), device)


def test_a_saved_model_of_signals_and_one_with_a_column(tmp_path):
    signals = load_source_localization(nodes=20, sizes=(30, 20, 40))
    lab = Laboratory(signals, Architecture("gcnn", 1, 4), epochs=5)
    outcome = saved(tmp_path / "signals", lab, Trial.of("degree-proportional:expected", keep_ratio=0.5))
    check_predictions(tmp_path / "signals", signals, outcome)
    column = replace(KARATE, score_column=torch.arange(KARATE.graph.num_edges, dtype=torch.float64))
    lab = Laboratory(column, Architecture("gcn", 2, 4), epochs=5)
    outcome = saved(tmp_path / "column", lab, Trial.of("column-proportional:expected", keep_ratio=0.5))
    check_predictions(tmp_path / "column", column, outcome)
    with pytest.raises(TadropedgeError, match="column"):
        predict(tmp_path / "column", KARATE)


def test_a_model_by_aggregate_resistance_holds_the_modes_of_its_laboratory(tmp_path):
    lab = Laboratory(NOISY, Architecture("gcn", 2, 8), 8, "normalized", q=2)
    trial = Trial.of("cdf:expected", keep_prob=0.0, seed=3)
    outcome = saved(tmp_path / "told", lab, trial, q=lab.q, laplacian=lab.laplacian)
    check_predictions(tmp_path / "told", NOISY, outcome)
    saved(tmp_path / "silent", lab, trial)
    logits = [load_model(tmp_path / name).logits(NOISY) for name in ("told", "silent")]
    assert not torch.allclose(*logits, atol=1e-4)
    table = json.loads((tmp_path / "told" / "model.json").read_text())
    assert (table["q"], table["laplacian"]) == (2, "normalized")
    default = Laboratory(NOISY, Architecture("gcn", 2, 8), 8)
    outcome = saved(tmp_path / "default", default, trial)
    check_predictions(tmp_path / "default", NOISY, outcome)


def test_models_of_other_methods_are_written_as_ever(tmp_path):
    saved(tmp_path, Laboratory(KARATE, Architecture("gcn", 2, 4), epochs=2), Trial.of("cdf"), q=3)
    assert not {"q", "laplacian"} & set(json.loads((tmp_path / "model.json").read_text()))
    assert load_model(tmp_path).q is None
    for wrong, message in (({"q": 0}, "q must be"), ({"laplacian": "random"}, "unknown laplacian 'random'")):
        with pytest.raises(TadropedgeError, match=message):
            saved(tmp_path, Laboratory(KARATE, Architecture("gcn", 2, 4), epochs=2), Trial.of("cdf"), **wrong)


def test_another_graph_is_scored_anew(tmp_path):
    """Predictions on other edges are those with the keep probabilities of these."""
    lab = Laboratory(NOISY, Architecture("gcn", 2, 8), epochs=5)
    saved(tmp_path, lab, Trial.of("degree-proportional:expected", keep_ratio=0.4))
    model = load_model(tmp_path)
    kept = torch.rand(NOISY.graph.num_edges, generator=torch.Generator().manual_seed(0)) < 0.7
    other = replace(NOISY, graph=type(NOISY.graph).from_edge_index(NOISY.graph.pairs[:, kept], NOISY.graph.num_nodes))
    prob = keep_probabilities(edge_scores(other.graph, "degree"), strategy="proportional", keep_ratio=0.4)
    S = shift_operator(other.graph, prob.float()).to_dense().double()
    wanted = by_hand("gcn", 2, {name: model.state[name] for name in model.shapes}, other.features.to_dense(), S)
    assert torch.allclose(model.logits(other).double(), wanted, atol=1e-4)
