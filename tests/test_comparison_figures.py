import math
import os
import struct
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from comparisons import bare, comparison, honest, older, renamed

from tadropedge.comparison import figures
from tadropedge.comparison.results import Convergence
from tadropedge.publish.pictures import BASELINES, COLOURS, GREY, PALETTE, look

ROWS = comparison().rows
METHODS = [row.method for row in ROWS]


def draw(name, rows=ROWS):
    """A figure as it is before it becomes a PNG."""
    with look():
        return figures.FIGURES[name](rows)


def size(png):
    """Width and height as the file's header gives them."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", png[16:24])


def labels(axis):
    return [label.get_text() for label in axis.get_yticklabels()]


def middles(axis):
    """The dots, from the top: their values and their colours."""
    dots = [line for line in axis.get_lines() if line.get_marker() == "o"]
    return [line.get_xdata()[0] for line in dots], [line.get_color() for line in dots]


def test_pictures_are_pngs_of_one_width_with_the_same_bytes_each_time():
    pictures = figures.drawn(ROWS)
    assert list(pictures) == list(figures.FIGURES)
    assert figures.drawn(comparison().rows) == pictures
    sizes = [size(png) for png in pictures.values()]
    assert {width for width, _ in sizes} == {960}
    assert [round(height / 160, 2) for _, height in sizes] == [3.87, 7.28, 3.8]


def test_the_accuracy_picture_shows_every_mean_with_its_interval():
    (axis,) = draw("accuracy").axes
    found, colours = middles(axis)
    assert labels(axis) == METHODS
    assert found == [100 * row.honest.mean for row in ROWS]
    assert colours == [*BASELINES.values(), *PALETTE[:5]]
    bars = [
        tuple(line.get_xdata()) for line in axis.get_lines() if line.get_linewidth() == 2 and line.get_marker() != "o"
    ]
    assert bars == [(100 * row.honest.low, 100 * row.honest.high) for row in ROWS]
    for place, style in enumerate((":", "--")):  # not dropping, DropEdge
        (line,) = [line for line in axis.get_lines() if line.get_linestyle() == style]
        assert line.get_xdata() == [100 * ROWS[place].honest.mean] * 2
    assert axis.get_ylim() == (6.6, -0.6)  # the first method on top


def test_the_differences_picture_has_a_panel_for_each_reference_and_colours_what_is_decided():
    axes = draw("differences").axes
    kinds = {"none": "not dropping", "dropedge": "DropEdge tuned", "budget": "DropEdge at the same budget"}
    assert [axis.get_title("left") for axis in axes] == [f"against {words}" for words in kinds.values()]
    seen = set()
    for axis, kind in zip(axes, kinds, strict=True):
        tests = {row.method: row.against[kind] for row in ROWS if kind in row.against}
        found, colours = middles(axis)
        assert labels(axis) == list(tests)
        assert found == [100 * test.difference for test in tests.values()]
        assert colours == [COLOURS.get(test.outcome, GREY) for test in tests.values()]
        seen |= set(colours)
    assert seen == {COLOURS["better"], COLOURS["worse"], GREY}
    (legend,) = axes[0].figure.legends
    assert "undecided after correction, even if clear of 0" in [text.get_text() for text in legend.get_texts()]


def test_results_of_older_versions_have_one_panel():
    rows = older().rows
    (axis,) = draw("differences", rows).axes
    assert axis.get_title("left") == "against DropEdge with its settings and budget"
    assert middles(axis)[0] == [100 * row.honest.difference for row in rows[2:]]


def test_the_convergence_picture_has_a_line_per_method_in_both_panels():
    figure = draw("convergence")
    assert [axis.get_title("left") for axis in figure.axes] == ["training loss", "validation loss"]
    for axis, loss in zip(figure.axes, ("train_loss", "val_loss"), strict=True):
        for line, row in zip(axis.get_lines(), ROWS, strict=True):
            assert np.array_equal(line.get_ydata(), getattr(row.convergence, loss))
            assert np.array_equal(line.get_xdata(), row.convergence.epochs)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == METHODS


def test_pictures_are_saved_under_their_names(tmp_path):
    rows = comparison(gains={"cdf": 0.0}, trials=3).rows
    paths = figures.save_figures(rows, tmp_path / "figures")
    assert [path.name for path in paths] == ["accuracy.png", "differences.png", "convergence.png"]
    assert [path.read_bytes() for path in paths] == list(figures.drawn(rows).values())


def test_rows_without_data_draw_nothing(tmp_path):
    assert figures.save_figures([bare()], tmp_path) == []
    assert figures.accuracy([bare(honest=honest(seeds=0, failed=20))]) is None
    assert figures.differences([bare(honest=honest(0.8, 0.7, 0.9))]) is None


def test_nothing_global_changes():
    """Neither a backend nor pyplot nor a setting; in a fresh process, where nothing was chosen before."""
    code = (
        "import sys, matplotlib, comparisons\n"
        "before = matplotlib.rcParams.copy()\n"
        "from tadropedge.comparison import figures\n"
        "assert figures.drawn(comparisons.comparison().rows)\n"
        "assert matplotlib.rcParams.copy() == before\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "assert matplotlib.get_backend(auto_select=False) is None\n"
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment | {"PYTHONPATH": paths})


def test_the_users_own_style_does_not_leak_in():
    expected = figures.drawn(ROWS)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "text.usetex": True}):
        assert figures.drawn(ROWS) == expected


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a$x_{$", r"a\$x_{\$"), ("数据", "数据"), ("x" * 300, "x" * 27 + "…")],
    ids=["dollar", "script", "long"],
)
def test_odd_names_are_only_names(name, shown):
    odd = renamed(comparison(gains={"cdf": 0.0}), dataset=name, method=name).rows
    assert labels(draw("accuracy", odd).axes[0]) == [shown]
    assert {size(png)[0] for png in figures.drawn(odd).values()} == {960}


def test_short_and_broken_curves_are_drawn():
    for curve in (Convergence([1], [0.5], [0.5]), Convergence([1, 2], [0.5, math.nan], [math.nan, math.nan])):
        assert len(draw("convergence", [bare(convergence=curve)]).axes[0].get_lines()) == 1
        assert list(figures.drawn([bare(convergence=curve)])) == ["convergence"]


def test_colours_start_again_where_there_are_more_methods():
    many = comparison(gains={f"method-{number}": 0.0 for number in range(11)}, trials=3).rows
    lines = draw("convergence", many).axes[0].get_lines()
    assert [line.get_color() for line in lines] == [*PALETTE, *PALETTE[:3]]
