"""The page, the pictures and the tables of ``tadropedge weights``: which edges hold a graph together."""
