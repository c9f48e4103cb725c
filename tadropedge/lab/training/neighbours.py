"""Mini-batches: some training nodes per step, and of the edges of an epoch those that their outputs depend on.

Each epoch draws its subgraph as a whole, as a training on the whole graph does, and makes its operator once: a layer of
a mini-batch is some rows of that operator. With a fan-out of −1, which takes all neighbours, a step computes what the
whole graph gives at its nodes, dropout included and but for rounding. Of sampled neighbours each stands for several, so
that sums are right on average.

Going back from the nodes of a step, hop h finds what a layer with h layers after it looks at. Nodes stand in the order
in which they are found, so that a layer computes the first rows only, those that are still needed. Which neighbours are
sampled is a pure function of (seed, epoch, hop, entry): the same on every worker and on every rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tadropedge.errors import TadropedgeError
from tadropedge.lab.networks.layers import Inputs
from tadropedge.lab.networks.noise import Noise
from tadropedge.lab.networks.sparse import Entries, Sparse
from tadropedge.lab.networks.view import ON_ENTRIES, View
from tadropedge.lab.training.batch import Batch, Step
from tadropedge.lab.training.experiment import Experiment
from tadropedge.lab.training.ranks import Ranks
from tadropedge.lab.training.trial import ALL, Trial
from tadropedge.operators.kernels.words import GOLDEN, draw_key, mix_tensor, signed
from tadropedge.operators.pattern import Csr

# Streams of random words: the order of training nodes, that of all nodes, and of neighbours by hop.
ORDER, EVERYONE, NEIGHBOURS = 30_000, 30_001, 20_000
RANKS_BELOW = 2**31  # the numbers by which neighbours are put in order


@dataclass(frozen=True, eq=False)
class Block:
    """One layer of a mini-batch: its first ``num_rows`` nodes look at its first ``num_cols``, which contain them.

    ``row``, ``col [K]`` are the ends of each entry, places in the mini-batch, sorted by row; ``entry [K]`` is its
    number in the pattern of the graph. ``share [num_rows]``: how many neighbours of a row each sampled one stands for.
    """

    num_rows: int
    num_cols: int
    row: Tensor
    col: Tensor
    entry: Tensor
    share: Tensor | None

    def places(self, rows: int) -> Csr:
        """The entries as places of a matrix ``[rows, num_cols]``; rows beyond those of the block are empty."""
        crow = torch.zeros(rows + 1, dtype=torch.int32, device=self.row.device)
        crow[1:] = torch.bincount(self.row, minlength=rows).cumsum(0)
        return Csr(crow, self.col.to(torch.int32), self.num_cols)


class BlockView(View):
    """What a network sees of a mini-batch: of each layer some rows of what it would see of the ``whole`` graph.

    ``nodes [n]`` are those of the mini-batch, by their numbers in the graph.
    """

    def __init__(self, whole: View, nodes: Tensor, blocks: Sequence[Block], noise: Noise) -> None:
        super().__init__(whole.graph, whole.kept, whole.factor, epoch=whole.epoch, noise=noise.of(nodes))
        self.whole, self.blocks = whole, list(blocks)

    def shift(self, normalizations: Sequence[str], layer: int = 0) -> Sparse:
        """The rows of the operators that a layer computes, ``[T, num_rows, num_cols]``."""
        block = self.blocks[layer]
        values = self.whole.operator(normalizations).values.index_select(-1, block.entry)
        if block.share is not None:
            values = torch.where(self._edge(block), values * block.share.index_select(0, block.row), values)
        return Sparse(block.places(block.num_rows), values)

    def entries(self, layer: int = 0) -> Entries:
        """The entries of a layer's block in a square matrix, whose last rows are empty."""
        block = self.blocks[layer]
        pair_source = self.graph.pattern.pair_source.index_select(0, block.entry)
        return Entries(block.places(block.num_cols), self._edge(block), pair_source, block.num_rows)

    def entry_weights(self, layer: int = 0) -> Tensor | None:
        """What every entry of the block weighs before normalisation, ``[T, K]``."""
        found = self.whole.entry_weights()
        return None if found is None else found.index_select(-1, self.blocks[layer].entry)

    def entry_factors(self, layer: int = 0) -> Tensor | None:
        """By what every entry of the block is multiplied after normalisation, ``[T, K]``."""
        found = self.whole.entry_factors()
        return None if found is None else found.index_select(-1, self.blocks[layer].entry)

    def drop_entries(self, values: Tensor, rates: Tensor, layer: int) -> Tensor:
        """Entries are known by their numbers in the graph, as nodes are."""
        assert self.noise is not None
        return self.noise.of(self.blocks[layer].entry).at(rates).drop(values, ON_ENTRIES + layer)

    def _edge(self, block: Block) -> Tensor:
        pattern = self.graph.pattern
        return pattern.source.index_select(0, block.entry) < 2 * pattern.num_pairs


class Neighbours:
    """The mini-batches of one epoch: neighbours over the edges that its ``whole`` view has.

    ``hops[l]`` says how many layers that look at neighbours come after layer l, and ``fanout[h]`` how many neighbours
    are taken in hop h at most. ``dropped``: layers see dropped edges too, whose factor is 0, as attention does with the
    option ``unbiased``.

    >>> from tadropedge import Graph
    >>> path = View(Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 4]]))
    >>> nodes, blocks = Neighbours(path, hops=[1, 0], fanout=[-1, -1], seed=0).around(torch.tensor([0]))
    >>> nodes.tolist(), [(block.num_rows, block.num_cols) for block in blocks]
    ([0, 1, 2], [(2, 3), (1, 2)])
    """

    def __init__(
        self, whole: View, *, hops: Sequence[int], fanout: Sequence[int], seed: int, dropped: bool = False
    ) -> None:
        self.whole, self.hops, self.fanout, self.seed = whole, list(hops), list(fanout), seed
        pattern, kept = whole.graph.pattern, whole.kept
        self.exists: Tensor | None = None  # which entries there are, [E]; None: all
        if kept is not None and not dropped:
            always = torch.ones(pattern.num_nodes, dtype=torch.bool, device=kept.device)
            self.exists = torch.cat((kept.reshape(-1), always)).index_select(0, pattern.pair_source)
        self._place = torch.full((pattern.num_nodes,), -1, dtype=torch.int64, device=pattern.col.device)

    def around(self, seeds: Tensor) -> tuple[Tensor, list[Block]]:
        """All nodes that the outputs of different ``seeds [S]`` depend on, the seeds first, and a block per layer."""
        nodes, place, found = seeds, self._place, []
        place[seeds] = torch.arange(len(seeds), device=seeds.device)
        col = self.whole.graph.pattern.col
        for hop in range(max(self.hops, default=-1) + 1):
            entry, row, share = self._rows(nodes, hop)
            columns = col.index_select(0, entry).to(torch.int64)
            fresh = columns[place.index_select(0, columns) < 0].unique()
            place[fresh] = torch.arange(len(nodes), len(nodes) + len(fresh), device=nodes.device)
            rows, nodes = len(nodes), torch.cat((nodes, fresh))
            found.append(Block(rows, len(nodes), row, place.index_select(0, columns), entry, share))
        place[nodes] = -1
        return nodes, [found[hop] for hop in self.hops]

    def _rows(self, nodes: Tensor, hop: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """The entries of the rows of ``nodes [R]``, of many neighbours a sample: number ``[K]``, row ``[K]``, share."""
        pattern, most = self.whole.graph.pattern, self.fanout[hop]
        entry, row = entries_of_rows(pattern.crow, nodes)
        if self.exists is not None:
            there = self.exists.index_select(0, entry)
            entry, row = entry[there], row[there]
        if most == ALL:
            return entry, row, None
        sizes = torch.bincount(row, minlength=len(nodes))
        starts, counts = sizes.cumsum(0) - sizes, sizes - 1  # the diagonal is no neighbour
        order = self._order(entry, hop).masked_fill_(pattern.source.index_select(0, entry) >= 2 * pattern.num_pairs, -1)
        by_order = (row * (RANKS_BELOW + 1) + order).argsort()  # rows stay where they are, and the diagonal comes first
        among = torch.arange(len(row), device=row.device) - starts.index_select(0, row) <= most
        chosen = by_order[among].sort().values
        return entry[chosen], row[chosen], counts / counts.clamp(1, most)

    def _order(self, entry: Tensor, hop: int) -> Tensor:
        """Random numbers below 2³¹ by which neighbours are put in order, one per entry."""
        return (random_words(entry, self.seed, int(self.whole.epoch), NEIGHBOURS + hop) >> 33) & (RANKS_BELOW - 1)


class SampledBatch(Batch):
    """One trial that is trained by mini-batches. Each process of ``ranks`` takes its share of the nodes of a step.

    An epoch is one pass over the training nodes in a new order. Where several draws are asked to agree, a step looks at
    as many nodes besides, taken from all in an order of their own.
    """

    def __init__(self, experiment: Experiment, trials: Sequence[Trial], ranks: Ranks | None = None) -> None:
        super().__init__(experiment, trials, rungs=False)
        plan, network = experiment.training.mini_batch, self.network()
        assert plan is not None
        self.ranks = ranks or Ranks()
        if self.ranks.count > 1 and any(one.get("batch_norm") for one in network.of_trials):
            count = self.ranks.count
            raise TadropedgeError(
                f"batch_norm cannot be used by {count} processes: its statistics would depend on their number"
            )
        if self.ranks.count > 1 and self.consistency is not None:
            raise TadropedgeError(
                f"'{trials[0].candidate}' cannot be trained by {self.ranks.count} processes: its mean prediction would "
                "depend on their number"
            )
        self.hops = network.hops or []
        self.size, self.fanout = plan.size, plan.of_hops(max(self.hops, default=-1) + 1)
        self.dropped = network.sees_dropped and "unbiased" in trials[0].candidate.dropping.options
        self.nodes = self.train[0].nonzero()[:, 0]

    def steps(self, epoch: int) -> Iterator[Step]:
        """The steps of an epoch, each with this process's share of its nodes."""
        seed, finishes = self.trials[0].seed, self.finishes(epoch)
        drawn = [self.edges.evaluation if finishes else self.edges.training(self.epoch, d) for d in range(self.draws)]
        near = [
            Neighbours(self.whole.of(*edges), hops=self.hops, fanout=self.fanout, seed=seed, dropped=self.dropped)
            for edges in drawn
        ]
        everyone = None
        if self.consistency is not None:
            numbers = torch.arange(len(self.labels), device=self.nodes.device)
            everyone = random_words(numbers, seed, epoch, EVERYONE).argsort(stable=True)
        order = (random_words(self.nodes, seed, epoch, ORDER) >> 1).argsort(stable=True)
        for number, nodes in enumerate(self.nodes[order].split(self.size)):
            mine = seeds = self.ranks.share(nodes)
            agree = None
            if everyone is not None:
                asked = everyone[number * self.size :][: len(nodes)]
                seeds = torch.cat((mine, asked[~torch.isin(asked, mine)]))
                agree = torch.isin(seeds, asked).nonzero()[:, 0]
            passes = []
            for each, noise in zip(near, self.noises, strict=True):
                found, blocks = each.around(seeds)
                x = rows_of(self.experiment.local.features, found)
                passes.append((x, BlockView(each.whole, found, blocks, noise)))
            yield Step(
                passes,
                self.labels[seeds],
                (torch.arange(len(seeds), device=mine.device) < len(mine)).float()[None],
                agree,
                share=len(mine) / len(nodes),
                part=len(mine) / len(self.nodes),
            )

    def summed(self, values: Sequence[Tensor]) -> list[Tensor]:
        """The sums over all processes."""
        return self.ranks.summed(values)


def random_words(numbers: Tensor, seed: int, epoch: int, stream: int) -> Tensor:
    """64 random bits for each number ``[K]``, int64: SplitMix64, started from (seed, epoch, stream)."""
    state, _ = draw_key(seed, epoch, stream, numbers.device)
    return mix_tensor((numbers + 1) * signed(GOLDEN) + state)


def entries_of_rows(crow: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The entries of ``rows [R]`` of a CSR matrix, one row after the other ``[K]``, and whose each is ``[K]``.

    >>> entries, owner = entries_of_rows(torch.tensor([0, 2, 2, 5]), torch.tensor([2, 0]))
    >>> entries.tolist(), owner.tolist()
    ([2, 3, 4, 0, 1], [0, 0, 0, 1, 1])
    """
    begin = crow.index_select(0, rows).to(torch.int64)
    counts = crow.index_select(0, rows + 1).to(torch.int64) - begin
    owner = torch.repeat_interleave(counts)
    before = counts.cumsum(0) - counts
    entries = torch.arange(len(owner), device=rows.device)
    entries += (begin - before).index_select(0, owner)
    return entries, owner


def rows_of(features: Tensor, nodes: Tensor) -> Inputs:
    """The features of some nodes ``[n, F]``, of the same layout.

    >>> rows_of(torch.eye(3), torch.tensor([2, 0])).features.tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    if features.layout is not torch.sparse_csr:
        return Inputs(features.index_select(0, nodes))
    from tadropedge.lab.data.features import csr

    entries, owner = entries_of_rows(features.crow_indices(), nodes)
    crow = torch.zeros(len(nodes) + 1, dtype=torch.int32, device=nodes.device)
    crow[1:] = torch.bincount(owner, minlength=len(nodes)).cumsum(0)
    col, values = (part.index_select(0, entries) for part in (features.col_indices(), features.values()))
    return Inputs(csr(crow, col.to(torch.int32), values, (len(nodes), features.shape[1])), entries)
