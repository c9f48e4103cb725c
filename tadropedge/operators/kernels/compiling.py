"""What compiled kernels share: how they are compiled and kept, arrays for them, and the hash of coins."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]

LARGE = 2**25  # bytes from which memory is always new: NumPy asks for large pages then, which are sooner ready
LINE = 16  # numbers in a line of the cache, or in two


def compiled(function: Callable[..., None], **options: Any) -> Callable[..., None]:
    """Compile a function when it is first called, or find it on disk, where there is a place to write."""
    try:
        made: Callable[..., None] = numba.njit(nogil=True, error_model="numpy", cache=True, **options)(function)
    except RuntimeError:  # neither this folder nor a cache can be written
        made = numba.njit(nogil=True, error_model="numpy", **options)(function)
    return made


def reordered(function: Callable[..., None]) -> Callable[..., None]:
    """The same for sums that may be added up in another order, the same one in every call on one machine."""
    return compiled(function, fastmath={"reassoc", "nsz"})


@numba.njit
def mixed(word):  # type: ignore[no-untyped-def]
    """SplitMix64's finaliser of a uint64."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


# -- arrays --------------------------------------------------------------------------------------------


def as_array(x: Tensor) -> Array:
    """The same memory, if rows stand in it one after the other, as an array."""
    x = x.detach() if x.requires_grad else x
    found: Array = (x if x.is_contiguous() else x.contiguous()).numpy()
    return found


def empty(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """New memory. NumPy asks the system for large pages where there is much of it, which are sooner ready."""
    size = math.prod(shape)
    if size * dtype.itemsize < LARGE:
        return torch.empty(shape, dtype=dtype)
    memory = np.empty(size + LINE, dtype=str(dtype).removeprefix("torch."))
    first = -memory.ctypes.data % (LINE * dtype.itemsize) // dtype.itemsize  # where a line of the cache begins
    return torch.from_numpy(memory[first : first + size].reshape(shape))
