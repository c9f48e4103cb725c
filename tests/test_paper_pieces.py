"""Pieces of an item: kept when they are finished, whatever happens after that."""

from dataclasses import replace

import pytest
from conftest import data_root

from tadropedge.paper import stopwatch
from tadropedge.paper.item import Bench
from tadropedge.paper.pieces import Pieces
from tadropedge.paper.recipe import load_recipe
from tadropedge.paper.registry import item_module

SMALL = {
    "variance": {"datasets": ["karate"], "keep_probs": [0.3, 0.7], "samples": 4},
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
    monkeypatch.setattr(Pieces, "rows", lambda self, piece, make: self.finished[piece].rows)
    assert run(bench(name, tmp_path / "killed")).rows == whole.rows


def test_a_piece_belongs_to_its_recipe_and_seed_and_names_the_machine_that_made_it(tmp_path, monkeypatch):
    made = []

    def rows(name, value, **options):
        options.setdefault("folder", tmp_path)
        return Pieces(bench("variance", **options)).rows(name, lambda: made.append(value) or [{"found": value}])

    assert rows("karate/gcn/0.3", 1) == [{"found": 1}]
    assert rows("karate/gcn/0.3", 2) == [{"found": 1}]
    assert rows("karate/gcn/0.7", (3, float("inf"))) == [{"found": [3, float("inf")]}]
    assert rows("karate/gcn/0.3", 4, seed=1) == [{"found": 4}]
    monkeypatch.setitem(SMALL["variance"], "samples", 5)
    assert rows("karate/gcn/0.3", 5) == [{"found": 5}]
    assert made == [1, (3, float("inf")), 4, 5]
    monkeypatch.setitem(SMALL["variance"], "samples", 4)
    monkeypatch.setattr(stopwatch, "machine", lambda device: "another machine")
    told = Pieces(bench("variance", tmp_path)).run
    assert told["seconds_of"]["karate"]["measuring"] >= 0
    assert [place.startswith("another machine") for place in told["trained_on"]] == [False]
