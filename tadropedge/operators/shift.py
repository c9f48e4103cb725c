"""The shift operator S of a subgraph, ``diag(d) + diag(l) A diag(r)``, renormalised for every mask of kept edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from tadropedge._support.checks import check_device, check_length, check_probability, check_tensor
from tadropedge._support.memory import check_memory, within_memory
from tadropedge.errors import TadropedgeError, lookup, show
from tadropedge.graph import Graph, check_graph
from tadropedge.operators.kernels import kernels
from tadropedge.operators.kernels.words import broadcast
from tadropedge.operators.pattern import Pattern, Scales
from tadropedge.operators.product import sparse_product

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LEAST = 2.0**-53  # coins are multiples of it, so smaller keep probabilities cannot be told from 0
LANCZOS_STEPS = 1280  # at most; long paths alone need so many
LANCZOS_TOLERANCE = 1e-9  # relative change of the eigenvalue from one estimate to the next


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The symmetric matrix A of a subgraph's edges, or those of a batch of subgraphs of one graph.

    ``weights [..., M]`` are a mask of kept edges, or numbers of the type ``dtype``.
    """

    pattern: Pattern
    weights: Tensor
    dtype: torch.dtype

    def degrees(self, loops: float = 0.0) -> Tensor:
        """The row sums of A, each plus ``loops``, ``[..., N]``: with 1 the degrees of A + I."""
        like = self.weights.new_empty(0, dtype=self.dtype)
        found: Tensor = kernels(like).degrees(self.pattern, self.weights, loops, self.dtype)
        return found

    def ones(self) -> Tensor:
        """One for every node, ``[N]``."""
        return torch.ones(self.pattern.num_nodes, dtype=self.dtype, device=self.weights.device)


# A normalisation turns A into the parts of S. What it does with the weights of edges must be in these.
Normalization = Callable[[Adjacency], Scales]


@dataclass(frozen=True, eq=False)
class ShiftOperator:
    """The shift operator S of a subgraph, or those of a batch of subgraphs of one graph.

    ``shift @ x`` multiplies ``x [..., N, F]``, with gradients through x and, where they are asked for, through the
    weights of the edges. It holds ``weights [..., M]``, a mask or numbers, ``None`` where all are 1, and ``scales``;
    kept entries are listed at its first product. ``values [..., E]``, those of the entries of ``pattern``, are made
    when somebody asks for them.

    >>> graph = Graph.from_edge_index([[0, 1], [1, 2]])
    >>> shift = shift_operator(graph, torch.tensor([True, False]))
    >>> shift
    ShiftOperator(nodes=3, entries=7, batch=())
    >>> (shift @ torch.tensor([[2.0], [4.0], [6.0]])).round(decimals=4).tolist()
    [[3.0], [3.0], [6.0]]
    """

    pattern: Pattern
    weights: Tensor | None
    scales: Scales

    @cached_property
    def batch(self) -> torch.Size:
        """The axes of the batch."""
        return broadcast(*(part.shape[:-1] for part in (self.weights, *self.scales[:3]) if part is not None))

    @property
    def dtype(self) -> torch.dtype:
        """The number type of the values."""
        return self.scales.left.dtype

    @property
    def symmetric(self) -> bool:
        """Whether S equals its transpose."""
        return self.scales.symmetric

    @property
    def shape(self) -> torch.Size:
        """``[..., N, N]``."""
        n = self.pattern.num_nodes
        return torch.Size((*self.batch, n, n))

    @cached_property
    def values(self) -> Tensor:
        """The values of the entries, ``[..., E]``, with gradients to the weights that ask for them."""
        found: Tensor = kernels(self.scales.left).entries(self.pattern, *self._rows(self.batch))
        return found.view(*self.batch, self.pattern.num_entries)

    def __matmul__(self, x: Tensor) -> Tensor:
        """S x, for x of shape ``[..., N, F]``; batch axes of S and x broadcast."""
        x = self._checked(x)
        batch = self.batch
        if batch != x.shape[:-2]:
            try:
                batch = torch.broadcast_shapes(batch, x.shape[:-2])
            except RuntimeError:
                raise TadropedgeError(
                    f"the batch axes {list(self.batch)} of the shift operator and {list(x.shape[:-2])} of x do not fit"
                ) from None
        if batch.numel() == 0:  # no subgraph, which kernels do not ask
            return x.new_zeros((*batch, *x.shape[-2:]))
        signals = _as_rows(x, batch, 2)
        if self.dtype == x.dtype and not self._learns and (batch == self.batch or self.batch.numel() == 1):
            product: Tensor = _Product.apply(signals, self)  # type: ignore[no-untyped-call]
        else:
            values = _as_rows(self.values.to(x.dtype), batch)
            product = sparse_product(self.pattern, values, signals, symmetric=self.symmetric)
        shape = (*batch, *x.shape[-2:])
        return product if product.shape == shape else product.view(shape)  # a view could not be changed in place

    def scaled(self, factor: Tensor) -> ShiftOperator:
        """S times a ``factor [...]`` for each subgraph."""
        left, right, diagonal, symmetric = self.scales
        factor = factor[..., None]
        return ShiftOperator(self.pattern, self.weights, Scales(left * factor, right, diagonal * factor, symmetric))

    @cached_property
    def thinned(self) -> Any:
        """Its kept entries, as products need them: listed once for all of them."""
        return kernels(self.scales.left).thinned(self.pattern, *self._rows(self.batch))

    @cached_property
    def turned(self) -> ShiftOperator:
        """The transpose: left and right change places."""
        if self.symmetric:
            return self
        left, right, diagonal, symmetric = self.scales
        return ShiftOperator(self.pattern, self.weights, Scales(right, left, diagonal, symmetric))

    @cached_property
    def _learns(self) -> bool:
        """Whether gradients flow to its values."""
        return any(part is not None and part.requires_grad for part in (self.weights, *self.scales[:3]))

    def _rows(self, batch: torch.Size) -> tuple[Tensor | None, Scales]:
        """The parts with one axis of subgraphs: what all of them share has one row."""
        left, right, diagonal, symmetric = self.scales
        weights = None if self.weights is None else _as_rows(self.weights, batch)
        one = _as_rows(left, batch)
        other = one if right is left else _as_rows(right, batch)
        return weights, Scales(one, other, _as_rows(diagonal, batch), symmetric)

    def _checked(self, x: object) -> Tensor:
        """Return x if it can be multiplied by S."""
        here, n = self.scales.left.device, self.pattern.num_nodes
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
        return self.pattern.as_torch(self.values)

    def to_dense(self) -> Tensor:
        """The same operator as a dense tensor ``[..., N, N]``."""
        need = 2 * self.shape.numel() * self.values.element_size()
        check_memory(need, f"a dense matrix of shape {list(self.shape)}", device=self.values.device)
        places = self.pattern.row * self.pattern.num_nodes + self.pattern.col
        flat = self.values.new_zeros(*self.values.shape[:-1], self.pattern.num_nodes**2)
        return flat.index_copy(-1, places, self.values).view(self.shape)

    def __repr__(self) -> str:
        entries, batch = self.pattern.num_entries, tuple(self.batch)
        return f"ShiftOperator(nodes={self.pattern.num_nodes}, entries={entries}, batch={batch})"


class _Product(torch.autograd.Function):
    """The product with an operator that does not learn, and its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, shift: ShiftOperator) -> Tensor:
        ctx.shift, ctx.shape = shift, x.shape
        product: Tensor = kernels(x).thinned_product(shift.pattern, shift.thinned, x)
        return product

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        turned: ShiftOperator = ctx.shift.turned
        slope: Tensor = kernels(gradient).thinned_product(turned.pattern, turned.thinned, gradient)
        return slope.sum_to_size(ctx.shape), None


def _as_rows(part: Tensor, batch: torch.Size, own: int = 1) -> Tensor:
    """A part ``[..., *own]`` of a batch with one axis before its own; where nothing differs, that has length 1."""
    before, after = part.shape[:-own], part.shape[-own:]
    if len(before) == 1 and before == batch:
        return part
    return (
        part.reshape(1, *after) if before.numel() == 1 else part.expand(*batch, *after).reshape(batch.numel(), *after)
    )


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
    weights = None if keep is None else _checked_keep(graph, keep)
    if unbiased is None or weights is None:
        return normalized(graph, weights, normalize, dtype)
    prob = _checked_prob(graph, unbiased, weights).to(dtype).clamp_min(max(LEAST, torch.finfo(dtype).tiny))
    return reweighted(normalized(graph, None, normalize, dtype), weights.to(dtype) / prob)


def normalized(graph: Graph, weights: Tensor | None, normalize: Normalization, dtype: torch.dtype) -> ShiftOperator:
    """The operator of edges with ``weights [..., M]``, a mask or numbers; ``None``: of all edges, with their own."""
    if graph.weight is not None:
        own = graph.weight.to(dtype)
        weights = own if weights is None else weights.to(dtype) * own
    elif weights is not None and weights.dtype != torch.bool:
        weights = weights.to(dtype)
    everything = torch.ones(graph.num_edges, dtype=torch.bool, device=graph.device) if weights is None else weights
    return ShiftOperator(graph.pattern, weights, normalize(Adjacency(graph.pattern, everything, dtype)))


def reweighted(whole: ShiftOperator, factors: Tensor) -> ShiftOperator:
    """Multiply both entries of each edge by its factor ``[..., M]``; the diagonal stays as it is."""
    return ShiftOperator(whole.pattern, factors if whole.weights is None else whole.weights * factors, whole.scales)


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


def _positive(degrees: Tensor) -> Tensor:
    """Where a degree counts as positive: of a number below the least normal one, 1 / degree may overflow."""
    return degrees >= torch.finfo(degrees.dtype).tiny


def _safe_power(degrees: Tensor, power: float) -> Tensor:
    """``degrees ** power``, and zero (with zero gradient) where the degree is zero."""
    positive = _positive(degrees)
    return torch.where(positive, torch.where(positive, degrees, 1.0) ** power, 0.0)


def _gcn(a: Adjacency) -> Scales:
    scale = a.degrees(1.0).rsqrt()  # degrees are at least 1, by the self-loop
    return Scales(scale, scale, scale * scale)


def _gcn_residual(a: Adjacency) -> Scales:
    left, right, diagonal, _ = _gcn(a)
    return Scales(left, right, diagonal + 1)


def _first_order(a: Adjacency) -> Scales:
    scale = _safe_power(a.degrees(), -0.5)
    return Scales(scale, scale, a.ones())


def _random_walk(a: Adjacency) -> Scales:
    inverse = a.degrees(1.0).reciprocal()
    return Scales(inverse, a.ones(), inverse, symmetric=False)


def _neighbour_mean(a: Adjacency) -> Scales:
    inverse = _safe_power(a.degrees(), -1.0)
    return Scales(inverse, a.ones(), torch.zeros_like(inverse), symmetric=False)


def _adjacency(a: Adjacency) -> Scales:
    ones = a.ones()
    return Scales(ones, ones, torch.zeros_like(ones))


def _laplacian(a: Adjacency) -> Scales:
    return Scales(-a.ones(), a.ones(), a.degrees())


def _normalized_laplacian(a: Adjacency) -> Scales:
    degrees = a.degrees()
    scale = _safe_power(degrees, -0.5)
    return Scales(-scale, scale, _positive(degrees).to(a.dtype))


def _spectral(a: Adjacency) -> Scales:
    exact = Adjacency(a.pattern, a.weights.detach().double(), torch.float64)
    top = _largest_eigenvalue(ShiftOperator(a.pattern, exact.weights, _adjacency(exact)))
    top = torch.where(_positive(top.to(a.dtype)), top, 0.0)
    ones = a.ones()
    return Scales(ones * _safe_power(top, -1.0).to(a.dtype)[..., None], ones, torch.zeros_like(ones))


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
    batch, n = shift.batch, shift.pattern.num_nodes
    q = shift.scales.left.new_full((*batch, n, 1), n**-0.5)
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
