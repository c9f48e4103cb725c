"""Bad options and arguments on the command line: one clear line, exit code 2, nothing written, at once.

The cases are made from the commands themselves: every option of every command gets the values that are bad for its
type, so an option that is added later is attacked too. ``FINE`` names what is legal among them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import get_args

import tadropedge.comparison.report  # what commands import when they run is loaded here once, not in every child
import tadropedge.paper.reproduce
import tadropedge.predicting
import tadropedge.score_report.terminal
import tadropedge.score_report.write
import tadropedge.sparsifier
import tadropedge.training.model_file  # noqa: F401
from tadropedge.cli import app
from torture import Case, jobs
from torture.process import assert_refused, command

TRIES = "bad options and arguments of every command"
SECONDS = 20.0  # of a machine that is busy with other cases; a refusal comes before any work

LONG, HUGE = "x" * 5000, "1" + "0" * 30
NUMBERS = ["", "x", "nan", "inf", "-inf", "1e400", "-1", "0x10", "½", "1,5", "--", "\udc80", "1\x00", LONG]
WHOLE = [*NUMBERS, "1.5", "1e3", HUGE, f"-{HUGE}", str(2**63), str(-(2**63) - 1)]
REAL = [*NUMBERS, "-1e400", "-0.1"]
NAMES = ["", "nope", "NOPE", " ", "None", "0", "-1", "a,b", "\udc80", "a\x00b", "\x1b[31mred\nnext", LONG]
FILES = ["/nowhere/at/all", "/proc/nowhere", "\udc80", "a\x00b", "/" + LONG]  # to be read
FOLDERS = ["", "file", "file/inside", "/dev/null", "/proc/nowhere", "\udc80", "a\x00b", LONG]  # to be written
STORAGES = ["", "nope:///x", "sqlite:////proc/nowhere/all.db", "\udc80", "a\x00b", "://"]
BASE = {
    "compare": "karate --trials 1 --seeds 2 --epochs 1 --methods original --out out",
    "train": "karate --epochs 1 --out out",
    "weights": "karate --no-figures --out out",
    "sparsify": "karate --keep-ratio 0.5 --out out",
    "predict": "model karate --out out",
    "doctor": "",
    "datasets": "",
    "reproduce": "components --out out",
    "report": "finished",
}
VALUES = {"storage": STORAGES, "nodes": FILES, "out": FOLDERS, "folder": FILES, "data_root": FILES, "saved": FILES}
FINE = {  # odd, but legal
    "seed": {str(2**63)},
    "data_root": set(FILES),
    "predict out": {"file"},  # which is replaced
}
PLUGINS = {"raises": "raise RuntimeError('two\\nlines')", "leaves": "raise SystemExit(0)", "broken": "def ("}
DAMAGED = {
    "empty": "", "text": "hello", "list": "[]", "number": "3", "null": "null", "cut": '{"compare": [',
    "bytes": "\udcff",
    "rows": '{"compare": 3, "run": {}}', "nan": '{"compare": [NaN], "run": {}}', "deep": "[" * 100000,
    "verdicts": '{"verdicts": []}', "keys": '{"compare": [{"dataset": 1}], "run": {}}',
}  # fmt: skip
COMBINED = (
    "nope", "Compare karate", "compare", "train", "weights", "report", "reproduce", "compare karate karate",
    "train karate --nope", "train karate --epochs", "train karate --json=1", "train --json karate --layers", "train -x",
    "compare karate --seeds 1", "compare karate --seeds 0", "compare karate --seeds -2", "compare karate --trials 0",
    "compare karate --methods original,original", "compare karate --methods cdf,aggregate-cdf",
    "compare karate --methods ,",
    "compare karate --methods original,", "compare karate --methods original;cdf", "compare karate --methods Original",
    "compare karate --methods gcnn", "compare karate --methods ptdnet+cdf", "compare karate --backbone gcnn",
    "compare karate --plugin raises", "compare karate --plugin leaves", "compare karate --plugin broken",
    "compare karate --plugin no.such.module", "compare karate --plugin ..", "compare karate --plugin file",
    "compare karate --split full", "compare karate --per-class 5", "compare karate --noise 0.1", "compare file",
    "compare karate --nodes file", "compare finished", "compare empty/results.json", "compare karate --out file",
    "train karate --method original --laplacian nope", "train karate --method original --laplacian Normalized",
    "train karate --method original --q 0", "train karate --method dropedge --q -1", "train karate --keep-prob nan",
    "train karate --learning-rate 0", "train karate --dropout 1.1", "train karate --weight-decay nan",
    "train karate --batch-size 0", "train karate --normalization GCN", "train karate --hidden 0",
    "train karate --layers 0", "train karate --mini-batch 0", "train karate --fanout 3",
    "train karate --mini-batch 4 --fanout 0", "train karate --mini-batch 4 --fanout 3;2",
    "train karate --mini-batch 4 --fanout 3,2,1", "train karate --mini-batch 4 --batch-size 4",
    "train karate --mini-batch 4 --method dropedge:connected", "train karate --mini-batch 4 --method fastgcn",
    "train karate --backbone jknet --layers 1", "train karate --evaluate-every 0", "train karate --epochs 0",
    "train karate --device cuda:99", "train karate --device CPU", "train karate --gamma -1", "train karate --noise x",
    "train source-localization --noise nan --epochs 1", "train source-localization --noise -1 --epochs 1",
    "train source-localization --backbone gcn", "train source-localization --split public --epochs 1",
    "weights karate --q 3 --desired-clusters 3", "weights karate --score effective --q 3", "weights karate --q 35",
    "weights karate --score effective --tolerance 0.1", "weights karate --relative-error 0.1", "weights file",
    "weights karate --score effective --relative-error 0", "weights karate --score Effective", "weights nope.npz",
    "weights karate --explain --score effective", "weights karate --gamma 0", "weights karate --kind nope",
    "weights karate --ranks 2", "weights karate --solver dense --ranks 2", "weights karate --solver slepc --ranks 0",
    "weights karate --desired-clusters 0", "weights karate --solver Dense", "weights .", "weights karate --out file",
    "weights karate --explain --laplacian nope", "weights karate --explain --q 0", "weights /dev/null",
    "sparsify", "sparsify karate --keep-ratio 0", "sparsify karate --keep-ratio 1.1", "sparsify karate --score Uniform",
    "sparsify karate --score uniform --q 3", "sparsify karate --q 3",
    "sparsify karate --score column", "sparsify karate --score-column w",
    "sparsify file", "sparsify nope.npz", "sparsify .", "sparsify /dev/null",
    "sparsify karate --out file", "sparsify karate --device cuda:99", "sparsify karate --connected",
    "train karate --method original --keep-prob 0.5", "train karate --method original --keep-ratio 0.5",
    "train karate --method graphsage --keep-prob 0.5",
    "predict", "predict model", "predict model clusters", "predict model nope", "predict nowhere karate",
    "predict file karate", "predict finished karate", "predict model karate --out .", "predict model karate --epochs 3",
    "predict model karate --model nope", "predict model karate --model no.such:thing", "predict model karate --nodes x",
    "predict model source-localization", "predict model karate --device cuda:99", "predict model karate --noise 0.1",
    "doctor karate", "doctor --out x",
    "datasets karate", "datasets --data-root file", "datasets --plugin nope",
    "train pyg:", "train pyg:Amazn/Photo", "train pyg:Amazon/Photo --data-root .", "weights pyg:Amazon --data-root .",
    "reproduce nope", "reproduce Table1", "reproduce components --preset Quick", "reproduce components --part cora",
    "reproduce table1 --part nope", "reproduce all --part cora", "reproduce components --out file",
    "report file", "report .", "report nowhere", *(f"report {name}" for name in DAMAGED),
)  # fmt: skip
ODD_FOLDERS = ("q?a=1", "p%41", " a ", "-x", "~nobody/x", "ü", "a'b\"c", "x" * 200, "a#b", "a\nb", "a;b", "$HOME", ".")
FINE_LINES = (
    "train karate --epochs 1 --keep-prob 0", "train karate --epochs 1 --keep-prob 1", "train KARATE --epochs 1",
    "train karate --epochs 1 --dropout 0", "train karate --epochs 1 --weight-decay 0",
    f"train karate --epochs 1 --seed {2**64 - 1}",
    f"train karate --epochs 1 --seed {2**63}", f"weights karate --no-figures --seed {2**64 - 1}",
    "weights karate --explain", "sparsify karate --keep-ratio 1", "sparsify KARATE --score uniform --no-certificate",
    f"sparsify karate --seed {2**64 - 1}",
    "predict model karate", "predict model/model.json KARATE --json", "predict model karate --out new/folder/file.csv",
    "doctor", "doctor --json", "datasets --data-root . --json",
    "train karate --epochs 1 --data-root nowhere", "--version", "--help", "train --help",
    "train --plugin prints --help",
)  # fmt: skip


def cases() -> Iterator[Case]:
    """Every option with its bad values, lines that are written out, and what is odd but legal."""
    for name in (one.name or "" for one in app.registered_commands):
        for option, flag, values in options(name):
            for value in values:
                line = [name, *replaced(BASE.get(name, "x").split(), flag, value)]
                yield Case(f"{name} {option} {value[:30]!r}", partial(refused, line))
    for line in COMBINED:
        yield Case(f"tadropedge {line}", partial(refused, line.split()))
    for name in ("train", "compare", "weights", "sparsify"):
        for folder in ODD_FOLDERS:
            line = [name, *replaced(BASE[name].split(), "--out", folder)]
            yield Case(f"{name} into {folder[:30]!r}", partial(works, line))
    for line in FINE_LINES:
        yield Case(f"tadropedge {line}", partial(works, line.split()))


def options(name: str) -> Iterator[tuple[str, str | int, list[str]]]:
    """Every option of a command: its name, how it is written (an argument: its place), and the values to try."""
    (callback,) = (one.callback for one in app.registered_commands if one.name == name)
    assert callback is not None
    places = count()
    for option in inspect.signature(callback, eval_str=True).parameters.values():
        kind, *told = (
            get_args(option.annotation) if hasattr(option.annotation, "__metadata__") else (option.annotation,)
        )
        kinds = get_args(kind) or (kind,)
        if bool in kinds:
            continue
        values = VALUES.get(option.name, WHOLE if int in kinds else REAL if float in kinds else NAMES)
        written = (*(told[0].param_decls or () if told else ()), f"--{option.name.replace('_', '-')}")[0]
        argument = bool(told) and type(told[0]).__name__ == "ArgumentInfo"
        fine = FINE.get(option.name, set()) | FINE.get(f"{name} {option.name}", set())
        place = next(places) if argument else written
        yield option.name, place, [value for value in values if value not in fine]


def replaced(given: list[str], flag: str | int, value: str) -> list[str]:
    """The words of a command with one option, or one of its arguments, replaced."""
    if isinstance(flag, int):
        first = next((at for at, word in enumerate(given) if word.startswith("--")), len(given))
        return [*given[first:], "--", *given[:flag], value, *given[flag + 1 : first]]
    place = given.index(flag) if flag in given else len(given)
    return [*given[:place], *given[place + 2 :], f"{flag}={value}"]


def prepared(folder: Path) -> None:
    """A file in the way, plug-ins that misbehave, folders with damaged results."""
    (folder / "file").write_text("in the way")
    for name, text in {**PLUGINS, "prints": "print('hello')"}.items():
        (folder / f"{name}.py").write_text(text)
    for name, text in DAMAGED.items():
        (folder / name).mkdir()
        (folder / name / "results.json").write_bytes(text.encode(errors="surrogateescape"))
    (folder / "model").mkdir()
    for name, content in jobs.old_model().items():
        (folder / "model" / name).write_bytes(content)
    (folder / "finished").mkdir()
    here = Path(__file__).parents[2] / "results" / "cora-gcn-2" / "results.json"
    (folder / "finished" / "results.json").write_bytes(here.read_bytes())


def contents(folder: Path) -> dict[str, bytes]:
    """Every file and folder below a folder."""
    return {str(path): b"" if path.is_dir() else path.read_bytes() for path in folder.rglob("*")}


def refused(line: list[str], folder: Path) -> None:
    """The command is refused at once, and nothing is written."""
    prepared(folder)
    before = contents(folder)
    ended = command(line, folder, seconds=SECONDS, prepare=_without_bytecode)
    assert_refused(ended)
    assert contents(folder) == before, f"written: {sorted(set(contents(folder)) - set(before))}"


def works(line: list[str], folder: Path) -> None:
    """The command ends well."""
    prepared(folder)
    ended = command(line, folder, prepare=_without_bytecode)
    assert ended.code == 0, str(ended)
    assert "Traceback" not in ended.err, str(ended)


def _without_bytecode() -> None:
    sys.dont_write_bytecode = True
