"""The low Laplacian spectrum of every component, and linear equations in Laplacians.

:mod:`~.plan` chooses solvers for each component, :mod:`~.solve` tries them until an answer passes its check,
:mod:`~.given` takes eigenvectors from elsewhere, :mod:`~.linear` solves L x = b.
"""

from tadropedge.spectrum.blocks import DENSE_NODES, Block, blocks
from tadropedge.spectrum.bridges import bridges
from tadropedge.spectrum.given import check_modes, given_modes
from tadropedge.spectrum.linear import laplacian_solver
from tadropedge.spectrum.plan import Step, plan
from tadropedge.spectrum.request import LAPLACIANS, ModeRequest, gap_window
from tadropedge.spectrum.solve import Subspaces, execute
from tadropedge.spectrum.solvers import SOLVERS

__all__ = [
    "DENSE_NODES",
    "LAPLACIANS",
    "SOLVERS",
    "Block",
    "ModeRequest",
    "Step",
    "Subspaces",
    "blocks",
    "bridges",
    "check_modes",
    "execute",
    "gap_window",
    "given_modes",
    "laplacian_solver",
    "plan",
]
