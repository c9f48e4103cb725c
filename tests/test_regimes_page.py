"""The folder of a map: its page in a real browser, its picture, its csv and its README."""

import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from browser import DARK, LIGHT, Page, browse, driven, needs_chromium
from PIL import Image
from regime_maps import METHODS, regime_map
from typer.testing import CliRunner

from tadropedge.cli import app
from tadropedge.publish.wording import points
from tadropedge.regimes import figures
from tadropedge.regimes.figures import COLOURS, heat_map
from tadropedge.regimes.goals import goals
from tadropedge.regimes.report import FILES, decisions, map_csv, page, readme, write_all
from tadropedge.regimes.results import RegimeMap, read_map, write_map
from tadropedge.regimes.statements import statements
from tadropedge.regimes.summary import difference, findings
from tadropedge.regimes.tiles import LEGEND, tile, tiles

MAP = regime_map()
SMALL = regime_map(["photo", "dblp", "actor"], (("base", None), ("budget", 0.1), ("noise", 1.0)))
HOSTILE = """</script><script>document.title = "owned"</script>"'&{{ 7 * 7 }} %2"""


@pytest.fixture(scope="module")
def text():
    return page(MAP)


def renamed(found, name):
    """The same map with another name for its first dataset."""
    old = found.cells[0].dataset

    def other(one):
        return replace(one, dataset=name) if one.dataset == old else one

    return replace(found, cells=[*map(other, found.cells)], rows=[*map(other, found.rows)])


# Tiles.


def test_a_tile_tells_the_best_method_and_its_gain():
    for one in findings(MAP):
        made = tile(one)
        assert made.step in LEGEND
        assert made.key == one.cell.key
        if one.best:
            gain = one.best.tests["none"]
            assert (made.method, made.gain) == (one.best.method, points(gain.difference))
            assert difference(gain) in made.said
            assert made.step.startswith("gain")
        else:
            assert made.step in ("grey", "loss")


def test_a_map_may_lack_cells():
    found = RegimeMap(SMALL.cells[1:], SMALL.rows)
    grid = tiles(found)
    assert [line[0] for line in grid.rows] == ["photo", "dblp", "actor"]
    assert grid.rows[0][1][0] is None
    assert page(found)
    assert heat_map(found)


# The page.


def test_the_page_is_self_contained_and_says_everything(text):
    seen = Page(text)
    assert "default-src 'none'; img-src data:; script-src 'sha256-" in text
    assert not [found for tag, found in seen.tags if str(found.get("src", "")).startswith("http")]
    assert not re.search(r"{{|{%", text)
    for one in (*statements(MAP), *goals(MAP)):
        assert re.sub(r"\s+", " ", one.words) in seen.text
    for line in decisions(MAP).rows:
        assert line[2] in seen.text
    assert MAP.run["command"] in seen.text
    assert "out of reach (keeps at least 50 %)" in seen.text
    keys = [found["data-cell"] for tag, found in seen.tags if tag == "a" and "data-cell" in found]
    assert keys == [one.key for one in sorted(MAP.cells, key=lambda one: list(DATASET_ORDER).index(one.dataset))]
    rows = [found["data-cell"] for tag, found in seen.tags if tag == "tr" and "data-cell" in found]
    assert len(rows) == len(MAP.rows)
    marks = {found["id"] for tag, found in seen.tags if tag == "tr" and "id" in found}
    assert marks == {one.key for one in MAP.cells}  # every tile leads to its rows


DATASET_ORDER = dict.fromkeys(one.dataset for one in MAP.cells)


def test_every_number_of_a_row_is_on_the_page(text):
    seen = Page(text).text
    for row in MAP.rows[::37]:
        for test in row.tests.values():
            assert difference(test) in seen


def test_where_the_trials_are_is_told_where_the_run_says_it():
    told = replace(SMALL, run={**SMALL.run, "studies": "studies.tgz holds one study per cell and method."})
    assert "studies.tgz holds one study per cell" in Page(page(told)).text
    assert "studies.tgz holds one study per cell" in readme(told)
    assert Page(page(told)).text.count("studies.tgz") == 1


def test_names_are_words_and_never_markup():
    found = page(renamed(SMALL, HOSTILE))
    assert "<script>document.title" not in found
    assert "{{ 7 * 7 }}" in Page(found).text


def test_an_empty_map_has_a_page_and_a_picture():
    empty = RegimeMap([], [])
    assert "0 of 0 cells" in Page(page(empty)).text
    assert heat_map(empty).startswith(b"\x89PNG")
    assert readme(empty)


@needs_chromium
@pytest.mark.parametrize("width", [420, 1280])
def test_the_page_is_never_wider_than_the_screen(width, text, tmp_path):
    long = page(renamed(SMALL, "d" * 300))
    wider = "return page.documentElement.scrollWidth"
    assert [driven(tmp_path, one, wider, width=width) for one in (text, long)] == [width, width]


@needs_chromium
def test_no_column_is_hidden_on_a_desk(text, tmp_path):
    hidden = """for (const one of page.querySelectorAll("details")) one.open = true;
        return [...page.querySelectorAll(".scroll")].map(box => box.scrollWidth - box.clientWidth)"""
    assert set(driven(tmp_path, text, hidden)) == {0}


@needs_chromium
def test_pointing_at_a_tile_shows_every_method_of_its_cell(text, tmp_path):
    point = """const tile = page.querySelector('a[data-cell="photo/noise-1.0"]');
        tile.dispatchEvent(new view.PointerEvent("pointerenter"));
        const tip = page.querySelector(".tip"), box = tip.getBoundingClientRect();
        const lines = [...tip.querySelectorAll("tr")].slice(1).map(row => [...row.cells].map(cell => cell.textContent));
        tile.dispatchEvent(new view.PointerEvent("pointerleave"));
        return [lines, tip.hidden, box.left >= 0 && box.right <= 420]"""
    lines, hidden, inside = driven(tmp_path, text, point, width=420)
    assert hidden
    assert inside
    assert [line[0] for line in lines] == list(METHODS)
    found = next(one for one in findings(MAP) if one.cell.key == "photo/noise-1.0")
    for method, none, dropedge in lines:
        told = [found.test(method, reference) for reference in ("none", "dropedge")]
        assert [cell.rstrip(" ▲▼") for cell in (none, dropedge)] == [difference(test) for test in told]


@needs_chromium
def test_following_a_tile_opens_its_rows(text, tmp_path):
    follow = """const row = page.getElementById("photo/noise-1.0"); const before = row.closest("details").open;
        view.location.hash = "photo/noise-1.0"; await new Promise(done => view.setTimeout(done, 200));
        return [before, row.closest("details").open]"""
    assert driven(tmp_path, text, follow) == [False, True]


def luminance(colour):
    """Relative luminance, by its definition in the accessibility guidelines."""
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    dark, light = sorted(luminance(np.asarray(colour) / 255) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


@needs_chromium
@pytest.mark.parametrize("scheme", [DARK, LIGHT], ids=["dark", "light"])
def test_the_words_of_every_tile_can_be_read(scheme, text, tmp_path):
    steps = json.dumps([*LEGEND][:-1])
    seen = f"""const tile = page.querySelector("table.map td"); return {steps}.map(step => {{ tile.className = step;
        const style = view.getComputedStyle(tile); return [style.color, style.backgroundColor] }})"""
    pairs = [
        [[*map(int, re.findall(r"\d+", one)[:3])] for one in pair] for pair in driven(tmp_path, text, seen, scheme)
    ]
    assert min(contrast(*pair) for pair in pairs) >= 4.5
    papers = [luminance(np.asarray(paper) / 255) for _, paper in pairs[:4]]
    assert papers == sorted(papers, reverse=scheme == LIGHT)  # an order that greys show, too
    assert min(abs(np.diff(papers))) > 0.02


@needs_chromium
def test_a_table_of_a_condition_is_sorted_by_a_click(text, tmp_path):
    clicks = """const table = page.querySelector("section#noise-1\\\\.0 table.sortable");
        table.tHead.rows[0].cells[3].querySelector("button").click();
        return [...table.tBodies[0].rows].map(row => row.cells[3].textContent)"""
    shown = driven(tmp_path, text, clicks)
    gains = [float(cell.split()[0].replace("−", "-")) for cell in shown if cell != "–"]
    assert gains == sorted(gains, reverse=True)
    assert len(gains) == 10


@needs_chromium
def test_a_browser_draws_the_map_in_the_dark(text, tmp_path):
    path, seen = tmp_path / "report.html", tmp_path / "dark.png"
    path.write_text(text, encoding="utf-8")
    browse(tmp_path, path, DARK, "--window-size=1280,900", f"--screenshot={seen}")
    picture = np.asarray(Image.open(seen).convert("RGB")).reshape(-1, 3)
    assert picture.mean() < 80
    assert (picture == [0x4F, 0xA8, 0xDE]).all(axis=1).sum() > 5_000  # gains of 1 to 2 points


# Picture, csv, README, folder.


def test_the_picture_has_a_tile_for_every_cell_and_the_same_bytes_each_time():
    assert heat_map(SMALL) == heat_map(SMALL)
    figure, _ = figures.heat_map.__wrapped__(SMALL)
    (axis,) = figure.axes
    assert len(axis.patches) == len(SMALL.cells)
    papers = [one.get_facecolor()[:3] for one in axis.patches]
    wanted = [one.step for _, line in tiles(SMALL).rows for one in line]
    assert [tuple(round(255 * part) for part in paper) for paper in papers] == [
        tuple(int(COLOURS[step][0][at : at + 2], 16) for at in (1, 3, 5)) for step in wanted
    ]
    for paper, ink in COLOURS.values():
        pair = [[int(one[at : at + 2], 16) for at in (1, 3, 5)] for one in (paper, ink)]
        assert contrast(*pair) >= 4


def test_the_csv_has_every_row_and_test():
    lines = list(csv.DictReader(io.StringIO(map_csv(MAP).decode())))
    assert len(lines) == len(MAP.rows)
    for line, row in zip(lines, MAP.rows, strict=True):
        assert (line["dataset"], line["kind"], line["method"], line["state"]) == (
            row.dataset, row.kind, row.method, row.state,
        )  # fmt: skip
        for reference in ("none", "degree"):
            test = row.tests.get(reference)
            assert line[f"{reference}_difference"] == ("" if test is None else str(test.difference))
            assert line[f"{reference}_outcome"] == ("" if test is None else test.outcome)


def test_the_readme_has_the_answers():
    text = readme(MAP)
    assert text.startswith("# When does edge dropping help?\n")
    assert "![The best method of every cell](figures/map.png)" in text
    assert all(one.words in text for one in (*statements(MAP), *goals(MAP)))
    assert text.count("✔ reached") + text.count("✘ missed") == 3


def test_write_all_and_the_command_report_write_the_same(tmp_path):
    made, again = tmp_path / "made", tmp_path / "again"
    assert write_all(SMALL, made) == made / "report.html"
    assert all((made / name).exists() for name in FILES)
    assert read_map(made / "results.json").rows == read_map(write_map(SMALL, again / "results.json")).rows
    done = CliRunner().invoke(app, ["report", str(again)])
    assert done.exit_code == 0, done.output
    assert "half-width" in done.output
    for name in ("map.csv", "README.md", "report.html", "figures/map.png"):
        assert (again / name).read_bytes() == (made / name).read_bytes()
    shown = CliRunner().invoke(app, ["report", str(again), "--json"])
    assert len(json.loads(shown.output)["rows"]) == len(SMALL.rows)
