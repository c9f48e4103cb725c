"""Clusters among random edges: what DropEdge keeps of them, and what dropping by a score keeps.

Makes a graph of clusters with random edges between them, scores every edge by the share of neighbours that its ends
have in common, and draws what is kept: by DropEdge, and by the score at the same expected number of kept edges. The
second command trains on this graph, and says what that is worth.

    python examples/noisy_clusters.py --out demo-output/picture
    tadropedge compare noisy-clusters --methods dropedge,jaccard-cdf,jaccard-proportional:expected
"""

from __future__ import annotations

import argparse
import io
import sys
from dataclasses import dataclass
from html import escape
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from PIL import Image
from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor

import tadropedge as tde
from tadropedge.checks import check_probability
from tadropedge.data import Dataset, load_noisy_clusters
from tadropedge.publish.page import embedded
from tadropedge.publish.pictures import INK, PALETTE, picture

SCORE, RULE = "jaccard", "proportional"
INSIDE, RANDOM = PALETTE[0], PALETTE[1]  # colours of edges
GOLDEN = np.pi * (3 - 5**0.5)  # the angle from a seed of a sunflower to the next
SMALL = (800, 24)  # pixels across and colours of the picture of README


@dataclass(frozen=True)
class Kept:
    """One subgraph: the mask ``[M]`` of its edges, and the share of the random edges that is among them."""

    name: str
    mask: Tensor
    random: float

    @property
    def words(self) -> str:
        """What a picture is called."""
        kept = float(self.mask.float().mean())
        return f"{self.name} keeps {kept:.0%} of all edges\nand {self.random:.0%} of the random ones"


def random_edges(data: Dataset, nodes: int) -> Tensor:
    """The mask ``[M]`` of the edges between clusters, which have ``nodes`` nodes: all of these edges are random."""
    return data.graph.pairs[0] // nodes != data.graph.pairs[1] // nodes


def subgraphs(data: Dataset, random: Tensor, keep_ratio: float, seed: int) -> tuple[Tensor, list[Kept]]:
    """The score of each edge, and what DropEdge and the score keep: with the same coins, at the same budget."""
    scores = tde.edge_scores(data.graph, SCORE)
    by_score = tde.keep_probabilities(scores, keep_ratio=keep_ratio, strategy=RULE)
    kept = []
    for name, prob in (("DropEdge", torch.full_like(by_score, keep_ratio)), (f"{SCORE}-{RULE}", by_score)):
        mask = tde.sample_edges(prob, seed=seed)
        kept.append(Kept(name, mask, float(mask[random].float().mean())))
    return scores, kept


def sunflower(count: int) -> npt.NDArray[np.float64]:
    """``count`` points ``[count, 2]`` spread evenly over the unit disc, like the seeds of a sunflower.

    >>> np.linalg.norm(sunflower(4), axis=1).round(2).tolist()
    [0.35, 0.61, 0.79, 0.94]
    """
    step = np.arange(count)
    around = np.stack((np.cos(GOLDEN * step), np.sin(GOLDEN * step)), axis=1)
    return np.asarray(np.sqrt((step + 0.5) / count)[:, None] * around, dtype=np.float64)


def places(num_nodes: int, nodes: int) -> npt.NDArray[np.float64]:
    """Points ``[N, 2]``: clusters spread over a disc, and the nodes of each over a small one."""
    clusters = num_nodes // nodes
    around = 0.6 / clusters**0.5 * sunflower(nodes)
    return np.repeat(sunflower(clusters), nodes, axis=0) + np.tile(around, (clusters, 1))


def _lines(axis: Axes, place: npt.NDArray[np.float64], pairs: Tensor, **look: Any) -> LineCollection:
    """Edges as lines."""
    lines = LineCollection(list(place[pairs.T.numpy()]), **look)
    axis.add_collection(lines)
    return lines


def _nodes(axis: Axes, place: npt.NDArray[np.float64], title: str) -> None:
    axis.scatter(place[:, 0], place[:, 1], s=7, color=INK, zorder=3, linewidths=0)
    axis.set_title(title, loc="center")
    axis.set(aspect="equal", xticks=[], yticks=[], xlim=(-1.06, 1.06), ylim=(-1.06, 1.06))
    axis.axis("off")


@picture
def draw(
    place: npt.NDArray[np.float64], pairs: Tensor, random: Tensor, scores: Tensor, kept: list[Kept]
) -> tuple[Figure, str]:
    """The graph and its edges by score, and below them the two subgraphs."""
    figure = Figure(figsize=(8, 8.7))
    axes = figure.subplots(2, 2)
    words = f"The graph: clusters, and random edges,\nwhich are {float(random.float().mean()):.0%} of all"
    masks = [(axes[0, 0], torch.ones_like(random), words)]
    masks += [(axis, one.mask, one.words) for axis, one in zip(axes[1], kept, strict=True)]
    for axis, mask, title in masks:
        _lines(axis, place, pairs[:, mask & random], color=RANDOM, linewidths=0.4, alpha=0.5)
        _lines(axis, place, pairs[:, mask & ~random], color=INSIDE, linewidths=1.0)
        _nodes(axis, place, title)
    order = scores.argsort()  # high scores on top
    low, high = scores.quantile(scores.new_tensor([0.02, 0.98])).tolist()
    coloured = _lines(
        axes[0, 1], place, pairs[:, order],
        array=scores[order].numpy(), cmap="YlGnBu", norm=Normalize(low, high), linewidths=0.6, alpha=0.8,
    )  # fmt: skip
    _nodes(axes[0, 1], place, "The score of an edge: the share of\nneighbours that its ends have in common")
    inset = axes[0, 1].inset_axes((0.78, 0.02, 0.22, 0.025))
    bar = figure.colorbar(coloured, cax=inset, orientation="horizontal")
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8)
    figure.legend(
        handles=[
            axes[0, 0].plot([], [], color=colour, linewidth=2, label=words)[0]
            for colour, words in ((INSIDE, "edge inside a cluster"), (RANDOM, "random edge between clusters"))
        ],
        loc="outside lower center", ncols=2,
    )  # fmt: skip
    return figure, "Clusters among random edges, and what is kept of them"


def small(image: bytes) -> bytes:
    """The picture as README shows it: fewer pixels and colours."""
    across, colours = SMALL
    with Image.open(io.BytesIO(image)) as whole:
        size = (across, round(across * whole.height / whole.width))
        shrunk = whole.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    shrunk.quantize(colours, dither=Image.Dither.NONE).save(stream, "PNG", optimize=True)
    return stream.getvalue()


def page(image: bytes, title: str, words: str) -> str:
    """One self-contained page: the picture, and what it says."""
    return f"""<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>tadropedge: {escape(title)}</title>
<style>body{{font:16px/1.5 sans-serif;max-width:60rem;margin:auto;padding:1rem}}img{{max-width:100%}}</style>
<h1>{escape(title)}</h1><p>{escape(words)}</p>
<img alt="a graph of clusters, its edges by score, and two subgraphs" src="{embedded(image)}"></html>
"""


def show(random: Tensor, kept: list[Kept], title: str) -> None:
    """Print what is kept."""
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("kept by", "all edges", "edges inside clusters", "random edges"):
        table.add_column(name, justify="left" if name == "kept by" else "right")
    for one in kept:
        shares = (float(one.mask.float().mean()), float(one.mask[~random].float().mean()), one.random)
        table.add_row(one.name, *(f"{share:.0%}" for share in shares))
    Console().print(table)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the options; those of the graph are checked where it is made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, words in (
        ("classes", "number of classes"),
        ("clusters", "clusters per class"),
        ("nodes", "nodes per cluster"),
        ("noise", "random edges per edge inside a cluster"),
    ):
        default = signature(load_noisy_clusters).parameters[name].default  # the graph that is compared on
        parser.add_argument(f"--{name}", type=type(default), default=default, help=f"{words} (default {default:g})")
    parser.add_argument("--keep-ratio", type=float, default=0.3, help="expected share of kept edges (default 0.3)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the graph and of the coins (default 0)")
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder to write to")
    parser.add_argument("--small", type=Path, help="also write the picture to this file, in fewer pixels and colours")
    options = parser.parse_args(arguments)
    check_probability("--keep-ratio", torch.tensor(options.keep_ratio))
    return options


def main(arguments: list[str] | None = None) -> None:
    """Make the graph, the picture, the table and the page."""
    options = parse(arguments)
    data = load_noisy_clusters(
        options.seed, options.classes, options.nodes, clusters=options.clusters, noise=options.noise
    )
    random = random_edges(data, options.nodes)
    scores, kept = subgraphs(data, random, options.keep_ratio, options.seed)
    title = (
        f"{options.classes * options.clusters} clusters of {options.nodes} nodes, and {options.noise:g} random edges "
        "for each of theirs"
    )
    image = draw(places(data.graph.num_nodes, options.nodes), data.graph.pairs, random, scores, kept)
    options.out.mkdir(parents=True, exist_ok=True)
    drawn, report = options.out / "noisy-clusters.png", options.out / "picture.html"
    drawn.write_bytes(image)
    if options.small is not None:
        options.small.write_bytes(small(image))
    words = (
        "Two ends of an edge inside a cluster have many neighbours in common, two ends of a random edge have few. So "
        "dropping by that score drops random edges, where DropEdge drops both kinds alike."
    )
    report.write_text(page(image, title, words), encoding="utf-8")
    show(random, kept, title)
    print(f"picture: {drawn}\npage:    {report}")


if __name__ == "__main__":
    try:
        main()
    except (tde.TadropedgeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
