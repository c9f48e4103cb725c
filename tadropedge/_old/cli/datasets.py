"""``tadropedge datasets``: which data can be named, and which of them are on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tadropedge._old.checks import PYG
from tadropedge._old.cli.options import Json_, Plugin_, Root_
from tadropedge._old.cli.report import show
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.registry import DATASETS

if TYPE_CHECKING:  # torch is loaded when the command runs
    from rich.console import RenderableType

    from tadropedge._old.data import Dataset

DEPTH = 5  # folders below that of the data, which are looked through for files
MOST = 2**28  # bytes of a file that is read only to be listed
MADE, OWN, OGB = "made when asked for", "your own", "Open Graph Benchmark"
USES = {
    "karate": "a first try",
    "clusters": "a first try that trains in seconds",
    "noisy-clusters": "random edges among clusters",
    "grid": "a sparse graph: a regular grid",
    "roads": "a sparse graph: streets and dead ends",
    "source-localization": "the paper's signals on a graph",
}
COLUMNS = ("name", "nodes", "edges", "features", "classes", "homophily", "good for")


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A dataset in one line: counts and ``homophily`` are computed where the data are here, else as published or none.

    ``where`` is the file or folder below that of the data, ``None`` where nothing is here; ``problem`` says why it is
    not read.
    """

    name: str
    use: str
    nodes: int | None = None
    edges: int | None = None
    features: int | None = None
    classes: int | None = None
    homophily: float | None = None
    here: bool = False
    where: str | None = None
    problem: str | None = None


def datasets_command(data_root: Root_ = None, plugin: Plugin_ = None, as_json: Json_ = False) -> None:
    """List the datasets: names, sizes, homophily, what each is good for, and what is on this machine.

    Homophily, the share of edges whose ends have the same label, is computed from data that are here; sizes of others
    are as published. Paths are below the folder of the data, where commands look for them, too.
    """
    del plugin  # its callback has imported them
    from tadropedge._old.data.planetoid import data_root as folder_of

    top = folder_of(data_root)
    if data_root is not None and not top.is_dir():
        raise TadropedgeError(f"data_root must be a folder with datasets, got '{top}'")
    found = list(listing(top))
    document = {"data_root": str(top), "datasets": [asdict(each) for each in found]}
    show(document, as_json, _page(found, top))


def listing(top: Path) -> Iterator[Listed]:
    """Every dataset that can be named: those with a name, those of PyTorch Geometric, and the files below ``top``."""
    from tadropedge._old.data.planetoid import NAMES, citation_files
    from tadropedge._old.data.pyg_sets import SETS, located

    known = set()
    for name in DATASETS:
        files = citation_files(name, top) if name in NAMES else []
        whole = all(path.is_file() for path in files)
        yield _filled(
            _built_in(name, _below(files[0].parent, top) if whole and files else MADE if whole else None), top
        )
    for entry in SETS.values():
        if entry.reader == "planetoid":
            continue
        path = located(entry, top)
        row = Listed(name=PYG + entry.name, use=entry.use, **_sizes(entry.sizes))
        if path is None:
            yield row
            continue
        known.add(path.resolve())
        size = sum(each.stat().st_size for each in path.parent.iterdir() if each.is_file())
        row = replace(row, here=True, where=_below(path.parent, top))
        yield row if size > MOST else _filled(row, top, split="random", per_class=1)
    yield from _files(top, known)


def _built_in(name: str, where: str | None) -> Listed:
    from tadropedge._old.data.planetoid import NAMES
    from tadropedge._old.data.pyg_sets import SETS

    if name not in NAMES:
        return Listed(name=name, use=USES.get(name, OWN), here=True, where=where)
    entry = SETS[f"Planetoid/{NAMES[name]}"]
    return Listed(name=name, use=entry.use, **_sizes(entry.sizes), here=where is not None, where=where)


def _sizes(sizes: tuple[int, int, int, int]) -> dict[str, Any]:
    return dict(zip(("nodes", "edges", "features", "classes"), sizes, strict=True))


def _filled(row: Listed, top: Path, **options: Any) -> Listed:
    """The same with what the data show, if they are here and ours to load; a problem is told, and ends nothing."""
    from tadropedge._old.data import load_dataset

    loader = DATASETS.get(row.name)
    module = getattr(getattr(loader, "func", loader), "__module__", "tadropedge")
    if not row.here or not module.startswith("tadropedge"):  # a user's own loader may take its time
        return row
    try:
        return replace(row, **_facts(load_dataset(row.name, top, **options)))
    except TadropedgeError as error:
        return replace(row, problem=str(error))


def _facts(data: Dataset) -> Mapping[str, Any]:
    graph = data.graph
    counts = _sizes((graph.num_nodes, graph.num_edges, data.num_features, data.num_classes))
    return counts | {"homophily": data.homophily}


def _files(top: Path, known: set[Path]) -> Iterator[Listed]:
    """Files of arrays with features and labels, and folders of OGB, by paths that every command finds."""
    from tadropedge._old.data import load_file
    from tadropedge._old.files.ogb import is_ogb

    for folder, inner, files in os.walk(top):
        place = Path(folder)
        depth = len(place.relative_to(top).parts)
        inner[:] = sorted(name for name in inner if not name.startswith(".")) if depth < DEPTH else []
        if is_ogb(place):
            inner[:] = []
            yield Listed(name=_below(place, top), use=OGB, here=True, where=_below(place, top))
        for path in sorted(place / name for name in files if name.endswith(".npz")):
            if path.resolve() in known or not _labelled(path):
                continue
            row = Listed(name=_below(path, top), use=OWN, here=True, where=_below(path, top))
            try:
                large = path.stat().st_size > MOST
                yield row if large else replace(row, **_facts(load_file(path, split="random", per_class=1)))
            except TadropedgeError as error:
                yield replace(row, problem=str(error))


def _labelled(path: Path) -> bool:
    """Whether a file has arrays of features and labels."""
    from tadropedge._old.files.npz import LAYOUTS, read_arrays

    try:
        names = set(read_arrays(path, set())[1])
    except TadropedgeError:
        return False
    return any(each.labels in names and (each.features in names or each.sparse <= names) for each in LAYOUTS)


def _below(path: Path, top: Path) -> str:
    return path.relative_to(top).as_posix()


def _page(found: list[Listed], top: Path) -> Iterator[RenderableType]:
    here, absent = ([row for row in found if row.here is wanted] for wanted in (True, False))
    yield _table(f"On this machine, below {top}", here)
    if absent:
        yield _table("Not here: sizes as published, of directed graphs before they are made undirected", absent)
        yield (
            "cora, citeseer and pubmed (pyg:Planetoid/Cora and so on) are downloaded when they are first used. "
            "The others are not: torch_geometric.datasets.CLASS(root, NAME) downloads them."
        )
    yield "Name one, or a path above or of your own: tadropedge compare graphs/mine.npz"


def _table(caption: str, rows: list[Listed]) -> RenderableType:
    from tadropedge._old.publish.tables import Table
    from tadropedge._old.publish.terminal import terminal_table

    made = terminal_table(Table(caption, COLUMNS, [_cells(row) for row in rows], left=(0, len(COLUMNS) - 1)))
    made.columns[0].no_wrap = True  # a name is there to be copied
    made.columns[0].min_width = max(len(row.name) for row in rows)
    return made


def _cells(row: Listed) -> tuple[str, ...]:
    counts = ("-" if count is None else f"{count:,}" for count in (row.nodes, row.edges, row.features, row.classes))
    share = "-" if row.homophily is None else f"{row.homophily:.2f}"
    place = "" if row.where in (None, row.name, MADE) else f" ({row.where})"
    return (row.name, *counts, share, f"{row.use}{place}" + (f": {row.problem}" if row.problem else ""))
