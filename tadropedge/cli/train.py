"""``tadropedge train``: one model."""

from __future__ import annotations

import json
import os
import shlex
import sys
from contextlib import ExitStack, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from tadropedge.cli.options import (
    Count,
    DataOptions,
    FileOptions,
    NetworkOptions,
    Positive,
    RunOptions,
    Share,
    Words,
    chosen_budget,
    named,
    typed,
)
from tadropedge.cli.output import Display, command_line, keeps, show
from tadropedge.errors import TadropedgeError

if TYPE_CHECKING:
    from tadropedge.lab.candidate import Candidate
    from tadropedge.lab.training.experiment import Experiment
    from tadropedge.lab.training.trial import MiniBatch, Outcome

MODEL, RESULTS = "model.safetensors", "results.json"
OF_TRAINING = ("split", "per_class", "add_edges", "hide_features")  # options of data that predict has not
Rate = Annotated[float, Parameter(validator=Number(gte=0, lte=1e30))]


def train(
    data: str,
    /,
    *,
    method: str = "original",
    keep_prob: Share | None = None,
    keep_ratio: Share | None = None,
    gamma: Positive | None = None,
    learning_rate: Rate = 0.01,
    weight_decay: Rate = 5e-4,
    dropout: Share = 0.5,
    settings: Words = (),
    batch_size: Count | None = None,
    fanout: Words = (),
    tensorboard: Path | None = None,
    out: Path | None = None,
    networks: NetworkOptions = NetworkOptions(),
    nodes: DataOptions = DataOptions(),
    files: FileOptions = FileOptions(),
    running: RunOptions = RunOptions(),
) -> None:
    """Train one model, say how good it is, and save it as it was at its best epoch.

    Under torchrun the processes share the mini-batches of --batch-size.

    Args:
        data: The name of a dataset (see tadropedge datasets), or a file.
        method: What is dropped, such as original, dropedge@0.7 or cdf (see tadropedge methods).
        keep_prob: p of the method, where its name has no share.
        keep_ratio: The share of edges that it keeps, where its name has none.
        gamma: γ of the rules cutoff and division; without it the knee of the scores.
        learning_rate: The step size of Adam.
        weight_decay: The weight of the squared parameters in the loss.
        dropout: The probability of dropping an entry of a layer.
        settings: Settings of the network, such as normalization=first-order,batch_norm=true.
        batch_size: Train on so many nodes per step and their sampled neighbours, instead of on the whole graph.
        fanout: The most neighbours per node, hop by hop, with --batch-size: 10 for each hop unless said, -1 takes all.
        tensorboard: A folder for the curves, which TensorBoard shows.
        out: The folder for the model; without it none is saved.
    """
    if "RANK" in os.environ:  # of torchrun: what torch's own sockets complain of is said in one line
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")
    running.begin()
    networks.check()
    candidate = _candidate(method, keep_prob, keep_ratio, gamma)
    batches = _mini_batch(batch_size, fanout)
    chosen = {name.replace("-", "_"): _plain(value) for name, value in named("--settings", settings).items()}

    from tadropedge._support.atomic import write_atomic
    from tadropedge._support.folder import claim
    from tadropedge.cli.reading import read_dataset
    from tadropedge.lab.training.callbacks import Checkpoint, Progress, TensorBoard
    from tadropedge.lab.training.experiment import Experiment
    from tadropedge.lab.training.model import save
    from tadropedge.lab.training.ranks import joined_ranks
    from tadropedge.lab.training.trainer import Trainer
    from tadropedge.lab.training.trial import TrainingSettings, Trial

    device = running.found_device()
    model = networks.load()
    training = TrainingSettings(epochs=networks.epochs, measure=networks.measure, mini_batch=batches)
    trial = Trial(
        candidate=candidate, learning_rate=learning_rate, weight_decay=weight_decay, dropout=dropout, settings=chosen,
        seed=running.seed,
    )  # fmt: skip
    with ExitStack() as held:
        held.enter_context(redirect_stdout(sys.stderr))  # what a module of one's own prints is no result
        ranks = held.enter_context(joined_ranks(device))
        if ranks.count > 1 and batches is None:
            raise TadropedgeError(f"{ranks.count} processes of torchrun share mini-batches: give --batch-size")
        experiment = Experiment(
            data=read_dataset(data, files, nodes, running.seed, quiet=not ranks.first),
            network=networks.network or "gcn", layers=networks.layers, hidden=networks.hidden, training=training,
            score_settings={} if networks.q is None else {"q": networks.q}, model=model, device=device,
        )  # fmt: skip
        experiment.check(candidate)
        try:
            experiment.settings_of(trial)
        except TadropedgeError as error:
            raise TadropedgeError(str(error), argument="settings") from error
        display = held.enter_context(Display(running.json or not ranks.first))
        callbacks: list[Any] = [Progress(display.epoch)]
        checkpoint = None
        if out is not None and ranks.first:
            claim(out, (MODEL, RESULTS))
            keeps(out)
        if out is not None and ranks.count == 1:
            checkpoint = Checkpoint(out, keep=True)  # until the model is saved
            callbacks.append(checkpoint)
        if tensorboard is not None and ranks.first:
            callbacks.append(TensorBoard(tensorboard))
        (outcome,) = Trainer(experiment, ranks=ranks).train([trial], callbacks, keep_state=out is not None)
    if ranks.first:
        document, told = _finished(outcome, experiment)
        if out is not None:
            save(out / MODEL, outcome, experiment)
            write_atomic(out / RESULTS, (json.dumps(document, indent=2) + "\n").encode())
            given = [*typed(files, running, leave=("json", "device", "seed")), *typed(nodes, leave=OF_TRAINING)]
            given += [] if networks.model is None else ["--model", networks.model]
            words = shlex.join(["tadropedge", "predict", str(out), data, *given])
            told += [f"saved in {out / MODEL}; predict with", f"  {words}"]
        if checkpoint is not None:
            checkpoint.remove()
        show(document, running.json, told)


def _finished(outcome: Outcome, experiment: Experiment) -> tuple[dict[str, Any], list[Any]]:
    """How good the model is, as a document and as what is printed."""
    from tadropedge.lab.reports.label import run_label
    from tadropedge.lab.reports.text import facts

    if outcome.failed:
        rate = outcome.trial.learning_rate
        raise TadropedgeError(f"the loss was not finite: try a smaller --learning-rate than {rate:g}")
    measure, epochs, data = experiment.training.measure, experiment.training.epochs, experiment.data
    document = {
        "data": data.name,
        "read": data.read,
        "method": str(outcome.trial.candidate),
        "measure": measure,
        "validation": outcome.val_score,
        "test": outcome.test_score,
        "best_epoch": outcome.best_epoch,
        "kept_share": outcome.kept_share,
        "seconds": outcome.seconds,
        "run": run_label(experiment.device, command_line()),
    }
    words = {
        "trained": f"{document['method']} on {data.name}: {outcome.seconds:.1f} s",
        f"test {measure}": f"{outcome.test_score:.2%}",
        "validation": f"{outcome.val_score:.2%} at its best epoch, {outcome.best_epoch + 1} of {epochs}",
        "edges": f"{outcome.kept_share:.1%} are kept, or that is their mean weight",
    }
    return document, [facts(words)]


def _candidate(method: str, keep_prob: float | None, keep_ratio: float | None, gamma: float | None) -> Candidate:
    """What is trained, with its budget."""
    from tadropedge.dropping import Dropping
    from tadropedge.lab.candidate import Candidate

    given: dict[str, Any] = chosen_budget(keep_prob, keep_ratio)
    given |= {} if gamma is None else {"gamma": gamma}
    try:
        candidate = Candidate.parse(method)
        if candidate.is_auto:
            raise TadropedgeError("auto is a search, which tadropedge compare runs: name a method such as cdf")
        found = replace(candidate, dropping=Dropping.parse(candidate.dropping, **given)) if given else candidate
    except TadropedgeError as error:
        raise TadropedgeError(str(error), argument="method") from error
    if found.dropping.is_free:
        raise TadropedgeError(
            f"--method {method} has no budget: write {method}@0.5, or give --keep-ratio or --keep-prob"
        )
    return found


def _mini_batch(size: int | None, fanout: tuple[str, ...]) -> MiniBatch | None:
    """How training is cut into mini-batches."""
    if size is None:
        if fanout:
            raise TadropedgeError(f"--fanout belongs to --batch-size, which is missing, got {','.join(fanout)}")
        return None
    from tadropedge.lab.training.trial import MiniBatch

    try:
        counts = {"fanout": tuple(map(int, fanout))} if fanout else {}
    except ValueError as error:
        raise TadropedgeError(f"--fanout is a list of whole numbers such as 15,10, or -1 for all: {error}") from None
    return MiniBatch(size=size, **counts)


def _plain(text: str) -> Any:
    """A number, true or false where a text looks like one.

    >>> [_plain(text) for text in ("gcn", "true", "0.1")]
    ['gcn', True, 0.1]
    """
    try:
        return json.loads(text)
    except ValueError:
        return text
