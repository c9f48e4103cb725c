import base64
import hashlib
import io
import json
import re
import shlex
import struct
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
import torch
from browser import Page, browse, driven, needs_chromium
from comparisons import GAINS, PROTOCOL, bare, comparison, honest, older, renamed
from rich.console import Console
from scipy.special import ndtri
from test_publish import page_of
from torture.process import command

from tadropedge import Graph, TadropedgeError
from tadropedge.comparison.card import DataCard, data_card
from tadropedge.comparison.comparison import _reached
from tadropedge.comparison.judging import judged_together
from tadropedge.comparison.outlook import outlook
from tadropedge.comparison.panels import differences
from tadropedge.comparison.power import power
from tadropedge.comparison.report import render, table, write_report
from tadropedge.comparison.results import (
    Advice,
    PaperProtocol,
    Results,
    evidence_of,
    honest_label,
    judged,
    paper_label,
    read_results,
)
from tadropedge.comparison.selection import Selection
from tadropedge.comparison.statistics import verdict
from tadropedge.comparison.winner import winner
from tadropedge.data import Dataset, Split, load_dataset
from tadropedge.publish.page import script
from tadropedge.publish.tables import Table
from tadropedge.publish.wording import p_value
from tadropedge.training.config import Architecture, Trial
from tadropedge.training.laboratory import Laboratory

RESULTS = comparison()
CARD = DataCard(
    name="cora", nodes=2708, edges=5278, components=78, largest_component=2485, mean_degree=3.898, median_degree=3.0,
    largest_degree=168, homophily=0.81, classes=7, features=1433, samples=None, split=(140, 500, 1000),
    splits="20 of each class to train, 500 others to validate, 1000 to test", measure="accuracy",
)  # fmt: skip
COSTS = {method: {"scores": 1.5, "epoch": 0.0125, "training": 5.0} for method in GAINS}
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
            "in 3.1 ± 0.5 % of families (ignoring the choice, it would be 21.0 %)",
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
        ("budget", "DropEdge at the same budget"),
    ):
        test = found.against[kind]
        own, gap = 50 * (test.high - test.low), 50 * (test.difference_high - test.difference_low)
        low, difference, high = (
            f"{100 * end:+.2f}".replace("-", "−")
            for end in (test.difference_low, test.difference, test.difference_high)
        )
        p = p_value(test.p_value)
        said = f"inverse-cdf against {words}: {difference} points, 95 % interval {low} to {high}, p"
        equals = "" if p.startswith("<") else "= "
        cells = f"{difference} ± {gap:.2f} {p} {test.outcome} {100 * test.mean:.2f} ± {own:.2f}"
        assert f"{said} {equals}{p}, {test.outcome} {cells} {100 * test.reference_mean:.2f} 0 of 20" in text
    assert f"inverse-cdf {100 * found.paper_protocol.best_test:.2f} 30 " in text
    assert "1 of 20" in text


def test_settings_of_methods_and_references_are_shown(page):
    settings = Page(page).text.split("settings chosen on validation")[-1]
    assert "cdf 0.005 gcn 0.7 0.7 " in settings
    assert "dropedge at the budget of cdf 0.01 – – – " in settings


@pytest.mark.parametrize("evidence", [True, False])
def test_results_of_older_versions_are_shown_with_their_one_test(evidence):
    results = older(evidence=evidence)
    text = Page(render(results)).text
    assert verdict(judged(results.rows), evidence_of(results.rows)) in text
    assert "that reference was not tuned for itself, and not dropping was not tested" in text
    assert re.search(
        r"cutoff against DropEdge with its settings and budget: \S+ points, 95 % interval .*?, better \S+ ±", text
    )
    assert "Not recorded: the results were written by an older version." in text
    assert "What each method costs was not recorded" in text
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
    assert len(images) == 1
    assert all(source.startswith("data:image/png;base64,iVBORw0KGgo") for source in images)
    assert not {"link", "iframe", "object"} & {tag for tag, _ in tags}
    assert not re.search(r"https?:|url\(|@import|\son\w+=|fetch\(|XMLHttp|innerHTML", page)
    assert [attributes for tag, attributes in tags if tag == "script"] == [{}]
    script = page.split("<script>")[1].split("</script>")[0]
    assert f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in page
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
    assert [tag for tag, _ in made.tags].count("script") == 1  # the page's own
    assert made.text.count(HOSTILE) > 10
    assert {name for _, attributes in made.tags for name in attributes} <= {
        *("lang", "charset", "name", "content", "http-equiv", "class", "tabindex", "role", "aria-label", "scope"),
        *("title", "alt", "src", "data-group", "data-method", "hidden", "open", "height", "aria-hidden"),
        *("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "stroke-width", "stroke-linecap"),
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
    assert "better or worse, although nothing is, in 3.1 ± 0.5 % of families" in flat
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
@pytest.mark.parametrize("width", [420, 1280])
def test_the_page_is_never_wider_than_the_screen(width, tmp_path):
    """The report, one with long names, and a page too wide, which shows the check works."""
    full = render(replace(RESULTS, data=CARD, run=RESULTS.run | {"costs": COSTS}))
    long = render(renamed(comparison(gains={"cdf": 0.0}, trials=2), dataset="d" * 300, method="m" * 300))
    wide = "<body style='margin:0'><p style='width:1700px'>too wide</p>"
    wider = "return page.documentElement.scrollWidth"
    assert [driven(tmp_path, one, wider, width=width) for one in (full, long, wide)] == [width, width, 1700]


@needs_chromium
def test_no_column_of_the_tests_is_hidden_on_a_desk(tmp_path):
    methods = dict.fromkeys(("original", "dropedge", "graphsage+effective-cdf"), 0.0)
    full = replace(comparison(gains=methods), data=CARD)
    full = replace(full, run={"costs": dict.fromkeys(methods, COSTS["cdf"])})
    hidden = "return [...page.querySelectorAll('.scroll')].map(box => box.scrollWidth - box.clientWidth)"
    assert set(driven(tmp_path, render(full), hidden)) == {0}


FOREST = "const forest = page.querySelectorAll('table.forest')[1]; const names = () => [...forest.tBodies[0].rows]"
NAMES = f"{FOREST}.filter(row => !row.hidden).map(row => row.cells[0].textContent);"


@needs_chromium
def test_a_click_sorts_a_forest_and_another_turns_it_round(page, tmp_path):
    clicks = """const head = forest.tHead.rows[0].cells[2].querySelector("button");
        head.click(); const down = names(); head.click(); return [down, names(), head.parentNode.ariaSort]"""
    down, up, said = driven(tmp_path, page, NAMES + clicks)
    gains = {row.method: round(100 * row.against["none"].difference, 2) for row in RESULTS.rows[1:]}
    assert down == sorted(gains, key=lambda name: -gains[name])
    assert up == sorted(gains, key=lambda name: gains[name])
    assert said == "ascending"


@needs_chromium
def test_what_is_not_known_stays_below_and_words_are_sorted_as_words(tmp_path):
    made = Table("a table", ("name", "size"), [("b", "–"), ("a", "1,200"), ("d", "−3"), ("c", "20")])
    text = page_of("{{ table(made, sortable=true) }}", made=made, script=script("publish/tables.js"))
    clicks = """const table = page.querySelector("table"), heads = table.querySelectorAll("button");
        const seen = () => [...table.tBodies[0].rows].map(row => row.cells[0].textContent).join("");
        return [1, 1, 0, 0].map(head => (heads[head].click(), seen()))"""
    assert driven(tmp_path, text, clicks) == ["acdb", "dcab", "abcd", "dcba"]


@needs_chromium
def test_a_method_can_be_hidden_everywhere_in_its_section(page, tmp_path):
    hide = """const rows = [...page.querySelectorAll("tr[data-method='2']")];
        const shown = () => rows.filter(row => row.offsetParent).length;
        const before = shown(); const box = [...page.querySelectorAll(".bar label")].find(
            label => label.textContent.trim() == "cutoff").querySelector("input");
        box.click(); const after = shown(); const rest = names(); box.click(); return [before, after, rest, shown()]"""
    before, after, rest, again = driven(tmp_path, page, NAMES + hide)
    assert (before, after, again) == (4, 0, 4)  # means, and three references
    assert rest == [row.method for row in RESULTS.rows if row.method not in ("original", "cutoff")]


@needs_chromium
@pytest.mark.parametrize("width", [420, 1280])
def test_values_are_shown_where_one_points(page, tmp_path, width):
    point = """const mark = forest.querySelector("svg.mark"), tip = page.querySelector(".tip");
        const box = mark.getBoundingClientRect(), before = tip.hidden;
        mark.dispatchEvent(new view.PointerEvent("pointerenter", { clientX: box.right }));
        const place = tip.getBoundingClientRect(), said = tip.textContent, shown = !tip.hidden;
        mark.dispatchEvent(new view.PointerEvent("pointerleave", {}));
        return [before, shown, tip.hidden, said, place.left, place.right]"""
    before, shown, after, said, left, right = driven(tmp_path, page, NAMES + point, width=width)
    assert (before, shown, after) == (True, True, True)
    assert said.startswith("dropedge against not dropping: +0.49 points, 95 % interval +0.28 to +0.69, p = 0.006")
    assert said.endswith(", better")
    assert left >= 0
    assert right <= width


@needs_chromium
def test_the_command_can_be_copied_and_nothing_is_requested(page, tmp_path):
    click = """const button = page.querySelector("button.copy"); button.click();
        await new Promise(done => setTimeout(done, 300));
        const requests = view.performance.getEntriesByType("resource").length;
        return [String(view.getSelection()), button.textContent, requests]"""
    selected, said, requests = driven(tmp_path, page, click)
    assert selected.strip() == winner(RESULTS).command
    assert said in ("copied", "selected")
    assert requests == 0


@needs_chromium
def test_without_scripts_the_page_is_a_still_picture(page, tmp_path):
    still, scripts = re.subn("<script>.*?</script>", "", page, flags=re.DOTALL)
    look = """const wide = [...page.querySelectorAll("svg.mark")].map(mark => mark.getBoundingClientRect().width);
        const controls = page.querySelectorAll("button, input").length;
        return [wide, controls, page.querySelector(".bar").offsetHeight]"""
    wide, controls, bar = driven(tmp_path, still, look)
    assert scripts == 1
    assert len(wide) == 7 + 6 + 5 + 5  # means, and tests against three references
    assert min(wide) > 150
    assert (controls, bar) == (0, 0)


def test_dots_and_intervals_stand_where_the_numbers_say():
    panels = differences(RESULTS.rows, "accuracy")
    assert [panel.title for panel in panels] == [
        *("against not dropping", "against DropEdge tuned", "against DropEdge at the same budget")
    ]
    rows = {row.method: row for row in RESULTS.rows}
    for panel, kind in zip(panels, ("none", "dropedge", "budget"), strict=True):
        axis = panel.axis
        assert axis.ticks == pytest.approx((-2, -1, 0, 1))
        for line in panel.lines:
            test = rows[line.label].against[kind]
            wanted = [test.difference_low, test.difference, test.difference_high, *test.evidence.differences]
            places = [*line.mark.ends, *line.mark.strokes]
            found = [axis.low + float(place[:-1]) / 100 * (axis.high - axis.low) for place in places]
            assert found == pytest.approx([100 * one for one in wanted if one == one], abs=1e-3)
            assert line.outcome == test.outcome
            assert all(0 < float(place[:-1]) < 100 for place in places)


# The card of the data, and what methods cost.


def test_the_card_counts_what_a_dense_matrix_counts():
    pairs = torch.tensor([[0, 0, 0, 1, 4], [1, 2, 3, 2, 5]])  # node 6 is alone
    labels = torch.tensor([0, 0, 1, -1, 1, 1, 0])
    split = Split(torch.tensor([0, 2]), torch.tensor([1]), torch.tensor([4, 5]))
    data = Dataset(
        "mine", Graph.from_edge_index(pairs, 7), torch.ones(7, 3), labels, num_classes=2, level="node", split=split
    )
    dense = torch.zeros(7, 7).index_put((pairs[0], pairs[1]), torch.tensor(1.0))
    degrees = (dense + dense.T).sum(0)
    found = data_card(data, "macro-f1")
    assert (found.nodes, found.edges, found.components, found.largest_component) == (7, 5, 3, 4)
    assert (found.mean_degree, found.median_degree, found.largest_degree) == (
        *(pytest.approx(float(degrees.mean())), float(degrees.median()), int(degrees.max())),
    )
    assert found.homophily == 2 / 4  # 0-1 and 4-5 of 0-1, 0-2, 1-2, 4-5: 0-3 has an end without a label
    assert (found.classes, found.features, tuple(found.split), found.measure) == (2, 3, (2, 1, 2), "macro-f1")


def test_the_page_shows_the_card_the_costs_and_the_budgets():
    run = RESULTS.run | {"costs": COSTS}
    text = Page(render(replace(RESULTS, data=CARD, run=run))).text
    assert "nodes 2,708 edges 5,278 degree mean 3.9, median 3, largest 168 edge homophily 0.81 classes 7 " in text
    assert "features 1,433 components 78, the largest of 2,485 nodes split 140 to train, 500 to validate" in text
    assert "measure accuracy" in text
    (cdf,) = [row.honest for row in RESULTS.rows if row.method == "cdf"]
    mean = f"{100 * cdf.mean:.2f} ± {50 * (cdf.high - cdf.low):.2f}"
    assert f"{mean} 70.0 keep_prob 0.7 1.50 12.5 5.00" in text
    assert "costs" not in text.split("The run")[1]
    assert "not recorded" not in text


def test_costs_that_are_none_are_refused():
    with pytest.raises(TadropedgeError, match=r"run\.costs\.cdf lacks 'epoch'"):
        render(replace(RESULTS, run={"costs": {"cdf": {"scores": 1.0, "training": 1.0}}}))


# The command that trains the winner.


def test_the_command_of_the_page_trains_the_settings_that_were_chosen(tmp_path):
    arguments = "compare clusters --methods dropedge,auto --trials 3 --seeds 2 --choose-splits 1 --epochs 4 --hidden 6"
    ended = command([*arguments.split(), "--seed", "3", "--split-sizes=40,40,40", "--out", "my folder"], tmp_path)
    assert ended.code == 0, ended
    results = read_results(tmp_path / "my folder" / "results.json")
    page = (tmp_path / "my folder" / "report.html").read_text(encoding="utf-8")
    said = unescape(re.sub("<[^>]*>", "", page.split('<pre class="command">')[1].split("</pre>")[0]))
    assert said in ended.out
    for row in results.rows:  # the one that is advised, and all others as if they were
        advice = replace(results.advice, use=row.method, settings=row.settings, reached={})
        if row.method == results.advice.use:
            assert winner(results).command == said
        made = winner(replace(results, advice=advice)).command
        trained = command(shlex.split(made)[1:], tmp_path)
        assert trained.code == 0, trained
        model = json.loads((tmp_path / "model" / "model.json").read_text())
        assert_trained(model, row.settings, row.settings.get("method", row.method))
        assert (model["architecture"]["hidden"], model["architecture"]["layers"]) == (6, 2)


def assert_trained(model, settings, method):
    """A model on disk has the settings of a row."""
    told = {**model["trial"], **model["trial"].get("settings", {})}
    assert told["method"] == method
    for name, value in settings.items():
        if name not in ("method", "kept_share"):
            assert told.get(name, DEFAULTS.get(name)) == value, name


DEFAULTS = {"self_weight": False, "batch_norm": False, "normalization": "gcn"}


@pytest.mark.parametrize(
    ("method", "budget"),
    [
        ("degree-proportional:connected", {"keep_ratio": 0.05}),
        ("dropedge:connected", {"keep_prob": 0.1}),
        ("jaccard-proportional:unbiased", {"keep_ratio": 0.3}),
        ("cdf", {"keep_prob": 0.4}),
    ],
)
def test_a_budget_out_of_reach_is_told_as_it_was_trained(method, budget, tmp_path):
    laboratory = Laboratory(load_dataset("karate"), Architecture(hidden=4), epochs=2)
    trial = Trial.of(method, **budget)
    advice = Advice(words="Use it.", use=method, settings=budget, reached=_reached(laboratory, trial))
    run = {"command": "tadropedge compare karate --epochs 2 --hidden 4"}
    ended = command(shlex.split(winner(Results([], run, advice=advice)).command)[1:], tmp_path)
    assert ended.code == 0, ended
    model = json.loads((tmp_path / "model" / "model.json").read_text())["trial"]
    told = {name: model.get(name) for name in ("keep_prob", "keep_ratio") if model.get(name) is not None}
    told = {"keep_ratio": told["keep_ratio"]} if "keep_ratio" in told else told
    share = laboratory.kept_share(Trial.of(method, **told))
    assert share == pytest.approx(laboratory.kept_share(laboratory.within_reach(trial)))
    if method == "cdf":
        assert advice.reached == {}


def test_a_function_that_compared_names_no_data_and_a_setting_without_option_is_told():
    row = bare(method="graphsage+cdf")
    advice = Advice(words="…", use="graphsage+cdf", settings={"keep_prob": 0.5, "samples": 7, "inductive": False})
    made = winner(Results([row], advice=advice, protocol=PROTOCOL))
    options = "--backbone gcn --layers 2 --epochs 400 --method graphsage+cdf --keep-prob 0.5"
    assert made.command == f"tadropedge train DATA {options} --out model"
    assert made.note == ("Put the name or the path of the data in the place of DATA. It has no option for samples 7.")


# What a smaller effect would take.


def normal(spread, seeds=20):
    """Differences that are spread as those of normal numbers, without their luck."""
    places = np.linspace(0, 1, seeds + 2)[1:-1]
    return spread * ndtri(places) / ndtri(places).std(ddof=1)


def test_further_seeds_find_half_of_the_difference_with_a_chance_of_eighty_per_cent():
    tests = judged_together({"a": 0.8 + normal(0.01), "b": np.full(20, 0.8)}, {"a": {"none": "b"}})
    (said,) = outlook([bare(against=tests["a"])])
    evidence = tests["a"]["none"].evidence
    many, half = evidence.seeds_for_half, evidence.detectable / 2 / 0.01
    assert power(half, many, 1) >= 0.8 > power(half, many - 1, 1)
    size = f"{100 * evidence.detectable:.2f}"
    assert said == (
        f"Against not dropping: a true difference of {size} points is found with a chance of 80 %; half of it, "
        f"{50 * evidence.detectable:.2f} points, takes {many - 20} further seeds (--seeds {many})."
    )


def test_where_the_choice_dominates_more_choosing_splits_are_what_it_takes():
    lucky = Selection(shifts=0.01 * np.linspace(-1, 1, 201), noise=0.01)
    sure = Selection(shifts=np.zeros(201), noise=0.01)
    scores = {"a": 0.8 + normal(0.01), "b": np.full(20, 0.8)}
    tests = judged_together(scores, {"a": {"none": "b"}}, {"a": lucky, "b": sure})
    assert tests["a"]["none"].evidence.seeds_for_half is None
    (said,) = outlook([bare(against=tests["a"])], PROTOCOL)
    assert "no number of seeds finds half of it" in said
    assert said.endswith("more choosing splits are what it takes (--choose-splits, now 3).")


def test_too_few_seeds_are_told():
    tests = judged_together({"a": 0.8 + normal(0.01, 4), "b": np.full(4, 0.8)}, {"a": {"none": "b"}})
    least = tests["a"]["none"].evidence.fewest_seeds
    (said,) = outlook([bare(against=tests["a"])])
    assert said == (
        f"Against not dropping: 4 seeds are too few to find any difference; take at least {least} (--seeds {least})."
    )
