"""The one path of every edge score: a graph is solved part by part, and each part is kept on disk once it is found."""

from __future__ import annotations

import inspect
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from tadropedge._old.blocks import DENSE_NODES, Block, Flags, Floats, Integers
from tadropedge._old.cache import Arrays, cached
from tadropedge._old.checks import ask, check_device, check_function, check_path, check_progress, check_runs_on, is_plain
from tadropedge._old.errors import RepeatedEigenvalueWarning, TadropedgeError, lookup, show
from tadropedge._old.graph import PIECE, Graph, check_graph
from tadropedge._old.memory import within_memory
from tadropedge._old.progress import Progress, Show
from tadropedge._old.registry import SCORES
from tadropedge._old.watching import Safe, tell

Score = str | Callable[..., Any]
Report = Callable[[float], None]

FUNCTION = "score(graph, **settings) -> [M], with numbers of at least 0"
SAME = 1e-9  # scores this close, relatively, are equal in exact arithmetic and made equal here
LONGEST_TIE = 4


class Partwise(Protocol):
    """A score that is solved part by part: a frozen dataclass with one field per setting, checked when it is made."""

    def begin(self, graph: Graph) -> tuple[Floats, Iterable[Block]]:
        """The scores ``[M]`` that need no solving, NaN for the others, and the parts to solve."""

    def part(self, block: Block, device: torch.device, report: Report) -> Arrays:
        """``scores`` of the edges of a part, and what else to keep: see :class:`Scored`. Pure: it is cached."""


class InParts:
    """A :class:`Partwise` score as what every score is, a function ``score(graph, **settings) -> [M]``."""

    def __init__(self, name: str, settings: Callable[..., Partwise]) -> None:
        self.__name__, self.settings = name, settings
        self.__wrapped__ = settings  # whose code decides the scores, so its fingerprint is theirs
        first = inspect.Parameter("graph", inspect.Parameter.POSITIONAL_ONLY)
        self.__signature__ = inspect.Signature([first, *inspect.signature(settings).parameters.values()])

    def __call__(self, graph: Graph, **settings: Any) -> Tensor:
        """Score every edge of ``graph``."""
        return edge_scores(graph, self, **settings)


@dataclass(frozen=True, kw_only=True)
class Scored:
    """What was found.

    ``values [M]`` in the order of ``graph.pairs``, on the device of the graph; ``modes [C]`` and ``widened [C]``:
    eigenvectors used in each component, 0 where it has no modes of its own, and where q fell inside a repeated
    eigenvalue; ``eigenvalues``: the lowest of the largest component, none where the score is not made of modes;
    ``solvers``: how many components each has solved; ``seconds`` of solving, those of earlier, interrupted runs
    included.
    """

    graph: Graph
    score: str
    settings: Mapping[str, Any]
    values: Tensor
    modes: Integers
    widened: Flags
    eigenvalues: Floats = field(default_factory=lambda: np.empty(0))
    solvers: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def chosen(self) -> int:
        """Modes of the largest component: the chosen q."""
        return int(self.modes[int(self.graph.components.sizes.argmax())])

    def told(self) -> Tensor:
        """The values, for a public function to return: what its caller should know is said as a warning."""
        if self.widened.any():
            asked = next(f"{name}={self.settings[name]}" for name in ("q", "desired_clusters") if self.settings[name])
            warnings.warn(
                f"{asked} falls inside a repeated eigenvalue in {self.widened.sum()} of {(self.modes > 0).sum()} "
                "components; the whole eigenspace is used there",
                RepeatedEigenvalueWarning,
                stacklevel=3,
            )
        return self.values


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
    are its own. ``cache_dir`` keeps results on disk, by the content of graph and settings (not those of your own
    functions, whose code may change). ``device``: where large components are solved, by default where the graph lies.

    >>> graph = Graph.from_edge_index([[0, 1, 2, 2], [1, 2, 0, 3]])  # a triangle with a tail
    >>> edge_scores(graph, "effective").round(decimals=4).tolist()
    [0.6667, 0.6667, 0.6667, 1.0]
    >>> edge_scores(graph, lambda graph, power: graph.pairs.sum(0) ** power, power=2).tolist()
    [1.0, 4.0, 9.0, 25.0]
    """
    return solve(graph, score, settings, cache_dir=cache_dir, progress=progress, device=device).told()


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
    """Score every edge of ``graph``; with ``cache_dir``, the same call after an interruption solves only what is left.

    ``progress`` counts the edges: see :class:`tadropedge._old.progress.Progress`.

    >>> graph = Graph.from_edge_index([[0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]])
    >>> found = solve(graph, "aggregate", {"q": 2})
    >>> found.values.argmax().item(), found.chosen, found.eigenvalues.round(3).tolist()
    (3, 2, [0.0, 0.438, 3.0])
    """
    check_graph(graph)
    where, progress = check_runs_on(device, graph.device), check_progress(progress)
    cache_dir = None if cache_dir is None else check_path("cache_dir", cache_dir)
    name, function = named(score)
    work = check_settings(score, settings)
    modes = np.zeros(graph.components.count, dtype=np.int64)
    widened = np.zeros(graph.components.count, dtype=bool)
    if work is None:
        values = _own(name, ask(f"the score {name!r}", FUNCTION, function, graph, **settings), graph)
        return Scored(graph=graph, score=name, settings=settings, values=values, modes=modes, widened=widened)
    used = asdict(work)  # type: ignore[call-overload]
    labels = graph.components.labels.cpu().numpy()
    largest = int(graph.components.sizes.argmax())
    eigenvalues, solvers, seconds, left = np.empty(0), Counter[str](), 0.0, graph.num_edges
    scores, parts = work.begin(graph)
    with Progress("edges scored", graph.num_edges, progress) as bar:
        bar.advance(0)
        for block in parts:
            bar.note(f"{block.count} × {block.size} nodes")
            runs_on = where.type if block.size > DENSE_NODES else "cpu"
            part = "" if cache_dir is None else block.fingerprint
            key = {"score": type(work), "settings": used, "part": part, "device": runs_on}
            with bar.step(len(block.edges)) as report:
                found = cached(cache_dir, key, partial(_solve_part, work, block, where, report))
            scores[block.edges] = found["scores"]
            seconds, left = seconds + float(found["seconds"]), left - len(block.edges)
            if cache_dir is not None:
                tell(Safe("scores", graph.num_edges - left, graph.num_edges))
            if "modes" in found:
                components = labels[block.nodes[:, 0]]
                modes[components], widened[components] = found["modes"], found["widened"]
                solvers.update(found["solvers"].tolist())
                eigenvalues = found["eigenvalues"] if components[0] == largest else eigenvalues
        bar.advance(left)  # those that need no solving
    return Scored(
        graph=graph,
        score=name,
        settings=used,
        values=torch.from_numpy(settled(scores)).to(graph.device),
        modes=modes,
        widened=widened,
        eigenvalues=eigenvalues,
        solvers=dict(solvers),
        seconds=seconds,
    )


def _solve_part(work: Partwise, block: Block, device: torch.device, report: Report) -> Arrays:
    """What is kept of one part; memory that runs out is bad input, said in one line."""
    begun = time.monotonic()
    what = f"a part of {block.size} nodes and {len(block.edges)} edges"
    with within_memory(what, "tadropedge._old.spectrum.explain says what each solver needs", device):
        found = work.part(block, device, report)
    return found | {"seconds": np.array(time.monotonic() - begun)}


def named(score: Score) -> tuple[str, Callable[..., Any]]:
    """A score by its name, or the user's own function with the name to call it by."""
    if callable(score):
        check_function("score", score, FUNCTION, settings=True)
        return getattr(score, "__name__", type(score).__name__), score
    return score, lookup("score", score, SCORES)


def check_settings(score: Score, settings: Mapping[str, Any]) -> Partwise | None:
    """Refuse what a score does not take; the checked settings of a score that is solved part by part.

    >>> check_settings("effective", {"q": 3})
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: the score 'effective' has no setting 'q'; its settings are method, \
relative_error, seed
    """
    name, function = named(score)
    takes = parameters(function)
    rest = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in takes.values())
    for given in settings:
        if given not in takes and not rest:
            known = f"its settings are {', '.join(takes)}" if takes else "it has none"
            raise TadropedgeError(f"the score {name!r} has no setting {given!r}; {known}")
    for asked in required(score):
        if asked not in settings:
            raise TadropedgeError(f"the score {name!r} requires {asked}")
    return function.settings(**settings) if isinstance(function, InParts) else None


def settings_for(score: Score, offered: Mapping[str, Any]) -> dict[str, Any]:
    """Of what is offered, what a score takes: for those who do not know the score.

    >>> settings_for("effective", {"q": 7, "seed": 3})
    {'seed': 3}
    """
    return {name: offered[name] for name in parameters(named(score)[1]) if name in offered}


def required(score: Score) -> list[str]:
    """The settings that a score cannot do without.

    >>> required("cosine"), required("degree")
    (['features'], [])
    """
    takes = parameters(named(score)[1])
    return [name for name, one in takes.items() if one.default is one.empty and one.kind is not one.VAR_KEYWORD]


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The settings of a score: what its function takes after the graph."""
    try:
        return dict(list(inspect.signature(function).parameters.items())[1:])
    except ValueError:  # functions written in C have no signature
        return {}


def _own(name: str, values: object, graph: Graph) -> Tensor:
    """What the user's own function returned, as float64 ``[M]``, after a look at it."""
    wanted = f"the score {name!r} must return one number per edge, a tensor of shape [{graph.num_edges}]"
    if not isinstance(values, Tensor) or not is_plain(values):
        raise TadropedgeError(f"{wanted}, got {show(values)}")
    if values.shape != (graph.num_edges,):
        raise TadropedgeError(f"{wanted}, got shape {list(values.shape)}")
    check_device(f"the score {name!r}", values, graph.device, "the graph")
    values = values.detach().to(torch.float64)
    wrong = values[~(torch.isfinite(values) & (values >= 0))]
    if len(wrong):
        raise TadropedgeError(f"the score {name!r} must be finite and at least 0, got {float(wrong[0]):g}")
    return values


def settled(scores: Floats) -> Floats:
    """The scores of a whole graph: NaN (components without modes) becomes the lowest score; near ties are made equal.

    Scores that differ by rounding alone get one value, so that ranks do not depend on noise.
    """
    lowest = np.fmin.reduce(scores, initial=np.inf)
    unknown = np.isnan(scores)
    if unknown.any():
        scores = np.where(unknown, lowest if np.isfinite(lowest) else 0.0, scores)
    order = np.argsort(scores)  # equal scores get equal values, whichever comes first
    tied, first, step = np.empty_like(scores), 0, PIECE
    while first < len(order):  # some groups of near ties at a time
        ascending = scores[order[first : first + step]]
        starts = np.concatenate(([True], np.diff(ascending) > SAME * ascending[1:]))
        last = first + len(ascending) == len(order)
        whole = len(ascending) if last else int(np.flatnonzero(starts)[-1])  # the last group may go on
        if whole == 0:
            step *= 2
            continue
        tied[order[first : first + whole]] = _even(ascending[:whole], starts[:whole])
        first, step = first + whole, PIECE
    return tied


def _even(ascending: Floats, starts: Flags) -> Floats:
    """Scores in order with one value for each narrow group; groups begin where ``starts`` is true."""
    group = np.cumsum(starts) - 1
    least = ascending[starts]
    most = ascending[np.append(starts[1:], True)]
    narrow = most - least <= LONGEST_TIE * SAME * most  # a long chain of near neighbours is no tie
    return np.where(narrow[group], least[group], ascending)
