"""A training that can go on after an interruption, with any number of processes: everything that an epoch changes.

What is written depends on no partition: parameters, moments of Adam, running statistics, curves and the best model are
the same in all processes. The first one writes, in one step, and what it reads is sent to the others.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from tadropedge._old.atomic import write_atomic
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.training.batch import Batch

NAME = "checkpoint.safetensors"


def held(batch: Batch) -> dict[str, Tensor]:
    """The tensors of a training that an epoch changes, by name; they are changed in place."""
    record, optimizer = batch.record, batch.optimizer
    found = {f"state.{name}": value for name, value in batch.state.items()}
    found |= {f"best.{name}": value for name, value in record.best_state.items()}
    found |= {f"first.{place}": value for place, value in enumerate(optimizer.first)}
    found |= {f"second.{place}": value for place, value in enumerate(optimizer.second)}
    found |= {"curves": record.curves, "norms": record.norms, "best_loss": record.best_loss}
    return found | {"best_epoch": record.best_epoch, "epoch": batch.epoch, "updates": batch.updates}


def write_checkpoint(folder: Path, batch: Batch, training: str) -> Path:
    """Write where a training stands; ``training`` is the fingerprint of everything that decides its outcome."""
    from safetensors.torch import save

    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in held(batch).items()}
    return write_atomic(folder / NAME, save(tensors, metadata={"training": training}))


def read_checkpoint(folder: Path, training: str) -> dict[str, Tensor] | None:
    """What was written of this training; None where there is nothing, or only that of another training."""
    from safetensors import safe_open

    path = folder / NAME
    if not path.is_file():
        return None
    try:
        with safe_open(path, "pt") as file:
            if (file.metadata() or {}).get("training") != training:
                return None
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except Exception as error:
        raise TadropedgeError(f"{path}: damaged ({error}); delete it to train from the start") from None


def restore(batch: Batch, tensors: dict[str, Tensor]) -> None:
    """Put a training where it was."""
    mine = held(batch)
    if set(mine) != set(tensors) or any(mine[name].shape != value.shape for name, value in tensors.items()):
        raise TadropedgeError(f"{NAME} does not fit this training; delete it to train from the start")
    with torch.no_grad():
        for name, value in mine.items():
            value.copy_(tensors[name])
