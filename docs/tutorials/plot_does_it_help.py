"""
Does it help on my graph?
=========================

``tde.compare`` tunes every method alike, retrains what it chose on fresh splits, and tests the differences. This tutorial
runs it at a size that is too small on purpose, and explains what comes back: references, intervals, p-values, power, and
what more seeds buy.
"""

# %%
# A small comparison
# ------------------
#
# The graph has four clusters and more edges between them than is good for a GCN. Two methods are named; not dropping
# (``original``) and DropEdge take part in any case. The folder keeps every finished training, so that the second call
# below can go on from the first.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import tadropedge as tde
from tadropedge.data import load_clusters

data = load_clusters(seed=0, nodes=100, inside=0.1, between=0.02, per_class=5)
print(data)
home = tempfile.TemporaryDirectory()
folder = Path(home.name)


def compare(seeds):
    return tde.compare(
        data, ["jaccard-proportional", "degree-proportional"], trials=6, choose_splits=2, seeds=seeds,
        hidden=16, epochs=60, out=folder, progress=False,
    )  # fmt: skip


small = compare(seeds=4)
print(small.advice.words)

# %%
# The advice comes first, in words. Everything it is made of is in ``rows``.
#
# Three references
# ----------------
#
# "It helps" needs an answer to "against what?". Every method is tested against **not dropping**. A method that drops by a
# score is also tested against **DropEdge tuned**, because dropping alone may be what helps, and against **DropEdge at the
# same budget**, tuned for itself, because keeping fewer edges may be what helps. Only a gain over all three is a gain of
# the score.


def show(found):
    print(f"{'method':21} {'against':26} difference in points      p")
    for row in found.rows:
        for name, test in row.against.items():
            half = (test.difference_high - test.difference_low) / 2
            against = {"none": "not dropping", "dropedge": "DropEdge tuned", "budget": "DropEdge, same budget"}[name]
            print(f"{row.method:21} {against:26} {100 * test.difference:+9.1f} ± {100 * half:<8.1f} {test.p_value:6.2f}")


show(small)

# %%
# The interval
# ------------
#
# In each replicate all methods have the same split and the same initial weights, so differences are taken in pairs. The
# interval holds the true difference with a confidence of 95 %, and it counts two kinds of luck: that of the judging splits, and
# that of choosing settings. More seeds shrink the first only.
#
# The p-value
# -----------
#
# All tests above are one family, and their p-values are corrected together. A method is called better or worse where its
# p-value is below 0.05. Looking at many methods and reporting the best one is therefore already paid for.
#
# Power: what could this run have found?
# --------------------------------------
#
# "Cannot be told apart" is not "is the same". Each test says how large a gain it would have found with a chance of 80 %, or
# that no gain could have been found with so few seeds.


def power(found):
    for row in found.rows:
        if "none" in row.against:
            known = row.against["none"].evidence
            least = f"take {known.fewest_seeds} seeds at least" if known.detectable is None else ""
            finds = least or f"finds a gain of {100 * known.detectable:.1f} points with a chance of 80 %"
            print(f"{row.method:21} {finds}")


power(small)

# %%
# What more seeds buy
# -------------------
#
# The same call with more seeds: the search is found again in the folder, and only the new replicates are trained.

large = compare(seeds=24)
show(large)
power(large)

# %%
# The forest plot shows both runs: pale is the first, dark the second. An interval that contains 0 decides nothing.

tests = [(row.method, name) for row in large.rows for name in row.against]
colours = {"none": "tab:blue", "dropedge": "tab:orange", "budget": "tab:green"}
words = {"none": "not dropping", "dropedge": "DropEdge tuned", "budget": "DropEdge, same budget"}
figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
for found, shift, alpha in ((small, -0.16, 0.35), (large, 0.16, 1.0)):
    by_method = {row.method: row.against for row in found.rows}
    for height, (method, name) in enumerate(tests):
        test = by_method[method][name]
        span = [100 * test.difference_low, 100 * test.difference_high]
        axis.plot(span, [height + shift] * 2, color=colours[name], alpha=alpha, linewidth=2)
        axis.plot(100 * test.difference, height + shift, "o", color=colours[name], alpha=alpha)
axis.axvline(0, color="gray", linewidth=1)
axis.set_yticks(range(len(tests)), [f"{method}\nagainst {words[name]}" for method, name in tests], fontsize=8)
axis.set_xlabel("difference in points of test accuracy, 95 % interval")
axis.invert_yaxis()


def width(found):
    tests = [test for row in found.rows for test in row.against.values()]
    return 100 * sum(test.difference_high - test.difference_low for test in tests) / len(tests) / 2


print(f"mean half-width: ± {width(small):.1f} points with 4 seeds, ± {width(large):.1f} with 24")
print(f"if only the seeds counted, it would have shrunk to ± {width(small) * (4 / 24) ** 0.5:.1f} or less")

# %%
# What the second run says, in its own words:

print(large.advice.words)
for warning in large.advice.warnings:
    print("*", warning)
home.cleanup()

# %%
# Warnings are part of the answer. On a graph this small, splits overlap; with so few epochs some trainings are not
# finished.
#
# The real thing
# --------------
#
# Leave the sizes at their defaults, name your file, and let it run; if it is interrupted, the same command resumes.
#
# .. code-block:: console
#
#    $ tadropedge compare friends.npz --methods dropedge,degree-proportional,jaccard-cdf,auto --out friends
#
# That is 30 trials per method and reference on each of 3 splits, then 20 fresh seeds. Where the advice says that the luck
# of the choice is the limit, take more ``--choose-splits`` or ``--trials``; where it asks for seeds, more ``--seeds``. The
# page ``friends/report.html`` shows all of it. :doc:`/statistics` has how often the whole procedure errs, measured.
