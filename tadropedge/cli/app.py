"""The command ``tadropedge`` that every other file here adds its own to."""

from __future__ import annotations

import typer

app = typer.Typer(
    help="Topology adaptive edge dropping: which edges to drop, and whether it helps on your graph.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
