"""Comparison of methods: honest statistics, the results document, figures, the report."""
