"""``auto``: score, rule, options and budget are settings of its search like any other.

Trial i of ``auto`` draws a method with its budget, each part by a random word of its own:

* ``score``: ``none`` (nothing is dropped), ``uniform`` (DropEdge), ``dropsens``, or a score; all equally likely;
* ``rule``: half of the trials take ``proportional``, which can keep any share of the edges; the others share the rest;
* ``inverse``: one trial in eight drops high scores first, for high scores are meant to be kept;
* ``option``: half of the trials have none, the others one of those that the network can have;
* the budget, ``keep_ratio`` where the rule can meet any and ``keep_prob`` elsewhere, over the whole range.

What is trained is an ordinary trial of the method that was drawn. A study holds only the settings which that has a use
for: one that drops nothing has no rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tadropedge.errors import TadropedgeError
from tadropedge.method import OPTIONS, PAPER_SCORE, SENSITIVITY, UNIFORM, Method, rules
from tadropedge.registry import SCORES, STRATEGIES
from tadropedge.strategies import wants
from tadropedge.training.config import Trial, plug_ins

NOTHING = "none"
ANY_BUDGET = "proportional"
NAMES = ("score", "rule", "inverse", "option")  # settings of auto alone, which make up the name of a method
TUNED = ("keep_prob", "keep_ratio", "sensitivity", "keep_last")  # settings of dropping, of which a method has some
ONE_IN = 8  # trials is inverse
GIVEN = "column"  # the score that a user's file may have: it is drawn where it is there
SENSITIVITIES = [0.5, 0.8, 0.9, 0.95]  # of DropSens; its authors' scripts take 0.8


def choices(scores: Sequence[str] | None = None, options: Sequence[str] | None = None) -> dict[str, list[Any]]:
    """The lists from which score, rule, inverse and option are drawn; what stands there twice is twice as likely.

    ``scores`` and ``options`` are those that can be had; by default all.

    >>> made = choices(["degree", "jaccard"], ["unbiased"])
    >>> made["score"], made["rule"]
    (['none', 'uniform', 'dropsens', 'degree', 'jaccard'], ['cutoff', 'division', 'cdf', 'proportional', \
'proportional', 'proportional'])
    >>> made["option"], len(made["inverse"])
    (['none', 'unbiased'], 8)
    """
    scores = [name for name in SCORES if name != GIVEN] if scores is None else scores
    options = list(OPTIONS) if options is None else options
    others = [name for name in rules() if name != ANY_BUDGET]
    return {
        "score": [NOTHING, UNIFORM, SENSITIVITY, *scores],
        "rule": [*others, *[ANY_BUDGET] * len(others)],
        "inverse": [False] * (ONE_IN - 1) + [True],
        "option": [*[NOTHING] * max(1, len(options)), *options],
    }


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
