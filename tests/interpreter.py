"""Triton's interpreter, which runs the kernels of a GPU where there is none."""

import importlib.util
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import tadropedge


def is_missing():
    """Why the kernels cannot be run here, or nothing."""
    if importlib.util.find_spec("triton") is None:
        return "triton is not installed"
    triton, numpy = (tuple(map(int, version(name).split(".")[:2])) for name in ("triton", "numpy"))
    if triton < (3, 7) and numpy >= (2, 4):  # github.com/triton-lang/triton/issues/9171
        return "the interpreter of triton before 3.7 converts arrays to numbers in a way that NumPy 2.4 refuses"
    return ""


needed = pytest.mark.skipif(bool(is_missing()), reason=is_missing())


def check_all_of(test):
    """Call ``check_all`` of a file of tests in a new process: the interpreter is chosen when triton is loaded."""
    package = Path(tadropedge.__file__).resolve().parents[1]
    folders = (package, Path(test).parent, Path(__file__).parent)
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(map(str, folders))}
    script = f"import {Path(test).stem} as tests; tests.check_all('cpu'); print('agreed')"
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout.strip() == "agreed", done.stderr
