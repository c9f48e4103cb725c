"""
Which edges hold my graph together?
===================================

Some edges can go and nobody notices; without others the graph falls apart. Scores put
numbers on that. This tutorial scores the karate club in three ways, looks at the
eigenvectors behind one of them, and finds the bridges.
"""

# %%
# Three scores
# ------------
#
# ``Graph`` is undirected and lists every edge once. A score is a function from a graph
# to one number per edge, and high means keep.

import os
import subprocess
import sys
import tempfile
from itertools import combinations

import matplotlib.pyplot as plt
import networkx as nx
import torch
from scipy.stats import spearmanr

import tadropedge as tde
from tadropedge.bridges import bridges
from tadropedge.data import load_clusters, load_karate
from tadropedge.spectrum import cluster_subspaces
from tadropedge.spectrum.clusters import Clusters

club = load_karate()
graph, community = club.graph, club.labels
scores = {
    # the paper's: how far the 4 lowest modes move along an edge
    "aggregate": tde.edge_scores(graph, "aggregate", q=4),
    # the electrical resistance between the two ends
    "effective": tde.edge_scores(graph, "effective"),
    # 1/d_u + 1/d_v
    "degree": tde.edge_scores(graph, "degree"),
}
print(graph)
for name, values in scores.items():
    top = values.argsort(descending=True)[:5]
    ends = zip(*graph.pairs[:, top].tolist(), values[top].tolist(), strict=True)
    print(f"{name:9}", ", ".join(f"{u}–{v} ({value:.2f})" for u, v, value in ends))

# %%
# The picture: edges are thin and pale where the score is low, thick and dark where it
# is high. Colours go by rank, because a few scores are far larger than the others.
# Nodes have the colour of their community.

network = nx.Graph(graph.pairs.T.tolist())
place = nx.spring_layout(network, seed=3, iterations=200)
palette = plt.cm.Set2(community.numpy())
order = sorted(network.nodes)


def draw(axis, values, title):
    ascending = values.argsort()  # high scores on top
    rank = torch.linspace(0, 1, len(values)).numpy()
    lines = nx.draw_networkx_edges(
        network,
        place,
        edgelist=graph.pairs[:, ascending].T.tolist(),
        edge_color=rank,
        edge_cmap=plt.cm.plasma_r,
        width=0.5 + 3 * rank**2,
        ax=axis,
    )
    nx.draw_networkx_nodes(
        network, place, nodelist=order, node_size=45, node_color=palette, ax=axis
    )
    axis.set_title(title)
    axis.set_axis_off()
    return lines


figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for axis, (name, values) in zip(axes, scores.items(), strict=True):
    lines = draw(axis, values, name)
bar = figure.colorbar(lines, ax=axes, shrink=0.8, label="rank of the score")

# %%
# Are they the same? Rank correlation says how alike two scores order the edges, and the
# share between communities says what the ten highest have in common.

between = community[graph.pairs[0]] != community[graph.pairs[1]]
print(f"{between.float().mean():.0%} of all edges run between communities")
for name, values in scores.items():
    top = values.argsort(descending=True)[:10]
    print(f"{name:9} {between[top].float().mean():4.0%} of its ten highest")
for one, other in combinations(scores, 2):
    alike = spearmanr(scores[one], scores[other]).statistic
    print(f"rank correlation of {one} and {other}: {alike:+.2f}")

# %%
# Effective resistance and degree often order edges nearly alike, and degree costs one
# pass over the edges: see :doc:`/scores`. Aggregate resistance asks another question,
# and the next picture shows which.
#
# Behind aggregate resistance: eigenvectors
# -----------------------------------------
#
# The lowest eigenvectors of the Laplacian are nearly constant inside a cluster and jump
# between clusters. The score of an edge is the sum over these modes of (difference of
# its ends)². So an edge scores high where the modes jump, which need not be where
# labels change: a mode may also set a single node apart.

(modes,) = cluster_subspaces(graph, Clusters(q=4))
in_order = modes.block.nodes[0].argsort()
vectors = torch.from_numpy(modes.vectors[0][in_order])[:, :4]  # [N, 4]
jumps = (vectors[graph.pairs[0]] - vectors[graph.pairs[1]]).square().sum(dim=1)
print(
    "the score is the sum of squared jumps:", torch.allclose(jumps, scores["aggregate"])
)

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for number, axis in enumerate(axes, start=1):
    values = vectors[:, number]
    limit = values.abs().max()
    nx.draw_networkx_edges(network, place, edge_color="#bbbbbb", ax=axis)
    nx.draw_networkx_nodes(
        network,
        place,
        nodelist=order,
        node_size=60,
        node_color=values,
        cmap="coolwarm",
        vmin=-limit,
        vmax=limit,
        ax=axis,
    )
    axis.set_title(f"eigenvector {number}, eigenvalue {modes.values[0][number]:.2f}")
    axis.set_axis_off()

# %%
# Where clusters are clear, the modes are the clusters. Here are four blocks with few
# edges between them:

blocks = load_clusters(seed=0, nodes=40, inside=0.3, between=0.004)
links = blocks.labels[blocks.graph.pairs[0]] != blocks.labels[blocks.graph.pairs[1]]
for name, settings in (("aggregate", {"q": 4}), ("effective", {}), ("degree", {})):
    values = tde.edge_scores(blocks.graph, name, **settings)
    top = values.argsort(descending=True)[: int(links.sum())]
    share = links[top].float().mean()
    print(f"{name:9} {share:4.0%} of its {len(top)} highest edges run between blocks")

# %%
# Bridges
# -------
#
# A bridge is an edge whose removal disconnects its ends. In an unweighted graph these
# are exactly the edges of effective resistance 1, because no current has another way.

found = bridges(graph)
print("bridges:", graph.pairs[:, found].T.tolist())
ones = (scores["effective"] - 1).abs() < 1e-9
print("edges of resistance 1:", graph.pairs[:, ones].T.tolist())

# %%
# From scores to subgraphs
# ------------------------
#
# A rule turns scores into keep probabilities. At a budget of 60 % of the edges, how
# often does a subgraph stay in one piece?


def whole(keep):
    thin = tde.Graph.from_edge_index(graph.pairs[:, keep], num_nodes=graph.num_nodes)
    return thin.components.count == 1


prob = {
    name: tde.keep_probabilities(values, keep_ratio=0.6, strategy="proportional")
    for name, values in scores.items()
}
prob["all alike"] = torch.full((graph.num_edges,), 0.6, dtype=torch.float64)
draws = list(range(300))
masks = {name: tde.sample_edges(values, seed=draws) for name, values in prob.items()}
masks["all alike, connected"] = tde.sample_edges(
    prob["all alike"], seed=draws, connected=graph
)
for name, keep in masks.items():
    share = sum(map(whole, keep)) / len(keep)
    kept = keep.double().mean()
    print(f"{name:21} {kept:.0%} kept, {share:.0%} of 300 subgraphs are connected")

# %%
# ``degree`` and ``effective`` protect nodes with few edges, which fall off first.
# ``aggregate`` spends its budget on other edges, and ``connected=`` is the only one of
# these that promises anything: each mask contains a spanning tree.
#
# For your own graph: one command
# -------------------------------
#
# ``tadropedge weights`` does all of this for a file of your own. It writes scores by
# your own node names, pictures and an interactive page; here without the pictures:

folder = tempfile.TemporaryDirectory()
command = "tadropedge weights karate --q 4 --no-figures --out karate-weights"
shown = subprocess.run(
    [sys.executable, "-m", *command.split()],
    cwd=folder.name,
    env=os.environ | {"COLUMNS": "80"},
    capture_output=True,
    text=True,
    check=True,
)
print("$", command)
print(shown.stdout)
folder.cleanup()

# %%
# :doc:`/weights` describes every file and every option.
