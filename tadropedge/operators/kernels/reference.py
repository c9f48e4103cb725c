"""The kernels in torch, a few lines each: what they mean, what tests compare with, and what runs without a compiler.

Trials have an axis of their own: masks and weights are ``[W, M]``, scales ``[S, N]``, values ``[V, E]`` and signals
``[X, N, F]``, where each of W, S, V and X is T, or 1 for what all trials share.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from tadropedge.operators.kernels.words import GOLDEN, Dropout, Seed, coins_of, draw_key, mix_tensor, signed
from tadropedge.operators.pattern import Csr, Pattern, Scales

WEDGES = 2**23  # pairs of edges that are looked at together
PIECE = 2**20  # edges whose columns are

# -- coins -----------------------------------------------------------------------------------------------


def coins(keys: Tensor, seed: Seed, epoch: Seed, prob: Tensor, stream: int = 0) -> Tensor:
    """The masks ``[..., M]`` of float64 ``prob [..., M]`` or ``[..., 1]``, whose axes and those of seeds broadcast.

    The comparison is one of integers: 53 bits are exact in float64, so p = 1 always keeps and p = 0 never does.
    """
    limit = ((prob - 0.5) * 2.0**53).ceil().to(torch.int64)
    return coins_of(keys, seed, epoch, stream) < limit


def draw_keys(seeds: Tensor, epoch: Tensor, stream: int) -> tuple[Tensor, Tensor]:
    """The odd multiplier and the offset of each draw, int64 ``[T]``."""
    multiplier, offset = draw_key(seeds, epoch, stream, seeds.device)
    return torch.as_tensor(multiplier)[..., 0], offset[..., 0]


# -- operators -------------------------------------------------------------------------------------------


def degrees(pattern: Pattern, weights: Tensor, loops: float, dtype: torch.dtype) -> Tensor:
    """The sum of the ``weights [..., M]`` of each node's edges, plus ``loops``: ``[..., N]``, with gradients."""
    low, high = pattern.pairs
    weights = weights.to(dtype)
    found = weights.new_full((*weights.shape[:-1], pattern.num_nodes), loops)
    found.scatter_add_(-1, low.expand_as(weights), weights)
    return found.scatter_add_(-1, high.expand_as(weights), weights)


def entries(pattern: Pattern, weights: Tensor | None, scales: Scales) -> Tensor:
    """The values ``[..., E]`` of ``diag(d) + diag(l) W diag(r)``, with gradients: ``l_i · r_j · w_ij``, and ``d_i``."""
    (low, high), (left, right, diagonal, symmetric) = pattern.pairs, scales
    edges = left.index_select(-1, low) * right.index_select(-1, high)
    if not symmetric:
        edges = torch.cat((edges, left.index_select(-1, high) * right.index_select(-1, low)), dim=-1)
    if weights is not None:
        weights = weights.to(edges.dtype)
        edges = edges * (weights if symmetric else torch.cat((weights, weights), dim=-1))
    source = pattern.pair_source if symmetric else pattern.source
    diagonal = diagonal.expand(*edges.shape[:-1], -1)
    return torch.cat((edges, diagonal), dim=-1).index_select(-1, source)


thinned = entries  # what products with an operator need, and make once for all of them


def thinned_product(pattern: Pattern, operator: Tensor, x: Tensor) -> Tensor:
    """``S x`` of x ``[X, N, F]``: ``[T, N, F]``, without gradients."""
    return product(pattern, operator, x)


def product(places: Csr, values: Tensor, x: Tensor) -> Tensor:
    """``A x`` of ``x [X, cols, F]``, ``[T, rows, F]``, without gradients.

    On a CPU by SciPy, which adds the entries of a row one after the other. MKL, which torch calls, adds some of them in
    groups, so that a zero among them, which is how an edge is dropped, would change the rounding.
    """
    trials = max(len(values), len(x))
    out = x.new_empty((trials, places.num_rows, x.shape[-1]))
    for trial in range(trials):
        matrix, block = values[min(trial, len(values) - 1)], x[min(trial, len(x) - 1)]
        if x.is_cuda:
            out[trial] = places.as_torch(matrix) @ block
        else:
            out[trial] = torch.from_numpy(places.as_scipy(matrix) @ block.detach().numpy())
    return out


def slopes(places: Csr, gradient: Tensor, x: Tensor, shared: bool) -> Tensor:
    """The gradient of a product to its values: ``g_i · x_j`` at (i, j), ``[T, E]``; ``shared`` values have their sum.

    How a sum over features is rounded depends on the kernel.
    """
    rows, cols = gradient.index_select(-2, places.row), x.index_select(-2, places.col)
    found = (rows * cols).sum(dim=-1)
    return found.sum(dim=0, keepdim=True) if shared else found


# -- dense products --------------------------------------------------------------------------------------

LINE = 16  # floats in a line of the cache
SMALL = 2**14  # numbers in the product of a trial, below which what it costs is calling it


def dense_product(a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` for ``[T, n, k]`` and ``[T, k, m]``, with gradients to both; the axis of trials of one may be missing.

    On a CPU one trial is multiplied after the other, in memory that begins at a multiple of 64 bytes: how MKL rounds
    depends on that, and in a batch the blocks of other trials decide where one begins.
    """
    if a.is_cuda:
        return a @ b
    product: Tensor = _DenseProduct.apply(a, b)  # type: ignore[no-untyped-call]
    return product


def dense_slope(a: Tensor, gradient: Tensor) -> Tensor:
    """``aᵀ g``, what a dense product gives to b."""
    return dense_product(a.mT, gradient)


class _DenseProduct(torch.autograd.Function):
    """The product on a CPU, and its gradients."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return _one_by_one(a, b)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        a, b = ctx.saved_tensors
        for_a = _one_by_one(gradient, b.mT).sum_to_size(a.shape) if ctx.needs_input_grad[0] else None
        for_b = _one_by_one(a.mT, gradient).sum_to_size(b.shape) if ctx.needs_input_grad[1] else None
        return for_a, for_b


def _one_by_one(a: Tensor, b: Tensor) -> Tensor:
    lefts, rights = (a if a.dim() == 3 else a[None]), (b if b.dim() == 3 else b[None])
    trials, rows, columns = max(len(lefts), len(rights)), a.shape[-2], b.shape[-1]
    if trials > 1 and rows * columns <= SMALL:  # results with gaps: torch itself goes from trial to trial
        both = (_on_lines(each).expand(trials, -1, -1) for each in (lefts, rights))
        return torch.bmm(*both, out=_lines(a, trials, rows, columns)).contiguous()
    out = a.new_empty((trials, rows, columns))
    for trial in range(trials):
        left, right = (_on_lines(each[trial if len(each) > 1 else 0][None])[0] for each in (lefts, rights))
        if rows * columns % LINE == 0:
            torch.mm(left, right, out=out[trial])
        else:
            out[trial] = torch.mm(left, right)
    return out


def _on_lines(x: Tensor) -> Tensor:
    """``x [T, n, m]``, in memory in which every trial begins where a line of the cache does."""
    if x.data_ptr() % (4 * LINE) == 0 and (len(x) == 1 or x.stride(0) % LINE == 0):
        return x
    if x.stride(-1) != 1 and x.stride(-2) == 1:  # which of its axes comes first in memory decides how it is multiplied
        return _on_lines(x.mT).mT
    return _lines(x, *x.shape).copy_(x)


def _lines(like: Tensor, trials: int, rows: int, columns: int) -> Tensor:
    """Memory ``[T, n, m]`` with a gap after each trial, up to the next line but one."""
    room = rows * columns // LINE * LINE + 2 * LINE
    return like.new_empty_strided((trials, rows, columns), (room, columns, 1))


# -- training --------------------------------------------------------------------------------------------

BLOCK = 4096  # entries that are summed together
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


def dropout(h: Tensor, dropout: Dropout) -> Tensor:
    """``h [T, n, F]`` with entries dropped, and the others scaled up."""
    rows, width = h.shape[1:]
    names = torch.arange(rows, device=h.device) if dropout.names is None else dropout.names[:rows]
    places = names[:, None] * width + torch.arange(1, width + 1, device=h.device)
    words = mix_tensor(places.flatten() * signed(GOLDEN)) * dropout.multiplier + dropout.offset
    return h * torch.where((words < dropout.limit).view(h.shape), dropout.scale, 0.0)


def finish(h: Tensor, bias: Tensor, activate: bool, coins: Dropout | None) -> Tensor:
    """``dropout(relu(h + bias))`` of ``h [T, n, F]`` and ``bias [T, F]``, each part where it is asked for."""
    h = h + bias[:, None]
    h = h.relu() if activate else h
    return h if coins is None else dropout(h, coins)


def mean_at(values: Tensor, mask: Tensor) -> Tensor:
    """The mean of ``values [T, N]`` where ``mask [T, N]`` is 1, ``[T]``: a count over a count, so accuracies are exact.

    Elsewhere the values may be anything, even without bounds: they are left out, not multiplied by 0.

    >>> mean_at(torch.tensor([[1.0, 0.0, torch.inf]]), torch.tensor([[1, 1, 0]]))
    tensor([0.5000])
    """
    return row_sums(torch.where(mask > 0, values, 0.0)) / mask.sum(dim=1).clamp_min(1)


def row_sums(values: Tensor) -> Tensor:
    """The sums over the last axis of ``values [..., N]``: the same bits however many rows there are.

    Torch cuts a single long row into as many pieces as there are threads, but never a row among others.
    """
    if values.shape[-1] <= BLOCK:
        return values.sum(dim=-1)
    blocks = torch.nn.functional.pad(values, (0, -values.shape[-1] % BLOCK)).unflatten(-1, (-1, BLOCK))
    sums: Tensor = blocks.sum(dim=-1).sum(dim=-1)
    return sums


def cross_entropy(logits: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """The mean loss of each trial at its nodes, ``[T]``, for logits ``[T, N, C]``."""
    index = labels.clamp_min(0).expand(logits.shape[0], -1)  # where there is no label, the mask is 0
    return mean_at(-logits.log_softmax(dim=-1).gather(-1, index[..., None])[..., 0], mask)


def accuracy(logits: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """The share of the nodes of the mask whose largest logit is that of their class, ``[T]``."""
    return mean_at((logits.argmax(dim=-1) == labels).to(torch.float32), mask)


def adam(
    parameter: Tensor, gradient: Tensor, first: Tensor, second: Tensor, rates: Tensor, decays: Tensor, step: Tensor
) -> None:
    """A step of parameters and moments ``[T, ...]``, in place; ``step`` counts from 1."""
    count = step.to(torch.float64)  # in float32, 1 - 0.999 has lost four digits
    correction1, correction2 = 1 - BETA1**count, (1 - BETA2**count).sqrt()
    column = (-1, *[1] * (parameter.dim() - 1))[: parameter.dim()]  # one number of an own module has no axis
    gradient = torch.addcmul(gradient, decays.view(column), parameter)
    first.lerp_(gradient, 1 - BETA1)
    second.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
    size = second.sqrt().div_(correction2).add_(EPSILON)
    parameter.addcdiv_(first * (-rates.view(column) / correction1), size)


# -- arcs ------------------------------------------------------------------------------------------------


def spread(mask: Tensor, place: Tensor) -> Tensor:
    """The ``mask [M]`` of pairs as that of arcs ``[A]``, each at its ``place``; M stands for a self-loop, which stays.

    >>> spread(torch.tensor([True, False]), torch.tensor([1, 0, 0, 2])).tolist()
    [False, True, True, True]
    """
    return torch.cat((mask, mask.new_ones(1))).index_select(0, place)


def kept_arcs(arcs: Tensor, mask: Tensor) -> Tensor:
    """The arcs ``[2, A']`` of ``arcs [2, A]`` that are in the mask ``[A]``."""
    return arcs.index_select(1, mask.nonzero().view(-1))


# -- edges -----------------------------------------------------------------------------------------------


def triangles(pairs: Tensor, num_nodes: int) -> Tensor:
    """The number of triangles through each of the ``pairs [2, M]``, which are sorted: int64 ``[M]``.

    Every edge leaves its end of lower degree (ties: the lower number). Two edges that leave the same node are a wedge,
    and a triangle where an edge joins their heads, which a binary search among all edges tells.
    """
    low, high = pairs
    keys, edges = low * num_nodes + high, pairs.shape[1]
    degrees = torch.bincount(pairs.flatten(), minlength=num_nodes)
    forth = degrees[low] <= degrees[high]
    # A stable sort by tails sorts by heads, too, because the pairs are sorted: a wedge has its lower head first.
    tail, order = torch.sort(torch.where(forth, low, high), stable=True)
    head, leaving = torch.where(forth, high, low)[order], torch.bincount(tail, minlength=num_nodes)
    later = torch.repeat_interleave(leaving.cumsum(0), leaving) - torch.arange(1, edges + 1, device=pairs.device)
    before = torch.cat((later.new_zeros(1), later.cumsum(0)))
    marks = torch.tensor(range(WEDGES, int(before[-1]), WEDGES), device=pairs.device)
    cuts = torch.searchsorted(before, marks.to(torch.int64)).tolist()
    here, closing = torch.zeros_like(later), torch.zeros_like(later)
    for begin, end in pairwise([0, *cuts, edges]):
        count, number = later[begin:end], torch.arange(begin, end, device=pairs.device)
        one = torch.repeat_interleave(number, count)
        other = torch.repeat_interleave(number + 1 - before[begin:end] + before[begin], count)
        other += torch.arange(len(other), device=pairs.device)
        wanted = head[one] * num_nodes + head[other]
        place = torch.searchsorted(keys, wanted).clamp_(max=edges - 1)
        closed = keys[place] == wanted
        for counts, found in ((here, one[closed]), (here, other[closed]), (closing, place[closed])):
            counts.index_add_(0, found, torch.ones_like(found))  # whole numbers: in any order
    return closing.index_add_(0, order, here)


def signed_sums(low: Tensor, high: Tensor, root: Tensor, word: int, num_nodes: int, columns: int) -> Tensor:
    """``Dᵀ (root · signs)`` of random signs ``[M, columns]``, ``[num_nodes, columns]``, for at most 64 columns.

    D is the incidence matrix: an edge adds to its lower end what it takes from the higher one. The signs are the bits
    of SplitMix64's words, of which each edge has one: a pure function of ``word`` and of the edge's place.
    """
    shifts, out = torch.arange(columns, device=low.device), root.new_zeros((num_nodes, columns))
    for begin in range(0, len(low), PIECE):
        part = slice(begin, begin + PIECE)
        places = torch.arange(begin + 1, begin + 1 + len(low[part]), device=low.device) * signed(GOLDEN)
        bits = mix_tensor(places + word)[:, None] >> shifts
        values = torch.where(bits & 1 == 1, root[part, None], -root[part, None])
        out.index_add_(0, low[part], values).index_add_(0, high[part], values, alpha=-1)
    return out


def squared_differences(low: Tensor, high: Tensor, x: Tensor) -> Tensor:
    """``‖x_i − x_j‖²`` of each edge (i, j), ``[M]``, for x ``[N, k]``."""
    pieces = zip(low.split(PIECE), high.split(PIECE), strict=True)
    return torch.cat([(x[one] - x[other]).square_().sum(dim=1) for one, other in pieces])
