"""PyG knows by the printed form of a ``pre_transform`` whether processed data is stale."""

import functools
import inspect
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.data.dataset import _repr
from torch_geometric.transforms import Compose, ToUndirected

from tadropedge import SCORES
from tadropedge.pyg import AddKeepProbability, AddResistance, AddScore, AddShift, shown
from tadropedge.scores.solve import parameters

STAR = Data(edge_index=torch.tensor([[0, 0, 0, 1], [1, 2, 3, 2]]), num_nodes=4)


class Stars(InMemoryDataset):
    """Three graphs, processed once into a folder."""

    @property
    def processed_file_names(self):
        return ["data.pt"]

    def process(self):
        self.save([self.pre_transform(STAR) for _ in range(3)], self.processed_paths[0])

    def __init__(self, root, pre_transform):
        super().__init__(root, pre_transform=pre_transform)
        self.load(self.processed_paths[0])


def by_sum(graph):
    return graph.pairs.sum(0)


def by_product(graph):
    return graph.pairs.prod(0)


def scaled(graph, scale):
    return scale * graph.pairs.sum(0)


class Opaque:
    """A rule whose content cannot be seen."""

    __slots__ = ("hidden",)

    def __init__(self):
        self.hidden = object()

    def __call__(self, weights):
        return torch.zeros_like(weights)


ONE, TWO = torch.arange(3.0), torch.arange(3.0) + 1
CHANGES = {  # what a changed setting changes, and what it was before
    "q": (AddScore("aggregate", q=2), AddScore("aggregate", q=3)),
    "laplacian": (AddScore("aggregate", q=2), AddScore("aggregate", q=2, laplacian="normalized")),
    "laplacian of resistance": (AddResistance(2), AddResistance(2, laplacian="normalized")),
    "tolerance": (AddScore("aggregate", q=2, tolerance=1e-6), AddScore("aggregate", q=2, tolerance=1e-7)),
    "clusters": (AddResistance(desired_clusters=2), AddResistance(2)),
    "score": (AddScore("degree"), AddScore("jaccard")),
    "cache": (AddScore("degree"), AddScore("degree", cache_dir="kept")),
    "own score": (AddScore(by_sum), AddScore(by_product)),
    "lambda": (AddScore(lambda graph: graph.pairs[0] + 1), AddScore(lambda graph: graph.pairs[0] + 2)),
    "own setting": (AddScore(scaled, scale=2.0), AddScore(scaled, scale=3.0)),
    "tensor": (AddScore("column", column=ONE), AddScore("column", column=TWO)),
    "partial": (
        AddScore(functools.partial(scaled, scale=2.0)),
        AddScore(functools.partial(scaled, scale=3.0)),
    ),
    "strategy": (AddKeepProbability("uniform", keep_prob=0.5), AddKeepProbability("dropsens", keep_prob=0.5)),
    "keep_prob": (AddKeepProbability("uniform", keep_prob=0.5), AddKeepProbability("uniform", keep_prob=0.6)),
    "keep_ratio": (AddKeepProbability("uniform", keep_ratio=0.5), AddKeepProbability("uniform", keep_prob=0.5)),
    "gamma": (AddKeepProbability("cutoff", keep_prob=0.5), AddKeepProbability("cutoff", keep_prob=0.5, gamma=0.1)),
    "inverse": (AddKeepProbability(keep_prob=0.5), AddKeepProbability(keep_prob=0.5, inverse=True)),
    "sensitivity": (
        AddKeepProbability("dropsens", keep_prob=0.5),
        AddKeepProbability("dropsens", keep_prob=0.5, sensitivity=0.8),
    ),
    "own rule": (
        AddKeepProbability(lambda weights: weights / 9, keep_prob=0.5),
        AddKeepProbability(lambda weights: weights / 8, keep_prob=0.5),
    ),
    "normalization": (AddShift(), AddShift("random-walk")),
    "dtype": (AddShift(), AddShift(dtype=torch.float64)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_setting_changes_what_pyg_compares(name):
    """Also between other transforms, each of which may hold signs that PyG cuts at."""
    before, after = CHANGES[name]
    assert _repr(before) != _repr(after)
    first, last = (lambda graph: graph.weight), (lambda graph: graph.pairs)
    for one, other in ((before, after), (after, before)):
        compose = [_repr(Compose([ToUndirected(), AddScore(first), each, AddScore(last)])) for each in (one, other)]
        assert compose[0] != compose[1]
    for transform in (before, after):
        assert not re.search(r"0x|<|>|\bat\b", repr(transform))


@pytest.mark.filterwarnings("ignore::tadropedge.RepeatedEigenvalueWarning")
@pytest.mark.parametrize("name", ["q", "laplacian", "own score", "keep_prob", "cache"])
def test_a_real_dataset_says_that_it_is_stale(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before, after = CHANGES[name]
    first = Stars(str(tmp_path), before)
    assert [int(graph.graph_number) % 3 for graph in first] in ([0, 1, 2], [1, 2, 0], [2, 0, 1])
    with warnings.catch_warnings(action="error"):
        Stars(str(tmp_path), before)
    with pytest.warns(UserWarning, match="`pre_transform` argument differs"):
        Stars(str(tmp_path), after)


def test_what_is_equal_prints_alike():
    assert repr(AddScore("aggregate", q=3, laplacian="normalized")) == repr(
        AddScore("aggregate", laplacian="normalized", q=3)
    )
    assert repr(AddKeepProbability(keep_prob=np.float64(0.5))) == repr(AddKeepProbability(keep_prob=0.5))
    assert repr(AddScore("aggregate", q=np.int64(3))) == repr(AddScore("aggregate", q=3))
    score = AddScore("degree")
    before = repr(score)
    score(STAR)
    assert repr(score) == before  # what it has counted is no setting


PROGRAM = """
import torch
from tadropedge.pyg import AddKeepProbability, AddScore
def mine(graph, scale=2.0):
    return scale * graph.pairs.sum(0)
print(AddScore(mine), AddScore(lambda graph: graph.pairs[0]), AddScore("column", column=torch.arange(3.0)))
print(AddKeepProbability(lambda weights: weights / 9, keep_ratio=0.5))
"""


def test_equal_settings_print_alike_in_every_process(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    root = Path(__file__).resolve().parents[1]
    environment = {"PYTHONPATH": str(root), "PATH": "", "OMP_NUM_THREADS": "1"}
    told = [
        subprocess.run([sys.executable, program], capture_output=True, text=True, check=True,
                       env=environment | {"PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert told[0] == told[1]
    assert told[0].count("#") == 4


def test_what_cannot_be_seen_is_equal_to_nothing_on_disk(monkeypatch):
    rule = AddKeepProbability(Opaque(), keep_prob=0.5)
    here = repr(rule)
    assert re.search(r"strategy=Opaque#[0-9a-f]{8},", here)
    assert repr(rule) == here
    monkeypatch.setattr(shown, "SESSION", b"another process")
    assert repr(rule) != here


def test_a_later_version_of_our_numbers_is_printed(monkeypatch):
    before = repr(AddScore("degree"))
    monkeypatch.setattr(shown, "VERSION", shown.FIRST_VERSION + 1)
    assert repr(AddScore("degree")) == before.replace("cache_dir=None", "cache_dir=None, version=6")


def test_defaults_are_as_they_were():
    """They are not printed where they are not given. Who changes one raises VERSION in cache.py, which is."""
    empty = inspect.Parameter.empty
    known = {
        "aggregate": [None, None, "combinatorial", "auto", 1e-8, None],
        "effective": ["auto", 0.1, 0],
        "cosine": [empty],
        "column": [empty],
    }
    ours = [name for name in SCORES if str(getattr(SCORES[name], "__module__", "tadropedge")).startswith("tadropedge")]
    for name in ours:
        found = [one.default for one in parameters(SCORES[name]).values()]
        assert found == known.get(name, found if not found else []), name
