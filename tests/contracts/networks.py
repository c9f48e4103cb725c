"""What every network of ``NETWORKS`` must do, trained by the one batch class."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tadropedge.data.source_localization import load_source_localization
from tadropedge.data.synthetic import load_clusters
from tadropedge.errors import TadropedgeError
from tadropedge.graph import Graph
from tadropedge.registry import NETWORKS
from tadropedge.search.space import Space, method_space, trial
from tadropedge.sparse import hush_beta_warning
from tadropedge.training.config import METRICS, Architecture, Trial
from tadropedge.training.laboratory import Laboratory, make_task
from tadropedge.training.model_file import load_model, save_model

CPU = torch.device("cpu")


@cache
def nodes():
    """More nodes than the dense path takes, and sparse features."""
    hush_beta_warning()
    dataset = load_clusters(clusters=3, nodes=50)
    return replace(dataset, features=dataset.features.relu().to_sparse_csr())


@cache
def signals():
    return load_source_localization(nodes=20, communities=2, times=5, sizes=(12, 10, 15))


class Largest(TorchDispatchMode):
    """The largest number of entries of any tensor that is made."""

    def __init__(self):
        super().__init__()
        self.size = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for one in out if isinstance(out, tuple | list) else [out]:
            if isinstance(one, torch.Tensor) and one.layout is torch.strided:
                self.size = max(self.size, one.numel())
        return out


@pytest.mark.usefixtures("one_thread")
class NetworkContract:
    """Subclass it with the ``name`` of the network; ``layers``, and settings that make it small enough for a test.

    ``other`` holds another value for each of its settings: together with the defaults they are all tried. ``smooth``
    holds settings with which the evaluation pass has no jumps.
    """

    name = "gcn"
    layers = 2
    small: dict = {}
    other: dict = {}
    smooth: dict = {}
    epochs_to_learn = 60

    @property
    def network(self):
        return NETWORKS[self.name]

    @property
    def dataset(self):
        return nodes() if self.network.level == "node" else signals()

    @property
    def architecture(self):
        return Architecture(self.name, self.layers, 8)

    def lab(self, dataset=None, epochs=5, **settings):
        return Laboratory(dataset or self.dataset, self.architecture, epochs, **settings)

    def trial(self, method="original", **settings):
        return Trial.of(method, **{**self.small, **settings})

    def trials(self):
        """Trials that differ in everything that one batch, or several, may hold."""
        dropping = "cdf" if self.network.drops else "original"
        varied = [self.trial(seed=4, **{key: value}) for key, value in self.other.items()]
        plain = [
            self.trial(seed=1),
            self.trial(dropping, seed=2, keep_prob=0.5),
            self.trial(seed=3, split=2, dropout=0.1),
        ]
        return plain + varied

    # -- shapes and starts ------------------------------------------------------------------------------------

    def make(self, trials=3, dataset=None):
        task = make_task(dataset or self.dataset)
        return task, task.network(self.architecture, [self.trial(seed=seed) for seed in range(trials)])

    def test_parameters_and_logits_have_a_trials_axis(self):
        task, network = self.make()
        parameters, running = network.initial([5, 6, 7], CPU), network.running(3, CPU)
        sizes, told = network.problem.sizes, network.problem.settings[0]
        assert {key: value.shape[1:] for key, value in parameters.items()} == network.shapes(sizes, told)
        assert {key: value.shape[1:] for key, value in running.items()} == {
            key: shape for key, (shape, _) in network.buffers(sizes, told).items()
        }
        logits = network.evaluation(parameters | running, task.inputs(), torch.tensor(0))
        assert logits.shape == (3, len(self.dataset.labels), self.dataset.num_classes)

    def test_a_start_is_a_pure_function_of_its_seed(self):
        network = self.make()[1]
        stacked, alone, again = (network.initial(seeds, CPU) for seeds in ([5, 6], [6], [6]))
        for key, value in stacked.items():
            assert torch.equal(value[1], alone[key][0])
            assert torch.equal(again[key], alone[key])
        assert any(not torch.equal(value[0], value[1]) for value in stacked.values())

    # -- trials do not see each other -------------------------------------------------------------------------

    def test_a_trial_does_not_depend_on_its_batch(self):
        mine, trials = self.lab(per_layer=not self.network.opaque), self.trials()
        together = mine.train(trials)
        assert [outcome.trial for outcome in together] == trials
        assert not any(outcome.failed for outcome in together)
        close(together, [mine.train([one])[0] for one in trials])
        close(together, mine.train(trials[::-1])[::-1])

    def test_alone_and_in_a_batch_a_trial_is_the_same_to_the_last_bit(self):
        mine, trials = self.lab(epochs=8), [self.trial(seed=seed) for seed in range(4)]
        same(mine.train(trials), [mine.train([one])[0] for one in trials])

    def optional(self):
        """Trials with every option that the network can have, alone and together."""
        options = ["connected", "nested", "exact", "connected:nested", "nested:exact", "connected:nested:exact"]
        options += ["unbiased", "unbiased:nested"] if self.network.weighs else []
        options += ["expected", "exact:expected"] if self.network.softens else []
        return [
            self.trial(f"{dropping}:{option}", seed=seed, keep_ratio=ratio, keep_last=last)
            for option in options
            for seed, (dropping, ratio, last) in enumerate([("dropedge", 0.8, None), ("cdf", 0.9, 0.7)])
        ]

    def test_alone_and_in_a_batch_options_are_the_same_to_the_last_bit(self):
        if not self.network.drops:
            pytest.skip("it chooses its edges itself")
        mine, trials = self.lab(epochs=3), self.optional()
        twice = mine.train([*trials, *(one.but(seed=one.seed + 7) for one in trials)])
        assert not any(outcome.failed for outcome in twice)
        same(twice[: len(trials)], [mine.train([one])[0] for one in trials])

    def test_options_change_the_training_pass_and_not_the_evaluation(self):
        if not self.network.drops:
            pytest.skip("it chooses its edges itself")
        plain, *others = self.lab(epochs=1).train([self.trial("cdf", keep_ratio=0.8), *self.optional()])
        assert all(one.train_loss[0] != plain.train_loss[0] for one in others)
        task, network = self.make(trials=1)
        state = network.initial([5], CPU) | network.running(1, CPU)
        chosen = task.network(self.architecture, [self.trial(self.optional()[0].method)])
        logits = [one.evaluation(state, task.inputs(), torch.tensor(0)) for one in (network, chosen)]
        assert torch.equal(*logits)

    def test_a_network_that_sees_no_weights_refuses_to_be_unbiased(self):
        if self.network.weighs or not self.network.drops:
            return
        with pytest.raises(TadropedgeError, match=f"{self.name} sees which edges exist but not their weights"):
            self.lab().check([self.trial("cdf:unbiased")])
        with pytest.raises(TadropedgeError, match=f"cannot be divided by their keep .*: '{self.name}.cdf:unbiased'"):
            Trial(f"{self.name}+cdf:unbiased")

    def test_expected_changes_the_evaluation_and_not_the_training_pass(self):
        if not self.network.drops:
            pytest.skip("it chooses its edges itself")
        if not self.network.softens:
            with pytest.raises(TadropedgeError, match=f"{self.name} cannot be evaluated on edges with weights, which"):
                self.lab().check([self.trial("cdf:expected")])
            return
        plain, soft = self.lab(epochs=3).train([self.trial(f"cdf{end}", keep_ratio=0.6) for end in ("", ":expected")])
        assert np.array_equal(plain.train_loss, soft.train_loss)
        assert not np.allclose(plain.val_loss, soft.val_loss, atol=1e-6)

    def test_the_same_trials_again_are_the_same_to_the_last_bit(self):
        same(self.lab().train(self.trials()), self.lab().train(self.trials()))

    def test_every_device_trains_alike(self, device):
        if device.type == "cpu":
            pytest.skip("no second device to compare the CPU with")
        trials = self.trials() + (self.optional() if self.network.drops else [])
        close(self.lab(self.dataset.to(device)).train(trials), self.lab().train(trials), atol=1e-3)

    def test_a_trial_that_fails_leaves_the_others_alone(self):
        trials = [self.trial(learning_rate=1e30 if place == 1 else 0.01) for place in range(3)]
        broken, alone = self.lab().train(trials), self.lab().train(trials[:1])[0]
        assert [outcome.failed for outcome in broken] == [False, True, False]
        assert all(np.isnan(value) for value in broken[1].kept.values())
        close([broken[0], broken[2]], [alone, alone])

    def test_every_setting_and_the_seed_matter(self):
        first, *others = self.lab().train(
            [self.trial(), self.trial(seed=9), *(self.trial(**{key: value}) for key, value in self.other.items())]
        )
        assert set(self.other) == set(self.network.settings)
        for other in others:
            assert not np.allclose(first.train_loss, other.train_loss, atol=1e-6), other.trial

    # -- passes -----------------------------------------------------------------------------------------------

    def test_names_of_nodes_do_not_matter(self):
        dataset = self.dataset
        order = torch.from_numpy(np.random.default_rng(0).permutation(dataset.graph.num_nodes))  # new place -> old
        place = torch.empty_like(order).scatter_(0, order, torch.arange(len(order)))
        graph = Graph.from_edge_index(place[dataset.graph.pairs], len(order))
        features = dataset.features.to_dense()
        moved = features[order] if self.network.level == "node" else features[:, order]
        other = replace(make_task(dataset), graph=graph, features=moved)
        logits = []
        for task in (make_task(dataset), other):
            network = task.network(self.architecture, [self.trial()])
            state = network.initial([3], CPU) | network.running(1, CPU)
            state = state if task is not other else self.renamed(state, order)
            logits.append(network.evaluation(state, task.inputs(), torch.tensor(0)))
        expected = logits[0][:, order] if self.network.level == "node" else logits[0]
        assert torch.allclose(logits[1], expected, atol=1e-4)

    def renamed(self, state, order):
        """The state of the same network on renamed nodes: only read-outs know nodes by their place."""
        return state

    def test_gradients_are_slopes(self):
        """Along a random direction: what the evaluation pass changes by is the integral of its slope."""
        task = make_task(self.dataset)
        network = task.network(self.architecture, [self.trial(**self.smooth)])
        x, running, start = task.inputs(), network.running(1, CPU), network.initial([2], CPU)
        generator = torch.Generator().manual_seed(1)
        ways = {key: torch.randn(value.shape, generator=generator) for key, value in start.items()}
        probe = torch.randn((1, len(self.dataset.labels), self.dataset.num_classes), generator=generator)

        def value_and_slope(step):
            state = {key: (start[key] + step * ways[key]).requires_grad_() for key in start}
            value = (network.evaluation(state | running, x, torch.tensor(0)).double() * probe).sum()
            gradients = torch.autograd.grad(value, list(state.values()))
            slope = sum(float((g.double() * way).sum()) for g, way in zip(gradients, ways.values(), strict=True))
            return float(value.detach()), slope

        length, points = 0.05, 40
        slopes = [value_and_slope(length * (place + 0.5) / points)[1] for place in range(points)]
        change = value_and_slope(length)[0] - value_and_slope(0.0)[0]
        size = length * np.abs(slopes).mean()
        assert size > 1e-3
        assert length * np.mean(slopes) == pytest.approx(change, abs=0.02 * size + 1e-4)

    def test_evaluating_less_often_trains_the_same(self, device):
        trials, dataset = self.trials()[:2], self.dataset.to(device)
        always, seldom = (self.lab(dataset, epochs=11, evaluate_every=every).train(trials) for every in (1, 3))
        for one, other in zip(always, seldom, strict=True):
            assert np.array_equal(one.train_loss, other.train_loss)
            assert np.array_equal(one.val_loss[[2, 5, 8, 10]], other.val_loss[[2, 5, 8, 10]])
            assert np.isfinite(other.val_loss).sum() == 4

    def test_it_learns_from_the_whole_training_set_and_from_mini_batches(self):
        rates = {"learning_rate": 0.02, "dropout": 0.1}
        trials = [self.trial(seed=1, **rates), self.trial(seed=1, batch_size=4, **rates)]
        for outcome in self.lab(epochs=self.epochs_to_learn).train(trials):
            assert outcome.train_loss[-10:].mean() < 0.8 * outcome.train_loss[0]
            assert np.array_equal(outcome.best_epoch, outcome.val_loss.argmin())

    def test_there_is_no_dense_matrix_of_nodes_by_nodes(self):
        if self.network.level == "graph":
            pytest.skip("graph-level tasks are small graphs")
        dataset = load_clusters(clusters=3, nodes=300, inside=0.01, between=0.001)
        with Largest() as largest:
            self.lab(dataset, epochs=1).train([self.trial()])
        assert largest.size < 0.5 * dataset.graph.num_nodes**2

    # -- files, searches and bad input --------------------------------------------------------------------------

    def test_a_saved_model_predicts_what_was_kept(self, tmp_path):
        dataset = self.dataset
        [outcome] = self.lab(epochs=8).train([self.trial()], keep_state=True)
        sizes = (dataset.num_features, dataset.num_classes)
        save_model(tmp_path, outcome, self.architecture, "x", *sizes, num_nodes=dataset.graph.num_nodes)
        model, test = load_model(tmp_path), dataset.split.test
        assert model.trial == outcome.trial
        right = (model.predict(dataset)[test] == dataset.labels[test]).float().mean()
        assert float(right) == pytest.approx(outcome.kept["test_accuracy"], abs=1e-6)

    def test_its_space_is_made_of_its_own_settings(self):
        space = method_space("original", backbone=self.name)
        assert Space.of(json.loads(json.dumps(space.table()))) == space
        drawn = [trial(space, 0, i, "original") for i in range(20)]
        assert all(set(self.architecture.settings_of(one)) == set(self.network.settings) for one in drawn)
        assert all(len({one.settings[key] for one in drawn}) > 1 for key in drawn[0].settings)

    def test_wrong_settings_are_named(self):
        with pytest.raises(TadropedgeError, match=f"{self.name} has no setting 'unheard', got 1; its settings"):
            self.lab().train([self.trial(unheard=1)])
        for key, setting in self.network.settings.items():
            for wrong in (object(), "no such name", -1 if isinstance(setting.default, int | float) else 3):
                with pytest.raises(TadropedgeError, match=key):
                    self.lab().train([self.trial(**{key: wrong})])

    def test_a_task_of_the_other_level_is_refused(self):
        other = signals() if self.network.level == "node" else nodes()
        with pytest.raises(TadropedgeError, match=f"-level task: backbone '{self.name}' cannot be used"):
            self.lab(other)

    def test_too_few_layers_are_refused(self):
        if self.network.least_layers > 1:
            with pytest.raises(TadropedgeError, match=f"layers of {self.name} must be a whole number of at least"):
                Architecture(self.name, self.network.least_layers - 1)


def close(ours, others, atol=1e-5):
    for mine, other in zip(ours, others, strict=True):
        assert mine.trial == other.trial
        for name in METRICS:
            assert np.allclose(getattr(mine, name), getattr(other, name), atol=atol), (mine.trial, name)


def same(ours, others):
    for mine, other in zip(ours, others, strict=True):
        for name in METRICS:
            assert np.array_equal(getattr(mine, name), getattr(other, name)), (mine.trial, name)
