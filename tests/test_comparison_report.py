import io
import re
import struct
from dataclasses import replace
from html import escape

import pytest
from browser import Page, browse, needs_chromium
from comparisons import GAINS, PROTOCOL, bare, comparison, honest, older, renamed
from rich.console import Console

from tadropedge import TadropedgeError
from tadropedge.comparison.report import render, table, write_report
from tadropedge.comparison.results import PaperProtocol, Results, evidence_of, honest_label, judged, paper_label
from tadropedge.comparison.statistics import verdict
from tadropedge.publish.wording import p_value

RESULTS = comparison()
HOSTILE = """<script>alert(1)</script>"'&[bold]{{ 7 * 7 }}"""


@pytest.fixture(scope="module")
def page():
    return render(RESULTS)


def test_the_advice_stands_on_top_and_everything_is_labelled(page):
    text = Page(page).text
    said = RESULTS.advice.words
    assert said.startswith(
        "Use dropedge with keep_prob 0.7 (learning rate 0.005, normalization gcn): +0.49 ± 0.20 points"
    )
    places = [
        text.index(words)
        for words in (
            said,
            "honest protocol (settings chosen on validation, retrained on 20 fresh seeds and splits)",
            "Each of them was tuned for itself with 30 trials on 3 splits; the best mean validation accuracy chose.",
            "in 3.1 ± 0.5 % of families (without regard to the choice it would be 21.0 %)",
            "paper protocol (best test accuracy of 30 trials)",
            "The run",
        )
    ]
    assert places == sorted(places)


def test_every_number_of_a_test_is_in_the_table(page):
    (found,) = [row for row in RESULTS.rows if row.method == "inverse-cdf"]
    text = Page(page).text
    for kind, words in (
        ("none", "not dropping"),
        ("dropedge", "DropEdge tuned"),
        ("budget", "same budget"),
    ):
        test = found.against[kind]
        own, gap = 50 * (test.high - test.low), 50 * (test.difference_high - test.difference_low)
        difference = f"{100 * test.difference:+.2f}".replace("-", "−")
        mean, end = f"{100 * test.mean:.2f} ± {own:.2f}", f"{p_value(test.p_value)} {test.outcome} 0 of 20"
        cells = f"{mean} {words} {100 * test.reference_mean:.2f} {difference} ± {gap:.2f} {end}"
        assert f"inverse-cdf {cells}" in text
    assert f"inverse-cdf {100 * found.paper_protocol.best_test:.2f} 30 " in text
    assert "undecided 1 of 20" in text


def test_settings_of_methods_and_references_are_shown(page):
    settings = Page(page).text.split("settings chosen on validation")[2]
    assert "cdf 0.005 gcn 0.7 0.7 " in settings
    assert "dropedge at the budget of cdf 0.01 – – – " in settings


@pytest.mark.parametrize("evidence", [True, False])
def test_results_of_older_versions_are_shown_with_their_one_test(evidence):
    results = older(evidence=evidence)
    text = Page(render(results)).text
    assert verdict(judged(results.rows), evidence_of(results.rows)) in text
    assert "that reference was not tuned for itself, and not dropping was not tested" in text
    assert re.search(r"cutoff [\d.]+ ± [\d.]+ DropEdge with its settings and budget – \S+ ± \S+ \S+ better", text)
    assert ("the largest of three tests" in text) == evidence
    assert "cutoff" in printed(results.rows)


def test_the_run_stands_at_the_end(page):
    tail = Page(page).text.split("The run")[1].split()
    for name, value in RESULTS.run.items():
        assert name in tail
        assert isinstance(value, dict) or all(word in tail for word in str(value).split())
    assert "torch 2.13.0" in " ".join(tail)


def test_the_page_is_self_contained(page):
    tags = Page(page).tags
    images = [attributes["src"] for tag, attributes in tags if tag == "img"]
    assert len(images) == 3
    assert all(source.startswith("data:image/png;base64,iVBORw0KGgo") for source in images)
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in tags}
    assert not re.search(r"https?:|url\(|@import|\son\w+=", page)
    policy = next(a["content"] for t, a in tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")


def test_the_same_results_give_the_same_page(tmp_path):
    first, again = (comparison(gains={"cdf": 0.0}, trials=3) for _ in range(2))
    path = write_report(first, tmp_path / "new" / "report.html")
    assert path.read_text(encoding="utf-8") == render(again)


def test_hostile_names_are_only_names():
    run = {"command": HOSTILE, HOSTILE: [HOSTILE]}
    rows = renamed(comparison(gains={"cdf": 0.0}, trials=2), dataset=HOSTILE, method=HOSTILE, backbone=HOSTILE).rows
    rows = [replace(rows[0], laplacian=HOSTILE, settings={HOSTILE: HOSTILE}), replace(rows[0], laplacian="a")]
    made = Page(render(Results(rows, run)))
    assert "script" not in {tag for tag, _ in made.tags}
    assert made.text.count(HOSTILE) > 10
    assert {name for _, attributes in made.tags for name in attributes} <= {
        *("lang", "charset", "name", "content", "http-equiv", "class", "tabindex", "role", "aria-label", "scope"),
        *("title", "alt", "src"),
    }


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "Which edge dropping helps on nothing?"),
        ([bare()], "no method was compared with DropEdge"),
        ([bare(honest=honest(seeds=1, failed=19, verdict="x"))], "cdf failed too often to be judged"),
        ([bare(paper_protocol=PaperProtocol(0.5, 1))], "paper protocol (best test accuracy of 1 trial)"),
        ([bare(), bare(layers=3)], "cora, gcn with 3 layers no method was compared with DropEdge"),
    ],
)
def test_results_with_holes_make_a_page(rows, words):
    text = Page(render(Results(rows))).text
    assert words in text
    assert "The run" not in text
    assert "None" not in text
    assert "nan" not in text


def test_bad_results_make_no_page(tmp_path):
    with pytest.raises(TadropedgeError, match=r"results: compare\[0\].honest.mean must be in \[0, 1\], got 86"):
        write_report(Results([bare(honest=honest(86.0, 85.0, 87.0))]), tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_labels_give_a_range_where_rows_differ():
    rows = [
        bare(paper_protocol=PaperProtocol(0.5, trials), honest=honest(0.5, 0.4, 0.6, seeds=trials))
        for trials in (80, 100)
    ]
    assert paper_label(rows) == "paper protocol (best test accuracy of 80 to 100 trials)"
    assert honest_label(rows) == (
        "honest protocol (settings chosen on validation, retrained on 80 to 100 fresh seeds and splits)"
    )


# The terminal.


def printed(rows, width=80):
    console = Console(width=width, file=io.StringIO())
    console.print(table(rows, PROTOCOL))
    return console.file.getvalue()


def test_the_terminal_shows_every_test_whole_in_eighty_columns():
    text = printed(RESULTS.rows)
    flat = " ".join(text.split())
    for row in RESULTS.rows[1:]:
        test = row.against["none"]
        mean, half = 100 * test.mean, 50 * (test.high - test.low)
        assert f" {row.method} {mean:.2f} ± {half:.2f} none {100 * test.reference_mean:.2f} " in flat
    assert flat.count(" budget ") >= 5
    assert honest_label(RESULTS.rows) in flat
    assert "better or worse where nothing is in 3.1 ± 0.5 % of families" in flat
    assert "…" not in text


def test_the_terminal_shows_odd_names_as_they_are():
    text = printed([bare(method="[red]", dataset="[/]", honest=honest(0.8, 0.7, 0.9))])
    assert "[red]" in text
    assert "[/], gcn with 2 layers" in text


# A real browser.


@needs_chromium
def test_a_browser_shows_the_advice_and_every_method(page, tmp_path):
    path, picture = tmp_path / "report.html", tmp_path / "phone.png"
    path.write_text(page, encoding="utf-8")
    text = Page(browse(tmp_path, path, "--dump-dom")).text
    assert RESULTS.advice.words in text
    assert all(f" {method} " in text for method in GAINS)
    browse(tmp_path, path, "--window-size=390,844", f"--screenshot={picture}")
    png = picture.read_bytes()
    assert png.startswith(b"\x89PNG")
    assert struct.unpack(">II", png[16:24]) == (390, 844)
    assert len(png) > 20_000


@needs_chromium
def test_the_page_fits_a_phone(page, tmp_path):
    """In frames of a phone's width: the report, one with long names, and a page too wide, which shows the check works.

    A window cannot be made that narrow in every Chromium, a frame can.
    """
    long = render(renamed(comparison(gains={"cdf": 0.0}, trials=2), dataset="d" * 300, method="m" * 300))
    wide = "<body style='margin:0'><p style='width:700px'>too wide</p>"
    frames = "".join(
        f'<iframe width="390" height="844" srcdoc="{escape(text)}"></iframe>' for text in (page, long, wide)
    )
    script = """onload = () => document.title = [...document.querySelectorAll("iframe")].map(
        frame => frame.contentDocument.documentElement.scrollWidth).join(" ")"""
    wrapper = tmp_path / "wrapper.html"
    wrapper.write_text(f"<!doctype html><title>?</title><script>{script}</script>{frames}", encoding="utf-8")
    title = re.search("<title>(.*?)</title>", browse(tmp_path, wrapper, "--dump-dom"))[1]
    assert title == "390 390 700"


@needs_chromium
def test_no_column_of_the_tests_is_hidden_on_a_desk(tmp_path):
    methods = dict.fromkeys(("original", "dropedge", "graphsage+effective-cdf"), 0.0)
    frame = f'<iframe width="1100" height="900" srcdoc="{escape(render(comparison(gains=methods)))}"></iframe>'
    script = """onload = () => { const box = document.querySelector("iframe").contentDocument.querySelector(".scroll");
        document.title = box.scrollWidth - box.clientWidth }"""
    wrapper = tmp_path / "wrapper.html"
    wrapper.write_text(f"<!doctype html><title>?</title><script>{script}</script>{frame}", encoding="utf-8")
    assert "<title>0</title>" in browse(tmp_path, wrapper, "--dump-dom")
