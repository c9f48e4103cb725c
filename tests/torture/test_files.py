"""Hostile and damaged files: nothing in them is run or used; no file of somebody else is touched."""

import hashlib
import io
import json
import os
import pickle
import random
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
from torture import jobs
from torture.process import as_nobody, command, contents, refused, sample

ROOMS = ("compare", "train", "weights")
PREDICT = "predict out karate --out predictions.csv --json"
THESIS = b"\\chapter{One}\nmany years of work\n"


class Evil:
    """An object whose pickle, when it is loaded, makes the file ``run``."""

    def __reduce__(self):
        return Path.touch, (Path("run"),)


def evil(kind):
    """A file that runs code in a careless reader."""
    stream = io.BytesIO()
    if kind == "npz":
        arrays = {"edge_index": np.array([[0, 1], [1, 2]]), "x": np.array([Evil(), Evil(), Evil()], dtype=object)}
        np.savez(stream, **arrays, y=arrays["x"], score=arrays["x"])
    elif kind == "torch":
        torch.save({"edge_index": Evil(), "x": Evil()}, stream)
    elif kind == "old torch":
        torch.save(Evil(), stream, _use_new_zipfile_serialization=False)
    else:
        pickle.dump(Evil(), stream)
    return stream.getvalue()


@cache
def left(job):
    """The folder that a command leaves when it is done, and with a checkpoint or a log of SQLite when it is killed."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        jobs.begin(job, folder)
        if job == "train":
            assert command(jobs.COMMANDS[job], folder, lambda: (jobs.prepare(), dies_after(10))).code == -9
            killed = contents(folder / "out")
            assert jobs.run(job, folder).code == 0
            return killed | contents(folder / "out")
        assert jobs.run(job, folder).code == 0
        return contents(folder / "out")


def dies_after(count):
    """In a child: kill it after so many epochs."""
    from tadropedge.lab.training.callbacks import Checkpoint

    whole = Checkpoint.epoch

    def epoch(checkpoint, run):
        whole(checkpoint, run)
        if run.epoch == count:
            os.kill(os.getpid(), 9)

    Checkpoint.epoch = epoch


def lay(job, folder, **changed):
    """Put there what the command has left, with some files changed, which are named by their ends."""
    jobs.begin(job, folder)
    for name, content in left(job).items():
        ends = [end for end in changed if name.endswith(end)]
        path = folder / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(changed[ends[0]] if ends else content)


def file_of(job, end):
    return next(content for name, content in left(job).items() if name.endswith(end))


# -- files that run code -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["npz", "torch", "old torch", "pickle"])
@pytest.mark.parametrize("suffix", ["npz", "pt"])
@pytest.mark.parametrize("job", ROOMS)
def test_no_data_file_runs_code(job, suffix, kind, tmp_path):
    (tmp_path / f"data.{suffix}").write_bytes(evil(kind))
    refused(command([job, f"data.{suffix}", "--out", "out"], tmp_path), f"data.{suffix}")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("kind", ["npz", "torch", "pickle"])
def test_no_file_of_results_runs_code(kind, tmp_path):
    for job, end, words in [
        ("train", "model.safetensors", PREDICT),
        ("compare", "trials.db", jobs.COMMANDS["compare"]),
        ("compare", "results.json", "report out"),
    ]:
        folder = tmp_path / end
        folder.mkdir()
        lay(job, folder, **{end: evil(kind)})
        refused(command(words, folder), end)
        assert not (folder / "run").exists()
        assert (folder / "out" / end).read_bytes() == evil(kind)
    digest = hashlib.sha256(evil(kind)).digest()
    for job, end, content in [
        ("train", ".training", evil(kind)),
        ("train", ".training", digest + evil(kind)),
        ("weights", ".npz", evil(kind)),
    ]:
        folder = tmp_path / f"{job}-{len(content)}"
        folder.mkdir()
        lay(job, folder, **{end: content})
        jobs.check_resumed(job, folder, checkpoints=False)
        assert not (folder / "run").exists()


@pytest.mark.parametrize("kind", ["npz", "pickle"])
def test_no_row_runs_code_though_its_checksum_is_right(kind, tmp_path):
    lay("compare", tmp_path)
    with closing(sqlite3.connect(tmp_path / "out" / "trials.db")) as database:
        rows = database.execute("select key, kind, content from results where kind = 'trial'").fetchall()
        for key, what, content in rows:
            checksum = hashlib.sha256(f"{key}\n{what}\n{content}\n".encode() + evil(kind)).hexdigest()
            database.execute("update results set arrays = ?, checksum = ? where key = ?", (evil(kind), checksum, key))
        database.commit()
    jobs.check_resumed("compare", tmp_path, checkpoints=False)
    assert not (tmp_path / "run").exists()


# -- changed bytes -------------------------------------------------------------------------------------


def damaged(content, number):
    """The content with one bit flipped, or cut off, always the same."""
    chance = random.Random(number)
    if number % 4 == 3:
        return content[: chance.randrange(len(content))]
    changed = bytearray(content)
    used = [place for place in range(len(content)) if content[place]]  # most of a database is empty
    changed[chance.choice(used)] ^= 1 << chance.randrange(8)
    return bytes(changed)


@pytest.mark.parametrize("number", sample(range(200), 12))
def test_a_damaged_model_is_never_used(number, tmp_path):
    lay("train", tmp_path, **{".safetensors": damaged(file_of("train", ".safetensors"), number)})
    refused(command(PREDICT, tmp_path), "model.safetensors")
    assert not (tmp_path / "predictions.csv").exists()


@pytest.mark.parametrize("number", sample(range(200), 8))
def test_a_damaged_checkpoint_is_never_trained_on(number, tmp_path):
    lay("train", tmp_path, **{".training": damaged(file_of("train", ".training"), number)})
    ended = jobs.run("train", tmp_path)
    assert "damaged" in ended.err
    assert jobs.epochs(tmp_path)[0] == 1
    assert jobs.results(tmp_path) == jobs.whole("train").files


@pytest.mark.parametrize("number", sample(range(300), 10))
def test_a_damaged_store_is_one_line_or_gives_the_same_rows(number, tmp_path):
    changed = damaged(file_of("compare", "trials.db"), number)
    lay("compare", tmp_path, **{"trials.db": changed})
    ended = jobs.run("compare", tmp_path)
    if ended.code == 0:
        assert jobs.results(tmp_path) == jobs.whole("compare").files
    else:
        refused(ended, "trials.db")
        assert "move it away" in ended.lines[-1]


ODD = (
    None,
    True,
    -1,
    0,
    2**70,
    1e308,
    float("nan"),
    "",
    "x" * 3000,
    "<script>alert(1)</script>",
    [],
    {},
    [[[]]],
    {"a": 1},
)


def with_another_value(document, chance):
    """JSON in which one value is another, gone, or under another name."""
    places = [(holder, key) for holder, key in members(document)]
    holder, key = chance.choice(places)
    kind = chance.randrange(4)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[key + "s"] = holder.pop(key)
    else:
        holder[key] = chance.choice(ODD)
    return json.dumps(document).encode()


def members(value):
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys):
        yield value, key
        yield from members(value[key])


@pytest.mark.parametrize("number", sample(range(600), 24))
def test_results_that_were_changed_are_one_line_or_a_page(number, tmp_path):
    content, chance = file_of("compare", "results.json"), random.Random(number)
    changed = damaged(content, number) if number % 5 == 0 else with_another_value(json.loads(content), chance)
    lay("compare", tmp_path, **{"results.json": changed})
    ended = command("report out --json", tmp_path)
    if ended.code != 0:
        refused(ended)
        assert (tmp_path / "out" / "results.json").read_bytes() == changed
    assert b"<script>alert" not in (tmp_path / "out" / "report.html").read_bytes()


@pytest.mark.parametrize(
    "content", [b"", b"[" * 100_000, b"9" * 6000, b"\xff\xfe", b"null", b'{"rows": 5}', b'{"rows": []}']
)
def test_what_is_no_file_of_ours_is_one_line(content, tmp_path):
    lay("compare", tmp_path, **{"results.json": content})
    refused(command("report out", tmp_path), "results.json")
    header = len(content).to_bytes(8, "little") + content
    for each in (content, header):
        (tmp_path / "model.safetensors").write_bytes(each)
        refused(command("predict model.safetensors karate", tmp_path), "model.safetensors")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / ".tadropedge").write_bytes(content)
    refused(command("weights karate --no-figures --out new", tmp_path), ".tadropedge")
    (tmp_path / "options.toml").write_bytes(content)
    if content:
        refused(command("weights karate --config options.toml", tmp_path), "options.toml")


# -- files and folders of others -----------------------------------------------------------------------


def put_thesis(folder, name, kind):
    """A thesis beside the folder ``out``, and in it a name that is the thesis, or leads to it."""
    thesis, path = folder / "thesis.tex", folder / "out" / name
    thesis.write_bytes(THESIS)
    path.parent.mkdir(parents=True, exist_ok=True)
    {"copy": lambda: path.write_bytes(THESIS), "hard link": lambda: os.link(thesis, path),
     "symbolic link": lambda: path.symlink_to(thesis), "folder": path.mkdir,
     "broken link": lambda: path.symlink_to(folder / "nowhere")}[kind]()  # fmt: skip


NAMES = {
    "compare": ("trials.db", "trials.db-wal", ".tadropedge.lock", "report.html", "results.json", "results.csv"),
    "train": ("model.safetensors", "results.json", ".tadropedge"),
    "weights": ("weights.csv", "weights.npz", "graph.html", "summary.json", ".tadropedge", "cache"),
}
LINKS = ("copy", "hard link", "symbolic link", "folder", "broken link")
OTHERS = [
    (job, name, kind)
    for job, names in NAMES.items()
    for name in names
    for kind in LINKS
    if not (name in (".tadropedge.lock", "cache") and kind in ("copy", "folder"))
]


@pytest.mark.parametrize(("job", "name", "kind"), sample(OTHERS, 30))
def test_no_file_of_somebody_else_is_changed_or_removed(job, name, kind, tmp_path):
    jobs.begin(job, tmp_path)
    put_thesis(tmp_path, name, kind)
    before = contents(tmp_path)
    ended = jobs.run(job, tmp_path)
    refused(ended, name.removesuffix("-wal"))
    after = contents(tmp_path)
    assert {each: after.get(each) for each in before} == before
    assert not (tmp_path / "nowhere").exists()
    if name == ".tadropedge.lock":
        return  # what can be refused no sooner than it is needed
    assert not jobs.epochs(tmp_path)


WRITERS = {**{job: jobs.COMMANDS[job] for job in ROOMS}, "sparsify": "sparsify karate --keep-ratio 0.8 --out out"}


@pytest.mark.parametrize("job", WRITERS)
@pytest.mark.parametrize("place", ["a file", "in a file", "read-only", "in read-only", "a link to nowhere"])
def test_a_folder_that_cannot_be(job, place, tmp_path):
    jobs.begin(job, tmp_path)
    out = tmp_path / "out"
    words = WRITERS[job].replace("--out out", "--out out/deeper") if place.startswith("in ") else WRITERS[job]
    if "file" in place:
        out.write_bytes(THESIS)
    elif "link" in place:
        out.symlink_to(tmp_path / "gone" / "nowhere")
    else:
        out.mkdir()
        out.chmod(0o555)
    before = contents(tmp_path)
    begun = lambda: (jobs.prepare(), as_nobody(tmp_path))  # noqa: E731
    ended = command(words, tmp_path, begun)
    refused(ended, "out")
    assert not jobs.epochs(tmp_path)
    assert contents(tmp_path) == before
    assert ended.seconds < 20
