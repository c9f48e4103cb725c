"""Edge scores: one number per edge, at least 0, high for edges to keep. One file per score, one path for all."""
