"""The command line: one file per command.

Nothing here imports torch, or anything else that is slow, before a command runs: help and typos are answered at once.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tadropedge import __version__
from tadropedge.cli.compare import compare_command
from tadropedge.cli.report import report_command
from tadropedge.cli.reproduce import reproduce_command
from tadropedge.cli.train import train_command
from tadropedge.cli.weights import weights_command
from tadropedge.errors import TadropedgeError
from tadropedge.memory import not_enough, ran_out

app = typer.Typer(
    help="Topology adaptive edge dropping: which edges to drop, and whether it helps on your graph.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,  # rich would take longer to import than everything else here
)
for command in (compare_command, report_command, reproduce_command, train_command, weights_command):
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
    """Run the command line; bad input is one line and exit code 2."""
    reserve = None
    try:
        reserve = bytearray(RESERVE)
        app()
    except Exception as error:
        del reserve
        known = isinstance(error, TadropedgeError)
        if not known and ran_out(error):  # the last net: whatever it was doing, in whatever words
            error = not_enough(error, "this command", "a smaller graph or network, or more memory, may do")
        elif not known and not isinstance(error, OSError):
            raise
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
