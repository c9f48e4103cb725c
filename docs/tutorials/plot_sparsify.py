"""
Sparsify a graph
================

A sparsifier keeps few edges of a graph and gives them larger weights, so that the graph
as a whole behaves as before. This tutorial makes three, reads their certificates,
compares their spectra with the graph's, and trains on one of them.
"""

# %%
# Fewer edges, larger weights
# ---------------------------
#
# Edge m is kept with probability p, which grows with its score, and a kept edge has the
# weight 1 / p. So the Laplacian is right on average, whatever the score. Here a quarter
# of the edges is kept by effective resistance, by degree, and with all edges alike. The
# graph is made of dense blocks and of a chain that hangs on them, in which every edge
# is a bridge.

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch_geometric.nn import GCNConv

import tadropedge as tde
from tadropedge.data import load_clusters

data = load_clusters(seed=0, nodes=80, inside=0.3, between=0.01)
size = data.graph.num_nodes
chain = torch.arange(size - 1, size + 20)  # 20 more nodes, in a row
tail = torch.stack((chain[:-1], chain[1:]))
graph = tde.Graph.from_edge_index(torch.cat((data.graph.pairs, tail), dim=1))
print(graph)

scores = ("effective", "degree", "uniform")
sparse = {
    score: tde.sparsify(graph, keep_ratio=0.25, score=score, seed=0) for score in scores
}
for score, thin in sparse.items():
    print(f"{score:9} {thin.num_edges} edges of total weight {thin.weight.sum():.0f}")

# %%
# The certificate
# ---------------
#
# Each result is measured against the whole graph. All quotients xᵀL'x / xᵀLx lie
# between λ_min and λ_max: by these factors cuts, resistances and solutions of Laplacian
# systems may differ. λ_min is 0 where a component fell apart.

for score, thin in sparse.items():
    found = thin.certificate
    low, high = found.lambda_min.value, found.lambda_max.value
    print(
        f"{score:9} λ from {low:.2f} to {high:.2f}, components {found.components_after}"
    )

# %%
# A bridge has the largest effective resistance that there is, so it is the first to be
# kept for certain. With all edges alike, each edge of the chain is lost with a chance
# of three quarters.

for score, thin in sparse.items():
    kept = sum(pair[1] >= size for pair in thin.pairs.T.tolist())
    print(f"{score:9} keeps {kept} of the {tail.shape[1]} edges of the chain")

# %%
# Spectra
# -------
#
# The low eigenvalues say how the graph hangs together, and how slowly something
# diffuses in it.


def laplacian(graph):
    weights = 1 if graph.weight is None else graph.weight
    matrix = np.zeros((graph.num_nodes, graph.num_nodes))
    matrix[graph.pairs[0], graph.pairs[1]] = -weights
    matrix += matrix.T
    return matrix - np.diag(matrix.sum(axis=0))


whole = np.linalg.eigvalsh(laplacian(graph))
figure, (low, every) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
low.plot(whole[:20], "k.-", label="whole graph")
every.plot(whole, "k-", label="whole graph")
for score, thin in sparse.items():
    values = np.linalg.eigvalsh(laplacian(thin))
    low.plot(values[:20], ".-", alpha=0.7, label=score)
    every.plot(values, alpha=0.7, label=score)
    change = np.abs(values - whole)[1:] / whole[1:]
    zeros = np.sum(values < 1e-9)
    lowest, mean = change[:9].mean(), change.mean()
    print(f"{score:9} lowest ten {lowest:4.0%} off, all {mean:.0%} off, zeros: {zeros}")
low.set(title="the 20 lowest eigenvalues", xlabel="number", xticks=range(0, 20, 5))
every.set(title="all eigenvalues", xlabel="number")
legend = low.legend()

# %%
# Scores that know the bridges keep the lowest eigenvalues, which are those of the
# chain. Inside the blocks a quarter of the edges makes a rougher graph than the whole,
# with any score: high eigenvalues grow, and those in the middle shrink.
#
# Train on the sparse graph
# -------------------------
#
# A sparsifier is a ``Graph`` that every function of the package takes. For PyTorch
# Geometric its arcs have an ``edge_weight``. Here a GCN is trained on sparsified blocks
# (without the chain, and with features that say little) and judged on the whole graph,
# beside one that was trained on the whole graph.

data = load_clusters(seed=0, nodes=80, inside=0.3, between=0.06, noise=2.0)


def arcs(graph):
    ones = torch.ones(graph.num_edges)
    weights = ones if graph.weight is None else graph.weight.float()
    both = torch.cat((graph.pairs, graph.pairs.flip(0)), dim=1)
    return both, torch.cat((weights, weights))


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = GCNConv(data.num_features, 16)
        self.second = GCNConv(16, data.num_classes)

    def forward(self, x, edge_index, edge_weight):
        h = self.first(x, edge_index, edge_weight).relu()
        return self.second(h, edge_index, edge_weight)


def accuracy(graph, seed, epochs=60):
    torch.manual_seed(seed)
    model, (edge_index, edge_weight) = GCN(), arcs(graph)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    for _ in range(epochs):
        logits = model(data.features, edge_index, edge_weight)
        loss = cross_entropy(logits[data.split.train], data.labels[data.split.train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        predicted = model(data.features, *arcs(data.graph)).argmax(dim=1)
    return (predicted == data.labels)[data.split.test].float().mean().item()


values = torch.tensor([accuracy(data.graph, seed) for seed in range(5)])
print(f"whole graph  {values.mean():5.1%}, ± {values.std():.1%} from seed to seed")
for score in scores:
    drawn = [tde.sparsify(data.graph, 0.25, score, seed=seed) for seed in range(5)]
    values = torch.tensor([accuracy(graph, seed) for seed, graph in enumerate(drawn)])
    print(f"{score:11}  {values.mean():5.1%}, ± {values.std():.1%} from seed to seed")

# %%
# Five seeds on one split do not rank the scores. What a quarter of the edges costs on
# your graph is a question like that of :doc:`plot_does_it_help`.
#
# The same on the command line
# ----------------------------
#
# .. code-block:: console
#
#    $ tadropedge sparsify friends.tsv --score effective --keep-ratio 0.25 --out sparse
#
# writes the edges by your own names, an ``.npz``, a PyTorch Geometric ``Data`` and the
# certificate. :doc:`/sparsify` says what to expect on larger graphs: a budget above the
# spanning forest is no promise of connection.
