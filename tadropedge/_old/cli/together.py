"""``torchrun … -m tadropedge train``: one model by several processes, of which the first reads, prints and saves."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tadropedge._old.cli.options import LaboratoryOptions, chosen_device
from tadropedge._old.cli.progress import live_progress
from tadropedge._old.watching import Moment, Safe, tell

if TYPE_CHECKING:
    from tadropedge._old.distributed.deal import WholeTask
    from tadropedge._old.distributed.training import SpreadPlan
    from tadropedge._old.training.config import Outcome, Trial
    from tadropedge._old.training.laboratory import Laboratory


def train_together(
    options: LaboratoryOptions,
    trial: Trial,
    finish: Callable[[Laboratory, Outcome], None],
    *,
    lock: AbstractContextManager[None],
    out: Path | None,
    partition: str,
    every: int,
    gradient_norms: bool,
    as_json: bool,
) -> None:
    """Train one trial by all processes of ``torchrun``; the first one holds the ``lock`` and ends with ``finish``."""
    from tadropedge._old.distributed.checkpoint import NAME
    from tadropedge._old.distributed.group import SILENCE, joined, one_voice
    from tadropedge._old.distributed.training import Keeping, forget, prepare, train_spread

    keeping = Keeping(folder=out, every=every)

    def kept() -> str:
        if out is None or not (out / NAME).is_file():
            return "nothing was kept: start again" + (
                " with --out, where checkpoints are written" if out is None else ""
            )
        return f"{out / NAME} is kept: run the same command again to go on from there"

    def reached(epoch: int, epochs: int) -> None:
        tell(Moment(trainings=1, finished=0, together=1, epoch=epoch, epochs=epochs))

    with ExitStack() as stack:
        group = stack.enter_context(joined(chosen_device(options.device), SILENCE))
        report = stack.enter_context(live_progress(as_json or group.rank > 0))
        stack.enter_context(one_voice(kept))

        def first() -> tuple[Laboratory, tuple[SpreadPlan, WholeTask]]:
            stack.enter_context(lock)
            tell(Safe("trainings", 0, 1))
            report("training", 0, 1)
            laboratory = replace(options, device="cpu").laboratory(gradient_norms=gradient_norms)
            made = prepare(laboratory, trial, group.size, partition, keeping)
            if not as_json and (done := made[0].epochs_done):
                print(f"going on after epoch {done} of {out}", file=sys.stderr, flush=True)
            return laboratory, made

        found = group.after_first(first)
        outcome = train_spread(group, None if found is None else found[1], keeping, reached)
        if found is not None:
            finish(found[0], outcome)
            forget(keeping)
