"""
Does it help on my graph?
=========================

``tde.compare`` tunes every method alike, retrains what it chose on fresh splits, and
tests the differences. This tutorial runs it at a size that is too small on purpose, and
explains what comes back: references, intervals, p-values, power, and what more seeds
buy.
"""

# %%
# A small comparison
# ------------------
#
# The graph has four clusters and many edges between them. One method is named: edges
# are kept by the share of neighbours that their ends have in common (Jaccard), which is
# low for edges between clusters. Not dropping (``original``) and DropEdge take part in
# any case. The storage keeps finished trainings, so that the second call below can go
# on from the first; with ``out="folder"`` they are kept in that folder, and a report is
# written beside them.

from statistics import mean
from textwrap import fill

import matplotlib.pyplot as plt
import optuna

import tadropedge as tde
from tadropedge.data import load_clusters

data = load_clusters(seed=0, nodes=100, inside=0.1, between=0.02, per_class=5)
print(data.graph, "with", len(data.split.train), "labels")
storage = optuna.storages.InMemoryStorage()


def compare(seeds):
    return tde.compare(
        data,
        ["jaccard-proportional"],
        trials=4,
        choose_splits=2,
        seeds=seeds,
        hidden=16,
        epochs=60,
        storage=storage,
        progress=False,
    )


small = compare(seeds=4)
print(fill(small.advice.words, 80))

# %%
# The advice comes first, in words. Everything it is made of is in ``rows``.
#
# Three references
# ----------------
#
# "It helps" needs an answer to "against what?". Every method is tested against **not
# dropping**. A method that drops by a score is also tested against **DropEdge tuned**,
# because dropping alone may be what helps, and against **DropEdge at the same budget**,
# tuned for itself, because keeping fewer edges may be what helps. Only a gain over all
# three is a gain that the score made.

WORDS = {
    "none": "not dropping",
    "dropedge": "DropEdge tuned",
    "budget": "DropEdge, same budget",
}


def show(found):
    print(f"{'method':20}  {'against':21}  difference in points      p")
    for row in found.rows:
        for name, test in row.against.items():
            half = (test.difference_high - test.difference_low) / 2
            difference = f"{100 * test.difference:+6.1f} ± {100 * half:4.1f}"
            against = f"{row.method:20}  {WORDS[name]:21}"
            print(f"{against}  {difference:>20}  {test.p_value:5.3f}")


show(small)

# %%
# The interval
# ------------
#
# In each replicate all methods have the same split and the same initial weights, so
# differences are taken in pairs. The 95 % interval counts two kinds of luck: that of
# the seeds and splits that judge, and that of the choice of settings, since another
# search would have chosen others. More seeds shrink the first only.
#
# The p-value
# -----------
#
# All tests above are one family, and their p-values are corrected together: to look at
# many methods and to report the best one is already paid for. At most 0.05 decides, or
# less where the whole procedure, simulated without any effect, would otherwise raise
# too many false alarms.
#
# Power: what could this run have found?
# --------------------------------------
#
# "Cannot be told apart" is not "is the same". Each test says how large a gain it would
# have found with a chance of 80 %, or that no gain could have been found with so few
# seeds.


def power(found):
    for row in found.rows:
        if "none" in row.against:
            known = row.against["none"].evidence
            if known.detectable is None:
                said = f"nothing: take {known.fewest_seeds} seeds at least"
            else:
                said = f"a gain of {100 * known.detectable:.1f} points"
            print(f"{row.method:20}  would find {said}")


power(small)

# %%
# What more seeds buy
# -------------------
#
# The same call with 20 seeds: the search is found again in the storage, and only the
# new replicates are trained.

large = compare(seeds=20)
show(large)
power(large)

# %%
# In the forest plot pale intervals are the first run and dark ones the second. One that
# contains 0 decides nothing.

tests = [(row.method, name) for row in large.rows for name in row.against]
colours = {"none": "tab:blue", "dropedge": "tab:orange", "budget": "tab:green"}
figure, axis = plt.subplots(figsize=(8, 3.2), layout="constrained")
for found, shift, alpha in ((small, -0.16, 0.35), (large, 0.16, 1.0)):
    by_method = {row.method: row.against for row in found.rows}
    for height, (method, name) in enumerate(tests):
        test = by_method[method][name]
        span = [100 * test.difference_low, 100 * test.difference_high]
        axis.plot(
            span, [height + shift] * 2, color=colours[name], alpha=alpha, linewidth=2
        )
        axis.plot(
            100 * test.difference, height + shift, "o", color=colours[name], alpha=alpha
        )
axis.axvline(0, color="gray", linewidth=1)
labels = [f"{method}\nagainst {WORDS[name]}" for method, name in tests]
axis.set_yticks(range(len(tests)), labels, fontsize=8)
axis.set_xlabel("difference in points of test accuracy, 95 % interval")
axis.invert_yaxis()


def width(found):
    tests = [test for row in found.rows for test in row.against.values()]
    return 50 * mean(test.difference_high - test.difference_low for test in tests)


print(
    f"half-width with 4 seeds: {width(small):.1f} points, with 20: {width(large):.1f}"
)
for name, test in large.rows[-1].against.items():
    print(
        f"{100 * test.choice_error:.1f} points from the choice, against {WORDS[name]}"
    )

# %%
# The last lines are the standard errors that come from choosing settings. They are the
# same with any number of seeds, and take more choosing splits to shrink. Now the
# verdicts, one for each method and reference:

for row in large.rows:
    for test in row.against.values():
        print(fill(f"* {test.verdict}", 80, subsequent_indent="  "))

# %%
# Read them together. A score can gain on DropEdge, tuned or at the same budget, and
# still lose against not dropping: then it chose well among the edges to drop, but on
# this graph none should be dropped. That is why one reference is not enough. The advice
# weighs them, and warnings belong to it:

print(fill(large.advice.words, 80))
for warning in large.advice.warnings:
    print(fill(f"* {warning}", 80, subsequent_indent="  "))

# %%
# The real thing
# --------------
#
# Leave the sizes at their defaults, name your file, and let it run; if it is
# interrupted, the same command resumes.
#
# .. code-block:: console
#
#    $ tadropedge compare friends.npz --methods jaccard-cdf,auto --out friends
#
# That is 30 trials per method and reference on each of 3 splits, then 20 fresh seeds.
# Where the advice says that the luck of the choice is the limit, take more
# ``--choose-splits`` or ``--trials``; where it asks for seeds, more ``--seeds``. The
# page ``friends/report.html`` shows all of it. :doc:`/statistics` has how often the
# whole procedure errs, measured.
