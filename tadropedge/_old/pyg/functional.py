"""Edge dropping as one stateless function, beside :func:`torch_geometric.utils.dropout_edge`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tadropedge._old.checks import as_integer, check_device, check_flag, check_seed, check_tensor
from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.pyg.adjacency import entries, is_adjacency, kept_arcs, known_size, matrix_size, plain_arcs, thinned
from tadropedge._old.pyg.coins import ArcCoins, PlannedCoins
from tadropedge._old.pyg.dropping import DEFAULT_RULE, Dropping
from tadropedge._old.pyg.known import UNKNOWN, Known, steady
from tadropedge._old.pyg.plans import MOST_GRAPHS, Arcs, DropPlan, lasting
from tadropedge._old.pyg.shapes import over
from tadropedge._old.pyg.taking import places
from tadropedge._old.pyg.traps import check_given, lengthened
from tadropedge._old.registry import SCORES, STRATEGIES
from tadropedge._old.sampling import key_tensor, signed, toss
from tadropedge._old.scores.solve import Score
from tadropedge._old.sensitivity import SENSITIVITY
from tadropedge._old.strategies import Score as Strategy

KNOWN: Known[Any] = Known(MOST_GRAPHS)
NEEDS = "AddKeepProbability makes one, or give a strategy and a budget"


def ta_dropout_edge(
    edge_index: Tensor,
    edge_keep_prob: Tensor | float | None = None,
    *,
    score: Score | None = None,
    strategy: str | Strategy | None = None,
    keep_prob: float | None = None,
    keep_ratio: float | None = None,
    gamma: float | str = "auto",
    inverse: bool = False,
    sensitivity: float = SENSITIVITY,
    connected: bool = False,
    exact: bool = False,
    seed: int = 0,
    epoch: int = 0,
    training: bool = True,
    node_id: Tensor | tuple[Tensor | None, Tensor | None] | None = None,
    x: Tensor | tuple[Tensor | None, Tensor | None] | None = None,
    num_nodes: int | tuple[int, int] | None = None,
    edge_weight: Tensor | None = None,
    coins: str = "pair",
    cache_dir: str | Path | None = None,
    **settings: Any,
) -> tuple[Any, Tensor]:
    """Drop edges by importance: the kept arcs ``[2, A']`` and the mask ``[A]`` over the arcs of ``edge_index``.

    The mask is a pure function of the arguments: equal ``seed`` and ``epoch`` give equal masks, on every device. All
    arguments are those of :class:`TADropEdge`, which keeps scores and probabilities between calls and also has
    ``unbiased`` and ``layers``. What the last few graphs and rules had is remembered while their tensors live and
    nothing is written into them; own functions are called each time. Give either ``edge_keep_prob [A]``, or one
    probability for all edges, or a rule: a ``score``, a ``strategy`` and ``keep_prob`` or ``keep_ratio``. With
    ``training=False`` everything is kept.

    An ``EdgeIndex`` stays one. A sparse matrix ``adj_t`` takes the place of the arcs, thinned in the same layout, and
    the mask is over its entries. ``num_nodes=(S, T)`` says that arcs lead from one set of nodes to another.

    >>> edge_index = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]])
    >>> thin, edge_mask = ta_dropout_edge(edge_index, score="degree", strategy="proportional", keep_ratio=0.75, epoch=2)
    >>> edge_mask.tolist()
    [True, True, False, False, True, True, True, True]
    >>> bool((thin == edge_index[:, edge_mask]).all())
    True
    """
    for name in ("unbiased", "layers", "keep_last"):
        if name in settings:
            raise TadropedgeError(f"ta_dropout_edge has no {name}=: it returns arcs and a mask; TADropEdge has it")
    given, keep_prob = _one_or_all(edge_keep_prob, keep_prob)
    rule: dict[str, Any] = {
        "score": score,
        "strategy": strategy,
        "keep_prob": keep_prob,
        "keep_ratio": keep_ratio,
        "gamma": gamma,
        "inverse": inverse,
        "sensitivity": sensitivity,
        "connected": connected,
        "exact": exact,
        "coins": coins,
        "cache_dir": cache_dir,
    }
    arcs = read_arcs(edge_index, node_id=node_id, x=x, num_nodes=num_nodes, edge_weight=edge_weight, coins=coins)
    sources = (*arcs.origins, *map(steady, (given, *arcs.values)), num_nodes, *_told(rule, settings))
    compiled = torch.compiler.is_compiling()
    known = None if compiled else KNOWN.find(sources)
    dropping = Dropping(**rule, settings=settings) if known is None else None
    if dropping is not None:
        arcs.check()
    words = signed(check_seed(seed, signed=True) % 2**64), _epoch(epoch)
    if not check_flag("training", training):
        return edge_index, torch.ones(arcs.edge_index.shape[1], dtype=torch.bool, device=arcs.edge_index.device)
    if dropping is not None:
        known = _coins(dropping, arcs, given)
        if not compiled:
            KNOWN.keep(sources, known)
    mask: Tensor = known.mask(*words)  # type: ignore[union-attr]
    paired = coins == "pair" and (given is None or connected or exact)
    return thinned_input(edge_index, mask, paired=paired), mask


def _one_or_all(edge_keep_prob: Any, keep_prob: float | None) -> tuple[Tensor | None, float | None]:
    """Probabilities of arcs, and the one of all edges, which may come in their place as PyG's ``p`` does."""
    if type(edge_keep_prob) is not float or not 0 <= edge_keep_prob <= 1:
        return edge_keep_prob, keep_prob
    if keep_prob is not None:
        raise TadropedgeError(f"edge_keep_prob={edge_keep_prob} and keep_prob={keep_prob}: give one of them")
    return None, edge_keep_prob


def _told(rule: Mapping[str, Any], settings: Mapping[str, Any]) -> tuple[object, ...]:
    """By what a rule is known: its settings, and what its names stand for now; own functions are never known."""
    score, strategy = rule["score"], rule["strategy"]
    if callable(score) or callable(strategy):
        return (UNKNOWN,)
    names = ((SCORES, score), (STRATEGIES, DEFAULT_RULE if strategy is None else strategy))
    functions = [registry.get(name) for registry, name in names if isinstance(name, str)]
    return (*rule.values(), *settings.items(), *functions)


def _coins(dropping: Dropping, arcs: Arcs, edge_keep_prob: Tensor | None) -> ArcCoins | PlannedCoins:
    """The coins of arcs, of values that are checked here."""
    check_source(dropping, edge_keep_prob)
    if edge_keep_prob is not None:
        check_given(check_keep_prob(arcs.edge_index, edge_keep_prob))
    arcs.check_ids()
    with lasting():
        if is_plain(dropping):
            return ArcCoins.of(arcs.words(arcs.placed), edge_keep_prob)  # type: ignore[arg-type]
        plan = DropPlan.of(dropping, arcs)
        rows = plan.given(edge_keep_prob) if plan.rows is None else plan.rows  # type: ignore[arg-type]
        if dropping.connected or dropping.exact:
            words = arcs.words(plan.graph.pairs)
            return PlannedCoins(plan=plan, rows=rows, words=words, exact=dropping.exact)
        return ArcCoins.of(arcs.words(arcs.placed), plan.arc_prob())


def read_arcs(
    edge_index: Any,
    *,
    node_id: Any,
    x: Any,
    num_nodes: Any,
    edge_weight: Tensor | None,
    coins: str = "pair",
    weighted: bool = True,
) -> Arcs:
    """The arcs of a tensor ``[2, A]``, of an ``EdgeIndex`` or of a sparse matrix, whose values are edge weights."""
    ordered = isinstance(coins, str) and coins == "arc"
    if not is_adjacency(edge_index):
        arcs, size = plain_arcs(edge_index), known_size(edge_index, num_nodes)
        return Arcs(edge_index=arcs, node_id=node_id, x=x, num_nodes=size, edge_weight=edge_weight, ordered=ordered)
    if edge_weight is not None:
        raise TadropedgeError(
            "edge_index is a sparse matrix, whose values are its edge weights: leave edge_weight= out"
        )
    found = entries(edge_index, "edge_index")
    weight = found.weight if weighted else None
    size = matrix_size(found, num_nodes)
    return Arcs(edge_index=found.edge_index, node_id=node_id, x=x, num_nodes=size, edge_weight=weight, ordered=ordered)


def thinned_input(edge_index: Any, mask: Tensor, prob: Tensor | None = None, *, paired: bool) -> Any:
    """What :func:`read_arcs` has read, with the arcs in ``mask`` alone; values of a matrix are divided by ``prob``."""
    if not is_adjacency(edge_index):
        return kept_arcs(edge_index, mask, paired=paired)
    values = entries(edge_index).values
    if values is None and prob is not None:
        values = torch.ones(mask.shape[0], device=mask.device)
    return thinned(edge_index, mask, None if values is None else over(values, prob, places(mask)))


def is_paired(dropping: Dropping) -> bool:
    """Whether both arcs of an edge surely have one fate: given probabilities may differ between them."""
    return dropping.coins == "pair" and not is_plain(dropping)


def is_plain(dropping: Dropping) -> bool:
    """Whether arcs are tossed one by one, with probabilities that come with the call."""
    return dropping.strategy is None and not dropping.connected and not dropping.exact


def toss_arcs(arcs: Arcs, edge_keep_prob: Tensor, seed: Tensor, epoch: Tensor) -> Tensor:
    """Toss the coin of every arc, which is that of its two nodes."""
    words = arcs.words(arcs.placed)
    multiplier, offset = key_tensor(seed, epoch)
    return toss(words, multiplier, offset, edge_keep_prob.to(torch.float64))


def check_source(dropping: Dropping, edge_keep_prob: object) -> None:
    """Refuse probabilities where a rule makes them, and none where no rule does."""
    if dropping.strategy is not None and edge_keep_prob is not None:
        raise TadropedgeError("give edge_keep_prob, or a rule that computes it, not both")
    if dropping.strategy is None and not isinstance(edge_keep_prob, Tensor):
        number = type(edge_keep_prob) is float
        needs = "one number for all edges is keep_prob, from 0 to 1" if number else NEEDS
        raise TadropedgeError(f"edge_keep_prob must be a tensor, got {show(edge_keep_prob)}; {needs}")


def check_keep_prob(edge_index: Tensor, edge_keep_prob: Tensor) -> Tensor:
    """Refuse probabilities of another shape or on another device than the arcs; values are not looked at."""
    if check_tensor("edge_keep_prob", edge_keep_prob).dim() != 1 or edge_keep_prob.shape[0] != edge_index.shape[1]:
        short = edge_keep_prob.dim() == 1 and edge_keep_prob.shape[0] < edge_index.shape[1]
        raise TadropedgeError(
            f"edge_keep_prob has shape {list(edge_keep_prob.shape)}, but edge_index has {edge_index.shape[1]} arcs"
            + (f"; {lengthened('edge_keep_prob')}" if short else "")
        )
    check_device("edge_keep_prob", edge_keep_prob, edge_index.device, "edge_index")
    return edge_keep_prob


def _epoch(epoch: object) -> int:
    number = as_integer(epoch)
    if number is None:
        raise TadropedgeError(f"epoch must be a whole number, got {show(epoch, typed=False)}")
    return signed(number % 2**64)
