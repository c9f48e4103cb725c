"""Eigenvectors from elsewhere, from any engine: checked like those of our own solvers, then used like them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from tadropedge._support.checks import check_numbers
from tadropedge.errors import TadropedgeError
from tadropedge.graph import Graph
from tadropedge.spectrum.blocks import DENSE_NODES, Block, Floats
from tadropedge.spectrum.lanczos import Basis, LanczosRun
from tadropedge.spectrum.plan import Step, Survey
from tadropedge.spectrum.request import LAPLACIANS, RELATIVE_GAP, ModeRequest
from tadropedge.spectrum.solve import Check, Subspaces
from tadropedge.spectrum.solvers import flipped
from tadropedge.spectrum.target import ROUNDING_STEPS, with_null
from tadropedge.spectrum.twins import System

ELSEWHERE = 1e-6  # of the length of a mode: what is left of it in components that it does not belong to
PROBE_STEPS = 40  # Lanczos steps that look for a missing mode


def check_modes(modes: Any, graph: Graph) -> Floats:
    """The modes ``V [N, k]`` as float64, each of unit length: a tensor or array of finite numbers, a row per node.

    >>> check_modes([[1.0], [2.0]], Graph.from_edge_index([[0, 1], [1, 2]]))
    Traceback (most recent call last):
    tadropedge.errors.TadropedgeError: modes must have shape [3, k], one row for each node and one column for each \
mode, got shape [2, 1]
    """
    found = check_numbers("modes", modes).detach()
    if found.dim() != 2 or found.shape[0] != graph.num_nodes or found.shape[1] == 0:
        wanted = f"[{graph.num_nodes}, k], one row for each node and one column for each mode"
        raise TadropedgeError(f"modes must have shape {wanted}, got shape {list(found.shape)}", argument="modes")
    V = found.to("cpu", torch.float64).numpy()
    length = np.linalg.norm(V, axis=0)
    good = np.isfinite(length) & (length > 0)
    if not good.all():
        raise TadropedgeError(f"modes must be finite and not zero, column {good.argmin()} is not", argument="modes")
    unit: Floats = V / length
    return unit


def given_modes(block: Block, modes: Floats, request: ModeRequest) -> Subspaces:
    """The subspace that ``modes [N, k]`` span in the one component of a block, after a check of what can be seen.

    ``modes`` come from :func:`check_modes` and hold the lowest eigenvectors of the Laplacian of ``request``, of the
    whole graph or of its components one by one (0 elsewhere). The span counts: signs, order and rotations inside
    an eigenspace do not, and neither does whether the null vector (the constants; D^½ 1 in the normalised Laplacian) is
    among them, since it is always counted in. Used are q of them, or as many as the eigengap says, or, if ``request``
    asks for neither, all that they span in the component.

    Refused, in one line: fewer modes than that; a residual above the one that :class:`~.solve.Check` allows our own
    solvers (where V has no mode above the last one used, twice its eigenvalue stands in for the next); and modes that
    are not the lowest. Whether V has every copy of its last eigenvalue cannot be seen.

    >>> from tadropedge.spectrum.blocks import blocks
    >>> path = Graph.from_edge_index([[0, 1, 2], [1, 2, 3]])
    >>> V = check_modes(np.cos(np.pi * (np.arange(4) + 0.5) / 4)[:, None], path)
    >>> found = given_modes(next(blocks(path)), V, ModeRequest(q=2))
    >>> found.values[:, :2].round(4).tolist(), found.vectors.shape
    ([[0.0, 0.5858]], (1, 4, 2))
    """
    system = System.unmerged(block, request.laplacian)
    L, n = system.L, block.size
    values, vectors = _ritz(L, system.null, modes[block.nodes[0]])
    there = len(values)
    if request.q is None and request.desired_clusters is None:
        request = replace(request, q=there)
    needed = min(request.q or request.pairs_needed, n)
    if there < needed:
        raise TadropedgeError(
            f"modes span {there} dimensions of a component of {n} nodes, {request} needs {needed}", argument="modes"
        )
    if there < n:
        norm = float(block.norms(request.laplacian)[0])
        values = np.append(values, 2 * values[-1] if there > 1 else norm)
    step = Step(block=block, request=request, survey=Survey.of(L), solvers=("given",), system=system)
    found, reason = Check(step, system).judge((values, vectors), "given")
    if found is None:
        raise TadropedgeError(
            f"modes are no eigenvectors of {LAPLACIANS[request.laplacian]} to the tolerance {request.tolerance:g}: "
            f"{reason}",
            argument="modes",
        )
    _check_lowest(L, values[: min(there, int(found.counts[0]))], vectors)
    return found


def _ritz(L: sp.csr_matrix, null: Floats, modes: Floats) -> tuple[Floats, Floats]:
    """Rayleigh and Ritz in the span of the null vector ``[n]`` and the modes ``[n, k]``."""
    inside = modes - np.outer(null, null @ modes)
    basis, lengths, _ = np.linalg.svd(inside, full_matrices=False)
    basis = basis[:, (lengths > ELSEWHERE) & (np.arange(len(lengths)) < len(null) - 1)]
    basis -= np.outer(null, null @ basis)
    values, turn = np.linalg.eigh(basis.T @ (L @ basis))
    return with_null(values, basis @ turn, null)


def _check_lowest(L: sp.csr_matrix, values: Floats, vectors: Floats) -> None:
    """Refuse modes that are not the lowest: of a small component all are known, in a large one they are looked for.

    Some Lanczos steps orthogonal to the modes end with a Ritz value; it lies above an eigenvalue that is not among
    theirs. If it lies below the last mode used, that is proof; if it does not, nothing is known.
    """
    operator = flipped(L)
    if L.shape[0] <= DENSE_NODES:
        true = np.linalg.eigvalsh(L.toarray())[: len(values)]
        missing = true < (1 - RELATIVE_GAP) * values - ROUNDING_STEPS * operator.top
        least = float(true[missing].min(initial=np.inf))
    else:
        run = LanczosRun(Basis(torch.from_numpy(vectors[:, 0].copy()), torch.from_numpy(vectors[:, 1:])), operator, 0)
        for _ in range(PROBE_STEPS):
            run.step()
            if run.exhausted:
                break
        least = float(operator.swapped(run.values[0]))
    if least < values[-1] * (1 - RELATIVE_GAP):
        raise TadropedgeError(
            f"modes are not the lowest: a component of {L.shape[0]} nodes has an eigenvalue of at most {least:.6g} "
            "that is not among theirs",
            argument="modes",
        )
