"""Datasets: where graphs with features and labels come from."""
