"""Which values are tried, and trial i of a replicate as a pure function of (seed, replicate, i).

Nothing is drawn from a running generator. Every parameter of every trial has a random word of its own, keyed by
(seed, replicate, i, name): trial i is the same for every candidate, before and after a restart, and a parameter that is
added, removed or narrowed leaves the others as they were. ``keep_ratio`` has the word of ``keep_prob``: they are the
budget of different rules, and trial i has the same number for both.

What a network searches stands with the network: ``space`` of its class, ``RATES`` of most.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tadropedge._support.checks import check_number, settings_of
from tadropedge.dropping import Dropping
from tadropedge.errors import TadropedgeError, show
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.networks.network import RATES
from tadropedge.lab.training.trial import Trial, Value
from tadropedge.registry import RULES

BUDGET = {"uniform": [0.05, 0.95], "step": 0.05}
CONSISTENT: Mapping[str, Any] = {
    "draws": [4],
    "consistency_weight": [0.5, 1.0, 2.0],
    "temperature": [0.3, 0.5],
    "balance": [0.0, 0.1, 0.3, 1.0],
}
OF_DROPPING = ("keep_prob", "keep_ratio", "gamma")
SAME_WORD = {"keep_ratio": "keep_prob"}


@dataclass(frozen=True)
class Space:
    """The values of each parameter: a list, a range, or a single value that is tried always.

    A list is a choice of which each entry is equally likely; ``{"uniform": [low, high], "step": 0.05}`` (both ends
    included; ``step`` may be missing) and ``{"log-uniform": [low, high]}`` are ranges.

    >>> space = Space({"dropout": [0.3, 0.5, 0.8], "gamma": {"log-uniform": [0.001, 0.1]}, "layers": 2})
    >>> space.draw(seed=0, replicate=3, number=7)
    {'dropout': 0.3, 'gamma': 0.00531784, 'layers': 2}
    >>> Space({"dropout": []})
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: dropout of a search space must be a value, a list of values, \
{'uniform': [low, high], 'step': ...} or {'log-uniform': [low, high]}, got []
    """

    entries: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.entries, Mapping):
            raise TadropedgeError(f"a search space maps names to values to try, got {show(self.entries)}")
        for name, entry in self.entries.items():
            _check(name, entry)

    def draw(self, seed: int, replicate: int, number: int) -> dict[str, Any]:
        """The hyper-parameters of trial ``number`` of a replicate."""
        return {
            name: _at(entry, word(seed, replicate, number, SAME_WORD.get(name, name)) * 2.0**-53)
            for name, entry in self.entries.items()
        }


def space_of(candidate: Candidate, network: Mapping[str, Any], own: Mapping[str, Any]) -> Space:
    """What is searched for a candidate: the space of its network, its budget, and its way of training.

    Entries of one's ``own`` replace those of the same name; so does ``gamma``, which is searched where it is given.

    >>> list(space_of(Candidate.parse("cdf"), {"dropout": [0.5]}, {}).entries)
    ['dropout', 'keep_prob']
    >>> list(space_of(Candidate.parse("degree-proportional@0.1"), {"dropout": [0.5]}, {}).entries)
    ['dropout']
    >>> space_of(Candidate.parse("cdf"), {}, {"keep_ratio": [0.7, 0.8]}).entries
    {'keep_ratio': [0.7, 0.8]}
    """
    known = {name: entry for name, entry in network.items() if name not in OF_DROPPING}
    dropping = candidate.dropping
    if dropping.is_free:
        by_prob = dropping.takes_keep_prob and ("keep_prob" in own or "keep_ratio" not in own)
        known["keep_prob" if by_prob else "keep_ratio"] = BUDGET
    if "consistent" in candidate.ways:
        known |= CONSISTENT
    if "sharpen" in candidate.ways:
        known |= {**CONSISTENT, "draws": [1]}
    if "gamma" in own and _takes_gamma(dropping):
        known["gamma"] = own["gamma"]
    return Space({name: own.get(name, entry) for name, entry in known.items()})


def with_budget(candidate: Candidate, drawn: Mapping[str, Any]) -> Candidate:
    """The candidate with what was drawn for its dropping."""
    budget = {name: drawn[name] for name in OF_DROPPING if name in drawn}
    return replace(candidate, dropping=Dropping.parse(candidate.dropping, **budget)) if budget else candidate


def trial_of(candidate: Candidate, drawn: Mapping[str, Any], **place: Any) -> Trial:
    """The trial with these hyper-parameters; ``place`` is its seed, split, replicate and group."""
    rates = {name: drawn[name] for name in RATES if name in drawn}
    settings: dict[str, Value] = {
        name: value for name, value in drawn.items() if name not in rates and name not in OF_DROPPING
    }
    return Trial(candidate=with_budget(candidate, drawn), settings=settings, **rates, **place)


def word(seed: int, replicate: int, number: int, name: str) -> int:
    """53 random bits of (seed, replicate, number, name); NumPy guarantees that the mixing never changes."""
    keys = (replicate, number, zlib.crc32(name.encode()))
    mixed = np.random.SeedSequence(seed % 2**64, spawn_key=keys)
    return int(mixed.generate_state(1, np.uint64)[0]) >> 11


def _takes_gamma(dropping: Dropping) -> bool:
    if dropping.rule is None or "gamma" in dropping.settings:
        return False
    return "gamma" in settings_of(RULES[dropping.rule] if isinstance(dropping.rule, str) else dropping.rule)


def _at(entry: Any, u: float) -> Any:
    """The value of an entry at ``u`` in [0, 1).

    >>> _at({"uniform": [0.05, 0.95], "step": 0.05}, 0.999), _at({"uniform": [16, 64], "step": 16}, 0.5)
    (0.95, 48)
    """
    if isinstance(entry, list | tuple):
        return entry[int(u * len(entry))]
    if not isinstance(entry, Mapping):
        return entry
    low, high = entry.get("uniform") or entry["log-uniform"]
    if "log-uniform" in entry:  # to six digits: ``exp`` may differ in the last one between machines
        value = math.exp(math.log(low) + u * math.log(high / low))
        return min(max(float(f"{value:.6g}"), low), high)
    step = entry.get("step")
    if step is None:
        return low + u * (high - low)
    value = low + int(u * (round((high - low) / step) + 1)) * step
    return value if isinstance(value, int) else float(f"{value:.12g}")  # 0.05 + 2 · 0.05 is 0.15000000000000002


def _check(name: str, entry: Any) -> None:
    """Refuse an entry from which nothing can be drawn."""
    if _is_plain(entry) or (isinstance(entry, list | tuple) and entry and all(map(_is_plain, entry))):
        return
    kind = next(iter(entry), None) if isinstance(entry, Mapping) else None
    ends = entry[kind] if kind in ("uniform", "log-uniform") else None
    extra = {"step"} if kind == "uniform" else set()
    if not isinstance(ends, Sequence) or len(ends) != 2 or not set(entry) <= {kind, *extra}:
        raise TadropedgeError(
            f"{name} of a search space must be a value, a list of values, {{'uniform': [low, high], 'step': ...}} or "
            f"{{'log-uniform': [low, high]}}, got {show(entry, typed=False)}",
            argument=name,
        )
    low, high = (check_number(f"{name} of a search space", end) for end in ends)
    if not low <= high or (kind == "log-uniform" and low <= 0):
        raise TadropedgeError(
            f"{name} of a search space: {kind} needs {'0 < ' if kind == 'log-uniform' else ''}low ≤ high, got {ends}"
        )
    if "step" in entry:
        step = check_number(f"step of {name}", entry["step"], 0)
        if step == 0 or abs((high - low) / step - round((high - low) / step)) > 1e-6:
            raise TadropedgeError(f"{name} of a search space must reach {high} from {low} in whole steps, got {step}")


def _is_plain(value: object) -> bool:
    return isinstance(value, bool | str) or (isinstance(value, int | float) and math.isfinite(value))
