"""Networks of T models at once: every parameter has a leading axis of trials, and there is one forward pass.

A new network is a class as in ``gcn.py``, and a line of ``NETWORKS`` in :mod:`tadropedge.lab.registry`.
"""
