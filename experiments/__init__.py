"""Experiments over the public names of the package: the paper, the map, and measurements of our own."""
