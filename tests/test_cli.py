import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from contextlib import suppress
from pathlib import Path

import optuna
import pytest
import typer
from torture import process
from typer.testing import CliRunner

import tadropedge
from tadropedge.cli import app, progress
from tadropedge.cli.compare import DEFAULT
from tadropedge.cli.examples import EXAMPLES
from tadropedge.cli.options import LaboratoryOptions, load_plugins
from tadropedge.cli.progress import live_progress, plain_log
from tadropedge.cli.watch import Watch
from tadropedge.comparison.comparison import DEFAULT_METHODS
from tadropedge.data import load_dataset
from tadropedge.errors import TadropedgeError
from tadropedge.training.model_file import load_model
from tadropedge.watching import Moment, Phase, Safe, tell

QUICK = ["--trials", "2", "--seeds", "3", "--epochs", "6"]


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=True)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small comparison of all default methods, run once."""
    folder = tmp_path_factory.mktemp("comparison")
    result = run("compare", "clusters", *QUICK, "--out", folder)
    assert result.exit_code == 0, result.output
    return folder, result


def test_compare_ends_with_table_verdict_and_report(finished):
    folder, result = finished
    for method in DEFAULT_METHODS:
        assert method[:12] in result.output  # in eighty columns a long name goes on in the next line
    advice = json.loads((folder / "results.json").read_text())["advice"]["words"]
    assert result.stdout.startswith(f"{advice}\n")
    assert advice.startswith("Do not drop edges (")  # three seeds cannot show anything
    assert "3 seeds are too few to find any gain: take at least 10. " in advice
    assert "or worse, although nothing is, in" in " ".join(result.output.split())
    assert f"report: {folder / 'report.html'}" in result.output.replace("\n", "")
    names = {path.name for path in folder.iterdir()}
    assert {"study.db", "results.json", "results.csv", "report.html", "figures"} <= names
    assert {"accuracy.png", "convergence.png"} <= {path.name for path in (folder / "figures").iterdir()}


def test_results_have_the_promised_form(finished):
    folder, _ = finished
    document = json.loads((folder / "results.json").read_text())
    assert list(document) == ["advice", "protocol", "data", "compare", "run"]
    tests = sum(len(row.get("against", {})) for row in document["compare"])
    assert (document["protocol"]["choose_splits"], document["protocol"]["simulated"]["tests"]) == (3, tests)
    assert list(document["run"]["costs"]) == [row["method"] for row in document["compare"]] == list(DEFAULT_METHODS)
    assert (document["data"]["nodes"], document["data"]["classes"]) == (240, 4)
    assert {"seconds", "commit", "machine", "versions", "command"} <= set(document["run"])
    for row in document["compare"]:
        assert (row["dataset"], row["backbone"], row["layers"], row["laplacian"]) == (
            "clusters",
            "gcn",
            2,
            "combinatorial",
        )
        assert row["paper_protocol"]["trials"] == 2
        assert row["honest"]["seeds"] == 3
        kinds = {"original": [], "dropedge": ["none"]}.get(row["method"], ["none", "dropedge", "budget"])
        if row["method"] == "auto" and "budget" not in row["against"]:
            kinds.remove("budget")  # it chose a method that is not adaptive
        assert list(row.get("against", {})) == kinds
        for test in row.get("against", {}).values():
            assert test["difference"] == pytest.approx(test["mean"] - test["reference_mean"])
            assert test["settings"]["learning_rate"] > 0
        if "budget" in kinds:
            assert row["against"]["budget"]["settings"]["keep_ratio"] == row["settings"]["kept_share"]


def test_the_help_names_the_trainings_of_a_default_run():
    from tadropedge.comparison.comparison import Plan
    from tadropedge.search.fair import count_trainings

    plan = Plan()
    assert count_trainings(DEFAULT_METHODS, plan.trials, plan.seeds, 3) == 1320
    said = " ".join(run("compare", "--help").output.split())
    assert "1,320 trainings: 12 methods and references" in said
    assert ", ".join(DEFAULT_METHODS) in DEFAULT


def test_another_measure_is_chosen_and_judged_by(tmp_path):
    result = run("compare", "clusters", "--methods", "original", *QUICK, "--measure", "macro-f1", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    document = json.loads((tmp_path / "results.json").read_text())
    assert {row["measure"] for row in document["compare"]} == {"macro-f1"}
    assert "macro F1" in result.output
    assert "Mean test macro F1 with its 95" in (tmp_path / "report.html").read_text()


def test_the_same_command_repeats_nothing_and_ends_with_the_same_rows(finished, monkeypatch):
    folder, _ = finished
    before = json.loads((folder / "results.json").read_text())["compare"]

    def never(*_, **__):
        raise AssertionError("a finished trial was trained again")

    monkeypatch.setattr("tadropedge.training.laboratory.train", never)
    assert run("compare", "clusters", *QUICK, "--out", folder).exit_code == 0
    assert json.loads((folder / "results.json").read_text())["compare"] == before


def test_another_setting_in_the_same_folder_is_refused(finished):
    folder, _ = finished
    result = run("compare", "clusters", "--trials", 2, "--seeds", 3, "--epochs", 7, "--out", folder)
    assert isinstance(result.exception, TadropedgeError)
    assert "was made with --epochs 6 (now 7)" in str(result.exception)


def test_json_and_report(finished, tmp_path):
    folder, _ = finished
    result = run("report", folder, "--json")
    assert json.loads(result.stdout)["compare"][0]["method"] == "original"
    (folder / "report.html").unlink()
    assert run("report", folder / "results.json").exit_code == 0
    (folder / "report.html").unlink()
    assert run("report", folder).exit_code == 0
    assert (folder / "report.html").exists()


def test_train_prints_what_was_reached_and_saves_the_model(tmp_path):
    result = run("train", "karate", "--method", "effective-cdf", "--epochs", 20, "--json")
    answer = json.loads(result.stdout)
    assert answer["method"] == "effective-cdf"
    assert 0 <= answer["test_accuracy"] <= 1
    model = tmp_path / "model"
    assert run("train", "karate", "--epochs", 20, "--out", model).exit_code == 0
    assert load_model(model).predict(load_dataset("karate")).shape == (34,)
    assert "test_accuracy" in run("train", "karate", "--epochs", 5, "--batch-norm", "--self-weight").output


def test_a_graph_level_dataset_brings_its_backbone():
    result = run("train", "source-localization", "--method", "cutoff", "--epochs", 3, "--json")
    assert result.exit_code == 0, result.output


def test_the_bayes_bound_and_the_options_of_a_dataset(tmp_path):
    result = run("compare", "source-localization", "--methods", "original,cdf", "--noise", "stated", "--trials", 1,
                 "--seeds", 2, "--epochs", 1, "--out", tmp_path)  # fmt: skip
    assert result.exit_code == 0, result.output
    bound = json.loads((tmp_path / "results.json").read_text())["run"]["bayes_accuracy"]
    assert 0.2 < bound < 0.65
    assert f"Bayes-optimal accuracy on this graph: {bound:.2%}" in result.output
    louder = run("compare", "source-localization", "--methods", "original,cdf", "--noise", 0.1, "--trials", 1,
                 "--seeds", 2, "--epochs", 1, "--out", tmp_path)  # fmt: skip
    assert "was made with other features; take the old data, or another" in str(louder.exception)


def test_own_data_from_an_edge_list_and_a_csv(tmp_path):
    karate = load_dataset("karate")
    low, high = karate.graph.pairs.tolist()
    (tmp_path / "edges.csv").write_text("".join(f"n{i},n{j}\n" for i, j in zip(low, high, strict=True)))
    rows = [f"n{node},{node % 5},{node % 3},class{int(label)}\n" for node, label in enumerate(karate.labels)]
    (tmp_path / "nodes.csv").write_text("".join(rows))
    arguments = ["--nodes", tmp_path / "nodes.csv", "--per-class", 3, "--epochs", 5, "--json"]
    result = run("train", tmp_path / "edges.csv", *arguments)
    assert result.exit_code == 0, (result.output, result.exception)


def test_measures_and_sizes():
    answers = []
    for more in ([], ["--measure", "roc-auc"], ["--split-sizes", "10,8,12", "--measure", "macro-f1"]):
        result = run("train", "karate", "--epochs", 5, *more, "--json")
        assert result.exit_code == 0, (result.output, result.exception)
        answers.append(json.loads(result.output))
    plain, area, f1 = answers
    assert set(area) - set(plain) == {"val_roc-auc", "test_roc-auc"}
    assert {name: area[name] for name in plain} == plain
    assert set(f1) - set(plain) == {"val_macro-f1", "test_macro-f1"}
    assert round(f1["test_accuracy"] * 12, 4).is_integer()
    options = LaboratoryOptions(dataset="karate", split_sizes="10, 8,12")
    laboratory = options.laboratory(choose_splits=2)
    assert (laboratory.measure, laboratory.choose_splits) == ("accuracy", 2)
    assert [laboratory.split(number).sizes for number in (0, 1, 5)] == [(10, 8, 12)] * 3


BAD = {
    "dataset": (["compare", "coar"], "unknown dataset 'coar'; choose from cora"),
    "method": (["compare", "karate", "--methods", "cdf,cfd"], "unknown method 'cfd'"),
    "backbone": (["train", "karate", "--backbone", "gnc"], "unknown backbone 'gnc'"),
    "level": (["train", "karate", "--backbone", "gcnn"], "backbone 'gcnn' cannot be used"),
    "layers": (
        ["train", "karate", "--backbone", "jknet", "--layers", "2"],
        "layers of jknet must be a whole number of",
    ),
    "keep_prob": (["train", "karate", "--keep-prob", "1.5"], "--keep-prob must lie in [0, 1], got 1.5"),
    "device": (["train", "karate", "--device", "tpu"], "device 'tpu' is not available; choose from auto, cpu"),
    "missing": (["report", "nowhere"], "nowhere"),
    "measure": (["train", "karate", "--measure", "auc"], "unknown measure 'auc'; choose from accuracy, roc-auc, macro"),
    "split sizes": (
        ["compare", "karate", "--split-sizes", "8,10"],
        "--split-sizes must be three whole numbers TRAIN,VAL,TEST such as 140,500,1000, got '8,10'",
    ),
    "split size": (["train", "karate", "--split-sizes", "8,0,9"], "each of --split-sizes must be a whole number of at"),
    "two ways": (
        ["train", "cora", "--split-sizes", "8,9,9", "--per-class", "3"],
        "--split-sizes and --per-class exclude each other: each is a way to draw splits",
    ),
    "large sizes": (["train", "karate", "--split-sizes", "8,20,9"], "needs 37 labelled ones, but there are 34"),
    "laplacian": (["train", "karate", "--laplacian", "x"], "unknown laplacian 'x'"),
    "selection": (["train", "karate", "--selection", "x"], "unknown selection 'x'"),
    "normalization": (["train", "karate", "--normalization", "x"], "unknown normalization 'x'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_names_the_fault(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, message = BAD[name]
    result = run(*arguments)
    assert isinstance(result.exception, TadropedgeError)
    assert message in str(result.exception)
    assert not (tmp_path / "comparison" / "results.json").exists()


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": ENVIRONMENT}


def command(*arguments, cwd=None):
    return subprocess.Popen([sys.executable, "-m", "tadropedge", *map(str, arguments)], cwd=cwd, **PIPES)


def test_the_process_ends_with_one_line_and_code_2(tmp_path):
    with command("train", "karate", "--keep-prob", "2") as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err.strip() == "error: --keep-prob must lie in [0, 1], got 2.0"
    assert out == ""


ONE_LINE = {
    "type": (["train", "karate", "--epochs", "x"], "'--epochs'"),
    "command": (["trian", "karate"], "No such command 'trian'"),
    "option": (["train", "karate", "--nope"], "No such option: --nope"),
    "value": (["train", "karate", "--epochs"], "--epochs"),
    "missing": (["compare"], "Missing argument"),
    "epochs": (["compare", "karate", "--epochs", "0"], "epochs must be a whole number of at least 1, got 0"),
    "counts": (["compare", "karate", "--trials", 10**30], f"trials must be a whole number of at most {2**31 - 1}"),
    "laplacian": (["train", "karate", "--method", "original", "--laplacian", "x"], "unknown laplacian 'x'"),
    "twice": (["compare", "karate", "--methods", "cdf,aggregate-cdf"], "--methods names 'cdf' more than once"),
    "empty": (["compare", "karate", "--storage="], "an argument is empty, got '--storage='"),
    "plugin": (["train", "karate", "--plugin", "leaves"], "cannot import the plugin 'leaves' (SystemExit: 0)"),
    "long": (["train", "x" * 5000], "xxx"),
    "control": (["weights", "a/\x1b[31m\nb"], "\\x1b[31m"),
    "bytes": (["weights", "a\udc80"], "must be text in UTF-8 without NUL characters, got 'a\\udc80'"),
    "nul": (["weights", "a\0b"], "must be text in UTF-8 without NUL characters, got 'a\\x00b'"),
}


@pytest.mark.parametrize("name", ONE_LINE)
def test_every_bad_option_is_one_line(name, tmp_path):
    arguments, words = ONE_LINE[name]
    (tmp_path / "leaves.py").write_text("raise SystemExit(0)")
    ended = process.command([str(each) for each in arguments], tmp_path)
    process.assert_refused(ended, words)
    assert {path.name for path in tmp_path.iterdir()} <= {"leaves.py", "__pycache__"}


def test_a_reader_that_leaves_and_a_terminal_without_umlauts(tmp_path):
    """``| head`` ends in no traceback, and what a terminal cannot show is escaped."""
    with command("weights", "karate", "--no-figures", "--out", tmp_path / "ü") as early:
        early.stdout.close()
        assert "Traceback" not in (told := early.stderr.read())
        assert "BrokenPipe" not in told
    for setting in ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        again = [sys.executable, "-m", "tadropedge", "weights", "karate", "--no-figures", "--out", "out"]
        ended = subprocess.run(again, cwd=tmp_path / "ü", **PIPES | {"env": ENVIRONMENT | setting}, check=False)
        assert (ended.returncode, ended.stderr.count("Error")) == (0, 0), ended.stderr


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with command("compare", "karate", "--trials", 1, "--out", tmp_path / "file") as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err.startswith("error: ")
    assert len(err.strip().splitlines()) == 1


def struck(blow, moment, *arguments, **where):
    """Run a command, send it a signal when it has said ``moment``, and return its exit code and its last words."""
    with command(*arguments, **where) as process:
        guard = threading.Timer(120, process.kill)  # a command that hangs ends the wait, too
        guard.start()
        said = next((line for line in process.stderr if moment in line), None)
        assert said is not None, f"the command ended before it said {moment!r}"
        process.send_signal(blow)
        rest = process.stderr.read()
        guard.cancel()
        return process.wait(timeout=60), rest


def test_ctrl_c_says_how_to_go_on_and_a_kill_loses_nothing(tmp_path, finished):
    """Interrupted, asked to end, killed, then left alone: the rows are those of an undisturbed run."""
    folder, _ = finished
    arguments = ["compare", "clusters", *QUICK, "--out", tmp_path / "again"]
    for blow in (signal.SIGINT, signal.SIGTERM):
        code, rest = struck(blow, "search: 0 of 42", *arguments)
        assert code == 130
        assert "stopped; nothing is kept" in rest
        assert "Start again with: tadropedge compare clusters" in rest
    code, _ = struck(signal.SIGKILL, "search: 42 of 42", *arguments)
    assert code == -signal.SIGKILL
    with command(*arguments) as process:
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert err.splitlines()[0] == "search: 42 of 42 trainings"  # finished before the kill, and not repeated
    rows = json.loads((tmp_path / "again" / "results.json").read_text())["compare"]
    assert rows == json.loads((folder / "results.json").read_text())["compare"]


def test_an_interruption_that_a_library_swallows_is_repeated(monkeypatch, capsys):
    def swallow():
        with progress.live_progress(True, "study.db") as report:
            tell(Safe("trainings", 0, 2))
            report("search", 0, 2)
            with suppress(KeyboardInterrupt):  # as some modules do while they are imported
                signal.raise_signal(signal.SIGTERM)
            report("search", 1, 2)

    monkeypatch.setattr(progress, "_asked", [])
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        progress.stop_on_signals()
        with pytest.raises(typer.Exit) as ended:
            swallow()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert ended.value.exit_code == 130
    assert "stopped; 1 of 2 trainings (search) are kept in study.db. Resume with: " in capsys.readouterr().err


SLOW = """
import time
from torch import nn

class Slow(nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.linear = nn.Linear(inputs, classes)

    def forward(self, x, edge_index):
        time.sleep(0.01)
        return self.linear(x)
"""  # so that an epoch takes a while on every machine


def test_a_stop_says_what_the_storage_holds(tmp_path):
    """The trials that the words count are those in the study; the lost batch is the one that was at work."""
    arguments = ["compare", "clusters", *QUICK, "--epochs", 200, "--model", "slow:Slow", "--out", "out"]
    (tmp_path / "slow.py").write_text(SLOW)
    code, rest = struck(signal.SIGTERM, "epoch ", *arguments, "--methods", "dropedge", cwd=tmp_path)
    assert code == 130
    stopped = next(line for line in rest.splitlines() if line.startswith("stopped; "))
    found = re.match(r"stopped; (nothing is|(\d+) of 12 trainings \(search\) are) kept", stopped)
    assert found, stopped
    kept = int(found[2] or 0)
    assert ("Resume with: " if kept else "Start again with: ") + "tadropedge compare clusters" in stopped
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'out' / 'study.db'}")
    states = [
        trial.state.name for study in storage.get_all_studies() for trial in storage.get_all_trials(study._study_id)
    ]
    assert states.count("COMPLETE") == kept


@pytest.mark.parametrize("columns", [80, 120])
def test_on_a_terminal_epochs_move_and_the_time_left_is_told(columns, tmp_path):
    """A real terminal: something within seconds, then epochs, and no line is cut off."""
    arguments = ["train", "karate", "--epochs", "300", "--method", "original", "--model", "slow:Slow"]
    (tmp_path / "slow.py").write_text(SLOW)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    words = {"TERM": "xterm", "COLUMNS": str(columns), "LINES": "24"}
    own = {"stdin": slave, "stdout": slave, "stderr": slave, "env": ENVIRONMENT | words, "cwd": tmp_path}
    with subprocess.Popen([sys.executable, "-m", "tadropedge", *arguments], **own) as process:
        os.close(slave)
        seen = b""
        with suppress(OSError):  # the terminal is closed when the command has ended
            while block := os.read(master, 65536):
                seen += block
        assert process.wait(timeout=60) == 0, seen
    os.close(master)
    shown = seen.decode()
    epochs = [int(number.replace(",", "")) for number in re.findall(r"training: epoch ([\d,]+) of 300", shown)]
    assert len(set(epochs)) > 2
    assert epochs == sorted(epochs)
    assert re.search(r"about \d+ (s|min) left", shown)
    assert "…" not in shown


# -- start-up -----------------------------------------------------------------------------------------

QUICK_ANSWERS = {
    "help": (["--help"], 0, "Usage: "),
    "nothing": ([], 2, "Usage: "),
    "version": (["--version"], 0, f"{tadropedge.__version__}\n"),
    **{name: ([name, "--help"], 0, f"\n    tadropedge {name}") for name in EXAMPLES},
    "command": (["trian", "karate"], 2, "Did you mean 'train'?"),
    "option": (["train", "karate", "--backbne", "gcn"], 2, "No such option: --backbne"),
    "dataset": (["train", "karat"], 2, "error: DATA: unknown dataset 'karat'; choose from cora, "),
    "graph": (["weights", "karat"], 2, "error: GRAPH: unknown dataset or file 'karat'; choose from cora, "),
    "backbone": (
        ["compare", "karate", "--backbone", "gnc"],
        2,
        "error: --backbone: unknown backbone 'gnc'; choose from gcn, ",
    ),
    "item": (["reproduce", "tabel1"], 2, "error: ITEM: unknown item of the paper 'tabel1'"),
}
WATCHED = """
import atexit, sys
from tadropedge.__main__ import main
atexit.register(lambda: print("\\nslow:", *sorted({"torch", "numpy", "rich"} & set(sys.modules)), file=sys.stderr))
main()
"""


@pytest.mark.parametrize("name", QUICK_ANSWERS)
def test_help_and_typos_are_answered_before_anything_slow_is_imported(name, tmp_path):
    arguments, code, words = QUICK_ANSWERS[name]
    ended = subprocess.run([sys.executable, "-c", WATCHED, *arguments], cwd=tmp_path, **PIPES, check=False)
    assert ended.returncode == code
    assert words in ended.stdout + ended.stderr
    assert ended.stderr.splitlines()[-1] == "slow:"


def test_the_first_use_of_a_graph_needs_no_scipy():
    code = "import sys, tadropedge; tadropedge.Graph.from_edge_index([[0], [1]]); print('scipy' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], **PIPES, check=True)
    assert ended.stdout == "False\n"


def test_missing_packages_are_one_line():
    code = "import sys; sys.modules['optuna'] = None; from tadropedge.__main__ import main; main()"
    ended = subprocess.run([sys.executable, "-c", code, "compare", "karate"], **PIPES, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: the command line needs more packages (")
    assert ended.stderr.endswith("): pip install 'tadropedge[lab]'\n")
    assert len(ended.stderr.splitlines()) == 1


# -- a user's own module ------------------------------------------------------------------------------

PLUGIN = """
from tadropedge.data import load_karate
from tadropedge.registry import DATASETS

def load_friends(seed=0):
    return load_karate(seed)

DATASETS["friends"] = load_friends
"""


def test_a_plugin_is_imported_before_names_are_looked_up(tmp_path):
    (tmp_path / "my_data.py").write_text(PLUGIN)
    with command("train", "friends", "--epochs", 2, "--plugin", "my_data", "--json", cwd=tmp_path) as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert json.loads(out)["dataset"] == "friends"


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "(ModuleNotFoundError: No module named 'mine')"), ("1 / 0", "(ZeroDivisionError: division by zero)")],
)
def test_a_plugin_that_cannot_be_imported(tmp_path, content, words):
    if content is not None:
        (tmp_path / "mine.py").write_text(content)
    with command("compare", "karate", "--plugin", "mine", cwd=tmp_path) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err == f"error: --plugin: cannot import the plugin 'mine' {words}\n"


# -- progress -----------------------------------------------------------------------------------------


def test_the_plain_log_is_sparse_and_ends(capsys):
    watch = Watch()
    line = plain_log(watch)
    for done in range(11):
        watch.listen(Phase("search", done, 10))
        line(Phase("search", done, 10))
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == "search: 0 of 10"
    assert shown[-1].startswith("search: 10 of 10")
    assert len(shown) <= 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--seeds", 1), "seeds must be a whole number of at least 2, got 1"),
        (("--trials", 0), "trials must be a whole number of at least 1, got 0"),
        (("--methods", "cdf,jknet+cdf"), "layers of jknet must be a whole number of at least 3, got 2"),
        (
            ("--backbone", "ptdnet", "--methods", "cdf"),
            "ptdnet chooses its edges itself and cannot be trained with cdf",
        ),
        (("--layers", 0), "layers must be a whole number of at least 1, got 0"),
        (("--methods", ""), "unknown method ''"),
    ],
)
def test_compare_checks_everything_before_it_writes(arguments, words, tmp_path):
    result = run("compare", "karate", *arguments, "--out", tmp_path / "out")
    assert isinstance(result.exception, TadropedgeError)
    assert words in str(result.exception)
    assert not (tmp_path / "out").exists()


def test_plugins_are_found_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "found_here.py").write_text("value = 3")
    (tmp_path / "broken_here.py").write_text("1 / 0")
    assert load_plugins(None) is None
    assert load_plugins(["found_here"]) == ["found_here"]
    assert sys.modules.pop("found_here").value == 3
    with pytest.raises(TadropedgeError, match=r"cannot import the plugin 'broken_here' .ZeroDivisionError"):
        load_plugins(["broken_here"])


def test_a_terminal_shows_a_live_display(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with live_progress(quiet=False) as report:
        for done in range(3):
            report("search", done, 2)
    shown = capsys.readouterr().err
    assert "search" in shown
    assert "2 of 2" in shown


@pytest.mark.parametrize("place", [None, "study.db"])
def test_an_interruption_says_whether_there_is_something_to_resume(place, capsys):
    def work():
        with live_progress(quiet=True, place=place) as report:
            tell(Safe("trainings", 12, 48))
            report("search", 12, 48)
            tell(Moment(trainings=36, finished=0, together=36, epoch=3, epochs=400))
            raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as ended:
        work()
    assert ended.value.exit_code == 130
    lost = "; the batch at work (36 trainings) is lost"
    kept = "12 of 48 trainings (search) are kept in study.db" if place else "nothing is kept"
    again = "Resume with: tadropedge" if place else "Start again with: tadropedge"
    assert f"stopped; {kept}{lost}. {again}" in capsys.readouterr().err


def test_help_lists_the_normalisations_there_are():
    """They are written out, so that help needs no torch."""
    from tadropedge.cli.train import NORMALIZATIONS
    from tadropedge.shift import NORMALIZATIONS as THERE

    assert list(THERE) == list(NORMALIZATIONS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_help_names_the_type_of_every_option(name):
    """No option shows the name of a Python type; every example is one of a command that exists."""
    words = run(name, "--help").output
    for option in re.findall(r"^  (--[\w-]+) (\S+)", words, re.M):
        assert not re.match(r"<|TEXT|INTEGER|FLOAT|PATH|list", option[1]), option
    for line in EXAMPLES[name]:
        assert line.split()[:1] == ["tadropedge"]
        assert line.split()[1] in EXAMPLES


@pytest.mark.parametrize("flag", ["--keep-prob", "--keep-ratio"])
@pytest.mark.parametrize("method", ["original", "graphsage"])
def test_a_budget_for_a_method_that_drops_nothing_is_refused(flag, method):
    result = run("train", "karate", "--method", method, flag, 0.5)
    assert isinstance(result.exception, TadropedgeError)
    assert f"{flag} says how many edges a method keeps, and '{method}' drops none" in str(result.exception)
