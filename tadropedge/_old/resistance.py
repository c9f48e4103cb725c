"""Deprecated: ``aggregate_resistance`` and ``effective_resistance`` are imported from ``tadropedge``."""

import warnings


def __getattr__(name: str) -> object:
    if name not in ("aggregate_resistance", "effective_resistance"):
        raise AttributeError(f"module 'tadropedge._old.resistance' has no attribute {name!r}")
    warnings.warn("tadropedge._old.resistance is deprecated: import from tadropedge", DeprecationWarning, stacklevel=2)
    return getattr(__import__("tadropedge._old", fromlist=["x"]), name)
