"""How much the outputs of a network vary over the subgraphs that edge dropping draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tadropedge._old.checks import as_integer, ask, check_flag, check_function, check_integer, check_length, check_tensor
from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.graph import Graph, check_graph
from tadropedge._old.memory import within_memory
from tadropedge._old.sampling import sample_edges
from tadropedge._old.shift import ShiftOperator, shift_operator

NETWORK = "network(shift of T subgraphs) -> outputs [T, N, F]"
Network = Callable[[ShiftOperator], Tensor]  # subgraphs [T] -> outputs [T, N, F]


@dataclass(frozen=True, eq=False)
class OutputVariance:
    """What :func:`output_variance` found.

    ``value`` is the estimate, without bias, and ``standard_error`` its error; ``terms [samples − 1]`` is what it is the
    mean of. ``deviations [samples]`` are the squared distances from the output on the whole graph instead of from the
    mean output. Two methods that were measured with the same seed share their coins, so both come in pairs.
    """

    value: float
    standard_error: float
    terms: Tensor
    deviations: Tensor


@within_memory("outputs on many subgraphs", "take a smaller batch")
def output_variance(
    network: Network,
    graph: Graph,
    prob: Tensor,
    *,
    samples: int = 100,
    seed: int = 0,
    normalization: str = "gcn",
    batch: int = 8,
    unbiased: bool = False,
) -> OutputVariance:
    """Σ_i (1/F_L) Σ_j var[Φ_ij] over subgraphs that keep each edge with its probability ``prob [M]``.

    ``network`` maps a shift operator of T subgraphs to outputs ``[T, N, F_L]``. Subgraph s is drawn with the coins of
    (``seed``, epoch s), so the result does not depend on ``batch``, how many subgraphs are looked at together.

    With ``unbiased``, degrees are those of the whole graph and kept entries are divided by their probability, as in
    :func:`tadropedge.shift_operator`; the same coins, so that the two ways can be compared pair by pair.

    One pass, and the outputs of one batch alone are stored (Welford): the distance of each output from the mean of
    those before it, scaled by (s − 1)/s, is an estimate of the variance by itself. Their mean is the usual unbiased
    one, their spread its error.

    >>> graph = Graph.from_edge_index([[0], [1]])
    >>> row = torch.tensor([[1.0], [0.0]])
    >>> found = output_variance(lambda S: S @ row, graph, torch.tensor([0.5]), samples=2000, normalization="adjacency")
    >>> abs(found.value - 0.25) < 4 * found.standard_error  # one coin: p (1 − p)
    True
    >>> doubled = output_variance(
    ...     lambda S: S @ row, graph, torch.tensor([0.5]), samples=2000, normalization="adjacency", unbiased=True
    ... )
    >>> bool(doubled.value == 4 * found.value)  # its entry is 2 or 0
    True
    """
    check_graph(graph)
    check_function("network", network, NETWORK)
    if check_length("prob", prob, graph.num_edges, "edge of the graph").dim() != 1:
        raise TadropedgeError(f"prob must have shape [{graph.num_edges}], got {list(prob.shape)}")
    if as_integer(seed) is None:
        raise TadropedgeError(f"seed must be a whole number, got {show(seed, typed=False)}")
    samples = check_integer("samples", samples, least=3)
    batch = check_integer("batch", batch, least=1)
    unbiased = check_flag("unbiased", unbiased)
    sums: Tensor | float = 0.0  # of what the subgraphs so far moved
    terms: list[Tensor] = []
    deviations: list[Tensor] = []
    with torch.no_grad():
        everything = torch.ones(1, graph.num_edges, dtype=torch.bool, device=graph.device)
        whole = _outputs(network, shift_operator(graph, everything, normalization=normalization)).to(torch.float64)
        for start in range(0, samples, batch):
            epochs = range(start, min(start + batch, samples))
            keep = torch.stack([sample_edges(prob, seed=seed, epoch=epoch) for epoch in epochs])
            shift = shift_operator(graph, keep, normalization=normalization, unbiased=prob if unbiased else None)
            moved = _outputs(network, shift) - whole
            deviations.append(_size(moved))
            before = torch.arange(start, epochs.stop, device=moved.device)
            after = moved.cumsum(dim=0) + sums
            mean = (after - moved) / before.clamp_min(1)[:, None, None]
            terms.append(_size(moved - mean) * (before / (before + 1)))
            sums = after[-1]
    found = torch.cat(terms)[1:].cpu()  # before the first there is no mean
    error = float(found.std() / len(found) ** 0.5)
    return OutputVariance(float(found.mean()), error, found, torch.cat(deviations).cpu())


def _size(outputs: Tensor) -> Tensor:
    """Σ_i (1/F) Σ_j of the squares, ``[T]`` of outputs ``[T, N, F]``."""
    return outputs.square().sum(dim=(1, 2)) / outputs.shape[-1]


def _outputs(network: Network, shift: ShiftOperator) -> Tensor:
    """What the user's network returns for some subgraphs, after a look at its shape."""
    outputs = check_tensor("the output of the network", ask("the network", NETWORK, network, shift))
    count, nodes = shift.values.shape[0], shift.pattern.num_nodes
    if outputs.dim() != 3 or outputs.shape[:2] != (count, nodes):
        raise TadropedgeError(
            f"the network must return outputs [{count}, {nodes}, F] for {count} subgraphs, "
            f"got shape {list(outputs.shape)}"
        )
    return outputs
