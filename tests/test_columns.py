"""A column of the user's own file as a score: read, checked, merged, and a part of comparisons where it is used."""

import json
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from test_old_results import NODES, ONE, write
from torch_geometric.data import Data
from typer.testing import CliRunner

from tadropedge import Graph, TadropedgeError, edge_scores
from tadropedge.cli import app
from tadropedge.data import load_dataset, load_file
from tadropedge.files import read_edge_list
from tadropedge.scores.column import per_edge, read_column

TABLE = "source,target,trust,weight\na,b,3,1\nb,c,0,2\nc,a,5,1\nb,a,1,1\n"


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=True)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text(TABLE)
    return path


def test_a_column_by_its_name_and_the_weight_beside_it(table):
    graph, column = read_column(table, "trust")
    assert graph.node_ids == ("a", "b", "c")
    assert column.tolist() == [2.0, 5.0, 0.0]  # (a, b) is listed twice: the mean
    assert graph.weight.tolist() == [1.0, 1.0, 2.0]
    same, weight = read_column(table, "weight")
    assert torch.equal(weight, graph.weight)
    assert same.fingerprint == graph.fingerprint  # asking for a score does not change the graph
    assert edge_scores(graph, "column", column=column).tolist() == column.tolist()


@pytest.mark.parametrize(
    ("text", "column", "score", "weight"),
    [
        ("0 1 4\n1 2 0\n", "3", [4, 0], None),  # the third column is the score, not a weight
        ("0 1 4 7\n1 2 2 0\n", "4", [7, 0], [4, 2]),
        ("source,target,trust\n0,1,4\n1,2,0\n", "trust", [4, 0], None),
        ("u,v,a,b\n0,1,4,8\n1,2,5,9\n", "b", [8, 9], None),  # no column is called weight
        ("p,q,trust\nx,y,4\ny,z,5\n", "trust", [4, 5], None),  # a line that names the column is a header
        (TABLE, None, None, [1, 2, 1, 1]),  # the same weights where no score is asked for
        ("p,q,when,Weight\nx,y,noon,4\ny,z,dusk,5\n", None, None, [4, 5]),
    ],
)
def test_which_column_is_what(tmp_path, text, column, score, weight):
    (tmp_path / "edges.csv").write_text(text)
    found = read_edge_list(tmp_path / "edges.csv", column=column)
    assert (None if found.column is None else found.column.tolist()) == score
    assert (None if found.weight is None else found.weight.tolist()) == weight


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        (TABLE, "trsut", "edges.csv has no column 'trsut'; its columns are trust, weight"),
        (TABLE, "source", "edges.csv has no column 'source'; its columns are trust, weight"),
        ("0 1 4\n1 2 5\n", "trust", "without a header, columns have the numbers 3 to 3"),
        ("0 1 4\n1 2 5\n", "2", "without a header, columns have the numbers 3 to 3"),
        ("0 1\n1 2\n", "3", "it has the ends of each edge and no further column"),
        ("u,v,trust\n0,1,x\n", "trust", "edges.csv:2: trust 'x' is not a number"),
        ("u,v,trust\n0,1,1\n1,2,-1\n", "trust", "edges.csv:3: trust '-1' must be finite and at least 0"),
        ("u,v,trust\n0,1,nan\n", "trust", "edges.csv:2: trust 'nan' must be finite"),
    ],
)
def test_bad_columns_get_one_line(tmp_path, text, column, message):
    (tmp_path / "edges.csv").write_text(text)
    with pytest.raises(TadropedgeError) as caught:
        read_column(tmp_path / "edges.csv", column)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def arcs():
    rows = np.arange(NODES)
    return np.concatenate([[rows, (rows + 1) % NODES], [rows[:4], rows[:4] + 6]], axis=1)


def with_column(folder, **columns):
    write(folder, ONE)
    with np.load(folder / "mine.npz") as known:
        np.savez(folder / "mine.npz", **known, **columns)
    return folder / "mine.npz"


def test_arrays_and_saved_data(tmp_path):
    trust = np.arange(16.0)
    path = with_column(tmp_path, trust=trust, wide=np.ones((16, 2)), word=np.array(["a"] * 16))
    expected = per_edge(Graph.from_edge_index(arcs()), trust)
    assert torch.equal(load_file(path, score_column="trust").score_column, expected)
    assert torch.equal(read_column(path, "trust")[1], expected)
    data = Data(x=torch.eye(NODES), edge_index=torch.tensor(arcs()), y=torch.arange(NODES) % 2)
    data.trust = torch.tensor(trust)[:, None]
    torch.save(data, tmp_path / "mine.pt")
    made = load_file(tmp_path / "mine.pt", score_column="trust", per_class=1)
    assert torch.equal(made.score_column, expected)
    assert made.to("cpu").score_column.dtype == torch.float64
    for file, column, message in (
        (path, "trsut", "mine.npz has no column 'trsut'; its columns are trust, wide, word$"),
        (path, "wide", r"mine.npz: wide must be one number for each of 16 listed edges, got shape \[16, 2\]"),
        (path, "word", "mine.npz has no column 'word'"),
        (tmp_path / "mine.pt", "trsut", "mine.pt has no column 'trsut'; its columns are trust"),
        (tmp_path / "mine.pt", "x", "x must be one number for each of 16 listed edges"),
    ):
        with pytest.raises(TadropedgeError, match=message):
            load_file(file, score_column=column, per_class=1)
    with pytest.raises(TadropedgeError, match="score_column names a column of your own file, and karate is"):
        load_dataset("karate", score_column="trust")


COMPARE = ("--trials", 2, "--seeds", 2, "--choose-splits", 1, "--epochs", 2, "--hidden", 4, "--device", "cpu", "--json")


def test_a_comparison_notices_another_column_only_where_it_is_used(tmp_path):
    path = with_column(tmp_path, trust=np.arange(16.0))
    plain = run("compare", path, "--methods", "cdf", *COMPARE, "--out", tmp_path / "out")
    assert plain.exit_code == 0, plain.exception
    column = ("--score-column", "trust", "--out", tmp_path / "out")
    first = run("compare", path, "--methods", "cdf,column-proportional", *COMPARE, *column)
    assert first.exit_code == 0, first.exception
    row = json.loads(first.stdout)["compare"][-1]
    assert row["method"] == "column-proportional"
    assert row["settings"]["kept_share"] == pytest.approx(row["settings"]["keep_ratio"])
    path = with_column(tmp_path, trust=np.arange(16.0) + 1)
    again = run("compare", path, "--methods", "cdf", *COMPARE, *column)
    assert again.exit_code == 0, again.exception
    other = run("compare", path, "--methods", "column-proportional", *COMPARE, *column)
    assert "was made with other column; take the old data" in str(other.exception)


def test_the_files_of_a_column(table, tmp_path):
    result = run("weights", table, "--score-column", "trust", "--keep-ratio", 0.4, "--out", tmp_path / "out", "--json")
    assert result.exit_code == 0, result.exception
    found = json.loads(result.stdout)
    assert (found["weights"]["kind"], found["weights"]["sum"], found["keep_ratio"]) == ("column", 7.0, 0.4)
    assert found["strategies"]["proportional"]["kept"] == pytest.approx(0.4)


def test_a_column_sparsifies(table, tmp_path):
    graph, column = read_column(table, "trust")
    data = Data(edge_index=graph.pairs, num_nodes=5, trust=column + 1)  # without features, which are not needed
    torch.save(data, tmp_path / "bare.pt")
    table.write_text(TABLE.replace("b,c,0", "b,c,6"))  # a score of 0 could not be made up for
    for file, trust, nodes in ((table, [2.0, 5.0, 6.0], 3), (tmp_path / "bare.pt", [3.0, 6.0, 1.0], 5)):
        result = run(
            "sparsify", file, "--score-column", "trust", "--keep-ratio", 0.4, "--out", tmp_path / "out", "--json"
        )
        assert result.exit_code == 0, result.exception
        found = json.loads(result.stdout)
        assert found["settings"] == {"score": "column", "keep_ratio": 0.4, "seed": 0, "score_column": "trust"}
        assert found["graph"]["nodes"] == nodes
        weight = graph.weight if file is table else torch.ones(3)
        expected = weight * torch.tensor(trust)
        prob = {m: 1.2 * value / float(expected.sum()) for m, value in enumerate(expected.tolist())}
        written = np.load(tmp_path / "out" / "graph.npz")
        pairs = {tuple(pair): m for m, pair in enumerate(graph.pairs.T.tolist())}
        for (low, high), given in zip(written["edge_index"].T.tolist(), written["edge_weight"], strict=True):
            m = pairs[min(low, high), max(low, high)]
            assert given == pytest.approx(float(weight[m]) / prob[m])


def test_weights_of_a_saved_data(tmp_path):
    data = Data(x=torch.eye(NODES) + 1, edge_index=torch.tensor(arcs()), y=torch.arange(NODES) % 2)
    data.train_mask = torch.ones(NODES, dtype=torch.bool)  # a split that is not whole is of no importance here
    torch.save(data, tmp_path / "mine.pt")
    cases = {
        "cosine": (16 * (NODES + 2) / (NODES + 3), pytest.warns(UserWarning, match="for every edge")),
        "degree": (NODES, nullcontext()),
    }
    for score, (total, told) in cases.items():
        with told:
            words = ("--score", score, "--no-figures", "--out", tmp_path / "out", "--json")
            result = run("weights", tmp_path / "mine.pt", *words)
        assert result.exit_code == 0, result.exception
        assert json.loads(result.stdout)["weights"]["sum"] == pytest.approx(total)
    result = run("weights", tmp_path / "mine.pt", "--no-figures", "--out", tmp_path / "out", "--json")
    assert json.loads(result.stdout)["weights"]["q"] == 2  # the number of classes


def test_labels_colour_the_page_of_weights_and_decide_nothing(tmp_path):
    """The numbers are those of a run without pictures, and labels that cannot be read are a warning."""
    own = {"edge_index": np.array(arcs()), "x": np.eye(NODES + 2, dtype=np.float32), "y": np.arange(NODES + 2) % 2}
    told = pytest.warns(UserWarning, match=r"nodes are not coloured by class: own\.npz: y must hold whole numbers")
    found = []
    runs = ((0, "--figures", nullcontext()), (0.5, "--figures", told), (0.5, "--no-figures", nullcontext()))
    for labels, figures, said in runs:
        np.savez(tmp_path / "own.npz", **own | {"y": own["y"] + labels})
        with said:
            result = run("weights", tmp_path / "own.npz", "--score", "degree", figures, "--out", tmp_path, "--json")
        assert result.exit_code == 0, result.exception
        found.append({part: json.loads(result.stdout)[part] for part in ("graph", "part", "weights", "most_critical")})
    assert found[0] == found[1] == found[2]
    assert found[0]["graph"]["nodes"] == NODES


def test_a_split_that_is_not_whole_is_in_nobodys_way_if_another_is_drawn(tmp_path):
    data = Data(x=torch.eye(NODES), edge_index=torch.tensor(arcs()), y=torch.arange(NODES) % 2)
    data.train_mask = torch.arange(NODES) < 4
    torch.save(data, tmp_path / "mine.pt")
    assert load_file(tmp_path / "mine.pt", per_class=2, split="random").split.train.numel() == 4
    with pytest.raises(TadropedgeError, match=r"no val_mask and no test_mask .split='random' draws one"):
        load_file(tmp_path / "mine.pt")


BAD = {
    "sparsify": (("sparsify", "karate", "--score", "column"), "the score 'column' needs --score-column NAME"),
    "sparsify a name": (("sparsify", "karate", "--score-column", "w"), "--score-column names a column of your own"),
    "no column": (("compare", "karate", "--methods", "column-cdf"), "the score 'column' needs --score-column NAME"),
    "no file": (
        ("train", "karate", "--score-column", "w"),
        "--score-column names a column of your own file, and karate",
    ),
    "weights": (("weights", "karate", "--score", "column"), "the score 'column' needs --score-column NAME"),
    "auto": (("train", "karate", "--method", "auto"), "'auto' is a search over methods, which tadropedge compare runs"),
    "option": (("compare", "karate", "--methods", "degree-cdf:foo"), "unknown option 'foo'"),
    "both": (("train", "karate", "--keep-prob", 0.5, "--keep-ratio", 0.5), "--keep-prob and --keep-ratio exclude each"),
    "last": (
        ("train", "karate", "--keep-last", 0.5),
        "--keep-last belongs to the option nested, such as dropedge:nested",
    ),
    "sensitivity": (
        ("train", "karate", "--sensitivity", 0.5),
        "--sensitivity belongs to the method dropsens, got 'cdf'",
    ),
    "ratio": (("weights", "karate", "--keep-ratio", 2), "--keep-ratio must lie in [0, 1], got 2"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_options_get_one_line(name, tmp_path):
    arguments, message = BAD[name]
    result = run(*arguments, "--out", tmp_path / "out")
    assert isinstance(result.exception, TadropedgeError)
    assert message in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_a_score_that_needs_features_is_refused_where_there_are_none(table, tmp_path):
    result = run("weights", table, "--unweighted", "--score", "cosine", "--out", tmp_path / "out")
    assert "the score 'cosine' needs features, which 'edges' does not have" in str(result.exception)


def test_one_model_of_every_kind(tmp_path):
    quick = ("--epochs", 2, "--hidden", 4, "--device", "cpu", "--json")
    for more in (
        ("--method", "degree-proportional:connected", "--keep-ratio", 0.5),
        ("--method", "dropsens:nested", "--sensitivity", 0.5, "--keep-last", 0.9),
        ("--method", "jaccard-cdf:unbiased:nested", "--keep-prob", 0.3),
    ):
        result = run("train", "karate", *quick, *more)
        assert result.exit_code == 0, result.exception
        assert json.loads(result.stdout)["method"] == more[1]


def test_the_list_of_methods():
    result = run("methods", "--json")
    assert result.exit_code == 0, result.exception
    listed = json.loads(result.stdout)
    assert list(listed) == ["methods", "scores", "rules", "options", "networks"]
    assert all(words for kind in listed.values() for words in kind.values())
    assert "auto" in run("methods").stdout
