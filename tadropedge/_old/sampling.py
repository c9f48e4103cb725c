"""Phase III, the coins: which edges are kept in an epoch.

A coin is a pure function of (seed, epoch, pair), made of integer arithmetic only. So it is the same on CPU and
GPU, alone or in a batch of seeds, before and after a resume, and on every worker. There is no state to save.

Every pair m has a fixed random-looking word h_m (SplitMix64 of its number); every (seed, epoch) has an odd
multiplier a and an offset b (SplitMix64 again). The coin is the word a · h_m + b mod 2⁶⁴: for each pair uniform
over seeds and epochs, and pairwise independent. An edge is kept when the coin's upper 53 bits, read as a number in
[0, 1), are below its probability.

Two options draw other masks from the same coins. ``connected``: every mask contains a spanning forest. ``exact``:
every mask has the same number of edges. Both are made of sorting, integer sums and single float64 operations that
IEEE 754 rounds in one way, so these masks, too, are equal bit for bit on every device and in every batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from tadropedge._old.checks import (
    as_integer,
    check_device,
    check_flag,
    check_integer,
    check_kind,
    check_length,
    check_number,
    check_probability,
    check_runs_on,
    check_seed,
    check_tensor,
    check_whole,
)
from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.forest import ForestPlan
from tadropedge._old.graph import Graph
from tadropedge._old.memory import LARGE, check_memory, within_memory
from tadropedge._old.sparse import runs_kernels

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB
COIN_BYTES = 17  # a word, a probability and the answer
BLOCK = 2**17  # coins that are tossed together on a CPU: they stay in its cache
CACHED = 2**20  # coins whose memory is at hand again in the next epoch, so that blocks gain nothing
ORDER_BYTES = 40  # the same where edges are put in order
FOREST_BYTES = 80  # the same for an edge or a node where forests grow
STREAMS = {"multiplier": 1, "offset": 2}
FOREST = 1_000_000  # the forest of layer l has the stream FOREST + l; coins, dropout and networks stay far below
SLACK = 1e-7  # what rounding may take from a sum of probabilities, those of float32 included
FINITE = torch.finfo(torch.float64).max


@within_memory("coins", "take fewer seeds at once")
def sample_edges(
    prob: Tensor,
    seed: int | Sequence[int] | Tensor = 0,
    epoch: int = 0,
    *,
    pairs: Tensor | None = None,
    connected: Graph | None = None,
    exact: bool = False,
) -> Tensor:
    """Keep each edge with its probability: bool ``[M]``, or ``[T, M]`` for T seeds or ``prob [T, M]``.

    A pair is identified by its place in ``prob``. With ``pairs [2, M]`` it is identified by its two node ids
    instead, in either order: then both arcs of an edge share one coin, and so does the same edge in every
    mini-batch whose nodes keep their ids.

    ``connected``, the graph whose edges these are, keeps every component whole: each mask contains a spanning forest F,
    that of the smallest v / p, where v is a second coin of the pair and p its probability, so that likely edges are
    likely in it. Every other edge is kept by its ordinary coin with probability c · p,

        c = (Σ p − |F|) / Σ_(m not in F) p_m ≤ 1,

    so that the expected number of kept edges is still Σ p, which must be at least |F| = N − components. Edges of the
    forest are then kept more often than p says, the others less often; edges of p = 0 only where nothing else connects.

    ``exact`` keeps exactly Σ p edges, rounded to the nearest whole number: those of the smallest u / p, where u is the
    ordinary coin. This is sequential Poisson sampling (Ohlsson, Journal of Official Statistics 14, 1998): the chance of
    an edge is p only approximately, p = 1 is likely but not certain, and p = 0 is never kept. With both options the
    forest comes first, then the edges of the smallest u / p.

    >>> prob = torch.tensor([0.0, 0.5, 0.5, 1.0])
    >>> sample_edges(prob, seed=0, epoch=3).tolist()
    [False, False, True, True]
    >>> many = sample_edges(prob, seed=[0, 1, 2], epoch=3)
    >>> many.shape, bool((many[0] == sample_edges(prob, seed=0, epoch=3)).all())
    (torch.Size([3, 4]), True)
    >>> sample_edges(prob, seed=[0, 1, 2], epoch=3, exact=True).sum(dim=1).tolist()
    [2, 2, 2]
    >>> square = Graph.from_edge_index([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> sample_edges(torch.full((4,), 0.75), seed=0, epoch=3, connected=square).tolist()
    [True, True, True, False]
    """
    if check_tensor("prob", prob).dim() not in (1, 2):
        raise TadropedgeError(f"prob must have shape [M] or [T, M], got {list(prob.shape)}")
    prob = check_probability("prob", prob)
    exact = check_flag("exact", exact)
    if pairs is None:
        words = pair_words(prob.shape[-1], prob.device)
    else:
        pairs = check_length("pairs", pairs, prob.shape[-1], "probability")
        check_device("pairs", pairs, prob.device, "prob")
        words = node_pair_words(pairs)
    if connected is None and not exact:
        if fused(prob):
            seeds, number = _words(seed, epoch, prob)
            _check_room(max(seeds.numel(), prob[..., :1].numel()), prob.shape[-1], prob.device)
            return toss_seeds(words, seeds, number, prob, numbered=pairs is None)
        multiplier, offset = _keys(seed, epoch, prob)
        rows = len(multiplier) if isinstance(multiplier, Tensor) else prob.numel() // max(1, prob.shape[-1])
        _check_room(rows, prob.shape[-1], prob.device)
        return toss(words, multiplier, offset, prob)
    seeds, number = _words(seed, epoch, prob)
    rows = max(seeds.numel(), prob.shape[0] if prob.dim() == 2 else 1)
    _check_room(rows, prob.shape[-1], prob.device, ORDER_BYTES)
    forest = None if connected is None else _checked_plan(connected, prob.detach(), rows)
    return draw(words, seeds, number, prob.detach(), forest=forest, exact=exact)


def _checked_plan(connected: Graph, prob: Tensor, rows: int) -> ForestPlan:
    """The plan of the graph whose edges ``prob`` is about, after checking that its forests can be afforded."""
    graph = check_kind("connected", connected, Graph)
    check_length("prob", prob, graph.num_edges, "edge of the graph in connected")
    check_device("connected", graph.pairs, prob.device, "prob")
    _check_room(rows, graph.num_edges + graph.num_nodes, prob.device, FOREST_BYTES)
    plan = ForestPlan.of(graph)
    check_connected(plan, prob)
    return plan


@within_memory("coins", "take fewer seeds at once")
def sample_directed(
    num_pairs: int,
    keep_prob: float,
    seed: int | Sequence[int] | Tensor = 0,
    epoch: int = 0,
    *,
    device: torch.device | str = "cpu",
) -> Tensor:
    """DropEdge's own rule: keep exactly ⌊p · nnz⌋ of the nnz = 2 M directed entries, bool ``[2 M]`` or ``[T, 2 M]``.

    Entry m is pair m read forwards (row ``pairs[0]``, column ``pairs[1]``), entry M + m the same pair read
    backwards. The two directions are drawn separately, so the adjacency is no longer symmetric: this is for
    parity with the published DropEdge code. :func:`tadropedge.shift_operator` takes such masks too.

    >>> sample_directed(10, keep_prob=0.72).sum().item()
    14
    """
    entries = 2 * check_integer("num_pairs", num_pairs, least=0)
    kept = int(check_number("keep_prob", keep_prob, 0, 1) * entries)
    device = check_runs_on(device)
    multiplier, offset = _keys(seed, epoch, torch.empty(0, device=device))
    _check_room(len(multiplier) if isinstance(multiplier, Tensor) else 1, entries, device)
    coins: Tensor = pair_words(entries, device) * multiplier + offset
    if kept == 0:
        return torch.zeros_like(coins, dtype=torch.bool)
    # Words differ and odd multipliers are one-to-one, so there are no ties and the count is exact.
    return coins <= coins.kthvalue(kept, dim=-1, keepdim=True).values


def _check_room(rows: int, edges: int, device: torch.device | str, each: int = COIN_BYTES) -> None:
    """Refuse coins that would not fit, before any is tossed."""
    need = each * rows * edges
    if need > LARGE:
        check_memory(need, f"{rows} × {edges} coins", "take fewer seeds at once", device)


def toss(words: Tensor, multiplier: int | Tensor, offset: int | Tensor, prob: Tensor) -> Tensor:
    """Compare the coins ``a · h + b`` with float64 probabilities. Multiplication wraps modulo 2⁶⁴."""
    if words.is_cuda or words.shape[-1] <= BLOCK or torch.compiler.is_compiling():
        return _toss(words, multiplier, offset, prob)
    # In the cache this takes a fifth of the time, or less where fresh memory is slow to get.
    keys = (multiplier, offset)
    shapes = [each.shape for each in (words, prob, *keys) if isinstance(each, Tensor)]
    shape = torch.broadcast_shapes(*shapes)
    width = max(1, BLOCK * shape[-1] // shape.numel())
    parts = [(..., slice(begin, begin + width)) for begin in range(0, shape[-1], width)]
    # Put together and not written into one tensor, which vmap over seeds could not do.
    return torch.cat([_toss(words[part], multiplier, offset, prob[part]) for part in parts], dim=-1)


def _toss(words: Tensor, multiplier: int | Tensor, offset: int | Tensor, prob: Tensor) -> Tensor:
    coins = words * multiplier
    coins += offset
    coins >>= 11
    # 53 bits are exact in float64 on every device: p = 1 always keeps and p = 0 never does.
    return coins < (prob - 0.5) * 2.0**53


def thresholds(prob: Tensor) -> Tensor:
    """Probabilities as int64: the coin of an edge, 53 bits with a sign, keeps it where it is below.

    >>> thresholds(torch.tensor([0.0, 0.5, 1.0])).tolist() == [-(2**52), 0, 2**52]
    True
    """
    return ((prob.to(torch.float64) - 0.5) * 2.0**53).ceil().to(torch.int64)


def toss_below(words: Tensor, below: Tensor, seed: int, epoch: int) -> Tensor:
    """:func:`toss` on a CPU with what does not change between epochs computed before: :func:`thresholds`, both ``[M]``.

    >>> prob = torch.tensor([0.0, 0.5, 0.5, 1.0])
    >>> toss_below(pair_words(4, prob.device), thresholds(prob), seed=0, epoch=3).tolist()
    [False, False, True, True]
    """
    multiplier, number = key(seed, epoch)
    offset = torch.tensor(number, device=words.device)
    if words.shape[0] <= CACHED:
        coins = torch.add(offset, words, alpha=multiplier)
        coins >>= 11
        return coins < below
    kept = torch.empty(words.shape[0], dtype=torch.bool, device=words.device)
    coins = words.new_empty(BLOCK)
    for begin in range(0, words.shape[0], BLOCK):
        part = slice(begin, begin + BLOCK)
        here = coins[: min(BLOCK, words.shape[0] - begin)]
        torch.add(offset, words[part], alpha=multiplier, out=here)
        here >>= 11
        torch.lt(here, below[part], out=kept[part])
    return kept


def toss_seeds(
    words: Tensor, seeds: Tensor, epoch: Tensor, prob: Tensor, stream: int = 0, *, numbered: bool = False
) -> Tensor:
    """The masks ``[..., M]`` of int64 ``seeds [...]`` in an epoch, by float64 ``prob [..., M]``; axes broadcast.

    On a GPU one kernel draws them, unless they are part of a larger program. ``numbered`` says that ``words [M]`` are
    those of :func:`pair_words`, which it need not read then.

    >>> prob = torch.full((2,), 0.5, dtype=torch.float64)
    >>> toss_seeds(pair_words(2, prob.device), torch.tensor([0, 1, 2]), torch.tensor(3), prob).tolist()
    [[False, False], [False, False], [False, True]]
    """
    if prob.dtype == torch.float64 and fused(prob):
        from tadropedge._old.kernels import coins

        return coins(None if numbered else words, seeds, epoch, prob, stream)
    multiplier, offset = key_tensor(seeds, epoch, stream)
    return toss(words, multiplier[..., None], offset[..., None], prob)


def keys(seeds: Tensor, epoch: Tensor, stream: int = 0) -> tuple[Tensor, Tensor]:
    """:func:`key_tensor`, on a GPU in one launch unless it is part of a larger program."""
    if fused(seeds):
        from tadropedge._old.kernels import keys as kernel

        return kernel(seeds, epoch, stream)
    return key_tensor(seeds, epoch, stream)


def fused(x: Tensor) -> bool:
    """Whether kernels of our own draw: not inside of a compiled or vectorised function, which cannot see into them."""
    if torch.compiler.is_compiling() or not runs_kernels(x):
        return False
    return not vectorised()


def vectorised() -> bool:
    """Whether this runs inside of :func:`torch.vmap` or the like, where values cannot be looked at."""
    found: bool = torch._C._functorch.peek_interpreter_stack() is not None
    return found


def draw(
    words: Tensor,
    seeds: Tensor,
    epoch: Tensor,
    prob: Tensor,
    *,
    layer: int = 0,
    forest: ForestPlan | None = None,
    exact: bool = False,
    inside: Tensor | None = None,
    fixed: bool = False,
    trees: Tensor | None = None,
) -> Tensor:
    """The masks of :func:`sample_edges` for code that holds tensors: ``[..., M]``, with unchecked float64 ``prob``.

    ``words [M]`` are the words of the pairs (:func:`pair_words`, :func:`node_pair_words`), ``seeds`` a number or
    ``[T]`` and ``epoch`` a number, both int64 tensors. Each ``layer`` has its own coins and its own forests.
    ``inside [T, M]`` marks the edges that a row may use at all: the others are never kept, Σ p leaves them out, and
    forests span the graph of the edges inside. With ``fixed`` no value is looked at on the host, so that a CUDA graph
    can record it; without, large graphs are faster. The masks are equal. ``trees`` are the forests of the masks, bool
    ``[..., M]``, where they were drawn before (:func:`draw_forests`).

    :func:`check_connected` says, once and on the host, whether Σ p suffices; where it does not, the forest alone is
    kept here.
    """
    if inside is not None:
        prob = torch.where(inside, prob, 0.0)
    if forest is None and not exact:
        return toss_seeds(words, seeds, epoch, prob, layer)
    if forest is not None and trees is None:
        (trees,) = draw_forests(forest, words, seeds, epoch[None], prob, layer=layer, inside=inside, fixed=fixed)
    if trees is not None and not exact:
        return toss_around(trees, words, seeds, epoch, prob, layer=layer)
    return smallest(order_of(words, seeds, epoch, prob, layer), prob, trees, fixed=fixed)


def draw_nested(
    words: Tensor,
    seeds: Tensor,
    epoch: Tensor,
    rows: Tensor,
    *,
    forest: ForestPlan | None = None,
    exact: bool = False,
    inside: Tensor | None = None,
    fixed: bool = False,
    trees: Tensor | None = None,
) -> list[Tensor]:
    """One mask for each of ``rows [L, ..., M]`` of rising probabilities, by one coin: each contains those before it.

    With a ``forest``, all contain that of the first row; the share c of the other edges grows with their probabilities.
    An ``exact`` number takes the edges of the row before first. Other arguments are as in :func:`draw`.
    """
    rows = rows if inside is None else torch.where(inside, rows, 0.0)
    at = (words, seeds, epoch)
    if forest is None and not exact:
        return list(toss_seeds(*at, rows))
    if forest is not None and trees is None:
        (trees,) = draw_forests(forest, words, seeds, epoch[None], rows[0], inside=inside, fixed=fixed)
    masks: list[Tensor] = []
    for row in rows:
        before = masks[-1] if masks else trees
        if exact:
            masks.append(smallest(order_of(*at, row, 0), row, before, fixed=fixed))
        elif trees is not None and before is not None:
            masks.append(toss_around(trees, *at, row) | before)  # c · p may have been rounded down
    return masks


def draw_forests(
    forest: ForestPlan,
    words: Tensor,
    seeds: Tensor,
    epochs: Tensor,
    prob: Tensor,
    *,
    layer: int = 0,
    inside: Tensor | None = None,
    fixed: bool = False,
) -> Tensor:
    """The forests of smallest v / p in the ``connected`` masks of some ``epochs [K]``, bool ``[K, ..., M]``.

    Other arguments are as in :func:`draw`.
    """
    priority = torch.stack([order_of(words, seeds, epoch, prob, FOREST + layer) for epoch in epochs])
    if inside is None:
        return forest.forest(priority, fixed=fixed)
    # Edges outside come after those of probability 0, and what they connect is then cut again.
    return forest.forest(torch.where(inside, priority.clamp_max(FINITE), torch.inf), fixed=fixed) & inside


def toss_around(trees: Tensor, words: Tensor, seeds: Tensor, epoch: Tensor, prob: Tensor, *, layer: int = 0) -> Tensor:
    """Keep the forest ``trees [..., M]``, and every other edge with probability c · p, so that Σ p are expected.

    c does not fall when a probability rises. So masks of one forest and one ``layer`` are nested where the
    probabilities are.
    """
    units, one = fixed_point(prob)
    total = units.sum(dim=-1, keepdim=True)
    rest = total - torch.where(trees, units, 0).sum(dim=-1, keepdim=True)
    needed = (total - trees.sum(dim=-1, keepdim=True) * one).clamp_min(0)
    share = needed.to(torch.float64) / rest.clamp_min(1).to(torch.float64)
    return toss_seeds(words, seeds, epoch, share * prob, layer) | trees


def smallest(order: Tensor, prob: Tensor, first: Tensor | None = None, *, fixed: bool = False) -> Tensor:
    """Keep Σ p edges, rounded half up, of smallest ``order [..., M]``; those of ``first`` come before all others."""
    units, one = fixed_point(prob)
    # A millionth below a half counts as a half: ten edges at a ratio of 0.75 may sum to 7.499999999999999.
    half = one // 2 + (one >> 20)
    count = (units.sum(dim=-1, keepdim=True) + half).div(one, rounding_mode="floor")
    if first is not None:
        order = torch.where(first, -1.0, order)
        count = torch.maximum(count, first.sum(dim=-1, keepdim=True))
    last = _kth_value(order, count.expand(*order.shape[:-1], 1), fixed)
    below, equal = order < last, order == last
    # Of those that are equal to the last one, the first by their number fill up the count.
    return below | (equal & (equal.cumsum(dim=-1) <= count - below.sum(dim=-1, keepdim=True)))


def _kth_value(order: Tensor, count: Tensor, fixed: bool) -> Tensor:
    """The value ``[..., 1]`` that is at place ``count`` (1 for the smallest) of each sorted row of ``order``."""
    if order.numel() == 0:
        return order.new_zeros(count.shape)
    if fixed or count.numel() > 1 or order.is_cuda:  # where a kth value takes longer than a sort
        return order.sort(dim=-1).values.gather(-1, (count - 1).clamp_min(0))
    return order.kthvalue(max(1, int(count)), dim=-1, keepdim=True).values


def order_of(words: Tensor, seeds: Tensor, epoch: Tensor, prob: Tensor, stream: int) -> Tensor:
    """Coin over probability, float64 ``[..., M]``, at least 0; infinite where, and only where, p = 0."""
    multiplier, offset = keys(seeds, epoch, stream)
    coins = words * multiplier[..., None]
    coins += offset[..., None]
    coins >>= 11
    uniform = (coins + 2**52).to(torch.float64) * 2.0**-53
    return torch.where(prob > 0, (uniform / prob).clamp_max(FINITE), torch.inf)


def fixed_point(prob: Tensor) -> tuple[Tensor, int]:
    """Probabilities as int64 multiples of 1 / one, and ``one``: sums of integers are the same in every order."""
    one = 2 ** min(53, 62 - prob.shape[-1].bit_length())
    return (prob * one).round().to(torch.int64), one


def check_connected(forest: ForestPlan, prob: Tensor, inside: Tensor | None = None) -> None:
    """Refuse probabilities ``[..., M]`` whose sum is below the size of the forest, and name the least that is not.

    >>> check_connected(ForestPlan.of(Graph.from_edge_index([[0, 1, 2], [1, 2, 0]])), torch.full((3,), 0.5))
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: connected masks keep at least 2 of 3 edges (keep ratio 0.666667), but the \
probabilities sum to 1.5
    """
    if inside is None:
        least, edges = torch.tensor(forest.size), torch.tensor(prob.shape[-1])
    else:
        least = (forest.forest((~inside).to(torch.float64)) & inside).sum(dim=-1).cpu()
        edges, prob = inside.sum(dim=-1).cpu(), torch.where(inside, prob, 0.0)
    total = prob.sum(dim=-1, dtype=torch.float64).cpu()
    facts = torch.stack(torch.broadcast_tensors(least.double(), edges.double(), total)).view(3, -1)
    short = facts[2] < facts[0] * (1 - SLACK)
    if bool(short.any()):
        size, count, found = facts[:, short][:, 0].tolist()
        ratio = math.ceil(size / count * 1e6) / 1e6  # rounded up: it is to suffice
        raise TadropedgeError(
            f"connected masks keep at least {size:.0f} of {count:.0f} edges (keep ratio {ratio:g}), but the "
            f"probabilities sum to {found:.9g}"
        )


def mix(word: int) -> int:
    """SplitMix64's finaliser: a one-to-one scramble of 64-bit words.

    >>> hex(mix(GOLDEN))  # the first output of SplitMix64 seeded with 0
    '0xe220a8397b1dcdaf'
    """
    word = ((word ^ (word >> 30)) * FIRST) & MASK
    word = ((word ^ (word >> 27)) * SECOND) & MASK
    return word ^ (word >> 31)


def mix_tensor(words: Tensor) -> Tensor:
    """:func:`mix` on int64 tensors, whose products wrap and whose shifts need their sign bits cleared."""
    words = (words ^ ((words >> 30) & (2**34 - 1))) * signed(FIRST)
    words = (words ^ ((words >> 27) & (2**37 - 1))) * signed(SECOND)
    return words ^ ((words >> 31) & (2**33 - 1))


def signed(word: int) -> int:
    """Read a 64-bit word as a signed integer, as int64 tensors do.

    >>> signed(2**64 - 1)
    -1
    """
    return word - 2**64 if word >= 2**63 else word


def key(seed: int, epoch: int, stream: int = 0) -> tuple[int, int]:
    """The odd multiplier and the offset of (seed, epoch), as signed 64-bit integers.

    ``stream`` separates independent uses of one seed: the layers of a network, its dropout.
    """
    state = mix((mix((seed + (stream + 1) * GOLDEN) & MASK) + epoch * GOLDEN) & MASK)
    multiplier = mix((state + STREAMS["multiplier"] * GOLDEN) & MASK) | 1
    offset = mix((state + STREAMS["offset"] * GOLDEN) & MASK)
    return signed(multiplier), signed(offset)


def key_tensor(seed: Tensor, epoch: Tensor, stream: int = 0) -> tuple[Tensor, Tensor]:
    """:func:`key` on int64 tensors: for code that must not leave the device or is compiled."""
    golden = signed(GOLDEN)
    state = mix_tensor(mix_tensor(seed + signed((stream + 1) * GOLDEN & MASK)) + epoch * golden)
    multiplier = mix_tensor(state + signed(STREAMS["multiplier"] * GOLDEN & MASK)) | 1
    offset = mix_tensor(state + signed(STREAMS["offset"] * GOLDEN & MASK))
    return multiplier, offset


@torch.compiler.disable  # type: ignore[untyped-decorator]  # inductor folds the product with other overflow
@lru_cache(maxsize=16)
def pair_words(count: int, device: torch.device) -> Tensor:
    """The words h_0 … h_(count − 1), int64. Cached: they depend only on the count."""
    return mix_tensor(torch.arange(1, count + 1, device=device) * signed(GOLDEN))


def number_words(numbers: Tensor) -> Tensor:
    """The words of some of those pairs, by their ``numbers``, int64 of any shape: for who holds a part of them.

    >>> bool((number_words(torch.tensor([2, 5])) == pair_words(6, torch.device("cpu"))[[2, 5]]).all())
    True
    """
    return mix_tensor((numbers + 1) * signed(GOLDEN))


def node_pair_words(pairs: Tensor, *, ordered: bool = False, relation: int = 0) -> Tensor:
    """The words of node pairs ``[2, M]``, the same for (i, j) and (j, i) unless pairs are ``ordered``.

    ``relation`` is a number of 64 bits, one for each relation of a graph of many relations, whose words then differ.

    >>> node_pair_words(torch.tensor([[3, 7], [7, 3]])).unique().numel()
    1
    >>> node_pair_words(torch.tensor([[3, 7], [7, 3]]), ordered=True).unique().numel()
    2
    """
    if check_whole("node pairs", pairs).dim() != 2 or pairs.shape[0] != 2:
        raise TadropedgeError(f"node pairs must be whole numbers [2, M], got {pairs.dtype} {list(pairs.shape)}")
    pairs = pairs.to(torch.int64)  # narrower integers would wrap elsewhere
    first, second = pairs[0], pairs[1]
    if not ordered:
        first, second = torch.minimum(first, second), torch.maximum(first, second)
    start = (first + 1) * signed(GOLDEN)
    if relation:
        start = start + signed(relation)
    return mix_tensor(mix_tensor(start) + second * signed(GOLDEN))


def _keys(seed: int | Sequence[int] | Tensor, epoch: int, like: Tensor) -> tuple[int | Tensor, int | Tensor]:
    """The keys of one seed as two integers, or of T seeds as two columns ``[T, 1]``."""
    seeds, number = _checked(seed, epoch, like)
    if isinstance(seeds, int):
        return key(seeds, number)
    keys = torch.tensor([key(each, number) for each in seeds], device=like.device)
    return keys[:, :1], keys[:, 1:]


def _words(seed: int | Sequence[int] | Tensor, epoch: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """One seed as an int64 tensor without axes, or T seeds as ``[T]``, and the epoch: what :func:`key_tensor` takes."""
    seeds, number = _checked(seed, epoch, like)
    words = signed(seeds & MASK) if isinstance(seeds, int) else [signed(each & MASK) for each in seeds]
    return torch.tensor(words, device=like.device), torch.tensor(signed(number & MASK), device=like.device)


def _checked(seed: int | Sequence[int] | Tensor, epoch: int, like: Tensor) -> tuple[int | list[int], int]:
    """One seed or a list of seeds, and the epoch, as integers."""
    number = as_integer(epoch)
    if number is None:
        raise TadropedgeError(f"epoch must be a whole number, got {show(epoch, typed=False)}")
    one = as_integer(seed)
    if one is not None:
        return check_seed(one, signed=True), number
    if isinstance(seed, Tensor):
        check_tensor("seed", seed)
    listed = seed.tolist() if hasattr(seed, "tolist") else seed
    seeds = [as_integer(each) for each in listed] if isinstance(listed, (list, tuple, range)) else []
    known = [each for each in seeds if each is not None]
    if not seeds or len(known) < len(seeds):
        raise TadropedgeError(f"seed must be a whole number or a list of them, got {show(seed, typed=False)}")
    if like.dim() == 2 and like.shape[0] not in (1, len(seeds)):
        raise TadropedgeError(f"prob has {like.shape[0]} rows, but there are {len(seeds)} seeds")
    return [check_seed(each, signed=True) for each in known], number
