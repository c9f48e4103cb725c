"""What every network of ``tadropedge.lab.NETWORKS`` must do, yours included: T models that do not see each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from tadropedge import TadropedgeError
from tadropedge.graph import Graph
from tadropedge.lab.networks.layers import Inputs, inputs
from tadropedge.lab.networks.network import Network, Sizes, Start, Value
from tadropedge.lab.networks.noise import Noise
from tadropedge.lab.networks.view import DENSE_NODES, View
from tadropedge.lab.registry import NETWORKS
from tadropedge.lab.training.neighbours import BlockView, Neighbours
from tadropedge.lab.training.trial import Trial
from tadropedge.testing.graphs import clusters, cycle, union

FEATURES, CLASSES = 12, 3
RATES = ("learning_rate", "weight_decay", "dropout")


@cache
def graph(nodes: int = 60) -> Graph:
    """A block model beside a cycle, and as many isolated nodes as are asked for."""
    joined = union(clusters([12, 12, 12], 0.5, 0.05), cycle(20))
    return Graph.from_edge_index(joined.pairs, nodes)


def random(*shape: int, seed: int = 0) -> Tensor:
    """Normal numbers, the same in every run."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def features(nodes: int = 60) -> Tensor:
    """Features of which half are 0; the rows are the same for any number of nodes."""
    return torch.cat((random(60, FEATURES), random(nodes - 60, FEATURES, seed=1))).relu()


def masks(trials: int) -> Tensor:
    """Which edges each trial keeps, ``[T, M]``: half of them."""
    return random(trials, graph().num_edges, seed=2) < 0


class NetworkContract:
    """Subclass it with the ``network``, a name or a class, and ``other``: another value for each of its settings.

    ``layers`` and ``settings`` are those that are tried. Your own network inherits its tests so::

        class TestDiffusion(NetworkContract):
            network = Diffusion
            other = {"share": 0.1}
    """

    network: str | type[Network] = "gcn"
    layers: int = 2
    settings: Mapping[str, Value] = {}
    other: Mapping[str, Value] = {}

    # -- what is tried ------------------------------------------------------------------------------------

    @property
    def kind(self) -> type[Network]:
        """The class."""
        return NETWORKS[self.network] if isinstance(self.network, str) else self.network

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.network if isinstance(self.network, str) else self.network.__name__

    def completed(self, **told: Value) -> dict[str, Value]:
        """All settings of a trial."""
        return self.kind.completed(self.name, {**self.settings, **told})

    def varied(self, trials: int) -> list[dict[str, Value]]:
        """Settings of T trials that one batch can hold."""
        own = [{}, *({name: value} for name, value in self.other.items() if name not in self.kind.shared)]
        return [self.completed(**own[place % len(own)]) for place in range(trials)]

    def made(self, settings: Sequence[Mapping[str, Value]], seeds: Sequence[int]) -> Network:
        """The network of trials with these settings and seeds."""
        sizes = Sizes(
            num_features=FEATURES, num_classes=CLASSES, layers=self.layers, hidden=13
        )  # blocks of trials do not begin at multiples of 64 bytes
        return self.kind(sizes, settings, Start(seeds))

    def view(self, seeds: Sequence[int], kept: Tensor | None, nodes: int = 60, **given: Any) -> View:
        """That of a training step, with another rate of dropout for each seed."""
        keys = torch.tensor(seeds)
        noise = Noise(0.1 + 0.1 * (keys % 7), keys, torch.tensor(3))
        training = torch.ones((len(seeds), nodes))
        return View(graph(nodes), kept, **{"epoch": torch.tensor(3), "noise": noise, "nodes": training, **given})

    def logits(self, network: Network, view: View, x: Inputs | None = None) -> Tensor:
        """Logits, without what is added to the loss."""
        found = network(inputs(features(view.graph.num_nodes)) if x is None else x, view)
        logits: Tensor = found[0] if isinstance(found, tuple) else found
        return logits

    def learned(self, network: Network, view: View) -> list[Tensor]:
        """Logits and the gradients of some loss, each ``[T, …]``."""
        found = network(inputs(features(view.graph.num_nodes)), view)
        logits, penalty = found if isinstance(found, tuple) else (found, torch.zeros(len(found)))
        assert (logits.dtype, penalty.shape) == (torch.float32, (network.trials,))
        loss = (logits * random(*logits.shape[1:], seed=3)).sum() + penalty.sum()
        return [logits.detach(), *torch.autograd.grad(loss, list(network.parameters()))]

    # -- trials -------------------------------------------------------------------------------------------

    def test_everything_has_an_axis_of_trials(self) -> None:
        network = self.made(self.varied(3), [5, 6, 7])
        assert network.trials == 3
        assert all(value.shape[0] == 3 for value in (*network.parameters(), *network.buffers()))
        assert any(not torch.equal(value[0], value[1]) for value in network.parameters())
        assert self.logits(network, View(graph())).shape == (3, 60, CLASSES)
        assert self.logits(network, self.view([5, 6, 7], masks(3))).shape == (3, 60, CLASSES)

    @pytest.mark.parametrize("nodes", [60, DENSE_NODES + 7], ids=["dense", "sparse"])
    def test_alone_beside_three_and_beside_many_a_trial_is_the_same_to_the_last_bit(self, nodes: int) -> None:
        torch.manual_seed(1)  # which decides nothing
        settings, kept, seeds = self.varied(32), masks(32), list(range(32))
        whole = self.learned(self.made(settings, seeds), self.view(seeds, kept, nodes))
        for places in ([1], [2], [0, 1, 2, 3]):
            network = self.made([settings[place] for place in places], places)
            for some, all_ in zip(self.learned(network, self.view(places, kept[places], nodes)), whole, strict=True):
                assert torch.equal(some, all_[places])

    def test_trials_that_are_taken_go_on_as_they_were(self) -> None:
        network, kept = self.made(self.varied(4), [0, 1, 2, 3]), masks(4)
        before = self.learned(network, self.view([0, 1, 2, 3], kept))
        evaluated = self.logits(network, View(graph()))
        network.take([3, 1])
        assert network.trials == 2
        assert torch.equal(self.logits(network, View(graph())), evaluated[[3, 1]])
        for after, all_ in zip(self.learned(network, self.view([3, 1], kept[[3, 1]])), before, strict=True):
            assert torch.equal(after, all_[[3, 1]])

    def test_a_trial_that_diverged_leaves_the_others_alone(self) -> None:
        network, other = (self.made(self.varied(3), [0, 1, 2]) for _ in range(2))
        with torch.no_grad():
            next(network.parameters())[1] = torch.nan
        for broken, sound in zip(
            *(self.learned(one, self.view([0, 1, 2], masks(3))) for one in (network, other)), strict=True
        ):
            assert torch.equal(broken[[0, 2]], sound[[0, 2]])

    def test_the_state_of_a_trial_is_the_trial(self) -> None:
        network, other = self.made(self.varied(3), [0, 1, 2]), self.made(self.varied(3), [7, 8, 9])
        self.learned(network, self.view([0, 1, 2], masks(3)))  # statistics move
        expected = self.logits(network, View(graph()))
        other.load_state_dict(network.state_dict())
        assert torch.equal(self.logits(other, View(graph())), expected)
        alone = self.made(self.varied(2)[1:], [4])
        alone.load_trial({name: value[1] for name, value in network.stacked().items()})
        assert torch.equal(self.logits(alone, View(graph())), expected[1:2])

    # -- passes -------------------------------------------------------------------------------------------

    def test_gradients_reach_every_parameter(self) -> None:
        network = self.made(self.varied(2), [0, 1])
        found = self.learned(network, self.view([0, 1], masks(2)))[1:]
        for (name, _), slope in zip(network.named_parameters(), found, strict=True):
            assert bool(slope.isfinite().all()), name
            assert bool((slope != 0).flatten(1).any(dim=1).all()), name

    def test_evaluation_has_no_noise_and_draws_nothing(self) -> None:
        network, state = self.made(self.varied(2), [0, 1]), torch.get_rng_state()
        one, other = (self.logits(network, View(graph())) for _ in range(2))
        assert torch.equal(one, other)
        steps = [self.logits(self.made(self.varied(2), [0, 1]), self.view([0, 1], None)) for _ in range(2)]
        assert torch.equal(*steps)
        assert not torch.allclose(steps[0], one)
        assert torch.equal(state, torch.get_rng_state())

    def test_a_mask_that_keeps_all_and_weights_of_one_are_the_whole_graph(self) -> None:
        network, ones = self.made(self.varied(2), [0, 1]), torch.ones(2, graph().num_edges)
        given: list[tuple[Tensor | None, Tensor | None]] = [(ones.bool(), None)]
        given += [(None, ones), (ones.bool(), ones)] if "weights" in self.kind.supports else []
        expected = self.logits(network, View(graph()))
        for kept, factor in given:
            assert torch.allclose(self.logits(network, View(graph(), kept, factor)), expected, atol=1e-5)

    def test_dropping_changes_what_looks_at_the_edge_and_nothing_else(self) -> None:
        network = self.made(self.varied(1), [0])
        if "dropping" not in self.kind.supports and network.hops is None:
            pytest.skip("it chooses its edges itself")
        keep = torch.ones(1, graph().num_edges, dtype=torch.bool)
        keep[0, -1] = False  # of the cycle
        whole, less = (self.logits(network, View(graph(), kept))[0] for kept in (None, keep))
        changed = (whole != less).any(dim=-1).nonzero()[:, 0].tolist()
        if network.hops is None:
            assert changed
            return
        reach = max(network.hops, default=-1) + 1
        ends = graph().pairs[:, -1].tolist()
        distance = {node: min(min(abs(node - end), 20 - abs(node - end)) for end in ends) for node in range(36, 56)}
        assert bool(changed) == ("dropping" in self.kind.supports)
        assert all(distance.get(node, 99) <= reach for node in changed)

    def test_a_weight_of_nothing_is_a_dropped_edge(self) -> None:
        if "weights" not in self.kind.supports:
            pytest.skip("it takes no edge weights")
        network, kept = self.made(self.varied(2), [0, 1]), masks(2)
        dropped, nothing, half = (
            self.logits(network, View(graph(), *edges))
            for edges in ((kept, None), (None, kept.float()), (kept, kept / 2))
        )
        assert torch.allclose(dropped, nothing, atol=1e-5)
        assert not torch.allclose(dropped, half, atol=1e-4)

    def test_names_of_nodes_do_not_matter(self) -> None:
        order = torch.randperm(60, generator=torch.Generator().manual_seed(4))  # new place -> old
        moved = Graph.from_edge_index(order.argsort()[graph().pairs], 60)
        network = self.made(self.varied(2), [0, 1])
        renamed = self.logits(network, View(moved), inputs(features()[order]))
        assert torch.allclose(renamed, self.logits(network, View(graph()))[:, order], atol=1e-4)

    def test_sparse_features_and_operators_are_dense_ones(self) -> None:
        network, nodes, kept = self.made(self.varied(2), [0, 1]), DENSE_NODES + 7, masks(2)
        sparse = inputs(features().to_sparse_csr())
        for mask in (None, kept):
            expected = self.logits(network, View(graph(), mask))
            assert torch.allclose(self.logits(network, View(graph(), mask), sparse), expected, atol=1e-5)
            assert torch.allclose(self.logits(network, View(graph(nodes), mask))[:, :60], expected, atol=1e-5)

    def test_a_mini_batch_of_all_neighbours_is_the_whole_graph(self) -> None:
        network = self.made(self.varied(1), [0])
        if network.hops is None:
            pytest.skip("it looks at the whole graph")
        given: list[tuple[Tensor | None, dict[str, Any]]] = [(None, {}), (masks(1), {})]
        if "weights" in self.kind.supports:
            weights = random(1, graph().num_edges, seed=5).sigmoid().double()
            given += [(None, {"factor": weights}), (masks(1), {"factor": 1 / weights})]
        for kept, factor in given:
            whole = self.view([0], kept, **factor)
            near = Neighbours(
                whole,
                hops=network.hops,
                fanout=[-1] * (max(network.hops, default=-1) + 1),
                seed=0,
                dropped=self.kind.sees_dropped and kept is not None and bool(factor),
            )
            seeds = torch.tensor([40, 3, 59])
            nodes, blocks = near.around(seeds)
            assert whole.noise is not None
            view = BlockView(whole, nodes, blocks, whole.noise)
            found = self.logits(network, view, inputs(features()[nodes]))
            assert torch.allclose(found, self.logits(network, whole)[:, seeds], atol=1e-5)

    # -- settings -----------------------------------------------------------------------------------------

    def test_every_setting_matters(self) -> None:
        assert set(self.other) == set(self.kind.settings)
        plain = self.made([self.completed()], [0])
        expected = [self.logits(plain, self.view([0], masks(1))), self.logits(plain, View(graph()))]
        for name, value in self.other.items():
            network = self.made([self.completed(**{name: value})], [0])
            found = [self.logits(network, self.view([0], masks(1))), self.logits(network, View(graph()))]
            assert not all(torch.allclose(*pair, atol=1e-6) for pair in zip(found, expected, strict=True)), name

    def test_settings_are_checked_and_the_space_is_made_of_them(self) -> None:
        with pytest.raises(TadropedgeError, match="no setting 'colour'"):
            self.completed(colour="red")
        assert set(self.kind.space) <= {*RATES, *self.kind.settings}
        for name, entry in self.kind.space.items():
            for value in entry if isinstance(entry, list) else []:
                if name in RATES:
                    Trial(**{name: value})
                else:
                    self.completed(**{name: value})
