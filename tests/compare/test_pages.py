"""What people see of a comparison, and what pages, tables and texts share."""

import html
import re

import pytest
from compare.fakes import DATA, made

from tadropedge import TadropedgeError
from tadropedge.lab.comparison.page import text
from tadropedge.lab.comparison.results import ORIGINAL
from tadropedge.lab.reports.render import pages_of, script
from tadropedge.lab.reports.text import Table, as_text, csv_lines, terminal_table

WINNER = "jaccard-proportional:weighted"
HOSTILE = """<b>"'&[red]|{{ 7 * 7 }}$x_{$"""


def words_of(page):
    return " ".join(
        html.unescape(re.sub(r"<style>.*?</style>|<script>.*?</script>|<[^>]*>", "", page, flags=re.S)).split()
    )


@pytest.fixture(scope="module")
def found():
    return made({"dropedge": 0.0, WINNER: 0.03, "cdf": -0.03}, mlp=-0.1, fall="cdf")[0]


def test_a_page_makes_no_request(found):
    assert not re.search(r"""\s(src|href|action|data|poster|srcset|xlink:href)\s*=""", found.page)
    assert not re.search(r"https?://|url\(|@import", found.page)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', found.page)[1]
    assert policy.startswith("default-src 'none'")
    assert str(script("reports/tables.js").source) in policy


def test_a_page_shows_every_replicate(found):
    differences = sum(len(row.against) for row in found.rows)
    dots = re.findall(r'<circle class="dot" cx="([\d.]+)%"', found.page)
    assert len(dots) == 20 * (differences + len(found.rows))
    assert all(0 <= float(place) <= 100 for place in dots)
    assert found.page.count('<circle class="mean"') == differences + len(found.rows) + 1  # and the yardstick


def test_a_page_says_all_that_was_found(found):
    text = words_of(found.page)
    code = [" ".join(line.split()) for line in found.answer["code"].splitlines()]
    parts = (found.answer["do"], found.answer["sure"], *code, "fell by 19 points")
    for part in (*parts, *(row.candidate for row in found.rows)):
        assert part in text
    assert "prefers-color-scheme: dark" in found.page
    assert "width=device-width" in found.page


def test_names_from_outside_are_text():
    found, _ = made({"dropedge": 0.0}, run={"data": DATA | {"name": HOSTILE}, "note": HOSTILE})
    assert words_of(found.page).count(HOSTILE) >= 3  # the title, the heading, the run
    assert '<b>"' not in found.page


def test_a_notebook_shows_the_page_in_a_frame(found):
    srcdoc = re.search(r'srcdoc="([^"]*)"', found._repr_html_())[1]
    assert html.unescape(srcdoc) == found.page
    assert "allow-same-origin" not in found._repr_html_()


def test_a_terminal_of_80_columns_ends_with_the_answer(found):
    lines = str(found).splitlines()
    code = {f"  {line}" for line in found.answer["code"].splitlines()}
    assert max(len(line) for line in lines if line not in code) <= 80
    assert code < set(lines)
    end = " ".join(" ".join(lines[-12:]).split())
    assert end.endswith(found.answer["sure"])
    assert found.answer["do"] in end
    long, _ = made({"incepgcn+jaccard-proportional:weighted:consistent": 0.0}, spread=0.2)
    table = str(long).split("\n\n")[1]
    assert max(map(len, table.splitlines())) <= 80


def test_files_are_written_again_but_never_over_those_of_others(found, tmp_path):
    found.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {"report.html", "results.csv", "results.json"} <= set(before)
    found.save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    other = tmp_path / "other"
    other.mkdir()
    (other / "report.html").write_text("my thesis")
    with pytest.raises(TadropedgeError, match=r"report\.html"):
        found.save(other)
    assert [path.name for path in other.iterdir()] == ["report.html"]
    assert (other / "report.html").read_text() == "my thesis"
    with pytest.raises(TadropedgeError, match="cannot write"):
        found.save(other / "report.html")


def test_a_lock_that_is_another_name_of_a_file_is_refused(tmp_path):
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("my thesis")
    for make in ("hardlink_to", "symlink_to"):
        lock = tmp_path / make / ".tadropedge.lock"
        lock.parent.mkdir()
        getattr(lock, make)(thesis)
        with pytest.raises(TadropedgeError, match="lock"), pages_of(lock.parent):
            pass
    assert thesis.read_text() == "my thesis"


def test_tables_are_text_alone():
    table = Table(HOSTILE, ["method", HOSTILE], [[HOSTILE, "better"], ["x", HOSTILE]], left=(0, 1))
    lines = as_text([terminal_table(table)])
    assert lines.count("[red]") == 4
    assert csv_lines([["007", 7, 'a "b", c', "=1+1"]], quoted=True) == b'"007",7,"a ""b"", c","\'=1+1"\n'


def test_a_narrow_terminal_folds_names_and_cuts_no_number(found):
    lines = text(found, 40).splitlines()
    assert max(len(line) for line in lines if not line.startswith("  ")) <= 60
    assert max(len(line) for line in lines if not line.startswith(" ")) <= 40
    assert all(any(row.against[ORIGINAL].word in line for line in lines) for row in found.rows if row.against)
