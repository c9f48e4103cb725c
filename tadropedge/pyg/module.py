"""``DropEdge``: the module that drops, weighs or prunes the edges of whatever PyG calls a graph."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import get_worker_info
from torch.utils.weak import WeakTensorKeyDictionary
from torch_geometric.data import HeteroData
from torch_geometric.data.data import BaseData

from tadropedge._support.checks import check_integer, check_length, check_number, check_seed
from tadropedge.dropping import Dropping
from tadropedge.errors import TadropedgeError, show
from tadropedge.graph import Graph, check_sign
from tadropedge.operators.kernels.words import MASK, signed
from tadropedge.pyg.model_checks import warn_normalized, warn_summed
from tadropedge.pyg.shapes import (
    Link,
    check_given,
    check_pairs,
    is_matrix,
    joined,
    link_of,
    other_arcs,
    places,
    same,
    take,
    taken,
)
from tadropedge.pyg.stores import about, links_of, thin_store
from tadropedge.sampling.coins import RELATION
from tadropedge.sampling.plan import Plan

PAPER = "cdf"  # the method of the paper


class _Plans(WeakTensorKeyDictionary):
    """The cache: a plan for each tensor of the user's, as long as that lives, with what it was computed from.

    Copies of the module start empty.
    """

    def __reduce__(self) -> tuple[type[_Plans], tuple[()]]:
        return _Plans, ()

    def __copy__(self) -> _Plans:
        return _Plans()

    def __deepcopy__(self, memo: dict[int, Any]) -> _Plans:
        return _Plans()


class DropEdge(nn.Module):
    """Drop edges in training; in ``eval()`` let everything pass. What comes back has the kind of what went in.

    ``DropEdge(p=0.2)`` is PyG's ``dropout_edge`` for undirected graphs as a module. ``DropEdge("degree-proportional",
    keep_ratio=0.1)`` scores the edges of a graph when it first sees it and keeps a tenth of them, by their scores.

    Args:
        method: a name of the grammar of :mod:`tadropedge.dropping`, or a :class:`tadropedge.Dropping`. Its use says
            what is done: edges are ``dropped``, ``weighted`` by their keep probability, ``pruned`` to the best, or
            dropped in training and weighted in evaluation (``expected``).
        p: the share to **drop**, as in PyG: 1 − ``keep_prob``, or 1 − ``keep_ratio`` where the rule has no
            ``keep_prob``. Without any budget it is 0.5.
        keep_prob: the rule's probability of keeping an edge; or the name of an attribute of ``Data`` that has the
            probability of each arc, as :class:`AddKeepProbability` writes it.
        keep_ratio: the expected share of kept edges, or a function of the epoch that returns it.
        seed: by default drawn from torch's generator, so that two modules see two subgraphs and ``seed_everything``
            reaches them.
        weight: the attribute of ``Data`` with the edge weights, which enter the score; ``None`` looks at none.
        exclude: pairs that are left out of the messages in training, in both directions: the name of an attribute of
            ``Data`` such as ``"edge_label_index"``, or an edge tensor. See :func:`exclude_edges`.
        settings: those of the score and the rule (``q=7``, ``gamma=0.1``, ``column="trust"``, ``cache_dir=…``).

    ====================================  ==============================================================================
    what goes in                          what comes out, in training and in evaluation
    ====================================  ==============================================================================
    ``edge_index`` or ``EdgeIndex``       ``(edge_index, edge_mask)``, the kept arcs ``[2, A']`` and their mask ``[A]``;
                                          ``(edge_index, edge_mask, edge_weight)`` where weights went in or edges get
                                          weights (``weighted``, ``expected``, ``unbiased``)
    ``adj_t``, any sparse matrix          the matrix of the same layout, with values
    ``Data``, ``Batch``, ``HeteroData``   a shallow copy in which every attribute of arcs is thinned alike
    ====================================  ==============================================================================

    **Coins.** A mask is a pure function of seed, epoch and node ids: both directions of an edge share a coin, and a
    mini-batch that brings ``n_id`` draws as the whole graph does. Every call in training draws with the next epoch,
    from the first :meth:`set_epoch` on with that one. Self-loops always stay. Each relation of a ``HeteroData`` is a
    graph with coins of its own, which ``rev_…`` shares.

    **State.** Seed and epoch are numbers in the ``state_dict``. A ``DataLoader`` worker holds a copy: there the
    worker's own seed is mixed in, so that copies and passes differ, unless a seed was given and :meth:`set_epoch`
    called: then masks are the same with one worker or many. A worker that persists keeps the epoch that it was started
    with. Gradient checkpointing, which runs a forward pass twice, needs :meth:`set_epoch` too. ``torch.compile`` runs
    this module outside of the compiled graph.

    Scores and probabilities are kept as long as the tensor ``edge_index`` lives and nothing is written into it. Mini-
    batches have their own scores, so let :class:`AddKeepProbability` score the whole graph and give
    ``keep_prob="edge_keep_prob"`` here.

    >>> drop = DropEdge("degree-proportional", keep_ratio=0.75, seed=3)
    >>> edge_index = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]])
    >>> kept, edge_mask = drop(edge_index)
    >>> edge_mask.tolist()
    [True, True, False, False, True, True, True, True]
    >>> drop.eval()(edge_index)[0] is edge_index
    True
    """

    def __init__(
        self,
        method: str | Dropping = "dropedge",
        *,
        p: float | None = None,
        keep_prob: float | str | None = None,
        keep_ratio: float | Callable[[int], float] | None = None,
        seed: int | None = None,
        weight: str | None = "edge_weight",
        exclude: str | Tensor | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        _check_arguments(method, keep_prob, weight)
        drawn = seed is None
        self.seed = int(torch.randint(2**63 - 1, (), device="cpu")) if drawn else signed(check_seed(seed) & MASK)
        self.seeded = not drawn
        self.epoch, self.pinned = 0, False  # pinned: the user sets the epoch
        self.keep_prob = keep_prob if isinstance(keep_prob, str) else None
        budget = {"keep_prob": None if isinstance(keep_prob, str) else keep_prob, "keep_ratio": keep_ratio}
        dropping = Dropping.parse(method, **budget, **settings)
        self.dropping = _with_share(dropping, p, needed=self.keep_prob is None)
        self._without_default = dropping if p is None else self.dropping  # without p = 0.5, for calls with keep_prob
        if self.keep_prob is not None and not (self.dropping.is_free and self.dropping.score is None):
            raise TadropedgeError(
                f"keep_prob={keep_prob!r} names the probabilities of edges, but {str(self.dropping)!r} makes them "
                "itself: use 'dropedge', without a budget",
                argument="keep_prob",
            )
        self._takes_features = dropping.takes_features
        self.weight = weight
        self.exclude = exclude if exclude is None or isinstance(exclude, str) else check_pairs("exclude", exclude)
        self._plans = _Plans()
        self._checked = False  # whether a first graph was checked for the mistakes that model_checks warns of

    # -- the state: two numbers of which all draws are a pure function ---------------------------------

    def set_epoch(self, epoch: int) -> None:
        """Draw by this epoch until the next call of this function: from now on the caller counts the epochs."""
        self.epoch, self.pinned = check_integer("epoch", epoch, least=0), True

    def get_extra_state(self) -> Tensor:
        """Seed and epoch, for ``state_dict()``."""
        return torch.tensor([self.seed, self.epoch], device="cpu")

    def set_extra_state(self, state: Tensor) -> None:
        """Take over the seed and the epoch of a ``state_dict``."""
        self.seed, self.epoch = state.tolist()

    def _seed_and_epoch(self) -> tuple[int, int]:
        """What the next call draws by; in a ``DataLoader`` worker another seed, unless the user set both."""
        seed, epoch, worker = self.seed, self.epoch, get_worker_info()
        if worker is not None and not (self.seeded and self.pinned):
            seed ^= worker.seed  # every worker has a copy of the module, which counts its own calls alone
        return seed, epoch

    def _advance(self) -> None:
        """In training, the next call has the next epoch, unless the caller counts."""
        if self.training and not self.pinned:
            self.epoch += 1

    # -- what comes back ------------------------------------------------------------------------------

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(
        self,
        edge_index: Any,
        edge_weight: Tensor | None = None,
        *,
        keep_prob: Tensor | None = None,
        x: Any = None,
        num_nodes: int | tuple[int, int] | None = None,
        node_id: Any = None,
    ) -> Any:
        """Thin a graph, see :class:`DropEdge`; if its arcs have more than weights, give a ``Data``.

        Args:
            edge_index: arcs, a sparse matrix, a ``Data`` or a ``HeteroData``.
            edge_weight: the weights of arcs ``[A]``; they enter the score and come back thinned.
            keep_prob: the probability of keeping each arc ``[A]``, for ``"dropedge"`` without a budget;
                both directions of an edge have the mean of theirs.
            x: features ``[N, F]``, for the scores that compare them.
            num_nodes: N; ``(S, T)`` if arcs lead from S nodes of one kind to T nodes of another.
            node_id: the ids ``[N]`` of the nodes in the whole graph; in mini-batches PyG's ``n_id``.
        """
        read = self._read(edge_index, edge_weight, keep_prob, x, num_nodes, node_id)
        thin = self._apply_to(read, self._seed_and_epoch())
        self._advance()
        return thin

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def views(self, data: Any, n: int, **given: Any) -> list[Any]:
        """``n`` independent subgraphs for one step, each as a call returns it; ``given`` are the arguments of a call.

        >>> edge_index = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]])
        >>> [mask.sum().item() for _, mask in DropEdge(p=0.5, seed=3).views(edge_index, 3)]
        [4, 6, 4]
        """
        read, seed_epoch = self._read(data, **given), self._seed_and_epoch()
        thin = [self._apply_to(read, seed_epoch, stream) for stream in range(check_integer("n", n, least=1))]
        self._advance()
        return thin

    def probabilities(self, data: Any, **given: Any) -> Any:
        """The probability of keeping each arc, float64 ``[A]``; of a ``HeteroData`` a dictionary by relation.

        Self-loops have 1. A scheduled budget is that of the current epoch.

        >>> DropEdge(keep_prob=0.25).probabilities(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 2]])).tolist()
        [0.25, 0.25, 0.25, 1.0]
        """
        read = self._read(data, **given)
        if isinstance(read, Link):
            return self._probabilities(read)
        found = {store._key: self._probabilities(link) for store, link in self._links(read)}
        return found if isinstance(read, HeteroData) else found[None]

    # -- how it is done -------------------------------------------------------------------------------

    def _read(
        self,
        adjacency: Any,
        edge_weight: Any = None,
        keep_prob: Any = None,
        x: Any = None,
        num_nodes: Any = None,
        node_id: Any = None,
    ) -> BaseData | Link:
        """Check the arguments of a call: a ``Data`` is returned as it is, all else as a :class:`Link`."""
        if isinstance(adjacency, BaseData):
            beside = {"edge_weight": edge_weight, "keep_prob": keep_prob, "x": x, "num_nodes": num_nodes}
            for name, value in (beside | {"node_id": node_id}).items():
                if value is not None:
                    raise TadropedgeError(f"a Data brings its own tensors: write {name} into it", argument=name)
            return adjacency
        if isinstance(num_nodes, list | tuple):
            if len(num_nodes) != 2:
                raise TadropedgeError(f"num_nodes must be N, or (sources, targets), got {show(num_nodes)}")
            num_nodes = tuple(check_integer("num_nodes", each, least=0) for each in num_nodes)
        for attribute in (self.exclude, self.keep_prob if keep_prob is None else None):
            if isinstance(attribute, str):
                raise TadropedgeError(f"{attribute!r} names an attribute of a Data: give the Data, not its arcs")
        for name, value in (("x", x), ("node_id", node_id)):
            if not isinstance(value, Tensor | tuple | None):
                raise TadropedgeError(f"{name} must be a tensor with one row for each node, got {show(value)}")
        link = link_of(adjacency, edge_weight, num_nodes, x=x, node_id=node_id, prob=keep_prob, exclude=self.exclude)
        if keep_prob is not None:
            check_length("keep_prob", keep_prob, link.num_arcs, "arc of edge_index")
        return link

    def _apply_to(self, read: BaseData | Link, seed_epoch: tuple[int, int], stream: int = 0) -> Any:
        """One subgraph, of the same kind as the input."""
        if not isinstance(read, Link):
            return self._thin(read, seed_epoch, stream)
        mask, weight = self._draw(read, seed_epoch, stream)
        adjacency = read.adjacency
        if is_matrix(adjacency):
            return taken(adjacency, mask, weight)
        if mask is None:
            everything = torch.ones(read.num_arcs, dtype=torch.bool, device=read.device)
            return (adjacency, everything) if weight is None else (adjacency, everything, weight)
        kept = taken(adjacency, mask, None)
        return (kept, mask) if weight is None else (kept, mask, take(weight, places(mask)))

    def _thin(self, data: BaseData, seed_epoch: tuple[int, int], stream: int) -> BaseData:
        """A shallow copy of ``data`` with the kept arcs alone."""
        thin, changed = copy.copy(data), False
        for store, link in self._links(thin):
            with about(store):
                if link.prob is not None and not self._checked:
                    warn_summed(link.prob, store.get("largest_keep_prob"))
                mask, weight = self._draw(link, seed_epoch, stream)
                thin_store(store, link, mask, weight, self.weight or "edge_weight")
            changed |= mask is not None or weight is not link.weight
        if changed:  # a Batch no longer knows where its graphs begin; without these slices PyG says so
            hidden = (thin._global_store if isinstance(thin, HeteroData) else thin._store).__dict__
            hidden.pop("_slice_dict", None)
        return thin

    def _links(self, data: BaseData) -> Iterator[tuple[Any, Link]]:
        """The store and the adjacency of each relation, with those attributes that this call uses."""
        column, exclude = self.dropping.settings.get("column"), self.exclude if self.training else None
        if isinstance(exclude, Tensor) and isinstance(data, HeteroData):
            raise TadropedgeError("exclude= is an edge tensor: of a HeteroData name the attribute that has the pairs")
        used = {"prob": self.keep_prob, "column": column if isinstance(column, str) else None}
        names = dict.fromkeys(used) if self._is_idle else used  # where nothing is scored, they may be missing
        for store, link in links_of(data, weight=self.weight, exclude=exclude, **names):
            if self.weight is None and self.dropping.weighs and "edge_weight" in store:
                raise TadropedgeError(
                    f"{str(self.dropping)!r} writes edge_weight, but data has one: leave weight=None out"
                )
            yield store, link

    @property
    def _is_idle(self) -> bool:
        """Whether all edges pass unchanged: then nothing is scored, and even graphs that cannot be scored are fine."""
        return self.dropping.rule is None or (self.dropping.use == "dropped" and not self.training)

    def _draw(self, link: Link, seed_epoch: tuple[int, int], stream: int) -> tuple[Tensor | None, Tensor | None]:
        """The mask ``[A]`` of kept arcs (``None``: all), and the weights ``[A]`` of all arcs, if there are any."""
        mask, weight = None, link.weight
        if weight is None and self.dropping.weighs:
            weight = torch.ones(link.num_arcs, device=link.device)
        if weight is not None and self.dropping.weighs and not weight.is_floating_point():
            weight = weight.to(torch.get_default_dtype())
        if not self._is_idle and link.num_arcs:
            graph, plan = self._planned(link)
            kept, factor = plan.draw(*seed_epoch, stream + link.place * RELATION, self.training)
            if kept is not None:
                mask = graph.to_arcs(kept, loops=True)
            if factor is not None and weight is not None:
                factor = graph.to_arcs(factor, loops=1.0).to(weight.dtype)
                weight = weight * factor.view(-1, *(1 for _ in weight.shape[1:]))
        if self.training and link.exclude is not None:
            others = other_arcs(link, by_id=isinstance(self.exclude, Tensor))
            mask = others if mask is None else mask & others
        return mask, weight

    def _planned(self, link: Link) -> tuple[Graph, Plan]:
        """The graph of an adjacency and its plan: from the cache, or computed now."""
        dropping = self.dropping if link.prob is None else self._without_default
        scored = dropping.score is not None and link.prob is None
        weighted = scored and link.has_weights
        x = link.x if scored and self._takes_features else None
        sources = (dropping, *link.sources(weighted=weighted, x=x))
        if link.weight is not None and not weighted:
            check_sign(link.weight)  # Graph checks those that enter the score
        before, *planned = self._plans.get(link.owner, ((),))  # type: ignore[no-untyped-call]
        if not same(before, sources):
            graph, keys = link.graph(weighted)
            if link.has_weights and not link.two_kinds and not self._checked:
                warn_normalized(link.arcs(), link.weight, graph.num_nodes)
            self._checked = True
            prob = None if link.prob is None else graph.to_pairs(check_given(link.prob), "keep_prob")
            planned = [graph, dropping.plan(graph, features=joined(x), column=link.column, prob=prob, keys=keys)]
            self._plans[link.owner] = sources, *planned
        return planned[0], planned[1]

    def _probabilities(self, link: Link) -> Tensor:
        if not link.num_arcs:
            return torch.ones(0, dtype=torch.float64, device=link.device)
        graph, plan = self._planned(link)
        return graph.to_arcs(plan.at(self.epoch).prob, loops=1.0)

    def extra_repr(self) -> str:
        """Settings and state, for ``print(model)``."""
        given = f", keep_prob={self.keep_prob!r}" if self.keep_prob is not None else ""
        told = "".join(f", {name}={show(value, typed=False)}" for name, value in self.dropping.settings.items())
        return f"{str(self.dropping)!r}{given}, seed={self.seed}, epoch={self.epoch}{told}"


class TADropEdge(DropEdge):
    """:class:`DropEdge` with the paper's method, ``"cdf"``: by aggregate resistance and its distribution.

    >>> TADropEdge(keep_prob=0.7, q=7, seed=0)
    TADropEdge('cdf', seed=0, epoch=0, q=7)
    """

    def __init__(self, method: str | Dropping = PAPER, **settings: Any) -> None:
        super().__init__(method, **settings)


def _check_arguments(method: object, keep_prob: object, weight: object) -> None:
    """Refuse a number in place of the method, and probabilities of single edges, which are an argument of the call."""
    if isinstance(method, float | int | np.floating) and 0 <= method <= 1:
        percent = f"{100 * method:g} %"
        raise TadropedgeError(
            f"DropEdge({method}) could mean two things: write p={method} to drop {percent} of the edges, or "
            f"keep_prob={method} to keep {percent}",
            argument="method",
        )
    if isinstance(keep_prob, Tensor | np.ndarray) and keep_prob.ndim:
        raise TadropedgeError(
            "keep_prob is one number here; give probabilities of single edges in the call, "
            "drop(edge_index, keep_prob=…), or as the name of an attribute of Data",
            argument="keep_prob",
        )
    if not isinstance(weight, str | None):
        raise TadropedgeError(f"weight must name an attribute of Data, got {show(weight)}", argument="weight")


def _with_share(dropping: Dropping, p: float | None, *, needed: bool) -> Dropping:
    """The dropping with the budget 1 − ``p``; without ``p``, and where a budget is ``needed``, with 0.5."""
    if p is not None:
        p = check_number("p", p, 0, 1)
        if not dropping.is_free:
            what = "drops nothing" if dropping.rule is None else "has a budget"
            raise TadropedgeError(f"p={p:g}, but {str(dropping)!r} {what}: leave p out", argument="p")
    if not dropping.is_free or (p is None and not needed):
        return dropping
    share = 1.0 - (0.5 if p is None else p)
    return replace(dropping, keep_prob=share) if dropping.takes_keep_prob else replace(dropping, keep_ratio=share)
