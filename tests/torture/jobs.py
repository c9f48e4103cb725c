"""The commands that are disturbed; what an undisturbed run of each leaves; what must hold after a disturbed one."""

import json
import sqlite3
import zipfile
from contextlib import closing
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
from torture.process import DIED, command, contents, refused

from tadropedge.lab import Store
from tadropedge.lab.training.callbacks import Checkpoint
from tadropedge.lab.training.model import load

COMMANDS = {
    "compare": "compare karate --methods dropedge --trials 2 --replicates 2 --epochs 3 --hidden 4 --out out --json",
    "train": "train karate --method cdf@0.7 --epochs 12 --hidden 4 --out out --json",
    "weights": "weights edges.csv --q 2 --out out --json",
}
EDGES = "a,b\n0,1\n1,2\n2,0\n2,3\n3,4\n10,11\n11,12\n12,13\n13,10\n13,11\n"
EPOCHS = "epochs"  # the file where the child notes every epoch that it trains
TIMES = ("seconds", "seconds_per_epoch", "peak_bytes", "cheaper", "run", "sure")  # differ from run to run


def begin(job, folder):
    """What lies in the folder before a command."""
    (folder / "edges.csv").write_text(EDGES)


def run(job, folder, disturb=lambda: None):
    """Run it; ``disturb`` is called in its process first."""
    return command(COMMANDS[job], folder, lambda: (prepare(), disturb()))


def prepare(every=0.0):
    """In the child: a checkpoint after every epoch, a note of each, and pictures that are drawn quickly."""
    from matplotlib.figure import Figure

    Checkpoint.__init__.__defaults__ = (every,)
    Figure.savefig = lambda figure, stream, **_: stream.write(f"{len(figure.axes)} axes".encode())
    noted, whole = Path(EPOCHS).absolute().open("a"), Checkpoint.epoch

    def epoch(checkpoint, run):
        noted.write(f"{run.epoch}\n")
        noted.flush()
        whole(checkpoint, run)

    Checkpoint.epoch = epoch


def epochs(folder):
    """The epochs that were trained since this was last asked."""
    path = folder / EPOCHS
    found = [int(line) for line in path.read_text().split()] if path.exists() else []
    path.unlink(missing_ok=True)
    return found


@cache
def whole(job):
    """What an undisturbed run leaves, and its seconds."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        begin(job, folder)
        ended = run(job, folder)
        assert ended.code == 0, ended
        return SimpleNamespace(files=results(folder), seconds=ended.seconds, epochs=epochs(folder))


def results(folder):
    """What a command has left, file by file, less what differs from run to run."""
    out, found = folder / "out", {}
    for name, content in contents(out).items():
        path = out / name
        if path.suffix == ".training":  # of a process that died between writing a result down and removing this
            continue
        if path.suffix == ".json":
            found[name] = _timeless(json.loads(content))
        elif path.suffix == ".db":
            found[name] = rows(out)
        elif path.suffix == ".npz":
            with np.load(BytesIO(content)) as arrays:
                found[name] = {key: arrays[key].tolist() for key in arrays.files if key not in (*TIMES, "checksum")}
        elif path.suffix == ".safetensors":
            found[name] = model(out)
        elif path.suffix != ".html" and name != ".tadropedge.lock":
            found[name] = content
    return found


def _timeless(value):
    if isinstance(value, dict):
        return {key: _timeless(each) for key, each in value.items() if key not in TIMES}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


def rows(folder, times=False):
    """The finished trainings of a store, to the bit; those whose checksum is wrong are none."""
    with closing(sqlite3.connect(f"file:{folder / 'trials.db'}?mode=ro", uri=True)) as database:
        keys = [key for (key,) in database.execute("select key from results where kind = 'trial'")]
    with Store(folder) as store:
        found = store.get(keys)
    left_out = () if times else TIMES
    return {
        key: {name: repr(np.asarray(value).tolist()) for name, value in row.items() if name not in left_out}
        for key, row in found.items()
    }


def model(folder):
    """A model to the bit."""
    found = load(folder / "model.safetensors")
    return {"trial": found.trial.as_dict()} | {name: value.tolist() for name, value in found.state.items()}


def check_disturbed(job, ended, folder):
    """It died, stopped with one line, or did it all; whatever lies there is whole; return the finished rows."""
    assert "Traceback" not in ended.err, ended
    if ended.code == 0:
        assert results(folder) == whole(job).files
    elif ended.code == 130:
        assert ended.lines[-1].startswith("stopped"), ended
        assert not any(line.startswith("error") for line in ended.lines), ended
    elif ended.code not in (DIED, -9):
        refused(ended)
    out = folder / "out"
    for path in out.glob("[!.]*"):
        if path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".npz":
            assert zipfile.ZipFile(path).testzip() is None
    if (out / "model.safetensors").exists():
        assert model(out) == whole("train").files["model.safetensors"]
    return rows(out, times=True) if (out / "trials.db").exists() else {}


def check_resumed(job, folder, before=None, checkpoints=True):
    """The same command again gives what an undisturbed run gives, and keeps what was finished."""
    done = (
        job.startswith("train") and results(folder) == whole(job).files
    )  # a model that is finished is trained again by who asks again
    ended = run(job, folder)
    assert ended.code == 0, ended
    again = len(epochs(folder)) - len(whole(job).epochs)
    assert again <= 1 or done or not checkpoints, f"{again} epochs were trained again"
    found, expected = results(folder), whole(job).files
    assert found.keys() == expected.keys()
    for name, content in expected.items():
        assert found[name] == content, f"{name} differs"
    if "trials.db" in found:
        with closing(sqlite3.connect(folder / "out" / "trials.db")) as database:
            assert database.execute("pragma integrity_check").fetchall() == [("ok",)]
    kept = rows(folder / "out", times=True) if before else {}
    assert all(kept[key] == row for key, row in (before or {}).items()), "what was finished was trained again"
