"""``fit``: the one training loop. It trains T trials of one structure as one program, with a leading axis of trials.

Training on the whole graph and on mini-batches of sampled neighbours differs only in ``batch.steps``; progress,
checkpoints and loggers are callbacks. Dropped edges, dropout and starting weights are pure functions of (seed, epoch),
so a trial ends with the same bits whether it trains beside 3 others or 31.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import torch
from torch import Tensor

from tadropedge.lab.training.adam import Adam
from tadropedge.lab.training.batch import Batch, Step
from tadropedge.lab.training.callbacks import Callback, watches_steps
from tadropedge.lab.training.objective import RAMP, consistency, cross_entropy
from tadropedge.lab.training.record import Record
from tadropedge.lab.training.trial import Outcome
from tadropedge.losses import log_chances
from tadropedge.operators.kernels.threads import for_kernels

SMALL = 2**22  # numbers in the hidden signals of all trials, up to which torch has one thread on a CPU
WARM = 2  # epochs of each kind that run unrecorded first: meanwhile libraries choose their kernels


def fit(batch: Batch, callbacks: Sequence[Callback] = (), *, keep_state: bool = False) -> list[Outcome]:
    """Train the trials of a batch and return their outcomes, in order; with ``keep_state`` also the kept models.

    >>> from tadropedge.lab.candidate import Candidate
    >>> from tadropedge.lab.data.load import load
    >>> from tadropedge.lab.training.experiment import Experiment
    >>> from tadropedge.lab.training.trial import TrainingSettings, Trial
    >>> experiment = Experiment(data=load("karate"), hidden=8, training=TrainingSettings(epochs=20))
    >>> trials = [Trial(candidate=Candidate.parse("dropedge@0.5"), seed=seed) for seed in range(3)]
    >>> outcomes = fit(Batch(experiment, trials))
    >>> len(outcomes), outcomes[2].curves["train_loss"].shape, outcomes[2].kept_share
    (3, (20,), 0.5)
    """
    run = Run(batch, callbacks, keep_state=keep_state)
    with precision_of_products(run.training.precision), for_kernels() if run.is_small else nullcontext():
        for callback in callbacks:
            callback.start(run)  # a checkpoint resumes an interrupted run here
        one_epoch = Recorded() if run.recordable else run_epoch
        while run.epoch < run.training.epochs:
            one_epoch(run)
            run.epoch += 1
            if run.epoch in batch.rungs:  # the worse half of each search stops here
                run.keep(run.record.promising(run.epoch).nonzero()[:, 0].tolist())
                one_epoch = Recorded() if run.recordable else run_epoch
            stop = [callback.epoch(run) for callback in callbacks]  # a list, so that all are called
            if any(stop):
                break
        for callback in callbacks:
            callback.end(run)
    return run.outcomes()


def run_epoch(run: Run) -> None:
    """Train one epoch, evaluate where it is due, and keep the best models; all of it stays on the device."""
    batch, network, losses = run.batch, run.network, []
    for step in batch.steps(run.epoch):
        loss, entropy = objective(run, step)
        slopes = torch.autograd.grad(step.share * loss.sum(), run.parameters, allow_unused=True, materialize_grads=True)
        *gradients, entropy = batch.summed([*slopes, step.part * entropy.detach()])
        for callback in run.watching:
            callback.step(run, gradients)
        run.optimizer.step(gradients)
        batch.step += 1
        losses.append(entropy)
    run.record.trained(batch.epoch, torch.stack(losses).sum(dim=0))
    if run.training.evaluates(run.epoch):
        logits = batch.evaluate(network)
        run.record.evaluated(batch.epoch, logits, batch.labels, (batch.val, batch.test), network.stacked())
    batch.epoch += 1


def objective(run: Run, step: Step) -> tuple[Tensor, Tensor]:
    """The loss that a step minimises, and the cross entropy alone, which is recorded; each ``[T]``.

    The loss is the cross entropy and the penalty of the network, both averaged over the draws of the step, plus the
    consistency of these draws, whose weight rises in the first epochs.
    """
    found = [run.network(x, view) for x, view in step.passes]
    draws = [one[0] if isinstance(one, tuple) else one for one in found]
    penalties = [one[1] for one in found if isinstance(one, tuple)]
    entropy = torch.stack([cross_entropy(logits, step.labels, step.nodes) for logits in draws]).mean(dim=0)
    loss = entropy + torch.stack(penalties).mean(dim=0) if penalties else entropy
    if run.batch.consistency is not None:
        logs = [log_chances(logits) for logits in draws]
        asked = logs if step.agree is None else [one.index_select(-1, step.agree) for one in logs]
        risen = ((run.batch.epoch + 1) / (RAMP * run.training.epochs)).clamp_max(1)
        loss = loss + risen * consistency(torch.stack(asked, dim=1), run.batch.consistency)
    return loss, entropy


class Run:
    """A training under way: what callbacks see, and what a checkpoint keeps.

    ``epoch`` is the number of epochs that are done; ``network``, ``optimizer`` and ``batch`` are those of the trials
    that still train, whose numbers among all trials are ``record.places``; ``shares`` are the shares of kept edges of
    all trials, and ``watching`` the callbacks that are called at every step.
    """

    def __init__(self, batch: Batch, callbacks: Sequence[Callback] = (), *, keep_state: bool = False) -> None:
        self.batch, self.training, self.epoch = batch, batch.training, 0
        self.trials, self.shares, self.began = list(batch.trials), batch.kept_shares(), time.perf_counter()
        self.network = batch.network()
        self.parameters = list(self.network.parameters())
        self.optimizer = Adam(self.parameters, batch.column("learning_rate"), batch.column("weight_decay"))
        self.record = Record(self.trials, self.training, self.network.stacked(), keep_state)
        self.watching = [callback for callback in callbacks if watches_steps(callback)]

    @property
    def recordable(self) -> bool:
        """Whether an epoch can be recorded as a CUDA graph."""
        return self.batch.recordable and self.network.recordable and not self.watching

    @property
    def is_small(self) -> bool:
        """Whether a single thread of torch is enough."""
        experiment = self.batch.experiment
        return len(self.trials) * experiment.data.graph.num_nodes * experiment.sizes.hidden <= SMALL

    def keep(self, rows: Sequence[int]) -> None:
        """Continue only the trials at these rows; the others stop after the epochs that are done."""
        if len(rows) == len(self.record.places):
            return
        self.batch.take(rows)
        self.network.take(rows)
        self.parameters = list(self.network.parameters())
        self.optimizer = self.optimizer.take(self.parameters, rows)
        self.record.keep(torch.tensor(rows, device=self.record.places.device), self.epoch)

    def metrics(self) -> dict[int, dict[str, float]]:
        """Losses and scores of the last finished epoch, by the numbers of the trials; waits for the device."""
        return self.record.metrics(self.epoch - 1)

    def tensors(self) -> dict[str, Tensor]:
        """All that a checkpoint must hold: the tensors of the run, no copies, since :meth:`resume` writes into them."""
        counters = {"epoch": self.batch.epoch, "step": self.batch.step, "steps": self.optimizer.steps}
        model = {f"network.{name}": value for name, value in self.network.stacked().items()}
        moments = {
            f"{kind}.{place}": value
            for kind, values in (("first", self.optimizer.first), ("second", self.optimizer.second))
            for place, value in enumerate(values)
        }
        return counters | model | moments | {f"record.{name}": one for name, one in self.record.tensors().items()}

    @torch.no_grad()
    def resume(self, epoch: int, places: Sequence[int], tensors: dict[str, Tensor]) -> None:
        """Continue a training of the same trials after ``epoch``; ``places`` are those that had not stopped by then."""
        self.epoch = epoch
        self.keep(places)
        for name, value in self.tensors().items():
            value.copy_(tensors[name])

    def outcomes(self) -> list[Outcome]:
        """The outcomes of all trials; the time is divided equally among them."""
        seconds = (time.perf_counter() - self.began) / len(self.trials)
        return [
            replace(outcome, kept_share=share, seconds=seconds, rungs=self.batch.rungs)
            for outcome, share in zip(self.record.outcomes(self.epoch), self.shares, strict=True)
        ]


class Recorded:
    """Runs epochs as CUDA graphs, recorded once and replayed: launching their kernels then costs nothing.

    There is one graph for each kind of epoch: with or without evaluation, on the edges of training or of evaluation.
    Everything that an epoch reads and writes, even its number, lies in tensors that change in place. After a rung
    fewer trials are left in smaller tensors, so :func:`fit` starts over with a new recorder.
    """

    def __init__(self) -> None:
        self.warm: dict[object, int] = {}
        self.graphs: dict[object, torch.cuda.CUDAGraph] = {}

    def __call__(self, run: Run) -> None:
        """One epoch."""
        kind = run.training.evaluates(run.epoch), run.batch.finishes(run.epoch)
        if self.warm.get(kind, 0) < WARM:
            self.warm[kind] = self.warm.get(kind, 0) + 1
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                run_epoch(run)
            torch.cuda.current_stream().wait_stream(stream)
            return
        if kind not in self.graphs:
            self.graphs[kind] = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graphs[kind]):  # records, and runs nothing
                run_epoch(run)
        self.graphs[kind].replay()


@contextmanager
def precision_of_products(precision: str) -> Iterator[None]:
    """Torch's precision of float32 matrix products, for the length of a block."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
