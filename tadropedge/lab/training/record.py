"""What is recorded of T trainings: the curves and the kept model of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from tadropedge.lab.registry import MEASURES
from tadropedge.lab.training.objective import cross_entropy
from tadropedge.lab.training.trial import Array, Outcome, TrainingSettings, Trial

CURVES = ("train_loss", "val_loss", "val_score", "test_score")


class Record:
    """Curves ``[epochs, T, 4]`` and the best model of each of T trials; nothing leaves the device before the end.

    ``state`` is what a model consists of, its parameters and its running statistics ``[T, ...]``; it is copied only
    with ``keep_state``. ``places`` are the trials that are still training: rungs make them fewer.
    """

    def __init__(
        self, trials: Sequence[Trial], training: TrainingSettings, state: Mapping[str, Tensor], keep_state: bool = False
    ) -> None:
        self.trials, self.training = list(trials), training
        self.measure = MEASURES[training.measure]
        device, count = next(iter(state.values())).device, len(trials)
        self.places = torch.arange(count, device=device)
        self.curves = torch.full((training.epochs, count, len(CURVES)), torch.nan, device=device)
        self.best = torch.full((count,), -torch.inf, device=device)  # of what decides: the score, or minus the loss
        self.best_epoch = torch.zeros(count, dtype=torch.int64, device=device)
        self.stopped = torch.zeros(count, dtype=torch.int64, device=device)  # after so many epochs; 0: not
        self.best_state = {name: value.detach().clone() for name, value in state.items()} if keep_state else {}

    def trained(self, epoch: Tensor, loss: Tensor) -> None:
        """Write the training loss of an epoch, ``[T]``."""
        self.curves[..., 0].index_put_((epoch, self.places), loss)

    def evaluated(
        self, epoch: Tensor, logits: Tensor, labels: Tensor, parts: Sequence[Tensor], state: Mapping[str, Tensor]
    ) -> None:
        """Write what an evaluation found in the ``parts`` (masks of validation and test), and keep the best models."""
        val_loss = cross_entropy(logits, labels, parts[0])
        val_score, test_score = (self.measure(logits, labels, part).to(torch.float32) for part in parts)
        self.curves[..., 1:].index_put_((epoch, self.places), torch.stack((val_loss, val_score, test_score), dim=-1))
        value = val_score if self.training.keep == "measure" else -val_loss
        best = self.best.index_select(0, self.places)
        better = value > best  # NaN is never better
        self.best.index_copy_(0, self.places, torch.where(better, value, best))
        epochs = torch.where(better, epoch, self.best_epoch.index_select(0, self.places))
        self.best_epoch.index_copy_(0, self.places, epochs)
        for name, kept in self.best_state.items():
            mine = better.view(-1, *[1] * (kept.dim() - 1))
            kept.index_copy_(0, self.places, torch.where(mine, state[name], kept.index_select(0, self.places)))

    def promising(self, epochs: int) -> Tensor:
        """Which of the trials that still train go on after so many epochs: of each search the better half, rounded up.

        What decides is the best value so far; among equals those that come first go on, and those whose loss is not
        finite are the last. Bool ``[T]``.
        """
        learns = self.curves[:epochs, :, 0].isfinite().all(dim=0)
        values, places = torch.where(learns, self.best, -torch.inf).tolist(), self.places.tolist()
        searches: dict[object, list[int]] = {}
        for place in places:
            searches.setdefault(self.trials[place].search, []).append(place)
        stay = {
            place
            for mine in searches.values()
            for place in sorted(mine, key=lambda place: (-values[place], place))[: -(-len(mine) // 2)]
        }
        return torch.tensor([place in stay for place in places])

    def keep(self, rows: Tensor, epochs: int) -> None:
        """Only these rows of the trials go on; the others have stopped after so many epochs."""
        stopped = torch.ones_like(self.places, dtype=torch.bool).index_fill_(0, rows, False)
        self.stopped[self.places[stopped]] = epochs
        self.places = self.places.index_select(0, rows)

    def tensors(self) -> dict[str, Tensor]:
        """All that a resumed training must find again."""
        own = {name: getattr(self, name) for name in ("curves", "best", "best_epoch", "stopped")}
        return own | {f"kept.{name}": value for name, value in self.best_state.items()}

    def metrics(self, epoch: int) -> dict[int, dict[str, float]]:
        """What was recorded of an epoch, from 0, for each trial that trained in it; waits for the device."""
        rows, stopped = self.curves[epoch].tolist(), self.stopped.tolist()
        trained = (place for place, after in enumerate(stopped) if not after or epoch < after)
        return {place: dict(zip(CURVES, rows[place], strict=True)) for place in trained}

    def outcomes(self, epochs: int) -> list[Outcome]:
        """Read everything after so many epochs, in the order of the trials."""
        curves, best, kept = self.curves.cpu().numpy(), self.best.tolist(), self.best_epoch.tolist()
        states = {name: value.cpu().numpy() for name, value in self.best_state.items()}
        return [
            self._outcome(place, curves[:, place], best[place], kept[place], states, epochs)
            for place in range(len(best))
        ]

    def _outcome(
        self, place: int, curves: Array, best: float, epoch: int, states: Mapping[str, Array], epochs: int
    ) -> Outcome:
        stopped = int(self.stopped[place]) or None
        done = curves[: stopped or epochs]
        looked_at = [number for number in range(len(done)) if self.training.evaluates(number)]
        finite = np.isfinite(done[:, 0]).all() and np.isfinite(done[looked_at, 1]).all()
        return Outcome(
            trial=self.trials[place],
            curves={name: np.ascontiguousarray(curves[:, number]) for number, name in enumerate(CURVES)},
            best_epoch=epoch,
            failed=not (finite and np.isfinite(best)),
            stopped=stopped,
            state={name: value[place] for name, value in states.items()} or None,
        )
