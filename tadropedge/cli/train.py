"""``tadropedge train``: one model."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

from typer import Option

from tadropedge.cli.options import (
    METHODS,
    Gamma_,
    Json_,
    KeepProb_,
    LaboratoryOptions,
    Wait_,
    check_count,
    output_folder,
    with_laboratory_options,
)
from tadropedge.cli.progress import live_progress
from tadropedge.errors import TadropedgeError
from tadropedge.method import Method


@with_laboratory_options
def train_command(
    *,
    method: Annotated[str, Option(help=METHODS)] = "cdf",
    keep_prob: KeepProb_ = 0.7,
    gamma: Gamma_ = None,
    learning_rate: float = 0.01,
    weight_decay: float = 5e-4,
    dropout: float = 0.5,
    normalization: Annotated[str | None, Option(help="normalisation of the shift operator (default gcn)")] = None,
    self_weight: Annotated[bool, Option("--self-weight", help="add X W_self in every layer")] = False,
    batch_norm: Annotated[bool, Option("--batch-norm", help="normalise every layer over the nodes")] = False,
    batch_size: Annotated[int | None, Option(help="training nodes per step (default: the network's own)")] = None,
    options: LaboratoryOptions,
    out: Annotated[Path | None, Option(help="folder for the best model (safetensors and JSON)")] = None,
    wait: Wait_ = False,
    as_json: Json_ = False,
) -> None:
    """Train one model, print the accuracy it reached, and save it at its best epoch.

    Example: tadropedge train cora --method cdf --keep-prob 0.7 --layers 3 --out cora-model
    """
    Method.of(method)
    check_count("batch_size", batch_size)
    from tadropedge.training.config import SCORED, Trial
    from tadropedge.training.model_file import NUMBERS, SETTINGS, save_model

    trial = Trial.of(
        method, learning_rate=learning_rate, weight_decay=weight_decay, dropout=dropout, keep_prob=keep_prob,
        gamma=gamma, batch_size=batch_size, seed=options.seed,
        normalization=normalization, self_weight=self_weight or None, batch_norm=batch_norm or None,
    )  # fmt: skip
    with nullcontext() if out is None else output_folder(out, NUMBERS, SETTINGS, wait=wait):
        laboratory = options.laboratory()
        with live_progress(as_json) as report:
            laboratory.progress = lambda done, total: report("training", done, total)
            outcome = laboratory.train([trial], keep_state=out is not None)[0]
        if outcome.failed:
            raise TadropedgeError(f"the loss was not finite; try a smaller learning rate than {learning_rate:g}")
        if out is not None:
            data = laboratory.dataset
            save_model(
                out, outcome, laboratory.architecture, data.name, data.num_features, data.num_classes,
                num_nodes=data.graph.num_nodes, class_names=data.class_names,
            )  # fmt: skip
    answer = {"dataset": options.dataset, "method": method, "best_epoch": outcome.best_epoch, **outcome.kept}
    if outcome.scores is not None:  # named by what they are
        answer |= {name.replace("score", laboratory.measure): answer.pop(name) for name in SCORED}
    print(json.dumps(answer) if as_json else "\n".join(f"{key}: {value}" for key, value in answer.items()))
