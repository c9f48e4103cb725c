"""Proposition 1 measured: how far the low modes move when edges inside, or between, clusters are dropped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tadropedge._old.diagnostics import Realizability, alpha_realizable, subspace_distance
from tadropedge._old.paper.clustered import Clustered, clustered
from tadropedge._old.paper.figures import theory as figures
from tadropedge._old.paper.item import Bench, Item, Verdict
from tadropedge._old.paper.items.fig1 import words
from tadropedge._old.paper.journal import Journal
from tadropedge._old.paper.judge import CLEAR, judged, mean_and_error, where_it_holds
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import Number, Row, grouped
from tadropedge._old.provenance import commits

ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class GraphDraws(Row):
    """The subgraphs of one graph with one share dropped in one place: means and medians over draws."""

    share: float
    dropped: str
    count: int
    alpha: float
    mean_degree: float
    alpha_after: float  # infinite where there are more than q components, and so is the bound
    distance: float
    bound: float
    violations: int
    informative: float
    infinite: float
    finite: int
    tightness: float | None
    largest: float
    draws: int


@dataclass(frozen=True, kw_only=True)
class Kind(Row):
    """The same over all graphs of a kind; infinite numbers are None."""

    kind: str
    graphs: int
    dropped: str
    share: float
    edges: float
    mean_degree: float
    alpha: float
    alpha_after: float | None
    bound: float | None
    distance: Number
    distances: tuple[float, ...]
    largest_distance: float
    subgraphs: int
    checked: int
    violations: int
    informative: float
    infinite: float
    tightness: float | None


ROWS = (Kind,)


def run(bench: Bench) -> Item:
    """On many graphs of each kind, drop more and more edges inside and between clusters."""
    recipe, journal = bench.recipe, Journal(bench)
    jobs = [(kind, number) for kind in recipe["kinds"] for number in range(recipe["graphs"])]
    found: dict[str, list[list[GraphDraws]]] = {}
    for kind, number in bench.each("graphs", jobs):
        made = clustered(kind, bench.seed + number)
        data, piece = (made.graph.fingerprint, made.clusters), partial(measure, made, recipe, bench.seed + number)
        found.setdefault(words(kind), []).append(journal.rows(f"{words(kind)}/{number}", data, GraphDraws, piece))
    rows = [row for name, graphs in found.items() for row in summary(name, graphs)]
    pictures = {"proposition1": figures.distances(rows)}
    return Item(rows, judge(rows, recipe), pictures, recipe.said(), run=journal.run)


def masks(made: Clustered, candidates: Tensor, count: int, draws: int, random: np.random.Generator) -> Tensor:
    """Keep all edges but ``count`` random ones among ``candidates``, bool ``[draws, M]``."""
    places = candidates.nonzero().flatten().numpy()
    keep = torch.ones(draws, made.graph.num_edges, dtype=torch.bool)
    for draw in range(draws):
        keep[draw, torch.from_numpy(random.choice(places, count, replace=False))] = False
    return keep


def measure(made: Clustered, recipe: Recipe, seed: int) -> list[GraphDraws]:
    """One record for each share and place of dropping: means over draws on one graph."""
    random = np.random.default_rng([seed, 3])
    between = made.between
    whole = alpha_realizable(made.graph, made.clusters)
    records = []
    for share in recipe["shares"]:
        inside_count, between_count = (max(1, round(share * int(mask.sum()))) for mask in (~between, between))
        plans = {
            "inside": (~between, inside_count),
            "between": (between, between_count),
            "as many inside": (~between, min(between_count, int((~between).sum()))),
        }
        for name, (candidates, count) in plans.items():
            keep = masks(made, candidates, count, recipe["draws"], random)
            records.append(measured(whole, made, keep, share, name, count))
    return records


def measured(whole: Realizability, made: Clustered, keep: Tensor, share: float, dropped: str, count: int) -> GraphDraws:
    """Distances and bounds of a batch of subgraphs."""
    part = alpha_realizable(made.graph, made.clusters, keep)
    distance, bound = subspace_distance(whole.modes, part.modes), whole.bound(part)
    finite = torch.isfinite(bound)
    return GraphDraws(
        share=share,
        dropped=dropped,
        count=count,
        alpha=float(whole.alpha),
        mean_degree=float(whole.mean_degree),
        alpha_after=float(part.alpha.median()),
        distance=float(distance.mean()),
        bound=float(bound.median()),
        violations=int((distance > bound + ROUNDING).sum()),
        informative=float((bound < whole.largest_distance).double().mean()),
        infinite=float((~finite).double().mean()),
        finite=int(finite.sum()),
        tightness=float((distance[finite] / bound[finite]).median()) if bool(finite.any()) else None,
        largest=whole.largest_distance,
        draws=len(keep),
    )


def summary(kind: str, graphs: Sequence[Sequence[GraphDraws]]) -> list[Kind]:
    """Means and medians over graphs."""
    return [_summed(kind, records) for records in zip(*graphs, strict=True)]


def _summed(kind: str, records: Sequence[GraphDraws]) -> Kind:
    def of(name: str) -> list[Any]:
        return [getattr(record, name) for record in records]

    numbers: dict[str, Any] = {name: np.mean(of(name)).item() for name in ("mean_degree", "informative", "infinite")}
    for name in ("alpha_after", "bound"):
        median = float(np.median(of(name)))
        numbers[name] = median if math.isfinite(median) else None
    return Kind(
        kind=kind,
        graphs=len(records),
        dropped=records[0].dropped,
        share=records[0].share,
        edges=float(np.mean(of("count"))),
        alpha=float(np.median(of("alpha"))),
        distance=mean_and_error(of("distance")),
        distances=tuple(of("distance")),
        largest_distance=records[0].largest,
        subgraphs=sum(of("draws")),
        checked=sum(of("finite")),
        violations=sum(of("violations")),
        tightness=median_of_known(of("tightness")),
        commit=commits(of("commit")),
        **numbers,
    )


def median_of_known(values: Sequence[float | None]) -> float | None:
    """The median of what is not None; None where nothing is left.

    >>> median_of_known([0.1, None, 0.3]), median_of_known([None])
    (0.2, None)
    """
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def judge(rows: Sequence[Kind], recipe: Recipe) -> list[Verdict]:
    """The inequality, what it says, and the comparison it is drawn on for."""
    kinds = {kind: grouped(mine, lambda row: row.dropped) for kind, mine in grouped(rows, lambda row: row.kind).items()}
    clear = {kind: places for kind, places in kinds.items() if well_clustered(places)}
    others = {kind: places for kind, places in kinds.items() if kind not in clear}
    return [
        _holds(rows, recipe),
        *_says(kinds, recipe),
        *([_moves_less(clear, "moves less", recipe)] if clear else []),
        _matters(rows, recipe),
        *([_moves_less(others, "moves less elsewhere", recipe)] if others else []),
    ]


def well_clustered(places: Mapping[str, Sequence[Kind]]) -> bool:
    """Whether graphs of a kind have more edges inside clusters than between them."""
    inside, between = (places[name][-1].edges / places[name][-1].share for name in ("inside", "between"))
    return inside > between


def _holds(rows: Sequence[Kind], recipe: Recipe) -> Verdict:
    inside = [row for row in rows if row.dropped != "between"]
    tight = median_of_known([row.tightness for row in inside])
    said = "" if tight is None else f"; the distance is {tight:.1%} of the bound in the median"
    checked = _checked(inside)
    return judged(recipe, "holds", checked["wrong"] == 0 and tight is not None, said=said, **checked)


def _checked(rows: Sequence[Kind]) -> dict[str, int]:
    """How many subgraphs have a bound that can be violated, how many violate it, and how many have none."""
    finite, wrong = sum(row.checked for row in rows), sum(row.violations for row in rows)
    return {"finite": finite, "wrong": wrong, "infinite": sum(row.subgraphs for row in rows) - finite}


def _says(kinds: Mapping[str, Mapping[str, Sequence[Kind]]], recipe: Recipe) -> list[Verdict]:
    """Whether the bound is smaller than the largest distance there is: on some graphs, and on which."""
    informative = {
        kind: float(np.mean([row.informative for row in places["inside"]])) for kind, places in kinds.items()
    }
    small = {kind: share > 0.5 for kind, share in informative.items()}
    said = "; ".join(
        f"{kind}: α = {kinds[kind]['inside'][0].alpha:.2f}, {share:.0%}" for kind, share in informative.items()
    )
    return [
        judged(recipe, "says", any(small.values()), said=said),
        judged(recipe, "says everywhere", where_it_holds(small), said=said),
    ]


def _moves_less(kinds: Mapping[str, Mapping[str, Sequence[Kind]]], claim: str, recipe: Recipe) -> Verdict:
    """Whether the modes move less when as many edges are dropped inside as between, at every share."""
    holds, said = {}, []
    for kind, places in kinds.items():
        pairs = list(zip(places["between"], places["as many inside"], strict=True))
        gaps = [mean_and_error(np.array(out.distances) - np.array(into.distances)) for out, into in pairs]
        clear = sum(gap.above(CLEAR) for gap in gaps)
        factors = [out.distance.value / max(into.distance.value, ROUNDING) for out, into in pairs]
        holds[kind] = clear == len(pairs)
        times = f"{min(factors):.1f} to {max(factors):.1f} times as far"
        said.append(f"{kind}: between clusters {times}, clearly farther at {clear} of {len(pairs)} shares")
    return judged(recipe, claim, where_it_holds(holds), said="; ".join(said))


def _matters(rows: Sequence[Kind], recipe: Recipe) -> Verdict:
    """The proof holds for edges between clusters word by word, and gives a smaller bound there."""
    places = grouped(rows, lambda row: row.dropped)
    between, inside = places["between"], places["as many inside"]
    pairs = [(out.bound or math.inf, into.bound or math.inf) for out, into in zip(between, inside, strict=True)]
    smaller = sum(out < into for out, into in pairs)
    return judged(recipe, "matters", None, smaller=smaller, count=len(pairs), **_checked(between))
