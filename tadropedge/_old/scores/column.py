"""A column of the user's own file as a score: checked, merged over the directions of an edge, and read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tadropedge._old.checks import check_device, check_numbers, check_path, check_text
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.files import Asked, Held, read_file
from tadropedge._old.graph import Graph, graph_of

WORDS = "the score 'column' needs a column of your own file: --score-column NAME, or score_column= of the Dataset"


def column(graph: Graph, column: Tensor) -> Tensor:
    """The user's own numbers, float64 ``[M]`` in the order of ``graph.pairs``: at least 0, high for edges to keep.

    * Source: the user. :func:`per_edge` makes it from one number per input arc, :func:`read_column` reads it.
    * Cost: none.
    * Good for: what is known of the edges: trust, the number of contacts, the strength of a measurement.

    >>> graph = Graph.from_edge_index([[0, 1], [1, 2]])
    >>> column(graph, torch.tensor([3, 1])).tolist()
    [3.0, 1.0]
    >>> column(graph, torch.tensor([3.0, -1.0]))
    Traceback (most recent call last):
    tadropedge._old.errors.TadropedgeError: column must be finite and at least 0, got -1
    """
    return check_column(graph, column, "column")


def check_column(graph: Graph, values: object, name: str) -> Tensor:
    """Return one number per edge, float64 ``[M]``: finite, at least 0, and on the device of the graph."""
    numbers = check_numbers(name, values).detach().to(torch.float64)
    if numbers.shape != (graph.num_edges,):
        raise TadropedgeError(
            f"{name} must be one number for each of {graph.num_edges} edges, got shape {list(numbers.shape)}"
        )
    if isinstance(values, Tensor):
        check_device(name, numbers, graph.device, "the graph")
    wrong = numbers[~(numbers.isfinite() & (numbers >= 0))]
    if len(wrong):
        raise TadropedgeError(f"{name} must be finite and at least 0, got {float(wrong[0]):g}")
    return numbers.to(graph.device)


def per_edge(graph: Graph, values: Any, name: str = "column") -> Tensor:
    """From one number per input arc ``[A]`` to one per edge ``[M]``: the mean where an edge is listed several times.

    So both directions may differ, as with edge weights; self-loops do not count. With ``[M]`` numbers for a graph of
    other than M arcs, they are taken as they are.

    >>> graph = Graph.from_edge_index([[0, 1, 1, 2], [1, 0, 1, 1]])
    >>> per_edge(graph, [1.0, 3.0, 9.0, 5.0]).tolist()
    [2.0, 5.0]
    """
    numbers = check_numbers(name, values).detach().to(dtype=torch.float64, device=graph.device)
    numbers = numbers[:, 0] if numbers.dim() == 2 and numbers.shape[1] == 1 else numbers
    arcs = graph.arc_pair
    if numbers.shape == arcs.shape:
        pair, listed = arcs[arcs >= 0], numbers[arcs >= 0]
        count = torch.bincount(pair, minlength=graph.num_edges)
        zeros = listed.new_zeros(graph.num_edges)
        least, most = (zeros.scatter_reduce(0, pair, listed, how, include_self=False) for how in ("amin", "amax"))
        mean = zeros.index_add(0, pair, listed / count[pair])
        numbers = torch.where(least == most, least, mean)  # the mean of equal numbers, without rounding
    elif numbers.shape != (graph.num_edges,):
        raise TadropedgeError(
            f"{name} must be one number for each of {len(arcs)} listed edges, got shape {list(numbers.shape)}"
        )
    return check_column(graph, numbers, name)


def read_column(
    path: str | Path, name: str, *, header: bool | None = None, weighted: bool = True
) -> tuple[Graph, Tensor]:
    """A graph from a file as ``Graph.from_file`` reads it, and one of its columns, ``[M]``.

    ``name`` is a column of an edge list by the name in its header, or by its number from 3 on; an array of an ``.npz``
    file with one number for each column of ``edge_index``; an edge attribute of a ``Data``, of GraphML or of GML.
    """
    file, name = check_path("path", path), check_text("name", name)
    held = read_file(file, Asked(header=header, weighted=weighted, column=name))
    graph = graph_of(held, file.name, weighted=weighted)
    return graph, held_column(held, graph, name, file.name)


def held_column(held: Held, graph: Graph, name: str, file: str) -> Tensor:
    """The column that was asked for, of what ``file`` holds, as a score of the edges of its ``graph``."""
    try:
        return per_edge(graph, held.column, name)
    except TadropedgeError as error:
        raise TadropedgeError(f"{file}: {error}") from error


def needs(score: str, lacking: str, dataset: str) -> str:
    """What to say where a score needs what a dataset does not have.

    >>> needs("cosine", "features", "roads")
    "the score 'cosine' needs features, which roads does not have"
    """
    if lacking == "column" and score == "column":
        return WORDS
    return f"the score {score!r} needs {lacking}, which {dataset} does not have"
