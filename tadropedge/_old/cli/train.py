"""``tadropedge train``: one model."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from tadropedge._old.cli.options import (
    METHODS,
    Gamma_,
    Json_,
    KeepProb_,
    KeepRatio_,
    LaboratoryOptions,
    Wait_,
    check_count,
    check_score,
    chosen_budget,
    chosen_device,
    output_folder,
    with_laboratory_options,
)
from tadropedge._old.cli.progress import announced, live_progress
from tadropedge._old.distributed.launch import launched
from tadropedge._old.errors import TadropedgeError, lookup
from tadropedge._old.method import SENSITIVITY, Method
from tadropedge._old.watching import Safe, tell

if TYPE_CHECKING:
    from tadropedge._old.neighbours.plan import MiniBatches
    from tadropedge._old.training.config import GradientNorms, Outcome, Trial
    from tadropedge._old.training.laboratory import Laboratory

GRADIENTS = "gradient_norms.csv"
NORMALIZATIONS = (  # written out, because those of shift.py load torch
    "gcn", "first-order", "gcn-residual", "random-walk", "neighbour-mean", "adjacency", "spectral", "laplacian",
    "normalized-laplacian",
)  # fmt: skip
PARTITIONS = ("auto", "metis", "multilevel", "random")  # written out, because those of partition.py load torch
CHECKPOINT_EVERY = 20
KeepLast_ = Annotated[
    float | None,
    Option(metavar="P", help="--keep-prob or --keep-ratio of the last layer, with :nested (default 1)"),
]
Sensitivity_ = Annotated[
    float | None, Option(metavar="C", help="c of dropsens: share of sensitivity to leave (default 0.9)")
]
MiniBatch_ = Annotated[
    int | None, Option(metavar="N", help="train on so many nodes per step and their sampled neighbours")
]
Fanout_ = Annotated[
    str | None,
    Option(metavar="K,K", help="most neighbours per node, hop by hop, with --mini-batch (default -1: all)"),
]
EvaluateNodes_ = Annotated[
    int | None,
    Option(metavar="N", help="evaluate so many nodes at a time, with --mini-batch (default: all at once)"),
]
Partition_ = Annotated[
    str | None,
    Option(
        metavar=f"[{'|'.join(PARTITIONS)}]",
        help="which process of torchrun holds which nodes (default auto: metis where pymetis is installed)",
    ),
]
CheckpointEvery_ = Annotated[
    int | None,
    Option(metavar="N", help=f"under torchrun, epochs between checkpoints in --out (default {CHECKPOINT_EVERY})"),
]
BatchSize_ = Annotated[int | None, Option(metavar="N", help="training nodes per step (default: the network's own)")]


@with_laboratory_options
@announced
def train_command(
    *,
    method: Annotated[str, Option(metavar="NAME", help=f"such as {METHODS}")] = "cdf",
    keep_prob: KeepProb_ = None,
    keep_ratio: KeepRatio_ = None,
    keep_last: KeepLast_ = None,
    sensitivity: Sensitivity_ = None,
    gamma: Gamma_ = None,
    learning_rate: Annotated[float, Option(metavar="X", help="step size of Adam")] = 0.01,
    weight_decay: Annotated[float, Option(metavar="X", help="weight of the squared parameters in the loss")] = 5e-4,
    dropout: Annotated[float, Option(metavar="P", help="probability of dropping an entry of a layer")] = 0.5,
    normalization: Annotated[
        str | None, Option(metavar="NAME", help=f"{', '.join(NORMALIZATIONS)} (default gcn)")
    ] = None,
    self_weight: Annotated[bool, Option("--self-weight", help="add X W_self in every layer")] = False,
    batch_norm: Annotated[bool, Option("--batch-norm", help="normalise every layer over the nodes")] = False,
    batch_size: BatchSize_ = None,
    mini_batch: MiniBatch_ = None,
    fanout: Fanout_ = None,
    evaluate_nodes: EvaluateNodes_ = None,
    gradient_norms: Annotated[
        bool, Option("--gradient-norms", help="record the gradient norm of every layer; with --out, also as csv")
    ] = False,
    options: LaboratoryOptions,
    out: Annotated[Path | None, Option(metavar="DIR", help="folder for the best model (default: none)")] = None,
    partition: Partition_ = None,
    checkpoint_every: CheckpointEvery_ = None,
    wait: Wait_ = False,
    as_json: Json_ = False,
) -> None:
    """Train one model, print the accuracy it reached, and save it at its best epoch."""
    budget = _checked(method, keep_prob, keep_ratio, keep_last, sensitivity)
    check_score(Method.of(method).score, options.score_column)
    check_count("batch_size", batch_size)
    plan = _mini_batches(mini_batch, fanout, evaluate_nodes, batch_size)
    _check_together(partition, checkpoint_every, out, plan)
    from tadropedge._old.training.config import Trial
    from tadropedge._old.training.model_file import NUMBERS, SETTINGS

    trial = Trial.of(
        method, learning_rate=learning_rate, weight_decay=weight_decay, dropout=dropout,
        gamma=gamma, keep_last=keep_last, sensitivity=sensitivity, **budget, batch_size=batch_size, seed=options.seed,
        normalization=normalization, self_weight=self_weight or None, batch_norm=batch_norm or None,
    )  # fmt: skip
    files = (NUMBERS, SETTINGS, GRADIENTS)
    lock = nullcontext() if out is None else output_folder(out, *files, wait=wait)
    finish = partial(_finish, options=options, out=out, gradient_norms=gradient_norms, as_json=as_json)
    if plan is None and launched():
        from tadropedge._old.cli.together import train_together

        train_together(
            options, trial, finish,
            lock=lock, out=out, partition=partition or "auto", every=checkpoint_every or CHECKPOINT_EVERY,
            gradient_norms=gradient_norms, as_json=as_json,
        )  # fmt: skip
        return
    how = {"gradient_norms": gradient_norms, "as_json": as_json, "keep_state": out is not None}
    if plan is None:
        _train(options, trial, finish, lock, **how)
    else:
        _train_sampled(options, trial, plan, finish, lock, **how)


Finish = Callable[["Laboratory", "Outcome"], None]


def _train(
    options: LaboratoryOptions,
    trial: Trial,
    finish: Finish,
    lock: AbstractContextManager[None],
    *,
    gradient_norms: bool,
    as_json: bool,
    keep_state: bool,
) -> None:
    """One training on the whole graph, by this process."""
    with lock:
        laboratory = options.laboratory(gradient_norms=gradient_norms)
        with live_progress(as_json) as report:
            tell(Safe("trainings", 0, 1))
            report("training", 0, 1)
            outcome = laboratory.train([trial], keep_state=keep_state)[0]
            report("training", 1, 1)
        finish(laboratory, outcome)


def _train_sampled(
    options: LaboratoryOptions,
    trial: Trial,
    plan: MiniBatches,
    finish: Finish,
    lock: AbstractContextManager[None],
    *,
    gradient_norms: bool,
    as_json: bool,
    keep_state: bool,
) -> None:
    """One training by mini-batches, by this process or by all that torchrun started, of which the first writes."""
    from tadropedge._old.training.ranks import Ranks

    with ExitStack() as held:
        ranks = Ranks()
        if launched():
            from tadropedge._old.distributed.group import SILENCE, joined, one_voice

            group = held.enter_context(joined(chosen_device(options.device), SILENCE))
            held.enter_context(one_voice(lambda: "nothing was kept: start again"))
            ranks = Ranks(group.rank, group.size)
        if ranks.first:
            held.enter_context(lock)
        laboratory = options.laboratory(gradient_norms=gradient_norms)
        with live_progress(as_json or not ranks.first) as report:
            tell(Safe("trainings", 0, 1))
            report("training", 0, 1)
            outcome = laboratory.train_sampled(trial, plan, ranks=ranks, keep_state=keep_state and ranks.first)
            report("training", 1, 1)
        if ranks.first:
            finish(laboratory, outcome)


def _mini_batches(
    size: int | None, fanout: str | None, evaluate: int | None, batch_size: int | None
) -> MiniBatches | None:
    """How training is cut into mini-batches, checked before torch is loaded."""
    from tadropedge._old.neighbours.plan import ALL, MiniBatches, read_fanout

    check_count("mini_batch", size)
    check_count("evaluate_nodes", evaluate)
    if size is None:
        for flag, value in (("--fanout", fanout), ("--evaluate-nodes", evaluate)):
            if value is not None:
                raise TadropedgeError(f"{flag} belongs to --mini-batch N, which is missing, got {value!r}")
        return None
    if batch_size is not None:
        raise TadropedgeError(
            f"--batch-size and --mini-batch exclude each other, got {batch_size} and {size}: the first is for steps on "
            "the whole graph"
        )
    return MiniBatches(size=size, fanout=(ALL,) if fanout is None else read_fanout(fanout), evaluate=evaluate)


def _finish(
    laboratory: Laboratory,
    outcome: Outcome,
    *,
    options: LaboratoryOptions,
    out: Path | None,
    gradient_norms: bool,
    as_json: bool,
) -> None:
    """Save the model where it is asked for, and print what it reached."""
    from tadropedge._old.training.model_file import save_model

    if outcome.failed:
        rate = outcome.trial.learning_rate
        raise TadropedgeError(f"the loss was not finite; try a smaller learning rate than {rate:g}")
    if out is not None:
        data = laboratory.dataset
        save_model(
            out, outcome, laboratory.architecture, data.name, data.num_features, data.num_classes,
            num_nodes=data.graph.num_nodes, class_names=data.class_names,
            q=laboratory.q, laplacian=laboratory.laplacian,
        )  # fmt: skip
        _write_gradients(out / GRADIENTS, outcome.gradient_norms if gradient_norms else None)
    answer, lines = _answer(options.told, laboratory.measure, outcome, gradient_norms)
    saved = [] if out is None else [f"saved in {out}; predict with: tadropedge predict {out} {options.again}"]
    print(json.dumps(answer) if as_json else "\n".join(lines + saved))


def _answer(dataset: str, measure: str, outcome: Outcome, gradient_norms: bool) -> tuple[dict[str, Any], list[str]]:
    """What is printed, as a table and as lines."""
    from tadropedge._old.training.config import SCORED

    method = outcome.trial.method
    answer = {"dataset": dataset, "method": method, "best_epoch": outcome.best_epoch, **outcome.kept}
    if outcome.scores is not None:  # named by what they are
        answer |= {name.replace("score", measure): answer.pop(name) for name in SCORED}
    lines = [f"{key}: {value:.4f}" if isinstance(value, float) else f"{key}: {value}" for key, value in answer.items()]
    if gradient_norms and outcome.gradient_norms is not None:
        answer["gradient_norms"] = told = _gradients(outcome.gradient_norms)
        lines += _gradient_lines(told)
    return answer, lines


def _gradients(found: GradientNorms) -> dict[str, Any]:
    """The gradient norms of every layer at the first, the middle and the last epoch that was evaluated."""
    recorded = found.epochs
    epochs = sorted({recorded[0], recorded[(len(recorded) - 1) // 2], recorded[-1]})
    norms = {layer: found.norms[epochs, place].tolist() for place, layer in enumerate(found.layers)}
    return {"epochs": epochs, "layers": norms}


def _gradient_lines(told: dict[str, Any]) -> list[str]:
    """The first layer and the last, in words."""
    epochs, layers = ", ".join(map(str, told["epochs"])), list(told["layers"])
    norms = {name: ", ".join(f"{norm:.3g}" for norm in told["layers"][name]) for name in (layers[0], layers[-1])}
    return [f"gradient norm of {name} in epochs {epochs}: {mine}" for name, mine in norms.items()]


def _write_gradients(path: Path, found: GradientNorms | None) -> None:
    """One line for each epoch that was evaluated; those of the model that was here before are not those of this one."""
    from tadropedge._old.atomic import write_atomic
    from tadropedge._old.publish.tables import csv_lines

    if found is None:
        path.unlink(missing_ok=True)
        return
    rows = [[epoch, *map(float, found.norms[epoch])] for epoch in found.epochs]
    write_atomic(path, csv_lines([["epoch", *found.layers], *rows]))


def _check_together(partition: str | None, every: int | None, out: Path | None, plan: MiniBatches | None) -> None:
    """Refuse what belongs to a training of several processes where there is one, or where nothing is written."""
    check_count("checkpoint_every", every)
    if partition is not None:
        lookup("partition", partition, dict.fromkeys(PARTITIONS))
    given = {"--partition": partition, "--checkpoint-every": every}
    if plan is not None and (flags := [flag for flag, value in given.items() if value is not None]):
        raise TadropedgeError(
            f"{flags[0]} belongs to a training on the whole graph: leave out --mini-batch {plan.size}"
        )
    if not launched() and (flags := [flag for flag, value in given.items() if value is not None]):
        raise TadropedgeError(
            f"{flags[0]} belongs to a training by several processes: torchrun --nproc-per-node=K -m tadropedge train …"
        )
    if every is not None and out is None:
        raise TadropedgeError(f"--checkpoint-every {every} needs --out, the folder that checkpoints are written to")


def _checked(
    method: str, keep_prob: float | None, keep_ratio: float | None, keep_last: float | None, sensitivity: float | None
) -> dict[str, float]:
    """The budget of the method; settings that it has no use for are refused before torch is loaded."""
    one = Method.of(method)
    if one.auto:
        raise TadropedgeError(
            f"{one.name!r} is a search over methods, which tadropedge compare runs; to train one model, name a method "
            "such as degree-proportional"
        )
    budget = {"--keep-prob": keep_prob, "--keep-ratio": keep_ratio}
    if one.strategy is None and (given := [flag for flag, value in budget.items() if value is not None]):
        raise TadropedgeError(
            f"{given[0]} says how many edges a method keeps, and {method!r} drops none: leave it out, or name a "
            "method such as dropedge"
        )
    if keep_last is not None and "nested" not in one.options:
        raise TadropedgeError(
            f"--keep-last belongs to the option nested, such as {one.reference}:nested, got {method!r}"
        )
    if sensitivity is not None and one.strategy != SENSITIVITY:
        raise TadropedgeError(f"--sensitivity belongs to the method {SENSITIVITY}, got {method!r}")
    return chosen_budget(keep_prob, keep_ratio)
