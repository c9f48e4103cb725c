"""Clusters among random edges: what DropEdge keeps of them, and what dropping by a score keeps.

Makes a graph of clusters with two random edges for each of theirs, scores every edge by the share of neighbours that
its ends have in common, and draws what is kept: by DropEdge, and by the score at the same expected number of edges.
The second command trains on this graph, and says what that is worth:

    python examples/demo.py
    tadropedge compare noisy-clusters --methods dropedge,jaccard-proportional,jaccard-proportional:weighted
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import tadropedge as tde
from tadropedge.lab import load

NODES = 10  # of a cluster
KEEP_RATIO = 0.3
INSIDE, RANDOM = "#0072b2", "#d55e00"  # colours of edges
GOLDEN = np.pi * (3 - 5**0.5)  # the angle from a seed of a sunflower to the next


def sunflower(count):
    """Points ``[count, 2]`` spread evenly over the unit disc, like the seeds of a sunflower.

    >>> np.linalg.norm(sunflower(4), axis=1).round(2).tolist()
    [0.35, 0.61, 0.79, 0.94]
    """
    step = np.arange(count)
    around = np.stack((np.cos(GOLDEN * step), np.sin(GOLDEN * step)), axis=1)
    return np.sqrt((step + 0.5) / count)[:, None] * around


def panel(axis, place, pairs, title, **look):
    """Edges as lines, nodes as dots."""
    axis.add_collection(LineCollection(list(place[pairs.T.numpy()]), **look))
    axis.scatter(*place.T, s=5, color="#1a1a1a", zorder=3, linewidths=0)
    axis.set_title(title, fontsize=10)
    axis.set(aspect="equal", xlim=(-1.06, 1.06), ylim=(-1.06, 1.06))
    axis.axis("off")


def draw(graph, random, scores, kept):
    """The graph, its edges by score, and two subgraphs."""
    clusters = graph.num_nodes // NODES
    place = np.repeat(sunflower(clusters), NODES, axis=0)
    place += np.tile(0.6 / clusters**0.5 * sunflower(NODES), (clusters, 1))
    figure = Figure(figsize=(8, 8.7), layout="constrained")
    axes = figure.subplots(2, 2)
    everything = torch.ones_like(random)
    masks = {f"The graph: {random.float().mean():.0%} of its edges are random": everything, **kept}
    for axis, (name, mask) in zip((axes[0, 0], *axes[1]), masks.items(), strict=True):
        title = name if mask is everything else f"{name} keeps {mask[random].float().mean():.0%} of the random edges"
        panel(axis, place, graph.pairs[:, mask & random], title, color=RANDOM, linewidths=0.4, alpha=0.5)
        panel(axis, place, graph.pairs[:, mask & ~random], title, color=INSIDE, linewidths=1.0)
    order = scores.argsort()  # high scores on top
    look = {"array": scores[order].numpy(), "cmap": "YlGnBu", "linewidths": 0.6}
    panel(axes[0, 1], place, graph.pairs[:, order], "Its edges by score: the share of\nneighbours in common", **look)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder to write to")
    out = parser.parse_args().out
    graph = load("noisy-clusters").graph
    random = graph.pairs[0] // NODES != graph.pairs[1] // NODES  # those between clusters
    scores = tde.edge_scores(graph, "jaccard")
    by_score = tde.keep_probabilities(scores, rule="proportional", keep_ratio=KEEP_RATIO)
    kept = {
        "DropEdge": tde.sample_edges(torch.full_like(by_score, KEEP_RATIO), seed=0),
        "Dropping by score": tde.sample_edges(by_score, seed=0),
    }
    out.mkdir(parents=True, exist_ok=True)
    draw(graph, random, scores, kept).savefig(out / "noisy-clusters.png", dpi=110)
    print(f"{graph.num_edges:,} edges, {int(random.sum()):,} of them random; of these keeps, at the same budget,")
    for name, mask in kept.items():
        print(f"  {name:18} {mask[random].float().mean():4.0%}   and {mask[~random].float().mean():4.0%} of the others")
    print(f"picture: {out / 'noisy-clusters.png'}")


if __name__ == "__main__":
    main()
