"""Kernels of our own: one interface, three implementations, chosen by where tensors lie.

* :mod:`~tadropedge.operators.kernels.reference`: a few lines of torch each, for every device and every number type;
* :mod:`~tadropedge.operators.kernels.cpu`: compiled by numba on first use and kept on disk, one pass over memory each;
* :mod:`~tadropedge.operators.kernels.gpu`: Triton's.

Masks, operators and products have the same bits whoever computes them, on however many threads and beside whatever else
is in the batch. Importing this loads no compiler: an implementation is imported where its first kernel is used.
"""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

COMPILED = (torch.bool, torch.float32, torch.float64)  # number types of the CPU's kernels
REFERENCE = "TADROPEDGE_REFERENCE_KERNELS"  # set to 1, this variable turns numba's kernels off
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # which triton reads when it is imported


def kernels(x: Tensor) -> Any:
    """The module whose kernels run where x lies, for numbers of the type of x: all have the functions of the reference.

    >>> kernels(torch.ones(1, dtype=torch.float16)).__name__.rpartition(".")[2]
    'reference'
    """
    if runs_kernels(x):  # layers have theirs in the module fused
        return _module("gpu")
    return _module("cpu" if x.device.type == "cpu" and x.dtype in COMPILED and has_numba() else "reference")


@cache
def _module(name: str) -> ModuleType:
    return import_module(f"tadropedge.operators.kernels.{name}")


@cache
def has_numba() -> bool:
    """Whether the CPU's kernels can be compiled: numba is installed, and nobody turned them off."""
    return os.environ.get(REFERENCE) != "1" and importlib.util.find_spec("numba") is not None


def runs_kernels(x: Tensor) -> bool:
    """Whether Triton's kernels run where x lies: on a GPU, or anywhere in Triton's interpreter."""
    return (x.is_cuda or INTERPRETED) and _has_triton()


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None
