"""The shift operator S: a fixed pattern with values ``[..., E]``, renormalised for every mask of kept edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tadropedge._support.checks import check_device, check_length, check_probability, check_tensor
from tadropedge._support.memory import check_memory, within_memory
from tadropedge.errors import TadropedgeError, lookup, show
from tadropedge.graph import Graph, check_graph
from tadropedge.operators.pattern import Pattern
from tadropedge.operators.product import as_torch, sparse_product

# A normalisation turns the kept edge values [..., M] and the pattern into the values of the edges, [..., M] where S is
# symmetric, else [..., 2 M] with one for each direction, and of the diagonal, [..., N].
Normalization = Callable[[Tensor, Pattern], tuple[Tensor, Tensor]]

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LEAST = 2.0**-53  # coins are multiples of it, so smaller keep probabilities cannot be told from 0
LANCZOS_STEPS = 1280  # at most; long paths alone need so many
LANCZOS_TOLERANCE = 1e-9  # relative change of the eigenvalue from one estimate to the next


@dataclass(frozen=True, eq=False)
class ShiftOperator:
    """The shift operator S of a subgraph, or those of a batch of subgraphs of one graph.

    ``values [..., E]`` are the values of the entries of ``pattern``; ``shift @ x`` multiplies ``x [..., N, F]``, with
    gradients through x and, where ``values`` require them, through the values.

    >>> graph = Graph.from_edge_index([[0, 1], [1, 2]])
    >>> shift = shift_operator(graph, torch.tensor([True, False]))
    >>> shift
    ShiftOperator(nodes=3, entries=7, batch=())
    >>> (shift @ torch.tensor([[2.0], [4.0], [6.0]])).round(decimals=4).tolist()
    [[3.0], [3.0], [6.0]]
    """

    pattern: Pattern
    values: Tensor
    symmetric: bool = True

    @property
    def shape(self) -> torch.Size:
        """``[..., N, N]``."""
        n = self.pattern.num_nodes
        return torch.Size((*self.values.shape[:-1], n, n))

    def __matmul__(self, x: Tensor) -> Tensor:
        """S x, for x of shape ``[..., N, F]``; batch axes of S and x broadcast."""
        x = self._checked(x)
        try:
            batch = torch.broadcast_shapes(self.values.shape[:-1], x.shape[:-2])
        except RuntimeError:
            raise TadropedgeError(
                f"the batch axes {list(self.values.shape[:-1])} of the shift operator and {list(x.shape[:-2])} of x "
                "do not fit"
            ) from None
        # All batch axes become one. Where only S or only x is a batch, the other is not copied.
        values = self.values.to(x.dtype)
        if values.dim() > 1:
            values = values.expand(*batch, -1).reshape(-1, values.shape[-1])
        signals = x if x.dim() == 2 else x.expand(*batch, *x.shape[-2:]).reshape(-1, *x.shape[-2:])
        return sparse_product(self.pattern, values, signals, symmetric=self.symmetric).view(*batch, *x.shape[-2:])

    def _checked(self, x: object) -> Tensor:
        """Return x if it can be multiplied by S."""
        here, n = self.values.device, self.pattern.num_nodes
        floats = (torch.float32, torch.float64) if here.type == "cpu" else FLOATS
        found = check_tensor("x", x)
        if found.shape[-2:-1] != (n,) or found.dtype not in floats or found.device != here:
            names = "float32 or float64" if here.type == "cpu" else "floating point"
            raise TadropedgeError(
                f"shift @ x needs x of shape [..., {n}, F] in {names} on {here}, got shape {list(found.shape)} "
                f"in {found.dtype} on {found.device}",
                argument="x",
            )
        return found

    def to_sparse_csr(self) -> Tensor:
        """The same operator as a torch CSR tensor ``[..., N, N]``."""
        return as_torch(self.pattern, self.values)

    def to_dense(self) -> Tensor:
        """The same operator as a dense tensor ``[..., N, N]``."""
        need = 2 * self.shape.numel() * self.values.element_size()
        check_memory(need, f"a dense matrix of shape {list(self.shape)}", device=self.values.device)
        places = self.pattern.row * self.pattern.num_nodes + self.pattern.col
        flat = self.values.new_zeros(*self.values.shape[:-1], self.pattern.num_nodes**2)
        return flat.index_copy(-1, places, self.values).view(self.shape)

    def __repr__(self) -> str:
        batch = tuple(self.values.shape[:-1])
        return f"ShiftOperator(nodes={self.pattern.num_nodes}, entries={self.pattern.num_entries}, batch={batch})"


@within_memory("a shift operator", "take fewer subgraphs at once")
def shift_operator(
    graph: Graph,
    keep: Tensor | None = None,
    *,
    normalization: str = "gcn",
    dtype: torch.dtype = torch.float32,
    unbiased: Tensor | None = None,
) -> ShiftOperator:
    """The shift operator of the graph, or of the subgraphs given by ``keep``.

    ``keep`` is a mask of edges ``[..., M]`` as :func:`sample_edges` draws it, or soft edge values in floating point,
    through which gradients flow (not through the eigenvalue of ``spectral``). ``None`` keeps everything. Degrees are
    those of the subgraph.

    ========================  ==========================================
    ``gcn``                   D̃^-1/2 (A + I) D̃^-1/2 with D̃ = D + I
    ``first-order``           I + D^-1/2 A D^-1/2
    ``gcn-residual``          I + D̃^-1/2 (A + I) D̃^-1/2
    ``random-walk``           D̃^-1 (A + I)
    ``neighbour-mean``        D^-1 A
    ``adjacency``             A
    ``spectral``              A / λ_max(A)
    ``laplacian``             D − A
    ``normalized-laplacian``  I − D^-1/2 A D^-1/2
    ========================  ==========================================

    A node that lost all its edges, or whose edges all have weight 0, has only its diagonal entry: 1 where the formula
    adds I, else 0; never NaN.

    ``unbiased`` are the keep probabilities ``[..., M]`` by which ``keep`` was drawn. With them, degrees are those of
    the whole graph and kept entries are divided by their probability, so that the mean over all draws is the
    operator of the whole graph; the diagonal is always that of the whole graph.

    >>> graph = Graph.from_edge_index([[0, 1], [1, 2]])
    >>> prob = torch.tensor([0.5, 0.8])
    >>> thinned = shift_operator(graph, torch.tensor([True, False]), unbiased=prob)
    >>> thinned.to_dense().div(shift_operator(graph).to_dense()).nan_to_num().tolist()
    [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    check_graph(graph, edges=False)
    normalize = lookup("normalization", normalization, NORMALIZATIONS)
    if not isinstance(dtype, torch.dtype) or dtype not in FLOATS:
        raise TadropedgeError(
            f"dtype must be a floating point type of torch, got {show(dtype, typed=False)}", argument="dtype"
        )
    everything = torch.ones(graph.num_edges, dtype=dtype, device=graph.device)
    kept = everything if keep is None else _checked_keep(graph, keep).to(dtype)
    if unbiased is not None and keep is not None:
        kept = kept / _checked_prob(graph, unbiased, kept).to(dtype).clamp_min(max(LEAST, torch.finfo(dtype).tiny))
        return reweighted(shift_operator(graph, normalization=normalization, dtype=dtype), kept)
    if graph.weight is not None:
        kept = kept * graph.weight.to(dtype)
    return placed(graph.pattern, *normalize(kept, graph.pattern))


def placed(pattern: Pattern, edges: Tensor, diagonal: Tensor) -> ShiftOperator:
    """Put the values of edges, ``[..., M]`` or ``[..., 2 M]``, and of the diagonal ``[..., N]`` into the pattern."""
    symmetric = edges.shape[-1] == pattern.num_pairs  # one value stands for both directions of an edge
    source = pattern.pair_source if symmetric else pattern.source
    values = torch.cat((edges, diagonal), dim=-1).index_select(-1, source)
    return ShiftOperator(pattern, values, symmetric)


def reweighted(whole: ShiftOperator, factors: Tensor) -> ShiftOperator:
    """Multiply both entries of each edge by its factor ``[..., M]``; the diagonal stays as it is."""
    pattern = whole.pattern
    ones = factors.new_ones((*factors.shape[:-1], pattern.num_nodes))
    values = torch.cat((factors, ones), dim=-1).index_select(-1, pattern.pair_source) * whole.values
    return ShiftOperator(pattern, values, whole.symmetric)


def _checked_keep(graph: Graph, keep: object) -> Tensor:
    """Return ``keep`` if it is a mask or soft values, ``[..., M]`` on the device of the graph."""
    found = check_length("keep", keep, graph.num_edges, "edge of the graph")
    check_device("keep", found, graph.device, "the graph")
    if found.dtype != torch.bool and not found.is_floating_point():
        raise TadropedgeError(f"keep must be a bool mask or floating point values, got {found.dtype}", argument="keep")
    if found.is_floating_point() and not bool(((found >= 0) & torch.isfinite(found)).all()):
        raise TadropedgeError("soft values of keep must be finite and at least 0", argument="keep")
    return found


def _checked_prob(graph: Graph, prob: object, kept: Tensor) -> Tensor:
    """Return the keep probabilities ``[..., M]`` if all are positive and their shape fits ``kept``."""
    found = check_length("unbiased", prob, graph.num_edges, "edge of the graph")
    check_device("unbiased", found, graph.device, "the graph")
    found = check_probability("unbiased", found)
    if not bool((found > 0).all()):
        raise TadropedgeError(
            "unbiased needs keep probabilities above 0, got 0: an edge that is never kept cannot be made up for by "
            "dividing; use a larger budget, or a rule or score that gives every edge a chance",
            argument="unbiased",
        )
    try:
        torch.broadcast_shapes(kept.shape, found.shape)
    except RuntimeError:
        raise TadropedgeError(
            f"unbiased has shape {list(found.shape)}, which does not fit keep of shape {list(kept.shape)}",
            argument="unbiased",
        ) from None
    return found


# -- normalisations --------------------------------------------------------------------------------------


def _degrees(kept: Tensor, pattern: Pattern, start: float) -> Tensor:
    """The row sums of A, each plus ``start``, ``[..., N]``: with 1 the degrees of A + I."""
    low, high = pattern.pairs
    degrees = kept.new_full((*kept.shape[:-1], pattern.num_nodes), start)
    degrees.scatter_add_(-1, low.expand_as(kept), kept)
    return degrees.scatter_add_(-1, high.expand_as(kept), kept)


def _positive(degrees: Tensor) -> Tensor:
    """Where a degree counts as positive: of a number below the least normal one, 1 / degree may overflow."""
    return degrees >= torch.finfo(degrees.dtype).tiny


def _safe_power(degrees: Tensor, power: float) -> Tensor:
    """``degrees ** power``, and zero (with zero gradient) where the degree is zero."""
    positive = _positive(degrees)
    return torch.where(positive, torch.where(positive, degrees, 1.0) ** power, 0.0)


def _scaled(kept: Tensor, pattern: Pattern, scale: Tensor) -> Tensor:
    """kept_ij · scale_i · scale_j."""
    low, high = pattern.pairs
    return scale.index_select(-1, low) * scale.index_select(-1, high) * kept


def _rows_scaled(kept: Tensor, pattern: Pattern, scale: Tensor) -> Tensor:
    """scale_i · kept_ij, one value per direction."""
    return scale.index_select(-1, pattern.pairs.flatten()) * torch.cat((kept, kept), dim=-1)


def _gcn(kept: Tensor, pattern: Pattern) -> tuple[Tensor, Tensor]:
    scale = _degrees(kept, pattern, 1.0).rsqrt()  # degrees are at least 1, by the self-loop
    return _scaled(kept, pattern, scale), scale * scale


def _gcn_residual(kept: Tensor, pattern: Pattern) -> tuple[Tensor, Tensor]:
    edges, diagonal = _gcn(kept, pattern)
    return edges, diagonal + 1


def _first_order(kept: Tensor, pattern: Pattern) -> tuple[Tensor, Tensor]:
    degrees = _degrees(kept, pattern, 0.0)
    return _scaled(kept, pattern, _safe_power(degrees, -0.5)), torch.ones_like(degrees)


def _random_walk(kept: Tensor, pattern: Pattern) -> tuple[Tensor, Tensor]:
    inverse = _degrees(kept, pattern, 1.0).reciprocal()
    return _rows_scaled(kept, pattern, inverse), inverse


def _neighbour_mean(kept: Tensor, pattern: Pattern) -> tuple[Tensor, Tensor]:
    inverse = _safe_power(_degrees(kept, pattern, 0.0), -1.0)
    return _rows_scaled(kept, pattern, inverse), torch.zeros_like(inverse)


def _adjacency(kept: Tensor, pattern: Pattern) -> tuple[Tensor, Tensor]:
    return kept, kept.new_zeros((*kept.shape[:-1], pattern.num_nodes))


def _laplacian(kept: Tensor, pattern: Pattern) -> tuple[Tensor, Tensor]:
    return -kept, _degrees(kept, pattern, 0.0)


def _normalized_laplacian(kept: Tensor, pattern: Pattern) -> tuple[Tensor, Tensor]:
    degrees = _degrees(kept, pattern, 0.0)
    return -_scaled(kept, pattern, _safe_power(degrees, -0.5)), _positive(degrees).to(kept.dtype)


def _spectral(kept: Tensor, pattern: Pattern) -> tuple[Tensor, Tensor]:
    edges, diagonal = _adjacency(kept, pattern)
    top = _largest_eigenvalue(placed(pattern, edges.detach().double(), diagonal.double()))
    top = torch.where(_positive(top.to(kept.dtype)), top, 0.0)
    return edges * _safe_power(top, -1.0).to(kept.dtype)[..., None], diagonal


NORMALIZATIONS: dict[str, Normalization] = {
    "gcn": _gcn,
    "first-order": _first_order,
    "gcn-residual": _gcn_residual,
    "random-walk": _random_walk,
    "neighbour-mean": _neighbour_mean,
    "adjacency": _adjacency,
    "spectral": _spectral,
    "laplacian": _laplacian,
    "normalized-laplacian": _normalized_laplacian,
}


@torch.no_grad()
def _largest_eigenvalue(shift: ShiftOperator) -> Tensor:
    """The largest eigenvalue of each symmetric non-negative operator, ``[...]``, by Lanczos in float64.

    The all-ones start overlaps the Perron vector of every component, and for the largest eigenvalue neither
    lost orthogonality nor a spectrum symmetric about zero (bipartite graphs) does harm. The eigenvalue is estimated
    after 10, 20, 40, … steps: each time its error falls at least to a quarter, so a change below the tolerance bounds
    the error that is left. Few steps are enough but on long paths, where ``LANCZOS_STEPS`` give seven digits.
    """
    batch, n = shift.values.shape[:-1], shift.pattern.num_nodes
    q = shift.values.new_full((*batch, n, 1), n**-0.5)
    before, beta, top = torch.zeros_like(q), q.new_zeros((*batch, 1, 1)), q.new_zeros(batch)
    steps, next_estimate = min(n, LANCZOS_STEPS), min(n, 10)
    diagonal: list[Tensor] = []
    off_diagonal: list[Tensor] = []
    for step in range(1, steps + 1):
        image = shift @ q - beta * before
        alpha = (image * q).sum(dim=-2, keepdim=True)
        image -= alpha * q
        beta = image.norm(dim=-2, keepdim=True)
        diagonal.append(alpha[..., 0, 0])
        if step == next_estimate:
            last, top = top, _largest_of_tridiagonal(diagonal, off_diagonal)
            next_estimate = min(2 * next_estimate, steps)
            if bool((top - last <= LANCZOS_TOLERANCE * top).all()):
                break
        off_diagonal.append(beta[..., 0, 0])
        # Where the Krylov subspace is complete (beta = 0), zero vectors follow, which change nothing.
        complete = beta <= 1e-12 * alpha.abs().clamp_min(1e-300)
        before, q = q, torch.where(complete, 0.0, image / beta.clamp_min(1e-300))
    return top


def _largest_of_tridiagonal(diagonal: list[Tensor], off_diagonal: list[Tensor]) -> Tensor:
    """The largest eigenvalue of each symmetric tridiagonal matrix, ``[...]``."""
    matrix = torch.diag_embed(torch.stack(diagonal, dim=-1))
    if off_diagonal:
        matrix += torch.diag_embed(torch.stack(off_diagonal, dim=-1), offset=-1)  # the lower half is all that is read
    values: Tensor = torch.linalg.eigvalsh(matrix)
    return values[..., -1]
