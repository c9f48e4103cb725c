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

pytest.register_assert_rewrite("tadropedge.testing")
# No test depends on time.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


@pytest.fixture(params=["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"])
def device(request):
    """Every device there is."""
    return torch.device(request.param)


@pytest.fixture(scope="session")
def data_folder():
    """The folder with real data: ``TADROPEDGE_DATA``, else ``../shared/data`` beside the project.

    Skips where there is none, but never in CI, which has it.
    """
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("TADROPEDGE_DATA", beside))
    if not folder.is_dir():
        reason = f"no data at {folder}: set TADROPEDGE_DATA"
        assert os.environ.get("CI") != "true", reason
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def citation(data_folder):
    """A function from ``"cora"``, ``"citeseer"`` or ``"pubmed"`` to its graph, read once."""
    from tadropedge.lab import load

    def read(name):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TADROPEDGE_DATA", str(data_folder))
            return load(name).graph

    return cache(read)


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
