"""The numbers of graphs: coins that differ between the graphs of a batch, whoever shares it.

A transform writes ``data.graph_number``, and the nodes of a graph get the ids

    id(g, i) = i + mix(g · golden ratio) mod 2⁶⁴,

where i is the place of the node in its own graph, or its ``n_id``, and mix is SplitMix64's. mix(0) = 0: the first graph
has the coins of a graph without a number.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from tadropedge._old.checks import check_device, check_whole
from tadropedge._old.errors import TadropedgeError
from tadropedge._old.sampling import GOLDEN, mix_tensor, signed

NAME = "graph_number"


def graph_node_ids(batch: Tensor, graph_number: Tensor, node_id: Tensor | None = None) -> Tensor:
    """Ids of the nodes of a batch of graphs, int64 ``[N]``, for ``node_id=`` of :class:`TADropEdge`.

    ``batch [N]`` is the graph of each node by its place in the batch, and ``graph_number [B]`` the number of each graph
    in the dataset. Nodes are counted within their graphs, unless ``node_id [N]`` names them. ``drop(batch)`` finds all
    this in a ``Batch`` by itself.

    >>> alone = graph_node_ids(torch.zeros(3, dtype=torch.long), torch.tensor([7]))
    >>> together = graph_node_ids(torch.tensor([0, 0, 1, 1, 1]), torch.tensor([2, 7]))
    >>> bool((together[2:] == alone).all())
    True
    """
    graph = check_whole("batch", batch)
    numbers = check_whole(NAME, graph_number)
    if graph.dim() != 1 or numbers.dim() != 1:
        raise TadropedgeError(
            f"batch and graph_number must be vectors [N] and [B], got shapes {list(graph.shape)} and "
            f"{list(numbers.shape)}"
        )
    check_device(NAME, numbers, graph.device, "batch")
    if len(graph) and (int(graph.min()) < 0 or int(graph.max()) >= len(numbers)):
        raise TadropedgeError(
            f"batch must hold places of graphs, from 0 to {len(numbers) - 1}, got {int(graph.min())} to "
            f"{int(graph.max())}"
        )
    graph = graph.to(torch.int64)
    if node_id is None:
        node_id = places(graph, len(numbers))[0]
    elif check_whole("node_id", node_id).shape != graph.shape:
        raise TadropedgeError(f"node_id has shape {list(node_id.shape)}, but batch has {len(graph)} nodes")
    return node_id.to(torch.int64) + _offsets(numbers)[graph]


def places(graph: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The place ``[N]`` of each node among those of its graph, and the number of nodes of each of ``count`` graphs.

    >>> places(torch.tensor([0, 0, 2, 2, 2, 0]), 3)
    (tensor([0, 1, 0, 1, 2, 2]), tensor([3, 0, 3]))
    """
    sizes = torch.bincount(graph, minlength=count)
    order = graph.argsort(stable=True)
    place = torch.empty_like(graph)
    place[order] = torch.arange(len(graph), device=graph.device) - (sizes.cumsum(0) - sizes)[graph[order]]
    return place, sizes


def numbers_of(data: Data) -> Tensor | None:
    """The numbers ``[B]`` of the graphs in ``data``, None where they do not tell them apart.

    That is so without ``graph_number``, and where all graphs of a batch have the same one: parts of one large graph, or
    graphs that were each given a transform of their own.

    >>> numbers_of(Data(graph_number=3)), numbers_of(Data())
    (tensor([3]), None)
    """
    value, batch = getattr(data, NAME, None), getattr(data, "batch", None)
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        numbers = torch.tensor([signed(value % 2**64)])
    elif isinstance(value, Tensor) and not value.is_floating_point() and not value.is_complex():
        numbers = value.reshape(-1)
    else:
        return None
    count = 1 if batch is None else _count(data)
    if len(numbers) != count or (count > 1 and bool((numbers == numbers[0]).all())):
        return None
    return numbers.to(torch.int64)


def among_many(data: Data) -> bool:
    """Whether ``data`` is certainly one graph of a dataset: one that is not the first.

    >>> among_many(Data(graph_number=3)), among_many(Data(graph_number=0)), among_many(Data())
    (True, False, False)
    """
    return is_later(numbers_of(data))


def named_nodes(data: Data, numbers: Tensor | None, node_id: Tensor | None, where: torch.device) -> Tensor | None:
    """``node_id [N]``, set apart by the number of its graph; None where places in ``data`` are the names."""
    if numbers is None or (len(numbers) == 1 and not is_later(numbers)):
        return node_id
    if len(numbers) == 1:
        names = torch.arange(data.num_nodes, device=where) if node_id is None else node_id.to(torch.int64)
        return names + int(_offsets(numbers))  # nothing is copied to a device, where a graph may be recorded
    numbers = numbers.to(data.batch.device)
    ptr: Tensor | None = getattr(data, "ptr", None)
    if node_id is None and isinstance(data, Batch) and ptr is not None and int(ptr[-1]) == len(data.batch):
        starts: Tensor = (_offsets(numbers) - ptr[:-1])[data.batch]  # nodes of a graph lie together
        return starts + torch.arange(len(starts), device=starts.device)
    return graph_node_ids(data.batch, numbers, node_id)


def is_later(numbers: Tensor | None) -> bool:
    """Whether this is one graph, and not the first."""
    return numbers is not None and len(numbers) == 1 and int(numbers[0]) != 0


def _count(data: Data) -> int:
    if isinstance(data, Batch):
        return int(data.num_graphs)
    return int(data.batch.max()) + 1 if data.batch.numel() else 0


def _offsets(numbers: Tensor) -> Tensor:
    return mix_tensor(numbers.to(torch.int64) * signed(GOLDEN))
