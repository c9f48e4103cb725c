"""Every network that is shipped, in the contract that is shipped."""

import pytest
import torch

from tadropedge.lab.networks.network import Network, Setting
from tadropedge.testing.networks import NetworkContract

TUNED = {"batch_norm": True, "layer_norm": True, "feature_dropout": 0.5}


class TestGCN(NetworkContract):
    network = "gcn"
    other = {"normalization": "random-walk", "self_weight": True, **TUNED, "pre_linear": True}


class TestGCNOfOneLayer(TestGCN):
    layers = 1

    @pytest.mark.skip(reason="the last layer drops nothing")
    def test_evaluation_has_no_noise_and_draws_nothing(self):
        pass

    @pytest.mark.skip(reason="layer norm leaves the last layer alone")
    def test_every_setting_matters(self):
        pass


class TestSelfWeight(TestGCN):
    settings = {"self_weight": True, "feature_dropout": 0.4}
    other = {**TestGCN.other, "self_weight": False}


class TestBatchNorm(TestGCN):
    layers = 3
    settings = {"batch_norm": True, "self_weight": True}
    other = {**TestGCN.other, "self_weight": False, "batch_norm": False}

    @pytest.mark.skip(reason="batch norm undoes biases")
    def test_gradients_reach_every_parameter(self):
        pass

    @pytest.mark.skip(reason="statistics are of fewer rows")
    def test_a_mini_batch_of_all_neighbours_is_the_whole_graph(self):
        pass


class TestTuned(TestGCN):
    layers = 3
    settings = {"layer_norm": True, "pre_linear": True, "self_weight": True}
    other = {**TestGCN.other, "layer_norm": False, "pre_linear": False, "self_weight": False}


class TestJKNet(TestGCN):
    network = "jknet"
    layers = 4


class TestIncepGCN(TestGCN):
    network = "incepgcn"
    layers = 5


class TestResGCN(TestGCN):
    network = "resgcn"
    layers = 4


class TestSAGE(NetworkContract):
    network = "sage"
    layers = 3
    other = {**TUNED, "pre_linear": True}


class TestMLP(NetworkContract):
    network = "mlp"
    other = TUNED


class TestGCNII(NetworkContract):
    network = "gcnii"
    layers = 4
    other = {"normalization": "random-walk", "alpha": 0.4, "theta": 1.5, "feature_dropout": 0.5}


class TestAPPNP(NetworkContract):
    network = "appnp"
    layers = 4
    other = {"normalization": "random-walk", "alpha": 0.4, "feature_dropout": 0.5}


class TestGAT(NetworkContract):
    network = "gat"
    layers = 3
    settings = {"heads": 4}
    other = {"heads": 2, "negative_slope": 0.5, "attention_dropout": 0.5, "residual": True, **TUNED, "pre_linear": True}


class TestTunedGAT(TestGAT):
    settings = {"heads": 4, "residual": True, "layer_norm": True, "pre_linear": True}
    other = {**TestGAT.other, "residual": False, "layer_norm": False, "pre_linear": False}


class Diffusion(Network):
    """A user's own, which multiplies as anybody would."""

    settings = {"share": Setting(0.5, most=1.0)}

    def __init__(self, sizes, settings, start):
        super().__init__(sizes, settings, start)
        self.weight = start.glorot(sizes.num_features, sizes.num_classes)
        self.register_buffer("share", self.column("share"), persistent=False)

    def forward(self, x, view):
        z = view.drop(x @ self.weight, layer=0)
        return torch.lerp(z, view.shift(["random-walk"] * self.trials) @ z, self.share[:, None, None])


class TestDiffusion(NetworkContract):
    network = Diffusion
    other = {"share": 0.1}
