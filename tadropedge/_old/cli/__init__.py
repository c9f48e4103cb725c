"""The command line: one file per command.

Nothing here imports torch, or anything else that is slow, before a command runs: help and typos are answered at once.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated, Any, NoReturn

import typer

from tadropedge._old import __version__
from tadropedge._old.cli.compare import compare_command
from tadropedge._old.cli.datasets import datasets_command
from tadropedge._old.cli.doctor import doctor_command
from tadropedge._old.cli.examples import epilog, first_sentence
from tadropedge._old.cli.flags import naming_flags
from tadropedge._old.cli.methods import methods_command
from tadropedge._old.cli.predict import predict_command
from tadropedge._old.cli.progress import command_line, stop_on_signals
from tadropedge._old.cli.recover import recover_command
from tadropedge._old.cli.regimes import regimes_command
from tadropedge._old.cli.report import report_command
from tadropedge._old.cli.reproduce import reproduce_command
from tadropedge._old.cli.sparsify import sparsify_command
from tadropedge._old.cli.train import train_command
from tadropedge._old.cli.weights import weights_command
from tadropedge._old.distributed.launch import end_after_first, is_first
from tadropedge._old.errors import SpreadError, TadropedgeError, one_line, reason, show
from tadropedge._old.memory import not_enough, ran_out

app = typer.Typer(
    help="Topology adaptive edge dropping: which edges to drop, and whether it helps on your graph.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,  # rich would take longer to import than everything else here
    context_settings={"max_content_width": 120},  # where the terminal is that wide
)
COMMANDS = (
    compare_command, train_command, predict_command, weights_command, sparsify_command, regimes_command,
    methods_command, datasets_command, report_command, recover_command, reproduce_command, doctor_command,
)  # fmt: skip
for command in COMMANDS:
    name = command.__name__.removesuffix("_command")
    app.command(name, short_help=first_sentence(command), epilog=epilog(name))(naming_flags(command))

RESERVE = 2**22  # bytes that are given back to say that there are none left


def _print_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options of the command itself."""


USAGE_ERROR: Any = typer.BadParameter.__base__  # of wrong options and commands; click's or typer's own, by version


def run() -> None:
    """Run the command line; bad input is one line and exit code 2. SIGTERM is Ctrl-C: what is finished is kept."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without umlauts shows them escaped
            stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = _warned
    if not is_first():
        warnings.simplefilter("ignore")
    reserve = None
    try:
        reserve = bytearray(RESERVE)
        stop_on_signals()
        _check_words(sys.argv[1:])
        code = app(standalone_mode=len(sys.argv) < 2)  # which shows the help
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except BrokenPipeError:  # as of "| head"; what is left to print goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except Exception as error:
        del reserve
        words = _words(error)
        if not (is_first() or isinstance(error, SpreadError)):  # of several processes, the first one says it
            end_after_first()
        _refuse(words)
    sys.exit(code)


def _words(error: Exception) -> str:
    """What an error says to a user; one that is no user's is raised again."""
    if isinstance(error, USAGE_ERROR):
        place = error.ctx.command_path if error.ctx else "tadropedge"
        return f"{error.format_message()} In: {command_line()} (see {place} --help)"
    if isinstance(error, TadropedgeError):
        return str(error)
    if ran_out(error):  # the last net: whatever it was doing, in whatever words
        return str(not_enough(error, "this command", "a smaller graph or network, or more memory, may do"))
    if isinstance(error, OSError):
        return f"'{error.filename}': {reason(error)}" if error.filename else reason(error)
    raise error


def _check_words(words: list[str]) -> None:
    """Refuse what no file can hold, and what is empty: as a rule a shell's variable that is not set."""
    for word in words:
        if "\0" in word or word != word.encode(errors="replace").decode():
            raise TadropedgeError(f"arguments must be text in UTF-8 without NUL characters, got {show(word, False)}")
        if not word or (word.startswith("--") and word.find("=") == len(word) - 1):
            raise TadropedgeError(f"an argument is empty, got {word!r} in {show(' '.join(words), False)}")


def _warned(message: Warning | str, *where: object, **line: object) -> str:
    """A warning as one line: which line of this package gave it is of no use here."""
    return f"warning: {one_line(' '.join(str(message).split()))}\n"


def _refuse(words: str) -> NoReturn:
    print(f"error: {one_line(' '.join(words.split()))}", file=sys.stderr)
    sys.exit(2)
