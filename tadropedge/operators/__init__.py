"""Shift operators of subgraphs: a fixed pattern, nine normalisations, products with gradients."""
