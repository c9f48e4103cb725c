"""Errors in the words of the command line: the flag that the user typed, where Python would name an argument.

Every check is written once, for Python, and says ``keep_ratio must lie in [0, 1]``. A command translates what reaches
it: ``--keep-ratio must lie in [0, 1]``; and where an error names no flag, it begins with the one whose value it
repeats.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

from typer.models import ArgumentInfo

from tadropedge._old.errors import NotEnoughMemoryError, TadropedgeError

# What Python calls otherwise than the command line.
OTHER_NAMES = {
    "root": "data_root",
    "name": "dataset",
    "method": "methods",
    "dataset or file": "graph",
    "network": "model",
}
OTHER_NAMES |= {"strategy": "methods", "data": "dataset"}
ABOUT_SPLITS = ("split_sizes", "per_class")
VERB = r"(?= (?:must|is|has|holds|belongs|needs|cannot|and|are|'|names))"
FOREIGN_OPTION = re.compile(r"^unknown option of (.+?) '(\w+)'; choose from ([\w, ]+)")
UNKNOWN = re.compile(r"^(?:[^':]+: )?unknown ([\w -]+?) ['\"]")


def naming_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Let the errors of a command name its own flags."""

    @wraps(command)
    def named(*words: Any, **given: Any) -> None:
        try:
            command(*words, **given)
        except NotEnoughMemoryError:  # whatever was given, it is too much
            raise
        except TadropedgeError as error:
            told = in_flags(str(error), flags_of(command), given)
            if told == str(error):
                raise
            raise type(error)(told) from error

    return named


def flags_of(command: Callable[..., None]) -> dict[str, str]:
    """What the user types for each parameter of a command: a flag, or the name of an argument in capitals."""
    found = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        told = next((each for each in getattr(parameter.annotation, "__metadata__", ())), None)
        if isinstance(told, ArgumentInfo):
            found[name] = told.metavar or name.upper()
        else:
            # The first name of an annotated option is where its default would be.
            names = (getattr(told, "default", None), *(getattr(told, "param_decls", None) or ()))
            declared = [each for each in names if isinstance(each, str) and each.startswith("--")]
            found[name] = declared[0] if declared else f"--{name.replace('_', '-')}"
    return found


def in_flags(text: str, flags: Mapping[str, str], given: Mapping[str, object]) -> str:
    """What an error says, with the flags of a command for the arguments of a function.

    >>> flags = {"graph": "GRAPH", "keep_ratio": "--keep-ratio", "header": "--header", "nodes": "--nodes"}
    >>> in_flags("keep_ratio must lie in [0, 1], got 2", flags, {})
    '--keep-ratio must lie in [0, 1], got 2'
    >>> in_flags("roads.csv: needs a table: nodes='nodes.csv'", flags, {"graph": "maps/roads.csv"})
    'GRAPH roads.csv: needs a table: --nodes nodes.csv'
    >>> in_flags("say whether it is one (header=False)", flags, {})
    'say whether it is one (--no-header)'
    """
    known = {**{other: flags[name] for other, name in OTHER_NAMES.items() if name in flags}, **flags}
    if foreign := FOREIGN_OPTION.match(text):
        dataset, option, others = foreign.groups()
        taken = [flags[name] for name in others.split(", ") if flags.get(name, "").startswith("--")]
        return (
            f"{known.get(option, option)} does not belong to {dataset}, which takes {', '.join(taken) or 'no options'}"
        )
    names = _either({*flags, "root"} & set(known))
    text = re.sub(rf"(?<![\w'/-])({names})=('[^']*'|[^\s,;:)]+)", lambda found: _given(known[found[1]], found[2]), text)
    plain = _either({name for name in flags if "_" in name or name == "q"})
    text = re.sub(rf"(?<![\w'/.-])({plain})(?![\w=/.'-])", lambda found: known[found[1]], text)
    text = re.sub(rf"^(each of )?({names}){VERB}", lambda found: (found[1] or "") + known[found[2]], text)
    text = re.sub(rf"(?<=setting )'({names})'", lambda found: known[found[1]], text)
    text = re.sub(r"(?<=its settings are )[\w, -]+", lambda found: _listed(found[0], flags), text)
    return _with_flag(text, known, given)


def _either(names: Collection[str]) -> str:
    """A pattern of any of these names; of none, one that nothing matches."""
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True)) or "(?!)"


def _listed(names: str, flags: Mapping[str, str]) -> str:
    """Settings by their flags; those that no flag gives are left out."""
    found = [flags.get(name, name) for name in names.split(", ")]
    return ", ".join(name for name in found if name.startswith("--")) or names


def _given(flag: str, value: str) -> str:
    """A flag with its value, as it is typed."""
    if value in ("True", "False"):
        return flag if value == "True" else f"--no-{flag.removeprefix('--')}"
    return f"{flag} {value.strip(chr(39))}"


def _with_flag(text: str, flags: Mapping[str, str], given: Mapping[str, object]) -> str:
    """``text``, behind the flag it is about: of the file it begins with, or any where it names none."""
    told = {name: ",".join(map(str, value)) if isinstance(value, list) else value for name, value in given.items()}
    paths = {name: str(value) for name, value in told.items() if isinstance(value, str | Path) and name in flags}
    for name, value in paths.items():
        if (file := Path(value).name) and re.match(rf"({re.escape(file)}|{re.escape(value)})[: ]", text):
            return f"{flags[name]} {text}"
    if any(re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", text) for flag in set(flags.values())):
        return text
    kind = UNKNOWN.match(text)
    if kind and kind[1] in flags:
        return f"{flags[kind[1]]}: {text}"
    splits = [name for name in ABOUT_SPLITS if given.get(name) is not None and text.startswith("a split of ")]
    about = next((name for name in (*splits, *paths) if name in splits or _repeats(text, paths[name])), None)
    return text if about is None else f"{flags[about]}: {text}"


def _repeats(text: str, value: str) -> bool:
    """Whether an error repeats a value, one of several in it, or the file of a path."""
    file = Path(value).name
    quoted = any(f"'{part}'" in text for part in (value, *value.split(",")) if part)
    return quoted or f"'{value}/" in text or ("." in file and file in text)
