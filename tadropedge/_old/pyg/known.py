"""Values that belong to tensors: found again by the identity of the tensors, and never for tensors that changed."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from tadropedge._old.sampling import vectorised

T = TypeVar("T")
UNKNOWN: list[object] = []  # among the sources: has no hash, so they are never known


def lock_for_all() -> threading.Lock:
    """A lock for all modules of a process: one inside a module could not be copied or pickled.

    A process is forked when no thread holds it: a worker would wait forever for a thread that only its parent has.
    """
    lock = threading.Lock()
    if hasattr(os, "register_at_fork"):  # Windows does not fork
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


KEEPING = lock_for_all()


class Known(Generic[T]):
    """The values of the last few ``sources``, which are tensors and plain values.

    Tensors are known by identity, by the count of what was written into them, and by the place and the shape of their
    memory; everything else by its type and value. Tensors are not kept alive, and what belonged to dead ones goes with
    the next that is kept. Those without a count of writes (made in inference mode) are never known. Writes through
    ``.data``, by a replayed CUDA graph or a fused optimiser, or into memory shared with NumPy or another process, go
    unnoticed. A copy, pickled or not, knows nothing.

    >>> known, x = Known[str](most=2), torch.zeros(3)
    >>> known.keep((x, 7), "three zeros and 7")
    >>> known.find((x, 7)), known.find((x, 8)), known.find((x.add_(1), 7))
    ('three zeros and 7', None, None)
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._values: OrderedDict[Hashable, tuple[list[weakref.ref[Tensor]], T]] = OrderedDict()

    def find(self, sources: Sequence[Any]) -> T | None:
        """The value that was kept for these sources, if they are the same and unchanged."""
        looks = _looks(sources)
        if looks is None:
            return None
        with KEEPING:
            found = self._values.get(looks)
            # Python gives the identity of a dead tensor to another one.
            if found is None or any(alive() is None for alive in found[0]):
                return None
            self._values.move_to_end(looks)
            return found[1]

    def keep(self, sources: Sequence[Any], value: T) -> None:
        """Remember a value, as long as few others follow."""
        looks = _looks(sources)
        if looks is None or vectorised():  # values that torch.vmap or torch.func make end with them
            return
        alive = [weakref.ref(one) for one in sources if isinstance(one, Tensor)]
        with KEEPING:
            dead = [key for key, (refs, _) in self._values.items() if any(ref() is None for ref in refs)]
            for key in dead:
                del self._values[key]
            self._values[looks] = (alive, value)
            self._values.move_to_end(looks)
            while len(self._values) > self.most:
                self._values.popitem(last=False)

    def __len__(self) -> int:
        return len(self._values)

    def __deepcopy__(self, memo: dict[int, Any]) -> Known[T]:
        return type(self)(self.most)

    def __reduce__(self) -> tuple[type[Known[T]], tuple[int]]:
        return type(self), (self.most,)


class Repeated(Generic[T]):
    """The value of the last call that was of one tensor or of two, and of a plain value ``about``.

    Most calls of a training are of the same two tensors as the one before, in which nothing was written since. They are
    found by comparing identities: on a small graph a look into a dictionary takes longer than tossing all coins. What
    counts as unchanged is the same as in :class:`Known`. A copy, pickled or not, knows nothing.

    >>> last, x, y = Repeated[str](), torch.zeros(3), torch.ones(2)
    >>> last.keep(x, y, 7, "zeros, ones and 7")
    >>> last.find(x, y, 7), last.find(x, y, 8), last.find(x, None, 7), last.find(x, y.mul_(0.5), 7)
    ('zeros, ones and 7', None, None, None)
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[Any, Any, Hashable, T] | None = None

    def find(self, first: Tensor, second: Tensor | None, about: Hashable = None) -> T | None:
        """The value of the last call, if this is the same one."""
        last = self._last
        if last is None or last[2] != about or not _same(last[0], first):
            return None
        if second is None:
            return last[3] if last[1] is None else None
        return last[3] if last[1] is not None and _same(last[1], second) else None

    def keep(self, first: Tensor, second: Tensor | None, about: Hashable, value: T) -> None:
        """Remember a call; tensors are not kept alive."""
        if vectorised() or first.is_inference() or (second is not None and second.is_inference()):
            return
        self._last = _look(first), None if second is None else _look(second), about, value

    def __deepcopy__(self, memo: dict[int, Any]) -> Repeated[T]:
        return Repeated()

    def __reduce__(self) -> tuple[type[Repeated[T]], tuple[()]]:
        return Repeated, ()


def steady(tensor: Tensor | None) -> object:
    """What stands for a tensor that may be learned: then it is read in every call, however it is written into."""
    return UNKNOWN if isinstance(tensor, Tensor) and tensor.requires_grad else tensor


def _looks(sources: Sequence[Any]) -> Hashable | None:
    """By what sources are known without a look at their values; None where they cannot be."""
    try:
        looks = tuple([_tensor_looks(one) if isinstance(one, Tensor) else (type(one), one) for one in sources])
        hash(looks)
    except Exception:  # tensors made in inference mode or without memory of their own, lists, whatever a user gave
        return None
    return looks


def _tensor_looks(tensor: Tensor) -> tuple[Any, ...]:
    place = (tensor.data_ptr(), tensor.stride()) if tensor.layout is torch.strided else None
    return id(tensor), tensor._version, place, tensor.shape, tensor.dtype, tensor.device


def _look(tensor: Tensor) -> tuple[weakref.ref[Tensor], int, int, Any, Any]:
    return weakref.ref(tensor), tensor._version, tensor.data_ptr(), tensor.shape, tensor.stride()


def _same(looks: tuple[weakref.ref[Tensor], int, int, Any, Any], tensor: Tensor) -> bool:
    ref, version, place, shape, stride = looks
    return (
        ref() is tensor  # alive, so no other tensor can have its identity
        and tensor._version == version
        and tensor.data_ptr() == place
        and tensor.shape == shape
        and tensor.stride() == stride
    )
