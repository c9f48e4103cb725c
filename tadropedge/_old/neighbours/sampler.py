"""Mini-batches by neighbour sampling, over the edges that are kept in an epoch.

Going back from the seeds, hop h finds the neighbours that a layer with h layers after it looks at. Nodes are in the
order in which they are found, so that the nodes of the first hops are the first of the mini-batch: a layer computes the
first rows only, those that are still needed.

Everything is a pure function of (seed, epoch, node, hop): the same neighbours are sampled in every mini-batch, on every
worker and on every rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tadropedge._old.neighbours.block import LayerBlock
from tadropedge._old.neighbours.coins import ranks_of
from tadropedge._old.neighbours.plan import ALL
from tadropedge._old.neighbours.thinned import SeenRows, ThinnedGraph, joined

STREAM = 20_000  # of the order of neighbours, plus the hop; coins, dropout and networks stay below
LARGEST = 2**31  # the numbers that neighbours are put in order by are below it
SLACK = 5.0  # standard deviations above the number of candidates that is expected to suffice


@dataclass(frozen=True, kw_only=True, eq=False)
class MiniBatch:
    """The nodes ``[n]``, of which the first are the seeds, and a block for each layer of the network."""

    nodes: Tensor
    num_seeds: int
    blocks: Sequence[LayerBlock]


class NeighbourSampler:
    """Mini-batches for a network whose layer l is followed by ``hops[l]`` others that look at neighbours.

    ``fanout[h]`` neighbours at most are taken in hop h, −1 takes all. Where sampled, they are drawn without
    replacement, each set of them equally likely. ``dropped``: layers see dropped edges too, with a factor of 0, as
    attention does with the option ``unbiased``. ``unbiased`` divides kept entries by their keep probability.
    ``of_rows`` says that layers need the degrees of their rows alone.
    """

    def __init__(
        self,
        thinned: ThinnedGraph,
        hops: Sequence[int],
        fanout: Sequence[int],
        *,
        unbiased: bool = False,
        dropped: bool = False,
        of_rows: bool = False,
    ) -> None:
        self.thinned, self.hops, self.fanout = thinned, list(hops), list(fanout)
        self.unbiased, self.dropped, self.of_rows = unbiased, dropped, of_rows
        graph = thinned.graph
        self._place = torch.full((graph.num_nodes,), -1, dtype=torch.int32, device=graph.device)

    def sample(self, seeds: Tensor, epoch: int) -> MiniBatch:
        """The mini-batch of different nodes ``seeds [S]`` in an epoch."""
        nodes, sizes = seeds, [len(seeds)]
        self._place[seeds] = torch.arange(len(seeds), dtype=torch.int32, device=seeds.device)
        found: dict[tuple[int, int], SeenRows] = {}
        columns: dict[tuple[int, int], Tensor] = {}
        col = self.thinned.graph.pattern.col
        for hop in range(max(self.hops, default=-1) + 1):
            for key in self._keys(hop):
                found[key] = joined([self._rows(part, epoch, *key) for part in self.thinned.pieces(nodes)])
                columns[key] = col.index_select(0, found[key].entry)
            reached = torch.cat([columns[key] for key in self._keys(hop)])
            fresh = reached[self._place.index_select(0, reached) < 0].unique().to(torch.int64)
            places = torch.arange(len(nodes), len(nodes) + len(fresh), dtype=torch.int32, device=nodes.device)
            self._place[fresh] = places
            nodes = torch.cat((nodes, fresh))
            sizes.append(len(nodes))
        made = {
            (hop, draw): self._block(seen, columns[hop, draw], nodes[: sizes[hop + 1]], epoch, draw)
            for (hop, draw), seen in found.items()
        }
        self._place[nodes] = -1
        blocks = [made[hop, self._draw(layer)] for layer, hop in enumerate(self.hops)]
        return MiniBatch(nodes=nodes, num_seeds=len(seeds), blocks=blocks)

    def _draw(self, layer: int) -> int:
        """The number of the subgraph that a layer sees."""
        return layer if self.thinned.coins.layers > 1 else 0

    def _keys(self, hop: int) -> list[tuple[int, int]]:
        """(hop, subgraph) of the layers that look from this hop to the next."""
        return sorted({(hop, self._draw(layer)) for layer, other in enumerate(self.hops) if other == hop})

    def _rows(self, nodes: Tensor, epoch: int, hop: int, draw: int) -> SeenRows:
        """What the rows of ``nodes`` see in one subgraph, of many neighbours a sample."""
        seen, most = self.thinned.rows(nodes, epoch, draw, dropped=self.dropped), self.fanout[hop]
        if most == ALL:
            return seen
        # Rows were read whole, so that it is known how many the sampled neighbours stand for.
        counts = torch.bincount(seen.owner, minlength=len(nodes)) - 1
        chosen = self._chosen(seen, counts, most, (self.thinned.coins.seed, epoch, STREAM + hop))
        return replace(seen.take(chosen), share=counts / counts.clamp(1, most))

    def _chosen(self, seen: SeenRows, counts: Tensor, most: int, at: tuple[int, int, int]) -> Tensor:
        """The places ``[K']`` of the diagonal and of at most ``most`` edges of each row, of the smallest numbers."""
        long = counts > most
        if not bool(long.any()):
            return torch.arange(len(seen.owner), device=counts.device)
        ranks = ranks_of(seen.entry, *at).masked_fill_(seen.pair >= self.thinned.graph.num_edges, -1)
        # The smallest are almost surely below this: few need to be put in order. Where it was too low, all are.
        limit = ((most + SLACK * most**0.5 + SLACK) / counts.clamp_min(1) * LARGEST).to(torch.int64)
        limit = torch.where(long, limit.clamp_max(LARGEST), LARGEST)
        places = (ranks < limit.index_select(0, seen.owner)).nonzero()[:, 0]
        owner = seen.owner.index_select(0, places)
        lacking = torch.bincount(owner, minlength=len(counts)) <= counts.clamp_max(most)
        if bool((lacking & long).any()):
            limit = torch.where(lacking, LARGEST, limit)
            places = (ranks < limit.index_select(0, seen.owner)).nonzero()[:, 0]
            owner = seen.owner.index_select(0, places)
        order = (owner * (LARGEST + 1) + ranks.index_select(0, places)).argsort()  # rows stay where they are
        starts = torch.searchsorted(owner, torch.arange(len(counts), device=owner.device))
        among = torch.arange(len(owner), device=owner.device) - starts.index_select(0, owner) <= most
        return places[order[among]].sort().values

    def _block(self, seen: SeenRows, columns: Tensor, ends: Tensor, epoch: int, draw: int) -> LayerBlock:
        """The block of rows that look at the nodes ``ends``, of which they are the first."""
        graph, coins = self.thinned.graph, self.thinned.coins
        edge = seen.pair < graph.num_edges
        pair = torch.where(edge, seen.pair, 0)
        factor = None
        if self.unbiased and coins.prob is not None:
            factor = coins.inverse(pair, draw) if seen.kept is None else coins.inverse(pair, draw) * seen.kept
            factor = torch.where(edge, factor, 1.0)
        rows = len(seen.degrees)
        if self.of_rows:
            others = seen.degrees.new_zeros(len(ends) - rows)
        else:
            others = self.thinned.degrees(ends[rows:], epoch, draw)
        return LayerBlock(
            num_rows=rows,
            num_cols=len(ends),
            row=seen.owner,
            col=self._place.index_select(0, columns).to(torch.int64),
            entry=seen.entry,
            edge=edge,
            degrees=torch.cat((seen.degrees, others)),
            weight=None if graph.weight is None else graph.weight.to(torch.float32).index_select(0, pair),
            share=seen.share,
            factor=factor,
        )
