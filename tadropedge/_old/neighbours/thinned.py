"""The rows and degrees of the graph that is left in an epoch, for the nodes that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import torch
from torch import Tensor

from tadropedge._old.graph import Graph
from tadropedge._old.neighbours.coins import PairCoins
from tadropedge._old.neighbours.rows import entries_of_rows
from tadropedge._old.sampling import BLOCK


@dataclass(frozen=True, kw_only=True, eq=False)
class SeenRows:
    """The entries ``[K]`` of some rows that are seen in an epoch, and the degrees ``[R]`` of these rows.

    ``owner`` is the place of the row, ``entry`` the number in the pattern, ``pair`` that of the edge, M + i on the
    diagonal; ``kept`` says whether the coin kept it where dropped edges are seen too, else it is None.
    """

    owner: Tensor
    entry: Tensor
    pair: Tensor
    kept: Tensor | None
    degrees: Tensor
    share: Tensor | None = None  # [R], where neighbours are a sample: how many each of them stands for

    def take(self, places: Tensor) -> SeenRows:
        """Those at some places; degrees stay as they are."""
        parts = [one.index_select(0, places) for one in (self.owner, self.entry, self.pair)]
        kept = None if self.kept is None else self.kept.index_select(0, places)
        return SeenRows(owner=parts[0], entry=parts[1], pair=parts[2], kept=kept, degrees=self.degrees)


def joined(parts: Sequence[SeenRows]) -> SeenRows:
    """What several groups of rows see, one group after the other."""
    if len(parts) == 1:
        return parts[0]
    before = accumulate((len(part.degrees) for part in parts[:-1]), initial=0)

    def column(name: str) -> Tensor | None:
        values = [getattr(part, name) for part in parts]
        return None if values[0] is None else torch.cat(values)

    named = {name: column(name) for name in ("entry", "pair", "kept", "degrees", "share")}
    owner = torch.cat([part.owner + count for part, count in zip(parts, before, strict=True)])
    return SeenRows(owner=owner, **named)  # type: ignore[arg-type]  # only the optional ones can be None


class ThinnedGraph:
    """The subgraphs of each epoch, never made as a whole.

    ``whole_degrees`` says that degrees are those of the whole graph, as the option ``unbiased`` has it. What is found
    about a node is remembered until the epoch ends, so that its coins are tossed once for its degree.
    """

    def __init__(self, graph: Graph, coins: PairCoins, *, whole_degrees: bool = False) -> None:
        self.graph, self.coins = graph, coins
        self.whole_degrees = whole_degrees or coins.prob is None
        self._known: dict[int, tuple[int, Tensor]] = {}

    def rows(self, nodes: Tensor, epoch: int, layer: int = 0, *, dropped: bool = False) -> SeenRows:
        """The kept entries of the rows of ``nodes [R]``, with the diagonal; where ``dropped``, the others as well."""
        entry, owner = entries_of_rows(self.graph.pattern.crow, nodes)
        pair = self.graph.pattern.pair_source.index_select(0, entry)
        kept = None if self.coins.prob is None else self._kept(pair, epoch, layer)
        if kept is not None and not dropped:
            places = kept.nonzero()[:, 0]
            owner, entry, pair = (one.index_select(0, places) for one in (owner, entry, pair))
            kept = None
        if self.whole_degrees:
            degrees = self._whole.index_select(0, nodes)
        else:
            degrees = self._sums(owner, pair, len(nodes))
            self._memory(epoch, layer).index_copy_(0, nodes, degrees)
        return SeenRows(owner=owner, entry=entry, pair=pair, kept=kept, degrees=degrees)

    def pieces(self, nodes: Tensor) -> Sequence[Tensor]:
        """The nodes in groups whose rows are read together: on a CPU they stay in its cache."""
        if nodes.is_cuda or not len(nodes):
            return [nodes]
        crow = self.graph.pattern.crow
        until = (crow.index_select(0, nodes + 1) - crow.index_select(0, nodes)).cumsum(0)
        sizes = torch.bincount(until.div(BLOCK, rounding_mode="floor"))
        pieces: Sequence[Tensor] = nodes.split([size for size in sizes.tolist() if size])
        return pieces

    def degrees(self, nodes: Tensor, epoch: int, layer: int = 0) -> Tensor:
        """The degrees of ``nodes [R]`` in the subgraph of a layer, float32: sums of the weights of their kept edges."""
        if self.whole_degrees:
            return self._whole.index_select(0, nodes)
        memory = self._memory(epoch, layer)
        found = memory.index_select(0, nodes)
        unknown = found < 0
        if bool(unknown.any()):
            others = nodes[unknown]
            fresh = torch.cat([self.rows(part, epoch, layer).degrees for part in self.pieces(others)])
            found[unknown] = fresh
        return found

    def _kept(self, pair: Tensor, epoch: int, layer: int) -> Tensor:
        """Whether coins keep these pairs; entries of the diagonal are always kept."""
        diagonal = pair >= self.graph.num_edges
        kept = self.coins.kept(pair.masked_fill(diagonal, 0), epoch, layer)
        return kept.logical_or_(diagonal)

    def _sums(self, owner: Tensor, pair: Tensor, rows: int) -> Tensor:
        """The degrees ``[R]`` of rows from their kept entries."""
        weight = self.graph.weight
        if weight is None:
            counts = torch.bincount(owner, minlength=rows)
            return (counts - 1).to(torch.float32)  # the diagonal is no neighbour
        padded = torch.nn.functional.pad(weight.to(torch.float32), (0, 1))
        values = padded.index_select(0, pair.clamp_max(len(weight)))
        return torch.zeros(rows, device=owner.device).index_add_(0, owner, values)

    def _memory(self, epoch: int, layer: int) -> Tensor:
        """The degrees found so far in this epoch, ``[N]``, −1 where they are not known."""
        known = self._known.get(layer)
        if known is None or known[0] != epoch:
            values = torch.full((self.graph.num_nodes,), -1.0, device=self.graph.device) if known is None else known[1]
            self._known[layer] = (epoch, values.fill_(-1.0))
        return self._known[layer][1]

    @cached_property
    def _whole(self) -> Tensor:
        """The degrees of the whole graph, ``[N]``."""
        pattern, weight = self.graph.pattern, self.graph.weight
        if weight is None:
            return (pattern.crow.diff() - 1).to(torch.float32)
        sums = torch.zeros(self.graph.num_nodes, device=weight.device)
        for side in pattern.pairs:
            sums.index_add_(0, side, weight.to(torch.float32))
        return sums
