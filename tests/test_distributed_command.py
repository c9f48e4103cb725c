"""``torchrun -m tadropedge train``: one voice, one model; killed processes end all, and the next run goes on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from tadropedge.data import load_dataset
from tadropedge.training.config import Trial
from tadropedge.training.laboratory import laboratory_for
from tadropedge.training.model_file import load_model

EPOCHS = 400
SECONDS = 300  # after which a run that hangs fails the test
TRAIN = ("noisy-clusters", "--method", "dropedge", "--hidden", "16", "--epochs", str(EPOCHS))


def start(processes: int, *words: str) -> subprocess.Popen[str]:
    """A run of so many processes."""
    run = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={processes}", "--standalone"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*run, "-m", "tadropedge", "train", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip


def process_of(run: subprocess.Popen[str], rank: int) -> int:
    """The number of one of its processes."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int(re.search(r"PPid:\s+(\d+)", (path / "status").read_text())[1])
            if parent == run.pid and f"\0RANK={rank}\0".encode() in b"\0" + (path / "environ").read_bytes():
                return int(path.name)
        except (OSError, TypeError):
            continue
    raise AssertionError(f"no process of rank {rank}")


def killed(run: subprocess.Popen[str], rank: int | None, checkpoint: Path, after: int) -> str:
    """Kill one process of a run, or torchrun, after a checkpoint past some epoch; what all of them then say."""
    deadline = time.monotonic() + SECONDS
    while epoch_of(checkpoint) <= after:
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(run.pid if rank is None else process_of(run, rank), signal.SIGKILL)
    _, words = run.communicate(timeout=SECONDS)
    assert run.returncode != 0
    return words


def epoch_of(checkpoint: Path) -> int:
    return int(load_file(checkpoint)["epoch"]) if checkpoint.is_file() else 0


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc, which is not here")
def test_a_killed_process_ends_all_and_the_next_run_goes_on(tmp_path):
    checkpoint = tmp_path / "checkpoint.safetensors"
    words = (*TRAIN, "--out", str(tmp_path), "--checkpoint-every", "5")
    reached = 0
    for processes, rank in ((2, 1), (3, 0), (2, None)):
        told = killed(start(processes, *words), rank, checkpoint, reached)
        errors = [line for line in told.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1, told
        assert "run the same command again to go on from there" in errors[0]
        if reached:
            assert f"going on after epoch {reached} of" in told
        reached = epoch_of(checkpoint)
        assert 0 < reached < EPOCHS
    told, _ = (last := start(2, *words)).communicate(timeout=SECONDS)
    assert last.returncode == 0
    assert not checkpoint.exists()
    laboratory = laboratory_for(load_dataset("noisy-clusters"), hidden=16, epochs=EPOCHS)
    expected = laboratory.train([Trial("dropedge")], keep_state=True)[0]
    saved = load_model(tmp_path)
    # 400 epochs of steps with other rounding: not to 1e-5, but the same model.
    assert saved.kept["val_loss"] == pytest.approx(expected.kept["val_loss"], abs=1e-3)
    assert f"best_epoch: {saved.best_epoch}" in told
    assert saved.best_epoch == pytest.approx(expected.best_epoch, abs=2)
    for name, value in expected.state.items():
        np.testing.assert_allclose(saved.state[name].numpy(), value, atol=0.02, err_msg=name)


def test_refusals_are_one_line_of_the_first_process(tmp_path):
    run = start(2, *TRAIN, "--method", "cdf:connected", "--out", str(tmp_path))
    _, told = run.communicate(timeout=SECONDS)
    assert run.returncode != 0
    errors = [line for line in told.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, told
    assert "spanning forest" in errors[0]
