"""What pages, pictures, tables and labels share."""

import io
import re

import matplotlib.figure
import numpy as np
import pytest
from browser import DARK, LIGHT, Page, browse, needs_chromium
from comparisons import comparison
from PIL import Image
from rich.console import Console

from tadropedge import provenance
from tadropedge.comparison.report import render as comparison_page
from tadropedge.publish import label, page, pictures, tables, terminal, wording

HOSTILE = """<b>"'&[red]|{{ 7 * 7 }}$x_{$"""


# Tables.


def test_a_cell_of_markdown_stays_in_its_line():
    lines = tables.markdown(["a", "b"], [["1|2", "two\nlines"], ["", 3.5]], left=())
    assert lines == ["| a | b |", "|---:|---:|", r"| 1\|2 | two lines |", "|  | 3.5 |"]


def test_names_in_quotation_marks_come_back_as_they_were():
    assert tables.csv_lines([["007", 7, 'a "b", c']], quoted=True) == b'"007",7,"a ""b"", c"\n'
    assert tables.csv_lines([["007", 7, None]]) == b"007,7,\n"


def test_the_terminal_shows_a_table_as_it_is():
    console = Console(width=60, file=io.StringIO(), force_terminal=True, color_system="standard")
    made = tables.Table("[bold]caption", ["[i]name", "verdict"], [["[red]", "worse"], ["worse", "[/]"]], left=(0, 1))
    console.print(terminal.terminal_table(made, {"worse": "bold red"}, below="[u]below"))
    text = console.file.getvalue()
    words = re.sub(r"\x1b\[[\d;]*m", "", text).split()
    assert [word for word in words if not word.startswith("─")] == [
        *("[bold]caption", "[i]name", "verdict", "[red]", "worse", "worse", "[/]", "[u]below")
    ]
    assert text.count("\x1b[1;31mworse") == 1  # a name is no verdict


# Pages.


def test_a_table_on_a_page_is_text_alone():
    made = tables.Table(HOSTILE, ["method", HOSTILE], [[HOSTILE, "better"], ["x", HOSTILE]], left=(0, 1))
    module = page._environment().get_template("publish/parts.html.j2").module
    read = Page(str(module.table(made)))
    assert [tag for tag, _ in read.tags if tag in ("b", "script")] == []
    assert read.text.count(HOSTILE) == 4
    assert [attributes["class"].split() for tag, attributes in read.tags if tag == "td"] == [
        ["left", "better"],
        ["left"],
    ]


def test_every_page_forbids_requests_and_knows_the_dark():
    text = comparison_page(comparison(gains={"cdf": 0.0}, trials=2))
    assert "default-src 'none'; img-src data:; script-src" in text
    assert re.search(r"script-src 'sha256-[\w+/=]{44}'; style-src", text)
    assert "@media (prefers-color-scheme: dark)" in text
    assert "{%" not in text
    assert "{{" not in text


def page_of(body, **parts):
    """A page of the shell and some parts."""
    text = "{% extends 'publish/page.html.j2' %}{% from 'publish/parts.html.j2' import table, picture, facts %}"
    text += f"{{% block content %}}{body}{{% endblock %}}"
    return page._environment().from_string(text).render(**{"heading": "A page", "script": None, **parts})


@needs_chromium
def test_a_picture_follows_the_dark(tmp_path):
    with pictures.look():
        figure = empty()
        figure.subplots().plot([0, 1], color=pictures.PALETTE[0], linewidth=40)
        address = page.embedded(pictures.png(figure, "title"))
    path = tmp_path / "page.html"
    path.write_text(page_of("{{ picture('a line', address) }}", address=address), encoding="utf-8")
    seen = {}
    for name, option in (("dark", DARK), ("light", LIGHT)):
        browse(tmp_path, path, option, "--window-size=800,400", f"--screenshot={tmp_path / name}.png")
        seen[name] = np.asarray(Image.open(tmp_path / f"{name}.png").convert("RGB")).astype(int)
    corner = {name: picture[-1, -1] for name, picture in seen.items()}  # the paper of the page
    assert (corner["dark"].max(), corner["light"].min()) == (0x1B, 0xFF)
    for name, picture in seen.items():
        inside = picture[120:320, 60:700]
        same = (abs(inside - corner[name]).max(axis=-1) <= 2).mean()
        assert 0.5 < same < 0.95  # its paper is the page's; the rest is the line
        red, _, blue = inside[abs(inside - inside.mean(axis=-1, keepdims=True)).max(axis=-1) > 60].mean(axis=0)
        assert blue > red + 60  # which is blue in both


def test_a_script_is_admitted_by_its_hash():
    found = page.script("publish/tables.js")
    text = page_of("", script=found)
    assert f"script-src {found.source};" in text
    assert text.count("<script>") == 1
    assert "script-src" not in page_of("")


def test_a_missing_picture_is_named_instead():
    module = page._environment().get_template("publish/parts.html.j2").module
    assert Page(str(module.picture("a.png", ""))).text.strip() == "a.png is not in the folder"
    assert [tag for tag, _ in Page(str(module.picture("a.png", page.embedded(b"x")))).tags] == [
        "figure",
        "img",
        "figcaption",
    ]


# Pictures.


def empty(width=6.0):
    return matplotlib.figure.Figure(figsize=(width, 2))


def test_a_picture_has_the_same_bytes_each_time_and_says_nothing_of_its_maker():
    with pictures.look():
        first, again = (pictures.png(empty(), "title") for _ in range(2))
    assert first == again
    assert Image.open(io.BytesIO(first)).info.keys() == {"dpi"}


@pytest.mark.parametrize(
    ("words", "size", "shown"),
    [("x" * 63, 11, "x" * 63), ("x" * 64, 10, "x" * 64), ("x" * 300, 10, "x" * 77 + "…"), ("a$b", 11, r"a\$b")],
    ids=["short", "long", "cut", "dollar"],
)
def test_a_long_title_is_smaller_and_then_cut(words, size, shown):
    figure = empty()
    pictures.png(figure, words)
    assert figure._suptitle.get_fontsize() == size
    assert figure._suptitle.get_text() == shown


def test_a_drawing_function_becomes_one_of_pictures():
    @pictures.picture
    def draw(width):
        """Its words."""
        return empty(width), "title"

    assert draw.__doc__ == "Its words."
    assert Image.open(io.BytesIO(draw(width=4))).size == (640, 320)
    assert draw.__wrapped__(4)[1] == "title"


def test_marks_leave_out_what_is_not_known():
    axis = empty().subplots()
    pictures.lines(axis, ["above", "below"])
    pictures.marks(axis, 0, None, None, (None, None, None))
    assert len(axis.get_lines()) == 0
    pictures.marks(axis, 1, 0.8, 0.9, (0.7, 0.75, 0.85))
    interval, mean, best, printed = axis.get_lines()
    assert interval.get_xdata() == pytest.approx([70, 85])
    found = [(line.get_marker(), *line.get_xdata(), *line.get_ydata()) for line in (mean, best, printed)]
    assert [mark for mark, *_ in found] == ["o", "D", "|"]
    assert np.array([places for _, *places in found]) == pytest.approx(np.array([[75, 1.18], [90, 0.82], [80, 1]]))


def test_one_legend_names_the_lines_of_all_panels():
    figure = empty()
    for axis, name in zip(figure.subplots(1, 2), ("a", "b"), strict=True):
        axis.plot([0, 1], label=name)
    pictures.legend(figure, *figure.axes, ncols=2)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]


# Words.


def test_numbers_that_are_not_there_are_a_dash():
    assert wording.percent(None) == wording.points(None) == wording.p_value(None) == wording.shown(None) == "–"
    assert wording.interval(0.5, None) == wording.gap(None, None, None) == "–"


def test_any_json_value_is_a_few_words():
    value = {"flag": True, "none": None, "list": [1, 0.123456], "text": "a"}
    assert wording.shown(value) == "flag yes, none –, list 1, 0.1235, text a"


def test_a_label_tells_the_run(monkeypatch):
    monkeypatch.setenv("TADROPEDGE_COMMIT", "0123abcd")
    found = label.run_label("cpu", "tadropedge compare", 1.23456, packages=("jinja2",))
    assert list(found) == ["command", "seconds", "commit", "machine", "device", "versions"]
    assert (found["seconds"], found["commit"], found["device"]) == (1.2, "0123abcd", "cpu")
    assert found["machine"] == provenance.machine("cpu")
    assert list(found["versions"]) == ["python", "torch", "numpy", "scipy", "jinja2"]
    assert found["versions"]["numpy"] == np.__version__
    assert [name for name, _ in page.run_lines(found)] == [
        *("command", "commit", "machine", "versions", "seconds", "device")
    ]


def test_cells_that_a_spreadsheet_would_compute():
    cells = ["=HYPERLINK(1)", "+1+1", "-x", "@SUM(A1)", "\tx", "\rx", "'=1", "-5", "+1e3", "a=1", "", None, -5, -0.5]
    guarded = ["'=HYPERLINK(1)", "'+1+1", "'-x", "'@SUM(A1)", "'\tx", "'\rx", "''=1", *cells[7:]]
    assert [tables.inert(cell) for cell in cells] == guarded
    assert tables.csv_bytes(["=1"], [["\ud800"]]) == b"'=1\n\\ud800\n"
