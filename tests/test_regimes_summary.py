"""What a map says: the best method of a cell, records, sentences and goals, on cells small enough to count by hand."""

from collections import Counter
from statistics import median

import pytest
from regime_maps import CONDITIONS, DATASETS, METHODS, cell, regime_map

from tadropedge.publish.terminal import as_text
from tadropedge.regimes.goals import goals, spectral, width_words
from tadropedge.regimes.results import FAILED, JUDGED, OUT_OF_REACH, MapRow, MapTest, RegimeMap
from tadropedge.regimes.shipped import shrunk
from tadropedge.regimes.statements import QUESTIONS, best_score, statements
from tadropedge.regimes.summary import (
    choice,
    condition_words,
    conditions,
    datasets,
    findings,
    homophily,
    methods,
    narrow,
    record,
    tally,
    under,
)
from tadropedge.regimes.terminal import table, told
from tadropedge.search.entrants import references

MAP = regime_map()


def found_by(points, sure=True, half=0.3):
    """A test that found so many points, surely or not."""
    share, width = points / 100, half / 100
    p = 0.001 if sure else 0.7
    return MapTest(reference="r", difference=share, low=share - width, high=share + width, p_value=p, corrected=p)


def row(where, method, mean, state=JUDGED, **members):
    names = {"dataset": where.dataset, "kind": where.kind, "value": where.value}
    return MapRow(**names, method=method, state=state, mean=mean, seeds=50, **members)


def small(tests, means=None, where=None):
    """A map of one cell: the tests of every method, by reference."""
    where = where or cell("cora")
    rows = [row(where, "original", 0.80)]
    for method, of in tests.items():
        mean = (means or {}).get(method, 0.80 + of["none"].difference)
        rows.append(row(where, method, mean, tests=of))
    return RegimeMap([where], rows)


def joined(*maps):
    return RegimeMap([one for part in maps for one in part.cells], [one for part in maps for one in part.rows])


def only(found):
    (one,) = findings(found)
    return one


# Cells.


def test_the_best_is_surely_better_and_has_the_largest_mean():
    sure = {"dropedge": {"none": found_by(1.0)}, "auto": {"none": found_by(2.0)}, "cdf": {"none": found_by(3.0, False)}}
    one = only(small(sure))
    assert (one.best.method, one.state, one.leader.method) == ("auto", "gain", "cdf")
    assert one.half_width == pytest.approx(0.003)


def test_what_dropedge_or_the_degree_score_beats_is_not_the_best():
    for reference in ("dropedge", "budget", "degree"):
        beaten = {"cdf": {"none": found_by(2.0), reference: found_by(-1.0)}, "dropsens": {"none": found_by(1.0)}}
        assert only(small(beaten)).best.method == "dropsens"
    alone = {"cdf": {"none": found_by(2.0), "dropedge": found_by(-1.0)}}
    assert only(small(alone)).best.method == "cdf"


def test_grey_and_losses():
    grey = {"dropedge": {"none": found_by(-1.0)}, "auto": {"none": found_by(0.5, False)}}
    assert (only(small(grey)).state, only(small(grey)).best) == ("grey", None)
    loss = {"dropedge": {"none": found_by(-1.0)}, "auto": {"none": found_by(-0.5)}}
    assert (only(small(loss)).state, only(small(loss)).leader.method) == ("loss", "auto")
    assert only(small({})).state == "unjudged"


def test_a_network_without_edges_is_a_control_and_never_the_best():
    one = only(small({"mlp": {"none": found_by(5.0)}, "dropedge": {"none": found_by(0.1, False)}}))
    assert (one.state, one.best, one.edgeless) == ("grey", None, True)
    assert not only(small({"mlp": {"none": found_by(-5.0)}})).edgeless


def test_methods_that_were_not_judged_take_no_part():
    where = cell("cora", "budget", 0.1)
    rows = [row(where, "cdf", None, OUT_OF_REACH, least_share=0.5), row(where, "dropsens", None, FAILED)]
    found = RegimeMap([where], rows)
    assert only(found).droppings == {}
    assert tally(findings(found)).cells == 0


def test_beyond_is_better_than_not_dropping_and_than_dropedge():
    tests = {
        "dropedge": {"none": found_by(1.0)},
        "cdf": {"none": found_by(2.0), "dropedge": found_by(1.0)},
        "auto": {"none": found_by(2.0), "dropedge": found_by(1.0, False)},
        "dropsens": {"none": found_by(2.0, False), "dropedge": found_by(1.0)},
    }
    assert only(small(tests)).beyond == ["cdf"]


def test_where_the_budget_is_given_dropedge_is_the_one_that_keeps_to_it():
    """Such cells have no test of kind dropedge: ``search.entrants.references`` calls it budget."""
    where = cell("cora", "budget", 0.1)
    assert set(references("auto", 0.1)) == {"none", "budget"}
    lost = small({"auto": {"none": found_by(1.0, False), "budget": found_by(-1.0)}}, where=where)
    goal = goals(lost)[0]
    assert not goal.reached
    assert goal.measured["worse"] == ["cora/budget-0.1"]
    won = small({"auto": {"none": found_by(1.0), "budget": found_by(1.0)}}, where=where)
    assert only(won).beyond == ["auto"]
    assert record(findings(won), "auto", "dropedge").better == 1
    assert shrunk(won).cells[0].dropedge == "better"


# The made-up map: every number again, counted in another way.


def test_the_map_is_counted_whole():
    every = findings(MAP)
    assert len(every) == len(DATASETS) * len(CONDITIONS)
    assert datasets(MAP) == list(DATASETS)
    assert methods(MAP) == list(METHODS)
    assert set(conditions(MAP)) == set(CONDITIONS)
    rows = [one for one in MAP.rows if one.state == JUDGED and one.method not in ("original", "mlp")]
    helped = {one.cell for one in rows if one.tests["none"].outcome == "better"}
    told = tally(every)
    assert (told.cells, told.gains) == (len(every), len(helped))
    best = {one.cell.key: one.best for one in every if one.best}
    assert set(best) == helped
    assert told.often_cells == max(Counter(one.method for one in best.values()).values())
    assert {"gain", "loss", "grey"} == {one.state for one in every}
    assert any(one.method == "jaccard-cdf" for one in best.values())
    assert any(one.state == OUT_OF_REACH for one in MAP.rows)


def test_a_record_counts_the_tests_of_a_method():
    some = under(findings(MAP), "budget", 0.1)
    found = record(some, "degree-proportional", "budget")
    tests = [one.rows["degree-proportional"].tests["budget"] for one in some]
    assert found.cells == len(tests) == 10
    assert found.better == sum(test.corrected <= 0.05 and test.difference > 0 for test in tests)
    assert found.median == median(test.difference for test in tests)
    assert record(some, "cdf").cells == 0  # out of reach everywhere


def test_homophily_is_that_of_the_graph_without_noise():
    assert homophily(MAP) == {name: sizes[3] for name, sizes in DATASETS.items()}
    noisy = RegimeMap([one for one in reversed(MAP.cells) if one.dataset == "photo"], [])
    assert homophily(noisy) == {"photo": 0.83}


def test_narrow_cells():
    wide, slim = ({"cdf": {"none": found_by(0.0, False, half)}} for half in (0.6, 0.4))
    found = joined(small(wide), small(slim, where=cell("dblp")), small({}, where=cell("actor")))
    assert narrow(findings(found)) == (1, 2)
    assert "in 1 of 2 cells (50 %) where the luck of choosing them is included" in width_words(findings(found))


def test_one_method_is_chosen_for_all_datasets():
    found = joined(
        small({"cdf": {"none": found_by(1.0)}, "auto": {"none": found_by(0.5)}}),
        small({"cdf": {"none": found_by(-1.0)}, "auto": {"none": found_by(0.1, False)}}, where=cell("dblp")),
    )
    made = choice(found, ("base", None))
    assert (made.method, made.record.better, made.record.worse, made.often) == ("auto", 1, 0, True)
    assert made.record.median == pytest.approx(0.003)
    nothing = choice(small({"cdf": {"none": found_by(-1.0)}}), ("base", None))
    assert (nothing.method, nothing.record.cells) == (None, 1)


def test_with_a_budget_methods_are_chosen_by_dropedge_at_that_budget():
    where = cell("cora", "budget", 0.1)
    tests = {"cdf": {"none": found_by(-2.0), "budget": found_by(1.0)}, "dropedge": {"none": found_by(-3.0)}}
    made = choice(small(tests, where=where), ("budget", 0.1))
    assert (made.method, made.reference, made.record.better) == ("cdf", "budget", 1)


# Sentences.


def test_every_question_has_a_sentence_with_its_counts():
    told = {one.name: one for one in statements(MAP)}
    assert list(told) == list(QUESTIONS)
    every = findings(MAP)
    for name, kind, value in (("depth", "depth", 32), ("noise", "noise", 1.0), ("few labels", "labels", 5)):
        counts = tally(under(every, kind, value))
        assert f"with {condition_words(kind, value)} in {counts.gains} of {counts.cells} cells" in told[name].words
        assert told[name].cells == 20
    mixed = [one for one in every if one.cell.dataset in ("actor", "squirrel-filtered")]
    assert f"better than not dropping in {tally(mixed).gains} of 24 cells" in told["heterophily"].words
    assert "actor and squirrel-filtered" in told["heterophily"].words


def test_a_question_without_cells_says_so():
    told = {one.name: one for one in statements(small({"cdf": {"none": found_by(1.0)}}))}
    assert {one.words for one in told.values()} == {"No cell was judged."}
    assert {one.cells for one in told.values()} == {0}


def test_the_sentence_on_budgets_has_both_losses():
    where = cell("cora", "budget", 0.1)
    tests = {
        "dropedge": {"none": found_by(-3.0)},
        "degree-proportional": {"none": found_by(-0.4), "budget": found_by(2.6)},
        "auto": {"none": found_by(-0.1), "budget": found_by(2.9)},
    }
    words = next(one.words for one in statements(small(tests, where=where)) if one.name == "low budget")
    assert "by −0.40 points in the median of 1 cell, DropEdge by −3.00" in words  # auto is no score
    assert "better than DropEdge at the same budget in 1 of 1 cells" in words


# Goals.


def auto(none, dropedge, *others, where=None):
    tests = {"dropedge": {"none": found_by(0.1, False)}, "auto": {"none": none, "dropedge": dropedge}}
    tests |= {name: {"none": found_by(2.0), "dropedge": found_by(2.0)} for name in others}
    return small(tests, where=where)


def test_auto_reaches_its_goal_by_a_third_and_without_a_loss():
    names = list(DATASETS)[:3]
    won = auto(found_by(1.0), found_by(1.0), where=cell(names[0]))
    rest = [auto(found_by(0.1, False), found_by(0.0, False), "cdf", where=cell(name)) for name in names[1:]]
    goal = goals(joined(won, *rest))[0]
    assert goal.reached
    assert (goal.measured["possible"], goal.measured["better"]) == (3, 1)
    fewer = auto(found_by(0.1, False), found_by(0.0, False), "cdf", where=cell("dblp"))
    assert not goals(joined(won, *rest, fewer))[0].reached  # one in four
    for none, dropedge in ((-1.0, 0.0), (1.0, -1.0)):
        lost = auto(found_by(none), found_by(dropedge, dropedge != 0), where=cell("dblp", "budget", 0.1))
        goal = goals(joined(won, lost))[0]
        assert not goal.reached
        assert goal.measured["worse"] == ["dblp/budget-0.1"]
        assert "in 1 of these the budget is given" in goal.words
    assert not goals(RegimeMap([], []))[0].reached


def test_whether_a_spectral_score_beats_the_degree_score():
    tests = {
        "cdf": {"none": found_by(1.0), "degree": found_by(-1.0)},
        "effective-proportional": {"none": found_by(1.0), "degree": found_by(0.5)},
    }
    found = spectral(findings(small(tests)))
    assert (found.tests, found.better, found.worse) == (2, 1, 1)
    assert found.wins == {"cdf": 0, "effective-proportional": 1}
    assert "in 1 of 2 tests (cora/base)" in found.words
    goal = goals(MAP)[1]
    counted = [row.tests["degree"] for row in MAP.rows if "degree" in row.tests]
    assert goal.reached
    assert goal.measured["tests"] == len(counted)
    assert goal.measured["worse"] == sum(test.outcome == "worse" for test in counted)


def test_the_goal_of_low_budgets():
    def at(dataset, points, seconds=None):
        where = cell(dataset, "budget", 0.1)
        found = small({"degree-proportional": {"none": found_by(points, half=0.2)}}, where=where)
        rows = [
            row(where, one.method, one.mean, tests=one.tests, epoch_seconds=time)
            for one, time in zip(found.rows, seconds or (None, None), strict=True)
        ]
        return RegimeMap(found.cells, rows)

    half = joined(at("cora", -0.2, (0.01, 0.004)), at("dblp", -0.6, (0.01, 0.006)))
    goal = goals(half)[2]
    assert goal.reached
    assert goal.measured["near"] == goal.measured["sure"] == ["cora"]
    assert goal.measured["epoch"] == pytest.approx({"cora": 0.4, "dblp": 0.6})
    assert "An epoch takes 50 % of the time" in goal.words
    goal = goals(joined(at("cora", -0.4), at("dblp", -0.6), at("actor", -0.7)))[2]
    assert not goal.reached
    assert (goal.measured["near"], goal.measured["sure"]) == (["cora"], [])
    assert "not measured" in goal.words
    assert not goals(RegimeMap([], []))[2].reached


def test_the_best_score_is_no_dropedge_and_no_auto():
    for one in under(findings(MAP), "budget", 0.1):
        scores = ("effective-proportional", "degree-proportional")
        assert best_score(one).mean == max(one.rows[name].mean for name in scores)


# The terminal.


def test_the_terminal_has_a_line_per_condition_and_every_goal():
    lines = {line[0]: line for line in table(MAP).rows}
    assert list(lines) == [condition_words(*one) for one in conditions(MAP)]
    some = under(findings(MAP), "noise", 1.0)
    counts, auto = tally(some), record(some, "auto")
    line = lines["100 % random edges added"]
    assert line[1:5] == tuple(map(str, (counts.cells, counts.gains, counts.losses, counts.beyond)))
    assert line[6] == f"{auto.better} / {auto.undecided} / {auto.worse}"
    text = as_text(told(MAP))
    assert text.count("missed: ") + text.count("reached: ") == 3
    assert as_text(told(RegimeMap([], [])))
