"""The contract of the door: ``DropEdge``, ``TADropEdge`` and plug-ins of one's own."""

import torch

from tadropedge import Dropping
from tadropedge.graph import at_both_ends
from tadropedge.pyg import DropEdge, TADropEdge
from tadropedge.testing.dropedge import DropEdgeContract


def strength(graph, power=1.0):
    """A score of one's own: the weights at both ends."""
    degree = torch.bincount(graph.pairs.view(-1), minlength=graph.num_nodes).double()
    return at_both_ends(graph, degree) ** power


class TestDropEdge(DropEdgeContract):
    door = DropEdge


class TestTADropEdge(DropEdgeContract):
    door = TADropEdge
    methods = ("cdf@0.9", "inverse-cutoff@0.9:unbiased", "jaccard-proportional@0.5:exact", "effective-division@0.9")


class TestOwnScore(DropEdgeContract):
    methods = (Dropping(score=strength, rule="cdf", keep_ratio=0.8, settings={"power": 2.0}),)


class TestFactory(DropEdgeContract):
    door = staticmethod(lambda method, **given: DropEdge(method, weight="edge_weight", **given))
    methods = ("dropsens-floor@0.9",)
