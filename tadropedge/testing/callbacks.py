"""What every callback of ``fit`` must do: watch a training, and change nothing of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tadropedge.lab.candidate import Candidate
from tadropedge.lab.data.load import load
from tadropedge.lab.training.batch import Batch
from tadropedge.lab.training.callbacks import Callback
from tadropedge.lab.training.experiment import Experiment
from tadropedge.lab.training.fit import fit
from tadropedge.lab.training.trial import Outcome, TrainingSettings, Trial


class CallbackContract:
    """Subclass it with the method ``callback``, which makes one; it may write into ``folder``.

    For instance::

        class TestCurves(CallbackContract):
            def callback(self, folder):
                return CurvesTo(folder / "curves.csv")
    """

    def callback(self, folder: Path) -> Callback:
        raise NotImplementedError

    def trained(self, *callbacks: Callback, epochs: int = 12, rungs: tuple[int, ...] = (6,)) -> list[Outcome]:
        """Three trials, two of which go beyond the rung."""
        settings = TrainingSettings(epochs=epochs, rungs=rungs)
        experiment = Experiment(data=load("karate"), hidden=8, training=settings)
        trials = [Trial(candidate=Candidate.parse("dropedge@0.5"), seed=seed) for seed in range(3)]
        return fit(Batch(experiment, trials), callbacks, keep_state=True)

    def test_it_changes_no_bit(self, tmp_path: Path) -> None:
        for one, other in zip(self.trained(self.callback(tmp_path)), self.trained(), strict=True):
            assert one.stopped == other.stopped
            assert one.best_epoch == other.best_epoch
            for name, curve in other.curves.items():
                assert np.array_equal(one.curves[name], curve, equal_nan=True)
            for name, value in (other.state or {}).items():
                assert np.array_equal((one.state or {})[name], value)

    def test_it_watches_one_training_after_the_other(self, tmp_path: Path) -> None:
        callback = self.callback(tmp_path)
        first, second = (self.trained(callback, epochs=epochs, rungs=()) for epochs in (5, 7))
        assert [len(outcomes[0].curves["train_loss"]) for outcomes in (first, second)] == [5, 7]

    def test_it_stands_beside_others(self, tmp_path: Path) -> None:
        callbacks = [self.callback(tmp_path / name) for name in ("one", "other")]
        assert len(self.trained(*callbacks)) == 3
