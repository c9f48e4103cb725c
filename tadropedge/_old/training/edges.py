"""Which edges a batch of trials keeps in an epoch: keep probabilities and coins, ``[T, M]``.

The options of a method change how masks are drawn from its keep probabilities p:

=============  ================================================================================================
``unbiased``   masks as ever; the entries of kept edges are divided by p, which must be above 0
``connected``  a spanning forest first, then the other edges so that Σ p are expected: Σ p is at least its size
``exact``      exactly Σ p edges, rounded
``expected``   masks as ever; the network is evaluated on the whole graph with edges of weight p
``nested``     p runs linearly from the first layer to the last; one coin for all layers, so that masks are nested
=============  ================================================================================================

``nested`` goes with all others: every layer has its own Σ p, and the mask of a layer contains those of all layers with
smaller rates. With ``connected``, all layers contain the forest of the layer with the smallest rates. The share c of
the edges around it is 1 − (|F| − Σ_F p) / Σ_(not F) p, which rises with p, so that c · p does too. With ``exact``, a
layer takes the edges of the next smaller one first, then those of the smallest coin over probability.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from tadropedge._old.errors import TadropedgeError
from tadropedge._old.forest import ForestPlan
from tadropedge._old.graph import Graph
from tadropedge._old.method import SENSITIVITY, Method
from tadropedge._old.nn.network import Network
from tadropedge._old.sampling import (
    ORDER_BYTES,
    check_connected,
    draw,
    draw_forests,
    draw_nested,
    pair_words,
    toss_seeds,
)
from tadropedge._old.sensitivity import SENSITIVITY as LEFT
from tadropedge._old.shift import LEAST, check_positive_probability
from tadropedge._old.strategies import keep_probabilities
from tadropedge._old.training.config import Trial
from tadropedge._old.training.task import Task

DECIDING = ("method", "keep_prob", "keep_ratio", "keep_last", "gamma", "sensitivity")  # of a trial's probabilities
AHEAD = 32  # epochs at most whose forests are drawn together on a GPU, which needs as many kernels as for one
AHEAD_ENTRIES = 2**25  # of their masks at most, which bounds the memory
ROUNDING = 1e-9  # what a probability may fall by where rates rise


def keep_row(graph: Graph, trial: Trial, scores: Mapping[str, Tensor]) -> Tensor:
    """The probability of keeping each edge in a trial, float64 ``[M]``; ``scores`` holds those its method needs.

    With the option ``nested`` it is that of the first layer: see :func:`keep_rows`.
    """
    method = Method.of(trial.method)
    ones = torch.ones(graph.num_edges, dtype=torch.float64, device=graph.device)
    if method.strategy is None:
        return ones
    weights = graph if method.strategy == SENSITIVITY else ones if method.score is None else scores[method.score]
    return keep_probabilities(
        weights,
        keep_prob=None if trial.keep_ratio is not None else trial.keep_prob,
        keep_ratio=trial.keep_ratio,
        strategy=method.strategy,
        gamma="auto" if trial.gamma is None else trial.gamma,
        inverse=method.inverse,
        sensitivity=LEFT if trial.sensitivity is None else trial.sensitivity,
    )


def keep_rows(graph: Graph, trial: Trial, scores: Mapping[str, Tensor], layers: int) -> Tensor:
    """The same for each layer, ``[L, M]``: one row for all layers, or ``layers`` rows with the option ``nested``."""
    if "nested" not in Method.of(trial.method).options:
        return keep_row(graph, trial, scores)[None]
    name = "keep_prob" if trial.keep_ratio is None else "keep_ratio"
    rates = layer_rates(trial, layers)
    rows = torch.stack([keep_row(graph, trial.but(**{name: rate}), scores) for rate in rates])
    rising = rows if rates[0] <= rates[-1] else rows.flip(0)
    if bool((rising.diff(dim=0) < -ROUNDING).any()):
        raise TadropedgeError(
            f"{trial.method} cannot be nested: its rule gives some edge a smaller probability at a larger {name}"
        )
    rising = rising.cummax(dim=0).values  # rounding must not break the nesting
    return rising if rates[0] <= rates[-1] else rising.flip(0)


def _drawn_by(trial: Trial) -> tuple[object, ...]:
    """What decides the probabilities of a trial."""
    return tuple(getattr(trial, name) for name in DECIDING)


def layer_rates(trial: Trial, layers: int) -> list[float]:
    """``keep_prob`` of each layer, or ``keep_ratio`` if given, with the option ``nested``.

    It runs linearly to ``keep_last``, by default 1: rates rise as in DropEdge++ (arXiv 2306.12091). A single layer has
    the first rate.

    >>> layer_rates(Trial("dropedge:nested", keep_prob=0.5), 3)
    [0.5, 0.75, 1.0]
    >>> layer_rates(Trial("cdf:nested", keep_ratio=0.875, keep_last=0.625), 2)
    [0.875, 0.625]
    """
    first = trial.keep_prob if trial.keep_ratio is None else trial.keep_ratio
    last = 1.0 if trial.keep_last is None else trial.keep_last
    between = [first + (last - first) * layer / (layers - 1) for layer in range(1, layers - 1)]
    return [first, *between, last] if layers > 1 else [first]


def falls(trial: Trial) -> bool:
    """Whether rates fall with the layer."""
    first, last = layer_rates(trial, 2)
    return "nested" in Method.of(trial.method).options and first > last


def option_bytes(method: Method, layers: int, edges: int, entries: int) -> int:
    """About how many bytes the options of a method add to one training of ``layers`` layers.

    Without options there are none: what masks alone need is part of the network's footprint.

    >>> option_bytes(Method.of("cdf"), 2, 1000, 3000), option_bytes(Method.of("cdf:unbiased"), 2, 1000, 3000)
    (0, 20000)
    """
    need, drawn = 0, layers if "nested" in method.options else 1
    if "nested" in method.options:
        need += drawn * (9 * edges + 4 * entries)  # probabilities, masks and operators
    if "unbiased" in method.options:
        need += drawn * 8 * edges + 4 * entries  # one over the probabilities, the factors, and the whole operator
    if "expected" in method.options:
        need += 4 * edges + 4 * entries  # the weights and the operator of evaluation
    if "connected" in method.options or "exact" in method.options:
        need += ORDER_BYTES * edges
    return need


class EdgeCoins:
    """The edges that each trial keeps in an epoch, without moving values to the host.

    All trials have the same options, and with ``nested`` rates of all rise or of all fall. ``layers`` subgraphs are
    drawn: one for all layers of the network, or one for each. ``inside [T, M]`` are the edges that may be learned on;
    None: all. Forests and numbers of kept edges are those of the graph of these edges.
    """

    def __init__(
        self,
        graph: Graph,
        trials: Sequence[Trial],
        scores: Mapping[str, Tensor],
        seeds: Tensor,
        inside: Tensor | None,
        layers: int = 1,
    ) -> None:
        self.seeds, self.inside, self.layers = seeds, inside, layers
        self.numbered = True  # pairs are known by their place
        self.options = Method.of(trials[0].method).options
        self.falling = falls(trials[0])
        self.forest = ForestPlan.of(graph) if "connected" in self.options else None
        self.fixed = graph.device.type == "cuda"  # an epoch may be recorded
        self.trees: Tensor | None = None  # forests [K, L, T, M] of the epochs that were looked ahead to
        self.ahead = 1
        if self.forest is not None and self.fixed:
            self.ahead = max(1, min(AHEAD, AHEAD_ENTRIES // max(1, layers * len(trials) * graph.num_edges)))
        self.words = pair_words(graph.num_edges, graph.device)  # held here: a CUDA graph reads them again
        self.rows = self.prob = self.inverse = None
        if any(Method.of(trial.method).strategy is not None for trial in trials):
            # Trials that differ in their seeds or rates of learning alone have the same probabilities.
            first = {_drawn_by(trial): trial for trial in reversed(trials)}
            found = {key: keep_rows(graph, trial, scores, layers) for key, trial in first.items()}
            self.rows = torch.stack([found[_drawn_by(trial)] for trial in trials], dim=1)  # [L, T, M]
            self.prob = self.rows[0]
            for place, trial in enumerate(first.values() if inside is None else trials):
                self._check(trial, found[_drawn_by(trial)], None if inside is None else inside[place])
        if self.rows is not None and "unbiased" in self.options:
            self.inverse = 1 / self.rows.to(torch.float32)

    def _check(self, trial: Trial, rows: Tensor, inside: Tensor | None) -> None:
        """Refuse probabilities with which the options of a trial cannot be met."""
        try:
            if "unbiased" in self.options:
                never = rows < LEAST if inside is None else (rows < LEAST) & inside
                check_positive_probability("unbiased", torch.where(never, 0.0, rows))
            if self.forest is not None:
                for row in rows:
                    check_connected(self.forest, row, inside)
        except TadropedgeError as error:
            raise TadropedgeError(f"{trial.method}: {error}") from None

    @property
    def shares(self) -> list[float]:
        """The share of the edges that is kept on average: one for all layers, or one per layer with ``nested``."""
        found: list[float] = [1.0] if self.rows is None or not self.rows.numel() else self.rows.mean((1, 2)).tolist()
        return found

    def look_ahead(self, epoch: int) -> None:
        """Draw the forests of this epoch and of those after it together, where it is faster, unless they are there."""
        known = self.trees is not None and epoch % self.ahead
        if self.forest is None or self.rows is None or self.ahead == 1 or known:
            return
        first = epoch - epoch % self.ahead
        epochs = torch.arange(first, first + self.ahead, device=self.words.device)
        prob = self.rows[-1 if self.falling else 0]  # nested masks share the forest of the smallest rates
        prob = prob if self.inside is None else torch.where(self.inside, prob, 0.0)
        at = (self.forest, self.words, self.seeds, epochs, prob)
        layers = range(1 if "nested" in self.options else self.layers)
        trees = [draw_forests(*at, layer=layer, inside=self.inside, fixed=self.fixed) for layer in layers]
        found = torch.stack(trees, dim=1)
        self.trees = found if self.trees is None else self.trees.copy_(found)  # in the memory that a CUDA graph reads

    def _trees(self, epoch: Tensor, layer: int = 0) -> Tensor | None:
        """The forests of an epoch that were drawn before, ``[T, M]``."""
        if self.trees is None:
            return None
        return self.trees[:, layer].index_select(0, epoch.remainder(self.ahead)[None])[0]

    def keeps(self, epoch: Tensor) -> list[Tensor | None]:
        """The kept edges of every subgraph of an epoch, each ``[T, M]``. None: all edges, in every trial."""
        if self.rows is not None and "nested" in self.options:
            masks = self._nested(epoch)
            return list(masks[::-1] if self.falling else masks)
        return [self.keep(epoch, layer) for layer in range(self.layers)]

    @property
    def expected(self) -> Tensor | None:
        """The weights ``[T, M]`` of the edges in evaluation, float32; None: they have none."""
        return self.prob.to(torch.float32) if self.prob is not None and "expected" in self.options else None

    def factors(self, keeps: Sequence[Tensor | None]) -> list[Tensor] | None:
        """One over the keep probability where an edge is kept, else 0, ``[T, M]``; None unless ``unbiased``."""
        if self.inverse is None:
            return None
        inverses = self.inverse.expand(len(keeps), -1, -1)
        return [torch.where(keep, one, 0.0) for keep, one in zip(keeps, inverses, strict=True) if keep is not None]

    def keep(self, epoch: Tensor, layer: int = 0) -> Tensor | None:
        """The kept edges ``[T, M]`` of one subgraph; every layer has its own coins."""
        if self.prob is None:
            return self.inside
        if {"connected", "exact"} & set(self.options):
            return draw(
                self.words,
                self.seeds,
                epoch,
                self.prob,
                layer=layer,
                forest=self.forest,
                exact="exact" in self.options,
                inside=self.inside,
                fixed=self.fixed,
                trees=self._trees(epoch, layer),
            )
        kept = toss_seeds(self.words, self.seeds, epoch, self.prob, layer, numbered=self.numbered)
        return kept if self.inside is None else kept & self.inside

    def _nested(self, epoch: Tensor) -> list[Tensor]:
        """One mask per layer by the coins of the first, those of the smallest rates first."""
        assert self.rows is not None
        rows = self.rows.flip(0) if self.falling else self.rows
        if not {"connected", "exact"} & set(self.options):
            rows = rows if self.inside is None else torch.where(self.inside, rows, 0.0)
            return list(toss_seeds(self.words, self.seeds, epoch, rows, numbered=self.numbered))
        return draw_nested(
            self.words,
            self.seeds,
            epoch,
            rows,
            forest=self.forest,
            exact="exact" in self.options,
            inside=self.inside,
            fixed=self.fixed,
            trees=self._trees(epoch),
        )


def edge_coins(
    task: Task, network: Network, trials: Sequence[Trial], seeds: Tensor, training: Tensor, per_layer: bool
) -> EdgeCoins:
    """The coins of trials that are trained together on the nodes ``training [T, N]``; refused where they cannot be."""
    several = per_layer or "nested" in Method.of(trials[0].method).options
    layers = network.draws if several else 1
    return EdgeCoins(task.graph, trials, task.scores, seeds, network.edges(training), layers)
