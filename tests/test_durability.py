"""Files that are written whole or not at all, and are there after a failure of the power."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tadropedge.atomic import HOST, write_atomic
from tadropedge.errors import TadropedgeError
from tadropedge.paper.journal import _append


@pytest.fixture
def calls(monkeypatch):
    """What is moved and brought to the disk, in order."""
    seen, (replace, fsync) = [], (os.replace, os.fsync)
    monkeypatch.setattr(os, "replace", lambda a, b: (seen.append(("replace", Path(b).name)), replace(a, b)))

    def synced(number):
        seen.append(("fsync", Path(f"/proc/self/fd/{number}").readlink().name))
        fsync(number)

    monkeypatch.setattr(os, "fsync", synced)
    return seen


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are listed on Linux")
def test_a_file_its_name_and_its_new_folders_reach_the_disk(tmp_path, calls):
    write_atomic(tmp_path / "new" / "deep" / "file", b"content")
    named = [(what, "temporary" if name.endswith(".tmp") else name) for what, name in calls]
    folders = [("fsync", "new"), ("fsync", tmp_path.name)]
    assert named == [*folders, ("fsync", "temporary"), ("replace", "file"), ("fsync", "deep")]
    calls.clear()
    for _ in range(2):
        _append(b"line\n", tmp_path / "journal")
    assert calls == [("fsync", "journal"), ("fsync", tmp_path.name), ("fsync", "journal")]


def test_temporary_files_of_the_dead_are_removed_and_no_others(tmp_path):
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    dead, alive, elsewhere = (
        tmp_path / f".{name}.{host}.{process}.tmp"
        for name, host, process in (("a", HOST, ended.pid), ("b", HOST, os.getpid()), ("c", "elsewhere", ended.pid))
    )
    for path in (dead, alive, elsewhere):
        path.touch()
    write_atomic(tmp_path / "file", b"content")
    assert sorted(tmp_path.iterdir()) == sorted((alive, elsewhere, tmp_path / "file"))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the disk quota is used up"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EFBIG, "the file is larger than the file system, or a limit, allows"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_why_a_file_cannot_be_written(tmp_path, monkeypatch, number, words):
    path = tmp_path / "file"
    write_atomic(path, b"before")

    def fails(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(TadropedgeError) as caught:
        write_atomic(path, b"after")
    assert str(caught.value) == f"cannot write '{path}': {words}"
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("file", b"before")]
