"""What is recorded of T trainings: the curves and the kept model of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from tadropedge._old.nn.layers import Parameters
from tadropedge._old.registry import MEASURES
from tadropedge._old.training.config import METRICS, SCORED, GradientNorms, Outcome, Trial
from tadropedge._old.training.task import TEST, VAL, Pass, cross_entropy

TRAIN_LOSS = METRICS.index("train_loss")


class Record:
    """Curves ``[metrics, epochs, T]`` and the best model of each trial; nothing here leaves the device before the end.

    ``state`` is what a model consists of, its parameters and its running statistics, which change in place. ``layers``
    are the names of those whose gradient norms are recorded.
    """

    def __init__(
        self,
        trials: Sequence[Trial],
        epochs: int,
        state: Parameters,
        keep_state: bool,
        measure: str = "accuracy",
        *,
        layers: Sequence[str] = (),
    ) -> None:
        self.trials, self.state = trials, state
        self.score = None if measure == "accuracy" else MEASURES[measure]
        self.names = METRICS if self.score is None else METRICS + SCORED
        device = next(iter(state.values())).device
        self.curves = torch.full((len(self.names), epochs, len(trials)), float("nan"), device=device)
        self.layers = tuple(layers)
        self.norms = torch.full((len(layers), epochs, len(trials)), float("nan"), device=device)
        self.best_loss = torch.full((len(trials),), float("inf"), device=device)
        self.best_epoch = torch.zeros(len(trials), dtype=torch.int64, device=device)
        self.best_state = {name: value.detach().clone() for name, value in state.items()} if keep_state else {}

    def trained(self, epoch: Tensor, train_loss: Tensor) -> None:
        """Write the training loss of an epoch, ``[T]``."""
        self.curves[TRAIN_LOSS].index_copy_(0, epoch[None], train_loss[None])

    def descended(self, epoch: Tensor, norms: Tensor) -> None:
        """Write the gradient norms of an epoch, ``[layers, T]``."""
        self.norms.index_copy_(1, epoch[None], norms[:, None, :])

    def evaluated(self, epoch: Tensor, logits: Tensor, seen: Pass, deciding: Tensor | None = None) -> None:
        """Write what an evaluation found and keep the best models; by default the validation loss decides."""
        val_loss = seen.mean(cross_entropy(logits, seen.labels), VAL)
        right = (logits.argmax(dim=-1) == seen.labels).to(torch.float32)
        row = [val_loss, seen.mean(right, VAL), seen.mean(right, TEST)]
        if self.score is not None:
            row += [seen.scored(self.score, logits, part) for part in (VAL, TEST)]
        self.curves[TRAIN_LOSS + 1 :].index_copy_(1, epoch[None], torch.stack(row)[:, None, :])
        loss = val_loss if deciding is None else deciding
        better = loss < self.best_loss  # NaN is never better
        self.best_loss.copy_(torch.where(better, loss, self.best_loss))
        self.best_epoch.copy_(torch.where(better, epoch, self.best_epoch))
        for name, best in self.best_state.items():
            mine = better.view(-1, *[1] * (best.dim() - 1))
            best.copy_(torch.where(mine, self.state[name], best))

    def outcomes(self, evaluated: Sequence[int]) -> list[Outcome]:
        """Read everything; ``evaluated`` are the epochs that had an evaluation."""
        curves, best = self.curves.cpu().numpy(), self.best_epoch.tolist()
        states = {name: value.cpu().numpy() for name, value in self.best_state.items()}
        found = [self._outcome(at, curves[:, :, at], best[at], states, evaluated) for at in range(len(best))]
        if not self.layers:
            return found
        norms = self.norms.permute(2, 1, 0).cpu().numpy()  # [T, epochs, layers]
        told = [GradientNorms(layers=self.layers, norms=mine) for mine in norms]
        return [replace(one, gradient_norms=mine) for one, mine in zip(found, told, strict=True)]

    def _outcome(
        self, place: int, curves: np.ndarray, best: int, states: Mapping[str, np.ndarray], evaluated: Sequence[int]
    ) -> Outcome:
        mine, scores = dict(zip(METRICS, curves[: len(METRICS)], strict=True)), curves[len(METRICS) :]
        finite = np.isfinite(mine["train_loss"]).all() and np.isfinite(mine["val_loss"][list(evaluated)]).all()
        state = {name: value[place] for name, value in states.items()} or None
        return Outcome(
            trial=self.trials[place],
            **mine,
            best_epoch=best,
            failed=not bool(finite),
            state=state,
            scores=(scores[0], scores[1]) if len(scores) else None,
        )
