"""A fixed budget: which methods can keep a given share of the edges, and with which of their settings.

Every method that drops keeps the same expected share, and is tuned in all else. What a rule keeps at least may depend
on its own settings, γ or DropSens's sensitivity: the part of a space that can keep the share is searched, and a method
without such a part is out of reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tadropedge._old.checks import check_number
from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.method import SENSITIVITY, Method
from tadropedge._old.registry import STRATEGIES
from tadropedge._old.search.entrants import Entrant
from tadropedge._old.search.space import Choice, LogUniform, Parameter, Space, Spaces, Uniform, space_for
from tadropedge._old.strategies import wants_gamma
from tadropedge._old.training.config import Trial
from tadropedge._old.training.edges import layer_rates

Least = Callable[[Trial], float]  # from a trial to the least share that its method can keep with its settings
ROUNDING = 1e-12  # a budget below the least share by this is the least share
HALVINGS = 60
DIGITS = 3  # of the end of a narrowed range


def check_budget(keep_ratio: object) -> float:
    """Return a share of the edges that methods can keep: above 0, at most 1."""
    share = check_number("keep_ratio", keep_ratio, 0, 1)
    if not share:
        raise TadropedgeError(f"keep_ratio must be above 0, got {show(keep_ratio, typed=False)}: nothing would be kept")
    return float(share)


@dataclass(frozen=True, kw_only=True, eq=False)
class Budget:
    """A share that every method which drops keeps; ``least`` is what each of them could keep at least.

    ``space`` is what is tuned: of a method within reach, the part that can keep this share.
    """

    keep_ratio: float
    least: Mapping[str, float]
    space: Spaces
    reaches: Callable[[Trial], bool]

    @property
    def out_of_reach(self) -> dict[str, float]:
        """The methods that cannot keep so few edges, with what they could keep at least."""
        return {method: share for method, share in self.least.items() if share > self.keep_ratio + ROUNDING}

    def entrant(self, method: str) -> Entrant:
        """A method at this budget; one that drops nothing as it always is."""
        if method not in self.least:
            return Entrant(method)
        return Entrant(method, self.keep_ratio, least=self.least[method], reaches=self.reaches)


def budget_for(methods: Sequence[str], keep_ratio: float, space: Spaces, least: Least) -> Budget:
    """The budget of a comparison of ``methods`` whose spaces are ``space``."""
    keep_ratio = check_budget(keep_ratio)
    narrow = {
        method: narrowed(space_for(space, method), method, keep_ratio, least) for method in filter(drops, methods)
    }

    def reaches(trial: Trial) -> bool:
        rates = layer_rates(trial, 2) if "nested" in Method.of(trial.method).options else [keep_ratio]
        return least(trial) <= min(rates) + ROUNDING

    return Budget(
        keep_ratio=keep_ratio,
        least={method: share for method, (_, share) in narrow.items()},
        space=lambda method: narrow[method][0] if method in narrow else space_for(space, method),
        reaches=reaches,
    )


def drops(method: str) -> bool:
    """Whether a method drops edges, so that it has a budget.

    >>> [drops(name) for name in ("original", "ptdnet", "auto", "graphsage+dropedge")]
    [False, False, True, True]
    """
    one = Method.of(method)
    return one.auto or one.strategy is not None


def narrowed(space: Space, method: str, keep_ratio: float, least: Least) -> tuple[Space, float]:
    """The part of a space with which a method can keep a share, and the least share that any of it can keep.

    Where no part can, the space stays as it is. The share of a rule is taken to rise or to fall with γ throughout.

    >>> space = Space.of({"dropout": [0.5], "gamma": {"log-uniform": [0.01, 1.0]}})
    >>> made, share = narrowed(space, "division", 0.2, lambda trial: 0.02 / trial.gamma)
    >>> made.parameters["gamma"], share
    (LogUniform(low=0.1, high=1.0), 0.02)
    """
    name = _deciding(Method.of(method))
    parameter = space.parameters.get(name or "")
    if name is None or parameter is None:
        return space, least(Trial(method))

    def share(value: Any) -> float:
        return least(Trial(method).but(**{str(name): value}))

    part, lowest = _part(parameter, keep_ratio, share)
    return Space({**space.parameters, name: part}), lowest


def _deciding(method: Method) -> str | None:
    """The setting on which the least share of a method depends."""
    if method.auto or method.strategy is None:
        return None
    if method.strategy == SENSITIVITY:
        return "sensitivity"
    return "gamma" if wants_gamma(STRATEGIES[method.strategy]) else None


def _part(parameter: Parameter, keep_ratio: float, share: Callable[[Any], float]) -> tuple[Parameter, float]:
    """What is left of a parameter, and the least share of all of it."""
    if isinstance(parameter, Uniform) and parameter.step is not None:
        steps = round((parameter.high - parameter.low) / parameter.step) + 1
        parameter = Choice(tuple(dict.fromkeys(parameter.at((k + 0.5) / steps) for k in range(steps))))
    if isinstance(parameter, Choice):
        shares = {value: share(value) for value in parameter.values}
        left = tuple(value for value in parameter.values if shares[value] <= keep_ratio + ROUNDING)
        return Choice(left) if left else parameter, min(shares.values())
    first, last = share(parameter.low), share(parameter.high)
    lowest = min(first, last)
    if max(first, last) <= keep_ratio + ROUNDING or lowest > keep_ratio + ROUNDING:
        return parameter, lowest

    def good(value: float) -> bool:
        return share(value) <= keep_ratio + ROUNDING

    # Rounded into the part, so that machines whose scores differ in the last digits have the same space.
    end = _short(_crossing(parameter.low, parameter.high, good), good)
    if first <= keep_ratio + ROUNDING:
        return _ranged(parameter, parameter.low, max(parameter.low, end)), lowest
    return _ranged(parameter, min(parameter.high, end), parameter.high), lowest


def _crossing(low: float, high: float, good: Callable[[float], bool]) -> float:
    """The last good value between a good and a bad end, by halving in log scale where that is possible."""
    inside, outside = (low, high) if good(low) else (high, low)
    for _ in range(HALVINGS):
        middle = math.sqrt(inside * outside) if low > 0 else (inside + outside) / 2
        inside, outside = (middle, outside) if good(middle) else (inside, middle)
    return inside


def _short(value: float, good: Callable[[float], bool]) -> float:
    """The nearest good value of few digits."""
    if not value:
        return value
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - DIGITS)
    near = [float(f"{whole * unit:.12g}") for whole in (round(value / unit) + step for step in (0, 1, -1))]
    return next((one for one in near if good(one)), value)


def _ranged(parameter: LogUniform | Uniform, low: float, high: float) -> Parameter:
    return LogUniform(low, high) if isinstance(parameter, LogUniform) else Uniform(low, high)
