import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from browser import Page
from comparisons import bare
from rich.console import Console

from tadropedge.comparison.report import opening, tables, write_all
from tadropedge.comparison.results import Results, read_results, write_results
from tadropedge.comparison.statistics import honest_rows, judge

NAN = float("nan")


def rare_collapse(collapsed):
    """Ten replicates that gain one point, of which one may lose nineteen; everything a user gets to see of them."""
    random = np.random.default_rng(4)
    reference = random.normal(0.8, 0.01, 10)
    gains = random.normal(1.0, 0.3, 10) / 100
    if collapsed:
        gains[3] = -0.19
    rows, evidence = judge({"cdf": reference + gains, "original": reference}, {"cdf": reference})
    return Results([bare(method=name, honest=row, evidence=evidence[name]) for name, row in rows.items()])


def seen(results, folder):
    """The page, the terminal, the JSON and the csv of results, in this order."""
    page = Page(write_all(results, folder).read_text(encoding="utf-8")).text
    console = Console(width=80, file=io.StringIO())
    console.print(opening(results.rows, results))
    for table in tables(results.rows):
        console.print(table)
    rows = json.loads((folder / "results.json").read_text(encoding="utf-8"))["compare"]
    with (folder / "results.csv").open(encoding="utf-8", newline="") as stream:
        return page, " ".join(console.file.getvalue().split()), rows[0], next(csv.DictReader(stream))


def test_a_better_method_may_collapse_unseen(tmp_path):
    page, terminal, row, line = seen(rare_collapse(collapsed=False), tmp_path)
    limit = "these 10 replicates cannot exclude a collapse in up to 26 % of runs"
    for text in (page, terminal, row["honest"]["verdict"], line["honest_verdict"]):
        assert "cdf is better than DropEdge by" in text
        assert limit in text
    for text in (page, terminal):
        assert "0 of 10 ≤ 26 %" in text
    assert row["evidence"]["collapses"] == 0
    assert row["evidence"]["collapse_rate"] == float(line["evidence_collapse_rate"])
    assert row["evidence"]["collapse_rate"] == pytest.approx(1 - 0.05**0.1, rel=1e-12)
    assert "rare collapse 5 % lose 19 points, 95 % gain 1, spread 0.5 " in page


def test_a_collapse_that_was_seen_is_named(tmp_path):
    page, terminal, row, line = seen(rare_collapse(collapsed=True), tmp_path)
    evidence = row["evidence"]
    for text in (page, terminal):
        assert "−19.00 (4) 1 of 10 ≤ 39 %" in text
        assert "cdf: collapsed in 1 of 10 replicates" in text
        assert "cdf: skewed, a few replicates far below the others" in text
        assert "cdf cannot be told apart from DropEdge" in text
    assert (evidence["worst_difference_replicate"], evidence["collapses"]) == (4, 1)
    assert evidence["worst_difference"] == float(line["evidence_worst_difference"]) == pytest.approx(-0.19)
    assert line["evidence_warnings"] == "; ".join(evidence["warnings"])
    assert evidence["differences"][3] == evidence["worst_difference"]


def test_what_is_written_is_read_again(tmp_path):
    results = rare_collapse(collapsed=True)
    again = read_results(write_results(results, tmp_path / "results.json"))
    assert [row.evidence for row in again.rows] == [row.evidence for row in results.rows]
    older = [replace(row, evidence=None) for row in results.rows]
    text = write_results(Results(older), tmp_path / "older.json").read_text(encoding="utf-8")
    assert "evidence" not in text
    assert read_results(tmp_path / "older.json").rows == tuple(older)


def test_too_few_seeds_are_said_to_be_too_few():
    gains = 0.05 + 0.001 * np.random.default_rng(0).random((4, 6))
    accuracy = {f"method-{place}": 0.8 + row for place, row in enumerate(gains)}
    rows, evidence = judge(accuracy, {name: np.full(6, 0.8) for name in accuracy})
    for name, row in rows.items():
        assert row.outcome == "undecided"
        assert row.verdict.endswith("; 6 replicates are too few to tell any difference: take at least 8")
        assert (evidence[name].fewest_seeds, evidence[name].detectable, evidence[name].seeds_for_half) == (
            8,
            None,
            None,
        )
        assert any("the t-test alone would call it better (p = < 0.001)" in words for words in evidence[name].warnings)
    more, _ = judge({"one": accuracy["method-0"]}, {"one": np.full(6, 0.8)})
    assert more["one"].outcome == "better"


def test_the_p_value_that_is_shown_is_the_one_that_decides():
    random = np.random.default_rng(1)
    for _ in range(40):
        reference = random.normal(0.8, 0.01, (3, 12))
        values = reference + 0.008 * random.exponential(size=(3, 12)) - 0.004
        rows, evidence = judge(dict(zip("abc", values, strict=True)), dict(zip("abc", reference, strict=True)))
        for name, row in rows.items():
            three = [getattr(evidence[name], f"{test}_p_value") for test in ("t", "sign_flip", "skewed")]
            assert row.p_value >= max(three)
            assert (row.outcome == "undecided") == (row.p_value > 0.05)
            disagree = len({p <= 0.05 for p in three}) > 1
            assert disagree == any("the tests disagree" in words for words in evidence[name].warnings)


def test_the_t_test_of_the_paper_is_the_one_it_was():
    """The reproduction keeps its registered test; only comparisons are decided by three."""
    reference = np.array([0.80, 0.82, 0.81, 0.80])
    accuracy = {"cdf": reference + np.array([0.01, 0.012, 0.011, 0.009])}
    assert honest_rows(accuracy, {"cdf": reference})["cdf"].verdict.startswith("cdf is better than DropEdge by 1.05")
    assert judge(accuracy, {"cdf": reference})[0]["cdf"].outcome == "undecided"


def test_a_method_without_a_reference_has_a_worst_replicate():
    evidence = judge({"original": [0.8, NAN, 0.7, 0.81]}, {})[1]["original"]
    assert (evidence.worst, evidence.worst_replicate, evidence.worst_difference, evidence.detectable) == (
        *(0.7, 3),
        *(None, None),
    )


def test_methods_that_failed_have_no_evidence_and_do_not_count():
    fine, reference = np.random.default_rng(2).normal(0.8, 0.01, (2, 8))
    alone = judge({"cdf": fine}, {"cdf": reference})
    both = judge({"cdf": fine, "cutoff": [0.5] + [NAN] * 7}, {"cdf": reference, "cutoff": reference})
    assert (both[0]["cdf"], both[1]) == (alone[0]["cdf"], alone[1])
