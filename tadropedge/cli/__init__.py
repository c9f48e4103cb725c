"""The command line: one file per command.

Nothing here imports torch, or anything else that is slow, before a command runs: help and typos are answered at once.
"""

from __future__ import annotations

import signal
import sys
from typing import Annotated, NoReturn

import typer

from tadropedge import __version__
from tadropedge.cli.compare import compare_command
from tadropedge.cli.recover import recover_command
from tadropedge.cli.report import report_command
from tadropedge.cli.reproduce import reproduce_command
from tadropedge.cli.train import train_command
from tadropedge.cli.weights import weights_command
from tadropedge.errors import TadropedgeError, reason
from tadropedge.memory import not_enough, ran_out

app = typer.Typer(
    help="Topology adaptive edge dropping: which edges to drop, and whether it helps on your graph.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,  # rich would take longer to import than everything else here
)
for command in (compare_command, recover_command, report_command, reproduce_command, train_command, weights_command):
    app.command(command.__name__.removesuffix("_command"))(command)

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


def run() -> None:
    """Run the command line; bad input is one line and exit code 2. SIGTERM is Ctrl-C: what is finished is kept."""
    reserve = None
    try:
        reserve = bytearray(RESERVE)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except TadropedgeError as error:
        del reserve
        _refuse(str(error))
    except Exception as error:
        del reserve
        if ran_out(error):  # the last net: whatever it was doing, in whatever words
            _refuse(str(not_enough(error, "this command", "a smaller graph or network, or more memory, may do")))
        if not isinstance(error, OSError):
            raise
        _refuse(f"'{error.filename}': {reason(error)}" if error.filename else reason(error))


def _refuse(words: str) -> NoReturn:
    print(f"error: {words}", file=sys.stderr)
    sys.exit(2)
