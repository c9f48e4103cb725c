"""The driver: what it writes, what it does not run again, what it leaves behind when it is stopped, and its words."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from browser import Page, browse, needs_chromium
from tiny_recipes import tiny
from typer.testing import CliRunner

import tadropedge.cli
from tadropedge.cli import app
from tadropedge.errors import TadropedgeError
from tadropedge.paper import reproduce as driver
from tadropedge.paper.document import as_plain, flattened, parse_document, read_document, write_document
from tadropedge.paper.item import Item, Verdict
from tadropedge.paper.items import components, table2
from tadropedge.paper.report import LISTS, MARKS, report
from tadropedge.paper.reproduce import Run, reproduce
from tadropedge.training.laboratory import Laboratory

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def tiny_everywhere(monkeypatch):
    monkeypatch.setattr(driver, "load_recipe", tiny)
    monkeypatch.setattr(table2, "load_recipe", tiny)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with three items."""
    folder = tmp_path_factory.mktemp("reproduction")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "load_recipe", tiny)
        patch.setattr(table2, "load_recipe", tiny)
        for name in ("convergence", "table1", "table2"):
            reproduce(name, Run(folder, say=_ignored))
    return folder


@pytest.fixture
def copied(finished, tmp_path):
    """That folder, to be changed."""
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def _ignored(line):
    """Nothing is said."""


def never(*_, **__):
    raise AssertionError("a finished training was run again")


def cli(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=True)


# What is written.


def test_a_folder_holds_document_tables_pictures_page_and_readme(finished):
    names = {path.name for path in finished.iterdir()}
    assert {
        "results.json",
        "table1.csv",
        "table2.csv",
        "convergence.csv",
        "report.html",
        "README.md",
        "claims.md",
    } <= names
    document = json.loads((finished / "results.json").read_text())
    assert list(document) == ["table1", "table2", "convergence", "verdicts", "notes", "figures", "run"]
    for name in ("table1", "table2", "convergence"):
        members = {"claim", "status", "reason", "own", "printed", "measured", "where"}
        assert all(set(verdict) == members for verdict in document["verdicts"][name])
        run = document["run"][name]
        assert {"seconds", "commit", "machine", "device", "preset", "fingerprint", "versions", "seed"} <= set(run)
        assert all((finished / "figures" / file).exists() for file in document["figures"][name])
        lines = (finished / f"{name}.csv").read_text().splitlines()
        assert len(lines) == 1 + len(document[name])
    assert not list(finished.rglob("*.tmp"))


def test_a_document_is_the_same_after_a_round_trip(finished, tmp_path):
    document = read_document(finished / "results.json")
    assert parse_document(json.loads(json.dumps(as_plain(document)))) == document
    path = write_document(document, tmp_path / "results.json")
    assert path.read_bytes() == (finished / "results.json").read_bytes()


def test_the_page_and_the_readme_hold_every_verdict(finished):
    page, readme = Page((finished / "report.html").read_text()), (finished / "README.md").read_text()
    claims = (finished / "claims.md").read_text()
    for name, entry in read_document(finished / "results.json").items():
        for verdict in entry.verdicts:
            for words in (verdict.claim, verdict.word, verdict.reason, verdict.printed or "", verdict.measured or ""):
                assert words in page.text
                assert words in claims
            mine = readme.split(f"\n## {LISTS[verdict.own]}\n")[1].split("\n## ")[0]
            section = mine.split(f"### {MARKS[verdict.status]} ")[1].split("\n### ")[0]
            [mine] = [line for line in section.splitlines() if line.startswith(f"* **{name}**: ")]
            assert all(half in mine for half in verdict.claim.split(": ", 1))
        for note in entry.notes:
            assert note in page.text
            assert f"* {note}\n" in claims
    images = [attributes["src"] for tag, attributes in page.tags if tag == "img"]
    assert len(images) == len(list((finished / "figures").iterdir()))
    assert all(source.startswith("data:image/png;base64,iVBORw0KGgo") for source in images)
    assert "search, combinatorial" in page.text  # the seconds of Table 1
    assert "None" not in page.text


def test_the_page_asks_for_nothing(finished):
    text = (finished / "report.html").read_text()
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in Page(text).tags}
    assert not re.search(r"https?:|url\(|@import|\son\w+=", text)
    assert "default-src 'none'" in text


def test_a_picture_that_is_gone_is_named(finished, tmp_path):
    document = read_document(finished / "results.json")
    text = Page(report(document, tmp_path)).text
    assert "table2.png is not in the folder" in text


def test_hostile_words_are_only_words(finished, tmp_path):
    document = read_document(finished / "results.json")
    hostile = "<script>alert(1)</script>{{ 7 * 7 }}"
    entry = document["convergence"]
    changed = type(entry)(entry.rows, [Verdict(hostile, "reproduced", hostile)], [hostile], [], run=entry.run)
    page = Page(report({"convergence": changed}, tmp_path))
    assert "script" not in {tag for tag, _ in page.tags}
    assert page.text.count(hostile) == 3


@needs_chromium
def test_a_browser_shows_every_verdict_and_the_page_fits_a_phone(finished, tmp_path):
    path = finished / "report.html"
    text = Page(browse(tmp_path, path, "--dump-dom")).text
    for entry in read_document(finished / "results.json").values():
        assert all(verdict.claim in text for verdict in entry.verdicts)
    wrapper = tmp_path / "wrapper.html"
    frame = path.read_text().replace("&", "&amp;").replace('"', "&quot;")
    script = """onload = () => document.title =
        document.querySelector("iframe").contentDocument.documentElement.scrollWidth"""
    wrapper.write_text(
        f'<!doctype html><title>?</title><script>{script}</script><iframe width="390" height="844" srcdoc="{frame}">'
        "</iframe>",
        encoding="utf-8",
    )
    title = re.search("<title>(.*?)</title>", browse(tmp_path, wrapper, "--dump-dom"))[1]
    assert title == "390"


# What is not run again.


def test_a_finished_item_is_not_run_again_unless_asked(copied, monkeypatch):
    monkeypatch.setattr(Laboratory, "train", never)
    said = []
    before = (copied / "results.json").read_bytes()
    reproduce("table1", Run(copied, say=said.append))
    assert said == [f"table1 is finished in '{copied}' and not run again (--again does)"]
    assert (copied / "results.json").read_bytes() == before
    rows = reproduce("table1", Run(copied, again=True, say=said.append))["table1"].rows
    assert len(said) == 1
    assert json.loads(json.dumps(as_plain({"table1": _entry(copied, rows)})["table1"])) == json.loads(before)["table1"]


def _entry(folder, rows):
    entry = read_document(folder / "results.json")["table1"]
    return type(entry)(rows, entry.verdicts, entry.notes, entry.figures, run=entry.run)


def test_another_seed_or_recipe_is_run(copied, monkeypatch):
    document = reproduce("convergence", Run(copied, seed=1, say=_ignored))
    assert document["convergence"].run["seed"] == 1
    assert set(document) == {"table1", "table2", "convergence"}

    def other(name, preset="quick"):
        recipe = tiny(name, preset)
        changed = {**recipe.settings, "epochs": 2} if name == "convergence" else recipe.settings
        return replace(recipe, settings=changed)

    monkeypatch.setattr(driver, "load_recipe", other)
    document = reproduce("convergence", Run(copied, seed=1, say=_ignored))
    assert document["convergence"].rows[0].epoch == (0, 1)


def test_parts_make_an_item_that_says_what_is_missing(tmp_path):
    document = reproduce("table1", Run(tmp_path, parts=("clusters",), say=_ignored))
    assert not document["table1"].complete
    assert "Not complete: 5 of 10 cells are there" in Page((tmp_path / "report.html").read_text()).text
    said = []
    document = reproduce("table1", Run(tmp_path, say=said.append))
    assert document["table1"].complete
    assert not said
    for name in ("convergence", "all"):
        with pytest.raises(TadropedgeError, match=f"--part 'clusters' belongs to table1 or table2, got '{name}'"):
            reproduce(name, Run(tmp_path, parts=("clusters",)))


def test_table2_takes_parts_and_refuses_others_before_any_work(copied, tmp_path, monkeypatch):
    monkeypatch.setattr(Laboratory, "train", never)
    assert reproduce("table2", Run(copied, parts=("karate",), say=_ignored))["table2"].complete
    with pytest.raises(TadropedgeError, match="no part 'clusters' in this recipe; take one of karate"):
        reproduce("table2", Run(tmp_path / "new", parts=("clusters",)))


def test_another_preset_replaces_nothing_unless_asked(copied, monkeypatch, capsys):
    before = (copied / "results.json").read_bytes()
    for name in ("convergence", "all"):
        arguments = ["tadropedge", "reproduce", name, "--preset", "paper", "--out", str(copied)]
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as error:
            tadropedge.cli.run()
        assert error.value.code == 2
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert "with preset 'quick', and 'paper' would replace it; take --again, or another --out" in line
        assert (copied / "results.json").read_bytes() == before
    document = reproduce("convergence", Run(copied, "paper", again=True, say=_ignored))
    assert document["convergence"].run["preset"] == "paper"


def test_a_quick_verdict_says_so_and_one_that_loses_nothing_does_not(monkeypatch, tmp_path):
    def item(bench):
        row = components.measured("karate", bench.dataset("karate").graph, [1, 34, 34])
        return Item([row], [Verdict("one is one", "reproduced", "1 is 1")])

    class Module:
        run = staticmethod(item)

    monkeypatch.setattr(driver, "item_module", lambda name: Module)
    assert reproduce("components", Run(tmp_path))["components"].verdicts[0].reason == "1 is 1"

    def larger(name, preset="quick"):
        recipe = tiny(name, preset)
        settings = {**recipe.settings, "seeds": 100} if preset == "paper" else recipe.settings
        return replace(recipe, settings=settings)

    monkeypatch.setattr(driver, "load_recipe", larger)
    document = reproduce("components", Run(tmp_path, again=True))
    assert "quick preset" in document["components"].verdicts[0].reason
    assert "Quick preset: components ran with far fewer" in Page((tmp_path / "report.html").read_text()).text
    assert "Quick preset" in (tmp_path / "README.md").read_text()


# What is left when it is stopped.


def test_killed_at_any_batch_the_same_call_goes_on(finished, tmp_path):
    """A process of its own dies by SIGKILL in the middle; the next call trains the rest and ends with the same rows."""
    script = (
        "import os, signal, sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\n"
        "from tiny_recipes import tiny\n"
        "from tadropedge.paper import reproduce as driver\n"
        "from tadropedge.training.laboratory import Laboratory\n"
        "driver.load_recipe = tiny\n"
        "train, calls = Laboratory.train, []\n"
        "def killing(self, trials, **options):\n"
        "    calls.append(0)\n"
        "    if len(calls) == 6: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return train(self, trials, **options)\n"
        "Laboratory.train = killing\n"
        "driver.reproduce('table1', driver.Run(Path(sys.argv[1])))\n"
    )
    root = Path(__file__).resolve().parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", script, str(tmp_path), str(root / "tests")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (tmp_path / "results.json").exists()
    assert '"phase": "search"' in (tmp_path / "studies" / "table1.pieces").read_text()
    calls, train = [], Laboratory.train
    with pytest.MonkeyPatch.context() as patch:

        def counting(self, trials, **options):
            calls.append(len(trials))
            return train(self, trials, **options)

        patch.setattr(Laboratory, "train", counting)
        reproduce("table1", Run(tmp_path, say=_ignored))
    assert len(calls) == 3 * 2 * 2 - 5
    ours, theirs = (json.loads((folder / "results.json").read_text())["table1"] for folder in (tmp_path, finished))
    assert ours == theirs


def test_ctrl_c_is_one_line_and_exit_code_130(tmp_path, monkeypatch):
    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Laboratory, "train", pressed)
    result = cli("reproduce", "convergence", "--out", tmp_path)
    assert result.exit_code == 130
    assert "stopped; the scores of 78 of 78 edges are kept in" in result.output  # no training is
    assert "Resume with: tadropedge" in result.output


# The command line.


def test_the_command_ends_with_verdicts_and_the_page(copied):
    result = cli("reproduce", "convergence", "--out", copied)
    assert result.exit_code == 0, result.output
    assert "converges faster" in " ".join(result.output.split())
    assert f"report: {copied / 'report.html'}" in result.output.replace("\n", "")
    answer = json.loads(cli("reproduce", "table2", "--out", copied, "--json").stdout)
    assert set(answer) == {"table2", "verdicts", "notes", "figures", "run"}


def test_the_stored_command_names_no_folder(tmp_path):
    out = ("--out", tmp_path / "here", "--data-root", tmp_path)
    result = cli("reproduce", "convergence", *out, "--seed", "3", "--device", "cpu", "--json")
    assert result.exit_code == 0, result.output
    command = json.loads(result.stdout)["run"]["convergence"]["command"]
    assert command == "tadropedge reproduce convergence --preset quick --device cpu --seed 3"
    assert str(tmp_path) not in (tmp_path / "here" / "results.json").read_text()


@pytest.mark.parametrize("line", ['{"op_code": 99, "worker_id": "x"}', "5", "{}", '{"op_code": 0}'])
def test_a_journal_that_optuna_did_not_write_is_one_line(copied, line):
    with (copied / "studies" / "convergence.journal").open("a") as file:
        file.write(line + "\n")
    words = (
        r"^'.*convergence.journal' is damaged \(line \d+ is no operation of Optuna\): (\d+) of \d+ trials can be read; "
    )
    with pytest.raises(TadropedgeError, match=words):
        reproduce("convergence", Run(copied, again=True, say=_ignored))


def test_report_writes_the_page_of_such_a_folder_again(copied):
    before = (copied / "report.html").read_bytes()
    for name in ("report.html", "README.md", "claims.md"):
        (copied / name).unlink()
    result = cli("report", copied)
    assert result.exit_code == 0, result.output
    assert (copied / "report.html").read_bytes() == before
    assert (copied / "README.md").exists()
    assert (copied / "claims.md").exists()
    assert set(json.loads(cli("report", copied, "--json").stdout)["run"]) == {"table1", "table2", "convergence"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tabel1"], "ITEM: unknown item of the paper 'tabel1'; choose from table1, .*did you mean 'table1'.*"),
        (["table1", "--preset", "fast"], "--preset: unknown preset 'fast'; choose from quick, paper"),
        (
            ["table1", "--part", "coar"],
            "--part: no part 'coar' in this recipe; take a dataset or one of karate/gcn-2, .*",
        ),
        (["table1", "--seed", "-1"], "--seed must be a whole number of at least 0, got -1"),
        (["table1", "--device", "tpu"], "--device 'tpu' is not available; choose from auto, cpu.*"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tadropedge", "reproduce", *arguments, "--out", str(tmp_path / "new")])
    with pytest.raises(SystemExit) as error:
        tadropedge.cli.run()
    assert error.value.code == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert re.fullmatch(f"error: {words}", lines[0])
    assert not (tmp_path / "new" / "results.json").exists()


# The document.


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.pop("verdicts"), "the document lacks 'verdicts'"),
        (lambda d: d.update(table9=[]), "the document has an unknown member 'table9'"),
        (lambda d: d.update(table1="rows"), "table1 must be a list, got 'rows'"),
        (lambda d: d["table1"].append(3), r"table1\[24\] must be an object, got 3"),
        (lambda d: d["verdicts"]["table1"][0].update(status="maybe"), r"verdicts.table1\[0\]: unknown status"),
        (lambda d: d["verdicts"].pop("table1"), "verdicts lacks 'table1'"),
        (lambda d: d["notes"].update(table3=[]), "notes.table3 belongs to no item"),
        (lambda d: d["run"]["table1"].pop("seed"), "run.table1 lacks 'seed'"),
        (lambda d: d["run"]["table1"].update(seconds="long"), "run.table1.seconds must be a number, got 'long'"),
        (lambda d: d["table1"][2].pop("printed"), r"table1\[2\] lacks 'printed'"),
        (lambda d: d["table1"][2].update(more=1), r"table1\[2\] has an unknown member 'more'"),
        (
            lambda d: d["table1"][2]["honest"].update(mean="high"),
            r"table1\[2\].honest.mean must be a number, got 'high'",
        ),
        (lambda d: d["table1"][1].update(honest=None), r"table1\[1\].honest must be an object, got None"),
        (lambda d: d["convergence"][3].pop("kept_share"), r"convergence\[3\] lacks 'kept_share'"),
        (lambda d: d["run"]["table1"].update(trained_on=5), "run.table1.trained_on must be a list, got 5"),
        (lambda d: d["run"]["table1"].update(trained_on=[5]), r"run.table1.trained_on\[0\] must be a text"),
        (lambda d: d["run"]["table1"].update(complete="no"), "run.table1.complete must be true or false, got 'no'"),
        (lambda d: d["run"]["table1"].update(quick=None), "run.table1.quick must be true or false, got None"),
        (lambda d: d["run"]["table1"].update(cells=3), "run.table1.cells must be a text"),
        (lambda d: d["run"]["table1"].update(seconds_of={"cora": 3}), "run.table1.seconds_of.cora must be an object"),
        (lambda d: d["figures"].update(table1=["../x.png"]), r"figures.table1\[0\] must be the name of a file without"),
        (lambda d: d["figures"].update(table1=["/etc/x"]), r"figures.table1\[0\] must be the name of a file without"),
        (
            lambda d: d["run"]["table1"].update(preset="fast"),
            "run.table1.preset must be one of quick, paper, got 'fast'",
        ),
    ],
)
def test_a_wrong_document_is_named_by_its_place(finished, tmp_path, change, words):
    document = json.loads((finished / "results.json").read_text())
    change(document)
    (tmp_path / "results.json").write_text(json.dumps(document))
    with pytest.raises(TadropedgeError, match=f"results.json: {words}|{words}"):
        read_document(tmp_path / "results.json")


def test_a_row_is_flat_in_the_csv():
    assert flattened({"a": {"b": {"c": 1}}, "d": None}) == {"a_b_c": 1, "d": None}
