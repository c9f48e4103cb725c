"""``View``: what a network sees of the graph in one forward pass, whether it learns or is evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from tadropedge.graph import Graph
from tadropedge.lab.networks.noise import Noise
from tadropedge.lab.networks.sparse import Dense, Entries, Operator
from tadropedge.operators.pattern import Scales
from tadropedge.operators.shift import NORMALIZATIONS, ShiftOperator, normalized, reweighted

DENSE_NODES = 128  # below this a dense batched product beats a sparse one
ON_ENTRIES = 4_000  # places of dropout from here on are those of entries; those before it are of signals


class View:
    """The edges that exist, what they weigh, and the noise of a step.

    ``kept`` and ``factor`` are what ``Plan.draw`` returns, for a batch ``[T, M]`` or for
    all trials alike ``[M]``:

    ===========  ============  ===========================================================================
    ``kept``     ``factor``    the operator is
    ===========  ============  ===========================================================================
    ``None``     ``None``      that of the whole graph
    mask         ``None``      that of the kept edges, renormalised
    ``None``     weights       that of the weighted graph, normalised by its weighted degrees
    mask         one over p    that of the whole graph, with the entries of kept edges times their factor
    ===========  ============  ===========================================================================

    * ``epoch``: a tensor ``[]``, for settings that change with it;
    * ``noise``: dropout and random words of a training step; without, the view is one of evaluation;
    * ``nodes [T, N]``: ones at the training nodes of each trial, for networks that sample.

    A trainer makes one view of the graph and every other one :meth:`of` it, so that what they share is made once::

        whole = View(graph, epoch=epoch)                             # or View(graph, None, weights, epoch=epoch)
        noise = Noise(rates, seeds, step)                            # [T], [T], []; the tensors may change in place
        step = whole.of(*plan.draw(seeds, epoch), noise=noise, nodes=nodes)
        logits = network(inputs(features), step)                     # [T, N, C]

    What a network asks for:

    >>> graph = Graph.from_edge_index(torch.tensor([[0, 1], [1, 2]]))
    >>> view = View(graph, torch.tensor([[True, False]]))
    >>> (view.shift(["neighbour-mean"]) @ torch.tensor([[[1.0], [2.0], [4.0]]]))[0, :, 0].tolist()
    [2.0, 1.0, 0.0]
    >>> view.training, view.drop(torch.ones(1, 3, 1), layer=0)[0, :, 0].tolist()
    (False, [1.0, 1.0, 1.0])

    A mini-batch is a subclass: ``shift`` and ``entries`` give the block of a layer, whose rows are the first of its
    columns, and ``noise`` knows rows by their names in the whole graph.
    """

    def __init__(
        self,
        graph: Graph,
        kept: Tensor | None = None,
        factor: Tensor | None = None,
        *,
        epoch: Tensor | None = None,
        noise: Noise | None = None,
        nodes: Tensor | None = None,
    ) -> None:
        self.graph, self.kept, self.factor = graph, kept, factor
        self.epoch = torch.zeros((), dtype=torch.int64, device=graph.device) if epoch is None else epoch
        self.noise, self.nodes = noise, nodes
        self._shared = _Shared(graph)
        self._operators: dict[tuple[str, ...], ShiftOperator] = {}
        self._shifts: dict[tuple[str, ...], Operator] = {}

    def of(
        self,
        kept: Tensor | None,
        factor: Tensor | None,
        *,
        noise: Noise | None = None,
        nodes: Tensor | None = None,
    ) -> View:
        """A view of other edges of the same graph, or of the very same ones, whose operators it then shares."""
        view = View(self.graph, kept, factor, epoch=self.epoch, noise=noise, nodes=nodes)
        view._shared = self._shared
        if kept is self.kept and factor is self.factor:
            view._operators, view._shifts = self._operators, self._shifts
        return view

    # -- noise --------------------------------------------------------------------------------------------

    @property
    def training(self) -> bool:
        """Whether this is a step of training: batch norm then moves its statistics, and entries are dropped."""
        return self.noise is not None

    def drop(self, h: Tensor, layer: int) -> Tensor:
        """``h [T, n, F]`` with entries dropped by the trials' rates; in evaluation as it is.

        ``layer`` is the number of the place where it is done: each has coins of its own.
        """
        return h if self.noise is None else self.noise.drop(h, layer)

    def drop_entries(self, values: Tensor, rates: Tensor, layer: int) -> Tensor:
        """The same for values ``[T, E, K]`` on the :meth:`entries` of a layer, with ``rates [T]`` of their own."""
        return values if self.noise is None else self.noise.at(rates).drop(values, ON_ENTRIES + layer)

    # -- edges --------------------------------------------------------------------------------------------

    def shift(self, normalizations: Sequence[str], layer: int = 0) -> Operator:
        """The operators S of T trials, each with its own normalisation: ``S @ h`` for ``h [T, N, F]``.

        In a mini-batch only the first rows come back, those that ``layer`` computes. In the whole graph all layers see
        the same edges.
        """
        names = tuple(normalizations)
        if names not in self._shifts:
            made = self.operator(names)
            self._shifts[names] = Dense(made.to_dense()) if self.graph.num_nodes <= DENSE_NODES else made
        return self._shifts[names]

    def operator(self, normalizations: Sequence[str]) -> ShiftOperator:
        """The same of the whole graph, a batch of T, or of 1 where all trials have the same."""
        names = tuple(normalizations)
        if names not in self._operators:
            if self.factors is not None:
                made = reweighted(self._shared.whole(names), self.factors)
            elif self.kept is not None or self.factor is not None:
                present = self.kept if self.factor is None else self.weights
                assert present is not None
                present = present if present.dim() == 2 else present[None]
                made = _operators(self.graph, present, self._shared.groups(names))
            else:
                made = self._shared.whole(names)
            self._operators[names] = made
        return self._operators[names]

    def entries(self, layer: int = 0) -> Entries:
        """The entries of the operators, for networks that compute their values."""
        return self._shared.entries

    def entry_weights(self, layer: int = 0) -> Tensor | None:
        """What every entry weighs before normalisation, ``[T, E]``: 0 where it is dropped; ``None``: 1 everywhere."""
        return self._entry_weights

    def entry_factors(self, layer: int = 0) -> Tensor | None:
        """By what every entry is multiplied after normalisation, ``[T, E]``, with ``unbiased``; ``None``: by 1."""
        return self._entry_factors

    @cached_property
    def weights(self) -> Tensor | None:
        """What every edge weighs before normalisation, float32 ``[T, M]``; ``None``: 1."""
        kept = self.factor if self.kept is None else self.kept if self.factor is None else None
        return None if kept is None else _batched(kept)

    @cached_property
    def factors(self) -> Tensor | None:
        """By what every edge is multiplied after normalisation, float32 ``[T, M]``; ``None``: 1."""
        if self.kept is None or self.factor is None:
            return None
        return _batched(torch.where(self.kept, self.factor, 0.0))

    @cached_property
    def _entry_weights(self) -> Tensor | None:
        return None if self.weights is None else self.entries().spread(self.weights)

    @cached_property
    def _entry_factors(self) -> Tensor | None:
        return None if self.factors is None else self.entries().spread(self.factors)


class _Shared:
    """What all views of one graph share: made once, and never again while an epoch is recorded."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._whole: dict[tuple[str, ...], ShiftOperator] = {}
        self._groups: dict[tuple[str, ...], dict[str, Tensor]] = {}

    @cached_property
    def entries(self) -> Entries:
        return Entries.of(self.graph)

    def whole(self, names: tuple[str, ...]) -> ShiftOperator:
        """The operators of the whole graph, a batch of T, or of 1 where all trials have the same."""
        if names not in self._whole:
            self._whole[names] = _operators(self.graph, None, self.groups(names))
        return self._whole[names]

    def groups(self, names: tuple[str, ...]) -> dict[str, Tensor]:
        """The trials ``[K]`` of each normalisation."""
        if names not in self._groups:
            self._groups[names] = {
                name: torch.tensor([i for i, other in enumerate(names) if other == name], device=self.graph.device)
                for name in sorted(set(names))
            }
        return self._groups[names]


def _operators(graph: Graph, weights: Tensor | None, groups: dict[str, Tensor]) -> ShiftOperator:
    """The operators of edges with ``weights [T, M]``, or ``[1, M]`` for all trials; ``None``: of the whole graph."""
    made = {
        name: normalized(
            graph,
            weights if weights is None or len(groups) == 1 or len(weights) == 1 else weights.index_select(0, rows),
            NORMALIZATIONS[name],
            torch.float32,
        )
        for name, rows in groups.items()
    }
    if len(made) == 1:
        return next(iter(made.values()))
    trials, first = sum(map(len, groups.values())), next(iter(made.values()))
    if weights is not None and graph.weight is not None:
        weights = weights * graph.weight.to(torch.float32)
    left, right, diagonal = (first.scales.left.new_empty((trials, graph.num_nodes)) for _ in range(3))
    for name, rows in groups.items():
        for part, own in zip((left, right, diagonal), made[name].scales[:3], strict=True):
            part.index_copy_(0, rows, own.expand(len(rows), -1))
    symmetric = all(each.symmetric for each in made.values())
    return ShiftOperator(
        graph.pattern, first.weights if weights is None else weights, Scales(left, right, diagonal, symmetric)
    )


def _batched(values: Tensor) -> Tensor:
    values = values.to(torch.float32)
    return values if values.dim() == 2 else values[None]
