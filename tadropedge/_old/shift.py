"""The shift operator S: a fixed pattern with values ``[..., E]``, renormalised for every mask of kept edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from scipy.linalg import eigvalsh_tridiagonal
from torch import Tensor

from tadropedge._old.checks import check_device, check_flag, check_length, check_probability, check_tensor
from tadropedge._old.errors import ConvergenceError, TadropedgeError, lookup, show
from tadropedge._old.graph import Graph
from tadropedge._old.memory import LARGE, check_memory, within_memory
from tadropedge._old.pattern import Pattern
from tadropedge._old.sparse import hush_beta_warning, sparse_product

# A normalisation turns the kept edge values [..., M] (or [..., 2 M], one per direction) and the pattern into
# the values of the edges, [..., M] where S is symmetric, else [..., 2 M], and of the diagonal, [..., N].
Normalization = Callable[[Tensor, Pattern], tuple[Tensor, Tensor]]

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LEAST = 2.0**-53  # a keep probability below which no coin is ever kept
LANCZOS_STEPS = 10_000
LANCZOS_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class ShiftOperator:
    """S_t of one subgraph, or of a batch of subgraphs of one graph.

    ``values [..., E]`` stand at the places of ``pattern``; ``shift @ x`` multiplies ``x [..., N, F]``, with
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
        n = self.pattern.num_nodes
        if check_tensor("x", x).dim() < 2 or x.shape[-2] != n:
            raise TadropedgeError(f"shift @ x needs x of shape [..., {n}, F], got {list(x.shape)}")
        check_device("x", x, self.values.device, "the shift operator")
        if not x.is_floating_point():
            raise TadropedgeError(f"shift @ x needs a dense floating point x, got {x.dtype} ({x.layout})")
        if x.device.type == "cpu" and x.dtype not in (torch.float32, torch.float64):
            raise TadropedgeError(f"on a CPU shift @ x needs x in float32 or float64, got {x.dtype}")
        try:
            batch = torch.broadcast_shapes(self.values.shape[:-1], x.shape[:-2])
        except RuntimeError:
            raise TadropedgeError(
                f"the batch axes {list(self.values.shape[:-1])} of the shift operator and {list(x.shape[:-2])} of x "
                "do not fit"
            ) from None
        # Several batch axes become one; an axis that S or x lacks is not copied.
        values = self.values.to(x.dtype)
        if values.dim() > 1:
            values = values.expand(*batch, -1).reshape(-1, values.shape[-1])
        signals = x if x.dim() == 2 else x.expand(*batch, *x.shape[-2:]).reshape(-1, *x.shape[-2:])
        product = sparse_product(self.pattern.places, values, signals, symmetric=self.symmetric)
        return product.view(*batch, *x.shape[-2:])

    def to_sparse_csr(self) -> Tensor:
        """The same operator as a torch CSR tensor ``[..., N, N]``."""
        batch = self.values.shape[:-1]
        hush_beta_warning()
        crow = self.pattern.crow.expand(*batch, -1)
        col = self.pattern.col.expand(*batch, -1)
        return torch.sparse_csr_tensor(crow, col, self.values, self.shape, check_invariants=False)

    def to_dense(self) -> Tensor:
        """The same operator as a dense tensor ``[..., N, N]``."""
        need = 2 * self.shape.numel() * self.values.element_size()
        if need > LARGE:
            check_memory(need, f"a dense matrix of shape {list(self.shape)}", device=self.values.device)
        places = self.pattern.row * self.pattern.num_nodes + self.pattern.col
        flat = self.values.new_zeros(*self.values.shape[:-1], self.pattern.num_nodes**2)
        return flat.index_copy(-1, places, self.values).view(self.shape)

    def with_values(self, values: Tensor, symmetric: bool = False) -> ShiftOperator:
        """The same places with other values ``[..., E]``, for instance learned ones."""
        check_length("values", values, self.pattern.num_entries, "entry of the pattern")
        check_device("values", values, self.values.device, "the shift operator")
        if not values.is_floating_point():
            raise TadropedgeError(f"values must be floating point, got {values.dtype}")
        return replace(self, values=values, symmetric=check_flag("symmetric", symmetric))

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

    ``keep`` is a mask of edges ``[..., M]`` as :func:`sample_edges` draws it, a mask of directed entries
    ``[..., 2 M]`` as :func:`sample_directed` draws it, or soft edge values in floating point, through which
    gradients flow (not through the eigenvalue of ``spectral``). ``None`` keeps everything. Degrees are those of the
    subgraph.

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

    A node that lost all its edges has only its diagonal entry, 1 where the formula adds I, else 0; never NaN.

    ``unbiased`` are the keep probabilities ``[..., M]`` by which ``keep`` was drawn. With them, degrees are those of
    the whole graph and kept entries are divided by their probability, so that the mean of S_t over all draws is S; the
    diagonal is that of S.

    >>> graph = Graph.from_edge_index([[0, 1], [1, 2]])
    >>> prob = torch.tensor([0.5, 0.8])
    >>> thinned = shift_operator(graph, torch.tensor([True, False]), unbiased=prob)
    >>> thinned.to_dense().div(shift_operator(graph).to_dense()).nan_to_num().tolist()
    [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    if not isinstance(graph, Graph):
        raise TadropedgeError(f"expected a tadropedge.Graph, got {show(graph)}")
    normalize = lookup("normalization", normalization, NORMALIZATIONS)
    check_dtype(dtype)
    if unbiased is not None:
        whole = shift_operator(graph, normalization=normalization, dtype=dtype)
        return whole if keep is None else reweighted(whole, _kept_over(graph, keep, unbiased, dtype))
    pattern = graph.pattern
    kept = _kept(graph, keep, dtype)
    return placed(pattern, *normalize(kept, pattern))


def placed(pattern: Pattern, edges: Tensor, diagonal: Tensor) -> ShiftOperator:
    """The operator of the edge values ``[..., M]``, or ``[..., 2 M]``, and the diagonal ``[..., N]``."""
    symmetric = edges.shape[-1] == pattern.num_pairs  # one value stands for both directions of an edge
    source = pattern.pair_source if symmetric else pattern.source
    values = torch.cat((edges, diagonal), dim=-1).index_select(-1, source)
    return ShiftOperator(pattern, values, symmetric)


def reweighted(whole: ShiftOperator, factors: Tensor) -> ShiftOperator:
    """The entries of each edge times its factor, ``[..., M]`` or ``[..., 2 M]`` as in a mask; the diagonal as it is."""
    pattern = whole.pattern
    ones = factors.new_ones((*factors.shape[:-1], pattern.num_nodes))
    same = factors.shape[-1] == pattern.num_pairs
    places = pattern.pair_source if same else pattern.source
    values = torch.cat((factors, ones), dim=-1).index_select(-1, places) * whole.values
    return ShiftOperator(pattern, values, whole.symmetric and same)


def _kept_over(graph: Graph, keep: Tensor, prob: object, dtype: torch.dtype) -> Tensor:
    """What is kept, divided by its keep probability; refused where that is 0."""
    kept = check_keep(graph, keep)
    found = check_tensor("unbiased", prob)
    if found.dim() < 1 or found.shape[-1] != graph.num_edges:
        raise TadropedgeError(
            f"unbiased must be the keep probabilities [..., {graph.num_edges}], got shape {list(found.shape)}"
        )
    check_device("unbiased", found, graph.device, "the graph")
    found = check_positive_probability("unbiased", found)
    if kept.shape[-1] != graph.num_edges:
        found = torch.cat((found, found), dim=-1)
    try:
        torch.broadcast_shapes(kept.shape, found.shape)
    except RuntimeError:
        raise TadropedgeError(
            f"unbiased has shape {list(found.shape)}, which does not fit keep of shape {list(kept.shape)}"
        ) from None
    return kept.to(dtype) / found.to(dtype)


def check_positive_probability(name: str, prob: Tensor) -> Tensor:
    """Return keep probabilities that can be divided by."""
    prob = check_probability(name, prob)
    if not bool((prob > 0).all()):
        raise TadropedgeError(
            f"{name} needs keep probabilities above 0, got 0: an edge that is never kept cannot be made up for by "
            "dividing; use a larger budget, or a rule or score that gives every edge a chance"
        )
    return prob


def _kept(graph: Graph, keep: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The values of A on the kept edges: ``[..., M]``, or ``[..., 2 M]`` with one value per direction."""
    m = graph.num_edges
    everything = torch.ones(m if keep is None else 0, dtype=dtype, device=graph.device)
    kept = everything if keep is None else check_keep(graph, keep).to(dtype)
    if graph.weight is None:
        return kept
    weight = graph.weight.to(dtype)
    return kept * (weight if kept.shape[-1] == m else weight.repeat(2))


def check_dtype(dtype: object) -> None:
    """Refuse what values of an operator cannot have."""
    if not isinstance(dtype, torch.dtype) or dtype not in FLOATS:
        raise TadropedgeError(f"dtype must be a floating point type of torch, got {show(dtype, typed=False)}")


def check_keep(graph: Graph, keep: object) -> Tensor:
    """Return what is kept if it is a mask or soft values, ``[..., M]`` or ``[..., 2 M]``, where the graph lies."""
    m, found = graph.num_edges, check_tensor("keep", keep)
    if found.dim() < 1 or found.shape[-1] not in (m, 2 * m):
        raise TadropedgeError(
            f"keep must have shape [..., {m}] (edges) or [..., {2 * m}] (directed entries), got {list(found.shape)}"
        )
    check_device("keep", found, graph.device, "the graph")
    if not (found.dtype == torch.bool or found.is_floating_point()):
        raise TadropedgeError(f"keep must be a bool mask or floating point values, got {found.dtype}")
    if found.is_floating_point() and not bool(((found >= 0) & torch.isfinite(found)).all()):
        raise TadropedgeError("soft values of keep must be finite and at least 0")
    return found


# -- normalisations -------------------------------------------------------------------------------------


def _ends(kept: Tensor, pattern: Pattern) -> tuple[Tensor, Tensor]:
    """Rows and columns of the edge values."""
    low, high = pattern.pairs
    if kept.shape[-1] == pattern.num_pairs:
        return low, high
    return torch.cat((low, high)), torch.cat((high, low))


def _degrees(kept: Tensor, pattern: Pattern, start: float) -> Tensor:
    """``start`` plus the row sums of A, ``[..., N]``."""
    if pattern.summed is not None and pattern.summed[0] is kept:
        return pattern.summed[1] + start
    degrees = kept.new_full((*kept.shape[:-1], pattern.num_nodes), start)
    low, high = pattern.pairs
    if kept.shape[-1] == pattern.num_pairs:
        degrees.scatter_add_(-1, low.expand_as(kept), kept)
        return degrees.scatter_add_(-1, high.expand_as(kept), kept)
    rows = torch.cat((low, high))
    return degrees.scatter_add_(-1, rows.expand_as(kept), kept)


def _safe_power(degrees: Tensor, power: float) -> Tensor:
    """``degrees ** power``, and zero (with zero gradient) where the degree is zero."""
    positive = degrees > 0
    return torch.where(positive, torch.where(positive, degrees, 1.0) ** power, 0.0)


def _scaled(kept: Tensor, pattern: Pattern, scale: Tensor) -> Tensor:
    """kept_ij · scale_i · scale_j."""
    rows, cols = _ends(kept, pattern)
    return scale.index_select(-1, rows) * scale.index_select(-1, cols) * kept


def _gcn(kept: Tensor, pattern: Pattern) -> tuple[Tensor, Tensor]:
    scale = _degrees(kept, pattern, 1.0).rsqrt()  # at least one: no node is without its own loop
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


def _rows_scaled(kept: Tensor, pattern: Pattern, scale: Tensor) -> Tensor:
    """scale_i · kept_ij, one value per direction."""
    low, high = pattern.pairs
    rows = torch.cat((low, high))
    both = kept if kept.shape[-1] == 2 * pattern.num_pairs else torch.cat((kept, kept), dim=-1)
    return scale.index_select(-1, rows) * both


def _adjacency(kept: Tensor, pattern: Pattern) -> tuple[Tensor, Tensor]:
    return kept, kept.new_zeros((*kept.shape[:-1], pattern.num_nodes))


def _laplacian(kept: Tensor, pattern: Pattern) -> tuple[Tensor, Tensor]:
    return -kept, _degrees(kept, pattern, 0.0)


def _normalized_laplacian(kept: Tensor, pattern: Pattern) -> tuple[Tensor, Tensor]:
    degrees = _degrees(kept, pattern, 0.0)
    return -_scaled(kept, pattern, _safe_power(degrees, -0.5)), (degrees > 0).to(kept.dtype)


def _spectral(kept: Tensor, pattern: Pattern) -> tuple[Tensor, Tensor]:
    if kept.shape[-1] != pattern.num_pairs:
        raise TadropedgeError("spectral normalization needs a mask of edges [..., M], not of directed entries")
    edges, diagonal = _adjacency(kept, pattern)
    with torch.no_grad():
        values = torch.cat((edges, diagonal), dim=-1).to(torch.float64).index_select(-1, pattern.pair_source)
        top = largest_eigenvalue(ShiftOperator(pattern, values))
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


def largest_eigenvalue(shift: ShiftOperator) -> Tensor:
    """The largest eigenvalue of each symmetric non-negative operator, ``[...]``, by Lanczos in float64.

    The all-ones start overlaps the Perron vector of every component, and for the largest eigenvalue neither
    lost orthogonality nor a spectrum symmetric about zero (bipartite graphs) does harm. The estimate is checked
    after 10, 20, 40, … steps: between two checks the error falls at least to a quarter, so a change below the
    tolerance bounds the remaining error.
    """
    batch, n = shift.values.shape[:-1], shift.pattern.num_nodes
    q = torch.full((*batch, n, 1), n**-0.5, dtype=torch.float64, device=shift.values.device)
    before, beta = torch.zeros_like(q), q.new_zeros((*batch, 1, 1))
    alphas: list[Tensor] = []
    betas: list[Tensor] = []
    top, look = q.new_zeros(batch), 10
    for step in range(1, min(n, LANCZOS_STEPS) + 1):
        image = shift @ q - beta * before
        alpha = (image * q).sum(dim=-2, keepdim=True)
        image = image - alpha * q
        beta = image.norm(dim=-2, keepdim=True)
        alphas.append(alpha[..., 0, 0])
        if step in (look, n):
            last, top, look = top, _largest_of_tridiagonal(alphas, betas), 2 * look
            if step == n or bool((top - last <= LANCZOS_TOLERANCE * top).all()):
                return top
        betas.append(beta[..., 0, 0])
        # A subspace that closed (beta = 0) goes on with zeros, which change nothing.
        closed = beta <= 1e-12 * alpha.abs().clamp_min(1e-300)
        before, q = q, torch.where(closed, 0.0, image / beta.clamp_min(1e-300))
    raise ConvergenceError(
        f"the largest eigenvalue of an adjacency of {n} nodes was not found in {LANCZOS_STEPS} steps; "
        "use another normalization than 'spectral'"
    )


def _largest_of_tridiagonal(alphas: list[Tensor], betas: list[Tensor]) -> Tensor:
    """The largest eigenvalue of each symmetric tridiagonal matrix, ``[...]``."""
    diagonal = torch.stack(alphas, dim=-1)
    side = torch.stack(betas, dim=-1) if betas else diagonal[..., :0]
    size = diagonal.shape[-1]
    count = diagonal[..., 0].numel()  # not −1: a matrix of one number has no side
    flat = (part.reshape(count, -1 if part.numel() else 0).cpu().numpy() for part in (diagonal, side))
    rows = zip(*flat, strict=True)
    tops = [eigvalsh_tridiagonal(d, e, select="i", select_range=(size - 1, size - 1))[0] for d, e in rows]
    return diagonal.new_tensor(tops).view(diagonal.shape[:-1])
