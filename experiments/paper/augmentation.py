"""Eq. 7 and 10: whether a subgraph does what a changed signal X' on the whole graph does, Φ(X; S') = Φ(X'; S)."""

from itertools import pairwise

import pandas as pd
import torch
from torch import Tensor

import tadropedge as tde
from experiments.claims import Claim
from experiments.frame import Row, Run, item
from experiments.paper.changed_signal import Bank, Spectrum, nearest_signal, signal_of_narrow
from experiments.paper.filters import features, filtered, trained
from experiments.paper.signals import Task
from experiments.paper.theory import dense, largest_component

# Widths F_0 to F_L and K; those with ReLU are nonlinear; a GCN has S alone, no other power.
NETWORKS = {
    "one filter": {"widths": [1, 1], "order": 5},
    "filter bank 1→32": {"widths": [1, 32], "order": 5, "trained": True},
    "GCNN 1→32, ReLU": {"widths": [1, 32], "order": 5, "nonlinear": True, "trained": True},
    "GCN layer 8→4": {"widths": [8, 4], "order": 1},
    "narrow GCN 32→24→4, ReLU": {"widths": [32, 24, 4], "order": 1, "nonlinear": True},
}
EXACT = 1e-6  # a larger share of the change of an output is no rounding
SMALL = 0.1  # what may be left of the change of an output where X' stands for a subgraph
NEAR = 1.0  # ‖X' − X‖ over ‖X‖ up to which X' counts as near


def claims(rows: pd.DataFrame) -> list[Claim]:
    """Eq. 7 as stated, Eq. 10 as meant, whether X' is near X, and whether it is data."""
    rows = rows.assign(name=rows["network"] + ", " + rows["taps"] + " taps")
    exact = rows.groupby(["name", "normalization"], as_index=False, sort=False)["most_unexplained"].max()
    left = rows.groupby("name", as_index=False, sort=False)["unexplained"].mean()
    good = rows[rows["name"].isin(left.loc[left["unexplained"] <= SMALL, "name"])]
    near = good.groupby(["name", "normalization"], as_index=False, sort=False)["distance"].median()
    drift = good.groupby("name", as_index=False, sort=False)["drift"].median().dropna()
    by = ["name", "normalization"]
    return [
        Claim("exists", exact, exact["most_unexplained"] <= EXACT, by=by, shows={"most_unexplained": ".2g"}),
        Claim("augments", left, left["unexplained"] <= SMALL, by=["name"], shows={"unexplained": ".1%"}),
        Claim("near", near, near["distance"] <= NEAR, by=by, shows={"distance": ".2g"}),
        Claim("data", drift, drift["drift"] <= SMALL, by=["name"], shows={"drift": ".2g"}),
    ]


@item(
    "augmentation",
    where="Eq. 7 and 10",
    protocol="best X' by least squares or descent, random subgraphs and signals",
    claims=claims,
    quick={"family": ["source-localization"], "network": ["one filter", "filter bank 1→32", "GCN layer 8→4"],
           "keep_prob": [0.7], "graphs": 2, "draws": 3, "epochs": 10},
    paper={"family": ["source-localization", "cora"], "network": list(NETWORKS),
           "normalization": ["gcn", "first-order", "gcn-residual"], "keep_prob": [0.5, 0.9], "graphs": 5, "draws": 4,
           "signals": 2, "epochs": 200, "sizes": (100, 500, 1000)},
)  # fmt: skip
def measure(run: Run, family: str, network: str, normalization: str, keep_prob: float) -> list[Row]:
    """The best X' on several graphs, for random taps and, where there are such, for trained ones."""
    on_cora = family == "cora"
    if on_cora and network != "GCN layer 8→4":
        return []
    rows, settings = [], NETWORKS[network]
    for number in range(1 if on_cora else run["graphs"]):
        task = Task(run.seed + number, sizes=tuple(run["sizes"]))
        graph = largest_component(run.dataset("cora").graph) if on_cora else task.graph
        random = torch.Generator().manual_seed(run.seed + number)
        whole = dense(graph, normalization)
        spectrum = torch.linalg.eigh(whole)
        prob = torch.full((graph.num_edges,), keep_prob, dtype=torch.float64)
        keep = tde.sample_edges(prob, seed=list(range(run.seed, run.seed + run["draws"])), graph=graph)
        operators = whole, dense(graph, normalization, keep)
        kinds = {"random": _random(settings, random)}
        if settings.get("trained"):
            kinds["trained"] = trained(task, 1, normalization, run["epochs"], run.seed)[0]
        for kind, taps in kinds.items():
            width = taps[0].shape[1]
            if width == 1:
                x = task.part("test")[0][: run["signals"]].double()
            else:
                shape = run["signals"], graph.num_nodes, width
                x = torch.randn(shape, generator=random, dtype=torch.float64)
            others = _random(settings, random)
            found = fitted(taps, others, bool(settings.get("nonlinear")), x, operators, spectrum)
            rows.append({"graph": number, "nodes": graph.num_nodes, "taps": kind, **found})
    return rows


def _random(settings: dict, random: torch.Generator) -> list[Tensor]:
    """Normal taps, scaled so that features keep their size; a GCN has those of S alone."""
    found = []
    for into, out in pairwise(settings["widths"]):
        layer = torch.randn(out, into, settings["order"] + 1, generator=random, dtype=torch.float64)
        if settings["order"] == 1:
            layer[:, :, 0] = 0
        found.append(layer / (into * layer.shape[-1]) ** 0.5)
    return found


def fitted(
    taps: list[Tensor],
    others: list[Tensor],
    nonlinear: bool,
    x: Tensor,
    operators: tuple[Tensor, Tensor],
    spectrum: Spectrum,
) -> Row:
    """What the best X' of signals ``x [B, N, F]`` leaves; ``operators`` are S ``[N, N]`` and the S' ``[D, N, N]``.

    ``unexplained`` is ‖Φ(X'; S) − Φ(X; S')‖ over ‖Φ(X; S) − Φ(X; S')‖, ``distance`` ‖X' − X‖ over ‖X‖, ``change``
    ‖Φ(X; S') − Φ(X; S)‖ over ‖Φ(X; S)‖, all Frobenius. ``drift`` is how far X' moves with other taps, over ‖X' − X‖.
    """
    whole, subgraphs = operators
    first, shifts = taps[0], subgraphs[:, None]
    bank, wanted, drift = Bank(first, spectrum), filtered(first, x[None], shifts), None
    found = bank.signal(wanted)  # [D, B, N, F]
    if not nonlinear:
        target, before, after = wanted, filtered(first, x[None], whole), filtered(first, found, whole)
        other = Bank(others[0], spectrum).signal(filtered(others[0], x[None], shifts))
        drift = float((_norm(found - other) / _norm(found - x).clamp_min(1e-300)).median())
    else:
        target, before = features(taps, x, subgraphs), features(taps, x, whole[None])
        if len(taps) == 1:  # by descent from the best X' of the linear layer

            def network(signal: Tensor) -> Tensor:
                return features(taps, signal[None], whole[None])[0, 0]

            found = nearest_signal(network, target.flatten(0, 1), found.flatten(0, 1)).view_as(found)
        else:
            *hidden, last = taps
            found = signal_of_narrow(taps, spectrum, filtered(last, features(hidden, x, subgraphs), shifts))
        after = features(taps, found.flatten(0, 1), whole[None]).view_as(target)
    moved = _norm(target - before)
    unexplained, distance = _norm(after - target) / moved.clamp_min(1e-300), _norm(found - x) / _norm(x)
    return {
        "unexplained": float(unexplained.median()),
        "most_unexplained": float(unexplained.max()),
        "distance": float(distance.median()),
        "change": float((moved / _norm(before)).median()),
        "condition": None if nonlinear else bank.condition,
        "drift": drift,
    }


def _norm(x: Tensor) -> Tensor:
    return x.norm(dim=(-2, -1))
