"""The contract of callbacks, for ours and for one of a user's own."""

import json

from tadropedge.lab.training.callbacks import Callback, Checkpoint, Progress
from tadropedge.testing.callbacks import CallbackContract


class Lines(Callback):
    """A logger as it would be written for W&B, MLflow or trackio."""

    def __init__(self, path):
        self.path = path

    def start(self, run):
        self.path.parent.mkdir(exist_ok=True)
        self.file = self.path.open("a")
        self.file.write(json.dumps(run.batch.experiment.as_dict()) + "\n")

    def epoch(self, run):
        for number, metrics in run.metrics().items():
            self.file.write(json.dumps({"trial": number, "epoch": run.epoch, **metrics}) + "\n")

    def end(self, run):
        self.file.close()


class Steps(Callback):
    def step(self, run, gradients):
        assert len(gradients) == len(run.parameters)


class TestProgress(CallbackContract):
    def callback(self, folder):
        return Progress(lambda done, total: None)


class TestCheckpoint(CallbackContract):
    def callback(self, folder):
        return Checkpoint(folder, every=0)


class TestSteps(CallbackContract):
    def callback(self, folder):
        return Steps()


class TestLogger(CallbackContract):
    def callback(self, folder):
        return Lines(folder / "lines.json")

    def test_it_writes_a_line_for_every_trial_and_epoch(self, tmp_path):
        self.trained(self.callback(tmp_path))
        rows = [json.loads(line) for line in (tmp_path / "lines.json").read_text().splitlines()]
        assert len(rows) == 1 + 6 * 3 + 6 * 2
        assert rows[0]["network"] == "gcn"
