"""The command ``tadropedge``: its commands, ``--config`` and ``--completion``, and one line for whatever goes wrong."""

from __future__ import annotations

import os
import re
import signal
import sys
import tomllib
import warnings
from contextlib import suppress
from io import UnsupportedOperation
from pathlib import Path
from typing import IO, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError
from cyclopts.config import Dict

from tadropedge import __version__
from tadropedge.cli.progress import INTERRUPTIONS, stopped
from tadropedge.errors import TadropedgeError, reason, show

COMMANDS = ("compare", "train", "predict", "weights", "sparsify", "report", "datasets", "methods", "doctor")
MODULES = {"datasets": "lists", "methods": "lists"}  # the others stand in a file of their own name
ITSELF = "The command line itself"
LONGEST = 200  # characters of one word in a line of error
KEYWORDS = {  # of the library, and what is typed instead
    r"columns=\{'(\w+)': '([^']+)'\}": r"--columns \1=\2",
    r"\b(\w+)=True\b": r"--\1",
    r"\b(\w+)=False\b": r"--no-\1",
    r"\bsplit='(\w+)'": r"--split \1",
    r"\bnodes=FILE": "--nodes FILE",
    r"\bmodel=$": "--model FILE.py:NAME",
}

app = App(
    name="tadropedge",
    help="Score the edges of a graph; weigh, drop or prune them by the score; find out whether it helped.",
    help_flags=("--help", "-h"),
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
    app.config = () if config is None else (_options_of(config, words),)
    return app(words, print_error=False, exit_on_error=False) or 0


def run(words: list[str] | None = None) -> int:
    """Run the command line; the exit code is 2 where the input is wrong, and 130 after an interruption."""
    words = sys.argv[1:] if words is None else words
    warnings.formatwarning = _warned

    def stop(number: int, _: object) -> None:
        INTERRUPTIONS.append(number)
        raise KeyboardInterrupt

    with suppress(ValueError):  # in a thread of somebody's own program signals are theirs
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
    try:
        _check_stream(sys.stdout)
        _check_words(words)
        if not words or words[0] not in COMMANDS:
            for name in COMMANDS:  # for the list of commands, which shows their first lines
                app[name]
        code = app.meta(words or ["--help"], print_error=False, exit_on_error=False)
        sys.stdout.flush()
        return int(code or 0)
    except KeyboardInterrupt:
        return _interrupted()
    except SystemExit as error:
        if INTERRUPTIONS:
            return _interrupted()
        return error.code if isinstance(error.code, int) else 0
    except Exception as error:
        if INTERRUPTIONS:  # a library that was being imported has made another error of the interruption
            return _interrupted()
        return _refuse(_said(error, words))


def _said(error: Exception, words: list[str]) -> str:
    """What an error says to a user; one that is no user's is raised again.

    >>> _said(TadropedgeError("must be at most 1, got 3", argument="keep_ratio"), ["weights", "karate"])
    '--keep-ratio: must be at most 1, got 3'
    """
    if isinstance(error, UnusedCliTokensError):
        return f"there is no place for {' '.join(error.unused_tokens or ())!r}: see tadropedge {words[0]} --help"
    if isinstance(error, CycloptsError):
        return str(error)
    if isinstance(error, TadropedgeError):
        named = error.argument or str(error).partition(" ")[0].partition("=")[0]  # "q=99 is larger than ..."
        flag, flags = f"--{named.replace('_', '-')}", _flags(words)
        said = _typed(str(error), flags)
        return f"{flag}: {said}" if flag in flags and flag not in said else said
    if isinstance(error, ImportError) and error.name in ("ray", "pandas", "pyarrow", "matplotlib", "networkx"):
        return f"{error.name} is not installed: pip install {error.name}"
    if _ran_out(error):
        return "not enough memory: a smaller graph or network, or more memory, may do"
    if isinstance(error, BrokenPipeError):
        return "the output stream is closed: nothing more can be printed"
    if isinstance(error, OSError):
        return f"'{error.filename}': {reason(error)}" if error.filename else reason(error)
    raise error


def _typed(text: str, flags: set[str]) -> str:
    """What a message of the library asks for, as it is typed here.

    >>> _typed("say header=True or header=False, or columns={'weight': 'km'}", {"--header", "--no-header", "--columns"})
    'say --header or --no-header, or --columns weight=km'
    """
    for keyword, flag in KEYWORDS.items():
        for found in re.finditer(keyword, text):
            said = found.expand(flag)
            text = text.replace(found[0], said) if said.split()[0] in flags else text
    return text


def _ran_out(error: Exception) -> bool:
    if "torch" not in sys.modules:
        return isinstance(error, MemoryError)
    from tadropedge._support.memory import ran_out

    return ran_out(error)


def _flags(words: list[str]) -> set[str]:
    """The options of the command that was typed."""
    command = next((word for word in words if word in COMMANDS), None)
    if command is None:
        return set()
    return {flag for argument in app[command].assemble_argument_collection() for flag in argument.names}


def _refuse(words: str) -> int:
    line = " ".join(word if len(word) <= LONGEST else f"{word[:LONGEST]}..." for word in words.split())
    line = "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in line)
    return _last_line(f"error: {line}", 2)


def _interrupted() -> int:
    for number in (signal.SIGINT, signal.SIGTERM):  # impatience changes nothing any more
        signal.signal(number, signal.SIG_IGN)
    return _last_line(f"\n{stopped()}", 130)


def _last_line(words: str, code: int) -> int:
    """Print a line on standard error, and let what is left of standard output go where it can."""
    with suppress(OSError, AttributeError):
        sys.stdout.flush()
    with suppress(OSError, ValueError):
        print(words, file=sys.stderr, flush=True)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError, ValueError):
            stream.flush()
            continue
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


def _check_words(words: list[str]) -> None:
    """Refuse what no file can hold, and what is empty: as a rule a shell's variable that is not set."""
    for word in words:
        if "\0" in word or word != word.encode(errors="replace").decode():
            raise TadropedgeError(f"arguments must be text in UTF-8 without NUL characters, got {show(word, False)}")
        if not word or (word.startswith("--") and word.find("=") == len(word) - 1):
            raise TadropedgeError(f"an argument is empty, got {word!r} in {show(' '.join(words), False)}")


def _options_of(path: Path, words: tuple[str, ...]) -> Dict:
    """The options of a command in a TOML file."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TadropedgeError(f"--config: '{path}': {reason(error)}") from error
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8, or a number of thousands of digits
        raise TadropedgeError(f"--config: '{path}' is no TOML: {error}") from error
    command = next((word for word in words if word in COMMANDS), "")
    if command and command not in content:
        raise TadropedgeError(f"--config: '{path}' has no table [{command}]; it has {', '.join(content) or 'nothing'}")
    return Dict(content, source=str(path))


def _warned(message: Warning | str, *where: Any, **line: Any) -> str:
    """A warning as one line: which line of this package gave it is of no use here."""
    return f"warning: {' '.join(str(message).split())}\n"
