"""The methods that TADropEdge is compared with, one file each, with a leading trials axis."""

from tadropedge.nn.baselines.as_gcn import ASGCN
from tadropedge.nn.baselines.fastgcn import FastGCN
from tadropedge.nn.baselines.graphsage import GraphSAGE
from tadropedge.nn.baselines.network import Network, Problem, Step
from tadropedge.nn.baselines.neuralsparse import NeuralSparse
from tadropedge.nn.baselines.ptdnet import PTDNet

NETWORKS: dict[str, type[Network]] = {
    "graphsage": GraphSAGE,
    "fastgcn": FastGCN,
    "as-gcn": ASGCN,
    "neuralsparse": NeuralSparse,
    "ptdnet": PTDNet,
}

__all__ = ["NETWORKS", "Network", "Problem", "Step"]
