"""Whatever is given to a public function, it returns or says in one line what is wrong, and changes nothing of it."""

import importlib
import inspect
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tadropedge import Dropping, Graph, TadropedgeError
from tadropedge.files import write_graph
from tadropedge.lab import Candidate, Experiment, Search, TrainingSettings, Trial, load
from tadropedge.testing.graphs import karate

GRAPH, DATA, DROPPED = karate(), load("karate"), Candidate.parse("dropedge@0.5")
ARCS = torch.cat((GRAPH.pairs, GRAPH.pairs.flip(0)), dim=1)
SHORT = TrainingSettings(epochs=1)

# What is right, by the name of a parameter; one that is not named here has its default.
RIGHT = {
    **{"graph": GRAPH, "thinned": GRAPH, "data": DATA, "matrix": GRAPH.adjacency(), "edge_index": ARCS},
    **{"pairs": GRAPH.pairs, "supervision": ARCS[:, :4], "keep": torch.arange(78) % 3 > 0, "seed": 3, "epoch": 2},
    **{"scores": torch.linspace(0, 1, 78), "prob": torch.linspace(0, 1, 78), "unbiased": torch.full((78,), 0.5)},
    **{"logits": torch.eye(3).repeat(2, 1, 1), "score": "degree", "method": "degree-proportional", "p": 0.5},
    **{"rule": "proportional", "keep_prob": 0.5, "keep_ratio": 0.9, "name": "gcn+degree-cdf@0.7", "replicates": 2},
    **{"path": "graph.csv", "folder": "store", "methods": ["dropedge"], "candidate": DROPPED, "candidates": [DROPPED]},
    **{"search": Search(trials=1, replicates=2), "experiment": Experiment(data=DATA, hidden=4, training=SHORT)},
    **{"training": SHORT, "trials": [Trial()], "model": torch.nn.Linear(2, 2), "run": lambda *_: (0.5, 0.5)},
}
RIGHT_IN = {  # where a name means something else
    "judge": {"trials": 1},
    "Search": {"trials": 2},
    "Dropping": {"score": "degree", "rule": "cdf"},
    "Experiment": {"model": None},
    "compare": {"model": None, "experiment": {"training": SHORT, "hidden": 4}},
    "decide": {"scores": {"a": [0.1, 0.2], "b": [0.3, 0.2]}, "pairs": [("a", "b")]},
}
WRONG = [
    *(None, True, 0, -1, 2**31, 2**70, -(2**70), 10**400, 0.5, -0.5, 1e308, float("nan"), float("inf"), 1j, object()),
    *("", "nan", "cfd", "a\nb\0", "x" * 5000, "é", b"x", Path("nowhere"), "-", "@", ":", "+", len, int, GRAPH, DATA),
    *([], (), {}, set(), [1, 2], ["a"], [[1], [2, 3]], [None], {"a": 1}, {1: None}, range(3), [float("nan")] * 78),
    *(torch.empty(0), torch.empty(2, 0), torch.tensor(float("nan")), torch.full((78,), float("nan")), torch.ones(3)),
    *(torch.full((78,), -1.0), torch.ones(78, dtype=torch.complex64), torch.ones(2, 78, dtype=torch.bool)),
    *(torch.ones(78, dtype=torch.float16), torch.eye(3).to_sparse()),
    *(torch.full((2, 5), 2**62), torch.full((2, 5), -1), torch.zeros(2, 3, dtype=torch.int8), np.ones(78)[::-1]),
    *(np.array([None]), np.array(["a"]), np.float32(0.5), np.int8(3), np.ones((2, 2, 2))),
]

# What the house, or the author of a network, makes of parts that were checked where they came in.
TRUSTED = {
    *("Components", "Graph", "ShiftOperator", "Outcome", "FileContents", "Format", "ReadOptions", "Dataset", "View"),
    *("Network", "Setting", "Sizes", "Start", "Callback", "Progress", "fit", "has_header"),
}


def doors():
    """Every public function and class by name, and the constructors of graphs and of names."""
    for module in ("tadropedge", "tadropedge.pyg", "tadropedge.lab", "tadropedge.files"):
        home = importlib.import_module(module)
        for name in set(home.__all__) - TRUSTED:
            door = getattr(home, name)
            if callable(door) and not (isinstance(door, type) and issubclass(door, Exception)):
                yield name, door
    for name in ("from_edge_index", "from_scipy", "from_networkx", "from_data", "from_file"):
        yield f"Graph.{name}", getattr(Graph, name)
    yield from (("Dropping.parse", Dropping.parse), ("Candidate.parse", Candidate.parse))


DOORS = dict(sorted(doors()))


@pytest.fixture(scope="module", autouse=True)
def _in_a_folder_of_its_own(tmp_path_factory):
    def give_up(*_):
        raise TimeoutError("a call that never ends")

    here, handler = Path.cwd(), signal.signal(signal.SIGALRM, give_up)
    os.chdir(tmp_path_factory.mktemp("door"))
    write_graph("graph.csv", GRAPH)
    yield
    os.chdir(here)
    signal.signal(signal.SIGALRM, handler)


def seen(value):
    """What can be seen of an argument, to be compared with itself later."""
    if isinstance(value, torch.Tensor):
        there = value.layout is torch.strided and value.device.type == "cpu"
        return value.dtype, value.shape, repr(value.tolist()) if there else ""
    return repr(value.tolist() if isinstance(value, np.ndarray) else value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DOORS)
@settings(max_examples=25, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_door_opens_or_says_why_not(name, data):
    right, arguments = {**RIGHT, **RIGHT_IN.get(name, {})}, {}
    parameters = inspect.signature(DOORS[name]).parameters
    for key, parameter in parameters.items():
        needed = parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
        if needed or key in RIGHT_IN.get(name, ()) or (key in right and data.draw(st.booleans())):
            arguments[key] = right.get(key)
    chosen = data.draw(st.lists(st.sampled_from(sorted(parameters)), min_size=1, max_size=2, unique=True))
    arguments |= {key: data.draw(st.sampled_from(WRONG), label=key) for key in chosen}
    for parameter in parameters.values():  # further settings are a dictionary here
        if parameter.kind is parameter.VAR_KEYWORD:
            further = arguments.pop(parameter.name, {})
            arguments |= further if isinstance(further, dict) and "a" not in further else {"gamma": further}
    before = {key: seen(value) for key, value in arguments.items()}
    signal.alarm(60)
    try:
        DOORS[name](**arguments)
    except (TadropedgeError, TypeError) as error:
        message = str(error)
        assert message.strip()
        assert "\n" not in message
    finally:
        signal.alarm(0)
    assert {key: seen(value) for key, value in arguments.items()} == before
