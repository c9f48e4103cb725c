"""The loop of a training: epochs of T trials, what is recorded of them, the model that is kept.

Nothing in an epoch leaves the device, so on a GPU one epoch is captured as a CUDA graph and replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from tadropedge.nn.layers import Parameters
from tadropedge.training.config import Outcome, Trial
from tadropedge.training.task import TEST, VAL, Pass, cross_entropy

METRICS = ("train_loss", "val_loss", "val_accuracy", "test_accuracy")


class Loop:
    """Trials of one structure as one program with a leading axis T; :meth:`step` is one epoch of all of them.

    ``state`` is what a model consists of: its parameters, which change in place, and its running statistics.
    """

    def __init__(self, trials: Sequence[Trial], epochs: int, state: Parameters, keep_state: bool) -> None:
        self.trials, self.epochs, self.state, self.keep_state = trials, epochs, state, keep_state
        self.device = device = next(iter(state.values())).device
        self.epoch = torch.zeros((), dtype=torch.int64, device=device)
        self.curves = torch.full((len(METRICS), epochs, len(trials)), float("nan"), device=device)
        self.best_loss = torch.full((len(trials),), float("inf"), device=device)
        self.best_epoch = torch.zeros(len(trials), dtype=torch.int64, device=device)
        self.best_state = {k: v.clone() for k, v in state.items()} if keep_state else {}

    @property
    def recordable(self) -> bool:
        """Whether an epoch can be recorded as a CUDA graph."""
        return self.device.type == "cuda"

    def step(self) -> None:
        """One epoch: learn, evaluate, :meth:`record`."""
        raise NotImplementedError

    def column(self, name: str) -> Tensor:
        """A setting of all trials, ``[T, 1, 1]``."""
        values = [getattr(trial, name) for trial in self.trials]
        return torch.tensor(values, dtype=torch.float32, device=self.device)[:, None, None]

    def record(self, train_loss: Tensor, logits: Tensor, seen: Pass, deciding: Tensor | None = None) -> None:
        """Write the epoch's line of each curve and keep the best; by default the validation loss decides."""
        val_loss = seen.mean(cross_entropy(logits, seen.labels), VAL)
        right = (logits.argmax(dim=-1) == seen.labels).to(torch.float32)
        row = torch.stack((train_loss, val_loss, seen.mean(right, VAL), seen.mean(right, TEST)))
        self.curves.index_copy_(1, self.epoch[None], row[:, None, :])
        self._keep_best(val_loss if deciding is None else deciding)
        self.epoch += 1

    def _keep_best(self, loss: Tensor) -> None:
        better = loss < self.best_loss  # NaN is never better
        self.best_loss.copy_(torch.where(better, loss, self.best_loss))
        self.best_epoch.copy_(torch.where(better, self.epoch, self.best_epoch))
        if self.keep_state:
            for name, best in self.best_state.items():
                mine = better.view(-1, *[1] * (best.dim() - 1))
                best.copy_(torch.where(mine, self.state[name], best))

    def run(self, progress: Callable[[int], None] | None = None) -> list[Outcome]:
        """Run all epochs and read the outcomes."""
        advance = self._captured() if self.recordable else self.step
        for epoch in range(int(self.epoch), self.epochs):
            advance()
            if progress is not None:
                progress(epoch + 1)
        return self._outcomes()

    def _captured(self) -> Callable[[], None]:
        """Warm up on a side stream, then record one epoch as a CUDA graph: launches cost nothing after that."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(min(2, self.epochs)):
                self.step()
        torch.cuda.current_stream().wait_stream(stream)
        if self.epochs <= 2:
            return self.step
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        return graph.replay

    def _outcomes(self) -> list[Outcome]:
        curves = self.curves.cpu().numpy()
        best = self.best_epoch.tolist()
        states = {name: value.cpu().numpy() for name, value in self.best_state.items()}
        outcomes = []
        for place, trial in enumerate(self.trials):
            mine = dict(zip(METRICS, curves[:, :, place], strict=True))
            failed = not bool(np.isfinite(mine["train_loss"]).all() and np.isfinite(mine["val_loss"]).all())
            state = {name: value[place] for name, value in states.items()} if states else None
            outcomes.append(Outcome(trial, **mine, best_epoch=best[place], failed=failed, state=state))
        return outcomes
