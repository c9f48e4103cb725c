"""Fewer edges with larger weights, so that the Laplacian stays what it was on average, and how close the result is."""
