"""The commands that write folders, small; what an undisturbed run leaves; what must hold after a disturbed one.

The clock stands still in every run, so run information is the same in all of them, and files must be too.
"""

from __future__ import annotations

import importlib
import json
import re
import sqlite3
import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tiny_recipes
from matplotlib.figure import Figure

from tadropedge.data import load_dataset
from tadropedge.paper.recipe import Recipe
from tadropedge.training.laboratory import Laboratory
from tadropedge.training.model_file import _waiting, load_model
from torture.process import Ended, assert_refused, command

# Two components of four nodes, which are solved together, and one of five.
EDGES = "0 1\n1 2\n2 0\n2 3\n10 11\n11 12\n12 13\n13 10\n20 21\n21 22\n22 23\n23 24\n24 20\n20 22\n"
SMALL = "--epochs 2 --hidden 4"
TRAIN = f"train karate --method cdf {SMALL} --seed 1 --out out --json"
COMMANDS = {
    "compare": f"compare karate --methods dropedge,cdf --trials 2 --seeds 2 {SMALL} --out out --json",
    "train": TRAIN,
    "train over a model": TRAIN,
    "train after a crash": TRAIN,
    "weights": "weights edges.txt --q 2 --out out --json",
    "predict": "predict model karate --out out/predictions.csv --json",
    "sparsify": "sparsify edges.txt --keep-ratio 0.8 --out out --json",
    "reproduce trainings": "reproduce convergence --out out --json",
    "reproduce pieces": "reproduce proposition1 --out out --json",
}
BATCH = 3  # trials between two writes
PIECES = {"graphs": 1, "draws": 2, "shares": [0.5]}
WARM = (
    "cli",
    "cli.progress",
    "comparison.report",
    "paper.reproduce",
    "score_report.terminal",
    "score_report.write",
    "sparsifier",
    "export",
    "predicting",
)
LOG = ".trained"
Files = dict[str, Any]


@dataclass(frozen=True)
class Whole:
    """What an undisturbed run leaves."""

    files: Files
    trained: Counter[str]
    seconds: float


def run(job: str, folder: Path, disturb: Callable[[], None] = lambda: None, **limits: Any) -> Ended:
    """Run a command in ``folder``; ``disturb`` is called in its process first."""
    (folder / "edges.txt").write_text(EDGES)
    warm()
    return command(COMMANDS[job].split(), folder, prepare=lambda: (_tame(folder / LOG), disturb()), **limits)


@cache
def warm() -> None:
    """Import in the parent what every child would import for itself."""
    import optuna

    for module in WARM:
        importlib.import_module(f"tadropedge.{module}")
    for item in ("convergence", "proposition1"):
        importlib.import_module(f"tadropedge.paper.items.{item}")
    optuna.storages.RDBStorage("sqlite://").engine.dispose()
    load_dataset("karate")


def _tame(log: Path) -> None:
    """In the child: a clock that stands still, small recipes, small batches, blank pictures, a log of all trainings.

    What is trained for its seconds alone is not logged: it is written nowhere, and timed again after a kill.
    """
    from tadropedge.comparison import comparison, timing
    from tadropedge.paper import reproduce, trainings

    time.monotonic = time.perf_counter = lambda: 0.0
    reproduce.load_recipe = _recipe
    comparison.LARGEST_BATCH = trainings.LARGEST_BATCH = BATCH
    Figure.savefig = lambda self, stream, **_: stream.write(f"{len(self.axes)} axes".encode())
    train, write, seconds = Laboratory.train, log.open("a").write, timing._seconds

    def logged(self: Laboratory, trials: Any, **options: Any) -> Any:
        outcomes = train(self, trials, **options)
        write(json.dumps([f"{zlib.crc32(repr(trial).encode()):x}" for trial in trials]) + "\n")
        write.__self__.flush()
        return outcomes

    def timed(*given: Any) -> float:
        Laboratory.train = train
        try:
            return seconds(*given)
        finally:
            Laboratory.train = logged

    Laboratory.train, timing._seconds = logged, timed


def _recipe(name: str, preset: str = "quick") -> Recipe:
    recipe = tiny_recipes.tiny(name, preset)
    return replace(recipe, settings={**recipe.settings, **PIECES}) if name == "proposition1" else recipe


def trained(folder: Path) -> list[Counter[str]]:
    """The batches that were trained in a folder since this was last asked."""
    log = folder / LOG
    batches = [Counter(json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []
    log.unlink(missing_ok=True)
    return batches


def contents(folder: Path) -> Files:
    """Every file of the folder that is not hidden: its bytes; studies and journals without dates and process ids."""
    paths = (path for path in sorted((folder / "out").rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): READ.get(path.suffix, Path.read_bytes)(path)
        for path in paths
        if not path.name.startswith(".")
    }


def _database(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        lines = (line for line in connection.iterdump() if not line.startswith('INSERT INTO "tadropedge_claims"'))
        return [re.sub(r"'\d{4}-\d\d-\d\d [\d:.]+'", "DATE", line) for line in lines]  # a dead one's claims are free
    finally:
        connection.close()


def _journal(path: Path) -> list[Any]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    own = ("worker_id", "datetime_start", "datetime_complete")
    return [{key: value for key, value in line.items() if key not in own} for line in lines]


def _pieces(path: Path) -> list[str]:
    """Finished pieces; the seconds of trainings are lost with the process that would have written them."""
    lines = (line.partition(" ")[2] for line in path.read_text().splitlines())
    return [line for line in lines if '"rows"' in line and line.endswith("}")]


READ: dict[str, Callable[[Path], Any]] = {".db": _database, ".journal": _journal, ".pieces": _pieces}


@cache
def whole(job: str) -> Whole:
    """An undisturbed run, once per process."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        begin(job, folder)
        ended = run(job, folder)
        assert ended.code == 0, f"{job}: {ended}"
        return Whole(contents(folder), sum(trained(folder), Counter()), ended.seconds)


@cache
def old_model() -> dict[str, bytes]:
    """A model that ``train`` replaces."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        ended = command(TRAIN.replace("--seed 1", "--seed 2").split(), folder)
        assert ended.code == 0, str(ended)
        return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


def begin(job: str, folder: Path) -> None:
    """What lies in the folder before a command: ``train`` may find an old model there, whole or just switched to."""
    if job == "predict":
        (folder / "model").mkdir()
        for name, content in old_model().items():
            (folder / "model" / name).write_bytes(content)
    if job not in ("train over a model", "train after a crash"):
        return
    out, files = folder / "out", dict(old_model())
    out.mkdir()
    if job == "train after a crash":
        waiting = _waiting(out, json.loads(files["model.json"])["fingerprint"]).name
        files |= {waiting: files["model.safetensors"], "model.safetensors": b"those of the model before"}
    for name, content in files.items():
        (out / name).write_bytes(content)


def check_disturbed(job: str, ended: Ended, folder: Path, full: bool = False) -> None:
    """A disturbed command died, stopped with one line or did it all; a model is the old one or the new one, whole."""
    if ended.code == 0:
        _check_files(job, folder)
    elif ended.code not in (137, -9):
        lines = [line for line in ended.err.splitlines() if line.strip()]
        assert "Traceback" not in ended.err, f"a traceback: {ended}"
        assert len(lines) <= 1, f"more than one line: {ended}"
        if ended.code != 130:
            assert_refused(ended, *(["the disk is full"] if full else []))
    if job.startswith("train") and (job != "train" or (folder / "out" / "model.json").exists()):
        assert _model(folder / "out") in _models(), f"neither the old model nor the new one: {ended}"


def _model(folder: Path) -> dict[str, Any]:
    model = load_model(folder)
    return {"trial": model.trial} | {name: value.tolist() for name, value in model.state.items()}


@cache
def _models() -> list[dict[str, Any]]:
    """The old model and the new one."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        begin("train over a model", folder)
        old = _model(folder / "out")
        assert run("train over a model", folder).code == 0
        return [old, _model(folder / "out")]


def check_resumed(job: str, folder: Path) -> None:
    """The same command again gives the same files, and trains nothing again but the batch that was lost."""
    before = trained(folder)
    ended = run(job, folder)
    assert ended.code == 0, f"the same command again: {ended}"
    _check_files(job, folder)
    left = [path.name for path in (folder / "out").rglob(".*") if ".tmp" in path.name or "model" in path.name]
    assert not left, f"temporary files stay: {left}"
    after = sum(trained(folder), Counter())
    again = sum(before[:-1], Counter()) & after  # of the last batch, some or none was written
    assert not again, f"trained again: {again}"
    assert set(whole(job).trained) == set().union(*before, after), "a trial was lost, or one too many was trained"


def _check_files(job: str, folder: Path) -> None:
    files, expected = contents(folder), whole(job).files
    assert sorted(files) == sorted(expected), f"files differ: {sorted(set(files) ^ set(expected))}"
    for name, content in expected.items():
        assert files[name] == content, f"{name} differs: {_difference(files[name], content)}"


def _difference(found: Any, expected: Any) -> str:
    if isinstance(found, bytes):
        found, expected = (text.decode(errors="replace").splitlines() for text in (found, expected))
    for ours, theirs in zip(found, expected, strict=False):
        if ours != theirs:
            return f"{str(ours)[:300]!r} for {str(theirs)[:300]!r}"
    return f"{len(found)} lines for {len(expected)}"
