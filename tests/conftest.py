"""Fixtures: where the real data is, and every device there is."""

from __future__ import annotations

import os
import signal
from functools import cache
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings
from torch.utils.data._utils import signal_handling

from tadropedge.data.planetoid import citation_graph
from tadropedge.registry import NETWORKS

pytest.register_assert_rewrite("contracts")
# No test depends on time.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


def data_root() -> Path:
    """The folder with real data: ``TADROPEDGE_DATA``, else ``../shared/data`` beside the project."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("TADROPEDGE_DATA", beside))


def need_data(path: Path) -> Path:
    """Skip where there is no data, but never in CI, which has it."""
    if not path.exists():
        reason = f"no data at {path}: set TADROPEDGE_DATA"
        assert os.environ.get("CI") != "true", reason
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session")
def citation():
    """A function from a name to its citation graph, read once."""
    need_data(data_root() / "planetoid")
    return cache(lambda name: citation_graph(name, data_root()))


@pytest.fixture(scope="session")
def large_graphs():
    """The folder with the larger graphs."""
    return need_data(data_root() / "graphs")


@pytest.fixture
def one_thread():
    """Graphs this small are not worth a second thread, which on a busy machine is waited for."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"])
def device(request):
    """Every device there is."""
    return torch.device(request.param)


@pytest.fixture(autouse=True)
def _signals_are_handled_as_before():
    """No test leaves a handler of signals behind.

    A DataLoader with workers installs one for good, which raises in whatever test is running when a child of some
    earlier test ends badly.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)
            if number == signal.SIGCHLD:
                signal_handling._SIGCHLD_handler_set = False  # the next loader installs it again


@pytest.fixture(autouse=True)
def _own_networks_are_forgotten():
    """A user's own model is registered for the process; no test sees those of another."""
    before = set(NETWORKS)
    yield
    for name in set(NETWORKS) - before:
        del NETWORKS[name]
