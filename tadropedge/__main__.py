"""The command ``tadropedge``, and what it says where the extra packages it needs are missing."""

import os
import sys


def main() -> None:
    """Run the command line; errors are one line and exit code 2."""
    try:
        from tadropedge.cli.app import run
    except ModuleNotFoundError as error:
        print(f"error: the command line needs more packages ({error}): pip install 'tadropedge[lab]'", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("\nstopped: nothing was done yet", file=sys.stderr)
        sys.exit(130)
    code = run()
    if code == 130:  # Python itself would end by a signal, if a library was interrupted while it was imported
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
