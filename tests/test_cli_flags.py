"""Whatever is wrong on the command line, the error names the flag that was typed."""

import inspect

import pytest
from typer.testing import CliRunner

from tadropedge.cli import app
from tadropedge.cli.compare import compare_command
from tadropedge.cli.flags import flags_of, in_flags
from tadropedge.cli.predict import predict_command
from tadropedge.cli.sparsify import sparsify_command
from tadropedge.cli.train import train_command
from tadropedge.cli.weights import weights_command
from tadropedge.errors import TadropedgeError

COMMANDS = {
    "weights": weights_command,
    "sparsify": sparsify_command,
    "train": train_command,
    "compare": compare_command,
    "predict": predict_command,
}
SCORED = {
    "nowhere.csv": "GRAPH: no such file: 'nowhere.csv'",
    "karat": "GRAPH: unknown dataset or file 'karat'",
    "bad.csv": "GRAPH bad.csv:2: expected 2 columns, got 3",
    "wrong.csv": "GRAPH wrong.csv: looks like a Matrix Market file",
    "good.csv --score nope": "--score: unknown score 'nope'",
    "good.csv --q 0": "--q must be a whole number of at least 1, got 0",
    "good.csv --score aggregate --q 9": "--q 9 is larger than every component",
    "good.csv --score aggregate --desired-clusters 0": "--desired-clusters must be a whole number of at least 1, got 0",
    "good.csv --score aggregate --q 2 --laplacian x": "--laplacian: unknown laplacian 'x'",
    "good.csv --score aggregate --q 2 --solver x": "--solver: unknown solver 'x'",
    "good.csv --score aggregate --q 2 --ranks 0": "--ranks must be a whole number of at least 1, got 0",
    "good.csv --score aggregate --q 2 --ranks 2": "--ranks 2 is for --solver slepc, got no --solver",
    "good.csv --score aggregate --q 2 --tolerance 0": "--tolerance must be a positive number, got 0.0",
    "good.csv --score effective --relative-error 7": "--relative-error must be between 0 and 1, got 7.0",
    "good.csv --score degree --solver dense": "the score 'degree' has no setting --solver",
    "good.csv --score-column trust": "GRAPH good.csv has no column 'trust'",
    "odd.csv": "GRAPH odd.csv:1: '1_0' is no integer, unlike all other ids: say whether this line names the columns "
    "(--header) or is an edge (--no-header)",
    "good.csv --score column": "the score 'column' needs --score-column NAME",
    "good.csv --score degree --keep-ratio 2": "--keep-ratio must",
    "good.csv --score degree --device tpu": "--device 'tpu' is not available",
    "ogbn-x --score degree --data-root nowhere": "GRAPH ogbn-x is not below 'nowhere': expected ogbn_x",
    "good.csv --score degree --out bad.csv": "--out: cannot write into the folder 'bad.csv'",
    "good.csv --plugin nope": "--plugin: cannot import the plugin 'nope'",
}
LABORATORY = {
    "nowhere.npz": "DATA: no such file: 'nowhere.npz'",
    "good.csv": "DATA good.csv: an edge list needs a table of features and labels: --nodes nodes.csv",
    "good.csv --nodes nodes.csv": "--nodes nodes.csv:2: expected 3 columns, got 2",
    "good.csv --nodes nowhere.csv": "--nodes: no such file: 'nowhere.csv'",
    "good.csv --nodes few.csv": "DATA good.csv names the node 3, which few.csv does not list",
    "karate --nodes few.csv": "--nodes does not belong to karate, which takes --seed",
    "karate --noise 1": "--noise does not belong to karate",
    "karate --split full": "--split does not belong to karate",
    "karate --per-class 0": "--per-class must be a whole number of at least 1, got 0",
    "karate --per-class most": "--per-class must be a whole number of at least 1, or 'full', got 'most'",
    "karate --per-class 5": "class 2 has 4 labelled nodes, which is less than --per-class 5",
    "karate --add-edges -1": "--add-edges must lie in [0, 1e+06], got -1",
    "karate --add-edges 99": "--add-edges 99: 34 nodes have no room for 7722 more edges",
    "karate --hide-features 2": "--hide-features must lie in [0, 1], got 2.0",
    "karate --split-sizes 1,2": "--split-sizes must be three whole numbers",
    "karate --split-sizes 99,1,1": "--split-sizes: a split of 99 + 1 + 1 nodes needs",
    "karate --score-column x": "--score-column names a column of your own file, and karate is",
    "karate --backbone x": "--backbone: unknown backbone 'x'",
    "karate --model x": "--model must be MODULE:FACTORY",
    "karate --model x:y": "--model: cannot import the model 'x:y'",
    "karate --layers 0": "--layers must be a whole number",
    "karate --hidden 0": "--hidden must be a whole number",
    "karate --epochs 0": "--epochs must be a whole number",
    "karate --evaluate-every 0": "--evaluate-every must be a whole number",
    "karate --q 0": "--q must be a whole number",
    "karate --laplacian x": "--laplacian: unknown laplacian 'x'",
    "karate --measure x": "--measure: unknown measure 'x'",
    "karate --selection x": "--selection: unknown selection 'x'",
    "karate --precision x": "--precision: unknown precision 'x'",
    "karate --device tpu": "--device 'tpu' is not available",
    "karate --seed -1": "--seed must be a whole number of at least 0, got -1",
    "ogbn-x --data-root nowhere": "DATA ogbn-x is not below 'nowhere': expected ogbn_x with raw/edge.csv.gz",
    "karate --out bad.csv": "--out: cannot write into the folder 'bad.csv'",
    "karate --plugin nope": "--plugin: cannot import the plugin 'nope'",
}
OWN = {
    "weights": {
        "good.csv --keep-prob 2": "--keep-prob must lie in [0, 1], got 2.0",
        "good.csv --score degree --gamma 0": "--gamma must be a positive number, got 0.0",
        "good.csv --score degree --component x": "--component 'x' is not known: give largest, all, or a number from 1",
        "good.csv --score degree --component 2": "--component '2' is not known: give largest, all, or a number from 1",
        "good.csv --score degree --component-of 9": "--component-of: there is no node '9' in this graph",
        "good.csv --component all --component-of 1": "give --component all or --component-of 1, not both",
    },
    "sparsify": {"good.csv --seed -1": "--seed must be a whole number of at least 0, got -1"},
    "train": {
        "karate --method x": "--method: unknown method 'x'",
        "karate --method auto": "--method: 'auto' is a search over methods",
        "karate --keep-prob 2": "--keep-prob must lie in [0, 1], got 2.0",
        "karate --keep-ratio 2": "--keep-ratio must lie in [0, 1], got 2.0",
        "karate --keep-last 1": "--keep-last belongs to the option nested",
        "karate --partition mitis": "--partition: unknown partition 'mitis'",
        "karate --checkpoint-every 0": "--checkpoint-every must be a whole number of at least 1, got 0",
        "karate --partition metis": "--partition belongs to a training by several processes: torchrun",
        "karate --checkpoint-every 5": "--checkpoint-every belongs to a training by several processes: torchrun",
        "karate --sensitivity 1": "--sensitivity belongs to the method dropsens",
        "karate --method cutoff --gamma -1": "--gamma must be at least 0, got -1.0",
        "karate --learning-rate 0": "--learning-rate must be a positive number, got 0.0",
        "karate --weight-decay -1": "--weight-decay must be at least 0, got -1.0",
        "karate --dropout 2": "--dropout must lie in [0, 1], got 2.0",
        "karate --normalization x": "--normalization: unknown normalization 'x'",
        "karate --batch-size 0": "--batch-size must be a whole number of at least 1, got 0",
        "karate --mini-batch 0": "--mini-batch must be a whole number of at least 1, got 0",
        "karate --mini-batch 4 --fanout 0": "--fanout must be whole numbers of at least 1, or -1 for all",
        "karate --mini-batch 4 --evaluate-nodes 0": "--evaluate-nodes must be a whole number of at least 1, got 0",
        "karate --self-weight --backbone graphsage": "graphsage has no setting --self-weight",
    },
    "compare": {
        "karate --methods cdf,x": "--methods: unknown method 'x'",
        "karate --trials 0": "--trials must be a whole number of at least 1, got 0",
        "karate --seeds 1": "--seeds must be a whole number of at least 2, got 1",
        "karate --choose-splits 0": "--choose-splits must be a whole number of at least 1, got 0",
        "karate --keep-ratio 2": "--keep-ratio must lie in [0, 1], got 2.0",
        "karate --keep-ratio 0": "--keep-ratio must be above 0, got 0.0",
        "karate --engine cloud": "unknown engine 'cloud'",
        "karate --address auto": "--address belongs to --engine ray",
        "karate --gpus-per-batch 1": "--gpus-per-batch belongs to --engine ray",
        "karate --batch 0": "--batch must be",
        "karate --deadline 3": "--deadline belongs to --engine ray",
        "karate --storage bad.csv": "--storage: cannot open the study storage",
    },
    "predict": {
        "nowhere karate": "MODEL: no model in 'nowhere': expected a folder with model.json",
        "SAVED karat": "DATA: unknown dataset 'karat'",
        "SAVED nowhere.npz": "DATA: no such file: 'nowhere.npz'",
        "SAVED good.csv": "DATA good.csv: an edge list needs a table of features and labels: --nodes nodes.csv",
        "SAVED good.csv --nodes nodes.csv": "--nodes nodes.csv:2: expected 3 columns, got 2",
        "SAVED karate --nodes few.csv": "--nodes does not belong to karate, which takes --seed",
        "SAVED karate --noise 1": "--noise does not belong to karate",
        "SAVED karate --score-column trust": "--score-column names a column of your own file, and karate is a dataset",
        "SAVED source-localization --noise x": "--noise: unknown noise 'x'",
        "SAVED karate --add-edges -1": "--add-edges must lie in [0, 1e+06], got -1",
        "SAVED karate --hide-features 2": "--hide-features must lie in [0, 1], got 2.0",
        "SAVED karate --seed -1": "--seed must be a whole number of at least 0, got -1",
        "SAVED karate --device tpu": "--device 'tpu' is not available",
        "SAVED karate --model x": "--model must be MODULE:FACTORY",
        "SAVED karate --model x:y": "--model: cannot import the model 'x:y'",
        "SAVED ogbn-x --data-root nowhere": "DATA ogbn-x is not below 'nowhere': expected ogbn_x with raw/edge.csv.gz",
        "SAVED karate --out .": "--out must be a file for the predictions, got the folder or device '.'",
        "SAVED karate --out bad.csv/x": "--out: cannot write into the folder 'bad.csv'",
        "SAVED karate --plugin nope": "--plugin: cannot import the plugin 'nope'",
    },
}
SHARED = {"weights": SCORED, "sparsify": SCORED, "train": LABORATORY, "compare": LABORATORY, "predict": {}}
CASES = [(name, *case) for name in COMMANDS for case in (SHARED[name] | OWN[name]).items()]
# Nothing can be wrong with these: they are there or not, or take whatever comes.
FREE = {"--wait", "--json", "--explain", "--figures", "--csv", "--unweighted", "--header", "--certificate", "--kind"}
FREE |= {"--per-layer", "--self-weight", "--batch-norm", "--gradient-norms"}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model of the karate club, which ``SAVED`` stands for."""
    folder = tmp_path_factory.mktemp("saved")
    words = ["train", "karate", "--method", "original", "--hidden", "4", "--epochs", "1", "--out", str(folder)]
    assert CliRunner().invoke(app, words).exit_code == 0
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {
        "good.csv": "1,2\n2,3\n3,1\n",
        "bad.csv": "1,2\n1,2,3\n",
        "odd.csv": "1_0,2\n2,3\n3,4\n",
        "wrong.csv": "%%MatrixMarket matrix coordinate pattern general\n1 1 0\n",
        "nodes.csv": "1,0.5,a\n2,0.5\n",
        "few.csv": "1,0.5,a\n2,0.5,b\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    return tmp_path


@pytest.mark.parametrize(("command", "words", "message"), CASES)
def test_the_flag_is_named(command, words, message, folder, request):
    before = {path.name for path in folder.iterdir()}
    typed = [str(request.getfixturevalue("saved")) if word == "SAVED" else word for word in words.split()]
    ended = CliRunner().invoke(app, [command, *typed])
    assert isinstance(ended.exception, TadropedgeError), ended.output
    assert message in str(ended.exception)
    left = {path.name for path in folder.rglob("*") if path.is_file()} - before
    assert {name for name in left if not name.startswith((".", "study.db"))} == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_is_tried(command):
    tried = {word for name, words, _ in CASES if name == command for word in words.split() if word.startswith("--")}
    flags = {flag for flag in flags_of(COMMANDS[command]).values() if flag.startswith("--")}
    assert flags - tried - FREE - ({"--seed"} if command == "weights" else set()) == set()
    assert tried <= flags


def test_flags_are_those_that_the_help_shows():
    shown = CliRunner().invoke(app, ["weights", "--help"], terminal_width=200).output
    assert {flag for flag in flags_of(weights_command).values() if flag not in shown} == {"--kind"}
    assert list(flags_of(train_command)) == list(inspect.signature(train_command).parameters)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("out of memory", "out of memory"),
        ("'my/keep_ratio/q.csv' is a folder", "'my/keep_ratio/q.csv' is a folder"),
        ("num_nodes=3 needs integer ids", "num_nodes=3 needs integer ids"),
        ("kept with keep_ratio=0.1 and seed=3", "kept with --keep-ratio 0.1 and --seed 3"),
        ("Cora is not in 'here/planetoid/Cora'", "--out: Cora is not in 'here/planetoid/Cora'"),
        ("a graph of 3 nodes", "a graph of 3 nodes"),
    ],
)
def test_only_arguments_are_translated(text, told):
    flags = {name: f"--{name.replace('_', '-')}" for name in ("keep_ratio", "seed", "out", "q", "header")}
    assert in_flags(text, {"graph": "GRAPH", **flags}, {"graph": "g.csv", "out": "here"}) == told
