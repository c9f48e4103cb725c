"""Every network under its contract: a new one adds a class of a few lines."""

from contracts.networks import NetworkContract

from tadropedge.registry import NETWORKS

BACKBONE = {"normalization": "random-walk", "self_weight": True, "batch_norm": True}


class TestGCN(NetworkContract):
    name = "gcn"
    other = BACKBONE


class TestJKNet(NetworkContract):
    name = "jknet"
    layers = 3
    other = BACKBONE


class TestIncepGCN(NetworkContract):
    name = "incepgcn"
    layers = 4
    other = BACKBONE


class TestResGCN(NetworkContract):
    name = "resgcn"
    layers = 4
    other = BACKBONE


class TestGCNII(NetworkContract):
    name = "gcnii"
    layers = 3
    other = {"normalization": "random-walk", "alpha": 0.4, "theta": 1.5}


class TestAPPNP(NetworkContract):
    name = "appnp"
    layers = 3
    other = {"normalization": "random-walk", "alpha": 0.4}


class TestSAGE(NetworkContract):
    name = "sage"
    layers = 3
    other = {"batch_norm": True}


class TestMLP(NetworkContract):
    name = "mlp"
    layers = 3
    other = {"batch_norm": True}


class TestGAT(NetworkContract):
    name = "gat"
    layers = 3
    small = {"heads": 2}
    other = {"heads": 4, "negative_slope": 0.5, "attention_dropout": 0.4}


class TestFilterNetwork(NetworkContract):
    name = "gcnn"
    small = {"order": 3}
    other = {"normalization": "random-walk", "order": 2}

    def renamed(self, state, order):
        readout = state["readout.weight"]
        by_node = readout.unflatten(1, (len(order), -1))[:, order]
        return {**state, "readout.weight": by_node.flatten(1, 2)}


class TestGraphSAGE(NetworkContract):
    name = "graphsage"
    small = {"hidden": 8, "samples": 3}
    other = {"hidden": 4, "samples": 5, "inductive": True}


class TestFastGCN(NetworkContract):
    name = "fastgcn"
    small = {"samples": 40}
    other = {"hidden": 4, "samples": 5, "inductive": True}


class TestASGCN(NetworkContract):
    name = "as-gcn"
    small = {"samples": 40}
    other = {"hidden": 4, "samples": 5, "inductive": True, "variance": 5.0}


class TestNeuralSparse(NetworkContract):
    name = "neuralsparse"
    small = {"hidden": 8}
    other = {"hidden": 4, "samples": 2}
    smooth = {"samples": 150}  # all neighbours: which ones are kept does not change


class TestPTDNet(NetworkContract):
    name = "ptdnet"
    small = {"hidden": 8}
    other = {"hidden": 4, "sparsity": 2.0, "nuclear": 0.5}


def test_every_network_has_a_contract():
    tried = {kind.name for kind in NetworkContract.__subclasses__()}
    assert tried >= set(NETWORKS)
