"""The interactive page: what it holds, what it may do, what a browser makes of it; and what the pictures show."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html import escape

import numpy as np
import pytest
from browser import Page, browse, needs_chromium
from graphs import ZOO, two_cliques
from matplotlib.colors import to_hex

from tadropedge.publish.pictures import INK, look
from tadropedge.score_report import figures
from tadropedge.score_report.layout import layout
from tadropedge.score_report.page import render
from tadropedge.score_report.summary import probabilities
from tadropedge.scores.solve import solve
from tadropedge.strategies import auto_gamma

HOSTILE = """</script><script>document.title = "owned"</script>"'&{{ 7 * 7 }}"""


def page(graph, q=2, name="graph"):
    scored = solve(graph, "aggregate", {"q": q})
    gamma = auto_gamma(scored.values)
    return scored, render(scored, name, gamma, probabilities(scored, gamma, 0.7)[0], layout(graph))


def data(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_the_data_hold_every_edge():
    scored, text = page(ZOO["karate"], q=4)
    held = data(text)
    assert [held["source"], held["target"]] == ZOO["karate"].pairs.tolist()
    assert held["score"] == scored.values.tolist()
    assert len(held["x"]) == len(held["y"]) == 34
    assert set(held["keep"]) == {"uniform", "cutoff", "division", "cdf", "proportional", "dropsens"}


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
