"""A callback of Lightning: modules that drop edges draw by its count of epochs, also after a resume."""

from __future__ import annotations

from typing import Any

try:
    from lightning.pytorch.callbacks import Callback  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    from pytorch_lightning.callbacks import Callback

from tadropedge.pyg.module import DropEdge

__all__ = ["SetEpoch"]


class SetEpoch(Callback):  # type: ignore[misc, unused-ignore]
    """Call ``set_epoch`` of every :class:`DropEdge` in the model when an epoch of training begins.

    All steps of an epoch then see one subgraph. Without it every call in training draws a new one.
    """

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Tell the modules which epoch it is."""
        for part in pl_module.modules():
            if isinstance(part, DropEdge):
                part.set_epoch(trainer.current_epoch)
