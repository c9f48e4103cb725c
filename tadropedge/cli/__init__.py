"""The command line: one file per command.

Nothing here imports torch, or anything else that is slow, before a command runs: help and typos are answered at once.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, NoReturn

import typer

from tadropedge import __version__
from tadropedge.cli.compare import compare_command
from tadropedge.cli.progress import command_line
from tadropedge.cli.report import report_command
from tadropedge.cli.reproduce import reproduce_command
from tadropedge.cli.train import train_command
from tadropedge.cli.weights import weights_command
from tadropedge.errors import TadropedgeError, show

app = typer.Typer(
    help="Topology adaptive edge dropping: which edges to drop, and whether it helps on your graph.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,  # rich would take longer to import than everything else here
)
for command in (compare_command, report_command, reproduce_command, train_command, weights_command):
    app.command(command.__name__.removesuffix("_command"))(command)


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
LONGEST = 500  # characters of an error


def run() -> None:
    """Run the command line; bad input is one line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without umlauts shows them escaped
            stream.reconfigure(errors="backslashreplace")
    try:
        _check_words(sys.argv[1:])
        code = app(standalone_mode=len(sys.argv) < 2)  # which shows the help
        sys.stdout.flush()
    except BrokenPipeError:  # as of "| head"; what is left to print goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except USAGE_ERROR as error:
        place = error.ctx.command_path if error.ctx else "tadropedge"
        _refuse(f"{error.format_message()} In: {command_line()} (see {place} --help)")
    except (TadropedgeError, OSError) as error:
        _refuse(error)
    sys.exit(code)


def _check_words(words: list[str]) -> None:
    """Refuse what no file can hold, and what is empty: as a rule a shell's variable that is not set."""
    for word in words:
        if "\0" in word or word != word.encode(errors="replace").decode():
            raise TadropedgeError(f"arguments must be text in UTF-8 without NUL characters, got {show(word, False)}")
        if not word or (word.startswith("--") and word.find("=") == len(word) - 1):
            raise TadropedgeError(f"an argument is empty, got {word!r} in {show(' '.join(words), False)}")


def _refuse(reason: object) -> NoReturn:
    """End with one line, also where the reason has several, or repeats an input that is long or not printable."""
    text = " ".join(str(reason).split())
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
    print("error:", "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text), file=sys.stderr)
    sys.exit(2)
