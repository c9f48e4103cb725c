"""Kernels of our own, and when they run. Each does in one launch what torch does in many, with the same answer.

Importing this loads no compiler: ``tadropedge.operators.kernels.gpu`` is imported where a kernel is used.
"""

from __future__ import annotations

import importlib.util
import os
from functools import cache

from torch import Tensor


def runs_kernels(x: Tensor) -> bool:
    """Whether Triton's kernels run where x lies: on a GPU, or anywhere in Triton's interpreter."""
    return (x.is_cuda or os.environ.get("TRITON_INTERPRET") == "1") and _has_triton()


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None
