"""The command that trains what a comparison advises, with the settings that were chosen for it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tadropedge._old.comparison.results import Results
from tadropedge._old.publish.wording import listed
from tadropedge._old.registry import NETWORKS

# Settings that are options of ``tadropedge train``; a switch is given where it is true.
VALUED = (
    *("keep_prob", "keep_ratio", "keep_last", "sensitivity", "gamma"),
    *("learning_rate", "weight_decay", "dropout", "normalization", "batch_size"),
)
SWITCHES = ("self_weight", "batch_norm")
BUDGET = ("keep_prob", "keep_ratio", "keep_last")
UNTOLD = ("method", "kept_share")  # of what is told of a chosen trial
# Options of ``tadropedge compare`` that ``tadropedge train`` lacks or the settings tell: with a value, and without.
TUNING = (
    *("--methods", "--trials", "--choose-splits", "--seeds", "--keep-ratio", "--storage", "--out"),
    *("--engine", "--address", "--gpus-per-batch", "--batch", "--deadline"),  # of who trains a search
)
FLAGS = ("--wait", "--json")
CONDITIONS = "conditions"  # in the label of a run that no command made
PLACE = "DATA"  # stands for data that no command named


@dataclass(frozen=True, kw_only=True)
class Winner:
    """A ``command``, and a ``note`` where it needs one: what it cannot say, or what to put into it."""

    command: str
    note: str = ""


def winner(results: Results) -> Winner | None:
    """The command that trains what the advice says to use; ``None`` for results without advice.

    The data and the network are those of the command that made the results. Where a function made them, their network
    and depth are told, and ``DATA`` stands in the place of the data.

    >>> from tadropedge._old.comparison.results import Advice
    >>> advice = Advice(words="…", use="auto", settings={"method": "cdf", "keep_prob": 0.7, "self_weight": True})
    >>> run = {"command": "tadropedge compare 'my graph.csv' --layers 3 --trials 9 --out here --seeds=5"}
    >>> winner(Results([], run, advice=advice)).command
    "tadropedge train 'my graph.csv' --layers 3 --method cdf --keep-prob 0.7 --self-weight --out model"
    """
    advice = results.advice
    if advice is None:
        return None
    method = str(advice.settings.get("method", advice.use))
    told = {name: value for name, value in advice.settings.items() if name not in UNTOLD}
    if advice.reached:  # a budget that the options of the method could meet took the place of the one that was drawn
        told = {name: value for name, value in told.items() if name not in BUDGET} | dict(advice.reached)
    command, note = _data(results)
    backbone = results.rows[0].backbone if results.rows else ""
    lacking = [
        name for name, value in told.items() if not _can_be_told(name) and value != _default(method, backbone, name)
    ]
    if lacking:
        note = f"{note} It has no option for {listed(f'{name} {told[name]}' for name in lacking)}.".strip()
    words = ("train", *command, "--method", method, *_options(told), "--out", "model")
    return Winner(command=f"tadropedge {shlex.join(words)}", note=note)


def _can_be_told(name: str) -> bool:
    return name in VALUED or name in SWITCHES


def _default(method: str, backbone: str, name: str) -> object:
    """What the network of a method takes for a setting that is not told; ``None`` where it is not known here."""
    front = method.partition(":")[0].partition("+")[0]
    network = NETWORKS.get(front, NETWORKS.get(backbone))
    return network.settings[name].default if network is not None and name in network.settings else None


def _options(settings: Mapping[str, object]) -> Iterator[str]:
    for name, value in settings.items():
        option = f"--{name.replace('_', '-')}"
        if name in SWITCHES and value is True:
            yield option
        elif name in VALUED:
            yield from (option, str(value))


def _data(results: Results) -> tuple[list[str], str]:
    """The arguments of ``compare`` that ``train`` takes, too; or what is known of them, with a note."""
    typed = results.run.get("command")
    words = shlex.split(typed) if isinstance(typed, str) else []
    if words[1:2] == ["compare"]:
        return list(_shared(words[2:])), ""
    known: dict[str, object] = {}
    for row in results.rows[:1]:
        known |= {"--backbone": row.backbone, "--layers": row.layers}
    if results.protocol is not None:
        known["--epochs"] = results.protocol.epochs
    conditions = results.run.get(CONDITIONS)
    if isinstance(conditions, dict):
        known |= {f"--{name.replace('_', '-')}": value for name, value in conditions.items()}
    told = [str(part) for pair in known.items() for part in pair]
    return [PLACE, *told], f"Put the name or the path of the data in the place of {PLACE}."


def _shared(words: list[str]) -> Iterator[str]:
    """Words of a command without the options that belong to tuning and judging."""
    rest = iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        if name in TUNING:
            if not equals:
                next(rest, None)
        elif word not in FLAGS:
            yield word
