"""PyTorch Geometric: transforms that score the edges of a ``Data``, and a module that drops them in training.

>>> import torch
>>> from torch_geometric.data import Data
>>> data = Data(edge_index=torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]]), num_nodes=4)
>>> data = AddKeepProbability(strategy="cdf", keep_prob=0.5)(AddResistance(q=2)(data))
>>> data.edge_keep_prob.tolist()
[0.625, 0.625, 0.875, 0.875, 0.875, 0.875, 1.0, 1.0]
>>> drop = TADropEdge(seed=0)
>>> edge_index, edge_mask = drop(data.edge_index, data.edge_keep_prob)
>>> bool((edge_index == data.edge_index[:, edge_mask]).all())
True
"""

from __future__ import annotations

import threading
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import get_worker_info
from torch_geometric.data import Data
from torch_geometric.data.data import BaseData
from torch_geometric.transforms import BaseTransform

from tadropedge.checks import (
    check_device,
    check_flag,
    check_integer,
    check_length,
    check_numbers,
    check_path,
    check_probability,
    check_seed,
    check_tensor,
    check_whole,
)
from tadropedge.errors import TadropedgeError, lookup, show
from tadropedge.fingerprint import fingerprint, of_this_package
from tadropedge.graph import Graph
from tadropedge.registry import SCORES, STRATEGIES
from tadropedge.sampling import key_tensor, node_pair_words, signed, toss
from tadropedge.scores.solve import Score, check_settings, edge_scores, settings_for
from tadropedge.strategies import Numbers, check_rule, keep_probabilities
from tadropedge.strategies import Score as Strategy

ADVANCES = {"call": None, "manual": None}
TAKING = threading.Lock()  # one for all modules: a lock inside a module could not be copied or pickled


class OfEdges(BaseTransform):  # type: ignore[misc]
    """A transform of a homogeneous ``Data``; PyG would try to copy whatever it is given."""

    def __call__(self, data: Data) -> Data:
        """A transformed copy of ``data``, which is not changed."""
        if not isinstance(data, BaseData) or getattr(data, "edge_index", None) is None:
            raise TadropedgeError(f"expected a homogeneous torch_geometric Data with an edge_index, got {show(data)}")
        return super().__call__(data)


class AddScore(OfEdges):
    """Add ``data.edge_score [A]``, float64, one score for each arc of ``data.edge_index``.

    ``score`` is a name of ``tadropedge.SCORES`` or your own function, and ``settings`` are its own: see
    :func:`tadropedge.edge_scores`. A score that takes ``features`` gets ``data.x``. Both directions of an edge get the
    same score and self-loops get 0; ``data.edge_weight``, where present, enters the graph. A graph without edges gets
    an empty attribute. The input is not changed.
    """

    attribute = "edge_score"

    def __init__(self, score: Score = "aggregate", *, cache_dir: str | Path | None = None, **settings: Any) -> None:
        known = settings_for(score, {"features": None})  # comes with the data
        check_settings(score, known | settings)
        cache_dir = None if cache_dir is None else check_path("cache_dir", cache_dir)
        self.score, self.cache_dir, self.settings = score, cache_dir, settings

    def forward(self, data: Data) -> Data:
        """Score the edges of ``data``, a shallow copy that PyG's transforms make of their input."""
        graph = Graph.from_data(data)
        if graph.num_edges == 0:
            values = torch.empty(0, dtype=torch.float64, device=graph.device)
        else:
            known = settings_for(self.score, {"features": getattr(data, "x", None)})
            values = edge_scores(graph, self.score, cache_dir=self.cache_dir, **(known | self.settings))
        data[self.attribute] = graph.to_arcs(values, loops=0.0)
        return data

    def __repr__(self) -> str:
        return _shown(self, {"score": self.score, **self.settings, "cache_dir": self.cache_dir})


class AddResistance(AddScore):
    """Add ``data.edge_resistance [A]``: :class:`AddScore` as it was called in version 0.1.

    ``score="aggregate"`` takes ``q`` or ``desired_clusters`` and the other settings of
    :func:`tadropedge.aggregate_resistance`; ``score="effective"`` is :func:`tadropedge.effective_resistance`.
    """

    attribute = "edge_resistance"

    def __init__(
        self,
        q: int | None = None,
        *,
        desired_clusters: int | None = None,
        weights: str | None = None,
        score: Score = "aggregate",
        laplacian: str = "combinatorial",
        solver: str = "auto",
        cache_dir: str | Path | None = None,
    ) -> None:
        if weights is not None:
            warnings.warn("weights= of AddResistance is now called score=", DeprecationWarning, stacklevel=2)
            score = weights
        modal = {"laplacian": laplacian, "solver": solver}
        wanted = {"q": q, "desired_clusters": desired_clusters}
        given = {name: value for name, value in wanted.items() if value is not None}
        super().__init__(score, cache_dir=cache_dir, **(settings_for(score, wanted | modal) | given))


class AddKeepProbability(OfEdges):
    """Add ``data.edge_keep_prob [A]``, float64, from ``data.edge_score`` or else ``data.edge_resistance``.

    The settings are those of :func:`tadropedge.keep_probabilities`; ranks and shares count undirected edges,
    however often ``data.edge_index`` lists them. Self-loops are always kept. ``strategy="uniform"`` needs no scores.
    The input is not changed.
    """

    def __init__(
        self,
        strategy: str | Strategy = "cdf",
        *,
        keep_prob: Numbers | None = None,
        keep_ratio: Numbers | None = None,
        gamma: Numbers | str = "auto",
        inverse: bool = False,
    ) -> None:
        check_rule(strategy)
        check_flag("inverse", inverse)
        self.settings: dict[str, Any] = {
            "strategy": strategy,
            "keep_prob": keep_prob,
            "keep_ratio": keep_ratio,
            "gamma": gamma,
            "inverse": inverse,
        }
        for name in ("keep_prob", "keep_ratio", "gamma"):
            value = self.settings[name]
            if value is not None and not isinstance(value, str) and check_numbers(name, value).dim():
                raise TadropedgeError(f"{name} must be a single number here, got a vector")
        # A trial on two edges: wrong settings are told where they are written, not when data arrives.
        budget = {} if keep_ratio is None or keep_prob is not None else {"keep_ratio": 1.0}
        keep_probabilities(torch.tensor([0.5, 1.0]), **{**self.settings, **budget})
        if keep_ratio is not None:
            keep_probabilities(torch.ones(1), strategy="uniform", keep_prob=keep_prob, keep_ratio=keep_ratio)

    def forward(self, data: Data) -> Data:
        """Compute the probabilities of ``data``, a shallow copy that PyG's transforms make of their input."""
        graph = Graph.from_data(data, weight=None)
        if graph.num_edges == 0:
            prob = torch.empty(0, dtype=torch.float64, device=graph.device)
        else:
            prob = keep_probabilities(self._pair_scores(data, graph), **self.settings)
        data.edge_keep_prob = graph.to_arcs(prob, loops=1.0)
        return data

    def _pair_scores(self, data: Data, graph: Graph) -> Tensor:
        name = next((name for name in ("edge_score", "edge_resistance") if getattr(data, name, None) is not None), None)
        if name is None:
            if self.settings["strategy"] == "uniform":
                return torch.ones(graph.num_edges, device=graph.device)
            raise TadropedgeError("data has no edge_score or edge_resistance; apply AddScore or AddResistance first")
        scores: Tensor = check_length(name, data[name], graph.arc_pair.shape[0], "arc of edge_index")
        proper = graph.arc_pair >= 0
        pairs = scores.new_zeros(graph.num_edges)
        pairs[graph.arc_pair[proper]] = scores[proper]
        return pairs

    def __repr__(self) -> str:
        return _shown(self, self.settings)


def _shown(transform: BaseTransform, settings: dict[str, Any]) -> str:
    """A transform with every setting, by which PyG's datasets know whether a file on disk is still right.

    So your own functions are shown with a fingerprint of their code, and tensors with one of their numbers.
    """
    words = (f"{name}={_word(name, value)}" for name, value in settings.items())
    return f"{type(transform).__name__}({', '.join(words)})"


def _word(name: str, value: Any) -> str:
    if value is None or isinstance(value, bool | int | float | str | Path):
        named: dict[str, Any] = {"score": SCORES, "strategy": STRATEGIES}
        called, entry = repr(value), named.get(name, {}).get(value)
    else:
        called, entry = getattr(value, "__name__", type(value).__name__), value
    if entry is None or of_this_package(entry):
        return called
    try:
        return f"{called}#{fingerprint(value=entry)[:8]}"
    except TadropedgeError:  # content that cannot be seen is equal to nothing on disk
        return f"{called}#{id(entry):x}"


def check_arcs(edge_index: object) -> None:
    """Refuse what is no tensor of whole numbers ``[2, A]``; values are not looked at."""
    arcs = check_whole("edge_index", edge_index)
    if arcs.dim() != 2 or arcs.shape[0] != 2:
        raise TadropedgeError(f"edge_index must have shape [2, A], got {list(arcs.shape)}")


class TADropEdge(nn.Module):
    """Drop edges in training; in ``eval()`` pass everything through untouched.

    ``drop(edge_index, edge_keep_prob)`` returns ``(edge_index, edge_mask)``, the kept arcs and the mask over the
    input's arcs, True for kept. Further per-arc tensors ride along: ``drop(edge_index, edge_keep_prob, edge_attr)``
    returns ``(edge_index, edge_mask, edge_attr)``; ``data.edge_subgraph(edge_mask)`` thins a whole ``Data``.

    Coins are a pure function of (seed, epoch, the two node ids): both directions of an edge share one.

    **The epoch** is a buffer, saved in the ``state_dict``. With ``advance="call"`` every call in training mode
    draws with the current epoch and then adds one, so each call, and each layer that calls, sees a new subgraph.
    With ``advance="manual"`` only ``next_epoch()`` and ``set_epoch(n)`` move it: all mini-batches of an epoch, all
    workers and a recomputed forward pass then see the same subgraph. There give ``node_id`` (PyG's ``batch.n_id``),
    so that coins follow the nodes of the whole graph and not their place in the batch.

    Nothing is rebuilt with ``drop.mask(...)``: it returns the mask alone, for models that take edge weights, and
    compiles to one graph.

    **More than one caller** (docs/method.md has a table of them all):

    * Threads: with ``advance="call"`` no two calls share an epoch; which thread gets which is not determined.
    * DataLoader workers hold copies, so ``advance="call"`` is refused there. With ``advance="manual"`` call
      ``drop.share_memory()`` before the workers start, so that ``set_epoch(n)`` reaches all of them.
    * Gradient checkpointing runs the forward pass twice: ``advance="call"`` is refused in the second one.
    * ``torch.compile`` and ``torch.export`` advance the epoch as eager code does; probabilities outside of [0, 1],
      NaN included, are then a ``RuntimeError``. ``torch.jit`` would freeze the epoch and is refused.
    """

    seed: Tensor
    epoch: Tensor

    def __init__(self, seed: int = 0, *, advance: str = "call") -> None:
        super().__init__()
        number = check_seed(seed, signed=True)
        lookup("advance", advance, ADVANCES)
        self.advance = advance
        self.register_buffer("seed", torch.tensor(signed(number % 2**64)))
        self.register_buffer("epoch", torch.tensor(0))

    def forward(
        self,
        edge_index: Tensor,
        edge_keep_prob: Tensor,
        *edge_attr: Tensor | None,
        node_id: Tensor | None = None,
    ) -> tuple[Any, ...]:
        """Return the kept arcs, the mask, and what of ``edge_attr`` belongs to the kept arcs."""
        check_arcs(edge_index)
        if not self.training:
            everything = torch.ones(edge_index.shape[1], dtype=torch.bool, device=edge_index.device)
            return (edge_index, everything, *edge_attr)
        for values in edge_attr:
            if values is not None and check_tensor("an edge attribute", values).shape[:1] != edge_index.shape[1:]:
                raise TadropedgeError(
                    f"an edge attribute has shape {list(values.shape)}, but edge_index has {edge_index.shape[1]} arcs"
                )
        mask = self.mask(edge_index, edge_keep_prob, node_id)
        kept = (None if values is None else values[mask] for values in edge_attr)
        return (edge_index[:, mask], mask, *kept)

    def mask(self, edge_index: Tensor, edge_keep_prob: Tensor, node_id: Tensor | None = None) -> Tensor:
        """The mask of kept arcs, bool ``[A]``; all True in ``eval()``."""
        check_arcs(edge_index)
        if not self.training:
            return torch.ones(edge_index.shape[1], dtype=torch.bool, device=edge_index.device)
        if not isinstance(edge_keep_prob, Tensor):
            raise TadropedgeError(
                f"edge_keep_prob must be a tensor, got {show(edge_keep_prob)}; AddKeepProbability makes one"
            )
        if check_tensor("edge_keep_prob", edge_keep_prob).dim() != 1 or edge_keep_prob.shape[0] != edge_index.shape[1]:
            raise TadropedgeError(
                f"edge_keep_prob has shape {list(edge_keep_prob.shape)}, but edge_index has {edge_index.shape[1]} arcs"
            )
        check_device("edge_keep_prob", edge_keep_prob, edge_index.device, "edge_index")
        if node_id is not None and check_whole("node_id", node_id).dim() != 1:
            raise TadropedgeError(f"node_id must be one number for each node, got shape {list(node_id.shape)}")
        check_device("the TADropEdge module", self.epoch, edge_index.device, "edge_index")
        self._check_values(edge_index, edge_keep_prob, node_id)
        words = node_pair_words(edge_index if node_id is None else node_id[edge_index])
        multiplier, offset = key_tensor(self.seed, self._taken_epoch())
        return toss(words, multiplier, offset, edge_keep_prob.to(torch.float64))

    def _check_values(self, edge_index: Tensor, edge_keep_prob: Tensor, node_id: Tensor | None) -> None:
        if torch.compiler.is_compiling() or (edge_index.is_cuda and torch.cuda.is_current_stream_capturing()):
            # A look at the values would break the graph, so it checks them itself whenever it runs.
            proper = ((edge_keep_prob >= 0) & (edge_keep_prob <= 1)).all()
            torch._assert_async(proper, "edge_keep_prob must lie in [0, 1]; some of its values do not, or are NaN")
            return
        self._check_caller()
        check_probability("edge_keep_prob", edge_keep_prob)
        if node_id is not None and edge_index.numel():
            least, most = torch.stack(torch.aminmax(edge_index)).tolist()
            if least < 0 or most >= len(node_id):
                wrong = least if least < 0 else most
                raise TadropedgeError(f"node_id names {len(node_id)} nodes, but edge_index holds the node {wrong}")

    def _check_caller(self) -> None:
        """Refuse to draw where the epoch cannot follow: subgraphs that repeat are not noticed in training."""
        fault = ""
        if torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
            fault = "would be frozen by torch.jit.trace; trace it in eval(), or use torch.compile or torch.export"
        elif get_worker_info() is not None:
            if self.advance == "call":
                fault = (
                    "cannot count calls in a DataLoader worker, which has a copy of its own and would repeat the "
                    "subgraphs of the others; draw in the training loop, or use advance='manual' with share_memory(), "
                    "set_epoch(n) and node_id"
                )
            elif not self.epoch.is_shared():
                fault = (
                    "is a copy in a DataLoader worker that set_epoch(n) may not reach; call share_memory() on the "
                    "module before the workers start, or draw in the training loop"
                )
        elif self.advance == "call" and torch._C._current_graph_task_id() != -1:
            fault = (
                "was called in a backward pass (gradient checkpointing), where it would draw another subgraph than in "
                "the forward pass; use advance='manual', and next_epoch() after each step"
            )
        if fault:
            raise TadropedgeError(f"TADropEdge(advance={self.advance!r}) {fault}")

    def _taken_epoch(self) -> Tensor:
        """The epoch to draw with; with ``advance="call"`` it is the caller's alone."""
        if self.advance == "manual":
            return self.epoch
        with nullcontext() if torch.compiler.is_compiling() else TAKING:
            epoch = self.epoch.clone()
            self.epoch += 1
        return epoch

    def next_epoch(self) -> None:
        """Go on to the next epoch."""
        with TAKING:
            self.epoch += 1

    def set_epoch(self, epoch: int) -> None:
        """Go to a given epoch, as samplers of distributed training do."""
        number = signed(check_integer("epoch", epoch, least=0) % 2**64)  # coins count epochs modulo 2^64
        with TAKING:
            self.epoch.fill_(number)

    def __prepare_scriptable__(self) -> None:
        raise TadropedgeError("TADropEdge cannot be compiled by torch.jit.script; use torch.compile or torch.export")

    def extra_repr(self) -> str:
        """Settings and state, for ``print(model)``."""
        return f"seed={int(self.seed)}, epoch={int(self.epoch)}, advance={self.advance!r}"
