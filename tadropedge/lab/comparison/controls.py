"""What is compared where nobody says it, and what a claim has to hold against."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch

from tadropedge.dropping import UNIFORM, Dropping
from tadropedge.errors import TadropedgeError
from tadropedge.lab.candidate import Candidate
from tadropedge.lab.data.dataset import Dataset

ORIGINAL = Candidate()
DENSE = 10.0  # the mean degree from which a tenth of the edges is worth a try
TENTH = "dropedge@0.1:finish"
YARDSTICK = "mlp"
ASKED = ("claims", "all", "none")  # for which candidates the controls are trained


def defaults(data: Dataset, *, own_model: bool = False) -> list[Candidate]:
    """The candidates of a comparison in which none are named; three of them for a module of one's own, which is slow.

    >>> from tadropedge.lab.data.synthetic import dense, karate
    >>> [str(candidate) for candidate in defaults(karate())]  # whose features tell nothing
    ['original', 'dropedge', 'cdf', 'degree-proportional', 'jaccard-proportional:weighted']
    >>> [str(candidate) for candidate in defaults(dense(), own_model=True)]
    ['original', 'dropedge', 'dropedge@0.1:finish']
    """
    is_dense = 2 * data.graph.num_edges >= DENSE * data.graph.num_nodes
    if own_model:
        names = ["original", "dropedge", TENTH if is_dense else "jaccard-proportional:weighted"]
    else:
        names = ["original", "dropedge", "cdf", "degree-proportional", "jaccard-proportional:weighted"]
        names += ["cosine-proportional:weighted"] if has_features(data) else []
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
    return [ORIGINAL, *(candidate for candidate in found if candidate != ORIGINAL)]


def controls_of(candidate: Candidate, kept_share: float | None = None) -> list[Candidate]:
    """What a candidate must beat, too, before its gain is a gain by what it does.

    * one with a network of its own: that network, from which nothing is dropped;
    * by score: DropEdge, tuned, and at the ``kept_share`` of the candidate; ``weighted`` and ``pruned`` by the same
      score and rule;
    * ``consistent``: ``sharpen`` (one draw) and ``original:consistent`` (draws of dropout alone);
    * ``finish``: the same from no edges at all.

    >>> [str(one) for one in controls_of(Candidate.parse("jaccard-proportional:weighted"), 0.52)]
    ['dropedge', 'dropedge@0.52', 'jaccard-proportional:pruned']
    >>> [str(one) for one in controls_of(Candidate.parse("dropedge:consistent"))]
    ['dropedge:sharpen', 'original:consistent']
    >>> controls_of(Candidate.parse("dropedge"))
    []
    """
    dropping, plain = candidate.dropping, replace(candidate, network=None)
    found: list[Candidate] = []
    if plain.is_auto:
        found.append(Candidate(dropping=Dropping(rule=UNIFORM)))
    elif dropping.rule is not None and dropping.rule != UNIFORM:
        found.append(replace(plain, dropping=Dropping(rule=UNIFORM)))
        if kept_share is not None and 0 < round(kept_share, 2) < 1:
            found.append(replace(plain, dropping=Dropping(rule=UNIFORM, keep_ratio=round(kept_share, 2))))
        for use in ("weighted", "pruned"):
            found += _used(plain, use)
    if "consistent" in plain.ways:
        ways = tuple(way for way in plain.ways if way != "consistent")
        found += [replace(plain, ways=(*ways, "sharpen"))]
        found += [replace(plain, dropping=Dropping())] if dropping.rule is not None else []
    if "finish" in plain.ways and dropping.rule is not None and dropping.keep_ratio != 0.0:
        found.append(Candidate(dropping=Dropping(rule=UNIFORM, keep_ratio=0.0), ways=("finish",)))
    named = [replace(one, network=candidate.network) for one in found if one != plain]
    bare = [Candidate(network=candidate.network)] if candidate.network else []
    return list(dict.fromkeys(one for one in (*bare, *named) if one != candidate))


def _used(candidate: Candidate, use: str) -> Sequence[Candidate]:
    """The same score, rule and budget in another use, without the options that it excludes."""
    dropping = candidate.dropping
    if dropping.use == use:
        return []
    other = replace(dropping, use=use, options=())
    return [replace(candidate, dropping=other)]


def has_features(data: Dataset) -> bool:
    """Whether the features of nodes say more than which node it is."""
    features = data.features
    if features.shape[0] != features.shape[1]:
        return True
    numbers = torch.arange(len(features), device=features.device)
    if features.layout is torch.sparse_csr:
        ones, columns = features.values(), features.col_indices()
        return not (len(ones) == len(numbers) and bool((ones == 1).all()) and torch.equal(columns, numbers))
    return not (bool((features.diagonal() == 1).all()) and int(features.count_nonzero()) == len(numbers))
