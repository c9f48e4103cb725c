"""Datasets of PyTorch Geometric from raw files in its own folders; nothing is downloaded, nothing is unpickled.

Raw files that are plain arrays are read by :mod:`tadropedge._old.files`, which checks them; text is read by PyTorch
Geometric's own class. The files ``processed/*.pt`` that the class left, on this machine or elsewhere, are never opened:
PyTorch Geometric unpickles them with everything that they ask for.
"""

from __future__ import annotations

import inspect
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from torch import Tensor

from tadropedge._old.arrays import FORMATS, checked_parts
from tadropedge._old.checks import PYG, check_flag, check_integer
from tadropedge._old.data.dataset import Dataset
from tadropedge._old.data.features import row_normalized
from tadropedge._old.data.files import Contents, data_contents, made_dataset, read_contents
from tadropedge._old.data.planetoid import data_root
from tadropedge._old.data.pyg_sets import SETS, PygSet, folders, listed, located, places, short_name, suggestion
from tadropedge._old.errors import TadropedgeError, lookup, one_line, show
from tadropedge._old.files.npz import read_arrays

INSTEAD = "save its Data with torch.save and name that file, or pass it to tde.compare"
WHERE = "root='FOLDER' says where it is"
# What no reading of a file needs: Python tells of each before it happens.
FORBIDDEN = {
    "pickle.find_class": "unpickle",
    "socket.connect": "connect to",
    "subprocess.Popen": "start",
    "os.system": "run",
}


def pyg_name(name: str) -> str:
    """``pyg:CLASS/NAME`` as the table writes it; the citation sets of Planetoid are those of tadropedge.

    >>> pyg_name("pyg:amazon/photo"), pyg_name("pyg:Planetoid/Cora")
    ('pyg:Amazon/Photo', 'cora')
    """
    entry = listed(name)
    if entry is None:
        _, slash, own = name.partition("/")
        return f"{PYG}{_class_of(name).__name__}{slash}{own}"
    return entry.own.lower() if entry.reader == "planetoid" else PYG + entry.name


def load_pyg(
    name: str,
    root: str | Path | None = None,
    *,
    split: str | None = None,
    per_class: int = 20,
    seed: int = 0,
    normalize: bool = False,
) -> Dataset:
    """Load ``pyg:CLASS/NAME`` from raw files below ``root``; the other arguments are those of ``load_file``."""
    seed, per_class = check_integer("seed", seed, least=0), check_integer("per_class", per_class, least=1)
    normalize = check_flag("normalize", normalize)
    if split is not None:
        lookup("split", split, {"file": None, "random": None})
    entry, told = listed(name), name.removeprefix(PYG)
    try:
        contents = _read(entry, told, data_root(root), masks=split != "random")
        if normalize:
            contents = replace(contents, features=row_normalized(contents.features))
        return made_dataset(contents, short_name(entry.name if entry else told), split, per_class, seed)
    except TadropedgeError as error:
        text = str(error)
        raise type(error)(text if name in text else f"{name}: {text}") from error


def _read(entry: PygSet | None, told: str, top: Path, *, masks: bool) -> Contents:
    """What the raw files hold: by the reader of the table, by the class of PyTorch Geometric where it has none."""
    raw = None
    if entry is not None:
        found = located(entry, top)
        if found is None:
            _missing(entry.name, top, entry.file)
        if entry.reader == "npz":
            return read_contents(found, masks=masks)
        told, raw = entry.name, found.parent
    data = _data_of_class(told, top, raw)
    values = {key: value.detach().cpu() if isinstance(value, Tensor) else value for key, value in data.items()}
    return data_contents(values, None, PYG + told, masks=masks)


def _missing(name: str, top: Path, file: str) -> NoReturn:
    """Say where a dataset was looked for, and how to get it."""
    kind, _, own = name.partition("/")
    call = f"torch_geometric.datasets.{kind}('{top / kind}'{f', {own!r}' if own else ''})"
    raise TadropedgeError(
        f"{PYG}{name} is not below '{top}': expected {kind}/{file}, and nothing is downloaded unasked; in Python, "
        f"{call} downloads it; {WHERE}"
    )


def looked_for(entry: PygSet, root: str | Path | None = None) -> tuple[Path | None, Path]:
    """The raw file of a dataset where it is here, and where PyTorch Geometric would put it."""
    top = data_root(root)
    return located(entry, top), next(places(entry, top))


# -- by PyTorch Geometric's own class --------------------------------------------------------------------


def _class_of(name: str) -> Any:
    """The class that ``pyg:CLASS`` names, in any letters."""
    import torch_geometric.datasets
    from torch_geometric.data import Dataset as OfGraphs

    classes = vars(torch_geometric.datasets)
    known = {key: value for key, value in classes.items() if isinstance(value, type) and issubclass(value, OfGraphs)}
    kind, _, own = name.removeprefix(PYG).partition("/")
    found = next((value for key, value in known.items() if key.lower() == kind.lower()), None)
    if found is None:
        close = suggestion(name, [PYG + each for each in SETS]) or suggestion(
            PYG + kind, [PYG + each for each in known]
        )
        raise TadropedgeError(
            f"unknown dataset {show(name, typed=False)}{close}: expected {PYG}CLASS/NAME of PyTorch Geometric; "
            "tadropedge datasets lists them"
        )
    arguments = inspect.signature(found).parameters
    needed = {key for key, each in arguments.items() if each.default is each.empty} - {"root", "name", "kwargs"}
    if "root" not in arguments or needed:
        why = f"needs {', '.join(sorted(needed))}" if needed else "is not read from files"
        raise TadropedgeError(f"{name}: {found.__name__} of PyTorch Geometric {why}: {INSTEAD}")
    if bool(own) != ("name" in arguments):
        form = f"{found.__name__}/NAME" if "name" in arguments else found.__name__
        raise TadropedgeError(f"unknown dataset {show(name, typed=False)}: expected {PYG}{form}")
    return found


def _data_of_class(told: str, top: Path, raw: Path | None) -> Mapping[str, Any]:
    """The one graph that a class makes of its raw files, in the folder ``raw`` or where it looks below ``top``."""
    from torch_geometric.data import Data

    made, own = _class_of(PYG + told), told.partition("/")[2]
    expected = ""
    for folder in folders(told):
        try:
            with tempfile.TemporaryDirectory() as processed, _guarded(told), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a library about itself
                sealed = _sealed(made, raw, processed)
                graphs = sealed(str(top / folder), **({"name": own} if own else {}))
                if len(graphs) != 1 or not isinstance(graphs[0], Data):
                    raise TadropedgeError(f"expected one graph with one kind of nodes, got {len(graphs)}: {INSTEAD}")
                return dict(graphs[0].to_dict())
        except FileNotFoundError as error:
            expected = expected or str(error.filename or error)
            if raw is not None:
                break
    _missing(told, top, _below(expected, top / made.__name__))


def _below(path: str, folder: Path) -> str:
    return path.removeprefix(f"{folder}/")


def _sealed(made: Any, raw: Path | None, processed: str) -> Any:
    """The class, with a folder of its own for what it makes of the raw files, of which none is downloaded."""

    class Sealed(made):  # type: ignore[misc]
        processed_dir = processed
        raw_dir = made.raw_dir if raw is None else str(raw)
        log = property(lambda self: False, lambda self, value: None)
        kept: Any = None

        def _download(self) -> None:
            for path in map(Path, self.raw_paths):
                if not path.is_file():
                    raise FileNotFoundError(2, "no such file", str(path))
                _check_matrix(path)

        def download(self) -> None:
            raise FileNotFoundError(2, "nothing is downloaded", self.raw_dir)

        def _process(self) -> None:
            self.process()

        @classmethod
        def save(cls, data_list: Any, path: str) -> None:
            cls.kept = data_list

        def load(self, path: str, *rest: Any, **more: Any) -> None:
            if self.kept is None:  # the class wrote the file itself, a moment ago
                super().load(path, *rest, **more)
            else:
                self.data, self.slices = self.collate(list(self.kept))

    return Sealed


def _check_matrix(path: Path) -> None:
    """Check the matrix of an ``.npz`` file before compiled code takes its indices for granted."""
    if path.suffix != ".npz":
        return
    parts = {part for names in FORMATS.values() for part in names}
    arrays, _ = read_arrays(path, {"shape", *parts})
    for kind in ("csr", "coo"):
        if {"shape", *FORMATS[kind]} <= set(arrays):
            checked_parts(kind, [arrays[part] for part in FORMATS[kind]], arrays["shape"], path.name)


# -- what may not happen meanwhile -----------------------------------------------------------------------


class Guard(threading.local):
    """Whether this thread reads files that are not trusted, and what they asked for."""

    on: bool = False
    refused: str | None = None


GUARD = Guard()


def _watched(event: str, arguments: tuple[Any, ...]) -> None:
    if GUARD.on and event in FORBIDDEN:
        what = ".".join(map(str, arguments)) if event == "pickle.find_class" else " ".join(map(str, arguments[-1:]))
        GUARD.refused = f"{FORBIDDEN[event]} {what}"
        raise TadropedgeError(f"reading it would {GUARD.refused}")


@cache
def _install() -> None:
    sys.addaudithook(_watched)  # for good: Python has no way to remove one


@contextmanager
def _guarded(told: str) -> Iterator[None]:
    """Let nothing be unpickled or fetched in this thread, and say in one line what went wrong."""
    _install()
    GUARD.on, GUARD.refused = True, None
    try:
        yield
    except (FileNotFoundError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, TadropedgeError) and GUARD.refused is None:
            raise
        silent = "is that its name?" if isinstance(error, AssertionError) else "it says no more"
        words = one_line(" ".join(str(error).split())) or silent
        why = f"would {GUARD.refused}" if GUARD.refused else f"fails ({type(error).__name__}: {words})"
        raise TadropedgeError(f"{PYG}{told}: reading it by PyTorch Geometric {why}: {INSTEAD}") from error
    finally:
        GUARD.on = False
    if GUARD.refused is not None:
        raise TadropedgeError(f"{PYG}{told}: reading it by PyTorch Geometric would {GUARD.refused}: {INSTEAD}")
