"""The map from end to end on two small graphs: pieces that end early, and what they add up to."""

import sqlite3
from pathlib import Path

import pandas as pd
import pytest

from experiments.map.__main__ import main
from experiments.map.recipe import read_cells
from experiments.map.summary import means, random_effects
from tadropedge.lab import Candidate, Store

ROOT = Path(__file__).resolve().parents[2]
TINY = """
seed = 0
trials = 2
replicates = [2]
candidates = ["dropedge", "cosine-proportional"]
experiment = { hidden = 8 }
training = { epochs = 10, rungs = [] }
measures = {}
graphs = { karate = "karate", clusters = "clusters" }
stages = [
    { conditions = ["base"], graphs = ["clusters"] },
    { conditions = ["3-layers"], graphs = ["karate", "clusters"] },
]
[conditions.base]
[conditions.3-layers]
experiment = { network = "resgcn", layers = 3 }
without = ["dropedge"]
"""
TIMES = ["epoch_seconds", "seconds"]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    path = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture(scope="module")
def whole(recipe, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    assert main(["run", "--out", str(folder), "--recipe", str(recipe)]) == 0
    assert main(["summary", str(folder), "--recipe", str(recipe)]) == 0
    return folder


def trainings(folder):
    with sqlite3.connect(folder / "trials.db") as database:
        return database.execute("select count(*) from trials").fetchone()[0]


def noted(recipe, folder):
    """How many trainings the pieces of each cell on clusters have noted."""
    places = [cell.place for cell in read_cells(recipe) if cell.graph == "clusters"]
    with Store(folder) as store:
        found = store.get(places)
    return [sum(piece["trainings"] for piece in found[place]["pieces"]) for place in places]


def test_pieces_that_end_after_a_batch_find_what_one_run_finds(recipe, whole, tmp_path):
    run = ["run", "--out", str(tmp_path), "--recipe", str(recipe), "--cells", "clusters/*", "--time-budget", "0s"]
    counts = []
    while main(run):
        counts.append(trainings(tmp_path))
    assert len(counts) > 3
    assert counts == sorted(counts)
    assert noted(recipe, tmp_path) == noted(recipe, whole) == [16, 12]  # nothing is trained twice
    assert main(["summary", str(tmp_path), "--recipe", str(recipe)]) == 0  # of two cells of three
    here, there = (pd.read_csv(folder / "map.csv", keep_default_na=False) for folder in (tmp_path, whole))
    there = there[there["dataset"] == "clusters"].reset_index(drop=True)
    pd.testing.assert_frame_equal(here.drop(columns=TIMES), there.drop(columns=TIMES))
    assert "karate/3-layers" in (tmp_path / "README.md").read_text()


def test_a_whole_cell_is_not_run_again(recipe, whole, capsys):
    before = trainings(whole)
    assert main(["run", "--out", str(whole), "--recipe", str(recipe)]) == 0
    assert capsys.readouterr().out == "3 of 3 cells are whole\n"
    assert trainings(whole) == before == (4 + 3 + 3) * 2 * 2  # on karate with a flat MLP; clusters/base has one


def test_rows_of_a_map(whole):
    table = pd.read_csv(whole / "map.csv", keep_default_na=False)
    found = {place: list(mine["candidate"]) for place, mine in table.groupby(["dataset", "condition"])}
    assert found == {
        ("clusters", "base"): ["original", "dropedge", "cosine-proportional"],
        ("clusters", "3-layers"): ["original", "cosine-proportional"],
        ("karate", "3-layers"): ["original"],  # whose nodes have no features
    }
    assert set(table["replicates"]) == {2}
    assert table["commit"].ne("").all()
    assert table["protocol"].str.contains("seed 0").all()
    assert list(table["word"] == "") == list(table["candidate"] == "original")


def test_progress_counts_what_is_trained(recipe, tmp_path, capsys):
    assert main(["run", "--out", str(tmp_path), "--recipe", str(recipe), "--cells", "clusters/base"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(", about")[0] for line in lines[1:3]] == [
        "clusters/base: 1 of 2 replicates of 4 candidates, 8 of 16 trainings",
        "clusters/base: 2 of 2 replicates of 4 candidates, 16 of 16 trainings",
    ]
    assert trainings(tmp_path) == 16


def test_a_name_of_no_cell_is_refused(recipe, tmp_path, capsys):
    assert main(["run", "--out", str(tmp_path), "--recipe", str(recipe), "--cells", "cora/*"]) == 2
    assert "clusters/base" in capsys.readouterr().err


def test_the_mean_over_graphs():
    """Graphs that differ by more than their errors count alike, as in a plain t-interval; else by their precision."""
    mean, low, high = random_effects([0.01, 0.03, 0.02], [1e-4, 1e-4, 1e-4])
    assert (mean, high - mean) == (pytest.approx(0.02), pytest.approx(4.30265 * 0.01 / 3**0.5, rel=1e-4))
    assert mean - low == pytest.approx(high - mean)
    assert random_effects([0.01, 0.02], [0.01, 0.02])[0] == pytest.approx((0.01 + 0.02 / 4) / 1.25)


def test_cells_without_a_claim_are_counted_and_in_no_mean():
    rows = [("better", 0.02, True), ("better", 0.04, False), ("no claim", 0.9, None), ("undecided", 0.03, None)]
    table = pd.DataFrame(rows, columns=["word", "difference", "beats_controls"])
    table = table.assign(measure="accuracy", condition="base", candidate="cdf", error=0.01)
    table.loc[3, "measure"] = "roc-auc"
    accuracy, auc = means(table).to_dict("records")
    assert (accuracy["mean"], accuracy["better"], accuracy["proven"], accuracy["no claim"]) == (0.03, 2, 1, 1)
    assert (auc["mean"], auc["graphs"], auc["undecided"]) == (0.03, 1, 1)


def test_the_recipe_of_the_map_names_candidates_and_cells_once():
    cells = read_cells()
    assert len({cell.key for cell in cells}) == len(cells)
    names = {cell.name for cell in cells}
    assert len(names) == 12 * 6
    for name in {name for cell in cells for name in cell.candidates}:
        assert str(Candidate.parse(name)) == name
    assert {cell.graph for cell in cells if cell.training["measure"] != "accuracy"} == {"minesweeper"}


# -- what the pages say of the old map -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def old():
    table = pd.read_csv(ROOT / "results" / "regimes" / "map.csv", keep_default_na=False, na_values=[""])
    return table.fillna({"value": ""})


CONDITIONS = [
    ("base", ""), ("labels", "5"), ("labels", "full"), ("budget", "0.1"), ("depth", "8"), ("depth", "32"),
    ("noise", "1.0"), ("features", "1.0"), ("network", "gat"),
]  # fmt: skip


def test_the_table_of_the_readme(old):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = text.partition("<!-- regimes table -->")[2].partition("<!-- end")[0].strip().splitlines()[2:]
    told = [[int(cell) for cell in line.strip("|").split("|")[1:]] for line in lines]
    ways = old[~old["method"].isin(["original", "mlp"])].dropna(subset="none_outcome")
    found = []
    for kind, value in CONDITIONS:
        mine = ways[(ways["kind"] == kind) & (ways["value"] == value)].groupby("dataset")["none_outcome"]
        better, worse = (
            mine.agg(lambda some: (some == "better").any()).sum(),
            mine.agg(lambda some: (some == "worse").all()).sum(),
        )
        found.append([len(mine), better, worse, len(mine) - better - worse])
    assert told == found
    assert sum(line[0] for line in told) == 85


def test_the_gains_among_random_edges(old):
    best = old[(old["method"] == "jaccard-proportional:expected") & (old["none_outcome"] == "better")]
    assert set(best["kind"]) == {"noise"}
    gains = dict(zip(best["dataset"], (100 * best["none_difference"]).round(1), strict=True))
    assert gains == {"cora": 3.2, "cora_ml": 3.5, "acm": 7.3, "minesweeper": 8.2}
    mlp = old[(old["method"] == "mlp") & (old["kind"] == "noise")].set_index("dataset")["none_outcome"]
    assert {name: mlp[name] for name in gains} == dict.fromkeys(gains, "worse") | {"acm": "undecided"}
    [other] = old[(old["none_outcome"] == "better") & (old["kind"] != "noise")].to_dict("records")
    place = (old["dataset"] == other["dataset"]) & (old["kind"] == other["kind"])
    mean = old[place].set_index("method")["mean"]
    assert (round(mean["original"], 3), round(mean["mlp"], 3)) == (0.243, 0.306)


def test_the_numbers_of_choosing_p(old):
    chosen = old[old["method"] == "dropedge"].groupby("kind")["kept_share"].median()
    assert (chosen["base"], chosen["noise"]) == (0.85, 0.4)
    by_score = old["method"].str.contains("cdf|-proportional|dropsens") & ~old["method"].str.contains("expected")
    gaps = old[by_score & (old["kind"] != "budget") & (old["kept_share"] >= 0.75)]["budget_difference"].abs()
    assert (len(gaps), round(100 * gaps.median(), 1), round(100 * gaps.quantile(0.75), 1)) == (252, 0.2, 0.5)
    at_a_tenth = old[old["kind"] == "budget"]
    assert at_a_tenth["dataset"].nunique() == 11
    assert "better" not in set(at_a_tenth["budget_outcome"])
