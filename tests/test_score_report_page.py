"""The interactive page: what it holds, what it may do, what a browser makes of it; and what the pictures show."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html import escape

import numpy as np
import pytest
import torch
from browser import Page, browse, needs_chromium
from graphs import ZOO, path, star, two_cliques, union
from matplotlib.colors import to_hex

from tadropedge import Graph
from tadropedge.publish.pictures import INK, look
from tadropedge.score_report import figures
from tadropedge.score_report.layout import layout
from tadropedge.score_report.page import Shown, render
from tadropedge.score_report.part import Part
from tadropedge.score_report.summary import probabilities
from tadropedge.scores.solve import solve
from tadropedge.strategies import auto_gamma

HOSTILE = """</script><script>document.title = "owned"</script>"'&{{ 7 * 7 }}"""


def page(graph, q=2, name="graph", component="largest", classes=None, gamma=None, class_names=None):
    scored, part = solve(graph, "aggregate", {"q": q}), Part.chosen(graph, component)
    keep, _ = probabilities(scored, auto_gamma(scored.values), 0.7)
    shown = Shown(scored=scored, part=part, spoken=part.of(scored), keep=keep, classes=classes, gamma=gamma)
    shown = replace(shown, class_names=class_names)
    return scored, render(shown, name, layout(graph))


def data(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_the_data_hold_every_edge():
    scored, text = page(ZOO["karate"], q=4)
    held = data(text)
    assert [held["source"], held["target"]] == ZOO["karate"].pairs.tolist()
    assert held["score"] == scored.values.tolist()
    assert len(held["x"]) == len(held["y"]) == 34
    assert set(held["keep"]) == {"uniform", "cutoff", "division", "cdf", "proportional", "dropsens"}


def test_classes_are_called_as_in_the_file():
    labels = torch.tensor([0, 1] * 5)
    assert data(page(two_cliques(5), classes=labels)[1])["kinds"] is None
    _, text = page(two_cliques(5), classes=labels, class_names=("red", HOSTILE))
    assert data(text)["kinds"] == ["red", HOSTILE]
    assert HOSTILE not in text


def test_the_data_name_every_component_with_its_own_knee():
    graph = union(path(4), two_cliques(5), Graph.from_edge_index([[0], [1]], 3))
    scored, text = page(graph, component="2")
    held = data(text)
    assert held["shown"] == 2
    assert held["component"] == [2] * 4 + [1] * 10 + [3, 3, 4]
    everything, cliques, line, pair = held["components"]
    assert [one["number"] for one in held["components"]] == [0, 1, 2, 3]  # the fourth has no edges
    assert (everything["nodes"], everything["edges"]) == (17, 25)
    assert (cliques["nodes"], cliques["edges"], line["nodes"], line["edges"]) == (10, 21, 4, 3)
    own = scored.values[(graph.pairs[0] >= 4) & (graph.pairs[0] < 14)]
    assert cliques["gamma"] == auto_gamma(own) != everything["gamma"]
    assert everything["gamma"] == auto_gamma(scored.values)
    assert pair["gamma"] > 0  # equal scores: nothing is critical
    assert "The page opens with number 2 by size of 4 components." in Page(text).text
    given = data(page(graph, gamma=0.25)[1])
    assert {one["gamma"] for one in given["components"]} == {0.25}
    assert len(data(page(two_cliques(4))[1])["components"]) == 1  # nothing to choose


def test_the_page_is_self_contained_and_runs_one_script():
    _, text = page(ZOO["karate"])
    assert not re.search(r"https?:|url\(|@import|\son\w+=|\bfetch\b|XMLHttpRequest|\bimport\b", text)
    tags = Page(text).tags
    assert not {"link", "iframe", "object", "img"} & {tag for tag, _ in tags}
    assert not any("src" in attributes or "href" in attributes for _, attributes in tags)
    policy = next(a["content"] for t, a in tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy")
    script = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert policy == f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'"


def test_hostile_names_are_only_names():
    graph = replace(two_cliques(3), node_ids=tuple(f"{HOSTILE}{node}" for node in range(6)))
    _, text = page(graph, name=HOSTILE)
    assert data(text)["names"] == list(graph.node_ids)
    read = Page(text)
    assert [tag for tag, _ in read.tags].count("script") == 2
    assert f"Which edges hold {HOSTILE} together?" in read.text


WRAPPER = """
onload = () => {
  const view = document.querySelector("iframe").contentWindow, inside = view.document;
  const slider = inside.getElementById("threshold"), canvas = inside.getElementById("graph"), seen = [];
  const look = () => {
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    let grey = 0, colour = 0;
    for (let place = 0; place < pixels.length; place += 4) {
      const spread = Math.max(pixels[place], pixels[place + 1], pixels[place + 2]) -
        Math.min(pixels[place], pixels[place + 1], pixels[place + 2]);
      if (pixels[place + 3] > 128) spread > 100 ? colour++ : grey++;
    }
    seen.push({ text: inside.getElementById("count").textContent, grey, colour });
  };
  const slide = value => { slider.value = value; slider.dispatchEvent(new view.Event("input")); look(); };
  look();
  slide(0);
  slide(1000);
  inside.getElementById("knee").click();
  look();
  const { source, target, x, y } = JSON.parse(inside.getElementById("data").textContent), bridge = BRIDGE;
  const [low, wide] = [Math.min(...x), Math.max(...x)], [top, tall] = [Math.min(...y), Math.max(...y)];
  const scale = Math.min((canvas.clientWidth - 32) / (wide - low), (canvas.clientHeight - 32) / (tall - top));
  const middle = (places, from, to, size) =>
    ((places[source[bridge]] + places[target[bridge]]) / 2 - (from + to) / 2) * scale + size / 2;
  const box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new view.PointerEvent("pointermove", {
    clientX: box.left + 1 + middle(x, low, wide, canvas.clientWidth),
    clientY: box.top + 1 + middle(y, top, tall, canvas.clientHeight) }));
  document.title = JSON.stringify({ seen, detail: inside.getElementById("detail").textContent,
    width: inside.documentElement.scrollWidth });
};
"""


@needs_chromium
def test_a_browser_draws_the_edges_and_the_slider_colours_them(tmp_path):
    graph = replace(two_cliques(5), node_ids=tuple("abcdefghij"))
    scored, text = page(graph)
    frame = f'<iframe width="390" height="844" srcdoc="{escape(text)}"></iframe>'
    wrapper = tmp_path / "wrapper.html"
    script = WRAPPER.replace("BRIDGE", str(int(scored.values.argmax())))
    wrapper.write_text(f"<!doctype html><title>?</title><script>{script}</script>{frame}", encoding="utf-8")
    dom = Page(browse(tmp_path, wrapper, "--dump-dom"))
    told = json.loads(next(words for words in dom.words if words.startswith("{")))
    first, none, every, back = told["seen"]
    assert first["text"].startswith("1 of 21 edges coloured (4.76 %): score at least 0.")
    assert none["text"].startswith("0 of 21 edges coloured")
    assert every["text"].startswith("21 of 21 edges coloured")
    assert none["colour"] == 0 < none["grey"]
    assert 0 < first["colour"] < every["colour"]
    assert back == first
    assert told["detail"].startswith("e – f: score ")
    assert "rank 1 of 21; kept with probability uniform 0.700, cutoff 1.000" in told["detail"]
    assert told["width"] == 390


CHOICES = """
onload = () => {
  const view = document.querySelector("iframe").contentWindow, inside = view.document;
  const part = name => inside.getElementById(name), cells = row => [...row.cells].map(cell => cell.textContent);
  const rows = () => [...part("top").querySelectorAll("tbody tr")].map(cells);
  const state = () => ({ rows: rows(), count: part("count").textContent, detail: part("detail").textContent,
    legend: part("legend").innerText, component: part("component").value, width: inside.documentElement.scrollWidth });
  const seen = { offered: [...part("component").options].map(option => option.textContent), opened: state() };
  part("component").value = "2";
  part("component").dispatchEvent(new view.Event("change"));
  seen.second = state();
  part("classes").click();
  seen.classes = state();
  const search = words => {
    part("find").value = words;
    part("find").dispatchEvent(new view.KeyboardEvent("keydown", { key: "Enter" }));
    return state();
  };
  seen.found = search("N1");
  seen.next = search("N1");
  seen.nobody = search("nobody");
  inside.querySelector("#top button").click();
  seen.listed = state();
  document.title = JSON.stringify(seen);
};
"""


@needs_chromium
@pytest.mark.parametrize("width", [420, 1280])
def test_a_browser_offers_components_search_classes_and_a_list(tmp_path, width):
    graph = union(two_cliques(5), star(5))
    graph = replace(graph, node_ids=tuple(f"n{node}" for node in range(16)))
    _, text = page(graph, classes=torch.tensor([0] * 5 + [1] * 5 + [0] * 5 + [-1]))
    wrapper = tmp_path / "wrapper.html"
    frame = f'<iframe width="{width}" height="844" srcdoc="{escape(text)}"></iframe>'
    wrapper.write_text(f"<!doctype html><title>?</title><script>{CHOICES}</script>{frame}", encoding="utf-8")
    seen = json.loads(next(words for words in Page(browse(tmp_path, wrapper, "--dump-dom")).words if words[:1] == "{"))
    assert seen["offered"] == ["all: 16 nodes, 26 edges", "1: 10 nodes, 21 edges", "2: 6 nodes, 5 edges"]
    opened, second = seen["opened"], seen["second"]
    assert opened["component"] == "1"
    assert opened["rows"][0][:3] == ["1", "n4", "n5"]
    assert "most critical third: score" in opened["legend"]
    assert "other edges" in opened["legend"]
    assert opened["width"] == second["width"] == width
    assert {frozenset(row[1:3]) for row in second["rows"]} == {frozenset(("n10", f"n{leaf}")) for leaf in range(11, 16)}
    assert second["count"].startswith("0 of 5 edges coloured")  # a star has no edge that stands out
    assert [words in seen["classes"]["legend"] for words in ("class 0 (5)", "class 1", "no class (1)")] == [
        True,
        False,
        True,
    ]
    assert seen["found"]["detail"].startswith("n1: 4 edges, class 0; the most critical goes to")
    assert seen["found"]["component"] == "1"  # the search goes where the node is
    assert "(match 1 of 7; Enter shows the next)" in seen["found"]["detail"]
    assert seen["next"]["detail"].startswith("n10: 5 edges, class 0")
    assert seen["nobody"]["detail"] == "No node is called nobody."
    assert seen["listed"]["detail"].startswith("n10 – n11: score ")


# Pictures, before they become PNGs.


def drawn(draw, *arguments):
    with look():
        return draw.__wrapped__(*arguments)


def test_the_spectrum_marks_the_chosen_modes_and_the_gap_above():
    scored = solve(ZOO["karate"], "aggregate", {"q": 4})
    values, chosen = scored.eigenvalues, scored.chosen
    figure, title = drawn(figures.spectrum, scored, "karate")
    (axis,) = figure.axes
    used, above = axis.get_lines()
    assert np.array_equal(used.get_ydata(), values[:chosen])
    assert np.array_equal(above.get_ydata(), values[chosen:])
    assert [text.get_text() for text in axis.texts] == [f"gap {values[chosen] - values[chosen - 1]:.3g}"]
    assert used.get_label() == "used: q = 4"
    assert title == "karate: lowest eigenvalues of the largest component (34 nodes)"


def test_the_distribution_holds_every_positive_score_and_the_knee():
    scored = solve(ZOO["karate"], "aggregate", {"q": 4})
    gamma = auto_gamma(scored.values)
    figure, title = drawn(figures.distribution, scored, "karate", gamma)
    left, right = figure.axes
    values = np.sort(scored.values.numpy())
    assert np.array_equal(left.get_lines()[0].get_ydata(), values[values > 0])
    assert sum(bar.get_height() for bar in right.patches) == (values > 0).sum()
    critical = int((values >= gamma).sum())
    assert left.get_lines()[2].get_xydata().tolist() == [[1 - critical / 78, gamma]]
    assert right.get_lines()[0].get_xdata() == pytest.approx([np.log10(gamma)] * 2)
    assert title == f"karate: aggregate resistance; γ = {gamma:.3g}, {critical} of 78 edges reach it"


def test_the_picture_of_a_graph_colours_the_critical_edges_alone():
    graph = two_cliques(5)
    scored, places = solve(graph, "aggregate", {"q": 2}), layout(graph)
    gamma = auto_gamma(scored.values)
    figure, title = drawn(figures.picture, scored, "cliques", gamma, places)
    quiet, critical = figure.axes[0].collections
    bridge = int(scored.values.argmax())
    assert len(quiet.get_segments()) == graph.num_edges - 1
    assert np.array_equal(critical.get_segments(), places[graph.pairs.numpy().T][[bridge]])
    assert critical.get_zorder() > quiet.get_zorder()
    (nodes,) = figure.axes[0].get_lines()
    assert (len(nodes.get_xdata()), to_hex(nodes.get_color())) == (10, INK)
    assert title == "cliques: 1 of 21 edges are critical"
