"""Many trainings at once: each is what it would be alone, and what plain PyTorch makes of it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import dense
import numpy as np
import pytest
import torch
from graphs import ZOO, clusters
from networks import make_network
from torch import nn

from tadropedge import (
    SCORES,
    aggregate_resistance,
    edge_scores,
    effective_resistance,
    keep_probabilities,
    sample_edges,
    shift_operator,
)
from tadropedge.data.dataset import Split
from tadropedge.data.source_localization import load_source_localization
from tadropedge.data.synthetic import load_clusters, load_karate
from tadropedge.errors import TadropedgeError
from tadropedge.method import Method, droppings
from tadropedge.nn.backbones import GCN
from tadropedge.nn.layers import Sparse
from tadropedge.nn.operators import Operators
from tadropedge.sampling import key_tensor, pair_words, toss
from tadropedge.shift import NORMALIZATIONS
from tadropedge.sparse import KeptProducts
from tadropedge.training import laboratory, trainer
from tadropedge.training.batch import Batch, Course
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.edges import EdgeCoins, keep_row
from tadropedge.training.laboratory import Laboratory, make_task
from tadropedge.training.noise import STREAM, Dropout
from tadropedge.training.optimizer import Adam
from tadropedge.training.task import mean_at

pytestmark = pytest.mark.usefixtures("one_thread")
CPU = torch.device("cpu")
CURVES = ("train_loss", "val_loss", "val_accuracy", "test_accuracy")
SMALL = Architecture(hidden=8)
KARATE = load_karate()


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def lab(dataset=KARATE, architecture=SMALL, epochs=6, **settings):
    return Laboratory(dataset, architecture, epochs=epochs, **settings)


@cache
def sparse_clusters():
    """More nodes than the dense path takes, and sparse features."""
    dataset = load_clusters(clusters=3, nodes=50)
    return replace(dataset, features=dataset.features.relu().to_sparse_csr())


@cache
def signals():
    return load_source_localization(nodes=20, communities=2, times=5, sizes=(12, 10, 15))


def close(ours, others, atol=1e-5):
    for mine, other in zip(ours, others, strict=True):
        assert mine.trial == other.trial
        for name in CURVES:
            assert np.allclose(getattr(mine, name), getattr(other, name), atol=atol), name


# -- the optimiser ----------------------------------------------------------------------------------------


def test_adam_is_torchs_adam_with_settings_for_each_trial():
    rates, decays = [0.1, 0.001, 0.01], [0.0, 0.5, 5e-4]
    parameters = {"weight": normal(3, 4, 2), "bias": normal(3, 2, seed=1)}
    others = [{name: nn.Parameter(value[t].clone()) for name, value in parameters.items()} for t in range(3)]
    theirs = [
        torch.optim.Adam(mine.values(), lr=lr, weight_decay=wd)
        for mine, lr, wd in zip(others, rates, decays, strict=True)
    ]
    epoch = torch.zeros((), dtype=torch.int64)
    ours = Adam(parameters, torch.tensor(rates).view(3, 1, 1), torch.tensor(decays).view(3, 1, 1), epoch)
    for step in range(20):
        gradients = [normal(*value.shape, seed=10 * step + place) for place, value in enumerate(parameters.values())]
        ours.step(gradients)
        epoch += 1
        for trial, optimizer in enumerate(theirs):
            for value, gradient in zip(others[trial].values(), gradients, strict=True):
                value.grad = gradient[trial]
            optimizer.step()
            for name, value in parameters.items():
                assert torch.allclose(value[trial], others[trial][name], rtol=1e-6, atol=1e-6)


# -- dropout ----------------------------------------------------------------------------------------------

RATES = torch.tensor([0.0, 0.3, 0.5, 0.8, 1.0])
NOISE_SEEDS = torch.tensor([1, 2, 3, 4, 5])
ONES = torch.ones(5, 50, 40)


def dropout(rates=RATES, seeds=NOISE_SEEDS, epoch=0):
    return Dropout(rates, seeds, torch.tensor(epoch))


def test_dropout_has_its_rate_and_keeps_the_expectation():
    out = torch.stack([dropout(epoch=epoch)(ONES, 0) for epoch in range(50)])
    count = out[:, 0].numel()
    for place, rate in enumerate(RATES.tolist()):
        kept = 1 - rate
        error = 5 * (rate * kept / count) ** 0.5  # five standard errors
        share = float((out[:, place] > 0).float().mean())
        assert abs(share - kept) <= error
        assert share in (0.0, 1.0) or rate not in (0.0, 1.0)
        if kept:
            assert torch.allclose(out[:, place].max(), torch.tensor(1 / kept))
            assert abs(float(out[:, place].double().mean()) - 1) <= error / kept + 1e-6


def test_noise_of_a_trial_is_its_own():
    together = dropout()(ONES, 2)
    for place in range(5):
        alone = dropout(RATES[place : place + 1], NOISE_SEEDS[place : place + 1])(ONES[:1], 2)
        assert torch.equal(alone[0], together[place])


def test_other_layers_epochs_and_seeds_have_other_noise():
    half = torch.full((2,), 0.5)
    h = ONES[:2]
    first = dropout(half, NOISE_SEEDS[:2])(h, 0)
    assert torch.equal(first, dropout(half, NOISE_SEEDS[:2])(h, 0))
    others = [first[1], dropout(half, NOISE_SEEDS[:2])(h, 1)[0], dropout(half, NOISE_SEEDS[:2], epoch=1)(h, 0)[0]]
    for other in others:  # unlike coins agree in half of the entries
        assert abs(float((first[0] == other).float().mean()) - 0.5) < 0.06


def test_noise_is_not_that_of_the_edges():
    edges = sample_edges(torch.full((2000,), 0.5), seed=1, epoch=0)
    noise = dropout(torch.tensor([0.5]), torch.tensor([1]))
    assert STREAM > 100  # more than any network has layers
    for layer in range(3):
        kept = noise(torch.ones(1, 50, 40), layer).flatten() > 0
        assert abs(float((kept == edges).float().mean()) - 0.5) < 0.06


def test_the_gradient_of_dropout_uses_the_same_mask():
    h = normal(*ONES.shape).requires_grad_()
    out = dropout()(h, 1)
    (gradient,) = torch.autograd.grad(out.sum(), h)
    assert torch.equal(gradient, dropout()(ONES, 1))
    assert torch.allclose(out, h * gradient)


# -- subgraphs --------------------------------------------------------------------------------------------

MIXED = ["gcn", "random-walk", "first-order", "gcn", "gcn-residual"]


@pytest.mark.parametrize("names", [MIXED, ["gcn"] * 5, ["random-walk"] * 5, ["gcn", "first-order"] * 2 + ["gcn"]])
@pytest.mark.parametrize("large", [False, True])
def test_operators_are_those_of_the_kept_edges(names, large):
    graph = clusters([70, 70], 0.1, 0.02) if large else ZOO["weighted"]
    prob = torch.rand(5, graph.num_edges, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    operators = Operators(graph, names)
    for epoch in (0, 3):
        keep = torch.stack([sample_edges(row, seed, epoch) for row, seed in zip(prob, (4, 0, 7, 7, -3), strict=True)])
        drawn = operators.of(keep)
        assert isinstance(drawn, Sparse) == large
        for trial, name in enumerate(names):
            expected = shift_operator(graph, keep[trial], normalization=name)
            if large:
                assert torch.equal(drawn.values[trial], expected.values)
                assert drawn.symmetric == ("random-walk" not in names)
            else:
                assert torch.equal(drawn[trial], expected.to_dense())
    assert operators.of(None) is operators.whole
    x = normal(5, graph.num_nodes, 2)
    for trial, name in enumerate(names):
        expected = dense.shift(dense.masked_adjacency(graph, torch.ones(graph.num_edges)), name).float()
        assert torch.allclose((operators.whole @ x)[trial], expected @ x[trial], atol=1e-5)


def test_gradients_are_right_whichever_normalisations_are_asymmetric(monkeypatch):
    def from_below(kept, pattern):
        """Edges only from the lower node to the higher: asymmetric, and not a random walk."""
        return torch.cat((torch.zeros_like(kept), kept), dim=-1), kept.new_ones((*kept.shape[:-1], pattern.num_nodes))

    monkeypatch.setitem(NORMALIZATIONS, "from-below", from_below)
    graph = clusters([70, 70], 0.1, 0.02)
    operator = Operators(graph, ["gcn", "from-below"]).whole
    x = normal(2, graph.num_nodes, 3).requires_grad_()
    probe = normal(2, graph.num_nodes, 3, seed=1)
    (gradient,) = torch.autograd.grad(((operator @ x) * probe).sum(), x)
    for trial, name in enumerate(("gcn", "from-below")):
        S = shift_operator(graph, normalization=name).to_dense()
        assert torch.allclose(gradient[trial], S.T @ probe[trial], atol=1e-5)


def coins(graph, trials, scores=None, inside=None):
    return EdgeCoins(graph, trials, scores or {}, torch.tensor([trial.seed for trial in trials]), inside)


def test_coins_are_those_of_sample_edges_and_every_layer_has_its_own():
    graph = ZOO["karate"]
    trials = [Trial.of("dropedge", keep_prob=0.5, seed=seed) for seed in (0, 9)] + [Trial.of("original")]
    mine, prob = coins(graph, trials), torch.full((graph.num_edges,), 0.5, dtype=torch.float64)
    for epoch in range(3):
        kept = mine.keep(torch.tensor(epoch))
        assert torch.equal(kept[:2], torch.stack([sample_edges(prob, seed, epoch) for seed in (0, 9)]))
        assert bool(kept[2].all())
    layers = [mine.keep(torch.tensor(0), layer) for layer in range(3)]
    assert not torch.equal(layers[0], layers[1])
    assert not torch.equal(layers[1], layers[2])
    assert torch.equal(mine.keep(torch.tensor(0), 1), layers[1])


def test_where_nothing_is_dropped_no_coin_is_tossed():
    graph = ZOO["karate"]
    inside = torch.arange(graph.num_edges)[None] < 5
    assert coins(graph, [Trial.of("original")]).keep(torch.tensor(0)) is None
    assert torch.equal(coins(graph, [Trial.of("original")], inside=inside).keep(torch.tensor(0)), inside)
    assert int(coins(graph, [Trial.of("dropedge")], inside=inside).keep(torch.tensor(0)).sum()) <= 5


def test_probabilities_of_every_method():
    graph = KARATE.graph
    scores = {"aggregate": aggregate_resistance(graph, 4), "effective": effective_resistance(graph)}
    scores = dict.fromkeys(SCORES, edge_scores(graph, "degree")) | scores  # any will do for the others
    for name in droppings():
        method, row = Method.of(name), keep_row(graph, Trial.of(name, keep_prob=0.3), scores)
        if method.strategy is None:
            assert torch.equal(row, torch.ones_like(row))
            continue
        chosen = graph if method.strategy == "dropsens" else scores[method.score or "aggregate"]
        expected = keep_probabilities(chosen, keep_prob=0.3, strategy=method.strategy, inverse=method.inverse)
        assert torch.equal(row, expected)
    assert float(keep_row(graph, Trial.of("cdf", keep_ratio=0.8), scores).mean()) == pytest.approx(0.8)
    gamma = keep_row(graph, Trial.of("cutoff", gamma=0.5), scores)
    assert torch.equal(gamma < 1, scores["aggregate"] < 0.5)


# -- trials do not see each other ---------------------------------------------------------------------------

TRIALS = [
    Trial.of("original", seed=1),
    Trial.of("dropedge", seed=1, dropout=0.3, learning_rate=0.02, keep_prob=0.5),
    Trial.of("cutoff", seed=2, batch_norm=True, normalization="random-walk"),
    Trial.of("cdf", seed=3, split=2, keep_ratio=0.8, normalization="first-order", weight_decay=0.0),
    Trial.of("effective-division", seed=4, self_weight=True, split=1, normalization="gcn-residual"),
    Trial.of("inverse-cutoff", seed=5, self_weight=True, batch_norm=True, dropout=0.0, split=2),
    Trial.of("dropedge", seed=6, batch_norm=True, split=1, dropout=0.8),
]


@pytest.mark.parametrize(
    ("dataset", "architecture"),
    [
        (lambda: KARATE, SMALL),
        (lambda: KARATE, Architecture("incepgcn", 4, 8)),
        (sparse_clusters, Architecture("jknet", 3, 8)),
        (signals, Architecture("gcnn", 2, 4, {"order": 3})),
    ],
    ids=["gcn", "incepgcn", "jknet-sparse", "gcnn"],
)
@pytest.mark.parametrize("selection", ["evaluation", "training"])
def test_a_trial_does_not_depend_on_its_batch(dataset, architecture, selection):
    mine = lab(dataset(), architecture, selection=selection, per_layer=True)
    own = architecture.network("original")[1].settings  # filters have neither self weights nor batch norm
    trials = [one.but(**{key: None for key in one.settings if key not in own}) for one in TRIALS]
    together = mine.train(trials)
    assert [outcome.trial for outcome in together] == trials
    assert not any(outcome.failed for outcome in together)
    alone = [mine.train([trial])[0] for trial in trials]
    close(together, alone)
    close(together, mine.train(trials[::-1])[::-1])
    # The kept epoch may differ by rounding only where two losses are as close as that.
    for one, other in zip(together, alone, strict=True):
        assert one.best_epoch == other.best_epoch


def test_masks_are_the_same_bit_for_bit_alone_and_in_a_batch():
    task = make_task(KARATE, [lab().split(number) for number in range(3)], lab()._needed(TRIALS))
    parts = [trial for trial in TRIALS if not {"self_weight", "batch_norm"} & set(trial.settings)]
    course = Course(epochs=3, per_layer=True)
    together = Batch(task, SMALL, parts, [trial.split for trial in parts], course)
    for place, trial in enumerate(parts):
        alone = Batch(task, SMALL, [trial], [trial.split], course)
        for layer in range(2):
            epoch = torch.tensor(2)
            kept = alone.coins.keep(epoch, layer)
            mine = together.coins.keep(epoch, layer)[place]
            assert bool(mine.all()) if kept is None else torch.equal(mine, kept[0])
            h = torch.ones(1, 34, 8)
            assert torch.equal(together.noise(h.expand(len(parts), -1, -1), layer)[place], alone.noise(h, layer)[0])
        for name, value in together.parameters.items():
            assert torch.equal(value[place], alone.parameters[name][0])


def test_methods_with_one_seed_are_paired():
    trials = [Trial.of(name, seed=3) for name in ("original", "dropedge", "cdf")]
    task = make_task(KARATE, [KARATE.split], lab()._needed(trials))
    batch = Batch(task, SMALL, trials, [0] * 3, Course(epochs=3))
    noise = batch.noise(torch.ones(3, 34, 8), 0)
    assert torch.equal(noise[0], noise[1])
    assert torch.equal(noise[0], noise[2])
    for value in batch.parameters.values():
        assert torch.equal(value[0], value[1])
        assert torch.equal(value[0], value[2])


# -- one trial is a plain loop ------------------------------------------------------------------------------


def plain_loop(dataset, trial, epochs, per_layer=False):
    """The same training with dense matrices, torch's cross-entropy, autograd and Adam: rows of (train, val, …)."""
    graph, split, options = dataset.graph, dataset.split, Method.of(trial.method).options
    prob = keep_row(graph, trial, lab(dataset)._needed([trial]))
    last = keep_row(graph, trial.but(keep_prob=trial.keep_last or 1.0), lab(dataset)._needed([trial]))
    probs = [prob, last if "nested" in options else prob]
    how = {"connected": graph if "connected" in options else None, "exact": "exact" in options}
    sizes = {"features": dataset.num_features, "hidden": SMALL.hidden, "classes": dataset.num_classes}
    start = make_network("gcn", **sizes).initial([trial.seed], CPU)
    normalization = trial.settings.get("normalization", "gcn")
    first, b, second, c = (nn.Parameter(value[0]) for value in start.values())
    optimizer = torch.optim.Adam([first, b, second, c], lr=trial.learning_rate, weight_decay=trial.weight_decay)
    features = dataset.features.to_dense()

    def operator(keep, prob=None):
        if prob is None or "unbiased" not in options:
            return dense.shift(dense.masked_adjacency(graph, keep), normalization).float()
        factors = torch.eye(graph.num_nodes, dtype=torch.float64)
        factors[tuple(graph.pairs)] = factors[tuple(graph.pairs.flip(0))] = keep / prob
        return (dense.shift(dense.masked_adjacency(graph, torch.ones(len(keep))), normalization) * factors).float()

    def forward(shifts, noise):
        return shifts[1] @ (noise((shifts[0] @ (features @ first) + b).relu()) @ second) + c

    rows, entropy = [], nn.functional.cross_entropy
    for epoch in range(epochs):
        noise = Dropout(torch.tensor([trial.dropout]), torch.tensor([trial.seed]), torch.tensor(epoch))
        if per_layer:
            keys = [key_tensor(torch.tensor([trial.seed]), torch.tensor(epoch), layer) for layer in range(2)]
            words = pair_words(graph.num_edges, CPU)
            shifts = [operator(toss(words, multiplier, offset, prob), prob) for multiplier, offset in keys]
        else:
            shifts = [operator(sample_edges(one, trial.seed, epoch, **how), one) for one in probs]
        out = forward(shifts, lambda h, noise=noise: noise(h[None], 0)[0])
        loss = entropy(out[split.train], dataset.labels[split.train])
        on_pass = entropy(out[split.val], dataset.labels[split.val])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            out = forward([operator(torch.ones(graph.num_edges))] * 2, lambda h: h)
            right = (out.argmax(1) == dataset.labels).float()
            val = entropy(out[split.val], dataset.labels[split.val])
            rows.append([*map(float, (loss, val, right[split.val].mean(), right[split.test].mean(), on_pass))])
    return np.array(rows).T


PLAIN = [
    Trial.of("dropedge", keep_prob=0.5, seed=4, learning_rate=0.05),
    Trial.of("cdf", keep_prob=0.2, seed=2, normalization="random-walk", dropout=0.3, weight_decay=0.05),
    Trial.of("original", seed=0, dropout=0.0, normalization="first-order"),
    Trial.of("cdf:unbiased", keep_prob=0.3, seed=5, normalization="random-walk"),
]
LAYERED = [
    Trial.of("dropedge:nested", keep_prob=0.3, keep_last=0.6, seed=1),
    Trial.of("cdf:unbiased:nested", keep_prob=0.5, keep_last=0.2, seed=1, normalization="laplacian"),
    Trial.of("cdf:nested", keep_prob=0.5, seed=1),
    Trial.of("effective-proportional:connected", keep_prob=0.5, seed=3),
    Trial.of("dropsens:exact", keep_prob=0.3, sensitivity=0.4, seed=2),
    Trial.of("inverse-cdf:connected:exact", keep_prob=0.3, seed=2),
]


@pytest.mark.parametrize("trial", LAYERED, ids=[trial.method for trial in LAYERED])
def test_one_trial_with_options_is_a_plain_loop(trial):
    (outcome,) = lab(epochs=15).train([trial])
    for name, curve in zip(CURVES, plain_loop(KARATE, trial, 15), strict=False):
        assert np.allclose(getattr(outcome, name), curve, atol=1e-5), name


@pytest.mark.parametrize("trial", PLAIN, ids=[trial.method for trial in PLAIN])
@pytest.mark.parametrize("per_layer", [False, True])
def test_one_trial_is_a_plain_loop(trial, per_layer):
    (outcome,) = lab(epochs=15, per_layer=per_layer).train([trial])
    expected = plain_loop(KARATE, trial, 15, per_layer)
    for name, curve in zip(CURVES, expected, strict=False):
        assert np.allclose(getattr(outcome, name), curve, atol=1e-5), name
    assert outcome.best_epoch == expected[1].argmin()
    (outcome,) = lab(epochs=15, per_layer=per_layer, selection="training").train([trial])
    assert outcome.best_epoch == expected[4].argmin()


def test_a_plain_loop_on_sparse_operators_and_features():
    dataset, trial = sparse_clusters(), Trial.of("cutoff", keep_prob=0.5, seed=1)
    (outcome,) = lab(dataset, epochs=8).train([trial])
    for name, curve in zip(CURVES, plain_loop(dataset, trial, 8), strict=False):
        assert np.allclose(getattr(outcome, name), curve, atol=1e-5), name


def test_training_loss_goes_down_and_accuracies_are_shares():
    trials = [Trial.of(method, dropout=0.2, learning_rate=0.05) for method in ("original", "dropedge", "cdf")]
    for outcome in lab(epochs=60).train(trials):
        assert outcome.train_loss[-10:].mean() < 0.3 * outcome.train_loss[0]
        for name, count in (("val_accuracy", 10), ("test_accuracy", 16)):
            share = getattr(outcome, name)
            assert np.array_equal(share, (np.round(share * count) / count).astype(np.float32))
            assert 0 <= share.min() <= share.max() <= 1
        assert outcome.best_epoch == outcome.val_loss.argmin()
        assert outcome.kept == {name: float(getattr(outcome, name)[outcome.best_epoch]) for name in CURVES}


def test_a_perfect_score_is_one():
    # Ten times 1/10 is more than one in float32: a mean must be a count over a count.
    mean = mean_at(torch.ones(1, 10), torch.ones(1, 10))
    assert mean.tolist() == [1.0]


def test_per_layer_changes_the_training_and_only_where_edges_are_dropped():
    trials = [Trial.of("original"), Trial.of("dropedge", keep_prob=0.5)]
    shared, apart = lab().train(trials), lab(per_layer=True).train(trials)
    close(shared[:1], apart[:1])
    assert not np.allclose(shared[1].train_loss, apart[1].train_loss, atol=1e-4)


def test_nodes_without_a_label_are_never_looked_at():
    labels = KARATE.labels.clone()
    used = torch.cat([part for _, part in KARATE.split.parts()])[:-5]
    labels[torch.isin(torch.arange(34), used, invert=True)] = -1
    split = Split(KARATE.split.train, KARATE.split.val, KARATE.split.test[:-5])
    bare = replace(KARATE, labels=labels, split=split)
    close(lab(bare).train([Trial.of()]), lab(replace(KARATE, split=split)).train([Trial.of()]))


# -- features that keep their products -----------------------------------------------------------------------


@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_csr])
def test_a_kept_product_is_never_older_than_its_weights(layout):
    X = normal(6, 4).relu()
    features = KeptProducts.of(X if layout is torch.strided else X.to_sparse_csr())
    weight = normal(2, 4, 3).requires_grad_()
    for change in (0.0, 1.0, -2.0):
        with torch.no_grad():
            weight += change
        for _ in range(2):  # training after training, without an evaluation in between
            product = features @ weight
            assert torch.allclose(product, X @ weight, atol=1e-6)
        (gradient,) = torch.autograd.grad(product.square().sum(), weight)
        assert torch.allclose(gradient, 2 * X.T @ (X @ weight), atol=1e-4)


def test_what_is_not_trained_is_not_kept():
    X = normal(6, 4)
    features, calls = KeptProducts.of(X), []
    product = features.product
    features.product = lambda weight, out: calls.append(out) or product(weight, out)
    weight = normal(2, 4, 3).requires_grad_()
    first, again = features @ weight, features @ weight
    assert len(calls) == 1  # shared while the weights stay as they are
    assert first.data_ptr() == again.data_ptr()
    features.forget()
    assert (features @ weight).data_ptr() == first.data_ptr()  # computed anew, into the same memory
    for place in range(3):
        other = torch.cat((weight[..., :1], normal(2, 4, 1, seed=place)), dim=-1)
        assert torch.allclose(features @ other, X @ other, atol=1e-6)
    assert len(features._kept) == 1


# -- how often is evaluated, and what a step sees -------------------------------------------------------------


@pytest.mark.parametrize("dataset", [lambda: KARATE, sparse_clusters], ids=["dense", "sparse"])
@pytest.mark.parametrize("every", [2, 3, 100])
def test_evaluating_less_often_trains_the_same(dataset, every):
    trials = [Trial.of("cdf", seed=1), Trial.of("dropedge", seed=2, batch_norm=True)]
    always = lab(dataset(), epochs=8).train(trials)
    seldom = lab(dataset(), epochs=8, evaluate_every=every).train(trials)
    looked_at = [epoch for epoch in range(8) if (epoch + 1) % every == 0 or epoch == 7]
    for one, other in zip(always, seldom, strict=True):
        assert np.array_equal(one.train_loss, other.train_loss)
        for name in CURVES[1:]:
            assert np.array_equal(getattr(one, name)[looked_at], getattr(other, name)[looked_at])
            assert np.isfinite(getattr(other, name)).sum() == len(looked_at)
        assert not other.failed
        assert other.best_epoch == looked_at[int(one.val_loss[looked_at].argmin())]


def test_a_backbone_learns_from_mini_batches_too(monkeypatch):
    trial = Trial.of("cdf", seed=3, batch_size=3)
    task = make_task(KARATE, [KARATE.split], lab()._needed([trial]))
    batch, seen = Batch(task, SMALL, [trial], [0], Course(epochs=2)), []
    learn = batch._learn
    monkeypatch.setattr(batch, "_learn", lambda nodes, keeps: seen.append(nodes) or learn(nodes, keeps))
    batch.run_epoch()
    assert [int(nodes.sum()) for nodes in seen] == [3, 3, 2]
    assert torch.equal(torch.stack(seen).sum(0), batch.learning.masks[0])
    assert int(batch.updates) == 3
    together = lab(epochs=5).train([trial, trial.but(seed=4), Trial.of("cdf", seed=3)])
    close(together[:1], lab(epochs=5).train([trial]))
    assert not np.allclose(together[0].train_loss, together[2].train_loss, atol=1e-4)
    whole = lab(epochs=5).train([trial.but(batch_size=100)])[0]
    assert np.array_equal(whole.train_loss, together[2].train_loss)


# -- failures -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_norm", [False, True])
def test_a_trial_that_fails_leaves_the_others_alone(batch_norm):
    trials = [Trial.of("dropedge", seed=seed, batch_norm=batch_norm) for seed in range(3)]
    healthy = lab().train(trials, keep_state=True)

    class Broken(Batch):
        def __init__(self, *args):
            super().__init__(*args)
            with torch.no_grad():
                self.parameters["input.weight"][1, 0, 0] = float("nan")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "Batch", Broken)
        broken = lab().train(trials, keep_state=True)
    assert [outcome.failed for outcome in broken] == [False, True, False]
    assert all(np.isnan(value) for value in broken[1].kept.values())
    for place in (0, 2):
        for name in CURVES:
            assert np.array_equal(getattr(broken[place], name), getattr(healthy[place], name))
        for name, value in healthy[place].state.items():
            assert np.array_equal(broken[place].state[name], value)


def test_a_learning_rate_beyond_reason_fails_one_trial():
    trials = [Trial.of(seed=1), Trial.of(seed=2, learning_rate=1e30), Trial.of(seed=3)]
    outcomes = lab(epochs=4).train(trials)
    assert [outcome.failed for outcome in outcomes] == [False, True, False]
    tame = lab(epochs=4).train([trials[0], trials[1].but(learning_rate=0.01), trials[2]])
    for place in (0, 2):
        for name in CURVES:
            assert np.array_equal(getattr(outcomes[place], name), getattr(tame[place], name))


@pytest.mark.parametrize("selection", ["evaluation", "training"])
@pytest.mark.parametrize("batch_norm", [False, True])
def test_the_kept_state_is_that_of_the_best_epoch(selection, batch_norm):
    trials = [Trial.of("dropedge", seed=seed, batch_norm=batch_norm, learning_rate=0.1) for seed in range(4)]
    outcomes = lab(epochs=25, selection=selection).train(trials, keep_state=True)
    assert len({outcome.best_epoch for outcome in outcomes}) > 1
    network = make_network("gcn", features=34, hidden=SMALL.hidden, classes=4, batch_norm=batch_norm)
    whole = shift_operator(KARATE.graph).to_dense()[None]
    for outcome in outcomes:
        state = {name: torch.from_numpy(value)[None] for name, value in outcome.state.items()}
        logits = network.logits(state, KARATE.features[None], [whole])[0]
        right = (logits.argmax(1) == KARATE.labels).float()
        assert float(right[KARATE.split.val].mean()) == pytest.approx(outcome.kept["val_accuracy"])
        assert float(right[KARATE.split.test].mean()) == pytest.approx(outcome.kept["test_accuracy"])
        loss = nn.functional.cross_entropy(logits[KARATE.split.val], KARATE.labels[KARATE.split.val])
        assert float(loss) == pytest.approx(outcome.kept["val_loss"], abs=1e-5)
    assert lab(epochs=2).train(trials)[0].state is None


# -- the laboratory -------------------------------------------------------------------------------------------


def limited(most, sizes):
    """The trainer of a machine whose memory holds ``most`` trials."""

    def train(task, architecture, trials, course, **settings):
        sizes.append(len(trials))
        if len(trials) > most:
            raise torch.OutOfMemoryError("too many")
        return trainer.train(task, architecture, trials, course, **settings)

    return train


def test_out_of_memory_halves_the_batch_and_keeps_the_order(monkeypatch):
    trials = [Trial.of("dropedge", seed=seed, split=seed % 3) for seed in range(11)]
    expected, sizes = lab(epochs=3).train(trials), []
    monkeypatch.setattr(laboratory, "train", limited(3, sizes))
    close(lab(epochs=3).train(trials), expected)
    assert sizes == [11, 5, 2, 2, 2, 2, 2, 1]


def test_a_training_that_never_fits_is_an_error(monkeypatch):
    monkeypatch.setattr(laboratory, "train", limited(0, []))
    with pytest.raises(TadropedgeError, match=r"not enough memory for one training of karate .* are free; take fewer"):
        lab().train([Trial.of(), Trial.of(seed=1)])


def test_long_lists_are_cut_into_batches_of_the_size_that_fits(monkeypatch):
    sizes = []
    monkeypatch.setattr(laboratory, "train", limited(100, sizes))
    monkeypatch.setattr(Laboratory, "fitting", lambda *_: 2)
    trials = [Trial.of(seed=seed) for seed in range(5)]
    assert [outcome.trial for outcome in lab(epochs=1).train(trials)] == trials
    assert sizes == [2, 2, 1]
    assert lab().train([]) == []


def test_batches_are_smaller_for_larger_tasks_but_never_empty(monkeypatch):
    narrow, wide = lab().fitting(), lab(architecture=Architecture(hidden=128)).fitting()
    assert narrow > wide > 1
    assert lab(signals(), Architecture("gcnn", 1, 8)).fitting() > 1
    monkeypatch.setattr(laboratory, "CPU_BUDGET", 1.0)
    assert lab().fitting() == 1


def test_progress_counts_the_epochs():
    seen = []
    lab(epochs=3, progress=lambda *step: seen.append(step)).train([Trial.of()])
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_kept_share_is_the_mean_probability():
    mine = lab()
    assert mine.kept_share(Trial.of("original", keep_prob=0.1)) == 1
    assert mine.kept_share(Trial.of("dropedge", keep_prob=0.3)) == pytest.approx(0.3)
    for method in ("cdf", "division", "effective-cdf", "inverse-cdf"):
        assert mine.kept_share(Trial.of(method, keep_ratio=0.85)) == pytest.approx(0.85)
        assert mine.kept_share(Trial.of(method, keep_prob=0.3)) > 0.3


def test_scores_are_computed_once_and_only_where_needed(monkeypatch):
    calls, compute = [], laboratory.edge_scores

    def counted(graph, name, **settings):
        calls.append((name, settings.get("q"), settings.get("laplacian")))
        return compute(graph, name, **settings)

    monkeypatch.setattr(laboratory, "edge_scores", counted)
    mine = lab(epochs=1, laplacian="normalized", q=3)
    mine.train([Trial.of("original"), Trial.of("dropedge")])
    assert calls == []
    mine.train([Trial.of("cdf"), Trial.of("cutoff")])
    mine.train([Trial.of("cdf"), Trial.of("effective-cdf")])
    assert calls == [("aggregate", 3, "normalized"), ("effective", None, None)]
    assert torch.equal(lab().scores("aggregate"), aggregate_resistance(KARATE.graph, KARATE.num_classes))


def test_fresh_splits_are_pure_functions_of_their_number():
    mine, other = lab(), lab()
    assert mine.split(0) is KARATE.split
    backwards = [other.split(number) for number in (3, 2, 1)]
    for number, split in zip((1, 2, 3), backwards[::-1], strict=True):
        again = mine.split(number)
        assert again.sizes == KARATE.split.sizes
        assert all(torch.equal(part, same) for (_, part), (_, same) in zip(again.parts(), split.parts(), strict=True))
        assert not torch.equal(again.train, KARATE.split.train)
    assert not torch.equal(mine.split(1).train, mine.split(2).train)


def test_splits_of_trials_are_found_by_their_own_number_by_default():
    trials = [Trial.of(split=1), Trial.of(split=0)]
    splits = [lab().split(number) for number in (0, 1)]
    close(trainer.train(make_task(KARATE, splits), SMALL, trials, Course(epochs=6)), lab().train(trials))


# -- graph level ------------------------------------------------------------------------------------------------


def graph_loop(dataset, trial, architecture, epochs, selection):
    """A plain loop of the order-K GCNN; the noise counts the samples of the pass."""
    split, sizes = dataset.split, {"hidden": architecture.hidden, "classes": dataset.num_classes}
    network = make_network(
        "gcnn", architecture.layers, features=1, **sizes, graph=dataset.graph, **architecture.settings
    )
    parameters = {name: nn.Parameter(value) for name, value in network.initial([trial.seed], CPU).items()}
    optimizer = torch.optim.Adam(parameters.values(), lr=trial.learning_rate, weight_decay=trial.weight_decay)
    prob = torch.full((dataset.graph.num_edges,), trial.keep_prob, dtype=torch.float64)
    whole = shift_operator(dataset.graph).to_dense()[None]
    seen = torch.cat((split.train, split.val)) if selection == "training" else split.train
    rows, entropy = [], nn.functional.cross_entropy
    for epoch in range(epochs):
        noise = Dropout(torch.tensor([trial.dropout]), torch.tensor([trial.seed]), torch.tensor(epoch))
        drawn = shift_operator(dataset.graph, sample_edges(prob, trial.seed, epoch)).to_dense()[None]
        out, count = network.logits(parameters, dataset.features[seen], [drawn], noise)[0], len(split.train)
        loss = entropy(out[:count], dataset.labels[split.train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            on_pass = entropy(out[count:], dataset.labels[split.val]) if selection == "training" else torch.tensor(0.0)
            out = network.logits(parameters, dataset.features, [whole])[0]
            right = (out.argmax(1) == dataset.labels).float()
            val = entropy(out[split.val], dataset.labels[split.val])
            rows.append([*map(float, (loss, val, right[split.val].mean(), right[split.test].mean(), on_pass))])
    return np.array(rows).T


@pytest.mark.parametrize("selection", ["evaluation", "training"])
def test_graph_level_training_is_a_plain_loop(selection):
    architecture = Architecture("gcnn", 1, 4, {"order": 2})
    trial = Trial.of("dropedge", keep_prob=0.7, learning_rate=0.05, seed=3, dropout=0.3)
    expected = graph_loop(signals(), trial, architecture, 12, selection)
    (outcome,) = lab(signals(), architecture, epochs=12, selection=selection).train([trial])
    for name, curve in zip(CURVES, expected, strict=False):
        assert np.allclose(getattr(outcome, name), curve, atol=1e-5), name
    assert outcome.best_epoch == expected[1 if selection == "evaluation" else 4].argmin()


def test_graph_level_training_learns():
    trial = Trial.of("dropedge", keep_prob=0.9, learning_rate=0.05, dropout=0.0)
    (outcome,) = lab(signals(), Architecture("gcnn", 1, 8, {"order": 3}), epochs=60).train([trial])
    assert outcome.train_loss[-1] < 0.5 * outcome.train_loss[0]


def test_samples_of_splits_of_unlike_sizes_are_trained_in_turn():
    dataset, architecture = signals(), Architecture("gcnn", 1, 4, {"order": 2})
    splits = [dataset.split, Split(dataset.split.train[:9], dataset.split.val, dataset.split.test[:7])]
    task = make_task(dataset, splits)
    trials = [Trial.of(split=1), Trial.of(split=0), Trial.of(split=1, seed=1)]
    together = trainer.train(task, architecture, trials, Course(epochs=4))
    close(together, [trainer.train(task, architecture, [trial], Course(epochs=4))[0] for trial in trials])


# -- wrong settings -----------------------------------------------------------------------------------------------


def test_a_backbone_that_does_not_fit_the_level():
    with pytest.raises(TadropedgeError, match="node-level task: backbone 'gcnn' cannot be used, choose from gcn,"):
        lab(architecture=Architecture("gcnn"))
    with pytest.raises(TadropedgeError, match="is a graph-level task: backbone 'gcn' cannot be used, choose from gcnn"):
        lab(signals(), SMALL)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Architecture("gatt"), "gatt"),
        (lambda: Architecture("jknet", 2), "layers of jknet"),
        (lambda: Architecture(hidden=0), "hidden"),
        (lambda: Architecture("gcnn", settings={"order": -1}), "order must be a whole number of at least 0, got -1"),
        (lambda: Architecture(settings={"order": 3}), "gcn has no setting 'order', got 3; its settings are norm"),
        (lambda: Trial.of("dropnode"), "dropnode"),
        (lambda: Trial.of(dropout=1.5), r"dropout must lie in \[0, 1\], got 1.5"),
        (lambda: Trial.of(keep_prob=float("nan")), "keep_prob"),
        (lambda: Trial.of(learning_rate=0), "learning_rate must be a positive number, got 0"),
        (lambda: Trial.of(weight_decay=-1), "weight_decay must be at least 0, got -1"),
        (lambda: lab(selection="test").train([Trial.of()]), "selection"),
        (lambda: lab(epochs=0).train([Trial.of()]), "epochs"),
        (lambda: lab().train([Trial.of(normalization="none")]), "normalization"),
        (lambda: lab().train([Trial.of("cdf", keep_ratio=1.5)]), "keep_ratio"),
    ],
)
def test_wrong_settings_are_named(make, words):
    with pytest.raises(TadropedgeError, match=words):
        make()


def test_sparse_features_stay_sparse():
    assert make_task(sparse_clusters()).features.layout is torch.sparse_csr
    assert make_task(KARATE).features.shape == (34, 34)
    assert make_task(signals()).inputs().shape == (37, 20, 1)


def test_the_precision_of_products_is_a_setting_that_ends_with_the_training():
    before = torch.get_float32_matmul_precision()
    seen = []
    lab = Laboratory(KARATE, Architecture("gcn", 2, hidden=4), epochs=2, precision="high")
    lab.progress = lambda *_: seen.append(torch.get_float32_matmul_precision())
    lab.train([Trial.of()])
    assert seen == ["high", "high"]
    assert torch.get_float32_matmul_precision() == before
    with pytest.raises(TadropedgeError, match="unknown precision 'low'; choose from highest, high"):
        Laboratory(KARATE, precision="low")


# -- checked before any work --------------------------------------------------------------------------------------


@pytest.mark.parametrize("backbone", ["ptdnet", "neuralsparse"])
def test_a_backbone_that_chooses_its_edges_is_not_trained_on_thinned_graphs(backbone):
    mine = lab(architecture=Architecture(backbone))
    for act in (mine.check, mine.train):
        with pytest.raises(
            TadropedgeError, match=f"{backbone} chooses its edges itself and cannot be trained with cdf"
        ):
            act([Trial("original"), Trial("cdf")])


def test_trials_and_architectures_are_values():
    one, other = Trial.of("cdf", batch_norm=True), Trial.of("cdf", batch_norm=True)
    assert (one, hash(one)) == (other, hash(other))
    assert len({one, other, Trial("cdf")}) == 2
    assert hash(Architecture("gcnn", 1, 8, {"order": 3})) == hash(Architecture("gcnn", 1, 8, {"order": 3}))


@pytest.mark.parametrize("settings", [{"gamma": float("nan")}, {"gamma": -1.0}, {"learning_rate": float("inf")}])
def test_settings_without_a_meaning_are_refused_when_they_are_written(settings):
    with pytest.raises(TadropedgeError, match=next(iter(settings))):
        Trial("cdf", **settings)


def test_a_network_that_forgets_the_penalty_is_named(monkeypatch):
    monkeypatch.setattr(GCN, "training", lambda self, state, step: state["output.weight"])
    with pytest.raises(TadropedgeError, match=r"the training pass of GCN must return \(logits, penalty\), got "):
        lab().train([Trial()])


def test_a_network_that_answers_in_another_shape_is_named(monkeypatch):
    monkeypatch.setattr(GCN, "training", lambda self, state, step: (state["output.weight"][:, :5], 0.0))
    with pytest.raises(TadropedgeError, match=r"GCN must return logits of shape \[1, 34, 4\], got \[1, 5, 4\]"):
        lab().train([Trial()])
