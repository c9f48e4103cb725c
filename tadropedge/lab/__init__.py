"""The laboratory finds out what helps on a graph, and whether anything does.

>>> from tadropedge.lab import Candidate, NETWORKS
>>> str(Candidate.parse("gat+dropedge@0.3")), "gcnii" in NETWORKS
('gat+dropedge@0.3', True)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for checkers of types, which read no dictionary
    from tadropedge.lab.candidate import Candidate as Candidate
    from tadropedge.lab.data.dataset import Dataset as Dataset
    from tadropedge.lab.data.load import load as load
    from tadropedge.lab.networks.network import Network as Network
    from tadropedge.lab.networks.network import Setting as Setting
    from tadropedge.lab.networks.network import Sizes as Sizes
    from tadropedge.lab.networks.network import Start as Start
    from tadropedge.lab.networks.view import View as View
    from tadropedge.lab.registry import DATASETS as DATASETS
    from tadropedge.lab.registry import MEASURES as MEASURES
    from tadropedge.lab.registry import NETWORKS as NETWORKS
    from tadropedge.lab.search.protocol import Search as Search
    from tadropedge.lab.search.protocol import best_of as best_of
    from tadropedge.lab.search.protocol import nested as nested
    from tadropedge.lab.search.store import Store as Store
    from tadropedge.lab.statistics import decide as decide
    from tadropedge.lab.training.callbacks import Callback as Callback
    from tadropedge.lab.training.callbacks import Checkpoint as Checkpoint
    from tadropedge.lab.training.callbacks import Progress as Progress
    from tadropedge.lab.training.callbacks import TensorBoard as TensorBoard
    from tadropedge.lab.training.experiment import Experiment as Experiment
    from tadropedge.lab.training.fit import fit as fit
    from tadropedge.lab.training.trainer import train as train
    from tadropedge.lab.training.trial import MiniBatch as MiniBatch
    from tadropedge.lab.training.trial import Outcome as Outcome
    from tadropedge.lab.training.trial import TrainingSettings as TrainingSettings
    from tadropedge.lab.training.trial import Trial as Trial

# Where each public name lives. Modules are loaded when a name is first used.
_HOME = {
    "Callback": "training.callbacks",
    "Candidate": "candidate",
    "Checkpoint": "training.callbacks",
    "DATASETS": "registry",
    "Dataset": "data.dataset",
    "Experiment": "training.experiment",
    "MEASURES": "registry",
    "MiniBatch": "training.trial",
    "NETWORKS": "registry",
    "Network": "networks.network",
    "Outcome": "training.trial",
    "Progress": "training.callbacks",
    "Search": "search.protocol",
    "Setting": "networks.network",
    "Sizes": "networks.network",
    "Start": "networks.network",
    "Store": "search.store",
    "TensorBoard": "training.callbacks",
    "TrainingSettings": "training.trial",
    "Trial": "training.trial",
    "View": "networks.view",
    "best_of": "search.protocol",
    "decide": "statistics",
    "fit": "training.fit",
    "load": "data.load",
    "nested": "search.protocol",
    "train": "training.trainer",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'tadropedge.lab' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tadropedge.lab.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__]
