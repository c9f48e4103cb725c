"""Contract suites: what holds for everything of one kind, written once and inherited.

A new rule, normalisation or dataset adds a class of a few lines to the tests and gets every test of its kind.
"""
