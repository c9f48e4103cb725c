"""Numbers and names as readers see them, the same in the terminal, in pictures, in Markdown and on pages."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

NOTHING = "–"


def percent(share: float | None, digits: int = 2) -> str:
    """A share in per cent.

    >>> percent(0.8153), percent(None)
    ('81.53', '–')
    """
    return NOTHING if share is None else f"{100 * share:.{digits}f}"


def points(difference: float | None) -> str:
    """A difference of accuracies in percentage points, with its sign.

    >>> points(0.0012), points(-0.0012), points(-0.00001)
    ('+0.12', '−0.12', '0.00')
    """
    if difference is None:
        return NOTHING
    text = f"{100 * difference:+.2f}"
    return "0.00" if float(text) == 0 else text.replace("-", "−")


def interval(low: float | None, high: float | None, signed: bool = False) -> str:
    """Both ends of an interval, in per cent or, with their signs, in points.

    >>> interval(0.8, 0.82), interval(-0.001, 0.002, signed=True)
    ('80.00 to 82.00', '−0.10 to +0.20')
    """
    if low is None or high is None:
        return NOTHING
    return f"{points(low)} to {points(high)}" if signed else f"{percent(low)} to {percent(high)}"


def plus_minus(middle: str, low: float | None, high: float | None) -> str:
    """A number and half the width of its interval.

    >>> plus_minus(percent(0.81), 0.80, 0.82), plus_minus(NOTHING, None, None)
    ('81.00 ± 1.00', '–')
    """
    return middle if low is None or high is None else f"{middle} ± {50 * (high - low):.2f}"


def gap(difference: float | None, low: float | None, high: float | None, signed: bool = False) -> str:
    """A difference in a sentence: two decimals, and more where it would otherwise read 0.00.

    >>> gap(-0.0012, -0.0020, -0.0004), gap(-0.0012, -0.0020, -0.0004, signed=True), gap(0.00002, 0.00001, 0.00003)
    ('0.12 ± 0.08 points', '−0.12 ± 0.08 points', '0.002 ± 0.001 points')
    """
    if difference is None or low is None or high is None:
        return NOTHING
    middle = 100 * difference
    digits = 2 if signed or middle == 0 or abs(middle) >= 0.005 else math.ceil(-math.log10(abs(middle)))
    minus = "−" if signed and round(middle, digits) < 0 else ""
    return f"{minus}{abs(middle):.{digits}f} ± {50 * (high - low):.{digits}f} points"


def p_value(value: float | None) -> str:
    """A p-value with as many digits as anyone needs.

    >>> p_value(0.0421), p_value(0.00002), p_value(1.0)
    ('0.042', '< 0.001', '1')
    """
    if value is None:
        return NOTHING
    if value < 0.001:
        return "< 0.001"
    return "1" if value > 0.9995 else f"{value:.3f}"


def span(numbers: Collection[int]) -> str:
    """The least and the most of some whole numbers.

    >>> span([3, 1200]), span([7, 7])
    ('3 to 1,200', '7')
    """
    return " to ".join(dict.fromkeys(f"{end:,}" for end in (min(numbers), max(numbers))))


def counted(numbers: int | Collection[int], thing: str) -> str:
    """A number of things, or from how many to how many.

    >>> counted(1, "layer"), counted(2, "layer"), counted({80, 100}, "trial")
    ('1 layer', '2 layers', '80 to 100 trials')
    """
    found = {numbers} if isinstance(numbers, int) else numbers
    return f"{span(found)} {thing}{'' if max(found) == 1 else 's'}"


def listed(names: Iterable[object]) -> str:
    """Names in a sentence.

    >>> listed("a"), listed("ab"), listed([1, 2, 3])
    ('a', 'a and b', '1, 2 and 3')
    """
    *rest, last = map(str, names)
    return f"{', '.join(rest)} and {last}" if rest else last


def method_words(name: str) -> str:
    """A method as readers see it: the share of one at a budget with one digit.

    >>> method_words("dropedge at 65.2991 %"), method_words("cdf:unbiased")
    ('dropedge at 65.3 %', 'cdf:unbiased')
    """
    front, at, share = name.removesuffix(" %").rpartition(" at ")
    return f"{front} at {float(share):.3g} %" if at and name.endswith(" %") else name


def shown(value: object) -> str:
    """Any JSON value as a few words.

    >>> shown({"torch": "2.13.0", "numpy": "2.4.6"}), shown(812.4375), shown(["a", 1]), shown(None)
    ('torch 2.13.0, numpy 2.4.6', '812.4', 'a, 1', '–')
    """
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {shown(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(shown(part) for part in value)
    return str(value)


def short(words: str, longest: int) -> str:
    """Words, cut where they would leave no room.

    >>> short("a long name", 6)
    'a lon…'
    """
    return words if len(words) <= longest else f"{words[: longest - 1]}…"
