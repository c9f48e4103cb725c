"""The command ``tadropedge``, and what it says where the extra packages it needs are missing."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; errors are one line and exit code 2."""
    try:
        from tadropedge._old.cli import run

        run()
    except ModuleNotFoundError as error:  # also of a package that a command imports when it runs
        print(f"error: the command line needs more packages ({error}): pip install 'tadropedge[lab]'", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
