"""Search: a declared space of hyper-parameters, Optuna studies that can be resumed, and the two protocols."""

import warnings

from tadropedge.search.engine import run_search
from tadropedge.search.engines import Local, training_with
from tadropedge.search.protocol import Replicates, accuracy_by_keep_prob, choose, honest, paper
from tadropedge.search.ray_engine import RayEngine
from tadropedge.search.space import Choice, LogUniform, Space, Uniform, default_space, method_space, trial
from tadropedge.search.study import Finished, Ledger, open_storage, study_name

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
        raise AttributeError(f"module 'tadropedge.search' has no attribute {name!r}")
    warnings.warn("tadropedge.search.Honest is now called Replicates", DeprecationWarning, stacklevel=2)
    return Replicates
