"""Every argument of every public function, with every strange value: it works, or one clear line names the argument.

``CALLS`` holds a valid call of every public function, and the kind of each of its arguments. From these, cases are
generated: strange and wrong values must raise TadropedgeError; equal values of other types, memory orders and libraries
must give the same result. ``missing()`` lists what is public and has no call, so that new functions join.
"""

from __future__ import annotations

import atexit
import importlib
import inspect
import math
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import optuna
import pyg_raw
import torch
from fake_trainer import Trainer
from test_data_planetoid import small as small_planetoid
from torch import Tensor
from torch_geometric.data import Data

import tadropedge as tde
from tadropedge import data, diagnostics, pyg, search, spectrum
from tadropedge.comparison import statistics
from tadropedge.comparison.comparison import Plan, compare, trained
from tadropedge.distributed.partition import partition
from tadropedge.method import Method
from tadropedge.neighbours.plan import MiniBatches
from tadropedge.nn.own import own_network
from tadropedge.predicting import predict, write_predictions
from tadropedge.registry import Registry
from tadropedge.spectrum.clusters import Clusters
from tadropedge.training.batch import Course
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.laboratory import Laboratory, laboratory_for
from tadropedge.training.measures import default_measure
from tadropedge.training.model_file import load_model, save_model
from torture import Case
from torture.values import (
    STRANGE,
    Array,
    Device,
    Either,
    Flag,
    Instance,
    Kind,
    Listed,
    Name,
    Optional,
    PathLike,
    Real,
    Table,
    Text,
    Whole,
)

TRIES = "every argument of every public function, with values of wrong and of equal types"
LONGEST = 600  # characters of a message

# What is public: all of ``__all__``, and by name where a package is documented module by module.
PUBLIC: dict[str, tuple[str, ...] | None] = {
    "tadropedge": None,
    "tadropedge.pyg": None,
    "tadropedge.data": None,
    "tadropedge.spectrum": None,
    "tadropedge.diagnostics": None,
    "tadropedge.search": None,
    "tadropedge.method": ("Method",),
    "tadropedge.nn.own": ("own_network",),
    "tadropedge.registry": ("Registry",),
    "tadropedge.training.config": ("Architecture", "Trial"),
    "tadropedge.neighbours.plan": ("MiniBatches",),
    "tadropedge.training.batch": ("Course",),
    "tadropedge.training.laboratory": ("Laboratory", "laboratory_for"),
    "tadropedge.training.measures": ("default_measure",),
    "tadropedge.training.model_file": ("load_model", "save_model"),
    "tadropedge.distributed.partition": ("partition",),
    "tadropedge.predicting": ("predict", "write_predictions"),
    "tadropedge.comparison.comparison": ("Plan", "compare", "trained"),
    "tadropedge.comparison.statistics": (
        "mean_interval",
        "paired_difference",
        "paired_p_values",
        "holm",
        "honest_rows",
    ),
}
# Records that functions return and nobody makes by hand, and errors.
RETURNED = {
    "Components", "ShiftOperator", "Explanation", "Step", "Subspaces", "OutputVariance", "Realizability",
    "RelativeError", "Replicates", "Finished",
    "ConvergenceError", "NotEnoughMemoryError", "RepeatedEigenvalueWarning", "TadropedgeError",
}  # fmt: skip
# Parts of a finished search, which run_search makes and reads; and what answers a strange argument by its nature.
INSIDE = {
    "tadropedge.search.Ledger", "tadropedge.search.Ledger.holds", "tadropedge.search.Ledger.write",
    "tadropedge.search.Finished.of", "tadropedge.spectrum.cluster_counts",
    "tadropedge.search.Choice.at", "tadropedge.search.Uniform.at", "tadropedge.search.LogUniform.at",
    "tadropedge.registry.Registry", "tadropedge.training.batch.Course.evaluates",
}  # fmt: skip


# Other words by which messages name an argument.
ALSO = {
    "name": ("method", "dataset", "score", "file"),
    "entry": ("the score",),
    "path": ("file",),
    "storage": ("path",),
    "i": ("trial index",),
    "table": ("parameter", "method"),
    "x": ("shift @ x", "features"),
    "methods": ("method",),
    "architecture": ("backbone",),
    "weights": ("score",),
    "error": ("vectors",),
    "values": ("replicates",),
    "accuracy": ("accuracies",),
    "score_column": ("column",),
    "factory": ("the model",),
    "data": ("file",),
}


@dataclass(frozen=True)
class Call:
    """A valid call: ``function(**given)``, and the kind of each argument that is varied."""

    name: str
    function: Callable[..., Any]
    given: Mapping[str, Any]
    kinds: Mapping[str, Kind]

    def __call__(self, **changes: Any) -> Any:
        """The result of the call, or of the first step of a generator."""
        made = {name: value() if isinstance(value, partial) else value for name, value in self.given.items()} | changes
        result = self.function(**made)
        return list(result) if inspect.isgenerator(result) else result


# -- what the calls are made of -------------------------------------------------------------------------------

ARCS = torch.tensor([[0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5]])
WEIGHTS = torch.tensor([0.5, 1.0, 2.0, 0.25, 0.125, 1.5, 0.75])
PROB = torch.tensor([0.5, 1.0, 0.0, 0.25, 0.125, 0.75, 0.5])
BOTH = torch.cat((ARCS, ARCS.flip(0)), dim=1)
GRAPH = tde.Graph.from_edge_index(ARCS)
SHIFT = tde.shift_operator(GRAPH)
CLUSTERS = torch.tensor([0, 0, 0, 1, 1, 1])
SQUARE = torch.diag(torch.arange(1.0, 7.0)) + 0.125
BASIS = torch.eye(4)[:, :2]
LABELS = torch.tensor([0, 1, 0, 1, 0, 1])
SHARES = torch.tensor([0.5, 0.625, 0.75], dtype=torch.float64)
NUMBERS = {"train_loss": 0.5, "val_loss": 0.5, "val_accuracy": 0.5, "test_accuracy": 0.5}
FINISHED = {"cdf": [search.Finished(0, Trial("cdf"), **NUMBERS, best_epoch=0)]}
KARATE = data.load_karate()
SPACE = search.Space.of({"dropout": [0.25, 0.5]})
TINY_TASK = {"nodes": 10, "communities": 2, "times": 2, "sizes": (16, 4, 4)}


def score(graph: tde.Graph) -> Tensor:
    """A score of one's own."""
    return graph.pairs.sum(dim=0)


def made_data() -> Data:
    """A fresh ``Data`` with both directions, scores and probabilities."""
    return Data(edge_index=BOTH.clone(), num_nodes=6, edge_score=WEIGHTS.repeat(2), edge_keep_prob=PROB.repeat(2))


def labelled_data() -> Data:
    """A fresh ``Data`` with features, labels and a split."""
    masks = {f"{name}_mask": torch.arange(6) // 2 == place for place, name in enumerate(("train", "val", "test"))}
    return Data(edge_index=BOTH.clone(), x=torch.eye(6), y=LABELS.clone(), **masks)


def linear_model(num_features: int, num_classes: int) -> torch.nn.Module:
    """A model of one's own."""

    class Own(torch.nn.Linear):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            """The edges do not count."""
            return super().forward(x)

    return Own(num_features, num_classes)


def made_networkx() -> nx.Graph:
    """A fresh NetworkX graph."""
    return nx.Graph(ARCS.T.tolist())


def storage() -> optuna.storages.BaseStorage:
    """A fresh storage in memory."""
    return optuna.storages.InMemoryStorage()


@cache
def laboratory() -> Laboratory:
    """A laboratory of one epoch."""
    return Laboratory(KARATE, Architecture(hidden=4), epochs=1)


@cache
def outcome() -> Any:
    """An outcome with its model."""
    return laboratory().train([Trial()], keep_state=True)[0]


@cache
def folder() -> Path:
    """A folder with an edge list, a dataset, a model and a small citation set."""
    made = tempfile.TemporaryDirectory()
    atexit.register(made.cleanup)
    path = Path(made.name)
    (path / "edges.csv").write_text("source,target\n0,1\n1,2\n")
    arrays = {"edge_index": ARCS.numpy(), "x": np.eye(6), "y": LABELS.numpy()}
    np.savez(path / "mine.npz", train=[0, 1], val=[2, 3], test=[4, 5], **arrays)
    raw = path / "planetoid" / "Cora" / "raw"
    raw.mkdir(parents=True)
    for name, content in small_planetoid().items():
        (raw / f"ind.cora.{name}").write_bytes(content)
    pyg_raw.write("WebKB", path / "WebKB" / "texas" / "raw" / "out1_node_feature_label.txt")
    save_model(path / "model", outcome(), laboratory().architecture, "karate", 34, 4)
    return path


def dropping(training: bool = True) -> pyg.TADropEdge:
    """A module in training mode."""
    return pyg.TADropEdge(seed=3, advance="manual").train(training)


def method_of(method: str) -> Callable[..., Any]:
    """A method of a module that is made anew for each call."""
    return lambda **given: getattr(dropping(), method)(**given)


class Progress(Kind):
    """True, False, None or a function; bars are not drawn here."""

    def legal(self, value: Any) -> bool | None:
        """Whether it is one of them."""
        return None if isinstance(value, bool | np.bool_) else value is None


KEEP = Optional(Array(0, flags=True, batch=True))
NUMBER_LIST = Either(Real(0, 1), Array(0, 1, likes=True, fixed=False))
SEED = Whole(-(2**63), 2**64 - 1)
SEEDS = Either(SEED, Listed())
SCORING = {
    "graph": Instance(), "cache_dir": Optional(PathLike()), "progress": Progress(), "device": Optional(Device()),
}  # fmt: skip
MODAL = {
    "laplacian": Name(), "solver": Name(), "tolerance": Real(0, 1.7e308, strict=True),
    "ranks": Optional(Instance()),  # of another solver than these
}  # fmt: skip


def calls() -> Iterator[Call]:
    """A valid call of everything that is public."""
    yield from graphs()
    yield from core()
    yield from transforms()
    yield from spectra()
    yield from analysis()
    yield from datasets()
    yield from searches()
    yield from trainings()
    yield from comparisons()


def graphs() -> Iterator[Call]:
    """Graphs and their constructors."""
    make, name = tde.Graph, "tadropedge.Graph"
    arcs = Array(0, whole=True, likes=True, fixed=False)
    weights = Array(1, likes=True, column=True)
    yield Call(
        name, make, {"pairs": ARCS, "num_nodes": 6, "weight": WEIGHTS.double(), "arc_pair": torch.arange(7)},
        {"pairs": Array(0, 5, whole=True, fixed=False, narrow=False), "num_nodes": Whole(6, 3_037_000_499),
         "weight": Optional(Array(1, gradient=False, precision=False)),
         "arc_pair": Array(-1, 6, whole=True, fixed=False, narrow=False), "node_ids": Optional(Listed())},
    )  # fmt: skip
    yield Call(
        f"{name}.from_edge_index", make.from_edge_index,
        {"edge_index": ARCS, "num_nodes": 6, "edge_weight": WEIGHTS},
        {"edge_index": arcs, "num_nodes": Optional(Whole(6, 3_037_000_499)), "edge_weight": Optional(weights)},
    )  # fmt: skip
    yield Call(f"{name}.from_data", make.from_data, {"data": partial(made_data), "weight": None},
               {"data": Instance(), "weight": Optional(Text())})  # fmt: skip
    yield Call(f"{name}.from_scipy", make.from_scipy, {"matrix": GRAPH.adjacency()}, {"matrix": Instance()})
    yield Call(f"{name}.from_networkx", make.from_networkx, {"graph": partial(made_networkx), "weight": "weight"},
               {"graph": Instance(), "weight": Optional(Text())})  # fmt: skip
    yield Call(
        f"{name}.from_file", make.from_file, {"path": folder() / "edges.csv"},
        {"path": PathLike(), "num_nodes": Optional(Whole(3, 3_037_000_499)), "header": Optional(Flag()),
         "weighted": Flag()},
    )  # fmt: skip
    yield Call(f"{name}.to_arcs", GRAPH.to_arcs, {"values": WEIGHTS, "loops": 1.0},
               {"values": Array(None, batch=True, flags=True, free=True, precision=False, gradient=False),
                "loops": Either(Real(-3e38, 3e38), Flag())})  # fmt: skip
    yield Call("tadropedge.distributed.partition.partition", partition,
               {"graph": GRAPH, "parts": 2, "how": "multilevel"},
               {"graph": Instance(), "parts": Whole(1, 6), "how": Name(), "seed": Whole(0)})  # fmt: skip
    yield Call(f"{name}.to", GRAPH.to, {"device": "cpu"}, {"device": Device()})


def core() -> Iterator[Call]:
    """From scores to shift operators."""
    yield Call("tadropedge.aggregate_resistance", tde.aggregate_resistance, {"graph": GRAPH, "q": 2},
               {**SCORING, **MODAL, "q": Whole(1, 6)})  # fmt: skip
    yield Call("tadropedge.aggregate_resistance", tde.aggregate_resistance, {"graph": GRAPH, "desired_clusters": 2},
               {"desired_clusters": Whole(1, 6)})  # fmt: skip
    yield Call(
        "tadropedge.effective_resistance", tde.effective_resistance, {"graph": GRAPH},
        {**SCORING, "method": Name(), "relative_error": Real(0, 1, strict=True), "seed": Whole(0)},
    )  # fmt: skip
    yield Call("tadropedge.edge_scores", tde.edge_scores, {"graph": GRAPH, "score": "effective"},
               {**SCORING, "score": Name()})  # fmt: skip
    yield Call("tadropedge.edge_scores", tde.edge_scores, {"graph": GRAPH, "score": "cosine", "features": SQUARE},
               {"features": Array(None, fixed=False, flags=True, sparse=True)})  # fmt: skip
    yield Call(
        "tadropedge.sparsify", tde.sparsify, {"graph": GRAPH, "keep_ratio": 0.75, "score": "effective"},
        {**SCORING, "score": Name(), "keep_ratio": Real(0, 1, strict=True), "seed": SEED, "strategy": Name(),
         "certificate": Flag()},
    )  # fmt: skip
    yield Call("tadropedge.auto_gamma", tde.auto_gamma, {"weights": WEIGHTS},
               {"weights": Array(likes=True, fixed=False)})  # fmt: skip
    rules = {"weights": Array(likes=True, fixed=False), "strategy": Name(), "inverse": Flag()}
    yield Call("tadropedge.keep_probabilities", tde.keep_probabilities,
               {"weights": WEIGHTS, "keep_prob": 0.5, "gamma": 0.25, "strategy": "cutoff"},
               {**rules, "keep_prob": NUMBER_LIST,
                "gamma": Either(Real(0), Array(0, likes=True, fixed=False))})  # fmt: skip
    yield Call("tadropedge.keep_probabilities", tde.keep_probabilities, {"weights": WEIGHTS, "keep_ratio": 0.875},
               {"keep_ratio": Either(Real(0.75, 1), Array(0, 1, likes=True))})  # fmt: skip
    yield Call("tadropedge.keep_probabilities", tde.keep_probabilities,
               {"weights": WEIGHTS, "keep_prob": 0.5, "gamma": SHARES, "strategy": "cutoff"},
               {"gamma": Vector(0, likes=True, fixed=False)})  # fmt: skip
    yield Call("tadropedge.keep_probabilities", tde.keep_probabilities, {"weights": WEIGHTS, "keep_prob": SHARES},
               {"keep_prob": Vector(0, 1, likes=True, fixed=False)})  # fmt: skip
    yield Call("tadropedge.keep_probabilities", tde.keep_probabilities,
               {"weights": GRAPH, "keep_prob": 0.5, "strategy": "dropsens", "sensitivity": 0.75},
               {"weights": Instance(), "keep_prob": NUMBER_LIST, "sensitivity": Real(0, 1)})  # fmt: skip
    coins = {"seed": SEEDS, "epoch": Whole(-(10**6000), 10**6000)}
    yield Call("tadropedge.sample_edges", tde.sample_edges, {"prob": PROB, "seed": 3, "epoch": 4, "pairs": ARCS},
               {**coins, "prob": Array(0, 1, batch=True), "pairs": Optional(Array(None, whole=True))})  # fmt: skip
    yield Call("tadropedge.sample_edges", tde.sample_edges,
               {"prob": (PROB + 3) / 4, "seed": 3, "epoch": 4, "connected": GRAPH, "exact": True},
               {**coins, "prob": Array(0, 1, batch=True), "connected": Optional(Instance()),
                "exact": Flag()})  # fmt: skip
    yield Call("tadropedge.sample_directed", tde.sample_directed, {"num_pairs": 7, "keep_prob": 0.5},
               {**coins, "num_pairs": Whole(0, 2**40), "keep_prob": Real(0, 1), "device": Device()})  # fmt: skip
    yield Call("tadropedge.shift_operator", tde.shift_operator, {"graph": GRAPH, "keep": PROB},
               {"graph": Instance(), "keep": KEEP, "normalization": Name(), "dtype": Instance()})  # fmt: skip
    yield Call("tadropedge.shift_operator", tde.shift_operator,
               {"graph": GRAPH, "keep": PROB > 0.5, "unbiased": (PROB + 3) / 4},
               {"unbiased": Optional(Array(0, 1, batch=True))})  # fmt: skip
    yield Call("tadropedge.ShiftOperator.__matmul__", lambda x: SHIFT @ x, {"x": torch.ones(6, 2)},
               {"x": Array(None, batch=True, fixed=False, precision=False, free=True)})  # fmt: skip
    yield Call("tadropedge.ShiftOperator.with_values", SHIFT.with_values, {"values": torch.ones(20)},
               {"values": Array(None, batch=True, precision=False, free=True), "symmetric": Flag()})  # fmt: skip
    yield Call("tadropedge.registry.Registry.__setitem__", lambda name, entry: new_registry().__setitem__(name, entry),
               {"name": "mine", "entry": score}, {"name": Text(), "entry": Registrable()})  # fmt: skip
    yield Call("tadropedge.method.Method.of", Method.of, {"name": "cdf"}, {"name": Name()})
    yield Call("tadropedge.method.Method", Method, {"name": "cdf", "score": "aggregate", "strategy": "cdf"},
               {"name": Text(), "score": Optional(Name()), "strategy": Optional(Name()), "inverse": Flag(),
                "network": Optional(Name()), "options": Listed(empty=True), "auto": Flag()})  # fmt: skip


class Vector(Array):
    """A vector; where numbers are legal too, they are tried elsewhere."""

    def legal(self, value: Any) -> bool | None:
        """Numbers are not tried."""
        return None if type(value) in (int, float) else False

    def wrong(self, valid: Tensor) -> dict[str, Callable[[], Any]]:
        """A number alone is right."""
        return {label: make for label, make in super().wrong(valid).items() if label != "0-d"}


class Registrable(Kind):
    """A function."""

    def legal(self, value: Any) -> bool | None:
        """Functions of any make, but no classes."""
        return callable(value) and not isinstance(value, type)


def new_registry() -> Registry[Any]:
    """A registry of one's own."""
    return Registry("score", {})


def transforms() -> Iterator[Call]:
    """PyTorch Geometric."""
    name = "tadropedge.pyg"
    yield Call(f"{name}.AddScore", pyg.AddScore, {"score": "effective"},
               {"score": ScoreName(), "cache_dir": Optional(PathLike())})  # fmt: skip
    yield Call(f"{name}.AddScore", pyg.AddScore, {"score": "effective", "weight": "w"}, {"weight": Optional(Text())})
    yield Call(f"{name}.AddScore.forward", lambda data: pyg.AddScore("effective")(data), {"data": partial(made_data)},
               {"data": Instance()})  # fmt: skip
    yield Call(f"{name}.AddResistance", pyg.AddResistance, {"q": 2},
               {"q": Whole(1), "laplacian": Name(), "solver": Name(), "score": ScoreName(),
                "cache_dir": Optional(PathLike())})  # fmt: skip
    yield Call(f"{name}.AddResistance", pyg.AddResistance, {"desired_clusters": 2}, {"desired_clusters": Whole(1)})
    yield Call(f"{name}.AddResistance", quietly(pyg.AddResistance), {}, {"weights": ScoreName()})
    yield Call(f"{name}.AddKeepProbability", pyg.AddKeepProbability, {"keep_prob": 0.5, "gamma": 0.25},
               {"strategy": Name(), "keep_prob": Real(0, 1), "gamma": Real(0), "inverse": Flag()})  # fmt: skip
    yield Call(f"{name}.AddKeepProbability", pyg.AddKeepProbability, {"keep_ratio": 0.5}, {"keep_ratio": Real(0, 1)})
    yield Call(f"{name}.AddKeepProbability", pyg.AddKeepProbability, {"strategy": "dropsens", "keep_prob": 0.5,
                                                                     "sensitivity": 0.75},
               {"sensitivity": Real(0, 1)})  # fmt: skip
    yield Call(f"{name}.AddKeepProbability.forward", lambda data: pyg.AddKeepProbability(keep_prob=0.5)(data),
               {"data": partial(made_data)}, {"data": Instance()})  # fmt: skip
    yield Call(f"{name}.AddShift", pyg.AddShift, {}, {"normalization": Name(), "dtype": Instance()})
    yield Call(f"{name}.AddShift.forward", lambda data: pyg.AddShift()(data), {"data": partial(made_data)},
               {"data": Instance()})  # fmt: skip
    yield from modules(name)
    yield from dropping_functions(name)


def modules(name: str) -> Iterator[Call]:
    """How TADropEdge is made."""
    made = f"{name}.TADropEdge"
    yield Call(made, pyg.TADropEdge, {}, {"seed": SEED, "advance": Name()})
    yield Call(made, pyg.TADropEdge, BY_RULE, RULE | {"unbiased": Flag()})
    yield Call(made, pyg.TADropEdge, {"strategy": "uniform", "keep_ratio": 0.5}, {"keep_ratio": Real(0, 1)})
    yield Call(made, pyg.TADropEdge, {"strategy": "dropsens", "keep_prob": 0.5, "sensitivity": 0.75},
               {"sensitivity": Real(0, 1)})  # fmt: skip
    yield Call(made, pyg.TADropEdge, {"advance": "manual", "keep_prob": 0.5, "layers": 3, "keep_last": 0.75},
               {"layers": Whole(1, 10_000), "keep_last": Optional(Real(0, 1))})  # fmt: skip
    yield Call(made, pyg.TADropEdge, {"keep_prob": 0.5, "coins": "arc", "weight": "w", "relations": ["cites"]},
               {"coins": Name(), "weight": Optional(Text()), "relations": Optional(Relations())})  # fmt: skip
    yield Call(f"{made}.of", pyg.TADropEdge.of, {"method": "degree-cdf", "keep_prob": 0.5},
               {"method": Name(), "seed": SEED, "advance": Name()})  # fmt: skip


FEATURES = torch.arange(1.0, 13.0).view(6, 2)  # rows that differ, so that cosine tells edges apart


def dropping_functions(name: str) -> Iterator[Call]:
    """What TADropEdge and its function draw."""
    arcs = Array(0, whole=True, fixed=False, narrow=False)
    drop = {"edge_index": arcs, "edge_keep_prob": Array(0, 1, gradient=False),
            "node_id": Optional(Array(None, whole=True, fixed=False))}  # fmt: skip
    given = {"edge_index": BOTH, "edge_keep_prob": PROB.repeat(2), "node_id": torch.arange(6)}
    for method in ("forward", "mask"):
        yield Call(f"{name}.TADropEdge.{method}", method_of(method), given, drop)
    yield Call(f"{name}.ta_dropout_edge", pyg.ta_dropout_edge, given | {"seed": 3, "epoch": 4},
               drop | {"edge_keep_prob": OneOrAll(0, 1, gradient=False), "seed": SEED,
                       "epoch": Whole(-(10**9000), 10**9000), "training": Flag()})  # fmt: skip
    known = {"edge_index": BOTH, "x": FEATURES, "num_nodes": 6, "edge_weight": WEIGHTS.repeat(2)}
    kinds = {"edge_index": arcs, "num_nodes": Optional(Whole(6)),
             "x": Array(None, fixed=False, sparse=True, free=True, nan=True, flags=True),
             "edge_weight": Optional(Array(0, column=True, precision=False))}  # fmt: skip
    yield Call(f"{name}.ta_dropout_edge", pyg.ta_dropout_edge, BY_RULE | known | {"score": "cosine"}, RULE | kinds)
    yield Call(f"{name}.ta_dropout_edge", pyg.ta_dropout_edge,
               {"edge_index": BOTH, "strategy": "uniform", "keep_ratio": 0.5}, {"keep_ratio": Real(0, 1)})  # fmt: skip
    yield Call(f"{name}.ta_dropout_edge", pyg.ta_dropout_edge,
               {"edge_index": BOTH, "strategy": "dropsens", "keep_prob": 0.5, "sensitivity": 0.75},
               {"sensitivity": Real(0, 1)})  # fmt: skip
    for method in ("forward", "mask", "probabilities"):
        yield Call(f"{name}.TADropEdge.{method}", ruled(method), known | {"layer": 1}, kinds | {"layer": Whole(0, 2)})
    yield Call(f"{name}.TADropEdge.forward",
               lambda edge_attr: dropping()(BOTH, PROB.repeat(2), edge_attr), {"edge_attr": torch.ones(14, 2)},
               {"edge_attr": Attribute()})  # fmt: skip
    yield Call(f"{name}.TADropEdge.forward", lambda edge_index: dropping(False)(edge_index, PROB.repeat(2)),
               {"edge_index": BOTH}, {"edge_index": Shaped(None, whole=True, fixed=False, narrow=False)})  # fmt: skip
    two = {"edge_index": ARCS, "num_nodes": (6, 6), "coins": "arc"}
    yield Call(f"{name}.ta_dropout_edge", pyg.ta_dropout_edge, BY_RULE | two,
               {"num_nodes": Optional(Listed()), "coins": Name()})  # fmt: skip
    yield Call(f"{name}.graph_node_ids", pyg.graph_node_ids,
               {"batch": torch.tensor([0, 0, 1]), "graph_number": torch.tensor([3, 4]), "node_id": torch.arange(3)},
               {"batch": Array(0, whole=True, fixed=False, narrow=False),
                "graph_number": Array(None, whole=True, fixed=False),
                "node_id": Optional(Array(None, whole=True, fixed=False))})  # fmt: skip
    yield Call(f"{name}.check_model", pyg.check_model, {"model": torch.nn.Linear(2, 2)}, {"model": Instance()})
    yield Call(f"{name}.TADropEdge.set_epoch", dropping().set_epoch, {"epoch": 2}, {"epoch": Whole(0)})


def ruled(method: str) -> Callable[..., Any]:
    """A method of a module with a rule for three layers, made anew for each call."""
    rule = {"score": "cosine", "strategy": "proportional", "keep_ratio": 0.5, "layers": 3}
    return lambda **given: getattr(pyg.TADropEdge(seed=3, advance="manual", **rule), method)(**given)  # type: ignore[arg-type]


class ScoreName(Name):
    """A name, or a function of one argument, which is only called when there are data."""

    def legal(self, value: Any) -> bool | None:
        """Functions and ``weights=None``, the default of a deprecated name, are not tried."""
        return None if value is len or value is None else False


RULE = {
    "score": ScoreName(), "strategy": Optional(Name()), "keep_prob": Real(0, 1), "gamma": Real(0),
    "inverse": Flag(), "connected": Flag(), "exact": Flag(), "cache_dir": Optional(PathLike()),
}  # fmt: skip
BY_RULE = {"score": "degree", "strategy": "cutoff", "keep_prob": 0.75, "gamma": 0.5}


def quietly(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function without its DeprecationWarning."""

    def call(**given: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return function(**given)

    return call


class Relations(Listed):
    """A list of names of relations, which may be any."""

    def legal(self, value: Any) -> bool | None:
        """Texts in a list are names, and an empty list names none."""
        return value in ([], ["a"]) if isinstance(value, list) else False


class Shaped(Array):
    """Arcs, or a sparse matrix that stands for them; which is tried elsewhere."""

    def legal(self, value: Any) -> bool | None:
        """Sparse matrices are a shape of their own."""
        return None if isinstance(value, Tensor) and value.layout is not torch.strided else False

    def wrong(self, valid: Tensor) -> dict[str, Callable[[], Any]]:
        """All but sparse matrices."""
        return {label: make for label, make in super().wrong(valid).items() if label not in ("sparse", "CSR")}


class OneOrAll(Array):
    """Probabilities of arcs, or one number for all of them."""

    def legal(self, value: Any) -> bool | None:
        """A number that is a probability is taken."""
        return None if type(value) is float and 0 <= value <= 1 else super().legal(value)


class Attribute(Array):
    """A tensor with one row per arc, of any type, or None."""

    def legal(self, value: Any) -> bool | None:
        """None rides along."""
        return value is None

    def wrong(self, valid: Tensor) -> dict[str, Callable[[], Any]]:
        """What has other rows, or is no tensor."""
        kept = ("meta", "sparse", "0-d", "as an array", "as a list")
        wrong = {label: make for label, make in super().wrong(valid).items() if label in kept}
        return wrong | {"a row less": lambda: valid[:-1]}

    def equal(self, valid: Tensor) -> dict[str, Callable[[], Any]]:
        """Another order in memory."""
        return {"Fortran order": lambda: valid.T.contiguous().T}


def spectra() -> Iterator[Call]:
    """The spectrum."""
    name = "tadropedge.spectrum"
    yield Call(f"{name}.gap_window", spectrum.gap_window, {"alpha": 3}, {"alpha": Whole(1)})
    some = {"graph": Instance(), "laplacian": Name(), "solver": Name(), "device": Optional(Device())}
    some |= {"ranks": Optional(Instance())}
    yield Call(f"{name}.explain", spectrum.explain, {"graph": GRAPH, "q": 2}, {**some, "q": Whole(1, 6)})
    yield Call(f"{name}.explain", spectrum.explain, {"graph": GRAPH, "desired_clusters": 2},
               {"desired_clusters": Whole(1, 6)})  # fmt: skip
    yield Call(f"{name}.cluster_subspaces", spectrum.cluster_subspaces, {"graph": GRAPH, "clusters": Clusters(q=2)},
               {**some, **MODAL, "clusters": Instance(), "progress": Progress(), "device": Device()})  # fmt: skip


def analysis() -> Iterator[Call]:
    """The quantities of the paper's analysis."""
    name = "tadropedge.diagnostics"
    for function in (diagnostics.lipschitz, diagnostics.response_bound):
        yield Call(f"{name}.{function.__name__}", function, {"taps": WEIGHTS, "low": 0.0, "high": 2.0},
                   {"taps": Taps(None, likes=True, fixed=False, batch=True), "low": Real(-1e30, 2),
                "high": Real(0, 1e30)})  # fmt: skip
    yield Call(f"{name}.divided_lipschitz", diagnostics.divided_lipschitz, {"taps": WEIGHTS, "values": SHARES},
               {"taps": Taps(None, likes=True, fixed=False, batch=True),
                "values": Array(None, fixed=False)})  # fmt: skip
    yield Call(
        f"{name}.theorem_constant", diagnostics.theorem_constant,
        {"C_L": 0.5, "widths": [32], "nodes": 49, "delta": 1.0, "C_sigma": 2.0},
        {"C_L": Real(0), "widths": Listed(), "nodes": Whole(1), "delta": Real(0), "C_sigma": Real(0)},
    )  # fmt: skip
    keep = Optional(Array(0, batch=True, flags=True))
    yield Call(f"{name}.low_modes", diagnostics.low_modes, {"graph": GRAPH, "q": 2, "keep": PROB},
               {"graph": Instance(), "q": Whole(1, 6), "keep": keep})  # fmt: skip
    basis = Array(None, fixed=False, batch=True, nan=False, flags=True)
    yield Call(f"{name}.subspace_distance", diagnostics.subspace_distance, {"first": BASIS, "second": BASIS.flip(0)},
               {"first": basis, "second": basis})  # fmt: skip
    clusters = Array(0, whole=True, narrow=False)
    for function in (diagnostics.relative_subgraph_degree, diagnostics.alpha_realizable):
        yield Call(f"{name}.{function.__name__}", function, {"graph": GRAPH, "clusters": CLUSTERS, "keep": PROB},
                   {"graph": Instance(), "clusters": clusters, "keep": keep})  # fmt: skip
    matrix = Array(None, fixed=True, batch=True)
    yield Call(f"{name}.ErrorModel", diagnostics.ErrorModel, {"shift": SQUARE, "singular": 1e-9},
               {"shift": Array(None, fixed=True), "singular": Real(0, 1, strict=True)})  # fmt: skip
    yield Call(f"{name}.ErrorModel.of", diagnostics.ErrorModel(SQUARE).of, {"other": SQUARE / 2}, {"other": matrix})
    yield Call(f"{name}.relative_error", diagnostics.relative_error,
               {"shift": SQUARE, "other": SQUARE / 2, "singular": 1e-9},
               {"shift": Array(None, fixed=True), "other": matrix, "singular": Real(0, 1, strict=True)})  # fmt: skip
    yield Call(f"{name}.misalignment", diagnostics.misalignment, {"error": SQUARE, "vectors": torch.eye(6)},
               {"error": Array(None, batch=True, gradient=False),
                "vectors": Array(None, flags=True, gradient=False)})  # fmt: skip
    fit = diagnostics.alpha_realizable(GRAPH, CLUSTERS)
    yield Call(f"{name}.Realizability.bound", fit.bound, {"other": fit}, {"other": Instance()})
    yield Call(
        f"{name}.output_variance", diagnostics.output_variance,
        {"network": lambda S: S @ torch.ones(6, 1), "graph": GRAPH, "prob": PROB.clamp_min(0.125), "samples": 3,
         "seed": 2, "batch": 2},
        {"network": Instance(), "graph": Instance(), "prob": Array(0, 1), "samples": Whole(3, 3), "batch": Whole(1),
         "seed": SEED, "normalization": Name(), "unbiased": Flag()},
    )  # fmt: skip


class Taps(Array):
    """Coefficients of a polynomial, from the constant on."""

    def legal(self, value: Any) -> bool | None:
        """Five axes of one coefficient each are many constant filters."""
        return isinstance(value, Tensor) and value.layout is torch.strided and value.dim() == 5

    def wrong(self, valid: Tensor) -> dict[str, Callable[[], Any]]:
        """An axis more at the end makes many constant filters."""
        return {label: make for label, make in super().wrong(valid).items() if "axis more" not in label}


def datasets() -> Iterator[Call]:
    """Datasets and their parts."""
    name = "tadropedge.data"
    labels = Array(None, whole=True, fixed=False)
    small = {"labels": LABELS, "per_class": 1, "num_val": 2, "num_test": 2, "seed": 1}
    yield Call(f"{name}.random_split", data.random_split, small,
               {"labels": labels, "per_class": Whole(1, 1), "num_val": Whole(1, 2), "num_test": Whole(1, 2),
                "seed": Whole(0)})  # fmt: skip
    yield Call(f"{name}.shuffled_split", data.shuffled_split, {"labels": LABELS, "sizes": (2, 2, 2), "seed": 1},
               {"labels": labels, "sizes": Listed(), "seed": Whole(0)})  # fmt: skip
    yield Call(f"{name}.row_normalized", data.row_normalized, {"features": SQUARE},
        {"features": Array(None, fixed=False, sparse=True, precision=False, column=True, batch=True)})  # fmt: skip
    part = Array(0, whole=True, fixed=False, narrow=False)
    parts = {"train": LABELS[:2], "val": LABELS[2:4], "test": LABELS[4:]}
    yield Call(f"{name}.Split", data.Split, parts, dict.fromkeys(parts, part))
    yield Call(f"{name}.Split.to", KARATE.split.to, {"device": "cpu"}, {"device": Device()})
    yield Call(
        f"{name}.Dataset", data.Dataset,
        {"name": "mine", "graph": GRAPH, "features": torch.eye(6), "labels": LABELS, "num_classes": 2, "level": "node",
         "split": data.Split(*torch.arange(6).split([2, 2, 2])), "gamma": 0.5, "class_names": ("a", "b"),
         "score_column": torch.ones(GRAPH.num_edges, dtype=torch.float64)},
        {"name": Text(), "graph": Instance(),
                "features": Array(None, sparse=True, fixed=False, precision=False, gradient=False),
         "labels": Array(-1, 1, whole=True, narrow=False), "num_classes": Whole(2, 2), "level": Name(),
         "split": Instance(), "gamma": Optional(Real(0, 1.7e308, strict=True)), "class_names": Optional(Listed()),
         "drawn": Optional(Instance()), "score_column": Optional(Array(0, likes=True))},
    )  # fmt: skip
    ways = {data.PerClass: {"per_class": 1, "num_val": 2, "num_test": 2},
            data.OfSizes: {"train": 2, "num_val": 2, "num_test": 2}}  # fmt: skip
    for way, given in ways.items():
        kinds = {**dict.fromkeys(given, Whole(1)), "seed": Whole(0)}
        yield Call(f"{name}.{way.__name__}", way, {**given, "seed": 1}, kinds)
        yield Call(f"{name}.{way.__name__}.split", way(**given).split, {"labels": LABELS, "seed": 1},
                   {"labels": labels, "seed": Whole(0)})  # fmt: skip
    yield Call(f"{name}.Conditions", data.Conditions, {"add_edges": 0.5, "hide_features": 0.5, "seed": 1},
               {"add_edges": Real(0, 1e6), "hide_features": Real(0, 1), "seed": Whole(0, 2**64 - 1)})  # fmt: skip
    yield Call(f"{name}.conditioned", data.conditioned, {"dataset": KARATE, "conditions": data.Conditions(0.5)},
               {"dataset": Instance(), "conditions": Instance()})  # fmt: skip
    yield Call(f"{name}.Given", data.Given, {"splits": [KARATE.split, KARATE.split]}, {"splits": Listed()})
    yield Call(f"{name}.Dataset.to", KARATE.to, {"device": "cpu"}, {"device": Device()})
    yield Call(f"{name}.load_karate", data.load_karate, {}, {"seed": Whole(0)})
    share = Real(0, 1)
    yield Call(
        f"{name}.load_clusters", data.load_clusters, {"nodes": 8, "clusters": 2, "inside": 0.5},
        {"seed": Whole(0), "clusters": Whole(2, 9), "nodes": Whole(8, 9), "inside": share, "between": share,
         "features": Whole(1, 9), "noise": Real(0, 1e30), "per_class": Whole(1, 5)},
    )  # fmt: skip
    yield Call(
        f"{name}.load_noisy_clusters", data.load_noisy_clusters,
        {"nodes": 8, "classes": 2, "clusters": 2, "noise": 0.5},
        {"seed": Whole(0), "classes": Whole(2, 9), "nodes": Whole(7, 9), "clusters": Whole(2, 9),
         "noise": Real(0, 1e6), "inside": share, "features": Whole(1, 9), "blur": Real(0, 1e30),
         "per_class": Whole(1, 10)},
    )  # fmt: skip
    planar = {"seed": Whole(0), "classes": Whole(2, 9), "regions": Whole(2, 9), "features": Whole(1, 9),
              "noise": Real(0, 1e30), "per_class": Whole(1, 5)}  # fmt: skip
    small = {"classes": 2, "regions": 2, "per_class": 1}
    yield Call(f"{name}.load_grid", data.load_grid, {"side": 6, **small}, {**planar, "side": Whole(2, 9)})
    yield Call(f"{name}.load_roads", data.load_roads, {"nodes": 40, **small}, {**planar, "nodes": Whole(10, 60)})
    localisation = {
        "seed": Whole(0), "noise": Either(Real(1e-100, 1e30), Name()), "nodes": Whole(4, 9),
        "communities": Whole(2, 9), "inside": share, "between": Real(0.25, 1), "times": Whole(1, 9), "sizes": Listed(),
        "normalization": Name(),
    }  # fmt: skip
    dense = {**TINY_TASK, "noise": 0.5, "inside": 0.5}
    for function in (data.load_source_localization, data.bayes_accuracy):
        yield Call(f"{name}.{function.__name__}", function, {**dense, "between": 0.5}, localisation)
    yield Call(f"{name}.SourceLocalization", data.SourceLocalization, dense, {**localisation, "between": share})
    task = data.SourceLocalization(**TINY_TASK)
    yield Call(f"{name}.SourceLocalization.posterior", task.posterior, {"signals": torch.ones(3, 10).double()},
               {"signals": Array(None, likes=True, fixed=True)})  # fmt: skip
    common = {"seed": Whole(0), "per_class": Whole(1, 3), "normalize": Flag()}
    yield Call(f"{name}.load_file", data.load_file, {"path": folder() / "mine.npz", "per_class": 1},
               {**common, "path": PathLike(), "nodes": Optional(PathLike()), "header": Optional(Flag()),
                "split": Optional(Name()), "score_column": Optional(Name())})  # fmt: skip
    yield Call(f"{name}.load_planetoid", partial(data.load_planetoid, "cora"), {"split": "public", "root": folder()},
               {"split": Name(), "root": PathLike(none=None), "per_class": Whole(1), "seed": Whole(0),
                "normalize": Flag()})  # fmt: skip
    yield Call(f"{name}.load_planetoid", data.load_planetoid, {"name": "cora", "root": folder()}, {"name": Name()})
    yield Call(f"{name}.load_dataset", data.load_dataset, {"name": "karate"},
               {"name": Name(), "seed": Whole(0), "root": Optional(PathLike()),
                "split_sizes": Optional(Listed())})  # fmt: skip
    yield Call(
        f"{name}.load_dataset", data.load_dataset, {"name": "cora", "root": folder()}, {"split": Optional(Name())}
    )
    yield Call(f"{name}.load_dataset", data.load_dataset, {"name": "pyg:WebKB/Texas", "root": folder()},
               {"split": Optional(Name()), "per_class": Whole(1), "normalize": Flag()})  # fmt: skip
    yield Call(f"{name}.as_dataset", data.as_dataset, {"data": partial(labelled_data)},
               {"data": Instance(), "seed": Whole(0), "root": Optional(PathLike()), "split": Optional(Name()),
                "split_sizes": Optional(Listed())})  # fmt: skip


class Values(Listed):
    """What a parameter may be."""

    def legal(self, value: Any) -> bool | None:
        """Texts and None are values."""
        return value in (["a"], [None]) if isinstance(value, list) else False


class SpaceLike(Kind):
    """A space, or a function from a method to one, which is only called when there is work."""

    def legal(self, value: Any) -> bool | None:
        """A function of one argument is not tried."""
        return None if value is len else False


def searches() -> Iterator[Call]:
    """Spaces, and searches without training."""
    name = "tadropedge.search"
    yield Call(f"{name}.Choice", search.Choice, {"values": (0.5, "a")}, {"values": Values()})
    yield Call(f"{name}.Uniform", search.Uniform, {"low": 1.0, "high": 2.0, "step": 0.5},
               {"low": Real(-1e300, 2), "high": Real(1, 1e300), "step": Optional(Real(0.25, 1))})  # fmt: skip
    yield Call(f"{name}.LogUniform", search.LogUniform, {"low": 1.0, "high": 2.0},
               {"low": Real(1e-322, 2, strict=True), "high": Real(1)})  # fmt: skip
    yield Call(f"{name}.Space", search.Space, {"parameters": SPACE.parameters}, {"parameters": Table()})
    yield Call(f"{name}.Space.of", search.Space.of, {"table": SPACE.table()}, {"table": Table()})
    index = {"seed": Whole(0), "i": Whole(0)}
    yield Call(f"{name}.Space.draw", SPACE.draw, {"seed": 1, "i": 2}, index)
    yield Call(f"{name}.trial", search.trial, {"space": SPACE, "seed": 1, "i": 2, "method": "cdf"},
               {**index, "space": Instance(), "method": Name(), "split": Whole(0)})  # fmt: skip
    gamma = Optional(Real(1e-290, 1e290))
    yield Call(f"{name}.default_space", search.default_space, {"gamma": 0.5}, {"gamma": gamma})
    yield Call(f"{name}.method_space", search.method_space, {"method": "cdf", "gamma": 0.5},
               {"method": Name(), "gamma": gamma, "backbone": Name()})  # fmt: skip
    yield Call(f"{name}.method_space", search.method_space, {"method": "auto"},
               {"scores": Optional(Listed(empty=True)), "options": Optional(Listed(empty=True))})  # fmt: skip
    for function in (search.paper, search.choose, search.accuracy_by_keep_prob):
        yield Call(f"{name}.{function.__name__}", function, {"table": FINISHED}, {"table": Table()})
    yield Call(f"{name}.Finished.converged", FINISHED["cdf"][0].converged, {"epochs": 9}, {"epochs": Whole(1)})
    yield Call(f"{name}.study_name", search.study_name, {"dataset": "cora", "backbone": "gcn", "layers": 2},
               {"dataset": Text(), "backbone": Text(), "layers": Whole(1)})  # fmt: skip
    yield Call(f"{name}.open_storage", search.open_storage, {"storage": partial(storage), "alone": False},
               {"storage": PathLike(), "alone": Flag()})  # fmt: skip
    yield Call(f"{name}.Local", search.Local, {}, {"batch": Optional(Whole(1))})
    yield Call(f"{name}.RayEngine", search.RayEngine, {"address": "head", "gpus_per_batch": 0.5, "batch": 4},
               {"address": Optional(Text()), "gpus_per_batch": Optional(Real(0, 1)), "batch": Optional(Whole(1)),
                "deadline": Real(0, strict=True), "tries": Whole(1)})  # fmt: skip
    yield Call(f"{name}.training_with", trained_with, {"engine": "local"}, {"engine": Optional(Name())})
    common = {
        "train": Instance(), "space": Instance(), "seed": Whole(0), "storage": PathLike(), "name": Text(),
        "settings": Optional(Table(others=True)), "batch": Whole(1), "progress": Optional(Instance()),
    }  # fmt: skip
    given = {"train": Trainer(), "space": SPACE, "seed": 1, "storage": partial(storage)}
    yield Call(f"{name}.run_search", search.run_search, {**given, "methods": ["cdf"], "trials": 1},
               {**common, "methods": Listed(), "trials": Whole(1, 3)})  # fmt: skip
    yield Call(f"{name}.honest", search.honest,
               {**given, "table": FINISHED, "replicates": 2, "kept_share": lambda trial: 0.5},
               {**common, "table": Table(), "replicates": Whole(1, 3), "kept_share": Instance(),
                "splits": Optional(Listed()), "curves": Flag()})  # fmt: skip


def trainings() -> Iterator[Call]:
    """Settings of training, and the laboratory."""
    name = "tadropedge.training"
    yield Call(f"{name}.config.Architecture", Architecture, {},
               {"backbone": Name(), "layers": Whole(2, 2**31 - 1), "hidden": Whole(1, 2**31 - 1),
                "settings": Table()})  # fmt: skip
    trial = {
        "learning_rate": Real(0, 3e38, strict=True), "weight_decay": Real(0, 3e38), "dropout": Real(0, 1),
        "keep_prob": Real(0, 1), "keep_ratio": Optional(Real(0, 1)), "gamma": Optional(Real(0)),
        "sensitivity": Optional(Real(0, 1)), "keep_last": Optional(Real(0, 1)),
        "batch_size": Optional(Whole(1)), "seed": Whole(0), "split": Whole(0),
    }  # fmt: skip
    values = {"learning_rate": 0.5, "weight_decay": 0.5, "dropout": 0.5, "keep_prob": 0.5, "seed": 3, "split": 2}
    yield Call(f"{name}.config.Trial", Trial, {**values, "gamma": 0.5, "batch_size": 3},
               {**trial, "method": Name(), "settings": Table(others=True)})  # fmt: skip
    yield Call(f"{name}.config.Trial.of", Trial.of, {"keep_ratio": 0.5, **values}, {**trial, "method": Name()})
    yield Call(f"{name}.config.Trial.but", Trial().but, values, trial)
    architecture = Architecture()
    yield Call(f"{name}.config.Architecture.network", architecture.network, {"method": "cdf"}, {"method": Name()})
    yield Call(f"{name}.config.Architecture.settings_of", architecture.settings_of, {"trial": Trial()},
               {"trial": Instance()})  # fmt: skip
    count = Whole(0, 2**31 - 1)
    yield Call(f"{name}.config.Architecture.sizes", architecture.sizes,
               {"settings": {}, "num_nodes": 3, "num_features": 3, "num_classes": 3},
               {"settings": Table(others=True), "num_nodes": count, "num_features": count,
                "num_classes": count})  # fmt: skip
    course = {"epochs": Whole(1, 2**31 - 1), "selection": Name(), "per_layer": Flag(),
              "evaluate_every": Whole(1, 2**31 - 1), "measure": Name(), "gradient_norms": Flag()}  # fmt: skip
    yield Call(f"{name}.batch.Course", Course, {}, {**course, "keep_state": Flag()})
    yield Call(
        f"{name}.laboratory.Laboratory", Laboratory, {"dataset": KARATE},
        {**course, "dataset": Instance(), "architecture": Instance(), "laplacian": Name(), "q": Optional(Whole(1)),
         "fresh_sizes": Optional(Listed()), "precision": Name(), "cache_dir": Optional(PathLike()),
         "progress": Optional(Instance()), "choose_splits": Optional(Whole(1))},
    )  # fmt: skip
    yield Call(
        f"{name}.laboratory.laboratory_for", laboratory_for, {"dataset": KARATE, "layers": 2, "hidden": 4},
        {"dataset": Instance(), "backbone": Optional(Name()), "layers": Optional(Whole(1, 2**31 - 1)),
         "hidden": Optional(Whole(1, 2**31 - 1)), "measure": Optional(Name())},
    )  # fmt: skip
    yield Call("tadropedge.training.measures.default_measure", default_measure, {"dataset": KARATE},
               {"dataset": Instance()})  # fmt: skip
    lab = laboratory()
    name = f"{name}.laboratory.Laboratory"
    yield Call(f"{name}.check", lab.check, {"trials": [Trial()]}, {"trials": Listed(empty=True)})
    yield Call(f"{name}.fitting", lab.fitting, {"trials": [Trial()]}, {"trials": Listed(empty=True)})
    yield Call(f"{name}.scores", lab.scores, {"name": "effective"}, {"name": Name()})
    yield Call(f"{name}.split", lab.split, {"number": 1}, {"number": Whole(0)})
    for function in (lab.kept_share, lab.within_reach):
        yield Call(f"{name}.{function.__name__}", function, {"trial": Trial()}, {"trial": Instance()})
    yield Call(f"{name}.available_scores", lab.available_scores, {"among": ["degree"]},
               {"among": Optional(Listed(empty=True))})  # fmt: skip
    yield Call(f"{name}.available_options", lab.available_options, {"method": "auto"}, {"method": Name()})
    yield Call(f"{name}.train", lab.train, {"trials": [Trial()]}, {"trials": Listed(empty=True), "keep_state": Flag()})
    yield Call(f"{name}.train_sampled", lab.train_sampled, {"trial": Trial(), "plan": MiniBatches(size=2)},
               {"trial": Instance(), "plan": Instance(), "ranks": Optional(Instance()),
                "keep_state": Flag()})  # fmt: skip
    yield Call("tadropedge.neighbours.plan.MiniBatches", MiniBatches, {"size": 3, "fanout": [4, 2]},
               {"size": Whole(1, 2**31 - 1), "fanout": Listed(),
                "evaluate": Optional(Whole(1, 2**31 - 1))})  # fmt: skip
    yield Call("tadropedge.neighbours.plan.MiniBatches.of_hops", MiniBatches(size=3).of_hops, {"hops": 2},
               {"hops": Whole(0, 2**20)})  # fmt: skip
    yield Call(f"{name}.train_reached", lab.train_reached, {"trials": [Trial()]}, {"trials": Listed(empty=True)})
    yield Call(f"{name}.moved", lambda **given: lab.moved(**given).scores("degree"),
               {"trials": [Trial("degree-cdf")], "device": "cpu"},
               {"trials": Listed(empty=True), "device": Device()})  # fmt: skip
    name = "tadropedge.training.model_file"
    yield Call(f"{name}.load_model", load_model, {"folder": folder() / "model"}, {"folder": PathLike()})
    yield Call(
        f"{name}.save_model", save_model,
        {"folder": folder() / "other", "outcome": outcome(), "architecture": lab.architecture,
         "dataset_name": "karate", "num_features": 34, "num_classes": 4},
        {"folder": PathLike(), "outcome": Instance(), "architecture": Instance(), "dataset_name": Text(),
         "num_features": Whole(1), "num_classes": Whole(2), "num_nodes": Optional(Whole(1)),
         "class_names": Optional(Listed()), "q": Optional(Whole(1)), "laplacian": Name()},
    )  # fmt: skip
    name = "tadropedge.predicting"
    yield Call(f"{name}.predict", probabilities, {"model": folder() / "model", "data": KARATE},
               {"model": PathLike(), "data": Instance()})  # fmt: skip
    yield Call(f"{name}.write_predictions", write_predictions,
               {"found": predict(folder() / "model", KARATE), "path": folder() / "predictions.csv"},
               {"found": Instance(), "path": PathLike()})  # fmt: skip


def probabilities(model: Any, data: Any) -> Any:
    """What is predicted, as one tensor."""
    return predict(model, data).probabilities


def compared_rows(**given: Any) -> Any:
    """The rows of the smallest comparison: what it found besides depends on the time it took."""
    return tde.compare(**{"trials": 1, "choose_splits": 1, "seeds": 2, "epochs": 1, "progress": False, **given}).rows


def comparisons() -> Iterator[Call]:
    """The comparison and its statistics."""
    name = "tadropedge.comparison"
    yield Call(f"{name}.comparison.Plan", Plan, {"methods": ["cdf"]},
               {"methods": Listed(), "trials": Whole(1), "seeds": Whole(2), "seed": Whole(0),
                "space": Optional(SpaceLike()), "lenient": Flag(), "keep_ratio": Optional(Real(5e-324, 1)),
                "curves": Flag(), "finals": Optional(Instance()),
                "budget_step": Optional(Real(0, 1, strict=True))})  # fmt: skip
    plan = Plan(["original"], trials=1, seeds=2, space=SPACE)
    for function in (compare, trained):
        yield Call(f"{name}.comparison.{function.__name__}", function,
                   {"laboratory": laboratory(), "plan": plan, "storage": partial(storage)},
                   {"laboratory": Instance(), "plan": Instance(), "storage": PathLike(),
                    "report": Instance()})  # fmt: skip
    yield Call(
        "tadropedge.compare", compared_rows,
        {"data": partial(labelled_data), "methods": ["original"], "hidden": 2, "layers": 2, "device": "cpu"},
        {"data": Instance(), "methods": Optional(Listed()), "model": Optional(Instance()), "trials": Whole(1, 2),
         "seeds": Whole(2, 3), "choose_splits": Whole(1, 2), "seed": Whole(0), "backbone": Optional(Name()),
         "layers": Optional(Whole(1, 2**31 - 1)), "hidden": Optional(Whole(1, 2**31 - 1)),
         "epochs": Whole(1, 2**31 - 1), "measure": Optional(Name()), "split": Optional(Name()),
         "split_sizes": Optional(Listed()), "add_edges": Real(0, 0.5), "hide_features": Real(0, 1),
         "keep_ratio": Optional(Real(5e-324, 1)), "device": Name(), "out": Folder(), "storage": Folder(),
         "wait": Flag(), "engine": Optional(Name()), "progress": Progress()},
    )  # fmt: skip
    yield Call("tadropedge.nn.own.own_network", own_network, {"factory": linear_model, "told": "mine"},
               {"factory": Instance(), "told": Optional(Text())})  # fmt: skip
    name = f"{name}.statistics"
    free = Array(None, likes=True, nan=True, fixed=False)
    paired = Array(None, likes=True, nan=True)
    yield Call(f"{name}.mean_interval", statistics.mean_interval, {"values": SHARES}, {"values": free})
    pair = {"values": SHARES, "reference": SHARES / 2}
    for function in (statistics.paired_difference, statistics.paired_p_values):
        many = function is statistics.paired_p_values
        kind = Array(None, likes=True, nan=True, batch=many) if many else paired
        more = {"shifts": Optional(Array(None, likes=True, fixed=False))} if many else {}
        yield Call(f"{name}.{function.__name__}", function, pair, dict.fromkeys(pair, kind) | more)
    yield Call(f"{name}.holm", statistics.holm, {"p_values": SHARES},
               {"p_values": Holm(0, 1, likes=True, batch=True, fixed=False)})  # fmt: skip
    table = {"cdf": SHARES.tolist()}
    yield Call(f"{name}.honest_rows", statistics.honest_rows,
               {"accuracy": table, "reference": table, "test": statistics.paired_p_values},
               {"accuracy": Table(empty=False), "reference": Table(), "test": Instance()})  # fmt: skip


def trained_with(engine: object) -> None:
    """An engine, started and ended."""
    with search.training_with(engine):
        pass


class Folder(PathLike):
    """A place to write to: none is written here."""

    def legal(self, value: Any) -> bool | None:
        """None means nowhere, and texts are places."""
        return True if value is None else None if isinstance(value, str | Path) else False


class Holm(Array):
    """p-values, of which there may be none, or one in each of many families."""

    def legal(self, value: Any) -> bool | None:
        """Nothing to correct, and a family of one."""
        if isinstance(value, Tensor):
            return value.layout is torch.strided and value.dim() in (1, 5) and not value.is_meta
        return isinstance(value, list) and not value

    def wrong(self, valid: Tensor) -> dict[str, Callable[[], Any]]:
        """An axis more at the end makes families of one."""
        return {label: make for label, make in super().wrong(valid).items() if "axis more" not in label}


# -- what must hold -------------------------------------------------------------------------------------------


@cache
def listed() -> list[Call]:
    """Every call, made once."""
    return list(calls())


def cases() -> Iterator[Case]:
    """One case per call, argument and value."""
    for call in listed():
        for argument, kind in call.kinds.items():
            for title, check in checks(call, argument, kind):
                yield Case(f"{call.name}({argument}={title})", lambda folder, check=check: check())


def checks(call: Call, argument: str, kind: Kind) -> Iterator[tuple[str, Callable[[], None]]]:
    """What is tried with one argument."""
    valid = call.given.get(argument)
    for label, make in STRANGE.items():
        legal = kind.legal(make())
        if legal is not None:
            yield label, partial(works if legal else refused, call, argument, make)
    if valid is None or isinstance(valid, partial):
        return
    for label, make in kind.wrong(valid).items():
        yield label, partial(refused, call, argument, make)
    for label, make in kind.equal(valid).items():
        yield label, partial(gives_the_same, call, argument, make)


def works(call: Call, argument: str, make: Callable[[], Any]) -> None:
    """A legal value is taken without a word."""
    value = make()
    with silence():
        call(**{argument: value})


def refused(call: Call, argument: str, make: Callable[[], Any]) -> None:
    """A wrong value raises TadropedgeError: one short line that names the argument."""
    value = make()
    try:
        with silence():
            result = call(**{argument: value})
    except tde.TadropedgeError as error:
        text = str(error)
        assert len(text) <= LONGEST, f"a message of {len(text)} characters: {text[:200]}"
        assert len(text.splitlines()) == 1, f"more than one line: {text!r}"
        assert text.isprintable(), f"cannot be printed: {text!r}"
        words = (argument.removesuffix("s"), *ALSO.get(argument, ()))
        plain = text.replace("_", " ").lower()
        assert any(word.replace("_", " ").lower() in plain for word in words), f"{argument} is not named: {text}"
    else:
        raise AssertionError(f"taken without a word, and the result is {type(result).__name__}")


def gives_the_same(call: Call, argument: str, make: Callable[[], Any]) -> None:
    """An equal value of another type gives the same result, and is not written to."""
    value = make()
    before = as_array(value).copy()
    with silence():
        result = call(**{argument: value})
    assert np.array_equal(as_array(value), before, equal_nan=before.dtype.kind == "f"), "the argument was written to"
    assert same(result, call()), f"another result: {result}"


def as_array(value: Any) -> Any:
    """A value as an array, to compare with."""
    return value.detach().double().numpy() if isinstance(value, Tensor) else np.asarray(value)


def silence() -> warnings.catch_warnings:
    """Warnings are errors."""
    return warnings.catch_warnings(action="error")


def same(one: Any, other: Any) -> bool:
    """Whether two results hold the same numbers, but for rounding, which may depend on where in memory they lie."""
    if isinstance(one, Tensor):
        if one.layout is torch.sparse_csr:
            return same(one.to_dense(), other.to_dense())
        rounding = 8 * torch.finfo(one.dtype).eps if one.is_floating_point() else 0
        return one.shape == other.shape and bool(torch.isclose(one, other, rounding, rounding, equal_nan=True).all())
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if is_dataclass(one):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    if type(one).__eq__ is object.__eq__:
        return type(one) is type(other)
    return bool(one == other)


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function and constructor, and the methods of public classes that take arguments."""
    for module, names in PUBLIC.items():
        home = importlib.import_module(module)
        for name in names or home.__all__:
            found = getattr(home, name)
            if not callable(found):
                continue
            if name not in RETURNED:
                yield f"{module}.{name}", found
            if not inspect.isclass(found):
                continue
            for method, function in vars(found).items():
                function = getattr(function, "__func__", function)
                named = not method.startswith("_") or method in ("__matmul__", "__setitem__")
                if inspect.isfunction(function) and named and len(inspect.signature(function).parameters) > 1:
                    yield f"{module}.{name}.{method}", function


def missing() -> list[str]:
    """What is public and not tried: functions, and single arguments."""
    tried: dict[str, set[str]] = {}
    for call in listed():
        tried.setdefault(call.name, set()).update(call.kinds)
    lacking = []
    for name, function in public():
        if name in INSIDE:
            continue
        for one in inspect.signature(function).parameters.values():
            plain = one.kind not in (one.VAR_KEYWORD,) and one.name not in ("self", "cls", "_", "more", "name")
            if plain and one.name not in tried.get(name, set()):
                lacking.append(f"{name}({one.name})")
    return lacking
