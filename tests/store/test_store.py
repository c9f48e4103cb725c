"""One file per folder: rows come back, whatever is killed, shared, damaged, full or somebody else's."""

import math
import multiprocessing
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

from tadropedge import TadropedgeError
from tadropedge.lab.search.store import NAME, Store

ROW = {
    "candidate": "degree-proportional:weighted",
    "replicate": 3,
    "val_score": 0.1 + 0.2,
    "test_score": 0.75,
    "stopped": None,
    "settings": {"layers": 2, "norm": "é"},
    "failed": math.inf,
    "val_loss": np.array([1.5, np.inf, np.nan]),
    "epochs": np.arange(3, dtype=np.int32),
}


def same(row, other):
    assert set(row) == set(other)
    for name, value in row.items():
        assert type(value) is type(other[name])
        if isinstance(value, np.ndarray):
            assert value.dtype == other[name].dtype
        np.testing.assert_equal(value, other[name])


def filled(folder, count=3):
    """A folder with a closed store of rows ``0 … count − 1``."""
    with Store(folder) as store:
        for number in range(count):
            store.put("trial", {f"key{number}": {**ROW, "replicate": number}})
    return folder / NAME


def use(folder):
    with Store(folder) as store:
        store.put("trial", {"new": ROW})
        store.get(["key0"])


def refused(folder, words):
    with pytest.raises(TadropedgeError, match=words) as caught:
        use(folder)
    assert "\n" not in str(caught.value)
    assert NAME in str(caught.value)


# -- rows ----------------------------------------------------------------------------------------------


def test_rows_come_back_as_they_were(tmp_path):
    many = {f"k{number}": {"number": number, "value": math.sqrt(number)} for number in range(1200)}
    with Store(tmp_path / "new" / "folder") as store:
        store.put("trial", {"a": ROW})
        store.put("timing", many)
    with Store(tmp_path / "new" / "folder") as store:
        same(store.get(["a"])["a"], ROW)
        assert store.get([*many, "b", "k7"]) == many
        assert store.get([]) == {}
        store.put("trial", {"a": {"replicate": 4}})
        assert store.get(["a"]) == {"a": {"replicate": 4}}
    assert [each.name for each in (tmp_path / "new" / "folder").iterdir()] == [NAME]


def test_it_is_an_ordinary_database(tmp_path):
    with Store(tmp_path) as store:
        store.put("trial", {"a": ROW, "b": {**ROW, "test_score": 0.25}, "c": {"val_score": math.nan}})
        store.put("timing", {"d": {"seconds": 1.0}})
    database = sqlite3.connect(tmp_path / NAME)
    rows = database.execute("select candidate, replicate, avg(test_score), count(*) from trials group by 1").fetchall()
    database.close()
    assert (ROW["candidate"], 3, 0.5, 2) in rows


def test_all_rows_of_a_put_are_written_or_none(tmp_path):
    with Store(tmp_path) as store:
        with pytest.raises(TypeError):
            store.put("trial", {"a": ROW, "b": {"object": object()}})
        with pytest.raises(TadropedgeError):
            store.put(None, {"a": ROW, "b": ROW})
        assert store.get(["a", "b"]) == {}
        store.put("trial", {"a": ROW})
        assert list(store.get(["a", "b"])) == ["a"]


# -- processes -----------------------------------------------------------------------------------------

WRITER = """
import sys
from tadropedge.lab.search.store import Store
with Store(sys.argv[1]) as store:
    for number in range(int(sys.argv[3])):
        store.put("trial", {f"{sys.argv[2]}{number}": {"number": number}, f"both{number}": {"number": number}})
        print(number, flush=True)
"""


def writer(folder, name, count):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), name, str(count)], stdout=subprocess.PIPE, text=True
    )


def test_two_processes_share_a_folder_and_lose_nothing(tmp_path):
    folder = tmp_path / "not there yet"
    both = [writer(folder, name, 60) for name in "ab"]
    for each in both:
        assert len(each.communicate(timeout=120)[0].split()) == 60
        assert each.returncode == 0
    with Store(folder) as store:
        keys = [f"{name}{number}" for name in ("a", "b", "both") for number in range(60)]
        assert {key: row["number"] for key, row in store.get(keys).items()} == {
            f"{name}{number}": number for name in ("a", "b", "both") for number in range(60)
        }


@pytest.mark.parametrize("wait", [1, 7, 31])
def test_a_kill_loses_nothing_that_was_finished(wait, tmp_path):
    process = writer(tmp_path, "a", 100_000)
    done = [int(process.stdout.readline()) for _ in range(wait)][-1]
    time.sleep(wait / 1000)
    os.kill(process.pid, signal.SIGKILL)
    done = max([done, *map(int, process.stdout.read().split("\n")[:-1])])
    process.communicate()
    with Store(tmp_path) as store:
        keys = [f"a{number}" for number in range(done + 1)]
        assert {key: row["number"] for key, row in store.get(keys).items()} == dict(
            zip(keys, range(done + 1), strict=True)
        )
        store.put("trial", {"next": ROW})
        same(store.get(["next"])["next"], ROW)


# -- damage --------------------------------------------------------------------------------------------


def test_one_flipped_bit_is_a_missing_row_or_one_line(tmp_path, caplog):
    whole = filled(tmp_path / "whole").read_bytes()
    wanted = {f"key{number}": {**ROW, "replicate": number} for number in range(3)}
    (tmp_path / "changed").mkdir()
    fates, refusals = {"the same": 0, "missing": 0}, []
    places = np.random.default_rng(0).permutation(len(whole))[:400]
    used = [place for place in range(len(whole)) if whole[place]][::40]  # most of a file is empty
    for place in {*places.tolist(), *used}:
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        (tmp_path / "changed" / NAME).write_bytes(changed)
        try:
            with Store(tmp_path / "changed") as store:
                found = store.get(wanted)
        except TadropedgeError as error:
            refusals.append(str(error))
        else:
            for key, row in found.items():
                same(row, wanted[key])
            fates["the same" if len(found) == 3 else "missing"] += 1
    assert all(fates.values())
    assert refusals
    assert all(NAME in said and "\n" not in said for said in refusals)
    assert any("damaged" in record.message for record in caplog.records)


def test_a_damaged_row_is_replaced(tmp_path):
    database = sqlite3.connect(filled(tmp_path))
    database.execute("update results set content = replace(content, '0.75', '0.76') where key = 'key1'")
    database.commit()
    database.close()
    with Store(tmp_path) as store:
        assert list(store.get(["key0", "key1", "key2"])) == ["key0", "key2"]
        store.put("trial", {"key1": ROW})
        same(store.get(["key1"])["key1"], ROW)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7])
def test_a_file_that_was_cut_off_is_one_line_that_says_how_to_go_on(share, tmp_path):
    file = filled(tmp_path, 40)
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    refused(tmp_path, "move it away")


def test_a_file_that_is_removed_while_it_is_open_is_not_written_to_nowhere(tmp_path):
    with Store(tmp_path / "one") as store:
        shutil.move(tmp_path / "one", tmp_path / "two")
        with pytest.raises(TadropedgeError, match="moved or removed"):
            store.put("trial", {"a": ROW})
        filled(tmp_path / "one")
        with pytest.raises(TadropedgeError, match="moved or removed"):
            store.put("trial", {"a": ROW})


# -- files of others, folders without rights, full disks -----------------------------------------------


def foreign_database(path):
    made = sqlite3.connect(path)
    made.executescript("create table thesis (chapter text); insert into thesis values ('one')")
    made.close()


@pytest.mark.parametrize("kind", ["text", "empty", "database", "symbolic link", "hard link", "broken link", "folder"])
def test_no_file_of_somebody_else_is_touched(kind, tmp_path):
    folder, thesis = tmp_path / "results", tmp_path / "thesis.tex"
    folder.mkdir()
    foreign_database(thesis) if kind == "database" else thesis.write_text("" if kind == "empty" else r"\chapter{One}")
    before = thesis.read_bytes()
    if kind == "folder":
        (folder / NAME).mkdir()
    elif kind == "hard link":
        os.link(thesis, folder / NAME)
    elif kind.endswith("link"):
        (folder / NAME).symlink_to(thesis if kind == "symbolic link" else tmp_path / "nowhere")
    else:
        shutil.copyfile(thesis, folder / NAME)
    refused(folder, "no store of trials")
    assert thesis.read_bytes() == before
    assert [each.name for each in folder.iterdir()] == [NAME]
    if kind in ("text", "empty", "database"):
        assert (folder / NAME).read_bytes() == before
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_no_file_beside_it_is_touched_either(there, end, tmp_path):
    if there:
        filled(tmp_path)
    notes = tmp_path / f"{NAME}{end}"
    notes.write_text("my notes of what happened")
    refused(tmp_path, "in the way")
    assert notes.read_text() == "my notes of what happened"


def without_rights(folder):
    """What a user is told who may not write into a folder."""
    if os.geteuid() == 0:
        os.setuid(65534)
    refused(folder, "cannot be written|cannot write")


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_that_cannot_be_written(there, tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    if there:
        filled(folder).chmod(0o444)
    for each in (tmp_path.parents[1], tmp_path.parents[0], tmp_path):
        each.chmod(0o755)
    folder.chmod(0o555)
    process = multiprocessing.get_context("fork").Process(target=without_rights, args=(folder,))
    process.start()
    process.join()
    folder.chmod(0o755)
    assert process.exitcode == 0


def test_a_full_disk_is_one_line_and_what_was_finished_is_kept(tmp_path):
    file = filled(tmp_path)
    store, limits = Store(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * file.stat().st_size, limits[1]))
    try:
        with pytest.raises(TadropedgeError, match=r"full|written") as caught:
            store.put("trial", {"large": {"values": np.random.default_rng(0).random(100_000)}})
        assert "\n" not in str(caught.value)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with store:
        same(store.get(["key0"])["key0"], {**ROW, "replicate": 0})
        assert store.get(["large"]) == {}
        store.put("trial", {"small": ROW})
    with Store(tmp_path) as again:
        assert list(again.get(["key0", "key1", "key2", "small", "large"])) == ["key0", "key1", "key2", "small"]
