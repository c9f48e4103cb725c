"""Kinds of arguments: for each, the same value in other clothes, which must give the same result, and what is wrong.

``STRANGE`` is tried on every argument of every public function. A kind says which of it is legal there, and adds
values of its own, most of them made from a valid one: a tensor as sparse, meta, quantised, with a NaN, with more axes.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

Values = dict[str, Callable[[], Any]]


class Mute:
    """An object that cannot even be printed."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


def quantised(tensor: Tensor) -> Tensor:
    """A tensor in eight bits; newer versions of torch warn that these will go."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.quantize_per_tensor(tensor, 0.1, 0, torch.qint8)


def _always(value: Any) -> Callable[[], Any]:
    return lambda: value


STRANGE: Values = {
    **{repr(value)[:30]: _always(value) for value in (None, True, "a", "0.5", "", "\udc80", "a\0b", b"a", 1j, -1, 1.5)},
    **{repr(value)[:30]: _always(value) for value in (math.nan, math.inf, -math.inf, 2**70, -(2**70), 1e308, 1e-320)},
    **{repr(value)[:30]: _always(value) for value in ([], ["a"], [[1], [2, 3]], [None], {}, {"a": 1}, int, len, ...)},
    "10**400": lambda: 10**400,
    "-10**400": lambda: -(10**400),
    "10**5000": lambda: 10**5000,  # Python refuses to print it
    "a long text": lambda: "x" * 5000,
    "object()": object,
    "an object that cannot be printed": Mute,
    "a generator": lambda: (number for number in range(3)),
    "np.True_": lambda: np.True_,
    "np.str_": lambda: np.str_("b"),
    "np.datetime64": lambda: np.datetime64("2020-01-01"),
    "np.timedelta64": lambda: np.timedelta64(3, "s"),
    "np.ma.masked": lambda: np.ma.masked,
    "torch NaN": lambda: torch.tensor(math.nan),
    "torch True": lambda: torch.tensor(True),
    "an empty tensor": lambda: torch.empty(0),
    "a tensor of five axes": lambda: torch.ones(1, 1, 1, 1, 1),
    "a sparse tensor": lambda: torch.eye(3).to_sparse(),
    "a meta number": lambda: torch.tensor(1.0, device="meta"),
    "a quantised number": lambda: quantised(torch.tensor(1.0)),
    "a structured array": lambda: np.zeros(3, dtype=[("a", "i4")]),
}


class Kind:
    """One argument: which strange values are legal (``None``: not tried), further wrong ones, and equal ones."""

    def legal(self, value: Any) -> bool | None:
        """Whether a strange value is legal here."""
        return False

    def wrong(self, valid: Any) -> Values:
        """Wrong values that are made from a valid one."""
        return {}

    def equal(self, valid: Any) -> Values:
        """Other values that mean the same."""
        return {}


class Whole(Kind):
    """A whole number of any library, from ``least`` to ``most``."""

    def __init__(self, least: int = 0, most: int = 2**63 - 1) -> None:
        self.least, self.most = least, most

    def legal(self, value: Any) -> bool:
        return type(value) is int and self.least <= value <= self.most

    def wrong(self, valid: Any) -> Values:
        below = {"one below": lambda: self.least - 1} if self.least > -(2**63) else {}
        wrong = {"as a float": lambda: float(valid), "in a list of two": lambda: [valid, valid]}
        return wrong | {"as text": lambda: str(valid)} | below

    def equal(self, valid: Any) -> Values:
        return {
            "np.int64": lambda: np.int64(valid),
            "np.uint8": lambda: np.uint8(valid),
            "0-d tensor": lambda: torch.tensor(valid),
            "0-d array": lambda: np.array(valid),
        }


class Real(Kind):
    """A number of any library in [low, high], or without the ends if ``strict``."""

    def __init__(self, low: float = -1.7e308, high: float = 1.7e308, strict: bool = False) -> None:
        self.low, self.high, self.strict = low, high, strict

    def legal(self, value: Any) -> bool:
        if type(value) not in (int, float):
            return False
        return self.low < value < self.high if self.strict else self.low <= value <= self.high

    def wrong(self, valid: Any) -> Values:
        return {
            "in a list of two": lambda: [valid, valid],
            "as text": lambda: str(valid),
            "complex": lambda: 1j * valid,
        }

    def equal(self, valid: Any) -> Values:
        return {
            "np.float64": lambda: np.float64(valid),
            "np.float32": lambda: np.float32(valid),
            "0-d tensor": lambda: torch.tensor(valid),
            "0-d array": lambda: np.array(valid),
        }


class Flag(Kind):
    """True or false."""

    def legal(self, value: Any) -> bool:
        return isinstance(value, bool | np.bool_)

    def wrong(self, valid: Any) -> Values:
        return {"0": lambda: 0, "1": lambda: 1, "'False'": lambda: "False"}

    def equal(self, valid: Any) -> Values:
        return {"np.bool_": lambda: np.bool_(valid)}


class Name(Kind):
    """One of some names, which none of the strange values is."""

    def equal(self, valid: Any) -> Values:
        return {"np.str_": lambda: np.str_(valid)}


class Instance(Kind):
    """An object of one class: none of the strange values."""


class Text(Kind):
    """Any text."""

    def legal(self, value: Any) -> bool | None:
        return None if isinstance(value, str) else False


class PathLike(Kind):
    """A path: most texts are one, but not an empty one, one with a NUL or of 5,000 characters."""

    def __init__(self, none: bool | None = False) -> None:
        self.none = none  # whether None is legal; None: it is, and depends on the machine

    def legal(self, value: Any) -> bool | None:
        if value is None:
            return self.none
        return None if isinstance(value, str) and "\0" not in value and 0 < len(value) < 5000 else False

    def wrong(self, valid: Any) -> Values:
        return {"a part of 300 characters": lambda: "x" * 300, "as bytes": lambda: b"a.csv"}


class Device(Kind):
    """Where to work; ``None`` where the argument may be left out."""


class Optional(Kind):
    """Another kind, or None."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def legal(self, value: Any) -> bool | None:
        return True if value is None else self.kind.legal(value)

    def wrong(self, valid: Any) -> Values:
        return {} if valid is None else self.kind.wrong(valid)

    def equal(self, valid: Any) -> Values:
        return {} if valid is None else self.kind.equal(valid)


class Either(Kind):
    """One of several kinds; wrong and equal values are those of the first."""

    def __init__(self, *kinds: Kind) -> None:
        self.kinds = kinds

    def legal(self, value: Any) -> bool | None:
        told = [kind.legal(value) for kind in self.kinds]
        return None if None in told else any(told)

    def wrong(self, valid: Any) -> Values:
        return {label: make for label, make in self.kinds[0].wrong(valid).items() if label != "in a list of two"}

    def equal(self, valid: Any) -> Values:
        return self.kinds[0].equal(valid)


class Table(Kind):
    """A mapping; an empty one means the defaults."""

    def __init__(self, empty: bool = True, others: bool = False) -> None:
        self.empty, self.others = empty, others

    def legal(self, value: Any) -> bool | None:
        if isinstance(value, Mapping) and value:
            return None if self.others else False
        return self.empty and isinstance(value, Mapping)


class Listed(Kind):
    """A list of things of one kind, which none of the strange values is; an empty one may be legal."""

    def __init__(self, empty: bool = False) -> None:
        self.empty = empty

    def legal(self, value: Any) -> bool | None:
        return self.empty and isinstance(value, list) and not value


class Array(Kind):
    """Numbers with axes. ``likes``: lists and NumPy arrays are taken as well as tensors."""

    def __init__(
        self,
        low: float | None = 0.0,
        high: float | None = None,
        *,
        whole: bool = False,
        likes: bool = False,
        fixed: bool = True,
        batch: bool = False,
        flags: bool = False,
        sparse: bool = False,
        nan: bool = False,
        free: bool = False,
        column: bool = False,
        precision: bool = True,
        narrow: bool = True,
        gradient: bool = True,
    ) -> None:
        self.low, self.high, self.whole, self.likes, self.fixed = low, high, whole, likes, fixed
        self.batch, self.flags, self.sparse, self.nan, self.free, self.column = batch, flags, sparse, nan, free, column
        self.precision, self.narrow, self.gradient = precision, narrow, gradient

    def wrong(self, valid: Tensor) -> Values:
        return self._forms(valid) | self._entries(valid) | self._arrays(valid)

    def _forms(self, valid: Tensor) -> Values:
        """Of another make or shape."""
        forms: Values = {
            "meta": lambda: valid.to("meta"),
            "quantised": lambda: quantised(valid.float()),
            "complex": lambda: valid.to(torch.complex64),
            "0-d": lambda: valid.flatten()[0],
        }
        if not self.column:
            forms["one axis more at the end"] = lambda: valid[..., None]
        if not self.sparse:
            forms["sparse"] = lambda: valid.to_sparse()
            if valid.dim() == 2:
                forms["CSR"] = lambda: valid.to_sparse_csr()
        if not self.batch:
            forms["one axis more"] = lambda: valid[None]
        if self.fixed:
            forms["one entry less"] = lambda: valid[..., :-1]
            forms["one entry more"] = lambda: torch.cat((valid, valid[..., :1]), dim=-1)
        if not self.flags:
            forms["bool"] = lambda: valid.to(torch.bool)
        return forms

    def _entries(self, valid: Tensor) -> Values:
        """With one wrong entry."""

        def with_entry(entry: float) -> Callable[[], Tensor]:
            def make() -> Tensor:
                wrong = valid.detach().clone() if self.whole else valid.detach().clone().to(torch.float64)
                wrong.view(-1)[0] = entry
                return wrong

            return make

        entries: dict[str, float] = {}
        if self.low is not None:
            entries["too low"] = math.ceil(self.low) - 2
        if self.high is not None:
            entries["too high"] = math.floor(self.high) + 2
        if self.whole:
            return {label: with_entry(entry) for label, entry in entries.items()} | {
                "fractions": lambda: valid.to(torch.float64) + 0.5
            }
        if not self.free:
            entries |= {"inf": math.inf, "-inf": -math.inf} | ({} if self.nan else {"NaN": math.nan})
        return {label: with_entry(entry) for label, entry in entries.items()}

    def _arrays(self, valid: Tensor) -> Values:
        """As arrays: of no numbers, or where only tensors are taken."""
        array = valid.detach().numpy()
        masked = np.ma.masked_array(array, mask=np.arange(array.size).reshape(array.shape) == 0)
        arrays: Values = {
            "masked": lambda: masked,
            "of objects": lambda: np.full(array.shape, object(), dtype=object),
            "of texts": lambda: array.astype(str),
            "of dates": lambda: np.full(array.shape, np.datetime64("2020-01-01")),
            "of huge numbers": lambda: np.full(array.shape, 10**400, dtype=object).tolist(),
            "of None": lambda: np.full(array.shape, None, dtype=object).tolist(),
        }
        return arrays if self.likes else arrays | {"as an array": lambda: array, "as a list": lambda: array.tolist()}

    def equal(self, valid: Tensor) -> Values:
        array = valid.detach().numpy()
        wide = torch.stack((valid, valid), dim=-1)
        twice = torch.cat((valid, valid))
        same: Values = {"not contiguous": lambda: wide[..., 0], "a view": lambda: twice[: len(valid)]}
        if self.whole and self.narrow:
            same |= {"int32": lambda: valid.to(torch.int32), "uint8": lambda: valid.to(torch.uint8)}
        elif valid.is_floating_point() and self.precision:
            same |= {"float64": lambda: valid.double(), "float32": lambda: valid.float()}
            same |= {"float16": lambda: valid.half(), "bfloat16": lambda: valid.bfloat16()} if self.narrow else {}
        if valid.is_floating_point() and self.gradient:
            same["with gradient"] = lambda: valid.clone().requires_grad_()
        return same | self._likes(array) if self.likes else same

    def _likes(self, array: Any) -> Values:
        frozen = array.copy()
        frozen.flags.writeable = False
        return {
            "a list": array.tolist,
            "tuples": lambda: tuple(map(tuple, array.tolist())) if array.ndim > 1 else tuple(array.tolist()),
            "read-only": lambda: frozen,
            "Fortran order": lambda: np.asfortranarray(array),
            "strided": lambda: np.repeat(array, 2, axis=-1)[..., ::2],
            "negative strides": lambda: array[..., ::-1].copy()[..., ::-1],
            "byte-swapped": lambda: array.astype(array.dtype.newbyteorder()),
            "wide": lambda: array.astype(np.uint64 if self.whole else np.longdouble),
            "not masked": lambda: np.ma.masked_array(array),
        }
