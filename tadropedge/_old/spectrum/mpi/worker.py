"""One rank of the solver ``slepc``: started by ``mpiexec``, never imported; needs numpy, petsc4py and slepc4py alone.

It belongs to another Python than the rest of the package, so it imports nothing of it. It speaks in lines of JSON: what
rank 0 finds goes to standard output, what it is to do comes from standard input, and when that ends so do all ranks.

    {"ready": {"ranks": 2, "bytes": 4}}                 how many there are, and the size of PETSc's integers
    ← {"matrix": FILE, "null": FILE, "vectors": FILE, "wanted": 7, "block": 10}
    {"loaded": true}                                    the files have been read
    {"run": 0, "values": [...], "residuals": [...]}     after each iteration: the lowest pairs
    ← {"tolerance": 1e-11, "again": false}              what is good enough, as far as can be told by then, and
                                                        whether to start again from the vectors found so far
    {"done": {"memory": [...], "steps": 31, ...}}       the vectors are in their file; peak bytes of each rank
    {"error": "..."}                                    instead of any of these
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from typing import Any

MOST_STEPS = 2000
TINY = 1e-300  # no pair has converged before it is known what is needed
OPTIONS = {
    "st_pc_gamg_agg_nsmooths": 0,
    "st_mg_levels_ksp_type": "richardson",
    "st_mg_levels_ksp_max_it": 1,
    "st_mg_levels_pc_type": "sor",
}
UNIT = 1 if sys.platform == "darwin" else 1024  # of the peak that the system reports


class Rank:
    """One process among the others; PETSc's own messages carry what ranks tell each other."""

    def __init__(self) -> None:
        self.np = importlib.import_module("numpy")
        importlib.import_module("slepc4py").init(["worker", "-no_signal_handler"])  # before the next two
        self.PETSc = importlib.import_module("petsc4py.PETSc")
        self.SLEPc = importlib.import_module("slepc4py.SLEPc")
        self.first = self.PETSc.COMM_WORLD.rank == 0
        self.begun, self.steps, self.run, self.again = time.monotonic(), 0, 0, False

    def say(self, **words: Any) -> None:
        """Tell who started this, once."""
        if self.first:
            tell(words)

    def asked(self) -> dict[str, Any]:
        """The next line from there, which all ranks hear."""
        line = sys.stdin.buffer.readline() if self.first else b""
        heard = bytes(self.from_all(self.np.frombuffer(line, dtype="u1")).astype("u1"))
        if not heard:
            os._exit(0)  # nobody is there any more
        found: dict[str, Any] = json.loads(heard)
        return found

    def from_all(self, mine: Any) -> Any:
        """Numbers of each rank, one after the other, on every rank."""
        vector = self.PETSc.Vec().createMPI((len(mine), None))
        vector.setArray(self.np.asarray(mine, dtype=float))
        scatter, everywhere = self.PETSc.Scatter.toAll(vector)
        scatter.scatter(vector, everywhere, False, self.PETSc.ScatterMode.FORWARD)
        return everywhere.getArray().copy()

    def viewer(self, path: str, mode: str) -> Any:
        """A file in PETSc's binary format, of which rank 0 alone reads and writes the bytes."""
        return self.PETSc.Viewer().createBinary(path, mode)

    def work(self) -> None:
        """Find eigenpairs until they are good enough, and write them."""
        self.say(ready={"ranks": self.PETSc.COMM_WORLD.size, "bytes": self.np.dtype(self.PETSc.IntType).itemsize})
        task = self.asked()
        L = self.PETSc.Mat().create()
        L.setType("aij")
        L.load(self.viewer(task["matrix"], "r"))
        null = L.createVecRight()
        null.load(self.viewer(task["null"], "r"))
        self.say(loaded=True)
        vectors = self.converged(self.solver(L, null, task["block"]), L, task["wanted"])
        while self.again:
            # Another solver: one that is used twice forgets the null vector that it was to leave out.
            self.run += 1
            solver = self.solver(L, null, task["block"])
            solver.setInitialSpace(vectors)
            vectors = self.converged(solver, L, task["wanted"])
        self.write(task["vectors"], vectors)

    def solver(self, L: Any, null: Any, block: int) -> Any:
        """LOBPCG with one multigrid cycle as its preconditioner, and the null vector out of its way.

        GAMG aggregates plainly: prolongations that are smoothed fill up on graphs with hubs. Its coarse graphs hold the
        null vector exactly, which on a normalised Laplacian is not constant. Sweeps of Gauss and Seidel, there and
        back, need no estimate of the largest eigenvalue, which goes wrong where the spectrum is that of a hypercube.
        """
        options = self.PETSc.Options()
        for name, value in OPTIONS.items():
            if not options.hasName(name):  # what the user sets by PETSC_OPTIONS comes first
                options[name] = value
        L.setOption(self.PETSc.Mat.Option.SYMMETRIC, True)
        L.setNearNullSpace(self.PETSc.NullSpace().create(vectors=[null]))
        EPS = self.SLEPc.EPS
        solver = EPS().create()
        solver.setOperators(L)
        solver.setProblemType(EPS.ProblemType.HEP)
        solver.setType(EPS.Type.LOBPCG)
        solver.setLOBPCGBlockSize(block)
        solver.setWhichEigenpairs(EPS.Which.SMALLEST_REAL)
        solver.setConvergenceTest(EPS.Conv.ABS)
        solver.setTrackAll(True)
        solver.setDeflationSpace([null])
        inner = solver.getST()
        inner.setType(self.SLEPc.ST.Type.PRECOND)
        inner.getKSP().setType(self.PETSc.KSP.Type.PREONLY)
        inner.getKSP().getPC().setType(self.PETSc.PC.Type.GAMG)
        solver.setFromOptions()
        return solver

    def converged(self, solver: Any, L: Any, wanted: int) -> list[Any]:
        """The wanted vectors, once whoever started this is content."""
        solver.setTolerances(TINY, MOST_STEPS)
        solver.setDimensions(wanted)
        solver.setMonitor(lambda _, step, good, values, errors: self.watch(solver, values[:wanted], errors[:wanted]))
        solver.solve()
        if solver.getConverged() < wanted:
            raise RuntimeError(f"{solver.getConverged()} of {wanted} pairs converged in {self.steps} steps")
        vectors = [L.createVecRight() for _ in range(wanted)]
        for number, vector in enumerate(vectors):
            solver.getEigenpair(number, vector)
        solver.destroy()
        return vectors

    def watch(self, solver: Any, values: Any, errors: Any) -> None:
        """Report an iteration, and hear how good is good enough."""
        self.steps += 1
        found = {"values": [complex(value).real for value in values], "residuals": [float(error) for error in errors]}
        self.say(run=self.run, **found)
        heard = self.asked()
        self.again = heard["again"]
        solver.setTolerances(heard["tolerance"], MOST_STEPS)

    def write(self, path: str, vectors: list[Any]) -> None:
        """The vectors, one after the other, and what they took."""
        viewer = self.viewer(path, "w")
        for vector in vectors:
            vector.view(viewer)
        viewer.destroy()
        memory = self.from_all([UNIT * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss])
        seconds = time.monotonic() - self.begun
        self.say(done={"memory": [int(peak) for peak in memory], "steps": self.steps, "seconds": seconds})


def tell(words: dict[str, Any]) -> None:
    """One line of JSON."""
    os.write(1, (json.dumps(words) + "\n").encode())


def main() -> None:
    """Work; whatever goes wrong is said in one line, and ``mpiexec`` ends the other ranks."""
    try:
        Rank().work()
    except BaseException as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        tell({"error": f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__})
        os._exit(1)


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file, whose neighbours are no modules of this Python
    main()
