"""Phase III, the coins: which edges are kept in an epoch."""
