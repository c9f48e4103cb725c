"""Every eigensolver keeps its contract."""

from contracts.solvers import EASY, HARD, SolverContract

from tadropedge.spectrum import SOLVERS
from tadropedge.spectrum.solvers import SEEDED


class TestDense(SolverContract):
    name = "dense"


class TestShiftInvert(SolverContract):
    name = "shift-invert"


class TestDavidson(SolverContract):
    name = "davidson"


class TestLanczos(SolverContract):
    name = "lanczos"
    graphs = EASY | HARD if SEEDED else HARD  # older ARPACK goes on from an invariant subspace with any vector


class TestShortLanczos(SolverContract):
    name = "short-lanczos"
    graphs = EASY


def test_every_solver_is_tested():
    assert {contract.name for contract in SolverContract.__subclasses__()} == set(SOLVERS)
