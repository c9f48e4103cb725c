"""Settings as they are printed: two that print alike do the same, so PyG finds the right file on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tadropedge.errors import TadropedgeError
from tadropedge.fingerprint import fingerprint, of_this_package
from tadropedge.registry import SCORES, STRATEGIES


def listed(settings: Mapping[str, Any]) -> str:
    """Every setting with its value, by which PyG's datasets know whether a file on disk is still right.

    So your own functions are shown with a fingerprint of their code, and tensors with one of their numbers.

    >>> listed({"score": "degree", "keep_ratio": 0.5})
    "score='degree', keep_ratio=0.5"
    """
    return ", ".join(f"{name}={_word(name, value)}" for name, value in settings.items())


def _word(name: str, value: Any) -> str:
    if value is None or isinstance(value, bool | int | float | str | Path):
        named: dict[str, Any] = {"score": SCORES, "strategy": STRATEGIES}
        called, entry = repr(value), named.get(name, {}).get(value)
    else:
        called, entry = getattr(value, "__name__", type(value).__name__), value
    if entry is None or of_this_package(entry):
        return called
    try:
        return f"{called}#{fingerprint(value=entry)[:8]}"
    except TadropedgeError:  # content that cannot be seen is equal to nothing on disk
        return f"{called}#{id(entry):x}"
