"""How often a whole comparison errs if no method has any effect, its choice of settings included, and what it can find.

Methods and references are searched, chosen and replicated as by ``compare``, but all settings are as good for one
method as for another, so whoever is called better or worse is called so wrongly: by the rule, and by the same tests
without the luck of the choice. ``own settings``: each method has the same qualities, half of them at settings of its
own. Then the smallest effect that is found with a chance of 80 %.

    python benchmarks/old/procedure.py [--families 200] [--out FILE]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from report import write

from tadropedge._old.comparison.paired import ALPHA
from tadropedge._old.comparison.procedure import World, needed_effects, smallest_p_values
from tadropedge._old.comparison.selection import noise

Array = npt.NDArray[np.float64]
Truth = Callable[[np.random.Generator, int], Array]

SPLIT, REPLICATE = 0.7, 0.6  # points: noise of a validation score of one split, and of a replicate, each of one method
NODES = 500
USUAL = {"methods": 4, "trials": 30, "splits": 3, "seeds": 20}
VARIED = {"methods": (1, 8), "trials": (10, 100), "splits": (1, 5), "seeds": (10, 100)}
PLANS = [USUAL, *(USUAL | {name: value} for name, values in VARIED.items() for value in values)]

# Qualities of the settings in points below the best.
TRUTHS: dict[str, tuple[str, Truth]] = {
    "equal": ("all settings equally good", lambda random, size: np.zeros(size)),
    "normal": ("normal, spread 1 point", lambda random, size: random.standard_normal(size)),
    "exponential": ("many near the best: exponential, mean 1 point", lambda random, size: -random.exponential(1, size)),
    "wide": ("few near the best: exponential, mean 10 points", lambda random, size: -random.exponential(10, size)),
    "heavy noise": ("exponential, mean 1 point; validation noise with heavy tails (Student, 3 degrees of freedom)",
                    lambda random, size: -random.exponential(1, size)),
    "own settings": ("exponential, mean 1 point; half of the settings differ from method to method",
                     lambda random, size: -random.exponential(1, size)),
    "two good": ("two good settings, one point apart, the others hopeless",
                 lambda random, size: np.r_[0.0, -1.0, np.full(size - 2, -20.0)]),
    "one good": ("one good setting, all others one point worse",
                 lambda random, size: np.r_[0.0, np.full(size - 1, -1.0)]),
    "far good": ("one good setting, all others 1.5 points worse",
                 lambda random, size: np.r_[0.0, np.full(size - 1, -1.5)]),
}  # fmt: skip


def places(methods: int) -> npt.NDArray[np.int64]:
    """The family: each method against its three references, and DropEdge against not dropping."""
    original, dropedge = methods, methods + 1
    mine = [(one, other) for one in range(methods) for other in (original, dropedge, methods + 2 + one)]
    return np.array([*mine, (dropedge, original)])


def world(name: str, plan: dict[str, int], families: int) -> World:
    """Families of one truth, searched and replicated."""
    random = np.random.default_rng([list(TRUTHS).index(name), *plan.values()])
    searched, trials = 2 * plan["methods"] + 2, plan["trials"]
    quality = np.stack([TRUTHS[name][1](random, trials) for _ in range(families)])[:, None].repeat(searched, axis=1)
    if name == "own settings":
        quality[..., ::2] = random.permuted(quality[..., ::2], axis=-1)
    shape = (families, searched, trials, plan["splits"])
    luck = random.standard_t(3, shape) / np.sqrt(3) if name == "heavy noise" else random.standard_normal(shape)
    scores = 0.8 + (quality[..., None] + SPLIT * luck) / 100
    means = scores.mean(axis=-1)
    chosen = np.take_along_axis(quality, means.argmax(axis=-1)[..., None], axis=-1)
    fresh = chosen + REPLICATE * random.standard_normal((families, searched, plan["seeds"]))
    ours, theirs = places(plan["methods"]).T
    found = [noise(one, NODES) for one in scores]
    return World(
        scores=means,
        noise=np.array([error for error, _ in found]) / np.sqrt(plan["splits"]),
        freedom=found[0][1],
        gaps=(fresh[:, ours] - fresh[:, theirs]) / 100,
    )


def measured(name: str, plan: dict[str, int], families: int) -> dict[str, Any]:
    """One row: the rates of false alarms, and the smallest effect that is found."""
    family = places(plan["methods"])
    drawn = world(name, plan, families)
    rates = [float((found * len(family) <= ALPHA).mean()) for found in smallest_p_values(drawn, family)]
    row: dict[str, Any] = {"truth": name, **plan, "families": families}
    row |= {"false_alarms": round(rates[0], 4), "without_choice": round(rates[1], 4)}
    row["error"] = round(float(np.sqrt(max(rates[0] * (1 - rates[0]), 1 / families) / families)), 4)
    row["detectable"] = round(100 * float(np.quantile(needed_effects(drawn, family, ALPHA), 0.8, method="higher")), 3)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", type=int, default=200)
    parser.add_argument("--out", default="results/benchmarks/procedure.json")
    options = parser.parse_args()
    rows = []
    for name in TRUTHS:
        for plan in PLANS:
            rows.append(measured(name, plan, options.families))
            print(rows[-1], flush=True)
    write(options.out, {"procedure": rows})


if __name__ == "__main__":
    main()
