"""The advice: what to use on this graph, with which settings, and what it gains; or that nothing does.

A method is advised only if it is surely better than not dropping, and never if it is surely worse than DropEdge tuned
or DropEdge at the same budget; then DropEdge is advised, for it beats a method that surely helps. Of those that
remain, the simplest is named that no other beats: DropEdge, then the rules in the order of the registry, ``auto`` last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tadropedge._old.comparison.cautions import cautions
from tadropedge._old.comparison.judging import KINDS, Against
from tadropedge._old.comparison.paired import deciding_p_values
from tadropedge._old.comparison.results import Advice, MethodRow, Protocol, labelled
from tadropedge._old.comparison.selection import Selection, between
from tadropedge._old.method import UNIFORM, Method, droppings
from tadropedge._old.publish.wording import gap, listed, p_value, points, shown

DROPPING = (
    "keep_prob",
    "keep_ratio",
    "keep_last",
    "sensitivity",
    "gamma",
)  # settings that belong to the edges, named first
MET = 0.005  # a share within this of its budget is the budget, but for an edge or rounding


def advise(
    rows: Sequence[MethodRow], selected: Mapping[str, Selection] | None = None, protocol: Protocol | None = None
) -> Advice | None:
    """The advice of a comparison; ``None`` for rows of version 0.1, which were not judged against not dropping.

    ``selected[method]`` is what the luck of choosing settings does to its mean: it counts where methods are compared
    with each other.
    """
    judged = {label: row for label, row in labelled(rows).items() if "none" in row.against}
    if not judged:
        return None
    use = _best(judged, selected or {})
    if use is None:
        undropped = _undropped(judged)
        first, name, settings = _nothing(judged, undropped), undropped.reference, undropped.settings
    else:
        first, name, settings = _something(use, judged), use, judged[use].settings
    share = None if protocol is None else protocol.keep_ratio
    said = [f"{first}.", f"{_adaptive(judged, use)}.", *([] if share is None else _at_budget(rows, judged, share))]
    words, warnings = " ".join(said), tuple(cautions(rows, protocol))
    return Advice(words=words, use=name, settings=settings, warnings=warnings)


def _undropped(judged: Mapping[str, MethodRow]) -> Against:
    """A test against not dropping, on the backbone if there is one."""
    tests = [row.against["none"] for row in judged.values()]
    return next((test for test in tests if test.reference == "original"), tests[0])


def _best(judged: Mapping[str, MethodRow], selected: Mapping[str, Selection]) -> str | None:
    """The simplest method that is surely better than not dropping and that no other beats."""
    better = [label for label, row in judged.items() if row.against["none"].outcome == "better"]
    fair = [label for label in better if not _outdone(judged[label])]
    # What is surely better than something that is surely better than not dropping.
    fair += [name for label in better if (name := _outdone(judged[label])) and name in judged and name not in fair]
    kept = [label for label in fair if not any(_beats(judged, other, label, selected) for other in fair)] or fair
    above = [label for label in kept if (test := _uniform(judged[label])) and test.outcome == "better"]
    return min(above or kept, key=lambda label: _order(judged[label].method), default=None)


def _uniform(row: MethodRow) -> Against | None:
    """The test against DropEdge tuned; at a fixed budget there is only DropEdge at this budget, which is tuned, too."""
    return row.against.get("dropedge", row.against.get("budget"))


def _outdone(row: MethodRow) -> str | None:
    """The tuned DropEdge of a method that is surely worse than that, or than it at the same budget."""
    worse = [kind for kind in ("dropedge", "budget") if kind in row.against and row.against[kind].outcome == "worse"]
    uniform = _uniform(row)
    return uniform.reference if worse and uniform else None


def _beats(judged: Mapping[str, MethodRow], one: str, other: str, selected: Mapping[str, Selection]) -> bool:
    """Whether a method is surely better than another: as it was judged, or by their gains over the same reference."""
    mine, theirs = judged[one], judged[other]
    if other in (test.reference for test in mine.against.values()):
        return any(test.reference == other and test.outcome == "better" for test in mine.against.values())
    if one in (test.reference for test in theirs.against.values()):
        return any(test.reference == one and test.outcome == "worse" for test in theirs.against.values())
    ours, others = (row.against["none"] for row in (mine, theirs))
    if ours.reference != others.reference or not (ours.evidence and others.evidence):
        return False
    gains = [np.asarray(test.evidence.differences, dtype=np.float64) for test in (ours, others) if test.evidence]
    chosen = [selected[row.method] for row in (mine, theirs) if row.method in selected]
    shifts = between(*chosen) if len(chosen) == 2 else None
    p = float(deciding_p_values(gains[0], gains[1], shifts))
    return p <= ours.threshold and float(np.nanmean(gains[0] - gains[1])) > 0


def _order(method: str) -> tuple[int, int]:
    """Simple methods first: in the order of the registries, then those with networks of their own, ``auto`` last.

    Of two with the same rule, the one with fewer options is simpler.
    """
    names, one = list(droppings()), Method.of(method)
    if one.auto:
        return len(names) + 2, 0
    plain = method.partition(":")[0]
    place = names.index(plain) if plain in names else len(names) + (one.strategy is not None)
    return place, len(one.options)


def _beaten(judged: Mapping[str, MethodRow]) -> str:
    """Why DropEdge is advised although its own gain is not sure."""
    said = [
        f"{label} is surely better than not dropping, but surely worse than {test.reference}"
        for label, row in judged.items()
        if row.against["none"].outcome == "better"
        for test in row.against.values()
        if test.outcome == "worse"
    ]
    return "; ".join(said)


def _something(use: str, judged: Mapping[str, MethodRow]) -> str:
    row = judged[use]
    gain = row.against["none"]
    said = f"Use {_called(use, row.settings)}{_with(row.settings)}: {_gain(gain)} over {_reference(gain)} ({_p(gain)})"
    if gain.outcome != "better":
        said += f"; {_beaten(judged)}"
    rival = _uniform(row)
    if rival is None or rival.outcome != "undecided":
        return said
    kind = KINDS["dropedge" if "dropedge" in row.against else "budget"]
    return f"{said}; {kind} does the same ({_short(rival)})"


def _called(use: str, settings: Mapping[str, object]) -> str:
    """The method to use: of ``auto`` what it chose."""
    return f"{settings['method']} (chosen by {use})" if "method" in settings else use


def _nothing(judged: Mapping[str, MethodRow], undropped: Against) -> str:
    """That no method helps, what this run would have found, and what is surely worse."""
    tests = {label: row.against["none"] for label, row in judged.items()}
    where = "" if undropped.reference == "original" else f" of {undropped.reference}"
    said = f"Do not drop edges{where}{_with(undropped.settings)}: nothing is surely better than not dropping"
    worse = [f"{label} ({_short(test)})" for label, test in tests.items() if test.outcome == "worse"]
    if worse:
        said += f", and {listed(worse)} {'is' if len(worse) == 1 else 'are'} surely worse"
    return f"{said}; {_limits(list(tests.values()))}"


def _limits(tests: Sequence[Against]) -> str:
    """The smallest gain that would have been found in every method, and the seeds that half of it takes."""
    known = [test.evidence for test in tests if test.evidence is not None]
    found = [one.detectable for one in known if one.detectable is not None]
    seeds = max((test.seeds for test in tests), default=0)
    if not found or len(found) < len(known):
        few = [one.fewest_seeds for one in known if one.fewest_seeds is not None]
        if few and seeds < max(few):
            return f"{seeds} seeds are too few to find any gain: take at least {max(few)}"
        return "its replicates do not tell what gain it would have found"
    said = f"this run would have found a gain of {_points(max(found))} with a chance of 80 %"
    half = [one.seeds_for_half for one in known]
    if None in half:
        return f"{said}; half of it takes more choosing splits (--choose-splits), not more seeds"
    most = max(count for count in half if count is not None)
    return f"{said}; half of it needs {most} seeds, {most - seeds} more"


def _adaptive(judged: Mapping[str, MethodRow], use: str | None) -> str:
    """How adaptive dropping differs from DropEdge tuned, and from DropEdge at the same budget."""
    tests = {label: test for label, row in judged.items() if (test := _uniform(row)) is not None}
    known = {label: judged[label] for label, test in tests.items() if test.difference is not None}
    if not known:
        return "No adaptive method was compared" if not tests else "Adaptive dropping failed too often to be judged"
    label = use if use in known else max(known, key=lambda label: tests[label].difference or 0.0)
    over = [
        f"from {KINDS[kind]} by {_gain(test)} ({_word(test)})"
        for kind, test in known[label].against.items()
        if kind != "none"
    ]
    kind = "adaptive methods" if all(map(_by_importance, known.values())) else "methods other than plain DropEdge"
    alone = "Adaptive dropping" if _by_importance(known[label]) else "Dropping"
    front = alone if label == use or len(known) == 1 else f"The best of {len(known)} {kind}"
    return f"{front} ({label}) differs {listed(over)}"


def _at_budget(rows: Sequence[MethodRow], judged: Mapping[str, MethodRow], share: float) -> list[str]:
    """What keeps most of the accuracy at a fixed budget, and what could not be tried there."""
    known = {label: row.against["none"] for label, row in judged.items() if row.settings.get("kept_share") is not None}
    known = {label: test for label, test in known.items() if test.difference is not None}
    said = []
    if known:
        best = max(known, key=lambda label: known[label].difference or 0.0)
        test = known[best]
        front = f"Of all that keep {shown(100 * share)} % of the edges, {_called(best, judged[best].settings)} is best"
        said.append(f"{front}: {_gain(test)} against {_reference(test)} ({_word(test)}).")
    return said + ([f"{told}."] if (told := reach_words(rows)) else [])


def reach_words(rows: Sequence[MethodRow]) -> str:
    """The methods that a fixed budget is out of reach for, with what they keep at least; nothing where there are none.

    >>> names = {"dataset": "cora", "backbone": "gcn", "layers": 2}
    >>> reach_words([MethodRow(**names, method="cdf", least_share=0.5001), MethodRow(**names, method="dropedge")])
    'Out of reach: cdf, which keeps at least 50.01 % of the edges'
    """
    least = {label: row.least_share for label, row in labelled(rows).items() if row.least_share is not None}
    if not least:
        return ""
    if len(least) == 1:
        ((label, share),) = least.items()
        return f"Out of reach: {label}, which keeps at least {at_least(share)} % of the edges"
    return f"Out of reach: {listed(f'{label} (keeps at least {at_least(share)} %)' for label, share in least.items())}"


def at_least(share: float) -> str:
    """A least share in per cent, rounded up, so that it can be kept.

    >>> at_least(0.42301), at_least(0.5)
    ('42.31', '50')
    """
    return f"{math.ceil(round(share * 1e4, 6)) / 100:g}"


def _by_importance(row: MethodRow) -> bool:
    """Whether some edges are kept more often than others: DropEdge with an option keeps all of them alike."""
    return Method.of(row.method).strategy != UNIFORM


def _word(test: Against) -> str:
    if test.p_value is None:
        return "failed too often to be judged"
    said = "cannot be told apart" if test.outcome == "undecided" else f"surely {test.outcome}"
    return f"{said}, {_p(test)}"


def _p(test: Against) -> str:
    words = p_value(test.p_value)
    return f"p {words}" if words.startswith("<") else f"p = {words}"


def _gain(test: Against) -> str:
    sign = "+" if (test.difference or 0.0) > 0 else ""
    return sign + gap(test.difference, test.difference_low, test.difference_high, signed=True)


def _short(test: Against) -> str:
    return _gain(test).removesuffix(" points")


def _points(size: float) -> str:
    return f"{points(size).removeprefix('+')} points"


def _reference(test: Against) -> str:
    """Not dropping, with the network where it is not the backbone."""
    return KINDS["none"] if test.reference == "original" else f"{KINDS['none']} ({test.reference})"


def edge_words(settings: Mapping[str, object]) -> list[str]:
    """The settings of the edges; where a budget could not be met, the share that was kept instead.

    >>> edge_words({"dropout": 0.5, "keep_ratio": 0.05, "kept_share": 0.525})
    ['keep_ratio 0.05 (kept: 0.525)']
    """
    words = {name: f"{name} {shown(settings[name])}" for name in DROPPING if name in settings}
    asked, kept = settings.get("keep_ratio"), settings.get("kept_share")
    if isinstance(asked, float) and isinstance(kept, float) and abs(kept - asked) > MET:
        words["keep_ratio"] += f" (kept: {shown(kept)})"
    return list(words.values())


def _with(settings: Mapping[str, object]) -> str:
    """Settings in a sentence: those of the edges first, the others in brackets."""
    edges, unsaid = edge_words(settings), {*DROPPING, "kept_share", "method"}
    words = {name: f"{name.replace('_', ' ')} {shown(value)}" for name, value in settings.items() if name not in unsaid}
    front = f" with {listed(edges)}" if edges else ""
    return front + (f" ({', '.join(words.values())})" if words else "")
