"""The solver ``slepc``: LOBPCG with multigrid on ranks under MPI, each of which holds its rows of the Laplacian."""

from __future__ import annotations

import logging
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from tadropedge._old.blocks import Floats
from tadropedge._old.errors import reason
from tadropedge._old.spectrum.aim import EXACT, Aim, Eigenpairs, largest_bound, with_null
from tadropedge._old.spectrum.mpi.launch import STARTS, RunningRanks, started
from tadropedge._old.spectrum.mpi.petsc_file import read_vectors, write_matrix, write_vector

RANK_GUARD = 3  # vectors beyond those that are wanted: the last one wanted converges like the first
RANK_BLOCKS = 8  # blocks of vectors that all ranks hold together
RANK_BYTES = 180  # per entry of the Laplacian: its rows, those of the coarse graphs, and what they are made with
ROOMY = 5  # times as many nodes as vectors in a block: what LOBPCG asks for
KNOWN = 1e-3  # residuals, as a share of the eigenvalues, at which gaps are known well enough to say what is needed
ASK = 0.5  # LOBPCG locks pairs at this share of what is needed
SURE = 0.5  # all are good at this share of what is needed: an iteration follows, and estimates are a little off
OFTEN = 4  # iterations in a row within what is needed, which will do where rounding keeps it from getting better
PATIENCE = 60  # iterations without progress after which rounding, or the graph, has won
AFRESH = 15  # iterations without progress after which LOBPCG starts again from the vectors it has: its directions
CLOSE = 1e3  # have become so alike that rounding spoils them; only within this many times what is needed
STARTS_AGAIN = 3  # at most
ENOUGH = 1e300  # a tolerance that ends the iteration
TINY = 1e-30  # a residual that is zero, where logarithms are taken
NOTHING = 1e-300  # one that no pair reaches

log = logging.getLogger("tadropedge")


@dataclass(frozen=True)
class Found:
    """The lowest eigenpairs beside the null vector, and what they took: peak bytes of each rank, iterations, seconds.

    ``seconds`` are those of the ranks, from their start to their end.
    """

    pairs: Eigenpairs
    memory: tuple[int, ...]
    steps: int = 0
    seconds: float = 0.0


def slepc(L: sp.csr_matrix, null: Floats, k: int, aim: Aim = EXACT) -> Eigenpairs:
    """SLEPc's LOBPCG with PETSc's algebraic multigrid, on ``aim.ranks`` processes that ``mpiexec`` starts.

    The Laplacian goes to them through a file in PETSc's format, which is written in pieces; only rank 0 reads it, and
    sends the others their rows. A block holds all wanted vectors and a few more, so copies of an eigenvalue are found
    together.
    """
    try:
        found = solve_on_ranks(L, null, k, aim)
    except OSError as error:
        raise RuntimeError(f"ranks need processes and a temporary folder: {reason(error)}") from None
    log.info("slepc: %d ranks, %d steps, peak bytes %s", len(found.memory), found.steps, list(found.memory))
    return found.pairs


def solve_on_ranks(L: sp.csr_matrix, null: Floats, k: int, aim: Aim = EXACT) -> Found:
    """What :func:`slepc` returns, with the memory of each rank."""
    n, wanted = L.shape[0], k - 1
    if wanted == 0:
        return Found(with_null(np.empty(0), np.empty((n, 0)), null), ())
    block = wanted + RANK_GUARD
    if n <= ROOMY * block + 1:
        raise RuntimeError(f"{k} pairs of {n} nodes are too many for blocks: the dense solver finds them")
    with tempfile.TemporaryDirectory(prefix="tadropedge-slepc-") as folder, started(aim.ranks) as ranks:
        matrix, zero, answer = (Path(folder, name) for name in ("matrix", "null", "vectors"))
        ready = ranks.hear("ready", STARTS)
        _check(ready, aim.ranks)
        write_matrix(matrix, L, ready["bytes"])
        write_vector(zero, null, ready["bytes"])
        files = {"matrix": str(matrix), "null": str(zero), "vectors": str(answer)}
        ranks.ask(**files, wanted=wanted, block=block)
        ranks.hear("loaded")
        matrix.unlink()
        done = _converge(ranks, largest_bound(L), aim)
        vectors = read_vectors(answer, n, ready["bytes"])
    pairs = _ritz(L, null, vectors)
    return Found(pairs, tuple(done["memory"]), done["steps"], done["seconds"])


def _check(ready: dict[str, Any], ranks: int) -> None:
    """Ranks that do not see each other were started by the ``mpiexec`` of another MPI."""
    if ready["ranks"] != ranks:
        raise RuntimeError(
            f"{ranks} ranks were started and see {ready['ranks']}: mpiexec and petsc4py belong to different MPIs"
        )


def _converge(ranks: RunningRanks, norm: float, aim: Aim) -> dict[str, Any]:
    """Judge each iteration until residuals are within limits, which depend on the gaps that come into sight.

    Pairs are locked in order when they are good enough; once all are, the iteration is told to end. Where it stalls
    close to the end, it is told to begin again from there.
    """
    first, best, since, good, steps, run, wanted_run = 0.0, np.inf, 0, 0, 0, 0, 0
    while True:
        said = ranks.next()
        if "done" in said:
            done: dict[str, Any] = said["done"]
            return done
        order = np.argsort(said["values"], kind="stable")
        values, residuals = np.array(said["values"])[order], np.array(said["residuals"])[order]
        limits = aim.limits(np.concatenate(([0.0], values)), norm)[1:]
        worst, largest = max(float((residuals / limits).max()), TINY), float(residuals.max())
        first, steps, good = max(first, worst), steps + 1, good + 1 if worst <= 1 else 0
        gained, to_go = np.log(first / worst), np.log(max(worst, 1.0))
        aim.report(float(gained / (gained + to_go)) if gained > 0 else 0.0)
        if largest < best / 2 or said["run"] > run:
            best, since, run = largest, steps, said["run"]
        if steps - since > PATIENCE:
            raise RuntimeError(f"stalled at {worst:.1f} times the wanted residual after {steps} steps")
        known = (residuals <= KNOWN * abs(values)).all()
        ends = worst <= SURE or good == OFTEN
        if wanted_run == run < STARTS_AGAIN and worst <= CLOSE and steps - since > AFRESH:
            wanted_run += 1
        again = not ends and run < wanted_run  # it makes one more iteration before it ends
        enough = ASK * float(limits.min()) if known else NOTHING
        ranks.ask(tolerance=ENOUGH if ends or again else enough, again=again)


def _ritz(L: sp.csr_matrix, null: Floats, vectors: Floats) -> Eigenpairs:
    """Rayleigh and Ritz in what was found: orthonormal to rounding, in order."""
    basis = np.linalg.qr(vectors - np.outer(null, null @ vectors))[0]
    small = basis.T @ (L @ basis)
    values, turn = np.linalg.eigh((small + small.T) / 2)
    return with_null(values, basis @ turn, null)
