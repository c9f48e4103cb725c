"""Eq. 7 and 10: whether a subgraph does what a changed signal X' on the whole graph does, Φ(X; S') = Φ(X'; S)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tadropedge._old.data.dataset import Dataset
from tadropedge._old.paper.changed_signal import Bank, Spectrum, nearest_signal, signal_of_narrow
from tadropedge._old.paper.figures import theory as figures
from tadropedge._old.paper.item import Bench, Item, Table, Verdict, table_of
from tadropedge._old.paper.items.edge_errors import where_of_both
from tadropedge._old.paper.items.theorem1 import largest_component
from tadropedge._old.paper.journal import Journal
from tadropedge._old.paper.judge import judged, mean_and_error, where_it_holds
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import Measured, Row, grouped
from tadropedge._old.paper.trained_filters import Taps, features, filtered, trained_taps
from tadropedge._old.sampling import sample_edges
from tadropedge._old.shift import shift_operator
from tadropedge._old.training.laboratory import data_fingerprints

EXACT = 1e-6  # a larger share of the change of an output is no rounding
SMALL = 0.1  # what may be left of the change of an output where X' stands for a subgraph
NEAR = 1.0  # ‖X' − X‖ over ‖X‖ up to which X' counts as near


@dataclass(frozen=True, kw_only=True)
class Changed(Row):
    """The best X' of many subgraphs and signals, for one network on one graph: medians, and the worst of all.

    ``unexplained`` is ‖Φ(X'; S) − Φ(X; S')‖ over ‖Φ(X; S) − Φ(X; S')‖, ``distance`` is ‖X' − X‖ over ‖X‖, ``change``
    is ‖Φ(X; S') − Φ(X; S)‖ over ‖Φ(X; S)‖, all Frobenius. ``condition`` is that of a filter on the spectrum of S;
    ``drift`` is how far X' moves with other taps, over ‖X' − X‖.
    """

    family: str
    graph: int
    nodes: int
    network: str
    taps: str
    normalization: str
    keep_prob: float
    draws: int
    signals: int
    unexplained: float
    most_unexplained: float
    distance: float
    most_distance: float
    change: float
    condition: float | None
    drift: float | None

    @property
    def name(self) -> str:
        """The network, and whether it was trained."""
        return f"{self.network}, {self.taps} taps"


ROWS = (Changed,)


@dataclass(frozen=True, eq=False, kw_only=True)
class Tried:
    """A network with its taps, and others like it, on one graph."""

    network: str
    kind: str
    taps: Taps
    others: Taps


def run(bench: Bench) -> Item:
    """Fit X' on one graph after the other."""
    recipe, journal = bench.recipe, Journal(bench)
    jobs = [(family, number) for family in recipe["families"] for number in range(family["graphs"])]
    rows: list[Changed] = []
    for family, number in bench.each("graphs", jobs, lambda job: job[0]["dataset"]):
        dataset = bench.dataset(family["dataset"], seed=bench.seed + number)
        make = partial(_measure, bench, dataset, family, number)
        rows += journal.rows(f"{family['dataset']}/{number}", data_fingerprints(dataset), Changed, make)
    pictures = {"augmentation": figures.changed_signals(rows)}
    return Item(rows, judge(rows, recipe), pictures, recipe.said(), run=journal.run)


def _measure(bench: Bench, dataset: Dataset, family: Mapping[str, Any], number: int) -> list[Changed]:
    """One row for each normalisation, network and p."""
    recipe, graph = bench.recipe, largest_component(dataset.graph)
    random = torch.Generator().manual_seed(bench.seed + number)
    rows = []
    for normalization in recipe["normalizations"]:
        whole = shift_operator(graph, normalization=normalization, dtype=torch.float64).to_dense()
        spectrum = torch.linalg.eigh(whole)
        cases = list(_cases(bench, dataset, family["networks"], normalization, random))
        for p in recipe["keep_probs"]:
            prob = torch.full((graph.num_edges,), p, dtype=torch.float64, device=graph.device)
            draws = range(bench.seed, bench.seed + recipe["draws"])
            keep = sample_edges(prob, seed=list(draws))
            others = shift_operator(graph, keep, normalization=normalization, dtype=torch.float64).to_dense()
            for case in cases:
                x = _signals(dataset, recipe["signals"], graph.num_nodes, case.taps[0].shape[1], random)
                rows.append(
                    Changed(
                        family=family["dataset"],
                        graph=number,
                        nodes=graph.num_nodes,
                        network=case.network,
                        taps=case.kind,
                        normalization=normalization,
                        keep_prob=p,
                        draws=len(draws),
                        signals=len(x),
                        **fitted(case, recipe["networks"][case.network], x, (whole, others), spectrum),
                    )
                )
    return rows


def _cases(
    bench: Bench, dataset: Dataset, names: Iterable[str], normalization: str, random: torch.Generator
) -> Iterable[Tried]:
    """Every network with random taps, and where the recipe trains it with trained ones."""

    @cache
    def trained(hidden: int, order: int) -> Taps:
        settings = {"hidden": hidden, "order": order, "normalizations": [normalization]}
        ((_, taps, _),) = trained_taps(bench, dataset, 1, settings)
        return taps

    for name in names:
        settings = bench.recipe["networks"][name]
        taps, others = (_random(settings, random, dataset.device) for _ in range(2))
        yield Tried(network=name, kind="random", taps=taps, others=others)
        if settings.get("trained"):
            own = trained(settings["widths"][1], settings["order"])
            yield Tried(network=name, kind="trained", taps=own, others=taps)


def _random(settings: Mapping[str, Any], random: torch.Generator, device: torch.device) -> Taps:
    """Normal taps, scaled so that features keep their size; a GCN has those of S alone."""
    found = []
    for into, out in itertools.pairwise(settings["widths"]):
        layer = torch.randn(out, into, settings["order"] + 1, generator=random, dtype=torch.float64)
        if settings.get("shift_only"):
            layer[:, :, 0] = 0
        found.append((layer / (into * layer.shape[-1]) ** 0.5).to(device))
    return found


def _signals(dataset: Dataset, count: int, nodes: int, width: int, random: torch.Generator) -> Tensor:
    """Signals ``[B, N, F]``: test signals of the dataset where it has such, else normal noise."""
    if dataset.features.dim() == 3 and width == dataset.features.shape[-1]:
        return dataset.features[dataset.split.test[:count]].double()
    return torch.randn(count, nodes, width, generator=random, dtype=torch.float64).to(dataset.device)


def fitted(
    case: Tried, settings: Mapping[str, Any], x: Tensor, operators: tuple[Tensor, Tensor], spectrum: Spectrum
) -> dict[str, Any]:
    """What a row holds of signals ``x [B, N, F]``; ``operators`` are S ``[N, N]`` and the S' ``[D, N, N]``."""
    whole, others = operators
    first, shifts = case.taps[0], others[:, None]
    linear = not settings.get("nonlinear")
    bank = Bank(first, spectrum)
    wanted = filtered(first, x[None], shifts)
    found = bank.signal(wanted)  # [D, B, N, F]
    drift = None
    if linear:
        target, before, after = wanted, filtered(first, x[None], whole), filtered(first, found, whole)
        other = Bank(case.others[0], spectrum).signal(filtered(case.others[0], x[None], shifts))
        drift = float((_norm(found - other) / _norm(found - x).clamp_min(1e-300)).median())
    else:
        target, before = features(case.taps, x, others), features(case.taps, x, whole[None])
        if len(case.taps) == 1:  # by descent from the best X' of the linear layer
            found = _descent(case.taps, whole, found, target)
        else:
            *hidden, last = case.taps
            found = signal_of_narrow(case.taps, spectrum, filtered(last, features(hidden, x, others), shifts))
        after = features(case.taps, found.flatten(0, 1), whole[None]).view_as(target)
    moved = _norm(target - before)
    unexplained, distance = _norm(after - target) / moved.clamp_min(1e-300), _norm(found - x) / _norm(x)
    return {
        "unexplained": float(unexplained.median()),
        "most_unexplained": float(unexplained.max()),
        "distance": float(distance.median()),
        "most_distance": float(distance.max()),
        "change": float((moved / _norm(before)).median()),
        "condition": bank.condition if linear else None,
        "drift": drift,
    }


def _descent(taps: Taps, whole: Tensor, start: Tensor, target: Tensor) -> Tensor:
    """X' ``[D, B, N, F]`` of a network with ReLU."""

    def network(signal: Tensor) -> Tensor:
        return features(taps, signal[None], whole[None])[0, 0]

    return nearest_signal(network, target.flatten(0, 1), start.flatten(0, 1)).view_as(start)


def _norm(x: Tensor) -> Tensor:
    norm: Tensor = x.norm(dim=(-2, -1))
    return norm


def summary(rows: Sequence[Changed]) -> dict[str, Measured]:
    """What no X' explains, by network and taps: the mean over graphs of their medians, and its error."""
    found = {}
    for name, mine in grouped(rows, lambda row: row.name).items():
        graphs = grouped(mine, lambda row: (row.family, row.graph)).values()
        found[name] = mean_and_error([float(np.mean([row.unexplained for row in one])) for one in graphs])
    return found


def tables(rows: Sequence[Changed]) -> list[Table]:
    """A line for each network, normalisation and p; numbers are means over graphs of medians."""
    groups = list(grouped(rows, lambda row: (row.family, row.name, row.normalization, row.keep_prob)).values())

    def mean(name: str, form: str) -> Any:
        def cell(mine: Sequence[Changed]) -> str:
            values = [getattr(row, name) for row in mine]
            return "–" if None in values else format(float(np.mean(values)), form)

        return cell

    columns = {
        "graphs": lambda mine: f"{len(mine)} × {mine[0].family}",
        "network": lambda mine: mine[0].name,
        "normalization": lambda mine: mine[0].normalization,
        "p": lambda mine: f"{mine[0].keep_prob:g}",
        "left of the change": mean("unexplained", ".1%"),
        "‖X' − X‖ / ‖X‖": mean("distance", ".3g"),
        "condition": mean("condition", ".3g"),
        "change of the output": mean("change", ".1%"),
        "other taps": mean("drift", ".3g"),
    }
    return [table_of("the best X', means over graphs", groups, columns)]


def judge(rows: Sequence[Changed], recipe: Recipe) -> list[Verdict]:
    """Eq. 7 as stated, Eq. 10 as meant, whether X' is near X, and whether it is data."""
    groups = grouped(rows, lambda row: row.name)
    left = summary(rows)
    said = {name: f"{name} {one.value:.1%} ± {one.error:.1%}" for name, one in left.items() if one.value > EXACT}
    kinds = grouped(rows, lambda row: (row.name, row.normalization))
    exact = {key: max(row.most_unexplained for row in mine) <= EXACT for key, mine in kinds.items()}
    good = {name: one.value <= SMALL for name, one in left.items()}
    near = {
        key: float(np.median([row.distance for row in mine])) <= NEAR for key, mine in kinds.items() if good[key[0]]
    }
    far = [f"{name} {_span([row.distance for row in mine])}" for name, mine in groups.items() if good[name]]
    drifts = {name: [row.drift for row in mine if row.drift is not None] for name, mine in groups.items() if good[name]}
    known = {name: float(np.median(values)) for name, values in drifts.items() if values}
    worst = max(row.condition for row in rows if row.condition is not None)
    numbers = {"left": ", ".join(said.values()), "small": SMALL, "far": ", ".join(far), "condition": worst}
    return [
        judged(recipe, "exists", where_of_both(exact), **numbers),
        judged(recipe, "augments", where_it_holds(good), **numbers),
        judged(recipe, "near", where_of_both(near), **numbers),
        judged(
            recipe,
            "data",
            where_it_holds({name: value <= SMALL for name, value in known.items()}),
            said=", ".join(f"{name} {value:.2g}" for name, value in known.items()),
            **numbers,
        ),
    ]


def _span(values: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(f"{end:.2g}" for end in (min(values), max(values))))
