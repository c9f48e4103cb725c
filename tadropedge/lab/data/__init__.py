"""Data: a graph with features, labels and splits, by name, from files, from objects of PyTorch Geometric."""
