"""``fit``: a training is a plain loop, whatever trains beside it and however often it was interrupted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from trainings import CURVES, KARATE, experiment, same, trial

from tadropedge import Dropping, TadropedgeError, consistency_loss, shift_operator
from tadropedge.lab import NETWORKS
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.data.load import load
from tadropedge.lab.networks.layers import inputs
from tadropedge.lab.networks.network import Network, Start
from tadropedge.lab.networks.noise import Noise
from tadropedge.lab.networks.view import View
from tadropedge.lab.training.adam import Adam
from tadropedge.lab.training.batch import Batch
from tadropedge.lab.training.callbacks import Callback
from tadropedge.lab.training.fit import fit
from tadropedge.lab.training.trainer import Trainer
from tadropedge.lab.training.trial import Trial
from tadropedge.operators.product import dense_product
from tadropedge.pyg import DropEdge


def wide():
    """A graph of more nodes than are multiplied as dense matrices, with sparse features and edge weights of one."""
    data = load("clusters", clusters=3, nodes=50)
    return replace(data, features=data.features.relu().to_sparse_csr())


# -- a plain loop ------------------------------------------------------------------------------------------


def gcn_loop(data, trial, epochs, hidden=8):
    """Two layers with dense matrices of the core's own operators, torch's cross entropy and torch's Adam."""
    graph, split, dropping = data.graph, data.split(trial.split), trial.candidate.dropping
    plan = Dropping.parse(dropping).plan(graph, features=data.features)
    start = Start([trial.seed])
    shapes = [(data.num_features, hidden), (hidden,), (hidden, data.num_classes), (data.num_classes,)]
    parameters = [nn.Parameter(start.uniform(shape, shape[-1] ** -0.5)[0].detach()) for shape in shapes]
    first, b, second, c = parameters
    optimizer = torch.optim.Adam(parameters, lr=trial.learning_rate, weight_decay=trial.weight_decay)
    features = data.features.to_dense() if data.features.layout is torch.sparse_csr else data.features

    def operator(kept, factor):
        if kept is not None and factor is not None:
            return shift_operator(graph, kept, unbiased=plan.prob).to_dense()
        present = factor if kept is None else kept
        return shift_operator(graph, None if present is None else present.float()).to_dense()

    def logits(S, noise=None):
        h = (S @ (features @ first) + b).relu()
        h = h if noise is None else noise.drop(h[None], 0)[0]
        return S @ (h @ second) + c

    rows = []
    for epoch in range(epochs):
        noise = Noise(torch.tensor([trial.dropout]), torch.tensor([trial.seed]), torch.tensor(epoch))
        last = "finish" in trial.candidate.ways and epoch >= epochs - epochs // 5
        out = logits(operator(*plan.draw(trial.seed, epoch, training=not last)), noise)
        loss = nn.functional.cross_entropy(out[split.train], data.labels[split.train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            out = logits(operator(*plan.draw(trial.seed, epoch, training=False)))
            right = (out.argmax(1) == data.labels).float()
            val = nn.functional.cross_entropy(out[split.val], data.labels[split.val])
            rows.append([x.item() for x in (loss, val, right[split.val].mean(), right[split.test].mean())])
    return dict(zip(CURVES, np.array(rows).T, strict=True))


@pytest.mark.parametrize(
    "name",
    [
        "original",
        "dropedge@0.5",
        "degree-proportional@0.5:weighted",
        "jaccard-proportional@0.5:pruned",
        "jaccard-proportional@0.5:expected",
        "effective-proportional@0.7:connected",
        "inverse-cdf@0.6:exact",
        "effective-cdf@0.8:unbiased",
        "dropedge@0.7:connected:exact:finish",
        "dropedge@0:finish",
        "cdf@0.6:expected:finish",
    ],
)
@pytest.mark.parametrize("data", [KARATE, wide()], ids=["dense", "sparse"])
def test_a_training_is_a_plain_loop_for_every_use_and_option(name, data):
    one = trial(name, seed=3, split=1, learning_rate=0.05)
    [outcome] = fit(Batch(experiment(data), [one]))
    for curve, expected in gcn_loop(data, one, 10).items():
        assert np.allclose(outcome.curves[curve], expected, atol=1e-5), curve


NETS = {
    "gcn": {"self_weight": True, "batch_norm": True},
    "jknet": {"layers": 3},
    "incepgcn": {"layers": 4},
    "resgcn": {"layers": 4},
    "gcnii": {"layers": 4},
    "appnp": {"layers": 3},
    "gat": {"attention_dropout": 0.3},
    "sage": {},
    "mlp": {},
}


def view_loop(told, trial, epochs):
    """The same for any network: one model, one draw after the other, torch's loss and torch's Adam."""
    data, split, ways = told.data, told.data.split(trial.split), trial.candidate.ways
    plan = Dropping.parse(trial.candidate.dropping).plan(data.graph)
    network, x = told.make_network([trial]), inputs(data.features)
    optimizer = torch.optim.Adam(network.parameters(), lr=trial.learning_rate, weight_decay=trial.weight_decay)
    settings, losses, scores = trial.settings, [], []
    draws = settings.get("draws", 1)
    for epoch in range(epochs):
        outs = []
        for draw in range(draws):
            rate, seed = torch.tensor([trial.dropout]), torch.tensor([trial.seed])
            view = View(data.graph, *plan.draw(seed, epoch, draw), noise=Noise(rate, seed, torch.tensor(epoch)))
            outs.append(network(x, view)[0])
        loss = sum(nn.functional.cross_entropy(out[split.train], data.labels[split.train]) for out in outs) / draws
        losses.append(loss.item())
        if "consistent" in ways:
            weight = settings["consistency_weight"] * min(1, (epoch + 1) / (0.2 * epochs))
            told = {name: settings[name] for name in ("temperature", "balance")}
            loss = loss + weight * consistency_loss(torch.stack(outs), **told)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            out = network(x, View(data.graph, *plan.draw(trial.seed, epoch, training=False)))[0]
            scores.append((out.argmax(1) == data.labels)[split.test].float().mean().item())
    return losses, scores


@pytest.mark.parametrize("network", NETS)
def test_a_training_is_a_plain_loop_for_every_network(network):
    one = trial("original" if network == "mlp" else "dropedge@0.5", seed=5, learning_rate=0.02)
    told = experiment(network=network, **NETS[network])
    [outcome] = fit(Batch(told, [one]))
    losses, scores = view_loop(told, one, 10)
    assert np.allclose(outcome.curves["train_loss"], losses, atol=1e-5)
    assert np.allclose(outcome.curves["test_score"], scores, atol=1e-5)


def test_consistency_is_the_mean_over_draws_and_a_loss_that_rises():
    settings = {"draws": 3, "consistency_weight": 2.0, "temperature": 0.4, "balance": 0.1}
    one = trial("dropedge@0.5:consistent", seed=5, dropout=0.0, settings=settings)
    [outcome] = fit(Batch(experiment(), [one]))
    losses, scores = view_loop(experiment(), one, 10)
    assert np.allclose(outcome.curves["train_loss"], losses, atol=1e-5)
    assert np.allclose(outcome.curves["test_score"], scores, atol=1e-5)


def test_draws_of_a_step_have_different_edges_and_noise():
    one = trial("dropedge@0.5:consistent", settings={"draws": 3})
    views = next(Batch(experiment(), [one]).steps(0)).views
    assert len({tuple(view.kept.flatten().tolist()) for view in views}) == 3
    assert len({tuple(view.drop(torch.ones(1, 34, 4), 0).flatten().tolist()) for view in views}) == 3
    plain = next(Batch(experiment(), [trial("dropedge@0.5")]).steps(0)).views
    assert torch.equal(plain[0].kept, views[0].kept)


def test_sharpen_is_one_draw():
    batch = Batch(experiment(), [trial("sharpen", settings={"balance": 0.5})])
    assert len(next(batch.steps(0)).views) == 1
    assert not same(fit(batch)[0], fit(Batch(experiment(), [trial("original")]))[0])


def test_a_share_of_the_epochs_is_a_shorter_training():
    some = trial("dropedge@0.5:epochs@0.5", seed=3)
    [half] = fit(Batch(experiment(epochs=10), [some]))
    [short] = fit(Batch(experiment(epochs=5), [trial("dropedge@0.5", seed=3)]))
    assert same(half, short)
    together = Trainer(experiment(epochs=10)).train([trial("dropedge@0.5", seed=3), some])
    assert [len(outcome.curves["val_loss"]) for outcome in together] == [10, 5]
    finished = fit(Batch(experiment(epochs=10), [trial("dropedge@0.1:finish:epochs@0.5", seed=3)]))[0]
    whole = fit(Batch(experiment(epochs=5), [trial("dropedge@0.1:finish", seed=3)]))[0]
    assert same(finished, whole)
    for name in ("original:epochs@0", "original:epochs@2", "original:epochs@x", "original:epochs@0.5:epochs@0.2"):
        with pytest.raises(TadropedgeError, match=r"epochs|twice"):
            Candidate.parse(name)


def test_adam_is_torchs_adam_with_settings_for_each_trial():
    rates, decays = [0.1, 0.001, 0.01], [0.0, 0.5, 5e-4]
    values = [torch.randn((3, 4, 2)), torch.randn((3, 2))]
    others = [[nn.Parameter(value[t].clone()) for value in values] for t in range(3)]
    ours = Adam(values, torch.tensor(rates), torch.tensor(decays))
    theirs = [torch.optim.Adam(mine, lr=r, weight_decay=d) for mine, r, d in zip(others, rates, decays, strict=True)]
    for _ in range(20):
        slopes = [torch.randn(value.shape) for value in values]
        ours.step(slopes)
        for t, optimizer in enumerate(theirs):
            for value, slope in zip(others[t], slopes, strict=True):
                value.grad = slope[t]
            optimizer.step()
            for value, mine in zip(values, others[t], strict=True):
                assert torch.allclose(value[t], mine, rtol=1e-6, atol=1e-6)


class Penalised(Network):
    """A linear model with a penalty, whose bias has no gradient."""

    def __init__(self, sizes, settings, start):
        super().__init__(sizes, settings, start)
        self.weight = start.glorot(sizes.num_features, sizes.num_classes)
        self.unused = start.constant(1.0, 2)

    def forward(self, x, view):
        return x @ self.weight, 10 * self.weight.square().sum(dim=(1, 2))


def test_a_network_may_return_a_penalty(monkeypatch):
    monkeypatch.setitem(NETWORKS, "penalised", Penalised)
    told = experiment(network="penalised", epochs=60)
    [outcome] = fit(Batch(told, [trial("original", learning_rate=0.05, weight_decay=0.0)]), keep_state=True)
    start = Start([0]).glorot(34, 4)
    assert np.abs(outcome.state["weight"]).sum() < 0.3 * start.abs().sum().item()
    assert np.array_equal(outcome.state["unused"], np.ones(2))
    assert outcome.curves["train_loss"][0] < 3  # the cross entropy alone


# -- the masks of the core ----------------------------------------------------------------------------------


class Watched(NETWORKS["gcn"]):
    """A GCN that remembers which edges it learned on."""

    seen: list

    def forward(self, x, view):
        if view.training:
            self.seen.append(view.kept)
        return super().forward(x, view)


@pytest.mark.parametrize("name", ["dropedge@0.5", "degree-proportional@0.3", "effective-cdf@0.8:connected:exact"])
def test_fit_trains_with_the_masks_of_the_plan_and_of_the_pyg_module(name, monkeypatch):
    monkeypatch.setattr(Watched, "seen", [], raising=False)
    monkeypatch.setitem(NETWORKS, "watched", Watched)
    data, seeds = KARATE, (0, 7, 2**63)
    fit(Batch(experiment(network="watched", epochs=3), [trial(name, seed=seed) for seed in seeds]))
    plan = Dropping.parse(name).plan(data.graph)
    arcs = torch.cat((data.graph.pairs, data.graph.pairs.flip(0)), dim=1)
    for place, seed in enumerate(seeds):
        drop = DropEdge(name, seed=seed)
        for epoch in range(3):
            kept = Watched.seen[epoch][place]
            assert torch.equal(kept, plan.sample(seed, epoch))
            thinned, _ = drop(arcs)
            assert set(map(tuple, thinned.T.tolist())) == {
                pair for a, b in data.graph.pairs[:, kept].T.tolist() for pair in ((a, b), (b, a))
            }


def test_a_budget_that_changes_with_the_epoch_is_drawn_anew():
    shares = [0.2, 0.9, 0.5]
    dropping = Dropping(rule="uniform", keep_ratio=lambda epoch: shares[epoch % 3])
    batch = Batch(experiment(), [Trial(candidate=Candidate(dropping=dropping), seed=4)])
    plan = dropping.plan(KARATE.graph)
    for epoch in range(3):
        batch.epoch.fill_(epoch)
        assert torch.equal(next(batch.steps(epoch)).views[0].kept[0], plan.sample(4, epoch))


# -- trials do not see each other ---------------------------------------------------------------------------


@pytest.mark.parametrize("network", NETS)
def test_a_trial_has_the_same_bits_alone_and_beside_others(network):
    names = ["original"] * 4 if network == "mlp" else ["dropedge@0.5", "dropedge@0.2", "cdf@0.7", "degree-cdf@0.7"]
    trials = [
        trial(name, seed=seed, split=seed % 2, learning_rate=0.01 * (1 + seed), dropout=0.2 * seed)
        for seed, name in enumerate(names)
    ]
    told = experiment(network=network, hidden=7, epochs=4, **NETS[network])  # 7: memory of trials begins anywhere
    together = fit(Batch(told, trials), keep_state=True)
    for few in ([0], [3, 1], [1, 2, 3]):
        apart = fit(Batch(told, [trials[place] for place in few]), keep_state=True)
        assert all(same(one, together[place]) for one, place in zip(apart, few, strict=True))


@pytest.mark.parametrize("shapes", [((3, 34, 7), (3, 7, 5)), ((34, 7), (3, 7, 5)), ((3, 200, 9), (3, 9, 130))])
def test_products_of_a_batch_are_torchs_and_every_trial_has_its_own_bits(shapes):
    a, b = (torch.randn(shape, requires_grad=True) for shape in shapes)
    found = dense_product(a, b)
    assert torch.allclose(found, a @ b, atol=1e-4)
    for probe in (torch.ones(()).expand(found.shape), torch.randn(found.shape)):
        mine, theirs = (torch.autograd.grad((out * probe).sum(), (a, b)) for out in (dense_product(a, b), a @ b))
        assert all(torch.allclose(one, other, rtol=1e-4, atol=1e-4) for one, other in zip(mine, theirs, strict=True))
        (slope,) = torch.autograd.grad(dense_product(a, b).sum(), b)  # of a gradient whose entries are one number
        assert torch.allclose(slope, a.sum(-2)[..., None].expand(b.shape), rtol=1e-4, atol=1e-4)
    for t in range(3):
        assert torch.equal(dense_product(a if a.dim() == 2 else a[t : t + 1], b[t : t + 1])[0], found[t])


@pytest.mark.parametrize("name", ["dropedge@0.5:consistent", "effective-proportional@0.7:connected:finish", "sharpen"])
def test_so_it_has_with_every_way_of_training(name):
    trials = [trial(name, seed=seed, settings={"balance": 0.1 * seed} if seed else {}) for seed in range(3)]
    if "consistent" not in name and name != "sharpen":
        trials = [replace(one, settings={}) for one in trials]
    told = experiment(load("clusters", clusters=3, nodes=50), hidden=7, epochs=5)
    together = fit(Batch(told, trials), keep_state=True)
    assert all(
        same(fit(Batch(told, [one]), keep_state=True)[0], many) for one, many in zip(trials, together, strict=True)
    )


def test_a_trial_that_diverges_fails_alone():
    told = experiment(epochs=30, keep="measure")
    calm = trial("dropedge@0.5", seed=1)
    wild = replace(calm, learning_rate=1e38, weight_decay=1e3)
    fine, failed = fit(Batch(told, [calm, wild]))
    assert failed.failed
    assert np.isnan(failed.val_score)
    assert np.isnan(failed.test_score)
    assert failed.val_loss == float("inf")
    assert not fine.failed
    assert same(fine, fit(Batch(told, [calm]))[0])


def test_the_kept_epoch_is_the_best_by_the_measure_or_by_the_loss():
    one = trial("dropedge@0.5", learning_rate=0.1)
    by_loss = fit(Batch(experiment(epochs=60), [one]), keep_state=True)[0]
    assert by_loss.best_epoch == np.argmin(by_loss.curves["val_loss"])
    assert by_loss.val_loss == np.min(by_loss.curves["val_loss"])
    by_measure = fit(Batch(experiment(epochs=60, keep="measure"), [one]), keep_state=True)[0]
    scores = by_measure.curves["val_score"]
    assert by_measure.best_epoch == np.nanargmax(scores)
    looked = [epoch for epoch in range(60) if np.isfinite(scores[epoch])]
    assert looked == [0, 1, 2, 3, 4, 5, *range(9, 60, 5)]
    assert np.array_equal(by_measure.curves["train_loss"], by_loss.curves["train_loss"])
    told = experiment()
    network = told.make_network([one])
    network.load_trial({name: torch.as_tensor(value) for name, value in by_measure.state.items()})
    right = (network(inputs(KARATE.features), View(KARATE.graph))[0].argmax(1) == KARATE.labels)[KARATE.split(0).test]
    assert float(right.float().mean()) == pytest.approx(by_measure.test_score)


def test_training_learns():
    trials = [trial("dropedge@0.7", seed=seed, dropout=0.2, learning_rate=0.05) for seed in range(3)]
    for outcome in fit(Batch(experiment(epochs=60), trials)):
        assert outcome.curves["train_loss"][-10:].mean() < 0.5 * outcome.curves["train_loss"][0]
        for name, count in (("val_score", 10), ("test_score", 16)):
            assert np.allclose(outcome.curves[name] * count, np.round(outcome.curves[name] * count), atol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
@pytest.mark.parametrize("name", ["dropedge@0.5:finish", "degree-cdf@0.7:connected", "dropedge@0.5:consistent"])
def test_a_recorded_epoch_does_what_an_epoch_does(name):
    class Steps(Callback):
        def step(self, run, gradients):
            assert not run.recordable

    told = replace(experiment(epochs=40, keep="measure", rungs=(20,)), device="cuda")
    trials = [trial(name, seed=seed) for seed in range(5)]
    recorded = fit(Batch(told, trials), keep_state=True)
    plain = fit(Batch(told, trials), [Steps()], keep_state=True)
    assert all(same(one, other) for one, other in zip(recorded, plain, strict=True))


# -- your own module ----------------------------------------------------------------------------------------


class Own(nn.Module):
    def __init__(self, num_features, num_classes, hidden=8, dropout=0.5):
        super().__init__()
        self.first, self.second = nn.Linear(num_features, hidden), nn.Linear(hidden, num_classes)
        self.norm, self.drop = nn.BatchNorm1d(hidden), nn.Dropout(dropout)

    def forward(self, x, edge_index, edge_weight=None):
        messages = x[edge_index[0]] if edge_weight is None else x[edge_index[0]] * edge_weight[:, None]
        mean = torch.zeros_like(x).index_add_(0, edge_index[1], messages) / 5
        return self.second(self.drop(self.norm(self.first(x + mean)).relu()))


@pytest.mark.parametrize("name", ["original", "dropedge@0.5", "degree-proportional@0.5:weighted"])
def test_an_own_module_trains_as_a_plain_loop_in_torch(name):
    told, one = experiment(model=Own), trial(name, seed=2, dropout=0.0)
    [outcome] = fit(Batch(told, [one]), keep_state=True)
    assert same(outcome, fit(Batch(told, [one]), keep_state=True)[0])
    [module], split = told.make_network([one]).children(), KARATE.split(0)
    plan = Dropping.parse(one.candidate.dropping).plan(KARATE.graph)
    optimizer = torch.optim.Adam(module.parameters(), lr=one.learning_rate, weight_decay=one.weight_decay)
    pairs = KARATE.graph.pairs
    losses = []
    for epoch in range(10):
        kept, factor = plan.draw(2, epoch)
        kept = torch.ones(78, dtype=torch.bool) if kept is None else kept
        arcs = torch.cat((pairs[:, kept], pairs[:, kept].flip(0)), dim=1)
        weight = None if factor is None else factor[kept].float().repeat(2)
        loss = nn.functional.cross_entropy(
            module(KARATE.features, arcs, weight)[split.train], KARATE.labels[split.train]
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert np.allclose(outcome.curves["train_loss"], losses, atol=1e-5)
    assert (
        np.allclose(outcome.state["norm.running_mean"], module.norm.running_mean, atol=1e-4) or outcome.best_epoch < 9
    )


# -- callbacks see it ---------------------------------------------------------------------------------------


def test_callbacks_are_called_in_order_and_may_end_a_training():
    calls = []

    class Spy(Callback):
        def start(self, run):
            calls.append("start")

        def step(self, run, gradients):
            calls.append("step")
            assert [one.shape for one in gradients] == [one.shape for one in run.parameters]

        def epoch(self, run):
            calls.append(run.epoch)
            assert set(run.metrics()) == {0}
            return run.epoch == 2

        def end(self, run):
            calls.append("end")

    [outcome] = fit(Batch(experiment(), [trial("dropedge@0.5")]), [Spy()])
    assert calls == ["start", "step", 1, "step", 2, "end"]
    assert np.isfinite(outcome.curves["train_loss"]).sum() == 2
    assert not outcome.failed
