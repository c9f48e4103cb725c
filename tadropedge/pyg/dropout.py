"""Two functions without state: PyG's ``dropout_edge`` with a seed and a probability per edge, and ``exclude_edges``."""

from __future__ import annotations

import torch
from torch import Tensor

from tadropedge._support.checks import check_flag, check_integer, check_number, check_seed
from tadropedge.errors import TadropedgeError, show
from tadropedge.operators.kernels.words import pair_keys
from tadropedge.pyg.shapes import check_pairs, plain
from tadropedge.sampling.coins import sample


def dropout_edge(
    edge_index: Tensor,
    p: float | Tensor = 0.5,
    force_undirected: bool = False,
    training: bool = True,
    *,
    generator: torch.Generator | None = None,
    seed: int | None = None,
    epoch: int = 0,
) -> tuple[Tensor, Tensor]:
    """Drop edges at random: :func:`torch_geometric.utils.dropout_edge`, whose place it can take in any script.

    Without the keywords after ``training`` it draws from torch's generator as PyG's does, so under equal
    ``torch.manual_seed`` both return the same.

    With ``seed`` the mask is a pure function of (seed, epoch, arc): the same on every device, in every order of the
    arcs, and in every mini-batch whose nodes keep their ids. An arc is known by its two node ids in order, under
    ``force_undirected`` by the two ids alone: it then keeps the pairs that ``DropEdge(p=p, seed=seed)`` keeps at that
    epoch. A self-loop has a coin as any arc has, here as in PyG, while :class:`DropEdge` always keeps it.

    Args:
        edge_index: the arcs ``[2, A]``.
        p: the probability of **dropping** an edge, one for all or one per arc ``[A]``.
        force_undirected: draw for the arcs (i, j) with i ≤ j, then return each kept one in both directions.
        training: ``False`` keeps everything.
        generator: draw from this one and not from torch's own.
        seed: draw by coins and not from a generator: the same mask at every call of one epoch.
        epoch: which draw of the seed; move it on at every step.

    Returns:
        The kept arcs ``[2, A']``, and the mask ``[A]`` of them, or under ``force_undirected`` their numbers ``[A']``.
        Where nothing is dropped (``training=False`` or ``p=0``) it is the mask in both cases, as in PyG.

    >>> edge_index = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    >>> kept, edge_mask = dropout_edge(edge_index, p=0.5, seed=0, epoch=5)
    >>> edge_mask.tolist()
    [True, True, False, True, True, True]
    >>> kept, edge_id = dropout_edge(edge_index, p=0.5, force_undirected=True, seed=0, epoch=5)
    >>> kept.tolist(), edge_id.tolist()
    ([[0, 2, 1, 3], [1, 3, 0, 2]], [0, 4, 0, 4])
    """
    check_pairs("edge_index", edge_index)
    p, epoch = _checked_p(p, edge_index.shape[1]), check_integer("epoch", epoch, least=0)
    force_undirected, training = check_flag("force_undirected", force_undirected), check_flag("training", training)
    if not training or (not isinstance(p, Tensor) and p == 0.0):
        return edge_index, edge_index.new_ones(edge_index.size(1), dtype=torch.bool)
    if seed is None:
        if epoch != 0:
            raise TadropedgeError(f"epoch={epoch} counts the draws of a seed: give seed= too")
        kept = torch.rand(edge_index.size(1), generator=generator, device=edge_index.device) >= p
    else:
        if generator is not None:
            raise TadropedgeError("seed and generator exclude each other: give one of them", argument="generator")
        seed = check_seed(seed)
        keep_prob = 1.0 - torch.as_tensor(p, dtype=torch.float64, device=edge_index.device)
        keys = pair_keys(plain(edge_index), ordered=not force_undirected)
        kept = sample(keys, keep_prob.reshape(-1), seed, epoch)
    if not force_undirected:
        return edge_index[:, kept], kept
    row, col = edge_index
    kept[row > col] = False
    half = edge_index[:, kept]
    return torch.cat((half, half.flip(0)), dim=1), kept.nonzero().repeat((2, 1)).squeeze()


def exclude_edges(edge_index: Tensor, supervision: Tensor) -> tuple[Tensor, Tensor]:
    """Leave the supervised pairs out of the messages, in both directions: the other arcs, and their mask ``[A]``.

    A link predictor that sees in its input the very edges it is asked for learns to look them up, and fails on others.
    ``supervision [2, S]`` are the pairs of a step, in any direction; those that are no edges, such as negative samples,
    do no harm.

    >>> edge_index = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    >>> others, edge_mask = exclude_edges(edge_index, torch.tensor([[2, 0], [1, 3]]))
    >>> others.tolist()
    [[0, 1, 2, 3], [1, 0, 3, 2]]
    """
    arcs, pairs = check_pairs("edge_index", plain(edge_index)), check_pairs("supervision", supervision)
    mask = ~torch.isin(pair_keys(arcs), pair_keys(pairs))
    return edge_index[:, mask], mask


def _checked_p(p: float | Tensor, arcs: int) -> float | Tensor:
    """A probability of dropping, as a number, or as a tensor with one for each of so many arcs."""
    if isinstance(p, Tensor) and p.numel() == 1:
        p = p.item()
    if not isinstance(p, Tensor):
        p = check_number("p", p)
    elif p.shape != (arcs,) or p.dtype == torch.bool:
        raise TadropedgeError(f"p must be a number, or a tensor of {arcs} numbers, one for each arc, got {show(p)}")
    if not (0.0 <= p <= 1.0 if isinstance(p, float) else bool(((p >= 0) & (p <= 1)).all())):
        raise TadropedgeError(f"Dropout probability has to be between 0 and 1 (got {show(p, typed=False)})")
    return p
