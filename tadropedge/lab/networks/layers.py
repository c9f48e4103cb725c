"""What networks are made of: features, graph convolutions, batch norm, and how a layer ends.

Parameters are ``[T, …]``, signals ``[T, n, F]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from tadropedge.lab.networks.network import Start
from tadropedge.lab.networks.noise import Noise
from tadropedge.lab.networks.sparse import Operator, Sparse, first_rows
from tadropedge.lab.networks.view import View
from tadropedge.operators.kernels import kernels, runs_kernels
from tadropedge.operators.pattern import INT32_LIMIT, Csr
from tadropedge.operators.product import dense_product, multiply, sparse_product

MOMENTUM = 0.1  # of the running statistics of batch norm, as in torch
VARIANCE_FLOOR = 1e-5
ALIGNED = 8  # columns
# Places of dropout that are no layer's: that of raw features, and that of a linear map in front of the layers.
ON_FEATURES, ON_INPUT = 3_998, 3_999

# -- features --------------------------------------------------------------------------------------------


class Inputs:
    """The features X of the nodes, dense or CSR ``[n, F]``, as networks multiply them: ``X @ weight [T, F, H]``.

    On a CPU a product with a trained weight is kept until the weight changes: the evaluation at the end of an epoch and
    the first step of the next see the same one. Torch counts the changes of a tensor, so no product is older than its
    weight. On a GPU nothing is kept: a recorded epoch is replayed without asking.

    >>> x = inputs(torch.tensor([[0.0, 2.0], [1.0, 0.0]]).to_sparse_csr())
    >>> (x @ torch.tensor([[[1.0], [3.0]]])).tolist()
    [[[6.0], [1.0]]]
    """

    def __init__(self, features: Tensor, entries: Tensor | None = None) -> None:
        self.features = features
        self.entries = entries  # of a mini-batch, the numbers of its stored entries in the whole matrix
        self.is_sparse = features.layout is torch.sparse_csr
        self._kept = WeakTensorKeyDictionary()  # from a weight to its version and the product

    def __matmul__(self, weight: Tensor) -> Tensor:
        product: Tensor = _Kept.apply(weight, self._product(weight), self)  # type: ignore[no-untyped-call]
        return product

    def shared(self) -> Inputs:
        """The same for several passes of one step: they share each product, and its gradient is that of their sum."""
        return _Shared(self)

    @cached_property
    def dense(self) -> Tensor:
        """X itself, dense; sparse features are copied once, 4 n F bytes."""
        return self.features.to_dense() if self.is_sparse else self.features

    @torch.no_grad()
    def _product(self, weight: Tensor) -> Tensor:
        if weight.is_cuda or not (weight.is_leaf and weight.requires_grad):
            return self._multiplied(weight)
        version, product = self._kept.get(weight, (None, None))
        if version != weight._version:
            product = self._multiplied(weight)
            self._kept[weight] = (weight._version, product)
        return product  # type: ignore[no-any-return]

    def _multiplied(self, weight: Tensor) -> Tensor:
        if self.is_sparse:
            return multiply(self._places, self.features.values(), weight)
        return dense_product(self.features, weight)

    def slope(self, gradient: Tensor) -> Tensor:
        """``Xᵀ g`` for ``g [T, n, H]``."""
        if not self.is_sparse:
            found: Tensor = kernels(gradient).dense_slope(self.features, gradient)
            return found
        turned, values = self._turned
        return multiply(turned, values, gradient.contiguous())

    @cached_property
    def _places(self) -> Csr:
        crow, col = self.features.crow_indices(), self.features.col_indices()
        index = torch.int32 if len(col) <= INT32_LIMIT else torch.int64
        return Csr(crow.to(index), col.to(index), self.features.shape[1])

    @cached_property
    def _turned(self) -> tuple[Csr, Tensor]:
        turned, order = self._places.turned
        return turned, self.features.values()[order]


class _Shared(Inputs):
    """The ``whole`` features, whose products are made once while this lives; no weight may change meanwhile."""

    def __init__(self, whole: Inputs) -> None:
        super().__init__(whole.features, whole.entries)
        self.whole, self._made = whole, dict[Tensor, Tensor]()  # as keys, tensors are equal to themselves alone

    def __matmul__(self, weight: Tensor) -> Tensor:
        if weight not in self._made:
            self._made[weight] = self.whole @ weight
        return self._made[weight]

    @cached_property
    def dense(self) -> Tensor:
        """Made once, for all steps."""
        return self.whole.dense

    @cached_property
    def _places(self) -> Csr:
        return self.whole._places


class _Dropped(Inputs):
    """Sparse features whose entries ``values [T, E]`` are those that dropout left to each trial."""

    def __init__(self, whole: Inputs, values: Tensor) -> None:
        super().__init__(whole.features)
        self.places, self.values = whole._places, values

    def __matmul__(self, weight: Tensor) -> Tensor:
        return sparse_product(self.places, self.values, weight)


def drop_features(x: Inputs, rates: Tensor, view: View) -> Features:
    """X with entries dropped by ``rates [T]`` in a step of training; in evaluation as it is.

    >>> x, step = inputs(torch.eye(2)), Noise(torch.tensor([0.0]), torch.tensor([3]), torch.tensor(0))
    >>> from tadropedge import Graph
    >>> drop_features(x, torch.tensor([0.5]), View(Graph.from_edge_index([[0], [1]]), noise=step)).tolist()
    [[[0.0, 0.0], [0.0, 2.0]]]
    """
    if view.noise is None:
        return x
    noise, trials = view.noise.at(rates), len(rates)
    if not x.is_sparse:
        return noise.drop(x.features.expand(trials, -1, -1), ON_FEATURES)
    noise = noise if x.entries is None else noise.of(x.entries)
    return _Dropped(x, noise.drop(x.features.values()[:, None].expand(trials, -1, -1), ON_FEATURES)[..., 0])


def inputs(features: Tensor) -> Inputs:
    """What a network is given as x: features ``[n, F]``, dense or CSR."""
    return Inputs(features)


class _Kept(torch.autograd.Function):
    """A product that is known already, with the gradient it has."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, product: Tensor, features: Inputs) -> Tensor:
        ctx.features = features
        return product.view_as(product)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.features.slope(gradient), None, None


Features = Tensor | Inputs


def side_by_side(parts: Sequence[Tensor]) -> Tensor:
    """Signals ``[T, n, F_k]`` as one, ``[T, n, Σ F_k]``; where some have more rows, the first rows of those count."""
    rows = min(part.shape[-2] for part in parts)
    return torch.cat([first_rows(part, rows) for part in parts], dim=-1)


def product(x: Features, weight: Tensor) -> Tensor:
    """``x @ weight``, on a GPU with columns of zeros in between: its matrix units want a multiple of eight."""
    columns = weight.shape[-1]
    if not weight.is_cuda or columns % ALIGNED == 0:
        return dense_product(x, weight) if isinstance(x, Tensor) else x @ weight
    padded: Tensor = x @ nn.functional.pad(weight, (0, -columns % ALIGNED))
    return padded[..., :columns].contiguous()


# -- layers ----------------------------------------------------------------------------------------------


class GraphConvolution(nn.Module):
    """``S (X W) + X W_self + b``, then layer norm, batch norm, ReLU and dropout, each where it is asked for.

    Weights, self weights and biases start uniform in ± ``bound``, 1 / √outputs without one. ``drop`` is the number of
    the place where entries are dropped; ``None``: none are. Without S the layer sees no edges: ``S = I``.

    >>> from tadropedge import Graph
    >>> layer, view = GraphConvolution(Start([0]), 4, 3), View(Graph.from_edge_index([[0, 1], [1, 2]]))
    >>> layer(inputs(torch.ones(3, 4)), view.shift(["gcn"]), view).shape
    torch.Size([1, 3, 3])
    """

    def __init__(
        self,
        start: Start,
        inputs: int,
        outputs: int,
        *,
        bound: float | None = None,
        self_weight: bool = False,
        batch_norm: bool = False,
        layer_norm: bool = False,
        activate: bool = True,
        drop: int | None = None,
    ) -> None:
        super().__init__()
        bound = outputs**-0.5 if bound is None else bound
        self.activate, self.drop = activate, drop
        self.weight = start.uniform((inputs, outputs), bound)
        self.bias = start.uniform((outputs,), bound)
        self.self_weight = start.uniform((inputs, outputs), bound) if self_weight else None
        self.norm = BatchNorm(start, outputs) if batch_norm else None
        self.layer_norm = LayerNorm(start, outputs) if layer_norm else None

    def forward(self, x: Features, shift: Operator | None, view: View) -> Tensor:
        """The signal ``[T, rows of S, outputs]``; the noise of the view drops entries."""
        narrows = isinstance(shift, Sparse) and shift.places.num_rows < shift.places.num_cols
        if narrows and isinstance(x, Inputs) and not x.is_sparse:
            x = x.features  # of a mini-batch, whose products nobody asks for again
        if shift is None:
            h = _fresh(x, self.weight)
        elif isinstance(shift, Sparse) and isinstance(x, Tensor) and _is_less_work(shift, x, self.weight):
            h = product(shift @ x, self.weight)
        else:
            h = shift @ product(x, self.weight)
        if self.self_weight is not None:
            x = first_rows(x, h.shape[-2]) if isinstance(x, Tensor) else x
            h += first_rows(product(x, self.self_weight), h.shape[-2])
        bias: Tensor = self.bias
        if self.layer_norm is not None:
            h, bias = self.layer_norm(h + bias[:, None]), torch.zeros_like(bias)
        return finish(h, bias, view, norm=self.norm, activate=self.activate, drop=self.drop)


class Linear(nn.Module):
    """``X W + b``, then ReLU and dropout where they are asked for; W starts as Glorot and Bengio's, b at 0."""

    def __init__(self, start: Start, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight, self.bias = start.glorot(inputs, outputs), start.zeros(outputs)

    def forward(self, x: Features, view: View, *, activate: bool = False, drop: int | None = None) -> Tensor:
        """The signal ``[T, n, outputs]``; ``drop`` is the number of the place where entries are dropped."""
        return finish(_fresh(x, self.weight), self.bias, view, activate=activate, drop=drop)


def _fresh(x: Features, weight: Tensor) -> Tensor:
    """A product that may be changed: one that is kept must stay as it is."""
    return product(x, weight).clone() if isinstance(x, Inputs) else product(x, weight)


def _is_less_work(shift: Sparse, x: Tensor, weight: Tensor) -> bool:
    """Whether ``(S x) W`` takes less work than ``S (x W)``: in a mini-batch few rows look at many nodes."""
    places, (features, outputs) = shift.places, weight.shape[1:]
    after = outputs * (places.num_entries + places.num_cols * features)
    return places.num_rows < places.num_cols and features * (places.num_entries + places.num_rows * outputs) < after


class LayerNorm(nn.Module):
    """``γ (h − mean) / √(variance + ε) + β`` for every node, over its channels, of ``h [T, n, F]``.

    * Source: Ba, Kiros and Hinton, *Layer normalization* (2016).
    """

    def __init__(self, start: Start, width: int) -> None:
        super().__init__()
        self.scale, self.shift = start.constant(1.0, width), start.constant(0.0, width)

    def forward(self, h: Tensor) -> Tensor:
        """The normalised signal."""
        h = nn.functional.layer_norm(h, h.shape[-1:], eps=VARIANCE_FLOOR)
        return h * self.scale[:, None] + self.shift[:, None]


class BatchNorm(nn.Module):
    """``γ (h − mean) / √(variance + ε) + β`` for every channel, over the rows of ``h [T, n, F]``.

    A training step uses the statistics of h and moves the running ones, which evaluation uses, a tenth of the way.

    * Source: Ioffe and Szegedy, ICML 2015.
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, start: Start, width: int) -> None:
        super().__init__()
        self.scale, self.shift = start.constant(1.0, width), start.constant(0.0, width)
        self.register_buffer("mean", torch.zeros((start.trials, 1, width)))
        self.register_buffer("variance", torch.ones((start.trials, 1, width)))

    def forward(self, h: Tensor, view: View) -> Tensor:
        """The normalised signal."""
        if not h.is_cuda and (h.shape[1] > 1 or not view.training):  # torch's own sees one trial, and is faster
            mean, variance, how = self.mean[:, 0], self.variance[:, 0], (view.training, MOMENTUM, VARIANCE_FLOOR)
            trials = zip(h, mean, variance, self.scale, self.shift, strict=True)
            return torch.stack([
                nn.functional.batch_norm(one, mean, variance, scale, shift, *how)
                for one, mean, variance, scale, shift in trials
            ])  # fmt: skip
        mean, variance = self.mean, self.variance
        if view.training:
            mean, variance = h.mean(dim=1, keepdim=True), h.var(dim=1, keepdim=True, unbiased=False)
            self.move(mean, variance, h.shape[1])
        h = (h - mean) * (variance + VARIANCE_FLOOR).rsqrt()
        return h * self.scale[:, None] + self.shift[:, None]

    @torch.no_grad()
    def move(self, mean: Tensor, variance: Tensor, count: int) -> None:
        """Move the running statistics towards those of ``count`` rows."""
        self.mean.lerp_(mean, MOMENTUM)
        self.variance.lerp_(variance * (count / max(1, count - 1)), MOMENTUM)  # one row has no spread


def finish(
    h: Tensor,
    bias: Tensor,
    view: View,
    *,
    norm: BatchNorm | None = None,
    activate: bool = True,
    drop: int | None = None,
) -> Tensor:
    """``dropout(relu(norm(h + bias)))`` of ``h [T, n, F]``, each part where it is asked for; ``h`` may be changed."""
    noise, place = (None, 0) if drop is None else (view.noise, drop)
    if runs_kernels(h) and (norm is None or view.training):
        return _in_kernels(h, bias, norm, activate, noise, place)
    if norm is None:
        found: Tensor = kernels(h).finish(h, bias, activate, None if noise is None else noise.coins(place))
        return found
    h += bias[:, None]
    h = norm(h, view)
    h = h.relu_() if activate else h
    return h if noise is None else noise.drop(h, place)


def _in_kernels(
    h: Tensor, bias: Tensor, norm: BatchNorm | None, activate: bool, noise: Noise | None, place: int
) -> Tensor:
    """The same in few passes over memory."""
    from tadropedge.operators.kernels import fused

    h, parts = h.contiguous(), None
    if norm is not None:
        with torch.no_grad():
            mean, variance = fused.batch_statistics(h, bias)
        norm.move(mean, variance, h.shape[1])
        parts = fused.Norm(mean, (variance + VARIANCE_FLOOR).rsqrt(), norm.scale, norm.shift)
    if noise is None or noise.names is None:
        return fused.finish(h, bias, parts, activate, None if noise is None else noise.coins(place))
    # Kernels know entries by their places, not by the names that rows of a mini-batch have.
    return noise.drop(fused.finish(h, bias, parts, activate, None), place)
