"""GraphSAGE on the whole graph: the mean over all neighbours that are left, in every layer."""

from __future__ import annotations

from tadropedge._old.nn.backbones import DEFAULT_SPACE, GCN
from tadropedge._old.nn.network import Setting


class SAGE(GCN):
    """``h_i' = ReLU(h_i W_self + (mean of h_j over the kept edges ij) W + b)``, without ReLU in the last layer.

    It is a GCN with ``S = D^-1 A``, the normalisation ``neighbour-mean``, and self weights. A node that lost all its
    edges sees itself alone. Unlike ``graphsage``, nothing is sampled, signals are not divided by their norm, and the
    last convolution gives the classes. With the option ``unbiased``, S is that of the whole graph with the entries of
    kept edges divided by their keep probability: not a mean of what is left, but one that is right on average.

    * Source: Hamilton, Ying and Leskovec, *Inductive representation learning on large graphs* (NeurIPS 2017), the mean
      aggregator.
    * Cost: O(M H + 2 N H²) per layer and epoch, H hidden units.
    * Good for: graphs whose edges join unlike nodes: a node's own features have weights of their own.
    """

    settings = {"batch_norm": Setting(False)}
    shared = ("batch_norm",)
    space = {
        **{name: values for name, values in DEFAULT_SPACE.items() if name != "normalization"},
        "batch_norm": [False, True],
    }
    fixed = {"normalization": "neighbour-mean", "self_weight": True}
