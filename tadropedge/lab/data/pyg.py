"""The datasets of PyTorch Geometric that are one graph of labelled nodes, read by its own classes.

``pyg:Amazon/Photo`` is ``torch_geometric.datasets.Amazon(root, "Photo")[0]``; ``cora`` is ``pyg:Planetoid/Cora`` with
normalised features. Raw files are looked for below the folder ``TADROPEDGE_DATA`` in PyTorch Geometric's own layout,
``CLASS/NAME/raw``; what is not there is downloaded. A class writes ``processed/`` beside its raw files, so it is given
a copy of them in the cache, and the user's folder stays as it is.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from tadropedge._support.atomic import make_folder
from tadropedge._support.fingerprint import fingerprint
from tadropedge.errors import TadropedgeError, lookup, show
from tadropedge.lab.data.contents import load_object
from tadropedge.lab.data.dataset import Dataset
from tadropedge.lab.data.splits import NUM_VAL, Given, Split

PREFIX = "pyg:"


@dataclass(frozen=True)
class KnownSet:
    """A line of the table: ``CLASS/NAME``, its nodes, edges, features and classes, and what it is good for."""

    name: str
    sizes: tuple[int, int, int, int]
    use: str


CITED, BOUGHT, WROTE, FLIGHTS = "citations", "co-purchases, dense", "co-authors, wide features", "flights, no features"
PAGES, FRIENDS, STREAMS, TINY = "heterophily, copies of nodes", "friendships", "friendships, dense", "heterophily, tiny"
HETERO = "HeterophilousGraphDataset"
SETS = {f"{PREFIX}{each.name}": each for each in (
    KnownSet("Planetoid/Cora", (2708, 5278, 1433, 7), CITED),
    KnownSet("Planetoid/CiteSeer", (3327, 4552, 3703, 6), CITED),
    KnownSet("Planetoid/PubMed", (19717, 44324, 500, 3), CITED),
    KnownSet("CitationFull/Cora", (19793, 63421, 8710, 70), "citations, 70 classes"),
    KnownSet("CitationFull/Cora_ML", (2995, 8158, 2879, 7), CITED),
    KnownSet("CitationFull/CiteSeer", (4230, 5337, 602, 6), "citations, sparse"),
    KnownSet("CitationFull/DBLP", (17716, 52867, 1639, 4), CITED),
    KnownSet("CitationFull/PubMed", (19717, 44324, 500, 3), CITED),
    KnownSet("Amazon/Computers", (13752, 245861, 767, 10), BOUGHT),
    KnownSet("Amazon/Photo", (7650, 119081, 745, 8), BOUGHT),
    KnownSet("Coauthor/CS", (18333, 81894, 6805, 15), WROTE),
    KnownSet("Coauthor/Physics", (34493, 247962, 8415, 5), WROTE),
    KnownSet(f"{HETERO}/Roman-empire", (22662, 32927, 300, 18), "heterophily, a long chain"),
    KnownSet(f"{HETERO}/Amazon-ratings", (24492, 93050, 300, 5), "heterophily, many triangles"),
    KnownSet(f"{HETERO}/Minesweeper", (10000, 39402, 7, 2), "a grid, ROC AUC"),
    KnownSet(f"{HETERO}/Tolokers", (11758, 519000, 10, 2), "very dense, ROC AUC"),
    KnownSet(f"{HETERO}/Questions", (48921, 153540, 301, 2), "a rare class, ROC AUC"),
    KnownSet("WikipediaNetwork/chameleon", (2277, 31371, 2325, 5), PAGES),
    KnownSet("WikipediaNetwork/squirrel", (5201, 198353, 2089, 5), PAGES),
    KnownSet("WebKB/Cornell", (183, 277, 1703, 5), TINY),
    KnownSet("WebKB/Texas", (183, 279, 1703, 5), TINY),
    KnownSet("WebKB/Wisconsin", (251, 450, 1703, 5), TINY),
    KnownSet("Actor", (7600, 26659, 932, 5), "heterophily"),
    KnownSet("WikiCS", (11701, 216123, 300, 10), "hyperlinks, dense, 20 splits"),
    KnownSet("Flickr", (89250, 449878, 500, 7), "large"),
    KnownSet("Reddit", (232965, 57307946, 602, 41), "large, very dense"),
    KnownSet("Reddit2", (232965, 11606919, 602, 41), "large, dense"),
    KnownSet("Airports/Brazil", (131, 1038, 131, 4), FLIGHTS),
    KnownSet("Airports/Europe", (399, 5995, 399, 4), FLIGHTS),
    KnownSet("Airports/USA", (1190, 13599, 1190, 4), FLIGHTS),
    KnownSet("GitHub", (37700, 289003, 128, 2), FRIENDS),
    KnownSet("FacebookPagePage", (22470, 171002, 128, 4), "pages that like each other"),
    KnownSet("DeezerEurope", (28281, 92752, 128, 2), "friendships, sparse"),
    KnownSet("LastFMAsia", (7624, 27806, 128, 18), "friendships, many classes"),
    KnownSet("Twitch/DE", (9498, 153138, 128, 2), STREAMS),
    KnownSet("Twitch/EN", (7126, 35324, 128, 2), STREAMS),
    KnownSet("Twitch/ES", (4648, 59382, 128, 2), STREAMS),
    KnownSet("Twitch/FR", (6551, 112666, 128, 2), STREAMS),
    KnownSet("Twitch/PT", (1912, 31299, 128, 2), STREAMS),
    KnownSet("Twitch/RU", (4385, 37304, 128, 2), STREAMS),
)}  # fmt: skip


def load_pyg(name: str, *, normalize: bool = False, seed: int = 0) -> Dataset:
    """Load ``pyg:CLASS/NAME``, or ``pyg:CLASS`` where the class is one graph."""
    kind, own = _class_and_name(name)
    dataset = load_object(_read(kind, own), normalize=normalize, seed=seed)
    words = (re.sub(r"(?<=[a-z])(?=[A-Z])", "_", part) for part in (kind, own) if part)
    dataset = replace(dataset, name="_".join(words).lower().replace("-", "_"), read="")
    return _as_in_the_paper(dataset) if kind == "Planetoid" else dataset


def _planetoid(own: str, seed: int = 0, normalize: bool = True) -> Dataset:
    """A citation set, by default with normalised features, as the paper has it."""
    return replace(load_pyg(f"{PREFIX}Planetoid/{own}", normalize=normalize, seed=seed), name=own.lower())


cora, citeseer, pubmed = (partial(_planetoid, own) for own in ("Cora", "CiteSeer", "PubMed"))


def _as_in_the_paper(dataset: Dataset) -> Dataset:
    """The paper's full split besides the public one: all labelled nodes before the test nodes train, 500 validate.

    Nodes that have no row in the files, 15 of CiteSeer among the test nodes, have no label.
    """
    test = dataset.given["own"].splits[0].test
    first = int(test.min())
    full = Split(torch.arange(first - NUM_VAL), torch.arange(first - NUM_VAL, first), test)
    labels = dataset.labels.clone()
    labels[first:] = -1
    labels[test] = dataset.labels[test]
    return replace(dataset, labels=labels, given={**dataset.given, "full": Given((full,))})


# -- where files lie -------------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Where this package keeps what it can make again: ``tadropedge`` in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tadropedge"


def data_folder() -> Path:
    """The folder with all data: ``TADROPEDGE_DATA``, else the cache."""
    return Path(os.environ.get("TADROPEDGE_DATA") or cache_folder())


def raw_folder(name: str) -> Path | None:
    """The folder of ``CLASS/NAME`` with its raw files, where it is on this machine.

    Below ``TADROPEDGE_DATA`` it may be written in any letters, and its class by how its name begins:
    ``heterophilous/roman_empire``.
    """
    kind, own = _class_and_name(f"{PREFIX}{name}")
    for raw in sorted(data_folder().glob("*/*/raw" if own else "*/raw")):
        place = raw.parent
        called = place.parent.name if own else place.name
        if _plain(kind).startswith(_plain(called)) and (not own or _plain(place.name) == _plain(own)):
            return place
    return None


def _read(kind: str, own: str) -> Any:
    """The dataset of a class from a copy of its raw files in the cache, where it also leaves what it downloads."""
    import torch_geometric

    name = "/".join(filter(None, (kind, own)))
    place = raw_folder(name)
    files = [] if place is None else sorted(each for each in (place / "raw").rglob("*") if each.is_file())
    stamps = [(str(each), each.stat().st_size, each.stat().st_mtime_ns) for each in files]
    digest = fingerprint(files=stamps, version=torch_geometric.__version__)[:12]
    copy = cache_folder() / "pyg" / f"{name.replace('/', '-')}-{digest}"
    if copy.is_dir():
        return _made(kind, own, copy)
    make_folder(copy.parent)
    with tempfile.TemporaryDirectory(dir=copy.parent) as work:  # so that an interruption leaves nothing half done
        root = Path(work) / "root"
        if place is not None:
            shutil.copytree(place / "raw", root / own / "raw")
            small = own.lower().replace("-", "_")
            if small != own:  # some classes write their own names so
                (root / small).symlink_to(own)
        made = _made(kind, own, root)
        with suppress(OSError):  # another process was faster
            root.rename(copy)
    return made


def _made(kind: str, own: str, root: Path) -> Any:
    """Call the class; what goes wrong is one line that says where its files are looked for."""
    import torch_geometric.datasets

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a library about itself
            return getattr(torch_geometric.datasets, kind)(str(root), *filter(None, [own]))
    except Exception as error:  # of the network, of the disk, or of whatever the files hold
        first = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        raise TadropedgeError(
            f"{PREFIX}{'/'.join(filter(None, (kind, own)))} cannot be read or downloaded by PyTorch Geometric "
            f"({show(first, typed=False, longest=120)[1:-1]}); its raw files are looked for in "
            f"'{data_folder() / kind / own / 'raw'}', and TADROPEDGE_DATA names another folder of data"
        ) from error


def _class_and_name(name: str) -> tuple[str, str]:
    """Class and name as PyTorch Geometric writes them, from any letters, with - or _.

    >>> _class_and_name("pyg:amazon/photo"), _class_and_name("pyg:heterophilousgraphdataset/roman_empire")
    (('Amazon', 'Photo'), ('HeterophilousGraphDataset', 'Roman-empire'))
    """
    known = {_plain(each): each for each in SETS}
    found = known.get(_plain(name))
    if found is None:
        same = f"{_plain(name).partition('/')[0]}/"  # class
        lookup("dataset", name, {each: None for each in SETS if _plain(each).startswith(same)} or SETS)
    kind, _, own = str(found).removeprefix(PREFIX).partition("/")
    return kind, own


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
