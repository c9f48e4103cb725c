"""How every edge score is computed, by name or as your own function: its settings and its result are checked here."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tadropedge._support.checks import (
    ask,
    check_device,
    check_path,
    check_runs_on,
    check_settings,
    check_tensor,
    settings_of,
)
from tadropedge._support.memory import within_memory
from tadropedge._support.progress import Show
from tadropedge.errors import RepeatedEigenvalueWarning, TadropedgeError, lookup
from tadropedge.graph import Graph, check_graph
from tadropedge.registry import SCORES
from tadropedge.rules import check_scores

Score = str | Callable[..., Any]
Floats = npt.NDArray[np.float64]

WANTED = "score(graph, **settings) -> [M], with numbers of at least 0"
SAME = 1e-9  # relative: neighbouring scores this close would be equal in exact arithmetic, and become a tie
LONGEST_TIE = 4  # times SAME: the most that the scores of one tie may differ


def edge_scores(
    graph: Graph,
    score: Score = "aggregate",
    *,
    cache_dir: str | Path | None = None,
    progress: Show = None,
    device: torch.device | str | None = None,
    **settings: Any,
) -> Tensor:
    """One score per edge, float64 ``[M]`` in the order of ``graph.pairs``: at least 0, high for edges to keep.

    ``score`` is a name of ``tadropedge.SCORES``, or your own function ``score(graph, **settings) -> [M]``; ``settings``
    are its own. The two spectral scores, ``aggregate`` and ``effective``, are solved part by part: ``cache_dir`` keeps
    finished parts on disk, by the content of graph and settings, and the same call after an interruption solves only
    what is left; ``device`` says where large parts are solved, by default where the graph lies; ``progress`` may be a
    function that is called with (edges done, edges in all). An edge of weight zero is no connection to them: it scores
    0, and the others are scored as if it were not there.

    >>> graph = Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])  # a triangle with a tail
    >>> edge_scores(graph, "effective").round(decimals=4).tolist()
    [0.6667, 0.6667, 0.6667, 1.0]
    >>> edge_scores(graph, lambda graph, power: graph.pairs.sum(0) ** power, power=2).tolist()
    [1.0, 4.0, 9.0, 25.0]
    """
    found = solve(graph, score, settings, cache_dir=cache_dir, progress=progress, device=device)
    if found.widened.any():
        warnings.warn(
            f"{found.description} falls inside a repeated eigenvalue in {found.widened.sum()} of "
            f"{(found.modes > 0).sum()} components; the whole eigenspace is used there",
            RepeatedEigenvalueWarning,
            stacklevel=2,
        )
    return found.values


def settings_for(score: Score, offered: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the ``offered`` settings that a score accepts, for callers that do not know which score it is.

    >>> settings_for("effective", {"q": 7, "seed": 3})
    {'seed': 3}
    """
    return {name: offered[name] for name in settings_of(_named(score)[1]) if name in offered}


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The scores of a graph and how they were found.

    * ``values [M]``: in the order of ``graph.pairs``, on the device of the graph;
    * ``connected``: the graph without its edges of weight zero, which has C components;
    * ``modes [C]``: how many modes (lowest eigenvectors of the Laplacian) were used in each, 0 where it has too few
      nodes or the score uses none; ``description``: how many were asked for;
    * ``widened [C]``: where that number fell inside a repeated eigenvalue, whose whole eigenspace was then used;
    * ``eigenvalues``: the lowest of the largest component, if the score uses modes;
    * ``solvers``: how many components each solver has solved;
    * ``seconds``: the time of solving, including that of interrupted runs before.
    """

    values: Tensor
    connected: Graph
    modes: npt.NDArray[np.int64]
    widened: npt.NDArray[np.bool_]
    eigenvalues: Floats = field(default_factory=lambda: np.empty(0))
    solvers: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    description: str = ""

    @property
    def chosen(self) -> int:
        """The q that was chosen for the largest component."""
        return int(self.modes[int(self.connected.components.sizes.argmax())])


# The scores that also report how they were found: from the function of the score to that which does the work.
# ``scores/parts.py`` fills it; all other scores are simply called.
DETAILED: dict[Callable[..., Any], Callable[..., Scored]] = {}


@within_memory("scoring the edges of a graph", "a part of it, or a machine with more memory, may do")
def solve(
    graph: Graph,
    score: Score,
    settings: Mapping[str, Any],
    *,
    cache_dir: str | Path | None = None,
    progress: Show = None,
    device: torch.device | str | None = None,
) -> Scored:
    """Score every edge of ``graph`` as :func:`edge_scores` does, and report how.

    >>> graph = Graph.from_edge_index([[0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]])
    >>> found = solve(graph, "aggregate", {"q": 2})
    >>> found.values.argmax().item(), found.chosen, found.eigenvalues.round(3).tolist()
    (3, 2, [0.0, 0.438, 3.0])
    """
    check_graph(graph)
    where = check_runs_on(device, graph.device)
    directory = None if cache_dir is None else check_path("cache_dir", cache_dir)
    name, function = _named(score)
    _check_settings(name, function, settings)
    for known, in_detail in DETAILED.items():  # no lookup: your own score may not be hashable
        if known is function:
            return in_detail(graph, settings, directory, progress, where)
    values = _checked(name, ask(f"the score {name!r}", WANTED, function, graph, **settings), graph)
    none = np.zeros(graph.components.count, dtype=np.int64)
    return Scored(values=values, connected=graph, modes=none, widened=none.astype(bool))


def _named(score: Score) -> tuple[str, Callable[..., Any]]:
    """The name of a score, for messages, and its function."""
    if callable(score):
        return getattr(score, "__name__", type(score).__name__), score
    return score, lookup("score", score, SCORES)


def _check_settings(name: str, function: Callable[..., Any], settings: Mapping[str, Any]) -> None:
    """Refuse settings that a score does not accept, and ask for those that it requires.

    >>> edge_scores(Graph.from_edge_index([[0], [1]]), "effective", q=3)
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: the score 'effective' has no setting 'q'; its settings are method, \
relative_error, seed
    """
    takes = settings_of(function)
    check_settings(f"the score {name!r}", takes, settings)
    for wanted, one in takes.items():
        if one.default is Parameter.empty and one.kind is not Parameter.VAR_KEYWORD and settings.get(wanted) is None:
            raise TadropedgeError(f"the score {name!r} requires {wanted}", argument=wanted)


def _checked(name: str, values: object, graph: Graph) -> Tensor:
    """Check what the function of a score returned; it comes back as float64 ``[M]``."""
    values = check_tensor(f"the score {name!r}", values)
    if values.shape != (graph.num_edges,):
        got = f"got shape {list(values.shape)}"
        raise TadropedgeError(f"the score {name!r} must return a tensor of shape [{graph.num_edges}], {got}")
    check_device(f"the score {name!r}", values, graph.device, "the graph")
    return check_scores(values, f"the score {name!r}")


def merge_ties(scores: Floats) -> Floats:
    """Give scores that differ only by rounding one value, the least of them, so that ranks do not depend on noise.

    >>> merge_ties(np.array([3.0, 1.0, 1.0 + 1e-12])).tolist()
    [3.0, 1.0, 1.0]
    """
    order = np.argsort(scores)  # equal scores get equal values, whichever comes first
    ascending = scores[order]
    starts = np.ones(len(scores), dtype=bool)
    starts[1:] = np.diff(ascending) > SAME * ascending[1:]
    least, most = ascending[starts], ascending[np.roll(starts, -1)]  # a group ends where the next one starts
    narrow = most - least <= LONGEST_TIE * SAME * most  # a long chain, each close to the next, is no tie
    group = np.cumsum(starts) - 1
    merged = np.empty_like(scores)
    merged[order] = np.where(narrow[group], least[group], ascending)
    return merged
