"""The slowest modes of a connected graph, computed under MPI: each process reads and holds its own rows alone.

From a graph to scores in three commands. The first saves the adjacency matrix as three arrays:

    python -c "import numpy as np, tadropedge as tde; A = tde.Graph.from_file('edges.csv').adjacency();
    [np.save(name, getattr(A, name)) for name in ('indptr', 'indices', 'data')]"

The second, this script, needs numpy, petsc4py and slepc4py alone, so it may run under another Python, such as Debian's
(``apt install python3-slepc4py openmpi-bin``, and PETSC_DIR and SLEPC_DIR set to the folders below /usr/lib/petscdir
and /usr/lib/slepcdir). It writes V.npy, a column per mode: 8 here, 7 to use and one above them, which shows the gap:

    mpiexec -n 4 /usr/bin/python3 slepc_modes.py . 8

The third scores the edges; it refuses eigenvectors that are not good enough:

    python -c "import numpy as np, tadropedge as tde; graph = tde.Graph.from_file('edges.csv');
    np.save('scores', tde.edge_scores(graph, 'aggregate', q=7, modes=np.load('V.npy')))"

Of a graph in several parts, take one: ``A = A[nodes][:, nodes]``, and rows of zeros in V for the other nodes.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import slepc4py

slepc4py.init(sys.argv[:1])
from petsc4py import PETSc  # noqa: E402
from slepc4py import SLEPc  # noqa: E402

# One multigrid cycle as the preconditioner. Aggregation is plain: smoothed prolongations fill up on graphs with hubs.
OPTIONS = {
    "st_pc_gamg_agg_nsmooths": 0,
    "st_mg_levels_ksp_type": "richardson",
    "st_mg_levels_ksp_max_it": 1,
    "st_mg_levels_pc_type": "sor",
}
GUARD = 3  # vectors beyond those that are wanted, so that the last one converges like the first


def laplacian(folder, normalized):
    """D − A, or I − D^-1/2 A D^-1/2, and its null vector, from this process's rows of the adjacency matrix."""
    indptr, indices, data = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices", "data"))
    n = len(indptr) - 1
    null = PETSc.Vec().createMPI(n)
    first, last = null.getOwnershipRange()
    mine, nodes = slice(int(indptr[first]), int(indptr[last])), np.arange(first, last)
    row = np.repeat(nodes, np.diff(indptr[first : last + 1]))
    col, weight = indices[mine], np.array(data[mine], dtype=float)
    degree = np.bincount(row - first, weights=weight, minlength=len(nodes))
    diagonal = degree
    null.setArray(np.sqrt(degree) if normalized else np.ones(len(nodes)))
    if normalized:
        scatter, root = PETSc.Scatter.toAll(null)
        scatter.scatter(null, root)
        weight /= root.getArray()[row] * root.getArray()[col]
        diagonal = np.ones(len(nodes))
    row, col = np.concatenate((row, nodes)), np.concatenate((col, nodes))
    order = np.lexsort((col, row))
    starts = np.concatenate(([0], np.cumsum(np.bincount(row - first, minlength=len(nodes)))))
    entries = np.concatenate((-weight, diagonal))[order]
    rows = (starts.astype(PETSc.IntType), col[order].astype(PETSc.IntType), entries)
    L = PETSc.Mat().createAIJ(((len(nodes), n), (len(nodes), n)), csr=rows)
    null.normalize()
    L.setOption(PETSc.Mat.Option.SYMMETRIC, True)
    L.setNearNullSpace(PETSc.NullSpace().create(vectors=[null]))
    return L, null


def lowest_modes(L, null, count, residual):
    """The lowest modes but the null vector, by LOBPCG, each with ‖L v − λ v‖ of at most ``residual``."""
    for name, value in OPTIONS.items():
        PETSc.Options()[name] = value
    solver = SLEPc.EPS().create()
    solver.setOperators(L)
    solver.setProblemType(SLEPc.EPS.ProblemType.HEP)
    solver.setType(SLEPc.EPS.Type.LOBPCG)
    solver.setLOBPCGBlockSize(count + GUARD)
    solver.setDimensions(count)
    solver.setWhichEigenpairs(SLEPc.EPS.Which.SMALLEST_REAL)
    solver.setConvergenceTest(SLEPc.EPS.Conv.ABS)
    solver.setTolerances(residual, 2000)
    solver.setDeflationSpace([null])
    solver.getST().setType(SLEPc.ST.Type.PRECOND)
    solver.getST().getKSP().setType(PETSc.KSP.Type.PREONLY)
    solver.getST().getKSP().getPC().setType(PETSc.PC.Type.GAMG)
    solver.setFromOptions()
    solver.solve()
    if solver.getConverged() < count:
        sys.exit(f"{solver.getConverged()} of {count} modes converged; try a larger --residual")
    vectors = [null.duplicate() for _ in range(count)]
    values = [solver.getEigenpair(place, vector).real for place, vector in enumerate(vectors)]
    return values, vectors


def main():
    """Each process writes its own rows of V.npy, null vector first."""
    reader = argparse.ArgumentParser()
    reader.add_argument("folder", type=Path, help="with indptr.npy, indices.npy and data.npy")
    reader.add_argument("modes", type=int, help="how many, the null vector included")
    reader.add_argument("--normalized", action="store_true", help="of I − D^-1/2 A D^-1/2 instead of D − A")
    reader.add_argument("--residual", type=float, default=1e-10)
    asked = reader.parse_args()
    L, null = laplacian(asked.folder, asked.normalized)
    values, vectors = lowest_modes(L, null, asked.modes - 1, asked.residual)
    first, last = null.getOwnershipRange()
    path, shape = asked.folder / "V.npy", (null.getSize(), asked.modes)
    if null.comm.rank == 0:
        np.lib.format.open_memmap(path, "w+", dtype=float, shape=shape).flush()
    null.comm.barrier()
    V = np.lib.format.open_memmap(path, "r+")
    for column, vector in enumerate((null, *vectors)):
        V[first:last, column] = vector.getArray()
    V.flush()
    PETSc.Sys.Print(f"{path}: eigenvalues", *np.round([0.0, *values], 9))


if __name__ == "__main__":
    main()
