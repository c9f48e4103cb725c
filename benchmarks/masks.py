"""Masks, operators and a layer's forward with dropped edges, against PyG's ways in one run.

* ``masks``: the mask of an epoch alone and with its normalised operator (``sample_edges``, ``shift_operator``) against
  ``dropout_edge(force_undirected=True)`` and ``gcn_norm``; masks that keep components against SciPy's forest alone;
* ``masks-forward``: mask, operator and its product with 64 or 128 columns, at several shares of kept edges, against the
  best of PyG's ways: messages along the edge list, a CSR tensor, an ``EdgeIndex`` sorted by rows;
* ``masks-unbiased``: how far thinned operators of Cora are from the whole one, on average (bias) and one by one
  (spread), renormalised and unbiased, in shares of the norm of S x. The bias of an unbiased one is what chance leaves.

``bound_ms`` is that of copying as many bytes as any method must read and write: a number for each pair and each entry
of the operator, and the signals before and after.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import minimum_spanning_tree
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import dropout_edge, scatter, to_torch_csr_tensor

import tadropedge as tde
from benchmarks.frame import Row, beside, medians, run
from benchmarks.graphs import data_of, graph_of

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


def epochs(call: Callable[[int], object]) -> Callable[[], object]:
    """A call with the next epoch each time."""
    count = iter(range(2**31))
    return lambda: call(next(count))


def copying(count: int, device: str) -> Callable[[], object]:
    """Moves so many bytes: half of them are read, half written."""
    one = torch.zeros(max(1, count // 2), dtype=torch.uint8, device=device)
    other = torch.empty_like(one)
    return lambda: other.copy_(one)


def masks(options: Namespace) -> Iterator[Row]:
    """Masks, and masks with their operators."""
    for name in ("tiny",) if options.quick else GRAPHS:
        graph, edge_index = graph_of(name).to(options.device), data_of(name).edge_index.to(options.device)
        nodes, prob = graph.num_nodes, torch.full((graph.num_edges,), KEEP, dtype=DOUBLE, device=options.device)

        def sampled(epoch: int, graph: tde.Graph = graph, prob: Tensor = prob, **wanted: bool) -> Tensor:
            return tde.sample_edges(prob, seed=0, epoch=epoch, graph=graph, **wanted)

        def dropped(edge_index: Tensor = edge_index) -> Tensor:
            return dropout_edge(edge_index, p=1 - KEEP, force_undirected=True)[0]

        low, high = graph.pairs.cpu().numpy()
        order = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(0)).numpy() + 1e-6
        weights = csr_matrix((order, (low, high)), (nodes, nodes))
        both = tde.keep_probabilities(tde.edge_scores(graph, "degree"), rule="proportional", keep_ratio=0.9)

        def operator(epoch: int, graph: tde.Graph = graph, sampled: Any = sampled) -> object:
            return tde.shift_operator(graph, sampled(epoch))

        def normalised(nodes: int = nodes, dropped: Any = dropped) -> object:
            return gcn_norm(dropped(), None, nodes)

        connected = partial(sampled, prob=both, connected=True)
        forest = partial(minimum_spanning_tree, weights)
        cases: dict[str, tuple[Any, str, Any, int]] = {
            "mask": (sampled, "dropout_edge", dropped, 0),
            "mask and operator": (operator, "gcn_norm", normalised, 4 * graph.pattern.num_entries),
            "mask, connected": (connected, "SciPy's forest alone", forest, 0),
            "mask, exact": (partial(sampled, exact=True), "dropout_edge", dropped, 0),
        }
        for what, (ours, way, theirs, more) in cases.items():
            row: Row = {"graph": name, "edges": graph.num_edges, "what": what}
            row |= beside(epochs(ours), {way: theirs}, 0.1 if options.quick else 2, options.device, peer="peer")
            least = copying(9 * graph.num_edges + more, options.device)  # a probability in, an answer out
            yield row | {"bound_ms": 1e3 * medians({"bound": least}, 0.1, options.device)["bound"]}


def ways_of_pyg(edge_index: Tensor, nodes: int, x: Tensor, share: float) -> dict[str, Callable[[], Tensor]]:
    """A layer's forward of PyG's, without its dense product: edges dropped, normalised, multiplied."""

    def normalised() -> tuple[Tensor, Tensor]:
        kept = edge_index if share == 1 else dropout_edge(edge_index, p=1 - share, force_undirected=True)[0]
        return gcn_norm(kept, None, nodes)

    def edge_list() -> Tensor:
        places, values = normalised()
        return scatter(values[:, None] * x[places[0]], places[1], dim_size=nodes)

    def csr() -> Tensor:
        places, values = normalised()
        return to_torch_csr_tensor(places, values, size=nodes) @ x

    def edge_index_of_pyg() -> Tensor:
        places, values = normalised()
        index = EdgeIndex(places.to(torch.int32), sparse_size=(nodes, nodes), is_undirected=True)
        index, order = index.sort_by("row")
        return index.matmul(x, values[order])

    return {"edge list": edge_list, "CSR": csr, "EdgeIndex": edge_index_of_pyg}


def forward(options: Namespace) -> Iterator[Row]:
    """A layer's forward with dropped edges."""
    device = options.device
    for name in ("tiny",) if options.quick else GRAPHS:
        graph, edge_index = graph_of(name).to(device), data_of(name).edge_index.to(device)
        for share in SHARES:
            prob = torch.full((graph.num_edges,), share, dtype=DOUBLE, device=device)
            for width in WIDTHS:
                x = torch.randn(graph.num_nodes, width, device=device)

                def ours(epoch: int, graph: tde.Graph = graph, prob: Tensor = prob, x: Tensor = x) -> Tensor:
                    keep = None if float(prob[0]) == 1 else tde.sample_edges(prob, seed=0, epoch=epoch, graph=graph)
                    return tde.shift_operator(graph, keep) @ x

                row: Row = {"graph": name, "edges": graph.num_edges, "features": width, "share": share}
                ways = ways_of_pyg(edge_index, graph.num_nodes, x, share)
                row |= beside(epochs(ours), ways, 0.1 if options.quick else 1.5, device)
                least = 9 * graph.num_edges + 4 * graph.pattern.num_entries + 8 * x.numel()
                bound = medians({"bound": copying(least, device)}, 0.1, device)["bound"]
                yield row | {"bound_ms": 1e3 * bound}


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
                count = min(draws, 200) if slow else draws
                bias, spread = measured(graph, normalization, prob, count, by)
                row |= {f"{name}_draws": count, f"{name}_bias": bias, f"{name}_spread": spread}
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
