"""The pictures of the paper's items, as PNG bytes: one file per family."""
