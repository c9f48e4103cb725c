"""Every eigensolver keeps its contract."""

import pytest
from contracts.solvers import EASY, HARD, SolverContract
from test_slepc import unusable

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


@pytest.mark.skipif(bool(unusable()), reason=unusable() or "it can run")
class TestSlepc(SolverContract):
    name = "slepc"
    graphs = {name: (EASY | HARD)[name] for name in ("cube", "clusters")}  # ranks take a second to start


def test_every_solver_is_tested():
    assert {contract.name for contract in SolverContract.__subclasses__()} == set(SOLVERS)
