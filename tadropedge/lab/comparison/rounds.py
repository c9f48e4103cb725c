"""The protocol of claims: everybody against not dropping, then those that won against the controls of their claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tadropedge.errors import lookup
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.comparison.advice import answer, cheaper
from tadropedge.lab.comparison.controls import ASKED, ORIGINAL, controls_of
from tadropedge.lab.comparison.results import Judged, Plain, Results, Row, Yardstick
from tadropedge.lab.comparison.statistics import decide, interval

Played = Mapping[str, Sequence[Judged]]  # the replicates of every candidate, by its name
Play = Callable[[Sequence[Candidate], int | None], Played]  # searches candidates, in as many replicates at most

REFERENCE = str(ORIGINAL)


def two_rounds(
    candidates: Sequence[Candidate],
    play: Play,
    *,
    controls: str = "claims",
    margin: float,
    yardstick: str | None = None,
    num_splits: int | None = None,
) -> tuple[list[Row], Yardstick | None]:
    """Play every candidate, and the controls of those that beat ``original``; decide both rounds.

    Args:
        candidates: ``original`` among them.
        play: searches some candidates.
        controls: ``"claims"``: of those that beat not dropping; ``"all"``: of every candidate; ``"none"``.
        margin: what counts as no difference, a fraction of 1.
        yardstick: a name that the first call of ``play`` returns besides those of the candidates. Where not dropping is
            not shown to be better than it, the graph itself is not shown to help, and no claim is made: all words are
            ``undecided``.
        num_splits: how many different splits there are; replicates of one split are averaged before they are decided.
            Where there is one alone, nothing is decided.
    """
    lookup("controls", controls, dict.fromkeys(ASKED))
    names = [str(candidate) for candidate in candidates]
    played = dict(play(candidates, None))
    shared = None if num_splits == 1 else num_splits  # the starts of one split are replicates, too
    beside = None if yardstick is None else _over(played[REFERENCE], yardstick, played[yardstick], shared)
    played = {name: played[name] for name in names}  # in their order, and the yardstick only where it was named
    if num_splits == 1:
        return [Row.of(name, played[name]) for name in names], beside
    first = [(name, REFERENCE) for name in names if name != REFERENCE]
    verdicts = decide(_paired(played, names, num_splits), first, margin)
    no_claim = beside is not None and not beside.difference["low"] > 0
    winners = {name for (name, _), one in verdicts.items() if one.word == "better" and not no_claim}
    asked = {
        candidate: controls_of(candidate, _kept(played[str(candidate)]))
        for candidate in candidates
        if str(candidate) != REFERENCE and (controls == "all" or (controls == "claims" and str(candidate) in winners))
    }
    missing = list(dict.fromkeys(one for some in asked.values() for one in some if str(one) not in played))
    if missing:
        played |= play(missing, min(len(played[name]) for name in names))
    for candidate, some in asked.items():
        second = [(str(candidate), str(one)) for one in some if str(one) in played and str(one) != REFERENCE]
        scores = _paired(played, [str(candidate), *(other for _, other in second)], num_splits)
        verdicts |= decide(scores, second, margin, claims=max(1, len(first)))
    if no_claim:
        verdicts = {pair: replace(one, word="undecided", needed=None) for pair, one in verdicts.items()}
    rows = []
    for name, replicates in played.items():
        against = {reference: one for (candidate, reference), one in verdicts.items() if candidate == name}
        rows.append(replace(Row.of(name, replicates), against=against))
    return rows, beside


def _over(reference: Sequence[Judged], name: str, replicates: Sequence[Judged], num_splits: int | None) -> Yardstick:
    """A candidate outside the family: how much the reference scores over it, with a paired 95 % interval."""
    scores = _paired({REFERENCE: reference, name: replicates}, [REFERENCE, name], num_splits)
    gaps = np.asarray(scores[REFERENCE]) - np.asarray(scores[name])
    value, low, high = (float(each) for each in interval(gaps[~np.isnan(gaps)]))
    own = Row.of(name, replicates)
    difference = {"value": value, "low": low, "high": high}
    return Yardstick(candidate=name, mean=own.mean, low=own.low, high=own.high, difference=difference)


def answered(rows: Sequence[Row], run: Plain, yardstick: Yardstick | None = None) -> Results:
    """The results of these rows, with what costs less and with the answer; ``run`` says the margin."""
    found = tuple(cheaper(rows, run["margin"]))
    results = Results(rows=tuple(rows), yardstick=yardstick, cheaper=found, run=run)
    return replace(results, answer=answer(results))


def _paired(played: Played, names: Sequence[str], num_splits: int | None) -> dict[str, list[float]]:
    """The test scores of the replicates that all of these candidates have; those of one split are averaged."""
    tests = {name: {one.number: one.test for one in played[name]} for name in names}
    common = sorted(set.intersection(*(set(one) for one in tests.values())))
    splits = sorted({number % num_splits if num_splits else number for number in common})
    if len(splits) == len(common):
        return {name: [tests[name][number] for number in common] for name in names}
    groups = [[number for number in common if number % (num_splits or 1) == split] for split in splits]
    return {name: [math.fsum(tests[name][n] for n in group) / len(group) for group in groups] for name in names}


def _kept(replicates: Sequence[Judged]) -> float | None:
    """The share of edges that a candidate keeps, on average over its replicates."""
    known = [one.kept_share for one in replicates if one.kept_share is not None]
    return sum(known) / len(known) if known else None
