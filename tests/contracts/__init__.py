"""Contracts: a new score, solver, ... subclasses one with a few lines and gets every test of its kind."""
