"""Spectra beyond one memory: SLEPc on several processes under MPI, each of which holds its rows of the Laplacian."""
