"""The first sentence of every comparison, branch by branch, and what a reader is warned of."""

from dataclasses import replace

import numpy as np
import pytest
from comparisons import PROTOCOL, bare, comparison, honest, older

from tadropedge.comparison.advice import advise
from tadropedge.comparison.cautions import cautions
from tadropedge.comparison.evidence import Evidence
from tadropedge.comparison.judging import Against
from tadropedge.comparison.selection import Selection

GAINS = [0.004, 0.005, 0.003, 0.0045, 0.0035, 0.004, 0.005, 0.003]


def against(reference, difference, half, p_value, *, detectable=0.005, half_seeds=64, gains=GAINS):
    """One test, in shares."""
    evidence = Evidence(
        worst=0.7, worst_replicate=1, collapses=0, collapse_rate=0.14, differences=gains, fewest_seeds=8,
        detectable=detectable, seeds_for_half=half_seeds,
    )  # fmt: skip
    return Against(
        mean=0.8, low=0.79, high=0.81, seeds=20, verdict=None, reference=reference, p_value=p_value,
        difference=difference, difference_low=difference - half, difference_high=difference + half,
        settings={"learning_rate": 0.01, "dropout": 0.5}, evidence=evidence,
    )  # fmt: skip


def row(method, none, dropedge=None, budget=None, **settings):
    """A method with its tests, each ``(difference, half, p)`` in points."""
    tests = {"none": ("original", none), "dropedge": ("dropedge", dropedge), "budget": ("dropedge at 80 %", budget)}
    made = {
        kind: against(name, found[0] / 100, found[1] / 100, *found[2:])
        for kind, (name, found) in tests.items()
        if found is not None
    }
    return bare(method=method, against=made, settings=settings)


BETTER, SAME, WORSE = (0.42, 0.15, 0.003), (0.05, 0.10, 0.8), (-0.50, 0.20, 0.0004)
CDF = {"keep_prob": 0.7, "learning_rate": 0.01, "kept_share": 0.8}
ORIGINAL = bare(method="original")


def test_what_helps_is_named_with_its_settings_and_its_gain():
    found = advise([ORIGINAL, row("dropedge", SAME), row("cdf", BETTER, SAME, BETTER, **CDF)])
    assert (found.use, found.settings) == ("cdf", CDF)
    assert found.words == (
        "Use cdf with keep_prob 0.7 (learning rate 0.01): +0.42 ± 0.15 points over not dropping (p = 0.003); DropEdge "
        "tuned does the same (+0.05 ± 0.10). Adaptive dropping (cdf) differs from DropEdge tuned by +0.05 ± 0.10 "
        "points (cannot be told apart, p = 0.800) and from DropEdge at the same budget by +0.42 ± 0.15 points (surely "
        "better, p = 0.003)."
    )


def test_dropedge_is_preferred_where_no_adaptive_method_is_surely_better():
    dropedge = row("dropedge", BETTER, keep_prob=0.8, learning_rate=0.01)
    found = advise([ORIGINAL, dropedge, row("cdf", BETTER, SAME, SAME, **CDF), row("cutoff", SAME, WORSE, SAME)])
    assert found.use == "dropedge"
    assert found.words.split(". ")[0] == (
        "Use dropedge with keep_prob 0.8 (learning rate 0.01): +0.42 ± 0.15 points over not dropping (p = 0.003)"
    )
    assert found.words.split(". ")[1].startswith(
        "The best of 2 adaptive methods (cdf) differs from DropEdge tuned by +0.05 ± 0.10 points"
    )


def test_an_adaptive_method_that_is_surely_better_than_dropedge_is_used():
    rows = [row("dropedge", BETTER), row("cutoff", BETTER, SAME, SAME), row("cdf", BETTER, BETTER, SAME, **CDF)]
    found = advise(rows)
    assert found.use == "cdf"
    assert "does the same" not in found.words
    assert "from DropEdge tuned by +0.42 ± 0.15 points (surely better, p = 0.003)" in found.words


def test_the_simplest_of_those_that_do_not_beat_each_other():
    assert advise([row("effective-cdf", BETTER, SAME, SAME), row("cutoff", BETTER, SAME, SAME)]).use == "cutoff"
    larger = [gain + 0.01 + 0.001 * (place % 2) for place, gain in enumerate(GAINS)]
    strong = row("effective-cdf", BETTER, SAME, SAME)
    strong = replace(strong, against=strong.against | {"none": against("original", 0.014, 0.001, 0.001, gains=larger)})
    assert advise([strong, row("cutoff", BETTER, SAME, SAME)]).use == "effective-cdf"


def test_two_methods_are_told_apart_only_beyond_the_luck_of_their_choices():
    larger = [gain + 0.01 + 0.001 * (place % 2) for place, gain in enumerate(GAINS)]
    strong = row("effective-cdf", BETTER, SAME, SAME)
    strong = replace(strong, against=strong.against | {"none": against("original", 0.014, 0.001, 0.001, gains=larger)})
    rows, lucky = (
        [strong, row("cutoff", BETTER, SAME, SAME)],
        Selection(shifts=np.array([-0.02, 0, 0, 0.02]), noise=0.1),
    )
    sure = Selection(shifts=np.zeros(4), noise=0.0)
    assert advise(rows, {"effective-cdf": sure, "cutoff": sure}).use == "effective-cdf"
    assert advise(rows, {"effective-cdf": lucky, "cutoff": sure}).use == "cutoff"


def test_the_network_that_should_keep_its_edges_is_named():
    sage = row("graphsage+dropedge", SAME)
    sage = replace(
        sage, against={"none": replace(sage.against["none"], reference="graphsage", settings={"samples": 5})}
    )
    assert advise([sage]).words.startswith("Do not drop edges of graphsage (samples 5): nothing is")
    both = advise([sage, row("dropedge", SAME)])
    assert both.use == "original"
    assert both.words.startswith("Do not drop edges (learning rate 0.01, dropout 0.5): nothing is")


def test_warnings_belong_to_the_advice():
    rows = [row("dropedge", SAME, keep_prob=0.99, kept_share=0.99)]
    assert advise(rows, protocol=PROTOCOL).warnings == tuple(cautions(rows, PROTOCOL)) != ()


@pytest.mark.parametrize("tests", [(WORSE, SAME), (SAME, WORSE)])
def test_nothing_is_advised_that_is_surely_worse_than_a_reference(tests):
    found = advise([row("dropedge", SAME), row("cdf", BETTER, *tests)])
    assert found.use == "dropedge"
    rival = "dropedge" if tests[0] == WORSE else "dropedge at 80 %"
    assert f"(p = 0.800); cdf is surely better than not dropping, but surely worse than {rival}. " in found.words


def test_where_nothing_helps_it_says_what_would_have_been_found():
    weak = row(
        "cdf",
        (
            0.05,
            0.1,
            0.8,
        ),
        SAME,
        SAME,
    )
    found = advise([ORIGINAL, row("dropedge", SAME), weak])
    assert (found.use, found.settings) == ("original", {"learning_rate": 0.01, "dropout": 0.5})
    assert found.words.split(". The")[0].split(". Adaptive")[0] == (
        "Do not drop edges (learning rate 0.01, dropout 0.5): nothing is surely better than not dropping; this run "
        "would have found a gain of 0.50 points with a chance of 80 %; half of it needs 64 seeds, 44 more"
    )


@pytest.mark.parametrize(
    ("method", "said"),
    [("division", "2 adaptive methods"), ("dropedge:unbiased", "2 methods other than plain DropEdge")],
)
def test_dropedge_with_an_option_is_not_called_adaptive(method, said):
    tests = ((0.001, 0.004, 1.0), (0.002, 0.004, 1.0), (0.002, 0.004, 1.0))
    worse = ((0.0, 0.004, 1.0), (0.001, 0.004, 1.0), (0.001, 0.004, 1.0))
    assert f"The best of {said} ({method}) differs from" in advise([row("cdf", *worse), row(method, *tests)]).words


def test_what_is_surely_worse_than_not_dropping_is_named():
    words = advise([row("dropedge", WORSE), row("cdf", SAME, SAME, SAME)]).words
    assert "nothing is surely better than not dropping, and dropedge (−0.50 ± 0.20) is surely worse; this run" in words


def test_few_seeds_and_the_luck_of_the_choice_are_said():
    def limited(**evidence):
        one = row("dropedge", SAME)
        test = one.against["none"]
        return replace(one, against={"none": replace(test, seeds=6, evidence=replace(test.evidence, **evidence))})

    words = advise([limited(detectable=None)]).words
    assert "; 6 seeds are too few to find any gain: take at least 8. No adaptive method was compared." in words
    words = advise([limited(seeds_for_half=None)]).words
    assert "with a chance of 80 %; half of it takes more choosing splits (--choose-splits), not more seeds." in words


def test_failed_methods_are_not_advised():
    failed = Against(**vars(honest(seeds=1, failed=19)), reference="original")
    assert advise([bare(against={"none": failed})]).words.startswith("Do not drop edges: nothing is surely better")


def test_older_results_have_no_advice():
    assert advise(older().rows) is None
    assert advise([]) is None


# Cautions.


def test_hardly_dropping_is_said():
    rows = comparison().rows
    assert not [words for words in cautions(rows, PROTOCOL) if "hardly" in words]
    kept = [
        replace(one, settings={**one.settings, "kept_share": share})
        for one, share in zip(rows[1:], (0.9511, 0.96, 0.95), strict=False)
    ]
    assert cautions(kept, PROTOCOL)[0] == (
        "Validation chose to drop hardly any edges: dropedge keeps 95.1 % and cutoff keeps 96.0 % of them, so "
        "there is little to tell apart."
    )


def test_one_trial_for_all_is_said():
    rows = [replace(one, trial=7) for one in comparison().rows]
    said = (
        "Validation chose the same trial (number 7) for all 7 methods: the settings of the network decided, not the "
        "dropping."
    )
    assert said in cautions(rows, PROTOCOL)
    assert said not in cautions(rows, replace(PROTOCOL, trials=1))
    assert said not in cautions([replace(rows[0], trial=6), *rows[1:]], PROTOCOL)


def test_falling_losses_are_said_of_methods_and_references():
    rows = comparison(gains={"original": 0.0, "cdf": 0.0}).rows
    none = replace(rows[1].against["none"], unconverged=5)
    rows = [rows[0], replace(rows[1], unconverged=6, against=rows[1].against | {"none": none})]
    assert cautions(rows, PROTOCOL)[0] == (
        "Validation loss was still falling in the last 5 % of the epochs of cdf (6 of 20 runs): take more than 400 "
        "(--epochs)."
    )


def test_what_is_shared_and_how_many_splits_there_are_is_said():
    assert PROTOCOL.shared not in cautions([], PROTOCOL)
    given = replace(PROTOCOL, disjoint=False, judge_splits=7)
    assert cautions([], given) == [
        PROTOCOL.shared,
        "The 20 replicates share 7 splits, all that the file has left to judge: the intervals speak of no others.",
    ]


def test_collapses_that_cannot_be_excluded_are_said():
    words = cautions([row("cdf", BETTER, SAME, SAME), row("cutoff", SAME)])
    assert words == [
        "What was not seen may still happen: the replicates of cdf cannot exclude a collapse in up to 14 % of runs."
    ]
