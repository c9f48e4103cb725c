"""Which process holds which node: few pairs between processes, and about the same work in each.

The work of a node is that of its row: its neighbours, and :data:`NODE` for what is done per node. ``metis`` is the
recursive bisection or k-way scheme of METIS through ``pymetis``; ``multilevel`` is our own, on the coarsening that the
solvers use: aggregates of aggregates, a partition of the smallest graph by growing regions, and on the way back up
moves of boundary nodes that cut less. ``random`` is what both are measured against.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tadropedge._old.checks import check_integer, check_kind, check_seed
from tadropedge._old.errors import TadropedgeError, lookup
from tadropedge._old.graph import Graph
from tadropedge._old.spectrum.multigrid import aggregates

NODE = 16  # the work of a node besides its neighbours, in neighbours
COARSEST = 64  # nodes of the smallest graph, per process
IMBALANCE = 1.05  # what a process may have more than the mean
SWEEPS = 12  # of moves on every level
TRIES = 8  # of growing regions on the smallest graph


@dataclass(frozen=True)
class Cut:
    """What a partition costs: ``edges`` between processes, ``boundary`` rows that are fetched, the largest ``load``.

    A row counts once for every process that fetches it. ``load`` is the work of the busiest process over the mean.
    """

    edges: int
    boundary: int
    load: float


def partition(graph: Graph, parts: int, how: str = "auto", seed: int = 0) -> Tensor:
    """The process ``[N]`` of each node, int64 in 0 … ``parts`` − 1; each has at least one.

    ``how`` is ``metis``, ``multilevel``, ``random`` or ``auto``: METIS where ``pymetis`` is installed, else our own.

    >>> ring = Graph.from_edge_index([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
    >>> cut_of(ring, partition(ring, 2, "multilevel"))
    Cut(edges=2, boundary=4, load=1.0)
    """
    check_kind("graph", graph, Graph)
    parts = check_integer("parts", parts, least=1)
    call = lookup("how", how, HOW)
    seed = check_seed(seed)
    if parts > graph.num_nodes:
        raise TadropedgeError(
            f"parts (the processes of torchrun, --nproc-per-node) must be at most the number of nodes, "
            f"{graph.num_nodes}, got {parts}"
        )
    if parts == 1:
        return torch.zeros(graph.num_nodes, dtype=torch.int64)
    return _filled(call(graph.to("cpu"), parts, seed), parts)


def cut_of(graph: Graph, owner: Tensor) -> Cut:
    """What a partition ``owner [N]`` costs: see :class:`Cut`."""
    owner = owner.to(graph.device)
    low, high = graph.pairs
    crossing = owner[low] != owner[high]
    low, high = low[crossing], high[crossing]
    parts = int(owner.max()) + 1
    fetched = torch.cat((low * parts + owner[high], high * parts + owner[low])).unique()
    load = torch.zeros(parts, dtype=torch.int64, device=graph.device).index_add_(0, owner, work_of(graph))
    return Cut(int(crossing.sum()), len(fetched), round(float(load.max() * parts / load.sum()), 4))


def work_of(graph: Graph) -> Tensor:
    """The work of each node, int64 ``[N]``."""
    return torch.bincount(graph.pairs.flatten(), minlength=graph.num_nodes) + NODE


def _random(graph: Graph, parts: int, seed: int) -> Tensor:
    """Equally many nodes for each, at random."""
    order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(seed))
    return torch.empty_like(order).index_copy_(0, order, torch.arange(graph.num_nodes) * parts // graph.num_nodes)


def _metis(graph: Graph, parts: int, seed: int) -> Tensor:
    try:
        import pymetis
    except ImportError:
        raise TadropedgeError(
            "the partition 'metis' needs pymetis: pip install 'tadropedge[metis]', or take 'multilevel'"
        ) from None
    pairs = torch.cat((graph.pairs, graph.pairs.flip(0)), dim=1)
    order = pairs[0].argsort(stable=True)
    starts = torch.nn.functional.pad(torch.bincount(pairs[0], minlength=graph.num_nodes).cumsum(0), (1, 0))
    adjacency = pymetis.CSRAdjacency(starts.numpy(), pairs[1][order].numpy())
    options = pymetis.Options(seed=seed % 2**31)
    _, found = pymetis.part_graph(parts, adjacency, vweights=work_of(graph).numpy(), options=options)
    return torch.tensor(found, dtype=torch.int64)


def _multilevel(graph: Graph, parts: int, seed: int) -> Tensor:
    """Coarsen, partition the smallest graph, and improve on every level of the way back."""
    pairs = graph.pairs
    both = torch.cat((pairs, pairs.flip(0)), dim=1)
    row, col = both[:, both[0].argsort(stable=True)]
    # The weight of an edge counts how many it stands for: what is cut is edges, whatever they weigh in the graph.
    level = _Level(row, col, torch.ones(len(row), dtype=torch.float64), work_of(graph).to(torch.float64))
    levels, parents = [level], []
    most = float(level.work.sum()) / parts / 4  # no node of a coarse graph is larger than a quarter of a part
    while level.count > COARSEST * parts:
        parent, coarse = level.coarsened(most)
        if coarse.count > 0.9 * level.count:
            break
        parents.append(parent)
        levels.append(coarse)
        level = coarse
    owner = min((_grown(level, parts, seed + k) for k in range(TRIES)), key=level.cut)
    for place in range(len(levels) - 1, -1, -1):
        owner = _improved(levels[place], owner, parts, seed)
        owner = owner if place == 0 else owner[parents[place - 1]]
    return owner


@dataclass(frozen=True, eq=False)
class _Level:
    """One graph: both directions of its edges, their weights, and the work of its nodes."""

    row: Tensor
    col: Tensor
    weight: Tensor
    work: Tensor

    @property
    def count(self) -> int:
        return len(self.work)

    def cut(self, owner: Tensor) -> float:
        return float(self.weight[owner[self.row] != owner[self.col]].sum())

    def coarsened(self, most: float) -> tuple[Tensor, _Level]:
        """The aggregate of each node, and their graph; one that became too large is taken apart again."""
        n = self.count
        # Edges between nodes of small work first: hubs would gather everything.
        near = self.weight / (self.work[self.row] * self.work[self.col]).sqrt()
        # Rows of aggregates are never empty: a component that has become one node stays as it is.
        linked = torch.zeros(n, dtype=torch.bool).index_fill_(0, self.row, True)
        if not bool(linked.any()):
            return torch.arange(n), self
        place = linked.cumsum(0) - 1
        found, count = aggregates(place[self.row], place[self.col], near, int(linked.sum()))
        parent = count + (~linked).cumsum(0) - 1
        parent[linked] = found
        count += n - len(place[linked])
        work = torch.zeros(count, dtype=torch.float64).index_add_(0, parent, self.work)
        large = work[parent] > most
        parent = torch.where(large, count + torch.arange(n), parent)
        parent = parent.unique(return_inverse=True)[1]
        count = int(parent.max()) + 1
        up, across = parent[self.row], parent[self.col]
        between = up != across
        keys, place = (up[between] * count + across[between]).unique(return_inverse=True)
        weight = torch.zeros(len(keys), dtype=torch.float64).index_add_(0, place, self.weight[between])
        return parent, _Level(
            keys // count,
            keys % count,
            weight,
            torch.zeros(count, dtype=torch.float64).index_add_(0, parent, self.work),
        )


def _grown(level: _Level, parts: int, seed: int) -> Tensor:
    """Regions that grow one after the other, by the node with the most weight into the region, until they are full."""
    n = level.count
    owner = torch.full((n,), -1)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    starts = torch.searchsorted(level.row.contiguous(), torch.arange(n + 1)).tolist()
    cols, weights, work = level.col.tolist(), level.weight.tolist(), level.work.tolist()
    free = [True] * n
    left, place = float(level.work.sum()), 0
    for part in range(parts - 1):
        full = left / (parts - part)
        held = 0.0
        pull: dict[int, float] = {}
        while held < full:
            if not pull:
                while place < n and not free[order[place]]:
                    place += 1
                if place == n:
                    break
                node = int(order[place])
            else:
                node = max(pull, key=pull.__getitem__)
                pull.pop(node)
            if held and held + work[node] / 2 > full:
                break
            free[node] = False
            owner[node] = part
            held += work[node]
            for at in range(starts[node], starts[node + 1]):
                if free[cols[at]]:
                    pull[cols[at]] = pull.get(cols[at], 0.0) + weights[at]
        left -= held
    return torch.where(owner < 0, parts - 1, owner)


def _improved(level: _Level, owner: Tensor, parts: int, seed: int) -> Tensor:
    """Move nodes to the process that they have most weight to, where it has room; the best that was seen is kept.

    Each sweep considers a random half of the nodes, so that two neighbours seldom change places with each other.
    """
    generator = torch.Generator().manual_seed(seed)
    limit = IMBALANCE * float(level.work.sum()) / parts
    best, least = owner, (_excess(level, owner, parts, limit), level.cut(owner))
    for _ in range(SWEEPS):
        pull = torch.zeros(level.count * parts, dtype=torch.float64)
        pull = pull.index_add_(0, level.row * parts + owner[level.col], level.weight).view(-1, parts)
        held = pull.gather(1, owner[:, None])[:, 0]
        load = torch.zeros(parts, dtype=torch.float64).index_add_(0, owner, level.work)
        open_to = pull.masked_fill((load >= limit)[None, :], -1.0).scatter(1, owner[:, None], -1.0)
        gain, target = open_to.max(dim=1)
        gain = torch.where(target == owner, -torch.inf, gain - held)
        crowded = load[owner] > limit
        lucky = torch.rand(level.count, generator=generator) < 0.5
        wish = ((gain > 0) & lucky) | (crowded & (gain > -torch.inf))
        movers = wish.nonzero()[:, 0]
        if not len(movers):
            break
        movers = movers[(-gain[movers] / level.work[movers] ** crowded[movers].double()).argsort()]
        owner = _moved(level, owner, movers, target, load, limit)
        found = (_excess(level, owner, parts, limit), level.cut(owner))
        if found < least:
            best, least = owner, found
    return best


def _moved(level: _Level, owner: Tensor, movers: Tensor, target: Tensor, load: Tensor, limit: float) -> Tensor:
    """The movers in order, as long as there is room where they go."""
    owner = owner.clone()
    room = (limit - load).clamp_min(0)
    for part in range(len(load)):
        mine = movers[target[movers] == part]
        fits = level.work[mine].cumsum(0) <= room[part]
        mine = mine[fits]
        owner[mine] = part
    return owner


def _excess(level: _Level, owner: Tensor, parts: int, limit: float) -> float:
    """How far the largest process is above what it may have."""
    load = torch.zeros(parts, dtype=torch.float64).index_add_(0, owner, level.work)
    return max(0.0, float(load.max()) - limit)


def _filled(owner: Tensor, parts: int) -> Tensor:
    """The same, with a node for every process: one that has none takes some of the largest."""
    counts = torch.bincount(owner, minlength=parts)
    for empty in (counts == 0).nonzero()[:, 0].tolist():
        largest = int(torch.bincount(owner, minlength=parts).argmax())
        owner[int((owner == largest).nonzero()[0, 0])] = empty
    return owner


def _auto(graph: Graph, parts: int, seed: int) -> Tensor:
    try:
        import pymetis  # noqa: F401
    except ImportError:
        return _multilevel(graph, parts, seed)
    return _metis(graph, parts, seed)


HOW: dict[str, Callable[[Graph, int, int], Tensor]] = {
    "auto": _auto,
    "metis": _metis,
    "multilevel": _multilevel,
    "random": _random,
}
