"""How often equal methods are called better or worse, and how often a real difference is found.

For each null of ``tadropedge.comparison.nulls``, each number of replicates and of methods: the share of comparisons
that call any method better or worse, by the rule and by the t-test alone, both with Holm's correction. Then the same
for one true difference. It also writes the rates that reports print, beside the code.

    python benchmarks/old/false_alarms.py [--comparisons 20000] [--out FILE]
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from report import write

from tadropedge._old.comparison.nulls import MEASURED, NULLS, raised
from tadropedge._old.comparison.paired import ALPHA, deciding_p_values, holm, paired_p_values

SEEDS, METHODS, EFFECTS = (5, 6, 10, 20, 50), (1, 2, 4, 8), (0.5, 1.0, 2.0, 3.0)


def error(rate: float, count: int) -> float:
    """The Monte-Carlo error of a rate, never quite nothing."""
    return round(float(np.sqrt(max(rate * (1 - rate), 1 / count) / count)), 5)


def nulls(comparisons: int) -> list[dict[str, object]]:
    rows = []
    for place, (name, null) in enumerate(NULLS.items()):
        for seeds in SEEDS:
            gaps = null.draw(np.random.default_rng([place, seeds]), (comparisons, max(METHODS), seeds))
            for methods in METHODS:
                mine = gaps[:, :methods]
                rate = float(raised(mine).mean())
                t_test = np.nan_to_num(paired_p_values(mine / 100, np.zeros_like(mine)), nan=1.0)
                alone = float((holm(t_test) <= ALPHA).any(axis=-1).mean())
                row = {"null": name, "seeds": seeds, "methods": methods, "false_alarms": round(rate, 5)}
                row |= {"error": error(rate, comparisons), "t_test_alone": round(alone, 5), "held": null.held}
                rows.append(row)
            print(name, seeds, *(f"{one['false_alarms']:.1%}" for one in rows[-len(METHODS) :]), flush=True)
    return rows


def power(samples: int) -> list[dict[str, object]]:
    """The chance of finding one true difference, in standard deviations, at the first of Holm's steps."""
    rows = []
    for seeds in SEEDS:
        luck = np.random.default_rng(seeds).standard_normal((samples, seeds)) / 100
        for effect in EFFECTS:
            gaps = luck + effect / 100
            nothing = np.zeros_like(gaps)
            rule, alone = (test(gaps, nothing) for test in (deciding_p_values, paired_p_values))
            for methods in METHODS:
                found, t_test = (float((p <= ALPHA / methods).mean()) for p in (rule, alone))
                row = {"seeds": seeds, "methods": methods, "effect": effect, "found": round(found, 4)}
                rows.append(row | {"error": error(found, samples), "t_test_alone": round(t_test, 4)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=20_000)
    parser.add_argument("--out", default="results/benchmarks/false-alarms.json")
    options = parser.parse_args()
    rows = nulls(options.comparisons)
    write(options.out, {"nulls": rows, "power": power(options.comparisons // 10)})
    MEASURED.write_text(json.dumps(printed(rows), indent=1) + "\n")


def printed(rows: list[dict[str, object]]) -> dict[str, object]:
    """The rates that reports print: for each null a list per number of replicates, over numbers of methods."""
    found = {(row["null"], row["seeds"], row["methods"]): row["false_alarms"] for row in rows}
    rates = {name: [[found[name, seeds, methods] for methods in METHODS] for seeds in SEEDS] for name in NULLS}
    return {"seeds": list(SEEDS), "methods": list(METHODS), "rates": rates}


if __name__ == "__main__":
    main()
