"""Every eigensolver keeps its contract."""

from contracts.solvers import EASY, SolverContract

from tadropedge.spectrum import SOLVERS


class TestDense(SolverContract):
    name = "dense"


class TestShiftInvert(SolverContract):
    name = "shift-invert"


class TestDavidson(SolverContract):
    name = "davidson"


class TestLanczos(SolverContract):
    name = "lanczos"


class TestShortLanczos(SolverContract):
    name = "short-lanczos"
    graphs = EASY


def test_every_solver_is_tested():
    assert {contract.name for contract in SolverContract.__subclasses__()} == set(SOLVERS)
