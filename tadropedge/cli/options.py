"""The options that several commands share: dataclasses whose fields are options of the group that they name."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token
from cyclopts.validators import Number

from tadropedge.errors import TadropedgeError, lookup, show
from tadropedge.registry import SCORES

LARGEST = 10_000_000  # of a count, or of seconds: a larger one is a slip of the finger
TABLE = ("source", "target", "weight")  # the columns of a graph


def words(kind: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    """A list: ``a,b`` or the option several times."""
    return tuple(word for token in tokens for word in token.value.split(",") if word)


def whole(kind: Any, tokens: Sequence[Token]) -> int:
    """A whole number in plain digits; cyclopts by itself rounds 2.5."""
    return int(tokens[0].value)


def named(flag: str, given: Sequence[str], known: Sequence[str] = ()) -> dict[str, str]:
    """Words NAME=VALUE as a dictionary; where it is known which names there are, others are refused.

    >>> named("--columns", ["source=a", "target=b"], known=("source", "target", "weight"))
    {'source': 'a', 'target': 'b'}
    """
    found = {}
    for word in given:
        name, _, value = word.partition("=")
        if not name or not value or (known and name not in known):
            expected = f"{known[0]}=NAME,…, of {', '.join(known)}" if known else "NAME=VALUE"
            raise TadropedgeError(f"{flag}: expected {expected}, got {show(word, typed=False)}")
        found[name] = value
    return found


def typed(*groups: Any, leave: Sequence[str] = ()) -> list[str]:
    """The options of some groups that differ from their defaults, as they are typed; but not those to ``leave``.

    >>> typed(DataOptions(per_class=5, nodes=Path("a.csv")), FileOptions(columns=("weight=km",), header=False))
    ['--per-class', '5', '--nodes', 'a.csv', '--no-header', '--columns', 'weight=km']
    """
    found = []
    for group in groups:
        for each in fields(group):
            value, flag = getattr(group, each.name), each.name.replace("_", "-")
            if value == each.default or each.name in leave:
                continue
            if isinstance(value, bool):
                found.append(f"--{flag}" if value else f"--no-{flag}")
            else:
                found += [f"--{flag}", ",".join(value) if isinstance(value, tuple) else str(value)]
    return found


Words = Annotated[tuple[str, ...], Parameter(converter=words, show_default=False)]
Flag = Annotated[bool, Parameter(show_default=False)]
Count = Annotated[int, Parameter(converter=whole, validator=Number(gte=1, lte=LARGEST))]
Share = Annotated[float, Parameter(validator=Number(gte=0, lte=1))]
Positive = Annotated[float, Parameter(validator=Number(gt=0, lte=1e300))]


@Parameter(name="*", group="Reading files")
@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """How the table of a graph is read."""

    header: Annotated[bool | None, Parameter(negative="--no-header")] = None
    """Whether the first line of a table names its columns; it is looked at where this is not said."""
    columns: Words = ()
    """What columns are called: source=a,target=b,weight=w."""
    column: str | None = None
    """A column with one number per edge, for the score column."""
    weighted: Annotated[bool | None, Parameter(negative="--no-weighted")] = None
    """Whether edge weights are read; they are where there are any, unless said otherwise."""

    @property
    def given(self) -> dict[str, Any]:
        """What was said, for the readers of files."""
        columns = named("--columns", self.columns, TABLE) or None
        said = {"header": self.header, "columns": columns, "column": self.column, "weighted": self.weighted}
        return {name: value for name, value in said.items() if value is not None}


@Parameter(name="*", group="Data")
@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Which nodes train, and what is done to the data before."""

    split: Literal["random", "full", "public", "own"] | None = None
    """How nodes are split: random (a fresh one per replicate), or one fixed split."""
    per_class: Count | None = None
    """Labels per class to train on, of random splits: 20 where data has no sizes of its own."""
    nodes: Path | None = None
    """A table of features and labels, beside a file that holds only a graph."""
    add_edges: Annotated[float, Parameter(validator=Number(gte=0, lte=1e6))] = 0.0
    """Random edges to add, as a share of the graph's own."""
    hide_features: Share = 0.0
    """The share of nodes whose features are hidden."""


@Parameter(name="*", group="Network and training")
@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """What is trained."""

    network: str | None = None
    """gcn, jknet, incepgcn, resgcn, gcnii, appnp, gat, sage, mlp, or one of a plug-in: gcn unless said."""
    model: str | None = None
    """Your own module: FILE.py:NAME, or MODULE:NAME."""
    layers: Count | None = None
    """Layers of the network: 2 unless said; a model has its own default."""
    hidden: Count | None = None
    """Width of the hidden layers: 64 unless said; a model has its own default."""
    epochs: Count = 400
    """Epochs of every training."""
    measure: str = "accuracy"
    """What is judged: accuracy, roc-auc, macro-f1, or a measure of a plug-in."""
    q: Count | None = None
    """Clusters per component, for the score aggregate; otherwise its eigengap decides."""

    def check(self) -> None:
        """Refuse a network that there is not, before anything is read."""
        from tadropedge.lab.registry import MEASURES, NETWORKS

        lookup("measure", self.measure, dict.fromkeys(MEASURES))
        if self.network is not None:
            lookup("network", self.network, dict.fromkeys(NETWORKS))
        if self.network is not None and self.model is not None:
            raise TadropedgeError(f"--model and --network exclude each other, got {self.model} and {self.network}")

    def load(self) -> Any:
        """Your own module, or ``None``."""
        return None if self.model is None else load_model(self.model)


@Parameter(name="*", group="Running and output")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where a command computes, what it loads before, and what it prints."""

    seed: Annotated[int, Parameter(converter=whole, validator=Number(gte=0, lte=2**63 - 1))] = 0
    """Of whatever is random."""
    device: str | None = None
    """cpu or cuda; a GPU where there is one."""
    plugin: Words = ()
    """Modules or files of your own that register scores, rules, networks or datasets."""
    json: Flag = False
    """Print results as JSON and nothing else."""

    def begin(self) -> None:
        """Load the plug-ins, before names are looked up."""
        for name in self.plugin:
            load_module(name, "--plugin")

    def found_device(self) -> str:
        """The device to compute on, after a look at whether it is there."""
        import torch

        from tadropedge._support.checks import check_runs_on

        return str(check_runs_on(self.device or ("cuda" if torch.cuda.is_available() else "cpu")))


@Parameter(name="*", group="Score")
@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """By what edges are scored."""

    score: str | None = None
    """A score, such as effective, degree or jaccard, see tadropedge methods; each command has one of its own."""
    q: Count | None = None
    """Clusters per component, for the score aggregate; without it the eigengap decides, and the output says how."""
    desired_clusters: Count | None = None
    """About so many clusters: q is found at the largest eigengap near it."""
    laplacian: Literal["combinatorial", "normalized"] | None = None
    """The Laplacian of the score aggregate: combinatorial unless said."""

    def chosen(self, usual: str, files: FileOptions, more: Sequence[str] = ()) -> str:
        """The score, one of the registry or of ``more``; a column of scores that is read is one."""
        name = self.score or (usual if files.column is None else "column")
        lookup("score", name, dict.fromkeys((*more, *SCORES)))
        if self.given and name != "aggregate":
            raise TadropedgeError(f"{typed(self, leave=('score',))[0]} is of the score aggregate, got --score {name}")
        return name

    @property
    def given(self) -> dict[str, Any]:
        """The settings of the score that were said."""
        said = {name: getattr(self, name) for name in ("q", "desired_clusters", "laplacian")}
        return {name: value for name, value in said.items() if value is not None}


def chosen_budget(keep_prob: float | None, keep_ratio: float | None) -> dict[str, float]:
    """The budget that was given, of which there is at most one."""
    if keep_prob is not None and keep_ratio is not None:
        raise TadropedgeError(f"--keep-prob {keep_prob:g} and --keep-ratio {keep_ratio:g} exclude each other: give one")
    given = {"keep_prob": keep_prob, "keep_ratio": keep_ratio}
    return {name: value for name, value in given.items() if value is not None}


def load_module(name: str, flag: str) -> ModuleType:
    """A module by its name, or a Python file by its path; what stands beside it can be imported, too."""
    path = Path(name).resolve()
    folder = str(path.parent if path.suffix == ".py" else Path.cwd())
    if folder not in sys.path:  # last, so that a neighbour called json.py is no reason to lose json
        sys.path.append(folder)
    try:
        with redirect_stdout(sys.stderr):  # what it prints is no result
            return _of_file(path) if path.suffix == ".py" else importlib.import_module(name)
    except Exception as error:  # whatever goes wrong in a user's own module
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise TadropedgeError(f"{flag}: '{name}' cannot be imported ({said})") from error


def _of_file(path: Path) -> ModuleType:
    """The module of a file, under the file's name unless another module has that."""
    called = path.stem
    if (known := sys.modules.get(called)) is not None:
        if getattr(known, "__file__", None) == str(path):
            return known
        called = f"plugin_{called}"
    spec = importlib.util.spec_from_file_location(called, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[called] = module  # where pickles and fingerprints look for what stands in it
    spec.loader.exec_module(module)
    return module


def load_model(name: str) -> Any:
    """``FILE.py:NAME`` or ``MODULE:NAME``: a function or class that makes your own module."""
    where, colon, called = name.rpartition(":")
    if not colon or not where or not called:
        raise TadropedgeError(f"--model: expected FILE.py:NAME, got {show(name, typed=False)}")
    found = getattr(load_module(where, "--model"), called, None)
    if not callable(found):
        raise TadropedgeError(f"--model: '{where}' has no function or class {called!r}, got {show(name, typed=False)}")
    return found
