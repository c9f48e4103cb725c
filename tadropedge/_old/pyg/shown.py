"""Settings as they are printed: two that print alike do the same, so PyG finds the right file on disk.

PyG keeps the printed form of a ``pre_transform`` beside the processed data, and warns where that of a new one differs.
Before comparing it cuts out what stands between ``<`` and ``>`` after a blank, so neither sign may be printed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tadropedge._old.cache import VERSION
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.fingerprint import fingerprint, of_this_package
from tadropedge._old.registry import SCORES, STRATEGIES
from tadropedge._old.scores.solve import Score, named, parameters

FIRST_VERSION = 5  # of our numbers: later ones are printed, so that data of earlier ones is found to be stale
SESSION = os.urandom(16)


def listed(settings: Mapping[str, Any]) -> str:
    """Every setting with its value, by which PyG's datasets know whether a file on disk is still right.

    So your own functions are shown with a fingerprint of their code, and tensors with one of their numbers.

    >>> listed({"score": "degree", "keep_ratio": 0.5})
    "score='degree', keep_ratio=0.5"
    """
    shown = [f"{name}={_word(name, value)}" for name, value in settings.items()]
    return ", ".join(shown if VERSION == FIRST_VERSION else [*shown, f"version={VERSION}"])


def in_order(score: Score, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a score in the order of its signature, however they were written.

    >>> in_order("aggregate", {"laplacian": "normalized", "q": 3})
    {'q': 3, 'laplacian': 'normalized'}
    """
    known = [name for name in parameters(named(score)[1]) if name in settings]
    return {name: settings[name] for name in [*known, *sorted(settings.keys() - set(known))]}


def _word(name: str, value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str | Path):
        named: dict[str, Any] = {"score": SCORES, "strategy": STRATEGIES}
        called, entry = repr(value), named.get(name, {}).get(value)
    else:
        called, entry = getattr(value, "__name__", type(value).__name__), value
    called = called.replace("<lambda>", "lambda").replace("<", r"\x3c").replace(">", r"\x3e")
    if entry is None or of_this_package(entry):
        return called
    try:
        return f"{called}#{fingerprint(value=entry)[:8]}"
    except TadropedgeError:  # content that cannot be seen is equal to nothing on disk, nor in another process
        return f"{called}#{fingerprint(session=SESSION, entry=id(entry))[:8]}"
