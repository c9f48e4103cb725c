"""How training is cut into mini-batches: how many nodes per step, and how many neighbours of each; without torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tadropedge._old.checks import as_integer, check_integer, check_list, settle
from tadropedge._old.errors import TadropedgeError, show

ALL = -1  # the fan-out that takes every neighbour
MOST_HOPS = 2**20
MOST = 2**31 - 1  # of a count


@dataclass(frozen=True, kw_only=True)
class MiniBatches:
    """``size`` training nodes per step, and a ``fanout`` for each hop from them: the most neighbours of one node.

    As in PyTorch Geometric, the first number is for the nodes of the step themselves, which the last layer looks at; −1
    takes all neighbours. One number alone is for all hops. ``evaluate`` is how many nodes are evaluated at a time, with
    all their neighbours; None: the whole graph at once, layer by layer.

    >>> MiniBatches(size=1024, fanout=(15, 10)).of_hops(2), MiniBatches(size=1024).of_hops(3)
    ((15, 10), (-1, -1, -1))
    """

    size: int
    fanout: Sequence[int] = (ALL,)
    evaluate: int | None = None

    def __post_init__(self) -> None:
        settle(self, size=check_integer("size", self.size, 1, MOST))
        settle(self, fanout=tuple(check_fanout(check_list("fanout", self.fanout, "whole numbers"))))
        if self.evaluate is not None:
            settle(self, evaluate=check_integer("evaluate", self.evaluate, 1, MOST))

    def of_hops(self, hops: int) -> tuple[int, ...]:
        """The fan-out of each of so many hops; refused where another number of them is given.

        >>> MiniBatches(size=8, fanout=(15, 10)).of_hops(3)
        Traceback (most recent call last):
        tadropedge._old.errors.TadropedgeError: fanout has 2 numbers (15,10), but the network reaches 3 hops: give one \
number, or 3
        """
        given, hops = tuple(self.fanout), check_integer("hops", hops, 0, MOST_HOPS)
        if len(given) == 1:
            return given * hops
        if len(given) != hops:
            listed = ",".join(map(str, given))
            raise TadropedgeError(
                f"fanout has {len(given)} numbers ({listed}), but the network reaches {_hops(hops)}: give one "
                f"number{f', or {hops}' if hops > 1 else ''}"
            )
        return given


def _hops(count: int) -> str:
    return f"{count} hop" if count == 1 else f"{count} hops"


def check_fanout(numbers: Sequence[object]) -> list[int]:
    """Return fan-outs, each −1 or at least 1."""
    found = [as_integer(number) for number in numbers]
    wrong = [told for told, number in zip(numbers, found, strict=True) if number is None or not _fits(number)]
    if wrong or not found:
        shown = show(wrong[0], typed=False) if wrong else "none"
        raise TadropedgeError(f"fanout must be whole numbers of at least 1, or -1 for all neighbours, got {shown}")
    return [number for number in found if number is not None]


def _fits(number: int) -> bool:
    return number == ALL or 1 <= number <= MOST


def read_fanout(told: str) -> tuple[int, ...]:
    """A fan-out as it is typed.

    >>> read_fanout("15,10"), read_fanout("-1")
    ((15, 10), (-1,))
    >>> read_fanout("15;10")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: --fanout must be whole numbers such as 15,10 (-1: all neighbours), got '15;10'
    """
    cells = [cell.strip() for cell in told.split(",")]
    if not all(cell.isascii() and cell.removeprefix("-").isdigit() and len(cell) <= 20 for cell in cells):
        shown = show(told, typed=False)
        raise TadropedgeError(f"--fanout must be whole numbers such as 15,10 (-1: all neighbours), got {shown}")
    return tuple(check_fanout([int(cell) for cell in cells]))
