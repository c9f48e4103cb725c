"""The command line: one file per command; importing this package registers them all.

Nothing here imports torch, or anything else that is slow, before a command runs: help and typos are answered at once.
"""

from __future__ import annotations

import sys

from tadropedge.cli import compare, report, reproduce, train, weights
from tadropedge.cli.app import app
from tadropedge.errors import TadropedgeError

__all__ = ["app", "compare", "report", "reproduce", "run", "train", "weights"]


def run() -> None:
    """Run the command line; bad input is one line and exit code 2."""
    try:
        app()
    except (TadropedgeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
