"""A sample of what is recorded, made again: the same code gives the same, and what was changed is found."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import data_root
from tiny_recipes import tiny

from tadropedge.errors import TadropedgeError
from tadropedge.paper import check
from tadropedge.paper import reproduce as driver
from tadropedge.paper.check import Checked, Retrained, Sample
from tadropedge.paper.journal import _digest
from tadropedge.paper.recipe import load_recipe
from tadropedge.paper.reproduce import Run, reproduce
from tadropedge.paper.rows import Measured

pytestmark = pytest.mark.usefixtures("one_thread")
ITEMS = ("table1", "convergence", "proposition1")
SMALL = {"graphs": 2, "draws": 2, "shares": [0.5]}


def recipes(name, preset="quick"):
    found = tiny(name, preset)
    return replace(found, settings={**load_recipe(name, preset).settings, **SMALL}) if name == "proposition1" else found


@pytest.fixture(autouse=True)
def tiny_everywhere(monkeypatch):
    monkeypatch.setattr(driver, "load_recipe", recipes)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with three items."""
    folder = tmp_path_factory.mktemp("reproduction")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "load_recipe", recipes)
        for name in ITEMS:
            reproduce(name, run(folder))
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def run(folder, **options):
    said = options.pop("said", [])
    return Run(folder, root=data_root(), say=said.append, **options)


def summary(folder, name):
    return check.last_check(driver._bench(recipes(name), run(folder)))


def test_at_least_the_share_is_taken_in_groups_and_nothing_counts_twice():
    sample = Sample(0.05, least=32)
    sizes = [len(sample.of([(f"study {call}", index) for index in range(60)])) for call in range(40)]
    assert set(sizes) == {0, 32}
    assert 0.05 * 40 * 60 <= sample.taken <= 0.05 * 40 * 60 + 32
    assert sample.of([("study 3", index) for index in range(60)]) == []
    assert Sample(1.0, 1).of([("a", 0), ("b", 0)]) == [0, 1]
    one, two = (Sample(0.1, 1).of([("a", index) for index in range(50)]) for _ in range(2))
    assert one == two != list(range(5))


@pytest.mark.parametrize("name", ITEMS)
def test_what_the_same_code_makes_again_is_equal_and_the_pages_say_so(name, folder, monkeypatch):
    before = {path: path.read_bytes() for path in (folder / "studies").iterdir()}
    said = []
    reproduce(name, run(folder, check=0.2, check_batch=2, said=said))
    found = summary(folder, name)
    made = (found.measured, found.pieces) if name == "proposition1" else (found.trained, found.trainings)
    assert made[0] >= 0.2 * made[1] > 0
    assert (found.equal, found.far, found.mean) == (found.trained, 0, Measured(0.0, 0.0))
    assert found.relative < 1e-10  # rounding depends on where in memory a matrix lies
    assert found.agrees
    assert said == [f"{name}: {found.sentence}"]
    assert f"{made[0]} of {made[1]} " in found.sentence
    assert all(path.read_bytes() == content for path, content in before.items())  # what is recorded stays
    for page in ("README.md", "claims.md", "report.html"):
        assert found.sentence in (folder / page).read_text()
    for made in ("_train", "_measure"):  # nothing is made twice,
        monkeypatch.setattr(check, made, lambda *_: pytest.fail("a finished check was made again"))
    reproduce(name, run(folder, check=0.2, check_batch=2))
    assert reproduce(name, run(folder, again=True))[name].run["check"] == found.sentence  # and a rebuild keeps it


def test_a_changed_training_is_found_and_named(folder):
    path = folder / "studies" / "convergence.journal"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    trial = [line for line in lines if line["op_code"] == 4][7]
    trial["user_attrs"]["test_accuracy"] += 0.25
    del trial["user_attrs"]["digest"]  # else it would not count as a finished training
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = []
    reproduce("convergence", run(folder, check=1.0, said=said))
    found = summary(folder, "convergence")
    assert found.trained == found.trainings == found.equal + 1
    assert (found.far, found.largest) == (1, pytest.approx(0.25))
    assert not found.agrees
    assert said[0].startswith("convergence: It differs: ")
    lines = (folder / "studies" / "convergence.checks").read_text().splitlines()
    rows = [json.loads(line[17:])["rows"] for line in lines]
    changed = [row for some in rows for row in some if row.get("test_accuracy") != row.get("test_accuracy_again")]
    assert [row["index"] for row in changed] == [trial["user_attrs"]["index"]]


def test_a_changed_measurement_is_found(folder):
    path = folder / "studies" / "proposition1.pieces"
    _, _, content = path.read_text().splitlines()[0].partition(" ")
    line = json.loads(content)
    number = next(key for key, value in line["rows"][0].items() if isinstance(value, float) and value)
    line["rows"][0][number] *= 1.5
    changed = json.dumps(line)
    path.write_text("\n".join([f"{_digest(changed)} {changed}", *path.read_text().splitlines()[1:], ""]))
    reproduce("proposition1", run(folder, check=1.0))
    found = summary(folder, "proposition1")
    assert found.relative == pytest.approx(1 / 3)
    assert not found.agrees


def trained(old, new):
    return Retrained(
        study="a", index=0, test_accuracy=old, test_accuracy_again=new, val_loss=old, val_loss_again=new,
        best_epoch=1, best_epoch_again=1,
    )  # fmt: skip


def test_a_training_that_failed_twice_is_equal_and_one_that_failed_once_is_far():
    assert trained(math.nan, math.nan).equal
    assert trained(math.nan, math.nan).difference == 0
    assert not trained(0.5, math.nan).equal
    assert math.isnan(trained(0.5, math.nan).difference)


@pytest.mark.parametrize(
    ("changes", "agrees"),
    [
        ({}, True),
        ({"mean": Measured(0.004, 0.001)}, False),
        ({"mean": Measured(-0.002, 0.001), "far": 10}, True),
        ({"far": 11}, False),
        ({"relative": 0.01}, False),
    ],
)
def test_what_agrees(changes, agrees):
    numbers = {"place": "here", "trainings": 9000, "trained": 1000, "equal": 1, "far": 0, "other": 0.01, "largest": 0.2}
    numbers |= {"mean": Measured(0.0, 0.0), "pieces": 9, "measured": 3, "relative": 0.0}
    assert Checked(**{**numbers, **changes}).agrees == agrees


def test_only_what_is_finished_can_be_made_again(folder, tmp_path):
    with pytest.raises(TadropedgeError, match=r"^table3 is not finished in .*: run it without --check first$"):
        reproduce("table3", run(folder, check=0.05))
    with pytest.raises(TadropedgeError, match=r"^--check \(a share\) must lie in \[1e-06, 1\], got 5"):
        reproduce("table1", run(folder, check=5))
    with pytest.raises(TadropedgeError, match=r"^--check-batch must be a whole number of at least 1, got 0"):
        reproduce("table1", run(folder, check=0.05, check_batch=0))
    with pytest.raises(TadropedgeError, match=r"leave --part and --again out$"):
        reproduce("table1", run(folder, check=0.05, again=True))
    for path in (folder / "studies").iterdir():
        path.unlink()
    with pytest.raises(TadropedgeError, match=r"are not finished: only what is recorded can be trained again$"):
        reproduce("convergence", run(folder, check=0.05))
    with pytest.raises(TadropedgeError, match=r"only what is finished can be measured again$"):
        reproduce("proposition1", run(folder, check=0.05))
