"""What tests of this package and of its plug-ins share: contract suites to inherit from, and a zoo of small graphs.

A plug-in is tested by a class of three lines::

    from tadropedge.testing.scores import ScoreContract

    class TestStrength(ScoreContract):
        score = staticmethod(strength)
"""
