"""GraphML and GML through networkx: nodes by name, edge attributes, and node attributes as features and labels.

Files from outside are never trusted: XML with a document type is refused before it is parsed, because only there can
entities be declared that grow without bound or read other files, and elements nest only so deep.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

import numpy as np
import numpy.typing as npt

from tadropedge._old.errors import TadropedgeError, show
from tadropedge._old.files.edge_list import as_integers
from tadropedge._old.files.held import PARTS, Asked, Held, unknown
from tadropedge._old.files.opening import readable, readable_text, unpacked
from tadropedge._old.memory import check_room

if TYPE_CHECKING:
    import networkx as nx

GROWTH = 30  # bytes of memory that networkx takes for one of the file
DEEPEST = 64  # elements inside each other
LABELS = ("y", "class", "label", "value", "target")
NUMBERED = re.compile(r"(x|feat|feature)_?([0-9]{1,6})")
SPLIT_WORDS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
FEATURES = "an attribute x of numbers, or x0, x1, and so on"
Nodes = list[tuple[Any, dict[str, Any]]]


def read_graphml(path: Path, asked: Asked) -> Held:
    """GraphML, whose nodes are called by their ``id``."""
    content = unpacked(path)
    check_xml(content, path.name)
    return _held(path, asked, content, lambda networkx: networkx.read_graphml(io.BytesIO(content)), label=None)


def read_gml(path: Path, asked: Asked) -> Held:
    """GML, whose nodes are called by their ``label`` where every node has one of its own, else by their ``id``."""
    content = unpacked(path)
    with readable_text(path):
        text = content.decode("utf-8-sig")
    _check_brackets(text, path.name)
    return _held(path, asked, content, lambda networkx: networkx.parse_gml(text, label=None), label="label")


def check_xml(content: bytes, name: str) -> None:
    """Refuse XML that declares a document type, nests too deep or holds several graphs, whatever its encoding.

    >>> check_xml(b'<!DOCTYPE lolz [<!ENTITY lol "lol">]><graphml>&lol;</graphml>', "bomb.graphml")
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: bomb.graphml: has a DOCTYPE, which is not read, because it can declare \
entities: remove that line
    """
    parser, depth, graphs = expat.ParserCreate(), 0, 0

    def refuse(*_: object) -> None:
        raise TadropedgeError(
            f"{name}: has a DOCTYPE, which is not read, because it can declare entities: remove that line"
        )

    def enter(tag: str, _: object) -> None:
        nonlocal depth, graphs
        depth, graphs = depth + 1, graphs + (tag.rpartition(":")[2] == "graph")
        if depth > DEEPEST:
            raise TadropedgeError(f"{name}: its elements nest deeper than {DEEPEST}, which no GraphML needs")

    def leave(_: str) -> None:
        nonlocal depth
        depth -= 1

    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = enter, leave
    with readable(Path(name), "XML that can be read"):  # also where its encoding is none that there is
        parser.Parse(content, True)
    if graphs > 1:
        raise TadropedgeError(f"{name}: expected one graph, got {graphs}")


def _check_brackets(text: str, name: str) -> None:
    """Refuse GML whose lists nest too deep, before a parser follows them."""
    depth = 0
    for bracket in re.findall(r"[\[\]]", re.sub(r'"[^"]*"', "", text)):
        depth += 1 if bracket == "[" else -1
        if depth > DEEPEST:
            raise TadropedgeError(f"{name}: its lists nest deeper than {DEEPEST}, which no GML needs")


def _held(path: Path, asked: Asked, content: bytes, parse: Callable[[Any], nx.Graph], label: str | None) -> Held:
    check_room(GROWTH * len(content), f"{path.name}, as a graph of networkx,")
    try:
        import networkx
    except ImportError:
        raise TadropedgeError(
            f"{path.name}: GraphML and GML are read by networkx, which is not installed: pip install 'tadropedge[lab]'"
        ) from None
    with readable(path, "a graph that networkx can read"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about ports and types that the graph does without
        graph = parse(networkx)
        nodes: Nodes = list(graph.nodes(data=True))
        if not nodes:
            raise TadropedgeError(f"{path.name}: no nodes in the file")
        ids, named = _names(nodes, label)
        place = {node: number for number, (node, _) in enumerate(nodes)}
        edges = list(graph.edges(data=True))
        arcs = np.array([(place[one], place[other]) for one, other, _ in edges], dtype=np.int64).reshape(-1, 2).T
        found = Held(
            arcs=arcs,
            num_nodes=len(nodes),
            weight=_weights(edges) if asked.weighted else None,
            ids=ids,
            column=None if asked.column is None else _column(edges, asked.column, path.name),
            **(_node_parts(nodes, named, asked.masks) if asked.whole else {}),
            lacking=_lacking(nodes),
        )
    return found


def _names(nodes: Nodes, label: str | None) -> tuple[tuple[Any, ...], bool]:
    """What the nodes are called, integers where all of them are, and whether that is their ``label``."""
    called = [attributes.get(label) for _, attributes in nodes] if label is not None else []
    named = (
        bool(called)
        and all(isinstance(each, str | int) for each in called)
        and len(set(map(str, called))) == len(nodes)
    )
    names = [str(each) for each in (called if named else [node for node, _ in nodes])]
    numbers = as_integers(names)
    if numbers is not None and len(set(numbers)) == len(names):
        return tuple(numbers), named
    if len(set(names)) < len(names):
        raise TadropedgeError("two nodes have the same name")
    return tuple(names), named


def _weights(edges: Sequence[tuple[Any, Any, dict[str, Any]]]) -> npt.NDArray[np.float64] | None:
    """The attribute ``weight`` of the edges; those without it have weight one."""
    if not any("weight" in attributes for *_, attributes in edges):
        return None
    return _numbers([attributes.get("weight", 1.0) for *_, attributes in edges], "the weight of an edge")


def _column(edges: Sequence[tuple[Any, Any, dict[str, Any]]], column: str, file: str) -> npt.NDArray[np.float64]:
    values = [attributes.get(column) for *_, attributes in edges]
    if all(value is None for value in values):
        known = dict.fromkeys(name for *_, attributes in edges for name in attributes)
        raise TadropedgeError(unknown(file, column, list(known)))
    return _numbers(values, f"{column} of an edge")


def _numbers(values: Sequence[Any], what: str) -> npt.NDArray[np.float64]:
    return np.array([_number(value, what) for value in values], dtype=np.float64)


def _number(value: Any, what: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    told = "some have none" if value is None else f"got {show(value, typed=False)}"
    raise TadropedgeError(f"{what} must be a number, {told}")


# -- features, labels, splits --------------------------------------------------------------------------------


def _lacking(nodes: Nodes) -> dict[str, str]:
    names = dict.fromkeys(name for _, attributes in nodes for name in attributes)
    listed = show(", ".join(names) or "none", typed=False, longest=160)
    beside = f"found {listed[1:-1]}; a table of nodes may lie beside it: nodes='nodes.csv'"
    return {
        "features": f"expected features: {FEATURES} of every node, {beside}",
        "labels": f"expected labels: an attribute {', '.join(LABELS)} of the nodes, {beside}",
    }


def _node_parts(nodes: Nodes, named: bool, masks: bool) -> dict[str, Any]:
    """Features, labels with the names of their classes, and a split, where the attributes of the nodes are these."""
    rows = [attributes for _, attributes in nodes]
    found: dict[str, Any] = {"features": _features(rows)}
    name = next((each for each in LABELS if _labels_nodes(rows, each, named)), None)
    if name is not None:
        found |= _classes([row.get(name) for row in rows])
    return found | ({"parts": _parts(rows)} if masks else {})


def _features(rows: list[dict[str, Any]]) -> npt.NDArray[np.float64] | None:
    if all("x" in row for row in rows):
        vectors = [_vector(row["x"]) for row in rows]
        if len({len(vector) for vector in vectors}) > 1:
            raise TadropedgeError("the attribute x must have as many numbers for every node, got different ones")
        return np.array(vectors, dtype=np.float64)
    numbered = {name: match for name in rows[0] if (match := NUMBERED.fullmatch(name))}
    if not numbered or not all(name in row for row in rows for name in numbered):
        return None
    names = sorted(numbered, key=lambda name: (numbered[name][1], int(numbered[name][2])))
    return np.stack([_numbers([row[name] for row in rows], f"the attribute {name}") for name in names], axis=1)


def _vector(value: Any) -> list[float]:
    """A list of numbers, one number, or numbers in a text: ``"0.5 1"``, ``"[0.5, 1]"``."""
    if isinstance(value, str):
        value = value.strip().strip("[]()").replace(",", " ").split()
    listed = value if isinstance(value, list | tuple) else [value]
    return [_number(each, "an entry of the attribute x") for each in listed]


def _labels_nodes(rows: list[dict[str, Any]], name: str, named: bool) -> bool:
    """Whether an attribute holds classes: some have it, and a ``label`` is none where it is a name of its own."""
    values = [row[name] for row in rows if isinstance(row.get(name), str | int | float)]
    return bool(values) and (name != "label" or (not named and len(set(values)) < len(values)))


def _classes(values: Sequence[Any]) -> dict[str, Any]:
    """Class numbers in the order of numbers, or of the alphabet, and what the classes are called."""
    words = [_word(value) for value in values]
    known = sorted({word for word in words if word not in ("", "-1")})
    numbers = as_integers(known)
    if numbers is not None:
        known = [word for _, word in sorted(zip(numbers, known, strict=True))]
    number = {word: place for place, word in enumerate(known)}
    return {"labels": np.array([number.get(word, -1) for word in words]), "class_names": tuple(known)}


def _word(value: Any) -> str:
    """A label as a text; 2.0 is 2, and nothing is no label."""
    if value is None or isinstance(value, list | dict | tuple):
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _parts(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A split: an attribute ``split`` of the words train, val and test, or masks ``train_mask`` and so on."""
    if any("split" in row for row in rows):
        words = np.array([SPLIT_WORDS.get(str(row.get("split", "")).lower(), "") for row in rows])
        return {part: words == part if (words == part).any() else None for part in PARTS}
    masks = {f"{part}_mask": [row.get(f"{part}_mask") for row in rows] for part in PARTS}
    return {
        name: None
        if all(value is None for value in mask)
        else np.array([value in (True, 1, "true", "True") for value in mask])
        for name, mask in masks.items()
    }
