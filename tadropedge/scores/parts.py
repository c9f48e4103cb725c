"""Spectral scores are solved part by part, and each part is kept on disk once it is found."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from tadropedge._support.cache import Arrays, cached
from tadropedge._support.fingerprint import fingerprint
from tadropedge._support.memory import within_memory
from tadropedge._support.progress import Progress, Show
from tadropedge.graph import Graph
from tadropedge.scores.solve import DETAILED, Scored, merge_ties
from tadropedge.spectrum.blocks import DENSE_NODES, Block, Floats

Report = Callable[[float], None]
Function = TypeVar("Function", bound=Callable[..., Any])


class InParts(ABC):
    """A score that is solved part by part: a frozen dataclass of its settings, which decide the scores."""

    @classmethod
    @abstractmethod
    def of(cls, graph: Graph, **settings: Any) -> InParts:
        """Check all the settings of the score's function."""

    @property
    def cacheable(self) -> bool:
        """Whether what is found of a part may be found again on disk."""
        return True

    @abstractmethod
    def begin(self, graph: Graph) -> tuple[Floats, Iterable[Block]]:
        """The scores ``[M]`` that need no solving, NaN for the others, and the parts to solve.

        What stays NaN, in components without modes, becomes the lowest score that is found.
        """

    @abstractmethod
    def part(self, block: Block, device: torch.device, report: Report) -> Arrays:
        """``scores`` of the edges of a part, and where it has modes the arrays that :class:`Scored` has."""


def solved_by(kind: type[InParts]) -> Callable[[Function], Function]:
    """Say of the function of a score which class solves it part by part."""

    def mark(function: Function) -> Function:
        DETAILED[function] = partial(_solve, kind, function)
        return function

    return mark


def _solve(
    kind: type[InParts],
    function: Callable[..., Any],
    graph: Graph,
    settings: Mapping[str, Any],
    cache_dir: Path | None,
    progress: Show,
    device: torch.device,
) -> Scored:
    """Check the settings, with the defaults of the function, and solve what is not on disk yet."""
    given = signature(function).bind(graph, **settings)
    given.apply_defaults()
    work = kind.of(**given.arguments)
    connected = graph.connections
    labels = connected.components.labels.cpu().numpy()
    largest = int(connected.components.sizes.argmax())
    modes = np.zeros(connected.components.count, dtype=np.int64)
    widened = np.zeros(connected.components.count, dtype=bool)
    eigenvalues, solvers, seconds, left = np.empty(0), Counter[str](), 0.0, graph.num_edges
    cache_dir = cache_dir if work.cacheable else None
    identity = None if cache_dir is None else fingerprint(work=work)
    scores, parts = work.begin(connected)
    with Progress("edges scored", graph.num_edges, progress) as bar:
        bar.advance(0)
        for block in parts:
            bar.set_postfix_str(f"{block.count} × {block.size} nodes", refresh=False)  # a refresh would not wait
            runs_on = device.type if block.size > DENSE_NODES else "cpu"
            part = "" if cache_dir is None else block.fingerprint
            key = {"work": identity, "part": part, "device": runs_on}
            with bar.step(len(block.edges)) as report:
                found = cached(cache_dir, key, partial(_solve_part, work, block, device, report))
            scores[block.edges] = found["scores"]
            seconds, left = seconds + float(found["seconds"]), left - len(block.edges)
            if "modes" in found:
                components = labels[block.nodes[:, 0]]
                modes[components], widened[components] = found["modes"], found["widened"]
                solvers.update(found["solvers"].tolist())
                eigenvalues = found["eigenvalues"] if components[0] == largest else eigenvalues
        bar.advance(left)  # those that need no solving
    there = slice(None) if graph.weight is None else graph.weight.cpu().numpy() > 0
    values = np.zeros(graph.num_edges)
    values[there] = merge_ties(np.where(np.isnan(scores), np.fmin.reduce(scores, initial=np.inf), scores))
    return Scored(
        values=torch.from_numpy(values).to(graph.device),
        connected=connected,
        modes=modes,
        widened=widened,
        eigenvalues=eigenvalues,
        solvers=dict(solvers),
        seconds=seconds,
        description=str(work),
    )


def _solve_part(work: InParts, block: Block, device: torch.device, report: Report) -> Arrays:
    """What is kept of one part."""
    begun = time.monotonic()
    with within_memory(f"a part of {block.size} nodes and {len(block.edges)} edges", device=device):
        found = work.part(block, device, report)
    return found | {"seconds": np.array(time.monotonic() - begun)}
