"""The command ``tadropedge``: its commands, ``--config`` and ``--completion``, and one line for whatever goes wrong."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from contextlib import suppress
from io import UnsupportedOperation
from pathlib import Path
from typing import IO, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter
from cyclopts.config import Toml

from tadropedge import __version__
from tadropedge.cli.output import INTERRUPTIONS, stopped
from tadropedge.errors import TadropedgeError, reason

COMMANDS = ("compare", "train", "predict", "weights", "sparsify", "report", "datasets", "methods", "doctor")
MODULES = {"datasets": "lists", "methods": "lists"}  # the others stand in a file of their own name
ITSELF = "The command line itself"
LONGEST = 200  # characters of one word in a line of error
SIGNALS = (signal.SIGINT, signal.SIGTERM)

app = App(
    name="tadropedge",
    help="Score the edges of a graph; weigh, drop or prune them by the score; find out whether it helped.",
    help_flags=("--help", "-h"),
    help_format="plaintext",
    version=__version__,
    result_action="return_value",
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(negative=()),
)
app.meta.suppress_keyboard_interrupt = False
for name in COMMANDS:  # each is imported when it is asked for
    app.command(f"tadropedge.cli.{MODULES.get(name, name)}:{name}", name=name)


@app.meta.default
def launch(
    *words: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    config: Annotated[Path | None, Parameter(group=ITSELF)] = None,
    completion: Annotated[Literal["bash", "zsh", "fish"] | None, Parameter(group=ITSELF)] = None,
) -> int:
    """Run one command; most return nothing, which is 0.

    Args:
        words: The command and its options.
        config: A TOML file with options of commands, such as a table [compare] with trials = 8.
        completion: Print the completion script of a shell: source <(tadropedge --completion zsh), after compinit.
    """
    if completion is not None:
        print(app.generate_completion(shell=completion))
        if completion == "zsh":  # whose script is made to lie in a folder of $fpath, under a name of its own
            print("compdef _cyclopts_tadropedge tadropedge")
        return 0
    if config is not None:
        options = Toml(config, must_exist=True)
        try:
            app.config = (options,) if options.config else ()
        except CycloptsError as error:
            raise TadropedgeError(f"--config: '{config}' cannot be read: {error}") from error
    return app(words, print_error=False, exit_on_error=False) or 0


def run(words: list[str] | None = None) -> int:
    """Run the command line; the exit code is 2 where the input is wrong, and 130 after an interruption."""
    words = sys.argv[1:] if words is None else words
    warnings.formatwarning = _warned
    app.config = ()  # of the command before, in somebody's own program

    def stop(number: int, _: object) -> None:
        INTERRUPTIONS.append(number)
        raise KeyboardInterrupt

    with suppress(ValueError):  # in a thread of somebody's own program signals are theirs
        for number in SIGNALS:
            signal.signal(number, stop)
    try:
        _check_stream(sys.stdout)
        if not words or words[0] not in COMMANDS:
            for name in COMMANDS:  # for the list of commands, which shows their first lines
                app[name]
        code = app.meta(words or ["--help"], print_error=False, exit_on_error=False)
        sys.stdout.flush()
        return int(code or 0)
    except KeyboardInterrupt:
        return _interrupted()
    except SystemExit as error:
        return _interrupted() if INTERRUPTIONS else error.code if isinstance(error.code, int) else 0
    except Exception as error:  # after an interruption a library that was being imported has made another error of it
        return _interrupted() if INTERRUPTIONS else _refuse(_said(error, words))


def _said(error: Exception, words: list[str]) -> str:
    """What an error says to a user; one that is no user's is raised again.

    >>> _said(TadropedgeError("must be at most 1, got 3", argument="keep_ratio"), ["weights", "karate"])
    '--keep-ratio: must be at most 1, got 3'
    """
    if isinstance(error, TadropedgeError):
        command = next((word for word in words if word in COMMANDS), None)
        flag = f"--{(error.argument or '').replace('_', '-')}"
        known = app[command].assemble_argument_collection() if command is not None else ()
        is_flag = any(flag in argument.names for argument in known) and flag not in str(error)
        return f"{flag}: {error}" if is_flag else str(error)
    if isinstance(error, CycloptsError):
        return str(error)
    if isinstance(error, ImportError) and error.name in ("ray", "pandas", "pyarrow", "matplotlib", "networkx"):
        return f"{error.name} is not installed: pip install {error.name}"
    if isinstance(error, BrokenPipeError):
        return "the output stream is closed: nothing more can be printed"
    if isinstance(error, OSError):
        return f"'{error.filename}': {reason(error)}" if error.filename else reason(error)
    from tadropedge._support.memory import ran_out

    if ran_out(error):
        return "not enough memory: a smaller graph or network, or more memory, may do"
    raise error


def _refuse(words: str) -> int:
    line = " ".join(word if len(word) <= LONGEST else f"{word[:LONGEST]}..." for word in words.split())
    line = "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in line)
    return _last_line(f"error: {line}", 2)


def _interrupted() -> int:
    for number in SIGNALS:  # impatience changes nothing any more
        signal.signal(number, signal.SIG_IGN)
    return _last_line(f"\n{stopped()}", 130)


def _last_line(words: str, code: int) -> int:
    """Print a line on standard error, and let what is left of standard output go where it can."""
    with suppress(OSError, ValueError):
        print(words, file=sys.stderr, flush=True)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, AttributeError, ValueError):
            with suppress(OSError, AttributeError, ValueError):  # or Python complains of it again when it ends
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return code


def _check_stream(stream: IO[str] | None) -> None:
    """Refuse an output that is closed or full before any work; a terminal without umlauts shows them escaped."""
    if stream is None:
        raise TadropedgeError("the output stream is closed: nothing can be printed")
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
        try:
            os.write(stream.fileno(), b"")
        except UnsupportedOperation:  # a stream of somebody's own program, which has no number
            pass
        except OSError as error:
            raise TadropedgeError(f"the output stream cannot be written: {reason(error)}") from error


def _warned(message: Warning | str, *where: Any, **line: Any) -> str:
    """A warning as one line: which line of this package gave it is of no use here."""
    return f"warning: {' '.join(str(message).split())}\n"
