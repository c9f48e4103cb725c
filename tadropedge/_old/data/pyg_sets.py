"""The datasets of PyTorch Geometric that are one graph of labelled nodes: their names, and where their raw files lie.

``pyg:Amazon/Photo`` is ``torch_geometric.datasets.Amazon(root, "Photo")``. A line of ``SETS`` is all that a further one
needs; :mod:`tadropedge._old.data.pyg_files` reads it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from tadropedge._old.checks import PYG
from tadropedge._old.errors import TadropedgeError, show

Sizes = tuple[int, int, int, int]

CITED, BOUGHT, WROTE = "citations, homophilous", "co-purchases, dense", "co-authors, wide features"
PAGES, FRIENDS = "heterophily; many nodes are copies", "friendships"
FLIGHTS = "no features but the node itself"
WEB, STREAMS = "heterophily; very small", "friendships, dense"


@dataclass(frozen=True)
class PygSet:
    """One dataset: a line of the table.

    * ``name``: ``CLASS/NAME`` as PyTorch Geometric writes them, or ``CLASS`` where the class is one dataset;
    * ``file``: the raw file that tells whether it is here, below the ``root`` of the class;
    * ``sizes``: nodes, edges, features and classes as published, for those that are not here;
    * ``use``: what it is good for, in a few words;
    * ``reader``: who reads its raw files: ``"npz"``, our reader of plain arrays; ``"planetoid"``, our reader of the
      citation sets' pickles; ``"class"``, PyTorch Geometric's own class, which for these reads text and plain arrays.

    >>> photo = SETS["Amazon/Photo"]
    >>> photo.kind, photo.own, photo.short
    ('Amazon', 'Photo', 'amazon_photo')
    """

    name: str
    file: str
    sizes: Sizes
    use: str
    _: KW_ONLY
    reader: str = "npz"

    @property
    def kind(self) -> str:
        """The class."""
        return self.name.partition("/")[0]

    @property
    def own(self) -> str:
        """The name that the class is given, or nothing."""
        return self.name.partition("/")[2]

    @property
    def short(self) -> str:
        """What a ``Dataset`` of it is called, in reports and names of folders."""
        return short_name(self.name)


SETS = {each.name: each for each in (
    PygSet("Planetoid/Cora", "Cora/raw/ind.cora.graph", (2708, 5278, 1433, 7), CITED, reader="planetoid"),
    PygSet("Planetoid/CiteSeer", "CiteSeer/raw/ind.citeseer.graph", (3327, 4552, 3703, 6), CITED, reader="planetoid"),
    PygSet("Planetoid/PubMed", "PubMed/raw/ind.pubmed.graph", (19717, 44324, 500, 3), CITED, reader="planetoid"),
    PygSet("CitationFull/Cora", "cora/raw/cora.npz", (19793, 63421, 8710, 70), "citations, 70 classes"),
    PygSet("CitationFull/Cora_ML", "cora_ml/raw/cora_ml.npz", (2995, 8158, 2879, 7), CITED),
    PygSet("CitationFull/CiteSeer", "citeseer/raw/citeseer.npz", (4230, 5337, 602, 6), CITED + ", sparse"),
    PygSet("CitationFull/DBLP", "dblp/raw/dblp.npz", (17716, 52867, 1639, 4), CITED),
    PygSet("CitationFull/PubMed", "pubmed/raw/pubmed.npz", (19717, 44324, 500, 3), CITED),
    PygSet("Amazon/Computers", "Computers/raw/amazon_electronics_computers.npz", (13752, 245861, 767, 10), BOUGHT),
    PygSet("Amazon/Photo", "Photo/raw/amazon_electronics_photo.npz", (7650, 119081, 745, 8), BOUGHT),
    PygSet("Coauthor/CS", "CS/raw/ms_academic_cs.npz", (18333, 81894, 6805, 15), WROTE),
    PygSet("Coauthor/Physics", "Physics/raw/ms_academic_phy.npz", (34493, 247962, 8415, 5), WROTE),
    PygSet("HeterophilousGraphDataset/Roman-empire", "roman_empire/raw/roman_empire.npz", (22662, 32927, 300, 18),
           "heterophily, a long chain"),
    PygSet("HeterophilousGraphDataset/Amazon-ratings", "amazon_ratings/raw/amazon_ratings.npz", (24492, 93050, 300, 5),
           "heterophily, many triangles"),
    PygSet("HeterophilousGraphDataset/Minesweeper", "minesweeper/raw/minesweeper.npz", (10000, 39402, 7, 2),
           "a grid; hidden features, ROC AUC"),
    PygSet("HeterophilousGraphDataset/Tolokers", "tolokers/raw/tolokers.npz", (11758, 519000, 10, 2),
           "very dense, ROC AUC"),
    PygSet("HeterophilousGraphDataset/Questions", "questions/raw/questions.npz", (48921, 153540, 301, 2),
           "a rare class, ROC AUC"),
    PygSet("WikipediaNetwork/chameleon", "chameleon/geom_gcn/raw/out1_node_feature_label.txt", (2277, 36101, 2325, 5),
           PAGES, reader="class"),
    PygSet("WikipediaNetwork/squirrel", "squirrel/geom_gcn/raw/out1_node_feature_label.txt", (5201, 217073, 2089, 5),
           PAGES, reader="class"),
    PygSet("WebKB/Cornell", "cornell/raw/out1_node_feature_label.txt", (183, 298, 1703, 5), WEB, reader="class"),
    PygSet("WebKB/Texas", "texas/raw/out1_node_feature_label.txt", (183, 325, 1703, 5), WEB, reader="class"),
    PygSet("WebKB/Wisconsin", "wisconsin/raw/out1_node_feature_label.txt", (251, 515, 1703, 5), WEB, reader="class"),
    PygSet("Actor", "raw/out1_node_feature_label.txt", (7600, 30019, 932, 5), "heterophily",
           reader="class"),
    PygSet("WikiCS", "raw/data.json", (11701, 216123, 300, 10), "hyperlinks, dense, 20 splits", reader="class"),
    PygSet("Flickr", "raw/adj_full.npz", (89250, 449878, 500, 7), "large", reader="class"),
    PygSet("Reddit", "raw/reddit_graph.npz", (232965, 57307946, 602, 41), "large, very dense", reader="class"),
    PygSet("Reddit2", "raw/adj_full.npz", (232965, 11606919, 602, 41), "large, dense", reader="class"),
    PygSet("Airports/Brazil", "brazil/raw/brazil-airports.edgelist", (131, 1038, 131, 4), FLIGHTS, reader="class"),
    PygSet("Airports/Europe", "europe/raw/europe-airports.edgelist", (399, 5995, 399, 4), FLIGHTS, reader="class"),
    PygSet("Airports/USA", "usa/raw/usa-airports.edgelist", (1190, 13599, 1190, 4), FLIGHTS, reader="class"),
    PygSet("GitHub", "raw/github.npz", (37700, 289003, 128, 2), FRIENDS),
    PygSet("FacebookPagePage", "raw/facebook.npz", (22470, 171002, 128, 4), "pages that like each other"),
    PygSet("DeezerEurope", "raw/deezer_europe.npz", (28281, 92752, 128, 2), FRIENDS + ", sparse"),
    PygSet("LastFMAsia", "raw/lastfm_asia.npz", (7624, 27806, 128, 18), FRIENDS + ", many classes"),
    PygSet("Twitch/DE", "DE/raw/DE.npz", (9498, 153138, 128, 2), STREAMS),
    PygSet("Twitch/EN", "EN/raw/EN.npz", (7126, 35324, 128, 2), STREAMS),
    PygSet("Twitch/ES", "ES/raw/ES.npz", (4648, 59382, 128, 2), STREAMS),
    PygSet("Twitch/FR", "FR/raw/FR.npz", (6551, 112666, 128, 2), STREAMS),
    PygSet("Twitch/PT", "PT/raw/PT.npz", (1912, 31299, 128, 2), STREAMS),
    PygSet("Twitch/RU", "RU/raw/RU.npz", (4385, 37304, 128, 2), STREAMS),
)}  # fmt: skip

# What a class is called in short, where that is not its name in small letters: also a folder that is looked into.
SHORT = {"CitationFull": "citation_full", "HeterophilousGraphDataset": "heterophilous", "WikipediaNetwork": "wikipedia"}


def short_name(name: str) -> str:
    """``CLASS/NAME`` as one word for names of folders.

    >>> short_name("HeterophilousGraphDataset/Roman-empire"), short_name("Actor")
    ('heterophilous_roman_empire', 'actor')
    """
    kind, _, own = name.partition("/")
    return "_".join(re.sub(r"\W+", "_", part).lower() for part in (SHORT.get(kind, kind), own) if part)


def folders(name: str) -> list[str]:
    """The folders below that of all data which may be the ``root`` of a class: whatever people call it.

    >>> folders("CitationFull/CiteSeer")
    ['CitationFull', 'citation_full', 'citationfull', 'CiteSeer', 'citeseer', '']
    """
    kind, _, own = name.partition("/")
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower()
    called = [kind, SHORT.get(kind, snake), snake, kind.lower()]
    return list(dict.fromkeys([*called, own, own.lower(), ""] if own else called))  # raw files of a class need a name


def places(entry: PygSet, top: Path) -> Iterator[Path]:
    """Where the raw file of a dataset may lie below ``top``: in PyG's layout, its folder also in small letters."""
    first, _, rest = entry.file.partition("/")
    for folder in folders(entry.name):
        yield from (top / folder / file for file in dict.fromkeys((entry.file, f"{first.lower()}/{rest}")))


def located(entry: PygSet, top: Path) -> Path | None:
    """The raw file of a dataset, where it is here."""
    return next((place for place in places(entry, top) if place.is_file()), None)


def listed(name: str) -> PygSet | None:
    """The line of the table that ``pyg:CLASS/NAME`` names, in any letters and with - or _; ``None`` for another class.

    >>> listed("pyg:amazon/photo").name, listed("pyg:HeterophilousGraphDataset/roman_empire").own, listed("pyg:NELL")
    ('Amazon/Photo', 'Roman-empire', None)
    >>> listed("pyg:Amazon/Foto")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: unknown dataset 'pyg:Amazon/Foto'; choose from pyg:Amazon/Computers, \
pyg:Amazon/Photo (did you mean 'pyg:Amazon/Photo'?)
    """
    told = name.removeprefix(PYG)
    kind = _plain(told.partition("/")[0])
    found = {_plain(each.name): each for each in SETS.values() if _plain(each.kind) == kind}
    if _plain(told) in found or not found:
        return found.get(_plain(told))
    names = [PYG + each.name for each in found.values()]
    raise TadropedgeError(
        f"unknown dataset {show(name, typed=False)}; choose from {', '.join(names)}{suggestion(name, names)}"
    )


def suggestion(name: str, names: list[str]) -> str:
    """Which of ``names`` was meant, if one is close."""
    small = {each.lower(): each for each in names}
    close = difflib.get_close_matches(name.lower(), small, n=1)
    return f" (did you mean {small[close[0]]!r}?)" if close else ""


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")
