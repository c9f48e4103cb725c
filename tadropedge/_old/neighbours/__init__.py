"""Mini-batches: some nodes, and of the edges kept in an epoch those that their outputs depend on."""
