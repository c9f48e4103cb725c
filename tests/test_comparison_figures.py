import math
import os
import struct
import subprocess
import sys
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from comparisons import comparison, renamed

from tadropedge.comparison import figures
from tadropedge.comparison.rows import Convergence, KeepProbPoint, Row
from tadropedge.comparison.statistics import Honest

ROWS = comparison().rows
BARE = Row("cora", "gcn", 2, "cdf")


def size(png):
    """Width and height as the file's header gives them."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", png[16:24])


@pytest.mark.parametrize("name", figures.FIGURES)
def test_every_picture_is_a_png_of_the_same_width_and_the_same_bytes_each_time(name):
    png = figures.FIGURES[name](ROWS)
    width, height = size(png)
    assert width == 960
    assert 250 < height < 1200
    assert figures.FIGURES[name](comparison().rows) == png


def test_pictures_are_saved_under_their_names(tmp_path):
    rows = comparison(gains={"cdf": 0.0}, trials=3).rows
    paths = figures.save_figures(rows, tmp_path / "figures")
    assert [path.name for path in paths] == [
        *("accuracy.png", "differences.png", "convergence.png", "by-keep-prob.png")
    ]
    assert paths[0].read_bytes() == figures.accuracy(rows)


def test_rows_without_data_draw_nothing(tmp_path):
    assert figures.save_figures([BARE], tmp_path) == []
    failed = replace(BARE, honest=Honest(None, None, None, 0, failed=20))
    assert figures.accuracy([failed]) is None
    assert figures.differences([replace(BARE, honest=Honest(0.8, 0.7, 0.9, 20))]) is None


def test_nothing_global_changes():
    """Neither a backend nor pyplot nor a setting; in a fresh process, where nothing was chosen before."""
    code = (
        "import sys, matplotlib, comparisons\n"
        "before = matplotlib.rcParams.copy()\n"
        "from tadropedge.comparison import figures\n"
        "assert figures.convergence(comparisons.comparison().rows)\n"
        "assert matplotlib.rcParams.copy() == before\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "assert matplotlib.get_backend(auto_select=False) is None\n"
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment | {"PYTHONPATH": paths})


def test_the_users_own_style_does_not_leak_in():
    expected = figures.accuracy(ROWS)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "text.usetex": True}):
        assert figures.accuracy(ROWS) == expected


@pytest.mark.parametrize("name", ["a$x_{$", "数据", "x" * 300])
def test_odd_names_are_only_names(name):
    odd = renamed(comparison(gains={"cdf": 0.0}), dataset=name, method=name).rows
    for draw in figures.FIGURES.values():
        size(draw(odd))


def test_short_and_broken_curves_are_drawn():
    point = KeepProbPoint(0.5, 0.8)
    for curve in (Convergence([1], [0.5], [0.5]), Convergence([1, 2], [0.5, math.nan], [math.nan, math.nan])):
        size(figures.convergence([replace(BARE, convergence=curve)]))
    for trials in ([point], [point, KeepProbPoint(0.7, math.nan)], [KeepProbPoint(0.7, math.nan)]):
        size(figures.by_keep_prob([replace(BARE, by_keep_prob=trials)]))


def test_more_methods_than_colours_are_drawn():
    many = comparison(gains={f"method-{number}": 0.0 for number in range(11)}, trials=3).rows
    size(figures.convergence(many))


def test_the_median_is_taken_at_each_p_or_in_each_tenth_of_p():
    p, found = figures._median_along(np.array([0.2, 0.5, 0.2, 0.5, 0.2]), np.array([1.0, 5.0, 2.0, 7.0, 9.0]))
    assert (p.tolist(), found.tolist()) == ([0.2, 0.5], [2.0, 6.0])
    p, found = figures._median_along(np.array([0.11, 0.13, 0.19, 0.55]), np.array([1.0, 2.0, 9.0, 4.0]))
    assert (p.tolist(), found.tolist()) == ([0.13, 0.55], [2.0, 4.0])
