"""The networks that the paper compares with, as a plug-in: ``--plugin experiments.paper.networks`` brings their names.

They have two layers, whatever ``layers`` says, and a ``hidden`` of their own.
"""

from experiments.paper.networks.as_gcn import ASGCN
from experiments.paper.networks.fastgcn import FastGCN
from experiments.paper.networks.gcnn import GCNN
from experiments.paper.networks.graphsage import GraphSAGE
from experiments.paper.networks.neuralsparse import NeuralSparse
from experiments.paper.networks.ptdnet import PTDNet
from tadropedge.lab.registry import NETWORKS

NETWORKS["graphsage"] = GraphSAGE
NETWORKS["fastgcn"] = FastGCN
NETWORKS["as-gcn"] = ASGCN
NETWORKS["neuralsparse"] = NeuralSparse
NETWORKS["ptdnet"] = PTDNet
NETWORKS["gcnn"] = GCNN
