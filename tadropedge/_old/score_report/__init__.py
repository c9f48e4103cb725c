"""The report on the edge scores of a graph: summary, files, pictures and an interactive page."""
