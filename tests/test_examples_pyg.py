"""PyG's own examples with one more line: each runs in seconds, offline, and is short enough to be read."""

import importlib
import random
from pathlib import Path

import numpy as np
import pytest
import torch

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("pyg_*.py"))
MINE = ("pyg_gat", "pyg_gcn", "pyg_k_hop_batches", "pyg_lightning", "pyg_link_prediction")


@pytest.fixture(autouse=True)
def other_tests_see_no_seed():
    """Examples set global seeds, as PyG's do."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng():
        yield
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_at_most_sixty_lines(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 60


@pytest.mark.parametrize("name", MINE)
@pytest.mark.filterwarnings("ignore::UserWarning:pytorch_lightning", "ignore::DeprecationWarning:pytorch_lightning")
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning", "ignore:.*pkg_resources:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*does not have many workers", "ignore:.*number of training batches")
def test_an_example_gives_the_same_numbers_for_the_same_seed(name, capsys):
    if name == "pyg_lightning":
        pytest.importorskip("pytorch_lightning")
    example = importlib.import_module(name)
    arguments = ["--data", "clusters", "--epochs", "4", "--seed", "1"]
    first, second, other = (example.main(given) for given in (arguments, arguments, [*arguments[:-1], "2"]))
    assert list(first) == ["all edges", "dropping"]
    assert first == second != other
    assert all(0 < value <= 1 for value in first.values())
    assert "all edges: " in capsys.readouterr().out


@pytest.mark.parametrize("name", ["pyg_gcn", "pyg_link_prediction"])
def test_an_example_learns(name):
    """Far above what guessing gives: a quarter of four classes, half of the area."""
    found = importlib.import_module(name).main(["--data", "clusters", "--epochs", "40"])
    assert min(found.values()) > {"pyg_gcn": 0.4, "pyg_link_prediction": 0.6}[name]
