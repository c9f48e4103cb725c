"""Numbers as readers see them, the same in the terminal, in pictures and on pages; each is a filter of templates.

Python and files hold fractions of 1; people read per cent, and differences in points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

NOTHING = "–"


def percent(share: float | None, digits: int = 1) -> str:
    """A share in per cent.

    >>> percent(0.8153), percent(None)
    ('81.5', '–')
    """
    return NOTHING if share is None or not math.isfinite(share) else f"{100 * share:.{digits}f}"


def points(difference: float | None, digits: int = 1) -> str:
    """A difference in points, with its sign.

    >>> points(0.012), points(-0.012), points(-0.0001)
    ('+1.2', '−1.2', '0.0')
    """
    if difference is None or not math.isfinite(difference):
        return NOTHING
    text = f"{100 * difference:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def unsigned(difference: float | None, digits: int = 1) -> str:
    """The size of a difference in points.

    >>> unsigned(-0.012)
    '1.2'
    """
    return NOTHING if difference is None else percent(abs(difference), digits)


def interval(low: float | None, high: float | None, digits: int = 1) -> str:
    """Both ends of an interval of a difference, in points.

    >>> interval(-0.001, 0.02)
    '−0.1 to +2.0'
    """
    return NOTHING if NOTHING in (ends := (points(low, digits), points(high, digits))) else " to ".join(ends)


def plus_minus(middle: str, low: float | None, high: float | None, digits: int = 1) -> str:
    """A number and half the width of its interval, where that has ends.

    >>> plus_minus(percent(0.81), 0.80, 0.82), plus_minus(NOTHING, None, None)
    ('81.0 ± 1.0', '–')
    """
    if low is None or high is None or not math.isfinite(high - low):
        return middle
    return f"{middle} ± {50 * (high - low):.{digits}f}"


def factor(times: float | None) -> str:
    """By how much one thing costs less than another.

    >>> factor(3.14159), factor(12.6), factor(None)
    ('3.1 ×', '13 ×', '–')
    """
    return NOTHING if times is None else f"{times:.{1 if times < 10 else 0}f} ×"


def seconds(number: float | None) -> str:
    """A time as people say it.

    >>> [seconds(number) for number in (0.0042, 0.5, 90, 7200, None)]
    ['4.2 ms', '0.5 s', '90 s', '2 h', '–']
    """
    if number is None:
        return NOTHING
    if number < 0.1:
        return f"{1000 * number:.2g} ms"
    return (
        f"{number:.2g} s" if number < 120 else f"{number / 60:.0f} min" if number < 7200 else f"{number / 3600:.3g} h"
    )


def memory(size: float | None) -> str:
    """Bytes as people say them.

    >>> memory(36_700_160), memory(None)
    ('35 MiB', '–')
    """
    if size is None:
        return NOTHING
    return f"{size / 2**20:.0f} MiB" if size < 2**30 else f"{size / 2**30:.1f} GiB"


def counted(number: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "layer"), counted(1200, "trial")
    ('1 layer', '1,200 trials')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def listed(names: Iterable[object]) -> str:
    """Names in a sentence.

    >>> listed("a"), listed("ab"), listed([1, 2, 3])
    ('a', 'a and b', '1, 2 and 3')
    """
    *rest, last = map(str, names)
    return f"{', '.join(rest)} and {last}" if rest else last


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
        return ", ".join(f"{name} {shown(part)}" for name, part in value.items()) or NOTHING
    if isinstance(value, list | tuple):
        return ", ".join(shown(part) for part in value) or NOTHING
    return str(value)


def short(words: str, longest: int) -> str:
    """Words, cut where they would leave no room.

    >>> short("a long name", 6)
    'a lon…'
    """
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


FILTERS = (percent, points, unsigned, interval, plus_minus, factor, seconds, memory, counted, listed, shown, short)
