"""The options that several commands share: dataclasses whose fields are options of the group that they name."""

from __future__ import annotations

import importlib
import importlib.util
import re
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

LARGEST = 10_000_000  # of a count, or of seconds: a larger one is a slip of the finger
MOST_SEARCHED = 100_000  # trials, or replicates: each is a training at least
PLAIN = re.compile(r"[+-]?[0-9]+")
TABLE = ("source", "target", "weight")  # the columns of a graph


def words(kind: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    """A list: ``a,b`` or the option several times."""
    return tuple(word for token in tokens for word in token.value.split(",") if word)


def whole(kind: Any, tokens: Sequence[Token]) -> int:
    """A whole number in plain digits."""
    text = tokens[0].value
    try:
        if PLAIN.fullmatch(text):
            return int(text)
    except ValueError:  # Python reads no number of thousands of digits
        pass
    raise ValueError(f'"{text}" is no whole number')


def seconds(kind: Any, tokens: Sequence[Token]) -> float:
    """A time such as 90s, 10m or 2h.

    >>> seconds(float, [Token(value="10m")])
    600.0
    """
    text = tokens[0].value.strip()
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    try:
        found = float(text[:-1] if unit else text) * (unit or 1)
    except ValueError:
        found = -1.0
    if not 0 < found < LARGEST:
        raise ValueError(f'"{text}" is no time such as 90s, 10m or 2h')
    return found


def columns_of(given: Sequence[str]) -> dict[str, str]:
    """What columns are called.

    >>> columns_of(["source=a", "target=b"])
    {'source': 'a', 'target': 'b'}
    """
    named = {}
    for word in given:
        role, _, name = word.partition("=")
        if role not in TABLE or not name:
            got = show(word, typed=False)
            raise TadropedgeError(f"--columns: expected names for {', '.join(TABLE)}, as source=a,target=b, got {got}")
        named[role] = name
    return named


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
        known = {"header": self.header, "columns": columns_of(self.columns) or None}
        named: dict[str, Any] = {**known, "column": self.column, "weighted": self.weighted}
        return {name: value for name, value in named.items() if value is not None}


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

        if self.device is None:
            return "cuda" if torch.cuda.is_available() else "cpu"
        try:
            return str(check_runs_on(self.device))
        except TadropedgeError as error:
            raise TadropedgeError(f"--device: {error}", argument="device") from error


def chosen_budget(keep_prob: float | None, keep_ratio: float | None) -> dict[str, float]:
    """The budget that was given, of which there is at most one."""
    if keep_prob is not None and keep_ratio is not None:
        raise TadropedgeError(f"--keep-prob {keep_prob:g} and --keep-ratio {keep_ratio:g} exclude each other: give one")
    given = {"keep_prob": keep_prob, "keep_ratio": keep_ratio}
    return {name: value for name, value in given.items() if value is not None}


def load_module(name: str, flag: str) -> ModuleType:
    """A module by its name, or a Python file by its path; what stands beside it can be imported, too."""
    path = Path(name)
    folder = str(path.resolve().parent if path.suffix == ".py" else Path.cwd())
    if folder not in sys.path:  # last, so that a neighbour called json.py is no reason to lose json
        sys.path.append(folder)
    try:
        if path.suffix != ".py":
            with redirect_stdout(sys.stderr):  # what it prints is no result
                return importlib.import_module(name)
        if not path.is_file():
            raise TadropedgeError(f"{flag}: there is no file '{path}'")
        file = str(path.resolve())
        called = path.stem
        if (known := sys.modules.get(called)) is not None:
            if getattr(known, "__file__", None) == file:
                return known
            called = f"plugin_{called}"  # json.py is no reason to lose json
        spec = importlib.util.spec_from_file_location(called, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[called] = module  # where pickles and fingerprints look for what stands in it
        with redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
        return module
    except TadropedgeError:
        raise
    except Exception as error:  # whatever goes wrong in a user's own module
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise TadropedgeError(f"{flag}: '{name}' cannot be imported ({said})") from error


def load_model(name: str) -> Any:
    """``FILE.py:NAME`` or ``MODULE:NAME``: a function or class that makes your own module."""
    where, colon, called = name.rpartition(":")
    if not colon or not where or not called:
        raise TadropedgeError(f"--model: expected FILE.py:NAME, got {show(name, typed=False)}")
    found = getattr(load_module(where, "--model"), called, None)
    if not callable(found):
        raise TadropedgeError(f"--model: '{where}' has no function or class {called!r}, got {show(name, typed=False)}")
    return found
