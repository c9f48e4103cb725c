"""GAT (Veličković et al. 2018): each node attends to its kept neighbours and to itself.

A layer has K heads. With ``z = h W`` of one head, and two vectors ``a``::

    e_ij  = LeakyReLU(a_target · z_i + a_source · z_j)
    α_ij  = softmax of e_ij over the kept neighbours j of i and i itself
    out_i = Σ_j α_ij z_j + b

The heads of a hidden layer stand side by side, followed by ELU and dropout; the output layer has one. A dropped edge
has weight 0 in both directions, and a node without kept edges attends to itself alone.

With the option ``unbiased``, attention is that of the whole graph and α of a kept edge is divided by its keep
probability, so the expected sum over neighbours is the one of the whole graph: ``E[α'_ij] = α_ij``.

As in all backbones here, dropout never sees the raw features, which the paper drops too; weights of edges are not used.
Everything on the entries of the pattern is read and summed along its rows, in a fixed order: see ``entries.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from tadropedge._old.checks import check_number
from tadropedge._old.neighbours.block import LayerBlock
from tadropedge._old.nn.backbones import DEFAULT_SPACE
from tadropedge._old.nn.entries import BlockEntries, Entries
from tadropedge._old.nn.finish import Noise
from tadropedge._old.nn.layers import ALIGNED, Features, Parameters, aligned_product, first_rows
from tadropedge._old.nn.network import Network, Problem, Setting, Shapes, Sizes, TrainingStep, Value
from tadropedge._old.sparse import KeptProducts, multiply, sparse_product

ATTENTION = 4_000  # streams of dropout from here on belong to attention; those before it to the layers
SAVED = 5  # numbers per entry and head that a layer keeps for its gradient
PASSING = 8  # and those that live only while one layer is computed
ENDS = 4  # signals at the ends of every entry, of one head at a time


@dataclass(frozen=True)
class GraphAttention:
    """One layer: ``heads`` of ``width`` outputs each."""

    name: str
    inputs: int
    width: int
    _: KW_ONLY
    heads: int = 1

    def shapes(self) -> Shapes:
        """The shape of every trained parameter, without the trials axis."""
        ends = {"source": (self.heads, self.width), "target": (self.heads, self.width)}
        outputs = self.heads * self.width
        shapes: Shapes = {"weight": (self.inputs, outputs), **ends, "bias": (outputs,)}
        return {f"{self.name}.{key}": shape for key, shape in shapes.items()}

    def signals(self, state: Parameters, x: Features) -> Tensor:
        """``z``, ``[T, N, heads, width]``."""
        weight = state[f"{self.name}.weight"]
        narrow = weight.shape[-1] % ALIGNED != 0 and not isinstance(x, KeptProducts)  # which know weights by identity
        z = aligned_product(x, weight) if narrow else x @ weight
        return z.view(*z.shape[:-1], self.heads, self.width)

    def scores(self, state: Parameters, z: Tensor, entries: Entries, slope: float) -> Tensor:
        """``e_ij`` of every entry, ``[T, E, heads]``; ``slope`` is that of LeakyReLU below 0."""
        # Sums, not products with one column: their rounding would depend on the number of trials.
        target, source = ((z * state[f"{self.name}.{end}"][:, None]).sum(dim=-1) for end in ("target", "source"))
        source = entries.everywhere(source)
        return torch.nn.functional.leaky_relu(entries.at_rows(target) + entries.at_cols(source), slope)

    def mixed(self, state: Parameters, z: Tensor, attention: Tensor, entries: Entries) -> Tensor:
        """``Σ_j α_ij z_j + b``, ``[T, N, heads · width]``; one head after the other, since each holds E · width."""
        pairs = zip(attention.unbind(dim=-1), entries.everywhere(z).unbind(dim=-2), strict=True)
        heads = [sparse_product(entries.places, a.contiguous(), y.contiguous()) for a, y in pairs]
        return torch.cat(heads, dim=-1) + state[f"{self.name}.bias"][:, None, :]


@dataclass(frozen=True, eq=False)
class Seen:
    """The entries that nodes attend to, a mask ``[T, E]``, and what α is multiplied by; None: all of them, by 1.

    ``block``: the entries are those of a layer of a mini-batch, and only its rows are computed.
    """

    mask: Tensor | None = None
    factors: Tensor | None = None
    block: BlockEntries | None = None


class GAT(Network):
    """Graph attention of any depth, on the kept edges.

    ``heads`` share the ``hidden`` units of a layer, which are rounded up to a multiple of their number.
    ``attention_dropout`` drops entries of α while it learns.
    """

    settings = {
        "heads": Setting(8, 1),
        "negative_slope": Setting(0.2),
        "attention_dropout": Setting(0.0),
    }
    shared = ("heads", "negative_slope")
    space = {
        **{name: entry for name, entry in DEFAULT_SPACE.items() if name != "normalization"},
        "attention_dropout": [0.0, 0.3, 0.6],
    }
    weighs = True
    spreads = True
    sees_dropped = True

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.layers = self.attentions(problem.sizes, problem.settings[0])
        self.slope = float(problem.settings[0]["negative_slope"])
        rates = problem.column("attention_dropout").to(torch.float32)
        self.rates = rates if any(one["attention_dropout"] for one in problem.settings) else None
        self._attention_noise: Noise | None = None

    @classmethod
    def completed(cls, name: str, told: Mapping[str, Value]) -> dict[str, Value]:
        """All settings; a rate of dropout is at most 1."""
        settings = super().completed(name, told)
        check_number("attention_dropout", settings["attention_dropout"], 0, 1)
        return settings

    @classmethod
    def attentions(cls, sizes: Sizes, settings: Mapping[str, Value]) -> list[GraphAttention]:
        """All layers, the output layer last.

        >>> sizes = Sizes(num_nodes=4, num_features=10, num_classes=3, layers=3, hidden=20)
        >>> [(layer.name, layer.inputs, layer.heads, layer.width) for layer in GAT.attentions(sizes, {"heads": 8})]
        [('input', 10, 8, 3), ('hidden1', 24, 8, 3), ('output', 24, 1, 3)]
        """
        heads, depth = int(settings["heads"]), sizes.layers
        width = _width(sizes.hidden, heads)
        names = ["input", *(f"hidden{place}" for place in range(1, depth - 1))] if depth > 1 else []
        inputs = [sizes.num_features, *[heads * width] * len(names)]
        hidden = [GraphAttention(name, count, width, heads=heads) for name, count in zip(names, inputs, strict=False)]
        return [*hidden, GraphAttention("output", inputs[-1], sizes.num_classes)]

    @classmethod
    def shapes(cls, sizes: Sizes, settings: Mapping[str, Value]) -> Shapes:
        """The parameters of every layer."""
        return {key: shape for layer in cls.attentions(sizes, settings) for key, shape in layer.shapes().items()}

    @classmethod
    def footprint(cls, sizes: Sizes, settings: Mapping[str, Value], signals: int, entries: int) -> int:
        """That of the signals; scores and attention of every head; and the ends of all entries, a head at a time."""
        heads, depth = int(settings["heads"]), cls.depth(sizes.layers)
        width = _width(sizes.hidden, heads)
        own = entries * (heads * (SAVED * depth + PASSING) + ENDS * max(width, sizes.num_classes))
        return super().footprint(replace(sizes, hidden=heads * width), settings, signals, entries) + own

    @property
    def draws(self) -> int:
        """Every layer can have its own subgraph."""
        return len(self.layers)

    def training(self, state: Parameters, step: TrainingStep) -> tuple[Tensor, float]:
        """On the kept edges, with dropout of signals and of attention."""
        seen = [self._seen(keep, factors, step.inside) for keep, factors in step.kept]
        return self.logits(state, step.x, seen, step.noise), 0.0

    def evaluation(self, state: Parameters, x: Features, epoch: Tensor) -> Tensor:
        """On the whole graph."""
        return self.logits(state, x, [Seen()])

    @property
    def hops(self) -> list[int] | None:
        """Those of a chain."""
        return list(range(len(self.layers)))[::-1]

    @property
    def of_rows(self) -> bool:
        """Attention looks at no degrees at all."""
        return True

    def on_blocks(self, state: Parameters, x: Features, blocks: Sequence[LayerBlock], noise: Noise | None) -> Tensor:
        """On the entries of the rows that each layer computes."""
        factors = [None if block.factor is None else block.factor[None] for block in blocks]
        seen = [Seen(None, own, BlockEntries(block)) for own, block in zip(factors, blocks, strict=True)]
        return self.logits(state, x, seen, noise)

    def logits(self, state: Parameters, x: Features, seen: Sequence[Seen], noise: Noise | None = None) -> Tensor:
        """Logits ``[T, N, C]``. ``seen``: one for all layers or one per layer; ``noise`` means training."""
        h: Features = x
        for place, layer in enumerate(self.layers):
            z = layer.signals(state, h)
            own = seen[place if len(seen) > 1 else 0]
            attention = self.attention(state, layer, z, own)
            if noise is not None and self.rates is not None:
                dropping = (
                    self._noise_of(noise, self.rates) if own.block is None else own.block.noise(noise, self.rates)
                )
                attention = dropping(attention, ATTENTION + place)
            out = layer.mixed(state, z, attention, self.problem.entries if own.block is None else own.block)
            out = out if own.block is None else first_rows(out, own.block.num_rows)
            if layer is self.layers[-1]:
                return out
            h = elu(out) if noise is None else noise(elu(out), place)
        raise AssertionError("a network has an output layer")

    def attention(self, state: Parameters, layer: GraphAttention, z: Tensor, seen: Seen) -> Tensor:
        """``α_ij`` of every entry, ``[T, E, heads]``, exactly 0 where it is not seen."""
        entries = self.problem.entries if seen.block is None else seen.block
        attention = softmax_of_rows(entries, layer.scores(state, z, entries, self.slope), seen.mask)
        return attention if seen.factors is None else attention * seen.factors[..., None]

    def _seen(self, keep: Tensor | None, factors: Tensor | None, inside: Tensor | None) -> Seen:
        """The entries of the edges in a mask ``[T, M]``, and the diagonal; factors belong to those of all edges."""
        mask = keep if factors is None else inside
        found = [None if one is None else self._with_loops(one) for one in (mask, factors)]
        return Seen(found[0], found[1])

    def _with_loops(self, values: Tensor) -> Tensor:
        """Values of edges ``[T, M]`` as those of entries ``[T, E]``, with ones on the diagonal."""
        entries = self.problem.entries
        padded = torch.cat((values, values.new_ones((len(values), entries.num_nodes))), dim=1)
        return padded.index_select(1, entries.pair_source)

    def _noise_of(self, noise: Noise, rates: Tensor) -> Noise:
        """The noise of this training with the rates of attention; made once, because a CUDA graph reads it again."""
        if self._attention_noise is None:
            self._attention_noise = noise.at(rates)
        return self._attention_noise


def _width(hidden: int, heads: int) -> int:
    return -(-hidden // heads)


def elu(h: Tensor) -> Tensor:
    """``h`` where it is positive, elsewhere ``e^h − 1``. Torch's own rounds the end of a tensor differently on a CPU.

    >>> elu(torch.tensor([-200.0, 0.0, 2.0])).tolist()
    [-1.0, 0.0, 2.0]
    """
    return torch.where(h > 0, h, h.clamp_max(0).expm1())


def softmax_of_rows(entries: Entries, scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax of ``scores [T, E, K]`` over those entries of each row that are in ``mask [T, E]``; elsewhere 0.

    Some entry of each row must be in the mask.

    >>> from tadropedge._old import Graph
    >>> entries = Entries(Graph.from_edge_index(torch.tensor([[0], [1]]), num_nodes=3))
    >>> softmax_of_rows(entries, torch.zeros(1, 5, 1))[0, :, 0].tolist()
    [0.5, 0.5, 0.5, 0.5, 1.0]
    >>> softmax_of_rows(entries, torch.zeros(1, 5, 1), ~entries.edge[None])[0, :, 0].tolist()
    [1.0, 0.0, 0.0, 1.0, 1.0]
    """
    soft: Tensor = _Softmax.apply(scores, entries, mask)  # type: ignore[no-untyped-call]
    return soft


class _Softmax(torch.autograd.Function):
    """``α = e^s / Σ e^s`` row by row, with the gradient ``α (g − Σ α g)``; only α is kept for it."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, entries: Entries, mask: Tensor | None) -> Tensor:
        if mask is not None:
            scores = scores.masked_fill(~mask[..., None], -torch.inf)
        ends = entries.places.crow.to(torch.int64).expand(len(scores), -1)
        # Without checks, for which values would be read on the host.
        top = torch.segment_reduce(scores.contiguous(), "max", offsets=ends.contiguous(), axis=1, unsafe=True)
        powers = (scores - top.index_select(1, entries.row)).exp_()
        attention = powers.div_(_sums(entries, powers))
        ctx.save_for_backward(attention)
        ctx.entries = entries
        return attention

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (attention,) = ctx.saved_tensors
        slope = attention * gradient
        return slope - attention * _sums(ctx.entries, slope), None, None


def _sums(entries: Entries, values: Tensor) -> Tensor:
    """The sum over its row for every entry, ``[T, E, K]``: a sparse product, in the same order in every run."""
    ones = torch.ones(entries.count, dtype=values.dtype, device=values.device)
    return multiply(entries.of_rows, ones, values).index_select(1, entries.row)
