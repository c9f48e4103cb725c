"""What is wrong is said in one line that names the option, with exit code 2, before any work."""

import pytest
from command import Command

DIGITS = "1" * 5000

MISTAKES = [
    ("weights", "GRAPH"),
    ("weights karat", "did you mean 'karate'"),
    ("weights missing.csv", "missing.csv"),
    ("weights karate more", "more"),
    ("weights karate --outt x", "--out"),
    ("weights karate --out", "--out"),
    ("weights karate --q x", "--q"),
    ("weights karate --q 0", "--q"),
    ("weights karate --q 99 --no-figures", "q=99"),
    ("weights karate --q 2 --q 3", "--q"),
    (f"weights karate --q {DIGITS}", "--q"),
    (f"weights karate --seed {DIGITS}", "--seed"),
    ("weights karate --seed -1", "--seed"),
    ("weights karate --score agregate", "--score"),
    ("weights karate --score degree --q 3", "--q"),
    ("weights karate --score column", "--column"),
    ("weights karate --laplacian signed", "--laplacian"),
    ("weights karate --keep-ratio 2", "--keep-ratio"),
    ("weights karate --keep-ratio nan", "--keep-ratio"),
    ("weights karate --keep-prob 0.5 --keep-ratio 0.5", "--keep-prob"),
    ("weights karate --gamma 0", "--gamma"),
    ("weights karate --columns source=a", "columns"),
    ("weights edges.csv --columns from=a", "--columns"),
    ("weights edges.csv --columns source=a,target=c", "--columns"),
    ("weights unclear.csv", "--header"),
    ("weights lengths.csv", "weighted"),
    ("compare edges.csv", "nodes"),
    ("compare karate --split own", "--split"),
    ("weights karate --device gpu", "--device"),
    ("weights karate --plugin nowhere", "--plugin"),
    ("weights karate --plugin nowhere.py", "--plugin"),
    ("weights karate --config nowhere.toml", "nowhere.toml"),
    ("sparsify karate --keep-ratio 0.1", "--keep-ratio"),
    ("sparsify karate --score unifrom", "--score"),
    ("compare karate --replicates 1", "--replicates"),
    ("compare karate --replicates 2.5", "--replicates"),
    ("compare karate --trials 0", "--trials"),
    ("compare karate --methods cfd", "--methods"),
    ("compare karate --methods cdf@2", "--methods"),
    ("compare karate --network gcm", "--network"),
    ("compare karate --network gcn --model m.py:M", "--model"),
    ("compare karate --model nowhere.py:M", "--model"),
    ("compare karate --time-budget soon", "--time-budget"),
    ("compare karate --half-width 0", "--half-width"),
    ("compare karate --margin -1", "--margin"),
    ("compare karate --controls some", "--controls"),
    ("compare karate --engine spark", "--engine"),
    ("compare karate --split own", "--split"),
    ("compare karate --per-class 50", "--per-class"),
    ("compare karate --per-class 2 --split full", "--per-class"),
    ("compare karate --add-edges -1", "--add-edges"),
    ("compare karate --hide-features 2", "--hide-features"),
    ("compare karate --measure f2", "--measure"),
    ("train karate --method cdf", "--method"),
    ("train karate --method auto", "--method"),
    ("train karate --settings depth=3", "--settings"),
    ("train karate --fanout 3", "--fanout"),
    ("train karate --batch-size 4 --fanout many", "--fanout"),
    ("predict nowhere karate", "nowhere"),
    ("report nowhere", "nowhere"),
    ("wieghts karate", "weights"),
]


@pytest.mark.parametrize(("words", "named"), MISTAKES, ids=[words[:50] for words, _ in MISTAKES])
def test_a_mistake_is_one_line_that_names_it(words, named, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edges.csv").write_text("a,b\n1,2\n2,3\n")
    (tmp_path / "unclear.csv").write_text("ann,bob\nbea,cid\ncid,eve\n")
    (tmp_path / "lengths.csv").write_text("from,to,km\n1,2,0.5\n2,3,0.25\n")
    done = Command(capsys, *words.split(" "))
    assert done.code == 2
    assert done.error.startswith("error: ")
    assert named in done.error
    assert len(done.error) < 900
    assert done.err.count("error: ") == 1
    assert done.out == ""
    assert sorted(path.name for path in tmp_path.glob("**/[!.]*") if path.is_file()) == [
        "edges.csv", "lengths.csv", "unclear.csv"
    ]  # fmt: skip


def test_an_argument_that_is_empty_or_no_text_is_refused(capsys):
    assert Command(capsys, "weights", "").code == 2
    assert Command(capsys, "weights", "\udcff").code == 2


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("datasets = 5\n", "datasets"),
        ("[datasets]\nx = 5\n", "x"),
        (f"[datasets]\nseed = {'1' * 5000}\n", "settings.toml"),
        ("[datasets]\nseed = -1\n", "seed"),
        ("[datasets\n", "settings.toml"),
    ],
)
def test_a_mistake_in_a_file_of_options_is_one_line(text, named, capsys, tmp_path):
    (tmp_path / "settings.toml").write_text(text)
    done = Command(capsys, "datasets", "--config", tmp_path / "settings.toml")
    assert done.code == 2
    assert named in done.error
    assert done.err.count("\n") == 1


def test_a_file_of_somebody_else_is_never_written_over(capsys, tmp_path):
    for words, file in [
        (("weights", "karate"), "weights.csv"),
        (("sparsify", "karate", "--keep-ratio", "0.8"), "graph.npz"),
        (("train", "karate", "--epochs", "2"), "model.safetensors"),
        (("compare", "karate", "--methods", "dropedge"), "report.html"),
        (("compare", "karate", "--methods", "dropedge"), "trials.db"),
    ]:
        folder = tmp_path / file
        folder.mkdir()
        (folder / file).write_text("thesis")
        done = Command(capsys, *words, "--out", folder)
        assert (done.code, (folder / file).read_text()) == (2, "thesis")
        assert file in done.error
        assert [path.name for path in folder.iterdir()] == [file]
    (tmp_path / "thesis.csv").write_text("thesis")
    folder = tmp_path / "model"
    assert Command(capsys, "train", "karate", "--epochs", "2", "--out", folder).code == 0
    assert Command(capsys, "predict", folder, "karate", "--out", tmp_path / "thesis.csv").code == 2
    assert (tmp_path / "thesis.csv").read_text() == "thesis"
