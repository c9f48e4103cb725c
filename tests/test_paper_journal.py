"""The journal of an item: what is finished is kept, whatever happens after that."""

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest
from conftest import data_root

from tadropedge.errors import TadropedgeError
from tadropedge.paper import journal as journals
from tadropedge.paper.item import Bench
from tadropedge.paper.journal import Journal
from tadropedge.paper.recipe import load_recipe
from tadropedge.paper.registry import item_module
from tadropedge.paper.rows import Row

SMALL = {
    "variance": {"datasets": ["karate"], "normalizations": ["gcn"], "keep_probs": [0.3, 0.7], "samples": 4},
    "theorem1": {
        "families": [{"dataset": "karate", "graphs": 1, "normalizations": ["gcn-residual", "laplacian"]}],
        "draws": 3,
        "epochs": 2,
        "sizes": [20, 20, 20],
    },
    "proposition1": {"graphs": 2, "draws": 2, "shares": [0.5]},
}
PIECES = {"variance": 2, "theorem1": 4, "proposition1": 8}


def bench(name, folder, **options):
    recipe = load_recipe(name, "quick")
    return Bench(replace(recipe, settings={**recipe.settings, **SMALL[name]}), folder, root=data_root(), **options)


class Killed(BaseException):
    pass


def killed_after(count):
    """A report that kills the run when ``count`` pieces are finished."""
    seen = []

    def report(phase, done, total):
        seen.append(done)
        if len(seen) > count:
            raise Killed

    return report


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", SMALL)
def test_a_killed_item_goes_on_and_ends_with_the_same_rows(name, tmp_path, monkeypatch):
    run = item_module(name).run
    if name == "variance":
        monkeypatch.setattr(item_module(name), "judge", lambda rows, published: [])
        monkeypatch.setattr(item_module(name).figures, "variances", lambda *_: b"")
    whole = run(bench(name, tmp_path / "whole"))
    with pytest.raises(Killed):
        run(bench(name, tmp_path / "killed", report=killed_after(PIECES[name] - 1)))
    kept = tmp_path / "killed" / "studies" / f"{name}.pieces"
    before = kept.read_bytes()
    assert len(before.splitlines()) == PIECES[name] - 1
    changed = before.splitlines()[-1].replace(b'"seed": 0', b'"seed": 1')  # whatever is not as it was written
    kept.write_bytes(before + b"5\n\n" + changed + b'\n0123 {"recipe": "cut sho')  # a kill while a line was written
    resumed = run(bench(name, tmp_path / "killed"))
    assert resumed.rows == whole.rows
    assert kept.read_bytes().startswith(before)
    assert len(kept.read_bytes().splitlines()) == PIECES[name] + 4  # what is no piece stays and is passed over
    monkeypatch.setattr(Journal, "_write", None)  # nothing is made again
    assert run(bench(name, tmp_path / "killed")).rows == whole.rows


@dataclass(frozen=True)
class Found(Row):
    found: Any


def test_a_piece_belongs_to_its_data_recipe_and_seed_and_names_the_machine_that_made_it(tmp_path, monkeypatch):
    made = []

    def rows(name, value, data="one", **options):
        options.setdefault("folder", tmp_path)
        journal = Journal(bench("variance", **options))
        (row,) = journal.rows(name, data, Found, lambda: made.append(value) or [Found(value)])
        return row.found

    assert rows("karate/gcn/0.3", 1) == 1
    assert rows("karate/gcn/0.3", 2) == 1
    assert rows("karate/gcn/0.7", (3, float("inf"))) == (3, float("inf"))
    assert rows("karate/gcn/0.3", 4, seed=1) == 4
    monkeypatch.setitem(SMALL["variance"], "samples", 5)
    assert rows("karate/gcn/0.3", 5) == 5
    assert rows("karate/gcn/0.3", 6, data="another") == 6
    assert rows("karate/gcn/0.3", 7) == 5
    assert made == [1, (3, float("inf")), 4, 5, 6]
    monkeypatch.setitem(SMALL["variance"], "samples", 4)
    monkeypatch.setattr(journals, "machine", lambda device: "another machine")
    (row,) = Journal(bench("variance", tmp_path)).rows("karate/gcn/0.3", "one", Found, list)
    assert row.commit == journals.commit()
    told = Journal(bench("variance", tmp_path)).run
    assert told["seconds_of"]["karate"]["measuring"] >= 0
    assert [place.startswith("another machine") for place in told["trained_on"]] == [False]


def test_pieces_that_do_not_say_what_they_were_measured_on_are_not_used(tmp_path, caplog):
    journal = Journal(bench("variance", tmp_path))
    key = {"recipe": journal.bench.recipe.fingerprint, "seed": 0}  # as the version before wrote them
    journal._write({**key, "name": "karate/gcn/0.3", "seconds": 1.0, "place": "there", "rows": [{"found": 1}]})
    again = Journal(bench("variance", tmp_path))
    assert [row.found for row in again.rows("karate/gcn/0.3", "karate", Found, lambda: [Found(2)])] == [2]
    assert [record.getMessage() for record in caplog.records] == [
        f"'{journal.path}' holds measurements of an older version, which did not note their data: they are not used"
    ]


def test_laps_are_lines_beside_the_pieces_and_add_to_what_an_earlier_version_wrote(tmp_path, monkeypatch):
    seconds = iter([0.0, 1.0, 3.5, 10.0, 11.0, 12.25])
    monkeypatch.setattr(journals.time, "monotonic", lambda: next(seconds))
    monkeypatch.setattr(journals, "machine", lambda device: "here")
    earlier = tmp_path / "studies" / "variance-quick.seconds.json"
    earlier.parent.mkdir()
    earlier.write_text(json.dumps({"seconds": {"cora": {"search": 2.0}}, "trained_on": ["there"]}))
    journal = Journal(bench("variance", tmp_path))
    journal.lap("cora", "search")
    journal.lap("cora", "retraining")
    again = Journal(bench("variance", tmp_path))
    again.start()
    again.lap("karate", "search")
    assert again.seconds == {"cora": {"search": 3.0, "retraining": 2.5}, "karate": {"search": 1.25}}
    there, here = again.trained_on
    assert there == "there"
    assert here.startswith("here; torch ")
    assert json.loads(earlier.read_text())["seconds"] == {"cora": {"search": 2.0}}  # it is only read
    monkeypatch.undo()
    other = bench("variance", tmp_path)
    assert Journal(replace(other, recipe=replace(other.recipe, preset="paper"))).seconds == {}


def test_a_journal_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "studies").write_text("no folder")
    with pytest.raises(TadropedgeError, match=r"^cannot write '.*variance.pieces': .*"):
        Journal(bench("variance", tmp_path)).lap("cora", "search")
