"""Clusters among random edges: what DropEdge keeps of them, and what dropping by a score keeps.

Makes a graph of clusters with random edges between them, scores every edge by the share of neighbours that its ends
have in common, and draws what is kept: by DropEdge, and by the score at the same expected number of kept edges. The
command below then trains on this graph, and says what that is worth.

    python examples/noisy_clusters.py --out demo-output/picture
    tadropedge compare noisy-clusters --methods jaccard-cdf --out demo-output/comparison
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor

import tadropedge as tde
from tadropedge.checks import check_probability
from tadropedge.data import Dataset, load_noisy_clusters
from tadropedge.publish.page import embedded
from tadropedge.publish.pictures import GREY, INK, PALETTE, picture

SCORE, RULE = "jaccard", "cdf"
INSIDE, BETWEEN = PALETTE[0], PALETTE[1]  # colours of edges
GOLDEN = np.pi * (3 - 5**0.5)  # the angle from a seed of a sunflower to the next


@dataclass(frozen=True)
class Kept:
    """One subgraph: the mask ``[M]`` of its edges, and the share of them that runs between clusters."""

    name: str
    mask: Tensor
    between: float

    @property
    def words(self) -> str:
        """What a picture is called."""
        return f"{self.name} keeps {int(self.mask.sum())} edges:\n{self.between:.0%} of them between clusters"


def between_clusters(data: Dataset) -> Tensor:
    """The mask ``[M]`` of the edges whose ends have different labels: all of them are random."""
    return data.labels[data.graph.pairs[0]] != data.labels[data.graph.pairs[1]]


def subgraphs(data: Dataset, keep_prob: float, seed: int) -> tuple[Tensor, list[Kept]]:
    """The score of each edge, and what DropEdge and the score keep: with the same coins, at the same budget."""
    scores = tde.edge_scores(data.graph, SCORE)
    by_score = tde.keep_probabilities(scores, keep_prob=keep_prob, strategy=RULE)
    alike = torch.full_like(by_score, float(by_score.mean()))
    between, kept = between_clusters(data), []
    for name, prob in (("DropEdge", alike), (f"{SCORE}-{RULE}", by_score)):
        mask = tde.sample_edges(prob, seed=seed)
        kept.append(Kept(name, mask, float(between[mask].float().mean())))
    return scores, kept


def places(data: Dataset) -> npt.NDArray[np.float64]:
    """Points ``[N, 2]``: clusters on a circle, the nodes of each like the seeds of a sunflower."""
    label = data.labels.numpy()
    around = 2 * np.pi * np.arange(data.num_classes) / data.num_classes
    centre = np.stack((np.cos(around), np.sin(around)), axis=1)
    place = np.empty((len(label), 2))
    for cluster in range(data.num_classes):
        mine = np.flatnonzero(label == cluster)
        step = np.arange(len(mine))
        radius, angle = 0.6 * np.sin(np.pi / data.num_classes) * np.sqrt((step + 0.5) / len(mine)), GOLDEN * step
        place[mine] = centre[cluster] + radius[:, None] * np.stack((np.cos(angle), np.sin(angle)), axis=1)
    return place


def _lines(axis: Axes, place: npt.NDArray[np.float64], pairs: Tensor, **look: Any) -> LineCollection:
    """Edges as lines."""
    lines = LineCollection(list(place[pairs.T.numpy()]), **look)
    axis.add_collection(lines)
    return lines


def _nodes(axis: Axes, place: npt.NDArray[np.float64], title: str) -> None:
    axis.scatter(place[:, 0], place[:, 1], s=9, color=INK, zorder=3, linewidths=0)
    axis.set_title(title, loc="center")
    axis.set(aspect="equal", xticks=[], yticks=[], xlim=(-1.32, 1.32), ylim=(-1.32, 1.32))
    axis.axis("off")


@picture
def draw(data: Dataset, scores: Tensor, kept: list[Kept]) -> tuple[Figure, str]:
    """The graph, its edges by score, and the two subgraphs."""
    figure = Figure(figsize=(16, 4.9))
    axes = figure.subplots(1, 4)
    place, pairs, between = places(data), data.graph.pairs, between_clusters(data)
    everything = Kept("the graph", torch.ones_like(between), float(between.float().mean()))
    for axis, one in zip((axes[0], axes[2], axes[3]), (everything, *kept), strict=True):
        _lines(axis, place, pairs[:, one.mask & between], color=BETWEEN, linewidths=0.35, alpha=0.25)
        _lines(axis, place, pairs[:, one.mask & ~between], color=INSIDE, linewidths=0.6, alpha=0.7)
        title = (
            one.words
            if one is not everything
            else f"The graph has {len(between)} edges:\n{one.between:.0%} of them between clusters"
        )
        _nodes(axis, place, title)
    order = scores.argsort()  # high scores on top
    low, high = scores.quantile(scores.new_tensor([0.02, 0.98])).tolist()
    coloured = _lines(
        axes[1], place, pairs[:, order],
        array=scores[order].numpy(), cmap="viridis_r", norm=Normalize(low, high), linewidths=0.45, alpha=0.6,
    )  # fmt: skip
    _nodes(axes[1], place, "Its edges by score: the share of\nneighbours that two ends have in common")
    bar = figure.colorbar(coloured, ax=axes[1], orientation="horizontal", shrink=0.6, pad=0.01, aspect=30)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8)
    figure.legend(
        handles=[
            axes[0].plot([], [], color=colour, label=words)[0]
            for colour, words in ((INSIDE, "inside a cluster"), (BETWEEN, "between clusters"))
        ],
        loc="outside lower center", ncols=2, labelcolor=GREY,
    )  # fmt: skip
    return figure, "Clusters among random edges, and what is kept of them"


def page(image: bytes, title: str, words: str) -> str:
    """One self-contained page: the picture, and what it says."""
    return f"""<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>tadropedge: {escape(title)}</title>
<style>body{{font:16px/1.5 sans-serif;max-width:96rem;margin:auto;padding:1rem}}img{{max-width:100%}}</style>
<h1>{escape(title)}</h1><p>{escape(words)}</p>
<img alt="a graph of clusters, its edges by score, and two subgraphs" src="{embedded(image)}"></html>
"""


def show(data: Dataset, kept: list[Kept], title: str) -> None:
    """Print what is kept."""
    between = between_clusters(data)
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", "edges kept", "of those inside clusters", "of those between clusters"):
        table.add_column(name, justify="left" if not name else "right")
    for one in kept:
        shares = (one.mask.float().mean(), one.mask[~between].float().mean(), one.mask[between].float().mean())
        table.add_row(one.name, *(f"{float(share):.0%}" for share in shares))
    Console().print(table)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the options; those of the graph are checked where it is made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", type=int, default=10, help="number of clusters (default 10)")
    parser.add_argument("--nodes", type=int, default=20, help="nodes per cluster (default 20)")
    parser.add_argument("--noise", type=float, default=2.0, help="random edges per edge inside a cluster (default 2)")
    parser.add_argument("--keep-prob", type=float, default=0.05, help="p: an edge is kept with at least this (0.05)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the graph and of the coins (default 0)")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder to write to")
    options = parser.parse_args(arguments)
    check_probability("--keep-prob", torch.tensor(options.keep_prob))
    return options


def main(arguments: list[str] | None = None) -> None:
    """Make the graph, the picture, the table and the page."""
    options = parse(arguments)
    data = load_noisy_clusters(options.seed, options.classes, options.nodes, noise=options.noise)
    scores, kept = subgraphs(data, options.keep_prob, options.seed)
    title = (
        f"{data.num_classes} clusters of {options.nodes} nodes, and {options.noise:g} random edges for each of theirs"
    )
    image = draw(data, scores, kept)
    options.out.mkdir(parents=True, exist_ok=True)
    drawn, report = options.out / "noisy-clusters.png", options.out / "picture.html"
    drawn.write_bytes(image)
    words = (
        "Two ends of an edge inside a cluster have many neighbours in common, two ends of a random edge have few. So "
        "dropping by that score drops random edges, where DropEdge drops both kinds alike."
    )
    report.write_text(page(image, title, words), encoding="utf-8")
    show(data, kept, title)
    print(f"picture: {drawn}\npage:    {report}")


if __name__ == "__main__":
    try:
        main()
    except (tde.TadropedgeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
