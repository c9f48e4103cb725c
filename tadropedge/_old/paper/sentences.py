"""The sentences of the paper on Table 1, judged, and our own questions about it.

The paper prints best test accuracies: its sentences are judged by the best of the trials, with an interval over
networks. Whether the same holds on fresh seeds and splits is our own question, with an interval over replicates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tadropedge._old.comparison.paired import ALPHA
from tadropedge._old.comparison.statistics import Interval
from tadropedge._old.paper.cells import Result, distinct
from tadropedge._old.paper.gains import (
    REFERENCES,
    Effect,
    best_interval,
    compared,
    corrected,
    effect,
    effects,
    excludes,
    fresh_interval,
    printed_mean,
)
from tadropedge._old.paper.item import Verdict
from tadropedge._old.paper.judge import judged, told, where_it_holds
from tadropedge._old.paper.recipe import Recipe
from tadropedge._old.paper.rows import grouped, title
from tadropedge._old.publish.wording import counted, plus_minus, points
from tadropedge._old.search.protocol import adaptive

Found = Sequence[Effect]


def judge(rows: Sequence[Result], recipe: Recipe) -> list[Verdict]:
    """Dataset by dataset, and over all cells as soon as all are there."""
    there = grouped(rows, lambda row: row.dataset)
    # Methods that look at the topology have a row for each Laplacian.
    each = sum(len(recipe["laplacians"]) if adaptive(method) else 1 for method in recipe["methods"])
    whole = {name: len(there.get(name, [])) == len(cells) * each for name, cells in recipe["cells"].items()}
    finished = {name: mine for name, mine in there.items() if whole[name]}
    by_dataset = [make(mine, name, recipe) for make in (_reached, _as_large) for name, mine in finished.items()]
    if not rows or not all(whole.values()):
        return by_dataset
    once = distinct(rows)
    return [
        *by_dataset,
        _consistently(once, recipe),
        _all_strategies(once, recipe),
        *_dropping_at_all(once, recipe),
        *_lower_layers(rows, recipe),
        _cdf_in_more_cases(once, recipe),
        *(_surely(once, reference, recipe) for reference in REFERENCES),
        _excluded(once, recipe),
    ]


def shown(found: Interval | None) -> str:
    """A mean difference in points with its interval."""
    return "no interval" if found is None else f"{plus_minus(points(found.mean), found.low, found.high)} points"


def _reached(rows: Sequence[Result], dataset: str, recipe: Recipe) -> Verdict:
    """Whether the printed accuracies are measured, neither missed nor surpassed, with one of the two Laplacians."""
    tolerance = recipe["tolerance"]
    known = [(row, row.above_printed) for row in rows if row.above_printed is not None]
    cases = {}
    for method, mine in grouped(known, lambda pair: pair[0].method).items():
        networks = grouped(mine, lambda pair: pair[0].network).values()
        cases[method] = all(any(abs(above) <= tolerance for _, above in pairs) for pairs in networks)
    said = "; ".join(
        f"{who} {compared((0.0 if abs(above) <= tolerance else above for _, above in mine), 'within')}"
        for who, mine in grouped(known, lambda pair: _who(pair[0])).items()
    )
    numbers = {"name": title(dataset), "points": 100 * tolerance, "said": said, "means": _minus_printed(rows)}
    return judged(recipe, "reached", where_it_holds(cases), **numbers)


def _minus_printed(rows: Sequence[Result]) -> str:
    """Measured minus printed, the mean over the cells of each method."""
    known = [(_who(row), row.above_printed) for row in rows if row.above_printed is not None]
    groups = grouped(known, lambda pair: pair[0]).items()
    return ", ".join(f"{who} {points(float(np.mean([above for _, above in mine])))}" for who, mine in groups)


def _who(row: Result) -> str:
    return row.method if row.laplacian is None else f"{row.method} ({row.laplacian})"


def _as_large(rows: Sequence[Result], dataset: str, recipe: Recipe) -> Verdict:
    """Whether the gap between TADropEdge and the two baselines is the printed one, at the best of the trials."""
    found = {f"over {title_of}": effects(rows, name) for name, title_of in _BASELINES.items()}

    def contained(mine: Found) -> bool:
        interval = best_interval(mine)
        return interval is not None and interval.low <= printed_mean(mine) <= interval.high

    numbers = {
        "name": title(dataset),
        "effect": ", ".join(f"{points(printed_mean(mine))} points {over}" for over, mine in found.items()),
        "interval": ", ".join(f"{over} {_each(mine, _at_best)}" for over, mine in found.items()),
        "means": _minus_printed(rows),
        "parts": ", ".join(_apart(rows, name, title_of) for name, title_of in _BASELINES.items()),
    }
    return judged(
        recipe,
        "as-large",
        where_it_holds({over: _with_one(mine, contained) for over, mine in found.items()}),
        **numbers,
    )


_BASELINES = {"dropedge": "DropEdge", "original": "Original"}


def _apart(rows: Sequence[Result], baseline: str, title_of: str) -> str:
    """By how much the printed gap over a baseline exceeds the measured one, and the share of either side in it."""
    known = [(row, row.above_printed) for row in rows if row.above_printed is not None]
    both = [above for row, above in known if row.method == baseline], [above for row, above in known if row.laplacian]
    if not all(both):
        return f"over {title_of} by an unknown number of points"
    theirs, ours = (float(np.mean(side)) for side in both)
    sides = f"{points(theirs)} from {title_of} and {points(-ours)} from TADropEdge"
    return f"over {title_of} by {points(theirs - ours)} points ({sides})"


def _each(found: Found, words: Callable[[Found], str]) -> str:
    """What is said with each Laplacian."""
    groups = grouped(found, lambda one: one.laplacian).items()
    return "; ".join(f"{words(mine)} ({laplacian})" if laplacian else words(mine) for laplacian, mine in groups)


def _with_one(found: Found, holds: Callable[[Found], bool]) -> bool:
    """Whether something holds with one of the Laplacians: the paper does not say which it used."""
    return any(holds(mine) for mine in grouped(found, lambda one: one.laplacian).values())


def _laplacians(found: Found, holds: Callable[[Found], bool]) -> bool | str:
    """Whether something holds with all Laplacians, with none, or with which."""
    groups = grouped(found, lambda one: f"{one.laplacian} Laplacian").items()
    return where_it_holds({laplacian: holds(mine) for laplacian, mine in groups})


def _at_best(found: Found) -> str:
    return shown(best_interval(found))


def _on_fresh(found: Found) -> str:
    return shown(fresh_interval(found))


def _surely_at_best(found: Found) -> bool:
    interval = best_interval(found)
    return interval is not None and interval.low > 0


def _surely_on_fresh(found: Found) -> bool:
    interval = fresh_interval(found)
    return interval is not None and interval.low > 0


def _consistently(rows: Sequence[Result], recipe: Recipe) -> Verdict:
    """The claim as the paper tests it: the best of the trials above DropEdge's best in every cell."""
    found = effects(rows, "dropedge")
    return _of_best(recipe, "better", _everywhere(found), found)


def _all_strategies(rows: Sequence[Result], recipe: Recipe) -> Verdict:
    """Whether each strategy is above DropEdge on average over the networks."""
    groups = grouped(effects(rows, "dropedge"), lambda one: one.method)
    holds = where_it_holds({method: _with_one(mine, _surely_at_best) for method, mine in groups.items()})
    numbers = {
        "effect": ", ".join(f"{method} {points(printed_mean(mine))}" for method, mine in groups.items()),
        "interval": ", ".join(f"{method} {_each(mine, _at_best)}" for method, mine in groups.items()),
        "said": ", ".join(f"{method} {_each(mine, _placed)}" for method, mine in groups.items()),
    }
    return judged(recipe, "strategies", holds, **numbers)


def _dropping_at_all(rows: Sequence[Result], recipe: Recipe) -> list[Verdict]:
    """Whether DropEdge is above Original, by both protocols."""
    base = {(row.dataset, row.network): row for row in rows if row.method == "original"}
    mine = [row for row in rows if row.method == "dropedge"]
    found = [effect(row, base[place]) for row in mine if (place := (row.dataset, row.network)) in base]
    at_best = _of_best(recipe, "dropping", _everywhere(found), found)
    return [at_best, _of_fresh(recipe, "dropping-honestly", found)]


def _lower_layers(rows: Sequence[Result], recipe: Recipe) -> list[Verdict]:
    """Whether the gain over DropEdge is larger in the shallowest network of a backbone than in the deepest."""
    found = []
    backbones = grouped(effects(rows, "dropedge"), lambda one: (*one.key[2:], one.dataset, one.network[:-1]))
    for mine in backbones.values():
        shallow, *_, deep = sorted(mine, key=lambda one: one.network) * 2  # one alone is compared with itself
        found += [shallow.minus(deep)] if len(mine) > 1 else []
    at_best = _of_best(recipe, "lower-layers", _laplacians(found, _surely_at_best), found)
    return [at_best, _of_fresh(recipe, "lower-layers-honestly", found)]


def _cdf_in_more_cases(rows: Sequence[Result], recipe: Recipe) -> Verdict:
    """In how many cells each strategy is the best of the three, alone or with others."""
    groups = grouped((row for row in rows if row.laplacian), lambda row: row.laplacian)
    printed = _wins(next(iter(groups.values())), lambda row: row.printed)
    best, fresh = (
        {laplacian: _wins(mine, value) for laplacian, mine in groups.items()}
        for value in (lambda row: row.paper_protocol.best_test, lambda row: row.honest.mean)
    )
    holds = where_it_holds(
        {
            f"{laplacian} Laplacian": wins["cdf"] > max(count for name, count in wins.items() if name != "cdf")
            for laplacian, wins in best.items()
        }
    )
    said, honest = (
        "; ".join(f"{_counts(wins)} ({laplacian})" for laplacian, wins in found.items()) for found in (best, fresh)
    )
    return judged(recipe, "cdf", holds, effect=_counts(printed), interval=said, honest=honest)


def _wins(rows: Sequence[Result], value: Callable[[Result], float | None]) -> dict[str, int]:
    """In how many cells a method has the largest value, alone or with others."""
    wins = dict.fromkeys((row.method for row in rows), 0)
    for mine in grouped(rows, lambda row: (row.dataset, row.network)).values():
        values = {row.method: number for row in mine if (number := value(row)) is not None}
        for method, number in values.items():
            wins[method] += number == max(values.values())
    return wins


def _counts(wins: Mapping[str, int]) -> str:
    return ", ".join(f"{method} {count}" for method, count in wins.items())


def _placed(found: Found) -> str:
    return compared(one.best for one in found)


def _everywhere(found: Found) -> bool | str:
    """Whether the best trials are above in every cell, or else surely on average."""
    everywhere = _laplacians(found, lambda mine: all(one.best > 0 for one in mine))
    on_average = _with_one(found, _surely_at_best)
    return everywhere or (f"on average; {_each(found, _placed)}" if on_average else False)


def _of_best(recipe: Recipe, claim: str, holds: bool | str, found: Found) -> Verdict:
    """A verdict on the best of the trials."""
    known = {one.key[:3]: one.printed for one in found if not math.isnan(one.printed)}  # no Laplacian is printed
    numbers = {
        "effect": points(printed_mean(found)),
        "in_print": compared(known.values()),
        "interval": _each(found, _at_best),
        "said": _each(found, _placed),
    }
    return judged(recipe, claim, holds, **numbers)


def _of_fresh(recipe: Recipe, claim: str, found: Found) -> Verdict:
    """A verdict on the mean over fresh seeds and splits."""
    numbers = {"effect": points(printed_mean(found)), "interval": _each(found, _on_fresh)}
    return judged(recipe, claim, _laplacians(found, _surely_on_fresh), **numbers)


def _surely(rows: Sequence[Result], reference: str, recipe: Recipe) -> Verdict:
    """Whether every strategy is surely above a reference in every cell, on fresh seeds and splits."""
    found = effects(rows, reference)
    near, far = corrected(found), corrected(found, together=True)

    def words(mine: Found) -> str:
        whole, together = ([gap_of[one.key] for one in mine] for gap_of in (near, far))
        real = [near[one.key] for one in mine if not one.null]
        null = counted(len(mine) - len(real), "null cell")
        return f"{told(whole)}; corrected over all {len(found)}: {told(together)}; without {null}: {told(real)}"

    families = grouped(found, lambda one: one.family).values()
    widths = [(one.high - one.low) / 2 for one in near.values() if one.high is not None and one.low is not None]
    numbers = {
        "reference": REFERENCES[reference],
        "effect": points(printed_mean(found)),
        "interval": _each(found, _on_fresh),
        "said": _each(found, words),
        "families": len(families),
        "alarms": ALPHA * len(families),
        "rejecting": sum(any(near[one.key].sign for one in family) for family in families),
        "rejections": sum(gap.sign != 0 for gap in near.values()),
        "widest": 100 * max(widths, default=math.nan),
    }
    holds = _laplacians(found, lambda mine: all(near[one.key].sign > 0 for one in mine))
    return judged(recipe, "honestly", holds, **numbers)


def _excluded(rows: Sequence[Result], recipe: Recipe) -> Verdict:
    """In how many cells the printed gain lies above the whole interval of the measured one."""
    found = [one for one in effects(rows, "budget") if not math.isnan(one.printed)]
    measured = corrected(found)
    left = [one for one in found if not excludes(measured[one.key], one.printed)]

    def words(mine: Found) -> str:
        real = [one for one in mine if not one.null]
        whole, without = (sum(excludes(measured[one.key], one.printed) for one in some) for some in (mine, real))
        null = counted(len(mine) - len(real), "null cell")
        return f"excluded in {whole} of {len(mine)}, without {null} in {without} of {len(real)}"

    inside = ", ".join(f"{title(one.dataset)} {one.network} {one.method} ({one.laplacian})" for one in left)
    numbers = {
        "effect": points(printed_mean(found)),
        "interval": _each(found, _on_fresh),
        "said": _each(found, words),
        "inside": inside or "none",
    }
    return judged(recipe, "excluded", 0 < len(left) == len(found), **numbers)
