"""Run a command of the command line, here or in a process of its own."""

import subprocess
import sys

from tadropedge.cli.app import run

PROGRAM = [sys.executable, "-m", "tadropedge"]


class Command:
    """What a command printed, and its exit code."""

    def __init__(self, capsys, *words):
        capsys.readouterr()
        self.code = run([str(word) for word in words])
        self.out, self.err = capsys.readouterr()

    @property
    def error(self):
        """The last line of standard error."""
        return self.err.strip().splitlines()[-1]


def process(*words, **options):
    """Run it in a process of its own."""
    given = {"capture_output": True, "text": True, "timeout": 120, **options}
    return subprocess.run([*PROGRAM, *map(str, words)], **given)
