"""The items with trainings at tiny size: their rows, their verdicts, their pictures, and what is not trained twice."""

import io
import json
import math
import re
import shutil
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import matplotlib.image
import numpy as np
import pytest
import torch
from conftest import data_root
from tiny_recipes import tiny

from tadropedge.data import bayes_accuracy, load_dataset
from tadropedge.errors import TadropedgeError
from tadropedge.paper import journal
from tadropedge.paper.cells import all_cells, space_of
from tadropedge.paper.contest import Contender, Contest
from tadropedge.paper.figures import fixed as fixed_figures
from tadropedge.paper.figures import tables as table_figures
from tadropedge.paper.fixed import FixedSetting, Trained, in_points
from tadropedge.paper.gains import effects
from tadropedge.paper.item import NOT_REPRODUCED, Bench, Item
from tadropedge.paper.items import accuracy_vs_p, convergence, inverse, table1, table2, table3
from tadropedge.paper.judge import BothBudgets, Gap, Summary, gaps, told
from tadropedge.paper.recipe import load_recipe, tomllib
from tadropedge.paper.registry import ITEMS, item_module
from tadropedge.paper.rows import table as columns
from tadropedge.paper.trainings import Search, UnfinishedError
from tadropedge.provenance import commit
from tadropedge.training.config import Trial
from tadropedge.training.laboratory import Laboratory
from tadropedge.typed import plain

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::tadropedge.errors.RepeatedEigenvalueWarning"),
]
METHODS = ["original", "dropedge", "cutoff", "division", "cdf"]


def bench(name, folder, **options):
    return Bench(tiny(name), folder, **options)


@pytest.fixture
def counted(monkeypatch):
    """Every trial that is really trained."""
    trained, train = [], Laboratory.train

    def counting(self, trials, **options):
        trained.extend(trials)
        return train(self, trials, **options)

    monkeypatch.setattr(Laboratory, "train", counting)
    return trained


@dataclass
class Made:
    """An item at tiny size, the folder it lies in, and the trials that were trained for it."""

    folder: Path
    item: Item
    trials: list[Trial]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A function from a name to the item, run once."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)

    @cache
    def run(name):
        trained, folder = [], tmp_path_factory.mktemp(name)
        with pytest.MonkeyPatch.context() as patch:
            train = Laboratory.train

            def counting(self, trials, **options):
                trained.extend(trials)
                return train(self, trials, **options)

            patch.setattr(Laboratory, "train", counting)
            return Made(folder, item_module(name).run(bench(name, folder)), trained)

    yield run
    torch.set_num_threads(before)


def test_table1_has_a_row_for_each_method_and_laplacian_and_nothing_is_trained_twice(made, counted):
    folder, item = made("table1").folder, made("table1").item
    cells = [("karate", "gcn", 2), ("karate", "jknet", 3), ("clusters", "incepgcn", 3)]
    keys = [(row.dataset, row.backbone, row.layers, row.method, row.laplacian) for row in item.rows]
    alone = [(method, None) for method in METHODS[:2]]
    both = [(method, laplacian) for laplacian in ("combinatorial", "normalized") for method in METHODS[2:]]
    assert keys == [(*cell, *rest) for cell in cells for rest in (*alone, *both)]
    assert item.complete
    assert item.run["cells"] == "15 of 10"  # the tiny recipe prints numbers for two networks alone
    counted.clear()
    again = table1.run(bench("table1", folder))
    assert again.rows == item.rows
    assert not counted


def test_table1_gives_every_method_the_same_trials_and_pairs_the_fresh_ones(made):
    trials = made("table1").trials[: 8 * 2 + (2 + 2 * 3 * 2) * 3]  # the first network
    searched = [trial for trial in trials if trial.seed < 2**30]
    hyper = {}
    for trial in searched:
        values = (
            trial.learning_rate,
            trial.dropout,
            trial.keep_prob,
            trial.gamma,
            trial.seed,
            trial.settings["normalization"],
        )
        hyper.setdefault(trial.method, []).append(values)
    assert hyper["original"] == hyper["dropedge"]
    assert sorted(hyper["cdf"]) == sorted(2 * hyper["original"])  # once a Laplacian
    assert {values[-1] for values in hyper["cdf"]} == {"first-order"}
    fresh = [trial for trial in trials if trial.seed >= 2**30]
    assert len(fresh) == (2 + 2 * 3 * 2) * 3
    assert len({(trial.seed, trial.split) for trial in fresh}) == 3


def test_table1_says_how_far_each_best_trial_is_from_print_on_either_side(made):
    item = made("table1").item
    for row in item.rows:
        found = row.paper_protocol.best_test
        wanted = {("karate", 2): 1.1, ("clusters", 3): 0.0}.get((row.dataset, row.layers))
        assert row.printed == wanted
        assert row.above_printed == (None if wanted is None else pytest.approx(found - wanted))
    assert [verdict.status for verdict in item.verdicts[:2]] == [NOT_REPRODUCED] * 2  # far below, far above
    assert "original above in 0, within in 0, below in 1 of 1" in item.verdicts[0].reason
    assert "original above in 1, within in 0, below in 0 of 1" in item.verdicts[1].reason


def test_table1_keeps_the_replicates_of_the_reference_that_its_differences_are_of(made):
    for row in made("table1").item.rows:
        if row.laplacian is None:
            assert row.reference_accuracies is None
        else:
            gains = np.subtract(row.fresh.fresh_accuracies, row.reference_accuracies)
            assert gains.mean() == pytest.approx(row.honest.difference, abs=1e-6)
            assert len(gains) == row.honest.seeds


def test_every_row_of_table1_names_the_commit_of_its_trainings(made):
    assert {row.commit for row in made("table1").item.rows} == {commit()}


def test_table1_in_parts_is_the_whole_in_the_end(made, tmp_path):
    whole = made("table1").item
    first = table1.run(bench("table1", tmp_path, parts=("clusters",)))
    assert {row.dataset for row in first.rows} == {"clusters"}
    assert not first.complete
    second = table1.run(bench("table1", tmp_path, parts=("karate/gcn", "karate/jknet-3")))
    assert second.complete
    assert second.rows == whole.rows
    assert set(second.run["seconds_of"]) == {"karate", "clusters"}
    assert len(second.run["trained_on"]) == 1
    assert re.fullmatch(r".*cores.*; torch \d.*; commit .+", second.run["trained_on"][0])
    phases = {f"{phase}, {name}" for phase in ("search", "retraining") for name in ("combinatorial", "normalized")}
    assert all(set(seconds) == phases for seconds in second.run["seconds_of"].values())
    with pytest.raises(TadropedgeError, match="no part 'cora' in this recipe; take a dataset or one of karate/gcn-2"):
        table1.run(bench("table1", tmp_path, parts=("cora",)))


def test_table1_takes_more_seeds_until_the_differences_are_known_well_enough():
    accuracy, reference = np.array([0.81, 0.83, 0.80, 0.84]), np.array([0.80, 0.80, 0.80, 0.80])
    fresh = SimpleNamespace(accuracy={"cdf": accuracy}, reference={"cdf": reference})
    width = 3.182446 * np.std(accuracy - reference, ddof=1) / 2  # the 97.5 % quantile of Student's t, 3 degrees

    def needed(half_width, most=1_000):
        search = Search(
            laboratory=None, space=None, methods=["cdf"], trials=1, seeds=4, place="", most_seeds=most,
            half_width=half_width,
        )  # fmt: skip
        return search._seeds_needed(4, fresh)

    assert needed(width * 1.001) == 4
    assert needed(width / 2) == math.ceil(1.1 * 4 * 4)
    assert needed(width / 2, most=7) == 7
    assert needed(0.0) == 4  # nothing is wanted


def test_progress_never_exceeds_its_total_nor_goes_backwards_when_seeds_are_added(tmp_path, monkeypatch):
    one, seen = tiny("table1"), []
    monkeypatch.setattr(Search, "_seeds_needed", lambda self, seeds, fresh: 5)
    settings = {**one.settings, "cells": {"karate": ["gcn-2"]}, "seeds": {"karate": [2, 5]}}
    recipe = replace(one, settings=settings)
    table1.run(Bench(recipe, tmp_path, report=lambda _, done, total: seen.append((done, total))))
    assert seen[0] == (0, 8 * 2 + (2 + 2 * 3 * 2) * 2)
    assert seen[-1] == (8 * 2 + (2 + 2 * 3 * 2) * 5,) * 2
    assert all(done <= total for done, total in seen)
    assert all(before <= after for column in zip(*seen, strict=True) for before, after in pairwise(column))


def test_table1_in_parts_by_laplacian(made, tmp_path):
    first = table1.run(bench("table1", tmp_path, parts=("karate/gcn-2/combinatorial",)))
    assert {row.laplacian for row in first.rows} == {None, "combinatorial"}
    assert {(row.backbone, row.layers) for row in first.rows} == {("gcn", 2)}
    assert not first.complete


def test_table1_tests_on_more_nodes_of_fresh_splits_where_the_recipe_says_so(counted, tmp_path):
    one = tiny("table1")
    settings = {**one.settings, "cells": {"karate": ["gcn-2"]}, "laplacians": ["combinatorial"]}
    usual = table1.run(Bench(replace(one, settings=settings), tmp_path))
    searched, trained = 5 * 2, len(counted)
    test = load_dataset("karate").split.sizes[-1]
    more = replace(one, settings={**settings, "test_nodes": {"karate": test + 2}})
    other = table1.run(Bench(more, tmp_path))
    assert len(counted) == trained + (trained - searched)  # the search is kept, what follows is done anew
    assert [row.paper_protocol for row in other.rows] == [row.paper_protocol for row in usual.rows]
    nodes = [round(row.honest.mean * 3 * (test + 2), 4) for row in other.rows]
    assert all(count == round(count) for count in nodes)  # three splits of so many test nodes


def test_table1_trains_the_two_names_of_one_function_once(made, counted, tmp_path):
    one = tiny("table1")
    cells = {"karate": ["jknet-3", "incepgcn-3"], "clusters": []}
    item = table1.run(Bench(replace(one, settings={**one.settings, "cells": cells}), tmp_path))
    assert {row.backbone for row in item.rows} == {"jknet", "incepgcn"}
    theirs = [replace(row, backbone="", printed=0, above_printed=0) for row in item.rows]
    assert theirs[: len(theirs) // 2] == theirs[len(theirs) // 2 :]
    assert len(counted) == 8 * 2 + (2 + 2 * 3 * 2) * 3


def test_table2_gives_every_row_as_many_trials_and_pairs_all(made, monkeypatch, counted):
    folder = made("table1").folder
    counted.clear()
    monkeypatch.setattr(table2, "load_recipe", tiny)
    item = table2.run(bench("table2", folder))
    assert item.complete
    measured = {(row.row, row.dataset): row for row in item.rows if row.source == "measured"}
    competitors = list(tiny("table2")["competitors"].values())
    ours = [f"{kind}-{backbone}" for backbone in ("GCN", "JKNet") for kind in ("Original", "DropEdge", "TADropEdge")]
    assert list(measured) == [(name, "karate") for name in (*ours, *competitors)]
    for row in measured.values():
        assert (row.looks, row.honest.seeds) == (1, 2)
        assert row.fresh.test_nodes == load_dataset("karate").split.sizes[-1]
        assert row.commit == commit()
    assert [measured[name, "karate"].choice.layers for name in (*ours, *competitors)] == [2] * 3 + [3] * 3 + [2] * 5
    # The searches of Table 1 are there; of the fresh trainings those whose trial it did not choose may be new.
    rivals = [trial for trial in counted if trial.method in tiny("table2")["competitors"]]
    assert len(rivals) == 5 * (1 + 2)
    assert len(counted) - len(rivals) <= 2 * (2 + 2 + 4)
    printed = [row for row in item.rows if row.source == "printed"]
    assert {row.dataset for row in printed if row.row in competitors} == {"cora"}
    before = len(counted)
    assert table2.run(bench("table2", folder)).rows == item.rows
    assert len(counted) == before  # nothing is trained twice
    (shown,) = table2.tables(item.rows)
    assert all(len(line) == len(shown.columns) and "None" not in line for line in shown.rows)
    assert "FastGCN, AS-GCN and GraphSAGE is at most 4 mini-batches" in " ".join(item.notes)


def test_table2_in_parts(made, monkeypatch):
    monkeypatch.setattr(table2, "load_recipe", tiny)
    folder = made("table1").folder
    with pytest.raises(TadropedgeError, match="no part 'cora' in this recipe; take one of karate"):
        table2.run(bench("table2", folder, parts=("cora",)))


def test_table2_shows_the_best_trials_where_fresh_trainings_are_not_finished(made, monkeypatch, tmp_path):
    monkeypatch.setattr(table2, "load_recipe", tiny)
    shutil.copytree(made("table1").folder, tmp_path, dirs_exist_ok=True)

    def refuse(self, trials, **options):
        raise UnfinishedError("no GPU here")

    monkeypatch.setattr(Laboratory, "train", refuse)
    recipe = tiny("table2")
    item = table2.run(Bench(replace(recipe, settings={**recipe.settings, "seeds": {"karate": 5}}), tmp_path))
    assert not item.complete
    ours = [row for row in item.rows if row.source == "measured"]
    assert {row.row for row in ours} >= {"Original-GCN", "TADropEdge-JKNet"}
    assert all(0 <= row.accuracy <= 1 for row in ours)
    assert any("not finished here" in note for note in item.notes)


def test_table3_bounds_what_can_be_reached(made, counted):
    item = made("table3").item
    assert [(row.noise, row.method) for row in item.rows] == [
        (noise, method) for noise in ("stated", "calibrated", "scarce") for method in METHODS
    ]
    for one in item.rows:
        assert one.best_mean == pytest.approx(np.mean(one.best_by_graph), abs=1e-4)
        assert one.best_of_graphs == pytest.approx(max(one.best_by_graph), abs=1e-4)
        assert one.honest.seeds == 2  # graphs are the unit
        assert (one.honest.difference is None) == (one.method in METHODS[:2])
    assert item.verdicts[0].status == "cannot be as stated"
    for one in item.rows:
        bounds = [bayes_accuracy(graph, one.deviation, sizes=(one.training, 500, 1000)) for graph in (0, 1)]
        assert (one.bayes, one.bayes_low, one.bayes_high) == (np.mean(bounds), min(bounds), max(bounds))
        assert one.bayes_by_graph == tuple(round(bound, 4) for bound in bounds)
    stated, calibrated, scarce = item.rows[0], item.rows[5], item.rows[10]
    assert stated.bayes_high < min(tiny("table3").published.values()) == 0.82  # out of reach on both graphs
    assert calibrated.bayes_low > stated.bayes_high  # the calibrated noise is the smaller one
    assert scarce.deviation < calibrated.deviation < stated.deviation
    assert scarce.training < calibrated.training == stated.training == 100
    assert len(made("table3").trials) == 3 * 2 * (5 * 2 + 8 * 1)
    counted.clear()
    assert table3.run(bench("table3", made("table3").folder)).rows == item.rows
    assert not counted


def test_convergence_pairs_every_strategy_with_both_kinds_of_dropedge(made, counted):
    item = made("convergence").item
    rows = {one.method: one for one in item.rows}
    assert list(rows) == ["dropedge", *(n for m in METHODS[2:] for n in (m, f"dropedge as {m}"))]
    assert rows["dropedge"].kept_share == 0.7
    cdf, reference = rows["cdf"], rows["dropedge as cdf"]
    assert cdf.kept_share == reference.kept_share > 0.8
    assert cdf.epoch == (0, 1, 2)
    gap = cdf.smallest_val_against.same_budget.difference
    assert gap == pytest.approx(cdf.smallest_val_loss - reference.smallest_val_loss)
    assert {trial.split for trial in made("convergence").trials} == {0}
    assert len(item.verdicts) == 2
    assert len(made("convergence").trials) == 7 * 3
    counted.clear()
    assert convergence.run(bench("convergence", made("convergence").folder)).rows == item.rows
    assert not counted


def test_accuracy_vs_p_keeps_as_many_edges_at_the_same_budget(made):
    item, trials = made("accuracy-vs-p").item, made("accuracy-vs-p").trials
    assert len(item.rows) == 2 * 2 * 4
    for one in item.rows:
        if one.method == "dropedge":
            assert one.kept_share == one.keep_prob
            assert "same_p" not in one.columns()
        else:
            assert one.kept_share > one.keep_prob
            base = next(
                other for other in item.rows
                if (other.method, other.keep_prob, other.laplacian)
                == ("dropedge", one.keep_prob, one.laplacian)
            )  # fmt: skip
            assert one.against.same_p.difference == pytest.approx(one.accuracy.mean - base.accuracy.mean)
            gap = one.accuracy.mean - one.dropedge_same_budget.mean
            assert one.against.same_budget.difference == pytest.approx(gap)
    shares = {round(trial.keep_ratio, 4) for trial in trials if trial.keep_ratio is not None}
    assert shares == {one.kept_share for one in item.rows if one.method != "dropedge"}


def test_inverse_is_compared_on_every_dataset(made):
    item = made("inverse").item
    assert {(one.dataset, one.laplacian, one.method) for one in item.rows} == {
        (dataset, "combinatorial", method)
        for dataset in ("karate", "clusters")
        for method in ("dropedge", "cdf", "inverse-cdf")
    }
    assert len(item.verdicts) == 2
    assert "karate" in item.verdicts[0].measured
    assert "clusters" in item.verdicts[0].measured
    inverse = [one for one in item.rows if one.method == "inverse-cdf"]
    assert all(("to_cdf" in one.columns()) == (one in inverse) for one in item.rows)
    for one in inverse:
        (cdf,) = [
            other for other in item.rows
            if (other.method, other.dataset, other.keep_prob) == ("cdf", one.dataset, one.keep_prob)
        ]  # fmt: skip
        assert one.to_cdf.difference == pytest.approx(one.accuracy.mean - cdf.accuracy.mean)


@pytest.mark.parametrize("name", ["convergence", "accuracy-vs-p", "inverse"])
def test_fixed_settings_name_the_machine_that_trained_also_after_a_resume(name, made, monkeypatch):
    folder, run = made(name).folder, made(name).item.run
    parts = {"convergence": {"combinatorial"}, "accuracy-vs-p": {"combinatorial", "normalized"}}
    both = {f"{dataset}/{laplacian}" for dataset in ("karate", "clusters") for laplacian in tiny(name)["laplacians"]}
    assert set(run["seconds_of"]) == parts.get(name, both)
    assert all(set(phases) == {"training"} for phases in run["seconds_of"].values())
    assert len(run["trained_on"]) == 1
    monkeypatch.setattr(journal, "machine", lambda device: "another machine")
    again = item_module(name).run(bench(name, folder)).run
    assert (again["seconds_of"], again["trained_on"]) == (run["seconds_of"], run["trained_on"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({}, "lacks 'seconds', found nothing"),
        ([], r"must be an object, got \[\]"),
        ({"seconds": {"cora": 3}, "trained_on": []}, ".seconds.cora must be an object, got 3"),
        ({"seconds": {}, "trained_on": 5}, ".trained_on must be a list, got 5"),
    ],
)
def test_seconds_of_an_earlier_version_that_are_damaged_are_one_line(content, words, tmp_path):
    path = tmp_path / "studies" / "convergence-quick.seconds.json"
    path.parent.mkdir()
    path.write_text(json.dumps(content))
    with pytest.raises(TadropedgeError, match=f"^{path.name} ?{words}$"):
        convergence.run(bench("convergence", tmp_path))


def runs(accuracies):
    return [SimpleNamespace(test_accuracy=value, commit=None) for value in accuracies]


def trained(method, p, share, own, same_p=(), same_budget=()):
    setting = FixedSetting(dataset="cora", laplacian="x", method=method, keep_prob=p, kept_share=share)
    return Trained(setting, runs(own), runs(same_p), runs(same_budget))


def test_inverse_is_worst_where_it_is_surely_below_both():
    noise = 0.001 * np.arange(8)
    levels = {"cdf": 0.9, "dropedge": 0.88, "inverse-cdf": 0.8, "as cdf": 0.9, "as inverse": 0.79}
    found = {
        method: level + noise + 0.0001 * np.sin(np.arange(8) + place)
        for place, (method, level) in enumerate(levels.items())
    }
    group = []
    for p in (0.3, 0.7):
        group.append(trained("cdf", p, p, found["cdf"], found["dropedge"], found["as cdf"]))
        group.append(trained("inverse-cdf", p, p, found["inverse-cdf"], found["dropedge"], found["as inverse"]))
    gap = inverse.over_p(group)
    assert gap["same_p"].difference == pytest.approx(-0.08, abs=1e-3)
    same_p, same_budget = inverse.judge({"combinatorial": {"cora": gap}}, tiny("inverse"))
    assert (same_p.status, same_p.own) == ("reproduced", False)
    assert (same_budget.word, same_budget.own) == ("partly: below TADropEdge on cora (combinatorial)", True)


def test_a_gap_with_fewer_than_two_pairs_is_undecided():
    one, nan = np.array([0.83, 0.85, 0.84]), np.nan
    found = gaps({"cdf": (one, one - 0.02), "cutoff": (one, np.array([0.8, nan, nan])), "division": (one * nan, one)})
    assert found["cutoff"] == found["division"] == Gap()
    assert found["cdf"].p_value == 0.75  # 2 / 2^3, corrected for three
    assert told(list(found.values())) == "surely above in 0, surely below in 0, undecided in 3 of 3"
    assert in_points(found["cutoff"]) == "undecided"
    assert in_points(found["cdf"]) == "+2.00 ± 0.00"


def test_accuracy_vs_p_shows_what_failed_as_nothing():
    known, nan = [0.8, 0.81, 0.82], np.full(3, np.nan)
    rows = accuracy_vs_p.rows_of([trained("dropedge", 0.3, 0.3, known), trained("cdf", 0.3, 0.65, nan, known, nan)])
    assert rows[1].accuracy.mean is rows[1].against.same_p.difference is None
    assert accuracy_vs_p.tables(rows)[0].rows[1][-3:] == ["–", "– (p –)", "– (p –)"]
    figure, _ = fixed_figures.panels.__wrapped__(rows, "title")
    uniform, level, strategy = (line.get_ydata() for line in figure.axes[0].get_lines())
    assert uniform == pytest.approx([81.0])
    assert np.isnan(level).all()
    assert np.isnan(strategy).all()


def test_accuracy_vs_p_says_at_which_p_it_holds():
    noise, recipe = 0.0001 * np.sin(np.arange(8)), load_recipe("accuracy-vs-p", "paper")
    same = 0.8 + noise
    high = [trained("cdf", p, p, same + 0.01 + noise * p, same, same + noise * p) for p in (0.1, 0.2, 0.3)]
    low = [trained("cdf", p, p, same - noise * p, same, same + noise * p) for p in (0.4, 0.5)]
    base = [trained("dropedge", p, p, same) for p in (0.1, 0.2, 0.3, 0.4, 0.5)]
    same_p, same_budget = accuracy_vs_p.judge(accuracy_vs_p.rows_of([*base, *high, *low]), recipe)
    assert same_p.word == "partly: cdf at p = 0.1 and 0.2 and 0.3 (x)"
    assert not same_p.own
    assert same_budget.own
    alone = accuracy_vs_p.judge(accuracy_vs_p.rows_of([*base[:3], *high]), recipe)
    assert alone[0].word == "reproduced"
    none = accuracy_vs_p.judge(accuracy_vs_p.rows_of([*base[3:], *low]), recipe)
    assert none[0].word == "not reproduced"


def test_table3_leaves_a_failed_replicate_out_of_both_of_a_pair():
    values, reference = np.array([0.5, 0.7, np.nan]), np.array([0.4, np.nan, 0.9])
    fresh = SimpleNamespace(accuracy={"cdf": values, "original": values}, reference={"cdf": reference})
    assert table3.graph_means(fresh, "cdf") == (0.5, 0.4)
    assert table3.graph_means(fresh, "original") == pytest.approx((0.6, 0.6))
    failed = SimpleNamespace(accuracy={"cdf": values[2:]}, reference={"cdf": reference[2:]})
    assert np.isnan(table3.graph_means(failed, "cdf")).all()


@pytest.mark.parametrize("name", ["table1", "table3", "convergence", "accuracy-vs-p", "inverse"])
def test_tables_hold_words_alone_and_rows_are_read_back_as_they_were(name, made):
    item = made(name).item
    for table in item_module(name).tables(item.rows):
        assert table.rows
        assert all(len(line) == len(table.columns) for line in table.rows)
        assert all(isinstance(cell, str) and cell not in ("None", "nan") for line in table.rows for cell in line)
    (kind,) = item_module(name).ROWS
    stored = json.loads(json.dumps(plain(columns(item.rows)), allow_nan=False))
    assert [kind.of(row, name) for row in stored] == list(item.rows)


def drawn(figure):
    """Titles of the panels, the words of the legend, and the number of lines in each panel."""
    words = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return [axis.get_title() for axis in figure.axes], words, [len(axis.get_lines()) for axis in figure.axes]


def test_the_pictures_of_table1_have_a_mark_for_each_row(made):
    rows = [row for row in made("table1").item.rows if row.dataset == "karate"]
    figure, title = table_figures.measured.__wrapped__(rows, "karate")
    (axis,) = figure.axes
    printed = sum(row.printed is not None for row in rows)
    assert title == "karate: measured beside printed"
    assert len(axis.get_lines()) == len(rows) + printed + 1  # and a rule between the two networks
    assert [label.get_text() for label in axis.get_yticklabels()] == [
        f"{network} {method}" for network in ("gcn-2", "jknet-3") for method in METHODS
    ]
    shown = [line.get_xdata()[0] for line in axis.get_lines() if line.get_marker() in ("o", "D")]
    assert shown == pytest.approx([100 * row.paper_protocol.best_test for row in rows])
    compared = [row for row in rows if row.honest.difference is not None]
    assert len(compared) == 12
    printed = {one.key: 0.01 for one in effects(rows, "dropedge") if one.network == "gcn-2"}
    figure, _ = table_figures.differences.__wrapped__(compared, printed, "karate")
    drawn_lines = figure.axes[0].get_lines()
    assert len(drawn_lines) == 2 * len(compared) + 3 + 2  # a bar for each printed gain, zero, and the rule
    assert [line.get_xdata()[0] for line in drawn_lines if line.get_marker() == "|"] == [1.0] * 3
    assert set(made("table1").item.figures) == {
        f"{kind}-{dataset}" for kind in ("measured", "differences") for dataset in ("karate", "clusters")
    }


def test_the_picture_of_table1_marks_null_cells_and_the_second_name_of_a_function(made):
    rows = [row for row in made("table1").item.rows if row.dataset == "clusters" and row.laplacian]
    rows[0] = replace(rows[0], null="drops only 1.00 %")
    figure, _ = table_figures.differences.__wrapped__(rows, {}, "clusters")
    marks = [line for line in figure.axes[0].get_lines() if line.get_marker() in ("o", "D")]
    assert [line.get_markerfacecolor() == "white" for line in marks] == [row.null is not None for row in rows]
    assert {label.get_text() for label in figure.axes[0].get_yticklabels()} == {
        f"incepgcn-3* {method}" for method in METHODS[2:]
    }


def test_the_picture_of_table2_marks_what_is_known():
    known = Contender(
        row="TADropEdge-GCN", dataset="cora", source="measured", printed=0.9, accuracy=0.9, looks=100,
        honest=Summary(mean=0.81, low=0.80, high=0.82, seeds=3), choice=Contest("cdf", 2, "combinatorial"),
    )  # fmt: skip
    printed = replace(known, row="FastGCN", source="printed", honest=Summary(), choice=Contest())
    figure, _ = table_figures.contenders.__wrapped__([known, printed])
    (axis,) = figure.axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["TADropEdge-GCN, 2 layers", "FastGCN"]
    places = [round(float(line.get_ydata()[0]), 2) for line in axis.get_lines()]
    assert places == [0.18, 0.18, -0.18, 0.0, 1.0]  # interval, mean, best trial and printed; printed alone
    assert "the best of 100 trials each" in figure.get_supxlabel()


def test_the_picture_of_table3_has_a_panel_for_each_setup(made):
    rows = made("table3").item.rows
    figure, _ = table_figures.noises.__wrapped__(rows)
    titles, _, lines = drawn(figure)
    originals = rows[::5]
    assert [title.splitlines()[0] for title in titles] == [f"{one.noise}, 2 graphs" for one in originals]
    # Two intervals, two means and the printed gain of each method; zero; and the room where it is small.
    assert lines == [5 * 4 + 1 + (one.room < table_figures.ROOM) for one in originals]
    printed = [line.get_xdata()[0] for line in figure.axes[0].get_lines() if line.get_marker() == "|"]
    assert printed == pytest.approx([1.6, 4.0, 3.6, 2.8])


def test_the_picture_of_convergence_shows_differences_to_both_kinds_of_dropedge(made):
    rows = made("convergence").item.rows
    figure, title = fixed_figures.curves.__wrapped__(rows, "combinatorial")
    titles, words, lines = drawn(figure)
    assert titles == [f"{loss} loss, {how}" for how in ("same p", "same budget") for loss in ("training", "validation")]
    assert words == METHODS[2:]
    assert lines == [4] * 4  # three strategies and zero
    assert [len(axis.collections) for axis in figure.axes] == [3] * 4
    assert "3 pairs of runs" in title
    found = {row.method: row for row in rows}
    for axis, other in ((figure.axes[1], "dropedge"), (figure.axes[3], "dropedge as cdf")):
        apart = np.subtract(found["cdf"].val_loss.value, found[other].val_loss.value)
        assert axis.get_lines()[2].get_ydata() == pytest.approx(apart, abs=1e-4)


def test_the_pictures_of_accuracy_have_a_column_for_each_strategy(made):
    rows = [row for row in made("accuracy-vs-p").item.rows if row.laplacian == "combinatorial"]
    figure, _ = fixed_figures.panels.__wrapped__(rows, "karate")
    titles, words, lines = drawn(figure)
    assert titles == [*METHODS[2:], *[""] * 3]
    assert words == ["DropEdge, same p", "DropEdge, same budget", "the strategy, in its colour"]
    assert lines == [3] * 3 + [2 * 2 + 1] * 3  # two kinds of DropEdge, all and decided; zero
    assert [len(axis.collections) for axis in figure.axes] == [3] * 3 + [2] * 3  # bars
    mine = [row for row in rows if row.method == "cutoff"]
    assert list(figure.axes[0].get_lines()[2].get_ydata()) == [100 * row.accuracy.mean for row in mine]


def test_the_picture_of_inverse_shows_all_three_methods_in_one_panel(made):
    figure, _ = fixed_figures.opposites.__wrapped__(made("inverse").item.rows, "combinatorial")
    titles, words, lines = drawn(figure)
    assert titles == ["karate, 3 seeds", "clusters, 3 seeds", "", ""]
    assert words == [
        *("DropEdge", "TADropEdge (cdf)", "Inverse-TADropEdge (cdf)"),
        *("minus DropEdge, same p", "minus DropEdge, same budget", "minus TADropEdge"),
    ]
    assert lines == [3, 3, 2 * 3 + 1, 2 * 3 + 1]
    assert [len(axis.collections) for axis in figure.axes] == [3] * 4


def test_a_difference_is_filled_where_the_correction_leaves_it_decided():
    sure, unsure = Gap(difference=0.02, low=0.01, high=0.03, p_value=0.01), Gap(difference=0.02, p_value=0.06)
    row = accuracy_vs_p.Accuracy(
        dataset="cora", laplacian="x", method="cdf", keep_prob=0.3, kept_share=0.65, accuracy=Summary(mean=0.8),
        against=BothBudgets(same_p=sure, same_budget=unsure),
    )  # fmt: skip
    uniform = replace(row, method="dropedge", against=BothBudgets())
    figure, _ = fixed_figures.panels.__wrapped__([uniform, row], "cora")
    _, decided, _, undecided, _ = (list(line.get_ydata()) for line in figure.axes[1].get_lines())
    assert (decided, undecided) == ([2.0], [])


def test_pictures_are_png_and_the_same_every_time(made):
    item = made("accuracy-vs-p").item
    assert set(item.figures) == {"karate-combinatorial", "karate-normalized"}
    assert fixed_figures.draw_accuracy(item.rows) == item.figures
    for content in item.figures.values():
        pixels = matplotlib.image.imread(io.BytesIO(content), format="png")
        assert len(np.unique(pixels.reshape(-1, pixels.shape[-1]), axis=0)) > 20  # drawn on


def test_every_item_has_its_recipe_in_both_presets():
    for name in ITEMS:
        for preset in ("quick", "paper"):
            recipe = load_recipe(name, preset)
            assert recipe.title
            assert recipe.claim


def test_the_spaces_of_table1_fix_the_structure_and_leave_the_rest_open():
    recipe = load_recipe("table1", "paper")
    cells = all_cells(recipe)
    assert len(cells) == 21
    for one in cells:
        entries = space_of(recipe, one).table()
        assert set(entries) == {
            *("learning_rate", "weight_decay", "dropout", "keep_prob", "gamma"),
            *("normalization", "self_weight", "batch_norm"),
        }
        assert all(len(entries[name]) == 1 for name in ("self_weight", "batch_norm"))
    assert sum(len(recipe["methods"]) for _ in cells) * recipe["trials"] == 10_500


@pytest.mark.parametrize("name", ["table1", "table2", "table3"])
def test_the_printed_numbers_are_those_of_the_paper(name):
    path = data_root().parent / "paper" / "published.toml"
    if not path.exists():
        pytest.skip(f"no published numbers at {path}")
    published = tomllib.loads(path.read_text())[name]
    published.pop("caption", None)
    assert dict(load_recipe(name, "paper").published) == published
