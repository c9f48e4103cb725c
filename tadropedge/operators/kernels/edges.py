"""The CPU's kernels of undirected edges: triangles, and what sketched resistances need at both ends of each edge."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tadropedge.operators.kernels.compiling import as_array, compiled, mixed
from tadropedge.operators.kernels.threads import run

INT32_LIMIT = 2**31 - 1

# -- triangles -------------------------------------------------------------------------------------------


@compiled
def _leave(low, high, starts, head, number):  # type: ignore[no-untyped-def]
    """Every edge leaves its end of lower degree: where the edges of each node start, their heads, their numbers."""
    degree = np.zeros(len(starts), dtype=np.int32)
    for edge in range(len(low)):
        degree[low[edge]] += 1
        degree[high[edge]] += 1
    for edge in range(len(low)):
        tail = low[edge] if degree[low[edge]] <= degree[high[edge]] else high[edge]
        starts[tail + 1] += 1
    for node in range(1, len(starts)):
        starts[node] += starts[node - 1]
    place = starts.copy()
    for edge in range(len(low)):
        forth = degree[low[edge]] <= degree[high[edge]]
        tail, other = (low[edge], high[edge]) if forth else (high[edge], low[edge])
        head[place[tail]], number[place[tail]] = other, edge
        place[tail] += 1


@compiled
def _triangles(begin, end, first, starts, head, found):  # type: ignore[no-untyped-def]
    """Two edges that leave a node are a triangle where an edge joins their heads; each part has counts of its own."""
    mark = np.full(len(starts), -1, dtype=starts.dtype)
    for part in range(begin, end):
        count = found[part]
        for node in range(first[part], first[part + 1]):
            here, there = starts[node], starts[node + 1]
            if there - here < 2:
                continue
            for one in range(here, there):
                mark[head[one]] = one
            for one in range(here, there):
                other = head[one]
                for across in range(starts[other], starts[other + 1]):
                    two = mark[head[across]]
                    if two >= 0:
                        count[one] += 1
                        count[two] += 1
                        count[across] += 1
            for one in range(here, there):
                mark[head[one]] = -1


def triangles(pairs: Tensor, num_nodes: int) -> Tensor:
    """The number of triangles through each of the ``pairs [2, M]``, int64 ``[M]``."""
    edges, (low, high) = pairs.shape[1], as_array(pairs)
    whole = np.int32 if edges < INT32_LIMIT else np.int64
    starts, head, number = np.zeros(num_nodes + 1, dtype=np.int64), np.empty(edges, np.int32), np.empty(edges, whole)
    _leave(low, high, starts, head, number)
    parts = min(torch.get_num_threads(), max(1, num_nodes))
    first = np.searchsorted(starts, np.linspace(0, edges, parts + 1).astype(np.int64))
    first[0], first[-1] = 0, num_nodes
    found = np.zeros((parts, edges), dtype=np.int32)
    run(_triangles, parts, 16 * edges, first, starts, head, found)
    out = np.empty(edges, dtype=np.int64)
    out[number] = found.sum(axis=0)
    return torch.from_numpy(out)


# -- sketches --------------------------------------------------------------------------------------------


@compiled
def _signed_sums(begin, end, low, high, root, word, out):  # type: ignore[no-untyped-def]
    """One word for each edge has the signs of all columns."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    for edge in range(len(low)):
        signs = mixed(np.uint64(word) + np.uint64(edge + 1) * golden)
        one, other = out[low[edge]], out[high[edge]]
        for column in range(begin, end):
            value = root[edge] if (signs >> np.uint64(column)) & np.uint64(1) else -root[edge]
            one[column] += value
            other[column] -= value


def signed_sums(low: Tensor, high: Tensor, root: Tensor, word: int, num_nodes: int, columns: int) -> Tensor:
    """``Dᵀ (root · signs)``, ``[num_nodes, columns]``."""
    out = torch.zeros((num_nodes, columns), dtype=root.dtype)
    ends = as_array(low), as_array(high), as_array(root)
    run(_signed_sums, columns, 4 * columns * len(low), *ends, word, out.numpy())
    return out


@compiled
def _squared_differences(begin, end, low, high, x, out):  # type: ignore[no-untyped-def]
    """One edge after the other."""
    for edge in range(begin, end):
        one, other, total = x[low[edge]], x[high[edge]], out.dtype.type(0)
        for column in range(x.shape[1]):
            difference = one[column] - other[column]
            total += difference * difference
        out[edge] = total


def squared_differences(low: Tensor, high: Tensor, x: Tensor) -> Tensor:
    """``‖x_i − x_j‖²`` of each edge, ``[M]``."""
    out = torch.empty(len(low), dtype=x.dtype)
    arrays = as_array(low), as_array(high), as_array(x)
    run(_squared_differences, len(low), 4 * x.shape[1] * len(low), *arrays, out.numpy())
    return out
