"""The search space: which hyper-parameters are tried, and trial i as a pure function of (space, seed, i).

Nothing is drawn from a running generator. Every parameter of every trial has a random word of its own, keyed by
(seed, i, name), so trial i is the same for every method, before and after a restart, and a parameter that is
added, removed or narrowed leaves the others as they were. ``keep_ratio`` has the word of ``keep_prob``: they are the
budget of different rules, and trial i has the same number for both.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tadropedge._old.checks import (
    as_integer,
    as_number,
    ask,
    check_function,
    check_integer,
    check_kind,
    check_list,
    check_number,
    check_positive,
    check_seed,
    check_table,
    settle,
)
from tadropedge._old.errors import TadropedgeError, lookup, show
from tadropedge._old.method import OPTIONS, SENSITIVITY, UNIFORM, Method, rules
from tadropedge._old.nn.backbones import DROPEDGE_SPACE
from tadropedge._old.registry import NETWORKS, SCORES
from tadropedge._old.search import automatic
from tadropedge._old.training.config import Trial, network_settings

DECADES = (1e-290, 1e290)  # γ whose neighbours in a search are numbers as well
Value = bool | float | str | None

OF_EVERY_TRIAL: dict[str, type] = {
    "learning_rate": float,
    "weight_decay": float,
    "dropout": float,
    "keep_prob": float,
    "keep_ratio": float,
    "gamma": float,
    "sensitivity": float,
    "keep_last": float,
    "batch_size": int,
}
OF_AUTO: dict[str, type] = {"score": str, "rule": str, "inverse": bool, "option": str}
SAME_WORD = {"keep_ratio": "keep_prob"}  # parameters that are drawn by the random word of another


def tunable() -> dict[str, type]:
    """Whatever a space may name, and of what kind it is: settings of every trial, of ``auto`` and of the networks."""
    return OF_EVERY_TRIAL | OF_AUTO | {name: type(setting.default) for name, setting in network_settings().items()}


@dataclass(frozen=True)
class Choice:
    """One of some values, each equally likely; one that is listed twice is twice as likely."""

    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        values = check_list("values", self.values, "values to choose from")
        if not values:
            raise TadropedgeError("values are empty: there is nothing to choose from")
        settle(self, values=tuple(_plain(value) for value in values))

    def at(self, u: float) -> Value:
        """The value at ``u`` in [0, 1)."""
        return self.values[int(u * len(self.values))]


@dataclass(frozen=True)
class Uniform:
    """Uniform in [low, high], in steps where ``step`` is given (both ends included)."""

    low: float
    high: float
    step: float | None = None

    def __post_init__(self) -> None:
        _settle_ends(self)
        if self.step is None:
            return
        check_positive("step", self.step)
        settle(self, step=check_number("step", self.step))
        steps = (self.high - self.low) / self.step
        whole = math.isfinite(steps) and abs(steps - round(steps)) <= 1e-6
        if not whole or (round(steps) == 0 and self.low < self.high):
            raise TadropedgeError(f"must reach high from low in whole steps, got {self!r}")

    def at(self, u: float) -> float:
        """The value at ``u`` in [0, 1).

        >>> Uniform(0.05, 0.95, step=0.05).at(0.999)
        0.95
        """
        if self.step is None:
            return self.low + u * (self.high - self.low)
        steps = round((self.high - self.low) / self.step) + 1
        # 0.05 + 2 · 0.05 is 0.15000000000000002: twelve digits give the number that was meant.
        return float(f"{self.low + int(u * steps) * self.step:.12g}")


@dataclass(frozen=True)
class LogUniform:
    """Uniform in log scale between low and high."""

    low: float
    high: float

    def __post_init__(self) -> None:
        _settle_ends(self)
        if not self.low > 0:
            raise TadropedgeError(f"needs low above 0, got {self!r}")

    def at(self, u: float) -> float:
        """The value at ``u`` in [0, 1), to six digits: ``exp`` may differ in the last one between machines."""
        value = math.exp(math.log(self.low) + u * math.log(self.high / self.low))
        return min(max(float(f"{value:.6g}"), self.low), self.high)


Parameter = Choice | Uniform | LogUniform


def _settle_ends(parameter: Uniform | LogUniform) -> None:
    """Check both ends of a range."""
    settle(parameter, low=check_number("low", parameter.low), high=check_number("high", parameter.high))
    if not parameter.low <= parameter.high:
        raise TadropedgeError(f"needs low ≤ high, got {parameter!r}")


def _plain(value: object) -> Value:
    """A value of a choice as Python has it; those of no kind stay, for the space to refuse by name."""
    if value is None or isinstance(value, bool | str) or type(value) in (int, float):
        return value  # type: ignore[return-value]
    whole = as_integer(value)
    number = as_number(value) if whole is None else whole
    if number is None:
        raise TadropedgeError(f"values must be numbers, texts, True, False or None, got {show(value)}")
    return number


@dataclass(frozen=True)
class Space:
    """Named parameters, each a :class:`Choice`, :class:`Uniform` or :class:`LogUniform`.

    A parameter that the space does not name keeps the default of ``Trial``.

    >>> space = Space.of({"dropout": [0.3, 0.5, 0.8], "gamma": {"log-uniform": [0.001, 0.1]}})
    >>> space.draw(seed=0, i=7)
    {'dropout': 0.8, 'gamma': 0.0383994}
    """

    parameters: Mapping[str, Parameter]

    def __post_init__(self) -> None:
        check_table("parameters", self.parameters, "names to Choice, Uniform or LogUniform")
        for name, parameter in self.parameters.items():
            _check(name, lookup("parameter of a search space", name, tunable()), parameter)

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Space:
        """A space from plain lists and tables, as read from TOML or JSON.

        A list is a choice, ``{"uniform": [low, high], "step": 0.05}`` and ``{"log-uniform": [low, high]}`` are
        ranges, and a single value is tried always.

        >>> Space.of({"dropuot": [0.5]})  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        tadropedge._old.errors.TadropedgeError: unknown parameter of a search space 'dropuot'; choose from \
learning_rate, weight_decay, dropout, keep_prob, ... (did you mean 'dropout'?)
        """
        return cls({name: _parameter(name, entry) for name, entry in check_table("table", table).items()})

    def table(self) -> dict[str, Any]:
        """The plain lists and tables that :meth:`of` reads."""
        return {name: _entry(parameter) for name, parameter in self.parameters.items()}

    def draw(self, seed: int, i: int) -> dict[str, Value]:
        """The hyper-parameters of trial ``i``."""
        words = {name: SAME_WORD.get(name, name) for name in self.parameters}
        return {name: one.at(_uniform(seed, i, words[name])) for name, one in self.parameters.items()}


def default_space(gamma: float | None = None) -> Space:
    """The space of the backbones, and γ within a factor of ten of ``gamma``.

    Its values are those of the released DropEdge scripts (``DROPEDGE_SPACE``), but for learning rates with which
    training converges.

    Without ``gamma`` the space does not name it, so every trial has ``gamma=None``: the knee of the scores.

    >>> sorted(set(default_space(0.01).draw(0, 0)) - set(default_space().draw(0, 0)))
    ['gamma']
    """
    return method_space("original", gamma)


def method_space(
    method: str,
    gamma: float | None = None,
    backbone: str = "gcn",
    *,
    scores: Sequence[str] | None = None,
    options: Sequence[str] | None = None,
) -> Space:
    """The space of a method: that of its network, and the settings of edge dropping.

    All methods of the backbone share one space, so that trial i is the same for each of them. A method with a network
    of its own has the parameters of the dropping only where it drops, drawn as they are without the network. Rules that
    can meet any budget (``proportional``) tune ``keep_ratio`` instead of ``keep_prob``: the same numbers, but as the
    share of kept edges. DropSens has its ``sensitivity`` beside it, the option ``nested`` the ``keep_last`` of the last
    layer. ``auto`` has all of these, and draws from what is worth a trial of ``scores`` and ``options``, by default all
    that its network can have; see :mod:`tadropedge._old.search.automatic`.

    >>> list(method_space("graphsage+cdf").parameters)
    ['learning_rate', 'weight_decay', 'dropout', 'hidden', 'samples', 'keep_prob']
    >>> list(method_space("graphsage+degree-proportional:nested").parameters)[5:]
    ['keep_ratio', 'keep_last']
    >>> list(method_space("graphsage+auto").parameters)[5:]
    ['keep_prob', 'keep_ratio', 'sensitivity', 'keep_last', 'score', 'rule', 'inverse', 'option']
    """
    chosen, scores, options = Method.of(method), _named("scores", scores, SCORES), _named("options", options, OPTIONS)
    network = lookup("backbone", chosen.network or backbone, NETWORKS)
    table = dict(network.space)
    if chosen.network is None or chosen.strategy is not None or chosen.auto:
        table |= _dropping(chosen, table.get("keep_prob", DROPEDGE_SPACE["keep_prob"]))
        if gamma is not None:
            gamma = check_number("gamma", check_positive("gamma", gamma), *DECADES)
            # Rounded to twelve digits, so that 0.01 · 10 is 0.1 and 0.7 · 10 is 7 on every machine.
            table["gamma"] = {"log-uniform": [float(f"{gamma / 10:.12g}"), float(f"{gamma * 10:.12g}")]}
        if chosen.strategy is not None and "keep_prob" not in automatic.used(chosen):
            table.pop("keep_prob", None)
        if chosen.auto:
            can = {"unbiased": network.weighs, "expected": network.softens}
            had = [name for name in OPTIONS if can.get(name, True)]
            table |= automatic.choices(scores, had if options is None else options)
    return Space.of(table)


def _dropping(method: Method, budget: Any) -> dict[str, Any]:
    """The parameters of edge dropping: those that a method uses; one that drops nothing shares that of the others."""
    table = {
        "keep_prob": budget,
        "keep_ratio": budget,
        "sensitivity": automatic.SENSITIVITIES,
        "keep_last": DROPEDGE_SPACE["keep_prob"],
    }
    names = table if method.auto else automatic.used(method) if method.strategy is not None else {"keep_prob"}
    return {name: entry for name, entry in table.items() if name in names}


def _named(kind: str, names: Sequence[str] | None, known: Iterable[str]) -> list[str] | None:
    """Names of one kind, each of which must be known; ``None`` stands for all."""
    if names is None:
        return None
    for name in check_list(kind, names, "names"):
        lookup(f"name among the {kind}", name, dict.fromkeys(known))
    return list(names)


def of_auto(space: Space, method: str = "auto") -> Space:
    """A space that names no score, for ``auto``: with the parameters of dropping that it lacks.

    >>> of_auto(Space.of({"dropout": [0.5]})).parameters["keep_ratio"]
    Uniform(low=0.05, high=0.95, step=0.05)
    """
    if "score" in space.parameters:
        return space
    own = method_space(method).parameters
    names = (*automatic.TUNED, *automatic.NAMES)
    return Space({**{name: own[name] for name in names}, **space.parameters})


def settled_space(space: Space, trial: Trial) -> Space:
    """What is left of a space for a trial that was chosen: without the choices of ``auto``, and without what is idle.

    >>> list(settled_space(method_space("graphsage+auto"), Trial("graphsage+dropsens")).parameters)[5:]
    ['keep_prob', 'sensitivity']
    """
    if "score" not in space.parameters:
        return space
    wanted = automatic.used(Method.of(trial.method)) - set(automatic.NAMES)
    idle = {*automatic.NAMES, *automatic.TUNED} - wanted
    return Space({name: one for name, one in space.parameters.items() if name not in idle})


SPACES = "space(method) -> Space, or a Space"
Spaces = Space | Callable[[str], Space]  # one for all methods, or a function from a method to its own


def space_for(spaces: Spaces, method: str) -> Space:
    """The space of one method."""
    made = spaces if isinstance(spaces, Space) else check_kind("space", ask("space", SPACES, spaces, method), Space)
    return of_auto(made, method) if Method.of(method).auto else made


def check_spaces(spaces: object) -> Spaces:
    """Return a space, or a function from a method to one."""
    if isinstance(spaces, Space):
        return spaces
    return check_function("space", spaces, SPACES)


def trial(space: Space, seed: int, i: int, method: str, split: int = 0) -> Trial:
    """Trial ``i`` of ``method`` on a ``split``: the same hyper-parameters and training seed for every method.

    Its hyper-parameters are the same on every split; each split has a training seed of its own, so that settings are
    not chosen for the luck of one start. A trial of ``auto`` is one of the method that it drew.

    >>> trial(default_space(), 0, 3, "cdf").seed == trial(default_space(), 0, 3, "dropedge").seed
    True
    """
    auto = Method.of(method).auto
    space = check_kind("space", space, Space)
    settings = (of_auto(space, method) if auto else space).draw(seed, i)
    if auto:
        method, settings = automatic.drawn(method, settings)
    elif foreign := [name for name in OF_AUTO if name in settings]:
        raise TadropedgeError(f"{foreign[0]} of a search space is a setting of auto, and {method!r} has none")
    return Trial.of(method, seed=search_seed(seed, i, split), split=split, **settings)


# Training seeds have 31 bits; the top one separates the two phases, so no replicate repeats the seed of a search trial.
def search_seed(seed: int, i: int, split: int = 0) -> int:
    """The training seed of search trial ``i`` on a ``split``: below 2³⁰."""
    number = check_integer("split", split, least=0)
    return _word(seed, i, f"seed of split {number}" if number else "seed") >> 34


def replicate_seed(seed: int, s: int) -> int:
    """The training seed of replicate ``s``: at least 2³⁰."""
    return (_word(seed, s, "replicate") >> 34) + 2**30


def _word(seed: int, i: int, name: str) -> int:
    """64 random bits of (seed, i, name); NumPy guarantees that the mixing never changes."""
    keys = (check_integer("trial index", i, least=0), zlib.crc32(name.encode()))
    mixed = np.random.SeedSequence(check_seed(seed), spawn_key=keys)
    return int(mixed.generate_state(1, np.uint64)[0])


def _uniform(seed: int, i: int, name: str) -> float:
    return (_word(seed, i, name) >> 11) * 2.0**-53


def _parameter(name: str, entry: Any) -> Parameter:
    """Read one entry of :meth:`Space.of`."""
    lookup("parameter of a search space", name, tunable())
    try:
        if not isinstance(entry, Mapping):
            return Choice(tuple(entry) if isinstance(entry, list | tuple) else (entry,))
        for kind, extra in (("uniform", {"step"}), ("log-uniform", set())):
            ends = entry.get(kind)
            if isinstance(ends, list | tuple) and len(ends) == 2 and set(entry) <= {kind} | extra:
                low, high = ends
                return Uniform(low, high, entry.get("step")) if kind == "uniform" else LogUniform(low, high)
    except TadropedgeError as error:
        raise TadropedgeError(f"{name} of a search space: {error}") from error
    raise TadropedgeError(
        f"{name} of a search space must be a list, {{'uniform': [low, high], 'step': ...}} or "
        f"{{'log-uniform': [low, high]}}, got {show(entry, typed=False)}"
    )


def _entry(parameter: Parameter) -> list[Value] | dict[str, Any]:
    """Write one entry of :meth:`Space.table`."""
    if isinstance(parameter, Choice):
        return list(parameter.values)
    if isinstance(parameter, LogUniform):
        return {"log-uniform": [parameter.low, parameter.high]}
    step = {} if parameter.step is None else {"step": parameter.step}
    return {"uniform": [parameter.low, parameter.high], **step}


def _check(name: str, kind: type, parameter: Parameter) -> None:
    """Check the type and the range of every value that a parameter can take."""
    if not isinstance(parameter, Parameter):
        raise TadropedgeError(f"{name} of a search space must be Choice, Uniform or LogUniform, got {show(parameter)}")
    if isinstance(parameter, Choice):
        for value in parameter.values:
            _check_value(name, kind, value)
        return
    if kind is not float:
        raise TadropedgeError(f"{name} of a search space must be a list of values, got {parameter!r}")
    for end in (parameter.low, parameter.high):
        _check_value(name, kind, end)


def _known(name: str) -> list[str]:
    """The names that a setting of ``auto`` may have."""
    none = automatic.NOTHING
    return {"score": [none, UNIFORM, SENSITIVITY, *SCORES], "rule": rules(), "option": [none, *OPTIONS]}[name]


_KINDS = {float: "a number", int: "a whole number", str: "a name", bool: "true or false"}


def _check_value(name: str, kind: type, value: object) -> None:
    if name == "gamma" and value is None:
        return
    number = type(value) in (int, float) and math.isfinite(as_number(value) or 0.0)
    if not (number if kind is float else type(value) is kind):
        raise TadropedgeError(f"{name} of a search space must be {_KINDS[kind]}, got {show(value, typed=False)}")
    if name in OF_AUTO:
        if kind is str:
            lookup(f"{name} of a search space", value, dict.fromkeys(_known(name)))
    elif name in OF_EVERY_TRIAL:
        Trial().but(**{name: value})  # knows the ranges
    else:
        network_settings()[name].check(name, value)
