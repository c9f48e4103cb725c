"""``auto``: score, rule, options and budget are settings of its search like any other.

Trial i of ``auto`` draws a method with its budget, each part by a random word of its own:

* ``score``: ``none`` (nothing is dropped), ``uniform`` (DropEdge), ``dropsens``, one of the few scores that have won
  somewhere (:data:`FAVOURED`), or one of your own. Those that say how alike two nodes are (:data:`LIKENESS`) are twice
  as likely as the rest, and nothing is dropped in about every fifth trial;
* ``rule``: ``cdf``, which keeps half of the edges or more, ``proportional``, which can keep any share and is twice as
  likely, or your own;
* ``option``: none, ``unbiased``, or ``expected``, which is twice as likely as each of the others, where the network can
  have them;
* the budget, ``keep_ratio`` where the rule can meet any and ``keep_prob`` elsewhere, over the whole range.

Whatever is drawn takes trials from the rest, and a search has few: a method that never wins costs all others. So what
has not been seen to win is not drawn, unless a space names it: other scores, rules and options, and ``inverse``.

What is trained is an ordinary trial of the method that was drawn. A study holds only the settings which that has a use
for: one that drops nothing has no rule.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from tadropedge._old.errors import TadropedgeError
from tadropedge._old.fingerprint import of_this_package
from tadropedge._old.method import OPTIONS, PAPER_SCORE, SENSITIVITY, UNIFORM, Method, rules
from tadropedge._old.registry import SCORES, STRATEGIES
from tadropedge._old.strategies import wants
from tadropedge._old.training.config import Trial, plug_ins

NOTHING = "none"
ANY_BUDGET = "proportional"
NAMES = ("score", "rule", "inverse", "option")  # settings of auto alone, which make up the name of a method
TUNED = ("keep_prob", "keep_ratio", "sensitivity", "keep_last")  # settings of dropping, of which a method has some
GIVEN = "column"  # the score that a user's file may have: it is drawn where it is there
# By likeness where edges are noise, and then kept by weight in evaluation too: nothing else has been seen to win by
# several points, and one of sixteen trials would not find it. By degree where few edges are kept.
LIKENESS = ("jaccard", "common-neighbours", "cosine", GIVEN)
FAVOURED = ("effective", "degree", *LIKENESS)
RULES = ("cdf", ANY_BUDGET)
ENDS = ("unbiased", "expected")  # options
TWICE = (*LIKENESS, ANY_BUDGET, "expected")  # what is drawn twice as often as the rest
SENSITIVITIES = [0.5, 0.8, 0.9, 0.95]  # of DropSens; its authors' scripts take 0.8
DRAWS = 3  # to be raised when the same space and seed would draw other methods: studies are named by it


def choices(scores: Sequence[str] | None = None, options: Sequence[str] | None = None) -> dict[str, list[Any]]:
    """The lists from which score, rule, inverse and option are drawn; what stands there twice is twice as likely.

    ``scores`` and ``options`` are those that can be had; by default all. Of them only those are drawn that are worth a
    trial, see :func:`worth_drawing`.

    >>> made = choices(["aggregate", "degree", "jaccard", "cosine"], ["unbiased", "connected", "expected"])
    >>> made["score"]
    ['none', 'none', 'uniform', 'dropsens', 'degree', 'jaccard', 'jaccard', 'cosine', 'cosine']
    >>> made["rule"]
    ['cdf', 'proportional', 'proportional']
    >>> made["option"], made["inverse"]
    (['none', 'unbiased', 'expected', 'expected'], [False])
    """
    scores = [name for name in SCORES if name != GIVEN] if scores is None else scores
    options = list(OPTIONS) if options is None else options
    ends = [name for name in ENDS if name in options]
    dropping = _weighted([UNIFORM, SENSITIVITY, *(worth_drawing(scores) or scores)])
    return {
        "score": [*[NOTHING] * -(-len(dropping) // 4), *dropping],  # a fifth or a little more, however many there are
        "rule": _weighted(_worth(rules(), RULES, STRATEGIES)),
        "inverse": [False],
        "option": [NOTHING, *_weighted(ends)],
    }


def _weighted(names: Iterable[str]) -> list[str]:
    """Names, some of them twice."""
    return [name for name in names for _ in range(2 if name in TWICE else 1)]


def worth_drawing(scores: Iterable[str] | None = None) -> list[str]:
    """Those of ``scores``, by default of all, that ``auto`` draws: the few that have won somewhere, and your own.

    >>> worth_drawing()
    ['effective', 'degree', 'jaccard', 'common-neighbours', 'cosine', 'column']
    """
    return _worth(SCORES if scores is None else scores, FAVOURED, SCORES)


def _worth(names: Iterable[str], favoured: Container[str], known: Mapping[str, Any]) -> list[str]:
    """The favoured among some names, and those that are not of this package."""
    return [name for name in names if name in favoured or not of_this_package(known[name])]


def place(method: str) -> str:
    """What stands for a method in the names of its studies: other draws of ``auto`` are other studies, beside the old.

    >>> place("cdf"), place("graphsage+auto")
    ('cdf', 'graphsage+auto@3')
    """
    return f"{method}@{DRAWS}" if Method.of(method).auto else method


def used(method: Method) -> set[str]:
    """The settings of dropping that a method has a use for, and those of ``auto`` that say which method it is.

    >>> sorted(used(Method.of("degree-proportional:nested")))
    ['inverse', 'keep_last', 'keep_ratio', 'option', 'rule', 'score']
    >>> sorted(used(Method.of("dropsens"))), sorted(used(Method.of("original")))
    (['keep_prob', 'option', 'score', 'sensitivity'], ['score'])
    """
    if method.strategy is None:
        return {"score"}
    budget = "keep_ratio" if wants(STRATEGIES[method.strategy], "keep_ratio") else "keep_prob"
    names = {"score", "option", budget}
    names |= set() if method.score is None else {"rule", "inverse"}
    names |= {"sensitivity"} if method.strategy == SENSITIVITY else set()
    return names | ({"keep_last"} if "nested" in method.options else set())


def drawn(auto: str, settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The method that was drawn, and its settings without those that it has no use for.

    >>> drawn("graphsage+auto", {"score": "uniform", "rule": "cdf", "option": "nested", "keep_prob": 0.3,
    ...       "keep_ratio": 0.3, "keep_last": 0.9, "dropout": 0.5})
    ('graphsage+dropedge:nested', {'keep_prob': 0.3, 'keep_last': 0.9, 'dropout': 0.5})
    """
    name = _name(settings)
    network = Method.of(auto).network
    if network is not None:
        name = network if name == "original" else f"{network}+{name}"
    method = Method.of(name)
    idle = set(NAMES) | (set(TUNED) - used(method))
    return method.name, {key: value for key, value in settings.items() if key not in idle}


def _name(settings: Mapping[str, Any]) -> str:
    """The name of a method without its network."""
    score = settings.get("score")
    if score is None:
        raise TadropedgeError(
            f"the search space of auto must name a score, it names {', '.join(settings) or 'nothing'}"
        )
    if score == NOTHING:
        return "original"
    option = settings.get("option", NOTHING)
    end = "" if option == NOTHING else f":{option}"
    if score in (UNIFORM, SENSITIVITY):
        return f"{'dropedge' if score == UNIFORM else SENSITIVITY}{end}"
    front = "inverse-" if settings.get("inverse") else ""
    return f"{front}{'' if score == PAPER_SCORE else f'{score}-'}{settings.get('rule', ANY_BUDGET)}{end}"


def told(trial: Trial) -> dict[str, Any]:
    """The settings of ``auto`` that gave this trial: the inverse of :func:`drawn`.

    >>> told(Trial.of("inverse-cdf", keep_prob=0.3, dropout=0.5))["rule"]
    'cdf'
    """
    method = Method.of(trial.method)
    score = NOTHING if method.strategy is None else method.score or method.strategy
    named = {
        "score": score,
        "rule": method.strategy,
        "inverse": method.inverse,
        "option": method.options[0] if method.options else NOTHING,
    }
    idle = {*NAMES, *TUNED} - used(method)
    return {name: value for name, value in {**trial.flat(), **named}.items() if name not in idle}


def code(settings: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    """The fingerprints of your own scores and rules among the choices of a space."""
    scores = [f"{name}-cdf" for name in settings.get("score", ()) if name in SCORES]
    found: dict[str, str] = {}
    for method in (*scores, *settings.get("rule", ())):
        found |= plug_ins(method)
    return found
