"""Search: a declared space of hyper-parameters, Optuna studies that can be resumed, and the two protocols."""

import warnings

from tadropedge._old.search.engine import run_search
from tadropedge._old.search.engines import Local, training_with
from tadropedge._old.search.protocol import Replicates, accuracy_by_keep_prob, choose, honest, paper
from tadropedge._old.search.ray_engine import RayEngine
from tadropedge._old.search.space import Choice, LogUniform, Space, Uniform, default_space, method_space, trial
from tadropedge._old.search.study import Finished, Ledger, open_storage, study_name

__all__ = [
    "Choice",
    "Finished",
    "Ledger",
    "Local",
    "LogUniform",
    "RayEngine",
    "Replicates",
    "Space",
    "Uniform",
    "accuracy_by_keep_prob",
    "choose",
    "default_space",
    "honest",
    "method_space",
    "open_storage",
    "paper",
    "run_search",
    "study_name",
    "training_with",
    "trial",
]


def __getattr__(name: str) -> type[Replicates]:
    if name != "Honest":
        raise AttributeError(f"module 'tadropedge._old.search' has no attribute {name!r}")
    warnings.warn("tadropedge._old.search.Honest is now called Replicates", DeprecationWarning, stacklevel=2)
    return Replicates
