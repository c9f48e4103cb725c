"""The protocol of claims: who takes part where nobody says it, what a claim has to hold against, and the two rounds.

In the first round everybody is held against not dropping; in the second those that won, against the controls of their
claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from tadropedge.dropping import UNIFORM, Dropping
from tadropedge.errors import TadropedgeError, lookup
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.comparison.results import ORIGINAL, Row, Yardstick
from tadropedge.lab.data.dataset import Dataset
from tadropedge.lab.statistics import Replicate, decide, interval, paired

Played = Mapping[str, Sequence[Replicate]]  # the replicates of every candidate, by its name
Play = Callable[[Sequence[Candidate], int | None], Played]  # searches candidates, in as many replicates at most

DENSE = 10.0  # the mean degree from which a tenth of the edges is worth a try
TENTH = "dropedge@0.1:finish"
FEW_LABELS = "degree-proportional:consistent"
YARDSTICK = "mlp"
ASKED = ("claims", "all", "none")  # for which candidates the controls are trained


def defaults(data: Dataset, *, own_model: bool = False) -> list[Candidate]:
    """The candidates of a comparison in which none are named; three of them for a module of one's own, which is slow.

    >>> from tadropedge.lab.data.synthetic import dense, karate
    >>> [str(candidate) for candidate in defaults(karate())]  # whose features tell nothing
    ['original', 'dropedge', 'cdf', 'degree-proportional', 'jaccard-proportional:weighted', \
'degree-proportional:consistent']
    >>> [str(candidate) for candidate in defaults(dense(), own_model=True)]
    ['original', 'dropedge', 'dropedge@0.1:finish']
    """
    is_dense = 2 * data.graph.num_edges >= DENSE * data.graph.num_nodes
    if own_model:
        names = ["original", "dropedge", TENTH if is_dense else "jaccard-proportional:weighted"]
    else:
        names = ["original", "dropedge", "cdf", "degree-proportional", "jaccard-proportional:weighted"]
        names += ["cosine-proportional:weighted"] if has_features(data) else []
        names += [FEW_LABELS]
        names += [TENTH] if is_dense else []
    return [Candidate.parse(name) for name in names]


def candidates_of(methods: Iterable[str | Dropping | Candidate]) -> list[Candidate]:
    """What a user names, each once, with ``original`` in front of all others.

    >>> [str(candidate) for candidate in candidates_of(["cdf", "gat+dropedge"])]
    ['original', 'cdf', 'gat+dropedge']
    """
    if isinstance(methods, str | Dropping | Candidate):
        raise TadropedgeError(f"methods is a list, got {str(methods)!r}: write [{str(methods)!r}]", argument="methods")
    found = [Candidate.parse(name) for name in methods]
    names = [str(candidate) for candidate in found]
    for name in names:
        if names.count(name) > 1:
            raise TadropedgeError(f"methods name {name!r} more than once", argument="methods")
    return [Candidate(), *(candidate for candidate in found if candidate != Candidate())]


def controls_of(candidate: Candidate, kept_share: float | None = None, pace: float | None = None) -> list[Candidate]:
    """What a candidate must beat, too, before its gain is a gain by what it does.

    * one with a network of its own: that network, from which nothing is dropped;
    * by score: DropEdge, tuned, and at the ``kept_share`` of the candidate; ``weighted`` and ``pruned`` by the same
      score and rule;
    * ``consistent``, instead: ``sharpen`` (one draw, nothing dropped), ``original:consistent`` (draws of dropout
      alone), the same without consistency, and ``dropedge:consistent`` (what the score adds);
    * ``finish``: the same from no edges at all, and not dropping for as many epochs as take the same time: ``pace`` is
      what the candidate's epoch takes, over that of not dropping.

    >>> [str(one) for one in controls_of(Candidate.parse("jaccard-proportional:weighted"), 0.52)]
    ['dropedge', 'dropedge@0.52', 'jaccard-proportional:pruned']
    >>> [str(one) for one in controls_of(Candidate.parse("dropedge:consistent"))]
    ['sharpen', 'original:consistent', 'dropedge']
    >>> [str(one) for one in controls_of(Candidate.parse("dropedge@0.1:finish"), pace=0.348)]
    ['dropedge@0:finish', 'original:epochs@0.35']
    >>> controls_of(Candidate.parse("dropedge"))
    []
    """
    dropping, plain = candidate.dropping, replace(candidate, network=None)
    found: list[Candidate] = []
    if plain.is_auto:
        found.append(Candidate(dropping=Dropping(rule=UNIFORM)))
    elif "consistent" in plain.ways:
        without = tuple(way for way in plain.ways if way != "consistent")
        found = [Candidate(ways=("sharpen",)), replace(plain, dropping=Dropping()), replace(plain, ways=without)]
        found += [replace(plain, dropping=Dropping(rule=UNIFORM))] if dropping.score is not None else []
    elif dropping.rule is not None and dropping.rule != UNIFORM:
        found.append(replace(plain, dropping=Dropping(rule=UNIFORM)))
        if kept_share is not None and 0 < round(kept_share, 2) < 1:
            found.append(replace(plain, dropping=Dropping(rule=UNIFORM, keep_ratio=round(kept_share, 2))))
        for use in ("weighted", "pruned"):
            if use != dropping.use:  # without the options that it excludes
                found.append(replace(plain, dropping=replace(dropping, use=use, options=())))
    if "finish" in plain.ways and dropping.rule is not None and dropping.keep_ratio != 0.0:
        found.append(Candidate(dropping=Dropping(rule=UNIFORM, keep_ratio=0.0), ways=("finish",)))
    if "finish" in plain.ways and pace is not None and 0 < round(pace, 2) < 1:
        found.append(Candidate(epochs=round(pace, 2)))
    named = [replace(one, network=candidate.network) for one in found if one != plain]
    bare = [Candidate(network=candidate.network)] if candidate.network else []
    return list(dict.fromkeys(one for one in (*bare, *named) if one not in (candidate, Candidate())))


def has_features(data: Dataset) -> bool:
    """Whether the features of nodes say more than which node it is: a matrix of N features, one for each node."""
    features = data.features
    if features.layout is torch.sparse_csr:
        columns, values = features.col_indices().long(), features.values()
    else:
        columns, values = features.nonzero()[:, 1], features[features != 0]
    one_each = torch.equal(columns, torch.arange(len(features), device=features.device))
    return not (one_each and features.shape[0] == features.shape[1] and bool((values == 1).all()))


def two_rounds(
    candidates: Sequence[Candidate],
    play: Play,
    *,
    controls: str = "claims",
    margin: float,
    yardstick: str | None = None,
    num_splits: int | None = None,
    seconds: Callable[[str, Sequence[Replicate]], float] | None = None,
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
        seconds: what an epoch of a candidate takes. One that finishes on the whole graph claims to be cheaper: its
            controls are trained where it is no worse than ``original``, and one of them trains as long as it does.
    """
    lookup("controls", controls, dict.fromkeys(ASKED))
    names = [str(candidate) for candidate in candidates]
    played = dict(play(candidates, None))
    shared = None if num_splits == 1 else num_splits  # the starts of one split are replicates, too
    beside = None if yardstick is None else _beside(played, yardstick, shared)
    played = {name: played[name] for name in names}  # in their order, and the yardstick only where it was named
    if num_splits == 1:
        return [Row.of(name, played[name]) for name in names], beside
    first = [(name, ORIGINAL) for name in names if name != ORIGINAL]
    verdicts = decide(paired(played, num_splits), first, margin)
    no_claim = beside is not None and not beside.difference["low"] > 0
    winners = {name for (name, _), one in verdicts.items() if one.word == "better" and not no_claim}
    cheap = {str(one) for one in candidates if "finish" in one.ways and seconds is not None and not no_claim}
    winners |= {name for (name, _), one in verdicts.items() if name in cheap and one.low > -margin}
    asked = {}
    for candidate in candidates:
        name = str(candidate)
        if name == ORIGINAL or controls == "none" or (controls == "claims" and name not in winners):
            continue
        pace = None
        if seconds is not None and "finish" in candidate.ways:
            pace = seconds(name, played[name]) / seconds(ORIGINAL, played[ORIGINAL])
        asked[candidate] = controls_of(candidate, Row.of("", played[name]).kept_share, pace)
    missing = list(dict.fromkeys(one for some in asked.values() for one in some if str(one) not in played))
    if missing:
        played |= play(missing, min(len(played[name]) for name in names))
    for candidate, some in asked.items():
        second = [(str(candidate), str(one)) for one in some if str(one) in played and str(one) != ORIGINAL]
        some_played = {name: played[name] for pair in second for name in pair}
        verdicts |= decide(paired(some_played, num_splits) if second else {}, second, margin, claims=max(1, len(first)))
    if no_claim:
        verdicts = {pair: replace(one, word="undecided", needed=None) for pair, one in verdicts.items()}
    rows = []
    for name, replicates in played.items():
        against = {reference: one for (candidate, reference), one in verdicts.items() if candidate == name}
        rows.append(replace(Row.of(name, replicates), against=against))
    return rows, beside


def _beside(played: Played, name: str, num_splits: int | None) -> Yardstick:
    """A candidate outside the family: how much not dropping scores over it, with a paired 95 % interval."""
    scores = paired({each: played[each] for each in (ORIGINAL, name)}, num_splits)
    gaps = np.asarray(scores[ORIGINAL]) - np.asarray(scores[name])
    value, low, high = (float(each) for each in interval(gaps[~np.isnan(gaps)]))
    own = Row.of(name, played[name])
    difference = {"value": value, "low": low, "high": high}
    return Yardstick(candidate=name, mean=own.mean, low=own.low, high=own.high, difference=difference)
