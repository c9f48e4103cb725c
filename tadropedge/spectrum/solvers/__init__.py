"""The solvers by name: each finds the k lowest eigenpairs of the Laplacian of one connected component.

A solver is a function ``(L, null, k, aim) -> (values [k], vectors [n, k])``, where ``L`` is the sparse Laplacian,
``null [n]`` its known unit null vector and ``aim`` says where to run and how good is good enough. A solver may raise,
and may return poor vectors: the ladder checks them. All starting vectors are fixed, so that the same graph gives the
same weights.
"""

from __future__ import annotations

from tadropedge.spectrum.aim import Aim, Solver
from tadropedge.spectrum.solvers.davidson import davidson
from tadropedge.spectrum.solvers.dense import dense
from tadropedge.spectrum.solvers.lanczos import lanczos
from tadropedge.spectrum.solvers.shift_invert import shift_invert
from tadropedge.spectrum.solvers.short_lanczos import short_lanczos

SOLVERS: dict[str, Solver] = {
    "dense": dense,
    "shift-invert": shift_invert,
    "davidson": davidson,
    "lanczos": lanczos,
    "short-lanczos": short_lanczos,
}

__all__ = ["SOLVERS", "Aim", "Solver"]
