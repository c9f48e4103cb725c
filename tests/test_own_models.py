"""A user's own ``nn.Module``: the contract of every network, a hand-written loop, and what is refused."""

import json
import random
import re
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from contracts.networks import NetworkContract, close, nodes
from safetensors.torch import load_file
from torch import nn
from torch.nn.functional import cross_entropy
from torch_geometric.nn import GATConv, GCNConv

import tadropedge as tde
from tadropedge.cli import app
from tadropedge.data import load_karate
from tadropedge.errors import TadropedgeError
from tadropedge.graph import Graph
from tadropedge.nn.own import OwnNetwork, default_sizes, own_network, random_numbers
from tadropedge.registry import NETWORKS
from tadropedge.search.space import method_space
from tadropedge.training.config import Architecture, Trial, plug_ins
from tadropedge.training.laboratory import Laboratory, laboratory_for
from tadropedge.training.model_file import load_model, save_model

CPU = torch.device("cpu")


class OwnGCN(nn.Module):
    """Two layers of PyG, with batch norm and dropout."""

    def __init__(self, num_features, num_classes, hidden=16, dropout=0.5):
        super().__init__()
        # A bias before the norm has no slope but rounding errors, which Adam makes large.
        self.first, self.second = GCNConv(num_features, hidden, bias=False), GCNConv(hidden, num_classes)
        self.norm, self.drop = nn.BatchNorm1d(hidden), nn.Dropout(dropout)

    def forward(self, x, edge_index, edge_weight=None):
        h = self.drop(self.norm(self.first(x, edge_index, edge_weight)).relu())
        return self.second(h, edge_index, edge_weight)


class Plain(nn.Module):
    """No dropout, no norm, and the arcs and weights that it is given are remembered."""

    def __init__(self, num_features, num_classes, conv=GCNConv):
        super().__init__()
        self.first, self.second = conv(num_features, 8), conv(8, num_classes)
        self.seen = []

    def forward(self, x, edge_index, edge_weight=None):
        self.seen.append((self.training, edge_index, edge_weight))
        return self.second(self.first(x, edge_index, edge_weight).relu(), edge_index, edge_weight)


class Attention(nn.Module):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.layer = GATConv(num_features, num_classes)

    def forward(self, x, edge_index):
        return self.layer(x, edge_index)


@pytest.fixture
def register():
    """Registers factories, and takes them away again."""
    names = []

    def added(factory, told=None):
        names.append(own_network(factory, told))
        return names[-1]

    yield added
    for name in names:
        NETWORKS.pop(name, None)


@pytest.fixture
def registered(register):
    return register(OwnGCN)


def lab(name, dataset=None, epochs=5, **settings):
    return laboratory_for(dataset or nodes(), name, epochs=epochs, **settings)


@pytest.mark.usefixtures("registered")
@pytest.mark.filterwarnings("ignore:with unbiased:UserWarning")
class TestOwnModel(NetworkContract):
    name = "owngcn"

    def optional(self):
        """All but nested: its layers are not seen."""
        options = ("connected", "exact", "connected:exact", "unbiased")
        return [self.trial(f"{rule}:{option}", keep_ratio=0.8) for option in options for rule in ("dropedge", "cdf")]

    def test_every_device_trains_alike(self, device):
        """Without noise: each device has its own random numbers inside a module."""
        trials = [one.but(dropout=0.0) for one in self.trials() + self.optional()]
        close(self.lab(self.dataset.to(device)).train(trials), self.lab().train(trials), atol=1e-3)

    def test_evaluating_less_often_trains_the_same(self, device):
        """Up to the order of sums, which atomic additions on a GPU leave open."""
        always, seldom = (
            self.lab(self.dataset.to(device), epochs=11, evaluate_every=every).train(self.trials()[:2])
            for every in (1, 3)
        )
        for one, other in zip(always, seldom, strict=True):
            assert np.allclose(one.train_loss, other.train_loss, atol=0 if device.type == "cpu" else 1e-3, rtol=0)
            assert np.isfinite(other.val_loss).sum() == 4

    def test_the_noise_of_a_device_is_its_own_and_the_same_again(self, device):
        twice = [self.lab(self.dataset.to(device)).train(self.trials()) for _ in range(2)]
        close(*twice, atol=1e-6 if device.type == "cpu" else 1e-3)


# -- trained as others are ----------------------------------------------------------------------------------------


def by_hand(dataset, module, trial, epochs):
    """A plain loop of PyTorch: Adam with L2 decay, no dropping, the whole graph."""
    x, arcs = dataset.features.to_dense(), torch.cat((dataset.graph.pairs, dataset.graph.pairs.flip(0)), dim=1)
    optimizer = torch.optim.Adam(module.parameters(), lr=trial.learning_rate, weight_decay=trial.weight_decay)
    split, labels, losses = dataset.split, dataset.labels, []
    for _ in range(epochs):
        module.train()
        loss = cross_entropy(module(x, arcs)[split.train], labels[split.train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        module.eval()
        with torch.no_grad():
            losses.append((loss.item(), cross_entropy(module(x, arcs)[split.val], labels[split.val]).item()))
    return np.array(losses).T


@pytest.mark.parametrize("factory", [Plain, partial(OwnGCN, dropout=0.0)], ids=["plain", "batch norm"])
def test_a_training_equals_a_plain_loop(register, factory):
    dataset, trial, epochs = nodes(), Trial(seed=7, dropout=0.0), 30
    name = register(factory)
    laboratory = lab(name, dataset, epochs)
    [outcome] = laboratory.train([trial])
    told = {"hidden": laboratory.architecture.hidden} if "hidden" in NETWORKS[name].takes else {}
    with random_numbers(7, CPU):
        module = factory(dataset.num_features, dataset.num_classes, **told)
    train_loss, val_loss = by_hand(dataset, module, trial, epochs)
    assert np.allclose(outcome.train_loss, train_loss, atol=1e-5)
    assert np.allclose(outcome.val_loss, val_loss, atol=1e-5)
    assert outcome.train_loss[-1] < 0.8 * outcome.train_loss[0]


def test_the_arcs_are_those_that_every_network_keeps(register):
    made = []

    def factory(num_features, num_classes):
        made.append(Plain(num_features, num_classes))
        return made[-1]

    dataset, trial = nodes(), Trial("cdf", keep_prob=0.5, seed=3)
    laboratory = lab(register(factory), dataset, epochs=2)
    laboratory.train([trial])
    seen = made[-1].seen
    assert [training for training, *_ in seen] == [True, False, True, False]
    prob = tde.keep_probabilities(laboratory.scores("aggregate"), keep_prob=0.5, strategy="cdf")
    for epoch in (0, 1):
        pairs = dataset.graph.pairs[:, tde.sample_edges(prob, seed=3, epoch=epoch)]
        arcs = seen[2 * epoch][1]
        both = {(int(u), int(v)) for u, v in torch.cat((pairs, pairs.flip(0)), dim=1).T}
        assert arcs.shape[1] == len(both)
        assert [tuple(arc) for arc in arcs.T.tolist()] == sorted(both)
        assert seen[2 * epoch + 1][1].shape[1] == 2 * dataset.graph.num_edges
    assert all(weight is None for *_, weight in seen)


def test_weights_of_the_graph_and_of_unbiased_dropping(register):
    made = []

    def factory(num_features, num_classes):
        made.append(Plain(num_features, num_classes, conv=partial(GCNConv, normalize=False)))
        return made[-1]

    dataset = nodes()
    weight = torch.linspace(1, 2, dataset.graph.num_edges, dtype=torch.float64)
    weighted = Graph.from_edge_index(dataset.graph.pairs, dataset.graph.num_nodes, weight)
    laboratory = lab(register(factory), replace(dataset, graph=weighted), epochs=1)
    laboratory.train([Trial("dropedge:unbiased", keep_prob=0.25, seed=1)])
    (_, kept, over), (_, _, whole) = made[-1].seen
    table = torch.zeros((dataset.graph.num_nodes,) * 2)
    table[tuple(weighted.pairs)] = weight.float()
    table += table.T.clone()
    assert torch.allclose(over, table[tuple(kept)] / 0.25)
    assert torch.allclose(whole.sum(), 2 * weight.float().sum())
    assert kept.shape[1] < weighted.num_edges


def test_normalising_layers_are_told_of_with_unbiased(register):
    with pytest.warns(UserWarning, match="first, second in the module of the model 'Plain' normalise by the degrees"):
        lab(register(Plain), epochs=1).train([Trial("dropedge:unbiased", keep_prob=0.5)])


def test_the_users_random_numbers_are_not_touched(registered):
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    lab(registered, epochs=2).train([Trial(seed=1)])
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    assert random.getstate() == before[2]


def test_dropout_is_that_of_the_trial_and_differs_from_step_to_step(register):
    drawn = []

    class Noise(OwnGCN):
        def forward(self, x, edge_index):
            if self.training:
                numbers = torch.rand(()), random.random(), np.random.rand()  # noqa: NPY002
                drawn.append((self.drop.p, *map(float, numbers)))
            return super().forward(x, edge_index)

    name = register(Noise)
    for _ in range(2):
        lab(name, epochs=3).train([Trial(seed=1, dropout=0.25), Trial(seed=2)])
    rehearsal, first, second, again = drawn[0], drawn[1:4], drawn[4:7], drawn[8:11]
    assert rehearsal[0] == first[0][0] == 0.25
    assert second[0][0] == 0.5
    assert first == again
    assert len({number for step in first + second for number in step[1:]}) == 18


def test_every_training_is_written_when_it_is_finished(registered):
    assert lab(registered).fitting() == 1


# -- its state ----------------------------------------------------------------------------------------------------


class Odd(nn.Module):
    """Frozen and unused parameters, a number without axes, buffers that are changed and replaced."""

    def __init__(self, num_features, num_classes):
        super().__init__()
        self.layer = nn.Linear(num_features, num_classes)
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.frozen = nn.Parameter(torch.full((3,), 5.0), requires_grad=False)
        self.unused = nn.Parameter(torch.ones(2))
        self.register_buffer("steps", torch.tensor(0))
        self.register_buffer("replaced", torch.zeros(1))
        self.register_buffer("own", torch.ones(1), persistent=False)

    def forward(self, x, edge_index):
        if self.training:
            self.steps += 1
            self.replaced = self.replaced + 1
        return self.scale * self.layer(x)


def test_state_is_that_of_the_module_and_can_be_loaded_into_it(register, tmp_path):
    dataset, trial = nodes(), Trial(seed=2, weight_decay=0.0)
    name = register(Odd)
    laboratory = lab(name, dataset, epochs=6, evaluate_every=6)
    [outcome] = laboratory.train([trial], keep_state=True)
    state = outcome.state
    assert set(state) == {"layer.weight", "layer.bias", "scale", "frozen", "unused", "steps", "replaced"}
    assert (float(state["steps"]), state["replaced"].tolist()) == (6, [6])
    assert state["frozen"].tolist() == [5, 5, 5]
    assert state["unused"].tolist() == [1, 1]
    assert float(state["scale"]) != 2
    save_model(tmp_path, outcome, laboratory.architecture, "x", dataset.num_features, dataset.num_classes)
    module = Odd(dataset.num_features, dataset.num_classes)
    module.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert module.steps.dtype == torch.int64
    logits = module.eval()(dataset.features.to_dense(), dataset.graph.pairs)
    right = (logits.argmax(1) == dataset.labels)[dataset.split.test].float().mean()
    assert float(right) == pytest.approx(outcome.kept["test_accuracy"], abs=1e-6)


def test_lazy_layers_get_their_shapes(register):
    def lazy(num_features, num_classes):
        return GCNConv(-1, num_classes)

    network = NETWORKS[register(lazy)]
    sizes = Laboratory(nodes(), Architecture("gcn")).architecture.sizes({}, 5, 7, 3)
    assert network.shapes(sizes, {}) == {"bias": (3,), "lin.weight": (3, 7)}


def test_shared_weights_are_trained_as_one(register):
    class Tied(nn.Module):
        def __init__(self, num_features, num_classes):
            super().__init__()
            self.first = nn.Linear(num_features, num_classes)
            self.again = self.first

        def forward(self, x, edge_index):
            return self.first(x) + self.again(x)

    [outcome] = lab(register(Tied), epochs=2).train([Trial()], keep_state=True)
    assert set(outcome.state) == {"first.weight", "first.bias"}


# -- names, sizes, spaces, code -----------------------------------------------------------------------------------


def test_names_fit_the_grammar_and_clash_with_nothing(register):
    def gcn(num_features, num_classes):
        return Plain(num_features, num_classes)

    assert register(OwnGCN) == "owngcn"
    assert register(gcn) == "own-gcn"
    assert register(lambda f, c: Plain(f, c)) == "own-lambda"
    assert register(partial(OwnGCN, hidden=3)) == "owngcn"
    for name in ("owngcn", "own-gcn", "own-lambda"):
        assert issubclass(NETWORKS[name], OwnNetwork)


def test_what_a_factory_takes_decides_its_space_and_its_sizes(register):
    def deep(num_features, num_classes, layers=4, hidden=32):
        return Plain(num_features, num_classes)

    taking, other, sized = register(OwnGCN), register(Plain), register(deep)
    assert list(method_space("cdf", backbone=taking).parameters) == [
        "learning_rate", "weight_decay", "dropout", "keep_prob",
    ]  # fmt: skip
    assert "dropout" not in method_space("cdf", backbone=other).parameters
    assert default_sizes(NETWORKS[taking], 5, 2) == (2, 16)  # counted; its own default
    assert default_sizes(NETWORKS[other], 5, 2) == (2, 128)
    assert default_sizes(NETWORKS[sized], 5, 2) == (4, 32)
    assert lab(sized, layers=3).architecture == Architecture(sized, 3, 32)
    with pytest.raises(TadropedgeError, match=re.escape("layers=3 cannot be used: the model 'Plain' takes no layers")):
        lab(other, layers=3)


def test_the_code_of_a_model_is_part_of_the_settings(register):
    def version(power):
        class Net(nn.Module):
            def __init__(self, num_features, num_classes):
                super().__init__()
                self.layer = nn.Linear(num_features, num_classes)

            def forward(self, x, edge_index):
                return self.layer(x) ** power

        return Net

    found = []
    for power in (2, 3, 2):
        name = register(version(power), told=f"told {len(found)}")
        found.append(lab(name).settings[f"code.{name}"])
        lab(name, epochs=1).train([Trial()])
        assert plug_ins(name) == {f"code.{name}": found[-1]}  # also after modules were made
    assert found[0] == found[2] != found[1]


# -- bad models ---------------------------------------------------------------------------------------------------


def model(forward=lambda self, x, edge_index: self.layer(x), **members):
    """A class of one linear layer with another forward pass."""

    def init(self, num_features, num_classes):
        nn.Module.__init__(self)
        self.layer = nn.Linear(num_features, num_classes)

    return type("Bad", (nn.Module,), {"__init__": init, "forward": forward, **members})


def raising(self, x, edge_index):
    raise KeyError("my own")


WRONG = {
    "another width": (model(lambda self, x, edge_index: x), "must return logits [N, C] = [150, 3]"),
    "a mean": (model(lambda self, x, edge_index: self.layer(x).mean(0)), "must return logits [N, C] = [150, 3]"),
    "a tuple": (model(lambda self, x, edge_index: (self.layer(x), 1)), "must return logits [N, C] = [150, 3]"),
    "NaN": (model(lambda self, x, edge_index: self.layer(x) / 0 * 0), "must give finite logits"),
    "NaN slopes": (model(lambda self, x, edge_index: self.layer(x) * self.layer.bias.sub(self.layer.bias).sqrt()),
                   "must give finite gradients"),
    "no slopes": (model(lambda self, x, edge_index: self.layer(x).detach()), "do not depend on its parameters"),
    "its own error": (model(raising), "raised KeyError: 'my own'; it must be a function forward(x [N, F], edge_index"),
    "no edges": (model(lambda self, x: self.layer(x)), "raised TypeError"),
    "one argument more": (model(lambda self, x, edge_index, edge_attr: self.layer(x)), "missing 1 required"),
    "no module": (lambda f, c: 3, "must return an nn.Module with forward(x [N, F], edge_index [2, A], edge_weight"),
    "an error of the factory": (lambda f, c: 1 / 0, "raised ZeroDivisionError"),
    "no parameters": (lambda f, c: nn.Identity(), "has no parameters to train"),
    "double precision": (lambda f, c: Attention(f, c).double(), "must be float32, got torch.float64"),
    "a cache": (lambda f, c: GCNConv(f, c, cached=True), "has cached=True: it would remember the edges"),
}  # fmt: skip


@pytest.mark.parametrize("title", WRONG)
def test_a_wrong_model_is_refused_before_the_work(register, title):
    factory, words = WRONG[title]
    name = register(factory, told="mine:make")
    with pytest.raises(TadropedgeError) as refused:
        lab(name).check([Trial()])
    assert words in str(refused.value)
    assert "the model 'mine:make'" in str(refused.value)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        (3, "the model 'int' must be a function factory(num_features, num_classes)"),
        (nn.Linear(2, 2), "got a module: pass what makes it, such as Linear"),
        (lambda f: None, "it cannot be called so: too many positional arguments"),
        (lambda f, hidden, c: None, "it cannot be called so: multiple values for argument 'hidden'"),
    ],
)
def test_what_is_no_factory_is_refused(factory, words):
    with pytest.raises(TadropedgeError, match=re.escape(words)):
        own_network(factory)


def test_options_that_a_model_cannot_have(register):
    name, weighted = register(Attention), register(OwnGCN)
    with pytest.raises(TadropedgeError, match="attention sees which edges exist but not their weights"):
        lab(name).check([Trial("dropedge:unbiased")])
    for method, settings in (("dropedge:nested", {}), ("dropedge", {"per_layer": True})):
        with pytest.raises(TadropedgeError, match="the layers inside the model 'owngcn' are not seen"):
            lab(weighted, **settings).check([Trial(method)])


def test_weights_that_a_model_does_not_take_are_told_of(register):
    dataset = nodes()
    weight = torch.full((dataset.graph.num_edges,), 2.0)
    weighted = Graph.from_edge_index(dataset.graph.pairs, dataset.graph.num_nodes, weight)
    with pytest.warns(UserWarning, match="takes no edge_weight: the weights of the graph are ignored"):
        lab(register(Attention), replace(dataset, graph=weighted)).check([Trial()])


# -- the command line ---------------------------------------------------------------------------------------------

SOURCE = """
from torch import nn

class Two(nn.Module):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.layer = nn.Linear(num_features, num_classes)

    def forward(self, x, edge_index):
        return self.layer(x)

def wide(num_features, num_classes):
    return Two(num_features, num_classes + 1)
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """A module in the current folder, forgotten afterwards."""
    before, path = set(NETWORKS), list(sys.path)
    (tmp_path / "models_of_mine.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("models_of_mine", None)
    sys.path[:] = path
    for name in set(NETWORKS) - before:
        del NETWORKS[name]


def test_train_saves_a_model_that_loads(own_module, capsys):
    app(["train", "karate", "--model", "models_of_mine:Two", "--method", "cdf", "--epochs", "3", "--out", "model",
         "--json"], standalone_mode=False)  # fmt: skip
    told, saved = json.loads(capsys.readouterr().out), load_model("model")
    assert saved.architecture == Architecture("two", 1, 128)
    dataset = load_karate()
    right = (saved.predict(dataset) == dataset.labels)[dataset.split.test].float().mean()
    assert float(right) == pytest.approx(told["test_accuracy"], abs=1e-6)
    del NETWORKS["two"]
    with pytest.raises(TadropedgeError, match=re.escape("or call tadropedge.nn.own.own_network(factory)")):
        load_model("model")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("models_of_mine:wide", "the module of the model 'models_of_mine:wide' must return logits [N, C] = [34, 4]"),
        ("models_of_mine:none", "cannot import the model 'models_of_mine:none' (AttributeError"),
        ("no_such_module:make", "cannot import the model 'no_such_module:make' (ModuleNotFoundError"),
        ("models_of_mine", "--model must be MODULE:FACTORY, such as my_models:make_gcn, got 'models_of_mine'"),
        ("models_of_mine:SOURCE.x", "cannot import the model"),
        ("math:pi", "the model 'math:pi' must be a function factory(num_features, num_classes)"),
        ("models_of_mine:Two --backbone gcn", "--model and --backbone exclude each other"),
        ("models_of_mine:Two --hidden 3", "--hidden 3 cannot be used: the model 'models_of_mine:Two' takes no hidden"),
    ],
)
def test_wrong_models_on_the_command_line(own_module, given, words):
    with pytest.raises(TadropedgeError, match=re.escape(words)):
        app(["train", "karate", "--epochs", "1", "--model", *given.split()], standalone_mode=False)
