"""
Ten minutes with your own PyG model
===================================

You have a PyTorch Geometric model and a training loop. This tutorial adds edge dropping
to them with one line, shows the options that line has, and ends with the question that
matters: does it help?
"""

# %%
# A model and a loop
# ------------------
#
# The data is a graph of four clusters with noisy features and five labels per class. It
# comes with the package; put your own ``Data`` in its place. PyTorch Geometric lists
# both directions of every edge, so ``edge_index`` has two arcs per edge.

from textwrap import fill

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import index_to_mask, to_undirected

import tadropedge as tde
from tadropedge.data import load_clusters
from tadropedge.pyg import TADropEdge

made = load_clusters(seed=1)
data = Data(x=made.features, y=made.labels, edge_index=to_undirected(made.graph.pairs))
for part in ("train", "val", "test"):
    data[f"{part}_mask"] = index_to_mask(getattr(made.split, part), size=data.num_nodes)
print(
    data.num_nodes,
    "nodes,",
    data.num_edges,
    "arcs,",
    int(data.train_mask.sum()),
    "labels",
)

# %%
# The model is PyTorch Geometric's first example. Nothing in it knows about edge
# dropping.


class GCN(nn.Module):
    def __init__(self, num_features, num_classes, hidden=16, dropout=0.5):
        super().__init__()
        self.first, self.second = (
            GCNConv(num_features, hidden),
            GCNConv(hidden, num_classes),
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, edge_index, edge_weight=None):
        h = self.dropout(self.first(x, edge_index, edge_weight).relu())
        return self.second(h, edge_index, edge_weight)


# %%
# The loop is the usual one, but for the marked line. With ``nn.Identity()`` in the
# place of ``drop``, ``thin`` is the data itself, and that is training without dropping.
# Evaluation uses the whole graph in any case.


def train(drop, seed, epochs=60):
    torch.manual_seed(seed)
    model = GCN(data.num_features, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    best, kept = 0.0, 0.0
    for _ in range(epochs):
        model.train()
        thin = drop(data)  # the one line: a new subgraph in every epoch
        logits = model(thin.x, thin.edge_index)
        loss = cross_entropy(logits[data.train_mask], data.y[data.train_mask])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            right = (model(data.x, data.edge_index).argmax(dim=1) == data.y).float()
        if right[data.val_mask].mean() > best:  # the test accuracy of the best epoch
            best = right[data.val_mask].mean().item()
            kept = right[data.test_mask].mean().item()
    return kept


print(f"one training without dropping: {train(nn.Identity(), seed=0):.1%}")

# %%
# Add the line
# ------------
#
# ``TADropEdge`` is a module. It scores the edges of a graph when it first sees it, and
# each call in training mode then returns another subgraph; in ``eval()`` it returns
# what it was given. Here edges of nodes that have few of them are kept first, and 70 %
# of all edges are kept on average.

drop = TADropEdge(score="degree", strategy="proportional", keep_ratio=0.7, seed=0)
print("arcs in the graph:", data.num_edges)
print("arcs in three subgraphs:", [drop(data).num_edges for _ in range(3)])
print(f"one training with dropping: {train(drop, seed=0):.1%}")

# %%
# One training says nothing: the next seed gives another number. So train with the same
# eight seeds in three ways: without dropping, with DropEdge (all edges alike), and by
# degree at the same budget.

seeds = range(8)
rule = {"score": "degree", "strategy": "proportional", "keep_ratio": 0.7}
ways = {
    "not dropping": lambda seed: nn.Identity(),
    "DropEdge": lambda seed: TADropEdge(keep_prob=0.7, seed=seed),
    "by degree": lambda seed: TADropEdge(**rule, seed=seed),
}
accuracy = {
    name: torch.tensor([train(make(seed), seed) for seed in seeds])
    for name, make in ways.items()
}

figure, axis = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
for place, values in enumerate(accuracy.values()):
    axis.plot(values * 100, torch.full_like(values, place), "o", alpha=0.6)
    axis.plot(values.mean() * 100, place, "k|", markersize=18)
axis.set_yticks(range(len(ways)), list(ways))
axis.set_xlabel("test accuracy (%), one dot per seed; bars are means")
axis.invert_yaxis()

for name, values in accuracy.items():
    change = (values - accuracy["not dropping"]) * 100
    spread = change.std() / len(seeds) ** 0.5
    print(f"{name:12} {values.mean():.1%}, {change.mean():+.1f} ± {spread:.1f} points")

# %%
# This is still one split with settings that nobody tuned, and the same seed does not
# make two trainings alike once their subgraphs differ. It is a look, not an answer.
# ``tde.compare`` gives one: see the end of this page.
#
# Options of the line
# -------------------
#
# **One subgraph per layer.** Every call draws anew, so a model that calls ``drop`` in
# each layer has a subgraph of its own in each layer. Arcs come back with the mask over
# all arcs.


class PerLayer(GCN):
    def __init__(self, *sizes, drop):
        super().__init__(*sizes)
        self.drop = drop

    def forward(self, x, edge_index):
        thin, _ = self.drop(edge_index)
        h = self.dropout(self.first(x, thin).relu())
        thin, _ = self.drop(edge_index)  # another subgraph
        return self.second(h, thin)


model = PerLayer(data.num_features, 4, drop=TADropEdge(keep_prob=0.7))
print(model(data.x, data.edge_index).shape, "after epoch", int(model.drop.epoch))

# %%
# The epoch is a buffer of the model, so a checkpoint holds it, and training goes on
# with the subgraphs that would have come next.
#
# **Connected subgraphs.** At a small budget subgraphs fall apart. With
# ``connected=True`` each contains a spanning forest, at the same expected number of
# edges.


def pieces(thin):
    return tde.Graph.from_data(thin).components.count


for connected in (False, True):
    drop = TADropEdge(keep_ratio=0.4, connected=connected)
    subgraphs = [drop(data) for _ in range(20)]
    arcs = sum(thin.num_edges for thin in subgraphs) / 20
    most = max(map(pieces, subgraphs))
    print(f"connected={connected}: {arcs:.0f} arcs, at most {most} component(s)")
print("the whole graph has", pieces(data), "component(s)")

# %%
# **Unbiased.** Kept edges get the weight 1 / p, so that the weighted adjacency matrix
# is right on average, as in inverted dropout. Your model must use the weights, as
# ``GCNConv`` does.

drop = TADropEdge(**rule, unbiased=True)
thin = drop(data)
print(f"weights from {thin.edge_weight.min():.2f} to {thin.edge_weight.max():.2f}")
total = sum(drop(data).edge_weight.sum() for _ in range(200)) / 200
print(f"total weight {total:.0f} on average, {data.num_edges} in the whole graph")

# %%
# :doc:`/pyg` says what ``GCNConv``'s own normalisation does to this, and has the
# operator that is unbiased exactly.
#
# Does it help?
# -------------
#
# ``tde.compare`` takes your model as it is. It tunes learning rate, weight decay,
# dropout and budget for every method alike, on splits that are not those it judges by,
# and compares pairs of trainings. The sizes below are far too small; they only make
# this page quick to build.

found = tde.compare(
    data,
    ["degree-proportional"],
    GCN,
    split="random",
    per_class=5,
    trials=2,
    choose_splits=1,
    seeds=3,
    epochs=30,
    progress=False,
)
print(fill(found.advice.words, 80))

# %%
# The advice says so itself: so few seeds can decide nothing. For an answer leave the
# sizes at their defaults (30 trials on 3 splits, 20 seeds, 400 epochs), and give a
# folder, in which the report is written and an interrupted run is resumed:
#
# .. code-block:: python
#
#    found = tde.compare(data, ["degree-proportional", "auto"], GCN, out="compared")
#
# :doc:`plot_does_it_help` explains how to read what comes back, and :doc:`/own-models`
# what a model must look like.
