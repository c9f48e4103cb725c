"""Masks, operators and a layer's forward with dropped edges, against PyG's ways in one run.

* ``masks``: the mask of an epoch alone and with its normalised operator (``sample_edges``, ``shift_operator``) against
  ``dropout_edge(force_undirected=True)`` and ``gcn_norm``; masks that keep components against SciPy's forest alone; one
  call of the PyG module on a graph that it knows against ``dropout_edge``;
* ``masks-forward``: mask, operator and its product with 64 or 128 columns, at several shares of kept edges, against the
  best of PyG's ways: messages along the edge list, a CSR tensor, an ``EdgeIndex`` sorted by rows;
* ``masks-unbiased``: how far thinned operators of Cora are from the whole one, on average (bias) and one by one
  (spread), renormalised and unbiased, in shares of the norm of S x; 1,000 draws, 200 of a renormalised ``spectral``.
  The bias of an unbiased one is what chance leaves.

``bound_ms`` is that of copying as many bytes as any method must read and write: a number for each pair and each entry
of the operator, and the signals before and after.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, product
from typing import Any

import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import minimum_spanning_tree
from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import dropout_edge, scatter, to_torch_csr_tensor

import tadropedge as tde
from benchmarks.frame import Row, beside, medians, run
from benchmarks.graphs import arcs_of, graph_of, sorted_index
from tadropedge.pyg import DropEdge

GRAPHS = ("cora", "pubmed", "com-dblp")
KEEP = 0.7
WIDTHS, SHARES = (64, 128), (1.0, 0.7, 0.5, 0.1)
NORMALIZATIONS = (
    "gcn", "first-order", "gcn-residual", "random-walk", "neighbour-mean", "adjacency", "spectral", "laplacian",
    "normalized-laplacian",
)  # fmt: skip
METHODS = {"dropedge": (None, "uniform"), "degree-proportional": ("degree", "proportional")}
BATCH = 50  # operators at once
DOUBLE = torch.float64

Call = Callable[[], object]


def bound(count: int, device: str) -> Row:
    """Milliseconds of moving so many bytes: half of them are read, half written."""
    one = torch.zeros(max(1, count // 2), dtype=torch.uint8, device=device)
    other = torch.empty_like(one)
    return {"bound_ms": 1e3 * medians({"bound": lambda: other.copy_(one)}, 0.1, device)["bound"]}


def cases_of(graph: tde.Graph, edges: Tensor) -> dict[str, tuple[Call, str, Call, int]]:
    """What is drawn, the peer's name, what it draws, and the bytes beside those of the coins."""
    nodes, epoch = graph.num_nodes, count()
    prob = torch.full((graph.num_edges,), KEEP, dtype=DOUBLE, device=graph.device)
    many = tde.keep_probabilities(tde.edge_scores(graph, "degree"), rule="proportional", keep_ratio=0.9)
    order = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(0)).numpy() + 1e-6
    weights = csr_matrix((order, tuple(graph.pairs.cpu().numpy())), (nodes, nodes))

    def mask(prob: Tensor = prob, **wanted: Any) -> Tensor:
        return tde.sample_edges(prob, seed=0, epoch=next(epoch), **wanted)

    def dropped() -> Tensor:
        return dropout_edge(edges, p=1 - KEEP, force_undirected=True)[0]

    def normalised() -> object:
        return gcn_norm(dropped(), None, nodes)

    modules = {name: partial(DropEdge(name, keep_ratio=KEEP), edges) for name in METHODS}
    forest = partial(minimum_spanning_tree, weights)
    more = 4 * graph.pattern.num_entries
    return {
        "mask": (mask, "dropout_edge", dropped, 0),
        "mask and operator": (lambda: tde.shift_operator(graph, mask()), "gcn_norm", normalised, more),
        "mask, connected": (lambda: mask(many, graph=graph, connected=True), "SciPy's forest alone", forest, 0),
        "mask, exact": (lambda: mask(exact=True), "dropout_edge", dropped, 0),
        **{f"PyG module, {name}": (call, "dropout_edge", dropped, 0) for name, call in modules.items()},
    }


def masks(options: Namespace) -> Iterator[Row]:
    """Masks, and masks with their operators."""
    for name in ("tiny",) if options.quick else GRAPHS:
        graph = graph_of(name).to(options.device)
        for what, (ours, way, theirs, more) in cases_of(graph, arcs_of(graph)).items():
            row: Row = {"graph": name, "edges": graph.num_edges, "what": what}
            row |= beside(ours, {way: theirs}, 0.1 if options.quick else 2, options.device, peer="peer")
            yield row | bound(9 * graph.num_edges + more, options.device)  # a probability in, an answer out


def layers_of(graph: tde.Graph, edges: Tensor, x: Tensor, share: float) -> tuple[Call, dict[str, Call]]:
    """A layer's forward without its dense product, ours and PyG's: edges dropped, normalised, multiplied."""
    nodes, epoch = graph.num_nodes, count()
    prob = torch.full((graph.num_edges,), share, dtype=DOUBLE, device=graph.device)

    def ours() -> Tensor:
        keep = None if share == 1 else tde.sample_edges(prob, seed=0, epoch=next(epoch))
        return tde.shift_operator(graph, keep) @ x

    def normalised() -> tuple[Tensor, Tensor]:
        kept = edges if share == 1 else dropout_edge(edges, p=1 - share, force_undirected=True)[0]
        return gcn_norm(kept, None, nodes)

    def edge_list() -> Tensor:
        places, values = normalised()
        return scatter(values[:, None] * x[places[0]], places[1], dim_size=nodes)

    def csr() -> Tensor:
        return to_torch_csr_tensor(*normalised(), size=nodes) @ x

    def edge_index() -> Tensor:
        index, values = sorted_index(*normalised(), nodes)
        return index.matmul(x, values)

    return ours, {"edge list": edge_list, "CSR": csr, "EdgeIndex": edge_index}


def forward(options: Namespace) -> Iterator[Row]:
    """A layer's forward with dropped edges."""
    for name in ("tiny",) if options.quick else GRAPHS:
        graph = graph_of(name).to(options.device)
        edges = arcs_of(graph)
        for share, width in product(SHARES, WIDTHS):
            x = torch.randn(graph.num_nodes, width, device=options.device)
            ours, ways = layers_of(graph, edges, x, share)
            row: Row = {"graph": name, "edges": graph.num_edges, "features": width, "share": share}
            row |= beside(ours, ways, 0.1 if options.quick else 1.5, options.device)
            least = 9 * graph.num_edges + 4 * graph.pattern.num_entries + 8 * x.numel()
            yield row | bound(least, options.device)


def unbiased(options: Namespace) -> Iterator[Row]:
    """Bias and spread of every normalisation, for two rules that keep half of the edges."""
    graph, draws = graph_of("tiny" if options.quick else "cora").to(options.device), 100 if options.quick else 1_000
    for method, (score, rule) in METHODS.items():
        scores = torch.ones(graph.num_edges) if score is None else tde.edge_scores(graph, score).cpu()
        prob = tde.keep_probabilities(scores, keep_ratio=0.5, rule=rule).to(options.device)
        for normalization in NORMALIZATIONS:
            row: Row = {"method": method, "normalization": normalization}
            for name, by in (("renormalised", None), ("unbiased", prob)):
                slow = by is None and normalization == "spectral"  # an eigenvalue for each operator
                bias, spread = measured(graph, normalization, prob, min(draws, 200) if slow else draws, by)
                row |= {f"{name}_bias": bias, f"{name}_spread": spread}
            yield row


def measured(graph: tde.Graph, normalization: str, prob: Tensor, draws: int, by: Tensor | None) -> tuple[float, float]:
    """‖mean of S_t x − S x‖ / ‖S x‖, and the root of the mean of ‖S_t x − mean‖² / ‖S x‖², for x of 16 columns."""
    x = torch.randn(graph.num_nodes, 16, dtype=DOUBLE, generator=torch.Generator().manual_seed(0)).to(prob.device)
    given: dict[str, Any] = {"normalization": normalization, "dtype": DOUBLE}
    whole = tde.shift_operator(graph, **given) @ x
    total, squares = torch.zeros_like(whole), 0.0
    for first in range(0, draws, BATCH):
        keep = tde.sample_edges(prob, seed=range(first, min(draws, first + BATCH)), graph=graph)
        images = tde.shift_operator(graph, keep, unbiased=by, **given) @ x
        total += images.sum(dim=0)
        squares += float((images**2).sum())
    mean, size = total / draws, float((whole**2).sum())
    bias = float(((mean - whole) ** 2).sum()) / size
    return bias**0.5, ((squares / draws - float((mean**2).sum())) / size) ** 0.5


TABLES = {"masks": masks, "masks-forward": forward, "masks-unbiased": unbiased}

if __name__ == "__main__":
    run(TABLES)
