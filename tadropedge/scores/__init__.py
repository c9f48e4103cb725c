"""Edge scores: one number per edge, at least 0, high for edges to keep. One file per kind of score, one door.

A new score is a function in a file of its own here, and a line of ``SCORES`` in :mod:`tadropedge.registry`.
"""
